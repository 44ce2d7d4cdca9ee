"""What a planner returns: values, a policy, a bound, and how it got there."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aggmaze.formats.archive import Expected, open_archive, write_archive

_FORMAT = "aggmaze result 1"


class Status(StrEnum):
    """How a run ended."""

    CONVERGED = "converged"  # the tolerance is met
    COMPLETED = "completed"  # a budget that is the method's normal end is used up
    STOPPED_SHORT = "stopped_short"  # a tolerance was asked for and is not met
    INTERRUPTED = "interrupted"  # Ctrl-C, or the callback asked to stop

    @property
    def success(self) -> bool:
        """Whether the run ended as asked for: the tolerance met, or the budget used up."""
        return self in (Status.CONVERGED, Status.COMPLETED)


#: Message of a run that Ctrl-C ended.
KEYBOARD = "interrupted from the keyboard"


class NotSolvedError(RuntimeError):
    """A result was insisted on, and the run did not reach what was asked for.

    Parameters
    ----------
    result : SolveResult
        What there is.
    """

    def __init__(self, result: SolveResult) -> None:
        super().__init__(
            f"{result.method} did not reach what was asked for ({result.status}: "
            f"{result.message}); its values are within {result.bound:.3g} of the optimum"
        )
        self.result = result

    def __reduce__(self) -> tuple[type[NotSolvedError], tuple[SolveResult]]:
        return type(self), (self.result,)


@dataclass(frozen=True, eq=False)
class History:
    """One entry an iteration; beyond 100,000 of them one in 2, 4, 8, ... and the last.

    Each array has the shape (N,), N the number of entries.

    Parameters
    ----------
    iteration : ndarray of int
        Which iteration it is, counted from 1.
    num_updates : ndarray of int
        Backups made so far, one T_s each.
    seconds : ndarray of float
        Time taken so far, without compiling and loading kernels.
    num_megastates : ndarray of int
        K in an aggregated iteration, 0 in a global one.
    residual : ndarray of float
        Sup norm of TV - V where the iteration was a full sweep, else NaN.
    bound : ndarray of float
        Certified bound where one was computed, else NaN.
    """

    iteration: NDArray[np.int64]
    num_updates: NDArray[np.int64]
    seconds: NDArray[np.float64]
    num_megastates: NDArray[np.int64]
    residual: NDArray[np.float64]
    bound: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.num_updates)

    def __repr__(self) -> str:
        text = f"{self.iteration[-1] if len(self) else 0:,} iterations"
        if len(self):
            text += f", {self.num_updates[-1]:,} updates, {self.seconds[-1]:.3g} s"
        bounds = self.bound[~np.isnan(self.bound)]
        if len(bounds):
            text += f", last bound {bounds[-1]:.3g}"
        return f"History({text})"


@dataclass(frozen=True, eq=False)
class SolveResult:
    """The outcome of `planners.solve`.

    Parameters
    ----------
    values : ndarray of float, shape (S,)
        Costs-to-go.  Of a run of an exact method to a tolerance the middle of the certified
        interval; of a given number of iterations, and of the aggregation methods, exactly the V
        that the method defines.
    policy : ndarray of int, shape (S,)
        Greedy actions; ties and near-ties that the certificate leaves open go to the action that
        makes progress towards a terminal state.
    bound : float
        Certified: ``|values - V*| <= bound`` in every state.
    policy_bound : float
        Certified: following ``policy`` costs at most this much more than V*, from any state.
    status : Status
    message : str
        Why the run ended.
    method : str
        The method used, also where "auto" chose it.
    reason : str
        Why "auto" chose it; empty where the caller did.
    gamma : float
    num_iterations : int
    num_sweeps : int
        How often the method went over all states: Bellman and Gauss-Seidel sweeps, sweeps by a
        policy, and products with its matrix in a linear solver.
    num_updates : int
        Backups that the method made, one T_s each.
    num_certificate_sweeps : int
        Full sweeps made only to certify, counted nowhere else.
    seconds : float
        Wall-clock time without compiling and loading kernels.
    history : History
    labels : ndarray of int, shape (S,), optional
        The last mega-states, for methods that aggregate.
    """

    values: NDArray[np.float64]
    policy: NDArray[np.int64]
    bound: float
    policy_bound: float
    status: Status
    message: str
    method: str
    reason: str
    gamma: float
    num_iterations: int
    num_sweeps: int
    num_updates: int
    num_certificate_sweeps: int
    seconds: float
    history: History
    labels: NDArray[np.int32] | None = None

    def __repr__(self) -> str:
        return (
            f"SolveResult({self.method}: {self.status}, {len(self.values)} states, "
            f"bound {self.bound:.3g}, {self.num_updates} updates, {self.seconds:.3g} s)"
        )

    @property
    def success(self) -> bool:
        """Whether the run ended as asked for: "converged" or "completed"."""
        return self.status.success

    def require(self) -> Self:
        """Return the result itself if it is a `success`.

        Raises
        ------
        NotSolvedError
            If it is not; its ``result`` is this one.
        KeyboardInterrupt
            If Ctrl-C ended the run: whoever insists on the result cannot go on.
        """
        if self.success:
            return self
        if self.message == KEYBOARD:
            raise KeyboardInterrupt
        raise NotSolvedError(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to an ``.npz`` file, whole or not at all.

        The file holds plain arrays and needs no pickle.
        """
        arrays: dict[str, NDArray[Any]] = {"values": self.values, "policy": self.policy}
        if self.labels is not None:
            arrays["labels"] = self.labels
        for name, array in vars(self.history).items():
            arrays[f"history_{name}"] = array
        write_archive(path, _FORMAT, {name: getattr(self, name) for name in _SCALARS}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a result that `save` wrote.

        Raises
        ------
        ValueError
            If the file is not such a result, or damaged.
        FileNotFoundError, IsADirectoryError
            If that is what is there.
        MemoryError
            If the result needs more memory than is available.
        """
        with open_archive(path, _FORMAT) as archive:
            scalars: dict[str, Any] = {
                name: archive.scalar(name, _KINDS.get(cls.__annotations__[name], str))
                for name in _SCALARS
            }
            scalars["status"] = Status(scalars["status"])
            per_state = archive.shape("values", 1)
            expected: dict[str, Expected] = {
                "values": (_FLOAT, per_state),
                "policy": (_INTEGER, per_state),
            }
            if "labels" in archive:
                expected["labels"] = (_INTEGER, per_state)
            # Before histories thinned themselves out they did not number their entries.
            counted = "history_iteration" in archive
            entries = archive.shape("history_seconds", 1)
            if entries[0] > scalars["num_iterations"] or not (
                counted or entries[0] == scalars["num_iterations"]
            ):
                raise ValueError(
                    f"history_seconds has {entries[0]} entries for {scalars['num_iterations']} "
                    "iterations"
                )
            for field in fields(History):
                if field.name != "iteration" or counted:
                    whole = field.name.startswith(("num_", "iteration"))
                    expected[f"history_{field.name}"] = (_INTEGER if whole else _FLOAT, entries)
            arrays = archive.read(expected)
            if not counted:
                arrays["history_iteration"] = np.arange(1, entries[0] + 1)
            history = History(**{f.name: arrays.pop(f"history_{f.name}") for f in fields(History)})
            return cls(history=history, **scalars | arrays)


_FLOAT, _INTEGER = ("float64",), ("int32", "int64")
_KINDS: dict[str, type] = {"float": float, "int": int}
_SCALARS = tuple(
    f.name for f in fields(SolveResult) if f.name not in ("values", "policy", "history", "labels")
)
