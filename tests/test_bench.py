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


def load(name: str, folder: Path = BENCH) -> ModuleType:
    # The scripts import each other by their plain names, as scripts in one folder do.
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


FAMILIES, MODELS, OUTPUT = load("families"), load("_models"), load("_output")
REFERENCE, WORKERS = load("_reference"), load("_workers")
CONTEST, PEERS, REPORT = load("_contest"), load("peers"), load("report")
SCALING, LIMIT, METHODS = load("scaling"), load("limit"), load("methods")
RESULTS = load("_results")
OBJECTIVES = load("objectives")

SMALL = ("maze-20", "slip-terrain-20", "garnet-1e3-5")


def masked_model() -> TabularMDP:
    """Return a model with unavailable actions, a terminal state and one that only costs."""
    transitions = np.zeros((4, 2, 4))
    transitions[0, 0, 1] = transitions[1, 1, 2] = transitions[2, :, 2] = transitions[3, :, 3] = 1.0
    transitions[0, 1, [0, 3]] = 0.5
    mask = np.array([[True, True], [False, True], [True, True], [True, False]])
    costs = np.array([[1.0, -2.0], [0.0, 3.0], [0.0, 0.0], [4.0, 0.0]])
    return TabularMDP(transitions.reshape(8, 4), costs, action_mask=mask)


def optimal(model: Any, gamma: float) -> Any:
    return REFERENCE.reference(MODELS.tables_of(model), gamma).values


def test_gamblers_play_boldly() -> None:
    model = FAMILIES.gambler(100, 0)
    assert model.terminal.nonzero()[0].tolist() == [0, 100]
    V, gamma = optimal(model, 0.999), 0.999
    heads = -V[50]  # one stake of all
    assert 0.4 <= heads <= 0.45
    assert V[25] == pytest.approx(-gamma * heads**2)
    assert V[75] == pytest.approx(-heads + (1 - heads) * gamma * V[50])
    assert (V[[0, 100]] == 0).all()


def test_cars_are_rented_as_in_the_book() -> None:
    model = FAMILIES.car_rental()
    assert (model.num_states, model.num_actions) == (441, 11)
    assert model.action_mask[0].nonzero()[0].tolist() == [5]  # nothing to move
    V = -optimal(model, 0.9).reshape(21, 21)
    # Figure 4.2 of the book: the least is 420.
    assert 415 < V.min() == V[0, 0] < 425
    assert V.max() == V[20, 20]
    # With all cars at the first place five are moved, as the figure has it.
    tables = MODELS.tables_of(model)
    Q = tables.costs + 0.9 * (tables.transitions @ -V.reshape(-1)).reshape(tables.costs.shape)
    Q[~tables.available] = np.inf
    assert Q[20 * 21].argmin() - 5 == 5
    assert Q[0].argmin() - 5 == 0
    # A day in many worlds: 18 and 4 cars, of which two were moved from the first place.
    rng, days = np.random.default_rng(0), 200_000
    evening, rented = np.zeros(days, dtype=int), np.zeros(days)
    for cars, requests, returns in ((16, 3, 3), (6, 4, 2)):
        hired = np.minimum(rng.poisson(requests, days), cars)
        evening = 21 * evening + np.minimum(cars - hired + rng.poisson(returns, days), 20)
        rented += hired
    row = 11 * (18 * 21 + 4) + 5 + 2
    assert tables.costs.reshape(-1)[row] == pytest.approx(4 - 10 * rented.mean(), rel=2e-3)
    counts = np.bincount(evening, minlength=441) / days
    assert np.abs(tables.transitions[[row]].toarray() - counts).max() < 2e-3


