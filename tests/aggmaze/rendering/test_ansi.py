"""Mazes as text: exact thin walls, marks, slices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.rendering import text
from tests.aggmaze.rendering.frames import make


def random_maze(shape: tuple[int, ...], seed: int = 0) -> Layout:
    grid = Grid(shape)
    passages = open_passages(grid)
    return Layout(grid, passages & (np.random.default_rng(seed).random(passages.shape) < 0.6))


def decoded(block: str) -> NDArray[np.bool_]:
    """Read the passages back from a two-dimensional block, shape (nx, ny, 2)."""
    lines = block.split("\n")[::-1]
    rows, columns = len(lines) // 2, len(lines[0]) // 4
    assert len(lines) == 2 * rows + 1
    assert {len(line) for line in lines} == {4 * columns + 1}
    passages = np.zeros((columns, rows, 2), dtype=bool)
    for y in range(rows):
        below, inside, above = lines[2 * y : 2 * y + 3]
        assert below[::4] == above[::4] == "+" * (columns + 1)
        for x in range(columns):
            wall_above, wall_right = above[4 * x + 1 : 4 * x + 4], inside[4 * x + 4]
            assert wall_above in ("---", "   ")
            assert wall_right in "| "
            assert inside[4 * x + 1] == inside[4 * x + 3] == " "
            passages[x, y] = wall_right == " ", wall_above == "   "
        assert inside[0] == "|"
    assert lines[0] == "+" + "---+" * columns
    return passages


def test_a_small_maze_is_written_exactly() -> None:
    grid = Grid((3, 2))
    passages = np.zeros((*grid.shape, 2), dtype=bool)
    passages[0, 0, 1] = passages[1, 0, 0] = passages[0, 1, 0] = passages[1, 1, 0] = True
    expected = """\
+---+---+---+
|     A     |
+   +---+---+
| G |       |
+---+---+---+"""
    assert text(Layout(grid, passages.reshape(-1, 2)), grid.state((1, 1))) == expected


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_passages_can_be_read_back(shape: tuple[int, int], seed: int, data: st.DataObject) -> None:
    layout = random_maze(shape, seed)
    state = data.draw(st.none() | st.integers(0, layout.grid.num_states - 1))
    passages = decoded(text(layout, state))
    np.testing.assert_array_equal(passages, layout.passages.reshape(*shape, 2))


def test_marks_stand_where_agent_and_goal_are() -> None:
    layout = random_maze((4, 3))
    lines = text(layout, layout.grid.state((3, 2))).split("\n")
    assert lines[1][14] == "A"
    assert lines[-2][2] == "G"
    assert sum(line.count("A") + line.count("G") for line in lines) == 2
    on_goal = text(layout, layout.goal)
    assert on_goal.split("\n")[-2][2] == "*"
    assert "A" not in on_goal
    assert "G" not in on_goal
    without = text(layout, None)
    assert without.count("G") == 1
    assert "A" not in without
    assert "*" not in without


def test_terrain_shows_the_first_decimal_of_heights() -> None:
    grid = Grid((2, 3))
    heights = np.array([[0.5, 0.0, 0.19], [0.3, 0.99, 1.0]]).ravel()
    expected = """\
+---+---+
| 1   9 |
+   +   +
| 0   A |
+   +   +
| G   3 |
+---+---+"""
    assert text(Layout(grid, open_passages(grid), heights), grid.state((1, 1))) == expected


def test_blocked_cells_are_filled() -> None:
    grid = Grid((3, 2))
    blocked = np.array([False, False, False, True, True, True])
    passages = open_passages(grid, blocked)
    expected = """\
+---+---+---+
| A |###|###|
+   +---+---+
| 0   G |###|
+---+---+---+"""
    heights = np.linspace(0.0, 1.0, 6)
    layout = Layout(grid, passages, heights, goal=2, blocked=blocked)
    assert text(layout, 1) == expected
    plain = Layout(grid, passages, goal=2, blocked=blocked)
    assert text(plain, 1) == expected.replace("0", " ")


def test_one_dimension_is_one_row() -> None:
    grid = Grid((4,))
    passages = np.array([[True], [False], [True], [False]])
    expected = """\
+---+---+---+---+
| G     |     A |
+---+---+---+---+"""
    assert text(Layout(grid, passages), 3) == expected


def test_three_dimensions_are_slices_through_the_agent() -> None:
    shape = (4, 3, 2)
    layout = random_maze(shape)
    point = (2, 0, 1)
    passages = layout.passages.reshape(*shape, 3)
    blocks = text(layout, layout.grid.state(point)).split("\n\n")
    expected = {
        "axes 0 (right) and 1 (up)": (passages[:, :, 1, :2], False),
        "axes 0 (right) and 2 (up)": (passages[:, 0, :, ::2], True),
        "axes 1 (right) and 2 (up)": (passages[2, :, :, 1:], False),
    }
    assert [block.split("\n")[0] for block in blocks] == list(expected)
    for block in blocks:
        heading, cells = block.split("\n", 1)
        plane, has_goal = expected[heading]
        np.testing.assert_array_equal(decoded(cells), plane)
        assert cells.count("A") == 1
        assert cells.count("G") == has_goal


def test_without_an_agent_slices_go_through_the_goal() -> None:
    written = text(random_maze((3, 2, 2, 2)), None)
    assert written.count("axes") == 6
    assert written.count("G") == 6
    assert "A" not in written


def test_eight_dimensions_have_a_block_for_each_pair_of_axes() -> None:
    assert text(random_maze((2,) * 8), 0).count("*") == 28


def test_no_line_ends_in_white_space() -> None:
    for layout in (random_maze((5,)), random_maze((4, 6)), random_maze((3, 2, 2))):
        written = text(layout, 1)
        assert written == "\n".join(line.rstrip() for line in written.split("\n"))
        assert not written.endswith("\n")


@pytest.mark.parametrize("state", [-1, 12])
def test_states_outside_the_grid_are_refused(state: int) -> None:
    with pytest.raises(ValueError, match=r"is not in \[0, 12\)"):
        text(random_maze((4, 3)), state)


class TestText:
    def test_cells(self) -> None:
        env = make(shape=(3, 2), mode="ansi")
        env.set_overlay(
            values=[0, 1, 2, 3, 4, 5], policy=[0, 1, 2, 3, 0, 0], labels=[0, 1, 25, 26, 35, 36]
        )
        text = "".join(env.render().split("\n")[1:4:2])
        cells = [text[place : place + 3] for place in (1, 5, 9, 14, 18, 22)]
        # Top row first; states (0, 1), (1, 1), (2, 1) and then (0, 0), (1, 0), (2, 0).
        assert cells == ["b>2", "0^6", "aA9", "aG0", "zv4", "9<8"]
        assert "6 mega-states" in env.render()
        assert "0 from 0, 9 to 5" in env.render()

    def test_the_path(self) -> None:
        env = make("TerrainMaze-v0", shape=(3, 2), mode="ansi")
        env.set_overlay(path=[5, 4, 2])
        lines = env.render().split("\n")
        assert lines[3][2::4][2] == "o"
        assert lines[1][2::4][1].isdigit(), "not of the path"
        assert lines[-1] == "o: path"
