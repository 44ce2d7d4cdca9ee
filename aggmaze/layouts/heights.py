"""Heights of a terrain, scaled to [0, 1]."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_choice, check_not_negative
from aggmaze.grid import Grid
from aggmaze.layouts.height_rules import HEIGHT_RULES, stretched
from aggmaze.progress import report

TERRAINS = ("smooth", "fractal", "uniform", "noise")
# Those that a smoothness goes with.
_SMOOTH = ("smooth", "noise")

#: Hurst exponent of fractal heights: differences grow as distance ** 0.8, so that slopes look like
#: those of mountains.  At 0.5 they would be as rough as a random walk, at 1 smooth.
HURST = 0.8

# Standard deviations at which the Gaussian of smooth heights is cut off; and products from which on
# kernels of its own, which give the same bits as SciPy in a fourth of the time, are worth loading.
_TRUNCATE, _LEAST_WORK = 4.0, 1 << 31
# Parts in which an axis is filtered, after each of which it is told how far that is.
_PARTS = 20


def heights(
    grid: Grid, terrain: str, smoothness: float | None, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw the heights of a terrain.

    Parameters
    ----------
    terrain : {"smooth", "fractal", "uniform", "noise"}
        "smooth" filters white noise with a Gaussian; "fractal" is fractional Brownian motion, with
        hills on hills of every size; "uniform" draws each height independently and uniformly;
        "noise" interpolates between heights drawn on lattices, so that any block can be made alone
        (`aggmaze.layouts.height_rules`).
    smoothness : float, optional
        Standard deviation of the Gaussian in positions, for "smooth", and what is as smooth, for
        "noise"; by default a twentieth of the size along each axis.

    Returns
    -------
    ndarray of float, shape (S,)
        The lowest position has height 0, the highest 1 (all are 0 where there is no difference);
        of "noise" they lie anywhere in between.
    """
    check_terrain(terrain, smoothness)
    if terrain == "noise":
        return HEIGHT_RULES[terrain](grid, smoothness, rng).heights(0, grid.num_states)
    if terrain == "uniform":
        field = rng.random(grid.shape)
    elif terrain == "fractal":
        field = _fractal(grid.shape, rng)
    else:
        sigma = [n / 20 if smoothness is None else float(smoothness) for n in grid.shape]
        field = _smoothed(rng.standard_normal(grid.shape), sigma)
    return scaled(field).reshape(-1)


def check_terrain(terrain: str, smoothness: float | None) -> None:
    """Refuse what `heights` does not take.

    Parameters
    ----------
    terrain : str
    smoothness : float, optional
    """
    check_choice("terrain", terrain, TERRAINS)
    if smoothness is None:
        return
    if terrain not in _SMOOTH:
        allowed = " and ".join(map(repr, _SMOOTH))
        raise ValueError(f"smoothness goes with terrain={allowed} only, not with {terrain!r}")
    check_not_negative("smoothness", smoothness)


def scaled(field: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a field shifted and stretched to [0, 1]; all 0 where there is no difference."""
    return stretched(field, float(field.min()), float(field.max()))


def _smoothed(field: NDArray[np.float64], sigma: list[float]) -> NDArray[np.float64]:
    """Return a field filtered with a Gaussian along each axis, reflected at the borders."""
    if field.size * sum(2 * _radius(deviation) + 1 for deviation in sigma) < _LEAST_WORK:
        from scipy.ndimage import gaussian_filter  # which takes long to import

        return np.asarray(gaussian_filter(field, sigma, mode="reflect", truncate=_TRUNCATE))
    from aggmaze.layouts.smoothing_kernels import correlate

    smoothed = np.empty_like(field)
    for axis, deviation in enumerate(sigma):
        if deviation <= 1e-15:  # which is nothing to SciPy
            continue
        radius = _radius(deviation)
        steps = np.arange(-radius, radius + 1)
        weights = np.exp(-0.5 / (deviation * deviation) * steps**2)
        weights /= weights.sum()
        size = field.shape[axis]
        slabs = math.prod(field.shape[:axis]), size, math.prod(field.shape[axis + 1 :])
        for part in range(_PARTS):
            report(axis * _PARTS + part, len(sigma) * _PARTS, "parts smoothed")
            correlate(field.reshape(slabs), weights, smoothed.reshape(slabs), part, _PARTS)
        field, smoothed = smoothed, field
    return field


def _radius(deviation: float) -> int:
    return int(_TRUNCATE * deviation + 0.5)


def _fractal(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return fractional Brownian motion by spectral synthesis, up to a factor.

    Its power falls with the frequency f as ``f ** -(2 H + D)``.  The waves are cosines rather than
    complex: they reflect at the borders, where periodic ones would join opposite corners.
    """
    from scipy.fft import idctn  # which takes long to import

    # Axis k has the waves of 0, 1/2, 1, ... cycles over its n positions.
    cycles = [np.arange(n) / (2 * n) for n in shape]
    squared = np.zeros(shape)
    for axis, frequencies in enumerate(cycles):
        squared += (frequencies**2).reshape(-1, *(1,) * (len(shape) - axis - 1))
    squared.flat[0] = 1.0  # the mean, of no consequence
    waves = rng.standard_normal(shape)
    waves *= squared ** (-(2 * HURST + len(shape)) / 4)
    return idctn(waves, norm="ortho", overwrite_x=True)
