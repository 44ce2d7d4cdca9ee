"""What actions are worth in a block of states, of a model that nobody holds whole.

The block is made a small model: its own states, and behind them those that they lead to, which stay
where they are.  The kernels that have the formula then do the rest, in the order of the states, so
that the numbers are those of the whole model, bit for bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.checks import check_integer
from aggmaze.models.moves import MoveMDP
from aggmaze.models.row_models import MoveRowModel, RowModel, TableRowModel, tells_moves
from aggmaze.models.tabular import TabularMDP
from planners.bellman import local_engine

# States between two that are asked for which are read as well, rather than apart.
_GAP = 64


def block_q_values(
    model: RowModel, V: NDArray[np.float64], gamma: float, states: tuple[int, int]
) -> NDArray[np.float64]:
    """Return ``c(s,a) + gamma sum P V`` of a block of states.

    Parameters
    ----------
    model : RowModel
    V : ndarray of float, shape (S,)
        Costs-to-go of all states, such as an array that is mapped into memory: only those of the
        states that the block leads to are read.
    gamma : float
    states : pair of int
        The block: from which state on, and the one behind its last.

    Returns
    -------
    ndarray of float, shape (B, A)
        As `planners.q_values` returns them.

    Raises
    ------
    ValueError
        If V has another length, or the block is none.
    TypeError
        If ``states`` is no pair of integers.
    """
    num_states = model.num_states
    if V.shape != (num_states,):
        raise ValueError(f"V must have shape ({num_states},), one a state, got {V.shape}")
    if not isinstance(states, Sequence) or len(states) != 2:
        raise TypeError(
            "states must be a pair, the first state of a block and the one behind its last, got "
            f"{states!r}"
        )
    lo = check_integer("states[0]", states[0], below=num_states)
    hi = check_integer("states[1]", states[1], least=lo + 1, below=num_states + 1)
    small: MoveMDP | TabularMDP
    if tells_moves(model):
        small, behind = _of_moves(cast(MoveRowModel, model), lo, hi)
    else:
        small, behind = _of_rows(cast(TableRowModel, model), lo, hi)
    values = np.zeros(small.num_states)
    values[hi - lo :] = V[behind]
    values[hi - lo :][terminal_among(model, behind)] = 0.0
    if not np.isfinite(values).all():
        bad = int(behind[np.flatnonzero(~np.isfinite(values))[0] - (hi - lo)])
        raise ValueError(f"V[{bad}] = {V[bad]} must be finite")
    return local_engine(small, gamma).q_values(values)[: hi - lo]


def terminal_among(model: RowModel, states: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of some states are terminal.

    Parameters
    ----------
    model : RowModel
    states : ndarray of int64
        Increasing.
    """
    flags = np.zeros(len(states), dtype=bool)
    begins = np.flatnonzero(np.diff(states, prepend=-2 * _GAP) > _GAP)
    for begin, end in itertools.pairwise([*begins, len(states)]):
        here = states[begin:end]
        first, last = int(here[0]), int(here[-1]) + 1
        if tells_moves(model):
            costs = cast(MoveRowModel, model).moves(first, last).costs
            flags[begin:end] = ~np.isfinite(costs[here - first]).any(axis=1)
        else:
            over = cast(TableRowModel, model).terminal(first, last)
            flags[begin:end] = over[here - first]
    return flags


def _of_moves(model: MoveRowModel, lo: int, hi: int) -> tuple[MoveMDP, NDArray[np.int64]]:
    """Return a block as a model of its own, and the states that stand behind its own."""
    block = model.moves(lo, hi)
    available = np.isfinite(block.costs)
    behind = np.unique(block.successors[available])
    shape = hi - lo + len(behind), model.num_actions
    successors, costs = np.zeros(shape, dtype=np.int64), np.full(shape, np.inf)
    found = np.searchsorted(behind, block.successors[available])
    successors[: hi - lo][available] = hi - lo + found
    costs[: hi - lo] = block.costs
    return MoveMDP(successors, costs, p=model.p, initial=_anywhere(shape[0])), behind


def _of_rows(model: TableRowModel, lo: int, hi: int) -> tuple[TabularMDP, NDArray[np.int64]]:
    """Return a block as a model of its own, and the states that stand behind its own."""
    rows = model.rows(lo, hi)
    matrix, num_actions, own = rows.transitions, model.num_actions, hi - lo
    behind, found = np.unique(matrix.indices.astype(np.int64), return_inverse=True)
    size = own + len(behind)
    stay = np.repeat(np.arange(own, size), num_actions)
    transitions = sp.csr_array(
        (
            np.concatenate([matrix.data, np.ones(len(stay))]),
            np.concatenate([own + found, stay]),
            np.concatenate([matrix.indptr, matrix.nnz + np.arange(1, len(stay) + 1)]),
        ),
        shape=(size * num_actions, size),
    )
    costs, mask = np.zeros((size, num_actions)), np.ones((size, num_actions), dtype=bool)
    costs[:own], mask[:own] = rows.costs, rows.action_mask
    terminal = np.ones(size, dtype=bool)
    terminal[:own] = model.terminal(lo, hi)
    # A terminal state stays where it is, and not in one behind the others.
    owner = np.repeat(np.arange(size), np.diff(transitions.indptr[::num_actions]))
    transitions.indices[terminal[owner]] = owner[terminal[owner]]
    initial = _anywhere(size)
    small = TabularMDP(transitions, costs, action_mask=mask, terminal=terminal, initial=initial)
    return small, behind


def _anywhere(num_states: int) -> NDArray[np.float64]:
    """Return some distribution of the first state: nobody starts there."""
    initial = np.zeros(num_states)
    initial[0] = 1.0
    return initial
