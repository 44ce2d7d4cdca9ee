"""Corners: weights that give back what is linear, edges, angles, single bins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator

from aggmaze.cells import Corners

BOX = Corners((3, 5, 2), (-1.0, 0.0, 10.0), (1.0, 8.0, 11.0))
numbers = st.floats(-50, 50)


def test_corners_reach_from_end_to_end() -> None:
    assert BOX.widths.tolist() == [1.0, 2.0, 1.0]
    assert BOX.points([0, 29])[:, 0].tolist() == [[-1.0, 0.0, 10.0], [1.0, 8.0, 11.0]]
    angle = Corners((4,), (-math.pi,), (math.pi,), wrap=(0,))
    np.testing.assert_allclose(
        angle.points(np.arange(4))[:, 0, 0], [-math.pi, -math.pi / 2, 0.0, math.pi / 2]
    )
    single = Corners((1, 2), (0.0, 0.0), (1.0, 1.0))
    assert single.points([0, 1])[:, 0].tolist() == [[0.5, 0.0], [0.5, 1.0]]


@given(st.integers(0, 2**32 - 1))
def test_the_mean_of_the_corners_is_the_point(seed: int) -> None:
    """So that whatever is linear, and every product of one number of each axis, comes out."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(BOX.low, BOX.high, (50, 3))
    states, weights = BOX.spread(points)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-14)
    corners = BOX.points(np.arange(30))[:, 0]
    np.testing.assert_allclose(
        (weights[:, :, np.newaxis] * corners[states]).sum(axis=1), points, atol=1e-9
    )
    slopes = rng.normal(size=3)
    for values, expected in (
        (corners @ slopes + 7, points @ slopes + 7),
        (corners.prod(axis=1), points.prod(axis=1)),
    ):
        np.testing.assert_allclose(BOX.interpolate(values, points), expected, atol=1e-8)


def test_agrees_with_scipy() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=30)
    axes = [np.linspace(*ends) for ends in zip(BOX.low, BOX.high, BOX.bins, strict=True)]
    scipys = RegularGridInterpolator(axes, values.reshape(BOX.bins))
    points = rng.uniform(BOX.low, BOX.high, (500, 3))
    np.testing.assert_allclose(BOX.interpolate(values, points), scipys(points), atol=1e-10)


@given(st.tuples(numbers, numbers, numbers))
def test_beyond_the_box_is_its_surface(point: tuple[float, ...]) -> None:
    values = np.arange(30.0) ** 2
    inside = np.clip(point, BOX.low, BOX.high)
    assert BOX.interpolate(values, [point]) == BOX.interpolate(values, [inside])


def test_corners_are_their_own_and_no_other_is_named() -> None:
    everywhere = np.arange(30)
    states, weights = BOX.spread(BOX.points(everywhere)[:, 0])
    assert (states == everywhere[:, np.newaxis]).all()
    assert (weights.sum(axis=1) == 1.0).all()
    assert (BOX.states(BOX.points(everywhere)[:, 0]) == everywhere).all()


@given(st.floats(-20, 20), st.integers(1, 7))
def test_angles_come_around(angle: float, n: int) -> None:
    circle = Corners((n,), (-math.pi,), (math.pi,), wrap=(0,), ends=False)
    values = np.arange(n) ** 2.0
    states, weights = circle.spread(np.array([[angle]]))
    assert weights.sum() == pytest.approx(1.0)
    # A straight line from corner to corner, over a table that goes on after the last one.
    place = (angle + math.pi) / (2 * math.pi) * n % n
    extended = np.append(values, values[0])
    expected = np.interp(place, np.arange(n + 1), extended)
    assert circle.interpolate(values, [[angle]])[0] == pytest.approx(expected, abs=1e-6)
    assert set(states.ravel()) <= set(range(n))


def test_the_nearest_corner() -> None:
    rng = np.random.default_rng(2)
    for corners in (BOX, Corners((5, 4), (-math.pi, 0.0), (math.pi, 1.0), wrap=(0,))):
        low, high = np.array(corners.low), np.array(corners.high)
        points = rng.uniform(low - 0.4 * (high - low), high + 0.4 * (high - low), (300, len(low)))
        all_corners = corners.points(np.arange(corners.num_cells))[:, 0]
        for point in points:
            distances = corners.differences(np.broadcast_to(point, all_corners.shape), all_corners)
            scaled = (distances / corners.widths) ** 2
            nearest = scaled.sum(axis=1).min()
            assert scaled[corners.states(point)].sum() == pytest.approx(nearest, abs=1e-9)


def test_a_corner_is_one_point() -> None:
    assert BOX.points([3], (1, 1, 1)).shape == (1, 1, 3)
    with pytest.raises(ValueError, match=r"a corner is one point.*got \(2, 1, 1\)"):
        BOX.points([3], (2, 1, 1))


def test_every_corner_of_a_cube_has_its_weight() -> None:
    cube = Corners((2, 2, 2), (0.0,) * 3, (1.0,) * 3)
    point = np.array([0.2, 0.5, 0.9])
    states, weights = cube.spread(point[np.newaxis])
    for corner in itertools.product((0, 1), repeat=3):
        expected = math.prod(x if c else 1 - x for x, c in zip(point, corner, strict=True))
        state = int(np.ravel_multi_index(corner, (2, 2, 2)))
        assert weights[states == state].sum() == pytest.approx(expected, abs=1e-15)
