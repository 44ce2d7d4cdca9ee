"""Efficiency: error against updates and against seconds, Algorithm 3 beside value iteration.

The paper shows the first part of the curves.  Here they go on: adaptive aggregation is ahead in the
first updates and then stays where its bins keep it, where value iteration goes on to V*.

Value iteration is taken twice, as the paper has it (V_t = T V_{t-1} itself), and with V_t shifted
to the middle of MacQueen's bounds, as `planners` returns it.  Errors are measured in one run and
seconds in three others of the same seed, so that measuring takes none of the seconds; the least of
the three count, since what other programs take can only add.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.model import Model
from planners.experiments import mazes
from planners.experiments.algorithm3 import Algorithm3, seeds
from planners.experiments.mazes import KINDS, Maze
from planners.experiments.reporting import figures, published, verdicts
from planners.experiments.reporting.report import scale_words, size_words
from planners.experiments.reporting.statistics import Estimate, estimate
from planners.experiments.study import (
    Configuration,
    Experiment,
    Outcome,
    Picture,
    Run,
    Summary,
    Table,
    grouped,
)
from planners.record import Progress
from planners.solve import solve

TITLE = "Efficiency"

AGGREGATION = "adaptive aggregation"
TOTAL = "adaptive aggregation, total steps"
SWEEPS = "value iteration"
CENTRED = "value iteration, centred"
METHODS = (AGGREGATION, TOTAL, SWEEPS, CENTRED)

_TIMED_RUNS = 3


@dataclass(frozen=True)
class Args:
    """Parameters of the study.

    Parameters
    ----------
    shape : sequence of int
    num_sweeps : int
        Updates of each method, in sweeps over all states.
    repetitions : int
    shown : sequence of int
        Numbers of sweeps in the table.
    """

    shape: Sequence[int]
    num_sweeps: int = 150
    repetitions: int = 20
    shown: Sequence[int] = (1, 2, 3, 5, 10, 20, 30, 40, 50, 60, 80, 100, 150)


SCALES = {"small": Args(shape=(100, 100), repetitions=4), "paper": Args(shape=(500, 500))}


def configurations(args: Args) -> list[Configuration]:
    """Return a maze of each kind."""
    return [
        Maze(kind, args.shape).configuration() | {"num_sweeps": args.num_sweeps} for kind in KINDS
    ]


def run(configuration: Configuration, seed: np.random.SeedSequence) -> Outcome:
    """Draw a maze, and follow each method on it (`Experiment.run`)."""
    rng, method_seed = seeds(seed)
    algorithm = Algorithm3()
    model, V = mazes.draw_scaled(mazes.of(configuration), algorithm.gamma, rng)
    errors, seconds = {}, {}
    for method in METHODS:
        options = _options(method, algorithm) | {"seed": method_seed}
        errors[method], seconds[method] = _follow(model, V, configuration["num_sweeps"], options)
    return Outcome({"errors": errors}, seconds)


def _options(method: str, algorithm: Algorithm3) -> dict[str, Any]:
    """Return what `planners.solve` takes, without a limit."""
    if method == CENTRED:
        # With a tolerance, far below all that is shown: without one values are the plain iterates.
        common = {"gamma": algorithm.gamma, "num_threads": 1}
        return {"method": "value_iteration", "tol": 1e-12, **common}
    steps = "total" if method == TOTAL else "phase from 1"
    options = algorithm.options(steps)
    del options["num_iterations"]
    if method == SWEEPS:
        # Without aggregated phases Algorithm 3 is value iteration to the letter.
        options["num_aggregated"] = 0
    return options


def _follow(
    model: Model, V: NDArray[np.float64], num_sweeps: int, options: Mapping[str, Any]
) -> tuple[list[float], list[float]]:
    """Return error and seconds after updates worth 1, 2, ... sweeps over all states.

    Both are of the last iteration that ends by then.
    """
    size = model.num_states
    found: list[float] = []

    def note(progress: Progress) -> None:
        found.append(float(np.abs(progress.values - V).max()))

    limit: dict[str, Any] = {"num_updates": num_sweeps * size}
    solve(model, callback=note, **options, **limit)
    timed = [solve(model, **options, **limit).history for _ in range(_TIMED_RUNS)]
    seconds = np.min([history.seconds for history in timed], axis=0)
    ends = size * np.arange(1, num_sweeps + 1)
    last = np.searchsorted(timed[0].num_updates, ends, side="right") - 1
    return np.array(found)[last].tolist(), seconds[last].tolist()


def work(configuration: Configuration) -> float:
    """Return the sweeps of four runs of each method, one of which measures errors."""
    maze = mazes.of(configuration)
    return 60.0 * configuration["num_sweeps"] * maze.num_states + 5e7


def summarize(args: Args, runs: list[Run]) -> Summary:
    """Return the tables and the figure (`Experiment.summarize`)."""
    rows, overtaking, timing = [], [], []
    curves: dict[str, dict[str, list[Estimate]]] = {}
    clocks: dict[str, dict[str, list[float]]] = {}
    for kind, group in grouped(runs, lambda about: about["kind"]).items():
        curves[kind] = {
            method: [
                estimate([r.values["errors"][method][x] for r in group])
                for x in range(args.num_sweeps)
            ]
            for method in METHODS
        }
        clocks[kind] = {
            method: [
                # Not the mean: a worker may have had to wait for a core.
                statistics.median(r.seconds[method][x] for r in group)
                for x in range(args.num_sweeps)
            ]
            for method in METHODS
        }
        for x in args.shown:
            if x <= args.num_sweeps:
                row: list[Any] = [kind, x]
                for method in METHODS:
                    at = curves[kind][method][x - 1]
                    row += [at.mean, at.half_width]
                rows.append(row)
        for method in (SWEEPS, CENTRED):
            means = [at.mean for at in curves[kind][AGGREGATION]]
            theirs = [at.mean for at in curves[kind][method]]
            ahead = sum(a < b for a, b in zip(means, theirs, strict=True))
            # From where on value iteration stays ahead.
            behind = [x for x in range(args.num_sweeps) if means[x] < theirs[x]]
            point = behind[-1] + 1 if behind else 0
            passed = point < args.num_sweeps
            overtaking.append(
                [
                    kind,
                    method,
                    ahead,
                    point + 1 if passed else None,
                    theirs[point] if passed else None,
                ]
            )
            timing.append([kind, method, *_overtaken(means, theirs, clocks[kind], method)])
    columns = ["kind", "sweeps"]
    for method in METHODS:
        columns += [method, f"{method} +-"]
    size = size_words(args.shape)
    pictures = []
    if curves:
        pictures = [
            Picture(
                "efficiency",
                TITLE,
                figures.efficiency(curves, clocks),
                f"Mean error on mazes of {size}, with 95 % intervals; above against updates, "
                "in sweeps over all states, below against median seconds.",
            )
        ]
    pairs = {kind: (each[AGGREGATION], each[SWEEPS]) for kind, each in curves.items()}
    sizes = (math.prod(args.shape), math.prod(published.EFFICIENCY_SHAPE))
    return Summary(
        [
            "The second table says for how many updates adaptive aggregation is ahead, and from "
            "where on value iteration is. An aggregated iteration makes few updates, but is not "
            "free: the third table has the same in seconds."
        ],
        [
            Table(
                "efficiency",
                "Error after updates worth so many sweeps",
                columns,
                rows,
                f"Mazes of {size}. An aggregated iteration is K updates, a small part of a sweep. "
                "The paper prints no numbers here.",
                num_keys=2,
            ),
            Table(
                "efficiency_overtaking",
                "Where value iteration overtakes",
                [
                    "kind",
                    "against",
                    "sweeps at which aggregation is ahead",
                    "overtaken for good at sweep",
                    "error there",
                ],
                overtaking,
                "Empty where it is not within the sweeps that were made.",
                num_keys=2,
            ),
            Table(
                "efficiency_seconds",
                "The same in seconds",
                ["kind", "against", "overtaken for good at second", "error there"],
                timing,
                "Seconds of one thread, without compilation; they differ from run to run.",
                is_timing=True,
                num_keys=2,
            ),
        ],
        pictures,
        [
            verdicts.ahead_early(pairs, *sizes, Algorithm3().epsilon),
            verdicts.ahead_late(pairs, *sizes, Algorithm3().epsilon),
        ],
        scale_words([args.shape], [published.EFFICIENCY_SHAPE], args.repetitions),
    )


def _overtaken(
    ours: Sequence[float],
    theirs: Sequence[float],
    clock: Mapping[str, Sequence[float]],
    method: str,
) -> tuple[float | None, float | None]:
    """Return when the other method is ahead for good, and the error it has then."""
    times, other = np.array(clock[AGGREGATION]), np.array(clock[method])
    position = np.searchsorted(times, other, side="right") - 1
    reached = np.where(position >= 0, np.array(ours)[position], np.inf)
    behind = np.flatnonzero(reached < np.array(theirs))
    point = int(behind[-1]) + 1 if len(behind) else 0
    if point == len(other):
        return None, None
    return float(other[point]), float(theirs[point])


EXPERIMENT = Experiment("efficiency", TITLE, SCALES, configurations, run, work, summarize)
