"""The command: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import ctypes
import importlib.metadata
import io
import json
import math
import os
import re
import runpy
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import aggmaze_command
import planners
from aggmaze import memory
from aggmaze.env_settings import parse_setting
from aggmaze.formats.storage import load_model, save_model
from planners import cli
from planners.cli import entry


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
        "basin_aggregation: converged",
        "an open 12 x 9 grid",
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


def test_any_option_of_a_method_can_be_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    saved = tmp_path / "result.npz"
    arguments = ["solve", "FrozenLake-v1", "--gamma", 0.9, "--method", "modified_policy_iteration"]
    arguments += ["--option", "inner_sweeps=3", "--threads", 1, "--save", saved]
    assert run(monkeypatch, *arguments) == 0
    env = gym.make("FrozenLake-v1")
    expected = planners.solve(env, gamma=0.9, method="modified_policy_iteration", inner_sweeps=3)
    found = planners.SolveResult.load(saved)
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.num_sweeps == expected.num_sweeps


def test_a_result_is_stored_where_there_is_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stored = tmp_path / "result"
    arguments = ["solve", "FrozenLake-v1", "--gamma", 0.9, "--method", "value_iteration"]
    arguments += ["--episodes", 0, "--store", stored]
    assert run(monkeypatch, *arguments) == 0
    expected = planners.solve(gym.make("FrozenLake-v1"), gamma=0.9, method="value_iteration")
    np.testing.assert_array_equal(planners.open_result(stored).values, expected.values)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear reader")
    capsys.readouterr()
    for path, words in (
        (tmp_path / "other", "holds other things, such as 'letter.txt'"),
        (tmp_path / "other" / "letter.txt", "is a file, and a folder is written"),
        (tmp_path / "none" / "result", "there is no folder"),
    ):
        assert run(monkeypatch, *arguments[:-1], path) == 2
        assert words in capsys.readouterr().err


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
    arguments += ["--method", "value_iteration"]
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

    def follow(*arguments: Any) -> None:
        raise AssertionError("whoever pressed Ctrl-C waits for nothing else")

    monkeypatch.setattr(cli.solve.ProgressLine, "show", interrupt)
    monkeypatch.setattr(cli.solve, "arrival", follow)
    saved = tmp_path / "so_far.npz"
    arguments = ["solve", "StandardMaze-v0", "--set", "p=0.9", "--gamma", 0.99, "--save", saved]
    arguments += ["--method", "value_iteration"]
    assert run(monkeypatch, *arguments) == 130
    assert "interrupted" in capsys.readouterr().out
    loaded = planners.SolveResult.load(saved)
    assert loaded.status == "interrupted"
    exact = planners.solve(gym.make("StandardMaze-v0", p=0.9), gamma=0.99, tol=1e-10)
    assert loaded.num_iterations == 7
    error = np.abs(loaded.values - exact.values).max()
    assert 0.1 < error <= loaded.bound + exact.bound


def test_ctrl_c_in_a_callback_of_a_library_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LLVM calls back through ctypes, which prints what is raised there and goes on."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    def compile_for_long(source: Any) -> None:
        ctypes.CFUNCTYPE(None)(interrupted)()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            time.sleep(0.01)

    monkeypatch.setattr(cli.opening, "as_model", compile_for_long)
    assert run(monkeypatch, "solve", "FrozenLake-v1", "--gamma", 0.9) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_the_result_is_printed_before_its_policy_is_followed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Ctrl-C in what comes after a solve leaves what is printed and written before."""

    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    arguments = ["solve", "StandardMaze-v0", "--gamma", 0.95]
    files = ["--save", "result.npz", "--image", "plan.png"]
    monkeypatch.setattr(cli.solve, "rollout", interrupt)
    assert run(monkeypatch, *arguments) == 130
    captured = capsys.readouterr()
    names = [line.split()[0] for line in captured.out.splitlines()]
    expected = ["environment", "method", "chosen", "states", "updates", "seconds", "bound"]
    assert names == [*expected, "policy"]
    assert captured.err.endswith("interrupted\n")
    monkeypatch.setattr(cli.solve, "arrival", interrupt)
    assert run(monkeypatch, *arguments, *files) == 130
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [*expected, "result", "values,"]
    assert planners.SolveResult.load("result.npz").success
    assert Path("plan.png").is_file()


