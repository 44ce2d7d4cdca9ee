"""Layouts: spanning trees by property, opened loops, heights."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, shortest_path

from aggmaze.grid import Grid
from aggmaze.layouts.heights import TERRAINS, heights
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.layouts.spanning_tree import GENERATORS, open_loops
from tests.strategies import grids, seeds

generators = pytest.mark.parametrize("generator", GENERATORS)


def draw(generator: str, grid: Grid, seed: int) -> NDArray[np.bool_]:
    return GENERATORS[generator](grid, np.random.default_rng(seed))


def joined(grid: Grid, passages: NDArray[np.bool_]) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the pairs of coordinates that passages join, after checking that they are a grid's."""
    pairs = set()
    for state, axis in np.argwhere(passages):
        here = tuple(int(x) for x in np.unravel_index(state, grid.shape))
        there = (*here[:axis], here[axis] + 1, *here[axis + 1 :])
        assert there[axis] < grid.shape[axis], f"the passage from {here} leaves {grid.shape}"
        pairs.add((here, there))
    return pairs


def graph(grid: Grid, passages: NDArray[np.bool_]) -> sp.csr_array:
    """Return the adjacency of positions, shape (S, S), one direction of each pair."""
    pairs = sorted(joined(grid, passages))
    ends = np.array(pairs, dtype=int).reshape(-1, 2, grid.num_dims)
    here, there = (np.ravel_multi_index(tuple(ends[:, k].T), grid.shape) for k in (0, 1))
    shape = (grid.num_states, grid.num_states)
    return sp.csr_array((np.ones(len(pairs)), (here, there)), shape=shape)


def depths(grid: Grid, passages: NDArray[np.bool_]) -> NDArray[np.float64]:
    return shortest_path(graph(grid, passages), directed=False, unweighted=True, indices=0)


@generators
@given(grid=grids(), seed=seeds)
def test_a_maze_is_a_spanning_tree(generator: str, grid: Grid, seed: int) -> None:
    passages = draw(generator, grid, seed)
    assert passages.shape == (grid.num_states, grid.num_dims)
    assert passages.dtype == bool
    assert len(joined(grid, passages)) == grid.num_states - 1
    assert connected_components(graph(grid, passages), directed=False)[0] == 1
    assert Layout(grid, passages).num_passages == grid.num_states - 1


@generators
@given(grid=grids(), seed=seeds)
def test_a_seed_makes_the_maze(generator: str, grid: Grid, seed: int) -> None:
    np.testing.assert_array_equal(draw(generator, grid, seed), draw(generator, grid, seed))


@generators
@pytest.mark.parametrize("shape", [(6, 6), (3, 4, 3), (2, 3, 2, 3)])
def test_different_seeds_make_different_mazes(generator: str, shape: tuple[int, ...]) -> None:
    grid = Grid(shape)
    assert len({draw(generator, grid, seed).tobytes() for seed in range(50)}) == 50


@generators
def test_the_trees_of_a_square_are_equally_likely(generator: str) -> None:
    # Four positions in a ring: a tree leaves out one of the four passages.
    grid = Grid((2, 2))
    counts: dict[bytes, int] = {}
    for seed in range(400):
        tree = draw(generator, grid, seed).tobytes()
        counts[tree] = counts.get(tree, 0) + 1
    # The walk from the origin goes all the way around, one way or the other.
    expected = 4 if generator == "kruskal" else 2
    assert len(counts) == expected
    assert max(counts.values()) < 1.3 * 400 / expected


@generators
def test_a_single_row_has_one_maze(generator: str) -> None:
    assert draw(generator, Grid((7,)), 3).reshape(-1).tolist() == [True] * 6 + [False]
    assert draw(generator, Grid((1, 1, 1)), 3).tolist() == [[False] * 3]


