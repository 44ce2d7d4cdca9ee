"""Grid worlds from text, lists, arrays and files: what is read, written, and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import MAPS, generate_random_map
from hypothesis import given
from hypothesis import strategies as st

import aggmaze
from aggmaze import Cell, GridWorld, KingGrid
from aggmaze.layouts.ready import READY
from aggmaze.layouts.signs import KNOWN

SIGNS = {"1": 10, "2": -5, "m": {"reward": -3, "ends": False}, "b": {"back": True}, "ö": 2.5}
WALLED = """
    +---+---+---+
    | S   m | G |
    +   +---+   +
    | 1 |###| H |
    +---+---+---+
"""


def signs_of(world: GridWorld) -> list[str]:
    """Return the rows of signs, top row first, a dot where there is none."""
    assert world.layout.signs is not None
    rows = world.layout.grid.to_image(world.layout.signs)
    return ["".join(chr(code) if code else "." for code in row) for row in rows.tolist()]


def coords(world: GridWorld, states: Any) -> list[list[int]]:
    return world.layout.grid.coords(np.asarray(states)).tolist()


class TestRead:
    def test_blocks(self) -> None:
        world = GridWorld.read("SFFG\n.#mH\nb 1~", SIGNS)
        assert world.layout.grid.shape == (4, 3)
        assert signs_of(world) == ["...G", "..mH", "b.1~"]
        assert coords(world, world.starts) == [[0, 2]]
        assert coords(world, np.flatnonzero(world.layout.blocked)) == [[1, 1]]
        ends = np.flatnonzero(world.layout.is_end())
        assert coords(world, ends) == [[2, 0], [3, 0], [3, 1], [3, 2]]
        assert coords(world, world.layout.goal) == [3, 2]
        assert coords(world, np.flatnonzero(world.leads_back())) == [[0, 0]]
        rewards = world.layout.grid.to_image(world.rewards())
        nan = np.nan
        expected = [[nan, nan, nan, 1.0], [nan, nan, -3.0, 0.0], [nan, nan, 10.0, -1.0]]
        np.testing.assert_array_equal(rewards, expected)

    def test_thin_walls(self) -> None:
        world = GridWorld.read(WALLED, SIGNS)
        assert signs_of(world) == [".mG", "1.H"]
        layout = world.layout
        right, up = (
            layout.grid.to_image(layout.passages[:, axis]).astype(int).tolist() for axis in (0, 1)
        )
        assert right == [[1, 0, 0], [0, 0, 0]]
        assert up == [[0, 0, 0], [1, 0, 1]]

    def test_the_agent_is_read_as_what_it_stands_on_at_first_and_at_last(self) -> None:
        assert GridWorld.read("A*").starts.tolist() == [0]
        assert signs_of(GridWorld.read("A*")) == [".G"]
        # Where the table has them they are signs as others are.
        world = GridWorld.read("A*S", {"A": 3, "*": {"reward": 1, "ends": False}})
        assert signs_of(world) == ["A*."]
        assert world.layout.is_end().tolist() == [True, False, False]

    def test_several_starts(self) -> None:
        world = GridWorld.read("S.S\n..G")
        assert coords(world, world.starts) == [[0, 1], [2, 1]]
        model = aggmaze.grid_world_model(world, aggmaze.GridWorldRules())
        assert model.initial[world.starts].tolist() == [0.5, 0.5]

    def test_the_first_end_is_the_goal_where_there_is_no_g(self) -> None:
        world = GridWorld.read("S.H\n..1", SIGNS)
        assert coords(world, world.layout.goal) == [2, 0]

    @pytest.mark.parametrize("seed", range(5))
    def test_frozen_lakes_maps(self, seed: int) -> None:
        desc = generate_random_map(size=6, p=0.7, seed=seed)
        lake: Any = gym.make("FrozenLake-v1", desc=desc).unwrapped
        expected = [row.replace("F", ".").replace("S", ".") for row in desc]
        for given_as in (desc, "\n".join(desc), lake.desc, np.array(desc), tuple(desc)):
            world = GridWorld.read(given_as)
            assert signs_of(world) == expected
            assert coords(world, world.starts) == [[0, 5]]

    def test_lists_of_characters(self) -> None:
        world = GridWorld.read([list(row) for row in MAPS["4x4"]])
        assert signs_of(world) == ["....", ".H.H", "...H", "H..G"]

    def test_spaces_are_free_cells_in_lists(self) -> None:
        assert GridWorld.read(["  G", " # "]).layout.grid.shape == (3, 2)
        assert GridWorld.read(WALLED.strip("\n").split("\n"), SIGNS).layout.grid.shape == (3, 2)

    @pytest.mark.parametrize(
        "cast",
        [
            np.array,
            lambda rows: np.array(rows, dtype=bool),
            lambda rows: np.array(rows, dtype=np.float32),
            list,
            lambda rows: ["".join(map(str, row)) for row in rows],
            lambda rows: "\n".join("".join(map(str, row)) for row in rows),
        ],
    )
    def test_walls_as_ones(self, cast: Any) -> None:
        rows = [[1, 1, 1, 1], [1, 0, 0, 1], [1, 0, 1, 1], [1, 1, 1, 1]]
        world = GridWorld.read(cast(rows), goal=(1, 1))
        blocked = world.layout.grid.to_image(~world.layout.free()).astype(int)
        assert blocked.tolist() == rows
        assert coords(world, world.layout.goal) == [1, 1]

    def test_digits_of_a_table_are_no_walls(self) -> None:
        world = GridWorld.read("0011", {"1": 5, "0": {"reward": -1, "ends": False}})
        assert world.layout.blocked is None
        assert signs_of(world) == ["0011"]

    @pytest.mark.parametrize("name", ["map.txt", "map.map"])
    def test_files(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        path.write_text("S.\n.G\n", encoding="utf-8-sig")
        for given_as in (path, str(path)):
            assert signs_of(GridWorld.read(given_as)) == ["..", ".G"]
        for given_as in (path, str(path)):
            layout, start = aggmaze.layout_from_text(given_as)
            assert (layout.goal, start) == (2, 1)
        for env_id in ("StandardMaze-v0", "TerrainMaze-v0", "NDMaze-v0", "GridWorld-v0"):
            for given_as in (path, str(path)):
                env: Any = gym.make(env_id, layout=given_as).unwrapped
                assert env.grid.shape == (2, 2)
                assert env.layout.goal == 2
                assert env.reset()[1]["coords"].tolist() == [0, 1]

    def test_a_goal_of_the_callers_takes_the_place_of_the_maps(self) -> None:
        world = GridWorld.read("G.G\n.H.", goal=(0, 0))
        assert signs_of(world) == ["...", "GH."]

    def test_rooms_that_reach_no_end(self) -> None:
        text = "S.G#.C\n...##S\n####.."
        with pytest.raises(ValueError, match=r"line 1, column 5: no end can be reached.* \(4, 2\)"):
            GridWorld.read(text)
        world = GridWorld.read(text, unreachable="allow")
        assert np.count_nonzero(world.layout.free()) == 11
        assert len(world.starts) == 2
        world = GridWorld.read(text, unreachable="block")
        assert np.count_nonzero(world.layout.free()) == 6
        assert coords(world, world.starts) == [[0, 2]]
        assert not world.leads_back().any()
        assert signs_of(world) == ["..G...", "......", "......"]

    def test_a_king_has_a_grid_of_its_own(self) -> None:
        grid = GridWorld.read("S.G", moves="king_or_stay").layout.grid
        assert isinstance(grid, KingGrid)
        assert grid.num_actions == len(grid.directions) == len(grid.action_names) == 9
        assert grid.action_names[4:] == (
            "LEFT_DOWN",
            "LEFT_UP",
            "RIGHT_DOWN",
            "RIGHT_UP",
            "STAY",
        )
        assert grid.directions[4:] == ((-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0))


class TestRefused:
    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("S.x\n..G", r"line 1, column 3: 'x' is not among the characters of a maze of blocks"),
            ("\n\n  S..\n  ..?", r"line 4, column 5: '\?' is not among"),
            ("S..\n..\n..G", r"line 2, column 3: the line has 2 characters where line 1 has 3"),
            ("S..", "the maze has no end: write G into"),
            ("", "the text is empty"),
            ("\tG", "line 1, column 1: a tab"),
            ("GH", r"line 1, column 1: there is no free cell beside the ends"),
            ([], "the text is empty"),
            (["S.", "G\n"], r"layout\[1\] = 'G\\n' must be a single line"),
            ([[0, 2]], r"layout\[0, 1\] = 2 must be 0, free, or 1, blocked"),
            (np.array([[0.0, np.nan]]), r"layout\[0, 1\] = nan must be 0, free, or 1, blocked"),
            (np.zeros((2, 2, 2), int), r"shape \(rows, columns\), not empty, got \(2, 2, 2\)"),
            (np.zeros((0, 3), int), r"shape \(rows, columns\), not empty, got \(0, 3\)"),
            ([[0, 1], [0]], "rows of one length"),
            ([["S", "GG"]], r"layout\[0, 1\] = 'GG' must be one character"),
            (
                WALLED.replace("| 1 |", "| x |"),
                r"line 5, column 7: 'x' is not among the characters of a maze with thin walls",
            ),
        ],
    )
    def test_maps(self, source: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            GridWorld.read(source, SIGNS)

    @pytest.mark.parametrize("source", [3, None, {"S": 1}, 1.5, [[0j, 1j]]])
    def test_what_is_no_map(self, source: Any) -> None:
        with pytest.raises(TypeError, match="layout must "):
            GridWorld.read(source)

    @pytest.mark.parametrize(
        ("signs", "error", "message"),
        [
            ({"ab": 1}, ValueError, r"signs: 'ab' must be a single character"),
            ({"": 1}, ValueError, r"signs: '' must be a single character"),
            ({"\t": 1}, ValueError, r"signs: '\\t' must be a single character"),
            ({3: 1}, ValueError, r"signs: 3 must be a single character"),
            ({"#": 1}, ValueError, r"signs: '#' has a meaning that is settled"),
            ({"S": 1}, ValueError, r"signs: 'S' has a meaning that is settled"),
            ({"1": float("nan")}, ValueError, r"signs\['1'\]: reward must be .*finite.*got nan"),
            ({"1": float("inf")}, ValueError, r"signs\['1'\]: reward must be .*finite.*got inf"),
            ({"1": "5"}, TypeError, r"signs\['1'\] must be a reward, or a dictionary.*got '5'"),
            ({"1": True}, TypeError, r"signs\['1'\] must be a reward.*got True"),
            ({"1": {"rewrad": 5}}, ValueError, r"signs\['1'\].*'rewrad'.*did you mean 'reward'"),
            ({"1": {"ends": 1}}, TypeError, r"signs\['1'\]: ends must be True or False, got 1"),
            ({"1": {"ends": True, "back": True}}, ValueError, r"either ends .* or leads back"),
            ([("1", 5)], TypeError, r"signs must be a table such as .*got list"),
        ],
    )
    def test_signs(self, signs: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            GridWorld.read("S1G", signs)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"goal": (3, 0)}, r"goal=\(3, 0\).*3 on axis 0"),
            ({"goal": (1, 0)}, r"the goal at \(1, 0\) is blocked"),
            ({"moves": "queen"}, "moves must be one of four, king, king_or_stay, got 'queen'"),
            ({"unreachable": "ignore"}, "unreachable must be one of refuse, allow, block"),
        ],
    )
    def test_arguments(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            GridWorld.read("S.G\n.#.", **arguments)

    def test_files(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="there is no file"):
            GridWorld.read(tmp_path / "none.txt")
        (tmp_path / "bytes.txt").write_bytes(b"S\xff\xfeG")
        with pytest.raises(ValueError, match="is not a maze as text"):
            GridWorld.read(tmp_path / "bytes.txt")
        with pytest.raises(IsADirectoryError):
            GridWorld.read(tmp_path)
        (tmp_path / "bad.map").write_text("S.G\n..?")
        for env_id in ("GridWorld-v0", "StandardMaze-v0"):
            with pytest.raises(ValueError, match=r"bad\.map: line 2, column 3: '\?' is not among"):
                gym.make(env_id, layout=tmp_path / "bad.map")


def test_a_number_changes_the_reward_and_nothing_else() -> None:
    table = GridWorld.read("SG", {"C": -7, "H": -1, "G": 3, "z": -2}).cells
    assert table["C"] == Cell(-7.0, back=True)
    assert table["H"] == Cell(-1.0, ends=True)
    assert table["G"] == Cell(3.0, ends=True)
    assert table["z"] == Cell(-2.0, ends=True)
    assert table["L"] == KNOWN["L"] == Cell(-1.0, ends=True)
    assert GridWorld.read("SG", {"H": {"reward": -2}}).cells["H"] == Cell(-2.0)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw a map of blocks with at least one end and one free cell, and its table of signs."""
    table = {sign: SIGNS[sign] for sign in draw(st.sets(st.sampled_from(sorted(SIGNS))))}
    columns, rows = draw(st.integers(2, 5)), draw(st.integers(1, 5))
    signs = "..#SGHLC~" + "".join(table)
    size = columns * rows
    cells = draw(st.lists(st.sampled_from(signs), min_size=size, max_size=size))
    cells[0], cells[-1] = "G", "."
    return "\n".join("".join(cells[k * columns : (k + 1) * columns]) for k in range(rows)), table


