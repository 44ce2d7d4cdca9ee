"""`SolveResult.plot`, and what its pictures tell."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

import planners
from planners.plotting import (
    ErrorTrace,
    action_gaps,
    figure_of,
    plot_convergence,
    plot_megastates,
    plot_occupancy,
    plot_path,
    plot_policy,
    plot_q_values,
    plot_slices,
    plot_values,
    save_figure,
)

MAZE = gym.make("StandardMaze-v0", shape=(6, 5), p=0.9)
LAKE = gym.make("FrozenLake-v1")
AGGREGATED = planners.solve(
    MAZE, gamma=0.95, method="adaptive_aggregation", epsilon=0.8, num_iterations=40
)
LAKE_RESULT = planners.solve(LAKE, gamma=0.99)


def bar_label(drawn: Any) -> str:
    return str(figure_of(drawn).axes[-1].get_ylabel()).replace("\n", " ")


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


class TestScales:
    def test_rank_gives_every_part_as_many_states(self) -> None:
        layout = MAZE.get_wrapper_attr("layout")
        values = np.exp(np.arange(30.0))
        norm = plot_values(layout, values, scale="rank").images[0].norm
        np.testing.assert_allclose(norm(values).filled(), np.arange(30) / 29, atol=0.02)
        np.testing.assert_allclose(norm.inverse(norm(values).filled()), values, rtol=1e-9)

    def test_distance_counts_steps_with_a_model_and_without(self) -> None:
        for source in (MAZE, MAZE.get_wrapper_attr("layout")):
            axes = plot_values(source, np.zeros(30), scale="distance")
            assert bar_label(axes) == "fewest steps to an end"
            drawn = np.asarray(axes.images[0].get_array())
            # One step farther than the nearest neighbour, wherever that is open.
            layout = MAZE.get_wrapper_attr("layout")
            steps = drawn.T.reshape(-1)
            assert steps[layout.goal] == 0
            for state in range(30):
                around = [
                    state + (-1, 1)[a % 2] * layout.grid.strides[a // 2]
                    for a in np.flatnonzero(layout.available()[state])
                ]
                if state != layout.goal:
                    assert steps[state] == 1 + min(steps[near] for near in around)

    def test_others_are_refused(self) -> None:
        with pytest.raises(ValueError, match="scale must be one of linear, log, rank, distance"):
            plot_values(MAZE, np.zeros(30), scale="size")
        with pytest.raises(ValueError, match="needs values above 0"):
            plot_values(MAZE, np.zeros(30), scale="log")


class TestMegastates:
    def test_colours_go_by_the_mean_value_and_the_bar_shows_the_bins(self) -> None:
        layout = gym.make("TerrainMaze-v0", shape=(4, 1)).get_wrapper_attr("layout")
        # Labels need not be in order.
        axes = plot_megastates(layout, [5, 5, 2, 9], [1.0, 3.0, 0.0, 10.0])
        (image,) = axes.images
        assert np.asarray(image.get_array()).ravel().tolist() == [1, 1, 0, 2]
        bar = figure_of(axes).axes[-1]
        # Half-way between the means 0, 2 and 10, and as far again outside.
        np.testing.assert_allclose(bar.get_yticks(), [-1, 1, 6, 14])
        assert "3 mega-states" in bar.get_ylabel()
        assert image.cmap(image.norm(1.0)) == pytest.approx(
            planners.plotting.canvas.sequential()(0.2), abs=0.01
        )
        # A border on either side of the two that are one.
        borders = [np.asarray(s)[:, 0].tolist() for s in axes.collections[0].get_segments()]
        assert borders == [[1.5, 1.5], [2.5, 2.5]]

    def test_refused(self) -> None:
        with pytest.raises(ValueError, match="labels must be 30 integers"):
            plot_megastates(MAZE, np.zeros(30))


class TestQValues:
    def test_a_triangle_for_each_available_action(self) -> None:
        Q = planners.q_values(MAZE, AGGREGATED)
        axes = plot_q_values(MAZE, Q)
        drawn = sum(
            len(each.get_paths()) for each in axes.collections if isinstance(each, PolyCollection)
        )
        acting = MAZE.get_wrapper_attr("layout").acting()
        assert drawn == np.isfinite(Q[acting]).sum()
        with pytest.raises(ValueError, match=r"Q must have shape \(30, 4\), got \(30, 3\)"):
            plot_q_values(MAZE, Q[:, :3])

    def test_gaps(self) -> None:
        Q = np.array([[1.0, 4.0, 2.5], [3.0, 3.0, 9.0], [np.inf, 2.0, np.inf]])
        assert action_gaps(Q).tolist() == [1.5, 0.0, np.inf]
        with pytest.raises(ValueError, match=r"of a finite horizon take one step, Q\[t\]"):
            action_gaps(Q[np.newaxis])


class TestPoliciesAndPaths:
    def test_probabilities_are_arrows_for_each_action(self) -> None:
        weights = np.tile([0.5, 0.5, 0.0, 0.0], (16, 1))
        axes = plot_policy(LAKE, weights)
        (arrows,) = (each for each in axes.collections if isinstance(each, Quiver))
        assert len(arrows.U) == 2 * 11  # 16 less four holes and the goal

    def test_large_ones_are_colours_with_a_key(self) -> None:
        layout = gym.make("StandardMaze-v0", shape=(50, 50)).get_wrapper_attr("layout")
        axes = plot_policy(layout, np.arange(2500) % 4)
        names = [text.get_text() for text in axes.get_legend().get_texts()]
        assert names == ["LEFT", "RIGHT", "DOWN", "UP"]

    def test_a_path_has_its_white_edge_and_its_disc_below_arrows(self) -> None:
        axes = plot_values(MAZE, np.arange(30.0), np.zeros(30, int), [29, 28])
        (arrows,) = (each for each in axes.collections if isinstance(each, Quiver))
        lines = [line for line in axes.lines if line.get_linestyle() == "-"]
        assert [line.get_color() for line in lines] == ["white", "#d62728"]
        assert max(line.get_zorder() for line in lines) < arrows.get_zorder()
        (disc,) = (line for line in axes.lines if line.get_marker() == "o")
        assert disc.get_xydata().tolist() == [[5, 4]]

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ([30], "the path holds 30, which is not a state"),
            ([0.5], "states in order"),
            ([], "states in order"),
        ],
    )
    def test_refused(self, path: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            plot_path(MAZE, path)
        with pytest.raises(ValueError, match=r"policy must hold actions in \[0, 4\)"):
            plot_policy(MAZE, np.full(30, 4))


class TestOccupancy:
    def test_what_is_hardly_visited_is_grey(self) -> None:
        env = gym.make("StandardMaze-v0", shape=(6, 5))
        result = planners.solve(env, gamma=0.9)
        axes = plot_occupancy(env, result)
        visits = planners.occupancy(env, result)
        (image,) = axes.images
        grey = np.asarray(image.get_array()) > image.norm.vmax
        assert grey.sum() == (visits == 0).sum() > 0
        assert "grey: hardly ever" in bar_label(axes)
        with pytest.raises(ValueError, match="give the environment instead of its layout"):
            plot_occupancy(env.get_wrapper_attr("layout"), result)


class TestSlices:
    def test_a_plane_for_each_pair(self) -> None:
        env = gym.make("NDMaze-v0", shape=(4, 3, 2))
        values = np.arange(24.0)
        drawn = plot_slices(env, values, through=(1, 2, 1))
        labels = [(axes.get_xlabel()[:6], axes.get_ylabel()[:6]) for axes in drawn]
        assert labels == [("axis 0", "axis 1"), ("axis 0", "axis 2"), ("axis 1", "axis 2")]
        shown = np.asarray(drawn[1].images[0].get_array())
        np.testing.assert_array_equal(shown, values.reshape(4, 3, 2)[:, 2].T)
        # The goal (0, 0, 0) is in none of these planes.
        assert not any(line.get_marker() == "*" for axes in drawn for line in axes.lines)


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
