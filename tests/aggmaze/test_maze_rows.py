"""Mazes by rows: the environments' models, block by block, at any size."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aggmaze
import aggmaze.memory
from aggmaze import MazeRows, MoveMDP
from tests.strategies import seeds, shapes

FIELDS = ("successors", "move_costs", "initial", "p", "bump_cost")


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of NDMaze-v0 that both ways of making a maze take."""
    shape = draw(shapes(max_states=120).filter(lambda shape: np.prod(shape) > 1))
    goal = None
    if draw(st.booleans()):
        goal = tuple(draw(st.integers(0, n - 1)) for n in shape)
    given: dict[str, Any] = {
        "shape": shape,
        "layout_seed": draw(seeds),
        "goal": goal,
        "p": draw(st.sampled_from([1.0, 0.9, 0.05])),
        "step_cost": draw(st.sampled_from([1, 0.0, -2.5])),
        "goal_reward": draw(st.sampled_from([1.0, 10, 0.0])),
        "cost_scale": draw(st.sampled_from([1.0, 3, 1e-3])),
        "start": "uniform",
    }
    if draw(st.booleans()):
        given |= {
            "generator": draw(st.sampled_from(["binary_tree", "blocks"])),
            "loops": draw(st.sampled_from([0.0, 0.3])),
        }
    else:
        terrain = draw(st.sampled_from(["noise", "uniform"]))
        given |= {
            "kind": "terrain",
            "terrain": terrain,
            "smoothness": draw(st.sampled_from([None, 2.0])) if terrain == "noise" else None,
            "cost": draw(st.sampled_from(["shifted", "difference", "climb"])),
        }
    return given


def env_model(env_id: str, **given: Any) -> MoveMDP:
    model = gym.make(env_id, **given).get_wrapper_attr("transition_model")()
    assert isinstance(model, MoveMDP)
    return model


class TestSmall:
    @given(given_arguments=arguments(), data=st.data())
    def test_the_model_of_the_environment(
        self, given_arguments: dict[str, Any], data: st.DataObject
    ) -> None:
        expected = env_model("NDMaze-v0", **given_arguments)
        maze = aggmaze.model_by_rows("NDMaze-v0", **given_arguments)
        found = maze.to_model()
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
        lo, hi = data.draw(
            st.tuples(*[st.integers(0, maze.num_states)] * 2).filter(lambda ends: ends[0] < ends[1])
        )
        block = maze.moves(lo, hi)
        assert block.successors.dtype == np.int64
        np.testing.assert_array_equal(block.successors, expected.successors[lo:hi])
        np.testing.assert_array_equal(block.costs, expected.move_costs[lo:hi])

    @pytest.mark.parametrize(
        ("env_id", "given_arguments"),
        [
            ("StandardMaze-v0", {"generator": "blocks", "shape": (70, 66)}),
            ("StandardMaze-v0", {"generator": "binary_tree", "start": (3, 4)}),
            ("TerrainMaze-v0", {"terrain": "noise"}),
            ("TerrainMaze-v0", {"terrain": "uniform", "shape": (150, 200)}),
        ],
    )
    def test_the_other_environments(self, env_id: str, given_arguments: dict[str, Any]) -> None:
        expected = env_model(env_id, **given_arguments)
        found = aggmaze.model_by_rows(env_id, **given_arguments).to_model()
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)

    def test_layouts_are_the_environments(self) -> None:
        walls: dict[str, Any] = {"shape": (9, 8), "generator": "blocks", "loops": 0.2}
        layout = gym.make("StandardMaze-v0", **walls).get_wrapper_attr("layout")
        maze = aggmaze.model_by_rows("StandardMaze-v0", **walls)
        np.testing.assert_array_equal(maze.passages(5, 40), layout.passages[5:40])
        with pytest.raises(ValueError, match="walls has no heights"):
            maze.heights(0, 1)
        hills: dict[str, Any] = {"shape": (9, 8), "terrain": "noise"}
        layout = gym.make("TerrainMaze-v0", **hills).get_wrapper_attr("layout")
        terrain = aggmaze.model_by_rows("TerrainMaze-v0", **hills)
        np.testing.assert_array_equal(terrain.passages(5, 72), layout.passages[5:72])
        np.testing.assert_array_equal(terrain.heights(5, 40), layout.heights[5:40])
        with pytest.raises(ValueError, match="terrain has no walls"):
            terrain.passage_bits(0, 1)

    def test_pickles_are_the_same_maze(self) -> None:
        maze = aggmaze.model_by_rows("StandardMaze-v0", shape=(70, 70), generator="blocks")
        copy = pickle.loads(pickle.dumps(maze))
        assert copy.key == maze.key
        np.testing.assert_array_equal(copy.moves(60, 80).costs, maze.moves(60, 80).costs)

    def test_a_whole_maze_beyond_memory_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        maze = aggmaze.model_by_rows("TerrainMaze-v0", shape=(200, 300), terrain="noise")
        monkeypatch.setattr(aggmaze.memory, "available_memory", lambda: 1_000_000)
        with pytest.raises(MemoryError, match="whole mazes of 60,000 positions need"):
            maze.to_model()
        assert len(maze.moves(100, 200).costs) == 100


