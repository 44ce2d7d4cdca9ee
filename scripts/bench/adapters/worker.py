"""Solves one model with one library, in a process and a Python of its own.

    python worker.py ADAPTER

Reads requests from standard input and answers each on standard output, one JSON object a line:

    {"build": MODEL.npz, "gamma": .99, "objective": null}
        -> {"build_seconds", "before_mb"}
    {"solve": VALUES.npy, "variant": {...}, "epsilon": 1e-6, "tol": 1e-8}
        -> {"seconds", "cpu_seconds", "peak_mb", "iterations", "bound", "note"}

or ``{"error": text}``.  ``ADAPTER`` is a module in this folder whose function
``problem(tables, gamma)`` turns the model into what the library takes, and returns what solves it:
``solve(variant, epsilon, tol)`` returns an `Outcome`.  ``epsilon`` is the accuracy asked for,
absolute; ``tol`` the same relative to the largest value.

Where an ``"objective"`` is named, such as ``{"name": "horizon", "steps": 50}``, the module's
``OBJECTIVES[name](tables, objective)`` takes the place of ``problem``.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tables import read_model


def main() -> None:
    """Answer requests until there are none."""
    # Libraries print to standard output, which is for the answers here.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    limit = int(os.environ.get("AGGMAZE_BENCH_MEMORY", "0"))
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    adapter = importlib.import_module(sys.argv[1])
    solver: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "build" in request:
                before = status_mb("VmRSS")
                path, make = Path(request["build"]), builder(adapter, request)
                solver, seconds, _ = timed(lambda path=path, make=make: make(read_model(path)))
                answer = {"build_seconds": seconds, "before_mb": before}
            else:
                answer = solve(solver, request)
        except Exception as error:
            text = str(error).strip().splitlines()
            answer = {"error": f"{type(error).__name__}: {text[0] if text else ''}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def builder(adapter: Any, request: dict[str, Any]) -> Callable[[Any], Any]:
    """Return what turns a model into what solves it as the request says."""
    objective = request.get("objective")
    if objective is None:
        return lambda tables: adapter.problem(tables, request["gamma"])
    return lambda tables: adapter.OBJECTIVES[objective["name"]](tables, objective)


def solve(solver: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Solve once; write the values and say what that took."""
    reset_peak()
    outcome, seconds, cpu_seconds = timed(
        lambda: solver(request["variant"], request["epsilon"], request["tol"])
    )
    peak = status_mb("VmHWM")
    np.save(request["solve"], np.asarray(outcome.values(), dtype=np.float64).reshape(-1))
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_mb": peak,
        "iterations": outcome.iterations,
        "bound": outcome.bound,
        "note": outcome.note,
    }


def timed(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what a call returns, its seconds, and its seconds of processor."""
    start, cpu_start = time.perf_counter(), time.process_time()
    value = function()
    return value, time.perf_counter() - start, time.process_time() - cpu_start


def reset_peak() -> None:
    """Let the peak of memory begin anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def status_mb(name: str) -> float:
    """Return a figure of this process's memory in MB; the peak so far where it is not known."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    main()
