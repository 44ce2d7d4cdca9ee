"""What a planner returns: values, a policy, a bound, and how it got there."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from planners.files import atomic_file

_FORMAT = "aggmaze result 1"


class Status(StrEnum):
    """How a run ended."""

    CONVERGED = "converged"  # the tolerance is met
    COMPLETED = "completed"  # a budget that is the method's normal end is used up
    STOPPED_SHORT = "stopped_short"  # a tolerance was asked for and is not met
    INTERRUPTED = "interrupted"  # Ctrl-C, or the callback asked to stop


@dataclass(frozen=True, eq=False)
class History:
    """One entry an iteration, each array of shape (num_iterations,).

    Parameters
    ----------
    num_updates : ndarray of int
        Backups made so far.
    seconds : ndarray of float
        Time taken so far, without the compilation of kernels.
    num_megastates : ndarray of int
        K in an aggregated iteration, 0 in a global one.
    residual : ndarray of float
        Sup norm of TV - V where the iteration was a full sweep, else NaN.
    bound : ndarray of float
        Certified bound where one was computed, else NaN.
    """

    num_updates: NDArray[np.int64]
    seconds: NDArray[np.float64]
    num_megastates: NDArray[np.int64]
    residual: NDArray[np.float64]
    bound: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.num_updates)


@dataclass(frozen=True, eq=False)
class SolveResult:
    """The outcome of `planners.solve`.

    Parameters
    ----------
    values : ndarray of float, shape (S,)
        Costs-to-go.  For exact methods the middle of the certified interval; for the aggregation
        methods exactly the V that they define.
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
    gamma : float
    num_iterations : int
    num_sweeps : int
        Full sweeps that the method made.
    num_updates : int
        Backups that the method made, one T_s each.
    num_certificate_sweeps : int
        Full sweeps made only to certify, counted nowhere else.
    seconds : float
        Wall-clock time without the compilation of kernels.
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to an ``.npz`` file, whole or not at all.

        The file holds plain arrays and needs no pickle.
        """
        arrays: dict[str, Any] = {"values": self.values, "policy": self.policy}
        if self.labels is not None:
            arrays["labels"] = self.labels
        for name, array in vars(self.history).items():
            arrays[f"history_{name}"] = array
        header = {name: getattr(self, name) for name in _SCALARS}
        arrays["header"] = np.array(json.dumps({"format": _FORMAT, **header}))
        with atomic_file(path) as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a result that `save` wrote.

        Raises
        ------
        ValueError
            If the file is not such a result, or damaged.
        """
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except (ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
            raise ValueError(f"{os.fspath(path)!r} is not a saved result: {error}") from None
        try:
            header = json.loads(str(arrays["header"]))
            if header["format"] != _FORMAT:
                raise ValueError(f"its format is {header['format']!r}, not {_FORMAT!r}")
            history = History(**{f.name: arrays[f"history_{f.name}"] for f in fields(History)})
            result = cls(
                values=arrays["values"],
                policy=arrays["policy"],
                labels=arrays.get("labels"),
                history=history,
                **{name: header[name] for name in _SCALARS} | {"status": Status(header["status"])},
            )
            result._check_arrays()
        except KeyError as error:
            raise ValueError(
                f"{os.fspath(path)!r} is not a saved result: {error} is missing"
            ) from None
        except (TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)!r} is not a saved result: {error}") from None
        return result

    def _check_arrays(self) -> None:
        num_states = self.values.shape
        if self.values.ndim != 1 or self.values.dtype != np.float64:
            raise ValueError(f"values are {self.values.dtype} of shape {num_states}")
        per_state = {"policy": self.policy, "labels": self.labels}
        for name, array in per_state.items():
            if array is not None and (array.shape != num_states or array.dtype.kind != "i"):
                raise ValueError(f"{name} are {array.dtype} of shape {array.shape}")
        for name, array in vars(self.history).items():
            if array.shape != (self.num_iterations,):
                raise ValueError(f"history.{name} has shape {array.shape}")


_SCALARS = tuple(
    f.name for f in fields(SolveResult) if f.name not in ("values", "policy", "history", "labels")
)
