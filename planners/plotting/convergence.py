"""How results came about: residual, bound and error against updates, sweeps or seconds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_choice
from planners.distributed.result import PartResult
from planners.plotting.canvas import CURVES, new_figure, set_title
from planners.plotting.given import one_axes
from planners.record import Progress
from planners.result import SolveResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What curves are drawn against, and what an axis says of it.
AGAINST = {
    "updates": "updates (backups of one state)",
    "sweeps": "sweeps (updates divided by the number of states)",
    "seconds": "seconds",
    "iterations": "iterations",
}
#: What curves tell, with the line of each.
SHOWN: dict[str, tuple[Any, str]] = {
    "error": ("-", "error: max |V - V*|"),
    "bound": ("--", "certified bound"),
    "residual": (":", "residual: max |TV - V|"),
}


class ErrorTrace:
    """A callback that notes the true error of each iteration, for `plot_convergence`.

    Parameters
    ----------
    optimum : SolveResult, or array_like of float, shape (S,)
        V*, as near as it is known.  Smaller errors than the bound of a result, or than rounding,
        cannot be told, and are noted as that.

    Examples
    --------
    >>> import gymnasium as gym, aggmaze, planners
    >>> from planners.plotting import ErrorTrace, plot_convergence
    >>> env = gym.make("TerrainMaze-v0")
    >>> trace = ErrorTrace(planners.solve(env, gamma=0.95, tol=1e-10))
    >>> result = planners.solve(env, gamma=0.95, method="value_iteration", callback=trace)
    >>> drawn = plot_convergence({"value iteration": result}, errors={"value iteration": trace})
    """

    def __init__(self, optimum: SolveResult | ArrayLike) -> None:
        values = optimum.values if isinstance(optimum, SolveResult) else optimum
        self._optimum = np.asarray(values, dtype=np.float64)
        self._finite = np.isfinite(self._optimum)
        largest = float(np.abs(self._optimum[self._finite]).max(initial=0.0))
        known = optimum.bound if isinstance(optimum, SolveResult) else 0.0
        self._least = max(known, float(np.spacing(max(largest, 1e-300))))
        self._rows: list[tuple[int, int, float, float]] = []

    def __call__(self, progress: Progress) -> None:
        """Note the error of an iteration."""
        values = progress.values
        if values.shape != self._optimum.shape:
            raise ValueError(
                f"the optimum has shape {self._optimum.shape}, and the values {values.shape}"
            )
        error = np.abs(values - self._optimum)[self._finite].max(initial=0.0)
        self._rows.append(
            (
                progress.iteration,
                progress.num_updates,
                progress.seconds,
                max(float(error), self._least),
            )
        )

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def iteration(self) -> NDArray[np.int64]:
        """Which iterations were noted, counted from 1, shape (N,)."""
        return np.array([row[0] for row in self._rows], dtype=np.int64)

    @property
    def num_updates(self) -> NDArray[np.int64]:
        """Backups made until then, shape (N,)."""
        return np.array([row[1] for row in self._rows], dtype=np.int64)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Time taken until then, that of the callback included, shape (N,)."""
        return np.array([row[2] for row in self._rows], dtype=np.float64)

    @property
    def error(self) -> NDArray[np.float64]:
        """Sup norm of V - V*, in the unit of the costs, shape (N,)."""
        return np.array([row[3] for row in self._rows], dtype=np.float64)


