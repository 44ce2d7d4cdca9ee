"""Played by the keyboard: keys that are pressed, and what comes of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import gymnasium.utils.play
import matplotlib
import numpy as np
import pygame
import pytest

import aggmaze
from aggmaze import keys
from aggmaze.play import Advice, Game, main, play
from aggmaze.rendering.window import Key

# Gymnasium's module asks matplotlib for windows, for all that come after.
matplotlib.use("agg")
LEFT, RIGHT, DOWN, UP = (Key(code, "") for code in (keys.LEFT, keys.RIGHT, keys.DOWN, keys.UP))
ESCAPE = Key(keys.ESCAPE, "\x1b")


def letter(character: str) -> Key:
    return Key(ord(character), character)


@pytest.fixture(autouse=True)
def _pygame_as_at_first() -> Any:
    yield
    pygame.quit()


def game(env_id: str = "StandardMaze-v0", *, adviser: Any = None, **options: Any) -> Game:
    return Game(gym.make(env_id, render_mode="human", **options), seed=0, adviser=adviser)


def advise(model: Any) -> Advice:
    """Return values that anyone can check: each state is worth its number."""
    return Advice(np.arange(float(model.num_states)), np.ones(model.num_states, dtype=int), 0.5)


def corridor(model: Any) -> Advice:
    """Return the optimum of a corridor of 4 at discount 1/2, by hand."""
    return Advice(np.array([0.0, -1.0, 0.5, 1.25]), np.zeros(4, dtype=int), 0.5)


class TestKeys:
    def test_codes_are_those_of_pygame(self) -> None:
        codes = (keys.LEFT, keys.RIGHT, keys.DOWN, keys.UP, keys.ESCAPE)
        names = ("K_LEFT", "K_RIGHT", "K_DOWN", "K_UP", "K_ESCAPE")
        assert codes == tuple(getattr(pygame, name) for name in names)

    @pytest.mark.parametrize("num_dims", range(1, 9))
    def test_each_action_has_a_key_and_each_key_one_action(self, num_dims: int) -> None:
        actions = keys.axis_keys(num_dims)
        assert set(actions.values()) == set(range(2 * num_dims))
        others = {(ord(character),) for character in "rnhv"} | {(keys.ESCAPE,)}
        assert not others & set(actions)

    def test_directions(self) -> None:
        actions = keys.axis_keys(2)
        for code, letter_, action in (
            (keys.LEFT, "a", 0),
            (keys.RIGHT, "d", 1),
            (keys.DOWN, "s", 2),
            (keys.UP, "w", 3),
        ):
            assert actions[(code,)] == actions[(ord(letter_),)] == action


class TestGame:
    def test_moves_and_costs(self) -> None:
        played = game("TerrainMaze-v0", shape=(4, 4))
        model = played.bare.transition_model()
        costs = 0.0
        for key, action in ((LEFT, 0), (DOWN, 2), (letter("a"), 0), (letter("w"), 3)):
            state = played.bare._state
            costs += model.move_costs[state, action]
            played.press(key)
            assert played.bare._state == model.successors[state, action]
        assert played.cost == pytest.approx(costs, rel=1e-12)
        assert f"return {-played.cost:.6g}" in played.window._status
        assert not any("cost" in note for note in played.window.notes), "told once, as a return"

    def test_a_wall_is_told(self) -> None:
        played = game(shape=(2, 1), p=0.5)
        played.press(RIGHT)
        assert "closed" in played.window.notes[0]
        assert played.cost == played.bare.transition_model().bump_cost

    def test_slips_are_told(self) -> None:
        played = game("TerrainMaze-v0", shape=(5, 5), p=0.01)
        played.press(LEFT)
        assert "slipped" in played.window.notes[0]
        assert "0.99" in played.window.notes[0]

    def test_the_end_and_again(self) -> None:
        played = game(shape=(3, 1))
        played.press(LEFT)
        assert not played.over
        played.press(LEFT)
        assert played.over
        assert "the end" in played.window.notes[0]
        cost = played.cost
        played.press(LEFT)  # nothing to be done but to begin again
        assert (played.over, played.cost) == (True, cost)
        played.press(letter("r"))
        assert (played.over, played.cost, played.bare._state) == (False, 0.0, 2)

    def test_out_of_steps(self) -> None:
        played = game(shape=(4, 1), max_episode_steps=2)
        played.press(RIGHT)
        played.press(RIGHT)
        assert played.over
        assert "out of steps" in played.window.notes[0]

    def test_a_new_maze(self) -> None:
        played = game(shape=(6, 6))
        first = played.bare.layout
        played.press(letter("n"))
        second = played.bare.layout
        assert not np.array_equal(first.passages, second.passages)
        played.press(letter("n"))
        assert not np.array_equal(second.passages, played.bare.layout.passages)

    def test_new_mazes_follow_the_one_that_was_asked_for(self) -> None:
        played = game(shape=(6, 6), layout_seed=7)
        played.press(letter("n"))
        other = gym.make("StandardMaze-v0", shape=(6, 6), layout_seed=8).unwrapped.layout
        np.testing.assert_array_equal(played.bare.layout.passages, other.passages)

    @pytest.mark.parametrize(
        ("env_id", "options"),
        [("DiscretizedCartPole-v0", {}), ("StandardMaze-v0", {"layout": "S.G"})],
    )
    def test_where_there_is_no_other(self, env_id: str, options: dict[str, Any]) -> None:
        played = game(env_id, **options)
        assert "new maze" not in played.window.notes[-1]
        played.press(letter("n"))
        assert "there is no other" in played.window.notes[0]

    def test_keys_without_meaning_do_nothing(self) -> None:
        played = game()
        before = played.window.notes, played.bare._state
        for key in (letter("v"), letter("k"), Key(32, " "), Key(1073742049, "")):
            played.press(key)
        assert (played.window.notes, played.bare._state) == before

    def test_help(self) -> None:
        played = game("NDMaze-v0", shape=(2, 2, 2, 2))
        assert "WASD" in played.window.notes[-1]
        assert "x0- x0+" in played.window.notes[-1]
        assert "Z C (axis 3: x3- x3+)" in played.window.notes[-1]
        played.press(letter("h"))
        assert played.window.notes[-1] == "H: help"

    def test_the_picture_keeps_its_size(self) -> None:
        played = game(adviser=advise, shape=(4, 4))
        shapes = {played.window.pixels().shape}
        for key in (letter("v"), LEFT, letter("h"), letter("r"), letter("n"), letter("v")):
            played.press(key)
            shapes.add(played.window.pixels().shape)
            assert len(played.window.notes) == 3
        assert len(shapes) == 1

    @pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
    def test_every_id(self, env_id: str) -> None:
        played = game(env_id, adviser=advise)
        for code, action in played.bare.get_keys_to_action().items():
            assert action in played.env.action_space
            played.press(Key(code[0], ""))
        assert played.cost != 0

    def test_other_environments_are_refused(self) -> None:
        env = gym.make("FrozenLake-v1", render_mode="human")
        with pytest.raises(ValueError, match=r"FrozenLake-v1 cannot.*StandardMaze-v0"):
            Game(env)
        with pytest.raises(ValueError, match="render_mode='human', not 'ansi'"):
            Game(gym.make("StandardMaze-v0", render_mode="ansi"))


class TestAdvice:
    def test_only_on_a_key(self) -> None:
        played = game(adviser=advise, shape=(4, 4))
        assert played.window.notes[1] == "V: show the optimum"
        plain = played.window.pixels()
        played.press(letter("v"))
        assert played.window.notes[1].split("     ") == [
            "best return from here -15 (gamma 0.5)",
            "best RIGHT",
            "V: hide",
        ]
        assert not np.array_equal(played.window.pixels(), plain)
        played.press(letter("v"))
        np.testing.assert_array_equal(played.window.pixels(), plain)

    def test_regret_is_what_the_move_costs_more_than_the_best(self) -> None:
        # A corridor of cost 1 a move, the goal on the left: values s, discount 1/2.
        played = game(adviser=advise, shape=(5, 1))
        played.press(letter("v"))
        played.press(RIGHT)  # from state 4: stays, costs 1 + 4/2, instead of 1 + 3/2
        assert played.regret == pytest.approx(0.5)
        played.press(LEFT)
        assert played.regret == pytest.approx(0.5)
        assert "regret of the move 0, so far 0.5" in played.window.notes[1]
        played.press(RIGHT)  # from 3 to 4: 1 + 4/2 instead of 1 + 2/2
        assert played.regret == pytest.approx(1.5)
        assert played.discounted_regret == pytest.approx(0.5 + 1 / 4)  # at step 2
        assert "so far 0.75" in played.window.notes[1]
        played.press(letter("r"))
        assert played.regret == played.discounted_regret == 0

    def test_the_maze_keeps_its_size(self) -> None:
        played = game(adviser=advise, shape=(6, 6))
        panels = [played.bare._raster.panels]
        played.press(letter("v"))
        panels.append(played.bare._raster.panels)
        assert panels[0] == panels[1]

    def test_keys_of_actions_that_say_none(self) -> None:
        played = game("NDMaze-v0", adviser=advise, shape=(3, 3, 3))
        played.press(letter("v"))
        assert "best x0+ (right or D)" in played.window.notes[1]
        assert played.bare.action_with_key(5) == "x2+ (E)"

    def test_a_goal_is_celebrated_and_held_against_the_optimum(self) -> None:
        played = game(adviser=corridor, shape=(4, 1))
        plain = played.window.pixels()
        for key in (LEFT, LEFT, LEFT):
            assert played.window.banner == ()
            played.press(key)
        first, second = played.window.banner
        assert first == "The goal, in 3 steps!"
        # Costs 1, 1 and -1 with discount 1/2.
        assert second == ("No move could have been better: return -1.25 (gamma 0.5), optimum -1.25")
        assert played.discounted_cost == pytest.approx(1 + 1 / 2 - 1 / 4)
        played.press(letter("r"))
        assert played.window.banner == ()
        assert played.window.pixels().shape == plain.shape
        for key in (RIGHT, LEFT, LEFT, LEFT):
            played.press(key)
        # The regret is the one less the other: 1 + 1/2 + 1/4 - 1/8 were paid.
        assert "return -1.625 (gamma 0.5), optimum -1.25, regret 0.375" in played.window.banner[1]

    def test_falling_is_not_celebrated(self) -> None:
        played = game("DiscretizedCartPole-v0", adviser=advise)
        while not played.over:
            played.press(LEFT)
        assert played.window.banner == ()
        assert "the end" in played.window.notes[0]

    def test_each_maze_is_planned(self) -> None:
        planned: list[Any] = []

        def adviser(model: Any) -> Advice:
            planned.append(model)
            return advise(model)

        played = game(adviser=adviser, shape=(5, 5))
        played.press(letter("v"))
        first = played.window.pixels()
        played.press(letter("n"))
        assert planned == [planned[0], played.bare.transition_model()]
        assert planned[0] is not planned[1]
        assert played.bare._overlay.values is not None, "of the new maze, since the key was pressed"
        assert not np.array_equal(played.window.pixels(), first)


def later(*presses: Any) -> Callable[..., Any]:
    """Return a stand-in for `time.sleep` that presses a key each time, in turn."""
    waiting = list(presses)

    def sleep(seconds: float) -> None:
        kind, what = waiting.pop(0)
        pygame.event.post(pygame.event.Event(kind, **what))

    return sleep


class TestLoop:
    def test_until_escape(self, monkeypatch: pytest.MonkeyPatch) -> None:
        env = gym.make("StandardMaze-v0", shape=(4, 1), render_mode="human")
        env.reset(seed=0)
        screen = env.unwrapped.window._window

        def pressed(code: int, text: str = "") -> tuple[int, dict[str, Any]]:
            return pygame.KEYDOWN, {"key": code, "unicode": text, "window": screen}

        monkeypatch.setattr(
            time, "sleep", later(pressed(keys.LEFT), pressed(ord("a"), "a"), pressed(keys.ESCAPE))
        )
        left = play(env, seed=0)
        assert left.bare._state == 1
        assert left.quit
        assert not env.unwrapped.window.is_open

    def test_until_the_window_is_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        env = gym.make("StandardMaze-v0", render_mode="human")
        env.reset(seed=0)
        closing = (pygame.WINDOWCLOSE, {"window": env.unwrapped.window._window})
        monkeypatch.setattr(time, "sleep", later(closing))
        assert not play(env).quit

    def test_gymnasiums_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for env_id in aggmaze.ENV_IDS:
            env = gym.make(env_id, render_mode="rgb_array")
            actions = env.unwrapped.get_keys_to_action()
            left = next(code for (code,), action in actions.items() if action == 0)
            events = [
                [pygame.event.Event(pygame.KEYDOWN, key=left)],
                [pygame.event.Event(pygame.KEYUP, key=left)],
                [pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE)],
            ]
            monkeypatch.setattr(pygame.event, "get", lambda events=events: events.pop(0))
            seen: list[int] = []
            gymnasium.utils.play.play(
                env,
                fps=1000,
                seed=0,
                wait_on_player=True,
                callback=lambda *step, seen=seen: seen.append(step[2]),
            )
            assert seen == [0]


TELLS_WHEN_IT_WAITS = """
import sys

