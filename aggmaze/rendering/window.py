"""A window on the screen; the only place where pygame is used.

With pygame-ce each `Window` is one of pygame's windows of their own, so that several can be open at
once, beside the single window of ``pygame.display.set_mode`` that other environments use.  Upstream
pygame has only the latter that can be drawn on: there one window is open at a time.  Closing one
destroys that one and nothing else: pygame is never quit from here.  Others do quit it (Gymnasium's
environments when they are closed), and all windows go with it; one that still has something to show
is then opened again.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from importlib import metadata
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from aggmaze.rendering.colors import AGENT, BACKGROUND, FLOOR, GOAL, INK, POLE, WALL, WHITE
from aggmaze.rendering.marks import fitted_font

#: Draws a picture that fits into an area of so many pixels, width and height, as well as it can.
Draw = Callable[[tuple[int, int]], NDArray[np.uint8]]

# Pixels of the picture at first, and at most this share of the screen: of 768 lines a task bar and
# the bar of a title leave no more.
_FIRST_AREA = 640
_SHARE_OF_SCREEN = 0.895
_SMALLEST = (280, 160)
# A picture that takes less of the room that it had asked for needs more around it.
_LEAST_OF_ROOM = 0.9
_FONT_SIZE, _SMALLEST_FONT = 15, 9
_LINE_HEIGHT = 22
_PADDING = 6
# Shorter side of a window whose text has its plain size, and how much it grows at most.
_PLAIN_SIDE, _MOST_SCALE = 720, 2.0
_CONFETTI = (GOAL, AGENT, POLE)
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


class Palette(NamedTuple):
    """Colours of a window: behind its picture, and of the ground, the ink and the edge of its text.

    Parameters
    ----------
    behind, ground, ink, edge : tuple of int
    """

    behind: tuple[int, int, int] = BACKGROUND
    ground: tuple[int, int, int] = FLOOR
    ink: tuple[int, int, int] = INK
    edge: tuple[int, int, int] = WALL


class Window:
    """A window that shows pictures above lines of text.

    It opens at the first picture.  Once the user has closed it, nothing is shown until `close` has
    been called.

    Parameters
    ----------
    title : str
    frames_per_second : float
        `show` waits so that no more are shown; not where there is no screen.
    first_area : int
        Longest side of the picture at first, in pixels, as far as the screen has room.
    first_size : pair of int, optional
        Width and height that it opens with in place of that, as far as the screen has room.

    Attributes
    ----------
    dismissed : bool
        Whether the user has closed the window.
    notes : tuple of str
        Lines below the status line, shown with the next picture.
    palette : Palette
        Light, unless another is given.
    banner : tuple of str
        Lines on a ribbon across the picture, among confetti; none of both without lines.
    """

    def __init__(
        self,
        title: str,
        frames_per_second: float,
        first_area: int = _FIRST_AREA,
        first_size: tuple[int, int] | None = None,
    ) -> None:
        self.title = title
        self.frames_per_second = frames_per_second
        self.first_area = first_area
        self.banner: tuple[str, ...] = ()
        self.dismissed = False
        self.notes: tuple[str, ...] = ()
        self.palette = Palette()
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
            If pygame is missing or cannot be imported.
        OSError
            If there is no screen; or, with upstream pygame, if another window is open.
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
            room = [int(_SHARE_OF_SCREEN * length) for length in screen]
            if size is None and self._first_size is not None:
                size = min(self._first_size[0], room[0]), min(self._first_size[1], room[1])
            if size is None:
                # Room for a legend beside a square; the text of a window this tall lies below.
                area = (
                    min(self.first_area * 6 // 5, room[0]),
                    min(self.first_area, room[1] - self._text_height(min(room))),
                )
                height, width = draw(area).shape[:2]
                width, height = min(width, area[0]), min(height, area[1])
                again = draw((width, height)).shape
                if min(again[0] / height, again[1] / width) < _LEAST_OF_ROOM:
                    width, height = area  # with less around it the picture would be smaller
                below = self._text_height(min(width, height))
                size = (max(width, _SMALLEST[0]), max(height + below, _SMALLEST[1]))
            # Under X11 SDL would send each picture through OpenGL, which without a graphics card
            # takes far more of the processor than to draw the picture.
            direct = pygame.display.get_driver() == "x11"
            with _hinted("SDL_FRAMEBUFFER_ACCELERATION", "0") if direct else nullcontext():
                if _has_windows(pygame):
                    self._window = pygame.Window(self.title, size, resizable=True)
                    self._window.minimum_size = _SMALLEST
                else:
                    self._window = _Display(pygame, self.title, size)
                self._window.get_surface()  # SDL reads the hint for the first one
        except pygame.error as error:
            raise OSError(
                f"cannot open a window: {error}. Without a screen, take render_mode='rgb_array', "
                "or set SDL_VIDEODRIVER=dummy in the environment to go on without a picture"
            ) from error
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
        if event.type in (pygame.WINDOWCLOSE, pygame.QUIT):
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
        below = self._text_height(min(width, height))
        area = (width, max(1, height - below))
        frame = np.ascontiguousarray(self._draw(area))
        picture = pygame.image.frombuffer(frame, frame.shape[1::-1], "RGB")
        scale = min(1.0, area[0] / frame.shape[1], area[1] / frame.shape[0])
        if scale < 1.0:
            # To 32 bits first: scaling 24 takes several times as long.
            size = [max(1, int(length * scale)) for length in picture.get_size()]
            picture = pygame.transform.smoothscale(picture.convert(surface), size)
        surface.fill(self.palette.behind)
        left, top = (
            (room - length) // 2 for room, length in zip(area, picture.get_size(), strict=True)
        )
        surface.blit(picture, (left, top))
        if self.banner:
            shown = pygame.image.tobytes(surface, "RGB")
            pixels = np.frombuffer(shown, np.uint8).reshape(height, width, 3)[: area[1]]
            festive = np.ascontiguousarray(_celebrated(pixels, self.banner))
            surface.blit(pygame.image.frombuffer(festive, area, "RGB"), (0, 0))
        surface.blit(self._lines(pygame, width, below), (0, area[1]))
        self._window.flip()
        self._stale = False

    def _text_height(self, side: int) -> int:
        """Return the height of the text in a window whose shorter side is so long."""
        return round(_text_scale(side) * ((1 + len(self.notes)) * _LINE_HEIGHT + 2 * _PADDING))

    def _lines(self, pygame: Any, width: int, height: int) -> Any:
        """Return the status line and the notes as a picture, drawn when they change."""
        shown = (width, height, self._status, self.notes, self.palette)
        if self._text is None or self._text[0] != shown:
            pixels = _write((self._status, *self.notes), (width, height), self.palette)
            self._text = (shown, pygame.image.frombuffer(pixels, pixels.shape[1::-1], "RGB").copy())
        return self._text[1]


class _Display:
    """The one window of ``pygame.display``, for a pygame that has no others to draw on."""

    def __init__(self, pygame: Any, title: str, size: tuple[int, int]) -> None:
        if pygame.display.get_surface() is not None:
            raise OSError(
                "cannot open a second window: this pygame has one window at a time, and one is "
                "open. Close that one, or take pygame-ce instead (pip uninstall pygame; "
                'pip install "pygame-ce>=2.5")'
            )
        self._pygame = pygame
        pygame.display.set_mode(size, pygame.RESIZABLE)
        pygame.display.set_caption(title)

    def get_surface(self) -> Any:
        return self._pygame.display.get_surface()

    def flip(self) -> None:
        self._pygame.display.flip()

    @property
    def size(self) -> tuple[int, int]:
        width, height = self._pygame.display.get_window_size()
        return width, height

    def destroy(self) -> None:
        self._pygame.display.quit()


def _text_scale(side: int) -> float:
    """Return how many times as large as on a plain window text is."""
    return min(_MOST_SCALE, max(1.0, side / _PLAIN_SIDE))


def _write(lines: Sequence[str], size: tuple[int, int], palette: Palette) -> NDArray[np.uint8]:
    """Write lines below each other, each as large as the height has room for and the width."""
    image = Image.new("RGB", size, palette.ground)
    draw = ImageDraw.Draw(image)
    draw.line([0, 0, size[0], 0], fill=palette.edge)
    scale = size[1] / (len(lines) * _LINE_HEIGHT + 2 * _PADDING)
    left = 2 * _PADDING * scale
    for place, line in enumerate(lines):
        font = fitted_font(line, scale * _FONT_SIZE, size[0] - 2 * left, _SMALLEST_FONT)
        middle = scale * (_PADDING + (place + 0.5) * _LINE_HEIGHT)
        draw.text((left, middle), line, fill=palette.ink, font=font, anchor="lm")
    return np.array(image)


def _celebrated(pixels: NDArray[np.uint8], lines: Sequence[str]) -> NDArray[np.uint8]:
    """Return a picture with confetti, and a ribbon with lines across its middle."""
    height, width = pixels.shape[:2]
    image = Image.fromarray(pixels)
    draw = ImageDraw.Draw(image)
    scale = min(width, height) / 640
    rng = np.random.default_rng(0)  # the same at every painting
    for x, y, size, kind in zip(
        rng.uniform(0, width, 90).tolist(),
        rng.uniform(0, height, 90).tolist(),
        rng.uniform(4, 9, 90).tolist(),
        rng.integers(len(_CONFETTI), size=90).tolist(),
        strict=True,
    ):
        half = scale * size
        corners = [(x - half, y), (x, y - half / 2), (x + half, y), (x, y + half / 2)]
        draw.polygon(corners, fill=_CONFETTI[kind], outline=WHITE)
    sizes = [scale * (30 if place == 0 else 18) for place in range(len(lines))]
    fonts = [fitted_font(line, size, 0.94 * width) for line, size in zip(lines, sizes, strict=True)]
    thick = sum(1.5 * size for size in sizes) + 16 * scale
    top = (height - thick) / 2
    draw.rectangle([-2, top, width + 2, top + thick], fill=INK, outline=GOAL, width=2)
    at = top + 8 * scale
    for line, font, size in zip(lines, fonts, sizes, strict=True):
        draw.text((width / 2, at + 0.75 * size), line, fill=WHITE, font=font, anchor="mm")
        at += 1.5 * size
    return np.array(image)


def _init_display(pygame: Any) -> None:
    """Make windows possible, and leave it to Python what a signal does.

    SDL would turn SIGTERM into an event, which ends no program that does not look for it.
    """
    with _hinted("SDL_NO_SIGNAL_HANDLERS", "1"):
        pygame.display.init()


@contextlib.contextmanager
def _hinted(name: str, value: str) -> Iterator[None]:
    """Give SDL a hint by the environment, unless the user did."""
    before = os.environ.get(name)
    os.environ[name] = before or value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


def _handle_events(pygame: Any) -> None:
    """Hand each window of ours its events, and leave those of other windows in the queue."""
    windows = {window._window: window for window in list(_open) if window._window is not None}
    for event in pygame.event.get():
        source = getattr(event, "window", None)
        if len(windows) == 1 and isinstance(next(iter(windows)), _Display):
            source = next(iter(windows))  # there is no other window
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


def _has_windows(pygame: Any) -> bool:
    """Return whether a pygame has windows of their own that can be drawn on, as pygame-ce has."""
    return hasattr(pygame, "Window") and hasattr(pygame.Window, "get_surface")


def check_pygame() -> None:
    """Refuse where no window can be opened for want of pygame, and say what to install."""
    _pygame()


def _pygame() -> Any:
    both = _both_are_installed()
    try:
        import pygame

        if not hasattr(pygame, "display"):
            raise ImportError("what `import pygame` finds has no display")
    except ImportError as error:
        if both:
            raise DependencyNotInstalled(f"a window cannot be opened: {error}. {both}") from error
        if not isinstance(error, ModuleNotFoundError):  # as after one of two was uninstalled
            raise DependencyNotInstalled(
                f"a window needs pygame, of which parts are missing ({error}): "
                'pip install --force-reinstall "pygame-ce>=2.5"'
            ) from error
        raise DependencyNotInstalled(
            'a window needs pygame: pip install "pygame-ce>=2.5"'
        ) from error
    return pygame


@cache
def _both_are_installed() -> str:
    """Return what is wrong, and say it once, where pygame-ce and upstream pygame are installed."""
    found = set()
    for name in ("pygame", "pygame-ce"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            metadata.version(name)
            found.add(name)
    if len(found) < 2:
        return ""
    message = (
        "pygame and pygame-ce are both installed, and as both are imported by one name, files of "
        "one have overwritten the other's. Keep one of them: pip uninstall pygame pygame-ce, "
        'then pip install "pygame-ce>=2.5"'
    )
    warnings.warn(message, stacklevel=2)
    return message
