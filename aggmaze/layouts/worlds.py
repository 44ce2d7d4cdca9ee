"""Grid worlds from text, lists, arrays and files: where the walls, the starts and the ends are.

What the signs mean is said in `aggmaze.layouts.signs`, and the two forms of text in
`aggmaze.layouts.text`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import own
from aggmaze.checks import check_choice
from aggmaze.grid import KingGrid
from aggmaze.layouts.layout import Layout, position
from aggmaze.layouts.signs import BLOCKED, FREE, SAME_AS, STARTS, Cell, table_of_signs
from aggmaze.layouts.text import (
    TextCells,
    cells_from_text,
    layout_to_text,
    names_file,
    naming,
    read_text,
    to_states,
)

#: How one may move: along the axes, as a king in chess does, or as that or not at all.
MOVES = ("four", "king", "king_or_stay")
#: What becomes of free cells from which no end can be reached.
UNREACHABLE = ("refuse", "allow", "block")

#: Text, lines, an array of 0 and 1 or of characters, or the path of a file with text.
Source = str | os.PathLike[str] | Sequence[Any] | NDArray[Any]


@dataclass(frozen=True, eq=False)
class GridWorld:
    """What a grid world is before any dynamics.

    Parameters
    ----------
    layout : Layout
        Passages, blocked cells, ends and signs; its goal is the first ``G``, or the first end
        where there is none.
    starts : ndarray of int
        States in which an episode may start; none where it is not said.
    cells : dict of str to Cell
        What each sign means.
    """

    layout: Layout
    starts: NDArray[np.int64]
    cells: dict[str, Cell]

    def __repr__(self) -> str:
        count = len(self.starts)
        return f"GridWorld({self.layout!r}, {count:,} start{'' if count == 1 else 's'})"

    @classmethod
    def read(
        cls,
        source: Source,
        signs: Mapping[str, Any] | None = None,
        *,
        goal: Sequence[int] | None = None,
        moves: str = "four",
        unreachable: str = "refuse",
    ) -> GridWorld:
        """Read a grid world.

        Parameters
        ----------
        source : str, path, sequence or ndarray
            Text in either form; its lines in a list, such as FrozenLake's maps; an array, top row
            first, of characters, or of 0 where free and 1 where blocked; or a path, as a
            ``pathlib.Path``, or as a str that ends in .txt or .map.
        signs : mapping, optional
            Rewards of signs, or all that they mean: see `aggmaze.layouts.signs`.
        goal : sequence of int, optional
            Coordinates of a ``G``, in the place of those of the text.
        moves : {"four", "king", "king_or_stay"}
            Which grid the layout has.
        unreachable : {"refuse", "allow", "block"}
            What becomes of free cells that no passages join to an end: an error names the first,
            they stay, or they are blocked.

        Raises
        ------
        TypeError
            If the source is none of these.
        ValueError
            If it is not a grid world, by line and column of the text, or an argument is none of
            those named.
        OSError
            If a file cannot be read.
        """
        check_choice("moves", moves, MOVES)
        check_choice("unreachable", unreachable, UNREACHABLE)
        if names_file(source):
            text = read_text(source)
            with naming(source):
                return cls.read(text, signs, goal=goal, moves=moves, unreachable=unreachable)
        table = table_of_signs(signs)
        text = text_of(source, table)
        known = "".join(dict.fromkeys(FREE + BLOCKED + STARTS + "A*" + "".join(table)))
        read = cells_from_text(
            text,
            walls="+-|" + known.replace(".", ""),
            blocks=known,
            hint="signs= says what others mean",
        )
        codes = read.codes.copy()
        for sign, meant in SAME_AS.items():
            if sign not in table:
                codes[codes == ord(sign)] = ord(meant)
        grid = read.grid
        if moves != "four":
            grid = KingGrid(grid.shape, stays=moves == "king_or_stay")
        if goal is not None:
            codes[codes == ord("G")] = ord(".")
            x, y = grid.coords(position("goal", grid, goal))
            if codes[-1 - y, x] == ord(BLOCKED):
                raise ValueError(f"the goal at {(int(x), int(y))} is blocked; give another goal")
            codes[-1 - y, x] = ord("G")
        signs_of_states = to_states(codes).copy()  # of a single row it is a view
        starts = np.flatnonzero(signs_of_states == ord(STARTS))
        for sign in FREE + BLOCKED + STARTS:
            signs_of_states[signs_of_states == ord(sign)] = 0
        ending = [ord(sign) for sign, cell in table.items() if cell.ends]
        ends = np.isin(signs_of_states, ending)
        if not ends.any():
            raise ValueError(
                "the maze has no end: write G into one of its free cells, or give goal=(x, y)"
            )
        returning = [ord(sign) for sign, cell in table.items() if cell.back]
        untrod = np.isin(signs_of_states, returning)
        blocked = to_states(codes == ord(BLOCKED))
        goals = np.flatnonzero(signs_of_states == ord("G"))

        def layout(blocked: NDArray[np.bool_]) -> Layout:
            return Layout(
                grid,
                to_states(read.passages),
                goal=int(goals[0]) if len(goals) else int(np.argmax(ends)),
                blocked=blocked if blocked.any() else None,
                ends=ends,
                signs=signs_of_states,
                untrod=untrod if untrod.any() else None,
            )

        made = layout(blocked)
        lost = made.free() & ~made.reaches_end()
        if unreachable == "refuse":
            read.refuse_lost(
                lost, "no end can be reached, as unreachable='allow' or 'block' lets be,"
            )
        elif unreachable == "block" and lost.any():
            made = _with_blocked(made, lost)
            starts = starts[~lost[starts]]
        _refuse_empty(made, read)
        return cls(made, own(starts, np.int64), table)

    def to_text(self, form: str = "walls") -> str:
        """Write the world as text, from which `read` with the same signs reads the same.

        Parameters
        ----------
        form : {"walls", "blocks"}
            As for `layout_to_text`.
        """
        return layout_to_text(self.layout, self.starts, form)

    def rewards(self) -> NDArray[np.float64]:
        """Return what each cell pays of its own, shape (S,); NaN where it pays as free ones do."""
        paid = np.full(self.layout.grid.num_states, np.nan)
        for sign, cell in self.cells.items():
            if cell.reward is not None:
                paid[self._with_sign(sign)] = cell.reward
        return paid

    def leads_back(self) -> NDArray[np.bool_]:
        """Return which cells lead back to the start, shape (S,)."""
        if self.layout.untrod is None:
            return np.zeros(self.layout.grid.num_states, dtype=bool)
        return self.layout.untrod

    def _with_sign(self, sign: str) -> NDArray[np.bool_]:
        assert self.layout.signs is not None
        return np.asarray(self.layout.signs == ord(sign))


def text_of(source: Any, table: Mapping[str, Any] | None = None) -> str:
    """Return the text of what a grid world is given by.

    Parameters
    ----------
    source : str, sequence or ndarray
        As for `GridWorld.read`.
    table : mapping, optional
        Signs that are known: 0 and 1 among them are no walls.

    Raises
    ------
    TypeError, ValueError
        As `GridWorld.read`.
    """
    if isinstance(source, str):
        lines = source.replace("\r\n", "\n").split("\n")
        return source if not _is_binary(lines, table) else _walls_of_digits(source)
    if isinstance(source, np.ndarray) and source.dtype.kind in "OUS" and source.ndim == 1:
        source = source.tolist()
    if isinstance(source, Sequence) and all(isinstance(row, str | bytes) for row in source):
        rows = [row.decode("utf-8") if isinstance(row, bytes) else row for row in source]
        if any("\n" in row for row in rows):
            row = next(k for k, row in enumerate(rows) if "\n" in row)
            raise ValueError(f"layout[{row}] = {rows[row]!r} must be a single line")
        if any("+" in row for row in rows):
            return "\n".join(rows)
        # Spaces in a list are free cells, where in text they may be indentation.
        text = "\n".join(row.replace(" ", ".") for row in rows)
        return _walls_of_digits(text) if _is_binary(rows, table) else text
    if isinstance(source, Sequence | np.ndarray):
        return _text_of_array(source)
    raise TypeError(
        "layout must be a maze as text, its lines, an array of 0 and 1 or of characters, or the "
        f"path of a file, got {type(source).__name__}"
    )


def _text_of_array(source: ArrayLike) -> str:
    """Return the text of an array of 0 and 1, or of characters, top row first."""
    try:
        array = np.asarray(source)
    except ValueError:  # rows of different lengths
        raise ValueError("layout must have rows of one length, as an array has") from None
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"layout must be an array of shape (rows, columns), not empty, got {array.shape}"
        )
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind == "U":
        wrong = np.argwhere(np.char.str_len(array) != 1)
        if len(wrong):
            row, column = wrong[0]
            raise ValueError(
                f"layout[{row}, {column}] = {str(array[row, column])!r} must be one character"
            )
        return "\n".join("".join(row).replace(" ", ".") for row in array.tolist())
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"layout must hold 0 and 1, or characters, got an array of dtype {array.dtype}"
        )
    wrong = np.argwhere(~((array == 0) | (array == 1)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"layout[{row}, {column}] = {array[row, column]} must be 0, free, or 1, blocked"
        )
    codes = np.where(array == 1, ord("#"), ord(".")).astype(np.uint8)
    return "\n".join(row.tobytes().decode("ascii") for row in codes)


def _is_binary(lines: Iterable[str], table: Mapping[str, Any] | None) -> bool:
    """Return whether lines hold nothing but 0 and 1, which no table gives another meaning."""
    if table is not None and ("0" in table or "1" in table):
        return False
    found = set().union(*(set(line.strip(" ")) for line in lines))
    return bool(found) and found <= {"0", "1"}


def _walls_of_digits(text: str) -> str:
    return text.translate({ord("1"): "#", ord("0"): "."})


def _with_blocked(layout: Layout, lost: NDArray[np.bool_]) -> Layout:
    """Return the layout with more cells blocked: whole rooms, so that no passage leads to one."""
    assert layout.signs is not None
    return Layout(
        layout.grid,
        layout.passages & ~lost[:, np.newaxis],
        goal=layout.goal,
        blocked=~layout.free() | lost,
        ends=layout.ends,
        signs=np.where(lost, 0, layout.signs).astype(np.uint32),
        untrod=None if layout.untrod is None else layout.untrod & ~lost,
    )


def _refuse_empty(layout: Layout, read: TextCells) -> None:
    if not (layout.free() & ~layout.is_end()).any():
        x, y = layout.grid.coords(layout.goal)
        raise ValueError(
            f"{read.place(len(read.codes) - 1 - int(y), int(x))}: there is no free cell beside the "
            "ends"
        )