def test_a_walk_ends_in_ruin_or_not() -> None:
    model = FAMILIES.absorbing_walk(50, 3)
    assert model.terminal.nonzero()[0].tolist() == [0, 49]
    tables = MODELS.tables_of(model)
    states = np.arange(50)
    for a, right in enumerate((0.3, 0.45, 0.5, 0.6)):
        matrix = tables.matrices()[a].toarray()
        np.testing.assert_allclose(matrix[states[1:-1], states[2:]], right)
        np.testing.assert_allclose(matrix[states[1:-1], states[:-2]], 1 - right)
        # The chance to end on the right of a walk that always does the same (Feller, XIV.2).
        chance = np.linalg.solve(np.eye(48) - matrix[1:-1, 1:-1], matrix[1:-1, -1])
        odds = (1 - right) / right
        inside = states[1:-1]
        expected = inside / 49 if odds == 1 else (1 - odds**inside) / (1 - odds**49)
        np.testing.assert_allclose(chance, expected, rtol=1e-9)


def test_layers_are_solved_by_one_pass_backwards() -> None:
    model = FAMILIES.layered(6, 20, 0)
    assert model.terminal.nonzero()[0].tolist() == [120]
    tables, V = MODELS.tables_of(model), np.zeros(121)
    for layer in reversed(range(6)):
        Q = tables.costs + 0.9 * (tables.transitions @ V).reshape(tables.costs.shape)
        V[20 * layer : 20 * (layer + 1)] = Q.min(axis=1)[20 * layer : 20 * (layer + 1)]
    np.testing.assert_allclose(optimal(model, 0.9), V, rtol=0, atol=1e-12)


@pytest.mark.parametrize("p", [1.0, 0.9])
def test_walks_without_a_goal_go_on_for_ever(p: float) -> None:
    for model, moves in (
        (FAMILIES.grid_without_goal(9, 0, p=p), 4),
        (FAMILIES.ring(30, 0, p=p), 2),
    ):
        available = np.isfinite(model.move_costs)
        assert (model.p, model.move_costs.shape[1]) == (p, moves)
        assert available.sum(axis=1).min() >= 2
        assert not model.to_tabular().terminal.any()
        here = np.arange(model.num_states)[:, np.newaxis]
        there = model.successors
        # All edges lead both ways, and none to where it begins.
        edges = set(zip(*(x[available] for x in np.broadcast_arrays(here, there)), strict=True))
        assert edges == {(b, a) for a, b in edges}
        assert all(a != b for a, b in edges)


def test_small_worlds_are_lattices_with_some_edges_moved() -> None:
    lattice = MODELS.tables_of(FAMILIES.small_world(200, 0, rewired=0.0))
    matrix = lattice.matrices()[0].toarray()
    np.testing.assert_allclose(matrix[7, [5, 6, 8, 9]], [0.8, *[0.2 / 3] * 3])
    world = MODELS.tables_of(FAMILIES.small_world(200, 0))
    far = np.abs(
        world.transitions.indices
        - np.repeat(np.arange(200), 4).repeat(np.diff(world.transitions.indptr))
    )
    far = np.minimum(far, 200 - far) > 2
    assert 0.05 < far.mean() < 0.15


def test_the_hub_of_a_star_leads_everywhere() -> None:
    model = FAMILIES.star(50, 0)
    first, second = (matrix.toarray() for matrix in MODELS.tables_of(model).matrices())
    np.testing.assert_allclose([first[0], second[0]], 1 / 50)
    assert (first[1:, 0] == 1).all()
    np.testing.assert_array_equal(second[1:, 1:], np.eye(49))


def test_machines_are_replaced_from_an_age_on() -> None:
    tables = MODELS.tables_of(FAMILIES.replacement_by_age(300, 0))
    V = REFERENCE.reference(tables, 0.99).values
    Q = tables.costs + 0.99 * (tables.transitions @ V).reshape(tables.costs.shape)
    replaced = Q.argmin(axis=1) == 1
    assert not replaced[0]
    assert replaced[-1]
    assert (np.diff(replaced.astype(int)) >= 0).all()


