"""Colours: scales, and what is laid over them."""

from __future__ import annotations

import numpy as np
import pytest

from aggmaze.rendering.colors import (
    AGENT,
    FLOOR,
    GOAL,
    INK,
    PATH,
    RELIEF,
    VALUES,
    WHITE,
    hex_color,
    megastate_shares,
)
from tests.aggmaze.rendering.frames import luminance


class TestMegastateShares:
    def test_without_values_labels_lie_evenly_in_their_order(self) -> None:
        assert megastate_shares([7, 2, 2, 9]).tolist() == [0.5, 0.0, 0.0, 1.0]

    def test_with_values_they_lie_where_the_mean_of_their_finite_ones_does(self) -> None:
        shares = megastate_shares([0, 0, 1, 1, 2], [10.0, 20.0, 0.0, np.inf, 5.0])
        assert shares.tolist() == [1.0, 1.0, 0.0, 0.0, pytest.approx(1 / 3)]

    def test_of_one_value_all_lie_at_the_low_end(self) -> None:
        assert megastate_shares([3, 3, 3]).tolist() == [0, 0, 0]
        assert megastate_shares([0, 1], [5.0, 5.0]).tolist() == [0, 0]

    def test_without_a_finite_value_it_is_unknown(self) -> None:
        shares = megastate_shares([0, 1, 2], [1.0, np.inf, 3.0])
        np.testing.assert_array_equal(shares, [0.0, np.nan, 1.0])
        assert np.isnan(megastate_shares([0, 1], [np.inf, np.nan])).all()

    def test_a_grid_of_labels_keeps_its_shape(self) -> None:
        assert megastate_shares([[0, 1], [2, 2]]).shape == (2, 2)

    def test_values_of_another_shape_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"values must have the shape of labels, \(2,\)"):
            megastate_shares([0, 1], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("mark", [GOAL, AGENT, PATH])
def test_what_is_laid_over_a_scale_has_none_of_its_colours(mark: tuple[int, int, int]) -> None:
    for color in (*VALUES, *RELIEF, FLOOR):
        assert np.abs(np.subtract(mark, color)).sum() > 110


def test_hexadecimal() -> None:
    assert hex_color((0, 10, 255)) == "#000aff"


class TestColours:
    @pytest.mark.parametrize("scale", [VALUES, RELIEF])
    def test_what_is_more_is_darker(self, scale: tuple[tuple[int, int, int], ...]) -> None:
        levels = [luminance(color) for color in scale]
        assert levels == sorted(levels, reverse=True)

    def test_arrows_can_be_seen_on_every_colour(self) -> None:
        for color in (*VALUES, *RELIEF, FLOOR):
            contrasts = [
                (max(a, b) + 0.05) / (min(a, b) + 0.05)
                for a, b in ((luminance(color), luminance(of)) for of in (INK, WHITE))
            ]
            assert max(contrasts) > 4, "the arrow or its seam"
