"""Layouts of heights that are given: tables, and pictures whose brightness is the height."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from aggmaze.grid import Grid
from aggmaze.layouts.heights import scaled
from aggmaze.layouts.layout import Layout, open_passages, position

# ITU-R BT.601, as Pillow turns colours into grey.
_LUMINANCE = np.array([0.299, 0.587, 0.114])


def layout_from_heights(
    heights: ArrayLike, *, goal: Sequence[int] | None = None, scale: bool = True
) -> Layout:
    """Return an open grid with given heights.

    Parameters
    ----------
    heights : array_like of bool, int or float, shape (nx, ny)
        Indexed ``[x, y]``; NaN is blocked.
    goal : sequence of int, optional
        Coordinates, the origin by default.
    scale : bool
        Whether to shift and stretch the heights of free positions to [0, 1]; they must lie in it
        otherwise.

    Raises
    ------
    TypeError
        If the heights are not real numbers.
    ValueError
        If they are not a table of finite numbers and NaN, leave [0, 1] with ``scale=False``, or if
        a free position does not reach the goal.
    """
    table = np.asarray(heights)
    if not (np.issubdtype(table.dtype, np.bool_) or _is_real(table.dtype)):
        raise TypeError(f"heights must be real numbers, got dtype {table.dtype}")
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"heights must have shape (nx, ny), not empty, got {table.shape}")
    # A copy: what the caller changes later is not the maze.
    field = np.array(table, dtype=np.float64)
    blocked = np.isnan(field)
    if blocked.all():
        raise ValueError("every height is NaN: all positions are blocked")
    if np.isinf(field).any():
        x, y = np.argwhere(np.isinf(field))[0]
        raise ValueError(
            f"heights[{x}, {y}] = {field[x, y]} must be finite, or NaN where the position is "
            "blocked"
        )
    free = field[~blocked]
    if scale:
        free = scaled(free)
    elif free.min() < 0.0 or free.max() > 1.0:
        with np.errstate(invalid="ignore"):
            x, y = np.argwhere((field < 0.0) | (field > 1.0))[0]
        raise ValueError(
            f"heights[{x}, {y}] = {field[x, y]} must be in [0, 1] with scale=False; prices of "
            "other units are what cost_scale and step_cost are for"
        )
    field[~blocked] = free
    field[blocked] = 0.0
    grid = Grid(field.shape)
    solid = blocked.reshape(-1) if blocked.any() else None
    layout = Layout(
        grid,
        open_passages(grid, solid),
        field.reshape(-1),
        0 if goal is None else position("goal", grid, goal),
        solid,
    )
    lost = np.flatnonzero(layout.free() & ~layout.reaches_goal())
    if len(lost):
        point = tuple(grid.coords(lost[0]).tolist())
        others = f", nor from {len(lost) - 1} more" if len(lost) > 1 else ""
        raise ValueError(
            f"the goal at {tuple(grid.coords(layout.goal).tolist())} cannot be reached from the "
            f"free position {point}{others}; block what is cut off with NaN"
        )
    return layout


def heights_from_image(
    image: str | os.PathLike[str] | NDArray[np.generic], shape: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """Return the brightness of a picture as heights, black 0 and white 1.

    Parameters
    ----------
    image : path, or ndarray, shape (rows, columns) or (rows, columns, channels)
        Top row first; grey, grey and opacity, RGB or RGBA.  Integers are as bright as they are
        large among those of their type; booleans and floats are taken as they are.
    shape : pair of int, optional
        Positions ``(nx, ny)`` to resample to: bilinear, and averaged where the picture is larger.

    Returns
    -------
    ndarray of float, shape (nx, ny)
        Indexed ``[x, y]`` with ``(0, 0)`` at the bottom left.

    Raises
    ------
    OSError
        If the file cannot be read as a picture.
    TypeError, ValueError
        If the array is not a picture, or the shape not a pair of positive integers.
    """
    pixels = _read(image) if isinstance(image, str | os.PathLike) else np.asarray(image)
    if np.issubdtype(pixels.dtype, np.unsignedinteger):
        brightness = pixels.astype(np.float64) / np.iinfo(pixels.dtype).max
    elif np.issubdtype(pixels.dtype, np.bool_) or np.issubdtype(pixels.dtype, np.floating):
        brightness = pixels.astype(np.float64)
    else:
        raise TypeError(
            "an image must be a path, or an array of unsigned integers, booleans or floats, got "
            f"dtype {pixels.dtype}"
        )
    channels = brightness.shape[2] if brightness.ndim == 3 else 1
    if brightness.ndim not in (2, 3) or 0 in brightness.shape or not 1 <= channels <= 4:
        raise ValueError(
            "an image must have shape (rows, columns) or (rows, columns, 1 to 4 channels), not "
            f"empty, got {pixels.shape}"
        )
    if brightness.ndim == 3:
        brightness = brightness[..., :3] @ _LUMINANCE if channels >= 3 else brightness[..., 0]
    if shape is not None:
        grid = Grid(shape)
        if grid.num_dims != 2:
            raise ValueError(f"shape must have 2 axes, got {grid.num_dims}: {grid.shape}")
        floats = Image.fromarray(brightness.astype(np.float32))
        resized = floats.resize((grid.shape[0], grid.shape[1]), Image.Resampling.BILINEAR)
        brightness = np.asarray(resized, dtype=np.float64)
    return brightness[::-1].T


def _read(path: str | os.PathLike[str]) -> NDArray[np.generic]:
    """Return the pixels of a file, its palette or other colours turned into RGB."""
    with Image.open(path) as image:
        grey = image.mode in ("1", "L", "LA", "F") or image.mode.startswith("I;16")
        return np.asarray(image if grey else image.convert("RGB"))


def _is_real(dtype: np.dtype[np.generic]) -> bool:
    return np.issubdtype(dtype, np.integer) or np.issubdtype(dtype, np.floating)
