"""Checkpoints: what a run knows, kept in a folder, so that another one can go on from there.

A checkpoint is complete or absent at every moment.  There are two, ``a`` and ``b``, written in
turn, so that there is always the one before.  Each has a file for V and for every other array
(`planners.slices`), and a head in JSON that makes them a checkpoint: it is taken away before the
arrays are written over, and moved into place when all of them are on the disk.  It has the
checksums of all that was written; where they are not those of the files, the other one is taken.

What a run goes by beside V, the last iteration: counts, the history, what the loop learned
(`planners.judge`), and the state of the method (`planners.solvers.base.Resumable`), its generator
of random numbers included.  A method that cannot say its state begins anew from V.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_integer, check_positive
from planners.certificate import Certificate
from planners.checkpoint_folder import LETTERS, CheckpointFolder
from planners.engine import Engine, Sweep
from planners.fingerprints import Traced
from planners.judge import Whole
from planners.record import ROW, Mark
from planners.slices import (
    Share,
    Sums,
    gathered_sums,
    read_slice,
    reserve,
    write_slice,
)
from planners.solvers.base import Resumable, Solver, State, Step


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is kept, and how often.

    Parameters
    ----------
    path : path-like
        A folder, which is made where there is none; the folder that it is in must be there.
    every_seconds : float, optional
        Write when so many seconds went by since the last time; None for no such rule.
    every_iterations : int, optional
        Write every so many iterations.
    resume : bool
        Whether to go on from what the folder holds; if not, that is removed.
    """

    path: str | os.PathLike[str]
    every_seconds: float | None = 600.0
    every_iterations: int | None = None
    resume: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike):
            raise TypeError(f"checkpoint must be the path of a folder, got {self.path!r}")
        if not os.fspath(self.path):
            raise ValueError("checkpoint must be the path of a folder, got an empty text")
        if not isinstance(self.resume, bool):
            raise TypeError(f"resume must be True or False, got {self.resume!r}")
        if self.every_seconds is not None:
            check_positive("every_seconds", self.every_seconds)
        if self.every_iterations is not None:
            check_integer("every_iterations", self.every_iterations, least=1)


def as_checkpoint(given: Any) -> Checkpoint | None:
    """Return what says where a run is kept: itself, or of a path the usual one."""
    return given if given is None or isinstance(given, Checkpoint) else Checkpoint(given)


class Point(NamedTuple):
    """A run as it was after an iteration.

    Parameters
    ----------
    whole : Whole
    step : Step or None
        What the iteration did, while the loop has not yet judged it.
    judge : dict
        What `Judge.state` returned.
    record : Mark
    solver : State or None
        None of a method that does not say it.
    """

    whole: Whole
    step: Step | None
    judge: dict[str, Any]
    record: Mark
    solver: State | None


class Found(NamedTuple):
    """What a checkpoint holds, of the states of this process.

    Parameters
    ----------
    whole : Whole
    step : Step or None
        What the last iteration did, if it is still to be judged.
    judge : dict
    rows : ndarray of ROW
        The history.
    last, stride : list, int
        As `Record.restore` takes them.
    solver : State or None
    seconds : float
        That the run had taken.
    """

    whole: Whole
    step: Step | None
    judge: dict[str, Any]
    rows: NDArray[np.void]
    last: list[Any]
    stride: int
    solver: State | None
    seconds: float


