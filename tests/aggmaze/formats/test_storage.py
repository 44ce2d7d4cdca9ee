"""Models kept in files: exact, plain, and whole or not at all; and the memory they may take."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray

import planners
from aggmaze import MoveMDP, TabularMDP, memory
from aggmaze.formats.storage import load_gym_P, load_model, save_gym_P, save_model
from tests.strategies import move_mdps, tabular_mdps

Model = MoveMDP | TabularMDP

MOVES: MoveMDP = gym.make("TerrainMaze-v0", shape=(6, 5), p=0.9).unwrapped.transition_model()
TABLES = MOVES.to_tabular()
GYM = planners.as_model(gym.make("CliffWalking-v1"))
MODELS = {
    "moves": MOVES,
    "tables": TABLES,
    "gym": GYM,
    "plain": TABLES.from_matrices(np.full((3, 2, 3), 1 / 3), costs=np.arange(6.0).reshape(3, 2)),
}
VALUES = planners.solve(TABLES, gamma=0.9).values

one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def arrays_of(model: Model) -> dict[str, Any]:
    """Everything that a model is made of."""
    parts = dict(vars(model.validate()))
    if isinstance(model, TabularMDP):
        matrix = parts.pop("transitions")
        parts |= {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    names = {field for field in parts if not field.startswith("_")}
    return {name: parts[name] for name in names - {"available", "terminal", "slip_weights"}} | {
        "terminal": model.terminal
    }


def assert_same(first: Model, second: Model) -> None:
    assert type(first) is type(second)
    parts, others = arrays_of(first), arrays_of(second)
    assert parts.keys() == others.keys()
    for name, part in parts.items():
        other = others[name]
        assert type(part) is type(other), name
        if isinstance(part, np.ndarray):
            assert part.dtype == other.dtype, name
            assert part.shape == other.shape, name
            assert part.tobytes() == other.tobytes(), name
            assert not other.flags.writeable, name
        else:
            assert repr(part) == repr(other), name


def rewrite(path: Path, **changes: Any) -> None:
    """Write the file again with some of its arrays changed, or left out where None."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    arrays |= changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def header(path: Path, **changes: Any) -> NDArray[Any]:
    with np.load(path, allow_pickle=False) as file:
        fields = json.loads(str(file["header"])) | changes
    return np.array(json.dumps({name: x for name, x in fields.items() if x is not ...}))


def replace_member(path: Path, name: str, content: bytes, **changes: Any) -> None:
    """Put other bytes into a member of the archive, and other numbers into its directory."""
    with zipfile.ZipFile(path) as file:
        members = {member: file.read(member) for member in file.namelist()}
    members[f"{name}.npy"] = content
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member, data in members.items():
            file.writestr(member, data)
        for field, value in changes.items():
            setattr(file.getinfo(f"{name}.npy"), field, value)


