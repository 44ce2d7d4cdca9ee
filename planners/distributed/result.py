"""What each process gets of a run: its part, and what is the same for all."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aggmaze.layouts.layout import Layout
from aggmaze.memory import check_memory
from planners.engine import Parts
from planners.folders import write_folder
from planners.maps import StateMap
from planners.objective import Discounted
from planners.result import (
    KEYBOARD,
    TERMINATED,
    History,
    NotSolvedError,
    SolveResult,
    Status,
    header_of,
)
from planners.slices import Share

#: Of each state of a result in one array in each process: values, policy, whether it is terminal,
#: and as much again of these while they are put together or written.
BYTES_OF_WHOLE = 34


@dataclass(frozen=True, eq=False)
class PartResult:
    """The outcome of ``planners.solve(..., engine="petsc")`` in one process.

    Whatever is not an array over states is the same in all processes.

    Parameters
    ----------
    lo, hi : int
        The part has the states ``lo`` to ``hi - 1``.
    num_states : int
        States of all parts.
    values : ndarray of float, shape (hi - lo,)
        Costs-to-go of the part, as in a `SolveResult`.
    policy : ndarray of int, shape (hi - lo,)
        Greedy actions of the part, of the narrowest type that holds them.
    terminal : ndarray of bool, shape (hi - lo,)
    bound : float
        Certified: ``|values - V*| <= bound`` in every state of every part.
    policy_bound : float
        Certified: following the policy costs at most this much more than V*, from any state.
    status : Status
    message : str
        Why the run ended.
    method, reason : str
        The method used, and why "auto" chose it.
    objective : Discounted
    num_iterations, num_sweeps, num_updates, num_certificate_sweeps : int
        As in a `SolveResult`, of all states.
    seconds : float
        By the clock of the first process, without compiling and loading kernels.
    history : History
    allowance : float
        What of the bound is due to the rounding of backups.
    labels : ndarray of int, shape (hi - lo,), optional
        The last mega-states, for methods that aggregate.
    layout : Layout or StateMap, optional
        The map of the environment that was solved, if it has one.
    """

    lo: int
    hi: int
    num_states: int
    values: NDArray[np.float64]
    policy: NDArray[Any]
    terminal: NDArray[np.bool_]
    bound: float
    policy_bound: float
    status: Status
    message: str
    method: str
    reason: str
    objective: Discounted
    num_iterations: int
    num_sweeps: int
    num_updates: int
    num_certificate_sweeps: int
    seconds: float
    history: History
    allowance: float
    labels: NDArray[np.int32] | None
    _parts: Parts = field(repr=False)
    layout: Layout | StateMap | None = None

    def __repr__(self) -> str:
        return (
            f"PartResult({self.method}: {self.status}, states {self.lo:,} to {self.hi:,} of "
            f"{self.num_states:,}, bound {self.bound:.3g}, {self.num_updates} updates, "
            f"{self.seconds:.3g} s)"
        )

    @property
    def parts(self) -> Parts:
        """The processes that have the parts."""
        return self._parts

    @property
    def gamma(self) -> float:
        """The discount."""
        return self.objective.gamma

    @property
    def success(self) -> bool:
        """Whether the run ended as asked for: "converged" or "completed"."""
        return self.status.success

    def require(self) -> Self:
        """Return the result itself if it is a `success`.

        Raises
        ------
        NotSolvedError
            If it is not, in all processes; its ``result`` is this one.
        KeyboardInterrupt
            If Ctrl-C ended the run.
        """
        if self.success:
            return self
        if self.message.startswith((KEYBOARD, TERMINATED)):
            raise KeyboardInterrupt
        raise NotSolvedError(self)

    def store(self, path: str | os.PathLike[str]) -> None:
        """Write the result of all parts to a folder, as `SolveResult.store` does; called by all.

        Each process writes its part where it belongs in one file; the folder is one that all see.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        OSError
            In all processes, if the folder holds other things, or one of them cannot write to it.
            What else goes wrong in one of them is raised in all as well.
        """
        by_state = {"values": self.values, "policy": self.policy, "proof_ended": self.terminal}
        if self.labels is not None:
            by_state["labels"] = self.labels
        whole = {f"history_{name}": array for name, array in vars(self.history).items()}
        whole["proof_allowance"] = np.array([self.allowance])
        header = header_of(self) | {"arrays": " ".join([*by_state, *whole])}
        share = Share(self._parts, self.lo, self.hi, self.num_states)
        write_folder(path, header, by_state, whole, share)

    def gathered(self) -> SolveResult:
        """Return the result of all states, in every process: called by all, for small models.

        It takes some 30 bytes a state of all parts in each process.

        Raises
        ------
        MemoryError
            In all processes, if one of them has no room for that.
        """
        size = BYTES_OF_WHOLE * self.num_states
        self._parts.together(
            lambda: check_memory(size, f"the result of all {self.num_states:,} states")
        )
        whole = self._parts.gathered
        return SolveResult(
            values=whole(self.values),
            policy=whole(self.policy).astype(np.int64),
            bound=self.bound,
            policy_bound=self.policy_bound,
            status=self.status,
            message=self.message,
            method=self.method,
            reason=self.reason,
            objective=self.objective,
            num_iterations=self.num_iterations,
            num_sweeps=self.num_sweeps,
            num_updates=self.num_updates,
            num_certificate_sweeps=self.num_certificate_sweeps,
            seconds=self.seconds,
            history=self.history,
            labels=None if self.labels is None else whole(self.labels),
            layout=self.layout,
            proof={
                "allowance": np.array([self.allowance]),
                "ended": whole(self.terminal),
            },
        )
