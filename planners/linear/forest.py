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
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.mdp import readonly
from aggmaze.move_mdp import MoveMDP
from planners.engine import Engine
from planners.kernels.pieces import UNIT_ROUNDOFF, likely_outcome, turn_around
from planners.linear.bicgstab import bicgstab
from planners.linear.shortest_paths import Paths, shortest_moves, shortest_outcomes

# A policy of shortest paths is a good beginning where either few actions lead elsewhere, or the way
# is short, in units of 1 / (1 - gamma), on average.
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


class PolicyForest:
    """The forest of one policy at a time.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Engine) -> None:
        model = engine.model
        self.gamma = engine.gamma
        self.checkpoint = engine.checkpoint
        self.tables = engine.tables
        self.terminal = readonly(model.terminal)
        is_moves = isinstance(model, MoveMDP)
        self._kernels = _MOVES if is_moves else _OUTCOMES
        #: Whether every move is certain, so that every evaluation is exact.
        self.certain = is_moves and not bool(engine.tables[3].any())
        #: Likeliest successor of each state but itself, shape (S,); itself where it has no other.
        self.following = np.empty(model.num_states, dtype=np.int32)
        #: States along the policy's paths, shape (S,): each after the one it hangs on.
        self.order = np.empty(model.num_states, dtype=np.int32)
        self.actions = np.empty(0, dtype=np.int32)

    def follow(self, actions: NDArray[np.int32]) -> None:
        """Take up a policy, shape (S,), not to be changed before it is evaluated."""
        self.actions = actions
        self._kernels.follow(*self.tables, actions, self.following)
        _path_order(self.following, self.order)

    def follow_to_goal(self) -> bool:
        """Take up the policy of shortest paths to the terminal states, if that may be good.

        Shortest in the number of likeliest moves.  It may not be good where there is no such state,
        where more than a few states have an action of negative cost, or where there are many ways
        and the terminal states are so far that others matter more.
        """
        actions = np.empty(len(self.order), dtype=np.int32)
        paths = self._kernels.shortest_paths(self.tables, self.terminal, actions)
        if paths is None:
            return False
        horizons = paths.mean_length * (1 - self.gamma)
        if paths.num_ways > _FEW_WAYS and horizons > _SHORT_WAY:
            return False
        self.actions = actions
        self._kernels.follow(*self.tables, actions, self.following)
        if self.certain and paths.order is not None:
            self.order[:] = paths.order
        else:
            # Path by path, which keeps together what equations couple.
            _path_order(self.following, self.order)
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
            BiCGSTAB ends where the residual is down to this share.
        most_steps : int
            Or after so many steps, of two applications each.
        """
        if self.certain:
            move_costs = self.tables[1]
            _close(move_costs, self.actions, self.gamma, self.following, self.order, V)
            return Evaluation(1, 0.0, complete=True)
        return _Equations(self, self._kernels, V).correct(V, reduction, most_steps)


class _Equations:
    """The equations of a policy, states in the order of its paths: F factored, and N."""

    def __init__(self, forest: PolicyForest, kernels: _Kernels, V: NDArray[np.float64]) -> None:
        num_states = len(V)
        self._checkpoint = forest.checkpoint
        self._order = forest.order
        self._parent = np.empty(num_states, dtype=np.int32)
        # Entries of -A: to the parent and from it; and what becomes the inverted pivot.
        self._up, self._down, self._pivot = (np.empty(num_states) for _ in range(3))
        # c - A v.
        self._residual = np.empty(num_states)
        rank = np.empty(num_states, dtype=np.int32)
        cycles = _hang(forest.following, forest.order, rank, self._parent)
        # With the weight of the arc that each is cut at, and what closes it.
        self._cycles = (cycles, np.zeros(len(cycles)), np.zeros(len(cycles)))
        # Pages of an empty array take no memory before they are written to.
        room = kernels.num_outcomes(*forest.tables, forest.actions)
        self._rest = (
            np.empty(num_states + 1, dtype=np.int64),
            np.empty(room, dtype=np.int32),
            np.empty(room),
        )
        num_lagged = kernels.load(
            *forest.tables,
            forest.actions,
            forest.gamma,
            V,
            forest.order,
            rank,
            self._parent,
            self._up,
            self._down,
            self._pivot,
            *self._cycles[:2],
            self._residual,
            *self._rest,
        )
        self._lagged_share = num_lagged / num_states
        _factor(self._parent, self._up, self._down, self._pivot, *self._cycles)

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
        _solve_forest(self._parent, self._up, self._down, self._pivot, *self._cycles, vector)

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
        _subtract_rest(*self._rest, smoothed, direction, image)


