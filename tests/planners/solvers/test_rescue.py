"""When rounds are plain."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from planners.solvers.rescue import Rescue


def plain_after(rescue: Rescue, residuals: Iterable[float]) -> str:
    """Whether the round after each residual is plain, a letter each."""
    marks = []
    for residual in residuals:
        rescue.see(residual)
        marks.append("p" if rescue.plain else ".")
    return "".join(marks)


@pytest.mark.parametrize("num_plain", [4, 8])
@pytest.mark.parametrize("below_best", [False, True])
def test_eight_rounds_without_progress_are_followed_by_plain_ones(
    num_plain: int, below_best: bool
) -> None:
    rescue = Rescue(num_plain, below_best=below_best)
    assert not rescue.plain
    # The first residual is progress.
    first = "." * 8 + "p" * num_plain
    assert plain_after(rescue, [1.0] * len(first)) == first
    # After the last plain round, eight others.
    second = "." * 8 + "p" * 2 * num_plain
    assert plain_after(rescue, [1.0] * len(second)) == second
    third = "." * 8 + "p" * 4 * num_plain + "."
    assert plain_after(rescue, [1.0] * len(third)) == third


def test_plain_rounds_may_count() -> None:
    rescue = Rescue(8, plain_count=True)
    # One round without progress after eight plain ones.
    expected = "." * 8 + "p" * 8 + "." + "p" * 16 + "." + "p" * 32 + "."
    assert plain_after(rescue, [1.0] * len(expected)) == expected
    # Progress in the last plain round begins a new eight.
    rescue = Rescue(8, plain_count=True)
    assert plain_after(rescue, [1.0] * 16) == "." * 8 + "p" * 8
    assert plain_after(rescue, [0.5]) == "."
    assert plain_after(rescue, [0.5] * 8) == "." * 7 + "p"


def test_a_tenth_is_progress_and_small_steps_add_up_or_not() -> None:
    quick = [0.89**i for i in range(40)]
    slow = [0.97**i for i in range(40)]
    for below_best in (False, True):
        assert "p" not in plain_after(Rescue(4, below_best=below_best), quick)
    assert "p" not in plain_after(Rescue(4), slow)
    assert plain_after(Rescue(4, below_best=True), slow)[:13] == "." * 8 + "p" * 4 + "."


def test_what_is_no_number_is_no_progress() -> None:
    for value in (float("nan"), float("inf")):
        assert plain_after(Rescue(4), [value] * 12) == "." * 7 + "p" * 4 + "."
        assert plain_after(Rescue(4), [1.0, *[value] * 8, 0.5]) == "." * 8 + "pp"
