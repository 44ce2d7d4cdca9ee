"""The one call: solve, and see it happen; in a window, or in a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from aggmaze.checks import check_choice, did_you_mean
from aggmaze.models.model import Model
from planners.adapters import as_model
from planners.objective import Discounted, Objective, as_objective
from planners.record import Callback, Progress
from planners.result import SolveResult
from planners.solve import AUTO, solve
from planners.watching import movies
from planners.watching.film import Film, Frame, Point, chosen
from planners.watching.page import Shown, write_page
from planners.watching.painter import THEMES, Painter, Words, snug_size, table_of_colors
from planners.watching.routes import Routes
from planners.watching.scenes import Scene, scene_of

#: What a recording may be, by the end of its name.
SUFFIXES = (".gif", ".mp4", ".html")
#: What is watched where no method is named.
METHOD = "adaptive_aggregation"
# Frames of each kind of file, pixels of a picture, and milliseconds of a frame and of the last one.
_FRAMES = {".gif": 80, ".mp4": 300, ".html": 160}
_SIZES = {".gif": (720, 480), ".mp4": (1280, 800)}
_FRAME_TIME, _END_TIME = {".gif": 120, ".mp4": 80}, 2500


def check_recording(path: str | os.PathLike[str]) -> str:
    """Refuse before the work a recording that could not be written after it.

    Parameters
    ----------
    path : path

    Returns
    -------
    str
        Its suffix, one of `SUFFIXES`.

    Raises
    ------
    ValueError
        If the name ends in something else.
    FileNotFoundError, IsADirectoryError
        If there is no folder to write it to, or it is a folder.
    ModuleNotFoundError
        If it is a film and no encoder is installed.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(
            f"record must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got {str(path)!r}"
            f"{did_you_mean(suffix, SUFFIXES)}"
        )
    if target.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a directory, not a file to write")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {str(target.parent)!r} to write {target.name!r} to"
        )
    if suffix == ".mp4":
        movies.check_ffmpeg()
    return suffix


def words_of(source: Any, method: str, objective: Objective, title: str | None) -> Words:
    """Return what stands above the pictures of a run.

    Parameters
    ----------
    source
        The environment, or what else holds the model.
    method : str
    objective : Objective
    title : str, optional
        In place of the name of the environment.
    """
    if title is None:
        spec = getattr(source, "spec", None) if isinstance(source, gym.Env) else None
        title = spec.id if spec is not None else type(source).__name__
    return Words(title, f"{method.replace('_', ' ')}, {objective}")


class Recorder:
    """A callback of `solve` that keeps frames of the run.

    Parameters
    ----------
    film : Film
    num_states : int
        That the model lists.
    also : callable, optional
        Another callback.
    """

    def __init__(self, film: Film, num_states: int, also: Callback | None = None) -> None:
        self.film = film
        self._num_states = num_states
        self._also = also

    def __call__(self, progress: Progress) -> bool:
        """Take an iteration in."""
        self.film.note(progress)
        if self.film.wants(progress.iteration):
            self.film.add(Frame.of(progress, self._num_states))
        return bool(self._also is not None and self._also(progress))


def watch(
    env: Any,
    *,
    gamma: float | None = None,
    objective: Objective | None = None,
    method: str | None = None,
    record: str | os.PathLike[str] | None = None,
    theme: str = "light",
    title: str | None = None,
    size: tuple[int, int] | None = None,
    frames: int | None = None,
    callback: Callback | None = None,
    telling: Callable[[str], object] | None = None,
    **arguments: Any,
) -> SolveResult:
    """Solve, and see it happen."""
    asked = as_objective(gamma, objective)
    check_choice("theme", theme, tuple(THEMES))
    if method is None:
        method = METHOD if isinstance(asked, Discounted) else AUTO
    tell = telling or (lambda text: None)
    assert record is not None
    suffix = check_recording(record)
    model = as_model(env)
    scene = scene_of(env, model)
    film = Film(model.num_listed_states)
    recorder = Recorder(film, model.num_listed_states, callback)
    result = solve(model, objective=asked, method=method, callback=recorder, **arguments)
    _end(film, result)
    words = words_of(env, result.method, asked, title)
    routes = Routes(model, asked)
    write_recording(
        record, film, scene, words, routes, theme=theme, size=size, frames=frames, telling=tell
    )
    return result


def _end(film: Film, result: SolveResult) -> None:
    """Let the film end with the result."""
    megastates = film.frames[-1].num_megastates if film.frames else 0
    film.add(Frame.last(result, megastates))
    history = result.history
    if len(history.iteration):
        film.close(Point(result.num_updates, float("nan"), result.bound, megastates))


def write_recording(
    path: str | os.PathLike[str],
    film: Film,
    scene: Scene,
    words: Words,
    routes: Routes,
    *,
    theme: str,
    size: tuple[int, int] | None,
    frames: int | None,
    telling: Callable[[str], object],
) -> None:
    """Write a film to a file of the kind that its name says, whole or not at all.

    Parameters
    ----------
    path : path
    film : Film
    scene : Scene
    words : Words
    routes : Routes
    theme : str
    size : pair of int, optional
        Width and height at most, in pixels; of a page, none.
    frames : int, optional
        How many at most.
    telling : callable
        Called with what is being done, in words.
    """
    suffix = Path(path).suffix.lower()
    kept = chosen(film.frames, frames or _FRAMES[suffix])
    shown = []
    for place, frame in enumerate(kept):
        telling(f"finding the greedy paths: {place + 1:,} of {len(kept):,} frames")
        policy = frame.policy if frame.policy is not None else routes.policy(frame.values)
        shown.append(Shown(frame, policy, routes.path(policy, scene.start)))
    if suffix == ".html":
        telling("writing the page")
        write_page(path, scene, words, shown, film.points())
        return
    painter = Painter(scene, words, snug_size(scene, size or _SIZES[suffix]), THEMES[theme])
    points = film.points()

    def picture(place: int) -> Image.Image:
        telling(f"drawing: {place + 1:,} of {len(shown):,} frames")
        frame, _, path = shown[place]
        return painter.paint(frame, points, path)

    times = [_FRAME_TIME[suffix]] * (len(shown) - 1) + [_END_TIME]
    pictures = [partial(picture, place) for place in range(len(shown))]
    if suffix == ".gif":
        movies.write_gif(path, pictures, times, table_of_colors(THEMES[theme]))
    else:
        movies.write_mp4(path, pictures, times)
