"""Experiments as tasks: one for each configuration and repetition, with random numbers of its own.

What a task computes depends on the task alone: on its experiment, configuration and repetition and
on the seed of the whole, not on the other tasks, their order or their number, nor on who runs it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggmaze.sources import digest, imported_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES = ("small", "paper")

#: What JSON can hold, with text for keys.
Configuration = Mapping[str, Any]

#: What a task calls: a function that processes can find by its name.
RunTask = Callable[[Configuration, np.random.SeedSequence], "Outcome"]

# They draw and print what tasks found, and no outcome depends on them.
_SHOWING = [Path(__file__).with_name(name) for name in ("figures.py", "report.py")]


@dataclass(frozen=True)
class Outcome:
    """What a task found, as what JSON can hold.

    Parameters
    ----------
    values : dict
        The same whenever the task is run.
    seconds : dict of float or of list of float
        How long things took.
    """

    values: dict[str, Any]
    seconds: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """A configuration and what one repetition of it found."""

    configuration: Configuration
    repetition: int
    values: dict[str, Any]
    seconds: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A table of the report, and a CSV file of its own.

    Parameters
    ----------
    name : str
        Of the file.
    title : str
    columns : sequence of str
    rows : sequence of sequences
        Numbers, texts, truth values, and None where there is nothing to say.
    note : str
        Printed below.
    is_detail : bool
        Whether the report shows it folded up.
    is_timing : bool
        Whether it holds seconds, which differ from run to run.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    is_detail: bool = False
    is_timing: bool = False


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of the report, and a PNG and a PDF file of its own."""

    name: str
    title: str
    figure: Figure
    note: str = ""


@dataclass(frozen=True)
class Summary:
    """What the report says of an experiment: texts, tables and figures."""

    texts: Sequence[str]
    tables: Sequence[Table]
    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Parameters
    ----------
    name : str
    title : str
    scales : dict
        The arguments by scale, each a frozen dataclass with the ``repetitions``.
    configurations : callable
        ``configurations(arguments)``, as many as there are to be repeated.
    run : callable
        ``run(configuration, seed_sequence)``, a function that processes can find by its name.
    work : callable
        ``work(configuration)``: roughly how long it takes, in any unit that all experiments share;
        here elementary operations.
    summarize : callable
        ``summarize(arguments, runs)``; there may be fewer runs than were planned, or none.
    """

    name: str
    title: str
    scales: Mapping[str, Any]
    configurations: Callable[[Any], list[Configuration]]
    run: RunTask
    work: Callable[[Configuration], float]
    summarize: Callable[[Any, list[Run]], Summary]


@dataclass(frozen=True)
class Task:
    """One repetition of a configuration of an experiment.

    What it finds depends on this, and on the code that it is run by (`code_of`).
    """

    experiment: str
    configuration: Configuration
    repetition: int
    seed: int
    work: float
    run: RunTask
    code: str

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Which task this is, in the form that result files keep."""
        identity = {
            "experiment": self.experiment,
            "configuration": self.configuration,
            "repetition": self.repetition,
            "seed": self.seed,
        }
        return json.loads(json.dumps(identity))

    @property
    def name(self) -> str:
        """A name that no other task has, fit for a file: the same whatever the code."""
        words = "-".join(_word(value) for value in self.configuration.values())
        # The version is part of it only so that files of older code are found and replaced.
        content = json.dumps({"version": "0.1.0", **self.identity}, sort_keys=True)
        number = hashlib.sha256(content.encode()).hexdigest()[:12]
        return f"{words[:80].strip('-')}-{self.repetition:02d}-{number}"

    @property
    def seed_sequence(self) -> np.random.SeedSequence:
        """The child of the seed that is this task's."""
        content = json.dumps([self.experiment, self.identity["configuration"]], sort_keys=True)
        number = hashlib.sha256(content.encode()).digest()
        words = np.frombuffer(number[:16], dtype="<u4").tolist()
        return np.random.SeedSequence(self.seed, spawn_key=(*words, self.repetition))


def plan(experiment: Experiment, scale: str, seed: int) -> list[Task]:
    """Return the tasks of an experiment, repetition by repetition of each configuration."""
    arguments = experiment.scales[scale]
    return [
        Task(
            experiment.name,
            configuration,
            repetition,
            seed,
            experiment.work(configuration),
            experiment.run,
            code_of(experiment.run),
        )
        for configuration in experiment.configurations(arguments)
        for repetition in range(arguments.repetitions)
    ]


@cache
def code_of(run: RunTask) -> str:
    """Return what changes with the sources that decide on the outcomes of a function."""
    return digest(imported_files(Path(inspect.getfile(run)), besides=_SHOWING))


def perform(task: Task) -> Outcome:
    """Do a task, and note how long it took.

    Raises
    ------
    RuntimeError
        If the code here is not the one that the task was planned by.
    """
    if code_of(task.run) != task.code:
        raise RuntimeError(
            "this worker has other code than the run it works for: another version, or sources "
            "that were changed after the run began"
        )
    start = time.perf_counter()
    outcome = task.run(task.identity["configuration"], task.seed_sequence)
    seconds = {**outcome.seconds, "task": time.perf_counter() - start}
    return Outcome(outcome.values, seconds)


def _word(value: Any) -> str:
    """Return a value in letters and digits, for a name."""
    if isinstance(value, list | tuple):
        return "x".join(_word(item) for item in value)
    return "".join(c for c in str(value).replace(" ", "_") if c.isalnum() or c in "._")
