"""Ctrl-C, by signal, while a policy is looked at: it ends at once, as Python's own errors do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import planners
from aggmaze import TabularMDP
from aggmaze.storage import save_model

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
        assert told.rstrip().endswith("KeyboardInterrupt")
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
