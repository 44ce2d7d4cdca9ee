"""Which claims hold: made-up runs for each answer, put through what reports them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from planners.experiments import (
    EXPERIMENTS,
    bounds,
    cartpole,
    efficiency,
    epsilon,
    robustness,
    scaling,
)
from planners.experiments.reporting import published, verdicts
from planners.experiments.reporting.report import Section, opening_lines
from planners.experiments.reporting.statistics import Estimate, estimate
from planners.experiments.study import (
    ANSWERS,
    FAILS,
    HOLDS,
    HOLDS_IN_PART,
    NOT_TESTED,
    Configuration,
    Run,
    Summary,
    Verdict,
)

#: What a made-up run finds, by its configuration.
Found = Callable[[Configuration], Any]


def made_up(
    name: str, args: Any, found: Found, *, spread: float = 0.01, seconds: Any = None
) -> list[Run]:
    """Runs whose numbers are those of ``found``, times something near 1 in each repetition."""
    runs = []
    for configuration in EXPERIMENTS[name].configurations(args):
        for repetition in range(args.repetitions):
            factor = 1 + spread * (repetition - (args.repetitions - 1) / 2)
            values = times(found(configuration), factor)
            runs.append(Run(configuration, repetition, values, seconds or {}))
    return runs


def times(values: Any, factor: float) -> Any:
    if isinstance(values, dict):
        return {key: times(value, factor) for key, value in values.items()}
    if isinstance(values, list):
        return [times(value, factor) for value in values]
    return values * factor if isinstance(values, float) else values


def answers(name: str, args: Any, runs: list[Run]) -> list[str]:
    summary = EXPERIMENTS[name].summarize(args, runs)
    assert all(v.answer in ANSWERS and v.evidence for v in summary.verdicts)
    return [v.answer for v in summary.verdicts]


def errors(number: float) -> dict[str, dict[str, float]]:
    return {"phase from 1": {"last iteration": number}}


# ---------------------------------------------------------------------------------------------
# Epsilon.

LARGE = epsilon.Args(shape=(500, 500), repetitions=5)


def by_epsilon(**slopes: float) -> Found:
    """Errors that go with a power of epsilon, by kind."""

    def found(configuration: Configuration) -> Any:
        slope = slopes[configuration["kind"]]
        return {"errors": [errors(4.0 * e**slope) for e in configuration["epsilons"]]}

    return found


@pytest.mark.parametrize(
    ("args", "slopes", "expected"),
    [
        (LARGE, {"terrain": 1.0, "standard": 1.0}, HOLDS),
        (LARGE, {"terrain": 0.5, "standard": 1.0}, HOLDS_IN_PART),
        (LARGE, {"terrain": 0.5, "standard": 2.0}, FAILS),
        # A bin is fewer than ten positions wide, a single run, and epsilons close to each other.
        (replace(LARGE, shape=(50, 50)), {"terrain": 1.0, "standard": 1.0}, NOT_TESTED),
        (replace(LARGE, repetitions=1), {"terrain": 1.0, "standard": 1.0}, NOT_TESTED),
        (replace(LARGE, epsilons=(0.5, 1.0)), {"terrain": 0.5, "standard": 2.0}, NOT_TESTED),
    ],
)
def test_proportion(args: epsilon.Args, slopes: dict[str, float], expected: str) -> None:
    assert answers("epsilon", args, made_up("epsilon", args, by_epsilon(**slopes)))[0] == expected


def test_a_smaller_maze_tests_the_epsilons_that_it_has_positions_for() -> None:
    # 10,000 positions are 5 a bin at epsilon 0.05, 10 at 0.1.
    args = replace(LARGE, shape=(100, 100))
    runs = made_up("epsilon", args, by_epsilon(terrain=1.0, standard=1.0))
    verdict = EXPERIMENTS["epsilon"].summarize(args, runs).verdicts[0]
    assert verdict.answer == HOLDS
    assert "for epsilon 0.1 to 1" in verdict.evidence


def printed_epsilon(configuration: Configuration) -> Any:
    known = published.EPSILON
    kind = configuration["kind"]
    found = [known.get((kind, e), Estimate(0.1, None, 1)).mean for e in configuration["epsilons"]]
    return {"errors": [errors(mean) for mean in found]}


# ---------------------------------------------------------------------------------------------
# Printed numbers.


def printed_scaling(factors: dict[tuple[str, int], float]) -> Found:
    """What the paper prints, times a factor of some kinds and sides."""

    def found(configuration: Configuration) -> Any:
        kind, shape = configuration["kind"], tuple(configuration["shape"])
        mean = published.SCALING_2D[kind, shape].mean
        return {"errors": errors(mean * factors.get((kind, shape[0]), 1.0))}

    return found


PAPER_SHAPES = ((100, 100), (200, 200), (300, 300), (500, 500), (1000, 1000))
SCALING = scaling.Args(shapes=PAPER_SHAPES, repetitions=5, most_states=0)
STANDARD_OFF = {("standard", shape[0]): 9.0 for shape in PAPER_SHAPES}
TERRAIN_OFF = {("terrain", shape[0]): 9.0 for shape in PAPER_SHAPES}


@pytest.mark.parametrize(
    ("args", "factors", "expected"),
    [
        (SCALING, {}, HOLDS),
        (SCALING, {("terrain", 100): 9.0}, HOLDS),  # nine of ten
        (SCALING, STANDARD_OFF, HOLDS_IN_PART),
        (SCALING, STANDARD_OFF | TERRAIN_OFF, FAILS),
        (SCALING, STANDARD_OFF | {("terrain", 100): 9.0}, FAILS),
        (replace(SCALING, repetitions=4), {}, NOT_TESTED),
        (replace(SCALING, shapes=PAPER_SHAPES[:2]), {}, NOT_TESTED),
    ],
)
def test_printed_numbers(args: scaling.Args, factors: Any, expected: str) -> None:
    runs = made_up("scaling_2d", args, printed_scaling(factors), spread=1e-4)
    verdict = EXPERIMENTS["scaling_2d"].summarize(args, runs).verdicts[1]
    assert verdict.answer == expected


def test_printed_numbers_of_other_sizes_are_not_compared() -> None:
    runs = made_up("epsilon", LARGE, printed_epsilon)
    assert answers("epsilon", LARGE, runs)[1] == HOLDS
    smaller = replace(LARGE, shape=(200, 200))
    runs = made_up("epsilon", smaller, printed_epsilon)
    assert answers("epsilon", smaller, runs)[1] == NOT_TESTED
    summary = EXPERIMENTS["epsilon"].summarize(smaller, runs)
    table = summary.tables[0]
    assert "published, of 500x500 (not compared)" in table.columns
    overlaps = [i for i, column in enumerate(table.columns) if column.endswith(": overlaps")]
    assert overlaps
    assert all(row[i] is None for row in table.rows for i in overlaps)
    labels = [text.get_text() for text in summary.pictures[0].figure.legends[0].get_texts()]
    assert "terrain, published, of 500x500 (not compared)" in labels
    assert summary.scale[1].startswith("the paper: 500x500")


# ---------------------------------------------------------------------------------------------
# Growth with the maze.


def growing(**factors: float) -> Found:
    """Errors by kind that are so many times larger in the largest maze."""

    def found(configuration: Configuration) -> Any:
        grown = factors[configuration["kind"]] if configuration["shape"][0] == 1000 else 1.0
        return {"errors": errors(2.0 * grown)}

    return found


@pytest.mark.parametrize(
    ("args", "factors", "spread", "expected"),
    [
        (SCALING, {"terrain": 1.4, "standard": 0.5}, 0.01, HOLDS),
        (SCALING, {"terrain": 2.0, "standard": 1.0}, 0.01, HOLDS_IN_PART),
        (SCALING, {"terrain": 2.0, "standard": 2.0}, 0.01, FAILS),
        # The intervals leave it open, one run has none, and the largest maze is missing.
        (SCALING, {"terrain": 1.6, "standard": 1.0}, 0.3, NOT_TESTED),
        (replace(SCALING, repetitions=1), {"terrain": 9.0, "standard": 9.0}, 0.0, NOT_TESTED),
        (
            replace(SCALING, shapes=PAPER_SHAPES[:4]),
            {"terrain": 1.0, "standard": 1.0},
            0.01,
            NOT_TESTED,
        ),
    ],
)
def test_growth(args: scaling.Args, factors: Any, spread: float, expected: str) -> None:
    runs = made_up("scaling_2d", args, growing(**factors), spread=spread)
    assert answers("scaling_2d", args, runs)[0] == expected


# ---------------------------------------------------------------------------------------------
# Efficiency.

FOLLOWED = efficiency.Args(shape=(100, 100), num_sweeps=40, repetitions=3)


def curves(ours: Callable[[str, int], float]) -> Found:
    """Value iteration's error is 100 times .8 to the power of the sweep."""

    def found(configuration: Configuration) -> Any:
        kind, sweeps = configuration["kind"], range(1, configuration["num_sweeps"] + 1)
        theirs = [100 * 0.8**x for x in sweeps]
        mine = [float(ours(kind, x)) for x in sweeps]
        methods = dict.fromkeys(efficiency.METHODS, theirs) | {efficiency.AGGREGATION: mine}
        return {"errors": methods}

    return found


