"""What tells runs apart: numbers of any type, arrays, and functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planners
from planners.fingerprints import Traced, fact
from tests.planners.reference import random_moves

MODEL = random_moves(0, 60, 4, p=0.9)


def solve(path: Path | None = None, **more: Any) -> planners.SolveResult:
    asked = {"gamma": 0.9, "method": "adaptive_aggregation", "epsilon": 0.2} | more
    result = planners.solve(MODEL, checkpoint=path, **asked)
    assert isinstance(result, planners.SolveResult)
    return result


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((3, np.int8(3), np.uint64(3), np.array(3)), 3),
        ((0.5, np.float32(0.5), np.float16(0.5), Fraction(1, 2), np.array(0.5)), 0.5),
        ((True, np.bool_(True)), True),
        (("t", np.str_("t")), "t"),
        ((math.inf, np.float32(np.inf)), "inf"),
        ((None,), None),
    ],
)
def test_numbers_of_any_type(values: tuple[Any, ...], expected: Any) -> None:
    for value in values:
        assert fact(value) == expected
        assert type(fact(value)) is type(expected) or isinstance(value, np.str_)


def test_arrays_are_known_by_their_numbers() -> None:
    same = [np.array([1, 2], dtype=kind) for kind in (np.int8, np.uint32, np.int64)]
    assert len({fact(array) for array in [*same, [1, 2]]}) == 1
    assert fact([0.5, 1.5]) == fact(np.array([0.5, 1.5], dtype=np.float32))
    assert fact([0.5, 1.5]) == fact([Fraction(1, 2), Fraction(3, 2)])
    assert fact([0.5, 1.5]) != fact([0.5, 1.0])


def test_functions_that_end_somewhere_can_be_told() -> None:
    widths = [0.5, 0.4, 0.3]
    assert fact(lambda c: widths[c - 1]) == fact(lambda c: [0.5, 0.4, 0.3][c - 1])
    assert fact(lambda c: widths[c - 1]) != fact(lambda c: [0.5, 0.4, 0.2][c - 1])
    assert fact(lambda c: widths[c - 1]) != fact(lambda c: [0.5, 0.4, 0.3, 0.2][c - 1])


def test_a_trace_is_of_what_was_asked_for() -> None:
    first = Traced(lambda t: 1.0 / t)
    assert first.trace() is None
    assert first.follows(None)
    for t in (5, 3, 9):
        assert first(t) == 1.0 / t
    trace = first.trace()
    assert trace is not None
    assert trace[:2] == [3, 9]
    for other, equal in (
        (lambda t: 1 / t, True),
        (lambda t: 1 / t if 3 <= t <= 9 else 7.0, True),
        (lambda t: 1 / t if t != 9 else 7.0, False),
        (lambda t: 1 / t if t != 4 else 7.0, False),
        (lambda t: [][t], False),
    ):
        function = Traced(other)
        assert function.follows(trace) == equal
        assert function.trace() == (trace if equal else None)


Schedule = Callable[[int], float]


@pytest.mark.parametrize("name", ["step_size", "epsilon"])
def test_schedules_that_differed_in_what_was_used_are_refused(name: str, tmp_path: Path) -> None:
    """The two are equal in 32 values; the run that is stopped uses 100 of them."""

    def first(t: int) -> float:
        return 0.1 + 0.5 / t

    def second(t: int) -> float:
        return first(t) if t < 90 else 0.3

    options: dict[str, Any] = {"num_global": 1, "num_aggregated": 1, "num_iterations": 240}

    def stop(progress: planners.Progress) -> bool:
        return progress.iteration == 200

    for before, after in ((first, second), (second, first)):
        path = tmp_path / before.__name__
        solve(path, callback=stop, **options, **{name: before})
        with pytest.raises(ValueError, match=f"{name} had other values from 1 to 100"):
            solve(path, **options, **{name: after})
        whole = solve(**options, **{name: before})
        np.testing.assert_array_equal(solve(path, **options, **{name: before}).values, whole.values)


@pytest.mark.parametrize("name", ["step_size", "epsilon"])
def test_schedules_that_differ_in_what_is_to_come_give_the_run_of_the_new_one(
    name: str, tmp_path: Path
) -> None:
    def first(t: int) -> float:
        return 0.1 + 0.5 / t

    def second(t: int) -> float:
        return first(t) if t < 90 else 0.9

    options: dict[str, Any] = {"num_global": 1, "num_aggregated": 1, "num_iterations": 240}
    solve(tmp_path, callback=lambda p: p.iteration == 170, **options, **{name: first})
    assert not np.array_equal(
        solve(**options, **{name: first}).values, solve(**options, **{name: second}).values
    )
    again = solve(tmp_path, **options, **{name: second})
    assert "resumed at iteration 170" in again.message
    np.testing.assert_array_equal(again.values, solve(**options, **{name: second}).values)
    # What has now been used is known from the beginning on.
    with pytest.raises(ValueError, match=f"{name} had other values from 1 to 120"):
        solve(tmp_path, **options, **{name: first})


def test_seeds_and_options_of_numpy_are_the_same_run(tmp_path: Path) -> None:
    plain: dict[str, Any] = {
        "seed": 3, "epsilon": 0.25, "num_global": 100, "num_aggregated": 100, "first_step": 200,
        "num_iterations": 450, "step_size": 0.5,
    }  # fmt: skip
    typed: dict[str, Any] = {
        "seed": np.int64(3), "epsilon": np.float32(0.25), "num_global": np.int8(100),
        "num_aggregated": np.int8(100), "first_step": np.uint8(200),
        "num_iterations": np.int16(450), "step_size": np.float16(0.5),
    }  # fmt: skip
    whole = solve(**plain)
    for number, (before, after) in enumerate([(typed, plain), (plain, typed)]):
        path = tmp_path / str(number)
        kept = planners.Checkpoint(
            path, every_seconds=np.float32(100), every_iterations=np.int8(70)
        )
        solve(kept, callback=lambda p: p.iteration == 333, gamma=np.float64(0.9), **before)  # type: ignore[arg-type]
        again = solve(path, **after)
        assert "resumed at iteration 333" in again.message
        np.testing.assert_array_equal(again.values, whole.values)


@pytest.mark.parametrize(
    "seed", [np.random.SeedSequence(3), np.random.default_rng(3), [1, 2], 1.0, "3", None]
)
def test_other_seeds_are_refused(seed: Any, tmp_path: Path) -> None:
    for path in (None, tmp_path / "kept"):
        with pytest.raises(TypeError, match="seed must be an integer at least 0, got"):
            solve(path, seed=seed)
    assert not (tmp_path / "kept").exists()
