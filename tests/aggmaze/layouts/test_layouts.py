"""Layouts: spanning trees by property, opened loops, heights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter
from scipy.sparse.csgraph import connected_components, shortest_path

from aggmaze.grid import Grid
from aggmaze.layouts.given_heights import heights_from_image, layout_from_heights
from aggmaze.layouts.heights import HURST, TERRAINS, heights
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.layouts.spanning_tree import (
    GENERATORS,
    _draws_below,
    kruskal,
    open_loops,
    shuffled_places,
)
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


class TestBlocked:
    @given(grid=grids(), seed=seeds)
    def test_no_passage_leads_to_what_is_blocked(self, grid: Grid, seed: int) -> None:
        rng = np.random.default_rng(seed)
        blocked = rng.random(grid.num_states) < 0.3
        blocked[0] = False
        passages = open_passages(grid, blocked)
        free = {
            tuple(int(x) for x in np.unravel_index(state, grid.shape))
            for state in np.flatnonzero(~blocked)
        }
        everything = joined(grid, open_passages(grid))
        expected = {(here, there) for here, there in everything if {here, there} <= free}
        assert joined(grid, passages) == expected
        layout = Layout(grid, passages, blocked=blocked)
        assert layout.num_passages == len(expected)
        assert layout.num_walls == 0
        assert not layout.available()[blocked].any()
        np.testing.assert_array_equal(layout.free(), ~blocked)
        # Some passages closed again are walls between free positions.
        closed = passages & (rng.random(passages.shape) < 0.5)
        assert Layout(grid, passages & ~closed, blocked=blocked).num_walls == closed.sum()

    @given(grid=grids(), seed=seeds)
    def test_what_reaches_the_goal(self, grid: Grid, seed: int) -> None:
        rng = np.random.default_rng(seed)
        passages = open_passages(grid)
        passages &= rng.random(passages.shape) < 0.5
        goal = int(rng.integers(grid.num_states))
        _, component = connected_components(graph(grid, passages), directed=False)
        reaching = Layout(grid, passages, goal=goal).reaches_goal()
        np.testing.assert_array_equal(reaching, component == component[goal])

    def test_what_contradicts_itself_is_refused(self) -> None:
        grid = Grid((3, 2))
        blocked = np.arange(6) == 3
        passages = open_passages(grid, blocked)
        with pytest.raises(ValueError, match=r"goal at \(1, 1\) is blocked"):
            Layout(grid, passages, goal=3, blocked=blocked)
        with pytest.raises(ValueError, match=r"state 1 has a passage along axis 0 .* blocked"):
            Layout(grid, open_passages(grid), blocked=blocked)
        for wrong in (blocked[:5], blocked.astype(int)):
            with pytest.raises(ValueError, match=r"blocked must be booleans of shape \(6,\)"):
                Layout(grid, passages, blocked=wrong)
        for goal in (-1, 6):
            with pytest.raises(ValueError, match=rf"goal must be in \[0, 6\), got {goal}"):
                Layout(grid, passages, goal=goal)


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
        if terrain == "noise":  # which is not stretched
            assert 0.0 <= field.min() <= field.max() <= 1.0
        else:
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
        assert 0.02 < self.roughness("fractal", None, shape) < 0.1

    @pytest.mark.parametrize("shape", [(4001,), (256, 256), (307, 211), (41, 37, 43)])
    def test_fractal_differences_grow_as_a_power_of_distance(self, shape: tuple[int, ...]) -> None:
        distances = np.array([2, 3, 4, 6, 8])
        for axis in range(len(shape)):
            squares = []
            for seed in range(20):
                field = heights(Grid(shape), "fractal", None, np.random.default_rng(seed))
                lines = np.moveaxis(field.reshape(shape), axis, 0)
                squares.append([((lines[d:] - lines[:-d]) ** 2).mean() for d in distances])
            exponent = np.polyfit(np.log(distances), np.log(np.mean(squares, axis=0)), 1)[0] / 2
            assert exponent == pytest.approx(HURST, abs=0.07)

    def test_fractal_terrain_does_not_repeat_at_the_borders(self) -> None:
        # As a torus would: there, opposite borders lie next to each other.
        steps, gaps = [], []
        for seed in range(40):
            field = heights(Grid((64, 64)), "fractal", None, np.random.default_rng(seed))
            table = field.reshape(64, 64)
            steps.append(np.abs(np.diff(table, axis=0)).mean())
            gaps.append(np.abs(table[0] - table[-1]).mean())
        assert np.mean(gaps) > 5 * np.mean(steps)

    def test_every_dimension_has_fractal_heights(self) -> None:
        for num_dims in range(1, 9):
            field = heights(Grid((3,) * num_dims), "fractal", None, np.random.default_rng(0))
            assert len(np.unique(field)) == 3**num_dims

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

    @pytest.mark.parametrize("terrain", ["fractal", "uniform"])
    def test_smoothness_goes_with_smooth_terrain_only(self, terrain: str) -> None:
        with pytest.raises(ValueError, match=rf"smoothness goes with .*smooth.*noise.*{terrain!r}"):
            heights(Grid((3, 3)), terrain, 1.0, np.random.default_rng(0))


class TestGivenHeights:
    @given(
        table=hnp.arrays(
            np.float64,
            hnp.array_shapes(min_dims=2, max_dims=2, max_side=8),
            elements=st.floats(-1e6, 1e6),
        )
    )
    def test_are_scaled(self, table: NDArray[np.float64]) -> None:
        before = table.copy()
        layout = layout_from_heights(table)
        np.testing.assert_array_equal(table, before)
        assert layout.grid.shape == table.shape
        assert layout.blocked is None
        assert layout.goal == 0
        np.testing.assert_array_equal(layout.passages, open_passages(layout.grid))
        assert layout.heights is not None
        spread = np.ptp(table)
        expected = (table - table.min()) / spread if spread > 0 else np.zeros(table.shape)
        np.testing.assert_allclose(layout.heights, expected.reshape(-1), atol=1e-12)
        assert not np.shares_memory(layout.heights, table)

    def test_nan_is_blocked_and_does_not_count_for_the_scale(self) -> None:
        layout = layout_from_heights([[4.0, math.nan, 6.0], [4.0, 5.0, 8.0]])
        assert layout.blocked is not None
        assert np.flatnonzero(layout.blocked).tolist() == [1]
        assert layout.heights is not None
        assert layout.heights.tolist() == [0.0, 0.0, 0.5, 0.0, 0.25, 1.0]
        np.testing.assert_array_equal(layout.passages, open_passages(layout.grid, layout.blocked))

    @pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, int, np.float16, np.float32])
    def test_all_real_types_will_do(self, dtype: Any) -> None:
        layout = layout_from_heights(np.array([[0, 1], [1, 1]], dtype=dtype), goal=(1, 0))
        assert layout.heights is not None
        assert layout.heights.tolist() == [0.0, 1.0, 1.0, 1.0]
        assert layout.heights.dtype == np.float64
        assert layout.goal == 2

    def test_without_scale_they_are_kept(self) -> None:
        layout = layout_from_heights([[0.25, 0.5], [math.nan, 0.75]], scale=False)
        assert layout.heights is not None
        assert layout.heights.tolist() == [0.25, 0.5, 0.0, 0.75]
        for wrong in (-0.1, 1.5):
            with pytest.raises(
                ValueError, match=rf"heights\[1, 0\] = {wrong} must be in \[0, 1\] with scale=Fal"
            ):
                layout_from_heights([[0.25, math.nan], [wrong, 1.0]], scale=False)

    @pytest.mark.parametrize(
        ("table", "goal", "error", "message"),
        [
            ([1.0, 2.0], None, ValueError, r"shape \(nx, ny\).*got \(2,\)"),
            (np.zeros((2, 0)), None, ValueError, r"not empty, got \(2, 0\)"),
            (np.zeros((2, 2, 3)), None, ValueError, r"got \(2, 2, 3\)"),
            ([[1j, 2]], None, TypeError, "real numbers, got dtype complex128"),
            ([["1", "2"]], None, TypeError, "real numbers, got dtype <U1"),
            ([[None, 2]], None, TypeError, "real numbers, got dtype object"),
            ([[1, math.inf]], None, ValueError, r"heights\[0, 1\] = inf must be finite, or NaN"),
            ([[math.nan] * 2], None, ValueError, "every height is NaN"),
            ([[math.nan, 1, 2]], None, ValueError, r"goal at \(0, 0\) is blocked; give another"),
            ([[1, 2, 3]], (0, 3), ValueError, r"goal=\(0, 3\): .*3 on axis 1 is not in \[0, 3\)"),
            (
                [[1, math.nan, 2, 3]],
                None,
                ValueError,
                r"goal at \(0, 0\) cannot be reached from the free position \(0, 2\), nor from 1 "
                "more; block",
            ),
        ],
    )
    def test_others_are_refused(
        self, table: Any, goal: Any, error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            layout_from_heights(table, goal=goal)


class TestImages:
    PIXELS = np.array([[0, 51, 102], [153, 204, 255]], dtype=np.uint8)

    def test_the_lower_left_pixel_is_the_origin(self) -> None:
        table = heights_from_image(self.PIXELS)
        assert table.shape == (3, 2)
        np.testing.assert_allclose(table, [[0.6, 0.0], [0.8, 0.2], [1.0, 0.4]])

    @pytest.mark.parametrize("kind", ["L", "LA", "RGB", "RGBA", "P", "CMYK", "F", "I;16"])
    def test_files(self, kind: str, tmp_path: Path) -> None:
        expected = heights_from_image(self.PIXELS)
        grey = Image.fromarray(self.PIXELS)
        if kind == "I;16":
            picture = Image.fromarray(self.PIXELS.astype(np.uint16) * 257)
        elif kind == "F":
            picture = Image.fromarray(self.PIXELS.astype(np.float32) / 255)
        else:
            picture = grey.convert("RGB").convert(kind) if kind != "LA" else grey.convert("LA")
        path = tmp_path / ("picture.tif" if kind in ("F", "CMYK") else "picture.png")
        picture.save(path)
        for source in (path, str(path)):
            np.testing.assert_allclose(heights_from_image(source), expected, atol=2 / 255)

    def test_black_and_white(self, tmp_path: Path) -> None:
        Image.fromarray(self.PIXELS > 100).save(tmp_path / "picture.png")
        for source in (tmp_path / "picture.png", self.PIXELS > 100):
            assert heights_from_image(source).tolist() == [[1, 0], [1, 0], [1, 1]]

    def test_colours_are_as_bright_as_they_look(self) -> None:
        pixels = np.eye(3)[np.newaxis]
        np.testing.assert_allclose(heights_from_image(pixels)[:, 0], [0.299, 0.587, 0.114])
        opaque = np.concatenate([pixels, np.ones((1, 3, 1))], axis=2)
        np.testing.assert_allclose(heights_from_image(opaque)[:, 0], [0.299, 0.587, 0.114])

    def test_channels_of_grey(self) -> None:
        expected = heights_from_image(self.PIXELS)
        np.testing.assert_array_equal(heights_from_image(self.PIXELS[..., np.newaxis]), expected)
        with_opacity = np.stack([self.PIXELS, 0 * self.PIXELS], axis=2)
        np.testing.assert_array_equal(heights_from_image(with_opacity), expected)

    def test_resampled(self) -> None:
        rows, columns = np.mgrid[0:40, 0:60]
        ramp = (columns / 59).astype(np.float64)
        table = heights_from_image(ramp, shape=(12, 5))
        assert table.shape == (12, 5)
        np.testing.assert_allclose(table, np.repeat(table[:, :1], 5, axis=1), atol=1e-6)
        np.testing.assert_allclose(table[:, 0], (np.arange(12) + 0.5) / 12, atol=0.02)
        table = heights_from_image((rows / 39).astype(np.float64), shape=(100, 90))
        assert (np.diff(table[50]) <= 1e-6).all()  # dark above, so that height falls with y

    @pytest.mark.parametrize(
        ("image", "shape", "error", "message"),
        [
            (np.zeros((2, 2), dtype=int), None, TypeError, "unsigned integers.*got dtype int64"),
            (np.zeros((2, 2), dtype=complex), None, TypeError, "got dtype complex128"),
            (np.zeros(4), None, ValueError, r"\(rows, columns\).*got \(4,\)"),
            (np.zeros((2, 2, 5)), None, ValueError, r"got \(2, 2, 5\)"),
            (np.zeros((0, 2)), None, ValueError, r"not empty, got \(0, 2\)"),
            (np.zeros((2, 2)), (3,), ValueError, "shape must have 2 axes, got 1"),
            (np.zeros((2, 2)), (3, 0), ValueError, "at least 1 .* got 0 on axis 1"),
            (np.zeros((2, 2)), 3, TypeError, "shape must be a sequence"),
            ("no/such/picture.png", None, FileNotFoundError, "picture.png"),
        ],
    )
    def test_others_are_refused(
        self, image: Any, shape: Any, error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            heights_from_image(image, shape)

    def test_a_file_that_is_no_picture_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "picture.png").write_text("nothing to see")
        with pytest.raises(OSError, match="cannot identify image file"):
            heights_from_image(tmp_path / "picture.png")


def test_what_the_caller_does_to_its_arrays_changes_no_layout() -> None:
    grid, blocked = Grid((3, 3)), np.arange(9) == 4
    passages, heights = open_passages(grid, blocked).copy(), np.linspace(0.0, 1.0, 9)
    layout = Layout(grid, passages, heights, blocked=blocked)
    before = passages.copy()
    passages[...], heights[...], blocked[...] = True, np.nan, False
    np.testing.assert_array_equal(layout.passages, before)
    np.testing.assert_array_equal(layout.heights, np.linspace(0.0, 1.0, 9))
    assert layout.free().sum() == 8
    for array in (layout.passages, layout.heights, layout.blocked):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# ---------------------------------------------------------------------------------------------
# Kernels of large mazes.


@pytest.mark.parametrize(
    "shape", [(1,), (7,), (300,), (9000,), (5, 9), (131, 260), (3, 4, 5), (140, 2, 3)]
)
@pytest.mark.parametrize("smoothness", [None, 0.0, 0.1, 0.4, 3.3, 21.0])
def test_smoothing_kernels_give_the_bits_of_scipy(
    shape: tuple[int, ...], smoothness: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    sigma = [n / 20 if smoothness is None else smoothness for n in shape]
    expected = gaussian_filter(rng.standard_normal(shape), sigma, mode="reflect")
    low, high = expected.min(), expected.max()
    expected = (expected - low) / ((high - low) or 1.0)
    for least_work in (0, math.inf):
        monkeypatch.setattr("aggmaze.layouts.heights._LEAST_WORK", least_work)
        found = heights(Grid(shape), "smooth", smoothness, np.random.default_rng(0))
        np.testing.assert_array_equal(found, expected.reshape(-1))


@pytest.mark.parametrize("shape", [(1,), (2, 2), (1, 7), (40, 31), (9, 8, 7), (500,), (2,) * 6])
def test_edges_are_joined_in_the_order_of_a_shuffle_as_by_plain_python(
    shape: tuple[int, ...],
) -> None:
    grid, rng = Grid(shape), np.random.default_rng(3)
    found = kruskal(grid, rng)
    plain = np.random.default_rng(3)
    edges = np.flatnonzero(open_passages(grid))
    plain.shuffle(edges)
    label = list(range(grid.num_states))
    expected = np.zeros((grid.num_states, grid.num_dims), dtype=bool)
    for edge in edges.tolist():
        state, axis = divmod(edge, grid.num_dims)
        one, other = label[state], label[state + grid.strides[axis]]
        if one != other:
            expected[state, axis] = True
            label = [one if place == other else place for place in label]
    np.testing.assert_array_equal(found, expected)
    assert rng.bit_generator.state == plain.bit_generator.state


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.SFC64])
@given(count=st.integers(0, 300) | st.sampled_from([4095, 4096, 4097, 65536, 300_000]), seed=seeds)
def test_things_end_up_where_a_shuffle_puts_them(
    bits: type[np.random.BitGenerator], count: int, seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for least in (1, 1 << 12):
            patch.setattr("aggmaze.layouts.spanning_tree._LEAST_COUNT", least)
            rng, plain = (np.random.Generator(bits(seed)) for _ in range(2))
            # Half a draw may be left over from before.
            for each in (rng, plain):
                each.integers(0, 9, size=seed % 2, dtype=np.uint32)
            things = np.arange(count)
            plain.shuffle(things)
            places = shuffled_places(count, rng)
            np.testing.assert_array_equal(things[places], np.arange(count))
            assert rng.random() == plain.random()
            assert rng.integers(2**32, dtype=np.uint32) == plain.integers(2**32, dtype=np.uint32)


@pytest.mark.parametrize(
    ("top", "dtype", "size"),
    [(1, np.uint32, 1), (2**32 - 1, np.uint32, 1 << 18), (2**32 + 6, np.uint64, 7)],
)
def test_wide_places_take_wide_draws(top: int, dtype: type[np.generic], size: int) -> None:
    draws = _draws_below(top, np.random.default_rng(0))
    assert draws.dtype == dtype
    raw = np.random.PCG64(0).random_raw(len(draws) if dtype is np.uint64 else -(-size // 2))
    np.testing.assert_array_equal(draws, np.asarray(raw).view(dtype)[:size])
    assert len(draws) == size


class TestEnds:
    GRID = Grid((3, 1))

    def layout(self, **arguments: Any) -> Layout:
        return Layout(self.GRID, open_passages(self.GRID), **arguments)

    def test_the_goal_alone_by_default(self) -> None:
        layout = self.layout(goal=2)
        assert layout.is_end().tolist() == [False, False, True]
        assert layout.acting().tolist() == [True, True, False]
        assert layout.reaches_end().tolist() == layout.reaches_goal().tolist() == [True] * 3

    def test_several(self) -> None:
        ends = np.array([True, False, False])
        untrod = np.array([False, True, False])
        layout = self.layout(ends=ends, untrod=untrod)
        assert layout.acting().tolist() == [False, False, True]
        assert not layout.is_end().flags.writeable
        assert ", 1 end)" in repr(layout)
        passages = np.array([[False, False], [True, False], [False, False]])
        apart = Layout(self.GRID, passages, ends=ends)
        assert apart.reaches_end().tolist() == [True, False, False]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"ends": np.array([False, True, True])}, "the goal, state 0, must be among the ends"),
            ({"ends": np.array([True])}, r"ends must be booleans of shape \(3,\)"),
            ({"ends": np.array([1, 0, 0])}, "ends must be booleans"),
            ({"signs": np.zeros(2, np.uint32)}, r"signs must have shape \(3,\), got \(2,\)"),
            ({"untrod": np.zeros(2, bool)}, r"untrod must have shape \(3,\), got \(2,\)"),
        ],
    )
    def test_refused(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            self.layout(**arguments)

    def test_blocked(self) -> None:
        blocked = np.array([False, True, False])
        with pytest.raises(ValueError, match="state 1 is an end and blocked"):
            Layout(
                self.GRID,
                open_passages(self.GRID, blocked),
                blocked=blocked,
                ends=np.array([True, True, False]),
            )
