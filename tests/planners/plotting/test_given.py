"""What pictures refuse, in words that say what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import planners
from planners.plotting import (
    plot_action_gaps,
    plot_convergence,
    plot_graph,
    plot_megastates,
    plot_occupancy,
    plot_path,
    plot_policy,
    plot_q_values,
    plot_slices,
    plot_values,
)
from tests.planners.plotting.runs import LINE, MAZE

RESULT = planners.solve(MAZE, gamma=0.95)
HORIZON = planners.solve(MAZE, objective=planners.FiniteHorizon(3))
Q = planners.q_values(MAZE, RESULT)


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: plot_values(MAZE, RESULT), TypeError, r"got SolveResult: draw its \.values"),
        (lambda: plot_slices(MAZE, None), ValueError, r"values must have shape \(30,\)"),
        (lambda: plot_values(MAZE, "here"), TypeError, "values must be numbers, one a state"),
        (lambda: plot_graph(LINE, RESULT), TypeError, r"draw its \.values"),
        (
            lambda: plot_megastates(MAZE, np.zeros(30, int), HORIZON.values),
            ValueError,
            r"of a finite horizon draw one step, values\[t\]",
        ),
        (
            lambda: plot_policy(MAZE, HORIZON.policy),
            ValueError,
            r"of a finite horizon draw one step, policy\[t\]",
        ),
        (lambda: plot_policy(MAZE, RESULT), TypeError, r"got SolveResult: draw its \.policy"),
        (
            lambda: plot_policy(MAZE, Q),
            ValueError,
            "policy must hold the probability of each action, and in state 1 has",
        ),
        (lambda: plot_policy(MAZE, np.zeros(30)), ValueError, r"must hold actions in \[0, 4\)"),
        (lambda: plot_q_values(MAZE, RESULT), TypeError, "Q must be numbers, as planners.q_values"),
        (lambda: plot_action_gaps(MAZE, RESULT), TypeError, "Q must be numbers"),
        (
            lambda: plot_q_values(MAZE, planners.q_values(MAZE, HORIZON)),
            ValueError,
            r"Q must have shape \(30, 4\).*draw one step, Q\[t\]",
        ),
        (lambda: plot_values(LINE, np.zeros(7), None, [1]), ValueError, "on a map"),
        (lambda: plot_policy(LINE, np.zeros(7, int), [1]), ValueError, "on a map"),
        (lambda: HORIZON.plot(MAZE, "path"), ValueError, "has no greedy path"),
        (
            lambda: plot_slices(MAZE, RESULT.values, pairs=(0, 1)),  # type: ignore[arg-type]
            ValueError,
            "at least one pair of axes, such as",
        ),
        (lambda: plot_policy(MAZE, None), TypeError, "policy must be actions, one a state, got"),
        (
            lambda: plot_convergence({"a": RESULT}, errors={"a": RESULT.values}),  # type: ignore[dict-item]
            TypeError,
            r"errors\['a'\] must be an ErrorTrace, got ndarray",
        ),
        (lambda: plot_convergence(7), TypeError, "results must be SolveResults, got int"),  # type: ignore[arg-type]
        (
            lambda: plot_occupancy(MAZE.get_wrapper_attr("layout"), RESULT),
            ValueError,
            "give the environment instead of its layout",
        ),
    ],
)
def test_what_is_given_is_named(
    draw: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        draw()


DRAWN: dict[str, Callable[[Any], Any]] = {
    "values": lambda ax: plot_values(MAZE, RESULT.values, ax=ax),
    "bars": lambda ax: plot_values(LINE, np.zeros(7), ax=ax),
    "q_values": lambda ax: plot_q_values(MAZE, Q, ax=ax),
    "policy": lambda ax: plot_policy(MAZE, RESULT.policy, ax=ax),
    "path": lambda ax: plot_path(MAZE, [29], ax=ax),
    "megastates": lambda ax: plot_megastates(MAZE, np.zeros(30, int), ax=ax),
    "slices": lambda ax: plot_slices(MAZE, RESULT.values, ax=ax),
    "occupancy": lambda ax: plot_occupancy(MAZE, RESULT, ax=ax),
    "graph": lambda ax: plot_graph(LINE, np.zeros(7), ax=ax),
    "convergence": lambda ax: plot_convergence(RESULT, ax=ax),
}


@pytest.mark.parametrize("what", DRAWN)
def test_only_axes_are_drawn_in(what: str) -> None:
    for ax in ("here", Figure()):
        with pytest.raises(TypeError, match="ax must be"):
            DRAWN[what](ax)
    with pytest.raises((TypeError, ValueError), match="ax must"):
        DRAWN[what](Figure().subplots(1, 2))


@pytest.mark.parametrize("what", ["values", "convergence"])
def test_a_part_is_not_drawn_as_the_whole(what: str) -> None:
    from planners.plotting.overview import plot_result
    from tests.planners.distributed.test_result import part

    with pytest.raises(TypeError, match=r"planners\.open_result opens"):
        plot_result(part(), MAZE, what)  # type: ignore[arg-type]
    # What is noted of a run is that of the whole of it.
    axes = plot_convergence(replace(part(), num_states=10), against="sweeps")
    assert axes.lines[0].get_xdata().max() == part().history.num_updates[-1] / 10