def test_longer_queues_are_served_faster() -> None:
    tables = MODELS.tables_of(FAMILIES.birth_death(200, 0))
    V = REFERENCE.reference(tables, 0.999).values
    assert (np.diff(V) > 0).all()
    Q = tables.costs + 0.999 * (tables.transitions @ V).reshape(tables.costs.shape)
    # Where the queue is far from full: there an arrival is lost, and costs nothing.
    service = Q.argmin(axis=1)[:150]
    assert (np.diff(service) >= 0).all()
    assert set(service) == {0, 1, 2}


def test_what_is_held_out_is_not_tuned_on() -> None:
    assert not FAMILIES.HELD_OUT.keys() & (FAMILIES.FAMILIES.keys() | set(PEERS.GENERAL))
    for name, make in FAMILIES.HELD_OUT.items():
        assert FAMILIES.family(name) is make


def test_a_car_between_points_is_shared_by_those_around_it() -> None:
    model = FAMILIES.mountain_car(30, 0)
    assert model.terminal.nonzero()[0].tolist() == list(range(29 * 30, 900))
    position, velocity = np.divmod(np.arange(900), 30)
    position, velocity = -1.2 + position / 29 * 1.7, -0.07 + velocity / 29 * 0.14
    full_ahead = MODELS.tables_of(model).matrices()[2].toarray()
    force = 0.001 * (1 + 0.1 * np.random.default_rng(0).random())
    expected = (velocity + force - 0.0025 * np.cos(3 * position)).clip(-0.07, 0.07)
    ahead = position + expected
    inside = (ahead > -1.2) & (ahead < 0.5) & ~model.terminal
    assert inside.mean() > 0.8
    np.testing.assert_allclose((full_ahead @ velocity)[inside], expected[inside], atol=1e-12)
    np.testing.assert_allclose((full_ahead @ position)[inside], ahead[inside], atol=1e-12)


def test_customers_come_and_are_served_where_the_server_is() -> None:
    tables = MODELS.tables_of(FAMILIES.polling(12, 0))
    serve, go_over = (matrix.toarray() for matrix in tables.matrices())
    customers, place = np.divmod(np.arange(288), 2)
    queues = np.stack(np.divmod(customers, 12), axis=1)
    busy = ((queues > 0) & (queues < 11)).all(axis=1)
    arrivals = np.array([0.25, 0.2]) + 0.05 * np.random.default_rng(0).random(2)
    total = arrivals.sum() + 1.0
    at = np.stack([place == 0, place == 1], axis=1)
    np.testing.assert_allclose(
        (serve @ queues - queues)[busy], (arrivals - at)[busy] / total, atol=1e-12
    )
    np.testing.assert_allclose((go_over @ queues - queues)[busy], [arrivals / total] * busy.sum())
    np.testing.assert_allclose(np.abs(go_over @ place - place), 0.5 / total)
    np.testing.assert_allclose(serve @ place, place, atol=1e-12)


def test_a_tree_is_left_for_its_root_or_from_its_leaves() -> None:
    matrix = MODELS.tables_of(FAMILIES.tree_with_returns(4, 0)).matrices()[1].toarray()
    assert len(matrix) == 1 + 3 + 9 + 27
    np.testing.assert_allclose(matrix[0, :4], [0.02, 0.14, 0.7, 0.14])
    np.testing.assert_allclose(matrix[2, [0, 7, 8, 9]], [0.02, 0.14, 0.7, 0.14])
    np.testing.assert_allclose(matrix[-1, :4], [0.02, 0.14, 0.7, 0.14])


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
    assert (full.gammas, full.seeds) == ([0.95, 0.99, 0.999, 0.9999], 5)
    assert set(full.families) <= set(FAMILIES.FAMILIES)
    general = PEERS.parse(["--general", "--gammas", ".9"])
    assert (general.families, general.gammas) == ([*PEERS.GENERAL], [0.9])
    assert general.tols == [1e-2, 1e-6]


