"""What the lines of results come to: a cell is a model, a discount and an accuracy."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _output import read_rows, write_rows

OURS = "aggmaze"
#: Below this ratio of a peer's seconds to ours a cell is lost; above, timings are level.
LOST = 0.95
#: Columns of the results that are summed up.
MEASURED = ("seconds", "own_seconds", "tol", "asked_seconds", "asked_error", "peak_mb", "before_mb")

Cell = tuple[str, float, float]
Row = dict[str, str]


@dataclass(frozen=True)
class Summary:
    """One solver on the models of one cell, over its seeds.

    Parameters
    ----------
    status : str
        "ok", or what went wrong first, or nothing where it was not run.
    variant : str
        Method, the same on all seeds but where seeds differ.
    seconds : float
        Median, NaN where a run failed.
    ratio : float
        Median of the seconds over those of ours, in pairs.
    asked_ratio : float
        The same of the peer with the accuracy asked for as its parameter; NaN where that does not
        reach it.
    memory : float
        Largest, in MB.
    """

    status: str
    variant: str
    seconds: float = math.nan
    ratio: float = math.nan
    asked_ratio: float = math.nan
    memory: float = math.nan

    @property
    def is_ok(self) -> bool:
        """Whether it reached the accuracy on every seed."""
        return self.status == "ok"


def summary(rows: Sequence[Row], clock: str = "seconds") -> Summary:
    """Return what the runs of one solver on one cell have in common."""
    failed = [row["status"] for row in rows if row["status"] != "ok"]
    variants = " / ".join(dict.fromkeys(row["variant"] for row in rows if row["variant"]))
    if failed or not rows:
        return Summary(failed[0] if failed else "", variants)
    runs = [{name: float(row[name]) for name in (clock, *MEASURED)} for row in rows]
    asked = [
        run["asked_seconds"] / run["own_seconds"] if run["asked_error"] <= run["tol"] else math.nan
        for run in runs
    ]
    return Summary(
        "ok",
        variants,
        statistics.median(run[clock] for run in runs),
        statistics.median(run["seconds"] / run["own_seconds"] for run in runs),
        statistics.median(asked) if not any(map(math.isnan, asked)) else math.nan,
        max(run["peak_mb"] - run["before_mb"] for run in runs),
    )


@dataclass(frozen=True)
class Standing:
    """How the project's own planner stands beside the fastest peer on a cell.

    Parameters
    ----------
    cell : tuple
    ours : Summary
    peer : str
        Name of the fastest that reached the accuracy, or nothing.
    theirs : Summary
    ratio : float
        Seconds of the peer over ours: below 1 the cell is lost.  Where the planner was ended at its
        limit, the most that it can be; 0 where it failed otherwise, infinite where only peers did.
    """

    cell: Cell
    ours: Summary
    peer: str
    theirs: Summary
    ratio: float

    @property
    def is_lost(self) -> bool:
        """Whether the peer is faster by more than what timings differ by."""
        return self.ratio < LOST


class Results:
    """The runs of one benchmark, by cell and solver: a peer's name, or a method of ours."""

    def __init__(self, rows: Sequence[Row], setup: dict[str, Any]) -> None:
        self.setup = setup
        self._rows: dict[Cell, dict[tuple[str, int], list[Row]]] = defaultdict(
            lambda: defaultdict(list)
        )
        solvers: dict[bool, dict[str, None]] = {True: {}, False: {}}
        for row in rows:
            cell = (row["family"], float(row["gamma"]), float(row["tol"]))
            is_ours = row["solver"] == OURS
            solver = row["variant"] if is_ours else row["solver"]
            self._rows[cell][solver, int(row["threads"])].append(row)
            solvers[is_ours][solver] = None
        self.peers = list(solvers[False])
        self.methods = [method for method in solvers[True] if " on the " not in method]
        self.headline = self.methods[0] if self.methods else ""

    @property
    def cells(self) -> list[Cell]:
        """Family, gamma and accuracy of every cell, as they were run."""
        return list(self._rows)

    def of(self, cell: Cell, solver: str, threads: int = 1) -> Summary:
        """Return what a peer or a method of ours did."""
        rows = self._rows.get(cell, {}).get((solver, threads), [])
        return summary(rows, "seconds" if threads == 1 else "wall_seconds")

    def threads(self, cell: Cell) -> int:
        """Return on how many threads the headline's method ran apart from one, 1 if it did not."""
        return max(threads for _, threads in self._rows[cell])

    def best_peer(self, cell: Cell) -> tuple[str, Summary] | None:
        """Return the fastest peer that reached the accuracy."""
        reached = [(peer, s) for peer in self.peers if (s := self.of(cell, peer)).is_ok]
        return min(reached, key=lambda pair: pair[1].seconds, default=None)

    def standing(self, cell: Cell) -> Standing:
        """Return how the first method of ours stands beside the fastest peer."""
        ours = self.of(cell, self.headline)
        peer, theirs = self.best_peer(cell) or ("", Summary("", ""))
        if ours.is_ok and peer:
            # Of pairs; of the runs apart where ours did not end in a pair.
            is_paired = not math.isnan(theirs.ratio)
            ratio = theirs.ratio if is_paired else theirs.seconds / ours.seconds
        elif ours.is_ok:
            ratio = math.inf
        elif not peer:
            ratio = math.nan
        else:
            _, _, limit = ours.status.partition("over ")
            ratio = theirs.seconds / float(limit.removesuffix(" s")) if limit else 0.0
        return Standing(cell, ours, peer, theirs, ratio)

    def standings(self) -> list[Standing]:
        """Return those of all cells, the worst first; those that nobody solved are last."""
        found = [self.standing(cell) for cell in self.cells]
        return sorted(found, key=lambda s: (math.isnan(s.ratio), s.ratio))

    def own(self, cell: Cell) -> list[Summary]:
        """Return what each method of ours did, the headline first."""
        return [self.of(cell, method) for method in self.methods]

    def behind(self, cell: Cell) -> float:
        """Return seconds of the headline over those of the best other method of ours.

        Infinite where only others got there, NaN where none of them did.
        """
        headline, *others = self.own(cell)
        best = min((s.seconds for s in others if s.is_ok), default=math.nan)
        return headline.seconds / best if headline.is_ok else best * math.inf

    def num_states(self, cell: Cell) -> str:
        """Return the number of states of the first seed, as text."""
        return f"{int(next(iter(self._rows[cell].values()))[0]['states']):,}"


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of the straight line through the logarithms, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0]) if len(x) > 1 else math.nan


