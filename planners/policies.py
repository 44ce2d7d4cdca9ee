"""From values to policies and back to models: greedy actions, action values, a policy's chain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import as_float, check_gamma, is_real
from aggmaze.models.model import Model
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from planners.adapters import as_model
from planners.bellman import local_engine
from planners.engine import Engine, Reading
from planners.kernels import sparse
from planners.kernels.compiling import interruptible
from planners.kernels.tables import outcomes_of, unsigned
from planners.result import SolveResult


@interruptible()
def q_values(model_or_env: Any, V: ArrayLike, gamma: float) -> NDArray[np.float64]:
    """Return what each action costs in all, if the costs-to-go after it are V.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    V : array_like, shape (S,)
        Costs-to-go.
    gamma : float
        Discount in [0, 1).

    Returns
    -------
    ndarray of float, shape (S, A)
        ``Q(s,a) = c(s,a) + gamma sum_s' P(s'|s,a) V(s')``; +inf where the action is masked, 0 in
        terminal states.  V counts as 0 there too.
    """
    model = as_model(model_or_env)
    full = model_values(model, V)
    Q = local_engine(model, check_gamma(gamma)).q_values(full)
    return Q[: model.num_listed_states]


@interruptible()
def greedy(model_or_env: Any, V: ArrayLike, gamma: float, slack: float = 0.0) -> NDArray[np.int64]:
    """Return a greedy policy that arrives where it can.

    Among the actions whose value is within ``slack`` of the best, the one that makes most progress
    towards a terminal state is taken: whose expected breadth-first distance to one, over available
    actions, is least; then the one of lowest index.  Without terminal states: the lowest index.
    Against V itself the policy loses at most ``slack / (1 - gamma)``.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    V : array_like, shape (S,)
        Costs-to-go.
    gamma : float
        Discount in [0, 1).
    slack : float
        Not negative, in the unit of V; 0 breaks exact ties only.

    Returns
    -------
    ndarray of int, shape (S,)
        0 in terminal states.
    """
    model = as_model(model_or_env)
    if not is_real(slack):
        raise TypeError(f"slack must be a number, got {slack!r}")
    slack = as_float(slack)
    if not slack >= 0:
        raise ValueError(f"slack must not be negative, got {slack!r}")
    full = model_values(model, V)
    policy = greedy_policy(local_engine(model, check_gamma(gamma)), full, slack, tie=slack)
    return policy[: model.num_listed_states]


def greedy_policy(
    engine: Engine,
    V: NDArray[np.float64],
    slack: float,
    tie: float,
    reading: Reading | None = None,
) -> NDArray[np.int64]:
    """Return the greedy policy of all states of a model, as `greedy` describes it.

    Parameters
    ----------
    engine : Engine
    V : ndarray of float, shape (S,)
        0 in terminal states.
    slack : float
        As for `greedy`.
    tie : float
        Among actions of equal progress the first whose value is within ``tie`` of their best is
        taken; with ``tie = slack`` that is the one of lowest index.
    reading : Reading, optional
        What `Engine.read` returned for V.
    """
    if engine.count(engine.terminal) == 0:
        # No action makes progress, and none is worth more than a tie.
        slack = min(slack, tie)
        return engine.greedy(V, lambda: np.zeros(engine.num_states), slack, tie, reading)

    def distances() -> NDArray[np.float64]:
        steps = steps_to_terminal(engine.model)
        # A state that cannot arrive counts as farther than any that can.
        return np.where(steps < 0, engine.num_states, steps).astype(np.float64)

    return engine.greedy(V, distances, slack, tie, reading)


def steps_to_terminal(model: Model) -> NDArray[np.int64]:
    """Return the fewest steps in which each state can reach a terminal one, shape (S,).

    A step counts as possible with an available action and positive probability; -1 where no
    terminal state can be reached.
    """
    if isinstance(model, TabularMDP):
        distances = np.empty(model.num_states, dtype=np.int64)
        sparse.steps_to_terminal(unsigned(outcomes_of(model)), distances)
        return distances
    distances, _ = distances_to(model.successor_graph(), np.flatnonzero(model.terminal))
    return distances


def distances_to(
    graph: sp.csr_array, targets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the fewest steps from each state to a target, and which target that is.

    Parameters
    ----------
    graph : sparse array, shape (S, S)
        An entry for each possible step from row to column.
    targets : ndarray of int

    Returns
    -------
    distances, nearest : ndarray of int, shape (S,)
        -1 where no target can be reached; ``nearest`` is an index into ``targets``.
    """
    backwards = graph.T.tocsr()
    distances, nearest = (np.full(graph.shape[0], -1, dtype=np.int64) for _ in range(2))
    _breadth_first(
        backwards.indptr.astype(np.int64),
        backwards.indices.astype(np.int32),
        targets,
        distances,
        nearest,
    )
    return distances, nearest


def greedy_path(model: Model, policy: NDArray[np.int64], start: int) -> NDArray[np.int64]:
    """Return the states that a policy visits if all goes to plan.

    Each step takes the move that was chosen, or the likeliest outcome where the model knows no
    moves; the path ends in a terminal state, or where it comes back to itself.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    policy : ndarray of int, shape (S,)
    start : int
        The first of the states.
    """
    path, visited = [start], {start}
    while not model.terminal[path[-1]]:
        state = path[-1]
        if isinstance(model, MoveMDP):
            following = int(model.successors[state, policy[state]])
        else:
            row = state * model.num_actions + int(policy[state])
            entries = slice(*model.transitions.indptr[row : row + 2])
            # A row may list one state several times.
            states, place = np.unique(model.transitions.indices[entries], return_inverse=True)
            shares = np.bincount(place, weights=model.transitions.data[entries])
            following = int(states[place[np.argmax(shares[place])]])
        path.append(following)
        if following in visited:
            break
        visited.add(following)
    return np.array(path)


@njit(cache=True)
def _breadth_first(indptr, indices, sources, distances, nearest):
    """Write what `distances_to` returns, where there is -1 before.

    Ctrl-C while numba makes arrays of what a kernel returns is no KeyboardInterrupt.
    """
    num_states = len(indptr) - 1
    queue = np.empty(num_states, dtype=np.int64)
    count = 0
    for i in range(len(sources)):
        if distances[sources[i]] < 0:
            distances[sources[i]] = 0
            nearest[sources[i]] = i
            queue[count] = sources[i]
            count += 1
    done = 0
    while done < count:
        s = queue[done]
        done += 1
        for entry in range(indptr[s], indptr[s + 1]):
            following = indices[entry]
            if distances[following] < 0:
                distances[following] = distances[s] + 1
                nearest[following] = nearest[s]
                queue[count] = following
                count += 1


def policy_model(
    model: Model, policy: SolveResult | ArrayLike, *, allow_unavailable: bool = False
) -> TabularMDP:
    """Return the model with one action only, the policy's.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    policy : SolveResult, or array_like of int, shape (S,), or of float, shape (S, A)
        Actions, or the probability of each action.  For a model with added states the policy may
        leave those out.  What it has for terminal states does not count.
    allow_unavailable : bool
        Whether it may choose masked actions, which stay in place and pay: what the model has for a
        step in place, or else what `TabularMDP` takes where a row is empty.

    Raises
    ------
    ValueError
        If an action is out of range, or masked and that is not allowed, or a row does not hold
        probabilities.
    """
    weights = _policy_weights(model, policy, allow_unavailable)
    if isinstance(model, MoveMDP):
        rows = model.policy_rows(0, model.num_states, weights)
        transitions, costs = rows.transitions, rows.costs
    else:
        transitions, costs = _mixed_rows(_with_stays(model, weights), weights)
    return TabularMDP(transitions, costs, terminal=model.terminal, initial=model.initial)


def step_variances(
    model: Model, policy: ArrayLike, V: NDArray[np.float64], gamma: float
) -> NDArray[np.float64]:
    """Return the variance of ``c + gamma V(s')`` in one step of a policy, shape (S,).

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    policy
        As for `policy_model`; it may choose masked actions.
    V : ndarray of float, shape (S,)
        The policy's own costs-to-go, which are the means.
    gamma : float
    """
    weights = _policy_weights(model, policy, allow_unavailable=True)
    num_states = model.num_states
    if isinstance(model, MoveMDP):
        rows = model.policy_rows(0, num_states, weights)
        weights = np.ones((num_states, 1))
    else:
        rows = _with_stays(model, weights).rows(0, num_states)
    matrix, num_rows = rows.transitions, rows.transitions.shape[0]
    row_of_entry = np.repeat(np.arange(num_rows), np.diff(matrix.indptr))
    taken = weights.reshape(-1)[row_of_entry] > 0.0
    row_of_entry = row_of_entry[taken]
    state_of_entry = row_of_entry * num_states // num_rows
    surprise = rows.outcome_costs[taken] + gamma * V[matrix.indices[taken]] - V[state_of_entry]
    shares = matrix.data[taken] * weights.reshape(-1)[row_of_entry]
    variances = np.zeros(num_states)
    np.add.at(variances, state_of_entry, shares * surprise**2)
    return variances


def _with_stays(model: TabularMDP, weights: NDArray[np.float64]) -> TabularMDP:
    """Return a model in which the masked actions that are taken stay in place at a finite cost."""
    masked = ((weights > 0) & ~model.action_mask & ~model.terminal[:, np.newaxis]).reshape(-1)
    if not masked.any():
        return model
    matrix, costs = model.transitions, model.costs.reshape(-1)
    row_of_entry = np.repeat(np.arange(len(costs)), np.diff(matrix.indptr))
    leaves = ~np.isfinite(costs)
    elsewhere = (matrix.indices != row_of_entry // model.num_actions) & (matrix.data > 0)
    leaves[row_of_entry[elsewhere]] = True
    if model.outcome_costs is not None:
        leaves[row_of_entry[~np.isfinite(model.outcome_costs)]] = True
    emptied = masked & leaves
    if not emptied.any():
        return model
    kept = ~emptied[row_of_entry]
    counts = np.where(emptied, 0, np.diff(matrix.indptr))
    transitions = sp.csr_array(
        (matrix.data[kept], matrix.indices[kept], np.concatenate([[0], np.cumsum(counts)])),
        shape=matrix.shape,
    )
    kept_costs = None if model.outcome_costs is None else model.outcome_costs[kept]
    return replace(model, transitions=transitions, outcome_costs=kept_costs)


def _mixed_rows(
    model: TabularMDP, weights: NDArray[np.float64]
) -> tuple[sp.csr_array, NDArray[np.float64]]:
    """Return transitions (S, S) and costs (S, 1) of actions drawn with weights (S, A)."""
    states, actions = np.nonzero(weights)
    chosen = states * model.num_actions + actions
    if (weights[states, actions] == 1.0).all():
        return model.transitions[chosen], model.costs.reshape(-1)[chosen, np.newaxis]
    mixer = sp.csr_array(
        (weights[states, actions], (states, chosen)),
        shape=(model.num_states, model.transitions.shape[0]),
    )
    costs = np.asarray(mixer @ model.costs.reshape(-1))
    return mixer @ model.transitions, costs[:, np.newaxis]


def _policy_weights(
    model: Model, policy: SolveResult | ArrayLike, allow_unavailable: bool
) -> NDArray[np.float64]:
    """Return the probability of each action, shape (S, A)."""
    array = np.asarray(policy.policy if isinstance(policy, SolveResult) else policy)
    num_states, num_actions = model.num_states, model.num_actions
    listed = model.num_listed_states
    if array.shape[:1] not in ((num_states,), (listed,)) or array.shape[1:] not in (
        (),
        (num_actions,),
    ):
        raise ValueError(
            f"policy must have shape ({listed},) or ({listed}, {num_actions}), got {array.shape}"
        )
    weights = np.zeros((num_states, num_actions))
    weights[len(array) :, 0] = 1.0
    if array.ndim == 1:
        if not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"policy must hold integer actions, got dtype {array.dtype}")
        bad = np.flatnonzero((array < 0) | (array >= num_actions))
        if len(bad):
            raise ValueError(
                f"policy[{bad[0]}] = {array[bad[0]]} is not an action in [0, {num_actions})"
            )
        weights[np.arange(len(array)), array] = 1.0
    else:
        bad = np.flatnonzero(
            ~(np.isfinite(array) & (array >= 0)).all(axis=1)
            | (np.abs(array.sum(axis=1) - 1) > 1e-9)
        )
        if len(bad):
            raise ValueError(
                f"policy[{bad[0]}] = {array[bad[0]]} must be probabilities that sum to 1"
            )
        weights[: len(array)] = array
    # In a terminal state every action is the same step in place.
    refused = np.argwhere((weights > 0) & ~model.action_mask & ~model.terminal[:, np.newaxis])
    if len(refused) and not allow_unavailable:
        state, action = refused[0]
        raise ValueError(f"policy chooses action {action} in state {state}, which is unavailable")
    return weights


def model_values(model: Model, V: ArrayLike) -> NDArray[np.float64]:
    """Return finite values of all states, as a new array with 0 in terminal states.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    V : array_like, shape (S,)
        For a model with added states it may leave those out.

    Raises
    ------
    ValueError
        If V has another shape, or a value is not finite.
    """
    try:
        array = np.array(V, dtype=np.float64)
    except OverflowError:
        raise ValueError("V must be finite, and holds a number beyond float64") from None
    listed = model.num_listed_states
    if array.shape not in ((listed,), (model.num_states,)):
        raise ValueError(f"V must have shape ({listed},), got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"V[{bad[0]}] = {array[bad[0]]} must be finite")
    full = np.zeros(model.num_states)
    full[: len(array)] = array
    full[model.terminal] = 0.0
    return full
