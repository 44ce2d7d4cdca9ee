"""DiscretizedCartPole-v0: the chain of CartPole's cells."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from numpy.typing import NDArray

from aggmaze.cartpole.cells import DEFAULT_BINS, Cells
from aggmaze.cartpole.chain import DEFAULT_SUB_POINTS, cartpole_model
from aggmaze.cartpole.physics import ACTION_NAMES, Physics
from aggmaze.envs.discretized import CellsEnv
from aggmaze.keys import axis_keys, describe_keys
from aggmaze.rendering import cart as pictures


class DiscretizedCartPoleEnv(CellsEnv):
    """Balance a pole on a cart that is seen in cells only.

    ## Description
    Gymnasium's CartPole with each of position, velocity, angle and angular velocity cut into equal
    bins, as in the CartPole experiment of Chen et al., "An Adaptive State Aggregation Algorithm for
    Markov Decision Processes".  This environment is the chain of cells, a finite Markov decision
    process: before every step the cart is put anywhere in its cell, at one of `prod(sub_points)`
    points drawn uniformly; then it moves by Gymnasium's own physics, and the cell that it comes to
    is the next state.  By default each number changes cell about as often as in CartPole, the state
    uniform in its cell: position in 4.0 % of all steps (there 4.0), velocity in 19.9 % (20.8),
    angle in 66.4 % (66.3), angular velocity in 47.6 % (45.8).  CartPole itself remembers where in
    its cell it is, and lasts longer or shorter under the same policy: the wrapper
    `aggmaze.DiscretizedCartPole` around CartPole-v1 shows cells of the real thing, with this same
    model.  As it starts, with `render_mode="ansi"`:

    ```text
    position          -2.40 |....A...| 2.40
    velocity          -3.00 |...A....| 3.00
    angle             -0.21 |......A.....| 0.21
    angular velocity  -3.50 |......A......| 3.50
    ```

    ## Action Space
    `Discrete(2)`: 0 pushes the cart to the left, 1 to the right.

    ## Observation Space
    `Discrete(n + 1)` for n cells: cell `ravel_multi_index((position, velocity, angle, angular
    velocity), bins)`, each bin counted from its lowest value; n means having failed.

    ## Starting State
    As CartPole starts, each number uniform in (-0.05, 0.05): the cells that have a share in that
    cube, with the probability of their share.  `reset(options=...)` takes `state`.

    ## Rewards
    1 for every step, the one that fails included; with `sutton_barto_reward`, -1 for the step that
    fails and 0 for the others.

    ## Episode End
    Terminates where the pole leaves 12 degrees or the cart 2.4 m.  Truncates after 1000 steps as
    registered.

    ## Transition Model
    `env.unwrapped.transition_model()` returns the exact model, the very tables that `step` draws
    from.

    ## Information
    `state` (int), `action_mask` (int8 array (2,), both ones), `prob` (probability of what
    happened).

    ## Arguments
    - `bins`: number of bins of each number, (8, 8, 12, 13) by default.  The optimal policy of the
      defaults held CartPole-v1 up for 20,000 steps, the most that was tried, from each of the seeds
      0 to 7; those of many other bins do not balance (`help(aggmaze.DiscretizedCartPole)`).
    - `limits`: the bins of each number lie between -limit and limit, and the outermost ones take
      what lies beyond; by default (2.4, 3, 12 degrees, 3.5).  Those of position and angle are at
      most that, and should be no less: the chain would not see the pole fall.
    - `sub_points`: points of a cell along each axis, (24, 4, 3, 3) by default; one integer stands
      for all axes.  With too few, no point comes to another cell along some axis: a warning names
      such axes, and the sub-points at which they begin to move.  Another one says when no policy
      can fail.
    - `sutton_barto_reward`: False by default.
    - `render_mode`: None (default), "human" (a window), "rgb_array" (the centre of the cell) or
      "ansi"; in each, `env.unwrapped.set_overlay` shows values, a policy or mega-states.

    The defaults, in full:

    ```python
    import gymnasium as gym
    import aggmaze

    env = gym.make(
        "DiscretizedCartPole-v0",
        bins=(8, 8, 12, 13),
        limits=None,
        sub_points=(24, 4, 3, 3),
        sutton_barto_reward=False,
        render_mode=None,
    )
    ```

    A policy of the chain, tried on the real thing:

    ```python
    import planners

    env = aggmaze.DiscretizedCartPole(gym.make("CartPole-v1"))
    result = planners.solve(env, gamma=0.99)
    assert planners.rollout(env, result, episodes=3, seed=0).lengths.min() == 500
    ```

    ## Version History
    - v0: first version.
    """

    cells: Cells

    def __init__(
        self,
        *,
        bins: Iterable[int] = DEFAULT_BINS,
        limits: Iterable[float] | None = None,
        sub_points: int | Iterable[int] = DEFAULT_SUB_POINTS,
        sutton_barto_reward: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.check_render_mode(render_mode)
        self._physics = Physics.of(CartPoleEnv(sutton_barto_reward))
        cells = Cells.of(self._physics, bins, limits)
        model = cartpole_model(cells, self._physics, sub_points=sub_points)
        super().__init__(model, cells, render_mode=render_mode)

    def get_keys_to_action(self) -> dict[tuple[int], int]:
        """Return the action of each key, for `gymnasium.utils.play`: left and right, or A and D."""
        return axis_keys(1)

    @property
    def keys_in_words(self) -> str:
        """Which keys push."""
        return describe_keys(1)

    def action_name(self, action: int) -> str:
        """Return the name of an action: LEFT or RIGHT."""
        return ACTION_NAMES[action]

    def _text(self) -> str:
        return pictures.text(self.cells, self._state, self._overlay)

    def _picture(self, area: tuple[int, int] | None = None) -> NDArray[np.uint8]:
        return pictures.frame(self.cells, self._physics, self._state, self._overlay, area)
