"""CartPole in cells: a wrapper that observes the cell, and the exact model of the chain of cells.

Gymnasium's CartPole has four real numbers as its state: position, velocity, angle and angular
velocity.  Each is cut into equal bins; a cell is one bin of each, and one more state stands for
having failed.  The chain of cells is the process that puts the cart anywhere in its cell, uniformly
over a lattice of points, before every step:

    P(next cell | cell, action) = share of the points of the cell whose step ends in the next cell

The points decide what the chain knows.  The outermost of k points along an axis is 1/(2k) of a
cell's width from its edge: if no step of 0.02 s goes that far, the chain never changes cell along
that axis, where CartPole does, and its policy is blind to it.  Position is the slow one, the cart
goes .06 m in a step at most, hence the many points along it by default.  `cartpole_model` warns of
axes that stand still.  The chain is a model of CartPole, not CartPole itself, which remembers where
in its cell it is; how well a policy of the chain does there is found by running it.

No equation of motion is written here.  Points are advanced by Gymnasium's own vectorised CartPole,
with the constants of the environment at hand.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import scipy.sparse as sp
from gymnasium.envs.classic_control.cartpole import CartPoleEnv, CartPoleVectorEnv
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import breadth_first_order

from aggmaze.checks import check_integer, check_positive
from aggmaze.grid import Grid
from aggmaze.memory import check_memory
from aggmaze.models.tabular import TabularMDP

#: The axes of a state, in Gymnasium's order.
AXES = ("position", "velocity", "angle", "angular velocity")
#: Bins whose policies balance: see `DiscretizedCartPole`.
DEFAULT_BINS = (8, 8, 12, 13)
#: Velocities beyond which the outermost bins take all; a balancing policy seldom leaves them.
VELOCITY_LIMITS = (3.0, 3.5)
#: Points of a cell along each axis.  With these and the default bins every axis changes cell about
#: as often as in CartPole, and position does at any velocity, the slowest included.
DEFAULT_SUB_POINTS = (24, 4, 3, 3)

ACTION_NAMES = ("LEFT", "RIGHT")
NUM_ACTIONS = len(ACTION_NAMES)
# Points advanced at a time: few enough to stay in cache, enough to pay for the calls.
_BLOCK = 2**17
# About what a cell takes while a model is made whose actions each lead to a dozen cells.
_BYTES_PER_CELL = 1500
# What a point takes while it is advanced.
_BYTES_PER_POINT = 250
# What the physics depends on, by the names that both of Gymnasium's CartPoles have for it.
_CONSTANTS = (
    "gravity",
    "masscart",
    "masspole",
    "total_mass",
    "length",
    "polemass_length",
    "force_mag",
    "tau",
    "kinematics_integrator",
    "theta_threshold_radians",
    "x_threshold",
)


class Advanced(NamedTuple):
    """Where N points are after one step.

    Parameters
    ----------
    points : ndarray of float, shape (N, 4)
    rewards : ndarray of float, shape (N,)
    failed : ndarray of bool, shape (N,)
    """

    points: NDArray[np.float64]
    rewards: NDArray[np.float64]
    failed: NDArray[np.bool_]


@dataclass(frozen=True)
class Physics:
    """The step of Gymnasium's CartPole, for many points at once.

    Parameters
    ----------
    constants : tuple of pairs
        Name and value of each constant.
    sutton_barto_reward : bool
        Whether a step pays 0, and -1 where it fails, instead of 1.
    """

    constants: tuple[tuple[str, Any], ...]
    sutton_barto_reward: bool

    @classmethod
    def of(cls, env: CartPoleEnv) -> Physics:
        """Read the constants of an environment, as they are now."""
        constants = tuple((name, getattr(env, name)) for name in _CONSTANTS)
        return cls(constants, bool(env._sutton_barto_reward))

    @cached_property
    def thresholds(self) -> tuple[float, float]:
        """Largest position and largest angle that have not failed."""
        constants = dict(self.constants)
        return float(constants["x_threshold"]), float(constants["theta_threshold_radians"])

    @cached_property
    def start(self) -> tuple[float, float]:
        """Lowest and highest value of each number of a first state, which is uniform between."""
        vector = self._vector(1)
        vector.reset()
        return float(vector.low), float(vector.high)

    def advance(self, points: NDArray[np.float64], actions: NDArray[np.int64]) -> Advanced:
        """Take one step from each point.

        Parameters
        ----------
        points : ndarray of float, shape (N, 4)
        actions : ndarray of int, shape (N,)
        """
        vector = self._vector(len(points))
        vector.reset()  # counts of steps and of episodes at their beginning
        vector.state = points.T
        _, rewards, failed, _, _ = vector.step(actions)
        return Advanced(vector.state.T, np.asarray(rewards, dtype=np.float64), failed)

    def _vector(self, num_points: int) -> Any:
        vector = CartPoleVectorEnv(num_points, sutton_barto_reward=self.sutton_barto_reward)
        for name, value in self.constants:
            setattr(vector, name, value)
        return vector


@dataclass(frozen=True)
class Cells:
    """Equal cells of a box around the origin, and one state more: having failed.

    Cell ``(i, j, k, l)`` has the index ``ravel_multi_index((i, j, k, l), bins)``; ``failure`` is
    the last state.  The outermost cells take what lies beyond the limits as well.

    Parameters
    ----------
    bins : tuple of int
        Number of bins of position, velocity, angle and angular velocity.
    limits : tuple of float
        The box: each number between ``-limit`` and ``limit``.
    """

    bins: tuple[int, ...]
    limits: tuple[float, ...]

    @classmethod
    def of(cls, physics: Physics, bins: Iterable[int], limits: Iterable[float] | None) -> Cells:
        """Return the cells of a CartPole, with arguments checked.

        Raises
        ------
        ValueError, TypeError
            If there are not four bins of at least 1, or four positive limits, those of position and
            angle within what counts as failed.
        """
        counts = _four("bins", bins)
        counts = tuple(check_integer(f"bins[{axis}]", n, least=1) for axis, n in enumerate(counts))
        largest = (physics.thresholds[0], VELOCITY_LIMITS[0], physics.thresholds[1])
        given = _four("limits", (*largest, VELOCITY_LIMITS[1]) if limits is None else limits)
        for axis, limit in enumerate(given):
            check_positive(f"limits[{axis}]", limit)
        for axis, threshold in ((0, physics.thresholds[0]), (2, physics.thresholds[1])):
            if given[axis] > threshold:
                raise ValueError(
                    f"limits[{axis}] must be at most {threshold}, the {AXES[axis]} at which the "
                    f"pole counts as fallen, got {given[axis]}"
                )
        return cls(Grid(counts).shape, tuple(float(limit) for limit in given))

    @cached_property
    def grid(self) -> Grid:
        """The grid of cells."""
        return Grid(self.bins)

    @property
    def num_cells(self) -> int:
        """Number of cells, the failed state aside."""
        return self.grid.num_states

    @property
    def num_states(self) -> int:
        """Number of states S, one more than there are cells."""
        return self.num_cells + 1

    @property
    def failure(self) -> int:
        """The state of having failed."""
        return self.num_cells

    @cached_property
    def widths(self) -> NDArray[np.float64]:
        """Width of a cell along each axis, shape (4,)."""
        return 2.0 * np.array(self.limits) / np.array(self.bins)

    def states(self, points: ArrayLike) -> NDArray[np.int64]:
        """Return the cell of each point, shape (..., 4) to (...,); none of them has failed."""
        places = np.floor((np.asarray(points) + self.limits) / self.widths)
        coords = np.clip(places, 0, np.array(self.bins) - 1).astype(np.int64)
        return coords @ np.array(self.grid.strides)

    def points(
        self, states: ArrayLike, sub_points: Sequence[int] = (1, 1, 1, 1)
    ) -> NDArray[np.float64]:
        """Return points spread evenly over cells.

        Parameters
        ----------
        states : array_like of int, shape (N,)
        sub_points : sequence of int
            Points along each axis; one is the centre.

        Returns
        -------
        ndarray of float, shape (N, prod(sub_points), 4)
        """
        lines = [(np.arange(k) + 0.5) / k for k in sub_points]
        offsets = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)
        corners = self.grid.coords(states)[:, np.newaxis]
        return (corners + offsets.reshape(-1, len(self.bins))) * self.widths - self.limits

    def shares(self, low: float, high: float) -> NDArray[np.float64]:
        """Return how a cube, each number between ``low`` and ``high``, spreads over the states.

        Returns
        -------
        ndarray of float, shape (S,)
            Sums to 1; failed states get nothing.
        """
        shares = np.ones(1)
        for n, limit, width in zip(self.bins, self.limits, self.widths, strict=True):
            edges = np.concatenate([[-np.inf], np.arange(1, n) * width - limit, [np.inf]])
            along = np.diff(edges.clip(low, high)) / (high - low)
            shares = np.multiply.outer(shares, along).reshape(-1)
        return np.append(shares, 0.0)


def check_sub_points(sub_points: int | Iterable[int]) -> tuple[int, ...]:
    """Return the number of points along each axis, given one number for all or one for each.

    Raises
    ------
    ValueError, TypeError
        If that is not an integer of at least 1, or four of them.
    """
    if not np.iterable(sub_points):
        return (check_integer("sub_points", sub_points, least=1),) * len(AXES)
    return tuple(
        check_integer(f"sub_points[{axis}]", n, least=1)
        for axis, n in enumerate(_four("sub_points", sub_points))
    )


def cartpole_model(
    cells: Cells, physics: Physics, *, sub_points: int | Iterable[int] = DEFAULT_SUB_POINTS
) -> TabularMDP:
    """Return the exact model of the chain of cells.

    It starts as CartPole does: uniformly in a small cube around the origin.

    Parameters
    ----------
    cells : Cells
    physics : Physics
    sub_points : int or sequence of int
        Points of a cell along each axis, all of which count alike.

    Warns
    -----
    UserWarning
        If no step changes cell along an axis of two bins or more, or no policy can fail: the chain
        then knows less than CartPole does, and more sub-points or bins are needed.

    Raises
    ------
    ValueError, TypeError
        If ``sub_points`` are not an integer of at least 1, or four of them.
    MemoryError
        If more is needed than is available.
    """
    chain = _chain(cells, physics, check_sub_points(sub_points))
    for fault in chain.faults:
        # Shown where an environment is made, or asked for its model.
        warnings.warn(fault, stacklevel=3)
    return chain.model


class _Chain(NamedTuple):
    """A model, and sentences on what it fails to show."""

    model: TabularMDP
    faults: tuple[str, ...]


# Models cannot change, so environments made alike share theirs.
@lru_cache(maxsize=2)
def _chain(cells: Cells, physics: Physics, sub_points: tuple[int, ...]) -> _Chain:
    num_points = math.prod(sub_points)
    block = max(1, _BLOCK // (NUM_ACTIONS * num_points))
    check_memory(
        _BYTES_PER_CELL * cells.num_states + _BYTES_PER_POINT * NUM_ACTIONS * num_points * block,
        f"transitions of {cells.num_cells:,} cells",
    )
    counts, paid = [], []
    changes = np.zeros(len(AXES), dtype=bool)  # whether a step changes cell along an axis
    farthest = np.zeros(len(AXES))  # how far a step goes along an axis
    for first in range(0, cells.num_cells, block):
        states = np.arange(first, min(first + block, cells.num_cells))
        starts = cells.points(states, sub_points)[:, np.newaxis]
        shape = (len(states), NUM_ACTIONS, num_points)
        actions = np.broadcast_to(np.arange(NUM_ACTIONS)[:, np.newaxis], shape).reshape(-1)
        points = np.broadcast_to(starts, (*shape, len(AXES))).reshape(-1, len(AXES))
        after = physics.advance(points, actions)
        following = np.where(after.failed, cells.failure, cells.states(after.points))
        # One row for each state and action, an entry for each cell that a point comes to.
        counts.append(_summed(following, np.ones(len(following)), num_points, cells.num_states))
        paid.append(_summed(following, after.rewards, num_points, cells.num_states))
        changes |= _changes(cells, states, counts[-1])
        farthest = np.maximum(farthest, np.abs(after.points - points).max(axis=0))
    absorbed = sp.csr_array(
        (np.ones(NUM_ACTIONS), ([*range(NUM_ACTIONS)], [cells.failure] * NUM_ACTIONS)),
        shape=(NUM_ACTIONS, cells.num_states),
    )
    visits = sp.csr_array(sp.vstack([*counts, absorbed], format="csr"))
    rewards = sp.csr_array(sp.vstack([*paid, 0.0 * absorbed], format="csr"))
    costs = 0.0 - rewards.sum(axis=1).reshape(cells.num_states, NUM_ACTIONS)
    costs[: cells.failure] /= num_points
    outcome_costs = 0.0 - rewards.data / visits.data
    visits.data[: -len(absorbed.data)] /= num_points
    alike = np.repeat(costs.reshape(-1), np.diff(visits.indptr)) == outcome_costs
    terminal = np.arange(cells.num_states) == cells.failure
    model = TabularMDP(
        visits,
        costs,
        terminal=terminal,
        initial=cells.shares(*physics.start),
        outcome_costs=None if alike.all() else outcome_costs,
    ).validate()
    return _Chain(model, _faults(cells, sub_points, changes, farthest, model))


def _faults(
    cells: Cells,
    sub_points: tuple[int, ...],
    changes: NDArray[np.bool_],
    farthest: NDArray[np.float64],
    model: TabularMDP,
) -> tuple[str, ...]:
    """Say in which ways the model knows less than CartPole does, and what to change."""
    about = f"with bins {cells.bins} and sub_points {sub_points}"
    faults = []
    # A single bin is never left, whatever moves.
    if frozen := np.flatnonzero(~changes & (np.array(cells.bins) > 1)).tolist():
        needs = ", ".join(_need(AXES[axis], cells.widths[axis], farthest[axis]) for axis in frozen)
        faults.append(
            f"{about}, the model never changes cell along "
            f"{', '.join(AXES[axis] for axis in frozen)}, where CartPole does: no point of a cell "
            f"is within a step of its edge. Take more bins, or as sub_points {needs}"
        )
    if not _can_fail(model, cells.failure):
        faults.append(
            f"{about}, no policy of the model ever fails from where it starts, so that it tells "
            "none from another. Take more bins or sub_points, and no smaller limits of position "
            "and angle than the default ones"
        )
    return tuple(faults)


def _need(axis: str, width: float, farthest: float) -> str:
    """Say which sub-points put some of them within a step of a cell's edge."""
    if farthest == 0:
        return f"more along the others for {axis}"
    return f"at least {math.floor(width / (2 * farthest)) + 1} along {axis}"


