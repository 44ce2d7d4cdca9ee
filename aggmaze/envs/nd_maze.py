"""NDMaze-v0: either maze in one to eight dimensions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from aggmaze.checks import check_choice
from aggmaze.envs.maze import MazeEnv, make_plan, refuse_beside_layout
from aggmaze.recipes import MazeOptions, Recipe, StandardRecipe, Start, TerrainRecipe

DEFAULT_SHAPE = (6, 6, 6)

_RECIPES: dict[str, type[StandardRecipe] | type[TerrainRecipe]] = {
    "standard": StandardRecipe,
    "terrain": TerrainRecipe,
}


class NDMazeEnv(MazeEnv):
    """A standard or a terrain maze in one to eight dimensions.

    ## Description
    The multi-dimensional mazes of Chen et al., "An Adaptive State Aggregation Algorithm for Markov
    Decision Processes", section "MDP problems".  See StandardMaze-v0 and TerrainMaze-v0 for what
    the two kinds are; the goal is position (0, ..., 0) unless chosen.  Of `shape=(2, 2, 2)` with
    `render_mode="ansi"` one sees the slices through the agent:

    ```text
    axes 0 (right) and 1 (up)
    +---+---+
    |     A |
    +   +---+
    |   |   |
    +---+---+

    axes 0 (right) and 2 (up)
    +---+---+
    |     A |
    +---+   +
    |       |
    +---+---+

    axes 1 (right) and 2 (up)
    +---+---+
    |   | A |
    +   +   +
    |   |   |
    +---+---+
    ```

    ## Action Space
    `Discrete(2 D)`: action `2 k` moves by -1 and action `2 k + 1` by +1 along axis `k`.

    ## Observation Space
    `Discrete(S)`: the state `ravel_multi_index(coords, shape)`.

    ## Starting State
    The corner opposite the goal (`start="corner"`), uniformly any free position but the goal
    (`start="uniform"`), or the coordinates given as `start`.  `reset(options=...)` takes `state` or
    `coords` of a free position, and `layout_seed`.

    ## Rewards
    Of kind "standard" a move gives `-step_cost`, a move into the goal `+goal_reward` instead.  Of
    kind "terrain", with `climb = H(next) - H(here)`, a move gives `-(step_cost + climb)` for
    `cost="shifted"`, `-climb` for "difference", `-(step_cost + max(0, climb))` for "climb", and a
    move into the goal `goal_reward` more.  All times `cost_scale`, in whose unit values and
    returns are then.  Choosing an unavailable move stays in place and gives
    `-max(0, largest move cost)`, so it never pays.

    ## Episode End
    Terminates at the goal: state 0 unless `goal` or the text says otherwise.  Truncates after 1000
    steps as registered.

    ## Transition Model
    The chosen move happens with probability `p`, else one of the other available moves, uniformly;
    where only one move is available it always happens.  `env.unwrapped.transition_model()` returns
    the exact model, the very tables that `step` draws from.  Blocked cells of a text keep their
    index; they are never entered, and have no move and value 0.

    ## Information
    `state` (int), `coords` (int array (D,)), `action_mask` (int8 array (2 D,)), `prob`
    (probability of what happened).  Pictures are slices through the agent, one for each pair of
    axes.

    ## Arguments
    - `shape`: positions along each axis, (6, 6, 6) by default.
    - `kind`: "standard" (default) or "terrain".
    - `generator`: "kruskal" (default), "depth_first" (long corridors), "binary_tree" or "blocks"
      (see StandardMaze-v0); kind "standard" only.
    - `loops`: share of the remaining walls opened after generation, 0 by default; kind "standard"
      only.
    - `terrain`: "smooth" (default), "fractal", "uniform" or "noise"; kind "terrain" only.
    - `smoothness`: how far "smooth" heights and "noise" are alike, in positions, a twentieth of the
      shape by default (see TerrainMaze-v0); kind "terrain" only.
    - `cost`: "shifted" (default), "difference" or "climb"; kind "terrain" only.
    - `layout`: a maze of two dimensions as text, or in a file, as in both; it settles the shape.
    - `start`: "corner" (default), "uniform", or coordinates, one an axis.
    - `goal`: coordinates, which come before the `G` of the text; (0, ..., 0) without either.  The
      corner opposite a goal that is in no corner is the one farthest from it, at the upper end of
      an axis where both are as far.
    - `layout_seed`: makes the maze or the heights, 0 by default; `reset(seed=...)` never changes
      it.
    - `step_cost`, `goal_reward`, `cost_scale`: 1 by default.
    - `p`: in (0, 1], 1 by default.
    - `render_mode`: None (default), "human" (a window), "rgb_array" or "ansi"; in each,
      `env.unwrapped.set_overlay` shows values, a policy, mega-states or a path.

    The defaults, in full, None being those of the kind:

    ```python
    import gymnasium as gym
    import aggmaze

    env = gym.make(
        "NDMaze-v0",
        shape=(6, 6, 6),
        kind="standard",
        layout=None,
        layout_seed=0,
        generator=None,
        loops=None,
        terrain=None,
        smoothness=None,
        cost=None,
        step_cost=1.0,
        goal_reward=1.0,
        cost_scale=1.0,
        p=1.0,
        start="corner",
        goal=None,
        render_mode=None,
    )
    ```

    A terrain of five dimensions:

    ```python
    env = gym.make("NDMaze-v0", shape=(4,) * 5, kind="terrain", p=0.9)
    assert env.observation_space.n == 4**5
    assert env.action_space.n == 10
    ```

    ## Version History
    - v0: first version.
    """

    def __init__(
        self,
        shape: Iterable[int] = DEFAULT_SHAPE,
        *,
        kind: str = "standard",
        layout: str | os.PathLike[str] | None = None,
        layout_seed: int = 0,
        generator: str | None = None,
        loops: float | None = None,
        terrain: str | None = None,
        smoothness: float | None = None,
        cost: str | None = None,
        step_cost: float = 1.0,
        goal_reward: float = 1.0,
        cost_scale: float = 1.0,
        p: float = 1.0,
        start: Start = "corner",
        goal: Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        refuse_beside_layout(layout, generator=(generator, None), loops=(loops, None))
        recipe = nd_recipe(
            kind=kind,
            generator=generator,
            loops=loops,
            terrain=terrain,
            smoothness=smoothness,
            cost=cost,
            step_cost=step_cost,
            goal_reward=goal_reward,
        )
        super().__init__(
            lambda: make_plan(shape, layout, default_shape=DEFAULT_SHAPE),
            MazeOptions(recipe, layout_seed, p, start, goal, cost_scale),
            render_mode=render_mode,
        )


def nd_recipe(
    *,
    kind: str,
    generator: str | None,
    loops: float | None,
    terrain: str | None,
    smoothness: float | None,
    cost: str | None,
    step_cost: float,
    goal_reward: float,
) -> Recipe:
    """Return the recipe of either kind, and refuse what goes with the other.

    Parameters
    ----------
    kind, generator, loops, terrain, smoothness, cost, step_cost, goal_reward
        As for NDMaze-v0.
    """
    check_choice("kind", kind, _RECIPES)
    options = {
        "standard": {"generator": generator, "loops": loops},
        "terrain": {"terrain": terrain, "smoothness": smoothness, "cost": cost},
    }
    for other in options:
        for name, value in options[other].items():
            if other != kind and value is not None:
                raise ValueError(f"{name}={value!r} goes with kind={other!r}, not {kind!r}")
    given = {name: value for name, value in options[kind].items() if value is not None}
    return _RECIPES[kind](
        step_cost=step_cost,
        goal_reward=goal_reward,
        **given,  # type: ignore[arg-type]
    )
