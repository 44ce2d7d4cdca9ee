"""Mazes from and to text.

Two forms, told apart by their characters.  *Thin walls*, as the environments render them: cells
are three characters wide and one line high, ``+`` stands at each corner, ``---`` and ``|`` are
walls, and ``###`` fills a blocked cell::

    +---+---+---+
    |     S |###|
    +   +---+---+
    | G         |
    +---+---+---+

*Blocks*, one character a cell, ``#`` blocked and ``.`` or a space free; what surrounds the maze is
closed anyway::

    ..S#
    .#..
    G..#

In both, the last line is y = 0 and x grows to the right; ``G`` is the goal, of which there is one,
and ``S`` the start, of which there may be one.  ``A`` (the agent) is read as ``S`` and ``*`` (the
agent at the goal) as ``G``, so that what an environment renders can be read back.  Text holds
walls only: the digits that stand for the heights of a terrain are passed over.

Where there are several ends, or cells with other signs, it is a grid world, which
`aggmaze.layouts.worlds` reads by the same two forms.

Blank lines before and after, indentation common to all lines, and spaces after the last wall of a
line are forgiven.  In blocks, a column or a line of free cells at the edge is better written with
``.`` than with spaces, which look like indentation or a blank line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_choice, check_integer
from aggmaze.files import readable_file
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout, open_passages

FORMS = ("walls", "blocks")
#: How the names of files with a maze as text end, where the name is all that is given.
SUFFIXES = (".txt", ".map")

_START, _GOAL = "SA", "G*"
_WALLS = "+-| #" + _START + _GOAL + "0123456789"
_BLOCKS = "#. " + _START + _GOAL


def layout_from_text(text: str | os.PathLike[str]) -> tuple[Layout, int | None]:
    """Read a maze from text in either form.

    Parameters
    ----------
    text : str or path
        Lines as the module's documentation describes them, or the file that holds them: a path, or
        a name that ends in .txt or .map.

    Returns
    -------
    layout : Layout
        Two-dimensional, with the passages, the goal and the blocked cells of the text, and without
        heights.
    start : int or None
        The state of ``S``, None where there is none.

    Raises
    ------
    TypeError
        If it is not text.
    ValueError
        If it is not a maze, or one in which a free cell does not reach the goal.  Line and column,
        both from 1, are where the text given has the fault.
    OSError
        If a file cannot be read.
    """
    if names_file(text):
        lines = read_text(text)
        with naming(text):
            return layout_from_text(lines)
    if not isinstance(text, str):
        raise TypeError(f"a maze as text must be a str, got {type(text).__name__}")
    cells = cells_from_text(
        text, walls=_WALLS, blocks=_BLOCKS, hint="GridWorld-v0 takes holes, lava and signs of yours"
    )
    blocked = cells.codes == ord("#")
    goals, starts = (np.argwhere(_among(cells.codes, signs)) for signs in (_GOAL, _START))
    if len(goals) == 0:
        raise ValueError("the maze has no goal: write G into one of its free cells")
    if len(goals) > 1:
        first, second = (cells.place(*goal) for goal in goals[:2])
        raise ValueError(
            f"{second}: a second goal; the first is at {first}; GridWorld-v0 takes several"
        )
    if len(starts) > 1:
        first, second = (cells.place(*start) for start in starts[:2])
        raise ValueError(f"{second}: a second start (S or A); the first is at {first}")
    if np.count_nonzero(~blocked) == 1:
        raise ValueError(f"{cells.place(*goals[0])}: there is no free cell beside the goal")

    layout = Layout(
        cells.grid,
        to_states(cells.passages),
        goal=cells.state(*goals[0]),
        blocked=to_states(blocked) if blocked.any() else None,
    )
    cells.refuse_lost(layout.free() & ~layout.reaches_goal(), "the goal cannot be reached")
    return layout, cells.state(*starts[0]) if len(starts) else None


def names_file(source: object) -> bool:
    """Return whether a layout is the path of a file: a path, or a name as those of maps."""
    if isinstance(source, os.PathLike):
        return True
    return isinstance(source, str) and source.endswith(SUFFIXES) and "\n" not in source


def read_text(path: Any) -> str:
    """Read a file with a maze as text.

    Raises
    ------
    OSError, ValueError
        If it cannot be read, or is not text.
    """
    with readable_file(path, "a maze as text") as file:
        return file.read().decode("utf-8-sig")


@contextmanager
def naming(path: Any) -> Iterator[None]:
    """Begin what a ValueError says of a text with the file that it is from."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None