@given(worlds(), st.sampled_from(["walls", "blocks"]))
def test_what_is_written_is_read_back(drawn: tuple[str, dict[str, Any]], form: str) -> None:
    text, table = drawn
    world = GridWorld.read(text, table, unreachable="allow")
    again = GridWorld.read(world.to_text(form), table, unreachable="allow")
    for name in ("passages", "blocked", "ends", "signs", "untrod"):
        np.testing.assert_array_equal(
            getattr(again.layout, name), getattr(world.layout, name), err_msg=name
        )
    assert again.layout.goal == world.layout.goal
    assert again.starts.tolist() == world.starts.tolist()
    assert again.to_text(form) == world.to_text(form)
    if form == "blocks":
        assert world.to_text(form) == text


@pytest.mark.parametrize("name", sorted(READY))
def test_ready_layouts_are_read_back(name: str) -> None:
    ready = aggmaze.ready_layout(name)
    assert ready.source
    env: Any = gym.make("GridWorld-v0", layout=name).unwrapped
    signs = ready.settings.get("signs")
    for form in ("walls", "blocks"):
        again = GridWorld.read(
            env.world.to_text(form), signs, moves=ready.settings.get("moves", "four")
        )
        np.testing.assert_array_equal(again.layout.signs, env.layout.signs)
        np.testing.assert_array_equal(again.layout.passages, env.layout.passages)
    # Nothing but the map and its settings makes it.
    same: Any = gym.make("GridWorld-v0", layout=ready.text, **ready.settings).unwrapped
    ours, theirs = (each.transition_model().to_tabular() for each in (env, same))
    np.testing.assert_array_equal(ours.transitions.toarray(), theirs.transitions.toarray())
    np.testing.assert_array_equal(ours.costs, theirs.costs)


