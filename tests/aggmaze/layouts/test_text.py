"""Mazes from and to text: exact both ways, and errors that name the place."""

from __future__ import annotations

import json
import textwrap

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from hypothesis import assume, given
from hypothesis import strategies as st

from aggmaze import rendering
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.layouts.text import FORMS, layout_from_text, layout_to_text
from tests.strategies import grids, seeds

WALLS = """\
+---+---+---+---+
| S     |###|   |
+   +---+---+   +
|   |   |       |
+   +   +---+   +
|         G     |
+---+---+---+---+"""
BLOCKS = """\
..#S
.#..
G..#"""


@st.composite
def mazes(draw: st.DrawFn, *, thin_walls: bool = True) -> tuple[Layout, int | None]:
    """Mazes with walls and blocked cells, and a start, in which what is free reaches the goal."""
    grid = draw(grids(min_dims=2, max_dims=2))
    rng = np.random.default_rng(draw(seeds))
    blocked = rng.random(grid.num_states) < draw(st.sampled_from([0.0, 0.2, 0.4]))
    goal = int(rng.integers(grid.num_states))
    blocked[goal] = False
    passages = open_passages(grid, blocked)
    if thin_walls:
        passages &= rng.random(passages.shape) < draw(st.sampled_from([0.6, 0.8, 1.0]))
    reaching = Layout(grid, passages, goal=goal, blocked=blocked).reaches_goal()
    assume(np.count_nonzero(reaching) > 1)
    passages &= open_passages(grid, ~reaching)
    blocked = None if reaching.all() else ~reaching
    starts = [int(state) for state in np.flatnonzero(reaching) if state != goal]
    return Layout(grid, passages, goal=goal, blocked=blocked), draw(
        st.sampled_from([None, *starts])
    )


def assert_same(read: Layout, written: Layout) -> None:
    assert read.grid == written.grid
    assert read.goal == written.goal
    assert read.heights is None
    np.testing.assert_array_equal(read.passages, written.passages)
    assert (read.blocked is None) == (written.blocked is None)
    np.testing.assert_array_equal(read.free(), written.free())


class TestBothWays:
    @given(maze=mazes())
    def test_thin_walls(self, maze: tuple[Layout, int | None]) -> None:
        layout, start = maze
        text = layout_to_text(layout, start)
        again, start_again = layout_from_text(text)
        assert_same(again, layout)
        assert start_again == start
        assert layout_to_text(again, start_again) == text

    @given(maze=mazes(thin_walls=False))
    def test_blocks(self, maze: tuple[Layout, int | None]) -> None:
        layout, start = maze
        text = layout_to_text(layout, start, "blocks")
        again, start_again = layout_from_text(text)
        assert_same(again, layout)
        assert start_again == start
        assert layout_to_text(again, start_again, "blocks") == text
        # The other form says the same.
        assert_same(layout_from_text(layout_to_text(layout, start))[0], layout)

    @given(maze=mazes(), with_heights=st.booleans())
    def test_what_is_rendered_can_be_read(
        self, maze: tuple[Layout, int | None], with_heights: bool
    ) -> None:
        layout, agent = maze
        heights = np.linspace(0.0, 1.0, layout.grid.num_states) if with_heights else None
        shown = Layout(layout.grid, layout.passages, heights, layout.goal, layout.blocked)
        again, start = layout_from_text(rendering.text(shown, agent))
        assert_same(again, layout)
        assert start == agent
        arrived, start = layout_from_text(rendering.text(shown, layout.goal))
        assert_same(arrived, layout)
        assert start is None

    @given(
        maze=mazes(),
        form=st.sampled_from(FORMS),
        margin=st.integers(0, 5),
        blank=st.lists(st.sampled_from(["", "  ", " " * 40]), max_size=3),
        newline=st.sampled_from(["\n", "\r\n"]),
    )
    def test_indentation_and_blank_lines_are_forgiven(
        self,
        maze: tuple[Layout, int | None],
        form: str,
        margin: int,
        blank: list[str],
        newline: str,
    ) -> None:
        layout, start = maze
        assume(form == "walls" or layout.num_walls == 0)
        text = layout_to_text(layout, start, form)
        lines = [*blank, *textwrap.indent(text, " " * margin).split("\n"), *blank]
        again, start_again = layout_from_text(newline.join(lines) + newline)
        assert_same(again, layout)
        assert start_again == start


