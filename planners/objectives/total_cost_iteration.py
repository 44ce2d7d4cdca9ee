"""Policy iteration and value iteration of total costs, over the places of a region.

*Policy iteration* (Howard, 1960).  A proper policy is evaluated exactly, and a row replaced where
another is better by more than rounding.  The next policy is proper again, unless there is a circle
of negative mean cost: on a set of states that it never leaves, ``c + P V - V`` has the same mean as
c, is 0 where the row is the old one, which was proper, and negative elsewhere.  So it ends with the
least costs of proper policies also where zero-cost or zero-mean circles make value iteration from
below stop at less (Bertsekas and Yu, 2016).

*Value iteration* starts from the costs of a proper policy, which are not below the least, and comes
down.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from aggmaze.arrays import readonly
from planners.chain_costs import normalised, total_costs_of_chain
from planners.inequalities import Inequalities, exact_row
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.vectors import sup_norm
from planners.objectives.total_cost_region import Places

# Rounds in a row in which costs fall by no more than rounding.
_MOST_STILL = 3
# How often more is allowed for near-best actions that end.
_MOST_LEVELS = 8
# Circles that are looked at closely at a time, and how often some are left alone.
_MOST_CIRCLES, _MOST_BARRED = 16, 32
# States that an error names.
_NAMED = 8


class UndecidedError(Exception):
    """A circle may cost nothing or less: float64 cannot tell.

    Parameters
    ----------
    state : int
        On the circle.
    circles : ndarray of int64
        The places of all such circles.
    """

    def __init__(self, state: int, circles: NDArray[np.int64]) -> None:
        super().__init__(state)
        self.state, self.circles = state, circles


class PolicyIteration:
    """Policy iteration from a proper policy.

    Parameters
    ----------
    places : Places
    rows : ndarray of int64, shape (C,)
        A proper policy.
    strict : bool
        Whether to raise where it is not decided whether there is a least cost.
    """

    def __init__(self, places: Places, rows: NDArray[np.int64], *, strict: bool = False) -> None:
        self._places, self.strict = places, strict
        #: The policy whose costs V are.
        self.rows = rows
        #: Of the last policy that was evaluated, shape (S,).
        self.V = places.evaluate(rows)
        #: The largest size of ``c + P V - V`` by which the policy misses its own equations.
        self.residual = 0.0
        self.num_sweeps = 1
        self._num_still = self._num_barred = 0
        # The rows that may be taken up, where some would lead into a circle that is not decided.
        self._allowed: NDArray[np.bool_] | None = None

    def policy(self) -> Callable[[], NDArray[np.int64] | None]:
        """Return what tells the policy in all states, shape (S,), -1 in ends."""
        return functools.partial(self._places.policy, self.rows)

    def step(self) -> bool:
        """Improve the policy and evaluate it; return whether there was nothing to improve.

        Where a better policy would stay somewhere for ever at a mean cost of 0 but for rounding,
        that part of it is not taken.

        Raises
        ------
        ValueError
            If some policy stays for ever at a negative mean cost.
        """
        places = self._places
        best, which, low, high = places.compare(self.V, self.rows, self._allowed)
        self.num_sweeps += 1
        live = self.rows >= 0
        self.residual = max(float(-low.min()), float(high.max()), 0.0)
        # What an evaluation leaves in the equations is no reason to prefer another row.
        better = live & (best < low - 2 * self.residual)
        if not better.any():
            return True
        rows = np.where(better, which, self.rows)
        arrives = places.arriving(rows)
        if not arrives.all():
            without = self._without_circles(rows, ~arrives)
            if without is None or np.array_equal(without, self.rows):
                return without is None
            rows = without
        V = places.evaluate(rows)
        self.num_sweeps += 1
        fall = float((self.V - V).max())
        size = sup_norm(V)
        self._num_still = self._num_still + 1 if fall <= 16 * UNIT_ROUNDOFF * size else 0
        self.rows, self.V = rows, V
        return self._num_still >= _MOST_STILL

    def _without_circles(
        self, rows: NDArray[np.int64], lost: NDArray[np.bool_]
    ) -> NDArray[np.int64] | None:
        """Return a better policy without the rows that lead into circles; None after many."""
        try:
            raise_for_circle(self._places, rows, lost, self.V)
        except UndecidedError as error:
            if self.strict:
                raise
            self._num_barred += 1
            if self._num_barred > _MOST_BARRED:
                return None
            if self._allowed is None:
                self._allowed = self._places.usable.copy()
            taken = rows[error.circles]
            taken = taken[taken != self.rows[error.circles]]
            self._allowed.reshape(-1)[taken] = False
        return np.where(lost, self.rows, rows)


def raise_for_circle(
    places: Places, rows: NDArray[np.int64], lost: NDArray[np.bool_], V: NDArray[np.float64]
) -> None:
    """Raise what is to be said of a policy that never ends and yet is better.

    Parameters
    ----------
    places : Places
    rows : ndarray of int64, shape (C,)
        The policy.
    lost : ndarray of bool, shape (C,)
        From where it may not end.
    V : ndarray of float, shape (S,)
        What it is better than.

    Raises
    ------
    ValueError
        If it is proved that it stays somewhere for ever at a negative mean cost.
    UndecidedError
        If that cannot be told from 0.
    """
    policy = places.policy(rows)
    circles = _closed_classes(places.chain(rows), lost)
    first = -1
    for circle in circles[:_MOST_CIRCLES]:
        # Where one stays in a place at no cost before it is left, inner steps are part of it.
        states = _reached(places, policy, int(rows[circle[0]] // places.region.model.num_actions))
        first = int(states[0]) if first < 0 else first
        inside = np.full(len(policy), -1, dtype=np.int64)
        inside[states] = policy[states]
        if is_negative(places, inside, V):
            break
    else:
        raise UndecidedError(first, np.concatenate(circles))
    naming = places.region.model.naming
    named = naming.list_states(states[:_NAMED])
    more = f" and {len(states) - _NAMED} more" if len(states) > _NAMED else ""
    actions = naming.list_actions(policy[states[:_NAMED]])
    raise ValueError(
        f"there is no least total cost: by the actions {actions} in the states {named}{more} one "
        f"goes round for ever at a negative mean cost, so that from {naming.state(int(states[0]))} "
        "every further round is better before ending; check the signs of the costs there (rewards "
        "are minus costs), or ask for discounted costs, gamma= below 1, or for the mean cost of a "
        "step, objective=AverageCost()"
    )


def _closed_classes(chain: sp.csr_array, lost: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Return the sets of places that a chain never leaves again, among those that are lost."""
    states = np.flatnonzero(lost)
    rows = sp.csr_array(chain[states])
    graph = sp.csr_array(rows[:, states])
    graph.sum_duplicates()
    graph.eliminate_zeros()
    outside = np.asarray(rows[:, np.flatnonzero(~lost)].sum(axis=1)).reshape(-1) > 0
    _, component = connected_components(graph, directed=True, connection="strong")
    edges = graph.tocoo()
    is_open = np.zeros(int(component.max()) + 1, dtype=bool)
    is_open[component[edges.row[component[edges.row] != component[edges.col]]]] = True
    is_open[component[outside]] = True
    settled = np.flatnonzero(~is_open[component])
    by_class = settled[np.argsort(component[settled], kind="stable")]
    cuts = np.flatnonzero(np.diff(component[by_class])) + 1
    return [states[part] for part in np.split(by_class, cuts)]


