"""How near a full sweep comes to what the memory can deliver.

    python scripts/bench/limit.py
    python scripts/bench/limit.py --only csr --rounds 21 --csv limit.csv

A sweep V -> TV reads every successor, cost and value once and writes every value once.  Beside it,
in the same rounds, runs a kernel that reads and writes the same arrays in the same proportion and
order, block by block, and does nothing with them but add: the time of that is the bound that
memory sets on this machine.  The figure is the ratio of the two, each the best of its rounds, as
is usual for bandwidth (to be at most 1.4, better 1.25).  Where states follow each other at random,
as in a Garnet, values are also fetched from all over V; the bound counts V once, so the ratio
shows what that costs.  On grids a sweep leaves out the successors of most blocks of states, which
follow from where the block is, and so may even be faster than a stream of all tables; "renumbered"
is a grid whose states change places in pairs, so that every successor is read.

What limits a sweep that is slower than that is told by one whose tables fit into the cache: what it
takes a state is arithmetic, and the instructions that load.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _machine import machine_line
from families import garnet, maze, terrain
from numba import njit
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from aggmaze import MoveMDP, TabularMDP
from planners.bellman import local_engine
from planners.engine import Engine

GAMMA = 0.99
#: States of which the stream reads one table before it goes on to the next.
BLOCK = 1024

Model = MoveMDP | TabularMDP


@dataclass(frozen=True)
class Layout:
    """A model to sweep; ``small`` is of the same kind and fits into a cache of 8 MB."""

    name: str
    model: Callable[[], Model]
    small: Callable[[], Model]


def table_of(make: Callable[[], MoveMDP]) -> TabularMDP:
    """Return the general table of a grid model."""
    return make().to_tabular()


def renumbered(num_positions: int, seed: int, p: float) -> MoveMDP:
    """Return terrain in which states 2i and 2i + 1 have changed places."""
    model = terrain(num_positions, seed, p=p)
    return MoveMDP(
        (model.successors ^ 1).reshape(-1, 2, 4)[:, ::-1].reshape(-1, 4),
        model.move_costs.reshape(-1, 2, 4)[:, ::-1].reshape(-1, 4),
        p=p,
    )


LAYOUTS = (
    Layout("2-D terrain, p = 1", partial(terrain, 1000, 0), partial(terrain, 250, 0)),
    Layout("2-D slip terrain", partial(terrain, 1000, 0, p=0.95), partial(terrain, 250, 0, p=0.95)),
    Layout("2-D slip maze", partial(maze, 1000, 0, p=0.95), partial(maze, 250, 0, p=0.95)),
    Layout(
        "2-D, renumbered", partial(renumbered, 1000, 0, p=0.95), partial(renumbered, 250, 0, p=0.95)
    ),
    Layout(
        "6-D slip terrain",
        partial(terrain, 10, 0, num_axes=6, p=0.95),
        partial(terrain, 6, 0, num_axes=6, p=0.95),
    ),
    Layout(
        "CSR, slip terrain",
        partial(table_of, partial(terrain, 500, 0, p=0.95)),
        partial(table_of, partial(terrain, 100, 0, p=0.95)),
    ),
    Layout("CSR, Garnet", partial(garnet, 200_000, 4, 5, 0), partial(garnet, 10_000, 4, 5, 0)),
)


@njit(nogil=True)
def _stream(words, V, out, lo, hi, block):  # type: ignore[no-untyped-def]
    """Read the states' share of every table, one block of states after the other, and write."""
    num_states = len(V)
    seen = 0
    for first in range(lo, hi, block):
        last = min(first + block, hi)
        for table in words:
            share = table[first * len(table) // num_states : last * len(table) // num_states]
            # From 0 on, or numba allows for indices from the end and reads one word at a time.
            for i in range(len(share)):
                seen += share[i]
        values, written = V[first:last], out[first:last]
        for i in range(len(values)):
            written[i] = values[i] + 1.0
    return seen


def tables_as_words(operators: Engine) -> tuple[NDArray[np.int64], ...]:
    """Return the tables of a model that have an entry a state or more, as words of 8 bytes.

    Adding up integers takes the processor next to nothing, and costs may be infinite.
    """
    words = []
    for table in operators.tables:
        if table.size >= operators.model.num_states:
            raw = np.ascontiguousarray(table).reshape(-1).view(np.uint8)
            words.append(raw[: raw.size // 8 * 8].view(np.int64))
    return tuple(words)


@dataclass(frozen=True)
class Measured:
    """Best seconds of one layout on one number of threads."""

    layout: str
    threads: int
    nbytes: int
    bound: float
    sweep: float
    cached_per_state: float
    per_state: float

    @property
    def ratio(self) -> float:
        """How many times longer than the bound a sweep takes."""
        return self.sweep / self.bound

    @property
    def bandwidth(self) -> float:
        """Bytes a second of the stream, in GB."""
        return self.nbytes / self.bound / 1e9


def measure(layout: Layout, threads: Sequence[int], rounds: int) -> list[Measured]:
    """Measure a layout, the stream and the sweep in turn on every number of threads."""
    model, small = layout.model(), layout.small()
    V = np.random.default_rng(0).random(model.num_states)
    small_values = np.random.default_rng(0).random(small.num_states)
    out, small_out = np.empty_like(V), np.empty_like(small_values)
    words = tables_as_words(local_engine(model, GAMMA, 1))
    nbytes = sum(table.nbytes for table in words) + V.nbytes + out.nbytes
    calls: dict[tuple[str, int], Callable[[], Any]] = {}
    pool = ThreadPoolExecutor(max(threads))
    edges = {n: np.linspace(0, model.num_states, n + 1).astype(int) for n in threads}

    def stream(n: int) -> None:
        parts = zip(edges[n][:-1], edges[n][1:], strict=True)
        list(pool.map(lambda part: _stream(words, V, out, *part, BLOCK), parts))

    for n in threads:
        operators = local_engine(model, GAMMA, n)
        calls["bound", n] = partial(stream, n)
        calls["sweep", n] = partial(operators.sweep, V, out)
    alone = local_engine(small, GAMMA, 1)
    calls["cached", 1] = partial(alone.sweep, small_values, small_out)
    seconds: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
    for _ in range(rounds + 1):  # the first compiles, and is not counted
        for key, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[key].append(time.perf_counter() - start)
    best = {key: min(taken[1:]) for key, taken in seconds.items()}
    pool.shutdown()
    return [
        Measured(
            layout.name,
            n,
            nbytes,
            best["bound", n],
            best["sweep", n],
            best["cached", 1] / small.num_states,
            best["sweep", n] / model.num_states,
        )
        for n in threads
    ]


def verdict(measured: Measured) -> str:
    """Say what keeps a sweep from being faster."""
    if measured.ratio <= 1.25:
        return "memory"
    share = measured.cached_per_state / measured.threads / measured.per_state
    what = f"{min(share, 1.0):.0%} of it with tables in the cache"
    if "Garnet" in measured.layout:
        return f"values fetched at random; {what}"
    return f"arithmetic: {what}" if share > 0.8 else f"memory and arithmetic: {what}"


def main() -> None:
    """Measure, and print a line for each layout and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="of which the best counts")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", default="", help="layouts whose name holds this, in any case")
    parser.add_argument("--csv", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or min(arguments.threads) < 1:
        parser.error("--rounds and --threads must be at least 1")
    chosen = [layout for layout in LAYOUTS if arguments.only.lower() in layout.name.lower()]
    if not chosen:
        parser.error(f"--only {arguments.only!r} matches no layout")
    console = Console(width=max(Console().width, 150))
    console.print(machine_line(), highlight=False, soft_wrap=True)
    table = Table()
    for name in ("layout", "threads", "MB", "GB/s", "bound ms", "sweep ms", "ratio", "limited by"):
        table.add_column(name, justify="left" if name in ("layout", "limited by") else "right")
    rows: list[dict[str, Any]] = []
    for layout in chosen:
        for one in measure(layout, arguments.threads, arguments.rounds):
            limited_by = verdict(one)
            table.add_row(
                one.layout,
                str(one.threads),
                f"{one.nbytes / 1e6:.0f}",
                f"{one.bandwidth:.1f}",
                f"{one.bound * 1e3:.2f}",
                f"{one.sweep * 1e3:.2f}",
                f"{one.ratio:.2f}{'' if one.ratio <= 1.4 else ' !'}",
                limited_by,
            )
            rows.append(
                {
                    "layout": one.layout,
                    "threads": one.threads,
                    "bytes": one.nbytes,
                    "bound_seconds": one.bound,
                    "sweep_seconds": one.sweep,
                    "ratio": one.ratio,
                    "limited_by": limited_by,
                }
            )
    console.print(table)
    if arguments.csv is not None:
        arguments.csv.parent.mkdir(parents=True, exist_ok=True)
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
