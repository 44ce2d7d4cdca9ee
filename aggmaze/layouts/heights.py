"""Heights of a terrain, scaled to [0, 1]."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from aggmaze.checks import check_choice, is_real
from aggmaze.grid import Grid

TERRAINS = ("smooth", "uniform")


def heights(
    grid: Grid, terrain: str, smoothness: float | None, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw the heights of a terrain.

    Parameters
    ----------
    terrain : {"smooth", "uniform"}
        "smooth" filters white noise with a Gaussian; "uniform" draws each height independently
        and uniformly.
    smoothness : float, optional
        Standard deviation of the Gaussian in positions, for "smooth" only; by default a twentieth
        of the size along each axis.

    Returns
    -------
    ndarray of float, shape (S,)
        The lowest position has height 0, the highest 1 (all are 0 where there is no difference).
    """
    check_choice("terrain", terrain, TERRAINS)
    if smoothness is not None and terrain != "smooth":
        raise ValueError(f"smoothness goes with terrain='smooth' only, not with {terrain!r}")
    if smoothness is not None and not (is_real(smoothness) and 0 <= smoothness < math.inf):
        raise ValueError(f"smoothness must be finite and not negative, got {smoothness!r}")
    if terrain == "uniform":
        field = rng.random(grid.shape)
    else:
        sigma = [n / 20 if smoothness is None else smoothness for n in grid.shape]
        field = gaussian_filter(rng.standard_normal(grid.shape), sigma, mode="reflect")
    low, high = field.min(), field.max()
    # The range of equal heights is 0: keep them at 0.
    return ((field - low) / (high - low or 1.0)).reshape(-1)
