"""Which claims of the paper the runs bear out: rules, each of which says what it looked at.

A claim about both kinds of mazes is judged on each, and the answers are put together (`together`).
Where runs are too few, or mazes too small, the answer is that the claim is not tested, and why:

- one run says nothing of the spread between runs;
- where a bin has fewer than ten positions on average there is next to nothing to aggregate, unless
  the paper has mazes of that size itself;
- printed numbers are only compared with runs of the same size, five of them or more;
- where intervals leave both answers open, neither is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from planners.experiments.algorithm3 import DEFAULT_READING, DEFAULT_STEPS
from planners.experiments.mazes import KINDS, MAX_COST_TO_GO
from planners.experiments.reporting.comparison import COLUMNS, Row
from planners.experiments.reporting.report import half_width_words
from planners.experiments.reporting.statistics import Estimate, estimate
from planners.experiments.study import FAILS, HOLDS, HOLDS_IN_PART, NOT_TESTED, Verdict

#: What a part of a claim came to, and the numbers that say so.
Finding = tuple[str, str]

#: Positions a bin, on average, from which on aggregation is tested.
POSITIONS_A_BIN = 10
#: Runs from which on they are compared with printed numbers.
RUNS_TO_COMPARE = 5
#: Errors in proportion to epsilon differ by no more than this factor once divided by it.
PROPORTION = 2.0
#: How many times as wide the widest bins must be as the narrowest, to speak of proportion.
RANGE_OF_EPSILON = 5.0
#: An error that is larger by this factor has grown substantially.
GROWTH = 1.5
#: Noise is borne where it adds no more than costs that are all off by so many sigmas would.
SIGMAS_BORNE = 3.0
#: Share of rows whose intervals overlap, for printed numbers to be met, and to be met in part.
MET, MET_IN_PART = 0.9, 0.5
#: The paper's "beginning phase", in sweeps; the first two are global in both methods.
EARLY = range(3, 11)
#: What the paper's sweep finds best for CartPole, "around 2000 bins".
BEST_CELLS = range(1500, 2501)


def together(answers: Iterable[str]) -> str:
    """Return the answer to a claim of several parts.

    One part that fails decides against all of it, whatever is not tested; with none that fails,
    one that is not tested leaves it open.
    """
    found = set(answers)
    if not found or (NOT_TESTED in found and not found & {FAILS, HOLDS_IN_PART}):
        return NOT_TESTED
    if found <= {FAILS, NOT_TESTED}:
        return FAILS
    return HOLDS if found == {HOLDS} else HOLDS_IN_PART


def verdict(claim: str, findings: Mapping[str, Finding]) -> Verdict:
    """Return the verdict on a claim, by the findings of its parts.

    Parameters
    ----------
    claim : str
    findings : dict
        The answer for each part, and the words that say why.
    """
    answer = together(answer for answer, _ in findings.values())
    parts: dict[str, list[str]] = {}
    for part, (_, words) in findings.items():
        parts.setdefault(words, []).append(part)
    evidence = "; ".join(f"{' and '.join(of)}: {words}" for words, of in parts.items())
    return Verdict(claim, answer, evidence or "no runs")


def number(value: float) -> str:
    """Return a number as verdicts have it."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def words_of(found: Estimate) -> str:
    """Return a mean with its interval."""
    if found.half_width is None:
        return number(found.mean)
    return f"{number(found.mean)} ± {half_width_words(found.mean, found.half_width)}"


def too_small(positions: int, epsilon: float, paper_positions: int) -> str:
    """Return why a maze is too small to aggregate; nothing if it is not.

    Parameters
    ----------
    positions : int
    epsilon : float
        Width of a bin, where the largest cost-to-go is 100.
    paper_positions : int
        Of the paper's mazes.
    """
    each = positions * epsilon / MAX_COST_TO_GO
    if positions >= paper_positions or each >= POSITIONS_A_BIN:
        return ""
    return f"{positions:,} positions are {each:.2g} a bin at epsilon {epsilon:g}"


def _has_spread(estimates: Iterable[Estimate]) -> bool:
    return all(found.half_width is not None for found in estimates)


def _order(ours: Estimate, theirs: Estimate) -> int:
    """Return -1 where ours is the smaller, 1 where it is the larger, 0 where that is open."""
    gap = (ours.half_width or 0.0) + (theirs.half_width or 0.0)
    return (ours.mean > theirs.mean + gap) - (ours.mean < theirs.mean - gap)


# ---------------------------------------------------------------------------------------------
# Claims about the error of Algorithm 3.


