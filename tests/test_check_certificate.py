"""The checker of certificates: it proves what every method and objective claims, and no more."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
import planners
from aggmaze import TabularMDP
from planners import AverageCost, Discounted, FiniteHorizon, TotalCost

CHECKER = Path(__file__).parent.parent / "scripts" / "check_certificate.py"
Arrays = dict[str, np.ndarray[Any, Any]]


def checked(model: Any, certificate: Path, folder: Path) -> tuple[int, str]:
    """Return the exit code of the checker, and what it says."""
    path = folder / "model.npz"
    aggmaze.save_model(planners.as_model(model), path)
    out = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
    ):
        patch.setattr(sys, "argv", [str(CHECKER), str(path), str(certificate)])
        try:
            runpy.run_path(str(CHECKER), run_name="__main__")
        except SystemExit as end:
            return 1, str(end.code)
    return 0, out.getvalue()


def circles() -> TabularMDP:
    """A model with an end, circles that cost nothing, states that get lost, and a dead end."""
    P = np.zeros((6, 2, 6))
    P[0, :, 0] = 1
    P[1, 0, [2, 3]] = 0.5
    P[1, 1, 0] = 1
    P[2, :, 1] = P[3, 0, 1] = P[3, 1, 2] = 1
    P[4, 0, [0, 5]] = [0.7, 0.3]
    P[4, 1, [1, 5]] = [0.4, 0.6]
    P[5, :, 5] = 1
    costs = np.array([[0, 0], [0, 2.5], [0, 0], [0, 0], [1, 0.3], [1, 2]])
    return TabularMDP.from_matrices(P, costs=costs, terminal=[True] + 5 * [False])


def random_model(ends: bool) -> TabularMDP:
    rng = np.random.default_rng(7)
    P = rng.dirichlet(np.full(20, 0.2), (20, 3))
    costs = rng.normal(size=(20, 3))
    if ends:
        P[0] = np.eye(20)[0]
        costs[0] = 0.0
    return TabularMDP.from_matrices(
        P, costs=abs(costs) if ends else costs, terminal=np.arange(20) < ends
    )


LAKE = gym.make("FrozenLake-v1")
TERRAIN = gym.make("TerrainMaze-v0", p=0.9)
MAZE = gym.make("StandardMaze-v0")
MODELS = {
    "lake": LAKE,
    "terrain": TERRAIN,
    "maze": MAZE,
    "cliff": gym.make("CliffWalking-v1"),  # its model has an added state
    "circles": circles(),
    "ends": random_model(ends=True),
    "endless": random_model(ends=False),
}


@pytest.mark.parametrize("method", planners.METHODS)
def test_every_method_of_discounted_costs(method: str, tmp_path: Path) -> None:
    options = {"labels": np.arange(400) // 4} if method == "fixed_aggregation" else {}
    result = planners.solve(TERRAIN, gamma=0.95, method=method, **options)
    result.certificate(tmp_path / "proof.npz")
    code, said = checked(TERRAIN, tmp_path / "proof.npz", tmp_path)
    assert (code, said[:7]) == (0, "proved:"), said


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "asked",
    [
        Discounted(0.99),
        TotalCost(),
        TotalCost(dead_ends=3.5),
        FiniteHorizon(12),
        FiniteHorizon(3, 0.9),
        AverageCost(),
    ],
    ids=str,
)
def test_every_objective(asked: Any, name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    if isinstance(asked, TotalCost) and name == "endless":
        with pytest.raises(ValueError, match="no terminal state"):
            planners.solve(model, objective=TotalCost())
        return
    for method in _methods_of(asked, name):
        result = planners.solve(model, objective=asked, method=method)
        result.certificate(tmp_path / "proof.npz")
        code, said = checked(model, tmp_path / "proof.npz", tmp_path)
        assert (code, said[:7]) == (0, "proved:"), (method, said)


def _methods_of(asked: Any, name: str) -> list[str]:
    if isinstance(asked, TotalCost | AverageCost):
        return ["auto", "policy_iteration", "value_iteration"]
    return ["auto"]


@pytest.mark.parametrize("tol", [1e-6, 1e-12])
def test_accuracies(tol: float, tmp_path: Path) -> None:
    for model, gamma in ((LAKE, 0.95), (TERRAIN, 0.9), (MODELS["endless"], 0.99)):
        result = planners.solve(model, gamma=gamma, tol=tol)
        result.certificate(tmp_path / "proof.npz")
        assert checked(model, tmp_path / "proof.npz", tmp_path)[0] == 0


# ---------------------------------------------------------------------------------------------
# What is not true is not proved.


def certificate(model: Any, asked: Any, folder: Path) -> tuple[dict[str, Any], Arrays]:
    planners.solve(model, objective=asked).certificate(folder / "proof.npz")
    with np.load(folder / "proof.npz") as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(str(arrays.pop("header"))), arrays


def refuted(model: Any, head: dict[str, Any], arrays: Arrays, folder: Path) -> str:
    np.savez(folder / "tampered.npz", header=np.array(json.dumps(head)), **arrays)
    code, said = checked(model, folder / "tampered.npz", folder)
    assert code == 1, said
    assert said.startswith("not proved: "), said
    return said


ASKED = {
    "discounted": (TERRAIN, Discounted(0.95)),
    "total": (circles(), TotalCost()),
    "maze": (MAZE, TotalCost()),
    "dead ends": (circles(), TotalCost(dead_ends=3.5)),
    "horizon": (LAKE, FiniteHorizon(6)),
    "average": (MODELS["endless"], AverageCost()),
}
FLOATS = {
    "discounted": ["lower", "upper", "policy_upper"],
    "total": ["lower", "upper", "steps"],
    "maze": ["lower", "upper", "steps"],
    "dead ends": ["lower", "upper", "steps"],
    "horizon": ["lower", "upper"],
    "average": ["gain_lower", "gain_upper", "bias_lower", "bias_upper"],
}


@pytest.mark.parametrize(("kind", "name"), [(k, n) for k, names in FLOATS.items() for n in names])
def test_a_number_that_is_moved(kind: str, name: str, tmp_path: Path) -> None:
    model, asked = ASKED[kind]
    head, arrays = certificate(model, asked, tmp_path)
    original = arrays[name]
    # Against what is claimed: a bound below is raised, one above and steps are lowered; of a bias
    # any number that is far off will do.
    shift = 1.0 if name.endswith("lower") else -1.0
    moved = original.copy()
    place = np.argmax(np.where(np.isfinite(moved), np.abs(moved), -1.0))
    size = max(1.0, float(np.abs(moved.flat[place])))
    moved.flat[place] += 100 * shift * size if name.startswith("bias") else shift * size
    said = refuted(model, head, arrays | {name: moved}, tmp_path)
    assert " in state " in said
    for bad in (np.nan, np.inf, -np.inf):
        moved = original.copy()
        moved.flat[place] = bad
        refuted(model, head, arrays | {name: moved}, tmp_path)
    refuted(model, head, arrays | {name: original[..., :-1]}, tmp_path)


@pytest.mark.parametrize("kind", ASKED)
def test_a_policy_that_is_another(kind: str, tmp_path: Path) -> None:
    model, asked = ASKED[kind]
    head, arrays = certificate(model, asked, tmp_path)
    # Of the circles no other policy ends, and of the maze none is there to be found.
    if kind not in ("total", "dead ends", "maze"):
        worst = planners.solve(
            _dearer(planners.as_model(model)), objective=asked, method="auto"
        ).policy
        refuted(model, head, arrays | {"policy": worst.reshape(arrays["policy"].shape)}, tmp_path)
    for action in (-1, 99):
        other = arrays["policy"].copy()
        other.flat[1] = action
        if planners.as_model(model).terminal[1]:
            continue
        refuted(model, head, arrays | {"policy": other}, tmp_path)


def _dearer(model: Any) -> Any:
    """Return a model whose best policies are bad ones of the given."""
    table = model.to_tabular()
    ends = table.terminal[:, np.newaxis]
    costs = np.where(ends, 0.0, 1.0 + np.abs(table.costs).max() - table.costs)
    return TabularMDP(
        table.transitions,
        costs,
        action_mask=table.action_mask,
        terminal=table.terminal,
        num_added_states=table.num_added_states,
    )


def test_another_discount(tmp_path: Path) -> None:
    head, arrays = certificate(TERRAIN, Discounted(0.95), tmp_path)
    for gamma in (0.99, 0.9, 1.0, 1.5, -0.5, float("nan"), "much"):
        refuted(TERRAIN, head | {"gamma": gamma}, arrays, tmp_path)


def test_another_model(tmp_path: Path) -> None:
    for asked in (Discounted(0.95), TotalCost(), FiniteHorizon(5), AverageCost()):
        head, arrays = certificate(circles(), asked, tmp_path)
        other = circles()
        dearer = TabularMDP(
            other.transitions, 1.1 * other.costs, terminal=other.terminal
        ).validate()
        if not isinstance(asked, AverageCost):
            refuted(dearer, head, arrays, tmp_path)
        refuted(LAKE, head, arrays, tmp_path)


def test_another_objective(tmp_path: Path) -> None:
    head, arrays = certificate(circles(), TotalCost(), tmp_path)
    for kind in ("discounted", "average", "horizon", "none", 3):
        refuted(circles(), head | {"objective": kind}, arrays, tmp_path)
    refuted(circles(), {}, arrays, tmp_path)


def test_states_that_are_called_lost_or_dead(tmp_path: Path) -> None:
    model = circles()
    head, arrays = certificate(model, TotalCost(), tmp_path)
    assert arrays["layers"].tolist()[:4] == [0, 0, 0, 0]
    assert (arrays["layers"][4:] > 0).all()
    for state, layer in ((1, 1), (4, 0), (5, 0), (5, -1), (0, 1), (1, -1), (1, -2)):
        layers = arrays["layers"].copy()
        layers[state] = layer
        changed = {"layers": layers}
        for name in ("lower", "upper"):
            changed[name] = arrays[name].copy()
            changed[name][state] = np.inf if layer > 0 else 1.0
        refuted(model, head, arrays | changed, tmp_path)
    head, arrays = certificate(model, TotalCost(dead_ends=3.5), tmp_path)
    refuted(model, head | {"dead_ends": 3.0}, arrays, tmp_path)
    refuted(model, head | {"dead_ends": "infinite"}, arrays, tmp_path)


def test_dead_ends_that_are_called_something_else(tmp_path: Path) -> None:
    # State 1 ends, or leads to 2, from which 3 follows; neither of these gets to an end.
    P = np.zeros((4, 2, 4))
    P[0, :, 0] = P[1, 0, 0] = P[1, 1, 2] = P[2, :, 3] = P[3, :, 3] = 1
    costs = np.array([[0, 0], [9, 1], [1, 1], [1, 1]])
    model = TabularMDP.from_matrices(P, costs=costs, terminal=[True] + 3 * [False])
    head, arrays = certificate(model, TotalCost(dead_ends=3.5), tmp_path)
    assert arrays["layers"].tolist() == [0, 0, -1, -1]
    assert arrays["lower"].tolist() == [0, 4.5, 3.5, 3.5]
    # Lost for ever at no finite cost, though dead ends have one.
    lost = arrays | {"layers": np.array([0, 0, 1, 1])}
    for name in ("lower", "upper"):
        lost[name] = np.array([0, 9, np.inf, np.inf])
    refuted(model, head, lost | {"policy": np.zeros(4, dtype=np.int64)}, tmp_path)
    # Dead one step later than it is: what leads to it would cost another step.
    late = arrays | {"layers": np.array([0, 0, 0, -1]), "steps": np.array([0.0, 2, 1, 0])}
    for name in ("lower", "upper"):
        late[name] = np.array([0, 5.5, 4.5, 3.5])
    refuted(model, head, late, tmp_path)
    # And where dead ends have no cost there are none.
    refuted(model, head | {"dead_ends": "infinite"}, arrays, tmp_path)


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_a_horizon_that_ends_twice(name: str, tmp_path: Path) -> None:
    head, arrays = certificate(LAKE, FiniteHorizon(3), tmp_path)
    # All but the last row is right from the last but one on, which nothing holds.
    shift = np.where(planners.as_model(LAKE).terminal, 0.0, 100.0 if name == "lower" else -100.0)
    more = np.concatenate([arrays[name] + shift, arrays[name][-1:]])
    refuted(LAKE, head, arrays | {name: more}, tmp_path)


@pytest.mark.parametrize("kind", ASKED)
def test_another_shape_or_type(kind: str, tmp_path: Path) -> None:
    model, asked = ASKED[kind]
    head, arrays = certificate(model, asked, tmp_path)
    for name, array in arrays.items():
        others = [array[np.newaxis], array[..., np.newaxis], np.concatenate([array, array])]
        if array.dtype == np.float64:
            others += [array.astype(np.float32), array.astype(complex), array.astype(np.longdouble)]
            others += [np.where(np.isfinite(array), array, 0.0).astype(np.int64)]
        else:
            others += [array.astype(np.float64)]
        for other in others:
            refuted(model, head, arrays | {name: other}, tmp_path)


def test_a_policy_that_never_ends(tmp_path: Path) -> None:
    model = circles()
    head, arrays = certificate(model, TotalCost(), tmp_path)
    policy = arrays["policy"].copy()
    policy[1] = 0  # round and round at no cost, which the values do not deny
    upper = arrays["upper"].copy()
    said = refuted(model, head, arrays | {"policy": policy, "upper": upper}, tmp_path)
    assert "steps" in said


def test_what_is_no_file(tmp_path: Path) -> None:
    aggmaze.save_model(circles(), tmp_path / "m.npz")
    for path in (tmp_path / "none.npz", tmp_path, tmp_path / "m.npz"):
        code, said = checked(circles(), path, tmp_path)
        assert code == 1
        assert said.startswith("not proved: ")


# ---------------------------------------------------------------------------------------------
# What it is.


def test_it_runs_by_itself(tmp_path: Path) -> None:
    aggmaze.save_model(circles(), tmp_path / "m.npz")
    planners.solve(circles(), objective=TotalCost()).certificate(tmp_path / "proof.npz")
    for second, code in (("proof.npz", 0), ("m.npz", 1)):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-I", CHECKER, tmp_path / "m.npz", tmp_path / second],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert (done.stdout + done.stderr).startswith("not proved: " if code else "proved: ")


def test_it_is_short_and_imports_nothing_of_ours() -> None:
    text = CHECKER.read_text()
    assert text.count("\n") < 150
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }
    assert imported <= {"json", "sys", "fractions", "numpy"}


def test_nothing_to_certify(tmp_path: Path) -> None:
    short = planners.solve(LAKE, gamma=0.95)
    from dataclasses import replace

    with pytest.raises(ValueError, match="the bound of the result is infinite"):
        replace(short, bound=np.inf).certificate(tmp_path / "proof.npz")
    with pytest.raises(ValueError, match="the run left no allowance"):
        replace(short, proof=None).certificate(tmp_path / "proof.npz")
    with pytest.raises(ValueError, match="keep='all'"):
        planners.solve(LAKE, objective=FiniteHorizon(5), keep="first").certificate(
            tmp_path / "proof.npz"
        )
    model = planners.as_model(LAKE)
    staged = FiniteHorizon(5, stages=lambda t: model)
    with pytest.raises(ValueError, match="a model for each stage"):
        planners.solve(LAKE, objective=staged).certificate(tmp_path / "proof.npz")
    assert not (tmp_path / "proof.npz").exists()
