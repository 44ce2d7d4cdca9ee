"""Policies and the paths that they take."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.quiver import Quiver

import aggmaze
import planners
from planners.plotting import (
    plot_path,
    plot_policy,
    plot_values,
)
from planners.policies import greedy_path
from tests.planners.plotting.runs import LAKE, MAZE


def test_the_path_is_the_policys() -> None:
    env = gym.make("StandardMaze-v0", shape=(6, 6))
    model = planners.as_model(env)
    result = planners.solve(env, gamma=0.9)
    path = greedy_path(model, result.policy, 35)
    assert path[0] == 35
    assert path[-1] == 0
    env.reset(options={"state": 35})
    walked = [35, *(int(env.step(result.policy[state])[0]) for state in path[:-1])]
    np.testing.assert_array_equal(path, walked)
    # The same from the general sparse table, by its likeliest outcomes.
    np.testing.assert_array_equal(path, greedy_path(model.to_tabular(), result.policy, 35))


def test_a_path_that_comes_back_to_itself_ends() -> None:
    model = planners.as_model(gym.make("TerrainMaze-v0", shape=(4, 4)))
    up_and_down = np.where(np.arange(16) % 4 == 3, 2, 3)
    np.testing.assert_array_equal(greedy_path(model, up_and_down, 12), [12, 13, 14, 15, 14])


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

    def test_a_single_plane_goes_through_most_of_it(self) -> None:
        env = gym.make("NDMaze-v0", shape=(3, 3, 3, 3))
        # Along axis 3 from the corner (2, 2, 0, 0), and one step along axis 0.
        path = [72, 73, 74, 47]
        axes = plot_path(env, path, axes=(2, 3), along=())
        lines = [line for line in axes.lines if line.get_linestyle() == "-"]
        seen = np.array([point for point in lines[0].get_xydata() if np.isfinite(point).all()])
        assert seen.tolist() == [[0, 0], [0, 1], [0, 2]]
        given = plot_path(env, path, axes=(2, 3), along=(), through=(0, 0, 0, 0))
        assert "not in this plane" in given.get_xlabel()

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


@pytest.mark.parametrize("count", [3, 200])
def test_all_actions_are_on_the_axis_also_those_never_taken(count: int) -> None:
    P = np.full((4, count, 4), 0.25)
    model = aggmaze.TabularMDP.from_matrices(P, costs=np.ones((4, count)))
    axes = plot_policy(model, np.zeros(4, dtype=int))
    low, high = axes.get_ylim()
    assert low < 0
    assert high > count - 1
    axes.figure.canvas.draw()
    labels = [word for word in axes.get_yticklabels() if low < word.get_position()[1] < high]
    boxes = sorted(word.get_window_extent().extents[[1, 3]].tolist() for word in labels)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(boxes))
