"""Results in folders: there and back, block by block, whole or refused."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import itertools
import json
import os
import subprocess
import sys
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

ROOT = Path(__file__).parents[2]
MODEL = random_moves(0, 40, 4, p=0.9)
RESULT = planners.solve(MODEL, gamma=0.9, method="adaptive_aggregation", num_iterations=20)
NAMED = aggmaze.TabularMDP.from_function(
    ["here", "there", "end"],
    ["go", "stay"],
    lambda s, a: None if s == "end" else [(1.0, "end" if a == "go" else s, 1.0)],
)


def assert_same(first: Any, second: Any) -> None:
    """The two hold the same, down to the last bit."""
    assert type(first) is type(second) or isinstance(second, np.ndarray)
    if isinstance(first, np.ndarray):
        assert (first.dtype, first.shape) == (second.dtype, second.shape)
        assert first.tobytes() == second.tobytes()
    elif isinstance(first, dict):
        assert sorted(first) == sorted(second)
        for name, value in first.items():
            assert_same(value, second[name])
    elif isinstance(first, tuple) and isinstance(first[0], np.ndarray):
        for one, other in zip(first, second, strict=True):
            assert_same(one, other)
    elif dataclasses.is_dataclass(first):
        assert_same(vars(first), vars(second))
    else:
        assert first == second


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


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "name", ["values.npy", "labels.npy", "result.json", "left.json", ".result.json.0123", "x"]
)
def test_files_of_others_stop_a_store_before_it_writes(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{}")
    before = contents(tmp_path)
    words = f"no result can be stored in {str(tmp_path)!r}: it holds other things, such as {name!r}"
    with pytest.raises(FileExistsError) as refusal:
        RESULT.store(tmp_path)
    assert str(refusal.value) == words
    assert contents(tmp_path) == before


def test_files_of_others_beside_a_result_stay(tmp_path: Path) -> None:
    other = planners.solve(MODEL, gamma=0.9, method="value_iteration")  # without labels
    other.store(tmp_path)
    (tmp_path / "picture.png").write_text("picture")
    RESULT.store(tmp_path)
    other.store(tmp_path)
    assert (tmp_path / "picture.png").read_text() == "picture"
    (tmp_path / "labels-2.npy").write_text("mine")
    before = contents(tmp_path)
    for _ in range(2):
        with pytest.raises(FileExistsError, match=r"'labels-2\.npy', which is of no stored result"):
            RESULT.store(tmp_path)
        assert contents(tmp_path) == before
    assert_same(open_result(tmp_path, verify=True), other)


def test_nothing_is_left_of_those_that_were_replaced(tmp_path: Path) -> None:
    for _ in range(4):
        RESULT.store(tmp_path)
        head = json.loads((tmp_path / "result.json").read_text())
        files = {entry["file"] for entry in head["files"].values()}
        assert set(contents(tmp_path)) == files | {"result.json"}
        assert_same(open_result(tmp_path, verify=True), RESULT)
    assert "values-2.npy" in files


@pytest.mark.parametrize("failing", ["reserve", "write_slice", "move_head"])
@pytest.mark.parametrize("old", [True, False])
def test_a_store_that_fails_leaves_what_was_there(
    old: bool, failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = planners.solve(random_moves(1, 30, 4, p=0.9), gamma=0.9, method="value_iteration")
    works, stored = getattr(folders, failing), tmp_path / "result"
    (RESULT.store if old else Path.mkdir)(stored)
    before = contents(stored)
    for number in itertools.count(1):  # until it fails no more
        calls = itertools.count(1)

        def fails(*arguments: Any, number: int = number, calls: Any = calls) -> Any:
            if next(calls) == number:
                raise OSError(errno.ENOSPC, "full")
            return works(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(folders, failing, fails)
            with contextlib.suppress(OSError):
                other.store(stored)
                break
        assert contents(stored) == before
    assert number > (2 if failing == "move_head" else 5)
    assert_same(open_result(stored), other)


KILLED = """
import os, shutil, sys
from pathlib import Path
from planners import SolveResult, open_result

first, second = (SolveResult.load(path) for path in sys.argv[1:3])
folder, step = Path(sys.argv[3]), int(sys.argv[5])
names = tuple(str(Path(sys.argv[4], "planners", name)) for name in ("folders.py", "slices.py"))


def killed_at(number):
    count = 0

    def line(frame, event, argument):
        nonlocal count
        if event == "line":
            count += 1
            if count == number:
                os._exit(9)
        return line

    sys.settrace(lambda frame, *_: line if frame.f_code.co_filename in names else None)
    second.store(folder)
    os._exit(0)


