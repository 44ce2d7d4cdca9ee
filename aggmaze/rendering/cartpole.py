"""Pictures of a cart with a pole in a cell: pixels and characters."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from aggmaze.cartpole import AXES, Cells, Physics
from aggmaze.rendering.raster import AGENT, BACKGROUND, FLOOR, GOAL, INK, WALL

SIZE = (600, 400)
# Drawn larger and averaged, so that slanted edges are smooth.
_OVERSAMPLING = 2
_GROUND = 300
_CART = (50, 30)
_POLE_WIDTH = 10
# Half the width of the picture, in half tracks.
_MARGIN = 1.25


def frame(cells: Cells, physics: Physics, state: int) -> NDArray[np.uint8]:
    """Draw the centre of a cell, or a pole that lies where it has failed.

    Returns
    -------
    ndarray of uint8, shape (400, 600, 3)
    """
    scale = _OVERSAMPLING
    width, height = SIZE
    image = Image.new("RGB", (width * scale, height * scale), FLOOR)
    draw = ImageDraw.Draw(image)
    constants = dict(physics.constants)
    pixels_per_metre = width / (2 * _MARGIN * constants["x_threshold"])
    failed = state == cells.failure
    position, _, angle, _ = (
        (0.0, 0.0, math.pi / 2, 0.0) if failed else cells.points([state])[0, 0].tolist()
    )

    def box(left: float, top: float, right: float, bottom: float) -> list[float]:
        return [scale * left, scale * top, scale * right - 1, scale * bottom - 1]

    draw.rectangle(box(0, _GROUND, width, height), fill=BACKGROUND)
    draw.line([0, scale * _GROUND, scale * width, scale * _GROUND], fill=WALL, width=scale)
    for end in (-1, 1):  # where the track ends
        x = width / 2 + end * constants["x_threshold"] * pixels_per_metre
        draw.line([scale * x, scale * (_GROUND - 8), scale * x, scale * (_GROUND + 8)], fill=WALL)
    centre = width / 2 + position * pixels_per_metre
    axle = _GROUND - _CART[1] * 3 / 4
    draw.rectangle(
        box(centre - _CART[0] / 2, _GROUND - _CART[1], centre + _CART[0] / 2, _GROUND),
        fill=BACKGROUND if failed else INK,
        outline=INK,
    )
    length = 2 * constants["length"] * pixels_per_metre
    right, up = math.sin(angle), math.cos(angle)
    half = _POLE_WIDTH / 2
    draw.polygon(
        [
            (
                scale * (centre + along * right + across * up),
                scale * (axle - along * up + across * right),
            )
            for along, across in ((0, -half), (length, -half), (length, half), (0, half))
        ],
        fill=GOAL,
        outline=INK,
    )
    draw.ellipse(box(centre - half, axle - half, centre + half, axle + half), fill=AGENT)
    return np.array(image.reduce(scale), dtype=np.uint8)


def text(cells: Cells, state: int) -> str:
    """Write a line for each number: its bins, ``A`` in the one that it is in.

    Returns
    -------
    str
        Without a newline at the end; ``failed`` stands in the last line where it is so.
    """
    failed = state == cells.failure
    coords = [-1] * len(AXES) if failed else cells.grid.coords(state).tolist()
    lines = []
    for name, n, limit, place in zip(AXES, cells.bins, cells.limits, coords, strict=True):
        bins = "".join("A" if bin_ == place else "." for bin_ in range(n))
        lines.append(f"{name:<16} {-limit:6.2f} |{bins}| {limit:.2f}")
    return "\n".join([*lines, "failed"] if failed else lines)
