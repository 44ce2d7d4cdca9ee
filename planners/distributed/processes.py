"""The processes that share the states of a model, and what is said among them by MPI."""

from __future__ import annotations

import functools
import math
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

# Seconds in which all processes are expected to come to the same exception.
_PATIENCE = 10.0

_MISSING = (
    'engine="petsc" needs petsc4py and mpi4py: {problem}; on Python 3.12 or newer: '
    'pip install "aggmaze[distributed]"; docs/distributed.md has the other ways'
)


def petsc() -> Any:
    """Return the module ``petsc4py.PETSc``, initialised.

    Raises
    ------
    ModuleNotFoundError
        If petsc4py or mpi4py is not installed, with the name of the extra.
    """
    # The wheel that brings PETSc makes its petsc4py known by being imported first.
    with suppress(ModuleNotFoundError):
        import dolfinx_solver  # noqa: F401
    try:
        from mpi4py import MPI  # noqa: F401  (which says first if it is missing)
        from petsc4py import PETSc
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_MISSING.format(problem=f"there is no {error.name}")) from None
    except ImportError as error:
        raise ModuleNotFoundError(_MISSING.format(problem=f"they do not load ({error})")) from None
    return PETSc


class Processes:
    """All that ``mpiexec`` started, in order; `planners.engine.Parts` of a model's states.

    Methods are called by all of them, or none goes on.
    """

    def __init__(self) -> None:
        self.PETSc = petsc()
        from mpi4py import MPI

        self._MPI = MPI
        self.comm = self.PETSc.COMM_WORLD.tompi4py()
        # For what nobody waits for on the other.
        self._failures = self.comm.Dup()
        self.rank: int = self.comm.rank
        self.size: int = self.comm.size

    def __repr__(self) -> str:
        return f"Processes({self.rank} of {self.size})"

    @property
    def index_bits(self) -> int:
        """Bits of the numbers by which this PETSc counts states and entries: 32 or 64."""
        return 8 * np.dtype(self.PETSc.IntType).itemsize

    def on_this_machine(self) -> int:
        """Return how many of the processes share the memory of this machine."""
        local = self.comm.Split_type(self._MPI.COMM_TYPE_SHARED)
        size: int = local.size
        local.Free()
        return size

    def gathered(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return the arrays of all processes one after another, along the first axis.

        Parameters
        ----------
        part : ndarray
            Of one type, and one shape but for the first axis, in all processes.
        """
        if self.size == 1:
            return part.copy()
        part = np.ascontiguousarray(part)
        lengths = self.comm.allgather(len(part))
        whole = np.empty((sum(lengths), *part.shape[1:]), dtype=part.dtype)
        width = part.dtype.itemsize * math.prod(part.shape[1:])
        # Records of one row each, so that no count is larger than the number of rows.
        row = self._MPI.BYTE.Create_contiguous(width).Commit()
        try:
            self.comm.Allgatherv([part, len(part), row], [whole, lengths, row])
        finally:
            row.Free()
        return whole

    def largest(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest of each number over all processes, NaN where one has a NaN.

        Maxima do not round, so that the order does not matter; but what MPI makes of a NaN is not
        said, so that NaN goes apart.

        Parameters
        ----------
        numbers : ndarray of float, shape (N,)
        """
        if self.size == 1:
            return numbers
        bad = np.isnan(numbers)
        sent = np.concatenate([np.where(bad, -np.inf, numbers), bad])
        found = np.empty_like(sent)
        self.comm.Allreduce(sent, found, op=self._MPI.MAX)
        return np.where(found[len(numbers) :] > 0, np.nan, found[: len(numbers)])

    def total(self, count: int) -> int:
        """Return the sum of a whole number over all processes."""
        return int(self.comm.allreduce(int(count)))

    def any(self, flag: bool) -> bool:
        """Return whether a flag is set in some process."""
        return bool(self.comm.allreduce(bool(flag), op=self._MPI.LOR))

    def first(self, thing: T) -> T:
        """Return what the first process has."""
        return self.comm.bcast(thing, root=0)

    def together(self, function: Callable[[], T]) -> T:
        """Call a function that asks nothing of the others; what fails in one, fails in all.

        Parameters
        ----------
        function : callable

        Returns
        -------
        object
            What it returns here.

        Raises
        ------
        BaseException
            That of the first process in which it was raised.
        """
        if self.size == 1:
            return function()
        failure: BaseException | None = None
        result: T | None = None
        try:
            result = function()
        except BaseException as error:
            failure = error
        failures = self.comm.allgather(None if failure is None else _portable(failure))
        for rank, told in enumerate(failures):
            if told is not None:
                raise failure if rank == self.rank and failure is not None else told
        return result  # type: ignore[return-value]

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Let an exception through if all processes have one, and end all of them otherwise.

        What goes wrong in one process alone would let the others wait for it for ever.  They are
        waited for a while; then the exception is printed, and MPI ends the program.
        """
        try:
            yield
        except BaseException:
            if self.size > 1 and not self._all_come():
                print(f"process {self.rank} of {self.size}:", file=sys.stderr)
                traceback.print_exc()
                sys.stderr.flush()
                self.comm.Abort(1)
            raise

    def _all_come(self) -> bool:
        """Return whether all processes come here within `_PATIENCE`."""
        request = self._failures.Ibarrier()
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if request.Test():
                return True
            time.sleep(0.01)
        return False


@functools.cache
def world() -> Processes:
    """Return the processes: once, since communicators are few."""
    return Processes()


def _portable(error: BaseException) -> BaseException:
    """Return an exception that other processes can read: itself, or one that quotes it."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:
        pass
    return RuntimeError(f"{type(error).__name__}: {error}")
