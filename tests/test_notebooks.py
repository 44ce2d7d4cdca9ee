"""Notebooks lie in git without outputs, named on their page; `tests/notebooks` runs them."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    assert cells[0]["cell_type"] == "markdown"
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in codes)
    # What a number in the text means is asserted somewhere.
    # But for what is IPython's, such as %matplotlib.
    trees = [
        ast.parse("".join(line for line in cell["source"] if not line.startswith("%")))
        for cell in codes
    ]
    assert any(isinstance(node, ast.Assert) for tree in trees for node in ast.walk(tree))


def test_the_page_names_each() -> None:
    assert len(NOTEBOOKS) == 3
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        assert f"[{path.name}]({path.name})" in page
