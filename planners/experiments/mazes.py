"""The mazes of the experiments, scaled so that the largest cost-to-go is 100.

The paper leaves open what terrain is made of and how a move is priced.  The default here, heights
drawn independently and uniformly and a move that costs ``1 + H(next) - H(here)`` ("shifted"), is
inferred: it is the simplest of the readings tried that meets the published errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.grid import Grid
from aggmaze.layouts.heights import scaled
from aggmaze.layouts.layout import Layout
from aggmaze.models.moves import MoveMDP
from aggmaze.recipes import StandardRecipe, TerrainRecipe, maze_model
from planners.solve import solve

KINDS = ("terrain", "standard")
MAX_COST_TO_GO = 100.0

# Relative accuracy of V*, against errors of a hundredth and more.
_TOL = 1e-10


@dataclass(frozen=True)
class Maze:
    """What to draw a maze by.

    Parameters
    ----------
    kind : {"standard", "terrain"}
    shape : sequence of int
    heights : {"uniform", "normal", "smooth"}
        Of terrain; "normal" draws each height independently, like "uniform".
    cost : {"shifted", "difference"}
        Of terrain.
    p : float
        Probability that the chosen move happens.
    """

    kind: str
    shape: Sequence[int]
    heights: str = "uniform"
    cost: str = "shifted"
    p: float = 1.0

    @property
    def num_states(self) -> int:
        """Number of positions."""
        return int(np.prod(self.shape))

    @property
    def terrain(self) -> str:
        """What is varied of terrain, in words; empty for standard mazes."""
        return "" if self.kind == "standard" else f"{self.cost}, {self.heights}"

    def configuration(self) -> dict[str, Any]:
        """Return the fields as what JSON can hold; without what standard mazes do not have."""
        fields = asdict(self) | {"shape": list(self.shape)}
        if self.kind == "standard":
            del fields["heights"], fields["cost"]
        return fields


def of(configuration: Any) -> Maze:
    """Return the maze of a configuration."""
    names = ("kind", "shape", "heights", "cost", "p")
    fields = {name: configuration[name] for name in names if name in configuration}
    return Maze(**fields | {"shape": tuple(configuration["shape"])})


#: Terrains other than the default.
OTHER_TERRAINS: tuple[dict[str, Any], ...] = (
    {"heights": "normal"},
    {"heights": "smooth"},
    {"cost": "difference"},
)


def every_terrain(maze: Maze) -> list[Maze]:
    """Return a terrain maze in all variants, the given one first; a standard maze alone."""
    others = OTHER_TERRAINS if maze.kind == "terrain" else ()
    return [maze, *(replace(maze, **other) for other in others)]


def draw(maze: Maze, rng: np.random.Generator) -> MoveMDP:
    """Draw a maze.

    Parameters
    ----------
    maze : Maze
    rng : numpy.random.Generator
    """
    grid = Grid(tuple(maze.shape))
    if maze.kind == "standard":
        standard = StandardRecipe()
        return maze_model(standard.layout(grid, rng), standard, p=maze.p)
    heights = "uniform" if maze.heights == "normal" else maze.heights
    terrain = TerrainRecipe(heights, cost=maze.cost)
    layout = terrain.layout(grid, rng)
    if maze.heights == "normal":
        layout = Layout(grid, layout.passages, scaled(rng.standard_normal(grid.num_states)))
    return maze_model(layout, terrain, p=maze.p)


def draw_scaled(
    maze: Maze, gamma: float, rng: np.random.Generator
) -> tuple[MoveMDP, NDArray[np.float64]]:
    """Draw a maze with costs scaled so that max |V*| is 100.

    Parameters
    ----------
    maze : Maze
    gamma : float
        Discount of V*.
    rng : numpy.random.Generator

    Returns
    -------
    model : MoveMDP
    V : ndarray of float, shape (S,)
        V* of the scaled model.
    """
    model = draw(maze, rng)
    V = solve(model, gamma=gamma, tol=_TOL, num_threads=1).require().values
    scale = MAX_COST_TO_GO / float(np.abs(V).max())
    return model.scaled(scale), scale * V
