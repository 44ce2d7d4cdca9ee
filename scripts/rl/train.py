"""Reinforcement learning on small mazes, held against the exact optimum.

    python scripts/rl/train.py --out rl-results
    python scripts/rl/train.py --algorithms q_learning --sides 5 --seeds 0 1 2 --out rl-results
    python scripts/rl/train.py --algorithms ppo --observation coordinates --out rl-coordinates

Each agent learns each maze with each seed. Every so many steps its greedy policy is evaluated
exactly, on the maze's transition model, and compared with the optimum that `planners.solve` finds.
Writes `curves.csv` (regret over steps) and `runs.csv` (a line a run: steps, seconds, final regret,
what real episodes cost) after every run, at the end `regret.png`, and prints a table in Markdown.
The same arguments give the same numbers but for the seconds.

Tabular Q-learning needs this project and its extra `plots` alone; the others need an environment
with `scripts/rl/requirements.txt` in it, as docs/rl.md says.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import groupby, product
from pathlib import Path

import _curves
import numpy as np
from _problem import Judge, Problem, Task
from _runs import CLOSE, Point, Run, Watcher, write_csv
from numpy.typing import NDArray
from q_learning import q_learning

ALGORITHMS = ("ppo", "maskable_ppo", "dqn", "q_learning")
ENV_IDS = ("StandardMaze-v0", "TerrainMaze-v0")
#: What the deep agents observe; tables know states only.
OBSERVATIONS = ("state", "one_hot", "coordinates", "local_view", "image")
#: Environments that the deep agents step together, and steps of all of them, a state of the maze.
NUM_ENVS, STEPS_A_STATE = 16, 1_000
#: Evaluations of a run, beside the one at its beginning.
NUM_EVALUATIONS = 25
NUM_EPISODES = 100


def main() -> int:
    """Train, write, print; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    parser.add_argument("--envs", nargs="+", choices=ENV_IDS, default=ENV_IDS)
    parser.add_argument("--sides", nargs="+", type=int, default=[5, 8], help="sizes of the mazes")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--steps", type=int, help=f"of each run; else {STEPS_A_STATE:,} a state")
    parser.add_argument("--p", type=float, default=0.9, help="probability of the chosen move")
    parser.add_argument("--gamma", type=float, default=0.98)
    parser.add_argument(
        "--start",
        choices=("uniform", "corner"),
        default="uniform",
        help="where episodes of the training start",
    )
    parser.add_argument("--observation", choices=OBSERVATIONS, default="state")
    parser.add_argument(
        "--library-settings",
        action="store_true",
        help="one environment, and all settings as SB3 has them by default, instead of those for "
        "small mazes",
    )
    parser.add_argument("--out", type=Path, default=Path("rl-results"), help="folder")
    options = parser.parse_args()
    if options.steps is not None and options.steps < 1:
        parser.error(f"--steps must be at least 1, got {options.steps}")
    if set(options.algorithms) != {"q_learning"} and find_spec("sb3_contrib") is None:
        parser.error(
            "without Stable-Baselines3, as docs/rl.md installs it, there is q_learning only"
        )
    if "q_learning" in options.algorithms and (
        options.observation != "state" or options.library_settings
    ):
        parser.error(
            "--observation and --library-settings are for networks: q_learning keeps a table of "
            "states, name other --algorithms"
        )
    try:
        problems = [
            Problem(env_id, side, options.p, options.gamma)
            for env_id, side in product(options.envs, options.sides)
        ]
        judges = {problem: Judge(problem) for problem in problems}
    except (TypeError, ValueError) as error:
        parser.error(str(error))
    options.out.mkdir(parents=True, exist_ok=True)

    points: list[Point] = []
    runs: list[Run] = []
    for problem, judge in judges.items():
        num_steps = options.steps or STEPS_A_STATE * problem.side**2
        for algorithm, seed in product(options.algorithms, options.seeds):
            task = Task(
                algorithm,
                problem,
                seed,
                num_steps,
                options.start,
                options.observation,
                options.library_settings,
            )
            watcher = Watcher(task, judge)
            learn(task, judge, watcher)
            points += watcher.points
            runs.append(watcher.result(NUM_EPISODES))
            write_csv(options.out / "curves.csv", points)
            write_csv(options.out / "runs.csv", runs)
            last = runs[-1]
            print(
                f"{problem}, {algorithm}, seed {seed}: {last.steps:,} steps in "
                f"{last.seconds:.1f} s, regret {last.start_regret:.3g} from the start, "
                f"{last.mean_regret:.3g} on average",
                file=sys.stderr,
            )
    _curves.draw(points, options.out / "regret.png")
    print(table(runs))
    return 0


def learn(task: Task, judge: Judge, watch: Watcher) -> None:
    """Train one agent with one seed, and show its greedy policies to the watcher."""
    # Whole steps of all environments.
    every = NUM_ENVS * max(1, round(task.num_steps / (NUM_EVALUATIONS * NUM_ENVS)))
    if task.algorithm == "q_learning":

        def show(step: int, Q: NDArray[np.float64]) -> None:
            if step % every == 0 or step == task.num_steps:
                watch(step, Q.argmax(axis=1))

        env, gamma = task.problem.make(task.start), task.problem.gamma
        q_learning(env, gamma=gamma, num_steps=task.num_steps, seed=task.seed, watch=show)
        return
    # Not before it is needed: Q-learning runs where there is no torch.
    import _deep

    num_envs = 1 if task.library_settings else NUM_ENVS
    _deep.learn(task, num_envs=num_envs, every=every, action_mask=judge.action_mask, watch=watch)


def table(runs: Sequence[Run]) -> str:
    """Return a table in Markdown, a line for each maze and agent: medians and ranges of seeds."""
    lines = [
        "| maze | agent | observation | steps | seconds | optimal at the end | since step | after "
        f"seconds | within {CLOSE:.0%} since step | regret at the start | mean regret | V* at the "
        "start |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (env_id, side, algorithm), group in groupby(
        runs, key=lambda run: (run.env_id, run.side, run.algorithm)
    ):
        of = list(group)
        cells = [
            f"{env_id} {side}x{side}",
            algorithm,
            of[0].observation,
            f"{of[0].steps:,}",
            spread([run.seconds for run in of], ".1f"),
            f"{sum(run.optimal_since is not None for run in of)} of {len(of)}",
            spread([run.optimal_since for run in of], ",.0f"),
            spread([run.optimal_seconds for run in of], ".1f"),
            spread([run.close_since for run in of], ",.0f"),
            spread([rounded(run.start_regret) for run in of], ".2g"),
            spread([rounded(run.mean_regret) for run in of], ".2g"),
            f"{of[0].optimal_cost:.4g}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def spread(values: Sequence[float | None], form: str) -> str:
    """Return the median of values and their range; None stands for what never came."""
    numbers = [math.inf if value is None else value for value in values]
    middle, low, high = (
        "never" if number == math.inf else format(number, form)
        for number in (statistics.median_high(numbers), min(numbers), max(numbers))
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def rounded(regret: float) -> float:
    """Return a regret without what is left of one by rounding, or a sign of 0."""
    return round(regret, 9) + 0.0


if __name__ == "__main__":
    sys.exit(main())
