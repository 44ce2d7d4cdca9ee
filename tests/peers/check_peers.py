"""Values of other planners on models that were exported to them, beside those of `solve`.

Run by ``.ci/run`` in a virtual environment of its own:

    python3 -m venv peers
    peers/bin/python -m pip install . -r tests/peers/requirements.txt
    peers/bin/python -m pip install --no-deps -r tests/peers/requirements-no-deps.txt
    peers/bin/python tests/peers/check_peers.py

Prints a line for each check and how many passed and failed, and exits with 1 if one failed.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bettermdptools.algorithms.planner
import gymnasium as gym
import mdptoolbox.example
import mdptoolbox.mdp
import numpy as np
import quantecon.markov
import scipy.io
import scipy.sparse as sp
import umbi.ats
import umbi.umb
from gymnasium.envs.toy_text.frozen_lake import generate_random_map
from numpy.typing import NDArray

import aggmaze
import planners
from aggmaze import TabularMDP

Model = TabularMDP | aggmaze.MoveMDP
Values = NDArray[np.float64]

# How far values may be from each other.
AGREEMENT = 1e-8
# The map of the comparison of times, what both sides are asked for, and how long they may take.
MAP_SIZE, MAP_GAMMA, MAP_TOL, TIME_LIMIT = 300, 0.99, 1e-6, 120.0


# ---------------------------------------------------------------------------------------------
# The peers: costs-to-go of a model that was exported to each.


def quantecon_policy_iteration(model: Model, gamma: float) -> Values:
    ddp = model.to_quantecon(gamma)
    result = ddp.solve(method="policy_iteration", max_iter=10_000)
    return -np.asarray(result.v)


def quantecon_modified_policy_iteration(model: Model, gamma: float) -> Values:
    ddp = model.to_quantecon(gamma)
    result = ddp.solve(method="modified_policy_iteration", epsilon=1e-10, max_iter=100_000)
    return -np.asarray(result.v)


def pymdptoolbox_policy_iteration(model: Model, gamma: float) -> Values:
    return pymdptoolbox_values(*model.to_mdptoolbox(), gamma)


def pymdptoolbox_values(P: Any, R: Any, gamma: float) -> Values:
    with warnings.catch_warnings():
        # Of scipy, about pymdptoolbox's own code.
        warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
        solver = mdptoolbox.mdp.PolicyIteration(P, R, gamma, max_iter=10_000)
        solver.run()
    return -np.asarray(solver.V)


def bettermdptools_value_iteration(model: Model, gamma: float) -> Values:
    return bettermdptools_values(model.to_gym_P(), gamma, theta=1e-11 * (1 - gamma))


def bettermdptools_values(P: Any, gamma: float, theta: float, num_iterations: int = 5000) -> Values:
    planner = bettermdptools.algorithms.planner.Planner(P)
    V, _, _ = planner.value_iteration_vectorized(
        gamma=gamma, theta=theta, n_iters=num_iterations, dtype=np.float64
    )
    return -V


PEERS: dict[str, Callable[[Model, float], Values]] = {
    "quantecon policy iteration": quantecon_policy_iteration,
    "quantecon modified policy iteration": quantecon_modified_policy_iteration,
    "pymdptoolbox policy iteration": pymdptoolbox_policy_iteration,
    "bettermdptools vectorised value iteration": bettermdptools_value_iteration,
}


# ---------------------------------------------------------------------------------------------
# The models.


def maze(env_id: str, **options: Any) -> Model:
    return planners.as_model(gym.make(env_id, **options))


def random_model() -> TabularMDP:
    """Return a model with costs of either sign, unavailable actions and terminal states."""
    rng = np.random.default_rng(0)
    num_states, num_actions = 150, 5

    def outcomes(state: int, action: int) -> list[tuple[float, int, float]] | None:
        if state % 50 == 49 or (action > 0 and rng.random() < 0.3):
            return None
        successors = rng.integers(num_states, size=3)
        costs = rng.normal(size=3)
        return list(
            zip(rng.dirichlet(np.ones(3)), successors.tolist(), costs.tolist(), strict=True)
        )

    return TabularMDP.from_function(num_states, num_actions, outcomes)


def models() -> dict[str, Model]:
    return {
        "StandardMaze 20x20, p = 1": maze("StandardMaze-v0", shape=(20, 20)),
        "StandardMaze 20x20, p = 0.9": maze("StandardMaze-v0", shape=(20, 20), p=0.9),
        "TerrainMaze 20x20, p = 0.9": maze("TerrainMaze-v0", shape=(20, 20), p=0.9),
        "FrozenLake 8x8": maze("FrozenLake-v1", map_name="8x8"),
        "CliffWalking": maze("CliffWalking-v1"),
        "random, 150 states": random_model(),
    }


# ---------------------------------------------------------------------------------------------
# The checks: each yields its name and whether it holds, with what was seen.

Check = tuple[str, bool, str]


def agreement(name: str, one: Values, other: Values) -> Check:
    difference = float(np.abs(one - other).max()) if one.shape == other.shape else np.inf
    return name, difference <= AGREEMENT, f"largest difference {difference:.1e}"


def solved(source: Any, gamma: float) -> Values:
    result = planners.solve(source, gamma=gamma, atol=1e-10)
    assert result.status == planners.Status.CONVERGED, result.message
    return result.values


def exported() -> Iterator[Check]:
    """Peers on exported models; and those models read back from the peers' own types."""
    gamma = 0.95
    for name, model in models().items():
        # CliffWalking was read with one more state, which exports list and `solve` leaves out.
        padded = np.zeros(model.num_states)
        values = solved(model, gamma)
        padded[: len(values)] = values
        for peer, values_of in PEERS.items():
            yield agreement(f"{peer}, {name}", values_of(model, gamma), padded)
        for form, source in (
            ("DiscreteDP", model.to_quantecon(gamma)),
            ("(P, R)", model.to_mdptoolbox()),
            ("P", model.to_gym_P()),
        ):
            yield agreement(f"{form} read back, {name}", solved(source, gamma), padded)