def _changes(cells: Cells, states: NDArray[np.int64], visits: sp.csr_array) -> NDArray[np.bool_]:
    """Return along which axes some step changes cell, given the visits from these states."""
    before = np.repeat(np.repeat(states, NUM_ACTIONS), np.diff(visits.indptr))
    inside = visits.indices != cells.failure
    after = cells.grid.coords(visits.indices[inside])
    return (after != cells.grid.coords(before[inside])).any(axis=0)


def _can_fail(model: TabularMDP, failure: int) -> bool:
    """Return whether some policy comes from a first state to the failed one."""
    transitions = model.transitions
    backwards = sp.csr_array(
        (transitions.data, transitions.indices, transitions.indptr[::NUM_ACTIONS]),
        shape=(model.num_states, model.num_states),
    ).T.tocsr()
    backwards.sum_duplicates()
    failing = breadth_first_order(backwards, failure, return_predecessors=False)
    return bool(model.initial[failing].any())


def _summed(
    following: NDArray[np.int64], weights: NDArray[np.float64], num_points: int, num_states: int
) -> sp.csr_array:
    """Return the weights added up by next state, a row for every ``num_points`` of them."""
    num_rows = len(following) // num_points
    rows = sp.csr_array(
        (weights, following.astype(np.int32), np.arange(num_rows + 1, dtype=np.int32) * num_points),
        shape=(num_rows, num_states),
    )
    rows.sum_duplicates()
    return rows


