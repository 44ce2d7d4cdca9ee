"""What the checker of certificates proves is true in exact fractions, and all that is true.

Whatever else is done to a certificate, or to its head, is refused.
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import planners
from aggmaze import MoveMDP, TabularMDP, save_model
from planners.inequalities import exact_row
from planners.objective import AverageCost, Discounted, FiniteHorizon, TotalCost

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "check_certificate.py"


@pytest.fixture(scope="module")
def checker():
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        yield importlib.import_module("check_certificate")
    finally:
        sys.path.remove(str(SCRIPT.parent))


def read(path):
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("header"))), arrays


def proves(checker, model, head, arrays):
    """Return whether the checker says so, as its command does."""
    try:
        with np.errstate(all="ignore"):
            checker.prove(checker.Model(*model), dict(head), dict(arrays))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return False
    return True


def table(seed=0, num_states=12, terminal=True):
    rng = np.random.default_rng(seed)
    P = np.zeros((num_states, 3, num_states))
    for row in P.reshape(-1, num_states):
        row[rng.choice(num_states, 3, replace=False)] = rng.dirichlet(np.ones(3))
    costs = rng.random((num_states, 3))
    ends = np.zeros(num_states, dtype=bool)
    if terminal:
        ends[0] = True
        P[0], P[0, :, 0], costs[0] = 0, 1, 0
    mask = rng.random((num_states, 3)) < 0.8
    mask[~mask.any(axis=1)] = True
    return TabularMDP.from_matrices(P, costs=costs, terminal=ends, action_mask=mask)


def moves(p, seed=0, num_states=30):
    rng = np.random.default_rng(seed)
    costs = rng.integers(1, 4, (num_states, 4)).astype(float)
    costs[rng.random(costs.shape) < 0.2] = np.inf
    costs[0] = np.inf
    successors = rng.integers(0, num_states, costs.shape)
    costs[-2:] = 1.0
    if p == 1:
        # The last two lead to each other only: none of their policies ends.
        successors[-2:] = np.array([[num_states - 1], [num_states - 2]])
    return MoveMDP(successors, costs, p=p)


MODELS = {
    "table": table(),
    "endless": table(1, terminal=False),
    "moves": moves(1.0),
    "slips": moves(0.9),
    "rarely": moves(0.1),
}
OBJECTIVES = (
    Discounted(0.0),
    Discounted(0.95),
    Discounted(0.9999),
    TotalCost(),
    TotalCost(40.0),
    FiniteHorizon(5),
    FiniteHorizon(6, 0.9),
    AverageCost(),
)


def certified(tmp_path, model, objective, **how):
    """Return what the files of a model and of a result hold."""
    result = planners.solve(model, objective=objective, **how)
    save_model(model, tmp_path / "model.npz")
    result.certificate(tmp_path / "certificate.npz")
    return read(tmp_path / "model.npz"), *read(tmp_path / "certificate.npz"), result


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        (name, objective)
        for name in MODELS
        for objective in OBJECTIVES
        # Where no policy ends there is no total cost.
        if (name, objective) != ("endless", TotalCost())
    ],
    ids=str,
)
def test_what_is_certified_is_proved(checker, tmp_path, name, objective):
    model, head, arrays, result = certified(tmp_path, MODELS[name], objective)
    assert result.success
    assert proves(checker, model, head, arrays)
    if isinstance(objective, AverageCost) and not result.gain.any():
        return  # who gets to an end pays nothing a step in the long run, whatever the prices
    # Not of another model.
    other = tmp_path / "other.npz"
    cheaper = MODELS[name].scaled(0.5)
    save_model(cheaper, other)
    is_same = isinstance(objective, TotalCost) and name == "endless"
    assert proves(checker, read(other), head, arrays) == is_same


@pytest.mark.parametrize(
    ("objective", "method"),
    [(Discounted(0.9), method) for method in planners.METHODS if method != "auto"]
    + [(TotalCost(), m) for m in ("policy_iteration", "forest_policy_iteration", "value_iteration")]
    + [(AverageCost(), m) for m in ("policy_iteration", "value_iteration")]
    + [(FiniteHorizon(4), "backward_induction")],
    ids=str,
)
def test_every_method_is_certified(checker, tmp_path, objective, method):
    budget = {"num_iterations": 40} if "aggregation" in method else {}
    if method == "fixed_aggregation":
        budget["labels"] = np.arange(30) // 2
    model, head, arrays, _ = certified(
        tmp_path, MODELS["slips"], objective, method=method, **budget
    )
    assert proves(checker, model, head, arrays)


def spoiled(arrays):
    """Yield names of what is done to a certificate, and the arrays after it."""
    for name in arrays:
        array = arrays[name]
        if array.dtype.kind == "f":
            for what, value in ("nan", np.nan), ("inf", np.inf), ("-inf", -np.inf):
                yield f"{name}: {what}", {**arrays, name: np.full_like(array, value)}
            yield f"{name} as text", {**arrays, name: array.astype(str)}
            yield f"{name}, complex", {**arrays, name: array + 1j}
        yield f"{name} is missing", {n: a for n, a in arrays.items() if n != name}
        yield f"{name}, shorter", {**arrays, name: array[..., :-1]}
        yield f"{name}, longer", {**arrays, name: np.repeat(array, 2, axis=-1)}
        yield f"{name}, a number", {**arrays, name: array.reshape(-1)[0]}
    for value in (-1, 10**6):
        yield f"policy {value}", {**arrays, "policy": np.full_like(arrays["policy"], value)}
    if "lower" in arrays:
        lower, upper = arrays["lower"], arrays["upper"]
        yield "lower up", {**arrays, "lower": np.where(lower != 0, upper + 1e-3, 0.0)}
        yield "upper down", {**arrays, "upper": np.where(upper != 0, lower - 1e-3, 0.0)}
        yield "ends", {**arrays, "lower": lower + 1.0, "upper": upper + 1.0}
        yield "exchanged", {**arrays, "lower": upper + 0.1, "upper": lower - 0.1}
    else:
        yield "gain up", {**arrays, "gain_lower": arrays["gain_upper"] + 1e-3}
        yield "gain down", {**arrays, "gain_upper": arrays["gain_lower"] - 1e-3}
    if "steps" in arrays:
        yield "steps down", {**arrays, "steps": -arrays["steps"] - 1.0}
        yield "no steps", {**arrays, "steps": np.zeros_like(arrays["steps"])}
        for value in (-2, -1, 1):
            yield f"layers {value}", {**arrays, "layers": np.full_like(arrays["layers"], value)}


@pytest.mark.parametrize(
    "objective", [Discounted(0.95), TotalCost(), FiniteHorizon(5), AverageCost()], ids=str
)
@pytest.mark.parametrize("name", ["table", "moves", "slips"])
def test_what_is_tampered_with_is_refused(checker, tmp_path, name, objective):
    model, head, arrays, _ = certified(tmp_path, MODELS[name], objective)
    assert [what for what, bad in spoiled(arrays) if proves(checker, model, head, bad)] == []
    heads = [{**head, "objective": kind} for kind in ("total", "average", "discounted", "horizon")]
    heads = [one for one in heads if one["objective"] != head["objective"]]
    heads += [{**head, "gamma": value} for value in (float("nan"), 1.5, -0.1, "0.95", None, 0.1)]
    heads += [{**head, "steps": value} for value in (-1, 0, 4, 6)] * (
        head["objective"] == "horizon"
    )
    heads += [{n: v for n, v in head.items() if n != gone} for gone in ("objective", "gamma")]
    for bad in heads:
        assert not proves(checker, model, bad, arrays), bad


def test_lost_states_may_not_be_mislabelled(checker, tmp_path):
    model, head, arrays, result = certified(tmp_path, MODELS["moves"], TotalCost())
    lost = np.flatnonzero(result.infinite)
    assert set(lost) >= {28, 29}
    for layer in (0, -1, 2):
        layers = arrays["layers"].copy()
        layers[28:] = layer
        # Any number of a layer will do, as long as it is one that nobody leaves.
        assert proves(checker, model, head, {**arrays, "layers": layers}) == (layer == 2)
    found = np.flatnonzero(~result.infinite & (np.arange(30) > 0))[0]
    layers, upper = arrays["layers"].copy(), arrays["upper"].copy()
    layers[found], upper[found] = 1, np.inf
    assert not proves(checker, model, head, {**arrays, "layers": layers, "upper": upper})
    # A finite cost where there is none.
    upper = np.where(np.isinf(arrays["upper"]), 1e3, arrays["upper"])
    assert not proves(checker, model, head, {**arrays, "upper": upper})


def test_a_policy_that_stays_is_refused(checker, tmp_path):
    # One may stay at no cost, or leave at 1: 0 is a bound below, and staying never ends.
    P = np.zeros((2, 2, 2))
    P[0, 0, 0] = P[0, 1, 1] = P[1, :, 1] = 1
    costs = np.array([[0.0, 1.0], [0.0, 0.0]])
    stays = TabularMDP.from_matrices(P, costs=costs, terminal=[False, True])
    model, head, arrays, result = certified(tmp_path, stays, TotalCost())
    assert result.values.tolist() == [1.0, 0.0]
    assert proves(checker, model, head, arrays)
    nothing, policy = np.zeros(2), np.array([0, 0])
    for steps in (0.0, 1.0, 1e15, 1e300):
        bad = {
            **arrays,
            "upper": nothing,
            "lower": nothing,
            "policy": policy,
            "steps": np.array([steps, 0.0]),
        }
        assert not proves(checker, model, head, bad)


def test_dead_ends_cost_what_is_said(checker, tmp_path):
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1, :, 1] = P[2, :, 2] = 1
    costs = np.array([[1.0, 5.0], [1.0, 1.0], [0.0, 0.0]])
    falls = TabularMDP.from_matrices(P, costs=costs, terminal=[False, False, True])
    model, head, arrays, result = certified(tmp_path, falls, TotalCost(2.0))
    assert result.values.tolist() == [3.0, 2.0, 0.0]
    assert proves(checker, model, head, arrays)
    for cost in (1.0, 3.0, "infinite", None):
        assert not proves(checker, model, {**head, "dead_ends": cost}, arrays)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_states_that_were_added_are_ends(checker, tmp_path, objective):
    P = {
        0: {0: [(0.5, 1, -1.0, False), (0.5, 0, -1.0, False)], 1: [(1.0, 0, -3.0, True)]},
        1: {0: [(1.0, 0, -1.0, True)], 1: [(1.0, 0, -0.5, False)]},
    }
    model = TabularMDP.from_gym_P(P)
    assert model.num_added_states == 1
    read_model, head, arrays, _ = certified(tmp_path, model, objective)
    assert arrays["policy"].shape[-1] == 2
    assert proves(checker, read_model, head, arrays)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_nothing_but_ends(checker, tmp_path, objective):
    model = TabularMDP(sp.eye_array(2).tocsr(), np.zeros((2, 1)))
    assert model.terminal.all()
    assert proves(checker, *certified(tmp_path, model, objective)[:3])


def test_terminal_costs(checker, tmp_path):
    model = MODELS["table"]
    left = np.where(model.terminal, 0.0, np.arange(12.0))
    objective = FiniteHorizon(3, 1.0, left)
    read_model, head, arrays, _ = certified(tmp_path, model, objective)
    assert arrays["lower"][-1].tolist() == left.tolist()
    assert proves(checker, read_model, head, arrays)
    arrays["lower"][-1, 3] += 1.0
    assert not proves(checker, read_model, head, arrays)


def test_many_layers_take_no_longer(checker, tmp_path):
    """A line at whose end nobody gets out, with a way to an end that cannot be relied on."""
    n = 20_000
    i = np.arange(2, n)
    data = np.concatenate([[1.0, 1.0], np.full(2 * (n - 2), 0.5)])
    rows, columns = np.concatenate([[0, 1], i, i]), np.concatenate([[0, 1], i - 1, 0 * i])
    matrix = sp.coo_array((data, (rows, columns)), shape=(n, n)).tocsr()
    costs = np.minimum(np.arange(n), 1.0)[:, np.newaxis]
    model = TabularMDP(matrix, costs, terminal=np.arange(n) == 0)
    read_model, head, arrays, result = certified(tmp_path, model, TotalCost())
    assert result.infinite.sum() == n - 1
    assert len(set(arrays["layers"].tolist())) == n
    assert proves(checker, read_model, head, arrays)


@pytest.fixture(scope="module")
def small_models(tmp_path_factory):
    """Models, and what their files hold."""
    P = np.array([[[0.0, 1.0], [0.5, 0.5]], [[1.0, 0.0], [1 / 3, 2 / 3]]])
    costs = np.array([[0.1, 0.2], [-0.1, 0.3]])
    found = [TabularMDP.from_matrices(P, costs=costs, terminal=[])]
    found.append(TabularMDP.from_matrices(P, costs=costs * 10, terminal=[]))
    successors = np.array([[1, 2, 0], [0, 2, 1], [0, 1, 0]])
    prices = np.array([[0.1, 0.2, np.inf], [0.3, np.inf, np.inf], [-0.1, 0.1, 0.2]])
    found += [MoveMDP(successors, prices, p=p) for p in (1.0, 0.9, 0.5, 0.2)]
    path = tmp_path_factory.mktemp("small") / "model.npz"
    files = []
    for model in found:
        save_model(model, path)
        files.append(read(path))
    return list(zip(found, files, strict=True))


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_its_verdict_is_that_of_fractions(checker, small_models, data):
    """Numbers so near that rounding matters: it proves what is true, and all of it."""
    near = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.30000000000000004, -0.1, 1 / 3, 2 / 3, 1.0])
    model, files = data.draw(st.sampled_from(small_models))
    looked = checker.Model(*files)
    n = model.num_states
    V = np.array(data.draw(st.lists(near, min_size=n, max_size=n)))
    gain = np.array(data.draw(st.lists(near, min_size=n, max_size=n)))
    sign = data.draw(st.sampled_from([1, -1]))
    pays = data.draw(st.sampled_from([0, 1]))
    pairs = list(zip(looked.states.tolist(), looked.actions.tolist(), strict=True))
    every = np.ones(len(pairs), dtype=bool)
    exact = [exact_row(model, s, a, V, float(gain[s]), bool(pays)) for s, a in pairs]
    true = all(sign * x >= 0 for x in exact)
    try:
        looked.check("", every, sign, V, gain=gain, pays=pays, ends=sign * np.inf)
    except ArithmeticError:
        assert not true
    else:
        assert true
