"""Experiments that take no time, for the tests of what runs them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planners.experiments.running.tasks import plan
from planners.experiments.study import Configuration, Experiment, Outcome, Run, Summary, Table


@dataclass(frozen=True)
class Args:
    repetitions: int = 4


def draw(configuration: Configuration, seed: np.random.SeedSequence) -> Outcome:
    numbers = np.random.default_rng(seed).random(3)
    return Outcome({"numbers": numbers.tolist(), "number": configuration["number"]}, {"draw": 0.5})


def draw_slowly(configuration: Configuration, seed: np.random.SeedSequence) -> Outcome:
    time.sleep(0.05)
    outcome = draw(configuration, seed)
    return Outcome(outcome.values, {"pid": os.getpid()})


def die_once(configuration: Configuration, seed: np.random.SeedSequence) -> Outcome:
    """Kill the worker the first time: a file says whether it was."""
    flag = Path(configuration["flag"])
    if configuration["number"] == 1 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return draw(configuration, seed)


def die_always(configuration: Configuration, seed: np.random.SeedSequence) -> Outcome:
    if configuration["number"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return draw(configuration, seed)


def fail(configuration: Configuration, seed: np.random.SeedSequence) -> Outcome:
    if configuration["number"] == 1:
        raise RuntimeError("no luck\nat all")
    return draw(configuration, seed)


def summarize(args: Args, runs: list[Run]) -> Summary:
    rows = [[r.configuration["number"], r.repetition, *r.values["numbers"]] for r in runs]
    columns = ["number", "repetition", "a", "b", "c"]
    return Summary(["A text."], [Table("fake", "Fake", columns, rows)], [])


def experiment(
    run: Callable[[Configuration, np.random.SeedSequence], Outcome] = draw,
    numbers: Sequence[int] = (1, 2),
    repetitions: int = 4,
    **more: Any,
) -> Experiment:
    args = Args(repetitions)
    return Experiment(
        "fake",
        "Fake",
        {"small": args, "paper": args},
        lambda args: [{"number": number, **more} for number in numbers],
        run,
        lambda configuration: float(configuration["number"]),
        summarize,
    )


def tasks(*arguments: Any, seed: int = 0, **options: Any) -> list[Any]:
    return plan(experiment(*arguments, **options), "small", seed)


class Inline(Executor):
    """Does each task when it is submitted."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def inline() -> Iterator[tuple[Executor, int]]:
    yield Inline(), 1


class Notes:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.num_done = 0
        self.begun: list[Any] = []
        self.finished: list[Any] = []
        self.failed: list[Any] = []
        self.reports: list[str] = []

    def begin(self, tasks: Sequence[Any], outcomes: Sequence[Any]) -> None:
        self.num_done = len(tasks) - list(outcomes).count(None)

    def started(self, task: Any) -> None:
        self.begun.append(task)

    def done(self, task: Any, outcome: Any) -> None:
        assert outcome.seconds["task"] >= 0.0
        self.finished.append(task)

    def given_up(self, task: Any) -> None:
        self.failed.append(task)

    def tick(self) -> None:
        pass

    def report(self, text: str) -> None:
        self.reports.append(text)
