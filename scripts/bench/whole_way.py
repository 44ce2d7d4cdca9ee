"""What each part of the way from a name to a picture takes, and how much memory.

    python scripts/bench/whole_way.py
    python scripts/bench/whole_way.py --side 3162 --only slip-terrain --write docs/whole_way.md

For each maze, in a process of its own and on one thread, after a small one that loads what is
needed: `gym.make`, with the model and its checks; `planners.solve`; `planners.arrival` of its
policy; the promise, which is one short episode of `planners.rollout`; and the first picture of
values and policy that `render` gives.  Seconds of the processor and of the clock, and the largest
memory of the process during each part, less what it had before there was a maze, for each state.
Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
from _machine import machine_line
from _output import markdown

import planners

# Registers the environments.
import aggmaze  # noqa: F401  # isort: skip

#: Environment and the probability that a move happens, by name.
MAZES = {
    "maze": ("StandardMaze-v0", 1.0),
    "slip-maze": ("StandardMaze-v0", 0.95),
    "terrain": ("TerrainMaze-v0", 1.0),
    "slip-terrain": ("TerrainMaze-v0", 0.95),
}
PARTS = ("make", "solve", "arrive", "promise", "picture")
Row = dict[str, Any]


def walk(name: str, side: int, gamma: float) -> Row:
    """Go the whole way with one maze in this process."""
    env_id, p = MAZES[name]
    walked: Row = {"maze": name, "states": side**2, "gamma": gamma}
    for shape in ((20, 20), (300, 300), (side, side)):
        _reset_peak()
        before = _peak()
        found: Row = {}

        def measure(part: str, function: Callable[[], Any], row: Row = found) -> Any:
            _reset_peak()
            wall, cpu = time.perf_counter(), time.process_time()
            value = function()
            row[part] = {
                "wall": time.perf_counter() - wall,
                "cpu": time.process_time() - cpu,
                "peak": (_peak() - before) / size,  # noqa: B023
            }
            return value

        size = shape[0] * shape[1]
        env = measure("make", lambda: _make(env_id, shape, p))  # noqa: B023
        result = measure(
            "solve",
            lambda: planners.solve(env, gamma=gamma, num_threads=1),  # noqa: B023
        )
        arrival = measure("arrive", lambda: planners.arrival(env, result))  # noqa: B023
        rollout = measure(
            "promise",
            lambda: planners.rollout(env, result, episodes=1, seed=0, max_steps=1),  # noqa: B023
        )
        measure("picture", lambda: _picture(env, result))  # noqa: B023
        env.close()
    return walked | {
        "method": result.method,
        "status": str(result.status),
        "bound": result.bound,
        "policy_bound": result.policy_bound,
        "arrival": repr(arrival),
        "promised": rollout.promised,
        **found,
    }


def _make(env_id: str, shape: tuple[int, int], p: float) -> gym.Env[Any, Any]:
    env = gym.make(env_id, shape=shape, p=p, render_mode="rgb_array")
    planners.as_model(env)
    return env


def _picture(env: Any, result: planners.SolveResult) -> Any:
    env.unwrapped.set_overlay(values=result.values, policy=result.policy)
    env.reset(seed=0)
    return env.render()


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """Return the most bytes of memory that this process had since the last reset."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def table(rows: list[Row]) -> str:
    """Return what was measured as a table in Markdown."""
    header = ["maze", "states", "gamma", *(f"{part} s" for part in PARTS), "bytes a state"]
    lines = [
        [row["maze"], f"{row['states']:,}", f"{row['gamma']:g}"]
        + [f"{row[part]['cpu']:.3g}" for part in PARTS]
        + [f"{max(row[part]['peak'] for part in PARTS):.0f}"]
        for row in rows
    ]
    return markdown(header, lines)


def main() -> None:
    """Measure each maze in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--side", type=int, nargs="+", default=[1000], help="positions an axis")
    parser.add_argument("--gamma", type=float, nargs="+", default=[0.999])
    parser.add_argument("--only", nargs="+", default=list(MAZES), choices=list(MAZES))
    parser.add_argument("--json", type=Path, help="also add what was measured to this file")
    parser.add_argument("--write", type=Path, help="write the table into this page")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(walk(options.one, options.side[0], options.gamma[0])))
        return
    print(machine_line())
    rows = []
    for side in options.side:
        for name in options.only:
            for gamma in options.gamma:
                command = [sys.executable, __file__, "--one", name]
                command += ["--side", str(side), "--gamma", str(gamma)]
                run = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
                row = json.loads(run.stdout.splitlines()[-1])
                rows.append(row)
                print(row["maze"], row["states"], row["gamma"], row["method"], row["status"])
                for part in PARTS:
                    found = row[part]
                    print(
                        f"  {part:8} {found['cpu']:8.3f} s of the processor "
                        f"{found['wall']:8.3f} of the clock {found['peak']:6.0f} bytes a state"
                    )
                print(" ", row["arrival"], row["promised"], row["bound"], flush=True)
    print(table(rows))
    if options.json:
        with options.json.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
