"""Tabular Q-learning, and what the scripts of scripts/rl work out, as far as it needs no torch."""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
import planners

RL = Path(__file__).resolve().parent.parent / "scripts" / "rl"


def load(name: str) -> ModuleType:
    # The scripts import each other by their plain names, as scripts in one folder do.
    sys.path.insert(0, str(RL))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(RL))


PROBLEM, RUNS, Q_LEARNING, TRAIN = map(load, ("_problem", "_runs", "q_learning", "train"))

ENV_IDS = ("StandardMaze-v0", "TerrainMaze-v0")


def values_by_hand(problem: Any, policy: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Solve V = c + gamma P V by numpy, rows straight from the table P of the environment."""
    P = problem.make().unwrapped.P
    num_states = len(policy)
    matrix, costs = np.zeros((num_states, num_states)), np.zeros(num_states)
    for state, action in enumerate(policy.tolist()):
        for probability, following, reward, terminated in P[state][action]:
            costs[state] -= probability * reward
            matrix[state, following] += 0.0 if terminated else probability
    return np.linalg.solve(np.eye(num_states) - problem.gamma * matrix, costs)


# ---------------------------------------------------------------------------------------------
# Q-learning.


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_q_learning_finds_the_values_of_a_maze_without_chance(env_id: str) -> None:
    env = gym.make(env_id, shape=(4, 4), start="uniform")
    Q = Q_LEARNING.q_learning(env, gamma=0.9, num_steps=20_000, seed=0, epsilon=0.3)
    model = planners.as_model(env)
    expected = -planners.q_values(env, planners.solve(env, gamma=0.9).values, 0.9)
    before_the_end = ~model.terminal
    np.testing.assert_allclose(Q[before_the_end], expected[before_the_end], rtol=0, atol=0.02)
    np.testing.assert_array_equal(Q[model.terminal], 0.0)


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_q_learning_comes_close_where_moves_slip(env_id: str) -> None:
    problem = PROBLEM.Problem(env_id, 5)
    judge = PROBLEM.Judge(problem)
    Q = Q_LEARNING.q_learning(problem.make("uniform"), gamma=0.98, num_steps=25_000, seed=1)
    assert judge.regret(Q.argmax(axis=1)).start < 0.05 * judge.optimum[judge.start]


def test_q_learning_repeats_itself_and_shows_what_it_has() -> None:
    env, seen = gym.make("StandardMaze-v0", shape=(3, 3), p=0.8), []
    options = {"gamma": 0.9, "num_steps": 300, "seed": 5}
    Q = Q_LEARNING.q_learning(env, **options, watch=lambda step, Q: seen.append((step, Q.copy())))
    assert [step for step, _ in seen] == list(range(301))
    np.testing.assert_array_equal(seen[0][1], 0.0)
    np.testing.assert_array_equal(seen[-1][1], Q)
    np.testing.assert_array_equal(Q, Q_LEARNING.q_learning(env, **options))
    assert (Q_LEARNING.q_learning(env, **options | {"seed": 6}) != Q).any()


def test_q_learning_looks_beyond_where_an_episode_is_cut_short() -> None:
    # Two steps an episode: the goal is 4 away, and only bootstrapping tells so.
    env = gym.make("NDMaze-v0", shape=(5,), start="uniform", max_episode_steps=2)
    Q = Q_LEARNING.q_learning(env, gamma=0.9, num_steps=5_000, seed=0)
    expected = -planners.solve(env, gamma=0.9).values
    np.testing.assert_allclose(Q.max(axis=1), expected, rtol=0, atol=0.01)


# ---------------------------------------------------------------------------------------------
# Regret.


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_regret_is_what_a_policy_costs_more_than_the_best(env_id: str) -> None:
    problem = PROBLEM.Problem(env_id, 4)
    judge = PROBLEM.Judge(problem)
    best = planners.solve(problem.make(), gamma=problem.gamma, tol=1e-10)
    assert judge.regret(best.policy).start == pytest.approx(0.0, abs=1e-9)
    assert judge.regret(best.policy).mean == pytest.approx(0.0, abs=1e-9)
    rng = np.random.default_rng(0)
    num_bumps = 0
    for _ in range(10):
        policy = rng.integers(4, size=16)
        loss = values_by_hand(problem, policy) - values_by_hand(problem, best.policy)
        regret = judge.regret(policy)
        # Some of the actions are unavailable; they are paid for, not refused.
        num_bumps += int((~judge.action_mask[np.arange(16), policy]).sum())
        assert regret.start == pytest.approx(loss[15], rel=1e-9, abs=1e-9)
        assert regret.mean == pytest.approx(loss[1:].mean(), rel=1e-9, abs=1e-9)
    assert num_bumps > 0


def test_regret_refuses_what_is_no_policy() -> None:
    judge = PROBLEM.Judge(PROBLEM.Problem("StandardMaze-v0", 3))
    with pytest.raises(ValueError, match=r"policy\[2\] = 4 is not an action in \[0, 4\)"):
        judge.regret(np.array([0, 0, 4, 0, 0, 0, 0, 0, 0]))


def test_a_watcher_finds_since_when_a_policy_is_optimal() -> None:
    problem = PROBLEM.Problem("StandardMaze-v0", 4)
    judge = PROBLEM.Judge(problem)
    best = planners.solve(problem.make(), gamma=problem.gamma).policy
    bumps = np.where(judge.action_mask, 0, 1).argmax(axis=1)
    watcher = RUNS.Watcher(PROBLEM.Task("q_learning", problem, 0, 40), judge)
    for step, policy in ((0, bumps), (10, best), (20, bumps), (30, best), (40, best)):
        watcher(step, policy)
    run = watcher.result(num_episodes=400)
    assert (run.steps, run.close_since, run.optimal_since) == (40, 30, 30)
    assert run.optimal_seconds <= run.seconds
    assert run.cost == pytest.approx(run.optimal_cost)
    assert abs(run.episode_cost - run.cost) < 4 * run.standard_error
    assert [point.start_regret > 0.1 for point in watcher.points] == [1, 0, 1, 0, 0]

    watcher(50, bumps)
    run = watcher.result(num_episodes=2)
    assert run.close_since is run.optimal_since is run.optimal_seconds is None


# ---------------------------------------------------------------------------------------------
# The command.


def test_the_command_writes_curves_and_runs_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "folder"
    command = "train.py --algorithms q_learning --sides 3 4 --seeds 0 7 --steps 2500 --out"
    monkeypatch.setattr(sys, "argv", [*command.split(), str(out)])
    assert TRAIN.main() == 0
    assert sorted(path.name for path in out.iterdir()) == ["curves.csv", "regret.png", "runs.csv"]
    assert (out / "regret.png").read_bytes().startswith(b"\x89PNG")
    with (out / "curves.csv").open() as file:
        points = list(csv.DictReader(file))
    with (out / "runs.csv").open() as file:
        runs = list(csv.DictReader(file))
    assert len(runs) == 2 * 2 * 2
    assert {row["observation"] for row in points + runs} == {"state"}
    steps = [int(point["step"]) for point in points]
    # Multiples of 16 steps, and the last.
    assert steps == [*range(0, 2500, 96), 2500] * len(runs)
    last = {(p["env_id"], p["side"], p["seed"]): p for p in points if p["step"] == "2500"}
    for run in runs:
        point = last[run["env_id"], run["side"], run["seed"]]
        assert run["start_regret"] == point["start_regret"]
        assert float(run["optimal_cost"]) > 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 4
    assert all(line.count("|") == lines[0].count("|") for line in lines)


@pytest.mark.parametrize("steps", ["0", "-5"])
def test_the_command_refuses_no_steps(
    steps: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    monkeypatch.setattr(sys, "argv", ["train.py", "--steps", steps, "--out", str(out)])
    with pytest.raises(SystemExit):
        TRAIN.main()
    assert f"--steps must be at least 1, got {steps}" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("option", ["--observation coordinates", "--library-settings"])
def test_a_table_learns_from_states_only(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    command = f"train.py --algorithms ppo q_learning {option} --out {out}"
    monkeypatch.setattr(sys, "argv", command.split())
    monkeypatch.setattr(TRAIN, "find_spec", lambda name: object())
    with pytest.raises(SystemExit):
        TRAIN.main()
    assert "q_learning keeps a table of states" in capsys.readouterr().err
    assert not out.exists()


def test_the_table_names_the_observation() -> None:
    problem = PROBLEM.Problem("StandardMaze-v0", 3)
    judge = PROBLEM.Judge(problem)
    task = PROBLEM.Task("ppo", problem, 0, 0, observation="local_view")
    watcher = RUNS.Watcher(task, judge)
    watcher(0, planners.solve(problem.make(), gamma=problem.gamma).policy)
    lines = TRAIN.table([watcher.result(num_episodes=2)]).splitlines()
    head, row = ([cell.strip() for cell in line.split("|")] for line in (lines[0], lines[2]))
    assert row[head.index("observation")] == "local_view"
    assert row[head.index("agent")] == "ppo"


def test_the_command_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(TRAIN, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["train.py", "--out", str(tmp_path / "results")])
    with pytest.raises(SystemExit):
        TRAIN.main()
    assert "without Stable-Baselines3, as docs/rl.md installs it" in capsys.readouterr().err


def test_a_spread_is_a_median_and_a_range() -> None:
    assert TRAIN.spread([3.0, 1.0, 2.0], ".1f") == "2.0 (1.0 to 3.0)"
    assert TRAIN.spread([2.0, 2.0], ".1f") == "2.0"
    assert TRAIN.spread([1000, None, 3000], ",.0f") == "3,000 (1,000 to never)"
    assert TRAIN.spread([None, None], ".1f") == "never"


def test_a_regret_of_rounding_reads_as_none() -> None:
    assert [format(TRAIN.rounded(regret), ".2g") for regret in (-1e-14, 2e-16, 0.0123)] == [
        "0",
        "0",
        "0.012",
    ]


def test_every_environment_of_the_command_is_registered() -> None:
    assert set(TRAIN.ENV_IDS) <= set(aggmaze.ENV_IDS)
