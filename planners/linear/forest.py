"""Where a policy leads, as a forest, and its value by elimination along that forest.

Under a policy every state has a likeliest successor.  These make a functional graph: trees, each of
which ends in a cycle (a state that stays is a cycle of one).  States are put in the order of the
paths, successors first, and each is hung on its likeliest successor.

The equations of the policy, ``A v = c`` with ``A = I - gamma P``, are split into ``A = F - N``.  F
has the diagonal and, in both directions, all entries between a state and the one it hangs on, with
the arc that closes each cycle; it is solved exactly in a few passes, without fill.  N, the rest, is
what BiCGSTAB is left with (`linear.bicgstab`), preconditioned by F.  N is empty where moves are
certain (p = 1), and on mazes with slip whose passages form a tree: there a policy is evaluated in
one solve.

F is an M-matrix, and ``A = F - N`` a regular splitting, so ``v + F^-1 (c - A v)`` is nearer to the
value of the policy than v is, whatever BiCGSTAB makes of it.

This is for solvers, which evaluate one policy after another, straight from the tables of a model
and from a V that is near already; the exact value of one chain is for `linear.chain`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from planners.engine import LocalEngine
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.tables import Moves, Outcomes, num_available, weight
from planners.linear.bicgstab import bicgstab
from planners.linear.paths import likely_moves, likely_outcomes, path_order
from planners.linear.policy_matrix import num_outcomes
from planners.linear.rows import Rows
from planners.linear.shortest_paths import GridPaths, Paths, shortest_moves, shortest_outcomes

# A policy of shortest paths is a good beginning where, on average, either at most _FEW_WAYS actions
# of a state lead elsewhere, or paths have at most _SHORT_WAY / (1 - gamma) steps.
_FEW_WAYS, _SHORT_WAY = 3.2, 3.0


class Evaluation(NamedTuple):
    """What an evaluation took.

    Parameters
    ----------
    num_applications : int
        Passes over all states, each with one application of the policy's operator.
    lagged_share : float
        Entries of N for each state.  0: the values solve the equations, but for rounding.
    complete : bool
        Whether the residual is down as far as was asked for.
    """

    num_applications: int
    lagged_share: float
    complete: bool


class _Places(NamedTuple):
    """Which state stands where in the order of the paths: ``rank[states[k]] == k``, (S,) both."""

    states: NDArray[np.int32]
    rank: NDArray[np.int32]


class _Factor(NamedTuple):
    """F: entries of -A and pivots, states in the order of the paths.

    Parameters
    ----------
    parent : ndarray of int32, shape (S,)
        Where the state that each hangs on stands, before it; -1 for roots.
    up, down : ndarray of float, shape (S,)
        Entry to the parent and from it; after `_factor` the former multiplied by the pivot.
    pivot : ndarray of float, shape (S,)
        The diagonal of A; after `_factor` inverted pivots.
    cycles : ndarray of int32, shape (C, 2)
        Of each cycle that is cut, its root and what that leads to, in the order of the roots.
    jumps : ndarray of float, shape (C,)
        Entry of the arc that each is cut at; after `_factor` multiplied by the root's pivot.
    closings : ndarray of float, shape (C,)
        What closes each, after `_factor`.
    """

    parent: NDArray[np.int32]
    up: NDArray[np.float64]
    down: NDArray[np.float64]
    pivot: NDArray[np.float64]
    cycles: NDArray[np.int32]
    jumps: NDArray[np.float64]
    closings: NDArray[np.float64]


class PolicyForest:
    """The forest of one policy at a time.

    Parameters
    ----------
    engine : LocalEngine
    """

    def __init__(self, engine: LocalEngine) -> None:
        model = engine.model
        self._engine = engine
        self.gamma = engine.gamma
        self.checkpoint = engine.checkpoint
        self.tables: Any = engine.tables
        self.terminal = readonly(model.terminal)
        self._kernels = _MOVES if isinstance(self.tables, Moves) else _OUTCOMES
        #: Whether every move is certain, so that every evaluation is exact.
        self.certain = isinstance(self.tables, Moves) and not bool(self.tables.every.any())
        #: Likeliest successor of each state but itself, shape (S,); itself where it has no other.
        self.following = np.empty(model.num_states, dtype=np.int32)
        #: States along the policy's paths, shape (S,): each after the one it hangs on.
        self.order = np.empty(model.num_states, dtype=np.int32)
        self.actions = np.empty(0, dtype=np.int32)

    def follow(self, actions: NDArray[np.int32]) -> None:
        """Take up a policy, shape (S,), not to be changed before it is evaluated."""
        self.actions = actions
        self._kernels.follow(self.tables, actions, self.following)
        path_order(self.following, self.order)

    def follow_to_goal(self, known: GridPaths | None = None) -> bool:
        """Take up the policy of shortest paths to the terminal states, if that may be good.

        Shortest in the number of likeliest moves.  It may not be good where there is no such state,
        where more than a few states have an action of negative cost, or where there are many ways
        and the terminal states are so far that others matter more.  Undiscounted it always is
        taken up: it surely ends.

        Parameters
        ----------
        known : GridPaths, optional
            The shortest paths, where they have been found and are to be taken up.
        """
        paths: Paths | None
        if known is not None and known.paths is not None:
            paths, actions = known.paths, known.actions
        else:
            actions, always = np.empty(len(self.order), dtype=np.int32), self.gamma == 1.0
            paths = self._kernels.shortest_paths(self.tables, self.terminal, actions, always=always)
        if paths is None:
            return False
        if paths.distances is not None:
            # Whoever reads a policy off the values may need them.
            self._engine.steps_to_terminal = paths.distances
        horizons = paths.mean_length * (1 - self.gamma)
        if paths.num_ways > _FEW_WAYS and horizons > _SHORT_WAY:
            return False
        self.actions = actions
        self._kernels.follow(self.tables, actions, self.following)
        if self.certain and paths.order is not None:
            self.order[:] = paths.order
        else:
            # Path by path, which keeps together what equations couple.
            path_order(self.following, self.order)
        return True

    @property
    def is_scattered(self) -> bool:
        """Whether the policy leads far off in the order of the states, as on random graphs."""
        states = np.arange(0, len(self.following), max(1, len(self.following) // 1000))
        return bool(np.abs(self.following[states] - states).mean() > 0.1 * len(self.following))

    def evaluate(self, V: NDArray[np.float64], *, reduction: float, most_steps: int) -> Evaluation:
        """Bring V, shape (S,), to the value of the policy, in place.

        Parameters
        ----------
        V : ndarray of float, shape (S,)
            Finite, and 0 in terminal states.
        reduction : float
            BiCGSTAB ends where the 2-norm of the residual is down to this part of what it was.
        most_steps : int
            Most steps of BiCGSTAB, of two applications each.
        """
        if self.certain:
            _close(self.tables.costs, self.actions, self.gamma, self.following, self.order, V)
            return Evaluation(1, 0.0, complete=True)
        return _Equations(self, self._kernels, V).correct(V, reduction, most_steps)


class _Equations:
    """The equations of a policy, states in the order of its paths: F factored, and N."""

    def __init__(self, forest: PolicyForest, kernels: _Kernels, V: NDArray[np.float64]) -> None:
        num_states = len(V)
        self._checkpoint = forest.checkpoint
        self._order = forest.order
        places = _Places(forest.order, np.empty(num_states, dtype=np.int32))
        parent = np.empty(num_states, dtype=np.int32)
        cycles = _hang(forest.following, places, parent)
        up, down, pivot = (np.empty(num_states) for _ in range(3))
        jumps, closings = (np.zeros(len(cycles)) for _ in range(2))
        self._factor = _Factor(parent, up, down, pivot, cycles, jumps, closings)
        # Pages of an empty array take no memory before they are written to.
        room = kernels.room(forest.tables, forest.actions)
        self._rest = Rows(
            np.empty(num_states + 1, dtype=np.int64),
            np.empty(room, dtype=np.int32),
            np.empty(room),
        )
        # c - A v.
        self._residual = np.empty(num_states)
        num_lagged = kernels.load(
            forest.tables,
            forest.actions,
            forest.gamma,
            V,
            places,
            self._factor,
            self._rest,
            self._residual,
        )
        self._lagged_share = num_lagged / num_states
        _eliminate(self._factor)

    def correct(self, V: NDArray[np.float64], reduction: float, most_steps: int) -> Evaluation:
        """Add to V what it lacks of the solution, as far as asked for."""
        correction, num_applications, complete = self._residual, 2, True
        if self._lagged_share > 0.0:
            solution = bicgstab(
                self._apply, self._residual, reduction=reduction, most_steps=most_steps
            )
            num_applications += 2 * solution.num_steps
            complete = solution.reduction <= reduction
            if solution.reduction < 1.0:
                correction = solution.values
        if correction is self._residual:
            self._solve(correction)
        _add_in_order(self._order, correction, V)
        return Evaluation(num_applications, self._lagged_share, complete)

    def _solve(self, vector: NDArray[np.float64]) -> None:
        """Replace a vector r by F^-1 r."""
        _substitute(self._factor, vector)

    def _apply(
        self,
        direction: NDArray[np.float64],
        smoothed: NDArray[np.float64],
        image: NDArray[np.float64],
    ) -> None:
        """Write ``F^-1 d`` and ``A F^-1 d = d - N F^-1 d``."""
        self._checkpoint()
        smoothed[:] = direction
        self._solve(smoothed)
        _subtract_rest(self._rest, smoothed, direction, image)


# ---------------------------------------------------------------------------------------------
# Evaluation where moves are certain: cycles are closed and paths walked back.


@njit(cache=True, nogil=True)
def _close(move_costs, actions, gamma, following, order, V):
    num_states = len(V)
    done = np.zeros(num_states, dtype=np.bool_)
    for k in range(num_states):
        s = order[k]
        t = following[s]
        if t == s:
            cost = move_costs[s, actions[s]]
            V[s] = _for_ever(cost, gamma) if cost < np.inf else 0.0
        elif done[t]:
            V[s] = move_costs[s, actions[s]] + gamma * V[t]
        else:
            # The state that a cycle is cut at: once around.
            total = move_costs[s, actions[s]]
            discount = gamma
            while t != s:
                total += discount * move_costs[t, actions[t]]
                discount *= gamma
                t = following[t]
            V[s] = _for_ever(total, discount)
        done[s] = True


@njit(cache=True, inline="always")
def _for_ever(cost, discount):
    """Return what a cost comes to that comes again and again, infinite if nothing discounts it."""
    return cost / (1.0 - discount) if discount < 1.0 else np.inf


# ---------------------------------------------------------------------------------------------
# Equations.  Arrays are in the order of the paths; ``rank`` says where a state stands in it.


@njit(cache=True, nogil=True)
def _hang(following, places, parent):
    """Hang each state on the one it leads to, -1 for roots; return the cycles to close.

    A root leads nowhere but to itself, or closes a cycle; of two states, that is in F anyway.  Of
    each other cycle, its root and the state that leads to, in the order of the roots.
    """
    order, rank = places
    num_states = len(order)
    for k in range(num_states):
        rank[order[k]] = k
    for k in range(num_states):
        up = rank[following[order[k]]]
        parent[k] = up if up < k else -1
    cycles = np.empty((num_states, 2), dtype=np.int32)
    count = 0
    for k in range(num_states):
        if parent[k] < 0:
            up = rank[following[order[k]]]
            if up > k and parent[up] != k:
                cycles[count, 0] = k
                cycles[count, 1] = up
                count += 1
    return cycles[:count].copy()


@njit(cache=True, inline="always")
def _end_of_cycle(factor, k, cycle):
    """Return what k leads to if it is the root of a cycle, the next in their order; else -1."""
    if cycle < len(factor.cycles) and factor.cycles[cycle, 0] == k:
        return factor.cycles[cycle, 1]
    return -1


@njit(cache=True, inline="always")
def _enter(factor, rest, k, column, entry, cycle, end, count):
    """Add an entry of -A, row k, to where it belongs; return the number of those in N.

    ``end`` is what `_end_of_cycle` returns for a number ``cycle``.
    """
    if column == factor.parent[k]:
        factor.up[k] += entry
    elif factor.parent[column] == k:
        factor.down[column] += entry
    elif column == end:
        factor.jumps[cycle] += entry
    else:
        rest.columns[count] = column
        rest.entries[count] = entry
        count += 1
    return count


@njit(cache=True, nogil=True)
def _load_moves(moves, actions, gamma, V, places, factor, rest, residual):
    """Write the equations of a policy; return the number of entries of N."""
    successors, costs, chosen, every = moves
    states, rank, pivots, starts = places.states, places.rank, factor.pivot, rest.starts
    factor.up[:] = 0.0
    factor.down[:] = 0.0
    count = 0
    cycle = 0
    starts[0] = 0
    for k in range(len(residual)):
        s = states[k]
        n = num_available(costs, s)
        end = _end_of_cycle(factor, k, cycle)
        pivot = 1.0
        value = 0.0
        for m in range(successors.shape[1]):
            cost = costs[s, m]
            probability = weight(chosen, every, n, m, actions[s])
            if cost < np.inf and probability > 0.0:
                t = successors[s, m]
                value += probability * (cost + gamma * V[t])
                entry = gamma * probability
                if t == s:
                    pivot -= entry
                else:
                    count = _enter(factor, rest, k, rank[t], entry, cycle, end, count)
        cycle += 1 if end >= 0 else 0
        pivots[k] = pivot
        residual[k] = value - V[s]
        starts[k + 1] = count
    return count


@njit(cache=True, nogil=True)
def _load_outcomes(outcomes, actions, gamma, V, places, factor, rest, residual):
    """Write the equations of a policy; return the number of entries of N."""
    indptr, indices, probabilities, costs, _, terminal, _ = outcomes
    states, rank, pivots, starts = places.states, places.rank, factor.pivot, rest.starts
    factor.up[:] = 0.0
    factor.down[:] = 0.0
    count = 0
    cycle = 0
    starts[0] = 0
    for k in range(len(residual)):
        s = states[k]
        end = _end_of_cycle(factor, k, cycle)
        pivot = 1.0
        value = 0.0
        if not terminal[s]:
            row = s * costs.shape[1] + actions[s]
            for place in range(indptr[row], indptr[row + 1]):
                t = indices[place]
                probability = probabilities[place]
                value += probability * V[t]
                entry = gamma * probability
                if t == s:
                    pivot -= entry
                else:
                    count = _enter(factor, rest, k, rank[t], entry, cycle, end, count)
            value = costs[s, actions[s]] + gamma * value
        cycle += 1 if end >= 0 else 0
        pivots[k] = pivot
        residual[k] = value - V[s]
        starts[k + 1] = count
    return count


@njit(cache=True, nogil=True)
def _eliminate(factor):
    """Eliminate from the leaves, and find what closes each cycle.

    A root r that leads to e below it has ``v_r = x_r + y v_e``; v_e is a part of that, w v_r, and
    something of its own: so ``v_e = x_e / (1 - w y)``, x being the solution without the arc.
    """
    parent, up, down, pivot, cycles, jumps, closings = factor
    for k in range(len(parent) - 1, -1, -1):
        # Positive, but for the rounding of a discount next to 1.
        pivot[k] = 1.0 / max(pivot[k], UNIT_ROUNDOFF)
        up[k] *= pivot[k]
        if parent[k] >= 0:
            pivot[parent[k]] -= down[k] * up[k]
    for i in range(len(jumps)):
        jumps[i] *= pivot[cycles[i, 0]]
        share = 1.0
        k = cycles[i, 1]
        while parent[k] >= 0:
            share *= up[k]
            k = parent[k]
        closings[i] = jumps[i] / max(1.0 - share * jumps[i], UNIT_ROUNDOFF)


@njit(cache=True, nogil=True)
def _substitute(factor, vector):
    """Replace a vector r by F^-1 r."""
    parent, up, down, pivot, cycles, _, closings = factor
    for k in range(len(vector) - 1, -1, -1):
        value = vector[k] * pivot[k]
        vector[k] = value
        if parent[k] >= 0:
            vector[parent[k]] += down[k] * value
    for i in range(len(closings)):
        # The solution without the arc, at its far end.
        value = 0.0
        share = 1.0
        k = cycles[i, 1]
        while k >= 0:
            value += share * vector[k]
            share *= up[k]
            k = parent[k]
        vector[cycles[i, 0]] += closings[i] * value
    for k in range(len(vector)):
        if parent[k] >= 0:
            vector[k] += up[k] * vector[parent[k]]


@njit(cache=True, nogil=True)
def _subtract_rest(rest, vector, right, out):
    """Write right - N vector."""
    starts, columns, entries = rest
    for k in range(len(out)):
        total = right[k]
        for place in range(starts[k], starts[k + 1]):
            total -= entries[place] * vector[columns[place]]
        out[k] = total


@njit(cache=True, nogil=True)
def _add_in_order(order, vector, V):
    for k in range(len(order)):
        V[order[k]] += vector[k]


def _follow_outcomes(
    outcomes: Outcomes, actions: NDArray[np.int32], following: NDArray[np.int32]
) -> None:
    rows = Rows(outcomes.indptr, outcomes.indices, outcomes.probabilities)
    likely_outcomes(rows, outcomes.costs.shape[1], actions, outcomes.terminal, following)


class _Kernels(NamedTuple):
    """What differs between the layouts of a model; all take its tables first."""

    #: Write the likeliest successor of each state under a policy.
    follow: Callable[[Any, NDArray[np.int32], NDArray[np.int32]], None]
    #: Return how many entries N may have.
    room: Callable[[Any, NDArray[np.int32]], int]
    load: Callable[..., int]
    shortest_paths: Callable[..., Paths | None]


_MOVES = _Kernels(likely_moves, lambda moves, _: moves.successors.size, _load_moves, shortest_moves)
_OUTCOMES = _Kernels(_follow_outcomes, num_outcomes, _load_outcomes, shortest_outcomes)