@dataclass(frozen=True)
class TextCells:
    """The cells of a maze as text, top row first, and where they stand in it.

    Parameters
    ----------
    codes : ndarray of uint32, shape (rows, columns)
        Code points.
    passages : ndarray of bool, shape (rows, columns, 2)
        To the right and upwards.
    place : callable
        Says where in the text the cell of a row and a column stands.
    """

    codes: NDArray[np.uint32]
    passages: NDArray[np.bool_]
    place: Callable[[int, int], str]

    @property
    def grid(self) -> Grid:
        """The grid of the cells."""
        rows, columns = self.codes.shape
        return Grid((columns, rows))

    def state(self, row: int, column: int) -> int:
        """Return the state of a cell.

        Parameters
        ----------
        row, column : int
            From the top left.
        """
        return self.grid.state((int(column), int(len(self.codes) - 1 - row)))

    def refuse_lost(self, lost: NDArray[np.bool_], why: str) -> None:
        """Name the first cell from which what must be reached cannot be, if there is one.

        Parameters
        ----------
        lost : ndarray of bool, shape (S,)
        why : str
            What cannot be.
        """
        found = np.argwhere(self.grid.to_image(lost).astype(bool))
        if len(found):
            row, column = found[0]
            others = f", nor from {len(found) - 1} more" if len(found) > 1 else ""
            raise ValueError(
                f"{self.place(row, column)}: {why} from the free cell at coordinates "
                f"({column}, {len(self.codes) - 1 - row}){others}"
            )


def cells_from_text(text: str, *, walls: str, blocks: str, hint: str) -> TextCells:
    """Read the cells and the walls of a text in either form, whatever its signs mean.

    Parameters
    ----------
    text : str
    walls, blocks : str
        The characters that may stand in a text of each form.
    hint : str
        What is said besides of a character that is none of these.

    Raises
    ------
    ValueError
        If it is not a maze.
    """
    source = _Source.of(text, hint)
    signs_of_walls, signs_of_blocks = (sum(map(text.count, signs)) for signs in ("+-|", "#."))
    if signs_of_walls > signs_of_blocks:
        cells, passages = _read_walls(source, walls)
    else:
        cells, passages = _read_blocks(source, blocks)
    return TextCells(cells.codes, passages, cells.place)


