"""Tables of ours beside the published, for experiments that measure the error of Algorithm 3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planners.experiments.algorithm3 import DEFAULT_READING, DEFAULT_STEPS, READINGS, STEPS
from planners.experiments.reporting.figures import NOT_COMPARED
from planners.experiments.reporting.report import OVERLAPS
from planners.experiments.reporting.statistics import Estimate, estimate
from planners.experiments.study import Table

#: Samples of the error by steps and reading.
Errors = Mapping[tuple[str, str], Sequence[float]]

#: What a row is about, the errors, and the published number if there is one.
Row = tuple[Sequence[Any], Errors, Estimate | None]

#: Columns of the main tables: name, steps and reading.
COLUMNS = (
    ("ours", DEFAULT_STEPS, DEFAULT_READING),
    ("after a global phase", DEFAULT_STEPS, "global phase"),
    ("phase from 2", "phase from 2", DEFAULT_READING),
    ("total", "total", DEFAULT_READING),
)

CONVENTIONS = (
    "Ours: terrain of shifted cost and uniform heights, steps counted within the phase from 1, the "
    "error read after the last iteration; beside it, each with one thing else: read after the last "
    "global phase, counted from 2, and counted over all phases (“total”). The step index and the "
    "terrain are inferred, since the paper leaves them open; counting from 2 was chosen after "
    "seeing the published tables. ✓ and ✗: whether the interval overlaps the published one. "
    "Intervals are of 95 %, ours by Student's t over the repetitions."
)


def collect(found: Iterable[Mapping[str, Mapping[str, float]]]) -> Errors:
    """Gather what `Algorithm3.errors` found in each repetition."""
    samples: dict[tuple[str, str], list[float]] = {}
    for errors in found:
        for steps, by_reading in errors.items():
            for reading, error in by_reading.items():
                samples.setdefault((steps, reading), []).append(error)
    return samples


def default(errors: Errors) -> Estimate:
    """Return the estimate under the default conventions."""
    return estimate(errors[DEFAULT_STEPS, DEFAULT_READING])


def beside_published(
    name: str,
    title: str,
    keys: Sequence[str],
    rows: Iterable[Row],
    note: str = "",
    *,
    other_size: str = "",
) -> Table:
    """Return the table of the default conventions and of others beside them.

    Parameters
    ----------
    name, title : str
    keys : sequence of str
        Columns that say what a row is about.
    rows : iterable of Row
    note : str
        Printed below, before the conventions.
    other_size : str
        The size of the paper's mazes where it is not that of ours: the published numbers are then
        marked, and intervals are not compared.
    """
    known_as = f"published, of {other_size}{NOT_COMPARED}" if other_size else "published"
    columns = [*keys, "runs", known_as, f"{known_as} +-"]
    for label, _, _ in COLUMNS:
        columns += [label, f"{label} +-", f"{label}{OVERLAPS}"]
    lines = []
    for about, errors, published in rows:
        known = default(errors)
        line: list[Any] = [*about, known.num_samples]
        line += [None, None] if published is None else [published.mean, published.half_width]
        for _, steps, reading in COLUMNS:
            samples = errors.get((steps, reading))
            if samples is None:
                line += [None, None, None]
                continue
            ours = estimate(samples)
            overlaps = (
                ours.overlaps(published) if published is not None and not other_size else None
            )
            line += [ours.mean, ours.half_width, overlaps]
        lines.append(line)
    note = f"{note} {CONVENTIONS}".strip()
    return Table(name, title, columns, lines, note, num_keys=len(keys))


def all_conventions(
    name: str, title: str, keys: Sequence[str], rows: Iterable[Row], *, is_same: bool = True
) -> Table:
    """Return a table of detail, with one line for each step index and reading.

    Parameters
    ----------
    name, title : str
    keys : sequence of str
        Columns that say what a row is about.
    rows : iterable of Row
    is_same : bool
        Whether the published numbers are of the very same mazes; else they are left out.
    """
    columns = [*keys, "steps", "read after", "runs", "error", "+-", "published", "published +-"]
    lines = []
    for about, errors, published in rows:
        shown = published if is_same else None
        for steps in STEPS:
            for reading in READINGS:
                if (steps, reading) not in errors:
                    continue
                ours = estimate(errors[steps, reading])
                line = [*about, steps, reading, ours.num_samples, ours.mean, ours.half_width]
                line += [None, None] if shown is None else [shown.mean, shown.half_width]
                lines.append(line)
    return Table(name, title, columns, lines, is_detail=True, num_keys=len(keys) + 2)
