"""Mazes and heights of which any block can be made alone, against their rules written again."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from aggmaze.grid import Grid, VastGrid
from aggmaze.layouts import height_rules
from aggmaze.layouts.block_trees import BlockTrees
from aggmaze.layouts.counter_kernels import choice_of, stream, uniform_of
from aggmaze.layouts.height_rules import HEIGHT_RULES, NoiseHeights
from aggmaze.layouts.heights import heights
from aggmaze.layouts.layout import Layout, open_passages
from aggmaze.layouts.passage_rules import PASSAGE_RULES, passage_rule, unpacked
from aggmaze.layouts.rule import drawn_key
from aggmaze.layouts.spanning_tree import kruskal
from tests.strategies import grids, seeds

rules = pytest.mark.parametrize("generator", PASSAGE_RULES)
terrains = pytest.mark.parametrize("terrain", HEIGHT_RULES)


def bits_at(key: int, index: int) -> int:
    """Return output number ``index`` of SplitMix64, in Python's integers."""
    bits = (key + (index + 1) * 0x9E3779B97F4A7C15) % 2**64
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
    return bits ^ bits >> 31


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def passages(generator: str, grid: Grid, seed: int, loops: float = 0.0) -> NDArray[np.bool_]:
    bits = passage_rule(grid, generator, loops, rng(seed)).passages(0, grid.num_states)
    return unpacked(bits, grid.num_dims)


def blocks_of(num_states: int) -> st.SearchStrategy[tuple[int, int]]:
    ends = st.integers(0, num_states)
    return st.tuples(ends, ends).filter(lambda ends: ends[0] < ends[1])


class TestCounter:
    def test_the_published_numbers(self) -> None:
        # Of Vigna's splitmix64.c with the seed 1234567, as Rosetta Code lists them.
        published = [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
            4593380528125082431,
            16408922859458223821,
        ]
        found = np.empty(5, dtype=np.uint64)
        stream(np.uint64(1234567), np.uint64(0), found)
        assert found.tolist() == published
        assert [bits_at(1234567, i) for i in range(5)] == published

    @given(key=st.integers(0, 2**64 - 1), first=st.integers(0, 2**64 - 3))
    def test_any_place_of_any_stream(self, key: int, first: int) -> None:
        found = np.empty(2, dtype=np.uint64)
        stream(np.uint64(key), np.uint64(first), found)
        assert found.tolist() == [bits_at(key, first), bits_at(key, first + 1)]

    def test_what_is_made_of_bits(self) -> None:
        most = np.uint64(2**64 - 1)
        assert uniform_of(np.uint64(0)) == 0.0
        assert uniform_of(most) == 1.0 - 2.0**-53
        found = np.empty(3000, dtype=np.uint64)
        stream(np.uint64(7), np.uint64(0), found)
        counts = np.bincount([int(choice_of(bits, np.uint64(3))) for bits in found])
        # A third each, give or take five deviations.
        np.testing.assert_allclose(counts, 1000, atol=5 * math.sqrt(3000 * 2 / 9))
        assert choice_of(most, np.uint64(3)) == 2


