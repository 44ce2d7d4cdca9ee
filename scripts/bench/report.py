"""Makes docs/benchmarks.md, with its figure and CSV, of results that the other scripts wrote.

    python scripts/bench/peers.py --full --out build/peers
    python scripts/bench/limit.py --csv build/peers/limit.csv
    python scripts/bench/scaling.py --csv build/peers/scaling.csv
    python scripts/bench/report.py build/peers

``runs.csv`` and ``setup.json`` are needed, the other two are told of where they are there.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _output import markdown, read_rows
from limit import COLUMNS, cells
from scaling import slopes

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = "aggmaze"
#: Names as their users know them, and Okabe and Ito's colours, which stay apart for colour-blind
#: eyes; shapes say the same again.
STYLES = {
    "aggmaze": ("aggmaze", "#000000", "*"),
    "quantecon": ("QuantEcon", "#0072B2", "o"),
    "mdpsolver": ("mdpsolver", "#E69F00", "s"),
    "mdplib": ("mdplib", "#009E73", "^"),
    "stormpy": ("Storm (stormpy)", "#D55E00", "D"),
    "bettermdptools": ("bettermdptools", "#56B4E9", "v"),
    "pymdptoolbox": ("pymdptoolbox", "#CC79A7", "P"),
    "scipy": ("scipy, ten lines", "#999999", "X"),
}
NAMES = {solver: name for solver, (name, _, _) in STYLES.items()}
#: Columns of the results that are summed up.
MEASURED = ("seconds", "own_seconds", "tol", "asked_seconds", "asked_error", "peak_mb", "before_mb")

Cell = tuple[str, float, float]
Row = dict[str, str]


# ---------------------------------------------------------------------------------------------
# The page.


def page(results: Results, folder: Path) -> str:
    """Return docs/benchmarks.md."""
    parts = [
        HEAD,
        _setup(results.setup),
        "## Beside the fastest peer\n",
        _beside(results),
        _losses(results),
        "![Seconds of every solver on every family](benchmarks.png)\n",
        "## Every peer\n",
        PEERS_TEXT,
        _every_peer(results),
    ]
    if len(results.methods) > 1:
        parts += ["## The project's own methods\n", _own_methods(results)]
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
anew on another.

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
- **Seconds of processor**, medians of runs in turn with the peer's, then over seeds; on several
  threads seconds of the clock.
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
        f"{machine['scipy']}, numba {machine['numba']}; aggmaze {machine['aggmaze']}.",
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
        family, *asked_for = _named(cell)
        row = [family, results.num_states(cell), *asked_for]
        row.append(_seconds(results.of(cell, results.headline)))
        row.append(_seconds(results.of(cell, f"{results.headline} on the general table")))
        if threads > 1:
            here = results.threads(cell)
            row.append(_seconds(results.of(cell, results.headline, here)) if here > 1 else "")
        best = results.best_peer(cell)
        if best is None:
            row += ["none", "", "", ""]
        else:
            peer, found = best
            asked = "not reached" if math.isnan(found.asked_ratio) else f"{found.asked_ratio:.3g}"
            row += [f"{NAMES[peer]}, {found.variant}", _seconds(found), _ratio(found.ratio), asked]
        rows.append(row)
    header = ["model", "states", "gamma", "accuracy", f"`{results.headline}`", "general table"]
    header += [f"{threads} threads"] if threads > 1 else []
    return markdown([*header, "fastest peer", "its seconds", "times ours", "as asked"], rows)


def _losses(results: Results) -> str:
    """Say in words where a peer is faster, and where nothing can be said."""
    lost, unfinished, unsure = [], [], []
    for cell in results.cells:
        where = "{}, gamma {}, accuracy {}".format(*_named(cell))
        ours = results.of(cell, results.headline)
        if not ours.is_ok:
            unfinished.append(f"- {where}: {ours.status or 'not run'}")
            continue
        for peer in results.peers:
            found = results.of(cell, peer)
            what = f"- {where}: {NAMES[peer]} ({found.variant}) takes {found.ratio:.2g} of our time"
            if found.ratio < 0.95:
                lost.append(what)
            elif found.ratio < 1.05:
                unsure.append(what)
    lines = ["**What loses.** "]
    if lost:
        lines[0] += f"A peer is faster than `{results.headline}` here:\n"
        lines += lost
    else:
        lines[0] += f"No peer is faster than `{results.headline}` on any model of this run."
    if unsure:
        lines += ["\nLevel within 5 %:\n", *unsure]
    if unfinished:
        lines += ["\nNot solved by this project within the limits:\n", *unfinished]
    return "\n".join([*lines, ""])


def _every_peer(results: Results) -> str:
    solvers = [results.headline, *results.peers]
    rows = [
        _named(cell) + _with_best([results.of(cell, solver) for solver in solvers])
        for cell in results.cells
    ]
    names = [NAMES[peer] for peer in results.peers]
    return markdown(["model", "gamma", "accuracy", "aggmaze", *names], rows)


def _own_methods(results: Results) -> str:
    rows = []
    for cell in results.cells:
        found = [results.of(cell, method) for method in results.methods]
        others = [s.seconds for s in found[1:] if s.is_ok]
        ratio = f"{found[0].seconds / min(others):.2f}" if found[0].is_ok and others else ""
        rows.append([*_named(cell), *_with_best(found), ratio])
    names = [f"`{method}`" for method in results.methods]
    return markdown(["model", "gamma", "accuracy", *names, "first / best other"], rows)


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
        return f"{found.seconds:.3g}" if found.seconds >= 0.001 else f"{found.seconds:.1g}"
    if "over " in found.status:
        limit = found.status.rpartition("over ")[2]
        return f"> {limit}" if not found.status.startswith("building") else "model > limit"
    texts = {"": "", "not accurate": "wrong", "out of memory": "memory"}
    return texts.get(found.status, "failed")


def _ratio(ratio: float) -> str:
    return f"**{ratio:.3g}**" if ratio < 1 else f"{ratio:.3g}"


# ---------------------------------------------------------------------------------------------
# The figure.


def figure(results: Results, path: Path) -> None:
    """Draw seconds of every solver, a row a model, a panel an accuracy, at one discount."""
    import matplotlib.pyplot as plt

    gammas = sorted({cell[1] for cell in results.cells})
    gamma = 0.99 if 0.99 in gammas else gammas[-1]
    tols = sorted({cell[2] for cell in results.cells if cell[1] == gamma}, reverse=True)
    families = list(dict.fromkeys(c[0] for c in results.cells if c[1] == gamma))[::-1]
    fig, axes = plt.subplots(
        1,
        len(tols),
        figsize=(5.5 * len(tols) + 2.5, 0.34 * len(families) + 2.2),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    # Runs of several commands have limits of their own.
    only = len(results.setup["commands"]) == 1
    limit = float(results.setup["options"]["timeout"]) if only else math.inf
    for axis, tol in zip(axes[0], tols, strict=True):
        for solver in (*results.peers, results.headline):
            is_ours = solver == results.headline
            found = [results.of((family, gamma, tol), solver).seconds for family in families]
            name, colour, marker = STYLES[OURS if is_ours else solver]
            axis.scatter(
                found,
                np.arange(len(families)),
                color=colour,
                marker=marker,
                s=130 if is_ours else 34,
                label=f"aggmaze, {solver} (certified)" if is_ours else name,
                zorder=3 if is_ours else 2,
                edgecolors="white",
                linewidths=0.5,
            )
        if limit < math.inf:
            axis.axvline(limit, color="#666666", linestyle=":", linewidth=1)
            place = (limit, len(families) - 0.45)
            axis.annotate("limit", place, ha="right", va="bottom", fontsize=8)
        axis.set_xscale("log")
        axis.set_xlabel("seconds of processor, one thread")
        axis.set_title(f"true error at most {tol:.0e} of max|V*|", fontsize=10)
        axis.set_yticks(np.arange(len(families)), families)
        axis.set_ylim(-0.6, len(families) - 0.1)
        axis.grid(axis="both", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    handles, labels = axes[0][0].get_legend_handles_labels()
    fig.legend(
        handles[::-1], labels[::-1], loc="outside lower center", ncols=4, frameon=False, fontsize=9
    )
    fig.suptitle(
        f"Seconds to solve, gamma {gamma:g}; without a mark: not run, or not there in time",
        fontsize=11,
    )
    fig.savefig(path, dpi=150)
    plt.close(fig)


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
    shutil.copyfile(arguments.folder / "runs.csv", arguments.out / "benchmarks.csv")
    print(arguments.out / "benchmarks.md")


if __name__ == "__main__":
    main()
