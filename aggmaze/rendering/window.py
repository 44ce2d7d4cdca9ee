"""A window on the screen; the only place where pygame is used.

Each `Window` is one of pygame's windows of their own, so that several can be open at once, beside
the single window of ``pygame.display.set_mode`` that other environments use.  Closing one destroys
that one and nothing else: pygame is never quit from here.  Others do quit it (Gymnasium's
environments when they are closed), and all windows go with it; one that still has something to show
is then opened again.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from aggmaze.rendering.colors import BACKGROUND, FLOOR, INK, WALL

#: Draws a picture that fits into an area of so many pixels, width and height, as well as it can.
Draw = Callable[[tuple[int, int]], NDArray[np.uint8]]

# Pixels of the picture at first, and at most this share of the screen.
_FIRST_AREA = 640
_SHARE_OF_SCREEN = 0.8
_SMALLEST = (280, 160)
_FONT_SIZE = 15
_LINE_HEIGHT = 22
_PADDING = 6
# Drivers without a screen, where nobody waits for the next picture.
_SCREENLESS = ("dummy", "offscreen")

_open: WeakSet[Window] = WeakSet()
# pygame's objects of windows that went with pygame: their memory is free already, and freeing it
# once more, as their end would, can crash.
_gone: list[Any] = []


class Key(NamedTuple):
    """A key that was pressed: its code in SDL, and the character that it wrote."""

    code: int
    text: str


class Window:
    """A window that shows pictures above lines of text.

    It opens at the first picture.  Once the user has closed it, nothing is shown until `close` has
    been called.

    Parameters
    ----------
    title : str
    frames_per_second : float
        `show` waits so that no more are shown; not where there is no screen.
    first_size : pair of int, optional
        Width and height that it opens with, as far as the screen has room; by default those of the
        first picture.

    Attributes
    ----------
    dismissed : bool
        Whether the user has closed the window.
    notes : tuple of str
        Lines below the status line, shown with the next picture.
    """

    def __init__(
        self,
        title: str,
        frames_per_second: float,
        first_size: tuple[int, int] | None = None,
    ) -> None:
        self.title = title
        self.frames_per_second = frames_per_second
        self.dismissed = False
        self.notes: tuple[str, ...] = ()
        self._window: Any = None
        self._first_size = first_size
        self._size: tuple[int, int] | None = None
        self._clock: Any = None
        self._keys: deque[Key] = deque()
        self._draw: Draw | None = None
        self._status = ""
        self._text: tuple[Any, Any] | None = None
        self._stale = False

    @property
    def is_open(self) -> bool:
        """Whether it is on the screen."""
        return self._window is not None

    def show(self, draw: Draw, status: str = "") -> None:
        """Show a picture and a line of text below it.

        Parameters
        ----------
        draw : callable
            Called with width and height of the room for the picture, now and whenever the window
            is resized; returns an array (height, width, 3) of uint8.  A picture that is larger is
            scaled down.
        status : str

        Raises
        ------
        gymnasium.error.DependencyNotInstalled
            If pygame is missing or is not pygame-ce.
        OSError
            If there is no screen.
        """
        self._draw, self._status = draw, status
        if self.dismissed:
            return
        pygame = _pygame()
        _forget_lost_windows(pygame)
        if self._window is None:
            self._open(pygame, draw)
        _handle_events(pygame)
        if self._window is not None:
            self._paint(pygame)
            if pygame.display.get_driver() not in _SCREENLESS:
                self._clock.tick(self.frames_per_second)

    def pressed(self) -> list[Key]:
        """Return the keys pressed since the last call; resizing and closing happen here too."""
        if self._window is not None:
            pygame = _pygame()
            _forget_lost_windows(pygame)
            if self._window is not None:
                _handle_events(pygame)
            if self._window is not None and self._stale:
                self._paint(pygame)
        keys = list(self._keys)
        self._keys.clear()
        return keys

    def pixels(self) -> NDArray[np.uint8]:
        """Return what the window shows, text included: an array (height, width, 3) of uint8.

        Raises
        ------
        RuntimeError
            If it is not open.
        """
        pygame = _pygame()
        _forget_lost_windows(pygame)
        if self._window is None:
            raise RuntimeError("the window is not open: there is nothing to read")
        surface = self._window.get_surface()
        data = pygame.image.tobytes(surface, "RGB")
        return np.frombuffer(data, np.uint8).reshape(surface.get_height(), -1, 3).copy()

    def close(self) -> None:
        """Close the window; a second time does nothing, and another picture opens it anew."""
        self._destroy()
        self.dismissed = False
        self._keys.clear()

    def _open(self, pygame: Any, draw: Draw) -> None:
        try:
            _init_display(pygame)
            if pygame.display.get_driver() in _SCREENLESS and "SDL_VIDEODRIVER" not in os.environ:
                raise pygame.error("there is no screen")
            screen = pygame.display.get_desktop_sizes()[0]
            size = self._size
            if size is None and self._first_size is not None:
                room = [int(_SHARE_OF_SCREEN * length) for length in screen]
                size = min(self._first_size[0], room[0]), min(self._first_size[1], room[1])
            if size is None:
                area = [min(_FIRST_AREA, int(_SHARE_OF_SCREEN * length)) for length in screen]
                height, width = draw((area[0], area[1])).shape[:2]
                size = (
                    max(min(width, area[0]), _SMALLEST[0]),
                    max(min(height, area[1]) + self._text_height(), _SMALLEST[1]),
                )
            self._window = pygame.Window(self.title, size, resizable=True)
        except pygame.error as error:
            raise OSError(
                f"cannot open a window: {error}. Without a screen, take render_mode='rgb_array', "
                "or set SDL_VIDEODRIVER=dummy in the environment to go on without a picture"
            ) from error
        self._window.minimum_size = _SMALLEST
        self._clock = pygame.time.Clock()
        _open.add(self)
        pygame.register_quit(_pygame_quits)

    def _destroy(self) -> None:
        if self._window is not None:
            _forget_lost_windows(_pygame())
        if self._window is not None:
            self._size = self._window.size
            self._window.destroy()
        self._window = self._clock = self._text = None
        _open.discard(self)

    def _lost(self) -> None:
        """Take notice that the window is gone with pygame."""
        _gone.append(self._window)
        self._window = self._clock = self._text = None

    def _handle(self, pygame: Any, event: Any) -> None:
        if event.type == pygame.WINDOWCLOSE:
            self._destroy()
            self.dismissed = True
        elif event.type == pygame.KEYDOWN:
            self._keys.append(Key(event.key, getattr(event, "unicode", "")))
        elif event.type in (pygame.WINDOWSIZECHANGED, pygame.WINDOWEXPOSED):
            self._stale = True

    def _paint(self, pygame: Any) -> None:
        assert self._draw is not None
        surface = self._window.get_surface()
        width, height = surface.get_size()
        area = (width, max(1, height - self._text_height()))
        frame = np.ascontiguousarray(self._draw(area))
        picture = pygame.image.frombuffer(frame, frame.shape[1::-1], "RGB")
        scale = min(1.0, area[0] / frame.shape[1], area[1] / frame.shape[0])
        if scale < 1.0:
            # To 32 bits first: scaling 24 takes several times as long.
            size = [max(1, int(length * scale)) for length in picture.get_size()]
            picture = pygame.transform.smoothscale(picture.convert(surface), size)
        surface.fill(BACKGROUND)
        left, top = (
            (room - length) // 2 for room, length in zip(area, picture.get_size(), strict=True)
        )
        surface.blit(picture, (left, top))
        surface.blit(self._lines(pygame, width), (0, area[1]))
        self._window.flip()
        self._stale = False

    def _text_height(self) -> int:
        return (1 + len(self.notes)) * _LINE_HEIGHT + 2 * _PADDING

    def _lines(self, pygame: Any, width: int) -> Any:
        """Return the status line and the notes as a picture, drawn when they change."""
        shown = (width, self._status, self.notes)
        if self._text is None or self._text[0] != shown:
            pixels = _write((self._status, *self.notes), (width, self._text_height()))
            self._text = (shown, pygame.image.frombuffer(pixels, pixels.shape[1::-1], "RGB").copy())
        return self._text[1]


def _write(lines: Sequence[str], size: tuple[int, int]) -> NDArray[np.uint8]:
    image = Image.new("RGB", size, FLOOR)
    draw = ImageDraw.Draw(image)
    draw.line([0, 0, size[0], 0], fill=WALL)
    font = ImageFont.load_default(_FONT_SIZE)
    for place, line in enumerate(lines):
        draw.text((2 * _PADDING, _PADDING + place * _LINE_HEIGHT), line, fill=INK, font=font)
    return np.array(image)


def _init_display(pygame: Any) -> None:
    """Make windows possible, and leave it to Python what a signal does.

    SDL would turn SIGTERM into an event, which ends no program that does not look for it.
    """
    name = "SDL_NO_SIGNAL_HANDLERS"
    before = os.environ.get(name)
    os.environ[name] = before or "1"
    try:
        pygame.display.init()
    finally:
        if before is None:
            del os.environ[name]


def _handle_events(pygame: Any) -> None:
    """Hand each window of ours its events, and leave those of other windows in the queue."""
    windows = {window._window: window for window in list(_open) if window._window is not None}
    for event in pygame.event.get():
        source = getattr(event, "window", None)
        if source in windows:
            if windows[source].is_open:
                windows[source]._handle(pygame, event)
        elif source is not None or pygame.display.get_surface() is not None:
            with contextlib.suppress(pygame.error):  # a full queue takes no more
                pygame.event.post(event)


def _forget_lost_windows(pygame: Any) -> None:
    """Take notice of a display that was quit: all windows went with it."""
    if not pygame.display.get_init():
        for window in list(_open):
            window._lost()
        _open.clear()


def _pygame_quits() -> None:
    """Do what is left to do before pygame is quit."""
    pygame = _pygame()
    _forget_lost_windows(pygame)
    for window in list(_open):
        window._destroy()


def _pygame() -> Any:
    try:
        import pygame
    except ImportError as error:
        raise DependencyNotInstalled(
            'a window needs pygame: pip install "pygame-ce>=2.5"'
        ) from error
    # Both are imported by one name, and files of both mixed up where both are installed.
    if not hasattr(pygame, "Window") or not hasattr(pygame.Window, "get_surface"):
        raise DependencyNotInstalled(
            "a window needs pygame-ce, and `import pygame` finds another pygame: "
            'pip uninstall pygame pygame-ce; pip install "pygame-ce>=2.5"'
        )
    return pygame
