"""Several methods, one after another, on the same model: what each took and how far off it is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.model import Model
from aggmaze.progress import stage
from planners.adapters import as_model
from planners.objective import (
    AverageCost,
    Discounted,
    FiniteHorizon,
    Objective,
    TotalCost,
    as_objective,
)
from planners.objectives import average_cost, finite_horizon, total_cost
from planners.objectives.discounted import METHODS as DISCOUNTED_METHODS
from planners.objectives.request import AUTO, check_limits, check_method_of
from planners.record import Callback
from planners.result import SolveResult, Status
from planners.solve import check_method, solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of each objective those that need nothing but the model; "auto" is one of them.
_METHODS: dict[type, tuple[str, ...]] = {
    Discounted: tuple(name for name in DISCOUNTED_METHODS if name != "fixed_aggregation"),
    TotalCost: tuple(total_cost.METHODS),
    AverageCost: tuple(average_cost.METHODS),
    FiniteHorizon: (finite_horizon.BACKWARD_INDUCTION,),
}

# A run that takes less, in seconds, is made so many more times: the first of a model pays for what
# is found out once, and short times scatter.
_SHORT, _NUM_MORE = 0.5, 3

#: What `Comparison.cells` tells of a run, in this order.
COLUMNS = ("method", "seconds", "updates", "sweeps", "bound", "error", "ended")


def methods_of(objective: Objective) -> tuple[str, ...]:
    """Return the methods of an objective that need nothing but the model, beside "auto".

    Parameters
    ----------
    objective : Discounted, TotalCost, FiniteHorizon or AverageCost
    """
    return _METHODS[type(objective)]


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """One method on one question.

    Parameters
    ----------
    method : str
        As it was asked for; ``result.method`` is the one that "auto" chose.
    objective : Objective
    result : SolveResult or None
        None where the method does not run on this model.
    refusal : str
        Why not; else empty.
    error_low, error_high : float
        The true error ``max |values - V*|`` lies between these, by the tightest bounds on V* that
        any run of the comparison certified.  NaN without a result.
    """

    method: str
    objective: Objective
    result: SolveResult | None
    refusal: str = ""
    error_low: float = math.nan
    error_high: float = math.nan

    @property
    def ended(self) -> str:
        """How the run ended, or why there was none."""
        if self.result is None:
            return f"not here: {self.refusal}"
        chosen = f", {self.result.method}" if self.method == AUTO else ""
        return f"{self.result.status}{chosen}"

    @property
    def has_history(self) -> bool:
        """Whether anything was noted on its way, so that there is something to draw."""
        return self.result is not None and len(self.result.history) > 0

    @property
    def error(self) -> str:
        """The true error in words: a number as far as it is known."""
        low, high = self.error_low, self.error_high
        if not high < math.inf:
            return ""
        # Two digits are shown; where the ends differ in them there is only an upper end.
        return f"{high:.2g}" if f"{low:.2g}" == f"{high:.2g}" else f"<= {high:.2g}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` returns.

    Parameters
    ----------
    runs : tuple of ComparedRun
        In the order in which they were asked for.
    num_states, num_actions : int
        Of the model.
    interrupted : bool
        Whether Ctrl-C or a callback ended it before the last run was over.
    """

    runs: tuple[ComparedRun, ...]
    num_states: int
    num_actions: int
    interrupted: bool = field(default=False)

    def __repr__(self) -> str:
        return f"Comparison({len(self.runs)} runs, {self.num_states} states)"

    def __str__(self) -> str:
        parts = []
        for objective, rows in self.cells():
            table = [COLUMNS, *rows]
            widths = [max(len(row[i]) for row in table) for i in range(len(COLUMNS) - 1)]
            lines = [f"{objective}, {self.num_states:,} states with {self.num_actions} actions"]
            for row in table:
                first, *numbers = (cell for cell in row[:-1])
                aligned = [
                    number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)
                ]
                lines.append("  ".join([first.ljust(widths[0]), *aligned, row[-1]]).rstrip())
            parts.append("\n".join(lines))
        return "\n\n".join(parts)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The questions that were asked, in order."""
        found: list[Objective] = []
        for run in self.runs:
            if not any(run.objective is other for other in found):
                found.append(run.objective)
        return tuple(found)

    def of(self, objective: Objective) -> tuple[ComparedRun, ...]:
        """Return the runs of one of `objectives`."""
        return tuple(run for run in self.runs if run.objective is objective)

    def cells(self) -> list[tuple[Objective, list[tuple[str, ...]]]]:
        """Return of each question the runs as texts, a tuple each in the order of `COLUMNS`."""
        return [
            (objective, [_cells(run) for run in self.of(objective)])
            for objective in self.objectives
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; numbers that are not finite are None."""
        return {
            "num_states": self.num_states,
            "num_actions": self.num_actions,
            "interrupted": self.interrupted,
            "runs": [_entry(run) for run in self.runs],
        }

    def plot(
        self,
        *,
        against: str = "seconds",
        show: str | None = None,
        ax: Axes | None = None,
        title: str | None = None,
    ) -> Any:
        """Draw how each run came near the optimum (`planners.plotting.plot_convergence`).

        Parameters
        ----------
        against : {"seconds", "updates", "sweeps", "iterations"}
        show : {"bound", "residual"}, optional
        ax : Axes, optional
            Where to draw, if there is one question; a new figure by default.
        title : str, optional

        Returns
        -------
        Axes, or ndarray of Axes
            One for each question that something was noted of, if there are several.

        Raises
        ------
        ValueError
            If no run noted anything on its way, or ``ax`` is to hold several questions.
        ModuleNotFoundError
            Without matplotlib.
        """
        from planners.plotting import plot_convergence
        from planners.plotting.canvas import new_figure

        drawn = [
            (
                objective,
                {
                    run.method: run.result
                    for run in self.of(objective)
                    if run.has_history and run.result is not None
                },
            )
            for objective in self.objectives
        ]
        drawn = [(objective, results) for objective, results in drawn if results]
        if not drawn:
            raise ValueError("there is nothing to draw: no run noted anything on its way")
        if len(drawn) == 1:
            return plot_convergence(drawn[0][1], against=against, show=show, ax=ax, title=title)
        if ax is not None:
            raise ValueError(f"ax= holds one question, and {len(drawn)} were asked")
        panels = new_figure(6.4, 3.4 * len(drawn)).subplots(len(drawn), squeeze=False)[:, 0]
        for panel, (objective, results) in zip(panels, drawn, strict=True):
            words = f"{title}, {objective}" if title else str(objective)
            plot_convergence(results, against=against, show=show, ax=panel, title=words)
        return panels