def declaration(text: str, rest: bytes = b"") -> bytes:
    """Numpy's format with any text as its declaration."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + rest


def declared(dtype: str, shape: tuple[int, ...], rest: bytes = b"") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    return declaration(text.ljust(117) + "\n", rest)


def open_handles() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def assert_refused(path: Path, *words: str) -> None:
    """One line that names the file, at no more memory than the file is long, and no open file."""
    handles = open_handles()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"is not a saved model: .") as refusal:
            load_model(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    text = str(refusal.value)
    assert repr(str(path)) in text
    assert "\n" not in text
    for word in words:
        assert word in text
    assert peak < 2_000_000
    assert open_handles() == handles


@pytest.fixture
def moves(tmp_path: Path) -> Path:
    save_model(MOVES, tmp_path / "moves.npz")
    return tmp_path / "moves.npz"


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    save_model(TABLES, tmp_path / "tables.npz")
    return tmp_path / "tables.npz"


# ---------------------------------------------------------------------------------------------
# There and back.


@pytest.mark.parametrize("name", MODELS)
def test_there_and_back(name: str, tmp_path: Path) -> None:
    model, path = MODELS[name], tmp_path / "model.npz"
    save_model(model, path)
    assert [found.name for found in tmp_path.iterdir()] == ["model.npz"]
    loaded = load_model(path)
    assert_same(model, loaded)
    first, second = (planners.solve(source, gamma=0.9) for source in (model, loaded))
    assert first.values.tobytes() == second.values.tobytes()
    assert first.policy.tobytes() == second.policy.tobytes()
    assert first.bound == second.bound


@one_folder
@given(move_mdps())
def test_any_moves(tmp_path: Path, model: MoveMDP) -> None:
    save_model(model, tmp_path / "model.npz")
    assert_same(model, load_model(tmp_path / "model.npz"))


@one_folder
@given(tabular_mdps())
def test_any_tables(tmp_path: Path, model: TabularMDP) -> None:
    save_model(model, tmp_path / "model.npz")
    assert_same(model, load_model(tmp_path / "model.npz"))


def test_numbers_survive_to_the_last_bit(tmp_path: Path) -> None:
    costs = np.array([[0.1 + 0.2, -0.0], [5e-324, np.inf], [1e308, -1e308]])
    model = MoveMDP([[1, 2], [0, -7], [1, 1]], costs, p=np.nextafter(1.0, 0.0), bump_cost=-0.0)
    save_model(model, tmp_path / "model.npz")
    assert_same(model, load_model(tmp_path / "model.npz"))


def test_the_same_model_makes_the_same_bytes(moves: Path) -> None:
    before = moves.read_bytes()
    save_model(load_model(moves), moves)
    assert moves.read_bytes() == before


def test_names_are_taken_as_they_are(tmp_path: Path) -> None:
    for path in (tmp_path / "no suffix", tmp_path / "other.bin", str(tmp_path / "text.npz")):
        save_model(MOVES, path)
        assert Path(path).is_file()
        assert_same(load_model(path), MOVES)


def test_numpy_reads_the_arrays(tables: Path) -> None:
    with np.load(tables, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["costs"], TABLES.costs)
        assert json.loads(str(file["header"]))["format"] == "aggmaze model 1"


def test_arrays_in_other_orders_of_bytes_and_axes_are_read(moves: Path, tables: Path) -> None:
    rewrite(
        moves,
        move_costs=np.asfortranarray(MOVES.move_costs.astype(">f8")),
        successors=MOVES.successors.astype(">i4"),
    )
    assert_same(load_model(moves), MOVES)
    for dtype in (">i8", np.int32):
        rewrite(tables, indptr=TABLES.transitions.indptr.astype(dtype))
        loaded = load_model(tables)
        assert planners.solve(loaded, gamma=0.9).values.tobytes() == VALUES.tobytes()


def test_outcome_costs_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    save_model(MODELS["plain"], path)
    loaded = load_model(path)
    assert isinstance(loaded, TabularMDP)
    assert loaded.outcome_costs is None


# ---------------------------------------------------------------------------------------------
# Saves that fail.


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_save_leaves_what_was_there(
    failure: BaseException, moves: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = moves.read_bytes()

    def fail(member: Any, array: Any, **options: Any) -> None:
        member.write(b"half of it")
        raise failure

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    for path in (moves, moves.parent / "new.npz"):
        with pytest.raises(type(failure)):
            save_model(TABLES, path)
    monkeypatch.undo()
    assert [path.name for path in moves.parent.iterdir()] == ["moves.npz"]
    assert moves.read_bytes() == before


def test_only_valid_models_are_saved(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with pytest.raises(ValueError, match="state 0, move 1: cost nan must be finite"):
        save_model(MoveMDP([[0, 0]], [[0.0, np.nan]]), path)
    with pytest.raises(TypeError, match="must be a TabularMDP or a MoveMDP, got dict"):
        save_model({}, path)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"no folder '.*nowhere' to write 'x\.npz' to"):
        save_model(MOVES, tmp_path / "nowhere" / "x.npz")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        save_model(MOVES, tmp_path / "folder")
    assert [found.name for found in tmp_path.iterdir()] == ["folder"]


# ---------------------------------------------------------------------------------------------
# Files that are something else, or damaged.


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file '.*nothing\.npz'"):
        load_model(tmp_path / "nothing.npz")
    with pytest.raises(IsADirectoryError, match="is a directory, not a saved model"):
        load_model(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert_refused(tmp_path / "pipe", "not an ordinary file")


def some_npy() -> bytes:
    file = io.BytesIO()
    np.save(file, MOVES.move_costs)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"states 1 2 3\n",
        b"\x00" * 1000,
        b"PK\x03\x04",
        b"PK\x05\x06" + b"\x00" * 18,
        b"PK\x05\x06" + b"\xff" * 18,
        b"\x93NUMPY",
        some_npy(),
        pickle.dumps({"costs": MOVES.move_costs}),
        b'{"P": []}',
    ],
)
def test_not_even_an_archive(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    assert_refused(path)


@pytest.mark.parametrize("name", ["moves", "tables"])
def test_truncated(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    save_model(MODELS[name], path)
    whole = path.read_bytes()
    for size in (1, 30, 100, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert_refused(path)


@pytest.mark.parametrize("name", ["moves", "plain"])
def test_one_bit_turned(name: str, tmp_path: Path) -> None:
    """Zip checksums most of a file: it is read as it was, or refused."""
    path = tmp_path / "model.npz"
    save_model(MODELS[name], path)
    whole = bytearray(path.read_bytes())
    problems: dict[int, str] = {}
    for place in range(0, len(whole), 3):
        damaged = whole.copy()
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert_same(load_model(path), MODELS[name])
        except ValueError as refusal:
            if "is not a saved model" not in str(refusal) or "\n" in str(refusal):
                problems[place] = str(refusal)
        except Exception as error:
            problems[place] = f"{type(error).__name__}: {error}"
    assert not problems


def test_other_archives(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez(path, a=np.arange(3))
    assert_refused(path, "header is missing")
    sp.save_npz(path, TABLES.transitions)
    assert_refused(path, "header is missing")
    np.savez(path, header=np.arange(3))
    assert_refused(path, "header is int64 of shape (3,)")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "nothing here")
    assert_refused(path, "header is missing")
    with zipfile.ZipFile(path, "w"):
        pass
    assert_refused(path)


def test_a_result_instead(tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    planners.solve(MOVES, gamma=0.9).save(path)
    assert_refused(path, "it is a saved result", "'aggmaze model 1'")


@pytest.mark.parametrize("version", ["aggmaze model 2", "", None, 1, ["aggmaze model 1"]])
def test_another_version(version: object, moves: Path) -> None:
    rewrite(moves, header=header(moves, format=version))
    assert_refused(moves, "format", repr(version))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '"text"', "null", "[" * 5000, "\x00"])
def test_no_header(text: str, moves: Path) -> None:
    rewrite(moves, header=np.array(text))
    assert_refused(moves)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("kind", "Maze", "its kind is 'Maze', not one of MoveMDP, TabularMDP"),
        ("kind", ["MoveMDP"], "not of type str"),
        ("kind", ..., "kind is missing"),
        ("kind", "TabularMDP", "costs is missing"),
        ("p", ..., "p is missing"),
        ("p", "much", "p is 'much', not of type float"),
        ("p", True, "p is True, not of type float"),
        ("p", 1.5, "p must be in (0, 1], got 1.5"),
        ("p", float("nan"), "p must be in (0, 1], got nan"),
        ("bump_cost", float("inf"), "bump_cost must be finite, got inf"),
        ("bump_cost", 10**400, "too large"),
    ],
)
def test_wrong_numbers_of_moves(name: str, value: object, message: str, moves: Path) -> None:
    rewrite(moves, header=header(moves, **{name: value}))
    assert_refused(moves, message)


@pytest.mark.parametrize("value", [..., -1, 30, 10**30, 0.0, None, False])
def test_wrong_numbers_of_tables(value: object, tables: Path) -> None:
    rewrite(tables, header=header(tables, num_added_states=value))
    assert_refused(tables, "num_added_states")


@pytest.mark.parametrize("name", ["successors", "move_costs", "initial", "header"])
def test_missing_arrays_of_moves(name: str, moves: Path) -> None:
    rewrite(moves, **{name: None})
    assert_refused(moves, f"{name} is missing")


@pytest.mark.parametrize(
    "name", ["data", "indices", "indptr", "costs", "action_mask", "terminal", "initial"]
)
def test_missing_arrays_of_tables(name: str, tables: Path) -> None:
    rewrite(tables, **{name: None})
    assert_refused(tables, f"{name} is missing")


def test_arrays_that_do_not_belong_there(moves: Path) -> None:
    rewrite(moves, bounds=np.zeros(3))
    assert_refused(moves, "it holds 'bounds.npy', which does not belong there")


@pytest.mark.parametrize("name", ["successors", "header"])
def test_pickled_objects(name: str, moves: Path) -> None:
    rewrite(moves, **{name: np.array([{"a": 1}], dtype=object)})
    assert_refused(moves, f"{name} holds Python objects")


Change = Callable[[NDArray[Any]], Any]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "successors",
            lambda a: a.astype(float),
            "successors is float64 of shape (30, 4), not int32",
        ),
        ("successors", lambda a: a[:-1], "of shape (29, 4), not int32 of shape (30, 4)"),
        ("successors", lambda a: a + 30, "is not in [0, 30)"),
        ("move_costs", lambda a: a.astype(np.float32), "float32"),
        ("move_costs", lambda a: a.astype(str), "<U32"),
        ("move_costs", lambda a: a[0], "has shape (4,), not one of 2 axes"),
        ("move_costs", lambda a: a[:0], "shape"),
        ("move_costs", lambda a: np.where(np.isinf(a), np.nan, a), "cost nan must be finite"),
        ("initial", lambda a: a[1:], "initial is float64 of shape (29,)"),
        ("initial", lambda a: a * 0.5, "initial sums to 0.5, must sum to 1"),
        ("initial", lambda a: a * np.nan, "initial[0] = nan must be a finite number"),
        ("initial", lambda a: a.astype([("x", "f8")]), "initial is [('x', '<f8')]"),
    ],
)
def test_wrong_arrays_of_moves(name: str, change: Change, message: str, moves: Path) -> None:
    with np.load(moves) as file:
        array = file[name]
    rewrite(moves, **{name: change(array)})
    assert_refused(moves, message)


def changed(array: NDArray[Any], place: int, value: Any) -> NDArray[Any]:
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("indptr", lambda a: changed(a, 0, -1), "indptr must rise from 0"),
        ("indptr", lambda a: changed(a, 7, -5), "indptr must rise from 0"),
        ("indptr", lambda a: changed(a, 7, 10**9), "indptr must rise from 0"),
        ("indptr", lambda a: changed(a, -1, a[-1] + 1), "indptr must rise from 0"),
        ("indptr", lambda a: changed(a, -1, a[-2]), "indptr must rise from 0"),
        ("indptr", lambda a: a[::-1].copy(), "indptr must rise from 0"),
        ("indptr", lambda a: a[:-1], "indptr is int32 of shape (120,), not int32 or int64"),
        ("indptr", lambda a: a.astype(np.uint64), "indptr is uint64"),
        ("indices", lambda a: changed(a, 5, 30), "indices name a state outside [0, 30)"),
        ("indices", lambda a: changed(a, 5, -1), "indices name a state outside [0, 30)"),
        ("indices", lambda a: changed(a, 5, -(2**31)), "indices name a state outside [0, 30)"),
        ("indices", lambda a: a.astype(np.int16), "indices is int16"),
        ("indices", lambda a: a[:-1], "indices is int32 of shape"),
        ("data", lambda a: changed(a, 0, np.nan), "state 0, action 0: probability nan"),
        ("data", lambda a: changed(a, 0, -0.5), "state 0, action 0: probability -0.5"),
        ("data", lambda a: changed(a, 0, 0.5), "state 0, action 0: probabilities sum to 0.5"),
        ("data", lambda a: a[:-1], "indices is int32 of shape"),
        ("data", lambda a: a[:, np.newaxis], "not one of 1 axes"),
        ("costs", lambda a: a[:-1], "indptr is int32 of shape (121,)"),
        ("costs", lambda a: a + np.inf, "cost inf must be finite"),
        ("costs", lambda a: a * 2, "is not the mean"),
        ("outcome_costs", lambda a: a[:-1], "outcome_costs is float64 of shape"),
        ("action_mask", lambda a: a.astype(np.int8), "action_mask is int8"),
        ("action_mask", lambda a: a & False, "state 0 has no available action"),
        ("terminal", lambda a: ~a, "state 1 is declared terminal"),
        ("terminal", lambda a: a[np.newaxis], "terminal is bool of shape (1, 30)"),
    ],
)
def test_wrong_arrays_of_tables(name: str, change: Change, message: str, tables: Path) -> None:
    with np.load(tables) as file:
        array = file[name]
    rewrite(tables, **{name: change(array)})
    assert_refused(tables, message)


def test_truth_values_are_0_or_1(tables: Path) -> None:
    replace_member(tables, "terminal", declared("|b1", (30,), b"\x02" * 30))
    assert_refused(tables, "terminal holds other bytes than 0 and 1")


# ---------------------------------------------------------------------------------------------
# Files that someone made to do harm: `assert_refused` bounds the memory.


@pytest.mark.parametrize(
    "shape", [(10**15, 4), (2**40, 2**40), (2**63, 2), (-1, 4), (0, 2**62), (30, -4), (10**9, 4)]
)
def test_absurd_shapes(shape: tuple[int, int], moves: Path) -> None:
    replace_member(moves, "move_costs", declared("<f8", shape))
    assert_refused(moves)


def test_an_absurd_shape_with_a_directory_to_match(moves: Path) -> None:
    content = declared("<f8", (10**9, 4))
    replace_member(moves, "move_costs", content, file_size=len(content) + 32 * 10**9)
    assert_refused(moves, "at most", "can be")


def test_a_compressed_file_larger_than_the_file_itself(moves: Path) -> None:
    content = declared("<f8", (10**9, 4))
    size = len(content) + 32 * 10**9
    replace_member(moves, "move_costs", content, file_size=size, compress_size=size)
    assert_refused(moves)


def test_a_text_without_end_as_header(moves: Path) -> None:
    size = 10**7
    replace_member(moves, "header", declared(f"<U{size}", (), b"\x00" * 4 * size))
    assert moves.stat().st_size < 100_000
    assert_refused(moves, "not one short text")


def test_zeros_that_fit_the_declaration_but_not_the_memory(
    moves: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand honest states, of which the file holds but a few kilobytes."""
    states = 10_000
    replace_member(moves, "move_costs", declared("<f8", (states, 4), bytes(32 * states)))
    replace_member(moves, "successors", declared("<i4", (states, 4), bytes(16 * states)))
    replace_member(moves, "initial", declared("<f8", (states,), bytes(8 * states)))
    assert moves.stat().st_size < 5000
    monkeypatch.setattr(memory, "available_memory", lambda: 1_100_000)
    with pytest.raises(
        MemoryError,
        match=r"^the arrays of '.*moves\.npz' need 1\.2 MB, 1\.1 MB of memory is available$",
    ):
        load_model(moves)
    monkeypatch.undo()
    assert_refused(moves, "initial sums to 0.0")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(" * 900,
        "-" * 900,
        "[" * 900 + "]" * 50,
        "{}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (30L, 4L), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (30, '4'), }",
        "{'descr': '<f8', 'fortran_order': 3, 'shape': (30, 4), }",
        "{'descr': '<q9', 'fortran_order': False, 'shape': (30, 4), }",
        "{'descr': ('<f8', (1000000000000,)), 'fortran_order': False, 'shape': (30, 4), }",
        "{'descr': '|V2000000000', 'fortran_order': False, 'shape': (30, 4), }",
        "__import__('os').abort()",
        " " * 60_000,
    ],
)
def test_odd_declarations(text: str, moves: Path) -> None:
    replace_member(moves, "move_costs", declaration(text, bytes(960)))
    assert_refused(moves)


