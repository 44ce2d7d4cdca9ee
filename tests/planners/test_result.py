"""Results kept in files: exact, plain, and whole or not at all."""

from __future__ import annotations

import json
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze.memory
import planners
from aggmaze.files import atomic_file
from aggmaze.formats.storage import save_model
from planners import SolveResult, Status
from planners.advice import adviser
from planners.result import KEYBOARD
from tests.planners.reference import random_moves

MODEL = random_moves(0, 40, 4, p=0.9)


def solved(method: str, **options: Any) -> SolveResult:
    return planners.solve(MODEL, gamma=0.9, method=method, **{"num_iterations": 20} | options)


RESULT = solved("adaptive_aggregation")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "result.npz"
    RESULT.save(path)
    return path


def assert_same(first: SolveResult, second: SolveResult) -> None:
    for name, value in vars(first).items():
        other = getattr(second, name)
        if name == "history":
            for column, array in vars(value).items():
                assert_same_array(array, getattr(other, column))
        elif name == "proof":
            assert list(value) == list(other)
            for part, array in value.items():
                assert_same_array(array, other[part])
        elif isinstance(value, np.ndarray):
            assert_same_array(value, other)
        elif name == "ends" and value is not None:
            for part, others in zip(value, other, strict=True):
                assert_same_array(part, others)
        else:
            assert value == other, name
            assert type(value) is type(other), name


