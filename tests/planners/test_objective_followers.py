"""What follows an objective beside the solve: values, episodes, pictures, the command."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
import planners
from aggmaze import TabularMDP
from planners import AverageCost, FiniteHorizon, TotalCost, cli
from planners.advice import adviser
from planners.plotting import plot_plan

LAKE = gym.make("FrozenLake-v1")
MAZE = gym.make("StandardMaze-v0", shape=(6, 6), p=0.9)


def two_rooms() -> TabularMDP:
    """Two places with means 1 and 3, a door from the first, a toss between both, a dear way."""
    P = np.zeros((5, 2, 5))
    P[0, :, 1] = P[1, 0, 0] = P[2, :, 3] = P[3, :, 2] = 1
    P[1, 1, 2] = 1
    P[4, 0, [0, 2]] = 0.5
    P[4, 1, 2] = 1
    costs = np.array([[0, 0], [2, 5], [3, 3], [3, 4], [9, -9]])
    return TabularMDP.from_matrices(P, costs=costs, terminal=[])


def ring() -> TabularMDP:
    """Three states in turn, at 1, 2 and 6, whose last may be skipped for 4."""
    P = np.zeros((3, 2, 3))
    P[0, :, 1] = P[1, 0, 2] = P[1, 1, 0] = P[2, :, 0] = 1
    return TabularMDP.from_matrices(P, costs=np.array([[1, 1], [2, 4], [6, 6]]), terminal=[])


# ---------------------------------------------------------------------------------------------
# Values of policies.


def test_a_result_brings_its_objective() -> None:
    for model, asked in (
        (LAKE, TotalCost()),
        (LAKE, planners.Discounted(0.9)),
        (ring(), AverageCost()),
        (LAKE, FiniteHorizon(4)),
    ):
        result = planners.solve(model, objective=asked)
        found = planners.evaluate(model, result)
        np.testing.assert_allclose(found, result.values, atol=1e-5)
        np.testing.assert_array_equal(found, planners.evaluate(model, result, objective=asked))


def test_policies_that_may_never_end_cost_without_limit() -> None:
    up = np.full(16, 3)  # along the upper edge for ever
    values = planners.evaluate(LAKE, up, gamma=1)
    assert np.isposinf(values[:4]).all()
    assert values[5] == 0
    assert planners.evaluate(LAKE, np.full((16, 4), 0.25), gamma=1)[0] == pytest.approx(
        -0.01393979624, abs=1e-10
    )


def test_dead_ends_that_cost_something() -> None:
    P = np.zeros((3, 1, 3))
    P[0, 0, 0] = P[2, 0, 2] = 1
    P[1, 0, [0, 2]] = [0.75, 0.25]
    model = TabularMDP.from_matrices(
        P, costs=np.array([[0], [1], [1]]), terminal=[True, False, False]
    )
    asked = TotalCost(dead_ends=8)
    result = planners.solve(model, objective=asked)
    np.testing.assert_allclose(result.values, [0, 3, 8])
    np.testing.assert_allclose(planners.evaluate(model, result), [0, 3, 8])
    np.testing.assert_allclose(planners.q_values(model, result), [[0], [3], [8]])
    assert np.isposinf(planners.evaluate(model, result.policy, gamma=1)).tolist() == [
        False,
        True,
        True,
    ]
    for call in (planners.with_regret, planners.with_shaping):
        with pytest.raises(ValueError, match="leave dead_ends out"):
            call(MAZE, objective=asked)


def test_gains_of_policies() -> None:
    model = two_rooms()
    result = planners.solve(model, objective=AverageCost())
    np.testing.assert_allclose(result.gain, [1, 1, 3, 3, 2], atol=1e-9)
    leaves = np.array([0, 1, 0, 0, 1])
    np.testing.assert_allclose(
        planners.evaluate(model, leaves, objective=AverageCost()), [3, 3, 3, 3, 3], atol=1e-12
    )
    tosses = np.full((5, 2), 0.5)
    assert planners.evaluate(model, tosses, objective=AverageCost())[0] == pytest.approx(3.25)


# ---------------------------------------------------------------------------------------------
# Values of actions.


def test_total_values_of_actions() -> None:
    result = planners.solve(MAZE, gamma=1)
    Q = planners.q_values(MAZE, result)
    np.testing.assert_allclose(Q.min(axis=1), result.values, atol=1e-9)
    np.testing.assert_array_equal(Q, planners.q_values(MAZE, result.values, 1))


def test_what_may_lead_to_infinite_costs_is_infinite() -> None:
    P = np.zeros((3, 2, 3))
    P[0, :, 0] = P[2, :, 2] = P[1, 0, 0] = 1
    P[1, 1, [0, 2]] = [1 - 1e-9, 1e-9]
    model = TabularMDP.from_matrices(
        P, costs=np.array([[0, 0], [5, 1], [1, 1]]), terminal=[True, False, False]
    )
    result = planners.solve(model, gamma=1)
    assert result.values.tolist() == [0, 5, np.inf]
    assert result.infinite.tolist() == [False, False, True]
    assert planners.q_values(model, result).tolist() == [[0, 0], [5, np.inf], [np.inf, np.inf]]
    with pytest.raises(ValueError, match=r"V\[2\] = inf must be finite"):
        planners.q_values(model, result.values, 0.9)


def test_average_values_of_actions() -> None:
    result = planners.solve(ring(), objective=AverageCost())
    np.testing.assert_allclose(result.gain, 2.5, atol=1e-9)
    Q = planners.q_values(ring(), result)
    np.testing.assert_allclose(Q.min(axis=1), result.bias, atol=1e-5)
    assert Q[1, 0] == pytest.approx(Q[1, 1] + 1.5, abs=1e-5)
    with pytest.raises(ValueError, match="give the SolveResult"):
        planners.q_values(ring(), result.bias, objective=AverageCost())
    many = planners.solve(two_rooms(), objective=AverageCost())
    with pytest.raises(ValueError, match="the gain differs from state to state"):
        planners.q_values(two_rooms(), many)


def test_only_an_average_has_a_gain() -> None:
    with pytest.raises(AttributeError, match="a result of total cost has no gain"):
        _ = planners.solve(LAKE, gamma=1).gain


# ---------------------------------------------------------------------------------------------
# Episodes.


@pytest.mark.parametrize("env", [LAKE, MAZE], ids=["lake", "maze"])
def test_total_costs_are_got(env: Any) -> None:
    result = planners.solve(env, objective=TotalCost())
    # Without the environment's own limit of steps, which cuts some episodes off.
    rolled = planners.rollout(env.unwrapped, result, episodes=2000, seed=3, max_steps=100_000)
    assert rolled.broken == ""
    model = planners.as_model(env)
    start = model.initial[: len(result.values)] @ planners.evaluate(env, result)
    assert rolled.promised == pytest.approx(-start)
    assert rolled.discounted_returns is not None
    np.testing.assert_array_equal(rolled.returns, rolled.discounted_returns)
    assert rolled.returns.mean() == pytest.approx(
        rolled.promised, abs=5 * rolled.returns.std() / np.sqrt(2000)
    )


def test_nothing_is_promised_where_an_episode_may_never_end() -> None:
    rolled = planners.rollout(LAKE, np.full(16, 3), gamma=1, episodes=5, max_steps=20)
    assert rolled.promised == -np.inf
    assert rolled.broken == ""


def test_the_mean_reward_of_a_step_is_got() -> None:
    for model in (ring(), two_rooms()):
        result = planners.solve(model, objective=AverageCost())
        rolled = planners.rollout(model, result, episodes=300, seed=1, max_steps=400)
        assert rolled.broken == ""
        assert rolled.promised == pytest.approx(-result.gain.mean())
        assert rolled.mean_rewards.mean() == pytest.approx(rolled.promised, abs=0.3)


def test_a_broken_promise_is_noticed() -> None:
    env = aggmaze.TabularEnv(ring())
    for asked in (AverageCost(), FiniteHorizon(9)):
        result = planners.solve(ring(), objective=asked)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rolled = planners.rollout(_Lying(env), result, episodes=30, max_steps=30)
        assert "less an episode than expected" in rolled.broken


class _Lying(aggmaze.TabularEnv):
    """Pays less than its model says."""

    def __init__(self, env: aggmaze.TabularEnv) -> None:
        super().__init__(env.transition_model())

    def step(self, action: Any) -> Any:
        observation, reward, *rest = super().step(action)
        return observation, float(reward) - 0.5, *rest


# ---------------------------------------------------------------------------------------------
# Agents and players.


def test_regrets_of_total_costs() -> None:
    env = planners.with_regret(MAZE, 1)
    result = planners.solve(MAZE, gamma=1)
    env.reset(seed=0)
    over, total = False, 0.0
    rng = np.random.default_rng(0)
    while not over:
        action = int(rng.integers(4))
        _, _, terminated, truncated, info = env.step(action)
        total += info["regret"]
        over = terminated or truncated
    assert total > 0
    assert info["episode_regret"]["discounted"] == pytest.approx(info["episode_regret"]["sum"])
    env = planners.with_regret(MAZE, objective=TotalCost())
    _, info = env.reset(seed=0)
    best = result.policy[info["state"]]
    assert env.step(int(best))[4]["regret"] == pytest.approx(0, abs=1e-6)


def test_shaping_by_total_costs() -> None:
    shaped = planners.with_shaping(MAZE, gamma=1)
    plain = planners.solve(MAZE, gamma=1)
    again = planners.solve(shaped, gamma=1)
    # Every best policy costs nothing more than what the potential says.
    np.testing.assert_allclose(again.values, 0, atol=1e-4 * np.abs(plain.values).max())


@pytest.mark.parametrize("asked", [AverageCost(), FiniteHorizon(3)], ids=str)
def test_what_needs_costs_to_go_says_so(asked: Any) -> None:
    for call in (planners.with_regret, planners.with_shaping):
        with pytest.raises(ValueError, match=f"and {type(asked).__name__} has none"):
            call(MAZE, objective=asked)
    with pytest.raises(ValueError, match="advice needs costs-to-go"):
        adviser(objective=asked)
    with pytest.raises(ValueError, match="normalized scales costs-to-go"):
        planners.normalized(MAZE, objective=asked)


def test_states_without_a_way_have_no_regret() -> None:
    P = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 0.0, False)]}}
    P[2] = {0: [(0.5, 0, 0.0, False), (0.5, 2, 1.0, True)]}
    env = aggmaze.TabularEnv(planners.as_model(P))
    with pytest.raises(ValueError, match="a regret needs finite costs-to-go, and from state 0"):
        planners.with_regret(env, 1)


def test_total_costs_are_scaled() -> None:
    model, scale = planners.normalized(MAZE, 1)
    assert np.abs(planners.solve(model, gamma=1).values).max() == pytest.approx(100)
    assert scale > 0


def test_advice_on_total_costs() -> None:
    advice = adviser(1)(planners.as_model(MAZE))
    assert advice.gamma == 1
    assert advice.policy.shape == (36,)


# ---------------------------------------------------------------------------------------------
# Pictures and files.


def test_pictures_show_what_is_infinite() -> None:
    layout = MAZE.unwrapped.layout
    values = planners.solve(MAZE, gamma=1).values
    values[7] = np.inf
    figure = plot_plan(layout, values).figure
    image = figure.axes[0].images[0]
    assert image.norm.vmax == values[np.isfinite(values)].max()
    shown = image.get_array()
    assert (shown > image.norm.vmax).sum() == 1
    assert not np.ma.getmaskarray(shown).any()
    assert any("without limit" in axis.get_ylabel() for axis in figure.axes)
    with pytest.raises(ValueError, match=r"of a finite horizon draw one step, values\[t\]"):
        plot_plan(layout, np.zeros((3, 36)))


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        (LAKE, TotalCost()),
        (LAKE, TotalCost(dead_ends=2.5)),
        (two_rooms(), AverageCost()),
        (LAKE, FiniteHorizon(3, 0.5)),
    ],
    ids=str,
)
def test_results_are_saved_and_loaded(model: Any, asked: Any, tmp_path: Path) -> None:
    result = planners.solve(model, objective=asked)
    result.save(tmp_path / "result.npz")
    loaded = planners.SolveResult.load(tmp_path / "result.npz")
    for name in ("values", "policy", "lower", "upper"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(result, name))
    assert str(loaded.objective) == str(asked)
    if isinstance(asked, AverageCost):
        np.testing.assert_array_equal(loaded.bias, result.bias)
    if isinstance(asked, TotalCost):
        assert loaded.objective == asked
    for one in (result, loaded):
        one.certificate(tmp_path / f"{one is loaded}.npz")
    assert (tmp_path / "True.npz").read_bytes() == (tmp_path / "False.npz").read_bytes()


# ---------------------------------------------------------------------------------------------
# The command.


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["aggmaze", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gamma", 1], ["FrozenLake-v1, total cost", "-0.823529 from the start"]),
        (["--objective", "total"], ["total cost", "promised", "reaches a terminal state"]),
        (["--objective", "total", "--dead-ends", 5], ["total cost, dead ends at 5"]),
        (["--horizon", 20], ["a horizon of 20 steps", "-0.199133 from the start", "most 20 steps"]),
        (["--objective", "horizon", "--horizon", 5, "--gamma", 0.9], ["5 steps, gamma 0.9"]),
        (["--average"], ["average cost", "0 a step, from every state"]),
        (["--objective", "average"], ["average cost", "0 a step, observed in 100 episodes"]),
    ],
)
def test_objectives_of_the_command(
    arguments: list[Any], words: list[str], monkeypatch: Any, capsys: Any, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    code = run(monkeypatch, "solve", "FrozenLake-v1", *arguments, "--certificate", "proof.npz")
    printed = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert code == 0, printed
    for text in words:
        assert text in printed, printed
    assert Path("proof.npz").is_file()
    assert "certificate in proof.npz" in printed


def test_the_command_draws_the_first_step(monkeypatch: Any, capsys: Any, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["StandardMaze-v0", "--set", "shape=5,5"]
    for asked in (["--horizon", 4], ["--objective", "total"], ["--average"]):
        assert run(monkeypatch, "solve", *small, *asked, "--image", "plan.png") == 0
        Path("plan.png").unlink()


def test_the_command_counts_what_is_infinite(monkeypatch: Any, capsys: Any, tmp_path: Path) -> None:
    P = np.zeros((3, 1, 3))
    P[0, 0, 0] = P[1, 0, 0] = P[2, 0, 2] = 1
    model = TabularMDP.from_matrices(
        P, costs=np.array([[0], [1], [1]]), terminal=[True, False, False], initial=[0, 1, 0]
    )
    aggmaze.save_model(model, tmp_path / "model.npz")
    assert run(monkeypatch, "solve", tmp_path / "model.npz", "--objective", "total") == 0
    printed = capsys.readouterr().out
    assert "1 states, from which no policy surely reaches an end" in printed
