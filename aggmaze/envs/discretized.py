"""Gymnasium's continuous control in cells: models as environments of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, MountainCarEnv, PendulumEnv
from numpy.typing import ArrayLike, NDArray

from aggmaze.cells.cells import Cells
from aggmaze.cells.control import Acrobot, ControlProblem, MountainCar, Pendulum
from aggmaze.cells.discretize import discretized, warn_of
from aggmaze.envs.tabular import TabularEnv
from aggmaze.keys import DOWN, axis_keys
from aggmaze.models.model import Model
from aggmaze.rendering import control as pictures
from aggmaze.rendering.overlay import Overlay

# Keys of actions that are not left, nothing and right.
_DIGITS = "123456789"


class CellsEnv(TabularEnv):
    """A model of cells as an environment, drawn with what is known of its states.

    Parameters
    ----------
    model : Model
    cells : Cells
    render_mode : str, optional
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 50}
    _tells_returns = True

    def __init__(self, model: Model, cells: Cells, *, render_mode: str | None = None) -> None:
        self.cells = cells
        self._overlay = Overlay()
        super().__init__(model, render_mode=render_mode)

    def set_overlay(
        self,
        *,
        values: ArrayLike | None = None,
        policy: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        gamma: float | None = None,
    ) -> None:
        """Show with each cell, in every render mode from now on, what is known of it.

        What is None is not shown; without arguments nothing is.

        Parameters
        ----------
        values : array_like of float, shape (S,), optional
            Costs-to-go, pointed at on a scale of returns, which are minus the costs.
        policy : array_like of int, shape (S,), optional
            An action in each state, as an arrow.
        labels : array_like of int, shape (S,), optional
            Mega-state of each state, in the order of their values: the colour of what moves.
        gamma : float, optional
            The discount of the values in [0, 1], written beside their scale.

        Raises
        ------
        ValueError
            If an array has another shape, or holds what is no action or label, or no value is
            finite, or gamma is not in [0, 1].
        TypeError
            If values or gamma are not real numbers, or the others not integers.
        """
        self._overlay = Overlay.of(
            self._model.num_states,
            self._model.num_actions,
            values=values,
            policy=policy,
            labels=labels,
            gamma=gamma,
            returns=self._tells_returns,
        )

    def get_keys_to_action(self) -> dict[tuple[int], int]:
        """Return the action of each key, for `gymnasium.utils.play`."""
        raise NotImplementedError

    @property
    def keys_in_words(self) -> str:
        """Which keys act."""
        raise NotImplementedError

    def action_name(self, action: int) -> str:
        """Return the name of an action."""
        raise NotImplementedError

    def action_with_key(self, action: int) -> str:
        """Return the name of an action, and its key where the name does not say it."""
        return self.action_name(action)

    @property
    def reached_goal(self) -> bool:
        """Whether what was to be reached has been."""
        return False


class DiscretizedEnv(CellsEnv):
    """One of Gymnasium's control problems in cells, or between corners.

    Parameters
    ----------
    problem : ControlProblem
    bins, method, sub_points
        As of `aggmaze.discretize`.
    render_mode : str, optional
    """

    # Pictures a second are those of Gymnasium's own problems: 30, and 15 of Acrobot's.
    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 30}

    def __init__(
        self,
        problem: ControlProblem,
        bins: Iterable[int],
        method: str,
        sub_points: int | Iterable[int] | None,
        render_mode: str | None,
    ) -> None:
        self._problem = problem
        found, faults = discretized(problem, bins, method, sub_points)
        # Shown where the environment is made.
        warn_of(faults, stacklevel=3)
        super().__init__(found.model, found.cells, render_mode=render_mode)

    def get_keys_to_action(self) -> dict[tuple[int], int]:
        """Return the action of each key, for `gymnasium.utils.play`.

        Of three actions left, down and right, or A, S and D; of others 1 to 9 from the first action
        to the last.
        """
        count = self._problem.num_actions
        if count == 3:
            sides = {key: 2 * action for key, action in axis_keys(1).items()}
            return {**sides, (DOWN,): 1, (ord("s"),): 1}
        digits = _DIGITS[:count]
        places = np.linspace(0, count - 1, len(digits)).round().astype(int).tolist()
        return {(ord(digit),): place for digit, place in zip(digits, places, strict=True)}

    @property
    def keys_in_words(self) -> str:
        """Which keys act."""
        count = self._problem.num_actions
        return "left, down and right, or A, S and D" if count == 3 else f"1 to {min(count, 9)}"

    def action_name(self, action: int) -> str:
        """Return the name of an action: LEFT, NONE or RIGHT, or a torque."""
        return self._problem.action_names[action]

    @property
    def reached_goal(self) -> bool:
        """Whether what was to be reached has been."""
        return self._state == self.cells.end

    def _text(self) -> str:
        return pictures.text(self._problem, self.cells, self._state, self._overlay)

    def _picture(self, area: tuple[int, int] | None = None) -> NDArray[np.uint8]:
        return pictures.frame(self._problem, self.cells, self._state, self._overlay, area)


