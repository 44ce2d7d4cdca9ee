"""Average costs against closed forms, linear programs and all policies of small models."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import planners
from aggmaze import EventMDP, MoveMDP, TabularMDP
from planners.inequalities import Inequalities
from planners.objective import AverageCost
from planners.policy_gains import average_cost_of_policy

METHODS = ("auto", "value_iteration", "policy_iteration")


def solve(model, **options):
    return planners.solve(model, objective=AverageCost(), **options)


def chain(matrix, costs, **options):
    matrix = np.asarray(matrix, dtype=float)
    return TabularMDP(matrix, np.asarray(costs, dtype=float).reshape(len(matrix), 1), **options)


def gains_of(P, costs, policy):
    """Return the gain of a policy by the limit of the powers of its lazy chain."""
    states = np.arange(len(costs))
    powers = (np.eye(len(costs)) + P[states, policy]) / 2
    for _ in range(50):
        powers = powers @ powers
        powers /= powers.sum(axis=1, keepdims=True)
    return powers @ costs[states, policy]


def best_gains(P, costs, mask):
    choices = [np.flatnonzero(row) for row in mask]
    return np.min(
        [gains_of(P, costs, np.array(policy)) for policy in itertools.product(*choices)], axis=0
    )


def assert_proved(model, result):
    """Check the two pairs of a result, and that its numbers follow from them."""
    sweeps, proof = Inequalities(model), result.proof
    policy = np.where(model.terminal, -1, result.policy)
    assert sweeps.least(proof["gain_lower"], with_costs=False).value >= 0
    assert sweeps.least(proof["bias_lower"], proof["gain_lower"]).value >= 0
    assert sweeps.most(policy, proof["gain_upper"], with_costs=False).value <= 0
    assert sweeps.most(policy, proof["bias_upper"], proof["gain_upper"]).value <= 0
    np.testing.assert_array_equal(result.lower, proof["gain_lower"])
    np.testing.assert_array_equal(result.upper, proof["gain_upper"])
    assert (result.upper - result.values <= result.bound).all()
    assert (result.values - result.lower <= result.bound).all()
    assert (result.upper - result.lower <= result.policy_bound).all()


def taxicab():
    """Howard's taxicab (1960), table 3.1: where to look for passengers in three towns."""
    rows = {
        (0, 0): ([1 / 2, 1 / 4, 1 / 4], [10, 4, 8]),
        (0, 1): ([1 / 16, 3 / 4, 3 / 16], [8, 2, 4]),
        (0, 2): ([1 / 4, 1 / 8, 5 / 8], [4, 6, 4]),
        (1, 0): ([1 / 2, 0, 1 / 2], [14, 0, 18]),
        (1, 1): ([1 / 16, 7 / 8, 1 / 16], [8, 16, 8]),
        (2, 0): ([1 / 4, 1 / 4, 1 / 2], [10, 2, 8]),
        (2, 1): ([1 / 8, 3 / 4, 1 / 8], [6, 4, 2]),
        (2, 2): ([3 / 4, 1 / 16, 3 / 16], [4, 0, 8]),
    }
    P, costs, mask = np.zeros((9, 3)), np.zeros((3, 3)), np.zeros((3, 3), dtype=bool)
    for (state, action), (shares, fares) in rows.items():
        P[3 * state + action] = shares
        costs[state, action] = -np.dot(shares, fares)
        mask[state, action] = True
    return TabularMDP(P, costs, action_mask=mask)


@pytest.mark.parametrize("method", METHODS)
def test_howards_taxicab_earns_13_34_a_trip(method):
    result = solve(taxicab(), method=method, tol=1e-9)
    assert result.status == "converged"
    np.testing.assert_allclose(-result.gain, 1588 / 119, rtol=1e-8)
    np.testing.assert_array_equal(result.policy, [1, 1, 1])
    assert_proved(taxicab(), result)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("period", [2, 3, 7])