class TestPassages:
    @rules
    @given(grid=grids(), seed=seeds)
    def test_spanning_trees(self, generator: str, grid: Grid, seed: int) -> None:
        layout = Layout(grid, passages(generator, grid, seed))
        assert not (layout.passages & ~open_passages(grid)).any()
        assert layout.num_passages == grid.num_states - 1
        assert layout.reaches_goal().all()

    @pytest.mark.parametrize(
        "shape", [(200, 131), (64, 65), (1, 9000), (40, 17, 33), (9, 9, 9, 9), (6,) * 5]
    )
    def test_blocks_join_across_levels(self, shape: tuple[int, ...]) -> None:
        grid = Grid(shape)
        assert BlockTrees(grid, np.uint64(0)).num_levels > 1
        layout = Layout(grid, passages("blocks", grid, 3))
        assert layout.num_passages == grid.num_states - 1
        assert layout.reaches_goal().all()

    @rules
    @pytest.mark.parametrize("loops", [0.0, 0.3])
    @given(data=st.data())
    def test_a_block_is_a_slice_of_the_whole(
        self, generator: str, loops: float, data: st.DataObject
    ) -> None:
        grid = data.draw(st.one_of(grids(), st.sampled_from([Grid((70, 130)), Grid((20, 5, 18))])))
        rule = passage_rule(grid, generator, loops, rng(data.draw(seeds)))
        lo, hi = data.draw(blocks_of(grid.num_states))
        whole = rule.passages(0, grid.num_states)
        np.testing.assert_array_equal(rule.passages(lo, hi), whole[lo:hi])

    @given(grid=grids(), seed=seeds)
    def test_a_binary_tree_is_its_rule(self, grid: Grid, seed: int) -> None:
        key = bits_at(int(drawn_key(rng(seed))), 0)
        expected = np.zeros((grid.num_states, grid.num_dims), dtype=bool)
        for state, coords in enumerate(itertools.product(*map(range, grid.shape))):
            axes = [axis for axis, x in enumerate(coords) if x > 0]
            if axes:
                axis = axes[((bits_at(key, state) >> 32) * len(axes)) >> 32]
                before = [x - (axis == k) for k, x in enumerate(coords)]
                expected[np.ravel_multi_index(before, grid.shape), axis] = True
        np.testing.assert_array_equal(passages("binary_tree", grid, seed), expected)

    def test_every_way_through_a_binary_tree_is_shortest(self) -> None:
        grid = Grid((9, 7))
        available = Layout(grid, passages("binary_tree", grid, 1)).available()
        coords = grid.coords(np.arange(grid.num_states))
        # One move leads down from every cell but the origin, and so does the next.
        np.testing.assert_array_equal(available[:, ::2].sum(axis=1), coords.sum(axis=1) > 0)

    def test_blocks_are_kruskals_with_one_door(self) -> None:
        grid, side = Grid((150, 100)), 64
        key = int(drawn_key(rng(4)))
        tree = passages("blocks", grid, 4).reshape(150, 100, 2)
        doors = np.zeros((3, 2, 2), dtype=int)
        for x, y in itertools.product(range(3), range(2)):
            part = tree[side * x : side * (x + 1), side * y : side * (y + 1)]
            extent = part.shape[:2]
            alone = kruskal(Grid(extent), np.random.default_rng((key, 0, x, y)))
            inside = part.copy()
            doors[x, y] = inside[-1, :, 0].sum(), inside[:, -1, 1].sum()
            inside[-1, :, 0] = inside[:, -1, 1] = False
            np.testing.assert_array_equal(inside, alone.reshape(*extent, 2))
        joined = kruskal(Grid((3, 2)), np.random.default_rng((key, 1, 0, 0)))
        np.testing.assert_array_equal(doors, joined.reshape(3, 2, 2))

    def test_doors_are_anywhere_along_a_side(self) -> None:
        grid = Grid((128, 64))
        places = [
            int(np.flatnonzero(passages("blocks", grid, seed).reshape(128, 64, 2)[63, :, 0])[0])
            for seed in range(400)
        ]
        quarters = np.bincount(np.array(places) // 16, minlength=4)
        np.testing.assert_allclose(quarters, 100, atol=5 * math.sqrt(400 * 3 / 16))

    @rules
    def test_loops_open_each_wall_with_the_same_chance(self, generator: str) -> None:
        grid = Grid((60, 60))
        tree = passages(generator, grid, 2)
        walls = open_passages(grid) & ~tree
        opened = passages(generator, grid, 2, loops=0.25)
        assert (opened >= tree).all()
        assert not (opened & ~tree & ~walls).any()
        for axis in range(2):
            count = int(walls[:, axis].sum())
            found = int((opened & walls)[:, axis].sum())
            assert abs(found - count / 4) < 5 * math.sqrt(count * 3 / 16)
        np.testing.assert_array_equal(passages(generator, grid, 2, loops=1.0), open_passages(grid))

    @rules
    def test_different_seeds_make_different_mazes(self, generator: str) -> None:
        grid = Grid((6, 6))
        assert len({passages(generator, grid, seed).tobytes() for seed in range(50)}) == 50

    @rules
    def test_the_far_corner_of_a_vast_maze(self, generator: str) -> None:
        grid = VastGrid((2**31, 2**31))
        rule = passage_rule(grid, generator, 0.1, rng())
        for lo in (0, 2**61 + 12345, 2**62 - 3):
            both = rule.passages(lo, lo + 3)
            np.testing.assert_array_equal(both[1:], rule.passages(lo + 1, lo + 3))
        # Nothing leads on from the last cell.
        assert rule.passages(2**62 - 1, 2**62).tolist() == [0]

    def test_ways_down_a_vast_maze_of_blocks_meet(self) -> None:
        # Of a part of a vast maze that is a block of the second level, all cells are connected.
        grid = VastGrid((10**9, 64**2))
        side = 64**2
        lo = 5 * side * side
        bits = passage_rule(grid, "blocks", 0.0, rng()).passages(lo, lo + side * 2 * 64)
        tree = unpacked(bits, 2).reshape(128, side, 2)
        tree[-1, :, 0] = False
        layout = Layout(Grid((128, side)), tree.reshape(-1, 2))
        count, _ = connected_components(graph_of(layout), directed=False)
        # Two rows of 64 blocks: what joins them may pass through rows beyond.
        assert count <= 128
        assert layout.num_passages == 128 * side - count


def graph_of(layout: Layout) -> Any:
    from aggmaze.models.moves import MoveMDP

    successors, _ = layout.grid.neighbours()
    return MoveMDP(successors, np.where(layout.available(), 1.0, np.inf)).successor_graph()


class TestHeights:
    @terrains
    @given(data=st.data())
    def test_a_block_is_a_slice_of_the_whole(self, terrain: str, data: st.DataObject) -> None:
        grid, seed = data.draw(grids()), data.draw(seeds)
        smoothness = (
            data.draw(st.sampled_from([None, 0.0, 0.5, 3.0])) if terrain == "noise" else None
        )
        rule = HEIGHT_RULES[terrain](grid, smoothness, rng(seed))
        lo, hi = data.draw(blocks_of(grid.num_states))
        whole = heights(grid, terrain, smoothness, rng(seed))
        np.testing.assert_array_equal(rule.heights(lo, hi), whole[lo:hi])

    @given(grid=grids(), seed=seeds, smoothness=st.sampled_from([None, 0.0, 0.7, 2.0, 1e308]))
    def test_noise_is_its_rule(self, grid: Grid, seed: int, smoothness: float | None) -> None:
        """Compare with the same lattices interpolated corner by corner."""
        key = int(drawn_key(rng(seed)))
        sigmas = [n / 20 if smoothness is None else smoothness for n in grid.shape]
        coarsest = [max(1, round(min(2.0**62, 3.3 * sigma))) for sigma in sigmas]
        octaves = [o for o in range(4) if o == 0 or max(coarsest) >> o >= 2]
        expected = []
        for coords in itertools.product(*map(range, grid.shape)):
            height = 0.0
            for octave in octaves:
                places = [
                    divmod(x, max(1, n >> octave)) for x, n in zip(coords, coarsest, strict=True)
                ]
                for corner in itertools.product((0, 1), repeat=grid.num_dims):
                    weight, point = 1.0, bits_at(key, octave)
                    for axis, end in enumerate(corner):
                        low, rest = places[axis]
                        t = rest / max(1, coarsest[axis] >> octave)
                        fade = 6 * t**5 - 15 * t**4 + 10 * t**3
                        weight *= fade if end else 1.0 - fade
                        point = bits_at(point, low + end)
                    height += 0.5**octave * weight * (point >> 11) / 2**53
            expected.append(height / sum(0.5**octave for octave in octaves))
        found = NoiseHeights(grid, smoothness, np.uint64(key)).heights(0, grid.num_states)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)

    def test_noise_is_correlated_as_far_as_smooth_terrain(self) -> None:
        smoothness, distance = 6.0, round(6.0 * 2 * math.sqrt(math.log(2)))
        halves = {}
        for terrain in ("smooth", "noise"):
            found = []
            for seed in range(20):
                field = heights(Grid((240, 240)), terrain, smoothness, rng(seed))
                table = field.reshape(240, 240)
                for a, b in (
                    (table[:-distance], table[distance:]),
                    (table[:, :-distance], table[:, distance:]),
                ):
                    found.append(np.corrcoef(a.ravel(), b.ravel())[0, 1])
            halves[terrain] = np.mean(found)
        assert halves["noise"] == pytest.approx(0.5, abs=0.05)
        assert halves["smooth"] == pytest.approx(0.5, abs=0.05)

    def test_noise_of_a_vast_grid(self) -> None:
        grid = VastGrid((2**31, 2**31))
        rule = NoiseHeights(grid, None, np.uint64(5))
        found = rule.heights(2**62 - 4, 2**62)
        assert ((found >= 0) & (found <= 1)).all()
        assert np.abs(np.diff(found)).max() < 1e-6
        np.testing.assert_array_equal(found[2:], rule.heights(2**62 - 2, 2**62))

    def test_too_many_cells_to_stretch_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(height_rules, "_MOST_SCANNED", 99)
        with pytest.raises(ValueError, match="at most 99 by rows, got 100; terrain='noise'"):
            HEIGHT_RULES["uniform"](Grid((10, 10)), None, rng())
        HEIGHT_RULES["uniform"](Grid((9, 11)), None, rng())
