"""Pictures of control problems in cells: pixels and characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from aggmaze.cells.cells import Cells
from aggmaze.cells.control import Acrobot, ControlProblem, MountainCar, Pendulum
from aggmaze.rendering import legend
from aggmaze.rendering.colors import AGENT, BACKGROUND, FLOOR, GOAL, INK, POLE, WALL, value_colors
from aggmaze.rendering.overlay import Overlay

SIZE = (600, 400)
# Drawn larger and averaged, so that slanted edges are smooth.
_OVERSAMPLING = 2
# Longest line of bins.
_MOST_CHARACTERS = 40
_TEXT, _LINE, _PADDING = 14, 18, 10
# The car, its height above the hill and what the hill is in the picture.
_CAR, _WHEEL = (44, 20), 8
_HILL_BOTTOM, _HILL_HEIGHT = 385, 160
# Beside the hill; above it is room for the legend.
_MARGINS = (30, 30)
# Pixels a metre, where the links hang, and half their width.
_METRE, _PIVOT, _HALF_WIDTH = 75, (300, 185), 8
# Length of the arrow of the strongest action, half its width, and where it is of what hangs.
_ARROW, _ARROW_WIDTH = 90, 12
_ARROW_PLACE = (300, 378)

Point = tuple[float, float]


class _Pen(NamedTuple):
    """A drawing in units of the picture, 600 by 400."""

    draw: ImageDraw.ImageDraw
    scale: float

    def polygon(self, points: Sequence[Point], fill: tuple[int, ...]) -> None:
        self.draw.polygon(
            [(self.scale * x, self.scale * y) for x, y in points], fill=fill, outline=INK
        )

    def line(self, points: Sequence[Point], fill: tuple[int, ...], width: float = 2) -> None:
        self.draw.line(
            [(self.scale * x, self.scale * y) for x, y in points],
            fill=fill,
            width=max(1, round(self.scale * width)),
        )

    def circle(self, centre: Point, radius: float, fill: tuple[int, ...]) -> None:
        (x, y), r = centre, radius
        box = [self.scale * end for end in (x - r, y - r, x + r, y + r)]
        self.draw.ellipse(box, fill=fill, outline=INK)

    def text(self, place: Point, words: str) -> None:
        self.draw.text(
            (self.scale * place[0], self.scale * place[1]),
            words,
            fill=INK,
            font=ImageFont.load_default(max(1.0, self.scale * _TEXT)),
        )


def frame(
    problem: ControlProblem,
    cells: Cells,
    state: int,
    overlay: Overlay | None = None,
    area: tuple[int, int] | None = None,
) -> NDArray[np.uint8]:
    """Draw the centre of a cell, or a corner.

    Parameters
    ----------
    problem : ControlProblem
    cells : Cells
    state : int
        Having ended is drawn at the goal, without colour.
    overlay : Overlay, optional
        Of the state, its value is pointed at on a scale, its action is an arrow, a dot where it
        pushes nowhere, and its mega-state is the colour of what moves, and named.
    area : pair of int, optional
        Width and height of the room for the picture, which is three to two; 600 by 400 by default.

    Returns
    -------
    ndarray of uint8, shape (400, 600, 3), or what fits into the area
    """
    overlay = Overlay() if overlay is None else overlay
    factor = 1.0 if area is None else min(area[0] / SIZE[0], area[1] / SIZE[1])
    wide, high = (max(1, int(length * factor)) for length in SIZE)
    image = Image.new("RGB", (_OVERSAMPLING * wide, _OVERSAMPLING * high), FLOOR)
    pen = _Pen(ImageDraw.Draw(image), _OVERSAMPLING * factor)
    ended = state == cells.end
    body: tuple[int, ...] = BACKGROUND if ended else INK
    if overlay.labels is not None:
        body = tuple(value_colors(overlay.label_shares[state]).tolist())
    push = None
    if overlay.policy is not None and not ended:
        push = _pushes(problem)[overlay.policy[state]]
    point = _end_of(problem) if ended else cells.points([state])[0, 0].tolist()
    if isinstance(problem, MountainCar):
        _draw_hill(pen, problem, point, body, push)
    elif isinstance(problem, Acrobot):
        _draw_links(pen, problem, point, body)
    else:
        _draw_pendulum(pen, point, body)
    if push is not None and not isinstance(problem, MountainCar):
        _draw_push(pen, _ARROW_PLACE, push)
    words = ["ended"] if ended else _numbers(problem, point)
    if overlay.labels is not None:
        words.append(f"mega-state {overlay.labels[state]}")
    for line, told in enumerate(words):
        pen.text((_PADDING, _PADDING + _LINE * line), told)
    pixels = np.array(image.reduce(_OVERSAMPLING), dtype=np.uint8)
    legend.paste(pixels, overlay, state, FLOOR)
    return pixels


def text(problem: ControlProblem, cells: Cells, state: int, overlay: Overlay | None = None) -> str:
    """Write a line for each number: where it is in its bins, ``A``, and what it is.

    Parameters
    ----------
    problem : ControlProblem
    cells : Cells
    state : int
    overlay : Overlay, optional
        What it knows of the state stands in lines below.

    Returns
    -------
    str
        Without a newline at the end; ``ended`` stands in a line of its own where it is so.
    """
    ended = state == cells.end
    coords = [-1] * cells.num_axes if ended else cells.grid.coords(state).tolist()
    point = [None] * cells.num_axes if ended else cells.points([state])[0, 0].tolist()
    width = max(map(len, problem.axes))
    lines = []
    for axis, name in enumerate(problem.axes):
        n = cells.bins[axis]
        shown = min(n, _MOST_CHARACTERS)
        place = coords[axis] * shown // n
        bins = "".join("A" if bin_ == place else "." for bin_ in range(shown))
        value = "" if point[axis] is None else f" {point[axis]:8.3f}"
        lines.append(
            f"{name:<{width}} {cells.low[axis]:7.2f} |{bins}| {cells.high[axis]:.2f}{value}"
        )
    if ended:
        lines.append("ended")
    return "\n".join([*lines, *legend.lines(overlay, state, problem.action_names, ended=ended)])


def _numbers(problem: ControlProblem, point: Sequence[float]) -> list[str]:
    return [f"{name} {value:.3f}" for name, value in zip(problem.axes, point, strict=True)]


def _end_of(problem: ControlProblem) -> list[float]:
    """Return a point that has ended."""
    constants = dict(problem.constants)
    if isinstance(problem, MountainCar):
        return [float(constants["goal_position"]), 0.0]
    return [math.pi, 0.0, 0.0, 0.0]


def _pushes(problem: ControlProblem) -> list[float]:
    """Return where each action pushes and how hard: between -1 and 1."""
    if isinstance(problem, MountainCar):
        return [-1.0, 0.0, 1.0]
    if isinstance(problem, Pendulum):
        # Torque turns to the left, as angles do.
        torques = [-torque for torque in problem.torques]
    else:
        torques = list(dict(problem.constants)["AVAIL_TORQUE"])
    most = max(map(abs, torques)) or 1.0
    return [torque / most for torque in torques]


def _draw_push(pen: _Pen, place: Point, push: float) -> None:
    """Draw an arrow that begins at a place, or a dot there."""
    x, y = place
    if push == 0:
        pen.circle(place, 0.75 * _ARROW_WIDTH, AGENT)
        return
    tip = x + _ARROW * push
    neck = tip - math.copysign(min(2 * _ARROW_WIDTH, abs(tip - x)), push)
    half = _ARROW_WIDTH / 3
    pen.polygon(
        [
            (x, y - half),
            (neck, y - half),
            (neck, y - _ARROW_WIDTH),
            (tip, y),
            (neck, y + _ARROW_WIDTH),
            (neck, y + half),
            (x, y + half),
        ],
        AGENT,
    )


def _draw_hill(
    pen: _Pen,
    problem: MountainCar,
    point: Sequence[float],
    body: tuple[int, ...],
    push: float | None,
) -> None:
    (left, _), (right, _) = problem.low, problem.high
    metre = (SIZE[0] - sum(_MARGINS)) / (right - left)

    def at(position: float) -> Point:
        # The height whose slope is what gravity pulls with.
        height = (math.sin(3 * position) + 1) / 2
        return _MARGINS[0] + (position - left) * metre, _HILL_BOTTOM - _HILL_HEIGHT * height

    hill = [at(position) for position in np.linspace(left, right, 120).tolist()]
    pen.polygon([(0, hill[0][1]), *hill, (SIZE[0], hill[-1][1]), (SIZE[0], 420), (0, 420)], WALL)
    x, y = at(float(dict(problem.constants)["goal_position"]))
    pen.line([(x, y), (x, y - 50)], INK)
    pen.polygon([(x, y - 50), (x + 26, y - 42), (x, y - 34)], GOAL)
    (x, y), slope = at(point[0]), math.cos(3 * point[0])
    tilt = math.atan(1.5 * _HILL_HEIGHT / metre * slope)
    along, up = (math.cos(tilt), -math.sin(tilt)), (-math.sin(tilt), -math.cos(tilt))

    def place(forward: float, above: float) -> Point:
        return (
            x + forward * along[0] + above * up[0],
            y + forward * along[1] + above * up[1],
        )

    half, (_, height) = _CAR[0] / 2, _CAR
    corners = [(-half, _WHEEL), (half, _WHEEL), (half, _WHEEL + height), (-half, _WHEEL + height)]
    pen.polygon([place(*corner) for corner in corners], body)
    for wheel in (-half / 2, half / 2):
        pen.circle(place(wheel, _WHEEL), _WHEEL, AGENT if body == INK else body)
    if push is not None:
        _draw_push(pen, place(0, 2 * _WHEEL + height + _ARROW_WIDTH), push)


def _draw_link(
    pen: _Pen, begin: Point, angle: float, length: float, body: tuple[int, ...]
) -> Point:
    """Draw a link that hangs from a point, and return its other end; 0 is straight down."""
    right, down = math.sin(angle), math.cos(angle)
    tip = begin[0] + length * right, begin[1] + length * down
    across = _HALF_WIDTH * down, -_HALF_WIDTH * right
    pen.polygon(
        [
            (begin[0] - across[0], begin[1] - across[1]),
            (begin[0] + across[0], begin[1] + across[1]),
            (tip[0] + across[0], tip[1] + across[1]),
            (tip[0] - across[0], tip[1] - across[1]),
        ],
        body,
    )
    pen.circle(begin, _HALF_WIDTH, POLE)
    return tip


def _draw_links(pen: _Pen, problem: Acrobot, point: Sequence[float], body: tuple[int, ...]) -> None:
    constants = dict(problem.constants)
    lengths = float(constants["LINK_LENGTH_1"]), float(constants["LINK_LENGTH_2"])
    # Where the tip has to come, of links of 1 m.
    height = _PIVOT[1] - _METRE
    pen.line([(_PIVOT[0] - 160, height), (_PIVOT[0] + 160, height)], GOAL)
    metre = 2 * _METRE / sum(lengths)
    elbow = _draw_link(pen, _PIVOT, point[0], metre * lengths[0], body)
    _draw_link(pen, elbow, point[0] + point[1], metre * lengths[1], body)


def _draw_pendulum(pen: _Pen, point: Sequence[float], body: tuple[int, ...]) -> None:
    tip = _draw_link(pen, _PIVOT, math.pi + point[0], 2 * _METRE, body)
    pen.circle(tip, 1.5 * _HALF_WIDTH, body)
