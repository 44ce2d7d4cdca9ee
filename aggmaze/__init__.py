"""Gymnasium environments that expose their exact transition models.

Importing this package registers ``StandardMaze-v0``, ``TerrainMaze-v0``, ``NDMaze-v0`` and
``DiscretizedCartPole-v0``; where the import is not certain to have happened, as in worker
processes, ``aggmaze:StandardMaze-v0`` makes it.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

import gymnasium as _gym

from aggmaze.envs.cartpole import DiscretizedCartPoleEnv
from aggmaze.envs.nd_maze import NDMazeEnv
from aggmaze.envs.standard_maze import StandardMazeEnv
from aggmaze.envs.tabular import TabularEnv
from aggmaze.envs.terrain_maze import TerrainMazeEnv
from aggmaze.exploration.exploring import TabularizeError, TabularizeProgress
from aggmaze.exploration.tabularized import Tabularized, tabularize
from aggmaze.formats.storage import load_model, save_model
from aggmaze.grid import Grid
from aggmaze.later import importing_later as _importing_later
from aggmaze.layouts.layout import Layout
from aggmaze.layouts.text import layout_from_text, layout_to_text
from aggmaze.models.events import EventMDP, EventStage
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from aggmaze.wrappers.discretized_cartpole import DiscretizedCartPole

if _TYPE_CHECKING:
    from aggmaze.envs.vector import TabularVectorEnv
else:
    __getattr__, __dir__ = _importing_later(
        __name__, {"TabularVectorEnv": "aggmaze.envs.vector:TabularVectorEnv"}
    )

__all__ = [
    "ENV_IDS",
    "DiscretizedCartPole",
    "DiscretizedCartPoleEnv",
    "EventMDP",
    "EventStage",
    "Grid",
    "Layout",
    "MoveMDP",
    "NDMazeEnv",
    "StandardMazeEnv",
    "TabularEnv",
    "TabularMDP",
    "TabularVectorEnv",
    "TabularizeError",
    "TabularizeProgress",
    "Tabularized",
    "TerrainMazeEnv",
    "layout_from_text",
    "layout_to_text",
    "load_model",
    "save_model",
    "tabularize",
]
__version__ = "0.1.0"

# Of one environment, and of many at once.
_ENTRY_POINTS = {
    "StandardMaze-v0": ("standard_maze:StandardMazeEnv", "vector:standard_maze"),
    "TerrainMaze-v0": ("terrain_maze:TerrainMazeEnv", "vector:terrain_maze"),
    "NDMaze-v0": ("nd_maze:NDMazeEnv", "vector:nd_maze"),
    "DiscretizedCartPole-v0": ("cartpole:DiscretizedCartPoleEnv", "vector:discretized_cartpole"),
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
