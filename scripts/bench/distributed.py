"""Seconds a sweep, bytes a state and seconds to a certified bound, in several processes.

    python scripts/bench/distributed.py --csv docs/distributed.csv
    python scripts/bench/distributed.py --csv docs/distributed.csv --report docs/distributed.md

The first measures: it starts ``mpiexec`` for each family, size and number of processes, and adds a
line to the CSV file for each.  The second reads that file and writes the tables, the cost model
fitted to them and the figure of weak and strong scaling into the page.  Needs what
docs/distributed.md says of installing, and matplotlib for the figure; Linux for the memory.

Families are mazes by rows: "terrain", noise by its heights alone (matrix-free); "maze", a binary
tree by its walls alone; "table", the same terrain by a table of moves.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _machine import machine_line
from _output import append_rows, markdown, print_table, read_rows

import aggmaze
import planners
from aggmaze import MazeRows

GAMMA, TOL = 0.95, 1e-3
#: What `aggmaze.model_by_rows` is given, and whether there is a table of moves.
FAMILIES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "terrain": ("TerrainMaze-v0", {"terrain": "noise", "p": 0.95}, False),
    "maze": ("StandardMaze-v0", {"generator": "binary_tree"}, False),
    "table": ("TerrainMaze-v0", {"terrain": "noise", "p": 0.95}, True),
}
MARKS = "<!-- scaling: begin -->\n", "<!-- scaling: end -->\n"
# A network on paper: seconds of a message, and bytes a second of each machine.
LATENCY, BANDWIDTH = 2e-6, 10e9
Row = dict[str, Any]


def maze_of(family: str, num_states: int) -> MazeRows:
    """Return a square maze of about so many states."""
    env_id, arguments, _ = FAMILIES[family]
    side = round(math.sqrt(num_states))
    return aggmaze.model_by_rows(env_id, shape=(side, side), **arguments)


def in_this_process(family: str, num_states: int, num_sweeps: int, path: Path) -> None:
    """Measure, in each of the processes that were started together; the first writes a row."""
    from planners.distributed.engine import part_engine
    from planners.distributed.processes import world

    processes = world()

    def slowest(action: Callable[[], object]) -> float:
        """Return the seconds that an action takes in the slowest process."""
        processes.comm.Barrier()
        started = time.perf_counter()
        action()
        return float(processes.largest(np.array([time.perf_counter() - started]))[0])

    maze, with_tables = maze_of(family, num_states), FAMILIES[family][2]
    # What kernels there are is loaded by a small one.
    small = part_engine(maze_of(family, 10**4), GAMMA, processes, with_tables=with_tables)
    room = np.zeros(len(small.terminal))
    small.sweep(room, np.empty_like(room))

    before = processes.total(peak_bytes())
    started = time.perf_counter()
    engine = part_engine(maze, GAMMA, processes, with_tables=with_tables)
    read_seconds = float(processes.largest(np.array([time.perf_counter() - started]))[0])
    V, numbers = np.zeros(len(engine.terminal)), np.ones(4)
    out = np.empty_like(V)
    sweeps, halos, reductions = [], [], []
    for _ in range(num_sweeps):
        sweeps.append(slowest(partial(engine.sweep, V, out)))
        halos.append(slowest(partial(engine.ghosts.near, V)))
        reductions.append(slowest(partial(processes.largest, numbers)))
        V, out = out, V
    num_ghosts = int(processes.largest(np.array([float(len(engine.ghosts))]))[0])
    row: Row = {
        "family": family,
        "processes": processes.size,
        "states": maze.num_states,
        "ghosts": num_ghosts,
        "read_seconds": read_seconds,
        "sweep_seconds": statistics.median(sweeps),
        "halo_seconds": statistics.median(halos),
        "reduce_seconds": statistics.median(reductions),
    }
    del V, out, engine
    if not with_tables:
        result = planners.solve(
            maze, gamma=GAMMA, engine="petsc", method="value_iteration", tol=TOL
        ).require()
        row |= {
            "solve_seconds": result.seconds,
            "sweeps": result.num_sweeps + result.num_certificate_sweeps,
            "bound": result.bound,
        }
    else:
        row |= {"solve_seconds": math.nan, "sweeps": 0, "bound": math.nan}
    # What Python, PETSc and compiled kernels take is not the model's.
    row["before_bytes"] = before
    row["peak_bytes"] = processes.total(peak_bytes())
    if processes.rank == 0:
        path.write_text(json.dumps(row))


def peak_bytes() -> int:
    """Return the most memory that this process ever had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status tells no VmHWM")


def bytes_a_state(row: Row) -> float:
    """Return what all processes together took for a state, at their peaks."""
    return (row["peak_bytes"] - row["before_bytes"]) / row["states"]


