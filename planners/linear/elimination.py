"""The exact value of a policy in a small chain, by elimination that never subtracts.

    v = c + gamma P v,   v = 0 in terminal states

One state after another is left out: whoever leads to it leads to where it leads, and pays its cost.
``A = I - gamma P`` is described by what it has beside the diagonal, ``gamma P``, and by the sums of
its rows, ``1 - gamma`` and what ends; its diagonal, which is all that subtraction would spoil, is
never formed.  So each entry of the factors has a small relative error however near gamma is to 1,
and so have the values where costs have one sign.  A row that misses 1 by a few roundings, such as
three times 1/3, is taken for what was meant and sums to 1: near gamma = 1 what it lacks would count
as if episodes ended.  The work is that of Gaussian elimination, less what zeros spare, and the room
is S squared.

Source: Grassmann, Taksar, Heyman, "Regenerative analysis and steady state distributions for Markov
chains", Operations Research 33 (1985); Alfa, Xue, Ye, "Entrywise perturbation theory for diagonally
dominant M-matrices with applications", Numerische Mathematik 90 (2002).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from aggmaze.arrays import readonly
from aggmaze.models.tabular import TabularMDP
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.linear.rows import rows_of

#: Most states for which elimination is always affordable: 8 MB, and under a second at worst.
MOST_STATES = 1024

# Roundings that a row is off by, beyond one an entry: those of weights of actions among them.
_ROUNDINGS = 64


def eliminate(chain: TabularMDP, gamma: float) -> NDArray[np.float64] | None:
    """Return the values of a model with one action, shape (S,).

    Parameters
    ----------
    chain : TabularMDP
        With one action, as `planners.policies.policy_model` makes it; `MOST_STATES` at most.
    gamma : float
        Discount in [0, 1]; 1 only where every state reaches a terminal one.

    Returns
    -------
    ndarray of float or None
        None where a row of probabilities sums to over 1/gamma, so that there may be no value.
    """
    num_states = chain.num_states
    values = np.zeros(num_states)
    found = _eliminate(
        rows_of(chain.transitions),
        chain.costs[:, 0].copy(),
        readonly(chain.terminal),
        gamma,
        np.zeros((num_states, num_states)),
        values,
    )
    return values if found else None


@njit(cache=True, nogil=True)
def missing_probability(probabilities, begin, end):
    """Return what a row lacks of 1, or 0 where that may be rounding."""
    # The roundings are summed up apart (Neumaier).
    missing, lost = 1.0, 0.0
    for entry in range(begin, end):
        p = probabilities[entry]
        total = missing - p
        if abs(missing) >= p:
            lost += (missing - total) - p
        else:
            lost += missing - (total + p)
        missing = total
    missing += lost
    return 0.0 if abs(missing) <= (_ROUNDINGS + end - begin) * UNIT_ROUNDOFF else missing


@njit(cache=True, nogil=True)
def some_row_grows(rows, terminal, gamma):
    """Return whether a row sums to over 1/gamma, so that there may be no value."""
    starts, columns, probabilities = rows
    for i in range(len(terminal)):
        if not terminal[i]:
            ends = 0.0
            for entry in range(starts[i], starts[i + 1]):
                ends += probabilities[entry] if terminal[columns[entry]] else 0.0
            missing = missing_probability(probabilities, starts[i], starts[i + 1])
            if not (1.0 - gamma) + gamma * (missing + ends) > 0.0:
                return True
    return False


@njit(cache=True, nogil=True)
def _eliminate(rows, costs, terminal, gamma, weights, values):
    """Write the values; ``costs`` are used up, and ``weights`` (S, S) are 0 before."""
    starts, columns, probabilities = rows
    num_states = len(values)
    sums = np.zeros(num_states)
    for i in range(num_states):
        if terminal[i]:
            continue
        # What of a row ends.
        ends = 0.0
        for entry in range(starts[i], starts[i + 1]):
            j = columns[entry]
            p = probabilities[entry]
            if terminal[j]:
                ends += p
            elif j != i:
                weights[i, j] += gamma * p
        missing = missing_probability(probabilities, starts[i], starts[i + 1])
        sums[i] = (1.0 - gamma) + gamma * (missing + ends)
        if not sums[i] > 0.0 and not (gamma == 1.0 and sums[i] == 0.0):
            return False
    pivots = np.empty(num_states)
    coupled = np.empty(num_states, dtype=np.int64)
    for k in range(num_states - 1, -1, -1):
        if terminal[k]:
            continue
        count = 0
        pivot = sums[k]
        for j in range(k):
            if weights[k, j] != 0.0:
                coupled[count] = j
                count += 1
                pivot += weights[k, j]
        if not pivot > 0.0:
            return False
        pivots[k] = pivot
        for i in range(k):
            if weights[i, k] == 0.0:
                continue
            factor = weights[i, k] / pivot
            sums[i] += factor * sums[k]
            costs[i] += factor * costs[k]
            for c in range(count):
                weights[i, coupled[c]] += factor * weights[k, coupled[c]]
            weights[i, i] = 0.0
    for k in range(num_states):
        if terminal[k]:
            continue
        total = costs[k]
        for j in range(k):
            total += weights[k, j] * values[j]
        values[k] = total / pivots[k]
    return True
