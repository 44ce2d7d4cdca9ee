"""The one call: solve, and see it happen; in a window, or in a file."""

from __future__ import annotations

import math
import os
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from PIL import Image

from aggmaze.checks import check_choice, check_integer, did_you_mean, is_real
from aggmaze.models.model import Model
from aggmaze.progress import report, stage
from aggmaze.rendering.window import check_pygame
from planners.adapters import as_model
from planners.objective import AverageCost, Discounted, Objective, as_objective
from planners.policies import model_values
from planners.record import Callback, Progress
from planners.result import SolveResult
from planners.solve import AUTO, solve
from planners.watching import movies
from planners.watching.film import Film, Frame, chosen
from planners.watching.page import Shown, write_page
from planners.watching.painter import Painter, Words, snug_size
from planners.watching.routes import Routes
from planners.watching.scenes import Scene, scene_of
from planners.watching.themes import THEMES, table_of_colors

#: What a recording may be, by the end of its name.
SUFFIXES = (".gif", ".mp4", ".html")
#: What is watched where no method is named.
METHOD = "adaptive_aggregation"
# Frames of each kind of file, pixels of a picture, and milliseconds of a frame and of the last one.
_FRAMES = {".gif": 80, ".mp4": 300, ".html": 160}
_SIZES = {".gif": (720, 480), ".mp4": (1280, 800)}
_LEAST_SIZE, _LARGEST_SIZE = 200, 4000
# Bins that a picture tells apart, and how exactly their width has to be known.
_BINS, _ROUGHLY = 16, 1e-2
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


def words_of(
    title: str, method: str, objective: Objective, epsilon: Any = None, caption: str = ""
) -> Words:
    """Return what stands above the pictures of a run.

    Parameters
    ----------
    title : str
    method : str
    objective : Objective
    epsilon : optional
        Width of the bins, where it is a number.
    caption : str
        What else has to be said.
    """
    label = "mean cost of a step" if isinstance(objective, AverageCost) else "cost-to-go"
    bins = f", bins of {epsilon:g}" if is_real(epsilon) else ""
    more = f"; {caption}" if caption else ""
    return Words(title, f"{method.replace('_', ' ')}, {objective}{bins}{more}", label)


def _title_of(source: Any, model: Model) -> str:
    """Return the name of an environment, or say how large a model is."""
    spec = getattr(source, "spec", None) if isinstance(source, gym.Env) else None
    if spec is not None:
        return str(spec.id)
    if isinstance(source, gym.Env):
        return type(source.unwrapped).__name__
    return f"a model of {model.num_listed_states:,} states"


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
    speed: float | None = None,
    theme: str = "light",
    title: str | None = None,
    size: tuple[int, int] | None = None,
    frames: int | None = None,
    callback: Callback | None = None,
    **arguments: Any,
) -> SolveResult:
    """Solve, and see it happen: in a window, or recorded in a file.

    The picture shows the costs-to-go of all states, the borders of mega-states, the path that is
    greedy for the values as they are, the phase, and residual and bound as curves over the updates.
    Mazes and other grids are maps, of more than two dimensions as slices side by side.  Up to 60
    states that lie on no grid are a graph, with rings around the states of a mega-state and arrows
    where the greedy policy leads; more of them are bars in the order of their values.

    The window begins at 10 iterations a second.  Its keys are written below the picture: they
    pause, step, go back and forth, and set the speed.  Closing it, Esc and Ctrl-C end the solve,
    and the result so far is returned, certified, with the status "interrupted".

    Parameters
    ----------
    env
        An environment, a model, or what else `as_model` takes.
    gamma : float, optional
        Discount in [0, 1]; 1 asks for total costs.
    objective : Discounted, TotalCost, FiniteHorizon or AverageCost, optional
        In place of ``gamma``.  A path and actions are shown for the first two.
    method : str, optional
        As for `solve`.  By default discounted costs are solved by ``adaptive_aggregation``, and
        unless ``epsilon`` is given, by bins a sixteenth of the range of V* wide, which a quick
        solve finds first, and narrower where two sweeps would not tell any apart; all others by
        "auto".
    record : path, optional
        Write ``.gif``, ``.mp4`` (with the extra "video") or ``.html`` in place of a window.  The
        page is one file, with a slider over the iterations and the value, mega-state and action of
        the state below the pointer.
    speed : float, optional
        Of the window, in iterations a second; infinite for as fast as it goes.
    theme : {"light", "dark"}
        Of the window and of pictures; a page has both.
    title : str, optional
        In place of the name of the environment.
    size : pair of int, optional
        Of recorded pictures: width and height at most, in pixels.
    frames : int, optional
        How many of them at most, at least 2.  Those at the ends of phases, and early ones, stay
        before others.
    callback : callable, optional
        As for `solve`.  Under a window it is called in the thread of the solver.
    **arguments
        Further ones of `solve`: limits, ``seed``, ``V0`` and options of the method.

    Returns
    -------
    SolveResult

    Raises
    ------
    ValueError, TypeError
        For an argument out of range, as `solve` says.
    FileNotFoundError, IsADirectoryError
        If there is no folder for the recording, or it is one.
    OSError
        If there is no screen for a window.
    ModuleNotFoundError, gymnasium.error.DependencyNotInstalled
        If a package is missing for it, with what to install.

    Examples
    --------
    >>> import gymnasium as gym, aggmaze, planners
    >>> env = gym.make("TerrainMaze-v0", shape=(30, 30))
    >>> result = planners.watch(env, gamma=0.97, record="run.html")  # doctest: +SKIP
    """
    asked = as_objective(gamma, objective)
    check_choice("theme", theme, tuple(THEMES))
    _check_pictures(record, speed, size, frames)
    model = as_model(env)
    if method is None:
        method, arguments = _usual(model, asked, arguments)
    count = model.num_listed_states
    scene, routes = scene_of(env, model), Routes(model, asked)
    if title is None:
        title = _title_of(env, model)
    words = words_of(title, method, asked, arguments.get("epsilon"), scene.caption)
    run = partial(solve, model, objective=asked, method=method, **arguments)
    if record is None:
        # Here, since no recording needs a window.
        from planners.watching.live import show_live

        start = np.zeros(count)
        if arguments.get("V0") is not None:
            start = model_values(model, arguments["V0"], "V0")[:count]
        first = Frame(0, 0, 0.0, 0, math.nan, math.nan, start, None)
        return show_live(
            lambda see: run(callback=see),
            first,
            scene,
            words,
            routes,
            theme=theme,
            speed=speed,
            also=callback,
        )
    film = Film(count)
    result = run(callback=Recorder(film, count, callback))
    film.finish(result)
    write_recording(
        record,
        film,
        scene,
        words,
        routes,
        theme=theme,
        size=size,
        frames=frames,
    )
    return result