def layout_to_text(
    layout: Layout, start: int | Iterable[int] | None = None, form: str = "walls"
) -> str:
    """Write a maze as text, from which `layout_from_text` reads the same maze.

    Where its cells have signs of their own these are written, and `GridWorld.read` reads them.

    Parameters
    ----------
    layout : Layout
        Two-dimensional.  Its heights are not written.
    start : int or sequence of int, optional
        The state, or states, to mark with ``S``.
    form : {"walls", "blocks"}
        Blocks can say only what is blocked: they have no room for a wall between free cells.

    Returns
    -------
    str
        Lines of equal length without a newline at the end.

    Raises
    ------
    ValueError
        If the layout is not two-dimensional, a start is no state, blocked or an end, or if there
        is a wall between free cells in the form "blocks".
    """
    check_choice("form", form, FORMS)
    grid = layout.grid
    if grid.num_dims != 2:
        raise ValueError(f"text shows two dimensions, got a grid {grid.shape}")
    marks = {layout.goal: "G"} if layout.signs is None else {}
    starts = () if start is None else start if isinstance(start, Iterable) else (start,)
    for given in starts:
        state = check_integer("start", given, below=grid.num_states)
        if layout.is_end()[state] or not layout.free()[state]:
            what = "blocked" if not layout.free()[state] else "the goal"
            what = what if layout.signs is None else what.replace("the goal", "an end")
            raise ValueError(f"start {state}, at {_point(grid, state)}, is {what}")
        marks[state] = "S"
    blocked = np.asarray(~layout.free())
    if form == "walls":
        right, up = (grid.to_image(layout.passages[:, axis]).astype(bool) for axis in (0, 1))
        lines = thin_walls(right, up, grid.to_image(blocked).astype(bool))
        cells = lines[1::2, 2::4]
    else:
        walls = np.argwhere(open_passages(grid, layout.blocked) & ~layout.passages)
        if len(walls):
            state, axis = (int(index) for index in walls[0])
            there = state + grid.strides[axis]
            raise ValueError(
                f"the wall between {_point(grid, state)} and {_point(grid, there)} cannot be "
                "written in the form 'blocks'; write the form 'walls'"
            )
        lines = cells = np.where(grid.to_image(blocked), ord("#"), ord(".")).astype(np.uint32)
    write_signs(cells, layout)
    for state, mark in marks.items():
        x, y = _point(grid, state)
        cells[-1 - y, x] = ord(mark)
    return lines_to_text(lines)


def write_signs(cells: NDArray[np.uint32], layout: Layout) -> None:
    """Write the signs that a layout's cells have, in place.

    Parameters
    ----------
    cells : ndarray of uint32, shape (rows, columns)
        Top row first.
    layout : Layout
        Two-dimensional.
    """
    if layout.signs is not None:
        signs = layout.grid.to_image(layout.signs)
        cells[...] = np.where(signs != 0, signs, cells)


def thin_walls(
    open_right: NDArray[np.bool_], open_up: NDArray[np.bool_], blocked: NDArray[np.bool_]
) -> NDArray[np.uint32]:
    """Write cells and walls as characters, top row first.

    Parameters
    ----------
    open_right, open_up : ndarray of bool, shape (rows, columns)
        Whether a cell is joined to its neighbour on the right, and to the one above.
    blocked : ndarray of bool, shape (rows, columns)

    Returns
    -------
    ndarray of uint32, shape (2 rows + 1, 4 columns + 1)
        Code points.  The middle of the cell in row ``r`` and column ``c`` is at
        ``[2 r + 1, 4 c + 2]``.
    """
    rows, columns = open_right.shape
    codes = np.full((2 * rows + 1, 4 * columns + 1), ord(" "), dtype=np.uint32)
    codes[::2, ::4] = ord("+")
    codes[1::2, 0] = ord("|")
    codes[1::2, 4::4][~open_right] = ord("|")
    for offset in (1, 2, 3):
        codes[-1, offset::4] = ord("-")
        codes[:-1:2, offset::4][~open_up] = ord("-")
        codes[1::2, offset::4][blocked] = ord("#")
    return codes


def lines_to_text(codes: NDArray[np.uint32]) -> str:
    """Return lines of code points, shape (lines, characters), as text."""
    return "\n".join(line.astype("<u4").tobytes().decode("utf-32-le") for line in codes)


def _point(grid: Grid, state: int) -> tuple[int, int]:
    x, y = grid.coords(state)
    return int(x), int(y)


def _among(codes: NDArray[np.uint32], signs: str) -> NDArray[np.bool_]:
    """Return where one of the characters stands."""
    found = np.zeros(codes.shape, dtype=bool)
    for sign in signs:
        found |= codes == ord(sign)
    return found