class TestKeys:
    def test_the_arguments_make_the_key(self) -> None:
        def key(**changed: Any) -> str:
            given: dict[str, Any] = {"shape": (5, 6), "terrain": "noise", **changed}
            return aggmaze.model_by_rows("TerrainMaze-v0", **given).key

        others = [
            {"shape": (6, 5)},
            {"layout_seed": 1},
            {"p": 0.9},
            {"goal": (1, 1)},
            {"cost": "climb"},
            {"terrain": "uniform"},
            {"smoothness": 3.0},
            {"step_cost": 2.0},
            {"goal_reward": 2.0},
            {"cost_scale": 2.0},
        ]
        keys = [key(), *(key(**other) for other in others)]
        assert len(set(keys)) == len(keys)
        # Known, so that a checkpoint of another machine, or of an older version, is found again.
        assert key() == key(step_cost=1, goal=(0, 0), start="uniform", p=np.float64(1.0))
        assert key() == "3521c1f0b271381d30ebe64f7ee95f3a"

    def test_one_key_for_one_maze_by_either_name(self) -> None:
        given: dict[str, Any] = {"shape": (5, 6), "generator": "blocks"}
        keys = {aggmaze.model_by_rows(i, **given).key for i in ("StandardMaze-v0", "NDMaze-v0")}
        assert len(keys) == 1


class TestVast:
    @pytest.mark.parametrize("generator", ["binary_tree", "blocks"])
    @pytest.mark.parametrize("side", [10**6, 2**31])
    def test_the_far_corner(self, generator: str, side: int) -> None:
        maze = aggmaze.model_by_rows("StandardMaze-v0", shape=(side, side), generator=generator)
        last = side * side - 1
        assert maze.num_states == side * side
        assert maze.start == last
        block = maze.moves(last - 2, last + 1)
        for state, row, costs in zip(
            range(last - 2, last + 1), block.successors.tolist(), block.costs, strict=True
        ):
            above = state + 1 if state < last else state
            assert row == [state - side, state, state - 1, above]
            assert np.isinf(costs[1])
            assert np.isfinite(costs).any()
        # One may go back wherever one came from.
        before = maze.moves(last - side, last - side + 1)
        assert np.isfinite(before.costs[0, 1]) == np.isfinite(block.costs[2, 0])

    def test_a_terrain_of_62_bits(self) -> None:
        maze = aggmaze.model_by_rows(
            "NDMaze-v0", shape=(2**31, 2, 2**30), kind="terrain", terrain="noise", cost="climb"
        )
        assert maze.num_states == 2**62
        block = maze.moves(2**62 - 2, 2**62)
        assert np.isfinite(block.costs).tolist() == [
            [True, False, True, False, True, True],
            [True, False, True, False, True, False],
        ]
        assert (block.costs[np.isfinite(block.costs)] >= 1.0).all()

    def test_what_cannot_be_numbered_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"4611686020574871552 positions, at most 2\*\*62"):
            aggmaze.model_by_rows(
                "StandardMaze-v0", shape=(2**31, 2**31 + 1), generator="binary_tree"
            )

    def test_environments_say_where_larger_mazes_are_made(self) -> None:
        with pytest.raises(ValueError, match=r"at most 2147483647 fit; aggmaze\.model_by_rows"):
            gym.make("StandardMaze-v0", shape=(2**16, 2**16), generator="binary_tree")
        maze = aggmaze.model_by_rows("StandardMaze-v0", shape=(2**16, 2**16), generator="blocks")
        with pytest.raises(ValueError, match="at most 2147483647 fit"):
            maze.to_model()
        with pytest.raises(TypeError, match="no table of all neighbours"):
            maze.grid.neighbours()


class TestRefusals:
    @pytest.mark.parametrize(
        ("env_id", "given_arguments", "error", "words"),
        [
            ("StandardMaze-v0", {}, ValueError, "generator='kruskal' .* binary_tree, blocks"),
            ("TerrainMaze-v0", {}, ValueError, "terrain='smooth' .* noise, uniform"),
            ("TerrainMaze-v0", {"terrain": "fractal"}, ValueError, "'fractal' .* noise, uniform"),
            ("GridWorld-v0", {}, ValueError, "env_id must be one of StandardMaze-v0, Terr"),
            ("StandardMaze-v0", {"layout": "G.S"}, ValueError, "layout='G.S' is not taken by rows"),
            ("StandardMaze-v0", {"render_mode": "ansi"}, ValueError, "render_mode='ansi' is not"),
            ("StandardMaze-v0", {"genrator": 1}, TypeError, "did you mean 'generator'"),
            ("StandardMaze-v0", {"shape": (3, 3, 3), "generator": "blocks"}, ValueError, "2 axes"),
            ("StandardMaze-v0", {"generator": "blocks", "p": 0}, ValueError, r"p must be in \(0"),
            ("StandardMaze-v0", {"generator": "blocks", "goal": (20, 0)}, ValueError, "goal="),
            ("StandardMaze-v0", {"generator": "blocks", "start": (0, 0)}, ValueError, "the goal"),
            ("StandardMaze-v0", {"generator": "blocks", "shape": (1, 1)}, ValueError, "no free"),
            ("NDMaze-v0", {"kind": "terrain", "generator": "blocks"}, ValueError, "goes with kind"),
        ],
    )
    def test_errors_name_what_is_allowed(
        self, env_id: str, given_arguments: dict[str, Any], error: type[Exception], words: str
    ) -> None:
        with pytest.raises(error, match=words):
            aggmaze.model_by_rows(env_id, **given_arguments)

    @pytest.mark.parametrize("name", ["moves", "passages", "passage_bits"])
    @pytest.mark.parametrize("ends", [(-1, 3), (3, 3), (0, 401)])
    def test_blocks_outside_the_maze(self, name: str, ends: tuple[int, int]) -> None:
        maze: MazeRows = aggmaze.model_by_rows("StandardMaze-v0", generator="blocks")
        words = rf"{name}\({ends[0]}, {ends[1]}\) must satisfy 0 <= lo < hi <= 400"
        with pytest.raises(ValueError, match=words):
            getattr(maze, name)(*ends)