def _check_pictures(
    record: str | os.PathLike[str] | None,
    speed: float | None,
    size: tuple[int, int] | None,
    frames: int | None,
) -> None:
    """Refuse arguments of the pictures that are out of range."""
    if record is None:
        for name, value in (("size", size), ("frames", frames)):
            if value is not None:
                raise ValueError(f"{name} is of a recording: say record='run.gif'")
        if speed is not None and not (is_real(speed) and speed > 0):
            raise ValueError(f"speed must be iterations a second, above 0, got {speed!r}")
        check_pygame()
        return
    suffix = check_recording(record)
    if speed is not None:
        raise ValueError("speed is of the window: a recording shows iterations evenly")
    if frames is not None:
        check_integer("frames", frames, least=2)
    if size is not None:
        if suffix == ".html":
            raise ValueError("size is of pictures: a page takes the room that it gets")
        if len(size) != 2:
            raise ValueError(f"size must be width and height in pixels, got {size!r}")
        for name, length in zip(("width", "height"), size, strict=True):
            check_integer(f"size, {name}", length, least=_LEAST_SIZE, below=_LARGEST_SIZE + 1)


def _usual(
    model: Model, objective: Objective, arguments: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the method that is watched where none is named, with bins that one can see."""
    if not isinstance(objective, Discounted):
        return AUTO, arguments
    if "epsilon" in arguments:
        return METHOD, arguments
    quick = {name: arguments[name] for name in ("num_threads",) if name in arguments}
    values = solve(model, objective=objective, tol=_ROUGHLY, **quick).values
    # In bins that are wider than what its sweeps make of equal values nothing would ever happen.
    first = solve(model, objective=objective, method="value_iteration", num_iterations=2, **quick)
    apart = float(np.ptp(first.values)) / 2
    width = float(np.ptp(values)) / _BINS
    width = float(f"{min(width, apart) if apart > 0 else width:.2g}")
    return METHOD, arguments | ({"epsilon": width} if width > 0 else {})


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
    """
    suffix = Path(path).suffix.lower()
    kept = chosen(film.frames, frames or _FRAMES[suffix])
    shown = []
    with stage("finding the greedy paths"):
        for place, frame in enumerate(kept):
            report(place, len(kept), "frames")
            policy = frame.policy if frame.policy is not None else routes.policy(frame.values)
            shown.append(Shown(frame, policy, routes.path(policy, scene.start)))
    if suffix == ".html":
        with stage("writing the page"):
            write_page(path, scene, words, shown, film.points())
        return
    painter = Painter(scene, words, snug_size(scene, size or _SIZES[suffix]), THEMES[theme])
    points = film.points()

    def picture(place: int) -> Image.Image:
        report(place, len(shown), "frames")
        frame, policy, path = shown[place]
        return painter.paint(frame, points, path, policy)

    times = [_FRAME_TIME[suffix]] * (len(shown) - 1) + [_END_TIME]
    pictures = [partial(picture, place) for place in range(len(shown))]
    with stage("drawing"):
        if suffix == ".gif":
            movies.write_gif(path, pictures, times, table_of_colors(THEMES[theme]))
        else:
            movies.write_mp4(path, pictures, times)
