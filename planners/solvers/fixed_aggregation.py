"""Random value iteration with a given aggregation: Algorithm 1 of the paper.

Labels partition the states into K mega-states S_1, ..., S_K, and ``V~(s) = W(label(s))``.  One
iteration draws a representative s uniformly from each mega-state and updates all of them from the
same old W:

    W_t(j) = (1 - alpha_t) W_{t-1}(j) + alpha_t T_s V~(W_{t-1}),

K updates.  W starts at the mean of V0 over each mega-state; also terminal states, whose own backup
is 0, have the value of their mega-state.

Where sum alpha_t is infinite and sum alpha_t^2 is not, as for the default ``t^-0.6``, W tends to
the W* with ``W*(j) = mean of T_s V~(W*) over S_j``.  Where V* differs by at most e within a
mega-state, ``|V~(W*) - V*| <= e / (1 - gamma)``, and a policy greedy for V~(W*) costs at most
``2 gamma e / (1 - gamma)^2`` more than V*, from any state.  Smaller steps tend there very slowly:
what is left of the start after t steps of ``1/t`` is ``t^-(1 - gamma)``.

Source: Chen, Gaebler, Peng, Sun, Ye, "An Adaptive State Aggregation Algorithm for Markov Decision
Processes", Algorithm 1 and Proposition 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_integer
from planners.aggregation import Aggregation, representatives
from planners.engine import Engine
from planners.schedules import StepSize, step_size_rule
from planners.solvers.base import State, Step


@dataclass(frozen=True, kw_only=True, eq=False)
class FixedAggregationOptions:
    """Parameters of Algorithm 1.

    Parameters
    ----------
    labels : array_like of int, shape (S,)
        Mega-state of each state: any integers, equal for states that are one mega-state.
    step_size : str, float or callable
        alpha_t: ``"t^-0.6"`` (any exponent), a constant, or a function of t, in [0, 1].
    first_step : int
        Where t begins.
    """

    labels: ArrayLike | None = None
    step_size: StepSize = "t^-0.6"
    first_step: int = 1

    def __post_init__(self) -> None:
        if self.labels is None:
            raise ValueError("fixed_aggregation needs labels, the mega-state of each state")
        labels = np.asarray(self.labels)
        if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
            raise ValueError(
                f"labels must be integers of shape (S,), got {labels.dtype} of shape {labels.shape}"
            )
        first = check_integer("first_step", self.first_step, least=1)
        object.__setattr__(self, "first_step", first)
        step_size_rule(self.step_size)

    @property
    def num_iterations(self) -> int:
        """Iterations that are the method's normal end."""
        return 1000


class FixedAggregation:
    """Algorithm 1 from the means of the first V."""

    by_state: Mapping[str, str] = {}

    def __init__(
        self, engine: Engine, options: FixedAggregationOptions, rng: np.random.Generator
    ) -> None:
        self._engine = engine
        self._rng = rng
        self._step_size = step_size_rule(options.step_size)
        self._t = options.first_step
        model = engine.model
        self._labels = _compact(options.labels, model.num_states, model.num_listed_states)
        self._sizes = np.bincount(self._labels)
        self._aggregation = Aggregation(
            self._labels,
            np.arange(len(self._sizes)),
            len(self._sizes),
            self._sizes,
            np.zeros(len(self._sizes)),
        )
        # To draw one iteration's representatives takes a pass over the states, and so does to draw
        # those of many.
        self._num_drawn = -(-model.num_states // len(self._sizes))
        self._representatives: Iterator[NDArray[np.int64]] = iter(())
        # Of these, how many were taken, and what the generator was like before.
        self._num_taken, self._before = 0, rng.bit_generator.state
        self._W = self._spare_W = np.empty(0)

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        """Update every mega-state once."""
        if len(self._W) == 0:
            # Added up in the order of the states.
            self._W = np.bincount(self._labels, weights=V) / self._sizes
            self._spare_W = np.empty_like(self._W)
        alpha = self._step_size(self._t)
        target = self._spare_W
        self._engine.aggregated(self._drawn(), self._W, self._labels, target)
        target *= alpha
        target += (1.0 - alpha) * self._W
        self._W, self._spare_W = target, self._W
        self._t += 1
        return Step(
            len(target),
            None,
            len(target),
            deferred=functools.partial(self._expand, target),
            labels=self._own_labels,
        )

    def _drawn(self) -> NDArray[np.int64]:
        """Return a representative of each mega-state."""
        drawn = next(self._representatives, None)
        if drawn is None:
            self._num_taken, self._before = 0, self._rng.bit_generator.state
            self._representatives = representatives(self._aggregation, self._rng, self._num_drawn)
            drawn = next(self._representatives)
        self._num_taken += 1
        return drawn

    def state(self) -> State:
        """Return W, the step index and where the draws are."""
        return State(
            {"t": self._t, "rng": self._before, "num_taken": self._num_taken}, {"W": self._W}
        )

    def restore(self, state: State) -> Callable[[], NDArray[np.int32]]:
        """Go on from there."""
        self._t = state.numbers["t"]
        self._W = state.arrays["W"]
        self._spare_W = np.empty_like(self._W)
        self._before = self._rng.bit_generator.state = state.numbers["rng"]
        self._representatives = representatives(self._aggregation, self._rng, self._num_drawn)
        self._num_taken = state.numbers["num_taken"]
        for _ in range(self._num_taken):
            next(self._representatives)
        return self._own_labels

    def _expand(self, W: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Write V~(W) into ``out``."""
        self._aggregation.expand(W, out, self._engine.num_threads)

    def _own_labels(self) -> NDArray[np.int32]:
        """Return the mega-state of each state, from 0 to K - 1 in the order of the given labels."""
        return self._labels


def _compact(labels: Any, num_states: int, num_listed_states: int) -> NDArray[np.int32]:
    """Return labels 0 to K - 1; states that the model's source does not list come last, alone."""
    given = np.asarray(labels)
    if len(given) != num_listed_states:
        raise ValueError(
            f"labels must have shape ({num_listed_states},), one a state, got {given.shape}"
        )
    distinct, compact = np.unique(given, return_inverse=True)
    added = len(distinct) + np.arange(num_states - num_listed_states)
    return np.concatenate([compact, added]).astype(np.int32)
