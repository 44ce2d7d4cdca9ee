"""Gymnasium environments that expose their exact transition models.

Importing this package registers ``StandardMaze-v0``, ``TerrainMaze-v0``, ``NDMaze-v0`` and
``DiscretizedCartPole-v0``; where the import is not certain to have happened, as in worker
processes, ``aggmaze:StandardMaze-v0`` makes it.
"""

import gymnasium as _gym

from aggmaze.cartpole import DiscretizedCartPole
from aggmaze.envs.cartpole import DiscretizedCartPoleEnv
from aggmaze.envs.nd_maze import NDMazeEnv
from aggmaze.envs.standard_maze import StandardMazeEnv
from aggmaze.envs.tabular import TabularEnv
from aggmaze.envs.terrain_maze import TerrainMazeEnv
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout
from aggmaze.layouts.text import layout_from_text, layout_to_text
from aggmaze.mdp import TabularMDP
from aggmaze.move_mdp import MoveMDP
from aggmaze.storage import load_model, save_model

__all__ = [
    "ENV_IDS",
    "DiscretizedCartPole",
    "DiscretizedCartPoleEnv",
    "Grid",
    "Layout",
    "MoveMDP",
    "NDMazeEnv",
    "StandardMazeEnv",
    "TabularEnv",
    "TabularMDP",
    "TerrainMazeEnv",
    "layout_from_text",
    "layout_to_text",
    "load_model",
    "save_model",
]
__version__ = "0.1.0"

_ENTRY_POINTS = {
    "StandardMaze-v0": "aggmaze.envs.standard_maze:StandardMazeEnv",
    "TerrainMaze-v0": "aggmaze.envs.terrain_maze:TerrainMazeEnv",
    "NDMaze-v0": "aggmaze.envs.nd_maze:NDMazeEnv",
    "DiscretizedCartPole-v0": "aggmaze.envs.cartpole:DiscretizedCartPoleEnv",
}

#: The registered ids.
ENV_IDS = tuple(_ENTRY_POINTS)

for _id, _entry_point in _ENTRY_POINTS.items():
    if _id not in _gym.registry:
        _gym.register(id=_id, entry_point=_entry_point, max_episode_steps=1000)
