"""Algorithm 1 with labels from the user, and noise on the costs that a solver sees."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import planners
from aggmaze import TabularMDP
from aggmaze.grid import Grid
from aggmaze.recipes import StandardRecipe, TerrainRecipe, maze_model
from planners.aggregation import aggregate_by_value
from planners.bellman import local_engine
from planners.noise import NoisyBackups
from tests.planners.reference import (
    Array,
    Dense,
    Model,
    action_values,
    backup,
    dense,
    greedy_loss,
    random_moves,
    random_tabular,
    spread,
    truth,
)


def models() -> dict[str, Model]:
    rng = np.random.default_rng(0)
    standard, terrain = StandardRecipe(), TerrainRecipe("uniform")
    return {
        "table": random_tabular(0, 40, 3),
        "table without terminal states": random_tabular(1, 20, 2, terminals=0),
        "moves": random_moves(0, 40, 4, p=0.9),
        "moves, p < 1/n": random_moves(1, 25, 4, p=0.15, terminals=2),
        "moves, p = 1/2": random_moves(5, 25, 4, p=0.5),
        "standard maze": maze_model(standard.layout(Grid((6, 5)), rng), standard, p=0.8),
        "terrain maze": maze_model(terrain.layout(Grid((5, 6)), rng), terrain),
    }


MODELS = models()


def solve(model: Any, labels: Any, **options: Any) -> planners.SolveResult:
    return planners.solve(model, method="fixed_aggregation", labels=labels, **options)


# ---------------------------------------------------------------------------------------------
# Algorithm 1.


@pytest.mark.parametrize("name", MODELS)
def test_line_by_line(name: str) -> None:
    model, gamma = MODELS[name], 0.9
    tables, S = dense(model), model.num_states
    rng = np.random.default_rng(3)
    labels, V0 = rng.integers(4, size=S) * 7 - 5, rng.normal(size=S)
    V0[model.terminal] = 0.0
    distinct = np.unique(labels)
    members = [np.flatnonzero(labels == label) for label in distinct]
    W = np.array([V0[states].mean() for states in members])
    expected = []
    uniforms = np.random.default_rng(11)
    for t in range(1, 41):
        V = W[np.searchsorted(distinct, labels)]
        drawn = [states[int(u * len(states))] for states, u in zip(
            members, uniforms.random(len(members)), strict=True
        )]  # fmt: skip
        alpha = t**-0.5
        W = (1 - alpha) * W + alpha * backup(tables, V, gamma)[drawn]
        expected.append(W[np.searchsorted(distinct, labels)])
    seen = []
    result = solve(
        model,
        labels,
        gamma=gamma,
        V0=V0,
        seed=11,
        step_size="t^-0.5",
        num_iterations=40,
        callback=lambda progress: seen.append(progress.values),
    )
    np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-11)
    assert result.status == "completed"
    assert result.num_updates == 40 * len(distinct)
    assert result.num_sweeps == 0
    np.testing.assert_array_equal(result.labels, np.searchsorted(distinct, labels))
    error = np.abs(result.values - truth(tables, gamma)[0]).max()
    assert error <= result.bound


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("gamma", [0.8, 0.9])
def test_proposition_1(name: str, gamma: float) -> None:
    """Both bounds of Proposition 1, with labels from V* and alpha = t^-0.6.

    What 4000 steps leave open beside them is a twentieth of the first bound (they are never that
    near): see tests/paper/test_theory.py for what a run of N steps can be off.
    """
    model = MODELS[name]
    tables = dense(model)
    V = truth(tables, gamma)[0].astype(float)
    labels = aggregate_by_value(V, 0.2 * float(np.ptp(V))).labels
    e = spread(labels, V)
    assert e > 0
    result = solve(model, labels, gamma=gamma, num_iterations=4000)
    assert np.abs(result.values - V).max() <= 1.05 * e / (1 - gamma)
    loss = greedy_loss(tables, result.values, gamma, V)
    assert loss <= 1.05 * 2 * gamma * e / (1 - gamma) ** 2


def test_labels_of_single_states_are_value_iteration_with_steps() -> None:
    """With one state a mega-state and steps of 1 the two are the same."""
    model = MODELS["table"]
    labels = np.arange(model.num_states)[::-1]
    ours = solve(model, labels, gamma=0.9, step_size=1.0, num_iterations=30)
    V = np.zeros(model.num_states)
    for _ in range(30):
        V = backup(dense(model), V, 0.9)
    np.testing.assert_allclose(ours.values, V, rtol=0, atol=1e-12)


def test_every_member_is_drawn_as_often() -> None:
    """Costs that tell the states of the one mega-state apart: steps of 1 show who was drawn."""
    P = np.zeros((5, 1, 5))
    P[np.arange(5), 0, np.arange(5)] = 1.0
    model = TabularMDP.from_matrices(P, costs=np.arange(1.0, 6.0)[:, np.newaxis])
    drawn: list[float] = []
    solve(
        model,
        np.zeros(5, dtype=int),
        gamma=0.0,
        step_size=1.0,
        num_iterations=5000,
        callback=lambda progress: drawn.append(progress.values[0]),
    )
    counts = np.bincount(np.array(drawn).astype(int) - 1, minlength=5)
    assert counts.sum() == 5000
    # A chi-squared of 4 degrees of freedom is below 23.5 but once in 10,000.
    assert ((counts - 1000) ** 2 / 1000).sum() < 23.5


def test_states_that_the_source_does_not_list() -> None:
    env = gym.make("CliffWalking-v1")
    model = planners.as_model(env)
    listed = model.num_states - model.num_added_states
    result = solve(env, np.arange(listed) % 7, gamma=0.9, num_iterations=50)
    assert result.labels is not None
    assert len(result.values) == len(result.labels) == listed


def test_a_thousand_iterations_by_default() -> None:
    assert solve(MODELS["moves"], np.arange(40) // 10, gamma=0.9).num_iterations == 1000


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "fixed_aggregation needs labels"),
        ([0.5] * 40, "labels must be integers"),
        (np.zeros((40, 1), dtype=int), "labels must be integers of shape"),
        ([0] * 39, r"labels must have shape \(40,\), one a state"),
        ([], "labels must be integers"),
    ],
)
def test_labels_that_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(MODELS["moves"], labels, gamma=0.9)


@pytest.mark.parametrize("options", [{"step_size": "sqrt"}, {"step_size": 2.0}, {"first_step": 0}])
def test_options_that_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        solve(MODELS["moves"], np.zeros(40, dtype=int), gamma=0.9, **options)


# ---------------------------------------------------------------------------------------------
# Noise.


def noisy_sweep(model: Model, V: Array, noise: Array, gamma: float) -> Array:
    """T' by the words of the paper: a vector is added to the action costs."""
    tables = dense(model)
    Q = action_values(tables, V, gamma) + noise
    return np.where(tables.terminal, 0.0, Q.min(axis=1)).astype(float)


