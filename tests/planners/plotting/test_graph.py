"""Small models as graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.text import Annotation

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