def test_other_versions_and_methods(moves: Path) -> None:
    replace_member(moves, "initial", b"\x93NUMPY\x02\x00" + bytes(100))
    assert_refused(moves, "initial has version (2, 0) of numpy's format")
    with zipfile.ZipFile(moves, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("header.npy", b"")
    assert_refused(moves, "header is compressed by method 12, not deflate")


# ---------------------------------------------------------------------------------------------
# Gymnasium's P as JSON.


@pytest.mark.parametrize("name", MODELS)
def test_a_gym_table_there_and_back(name: str, tmp_path: Path) -> None:
    model, path = MODELS[name], tmp_path / "model.json"
    save_gym_P(model, path)
    loaded = load_gym_P(path)
    assert loaded.num_added_states == model.num_added_states
    np.testing.assert_array_equal(loaded.initial, model.initial)
    np.testing.assert_array_equal(loaded.terminal, model.terminal)
    first, second = (planners.solve(source, gamma=0.9, tol=1e-12) for source in (model, loaded))
    np.testing.assert_allclose(first.values, second.values, rtol=0, atol=1e-11)
    before = path.read_bytes()
    save_gym_P(loaded, path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["model.json"]


@one_folder
@given(tabular_mdps())
def test_any_gym_table_keeps_its_outcomes(tmp_path: Path, model: TabularMDP) -> None:
    save_gym_P(model, tmp_path / "model.json")
    loaded = load_gym_P(tmp_path / "model.json")
    # States that are absorbing at no cost are terminal when read, declared so or not.
    assert loaded.terminal[model.terminal].all()
    before, after = (
        {s: {a: [outcome[:3] for outcome in P[s][a]] for a in P[s]} for s in P}
        for P in (model.to_gym_P(), loaded.to_gym_P())
    )
    assert after == before
    if (loaded.terminal == model.terminal).all():
        assert loaded.to_gym_P() == model.to_gym_P()


def gym_json(**changes: Any) -> str:
    P = [[[[1.0, 1, -1.0, True]]], [[[1.0, 1, 0.0, True]]]]
    document = {"format": "aggmaze gym P 1", "num_added_states": 0, "initial": [1.0, 0.0], "P": P}
    return json.dumps({k: v for k, v in (document | changes).items() if v is not ...})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value"),
        (gym_json()[:-1], "Expecting"),
        ("[" * 100_000, "recursion"),
        ("[]", "its format is None, not 'aggmaze gym P 1'"),
        (gym_json(format="aggmaze gym P 2"), "its format is 'aggmaze gym P 2'"),
        (gym_json(P=...), "P must be a list"),
        (gym_json(P={"0": {}}), "P must be a list"),
        (gym_json(P=[]), "no states"),
        (gym_json(P=[3, 4]), "P[0] must list its actions, got 3"),
        (gym_json(P=["ab", "cd"]), "P[0][0]"),
        (gym_json(P=[[[[0.5, 1, -1.0, True]]], [[[1.0, 1, 0.0, True]]]]), "sum to 0.5"),
        (gym_json(P=[[[[1.0, 7, -1.0, True]]], [[[1.0, 1, 0.0, True]]]]), "P[0][0] leads to"),
        (gym_json(P=[[[[1.0, 1, None, True]]], [[[1.0, 1, 0.0, True]]]]), "reward nan"),
        (gym_json(P=[[[[float("nan"), 1, 0.0, True]]], [[[1.0, 1, 0.0, True]]]]), "nan"),
        (gym_json(initial=...), "initial must be a list"),
        (gym_json(initial=[1.0]), "initial must have shape (2,)"),
        (gym_json(initial=["a", "b"]), "initial"),
        (gym_json(initial=[[1.0], [0.0, 2.0]]), "inhomogeneous"),
        (gym_json(num_added_states=...), "num_added_states"),
        (gym_json(num_added_states=2), "num_added_states must be in [0, 2), got 2"),
    ],
)
def test_bad_gym_tables(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    handles = open_handles()
    with pytest.raises(ValueError, match=r"is not a saved Gymnasium P: .") as refusal:
        load_gym_P(path)
    assert repr(str(path)) in str(refusal.value)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert open_handles() == handles


def test_other_files_than_gym_tables(moves: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="is not a saved Gymnasium P"):
        load_gym_P(moves)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_gym_P(moves.with_name("none.json"))
    with pytest.raises(IsADirectoryError, match="is a directory, not a saved Gymnasium P"):
        load_gym_P(moves.parent)
    save_gym_P(MOVES, moves.with_suffix(".json"))
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"the lists of '.*moves\.json' need .* is available"):
        load_gym_P(moves.with_suffix(".json"))


