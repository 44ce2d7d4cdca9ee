"""The report: a CSV a table, a PNG and a PDF a figure, all of it in Markdown and in one HTML file.

CSVs hold numbers in full and are the same whenever the same tasks are done; what depends on the
clock is in files whose names end in ``seconds.csv``.
"""

from __future__ import annotations

import base64
import csv
import html
import importlib.metadata
import io
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aggmaze.files import atomic_file
from planners.experiments.reporting import figures, published
from planners.experiments.reporting.figures import NOT_COMPARED
from planners.experiments.study import (
    ANSWERS,
    FAILS,
    HOLDS,
    HOLDS_IN_PART,
    NOT_TESTED,
    Picture,
    Run,
    Summary,
    Table,
    Verdict,
)

_PACKAGES = ("aggmaze", "gymnasium", "numpy", "scipy", "numba", "matplotlib")

#: How columns end that say whether two intervals overlap.
OVERLAPS = ": overlaps"

PREFACE = (
    "Our numbers beside those of Chen, Gaebler, Peng, Sun and Ye, “An Adaptive State "
    "Aggregation Algorithm for Markov Decision Processes”. Unless a table says otherwise: "
    "gamma 0.95, epsilon 0.5, two global and five aggregated iterations in turn, alpha = 1/sqrt(t),"
    " 1000 iterations from V = 0, costs scaled so that the largest cost-to-go is 100, and the "
    "error is the largest over all states against the exact values."
)

OTHER_SIZES = (
    "Published numbers of mazes of other sizes than those of this run stand beside ours, marked as "
    "of that size; they are not compared."
)

#: What stands before an answer, and the heading of the claims that have it.
_MARKS = {HOLDS: "✓", HOLDS_IN_PART: "◐", FAILS: "✗", NOT_TESTED: "○"}
_HEADINGS = {
    HOLDS: "Claims that hold",
    HOLDS_IN_PART: "Claims that hold in part",
    FAILS: "Claims that do not hold",
    NOT_TESTED: "Not tested at this scale",
}

CONVENTIONS = (
    "Inferred, since the paper leaves it open: terrain of heights drawn uniformly with a move "
    "costing 1 + H(next) - H(here); a step index that starts anew in each aggregated phase. "
    "Counting from 2 was chosen after seeing the published tables, and is shown beside.",
    "No convention that was tried meets these: terrain errors that do not change with p (ours fall "
    "as p falls); standard mazes at sigma 0.05; an error proportional to epsilon on terrain of "
    "shifted cost (it is on standard mazes); the very narrow published intervals in more than two "
    "dimensions, which look like intervals over pooled iterations.",
    "Nothing was tuned beyond that.",
)


@dataclass(frozen=True)
class Section:
    """What the report says of one experiment.

    Parameters
    ----------
    name, title : str
        Of the experiment.
    summary : Summary
    runs : sequence of Run
        Those that the summary is of.
    num_planned : int
        Runs that there should be.
    """

    name: str
    title: str
    summary: Summary
    runs: Sequence[Run]
    num_planned: int


def write_report(
    folder: Path, sections: Sequence[Section], facts: Mapping[str, object]
) -> list[Path]:
    """Write all files of the report, each whole or not at all; return the paths of the main ones.

    Parameters
    ----------
    folder : Path
    sections : sequence of Section
    facts : dict
        Of the run, for the end of the report: scale, seed, workers, seconds.
    """
    for section in sections:
        for table in section.summary.tables:
            _write(folder / f"{table.name}.csv", _csv(table.columns, table.rows))
        for picture in section.summary.pictures:
            _write_picture(folder, picture)
    seconds = [
        [section.name, _words(run), run.repetition, run.seconds.get("task")]
        for section in sections
        for run in section.runs
    ]
    columns = ["experiment", "configuration", "repetition", "seconds"]
    _write(folder / "task_seconds.csv", _csv(columns, seconds))
    all_facts = {**facts, **machine()}
    markdown, page = folder / "report.md", folder / "report.html"
    _write(markdown, _markdown(sections, all_facts))
    _write(page, _html(folder, sections, all_facts))
    return [page, markdown]


