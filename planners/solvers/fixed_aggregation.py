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

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_integer
from planners.aggregation import Aggregation, draw_representatives
from planners.bellman import Backups
from planners.iterate import Step
from planners.schedules import StepSize, step_size_rule


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
        check_integer("first_step", self.first_step, least=1)
        step_size_rule(self.step_size)

    @property
    def num_iterations(self) -> int:
        """Iterations that are the method's normal end."""
        return 1000


class FixedAggregation:
    """Algorithm 1 from the means of a given V."""

    recentres = False

    def __init__(
        self,
        backups: Backups,
        V0: NDArray[np.float64],
        rng: np.random.Generator,
        options: FixedAggregationOptions,
    ) -> None:
        self._backups = backups
        self._rng = rng
        self._step_size = step_size_rule(options.step_size)
        self._t = options.first_step
        self._labels = _compact(options.labels, len(V0), backups.model.num_added_states)
        sizes = np.bincount(self._labels)
        # Added up in the order of the states.
        self._W = np.bincount(self._labels, weights=V0) / sizes
        self._spare_W = np.empty_like(self._W)
        self._aggregation = Aggregation(
            self._labels, np.arange(len(sizes)), len(sizes), sizes, self._W.copy()
        )
        # To draw one iteration's representatives takes a pass over the states, and so does to draw
        # those of many.
        self._num_drawn = -(-len(V0) // len(sizes))
        self._representatives = np.empty((0, len(sizes)), dtype=np.int64)
        self._position = 0  # among those drawn
        self._V = np.empty_like(V0)

    def step(self) -> Step:
        """Update every mega-state once."""
        if self._position == len(self._representatives):
            uniforms = self._rng.random((self._num_drawn, len(self._W)))
            self._representatives = draw_representatives(self._aggregation, uniforms)
            self._position = 0
        alpha = self._step_size(self._t)
        target = self._spare_W
        self._backups.aggregated(
            self._representatives[self._position], self._W, self._labels, target
        )
        target *= alpha
        target += (1.0 - alpha) * self._W
        self._W, self._spare_W = target, self._W
        self._t += 1
        self._position += 1
        return Step(len(target), None, len(target))

    def values(self) -> NDArray[np.float64]:
        """Return V~(W)."""
        self._aggregation.expand(self._W, self._V, self._backups.num_threads)
        return self._V

    def labels(self) -> NDArray[np.int32]:
        """Return the mega-state of each state, from 0 to K - 1 in the order of the given labels."""
        return self._labels


def _compact(labels: Any, num_states: int, num_added_states: int) -> NDArray[np.int32]:
    """Return labels 0 to K - 1; states that the model's source does not list come last, alone."""
    given = np.asarray(labels)
    listed = num_states - num_added_states
    if len(given) != listed:
        raise ValueError(f"labels must have shape ({listed},), one a state, got {given.shape}")
    distinct, compact = np.unique(given, return_inverse=True)
    added = len(distinct) + np.arange(num_added_states)
    return np.concatenate([compact, added]).astype(np.int32)
