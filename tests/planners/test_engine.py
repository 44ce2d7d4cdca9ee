"""Programs that cannot tell one process from several: the engine is all that they see."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import planners
from aggmaze.progress import listening
from planners.bellman import local_engine
from planners.budget import Budget, Clock
from planners.certificate import Certifier
from planners.engine import Engine
from planners.evaluation import evaluate_by_sweeps
from planners.iterate import iterate
from planners.judge import Run
from planners.policies import policy_model
from planners.solvers.adaptive_aggregation import AdaptiveAggregation, AdaptiveAggregationOptions
from planners.solvers.value_iteration import ValueIteration
from tests.planners.reference import dense, random_tabular, truth
from tests.planners.split_engine import PartEngine, in_parts

GAMMA = 0.9
CUTS = ([], [7], [1, 2], [10, 20, 30, 39])


def value_iteration(engine: Engine) -> Run:
    return iterate(
        ValueIteration(engine), start(engine), Certifier(engine), Budget(tol=1e-8), Clock()
    )


def start(engine: Engine) -> NDArray[np.float64]:
    return np.zeros(len(engine.terminal))


def adaptive_aggregation(**options: Any) -> Callable[[Engine], Run]:
    def program(engine: Engine) -> Run:
        chosen = AdaptiveAggregationOptions(**options)
        return iterate(
            AdaptiveAggregation(engine, chosen, np.random.default_rng(3)),
            start(engine),
            Certifier(engine),
            Budget(tol=1e-6) if chosen.converges else Budget(num_iterations=60),
            Clock(),
            defines_values=not chosen.converges,
        )

    return program


PROGRAMS = {
    "value_iteration": value_iteration,
    "adaptive_aggregation": adaptive_aggregation(epsilon=0.3),
    "many bins": adaptive_aggregation(epsilon=1e-6),
    "more bins than states by far": adaptive_aggregation(epsilon=1e-12),
    "shrink": adaptive_aggregation(epsilon="shrink"),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("terminals", [0, 3])
def test_a_solver_cannot_tell_parts_from_the_whole(
    name: str, cuts: list[int], terminals: int
) -> None:
    model = random_tabular(2, 40, 3, terminals=terminals)
    whole = PROGRAMS[name](local_engine(model, GAMMA))
    runs = in_parts(model, GAMMA, cuts, PROGRAMS[name])
    np.testing.assert_array_equal(np.concatenate([run.values for run in runs]), whole.values)
    for run in runs:
        assert (run.bound, run.status, run.message) == (whole.bound, whole.status, whole.message)
        assert run.num_updates == whole.num_updates
        assert run.num_certificate_sweeps == whole.num_certificate_sweeps
        np.testing.assert_array_equal(run.history.bound, whole.history.bound)
        np.testing.assert_array_equal(run.history.num_megastates, whole.history.num_megastates)
    if whole.labels is not None:
        parts = [run.labels for run in runs if run.labels is not None]
        np.testing.assert_array_equal(np.concatenate(parts), whole.labels)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_wherever_the_states_are_cut(seed: int, data: st.DataObject) -> None:
    model = random_tabular(seed, 12, 2, terminals=seed % 3)
    cuts = sorted(data.draw(st.sets(st.integers(1, 11), max_size=4)))
    for program in (value_iteration, adaptive_aggregation(epsilon=0.2)):
        whole = program(local_engine(model, GAMMA))
        runs = in_parts(model, GAMMA, cuts, program)
        np.testing.assert_array_equal(np.concatenate([run.values for run in runs]), whole.values)


@pytest.mark.parametrize("cuts", CUTS)
def test_policies_are_evaluated_in_parts(cuts: list[int]) -> None:
    model = random_tabular(5, 40, 3, terminals=1)
    policy = planners.solve(model, gamma=GAMMA).policy
    chain = policy_model(model, policy)

    def program(engine: Engine) -> NDArray[np.float64]:
        return evaluate_by_sweeps(engine, start(engine))

    values = np.concatenate(in_parts(chain, GAMMA, cuts, program))
    np.testing.assert_array_equal(values, program(local_engine(chain, GAMMA)))
    np.testing.assert_allclose(values, planners.evaluate(model, policy, GAMMA), rtol=1e-11)


def test_sweeps_tell_how_near_they_are() -> None:
    model = random_tabular(5, 40, 3, terminals=1)
    chain = policy_model(model, planners.solve(model, gamma=GAMMA).policy)
    engine = local_engine(chain, GAMMA)
    heard: list[tuple[float, float]] = []
    with listening(lambda *told: None, lambda *told: heard.append(told)):
        told = evaluate_by_sweeps(engine, start(engine))
    np.testing.assert_array_equal(told, evaluate_by_sweeps(engine, start(engine)))
    assert len(heard) > 10
    assert heard[-1][0] <= heard[-1][1] < heard[0][0]


def test_the_certificate_holds_in_parts() -> None:
    model = random_tabular(7, 40, 3, terminals=2)
    V, off = truth(dense(model), GAMMA)
    runs = in_parts(model, GAMMA, [13, 27], value_iteration)
    values = np.concatenate([run.values for run in runs])
    assert np.abs(values - V).max() <= runs[0].bound + off
    assert runs[0].status == "converged"


def test_a_part_that_fails_lets_nobody_wait() -> None:
    def program(engine: PartEngine) -> Run:
        if engine.parts.rank == 1:
            raise ZeroDivisionError
        return value_iteration(engine)

    with pytest.raises(ZeroDivisionError):
        in_parts(random_tabular(2, 40, 3, terminals=0), GAMMA, [10, 20], program)


def test_solvers_do_not_look_into_tables() -> None:
    """What `LocalEngine` adds is for rooms that follow a policy, not for solvers."""
    solvers = [m for name, m in sys.modules.items() if name.startswith("planners.solvers.")]
    assert len(solvers) >= 8
    for module in solvers:
        assert module.__file__ is not None
        with open(module.__file__, encoding="utf-8") as file:  # noqa: PTH123
            assert ".tables" not in file.read(), module.__name__