class DiscretizedCartPole(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Gymnasium's CartPole, of which only the cell is observed.

    The steps are those of the CartPole inside, its pictures and limit of steps too; observations
    are cells, ``Discrete(S)``, and the last one means having failed.  `transition_model` returns
    the exact model of the chain of cells, so that a planner solves it and its policy is tried on
    the real thing::

        env = DiscretizedCartPole(gym.make("CartPole-v1"))
        result = planners.solve(env, gamma=0.99)
        planners.rollout(env, result)

    The chain alone, without the CartPole, is the environment DiscretizedCartPole-v0.

    Bins and sub-points decide whether a policy balances.  With gamma .99 and the default limits,
    episodes of at most 20,000 steps from the seeds 0 to 7 ended as follows (by
    ``scripts/bench/cartpole.py``).  The third and fourth column are the per cent of steps that
    change the position's cell: in the model, and in CartPole from states uniform in their cells.

    ================  ==============  =========  ========  ========  ======
    bins              sub_points      model      CartPole  shortest  lasted
    ================  ==============  =========  ========  ========  ======
    (8, 8, 12, 13)    (24, 4, 3, 3)         4.0       4.0    20,000  8 of 8
    (8, 8, 12, 13)    7                     3.3       4.0    20,000  8 of 8
    (8, 8, 12, 13)    3                     0.0       4.0     2,527  1 of 8
    (24, 8, 12, 13)   3                    12.2      13.2    20,000  8 of 8
    (7, 7, 15, 15)    7                     2.1       3.4    20,000  8 of 8
    (7, 7, 15, 15)    (24, 4, 3, 3)         3.5       3.4       235  0 of 8
    (10, 10, 10, 10)  (24, 4, 3, 3)         5.1       5.1       142  0 of 8
    (6, 6, 7, 8)      (24, 4, 3, 3)         2.9       2.8       139  0 of 8
    (5, 5, 9, 9)      (24, 4, 3, 3)         2.1       2.3       214  0 of 8
    (3, 3, 6, 3)      3                     0.0       0.9         8  0 of 8
    ================  ==============  =========  ========  ========  ======

    Where the model never changes cell along an axis, or no policy of it can fail, asking for the
    model warns.  Of k points along an axis, the outermost is ``limit / (bins * k)`` from the edge
    of its cell, and has to come to the other side in one step.  A step goes at most 0.06 m,
    0.2 m/s, 0.07 rad and 0.35 rad/s with the default limits: whoever is warned takes more
    sub-points or more bins along the axes named.  That an axis of one bin stays in it is no reason
    to warn.

    Parameters
    ----------
    env : gymnasium.Env
        CartPole-v1 or another environment of that class, its rewards and actions not wrapped.
    bins : sequence of int
        Number of bins of position, velocity, angle and angular velocity, (8, 8, 12, 13) by default.
    limits : sequence of float, optional
        The bins of each number lie between ``-limit`` and ``limit``; the outermost ones take what
        lies beyond.  By default where the pole counts as fallen for position and angle, 3 and 3.5
        for the velocities.  Points of a cell lie within the limits: smaller ones for position or
        angle make a chain that never falls, and a policy that does at once.
    sub_points : int or sequence of int
        Points of a cell over which the model averages, along each axis or along all of them;
        (24, 4, 3, 3) by default.

    Raises
    ------
    TypeError
        If there is no CartPole inside, or bins or sub-points are not integers.
    ValueError
        If bins or limits are not four positive numbers, sub-points not one or four of at least 1,
        or something changes the observations, rewards or actions of the CartPole inside.
    """

    #: Cells are not all of a state, so that returns differ from what the model promises.
    model_is_approximate = True

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        bins: Iterable[int] = DEFAULT_BINS,
        limits: Iterable[float] | None = None,
        sub_points: int | Iterable[int] = DEFAULT_SUB_POINTS,
    ) -> None:
        cartpole = env.unwrapped
        if not isinstance(cartpole, CartPoleEnv):
            raise TypeError(f"env must be a CartPole such as CartPole-v1, got {env}")
        _refuse_changes(env, cartpole)
        self._physics = Physics.of(cartpole)
        self.cells = Cells.of(self._physics, bins, limits)
        self._sub_points = check_sub_points(sub_points)
        gym.utils.RecordConstructorArgs.__init__(
            self, bins=self.cells.bins, limits=self.cells.limits, sub_points=self._sub_points
        )
        gym.Wrapper.__init__(self, env)
        self.observation_space = gym.spaces.Discrete(self.cells.num_states)
        self._action_space = gym.spaces.Discrete(NUM_ACTIONS)

    def transition_model(self) -> TabularMDP:
        """Return the exact model of the chain of cells, its physics as it was at the wrapping.

        Warns
        -----
        UserWarning
            As `cartpole_model`.
        """
        return cartpole_model(self.cells, self._physics, sub_points=self._sub_points)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are available now: both, always."""
        return np.ones(NUM_ACTIONS, dtype=bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode; ``options`` are those of CartPole, ``low`` and ``high``."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._told(observation, info, failed=False)

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Push the cart to the left (0) or to the right (1).

        Raises
        ------
        TypeError, ValueError
            If the action is neither.
        """
        action = check_integer("action", action, below=NUM_ACTIONS)
        observation, reward, failed, truncated, info = self.env.step(action)
        state, info = self._told(observation, info, failed)
        return state, float(reward), failed, truncated, info

    def _told(
        self, observation: NDArray[np.float32], info: dict[str, Any], failed: bool
    ) -> tuple[int, dict[str, Any]]:
        state = self.cells.failure if failed else int(self.cells.states(observation))
        mask = np.ones(NUM_ACTIONS, dtype=np.int8)
        return state, {**info, "state": state, "action_mask": mask}


def _refuse_changes(env: gym.Env[Any, Any], cartpole: CartPoleEnv) -> None:
    """Refuse wrappers under which the cell or the model would be wrong."""
    inner: Any = env
    while isinstance(inner, gym.Wrapper):
        if isinstance(inner, gym.ObservationWrapper | gym.RewardWrapper | gym.ActionWrapper):
            raise ValueError(
                f"wrapper {type(inner).__name__} inside changes observations, rewards or actions "
                "of CartPole; wrap it around DiscretizedCartPole instead"
            )
        inner = inner.env
    if env.observation_space != cartpole.observation_space:
        raise ValueError(f"observations must be those of CartPole, got {env.observation_space}")


def _four(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    entries = tuple(values) if isinstance(values, Iterable) else None
    if entries is None or len(entries) != len(AXES):
        raise ValueError(
            f"{name} must be {len(AXES)} numbers, of {', '.join(AXES)}, got {values!r}"
        )
    return entries