def imported() -> Iterator[Check]:
    """The peers' own examples and types, read and solved by us, beside what the peers say."""
    gamma = 0.9
    for is_sparse in (False, True):
        P, R = mdptoolbox.example.forest(S=12, is_sparse=is_sparse)
        name = f"pymdptoolbox's forest, {'sparse' if is_sparse else 'dense'}"
        yield agreement(name, pymdptoolbox_values(P, R, gamma), solved((P, R), gamma))
    np.random.seed(0)  # noqa: NPY002 (mdptoolbox draws from the global generator)
    P, R = mdptoolbox.example.rand(10, 3)
    theirs = pymdptoolbox_values(P, R, gamma)
    yield agreement("pymdptoolbox's random", theirs, solved((P, R), gamma))

    product = quantecon.markov.DiscreteDP(
        [[5, 10], [-1, -np.inf]], [[(0.5, 0.5), (0, 1)], [(0, 1), (0.5, 0.5)]], 0.95
    )
    forms = {"product": product}
    for is_sparse in (False, True):
        pairs = product.to_sa_pair_form(sparse=is_sparse)
        forms[f"{'sparse' if is_sparse else 'dense'} pairs"] = pairs
    for form, ddp in forms.items():
        v = np.asarray(ddp.solve(method="policy_iteration").v)
        # Its second state pays for ever.
        ours = solved(TabularMDP.from_quantecon(ddp, terminal=[]), 0.95)
        yield agreement(f"quantecon's example, {form}", -v, ours)

    for env_id in ("FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"):
        env = gym.make(env_id)
        theirs = bettermdptools_values(env.unwrapped.P, 0.95, theta=1e-12)
        yield agreement(f"bettermdptools, {env_id} as it is", theirs, solved(env, 0.95))
    env = gym.make("TerrainMaze-v0", shape=(8, 8), p=0.9)
    theirs = bettermdptools_values(env.unwrapped.P, 0.95, theta=1e-12)
    yield agreement("bettermdptools, env.unwrapped.P of a maze", theirs, solved(env, 0.95))


