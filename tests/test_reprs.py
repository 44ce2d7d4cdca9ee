"""Public objects are shown in a line or three, however many arrays they hold."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
import planners
from aggmaze import wrappers
from aggmaze.mdp import Rows
from aggmaze.play import Advice
from aggmaze.rendering.overlay import Overlay

# S at (0, 2), G at (2, 0), and the cell between them blocked.
_MAZE = "S..\n.#.\n..G"
ENV = gym.make("StandardMaze-v0", shape=(50, 40), p=0.9)
RESULT = planners.solve(ENV, gamma=0.9)
MODEL = planners.as_model(ENV)
LAKE = gym.make("FrozenLake-v1")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # 1999 passages join the 2000 positions of a spanning tree.
        (MODEL, "MoveMDP(2,000 states, 4 moves, p=0.9, 1 terminal)"),
        # The lake's 11 other cells have three outcomes an action, its 4 holes and its goal one.
        (
            planners.as_model(LAKE),
            f"TabularMDP(16 states, 4 actions, 5 terminal, {11 * 4 * 3 + 5 * 4} transitions)",
        ),
        # An episode that ends in state 1, from where another action leads on: one state more.
        (
            planners.as_model({0: {0: [(1.0, 1, -1.0, True)]}, 1: {0: [(1.0, 0, -1.0, False)]}}),
            "TabularMDP(3 states (1 added), 1 actions, 1 terminal, 3 transitions)",
        ),
        (
            ENV.unwrapped.layout,
            "Layout(Grid(shape=(50, 40)), 1,999 passages, goal (0, 0))",
        ),
        (
            aggmaze.layout_from_text(_MAZE)[0],
            "Layout(Grid(shape=(3, 3)), 8 passages, goal (2, 0), 1 blocked)",
        ),
        (
            gym.make("TerrainMaze-v0", shape=(4, 3)).unwrapped.layout,
            "Layout(Grid(shape=(4, 3)), 17 passages, goal (0, 0), with heights)",
        ),
        (
            planners.History(
                np.array([1, 7]),
                np.array([10, 2000]),
                np.array([0.5, 1.25]),
                np.array([0, 0]),
                np.array([1.0, np.nan]),
                np.array([0.125, np.nan]),
            ),
            "History(7 iterations, 2,000 updates, 1.25 s, last bound 0.125)",
        ),
        (planners.History(*[np.array([])] * 6), "History(0 iterations)"),
        (
            Advice(RESULT.values, RESULT.policy, 0.9),
            "Advice(values=<float64 (2000,)>, policy=<int64 (2000,)>, gamma=0.9)",
        ),
        (
            Overlay(values=RESULT.values),
            "Overlay(values=<float64 (2000,)>, policy=None, labels=None, path=None, gamma=None, "
            "returns=False)",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_told(value: Any, expected: str) -> None:
    assert repr(value) == expected


def wrapped(name: str) -> Any:
    arguments = {
        "RegretWrapper": {"values": RESULT.values, "gamma": 0.9},
        "NewMazeEachEpisode": {"num_mazes": 2},
        "PotentialShaping": {"potential": RESULT.values, "gamma": 0.9},
    }
    return getattr(wrappers, name)(ENV, **arguments.get(name, {}))


def objects() -> list[Any]:
    """One of each public kind, and of what their methods return."""
    cartpole = gym.make("DiscretizedCartPole-v0", bins=(3, 3, 3, 3), sub_points=(24, 6, 3, 4))
    made: list[Any] = [
        MODEL,
        MODEL.rows(0, 1000),
        aggmaze.as_row_model(MODEL).moves(0, 1000),
        planners.as_model(LAKE),
        aggmaze.EventMDP(2, 1, lambda s, a, e: e, [0.5, 0.5], lambda s, a: 1.0),
        aggmaze.EventStage(2, lambda point, event: event, [0.5, 0.5]),
        planners.normalized(ENV, 0.9),
        RESULT,
        RESULT.history,
        planners.NotSolvedError(RESULT),
        ENV.unwrapped.layout,
        ENV.unwrapped.layout.grid,
        ENV.unwrapped.P,
        aggmaze.GridWorld.read("S.G\n.#."),
        aggmaze.ready_layout("cliff"),
        Advice(RESULT.values, RESULT.policy, 0.9),
        Overlay(values=RESULT.values, policy=RESULT.policy),
        cartpole.unwrapped,
        aggmaze.DiscretizedCartPole(gym.make("CartPole-v1")),
        aggmaze.TabularEnv(MODEL),
        aggmaze.TabularVectorEnv(MODEL, 100),
        *(gym.make(env_id).unwrapped for env_id in aggmaze.ENV_IDS),
        *(wrapped(name) for name in wrappers.__all__ if inspect.isclass(getattr(wrappers, name))),
    ]
    planners.solve(ENV, gamma=0.9, num_iterations=1, callback=made.append)
    return made


def test_public_objects_take_a_line_or_three() -> None:
    made = objects()
    for value in made:
        shown = repr(value)
        assert shown.count("\n") < 3, type(value)
        assert len(shown) < 300, type(value)
    # Whatever holds arrays is among them, but for what has a test of it beside its own.
    beside = {planners.Arrival, planners.PartResult, planners.Rollouts}
    kinds = {type(value) for value in made} | beside
    assert Rows in kinds
    for package in (aggmaze, planners):
        for name in package.__all__:
            kind = getattr(package, name)
            if dataclasses.is_dataclass(kind) and any(
                "NDArray" in str(field.type) for field in dataclasses.fields(kind)
            ):
                assert kind in kinds, name
