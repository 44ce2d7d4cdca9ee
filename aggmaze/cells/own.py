"""A control problem that is given by functions of many points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.cells.cells import check_box
from aggmaze.cells.problem import Advanced, Problem, named
from aggmaze.checks import check_integer
from aggmaze.summary import in_one_line

Step = Callable[[NDArray[np.float64], NDArray[Any]], Sequence[Any]]

# Points with which a step is tried.
_TRIALS = 64


@dataclass(frozen=True, eq=False)
class OwnProblem(Problem):
    """A problem given by functions.

    Parameters
    ----------
    step, terminated, observed : callable
        As of `aggmaze.discretize`; the last is its ``point_of``.
    box : pair of tuple
        Its ends along each axis.
    around : tuple of int
        Axes that wrap around.
    first : pair, optional
        Ends of the box of first states.
    can_end : bool
        Whether episodes terminate.
    labels, names : tuple of str
        Names of axes and actions.
    choices : ndarray
        What ``step`` gets for each action, shape (A, ...).
    by_index : bool
        Whether that is its index.
    title : str
        What messages call it.
    """

    step: Step
    box: tuple[tuple[float, ...], tuple[float, ...]]
    around: tuple[int, ...]
    first: tuple[ArrayLike, ArrayLike] | None
    can_end: bool
    labels: tuple[str, ...]
    names: tuple[str, ...]
    choices: NDArray[Any]
    by_index: bool
    title: str
    terminated: Callable[[NDArray[np.float64]], ArrayLike] | None
    observed: Callable[[NDArray[np.float64]], ArrayLike] | None

    __repr__ = in_one_line

    @classmethod
    def of(
        cls,
        step: Step,
        *,
        low: Iterable[float],
        high: Iterable[float],
        actions: int | Iterable[Any],
        terminated: Callable[[NDArray[np.float64]], ArrayLike] | None,
        wrap: Iterable[int],
        start: tuple[ArrayLike, ArrayLike] | None,
        ends: bool | None,
        axes: Iterable[str] | None,
        action_names: Iterable[str] | None,
        point_of: Callable[[NDArray[np.float64]], ArrayLike] | None,
        name: str | None,
    ) -> OwnProblem:
        """Return a problem, its arguments checked; they are those of `discretize`."""
        for end, values in (("low", low), ("high", high)):
            if not np.iterable(values):
                raise TypeError(f"{end} must be one number for each axis, got {values!r}")
        low, high = tuple(low), tuple(high)
        if not low:
            raise ValueError("low must be at least one number")
        labels = tuple(f"x{k}" for k in range(len(low))) if axes is None else tuple(axes)
        box = check_box(low, high, labels, ("low", "high"))
        for axis, (least, most) in enumerate(zip(*box, strict=True)):
            if not least < most:
                raise ValueError(f"high[{axis}] must be above low[{axis}] = {least}, got {most}")
        around = tuple(sorted({check_integer("wrap", axis, below=len(low)) for axis in wrap}))
        if start is not None:
            if not (isinstance(start, tuple | list) and len(start) == 2):
                raise ValueError(f"start must be a pair (low, high), got {start!r}")
            first_low, first_high = (
                np.broadcast_to(np.asarray(end, dtype=np.float64), len(low)).tolist()
                for end in start
            )
            start = check_box(first_low, first_high, labels, ("start[0]", "start[1]"))
        by_index = not np.iterable(actions)
        choices = (
            np.arange(check_integer("actions", actions, least=1))
            if by_index
            else np.array(list(actions))  # type: ignore[arg-type]
        )
        if not len(choices):
            raise ValueError("actions must not be empty")
        given = tuple(action_names) if action_names is not None else _names(choices, by_index)
        if len(given) != len(choices):
            raise ValueError(f"action_names must be {len(choices)} names, got {len(given)}")
        title = str(name or getattr(step, "__name__", type(step).__name__))
        title = "the step" if title == "<lambda>" else title

        def problem(can_end: bool) -> OwnProblem:
            return cls(
                step=step,
                box=box,
                around=around,
                first=start,
                can_end=can_end,
                labels=labels,
                names=given,
                choices=choices,
                by_index=by_index,
                title=title,
                terminated=terminated,
                observed=point_of,
            )

        told = problem(True).tried()
        return problem((told or terminated is not None) if ends is None else bool(ends))

    def tried(self) -> bool:
        """Return whether the step says who has terminated, and refuse one that draws at random."""
        rng = np.random.default_rng(0)
        points = rng.uniform(self.low, self.high, (_TRIALS, len(self.axes)))
        actions = np.arange(_TRIALS) % self.num_actions
        first, second = self.advance(points, actions), self.advance(points, actions)
        for one, other in zip(first, second, strict=True):
            if not np.array_equal(one, other):
                raise ValueError(
                    f"{self.title} must do the same when it is called twice with the same points: "
                    "a model is made of one call"
                )
        return len(self.call(points, actions)) == 3

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.title

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the D numbers of a state."""
        return self.labels

    @property
    def low(self) -> tuple[float, ...]:
        """The box's lower ends."""
        return self.box[0]

    @property
    def high(self) -> tuple[float, ...]:
        """The box's upper ends."""
        return self.box[1]

    @property
    def wrap(self) -> tuple[int, ...]:
        """Axes that wrap around."""
        return self.around

    @property
    def ends(self) -> bool:
        """Whether episodes can terminate."""
        return self.can_end

    @property
    def start(self) -> tuple[ArrayLike, ArrayLike] | None:
        """Ends of the box in which a first state is uniform."""
        return self.first

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the actions."""
        return self.names

    def point_of(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Return the points of what the environment shows."""
        seen = np.asarray(observations, dtype=np.float64)
        return seen if self.observed is None else np.asarray(self.observed(seen), dtype=np.float64)

    def action_of(self, action: int) -> Any:
        """Return what ``step`` gets for an action: the index, or what stands for it."""
        return int(action) if self.by_index else self.choices[action]

    def call(self, points: NDArray[np.float64], actions: NDArray[np.int64]) -> tuple[Any, ...]:
        """Return what the user's step does, as it comes.

        Parameters
        ----------
        points : ndarray of float, shape (N, D)
        actions : ndarray of int, shape (N,)
        """
        after = self.step(points.copy(), self.choices[actions])
        if not isinstance(after, tuple | list) or len(after) not in (2, 3):
            raise TypeError(
                f"{self.title} must return points, rewards and whether they have terminated, got "
                f"{type(after).__name__}"
            )
        return tuple(after)

    def advance(self, points: NDArray[np.float64], actions: NDArray[np.int64]) -> Advanced:
        """Take one step from each point, and check what the user's step returns.

        Parameters
        ----------
        points : ndarray of float, shape (N, D)
        actions : ndarray of int, shape (N,)
        """
        after, rewards, *told = self.call(points, actions)
        after = _array(f"points that {self.title} returns", after, points.shape)
        rewards = _array(f"rewards that {self.title} returns", rewards, (len(points),))
        over = np.zeros(len(points), dtype=bool)
        for whose, flags in (
            (self.title, told[0] if told else False),
            ("terminated", False if self.terminated is None else self.terminated(after)),
        ):
            over = over | _flags(whose, flags, len(points))
        for what, values in (("comes to", after), ("is paid", rewards[:, np.newaxis])):
            bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if len(bad):
                at, action = points[bad[0]].tolist(), self.names[actions[bad[0]]]
                raise ValueError(
                    f"{self.title}: from {at}, action {action} {what} "
                    f"{values[bad[0]].tolist()}, which must be finite"
                )
        if over.any() and not self.can_end:
            where = int(np.argmax(over))
            raise ValueError(
                f"{self.title}: from {points[where].tolist()}, action "
                f"{self.names[actions[where]]} terminates, but ends=False"
            )
        return Advanced(after, rewards, over)


def _names(choices: NDArray[Any], by_index: bool) -> tuple[str, ...]:
    if by_index or choices.ndim > 1 or not np.issubdtype(choices.dtype, np.number):
        return tuple(str(choice) for choice in choices.tolist())
    return named([float(choice) for choice in choices])


def _array(what: str, given: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    try:
        return np.array(np.broadcast_to(np.asarray(given, dtype=np.float64), shape))
    except (TypeError, ValueError):
        raise ValueError(f"{what} must have shape {shape}, got {np.shape(given)}") from None


def _flags(whose: str, given: Any, count: int) -> NDArray[np.bool_]:
    flags = np.asarray(given)
    if flags.dtype != np.bool_ or flags.shape not in ((), (count,)):
        raise ValueError(
            f"{whose} must say of each of {count} points whether it has terminated, as booleans, "
            f"got {flags.dtype} of shape {flags.shape}"
        )
    return np.broadcast_to(flags, count)