def measure(options: argparse.Namespace) -> None:
    """Start the processes of each measurement, and print and keep what they found."""
    print(machine_line(), flush=True)
    for family in options.families:
        for size in options.states:
            for count in options.processes:
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "row.json"
                    inside = ["--inside", family, str(round(size)), str(options.sweeps), str(path)]
                    subprocess.run(
                        ["mpiexec", "-n", str(count), sys.executable, __file__, *inside], check=True
                    )
                    row = json.loads(path.read_text())
                print(
                    f"  {family:8} {row['states']:13,} states, {count} processes: "
                    f"{1e3 * row['sweep_seconds']:9.2f} ms a sweep "
                    f"(halo {1e3 * row['halo_seconds']:.2f}, reduction "
                    f"{1e3 * row['reduce_seconds']:.3f}), "
                    f"{bytes_a_state(row):6.1f} bytes a state, "
                    f"read in {row['read_seconds']:.1f} s, bound {row['bound']:.3g} "
                    f"in {row['solve_seconds']:.1f} s",
                    flush=True,
                )
                if options.csv is not None:
                    append_rows(options.csv, [row])


class CostModel:
    """Seconds of a sweep: ``work states / K + halo(ghosts) + reduction(K)``, fitted to rows.

    Work is that of the largest size, with as many processes on a machine as were measured at most:
    they share its memory, which is what a sweep waits for.  Of the halo, what a process copies is
    fitted with its work; messages are those of a network on paper, two of the length of a row each
    way, and so is the reduction, ``2 log2 K`` messages.

    Parameters
    ----------
    rows : sequence of dict
        Of one family.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.on_a_machine = int(max(row["processes"] for row in rows))
        full = [row for row in rows if row["processes"] == self.on_a_machine]
        # Through the origin, by least squares of relative errors.
        per_state = [row["sweep_seconds"] * row["processes"] / row["states"] for row in full]
        shares = np.array([row["states"] / row["processes"] for row in full])
        seconds = np.array([row["sweep_seconds"] for row in full])
        # seconds = work * share + fixed, each row as important as any other.
        table = np.stack([np.ones(len(full)), 1.0 / shares], axis=1)
        if len(full) > 1:
            self.work, self.fixed = np.linalg.lstsq(table, seconds / shares, rcond=None)[0]
            self.fixed = max(0.0, float(self.fixed))
        else:
            self.work, self.fixed = per_state[0], 0.0

    def seconds(self, num_states: float, num_processes: float) -> float:
        """Return the seconds of a sweep of a square grid."""
        machines = num_processes / self.on_a_machine
        if machines <= 1:
            return float(self.work * num_states / num_processes + self.fixed)
        row_bytes = 8.0 * math.sqrt(num_states)
        halo = 2 * (LATENCY + row_bytes / BANDWIDTH)
        reduction = 2 * math.log2(machines) * LATENCY
        return float(self.work * num_states / num_processes + self.fixed + halo + reduction)


def report(rows: Sequence[Row], page: Path, figure: Path) -> None:
    """Write tables, cost model and figure into a page."""
    text = page.read_text()
    before, begin, rest = text.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not (begin and end):
        raise SystemExit(f"error: {page} has no place for the study: {MARKS[0]}{MARKS[1]}")
    header, body = table_of(rows)
    print_table(header, body)
    models = {
        family: CostModel([row for row in rows if row["family"] == family])
        for family in dict.fromkeys(row["family"] for row in rows)
    }
    parts = [f"Measured on {machine_line()}.\n\n", markdown(header, body), "\n"]
    for family, model in models.items():
        parts.append(
            f"- `{family}`: {1e9 * model.work:.2f} ns a state and process, and "
            f"{1e3 * model.fixed:.2f} ms a sweep, with {model.on_a_machine} processes a machine.\n"
        )
    paper = paper_rows(rows, models)
    parts += [
        "\nOn paper, with a network of "
        f"{1e6 * LATENCY:g} microseconds a message and {BANDWIDTH / 1e9:g} GB/s (assumed, "
        "not measured):\n\n",
        markdown(*paper),
        f"\n![Weak and strong scaling]({figure.name})\n",
    ]
    draw(rows, models, figure)
    page.write_text(before + begin + "".join(parts) + end + after)
    print(f"wrote {page} and {figure}")


def table_of(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return what was measured, as words."""
    header = ["family", "states", "processes", "ms a sweep", "halo", "reduction", "read"]
    header += ["bytes a state", "to 1e-3", "sweeps"]
    body = []
    for row in rows:
        solved = row["sweeps"] > 0
        body.append(
            [
                row["family"],
                f"{int(row['states']):,}",
                f"{int(row['processes'])}",
                f"{1e3 * row['sweep_seconds']:.2f}",
                f"{1e3 * row['halo_seconds']:.2f} ms",
                f"{1e3 * row['reduce_seconds']:.3f} ms",
                f"{row['read_seconds']:.1f} s",
                f"{bytes_a_state(row):.0f}",
                f"{row['solve_seconds']:.1f} s" if solved else "-",
                f"{int(row['sweeps'])}" if solved else "-",
            ]
        )
    return header, body


