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
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _machine import machine_line
from _output import print_table, write_rows
from families import Model, garnet, maze, terrain
from numba import njit
from numpy.typing import NDArray

from aggmaze import MoveMDP, TabularMDP
from planners.bellman import local_engine
from planners.engine import Engine

GAMMA = 0.99
#: States of which the stream reads one table before it goes on to the next.
BLOCK = 1024
#: What a sweep should not exceed, in units of the bound.
MOST_RATIO = 1.4
#: Of the table below, and of that in docs/benchmarks.md.
COLUMNS = ("layout", "threads", "MB a sweep", "GB/s", "bound ms", "sweep ms", "ratio", "limited by")


@dataclass(frozen=True)
class Layout:
    """Models to sweep: a large one, and one of the same kind that fits into a cache of 8 MB."""

    name: str
    make: Callable[[int, int], Model]
    size: int
    small_size: int


def general_terrain(num_positions: int, seed: int) -> TabularMDP:
    """Return the general table of slippery terrain."""
    return terrain(num_positions, seed, p=0.95).to_tabular()


def renumbered(num_positions: int, seed: int, p: float) -> MoveMDP:
    """Return terrain in which states 2i and 2i + 1 have changed places."""
    model = terrain(num_positions, seed, p=p)
    return MoveMDP(
        (model.successors ^ 1).reshape(-1, 2, 4)[:, ::-1].reshape(-1, 4),
        model.move_costs.reshape(-1, 2, 4)[:, ::-1].reshape(-1, 4),
        p=p,
    )


LAYOUTS = (
    Layout("2-D terrain, p = 1", terrain, 1000, 250),
    Layout("2-D slip terrain", partial(terrain, p=0.95), 1000, 250),
    Layout("2-D slip maze", partial(maze, p=0.95), 1000, 250),
    Layout("2-D, renumbered", partial(renumbered, p=0.95), 1000, 250),
    Layout("6-D slip terrain", partial(terrain, num_axes=6, p=0.95), 10, 6),
    Layout("CSR, slip terrain", general_terrain, 500, 100),
    Layout("CSR, Garnet", lambda size, seed: garnet(size, 4, 5, seed), 200_000, 10_000),
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


def measure(layout: Layout, threads: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    """Measure a layout, the stream and the sweep in turn on every number of threads.

    Returns a row of the CSV for each of these; seconds are the best of the rounds.
    """
    model, small = layout.make(layout.size, 0), layout.make(layout.small_size, 0)
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
    rows = []
    for n in threads:
        ratio = best["sweep", n] / best["bound", n]
        cached = best["cached", 1] / small.num_states / n * model.num_states / best["sweep", n]
        rows.append(
            {
                "layout": layout.name,
                "threads": n,
                "bytes": nbytes,
                "bound_seconds": best["bound", n],
                "sweep_seconds": best["sweep", n],
                "ratio": ratio,
                "limited_by": verdict(layout.name, ratio, cached),
            }
        )
    return rows


def verdict(name: str, ratio: float, cached: float) -> str:
    """Say what keeps a sweep from being faster; ``cached`` is its share with cached tables."""
    if ratio <= 1.25:
        return "memory"
    what = f"{min(cached, 1.0):.0%} of it with tables in the cache"
    if "Garnet" in name:
        return f"values fetched at random; {what}"
    return f"arithmetic: {what}" if cached > 0.8 else f"memory and arithmetic: {what}"


def cells(row: dict[str, Any]) -> list[str]:
    """Return a row of the CSV as texts under `COLUMNS`."""
    nbytes, bound, sweep = (float(row[k]) for k in ("bytes", "bound_seconds", "sweep_seconds"))
    return [
        row["layout"],
        str(row["threads"]),
        f"{nbytes / 1e6:.0f}",
        f"{nbytes / bound / 1e9:.1f}",
        f"{bound * 1e3:.2f}",
        f"{sweep * 1e3:.2f}",
        f"{float(row['ratio']):.2f}",
        row["limited_by"],
    ]


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
    print(machine_line())
    rows = [row for one in chosen for row in measure(one, arguments.threads, arguments.rounds)]
    lines = [cells(row) for row in rows]
    for row, line in zip(rows, lines, strict=True):
        line[COLUMNS.index("ratio")] += " !" if row["ratio"] > MOST_RATIO else ""
    print_table(COLUMNS, lines)
    if arguments.csv is not None:
        write_rows(arguments.csv, rows)


if __name__ == "__main__":
    main()
