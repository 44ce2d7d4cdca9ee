"""Tables of a part, beside those of the whole model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from aggmaze import MoveMDP, TabularMDP
from aggmaze.models.row_models import HeldMoves, HeldTable, MoveBlock, as_row_model
from planners.distributed import partition
from planners.distributed.reading import read_moves, read_outcomes
from planners.kernels.tables import moves_of, outcomes_of
from tests.strategies import move_mdps, tabular_mdps

COMMON: dict[str, Any] = {"sharing": 1, "checkpoint": lambda: None}


def ends_of(data: st.DataObject, num_states: int) -> tuple[int, int]:
    lo = data.draw(st.integers(0, num_states - 1))
    return lo, data.draw(st.integers(lo + 1, num_states))


def numbers(near: NDArray[Any], lo: int, hi: int, ghosts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers in the model of local ones."""
    return np.concatenate([np.arange(lo, hi), ghosts])[near]


@given(model=move_mdps(), data=st.data())
def test_moves_of_a_part(model: MoveMDP, data: st.DataObject) -> None:
    lo, hi = ends_of(data, model.num_states)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "_ROWS_AT_ONCE", 3 * model.num_actions)
        local = read_moves(HeldMoves(model), lo, hi, **COMMON)
    whole = moves_of(model)
    available = model.available[lo:hi]
    found = numbers(local.tables.successors, lo, hi, local.ghosts)
    assert np.array_equal(found[available], whole.successors[lo:hi][available])
    own = np.broadcast_to(np.arange(hi - lo)[:, np.newaxis], available.shape)
    assert np.array_equal(local.tables.successors[~available], own[~available])
    assert np.array_equal(local.tables.costs, whole.costs[lo:hi])
    assert np.array_equal(local.terminal, model.terminal[lo:hi])
    assert np.array_equal(local.tables.chosen, whole.chosen)
    assert np.array_equal(local.tables.every, whole.every)
    led_to = np.unique(whole.successors[lo:hi][available])
    assert np.array_equal(local.ghosts, led_to[(led_to < lo) | (led_to >= hi)])
    assert local.tables.successors.dtype == np.int32


@given(model=tabular_mdps(), data=st.data())
def test_rows_of_a_part(model: TabularMDP, data: st.DataObject) -> None:
    lo, hi = ends_of(data, model.num_states)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "_ROWS_AT_ONCE", 3 * model.num_actions)
        local = read_outcomes(HeldTable(model), lo, hi, **COMMON)
    tables, whole = local.tables, outcomes_of(model)
    first, last = whole.indptr[[lo * model.num_actions, hi * model.num_actions]]
    assert np.array_equal(
        tables.indptr, whole.indptr[lo * model.num_actions : hi * model.num_actions + 1] - first
    )
    assert np.array_equal(numbers(tables.indices, lo, hi, local.ghosts), whole.indices[first:last])
    assert np.array_equal(tables.probabilities, whole.probabilities[first:last])
    for name in ("costs", "mask", "terminal", "num_rows"):
        assert np.array_equal(getattr(tables, name), getattr(whole, name)[lo:hi])


class _Spoilt(HeldMoves):
    def moves(self, lo: int, hi: int) -> MoveBlock:
        block = super().moves(lo, hi)
        costs = block.costs.copy()
        costs[1, 0] = np.nan
        return MoveBlock(block.successors.copy(), costs)


def test_a_cost_that_is_no_number_is_named_by_its_state() -> None:
    model = MoveMDP(np.zeros((6, 2), dtype=int), np.ones((6, 2)))
    with pytest.raises(ValueError, match=r"state 4, move 0: cost nan must be finite, or \+inf"):
        read_moves(_Spoilt(model), 3, 6, **COMMON)


class _Wrong(HeldTable):
    """A table whose rows are spoilt by what is given."""

    def __init__(self, model: TabularMDP, **spoilt: Any) -> None:
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "_spoilt", spoilt)

    def rows(self, lo: int, hi: int) -> Any:
        rows = super().rows(lo, hi)
        for name, (place, value) in self._spoilt.items():  # type: ignore[attr-defined]
            target = rows.transitions if name in ("data", "indices") else rows
            array = getattr(target, name).copy()
            array[place] = value
            if target is rows:
                object.__setattr__(rows, name, array)
            else:
                setattr(rows.transitions, name, array)
        return rows


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        ({"costs": ((1, 0), np.nan)}, "state 2, action 0: cost nan must be finite"),
        ({"data": (0, 0.25)}, "state 1, action 0: probabilities sum to 0.25, must sum to 1"),
        ({"data": (0, -1.0)}, "state 1, action 0: probability -1.0 of state 2 must be a finite"),
        ({"indices": (0, 7)}, r"transitions name a state outside \[0, 4\)"),
        ({"action_mask": (0, False)}, "state 1 has no available action"),
        ({"costs": ((2, 0), 1.0)}, "state 3 is declared terminal, so every action must lead back"),
        ({"indices": (4, 0)}, "state 3 is declared terminal"),
    ],
)
def test_rows_that_are_none(spoilt: dict[str, Any], message: str) -> None:
    following = np.repeat([1, 2, 3, 3], 2)
    matrix = np.zeros((8, 4))
    matrix[np.arange(8), following] = 1.0
    model = TabularMDP(
        matrix, np.repeat([[1.0], [1.0], [1.0], [0.0]], 2, axis=1), terminal=[0, 0, 0, 1]
    )
    read_outcomes(as_row_model(model), 1, 4, **COMMON)
    with pytest.raises(ValueError, match=message):
        read_outcomes(_Wrong(model, **spoilt), 1, 4, **COMMON)


def test_more_than_the_memory_of_a_machine_is_refused() -> None:
    class Vast:
        num_states, num_actions, p, key = 10**12, 4, 1.0, "vast"

        def moves(self, lo: int, hi: int) -> MoveBlock:
            raise AssertionError("no row is read")

    with pytest.raises(MemoryError, match=r"2 processes .* 1,000,000,000,000 states each need"):
        read_moves(Vast(), 0, 10**12, sharing=2, checkpoint=lambda: None)
