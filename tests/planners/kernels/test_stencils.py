"""Backups without a table, bit for bit those of the table of the same maze."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import aggmaze
from aggmaze import MazeRows
from planners.kernels import moves, stencils
from planners.kernels.tables import Moves, moves_of
from tests.strategies import seeds, shapes

GAMMA = 0.95


@st.composite
def slabs(draw: st.DrawFn) -> tuple[MazeRows, int, int]:
    """Mazes of every kind, and the ends of a slab."""
    shape = draw(shapes(max_states=160).filter(lambda shape: np.prod(shape) > 1))
    given: dict[str, Any] = {
        "shape": shape,
        "layout_seed": draw(seeds),
        "p": draw(st.sampled_from([1.0, 0.9, 0.3, 0.05])),
        "cost_scale": draw(st.sampled_from([1.0, 1.7])),
        "goal_reward": draw(st.sampled_from([1.0, 5.0])),
        "goal": tuple(draw(st.integers(0, n - 1)) for n in shape),
        "start": "uniform",
    }
    if draw(st.booleans()):
        given |= {
            "generator": draw(st.sampled_from(["binary_tree", "blocks"])),
            "loops": draw(st.sampled_from([0.0, 0.3, 1.0])),
        }
    else:
        given |= {
            "kind": "terrain",
            "terrain": draw(st.sampled_from(["noise", "uniform"])),
            "cost": draw(st.sampled_from(["shifted", "difference", "climb"])),
        }
    maze = aggmaze.model_by_rows("NDMaze-v0", **given)
    ends = st.integers(0, maze.num_states)
    lo, hi = draw(st.tuples(ends, ends).filter(lambda pair: pair[0] < pair[1]))
    return maze, lo, hi


class Part:
    """A slab, and what the tables of the whole maze give for its states."""

    def __init__(self, slab: tuple[MazeRows, int, int]) -> None:
        self.maze, self.lo, self.hi = slab
        self.size = self.hi - self.lo
        self.stencil = stencils.stencil_of(*slab)
        self.tables: Moves = moves_of(self.maze.to_model())

    def local(self, whole: NDArray[Any]) -> NDArray[Any]:
        """Return what a slab knows of an array over all states, in its order."""
        first, last = stencils.ghosts_of(self.maze, self.lo, self.hi)
        return np.concatenate(
            [whole[self.lo : self.hi], whole[first : self.lo], whole[self.hi : last]]
        )

    def values(self, seed: int) -> NDArray[np.float64]:
        """Return random values, some of them equal, so that there are ties."""
        rng = np.random.default_rng(seed)
        size = self.maze.num_states
        return np.where(rng.random(size) < 0.3, 1.0, rng.normal(size=size))


class TestSweeps:
    @given(slab=slabs(), seed=seeds)
    def test_a_sweep(self, slab: tuple[MazeRows, int, int], seed: int) -> None:
        part = Part(slab)
        V = part.values(seed)
        out, actions = np.empty(len(V)), np.empty(len(V), dtype=np.int32)
        expected = moves.sweep(part.tables, GAMMA, V, out, actions, part.lo, part.hi)
        found, picked = np.empty(part.size), np.empty(part.size, dtype=np.int32)
        extremes = stencils.sweep(part.stencil, GAMMA, part.local(V), found, picked, 0, part.size)
        assert extremes == expected
        np.testing.assert_array_equal(found, out[part.lo : part.hi])
        np.testing.assert_array_equal(picked, actions[part.lo : part.hi])
        # The same values without the actions, and of a part of the slab.
        alone = np.full(part.size, np.nan)
        middle = part.size // 2
        stencils.sweep(part.stencil, GAMMA, part.local(V), alone, None, middle, part.size)
        np.testing.assert_array_equal(alone[middle:], found[middle:])
        assert np.isnan(alone[:middle]).all()

    @given(slab=slabs(), seed=seeds)
    def test_a_sweep_under_a_policy(self, slab: tuple[MazeRows, int, int], seed: int) -> None:
        part = Part(slab)
        V = part.values(seed)
        policy = np.random.default_rng(seed).integers(0, part.maze.num_actions, size=len(V))
        out, found = np.empty(len(V)), np.empty(part.size)
        with np.errstate(invalid="ignore"):
            expected = moves.policy_sweep(part.tables, GAMMA, policy, V, out, part.lo, part.hi)
            extremes = stencils.policy_sweep(
                part.stencil,
                GAMMA,
                policy[part.lo : part.hi],
                part.local(V),
                found,
                0,
                part.size,
            )
        np.testing.assert_array_equal(extremes, expected)
        np.testing.assert_array_equal(found, out[part.lo : part.hi])

    @given(slab=slabs(), seed=seeds)
    def test_backups_under_aggregation(self, slab: tuple[MazeRows, int, int], seed: int) -> None:
        part = Part(slab)
        rng = np.random.default_rng(seed)
        labels, W = rng.integers(0, 5, size=part.maze.num_states), rng.normal(size=5)
        states = rng.integers(0, part.size, size=7)
        out, found = np.empty(7), np.empty(7)
        moves.aggregated(part.tables, GAMMA, part.lo + states, W, labels, out)
        stencils.aggregated(part.stencil, GAMMA, states, W, part.local(labels), found)
        np.testing.assert_array_equal(found, out)


class TestActions:
    @given(slab=slabs(), seed=seeds)
    def test_values_of_actions(self, slab: tuple[MazeRows, int, int], seed: int) -> None:
        part = Part(slab)
        V = part.values(seed)
        Q = np.empty((len(V), part.maze.num_actions))
        found = np.empty((part.size, part.maze.num_actions))
        moves.q_values(part.tables, GAMMA, V, Q, part.lo, part.hi)
        stencils.q_values(part.stencil, GAMMA, part.local(V), found, 0, part.size)
        np.testing.assert_array_equal(found, Q[part.lo : part.hi])

    @given(slab=slabs(), seed=seeds, slack=st.sampled_from([0.0, 1e-9, 0.5]))
    def test_clear_actions(self, slab: tuple[MazeRows, int, int], seed: int, slack: float) -> None:
        part = Part(slab)
        V = part.values(seed)
        policy, found = np.empty(len(V), dtype=np.int32), np.empty(part.size, dtype=np.int32)
        expected = moves.clear_actions(part.tables, GAMMA, V, slack, policy, part.lo, part.hi)
        unclear = stencils.clear_actions(
            part.stencil, GAMMA, part.local(V), slack, found, 0, part.size
        )
        assert unclear == expected
        np.testing.assert_array_equal(found, policy[part.lo : part.hi])

    @given(slab=slabs(), seed=seeds, slack=st.sampled_from([0.0, 0.5, 10.0]))
    def test_greedy_actions(self, slab: tuple[MazeRows, int, int], seed: int, slack: float) -> None:
        part = Part(slab)
        V = part.values(seed)
        rng = np.random.default_rng(seed)
        distances = rng.integers(0, 4, size=len(V)).astype(np.int32)
        policy = np.where(rng.random(len(V)) < 0.7, -1, 1).astype(np.int32)
        found, margins = policy[part.lo : part.hi].copy(), (slack, 1e-9)
        moves.greedy(part.tables, GAMMA, V, distances, margins, policy, part.lo, part.hi)
        near = part.local(V), part.local(distances)
        stencils.greedy(part.stencil, GAMMA, *near, margins, found, 0, part.size)
        assert (found >= 0).all()
        np.testing.assert_array_equal(found, policy[part.lo : part.hi])

    @given(slab=slabs())
    def test_the_largest_cost(self, slab: tuple[MazeRows, int, int]) -> None:
        part = Part(slab)
        expected = moves.largest_cost(part.tables, part.lo, part.hi)
        assert stencils.largest_cost(part.stencil, 0, part.size) == expected


@pytest.mark.parametrize("terrain", ["noise", None])
def test_many_cells_in_a_row(terrain: str | None) -> None:
    """Lines longer than a piece, in slabs that end within them."""
    kind: dict[str, Any] = {"generator": "blocks"}
    if terrain is not None:
        kind = {"kind": "terrain", "terrain": terrain}
    maze = aggmaze.model_by_rows("NDMaze-v0", shape=(5, 401), p=0.9, **kind)
    V = np.random.default_rng(0).normal(size=maze.num_states)
    whole = np.empty(len(V))
    moves.sweep(moves_of(maze.to_model()), GAMMA, V, whole, None, 0, len(V))
    for lo, hi in ((0, 2005), (3, 390), (130, 131), (399, 1204), (401, 802), (1500, 2005)):
        part = Part((maze, lo, hi))
        found = np.empty(part.size)
        stencils.sweep(part.stencil, GAMMA, part.local(V), found, None, 0, part.size)
        np.testing.assert_array_equal(found, whole[lo:hi])


def test_a_slab_of_a_vast_terrain_at_its_far_corner() -> None:
    maze = aggmaze.model_by_rows("TerrainMaze-v0", shape=(2**40, 1000), terrain="noise", p=0.9)
    lo, hi = maze.num_states - 2500, maze.num_states
    stencil = stencils.stencil_of(maze, lo, hi)
    V = np.random.default_rng(0).normal(size=3500)
    found = np.empty(2500)
    stencils.sweep(stencil, GAMMA, V, found, None, 0, 2500)
    # By its moves, each by the formula of `aggmaze.models.moves`.
    block = maze.moves(lo, hi)
    place = block.successors - lo
    q = block.costs + GAMMA * V[np.where(place < 0, 3500 + place, place)]
    open_moves = np.isfinite(block.costs)
    n = open_moves.sum(axis=1)
    b = 0.1 / (n - 1)
    total = np.where(open_moves, q, 0.0).sum(axis=1)
    np.testing.assert_allclose(found, (0.9 - b) * q.min(axis=1) + b * total, atol=1e-13)


def test_slabs_outside_the_maze_are_refused() -> None:
    maze = aggmaze.model_by_rows("TerrainMaze-v0", terrain="noise")
    with pytest.raises(ValueError, match=r"stencil_of\(3, 401\) must satisfy .* <= 400"):
        stencils.stencil_of(maze, 3, 401)
