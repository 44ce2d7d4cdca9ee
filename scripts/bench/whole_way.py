"""What each part of the way from a name to a picture takes, and how much memory.

    python scripts/bench/whole_way.py
    python scripts/bench/whole_way.py --side 1000 3162 --write docs/whole_way.md

For each maze, in a process of its own and on one thread, after small ones that load what is
needed: `gym.make`, with the model and its checks; `planners.solve`; `planners.arrival` of its
policy; the promise, which is one step of `planners.rollout`; and the first picture of values and
policy that `render` gives.  Seconds of the processor and of the clock, and the largest memory of
the process during each part, less what it had before there was a maze, for each state.  Needs
Linux.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
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

PAGE = """# The whole way

<!-- Written by scripts/bench/whole_way.py; change that, not this. -->

What there is beside the solve, from `gym.make` to the first picture: seconds of the processor on
one thread, and the most bytes for each state that the process takes at any time, models,
environment and result among them.

- **make**: `gym.make(..., render_mode="rgb_array")`, the transition model and its checks.
- **solve**: `planners.solve(env, gamma=...)`, certified to 1e-6, with the policy and its bound.
- **arrive**: `planners.arrival(env, result)`: from where the policy arrives, and how soon.
- **promise**: `planners.rollout(env, result, episodes=1, max_steps=1)`: the exact value of the
  policy, and a step.
- **picture**: `set_overlay(values=..., policy=...)`, `reset` and `render`.

"Slip" is p = 0.95. What takes longer than the solve is in bold.

```
{command}
```

{date}; {machine}.

{table}"""


def walk(name: str, side: int, gamma: float) -> Row:
    """Go the whole way with one maze in this process, after smaller ones."""
    walked: Row = {"maze": name, "states": side**2, "gamma": gamma}
    for size in (20, 300, side):
        walked |= _walk(name, size, gamma)
    return walked


def _walk(name: str, side: int, gamma: float) -> Row:
    env_id, p = MAZES[name]
    _reset_peak()
    before, found = _peak(), {}

    def measure(part: str, function: Callable[[], Any]) -> Any:
        _reset_peak()
        wall, cpu = time.perf_counter(), time.process_time()
        value = function()
        found[part] = {
            "wall": time.perf_counter() - wall,
            "cpu": time.process_time() - cpu,
            "bytes": (_peak() - before) / side**2,
        }
        return value

    env = measure("make", lambda: _make(env_id, side, p))
    result = measure("solve", lambda: planners.solve(env, gamma=gamma, num_threads=1))
    arrival = measure("arrive", lambda: planners.arrival(env, result))
    rollout = measure(
        "promise", lambda: planners.rollout(env, result, episodes=1, seed=0, max_steps=1)
    )
    measure("picture", lambda: _picture(env, result))
    env.close()
    return {
        "method": result.method,
        "status": str(result.status),
        "bound": result.bound,
        "arrival": repr(arrival),
        "promised": rollout.promised,
        **found,
    }


def _make(env_id: str, side: int, p: float) -> gym.Env[Any, Any]:
    env = gym.make(env_id, shape=(side, side), p=p, render_mode="rgb_array")
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


def table(rows: Sequence[Row]) -> str:
    """Return what was measured as a table in Markdown."""
    lines = []
    for row in rows:
        cells = []
        for part in PARTS:
            seconds = row[part]["cpu"]
            is_longer = seconds > row["solve"]["cpu"]
            cells.append(f"**{seconds:.3g}**" if is_longer else f"{seconds:.3g}")
        most = max(row[part]["bytes"] for part in PARTS)
        lines.append(
            [row["maze"], f"{row['states']:,}", f"{row['gamma']:g}", *cells, f"{most:.0f}"]
        )
    return markdown(["maze", "states", "gamma", *PARTS, "bytes a state"], lines)


def main() -> None:
    """Measure each maze in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--side", type=int, nargs="+", default=[1000], help="positions an axis")
    parser.add_argument("--gamma", type=float, nargs="+", default=[0.999])
    parser.add_argument("--only", nargs="+", default=list(MAZES), choices=list(MAZES))
    parser.add_argument("--write", type=Path, help="write a page with the table here")
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
                        f"{found['wall']:8.3f} of the clock {found['bytes']:6.0f} bytes a state"
                    )
                print(" ", row["arrival"], row["promised"], row["bound"], flush=True)
    print(table(rows))
    if options.write is not None:
        page = PAGE.format(
            command=" ".join(["python scripts/bench/whole_way.py", *sys.argv[1:]]),
            date=datetime.date.today().isoformat(),
            machine=machine_line(),
            table=table(rows),
        )
        options.write.write_text(page)


if __name__ == "__main__":
    main()
