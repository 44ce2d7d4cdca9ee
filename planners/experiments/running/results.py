"""One result file a task, moved into place, so that what is there is whole."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aggmaze.files import atomic_file
from planners.experiments.running.tasks import Task
from planners.experiments.study import Outcome

_FORMAT = "aggmaze task 1"
_FOLDER = "results"


class Results:
    """The result files below a folder.

    Parameters
    ----------
    folder : Path
        Made where it is missing.
    report : callable
        ``report(text)`` is told of files that cannot be used.
    """

    def __init__(self, folder: Path, report: Callable[[str], object]) -> None:
        self._folder = folder / _FOLDER
        self._report = report
        self._superseded: set[str] = set()

    def path(self, task: Task) -> Path:
        """Return where the result of a task is kept."""
        return self._folder / task.experiment / f"{task.name}.json"

    def load(self, task: Task) -> Outcome | None:
        """Return the outcome of a task; None if there is none, or none that can be used."""
        path = self.path(task)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            self._refuse(path, str(error))
            return None
        expected = {"format": _FORMAT, **task.identity}
        if not isinstance(content, dict) or any(content.get(k) != v for k, v in expected.items()):
            self._refuse(path, "it is not of this task")
            return None
        if content.get("code") != task.code:
            self._supersede(task.experiment)
            return None
        values, seconds = content.get("values"), content.get("seconds")
        if not isinstance(values, dict) or not isinstance(seconds, dict):
            self._refuse(path, "its values are missing")
            return None
        if not _all_finite(values):
            self._refuse(path, "a value is not finite")
            return None
        return Outcome(values, seconds)

    def save(self, task: Task, outcome: Outcome) -> None:
        """Write the outcome of a task, whole or not at all.

        Parameters
        ----------
        task : Task
        outcome : Outcome
            Of finite numbers.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        path = self.path(task)
        content = {
            "format": _FORMAT,
            **task.identity,
            "code": task.code,
            "values": outcome.values,
            "seconds": outcome.seconds,
        }
        text = json.dumps(content, allow_nan=False)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as file:
                file.write(text.encode())
                # Some file systems move names before they write contents: if power fails then, the
                # file is there and empty.
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(
                f"{str(path)!r} cannot be written: {error.strerror or error}; results until then "
                "are kept, and the same command goes on from them"
            ) from error

    def clear_leftovers(self) -> None:
        """Remove the unfinished files of a run that was killed."""
        for path in self._folder.glob("*/.*.json.*"):
            path.unlink(missing_ok=True)

    def _supersede(self, experiment: str) -> None:
        """Say of an experiment, once, that results are of no use any more."""
        if experiment not in self._superseded:
            self._superseded.add(experiment)
            self._report(
                f"results of {experiment} in {self._folder} were made by other code than this and "
                "do not count: their tasks have to run again"
            )

    def _refuse(self, path: Path, reason: str) -> None:
        self._report(f"{path} cannot be used ({reason.splitlines()[0]}): its task runs again")


@contextmanager
def reserved(folder: Path) -> Iterator[None]:
    """Keep a folder to this process, made where it is missing.

    Raises
    ------
    OSError
        If it cannot be made or written to, or another process keeps it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(f"{str(folder)!r} is not a folder to write to") from None
    except OSError as error:
        raise OSError(
            f"the folder {str(folder)!r} cannot be written to: {error.strerror or error}"
        ) from None
    with lock:
        try:
            import fcntl
        except ModuleNotFoundError:  # not on Windows
            yield
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(f"another run is writing to {str(folder)!r}") from None
        yield


def _all_finite(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_all_finite, value.values()))
    if isinstance(value, list):
        return all(map(_all_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
