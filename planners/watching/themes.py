"""Colours of pictures: of values, and of all that is drawn beside them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aggmaze.rendering.colors import AGENT, GOAL, value_colors

Color = tuple[int, int, int]

#: Levels of the colours of values: a palette of 256 holds them twice, plain and below borders.
LEVELS = 120
#: Colours of mega-states of several states where these lie nowhere, in the order of their values:
#: none of them is one of the values'.
GROUPS: tuple[Color, ...] = (
    (230, 126, 20),
    (150, 84, 190),
    (216, 84, 140),
    (128, 88, 58),
    (88, 104, 214),
    (196, 60, 50),
)


@dataclass(frozen=True)
class Theme:
    """Colours of all but the values."""

    ground: Color
    card: Color
    ink: Color
    faint: Color
    line: Color
    wall: Color
    border: Color
    path: Color
    residual: Color
    bound: Color
    aggregated: Color
    unknown: Color


LIGHT = Theme(
    ground=(250, 250, 248),
    card=(255, 255, 255),
    ink=(28, 32, 40),
    faint=(104, 112, 124),
    line=(222, 225, 230),
    wall=(34, 38, 50),
    border=(255, 255, 255),
    path=(214, 39, 40),
    residual=(0, 114, 178),
    bound=(202, 84, 0),
    aggregated=(232, 222, 245),
    unknown=(206, 210, 216),
)
DARK = Theme(
    ground=(17, 20, 27),
    card=(24, 28, 37),
    ink=(233, 236, 241),
    faint=(150, 159, 173),
    line=(48, 54, 66),
    wall=(12, 14, 19),
    border=(255, 255, 255),
    path=(255, 82, 82),
    residual=(86, 180, 233),
    bound=(240, 160, 60),
    aggregated=(58, 48, 84),
    unknown=(70, 76, 88),
)
THEMES = {"light": LIGHT, "dark": DARK}


def table_of_colors(theme: Theme) -> list[Color]:
    """Return the colours that pictures of a theme are made of, at most 256, for a GIF.

    Parameters
    ----------
    theme : Theme
    """
    white, ink = (255, 255, 255), (20, 24, 32)
    found = [*vars(theme).values(), white, ink, GOAL, AGENT, *GROUPS]
    values = [tuple(color) for color in ramp()[::3].tolist()]
    found += values
    # Borders over values, as light as they are in global phases, and lighter ones.
    for share in (0.3, 0.85):
        found += [mixed(color, theme.border, share) for color in values[::4]]
    for ground in (theme.ground, theme.card, theme.line, theme.aggregated):
        for color in (theme.ink, theme.faint):
            found += [mixed(ground, color, share) for share in (0.25, 0.5, 0.75)]
    for ground in (theme.card, theme.aggregated):
        for color in (theme.residual, theme.bound):
            found += [mixed(ground, color, share) for share in (0.25, 0.6)]
    for color in (GOAL, AGENT, theme.path):
        found += [mixed(color, white, 0.5), mixed(color, ink, 0.5)]
    return list(dict.fromkeys(found))[:256]


def mixed(under: Color, over: Color, share: float) -> Color:
    """Return the colour of one laid over another, ``share`` of it.

    Parameters
    ----------
    under, over : tuple of int
    share : float
    """
    parts = [round((1 - share) * a + share * b) for a, b in zip(under, over, strict=True)]
    return parts[0], parts[1], parts[2]


def spread(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the least and the greatest finite value; 0 and 0 where there is none."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def levels(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.uint8]:
    """Return the level of each value in the colours, from 0 for ``low`` to `LEVELS` - 1.

    Parameters
    ----------
    values : ndarray of float, shape (N,)
    low, high : float
        What the ends of the colours stand for.
    """
    width = high - low
    shares = (values - low) / width if width > 0 else np.zeros(len(values))
    return np.asarray(
        np.clip(np.nan_to_num(shares, posinf=1.0), 0.0, 1.0) * (LEVELS - 1) + 0.5, dtype=np.uint8
    )


@functools.cache
def ramp() -> NDArray[np.uint8]:
    """Return the colour of each level, shape (LEVELS, 3)."""
    return value_colors(np.linspace(0.0, 1.0, LEVELS))
