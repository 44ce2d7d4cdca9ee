"""Episodes of a model by rows: each step asks for the row of one state."""

from __future__ import annotations

from typing import Any, cast

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from aggmaze.models.row_models import (
    MoveBlock,
    MoveRowModel,
    RowModel,
    TableRowModel,
    tells_moves,
)
from aggmaze.models.rows import Rows

# Trials before there is taken to be no state to start from.
_MOST_TRIALS = 1000

# Of moves, about a kilobyte each: episodes of one policy pass mostly through the same states.
_MOST_BLOCKS_KEPT = 8192


class RowWalk(gym.Env[Any, Any]):
    """A Gymnasium environment that walks through a model of which no one holds all rows.

    Observations are states.  A step pays minus the cost of what happens, and ends the episode in a
    terminal state.  Episodes start where the model says (``start``), or in a state drawn from those
    that are not terminal.  Only available actions can be taken.

    Parameters
    ----------
    model : RowModel
    """

    def __init__(self, model: RowModel) -> None:
        self.observation_space = gym.spaces.Discrete(model.num_states)
        self.action_space = gym.spaces.Discrete(model.num_actions)
        self._model, self._state = model, 0
        self._kept: dict[int, MoveBlock] = {}
        self._row: MoveBlock | Rows | None = None  # of the state, read once as it is entered

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        start = getattr(self._model, "start", None)
        for _ in range(_MOST_TRIALS):
            state = int(self.np_random.integers(self._model.num_states)) if start is None else start
            if not self._enter(state):
                return state, {"state": state}
        raise ValueError("hardly a state of the model is not terminal: there is nowhere to start")

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action.

        Parameters
        ----------
        action : int
        """
        chances, states, costs = self._outcomes(int(action))
        drawn = self.np_random.random() * chances.sum()
        found = min(int(np.searchsorted(np.cumsum(chances), drawn, side="right")), len(chances) - 1)
        over = self._enter(int(states[found]))
        return self._state, -float(costs[found]), over, False, {"state": self._state}

    def _outcomes(
        self, action: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        """Return chances, states and costs of what may follow."""
        model = self._model
        if not 0 <= action < model.num_actions:
            raise ValueError(f"action must be in [0, {model.num_actions}), got {action}")
        if isinstance(self._row, MoveBlock):
            block = self._row
            moves = np.flatnonzero(np.isfinite(block.costs[0]))
            self._check(action in moves, action)
            p = float(cast(MoveRowModel, model).p)
            others = (1.0 - p) / max(1, len(moves) - 1)
            chances = np.where(moves == action, p if len(moves) > 1 else 1.0, others)
            return chances, block.successors[0, moves], block.costs[0, moves]
        rows = self._row
        if rows is None:
            raise gym.error.ResetNeeded("reset the environment before the first step")
        self._check(bool(rows.action_mask[0, action]), action)
        entries = slice(*rows.transitions.indptr[action : action + 2])
        found = rows.transitions.indices[entries].astype(np.int64)
        return rows.transitions.data[entries], found, rows.outcome_costs[entries]

    def _check(self, available: bool, action: int) -> None:
        if not available:
            raise ValueError(f"action {action} is not available in state {self._state}")

    def _enter(self, state: int) -> bool:
        """Go to a state, and return whether it is terminal."""
        self._state = state
        if tells_moves(self._model):
            self._row = block = self._moves(state)
            return not np.isfinite(block.costs).any()
        model = cast(TableRowModel, self._model)
        self._row = model.rows(state, state + 1)
        return bool(model.terminal(state, state + 1)[0])

    def _moves(self, state: int) -> MoveBlock:
        block = self._kept.get(state)
        if block is None:
            if len(self._kept) == _MOST_BLOCKS_KEPT:
                del self._kept[next(iter(self._kept))]  # the oldest
            block = self._kept[state] = cast(MoveRowModel, self._model).moves(state, state + 1)
        return block
