"""Which method to use for a model: the rule behind ``method="auto"``, and what it looks at.

States that are never left are looked for among all; the rest is read off at most `SAMPLE` states,
evenly spaced, fewer where their rows are long, so that measuring costs a small part of one sweep
and draws no random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from aggmaze.models.events import EventMDP
from aggmaze.models.model import Model, TableModel
from aggmaze.models.moves import MoveMDP
from planners.kernels import moves, sparse
from planners.kernels.tables import Tables, moves_of, num_available, outcomes_of
from planners.sweeps.orders import coprime_step, grid_shape

#: Number of states that are looked at more closely.
SAMPLE = 2000
# But so few where they have more than so many outcomes.
_LEAST_SAMPLE, _MOST_OUTCOMES = 64, 1 << 16
#: Share of the moves available on a grid without walls, of those that do not leave it.
_OPEN = 0.9
#: With so likely a chosen move, where the greedy moves lead tells the basins, on grids of two
#: dimensions and of more.
_SURE_ENOUGH_2D, _SURE_ENOUGH = 0.5, 0.6
#: Below this exact evaluation pays, where it costs next to nothing.
_HIGH_ACCURACY = 1e-7
#: With likeliest outcomes that carry so much, evaluation along them is exact, or nearly so.
_CERTAIN = 0.998
#: Likeliest outcomes that carry so much make a forest of policies, where there is a goal; the less
#: certain ones only where shortest paths are a good beginning.
_NEARLY_CERTAIN = 0.93
_RATHER_CERTAIN = 0.75
#: Share of costs that are not negative with which they are.
_MOSTLY_COSTS = 0.9


@dataclass(frozen=True)
class Choice:
    """A method and why.

    Parameters
    ----------
    method : str
        A key of `planners.METHODS`.
    reason : str
        What was measured, in words.
    """

    method: str
    reason: str


def choose(model: Model, tol: float | None = None) -> Choice:
    """Choose a method from cheap measurements of a model.

    Parameters
    ----------
    model : Model
    tol : float, optional
        Relative accuracy asked for.
    """
    if isinstance(model, EventMDP):
        return Choice("modified_policy_iteration", "a model of random events, without a table")
    found = measure(model)
    if found.p is not None and found.shape is not None:
        if len(found.shape) == 1:
            return Choice("forest_policy_iteration", f"a corridor of {found.shape[0]} positions")
        grid = " x ".join(str(size) for size in found.shape) + " grid"
        inner = np.mean([1 - 1 / size for size in found.shape if size > 1])
        if found.openness < _OPEN * inner:
            return Choice("forest_policy_iteration", f"a {grid} with walls")
        if found.p < (_SURE_ENOUGH_2D if len(found.shape) == 2 else _SURE_ENOUGH):
            return Choice(
                "forest_policy_iteration", f"a {grid} where moves slip often (p = {found.p:g})"
            )
        if found.p == 1 and len(found.shape) == 2:
            sure = f"an open {grid} where moves never slip"
            if not found.has_absorbing_states:
                return Choice("forest_policy_iteration", f"{sure} nor end")
            if tol is not None and tol < _HIGH_ACCURACY:
                return Choice("forest_policy_iteration", f"{sure}, to an accuracy of {tol:g}")
        return Choice("basin_aggregation", f"an open {grid}")
    share = f"likeliest outcomes carry {found.determinism:.0%} of the probability"
    if found.has_absorbing_states and (
        found.determinism > _NEARLY_CERTAIN
        or (found.determinism > _RATHER_CERTAIN and found.nonnegative > _MOSTLY_COSTS)
    ):
        return Choice("forest_policy_iteration", f"{share}, and there is an end to reach")
    if found.determinism > _CERTAIN:
        return Choice("forest_policy_iteration", f"{share}: next to nothing is left to chance")
    return Choice("modified_policy_iteration", share)


@dataclass(frozen=True)
class Measurements:
    """What `measure` found.

    Parameters
    ----------
    num_states, num_actions : int
    has_absorbing_states : bool
        Whether some state is never left, terminal or not.
    determinism : float
        Mean over actions of the probability of the likeliest next state: 1 where nothing is left
        to chance, the slip probability on grids, about 2/b for Garnets of branching b.
    nonnegative : float
        Share of the actions that cost nothing or more, absorbing states aside.
    shape : tuple of int, optional
        Of the grid that the moves are steps on, where they are.
    openness : float
        Mean share of the moves that are available: 1 without walls or edges.
    p : float, optional
        Probability that the chosen move happens, in a model of moves.
    """

    num_states: int
    num_actions: int
    has_absorbing_states: bool
    determinism: float
    nonnegative: float
    shape: tuple[int, ...] | None
    openness: float
    p: float | None


def measure(model: TableModel) -> Measurements:
    """Measure a model.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    """
    if isinstance(model, MoveMDP):
        step = coprime_step(model.num_states, SAMPLE)
        tables: Tables = moves_of(model)
        sums = _measure_moves(tables, step)
        absorbing = moves.some_absorbing(tables)
    else:
        tables = outcomes_of(model)
        fitting = _MOST_OUTCOMES * model.num_states // max(1, model.transitions.nnz)
        step = coprime_step(model.num_states, min(max(fitting, _LEAST_SAMPLE), SAMPLE))
        sums = _measure_outcomes(tables, step)
        absorbing = sparse.some_absorbing(tables)
    num_actions, largest, nonnegative, num_possible = sums
    num_actions = max(1, num_actions)
    return Measurements(
        num_states=model.num_states,
        num_actions=model.num_actions,
        has_absorbing_states=bool(absorbing),
        determinism=largest / num_actions,
        nonnegative=nonnegative / num_actions,
        shape=grid_shape(model),
        openness=num_actions / max(1, num_possible),
        p=model.p if isinstance(model, MoveMDP) else None,
    )


@njit(cache=True, nogil=True)
def _measure_moves(moves, step):
    """Return number of actions, sums over them for each share, and number of moves there are."""
    costs, chosen, every = moves.costs, moves.chosen, moves.every
    num_states, num_moves = costs.shape
    count, possible, nonnegative = 0, 0, 0
    largest = 0.0
    for s in range(0, num_states, step):
        n = num_available(costs, s)
        if n == 0:
            continue
        count += n
        possible += num_moves
        largest += n * max(chosen[n] + every[n], every[n])
        for m in range(num_moves):
            nonnegative += 1 if 0 <= costs[s, m] < np.inf else 0
    return count, largest, nonnegative, possible


@njit(cache=True, nogil=True)
def _measure_outcomes(outcomes, step):
    """Return number of actions, sums over them for each share, and number of actions there are."""
    indptr, indices, probabilities = outcomes.indptr, outcomes.indices, outcomes.probabilities
    costs, mask = outcomes.costs, outcomes.mask
    num_states, num_actions = costs.shape
    count, possible, nonnegative = 0, 0, 0
    largest = 0.0
    for s in range(0, num_states, step):
        leaves = False
        here, here_nonnegative = 0, 0
        here_largest = 0.0
        for a in range(num_actions):
            if not mask[s, a]:
                continue
            here += 1
            here_nonnegative += 1 if costs[s, a] >= 0 else 0
            most = 0.0
            row = s * num_actions + a
            for entry in range(indptr[row], indptr[row + 1]):
                p = probabilities[entry]
                most = p if p > most else most
                leaves = leaves or indices[entry] != s
            here_largest += most
        if leaves:
            count += here
            possible += num_actions
            nonnegative += here_nonnegative
            largest += here_largest
    return count, largest, nonnegative, possible
