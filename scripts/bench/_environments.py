"""An environment of its own for each peer, made once and kept outside the repository."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent / "adapters" / "requirements"
RECORD = "benchmark.json"
#: Pythons to try, best first: some peers' last versions need more than the project does.
PYTHONS = ("python3.12", "python3.13", sys.executable)


class NotMadeError(Exception):
    """An environment cannot be made; the message says why."""


@dataclass(frozen=True)
class Environment:
    """A Python with a peer in it.

    Parameters
    ----------
    python : str
        Path of the interpreter.
    versions : dict
        Version of Python, under "python", and of each package in it.
    """

    python: str
    versions: dict[str, str]


def default_folder() -> Path:
    """Return where environments are kept if nothing else is said."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "aggmaze-bench"


def find_python(asked: str | None) -> str:
    """Return the Python to make environments with: that asked for, or the first that runs."""
    for name in (asked,) if asked else PYTHONS:
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return path
    raise NotMadeError(f"{asked!r} does not run")


def environment(name: str, folder: Path, python: str) -> Environment:
    """Return the environment of a peer, made by ``python`` where it is not there already.

    Parameters
    ----------
    name : str
        Of ``requirements/NAME.txt``, and of ``NAME.no-deps.txt`` where there is one.
    folder : Path
        Where environments are kept.
    python : str
    """
    wanted = REQUIREMENTS / f"{name}.txt"
    alone = REQUIREMENTS / f"{name}.no-deps.txt"
    files = [path for path in (wanted, alone) if path.exists()]
    stamp = hashlib.sha256(b"\0".join([python.encode(), *(p.read_bytes() for p in files)]))
    place = folder / name
    record = place / RECORD
    executable = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if record.exists():
        found = json.loads(record.read_text())
        if found["stamp"] == stamp.hexdigest():
            return Environment(str(executable), found["versions"])
    if place.exists():
        if not record.exists():
            raise NotMadeError(f"{place} is no environment made by this script; remove it")
        shutil.rmtree(place)
    place.mkdir(parents=True)
    # From the first moment, so that one left half made is made again.
    record.write_text(json.dumps({"stamp": "", "versions": {}}))
    _run([python, "-m", "venv", str(place)])
    pip = [str(executable), "-m", "pip", "--disable-pip-version-check"]
    _run([*pip, "install", "--quiet", "--requirement", str(wanted)])
    if alone.exists():
        _run([*pip, "install", "--quiet", "--no-deps", "--requirement", str(alone)])
    listed = json.loads(_run([*pip, "list", "--format", "json"]))
    versions = {package["name"].lower(): package["version"] for package in listed}
    versions["python"] = _run([str(executable), "-c", "import sys; print(sys.version.split()[0])"])
    record.write_text(json.dumps({"stamp": stamp.hexdigest(), "versions": versions}, indent=1))
    return Environment(str(executable), versions)


def existing(name: str, folder: Path) -> Environment | None:
    """Return the environment of a peer as it is there, whatever Python made it; None for none.

    Where another Python is the first to run today, `environment` would make it anew with that, and
    take it from others who measure with it.
    """
    record = folder / name / RECORD
    executable = folder / name / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not (record.exists() and executable.exists()):
        return None
    found = json.loads(record.read_text())
    return Environment(str(executable), found["versions"]) if found["stamp"] else None


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise NotMadeError(f"{' '.join(command[:4])} …: {lines[-1] if lines else 'failed'}")
    return done.stdout.strip()