def test_what_follows_a_solve_keeps_to_the_time_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["StandardMaze-v0", "--gamma", 0.95, "--method", "value_iteration"]
    assert run(monkeypatch, "solve", *arguments, "--time-limit", "1e-9") == 1
    printed = capsys.readouterr().out
    assert "1 iterations" in printed
    assert "not followed: the time limit of 1e-09 s is used up" in printed
    assert "return" not in printed


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["NoSuchMaze-v0", "--gamma", 0.9], ["NoSuchMaze", "aggmaze list"]),
        (["CartPole-v1", "--gamma", 0.9], ["CartPole-v1", "no transition model"]),
        (["TerrainMaze-v0", "--gamma", 1.5], ["gamma must be in [0, 1], got 1.5"]),
        (["TerrainMaze-v0", "--horizon", 0], ["--horizon must be at least 1, got 0"]),
        (["TerrainMaze-v0", "--horizon", 3, "--gamma", 2], ["gamma must be in [0, 1], got 2.0"]),
        (["TerrainMaze-v0", "--horizon", 3, "--average"], ["two objectives, average and horizon"]),
        (["TerrainMaze-v0", "--objective", "totl"], ["did you mean 'total'?"]),
        (["TerrainMaze-v0", "--objective", "horizon"], ["needs a number of steps: --horizon"]),
        (["TerrainMaze-v0", "--objective", "discounted"], ["needs a discount: --gamma"]),
        (["TerrainMaze-v0", "--average", "--gamma", 0.9], ["--gamma 0.9 is of discounted costs"]),
        (["TerrainMaze-v0", "--average", "--dead-ends", 3], ["--dead-ends belongs to total costs"]),
        (["TerrainMaze-v0", "--gamma", 1, "--dead-ends", "x"], ["--dead-ends must be a finite"]),
        (["TerrainMaze-v0", "--gamma", -0.1], ["gamma must be in [0, 1], got -0.1"]),
        (["TerrainMaze-v0", "--gamma", "much"], ["--gamma", "valid number"]),
        (["TerrainMaze-v0"], ["say what is asked: --gamma", "--horizon STEPS", "--average"]),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--method", "value_iterations"],
            ["did you mean 'value_iteration'?"],
        ),
        (["TerrainMaze-v0", "--gamma", 0.9, "--epsilon", 1], ["'auto'", "epsilon"]),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--method", "value_iteration", "--epsilon", 1],
            ["value_iteration", "'epsilon'"],
        ),
        (["TerrainMaze-v0", "--gamma", 0.9, "--option", "x"], ["--option inner_sweeps=10", "'x'"]),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--threads", 0],
            ["--threads must be at least 1, got 0"],
        ),
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
        (["TerrainMaze-v0", "--gamma", 0.9, "--seed", -1], ["--seed must be at least 0, got -1"]),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--save", "a.txt"],
            ["--save must end in .npz, got 'a.txt'"],
        ),
        (["TerrainMaze-v0", "--gamma", 0.9, "--save", "a"], ["--save must end in .npz, got 'a'"]),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--set", "shape=5x5"],
            ["shape must hold integers only, got '5x5'"],
        ),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--set", "shape=5"],
            ["shape must be a sequence of integers such as (20, 20), got 5"],
        ),
        (["TerrainMaze-v0", "--gamma", 0.9, "--set", "shape=5,x"], ["got '5,x'"]),
        (["TerrainMaze-v0", "--gamma", 0.9, "--set", "shape=5,1.5"], ["got (5, 1.5)"]),
        (["TerrainMaze-v0", "--gamma", 0.9, "--set", "p=much"], ["p must be", "'much'"]),
        (["TerrainMaze-v0", "--gamma", 0.9, "--set", "layout_seed=x"], ["layout_seed", "'x'"]),
        (["NDMaze-v0", "--gamma", 0.9, "--set", "kind=5"], ["kind must be one of", "5"]),
        (
            ["DiscretizedCartPole-v0", "--gamma", 0.9, "--set", "bins=x"],
            ["bins", "'x'"],
        ),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--set", "shpe=5,5"],
            ["TerrainMaze-v0 takes no 'shpe'; did you mean 'shape'?"],
        ),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--set", "terrain=smoth"],
            ["terrain must be one of", "got 'smoth'; did you mean 'smooth'?"],
        ),
        # Gymnasium's own environments say what they like of what they are given.
        (
            ["FrozenLake-v1", "--gamma", 0.9, "--set", "map_name=5x5"],
            ["FrozenLake-v1 cannot be made with map_name='5x5'"],
        ),
        (["TerrainMaze-v0", "--gamma", 0.9, "--set", "layout=maze.txt"], ["no file 'maze.txt'"]),
        (["TerrainMaze-v0", "--gamma", 0.9, "--nope"], ["no such option: --nope"]),
        (["TerrainMaze-v0", "--gamma", 0.9, "more"], ["unexpected extra argument", "more"]),
        # Two values for one option.
        (
            [
                *("TerrainMaze-v0", "--gamma", 0.9, "--method", "adaptive_aggregation"),
                *("--epsilon", ".5", "--option", "epsilon=.01"),
            ],
            ["--epsilon 0.5 and --option epsilon=0.01 are two values for one option"],
        ),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--num-global", 2, "--option", "num_global=2"],
            ["--num-global 2 and --option num_global=2 are two values for one option"],
        ),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--option", "a=1", "--option", "a=2"],
            ["--option a is given twice: as 1 and as 2"],
        ),
        (
            ["TerrainMaze-v0", "--gamma", 0.9, "--set", "p=.9", "--set", "p=.8"],
            ["--set p is given twice: as 0.9 and as 0.8"],
        ),
        (["TerrainMaze-v0", "--gamma", 0.9, "--gamma", 0.8], ["--gamma", "given 2 times"]),
        (["TerrainMaze-v0", "--gamma", 0.9, *["--seed", 1] * 3], ["--seed", "given 3 times"]),
        *[
            (
                ["TerrainMaze-v0", "--gamma", 0.9, "--option", f"{name}=1"],
                [f"--option gives options of the method, and {name!r} is of every run"],
            )
            for name in ("gamma", "seed", "tol", "num_threads", "callback", "V0")
        ],
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
    assert_is_one_line(captured.err)
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def assert_is_one_line(error: str) -> None:
    """All errors have one style, without a word of how Gymnasium calls environments."""
    assert re.fullmatch(r"error: [^\n]+\n", error)
    assert "environment creator" not in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["slove"], "did you mean 'solve'"),
        (["reproduce", "--run", "--no-run"], "given 2 times"),
        (["reproduce", "--workers", "two"], "'--workers'"),
        (["play", "StandardMaze-v0", "--gamma", "0.9", "--seed", "-1"], "--seed must be at least"),
        (
            ["play", "StandardMaze-v0", "--gamma", "0.9", "--set", "render_mode=ansi"],
            "--set render_mode='ansi': here render_mode is always 'human'",
        ),
        (["convert", "FrozenLake-v1"], "missing argument"),
    ],
)
def test_bad_use_of_other_commands(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    assert run(monkeypatch, *arguments) == 2
    captured = capsys.readouterr()
    assert message.lower() in captured.err.lower()
    assert_is_one_line(captured.err)
    assert captured.out == ""


def test_no_command_shows_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch) == 2
    captured = capsys.readouterr()
    assert "reproduce" in captured.out
    assert captured.err == ""


