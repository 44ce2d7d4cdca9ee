"""What a planner returns: values, a policy, a bound, and how it got there."""

from __future__ import annotations

import json
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Self

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
        with Path(path).open("rb") as file:
            try:
                return cls._read(file)
            except _DAMAGED as error:
                reason = (str(error) or type(error).__name__).splitlines()[0]
                raise ValueError(f"{os.fspath(path)!r} is not a saved result: {reason}") from None

    @classmethod
    def _read(cls, file: IO[bytes]) -> Self:
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it holds a single array")
        arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(_item(arrays, "header")))
        if not isinstance(header, dict) or header.get("format") != _FORMAT:
            found = header.get("format") if isinstance(header, dict) else None
            raise ValueError(f"its format is {found!r}, not {_FORMAT!r}")
        scalars = {name: _item(header, name) for name in _SCALARS}
        for name, value in scalars.items():
            kind = _KINDS.get(cls.__annotations__[name], str)
            if isinstance(value, bool) or not isinstance(value, kind):
                raise ValueError(f"{name} is {value!r}")
        result = cls(
            values=_item(arrays, "values"),
            policy=_item(arrays, "policy"),
            labels=arrays.get("labels"),
            history=History(
                **{f.name: _item(arrays, f"history_{f.name}") for f in fields(History)}
            ),
            **scalars | {"status": Status(scalars["status"])},
        )
        result._check_arrays()
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
            kind = "i" if name.startswith("num_") else "f"
            if array.shape != (self.num_iterations,) or array.dtype.kind != kind:
                raise ValueError(f"history.{name} is {array.dtype} of shape {array.shape}")


def _item(mapping: Mapping[str, Any], name: str) -> Any:
    if name not in mapping:
        raise ValueError(f"{name} is missing")
    return mapping[name]


# What reading a damaged archive may raise, in numpy, zipfile and json.
_DAMAGED = (
    ValueError,
    TypeError,
    AttributeError,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
_KINDS: dict[str, type | tuple[type, ...]] = {"float": (float, int), "int": int}
_SCALARS = tuple(
    f.name for f in fields(SolveResult) if f.name not in ("values", "policy", "history", "labels")
)