def follow(args: efficiency.Args, ours: Callable[[str, int], float], **more: float) -> list[str]:
    clock = [float(x) for x in range(args.num_sweeps)]
    seconds = dict.fromkeys(efficiency.METHODS, clock)
    return answers(
        "efficiency", args, made_up("efficiency", args, curves(ours), seconds=seconds, **more)
    )


@pytest.mark.parametrize(
    ("args", "ours", "spread", "expected"),
    [
        (FOLLOWED, lambda kind, x: 50 * 0.8**x, 1e-3, HOLDS),
        (FOLLOWED, lambda kind, x: 50 if kind == "terrain" else 50 * 0.8**x, 1e-3, HOLDS_IN_PART),
        (FOLLOWED, lambda kind, x: 100 * 0.8**x * (0.5 if x > 5 else 1), 1e-3, HOLDS_IN_PART),
        (FOLLOWED, lambda kind, x: 200 * 0.8**x, 1e-3, FAILS),
        (FOLLOWED, lambda kind, x: 99 * 0.8**x, 0.3, NOT_TESTED),
        (replace(FOLLOWED, shape=(40, 40)), lambda kind, x: 50 * 0.8**x, 1e-3, NOT_TESTED),
        (replace(FOLLOWED, num_sweeps=9), lambda kind, x: 50 * 0.8**x, 1e-3, NOT_TESTED),
        (replace(FOLLOWED, repetitions=1), lambda kind, x: 50 * 0.8**x, 0.0, NOT_TESTED),
    ],
)
def test_the_beginning(
    args: efficiency.Args, ours: Callable[[str, int], float], spread: float, expected: str
) -> None:
    assert follow(args, ours, spread=spread)[0] == expected


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        # Bins hold it at 5: value iteration is there, within a tenth, after 13 sweeps.
        (lambda kind, x: max(5.0, 100 * 0.7**x), HOLDS),
        (lambda kind, x: max(5.0, 100 * 0.9**x), FAILS),
        (lambda kind, x: max(5.0, 100 * (0.7 if kind == "terrain" else 0.9) ** x), HOLDS_IN_PART),
        # Its error still falls.
        (lambda kind, x: 100 * 0.7**x, NOT_TESTED),
    ],
)
def test_the_end(ours: Callable[[str, int], float], expected: str) -> None:
    assert follow(FOLLOWED, ours, spread=1e-3)[1] == expected