@pytest.mark.parametrize("command", [[], ["solve"], ["play"], ["reproduce"], ["list"]])
def test_flags_take_no_value_in_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert run(monkeypatch, *command, "--help") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "--help" in line]
    assert " ".join(line.strip("│ ").split()) == "--help Show this message and exit."


def test_the_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"aggmaze {importlib.metadata.version('aggmaze')}\n"


def test_warnings_have_the_style_of_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def warn(source: Any) -> Any:
        warnings.warn("beware of [this]", stacklevel=2)
        return as_model(source)

    as_model = planners.as_model
    monkeypatch.setattr(cli.opening, "as_model", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        arguments = ["FrozenLake-v1", "--gamma", 0.9, "--episodes", 1]
        assert run(monkeypatch, "solve", *arguments) == 0
    assert "warning: beware of [this]\n" in capsys.readouterr().err


def test_a_maze_in_a_text_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("maze.txt").write_text("#######\n#S...G#\n#######\n")
    arguments = ["--set", "layout=maze.txt", "--gamma", 0.5, "--episodes", 1]
    assert run(monkeypatch, "solve", "StandardMaze-v0", *arguments) == 0
    # Four moves, the last of which pays 1: -1 - 1/2 - 1/4 + 1/8.
    assert "-1.625 promised" in capsys.readouterr().out
    Path("maze.txt").write_bytes(b"\xff\xfe#\x00")
    assert run(monkeypatch, "solve", "StandardMaze-v0", *arguments) == 2
    assert "'maze.txt' is not a maze as text: 'utf-8' codec" in capsys.readouterr().err
    # Under any name, and as Windows writes it.
    Path("maze").write_bytes("\ufeff#######\r\n#S...G#\r\n#######\r\n".encode())
    arguments[1] = "layout=maze"
    assert run(monkeypatch, "solve", "StandardMaze-v0", *arguments) == 0
    assert "-1.625 promised" in capsys.readouterr().out
    Path("mazes").mkdir()
    arguments[1] = "layout=mazes"
    assert run(monkeypatch, "solve", "StandardMaze-v0", *arguments) == 2
    assert "'mazes' is a directory, not a maze as text" in capsys.readouterr().err


def test_solve_takes_what_other_programs_write(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with Path("lake.json").open("w") as file:
        json.dump(gym.make("FrozenLake-v1", is_slippery=False).unwrapped.P, file)  # type: ignore[attr-defined]
    assert run(monkeypatch, "solve", "lake.json", "--gamma", 0.5, "--episodes", 0) == 0
    # The goal pays 1 at the end of the move into it: next to it that is worth 1.
    assert "max|V| = 1)" in capsys.readouterr().out
    # Staying pays 1 a step, which is worth 1 / (1 - gamma).
    stay_or_go = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    rewards = [[1.0, 3.0], [0.0, 0.0]]
    np.savez("matrices.npz", P=stay_or_go, R=rewards, order="ass", initial=[1.0, 0.0])
    assert run(monkeypatch, "solve", "matrices.npz", "--gamma", 0.9, "--episodes", 0) == 0
    assert "max|V| = 10)" in capsys.readouterr().out
    np.savez("other.npz", A=stay_or_go)
    Path("other.json").write_text('{"states": 3}')
    for name, words in (("other.npz", "header is missing"), ("other.json", "its format is None")):
        assert run(monkeypatch, "solve", name, "--gamma", 0.9) == 2
        assert words in capsys.readouterr().err


def test_gymnasium_environments_are_solved_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--gamma", 0.99, "--set", "is_slippery=False", "--episodes", 1]
    assert run(monkeypatch, "solve", "FrozenLake-v1", *arguments) == 0
    # Six moves to the goal, the last of which pays 1.
    assert f"{0.99**5:.6g} promised" in capsys.readouterr().out


def test_a_converted_environment_is_solved_as_the_environment_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for env_id, states, settings in (
        ("TerrainMaze-v0", 108, ["--set", "shape=12,9", "--set", "p=0.9"]),
        ("CliffWalking-v1", 48, []),
    ):
        assert run(monkeypatch, "convert", env_id, "model.npz", *settings) == 0
        printed = capsys.readouterr().out
        assert printed == f"{env_id}: {states} states with 4 actions in model.npz\n"
        assert run(monkeypatch, "convert", "model.npz", "copy.npz") == 0
        assert Path("copy.npz").read_bytes() == Path("model.npz").read_bytes()
        capsys.readouterr()
        rows = []
        for source, given in ((env_id, settings), ("copy.npz", [])):
            arguments = [source, *given, "--gamma", 0.95, "--episodes", 10]
            assert run(monkeypatch, "solve", *arguments, "--save", "result.npz") == 0
            lines = capsys.readouterr().out.splitlines()
            assert lines[0].split() == ["environment", f"{source},", "gamma", "0.95"]
            rows.append([line for line in lines[1:] if not line.startswith("seconds")])
            rows.append(planners.SolveResult.load("result.npz").values.tobytes())
        assert rows[:2] == rows[2:]


def test_a_gymnasium_table_as_json_goes_out_and_comes_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "convert", "CliffWalking-v1", "table.json") == 0
    assert run(monkeypatch, "convert", "table.json", "model.npz") == 0
    assert "table.json: 48 states with 4 actions in model.npz" in capsys.readouterr().out
    table = json.loads(Path("table.json").read_text())["P"]
    P = gym.make("CliffWalking-v1").unwrapped.P
    # The goal is a state like others in Gymnasium's table; episodes end in one that is added.
    assert len(table) == len(P) + 1
    assert table[48] == [[[1.0, 48, 0.0, True]]] * 4
    assert [row[:3] for row in table[0][2]] == [list(outcome[:3]) for outcome in P[0][2]]
    for source in ("table.json", "model.npz"):
        assert run(monkeypatch, "solve", source, "--gamma", 0.9, "--episodes", 1) == 0
        assert "-13 undiscounted" in capsys.readouterr().out


def test_a_conversion_may_replace_another_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for env_id in ("FrozenLake-v1", "StandardMaze-v0"):
        assert run(monkeypatch, "convert", env_id, "model.npz") == 0
    assert load_model("model.npz").num_states == 400
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder to work in with a model, other names of it, a result, and what is neither."""
    monkeypatch.chdir(tmp_path)
    env = gym.make("StandardMaze-v0", shape=(3, 4))
    save_model(planners.as_model(env), "model.npz")
    planners.solve(env, gamma=0.9).save("result.npz")
    np.savez("other.npz", a=np.zeros(3))
    Path("empty.npz").touch()
    Path("bad.json").write_text("[]")
    Path("model.txt").write_text("three states")
    Path("model.dat").write_text("three states")
    Path("folder.npz").mkdir()
    Path("linked.npz").symlink_to("model.npz")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["solve", "none.npz", "--gamma", 0.9], ["there is no file 'none.npz'"]),
        (["solve", "folder.npz", "--gamma", 0.9], ["'folder.npz' is a directory"]),
        (["solve", "empty.npz", "--gamma", 0.9], ["'empty.npz' is not a saved model: "]),
        (["solve", "other.npz", "--gamma", 0.9], ["'other.npz' is not a saved model: header"]),
        (["solve", "result.npz", "--gamma", 0.9], ["'result.npz' is not", "it is a saved result"]),
        (["solve", "model.dat", "--gamma", 0.9], ["'model.dat' is not a model file", "in .npz"]),
        (["solve", "model.txt", "--gamma", 0.9], ["model.txt: line 1, column 1: 't' is not among"]),
        (["solve", ".", "--gamma", 0.9], ["'.' is not a model file"]),
        (["solve", "model.npz", "--gamma", 2], ["gamma must be in [0, 1], got 2"]),
        (
            ["solve", "model.npz", "--gamma", 0.9, "--image", "x.png"],
            ["--image draws mazes, and a model file holds none: 'model.npz'"],
        ),
        (
            ["solve", "model.npz", "--gamma", 0.9, "--set", "p=1"],
            ["'model.npz' is read as format aggmaze, which takes no option 'p'"],
        ),
        (
            ["solve", "model.npz", "--gamma", 0.9, "--save", "linked.npz"],
            ["--save would overwrite the model file 'model.npz'"],
        ),
        (
            ["solve", "model.npz", "--gamma", 0.9, "--save", "folder.npz"],
            ["'folder.npz' is a directory, not a file to write"],
        ),
        (["convert", "model.npz"], ["TARGET"]),
        (
            ["convert", "model.npz", "copy"],
            ["TARGET must end in .npz, .json, .umb or .drn, or --to", "got 'copy'"],
        ),
        (
            ["convert", "model.npz", "copy.txt"],
            ["TARGET must end in .npz, .json, .umb or .drn, or --to", "got 'copy.txt'"],
        ),
        (["convert", "model.npz", "folder.npz"], ["'folder.npz' is a directory"]),
        (["convert", "model.npz", "no/such/copy.npz"], ["there is no folder 'no/such'"]),
        (["convert", "model.npz", "model.npz"], ["TARGET is SOURCE: 'model.npz'"]),
        (["convert", "model.npz", "./linked.npz"], ["TARGET is SOURCE: 'linked.npz'"]),
        (["convert", "result.npz", "copy.json"], ["it is a saved result"]),
        (["convert", "model.dat", "copy.npz"], ["'model.dat' is not a model file"]),
        (["solve", "bad.json", "--gamma", 0.9], ["'bad.json' is not a saved Gymnasium P: its"]),
        (
            ["convert", "model.npz", "copy.npz", "--set", "p=1"],
            ["'model.npz' is read as format aggmaze, which takes no option 'p'; it takes none"],
        ),
        (["convert", "result.npz", "copy.npz"], ["it is a saved result"]),
        (["convert", "CartPole-v1", "copy.npz"], ["CartPole-v1", "no transition model"]),
        (["convert", "NoSuchMaze-v0", "copy.npz"], ["NoSuchMaze", "aggmaze list"]),
        (["convert", "FrozenLake-v1", "copy.npz", "--set", "size=3"], ["no 'size'"]),
    ],
)
def test_bad_files_end_with_2_and_say_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: Path,
    arguments: list[object],
    messages: list[str],
) -> None:
    before = {path: path.is_file() and path.read_bytes() for path in files.iterdir()}
    assert run(monkeypatch, *arguments) == 2
    captured = capsys.readouterr()
    for message in messages:
        assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert {path: path.is_file() and path.read_bytes() for path in files.iterdir()} == before


def test_too_little_memory_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], files: Path
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 100)
    assert run(monkeypatch, "convert", "model.npz", "copy.npz") == 2
    assert "'model.npz' need 1.5 kB, 100 bytes of memory is available" in capsys.readouterr().err
    assert not Path("copy.npz").exists()


def test_ctrl_c_while_converting_ends_with_130_and_nothing_half_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], files: Path
) -> None:
    def interrupt(member: Any, array: Any, **options: Any) -> None:
        member.write(b"half of it")
        raise KeyboardInterrupt

    before = sorted(files.iterdir()), Path("result.npz").read_bytes()
    monkeypatch.setattr(np.lib.format, "write_array", interrupt)
    for target in ("copy.npz", "result.npz"):
        assert run(monkeypatch, "convert", "model.npz", target) == 130
        assert capsys.readouterr().err == "interrupted\n"
    assert (sorted(files.iterdir()), Path("result.npz").read_bytes()) == before


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send")
def test_a_real_ctrl_c_while_writing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "planners", "convert", "TerrainMaze-v0", "big.npz"]
    command += ["--set", "shape=1500,1500", "--set", "terrain=uniform"]
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": str(root)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as child:
        deadline = time.monotonic() + 120
        while not list(tmp_path.iterdir()):
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        _, printed = child.communicate(timeout=60)
    assert child.returncode == 130
    # On a busy machine a word on what goes on comes before.
    *before, last = printed.decode().splitlines()
    assert last == "interrupted"
    assert all(line.startswith(("making ", "writing")) for line in before)
    assert list(tmp_path.iterdir()) == []


def test_list_names_every_environment_with_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "list") == 0
    printed = capsys.readouterr().out
    for env_id in ("StandardMaze-v0", "TerrainMaze-v0", "NDMaze-v0", "FrozenLake-v1", "Taxi-v"):
        assert env_id in printed
    assert "Blackjack" not in printed
    assert "CartPole-v1" not in printed


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
    assert parse_setting(setting) == expected


def test_the_command_is_installed_and_is_a_module() -> None:
    for command in (
        [str(Path(sys.executable).with_name("aggmaze"))],
        [sys.executable, "-m", "planners"],
        [sys.executable, "-m", "aggmaze"],
    ):
        done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
        assert "solve" in done.stdout
        assert "list" in done.stdout


def test_the_environments_alone_have_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **selected: ())
    with pytest.raises(SystemExit, match="the command aggmaze is not installed: pip install"):
        runpy.run_module("aggmaze", run_name="__main__")


# Ctrl-C at the moment when a module is about to be imported; the rest goes on as it would.
_INTERRUPTED_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(name, path, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder)
import aggmaze_command
aggmaze_command.main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send")
@pytest.mark.parametrize(
    "module", ["planners", "gymnasium", "numba", "scipy.sparse", "planners.solve", "typer"]
)
def test_ctrl_c_while_the_command_is_imported(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_IMPORT, module],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stderr.removeprefix("loading the command\n")  # on a slow machine
    assert (done.returncode, done.stdout, told) == (130, "", "interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to ignore")
def test_who_ignores_ctrl_c_ignores_it_while_the_command_is_imported() -> None:
    script = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)" + _INTERRUPTED_IMPORT
    script = script.replace("sys.argv[1]", "'numba'")
    done = subprocess.run(
        [sys.executable, "-c", script, "--version"],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stderr.removeprefix("loading the command\n")
    assert (done.returncode, told) == (0, "")
    assert done.stdout.startswith("aggmaze ")


@pytest.mark.parametrize("terminal", [False, True])
def test_loading_the_command_is_told_where_it_takes_long(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Err(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    told = Err()
    monkeypatch.setattr("sys.stderr", told)
    with aggmaze_command._Loading():  # nothing that is worth a word
        pass
    assert told.getvalue() == ""
    monkeypatch.setattr(aggmaze_command, "_SAY_AFTER", 0.0)
    monkeypatch.setattr(aggmaze_command, "_SAY_EVERY", 1e-3)
    with aggmaze_command._Loading():
        deadline = time.monotonic() + 60
        while told.getvalue().count("loading the command") < 1 + terminal:
            assert time.monotonic() < deadline
            time.sleep(1e-3)
    printed = told.getvalue()
    assert printed.endswith("\r\x1b[K" if terminal else "loading the command\n")
    assert printed.startswith("\rloading the command, 0 s" if terminal else "loading the command\n")


def test_of_what_ctrl_c_left_half_made_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """LLVM's binding closes what was never made; what others cannot raise is told as ever."""

    def unraisable(module: str, error: Exception) -> Any:
        def close() -> None: ...

        close.__module__ = module
        return SimpleNamespace(
            exc_type=type(error), exc_value=error, exc_traceback=None, err_msg=None, object=close
        )

    seen: list[Any] = []
    error = AttributeError("'PassBuilder' object has no attribute '_as_parameter_'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.__unraisablehook__", seen.append)
        entry._raise_again(unraisable("llvmlite.binding.ffi", error))
        assert not seen
        entry._raise_again(unraisable("llvmlite.binding.ffi", ValueError()))
        entry._raise_again(unraisable("elsewhere", error))
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--gamma", "2"], "gamma must be in [0, 1], got 2"),
        (["--gamma", ".9", "--tol", "-1"], "tol must"),
        (["--gamma", ".9", "--method", "value_iteraton"], "did you mean 'value_iteration'"),
        (["--gamma", ".9", "--method", "value_iteration", "--epsilon", "1"], "does not take"),
        (["--gamma", ".9", "--num-updates", "0"], "num_updates must be at least 1"),
    ],
)
def test_what_is_asked_for_is_checked_before_the_environment_is_made(
    arguments: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("an environment was made")

    monkeypatch.setattr(cli.opening, "open_env", refuse)
    monkeypatch.setattr(sys, "argv", ["aggmaze", "solve", "TerrainMaze-v0", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err
