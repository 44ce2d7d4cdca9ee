"""What scaling in two and in more dimensions have in common: error by kind and shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planners.experiments import mazes
from planners.experiments.algorithm3 import Algorithm3, seeds
from planners.experiments.mazes import Maze
from planners.experiments.reporting import figures
from planners.experiments.reporting.comparison import (
    Errors,
    all_conventions,
    beside_published,
    collect,
    default,
)
from planners.experiments.reporting.statistics import Estimate
from planners.experiments.running.tasks import Configuration, Outcome, Picture, Run, Summary

KINDS = ("terrain", "standard")


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
    """Draw a maze, and measure Algorithm 3 on it."""
    rng, method_seed = seeds(seed)
    algorithm = Algorithm3(iterations=configuration["iterations"])
    model, V = mazes.draw_scaled(mazes.of(configuration), algorithm.gamma, rng)
    return Outcome({"errors": algorithm.errors(model, V, method_seed)})


def work(configuration: Configuration) -> float:
    """Return three runs of about 300 sweeps each."""
    maze = mazes.of(configuration)
    return 1000.0 * maze.num_states * len(maze.shape) + 5e7


def summarize(
    name: str,
    title: str,
    axis: str,
    published: Mapping[Any, Estimate],
    runs: list[Run],
) -> Summary:
    """Return the two tables and the figure."""
    groups: dict[Maze, list[Run]] = {}
    for each in runs:
        maze = mazes.of(each.configuration)
        groups.setdefault(maze, []).append(each)
    rows: list[tuple[Maze, Errors, Estimate | None]] = [
        (maze, collect(r.values["errors"] for r in group), published.get((maze.kind, maze.shape)))
        for maze, group in groups.items()
    ]
    main = [
        ([maze.kind, _size(maze)], errors, number, True)
        for maze, errors, number in rows
        if maze == Maze(maze.kind, maze.shape)
    ]
    every = [
        ([maze.kind, _size(maze), maze.terrain], errors, number, True)
        for maze, errors, number in rows
    ]
    figure = figures.scaling(
        axis,
        {
            kind: [
                (maze.num_states, default(errors))
                for maze, errors, _ in rows
                if maze == Maze(kind, maze.shape)
            ]
            for kind in KINDS
        },
        {
            kind: [
                (int(np.prod(shape)), number)
                for (each, shape), number in published.items()
                if each == kind
            ]
            for kind in KINDS
        },
    )
    return Summary(
        [],
        [
            beside_published(name, title, ["kind", "shape"], main),
            all_conventions(
                f"{name}_conventions",
                "All conventions",
                ["kind", "shape", "terrain"],
                every,
            ),
        ],
        [Picture(name, title, figure, "Bars are 95 % intervals; hollow: as published.")],
    )


def _size(maze: Maze) -> str:
    return "x".join(map(str, maze.shape))