def test_thin_walls_are_read_as_they_look() -> None:
    layout, start = layout_from_text(WALLS)
    grid = layout.grid
    assert grid.shape == (4, 3)
    assert start == grid.state((0, 2))
    assert layout.goal == grid.state((2, 0))
    assert layout.blocked is not None
    assert np.flatnonzero(layout.blocked).tolist() == [grid.state((2, 2))]
    right, up = (
        {tuple(grid.coords(int(state)).tolist()) for state in np.flatnonzero(passages)}
        for passages in layout.passages.T
    )
    assert right == {(0, 2), (2, 1), (0, 0), (1, 0), (2, 0)}
    assert up == {(0, 1), (3, 1), (0, 0), (1, 0), (3, 0)}
    assert layout.num_passages == 10
    assert layout.num_walls == 4


def test_blocks_are_read_as_they_look() -> None:
    layout, start = layout_from_text(BLOCKS)
    grid = layout.grid
    assert grid.shape == (4, 3)
    assert start == grid.state((3, 2))
    assert layout.goal == 0
    assert layout.blocked is not None
    blocked = {tuple(grid.coords(int(state)).tolist()) for state in np.flatnonzero(layout.blocked)}
    assert blocked == {(2, 2), (1, 1), (3, 0)}
    assert layout.num_walls == 0
    np.testing.assert_array_equal(layout.passages, open_passages(grid, layout.blocked))


def test_spaces_are_free_cells() -> None:
    spaced, dotted = (layout_from_text(text)[0] for text in ("G #\n#  \n#S ", "G.#\n#..\n#S."))
    assert_same(spaced, dotted)
    # Nothing but spaces on a line between others.
    assert_same(layout_from_text("#.S\n   \nG.#")[0], layout_from_text("#.S\n...\nG.#")[0])


def test_a_single_row_or_column() -> None:
    for text in ("S.G", "S\n.\nG", "+---+---+\n| G   S |\n+---+---+"):
        layout, start = layout_from_text(text)
        assert layout.reaches_goal().all()
        assert start is not None
        form = "walls" if "+" in text else "blocks"
        assert layout_to_text(layout, start, form) == text


def test_spaces_behind_the_last_wall_are_forgiven() -> None:
    ragged = "\n".join(line + " " * (3 * index % 5) for index, line in enumerate(WALLS.split("\n")))
    assert_same(layout_from_text(ragged)[0], layout_from_text(WALLS)[0])


def changed(text: str, line: int, column: int, sign: str) -> str:
    """Return a text with characters replaced from a place on, both counted from 1."""
    lines = text.split("\n")
    before = lines[line - 1]
    lines[line - 1] = before[: column - 1] + sign + before[column - 1 + len(sign) :]
    return "\n".join(lines)


