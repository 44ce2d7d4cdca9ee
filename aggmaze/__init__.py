"""Gymnasium environments that expose their exact transition models.

Importing this package registers ``StandardMaze-v0``, ``TerrainMaze-v0``, ``NDMaze-v0``,
``GridWorld-v0``, ``DiscretizedCartPole-v0``, ``DiscretizedMountainCar-v0``,
``DiscretizedAcrobot-v0`` and ``DiscretizedPendulum-v0``; where the import is not certain to have
happened, as in worker processes, ``aggmaze:StandardMaze-v0`` makes it.
"""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

import gymnasium as _gym

from aggmaze.envs.nd_maze import NDMazeEnv
from aggmaze.envs.standard_maze import StandardMazeEnv
from aggmaze.envs.tabular import TabularEnv
from aggmaze.envs.terrain_maze import TerrainMazeEnv
from aggmaze.formats.registry import load_model, save_model
from aggmaze.grid import Grid, KingGrid
from aggmaze.later import importing_later as _importing_later
from aggmaze.layouts.layout import Layout
from aggmaze.layouts.ready import ReadyLayout, ready_layout
from aggmaze.layouts.signs import Cell
from aggmaze.layouts.text import layout_from_text, layout_to_text
from aggmaze.layouts.worlds import GridWorld
from aggmaze.models.events import EventMDP, EventStage
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP

if _TYPE_CHECKING:
    from aggmaze.cells.discretize import Discretization, discretize
    from aggmaze.envs.by_rows import model_by_rows
    from aggmaze.envs.cartpole import DiscretizedCartPoleEnv
    from aggmaze.envs.discretized import (
        DiscretizedAcrobotEnv,
        DiscretizedMountainCarEnv,
        DiscretizedPendulumEnv,
    )
    from aggmaze.envs.grid_world import GridWorldEnv
    from aggmaze.envs.vector import TabularVectorEnv
    from aggmaze.exploration.exploring import TabularizeError, TabularizeProgress
    from aggmaze.exploration.tabularized import Tabularized, tabularize
    from aggmaze.formats.stored_rows import open_rows, save_rows
    from aggmaze.grid_worlds import GridWorldRules, grid_world_model
    from aggmaze.maze_rows import MazeRows
    from aggmaze.models.row_models import MoveBlock, as_row_model
    from aggmaze.wrappers.discretized import Discretized
    from aggmaze.wrappers.discretized_cartpole import DiscretizedCartPole
else:
    # Neither who makes mazes nor who plans in a model waits for what others need.
    _LATER = {
        "cells.discretize": ("Discretization", "discretize"),
        "envs.by_rows": ("model_by_rows",),
        "envs.cartpole": ("DiscretizedCartPoleEnv",),
        "envs.discretized": (
            "DiscretizedAcrobotEnv",
            "DiscretizedMountainCarEnv",
            "DiscretizedPendulumEnv",
        ),
        "envs.grid_world": ("GridWorldEnv",),
        "envs.vector": ("TabularVectorEnv",),
        "exploration.exploring": ("TabularizeError", "TabularizeProgress"),
        "exploration.tabularized": ("Tabularized", "tabularize"),
        "formats.stored_rows": ("open_rows", "save_rows"),
        "grid_worlds": ("GridWorldRules", "grid_world_model"),
        "maze_rows": ("MazeRows",),
        "models.row_models": ("MoveBlock", "as_row_model"),
        "wrappers.discretized": ("Discretized",),
        "wrappers.discretized_cartpole": ("DiscretizedCartPole",),
    }
    __getattr__, __dir__ = _importing_later(
        __name__,
        {name: f"aggmaze.{home}:{name}" for home, names in _LATER.items() for name in names},
    )

__all__ = [
    "ENV_IDS",
    "Cell",
    "Discretization",
    "Discretized",
    "DiscretizedAcrobotEnv",
    "DiscretizedCartPole",
    "DiscretizedCartPoleEnv",
    "DiscretizedMountainCarEnv",
    "DiscretizedPendulumEnv",
    "EventMDP",
    "EventStage",
    "Grid",
    "GridWorld",
    "GridWorldEnv",
    "GridWorldRules",
    "KingGrid",
    "Layout",
    "MazeRows",
    "MoveBlock",
    "MoveMDP",
    "NDMazeEnv",
    "ReadyLayout",
    "StandardMazeEnv",
    "TabularEnv",
    "TabularMDP",
    "TabularVectorEnv",
    "TabularizeError",
    "TabularizeProgress",
    "Tabularized",
    "TerrainMazeEnv",
    "as_row_model",
    "discretize",
    "grid_world_model",
    "layout_from_text",
    "layout_to_text",
    "load_model",
    "model_by_rows",
    "open_rows",
    "ready_layout",
    "save_model",
    "save_rows",
    "tabularize",
]
__version__ = "0.1.0"

# Of one environment, and of many at once.
_ENTRY_POINTS = {
    "StandardMaze-v0": ("standard_maze:StandardMazeEnv", "vector:standard_maze"),
    "TerrainMaze-v0": ("terrain_maze:TerrainMazeEnv", "vector:terrain_maze"),
    "NDMaze-v0": ("nd_maze:NDMazeEnv", "vector:nd_maze"),
    "DiscretizedCartPole-v0": ("cartpole:DiscretizedCartPoleEnv", "vector:discretized_cartpole"),
    "GridWorld-v0": ("grid_world:GridWorldEnv", "vector:grid_world"),
    "DiscretizedMountainCar-v0": (
        "discretized:DiscretizedMountainCarEnv",
        "vector:discretized_mountain_car",
    ),
    "DiscretizedAcrobot-v0": (
        "discretized:DiscretizedAcrobotEnv",
        "vector:discretized_acrobot",
    ),
    "DiscretizedPendulum-v0": (
        "discretized:DiscretizedPendulumEnv",
        "vector:discretized_pendulum",
    ),
}

#: The registered ids.
ENV_IDS = tuple(_ENTRY_POINTS)

for _id, (_one, _many) in _ENTRY_POINTS.items():
    if _id not in _gym.registry:
        _gym.register(
            id=_id,
            entry_point=f"aggmaze.envs.{_one}",
            vector_entry_point=f"aggmaze.envs.{_many}",
            max_episode_steps=1000,
        )

# In a notebook ``env`` is shown as ``env.unwrapped`` is: IPython is told how to show wrappers.
if "IPython" in _sys.modules and (_shell := _sys.modules["IPython"].get_ipython()) is not None:
    from aggmaze.envs.cards import show_wrappers as _show_wrappers

    _show_wrappers(_shell)
