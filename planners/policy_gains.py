"""The mean cost of a policy in the long run, and its bias.

Where the policy ends up, in which of its recurrent classes, is up to chance and to where it starts.
Each class has one gain, found by what happens between two visits of a state (`linear.renewal`); in
a transient state the gain is the mean of those of the classes, by the probabilities of getting
there.  Terminal states go on for ever at no cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from planners.adapters import as_model
from planners.bellman import local_engine
from planners.linear.renewal import (
    EndingEquations,
    RenewalEquations,
    likely_states,
    recurrent_classes,
    rows_without_ends,
)
from planners.policies import policy_model
from planners.result import SolveResult

_Model = TypeVar("_Model", TabularMDP, MoveMDP, TabularMDP | MoveMDP)


@dataclass(frozen=True)
class PolicyGains:
    """What a policy costs in the long run.

    Parameters
    ----------
    gains : ndarray of float, shape (S,)
        The mean cost of a step, for ever, from each state on.
    bias : ndarray of float, shape (S,)
        A solution of ``c + P h - h = g``, 0 in one state of each recurrent class.
    classes : ndarray of int32, shape (S,)
        The recurrent class of each state, -1 in transient ones.
    """

    gains: NDArray[np.float64]
    bias: NDArray[np.float64]
    classes: NDArray[np.int32]


def average_cost_of_policy(
    model_or_env: Any,
    policy: SolveResult | ArrayLike,
    *,
    allow_unavailable: bool = False,
) -> PolicyGains:
    """Return gain and bias of a policy, exact within rounding.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    policy : SolveResult, or array_like of int, shape (S,), or of float, shape (S, A)
        Actions, or the probability of each action.
    allow_unavailable : bool
        Whether it may choose unavailable actions, which stay in place and pay.

    Raises
    ------
    ValueError
        If the policy does not fit the model.
    FloatingPointError
        If float64 cannot hold what the equations come to.
    """
    model = as_model(model_or_env)
    found = gains_of_chain(policy_model(model, policy, allow_unavailable=allow_unavailable))
    listed = model.num_listed_states
    return PolicyGains(found.gains[:listed], found.bias[:listed], found.classes[:listed])


def gains_of_chain(
    chain: TabularMDP, num_threads: int = 1, checkpoint: Callable[[], None] = lambda: None
) -> PolicyGains:
    """Return gain and bias of a model with one action.

    Parameters
    ----------
    chain : TabularMDP
    num_threads : int
    checkpoint : callable

    Raises
    ------
    FloatingPointError
        If float64 cannot hold what the equations come to.
    """
    chain = with_whole_rows(chain)
    engine = local_engine(chain, 1.0, num_threads, checkpoint)
    actions = np.zeros(chain.num_states, dtype=np.int32)
    costs = chain.costs[:, 0].copy()
    matrix = rows_without_ends(engine, actions)
    count, classes = recurrent_classes(matrix)
    gains, bias = np.zeros(chain.num_states), np.zeros(chain.num_states)
    inside = np.flatnonzero(classes >= 0)
    # The recurrent classes alone.
    part = TabularMDP(chain.transitions[inside][:, inside], chain.costs[inside], terminal=[])
    part_engine = local_engine(part, 1.0, num_threads, checkpoint)
    part_rows = rows_without_ends(part_engine, actions[inside])
    anchors = likely_states(part_rows, classes[inside], count, costs[inside])
    found = RenewalEquations(part_engine, classes[inside], count).evaluate(
        part_rows, actions[inside], costs[inside], anchors, part_engine.rounding
    )
    gains[inside] = found.gains[classes[inside]]
    bias[inside] = found.bias
    if len(inside) < chain.num_states:
        equations = EndingEquations(engine, classes >= 0)
        equations.follow(actions)
        if len(np.unique(found.gains)) == 1:
            gains[:] = found.gains[0]
        else:
            gains = equations.refined(matrix, np.zeros(chain.num_states), gains)
        bias = equations.refined(matrix, costs - gains, bias)
    if not (np.isfinite(gains).all() and np.isfinite(bias).all()):
        raise FloatingPointError(
            "the policy could not be evaluated: what its equations come to is beyond float64"
        )
    return PolicyGains(gains, bias, classes)


def with_whole_rows(model: _Model) -> _Model:
    """Return a model whose rows sum to 1 but for rounding: what they miss is shared out.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    """
    if not isinstance(model, TabularMDP) or model.row_sums.error <= 64 * np.finfo(float).eps:
        return model
    matrix = model.transitions
    sums = np.asarray(matrix.sum(axis=1)).reshape(-1)
    sums[sums == 0] = 1.0
    data = matrix.data / np.repeat(sums, np.diff(matrix.indptr))
    transitions = sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return replace(model, transitions=transitions, terminal=model.terminal)