def test_depth_first_corridors_are_far_longer() -> None:
    grid = Grid((20, 20))
    median = {
        name: np.median([depths(grid, draw(name, grid, seed)).max() for seed in range(25)])
        for name in GENERATORS
    }
    assert median["depth_first"] > 2 * median["kruskal"]
    # No path is shorter than the way across, none longer than all positions.
    assert median["kruskal"] >= 38
    assert median["depth_first"] < 400


@given(grid=grids(), seed=seeds)
def test_moves_follow_the_passages_in_both_directions(grid: Grid, seed: int) -> None:
    rng = np.random.default_rng(seed)
    passages = open_passages(grid)
    passages &= rng.random(passages.shape) < 0.6
    pairs = joined(grid, passages)
    available = Layout(grid, passages).available()
    assert available.shape == (grid.num_states, 2 * grid.num_dims)
    for state in range(grid.num_states):
        here = tuple(int(x) for x in np.unravel_index(state, grid.shape))
        for axis in range(grid.num_dims):
            below, above = ((*here[:axis], here[axis] + d, *here[axis + 1 :]) for d in (-1, 1))
            assert available[state, 2 * axis] == ((below, here) in pairs)
            assert available[state, 2 * axis + 1] == ((here, above) in pairs)


@given(grid=grids())
def test_an_open_grid_joins_all_neighbours(grid: Grid) -> None:
    states = np.arange(grid.num_states)
    expected = np.stack(
        [x < n - 1 for x, n in zip(np.unravel_index(states, grid.shape), grid.shape, strict=True)],
        axis=1,
    )
    np.testing.assert_array_equal(open_passages(grid), expected)


class TestLoops:
    @generators
    @given(grid=grids(), seed=seeds, share=st.floats(0, 1))
    def test_the_share_of_the_remaining_walls_is_opened(
        self, generator: str, grid: Grid, seed: int, share: float
    ) -> None:
        rng = np.random.default_rng(seed)
        tree = GENERATORS[generator](grid, rng)
        before = tree.copy()
        opened = open_loops(grid, tree, share, rng)
        np.testing.assert_array_equal(tree, before)
        assert (opened >= tree).all(), "a passage of the tree is gone"
        walls = int(open_passages(grid).sum()) - int(tree.sum())
        assert opened.sum() - tree.sum() == round(share * walls)
        joined(grid, opened)

    @generators
    @given(grid=grids(), seed=seeds)
    def test_the_ends_of_the_share(self, generator: str, grid: Grid, seed: int) -> None:
        rng = np.random.default_rng(seed)
        tree = GENERATORS[generator](grid, rng)
        np.testing.assert_array_equal(open_loops(grid, tree, 0.0, rng), tree)
        np.testing.assert_array_equal(open_loops(grid, tree, 1.0, rng), open_passages(grid))

    def test_walls_are_chosen_evenly(self) -> None:
        grid = Grid((4, 4))
        tree = draw("kruskal", grid, 0)
        walls = open_passages(grid) & ~tree
        runs = 2000
        counts = np.zeros(tree.shape)
        for seed in range(runs):
            counts += open_loops(grid, tree, 1 / 3, np.random.default_rng(seed)) & walls
        # 3 of 9 walls: each is opened in a third of the runs, give or take five deviations.
        assert walls.sum() == 9
        spread = math.sqrt(runs * (1 / 3) * (2 / 3))
        np.testing.assert_allclose(counts[walls], runs / 3, atol=5 * spread)

    @pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, math.inf])
    def test_other_shares_are_refused(self, share: float) -> None:
        grid = Grid((3, 3))
        rng = np.random.default_rng(0)
        with pytest.raises(ValueError, match=rf"loops must be in \[0, 1\], got {share}"):
            open_loops(grid, draw("kruskal", grid, 0), share, rng)