# ---------------------------------------------------------------------------------------------
# What other programs write.


@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "CliffWalking-v1"])
def test_a_plain_gymnasium_table(env_id: str, tmp_path: Path) -> None:
    P, path = gym.make(env_id).unwrapped.P, tmp_path / "plain.json"  # type: ignore[attr-defined]
    path.write_text(json.dumps(P, default=lambda number: number.item()))
    expected = TabularMDP.from_gym_P(P)
    assert_same(load_gym_P(path), expected)
    # Where objects are lists, and states stand in another order.
    lists = [[P[s][a] for a in range(len(P[s]))] for s in range(len(P))]
    reverse = {s: dict(enumerate(lists[s])) for s in reversed(range(len(P)))}
    for table in (lists, dict(enumerate(lists)), reverse):
        path.write_text(json.dumps(table, default=lambda number: number.item()))
        assert_same(load_gym_P(path), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"1": {"0": [[1.0, 0, 0.0, true]]}}',
            "states of P must be numbered from 0 to 0, got '1'",
        ),
        ('{"0": {"left": [[1.0, 0, 0.0, true]]}}', "actions of P[0] must be numbered from 0 to 0"),
        ('{"0": {}}', "P[0] has 0 actions"),
        ('{"0": {"0": [[0.5, 0, 0.0, true]]}}', "sum to 0.5"),
        ('{"0": {"0": [[1.0, 3, 0.0, true]]}}', "P[0][0] leads to state 3"),
        ('{"0": {"0": "up"}}', "P[0][0]"),
        ('{"0": 3}', "P[0] must list its actions, got 3"),
        ("{}", "its format is None, not 'aggmaze gym P 1'; nor is it a plain P"),
        ('{"goal": 3}', "its format is None, not 'aggmaze gym P 1'; nor is it a plain P"),
        ("3", "its format is None"),
    ],
)
def test_bad_plain_tables(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "plain.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"is not a saved Gymnasium P: .") as refusal:
        load_gym_P(path)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


# Two states: stay in 0 for 1 a step, or go to 1 for 3, where all is over.
GO_OR_STAY = np.array(
    [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]]]
)
REWARDS = np.array([[1.0, 3.0, 2.0], [0.0, 0.0, 0.0]])