class Keeper:
    """Keeps one run: finds what there is of it, and writes what comes.

    Parameters
    ----------
    checkpoint : Checkpoint
    identity : mapping
        What makes the run this one, by the words that tell it to the user: numbers, texts.
    engine : Engine
    solver : Solver
    functions : mapping of str to Traced, optional
        Those that the solver asks; they must have had the same values in all that was asked.

    Attributes
    ----------
    found : Found or None
        What there was, inside of the block of ``with``.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        identity: Mapping[str, Any],
        engine: Engine,
        solver: Solver,
        functions: Mapping[str, Traced] = MappingProxyType({}),
    ) -> None:
        self.found: Found | None = None
        self._checkpoint = checkpoint
        self._folder = CheckpointFolder(checkpoint.path)
        self._identity = json.loads(json.dumps(dict(identity)))
        self._functions = functions
        self._share = Share.of(engine.parts, len(engine.terminal))
        self._kind = type(solver).__name__
        self._by_state = dict(solver.by_state) if isinstance(solver, Resumable) else {}
        self._resumable = isinstance(solver, Resumable)
        # Of the one that holds: its letter, its number and its iteration.
        self._letter, self._number, self._iteration = LETTERS[1], 0, 0
        # The last time that one was written, or could not be.
        self._tried, self._time = 0, 0.0
        self._failure = ""
        self._written: Point | None = None

    def __enter__(self) -> Self:
        try:
            self._share.first(self._prepare)
            self.found = self._find()
            self._share.first(self._take_room)
        except OSError as error:
            self._folder.release()
            if error.errno is None:  # said already
                raise
            reason = error.strerror or str(error)
            raise OSError(f"{self._folder.refusal}: {reason}") from None
        except BaseException:
            self._folder.release()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._folder.release()

    def _prepare(self) -> None:
        self._folder.take()
        if not self._checkpoint.resume:
            self._folder.clear()

    def _take_room(self) -> None:
        self._folder.take_room({"V": "float64", **self._by_state}, self._share.num_states)

    # ---------------------------------------------------------------------------------------------
    # Reading.

    def _find(self) -> Found | None:
        """Return what the newest checkpoint that is whole holds."""
        # One that cannot be read may be the newest.
        told = self._share.told(self._folder.heads() if self._share.leads else None)
        heads = sorted(told.items(), key=lambda entry: -entry[1].get("number", math.inf))
        damaged: list[str] = []
        for letter, head in heads:
            try:
                if "damage" in head:
                    raise OSError(head["damage"])
                self._compare(head)
                found = self._read(letter, head)
            except OSError as error:
                damaged.append(str(error))
                continue
            if damaged and self._share.leads:
                warnings.warn(
                    f"the last checkpoint cannot be used ({damaged[0]}); the one before it is",
                    stacklevel=2,
                )
            self._letter, self._number = letter, head["number"]
            self._iteration = self._tried = found.whole.num_iterations
            return found
        if damaged:
            raise ValueError(
                f"the checkpoint in {self._folder.name} cannot be used: {'; '.join(damaged)}. "
                "Checkpoint(path, resume=False) starts over"
            )
        return None

    def _compare(self, head: dict[str, Any]) -> None:
        """Refuse the checkpoint of another run, naming what differs."""
        there, here = head["identity"], self._identity
        names = [*here, *(name for name in there if name not in here)]
        differs = [
            f"{name} is {_shown(there.get(name))} there and {_shown(here.get(name))} here"
            for name in names
            if there.get(name) != here.get(name)
        ]
        for name, function in self._functions.items():
            trace = head["functions"].get(name)
            if not differs and not function.follows(trace):
                differs.append(f"{name} had other values from {trace[0]:,} to {trace[1]:,}")
        if differs:
            raise ValueError(
                f"the checkpoint in {self._folder.name} is of another run: {'; '.join(differs)}. "
                "Take another folder, or Checkpoint(path, resume=False) to start over"
            )

    def _read(self, letter: str, head: dict[str, Any]) -> Found:
        """Return what a checkpoint holds."""
        share, run = self._share, head["run"]
        count = share.hi - share.lo
        listed = head["arrays"]

        def read() -> dict[str, NDArray[Any]]:
            arrays = {}
            for name, entry in listed.items():
                dtype = ROW if name == "history" else np.dtype(entry["dtype"])
                whole = entry["kind"] == "whole"
                out = np.empty(entry["num_entries"] if whole else count, dtype=dtype)
                first = 0 if whole else share.lo
                path = self._folder.array(letter, name)
                read_slice(path, out, first, (entry["num_entries"],), entry["sums"])
                arrays[name] = out
            return arrays

        arrays = share.together(read)
        V, rows = arrays.pop("V"), arrays.pop("history")
        solver: State | None = None
        if self._resumable and head["solver"] == self._kind:
            by_state = {name: arrays.pop(name) for name in self._by_state if name in arrays}
            solver = State(run["method"], arrays, by_state)
        step = claim = None
        if run["step"] is not None and solver is not None:
            sweep = run["step"]["sweep"]
            step = Step(0, None if sweep is None else Sweep(*sweep), settled=run["step"]["settled"])
            claim = None if run["claim"] is None else Certificate(*run["claim"])
        counts = (run[name] for name in ("num_iterations", "num_sweeps", "num_updates"))
        whole = Whole(V, np.empty_like(V), None, claim, None, *counts)
        return Found(
            whole, step, run["judge"], rows, run["last"], run["stride"], solver, run["seconds"]
        )

    # ---------------------------------------------------------------------------------------------
    # Writing.

    def write_if_due(self, point: Point, seconds: float) -> None:
        """Write a checkpoint where it is time for one.

        Parameters
        ----------
        point : Point
        seconds : float
            Since this process began to solve, in every process the same.
        """
        rules = self._checkpoint
        iterations = point.whole.num_iterations - self._tried
        by_count = rules.every_iterations is not None and iterations >= rules.every_iterations
        by_time = rules.every_seconds is not None and seconds - self._time >= rules.every_seconds
        if by_count or by_time:
            self.write(point, seconds)

    def write(self, point: Point, seconds: float) -> None:
        """Write a checkpoint, or warn where that cannot be done; the one before stays.

        Parameters
        ----------
        point : Point
        seconds : float
            Since this process began to solve, in every process the same.
        """
        self._time, self._tried = seconds, point.whole.num_iterations
        if point is self._written:
            return
        letter = LETTERS[1 - LETTERS.index(self._letter)]
        try:
            self._write(letter, point, seconds)
        except OSError as error:
            self._failure = error.strerror or str(error)
            if self._share.leads:
                warnings.warn(
                    f"no checkpoint of iteration {point.whole.num_iterations:,} could be written "
                    f"to {self._folder.name}: {self._failure}",
                    stacklevel=2,
                )
            return
        self._letter, self._number, self._failure = letter, self._number + 1, ""
        self._iteration, self._written = point.whole.num_iterations, point

    def _write(self, letter: str, point: Point, seconds: float) -> None:
        share, whole, state = self._share, point.whole, point.solver
        before = 0.0 if self.found is None else self.found.seconds
        by_state = {"V": whole.values(), **({} if state is None else state.by_state)}
        arrays = {"history": point.record.table(), **({} if state is None else state.arrays)}
        sums: dict[str, Sums] = {}

        def prepare() -> None:
            self._folder.forget(letter)
            for name, array in by_state.items():
                reserve(self._folder.array(letter, name), array.dtype, (share.num_states,))
            for name, array in arrays.items():
                path = self._folder.array(letter, name)
                reserve(path, array.dtype, array.shape)
                sums[name] = write_slice(path, array, 0, array.shape)

        def write_own() -> None:
            for name, array in by_state.items():
                path = self._folder.array(letter, name)
                sums[name] = write_slice(path, array, share.lo, (share.num_states,))

        share.first(prepare)
        share.together(write_own)
        listed = {}
        for name, array in by_state.items():
            listed[name] = _entry("by state", array, share.num_states)
            listed[name]["sums"] = gathered_sums(share, sums[name])
        for name, array in arrays.items():
            listed[name] = _entry("whole", array, len(array)) | {"sums": sums.get(name)}
        step, claim = point.step, whole.claim
        sweep = None if step is None or step.sweep is None else step.sweep
        head = {
            "number": self._number + 1,
            "identity": self._identity,
            "functions": {name: function.trace() for name, function in self._functions.items()},
            "solver": self._kind,
            "run": {
                "num_iterations": whole.num_iterations,
                "num_sweeps": whole.num_sweeps,
                "num_updates": whole.num_updates,
                "seconds": before + seconds,
                "step": None
                if step is None
                else {
                    "sweep": None
                    if sweep is None
                    else [
                        sweep.residual_low,
                        sweep.residual_high,
                        sweep.low,
                        sweep.high,
                        sweep.in_place,
                    ],
                    "settled": step.settled,
                },
                "claim": None if claim is None else [claim.low, claim.high, claim.allowance],
                "judge": point.judge,
                "last": point.record.last,
                "stride": point.record.stride,
                "method": None if state is None else state.numbers,
            },
            "arrays": listed,
        }
        share.first(lambda: self._folder.write_head(letter, head))

    def words(self) -> str:
        """Say where the last checkpoint is, and of which iteration."""
        if self._iteration == 0:
            return f"there is no checkpoint in {self._folder.name}: no iteration was whole"
        failed = f" (no later one could be written: {self._failure})" if self._failure else ""
        return f"the checkpoint in {self._folder.name} is of iteration {self._iteration:,}{failed}"


def _entry(kind: str, array: NDArray[Any], num_entries: int) -> dict[str, Any]:
    return {"kind": kind, "dtype": array.dtype.str, "num_entries": num_entries}


def _shown(fact: Any) -> str:
    """Return a fact of a run as an error names it; digests by their beginning."""
    if fact is None:
        return "not given"
    text = str(fact)
    return text if len(text) <= 40 else f"{text[:16]}..."
