"""Ctrl-C, by signal: a solve returns its last whole iteration, all else ends at once."""

from __future__ import annotations

import functools
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import planners
from aggmaze import MoveMDP, TabularMDP
from aggmaze.formats.storage import save_model
from planners.result import KEYBOARD
from planners.solve import METHODS
from tests.planners.reference import Array, dense, random_moves, truth

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send")

ROOT = Path(__file__).parents[2]
# No call that is waited for may take so long.
PATIENCE = 300

ENDLESS = """
import gymnasium as gym, numpy as np, aggmaze, planners
from planners.policies import greedy_path, steps_to_terminal

env = gym.make("TerrainMaze-v0", shape=(60, 60), p=0.9)
model = planners.as_model(env)
table = model.to_tabular()
result = planners.solve(model, gamma=0.99)
lake = gym.make("FrozenLake-v1", map_name="8x8")
calls = {
    "arrival": lambda: planners.arrival(model, result),
    "rollout": lambda: planners.rollout(env, result, episodes=10),
    "evaluate": lambda: planners.evaluate(model, result, 0.99),
    "policies": lambda: (
        planners.greedy(table, result.values, 0.99),
        planners.q_values(table, result.values, 0.99),
        steps_to_terminal(table),
        greedy_path(table, result.policy, 3599),
    ),
    "as_model": lambda: planners.as_model(lake),
}
call = calls["{name}"]
call()
print("ready", flush=True)
while True:
    call()
"""


@functools.cache
def solved(num_states: int) -> tuple[MoveMDP, Array, float]:
    """Return a model, its V* at gamma .99, and a bound on the error of that."""
    model = random_moves(3, num_states, 3, p=0.8)
    return model, *truth(dense(model), 0.99)


class Solves:
    """Solves by one method, the same again and again, of a model whose V* is known."""

    def __init__(self, method: str, num_states: int, num_iterations: int) -> None:
        self.model, self.V, self.off = solved(num_states)
        self._options: dict[str, Any] = {
            "gamma": 0.99,
            "method": method,
            "num_iterations": num_iterations,
        }
        if method == "fixed_aggregation":
            self._options["labels"] = np.arange(num_states) // 2
        elif method == "adaptive_aggregation":
            self._options["epsilon"] = 0.5
        else:
            self._options["tol"] = 1e-9

    def solve(self, callback: Any = None) -> planners.SolveResult:
        return planners.solve(self.model, callback=callback, **self._options)

    @functools.cache  # noqa: B019
    def stopped_at(self, iteration: int) -> planners.SolveResult:
        return self.solve(lambda progress: progress.iteration == iteration)

    def check(self, result: planners.SolveResult) -> None:
        """The result is that of a whole iteration, and its bound holds."""
        assert np.abs(result.values - self.V).max() <= result.bound + self.off
        if result.num_iterations == 0:
            assert result.num_updates == len(result.history) == 0
            return
        whole = self.stopped_at(result.num_iterations)
        np.testing.assert_array_equal(result.values, whole.values)
        np.testing.assert_array_equal(result.policy, whole.policy)
        assert result.bound == whole.bound
        assert result.policy_bound == whole.policy_bound
        assert result.num_updates == whole.num_updates
        assert result.num_sweeps == whole.num_sweeps
        np.testing.assert_array_equal(result.history.iteration, whole.history.iteration)


def interrupted(call: Callable[[], planners.SolveResult], delay: float) -> Any:
    """Return what a call returns that a signal strikes after a delay, or before; None if it raises.

    The clock's signal does what Ctrl-C's does, and no thread has to be given its turn first.
    """
    result = None
    struck = False

    def strike(number: int, frame: FrameType | None) -> None:
        nonlocal struck
        struck = True
        signal.default_int_handler(number, frame)

    # A signal that strikes in a callback of the garbage collector (Hypothesis has one) is lost.
    gc.disable()
    before = signal.signal(signal.SIGALRM, strike)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        result = call()
        while not struck:
            time.sleep(0.001)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    return result


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_at_random_moments_of_a_solve(method: str) -> None:
    solves = Solves(method, num_states=300, num_iterations=400)
    seconds = min(solves.solve().seconds for _ in range(3))
    rng = np.random.default_rng(0)
    in_time = 0
    for _ in range(1000):  # about half of them strike between two iterations
        result = interrupted(solves.solve, rng.uniform(1e-4, seconds + 1e-3))
        if result is not None:
            solves.check(result)
            in_time += result.message == KEYBOARD
        if in_time == 25:
            break
    assert in_time == 25


class AtLine:
    """A tracer that raises as Ctrl-C does before the n-th line of `planners`; 0 for never."""

    def __init__(self, number: int = 0) -> None:
        self.count = 0
        self._number = number
        self._folder = str(ROOT / "planners")

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(self._folder) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.count += 1
            if self.count == self._number:
                raise KeyboardInterrupt
        return self._line

    def trace(self, call: Callable[[], planners.SolveResult]) -> planners.SolveResult:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            return call()
        finally:
            sys.settrace(before)


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_before_any_line_of_a_solve(method: str) -> None:
    solves = Solves(method, num_states=12, num_iterations=12)
    solves.solve()
    counted = AtLine()
    begun = 0

    def note(progress: planners.Progress) -> None:
        nonlocal begun
        begun = begun or counted.count

    counted.trace(lambda: solves.solve(note))
    # From the first iteration's end to the result: as it is without a callback, which has no lines.
    for number in range(begun, counted.count, 11):
        result = AtLine(number).trace(solves.solve)
        solves.check(result)


def python(*arguments: str, folder: Path | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("name", ["arrival", "rollout", "evaluate", "policies", "as_model"])
def test_ctrl_c_at_any_moment(name: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        with python("-c", ENDLESS.replace("{name}", name)) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.0, 0.3))
            child.send_signal(signal.SIGINT)
            _, told = child.communicate(timeout=PATIENCE)
        # The last line names another error where Ctrl-C strikes in numba, outside of any call.
        assert "KeyboardInterrupt" in told
        assert child.returncode != 0


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """A model that lists a successor twice, in a file."""
    model = TabularMDP.from_function(
        3, 1, lambda s, a: None if s == 2 else [(0.5, s + 1, 1.0), (0.5, s + 1, 1.0)]
    )
    save_model(model, tmp_path / "twice.npz")
    return tmp_path


def test_the_command_on_successors_listed_twice(twice: Path) -> None:
    with python("-m", "planners", "solve", "twice.npz", "--gamma", ".95", folder=twice) as child:
        printed, told = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, told
    assert "reaches a terminal state from 100 % of the starts" in " ".join(printed.split())


def test_ctrl_c_while_the_command_rolls_out(twice: Path) -> None:
    command = ["-m", "planners", "solve", "twice.npz", "--gamma", ".95", "--save", "result.npz"]
    with python(*command, "--episodes", str(10**8), folder=twice) as child:
        deadline = time.monotonic() + PATIENCE
        while not (twice / "result.npz").exists():
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        printed, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130
    assert "converged" in printed
    assert planners.SolveResult.load(twice / "result.npz").success
