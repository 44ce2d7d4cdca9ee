"""Influence of epsilon: the error of Algorithm 3 after 1000 iterations for four bin widths.

The paper finds the error proportional to epsilon on 500x500 mazes.  Here that holds on standard
mazes; on terrain of shifted cost small bins leave more than that.  The published numbers are from a
table that the paper's source leaves commented out, and that fits other conventions than the tables
it prints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planners.experiments import mazes
from planners.experiments.algorithm3 import Algorithm3, seeds
from planners.experiments.mazes import KINDS, Maze
from planners.experiments.reporting import comparison, figures, published, verdicts
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

TITLE = "Influence of epsilon"


@dataclass(frozen=True)
class Args:
    """Parameters of the study.

    Parameters
    ----------
    shape : sequence of int
    epsilons : sequence of float
    repetitions : int
        Mazes of each kind; one maze serves all epsilons.
    iterations : int
        Of Algorithm 3.
    """

    shape: Sequence[int]
    epsilons: Sequence[float] = (0.05, 0.1, 0.5, 1.0)
    repetitions: int = 20
    iterations: int = 1000


SCALES = {"small": Args(shape=(50, 50), repetitions=4), "paper": Args(shape=(500, 500))}


def configurations(args: Args) -> list[Configuration]:
    """Return the mazes, in every terrain."""
    chosen = [maze for kind in KINDS for maze in mazes.every_terrain(Maze(kind, args.shape))]
    more = {"epsilons": list(args.epsilons), "iterations": args.iterations}
    return [maze.configuration() | more for maze in chosen]


def run(configuration: Configuration, seed: np.random.SeedSequence) -> Outcome:
    """Draw a maze, and measure Algorithm 3 on it at each epsilon (`Experiment.run`)."""
    rng, method_seed = seeds(seed)
    algorithm = Algorithm3(iterations=configuration["iterations"])
    model, V = mazes.draw_scaled(mazes.of(configuration), algorithm.gamma, rng)
    errors = [
        algorithm.with_epsilon(epsilon).errors(model, V, method_seed)
        for epsilon in configuration["epsilons"]
    ]
    return Outcome({"errors": errors})


def work(configuration: Configuration) -> float:
    """Return three runs of about 300 sweeps at each epsilon."""
    states = mazes.of(configuration).num_states
    return len(configuration["epsilons"]) * (2000.0 * states + 5e7)


def summarize(args: Args, runs: list[Run]) -> Summary:
    """Return the tables and the figure (`Experiment.summarize`)."""
    is_same = tuple(args.shape) == published.EPSILON_SHAPE
    rows: list[tuple[Maze, float, comparison.Errors, Estimate | None]] = [
        (
            maze,
            epsilon,
            comparison.collect(r.values["errors"][i] for r in group),
            published.EPSILON.get((maze.kind, epsilon)),
        )
        for maze, group in grouped(runs, mazes.of).items()
        for i, epsilon in enumerate(args.epsilons)
    ]
    defaults = {Maze(kind, tuple(args.shape)) for kind in KINDS}
    main = [
        ([maze.kind, epsilon], errors, number)
        for maze, epsilon, errors, number in rows
        if maze in defaults
    ]
    every = [
        ([maze.kind, epsilon, maze.terrain], errors, number)
        for maze, epsilon, errors, number in rows
    ]
    size = size_words(args.shape)
    points = {
        kind: [
            (epsilon, comparison.default(errors))
            for maze, epsilon, errors, _ in rows
            if maze in defaults and maze.kind == kind
        ]
        for kind in KINDS
    }
    paper = size_words(published.EPSILON_SHAPE)
    known = {
        kind: [
            (epsilon, number)
            for (each, epsilon), number in published.EPSILON.items()
            if each == kind
        ]
        for kind in KINDS
    }
    figure = figures.against_epsilon(points, known, "" if is_same else paper)
    keys = ["kind", "epsilon"]
    note = "The published numbers are from a table commented out of the paper's source."
    other = "" if is_same else paper
    return Summary(
        [],
        [
            comparison.beside_published("epsilon", TITLE, keys, main, note, other_size=other),
            comparison.all_conventions(
                "epsilon_conventions", "All conventions", [*keys, "terrain"], every, is_same=is_same
            ),
        ],
        [
            Picture(
                "epsilon",
                TITLE,
                figure,
                f"Error after {args.iterations} iterations on mazes of {size}; bars are 95 % "
                "intervals, dotted lines proportional to epsilon, hollow marks as published, of "
                f"{paper}.",
            )
        ],
        [
            verdicts.proportional(
                points, math.prod(args.shape), math.prod(published.EPSILON_SHAPE)
            ),
            verdicts.printed(
                "The errors by epsilon are those of the table that the paper's source leaves "
                "commented out.",
                main,
                len(published.EPSILON),
                is_same=is_same,
            ),
        ],
        scale_words([args.shape], [published.EPSILON_SHAPE], args.repetitions),
    )


EXPERIMENT = Experiment("epsilon", TITLE, SCALES, configurations, run, work, summarize)