def plot_convergence(
    results: SolveResult | Mapping[str, SolveResult] | Iterable[SolveResult],
    *,
    against: str = "updates",
    show: str | Sequence[str] | None = None,
    errors: Mapping[str, ErrorTrace] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw how near several runs were to the optimum, while they ran.

    Parameters
    ----------
    results : SolveResult, mapping of str to SolveResult, or iterable of SolveResult
        With the names of a mapping, else of the methods.  A `PartResult` will do.
    against : {"updates", "sweeps", "seconds", "iterations"}
        What goes to the right.
    show : str or sequence of str, optional
        Some of "error" (a full line), "bound" (dashed) and "residual" (dotted).  By default error
        where there are ``errors``, and bounds; residuals where a run has no bound on the way.
    errors : mapping of str to ErrorTrace, optional
        True errors of the runs of those names.
    ax : Axes, optional
        Where to draw; a new figure by default.
    title : str, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If there is nothing to draw, or something is not one of those listed.
    TypeError
        If the results are something else.
    """
    check_choice("against", against, AGAINST)
    named = _named(results)
    traces = dict(errors or {})
    for name, trace in traces.items():
        if not isinstance(trace, ErrorTrace):
            raise TypeError(f"errors[{name!r}] must be an ErrorTrace, got {type(trace).__name__}")
    unknown = [name for name in traces if name not in named]
    if unknown:
        raise ValueError(
            f"errors has {unknown[0]!r}, which is none of the results: {', '.join(named)}"
        )
    wanted: tuple[str, ...] | None = None
    if show is not None:
        wanted = (show,) if isinstance(show, str) else tuple(show)
        for each in wanted:
            check_choice("show", each, SHOWN)
    ax = one_axes(ax)
    if ax is None:
        ax = new_figure(6.4, 4.2).add_subplot()
    drawn: set[str] = set()
    for (name, result), color in zip(named.items(), itertools.cycle(CURVES), strict=False):
        curves = _curves(result, traces.get(name), against, wanted)
        first = True
        for what, (x, y) in curves.items():
            few = len(x) <= 12
            ax.plot(
                x,
                y,
                SHOWN[what][0],
                color=color,
                marker="o" if few else None,
                markersize=3.5,
                linewidth=1.7 if what == "error" else 1.3,
                label=f"{name}" if first else None,
            )
            first = False
            drawn.add(what)
    if not drawn:
        raise ValueError(
            "there is nothing to draw: the runs noted none of "
            f"{', '.join(wanted or SHOWN)}; certify='every' notes a bound at each iteration, and "
            "an ErrorTrace the error"
        )
    ax.set_yscale("log")
    if against in ("updates", "seconds") and _spread(ax) > 30:
        ax.set_xscale("log")
    ax.set_xlabel(AGAINST[against])
    words = [words for what, (_, words) in SHOWN.items() if what in drawn]
    ax.set_ylabel(f"{words[0] if len(words) == 1 else 'distance to V*'} (unit of costs)")
    ax.grid(which="major", alpha=0.35, linewidth=0.8)
    ax.set_axisbelow(True)
    _add_keys(ax, len(named), drawn)
    set_title(ax, title)
    return ax


def _named(results: Any) -> dict[str, SolveResult | PartResult]:
    """Return results by their names, those of the methods where there are no others."""
    if isinstance(results, SolveResult | PartResult):
        results = [results]
    elif not isinstance(results, Iterable):
        raise TypeError(f"results must be SolveResults, got {type(results).__name__}")
    if isinstance(results, Mapping):
        named = dict(results)
    else:
        named = {}
        for result in results:
            method = getattr(result, "method", type(result).__name__)
            name, number = method, 1
            while name in named:
                number += 1
                name = f"{method} {number}"
            named[name] = result
    if not named:
        raise ValueError("results must hold at least one")
    for name, result in named.items():
        if not isinstance(result, SolveResult | PartResult):
            kind = type(result).__name__
            raise TypeError(f"results[{name!r}] must be a SolveResult, got {kind}")
    return named


def _curves(
    result: SolveResult | PartResult,
    trace: ErrorTrace | None,
    against: str,
    wanted: tuple[str, ...] | None,
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return the curves of a run: where they have a number above 0."""
    history = result.history
    count = result.num_states if isinstance(result, PartResult) else result.values.shape[-1]
    found: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
    if trace is not None and (wanted is None or "error" in wanted):
        found["error"] = _noted(trace, trace.error, against, count)
    for what, numbers in (("bound", history.bound), ("residual", history.residual)):
        if wanted is not None and what not in wanted:
            continue
        curve = _noted(history, numbers, against, count)
        if wanted is None and what == "residual" and len(found.get("bound", ((), ()))[0]) > 1:
            continue
        found[what] = curve
    return {what: curve for what, curve in found.items() if len(curve[0])}


def _noted(
    notes: Any, numbers: NDArray[np.float64], against: str, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x = {
        "updates": notes.num_updates.astype(np.float64),
        "sweeps": notes.num_updates / max(count, 1),
        "seconds": notes.seconds,
        "iterations": notes.iteration.astype(np.float64),
    }[against]
    shown = np.isfinite(numbers) & (numbers > 0)
    return x[shown], numbers[shown]


def _spread(ax: Axes) -> float:
    """Return how many times the largest of what is drawn to the right is the least."""
    every = np.concatenate([np.asarray(line.get_xdata(), dtype=np.float64) for line in ax.lines])
    every = every[every > 0]
    return float(every.max() / every.min()) if len(every) else 1.0


def _add_keys(ax: Axes, count: int, drawn: set[str]) -> None:
    """Add a key of the runs by their colours, and one of what is drawn by its lines."""
    from matplotlib import rcParams
    from matplotlib.lines import Line2D

    handles, labels = ax.get_legend_handles_labels()
    curves: list[Any] = list(handles)
    colours = [Line2D([], [], color=curve.get_color(), linewidth=2.5) for curve in curves]
    lines = [
        Line2D([], [], color=rcParams["text.color"], linestyle=style, linewidth=1.5)
        for what, (style, _) in SHOWN.items()
        if what in drawn
    ]
    words = [words for what, (_, words) in SHOWN.items() if what in drawn]
    if count > 1 or len(drawn) > 1:
        ax.legend(
            [*colours, *lines],
            [*labels, *words],
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
            fontsize=8,
            frameon=False,
        )