def test_no_ready_layout_of_that_name() -> None:
    with pytest.raises(ValueError, match=r"ready layout must be one of .*'wind'.*'windy'"):
        aggmaze.ready_layout("wind")
    with pytest.raises(ValueError, match="there is no ready layout 'wimdy'; did you mean 'windy'"):
        gym.make("GridWorld-v0", layout="wimdy")


def test_other_mazes_still_have_one_goal() -> None:
    for text, message in (("G.G", "a second goal"), ("G.H", "'H' is not among")):
        with pytest.raises(ValueError, match=message):
            aggmaze.layout_from_text(text)


@given(
    st.text(max_size=40)
    | st.text(alphabet="SFHGLC~#. +-|\n1m", max_size=80)
    | st.lists(st.text(max_size=6), max_size=5)
    | st.lists(st.lists(st.integers(-1, 2) | st.sampled_from("SG#"), max_size=4), max_size=4),
    st.sampled_from([None, SIGNS]),
)
def test_whatever_is_given_is_read_or_refused(source: Any, signs: Any) -> None:
    try:
        world = GridWorld.read(source, signs)
    except (ValueError, TypeError, FileNotFoundError):
        return
    assert world.layout.is_end().any()
    again = GridWorld.read(world.to_text(), signs)
    np.testing.assert_array_equal(again.layout.signs, world.layout.signs)
