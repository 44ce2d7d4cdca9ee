"""What pyproject.toml offers is there."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import aggmaze
import aggmaze_command

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Those of people who work on the project, not with it.
FOR_DEVELOPERS = {"test", "dev"}


@pytest.mark.parametrize("extra", sorted(set(PROJECT["optional-dependencies"]) - FOR_DEVELOPERS))
def test_every_extra_has_a_feature_that_needs_it(extra: str) -> None:
    requirements = PROJECT["optional-dependencies"][extra]
    modules = [re.split(r"[<>=~!]", text)[0].replace("-", "_") for text in requirements]
    uses = re.compile(rf"(import|from|importorskip\(\") *({'|'.join(modules)})\b")
    folders = ("aggmaze", "planners", "scripts", "tests")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert any(uses.search(path.read_text(encoding="utf-8")) for path in sources)


def test_the_version_is_one() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, flags=re.MULTILINE) == [PROJECT["version"]]
    assert PROJECT["version"] == aggmaze.__version__


def test_the_command_is_what_is_installed() -> None:
    point = EntryPoint("aggmaze", PROJECT["scripts"]["aggmaze"], "console_scripts")
    assert point.load() is aggmaze_command.main
