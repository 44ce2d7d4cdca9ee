"""A few hundred of the random models that `scripts/check_truth.py` makes without end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planners
from tests.planners import fuzz

SEED = 4


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_nothing_false(first: int) -> None:
    assert fuzz.look(SEED, first, 50, time_limit=60.0) == []


def told() -> str:
    found = fuzz.look(SEED, 0, 20, time_limit=60.0)
    return "\n".join(fault for _, _, faults in found for fault in faults)


@pytest.mark.parametrize(
    ("false", "fault"),
    [
        ({"bound": 0.0}, "> bound 0.0"),
        ({"policy_bound": -1.0}, "> policy bound -1.0"),
        ({"status": planners.Status.CONVERGED}, "converged ("),
        ({"status": planners.Status.STOPPED_SHORT}, "stopped_short ("),
        ({"bound": float("nan")}, "> bound nan"),
        ({"message": "time limit of 60 s reached"}, "does not end"),
    ],
)
def test_false_results_are_found(
    false: dict[str, Any], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve = planners.solve
    monkeypatch.setattr(planners, "solve", lambda *a, **k: replace(solve(*a, **k), **false))
    assert fault in told()


def test_values_that_are_no_numbers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = planners.solve

    def spoilt(*arguments: Any, **options: Any) -> planners.SolveResult:
        result = solve(*arguments, **options)
        return replace(result, values=np.full_like(result.values, np.nan))

    monkeypatch.setattr(planners, "solve", spoilt)
    assert "no numbers with a bound of" in told()


def test_evaluations_that_are_off_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = planners.evaluate
    monkeypatch.setattr(planners, "evaluate", lambda *a: (1 + 1e-12) * evaluate(*a))
    assert "evaluate: " in told()


def test_runs_that_take_too_long_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "OVERRUN", -60.0)
    assert "s at a time limit of 60 s" in told()
