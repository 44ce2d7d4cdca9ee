"""Robustness to slip and to noise on the costs: the paper's table, p by sigma on 500x500 mazes.

The noise is on the action costs that the solver sees, in the unit in which the largest cost-to-go
is 100; the error is against the V* without noise.  "once": a normal number for each action, the
same for the whole run, the literal reading of "a vector added to the action costs".  "fresh": drawn
anew at each backup.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planners.experiments import mazes
from planners.experiments.algorithm3 import DEFAULT_STEPS, STEPS, Algorithm3, seeds
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

TITLE = "Robustness to slip and noise"
NOISES = ("once", "fresh")


@dataclass(frozen=True)
class Args:
    """Parameters of the study.

    Parameters
    ----------
    shape : sequence of int
    ps : sequence of float
    sigmas : sequence of float
    repetitions : int
        Mazes of each kind and p; one maze serves all sigmas.
    iterations : int
        Of Algorithm 3.
    """

    shape: Sequence[int]
    ps: Sequence[float] = (0.92, 0.95, 0.98)
    sigmas: Sequence[float] = (0.0, 0.01, 0.05, 0.1)
    repetitions: int = 20
    iterations: int = 1000


SCALES = {"small": Args(shape=(50, 50), repetitions=4), "paper": Args(shape=(500, 500))}


def configurations(args: Args) -> list[Configuration]:
    """Return the mazes by kind and p, for noise once and fresh."""
    return [
        Maze(kind, args.shape, p=p).configuration()
        | {
            "noise": noise,
            # Fresh noise of size 0 is no other than none.
            "sigmas": [sigma for sigma in args.sigmas if sigma > 0 or noise == "once"],
            "steps": list(STEPS) if noise == "once" else [DEFAULT_STEPS],
            "iterations": args.iterations,
        }
        for noise in NOISES
        for kind in KINDS
        for p in args.ps
    ]


def run(configuration: Configuration, seed: np.random.SeedSequence) -> Outcome:
    """Draw a maze, and measure Algorithm 3 on it with each noise (`Experiment.run`)."""
    rng, method_seed = seeds(seed)
    algorithm = Algorithm3(iterations=configuration["iterations"])
    model, V = mazes.draw_scaled(mazes.of(configuration), algorithm.gamma, rng)
    errors = [
        algorithm.errors(
            model,
            V,
            method_seed,
            configuration["steps"],
            noise_sigma=sigma,
            noise=configuration["noise"],
        )
        for sigma in configuration["sigmas"]
    ]
    return Outcome({"errors": errors})


def work(configuration: Configuration) -> float:
    """Return about 300 sweeps at each sigma and step index."""
    states = mazes.of(configuration).num_states
    passes = len(configuration["sigmas"]) * len(configuration["steps"])
    # To draw noise takes six times as long as the sweep that it is for.
    sweep = 6000.0 if configuration["noise"] == "fresh" else 1000.0
    return passes * (sweep * states + 2e7)


def summarize(args: Args, runs: list[Run]) -> Summary:
    """Return the tables and the figure (`Experiment.summarize`)."""
    is_same = tuple(args.shape) == published.ROBUSTNESS_SHAPE
    groups = grouped(runs, lambda about: (about["noise"], about["kind"], about["p"]))
    rows: list[tuple[str, str, float, float, comparison.Errors, Estimate | None]] = []
    for (noise, kind, p), group in groups.items():
        for i, sigma in enumerate(group[0].configuration["sigmas"]):
            errors = comparison.collect(r.values["errors"][i] for r in group)
            number = published.ROBUSTNESS.get((kind, p, sigma))
            rows.append((noise, kind, p, sigma, errors, number))
    size = size_words(args.shape)
    paper = size_words(published.ROBUSTNESS_SHAPE)
    other = "" if is_same else paper
    figure = figures.robustness(
        {
            (kind, p): [
                (sigma, comparison.default(errors), number)
                for noise, each, at, sigma, errors, number in rows
                if (noise, each, at) == ("once", kind, p)
            ]
            for kind in KINDS
            for p in args.ps
        },
        other,
    )
    by_sigma = {
        (kind, p): [
            (sigma, comparison.default(errors))
            for noise, each, at, sigma, errors, _ in rows
            if (noise, each, at) == ("once", kind, p)
        ]
        for kind in KINDS
        for p in args.ps
    }
    quiet = {
        about: points[0][1] for about, points in by_sigma.items() if points and points[0][0] == 0.0
    }
    small = verdicts.too_small(
        math.prod(args.shape), Algorithm3().epsilon, math.prod(published.ROBUSTNESS_SHAPE)
    )
    keys = ["kind", "p", "sigma"]
    once, fresh = (
        [
            ([kind, p, sigma], errors, number)
            for each, kind, p, sigma, errors, number in rows
            if each == noise
        ]
        for noise in NOISES
    )
    return Summary(
        [],
        [
            comparison.beside_published("robustness", TITLE, keys, once, other_size=other),
            comparison.all_conventions(
                "robustness_conventions", "All conventions", keys, once, is_same=is_same
            ),
            comparison.all_conventions(
                "robustness_fresh", "With noise drawn at each backup", keys, fresh, is_same=is_same
            ),
        ],
        [
            Picture(
                "robustness",
                TITLE,
                figure,
                f"Error against the size of the noise, on mazes of {size}; bars are 95 % "
                f"intervals, hollow marks as published, of {paper}.",
            )
        ],
        [
            verdicts.bears_slip(quiet, small),
            verdicts.bears_noise(by_sigma, Algorithm3().gamma, small),
            verdicts.printed(
                "The errors under slip and noise are those printed.",
                once,
                len(published.ROBUSTNESS),
                is_same=is_same,
            ),
        ],
        scale_words([args.shape], [published.ROBUSTNESS_SHAPE], args.repetitions),
    )


EXPERIMENT = Experiment("robustness", TITLE, SCALES, configurations, run, work, summarize)