# ---------------------------------------------------------------------------------------------
# Robustness.

ROBUST = robustness.Args(shape=(50, 50), repetitions=3)


def noisy(slip: float, noise: float) -> Found:
    """Errors that grow by a factor from p .98 to .92, and by so much a sigma."""

    def found(configuration: Configuration) -> Any:
        share = (0.98 - configuration["p"]) / 0.06
        base = 2.0 * (1 + (slip - 1) * share)
        return {"errors": [errors(base + noise * sigma) for sigma in configuration["sigmas"]]}

    return found


@pytest.mark.parametrize(
    ("args", "slip", "noise", "spread", "expected"),
    [
        # Three sigmas over 1 - gamma are 60 sigmas.
        (ROBUST, 1.2, 50.0, 0.01, [HOLDS, HOLDS, NOT_TESTED]),
        (ROBUST, 2.0, 70.0, 0.01, [FAILS, FAILS, NOT_TESTED]),
        (ROBUST, 1.6, 61.0, 0.3, [NOT_TESTED, NOT_TESTED, NOT_TESTED]),
        (replace(ROBUST, shape=(20, 20)), 1.0, 0.0, 0.01, [NOT_TESTED] * 3),
        (replace(ROBUST, repetitions=1), 1.0, 0.0, 0.0, [NOT_TESTED] * 3),
    ],
)
def test_robustness(
    args: robustness.Args, slip: float, noise: float, spread: float, expected: list[str]
) -> None:
    runs = made_up("robustness", args, noisy(slip, noise), spread=spread)
    assert answers("robustness", args, runs) == expected