def proportional(
    points: Mapping[str, Sequence[tuple[float, Estimate]]], positions: int, paper_positions: int
) -> Verdict:
    """Judge that the error is in proportion to epsilon.

    Parameters
    ----------
    points : dict
        By kind, epsilon and error.
    positions, paper_positions : int
        Of a maze here and in the paper.
    """

    def judge(kind: str) -> Finding:
        used = [
            (epsilon, found)
            for epsilon, found in points.get(kind, ())
            if not too_small(positions, epsilon, paper_positions) and _has_spread([found])
        ]
        if not points.get(kind):
            return NOT_TESTED, "no runs"
        if not used or used[-1][0] < RANGE_OF_EPSILON * used[0][0]:
            reasons = [too_small(positions, e, paper_positions) for e, _ in points[kind]]
            few = "one run of each is too few"
            return NOT_TESTED, next(filter(None, reasons), few)
        ratios = [found.mean / epsilon for epsilon, found in used]
        holds = max(ratios) <= PROPORTION * min(ratios)
        words = f"error / epsilon is {number(min(ratios))} to {number(max(ratios))}"
        words += f" for epsilon {used[0][0]:g} to {used[-1][0]:g}"
        return (HOLDS if holds else FAILS), words

    claim = "The error is in proportion to epsilon."
    return verdict(claim, {kind: judge(kind) for kind in KINDS})


def no_growth(
    claim: str,
    points: Mapping[str, Sequence[tuple[int, Estimate]]],
    published: Mapping[str, Sequence[tuple[int, Estimate]]],
) -> Verdict:
    """Judge that the error does not grow substantially from the smallest maze to the largest.

    Parameters
    ----------
    claim : str
    points, published : dict
        By kind, positions and error.
    """

    def judge(kind: str) -> Finding:
        known = sorted(points.get(kind, ()), key=lambda point: point[0])
        sizes = [size for size, _ in published[kind]]
        known = [point for point in known if point[0] >= min(sizes)]
        if not known:
            return NOT_TESTED, "no runs"
        (low, first), (high, last) = known[0], known[-1]
        if high < max(sizes) or low > min(sizes):
            here = f"{low:,} to {high:,}" if low < high else f"{low:,} alone"
            paper = f"{min(sizes):,} to {max(sizes):,}"
            return NOT_TESTED, f"positions are {here}, in the paper {paper}"
        words = f"{words_of(first)} at {low:,} positions, {words_of(last)} at {high:,}"
        return _hardly_grows(first, last, words)

    return verdict(claim, {kind: judge(kind) for kind in KINDS})


def _hardly_grows(small: Estimate, large: Estimate, words: str) -> Finding:
    """Judge that an error is at most `GROWTH` times another."""
    if not _has_spread([small, large]):
        return NOT_TESTED, f"{words}, of a single run"
    if large.mean <= GROWTH * small.mean:
        return HOLDS, words
    assert small.half_width is not None
    limit = Estimate(GROWTH * small.mean, GROWTH * small.half_width, small.num_samples)
    return (FAILS if _order(large, limit) > 0 else NOT_TESTED), words


def printed(
    claim: str, rows: Sequence[Row], num_published: int, *, is_same: bool = True
) -> Verdict:
    """Judge that runs meet the printed numbers: that their intervals overlap.

    Parameters
    ----------
    claim : str
    rows : sequence of Row
        Ours, with the published number if there is one.
    num_published : int
        Rows that the paper has.
    is_same : bool
        Whether the published numbers are of mazes of the same size.
    """
    compared = [
        (errors, known)
        for _, errors, known in rows
        if is_same
        and known is not None
        and len(errors[DEFAULT_STEPS, DEFAULT_READING]) >= RUNS_TO_COMPARE
    ]
    if 2 * len(compared) < num_published:
        few = f"{len(compared)} of {num_published} rows have mazes of the paper's size and "
        return Verdict(claim, NOT_TESTED, f"{few}{RUNS_TO_COMPARE} runs or more")
    met = {
        label: sum(
            bool(estimate(errors[steps, reading]).overlaps(known))
            for errors, known in compared
            if (steps, reading) in errors
        )
        for label, steps, reading in COLUMNS
    }
    share = met["ours"] / len(compared)
    answer = HOLDS if share >= MET else HOLDS_IN_PART if share >= MET_IN_PART else FAILS
    others = ", ".join(f"{label} {count}" for label, count in met.items() if label != "ours")
    return Verdict(
        claim,
        answer,
        f"intervals overlap in {met['ours']} of {len(compared)} rows; under other conventions: "
        f"{others}",
    )


# ---------------------------------------------------------------------------------------------
# Efficiency.


