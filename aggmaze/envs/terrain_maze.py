"""TerrainMaze-v0: an open grid with heights in two dimensions."""

from __future__ import annotations

from collections.abc import Iterable

from aggmaze.envs.maze import MazeEnv, make_grid
from aggmaze.mazes import TerrainRecipe


class TerrainMazeEnv(MazeEnv):
    """Cross a landscape in which climbing costs.

    ## Description
    The terrain maze of Chen et al., "An Adaptive State Aggregation Algorithm for Markov Decision
    Processes", section "MDP problems": an open grid whose positions have heights in [0, 1].  The
    agent walks from the top right corner to the goal at the bottom left.

    ## Action Space
    `Discrete(4)`: 0 LEFT, 1 RIGHT, 2 DOWN, 3 UP, one position each.

    ## Observation Space
    `Discrete(nx * ny)`: the state `x * ny + y`, with `(x, y)` counted from the bottom left.

    ## Starting State
    The corner opposite the goal (`start="corner"`), or uniformly any position but the goal
    (`start="uniform"`).  `reset(options=...)` takes `state` or `coords`, and `layout_seed` for
    another terrain.

    ## Rewards
    With `climb = H(next) - H(here)` a move gives `-(step_cost + climb)` for `cost="shifted"`
    (never positive at the default step cost; the paper's difference of heights, "normalized
    appropriately"), `-climb` for "difference", `-(step_cost + max(0, climb))` for "climb"; a move
    into the goal `goal_reward` more; all times `cost_scale`.  Choosing an unavailable move stays in
    place and gives `-max(0, largest move cost)`, so it never pays.

    ## Episode End
    Terminates at the goal, state 0.  Truncates after 1000 steps as registered; larger terrains
    take more: `gym.make(..., max_episode_steps=...)`.  A goal far beyond `1 / (1 - gamma)` steps
    is hardly worth reaching for a planner that discounts by `gamma`: it may settle in a valley.

    ## Transition Model
    The chosen move happens with probability `p`, else one of the other available moves, uniformly;
    where only one move is available it always happens.  `env.unwrapped.transition_model()` returns
    the exact model, the very tables that `step` draws from.

    ## Information
    `state` (int), `coords` (int array (2,)), `action_mask` (int8 array (4,)), `prob` (probability
    of what happened).

    ## Arguments
    - `shape`: positions along x and y, (20, 20) by default.
    - `layout_seed`: makes the heights, 0 by default; `reset(seed=...)` never changes it.
    - `terrain`: "smooth" (default; Gaussian field) or "uniform" (independent heights).
    - `smoothness`: standard deviation of the Gaussian in positions, a twentieth of the shape by
      default.
    - `cost`: "shifted" (default), "difference" or "climb".
    - `step_cost`, `goal_reward`, `cost_scale`: 1 by default.
    - `p`: in (0, 1], 1 by default.
    - `start`: "corner" (default) or "uniform".
    - `render_mode`: "rgb_array", "ansi" or None.

    ## Version History
    - v0: first version.
    """

    def __init__(
        self,
        shape: Iterable[int] = (20, 20),
        *,
        layout_seed: int = 0,
        terrain: str = "smooth",
        smoothness: float | None = None,
        cost: str = "shifted",
        step_cost: float = 1.0,
        goal_reward: float = 1.0,
        cost_scale: float = 1.0,
        p: float = 1.0,
        start: str = "corner",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            make_grid(shape, num_dims=2),
            TerrainRecipe(terrain, smoothness, cost, step_cost, goal_reward),
            layout_seed=layout_seed,
            p=p,
            start=start,
            cost_scale=cost_scale,
            render_mode=render_mode,
        )