def to_states(image: NDArray[Any]) -> NDArray[Any]:
    """Turn rows of cells, top row first, (rows, columns, ...) into states, (S, ...)."""
    cells = image[::-1].swapaxes(0, 1)
    return np.ascontiguousarray(cells.reshape(-1, *image.shape[2:]))


@dataclass(frozen=True)
class _Source:
    """The lines of a text without what is forgiven, and where they stand in it.

    Parameters
    ----------
    lines : list of str
        As given but for blank lines at the ends and common indentation.
    line, column : int
        Where the first character of ``lines`` stands in the text, both from 1.
    hint : str
        What is said besides of a character that means nothing.
    """

    lines: list[str]
    line: int
    column: int
    hint: str

    @classmethod
    def of(cls, text: str, hint: str) -> _Source:
        """Cut off what is forgiven, and refuse tabs and empty text."""
        lines = text.replace("\r\n", "\n").split("\n")
        if "\t" in text:
            number = next(k for k, line in enumerate(lines) if "\t" in line)
            raise ValueError(
                f"line {number + 1}, column {lines[number].index(chr(9)) + 1}: a tab, whose width "
                "is not known; write spaces"
            )
        filled = [k for k, line in enumerate(lines) if line.strip(" ")]
        if not filled:
            raise ValueError("the text is empty: a maze needs at least two cells")
        margin = min(len(lines[k]) - len(lines[k].lstrip(" ")) for k in filled)
        kept = [line[margin:] for line in lines[filled[0] : filled[-1] + 1]]
        return cls(kept, filled[0] + 1, margin + 1, hint)

    def place(self, row: int, column: int) -> str:
        """Say where in the text a character of ``lines`` stands."""
        return f"line {self.line + row}, column {self.column + column}"

    def codes(self, lines: list[str], allowed: str, form: str) -> NDArray[np.uint32]:
        """Return the characters of lines, of one length and among those allowed, as an array."""
        widths = np.array([len(line) for line in lines])
        usual = int(np.bincount(widths).argmax())
        if (widths != usual).any():
            row = int(np.flatnonzero(widths != usual)[0])
            like = int(np.flatnonzero(widths == usual)[0])
            count = int(widths[row])
            raise ValueError(
                f"{self.place(row, min(count, usual))}: the line has {count} characters where line "
                f"{self.line + like} has {usual}; all lines must be equally long"
            )
        joined = "".join(lines).encode("utf-32-le", "surrogatepass")
        codes = np.frombuffer(joined, dtype="<u4").reshape(len(lines), usual)
        unknown = np.argwhere(~_among(codes, allowed))
        if len(unknown):
            row, column = (int(index) for index in unknown[0])
            raise ValueError(
                f"{self.place(row, column)}: {lines[row][column]!r} is not among the characters "
                f"of a maze {form}: {' '.join(allowed.replace(' ', ''))} and space; "
                f"{self.hint}"
            )
        return codes


@dataclass(frozen=True)
class _Signs:
    """Characters of one kind, such as the corners or the cells, and where they stand.

    Parameters
    ----------
    codes : ndarray of uint32, shape (rows, columns)
        Top row first.
    source : _Source
    first : pair of int
        Line and character of the first one in the source.
    step : pair of int
        Lines and characters from one to the next.
    """

    codes: NDArray[np.uint32]
    source: _Source
    first: tuple[int, int] = (0, 0)
    step: tuple[int, int] = (1, 1)

    def place(self, row: int, column: int) -> str:
        """Say where in the text one stands."""
        return self.source.place(
            self.first[0] + self.step[0] * int(row), self.first[1] + self.step[1] * int(column)
        )

    def refuse(self, wrong: NDArray[np.bool_], why: str) -> None:
        """Name the first one that is wrong, if there is one; ``{}`` in the reason is the sign."""
        found = np.argwhere(wrong)
        if len(found):
            row, column = found[0]
            sign = repr(chr(self.codes[row, column]))
            raise ValueError(f"{self.place(row, column)}: {why.format(sign)}")


