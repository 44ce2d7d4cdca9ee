"""Windows: what they show, and that each of them minds its own business."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pygame
import pytest
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

import aggmaze
from aggmaze.rendering import window as windows
from aggmaze.rendering.colors import POLE
from aggmaze.rendering.window import Key, Window

every_id = pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)


@pytest.fixture(autouse=True)
def _pygame_as_at_first() -> Any:
    yield
    pygame.quit()


def checkered(height: int, width: int) -> NDArray[np.uint8]:
    picture = np.indices((height, width)).sum(axis=0) % 2 * 200
    return np.repeat(picture[..., np.newaxis], 3, axis=2).astype(np.uint8)


def human(env_id: str = "StandardMaze-v0", **options: Any) -> Any:
    return gym.make(env_id, render_mode="human", **options)


def happens(kind: int, of: Window, **what: Any) -> None:
    pygame.event.post(pygame.event.Event(kind, window=of._window, **what))


class TestWindow:
    def test_a_picture_that_fits_is_shown_pixel_for_pixel(self) -> None:
        window = Window("a", 60)
        window.show(lambda area: checkered(300, 400), "step 1")
        seen = window.pixels()
        assert seen.shape[1] == 400
        np.testing.assert_array_equal(seen[:300], checkered(300, 400))
        assert len(np.unique(seen[300:])) > 5, "text below the picture"
        window.close()

    def test_a_large_one_is_scaled_down_as_a_whole(self) -> None:
        window = Window("a", 60)
        picture = np.zeros((3000, 1500, 3), np.uint8)
        picture[:1500], picture[1500:] = (255, 0, 0), (0, 0, 255)
        window.show(lambda area: picture)
        seen = window.pixels()
        red, blue = (
            np.argwhere((np.abs(seen.astype(int) - colour) < 20).all(axis=2))
            for colour in ((255, 0, 0), (0, 0, 255))
        )
        assert np.ptp(red[:, 0]) == pytest.approx(np.ptp(blue[:, 0]), abs=3)
        height = np.ptp(red[:, 0]) + np.ptp(blue[:, 0])
        assert height / np.ptp(red[:, 1]) == pytest.approx(2, rel=0.03)

    def test_the_picture_is_drawn_for_the_room_that_there_is(self) -> None:
        asked: list[tuple[int, int]] = []

        def draw(area: tuple[int, int]) -> NDArray[np.uint8]:
            asked.append(area)
            return checkered(area[1] // 2 * 2, area[0] // 2 * 2)

        window = Window("a", 60)
        window.show(draw)
        assert asked[0][1] <= 640 >= asked[0][0] * 5 // 6
        window._window.size = (500, 333)
        happens(pygame.WINDOWSIZECHANGED, window, x=500, y=333)
        window.pressed()
        width, height = asked[-1]
        assert width == 500
        assert window.pixels().shape == (333, 500, 3)
        assert height < 333, "room for the text"
        np.testing.assert_array_equal(
            window.pixels()[: height // 2 * 2, :500], checkered(height // 2 * 2, 500)
        )

    def test_notes_are_lines_below(self) -> None:
        window = Window("a", 60)
        window.notes = ("one", "two")
        window.show(lambda area: checkered(300, 400), "status")
        first = window.pixels()
        window.notes = ("one", "three")
        window.show(lambda area: checkered(300, 400), "status")
        assert first.shape == window.pixels().shape
        np.testing.assert_array_equal(first[:300], window.pixels()[:300])
        assert not np.array_equal(first, window.pixels())

    @pytest.mark.parametrize("users", [None, "1"])
    @pytest.mark.parametrize("driver", ["x11", "dummy"])
    def test_pictures_reach_x11_without_opengl(
        self, driver: str, users: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name, hints = "SDL_FRAMEBUFFER_ACCELERATION", []
        monkeypatch.delenv(name, raising=False)
        if users is not None:
            monkeypatch.setenv(name, users)

        class Spy(pygame.Window):
            def get_surface(self) -> pygame.Surface:
                hints.append(os.environ.get(name))
                return super().get_surface()

        monkeypatch.setattr(pygame, "Window", Spy)
        monkeypatch.setattr(pygame.display, "get_driver", lambda: driver)
        Window("a", 60).show(lambda area: checkered(200, 300))
        # SDL reads it when a window is first drawn in; what the user says goes, and it stays.
        assert hints[0] == (users or ("0" if driver == "x11" else None))
        assert os.environ.get(name) == users

    def test_keys_go_to_the_window_that_has_them(self) -> None:
        first, second = Window("a", 60), Window("b", 60)
        for window in (first, second):
            window.show(lambda area: checkered(200, 300))
        happens(pygame.KEYDOWN, second, key=97, unicode="a")
        happens(pygame.KEYDOWN, first, key=98, unicode="b")
        happens(pygame.KEYUP, first, key=98)
        assert first.pressed() == [Key(98, "b")]
        assert second.pressed() == [Key(97, "a")]
        assert first.pressed() == second.pressed() == []

    def test_reading_a_window_that_is_not_open(self) -> None:
        with pytest.raises(RuntimeError, match="not open"):
            Window("a", 60).pixels()

    def test_a_user_closes_one_of_two(self) -> None:
        first, second = Window("a", 60), Window("b", 60)
        for window in (first, second):
            window.show(lambda area: checkered(200, 300))
        happens(pygame.WINDOWCLOSE, first)
        second.show(lambda area: checkered(100, 300))
        assert first.dismissed
        assert not first.is_open
        assert second.is_open
        first.show(lambda area: checkered(200, 300))
        assert not first.is_open, "who closed it does not want to see it"
        first.close()
        first.show(lambda area: checkered(200, 300))
        assert first.is_open
        assert not first.dismissed

    @pytest.mark.parametrize("quits", ["display.quit", "quit", "both", "quit and begin again"])
    def test_others_quit_pygame(self, quits: str) -> None:
        window = Window("a", 60)
        window.show(lambda area: checkered(200, 300))
        if quits in ("display.quit", "both"):
            pygame.display.quit()
        if quits != "display.quit":
            pygame.quit()
        if quits == "quit and begin again":
            pygame.display.init()
            pygame.display.set_mode((50, 50))
        if quits != "quit and begin again":
            with pytest.raises(RuntimeError, match="not open"):
                window.pixels()
        assert window.pressed() == []
        assert not window.is_open
        window.show(lambda area: checkered(200, 300))
        np.testing.assert_array_equal(window.pixels()[:200, :300], checkered(200, 300))
        window.close()
        window.close()

    def test_events_of_others_stay_in_the_queue(self) -> None:
        window = Window("a", 60)
        window.show(lambda area: checkered(200, 300))
        pygame.display.set_mode((50, 50))
        pygame.event.clear()
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=97, unicode="a", window=None))
        pygame.event.post(pygame.event.Event(pygame.QUIT))
        window.show(lambda area: checkered(200, 300))
        assert window.pressed() == []
        kinds = [event.type for event in pygame.event.get()]
        assert pygame.KEYDOWN in kinds
        assert pygame.QUIT in kinds

    def test_without_pygame(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pygame", None)
        with pytest.raises(DependencyNotInstalled, match=r"pip install .pygame-ce>=2\.5"):
            Window("a", 60).show(lambda area: checkered(2, 2))

    def test_what_is_left_of_pygame_is_not_taken_for_one(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pygame", ModuleType("pygame"))
        with pytest.raises(DependencyNotInstalled, match=r"no display.*--force-reinstall"):
            Window("a", 60).show(lambda area: checkered(2, 2))

    def test_upstream_pygame_has_one_window(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(pygame, "Window")
        window = Window("a", 60)
        window.show(lambda area: checkered(300, 400), "step 1")
        np.testing.assert_array_equal(window.pixels()[:300], checkered(300, 400))
        pygame.event.clear()
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=97, unicode="a"))
        assert window.pressed() == [Key(97, "a")]
        with pytest.raises(OSError, match=r"one window at a time.*pygame-ce"):
            Window("b", 60).show(lambda area: checkered(200, 300))
        pygame.event.post(pygame.event.Event(pygame.QUIT))
        window.pressed()
        assert window.dismissed
        window.close()
        other = Window("b", 60)
        other.show(lambda area: checkered(200, 300))
        assert other.is_open
        other.close()

    def test_both_installed_is_explained(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(windows.metadata, "version", lambda name: "2.6")
        windows._both_are_installed.cache_clear()
        try:
            with pytest.warns(UserWarning, match="both installed.*pip uninstall"):
                windows._both_are_installed()
            monkeypatch.setitem(sys.modules, "pygame", None)
            with pytest.raises(DependencyNotInstalled, match="both installed"):
                Window("a", 60).show(lambda area: checkered(2, 2))
        finally:
            windows._both_are_installed.cache_clear()

    def test_large_mazes_open_larger(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pygame.display, "get_desktop_sizes", lambda: [(1920, 1080)])
        widths = []
        for size in (20, 50):
            env = human(shape=(size, size))
            env.reset(seed=0)
            widths.append(env.unwrapped.window.pixels().shape[1])
            env.close()
        assert widths[1] > 1.2 * widths[0]

    def test_a_window_is_as_large_as_its_picture_needs(self) -> None:
        def draw(area: tuple[int, int]) -> NDArray[np.uint8]:
            return checkered(300, 400) if min(area) > 350 else checkered(200, 260)

        window = Window("a", 60)
        window.show(draw)
        pixels = window.pixels()
        window.close()
        # In a window of 400 by 300 the picture would be the smaller one.
        assert pixels.shape[0] > 350
        top, left = np.argwhere((pixels == checkered(300, 400)[0, 0]).all(axis=-1))[0]
        np.testing.assert_array_equal(
            pixels[top : top + 300, left : left + 400], checkered(300, 400)
        )

    def test_text_grows_with_the_window(self) -> None:
        assert windows._text_scale(640) == 1.0
        assert windows._text_scale(1080) == pytest.approx(1.5)

    def test_a_long_line_is_written_smaller(self) -> None:
        long = windows._write(["m" * 60], (600, 34), windows.Palette())
        ink = np.argwhere((long[2:] < 100).all(axis=2))
        assert ink[:, 1].max() < 595, "nothing is cut off"

    def test_a_banner_is_shown_until_it_is_taken_away(self) -> None:
        window = Window("a", 60)
        window.show(lambda area: checkered(300, 400))
        plain = window.pixels()
        window.banner = ("The goal!", "in 3 steps")
        window.show(lambda area: checkered(300, 400))
        festive = window.pixels()
        np.testing.assert_array_equal(festive[300:], plain[300:])
        assert (festive[:300] != plain[:300]).any(axis=2).mean() > 0.1
        window.banner = ()
        window.show(lambda area: checkered(300, 400))
        np.testing.assert_array_equal(window.pixels(), plain)
        window.close()

    @pytest.mark.parametrize("driver", ["x11", None])
    def test_without_a_screen(self, driver: str | None) -> None:
        code = (
            "import gymnasium as gym, aggmaze\n"
            "env = gym.make('StandardMaze-v0', render_mode='human')\n"
            "try: env.reset()\n"
            "except OSError as error: print(error)"
        )
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
        } | ({} if driver is None else {"SDL_VIDEODRIVER": driver})
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        assert "cannot open a window" in done.stdout
        assert "SDL_VIDEODRIVER=dummy" in done.stdout


class TestHumanMode:
    @every_id
    def test_reset_and_step_show_by_themselves(self, env_id: str) -> None:
        env = human(env_id)
        assert not env.unwrapped.window.is_open
        env.reset(seed=0)
        pictures = [env.unwrapped.window.pixels()]
        actions = np.random.default_rng(0).integers(env.action_space.n, size=6).tolist()
        for action in actions:
            env.step(action)
            pictures.append(env.unwrapped.window.pixels())
        assert len({picture.tobytes() for picture in pictures}) == len(pictures), (
            "steps are counted"
        )
        assert env.render() is None
        np.testing.assert_array_equal(env.unwrapped.window.pixels(), pictures[-1])
        env.close()

    @every_id
    def test_only_then_is_a_window_opened(self, env_id: str) -> None:
        pygame.quit()
        for mode in (None, "rgb_array", "ansi"):
            env = gym.make(env_id, render_mode=mode)
            env.reset(seed=0)
            env.step(0)
            if mode is not None:
                env.render()
            env.close()
        assert not pygame.display.get_init()

    @every_id
    def test_two_at_once_one_closed(self, env_id: str) -> None:
        first, second = human(env_id), human(env_id)
        for env in (first, second):
            env.reset(seed=0)
        first.close()
        first.close()
        assert not first.unwrapped.window.is_open
        second.step(1)
        assert second.unwrapped.window.is_open
        assert second.unwrapped.window.pixels().any()
        first.unwrapped.render()
        assert first.unwrapped.window.is_open
        assert second.unwrapped.window.is_open
        first.close()
        second.close()

    @every_id
    def test_another_environment_beside_it(self, env_id: str) -> None:
        env, lake = human(env_id), gym.make("FrozenLake-v1", render_mode="human")
        env.reset(seed=0)
        lake.reset(seed=0)
        env.step(0)
        env.close()
        lake.step(0)  # its window has survived
        env.reset(seed=0)
        lake.close()  # which quits pygame
        env.step(0)
        assert env.unwrapped.window.is_open
        env.close()

    @every_id
    @pytest.mark.parametrize(
        "duplicate",
        [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))],
        ids=["copy", "pickle"],
    )
    def test_a_copy_opens_a_window_of_its_own(self, env_id: str, duplicate: Any) -> None:
        env = human(env_id)
        env.reset(seed=0)
        env.step(0)
        twin = duplicate(env)
        assert env.unwrapped.window.is_open
        assert not twin.unwrapped.window.is_open
        for each in (env, twin):
            each.step(1)
        np.testing.assert_array_equal(twin.unwrapped.window.pixels(), env.unwrapped.window.pixels())
        twin.close()
        assert env.unwrapped.window.is_open
        env.close()

    def test_a_walk_goes_on_when_the_user_closes_the_window(self) -> None:
        env = human()
        env.reset(seed=0)
        happens(pygame.WINDOWCLOSE, env.unwrapped.window)
        for _ in range(3):
            env.step(0)
        env.reset()
        assert not env.unwrapped.window.is_open
        env.close()
        env.reset()
        assert env.unwrapped.window.is_open
        env.close()

    def test_a_resized_maze_is_drawn_anew(self) -> None:
        env = human(shape=(10, 10))
        env.reset(seed=0)
        window = env.unwrapped.window
        for size in ((900, 500), (300, 700), (1200, 1150)):
            window._window.size = size
            happens(pygame.WINDOWSIZECHANGED, window)
            window.pressed()
            # Beside the legend, whose letters are smooth.
            maze = window.pixels()[: size[1] - 60, : size[0] // 2]
            colours = np.unique(maze.reshape(-1, 3), axis=0)
            assert len(colours) < 200, "edges are sharp: nothing was stretched"
        env.close()

    def test_a_resized_cart_is_drawn_anew(self) -> None:
        env = human("DiscretizedCartPole-v0")
        env.reset(seed=0)
        window = env.unwrapped.window
        env.unwrapped.set_overlay(
            policy=np.ones(env.observation_space.n, int), values=np.arange(env.observation_space.n)
        )
        widths = []
        for size in ((900, 700), (300, 400), (280, 160), (450, 200)):
            window._window.size = size
            happens(pygame.WINDOWSIZECHANGED, window)
            window.pressed()
            pole = np.argwhere((window.pixels() == POLE).all(axis=2))
            widths.append(np.ptp(pole[:, 0]))
        assert widths[0] > 2.5 * widths[1] > 2.5 * widths[2]
        env.close()

    @pytest.mark.parametrize("shape", [(1, 300), (300, 1), (2, 1), (300, 300), (1, 2)])
    def test_any_shape_fits_the_screen(self, shape: tuple[int, int]) -> None:
        env = human(shape=shape)
        env.reset(seed=0)
        height, width, _ = env.unwrapped.window.pixels().shape
        screen = pygame.display.get_desktop_sizes()[0]
        assert width <= screen[0]
        assert height <= screen[1]
        env.close()

    def test_the_title_is_the_id(self) -> None:
        env = human("NDMaze-v0")
        env.reset()
        assert env.unwrapped.window.title == "NDMaze-v0"
        env.close()

    def test_frames_a_second(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[float] = []

        class Clock:
            def tick(self, frames_per_second: float) -> None:
                asked.append(frames_per_second)

        monkeypatch.setattr(windows, "_SCREENLESS", ())
        monkeypatch.setattr(pygame.time, "Clock", Clock)
        env = human()
        env.reset(seed=0)
        env.step(0)
        assert asked == [env.metadata["render_fps"]] * 2
        env.close()