def matrices(**changes: Any) -> dict[str, Any]:
    return {
        name: array
        for name, array in ({"P": GO_OR_STAY, "R": REWARDS} | changes).items()
        if array is not None
    }


def sparse_matrices() -> dict[str, Any]:
    rows = sp.vstack([sp.csr_array(matrix) for matrix in GO_OR_STAY]).tocsr()
    parts = {"P_data": rows.data, "P_indices": rows.indices, "P_indptr": rows.indptr}
    return matrices(P=None, **parts)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    "arrays",
    [
        matrices(),
        matrices(P=GO_OR_STAY.swapaxes(0, 1)),
        matrices(R=np.stack([np.outer(REWARDS[:, a], [1.0, 1.0]) for a in range(3)])),
        matrices(P=GO_OR_STAY.astype(np.float32), R=REWARDS.astype(np.int64)),
        matrices(terminal=[False, True], initial=[1.0, 0.0], action_mask=np.ones((2, 3), int)),
        matrices(order="ass"),
        sparse_matrices(),
    ],
)
def test_matrices(save: Any, arrays: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "matrices.npz"
    save(path, **arrays)
    model = load_model(path)
    assert (model.num_states, model.num_actions) == (2, 3)
    # Staying for ever is worth 1 / (1 - gamma) = 10, going is worth 3; at gamma .5 2 and 3.
    np.testing.assert_allclose(planners.solve(model, gamma=0.9).values, [-10, 0], atol=1e-4)
    np.testing.assert_allclose(planners.solve(model, gamma=0.5).values, [-3, 0], atol=1e-4)
    assert model.terminal.tolist() == [False, True]
    assert model.initial.tolist() == [1.0, 0.0]


def test_what_matrices_may_say_besides(tmp_path: Path) -> None:
    path = tmp_path / "matrices.npz"
    np.savez(path, **matrices(action_mask=[[False, True, True], [True, True, True]]))
    # Without staying: go at once for 3, or toss for 2 and again, (2 + .45 * 3) / 1 < 2 / .55.
    best = max(3.0, 2.0 / (1 - 0.9 * 0.5))
    np.testing.assert_allclose(planners.solve(load_model(path), gamma=0.9).values, [-best, 0.0])
    np.savez(path, **matrices(initial=[0.25, 0.75]))
    assert load_model(path).initial.tolist() == [0.25, 0.75]
    # No state is terminal, so that nobody asks whether state 1 is meant to pay for ever.
    np.savez(path, P=[[[0.0, 1.0], [0.0, 1.0]]], R=[0.0, 1.0], terminal=[])
    model = load_model(path)
    assert not model.terminal.any()
    np.testing.assert_allclose(planners.solve(model, gamma=0.9).values, [-9.0, -10.0], atol=1e-4)


def test_as_many_actions_as_states(tmp_path: Path) -> None:
    path, P = tmp_path / "matrices.npz", GO_OR_STAY[:2]
    np.savez(path, P=P, R=REWARDS[:, :2])
    with pytest.raises(ValueError, match=r"P of shape \(2, 2, 2\) may be .* add order='ass' or"):
        load_model(path)
    for array, order in ((P, "ass"), (P.swapaxes(0, 1), "sas")):
        np.savez(path, P=array, R=REWARDS[:, :2], order=order)
        np.testing.assert_allclose(
            planners.solve(load_model(path), gamma=0.5).values, [-3, 0], atol=1e-4
        )


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (matrices(R=None), "R is missing"),
        (matrices(P=None), "P is missing"),
        (matrices(P=GO_OR_STAY[0]), "P has shape (2, 2), not one of 3 axes"),
        (matrices(P=GO_OR_STAY[:, :, :1]), "(3, 2, 1)"),
        (matrices(P=GO_OR_STAY / 2), "sum to 0.5"),
        (matrices(P=GO_OR_STAY * 1j), "P is complex128"),
        (matrices(R=np.zeros((3, 5))), "(3, 5)"),
        (matrices(R=np.zeros((2, 3, 1, 1))), "R has shape (2, 3, 1, 1), not one of 1 or 2 or 3"),
        (matrices(order="abc"), "order must be one of sas, ass, got 'abc'"),
        (matrices(order=3), "order is int64 of shape (), not one short text"),
        (matrices(terminal=[True]), "terminal is bool of shape (1,), not"),
        (matrices(terminal=[True, True]), "declared terminal"),
        (matrices(initial=[0.5, 0.1]), "initial sums to 0.6"),
        (matrices(discount=0.9), "it holds 'discount.npy', which does not belong there"),
        (sparse_matrices() | {"P_indptr": None}, "P_indptr is missing"),
        (sparse_matrices() | {"P_indptr": np.arange(4)}, "P_indptr tells of 3 rows"),
        (sparse_matrices() | {"P_indptr": np.full(7, 7)}, "P_indptr must rise from 0 to the 7"),
        (sparse_matrices() | {"P_indices": np.full(7, 2)}, "P_indices name a state outside [0, 2)"),
        (sparse_matrices() | {"order": "sas"}, "it holds 'order.npy', which does not belong there"),
    ],
)
def test_bad_matrices(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "matrices.npz"
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    assert_refused(path, message)


def test_matrices_that_take_too_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "matrices.npz"
    np.savez(path, **matrices())
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"the arrays of '.*matrices\.npz' need .* is available"):
        load_model(path)


