"""StandardMaze-v0: a perfect maze in two dimensions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from aggmaze.envs.maze import MazeEnv, make_plan, refuse_beside_layout
from aggmaze.recipes import MazeOptions, StandardRecipe, Start

DEFAULT_SHAPE = (20, 20)


class StandardMazeEnv(MazeEnv):
    """Find the way through a maze with exactly one path to the goal.

    ## Description
    The standard maze of Chen et al., "An Adaptive State Aggregation Algorithm for Markov Decision
    Processes", section "MDP problems": a grid of positions joined by a random spanning tree.  The
    agent walks from the top right corner to the goal at the bottom left.  `layout=` takes a maze
    of your own as text instead.  With `shape=(4, 3)` and `render_mode="ansi"` it looks like this,
    `A` being the agent and `G` the goal:

    ```text
    +---+---+---+---+
    |       |   | A |
    +   +---+   +   +
    |               |
    +---+---+   +---+
    | G             |
    +---+---+---+---+
    ```

    ## Action Space
    `Discrete(4)`: 0 LEFT, 1 RIGHT, 2 DOWN, 3 UP, one position each.

    ## Observation Space
    `Discrete(nx * ny)`: the state `x * ny + y`, with `(x, y)` counted from the bottom left.

    ## Starting State
    The `S` of the text, or else the corner opposite the goal (`start="corner"`); uniformly any
    free position but the goal (`start="uniform"`); or the coordinates given as `start`.
    `reset(options=...)` takes `state` or `coords` of a free position, and `layout_seed` for another
    maze, which a maze from text refuses: nothing in it is drawn.

    ## Rewards
    Each move gives `-step_cost`, a move into the goal `+goal_reward` instead; all times
    `cost_scale`, in whose unit values and returns are then.  Choosing an unavailable move stays in
    place and gives `-max(0, largest move cost)`, so it never pays.

    ## Episode End
    Terminates at the goal: state 0 unless `goal` or the text says otherwise.  Truncates after 1000
    steps as registered; long corridors take more: `gym.make(..., max_episode_steps=...)`.

    ## Transition Model
    The chosen move happens with probability `p`, else one of the other available moves, uniformly;
    where only one move is available it always happens.  `env.unwrapped.transition_model()` returns
    the exact model, the very tables that `step` draws from.  Blocked cells of a text keep their
    index; they are never entered, and have no move and value 0.

    ## Information
    `state` (int), `coords` (int array (2,)), `action_mask` (int8 array (4,)), `prob` (probability
    of what happened).

    ## Arguments
    - `shape`: positions along x and y, (20, 20) by default.
    - `layout`: a maze as text, or a file with one (a `pathlib.Path`, or a name that ends in .txt
      or .map).  Thin walls are what `render_mode="ansi"` writes (`+---+`, `|`;
      cells three characters wide, `###` where blocked); or one character a cell, `#` blocked and
      `.` or a space free.  `G` is the goal and `S` the start; the last line is y = 0.  Every free
      cell must reach the goal.  It settles the shape and all walls: `generator`,
      `loops` and `layout_seed` do not go with it.
    - `layout_seed`: makes the maze, 0 by default; `reset(seed=...)` never changes it.
    - `generator`: "kruskal" (default); "depth_first" (long corridors); "binary_tree" (each cell is
      joined to the one on its left or below it: no way to (0, 0) is longer than without walls) and
      "blocks" (blocks of 64 by 64 cells, joined by single doors, and blocks of blocks), of which
      `aggmaze.model_by_rows` makes any part alone, in mazes of any size.
    - `loops`: share of the remaining walls opened after generation, 0 by default; of "binary_tree"
      and "blocks" the chance of each.
    - `step_cost`, `goal_reward`, `cost_scale`: 1 by default.
    - `p`: in (0, 1], 1 by default.
    - `start`: "corner" (default), "uniform", or coordinates such as (3, 4).
    - `goal`: coordinates, which come before the `G` of the text; (0, 0) without either.  The corner
      opposite a goal that is in no corner is the one farthest from it, the right and the upper one
      where two are as far.
    - `render_mode`: None (default), "human" (a window), "rgb_array" or "ansi"; in each,
      `env.unwrapped.set_overlay` shows values, a policy, mega-states or a path.

    The defaults, in full:

    ```python
    import gymnasium as gym
    import aggmaze

    env = gym.make(
        "StandardMaze-v0",
        shape=(20, 20),
        layout=None,
        layout_seed=0,
        generator="kruskal",
        loops=0.0,
        step_cost=1.0,
        goal_reward=1.0,
        cost_scale=1.0,
        p=1.0,
        start="corner",
        goal=None,
        render_mode=None,
    )
    ```

    A slippery maze of your own, with more than one way:

    ```python
    env = gym.make(
        "StandardMaze-v0",
        p=0.9,
        layout='''
        ......S
        .###.#.
        G....#.
        ''',
    )
    observation, info = env.reset(seed=0)
    assert info["coords"].tolist() == [6, 2]
    ```

    ## Version History
    - v0: first version.
    """

    def __init__(
        self,
        shape: Iterable[int] = DEFAULT_SHAPE,
        *,
        layout: str | os.PathLike[str] | None = None,
        layout_seed: int = 0,
        generator: str = "kruskal",
        loops: float = 0.0,
        step_cost: float = 1.0,
        goal_reward: float = 1.0,
        cost_scale: float = 1.0,
        p: float = 1.0,
        start: Start = "corner",
        goal: Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        recipe = StandardRecipe(generator, loops, step_cost, goal_reward)
        refuse_beside_layout(layout, generator=(generator, "kruskal"), loops=(loops, 0.0))
        super().__init__(
            lambda: make_plan(shape, layout, default_shape=DEFAULT_SHAPE, num_dims=2),
            MazeOptions(recipe, layout_seed, p, start, goal, cost_scale),
            render_mode=render_mode,
        )
