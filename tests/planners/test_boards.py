"""Where states are drawn: the boards of mazes, Gymnasium's grids, cells and names."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import planners
from aggmaze import TabularMDP
from planners.boards import planes_of
from planners.plotting import Board, board_of


def board(source: Any) -> Board:
    found = board_of(source)
    assert found is not None
    return found


def place(found: Board, state: int) -> tuple[float, ...]:
    return tuple(found.positions(np.array([state]))[0].tolist())


class TestGymnasiumsGrids:
    def test_frozen_lake_counts_its_rows_from_above(self) -> None:
        found = board(gym.make("FrozenLake-v1"))
        # State 4 begins the second row; the goal, 15, is at the bottom right.
        assert (place(found, 0), place(found, 4), place(found, 15)) == ((0, 3), (0, 2), (3, 0))
        assert found.layout is not None
        assert place(found, 15) == tuple(found.layout.grid.coords(found.layout.goal))
        # LEFT, DOWN, RIGHT, UP, though each of them slips.
        assert found.directions is not None
        assert found.directions.tolist() == [[-1, 0], [0, -1], [1, 0], [0, 1]]
        holes = [place(found, s) for s in (5, 7, 11, 12)]
        signs = found.layout.signs
        assert signs is not None
        marked = found.grid.coords(np.flatnonzero(signs == ord("H")))
        assert sorted(map(tuple, marked.tolist())) == sorted(holes)

    def test_cliff_walking_has_its_cliff_and_an_end(self) -> None:
        found = board(gym.make("CliffWalking-v1"))
        assert found.grid.shape == (12, 4)
        assert found.layout is not None
        assert tuple(found.layout.grid.coords(found.layout.goal)) == (11, 0)
        # One acts everywhere but at the end and down there.
        acting = found.lay(np.arange(48))[found.acting()]
        assert sorted(acting.tolist()) == list(range(37))
        # UP, RIGHT, DOWN, LEFT
        assert found.directions is not None
        assert found.directions.tolist() == [[0, 1], [1, 0], [0, -1], [-1, 0]]

    def test_taxi_has_four_dimensions_and_walls(self) -> None:
        env = gym.make("Taxi-v4")
        inner: Any = env.unwrapped
        found = board(env)
        for state in (0, 123, 499):
            row, column, passenger, destination = inner.decode(state)
            assert place(found, state) == (column, 4 - row, passenger, destination)
        # South, north, east, west; the others stay.
        assert found.directions is not None
        assert found.directions[:4, :2].tolist() == [[0, -1], [0, 1], [1, 0], [-1, 0]]
        assert not found.directions[4:, :2].any()
        # A wall is where east or west does not move.
        assert found.layout is not None
        joined = found.layout.passages[:, 0]
        for position, state in enumerate(found.states.tolist()):  # type: ignore[union-attr]
            if found.grid.coords(position)[0] < 4:
                following = inner.P[state][2][0][1]
                assert joined[position] == (following != state)


class TestNames:
    def test_a_map_with_gaps(self) -> None:
        P = np.zeros((3, 1, 3))
        P[:, 0, 2] = 1
        model = TabularMDP.from_matrices(
            P, costs=np.ones(3), terminal=[], state_names=[(2, 5), (3, 5), (3, 7)]
        )
        found = board(model)
        assert found.grid.shape == (2, 3)
        assert found.states is not None
        assert found.grid.to_image(found.states)[::-1].tolist() == [[0, 1], [-1, -1], [-1, 2]]
        assert found.missing().sum() == 3
        assert np.isnan(found.lay(np.arange(3.0))).sum() == 3

    def test_no_names_are_no_board(self) -> None:
        assert board_of(planners.as_model(gym.make("FrozenLake-v1"))) is None
        with pytest.raises(TypeError, match="expected a TabularMDP"):
            board_of(7)


class TestCells:
    def test_axes_have_names_units_and_numbers(self) -> None:
        env = gym.make("DiscretizedCartPole-v0")
        found = board(env)
        assert [found.axis_name(axis) for axis in range(4)] == [
            "position (m)",
            "velocity (m/s)",
            "angle (rad)",
            "angular velocity (rad/s)",
        ]
        assert found.action_names == ("LEFT", "RIGHT")
        cells: Any = env.get_wrapper_attr("cells")
        middles = cells.points(np.array([0, 1234]))[:, 0]
        points = found.positions(np.array([0, 1234])) * found.step + found.origin
        np.testing.assert_allclose(points, middles)
        # Having failed is nowhere.
        assert np.isnan(found.positions(np.array([cells.end]))).all()

    def test_corners_lie_where_they_are(self) -> None:
        env = gym.make("DiscretizedMountainCar-v0")
        cells: Any = env.get_wrapper_attr("cells")
        found = board(env)
        points = found.positions(np.array([0, 777])) * found.step + found.origin
        np.testing.assert_allclose(points, cells.points(np.array([0, 777]))[:, 0])


class TestPlanes:
    def test_a_panel_a_layer_through_the_goal(self) -> None:
        found = board(gym.make("NDMaze-v0", shape=(4, 3, 2, 5), goal=(1, 2, 0, 3)))
        planes = planes_of(found)
        assert [plane.through for plane in planes] == [(1, 2, 0, 3), (1, 2, 1, 3)]
        assert [plane.title for plane in planes] == ["axis 2 at 0", "axis 2 at 1"]

    def test_other_axes(self) -> None:
        found = board(gym.make("NDMaze-v0", shape=(4, 3, 2)))
        planes = planes_of(found, (2, 0), along=1)
        assert [(plane.axes, plane.through[1]) for plane in planes] == [
            ((2, 0), k) for k in (0, 1, 2)
        ]
        (one,) = planes_of(found, (1, 2), along=(), through=(3, 0, 0))
        assert one.title == "axis 0 at 3"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"axes": (0, 0)}, "axes must be two different axes of 3"),
            ({"axes": (0, 3)}, "axes must be two different axes of 3"),
            ({"along": 1}, r"along must be axes of 3 other than \(0, 1\), got 1"),
            ({"through": (0, 0, 9)}, "9 on axis 2 is not in"),
        ],
    )
    def test_refused(self, arguments: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            planes_of(board(gym.make("NDMaze-v0", shape=(4, 3, 2))), **arguments)
