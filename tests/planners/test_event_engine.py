"""Models of random events solved without a table, against the table and exact fractions."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

import planners
from aggmaze import EventMDP, EventStage, TabularEnv, TabularMDP
from planners import event_engine
from planners.bellman import local_engine
from planners.budget import OutOfTimeError
from planners.event_engine import EventEngine
from planners.kernels import compiling, sparse, threads
from planners.kernels.events import kernels_of
from planners.solve import METHODS
from tests.event_models import KINDS, A, E, S, event_mdps, exact
from tests.planners.reference import exact_bounds_hold, exact_error, gammas, within
from tests.strategies import seeds

MATRIX_FREE = [name for name, method in METHODS.items() if method.matrix_free is not None]
WITH_TABLE = [name for name in METHODS if name not in MATRIX_FREE]
OPTIONS: dict[str, dict[str, Any]] = {
    "fixed_aggregation": {"labels": np.arange(S) // 2},
    "modified_policy_iteration": {"inner_sweeps": 2},
}

ROOT = Path(__file__).resolve().parent.parent.parent

Vector = NDArray[np.float64]


def values(seed: int, size: int = S) -> Vector:
    return 10 * np.random.default_rng(seed).normal(size=size)


@settings(max_examples=60, deadline=None)
@given(model=event_mdps(), gamma=st.sampled_from([0.0, 0.5, 0.99]), seed=seeds)
def test_backups_are_those_of_the_table(model: EventMDP, gamma: float, seed: int) -> None:
    free, table = EventEngine(model, gamma, 1), local_engine(model.to_tabular(), gamma)
    V, rng = values(seed), np.random.default_rng(seed)
    V[model.terminal] = 0.0
    near = {"rtol": 0, "atol": 1e-12}
    Q = table.q_values(V)
    np.testing.assert_allclose(free.q_values(V), Q, **near)
    images = np.empty(S), np.empty(S)
    actions = np.empty(S, dtype=np.int32)
    sweep, other = free.sweep(V, images[0], actions), table.sweep(V, images[1])
    np.testing.assert_allclose(*images, **near)
    np.testing.assert_allclose(Q[np.arange(S), actions], images[1], **near)
    np.testing.assert_allclose(
        [sweep.residual_low, sweep.residual_high, sweep.low, sweep.high],
        [other.residual_low, other.residual_high, other.low, other.high],
        **near,
    )
    policy = np.array([rng.choice(np.flatnonzero(row)) for row in model.action_mask], np.int32)
    by_policy, by_table = (
        engine.policy_sweep(policy, V, images[i]) for i, engine in enumerate((free, table))
    )
    np.testing.assert_allclose(*images, **near)
    assert by_policy.residual == pytest.approx(by_table.residual, abs=1e-12)
    labels = rng.integers(3, size=S).astype(np.int32)
    W, states = values(seed + 1, 3), rng.integers(S, size=4)
    outs = np.empty(4), np.empty(4)
    for engine, out in zip((free, table), outs, strict=True):
        engine.aggregated(states, W, labels, out)
    np.testing.assert_allclose(*outs, **near)
    greedy = free.greedy(V, lambda: np.zeros(S), 0.0, 0.0)
    np.testing.assert_allclose(Q[np.arange(S), greedy], Q.min(axis=1), **near)
    with pytest.raises(NotImplementedError, match="no sweeps in place"):
        free.gauss_seidel(V)


@settings(max_examples=60, deadline=None)
@given(
    model=event_mdps(),
    gamma=st.sampled_from([0.5, 1 - 2.0**-20]),
    seed=seeds,
    exponent=st.integers(-3, 15),
)
def test_backups_are_within_their_rounding(
    model: EventMDP, gamma: float, seed: int, exponent: int
) -> None:
    engine, truth = EventEngine(model, gamma, 1), exact(model, gamma)
    V, image = values(seed) * 10.0**exponent, np.empty(S)
    V[model.terminal] = 0.0
    engine.sweep(V, image)
    fractions = [Fraction(x) for x in V.tolist()]
    TV = [
        min((truth.q(fractions, s, a) for a in actions), default=Fraction(0))
        for s, actions in enumerate(truth.actions)
    ]
    most = max(engine.sup_norm(V), engine.sup_norm(image))
    # Rows may miss 1 by their roundings: the certificate takes that apart.
    allowed = engine.rounding(most) + gamma * engine.row_error * most
    assert within(exact_error(image, TV), allowed)


@settings(max_examples=60, deadline=None)
@given(
    model=event_mdps(),
    gamma=gammas,
    method=st.sampled_from([*MATRIX_FREE, "auto"]),
    num_iterations=st.integers(1, 12),
)
def test_bounds_hold_in_fractions(
    model: EventMDP, gamma: float, method: str, num_iterations: int
) -> None:
    truth = exact(model, gamma)
    optimum = truth.optimum()
    result = planners.solve(
        model,
        gamma=gamma,
        method=method,
        num_iterations=num_iterations,
        certify="every",
        callback=exact_bounds_hold(optimum),
        **OPTIONS.get(method, {}),
    )
    assert within(exact_error(result.values, optimum), result.bound)
    for s, actions in enumerate(truth.actions):
        assert not actions or result.policy[s] in actions
    of_policy = truth.value(result.policy)
    lost = max(v - o for v, o in zip(of_policy, optimum, strict=True))
    assert within(max(lost, Fraction(0)), result.policy_bound)


@pytest.mark.parametrize("gamma", [0.9, 0.999])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_methods_agree_with_the_table(kind: str, gamma: float, data: st.DataObject) -> None:
    model = data.draw(event_mdps((kind,)))
    table = model.to_tabular()
    expected = planners.solve(table, gamma=gamma, method="policy_iteration", tol=1e-10)
    size = max(1.0, np.abs(expected.values).max())
    for method in ("auto", "value_iteration", "modified_policy_iteration"):
        found = planners.solve(model, gamma=gamma, method=method, atol=1e-10 * size).require()
        assert np.abs(found.values - expected.values).max() <= found.bound + expected.bound
        assert found.bound <= 1e-10 * size
        lost = planners.evaluate(model, found, gamma) - expected.values
        assert lost.max() <= found.policy_bound + expected.bound + 1e-12 * size
    shrunk = planners.solve(
        model, gamma=gamma, method="adaptive_aggregation", epsilon="shrink", atol=1e-8 * size
    )
    assert np.abs(shrunk.values - expected.values).max() <= shrunk.bound + expected.bound
    V = values(3)
    np.testing.assert_allclose(
        planners.q_values(model, V, gamma), planners.q_values(table, V, gamma), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("method", WITH_TABLE)
def test_methods_that_need_a_table_say_so(method: str) -> None:
    model = EventMDP(3, 1, lambda s, a, e: s, [1.0], lambda s, a: 1.0)
    with pytest.raises(ValueError, match=f"{method} needs a table .* do without: ") as caught:
        planners.solve(model, gamma=0.9, method=method)
    for name in MATRIX_FREE:
        assert name in str(caught.value)


def test_an_environment_of_the_model_steps_by_its_table() -> None:
    model = shop(20, 3)
    env = TabularEnv(model)
    assert isinstance(env.transition_model(), TabularMDP)
    env.reset(seed=0)
    for _ in range(20):
        state, reward, _, _, info = env.step(1)
        assert 0 <= state < 20
        assert reward <= 0 < info["prob"]
    found = planners.solve(env, gamma=0.9, method="policy_iteration")
    free = planners.solve(model, gamma=0.9, tol=1e-9)
    assert np.abs(found.values - free.values).max() <= found.bound + free.bound
    assert np.abs(planners.evaluate(model, free, 0.9) - free.values).max() <= (
        free.bound + free.policy_bound
    )
    scaled, factor = planners.normalized(model, 0.9)
    np.testing.assert_allclose(scaled.costs, factor * model.to_tabular().costs)


def corridor(num_states: int = 12) -> EventMDP:
    """Steps to either side that may slip to the other, or into a trap; nothing costs anything."""

    def next_state(s: int, a: int, e: int) -> int:
        if s == 5 and a == 0:
            return 5
        step = 1 if a == 2 else -1
        return min(max(s + (step if e == 0 else -step), 0), num_states - 1)

    return EventMDP(
        num_states,
        3,
        next_state,
        [0.8, 0.2],
        lambda s, a: 0.0,
        terminal=np.isin(np.arange(num_states), [0, num_states - 1]),
    )


def test_policies_arrive_as_with_a_table() -> None:
    model = corridor()
    result = planners.solve(model, gamma=0.9, method="value_iteration", tol=1e-6)
    table = planners.solve(model.to_tabular(), gamma=0.9, method="value_iteration", tol=1e-6)
    np.testing.assert_array_equal(result.policy, table.policy)
    assert planners.arrival(model, result).share_of_states == 1.0
    np.testing.assert_array_equal(
        planners.greedy(model, np.zeros(12), 0.9),
        planners.greedy(model.to_tabular(), np.zeros(12), 0.9),
    )


def test_policies_arrive_through_stages() -> None:
    # The same corridor: an action is a post-decision state, and the slip a stage of its own.
    n = 12
    slip = EventStage(
        3 * n,
        lambda y, e: (
            min(max(y // 3 + (1 if (y % 3 == 2) == (e == 0) else -1), 0), n - 1) if y != 15 else 5
        ),
        [0.8, 0.2],
    )
    model = EventMDP(
        n,
        3,
        lambda y, e: y,
        [1.0],
        lambda s, a: 0.0,
        post=lambda s, a: 3 * s + a,
        num_posts=3 * n,
        stages=[slip],
        terminal=corridor().terminal,
    )
    zeros = np.zeros(n)
    np.testing.assert_array_equal(
        planners.greedy(model, zeros, 0.9), planners.greedy(corridor(), zeros, 0.9)
    )


def test_long_ways_to_the_end_are_found_in_a_few_sweeps() -> None:
    n = 3000
    model = EventMDP(
        n,
        2,
        lambda s, a, e: s - 1 if a == 1 else s + (s < n - 1),
        [1.0],
        lambda s, a: 0.0,
        terminal=np.arange(n) == 0,
    )
    checks = itertools.count()
    engine = EventEngine(model, 0.9, 1, lambda: next(checks))
    policy = engine.greedy(np.zeros(n), lambda: np.zeros(n), 0.0, 0.0)
    assert (policy[1:] == 1).all()
    assert next(checks) < 10


def shop(num_states: int = 500, num_actions: int = 7) -> EventMDP:
    """Order up to six units, sell at random, pay for stock and for what is short."""
    demand = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.1])

    @njit
    def next_state(y: int, e: int) -> int:
        return max(y - e, 0)

    @njit
    def event_cost(y: int, e: int) -> float:
        return 0.1 * max(y - e, 0) + 4.0 * max(e - y, 0)

    @njit
    def post(s: int, a: int) -> int:
        return min(s + a, num_states - 1)

    @njit
    def cost(s: int, a: int) -> float:
        return 1.0 * (a > 0) + 2.0 * a

    return EventMDP(
        num_states,
        num_actions,
        next_state,
        demand,
        cost,
        event_cost=event_cost,
        post=post,
        num_posts=num_states,
    )


def test_threads_and_pieces_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    model = shop()
    whole = planners.solve(model, gamma=0.99, num_threads=1)
    monkeypatch.setattr(threads, "LEAST_WORK", 1)
    for num_threads, piece in itertools.product((1, 2, 3), (1 << 28, 1000, 7)):
        monkeypatch.setattr(event_engine, "_PIECE", piece)
        other = planners.solve(model, gamma=0.99, num_threads=num_threads)
        assert other.values.tobytes() == whole.values.tobytes()
        assert other.policy.tobytes() == whole.policy.tobytes()
        assert (other.bound, other.num_sweeps) == (whole.bound, whole.num_sweeps)


def test_a_sweep_can_be_stopped_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_engine, "_PIECE", 100)
    calls = itertools.count()

    def checkpoint() -> None:
        if next(calls) == 20:
            raise OutOfTimeError

    model = shop()
    V, out = np.zeros(model.num_states), np.full(model.num_states, np.nan)
    with pytest.raises(OutOfTimeError):
        EventEngine(model, 0.9, 1, checkpoint).sweep(V, out)
    assert np.isnan(out).any()


def test_a_time_limit_ends_a_run_that_is_certified() -> None:
    model = shop()
    result = planners.solve(model, gamma=0.99999, tol=1e-9, time_limit=1e-9)
    assert result.status == "stopped_short"
    longer = planners.solve(model, gamma=0.99999, num_iterations=300)
    gap = np.abs(result.values - longer.values).max()
    assert gap <= result.bound + longer.bound


ENDLESS = """
import planners
from tests.planners.test_event_engine import shop

