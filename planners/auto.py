"""Which method to use for a model: the rule behind ``method="auto"``, and what it looks at.

States that are never left are looked for among all; the rest is read off at most `SAMPLE` states,
evenly spaced, so that measuring costs a small part of one sweep and draws no random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from aggmaze.mdp import readonly
from aggmaze.models.model import Model
from aggmaze.move_mdp import MoveMDP
from planners.sweeps.orders import coprime_step, grid_shape

#: Number of states that are looked at more closely.
SAMPLE = 2000
#: Share of the moves available on a grid without walls, of those that do not leave it.
_OPEN = 0.9
#: With so likely a chosen move, where the greedy moves lead tells the basins, on grids of two
#: dimensions and of more.
_SURE_ENOUGH_2D, _SURE_ENOUGH = 0.5, 0.6
#: Below this exact evaluation pays, where it costs next to nothing.
_HIGH_ACCURACY = 1e-7
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
    model : TabularMDP or MoveMDP
    tol : float, optional
        Relative accuracy asked for.
    """
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
        if found.p == 1 and len(found.shape) == 2 and tol is not None and tol < _HIGH_ACCURACY:
            return Choice(
                "forest_policy_iteration",
                f"an open {grid} where moves never slip, to an accuracy of {tol:g}",
            )
        return Choice("basin_aggregation", f"an open {grid}")
    share = f"likeliest outcomes carry {found.determinism:.0%} of the probability"
    if found.has_absorbing_states and (
        found.determinism > _NEARLY_CERTAIN
        or (found.determinism > _RATHER_CERTAIN and found.nonnegative > _MOSTLY_COSTS)
    ):
        return Choice("forest_policy_iteration", f"{share}, and there is an end to reach")
    return Choice("modified_policy_iteration", share)


@dataclass(frozen=True)
class Measurements:
    """What `measure` found.

    Parameters
    ----------
    num_states, num_actions : int
    num_outcomes : int
        Outcomes that a full sweep reads.
    has_absorbing_states : bool
        Whether some state is never left, terminal or not.
    determinism : float
        Mean over actions of the probability of the likeliest next state: 1 where nothing is left
        to chance, the slip probability on grids, about 2/b for Garnets of branching b.
    locality : float
        Mean over actions of the probability of a next state whose number is within the square root
        of the number of states: near 1 on grids, queues and lines, near 0 on random graphs.
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
    num_outcomes: int
    has_absorbing_states: bool
    determinism: float
    locality: float
    nonnegative: float
    shape: tuple[int, ...] | None
    openness: float
    p: float | None


def measure(model: Model) -> Measurements:
    """Measure a model.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    """
    step = coprime_step(model.num_states, SAMPLE)
    if isinstance(model, MoveMDP):
        tables = (
            readonly(model.successors),
            readonly(model.move_costs),
            *model.slip_weights,
        )
        sums = _measure_moves(*tables, step)
        num_outcomes = int(model.successors.size)
    else:
        matrix = model.transitions
        sums = _measure_rows(
            readonly(matrix.indptr),
            readonly(matrix.indices),
            readonly(matrix.data),
            readonly(model.costs),
            readonly(model.action_mask),
            step,
        )
        num_outcomes = int(matrix.nnz)
    num_actions, largest, local, nonnegative, num_possible = sums
    num_actions = max(1, num_actions)
    return Measurements(
        num_states=model.num_states,
        num_actions=model.num_actions,
        num_outcomes=num_outcomes,
        has_absorbing_states=has_absorbing_states(model),
        determinism=largest / num_actions,
        locality=local / num_actions,
        nonnegative=nonnegative / num_actions,
        shape=grid_shape(model),
        openness=num_actions / max(1, num_possible),
        p=model.p if isinstance(model, MoveMDP) else None,
    )


def has_absorbing_states(model: Model) -> bool:
    """Return whether some state is never left, whatever one does there."""
    if model.terminal.any():
        return True
    if isinstance(model, MoveMDP):
        return bool(_absorbing_move(readonly(model.successors), readonly(model.move_costs)))
    matrix = model.transitions
    return bool(
        _absorbing_row(
            readonly(matrix.indptr), readonly(matrix.indices), readonly(model.action_mask)
        )
    )


@njit(cache=True, nogil=True)
def _absorbing_move(successors, move_costs):  # type: ignore[no-untyped-def]
    for s in range(len(successors)):
        leaves = False
        for m in range(successors.shape[1]):
            leaves = leaves or (move_costs[s, m] < np.inf and successors[s, m] != s)
        if not leaves:
            return True
    return False


@njit(cache=True, nogil=True)
def _absorbing_row(indptr, indices, mask):  # type: ignore[no-untyped-def]
    num_states, num_actions = mask.shape
    for s in range(num_states):
        leaves = False
        for a in range(num_actions):
            row = s * num_actions + a
            if leaves or not mask[s, a]:
                continue
            for entry in range(indptr[row], indptr[row + 1]):
                if indices[entry] != s:
                    leaves = True
                    break
        if not leaves:
            return True
    return False


@njit(cache=True, nogil=True)
def _measure_moves(successors, move_costs, chosen, every, step):  # type: ignore[no-untyped-def]
    """Return number of actions, sums over them for each share, and number of moves there are."""
    num_states, num_moves = successors.shape
    near = np.sqrt(num_states) + 1
    count, possible, nonnegative = 0, 0, 0
    largest, local = 0.0, 0.0
    for s in range(0, num_states, step):
        n, num_near = 0, 0
        for m in range(num_moves):
            if move_costs[s, m] < np.inf:
                n += 1
                num_near += 1 if abs(successors[s, m] - s) <= near else 0
                nonnegative += 1 if move_costs[s, m] >= 0 else 0
        if n == 0:
            continue
        count += n
        possible += num_moves
        largest += n * max(chosen[n] + every[n], every[n])
        # Over all choices each move happens as often as any other.
        local += num_near
    return count, largest, local, nonnegative, possible


@njit(cache=True, nogil=True)
def _measure_rows(indptr, indices, probabilities, costs, mask, step):  # type: ignore[no-untyped-def]
    """Return number of actions, sums over them for each share, and number of actions there are."""
    num_states, num_actions = costs.shape
    near = np.sqrt(num_states) + 1
    count, possible, nonnegative = 0, 0, 0
    largest, local = 0.0, 0.0
    for s in range(0, num_states, step):
        leaves = False
        here, here_nonnegative = 0, 0
        here_largest, here_local = 0.0, 0.0
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
                here_local += p if abs(indices[entry] - s) <= near else 0.0
                leaves = leaves or indices[entry] != s
            here_largest += most
        if leaves:
            count += here
            possible += num_actions
            nonnegative += here_nonnegative
            largest += here_largest
            local += here_local
    return count, largest, local, nonnegative, possible
