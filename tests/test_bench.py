"""What the benchmark's scripts work out, on small models and without timing anything."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import planners
from aggmaze import MoveMDP, TabularMDP

BENCH = Path(__file__).resolve().parent.parent / "scripts" / "bench"


def load(name: str) -> ModuleType:
    # The scripts import each other by their plain names, as scripts in one folder do.
    sys.path.insert(0, str(BENCH))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCH))


FAMILIES, MODELS, OUTPUT = load("families"), load("_models"), load("_output")
REFERENCE, WORKERS = load("_reference"), load("_workers")
CONTEST, PEERS, REPORT = load("_contest"), load("peers"), load("report")
SCALING, LIMIT = load("scaling"), load("limit")

SMALL = ("maze-20", "slip-terrain-20", "garnet-1e3-5")


def masked_model() -> TabularMDP:
    """Return a model with unavailable actions, a terminal state and one that only costs."""
    transitions = np.zeros((4, 2, 4))
    transitions[0, 0, 1] = transitions[1, 1, 2] = transitions[2, :, 2] = transitions[3, :, 3] = 1.0
    transitions[0, 1, [0, 3]] = 0.5
    mask = np.array([[True, True], [False, True], [True, True], [True, False]])
    costs = np.array([[1.0, -2.0], [0.0, 3.0], [0.0, 0.0], [4.0, 0.0]])
    return TabularMDP(transitions.reshape(8, 4), costs, action_mask=mask)


@pytest.mark.parametrize("gamma", [0.5, 0.99])
@pytest.mark.parametrize("name", SMALL)
def test_the_reference_is_where_the_certificate_says(name: str, gamma: float) -> None:
    model = FAMILIES.family(name)(0)
    found = REFERENCE.reference(MODELS.tables_of(model), gamma)
    assert found.is_accurate
    result = planners.solve(model, gamma=gamma, method="value_iteration", tol=1e-8)
    assert np.abs(found.values - result.values).max() <= result.bound + found.error


def test_the_reference_knows_unavailable_actions() -> None:
    found = REFERENCE.reference(MODELS.tables_of(masked_model()), 0.5)
    # V(3) = 4 / (1 - .5), V(1) = 3, V(0) = min(1 + .5 * 3, -2 + .25 V(0) + .25 * 8).
    np.testing.assert_allclose(found.values, [0.0, 3.0, 0.0, 8.0], rtol=0, atol=1e-12)


def test_a_stored_reference_of_another_model_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "values.npz"
    one, other = (MODELS.tables_of(FAMILIES.family("maze-20")(seed)) for seed in (0, 1))
    first = REFERENCE.cached_reference(one, 0.9, path)
    again = REFERENCE.cached_reference(one, 0.9, path)
    np.testing.assert_allclose(again.values, first.values, rtol=0, atol=1e-9)
    changed = REFERENCE.cached_reference(other, 0.9, path)
    np.testing.assert_array_equal(changed.values, REFERENCE.reference(other, 0.9).values)


@pytest.mark.parametrize("name", SMALL)
def test_peers_get_the_same_model(name: str, tmp_path: Path) -> None:
    """The tables that peers read, read back, have the same optimal values and no zero entries."""
    model = FAMILIES.family(name)(0)
    general, own = MODELS.write_model(tmp_path, model, MODELS.tables_of(model))
    assert (own != general) == isinstance(model, MoveMDP)
    tables = load("adapters.tables").read_model(general)
    assert tables.transitions.data.min() > 0
    assert tables.transitions.has_canonical_format
    np.testing.assert_allclose(tables.transitions.sum(axis=1), 1.0)
    again = TabularMDP(tables.transitions, tables.costs, action_mask=tables.available).validate()
    values = [planners.solve(m, gamma=0.9, atol=1e-9).values for m in (model, again)]
    np.testing.assert_allclose(*values, rtol=0, atol=1e-8)
    columns, probabilities = tables.nested()
    assert sum(len(row) for state in columns for row in state) == tables.transitions.nnz
    assert all(sum(row) == pytest.approx(1) for state in probabilities for row in state)
    for a, matrix in enumerate(tables.matrices()):
        assert (matrix != tables.transitions[a :: tables.num_actions]).nnz == 0
    states, actions, costs, rows = tables.pairs()
    assert len(states) == rows.shape[0] == int(tables.available.sum())
    np.testing.assert_array_equal(costs, tables.costs[states, actions])


def test_an_unknown_family_is_refused_with_the_closest() -> None:
    with pytest.raises(ValueError, match=r"no family 'maze-101'.*maze-10"):
        FAMILIES.family("maze-101")
    with pytest.raises(SystemExit):
        PEERS.parse(["--families", "maze-101"])
    assert PEERS.parse(["--families", "maze-20"]).gammas == [0.99]
    full = PEERS.parse(["--full"])
    assert (full.gammas, full.seeds) == ([0.95, 0.99, 0.999], 3)
    assert set(full.families) <= set(FAMILIES.FAMILIES)


def test_results_name_no_folder_of_the_machine() -> None:
    words = ["--envs", "/x/y", "--full", "--out=/z", "--python", "/bin/p", "--gammas", ".9"]
    assert PEERS.command(words) == "python scripts/bench/peers.py --full --gammas .9"


def worker(tmp_path: Path, adapter: str, **options: Any) -> Any:
    model = FAMILIES.family("slip-terrain-20")(0)
    general, own = MODELS.write_model(tmp_path, model, MODELS.tables_of(model))
    path = own if adapter == "aggmaze_adapter" else general
    return WORKERS.Worker(sys.executable, adapter, path, 0.9, **{"timeout": 60.0, **options})


@pytest.mark.parametrize("adapter", ["scipy_adapter", "aggmaze_adapter"])
def test_a_worker_solves_again_and_again(adapter: str, tmp_path: Path) -> None:
    expected = planners.solve(FAMILIES.family("slip-terrain-20")(0), gamma=0.9, atol=1e-10).values
    variant = {"method": "value_iteration", "num_threads": 1}
    with worker(tmp_path, adapter) as one:
        for tol in (1e-3, 1e-8):
            epsilon = tol * np.abs(expected).max()
            values, answer = one.solve(variant, epsilon, tol)
            assert np.abs(values - expected).max() <= epsilon
            assert answer["seconds"] > 0
            assert answer["peak_mb"] > 0
    assert not one.is_alive


def test_a_worker_says_what_went_wrong(tmp_path: Path) -> None:
    with (
        worker(tmp_path, "aggmaze_adapter") as one,
        pytest.raises(WORKERS.FailedError, match="ValueError: method must be one of"),
    ):
        one.solve({"method": "no such"}, 1.0, 0.1)
    with pytest.raises(WORKERS.FailedError, match=r"building: ended with 1: ModuleNotFoundError"):
        worker(tmp_path, "no_such_adapter")
    with worker(tmp_path, "scipy_adapter") as one:
        # An accuracy that no number of sweeps reaches.
        with pytest.raises(WORKERS.TooSlowError, match=r"over 0\.2 s"):
            one.solve({}, -1.0, 0.1, 0.2)
        assert not one.is_alive


def test_a_peer_that_was_too_slow_is_not_tried_at_what_is_harder() -> None:
    history = CONTEST.History()
    history.failures["peer", "maze", 0.9, 1e-2] = WORKERS.TooSlowError("over 5 s")
    assert history.failure("peer", "maze", 0.9, 1e-6) == "over 5 s"
    assert history.failure("peer", "maze", 0.9, 1e-1) is None
    assert history.failure("peer", "maze", 0.99, 1e-6) is None
    history.failures["other", "maze", 0.9, 1e-2] = WORKERS.FailedError("not accurate")
    assert history.failure("other", "maze", 0.9, 1e-6) is None
    history.failures["other", "maze", 0.9, 1e-3] = WORKERS.TooSlowError("building: over 5 s")
    assert history.failure("other", "maze", 0.5, 1e-1) == "building: over 5 s"


def results(tmp_path: Path) -> Any:
    """Return made-up results: one peer loses, one wins, one is too slow and one wrong."""
    shared = ("maze-20", 0, 0.99, 1e-6)
    model = {"states": 400, "actions": 4, "entries": 1600, "max_value": 1, "reference_error": 0}
    ours = {"threads": 1, "status": "ok", **model, "seconds": 0.1, "error": 1e-7, "bound": 2e-7}
    ours |= {"peak_mb": 120.0, "before_mb": 100.0}
    peer = {**ours, "own_seconds": 0.1, "asked_error": 1e-5, "asked_seconds": 0.2}
    runs = [
        CONTEST.Run(*shared, "aggmaze", "auto", **ours),
        CONTEST.Run(*shared, "aggmaze", "auto", **{**ours, "threads": 2, "wall_seconds": 0.05}),
        CONTEST.Run(*shared, "quantecon", "VI", **{**peer, "seconds": 0.4, "asked_error": 1e-7}),
        CONTEST.Run(*shared, "mdpsolver", "modified PI", **{**peer, "seconds": 0.03}),
        CONTEST.Run(*shared, "scipy", "VI", **{**peer, "status": "over 60 s"}),
        CONTEST.Run(*shared, "mdplib", "PI", **{**peer, "status": "not accurate"}),
    ]
    for some in (runs[:3], runs[3:]):
        OUTPUT.append_rows(tmp_path / "runs.csv", [asdict(run) for run in some])
    setup = {
        "commands": ["python peers.py"],
        "date": "today",
        "machine": load("_machine").machine(),
        "options": {"seeds": 1, "repeats": 3, "timeout": 60.0},
        "versions": {"quantecon": {"quantecon": "1.2.3", "python": "3.12.0", "numpy": "2.0"}},
    }
    (tmp_path / "setup.json").write_text(json.dumps(setup))
    return REPORT.Results(OUTPUT.read_rows(tmp_path / "runs.csv"), setup)


def test_the_report_says_who_wins(tmp_path: Path) -> None:
    found = results(tmp_path)
    cell = ("maze-20", 0.99, 1e-6)
    assert found.cells == [cell]
    assert found.of(cell, "quantecon").asked_ratio == pytest.approx(2.0)
    assert np.isnan(found.of(cell, "mdpsolver").asked_ratio)
    peer, best = found.best_peer(cell)
    assert (peer, best.ratio) == ("mdpsolver", pytest.approx(0.3))
    text = REPORT.page(found, tmp_path)
    assert "maze-20, gamma 0.99, accuracy 1e-06: mdpsolver (modified PI) takes 0.3 of our" in text
    assert "QuantEcon 1.2.3 (Python 3.12.0, numpy 2.0)" in text
    row = next(line for line in text.splitlines() if line.startswith("| maze-20 | 400 | 0.99"))
    cells = [part.strip() for part in row.strip("|").split("|")]
    assert cells == [
        *("maze-20", "400", "0.99", "1e-06", "0.1", "", "0.05"),
        *("mdpsolver, modified PI", "0.03", "**0.3**", "not reached"),
    ]
    every = next(line for line in text.splitlines() if line.startswith("| maze-20 | 0.99 | 1e-06"))
    assert every == "| maze-20 | 0.99 | 1e-06 | 0.1 | 0.4 | **0.03** | > 60 s | wrong |"
    for table in text.split("\n\n"):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    REPORT.figure(results(tmp_path), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_slopes_are_those_of_powers() -> None:
    assert SCALING.slope([1e3, 1e4, 1e5], [2.0, 20.0, 200.0]) == pytest.approx(1.0)
    assert SCALING.slope([1.0, 4.0], [3.0, 6.0]) == pytest.approx(0.5)
    assert np.isnan(SCALING.slope([1.0], [1.0]))


def test_the_stream_reads_the_tables_whole() -> None:
    model = FAMILIES.family("slip-terrain-20")(0)
    words = LIMIT.tables_as_words(LIMIT.local_engine(model, 0.9, 1))
    nbytes = model.successors.nbytes + model.move_costs.nbytes
    assert sum(table.nbytes for table in words) == nbytes
    V, out = np.arange(400.0), np.zeros(400)
    seen = LIMIT._stream(words, V, out, 0, 150, 64) + LIMIT._stream(words, V, out, 150, 400, 64)
    # Sums of words wrap around, here and there alike.
    assert (
        seen == sum(int(table.sum()) for table in words)
        or (seen - sum(int(table.sum()) for table in words)) % 2**64 == 0
    )
    np.testing.assert_array_equal(out, V + 1)
