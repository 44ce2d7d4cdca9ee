"""Backward induction, against exact fractions, and what goes with a policy for each step."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import planners
from aggmaze import EventMDP, MoveMDP
from planners import FiniteHorizon
from planners.objectives.finite_horizon import _Induction
from planners.stages import Stages
from tests.planners import exact
from tests.planners.objectives_fuzz import draw_model

LAKE = gym.make("FrozenLake-v1")
P = np.zeros((2, 3, 3))  # forest management: wait or cut, with a fire now and then
P[0, :, 0] = 0.1
P[0, [0, 1, 2], [1, 2, 2]] += 0.9
P[1, :, 0] = 1.0
R = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 2.0]])


def exactly(models: list[Any], asked: FiniteHorizon) -> np.ndarray[Any, Any]:
    costs = np.zeros(models[0].num_states)
    if asked.terminal_costs is not None:
        costs[: len(np.asarray(asked.terminal_costs))] = asked.terminal_costs
    found = exact.horizon_costs(models, asked.gamma, list(costs))
    return np.array([[float(v) for v in row] for row in found])


def test_the_textbooks_values_of_so_many_steps() -> None:
    model = planners.as_model(LAKE)
    asked = planners.solve(model, objective=FiniteHorizon(7))
    for k in range(8):
        if k:
            swept = planners.solve(
                model, gamma=1 - 1e-15, method="value_iteration", num_iterations=k
            )
            np.testing.assert_allclose(asked.values[7 - k], swept.values, atol=1e-12)
        else:
            assert not asked.values[7].any()


@pytest.mark.parametrize("gamma", [1.0, 0.9, 0.0])
@pytest.mark.parametrize("seed", range(20))
def test_values_are_within_the_bound(gamma: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = draw_model(rng)
    costs = np.where(model.terminal, 0.0, rng.normal(size=model.num_states))
    asked = FiniteHorizon(6, gamma, costs)
    result = planners.solve(model, objective=asked)
    truth = exact.horizon_costs([model] * 6, gamma, list(costs))
    assert result.values.shape == (7, model.num_states)
    assert result.policy.shape == (6, model.num_states)
    for t in range(7):
        for s in range(model.num_states):
            error = abs(Fraction(float(result.values[t, s])) - truth[t][s])
            assert error <= Fraction(result.bound)
            assert Fraction(result.lower[t, s]) <= truth[t][s] <= Fraction(result.upper[t, s])
    # The policy's own costs.
    mine = planners.evaluate(model, result)
    assert (mine <= result.values + 2 * result.policy_bound).all()


def test_stages_are_costs_or_models() -> None:
    model = planners.as_model((P, R))
    by_costs = planners.solve(model, objective=FiniteHorizon(4, 0.9, stages=lambda t: -R * (t + 1)))
    models = [planners.as_model((P, R * (t + 1))) for t in range(4)]
    asked = FiniteHorizon(4, 0.9, stages=models.__getitem__)
    by_models = planners.solve(model, objective=asked)
    np.testing.assert_array_equal(by_costs.values, by_models.values)
    np.testing.assert_allclose(by_models.values, exactly(models, asked), atol=1e-14)
    # No environment changes its model from step to step.
    assert planners.rollout(model, by_models, episodes=3).promised is None


def test_an_end_stays_one_at_every_stage() -> None:
    model = MoveMDP([[1], [0]], [[1.0], [np.inf]]).validate()
    asked = FiniteHorizon(1, 1.0, [-2.5, 0.0], lambda t: np.array([[1.0], [0.0]]))
    result = planners.solve(model, objective=asked)
    assert result.values.tolist() == [[1.0, 0.0], [-2.5, 0.0]]


def test_stages_of_moves() -> None:
    model = MoveMDP([[0, 0], [0, 2], [1, 2]], [[np.inf, np.inf], [1.0, 2.0], [1.0, 3.0]], p=0.8)
    costs = np.array([[7.0, 7.0], [2.0, 1.0], [0.5, 0.25]])
    asked = FiniteHorizon(3, stages=lambda t: costs)
    there = np.isfinite(model.move_costs)
    other = MoveMDP(model.successors, np.where(there, costs, np.inf), p=0.8)
    result = planners.solve(model, objective=asked)
    np.testing.assert_allclose(result.values, exactly([other] * 3, asked), atol=1e-14)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (np.ones((2, 2)), ValueError, r"stages\(2\) must have shape \(S, A\) = \(3, 2\), got"),
        (np.full((3, 2), np.nan), ValueError, r"stages\(2\): state 0, action 0: cost nan must be"),
        ("costs", TypeError, r"stages\(2\) must return costs, shape \(S, A\), or a model"),
        (gym.make("FrozenLake-v1"), ValueError, r"stages\(2\) has 16 states and 4 actions"),
        (
            ([np.eye(3)] * 2, np.zeros((3, 2))),
            ValueError,
            r"stages\(2\): state 0 is terminal, and in the model it is not",
        ),
    ],
)
def test_stages_that_do_not_fit(given: Any, error: type[Exception], words: str) -> None:
    model = planners.as_model((P, R))
    with pytest.raises(error, match=words):
        planners.solve(model, objective=FiniteHorizon(3, stages=lambda t: given))


def test_terminal_costs_fit_the_model() -> None:
    with pytest.raises(ValueError, match=r"terminal_costs must have shape \(16,\)"):
        planners.solve(LAKE, objective=FiniteHorizon(3, terminal_costs=[1.0]))
    costs = np.zeros(16)
    costs[15] = 1.0
    with pytest.raises(ValueError, match=r"terminal_costs\[15\] = 1.0, and state 15 is terminal"):
        planners.solve(LAKE, objective=FiniteHorizon(3, terminal_costs=costs))


@pytest.mark.parametrize("keep", ["policy", "values", "first"])
def test_what_is_kept(keep: str) -> None:
    whole = planners.solve(LAKE, objective=FiniteHorizon(9))
    part = planners.solve(LAKE, objective=FiniteHorizon(9), keep=keep)
    rows = 10 if keep == "values" else 1
    np.testing.assert_array_equal(part.values, whole.values[:rows])
    np.testing.assert_array_equal(part.policy, whole.policy[: 9 if keep == "policy" else 1])
    assert part.bound == whole.bound


def test_what_does_not_fit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from aggmaze import memory

    monkeypatch.setattr(memory, "available_memory", lambda: 2500)
    words = r"values and actions of 9 steps of 16 states \(less with keep= policy, values, first\)"
    with pytest.raises(MemoryError, match=words):
        planners.solve(LAKE, objective=FiniteHorizon(9))
    assert planners.solve(LAKE, objective=FiniteHorizon(9), keep="first").success


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"keep": "last"}, ValueError, "keep must be one of all, policy, values, first"),
        ({"method": "value_iteration"}, ValueError, "must be one of auto, backward_induction for"),
        ({"epsilon": 1}, TypeError, "auto does not take 'epsilon' for FiniteHorizon; it takes"),
        ({"num_iterations": 3}, ValueError, "num_iterations says nothing of a horizon of 5 steps"),
        ({"V0": np.zeros(16)}, ValueError, "what is left after the last step is terminal_costs"),
    ],
)
def test_arguments(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        planners.solve(LAKE, objective=FiniteHorizon(5), **options)


def test_an_accuracy_that_rounding_does_not_leave() -> None:
    result = planners.solve(LAKE, objective=FiniteHorizon(50), atol=1e-20)
    assert result.status == "stopped_short"
    assert "rounding leaves a bound of" in result.message
    assert planners.solve(LAKE, objective=FiniteHorizon(50), tol=1e-9).status == "converged"


@pytest.mark.parametrize("how", ["callback", "keyboard"])
def test_what_is_whole_when_it_is_stopped(how: str) -> None:
    def stop(progress: planners.Progress) -> bool:
        if progress.iteration == 4:
            if how == "keyboard":
                raise KeyboardInterrupt
            return True
        return False

    whole = planners.solve(LAKE, objective=FiniteHorizon(10))
    part = planners.solve(LAKE, objective=FiniteHorizon(10), callback=stop)
    assert part.status == "interrupted"
    assert part.message.endswith(": these are the last 4 of 10 steps")
    np.testing.assert_array_equal(part.values, whole.values[-5:])
    np.testing.assert_array_equal(part.policy, whole.policy[-4:])
    assert part.num_iterations == 4


@pytest.mark.parametrize("keep", ["all", "policy", "values", "first"])
def test_a_step_counts_as_a_whole_or_not_at_all(keep: str, monkeypatch: Any) -> None:
    costs = np.where(planners.as_model(LAKE).terminal, 0.0, 1.0)
    asked = FiniteHorizon(4, 0.9, costs)
    whole = planners.solve(LAKE, objective=asked)
    listed, interrupted = _Induction.listed, set()

    def stopping_at(call: int) -> Callable[[Any, Any], Any]:
        calls = itertools.count(1)

        def stopping(self: Any, vector: Any) -> Any:
            if next(calls) == call:
                raise KeyboardInterrupt
            return listed(self, vector)

        return stopping

    for call in itertools.count(1):
        monkeypatch.setattr(_Induction, "listed", stopping_at(call))
        try:
            part = planners.solve(LAKE, objective=asked, keep=keep)
        except KeyboardInterrupt:
            continue  # before the first step, or after the last
        if part.status == "converged":
            break
        done = part.num_iterations
        interrupted.add(done)
        rows = done + 1 if keep in ("all", "values") else 1
        np.testing.assert_array_equal(part.values, whole.values[4 - done :][:rows])
        rows = done if keep in ("all", "policy") else min(done, 1)
        np.testing.assert_array_equal(part.policy, whole.policy[4 - done :][:rows])
        assert part.proof is not None
        assert whole.proof is not None
        np.testing.assert_array_equal(part.proof["errors"], whole.proof["errors"][4 - done :])
        assert part.bound == part.proof["errors"].max()
    assert interrupted == (set() if keep == "first" else {0, 1, 2, 3})


def test_the_time_limit() -> None:
    result = planners.solve(LAKE, objective=FiniteHorizon(10), time_limit=1e-9)
    assert result.status == "stopped_short"
    assert "time limit of 1e-09 s reached: these are the last 1 of 10 steps" in result.message


def test_costs_beyond_float64() -> None:
    model = planners.as_model((P, 1e300 * R))
    result = planners.solve(model, objective=FiniteHorizon(4))
    assert result.status == "stopped_short"
    assert result.bound == np.inf
    assert "beyond what float64 can hold" in result.message


@pytest.mark.parametrize("gamma", [0.0, 1e-10, 1.0])
def test_terminal_costs_beyond_float64(gamma: float) -> None:
    # Values that a discount makes small again come of numbers that are too large all the same.
    model = planners.as_model((P, R))
    result = planners.solve(model, objective=FiniteHorizon(3, gamma, [1e305, 0.0, 0.0]))
    assert result.status == "stopped_short"
    assert result.bound == np.inf


def test_threads_change_nothing() -> None:
    env = gym.make("TerrainMaze-v0", shape=(700, 700), p=0.9)
    one, two = (planners.solve(env, objective=FiniteHorizon(3), num_threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.policy, two.policy)


def test_models_of_events() -> None:
    def next_state(s: int, a: int, e: int) -> int:
        step = a if e == 0 else -a
        return min(max(s + step, 0), 6)

    model = EventMDP(7, 3, next_state, [0.8, 0.2], lambda s, a: 1.0 * s - 0.3 * a)
    asked = FiniteHorizon(12, 0.95)
    one, two = (planners.solve(m, objective=asked) for m in (model, model.to_tabular()))
    np.testing.assert_allclose(one.values, two.values, atol=one.bound + two.bound)
    assert planners.q_values(model, one).shape == (12, 7, 3)


def test_policies_of_each_step_are_evaluated() -> None:
    asked = FiniteHorizon(8, 0.97, np.where(planners.as_model(LAKE).terminal, 0.0, 0.5))
    result = planners.solve(LAKE, objective=asked)
    np.testing.assert_allclose(planners.evaluate(LAKE, result), result.values, atol=1e-14)
    np.testing.assert_allclose(
        planners.evaluate(LAKE, result.policy, objective=asked), result.values, atol=1e-14
    )
    weights = np.eye(4)[result.policy]
    np.testing.assert_allclose(
        planners.evaluate(LAKE, weights, objective=asked), result.values, atol=1e-14
    )
    uniform = planners.evaluate(LAKE, np.full((16, 4), 0.25), objective=asked)
    assert (uniform >= result.values - 1e-14).all()
    Q = planners.q_values(LAKE, result)
    assert Q.shape == (8, 16, 4)
    np.testing.assert_allclose(Q.min(axis=2), result.values[:-1], atol=1e-14)
    with pytest.raises(ValueError, match=r"a policy for a horizon of 8 steps, gamma 0.97 must"):
        planners.evaluate(LAKE, result.policy[:3], objective=asked)
    with pytest.raises(ValueError, match="changes with the step"):
        planners.arrival(LAKE, result)


def test_what_is_promised_is_got() -> None:
    costs = np.where(planners.as_model(LAKE).terminal, 0.0, 0.25)
    result = planners.solve(LAKE, objective=FiniteHorizon(15, 0.95, costs))
    rolled = planners.rollout(LAKE, result, episodes=2000, seed=1)
    assert rolled.broken == ""
    assert rolled.lengths.max() == 15
    assert rolled.promised == pytest.approx(-result.values[0, 0])
    error = 4 * rolled.discounted_returns.std() / np.sqrt(2000)
    assert rolled.discounted_returns.mean() == pytest.approx(rolled.promised, abs=error)


def test_policies_of_observations_pay_what_ending_costs() -> None:
    # Along the upper edge for ever.
    costs = np.where(planners.as_model(LAKE).terminal, 0.0, 1.0)
    asked = FiniteHorizon(6, 0.5, costs)
    for policy in (lambda observation: 3, np.full(16, 3)):
        rolled = planners.rollout(LAKE, policy, episodes=4, objective=asked)
        assert rolled.discounted_returns is not None
        assert rolled.discounted_returns.tolist() == [-(0.5**6)] * 4
        assert rolled.returns.tolist() == [0.0] * 4


def test_saved_and_loaded(tmp_path: Any) -> None:
    costs = np.where(planners.as_model(LAKE).terminal, 0.0, 0.25)
    result = planners.solve(LAKE, objective=FiniteHorizon(5, 0.95, costs))
    result.save(tmp_path / "result.npz")
    loaded = planners.SolveResult.load(tmp_path / "result.npz")
    np.testing.assert_array_equal(loaded.values, result.values)
    np.testing.assert_array_equal(loaded.policy, result.policy)
    assert isinstance(loaded.objective, FiniteHorizon)
    assert (loaded.objective.steps, loaded.objective.gamma) == (5, 0.95)
    np.testing.assert_array_equal(loaded.objective.terminal_costs, costs)
    np.testing.assert_array_equal(planners.evaluate(LAKE, loaded), planners.evaluate(LAKE, result))


def test_the_model_of_a_step() -> None:
    model = planners.as_model((P, R))
    stages = Stages(model, FiniteHorizon(3))
    assert stages.model(2) is model
    assert stages.engine(0) is stages.engine(1)
