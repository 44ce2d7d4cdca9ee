"""GridWorld-v0: grid worlds as people write them, and those of the literature by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aggmaze.checks import check_choice, did_you_mean
from aggmaze.envs.layout_env import LayoutEnv
from aggmaze.grid import KingGrid
from aggmaze.grid_worlds import GridWorldRules, WorldStart, grid_world_model
from aggmaze.keys import describe_king_keys, king_keys
from aggmaze.layouts.ready import READY, ReadyLayout
from aggmaze.layouts.text import names_file
from aggmaze.layouts.worlds import MOVES, UNREACHABLE, GridWorld, Source

# What holds where neither the caller nor a ready layout says anything; of the rest `GridWorldRules`
# knows the defaults.
_MOVES = "four"


class GridWorldEnv(LayoutEnv):
    """Walk through a grid world of your own, or of the literature.

    ## Description
    A map with walls, goals, pits, lava and cells that pay, drawn as text, and the rules by which
    one moves in it: slips, wind, bumps, king's moves.  Without arguments it is the 4x3 world of
    Russell and Norvig's "Artificial Intelligence: A Modern Approach".  With `render_mode="ansi"`
    that looks like this, `A` being the agent, `G` the goal and `H` the pit:

    ```text
    +---+---+---+---+
    |             G |
    +   +---+   +   +
    |   |###|     H |
    +   +---+   +   +
    | A             |
    +---+---+---+---+
    ```

    Ready by name are `aima-4x3`, `cliff`, `windy`, `windy-king`, `windy-stochastic`, `four-rooms`,
    `frozen-lake-4x4`, `frozen-lake-8x8`, `sutton-4x4` and `dyna-maze`, each with the rules that it
    was published with; `aggmaze.ready_layout(name)` has the text, the rules and the source.

    ## Action Space
    `Discrete(4)`: 0 LEFT, 1 RIGHT, 2 DOWN, 3 UP.  With `moves="king"` `Discrete(8)`: 4 LEFT_DOWN,
    5 LEFT_UP, 6 RIGHT_DOWN and 7 RIGHT_UP too; with `moves="king_or_stay"` also 8 STAY.

    ## Observation Space
    `Discrete(nx * ny)`: the state `x * ny + y`, with `(x, y)` counted from the bottom left.

    ## Starting State
    The `S` of the map, any of several with equal probability; without one, any free cell.  Or the
    coordinates given as `start`, or any free cell with `start="uniform"`.  `reset(options=...)`
    takes `state` or `coords` of a free cell.

    ## Rewards
    What the cell that is entered pays: the reward of its sign, or else `-step_cost`.  With
    `pays="leaving"` a step pays what the cell that is left does, and in addition the reward of an
    end that is entered.  A step that moves nothing, a bump, pays `-bump_cost` if that is given.

    ## Episode End
    Terminates at `G`, `H`, `L`, and wherever the table of signs says so.  Truncates after 1000
    steps as registered.

    ## Transition Model
    The chosen move is made with probability `p`.  Else, with `slip="perpendicular"`, one of the two
    at right angles to it, and with `slip="uniform"` one of all others.  Wind carries the agent up
    or down besides.  Who cannot go on stays where it is.  `env.unwrapped.transition_model()`
    returns the exact model, the very tables that `step` draws from.

    ## Information
    `state` (int), `coords` (int array (2,)), `action_mask` (int8 array (A,)), `prob` (probability
    of what happened).

    ## Arguments
    None leaves to a ready layout what it says; the default of all other maps is in brackets.

    - `layout`: the name of a ready layout; text with thin walls (`+---+`, `|`) or one character a
      cell; a list of its lines, as FrozenLake's maps are; an array, top row first, of characters,
      or of 0 where free and 1 where blocked; or the path of a file with text (a
      `pathlib.Path`, or a name that ends in .txt or .map).  The last line is y = 0.
    - `signs`: what signs mean besides `.` and `F` (free), `#` (blocked), `S` (start), `G` (ends,
      reward 1), `H` (ends, 0), `L` or `~` (ends, -1) and `C` (back to the start, -100): a table
      such as `{"H": -1, "1": 10, "m": {"reward": -3, "ends": False}}`.  A number is the reward; a
      sign that is not among those above ends the episode unless the table says otherwise.
    - `goal`: coordinates of a `G`, in the place of those of the map.
    - `start`: None (the `S`, or any free cell), "uniform", or coordinates such as (3, 0).
    - `moves`: "four" [the default], "king" (eight directions; what leads to the left or right
      comes first, and what is not open of it is not made) or "king_or_stay".
    - `p`: in (0, 1] [1].
    - `slip`: "perpendicular" [the default] or "uniform".
    - `step_cost`: of cells whose sign has no reward of its own [0].
    - `pays`: which cell does, "entering" [the default] or "leaving" it.
    - `bumps`: "stay" [the default: all moves can be chosen everywhere] or "masked" (moves that
      would bump are not available).
    - `bump_cost`: of a bump [as the cell's own].
    - `wind`: upwards, one integer a column [none].
    - `gusts`: whether wind varies by -1, 0 or 1, each with probability 1/3 [False].
    - `unreachable`: what becomes of free cells that no end can be reached from: "refuse", an
      error, by default; "allow"; or "block".
    - `render_mode`: None (default), "human" (a window), "rgb_array" or "ansi"; in each,
      `env.unwrapped.set_overlay` shows values, a policy, mega-states or a path.

    The defaults, in full:

    ```python
    import gymnasium as gym
    import aggmaze

    env = gym.make(
        "GridWorld-v0",
        layout="aima-4x3",
        signs=None,
        goal=None,
        start=None,
        moves=None,
        p=None,
        slip=None,
        step_cost=None,
        pays=None,
        bumps=None,
        bump_cost=None,
        wind=None,
        gusts=None,
        unreachable="refuse",
        render_mode=None,
    )
    ```

    A world of your own, solved:

    ```python
    import planners

    env = gym.make(
        "GridWorld-v0",
        p=0.8,
        step_cost=0.1,
        signs={"1": 3, "2": 10, "L": -5},
        layout='''
        S..LL2
        .#....
        ...#1.
        ''',
    )
    result = planners.solve(env, gamma=1)
    assert result.values[env.unwrapped.grid.state((0, 2))] < -5
    ```

    FrozenLake, from the map that Gymnasium draws:

    ```python
    from gymnasium.envs.toy_text.frozen_lake import generate_random_map

    lake = gym.make("GridWorld-v0", layout=generate_random_map(size=6, seed=1), p=1 / 3)
    ```

    ## Version History
    - v0: first version.
    """

    _tells_returns = True

    def __init__(
        self,
        layout: Source = "aima-4x3",
        *,
        signs: Mapping[str, Any] | None = None,
        goal: Sequence[int] | None = None,
        start: WorldStart = None,
        moves: str | None = None,
        p: float | None = None,
        slip: str | None = None,
        step_cost: float | None = None,
        pays: str | None = None,
        bumps: str | None = None,
        bump_cost: float | None = None,
        wind: Sequence[int] | None = None,
        gusts: bool | None = None,
        unreachable: str = "refuse",
        render_mode: str | None = None,
    ) -> None:
        self.check_render_mode(render_mode)
        check_choice("unreachable", unreachable, UNREACHABLE)
        ready = _ready(layout)
        settings: dict[str, Any] = {} if ready is None else dict(ready.settings)
        known_signs = settings.pop("signs", None)
        if signs is None or (known_signs and not isinstance(signs, Mapping)):
            signs = known_signs if signs is None else signs
        elif known_signs:
            signs = {**known_signs, **signs}
        asked = {
            "moves": moves,
            "p": p,
            "slip": slip,
            "step_cost": step_cost,
            "pays": pays,
            "bumps": bumps,
            "bump_cost": bump_cost,
            "wind": wind,
            "gusts": gusts,
        }
        settings |= {name: value for name, value in asked.items() if value is not None}
        kind = settings.pop("moves", _MOVES)
        check_choice("moves", kind, MOVES)
        rules = GridWorldRules(**settings)
        world = GridWorld.read(
            layout if ready is None else ready.text,
            signs,
            goal=goal,
            moves=kind,
            unreachable=unreachable,
        )
        self._world, self._rules = world, rules
        model = grid_world_model(world, rules, start=start)
        super().__init__(world.layout, model, render_mode=render_mode)

    @property
    def world(self) -> GridWorld:
        """The map: its layout, its starts, and what its signs mean."""
        return self._world

    @property
    def rules(self) -> GridWorldRules:
        """The rules by which one moves, all of them settled."""
        return self._rules

    def get_keys_to_action(self) -> dict[tuple[int], int]:
        """Return the action of each key, for `gymnasium.utils.play`.

        Arrows or WASD move along the axes; of a king, Q, E, Z and C on the diagonals, and X stays.
        """
        if not isinstance(self.grid, KingGrid):
            return super().get_keys_to_action()
        return king_keys(stays=self.grid.stays)

    def action_with_key(self, action: int) -> str:
        """Return the name of an action, which says its key."""
        return self.action_name(action)

    @property
    def keys_in_words(self) -> str:
        """Which keys move."""
        if not isinstance(self.grid, KingGrid):
            return super().keys_in_words
        return describe_king_keys(stays=self.grid.stays)


def _ready(layout: Source) -> ReadyLayout | None:
    """Return the ready layout of a name; refuse what must be meant as one, and is none."""
    if not isinstance(layout, str) or names_file(layout):
        return None
    if layout in READY:
        return READY[layout]
    close = did_you_mean(layout, READY)
    if close and "\n" not in layout:
        raise ValueError(f"there is no ready layout {layout!r}{close}")
    return None
