"""Pictures against pictures in ``baseline/``, without text: fonts differ from place to place.

A change that is meant: look at what ``python3 tests/planners/plotting/test_images.py`` then writes
into ``baseline/``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection, LineCollection
from matplotlib.legend import Legend
from matplotlib.quiver import Quiver
from matplotlib.testing.compare import compare_images
from matplotlib.text import Annotation, Text

import aggmaze  # noqa: F401  (registers the environments)
from aggmaze import TabularMDP
from planners.plotting import (
    figure_of,
    plot_action_gaps,
    plot_graph,
    plot_megastates,
    plot_path,
    plot_policy,
    plot_q_values,
    plot_values,
)

BASELINE = Path(__file__).parent / "baseline"
# Root mean square of the difference, of 255: other versions of matplotlib draw the edges of lines
# a little differently.
TOLERANCE = 7.0
MOST_BYTES = 30_000

OWN = "S.LC\n.#.2\n1..#\nG.mH"
SIGNS = {"H": -1, "1": 3, "2": 10, "m": {"reward": -0.5, "ends": False}}


def maze() -> tuple[Any, np.ndarray[Any, Any]]:
    """Return a layout, and how far each position is from the goal as the crow flies."""
    layout = gym.make("StandardMaze-v0", shape=(9, 7)).get_wrapper_attr("layout")
    x, y = layout.grid.coords(np.arange(63)).T
    return layout, np.hypot(x, y)


def leftwards(layout: Any) -> np.ndarray[Any, Any]:
    """Return the policy that goes left, and down where it cannot."""
    return np.where(layout.grid.coords(np.arange(layout.grid.num_states))[:, 0] > 0, 0, 2)


def values_of_a_maze() -> Any:
    layout, values = maze()
    return plot_values(layout, values, leftwards(layout), [62, 55, 48, 47, 46])


def megastates_of_a_terrain() -> Any:
    env = gym.make("TerrainMaze-v0", shape=(14, 14))
    x, y = env.get_wrapper_attr("grid").coords(np.arange(196)).T
    values = x + 0.5 * y
    return plot_megastates(env, (values / 4).astype(int), values)


def contours_of_a_terrain() -> Any:
    env = gym.make("TerrainMaze-v0", shape=(24, 16))
    return plot_values(env, np.arange(384.0), scale="distance")


def walls_as_pixels() -> Any:
    layout = gym.make("StandardMaze-v0", shape=(70, 15)).get_wrapper_attr("layout")
    return plot_values(layout, np.arange(1050.0) ** 3, scale="rank")


def signs() -> Any:
    env = gym.make("GridWorld-v0", layout=OWN, signs=SIGNS)
    values = np.arange(16.0)
    values[9] = np.inf
    return plot_values(env, values, np.arange(16) % 4, returns=True)


def lake() -> Any:
    Q = np.add.outer(np.arange(16.0), [0.0, 2.0, 4.0, 6.0])
    return plot_q_values(gym.make("FrozenLake-v1"), Q)


def cliff() -> Any:
    weights = np.tile([0.5, 0.25, 0.25, 0.0], (48, 1))
    return plot_policy(gym.make("CliffWalking-v1"), weights, [36, 24, 25, 26])


def layers() -> Any:
    env = gym.make("NDMaze-v0", shape=(4, 4, 3))
    return plot_values(env, np.arange(48.0), np.arange(48) % 6, [47, 44, 43, 42])


def cells() -> Any:
    env = gym.make("DiscretizedCartPole-v0")
    grid = env.get_wrapper_attr("cells").grid
    # Neighbours differ little: where cells meet may be a pixel farther.
    values = np.append(grid.coords(np.arange(grid.num_states)) @ [1.0, 2.0, 0.5, 0.3], 0.0)
    return plot_values(env, -values, returns=True)


def gaps() -> Any:
    layout, values = maze()
    Q = np.column_stack([values, 2 * values, values + 3, np.full(63, np.inf)])
    return plot_action_gaps(layout, Q)


def paths() -> Any:
    layout, _ = maze()
    return plot_path(layout, {"one": [62, 55, 48], "another": [0, 1, 2, 9]})


def graph() -> Any:
    model = TabularMDP.from_batched_function(
        7, 2, lambda s, a: (1.0, np.maximum(s - 1 - a, 0), np.where(s == 0, np.inf, 1.0 + a))
    )
    return plot_graph(model, np.arange(7.0), np.arange(7) % 2)


def maze_on_black() -> Any:
    with style.context("dark_background"):
        return values_of_a_maze()


def graph_on_black() -> Any:
    with style.context("dark_background"):
        return graph()


PICTURES: list[Callable[[], Any]] = [
    values_of_a_maze,
    megastates_of_a_terrain,
    contours_of_a_terrain,
    walls_as_pixels,
    signs,
    lake,
    cliff,
    layers,
    cells,
    gaps,
    paths,
    graph,
    maze_on_black,
    graph_on_black,
]


def write(draw: Callable[[], Any], path: Path) -> None:
    """Write a picture small, and without a word."""
    figure = figure_of(draw())
    for text in figure.findobj(Text):
        text.set_visible(isinstance(text, Annotation))  # which are arrows
    for legend in figure.findobj(Legend):
        legend.set_visible(False)
    FigureCanvasAgg(figure)
    # Whole pixels, also around axes, and places that no font decides.
    figure.set_size_inches(8, 4)
    figure.set_layout_engine("none")
    figure.savefig(path, format="png", dpi=50, metadata={"Software": None})


@pytest.mark.parametrize("draw", PICTURES, ids=lambda draw: draw.__name__)
def test_it_looks_as_it_did(draw: Callable[[], Any], tmp_path: Path) -> None:
    name = f"{draw.__name__}.png"
    baseline, found = tmp_path / name, tmp_path / f"found-{name}"
    # What differs is written beside the expected one.
    baseline.write_bytes((BASELINE / name).read_bytes())
    write(draw, found)
    difference = compare_images(str(baseline), str(found), tol=TOLERANCE)
    assert difference is None, difference


@pytest.mark.parametrize("kind", [Quiver, LineCollection])
def test_missing_arrows_or_walls_are_seen(kind: type[Collection], tmp_path: Path) -> None:
    def without() -> Any:
        axes = values_of_a_maze()
        for each in axes.collections:
            each.set_visible(not isinstance(each, kind))
        return axes

    write(without, tmp_path / "found.png")
    (tmp_path / "baseline.png").write_bytes((BASELINE / "values_of_a_maze.png").read_bytes())
    found = [str(tmp_path / name) for name in ("baseline.png", "found.png")]
    assert compare_images(*found, tol=TOLERANCE) is not None


def test_there_is_a_small_baseline_of_each_and_of_nothing_else() -> None:
    sizes = {path.stem: path.stat().st_size for path in BASELINE.iterdir()}
    assert set(sizes) == {draw.__name__ for draw in PICTURES}
    assert max(sizes.values()) < MOST_BYTES


if __name__ == "__main__":
    BASELINE.mkdir(exist_ok=True)
    for picture in PICTURES:
        write(picture, BASELINE / f"{picture.__name__}.png")
