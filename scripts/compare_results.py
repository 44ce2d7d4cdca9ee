"""Compare what two checkouts compute, bit for bit, and how long they take.

``python3 scripts/compare_results.py ../other`` solves the same models by all methods in this
checkout and in the other, evaluates, arrives and rolls out, and names what differs: values, plans,
bounds, counts, statuses.  A change that is to compute what was computed before is looked at with
this.  ``--rounds 5`` runs both in turn so often and adds the ratio of their CPU seconds, a family
and method a line, medians.

The other checkout may be older: this file and the families of ``scripts/bench`` make the models
there too, by public names.  It ends with 1 if anything differs.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from functools import partial
from pathlib import Path

import _venv

METHODS = {
    "value_iteration": [{}, {"num_iterations": 7}],
    "gauss_seidel": [{}, {"num_iterations": 7}],
    "modified_policy_iteration": [{}, {"inner_sweeps": 3}, {"inner_sweeps": 0}],
    "policy_iteration": [{}, {"num_iterations": 2}],
    "multilevel_policy_iteration": [{}, {"start": "given"}, {"num_sweeps": 2}],
    "forest_policy_iteration": [{}, {"start": "sweeps"}, {"num_sweeps": 1}],
    "basin_aggregation": [{}, {"num_retraced": 0}],
    "fixed_aggregation": [{"num_iterations": 50}],
    "adaptive_aggregation": [
        {"num_iterations": 60},
        {"epsilon": "shrink"},
        {"num_iterations": 40, "noise_sigma": 0.05, "noise": "fresh"},
    ],
    "auto": [{}],
}
GAMMAS = (0.9, 0.99, 0.999)
# Models of more states are solved at one discount, without what takes long on them.
MANY_STATES = 20_000
SECONDS = "seconds of "


def families():
    """Return functions that make a model each, by name: mazes, grids, general models."""
    import gymnasium as gym

    import planners

    sys.path.append(str(Path(__file__).resolve().parent / "bench"))
    import families as bench

    def environment(name, **options):
        return lambda: planners.as_model(gym.make(name, **options))

    maze, terrain = (partial(environment, f"{kind}Maze-v0") for kind in ("Standard", "Terrain"))
    return {
        "maze": maze(shape=(40, 40), layout_seed=1),
        "slippery maze": maze(shape=(30, 50), layout_seed=2, p=0.8),
        "maze of few certainties": maze(shape=(9, 9), layout_seed=2, p=0.2),
        "large maze": maze(shape=(300, 300), layout_seed=1, p=0.9),
        "terrain": terrain(shape=(60, 60), layout_seed=3),
        "slippery terrain": terrain(shape=(50, 40), layout_seed=3, p=0.7),
        "large terrain": terrain(shape=(250, 250), layout_seed=1, p=0.9),
        "three axes": environment("NDMaze-v0", shape=(10, 10, 10), layout_seed=4, p=0.9),
        "five axes": environment("NDMaze-v0", shape=(4, 4, 4, 4, 4), layout_seed=4),
        "cart-pole": environment("DiscretizedCartPole-v0", bins=(6, 6, 8, 8)),
        "frozen lake": environment("FrozenLake-v1", map_name="8x8"),
        "taxi": environment("Taxi-v4" if "Taxi-v4" in gym.registry else "Taxi-v3"),
        "lake of many ends": partial(bench.frozen_lake, 50, 1),
        "garnet": partial(bench.garnet, 2000, 4, 5, 0),
        "large garnet": partial(bench.garnet, 100_000, 4, 5, 2),
        "small garnet": partial(bench.garnet, 30, 3, 4, 3),
        "queues": partial(bench.tandem_queue, 40, 0),
        "inventory": partial(bench.inventory, 500, 0),
        "sailing": partial(bench.sailing, 12),
    }


def digest(array):
    """Return what stands for the bits of an array."""
    return hashlib.sha256(array.tobytes()).hexdigest()[:16]


def contents(report):
    """Return what a dataclass holds, arrays by their bits."""
    held = {field.name: getattr(report, field.name) for field in dataclasses.fields(report)}
    return {k: digest(v) if hasattr(v, "tobytes") else repr(v) for k, v in held.items()}


def found_by(result):
    """Return what a solve returned, but for the seconds."""
    return [
        digest(result.values),
        digest(result.policy),
        digest(result.history.bound),
        digest(result.history.residual),
        "" if result.labels is None else digest(result.labels),
        *(repr(result.bound), repr(result.policy_bound)),
        *(result.num_iterations, result.num_updates, result.num_sweeps),
        *(str(result.status), result.message),
    ]


def solves(model):
    """List every solve of a model: method, options that name it, and options that go without."""
    import numpy as np

    import planners

    is_large = model.num_states > MANY_STATES
    for method, variants in METHODS.items():
        if method == "basin_aggregation" and not hasattr(model, "move_costs"):
            continue
        # An older checkout may lack it.
        if method not in ("auto", *planners.METHODS):
            continue
        for options in variants:
            if is_large and (method == "fixed_aggregation" or "start" in options):
                continue
            if method == "fixed_aggregation":
                listed = model.num_states - model.num_added_states
                yield method, options, {"labels": np.arange(listed) % 7}
            elif "num_iterations" in options:
                yield method, options, {}
            else:
                yield method, {**options, "tol": 1e-5}, {"num_updates": 3000 * model.num_states}


def work(threads):
    """Solve everything in this checkout and print what came of it, as JSON."""
    sys.path.insert(0, str(Path.cwd()))
    import planners

    found = {}
    for family, make in families().items():
        model = make()
        is_large = model.num_states > MANY_STATES
        seconds = defaultdict(float)

        def timed(what, function, *arguments, seconds=seconds, **options):
            start = time.process_time()
            returned = function(*arguments, **options)
            seconds[what] += time.process_time() - start
            return returned

        for gamma in GAMMAS[1:2] if is_large else GAMMAS:
            solve = partial(planners.solve, model, gamma=gamma, seed=5, num_threads=threads)
            for method, options, more in solves(model):
                result = timed(method, solve, method=method, **options, **more)
                found[f"{family}, gamma {gamma}, {method} {options}"] = found_by(result)
            values = timed("evaluate", planners.evaluate, model, result, gamma)
            found[f"{family}, gamma {gamma}, evaluate"] = digest(values)
        found[f"{family}, arrival"] = contents(planners.arrival(model, result))
        if not is_large:
            rollouts = planners.rollout(model, result, episodes=3, seed=1, max_steps=200)
            found[f"{family}, rollout"] = contents(rollouts)
        found[SECONDS + family] = seconds
    json.dump(found, sys.stdout)


def run(root, threads):
    """Run `work` in a checkout, with its own packages; return results and seconds apart."""
    environment = dict(os.environ, PYTHONPATH=str(root))
    command = [sys.executable, str(Path(__file__).resolve()), "--work", "--threads", str(threads)]
    done = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    seconds = {case: found.pop(case) for case in list(found) if case.startswith(SECONDS)}
    return found, {
        (case[len(SECONDS) :], method): taken
        for case, methods in seconds.items()
        for method, taken in methods.items()
    }


def compare(mine, theirs):
    """Print what differs; return how many cases do."""
    different = [case for case in {**mine, **theirs} if mine.get(case) != theirs.get(case)]
    for case in different:
        print(f"{case}\n  here:  {mine.get(case)}\n  there: {theirs.get(case)}")
    return len(different)


def main():
    """Set up the virtual environment and compare two checkouts in it."""
    parser = _venv.Parser("Compare what two checkouts compute, bit for bit.")
    parser.add_argument("other", nargs="?", type=Path, help="the other checkout")
    parser.add_argument("--threads", type=int, default=1, help="of every solve (default: 1)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each, in turn (default: 1)")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.threads)
        return 0
    if arguments.other is None or not (arguments.other / "planners").is_dir():
        parser.error(f"name another checkout of the project, got {arguments.other}")
    parser.check_least(arguments, threads=1, rounds=1)
    if not arguments.in_venv:
        return _venv.start_again("test")
    roots = (_venv.ROOT, arguments.other.resolve())
    rounds = [[run(root, arguments.threads) for root in roots] for _ in range(arguments.rounds)]
    results, times = zip(*rounds[0], strict=True)
    number = compare(*results)
    print(f"{len(results[0]) - number} of {len(results[0])} cases are the same, bit for bit")
    if arguments.rounds > 1:
        print("CPU seconds here / there, medians:")
        for family, method in times[0]:
            taken = [[seconds.get((family, method)) for _, seconds in one] for one in rounds]
            here, there = map(statistics.median, zip(*taken, strict=True))
            if there > 0.02:
                print(f"  {family}, {method}: {here:.3f} / {there:.3f} = {here / there:.2f}")
    return 1 if number else 0


if __name__ == "__main__":
    _venv.run(main)