def test_results_name_no_folder_of_the_machine() -> None:
    words = ["--envs", "/x/y", "--full", "--out=/z", "--python", "/bin/p", "--gammas", ".9"]
    assert PEERS.command(words) == "python scripts/bench/peers.py --full --gammas .9"


def worker(tmp_path: Path, adapter: str, **options: Any) -> Any:
    model = FAMILIES.family("slip-terrain-20")(0)
    general, own = MODELS.write_model(tmp_path, model, MODELS.tables_of(model))
    path = own if adapter == "aggmaze_adapter" else general
    return WORKERS.Worker(sys.executable, adapter, path, 0.9, **{"timeout": 60.0, **options})


@pytest.mark.parametrize(
    ("adapter", "variant"),
    [
        ("scipy_adapter", {}),
        ("scipy_lu_adapter", {"permc_spec": "COLAMD"}),
        ("scipy_lu_adapter", {"permc_spec": "MMD_AT_PLUS_A"}),
        ("aggmaze_adapter", {"method": "value_iteration", "num_threads": 1}),
    ],
)
def test_a_worker_solves_again_and_again(
    adapter: str, variant: dict[str, Any], tmp_path: Path
) -> None:
    expected = planners.solve(FAMILIES.family("slip-terrain-20")(0), gamma=0.9, atol=1e-10).values
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


def test_what_earlier_runs_say_of_a_peer_is_learned_from_their_lines() -> None:
    history = CONTEST.History()
    row = {"solver": "peer", "family": "maze", "gamma": "0.9", "tol": "0.01"}
    history.add(
        [
            {**row, "status": "ok", "variant": "VI"},
            {**row, "status": "ok", "variant": "of another seed"},
            {**row, "tol": "1e-06", "status": "over 5 s", "variant": ""},
            {**row, "gamma": "0.99", "status": "not accurate", "variant": ""},
        ]
    )
    assert history.variants == {("peer", "maze", 0.9, 0.01): ["VI"]}
    assert history.failure("peer", "maze", 0.9, 1e-8) == "over 5 s"
    assert history.failure("peer", "maze", 0.9, 1e-2) is None
    assert history.failure("peer", "maze", 0.99, 1e-2) == "not accurate"
    assert history.failure("peer", "maze", 0.99, 1e-3) is None