result = planners.solve(
    shop(200_000),
    gamma=1 - 1e-9,
    method="value_iteration",
    atol=1e-3,
    callback=lambda progress: print("ready", flush=True) if progress.iteration == 1 else None,
)
print(result.status, result.bound < float("inf"), result.num_iterations >= 1)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send")
def test_ctrl_c_leaves_the_last_whole_iteration() -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=300)
    assert (run.returncode, out) == (0, "interrupted True True\n")


def test_a_policy_whose_sweep_is_no_cheaper_gets_none() -> None:
    model = shop(50, 2)
    # A state has two actions, and each stock six events: most is in what the actions share.
    engine = EventEngine(model, 0.9, 1)
    assert engine.work < 2 * engine.policy_work
    for solved, plain in ((shop(50, 2), True), (shop(50, 40), False)):
        found, other = (
            planners.solve(solved, gamma=0.9, method=method, tol=1e-8)
            for method in ("modified_policy_iteration", "value_iteration")
        )
        assert (found.num_sweeps == found.num_iterations) == plain
        assert np.abs(found.values - other.values).max() <= found.bound + other.bound


def test_a_policy_with_structure_comes_out() -> None:
    # Ordering up to a level above a threshold is best where an order has a cost of its own.
    result = planners.solve(shop(), gamma=0.95).require()
    orders = result.policy[:40]
    assert (np.diff(np.flatnonzero(orders > 0)) == 1).all()
    assert orders[0] > 0
    assert (orders[20:] == 0).all()


