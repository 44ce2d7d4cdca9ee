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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aggmaze.files import atomic_file
from planners.experiments.reporting import figures
from planners.experiments.study import Picture, Run, Summary, Table

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
                    text += f" ± {_half_width(row[i], value)}"
            cells.append(text)
        rows.append(cells)
    return [table.columns[i] for i in kept], rows


def size_words(lengths: Sequence[int]) -> str:
    """Return a shape, or numbers of bins, as the report prints it: 100x100."""
    return "x".join(map(str, lengths))


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
        lines += [table.note, ""] if table.note else [""]
    return lines


def _half_width(mean: float, half_width: float) -> str:
    # Where runs differ by rounding alone.
    if half_width < 1e-6 * abs(mean):
        return "0"
    return f"{half_width:.2g}" if half_width < 100 else f"{half_width:,.0f}"


def _texts(section: Section) -> list[str]:
    """Return the paragraphs of an experiment, first that runs are missing where some are."""
    missing = section.num_planned - len(section.runs)
    notes = [f"{missing} of {section.num_planned} runs are missing."] if missing else []
    return [*notes, *section.summary.texts]


def _markdown(sections: Sequence[Section], facts: Mapping[str, object]) -> str:
    lines = ["# The paper, reproduced", "", PREFACE, ""]
    for section in sections:
        lines += [f"## {section.title}", ""]
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
            lines += ["", table.note, ""]
        for picture in section.summary.pictures:
            lines += [f"![{picture.title}]({picture.name}.png)", "", picture.note, ""]
    lines += ["## Conventions", ""]
    lines += [f"- {text}" for text in CONVENTIONS]
    lines += ["", "## This run", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    return "\n".join(lines) + "\n"


_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2128; background: #fff; margin: 0 auto;
  max-width: 60rem; padding: 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.3rem; margin-top: 2.5rem;
  border-bottom: 1px solid #d0d4da; } h3 { font-size: 1rem; }
nav a { margin-right: 1em; white-space: nowrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #e3e6ea; }
td { white-space: nowrap; }
th { vertical-align: bottom; border-bottom: 2px solid #8a919b; }
th:first-child, td:first-child { text-align: left; }
td.yes { color: #00694d; } td.no { color: #a13d00; }
.note { font-size: .85rem; color: #4a525c; max-width: 46rem; }
figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; }
summary { cursor: pointer; font-weight: 600; }
@media print {
  body { font-size: 10pt; max-width: none; padding: 0; } .scroll { overflow: visible; }
  nav, details { display: none; } table { font-size: 7pt; } tr, figure { break-inside: avoid; }
  th, td { padding: .1rem .3rem; } h2, h3 { break-after: avoid; }
  img { max-height: 11cm; width: auto; }
}
"""


def _html(folder: Path, sections: Sequence[Section], facts: Mapping[str, object]) -> str:
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>The paper, reproduced</title>",
        f"<style>{_STYLE}</style></head><body>",
        "<h1>The paper, reproduced</h1>",
        _paragraph(PREFACE),
        "<nav>",
        *(f'<a href="#{s.name}">{html.escape(s.title)}</a>' for s in sections),
        "</nav>",
    ]
    for section in sections:
        parts.append(f'<h2 id="{section.name}">{html.escape(section.title)}</h2>')
        parts += map(_paragraph, _texts(section))
        for picture in section.summary.pictures:
            data = base64.b64encode((folder / f"{picture.name}.png").read_bytes()).decode()
            parts.append(
                f'<figure><img alt="{html.escape(picture.title)}" '
                f'src="data:image/png;base64,{data}">'
                f'<figcaption class="note">{html.escape(picture.note)}</figcaption></figure>'
            )
        parts += [_html_table(table) for table in section.summary.tables]
    parts.append("<h2>Conventions</h2>")
    parts += [_paragraph(text) for text in CONVENTIONS]
    parts.append("<h2>This run</h2><table>")
    parts += [
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(str(value))}</td></tr>"
        for name, value in facts.items()
    ]
    parts.append("</table></body></html>")
    return "\n".join(parts) + "\n"


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def _html_table(table: Table) -> str:
    columns, rows = merged(table)
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "\n".join("<tr>" + "".join(map(_html_cell, row)) + "</tr>" for row in rows)
    note = f'<p class="note">{html.escape(table.note)}</p>' if table.note else ""
    grid = (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"</div>{note}"
    )
    title = html.escape(table.title)
    if table.is_detail:
        return f"<details><summary>{title}</summary>{grid}</details>"
    return f"<h3>{title}</h3>{grid}"


def _html_cell(text: str) -> str:
    word = text.rpartition(" ")[2]
    kinds = {"yes": "yes", "✓": "yes", "no": "no", "✗": "no"}
    kind = f' class="{kinds[word]}"' if word in kinds else ""
    return f"<td{kind}>{html.escape(text)}</td>"
