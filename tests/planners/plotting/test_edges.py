"""Walls and borders between cells of a picture."""

from __future__ import annotations

import numpy as np
import pytest

from planners.plotting import region_borders
from planners.plotting.edges import wall_mesh


def test_a_border_is_where_neighbours_differ_and_neither_is_masked() -> None:
    regions = np.ma.masked_array([[0, 0, 1], [2, 0, 1]], [[0, 0, 0], [0, 0, 1]])
    found = {tuple(map(tuple, line)) for line in region_borders(regions).tolist()}
    assert found == {
        ((1.5, -0.5), (1.5, 0.5)),  # 0 | 1 in the first row
        ((0.5, 0.5), (0.5, 1.5)),  # 2 | 0 in the second
        ((-0.5, 0.5), (0.5, 0.5)),  # 0 over 2
    }
    assert region_borders(np.zeros((2, 2))).shape == (0, 2, 2)
    with pytest.raises(ValueError, match=r"rows of cells, got shape \(3,\)"):
        region_borders([1, 2, 3])


def test_walls_of_one_pixel() -> None:
    colors = np.arange(4, dtype=np.uint8).repeat(4).reshape(2, 2, 4) + 1
    right = np.array([[True, False], [False, False]])
    wall = np.zeros(4, dtype=np.uint8)
    pixels, extent = wall_mesh(colors, right, np.zeros((2, 2), bool), 2, wall)
    assert pixels[..., 0].tolist() == [
        [0, 0, 0, 0, 0, 0, 0],
        [0, 1, 1, 0, 2, 2, 0],
        [0, 1, 1, 0, 2, 2, 0],
        [0, 1, 1, 0, 2, 2, 0],
        [0, 3, 3, 3, 4, 4, 0],
        [0, 3, 3, 3, 4, 4, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ]
    # The middle of a cell's own pixels and of what follows them is where imshow has the cell.
    assert extent == pytest.approx((-0.5 - 1 / 6, 1.5 + 1 / 6) * 2)
