"""The pages of docs/environments/ are those of the docstrings, and their examples run."""

from __future__ import annotations

import inspect
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import load_env_creator
from PIL import Image

import aggmaze
import planners
from aggmaze.keys import ESCAPE
from aggmaze.rendering.window import Key, Window
from planners import cli

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "environments"
PAGES = sorted(FOLDER.glob("*.md"))
MOST_BYTES_OF_A_PICTURE = 60_000
SECTIONS = [
    "Description",
    "Action Space",
    "Observation Space",
    "Starting State",
    "Rewards",
    "Episode End",
    "Transition Model",
    "Information",
    "Arguments",
    "Version History",
]

every_id = pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def docstring(env_id: str) -> str:
    creator = load_env_creator(gym.spec(env_id).entry_point)
    return inspect.getdoc(creator) or ""


def test_pages_and_pictures_are_up_to_date() -> None:
    script = ROOT / "scripts" / "docs" / "environments.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@every_id
def test_a_picture_that_lacks_something_is_noticed(env_id: str, tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "docs" / "environments.py"))
    arguments, gamma = next(page[2:] for page in script["PAGES"] if page[0] == env_id)
    env = gym.make(env_id, render_mode="rgb_array", **arguments)
    env.reset(seed=0)
    policy = planners.solve(env, gamma=gamma).policy
    if "Maze" in env_id:
        whole, lacking = {"policy": policy, "path": True}, {"policy": policy}
    else:
        whole, lacking = {"policy": policy}, {}
    for folder, overlay in (("made", whole), ("kept", lacking)):
        env.unwrapped.set_overlay(**overlay)
        (tmp_path / folder).mkdir()
        Image.fromarray(env.render()).save(tmp_path / folder / "picture.png")
    assert script["differences"](tmp_path / "made", tmp_path / "made") == []
    assert script["differences"](tmp_path / "made", tmp_path / "kept") == ["picture.png"]


def test_pictures_are_small() -> None:
    for page in PAGES:
        picture = page.with_suffix(".png")
        assert not picture.exists() or picture.stat().st_size < MOST_BYTES_OF_A_PICTURE


@every_page
def test_python_examples_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for example in blocks(page, "python"):
        exec(compile(example, page.name, "exec"), names)


def test_there_are_examples() -> None:
    assert len(PAGES) >= 6
    for page in PAGES:
        assert blocks(page, "python") or page.name == "README.md"


@every_page
def test_commands_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Who plays gives up at once.
    monkeypatch.setattr(Window, "pressed", lambda self: [Key(ESCAPE, "")])
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            command = shlex.split(line, comments=True)
            assert command[0] == ".venv/bin/aggmaze"
            monkeypatch.setattr(sys, "argv", ["aggmaze", *command[1:]])
            with pytest.raises(SystemExit) as ended:
                cli.main()
            assert ended.value.code == 0


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (FOLDER / target).is_file(), target


@every_id
def test_sections_are_in_order(env_id: str) -> None:
    assert re.findall(r"^## (.*)$", docstring(env_id), flags=re.MULTILINE) == SECTIONS


@every_id
def test_every_argument_is_told_with_its_default(env_id: str) -> None:
    text = docstring(env_id)
    arguments = text[text.index("## Arguments") :]
    names = {
        name
        for line in re.findall(r"^- (`.*?):", arguments, flags=re.MULTILINE)
        for name in re.findall(r"`(\w+)`", line)
    }
    parameters = inspect.signature(load_env_creator(gym.spec(env_id).entry_point)).parameters
    assert names == set(parameters)
    example = next(
        block
        for block in re.findall(r"^```python\n(.*?)^```$", arguments, re.DOTALL | re.MULTILINE)
        if "render_mode=None" in block
    )
    given: dict[str, Any] = {}
    call = example[example.index("gym.make(") :].replace("gym.make(", "dict(id=", 1)
    exec(f"given.update({call.strip()})", {"given": given, "dict": dict})
    assert given.pop("id") == env_id
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    assert given == defaults


@every_id
def test_the_picture_in_the_docstring_is_what_ansi_shows(env_id: str) -> None:
    text = docstring(env_id)
    (drawn,) = re.findall(r"^```text\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    shape = re.search(r"`shape=(\([\d, ]+\))`", text[: text.index("```text")])
    options = {} if shape is None else {"shape": tuple(map(int, shape[1].strip("()").split(",")))}
    env = gym.make(env_id, render_mode="ansi", **options)
    env.reset(seed=0)
    assert drawn.rstrip("\n") == env.render()
