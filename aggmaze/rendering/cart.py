"""Pictures of a cart with a pole in a cell: pixels and characters."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from aggmaze.cartpole.cells import Cells
from aggmaze.cartpole.physics import ACTION_NAMES, AXES, Physics
from aggmaze.rendering import legend
from aggmaze.rendering.colors import (
    AGENT,
    BACKGROUND,
    FLOOR,
    INK,
    POLE,
    WALL,
    value_colors,
)
from aggmaze.rendering.marks import arrow_marker
from aggmaze.rendering.overlay import Overlay

SIZE = (600, 400)
# Drawn larger and averaged, so that slanted edges are smooth.
_OVERSAMPLING = 2
_GROUND = 300
_CART = (50, 30)
_POLE_WIDTH = 10
_ARROW = 36
# Half the width of the picture, in half tracks.
_MARGIN = 1.25


def frame(
    cells: Cells,
    physics: Physics,
    state: int,
    overlay: Overlay | None = None,
    area: tuple[int, int] | None = None,
) -> NDArray[np.uint8]:
    """Draw the centre of a cell, or a pole that lies where it has failed.

    Parameters
    ----------
    cells : Cells
    physics : Physics
    state : int
    overlay : Overlay, optional
        Of the cell, its value is pointed at on a scale, its action is an arrow on the cart, and its
        mega-state is the colour of the cart and named below it.
    area : pair of int, optional
        Width and height of the room for the picture, which is three to two; 600 by 400 by default.

    Returns
    -------
    ndarray of uint8, shape (400, 600, 3), or what fits into the area
    """
    width, height = SIZE
    factor = 1.0 if area is None else min(area[0] / width, area[1] / height)
    scale = _OVERSAMPLING * factor
    pixels_wide, pixels_high = (max(1, int(length * factor)) for length in SIZE)
    image = Image.new("RGB", (_OVERSAMPLING * pixels_wide, _OVERSAMPLING * pixels_high), FLOOR)
    draw = ImageDraw.Draw(image)
    constants = dict(physics.constants)
    pixels_per_metre = width / (2 * _MARGIN * constants["x_threshold"])
    failed = state == cells.failure
    overlay = Overlay() if overlay is None else overlay
    position, _, angle, _ = (
        (0.0, 0.0, math.pi / 2, 0.0) if failed else cells.points([state])[0, 0].tolist()
    )

    def box(left: float, top: float, right: float, bottom: float) -> list[float]:
        return [scale * left, scale * top, scale * right - 1, scale * bottom - 1]

    draw.rectangle(box(0, _GROUND, width, height), fill=BACKGROUND)
    draw.line(
        [0, scale * _GROUND, scale * width, scale * _GROUND], fill=WALL, width=max(1, round(scale))
    )
    for end in (-1, 1):  # where the track ends
        x = width / 2 + end * constants["x_threshold"] * pixels_per_metre
        draw.line([scale * x, scale * (_GROUND - 8), scale * x, scale * (_GROUND + 8)], fill=WALL)
    centre = width / 2 + position * pixels_per_metre
    axle = _GROUND - _CART[1] * 3 / 4
    cart = BACKGROUND if failed else INK
    if overlay.labels is not None:
        cart = tuple(value_colors(overlay.label_shares[state]).tolist())
    draw.rectangle(
        box(centre - _CART[0] / 2, _GROUND - _CART[1], centre + _CART[0] / 2, _GROUND),
        fill=cart,
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
        fill=POLE,
        outline=INK,
    )
    draw.ellipse(box(centre - half, axle - half, centre + half, axle + half), fill=AGENT)
    if overlay.labels is not None:
        draw.text(
            (scale * centre, scale * (_GROUND + 24)),
            f"mega-state {overlay.labels[state]}",
            fill=INK,
            font=ImageFont.load_default(max(1.0, scale * 14)),
            anchor="mm",
        )
    pixels = np.array(image.reduce(_OVERSAMPLING), dtype=np.uint8)
    if overlay.policy is not None and not failed:
        sign = 2 * int(overlay.policy[state]) - 1
        middle = centre + sign * (_CART[0] + _ARROW) / 2, _GROUND - _CART[1] / 2
        size = max(3, round(factor * _ARROW))
        left, top = (np.array([int(factor * place) - size // 2]) for place in middle)
        arrow_marker(size, 0, sign).draw_all(pixels, top, left)
    legend.paste(pixels, overlay, state, FLOOR)
    return pixels


def text(cells: Cells, state: int, overlay: Overlay | None = None) -> str:
    """Write a line for each number: its bins, ``A`` in the one that it is in.

    Parameters
    ----------
    cells : Cells
    state : int
    overlay : Overlay, optional
        What it knows of the cell stands in lines below.

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
    if failed:
        lines.append("failed")
    return "\n".join([*lines, *legend.lines(overlay, state, ACTION_NAMES, ended=failed)])
