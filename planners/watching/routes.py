"""The policy that is greedy for the values of a frame, and the way that it takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.events import EventMDP
from aggmaze.models.model import Model
from aggmaze.models.moves import MoveMDP
from planners.event_engine import make_engine
from planners.objective import AverageCost, Discounted, FiniteHorizon, Objective, TotalCost
from planners.policies import greedy_path, greedy_policy

# Steps of a path that are drawn.
_LONGEST = 20_000


class Routes:
    """Greedy policies and paths in one model; made for one thread, beside the solver's.

    Parameters
    ----------
    model : Model
    objective : Objective
        Costs of a number of steps and average costs have no policy that follows from the values of
        a frame alone.
    """

    def __init__(self, model: Model, objective: Objective) -> None:
        self._model = model
        self._gamma = objective.gamma
        self.follows = isinstance(objective, Discounted | TotalCost)
        #: Whether a policy says where it leads: not where a table would have to be made for it.
        self.leads = not isinstance(model, EventMDP) and not isinstance(objective, AverageCost)
        self.leads &= not isinstance(objective, FiniteHorizon)
        self._engine = make_engine(model, self._gamma, 1) if self.follows else None

    def policy(self, values: NDArray[np.float64]) -> NDArray[np.int64] | None:
        """Return the greedy policy for values, shape (S,); None where they do not say one.

        Ties are broken as in results: towards a terminal state.
        """
        if self._engine is None:
            return None
        count = len(values)
        full = np.zeros(self._model.num_states)
        finite = np.isfinite(values)
        # What is infinite has to stay away, and finite to compute with.
        worst = float(np.abs(values[finite]).max(initial=0.0))
        full[:count] = np.where(finite, values, 1e6 * (1.0 + worst))
        full[self._model.terminal] = 0.0
        policy = greedy_policy(self._engine, full, 0.0, 0.0)
        return policy[:count]

    def path(self, policy: NDArray[np.int64] | None, start: int) -> NDArray[np.int64]:
        """Return the states that a policy visits from a start if all goes to plan.

        Empty where that is not known; it ends where it comes back to itself.

        Parameters
        ----------
        policy : ndarray of int, shape (S,), optional
        start : int
            The first of the states.
        """
        model = self._model
        if policy is None or not self.leads:
            return np.empty(0, dtype=np.int64)
        if not isinstance(model, MoveMDP):
            full = np.zeros(model.num_states, dtype=np.int64)
            full[: len(policy)] = policy
            return greedy_path(model, full, start)
        following = model.successors[np.arange(len(policy)), policy]
        path, visited, state = [start], {start}, start
        while not model.terminal[state] and len(path) < _LONGEST:
            state = int(following[state])
            path.append(state)
            if state in visited:
                break
            visited.add(state)
        return np.array(path, dtype=np.int64)
