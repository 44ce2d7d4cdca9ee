"""Makes docs/benchmarks.md, with its figure and CSV, of results that the other scripts wrote.

    python scripts/bench/peers.py --full --out build/peers
    python scripts/bench/methods.py --csv build/peers/methods.csv
    python scripts/bench/limit.py --csv build/peers/limit.csv
    python scripts/bench/scaling.py --csv build/peers/scaling.csv
    python scripts/bench/report.py build/peers

``runs.csv`` and ``setup.json`` are needed, the others are told of where they are there.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _output import markdown, read_rows, write_rows
from _results import LOST, Cell, Results, Standing, Summary, horizon_slopes
from limit import COLUMNS, cells
from scaling import slopes

ROOT = Path(__file__).resolve().parent.parent.parent
#: Names as their users know them.
NAMES = {
    "aggmaze": "aggmaze",
    "quantecon": "QuantEcon",
    "mdpsolver": "mdpsolver",
    "mdplib": "mdplib",
    "stormpy": "Storm (stormpy)",
    "bettermdptools": "bettermdptools",
    "pymdptoolbox": "pymdptoolbox",
    "scipy": "scipy, ten lines",
    "scipy_lu": "scipy, twenty lines",
    "pyamg": "pyamg",
}
#: Times ours from which a peer is said to be far behind, and within which `auto` is near the best.
FAR_AHEAD, NEAR_BEST = 3.0, 1.25

Row = dict[str, str]


# ---------------------------------------------------------------------------------------------
# The page.


def page(results: Results, folder: Path) -> str:
    """Return docs/benchmarks.md."""
    own = Results(read_rows(folder / "methods.csv"), {})
    if not own.cells:
        own = results
    parts = [
        HEAD,
        "## What loses\n",
        _losses(results),
        "![Ratios of the fastest peer's seconds to ours, sorted](benchmarks.png)\n",
        _setup(results.setup),
        "## Beside the fastest peer\n",
        _beside(results),
        "## Every peer\n",
        PEERS_TEXT,
        _every_peer(results),
    ]
    if len(own.methods) > 1:
        parts += ["## The project's own methods\n", _own_methods(own)]
    if len({gamma for _, gamma, _ in own.cells}) > 1:
        parts += ["## Discounts near 1\n", SLOPES_TEXT, _slopes(own)]
    parts += ["## Memory\n", MEMORY_TEXT, _memory(results)]
    limit, scaling = read_rows(folder / "limit.csv"), read_rows(folder / "scaling.csv")
    if limit:
        parts += [
            "## A sweep beside the memory's limit\n",
            LIMIT_TEXT,
            markdown(COLUMNS, map(cells, limit)),
        ]
    if scaling:
        parts += ["## How it grows\n", SCALING_TEXT, _scaling(scaling)]
    parts += ["## Left out\n", LEFT_OUT]
    return "\n".join(parts)


HEAD = """# Benchmarks

<!-- Written by scripts/bench/report.py from a run; change that, not this. -->

How long this project's planners and others take on the same models, at an accuracy that is
measured and not just claimed. The figures are those of one machine; the command below makes them
anew on another. A cell is a model, a discount and an accuracy.

- **The same model.** Each solver reads it from a file and solves it in a process of its own, on one
  thread. The project takes grid models as it keeps them (successors shared by the actions); peers,
  and the project in the column "general table", take state-action rows. Only solving is timed:
  reading, converting and checking are not.