def test_limits_count_seconds_of_processor(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(
        "import json, sys, time\n"
        "for line in sys.stdin:\n"
        "    time.sleep(0.5)\n"
        "    print(json.dumps({'build_seconds': 0.5, 'before_mb': 1.0}), flush=True)\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WORKERS, "ADAPTERS", tmp_path)
        # Building may take twice as long as a solve.
        with WORKERS.Worker(sys.executable, "", tmp_path, 0.9, timeout=0.15) as one:
            assert one.is_alive
        patch.setattr(WORKERS, "MOST_WAITING", 0.5)
        with pytest.raises(WORKERS.TooSlowError, match=r"building: over 0\.3 s"):
            WORKERS.Worker(sys.executable, "", tmp_path, 0.9, timeout=0.15)


def test_policy_iteration_of_twenty_lines_is_where_its_bound_says() -> None:
    rival = load("policy_iteration", BENCH / "adapters")
    for name in ("garnet-100-5", "frozen-lake-10", "birth-death-100"):
        tables = MODELS.tables_of(FAMILIES.family(name)(0))
        guesses = []

        def solve_linear(M: Any, b: Any, guess: Any, error: float, seen: Any = guesses) -> Any:
            seen.append((guess, error))
            return np.linalg.solve(M.toarray(), b)

        found = rival.policy_iteration(tables, 0.99, 1e-9, solve_linear)
        true = REFERENCE.reference(tables, 0.99)
        assert found.bound <= 1e-9
        assert np.abs(found.values() - true.values).max() <= found.bound + true.error
        assert found.iterations == len(guesses) > 0
        # The first guess is as near to the optimum as it is said to be.
        guess, error = guesses[0]
        assert np.abs(guess - true.values).max() <= error * np.abs(guess).max() + true.error


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
    assert "faster than `auto` on 1, level within 5 % on 0, and takes at least 3 times" in text
    lost = "| maze-20 | 0.99 | 1e-06 | 0.1 | mdpsolver, modified PI | 0.03 | **0.3** |"
    assert lost in text.partition("## The run")[0]
    assert "QuantEcon 1.2.3 (Python 3.12.0, numpy 2.0)" in text
    row = next(line for line in text.splitlines() if line.startswith("| maze-20 | 400 | 0.99"))
    cells = [part.strip() for part in row.strip("|").split("|")]
    assert cells == [
        *("maze-20", "400", "0.99", "1e-06", "0.1", "", "0.05"),
        *("mdpsolver, modified PI", "0.03", "**0.3**", "not reached"),
    ]
    lines = text.partition("## Every peer")[2].splitlines()
    every = next(line for line in lines if line.startswith("| maze-20 | 0.99 | 1e-06"))
    assert every == "| maze-20 | 0.99 | 1e-06 | 0.1 | 0.4 | **0.03** | > 60 s | wrong |"
    for table in text.split("\n\n"):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    REPORT.figure(results(tmp_path), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def own_run(cell: tuple[str, float, float], method: str, seconds: float, **more: Any) -> Any:
    family, gamma, tol = cell
    return asdict(
        CONTEST.Run(
            *(family, 0, gamma, tol, "aggmaze", method),
            **{"status": "ok", "seconds": seconds, "peak_mb": 2, "before_mb": 1, **more},
        )
    )


def as_results(rows: list[dict[str, Any]]) -> Any:
    return RESULTS.Results([{k: str(v) for k, v in row.items()} for row in rows], {})


def test_standings_are_sorted_from_the_worst() -> None:
    cells = {name: (name, 0.99, 1e-6) for name in ("won", "lost", "limit", "wrong", "only", "none")}
    rows = [own_run(cells[name], "auto", 1.0) for name in ("won", "lost", "only")]
    rows += [own_run(cells["limit"], "auto", np.nan, status="over 5 s")]
    rows += [own_run(cells["wrong"], "auto", np.nan, status="not accurate")]
    rows += [own_run(cells["none"], "auto", np.nan, status="over 5 s")]
    for name, seconds in (("won", 4.0), ("lost", 0.5), ("limit", 0.1), ("wrong", 2.0)):
        # Ratios are those of pairs, where there are any.
        own_seconds = np.nan if name == "limit" else 1.0
        rows += [own_run(cells[name], "PI", seconds, own_seconds=own_seconds) | {"solver": "peer"}]
    found = as_results(rows).standings()
    assert [s.cell[0] for s in found[:-1]] == ["wrong", "limit", "lost", "won", "only"]
    assert [s.ratio for s in found[:-1]] == [0.0, 0.1 / 5, 0.5, 4.0, np.inf]
    assert np.isnan(found[-1].ratio)
    assert [s.is_lost for s in found] == [True, True, True, False, False, False]


def test_the_matrix_says_where_auto_is_behind(capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for gamma, auto, pi in ((0.9, 1.0, 1.0), (0.99, 1.2, 1.0), (0.999, 4.0, 2.0)):
        cell = ("garnet", gamma, 1e-6)
        rows += [own_run(cell, "auto", auto), own_run(cell, "policy_iteration", pi)]
        rows += [own_run(cell, "gauss_seidel", 0.1, status="over 0.1 s")]
    rows += [own_run(("ring", 0.9, 1e-6), "auto", np.nan, status="over 9 s")]
    rows += [own_run(("ring", 0.9, 1e-6), "policy_iteration", 0.3)]
    found = as_results(rows)
    assert [found.behind(cell) for cell in found.cells] == [1.0, 1.2, 2.0, np.inf]
    slopes = RESULTS.horizon_slopes(found)["garnet", 1e-6]
    assert slopes == pytest.approx([np.log10(4) / 2, np.log10(2) / 2])
    assert METHODS.summarise(found, 1.25) == 1
    text = capsys.readouterr().out
    assert "auto beyond 1.25 times the best: 2 of 4 cells" in text
    page = REPORT._own_methods(found)
    assert "on 2 of 4 cells" in page
    assert "| garnet | 0.999 | 1e-06 | 4 | **2** | > 0.1 s | **2.00** |" in page
    assert "| ring | 0.9 | 1e-06 | > 9 s | **0.3** |  | **fails** |" in page


def test_methods_take_turns_on_a_cell() -> None:
    options = METHODS.parse(["--methods", "policy_iteration", "basin_aggregation"])
    model = FAMILIES.family("garnet-100-5")(0)
    shared = {"family": "garnet-100-5", "seed": 0, "gamma": 0.9, "states": 100}
    # Compiling kernels takes seconds of processor, which the limit of a solve counts.
    METHODS.solve(model, shared, "policy_iteration", 1e-4)
    auto, exact, for_grids = METHODS.measure(model, shared, 1e-4, options)
    for run in (auto, exact):
        assert (run.status, run.gamma, run.tol) == ("ok", 0.9, 1e-4)
        assert run.seconds > 0
        assert 0 < run.bound <= 1e-4
        assert 1 <= run.repeats <= METHODS.MOST_REPEATS
    assert auto.note.startswith("modified_policy_iteration")
    assert for_grids.status == "-"
    words = METHODS.line([auto, exact, for_grids])
    assert words[:3] == ["garnet-100-5", "0.9", "0.0001"]
    assert float(words[-2]) == pytest.approx(auto.seconds / exact.seconds, abs=0.01)
    # What does not end in time says so.
    short = METHODS.parse(["--methods", "value_iteration", "--timeout", "1e-9"])
    runs = METHODS.measure(model, {**shared, "gamma": 0.9999}, 1e-6, short)
    assert [run.status for run in runs] == ["over 1e-09 s"] * 2


def test_factors_are_sparse_where_states_lie_in_a_row_or_a_plane() -> None:
    for name, expected in (
        ("frozen-lake-100", True),
        ("age-2e4", True),  # all near the new machine
        ("star-2e4", True),
        ("garnet-1e4-5", False),
        ("small-world-2e4", False),
    ):
        tables = MODELS.tables_of(FAMILIES.family(name)(0))
        assert REFERENCE._factorises_well(tables) == expected, name


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


def test_distance_is_what_lies_outside_the_certified_interval() -> None:
    lower, upper = np.array([0.0, np.inf, 2.0]), np.array([1.0, np.inf, 3.0])
    assert OBJECTIVES.distance(np.array([0.5, np.inf, 3.0]), lower, upper) == 0.0
    assert OBJECTIVES.distance(np.array([-0.25, np.inf, 3.5]), lower, upper) == 0.5
    assert OBJECTIVES.distance(np.array([0.5, 7.0, 2.5]), lower, upper) == np.inf
    assert OBJECTIVES.distance(np.array([np.nan, np.inf, 2.5]), lower, upper) == np.inf


def test_answers_without_a_certified_value_are_not_called_right() -> None:
    numbers = {"seconds": 1.0, "own_seconds": 2.0, "build_seconds": 0.0, "bound": np.nan}
    row = OBJECTIVES.Row("total", "lake", 100, "storm", error=np.nan, note="", **numbers)
    assert not row.is_right
    assert row.ratio == 0.5


def test_tables_know_their_terminal_states() -> None:
    for model in (FAMILIES.gambler(20, 0), FAMILIES.wading_lake(6, 0), FAMILIES.maze(5, 0)):
        assert MODELS.tables_of(model).terminal.tolist() == model.terminal.tolist()