# ---------------------------------------------------------------------------------------------
# Permissions.


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o007])
def test_files_get_the_permissions_that_any_file_gets(umask: int, tmp_path: Path) -> None:
    """In a process of its own, since the umask is of the whole process."""
    script = (
        "import os, sys; import numpy as np; from aggmaze import MoveMDP, save_model; "
        f"os.umask({umask}); os.umask = None; "
        "save_model(MoveMDP([[0]], [[np.inf]]), sys.argv[1]); open(sys.argv[2], 'w').close()"
    )
    saved, other = tmp_path / "model.npz", tmp_path / "other"
    subprocess.run([sys.executable, "-c", script, saved, other], check=True)
    assert saved.stat().st_mode == other.stat().st_mode
    assert saved.stat().st_mode & 0o777 == 0o666 & ~umask


# ---------------------------------------------------------------------------------------------
# Memory.


def test_what_fits_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    memory.check_memory(1000, "a few states")
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    memory.check_memory(1000, "a few states")
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.check_memory(10**30, "states of which nobody knows")


@pytest.mark.parametrize(
    ("needed", "available", "message"),
    [
        (3_200_000_000, 1_100_000_000, "need 3.2 GB, 1.1 GB of memory is available"),
        (1001, 999, "need 1.0 kB, 999 bytes of memory is available"),
        (1, 0, "need 1 bytes, 0 bytes of memory is available"),
        (8 * 10**30, 10**6, "need 8,000,000,000,000,000.0 PB, 1.0 MB of memory is available"),
    ],
)
def test_what_does_not_fit_is_refused(
    needed: int, available: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: available)
    with pytest.raises(MemoryError) as refusal:
        memory.check_memory(needed, "transitions of 10,000,000 states")
    assert str(refusal.value) == f"transitions of 10,000,000 states {message}"


