"""Where a policy goes: from which states it reaches a terminal one, how soon, or where it settles.

A finite chain ends in one of its closed classes: sets of states that lead to each other and out of
which nothing leads.  A state arrives for certain if the only such classes it can reach are
terminal states.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from aggmaze.arrays import readonly
from aggmaze.checks import check_time_limit
from aggmaze.models.model import Model
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from aggmaze.names import UNNAMED, Naming
from aggmaze.progress import stage
from planners.adapters import as_model
from planners.budget import Clock
from planners.kernels.compiling import interruptible
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.tables import moves_of
from planners.kernels.vectors import sup_norm
from planners.linear.chain import ChainEquations, Solution
from planners.linear.move_equations import MoveEquations, Residual
from planners.linear.paths import PathEnds, ends_of_paths
from planners.policies import available_actions, distances_to, policy_model, steps_to_terminal
from planners.result import SolveResult

# Expected steps are called exact within this relative error.
_STEP_TOLERANCE = 1e-6
# Chains that slip out of a valley once in a blue moon are out of float64's reach: the rounding of
# larger numbers would exceed that error.
_MOST_EXPECTED_STEPS = _STEP_TOLERANCE / (8 * UNIT_ROUNDOFF)
# Then this many steps of an iteration that rises to them from 0 make a number that they exceed.
_RISING_STEPS = 50


@dataclass(frozen=True, eq=False)
class Attractor:
    """Where a policy settles without arriving.

    Parameters
    ----------
    states : ndarray of int
        The states it never leaves again.
    share_of_states : float
        Fraction, in [0, 1], of the non-terminal states for which this is the nearest such place.
    naming : Naming
        What the model calls states.
    """

    states: NDArray[np.int64]
    share_of_states: float
    naming: Naming = UNNAMED

    def __repr__(self) -> str:
        states = self.naming.state(int(self.states[0]))
        if len(self.states) > 1:
            first = self.naming.list_states(self.states[:1])
            states = f"{len(self.states):,} states from {first} on"
        return f"Attractor({states}, nearest of {_percent(self.share_of_states)} of the states)"


@dataclass(frozen=True, eq=False)
class Arrival:
    """From where a policy reaches a terminal state.

    Parameters
    ----------
    arrives : ndarray of bool, shape (S,)
        Whether each state reaches a terminal one with probability 1; true in terminal states.
    share_of_starts : float
        Probability that a start, drawn from the start distribution, does.
    share_of_states : float
        Fraction, in [0, 1], of the non-terminal states that do.
    expected_steps : float or None
        Expected number of steps from the starts that arrive, weighted by the start distribution;
        None where none does.
    expected_steps_exact : bool
        Whether that is the number; else episodes are so long, or the time was so short, that only
        a number which they exceed was computed.
    attractors : tuple of Attractor
        Where it settles otherwise, that of the most states first.
    farthest : int
        Fewest steps from the farthest state to a terminal one, under any policy; 0 without any.
    """

    arrives: NDArray[np.bool_]
    share_of_starts: float
    share_of_states: float
    expected_steps: float | None
    expected_steps_exact: bool
    attractors: tuple[Attractor, ...]
    farthest: int

    def __repr__(self) -> str:
        steps = "none"
        if self.expected_steps is not None:
            steps = f"{'' if self.expected_steps_exact else 'over '}{self.expected_steps:,.1f}"
        return (
            f"Arrival(from {_percent(self.share_of_starts)} of the starts and "
            f"{_percent(self.share_of_states)} of {len(self.arrives):,} states, expected steps: "
            f"{steps}, attractors: {len(self.attractors):,})"
        )


@dataclass(frozen=True)
class ArrivalProgress:
    """What a callback sees of `arrival`: the expected steps are what can take long.

    Parameters
    ----------
    num_products : int
        With the matrix of the policy, so far.
    seconds : float
        Without the compilation of kernels.
    """

    num_products: int
    seconds: float


@interruptible()
def arrival(
    model_or_env: Any,
    policy: SolveResult | ArrayLike,
    *,
    time_limit: float | None = None,
    callback: Callable[[ArrivalProgress], object] | None = None,
) -> Arrival:
    """Find from where a policy reaches a terminal state.

    Whether a `SolveResult` is a success plays no part: this is about its policy alone.  Ctrl-C is
    raised.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    policy : SolveResult, or array_like, shape (S,) or (S, A)
    time_limit : float, optional
        Seconds after which the expected steps are left as a number that they exceed.
    callback : callable, optional
        Called with an `ArrivalProgress` as that number is looked for; a true value returned ends
        the search as the time limit does.
    """
    check_time_limit(time_limit)
    watch = _Watch(time_limit, callback)
    model = as_model(model_or_env)
    with stage("how far the ends are"):
        distances = steps_to_terminal(model)
    farthest = max(0, int(distances.max()))
    inside = ~model.terminal
    num_inside = int(np.count_nonzero(inside))
    with stage("where it settles"):
        ends, expected_steps = _follow(model, policy, distances, watch)
    del distances  # what follows may need the memory
    arrives = ends.nearest < 0
    basins = np.bincount(ends.nearest[~arrives], minlength=len(ends.attractors))
    order = np.argsort(-basins, kind="stable")
    listed = model.num_listed_states
    started = float(model.initial[arrives].sum())
    starts = np.flatnonzero(arrives & (model.initial > 0.0))
    steps: tuple[float, bool] | None = None
    if len(starts):
        with stage("expected steps"):
            steps = expected_steps(starts, model.initial[starts] / model.initial[starts].sum())
    return Arrival(
        arrives=arrives[:listed],
        # A sum of probabilities may miss 1 by rounding.
        share_of_starts=1.0 if arrives[model.initial > 0].all() else started,
        share_of_states=np.count_nonzero(arrives & inside) / num_inside if num_inside else 1.0,
        expected_steps=None if steps is None else steps[0],
        expected_steps_exact=steps is None or steps[1],
        attractors=tuple(
            Attractor(ends.attractors[i], basins[i] / num_inside, model.naming) for i in order
        ),
        farthest=farthest,
    )


class _Watch:
    """Tells how the search goes on, and whether it is to end."""

    def __init__(
        self, time_limit: float | None, callback: Callable[[ArrivalProgress], object] | None
    ) -> None:
        self._clock = Clock()
        self._limit = math.inf if time_limit is None else time_limit
        self._callback = callback
        self._count = 0

    def __call__(self) -> bool:
        seconds = self._clock.seconds()
        stop = seconds >= self._limit
        if self._callback is not None:
            stop = bool(self._callback(ArrivalProgress(self._count, seconds))) or stop
        self._count += 1
        return stop


#: From starts that arrive, and their shares: the expected steps, or what they exceed, and whether
#: they are exact.
_ExpectedSteps = Callable[[NDArray[np.int64], NDArray[np.float64]], tuple[float, bool]]


def _follow(
    model: Model,
    policy: SolveResult | ArrayLike,
    distances: NDArray[np.int32],
    watch: Callable[[], object],
) -> tuple[PathEnds, _ExpectedSteps]:
    """Return where a policy settles without arriving, and what finds how soon it arrives."""
    actions = available_actions(model, policy) if isinstance(model, MoveMDP) else None
    if isinstance(model, MoveMDP) and actions is not None:
        if model.p == 1.0:
            ends, steps = ends_of_paths(moves_of(model), readonly(model.terminal), actions)
            return ends, lambda starts, shares: (float(shares @ steps[starts]), True)
        if distances.min() >= 0:
            # Whatever is chosen, any move may happen: all arrive where all may.
            nowhere = np.broadcast_to(np.int32(-1), (model.num_states,))
            equations = MoveEquations(moves_of(model), actions, 1.0, count_steps=True, watch=watch)
            values = equations.guess(distances)
            return PathEnds([], nowhere), partial(_expected_steps_of_moves, equations, values)
    chain = policy_model(model, policy)
    ends = _ends(chain, model.terminal)
    fixed = model.terminal | (ends.nearest >= 0)
    return ends, partial(_expected_steps, chain.transitions, fixed, watch)


def _ends(chain: TabularMDP, terminal: NDArray[np.bool_]) -> PathEnds:
    """Return where a chain settles without arriving."""
    graph = chain.successor_graph()
    # Where an entry is listed twice, scipy's search for strong components may never end.
    graph.sum_duplicates()
    attractors = _attractors(graph, terminal)
    members = np.concatenate([*attractors, np.empty(0, dtype=np.int64)])
    _, nearest = distances_to(graph, members)
    owner = np.repeat(np.arange(len(attractors)), [len(states) for states in attractors])
    nearest[nearest >= 0] = owner[nearest[nearest >= 0]]
    return PathEnds(attractors, nearest)


def _attractors(graph: sp.csr_array, terminal: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Return the closed classes that are not terminal states, by their least state.

    The graph lists no entry twice.
    """
    _, component = connected_components(graph, directed=True, connection="strong")
    edges = graph.tocoo()
    leaving = component[edges.row] != component[edges.col]
    is_open = np.zeros(component.max() + 1, dtype=bool)
    is_open[component[edges.row[leaving]]] = True
    settled = np.flatnonzero(~is_open[component] & ~terminal)
    if len(settled) == 0:
        return []
    by_class = settled[np.argsort(component[settled], kind="stable")]
    cuts = np.flatnonzero(np.diff(component[by_class])) + 1
    return sorted(np.split(by_class, cuts), key=lambda states: int(states[0]))


