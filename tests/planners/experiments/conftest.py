"""What tests of whole experiments share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planners.experiments import EXPERIMENTS
from planners.experiments.reporting import report
from planners.experiments.study import Picture
from tests.planners.experiments.tiny import TINY


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every experiment tiny, at both scales, and the files of figures blank."""
    monkeypatch.setattr(report, "_write_picture", blank)
    for name, experiment in list(EXPERIMENTS.items()):
        args = TINY[name]
        monkeypatch.setitem(
            EXPERIMENTS, name, replace(experiment, scales={"small": args, "paper": args})
        )


def blank(folder: Path, picture: Picture) -> None:
    (folder / f"{picture.name}.png").write_bytes(b"blank")
