"""What the commands in this folder share: a virtual environment with the project in it.

:func:`ensure` makes ``.venv`` beside the README when there is none, installs the project into it,
and returns its Python; when that is done already, it says nothing and returns at once. What has
been done is recorded in ``.venv/aggmaze-setup.json``. That record is there from the first moment
of a ``.venv`` made here and is the last file to go, so a ``.venv`` without it is somebody else's
and is never deleted.

Python 3.6 can still read this file (hence the quoted annotations), so that an old Python gets a
sentence instead of a traceback.
"""

import argparse
import contextlib
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
RECORD = VENV / "aggmaze-setup.json"
NEW = VENV / "aggmaze-setup.new"
# Where the Python of .venv is to find the packages.
PLACES = {name: os.path.realpath(str(ROOT / name)) for name in ("aggmaze", "planners")}
OLDEST_PYTHON = (3, 11)
# Seconds between looks at what a command prints, and between lines where there is no terminal.
LOOK_EVERY = 1.0
LINE_EVERY = 15.0

# Run by the Python of .venv: which Python that is, and what it finds installed.
PROBE = """
import importlib.util, json, os, pathlib, sys, sysconfig
def place(name):
    spec = importlib.util.find_spec(name)
    return os.path.realpath(list(spec.submodule_search_locations or [""])[0]) if spec else ""
site = pathlib.Path(sysconfig.get_path("purelib"))
print(json.dumps({
    "version": list(sys.version_info[:2]),
    "prefix": os.path.realpath(sys.prefix),
    "has_pip": bool(place("pip")),
    "places": [place(name) for name in sys.argv[1:]],
    "installed": sorted(
        p.name.split("-")[0] + p.suffix if p.suffix == ".dist-info" else p.name
        for p in site.iterdir() if not p.name.startswith(("__pycache__", "__editable__"))
    ),
}))
"""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as all commands of the project do."""

    def __init__(self, description: str) -> None:
        super().__init__(description=description, allow_abbrev=False)
        # Set when a script, which starts in any Python, starts itself in that of .venv.
        self.add_argument("--in-venv", action="store_true", help=argparse.SUPPRESS)

    def error(self, message: str) -> "NoReturn":
        """Say it, and end with 2."""
        self.exit(2, f"error: {message}; see {self.prog} --help\n")

    def check_least(self, arguments: argparse.Namespace, **least: int) -> None:
        """End with an error if one of these arguments is less than that."""
        for name, number in least.items():
            given = getattr(arguments, name)
            if given < number:
                self.error(f"--{name} must be at least {number}, got {given}")


class SetupError(Exception):
    """The virtual environment cannot be set up; the message says why, for the user to read."""


class DamagedDownloadError(SetupError):
    """A package arrived damaged, which pip finds out but does not try again."""


def run(main: "Callable[[], int]") -> None:
    """Run a command's ``main`` and end the process with the exit code it returns."""
    if sys.version_info < OLDEST_PYTHON:
        needs = ".".join(map(str, OLDEST_PYTHON))
        this = ".".join(map(str, sys.version_info[:3]))
        print(f"aggmaze needs Python {needs} or newer, this is {this}.", file=sys.stderr)
        sys.exit(2)
    try:
        code = main()
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        code = 130
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 1
    sys.exit(code)


