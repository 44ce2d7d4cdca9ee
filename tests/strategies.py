"""Hypothesis strategies that several tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from aggmaze.grid import Grid
from aggmaze.mdp import TabularMDP
from aggmaze.move_mdp import MoveMDP

#: Seeds of a numpy Generator.
seeds = st.integers(0, 2**32 - 1)

#: Probabilities that the chosen move happens: certain, likely, below one in n, all but impossible.
slip_probabilities = st.one_of(
    st.sampled_from([1.0, float(np.nextafter(1.0, 0.0)), 0.9, 0.5, 0.25, 0.2, 1e-3, 1e-12]),
    st.floats(1e-12, 1.0),
)

#: Costs of either sign, with round numbers and zero.
finite_costs = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0]), st.floats(-1e3, 1e3, allow_subnormal=False)
)


@st.composite
def shapes(
    draw: st.DrawFn, *, min_dims: int = 1, max_dims: int = 4, max_states: int = 300
) -> tuple[int, ...]:
    """Shapes of grids with at most ``max_states`` positions, axes of length 1 among them."""
    num_dims = draw(st.integers(min_dims, max_dims))
    room, sizes = max_states, []
    for _ in range(num_dims):
        sizes.append(draw(st.integers(1, min(room, 20))))
        room //= sizes[-1]
    return tuple(draw(st.permutations(sizes)))


def grids(**limits: int) -> st.SearchStrategy[Grid]:
    """Grids of the `shapes` within the limits."""
    return shapes(**limits).map(Grid)


@st.composite
def stochastic_matrices(draw: st.DrawFn, rows: int, columns: int) -> NDArray[np.float64]:
    """Distributions as rows, some of whose probabilities are 0."""
    weights = draw(hnp.arrays(np.int64, (rows, columns), elements=st.integers(0, 9)))
    certain = draw(hnp.arrays(np.int64, rows, elements=st.integers(0, columns - 1)))
    weights[np.arange(rows), certain] += 1
    return weights / weights.sum(axis=1, keepdims=True)


def distributions(size: int) -> st.SearchStrategy[NDArray[np.float64]]:
    """Probabilities of ``size`` outcomes, some of them 0."""
    return stochastic_matrices(1, size).map(lambda matrix: matrix[0])


@st.composite
def move_mdps(
    draw: st.DrawFn,
    *,
    max_states: int = 8,
    max_moves: int = 5,
    p: st.SearchStrategy[float] = slip_probabilities,
    costs: st.SearchStrategy[float] = finite_costs,
) -> MoveMDP:
    """Models of moves with any successors and available moves, also states without any."""
    shape = draw(st.integers(1, max_states)), draw(st.integers(1, max_moves))
    successors = draw(hnp.arrays(np.int32, shape, elements=st.integers(0, shape[0] - 1)))
    move_costs = draw(hnp.arrays(np.float64, shape, elements=costs))
    move_costs[~draw(hnp.arrays(np.bool_, shape))] = np.inf
    initial = draw(st.one_of(st.none(), distributions(shape[0])))
    bump_cost = draw(st.one_of(st.none(), costs))
    return MoveMDP(successors, move_costs, p=draw(p), initial=initial, bump_cost=bump_cost)


@st.composite
def tabular_tables(
    draw: st.DrawFn,
    *,
    max_states: int = 6,
    max_actions: int = 4,
    costs: st.SearchStrategy[float] = finite_costs,
) -> dict[str, Any]:
    """Dense tables of a model: ``P`` (S, A, S), ``costs`` (S, A), ``action_mask``, ``initial``.

    And ``terminal``, as it is by default, so that nobody asks whether absorbing states that cost
    something are meant.
    """
    num_states, num_actions = draw(st.integers(1, max_states)), draw(st.integers(1, max_actions))
    shape = num_states, num_actions
    P = draw(stochastic_matrices(num_states * num_actions, num_states))
    mask = draw(hnp.arrays(np.bool_, shape))
    mask[:, draw(st.integers(0, num_actions - 1))] = True
    table = P.reshape(*shape, num_states)
    prices = draw(hnp.arrays(np.float64, shape, elements=costs))
    stays = np.array([(np.delete(table[s], s, axis=1) == 0).all() for s in range(num_states)])
    return {
        "P": table,
        "costs": prices,
        "action_mask": mask,
        "terminal": stays & (prices == 0).all(axis=1),
        "initial": draw(distributions(num_states)),
    }


@st.composite
def tabular_mdps(
    draw: st.DrawFn,
    *,
    max_states: int = 6,
    max_actions: int = 4,
    costs: st.SearchStrategy[float] = finite_costs,
) -> TabularMDP:
    """General models, some of whose actions pay by outcome and list a next state several times."""
    tables = draw(tabular_tables(max_states=max_states, max_actions=max_actions, costs=costs))
    P, initial = tables["P"], tables["initial"]
    if draw(st.booleans()):
        return TabularMDP.from_matrices(**tables)
    # Each entry once more with its share of the probability and a cost of its own.
    num_states = P.shape[0]
    share = draw(st.floats(0.1, 0.9))
    dense = sp.csr_array(P.reshape(-1, num_states))
    data = np.stack([share * dense.data, (1 - share) * dense.data], axis=1).reshape(-1)
    transitions = sp.csr_array(
        (data, np.repeat(dense.indices, 2), 2 * dense.indptr), shape=dense.shape
    )
    outcome_costs = draw(hnp.arrays(np.float64, len(data), elements=costs))
    rows = np.repeat(np.arange(dense.shape[0]), np.diff(transitions.indptr))
    means = np.bincount(rows, weights=data * outcome_costs, minlength=dense.shape[0])
    return TabularMDP(
        transitions,
        means.reshape(P.shape[:2]),
        action_mask=tables["action_mask"],
        initial=initial,
        outcome_costs=outcome_costs,
    ).validate()