def paper_rows(
    rows: Sequence[Row], models: dict[str, CostModel]
) -> tuple[list[str], list[list[str]]]:
    """Return what the model says of more states than were measured.

    Sweeps and bytes a state are those of the largest maze of the family that was measured.
    """
    header = ["family", "states", "memory", "processes", "seconds a sweep", "to 1e-3", "efficiency"]
    body = []
    for family, model in models.items():
        largest = max(
            (row for row in rows if row["family"] == family),
            key=lambda row: (row["states"], row["processes"]),
        )
        for num_states in (1e9, 1e10):
            alone = model.work * num_states
            for count in (16, 128, 1024):
                seconds = model.seconds(num_states, count)
                solve = seconds * largest["sweeps"]
                body.append(
                    [
                        family,
                        f"1e{round(math.log10(num_states))}",
                        f"{num_states * bytes_a_state(largest) / 1e9:.0f} GB",
                        f"{count:,}",
                        f"{seconds:.3g}",
                        f"{solve:.3g} s" if solve else "-",
                        f"{100 * alone / (count * seconds):.0f} %",
                    ]
                )
    return header, body


def draw(rows: Sequence[Row], models: dict[str, CostModel], path: Path) -> None:
    """Draw weak and strong scaling: lines are the model, dots are measured.

    Strong scaling is that of the first family: the lines of others lie beside its own.
    """
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter

    counts = 2.0 ** np.arange(0, 11)
    figure, (weak, strong) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    each = 5e6
    shown = "terrain" if "terrain" in models else next(iter(models))
    for colour, (family, model) in enumerate(models.items()):
        line = [model.seconds(each * count, count) for count in counts]
        weak.plot(counts, line, color=f"C{colour}", label=family)
    for colour, num_states in enumerate((1e6, 1e7, 1e8, 1e9, 1e10)):
        label = f"1e{round(math.log10(num_states))} states"
        line = [models[shown].seconds(num_states, count) for count in counts]
        strong.plot(counts, line, color=f"C{colour}", label=label)
        for row in rows:
            if row["family"] == shown and abs(row["states"] / num_states - 1) < 0.05:
                strong.plot(row["processes"], row["sweep_seconds"], "o", color=f"C{colour}")
    for row in rows:
        if abs(row["states"] / row["processes"] / each - 1) < 0.05:
            colour = [*models].index(row["family"])
            weak.plot(row["processes"], row["sweep_seconds"], "o", color=f"C{colour}")
    weak.set_title(f"Weak scaling: {each:,.0f} states a process")
    weak.set_ylim(0, 1.3 * weak.get_ylim()[1])
    weak.legend(ncols=3)
    strong.set_title(f"Strong scaling: {shown}")
    strong.set_yscale("log")
    strong.set_ylim(top=30 * strong.get_ylim()[1])
    strong.legend(ncols=3, fontsize=9)
    for axes in (weak, strong):
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts[::2])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
        axes.set_xlabel("processes (measured: dots; a model of the cost: lines)")
        axes.set_ylabel("seconds a sweep")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measure, or report what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--families", nargs="+", choices=[*FAMILIES], default=[*FAMILIES])
    parser.add_argument("--states", nargs="+", type=float, default=[1e6, 1e7, 1e8])
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--sweeps", type=int, default=20, help="of which medians are taken")
    parser.add_argument("--csv", type=Path, help="add the figures to this file")
    parser.add_argument("--report", type=Path, metavar="PAGE", help="write a page from --csv")
    parser.add_argument("--figure", type=Path, help="by default beside the page")
    parser.add_argument("--inside", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        family, num_states, num_sweeps, path = options.inside
        in_this_process(family, int(num_states), int(num_sweeps), Path(path))
    elif options.report is None:
        measure(options)
    else:
        if options.csv is None or not options.csv.exists():
            parser.error("--report needs --csv, a file of measurements that there is")
        rows = [
            {k: v if k == "family" else float(v) for k, v in row.items()}
            for row in read_rows(options.csv)
        ]
        rows.sort(key=lambda row: (row["family"], row["states"], row["processes"]))
        report(rows, options.report, options.figure or options.report.with_suffix(".png"))


if __name__ == "__main__":
    main()
