"""Compare what two checkouts compute, bit for bit, and how long they take.

``python3 scripts/compare_results.py ../other`` solves the same models by all methods in this
checkout and in the other, evaluates, arrives and rolls out, and names what differs: values, plans,
bounds, counts, statuses.  A change that is to compute what was computed before is looked at with
this.  ``--rounds 5`` runs both in turn so often and adds the ratio of their CPU seconds, a family a
line, medians.

It ends with 1 if anything differs.
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
from pathlib import Path

import _venv

METHODS = {
    "value_iteration": [{}, {"num_iterations": 7}],
    "gauss_seidel": [{}, {"num_iterations": 7}],
    "modified_policy_iteration": [{}, {"inner_sweeps": 3}, {"inner_sweeps": 0}],
    "policy_iteration": [{}, {"num_iterations": 2}],
    "forest_policy_iteration": [{}, {"start": "sweeps"}, {"num_sweeps": 1}],
    "basin_aggregation": [{}, {"num_retraced": 0}],
    "fixed_aggregation": [{}],
    "adaptive_aggregation": [
        {"num_iterations": 60},
        {"epsilon": "shrink"},
        {"num_iterations": 40, "noise_sigma": 0.05, "noise": "fresh"},
    ],
    "auto": [{}],
}
GAMMAS = (0.9, 0.99, 0.999)
SECONDS = "seconds of "


def families():
    """Return functions that make a model each, by name: mazes, grids, general models."""
    import gymnasium as gym
    import numpy as np
    import scipy.sparse as sp

    import aggmaze
    import planners

    def environment(name, **options):
        return lambda: planners.as_model(gym.make(name, **options))

    def garnet(num_states, num_actions, branching, seed, ends=False):
        def make():
            rng = np.random.default_rng(seed)
            num_ends = num_states // 50 if ends else 0
            rows = np.repeat(np.arange(num_states * num_actions), branching)
            columns = rng.integers(num_states, size=len(rows))
            ended = rows < num_ends * num_actions
            columns[ended] = rows[ended] // num_actions
            weights = rng.random(len(rows)) + 0.05
            weights /= np.repeat(weights.reshape(-1, branching).sum(axis=1), branching)
            shape = (num_states * num_actions, num_states)
            P = sp.csr_array(sp.coo_array((weights, (rows, columns)), shape=shape))
            costs = rng.random((num_states, num_actions))
            costs[:num_ends] = 0.0
            return aggmaze.TabularMDP(P, costs, terminal=np.arange(num_states) < num_ends)

        return make

    def queue(num_states):
        def make():
            s = np.arange(num_states)
            rows, columns, weights = [], [], []
            for action, serve in enumerate((0.3, 0.5, 0.7)):
                for step, weight in ((1, 0.4 * (1 - serve)), (-1, 0.6 * serve), (0, None)):
                    weight = 1 - 0.4 * (1 - serve) - 0.6 * serve if weight is None else weight
                    rows.append(3 * s + action)
                    columns.append(np.clip(s + step, 0, num_states - 1))
                    weights.append(np.full(num_states, weight))
            shape = (3 * num_states, num_states)
            entries = (np.concatenate(rows), np.concatenate(columns))
            P = sp.csr_array(sp.coo_array((np.concatenate(weights), entries), shape=shape))
            costs = s[:, np.newaxis] / num_states + np.array([0.0, 0.1, 0.4])
            return aggmaze.TabularMDP(P, costs)

        return make

    return {
        "maze": environment("StandardMaze-v0", shape=(40, 40), layout_seed=1),
        "slippery maze": environment("StandardMaze-v0", shape=(30, 50), layout_seed=2, p=0.8),
        "maze of few certainties": environment(
            "StandardMaze-v0", shape=(9, 9), layout_seed=2, p=0.2
        ),
        "large maze": environment("StandardMaze-v0", shape=(300, 300), layout_seed=1, p=0.9),
        "terrain": environment("TerrainMaze-v0", shape=(60, 60), layout_seed=3),
        "slippery terrain": environment("TerrainMaze-v0", shape=(50, 40), layout_seed=3, p=0.7),
        "large terrain": environment("TerrainMaze-v0", shape=(250, 250), layout_seed=1, p=0.9),
        "three axes": environment("NDMaze-v0", shape=(10, 10, 10), layout_seed=4, p=0.9),
        "five axes": environment("NDMaze-v0", shape=(4, 4, 4, 4, 4), layout_seed=4),
        "cart-pole": environment("DiscretizedCartPole-v0", bins=(6, 6, 8, 8)),
        "frozen lake": environment("FrozenLake-v1", map_name="8x8"),
        "taxi": environment("Taxi-v4" if "Taxi-v4" in gym.registry else "Taxi-v3"),
        "garnet": garnet(2000, 4, 5, 0),
        "garnet with ends": garnet(3000, 3, 3, 1, ends=True),
        "large garnet": garnet(100_000, 4, 5, 2),
        "small garnet": garnet(30, 3, 4, 3),
        "queue": queue(1500),
    }


def digest(array):
    """Return what stands for the bits of an array."""
    return hashlib.sha256(array.tobytes()).hexdigest()[:16]


def contents(report):
    """Return what a dataclass holds, arrays by their bits."""
    held = {field.name: getattr(report, field.name) for field in dataclasses.fields(report)}
    return {k: digest(v) if hasattr(v, "tobytes") else repr(v) for k, v in held.items()}


def work(threads):
    """Solve everything in this checkout and print what came of it, as JSON."""
    sys.path.insert(0, str(Path.cwd()))
    import numpy as np

    import planners

    found = {}
    for family, make in families().items():
        model = make()
        large = model.num_states > 20_000
        seconds = {}
        for gamma in GAMMAS[1:2] if large else GAMMAS:
            for method, variants in METHODS.items():
                if method == "basin_aggregation" and not hasattr(model, "move_costs"):
                    continue
                for options in variants:
                    options = dict(options)
                    if large and (method in ("fixed_aggregation",) or options.get("start")):
                        continue
                    if method == "fixed_aggregation":
                        options["labels"] = np.arange(listed(model)) % 7
                        options["num_iterations"] = 50
                    elif "num_iterations" not in options:
                        options["tol"] = 1e-5
                        options["num_updates"] = 3000 * model.num_states
                    start = time.process_time()
                    result = planners.solve(
                        model, gamma=gamma, method=method, seed=5, num_threads=threads, **options
                    )
                    taken = time.process_time() - start
                    seconds[method] = seconds.get(method, 0.0) + taken
                    shown = {k: v for k, v in options.items() if k not in ("labels", "num_updates")}
                    found[f"{family}, gamma {gamma}, {method} {shown}"] = [
                        digest(result.values),
                        digest(result.policy),
                        digest(result.history.bound),
                        digest(result.history.residual),
                        "" if result.labels is None else digest(np.asarray(result.labels)),
                        repr(result.bound),
                        repr(result.policy_bound),
                        result.num_iterations,
                        result.num_updates,
                        result.num_sweeps,
                        str(result.status),
                        result.message,
                    ]
            start = time.process_time()
            found[f"{family}, gamma {gamma}, evaluate"] = digest(
                planners.evaluate(model, result, gamma)
            )
            seconds["evaluate"] = seconds.get("evaluate", 0.0) + time.process_time() - start
        arrival = planners.arrival(model, result)
        found[f"{family}, arrival"] = contents(arrival)
        if not large:
            rollouts = planners.rollout(model, result, episodes=3, seed=1, max_steps=200)
            found[f"{family}, rollout"] = contents(rollouts)
        found[SECONDS + family] = seconds
    json.dump(found, sys.stdout)


def listed(model):
    """Return the number of states that the model's source lists."""
    return model.num_states - model.num_added_states