def compare(
    model_or_env: Any,
    methods: Iterable[str] | None = None,
    *,
    gamma: float | None = None,
    gammas: Iterable[float] | None = None,
    objective: Objective | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    begun: Callable[[str, Objective], object] | None = None,
    callback: Callback | None = None,
    **settings: Any,
) -> Comparison:
    """Solve one model by several methods in turn.

    Seconds are those of `SolveResult`: without compiling and loading kernels, which is no matter of
    a method.  A run of less than half a second is made three more times, which nobody watches, and
    the median of those is told.  A method that does not run on the model says so in its row, and
    the others go on.  Ctrl-C ends the run that it meets and the comparison with it; what there is
    by then is returned.

    Parameters
    ----------
    model_or_env
        What `as_model` takes.
    methods : iterable of str, optional
        By default "auto" and all methods of the objective that need nothing but the model.
    gamma, objective
        What is asked, as of `planners.solve`.
    gammas : iterable of float, optional
        In place of ``gamma``: several discounts, each with all methods; 1 asks for total costs.
    options : mapping of str to mapping, optional
        Options of methods: ``{"adaptive_aggregation": {"epsilon": 0.5}}``.
    begun : callable, optional
        Called with the name of the method and the objective before each run.
    callback : callable, optional
        As of `planners.solve`; a true value ends the comparison.
    **settings
        Other arguments of `planners.solve`, the same in all runs: ``tol``, ``time_limit``,
        ``num_iterations``, ``seed`` and so on.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If a method or a setting is none, of any of the questions, or no run is asked for.
    TypeError
        As of `planners.solve`.
    KeyboardInterrupt
        On Ctrl-C before the first run; later it ends the comparison, with what is finished.

    Examples
    --------
    >>> import gymnasium as gym, aggmaze, planners
    >>> env = gym.make("TerrainMaze-v0")
    >>> found = planners.compare(env, ["value_iteration", "policy_iteration"], gamma=0.95)
    >>> [run.result.success for run in found.runs]
    [True, True]
    """
    limits = ("tol", "atol", "num_iterations", "num_updates", "time_limit")
    check_limits(*(settings.get(name) for name in limits))
    planned = planned_runs(
        methods, gamma=gamma, gammas=gammas, objective=objective, options=options
    )
    model = as_model(model_or_env)
    runs: list[ComparedRun] = []
    under_way = interrupted = False
    size = model.num_listed_states, model.num_actions
    watch = _Watch(callback)
    try:
        for each, method, given in planned:
            if begun is not None:
                begun(method, each)
            under_way = True
            arguments = {"objective": each, "method": method, **settings, **given}
            try:
                result = solve(model, callback=watch.see, **arguments)
            except (ValueError, MemoryError) as error:
                runs.append(ComparedRun(method, each, None, str(error)))
                continue
            runs.append(ComparedRun(method, each, result))
            interrupted = result.status == Status.INTERRUPTED or watch.stopped
            if interrupted:
                break
            if result.success and result.seconds < _SHORT:
                with stage("again, to time it"):
                    runs[-1] = ComparedRun(method, each, _timed_again(model, arguments))
    except KeyboardInterrupt:
        if not under_way:  # there is nothing to be lost
            raise
        interrupted = True
    try:
        with stage("true errors"):
            compared = _with_errors(runs)
    except KeyboardInterrupt:
        # What is finished is not lost for what is said of it.
        interrupted = True
        compared = _with_errors(runs)
    return Comparison(compared, *size, interrupted)


