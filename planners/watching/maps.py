"""The map of a frame: a colour for each state's value, borders, walls, and the greedy path."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from aggmaze.rendering.marks import agent_marker, goal_marker
from planners.watching.film import Frame
from planners.watching.scenes import Scene
from planners.watching.themes import LEVELS, Theme, levels, ramp, spread

_UNKNOWN, _GROUND, _WALL = 2 * LEVELS, 2 * LEVELS + 1, 2 * LEVELS + 2
# Pixels of a cell from which walls are drawn: smaller ones would be walls and nothing else.
_LEAST_WALLED = 3


def cell_size(scene: Scene, area: tuple[int, int]) -> float:
    """Return how many pixels a cell has at most in an area.

    A whole number, but where cells are too small for it to show that some have a pixel more.

    Parameters
    ----------
    scene : Scene
    area : pair of int
        Width and height, in pixels.
    """
    rows, columns = scene.index.shape
    cell = min(area[0] / columns, area[1] / rows)
    whole = cell >= (_LEAST_WALLED if scene.has_walls else 5)
    return math.floor(cell) if whole else cell


def _lightness(num_edges: float, num_pixels: int) -> float:
    """Return how much of their strength borders keep: many of them would hide the values."""
    return min(1.0, max(0.15, 0.2 * num_pixels / max(1, num_edges)))


class Map:
    """The cells of a scene in an area of pixels: what of it does not change is worked out once.

    Parameters
    ----------
    scene : Scene
    area : pair of int
        Width and height in pixels, at most.
    theme : Theme
    """

    def __init__(self, scene: Scene, area: tuple[int, int], theme: Theme) -> None:
        self._scene, self._theme = scene, theme
        rows, columns = scene.index.shape
        #: Pixels of a cell.
        self.cell = cell_size(scene, area)
        self.size = max(1, int(columns * self.cell)), max(1, int(rows * self.cell))
        down = np.minimum(np.arange(self.size[1]) / self.cell, rows - 1).astype(np.intp)
        across = np.minimum(np.arange(self.size[0]) / self.cell, columns - 1).astype(np.intp)
        # What is the same for pixels of a cell is worked out a cell, and spread over them: for its
        # first ones, those between, and its last, of which borders take some.
        self._thickness = 1 if self.cell < 18 else 2
        rows_shown, self._down_in = _kinds(down, self._thickness)
        columns_shown, self._across_in = _kinds(across, self._thickness)
        index = scene.index[np.ix_(rows_shown, columns_shown)]
        self._states = np.maximum(index, 0)
        self._gap = index < 0
        wall = scene.blocked[np.ix_(down, across)]
        thickness = 1 if self.cell < 10 else 2 if self.cell < 26 else 3
        if scene.has_walls and self.cell >= _LEAST_WALLED:
            self._stand(wall, thickness, down, across)
        self._wall = np.flatnonzero(wall)

    def _stand(
        self,
        wall: NDArray[np.bool_],
        thickness: int,
        down: NDArray[np.intp],
        across: NDArray[np.intp],
    ) -> None:
        """Put the pixels of the walls between cells where they stand, in place."""
        scene, cell = self._scene, int(self.cell)
        height, width = wall.shape
        before = thickness // 2
        for part in range(-before, thickness - before):
            columns = (np.arange(scene.index.shape[1]) + 1) * cell + part
            inside = np.flatnonzero((columns >= 0) & (columns < width))
            # Half a wall longer at both ends, so that corners are whole.
            wall[:, columns[inside]] |= scene.wall_right[down][:, inside]
            rows = (np.arange(scene.index.shape[0]) + 1) * cell + part
            inside = np.flatnonzero((rows >= 0) & (rows < height))
            wall[rows[inside]] |= scene.wall_below[:, across][inside]
        wall[:thickness], wall[-thickness:] = True, True
        wall[:, :thickness], wall[:, -thickness:] = True, True

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
            States to join by a line; may be empty.
        policy : ndarray of int, optional
            Not drawn: the path is what it leads to.
        borders : bool
            Whether mega-states have borders.
        """
        theme, scene = self._theme, self._scene
        values = frame.values[: scene.num_states]
        level = levels(values, *spread(values))
        level[~np.isfinite(values)] = _UNKNOWN
        cells = np.take(level, self._states)
        cells[self._gap] = _GROUND
        below = ramp()
        if borders and frame.labels is not None and scene.is_map:
            beside, under = self._differ(frame.labels)
            num_pixels = self.size[0] * self.size[1]
            num_edges = self._thickness * self.cell * (beside.sum() + under.sum())
            share = 0.85 if frame.num_megastates else 0.3
            share *= _lightness(num_edges, num_pixels)
            below = np.rint(below + share * (np.array(theme.border) - below)).astype(np.uint8)
            parts = _with_borders(cells, beside, under, self._thickness)
        else:
            parts = np.repeat(np.repeat(cells, 1 + self._thickness, axis=0), 1 + self._thickness, 1)
        places = parts.take(self._across_in, axis=1).take(self._down_in, axis=0)
        places.reshape(-1)[self._wall] = _WALL
        image = Image.fromarray(places)
        fixed = np.array([theme.unknown, theme.ground, theme.wall], dtype=np.uint8)
        image.putpalette(np.concatenate([ramp(), below, fixed]).tobytes())
        image = image.convert("RGB")
        self._mark(image, path)
        return image

    def _differ(self, labels: NDArray[np.int32]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where cells lie in other mega-states than those on their left, and above them."""
        own = labels.take(self._states)
        beside, under = np.zeros(own.shape, dtype=bool), np.zeros(own.shape, dtype=bool)
        np.not_equal(own[:, 1:], own[:, :-1], out=beside[:, 1:])
        np.not_equal(own[1:], own[:-1], out=under[1:])
        return beside, under

    def _mark(self, image: Image.Image, path: NDArray[np.int64]) -> None:
        """Draw holes, the path, the goals and where it begins, in place."""
        scene, theme, cell = self._scene, self._theme, self.cell
        draw = ImageDraw.Draw(image)
        for row, column in scene.cells(scene.pits).tolist() if cell >= 5 else ():
            x, y, radius = (column + 0.5) * cell, (row + 0.5) * cell, cell * 0.32
            draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=theme.wall)
        width = max(2, min(7, round(cell * 0.22)))
        if len(path) > 1 and scene.is_map:
            runs = _runs(scene.cells(path))
            for color, wide in (((255, 255, 255), width + 2), (theme.path, width)):
                for run in runs:
                    points = ((run[:, ::-1] + 0.5) * cell).reshape(-1).tolist()
                    draw.line(points, fill=color, width=wide, joint="curve" if wide > 4 else None)
        size = max(7.0, min(cell * 0.42, 22.0))
        start = scene.cells(np.array([scene.start]))
        goals = scene.cells(scene.goals)
        for row, column in start.tolist():
            x, y, radius = (column + 0.5) * cell, (row + 0.5) * cell, size * 0.72
            x = min(max(x, radius + 1), image.width - radius - 2)
            y = min(max(y, radius + 1), image.height - radius - 2)
            put_mark(image, "disc", x, y, radius)
        for row, column in goals.tolist() if len(goals) <= 40 else ():
            x, y = (column + 0.5) * cell, (row + 0.5) * cell
            x = min(max(x, size), image.width - size - 1)
            y = min(max(y, size), image.height - size - 1)
            put_mark(image, "star", x, y, 1.3 * size)


def _kinds(cells: NDArray[np.intp], thickness: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return which cells have pixels along an axis, and for each pixel its cell and its kind.

    Parameters
    ----------
    cells : ndarray of int, shape (P,)
        The cell of each pixel.
    thickness : int
        Of borders: with 1 they take the first pixel of a cell, with 2 the last one too.

    Returns
    -------
    shown : ndarray of int, shape (N,)
    places : ndarray of int, shape (P,)
        ``(1 + thickness)`` times the place of its cell among those that are shown, and 0 more for
        the first pixel, 1 for those between, 2 for the last.
    """
    shown, place = np.unique(cells, return_inverse=True)
    begins = np.diff(place, prepend=-1) > 0
    kinds = np.where(begins, 0, 1)
    if thickness > 1:
        kinds[np.append(begins[1:], True) & ~begins] = 2
    return shown, (1 + thickness) * place + kinds


def _with_borders(
    cells: NDArray[np.uint8],
    beside: NDArray[np.bool_],
    under: NDArray[np.bool_],
    thickness: int,
) -> NDArray[np.uint8]:
    """Return the levels of all kinds of pixels of cells, those of borders moved on by `LEVELS`.

    Parameters
    ----------
    cells : ndarray of uint8, shape (R, C)
        Levels; no border lies over those beyond `LEVELS`.
    beside, under : ndarray of bool, shape (R, C)
        Whether a border lies between a cell and the one on its left, and the one above.
    thickness : int

    Returns
    -------
    ndarray of uint8, shape ((1 + thickness) R, (1 + thickness) C)
    """
    rows, columns = cells.shape
    kinds = 1 + thickness
    none = np.zeros_like(beside)
    down, across = [under, none], [beside, none]
    if thickness > 1:
        down.append(np.append(under[1:], none[:1], axis=0))
        across.append(np.append(beside[:, 1:], none[:, :1], axis=1))
    more = np.where(cells < LEVELS, np.uint8(LEVELS), np.uint8(0))
    parts = np.empty((rows, kinds, columns, kinds), dtype=np.uint8)
    for i, row in enumerate(down):
        for j, column in enumerate(across):
            parts[:, i, :, j] = cells + more * (row | column)
    return parts.reshape(kinds * rows, kinds * columns)


def _runs(cells: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the parts of a path whose cells are neighbours, as where no slice of a maze ends.

    Parameters
    ----------
    cells : ndarray of int, shape (N, 2)
        Rows and columns.
    """
    apart = np.flatnonzero(np.abs(np.diff(cells, axis=0)).max(axis=1, initial=0) > 1) + 1
    return np.split(cells, apart)


@functools.lru_cache(maxsize=16)
def _sprite(kind: str, size: int) -> Image.Image:
    """Return a mark as windows have it, about ``size`` pixels from its middle, as RGBA."""
    width = 2 * size + 1
    make = goal_marker if kind == "star" else agent_marker
    marker = make(width, max(1, width // 12))
    levels_of = np.concatenate([marker.colors, 255.0 * marker.opacity], axis=-1)
    return Image.fromarray(np.rint(levels_of).astype(np.uint8))


def put_mark(image: Image.Image, kind: str, x: float, y: float, size: float) -> None:
    """Put a mark on a picture, in place.

    Parameters
    ----------
    image : PIL.Image.Image
    kind : str
        Which mark: a star or a disc.
    x, y : float
        Its middle, in pixels.
    size : float
        Pixels from its middle to its rim, about.
    """
    sprite = _sprite(kind, round(size))
    image.paste(sprite, (round(x - sprite.width / 2), round(y - sprite.height / 2)), sprite)