def run(python, root, threads):
    """Run `work` in a checkout, with its own packages."""
    environment = dict(os.environ, PYTHONPATH=str(root), SDL_VIDEODRIVER="dummy")
    command = [python, str(Path(__file__).resolve()), "--work", "--threads", str(threads)]
    done = subprocess.run(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, check=True, text=True
    )
    return json.loads(done.stdout)


def compare(mine, theirs):
    """Print what differs; return how many cases do."""
    number = 0
    for case in sorted(set(mine) | set(theirs)):
        if not case.startswith(SECONDS) and mine.get(case) != theirs.get(case):
            number += 1
            print(f"{case}\n  here:  {mine.get(case)}\n  there: {theirs.get(case)}")
    return number


def main():
    """Set up the virtual environment and compare two checkouts in it."""
    parser = _venv.Parser(
        description="Compare what two checkouts compute, bit for bit.", allow_abbrev=False
    )
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
    for name in ("threads", "rounds"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(arguments, name)}")
    python = _venv.ensure("test")
    roots = (_venv.ROOT, arguments.other.resolve())
    times = ({}, {})
    number = total = 0
    for round_ in range(arguments.rounds):
        results = [run(python, root, arguments.threads) for root in roots]
        if round_ == 0:
            number = compare(*results)
            total = sum(1 for case in results[0] if not case.startswith(SECONDS))
        for place, result in zip(times, results, strict=True):
            for case in result:
                if case.startswith(SECONDS):
                    for method, seconds in result[case].items():
                        key = case.removeprefix(SECONDS), method
                        place.setdefault(key, []).append(seconds)
    print(f"{total - number} of {total} cases are the same, bit for bit")
    if arguments.rounds > 1:
        print("CPU seconds here / there, medians:")
        for key in times[0]:
            here, there = (statistics.median(place[key]) for place in times)
            if there > 0.02:
                print(f"  {key[0]}, {key[1]}: {here:.3f} / {there:.3f} = {here / there:.2f}")
    return 1 if number else 0


if __name__ == "__main__":
    _venv.run(main)