def test_a_cycle_costs_the_mean_of_its_costs(method, period):
    costs = np.arange(period, dtype=float) ** 2
    model = chain(np.roll(np.eye(period), 1, axis=1), costs)
    result = solve(model, method=method, tol=1e-9)
    assert result.status == "converged"
    np.testing.assert_allclose(result.gain, costs.mean(), rtol=1e-8)
    assert_proved(model, result)


@pytest.mark.parametrize("method", METHODS)
def test_each_state_of_a_multichain_model_has_its_own_gain(method):
    # State 0 stays at 5 or gambles for 1 or 9, state 3 leads to both alike.
    P = np.zeros((4, 2, 4))
    P[0, 0, 0] = 1.0
    P[0, 1, [1, 2]] = 0.75, 0.25
    P[1, :, 1] = P[2, :, 2] = 1.0
    P[3, :, [1, 2]] = 0.5
    costs = np.array([[5.0, 100.0], [1.0, 1.0], [9.0, 9.0], [0.0, 0.0]])
    model = TabularMDP(P.reshape(8, 4), costs, terminal=[])
    result = solve(model, method=method, tol=1e-9)
    np.testing.assert_allclose(result.gain, [3.0, 1.0, 9.0, 5.0], rtol=1e-8)
    assert result.policy[0] == 1
    assert_proved(model, result)


def test_a_component_is_left_by_the_best_of_many_exits():
    # Ten states in a ring, each with a way out to a place of its own.
    size = 10
    successors = np.zeros((2 * size, 2), dtype=int)
    successors[:size, 0] = np.roll(np.arange(size), -1)
    successors[:size, 1] = size + np.arange(size)
    successors[size:] = size + np.arange(size)[:, np.newaxis]
    costs = np.ones((2 * size, 2))
    costs[size:] = np.linspace(0.3, 1.2, size)[::-1, np.newaxis]
    result = solve(MoveMDP(successors, costs), tol=1e-9)
    np.testing.assert_allclose(result.gain[:size], 0.3, rtol=1e-8)
    np.testing.assert_allclose(result.gain[size:], costs[size:, 0], rtol=1e-8)
    assert result.policy[size - 1] == 1
    assert (result.policy[: size - 1] == 0).all()
    assert_proved(MoveMDP(successors, costs), result)


def test_terminal_states_go_on_at_no_cost():
    # To end costs 10 once, and to go on costs 1 a step; or earns 1.
    for cost, gain in ((1.0, 0.0), (-1.0, -1.0)):
        model = MoveMDP([[0, 1], [0, 0]], [[cost, 10.0], [np.inf, np.inf]])
        result = solve(model)
        np.testing.assert_allclose(result.gain, [gain, 0.0], atol=1e-6)
        assert result.policy[0] == (1 if gain == 0 else 0)
        assert_proved(model, result)


def test_all_states_terminal():
    result = solve(chain(np.eye(3), np.zeros(3)))
    assert result.status == "converged"
    assert (result.gain == 0).all()
    assert result.bound == 0


def test_a_maze_with_slips_has_gain_0_however_long_one_may_walk():
    model = planners_maze(p=0.5)
    result = solve(model)
    assert result.status == "converged"
    assert (result.lower == 0).all()
    assert (result.upper == 0).all()
    assert np.isfinite(planners.evaluate(model, result.policy, 0.999)).all()


def planners_maze(p):
    from aggmaze import NDMazeEnv

    return NDMazeEnv((8, 8), kind="standard", layout_seed=0, p=p).transition_model()


@st.composite
def small_models(draw):
    num_states = draw(st.integers(1, 4))
    num_actions = draw(st.integers(1, 3))
    shape = (num_states, num_actions)
    size = num_states * num_actions
    weights = draw(
        st.lists(
            st.lists(st.sampled_from([0, 0, 1, 3]), min_size=num_states, max_size=num_states),
            min_size=size,
            max_size=size,
        )
    )
    homes = draw(st.lists(st.integers(0, num_states - 1), min_size=size, max_size=size))
    costs = draw(st.lists(st.integers(-2, 3), min_size=size, max_size=size))
    P = np.array(weights, dtype=float)
    P[np.arange(size), homes] += P.sum(axis=1) == 0
    P /= P.sum(axis=1, keepdims=True)
    ends = draw(st.booleans())
    costs = np.array(costs, dtype=float).reshape(shape)
    if ends:
        P[-num_actions:] = np.eye(num_states)[-1]
        costs[-1] = 0.0
    mask = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size))).reshape(shape)
    mask[:, draw(st.integers(0, num_actions - 1))] = True
    mask[-1] |= ends
    return TabularMDP(P, costs, action_mask=mask, terminal=None if ends else [])


