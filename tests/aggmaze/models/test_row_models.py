"""Models that are held whole, told block by block."""

from __future__ import annotations

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aggmaze
from aggmaze import MoveMDP, TabularMDP, as_row_model
from aggmaze.models.row_models import HeldMoves, HeldTable, tells_moves
from tests.strategies import move_mdps, tabular_mdps

pairs = st.tuples(st.integers(0, 100), st.integers(1, 100))


def block_of(num_states: int, pair: tuple[int, int]) -> tuple[int, int]:
    lo = pair[0] % num_states
    return lo, lo + 1 + pair[1] % (num_states - lo)


@given(model=move_mdps(), pair=pairs)
def test_moves_are_slices(model: MoveMDP, pair: tuple[int, int]) -> None:
    rows = as_row_model(model)
    assert isinstance(rows, HeldMoves)
    assert tells_moves(rows)
    assert (rows.num_states, rows.num_actions, rows.p) == (
        model.num_states,
        model.num_actions,
        model.p,
    )
    lo, hi = block_of(model.num_states, pair)
    block = rows.moves(lo, hi)
    assert block.successors.dtype == np.int64
    assert not block.successors.flags.writeable
    assert not block.costs.flags.writeable
    np.testing.assert_array_equal(block.successors, model.successors[lo:hi])
    np.testing.assert_array_equal(block.costs, model.move_costs[lo:hi])


@given(model=tabular_mdps(), pair=pairs)
def test_rows_are_slices(model: TabularMDP, pair: tuple[int, int]) -> None:
    rows = as_row_model(model)
    assert isinstance(rows, HeldTable)
    assert not tells_moves(rows)
    assert (rows.num_states, rows.num_actions) == (model.num_states, model.num_actions)
    lo, hi = block_of(model.num_states, pair)
    block = rows.rows(lo, hi)
    whole = model.transitions.toarray().reshape(model.num_states, model.num_actions, -1)
    np.testing.assert_array_equal(
        block.transitions.toarray(), whole[lo:hi].reshape(-1, model.num_states)
    )
    np.testing.assert_array_equal(block.costs, model.costs[lo:hi])
    np.testing.assert_array_equal(block.action_mask, model.action_mask[lo:hi])
    np.testing.assert_array_equal(rows.terminal(lo, hi), model.terminal[lo:hi])


def test_keys_tell_models_apart() -> None:
    env = gym.make("StandardMaze-v0", shape=(4, 4))
    model = env.unwrapped.transition_model()  # type: ignore[attr-defined]
    moved = np.array(model.successors)
    moved[model.available] = moved[model.available][::-1]
    tables = [model.to_tabular(), model.to_tabular().scaled(2.0)]
    others = [
        model,
        replace(model, p=0.9),
        model.scaled(2.0),
        MoveMDP(moved, model.move_costs),
        *tables,
    ]
    keys = [as_row_model(other).key for other in others]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 32 for key in keys)
    # Where episodes start does not count, nor do the bits of a zero.
    start = np.eye(16)[3]
    assert as_row_model(replace(model, initial=start)).key == keys[0]
    flat = MoveMDP([[0], [0]], [[np.inf], [0.0]])
    assert as_row_model(flat).key == as_row_model(replace(flat, move_costs=[[np.inf], [-0.0]])).key
    assert as_row_model(flat).key == "e5c8d6214a4321d8d3f7a55bfe293ab9"  # as on any machine


def test_what_is_by_rows_already_stays_as_it_is() -> None:
    maze = aggmaze.model_by_rows("StandardMaze-v0", generator="blocks")
    assert as_row_model(maze) is maze
    assert tells_moves(maze)
    held = as_row_model(maze.to_model())
    assert as_row_model(held) is held


def test_environments_are_asked_for_their_models() -> None:
    env = gym.make("StandardMaze-v0")
    assert as_row_model(env.unwrapped).num_states == 400
    with pytest.raises(TypeError, match=r"no wrapper around it \(env\.unwrapped\), got Time"):
        as_row_model(env)


def test_others_are_refused() -> None:
    with pytest.raises(TypeError, match=r"expected a model by rows, .* got int"):
        as_row_model(3)
    bad = MoveMDP([[0], [0]], [[np.inf], [np.nan]])
    with pytest.raises(ValueError, match="state 1, move 0: cost nan must be finite"):
        as_row_model(bad)
    for ends in ((-1, 1), (1, 1), (0, 3)):
        with pytest.raises(ValueError, match=r"moves\(.*must satisfy 0 <= lo < hi <= 2"):
            as_row_model(MoveMDP([[0], [0]], [[np.inf], [1.0]])).moves(*ends)
