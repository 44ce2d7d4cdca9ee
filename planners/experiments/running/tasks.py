"""Experiments as tasks: one for each configuration and repetition, with random numbers of its own.

What a task computes depends on the task alone: on its experiment, configuration and repetition and
on the seed of the whole, not on the other tasks, their order or their number, nor on who runs it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from aggmaze.sources import digest, imported_files
from planners.experiments.study import Configuration, Experiment, Outcome, RunTask

# They draw and print what tasks found, and no outcome depends on them.
_SHOWING = list((Path(__file__).parents[1] / "reporting").glob("*.py"))


@dataclass(frozen=True)
class Task:
    """One repetition of a configuration of an experiment.

    What it finds depends on this, and on the code that it is run by (`code_of`).

    Parameters
    ----------
    experiment : str
        Its name.
    configuration : dict
        What JSON can hold, with text for keys.
    repetition : int
        From 0.
    seed : int
        Of the whole.
    work : float
        Roughly how long it takes, in the unit of `Experiment.work`.
    run : callable
        ``run(configuration, seed_sequence)``.
    code : str
        What `code_of` returns for ``run`` where the task was planned.
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
    """Return the tasks of an experiment, repetition by repetition of each configuration.

    Parameters
    ----------
    experiment : Experiment
    scale : {"small", "paper"}
    seed : int
        Of the whole, at least 0.
    """
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
