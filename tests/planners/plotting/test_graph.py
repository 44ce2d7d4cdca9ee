"""Small models as graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.text import Annotation

import aggmaze
from planners.plotting import plot_graph
from tests.planners.plotting.runs import LINE


def test_arrows_of_a_graph_are_as_wide_as_they_are_likely() -> None:
    def widths(policy: Any) -> list[float]:
        texts = plot_graph(LINE, np.zeros(7), policy).texts
        arrows = [
            each.arrow_patch for each in texts if isinstance(each, Annotation) and each.zorder == 2
        ]
        return sorted({arrow.get_linewidth() for arrow in arrows if arrow is not None})

    assert widths(np.zeros(7, int)) == pytest.approx([0.6 + 1.6])
    assert widths(np.tile([0.25, 0.75], (7, 1))) == pytest.approx([0.6 + 0.4, 0.6 + 1.2])


def test_discs_of_a_graph_lie_apart() -> None:
    """Forty states in random order: once an ellipse five times as long as wide."""
    rng = np.random.default_rng(0)
    P = np.zeros((40, 1, 40))
    for state in range(40):
        P[state, 0, rng.choice(40, 2, replace=False)] = 0.5
    model = aggmaze.TabularMDP.from_matrices(P, costs=np.ones((40, 1)))
    ax = plot_graph(model, np.arange(40.0))
    figure = ax.figure
    figure.canvas.draw()
    discs = ax.collections[0]
    places = ax.transData.transform(discs.get_offsets()) * 72 / figure.dpi
    apart = np.linalg.norm(places[:, np.newaxis] - places, axis=-1)
    np.fill_diagonal(apart, np.inf)
    assert apart.min() > 1.3 * np.sqrt(discs.get_sizes()[0])
    assert 0.5 < np.ptp(places[:, 0]) / np.ptp(places[:, 1]) < 2
    assert min(text.get_fontsize() for text in ax.texts) >= 7
