from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planners
from aggmaze import TabularMDP
from planners.bellman import local_engine
from planners.budget import Budget, Clock
from planners.certificate import Certifier
from planners.iterate import iterate
from planners.judge import Run
from planners.linear import policy_equations
from planners.linear.policy_equations import PolicyEquations
from planners.result import Status
from planners.solvers import modified_policy_iteration
from planners.solvers.base import Step
from planners.solvers.modified_policy_iteration import (
    _MOST_SWEEPS,
    ModifiedPolicyIteration,
    ModifiedPolicyIterationOptions,
    _Adaptive,
)
from planners.sweeps.action_elimination import LazySweeps, successive_sweeps
from tests import strategies
from tests.planners.reference import (
    Exact,
    Model,
    dense,
    exact_error,
    models,
    random_moves,
    random_tabular,
    truth,
    value_of,
    within,
)

SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def solver_of(
    model: Model, gamma: float, V0: np.ndarray | None = None, threads: int = 1, **options
):  # type: ignore[no-untyped-def]
    operators = local_engine(model, gamma, threads)
    start = np.zeros(model.num_states) if V0 is None else V0
    solver = ModifiedPolicyIteration(operators, ModifiedPolicyIterationOptions(**options))
    return operators, solver, start


def steps_of(solver: ModifiedPolicyIteration, V: np.ndarray) -> Iterator[tuple[Step, np.ndarray]]:
    """Step as the loop does; yield each step and the V that it came to."""
    out = np.empty_like(V)
    while True:
        step = solver.step(V, out)
        V, out = out, V
        yield step, V


def run_of(model: Model, gamma: float, budget: Budget, **kwargs) -> Run:  # type: ignore[no-untyped-def]
    operators, solver, start = solver_of(model, gamma, **kwargs)
    return iterate(solver, start, Certifier(operators), budget, Clock())


def check_every_round(model: Model, gamma: float, rounds: int, **kwargs) -> None:  # type: ignore[no-untyped-def]
    """Compare the values with the truth after each round."""
    V_star, slack = truth(dense(model), gamma)
    operators, solver, start = solver_of(model, gamma, **kwargs)
    failures = []

    def compare(progress) -> bool:  # type: ignore[no-untyped-def]
        error = float(np.abs(progress.values - V_star).max())
        if not error <= progress.bound + slack:
            failures.append((progress.iteration, error, progress.bound))
        return False

    iterate(
        solver,
        start,
        Certifier(operators),
        Budget(num_iterations=rounds),
        Clock(),
        callback=compare,
    )
    assert not failures


