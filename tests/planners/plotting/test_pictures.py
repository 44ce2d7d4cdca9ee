"""Pictures of plans."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from matplotlib import rcParams, style
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver
from PIL import Image

import planners
from aggmaze import TabularMDP
from aggmaze.rendering.colors import WALL
from planners.plotting import (
    check_matplotlib,
    figure_format,
    figure_of,
    plot_action_gaps,
    plot_convergence,
    plot_graph,
    plot_megastates,
    plot_plan,
    plot_values,
    save_figure,
)
from planners.policies import greedy_path


@pytest.mark.parametrize(
    ("env_id", "arguments"),
    [
        ("StandardMaze-v0", {"shape": (7, 5)}),
        ("StandardMaze-v0", {"shape": (1, 40)}),
        ("StandardMaze-v0", {"shape": (250, 210)}),
        ("TerrainMaze-v0", {"shape": (90, 100)}),
        ("TerrainMaze-v0", {"shape": (30, 40), "terrain": "fractal", "goal": (3, 20)}),
        ("StandardMaze-v0", {"layout": "..#S\n.#..\n...#\nG..."}),
        ("TerrainMaze-v0", {"layout": "\n".join([".#...#...."] * 9 + ["G........."])}),
        ("NDMaze-v0", {"shape": (9,)}),
        ("NDMaze-v0", {"shape": (3, 4, 30)}),
        ("NDMaze-v0", {"shape": (3, 4, 2, 3), "kind": "terrain"}),
    ],
)
def test_every_maze_is_drawn(env_id: str, arguments: dict[str, object], tmp_path: Path) -> None:
    env = gym.make(env_id, **arguments)
    layout = env.get_wrapper_attr("layout")
    model = planners.as_model(env)
    result = planners.solve(env, gamma=0.95, method="adaptive_aggregation", num_iterations=20)
    path = greedy_path(model, result.policy, int(np.argmax(model.initial)))
    assert result.labels is not None
    for name, drawn in {
        "plan": plot_plan(layout, result.values, result.policy, path, title="A plan"),
        "megastates": plot_megastates(layout, result.labels, title="Mega-states"),
    }.items():
        target = tmp_path / f"{name}.png"
        save_figure(drawn, target)
        with Image.open(target) as picture:
            colors = picture.convert("RGB").getcolors(picture.width * picture.height)
        assert len(colors) > 10


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


@pytest.mark.parametrize("name", ["default", "dark_background"])
def test_what_is_on_the_page_has_the_colours_of_the_style(name: str) -> None:
    model = TabularMDP.from_batched_function(
        4, 1, lambda s, a: (1.0, np.maximum(s - 1, 0), np.where(s == 0, np.inf, 1.0))
    )
    layout = gym.make("TerrainMaze-v0", shape=(12, 9)).get_wrapper_attr("layout")
    result = planners.solve(model, gamma=0.9, method="value_iteration", certify="every")
    with style.context(name):
        ink, page = (to_rgba(rcParams[key]) for key in ("text.color", "figure.facecolor"))
        drawn = [
            plot_values(layout, np.arange(108.0), title="values"),
            plot_values(model, np.arange(4.0), title="bars"),
            plot_graph(model, np.arange(4.0), title="graph"),
            plot_convergence(result, title="convergence"),
        ]
    for axes in drawn:
        assert to_rgba(figure_of(axes).get_facecolor()) == page
        for words in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.get_xticklabels()):
            assert to_rgba(words.get_color()) == ink
    # What is on the map does not follow: dark words with a light seam.
    values, _, graph, _ = drawn
    for words in (*values.texts, *[text for text in graph.texts if text.get_text()]):
        assert np.mean(to_rgba(words.get_color())[:3]) < 0.3
        assert words.get_path_effects()
    assert (values.get_xlabel().split(";")[0], values.get_ylabel()) == ("x (cells)", "y (cells)")


def test_gaps_of_which_most_are_small_have_a_scale_that_tells_them_apart() -> None:
    layout = gym.make("TerrainMaze-v0", shape=(10, 10)).get_wrapper_attr("layout")
    Q = np.zeros((100, 4))
    Q[:, 1:] = np.linspace(0.0, 0.01, 100)[:, np.newaxis]
    Q[0, 1:] = 5.0
    shades = {
        scale: plot_action_gaps(layout, Q, scale=scale).images[0] for scale in (None, "linear")
    }
    spread = {
        scale: np.ptp(np.asarray(image.norm(image.get_array()))[5:])
        for scale, image in shades.items()
    }
    assert spread[None] > 0.4 > 0.01 > spread["linear"]


def test_walls_are_drawn_where_passages_are_missing() -> None:
    layout = gym.make("StandardMaze-v0", shape=(6, 4)).get_wrapper_attr("layout")
    axes = plot_plan(layout, np.arange(24.0))
    drawn = {tuple(np.asarray(segment).ravel()) for segment in axes.collections[0].get_segments()}
    expected = set()
    for state, (x, y) in enumerate(layout.grid.coords(np.arange(24))):
        if x < 5 and not layout.passages[state, 0]:
            expected.add((x + 0.5, y - 0.5, x + 0.5, y + 0.5))
        if y < 3 and not layout.passages[state, 1]:
            expected.add((x - 0.5, y + 0.5, x + 0.5, y + 0.5))
    assert drawn == expected


BLOCKED = """
    +---+---+---+---+
    | S         |###|
    +   +---+   +---+
    |   |###|       |
    +   +---+---+   +
    |         G |   |
    +---+---+---+---+