@given(small_models(), st.sampled_from(METHODS))
def test_no_policy_is_better_and_the_policy_is_as_good_as_promised(model, method):
    result = solve(model, method=method, tol=1e-8)
    shape = (*model.costs.shape, model.num_states)
    P = model.transitions.toarray().reshape(shape)
    best = best_gains(P, model.costs, model.action_mask)
    rounding = 1e-9
    assert result.status == "converged"
    assert (result.lower <= best + rounding).all()
    assert (best <= result.upper + rounding).all()
    assert model.action_mask[np.arange(model.num_states), result.policy].all()
    reached = gains_of(P, model.costs, result.policy)
    assert (reached <= result.upper + rounding).all()
    np.testing.assert_allclose(
        average_cost_of_policy(model, result.policy).gains, reached, atol=1e-9
    )
    assert_proved(model, result)
    # What the bias is about: the gain is what a step costs beyond its changes.
    states = np.arange(model.num_states)
    step = model.costs[states, result.policy] + P[states, result.policy] @ result.bias
    assert (np.abs(step - result.bias - reached) <= 4 * result.bound + rounding).all()


@given(st.integers(0, 10_000), st.sampled_from([1.0, 0.9, 0.2]))
def test_moves_and_their_table_have_the_same_gains(seed, p):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 6))
    costs = rng.integers(-2, 3, (size, 3)).astype(float)
    costs[rng.random((size, 3)) < 0.3] = np.inf
    model = MoveMDP(rng.integers(size, size=(size, 3)), costs, p=p)
    ours, theirs = solve(model, tol=1e-8), solve(model.to_tabular(), tol=1e-8)
    assert (ours.lower <= theirs.upper + 1e-12).all()
    assert (theirs.lower <= ours.upper + 1e-12).all()
    assert_proved(model, ours)


@pytest.mark.parametrize("seed", range(3))
def test_a_communicating_model_has_the_gain_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    size, num_actions = 30, 3
    P = rng.dirichlet(np.full(size, 0.1), size * num_actions)
    costs = rng.normal(size=(size, num_actions))
    # Shares of time, least mean cost (Puterman 1994, section 8.8).
    balance = np.repeat(np.eye(size), num_actions, axis=0) - P
    found = linprog(
        costs.reshape(-1),
        A_eq=np.vstack([balance.T, np.ones(len(P))]),
        b_eq=np.append(np.zeros(size), 1.0),
    )
    for method in METHODS:
        result = solve(TabularMDP(P, costs), method=method, tol=1e-9)
        np.testing.assert_allclose(result.gain, found.fun, rtol=1e-6, atol=1e-9)


def birth_death(size, up, down):
    """Return a queue with a cost of 1 a customer, and its mean length in closed form."""
    P = np.zeros((size, size))
    for n in range(size):
        P[n, min(n + 1, size - 1)] += up
        P[n, max(n - 1, 0)] += down
        P[n, n] += 1 - up - down
    shares = (up / down) ** np.arange(size)
    shares /= shares.sum()
    return chain(P, np.arange(size)), float(shares @ np.arange(size))


@pytest.mark.parametrize("method", ["auto", "policy_iteration"])
def test_queues_have_their_mean_length(method):
    model, mean = birth_death(2000, 0.2, 0.5)
    result = solve(model, method=method, tol=1e-8)
    assert result.status == "converged"
    np.testing.assert_allclose(result.gain, mean, rtol=1e-7)
    assert_proved(model, result)