def general(
    seed: int, *, num_states: int = 40, sign: float = 1.0, kind: str = "terminal"
) -> TabularMDP:
    """A sparse model with masks and duplicates, rows off by up to 1e-9, and ways to end."""
    rng = np.random.default_rng(seed)
    num_actions, branching = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    shape = (num_states, num_actions, branching)
    following = rng.integers(num_states, size=shape)  # some twice in a row
    probabilities = rng.dirichlet(np.ones(branching), shape[:2])
    probabilities *= 1 + rng.uniform(-5e-10, 5e-10, (*shape[:2], 1))
    costs = rng.random(shape[:2]) if sign > 0 else rng.normal(size=shape[:2])
    ends = np.zeros(num_states, dtype=bool)
    if kind != "none":
        ends[: num_states // 8] = True
    following[ends] = np.flatnonzero(ends)[:, np.newaxis, np.newaxis]
    if kind == "terminal":
        costs[ends] = 0.0
    mask = rng.random(shape[:2]) < 0.8
    mask[np.arange(num_states), rng.integers(num_actions, size=num_states)] = True
    if kind == "terminal":
        probabilities[ends] = np.eye(branching)[0]
        mask[ends] = True
    matrix = sp.csr_array(
        (
            probabilities.reshape(-1),
            following.reshape(-1),
            np.arange(num_states * num_actions + 1) * branching,
        ),
        shape=(num_states * num_actions, num_states),
    )
    return TabularMDP(matrix, costs, action_mask=mask).validate()


class TestBounds:
    @pytest.mark.parametrize("gamma", [0.5, 0.9, 0.999])
    @pytest.mark.parametrize("kind", ["none", "terminal", "absorbing"])
    @pytest.mark.parametrize("exactly", [True, False])
    def test_hold_at_every_round_by_elimination(
        self, gamma: float, kind: str, exactly: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in (
            ("_FEW_STATES", 0),
            ("_SLOW_RATE", 1e-300),
            ("_START_PROGRESS", 0.0),
            ("_TRIAL_SWEEPS", 2),
            ("_FIRST_DROP", 1e-3),
            ("_FIRST_TRIAL", 0.0),
            ("_LATE_TRIAL", 0.0),
            ("_MOST_ELIMINATION", 10**6),
            ("_MANY_BEFORE", math.inf if exactly else 0.0),
            ("_MANY_AHEAD", -1.0e9),
        ):
            monkeypatch.setattr(modified_policy_iteration, name, value)
        monkeypatch.setattr(policy_equations, "_surely_fills_in", lambda matrix: False)
        if not exactly:
            monkeypatch.setattr(policy_equations, "analyse", lambda *args, **kwargs: None)
        reductions: list[float] = []
        solve = PolicyEquations.solve

        def solved(self: PolicyEquations, *args: Any, **kwargs: Any) -> Any:
            found = solve(self, *args, **kwargs)
            reductions.append(found.reduction)
            return found

        monkeypatch.setattr(PolicyEquations, "solve", solved)
        for seed, sign in itertools.product(range(3), (1.0, -1.0)):
            check_every_round(general(seed, sign=sign, kind=kind), gamma, 12)
        assert any(
            reduction == 0.0 if exactly else 0.0 < reduction < 1e-2 for reduction in reductions
        )

    @pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99, 0.999])
    @pytest.mark.parametrize("kind", ["none", "terminal", "absorbing"])
    def test_hold_at_every_round_on_general_models(self, gamma: float, kind: str) -> None:
        for seed, sign in itertools.product(range(3), (1.0, -1.0)):
            model = general(seed, sign=sign, kind=kind)
            check_every_round(model, gamma, 25)
            check_every_round(model, gamma, 10, inner_sweeps=seed * 3)

    @pytest.mark.parametrize("p", [1.0, 0.9, 0.3, 0.05])
    def test_hold_at_every_round_on_moves(self, p: float) -> None:
        for seed, gamma, terminals in itertools.product(range(2), (0.9, 0.99), (0, 1)):
            model = random_moves(seed, 40, 4, p=p, terminals=terminals)
            check_every_round(model, gamma, 25)
            check_every_round(model, gamma, 10, inner_sweeps=4)

    @SLOW
    @given(models, st.sampled_from([0.0, 0.5, 0.9, 0.99]), st.sampled_from([None, 0, 3]))
    def test_hold_in_fractions(self, model: Model, gamma: float, inner_sweeps: int | None) -> None:
        V_star = Exact(model, gamma).optimum()
        run = run_of(model, gamma, Budget(num_iterations=4), inner_sweeps=inner_sweeps)
        assert within(exact_error(run.values, V_star), run.bound)

    @SLOW
    @given(strategies.tabular_mdps() | strategies.move_mdps(), st.floats(0, 0.99))
    def test_are_reached(self, model: Model, gamma: float) -> None:
        run = run_of(model, gamma, Budget(tol=1e-6, num_iterations=3000))
        V_star, slack = truth(dense(model), gamma)
        assert np.abs(run.values - V_star).max() <= run.bound + slack
        assert run.status is Status.CONVERGED or "certify" in run.message


