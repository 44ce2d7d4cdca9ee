"""How a solve goes, told while it runs, and when it will end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from planners.kernels.vectors import finite_norm
from planners.objective import Discounted, FiniteHorizon, Objective
from planners.objectives.request import AUTO, DEFAULT_TOL
from planners.record import Progress
from planners.solve import METHODS, Method, check_method
from planners.waiting import Forecast, Waiting

# Seconds between two looks at max|V|, which takes time where there are many states.
_LOOK_EVERY = 5.0


class Goal:
    """What ends a run, and how far it is from there.

    Parameters
    ----------
    objective : Objective
    method : str
    options : mapping
        Of the method.
    tol, atol : float, optional
    num_iterations, num_updates : int, optional
    time_limit : float, optional
        In seconds.
    methods : mapping of str to Method
        Those of which ``method`` is one.
    """

    def __init__(
        self,
        objective: Objective,
        method: str = AUTO,
        options: Mapping[str, Any] | None = None,
        *,
        tol: float | None = None,
        atol: float | None = None,
        num_iterations: int | None = None,
        num_updates: int | None = None,
        time_limit: float | None = None,
        methods: Mapping[str, Method] = METHODS,
    ) -> None:
        if isinstance(objective, FiniteHorizon):
            num_iterations, tol, atol = objective.steps, None, None
        elif num_iterations is None and num_updates is None:
            # As `planners.solve` does: some methods have a normal end, the others an accuracy.
            if isinstance(objective, Discounted) and method != AUTO:
                num_iterations = methods[method].num_iterations(
                    check_method(method, dict(options or {}), methods)
                )
            if num_iterations is None and tol is None and atol is None:
                tol = DEFAULT_TOL
        self._tol, self._atol = tol, atol
        #: What each counts to, None where it does not end the run.
        self._counted = (num_iterations, num_updates, time_limit)
        self.num_iterations = num_iterations
        self._size = 0.0
        self._looked = -math.inf
        # By the bound where the method tells one, and else by the residual.
        self._of_bound, self._of_residual = Forecast(), Forecast()
        self._of_counts = tuple(Forecast() for _ in self._counted)

    def note(self, progress: Progress, now: float) -> None:
        """Take note of an iteration.

        Parameters
        ----------
        progress : Progress
        now : float
            In seconds.
        """
        done = progress.iteration, progress.num_updates, progress.seconds
        for count, total, forecast in zip(done, self._counted, self._of_counts, strict=True):
            if total is not None:
                forecast.note(total - count, now)
        if self._tol is None and self._atol is None:
            return
        for error, forecast in (
            (progress.bound, self._of_bound),
            (progress.residual, self._of_residual),
        ):
            if 0 < error < math.inf:
                target = self._target(progress, now)
                if target > 0:
                    forecast.goal = math.log(target)
                    forecast.note(math.log(error), now)

    def looks(self, now: float) -> bool:
        """Return whether it is time to look at max|V|.

        Parameters
        ----------
        now : float
            In seconds.
        """
        return self._tol is not None and now - self._looked >= _LOOK_EVERY

    def see(self, size: float, now: float) -> None:
        """Take note of max|V|, which `note` else looks at itself where it is time.

        Parameters
        ----------
        size : float
        now : float
            In seconds.
        """
        self._size, self._looked = size, now

    def seconds_left(self, now: float) -> float | None:
        """Return when the first of what ends the run will, None where that cannot be told."""
        by_error = self._of_bound.seconds_left(now)
        if by_error is None:
            by_error = self._of_residual.seconds_left(now)
        ends = [by_error, *(forecast.seconds_left(now) for forecast in self._of_counts)]
        return min((end for end in ends if end is not None), default=None)

    def _target(self, progress: Progress, now: float) -> float:
        """Return the error to reach."""
        if self.looks(now):
            self.see(finite_norm(progress.values), now)
        return max(self._atol or 0.0, (self._tol or 0.0) * self._size)


class ProgressLine(Waiting):
    """Tells how a run goes, or one run after another.

    Parameters
    ----------
    console : Console
    what : str
        What goes on before the first iteration is over.
    goal : Goal, optional
        Of the run.
    """

    def __init__(self, console: Console, what: str, goal: Goal | None = None) -> None:
        super().__init__(console, what)
        self._goal = goal
        self._of = ""

    def begin(self, words: str, goal: Goal) -> None:
        """Tell that a run of several begins.

        Parameters
        ----------
        words : str
            Which one.
        goal : Goal
        """
        self._of, self._goal = f"{words}: ", goal
        self._what = f"{self._of}solving"
        self.enter("")
        self.tell(self._what)

    def approach(self, error: float, target: float) -> None:
        """Leave out how near equations are that are solved within an iteration."""

    def show(self, progress: Progress) -> None:
        """Tell an iteration; as a callback, never ask to stop."""
        goal = self._goal
        of = ""
        if goal is not None:
            goal.note(progress, self.passed)
            of = "" if goal.num_iterations is None else f" of {goal.num_iterations:,}"
        text = f"{self._of}iteration {progress.iteration:,}{of}"
        if not self._of:  # else there is no room for it in a line
            text += f", {progress.num_updates:,} updates"
        if not math.isnan(progress.bound):
            text += f", bound {progress.bound:.3g}"
        elif not math.isnan(progress.residual):
            text += f", residual {progress.residual:.3g}"
        if progress.resumed_at:
            text += f", resumed at iteration {progress.resumed_at:,}"
        self._what = text  # of the stages of the next one
        self.tell(text, goal)