CUT_OFF = "..#.\nG.#.\n..#."
REFUSED: list[tuple[str, str]] = [
    ("", "the text is empty"),
    (" \n\n   \n", "the text is empty"),
    ("G.\tS", "line 1, column 3: a tab.*write spaces"),
    ("\n\n  ..\n\t.G", "line 4, column 1: a tab"),
    ("..G\n.x.\n...", r"line 2, column 2: 'x' is not among .*: # \. S A G \* and space"),
    ("..G\n.é.\n...", "line 2, column 2: 'é' is not among"),
    ("..G\n.\ud800.\n...", r"line 2, column 2: '\\ud800' is not among"),
    ("..G\n..\n...", "line 2, column 3: the line has 2 characters where line 1 has 3"),
    ("..G\n\n...", "line 2, column 1: the line has 0 characters where line 1 has 3"),
    ("..G\n.....\n...", "line 2, column 4: the line has 5 characters where line 1 has 3"),
    ("...\n..S", "no goal: write G into"),
    ("G..\n.G.", "line 2, column 2: a second goal; the first is at line 1, column 1"),
    ("G..\n.*.", "line 2, column 2: a second goal"),
    ("GS.\nA..", "line 2, column 1: a second start.*line 1, column 2"),
    ("G#\n##", "line 1, column 1: there is no free cell beside the goal"),
    ("G", "line 1, column 1: there is no free cell beside the goal"),
    (
        CUT_OFF,
        r"line 1, column 4: the goal cannot be reached from the free cell at coordinates "
        r"\(3, 2\), nor from 2 more",
    ),
    ("\n   " + CUT_OFF.replace("\n", "\n   "), r"line 2, column 7: .*\(3, 2\)"),
    ("..G\n##.\n.#.", r"line 3, column 1: .*coordinates \(0, 0\)$"),
    (WALLS.replace(" G ", "   "), "no goal"),
    (changed(WALLS, 2, 15, "G"), "line 6, column 11: a second goal.*line 2, column 15"),
    (changed(WALLS, 4, 3, "A"), "line 4, column 3: a second start.*line 2, column 3"),
    (changed(WALLS, 1, 1, " "), r"line 1, column 1: ' ' where a \+ must stand"),
    (changed(WALLS, 3, 5, "-"), r"line 3, column 5: '-' where a \+ must stand"),
    (changed(WALLS, 3, 2, "-"), "line 3, column 3: half a wall"),
    (changed(WALLS, 3, 6, "-- "), "line 3, column 7: half a wall"),
    (changed(WALLS, 3, 2, "|||"), "line 3, column 3: half a wall"),
    (changed(WALLS, 4, 5, "-"), r"line 4, column 5: '-' where a wall \| or a space must stand"),
    (changed(WALLS, 4, 2, " ."), r"line 4, column 3: '\.' is not among .* with thin walls"),
    (changed(WALLS, 2, 2, "SS "), "line 2, column 3: a cell is a sign between two spaces"),
    (changed(WALLS, 2, 10, "## "), "line 2, column 11: a cell is .* or ### where blocked"),
    (changed(WALLS, 4, 3, "#"), "line 4, column 3: a cell is"),
    (changed(WALLS, 4, 3, "+"), "line 4, column 3: a cell is"),
    (changed(WALLS, 1, 6, "   "), "line 1, column 7: the outer wall is open"),
    (changed(WALLS, 7, 2, "   "), "line 7, column 3: the outer wall is open"),
    (changed(WALLS, 4, 1, " "), "line 4, column 1: the outer wall is open"),
    (changed(WALLS, 4, 17, " "), "line 4, column 17: the outer wall is open"),
    (changed(WALLS, 3, 10, "   "), "line 3, column 11: no wall beside a blocked cell"),
    (changed(WALLS, 2, 9, " "), "line 2, column 9: no wall beside a blocked cell"),
    (changed(WALLS, 2, 13, " "), "line 2, column 13: no wall beside a blocked cell"),
    (
        changed(changed(WALLS, 3, 14, "---"), 2, 13, "|"),
        r"line 2, column 15: the goal cannot be reached from .*\(3, 2\)$",
    ),
    ("+---+\n| G |\n+---+", "line 2, column 3: there is no free cell beside the goal"),
    ("+--+--+\n|G  S |\n+--+--+", "line 1, column 1: .*takes 2 ny .* 4 nx .*, got 3 of 7"),
    ("+---+---+\n| G   S |", "line 1, column 1: .*got 2 of 9"),
    (WALLS + "\n|   |   |   |   |", "line 1, column 1: .*got 8 of 17"),
    (
        "\n".join([*WALLS.split("\n")[:4], "+   +", *WALLS.split("\n")[5:]]),
        "line 5, column 6: the line has 5 characters where line 1 has 17",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_not_a_maze_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layout_from_text(text)


@given(maze=mazes(), form=st.sampled_from(FORMS), data=st.data())
def test_any_change_is_read_or_refused_with_a_reason(
    maze: tuple[Layout, int | None], form: str, data: st.DataObject
) -> None:
    layout, start = maze
    assume(form == "walls" or layout.num_walls == 0)
    text = layout_to_text(layout, start, form)
    at = data.draw(st.integers(0, len(text) - 1))
    sign = data.draw(st.sampled_from(" +-|#.SGA*7\n\tx"))
    refusal = None
    try:
        again, _ = layout_from_text(text[:at] + sign + text[at + 1 :])
    except ValueError as error:
        refusal = str(error)
    if refusal is None:
        np.testing.assert_array_equal(again.reaches_goal(), again.free())
    else:
        assert any(words in refusal for words in ("line ", "no goal", "empty"))


@pytest.mark.parametrize("text", [None, 3, b"G.", ["G."]])
def test_other_types_are_refused(text: object) -> None:
    with pytest.raises(TypeError, match=f"must be a str, got {type(text).__name__}"):
        layout_from_text(text)  # type: ignore[arg-type]


def test_what_cannot_be_written_is_refused() -> None:
    layout, _ = layout_from_text(WALLS)
    with pytest.raises(ValueError, match="form must be one of walls, blocks, got 'hedges'"):
        layout_to_text(layout, form="hedges")
    with pytest.raises(ValueError, match=r"wall between \(0, 1\) and \(1, 1\) .*'blocks'"):
        layout_to_text(layout, form="blocks")
    with pytest.raises(ValueError, match=r"start 6, at \(2, 0\), is the goal"):
        layout_to_text(layout, 6)
    with pytest.raises(ValueError, match=r"start 8, at \(2, 2\), is blocked"):
        layout_to_text(layout, 8)
    with pytest.raises(ValueError, match=r"start must be in \[0, 12\), got 12"):
        layout_to_text(layout, 12)
    for shape in ((5,), (2, 2, 2)):
        grid = Grid(shape)
        with pytest.raises(ValueError, match="two dimensions, got a grid"):
            layout_to_text(Layout(grid, open_passages(grid)))


class TestEnvironments:
    @pytest.mark.parametrize("env_id", ["StandardMaze-v0", "TerrainMaze-v0", "NDMaze-v0"])
    @pytest.mark.parametrize("text", [WALLS, BLOCKS], ids=FORMS)
    def test_walls_start_and_goal_are_those_of_the_text(self, env_id: str, text: str) -> None:
        layout, start = layout_from_text(text)
        env = gym.make(env_id, layout=textwrap.indent(text, "   "), render_mode="ansi")
        made = env.unwrapped.layout  # type: ignore[attr-defined]
        np.testing.assert_array_equal(made.passages, layout.passages)
        np.testing.assert_array_equal(made.blocked, layout.blocked)
        assert made.goal == layout.goal
        assert env.observation_space.n == 12  # type: ignore[attr-defined]
        assert env.reset(seed=0)[0] == start
        written = env.render()
        assert isinstance(written, str)
        again, start_again = layout_from_text(written)
        assert_same(again, layout)
        assert start_again == start

    def test_what_is_given_comes_before_the_text(self) -> None:
        env = gym.make("StandardMaze-v0", layout=WALLS, start=(3, 0), goal=(0, 0), shape=(4, 3))
        _, info = env.reset(seed=0)
        assert info["coords"].tolist() == [3, 0]
        assert env.unwrapped.layout.goal == 0  # type: ignore[attr-defined]
        seen = {
            gym.make("StandardMaze-v0", layout=WALLS, start="uniform").reset(seed=seed)[0]
            for seed in range(200)
        }
        assert seen == set(range(12)) - {6, 8}  # neither the goal nor what is blocked

    def test_without_a_start_it_is_the_corner_opposite_the_goal(self) -> None:
        for text, corner in (
            ("..\n..\nG.", [1, 2]),
            (".G\n..\n..", [0, 0]),
            (".....\n..G..\n.....", [4, 2]),
            ("....\n..G.\n....\n....", [0, 0]),
        ):
            env = gym.make("StandardMaze-v0", layout=text)
            assert env.reset()[1]["coords"].tolist() == corner

    def test_text_survives_json(self) -> None:
        env = gym.make("TerrainMaze-v0", layout="\n  " + BLOCKS.replace("\n", "\n  "), p=0.9)
        assert env.spec is not None
        again = gym.make(EnvSpec.from_json(env.spec.to_json()))
        for each in (env, again):
            each.action_space.seed(0)
        assert env.reset(seed=0)[0] == again.reset(seed=0)[0]
        for _ in range(20):
            action = env.action_space.sample()
            assert env.step(action)[:3] == again.step(action)[:3]
        assert json.loads(env.spec.to_json())["kwargs"]["layout"].count("G") == 1

    def test_the_seed_draws_heights_between_the_same_walls(self) -> None:
        made = [
            gym.make("TerrainMaze-v0", layout=WALLS, layout_seed=seed).unwrapped.layout  # type: ignore[attr-defined]
            for seed in range(10)
        ]
        assert len({layout.heights.tobytes() for layout in made}) == 10
        assert len({layout.passages.tobytes() for layout in made}) == 1
        env = gym.make("TerrainMaze-v0", layout=WALLS)
        env.reset(options={"layout_seed": 7})
        np.testing.assert_array_equal(env.unwrapped.layout.heights, made[7].heights)  # type: ignore[attr-defined]


def test_a_large_maze_is_read_and_written_at_once() -> None:
    # A loop over cells would take minutes.
    env = gym.make("StandardMaze-v0", shape=(1000, 1000))
    layout = env.unwrapped.layout  # type: ignore[attr-defined]
    assert_same(layout_from_text(layout_to_text(layout))[0], layout)
