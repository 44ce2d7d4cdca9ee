"""Total costs against closed forms, linear programs, fractions and other methods."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

import planners
from aggmaze import MoveMDP, TabularMDP
from aggmaze.envs.nd_maze import NDMazeEnv
from aggmaze.envs.standard_maze import StandardMazeEnv
from aggmaze.envs.terrain_maze import TerrainMazeEnv
from planners.chain_costs import arriving, normalised, total_cost_of_policy, total_costs_of_chain
from planners.inequalities import exact_row
from planners.objective import TotalCost
from planners.policies import steps_to_terminal
from planners.result import SolveResult, Status
from tests.planners import exact

GENERAL = ("policy_iteration", "value_iteration")
COSTS = [Fraction(k) for k in (-1, 0, 0, 1, 2)] + [Fraction(1, 10), Fraction(-1, 4)]


def model_of(
    rows: list[list[tuple[float, dict[int, float]]]], num_states: int | None = None, **options: Any
) -> TabularMDP:
    """Make a model of (cost, outcomes) by state and action; no action makes a state terminal."""
    num_actions = max(1, *(len(actions) for actions in rows))
    count = len(rows)
    P = np.zeros((count * num_actions, count))
    costs, mask = np.zeros((count, num_actions)), np.ones((count, num_actions), dtype=bool)
    terminal = np.array([not actions for actions in rows])
    for s, actions in enumerate(rows):
        if not actions:
            P[s * num_actions : (s + 1) * num_actions, s] = 1.0
        for a in range(num_actions if actions else 0):
            if a < len(actions):
                costs[s, a], outcomes = actions[a]
                for t, p in outcomes.items():
                    P[s * num_actions + a, t] += p
            else:
                mask[s, a] = False
    return TabularMDP(P, costs, action_mask=mask, terminal=terminal, **options).validate()


def random_model(seed: int, num_states: int, least: float, most: float) -> TabularMDP:
    """Return a model that ends from anywhere, with few outcomes an action."""
    rng = np.random.default_rng(seed)
    rows: list[list[tuple[float, dict[int, float]]]] = [[]]
    for s in range(1, num_states):
        actions = []
        for _ in range(3):
            targets = rng.integers(num_states, size=3)
            targets[0] = rng.integers(s)
            shares = rng.dirichlet(np.ones(3))
            row: dict[int, float] = {}
            for t, p in zip(targets.tolist(), shares.tolist(), strict=True):
                row[t] = row.get(t, 0.0) + p
            actions.append((float(rng.uniform(least, most)), row))
        rows.append(actions)
    return model_of(rows)


def check_ends(result: SolveResult) -> None:
    """Check that bounds, intervals and values say the same."""
    finite = np.isfinite(result.values)
    assert np.isposinf(result.values[~finite]).all()
    assert np.isposinf(result.lower[~finite]).all()
    assert np.isposinf(result.upper[~finite]).all()
    values, lower, upper = result.values[finite], result.lower[finite], result.upper[finite]
    assert (lower <= upper).all()
    assert (upper - values <= result.bound).all()
    assert (values - lower <= result.bound).all()
    assert (upper - lower <= result.policy_bound).all()


@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize("seed", range(4))
def test_linear_program(seed: int, method: str) -> None:
    model = random_model(seed, 40, 0.1, 2.0)
    result = planners.solve(model, gamma=1, method=method, tol=1e-9).require()
    # The largest v with v <= c + P v is V*.
    P = model.transitions.toarray()
    here = np.repeat(np.eye(40), 3, axis=0)
    inside = np.repeat(~model.terminal, 3)
    found = linprog(
        -np.ones(40),
        A_ub=(here - P)[inside],
        b_ub=model.costs.reshape(-1)[inside],
        bounds=[(0, 0)] + [(None, None)] * 39,
    )
    assert found.status == 0
    np.testing.assert_allclose(result.values, found.x, rtol=1e-6)
    check_ends(result)


@st.composite
def small_models(draw: st.DrawFn) -> TabularMDP:
    num_states = draw(st.integers(2, 4))
    den = draw(st.sampled_from([1, 2, 3, 4]))
    rows: list[list[tuple[float, dict[int, float]]]] = [[]]
    for _ in range(1, num_states):
        actions = []
        for _ in range(draw(st.integers(1, 2))):
            row: dict[int, float] = {}
            for _ in range(den):
                t = draw(st.integers(0, num_states - 1))
                row[t] = row.get(t, 0.0) + 1 / den
            actions.append((float(draw(st.sampled_from(COSTS))), row))
        rows.append(actions)
    return model_of(rows)


@given(small_models(), st.sampled_from(GENERAL), st.sampled_from([None, 3.0, -2.0]))
@settings(max_examples=150, deadline=None)
def test_fractions(model: TabularMDP, method: str, dead: float | None) -> None:
    truth = exact.total_costs(model, dead)
    objective = TotalCost() if dead is None else TotalCost(dead)
    try:
        result = planners.solve(model, objective=objective, method=method, tol=1e-6, atol=1e-9)
    except ValueError:
        assert truth.gains
        return
    assert not (truth.gains and result.success)
    if truth.gains:
        return
    for s, value in enumerate(truth.values):
        low, high = float(result.lower[s]), float(result.upper[s])
        if value is None:
            assert low == high == result.values[s] == np.inf
        else:
            assert low == -np.inf or Fraction(low) <= value
            assert high == np.inf or value <= Fraction(high)
    check_ends(result)
    if method == "policy_iteration" and not truth.even:
        assert result.success


def test_random_walk_in_a_gridworld() -> None:
    # Sutton and Barto, Reinforcement learning, 2nd edition, example 4.1.
    grid = np.arange(16).reshape(4, 4)
    rows: list[list[tuple[float, dict[int, float]]]] = []
    for s in range(16):
        i, j = divmod(s, 4)
        steps = [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]
        inside = [int(grid[a, b]) if 0 <= a < 4 and 0 <= b < 4 else s for a, b in steps]
        rows.append([] if s in (0, 15) else [(1.0, {t: 1.0}) for t in inside])
    model = model_of(rows)
    V = total_cost_of_policy(model, np.full((16, 4), 0.25))
    expected = [0, 14, 20, 22, 14, 18, 20, 20, 20, 20, 18, 14, 22, 20, 14, 0]
    np.testing.assert_allclose(V, expected, rtol=1e-14)
    # Always up: only the first column ends.
    V = total_cost_of_policy(model, np.zeros(16, dtype=int))
    assert V[[0, 4, 8, 12, 15]].tolist() == [0, 1, 2, 3, 0]
    assert np.isposinf(np.delete(V, [0, 4, 8, 12, 15])).all()


@pytest.mark.parametrize("p", [1.0, 0.8])
def test_policy_of_moves_is_that_of_its_table(p: float) -> None:
    model = StandardMazeEnv(shape=(40, 40), p=p, loops=0.2).transition_model()
    policy = planners.solve(model, gamma=1).policy
    # Above 1024 states moves have a way of their own.
    V = total_cost_of_policy(model, policy)
    np.testing.assert_allclose(V, total_cost_of_policy(model.to_tabular(), policy), rtol=1e-11)


def test_policy_of_certain_moves_that_goes_round() -> None:
    model = StandardMazeEnv(shape=(40, 40), loops=0.5).transition_model()
    policy = np.asarray(planners.solve(model, gamma=1).policy).copy()
    first = np.argmax(model.available, axis=1)
    policy[model.num_states // 2 :] = first[model.num_states // 2 :]
    V = total_cost_of_policy(model, policy)
    np.testing.assert_array_equal(V, total_cost_of_policy(model.to_tabular(), policy))
    assert np.isposinf(V).any()


def test_rows_are_read_as_distributions() -> None:
    # The row misses 1 by 1e-10, which is no end: 10^6 steps of cost 1.
    miss = 1 - 1e-10
    model = model_of([[], [(1.0, {0: 1e-6 * miss, 1: (1 - 1e-6) * miss})]])
    for method in GENERAL[:1]:
        result = planners.solve(model, gamma=1, method=method).require()
        assert result.values[1] == pytest.approx(1e6, rel=1e-9)
        assert result.bound < 1e-2
    assert total_cost_of_policy(model, np.zeros(2, dtype=int))[1] == pytest.approx(1e6, rel=1e-9)


def test_normalised_leaves_what_is_rounded() -> None:
    thirds = sp.csr_array(np.full((3, 3), 1 / 3))
    assert normalised(thirds) is thirds
    found = normalised(sp.csr_array(np.diag([0.5, 1.0, 0.0]))).toarray()
    np.testing.assert_array_equal(found, np.diag([1.0, 1.0, 0.0]))


def test_arriving_reads_no_entry_that_is_0() -> None:
    matrix = sp.csr_array(
        (np.array([1.0, 0.0, 1.0, 0.5, 0.5]), np.array([0, 2, 2, 0, 1]), np.array([0, 2, 3, 5])),
        shape=(3, 3),
    )
    ends = np.array([True, False, False])
    # 1 -> 2 -> {0, 1}; the entry of 0 in the row of the end does not count.
    assert arriving(matrix, ends).all()
    np.testing.assert_allclose(
        total_costs_of_chain(matrix, np.array([7.0, 1.0, 1.0]), ends), [0.0, 4.0, 3.0]
    )
    matrix.data[:] = [1.0, 0.0, 1.0, 0.0, 1.0]
    assert arriving(matrix, ends).tolist() == [True, False, False]


# ---------------------------------------------------------------------------------------------
# What there is no policy for, and what has no answer.


@pytest.mark.parametrize("method", GENERAL)
def test_states_that_may_not_end(method: str) -> None:
    # 1 may fall into 2 for ever, or end with 3; 4 surely ends, at a higher price.
    model = model_of(
        [
            [],
            [(0.0, {0: 0.9, 2: 0.1})],
            [(0.0, {2: 1.0})],
            [(1.0, {0: 0.5, 3: 0.5})],
            [(0.0, {1: 1.0}), (5.0, {3: 1.0})],
        ]
    )
    result = planners.solve(model, gamma=1, method=method).require()
    np.testing.assert_allclose(result.values, [0, np.inf, np.inf, 2, 7])
    assert result.infinite.tolist() == [False, True, True, False, False]
    assert result.policy[4] == 1
    assert result.proof is not None
    layers = result.proof["layers"]
    assert (layers[[0, 3, 4]] == 0).all()
    assert 0 < layers[2] < layers[1]
    ended = planners.solve(model, objective=TotalCost(10), method=method).require()
    np.testing.assert_allclose(ended.values, [0, 1, 10, 2, 1])
    assert ended.policy[4] == 0
    check_ends(result)
    check_ends(ended)


def test_no_terminal_state() -> None:
    model = model_of([[(1.0, {1: 1.0})], [(1.0, {0: 1.0})]])
    with pytest.raises(ValueError, match=r"no terminal state.*AverageCost"):
        planners.solve(model, gamma=1)
    result = planners.solve(model, objective=TotalCost(2.5)).require()
    assert result.values.tolist() == [2.5, 2.5]
    assert result.bound == 0.0


def test_all_terminal() -> None:
    result = planners.solve(model_of([[], []]), gamma=1).require()
    assert result.values.tolist() == [0.0, 0.0]
    assert result.bound == 0.0


@pytest.mark.parametrize("method", GENERAL)
def test_circle_that_gains(method: str) -> None:
    model = model_of([[], [(1.0, {2: 1.0}), (3.0, {0: 1.0})], [(-1.25, {1: 1.0}), (0.0, {0: 1.0})]])
    with pytest.raises(ValueError, match=r"states 1, 2 .*negative mean cost"):
        planners.solve(model, gamma=1, method=method)


@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize("gain", [-1.0, -0.5])
def test_circle_that_cancels(gain: float, method: str) -> None:
    # As in the first examples of Bertsekas and Yu: round for ever costs 0 on average, which is
    # no policy that ends.
    model = model_of(
        [[], [(-gain, {2: 1.0}), (3.0, {0: 1.0})], [(gain, {1: 1.0}), (8.0, {0: 1.0})]]
    )
    result = planners.solve(model, gamma=1, method=method).require()
    assert result.values.tolist() == [0.0, 3.0, 3.0 + gain]
    assert result.bound == 0.0


@pytest.mark.parametrize("method", GENERAL)
def test_staying_at_no_cost_is_no_end(method: str) -> None:
    # Value iteration from 0 stays at 0.
    model = model_of(
        [[], [(0.0, {1: 1.0}), (1.0, {0: 1.0})], [(0.0, {1: 0.5, 2: 0.5}), (0.0, {1: 1.0})]]
    )
    result = planners.solve(model, gamma=1, method=method).require()
    assert result.values.tolist() == [0.0, 1.0, 1.0]
    assert result.policy[1] == 1
    assert result.bound == 0.0


def test_a_lake_that_can_be_walked_for_ever() -> None:
    # One place of 900 states, from which there are many ways out; the policy finds the one.
    n = 30
    rows: list[list[tuple[float, dict[int, float]]]] = []
    for s in range(n * n):
        i, j = divmod(s, n)
        steps = [
            (max(i - 1, 0), j),
            (min(i + 1, n - 1), j),
            (i, max(j - 1, 0)),
            (i, min(j + 1, n - 1)),
        ]
        moves = [a * n + b for a, b in steps]
        hole = (i * 7 + j * 5) % 11 == 3 and s not in (0, n * n - 1)
        ends = hole or s == n * n - 1
        rows.append([] if ends else [(-1.0 if t == n * n - 1 else 0.0, {t: 1.0}) for t in moves])
    model = model_of(rows)
    result = planners.solve(model, gamma=1).require()
    inside = ~model.terminal
    assert (result.values[inside] == -1.0).all()
    assert result.bound == 0.0
    np.testing.assert_array_equal(total_cost_of_policy(model, result), result.values)


def test_costs_that_cancel_but_for_rounding_are_not_certified() -> None:
    model = TerrainMazeEnv(shape=(12, 12), cost="difference").transition_model()
    result = planners.solve(model, gamma=1)
    assert result.status == Status.STOPPED_SHORT
    assert "mean cost that rounding hides" in result.message
    assert result.bound == np.inf
    assert np.isneginf(result.lower[~model.terminal]).all()
    # What is known of the policy holds all the same.
    V = total_cost_of_policy(model, result)
    assert (result.upper >= V).all()
    # All costs are differences of heights, but for the reward at the goal.
    np.testing.assert_allclose(result.values, V, atol=1e-12)


# ---------------------------------------------------------------------------------------------
# Mazes.


@pytest.mark.parametrize(
    "make",
    [
        lambda: StandardMazeEnv(shape=(40, 40)),
        lambda: StandardMazeEnv(shape=(37, 45), generator="depth_first"),
        lambda: StandardMazeEnv(shape=(40, 40), loops=0.3),
        lambda: NDMazeEnv(shape=(11, 11, 11)),
    ],
)
def test_distances_are_exact(make: Callable[[], Any]) -> None:
    model = make().transition_model()
    result = planners.solve(model, gamma=1).require()
    # The last move pays 1 where all others cost 1.
    expected = np.maximum(steps_to_terminal(model) - 2.0, -1.0)
    expected[model.terminal] = 0.0
    np.testing.assert_array_equal(result.values, expected)
    assert result.bound == result.policy_bound == 0.0


MAZES: list[tuple[str, Callable[[float], Any]]] = [
    ("standard", lambda p: StandardMazeEnv(shape=(36, 36), p=p, loops=0.2)),
    ("shifted", lambda p: TerrainMazeEnv(shape=(36, 36), p=p)),
    ("climb", lambda p: TerrainMazeEnv(shape=(36, 36), p=p, cost="climb")),
    ("uniform", lambda p: TerrainMazeEnv(shape=(36, 36), p=p, terrain="uniform")),
]


@pytest.mark.parametrize("p", [1.0, 0.9, 0.55, 0.2])
@pytest.mark.parametrize(("name", "make"), MAZES)
def test_methods_for_moves_agree(name: str, make: Callable[[float], Any], p: float) -> None:
    model = make(p).transition_model()
    truth = planners.solve(model, gamma=1, method="policy_iteration").require()
    methods = ["auto", "forest_policy_iteration", *(["basin_aggregation"] if p < 1 else [])]
    for method in methods:
        result = planners.solve(model, gamma=1, method=method).require()
        gap = np.abs(result.values - truth.values)
        assert (gap <= result.bound + truth.bound).all()
        V = total_cost_of_policy(model, result)
        assert (V - truth.values <= result.policy_bound + truth.bound + 1e-9).all()
        check_ends(result)


def test_threads_change_nothing() -> None:
    model = TerrainMazeEnv(shape=(420, 420), p=0.9).transition_model()
    one, two = (planners.solve(model, gamma=1, num_threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.policy, two.policy)
    np.testing.assert_array_equal(one.lower, two.lower)
    assert one.bound == two.bound


def test_moves_without_a_price_take_the_table() -> None:
    # Standing still is free: the methods for moves do not apply, and all still is well.
    model = StandardMazeEnv(shape=(6, 6), step_cost=0.0).transition_model()
    for method in ("forest_policy_iteration", "basin_aggregation"):
        with pytest.raises(ValueError, match=r"costs more than 0"):
            planners.solve(model, gamma=1, method=method)
    result = planners.solve(model, gamma=1).require()
    assert (result.values[~model.terminal] == -1.0).all()
    np.testing.assert_array_equal(total_cost_of_policy(model, result), result.values)


# ---------------------------------------------------------------------------------------------
# Limits and refusals.


def test_what_is_refused() -> None:
    model = random_model(0, 10, 0.5, 1.0)
    with pytest.raises(ValueError, match="V0 is not for total costs"):
        planners.solve(model, gamma=1, V0=np.zeros(10))
    with pytest.raises(ValueError, match="method must be one of auto, policy_iteration"):
        planners.solve(model, gamma=1, method="gauss_seidel")
    with pytest.raises(TypeError, match="does not take 'num_sweeps'"):
        planners.solve(model, gamma=1, method="policy_iteration", num_sweeps=2)
    moves = StandardMazeEnv(shape=(6, 6)).transition_model()
    with pytest.raises(ValueError, match="p < 1"):
        planners.solve(moves, gamma=1, method="basin_aggregation")


def test_value_iteration_stops_at_its_tolerance() -> None:
    model = random_model(1, 60, 0.5, 1.0)
    rough = planners.solve(model, gamma=1, method="value_iteration", tol=0.1).require()
    fine = planners.solve(model, gamma=1, method="value_iteration", tol=1e-9).require()
    assert rough.num_iterations < fine.num_iterations
    assert 0 < fine.bound < rough.bound
    assert (np.abs(rough.values - fine.values) <= rough.bound + fine.bound).all()


@pytest.mark.parametrize("method", GENERAL)
def test_iterations_that_are_counted(method: str) -> None:
    model = random_model(2, 60, 0.5, 1.0)
    result = planners.solve(model, gamma=1, method=method, num_iterations=1)
    assert result.status == Status.COMPLETED
    assert result.num_iterations == 1
    assert len(result.history) == 1
    short = planners.solve(model, gamma=1, method=method, num_iterations=1, tol=1e-12)
    assert short.status == Status.STOPPED_SHORT
    assert short.bound < np.inf  # every step costs something
    check_ends(short)


def test_callbacks() -> None:
    model = random_model(3, 60, 0.5, 1.0)
    seen: list[NDArray[np.float64]] = []

    def stop(progress: Any) -> bool:
        seen.append(progress.values)
        return progress.iteration == 3

    result = planners.solve(
        model, gamma=1, method="value_iteration", callback=stop, certify="every"
    )
    assert result.status == Status.INTERRUPTED
    assert result.num_iterations == 3
    np.testing.assert_array_equal(seen[-1], result.values)
    assert np.isfinite(result.history.bound).all()
    # From above, sweep by sweep.
    assert (seen[1] <= seen[0] + 1e-12).all()


def test_ctrl_c_keeps_the_last_iteration() -> None:
    model = random_model(4, 60, 0.5, 1.0)

    def interrupt(progress: Any) -> bool:
        if progress.iteration == 2:
            raise KeyboardInterrupt
        return False

    result = planners.solve(model, gamma=1, method="value_iteration", callback=interrupt)
    assert result.status == Status.INTERRUPTED
    assert result.num_iterations == 2
    check_ends(result)


def test_no_time_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from planners.budget import Clock, OutOfTimeError

    def check(self: Clock) -> None:
        if self._limit < np.inf:
            raise OutOfTimeError

    monkeypatch.setattr(Clock, "check", check)
    result = planners.solve(random_model(5, 30, 0.5, 1.0), gamma=1, time_limit=1e-9)
    assert result.status == Status.STOPPED_SHORT
    assert result.num_iterations == 0
    assert result.bound == np.inf
    assert np.isneginf(result.lower[1:]).all()
    assert result.lower[0] == result.upper[0] == 0.0


# ---------------------------------------------------------------------------------------------
# For other objectives.


def test_moves_that_stay() -> None:
    # A single state: staying costs 1, the way out 2.
    moves = MoveMDP([[0, 0], [1, 0]], [[np.inf, np.inf], [1.0, 2.0]], p=0.75)
    result = planners.solve(moves, gamma=1).require()
    # V = .25 (1 + V) + .75 2.
    assert result.values[1] == pytest.approx(7 / 3, rel=1e-12)


@pytest.mark.parametrize("method", ["auto", "policy_iteration", "value_iteration"])
def test_steps_of_moves_that_stay_in_a_place_are_counted(method):
    """One goes to and fro between 0 and 1 at no cost; 3 is a dead end, so 1 may go by 0."""
    model = MoveMDP(
        np.array([[1, 2], [0, 1], [2, 2], [3, 3]]),
        np.array([[0.0, 1.0], [0.0, np.inf], [np.inf, np.inf], [1.0, np.inf]]),
    )
    found = planners.solve(model, gamma=1, method=method)
    assert found.values.tolist() == [1.0, 1.0, 0.0, np.inf]
    steps = found.proof["steps"]
    for state in (0, 1):
        action = int(found.policy[state])
        assert exact_row(model, state, action, steps, with_costs=False) <= -0.5