def test_robustness_of_the_printed_numbers() -> None:
    def found(configuration: Configuration) -> Any:
        about = (configuration["kind"], configuration["p"])
        means = [published.ROBUSTNESS[(*about, s)].mean for s in configuration["sigmas"]]
        return {"errors": [errors(mean) for mean in means]}

    args = robustness.Args(shape=(500, 500), repetitions=5)
    assert answers("robustness", args, made_up("robustness", args, found)) == [HOLDS] * 3


# ---------------------------------------------------------------------------------------------
# CartPole.

BINS = ((3, 3, 3, 3), (5, 5, 9, 9))
BALANCED = cartpole.Args(bins=BINS, num_sweeps=2, repetitions=3)


def balanced(updates: dict[str, float | None], *, best: int = 2025) -> Found:
    def found(configuration: Configuration) -> Any:
        bins = configuration["bins"]
        cells = bins[0] * bins[1] * bins[2] * bins[3]
        at = updates.get(configuration["method"], 900.0)
        if configuration["method"] == cartpole.SWEEPS and cells == best:
            at = 500.0
        ticks = configuration["num_sweeps"] * 4 + 1
        return {
            "num_cells": cells,
            "rewards": [100.0] * ticks,
            "best": 200,
            "final": 200,
            "balanced_at": at,
        }

    return found


@pytest.mark.parametrize(
    ("with_one", "spread", "expected"),
    [
        (100.0, 0.01, HOLDS),
        (700.0, 0.01, HOLDS_IN_PART),  # ahead of 900 at 81 cells, behind 500 at 2025
        (2000.0, 0.01, FAILS),
        (None, 0.01, FAILS),
        (490.0, 0.3, NOT_TESTED),
    ],
)
def test_fewer_updates(with_one: float | None, spread: float, expected: str) -> None:
    found = balanced({cartpole.ONE_GLOBAL: with_one})
    runs = made_up("cartpole", BALANCED, found, spread=spread)
    assert answers("cartpole", BALANCED, runs)[0] == expected


@pytest.mark.parametrize(("without", "expected"), [(300.0, HOLDS), (None, FAILS)])
def test_without_global_iterations(without: float | None, expected: str) -> None:
    found = balanced({cartpole.NO_GLOBAL: without})
    assert answers("cartpole", BALANCED, made_up("cartpole", BALANCED, found))[1] == expected


MANY = replace(BALANCED, all_bins=((4, 4, 4, 4), (5, 5, 5, 5), (6, 6, 6, 6), *BINS))


@pytest.mark.parametrize(
    ("args", "best", "expected"),
    [(MANY, 2025, HOLDS), (MANY, 625, FAILS), (BALANCED, 2025, NOT_TESTED)],
)
def test_numbers_of_cells(args: cartpole.Args, best: int, expected: str) -> None:
    runs = made_up("cartpole", args, balanced({}, best=best))
    assert answers("cartpole", args, runs)[2] == expected


