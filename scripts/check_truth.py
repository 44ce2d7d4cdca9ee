"""Solve random small models and compare with exact fractions, in a virtual environment of its own.

``python3 scripts/check_truth.py --models 100000 --workers 4`` solves as many models of up to six
states by all methods, with budgets, tolerances, discounts and costs of all kinds, and tells what
does not hold: an error above its bound, a policy that loses more than was promised, a status that
contradicts the bound, an evaluation that is off, a run that does not end in time.  What the cases
are and what must hold is written in ``tests/planners/fuzz.py``.  ``--objective total``, ``average``
or ``horizon`` asks models of up to five states for that instead (``objectives_fuzz.py``).

It ends with 1 if anything was found, and prints how to see it again.
"""

import argparse
import contextlib
import os
import signal
import sys
import time

import _venv

# Models that a worker is given at a time.
BLOCK = 20
# A block that takes so many time limits more than allowed has a model that cannot be stopped.
PATIENCE = 10.0


def start_worker() -> None:
    """Leave Ctrl-C to the process that gives out the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.insert(0, str(_venv.ROOT))


def look(seed: int, first: int, count: int, time_limit: float, objective: str) -> list:
    """Look at some models; a kernel that does not come back ends the process."""
    from tests.planners import fuzz, objectives_fuzz

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE * count * (time_limit + fuzz.OVERRUN))
    try:
        if objective != "discounted":
            return objectives_fuzz.look(seed, first, count, objective)
        return fuzz.look(seed, first, count, time_limit)
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)


class Tally:
    """Counts, tells what was found, and where it is."""

    def __init__(self, total: int, again: str) -> None:
        self.done = self.num_wrong = 0
        self._total, self._again = total, again
        self._started = time.monotonic()
        self._status = _venv.StatusLine()

    def add(self, count: int, found: list) -> None:
        """Take note of some models."""
        self.done += count
        for number, call, told in found:
            self.num_wrong += 1
            self._status.clear()
            print(f"model {number}: {call}")
            for what in told:
                print(f"    {what}")
            print(f"    again: {self._again} --first {number} --models 1", flush=True)
        self._status.tell(self.line())

    def line(self) -> str:
        """Return how far it is."""
        seconds = time.monotonic() - self._started
        return f"{self.done:,} of {self._total:,} models, {self.num_wrong} wrong, {seconds:.0f} s"


def check(arguments: argparse.Namespace) -> int:
    """Look at all of them, in processes; return the exit code."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    limit = arguments.time_limit
    again = f"python3 scripts/check_truth.py --seed {arguments.seed} --time-limit {limit:g}"
    if arguments.objective != "discounted":
        again += f" --objective {arguments.objective}"
    tally = Tally(arguments.models, again)
    end = arguments.first + arguments.models
    blocks = {}
    pool = ProcessPoolExecutor(arguments.workers, initializer=start_worker)
    try:
        for first in range(arguments.first, end, BLOCK):
            count = min(BLOCK, end - first)
            told = pool.submit(look, arguments.seed, first, count, limit, arguments.objective)
            blocks[told] = first, count
        for future in as_completed(blocks):
            tally.add(blocks[future][1], future.result())
            del blocks[future]
    except BrokenProcessPool:
        first = min(first for first, _ in blocks.values())
        print(f"\na process was ended by a model from {first} on; again:")
        print(f"    {again} --first {first} --models {BLOCK * arguments.workers}")
        return 1
    finally:
        pool.shutdown(cancel_futures=True)
        print(f"\n{tally.line()}")
    return 1 if tally.num_wrong else 0


def main() -> int:
    """Set up the virtual environment and look at the models in it."""
    parser = _venv.Parser("Solve random small models and compare with exact fractions.")
    parser.add_argument("--models", type=int, default=10_000, help="how many (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="of the random models (default: 0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (default: 0)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument(
        "--objective",
        choices=["discounted", "total", "average", "horizon"],
        default="discounted",
        help="what is asked of them (default: discounted)",
    )
    parser.add_argument(
        "--time-limit", type=float, default=5.0, help="seconds for each solve (default: 5)"
    )
    arguments = parser.parse_args()
    parser.check_least(arguments, models=1, seed=0, first=0, workers=1)
    if not 0 < arguments.time_limit < float("inf"):
        parser.error(f"--time-limit must be positive and finite, got {arguments.time_limit}")
    if not arguments.in_venv:
        return _venv.start_again("test")
    with contextlib.suppress(BrokenPipeError):
        return check(arguments)
    return 1


if __name__ == "__main__":
    _venv.run(main)
