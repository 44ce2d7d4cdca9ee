"""What the report makes of the runs: statistics, tables, and pages of what is not there yet."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from planners.experiments import EXPERIMENTS, scaling
from planners.experiments.reporting.report import (
    Section,
    merged,
    scale_words,
    shown,
    write_report,
)
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


def test_sizes_in_words() -> None:
    paper = ((100, 100), (200, 200), (500, 500))
    assert scale_words([(50, 50)], [(500, 500)], 4) == (
        "mazes of 50x50, 4 runs of each",
        "the paper: 500x500, 20 runs",
    )
    assert scale_words(paper, paper, 20) == (
        "mazes of 100x100 to 500x500, 20 runs of each",
        "as in the paper",
    )
    assert scale_words(paper, paper, 4)[1] == "the paper: 100x100 to 500x500, 20 runs"


def sections() -> list[Section]:
    return [
        Section(name, name, EXPERIMENTS[name].summarize(TINY[name], runs_of(name)), [], 0)
        for name in TINY
    ]


def test_the_verdict_comes_first_and_the_scale_before_it(tmp_path: Path) -> None:
    all_sections = sections()
    write_report(tmp_path, all_sections, {"scale": "small"})
    for page in (tmp_path / "report.html", tmp_path / "report.md"):
        text = page.read_text()
        places = [text.index(words) for words in ("Scale small", "The verdict", "The evidence")]
        assert places == sorted(places)
        verdict = text[places[1] : places[2]]
        for section in all_sections:
            for each in section.summary.verdicts:
                assert verdict.count(each.claim.replace("'", "&#x27;")) + verdict.count(each.claim)


def test_every_caption_tells_the_scale(tmp_path: Path) -> None:
    all_sections = sections()
    write_report(tmp_path, all_sections, {"scale": "small"})
    page = (tmp_path / "report.html").read_text()
    captions = re.findall(r'(?:<figcaption|<p) class="note">(.*?)</', page)
    shown_things = sum(len(s.summary.tables) + len(s.summary.pictures) for s in all_sections)
    assert len(captions) == shown_things
    assert all(re.match("This run: .*\\d+ runs .*paper", caption) for caption in captions)


def test_rows_become_cards_on_a_phone(tmp_path: Path) -> None:
    args = scaling.Args(shapes=((100, 100),), repetitions=1, most_states=0)
    runs = [
        Run(configuration, 0, {"errors": {"phase from 1": {"last iteration": 4.0}}}, {})
        for configuration in scaling.configurations(args)
    ]
    summary = EXPERIMENTS["scaling_2d"].summarize(args, runs)
    write_report(tmp_path, [Section("scaling_2d", "Scaling", summary, runs, 2)], {})
    page = (tmp_path / "report.html").read_text()
    # Headed by what the row is about, each number by its column.
    assert page.count('<th class="card" scope="row">terrain · shape 100x100</th>') == 1
    assert '<td class="key" data-label="shape">100x100</td>' in page
    assert '<td data-label="published">4.41 ± 0.14</td>' in page