def _timed_again(model: Model, arguments: Mapping[str, Any]) -> SolveResult:
    """Return a run made again, with the median of its times."""
    again = []
    for _ in range(_NUM_MORE):
        result = solve(model, **arguments)
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt  # its time is none
        again.append(result)
    return replace(again[-1], seconds=statistics.median(each.seconds for each in again))


class _Watch:
    """Hands each iteration on, and remembers whether the answer was to stop."""

    def __init__(self, callback: Callback | None) -> None:
        self._callback = callback
        self.stopped = False
        #: None where nobody looks: methods then need not stop after each iteration.
        self.see: Callback | None = None if callback is None else self._see

    def _see(self, progress: Any) -> bool:
        assert self._callback is not None
        self.stopped = bool(self._callback(progress))
        return self.stopped


def _questions(
    gamma: float | None, gammas: Iterable[float] | None, objective: Objective | None
) -> list[Objective]:
    if gammas is None:
        return [as_objective(gamma, objective)]
    if gamma is not None or objective is not None:
        given = "gamma" if gamma is not None else "objective"
        raise ValueError(f"gammas= and {given}= are two answers to one question: give one of them")
    asked = [as_objective(each) for each in gammas]
    if not asked:
        raise ValueError("gammas must hold at least one discount")
    return asked


def planned_runs(
    methods: Iterable[str] | None = None,
    *,
    gamma: float | None = None,
    gammas: Iterable[float] | None = None,
    objective: Objective | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[tuple[Objective, str, dict[str, Any]]]:
    """Return every run, and refuse before the first what is no method or option.

    Parameters
    ----------
    methods, gamma, gammas, objective, options
        As for `compare`.

    Raises
    ------
    ValueError, TypeError
        As of `compare`.
    """
    options = options or {}
    asked = _questions(gamma, gammas, objective)
    if isinstance(methods, str):
        methods = [methods]
    named = None if methods is None else list(dict.fromkeys(methods))
    if named == []:
        raise ValueError("methods must name at least one")
    planned = []
    for each in asked:
        for method in named or (AUTO, *methods_of(each)):
            given = dict(options.get(method, {}))
            if isinstance(each, Discounted):
                check_method(method, given)
            else:
                check_method_of(each, methods_of(each), method, given, given)
            planned.append((each, method, given))
    idle = [name for name in options if name not in {method for _, method, _ in planned}]
    if idle:
        raise ValueError(f"options are given for {idle[0]!r}, which is none of the methods")
    return planned


def _with_errors(runs: list[ComparedRun]) -> tuple[ComparedRun, ...]:
    """Return runs with the distance of their values from V*, as far as all of them know it."""
    found = []
    tightest: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
    for run in runs:
        if run.result is not None:
            lower, upper = run.result.lower, run.result.upper
            if id(run.objective) in tightest:
                lower = np.maximum(lower, tightest[id(run.objective)][0])
                upper = np.minimum(upper, tightest[id(run.objective)][1])
            tightest[id(run.objective)] = lower, upper
    for run in runs:
        low, high = math.nan, math.nan
        if run.result is not None:
            low, high = _error(run.result.values, *tightest[id(run.objective)])
        found.append(ComparedRun(run.method, run.objective, run.result, run.refusal, low, high))
    return tuple(found)


def _error(
    values: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[float, float]:
    """Return between what ``max |values - V*|`` lies where V* is finite; V* between the others."""
    # What is infinite is known to be so, and is no matter of accuracy.
    some = ~np.isposinf(lower)
    values, lower, upper = values[some], lower[some], upper[some]
    least = np.maximum(np.maximum(values - upper, lower - values), 0.0)
    most = np.maximum(values - lower, upper - values)
    return float(least.max(initial=0.0)), float(most.max(initial=0.0))


def _cells(run: ComparedRun) -> tuple[str, ...]:
    result = run.result
    if result is None:
        return (run.method, "", "", "", "", "", run.ended)
    return (
        run.method,
        f"{result.seconds:.3g}",
        f"{result.num_updates:,}",
        f"{result.num_sweeps:,}",
        f"{result.bound:.2g}",
        run.error,
        run.ended,
    )


def _entry(run: ComparedRun) -> dict[str, Any]:
    entry: dict[str, Any] = {"method": run.method, "objective": str(run.objective)}
    if isinstance(run.objective, Discounted):
        entry["gamma"] = run.objective.gamma
    result = run.result
    if result is None:
        return {**entry, "refusal": run.refusal}
    return {
        **entry,
        "chosen": result.method,
        "status": str(result.status),
        "message": result.message,
        "seconds": result.seconds,
        "num_iterations": result.num_iterations,
        "num_updates": result.num_updates,
        "num_sweeps": result.num_sweeps,
        "num_certificate_sweeps": result.num_certificate_sweeps,
        "bound": _finite(result.bound),
        "policy_bound": _finite(result.policy_bound),
        "error_low": _finite(run.error_low),
        "error_high": _finite(run.error_high),
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