def machine() -> dict[str, object]:
    """Return what the numbers were made on, and with."""
    facts: dict[str, object] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "Python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            facts[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def _words(run: Run) -> str:
    return "; ".join(f"{key} {value}" for key, value in run.configuration.items())


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode())


def _write_picture(folder: Path, picture: Picture) -> None:
    from matplotlib import rc_context

    with rc_context(figures.save_options()):
        for kind in ("png", "pdf"):
            # Without the date, equal figures are equal files.
            metadata = {"CreationDate": None} if kind == "pdf" else None
            with atomic_file(folder / f"{picture.name}.{kind}") as file:
                picture.figure.savefig(file, format=kind, metadata=metadata)


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_exact(cell) for cell in row])
    return text.getvalue()


def _exact(cell: Any) -> Any:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return repr(cell) if isinstance(cell, float) else cell


def shown(cell: Any) -> str:
    """Return a cell as the report prints it."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.3g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def merged(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return columns and cells as text, with "x", "x +-" and "x: overlaps" as one."""
    kept = [i for i, name in enumerate(table.columns) if not name.endswith(("+-", OVERLAPS))]
    ends = [*kept[1:], len(table.columns)]
    rows = []
    for row in table.rows:
        cells = []
        for i, end in zip(kept, ends, strict=True):
            text = shown(row[i])
            for name, value in zip(table.columns[i + 1 : end], row[i + 1 : end], strict=True):
                if value is not None and name.endswith(OVERLAPS):
                    text += " ✓" if value else " ✗"
                elif value is not None:
                    text += f" ± {half_width_words(row[i], value)}"
            cells.append(text)
        rows.append(cells)
    return [table.columns[i] for i in kept], rows


def size_words(lengths: Sequence[int]) -> str:
    """Return a shape, or numbers of bins, as the report prints it: 100x100."""
    return "x".join(map(str, lengths))


def scale_words(
    shapes: Iterable[Sequence[int]], paper_shapes: Iterable[Sequence[int]], runs: int
) -> tuple[str, str]:
    """Return the size of runs, and that of the paper's, for `Summary`.

    Parameters
    ----------
    shapes, paper_shapes : iterable of shapes
        Of the mazes here and in the paper.
    runs : int
        Repetitions of each.
    """
    ours, theirs = (
        _listed([size_words(shape) for shape in each]) for each in (shapes, paper_shapes)
    )
    is_same = (ours, runs) == (theirs, published.RUNS)
    paper = "as in the paper" if is_same else f"the paper: {theirs}, {published.RUNS} runs"
    return f"mazes of {ours}, {runs} runs of each", paper


def _listed(words: Sequence[str]) -> str:
    """Return a list in words, of the first and the last where it is long."""
    return " and ".join(words) if len(words) < 3 else f"{words[0]} to {words[-1]}"


def opening_lines(sections: Sequence[Section], scale: str) -> list[str]:
    """Return what a report begins with, as lines of text: the scale, and which claims hold.

    Parameters
    ----------
    sections : sequence of Section
    scale : {"small", "paper"}
    """
    lines = [_scale_of(scale, sections), ""]
    for answer, verdicts in _by_answer(sections):
        lines.append(f"{_HEADINGS[answer]} ({len(verdicts)})")
        for section, verdict in verdicts:
            lines.append(f"  {_MARKS[answer]} {verdict.claim} {_evidence(section, verdict)}")
        lines.append("")
    return lines


def _by_answer(
    sections: Sequence[Section],
) -> Iterator[tuple[str, list[tuple[Section, Verdict]]]]:
    """Yield the answers that there are, with the verdicts that give them."""
    for answer in ANSWERS:
        found = [(s, v) for s in sections for v in s.summary.verdicts if v.answer == answer]
        if found:
            yield answer, found


def _evidence(section: Section, verdict: Verdict) -> str:
    """Return what a verdict rests on, with the size of the runs."""
    size, _ = section.summary.scale
    where = f" ({size})" if size and verdict.answer != NOT_TESTED else ""
    return f"{verdict.evidence[:1].upper()}{verdict.evidence[1:]}{where}."


def _scale(section: Section) -> str:
    """Return the size of the runs beside the paper's."""
    ours, theirs = section.summary.scale
    return f"{ours} ({theirs})" if theirs else ours


