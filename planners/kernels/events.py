"""Backups of models of random events, compiled for the functions of each model.

What is compiled calls the user's functions, so that it is not kept on disk: `kernels_of` makes it
once for the functions, whatever the probabilities of the models that have them.

Sums run over the events of a row in their order and, at the first stage, over all actions at once:
where the index of what an action leads to grows with the action, the compiler makes vectors of it.
Indices are unsigned, since numba asks of others whether they count from the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from aggmaze.models.event_kernels import MOST_KEPT, or_constant, row_of_action
from aggmaze.models.event_parts import Functions, StageFunctions
from planners.kernels.pieces import NOTHING_SEEN, clear, lesser, pick, seen_by_vectors, value_of


class EventKernels(NamedTuple):
    """What is compiled; ``U`` holds a value for each point of the first stage.

    ``factor`` is gamma where there are no stages, whose values U then holds, and else 1.

    Parameters
    ----------
    sweep : callable
        ``sweep(chances, terminal, factor, U, V, out, actions, lo, hi)`` as the other layouts'.
    policy_sweep : callable
        ``policy_sweep(chances, terminal, factor, U, policy, V, out, lo, hi)``.
    q_values : callable
        ``q_values(chances, terminal, factor, U, Q, lo, hi)``.
    clear_actions : callable
        ``clear_actions(chances, terminal, factor, U, slack, policy, lo, hi)``.
    greedy : callable
        ``greedy(chances, terminal, factor, U, D, margins, policy, lo, hi)``, D like U for
        distances.
    aggregated : callable
        ``aggregated(all_chances, terminal, gamma, states, W, labels, out, lo, hi)``, with the
        chances of all stages.
    nearest : callable
        ``nearest(chances, terminal, D, distances, reverse, lo, hi)`` puts one more step than the
        least distance that D holds in the place of larger ones, in the order of the states or its
        reverse, and returns how many it changed; D may be the distances.
    fill, fill_least : tuple of callable
        ``fill[k](chances, factor, U, with_costs, out, lo, hi)`` sums up the values of stage k from
        those of the next for its groups of lanes from ``lo`` to ``hi - 1``, with the costs of its
        events or not; ``fill_least[k](chances, U, out, lo, hi)`` takes the least value instead.
    """

    sweep: Callable[..., Any]
    policy_sweep: Callable[..., Any]
    q_values: Callable[..., Any]
    clear_actions: Callable[..., Any]
    greedy: Callable[..., Any]
    aggregated: Callable[..., Any]
    nearest: Callable[..., Any]
    fill: tuple[Callable[..., Any], ...]
    fill_least: tuple[Callable[..., Any], ...]


@functools.lru_cache(maxsize=MOST_KEPT)
def kernels_of(functions: Functions) -> EventKernels:
    """Return the kernels of models with such functions, each compiled at its first call."""
    actions_of, expected, least_of = _first_stage(functions)
    fully = _through_all_stages(functions)
    num_actions = functions.num_actions
    is_open = or_constant(functions.available, 2, True)

    @njit(nogil=True)
    def sweep(chances, terminal, factor, U, V, out, actions, lo, hi):
        extremes = NOTHING_SEEN
        Q = np.empty(num_actions)
        for s in range(lo, hi):
            value = 0.0
            action = 0
            if not terminal[s]:
                actions_of(chances, factor, U, s, Q)
                value = np.inf
                for a in range(num_actions):
                    value = lesser(Q[a], value)
                if actions is not None:
                    while action < num_actions - 1 and Q[action] != value:
                        action += 1
            extremes = seen_by_vectors(extremes, V[s], value)
            out[s] = value
            if actions is not None:
                actions[s] = action
        return extremes

    @njit(nogil=True)
    def policy_sweep(chances, terminal, factor, U, policy, V, out, lo, hi):
        extremes = NOTHING_SEEN
        for s in range(lo, hi):
            value = 0.0
            if not terminal[s]:
                value = expected(chances, factor, U, s, policy[s], True)
            extremes = seen_by_vectors(extremes, V[s], value)
            out[s] = value
        return extremes

    @njit(nogil=True)
    def q_values(chances, terminal, factor, U, Q, lo, hi):
        for s in range(lo, hi):
            if terminal[s]:
                Q[s] = 0.0
            else:
                actions_of(chances, factor, U, s, Q[s])

    @njit(nogil=True)
    def clear_actions(chances, terminal, factor, U, slack, policy, lo, hi):
        Q = np.empty(num_actions)
        unclear = 0
        for s in range(lo, hi):
            policy[s] = 0
            if not terminal[s]:
                actions_of(chances, factor, U, s, Q)
                policy[s] = clear(Q, slack)
                unclear += 1 if policy[s] < 0 else 0
        return unclear

    @njit(nogil=True)
    def greedy(chances, terminal, factor, U, D, margins, policy, lo, hi):
        Q = np.empty(num_actions)
        steps = np.zeros(num_actions)
        for s in range(lo, hi):
            if policy[s] >= 0:
                continue
            actions_of(chances, factor, U, s, Q)
            if len(D) > 0:
                for a in range(num_actions):
                    if Q[a] < np.inf:
                        steps[a] = expected(chances, 1.0, D, s, a, False)
            policy[s] = pick(Q, steps, margins)

    @njit(nogil=True)
    def aggregated(all_chances, terminal, gamma, states, W, labels, out, lo, hi):
        for j in range(lo, hi):
            s = states[j]
            best = 0.0
            if not terminal[s]:
                best = np.inf
                for a in range(num_actions):
                    if is_open(s, a):
                        best = lesser(fully(all_chances, gamma, W, labels, s, a), best)
            out[j] = best

    @njit(nogil=True)
    def nearest(chances, terminal, D, distances, reverse, lo, hi):
        changed = 0
        for i in range(lo, hi):
            s = len(terminal) - 1 - i if reverse else i
            least = distances[s]
            if not terminal[s]:
                for a in range(num_actions):
                    if is_open(s, a):
                        least = min(least, 1.0 + least_of(chances, D, s, a))
            changed += 1 if least < distances[s] else 0
            distances[s] = least
        return changed

    return EventKernels(
        sweep,
        policy_sweep,
        q_values,
        clear_actions,
        greedy,
        aggregated,
        nearest,
        tuple(_filler(stage) for stage in functions.all_stages),
        tuple(_least_filler(stage) for stage in functions.all_stages),
    )


def _first_stage(functions: Functions) -> tuple[Callable[..., Any], ...]:
    """Return the sums over what may happen right after an action.

    ``actions_of(chances, factor, U, s, Q)`` writes the value of each action, +inf where masked;
    ``expected(chances, factor, U, s, a, with_costs)`` returns that of one, the costs in it or not;
    ``least_of(chances, U, s, a)`` returns the least value that can follow.
    """
    num_actions = functions.num_actions
    cost, post, next_state = functions.cost, functions.post, functions.next_state
    masked = functions.available is not None
    is_open = or_constant(functions.available, 2, True)

    if post is not None:

        @njit(nogil=True)
        def post_actions_of(chances, factor, U, s, Q):
            for a in range(num_actions):
                if not masked or is_open(s, a):
                    Q[a] = cost(s, a) + U[np.uintp(post(s, a))]
                else:
                    Q[a] = np.inf

        @njit(nogil=True)
        def post_expected(chances, factor, U, s, a, with_costs):
            value = U[np.uintp(post(s, a))]
            return cost(s, a) + value if with_costs else value

        @njit(nogil=True)
        def post_least_of(chances, U, s, a):
            return U[np.uintp(post(s, a))]

        return post_actions_of, post_expected, post_least_of

    row_of = row_of_action(functions)
    some_cost = functions.event_cost is not None
    event_cost = or_constant(functions.event_cost, 3, 0.0)

    @njit(nogil=True)
    def expected(chances, factor, U, s, a, with_costs):
        indptr, events, probabilities = chances
        r = np.uintp(row_of(s, a))
        total = 0.0
        for i in range(indptr[r], indptr[r + 1]):
            e = events[i]
            total += factor * probabilities[i] * U[np.uintp(next_state(s, a, e))]
            if some_cost and with_costs:
                total += probabilities[i] * event_cost(s, a, e)
        return cost(s, a) + total if with_costs else total

    @njit(nogil=True)
    def least_of(chances, U, s, a):
        indptr, events, _ = chances
        r = np.uintp(row_of(s, a))
        least = np.inf
        for i in range(indptr[r], indptr[r + 1]):
            least = min(least, U[np.uintp(next_state(s, a, events[i]))])
        return least

    if functions.rows_by_action:

        @njit(nogil=True)
        def each_action(chances, factor, U, s, Q):
            for a in range(num_actions):
                Q[a] = np.inf
                if is_open(s, a):
                    Q[a] = expected(chances, factor, U, s, a, True)

        return each_action, expected, least_of

    @njit(nogil=True)
    def actions_of(chances, factor, U, s, Q):
        indptr, events, probabilities = chances
        for a in range(num_actions):
            Q[a] = 0.0 if not masked or is_open(s, a) else np.inf
        r = np.uintp(row_of(s, 0))
        for i in range(indptr[r], indptr[r + 1]):
            e, probability = events[i], probabilities[i]
            weight = factor * probability
            for a in range(num_actions):
                if not masked or Q[a] < np.inf:
                    Q[a] += weight * U[np.uintp(next_state(s, a, e))]
                    if some_cost:
                        Q[a] += probability * event_cost(s, a, e)
        for a in range(num_actions):
            if not masked or Q[a] < np.inf:
                Q[a] += cost(s, a)

    return actions_of, expected, least_of


def _filler(stage: StageFunctions) -> Callable[..., Any]:
    """Return the sums over the events of a stage."""
    following, lanes = stage.following, stage.lanes
    row_of = or_constant(stage.row, 1, 0)
    some_cost = stage.cost is not None
    cost = or_constant(stage.cost, 2, 0.0)

    @njit(nogil=True)
    def fill(chances, factor, U, with_costs, out, lo, hi):
        indptr, events, probabilities = chances
        for group in range(lo, hi):
            point = group * lanes
            r = np.uintp(row_of(point))
            sums = out[point : point + lanes]
            sums[:] = 0.0
            for i in range(indptr[r], indptr[r + 1]):
                e, probability = events[i], probabilities[i]
                weight = factor * probability
                start = np.uintp(following(point, e))
                values = U[start : start + np.uintp(lanes)]
                for lane in range(lanes):
                    sums[lane] += weight * values[lane]
                if some_cost and with_costs:
                    for lane in range(lanes):
                        sums[lane] += probability * cost(point + lane, e)

    return fill


def _least_filler(stage: StageFunctions) -> Callable[..., Any]:
    """Return the least values that can follow the points of a stage."""
    following, lanes = stage.following, stage.lanes
    row_of = or_constant(stage.row, 1, 0)

    @njit(nogil=True)
    def fill_least(chances, U, out, lo, hi):
        indptr, events, _ = chances
        for group in range(lo, hi):
            point = group * lanes
            r = np.uintp(row_of(point))
            least = out[point : point + lanes]
            least[:] = np.inf
            for i in range(indptr[r], indptr[r + 1]):
                start = np.uintp(following(point, events[i]))
                for lane in range(lanes):
                    least[lane] = min(least[lane], U[start + np.uintp(lane)])

    return fill_least


def _through_all_stages(functions: Functions) -> Callable[..., Any]:
    """Return the value of an action summed through all stages, for a few states at a time.

    ``fully(all_chances, gamma, W, labels, s, a)``, under aggregation by the labels.
    """
    behind = _through_stages(functions.all_stages, 1)
    cost, post, next_state = functions.cost, functions.post, functions.next_state
    if post is not None:

        @njit(nogil=True)
        def post_fully(all_chances, gamma, W, labels, s, a):
            return cost(s, a) + behind(all_chances, gamma, W, labels, post(s, a))

        return post_fully

    row_of = row_of_action(functions)
    is_last = not functions.all_stages
    some_cost = functions.event_cost is not None
    event_cost = or_constant(functions.event_cost, 3, 0.0)

    @njit(nogil=True)
    def fully(all_chances, gamma, W, labels, s, a):
        indptr, events, probabilities = all_chances[0]
        factor = gamma if is_last else 1.0
        r = np.uintp(row_of(s, a))
        total = 0.0
        for i in range(indptr[r], indptr[r + 1]):
            e = events[i]
            value = behind(all_chances, gamma, W, labels, next_state(s, a, e))
            total += factor * probabilities[i] * value
            if some_cost:
                total += probabilities[i] * event_cost(s, a, e)
        return cost(s, a) + total

    return fully


def _through_stages(stages: tuple[StageFunctions, ...], place: int) -> Callable[..., Any]:
    """Return the value of a point of the first of some stages, whose chances are at ``place``."""
    if not stages:

        @njit(nogil=True)
        def value(all_chances, gamma, W, labels, s):
            return value_of(W, labels, np.uintp(s))

        return value

    behind = _through_stages(stages[1:], place + 1)
    following, is_last = stages[0].following, len(stages) == 1
    row_of = or_constant(stages[0].row, 1, 0)
    some_cost = stages[0].cost is not None
    cost = or_constant(stages[0].cost, 2, 0.0)

    @njit(nogil=True)
    def summed(all_chances, gamma, W, labels, point):
        indptr, events, probabilities = all_chances[place]
        factor = gamma if is_last else 1.0
        r = np.uintp(row_of(point))
        total = 0.0
        for i in range(indptr[r], indptr[r + 1]):
            e = events[i]
            value = behind(all_chances, gamma, W, labels, following(point, e))
            total += factor * probabilities[i] * value
            if some_cost:
                total += probabilities[i] * cost(point, e)
        return total

    return summed
