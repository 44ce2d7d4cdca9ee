"""The adviser of those who play tells the optimum."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

import planners
from aggmaze.play import Game
from aggmaze.rendering.window import Key
from planners import cli
from planners.advice import adviser


def test_regrets_add_up_to_q_less_v() -> None:
    env = gym.make("TerrainMaze-v0", shape=(5, 5), p=0.8, render_mode="human")
    game = Game(env, seed=0, adviser=adviser(0.9, tol=1e-10))
    result = planners.solve(env, gamma=0.9, tol=1e-10)
    Q = planners.q_values(env, result.values, 0.9)
    codes = {action: code for (code,), action in game.bare.get_keys_to_action().items()}
    rng, expected = np.random.default_rng(0), 0.0
    for _ in range(20):
        state = game.bare._state
        action = int(rng.choice(np.flatnonzero(game.bare.action_masks())))
        expected += Q[state, action] - Q[state].min()
        game.press(Key(codes[action], ""))
        assert game.regret == pytest.approx(expected, abs=1e-9)
        if game.over:
            break
    assert expected > 0.1
    env.close()


def test_following_the_advice_costs_no_regret() -> None:
    env = gym.make("StandardMaze-v0", shape=(6, 6), p=0.9, render_mode="human")
    game = Game(env, seed=0, adviser=adviser(0.95))
    codes = {action: code for (code,), action in game.bare.get_keys_to_action().items()}
    while not game.over:
        assert game.advice is not None
        game.press(Key(codes[int(game.advice.policy[game.bare._state])], ""))
    assert game.regret == pytest.approx(0, abs=1e-6)
    env.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["StandardMaze-v0", "--gamma", "2"], "gamma must be in [0, 1]"),
        (["StandardMaze-v0"], "say what is asked: --gamma"),
        (["FrozenLake-v1", "--gamma", "0.9"], "cannot be played here"),
        (["StandardMaze-v0", "--gamma", "0.9", "--set", "p=0"], "p must be in (0, 1]"),
        (["Nowhere-v0", "--gamma", "0.9"], "Nowhere"),
    ],
)
def test_bad_use_of_the_command(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(cli.app, ["play", *arguments])
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Game] = []

    class Watched(Game):
        def press(self, key: Key) -> None:
            super().press(key)
            played.append(self)

    monkeypatch.setattr("aggmaze.play.Game", Watched)
    presses = iter([[Key(ord("v"), "v")], [Key(27, "")]])
    monkeypatch.setattr("aggmaze.rendering.window.Window.pressed", lambda self: next(presses))
    done = CliRunner().invoke(
        cli.app, ["play", "StandardMaze-v0", "--gamma", "0.9", "--set", "shape=4,1"]
    )
    assert done.exit_code == 0, done.output
    # Two steps at 1, then the reward: 1 + .9 - .81.
    assert "best return from here -1.09 (gamma 0.9)" in played[0].window.notes[1]
