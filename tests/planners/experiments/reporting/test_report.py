"""What the report makes of the runs: statistics, tables, and pages of what is not there yet."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from planners.experiments import EXPERIMENTS, scaling
from planners.experiments.reporting.report import Section, merged, shown, write_report
from planners.experiments.reporting.statistics import Estimate, estimate
from planners.experiments.study import Run
from tests.planners.experiments.tiny import TINY, runs_of

pytestmark = pytest.mark.usefixtures("tiny")


def test_intervals() -> None:
    # t of 2 degrees of freedom at .975 is 4.302653, the standard deviation is 1.
    found = estimate([3.0, 1.0, 2.0])
    assert found.mean == 2.0
    assert found.half_width == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert estimate([1.5]) == Estimate(1.5, None, 1)
    assert found.overlaps(Estimate(4.6, 0.2, 20))
    assert not found.overlaps(Estimate(4.9, 0.2, 20))
    assert found.overlaps(Estimate(4.6, None, 1)) is None


def test_cells_as_text() -> None:
    assert [shown(x) for x in (None, True, False, 1.23456, 12345, 12345.6, "a")] == [
        "",
        "yes",
        "no",
        "1.23",
        "12,345",
        "12,346",
        "a",
    ]


def test_the_published_numbers_stand_beside(tmp_path: Path) -> None:
    args = scaling.Args(shapes=((100, 100),), repetitions=1, most_states=0)
    runs = [
        Run(
            configuration,
            repetition,
            {"errors": {"phase from 1": {"last iteration": 4.0 + repetition}}},
            {},
        )
        for configuration in scaling.configurations(args)
        for repetition in (0, 1)
    ]
    summary = EXPERIMENTS["scaling_2d"].summarize(args, runs)
    columns, rows = merged(summary.tables[0])
    table = {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
    # t of one degree of freedom is 12.7062, the standard error 1/2.
    assert table["terrain"]["published"] == "4.41 ± 0.14"
    assert table["terrain"]["ours"] == "4.5 ± 6.4 ✓"
    assert table["standard"]["published"] == "1.43 ± 0.16"
    assert table["standard"]["total"] == ""


@pytest.mark.parametrize("name", list(TINY))
def test_reports_of_what_is_not_there_yet(name: str, tmp_path: Path) -> None:
    experiment, runs = EXPERIMENTS[name], runs_of(name)
    for some in ([], runs[-1:]):
        summary = experiment.summarize(TINY[name], some)
        for picture in summary.pictures:
            # Nothing to draw must not be a warning, here an error.
            picture.figure.canvas.draw()
        write_report(tmp_path, [Section(name, name, summary, some, len(runs))], {})
        page = (tmp_path / "report.html").read_text()
        assert f"{len(runs) - len(some)} of {len(runs)} runs are missing" in page
