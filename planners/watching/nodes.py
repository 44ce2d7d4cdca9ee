"""A small model as a graph: discs in the colours of values, rings of mega-states, arrows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from planners.watching.film import Frame
from planners.watching.letters import width_of, write
from planners.watching.maps import put_mark
from planners.watching.scenes import Scene
from planners.watching.themes import GROUPS, Color, Theme, levels, mixed, ramp, spread

# Drawn this much larger and scaled down, so that slanted lines are smooth.
_SMOOTHER = 2
# Least and greatest radius of a disc in pixels, and of the distance of the closest two.
_SMALLEST, _LARGEST, _SHARE = 5.0, 26.0, 0.31
# How far an arrow bends, as a share of its length: there and back are two.
_BEND = 0.12
# Letters in discs, in pixels.
_SMALLEST_LETTERS, _LARGEST_LETTERS = 9, 18
_PIECES = 12


class Nodes:
    """The states of a small model in an area of pixels.

    Parameters
    ----------
    scene : Scene
        With a graph.
    area : pair of int
        Width and height in pixels.
    theme : Theme
    """

    def __init__(self, scene: Scene, area: tuple[int, int], theme: Theme) -> None:
        assert scene.graph is not None
        self._scene, self._theme, self._graph = scene, theme, scene.graph
        self.size = area
        room = np.array(area, dtype=np.float64)
        pad = np.minimum(2.2 * _LARGEST, 0.12 * room)
        points = scene.graph.points * [1, -1] + [0, 1]
        self._points = pad + points * (room - 2 * pad)
        away = self._points[:, np.newaxis] - self._points
        apart = np.linalg.norm(away, axis=-1)
        np.fill_diagonal(apart, np.inf)
        # Where each has most room beside it: away from the others, most of all the closest.
        away = (away / apart[..., np.newaxis] ** 3).sum(axis=1)
        lengths = np.linalg.norm(away, axis=1, keepdims=True)
        self._outwards = np.where(
            lengths > 0, away / np.where(lengths > 0, lengths, 1), [0.0, -1.0]
        )
        closest = float(apart.min(initial=4 * _LARGEST))
        #: Of a disc, in pixels.
        self.radius = min(_LARGEST, max(_SMALLEST, _SHARE * closest))
        self._names, self._letters = self._readable_names()

    def paint(
        self,
        frame: Frame,
        path: NDArray[np.int64],
        policy: NDArray[np.int64] | None = None,
        *,
        borders: bool = True,
    ) -> Image.Image:
        """Return the picture of a frame.

        Parameters
        ----------
        frame : Frame
        path : ndarray of int
            States whose arrows are marked; may be empty.
        policy : ndarray of int, shape (S,), optional
            Whose arrows are drawn; without one, all that may happen, faintly.
        borders : bool
            Whether mega-states have rings.
        """
        scene, theme, over = self._scene, self._theme, _SMOOTHER
        values = frame.values[: scene.num_states]
        image = Image.new("RGB", (self.size[0] * over, self.size[1] * over), theme.card)
        draw = ImageDraw.Draw(image)
        self._draw_arrows(draw, path, policy)
        colors = ramp()[levels(values, *spread(values))]
        colors[~np.isfinite(values)] = theme.unknown
        groups = frame.groups() if borders else np.full(scene.num_states, -1)
        radius, ring = self.radius * over, max(2.0, 0.22 * self.radius) * over
        for (x, y), color, group in zip(
            (self._points * over).tolist(), colors.tolist(), groups.tolist(), strict=True
        ):
            if group >= 0:
                _disc(draw, x, y, radius + 1.5 * ring, GROUPS[group % len(GROUPS)])
                _disc(draw, x, y, radius + 0.5 * ring, theme.card)
            _disc(draw, x, y, radius, theme.faint)
            _disc(draw, x, y, radius - over, tuple(color))
        image = image.reduce(over)
        self._write_names(image, colors)
        goals = set(scene.goals.tolist())
        for state, (x, y) in enumerate(self._points.tolist()):
            if state in goals and len(goals) <= 12:
                put_mark(image, "star", x, y - 1.25 * self.radius, 0.62 * self.radius + 3)
            if state == scene.start:
                shift = 0.85 * self.radius
                put_mark(image, "disc", x - shift, y - shift, 0.32 * self.radius + 2)
        return image

    def _draw_arrows(
        self,
        draw: ImageDraw.ImageDraw,
        path: NDArray[np.int64],
        policy: NDArray[np.int64] | None,
    ) -> None:
        """Draw what the policy makes likely; wider the likelier, red along the path."""
        graph, theme = self._graph, self._theme
        marked = set(zip(path[:-1].tolist(), path[1:].tolist(), strict=True))
        if policy is None:
            which = np.unique(graph.state * len(graph.points) + graph.following, return_index=True)
            kept = which[1]
        else:
            kept = np.flatnonzero(policy[graph.state] == graph.action)
        arrows = [
            (int(graph.state[k]), int(graph.following[k]), float(graph.chance[k])) for k in kept
        ]
        plain: Color = theme.line if policy is None else mixed(theme.card, theme.faint, 0.8)
        # Those of the path lie above the others.
        for here, there, chance in sorted(arrows, key=lambda arrow: arrow[:2] in marked):
            on_path = (here, there) in marked
            color = theme.path if on_path else plain
            width = (0.8 + 2.0 * chance + 0.8 * on_path) * _SMOOTHER
            if here == there:
                self._draw_loop(draw, here, color, width)
            else:
                self._draw_arrow(draw, here, there, color, width)

    def _draw_arrow(
        self, draw: ImageDraw.ImageDraw, here: int, there: int, color: Color, width: float
    ) -> None:
        start, end = self._points[here] * _SMOOTHER, self._points[there] * _SMOOTHER
        along = end - start
        length = math.hypot(*along)
        across = np.array([-along[1], along[0]])
        middle = (start + end) / 2 + _BEND * across
        share = np.linspace(0, 1, 4 * _PIECES + 1)[:, np.newaxis]
        curve = (1 - share) ** 2 * start + 2 * share * (1 - share) * middle + share**2 * end
        rim = 1.5 * self.radius * _SMOOTHER
        head = min(2.4 * width + 4 * _SMOOTHER, 0.4 * length)
        away = np.linalg.norm(curve - end, axis=1)
        # The line ends in the head, and the head at the ring.
        body = curve[(away > rim + 0.6 * head) & (np.linalg.norm(curve - start, axis=1) > 0)]
        tip = curve[int(np.argmin(np.abs(away - rim)))]
        if len(body) < 2:
            body = np.array([start, tip])
        draw.line([tuple(point) for point in body.tolist()], fill=color, width=round(width))
        back = tip - body[-1]
        back /= max(1e-9, math.hypot(*back))
        side = np.array([-back[1], back[0]])
        corners = [tip, tip - head * back + 0.45 * head * side, tip - head * back]
        corners.append(tip - head * back - 0.45 * head * side)
        draw.polygon([tuple(corner) for corner in np.array(corners).tolist()], fill=color)

    def _draw_loop(self, draw: ImageDraw.ImageDraw, state: int, color: Color, width: float) -> None:
        """Draw that a state may stay: a circle at the side where there is most room."""
        point, out = self._points[state], self._outwards[state]
        x, y = (point + 1.35 * self.radius * out) * _SMOOTHER
        size = 0.75 * self.radius * _SMOOTHER
        draw.ellipse([x - size, y - size, x + size, y + size], outline=color, width=round(width))

    def _write_names(self, image: Image.Image, colors: NDArray[np.uint8]) -> None:
        """Write into each disc what its state is called, where letters have room."""
        draw = ImageDraw.Draw(image)
        size = self._letters
        if not size:
            return
        light = colors.astype(np.float64) @ [0.299, 0.587, 0.114] > 115
        for name, (x, y), dark in zip(self._names, self._points.tolist(), light, strict=True):
            color = (20, 24, 32) if dark else (255, 255, 255)
            write(draw, (x - width_of(name, size) / 2, y - 0.62 * size), name, size, color)

    def _readable_names(self) -> tuple[list[str], int]:
        """Return what discs are called, by numbers where names have no room, and in what size."""
        numbers = [str(state) for state in range(self._scene.num_states)]
        if self._scene.names is not None:
            names = [str(name) for name in self._scene.names]
            if size := self._letters_for(names):
                return names, size
        return numbers, self._letters_for(numbers)

    def _letters_for(self, names: list[str]) -> int:
        """Return the size of the letters in which all names fit into discs; 0 for none."""
        for size in range(_LARGEST_LETTERS, _SMALLEST_LETTERS - 1, -1):
            widest = max(width_of(name, size) for name in names)
            if math.hypot(widest, 0.75 * size) <= 2 * self.radius - 3:
                return size
        return 0


def _disc(draw: ImageDraw.ImageDraw, x: float, y: float, radius: float, color: Color) -> None:
    draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=color)
