"""Every format that is written, on every registered id and on random models, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import aggmaze
import planners
from aggmaze import MoveMDP, TabularMDP
from aggmaze.formats.registry import FORMATS
from tests.strategies import move_mdps, tabular_mdps

Model = MoveMDP | TabularMDP

SMALL: dict[str, dict[str, Any]] = {
    "StandardMaze-v0": {"shape": (6, 5), "p": 0.9},
    "TerrainMaze-v0": {"shape": (5, 6), "p": 0.7},
    "NDMaze-v0": {"shape": (3, 3, 2), "p": 0.2},
    "DiscretizedCartPole-v0": {"bins": (3, 3, 5, 3), "sub_points": (16, 6, 3, 4)},
}
TOYS = ("FrozenLake-v1", "CliffWalking-v1", "Taxi-v4")
WRITTEN = [name for name, entry in FORMATS.items() if entry.writer]


def equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def assert_same_table(model: Model, found: Model) -> None:
    """Everything that a table holds is the same, bit for bit."""
    one, other = model.to_tabular(), found.to_tabular()
    for name in ("costs", "action_mask", "terminal", "initial", "outcome_costs"):
        assert equal(getattr(one, name), getattr(other, name)), name
    for name in ("data", "indices", "indptr"):
        left, right = getattr(one.transitions, name), getattr(other.transitions, name)
        assert np.array_equal(left, right), name
    assert one.num_added_states == other.num_added_states
    assert one.state_names == other.state_names
    assert one.action_names == other.action_names


def assert_same_choices(model: Model, found: Model) -> None:
    """What can be chosen leads to the same and costs the same on average, bit for bit."""
    one, other = model.to_tabular(), found.to_tabular()
    assert np.array_equal(one.action_mask.sum(axis=1), other.action_mask.sum(axis=1))
    assert equal(one.terminal, other.terminal)
    assert np.array_equal(one.initial > 0, other.initial > 0)
    # Columns that no state uses are left out, and the others keep their order.
    left = one.transitions[np.flatnonzero(one.action_mask)]
    right = other.transitions[np.flatnonzero(other.action_mask)]
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    assert equal(one.costs[one.action_mask], other.costs[other.action_mask])


def back(model: Model, folder: Path, name: str) -> Model:
    """Write a model, twice to the same bytes, and read it."""
    path = folder / f"model{FORMATS[name].suffixes[0]}"
    aggmaze.save_model(model, path)
    written = path.read_bytes()
    aggmaze.save_model(model, path)
    assert path.read_bytes() == written
    return aggmaze.load_model(path)


def check(model: Model, folder: Path, name: str) -> None:
    found = back(model, folder, name)
    lost = " ".join(FORMATS[name].losses(model))
    if name == "aggmaze":
        assert type(found) is type(model)
        assert_same_table(model, found)
    elif name == "umb":
        if "unavailable" in lost:
            assert_same_choices(model, found)
        else:
            assert_same_table(model, found)
    elif name == "drn":
        if not absorbing_beside(model):
            assert_same_choices(model, found)
    else:
        values = planners.solve(found, gamma=0.9, tol=1e-12).values
        expected = planners.solve(model, gamma=0.9, tol=1e-12).values
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)


def absorbing_beside(model: Model) -> bool:
    """Whether a state that is not terminal looks like one, where a text cannot tell."""
    table = model.to_tabular()
    free = (table.costs == 0).all(axis=1, where=table.action_mask)
    rows = np.repeat(np.arange(table.transitions.shape[0]), np.diff(table.transitions.indptr))
    leaves = table.transitions.indices != rows // table.num_actions
    leaves &= table.action_mask.reshape(-1)[rows] & (table.transitions.data > 0)
    stays = np.ones(table.num_states, bool)
    stays[rows[leaves] // table.num_actions] = False
    return bool((stays & free & ~table.terminal).any())


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("env_id", [*aggmaze.ENV_IDS, *TOYS])
def test_every_registered_id(env_id: str, name: str, tmp_path: Path) -> None:
    options = SMALL.get(env_id, {})
    check(planners.as_model(gym.make(env_id, **options)), tmp_path, name)


@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=tabular_mdps())
def test_random_tables(model: TabularMDP, tmp_path: Path) -> None:
    for name in ("aggmaze", "umb", "drn"):
        check(model, tmp_path, name)


@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=move_mdps())
def test_random_moves(model: MoveMDP, tmp_path: Path) -> None:
    for name in ("aggmaze", "umb", "drn"):
        check(model, tmp_path, name)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=tabular_mdps())
def test_random_tables_as_a_gymnasium_table(model: TabularMDP, tmp_path: Path) -> None:
    found = back(model, tmp_path, "gym")
    P, again = model.to_gym_P(), found.to_gym_P()
    for state, actions in P.items():
        # Without what is marked as the end: the table has no other sign of it than a loop at 0.
        assert [[o[:3] for o in row] for row in actions.values()] == [
            [o[:3] for o in row] for row in again[state].values()
        ]


def test_values_are_the_same_bits(tmp_path: Path) -> None:
    model = planners.as_model(gym.make("TerrainMaze-v0", shape=(8, 8), p=0.9))
    expected = planners.solve(model.to_tabular(), gamma=0.9).values
    for name in ("aggmaze", "umb"):
        found = back(model.to_tabular(), tmp_path, name)
        assert planners.solve(found, gamma=0.9).values.tobytes() == expected.tobytes()


def test_extreme_numbers_keep_their_bits(tmp_path: Path) -> None:
    numbers = [
        5e-324,
        -1.7976931348623157e308,
        0.1 + 0.2,
        1 / 3,
        -0.0,
        2.0**-1074,
        1e22,
        123456789.1,
    ]
    model = TabularMDP(
        np.tile(np.eye(2), (len(numbers), 1)).reshape(-1, 2)[: 2 * len(numbers)].repeat(1, axis=0),
        np.array([numbers, numbers[::-1]]),
        terminal=[],
        initial=[1 / 3, 2 / 3],
    )
    for name in ("aggmaze", "umb", "drn"):
        found = back(model, tmp_path, name).to_tabular()
        assert equal(model.costs, found.costs), name
    assert equal(model.initial, back(model, tmp_path, "umb").initial)


def test_names_come_back_as_they_were(tmp_path: Path) -> None:
    model = planners.as_model(gym.make("CliffWalking-v1"))
    assert model.num_added_states == 1
    names = [(k % 12, k // 12) if k else "start" for k in range(48)]
    for actions in (["north", "east", "south", "west"], ["a b", 1, ("x", None), 2.5]):
        named = replace(model, state_names=names, action_names=actions)
        for name in ("aggmaze", "umb"):
            assert_same_table(named, back(named, tmp_path, name))
    named = replace(model, state_names=names, action_names=["north", "east", "south", "west"])
    found = back(named, tmp_path, "drn")
    assert isinstance(found, TabularMDP)
    assert found.action_names == named.action_names
    assert "the names of the states" in FORMATS["drn"].losses(named)
    assert found.state_names is None
