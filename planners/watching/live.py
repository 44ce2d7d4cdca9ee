"""The window: a solve that is watched while it runs."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from aggmaze import keys
from aggmaze.rendering.window import Key, Palette, Window
from planners.record import Callback
from planners.result import KEYBOARD, SolveResult, Status
from planners.watching.film import Film, Frame
from planners.watching.painter import Painter, Words
from planners.watching.routes import Routes
from planners.watching.scenes import Scene
from planners.watching.session import Session
from planners.watching.themes import THEMES

#: What the message of a result says whose window was closed.
CLOSED = "the window was closed"
#: Iterations a second to choose from.
SPEEDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, math.inf)
#: The one that a window begins with.
FIRST_SPEED = 10.0
FRAMES_PER_SECOND = 20.0
FIRST_SIZE = (1100, 780)
# How often, in seconds, keys are looked at.
_LOOK_EVERY = 0.02
# How often, in seconds, all but values and mega-states is found anew at full speed (numbers, scale,
# curves and the path): drawing slows the solver down, and nobody could read more of them.
_ALL_EVERY = 0.5
# Frames a second of a replay at most.
_FASTEST_REPLAY = 60.0
# How long a thread may keep the interpreter while another waits for it: the solver needs it only
# for microseconds between its kernels, and would wait for it a hundred times as long.
_SWITCH_EVERY = 0.0001
_SPACE, _HOME, _END = 32, 1073741898, 1073741901
HELP = (
    "Space pause   Right step   Left back   Home End   + - speed   F full speed",
    "M mega-states   P path   T light or dark   Esc ends with the result so far",
)


class Viewer:
    """Shows a session in a window and does what keys say.

    Parameters
    ----------
    session : Session
    scene : Scene
    words : Words
    routes : Routes
        Made for this thread.
    theme : str
    window : Window
    """

    def __init__(
        self,
        session: Session,
        scene: Scene,
        words: Words,
        routes: Routes,
        theme: str,
        window: Window,
    ) -> None:
        self._session, self._scene, self._words, self._routes = session, scene, words, routes
        self._theme = theme
        self._window = window
        self._borders = self._path = True
        #: The frame that is shown again; None to follow the run.
        self._cursor: int | None = None
        self._replaying = False
        self._turned = 0.0
        self._ended = False
        self._asks_to_end = False
        self._shown: tuple[object, ...] = ()
        self._painter: tuple[object, Painter] | None = None
        self._route: tuple[NDArray[np.int64] | None, NDArray[np.int64]] | None = None
        self._drawn = -math.inf
        #: Pictures shown so far.
        self.num_pictures = 0

    def run(self) -> None:
        """Show the run until the window is closed, or has nothing more to show and no screen.

        Raises
        ------
        KeyboardInterrupt
            At Ctrl-C; the session goes on.
        """
        due = time.monotonic()
        while not (self._window.dismissed or self._asks_to_end):
            self.show()
            if not self._session.is_running:
                if not self._ended:
                    self._ended = True
                    continue  # once more, with the last frame
                if not is_seen():
                    return
            # What is late is caught up by the next picture, and not more.
            due = max(due, time.monotonic() - 1 / FRAMES_PER_SECOND) + 1 / FRAMES_PER_SECOND
            while True:
                for key in self._window.pressed():
                    self._press(key)
                left = due - time.monotonic()
                if left <= 0 or self._window.dismissed or self._asks_to_end:
                    break
                time.sleep(min(left, _LOOK_EVERY))
            self._advance()

    def _press(self, key: Key) -> None:
        """Do what a key says."""
        session, code, text = self._session, key.code, key.text.lower()
        if code == keys.ESCAPE or text == "q":
            self._asks_to_end = True
        elif code == _SPACE:
            if self._cursor is not None:
                self._replaying = not self._replaying
                self._turned = time.monotonic()
            elif session.is_running:
                session.pause(not session.paused)
            else:
                self._cursor, self._replaying = 0, True
        elif code == keys.RIGHT:
            self._replaying = False
            if self._cursor is not None:
                self._move(self._cursor + 1)
            elif session.is_running:
                session.step()
        elif code == keys.LEFT:
            self._replaying = False
            if session.is_running:
                session.pause()
            self._move((self._last if self._cursor is None else self._cursor) - 1)
        elif code == _HOME:
            if session.is_running:
                session.pause()
            self._replaying = False
            self._move(0)
        elif code == _END:
            self._cursor, self._replaying = None, False
        elif text in ("+", "=", "-", "_") or code in (keys.UP, keys.DOWN):
            self._change_speed(1 if text in ("+", "=") or code == keys.UP else -1)
        elif text == "f":
            session.run_at(FIRST_SPEED if session.speed == math.inf else math.inf)
            session.pause(False)
        elif text == "m":
            self._borders = not self._borders
        elif text == "p":
            self._path = not self._path
        elif text == "t":
            names = list(THEMES)
            self._theme = names[(names.index(self._theme) + 1) % len(names)]

    def _change_speed(self, by: int) -> None:
        speed = self._session.speed
        if by > 0:
            self._session.run_at(next((known for known in SPEEDS if known > speed), speed))
        else:
            slower = [known for known in SPEEDS if known < speed]
            self._session.run_at(slower[-1] if slower else speed)

    @property
    def _last(self) -> int:
        return len(self._session.film.frames) - 1

    def _move(self, place: int) -> bool:
        """Show an earlier frame again, and say so; or go back to the run behind the last."""
        self._cursor = max(0, place) if place < self._last else None
        return self._cursor is not None

    def _advance(self) -> None:
        """Show the next frame of a replay, where it is due."""
        if self._cursor is None or not self._replaying:
            return
        now = time.monotonic()
        each = 1 / min(self._session.speed, _FASTEST_REPLAY)
        passed = int((now - self._turned) / each)
        if passed > 0:
            self._turned = now
            followed = not self._move(self._cursor + passed)
            if followed:
                self._replaying = False
                if self._session.is_running:
                    self._session.pause(False)

    def show(self) -> None:
        """Show the frame that is due, where it is not shown already."""
        session = self._session
        with session.lock:
            frames = session.film.frames
            place = self._last if self._cursor is None else min(self._cursor, self._last)
            frame = frames[place]
        status = self._status(frame)
        state = (id(frame), status, self._theme, self._borders, self._path, session.paused)
        if self._cursor is None:
            session.ask()
        if state == self._shown and self._window.is_open:
            return
        self._shown = state
        self.num_pictures += 1
        theme = THEMES[self._theme]
        self._window.palette = Palette(theme.ground, theme.ground, theme.ink, theme.line)
        self._window.show(lambda area: self._draw(frame, area), status)

    def _draw(self, frame: Frame, area: tuple[int, int]) -> NDArray[np.uint8]:
        """Return the picture of a frame for a room in the window."""
        key = (area, self._theme)
        if self._painter is None or self._painter[0] != key:
            painter = Painter(self._scene, self._words, area, THEMES[self._theme])
            self._painter = key, painter
            self._drawn = -math.inf
        whole = self._all_is_due()
        if whole or self._route is None:
            self._route = self._route_of(frame)
        policy, path = self._route
        if not self._path:
            path = np.empty(0, dtype=np.int64)
        return self._painter[1].pixels(
            frame,
            self._session.film.points() if whole else [],
            path,
            policy,
            note=self._note(),
            borders=self._borders,
            panel=whole,
        )

    def _all_is_due(self) -> bool:
        session, now = self._session, time.monotonic()
        follows = self._cursor is None and session.is_running and not session.paused
        if follows and session.speed == math.inf and now - self._drawn < _ALL_EVERY:
            return False
        self._drawn = now
        return True

    def _route_of(self, frame: Frame) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
        """Return the greedy policy, and where it leads."""
        policy = frame.policy if frame.policy is not None else self._routes.policy(frame.values)
        return policy, self._routes.path(policy, self._scene.start)

    def _note(self) -> str:
        if self._cursor is not None:
            return "replay" if self._replaying else "earlier"
        if not self._session.is_running:
            return "done"
        return "paused" if self._session.paused else ""

    def _status(self, frame: Frame) -> str:
        session = self._session
        if self._cursor is not None:
            return f"iteration {frame.iteration:,}, seen again: End goes back to the run"
        if not session.is_running:
            return "The solve has ended: Space shows it again, Esc ends with its result"
        if session.paused:
            return "paused: Space goes on, Right makes one iteration"
        if session.speed == math.inf:
            return "at full speed: - slows down"
        return f"{session.speed:g} iterations a second: + is faster, F full speed"


def is_seen() -> bool:
    """Whether windows open on a screen, and not in memory only."""
    return os.environ.get("SDL_VIDEODRIVER") not in ("dummy", "offscreen")


@contextmanager
def eager_threads() -> Iterator[None]:
    """Let threads that wait for the interpreter have it soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_EVERY)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def show_live(
    run: Callable[[Callback], SolveResult],
    first: Frame,
    scene: Scene,
    words: Words,
    routes: Routes,
    *,
    theme: str,
    speed: float | None,
    also: Callback | None = None,
) -> SolveResult:
    """Solve, and show it in a window until that is closed.

    Parameters
    ----------
    run : callable
        ``run(callback)`` solves; it is called in a thread of its own.
    first : Frame
        What there is before the first iteration.
    scene : Scene
    words : Words
    routes : Routes
    theme : str
    speed : float or None
        Iterations a second; by default 10, and without a screen as many as it makes.
    also : callable, optional
        A callback of the user's.

    Returns
    -------
    SolveResult
        That of the whole run, or the result so far where the window was closed before, or Ctrl-C
        came.

    Raises
    ------
    OSError
        If there is no screen.
    gymnasium.error.DependencyNotInstalled
        If there is no pygame that can open windows.
    """
    film = Film(len(first.values))
    film.add(first)
    if speed is None:
        speed = FIRST_SPEED if is_seen() else math.inf
    session = Session(run, film, len(first.values), speed, also)
    window = Window(f"{words.title}: {words.subtitle}", 1000.0, first_size=FIRST_SIZE)
    window.notes = HELP
    viewer = Viewer(session, scene, words, routes, theme, window)
    ended = CLOSED
    try:
        with eager_threads():
            _open(viewer)
            session.start()
            try:
                viewer.run()
            except KeyboardInterrupt:
                ended = KEYBOARD
            was_running = session.is_running
            result = session.end()
    finally:
        window.close()
    if was_running and result.status == Status.INTERRUPTED:
        return replace(result, message=ended)
    return result


def _open(viewer: Viewer) -> None:
    """Open the window before there is anything to lose."""
    try:
        viewer.show()
    except OSError as error:
        raise OSError(
            f"{str(error).split('.')[0]}. Without a screen, record the run in a file: "
            "record='run.html' (--record run.html), or .gif, or .mp4"
        ) from error