# ---------------------------------------------------------------------------------------------
# The bounds.

BOUNDED = bounds.Args(shape=(5, 5), repetitions=2)


def within(claim: str, share: float | None) -> Found:
    """Errors that are so large a part of their bound, for a claim; small for the others."""

    def found(configuration: Configuration) -> Any:
        part = share if configuration["claim"] == claim else 0.1
        if configuration["claim"] == bounds.PROPOSITION_1:
            spread = 0.2
            assert part is not None
            error = part * spread / (1 - bounds.GAMMA)
            return {"iterations": [1], "errors": [error], "losses": [0.0], "spread": spread}
        bound = (2 if configuration["claim"] == bounds.THEOREM_1 else 3) * 0.2 / 0.1
        settled = None if part is None else part * bound
        return {
            "iterations": [1],
            "errors": [1.0],
            "settled": 1,
            "settled_error": settled,
            "largest_rise": 0.3,
        }

    return found


@pytest.mark.parametrize("claim", list(bounds.CLAIMS))
@pytest.mark.parametrize(("share", "expected"), [(0.9, HOLDS), (1.1, FAILS), (None, NOT_TESTED)])
def test_bounds(claim: str, share: float | None, expected: str) -> None:
    if claim == bounds.PROPOSITION_1 and share is None:
        runs: list[Run] = []
        assert set(answers("bounds", BOUNDED, runs)) == {NOT_TESTED}
        return
    runs = made_up("bounds", BOUNDED, within(claim, share), spread=0.0)
    found = dict(zip(bounds.CLAIMS, answers("bounds", BOUNDED, runs), strict=True))
    assert found.pop(claim) == expected
    assert set(found.values()) == {HOLDS}


def test_what_a_phase_adds_is_told() -> None:
    runs = made_up("bounds", BOUNDED, within(bounds.THEOREM_1, 0.5), spread=0.0)
    summary = EXPERIMENTS["bounds"].summarize(BOUNDED, runs)
    assert all("a phase adds up to 1.5 epsilon" in v.evidence for v in summary.verdicts[2:])


# ---------------------------------------------------------------------------------------------
# All together.


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], NOT_TESTED),
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, FAILS], HOLDS_IN_PART),
        ([HOLDS, HOLDS_IN_PART], HOLDS_IN_PART),
        ([FAILS, FAILS], FAILS),
        ([HOLDS, NOT_TESTED], NOT_TESTED),
        ([FAILS, NOT_TESTED], FAILS),
        ([FAILS, NOT_TESTED, HOLDS], HOLDS_IN_PART),
        ([HOLDS_IN_PART, NOT_TESTED], HOLDS_IN_PART),
    ],
)
def test_claims_of_several_parts(parts: Sequence[str], expected: str) -> None:
    assert verdicts.together(parts) == expected


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_nothing_is_tested_without_runs(name: str) -> None:
    args = EXPERIMENTS[name].scales["small"]
    found = EXPERIMENTS[name].summarize(args, []).verdicts
    assert found
    assert {verdict.answer for verdict in found} == {NOT_TESTED}


def test_what_the_command_prints_of_verdicts() -> None:
    found = [Verdict("It works.", HOLDS, "2 against 3"), Verdict("It flies.", NOT_TESTED, "no air")]
    summary = Summary([], [], [], found, ("mazes of 9x9, 2 runs of each", "the paper: more"))
    lines = opening_lines([Section("a", "A", summary, [], 2)], "small")
    assert lines == [
        "Scale small: smaller than the paper. 0 of 2 runs are done.",
        "",
        "Claims that hold (1)",
        "  ✓ It works. 2 against 3 (mazes of 9x9, 2 runs of each).",
        "",
        "Not tested at this scale (1)",
        "  ○ It flies. No air.",
        "",
    ]


def test_numbers_in_words() -> None:
    assert verdicts.words_of(estimate([2.0])) == "2"
    assert verdicts.words_of(Estimate(33.3, 1e-10, 4)) == "33.3 ± 0"
    assert verdicts.words_of(Estimate(46_857.2, 38_305.4, 3)) == "46,857 ± 38,305"
