"""Cells of a box: numbering, edges, angles that come around, shares of what is uniform."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggmaze.cells import Cells, Corners
from aggmaze.cells.cells import check_box, check_counts, one_each

BOX = Cells((3, 4), (-1.0, 0.0), (2.0, 8.0))
ANGLE = Cells((4, 2), (-math.pi, -1.0), (math.pi, 1.0), wrap=(0,), ends=False)
axes = ("x", "y")


class TestNumbering:
    def test_counts_from_the_lowest_along_the_last_axis_first(self) -> None:
        assert (BOX.num_cells, BOX.num_states, BOX.end) == (12, 13, 12)
        assert (ANGLE.num_cells, ANGLE.num_states, ANGLE.end) == (8, 8, -1)
        assert BOX.widths.tolist() == [1.0, 2.0]
        for (i, x), (j, y) in itertools.product(
            enumerate([-0.5, 0.5, 1.5]), enumerate([1.0, 3.0, 5.0, 7.0])
        ):
            assert BOX.states([x, y]) == 4 * i + j
            assert BOX.points([4 * i + j]).tolist() == [[[x, y]]]

    def test_an_edge_is_of_the_cell_above(self) -> None:
        assert BOX.states([[-1.0, 0.0], [0.0, 2.0], [1.0, 6.0]]).tolist() == [0, 5, 11]

    def test_beyond_a_box_are_its_outermost_cells(self) -> None:
        beyond = [[-9.0, -9.0], [2.0, 8.0], [math.inf, 9.0], [-math.inf, 1e300]]
        assert BOX.states(beyond).tolist() == [0, 11, 11, 3]

    def test_angles_come_around(self) -> None:
        quarter = math.pi / 2
        angles = np.array([-math.pi, -quarter, 0.0, quarter]) + 0.1
        for turn in (-3, -1, 0, 1, 7):
            points = np.stack([angles + 2 * math.pi * turn, np.full(4, 0.5)], axis=1)
            assert ANGLE.states(points).tolist() == [1, 3, 5, 7]
        # What is pi is -pi, and along the other axis nothing comes around.
        assert ANGLE.states([math.pi, -5.0]) == ANGLE.states([-math.pi, -1.0]) == 0

    @given(st.tuples(*[st.integers(1, 6)] * 2), st.tuples(*[st.integers(1, 4)] * 2), st.booleans())
    def test_points_of_a_cell_lie_in_it_evenly(
        self, bins: tuple[int, int], sub_points: tuple[int, int], around: bool
    ) -> None:
        cells = Cells(bins, (-3.0, 1.0), (1.0, 2.0), wrap=(0,) if around else ())
        states = np.arange(cells.num_cells)
        points = cells.points(states, sub_points)
        assert points.shape == (len(states), math.prod(sub_points), 2)
        assert (cells.states(points) == states[:, np.newaxis]).all()
        np.testing.assert_allclose(points.mean(axis=1), cells.points(states)[:, 0], atol=1e-12)
        for axis, n in enumerate(sub_points):
            places = np.unique(points[0, :, axis].round(12))
            assert len(places) == n
            np.testing.assert_allclose(np.diff(places), cells.widths[axis] / n, atol=1e-9)


class TestShares:
    @pytest.mark.parametrize("kind", [Cells, Corners])
    @pytest.mark.parametrize(
        ("low", "high"),
        [
            ((-0.5, 1.0), (1.7, 5.0)),
            ((-1.0, 0.0), (2.0, 8.0)),
            ((-4.0, 3.0), (9.0, 3.5)),
            ((0.25, -3.0), (0.25, 4.0)),
            ((3.0, 2.0), (7.0, 2.0)),
        ],
    )
    @pytest.mark.parametrize("wrap", [(), (0,), (0, 1)])
    def test_are_means_over_what_is_uniform(
        self, kind: Any, low: Any, high: Any, wrap: tuple[int, ...]
    ) -> None:
        cells = kind((3, 4), (-1.0, 0.0), (2.0, 8.0), wrap=wrap)
        shares = cells.shares(low, high)
        assert shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert shares[cells.end] == 0.0
        places = (np.arange(400) + 0.5) / 400
        lines = [a + (b - a) * places for a, b in zip(low, high, strict=True)]
        points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
        counted = np.zeros(cells.num_states)
        if kind is Corners:
            states, weights = cells.spread(points)
            np.add.at(counted, states, weights)
        else:
            np.add.at(counted, cells.states(points), 1.0)
        np.testing.assert_allclose(shares, counted / len(points), atol=0.004)

    def test_one_number_stands_for_all_axes(self) -> None:
        assert np.array_equal(ANGLE.shares(-0.5, 0.5), ANGLE.shares((-0.5, -0.5), (0.5, 0.5)))
        assert np.array_equal(ANGLE.shares(-0.5, 0.5), [0, 0, 0.25, 0.25, 0.25, 0.25, 0, 0])

    def test_a_start_across_the_seam_of_an_angle(self) -> None:
        shares = ANGLE.shares((math.pi - 0.1, 0.5), (math.pi + 0.3, 0.5))
        np.testing.assert_allclose(shares, [0, 0.75, 0, 0, 0, 0, 0, 0.25], atol=1e-12)


def test_differences_go_the_shorter_way_around() -> None:
    before = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 0.0]])
    after = np.array([[-3.0, 0.5], [3.0, 7.0], [0.25 + 6 * math.pi, -7.0]])
    gone = ANGLE.differences(before, after)
    short = 2 * math.pi - 6
    np.testing.assert_allclose(gone, [[short, 0.5], [-short, 7.0], [0.25, -7.0]], atol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: one_each("bins", (1,), axes), ValueError, r"bins must be 2 numbers, of x, y"),
        (lambda: one_each("bins", 3, axes), ValueError, r"bins must be 2 numbers.*got 3"),
        (lambda: check_counts("bins", 0, axes), ValueError, "bins must be at least 1, got 0"),
        (lambda: check_counts("bins", (2, 0), axes), ValueError, r"bins\[1\] must be at least 1"),
        (lambda: check_counts("bins", (2, 1.5), axes), TypeError, r"bins\[1\] must be an integer"),
        (
            lambda: check_box((0, math.nan), (1, 1), axes, ("low", "high")),
            ValueError,
            r"low\[1\] must be a finite number, got nan",
        ),
        (
            lambda: check_box((0, 2), (1, 1), axes, ("low", "high")),
            ValueError,
            r"low\[1\] must be at most high\[1\] = 1\.0, got 2\.0",
        ),
    ],
)
def test_bad_arguments_are_named(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