def _read_blocks(source: _Source, allowed: str) -> tuple[_Signs, NDArray[np.bool_]]:
    """Return the cells, and the passages to the right and up, shape (rows, columns, 2)."""
    codes = source.codes(source.lines, allowed, "of blocks")
    free = codes != ord("#")
    passages = np.zeros((*codes.shape, 2), dtype=bool)
    passages[:, :-1, 0] = free[:, :-1] & free[:, 1:]
    passages[1:, :, 1] = free[1:] & free[:-1]
    return _Signs(codes, source), passages


def _read_walls(source: _Source, allowed: str) -> tuple[_Signs, NDArray[np.bool_]]:
    """Return the cells, and the passages to the right and up, shape (rows, columns, 2)."""
    # Spaces after the last wall go, but not those of a line whose last wall is missing.
    bare = [line.rstrip(" ") for line in source.lines]
    usual = int(np.bincount([len(line) for line in bare]).argmax())
    given = [
        line[:usual] if len(cut) < usual else cut
        for line, cut in zip(source.lines, bare, strict=True)
    ]
    codes = source.codes(given, allowed, "with thin walls")
    lines, width = codes.shape
    if lines < 3 or lines % 2 == 0 or width < 5 or width % 4 != 1:
        raise ValueError(
            f"{source.place(0, 0)}: a maze with thin walls takes 2 ny + 1 lines of 4 nx + 1 "
            f"characters, got {lines} of {width}"
        )
    rows, columns = lines // 2, width // 4
    corners, upright, level, cells = (
        _Signs(codes[line::2, character::4], source, (line, character), (2, 4))
        for line, character in ((0, 0), (1, 0), (0, 2), (1, 2))
    )
    corners.refuse(corners.codes != ord("+"), "{} where a + must stand: each corner has one")
    upright.refuse(~_among(upright.codes, "| "), "{} where a wall | or a space must stand")
    thirds = codes[::2, 1:].reshape(rows + 1, columns, 4)[..., :3]
    is_wall, is_gap = ((thirds == ord(sign)).all(axis=2) for sign in "- ")
    level.refuse(~is_wall & ~is_gap, "half a wall: between two + stand --- or three spaces")
    thirds = codes[1::2, 1:].reshape(rows, columns, 4)[..., :3]
    blocked = (thirds == ord("#")).all(axis=2)
    padded = (thirds[..., [0, 2]] == ord(" ")).all(axis=2) & ~_among(cells.codes, "+-|#")
    cells.refuse(~blocked & ~padded, "a cell is a sign between two spaces, or ### where blocked")

    # Walls that must stand: around the maze, and around each blocked cell.
    for kind, standing, axis in ((level, is_wall, 0), (upright, upright.codes == ord("|"), 1)):
        kind.refuse(
            _either_side(np.zeros_like(blocked), axis, outside=True) & ~standing,
            "the outer wall is open; close it",
        )
        kind.refuse(
            _either_side(blocked, axis, outside=False) & ~standing,
            "no wall beside a blocked cell; close it",
        )
    passages = np.stack([upright.codes[:, 1:] == ord(" "), is_gap[:-1]], axis=2)
    return cells, passages


def _either_side(cells: NDArray[np.bool_], axis: int, *, outside: bool) -> NDArray[np.bool_]:
    """Return for each line between cells along an axis whether a cell beside it is marked.

    Parameters
    ----------
    cells : ndarray of bool, shape (rows, columns)
    axis : int
    outside : bool
        What counts for the cells that would lie outside.

    Returns
    -------
    ndarray of bool, one longer along the axis
    """
    padding = [(1, 1) if each == axis else (0, 0) for each in (0, 1)]
    padded = np.pad(cells, padding, constant_values=outside)
    before, after = ((slice(None),) * axis + (cut,) for cut in (slice(None, -1), slice(1, None)))
    return padded[before] | padded[after]
