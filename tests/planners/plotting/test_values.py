"""Values as colours, what has no place along their scale, and bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.colors import to_rgba

from aggmaze import TabularMDP
from planners.plotting import (
    plot_graph,
    plot_plan,
    plot_slices,
    plot_values,
    save_figure,
)
from planners.plotting.canvas import BEYOND
from tests.planners.plotting.runs import LINE, MAZE, bar_label


def test_colours_stand_where_the_values_are() -> None:
    env = gym.make("TerrainMaze-v0", shape=(5, 3))
    layout = env.get_wrapper_attr("layout")
    values = np.arange(15.0)
    axes = plot_plan(layout, values)
    drawn = np.asarray(axes.images[0].get_array())[::-1]
    for state, (x, y) in enumerate(layout.grid.coords(np.arange(15))):
        assert drawn[2 - y, x] == values[state]
    # The extent puts the cell of position (x, y) around the point (x, y).
    assert list(axes.images[0].get_extent()) == [-0.5, 4.5, -0.5, 2.5]


class TestScales:
    def test_rank_gives_every_part_as_many_states(self) -> None:
        layout = MAZE.get_wrapper_attr("layout")
        values = np.exp(np.arange(30.0))
        norm = plot_values(layout, values, scale="rank").images[0].norm
        np.testing.assert_allclose(norm(values).filled(), np.arange(30) / 29, atol=0.02)
        np.testing.assert_allclose(norm.inverse(norm(values).filled()), values, rtol=1e-9)

    def test_distance_counts_steps_with_a_model_and_without(self) -> None:
        for source in (MAZE, MAZE.get_wrapper_attr("layout")):
            axes = plot_values(source, np.zeros(30), scale="distance")
            assert bar_label(axes) == "fewest steps to an end"
            drawn = np.asarray(axes.images[0].get_array())
            # One step farther than the nearest neighbour, wherever that is open.
            layout = MAZE.get_wrapper_attr("layout")
            steps = drawn.T.reshape(-1)
            assert steps[layout.goal] == 0
            for state in range(30):
                around = [
                    state + (-1, 1)[a % 2] * layout.grid.strides[a // 2]
                    for a in np.flatnonzero(layout.available()[state])
                ]
                if state != layout.goal:
                    assert steps[state] == 1 + min(steps[near] for near in around)

    def test_others_are_refused(self) -> None:
        with pytest.raises(ValueError, match="scale must be one of linear, log, rank, distance"):
            plot_values(MAZE, np.zeros(30), scale="size")
        with pytest.raises(ValueError, match="needs values above 0"):
            plot_values(MAZE, np.zeros(30), scale="log")


@pytest.mark.parametrize("returns", [False, True])
@pytest.mark.parametrize("scale", ["linear", "log", "rank"])
@pytest.mark.parametrize(
    ("number", "note"),
    [(np.inf, "without limit"), (-np.inf, "without limit"), (np.nan, "no number")],
)
@pytest.mark.parametrize("draw", [plot_values, plot_slices])
def test_it_is_grey_and_no_wall(
    draw: Any, number: float, note: str, scale: str, returns: bool
) -> None:
    values = np.arange(1.0, 31.0) * (-1 if returns else 1)
    values[7] = number
    axes = draw(MAZE, values, scale=scale, returns=returns)
    (image,) = axes.images
    colors = image.to_rgba(image.get_array())[::-1].reshape(-1, 4)
    states = MAZE.get_wrapper_attr("grid").to_image(np.arange(30)).ravel()
    (place,) = np.flatnonzero(states == 7)
    np.testing.assert_allclose(colors[place], to_rgba(BEYOND), atol=0.01)
    grey = np.abs(colors - to_rgba(BEYOND)).max(axis=1) < 0.01
    assert grey.sum() == 1
    assert f"(grey: {note})" in bar_label(axes)


def test_what_has_no_logarithm_is_grey() -> None:
    axes = plot_values(MAZE, np.arange(30.0), scale="log")
    assert bar_label(axes).endswith("(grey: 0 or less)")


def test_bars_and_graphs_say_what_is_left_out() -> None:
    values = np.arange(7.0)
    values[[2, 3]] = np.inf, np.nan
    bars = plot_values(LINE, values)
    assert bars.get_ylabel().endswith("(no bar: without limit or no number)")
    graph = plot_graph(LINE, values)
    assert "grey: without limit or no number" in bar_label(graph)
    (nodes,) = (each for each in graph.collections if len(each.get_offsets()) == 7)
    colors = nodes.to_rgba(nodes.get_array())
    np.testing.assert_allclose(colors[[2, 3]], [to_rgba(BEYOND)] * 2, atol=0.01)


def corridor(names: Any) -> TabularMDP:
    """Three states in a row, the last one the end."""
    P = [[[0, 1, 0], [1, 0, 0]], [[0, 0, 1], [1, 0, 0]], [[0, 0, 0], [0, 0, 0]]]
    return TabularMDP.from_matrices(
        P,
        costs=np.ones(3),
        terminal_costs=[0, 0, 0],
        terminal=[False, False, True],
        state_names=names,
        action_names=["on", "back"],
    )


class TestValues:
    def test_names_beside_bars(self) -> None:
        model = corridor(["hall", ("attic", 2), "exit for $5"])
        axes = plot_values(model, [2.0, 1.0, 0.0], np.array([0, 1, 0]), title="Rooms")
        labels = [text.get_text() for text in axes.get_xticklabels()]
        assert labels == ["hall", "('attic', 2)", r"exit for \$5"]
        assert [bar.get_height() for bar in axes.patches] == [2.0, 1.0, 0.0]
        # In a terminal state there is nothing to do.
        assert [text.get_text() for text in axes.texts] == ["on", "back", ""]
        axes.figure.canvas.draw()

    def test_a_map_where_names_are_places(self, tmp_path: Path) -> None:
        model = corridor([(2, 5), (3, 5), (3, 7)])
        axes = plot_values(model, [2.0, np.inf, -0.0], np.array([0, 1, 0]), label="steps")
        (image,) = axes.images
        cells = image.get_array()
        assert cells.shape == (3, 2)
        # Rows from below: y = 5, 6, 7; what is no state has no colour, what is infinite its own.
        assert np.ma.getmaskarray(cells).tolist() == [[0, 0], [1, 1], [1, 0]]
        assert (cells[0, 0], cells[2, 1]) == (2.0, 0.0)
        assert cells[0, 1] > image.norm.vmax == 2.0
        # Names are where one reads them: at the axes.
        across, up = (
            [text.get_text() for text in axis.get_ticklabels()] for axis in (axes.xaxis, axes.yaxis)
        )
        assert (across, up) == (["2", "3"], ["5", "6", "7"])
        assert {text.get_text(): text.get_position() for text in axes.texts} == {
            "2\non": (0, 0),
            "inf\nback": (1, 0),
            "0": (1, 2),
        }
        assert axes.figure.axes[1].get_ylabel() == "steps (grey: without limit)"
        save_figure(axes, tmp_path / "map.png")

    @pytest.mark.parametrize("names", [[(0, 0), (0, 1), (0, 10**9)], [(0, 0), (0, 10**400), "a"]])
    def test_places_far_apart_are_bars(self, names: Any) -> None:
        axes = plot_values(corridor(names), [2.0, 1.0, 0.0])
        assert len(axes.patches) == 3

    def test_without_names_and_many(self) -> None:
        model = TabularMDP.from_batched_function(
            500, 1, lambda s, a: (1.0, s - 1, np.where(s == 0, np.inf, 1.0))
        )
        axes = plot_values(model, np.arange(500.0), np.zeros(500, dtype=int))
        (line, _) = axes.lines
        np.testing.assert_array_equal(line.get_ydata(), np.arange(500.0))
        assert not axes.texts
        axes.figure.canvas.draw()

    @pytest.mark.parametrize(
        ("values", "policy", "message"),
        [
            (np.zeros(2), None, r"values must have shape \(3,\), one a state, got \(2,\)"),
            (np.zeros((4, 3)), None, "of a finite horizon draw one step"),
            (np.zeros(3), np.full(3, 2), r"policy must hold actions in \[0, 2\)"),
            (
                np.zeros(3),
                np.zeros(2, int),
                r"shape \(3,\) or \(3, 2\), got \(2,\)",
            ),
        ],
    )
    def test_refused(self, values: Any, policy: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            plot_values(corridor(None), values, policy)


def test_bars_by_the_logarithm() -> None:
    drawn = plot_values(LINE, np.array([0.0, 1.0, 10.0, -3.0, 2.0, np.inf, 5.0]), scale="log")
    assert drawn.get_yscale() == "log"
    heights = [bar.get_height() for bar in drawn.patches]
    np.testing.assert_array_equal(heights, [np.nan, 1.0, 10.0, np.nan, 2.0, np.nan, 5.0])
    words = " ".join(drawn.get_ylabel().split())
    assert words.endswith("(no bar: without limit or 0 or less)")
    for values in (np.zeros(7), -np.ones(7), np.full(7, np.nan)):
        with pytest.raises(ValueError, match="'log' needs values above 0"):
            plot_values(LINE, values, scale="log")


def test_words_beside_bars_are_not_longer_than_these() -> None:
    drawn = plot_values(LINE, np.arange(7.0), label="second-best less best " * 4)
    figure = drawn.figure
    figure.canvas.draw()
    words = drawn.yaxis.label.get_window_extent()
    assert words.height <= figure.bbox.height
    assert words.y0 >= 0
