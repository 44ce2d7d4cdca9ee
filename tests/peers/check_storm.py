"""Files to and from the model checker Storm, and its values beside those of `solve`.

    python3 tests/peers/check_storm.py

Run with the project's Python.  Storm runs in another: ``--storm PYTHON``, of an environment that
has stormpy, or one that is made for it here by Python 3.12 (its wheels are for no other).  Where
there is none, it says so in a line that begins with SKIPPED, and ends with 0.

Prints a line for each check and how many passed and failed, and exits with 1 if one failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import aggmaze
import planners

HERE = Path(__file__).parent
AGREEMENT = 1e-8
# What Storm minimises must not be negative, so the goal pays nothing.
OURS: dict[str, dict[str, Any]] = {
    "StandardMaze-v0": {"shape": (12, 12), "p": 0.9, "goal_reward": -1.0},
    "TerrainMaze-v0": {"shape": (12, 12), "p": 0.8, "goal_reward": 0.0},
    "NDMaze-v0": {"shape": (4, 4, 4), "p": 0.5, "goal_reward": -1.0},
    "CliffWalking-v1": {},
}

Check = tuple[str, bool, str]


def storm_python(given: str | None, folder: Path) -> str:
    """Return a Python that has stormpy; "" with a line that says why if there is none."""
    if given is not None:
        return given
    python = next(iter(python_3_12()), None)
    if python is None:
        print("SKIPPED: stormpy has wheels for Python 3.12 only, and no python3.12 was found")
        return ""
    subprocess.run([python, "-m", "venv", folder / "storm"], check=True)
    inside = folder / "storm" / "bin" / "python"
    wanted = ["-r", str(HERE / "requirements-storm.txt")]
    done = subprocess.run(
        [inside, "-m", "pip", "install", "--quiet", "--only-binary=:all:", *wanted], check=False
    )
    if done.returncode:
        print("SKIPPED: stormpy could not be installed (no wheel for this machine, or no network)")
        return ""
    return str(inside)


def python_3_12() -> Iterator[str]:
    """Yield those that are found: on the path, and where pyenv keeps them."""
    found = shutil.which("python3.12")
    if (
        found
        and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0
    ):
        yield found
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(root.glob("versions/3.12.*/bin/python")))


def total(model: Any, dead_ends: Any = None) -> float:
    """Return the least total cost from the first state, as exactly as `solve` gives it."""
    options = {} if dead_ends is None else {"dead_ends": dead_ends}
    objective = planners.TotalCost(**options)
    result = planners.solve(model, objective=objective, tol=1e-11)
    starts = np.flatnonzero(model.initial[: model.num_listed_states])
    return float(model.initial[starts] @ result.values[starts])


def agreement(name: str, ours: float, theirs: float) -> Check:
    far = abs(ours - theirs) / max(1.0, abs(theirs)) if ours != theirs else 0.0
    return name, far <= AGREEMENT, f"{ours!r} and {theirs!r}"


def write_ours(folder: Path) -> dict[str, float]:
    """Write models for Storm, and return the value of each file."""
    expected, listed = {}, []
    for env_id, options in OURS.items():
        model = planners.as_model(gym.make(env_id, **options))
        # With one first state, from which Storm's answer is.
        table = model.to_tabular()
        start = np.zeros(model.num_states)
        start[int(np.argmax(model.initial))] = 1.0
        table = aggmaze.TabularMDP(
            table.transitions, table.costs, action_mask=table.action_mask,
            terminal=table.terminal, initial=start, outcome_costs=table.outcome_costs,
            num_added_states=table.num_added_states,
        )  # fmt: skip
        value = total(table)
        for suffix in (".umb", ".drn"):
            name = f"{env_id}{suffix}"
            aggmaze.save_model(table, folder / name)
            expected[name] = value
            listed.append({"file": name})
    (folder / "ours.json").write_text(json.dumps(listed))
    return expected


def checks(folder: Path, expected: dict[str, float]) -> Iterator[Check]:
    """Compare what Storm found with what we find."""
    told = json.loads((folder / "storm.json").read_text())
    for entry in told["ours"]:
        yield agreement(f"Storm reads {entry['file']}", expected[entry["file"]], entry["value"])
    for entry in told["published"]:
        name = f"{entry['name']}: {entry.get('question')} {entry.get('goal')}"
        if "missing" in entry:
            yield name, False, f"Storm knows no label {entry['missing']}"
            continue
        for suffix in (".umb", ".drn", "-exact.drn"):
            model, sign = read(folder / f"{entry['stem']}{suffix}", entry)
            assert model.num_listed_states == entry["states"]
            yield agreement(f"{name}, {suffix}", sign * total(model), entry["value"])
    for entry in told["explicit"]:
        options = {key: entry[key] for key in ("labels", "transition_rewards") if key in entry}
        values = "reach" if entry["question"] == "reach" else "costs"
        model = aggmaze.load_model(entry["path"], goal=entry["goal"], values=values, **options)
        sign = -1.0 if values == "reach" else 1.0
        yield agreement(f"explicit {Path(entry['path']).name}", sign * total(model), entry["value"])


def read(path: Path, entry: dict[str, Any]) -> tuple[Any, float]:
    """Return the model that asks what Storm was asked, and the sign of the answer."""
    question = entry["question"]
    if question in ("reach", "avoid"):
        model = aggmaze.load_model(path, goal=entry["goal"], values=question)
        return model, -1.0 if question == "reach" else 1.0
    structure = entry["structure"]
    if structure == "" and path.suffix == ".umb":
        structure = None  # the only one, to which UMB gives a name
    values = "costs" if question == "min" else "rewards"
    model = aggmaze.load_model(path, goal=entry["goal"], structure=structure, values=values)
    return model, 1.0 if question == "min" else -1.0


def main() -> int:
    """Run the checks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--storm", metavar="PYTHON", help="that has stormpy")
    asked = parser.parse_args()
    start, passed, failed = time.perf_counter(), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = storm_python(asked.storm, folder)
        if not python:
            return 0
        expected = write_ours(folder)
        subprocess.run([python, HERE / "storm_side.py", folder], check=True)
        for label, holds, seen in checks(folder, expected):
            print(f"{'ok    ' if holds else 'FAILED'} {label}: {seen}", flush=True)
            passed, failed = passed + holds, failed + (not holds)
    print(f"{passed} passed, {failed} failed in {time.perf_counter() - start:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