# ---------------------------------------------------------------------------------------------
# Where a policy leads.


@njit(cache=True, nogil=True)
def _likely_moves(successors, move_costs, chosen, every, actions, following):  # type: ignore[no-untyped-def]
    for s in range(len(following)):
        action = actions[s]
        n = 0
        for m in range(successors.shape[1]):
            n += 1 if move_costs[s, m] < np.inf else 0
        following[s] = successors[s, action] if n > 0 and chosen[n] >= 0.0 else s
        if following[s] == s and every[n] > 0.0:
            # The chosen move stays, or is the least likely of all.
            for m in range(successors.shape[1]):
                if m != action and move_costs[s, m] < np.inf:
                    following[s] = successors[s, m]


@njit(cache=True, nogil=True)
def _likely_outcomes(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, actions, following
):
    for s in range(len(following)):
        row = s * costs.shape[1] + actions[s]
        following[s] = s
        if not terminal[s]:
            following[s] = likely_outcome(indptr, indices, probabilities, s, row)


@njit(cache=True, nogil=True)
def _path_order(following, order):  # type: ignore[no-untyped-def]
    """Order the states so that each comes after the one it leads to, but for one of each cycle."""
    num_states = len(following)
    visited = np.zeros(num_states, dtype=np.bool_)
    count = 0
    for start in range(num_states):
        first = count
        s = start
        while not visited[s]:
            visited[s] = True
            order[count] = s
            count += 1
            s = following[s]
        turn_around(order, first, count)


# ---------------------------------------------------------------------------------------------
# Evaluation where moves are certain: cycles are closed and paths walked back.


@njit(cache=True, nogil=True)
def _close(move_costs, actions, gamma, following, order, V):  # type: ignore[no-untyped-def]
    num_states = len(V)
    done = np.zeros(num_states, dtype=np.bool_)
    for k in range(num_states):
        s = order[k]
        t = following[s]
        if t == s:
            cost = move_costs[s, actions[s]]
            V[s] = cost / (1.0 - gamma) if cost < np.inf else 0.0
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
            V[s] = total / (1.0 - discount)
        done[s] = True


# ---------------------------------------------------------------------------------------------
# Equations.  Arrays are in the order of the paths; ``rank`` says where a state stands in it.


@njit(cache=True, nogil=True)
def _hang(following, order, rank, parent):  # type: ignore[no-untyped-def]
    """Hang each state on the one it leads to, -1 for roots; return the cycles to close.

    A root leads nowhere but to itself, or closes a cycle; of two states, that is in F anyway.  Of
    each other cycle, its root and the state that leads to, in the order of the roots.
    """
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
def _enter(  # type: ignore[no-untyped-def]
    parent, up, down, jumps, columns, entries, k, column, jump, end, weight, count
):
    """Add an entry of -A, row k, to where it belongs; return the number of those in N."""
    if column == parent[k]:
        up[k] += weight
    elif parent[column] == k:
        down[column] += weight
    elif column == end:
        jumps[jump] += weight
    else:
        columns[count] = column
        entries[count] = weight
        count += 1
    return count


@njit(cache=True, nogil=True)
def _load_moves(  # type: ignore[no-untyped-def]
    successors,
    move_costs,
    chosen,
    every,
    actions,
    gamma,
    V,
    order,
    rank,
    parent,
    up,
    down,
    pivot,
    cycles,
    jumps,
    residual,
    starts,
    columns,
    entries,
):
    """Write the equations of a policy; return the number of entries of N."""
    num_moves = successors.shape[1]
    up[:] = 0.0
    down[:] = 0.0
    count = 0
    num_cycles = 0
    starts[0] = 0
    for k in range(len(order)):
        s = order[k]
        action = actions[s]
        n = 0
        for m in range(num_moves):
            n += 1 if move_costs[s, m] < np.inf else 0
        end = -1
        if num_cycles < len(cycles) and cycles[num_cycles, 0] == k:
            end = cycles[num_cycles, 1]
            num_cycles += 1
        pivot[k] = 1.0
        value = 0.0
        for m in range(num_moves):
            cost = move_costs[s, m]
            weight = every[n] + (chosen[n] if m == action else 0.0)
            if cost < np.inf and weight > 0.0:
                t = successors[s, m]
                value += weight * (cost + gamma * V[t])
                weight *= gamma
                if t == s:
                    pivot[k] -= weight
                else:
                    count = _enter(
                        parent,
                        up,
                        down,
                        jumps,
                        columns,
                        entries,
                        k,
                        rank[t],
                        num_cycles - 1,
                        end,
                        weight,
                        count,
                    )
        residual[k] = value - V[s]
        starts[k + 1] = count
    return count