def horizon_slopes(results: Results) -> dict[tuple[str, float], tuple[float, float]]:
    """Return how log seconds grow with log 1 / (1 - gamma), by family and accuracy.

    Of the headline, and of the best of all methods of ours at each discount; NaN where one discount
    has no seconds, or where there is only one.
    """
    slopes = {}
    for family, tol in dict.fromkeys((family, tol) for family, _, tol in results.cells):
        cells = [cell for cell in results.cells if (cell[0], cell[2]) == (family, tol)]
        horizons = [1 / (1 - cell[1]) for cell in cells]
        headline = [results.own(cell)[0].seconds for cell in cells]
        best = [
            min((s.seconds for s in results.own(cell) if s.is_ok), default=math.nan)
            for cell in cells
        ]
        slopes[family, tol] = slope(horizons, headline), slope(horizons, best)
    return slopes


def write_ratios(folder: Path) -> None:
    """Write ``ratios.csv`` beside ``runs.csv``: every cell in a line, what is lost first."""
    results = Results(read_rows(folder / "runs.csv"), {})
    write_rows(
        folder / "ratios.csv",
        [
            {
                "family": s.cell[0],
                "gamma": f"{s.cell[1]:g}",
                "tol": f"{s.cell[2]:g}",
                "ours": f"{s.ours.seconds:.3g}" if s.ours.is_ok else s.ours.status,
                "peer": f"{s.peer}, {s.theirs.variant}" if s.peer else "none",
                "theirs": f"{s.theirs.seconds:.3g}",
                "ratio": ("" if s.ours.is_ok else "at most ") + f"{s.ratio:.3g}",
            }
            for s in results.standings()
        ],
    )
