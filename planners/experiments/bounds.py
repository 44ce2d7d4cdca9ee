"""The bounds that the paper proves, and how far below them runs stay.

- Theorem 1: where alpha_t -> 0, limsup |V_t - V*| <= 2 epsilon / (1-gamma).
- Proposition 1: with mega-states within which V* differs by at most e, Algorithm 1 tends to values
  within e / (1-gamma) of V*, whose greedy policy loses at most 2 gamma e / (1-gamma)^2.
- Propositions 2 and 3: with small steps (constant, or t^-beta), |V_t - V*| <= 3 epsilon / (1-gamma)
  from soon on, for good.

Proposition 2 prints ``alpha < epsilon / ((1-gamma) a)`` for phases of a iterations; its proof
bounds what an aggregated phase adds to the error by epsilon, for which it needs
``alpha <= epsilon (1-gamma) / (4 a)``, and Proposition 3's proof uses just that.  Both are
measured: the bound itself, and whether a phase adds no more than epsilon.

The paper assumes costs of at most 1 in size, which the mazes here are scaled to.  Of several runs
the largest error counts, since bounds must hold for all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.models.moves import MoveMDP
from planners.aggregation import aggregate_by_value
from planners.evaluation import evaluate
from planners.experiments import mazes
from planners.experiments.algorithm3 import seeds
from planners.experiments.mazes import KINDS, Maze
from planners.experiments.reporting import figures, verdicts
from planners.experiments.reporting.report import size_words
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
from planners.policies import q_values
from planners.record import Progress
from planners.solve import solve

TITLE = "The bounds"

THEOREM_1 = "Theorem 1"
PROPOSITION_1 = "Proposition 1"
PROPOSITION_2_PRINTED = "Proposition 2, as printed"
PROPOSITION_2_PROVED = "Proposition 2, as its proof needs it"
PROPOSITION_3 = "Proposition 3"

#: What the bounds say.
CLAIMS = {
    THEOREM_1: "Theorem 1: with steps that vanish, errors are at most 2 epsilon / (1-gamma).",
    PROPOSITION_1: (
        "Proposition 1: with given mega-states, errors are at most e / (1-gamma), and policies "
        "lose at most 2 gamma e / (1-gamma)^2."
    ),
    PROPOSITION_2_PRINTED: (
        "Proposition 2, as printed: with constant steps below epsilon / ((1-gamma) a), errors are "
        "at most 3 epsilon / (1-gamma)."
    ),
    PROPOSITION_2_PROVED: (
        "Proposition 2, as its proof needs it: the same with steps of epsilon (1-gamma) / (4 a)."
    ),
    PROPOSITION_3: (
        "Proposition 3: with steps of t^-beta, errors are at most 3 epsilon / (1-gamma) from soon "
        "on."
    ),
}

# Below 1 / epsilon and (1-gamma) alike, so that both conditions of Proposition 2 say something.
GAMMA = 0.9
NUM_GLOBAL, NUM_AGGREGATED = 2, 5


@dataclass(frozen=True)
class Args:
    """Parameters of the study.

    Parameters
    ----------
    shape : sequence of int
    repetitions : int
        Mazes of each kind for each claim.
    iterations : int
    epsilon : float
    betas : sequence of float
        Of Proposition 3.
    """

    shape: Sequence[int]
    repetitions: int
    iterations: int = 3000
    epsilon: float = 0.2
    betas: Sequence[float] = (1.0, 2.0)


SCALES = {
    "small": Args(shape=(20, 20), repetitions=2),
    "paper": Args(shape=(50, 50), repetitions=20, iterations=20_000, betas=(0.75, 1.0, 2.0)),
}


def configurations(args: Args) -> list[Configuration]:
    """Return the claims on both kinds of mazes."""
    epsilon, gamma, a = args.epsilon, GAMMA, NUM_AGGREGATED
    claims: list[dict[str, Any]] = [
        {"claim": THEOREM_1, "step_size": "t^-1"},
        {"claim": PROPOSITION_1, "step_size": "t^-0.6"},
        {
            "claim": PROPOSITION_2_PRINTED,
            "step_size": min(1.0, 0.999 * epsilon / ((1 - gamma) * a)),
        },
        {"claim": PROPOSITION_2_PROVED, "step_size": epsilon * (1 - gamma) / (4 * a)},
        *({"claim": PROPOSITION_3, "step_size": f"t^-{beta:g}"} for beta in args.betas),
    ]
    return [
        {
            **Maze(kind, args.shape, p=0.9).configuration(),
            "epsilon": epsilon,
            "iterations": args.iterations,
            **claim,
        }
        for claim in claims
        for kind in KINDS
    ]


def run(configuration: Configuration, seed: np.random.SeedSequence) -> Outcome:
    """Draw a maze with costs of at most 1, and follow a run on it (`Experiment.run`)."""
    rng, method_seed = seeds(seed)
    model = mazes.draw(mazes.of(configuration), rng)
    model = model.scaled(1.0 / float(np.abs(model.move_costs[model.available]).max()))
    V = solve(model, gamma=GAMMA, tol=1e-11, num_threads=1).require().values
    if configuration["claim"] == PROPOSITION_1:
        return Outcome(_follow_given_labels(model, V, method_seed, configuration))
    errors: list[float] = []
    solve(
        model,
        gamma=GAMMA,
        method="adaptive_aggregation",
        epsilon=configuration["epsilon"],
        num_global=NUM_GLOBAL,
        num_aggregated=NUM_AGGREGATED,
        step_size=configuration["step_size"],
        num_iterations=configuration["iterations"],
        seed=method_seed,
        num_threads=1,
        callback=lambda progress: errors.append(float(np.abs(progress.values - V).max())),
    )
    cycle = NUM_GLOBAL + NUM_AGGREGATED
    before = np.array(errors[NUM_GLOBAL - 1 :: cycle])
    after = np.array(errors[cycle - 1 :: cycle])
    rises = after - before[: len(after)]
    settled = _settled(configuration)
    settled_errors = errors[settled:]
    return Outcome(
        {
            "iterations": _marks(len(errors)),
            # The largest since the last mark: bounds of all iterations must hold at each.
            "errors": _largest_since(errors),
            "settled": settled,
            "settled_error": max(settled_errors) if settled_errors else None,
            "largest_rise": float(rises.max()),
        }
    )


def _follow_given_labels(
    model: MoveMDP, V: NDArray[np.float64], seed: int, configuration: Configuration
) -> dict[str, Any]:
    """Return errors and losses of Algorithm 1 over their bounds."""
    labels = aggregate_by_value(V, configuration["epsilon"]).labels
    spread = max(float(np.ptp(V[labels == j])) for j in range(int(labels.max()) + 1))
    marks = _marks(configuration["iterations"])
    errors, losses = [], []

    def note(progress: Progress) -> None:
        if progress.iteration in marks:
            values = progress.values
            policy = q_values(model, values, GAMMA).argmin(axis=1)
            errors.append(float(np.abs(values - V).max()))
            losses.append(float((evaluate(model, policy, GAMMA) - V).max()))

    solve(
        model,
        gamma=GAMMA,
        method="fixed_aggregation",
        labels=labels,
        step_size=configuration["step_size"],
        num_iterations=configuration["iterations"],
        seed=seed,
        num_threads=1,
        callback=note,
    )
    return {"iterations": marks, "errors": errors, "losses": losses, "spread": spread}


def _settled(configuration: Configuration) -> int:
    """Return the iterations after which a claim holds, by its proof.

    First the aggregated iterations until a phase moves W by at most epsilon / 2, where steps get
    smaller, then the cycles in which what the start is off falls to epsilon / (1-gamma).
    """
    epsilon, step_size = configuration["epsilon"], configuration["step_size"]
    cycles = max(1, math.ceil(math.log(epsilon) / math.log(GAMMA))) + 2
    if isinstance(step_size, str):
        beta = float(step_size.removeprefix("t^-"))
        least = (4 * NUM_AGGREGATED / ((1 - GAMMA) * epsilon)) ** (1 / beta)
        cycles += math.ceil(least / NUM_AGGREGATED)
    return cycles * (NUM_GLOBAL + NUM_AGGREGATED)


def _marks(iterations: int) -> list[int]:
    """Return about 60 iterations, evenly spaced in logarithm, the last among them."""
    marks = np.unique(np.geomspace(1, iterations, 60).round().astype(int))
    return [int(mark) for mark in marks]


def _largest_since(errors: Sequence[float]) -> list[float]:
    """Return the largest error from one mark to the next, for each mark."""
    ends = _marks(len(errors))
    return [max(errors[lo:hi]) for lo, hi in zip([0, *ends[:-1]], ends, strict=True)]


def work(configuration: Configuration) -> float:
    """Return the iterations, most of whose time is calls, and the errors."""
    return 1e5 * configuration["iterations"]


def _bound(epsilon: float, claim: str) -> float:
    return (2 if claim == THEOREM_1 else 3) * epsilon / (1 - GAMMA)


def summarize(args: Args, runs: list[Run]) -> Summary:
    """Return the tables and the figure (`Experiment.summarize`)."""
    groups = grouped(runs, lambda about: (about["claim"], str(about["step_size"]), about["kind"]))
    rows: list[list[Any]] = []
    panels: dict[str, list[tuple[str, Sequence[float], Sequence[float]]]] = {}
    ratios_of: dict[str, dict[str, float | None]] = {}
    rises_of: dict[str, dict[str, float]] = {}
    for (claim, step, kind), group in groups.items():
        marks = group[0].values["iterations"]
        if claim == PROPOSITION_1:
            ratios = _ratios_of_proposition_1(group)
            for quantity, by_run in ratios.items():
                curve = np.max(by_run, axis=0).tolist()
                panels.setdefault(claim, []).append((f"{quantity}, {kind}", marks, curve))
                ratio = curve[-1]
                ratios_of.setdefault(claim, {})[f"{quantity}, {kind}"] = ratio
                row = [f"{claim}: {quantity}", step, kind, len(group), marks[-1]]
                rows.append([*row, ratio, ratio <= 1, None, None])
            continue
        bound = _bound(args.epsilon, claim)
        curve = (np.max([r.values["errors"] for r in group], axis=0) / bound).tolist()
        label = f"alpha = {_shown(step)}, {kind}"
        panels.setdefault(claim, []).append((label, marks, curve))
        late = [r.values["settled_error"] for r in group]
        ratio = max(late) / bound if None not in late else None
        rise = max(r.values["largest_rise"] for r in group) / args.epsilon
        settled = group[0].values["settled"]
        ratios_of.setdefault(claim, {})[label] = ratio
        rises_of.setdefault(claim, {})[label] = rise
        held = None if ratio is None else ratio <= 1
        rows.append([claim, _shown(step), kind, len(group), settled, ratio, held, rise, rise <= 1])
    size = size_words(args.shape)
    table = Table(
        "bounds",
        TITLE,
        [
            "claim",
            "alpha",
            "kind",
            "runs",
            "from iteration",
            "largest error / bound",
            "bound holds",
            "largest rise in a phase / epsilon",
            "rise within epsilon",
        ],
        rows,
        f"Mazes of {size} with costs of at most 1, p 0.9, gamma {GAMMA:g}, epsilon "
        f"{args.epsilon:g}, {NUM_GLOBAL} global and {NUM_AGGREGATED} aggregated iterations. The "
        "iteration from which a claim holds is what its proof gives; empty where the run is "
        "shorter. The rise is what an aggregated phase adds to the error, which the proofs bound "
        "by epsilon once steps are small; the largest of the whole run is shown, with steps that "
        "are not small yet.",
        num_keys=3,
    )
    pictures = []
    if panels:
        pictures = [
            Picture(
                "bounds",
                TITLE,
                figures.bounds([(c, "measured / bound", lines) for c, lines in panels.items()]),
                "The largest of all runs, over the bound.",
            )
        ]
    return Summary(
        [
            "Proposition 2 is measured with steps as large as it prints, and as its proof needs "
            "them. With the former an aggregated phase may add more than epsilon to the error, "
            "which the proof does not allow; whether the bound itself is kept, the table says."
        ],
        [table],
        pictures,
        [
            verdicts.bound(
                words, ratios_of.get(claim, {}), rises_of.get(claim, {}), num_runs=args.repetitions
            )
            for claim, words in CLAIMS.items()
        ],
        (f"mazes of {size}, {args.repetitions} runs of each", "the paper measures none of this"),
    )


def _ratios_of_proposition_1(group: Sequence[Run]) -> Mapping[str, list[NDArray[np.float64]]]:
    """Return errors and losses over their bounds, an array for each run."""
    value_bounds = [r.values["spread"] / (1 - GAMMA) for r in group]
    losses = [2 * GAMMA * bound / (1 - GAMMA) for bound in value_bounds]
    return {
        "values": [
            np.array(r.values["errors"]) / bound
            for r, bound in zip(group, value_bounds, strict=True)
        ],
        "loss of the policy": [
            # A loss of 0, rounding in, is drawn at the foot of a logarithmic scale.
            np.maximum(np.array(r.values["losses"]) / bound, 1e-6)
            for r, bound in zip(group, losses, strict=True)
        ],
    }


def _shown(step: str) -> str:
    return step if step.startswith("t") else f"{float(step):.3g}"


EXPERIMENT = Experiment("bounds", TITLE, SCALES, configurations, run, work, summarize)