def test_auto_says_why_it_iterates_on_policies():
    model, _ = birth_death(2000, 0.2, 0.5)
    result = solve(model)
    assert result.method == "policy_iteration"
    assert "value iteration would take" in result.reason


def test_rows_that_miss_1_are_taken_for_distributions():
    matrix = sp.csr_array(np.array([[0.5, 0.5], [1.0, 0.0]]) * (1 - 9e-10))
    model = TabularMDP(matrix, [[3.0], [0.0]], terminal=[])
    result = solve(model, method="policy_iteration", tol=1e-13)
    np.testing.assert_allclose(result.gain, 2.0, rtol=1e-14)
    assert result.status == "converged"


def machine(size):
    """Wear grows until the machine is renewed, which costs 3; wear w costs w a step."""

    def next_state(wear, renew, event):
        return event if renew == 1 else min(wear + event, size - 1)

    def cost(wear, renew):
        return 3.0 if renew == 1 else 1.0 * wear

    return EventMDP(size, 2, next_state, [0.5, 0.5], cost)


@pytest.mark.parametrize("method", ["auto", "value_iteration"])
def test_a_model_without_a_table_has_the_gain_of_its_table(method):
    model = machine(12)
    result, table = solve(model, method=method), solve(model.to_tabular(), tol=1e-9)
    assert result.status == "converged"
    np.testing.assert_allclose(result.gain, table.gain, rtol=1e-6)


def test_without_a_table_a_periodic_model_converges_and_a_multichain_one_is_no_success():
    def turn(state, action, event):
        return (state + 1) % 4

    def stay(state, action, event):
        return state

    def cost(state, action):
        return 1.0 * state

    periodic = solve(EventMDP(4, 1, turn, [1.0], cost), method="value_iteration")
    assert periodic.status == "converged"
    np.testing.assert_allclose(periodic.gain, 1.5, rtol=1e-6)
    parts = EventMDP(4, 1, stay, [1.0], cost)
    short = solve(parts, method="value_iteration")
    assert short.status == "stopped_short"
    assert "one gain in common" in short.message
    assert (short.lower <= np.arange(4)).all()
    assert (short.upper >= np.arange(4)).all()
    np.testing.assert_allclose(solve(parts).gain, np.arange(4), rtol=1e-9)
    with pytest.raises(ValueError, match="policy_iteration needs a table"):
        solve(parts, method="policy_iteration")


def test_values_do_not_depend_on_the_number_of_threads():
    model, _ = birth_death(300, 0.3, 0.4)
    one, two = (solve(model, num_threads=n, tol=1e-10) for n in (1, 2))
    np.testing.assert_array_equal(one.gain, two.gain)
    np.testing.assert_array_equal(one.bias, two.bias)


def test_a_number_of_iterations_is_made_and_counted():
    model, _ = birth_death(50, 0.3, 0.4)
    result = solve(model, method="value_iteration", num_iterations=5)
    assert result.status == "completed"
    assert result.num_iterations == result.num_sweeps == len(result.history) == 5
    assert_proved(model, result)
    short = solve(model, method="value_iteration", num_iterations=5, tol=1e-6)
    assert short.status == "stopped_short"
    assert short.bound > 1e-6
    assert solve(model, time_limit=1e-9).status == "stopped_short"


def test_a_callback_sees_bounds_and_stops():
    model, mean = birth_death(50, 0.3, 0.4)
    seen = []

    def look(progress):
        seen.append(progress)
        assert (np.abs(progress.values - mean) <= progress.bound).all()
        return progress.iteration == 3

    result = solve(model, method="value_iteration", certify="every", callback=look)
    assert result.status == "interrupted"
    assert len(seen) == result.num_iterations == 3
    assert not np.isnan(result.history.bound).any()


def test_ctrl_c_leaves_the_last_whole_iteration():
    model, mean = birth_death(50, 0.3, 0.4)

    def strike(progress):
        if progress.iteration == 4:
            raise KeyboardInterrupt

    result = solve(model, method="value_iteration", callback=strike)
    assert result.status == "interrupted"
    assert result.num_iterations == 4
    assert (np.abs(result.values - mean) <= result.bound).all()
    with pytest.raises(KeyboardInterrupt):
        result.require()


