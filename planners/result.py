"""What a planner returns: values, a policy, a bound, and how it got there."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.formats.archive import Archive, Expected, open_archive, write_archive
from aggmaze.layouts.layout import Layout
from aggmaze.names import Names, as_names, index_of, names_from_bytes, names_to_bytes
from planners.engine import WHOLE
from planners.folders import ResultFolder, write_folder
from planners.maps import StateMap
from planners.objective import (
    INFINITE,
    AverageCost,
    Discounted,
    FiniteHorizon,
    Objective,
    TotalCost,
)
from planners.proof import FORMAT as CERTIFICATE_FORMAT
from planners.proof import certificate_of
from planners.slices import Share

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


#: How the message of a run begins that Ctrl-C, or a scheduler, ended.
KEYBOARD, TERMINATED = "interrupted from the keyboard", "terminated by SIGTERM"


class NotSolvedError(RuntimeError):
    """A result was insisted on, and the run did not reach what was asked for.

    Parameters
    ----------
    result : SolveResult, or the part of one that a process has
        What there is.
    """

    def __init__(self, result: Any) -> None:
        super().__init__(
            f"{result.method} did not reach what was asked for ({result.status}: "
            f"{result.message}); its values are within {result.bound:.3g} of the optimum"
        )
        self.result = result

    def __reduce__(self) -> tuple[type[NotSolvedError], tuple[Any]]:
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
    """The outcome of `planners.solve`, whatever the objective.

    Parameters
    ----------
    values : ndarray of float, shape (S,), or (T + 1, S) for a `FiniteHorizon`
        What the objective is about, in each state: costs-to-go, or for `AverageCost` the mean cost
        of a step, the gain.  Of a discounted run of an exact method to a tolerance the middle of
        the certified interval; of a given number of iterations, and of the aggregation methods,
        exactly the V that the method defines.  For a `FiniteHorizon` ``values[t]`` is what is left
        to pay before step t, and ``values[T]`` are its terminal costs.  Infinite where a
        `TotalCost` is.
    policy : ndarray of int, shape (S,), or (T, S) for a `FiniteHorizon`
        Greedy actions; ties and near-ties that the certificate leaves open go to the action that
        makes progress towards a terminal state.
    bound : float
        Certified: ``|values - V*| <= bound`` in every state where V* is finite.
    policy_bound : float
        Certified: following ``policy`` costs at most this much more than V*, from any state where
        V* is finite.
    status : Status
    message : str
        Why the run ended.
    method : str
        The method used, also where "auto" chose it.
    reason : str
        Why "auto" chose it; empty where the caller did.
    objective : Objective
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
    ends : tuple of two ndarrays of float, shape (S,), optional
        What `lower` and `upper` return, where more is known than ``bound`` says.
    bias : ndarray of float, shape (S,), optional
        For `AverageCost`: what starting in a state costs more, in all, than the gain says.
    proof : dict of str to ndarray, optional
        What `certificate` writes beside all this.
    state_names, action_names : tuple of hashable, optional
        What the model calls states and actions; `value_of`, `action_of` and `to_dict` tell values
        and actions by them.
    layout : Layout or StateMap, optional
        The map of the environment that was solved, if it has one, for pictures: of Gymnasium's
        grids and of cells with which state lies where.  `save` leaves it out.
    """

    values: NDArray[np.float64]
    policy: NDArray[np.int64]
    bound: float
    policy_bound: float
    status: Status
    message: str
    method: str
    reason: str
    objective: Objective
    num_iterations: int
    num_sweeps: int
    num_updates: int
    num_certificate_sweeps: int
    seconds: float
    history: History
    labels: NDArray[np.int32] | None = None
    ends: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    bias: NDArray[np.float64] | None = None
    proof: dict[str, NDArray[Any]] | None = None
    state_names: tuple[Hashable, ...] | None = None
    action_names: tuple[Hashable, ...] | None = None
    layout: Layout | StateMap | None = None

    def __repr__(self) -> str:
        return (
            f"SolveResult({self.method}: {self.status}, {self.values.shape[-1]} states, "
            f"bound {self.bound:.3g}, {self.num_updates} updates, {self.seconds:.3g} s)"
        )

    def _repr_html_(self) -> str:
        from planners.cards import result_html  # pictures, which few processes draw

        return result_html(self)

    @property
    def gamma(self) -> float:
        """The discount of the objective; 1 where it has none."""
        return self.objective.gamma

    @property
    def lower(self) -> NDArray[np.float64]:
        """Certified: ``lower <= V*`` in every state; of the shape of ``values``."""
        return (
            np.nextafter(self.values - self.bound, -np.inf) if self.ends is None else self.ends[0]
        )

    @property
    def upper(self) -> NDArray[np.float64]:
        """Certified: ``V* <= upper`` in every state; of the shape of ``values``."""
        if self.ends is not None:
            return self.ends[1]
        return np.nextafter(self.values + self.bound, np.inf)

    @property
    def infinite(self) -> NDArray[np.bool_]:
        """Where the least cost is without limit; of the shape of ``values``."""
        return np.isposinf(self.values)

    @property
    def gain(self) -> NDArray[np.float64]:
        """The mean cost of a step in the long run, shape (S,), of an `AverageCost`."""
        if not isinstance(self.objective, AverageCost):
            raise AttributeError(f"a result of {self.objective} has no gain: AverageCost() has")
        return self.values

    def value_of(self, state: Hashable, step: int = 0) -> float:
        """Return the value of a state, in ``values``, by its name, or its index if it has none.

        Parameters
        ----------
        state : hashable
        step : int
            Of a `FiniteHorizon`: before which step.

        Raises
        ------
        ValueError, TypeError
            If there is no such state, or no such step.
        """
        return float(self._at(self.values, state, step))

    def action_of(self, state: Hashable, step: int = 0) -> Hashable:
        """Return the action of the policy in a state, both by name where they have names.

        In a terminal state, where every action is the same step in place, it is one of them.

        Parameters
        ----------
        state : hashable
        step : int
            Of a `FiniteHorizon`: which step.

        Raises
        ------
        ValueError, TypeError
            If there is no such state, or no such step.
        """
        action = int(self._at(self.policy, state, step))
        return action if self.action_names is None else self.action_names[action]

    def to_dict(self, step: int = 0) -> dict[Hashable, tuple[float, Hashable]]:
        """Return the value and the action of each state, all by name where they have names.

        Parameters
        ----------
        step : int
            Of a `FiniteHorizon`: before which step.
        """
        values, policy = self._step(self.values, step), self._step(self.policy, step)
        states = range(len(values)) if self.state_names is None else self.state_names
        names: Any = self.action_names
        chosen = policy.tolist() if names is None else [names[action] for action in policy.tolist()]
        return dict(zip(states, zip(values.tolist(), chosen, strict=True), strict=True))

    def _step(self, array: NDArray[Any], step: int) -> NDArray[Any]:
        """Return the part of an array that is of a step."""
        if array.ndim == 2:
            part: NDArray[Any] = array[check_integer("step", step, below=len(array))]
            return part
        if step != 0:
            raise ValueError(f"step must be 0 where the policy is that of every step, got {step!r}")
        return array

    def _at(self, array: NDArray[Any], state: Hashable, step: int) -> Any:
        names = as_names("state_names", self.state_names)
        return self._step(array, step)[index_of("state", state, names, self.values.shape[-1])]

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
        if self.message.startswith((KEYBOARD, TERMINATED)):
            raise KeyboardInterrupt
        raise NotSolvedError(self)

    def plot(self, source: Any = None, what: str | None = None, **options: Any) -> Any:
        """Draw the result: values as colours, the policy as arrows, the greedy path.

        Parameters
        ----------
        source : gymnasium.Env, Model, Layout, or what else `planners.as_model` takes, optional
            What was solved.  Without it the picture is that of the convergence.
        what : str, optional
            Another picture: "policy", "q_values", "megastates", "path", "action_gaps",
            "occupancy", "slices", "graph" or "convergence".
        **options
            ``ax``, ``title`` and more, as for the function of that name in `planners.plotting`;
            ``step`` of a `FiniteHorizon`; ``start``, the state where the path starts.

        Returns
        -------
        matplotlib.axes.Axes, or ndarray of Axes
            An array where there are several panels.

        Raises
        ------
        ValueError, TypeError
            If there is no such picture, or the source is not what was solved.
        ModuleNotFoundError
            Without matplotlib: it says what to install.
        """
        # Pictures stand above results, and take matplotlib.
        from planners.plotting.overview import plot_result

        return plot_result(self, source, what, **options)

    def certificate(self, path: str | os.PathLike[str]) -> None:
        """Write what a stranger needs to check the result, whole or not at all.

        The file is an ``.npz`` archive of plain arrays, ``lower`` and ``upper`` among them, with a
        text in JSON, ``header``, that says what each of them claims.  With the model in a file
        (`aggmaze.save_model`) ``scripts/check_certificate.py``, which needs numpy only, says
        whether that is proved.

        Raises
        ------
        ValueError
            If the result proves nothing, such as one whose bound is infinite.
        """
        bounds = self.bound, self.policy_bound
        head, arrays = certificate_of(
            self.objective, self.values, self.policy, bounds, self.ends, self.proof or {}
        )
        write_archive(path, CERTIFICATE_FORMAT, head, arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to an ``.npz`` file, whole or not at all.

        The file holds plain arrays and needs no pickle.  A function that gave the stages of a
        `FiniteHorizon` is not in it.

        Raises
        ------
        ValueError
            If a state or action has a name that a file cannot hold (see `aggmaze.save_model`).
        """
        write_archive(path, _FORMAT, *self._contents())

    def store(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a folder of plain arrays, to be read block by block.

        There is a ``.npy`` file for each array and a head in JSON, which is written last.
        `planners.open_result` maps them into memory.  A result that the folder held is replaced
        when the new one is whole; until then it is there, and takes its room beside it.

        Parameters
        ----------
        path : path-like
            A folder, made where there is none.

        Raises
        ------
        OSError
            If the folder holds other things, or cannot be written to, or there is no room.  What it
            holds is then as it was.
        ValueError
            If a state or action has a name that a file cannot hold (see `aggmaze.save_model`).
        """
        header, arrays = self._contents()
        write_folder(path, header, {}, arrays, Share.of(WHOLE, self.values.shape[-1]))

    def _contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what files hold: numbers and texts, and arrays."""
        arrays: dict[str, NDArray[Any]] = {"values": self.values, "policy": self.policy}
        if self.labels is not None:
            arrays["labels"] = self.labels
        if self.ends is not None:
            arrays["lower"], arrays["upper"] = self.ends
        if self.bias is not None:
            arrays["bias"] = self.bias
        for name, array in (self.proof or {}).items():
            arrays[f"proof_{name}"] = array
        for name in _NAMES:
            names = getattr(self, name)
            if names is not None:
                arrays[name] = names_to_bytes(name, names)
        for name, array in vars(self.history).items():
            arrays[f"history_{name}"] = array
        header = header_of(self)
        if isinstance(self.objective, TotalCost):
            header["dead_ends"] = str(self.objective.dead_ends)
        elif isinstance(self.objective, FiniteHorizon):
            header["steps"] = self.objective.steps
            if self.objective.terminal_costs is not None:
                arrays["terminal_costs"] = np.asarray(self.objective.terminal_costs)
        # So that none of those that may be absent gets lost unnoticed.
        header["arrays"] = " ".join(arrays)
        return header, arrays

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
            return cls.read(archive)

    @classmethod
    def read(cls, archive: Archive | ResultFolder) -> Self:
        """Return what an open file or folder holds, as far as it is what it should be.

        Parameters
        ----------
        archive : Archive or ResultFolder
        """
        scalars: dict[str, Any] = {
            name: archive.scalar(name, _KINDS.get(SolveResult.__annotations__[name], str))
            for name in _SCALARS
        }
        scalars["status"] = Status(scalars["status"])
        expected = _expected_arrays(archive, scalars["num_iterations"])
        arrays = archive.read(expected)
        if "history_iteration" not in arrays:
            count = len(arrays["history_seconds"])
            arrays["history_iteration"] = np.arange(1, count + 1)
        history = History(**{f.name: arrays.pop(f"history_{f.name}") for f in fields(History)})
        proof = {name: arrays.pop(f"proof_{name}") for name in _PROOFS if f"proof_{name}" in arrays}
        ends = (arrays.pop("lower"), arrays.pop("upper")) if "lower" in arrays else None
        objective = _read_objective(archive, arrays.pop("terminal_costs", None))
        names = {name: arrays.pop(name, None) for name in _NAMES}
        action_names = _names("action_names", names)
        policy = arrays["policy"]
        if (
            action_names is not None
            and policy.size
            and not 0 <= policy.min() <= policy.max() < len(action_names)
        ):
            raise ValueError(
                f"policy names an action outside [0, {len(action_names)}), those with names"
            )
        return cls(
            objective=objective,
            history=history,
            ends=ends,
            proof=proof or None,
            state_names=_names("state_names", names, arrays["values"].shape[-1]),
            action_names=action_names,
            **scalars | arrays,
        )


def header_of(result: Any) -> dict[str, Any]:
    """Return the numbers and texts that files hold of a result, or of a part of one."""
    objective = _KINDS_OF_OBJECTIVE[type(result.objective)]
    scalars = {name: getattr(result, name) for name in _SCALARS}
    return {**scalars, "gamma": result.gamma, "objective": objective}


_FLOAT, _INTEGER = ("float64",), ("int32", "int64")
# Of several processes, policies have the narrowest type that holds them.
_ACTIONS = ("int8", "int16", *_INTEGER)
_KINDS: dict[str, type] = {"float": float, "int": int}
_NAMES = ("state_names", "action_names")
_ARRAYS = ("values", "policy", "history", "labels", "ends", "bias", "proof", *_NAMES)
_OTHERS = ("objective", "layout", *_ARRAYS)
_SCALARS = tuple(f.name for f in fields(SolveResult) if f.name not in _OTHERS)
# Objectives in the header; files from before there were others name none.
_KINDS_OF_OBJECTIVE: dict[type, str] = {
    Discounted: "discounted",
    TotalCost: "total",
    FiniteHorizon: "horizon",
    AverageCost: "average",
}
# Arrays that a proof may have: their types, and whether they have a number a state, one a step and
# one for the end, or one in all.
_PROOFS = {
    "allowance": (_FLOAT, "one"),
    "ended": (("bool",), "state"),
    "errors": (_FLOAT, "step"),
    "steps": (_FLOAT, "state"),
    "layers": (_INTEGER, "state"),
    "gain_lower": (_FLOAT, "state"),
    "bias_lower": (_FLOAT, "state"),
    "gain_upper": (_FLOAT, "state"),
    "bias_upper": (_FLOAT, "state"),
}


def _expected_arrays(archive: Archive | ResultFolder, num_iterations: int) -> dict[str, Expected]:
    """Return the types and shapes that the arrays of a saved result are to have."""
    shape = archive.shape("values", 1, 2)
    per_state = shape[-1:]
    expected: dict[str, Expected] = {
        "values": (_FLOAT, shape),
        # Without a step there is no action.
        "policy": (_ACTIONS, shape if len(shape) == 1 else archive.shape("policy", 2)),
    }
    steps = archive.shape("proof_errors", 1) if "proof_errors" in archive else (0,)
    sizes = {"state": per_state, "step": steps, "one": (1,)}
    optional: dict[str, Expected] = {
        "labels": (_INTEGER, per_state),
        "bias": (_FLOAT, per_state),
        "lower": (_FLOAT, shape),
        "upper": (_FLOAT, shape),
        "terminal_costs": (_FLOAT, per_state),
        **{name: (("uint8",), archive.shape(name, 1)) for name in _NAMES if name in archive},
        **{f"proof_{name}": (dtypes, sizes[by]) for name, (dtypes, by) in _PROOFS.items()},
    }
    # Older files do not list their arrays.
    listed = archive.scalar("arrays", str).split() if archive.has_scalar("arrays") else archive
    expected |= {name: what for name, what in optional.items() if name in listed}
    # Before histories thinned themselves out they did not number their entries.
    counted = "history_iteration" in archive
    entries = archive.shape("history_seconds", 1)
    if entries[0] > num_iterations or not (counted or entries[0] == num_iterations):
        raise ValueError(
            f"history_seconds has {entries[0]} entries for {num_iterations} iterations"
        )
    for field in fields(History):
        if field.name != "iteration" or counted:
            whole = field.name.startswith(("num_", "iteration"))
            expected[f"history_{field.name}"] = (_INTEGER if whole else _FLOAT, entries)
    return expected


def _names(
    name: str, arrays: Mapping[str, NDArray[Any] | None], count: int | None = None
) -> Names | None:
    found = arrays[name]
    return None if found is None else names_from_bytes(name, found, count)


def _read_objective(
    archive: Archive | ResultFolder, terminal_costs: NDArray[np.float64] | None
) -> Objective:
    """Return the objective that the header of a saved result names."""
    gamma = archive.scalar("gamma", float)
    kind = archive.scalar("objective", str) if archive.has_scalar("objective") else "discounted"
    if kind == "discounted":
        return Discounted(gamma)
    if kind == "total":
        dead_ends = archive.scalar("dead_ends", str)
        return TotalCost(dead_ends if dead_ends == INFINITE else float(dead_ends))
    if kind == "horizon":
        return FiniteHorizon(archive.scalar("steps", int), gamma, terminal_costs)
    if kind == "average":
        return AverageCost()
    known = ", ".join(_KINDS_OF_OBJECTIVE.values())
    raise ValueError(f"objective is {kind!r}, not one of {known}")