class TestConverges:
    @pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99, 0.999])
    @pytest.mark.parametrize("kind", ["none", "terminal", "absorbing"])
    def test_on_general_models(self, gamma: float, kind: str) -> None:
        for seed in range(4):
            # Rows that miss 1 by 1e-9 leave 1e-9 / (1 - gamma) open.
            tol = 1e-7 if gamma < 0.95 else 1e-5
            run = run_of(general(seed, sign=-1, kind=kind), gamma, Budget(tol=tol))
            assert run.status is Status.CONVERGED, run.message

    @pytest.mark.parametrize("p", [1.0, 0.9, 0.2])
    def test_on_moves(self, p: float) -> None:
        for seed, terminals in itertools.product(range(3), (0, 1)):
            model = random_moves(seed, 60, 4, p=p, terminals=terminals)
            run = run_of(model, 0.99, Budget(tol=1e-7))
            assert run.status is Status.CONVERGED, run.message

    def test_slow_chains_by_gmres(self) -> None:
        # Two blocks hardly coupled: sweeps alone would need thousands.
        rng = np.random.default_rng(0)
        S, A, branching = 400, 3, 4
        side = np.arange(S)[:, np.newaxis, np.newaxis] // (S // 2)
        inside = side * (S // 2) + rng.integers(S // 2, size=(S, A, branching))
        following = np.concatenate([inside, (inside[:, :, :1] + S // 2) % S], axis=2)
        probabilities = np.concatenate(
            [0.9999 * rng.dirichlet(np.ones(branching), (S, A)), np.full((S, A, 1), 1e-4)], axis=2
        )
        matrix = sp.csr_array(
            (probabilities.reshape(-1), following.reshape(-1), np.arange(S * A + 1) * 5),
            shape=(S * A, S),
        )
        model = TabularMDP(matrix, rng.random((S, A)) + side[:, :, 0])
        run = run_of(model, 0.9995, Budget(tol=1e-7))
        assert run.status is Status.CONVERGED
        assert run.num_sweeps < 1000
        V_star, slack = truth(dense(model), 0.9995)
        assert np.abs(run.values - V_star).max() <= run.bound + slack

    def test_in_few_rounds_on_a_garnet(self) -> None:
        model = general(5, num_states=2000, kind="none")
        run = run_of(model, 0.99, Budget(tol=1e-6))
        assert run.status is Status.CONVERGED
        assert len(run.history) < 20

    @pytest.mark.parametrize("factor", [1e-200, 1e-30, 1.0, 1e30, 1e200])
    def test_whatever_the_unit_of_costs(self, factor: float) -> None:
        model = random_tabular(0, 50, 3, terminals=0)
        plain = run_of(model, 0.95, Budget(tol=1e-8))
        run = run_of(model.scaled(factor), 0.95, Budget(tol=1e-8))
        assert run.status is Status.CONVERGED
        scale = np.abs(plain.values).max()
        np.testing.assert_allclose(run.values / factor, plain.values, atol=4e-8 * scale)

    def test_very_close_to_gamma_1(self) -> None:
        model = random_tabular(1, 50, 3, terminals=0)
        run = run_of(model, 1 - 1e-7, Budget(tol=1e-5, num_iterations=500))
        assert run.status is Status.CONVERGED


class TestTextbook:
    @pytest.mark.parametrize("inner_sweeps", [0, 1, 5])
    def test_is_sweeps_by_the_greedy_policy(self, inner_sweeps: int) -> None:
        for model in (random_tabular(3, 30, 3), random_moves(3, 30, 3, p=0.8)):
            gamma, tables = 0.9, dense(model)
            _, solver, start = solver_of(model, gamma, inner_sweeps=inner_sweeps)
            values = steps_of(solver, start)
            V = np.zeros(model.num_states)
            for _ in range(6):
                Q = np.where(tables.mask, tables.costs + gamma * tables.P @ V, np.inf)
                Q[tables.terminal] = 0.0
                V = Q.min(axis=1)
                np.testing.assert_allclose(next(values)[1], V, atol=1e-12)
                states, greedy = np.arange(len(V)), Q.argmin(axis=1)
                P, costs = tables.P[states, greedy], tables.costs[states, greedy]
                for _ in range(inner_sweeps):
                    V = costs + gamma * P @ V

    def test_is_a_method_of_solve(self) -> None:
        model = random_tabular(3, 30, 3)
        V_star, slack = truth(dense(model), 0.9)
        for options in ({}, {"inner_sweeps": 5}):
            result = planners.solve(
                model, gamma=0.9, method="modified_policy_iteration", tol=1e-8, **options
            )
            assert result.status is Status.CONVERGED
            assert np.abs(result.values - V_star).max() <= result.bound + slack

    def test_counts_updates(self) -> None:
        model = random_tabular(3, 30, 3)
        _, solver, start = solver_of(model, 0.9, inner_sweeps=4)
        steps = [step for step, _ in itertools.islice(steps_of(solver, start), 3)]
        assert [step.num_sweeps for step in steps] == [1, 5, 5]
        assert [step.num_updates for step in steps] == [30, 150, 150]

    @pytest.mark.parametrize("value", [-1, 1.5, "many"])
    def test_refuses_other_numbers(self, value: object) -> None:
        with pytest.raises((ValueError, TypeError), match="inner_sweeps"):
            ModifiedPolicyIterationOptions(inner_sweeps=value)  # type: ignore[arg-type]


class TestStart:
    def test_is_not_overwritten(self) -> None:
        for model in (general(0), random_moves(0, 40, 3, p=0.9)):
            V0 = np.random.default_rng(0).normal(size=model.num_states)
            kept = V0.copy()
            V0.flags.writeable = False
            run = run_of(model, 0.95, Budget(tol=1e-8), V0=V0)
            np.testing.assert_array_equal(V0, kept)
            V_star, slack = truth(dense(model), 0.95)
            assert np.abs(run.values - V_star).max() <= run.bound + slack

    def test_from_the_solution_is_quick(self) -> None:
        model = general(1, kind="none")
        first = run_of(model, 0.99, Budget(tol=1e-9))
        again = run_of(model, 0.99, Budget(tol=1e-6), V0=first.values)
        assert len(again.history) == 1


@pytest.mark.parametrize("layout", ["tabular", "moves"])
@pytest.mark.parametrize("terminals", [0, 3])
def test_threads_change_nothing(
    layout: str, terminals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planners.kernels.threads.LEAST_WORK", 64)
    if layout == "tabular":
        model: Model = general(2, num_states=997, kind="terminal" if terminals else "none")
    else:
        model = random_moves(2, 997, 3, p=0.9, terminals=terminals)
    runs = [run_of(model, 0.999, Budget(tol=1e-9), threads=n) for n in (1, 2, 3)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.values, runs[0].values)
        np.testing.assert_array_equal(run.history.bound, runs[0].history.bound)
        assert run.num_sweeps == runs[0].num_sweeps


class TestLazySweeps:
    @SLOW
    @given(strategies.seeds, st.sampled_from([0.5, 0.95, 0.999]), st.sampled_from([1.0, 1e3, 1e-3]))
    def test_are_sweeps(self, seed: int, gamma: float, size: float) -> None:
        rng = np.random.default_rng(seed)
        kind = ("none", "terminal", "absorbing")[seed % 3]
        model = general(seed % 1000, sign=-1, kind=kind)
        operators = local_engine(model, gamma)
        lazy = successive_sweeps(operators)
        assert isinstance(lazy, LazySweeps)
        V = np.zeros(model.num_states)
        out, expected = np.empty_like(V), np.empty_like(V)
        actions = np.zeros(model.num_states, dtype=np.int32)
        for _ in range(6):
            max_value = float(np.abs(V).max())
            sweep = lazy.sweep(V, out, actions)
            assert sweep == operators.sweep(V, expected)
            np.testing.assert_array_equal(out, expected)
            changes = size * rng.normal() + size * rng.normal(size=len(V)) * rng.choice(
                [0, 1e-3, 1]
            )
            new = V + changes
            largest = max(float(np.abs(new).max()), max_value)
            lazy.changed(float(changes.min()), float(changes.max()), largest)
            V = new
            size *= 0.3

    def test_moves_are_swept_as_ever(self) -> None:
        model = random_moves(0, 40, 3, p=0.9, terminals=2)
        operators = local_engine(model, 0.9)
        sweeps = successive_sweeps(operators)
        assert not isinstance(sweeps, LazySweeps)
        V = np.random.default_rng(0).normal(size=40)
        out, expected = np.empty_like(V), np.empty_like(V)
        actions, expected_actions = np.zeros(40, dtype=np.int32), np.zeros(40, dtype=np.int32)
        for _ in range(3):
            sweep = sweeps.sweep(V, out, actions)
            assert sweep == operators.sweep(V, expected, expected_actions)
            np.testing.assert_array_equal(out, expected)
            np.testing.assert_array_equal(actions, expected_actions)
            V += 1.0
            sweeps.changed(1.0, 1.0, float(np.abs(V).max()))

    def test_read_less(self) -> None:
        P = np.zeros((2, 2, 2))
        P[:, 0, 0] = P[:, 1, 1] = 1.0
        model = TabularMDP.from_matrices(P, costs=np.array([[0.0, 5.0], [0.0, 5.0]]))
        operators = local_engine(model, 0.5)
        lazy = successive_sweeps(operators)
        assert isinstance(lazy, LazySweeps)
        V, out, actions = np.zeros(2), np.empty(2), np.zeros(2, dtype=np.int32)
        lazy.sweep(V, out, actions)
        V[:] = 0.0, -100.0  # action 1 leads there, but nothing was said of the change
        lazy.sweep(V, out, actions)
        np.testing.assert_array_equal(out, [0.0, 0.0])
        lazy.changed(-100.0, 0.0, 100.0)
        lazy.sweep(V, out, actions)
        np.testing.assert_array_equal(out, [-45.0, -45.0])


def test_moves_and_their_table_agree() -> None:
    model = random_moves(7, 60, 4, p=0.85)
    results = [run_of(m, 0.99, Budget(tol=1e-10)).values for m in (model, model.to_tabular())]
    np.testing.assert_allclose(results[0], results[1], atol=1e-8)


def test_value_of_its_policy() -> None:
    model = general(9, kind="none")
    _, solver, start = solver_of(model, 0.99)
    for _ in itertools.islice(steps_of(solver, start), 30):
        pass
    policy = solver._policy
    V_star, _ = truth(dense(model), 0.99)
    np.testing.assert_allclose(
        value_of(dense(model), policy, 0.99).astype(float), V_star.astype(float), atol=1e-8
    )


class TestShallowCorrections:
    def test_sweeps_double_while_many_actions_change(self) -> None:
        num_states = 4000
        engine = local_engine(random_tabular(0, num_states, 3, terminals=0), 0.999)
        evaluation = _Adaptive(engine, shifts=True)
        policy = np.zeros(num_states, dtype=np.int32)
        worth = []
        for _ in range(6):
            policy[:5] = (policy[:5] + 1) % 3
            worth.append(evaluation._sweeps_worth(policy))
        # At first all are new; later 5 of 4000 are more than a thousandth.
        assert worth == [5, 10, 20, 40, 60, 60]
        policy[:4] = (policy[:4] + 1) % 3
        assert evaluation._sweeps_worth(policy) == _MOST_SWEEPS

    def test_no_policy_is_too_new_where_the_horizon_is_short(self) -> None:
        engine = local_engine(random_tabular(0, 300, 3, terminals=0), 0.95)
        evaluation = _Adaptive(engine, shifts=True)
        assert evaluation._sweeps_worth(np.zeros(300, dtype=np.int32)) == _MOST_SWEEPS