def _expected_steps(
    transitions: sp.csr_array,
    fixed: NDArray[np.bool_],
    watch: Callable[[], object],
    starts: NDArray[np.int64],
    shares: NDArray[np.float64],
) -> tuple[float, bool]:
    """Return the expected steps, or what they exceed, and whether they are exact.

    The steps are ``v = 1 + P v`` in states that arrive.  From ``v <= (1 + d) + P v`` follows that v
    is at most ``1 + d`` times the true steps, since those solve the same equations with ``1 + d``
    for 1; and from ``v >= (1 - d) + P v`` that it is at least ``1 - d`` times them.
    """
    equations = ChainEquations(transitions, fixed, 1.0)
    ones = np.ones(len(fixed))
    found = equations.solve(ones, max_value=_MOST_EXPECTED_STEPS, watch=watch)
    if max(_excess(found), found.residual_high + found.rounding) <= _STEP_TOLERANCE:
        return float(shares @ found.values[starts]), True
    bounds = (found, equations.rise(ones, _RISING_STEPS))
    return max(_at_most(bound, starts, shares) for bound in bounds), False


def _expected_steps_of_moves(
    equations: MoveEquations,
    values: NDArray[np.float64],
    starts: NDArray[np.int64],
    shares: NDArray[np.float64],
) -> tuple[float, bool]:
    """Return the same where every state arrives, from values that may be near; overwrites them."""

    def solution(values: NDArray[np.float64], residual: Residual) -> Solution:
        rounding = equations.rounding(sup_norm(values))
        return Solution(values, residual.low, residual.high, rounding)

    residual = equations.solve(
        values, lambda size: 0.5 * _STEP_TOLERANCE, max_value=_MOST_EXPECTED_STEPS
    )
    found = solution(values, residual)
    if max(_excess(found), found.residual_high + found.rounding) <= _STEP_TOLERANCE:
        return float(shares @ values[starts]), True
    bounds = (found, solution(*equations.rise(_RISING_STEPS)))
    return max(_at_most(bound, starts, shares) for bound in bounds), False