"""


@pytest.mark.parametrize("env_id", ["StandardMaze-v0", "TerrainMaze-v0"])
def test_blocked_cells_are_solid(env_id: str, tmp_path: Path) -> None:
    env = gym.make(env_id, layout=BLOCKED)
    layout = env.get_wrapper_attr("layout")
    values = np.where(layout.blocked, -1e6, np.arange(12.0) + 5)
    policy = np.zeros(12, dtype=np.int64)
    for axes in (
        plot_plan(layout, values, policy, np.array([2, 1, 0])),
        plot_megastates(layout, np.arange(12, dtype=np.int32)),
    ):
        figure = axes.figure
        drawn = axes.images[0].get_array()
        np.testing.assert_array_equal(
            np.ma.getmaskarray(drawn)[::-1], layout.grid.to_image(layout.blocked)
        )
        # Between free cells only: what is blocked needs no outline.
        walls = [each for each in axes.collections if isinstance(each, LineCollection)][-1]
        assert {tuple(np.asarray(segment).ravel()) for segment in walls.get_segments()} == {
            (2.5, -0.5, 2.5, 0.5),
            (1.5, 0.5, 2.5, 0.5),
        }
        # As dark as a wall on paper.
        save_figure(figure, tmp_path / "figure.png")
        to_pixels = axes.transData.transform
        with Image.open(tmp_path / "figure.png") as picture:
            scale = 150 / figure.dpi
            for x, y in ((1, 1), (3, 2)):
                across, up = to_pixels((x, y)) * scale
                pixel = picture.convert("RGB").getpixel((across, picture.height - up))
                assert pixel == WALL
    plan = plot_plan(layout, values, policy)
    # Their values do not stretch the colours.
    assert plan.images[0].get_clim() == (5.0, 15.0)
    arrows = [each for each in plan.collections if isinstance(each, Quiver)]
    assert sum(len(each.U) for each in arrows) == 12 - 2 - 1


def test_goals_are_drawn_where_they_are() -> None:
    env = gym.make("NDMaze-v0", shape=(4, 3, 2), goal=(2, 1, 1))
    layout = env.get_wrapper_attr("layout")
    drawn = plot_plan(layout, np.arange(24.0))
    stars = [
        [tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() == "*"]
        for axes in drawn
    ]
    assert stars == [[], [(2.0, 1.0)]]


def test_the_path_is_the_policys() -> None:
    env = gym.make("StandardMaze-v0", shape=(6, 6))
    model = planners.as_model(env)
    result = planners.solve(env, gamma=0.9)
    path = greedy_path(model, result.policy, 35)
    assert path[0] == 35
    assert path[-1] == 0
    env.reset(options={"state": 35})
    walked = [35, *(int(env.step(result.policy[state])[0]) for state in path[:-1])]
    np.testing.assert_array_equal(path, walked)
    # The same from the general sparse table, by its likeliest outcomes.
    np.testing.assert_array_equal(path, greedy_path(model.to_tabular(), result.policy, 35))


def test_a_path_that_comes_back_to_itself_ends() -> None:
    model = planners.as_model(gym.make("TerrainMaze-v0", shape=(4, 4)))
    up_and_down = np.where(np.arange(16) % 4 == 3, 2, 3)
    np.testing.assert_array_equal(greedy_path(model, up_and_down, 12), [12, 13, 14, 15, 14])


def test_formats(tmp_path: Path) -> None:
    figure = Figure()
    for suffix, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        target = tmp_path / f"figure.{suffix}"
        save_figure(figure, target)
        assert target.read_bytes().startswith(magic)
    for name in ("figure.jpg", "figure"):
        with pytest.raises(ValueError, match=name):
            figure_format(name)


def test_a_picture_that_fails_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "figure.png"
    target.write_bytes(b"old")

    def fail(*arguments: object, **options: object) -> None:
        raise OSError("disk full")

    figure = Figure()
    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        save_figure(figure, target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_without_matplotlib_the_install_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "aggmaze\[plots\]"'):
        check_matplotlib()


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
            (np.zeros(3), np.zeros(2, int), r"policy must have shape \(3,\), got \(2,\)"),
        ],
    )
    def test_refused(self, values: Any, policy: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            plot_values(corridor(None), values, policy)
