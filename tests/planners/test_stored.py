"""Results in folders: there and back, block by block, whole or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aggmaze
import planners
from aggmaze.models.row_models import MoveBlock, as_row_model
from planners import FiniteHorizon, SolveResult, TotalCost, folders, open_result
from planners.folders import write_folder
from planners.result import header_of
from planners.slices import Share
from tests.planners.reference import dense, random_moves, random_tabular, small_models
from tests.planners.split_engine import in_parts
from tests.planners.test_result import assert_same

MODEL = random_moves(0, 40, 4, p=0.9)
RESULT = planners.solve(MODEL, gamma=0.9, method="adaptive_aggregation", num_iterations=20)
NAMED = aggmaze.TabularMDP.from_function(
    ["here", "there", "end"],
    ["go", "stay"],
    lambda s, a: None if s == "end" else [(1.0, "end" if a == "go" else s, 1.0)],
)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "result"
    RESULT.store(path)
    return path


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: RESULT,
        lambda: planners.solve(MODEL, gamma=0.9),
        lambda: planners.solve(MODEL, objective=TotalCost()),
        lambda: planners.solve(MODEL, objective=FiniteHorizon(5)),
        lambda: planners.solve(MODEL, objective=FiniteHorizon(5), keep="first"),
        lambda: planners.solve(MODEL, objective=planners.AverageCost()),
        lambda: planners.solve(NAMED, gamma=0.5),
    ],
)
def test_there_and_back(make: Callable[[], SolveResult], verify: bool, tmp_path: Path) -> None:
    result = make()
    result.store(tmp_path / "result")
    opened = open_result(tmp_path / "result", verify=verify)
    assert_same(result, opened)
    assert repr(opened) == repr(result)
    for array in (opened.values, opened.policy):
        assert isinstance(array, np.memmap)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    # A saved result is the same thing in one file.
    opened.save(tmp_path / "result.npz")
    assert_same(SolveResult.load(tmp_path / "result.npz"), result)


def test_files_are_what_numpy_reads(stored: Path) -> None:
    np.testing.assert_array_equal(np.load(stored / "values.npy"), RESULT.values)
    head = json.loads((stored / "result.json").read_text())
    assert head["bound"] == RESULT.bound
    assert head["files"]["values"]["shape"] == [40]


def test_a_result_replaces_another_one(stored: Path) -> None:
    before = open_result(stored)
    other = planners.solve(random_moves(1, 30, 4, p=0.9), gamma=0.9, method="value_iteration")
    other.store(stored)
    assert_same(open_result(stored), other)
    assert not (stored / "labels.npy").exists()
    np.testing.assert_array_equal(before.values, RESULT.values)  # what was mapped stays


def test_folders_with_other_things_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("text")
    with pytest.raises(FileExistsError, match=r"holds other things, such as 'text\.txt'"):
        RESULT.store(tmp_path)
    with pytest.raises(OSError, match="text"):
        RESULT.store(tmp_path / "text.txt")
    with pytest.raises(FileNotFoundError):
        RESULT.store(tmp_path / "no" / "such")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_a_store_that_fails_leaves_nothing_that_opens(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any) -> None:
        raise OSError("full")

    with monkeypatch.context() as patch:
        patch.setattr(folders, "move_head", fails)
        with pytest.raises(OSError, match="full"):
            RESULT.store(stored)
    with pytest.raises(ValueError, match=r"is no stored result: it has no result\.json"):
        open_result(stored)
    RESULT.store(stored)
    assert_same(open_result(stored), RESULT)


def edited(**changes: Any) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        head = json.loads((path / "result.json").read_text())
        for name, value in changes.items():
            if value is ...:
                del head[name]
            else:
                head[name] = value
        (path / "result.json").write_text(json.dumps(head))

    return edit


def remove(path: Path) -> None:
    (path / "policy.npy").unlink()


def shorten(path: Path) -> None:
    (path / "values.npy").write_bytes((path / "values.npy").read_bytes()[:-1])


def reshape(path: Path) -> None:
    np.save(path / "values.npy", np.load(path / "values.npy").astype(np.float32))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (remove, "policy.npy is missing"),
        (shorten, "values.npy is not float64 of shape (40,)"),
        (reshape, "values.npy is not float64 of shape (40,)"),
        (lambda path: (path / "result.json").write_text("{"), "Expecting property name"),
        (edited(format="aggmaze stored result 9"), "its format is"),
        (edited(bound="much"), "bound is 'much', not of type float"),
        (edited(bound=...), "bound is missing"),
        (edited(files=...), "files"),
        (edited(status="fine"), "fine"),
        (edited(arrays="values"), "it holds 'labels', which does not belong there"),
    ],
)
def test_bad_folders_are_refused(damage: Callable[[Path], Any], words: str, stored: Path) -> None:
    damage(stored)
    with pytest.raises(ValueError, match="is not a stored result") as refusal:
        open_result(stored)
    assert words in str(refusal.value)
    assert repr(str(stored)) in str(refusal.value)


def test_changed_entries_are_found_by_who_reads_them_all(stored: Path) -> None:
    data = bytearray((stored / "values.npy").read_bytes())
    data[-3] ^= 1
    (stored / "values.npy").write_bytes(data)
    open_result(stored)
    with pytest.raises(ValueError, match=r"values\.npy' is damaged"):
        open_result(stored, verify=True)


def test_what_is_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        open_result(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file"):
        open_result(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no"):
        open_result(tmp_path / "empty")


@pytest.mark.parametrize("cuts", [[], [13], [1, 2, 30]])
def test_parts_write_into_one_folder(cuts: list[int], tmp_path: Path) -> None:
    model = random_tabular(0, 40, 3)
    result = planners.solve(model, gamma=0.9, method="value_iteration")
    ends = [0, *cuts, 40]

    def write(engine: Any) -> None:
        parts = engine.parts
        share = Share.of(parts, len(engine.terminal))
        own = slice(ends[parts.rank], ends[parts.rank + 1])
        assert (share.lo, share.hi, share.num_states) == (own.start, own.stop, 40)
        by_state = {"values": result.values[own], "policy": result.policy[own].astype(np.int8)}
        whole = {f"history_{name}": array for name, array in vars(result.history).items()}
        header = header_of(result) | {"arrays": " ".join([*by_state, *whole])}
        write_folder(tmp_path / "result", header, by_state, whole, share)

    in_parts(model, 0.9, cuts, write)
    opened = open_result(tmp_path / "result", verify=True)
    np.testing.assert_array_equal(opened.values, result.values)
    np.testing.assert_array_equal(opened.policy, result.policy)
    assert (opened.bound, opened.message) == (result.bound, result.message)


# ---------------------------------------------------------------------------------------------
# Read block by block.


@pytest.mark.parametrize("name", small_models())
def test_q_values_of_a_block_are_those_of_the_whole(name: str, tmp_path: Path) -> None:
    model = small_models()[name]
    result = planners.solve(model, gamma=0.9)
    result.store(tmp_path)
    opened, whole = open_result(tmp_path), planners.q_values(model, result)
    count = model.num_states
    for lo, hi in ((0, count), (0, 1), (count - 1, count), (3, 8)):
        for source in (model, as_row_model(model)):
            block = planners.q_values(source, opened, states=(lo, hi))
            np.testing.assert_array_equal(block, whole[lo:hi])
    tables = dense(model)
    expected = tables.costs + 0.9 * tables.P @ np.where(model.terminal, 0.0, result.values)
    open_there = np.isfinite(whole) & ~model.terminal[:, np.newaxis]
    np.testing.assert_allclose(whole[open_there], expected[open_there], rtol=1e-12, atol=1e-12)


def test_values_in_terminal_states_count_as_nothing() -> None:
    V = np.ones(MODEL.num_states)
    np.testing.assert_array_equal(
        planners.q_values(MODEL, V, 0.9, states=(0, 40)), planners.q_values(MODEL, V, 0.9)
    )


def test_blocks_that_are_none_are_refused() -> None:
    for states in ((-1, 3), (3, 3), (0, 41), (40, 41)):
        with pytest.raises(ValueError, match="states"):
            planners.q_values(MODEL, RESULT, states=states)
    with pytest.raises(ValueError, match=r"V must have shape \(40,\)"):
        planners.q_values(MODEL, np.ones(39), 0.9, states=(0, 3))
    with pytest.raises(ValueError, match=r"V\[\d+\] = nan must be finite"):
        planners.q_values(MODEL, np.full(40, np.nan), 0.9, states=(0, 40))
    with pytest.raises(ValueError, match="states= is for discounted costs"):
        planners.q_values(MODEL, np.ones(40), objective=TotalCost(), states=(0, 3))


class Watched:
    """A model by rows that notes what is asked of it."""

    def __init__(self, model: Any) -> None:
        self._rows = as_row_model(model)
        self.num_states, self.num_actions = model.num_states, model.num_actions
        self.p, self.asked = model.p, 0

    key = "watched"
    num_states: int

    def moves(self, lo: int, hi: int) -> MoveBlock:
        self.asked += hi - lo
        return self._rows.moves(lo, hi)  # type: ignore[union-attr, no-any-return]


def test_little_is_asked_for(tmp_path: Path) -> None:
    maze = aggmaze.model_by_rows("TerrainMaze-v0", shape=(60, 50), terrain="noise", p=0.9)
    model = maze.to_model()
    result = planners.solve(model, gamma=0.97)
    result.store(tmp_path)
    watched = Watched(model)
    opened = open_result(tmp_path)
    block = planners.q_values(watched, opened, states=(1000, 1100))
    np.testing.assert_array_equal(block, planners.q_values(model, result)[1000:1100])
    assert watched.asked < 500
    whole = planners.rollout(model, result, episodes=3, gamma=0.97, max_steps=2000)
    walked = planners.rollout(maze, opened, episodes=200, seed=1, max_steps=2000)
    assert whole.promised is not None
    assert walked.promised is None
    assert walked.successes.all()
    assert walked.discounted_returns is not None
    error = walked.discounted_returns.std() / np.sqrt(200)
    promised = -result.values[maze.start]
    assert abs(walked.discounted_returns.mean() - promised) < 6 * error + result.bound


@pytest.mark.parametrize("name", ["table", "moves", "moves, p < 1/n"])
def test_walks_by_rows_do_what_the_model_says(name: str) -> None:
    model = small_models()[name]
    result = planners.solve(model, gamma=0.9)
    walked = planners.rollout(as_row_model(model), result, episodes=4000, seed=3, max_steps=200)
    live = ~model.terminal
    promised = -result.values[live].mean()  # they start anywhere
    assert walked.discounted_returns is not None
    error = walked.discounted_returns.std() / np.sqrt(4000)
    assert abs(walked.discounted_returns.mean() - promised) < 6 * error + result.bound + 1e-6


def test_actions_that_are_not_available_are_refused_on_a_walk() -> None:
    model = small_models()["moves"]
    closed = np.argmin(np.isfinite(model.move_costs), axis=1)  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"action \d+ is not available in state \d+"):
        planners.rollout(as_row_model(model), closed, episodes=50)
