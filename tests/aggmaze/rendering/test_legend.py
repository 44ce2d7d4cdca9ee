"""The key beside a frame."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aggmaze
from aggmaze.rendering import legend
from aggmaze.rendering.colors import value_colors
from aggmaze.rendering.overlay import Overlay, number
from tests.aggmaze.rendering.frames import make


class TestLegend:
    def test_one_value_only(self) -> None:
        env = make(shape=(4, 3))
        env.set_overlay(values=np.full(12, 3.0))
        colours = np.unique(env.render().reshape(-1, 3), axis=0)
        assert value_colors(0.0).tolist() in colours.tolist()

    def test_it_differs_with_the_scale(self) -> None:
        pictures = [
            legend.draw(Overlay.of(3, 2, values=values)).tobytes()
            for values in ([0, 1, 2], [0, 1, 3], [0, 1, 2000])
        ]
        assert len(set(pictures)) == 3

    @pytest.mark.parametrize(
        ("value", "text"),
        [(0.0, "0"), (1234.5, "1,234"), (0.012345, "0.0123"), (-99.94, "-99.9"), (2e7, "2e+07")],
    )
    def test_numbers_are_short(self, value: float, text: str) -> None:
        assert number(value) == text

    def test_ticks_are_round(self) -> None:
        assert legend.ticks(-1.0, 64.8) == [0, 20, 40, 60]
        assert legend.ticks(0.155, 13.7) == [5, 10]
        assert legend.ticks(3.0, 3.0) == [3.0]

    @given(low=st.floats(-1e6, 1e6, allow_nan=False), width=st.floats(1e-3, 1e6, allow_nan=False))
    def test_there_are_two_to_five_ticks_within(self, low: float, width: float) -> None:
        found = legend.ticks(low, low + width)
        assert 2 <= len(found) <= 5
        assert min(found) >= low - 1e-6 * width
        assert max(found) <= low + width * (1 + 1e-6)

    def test_every_megastate_has_its_colour_on_the_bar(self) -> None:
        labels = np.repeat(np.arange(6), 2)
        picture = legend.draw(Overlay.of(12, 2, labels=labels))
        seen = {tuple(color) for color in picture.reshape(-1, 3).tolist()}
        assert {tuple(color) for color in value_colors(np.linspace(0, 1, 6)).tolist()} <= seen

    def test_the_discount_stands_beside_values(self) -> None:
        plain, discounted = (
            legend.draw(Overlay.of(3, 2, values=[0, 1, 2], gamma=gamma)) for gamma in (None, 0.9)
        )
        assert not np.array_equal(plain, discounted)
        with pytest.raises(ValueError, match=r"gamma must be in \[0, 1\], got 2"):
            make(shape=(4, 3)).set_overlay(values=np.arange(12.0), gamma=2)

    def test_returns_are_minus_the_costs(self) -> None:
        env = make("DiscretizedCartPole-v0")
        env.set_overlay(values=np.linspace(-5, 5, env.observation_space.n))
        told = legend.draw(env._overlay)
        costs = legend.draw(Overlay.of(2, 2, values=[-5, 5]))
        assert not np.array_equal(told, costs)
        assert env._overlay.told(-99.7) == 99.7

    @pytest.mark.parametrize("env_id", [name for name in aggmaze.ENV_IDS if "Disc" in name])
    def test_no_patch_hides_a_scene(self, env_id: str) -> None:
        env = make(env_id)
        plain = env.render()
        env.set_overlay(values=np.arange(float(env.observation_space.n)))
        changed = (env.render() != plain).any(axis=2)
        height, width = legend.SIZE[1], legend.SIZE[0]
        assert 0 < changed[:height, -width:].mean() < 0.3
        changed[:height, -width:] = False
        assert not changed.any()
