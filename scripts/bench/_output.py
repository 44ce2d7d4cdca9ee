"""What the benchmarks print and write: tables, in Markdown or for the terminal, and CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return "".join(markdown_row(line) + "\n" for line in (header, ["---"] * len(header), *rows))


def markdown_row(cells: Iterable[str]) -> str:
    """Return one line of such a table."""
    return f"| {' | '.join(cells)} |"


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None
) -> None:
    """Print a table as wide as it needs to be: words on the left, numbers on the right."""
    table = Table(title=title)
    rows = list(rows)
    for name, *cells in zip(header, *rows, strict=True):
        is_number = name != header[0] and any(cell[:1].isdigit() for cell in cells)
        table.add_column(name, justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(width=max(Console().width, 150)).print(table)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the lines of a CSV file by their columns' names, none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Add lines to a CSV file, whose columns are named by the first; no line makes no file."""
    if not rows:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write a CSV file anew."""
    path.unlink(missing_ok=True)
    append_rows(path, rows)