def section_lines(section: Section) -> list[str]:
    """Return what the report says of an experiment as lines of text, its details aside."""
    lines = [section.title, ""]
    lines += _texts(section)
    for table in section.summary.tables:
        if table.is_detail:
            continue
        columns, rows = merged(table)
        widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
        lines.append(table.title)
        for cells in (columns, *rows):
            words = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
            lines.append("  " + "  ".join(words).rstrip())
        lines += [_caption(section, table.note), ""]
    return lines


def _caption(section: Section, note: str) -> str:
    """Return what stands under a table or a figure: its note, and the size of the runs."""
    scale = f"This run: {_scale(section)}." if _scale(section) else ""
    return f"{scale} {note}".strip()


def half_width_words(mean: float, half_width: float) -> str:
    """Return half the width of an interval as the report prints it: 0 where it is rounding.

    Parameters
    ----------
    mean, half_width : float
    """
    if half_width < 1e-6 * abs(mean):
        return "0"
    return f"{half_width:.2g}" if half_width < 100 else f"{half_width:,.0f}"


def _texts(section: Section) -> list[str]:
    """Return the paragraphs of an experiment, first that runs are missing where some are."""
    notes = [f"{_missing(section)}."] if len(section.runs) < section.num_planned else []
    return [*notes, *section.summary.texts]


def _missing(section: Section) -> str:
    missing = section.num_planned - len(section.runs)
    return f"{missing} of {section.num_planned} runs are missing"


def _scale_of(scale: object, sections: Sequence[Section]) -> str:
    """Return the scale of the whole run in a sentence."""
    runs, planned = sum(len(s.runs) for s in sections), sum(s.num_planned for s in sections)
    words = "the paper's sizes" if scale == "paper" else "smaller than the paper"
    return f"Scale {scale}: {words}. {runs:,} of {planned:,} runs are done."


def _others(facts: Mapping[str, object]) -> str:
    """Return what is to be known of published numbers of other sizes, where there are any."""
    return "" if facts.get("scale") == "paper" else OTHER_SIZES


def _scales(sections: Sequence[Section]) -> list[tuple[Section, str]]:
    """Return the size of the runs of each experiment, and what is missing."""
    found = []
    for section in sections:
        missing = "" if len(section.runs) == section.num_planned else f"; {_missing(section)}"
        found.append((section, f"{_scale(section)}{missing}"))
    return found