class DiscretizedMountainCarEnv(DiscretizedEnv):
    """Drive an underpowered car out of a valley, its position and velocity on a grid.

    ## Description
    Gymnasium's MountainCar as a finite Markov decision process.  States are the corners of a grid
    over positions from -1.2 to 0.6 and velocities from -0.07 to 0.07; a step moves the car from a
    corner by Gymnasium's own physics, and leads to the corners around where that ends, with the
    weights of bilinear interpolation.  With `method="average"` states are cells, and before every
    step the car is put anywhere in its cell, at one of `prod(sub_points)` points.  MountainCar
    itself remembers where between the corners it is: the wrapper `aggmaze.Discretized` around
    MountainCar-v0 shows the nearest corner of the real thing, with this same model.  The optimal
    policy of the defaults reaches the goal there from every start, in 98.9 steps on average.  As it
    starts, with `render_mode="ansi"`:

    ```text
    position   -1.20 |................A.......................| 0.60   -0.474
    velocity   -0.07 |....................A...................| 0.07    0.001
    ```

    ## Action Space
    `Discrete(3)`: 0 pushes to the left, 1 not at all, 2 to the right.

    ## Observation Space
    `Discrete(n + 1)` for n corners (or cells): `ravel_multi_index((position, velocity), bins)`,
    each counted from its lowest value; n means having reached the goal.

    ## Starting State
    As MountainCar starts, at rest, its position uniform in (-0.6, -0.4): the corners around, with
    their mean weights.  `reset(options=...)` takes `state`.

    ## Rewards
    -1 for every step, the last one included.

    ## Episode End
    Terminates where the car reaches position 0.5 with at least the velocity `goal_velocity`.
    Truncates after 1000 steps as registered.

    ## Transition Model
    `env.unwrapped.transition_model()` returns the exact model, the very tables that `step` draws
    from.

    ## Information
    `state` (int), `action_mask` (int8 array (3,), all ones), `prob` (probability of what
    happened).

    ## Arguments
    - `bins`: corners along each axis, or cells, (120, 100) by default.
    - `method`: "interpolate", the default, or "average".
    - `sub_points`: points of a cell along each axis, for "average"; by default so many that from
      the outermost a typical step leaves the cell.
    - `goal_velocity`: 0 by default.
    - `render_mode`: None (default), "human" (a window), "rgb_array" (the corner, or the centre of
      the cell) or "ansi"; in each, `env.unwrapped.set_overlay` shows values, a policy or
      mega-states.

    The defaults, in full:

    ```python
    import gymnasium as gym
    import aggmaze

    env = gym.make(
        "DiscretizedMountainCar-v0",
        bins=(120, 100),
        method="interpolate",
        sub_points=None,
        goal_velocity=0.0,
        render_mode=None,
    )
    ```

    A policy of the model, tried on the real thing:

    ```python
    import planners

    env = aggmaze.Discretized(gym.make("MountainCar-v0"))
    result = planners.solve(env, gamma=1)
    assert planners.rollout(env, result, episodes=20, seed=0).returns.mean() > -110
    ```

    ## Version History
    - v0: first version.
    """

    def __init__(
        self,
        *,
        bins: Iterable[int] = MountainCar.default_bins,
        method: str = MountainCar.default_method,
        sub_points: int | Iterable[int] | None = None,
        goal_velocity: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        self.check_render_mode(render_mode)
        problem = MountainCar.of(MountainCarEnv(goal_velocity=goal_velocity))
        super().__init__(problem, bins, method, sub_points, render_mode)


class DiscretizedAcrobotEnv(DiscretizedEnv):
    """Swing two links up by the joint between them, angles and velocities on a grid.

    ## Description
    Gymnasium's Acrobot as a finite Markov decision process.  States are the corners of a grid over
    both angles, all around, and their velocities within `limits`; a step moves the links from a
    corner by Gymnasium's own physics, and leads to the corners around where that ends, with the
    weights of multilinear interpolation.  With `method="average"` states are cells, and before
    every step the links are put anywhere in their cell, at one of `prod(sub_points)` points.
    Acrobot itself remembers where between the corners it is: the wrapper `aggmaze.Discretized`
    around Acrobot-v1 shows the nearest corner of the real thing, with this same model.  As it
    starts, with `render_mode="ansi"`:

    ```text
    angle 1      -3.14 |......A.....| 3.14    0.000
    angle 2      -3.14 |......A.....| 3.14    0.000
    velocity 1   -6.00 |.......A.......| 6.00    0.000
    velocity 2  -10.00 |.......A.......| 10.00    0.000
    ```

    ## Action Space
    `Discrete(3)`: the torque at the joint, 0 is -1, 1 is none, 2 is 1.

    ## Observation Space
    `Discrete(n + 1)` for n corners (or cells): `ravel_multi_index((angle 1, angle 2, velocity 1,
    velocity 2), bins)`, each counted from its lowest value; n means that the tip is up.

    ## Starting State
    As Acrobot starts, each number uniform in (-0.1, 0.1): the corners around, with their mean
    weights.  `reset(options=...)` takes `state`.

    ## Rewards
    -1 for every step but the last, which pays 0.

    ## Episode End
    Terminates where the tip is a link's length above where the links hang.  Truncates after 1000
    steps as registered.

    ## Transition Model
    `env.unwrapped.transition_model()` returns the exact model, the very tables that `step` draws
    from.

    ## Information
    `state` (int), `action_mask` (int8 array (3,), all ones), `prob` (probability of what
    happened).

    ## Arguments
    - `bins`: corners along each axis, or cells, (12, 12, 15, 15) by default.
    - `method`: "interpolate", the default, or "average".
    - `sub_points`: points of a cell along each axis, for "average"; by default so many that from
      the outermost a typical step leaves the cell.
    - `limits`: the velocities of the grid lie between -limit and limit, (6, 10) by default; at most
      what the physics allows, 4 pi and 9 pi.
    - `render_mode`: None (default), "human" (a window), "rgb_array" (the corner, or the centre of
      the cell) or "ansi"; in each, `env.unwrapped.set_overlay` shows values, a policy or
      mega-states.

    The defaults, in full:

    ```python
    import gymnasium as gym
    import aggmaze

    env = gym.make(
        "DiscretizedAcrobot-v0",
        bins=(12, 12, 15, 15),
        method="interpolate",
        sub_points=None,
        limits=(6.0, 10.0),
        render_mode=None,
    )
    ```

    A policy of the model, tried on the real thing:

    ```python
    import planners

    env = aggmaze.Discretized(gym.make("Acrobot-v1"))
    result = planners.solve(env, gamma=0.99)
    assert planners.rollout(env, result, episodes=20, seed=0).returns.mean() > -100
    ```

    ## Version History
    - v0: first version.
    """

    metadata: dict[str, Any] = {**DiscretizedEnv.metadata, "render_fps": 15}

    def __init__(
        self,
        *,
        bins: Iterable[int] = Acrobot.default_bins,
        method: str = Acrobot.default_method,
        sub_points: int | Iterable[int] | None = None,
        limits: Iterable[float] = Acrobot.default_limits,
        render_mode: str | None = None,
    ) -> None:
        self.check_render_mode(render_mode)
        problem = Acrobot.of(AcrobotEnv(), limits)
        super().__init__(problem, bins, method, sub_points, render_mode)


class DiscretizedPendulumEnv(DiscretizedEnv):
    """Swing a pendulum up and hold it, by torques in steps, angle and velocity on a grid.

    ## Description
    Gymnasium's Pendulum as a finite Markov decision process.  States are the corners of a grid over
    the angle, all around, and the angular velocity from -8 to 8; a step moves the pendulum from a
    corner by Gymnasium's own physics, and leads to the corners around where that ends, with the
    weights of bilinear interpolation.  With `method="average"` states are cells, and before every
    step the pendulum is put anywhere in its cell, at one of `prod(sub_points)` points.  Pendulum
    itself remembers where between the corners it is, and takes any torque: the wrapper
    `aggmaze.Discretized` around Pendulum-v1 shows the nearest corner of the real thing, with this
    same model and its torques.  As it may start, with `render_mode="ansi"`:

    ```text
    angle              -3.14 |.........................A..............| 3.14    0.840
    angular velocity   -8.00 |..................A.....................| 8.00   -0.400
    ```

    ## Action Space
    `Discrete(num_torques)`: evenly spaced torques, from -2 to 2.

    ## Observation Space
    `Discrete(n)` for n corners (or cells): `ravel_multi_index((angle, angular velocity), bins)`,
    each counted from its lowest value.

    ## Starting State
    As Pendulum starts, the angle uniform all around, the angular velocity in (-1, 1): the corners
    there, with their mean weights.  `reset(options=...)` takes `state`.

    ## Rewards
    As Pendulum's, at most 0: minus the square of the angle from upright, a tenth of that of the
    angular velocity, and a thousandth of that of the torque.

    ## Episode End
    Never terminates.  Truncates after 1000 steps as registered; Pendulum-v1 does after 200.

    ## Transition Model
    `env.unwrapped.transition_model()` returns the exact model, the very tables that `step` draws
    from.

    ## Information
    `state` (int), `action_mask` (int8 array (num_torques,), all ones), `prob` (probability of what
    happened).

    ## Arguments
    - `bins`: corners along each axis, or cells, (101, 81) by default.
    - `method`: "interpolate", the default, or "average".
    - `sub_points`: points of a cell along each axis, for "average"; by default so many that from
      the outermost a typical step leaves the cell.
    - `num_torques`: 7 by default, at least 2; an odd number has one of no torque.
    - `g`: acceleration of gravity, 10 by default.
    - `render_mode`: None (default), "human" (a window), "rgb_array" (the corner, or the centre of
      the cell) or "ansi"; in each, `env.unwrapped.set_overlay` shows values, a policy or
      mega-states.

    The defaults, in full:

    ```python
    import gymnasium as gym
    import aggmaze

    env = gym.make(
        "DiscretizedPendulum-v0",
        bins=(101, 81),
        method="interpolate",
        sub_points=None,
        num_torques=7,
        g=10.0,
        render_mode=None,
    )
    ```

    A policy of the model, tried on the real thing:

    ```python
    import planners

    env = aggmaze.Discretized(gym.make("Pendulum-v1"))
    result = planners.solve(env, gamma=0.99)
    assert planners.rollout(env, result, episodes=20, seed=0).returns.mean() > -200
    ```

    ## Version History
    - v0: first version.
    """

    def __init__(
        self,
        *,
        bins: Iterable[int] = Pendulum.default_bins,
        method: str = Pendulum.default_method,
        sub_points: int | Iterable[int] | None = None,
        num_torques: int = 7,
        g: float = 10.0,
        render_mode: str | None = None,
    ) -> None:
        self.check_render_mode(render_mode)
        problem = Pendulum.of(PendulumEnv(g=g), num_torques)
        super().__init__(problem, bins, method, sub_points, render_mode)