def found():
    try:
        values = open_result(folder, verify=True).values
    except (ValueError, FileNotFoundError) as error:
        return str(error)
    return next(n for n, r in (("old", first), ("new", second)) if len(r.values) == len(values))


for old in (True, False):
    seen, number, code = [], 1, 9
    while code:
        shutil.rmtree(folder, ignore_errors=True)
        if old:
            first.store(folder)
        child = os.fork()
        if child == 0:
            killed_at(number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        seen.append(found())
        if code:
            second.store(folder)  # what is left of the first try is in nobody's way
            assert found() == "new"
        number += step
    print(*dict.fromkeys(seen), sep="|")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes that are made by fork")
def test_a_store_that_is_killed_at_any_line_leaves_one_of_the_two(tmp_path: Path) -> None:
    second = planners.solve(random_moves(1, 30, 4, p=0.9), gamma=0.9, method="value_iteration")
    paths = [tmp_path / "first.npz", tmp_path / "second.npz", tmp_path / "stored"]
    RESULT.save(paths[0])
    second.save(paths[1])
    told = subprocess.run(
        [sys.executable, "-c", KILLED, *map(str, paths), str(ROOT), "67"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert told.returncode == 0, told.stderr
    replaced, made = told.stdout.splitlines()
    assert replaced == "old|new"
    name = repr(str(paths[2]))
    assert made == (
        f"there is no folder {name}|{name} is no stored result: it has no result.json, which is "
        f"written last|{name} holds a result that was not written to the end|new"
    )


def test_what_the_disk_says_is_said_with_the_folder(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(folders, "write_slice", fails)
    with pytest.raises(OSError, match="No space left") as refusal:
        RESULT.store(stored)
    assert str(refusal.value) == (
        f"no result can be stored in {str(stored)!r}: No space left on device"
    )


def test_two_do_not_store_into_one_folder_at_once(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fcntl")
    works = folders.write_slice

    def also(*arguments: Any) -> Any:
        monkeypatch.setattr(folders, "write_slice", works)
        with pytest.raises(OSError, match="another process is writing one there"):
            RESULT.store(stored)
        return works(*arguments)

    monkeypatch.setattr(folders, "write_slice", also)
    RESULT.store(stored)
    assert folders.write_slice is works
    assert_same(open_result(stored, verify=True), RESULT)


def test_heads_name_no_files_elsewhere(stored: Path) -> None:
    (stored.parent / "values.npy").write_bytes((stored / "values.npy").read_bytes())
    head = json.loads((stored / "result.json").read_text())
    head["files"]["values"]["file"] = "../values.npy"
    (stored / "result.json").write_text(json.dumps(head))
    with pytest.raises(ValueError, match="is not a stored result: the file of values is"):
        open_result(stored)
    with pytest.raises(FileExistsError, match=r"it holds other things, such as"):
        RESULT.store(stored)
    assert (stored.parent / "values.npy").exists()


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
    for wrong in (3, (1, 2, 3), np.arange(5), "all"):
        with pytest.raises(TypeError, match="states must be a pair"):
            planners.q_values(MODEL, RESULT, states=wrong)  # type: ignore[arg-type]
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
    walked = planners.rollout(maze, opened, episodes=12, seed=1, max_steps=2000)
    assert whole.promised is not None
    assert walked.promised is None
    assert walked.successes.all()
    assert walked.discounted_returns is not None
    error = walked.discounted_returns.std() / np.sqrt(12)
    promised = -result.values[maze.start]
    assert abs(walked.discounted_returns.mean() - promised) < 6 * error + result.bound


@pytest.mark.parametrize("name", ["table", "moves", "moves, p < 1/n"])
def test_walks_by_rows_do_what_the_model_says(name: str) -> None:
    model = small_models()[name]
    result = planners.solve(model, gamma=0.9)
    walked = planners.rollout(as_row_model(model), result, episodes=150, seed=3, max_steps=60)
    live = ~model.terminal
    promised = -result.values[live].mean()  # they start anywhere
    assert walked.discounted_returns is not None
    error = walked.discounted_returns.std() / np.sqrt(150)
    assert abs(walked.discounted_returns.mean() - promised) < 6 * error + result.bound + 0.2


def test_actions_that_are_not_available_are_refused_on_a_walk() -> None:
    model = small_models()["moves"]
    closed = np.argmin(np.isfinite(model.move_costs), axis=1)  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"action \d+ is not available in state \d+"):
        planners.rollout(as_row_model(model), closed, episodes=50)
