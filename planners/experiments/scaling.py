"""What scaling in two and in more dimensions have in common: error by kind and shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planners.experiments import mazes
from planners.experiments.algorithm3 import Algorithm3, seeds
from planners.experiments.mazes import KINDS, Maze
from planners.experiments.reporting import comparison, figures, verdicts
from planners.experiments.reporting.report import scale_words, size_words
from planners.experiments.reporting.statistics import Estimate
from planners.experiments.study import (
    Configuration,
    Experiment,
    Outcome,
    Picture,
    Run,
    Summary,
    grouped,
)


@dataclass(frozen=True)
class Args:
    """Parameters of a study of scaling.

    Parameters
    ----------
    shapes : sequence of shapes
    repetitions : int
        Mazes of each kind and shape.
    most_states : int
        Size up to which the other terrains are measured too.
    iterations : int
        Of Algorithm 3.
    """

    shapes: Sequence[Sequence[int]]
    repetitions: int
    most_states: int
    iterations: int = 1000


def configurations(args: Args) -> list[Configuration]:
    """Return the mazes: by default conventions, and in the other terrains."""
    chosen = []
    for kind in KINDS:
        for shape in args.shapes:
            maze = Maze(kind, shape)
            few = maze.num_states <= args.most_states
            chosen += mazes.every_terrain(maze) if few else [maze]
    return [maze.configuration() | {"iterations": args.iterations} for maze in chosen]


def run(configuration: Configuration, seed: np.random.SeedSequence) -> Outcome:
    """Draw a maze, and measure Algorithm 3 on it (`Experiment.run`)."""
    rng, method_seed = seeds(seed)
    algorithm = Algorithm3(iterations=configuration["iterations"])
    model, V = mazes.draw_scaled(mazes.of(configuration), algorithm.gamma, rng)
    return Outcome({"errors": algorithm.errors(model, V, method_seed)})


def work(configuration: Configuration) -> float:
    """Return three runs of about 300 sweeps each."""
    maze = mazes.of(configuration)
    return 1000.0 * maze.num_states * len(maze.shape) + 5e7


def experiment(
    name: str,
    title: str,
    claim: str,
    published: Mapping[Any, Estimate],
    scales: Mapping[str, Args],
) -> Experiment:
    """Return a study of scaling as an experiment.

    Parameters
    ----------
    name, title : str
    claim : str
        What the paper says of the error.
    published : dict
        Published errors by kind and shape.
    scales : dict of Args
    """

    def summarize(args: Args, runs: list[Run]) -> Summary:
        return _summary(name, title, claim, published, args, runs)

    return Experiment(name, title, scales, configurations, run, work, summarize)


def _summary(
    name: str,
    title: str,
    claim: str,
    published: Mapping[Any, Estimate],
    args: Args,
    runs: list[Run],
) -> Summary:
    """Return the two tables, the figure and the verdicts."""
    rows: list[tuple[Maze, comparison.Errors, Estimate | None]] = [
        (
            maze,
            comparison.collect(r.values["errors"] for r in group),
            published.get((maze.kind, maze.shape)),
        )
        for maze, group in grouped(runs, mazes.of).items()
    ]
    by_default = [row for row in rows if row[0] == Maze(row[0].kind, row[0].shape)]
    keys = ["kind", "shape"]
    main = [
        ([maze.kind, size_words(maze.shape)], errors, number) for maze, errors, number in by_default
    ]
    every = [
        ([maze.kind, size_words(maze.shape), maze.terrain], errors, number)
        for maze, errors, number in rows
    ]
    points = {
        kind: [
            (maze.num_states, comparison.default(errors))
            for maze, errors, _ in by_default
            if maze.kind == kind
        ]
        for kind in KINDS
    }
    known = {
        kind: [
            (int(np.prod(shape)), number)
            for (each, shape), number in published.items()
            if each == kind
        ]
        for kind in KINDS
    }
    figure = figures.scaling(points, known)
    paper = list(dict.fromkeys(shape for _, shape in published))
    return Summary(
        [],
        [
            comparison.beside_published(name, title, keys, main),
            comparison.all_conventions(
                f"{name}_conventions", "All conventions", [*keys, "terrain"], every
            ),
        ],
        [
            Picture(
                name,
                title,
                figure,
                f"Error after {args.iterations} iterations against positions; bars are 95 % "
                "intervals, hollow marks as published.",
            )
        ],
        [
            verdicts.no_growth(claim, points, known),
            verdicts.printed(f"{title}: the errors are those printed.", main, len(published)),
        ],
        scale_words(args.shapes, paper, args.repetitions),
    )