def _reached(places: Places, policy: NDArray[np.int64], start: int) -> NDArray[np.int64]:
    """Return the states that a policy gets to from a state, itself among them if it recurs."""
    matrix, num_actions = places.region.table.transitions, places.region.model.num_actions
    found, left = {start}, [start]
    while left:
        s = left.pop()
        row = s * num_actions + int(policy[s])
        entries = slice(*matrix.indptr[row : row + 2])
        for t in matrix.indices[entries][matrix.data[entries] > 0].tolist():
            if t not in found:
                found.add(t)
                left.append(t)
    return np.array(sorted(found), dtype=np.int64)


def is_negative(places: Places, policy: NDArray[np.int64], V: NDArray[np.float64]) -> bool:
    """Whether it is proved that a policy has a negative mean cost in the states that it circles in.

    From ``c + P h - h <= g < 0``, or from ``c + P h - h <= 0`` with less in one state: each of
    these states recurs, and the mean of ``P h - h`` is 0.

    Parameters
    ----------
    places : Places
    policy : ndarray of int64, shape (S,)
        -1 in all other states.
    V : ndarray of float, shape (S,)
        A guess of h.
    """
    table = places.region.table
    inequalities = Inequalities(table)
    states = np.flatnonzero(policy >= 0)
    if inequalities.most(policy, V).value <= 0.0:
        for s in states.tolist():
            if exact_row(table, s, int(policy[s]), V) < 0:
                return True
    # The mean cost g between two visits of a state, and what is paid beyond it on the way there.
    rows = states * table.num_actions + policy[states]
    matrix = normalised(sp.csr_array(table.transitions[rows][:, states]))
    costs = table.costs.reshape(-1)[rows]
    first = np.zeros(len(states), dtype=bool)
    first[0] = True
    try:
        paid = total_costs_of_chain(matrix, costs, first, places.checkpoint)
        steps = total_costs_of_chain(matrix, np.ones(len(states)), first, places.checkpoint)
    except FloatingPointError:
        return False
    around = matrix[[0]]
    mean = float((costs[0] + (around @ paid)[0]) / (1.0 + (around @ steps)[0]))
    if not mean < 0.0:
        return False
    h = np.zeros(table.num_states)
    h[states] = paid - mean * steps
    return bool(inequalities.most(policy, h, 0.5 * mean).value <= 0.0)


