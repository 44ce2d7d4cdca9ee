"""Overlays of the cart and its pole."""

from __future__ import annotations

import numpy as np
import pytest

from aggmaze.rendering.overlay import number
from tests.aggmaze.rendering.frames import make


class TestCartPole:
    def test_the_arrow_is_on_the_side_of_the_push(self) -> None:
        env = make("DiscretizedCartPole-v0")
        plain = env.render()
        sides = []
        for action in (0, 1):
            env.set_overlay(policy=np.full(env.observation_space.n, action))
            changed = np.argwhere((env.render() != plain).any(axis=2))
            sides.append(changed[:, 1].mean() - plain.shape[1] / 2)
        assert sides[0] < 0 < sides[1]

    def test_text_tells_all(self) -> None:
        env = make("DiscretizedCartPole-v0", "ansi")
        size = env.observation_space.n
        env.set_overlay(
            values=np.linspace(-5, 5, size),
            policy=np.ones(size, dtype=int),
            labels=np.arange(size) // 100,
        )
        lines = env.render().split("\n")
        value = np.linspace(-5, 5, size)[env._state]
        assert lines[-3] == f"return {number(-value)} (from -5 to 5)"
        assert lines[-2] == "action RIGHT"
        assert lines[-1] == f"mega-state {env._state // 100} of 100"

    def test_it_has_no_path(self) -> None:
        with pytest.raises(TypeError, match="path"):
            make("DiscretizedCartPole-v0").set_overlay(path=[1, 2])