def _markdown(sections: Sequence[Section], facts: Mapping[str, object]) -> str:
    lines = [
        "# The paper, reproduced",
        "",
        f"**{_scale_of(facts.get('scale'), sections)}** {_others(facts)}".strip(),
        "",
    ]
    lines += [f"- {section.title}: {words}" for section, words in _scales(sections)]
    lines += ["", "## The verdict", ""]
    for answer, verdicts in _by_answer(sections):
        lines += [f"**{_HEADINGS[answer]}** ({len(verdicts)})", ""]
        lines += [
            f"- {_MARKS[answer]} {verdict.claim} *{_evidence(section, verdict)}*"
            for section, verdict in verdicts
        ]
        lines.append("")
    lines += ["## The evidence", "", PREFACE, ""]
    for section in sections:
        lines += [f"### {section.title}", ""]
        for text in _texts(section):
            lines += [text, ""]
        for table in section.summary.tables:
            if table.is_detail:
                lines += [f"{table.title}: [{table.name}.csv]({table.name}.csv)", ""]
                continue
            columns, rows = merged(table)
            lines += [f"**{table.title}**", "", "| " + " | ".join(columns) + " |"]
            lines += ["|" + " --- |" * len(columns)]
            lines += ["| " + " | ".join(row) + " |" for row in rows]
            lines += ["", _caption(section, table.note), ""]
        for picture in section.summary.pictures:
            lines += [f"![{picture.title}]({picture.name}.png)", ""]
            lines += [_caption(section, picture.note), ""]
    lines += ["## Conventions", ""]
    lines += [f"- {text}" for text in CONVENTIONS]
    lines += ["", "## This run", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    return "\n".join(lines) + "\n"


# Tables become cards on a phone: a card a row, headed by the columns that say what it is about.
_STYLE = """
:root { color-scheme: light dark; --text: #1c2128; --page: #fff; --soft: #4a525c; --line: #d9dde2;
  --strong: #8a919b; --card: #f5f6f8; --link: #0b57a4; --yes: #00694d; --no: #a13d00;
  --part: #7a5a00; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7eb; --page: #15181c; --soft: #a9b1bb; --line: #363c44; --strong: #6d7681;
    --card: #1e2329; --link: #8ab9f1; --yes: #5cc9a0; --no: #f09a63; --part: #e0bd57; }
  /* Figures are drawn on white: their lightness is turned round, their hues are kept. */
  figure img { filter: invert(.92) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  margin: 0 auto; max-width: 60rem; padding: 1rem; }
a { color: var(--link); }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.35rem; margin-top: 2.5rem;
  border-bottom: 1px solid var(--line); } h3 { font-size: 1.15rem; margin-top: 2.5rem; }
h4 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
nav a { margin-right: 1em; display: inline-block; }
.scale { background: var(--card); border-left: 4px solid var(--strong); padding: .6rem 1rem;
  border-radius: 4px; }
.scale p { margin: .3rem 0; } .scale ul { margin: .3rem 0; padding-left: 1.2rem;
  font-size: .9rem; }
.verdicts { list-style: none; padding: 0; margin: 0 0 1.5rem; }
.verdicts li { padding: .35rem 0 .35rem 1.7rem; border-bottom: 1px solid var(--line);
  position: relative; }
.verdicts li::before { content: attr(data-mark); position: absolute; left: .2rem;
  font-weight: 700; }
.verdicts small { display: block; color: var(--soft); font-size: .85rem; }
.answer { font-size: 1rem; margin: 1.5rem 0 .3rem; }
.holds, .holds li::before { color: var(--yes); } .holds li, .part li, .fails li { color: inherit; }
.part, .part li::before { color: var(--part); } .fails, .fails li::before { color: var(--no); }
.untested, .untested li::before { color: var(--soft); }
ul.verdicts { color: var(--text); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
td { white-space: nowrap; }
.facts td { white-space: normal; overflow-wrap: anywhere; }
.facts td:last-child { text-align: left; }
th { vertical-align: bottom; border-bottom: 2px solid var(--strong); }
th:first-child, td:first-child, td.key, tbody th { text-align: left; }
td.yes { color: var(--yes); } td.no { color: var(--no); }
td.other { color: var(--soft); font-style: italic; }
tbody th.card { display: none; }
.note { font-size: .85rem; color: var(--soft); max-width: 46rem; }
figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; }
summary { cursor: pointer; font-weight: 600; }
@media screen and (max-width: 44rem) {
  .scroll { overflow: visible; }
  .scroll table, .scroll tbody { display: block; } .scroll thead, .scroll td.key { display: none; }
  .scroll tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.6rem, 1fr));
    column-gap: 1rem; padding: .5rem .7rem; margin: .5rem 0; background: var(--card);
    border-radius: 6px; }
  .scroll tbody th.card { display: block; grid-column: 1 / -1; border: 0; padding: 0 0 .2rem;
    font-size: .9rem; }
  .scroll td { display: flex; flex-direction: column; border: 0; padding: .15rem 0;
    text-align: left; white-space: normal; }
  .scroll td::before { content: attr(data-label); color: var(--soft); font-size: .75rem;
    font-style: normal; line-height: 1.2; }
  .scroll td:empty { display: none; }
}
@media print {
  :root { --text: #000; --page: #fff; --soft: #333; --line: #ccc; --card: #fff; --yes: #00694d;
    --no: #a13d00; --part: #7a5a00; }
  figure img { filter: none; }
  body { font-size: 10pt; max-width: none; padding: 0; } .scroll { overflow: visible; }
  nav, details { display: none; } table { font-size: 7pt; }
  tr, figure, li { break-inside: avoid; }
  th, td { padding: .1rem .3rem; } h2, h3, h4 { break-after: avoid; }
  img { max-height: 11cm; width: auto; }
}
"""

_CLASSES = {HOLDS: "holds", HOLDS_IN_PART: "part", FAILS: "fails", NOT_TESTED: "untested"}
# Pixels that an inch of a figure takes, if there is room; text is then as large as that around it.
_PIXELS_PER_INCH = 115


def _html(folder: Path, sections: Sequence[Section], facts: Mapping[str, object]) -> str:
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>The paper, reproduced</title>",
        f"<style>{_STYLE}</style></head><body>",
        "<h1>The paper, reproduced</h1>",
        '<div class="scale">',
        f"<p><b>{html.escape(_scale_of(facts.get('scale'), sections))}</b> "
        f"{html.escape(_others(facts))}</p><ul>",
        *(
            f"<li>{html.escape(section.title)}: {html.escape(words)}</li>"
            for section, words in _scales(sections)
        ),
        "</ul></div>",
        "<h2>The verdict</h2>",
    ]
    for answer, verdicts in _by_answer(sections):
        kind = _CLASSES[answer]
        parts.append(f'<h3 class="answer {kind}">{_HEADINGS[answer]} ({len(verdicts)})</h3>')
        parts.append(f'<ul class="verdicts {kind}">')
        parts += [
            f'<li data-mark="{_MARKS[answer]}">{html.escape(verdict.claim)} <small>'
            f"{html.escape(_evidence(section, verdict))} "
            f'<a href="#{section.name}">{html.escape(section.title)}</a></small></li>'
            for section, verdict in verdicts
        ]
        parts.append("</ul>")
    parts += [
        "<h2>The evidence</h2>",
        _paragraph(PREFACE),
        "<nav>",
        *(f'<a href="#{s.name}">{html.escape(s.title)}</a>' for s in sections),
        "</nav>",
    ]
    for section in sections:
        parts.append(f'<h3 id="{section.name}">{html.escape(section.title)}</h3>')
        parts += map(_paragraph, _texts(section))
        for picture in section.summary.pictures:
            data = base64.b64encode((folder / f"{picture.name}.png").read_bytes()).decode()
            width = round(_PIXELS_PER_INCH * picture.figure.get_figwidth())
            caption = html.escape(_caption(section, picture.note))
            parts.append(
                f'<figure><img alt="{html.escape(picture.title)}" width="{width}" '
                f'src="data:image/png;base64,{data}">'
                f'<figcaption class="note">{caption}</figcaption></figure>'
            )
        parts += [_html_table(section, table) for table in section.summary.tables]
    parts.append("<h2>Conventions</h2>")
    parts += [_paragraph(text) for text in CONVENTIONS]
    parts.append('<h2>This run</h2><table class="facts">')
    parts += [
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(str(value))}</td></tr>"
        for name, value in facts.items()
    ]
    parts.append("</table></body></html>")
    return "\n".join(parts) + "\n"


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def _html_table(section: Section, table: Table) -> str:
    columns, rows = merged(table)
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "\n".join(_html_row(columns, row, table.num_keys) for row in rows)
    note = html.escape(_caption(section, table.note))
    grid = (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f'</div><p class="note">{note}</p>'
    )
    title = html.escape(table.title)
    if table.is_detail:
        return f"<details><summary>{title}</summary>{grid}</details>"
    return f"<h4>{title}</h4>{grid}"


def _html_row(columns: Sequence[str], row: Sequence[str], num_keys: int) -> str:
    keys = [
        text if i == 0 else f"{column} {text}"
        for i, (column, text) in enumerate(zip(columns, row[:num_keys], strict=False))
        if text
    ]
    # The heading of a card, which a page that is wide enough does not show.
    card = f'<th class="card" scope="row">{html.escape(" · ".join(keys))}</th>'
    cells = (
        _html_cell(column, text, is_key=i < num_keys)
        for i, (column, text) in enumerate(zip(columns, row, strict=True))
    )
    return f"<tr>{card}{''.join(cells)}</tr>"


def _html_cell(column: str, text: str, *, is_key: bool) -> str:
    word = text.rpartition(" ")[2]
    kinds = {"yes": "yes", "✓": "yes", "no": "no", "✗": "no"}
    kind = "key" if is_key else "other" if column.endswith(NOT_COMPARED) else kinds.get(word, "")
    attribute = f' class="{kind}"' if kind else ""
    return f'<td{attribute} data-label="{html.escape(column)}">{html.escape(text)}</td>'
