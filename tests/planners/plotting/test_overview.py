"""`SolveResult.plot`, which picks the picture."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import planners
from aggmaze import TabularMDP
from planners.plotting import (
    figure_of,
    plot_path,
    plot_policy,
    plot_values,
)
from tests.planners.plotting.runs import AGGREGATED, LAKE, LAKE_RESULT, MAZE, bar_label


class TestOneCall:
    @pytest.mark.parametrize(
        "what",
        [
            "values",
            "policy",
            "q_values",
            "megastates",
            "path",
            "action_gaps",
            "occupancy",
            "slices",
        ],
    )
    def test_every_kind_of_a_maze(self, what: str) -> None:
        axes = AGGREGATED.plot(MAZE, what)
        assert isinstance(axes, Axes)
        assert axes.get_title().startswith("StandardMaze-v0")
        assert axes.get_xlabel() == "x (cells)"
        figure_of(axes).canvas.draw()

    @pytest.mark.parametrize("what", ["values", "graph", "q_values", "policy", "occupancy"])
    def test_a_model_without_a_map(self, what: str) -> None:
        model = planners.as_model(LAKE)
        axes = LAKE_RESULT.plot(model, what)
        assert isinstance(axes, Axes)
        figure_of(axes).canvas.draw()

    def test_small_models_are_graphs_and_results_alone_converge(self) -> None:
        model = planners.as_model(LAKE)
        (nodes,) = (c for c in LAKE_RESULT.plot(model).collections if len(c.get_offsets()) == 16)
        np.testing.assert_allclose(nodes.get_array(), -LAKE_RESULT.values)
        assert AGGREGATED.plot().get_xlabel().startswith("updates")

    def test_what_pays_is_a_return_with_light_where_it_is_high(self) -> None:
        axes = LAKE_RESULT.plot(LAKE)
        assert bar_label(axes) == "return (unit of rewards)"
        (image,) = axes.images
        np.testing.assert_allclose(
            np.asarray(image.get_array())[::-1].ravel(), -LAKE_RESULT.values, atol=1e-15
        )
        low, high = image.cmap([0.0, 1.0])[:, :3].sum(axis=1)
        assert high > low

    def test_of_a_horizon_one_step(self) -> None:
        result = planners.solve(MAZE, objective=planners.FiniteHorizon(3))
        image = result.plot(MAZE, step=2).images[0]
        shown = np.asarray(image.get_array())[::-1]
        np.testing.assert_array_equal(
            shown, MAZE.get_wrapper_attr("grid").to_image(result.values[2])
        )
        with pytest.raises(ValueError, match="step"):
            result.plot(MAZE, step=4)

    def test_into_axes_that_are_given(self) -> None:
        figure = Figure()
        left, right = figure.subplots(1, 2)
        assert AGGREGATED.plot(MAZE, ax=left) is left
        assert AGGREGATED.plot(MAZE, "policy", ax=right, title="Mine") is right
        assert right.get_title() == "Mine"
        assert figure_of(right) is figure

    def test_of_layers_an_array(self) -> None:
        env = gym.make("NDMaze-v0", shape=(3, 3, 4))
        result = planners.solve(env, gamma=0.9)
        drawn = result.plot(env)
        assert drawn.shape == (4,)
        with pytest.raises(
            ValueError, match=r"ax must hold 4 Axes, one a panel, got 1; along=\(\)"
        ):
            result.plot(env, ax=Figure().add_subplot())
        assert isinstance(result.plot(env, along=()), Axes)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ((MAZE, "valves"), ValueError, "what must be one of values, .*did you mean"),
            ((LAKE,), ValueError, "the result has 30 states, and what was given has 16"),
            ((None, "values"), TypeError, "needs the environment or the model"),
            ((7,), TypeError, "expected a TabularMDP"),
            ((MAZE.get_wrapper_attr("layout"), "occupancy"), TypeError, "not its layout"),
        ],
    )
    def test_refused(self, arguments: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            AGGREGATED.plot(*arguments)
        with pytest.raises(ValueError, match="made no mega-states"):
            LAKE_RESULT.plot(LAKE, "megastates")
        with pytest.raises(TypeError, match="ax must be Axes"):
            AGGREGATED.plot(MAZE, ax="here")

    def test_without_matplotlib_the_install_line_is_named(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(ModuleNotFoundError, match=r'pip install "aggmaze\[plots\]"'):
            AGGREGATED.plot(MAZE)
        for draw in (plot_policy, plot_values, plot_path):
            with pytest.raises(ModuleNotFoundError, match=r"aggmaze\[plots\]"):
                draw(MAZE, np.zeros(30, dtype=int))


def test_average_costs_are_biases_where_one_number_is_the_mean_of_all() -> None:
    P = np.full((2, 4, 4), 0.25)
    model = TabularMDP.from_mdptoolbox(P, np.arange(8.0).reshape(4, 2))
    result = planners.solve(model, objective=planners.AverageCost())
    assert result.bias is not None
    axes = result.plot(model, "values")
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_allclose(heights, result.bias)
    words = " ".join(axes.get_ylabel().split())
    assert words.startswith("bias: cost beyond the mean of -4 a step")
