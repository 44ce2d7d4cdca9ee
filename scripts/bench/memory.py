"""Peak memory of every method on models of 10^6 states, beyond Python and the packages themselves.

Each method runs in a process of its own, after a small solve that loads what it needs; a time limit
ends the slow ones, whose memory is all there by then.  Prints a table in Markdown.  Needs Linux or
macOS.

    python scripts/bench/memory.py [--side 1000] [--time-limit 10]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys

import gymnasium as gym
from _output import markdown, markdown_row

import planners

# Registers the environments.
import aggmaze  # noqa: F401  # isort: skip

MODELS = {"slip maze": "StandardMaze-v0", "slip terrain": "TerrainMaze-v0"}


def peak() -> float:
    """Return the peak of this process's memory so far, in MB."""
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measure(env_id: str, method: str, side: int, time_limit: float) -> dict[str, float | str]:
    """Solve in this process and return what it took."""
    options = {"gamma": 0.99, "method": method, "num_threads": 1}
    planners.solve(gym.make(env_id, shape=(20, 20), p=0.95), num_iterations=3, **options)
    before = peak()
    env = gym.make(env_id, shape=(side, side), p=0.95)
    planners.as_model(env)
    built = peak()
    result = planners.solve(env, time_limit=time_limit, **options)
    return {"built": built - before, "peak": peak() - before, "status": str(result.status)}


def main() -> None:
    """Measure all methods that need no more than a model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--side", type=int, default=1000, help="positions an axis")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds for one solve")
    parser.add_argument("--one", nargs=2, metavar=("ENV", "METHOD"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, options.side, options.time_limit)))
        return
    print(markdown([f"MB at {options.side} x {options.side}", *MODELS], []), end="")
    built = {}
    for method in planners.METHODS:
        if method == "fixed_aggregation":  # needs labels
            continue
        cells = []
        for name, env_id in MODELS.items():
            command = [sys.executable, __file__, "--one", env_id, method]
            command += ["--side", str(options.side), "--time-limit", str(options.time_limit)]
            run = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            found = json.loads(run.stdout)
            built[name] = found["built"]
            cells.append(f"{found['peak']:.0f}")
        print(markdown_row([f"`{method}`", *cells]), flush=True)
    cells = [f"{built[name]:.0f}" for name in MODELS]
    print(markdown_row(["environment and model alone", *cells]))


if __name__ == "__main__":
    main()