class TestHeights:
    @pytest.mark.parametrize("terrain", TERRAINS)
    @given(grid=grids(), seed=seeds)
    def test_from_0_to_1(self, terrain: str, grid: Grid, seed: int) -> None:
        field = heights(grid, terrain, None, np.random.default_rng(seed))
        assert field.shape == (grid.num_states,)
        assert field.dtype == np.float64
        assert field.min() == 0.0
        assert field.max() == (1.0 if grid.num_states > 1 else 0.0)
        again = heights(grid, terrain, None, np.random.default_rng(seed))
        np.testing.assert_array_equal(field, again)

    @pytest.mark.parametrize("terrain", TERRAINS)
    def test_different_seeds_make_different_heights(self, terrain: str) -> None:
        fields = {
            heights(Grid((5, 6)), terrain, None, np.random.default_rng(seed)).tobytes()
            for seed in range(50)
        }
        assert len(fields) == 50

    @staticmethod
    def roughness(terrain: str, smoothness: float | None, shape: tuple[int, ...]) -> float:
        """Return the mean difference between neighbours along the first axis."""
        steps = []
        for seed in range(5):
            field = heights(Grid(shape), terrain, smoothness, np.random.default_rng(seed))
            steps.append(np.abs(np.diff(field.reshape(shape), axis=0)).mean())
        return float(np.mean(steps))

    def test_uniform_heights_are_rough_and_smooth_ones_are_not(self) -> None:
        shape = (40, 40)
        # Two independent uniform numbers differ by a third on average.
        assert self.roughness("uniform", None, shape) == pytest.approx(1 / 3, abs=0.02)
        assert self.roughness("smooth", None, shape) < 0.1

    def test_smoothness_is_a_length_in_positions(self) -> None:
        shape = (40, 40)
        rough = [self.roughness("smooth", sigma, shape) for sigma in (0.0, 1.0, 3.0, 9.0)]
        assert rough == sorted(rough, reverse=True)
        assert rough[0] > 10 * rough[-1]

    @pytest.mark.parametrize("shape", [(40,), (20, 20), (10, 20), (6, 7, 8)])
    def test_the_default_is_a_twentieth_of_the_shape(self, shape: tuple[int, ...]) -> None:
        default = heights(Grid(shape), "smooth", None, np.random.default_rng(4))
        if len(set(shape)) == 1:
            same = heights(Grid(shape), "smooth", shape[0] / 20, np.random.default_rng(4))
            np.testing.assert_array_equal(default, same)
        else:
            for n in shape:
                other = heights(Grid(shape), "smooth", n / 20, np.random.default_rng(4))
                assert not np.array_equal(default, other)

    def test_smoothness_is_the_same_at_the_borders(self) -> None:
        # Reflection keeps borders as varied as the inside: no wall of zeros around the terrain.
        grid = Grid((30, 30))
        field = np.array(
            [
                heights(grid, "smooth", 2.0, np.random.default_rng(seed)).reshape(grid.shape)
                for seed in range(60)
            ]
        )
        border = field[:, 0].std()
        assert border == pytest.approx(field[:, 15].std(), rel=0.5)

    @pytest.mark.parametrize("terrain", ["bumpy", "", "Smooth", None, 3])
    def test_other_terrains_are_refused(self, terrain: str) -> None:
        with pytest.raises(ValueError, match=rf"terrain must be one of .*smooth.*{terrain!r}"):
            heights(Grid((3, 3)), terrain, None, np.random.default_rng(0))

    @pytest.mark.parametrize("smoothness", [-1, -1e-9, math.nan, math.inf])
    def test_other_smoothness_is_refused(self, smoothness: float) -> None:
        with pytest.raises(ValueError, match=rf"smoothness must be .*{smoothness}"):
            heights(Grid((3, 3)), "smooth", smoothness, np.random.default_rng(0))

    @pytest.mark.parametrize("terrain", [name for name in TERRAINS if name != "smooth"])
    def test_smoothness_goes_with_smooth_terrain_only(self, terrain: str) -> None:
        with pytest.raises(ValueError, match=rf"smoothness goes with .*smooth.*{terrain!r}"):
            heights(Grid((3, 3)), terrain, 1.0, np.random.default_rng(0))