def test_what_shares_functions_shares_kernels() -> None:
    @njit
    def next_state(s, a, e):
        return (s + e) % 4

    @njit
    def cost(s, a):
        return 1.0 * a

    one, other = (EventMDP(4, 2, next_state, p, cost) for p in ([1.0], [0.5, 0.5]))
    assert kernels_of(one.functions) is kernels_of(other.functions)
    assert kernels_of(one.functions) is not kernels_of(shop().functions)
    assert planners.solve(one, gamma=0.5).values.tolist() == [0.0] * 4


def test_the_notice_says_how_long_kernels_are_kept() -> None:
    assert compiling._where_kept(sparse.sweep) == "they are kept on disk"
    kernel = kernels_of(shop().functions).sweep
    assert compiling._where_kept(kernel) == "for this process and these functions"


def test_sizes_of_events_and_actions_are_read_off_the_models() -> None:
    assert (A, E) == (3, 4)
    engine = EventEngine(shop(), 0.9, 1)
    # 500 states of 7 actions that lead to one of 500 posts, each with 6 events.
    assert (engine.work, engine.policy_work) == (500 * 7 + 500 * 6, 500 + 500 * 6)
    assert engine.max_cost == 13.0 + 0.1 * 499


def test_no_run_forms_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    # Runs of few states otherwise end by the exact value of a policy, which takes its rows: but a
    # model of few states may have any number of actions and events.
    def refuse(model: EventMDP) -> TabularMDP:
        raise AssertionError("the table is formed")

    monkeypatch.setattr(EventMDP, "to_tabular", refuse)
    for limits in ({"num_iterations": 5000}, {}):
        result = planners.solve(
            shop(30, 4), gamma=0.99999, method="value_iteration", atol=1e-9, **limits
        )
        assert result.status == "stopped_short"