@njit(cache=True, nogil=True)
def _num_outcomes(  # type: ignore[no-untyped-def]
    indptr, indices, probabilities, costs, mask, terminal, actions
):
    count = 0
    for s in range(len(actions)):
        row = s * costs.shape[1] + actions[s]
        count += indptr[row + 1] - indptr[row]
    return count


@njit(cache=True, nogil=True)
def _load_outcomes(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    probabilities,
    costs,
    mask,
    terminal,
    actions,
    gamma,
    V,
    order,
    rank,
    parent,
    up,
    down,
    pivot,
    cycles,
    jumps,
    residual,
    starts,
    columns,
    entries,
):
    """Write the equations of a policy; return the number of entries of N."""
    up[:] = 0.0
    down[:] = 0.0
    count = 0
    num_cycles = 0
    starts[0] = 0
    for k in range(len(order)):
        s = order[k]
        end = -1
        if num_cycles < len(cycles) and cycles[num_cycles, 0] == k:
            end = cycles[num_cycles, 1]
            num_cycles += 1
        pivot[k] = 1.0
        value = 0.0
        if not terminal[s]:
            row = s * costs.shape[1] + actions[s]
            for entry in range(indptr[row], indptr[row + 1]):
                t = indices[entry]
                weight = probabilities[entry]
                value += weight * V[t]
                weight *= gamma
                if t == s:
                    pivot[k] -= weight
                else:
                    count = _enter(
                        parent,
                        up,
                        down,
                        jumps,
                        columns,
                        entries,
                        k,
                        rank[t],
                        num_cycles - 1,
                        end,
                        weight,
                        count,
                    )
            value = costs[s, actions[s]] + gamma * value
        residual[k] = value - V[s]
        starts[k + 1] = count
    return count


@njit(cache=True, nogil=True)
def _factor(parent, up, down, pivot, cycles, jumps, closings):  # type: ignore[no-untyped-def]
    """Eliminate from the leaves, and find what closes each cycle.

    Leaves ``pivot`` inverted and ``up`` multiplied with it.  A root r that leads to e below it has
    ``v_r = x_r + y v_e``; v_e is a part of that, w v_r, and something of its own: so
    ``v_e = x_e / (1 - w y)``, x being the solution without the arc.
    """
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
def _solve_forest(parent, up, down, pivot, cycles, jumps, closings, vector):  # type: ignore[no-untyped-def]
    """Replace a vector r by F^-1 r."""
    for k in range(len(vector) - 1, -1, -1):
        value = vector[k] * pivot[k]
        vector[k] = value
        if parent[k] >= 0:
            vector[parent[k]] += down[k] * value
    for i in range(len(jumps)):
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
def _subtract_rest(starts, columns, entries, vector, right, out):  # type: ignore[no-untyped-def]
    """Write right - N vector."""
    for k in range(len(out)):
        total = right[k]
        for entry in range(starts[k], starts[k + 1]):
            total -= entries[entry] * vector[columns[entry]]
        out[k] = total


@njit(cache=True, nogil=True)
def _add_in_order(order, vector, V):  # type: ignore[no-untyped-def]
    for k in range(len(order)):
        V[order[k]] += vector[k]


class _Kernels(NamedTuple):
    """What differs between the layouts of a model; all take its tables first."""

    follow: Callable[..., None]
    num_outcomes: Callable[..., int]
    load: Callable[..., int]
    shortest_paths: Callable[
        [tuple[NDArray[Any], ...], NDArray[np.bool_], NDArray[np.int32]], Paths | None
    ]


_MOVES = _Kernels(
    _likely_moves,
    lambda successors, *_: successors.size,
    _load_moves,
    shortest_moves,
)
_OUTCOMES = _Kernels(_likely_outcomes, _num_outcomes, _load_outcomes, shortest_outcomes)