class ValueIteration:
    """Value iteration from the costs of a proper policy.

    Parameters
    ----------
    places : Places
    rows : ndarray of int64, shape (C,)
        A proper policy.
    """

    def __init__(self, places: Places, rows: NDArray[np.int64]) -> None:
        self._places = places
        #: Greedy rows of the last sweep; at first the proper policy.
        self.rows = rows
        self.V = places.evaluate(rows)
        self._first_size = sup_norm(self.V)
        #: The largest fall of the last sweep.
        self.residual = math.inf
        self.num_sweeps = 1
        self._proper = rows

    def policy(self) -> Callable[[], NDArray[np.int64] | None]:
        """Return what tells actions that are as good as the best, but for the fall of V, and end.

        Where there are none such they are those of the first policy.
        """
        return functools.partial(self._near, self.V, self.residual)

    def _near(self, V: NDArray[np.float64], residual: float) -> NDArray[np.int64]:
        places, region = self._places, self._places.region
        level = 2 * residual + 16 * UNIT_ROUNDOFF * sup_norm(V)
        for _ in range(_MOST_LEVELS):
            near = np.zeros(places.usable.shape, dtype=bool)
            places.mark_below(V, level, near)
            if places.staying is not None:
                near |= places.staying
            ends = np.flatnonzero(region.ends)
            _, actions = region.graph.steps_to(ends, readonly(near.reshape(-1)))
            if (actions[region.inside] >= 0).all():
                return np.where(region.inside, actions, -1).astype(np.int64)
            level *= 4
        return places.policy(self._proper)

    def step(self) -> bool:
        """Make a sweep; return whether V did not change.

        Raises
        ------
        ValueError
            If some policy stays for ever at a negative mean cost.
        """
        places = self._places
        change, rows = places.backup(self.V, self.rows)
        self.num_sweeps += 1
        if self.num_sweeps & (self.num_sweeps - 1) == 0:
            # Costs that fall for ever do so round a circle, which the greedy rows come to follow.
            arrives = places.arriving(rows)
            if not arrives.all():
                # Undecided are the rows of states that have not settled yet.
                with contextlib.suppress(UndecidedError):
                    raise_for_circle(places, rows, ~arrives, self.V)
        residual = sup_norm(change)
        by_state = change if places.labels is None else change[places.labels]
        V = self.V + by_state
        V[places.region.ends] = self.V[places.region.ends]
        is_still = bool(np.array_equal(V, self.V)) or (
            residual >= self.residual and residual <= 8 * UNIT_ROUNDOFF * sup_norm(V)
        )
        # Where all costs come to 0, no relative accuracy is reached.
        is_still = is_still or residual <= UNIT_ROUNDOFF**2 * self._first_size
        self.V, self.rows, self.residual = V, rows, residual
        return is_still
