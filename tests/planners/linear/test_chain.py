"""The linear equations of a chain against dense, sparse and exact solves."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import spsolve

import planners
from aggmaze import TabularMDP
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.linear.chain import ChainEquations
from planners.policies import policy_model
from tests.planners.families import drawn, maze
from tests.planners.reference import Array, Model, dense, gammas, models, value_of


def residual(chain: TabularMDP, gamma: float, V: Array) -> Array:
    inside = ~chain.terminal
    return np.where(inside, chain.costs[:, 0] + gamma * (chain.transitions @ V) - V, 0.0)


@settings(max_examples=200)
@given(model=models, gamma=gammas, seed=st.integers(0, 1000))
def test_equations_of_any_small_chain(model: Model, gamma: float, seed: int) -> None:
    tables = dense(model)
    for policy in drawn(model, seed):
        chain = policy_model(model, policy)
        found = ChainEquations(chain.transitions, chain.terminal, gamma).solve(chain.costs[:, 0])
        V = value_of(tables, policy, gamma).astype(np.float64)
        scale = max(1e-300, float(np.abs(V).max()))
        assert np.abs(found.values - V).max() <= 1e-14 / (1 - gamma) * scale
        # What it says of itself holds, within the rounding of both.
        exact = residual(chain, gamma, found.values)
        slack = 2 * found.rounding + 1e-290
        assert abs(exact.min() - found.residual_low) <= slack
        assert abs(exact.max() - found.residual_high) <= slack
        assert not found.values[chain.terminal].any()


def test_the_rise_never_passes_the_solution() -> None:
    for name, p in (("smooth", 0.9), ("depth first", 0.8), ("uniform", 0.3)):
        model = maze(name, 15, p)
        chain = policy_model(model, drawn(model, 0)[1])
        inside = np.flatnonzero(~chain.terminal)
        matrix = sp.eye_array(len(inside)) - chain.transitions[inside][:, inside]
        steps = spsolve(matrix.tocsc(), np.ones(len(inside)))
        equations = ChainEquations(chain.transitions, chain.terminal, 1.0)
        last = np.zeros(len(inside))
        for num_steps in (0, 1, 5, 50):
            risen = equations.rise(np.ones(chain.num_states), num_steps).values[inside]
            assert (risen >= last * (1 - 1e-12)).all()
            assert (risen <= steps * (1 + 1e-9)).all()
            last = risen
        found = equations.solve(np.ones(chain.num_states))
        np.testing.assert_allclose(found.values[inside], steps, rtol=1e-9)
        # The certificate of expected steps: v is within this share of them.
        share = max(-found.residual_low, found.residual_high) + found.rounding
        assert (np.abs(found.values[inside] - steps) <= (share + 1e-9) * steps).all()


def test_rounding_is_what_is_left() -> None:
    for name, p in (("smooth", 0.95), ("kruskal", 0.95), ("smooth", 1.0)):
        model = maze(name, 60, p)
        policy = planners.solve(model, gamma=0.99, tol=1e-3).policy
        chain = policy_model(model, policy)
        found = ChainEquations(chain.transitions, chain.terminal, 0.99).solve(chain.costs[:, 0])
        size = np.abs(found.values).max()
        left = max(-found.residual_low, found.residual_high)
        assert left <= found.rounding <= 40 * UNIT_ROUNDOFF * size
