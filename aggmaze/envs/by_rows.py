"""The mazes that are registered with Gymnasium, by rows instead of as environments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from aggmaze.checks import check_choice, did_you_mean
from aggmaze.envs.maze import check_num_dims
from aggmaze.envs.nd_maze import NDMazeEnv, nd_recipe
from aggmaze.envs.standard_maze import StandardMazeEnv
from aggmaze.envs.terrain_maze import TerrainMazeEnv
from aggmaze.layouts.rule import WholeOnlyError
from aggmaze.maze_rows import MazeRows
from aggmaze.recipes import MazeOptions, Recipe, StandardRecipe, TerrainRecipe

_Env = type[StandardMazeEnv] | type[TerrainMazeEnv] | type[NDMazeEnv]
# Of each id: the environment, what makes its recipe, and how many axes it has.
_KINDS: dict[str, tuple[_Env, Callable[..., Recipe], int | None]] = {
    "StandardMaze-v0": (StandardMazeEnv, StandardRecipe, 2),
    "TerrainMaze-v0": (TerrainMazeEnv, TerrainRecipe, 2),
    "NDMaze-v0": (NDMazeEnv, nd_recipe, None),
}
#: Ids of the mazes that can be made by rows.
BY_ROWS = tuple(_KINDS)
# Arguments of the environments that have no meaning for a model by rows.
_FOREIGN = {
    "layout": "a maze that is given as text is held whole: make it with gymnasium.make",
    "render_mode": "a model has no pictures",
}


def model_by_rows(env_id: str, **arguments: Any) -> MazeRows:
    """Return the model of a maze of any size, of which any block of cells is made alone.

    ``gymnasium.make(env_id, **arguments)`` has the same model, bit for bit, as far as its size can
    be held whole.

    Parameters
    ----------
    env_id : {"StandardMaze-v0", "TerrainMaze-v0", "NDMaze-v0"}
    **arguments
        Those of the environment, but ``layout`` and ``render_mode``.  The shape may have up to
        2**62 cells.  The ``generator`` or the ``terrain`` must be one that can make any block
        alone.

    Returns
    -------
    MazeRows

    Raises
    ------
    ValueError
        If the id or an argument is none of these, with those that are.
    TypeError
        If there is no argument of that name.

    Examples
    --------
    >>> import aggmaze
    >>> maze = aggmaze.model_by_rows(
    ...     "StandardMaze-v0", shape=(10**6, 10**6), generator="binary_tree"
    ... )
    >>> maze.num_states
    1000000000000
    >>> maze.moves(10**12 - 2, 10**12).successors.tolist()
    [[999998999998, 999999999998, 999999999997, 999999999999], \
[999998999999, 999999999999, 999999999998, 999999999999]]
    """
    check_choice("env_id", env_id, BY_ROWS)
    env, make_recipe, num_dims = _KINDS[env_id]
    parameters = inspect.signature(env).parameters
    values = {name: parameter.default for name, parameter in parameters.items()}
    for name, value in arguments.items():
        if name in _FOREIGN:
            raise WholeOnlyError(f"{name}={value!r} is not taken by rows: {_FOREIGN[name]}")
        if name not in values:
            allowed = [other for other in values if other not in _FOREIGN]
            raise TypeError(
                f"{env_id} by rows takes no {name!r}{did_you_mean(name, allowed)}; it takes "
                f"{', '.join(allowed)}"
            )
        values[name] = value
    options = {
        field.name: values.pop(field.name)
        for field in fields(MazeOptions)
        if field.name != "recipe"
    }
    shape = values.pop("shape")
    for name in _FOREIGN:
        del values[name]
    maze = MazeRows(shape, MazeOptions(make_recipe(**values), **options))
    check_num_dims(maze.grid, num_dims)
    return maze