def _at_most(found: Solution, starts: NDArray[np.int64], shares: NDArray[np.float64]) -> float:
    """Return a number that the expected steps reach or exceed, of values that may exceed them."""
    return float(shares @ found.values[starts]) / (1.0 + _excess(found))


def _excess(steps: Solution) -> float:
    """Return by how much, at most, v exceeds 1 + P v."""
    return max(0.0, -steps.residual_low) + steps.rounding


def describe_arrival(found: Arrival, gamma: float) -> str:
    """Say in one line from where a policy arrives, and what to do about gamma where it does not.

    Parameters
    ----------
    found : Arrival
    gamma : float
        The discount that the policy was made for.
    """
    if found.farthest == 0:
        return "there is no terminal state to reach"
    text = (
        f"reaches a terminal state from {_percent(found.share_of_starts)} of the starts and "
        f"{_percent(found.share_of_states)} of the states"
    )
    if found.expected_steps is not None:
        over = "" if found.expected_steps_exact else "over "
        text += f", in {over}{found.expected_steps:,.1f} expected steps"
    if found.attractors:
        largest = found.attractors[0]
        count = len(found.attractors)
        places = "one place" if count == 1 else f"{count:,} places"
        text += (
            f"; otherwise settles in {places}, the largest at "
            f"{largest.naming.state(int(largest.states[0]))} "
            f"({_percent(largest.share_of_states)} of the states)"
        )
    # Where moves slip, a policy that would stay in a valley leaves it some time.
    stays = found.expected_steps is not None and found.expected_steps > 20 * found.farthest
    if not (found.attractors or stays or not found.expected_steps_exact):
        return text
    # Rounded up to three digits of 1 - gamma.
    advised = 1.0 - float(f"{1.0 / found.farthest:.3g}")
    if gamma < advised:
        text += (
            f"; a goal far beyond 1/(1-gamma) = {1 / (1 - gamma):.0f} steps is hardly worth "
            f"reaching: try gamma {advised:.6g} (1 - 1/{found.farthest}, the farthest distance)"
        )
    return text


def _percent(fraction: float) -> str:
    """Format a fraction so that only 1 reads 100 %, and only 0 reads 0 %."""
    if 0.999 <= fraction < 1.0:
        return f"{math.floor(fraction * 1e5) / 1e3:g} %"
    if 0.0 < fraction < 0.001:
        return "under 0.1 %"
    return f"{100 * fraction:.3g} %"
