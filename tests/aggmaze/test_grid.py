"""Positions of a grid, their numbers, neighbours and pictures."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from aggmaze import Grid, KingGrid
from tests.strategies import grids


class TestGrid:
    @given(grid=grids())
    def test_states_and_coordinates(self, grid: Grid) -> None:
        states = np.arange(grid.num_states)
        coords = grid.coords(states)
        assert coords.shape == (grid.num_states, grid.num_dims)
        np.testing.assert_array_equal(np.ravel_multi_index(tuple(coords.T), grid.shape), states)
        for state, point in enumerate(itertools.product(*map(range, grid.shape))):
            assert grid.state(point) == state
            assert type(grid.state(np.array(point))) is int
            assert tuple(coords[state]) == point
            assert tuple(grid.coords(state)) == point

    @given(grid=grids())
    def test_neighbours(self, grid: Grid) -> None:
        successors, on_grid = grid.neighbours()
        assert successors.dtype == np.int32
        assert grid.num_actions == 2 * grid.num_dims == successors.shape[1]
        assert len(grid.action_names) == len(set(grid.action_names)) == grid.num_actions
        for state, point in enumerate(itertools.product(*map(range, grid.shape))):
            for action in range(grid.num_actions):
                there = list(point)
                there[action // 2] += 1 if action % 2 else -1
                inside = 0 <= there[action // 2] < grid.shape[action // 2]
                assert on_grid[state, action] == inside
                target = np.ravel_multi_index(there, grid.shape) if inside else state
                assert successors[state, action] == target

    def test_image_of_a_plane(self) -> None:
        # State x * 2 + y, y upwards: the first state is at the bottom left.
        image = Grid((3, 2)).to_image(np.arange(6))
        assert image.tolist() == [[1, 3, 5], [0, 2, 4]]
        assert Grid((3, 2)).to_image(np.arange(6), axes=(1, 0)).tolist() == [[4, 5], [2, 3], [0, 1]]

    def test_image_of_a_row(self) -> None:
        assert Grid((4,)).to_image(np.arange(4)).tolist() == [[0, 1, 2, 3]]

    @given(grid=grids(min_dims=2), data=st.data())
    def test_image_of_a_slice(self, grid: Grid, data: st.DataObject) -> None:
        right, up = data.draw(st.permutations(range(grid.num_dims)))[:2]
        through = [data.draw(st.integers(0, n - 1)) for n in grid.shape]
        states = np.arange(grid.num_states)
        image = grid.to_image(states, axes=(right, up), through=through)
        assert image.shape == (grid.shape[up], grid.shape[right])
        colors = grid.to_image(
            np.stack([states, -states, states], axis=1), axes=(right, up), through=through
        )
        for x, y in itertools.product(range(grid.shape[right]), range(grid.shape[up])):
            point = list(through)
            point[right], point[up] = x, y
            state = np.ravel_multi_index(point, grid.shape)
            assert image[-1 - y, x] == state
            assert colors[-1 - y, x].tolist() == [state, -state, state]

    def test_a_slice_goes_through_the_origin_by_default(self) -> None:
        grid = Grid((2, 2, 2))
        states = np.arange(8)
        np.testing.assert_array_equal(
            grid.to_image(states), grid.to_image(states, through=(0, 0, 0))
        )
        assert grid.to_image(states, axes=(1, 2), through=(1, 0, 0)).tolist() == [[5, 7], [4, 6]]

    @pytest.mark.parametrize(
        ("shape", "error", "message"),
        [
            ((), ValueError, "1 to 8 axes, got 0"),
            ((2,) * 9, ValueError, "1 to 8 axes, got 9"),
            ((0, 5), ValueError, r"at least 1 .*got 0 on axis 0 of \(0, 5\)"),
            ((5, -2), ValueError, r"at least 1 .*got -2 on axis 1 of \(5, -2\)"),
            ((2**16, 2**16), ValueError, "4294967296 positions, at most 2147483647"),
            ((2.0, 3), TypeError, r"integers only, got \(2\.0, 3\)"),
            ("33", TypeError, "integers only"),
            (5, TypeError, "sequence of integers .*got 5"),
            (None, TypeError, "sequence of integers .*got None"),
        ],
    )
    def test_shapes_that_are_refused(
        self, shape: Any, error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            Grid(shape)

    @pytest.mark.parametrize("state", [-1, 6, [0, 6], [[-1]]])
    def test_states_outside(self, state: Any) -> None:
        with pytest.raises(ValueError, match=r"state (-1|6) is not in \[0, 6\).*\(3, 2\)"):
            Grid((3, 2)).coords(state)

    @pytest.mark.parametrize("state", [1.0, "1", None])
    def test_what_is_no_state(self, state: Any) -> None:
        with pytest.raises(TypeError, match="states must be integers"):
            Grid((3, 2)).coords(state)

    @pytest.mark.parametrize(
        ("coords", "message"),
        [
            ((3, 0), r"\(3, 0\) leave the grid \(3, 2\): 3 on axis 0 is not in \[0, 3\)"),
            ((0, -1), r"\(0, -1\) leave the grid \(3, 2\): -1 on axis 1 is not in \[0, 2\)"),
            ((1,), r"2 integers .*\(3, 2\), got \(1,\)"),
            ((1, 1, 1), "2 integers .*got"),
            ((1.0, 1.0), "2 integers .*got"),
            (1, "2 integers .*got 1"),
            ("ab", "2 integers .*got 'ab'"),
            (None, "2 integers .*got None"),
        ],
    )
    def test_coordinates_that_are_refused(self, coords: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Grid((3, 2)).state(coords)

    @pytest.mark.parametrize(
        ("values", "options", "message"),
        [
            (np.zeros(5), {}, r"values must have shape \(8,\).*got \(5,\)"),
            (np.zeros((2, 2, 2)), {}, r"values must have shape .*got \(2, 2, 2\)"),
            (np.zeros(8), {"axes": (0, 0)}, r"two different axes of 3, got \(0, 0\)"),
            (np.zeros(8), {"axes": (0, 3)}, r"two different axes of 3, got \(0, 3\)"),
            (np.zeros(8), {"axes": (-1, 0)}, r"two different axes of 3, got \(-1, 0\)"),
            (np.zeros(8), {"through": (0, 0, 2)}, "2 on axis 2"),
            (np.zeros(8), {"through": (0, 0)}, "3 integers"),
        ],
    )
    def test_images_that_are_refused(
        self, values: NDArray[np.float64], options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            Grid((2, 2, 2)).to_image(values, **options)


class TestDirections:
    @pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
    def test_lead_to_the_neighbours(self, shape: tuple[int, ...]) -> None:
        grid = Grid(shape)
        successors, on_grid = grid.neighbours()
        assert len(grid.directions) == grid.num_actions
        for state, action in np.argwhere(on_grid):
            there = grid.coords(state) + np.array(grid.directions[action])
            assert grid.state(there) == successors[state, action]

    def test_of_a_king(self) -> None:
        for stays in (False, True):
            grid = KingGrid((3, 4), stays=stays)
            assert grid.directions[:4] == Grid((3, 4)).directions
            assert len(set(grid.directions)) == grid.num_actions == 8 + stays
            assert ((0, 0) in grid.directions) == stays
            assert len(grid.action_names) == grid.num_actions
            # Its neighbours are those of any grid.
            assert grid.neighbours()[0].shape == (12, 4)
        assert KingGrid((3, 4)) != Grid((3, 4))
        with pytest.raises(ValueError, match=r"a king moves in 2 dimensions, got shape \(3,\)"):
            KingGrid((3,))
