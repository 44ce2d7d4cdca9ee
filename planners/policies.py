"""From values to policies and back to models: greedy actions, action values, a policy's chain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import readonly
from aggmaze.checks import as_float, check_discount, is_real
from aggmaze.memory import check_memory
from aggmaze.models.model import Model, with_table
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from planners.adapters import as_model, as_rows
from planners.bellman import local_engine
from planners.block_values import block_q_values
from planners.engine import Engine, Reading
from planners.event_engine import make_engine
from planners.kernels import sparse
from planners.kernels.compiling import interruptible
from planners.kernels.tables import moves_of, outcomes_of, unsigned
from planners.linear.shortest_paths import GridPaths, grid_paths
from planners.objective import (
    AverageCost,
    Discounted,
    FiniteHorizon,
    Objective,
    TotalCost,
    as_objective,
)
from planners.result import SolveResult
from planners.stages import Stages

# States whose variances are found together.
_BLOCK = 1024


@interruptible()
def q_values(
    model_or_env: Any,
    V: SolveResult | ArrayLike,
    gamma: float | None = None,
    *,
    objective: Objective | None = None,
    states: tuple[int, int] | None = None,
) -> NDArray[np.float64]:
    """Return what each action costs in all, if the costs-to-go after it are V.

    Parameters
    ----------
    model_or_env
        What `as_model` takes; with ``states`` a model by rows as well.
    V : SolveResult, or array_like, shape (S,), or (T + 1, S) for a `FiniteHorizon`
        Costs-to-go; infinite ones only for `TotalCost`.  A result brings its objective.
    gamma : float, optional
        Discount in [0, 1]; 1 stands for `TotalCost`.
    objective : Objective, optional
        In place of ``gamma``.
    states : pair of int, optional
        Of these alone, from the first up to the second, which is not among them: of discounted
        costs.  What the others cost is neither computed nor read, so that it may be a block of a
        model by rows (`aggmaze.model_by_rows`), with the result of `open_result`.

    Returns
    -------
    ndarray of float, shape (S, A), or (T, S, A) for a `FiniteHorizon`
        ``Q(s,a) = c(s,a) + gamma sum_s' P(s'|s,a) V(s')``; +inf where the action is masked, 0 in
        terminal states, where V counts as 0 too, and as the cost of ending in dead ends that have
        one.  Of an `AverageCost` the same of the bias, less the gain: its least entry in a state is
        the bias again.

    Raises
    ------
    ValueError
        If V does not fit; or for an `AverageCost` without a result, or one whose gain differs from
        state to state, so that no one number says what an action is worth.
    """
    asked = objective_of(V, gamma, objective)
    values = V.values if isinstance(V, SolveResult) else V
    if states is not None:
        if not isinstance(asked, Discounted):
            raise ValueError(f"states= is for discounted costs, and {asked} is asked for")
        return block_q_values(as_rows(model_or_env), np.asanyarray(values), asked.gamma, states)
    model = as_model(model_or_env)
    if isinstance(asked, FiniteHorizon):
        return _horizon_q_values(model, values, asked)
    if isinstance(asked, AverageCost):
        if not isinstance(V, SolveResult) or V.bias is None:
            raise ValueError(
                "the average cost of an action takes the gain and the bias: give the SolveResult "
                "of AverageCost() instead of an array"
            )
        if V.lower.max() > V.upper.min():
            low, high = int(np.argmin(V.upper)), int(np.argmax(V.lower))
            where = [model.naming.state(state) for state in (low, high)]
            raise ValueError(
                f"the gain differs from state to state ({V.gain[low]:.6g} in {where[0]}, "
                f"{V.gain[high]:.6g} in {where[1]}): no one number says what an action is worth"
            )
        bias = np.append(V.bias, np.zeros(model.num_states - len(V.bias)))
        Q = make_engine(model, 1.0).q_values(bias) - float(V.gain[0])
        Q[model.terminal] = bias[model.terminal, np.newaxis]
        return Q[: model.num_listed_states]
    engine = make_engine(model, asked.gamma)
    if not isinstance(asked, TotalCost):
        return engine.q_values(model_values(model, values))[: model.num_listed_states]
    return _total_q_values(model, engine, values, asked)[: model.num_listed_states]


def _horizon_q_values(model: Model, V: ArrayLike, objective: FiniteHorizon) -> NDArray[np.float64]:
    """Return what actions cost in all at each step, shape (T, S, A)."""
    steps, num_listed = objective.steps, model.num_listed_states
    given = np.asarray(V, dtype=np.float64)
    if given.shape != (steps + 1, num_listed):
        raise ValueError(
            f"V must have shape (T + 1, S) = {(steps + 1, num_listed)}, a row for each step and "
            f"one for the end, got {given.shape}"
        )
    check_memory(8 * steps * num_listed * model.num_actions, f"action values of {steps:,} steps")
    stages = Stages(model, objective)
    Q = np.empty((steps, num_listed, model.num_actions))
    for step in range(steps):
        following = model_values(model, given[step + 1], f"V[{step + 1}]")
        Q[step] = stages.engine(step).q_values(following)[:num_listed]
    return Q


def objective_of(
    given: SolveResult | ArrayLike, gamma: float | None, objective: Objective | None
) -> Objective:
    """Return what is asked, in words or by the result that is given.

    Parameters
    ----------
    given : SolveResult or array_like
    gamma : float, optional
    objective : Objective, optional
    """
    if gamma is None and objective is None and isinstance(given, SolveResult):
        return given.objective
    return as_objective(gamma, objective)


def _total_q_values(
    model: Model, engine: Engine, V: ArrayLike, objective: TotalCost
) -> NDArray[np.float64]:
    """Return what actions cost in all, shape (S, A), where V may be infinite."""
    given = np.array(V, dtype=np.float64)
    infinite = np.isposinf(given)
    full = model_values(model, np.where(infinite, 0.0, given))
    dead = np.zeros(model.num_states, dtype=bool)
    if objective.cost_of_dead_ends is not None:
        dead = steps_to_terminal(model) < 0
        full[dead] = objective.cost_of_dead_ends
    Q = engine.q_values(full)
    if infinite.any():
        # What may lead there costs without limit; 0 times infinity, as in a mean, is no number.
        flags = np.zeros(model.num_states)
        flags[: len(infinite)] = infinite
        table = with_table(model)
        costs = table.move_costs if isinstance(table, MoveMDP) else table.costs
        free = np.where(np.isfinite(costs), 0.0, costs)
        Q[local_engine(table, 1.0, costs=free).q_values(flags) > 0.0] = np.inf
    Q[dead] = objective.cost_of_dead_ends
    return Q


@interruptible()
def greedy(model_or_env: Any, V: ArrayLike, gamma: float, slack: float = 0.0) -> NDArray[np.int64]:
    """Return a greedy policy that arrives where it can.

    Among the actions whose value is within ``slack`` of the best, the one that makes most progress
    towards a terminal state is taken: whose expected breadth-first distance to one, over available
    actions, is least; then the one of lowest index.  Without terminal states: the lowest index.
    Against V itself the policy loses at most ``slack / (1 - gamma)``.  At gamma = 1 nothing says
    that it ends: `solve` returns policies of total costs that do.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    V : array_like, shape (S,)
        Costs-to-go.
    gamma : float
        Discount in [0, 1].
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
    policy = greedy_policy(make_engine(model, check_discount(gamma)), full, slack, tie=slack)
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
        return engine.greedy(V, lambda: np.zeros(engine.num_states, np.int32), slack, tie, reading)

    def distances() -> NDArray[np.int32]:
        if engine.steps_to_terminal is None:
            engine.steps_to_terminal = steps_to_terminal(engine.model)
        steps = engine.steps_to_terminal
        # A state that cannot arrive counts as farther than any that can.
        return steps if steps.min() >= 0 else np.where(steps < 0, np.int32(len(steps)), steps)

    return engine.greedy(V, distances, slack, tie, reading)


def steps_to_terminal(model: Model) -> NDArray[np.int32]:
    """Return the fewest steps in which each state can reach a terminal one, shape (S,).

    A step counts as possible with an available action and positive probability; -1 where no
    terminal state can be reached.
    """
    return steps_and_paths(model)[0]


def steps_and_paths(model: Model) -> tuple[NDArray[np.int32], GridPaths | None]:
    """Return what `steps_to_terminal` does, with the paths where moves are those of a grid."""
    if isinstance(model, MoveMDP):
        found = grid_paths(moves_of(model), readonly(model.terminal))
        if found is not None:
            return found.distances, found
    model = with_table(model)
    if isinstance(model, TabularMDP):
        steps = np.empty(model.num_states, dtype=np.int32)
        sparse.steps_to_terminal(unsigned(outcomes_of(model)), steps)
        return steps, None
    distances, _ = distances_to(model.successor_graph(), np.flatnonzero(model.terminal))
    return distances, None


def distances_to(
    graph: sp.csr_array, targets: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
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
    distances, nearest = (np.full(graph.shape[0], -1, dtype=np.int32) for _ in range(2))
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
    model = with_table(model)
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
    queue = np.empty(num_states, dtype=np.int32)
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
    model = with_table(model)
    weights = _policy_weights(model, policy, allow_unavailable)
    if isinstance(model, MoveMDP):
        rows = model.policy_rows(0, model.num_states, weights)
        transitions, costs = rows.transitions, rows.costs
    else:
        transitions, costs = _mixed_rows(_with_stays(model, weights), weights)
    return TabularMDP(transitions, costs, terminal=model.terminal, initial=model.initial)


def available_actions(model: Model, policy: SolveResult | ArrayLike) -> NDArray[np.int32] | None:
    """Return a policy of one available action a state, shape (S,), 0 in terminal states.

    None for one that draws its actions, chooses what is not available, or is none: `policy_model`
    says what is wrong with it.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    policy : SolveResult or array_like
    """
    array = np.asarray(policy.policy if isinstance(policy, SolveResult) else policy)
    fits = array.shape == (model.num_states,) and np.issubdtype(array.dtype, np.integer)
    if not fits or array.min() < 0 or array.max() >= model.num_actions:
        return None
    actions = np.where(model.terminal, 0, array).astype(np.int32)
    mask = model.action_mask
    return actions if mask.reshape(-1)[_rows_of(actions, model.num_actions)].all() else None


def _rows_of(actions: NDArray[np.int32], num_actions: int) -> NDArray[np.int64]:
    return num_actions * np.arange(len(actions)) + actions


class StepVariances:
    """Variances of ``c + gamma V(s')`` in one step of a policy, found as they are asked for.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    policy : SolveResult or array_like
        As for `policy_model`; it may choose masked actions.
    V : ndarray of float, shape (S,)
        What is left to pay before the step, by the policy: the means.
    gamma : float
    following : ndarray of float, shape (S,), optional
        What is left to pay after it; V by default.
    """

    def __init__(
        self,
        model: Model,
        policy: SolveResult | ArrayLike,
        V: NDArray[np.float64],
        gamma: float,
        following: NDArray[np.float64] | None = None,
    ) -> None:
        model = with_table(model)
        self._V, self._gamma = V, gamma
        self._following = V if following is None else following
        self._policy = _policy_array(model, policy)
        self._model = model
        if isinstance(model, TabularMDP):
            self._model = _with_stays(model, _weights_of(model, self._policy, 0, model.num_states))
        self._blocks: dict[int, NDArray[np.float64]] = {}

    def __getitem__(self, state: int) -> float:
        block, place = divmod(state, _BLOCK)
        if block not in self._blocks:
            lo = block * _BLOCK
            self._blocks[block] = self.between(lo, min(lo + _BLOCK, self._model.num_states))
        return float(self._blocks[block][place])

    def between(self, lo: int, hi: int) -> NDArray[np.float64]:
        """Return those of the states ``lo`` to ``hi - 1``.

        Parameters
        ----------
        lo, hi : int
        """
        model, V = self._model, self._V
        later = self._following
        weights = _weights_of(model, self._policy, lo, hi)
        if isinstance(model, MoveMDP):
            rows = model.policy_rows(lo, hi, weights)
            weights = np.ones((hi - lo, 1))
        else:
            rows = model.rows(lo, hi)
        matrix, num_rows = rows.transitions, rows.transitions.shape[0]
        row_of_entry = np.repeat(np.arange(num_rows), np.diff(matrix.indptr))
        taken = weights.reshape(-1)[row_of_entry] > 0.0
        row_of_entry = row_of_entry[taken]
        state_of_entry = row_of_entry * (hi - lo) // num_rows
        following = rows.outcome_costs[taken] + self._gamma * later[matrix.indices[taken]]
        surprise = following - V[lo + state_of_entry]
        shares = matrix.data[taken] * weights.reshape(-1)[row_of_entry]
        variances = np.zeros(hi - lo)
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
    weights = _weights_of(model, _policy_array(model, policy), 0, model.num_states)
    # In a terminal state every action is the same step in place.
    refused = np.argwhere((weights > 0) & ~model.action_mask & ~model.terminal[:, np.newaxis])
    if len(refused) and not allow_unavailable:
        state, action = refused[0].tolist()
        raise ValueError(
            f"policy chooses {model.naming.action(action)} in {model.naming.state(state)}, which "
            "is unavailable"
        )
    return weights


def _policy_array(model: Model, policy: SolveResult | ArrayLike) -> NDArray[Any]:
    """Return actions, shape (S,), or probabilities, shape (S, A), perhaps of listed states only."""
    if isinstance(policy, SolveResult) and isinstance(policy.objective, FiniteHorizon):
        raise ValueError(
            f"the policy of {policy.objective} changes with the step: ask for one of its steps, "
            "policy[t], or give the objective where that is possible"
        )
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
    if array.ndim == 1:
        if not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"policy must hold integer actions, got dtype {array.dtype}")
        bad = np.flatnonzero((array < 0) | (array >= num_actions))
        if len(bad):
            raise ValueError(
                f"policy[{bad[0]}] = {array[bad[0]]} is not an action in [0, {num_actions})"
            )
    else:
        bad = np.flatnonzero(
            ~(np.isfinite(array) & (array >= 0)).all(axis=1)
            | (np.abs(array.sum(axis=1) - 1) > 1e-9)
        )
        if len(bad):
            raise ValueError(
                f"policy[{bad[0]}] = {array[bad[0]]} must be probabilities that sum to 1"
            )
    return array


def _weights_of(model: Model, array: NDArray[Any], lo: int, hi: int) -> NDArray[np.float64]:
    """Return the probability of each action in the states ``lo`` to ``hi - 1``."""
    weights = np.zeros((hi - lo, model.num_actions))
    given = array[lo:hi]
    weights[len(given) :, 0] = 1.0
    if array.ndim == 1:
        weights[np.arange(len(given)), given] = 1.0
    else:
        weights[: len(given)] = given
    return weights


def model_values(model: Model, V: ArrayLike, name: str = "V") -> NDArray[np.float64]:
    """Return finite values of all states, as a new array with 0 in terminal states.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    V : array_like, shape (S,)
        For a model with added states it may leave those out.
    name : str
        What errors call it.

    Raises
    ------
    ValueError
        If V has another shape, or a value is not finite.
    """
    try:
        array = np.array(V, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} must be finite, and holds a number beyond float64") from None
    listed = model.num_listed_states
    if array.shape not in ((listed,), (model.num_states,)):
        raise ValueError(f"{name} must have shape ({listed},), got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"{name}[{bad[0]}] = {array[bad[0]]} must be finite")
    full = np.zeros(model.num_states)
    full[: len(array)] = array
    full[model.terminal] = 0.0
    return full
