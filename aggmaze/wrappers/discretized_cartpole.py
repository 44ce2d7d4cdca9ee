"""CartPole of which only the cell is observed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium as gym
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from aggmaze.cartpole.cells import DEFAULT_BINS, Cells
from aggmaze.cartpole.chain import DEFAULT_SUB_POINTS, cartpole_model, check_sub_points
from aggmaze.cartpole.physics import Physics
from aggmaze.models.tabular import TabularMDP
from aggmaze.wrappers.discretized import CellObservation, refuse_changes


class DiscretizedCartPole(CellObservation, gym.utils.RecordConstructorArgs):
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

    cells: Cells

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
        refuse_changes(env, "DiscretizedCartPole", "CartPole")
        self._physics = Physics.of(cartpole)
        cells = Cells.of(self._physics, bins, limits)
        self._sub_points = check_sub_points(sub_points)
        gym.utils.RecordConstructorArgs.__init__(
            self, bins=cells.bins, limits=cells.limits, sub_points=self._sub_points
        )
        CellObservation.__init__(self, env, cells, self._physics)

    def transition_model(self) -> TabularMDP:
        """Return the exact model of the chain of cells, its physics as it was at the wrapping.

        Warns
        -----
        UserWarning
            As `cartpole_model`.
        """
        return cartpole_model(self.cells, self._physics, sub_points=self._sub_points)
