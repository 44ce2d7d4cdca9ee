"""Maps of what is too large to draw: what each point of them stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aggmaze
import planners
from planners import SolveResult, open_result
from planners.plotting import thinned


def shown(axes: Any) -> np.ndarray[Any, Any]:
    """What the picture holds, by coordinates."""
    (image,) = axes.images
    return np.asarray(image.get_array()).T


def solved(shape: tuple[int, ...], tmp_path: Path) -> tuple[Any, SolveResult]:
    kind = "TerrainMaze-v0" if len(shape) == 2 else "NDMaze-v0"
    options: dict[str, Any] = {"terrain": "noise"}
    if len(shape) > 2:
        options["kind"] = "terrain"
    maze = aggmaze.model_by_rows(kind, shape=shape, p=0.9, **options)
    planners.solve(maze.to_model(), gamma=0.95, method="value_iteration", tol=1e-3).store(tmp_path)
    return maze, open_result(tmp_path)


def test_each_point_is_the_mean_of_its_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thinned, "MOST_SIDE", 10)
    maze, result = solved((33, 21), tmp_path)
    axes = result.plot(maze, title="a maze")
    laid = np.asarray(result.values).reshape(33, 21)
    expected = [
        [laid[i : i + 4, j : j + 4].mean() for j in range(0, 21, 4)] for i in range(0, 33, 4)
    ]
    np.testing.assert_allclose(shown(axes), expected, rtol=1e-12)
    assert axes.get_title() == "a maze\nmeans of 4 x 4 positions"
    # The coordinates are those of the maze: the last block of axis 0 begins at 32.
    ticks = {tick.get_text(): tick.get_position()[0] for tick in axes.get_xticklabels()}
    for text, place in ticks.items():
        assert float(text) == pytest.approx(1.5 + 4 * place, abs=0.51)


def test_beyond_what_is_read_one_of_each_block_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thinned, "MOST_SIDE", 10)
    monkeypatch.setattr(thinned, "MOST_READ", 100)
    maze, result = solved((33, 21), tmp_path)
    axes = result.plot(maze)
    across = np.minimum(np.arange(2, 35, 4), 32)
    up = np.minimum(np.arange(2, 23, 4), 20)
    laid = np.asarray(result.values).reshape(33, 21)
    np.testing.assert_array_equal(shown(axes), laid[np.ix_(across, up)])
    assert "one of each 4 x 4 positions" in axes.get_title()
    axes = result.plot(maze, "policy")
    chosen = np.asarray(result.policy).reshape(33, 21)[np.ix_(across, up)]
    np.testing.assert_array_equal(shown(axes), chosen)


def test_small_mazes_are_drawn_whole(tmp_path: Path) -> None:
    maze, result = solved((12, 9), tmp_path)
    axes = result.plot(maze)
    np.testing.assert_array_equal(shown(axes).reshape(-1), result.values)
    assert "positions" not in axes.get_title()


def test_of_more_dimensions_a_plane(tmp_path: Path) -> None:
    maze, result = solved((9, 8, 4), tmp_path)
    laid = np.asarray(result.values).reshape(9, 8, 4)
    np.testing.assert_array_equal(shown(result.plot(maze)), laid[:, :, 0])


def test_what_there_is_no_map_of_is_refused(tmp_path: Path) -> None:
    maze, result = solved((12, 9), tmp_path)
    with pytest.raises(ValueError, match="what must be one of values, policy"):
        result.plot(maze, "q_values")
    other = aggmaze.model_by_rows("TerrainMaze-v0", shape=(12, 8), terrain="noise")
    with pytest.raises(ValueError, match="the result has shape"):
        result.plot(other)


@pytest.mark.parametrize("what", ["values", "policy"])
def test_goal_and_start_are_marked_where_they_are(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thinned, "MOST_SIDE", 10)
    maze, result = solved((33, 21), tmp_path)
    marks = {line.get_marker(): line for line in result.plot(maze, what).lines}
    # In cells of blocks of four, of which the first has its middle at 1.5.
    for marker, state in (("*", maze.goal), ("o", maze.start)):
        place = (np.array(np.unravel_index(state, (33, 21))) - 1.5) / 4
        np.testing.assert_allclose(np.ravel(marks[marker].get_data()), place)
    assert (maze.goal, maze.start) == (0, 33 * 21 - 1)
    marks = {line.get_marker(): line for line in result.plot(maze, what, start=8).lines}
    np.testing.assert_allclose(np.ravel(marks["o"].get_data()), [-1.5 / 4, 6.5 / 4])


def test_marks_out_of_the_plane_are_left_out(tmp_path: Path) -> None:
    maze, result = solved((9, 8, 4), tmp_path)  # from the opposite corner
    assert [line.get_marker() for line in result.plot(maze).lines] == ["*"]
