"""`aggmaze.discretize`: control problems of Gymnasium's, or of anyone's, made finite."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.cells.cells import Cells, check_counts
from aggmaze.cells.chain import CellsProgress, Chain, chain_of
from aggmaze.cells.control import ControlProblem, problem_of
from aggmaze.cells.interpolation import Corners
from aggmaze.cells.own import OwnProblem, Step
from aggmaze.cells.problem import Problem
from aggmaze.checks import check_choice, check_discount, check_integer
from aggmaze.grid import Grid
from aggmaze.models.tabular import TabularMDP

#: The ways to make a model.
METHODS = ("average", "interpolate")

Callback = Callable[[CellsProgress], object]

# Sub-points along an axis where none are asked for: between these, and of which a typical step from
# the outermost one leaves the cell.
_FEWEST_SUB_POINTS, _MOST_SUB_POINTS = 3, 25
# Points of all of a cell, beyond which there are fewer along each axis.
_MOST_POINTS_OF_A_CELL = 2000


@dataclass(frozen=True, eq=False)
class Discretization:
    """A control problem made finite.

    Parameters
    ----------
    model : TabularMDP
        What planners solve.
    cells : Cells
        Its states; `Corners` where it was interpolated.
    problem : Problem
        What it is a model of.
    sub_points : tuple of int
        Points of a cell along each axis, ones where it was interpolated.
    """

    model: TabularMDP
    cells: Cells
    problem: Problem
    sub_points: tuple[int, ...]

    def __repr__(self) -> str:
        sizes = " x ".join(map(str, self.cells.bins))
        kind = "corners" if isinstance(self.cells, Corners) else "cells"
        return f"Discretization({self.problem.name} in {sizes} {kind}: {self.model!r})"

    def _repr_html_(self) -> str:
        from aggmaze.models.cards import model_html  # pictures, which few processes draw

        sizes = " x ".join(map(str, self.cells.bins))
        return model_html(self.model, f"Discretization of {self.problem.name}, {sizes}")

    @property
    def method(self) -> str:
        """How the model was made: "average" or "interpolate"."""
        return method_of(self.cells)

    def transition_model(self) -> TabularMDP:
        """Return the model."""
        return self.model

    def state_of(self, observation: ArrayLike) -> Any:
        """Return the state of what the environment shows: its cell, or the nearest corner.

        Parameters
        ----------
        observation : array_like of float, shape (K,) or (N, K)

        Returns
        -------
        int, or ndarray of int, shape (N,)
            Never the state of having ended: it is no place.

        Raises
        ------
        ValueError
            If the observation has another shape, or holds NaN.
        """
        return state_of(self.problem, self.cells, observation)

    def action_of(self, action: int) -> Any:
        """Return what the environment's ``step`` takes for an action of the model.

        Parameters
        ----------
        action : int
        """
        return self.problem.action_of(check_integer("action", action, below=self.model.num_actions))

    def policy(self, actions: ArrayLike) -> Callable[[ArrayLike], Any]:
        """Return a policy of the model as a function of observations, for the environment itself.

        Parameters
        ----------
        actions : array_like of int, shape (S,)
            Such as ``result.policy``.

        Raises
        ------
        ValueError, TypeError
            If there is not one for each state, or one is no action.
        """
        table = np.asarray(actions)
        if table.shape != (self.model.num_states,):
            raise ValueError(
                f"actions must have shape ({self.model.num_states},), got {table.shape}"
            )
        if not np.issubdtype(table.dtype, np.integer):
            raise TypeError(f"actions must be integers, got {table.dtype}")
        for state in np.flatnonzero((table < 0) | (table >= self.model.num_actions))[:1]:
            raise ValueError(
                f"actions[{state}] must be in [0, {self.model.num_actions}), got {table[state]}"
            )
        return lambda observation: self.action_of(int(table[self.state_of(observation)]))

    def lookahead(self, values: ArrayLike, gamma: float) -> Callable[[ArrayLike], Any]:
        """Return the policy that takes a step from where it is, and the values from there on.

        It knows where in its cell it is, and takes of the actions the one with the least cost of
        the step and discounted value of where the step ends, interpolated between the corners
        there.  Of models that were averaged, whose values jump at the edges of cells, it does worse
        than their own policies.

        Parameters
        ----------
        values : array_like of float, shape (S,)
            Such as ``result.values``.
        gamma : float
            In [0, 1], that of the values.

        Returns
        -------
        callable
            Observation, shape (K,), to what the environment's ``step`` takes.

        Raises
        ------
        ValueError
            If the model was averaged, or values have another shape.
        """
        cells, problem = self.cells, self.problem
        if not isinstance(cells, Corners):
            raise ValueError("lookahead needs method='interpolate': values of cells jump")
        check_discount(gamma)
        table = np.asarray(values, dtype=np.float64)
        if table.shape != (self.model.num_states,):
            raise ValueError(
                f"values must have shape ({self.model.num_states},), got {table.shape}"
            )
        actions = np.arange(problem.num_actions)

        def act(observation: ArrayLike) -> Any:
            point = point_of(problem, observation)
            after = problem.advance(np.tile(point, (len(actions), 1)), actions)
            onward = np.where(after.terminated, 0.0, cells.interpolate(table, after.points))
            return problem.action_of(int(np.argmin(gamma * onward - after.rewards)))

        return act


def discretize(
    step: Step | str | gym.Env[Any, Any],
    *,
    low: Iterable[float] | None = None,
    high: Iterable[float] | None = None,
    bins: Iterable[int] | None = None,
    actions: int | Iterable[Any] | None = None,
    terminated: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
    method: str | None = None,
    sub_points: int | Iterable[int] | None = None,
    wrap: Iterable[int] = (),
    start: tuple[ArrayLike, ArrayLike] | None = None,
    ends: bool | None = None,
    axes: Iterable[str] | None = None,
    action_names: Iterable[str] | None = None,
    point_of: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
    name: str | None = None,
    callback: Callback | None = None,
    **options: Any,
) -> Discretization:
    """Make a control problem finite, so that planners solve it.

    Its states are D real numbers in a box, of which each is cut into bins; a step takes many points
    at once.  ``method`` says what the model is: see `aggmaze.cells`.

    Parameters
    ----------
    step : callable, str or gymnasium.Env
        ``step(points, actions)``, points a float array (N, D) and actions an array (N,), returns
        where each point is afterwards (N, D), rewards (N,) or one for all, and whether each has
        terminated (N,).  The last may be left out where ``terminated`` says so, or no episode ends.
        It draws nothing at random.  Or "MountainCar-v0", "Acrobot-v1", "Pendulum-v1", or such an
        environment, whose constants are taken as they are: then only ``bins``, ``method``,
        ``sub_points`` and ``callback`` are asked for, and ``options``.
    low, high : iterable of float
        Ends of the box along each axis.  What leaves it is taken to its outermost cells.
    bins : iterable of int
        Cells along each axis; with "interpolate" corners along each axis.
    actions : int or iterable
        Number of actions, of which ``step`` gets the indices; or what stands for each of them, such
        as forces, of which ``step`` gets those chosen, (N,) or (N, ...).
    terminated : callable, optional
        Of points (N, D), after a step, which have terminated, (N,).
    method : str, optional
        "average" (the default), over points of a cell; or "interpolate", between the corners of a
        grid (the default of Gymnasium's).
    sub_points : int or iterable of int, optional
        Points of a cell along each axis over which "average" goes; by default so many that from the
        outermost a typical step leaves the cell, 3 to 25.
    wrap : iterable of int, optional
        Axes along which ``high`` is where ``low`` is, such as angles; ``step`` may leave the box
        there and come around.
    start : pair, optional
        Ends of the box in which a first state is uniform; where both are one number, so is what
        begins.  All of the box by default.
    ends : bool, optional
        Whether episodes can terminate; by default where ``step`` or ``terminated`` says whether.
    axes, action_names : iterable of str, optional
        For messages and pictures.
    point_of : callable, optional
        The point (D,) of what the environment shows, where that is something else.
    name : str, optional
        What messages call the problem; the name of ``step`` by default.
    callback : callable, optional
        Called with a `CellsProgress` now and then.
    **options
        ``limits`` of Acrobot: the speeds at which the box ends, (6, 10) by default.
        ``num_torques`` of Pendulum, 7 by default.

    Returns
    -------
    Discretization
        Its ``model`` is solved; its ``policy`` makes what it gets a function of observations.

    Raises
    ------
    ValueError, TypeError
        If an argument is none of these, or what ``step`` returns is not what is asked for, naming
        the point and the action.
    MemoryError
        If more is needed than is available.

    Warns
    -----
    UserWarning
        If the model never changes cell along an axis where the problem does, or nothing in it ever
        ends: it then knows less than the problem does, and what to change is said.
    """
    if callable(step) and not isinstance(step, gym.Env):
        if options:
            raise TypeError(f"{', '.join(options)}: a problem of one's own has no such options")
        if low is None or high is None or bins is None or actions is None:
            raise TypeError("a step of one's own needs low, high, bins and actions")
        problem: Problem = OwnProblem.of(
            step,
            low=low,
            high=high,
            actions=actions,
            terminated=terminated,
            wrap=wrap,
            start=start,
            ends=ends,
            axes=axes,
            action_names=action_names,
            point_of=point_of,
            name=name,
        )
        method = "average" if method is None else method
    else:
        given = {
            "low": low,
            "high": high,
            "actions": actions,
            "terminated": terminated,
            "wrap": tuple(wrap) or None,
            "start": start,
            "ends": ends,
            "axes": axes,
            "action_names": action_names,
            "point_of": point_of,
            "name": name,
        }
        if unwanted := [word for word, value in given.items() if value is not None]:
            raise TypeError(f"{', '.join(unwanted)}: Gymnasium's environment says so itself")
        env = gym.make(step) if isinstance(step, str) else step
        if not isinstance(env, gym.Env):
            raise TypeError(
                "step must be a function of points and actions, an id such as 'MountainCar-v0', "
                f"or an environment, got {step!r}"
            )
        problem = problem_of(env.unwrapped, **options)
    found, faults = discretized(problem, bins, method, sub_points, callback)
    warn_of(faults, stacklevel=2)
    return found


def discretized(
    problem: Problem,
    bins: Iterable[int] | None = None,
    method: str | None = None,
    sub_points: int | Iterable[int] | None = None,
    callback: Callback | None = None,
) -> tuple[Discretization, tuple[str, ...]]:
    """Return a problem made finite, and sentences on what its model fails to show.

    Parameters
    ----------
    problem : Problem
    bins, method, sub_points, callback
        As of `discretize`.
    """
    cells = cells_of(problem, bins, method)
    counts = sub_points_of(problem, cells, sub_points)
    if isinstance(problem, ControlProblem) and callback is None:
        chain = _shared_chain(cells, problem, counts)
    else:
        chain = chain_of(cells, problem, counts, callback=callback)
    return Discretization(chain.model, cells, problem, counts), chain.faults


# Models cannot change, so environments made alike share theirs.
@lru_cache(maxsize=6)
def _shared_chain(cells: Cells, problem: ControlProblem, sub_points: tuple[int, ...]) -> Chain:
    return chain_of(cells, problem, sub_points)


def warn_of(faults: Iterable[str], stacklevel: int) -> None:
    """Warn of what a model fails to show, where an environment is made or its model asked for.

    Parameters
    ----------
    faults : iterable of str
    stacklevel : int
        1 for the line that calls this, 2 for the one that calls the function it is in, and so on.
    """
    for fault in faults:
        warnings.warn(fault, stacklevel=stacklevel + 1)


def cells_of(problem: Problem, bins: Iterable[int] | None, method: str | None) -> Cells:
    """Return the cells of a problem, or the corners, with arguments checked.

    Parameters
    ----------
    problem : Problem
    bins : iterable of int, optional
        The defaults of one of Gymnasium's by default.
    method : str, optional
    """
    if isinstance(problem, ControlProblem):
        method = problem.default_method if method is None else method
    check_choice("method", method, METHODS)
    if bins is None and isinstance(problem, ControlProblem):
        bins = problem.default_bins
    if bins is None or not np.iterable(bins):
        raise ValueError(
            f"bins must be {len(problem.axes)} numbers, of {', '.join(problem.axes)}, got {bins!r}"
        )
    counts = Grid(check_counts("bins", bins, problem.axes)).shape
    kind = Corners if method == "interpolate" else Cells
    return kind(counts, problem.low, problem.high, problem.wrap, problem.ends)


def method_of(cells: Cells) -> str:
    """Return how a model of these cells is made.

    Parameters
    ----------
    cells : Cells
    """
    return "interpolate" if isinstance(cells, Corners) else "average"


def sub_points_of(
    problem: Problem, cells: Cells, sub_points: int | Iterable[int] | None
) -> tuple[int, ...]:
    """Return the points of a cell along each axis, or choose them.

    Parameters
    ----------
    problem : Problem
    cells : Cells
    sub_points : int or iterable of int, optional
    """
    if isinstance(cells, Corners):
        if sub_points is not None and max(check_counts("sub_points", sub_points, problem.axes)) > 1:
            raise ValueError(
                f"sub_points are of method='average': a corner is one point, got {sub_points!r}"
            )
        return (1,) * cells.num_axes
    if sub_points is not None:
        return check_counts("sub_points", sub_points, problem.axes)
    rng = np.random.default_rng(0)
    typical = problem.typical_steps(rng.uniform(cells.low, cells.high, (1000, cells.num_axes)))
    with np.errstate(divide="ignore"):
        needed = np.ceil(cells.widths / (2 * typical)) + 1
    counts = np.clip(needed, _FEWEST_SUB_POINTS, _MOST_SUB_POINTS)
    counts[np.array(cells.bins) == 1] = _FEWEST_SUB_POINTS
    while math.prod(counts.tolist()) > _MOST_POINTS_OF_A_CELL and counts.max() > 2:
        counts[np.argmax(counts)] -= 1
    return tuple(int(n) for n in counts)


def point_of(problem: Problem, observation: ArrayLike) -> NDArray[np.float64]:
    """Return the points of what an environment shows, shape (..., D).

    Parameters
    ----------
    problem : Problem
    observation : array_like of float, shape (..., K)

    Raises
    ------
    ValueError
        If there are not D numbers, or one is NaN.
    """
    points = np.asarray(problem.point_of(observation), dtype=np.float64)
    if points.shape[-1:] != (len(problem.axes),):
        raise ValueError(
            f"observation must be {len(problem.axes)} numbers, {', '.join(problem.axes)}, got "
            f"shape {points.shape}"
        )
    if not np.isfinite(points).all():
        raise ValueError(f"observation must hold finite numbers, got {observation!r}")
    return points


def state_of(problem: Problem, cells: Cells, observation: ArrayLike) -> Any:
    """Return the state of what an environment shows: its cell, or the nearest corner.

    Parameters
    ----------
    problem : Problem
    cells : Cells
    observation : array_like of float, shape (K,) or (N, K)
    """
    states = cells.states(point_of(problem, observation))
    return int(states) if np.ndim(states) == 0 else states