def test_relative_values_to_start_from_save_iterations():
    model, _ = birth_death(50, 0.3, 0.4)
    first = solve(model, method="value_iteration", tol=1e-8)
    again = solve(model, method="value_iteration", tol=1e-8, V0=first.bias)
    assert again.num_iterations == 1
    assert again.status == "converged"


def test_a_gain_of_0_is_measured_by_costs():
    model = chain(np.roll(np.eye(3), 1, axis=1), [1.0, -1.5, 0.5])
    result = solve(model, method="value_iteration", tol=1e-6)
    assert result.status == "converged"
    assert "the gain is 0 within" in result.message
    assert result.bound <= 2e-6
    atol = solve(model, method="value_iteration", atol=1e-3)
    assert atol.bound <= 1e-3


def test_what_is_asked_wrongly_is_refused_by_name():
    with pytest.raises(ValueError, match="method must be one of auto, value_iteration"):
        solve(taxicab(), method="gauss_seidel")
    with pytest.raises(TypeError, match="takes no options"):
        solve(taxicab(), method="value_iteration", epsilon=0.5)


def test_gains_of_a_policy_that_draws_its_actions():
    P = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    model = TabularMDP(P, [[1.0, 2.0], [4.0, 0.0]], terminal=[])
    # Each action leads to 1 or back: the chain of (1/2, 1/2) in both states.
    found = average_cost_of_policy(model, [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(found.gains, (1.5 + 2.0) / 2, rtol=1e-14)
    np.testing.assert_array_equal(found.classes, [0, 0])


def test_gains_of_a_large_chain_with_transient_states():
    model, mean = birth_death(3000, 0.3, 0.4)
    size = model.num_states
    ways = sp.vstack(
        [
            sp.hstack([model.transitions, sp.csr_array((size, 2))]),
            sp.csr_array(([0.5, 0.25, 0.25], ([0, 0, 0], [7, size, size + 1])), (1, size + 2)),
            sp.csr_array(([1.0], ([0], [size + 1])), (1, size + 2)),
        ]
    )
    costs = np.append(model.costs[:, 0], [2.0, 5.0])[:, np.newaxis]
    found = average_cost_of_policy(
        TabularMDP(ways, costs, terminal=[]), np.zeros(size + 2, dtype=int)
    )
    np.testing.assert_allclose(found.gains[:size], mean, rtol=1e-9)
    assert found.gains[size] == pytest.approx((2 * mean + 5) / 3, rel=1e-9)
    assert found.gains[size + 1] == 5.0
    assert math.isfinite(found.bias[size])


def test_cycles_longer_than_float64_can_count_are_no_gain_of_0() -> None:
    # From 1 one comes back in 1e310 steps or so.
    matrix = sp.csr_array(
        (
            [1.0, 1e-300, 1 / 3, 1 / 3, 1 / 3, 1.0, 0.5, 1 / 6, 1 / 3, 1e-310],
            [0, 0, 0, 1, 2, 1, 2, 3, 0, 1],
            [0, 2, 5, 6, 10],
        ),
        shape=(4, 4),
    )
    costs = np.array([[0.0], [0.5], [0.1], [0.1]])
    model = TabularMDP(matrix, costs, terminal=[])
    found = planners.evaluate(model, [0, 0, 0, 0], objective=planners.AverageCost())
    np.testing.assert_allclose(found, 0.0, atol=1e-290)
    P = sp.csr_array(([1.0, 1e-310, 1e-17, 1.0], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    slow = TabularMDP(P, np.array([[1.0], [3.0]]), terminal=[])
    with np.errstate(all="raise", under="ignore"):
        try:
            gain = planners.evaluate(slow, [0, 0], objective=planners.AverageCost())
        except FloatingPointError:
            return
    np.testing.assert_allclose(gain, 1.0)
