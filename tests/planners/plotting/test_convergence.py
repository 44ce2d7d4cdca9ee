"""Curves of runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import planners
from planners.plotting import (
    ErrorTrace,
    plot_convergence,
    save_figure,
)
from tests.planners.plotting.runs import AGGREGATED, MAZE


class TestConvergence:
    def test_error_bound_and_residual(self) -> None:
        optimum = planners.solve(MAZE, gamma=0.95, tol=1e-12)
        trace = ErrorTrace(optimum)
        result = planners.solve(
            MAZE, gamma=0.95, method="value_iteration", num_iterations=10, callback=trace
        )
        assert len(trace) == 10
        V = planners.solve(MAZE, gamma=0.95, method="value_iteration", num_iterations=4).values
        assert trace.error[3] == pytest.approx(np.abs(V - optimum.values).max(), rel=1e-9)
        axes = plot_convergence(
            {"VI": result},
            errors={"VI": trace},
            show=("error", "bound", "residual"),
            against="sweeps",
        )
        error, bound, residual = axes.lines
        np.testing.assert_allclose(error.get_xdata(), np.arange(1, 11))
        assert (error.get_ydata() <= np.asarray(bound.get_ydata()) * (1 + 1e-9)).all()
        np.testing.assert_array_equal(residual.get_ydata(), result.history.residual)
        assert axes.get_yscale() == "log"
        assert axes.get_legend().get_texts()[0].get_text() == "VI"

    def test_several_of_one_method_have_names_of_their_own(self, tmp_path: Any) -> None:
        axes = plot_convergence([AGGREGATED, AGGREGATED], show="residual", against="seconds")
        words = [text.get_text() for text in axes.get_legend().get_texts()]
        assert words[:2] == ["adaptive_aggregation", "adaptive_aggregation 2"]
        assert axes.get_xlabel() == "seconds"
        save_figure(axes, tmp_path / "curves.pdf")

    def test_refused(self) -> None:
        with pytest.raises(ValueError, match="results must hold at least one"):
            plot_convergence({})
        with pytest.raises(ValueError, match="against must be one of"):
            plot_convergence(AGGREGATED, against="time")
        with pytest.raises(ValueError, match="errors has 'VI', which is none of the results"):
            plot_convergence(AGGREGATED, errors={"VI": ErrorTrace(AGGREGATED)})
        with pytest.raises(TypeError, match=r"results\['a'\] must be a SolveResult, got int"):
            plot_convergence({"a": 1})  # type: ignore[dict-item]
        with pytest.raises(ValueError, match="nothing to draw"):
            plot_convergence(AGGREGATED, show="error")
