"""The steps of a finite horizon: what each costs, and what is left to pay after the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.events import EventMDP
from aggmaze.models.model import Model
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from planners.adapters import as_model
from planners.engine import Engine
from planners.event_engine import make_engine
from planners.objective import FiniteHorizon


class Stages:
    """The model of each step, and its backups.

    Parameters
    ----------
    model : Model
        Of all steps, or of those whose costs only are given.
    objective : FiniteHorizon
    num_threads : int
    checkpoint : callable
        What long loops call now and then.

    Raises
    ------
    ValueError
        If terminal costs do not fit the model.
    """

    def __init__(
        self,
        model: Model,
        objective: FiniteHorizon,
        num_threads: int = 1,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        self._base = model
        self._objective = objective
        self._arguments = num_threads, checkpoint
        self._same: Engine | None = None
        #: What is left to pay after the last step, shape (S,).
        self.terminal_costs = self._checked_terminal_costs()

    @property
    def has_events(self) -> bool:
        """Whether the models are of random events, without tables."""
        return isinstance(self._base, EventMDP)

    def model(self, step: int) -> Model:
        """Return the model of a step.

        Raises
        ------
        ValueError, TypeError
            If what ``stages`` returns for it does not fit; the message names the step.
        """
        if self._objective.stages is None:
            return self._base
        given = self._objective.stages(step)
        base = self._base
        if isinstance(given, np.ndarray) or (
            isinstance(given, list | tuple) and np.ndim(np.asarray(given, dtype=object)) == 2
        ):
            return self._with_costs(np.asarray(given), step)
        try:
            model = as_model(given)
        except TypeError as error:
            raise TypeError(
                f"stages({step}) must return costs, shape (S, A), or a model: {error}"
            ) from None
        if (model.num_states, model.num_actions) != (base.num_states, base.num_actions):
            raise ValueError(
                f"stages({step}) has {model.num_states} states and {model.num_actions} actions, "
                f"the model {base.num_states} and {base.num_actions}"
            )
        other = np.flatnonzero(model.terminal != base.terminal)
        if len(other):
            raise ValueError(
                f"stages({step}): {base.naming.state(int(other[0]))} is "
                f"{'' if model.terminal[other[0]] else 'not '}terminal, and in the model it is "
                f"{'one' if base.terminal[other[0]] else 'not'}: an episode ends in the same "
                "states at every step"
            )
        return model

    def engine(self, step: int) -> Engine:
        """Return the backups of a step."""
        if self._objective.stages is None:
            if self._same is None:
                self._same = self._engine(self._base)
            return self._same
        return self._engine(self.model(step))

    def _engine(self, model: Model) -> Engine:
        return make_engine(model, self._objective.gamma, *self._arguments)

    def _with_costs(self, given: NDArray[Any], step: int) -> Model:
        base = self._base
        if isinstance(base, EventMDP):
            raise TypeError(
                f"stages({step}) gives costs in a table, and a model of random events has none: "
                "give a model for each step"
            )
        expected = (base.num_listed_states, base.num_actions)
        if given.shape != expected:
            raise ValueError(
                f"stages({step}) must have shape (S, A) = {expected}, got {given.shape}"
            )
        costs = np.zeros((base.num_states, base.num_actions))
        costs[: len(given)] = given
        mask = base.action_mask & ~base.terminal[:, np.newaxis]
        bad = np.argwhere(mask & ~np.isfinite(costs))
        if len(bad):
            state, action = bad[0].tolist()
            raise ValueError(
                f"stages({step}): {base.naming.choice(state, action)}: cost {costs[state, action]} "
                "must be finite; for other actions at each step give models"
            )
        if isinstance(base, MoveMDP):
            # Terminal states have no moves, though every action of theirs counts as available.
            there = np.isfinite(base.move_costs)
            return replace(base, move_costs=np.where(there, costs, np.inf)).validate()
        costs = np.where(mask, costs, base.costs)
        return TabularMDP(
            base.transitions,
            costs,
            action_mask=base.action_mask,
            terminal=base.terminal,
            initial=base.initial,
            num_added_states=base.num_added_states,
            state_names=base.state_names,
            action_names=base.action_names,
        ).validate()

    def _checked_terminal_costs(self) -> NDArray[np.float64]:
        model = self._base
        costs = np.zeros(model.num_states)
        if self._objective.terminal_costs is None:
            return costs
        given = np.asarray(self._objective.terminal_costs)
        if given.shape != (model.num_listed_states,):
            raise ValueError(
                f"terminal_costs must have shape ({model.num_listed_states},), one a state, got "
                f"{given.shape}"
            )
        costs[: len(given)] = given
        paid = np.flatnonzero((costs != 0) & model.terminal)
        if len(paid):
            raise ValueError(
                f"terminal_costs[{paid[0]}] = {costs[paid[0]]}, and "
                f"{model.naming.state(int(paid[0]))} is terminal: an episode that has ended "
                "pays nothing more. A state that is left by no action, "
                "but not the end, is no terminal state of a model that is made with terminal=[]"
            )
        return costs