def call(
    command: "Sequence[str | Path]", meanwhile: "Callable[[], None] | None" = None, **options: Any
) -> int:
    """Run a command and return its exit code; on Ctrl-C, wait for the command to end as well.

    What there is to do meanwhile is called once a second.
    """
    process = subprocess.Popen([str(word) for word in command], **options)
    try:
        code = None
        while code is None:
            try:
                code = process.wait(timeout=LOOK_EVERY if meanwhile else None)
            except subprocess.TimeoutExpired:
                assert meanwhile is not None
                meanwhile()
    except KeyboardInterrupt:
        # The terminal has sent Ctrl-C to the command too: give it time to clean up behind itself.
        for insist in (None, process.terminate, process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                if insist:
                    insist()
                process.wait(timeout=5)
                break
        raise
    return code if code >= 0 else 128 - code


def start_again(extras: str) -> int:
    """Start the command that runs again, with ``--in-venv``, in the Python of .venv.

    Parameters
    ----------
    extras
        What it needs, as for `ensure`.

    Returns
    -------
    int
        Its exit code.
    """
    python = ensure(extras)
    # It draws into files, so it needs no screen.
    environment = {"MPLBACKEND": "Agg", "SDL_VIDEODRIVER": "dummy", **os.environ}
    script = Path(sys.argv[0]).resolve()
    return call([python, script, "--in-venv", *sys.argv[1:]], env=environment)


def ensure(extras: str) -> Path:
    """Make the virtual environment and install the project into it, as far as that is not done.

    Parameters
    ----------
    extras
        The extras of the project to install, with commas between them. Those that an earlier
        call has installed stay.

    Returns
    -------
    Path
        The Python of the virtual environment.
    """
    wanted = set(extras.split(","))
    try:
        # Twice, since while this waits for the lock another command may do the work.
        if _outstanding(wanted):
            with _lock() as lock:
                todo = _outstanding(wanted)
                if todo:
                    _set_up(wanted, todo, lock)
    except OSError as error:
        raise SetupError(f"cannot set up {VENV}: {error}") from error
    return _python()


def _python() -> Path:
    return VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def command(name: str) -> str:
    """Return how to call a command of .venv, as typed in the folder where this was called."""
    path = _python().parent / name
    with contextlib.suppress(ValueError):  # somewhere else
        path = path.relative_to(Path.cwd())
    return shlex.quote(str(path))


def _key() -> str:
    """Return what, when it changes, asks for a new installation."""
    return hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()


def _read_record() -> "dict[str, Any]":
    """Return what the record says, or nothing if there is none."""
    try:
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _write_record(record: "dict[str, Any]") -> None:
    """Write the record in one step, so that it is never half-written."""
    NEW.write_text(json.dumps(record) + "\n", encoding="utf-8")
    NEW.replace(RECORD)


def _probe() -> "dict[str, Any]":
    """Ask the Python of .venv about itself; an empty answer if it does not work."""
    try:
        answer = subprocess.run(
            [str(_python()), "-I", "-c", PROBE, *PLACES],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=True,
        )
        probe: dict[str, Any] = json.loads(answer.stdout.decode())
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return probe


def _outstanding(wanted: "set[str]") -> "tuple[str, str] | None":
    """Say what is to be done, "make", "remake" or "install", and why; None if nothing is."""
    if not os.path.lexists(str(VENV)):
        return "make", ""
    if VENV.is_dir() and not VENV.is_symlink() and {p.name for p in VENV.iterdir()} <= {NEW.name}:
        return "make", ""  # nothing in it: stopped at the first moment, and nobody's loss

    record = _read_record()
    ours = bool(record.get("made_here")) and not VENV.is_symlink()
    probe = _probe()
    this = list(sys.version_info[:2])
    is_whole = bool(probe) and set(record.get("installed", [])) <= set(probe["installed"])
    fault = ""
    if ours and record.get("busy"):
        fault = "an earlier set-up was interrupted"
    elif not probe:
        fault = "its Python does not run"
    elif probe["prefix"] != os.path.realpath(str(VENV)):
        fault = "its Python is not that of a virtual environment"
    elif not probe["has_pip"]:
        fault = "it has no pip"
    elif ours and record.get("root") != str(ROOT):
        fault = "it was made in another folder"
    elif ours and probe["version"] != this:
        fault = "it is of Python {}.{} and this is {}.{}".format(*probe["version"], *this)
    elif ours and not is_whole:
        fault = "some of what was installed is gone"
    elif not ours and tuple(probe["version"]) < OLDEST_PYTHON:
        fault = "it is of Python {}.{}, which is too old".format(*probe["version"])

    if fault and ours:
        return "remake", fault
    if fault:
        raise SetupError(
            f"there is a .venv already, {VENV}, but {fault}. It was not made by this command, "
            "so it is left alone: please move it away or mend it."
        )
    done = (
        not record.get("busy")
        and record.get("key") == _key()
        and record.get("version") == probe["version"]
        and wanted <= set(record.get("extras", []))
        and is_whole
        and probe["places"] == list(PLACES.values())
    )
    return None if done else ("install", "")


def _set_up(wanted: "set[str]", todo: "tuple[str, str]", lock: "int | None") -> None:
    """Do what is to be done; called under the lock."""
    step, reason = todo
    if step != "install":
        _need_venv_module()
    record = _read_record()
    extras = sorted(wanted.union(record.get("extras", [])))
    project = "aggmaze[{}]".format(",".join(extras))
    started = time.monotonic()
    begin = {
        "make": f"Making .venv and installing {project} into it",
        "remake": f"Making .venv anew ({reason}) and installing {project} into it",
        "install": f"Installing {project} into .venv",
    }[step]
    print(f"{begin}.", flush=True)
    print("This takes one to three minutes, and longer where the network is slow.", flush=True)

    if step != "install":
        VENV.mkdir(exist_ok=True)
        record = {"made_here": True, "root": str(ROOT), "extras": extras}
        _write_record({**record, "busy": True})
        for entry in VENV.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry != RECORD:
                entry.unlink()
        # The Python that this one's own environment comes from, if it has one: that environment
        # may be the .venv just cleared.
        base = getattr(sys, "_base_executable", None) or sys.executable
        _call_quietly(
            [base, "-I", "-m", "venv", "--prompt", "aggmaze", VENV],
            "making the virtual environment",
            "the virtual environment could not be made",
            lock,
        )

    _write_record({**record, "busy": True})
    pip = ["-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    project_here = ".[{}]".format(",".join(extras))
    command = [_python(), *pip, "--progress-bar=off", "--editable", project_here]
    failure = f"pip could not install {project}"
    try:
        try:
            _call_quietly(command, "starting pip", failure, lock)
        except DamagedDownloadError as error:
            print(f"{error}. Trying once more.", file=sys.stderr, flush=True)
            _call_quietly([*command, "--no-cache-dir"], "starting pip", failure, lock)
    except SetupError:
        _write_record(record)  # pip has given up in good order, so .venv is as it was
        raise

    probe = _probe()
    if not probe or probe["places"] != list(PLACES.values()):
        raise SetupError(f"pip has installed {project}, but {_python()} does not find it")
    _write_record(
        {
            "made_here": bool(record.get("made_here")),
            "root": str(ROOT),
            "busy": False,
            "extras": extras,
            "key": _key(),
            "version": probe["version"],
            "installed": probe["installed"],
        }
    )
    print(f"Done in {time.monotonic() - started:.0f} s.", flush=True)


def _need_venv_module() -> None:
    """Check that this Python can make virtual environments; some systems package that apart."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        version = "{}.{}".format(*sys.version_info)
        raise SetupError(
            f"this Python has no module {error.name}, so it cannot make a virtual environment. "
            f"On Debian and Ubuntu the module is in the package python{version}-venv: "
            f"sudo apt install python{version}-venv"
        ) from error


class StatusLine:
    """Tells how far something is: in place on a terminal, elsewhere in a line now and then."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._width = 0

    def tell(self, text: str) -> None:
        """Tell it, if it is time."""
        now = time.monotonic()
        if sys.stdout.isatty():
            self._show(text[: shutil.get_terminal_size().columns - 1])
        elif now >= self._told + LINE_EVERY:
            self._told = now
            print(text if len(text) <= 100 else f"{text[:97]}...", flush=True)

    def clear(self) -> None:
        """Take away what stands on the terminal."""
        if self._width:
            self._show("")
            print("\r", end="", flush=True)

    def _show(self, text: str) -> None:
        print(f"\r{text:{self._width}}", end="", flush=True)
        self._width = len(text)


class _Waiting:
    """Tells what a command does that prints into a file: its last line, or what it does first."""

    def __init__(self, printed: Path, at_first: str) -> None:
        self._printed, self._at_first = printed, at_first
        self._started = time.monotonic()
        self.line = StatusLine()

    def __call__(self) -> None:
        """Tell it."""
        lines = self._printed.read_text(encoding="utf-8", errors="replace").split("\n")
        doing = next((line.strip() for line in reversed(lines) if line.strip()), self._at_first)
        self.line.tell(f"  {time.monotonic() - self._started:.0f} s: {doing}")


def _call_quietly(
    command: "Sequence[str | Path]", at_first: str, failure: str, lock: "int | None"
) -> None:
    """Run a command in the checkout, and tell of it while it runs, at first in these words.

    If it fails, show what it has printed, and why it failed.
    """
    # The command holds the lock as well: if this process is killed, the next waits for its end.
    held = () if lock is None or sys.platform == "win32" else (lock,)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "printed"
        waiting = _Waiting(file, at_first)
        with file.open("wb") as output:
            try:
                code = call(
                    command,
                    waiting,
                    cwd=str(ROOT),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=held,
                    env={**os.environ, "PIP_USER": "0"},
                )
            finally:
                waiting.line.clear()
        if code == 0:
            return
        printed = file.read_text(encoding="utf-8", errors="replace")
    print(printed, file=sys.stderr)
    errors = [line.strip() for line in printed.splitlines() if line.strip().startswith("ERROR: ")]
    reason = f": {errors[-1][len('ERROR: ') :]}" if errors else ""
    if "Retrying (" in printed:
        reason = ": the package index could not be reached"
    kind = DamagedDownloadError if "DO NOT MATCH THE HASHES" in printed else SetupError
    raise kind(f"{failure} (its output is above; exit code {code}){reason}")


@contextlib.contextmanager
def _lock() -> "Iterator[int | None]":
    """Keep other commands from working on .venv: a lock on this very file, which leaves none."""
    with Path(__file__).open("r+b") as file:
        try:
            if not _try_lock(file.fileno()):
                print("Waiting for another command to set up .venv.", flush=True)
                while not _try_lock(file.fileno()):
                    time.sleep(0.2)
        except OSError:
            yield None  # a file system without locks
        else:
            yield file.fileno()


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            # Far behind the end of the file, since on Windows what is locked cannot be read.
            os.lseek(descriptor, 1 << 30, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
