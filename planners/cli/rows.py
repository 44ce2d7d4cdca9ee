"""What is printed of results and episodes, in lines with a name each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rich.table import Table

from aggmaze.models.model import Model
from planners.cli.app import out
from planners.distributed.result import PartResult
from planners.kernels.vectors import finite_norm
from planners.objective import AverageCost, FiniteHorizon, Objective, TotalCost
from planners.result import SolveResult
from planners.rollout import Rollouts

# Width of the names of what is printed of a result, so that its parts stand below each other.
_NAMES_WIDTH = 11


Rows = list[tuple[str, str]]


def print_rows(rows: Rows) -> None:
    """Print names and texts, the texts below each other."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True, width=_NAMES_WIDTH)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    out.print(table, highlight=False)


def result_rows(env_id: str, model: Model, result: SolveResult) -> Rows:
    """Return what is said of a result.

    Parameters
    ----------
    env_id : str
        What was solved.
    model : Model
    result : SolveResult
    """
    size = finite_norm(result.values)
    return [
        *method_rows(env_id, model.num_actions, result.values.shape[-1], result),
        *_answer_rows(model, result),
        bound_row(result.bound, size),
    ]


def method_rows(
    env_id: str, num_actions: int, num_states: int, result: SolveResult | PartResult
) -> Rows:
    """Return what is said of how a result was found.

    Parameters
    ----------
    env_id : str
        What was solved.
    num_actions, num_states : int
        Of the model.
    result : SolveResult or PartResult
    """
    return [
        ("environment", f"{env_id}, {result.objective}"),
        ("method", f"{result.method}: {result.status}, {result.message}"),
        *([("chosen for", result.reason)] if result.reason else []),
        ("states", f"{num_states:,} with {num_actions} actions"),
        (
            "updates",
            f"{result.num_updates:,} in {result.num_iterations:,} iterations, "
            f"with {result.num_sweeps:,} sweeps over all states",
        ),
        ("seconds", f"{result.seconds:.3g}"),
    ]


def bound_row(bound: float, size: float) -> tuple[str, str]:
    """Return what is said of a bound.

    Parameters
    ----------
    bound : float
    size : float
        The largest size of a value.
    """
    relative = f" ({bound / size:.2g} of max|V| = {size:.6g})" if size > 0 else ""
    return "bound", f"|V - V*| <= {bound:.3g}{relative}"


def _answer_rows(model: Model, result: SolveResult) -> Rows:
    """Return what an objective is about in a line: of discounted costs nothing is said here."""
    initial = model.initial[: model.num_listed_states]
    if isinstance(result.objective, AverageCost):
        low, high = float(result.lower.min()), float(result.upper.max())
        if high - low <= 2 * result.bound:
            return [("gain", f"{result.gain[0]:.6g} a step, from every state")]
        start = float(initial @ result.gain)
        return [
            ("gain", f"{start:.6g} a step from the start, {low:.6g} to {high:.6g} by state"),
        ]
    if isinstance(result.objective, FiniteHorizon):
        return [("cost", f"{float(initial @ result.values[0]):.6g} from the start")]
    if isinstance(result.objective, TotalCost):
        count = int(np.count_nonzero(result.infinite))
        start = float(initial[initial > 0] @ result.values[initial > 0])
        rows = [("cost", f"{start:.6g} from the start")]
        if count:
            rows.append(
                ("infinite", f"{count:,} states, from which no policy surely reaches an end")
            )
        return rows
    return []


def rollout_rows(rolled: Rollouts, limit: int, objective: Objective) -> Rows:
    """Return what is said of episodes.

    Parameters
    ----------
    rolled : Rollouts
    limit : int
        Of their steps.
    objective : Objective
    """
    count = len(rolled.returns)
    if rolled.promised is None:
        return [] if count else [("return", "none: the time was up before the first episode")]
    of = " a step" if isinstance(objective, AverageCost) else ""
    promised = f"{rolled.promised:.6g}{of} promised"
    if count == 0:
        return [("return", f"{promised}; the time was up within an episode")]
    assert rolled.discounted_returns is not None
    steps = (
        f"{rolled.lengths.mean():.1f} steps, {100 * rolled.successes.mean():.3g} % of the episodes "
        "terminated"
    )
    observed = f"observed in {count:,} episodes of at most {limit:,} steps; {promised}"
    if isinstance(objective, AverageCost):
        return [
            ("return", f"{_mean(rolled.mean_rewards)}{of}, {observed}"),
            ("", f"{_mean(rolled.returns)} in all, {steps}"),
        ]
    if objective.gamma == 1:
        return [("return", f"{_mean(rolled.discounted_returns)} {observed}"), ("", steps)]
    return [
        ("return", f"{_mean(rolled.discounted_returns)} discounted, {observed}"),
        ("", f"{_mean(rolled.returns)} undiscounted, {steps}"),
    ]


def _mean(samples: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    """Format a mean with the half width of its 95 % interval, where samples differ."""
    text = f"{samples.mean():.6g}"
    if len(samples) > 1 and np.ptp(samples) > 0:
        text += f" +- {1.96 * samples.std(ddof=1) / math.sqrt(len(samples)):.2g}"
    return text
