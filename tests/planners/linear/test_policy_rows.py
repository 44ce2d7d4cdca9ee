"""The packed rows of a policy against dense tables."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggmaze import TabularMDP
from planners.bellman import local_engine
from planners.linear.policy_rows import LANES, PackedPolicy
from tests import strategies
from tests.planners.reference import Model, dense

SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(
    strategies.tabular_mdps(max_states=20) | strategies.move_mdps(max_states=20),
    st.booleans(),
    strategies.seeds,
)
def test_is_the_rows_of_the_policy(model: Model, solve_loops: bool, seed: int) -> None:
    gamma = 0.9
    rng = np.random.default_rng(seed)
    tables = dense(model)
    rows = PackedPolicy(local_engine(model, gamma), np.float64, solve_loops=solve_loops)
    num_states = model.num_states
    policy = np.where(tables.terminal, 0, tables.mask.argmax(axis=1)).astype(np.int32)
    for _ in range(3):
        rows.load(policy)
        P = gamma * tables.P[np.arange(num_states), policy]
        P[tables.terminal] = 0.0
        loops = np.diag(P).copy()
        if solve_loops:
            np.fill_diagonal(P, 0.0)
            P /= (1 - loops)[:, np.newaxis]
        start, vector, out = rows.vector(), rows.vector(), rows.vector()
        vector[:num_states] = rng.normal(size=num_states)
        change = rng.normal(size=num_states)
        rows.scaled(np.zeros(num_states), change, 2.0, start)
        expected = 2.0 * change / (1 - loops) if solve_loops else 2.0 * change
        np.testing.assert_allclose(start[:num_states], expected, rtol=1e-13)
        seen = rows.sweep(start, vector, out)
        expected = expected + P @ vector[:num_states]
        np.testing.assert_allclose(out[:num_states], expected, atol=1e-12)
        np.testing.assert_array_equal(out[num_states:], 0.0)
        difference = out[:num_states] - vector[:num_states]
        assert seen == (difference.min(), difference.max())
        for s in range(num_states):
            if not tables.terminal[s] and rng.random() < 0.5:
                policy[s] = rng.choice(np.flatnonzero(tables.mask[s]))


def test_rows_that_grow() -> None:
    # Action 0 leads to one state, action 1 to all of them: the rows need more room.
    S = 3 * LANES + 1
    P = np.zeros((S, 2, S))
    P[:, 0, 0] = 1.0
    P[:, 1] = 1.0 / S
    model = TabularMDP.from_matrices(P, costs=np.ones((S, 2)))
    rows = PackedPolicy(local_engine(model, 0.5), np.float64, solve_loops=False)
    start, vector, out = rows.vector(), rows.vector(), rows.vector()
    vector[:S] = np.arange(S)
    for policy in (np.zeros(S), np.arange(S) % 2, np.ones(S), np.zeros(S)):
        rows.load(policy.astype(np.int32))
        rows.sweep(start, vector, out)
        np.testing.assert_allclose(out[:S], np.where(policy == 1, 0.25 * (S - 1), 0.0))
