"""The pages on models run, and print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "models"
PAGES = ("functions.md", "matrices.md", "files.md", "by_rows.md")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(block, id=f"{page}-{number}")
    for page in PAGES
    for number, block in enumerate(BLOCK.findall((FOLDER / page).read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_print_what_they_say(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE)
    assert said
    exec(compile(block, "page", "exec"), {})
    assert capsys.readouterr().out.splitlines() == said


def test_russell_and_norvig_takes_a_dozen_lines() -> None:
    """Fewer than that, what is imported aside."""
    worlds = [param.values[0] for param in BLOCKS if "# N 0.705" in str(param.values[0])]
    assert len(worlds) == 3
    for world in worlds:
        lines = [line for line in str(world).splitlines() if line and "import" not in line]
        assert len(lines) < 12
