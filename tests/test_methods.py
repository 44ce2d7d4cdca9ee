"""Every method, and every option of one, is where people look for it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import planners
from planners import METHODS, cli

ROOT = Path(__file__).resolve().parent.parent


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its own heading."""
    text = "\n" + (ROOT / page).read_text(encoding="utf-8")
    below = text[text.index(f"\n{heading}\n") :]
    table = re.search(r"(?:^\|.*\|\n)+", below, flags=re.MULTILINE)
    assert table is not None
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def code(cells: Iterable[str]) -> list[str]:
    return [cell.strip("`") for cell in cells]


@pytest.mark.parametrize("heading", ["# The methods", "## One iteration of each"])
def test_tables_list_every_method_once(heading: str) -> None:
    table = rows("docs/methods.md", heading)
    assert sorted(code(row[0] for row in table)) == sorted(METHODS)
    assert all(cell for row in table for cell in row)


def options() -> dict[tuple[str, str], Any]:
    return {
        (name, field.name): field.default
        for name, method in METHODS.items()
        if method.options is not None
        for field in dataclasses.fields(method.options)
    }


def test_the_page_lists_every_option_with_its_default() -> None:
    table = rows("docs/methods.md", "## Options")
    found = {tuple(code(row[:2])): ast.literal_eval(row[2].strip("`")) for row in table}
    assert len(found) == len(table)
    assert found == options()


def test_the_docstring_of_solve_lists_every_option() -> None:
    text = inspect.getdoc(planners.solve) or ""
    items = re.findall(r"- ``(\w+)``: ((?:``\w+``,?\s*)+)", text)
    found = [(method, name) for method, names in items for name in re.findall(r"``(\w+)``", names)]
    assert sorted(found) == sorted(options())


def test_the_command_lists_every_method(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["aggmaze", "solve", "--help"])
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit):
        cli.main()
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "--method" in line]
    for name in METHODS:
        assert re.search(rf"\b{name}\b", line)
