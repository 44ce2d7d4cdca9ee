"""StandardMaze-v0: a perfect maze in two dimensions."""

from __future__ import annotations

from collections.abc import Iterable

from aggmaze.envs.maze import MazeEnv, make_grid
from aggmaze.mazes import StandardRecipe


class StandardMazeEnv(MazeEnv):
    """Find the way through a maze with exactly one path to the goal.

    ## Description
    The standard maze of Chen et al., "An Adaptive State Aggregation Algorithm for Markov Decision
    Processes", section "MDP problems": a grid of positions joined by a random spanning tree.  The
    agent walks from the top right corner to the goal at the bottom left.

    ## Action Space
    `Discrete(4)`: 0 LEFT, 1 RIGHT, 2 DOWN, 3 UP, one position each.

    ## Observation Space
    `Discrete(nx * ny)`: the state `x * ny + y`, with `(x, y)` counted from the bottom left.

    ## Starting State
    The corner opposite the goal (`start="corner"`), or uniformly any position but the goal
    (`start="uniform"`).  `reset(options=...)` takes `state` or `coords`, and `layout_seed` for
    another maze.

    ## Rewards
    Each move gives `-step_cost`, a move into the goal `+goal_reward` instead; all times
    `cost_scale`.  Choosing an unavailable move stays in place and gives
    `-max(0, largest move cost)`, so it never pays.

    ## Episode End
    Terminates at the goal, state 0.  Truncates after 1000 steps as registered; long corridors take
    more: `gym.make(..., max_episode_steps=...)`.

    ## Transition Model
    The chosen move happens with probability `p`, else one of the other available moves, uniformly;
    where only one move is available it always happens.  `env.unwrapped.transition_model()` returns
    the exact model, the very tables that `step` draws from.

    ## Information
    `state` (int), `coords` (int array (2,)), `action_mask` (int8 array (4,)), `prob` (probability
    of what happened).

    ## Arguments
    - `shape`: positions along x and y, (20, 20) by default.
    - `layout_seed`: makes the maze, 0 by default; `reset(seed=...)` never changes it.
    - `generator`: "kruskal" (default) or "depth_first" (long corridors).
    - `loops`: share of the remaining walls opened after generation, 0 by default.
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
        generator: str = "kruskal",
        loops: float = 0.0,
        step_cost: float = 1.0,
        goal_reward: float = 1.0,
        cost_scale: float = 1.0,
        p: float = 1.0,
        start: str = "corner",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            make_grid(shape, num_dims=2),
            StandardRecipe(generator, loops, step_cost, goal_reward),
            layout_seed=layout_seed,
            p=p,
            start=start,
            cost_scale=cost_scale,
            render_mode=render_mode,
        )