def ahead_early(
    curves: Mapping[str, tuple[Sequence[Estimate], Sequence[Estimate]]],
    positions: int,
    paper_positions: int,
    epsilon: float,
) -> Verdict:
    """Judge that aggregation is ahead of value iteration in the beginning.

    Parameters
    ----------
    curves : dict
        By kind, errors of aggregation and of value iteration after 1, 2, ... sweeps.
    positions, paper_positions : int
        Of a maze here and in the paper.
    epsilon : float
    """
    small = too_small(positions, epsilon, paper_positions)

    def judge(kind: str) -> Finding:
        if kind not in curves:
            return NOT_TESTED, "no runs"
        ours, theirs = curves[kind]
        if small or len(ours) < EARLY[-1]:
            return NOT_TESTED, small or f"{len(ours)} sweeps are too few"
        if not _has_spread([*ours, *theirs]):
            return NOT_TESTED, "one run is too few"
        orders = [_order(ours[x - 1], theirs[x - 1]) for x in EARLY]
        after = EARLY[-1] - 1
        words = f"{words_of(ours[after])} against {words_of(theirs[after])} after "
        words += (
            f"{EARLY[-1]} sweeps, ahead at {orders.count(-1)} of sweeps {EARLY[0]} to {EARLY[-1]}"
        )
        if -1 in orders:
            return (HOLDS if set(orders) == {-1} else HOLDS_IN_PART), words
        return (FAILS if 1 in orders else NOT_TESTED), words

    claim = "At equal updates, aggregation is ahead of value iteration in the beginning."
    return verdict(claim, {kind: judge(kind) for kind in KINDS})


def ahead_late(
    curves: Mapping[str, tuple[Sequence[Estimate], Sequence[Estimate]]],
    positions: int,
    paper_positions: int,
    epsilon: float,
) -> Verdict:
    """Judge that aggregation comes to the error that it keeps in fewer updates than the other.

    That error is the mean of the last quarter of the sweeps; 1.1 times as much counts as there.
    Arguments as for `ahead_early`.
    """
    small = too_small(positions, epsilon, paper_positions)

    def judge(kind: str) -> Finding:
        if kind not in curves:
            return NOT_TESTED, "no runs"
        ours, theirs = ([found.mean for found in curve] for curve in curves[kind])
        quarter = len(ours) // 4
        if small or quarter < 1:
            return NOT_TESTED, small or f"{len(ours)} sweeps are too few"
        if not _has_spread([*curves[kind][0], *curves[kind][1]]):
            return NOT_TESTED, "one run is too few"
        kept = math.fsum(ours[-quarter:]) / quarter
        before = math.fsum(ours[-2 * quarter : -quarter]) / quarter
        if before > GROWTH * kept:
            return NOT_TESTED, f"its error still falls after {len(ours)} sweeps"
        level = 1.1 * kept
        a, b = (
            next((x for x, error in enumerate(means, 1) if error <= level), None)
            for means in (ours, theirs)
        )
        if a is None:
            return NOT_TESTED, f"its error wavers about {number(kept)}"
        there = f"down to {number(level)} at sweep {a}"
        if b is None:
            return HOLDS, f"{there}, value iteration not within {len(theirs)}"
        return (HOLDS if a < b else FAILS), f"{there}, value iteration at {b}"

    claim = (
        "Aggregation comes down to the error that it keeps in fewer updates than value iteration."
    )
    return verdict(claim, {kind: judge(kind) for kind in KINDS})


# ---------------------------------------------------------------------------------------------
# Robustness.


def bears_slip(points: Mapping[tuple[str, float], Estimate], small: str) -> Verdict:
    """Judge that the error without noise does not grow as moves slip more often.

    Parameters
    ----------
    points : dict
        By kind and p, the error where sigma is 0.
    small : str
        Why the mazes are too small; nothing if they are not.
    """

    def judge(kind: str) -> Finding:
        known = sorted((p, found) for (each, p), found in points.items() if each == kind)
        if small or len(known) < 2:
            return NOT_TESTED, small or "runs of two p are needed"
        (low, worst), (high, best) = known[0], known[-1]
        words = f"{words_of(worst)} at p {low:g}, {words_of(best)} at p {high:g}"
        return _hardly_grows(best, worst, words)

    claim = "Aggregation is robust to moves that slip."
    return verdict(claim, {kind: judge(kind) for kind in KINDS})


def bears_noise(
    points: Mapping[tuple[str, float], Sequence[tuple[float, Estimate]]], gamma: float, small: str
) -> Verdict:
    """Judge that noise on the costs adds little to the error.

    Little is what costs that are all off by three sigmas would do to V*, 3 sigma / (1-gamma).

    Parameters
    ----------
    points : dict
        By kind and p, sigma and error.
    gamma : float
    small : str
        Why the mazes are too small; nothing if they are not.
    """

    def judge(kind: str) -> Finding:
        answers: list[str] = []
        added: list[tuple[float, str]] = []
        borne = math.nan
        for (each, p), known in points.items():
            if each != kind or not known:
                continue
            (least, quiet), (most, loud) = known[0], known[-1]
            if least > 0.0 or most == 0.0 or not _has_spread([quiet, loud]):
                continue
            borne = SIGMAS_BORNE * most / (1 - gamma)
            difference = loud.mean - quiet.mean
            added.append((difference, f"{number(difference)} at sigma {most:g}, p {p:g}"))
            if difference <= borne:
                answers.append(HOLDS)
            else:
                limit = Estimate(quiet.mean + borne, quiet.half_width, quiet.num_samples)
                answers.append(FAILS if _order(loud, limit) > 0 else NOT_TESTED)
        if small or not answers:
            return NOT_TESTED, small or "runs with and without noise are needed, two of each"
        allowed = f"costs off by three sigmas would make {number(borne)}"
        return together(answers), f"adds at most {max(added)[1]} ({allowed})"

    claim = "Aggregation is robust to noise on the costs."
    return verdict(claim, {kind: judge(kind) for kind in KINDS})


