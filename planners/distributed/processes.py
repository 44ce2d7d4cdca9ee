"""The processes that share the states of a model, and what is said among them by MPI."""

from __future__ import annotations

import functools
import math
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

# Seconds in which all processes are expected to come to the same exception; and those in which
# they are expected to end by it, where nothing is lost but what the others have to say.
_PATIENCE, _LAST_PATIENCE = 10.0, 2.0
# Launchers drop what they have not passed on when a program is ended.
_SECONDS_TO_PRINT = 0.5
# Numbers that are added up by one call: MPI counts them by 32 bits.
_AT_ONCE = 1 << 24
# Exit code of what Ctrl-C ends, as shells have it.
_INTERRUPTED = 130

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
        # For what nobody waits for on the other: failures in calls, and those that end programs.
        self._failures, self._ends = self.comm.Dup(), self.comm.Dup()
        self.rank: int = self.comm.rank
        self.size: int = self.comm.size
        if self.size > 1:
            self._end_with_one()

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

    def added_up(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sums of each number over the processes before this one, and over all.

        Parameters
        ----------
        numbers : ndarray of int64, shape (N,)
            Of one shape in all processes.

        Returns
        -------
        tuple of two ndarrays of int64, shape (N,)
        """
        before = np.zeros_like(numbers)
        if self.size == 1:
            return before, numbers
        total = np.empty_like(numbers)
        for first in range(0, len(numbers), _AT_ONCE):
            piece = slice(first, first + _AT_ONCE)
            self.comm.Exscan(numbers[piece], before[piece], op=self._MPI.SUM)
            self.comm.Allreduce(numbers[piece], total[piece], op=self._MPI.SUM)
        if self.rank == 0:
            before[:] = 0  # of which MPI says nothing
        return before, total

    def union(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return all numbers that some process has, increasing, each once.

        They are put together two by two: no process makes room for the arrays of all.

        Parameters
        ----------
        numbers : ndarray of float, shape (N,)
            N may differ between processes.
        """
        found = np.unique(numbers)
        return found if self.size == 1 else self.comm.allreduce(found, op=np.union1d)

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
            if self.size > 1 and not self._all_come(self._failures, _PATIENCE):
                print(self._which, traceback.format_exc(), sep="\n", end="", file=sys.stderr)
                self._end_all(1)
            raise

    @property
    def _which(self) -> str:
        return f"process {self.rank} of {self.size}:"

    def _end_with_one(self) -> None:
        """See to it that an exception which ends this process ends all of them.

        The others may wait for this one wherever the program has them do something together.  As
        ``python -m mpi4py`` does, but that where all of them end so, each says why.
        """
        usual = sys.excepthook

        def hook(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            print(self._which, file=sys.stderr)
            usual(kind, error, trace)
            if not self._all_come(self._ends, _LAST_PATIENCE):
                self._end_all(_INTERRUPTED if issubclass(kind, KeyboardInterrupt) else 1)

        sys.excepthook = hook

    def _end_all(self, code: int) -> None:
        """End all processes, when what was printed has had time to get through ``mpiexec``."""
        sys.stderr.flush()
        time.sleep(_SECONDS_TO_PRINT)
        self.comm.Abort(code)

    def _all_come(self, communicator: Any, patience: float) -> bool:
        """Return whether all processes come here within some seconds."""
        request = communicator.Ibarrier()
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if request.Test():
                return True
            time.sleep(0.01)
        return False


@functools.cache
def world() -> Processes:
    """Return the processes: once, since communicators are few."""
    return Processes()


def all_or_none() -> AbstractContextManager[None]:
    """Return `Processes.all_or_none` of the `world`; nothing of the kind without PETSc.

    Whoever needs PETSc then says that it is missing, after what else is wrong.
    """
    try:
        return world().all_or_none()
    except ModuleNotFoundError:
        return nullcontext()


def _portable(error: BaseException) -> BaseException:
    """Return an exception that other processes can read: itself, or one that quotes it."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:
        pass
    # What is caught in one process must be caught in all.
    if isinstance(error, OSError):
        return OSError(str(error))
    return RuntimeError(f"{type(error).__name__}: {error}")