@pytest.mark.parametrize("name", [*MODELS, "moves, p = 1/3"])
@pytest.mark.parametrize("noise", ["once", "fresh"])
def test_noise_is_added_to_the_costs_of_actions(name: str, noise: str) -> None:
    # With three moves everywhere and p = 1/3, no cost of moves can tell the actions apart.
    model = MODELS.get(name) or random_moves(7, 20, 3, p=1 / 3)
    S, A, gamma, sigma = model.num_states, model.num_actions, 0.9, 0.7
    noisy = NoisyBackups(local_engine(model, gamma), sigma, noise, np.random.default_rng(5))
    draws = np.random.default_rng(5)
    drawn = sigma * draws.standard_normal((S, A))
    V = np.random.default_rng(1).normal(size=S)
    for _ in range(3):
        if noise == "fresh":
            drawn = sigma * draws.standard_normal((S, A))
        out = np.empty(S)
        sweep = noisy.sweep(V, out)
        np.testing.assert_allclose(out, noisy_sweep(model, V, drawn, gamma), rtol=0, atol=1e-11)
        assert (sweep.low, sweep.high) == (out.min(), out.max())
        states = np.array([7, 2, 11])
        if noise == "fresh":
            drawn[states] = sigma * draws.standard_normal((3, A))
        labels = (np.arange(S) % 5).astype(np.int32)
        W, image = np.random.default_rng(2).normal(size=5), np.empty(3)
        noisy.aggregated(states, W, labels, image)
        expected = noisy_sweep(model, W[labels], drawn, gamma)[states]
        np.testing.assert_allclose(image, expected, rtol=0, atol=1e-11)


def adaptive(model: Model, **options: Any) -> planners.SolveResult:
    return planners.solve(
        model, gamma=0.9, method="adaptive_aggregation", **{"num_iterations": 70, **options}
    )


@pytest.mark.parametrize("name", ["table", "moves", "terrain maze"])
@pytest.mark.parametrize("noise", ["once", "fresh"])
def test_noise_is_the_solvers_alone(name: str, noise: str) -> None:
    """The bound is that of the true model, also where every iteration is certified."""
    model = MODELS[name]
    V = truth(dense(model), 0.9)[0].astype(float)
    errors: list[float] = []
    bounds: list[float] = []

    def note(progress: planners.Progress) -> None:
        errors.append(np.abs(progress.values - V).max())
        bounds.append(progress.bound)

    result = adaptive(
        model, noise_sigma=0.3, noise=noise, epsilon=0.05, certify="every", callback=note
    )
    assert np.abs(result.values - V).max() <= result.bound
    assert (np.array(errors) <= np.array(bounds)).all()
    assert np.isnan(result.history.residual).all()
    plain = adaptive(model, epsilon=0.05)
    assert np.abs(plain.values - V).max() < np.abs(result.values - V).max()
    assert result.num_sweeps == plain.num_sweeps
    again = adaptive(model, noise_sigma=0.3, noise=noise, epsilon=0.05)
    np.testing.assert_array_equal(again.values, result.values)


def test_global_iterations_with_noise_once_tend_to_the_optimum_of_the_noisy_model() -> None:
    model = MODELS["table"]
    result = adaptive(model, noise_sigma=0.3, num_aggregated=0, num_iterations=300, seed=4)
    noise = 0.3 * np.random.default_rng(4).spawn(1)[0].standard_normal(model.costs.shape)
    tables = dense(model)
    noisy = Dense(tables.P, tables.costs + noise * tables.mask, tables.mask, tables.terminal)
    np.testing.assert_allclose(result.values, truth(noisy, 0.9)[0].astype(float), atol=1e-9)


def test_tiny_noise_changes_nothing_else() -> None:
    """Representatives come from a stream of their own."""
    for name in ("moves", "table"):
        plain, noisy = adaptive(MODELS[name]), adaptive(MODELS[name], noise_sigma=1e-14)
        np.testing.assert_allclose(noisy.values, plain.values, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_sigma": -0.1}, "noise_sigma must not be negative"),
        ({"noise_sigma": float("nan")}, "noise_sigma must be a finite number"),
        ({"noise_sigma": "a"}, "noise_sigma must be a finite number"),
        ({"noise": "never"}, "noise must be one of once, fresh"),
        ({"noise_sigma": 0.1, "epsilon": "shrink"}, "runs to a tolerance"),
    ],
)
def test_noise_that_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adaptive(MODELS["table"], **options)