# ---------------------------------------------------------------------------------------------
# CartPole, and the bounds.


#: Updates until the pole balances, the runs in which it does, and all runs.
Balance = tuple[Estimate | None, int, int]


def fewer_updates(panels: Mapping[str, tuple[Balance, Balance]]) -> Verdict:
    """Judge that with one global iteration in turn the pole balances after fewer updates.

    Parameters
    ----------
    panels : dict
        By number of cells, what aggregation finds, and what value iteration does.
    """

    def judge(aggregation: Balance, sweeps: Balance) -> Finding:
        (ours, num, num_runs), (theirs, their_num, their_runs) = aggregation, sweeps
        if num_runs == 0 or their_runs == 0:
            return NOT_TESTED, "no runs"
        if theirs is None or their_num < their_runs:
            return NOT_TESTED, f"value iteration balances in {their_num} of {their_runs} runs"
        if ours is None:
            return FAILS, f"aggregation never balances, value iteration after {words_of(theirs)}"
        words = f"{words_of(ours)} updates in {num} of {num_runs} runs, value iteration "
        words += words_of(theirs)
        if num < MET * num_runs:
            return FAILS, words
        order = _order(ours, theirs)
        if order == 0 or not _has_spread([ours, theirs]):
            return NOT_TESTED, f"{words}: the intervals leave it open"
        return (HOLDS if order < 0 else FAILS), words

    claim = (
        "CartPole balances after fewer updates than with value iteration (here with one global "
        "iteration in turn)."
    )
    return verdict(claim, {cells: judge(*found) for cells, found in panels.items()})


def no_global_needed(panels: Mapping[str, tuple[int, int]]) -> Verdict:
    """Judge that CartPole needs no global iterations.

    Parameters
    ----------
    panels : dict
        By number of cells, the runs without global iterations in which the pole balances, of how
        many.
    """
    findings = {}
    for cells, (num, num_runs) in panels.items():
        words = f"balances in {num} of {num_runs} runs without"
        findings[cells] = (HOLDS if num >= MET * num_runs else FAILS), words
    return verdict("CartPole needs no global iterations.", findings)


def best_at_2000(bins: Sequence[tuple[int, Estimate | None, bool]]) -> Verdict:
    """Judge that value iteration does best with about 2000 cells.

    Parameters
    ----------
    bins : sequence
        Number of cells, updates until balanced, and whether it balances to the end; for all bins
        that were tried.
    """
    claim = "Value iteration does best on CartPole with about 2,000 cells."
    reached = [(found.mean, cells) for cells, found, stays in bins if found is not None and stays]
    others = [cells for cells, _, _ in bins if cells not in BEST_CELLS]
    if len(others) < 3 or len(others) == len(bins) or not reached:
        return Verdict(claim, NOT_TESTED, "few other numbers of cells were tried")
    updates, best = min(reached)
    words = f"balances to the end after the fewest updates, {number(updates)}, with {best:,} cells"
    return Verdict(claim, HOLDS if best in BEST_CELLS else FAILS, words)


def bound(
    claim: str, ratios: Mapping[str, float | None], rises: Mapping[str, float], *, num_runs: int
) -> Verdict:
    """Judge that no run exceeds a bound.

    Parameters
    ----------
    claim : str
    ratios : dict
        By part, the largest error over the bound; None where the run is too short.
    rises : dict
        By part, the largest rise in a phase over what the proof allows.
    num_runs : int
        Of each part.
    """
    known = [ratio for ratio in ratios.values() if ratio is not None]
    if not known or len(known) < len(ratios):
        return Verdict(claim, NOT_TESTED, "the runs end before the iteration that its proof gives")
    words = f"at most {number(max(known))} of the bound in {num_runs} runs of each kind"
    if rises and max(rises.values()) > 1:
        words += (
            f"; but a phase adds up to {number(max(rises.values()))} epsilon, where the proof "
            "allows 1"
        )
    return Verdict(claim, HOLDS if max(known) <= 1 else FAILS, words)
