"""One call, one picture: what `SolveResult.plot` draws."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import check_choice, check_integer
from aggmaze.grid import Grid
from aggmaze.layouts.layout import Layout
from planners.adapters import as_model, is_by_rows
from planners.boards import board_of
from planners.distributed.result import PartResult
from planners.graphs import MOST_NODES
from planners.objective import AverageCost, FiniteHorizon
from planners.plotting.canvas import check_matplotlib
from planners.plotting.convergence import plot_convergence
from planners.plotting.graph import plot_graph
from planners.plotting.megastates import plot_megastates
from planners.plotting.occupancy import plot_occupancy
from planners.plotting.policies import plot_path, plot_policy
from planners.plotting.q_values import plot_action_gaps, plot_q_values
from planners.plotting.slices import plot_slices
from planners.plotting.thinned import plot_thinned
from planners.plotting.values import plot_values
from planners.plotting.words import in_digits
from planners.policies import greedy_path, q_values
from planners.result import SolveResult

#: What a result can be drawn as.
KINDS = (
    "values",
    "policy",
    "q_values",
    "megastates",
    "path",
    "action_gaps",
    "occupancy",
    "slices",
    "graph",
    "convergence",
)


def plot_result(
    result: SolveResult,
    source: Any = None,
    what: str | None = None,
    *,
    step: int = 0,
    start: int | None = None,
    title: str | None = None,
    **options: Any,
) -> Any:
    """Draw a result: values with policy and greedy path, or something else of it.

    Parameters
    ----------
    result : SolveResult
    source : Layout, gymnasium.Env, Model, or what else `as_model` takes, optional
        What was solved.  It may be left out for "convergence".  Of a maze by rows
        (`aggmaze.model_by_rows`) there are "values" and "policy", thinned out to a screen.
    what : str, optional
        One of `KINDS`; "values" by default, "convergence" without a source, and "graph" for models
        of up to 60 states that have no map.  Values of an `AverageCost` are the biases where the
        mean cost of a step is the same from everywhere.
    step : int
        Of a `FiniteHorizon`: which step.
    start : int, optional
        Where the greedy path starts: the likeliest first state by default.
    title : str, optional
        By default what was solved, how, and the bound.
    **options
        As for the function of that name in `planners.plotting`.

    Returns
    -------
    Axes, or ndarray of Axes

    Raises
    ------
    ValueError, TypeError
        If there is no such picture, or the source is not what was solved.
    ModuleNotFoundError
        Without matplotlib: it says what to install.
    """
    check_matplotlib()
    given: Any = result
    if not isinstance(given, SolveResult):
        hint = ""
        if isinstance(given, PartResult):
            hint = ", of one process: store the parts, and draw what planners.open_result opens"
        raise TypeError(f"result must be a SolveResult, got {type(given).__name__}{hint}")
    if what is not None:
        check_choice("what", what, KINDS)
    if title is None:
        title = _title(result, source)
    if what == "convergence" or (what is None and source is None):
        return plot_convergence(result, title=title, **options)
    if source is None:
        raise TypeError(f"what={what!r} needs the environment or the model that was solved")
    if is_by_rows(source) and isinstance(getattr(source, "grid", None), Grid):
        first = getattr(source, "start", None) if start is None else start
        options = {"goal": getattr(source, "goal", None), "start": first, **options}
        return plot_thinned(result, source.grid, what or "values", title=title, **options)
    board = board_of(source)
    layout = isinstance(source, Layout)
    model = None if layout else as_model(source)
    count = result.values.shape[-1]
    known = board.num_states if model is None and board is not None else None
    if model is not None:
        known = model.num_listed_states
    if known != count:
        raise ValueError(f"the result has {count} states, and what was given has {known}")
    values, policy = result.values, result.policy
    if isinstance(result.objective, FiniteHorizon):
        step = check_integer("step", step, below=len(values))
        values, policy = values[step], policy[min(step, len(policy) - 1)]
    elif step:
        raise ValueError(f"step must be 0 where values are those of every step, got {step}")
    if what is None:
        what = "values"
        if board is None and count <= MOST_NODES and model is not None:
            what = "graph"
    if what in ("q_values", "action_gaps", "occupancy", "graph") and layout:
        raise TypeError(f"what={what!r} needs the environment or the model, not its layout")
    finite = values[np.isfinite(values)]
    pays = bool(len(finite) and finite.max() <= 0 and finite.min() < 0)
    average = isinstance(result.objective, AverageCost)
    label = None
    if average:
        values, label = _of_average(result)
    common: dict[str, Any] = {"title": title, **options}
    if what in ("values", "megastates", "slices", "q_values", "graph"):
        common.setdefault("returns", pays and not average)
        common.setdefault("label", label)
    path = None
    if what in ("values", "policy", "path") and model is not None and board is not None:
        path = _path(result, source, model, policy, start)
    if what == "values":
        return plot_values(source, values, policy, path, **common)
    if what == "policy":
        return plot_policy(source, policy, path, **common)
    if what == "path":
        if isinstance(result.objective, FiniteHorizon):
            raise ValueError(
                "the policy of a finite horizon is another at each step, and has no greedy path: "
                "'policy' with step= draws that of one step"
            )
        if board is None:
            raise ValueError("a path is drawn on a map, and the states of this model are on none")
        if path is None:
            raise TypeError("what='path' needs the environment or the model, not its layout")
        return plot_path(source, path, **common)
    if what == "megastates":
        if result.labels is None:
            raise ValueError(
                f"{result.method} made no mega-states: adaptive_aggregation does, for one"
            )
        return plot_megastates(source, result.labels, values, **common)
    if what == "slices":
        return plot_slices(source, values, **common)
    if what == "graph":
        return plot_graph(source, values, policy, **common)
    if what == "occupancy":
        return plot_occupancy(source, result, **common)
    table = q_values(source, result)
    if table.ndim == 3:
        table = table[min(step, len(table) - 1)]
    draw = plot_q_values if what == "q_values" else plot_action_gaps
    return draw(source, table, **common)


def _of_average(result: SolveResult) -> tuple[NDArray[np.float64], str]:
    """Return what is drawn of average costs, and what it is: the bias where the gain is all one."""
    if result.bias is not None and result.lower.max() <= result.upper.min():
        mean = f"the mean of {in_digits(float(result.gain.mean()), 4)} a step"
        return result.bias, f"bias: cost beyond {mean} (unit of costs)"
    return result.values, "mean cost of a step (unit of costs)"


def _path(result: SolveResult, source: Any, model: Any, policy: Any, start: int | None) -> Any:
    if isinstance(result.objective, FiniteHorizon):
        return None
    first = int(np.argmax(model.initial)) if start is None else start
    first = check_integer("start", first, below=model.num_listed_states)
    full = np.zeros(model.num_states, dtype=np.int64)
    full[: len(policy)] = policy
    path = greedy_path(model, full, first)
    if path[-1] < model.num_listed_states:
        return path
    # The end that a model adds behind its listed states is where an episode ended.
    end = _ended_in(source, int(path[-2]), int(full[path[-2]]))
    return path[:-1] if end is None else np.append(path[:-1], end)


def _ended_in(source: Any, state: int, action: int) -> int | None:
    """Return the state in which a step most likely ends an episode, of a Gymnasium ``P``."""
    table: Any = getattr(source.unwrapped, "P", None) if isinstance(source, gym.Env) else None
    if table is None:
        return None
    ends = [(chance, following) for chance, following, _, over in table[state][action] if over]
    return max(ends)[1] if ends else None


def _title(result: SolveResult, source: Any) -> str:
    spec = getattr(source, "spec", None) if isinstance(source, gym.Env) else None
    name = "" if spec is None else f"{spec.id}, "
    return f"{name}{result.objective}: {result.method}, bound {result.bound:.2g}"
