"""Backups of a model whose action costs a solver knows only with noise.

    T'_s(V) = min_a c(s,a) + noise(s,a) + gamma sum_s' P(s'|s,a) V(s')

with normal noise of mean 0, drawn once for the whole run, or anew at each backup.  Terminal states
have no noise.  The noise is the solver's alone: what certifies its values sees the true costs.

In a model of moves with slip (`aggmaze.move_mdp`) the cost of an action is a mixture of the costs
of moves, ``c_a = (p-b) r_a + b sum_m r_m``, with weights that sum to 1.  So moves that cost

    e_a = (noise_a - b sum_m noise_m) / (p - b)

more make the action cost ``noise_a`` more.  At ``p = b``, where no action differs from another, no
cost of moves does that, and the general table of the model takes its place.

Source: Chen, Gaebler, Peng, Sun, Ye, "An Adaptive State Aggregation Algorithm for Markov Decision
Processes", section "Robustness".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.model import with_table
from aggmaze.models.moves import MoveMDP
from planners.bellman import local_engine
from planners.engine import Engine, Sweep

NOISES = ("once", "fresh")

# Weights of the chosen move below which rounding would drown what they are to carry.
_LEAST_WEIGHT = 1e-6

Rows = slice | NDArray[np.int64]


class NoisyBackups:
    """The backups that Algorithm 3 makes, on noisy costs.

    Parameters
    ----------
    true : Engine
        Of the model without noise.
    sigma : float
        Standard deviation of the noise on the cost of each action, in the unit of the costs.
    noise : {"once", "fresh"}
        Whether the noise of an action is the same for the whole run, or drawn at each backup.
    rng : Generator
    """

    def __init__(self, true: Engine, sigma: float, noise: str, rng: np.random.Generator) -> None:
        self._sigma = float(sigma)
        self._is_fresh = noise == "fresh"
        self._rng = rng
        model = with_table(true.model)
        if isinstance(model, MoveMDP) and not _can_carry(model):
            model = model.to_tabular()
        if isinstance(model, MoveMDP):
            self._costs, self._extra = model.move_costs, _on_moves(model)
        else:
            self._costs, self._extra = model.costs, _on_actions
        # The backups read this array, so that fresh noise need not make a model each time.
        self._noisy_costs = self._costs.copy()
        self._engine = local_engine(
            model, true.gamma, true.num_threads, true.checkpoint, self._noisy_costs
        )
        self._draw(slice(None))

    def sweep(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Sweep:
        """Write ``T'V`` into ``out``; the extremes are those of ``T'V``, which is no image of T."""
        if self._is_fresh:
            self._draw(slice(None))
        return replace(self._engine.sweep(V, out), image=None)

    def aggregated(
        self,
        states: NDArray[np.int64],
        W: NDArray[np.float64],
        labels: NDArray[np.int32],
        out: NDArray[np.float64],
    ) -> None:
        """Write ``T'_s V~`` of each listed state into ``out``, where ``V~(s) = W[labels[s]]``.

        No state is listed twice.
        """
        if self._is_fresh:
            self._draw(states)
        self._engine.aggregated(states, W, labels, out)

    def state(self) -> dict[str, Any]:
        """Return where the draws are, which is all that later backups depend on."""
        return dict(self._rng.bit_generator.state)

    def restore(self, state: dict[str, Any]) -> None:
        """Draw from there on.

        Parameters
        ----------
        state : dict
            Of the noise of the same model, sigma and seed.
        """
        self._rng.bit_generator.state = state

    def _draw(self, rows: Rows) -> None:
        costs = self._costs[rows]
        noise = self._rng.standard_normal(costs.shape)
        noise *= self._sigma
        self._noisy_costs[rows] = costs + self._extra(noise, rows)


def _can_carry(model: MoveMDP) -> bool:
    """Return whether costs of moves can give every action a noise of its own."""
    counts = np.unique(model.available.sum(axis=1))
    chosen = model.slip_weights[0][counts[counts > 0]]
    return bool((np.abs(chosen) >= _LEAST_WEIGHT).all())


def _on_actions(noise: NDArray[np.float64], rows: Rows) -> NDArray[np.float64]:
    return noise


def _on_moves(model: MoveMDP) -> Callable[[NDArray[np.float64], Rows], NDArray[np.float64]]:
    """Return what turns noise on actions into noise on moves."""
    chosen, every = model.slip_weights

    def on_moves(noise: NDArray[np.float64], rows: Rows) -> NDArray[np.float64]:
        available = model.available[rows]
        counts = available.sum(axis=1)
        noise = np.where(available, noise, 0.0)
        shared = every[counts] * noise.sum(axis=1)
        return (noise - shared[:, np.newaxis]) / chosen[counts, np.newaxis]

    return on_moves