- **True error.** What comes back is held against optimal values that the benchmark finds by exact
  policy iteration of its own (scipy's sparse LU, or BiCGSTAB) and certifies to 1e-10 of max|V*|.
- **Peers at their best.** A peer's stopping parameter is moved by factors of ten to the fastest
  setting that truly reaches the accuracy, which a user without V* could not know; methods and
  options are tried, and the fastest counts. "As asked" is the time with the accuracy that is wanted
  as the parameter. This project's solvers get no such help: they stop when they have *certified*
  the accuracy, and the time includes the policy and its bound.
- **Two rivals that are no library's solver**, each what is soon written with one: policy iteration
  with scipy's sparse LU ("twenty lines": eight sweeps, then policies evaluated exactly, a sweep and
  MacQueen's bounds in turn), and the same with pyamg's multigrid for nonsymmetric matrices (AIR).
- **Seconds of processor**, medians of runs in turn with the peer's, then over seeds; on several
  threads seconds of the clock. So are limits: `--timeout`, and `--far N`, at which a peer that
  takes N times as long as we do is ended.
"""

PEERS_TEXT = """Seconds at the accuracy; the fastest of each row in bold. "> 60 s": ended at
that limit. "model > limit": its form of the model was not made within twice that. "wrong": the
accuracy was not reached with any parameter tried. "memory": it ran out of what it was given.
pymdptoolbox's own bound of the number of iterations, found in a loop over all S * A * S entries,
is left out; it stops at the span of the last change without moving its values to the middle, so
that they may be off by a constant at any precision. Storm solves discounted models by value
iteration whatever method it is told, and keeps the precision that is set; bettermdptools makes its
arrays within the call that is timed.
"""

MEMORY_TEXT = """Peak of the process in MB while solving, less what it took before the model was
read (the interpreter and libraries): the model in the solver's own form is part of it.
"""

OWN_TEXT = """Certified, on one
thread, in one process (`scripts/bench/methods.py`); a method is given up at three times what the
fastest before it took. "-": not for models of this kind.
"""

SLOPES_TEXT = """Slope of log seconds against log 1/(1 - gamma), by least squares over the discounts
above: 0 where the discount costs nothing, 1 where seconds grow like the number of sweeps.
"""

OTHER_PROCESSORS = """No claim rests on one make of processor. Where only one is at hand, as in this
run, here is what another said before, from a run of an earlier version beside QuantEcon alone (its
best k and epsilon; 36 cells, seeds that nothing was tuned on):

| model | Intel Cascade Lake | AMD EPYC |
| --- | --- | --- |
| Garnet with 20 branches; cyclic at gamma .95; Garnet 2,000 | 0.88 to 0.99 (5 cells) | |
| Garnet 1e5 | 1.5 | 2.17 |
| two-mode | 13 to 24 | |
| most others | 1.0 to 2.5 | |

One cause of the difference: compiled to gather instructions, the sweep by a policy takes 3.9 ns an
entry on the Intel, and 1.1 without them.
"""

LIMIT_TEXT = """Bound: the time of a kernel that reads and writes the same arrays and does nothing
else, in the same run. A ratio of 1 is a sweep that keeps the memory busy all the time.
"""

SCALING_TEXT = """Certified to the same accuracy on one thread.
"""

LEFT_OUT = """- **state_space_disaggregation** (research code of an ICAPS 2024 paper: progressive
  disaggregation, an aggregation method after Bertsekas and Castanon, and a variant of Chen's) is in
  no package index, and is not run here. It does aggregate states, takes a sparse matrix for each
  action, and stops at a residual.
- **madupite, jaxdp, mdpax**: made for clusters and graphics cards, or not in a package index.
"""


def _setup(setup: dict[str, Any]) -> str:
    machine = setup["machine"]
    versions = {
        name: found.get(name, found.get("scipy", "?"))
        + f" (Python {found.get('python', '?')}, numpy {found.get('numpy', '?')})"
        for name, found in setup["versions"].items()
    }
    lines = [
        "## The run\n",
        "```",
        *setup["commands"],
        "```\n",
        f"{setup['date']}; {machine['processor']}, {machine['processors']} processors, "
        f"{machine['system']}; Python {machine['python']}, numpy {machine['numpy']}, scipy "
        f"{machine['scipy']}, numba {machine['numba']}; aggmaze {machine['aggmaze']}.\n",
        OTHER_PROCESSORS,
        "A cell that is empty below was not run.\n",
        *(f"- {NAMES.get(name, name)} {version}" for name, version in versions.items()),
        "",
    ]
    return "\n".join(lines)


def _named(cell: Cell) -> list[str]:
    return [cell[0], f"{cell[1]:g}", f"{cell[2]:.0e}"]


def _beside(results: Results) -> str:
    threads = max(map(results.threads, results.cells))
    rows = []
    for cell in results.cells:
        standing = results.standing(cell)
        family, *asked_for = _named(cell)
        row = [family, results.num_states(cell), *asked_for]
        row.append(_seconds(standing.ours))
        row.append(_seconds(results.of(cell, f"{results.headline} on the general table")))
        if threads > 1:
            here = results.threads(cell)
            row.append(_seconds(results.of(cell, results.headline, here)) if here > 1 else "")
        if not standing.peer:
            row += ["none", "", "", ""]
        else:
            found = standing.theirs
            asked = "not reached" if math.isnan(found.asked_ratio) else f"{found.asked_ratio:.3g}"
            row += [f"{NAMES[standing.peer]}, {found.variant}", _seconds(found)]
            row += [_ratio(standing), asked]
        rows.append(row)
    header = ["model", "states", "gamma", "accuracy", f"`{results.headline}`", "general table"]
    header += [f"{threads} threads"] if threads > 1 else []
    return markdown([*header, "fastest peer", "its seconds", "times ours", "as asked"], rows)


def _losses(results: Results) -> str:
    """Say how many cells are lost, and list them, the worst first."""
    standings = results.standings()
    known = [s for s in standings if not math.isnan(s.ratio)]
    lost = [s for s in known if s.is_lost]
    level = [s for s in known if LOST <= s.ratio < 1 / LOST]
    far = sum(s.ratio >= FAR_AHEAD for s in known)
    headline = f"`{results.headline}`"
    lines = [
        f"Of {len(known)} cells (a model, a discount, an accuracy) the fastest peer is faster than "
        f"{headline} on {len(lost)}, level within 5 % on {len(level)}, and takes at least "
        f"{FAR_AHEAD:g} times as long on {far}.\n",
    ]
    if lost:
        lines += [_standings_table(results, lost)]
    if level:
        lines += ["Level within 5 %:\n", _standings_table(results, level)]
    nobody = [s for s in standings if math.isnan(s.ratio)]
    if nobody:
        lines += ["Solved by nobody within the limits:\n"]
        lines += ["- {}, gamma {}, accuracy {}".format(*_named(s.cell)) for s in nobody]
    return "\n".join([*lines, ""])


def _standings_table(results: Results, standings: Sequence[Standing]) -> str:
    header = ["model", "gamma", "accuracy", f"`{results.headline}`", "fastest peer", "its seconds"]
    rows = [
        [
            *_named(s.cell),
            _seconds(s.ours),
            f"{NAMES[s.peer]}, {s.theirs.variant}",
            _seconds(s.theirs),
            _ratio(s),
        ]
        for s in standings
    ]
    return markdown([*header, "times ours"], rows)


def _slopes(results: Results) -> str:
    rows = []
    for (family, tol), (headline, best) in horizon_slopes(results).items():
        found = [f"{slope:.2f}" if not math.isnan(slope) else "" for slope in (headline, best)]
        if any(found):
            rows.append([family, f"{tol:.0e}", *found])
    return markdown(["model", "accuracy", f"`{results.headline}`", "best of our methods"], rows)


def _every_peer(results: Results) -> str:
    solvers = [results.headline, *results.peers]
    rows = [
        _named(cell) + _with_best([results.of(cell, solver) for solver in solvers])
        for cell in results.cells
    ]
    names = [NAMES[peer] for peer in results.peers]
    return markdown(["model", "gamma", "accuracy", "aggmaze", *names], rows)


def _own_methods(results: Results) -> str:
    ratios = {cell: results.behind(cell) for cell in results.cells}
    behind = sum(ratio > NEAR_BEST for ratio in ratios.values())
    rows = []
    for cell, ratio in ratios.items():
        text = "" if math.isnan(ratio) else "fails" if math.isinf(ratio) else f"{ratio:.2f}"
        marked = f"**{text}**" if ratio > NEAR_BEST else text
        rows.append([*_named(cell), *_with_best(results.own(cell)), marked])
    names = [f"`{method}`" for method in results.methods]
    header = ["model", "gamma", "accuracy", *names, f"`{results.headline}` / best other"]
    text = (
        f"`{results.headline}` took more than {NEAR_BEST:g} times as long as the best of the "
        f"others on {behind} of {len(ratios)} cells. "
    )
    return text + OWN_TEXT + "\n" + markdown(header, rows)


def _memory(results: Results) -> str:
    # What is needed hardly depends on gamma or the accuracy: the largest of each family.
    rows = []
    for family in dict.fromkeys(cell[0] for cell in results.cells):
        cells = [cell for cell in results.cells if cell[0] == family]
        row = [family, results.num_states(cells[0])]
        for solver in (*results.methods, *results.peers):
            memory = [s.memory for s in (results.of(cell, solver) for cell in cells) if s.is_ok]
            row.append(f"{max(memory):.0f}" if memory else "")
        rows.append(row)
    names = [*(f"`{m}`" for m in results.methods), *(NAMES[p] for p in results.peers)]
    return markdown(["model", "states", *names], rows)


def _scaling(rows: Sequence[Row]) -> str:
    table = markdown(
        ["family", "method", "states", "gamma", "seconds", "MB", "bytes a state"],
        [
            [
                row["family"],
                f"`{row['method']}`",
                f"{int(row['states']):,}",
                f"{float(row['gamma']):g}",
                f"{float(row['seconds']):.3g}",
                f"{float(row['bytes']) / 1e6:.0f}",
                f"{float(row['bytes']) / int(row['states']):.0f}",
            ]
            for row in rows
        ],
    )
    return table + "\n" + "".join(f"- {line}\n" for line in slopes(rows))


def _with_best(found: Sequence[Summary]) -> list[str]:
    """Return cells of seconds, the least in bold."""
    least = min((s.seconds for s in found if s.is_ok), default=math.nan)
    return [f"**{_seconds(s)}**" if s.seconds == least else _seconds(s) for s in found]


def _seconds(found: Summary) -> str:
    if found.is_ok:
        return f"{found.seconds:.3g}" if found.seconds >= 0.001 else f"{found.seconds:.2g}"
    if "over " in found.status:
        limit = found.status.rpartition("over ")[2]
        return f"> {limit}" if not found.status.startswith("building") else "model > limit"
    texts = {"": "", "-": "-", "not accurate": "wrong", "out of memory": "memory"}
    return texts.get(found.status, "failed")


def _ratio(standing: Standing) -> str:
    text = ("" if standing.ours.is_ok else "< ") + f"{standing.ratio:.3g}"
    return f"**{text}**" if standing.ratio < 1 else text


# ---------------------------------------------------------------------------------------------
# The figure.

WON, LOST_COLOUR, LEVEL = "#0072B2", "#D00000", "#777777"
MARKERS = "osD^vP"
TICKS = (0.001, 0.01, 0.1, 0.25, 0.5, 1, 2, 4, 10, 30, 100, 300, 1000)


def figure(results: Results, path: Path) -> None:
    """Draw how many times as long the fastest peer takes, a row a model, the worst on top."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    standings = [s for s in results.standings() if not math.isnan(s.ratio)]
    families = list(dict.fromkeys(s.cell[0] for s in standings))
    gammas = sorted({s.cell[1] for s in standings})
    tols = sorted({s.cell[2] for s in standings}, reverse=True)
    finite = [s.ratio for s in standings if 0 < s.ratio < math.inf]
    left, right = 0.7 * min([*finite, 0.5]), 1.4 * max([*finite, 2.0])
    fig, axis = plt.subplots(figsize=(11, 0.27 * len(families) + 2.4), layout="constrained")
    axis.axvspan(left / 2, 1, color=LOST_COLOUR, alpha=0.05, linewidth=0)
    axis.axvline(1, color="#333333", linewidth=1)
    for s in standings:
        family, gamma, tol = s.cell
        colour = LOST_COLOUR if s.is_lost else LEVEL if s.ratio < 1 / LOST else WON
        # The tighter accuracies are filled, and lie a little lower.
        shift = 0.18 * (tols.index(tol) - (len(tols) - 1) / 2)
        axis.plot(
            min(max(s.ratio, left), right),
            families.index(family) + shift,
            MARKERS[gammas.index(gamma) % len(MARKERS)],
            color=colour,
            markerfacecolor=colour if tol == tols[-1] else "white",
            markersize=6,
            zorder=3,
        )
        if not s.ours.is_ok:  # the ratio is the most that it can be
            place = (max(s.ratio, left), families.index(family) + shift)
            axis.annotate(
                "",
                (place[0] * 0.8, place[1]),
                place,
                arrowprops={"arrowstyle": "->", "color": colour},
            )
    axis.set_xscale("log")
    axis.set_xlim(left * 0.7, 1.2 * right)
    ticks = [t for t in TICKS if left * 0.7 <= t <= right]
    axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axis.minorticks_off()
    axis.set_yticks(range(len(families)), families)
    axis.set_ylim(len(families) - 0.4, -0.6)
    for label, family in zip(axis.get_yticklabels(), families, strict=True):
        if any(s.is_lost for s in standings if s.cell[0] == family):
            label.set_color(LOST_COLOUR)
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.set_xlabel(
        f"seconds of the fastest peer / seconds of {results.headline}: left of 1 the peer is faster"
    )
    num_lost = sum(s.is_lost for s in standings)
    axis.set_title(
        f"{num_lost} of {len(standings)} cells lost (red); an arrow: {results.headline} was ended "
        "at its limit; at the right edge: no peer got there",
        fontsize=11,
    )
    handles = [
        Line2D([], [], color="#333333", linestyle="", marker=MARKERS[i % len(MARKERS)])
        for i in range(len(gammas))
    ]
    labels = [f"gamma {gamma:g}" for gamma in gammas]
    for tol in tols:
        filled = "#333333" if tol == tols[-1] else "white"
        handles.append(
            Line2D([], [], color="#333333", linestyle="", marker="o", markerfacecolor=filled)
        )
        labels.append(f"accuracy {tol:.0e}")
    fig.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9
    )
    fig.savefig(path, dpi=150)
    plt.close(fig)


def _short(cell: str) -> str:
    """Return a long number with a fraction to three digits, nothing for NaN, others as they are."""
    try:
        number = float(cell)
    except ValueError:
        return cell
    if math.isnan(number):
        return ""
    is_long = len(cell) > 6 and ("." in cell or "e" in cell)
    return f"{number:.3g}" if is_long else cell


def main() -> None:
    """Write the page, the figure and the CSV."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, help="where peers.py wrote its results")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder to write to")
    arguments = parser.parse_args()
    rows = read_rows(arguments.folder / "runs.csv")
    if not rows:
        parser.error(f"{arguments.folder / 'runs.csv'} holds no runs")
    results = Results(rows, json.loads((arguments.folder / "setup.json").read_text()))
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "benchmarks.md").write_text(page(results, arguments.folder))
    figure(results, arguments.out / "benchmarks.png")
    short = [{name: _short(cell) for name, cell in row.items()} for row in rows]
    write_rows(arguments.out / "benchmarks.csv", short)
    print(arguments.out / "benchmarks.md")


if __name__ == "__main__":
    main()