from aggmaze.play import main
from aggmaze.rendering.window import Window


class Told(Window):
    told = False

    def pressed(self):
        if not Told.told:
            Told.told = True
            print("waits", flush=True)
        return super().pressed()


import aggmaze.envs.tabular

aggmaze.envs.tabular.Window = Told
sys.exit(main(["StandardMaze-v0"]))
"""


class TestCommand:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["Nowhere-v0"], "Nowhere"),
            (["FrozenLake-v1"], "cannot be played here"),
            (["StandardMaze-v0", "--set", "shape"], "KEY=VALUE"),
            (["StandardMaze-v0", "--set", "size=3"], "takes no 'size'"),
            (["StandardMaze-v0", "--set", "p=2"], r"p must be in \(0, 1\]"),
            (["StandardMaze-v0", "--set", "render_mode=ansi", "--seed", "-1"], "-1"),
            (["StandardMaze-v0", "--seed", "-1"], "--seed must be at least 0, got -1"),
            (["StandardMaze-v0", "--set", "render_mode=ansi"], "render_mode is always 'human'"),
            (["StandardMaze-v0", "--set", "p=.9", "--set", "p=.9"], "--set p is given twice"),
            (["StandardMaze-v0", "--set", "shpe=3"], "did you mean 'shape'"),
            (["StandardMaze-v0", "--set", "shape=5x5"], r"integers .*, got '5x5'$"),
        ],
    )
    def test_bad_use(
        self, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert len(error.strip().split("\n")) == 1
        assert re.search(message, error)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "required: ENV"),
            (["StandardMaze-v0", "--seed", "one"], "'one'"),
            (["StandardMaze-v0", "--seed", "1", "--seed", "2"], "--seed is given 2 times"),
            (["StandardMaze-v0", "--nothing"], "--nothing"),
        ],
    )
    def test_a_wrong_command_line(
        self, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        error = capsys.readouterr().err
        assert re.fullmatch(r"error: .*; see python -m aggmaze.play --help\n", error)
        assert message in error

    def test_as_a_module(self) -> None:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "aggmaze.play", "FrozenLake-v1"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert "FrozenLake-v1 cannot be played here" in done.stderr

    @pytest.mark.parametrize(
        ("sent", "code", "said"),
        [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, -signal.SIGTERM, "")],
    )
    def test_signals_end_it(self, sent: signal.Signals, code: int, said: str) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", TELLS_WHEN_IT_WAITS],
            env=os.environ | {"SDL_VIDEODRIVER": "dummy"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(sent)
        try:
            _, errors = process.communicate(timeout=20)
        finally:
            process.kill()
        assert process.returncode == code
        assert errors == said
