"""docs/models/discretize.md: its examples run, its links lead somewhere, its picture is small."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "models" / "discretize.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    told = capsys.readouterr().out
    # The ball right of the middle is sent to the left, and every car comes out of the valley.
    assert "Discretization(tilt in 40 x 40 cells" in told.splitlines()[0]
    assert told.splitlines()[0].endswith(" -1.0")
    assert "100 % terminated" in told


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert len(targets) >= 5
    for target in targets:
        assert (PAGE.parent / target).is_file(), target


def test_the_picture_is_small() -> None:
    picture = PAGE.parent.parent / "environments" / "mountain_car_costs.png"
    assert picture.stat().st_size < 150_000