def files() -> Iterator[Check]:
    """Files that go to umbi and come from it, and MDPtoolbox's examples through .mat."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, model in models().items():
            table = model.to_tabular()
            aggmaze.save_model(model, folder / "ours.umb")
            yield umbi_reads(f"umbi reads {label}", folder / "ours.umb", table)
            # Through umbi's own types and writer, and back.
            umb = umbi.umb.read(folder / "ours.umb")
            umbi.umb.write(umb, folder / "theirs.umb")
            found = aggmaze.load_model(folder / "theirs.umb", goal="terminal", structure="cost")
            yield agreement(
                f"umbi writes {label}", solved(found, 0.9), solved(all_listed(table), 0.9)
            )
        umbi.ats.write(umbi_walk(), folder / "walk.umb")
        walk = aggmaze.load_model(folder / "walk.umb", goal="end", structure="steps")
        # A walk of 9 states from end to end, by certain steps: as many as it is far.
        values = planners.solve(walk, gamma=1, tol=1e-12).values
        yield agreement(
            "a walk made by umbi", values, np.minimum(np.arange(9.0), 8 - np.arange(9.0))
        )
        np.random.seed(1)  # noqa: NPY002 (mdptoolbox draws from the global generator)
        for label, (P, R) in {
            "forest": mdptoolbox.example.forest(S=12),
            "random": mdptoolbox.example.rand(10, 3),
            "small": mdptoolbox.example.small(),
        }.items():
            R = np.moveaxis(R, 0, 2) if R.ndim == 3 else R
            scipy.io.savemat(folder / "theirs.mat", {"P": np.moveaxis(P, 0, 2), "R": R})
            theirs = pymdptoolbox_values(P, np.moveaxis(R, 2, 0) if R.ndim == 3 else R, 0.9)
            yield agreement(
                f"pymdptoolbox's {label} as .mat",
                theirs,
                solved(aggmaze.load_model(folder / "theirs.mat"), 0.9),
            )


def all_listed(table: TabularMDP) -> TabularMDP:
    """Return a model whose added states are listed, as other tools list them."""
    return TabularMDP(
        table.transitions,
        table.costs,
        action_mask=table.action_mask,
        terminal=table.terminal,
        initial=table.initial,
        outcome_costs=table.outcome_costs,
    )


def umbi_reads(name: str, path: Path, table: TabularMDP) -> Check:
    """Whether umbi finds the numbers of a table in a file, to the last bit."""
    umb = umbi.umb.read(path, strict=True)
    chosen = np.flatnonzero(table.action_mask)
    rows = table.transitions[chosen]
    rewards = umb.annotations["rewards"]["cost"]["choices"]
    same = (
        umb.state_to_choices == np.append(0, table.action_mask.sum(axis=1).cumsum()).tolist()
        and umb.choice_to_branches == rows.indptr.tolist()
        and umb.branch_to_target == rows.indices.tolist()
        and umb.branch_to_probability == rows.data.tolist()
        and umb.choice_to_choice_action == (chosen % table.num_actions).tolist()
        and rewards == table.costs[table.action_mask].tolist()
        and umb.annotations["aps"]["terminal"]["states"] == table.terminal.tolist()
        and umb.state_is_initial == (table.initial > 0).tolist()
    )
    return name, same, f"{len(umb.branch_to_target)} branches"


def umbi_walk() -> Any:
    """Return a walk in umbi's own types."""
    ats = umbi.ats.ExplicitAts()
    ats.time, ats.num_players = umbi.ats.TimeType.DISCRETE, 1
    ats.num_choice_actions, ats.choice_action_to_name = 2, ["left", "right"]
    for _ in range(9):
        ats.add_state()
    ats.set_initial_states([4])
    for state in range(9):
        for action, target in enumerate((max(state - 1, 0), min(state + 1, 8))):
            choice = ats.add_state_choice(state=state)
            choice.action = action
            choice.add_branch(target=target, prob=1.0)
    ats.add_ap_annotation(name="end").set_state_values([s in (0, 8) for s in range(9)])
    ats.add_reward_annotation(name="steps").set_state_values([1] * 9)
    return ats


def large_map() -> Iterator[Check]:
    """A large FrozenLake through its P: seconds here and there, asked for the same accuracy."""
    desc = generate_random_map(MAP_SIZE, seed=0)
    env = gym.make("FrozenLake-v1", desc=desc)
    # Kernels compile here, not below.
    planners.solve(gym.make("FrozenLake-v1"), gamma=MAP_GAMMA)
    P = env.unwrapped.P
    start = time.perf_counter()
    model = TabularMDP.from_gym_P(P)
    read = time.perf_counter()
    result = planners.solve(model, gamma=MAP_GAMMA, tol=MAP_TOL)
    done = time.perf_counter()
    name = f"FrozenLake {MAP_SIZE}x{MAP_SIZE}"
    print(
        f"{name}, gamma {MAP_GAMMA}, to {MAP_TOL:g} of the largest value: read in "
        f"{read - start:.1f} s, solved in {done - read:.1f} s"
    )
    yield f"{name} converges", result.status == planners.Status.CONVERGED, result.message
    # A change below theta leaves an error below theta * gamma / (1 - gamma).
    asked = MAP_TOL * float(np.abs(result.values).max())
    start = time.perf_counter()
    try:
        with time_limit(TIME_LIMIT):
            theirs = bettermdptools_values(P, MAP_GAMMA, theta=asked * (1 - MAP_GAMMA) / MAP_GAMMA)
    except TimeoutError:
        print(f"bettermdptools, vectorised: not done after {TIME_LIMIT:g} s")
        return
    print(f"bettermdptools, vectorised: read and solved in {time.perf_counter() - start:.1f} s")
    difference = float(np.abs(theirs - result.values).max())
    yield (
        f"{name}: both agree",
        difference <= result.bound + asked,
        f"largest difference {difference:.1e}",
    )


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in what takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def main() -> int:
    start, passed, failed = time.perf_counter(), 0, 0
    warnings.simplefilter("error")
    for group in (exported, imported, files, large_map):
        try:
            for name, holds, seen in group():
                print(f"{'ok    ' if holds else 'FAILED'} {name}: {seen}", flush=True)
                passed, failed = passed + holds, failed + (not holds)
        except Exception:
            traceback.print_exc()
            print(f"FAILED {group.__name__}: the rest of it did not run")
            failed += 1
    print(f"{passed} passed, {failed} failed in {time.perf_counter() - start:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