def assert_same_array(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> None:
    assert first.dtype == second.dtype
    assert first.shape == second.shape
    assert first.tobytes() == second.tobytes()


def rewrite(path: Path, **changes: Any) -> None:
    """Write the file again with some of its arrays changed, or left out where None."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    arrays |= changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def header(path: Path, **changes: Any) -> np.ndarray[Any, Any]:
    with np.load(path, allow_pickle=False) as file:
        fields = json.loads(str(file["header"]))
    fields |= changes
    return np.array(json.dumps({name: x for name, x in fields.items() if x is not ...}))


def assert_refused(path: Path, *words: str) -> None:
    with pytest.raises(ValueError, match="is not a saved result") as refusal:
        SolveResult.load(path)
    text = str(refusal.value)
    assert str(path) in text
    assert "\n" not in text
    for word in words:
        assert word in text


# ---------------------------------------------------------------------------------------------
# There and back.


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("value_iteration", {}),
        ("value_iteration", {"num_iterations": None, "tol": 1e-8}),
        ("value_iteration", {"tol": 1e-12, "certify": "every"}),
        ("adaptive_aggregation", {}),
        ("adaptive_aggregation", {"certify": "every"}),
        ("adaptive_aggregation", {"num_iterations": 1}),
        ("adaptive_aggregation", {"callback": lambda progress: progress.iteration == 4}),
    ],
)
def test_there_and_back(method: str, options: dict[str, Any], tmp_path: Path) -> None:
    result = solved(method, **options)
    path = tmp_path / "result.npz"
    result.save(path)
    loaded = SolveResult.load(path)
    assert_same(result, loaded)
    assert isinstance(loaded.status, planners.Status)
    assert repr(loaded) == repr(result)
    assert list(tmp_path.iterdir()) == [path]


def test_paths_are_taken_as_they_are(tmp_path: Path) -> None:
    for path in (tmp_path / "no suffix", tmp_path / "other.bin", str(tmp_path / "text.npz")):
        RESULT.save(path)
        assert Path(path).is_file()
        assert_same(SolveResult.load(path), RESULT)


def test_files_hold_no_pickle(saved: Path) -> None:
    with np.load(saved, allow_pickle=False) as file:
        names = set(file.files)
        for name in names:
            assert not file[name].dtype.hasobject
    assert names == {
        "header",
        "values",
        "policy",
        "labels",
        "proof_allowance",
        "proof_ended",
        *(f"history_{name}" for name in vars(RESULT.history)),
    }


def test_special_numbers_survive(tmp_path: Path) -> None:
    fields = dict(vars(RESULT))
    for bound in (float("inf"), 0.0, 5e-324, 0.1 + 0.2):
        odd = SolveResult(**fields | {"bound": bound, "message": 'a "quoted"\nüñí message'})
        odd.save(tmp_path / "odd.npz")
        assert_same(SolveResult.load(tmp_path / "odd.npz"), odd)


def test_a_save_replaces_the_file(saved: Path) -> None:
    other = solved("value_iteration")
    other.save(saved)
    assert_same(SolveResult.load(saved), other)
    assert [path.name for path in saved.parent.iterdir()] == ["result.npz"]


def test_a_loaded_result_serves_as_a_new_one(saved: Path) -> None:
    loaded = SolveResult.load(saved)
    found = planners.arrival(MODEL, loaded)
    assert found.share_of_states == planners.arrival(MODEL, RESULT).share_of_states
    assert planners.solve(MODEL, gamma=0.9, V0=loaded.values).status == "converged"


# ---------------------------------------------------------------------------------------------
# Files that are something else.


def test_truncated(saved: Path) -> None:
    whole = saved.read_bytes()
    for size in (0, 1, 4, 30, 100, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        saved.write_bytes(whole[:size])
        assert_refused(saved)


def test_one_bit_turned(saved: Path) -> None:
    """Zip checksums most of a file: it is read as it was, or refused."""
    whole = bytearray(saved.read_bytes())
    problems: dict[int, str] = {}
    for place in range(0, len(whole), 3):
        damaged = whole.copy()
        damaged[place] ^= 1 << place % 8
        saved.write_bytes(damaged)
        try:
            assert_same(SolveResult.load(saved), RESULT)
        except ValueError as refusal:
            if "is not a saved result" not in str(refusal) or "\n" in str(refusal):
                problems[place] = str(refusal)
        except Exception as error:
            problems[place] = f"{type(error).__name__}: {error}"
    assert not problems


@pytest.mark.parametrize(
    "content", [b"values 1 2 3\n", b"\x00" * 1000, b"PK\x03\x04", b"\x93NUMPY"]
)
def test_not_even_an_archive(content: bytes, saved: Path) -> None:
    saved.write_bytes(content)
    assert_refused(saved)


def test_an_array_on_its_own(saved: Path) -> None:
    with saved.open("wb") as file:
        np.save(file, RESULT.values)
    assert_refused(saved)


def test_a_pickle(saved: Path) -> None:
    saved.write_bytes(pickle.dumps({"values": RESULT.values}))
    assert_refused(saved)


def test_another_archive(saved: Path) -> None:
    np.savez(saved, a=np.arange(3))
    assert_refused(saved, "header")
    with zipfile.ZipFile(saved, "w") as file:
        file.writestr("readme.txt", "nothing here")
    assert_refused(saved)
    with zipfile.ZipFile(saved, "w"):
        pass
    assert_refused(saved)


@pytest.mark.parametrize("name", ["values", "policy", "history_bound", "history_seconds", "header"])
def test_missing_arrays(name: str, saved: Path) -> None:
    rewrite(saved, **{name: None})
    assert_refused(saved, name)


def test_labels_may_be_missing(saved: Path) -> None:
    rewrite(saved, labels=None)
    assert_refused(saved, "labels")  # listed in the header
    # Older files list nothing.
    rewrite(saved, header=header(saved, arrays=...))
    assert SolveResult.load(saved).labels is None


@pytest.mark.parametrize("version", ["aggmaze result 2", "", None, 1])
def test_another_format(version: object, saved: Path) -> None:
    rewrite(saved, header=header(saved, format=version))
    assert_refused(saved, "format", repr(version))


@pytest.mark.parametrize("name", ["format", "bound", "gamma", "status", "num_iterations"])
def test_missing_in_the_header(name: str, saved: Path) -> None:
    rewrite(saved, header=header(saved, **{name: ...}))
    assert_refused(saved, name)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '"text"', "null", "\x00"])
def test_no_header(text: str, saved: Path) -> None:
    rewrite(saved, header=np.array(text))
    assert_refused(saved)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "splendid"),
        ("status", None),
        ("bound", "small"),
        ("bound", None),
        ("gamma", [0.9]),
        ("num_iterations", 19),
        ("num_iterations", "20"),
    ],
)
def test_wrong_fields_in_the_header(name: str, value: object, saved: Path) -> None:
    rewrite(saved, header=header(saved, **{name: value}))
    assert_refused(saved)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("values", RESULT.values[:-1]),
        ("values", RESULT.values.astype(np.float32)),
        ("values", RESULT.values[:, np.newaxis]),
        ("values", np.float64(1.0)),
        ("values", np.full(40, "1.0")),
        ("policy", RESULT.policy[:-1]),
        ("policy", RESULT.policy.astype(float)),
        ("policy", RESULT.policy[np.newaxis]),
        ("labels", np.zeros(3, dtype=np.int32)),
        ("labels", np.zeros(40)),
        ("history_bound", np.zeros(19)),
        ("history_bound", np.zeros((20, 1))),
        ("history_bound", np.full(20, "x")),
        ("history_num_updates", np.zeros(20)),
    ],
)
def test_arrays_of_another_shape_or_type(
    name: str, array: np.ndarray[Any, Any], saved: Path
) -> None:
    rewrite(saved, **{name: np.asarray(array)})
    # Too few values show as too many actions.
    assert_refused(saved, *(() if name == "values" else (name.removeprefix("history_"),)))


def test_arrays_that_do_not_belong_there(saved: Path) -> None:
    rewrite(saved, extra=np.zeros(3))
    assert_refused(saved, "'extra.npy'")


def test_a_model_instead(saved: Path) -> None:
    save_model(MODEL, saved)
    assert_refused(saved, "it is a saved model")


def test_other_byte_orders_and_integers_are_read(saved: Path) -> None:
    policy = RESULT.policy.astype(">i4")
    rewrite(saved, values=RESULT.values.astype(">f8"), policy=policy)
    loaded = SolveResult.load(saved)
    assert_same_array(loaded.values, RESULT.values)
    assert_same_array(loaded.policy, RESULT.policy.astype(np.int32))


def test_more_than_the_memory(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggmaze.memory, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"result\.npz' need 1\.8 kB, 1\.0 kB of memory is"):
        SolveResult.load(saved)


@pytest.mark.parametrize("name", ["values", "header", "extra"])
def test_pickled_objects(name: str, saved: Path) -> None:
    rewrite(saved, **{name: np.array([{"a": 1}], dtype=object)})
    assert_refused(saved)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"):
        SolveResult.load(tmp_path / "nothing.npz")
    with pytest.raises(IsADirectoryError, match="is a directory, not a saved result"):
        SolveResult.load(tmp_path)


# ---------------------------------------------------------------------------------------------
# Saves that fail.


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no folder '.*nowhere' to write 'result\.npz' to"):
        RESULT.save(tmp_path / "nowhere" / "result.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_save_leaves_what_was_there(
    failure: BaseException, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def fail(member: Any, array: Any, **options: Any) -> None:
        member.write(b"half of it")
        raise failure

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    for path in (saved, saved.parent / "new.npz"):
        with pytest.raises(type(failure)):
            solved("value_iteration").save(path)
    monkeypatch.undo()
    assert [path.name for path in saved.parent.iterdir()] == ["result.npz"]
    assert saved.read_bytes() == before
    assert_same(SolveResult.load(saved), RESULT)


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "result.npz").mkdir()
    with pytest.raises(OSError, match=r"result\.npz"):
        RESULT.save(tmp_path / "result.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["result.npz"]


def test_files_appear_when_they_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with atomic_file(path) as file:
        file.write(b"some")
        file.flush()
        assert not path.exists()
        file.write(b"thing")
    assert path.read_bytes() == b"something"
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode


def test_require() -> None:
    converged = planners.solve(MODEL, gamma=0.9)
    assert converged.success
    assert converged.require() is converged
    budgeted = planners.solve(MODEL, gamma=0.9, num_iterations=2)
    assert budgeted.status == "completed"
    assert budgeted.require() is budgeted


def test_require_refuses_what_was_not_reached() -> None:
    short = planners.solve(MODEL, gamma=0.9, method="value_iteration", tol=1e-9, num_iterations=2)
    assert not short.success
    with pytest.raises(planners.NotSolvedError, match="stopped_short: 2 iter") as caught:
        short.require()
    assert caught.value.result is short
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.result.bound == short.bound


def test_require_after_interrupts() -> None:
    def press(progress: planners.Progress) -> None:
        raise KeyboardInterrupt

    stopped = planners.solve(MODEL, gamma=0.9, callback=lambda progress: True, num_iterations=5)
    with pytest.raises(planners.NotSolvedError, match="stopped by the callback"):
        stopped.require()
    with pytest.raises(KeyboardInterrupt):
        planners.solve(MODEL, gamma=0.9, callback=press).require()


# ---------------------------------------------------------------------------------------------
# Whatever feeds on a result insists on it.

SHORT = {"method": "value_iteration", "tol": 1e-9, "num_iterations": 2}


def test_regrets_are_of_optima() -> None:
    for env in (gym.make("StandardMaze-v0"), gym.make_vec("StandardMaze-v0", num_envs=2)):
        with pytest.raises(planners.NotSolvedError, match="stopped_short"):
            planners.with_regret(env, 0.9, **SHORT)
    env = aggmaze.wrappers.NewMazeEachEpisode(gym.make("StandardMaze-v0"))
    stops = [False]
    method = {"method": "value_iteration", "callback": lambda progress: stops[0]}
    shortened = planners.with_regret(env, 0.9, **method)
    stops[0] = True
    with pytest.raises(planners.NotSolvedError, match="stopped by the callback"):
        shortened.reset(seed=0)


def test_advice_is_of_optima() -> None:
    with pytest.raises(planners.NotSolvedError, match="stopped_short"):
        adviser(0.9, **SHORT)(MODEL)


@pytest.mark.parametrize(
    ("message", "error"), [("too short", planners.NotSolvedError), (KEYBOARD, KeyboardInterrupt)]
)
def test_scales_are_of_optima(
    message: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **options: Any) -> SolveResult:
        return replace(planners.solve(*args, **options), status=Status.INTERRUPTED, message=message)

    monkeypatch.setattr("planners.normalize.solve", fail)
    with pytest.raises(error):
        planners.normalized(MODEL, 0.9)


def test_policies_are_what_they_are() -> None:
    """An exact promise needs no optimum."""
    short = planners.solve(MODEL, gamma=0.9, **SHORT)
    found = planners.rollout(MODEL, short, episodes=1)
    V = planners.evaluate(MODEL, short, 0.9)
    assert found.promised == pytest.approx(-float(MODEL.initial @ V))
    assert planners.arrival(MODEL, short).farthest > 0