class System:
    """A system with files of its own to say what memory is there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.setattr(memory, "_MEMINFO", folder / "meminfo")
        monkeypatch.setattr(memory, "_OWN_GROUPS", folder / "own")
        monkeypatch.setattr(memory, "_GROUPS", folder / "groups")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    made = System(tmp_path, monkeypatch)
    made.write("meminfo", "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:  5000 kB\n")
    return made


def test_the_kernel_says_what_is_available(system: System) -> None:
    assert memory.available_memory() == 5000 * 1024


def test_a_container_may_have_less(system: System) -> None:
    system.write("own", "0::/pod/job\n")
    system.write("groups/pod/memory.max", "3000000\n")
    system.write("groups/pod/memory.current", "1000000\n")
    system.write("groups/pod/memory.stat", "anon 900000\ninactive_file 50000\n")
    system.write("groups/pod/job/memory.max", "max\n")
    system.write("groups/pod/job/memory.current", "700000\n")
    assert memory.available_memory() == 2_050_000
    system.write("groups/pod/memory.current", "9000000\n")
    assert memory.available_memory() == 0
    system.write("own", "0::/../elsewhere\n")
    assert memory.available_memory() == 5000 * 1024


def test_an_old_container_may_have_less(system: System) -> None:
    system.write("own", "5:cpu:/\n4:memory,hugetlb:/not/in/this/mount\nodd\n0::/\n")
    system.write("groups/memory/memory.limit_in_bytes", "3000000\n")
    system.write("groups/memory/memory.usage_in_bytes", "1000000\n")
    system.write("groups/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\n")
    assert memory.available_memory() == 2_020_000


def test_other_systems_say_less(
    tmp_path: Path, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").unlink()
    pages = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", lambda name: pages[name])
    assert memory.available_memory() == 4_096_000
    monkeypatch.delattr(os, "sysconf")
    assert memory.available_memory() is None


def test_this_machine_has_some() -> None:
    available = memory.available_memory()
    assert available is None or 10**6 < available < 10**15
