"""The command: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import planners
from planners import cli


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["aggmaze", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_solve_prints_the_table_and_writes_what_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    saved, image = tmp_path / "policy.npz", tmp_path / "plan.png"
    arguments = ["solve", "TerrainMaze-v0", "--set", "shape=12,9", "--set", "p=0.9"]
    arguments += ["--gamma", "0.95", "--save", saved, "--image", image, "--episodes", "20"]
    assert run(monkeypatch, *arguments) == 0
    printed = capsys.readouterr().out
    env = gym.make("TerrainMaze-v0", shape=(12, 9), p=0.9)
    expected = planners.solve(env, gamma=0.95)
    loaded = planners.SolveResult.load(saved)
    np.testing.assert_array_equal(loaded.values, expected.values)
    np.testing.assert_array_equal(loaded.policy, expected.policy)
    for text in (
        "value_iteration: converged",
        "108 with 4 actions",
        f"{expected.num_updates:,} in {expected.num_iterations:,} iterations",
        f"<= {expected.bound:.3g}",
        f"{planners.rollout(env, expected, episodes=20, seed=0).promised:.6g} promised",
        "100 % of the starts and 100 % of the states",
        str(saved),
        str(image),
    ):
        assert text in printed
    with Image.open(image) as picture:
        assert picture.format == "PNG"
        assert min(picture.size) > 300
    assert sorted(tmp_path.iterdir()) == [image, saved]


def test_options_of_the_method_reach_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    saved = tmp_path / "result.npz"
    arguments = ["solve", "StandardMaze-v0", "--gamma", 0.9, "--method", "adaptive_aggregation"]
    arguments += ["--epsilon", 0.2, "--num-global", 1, "--num-aggregated", 3, "--step-size", "t^-1"]
    arguments += ["--step-index", "phase", "--first-step", 2, "--num-iterations", 40, "--seed", 3]
    assert run(monkeypatch, *arguments, "--save", saved, "--episodes", 0) == 0
    expected = planners.solve(
        gym.make("StandardMaze-v0"),
        gamma=0.9,
        method="adaptive_aggregation",
        epsilon=0.2,
        num_global=1,
        num_aggregated=3,
        step_size="t^-1",
        step_index="phase",
        first_step=2,
        num_iterations=40,
        seed=3,
    )
    np.testing.assert_array_equal(planners.SolveResult.load(saved).values, expected.values)
    assert "return" not in capsys.readouterr().out


def test_a_policy_that_settles_elsewhere_is_reported_with_advice_on_gamma(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["solve", "TerrainMaze-v0", "--set", "shape=100,100", "--episodes", 1]
    assert run(monkeypatch, *arguments, "--gamma", 0.95) == 0
    printed = capsys.readouterr().out
    assert "reaches a terminal state from 0 % of the starts" in printed
    assert "settles in" in printed
    assert "try gamma 0.99495 (1 - 1/198, the farthest distance)" in printed
    assert run(monkeypatch, *arguments, "--gamma", 0.99495) == 0
    printed = capsys.readouterr().out
    assert "100 % of the starts and 100 % of the states" in printed
    assert "try gamma" not in printed


def test_stopping_short_of_a_tolerance_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["solve", "TerrainMaze-v0", "--gamma", 0.99, "--num-iterations", 5]
    assert run(monkeypatch, *arguments, "--tol", 1e-6) == 1
    assert "stopped_short" in capsys.readouterr().out
    # Five iterations and nothing else is a budget, and met.
    assert run(monkeypatch, *arguments) == 0
    assert "completed" in capsys.readouterr().out


def test_ctrl_c_ends_with_130_and_the_best_so_far(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupt(line: object, progress: planners.Progress) -> None:
        if progress.iteration == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(cli._ProgressLine, "show", interrupt)
    saved = tmp_path / "so_far.npz"
    arguments = ["solve", "StandardMaze-v0", "--set", "p=0.9", "--gamma", 0.99, "--save", saved]
    assert run(monkeypatch, *arguments) == 130
    assert "interrupted" in capsys.readouterr().out
    loaded = planners.SolveResult.load(saved)
    exact = planners.solve(gym.make("StandardMaze-v0", p=0.9), gamma=0.99, tol=1e-10)
    assert loaded.num_iterations == 7
    error = np.abs(loaded.values - exact.values).max()
    assert 0.1 < error <= loaded.bound + exact.bound


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["NoSuchMaze-v0", "--gamma", 0.9], ["NoSuchMaze", "aggmaze list"]),
        (["CartPole-v1", "--gamma", 0.9], ["CartPole-v1", "no transition model"]),
        (["TerrainMaze-v0", "--gamma", 1], ["gamma must be in [0, 1), got 1"]),
        (["TerrainMaze-v0", "--gamma", -0.1], ["gamma must be in [0, 1), got -0.1"]),
        (["TerrainMaze-v0", "--gamma", "much"], ["--gamma", "valid number"]),
        (["TerrainMaze-v0"], ["--gamma"]),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--method", "value_iterations"],
            ["did you mean 'value_iteration'?"],
        ),
        (["TerrainMaze-v0", "--gamma", 0.9, "--epsilon", 1], ["value_iteration", "'epsilon'"]),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--method", "adaptive_aggregation", "--epsilon", 0],
            ["epsilon must be positive and finite, got 0.0"],
        ),
        (["TerrainMaze-v0", "--gamma", 0.9, "--set", "shape"], ["KEY=VALUE", "'shape'"]),
        (["TerrainMaze-v0", "--gamma", 0.9, "--set", "size=3"], ["no 'size'", "shape", "terrain"]),
        (["TerrainMaze-v0", "--gamma", 0.9, "--set", "shape=0,5"], ["got 0 on axis 0"]),
        (["TerrainMaze-v0", "--gamma", 0.9, "--set", "p=0"], ["p must be in (0, 1], got 0"]),
        (["TerrainMaze-v0", "--gamma", 0.9, "--save", "/no/such/x.npz"], ["/no/such"]),
        (["TerrainMaze-v0", "--gamma", 0.9, "--image", "x.bmp"], ["x.bmp", ".png"]),
        (["FrozenLake-v1", "--gamma", 0.9, "--image", "x.png"], ["no layout"]),
        (["TerrainMaze-v0", "--gamma", 0.9, "--episodes", -1], ["--episodes"]),
    ],
)
def test_bad_use_ends_with_2_and_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[object],
    messages: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "solve", *arguments) == 2
    captured = capsys.readouterr()
    for message in messages:
        assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_gymnasium_environments_are_solved_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--gamma", 0.99, "--set", "is_slippery=False", "--episodes", 1]
    assert run(monkeypatch, "solve", "FrozenLake-v1", *arguments) == 0
    # Six moves to the goal, the last of which pays 1.
    assert f"{0.99**5:.6g} promised" in capsys.readouterr().out


def test_list_names_every_environment_with_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "list") == 0
    printed = capsys.readouterr().out
    for env_id in ("StandardMaze-v0", "TerrainMaze-v0", "NDMaze-v0", "FrozenLake-v1", "Taxi-v"):
        assert env_id in printed
    assert "Blackjack" not in printed
    assert "CartPole" not in printed


def test_long_ways_get_longer_episodes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["--set", "shape=60,60", "--set", "generator=depth_first", "--episodes", 1]
    assert run(monkeypatch, "solve", "StandardMaze-v0", *settings, "--gamma", 0.999) == 0
    printed = capsys.readouterr().out
    assert "100 % of the episodes terminated" in printed
    steps = float(printed.split(" steps, 100 %")[0].split()[-1])
    assert f"at most {math.ceil(4 * steps):,} steps" in printed


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("shape=50,50", ("shape", (50, 50))),
        ("shape=[3]", ("shape", [3])),
        ("p=.5", ("p", 0.5)),
        ("generator=depth_first", ("generator", "depth_first")),
        ("is_slippery=false", ("is_slippery", False)),
        ("smoothness=None", ("smoothness", None)),
    ],
)
def test_settings_are_literals_or_text(setting: str, expected: tuple[str, object]) -> None:
    assert cli.parse_setting(setting) == expected


def test_the_command_is_installed_and_is_a_module() -> None:
    for command in (
        [str(Path(sys.executable).with_name("aggmaze"))],
        [sys.executable, "-m", "planners"],
    ):
        done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
        assert "solve" in done.stdout
        assert "list" in done.stdout
