"""What is worth knowing of a model before a method is chosen for it, cheaply measured.

States that are never left are looked for among all; the rest is read off at most `SAMPLE` states,
evenly spaced, so that measuring costs a small part of one sweep and draws no random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from aggmaze.mdp import TabularMDP, readonly
from aggmaze.move_mdp import MoveMDP
from planners.orders import coprime_step, grid_shape

Model = TabularMDP | MoveMDP

#: Number of states that are looked at more closely.
SAMPLE = 2000


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
