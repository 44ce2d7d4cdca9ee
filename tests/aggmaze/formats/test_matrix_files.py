"""MDPtoolbox's .mat files, beside scipy's writer; deterministic tables of BRIDGE."""

from __future__ import annotations

import itertools
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import aggmaze
import planners
from aggmaze import TabularMDP, memory
from aggmaze.formats.matlab import read_mat

# mdp_example_forest() of MDPtoolbox for Matlab and R: three ages, wait or cut, a fire with 0.1.
P = np.array(
    [
        [[0.1, 0.9, 0.0], [0.1, 0.0, 0.9], [0.1, 0.0, 0.9]],
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
    ]
)
R = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 2.0]])


def cells(matrices: Any) -> Any:
    array = np.empty((1, len(matrices)), dtype=object)
    for place, matrix in enumerate(matrices):
        array[0, place] = matrix
    return array


FORMS: dict[str, dict[str, Any]] = {
    "dense": {"P": np.moveaxis(P, 0, 2), "R": R},
    "beside others": {"text": "abc", "P": np.moveaxis(P, 0, 2), "more": cells([R]), "R": R},
    "dense cells": {"P": cells(P), "R": R},
    "sparse cells": {"P": cells([sp.csc_matrix(matrix) for matrix in P]), "R": R},
    "sparse rewards": {"P": cells(P), "R": sp.csc_matrix(R)},
    "rewards of outcomes": {
        "P": np.moveaxis(P, 0, 2),
        "R": np.moveaxis(np.repeat(R.T[:, :, None], 3, axis=2), 0, 2),
    },
    "rewards of outcomes in cells": {
        "P": cells(P),
        "R": cells([sp.csc_matrix(np.repeat(R.T[a][:, None], 3, axis=1)) for a in (0, 1)]),
    },
    "whole rewards": {"P": np.moveaxis(P, 0, 2), "R": R.astype(np.int8)},
}


@pytest.mark.parametrize("packs", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_mdptoolbox_forest(form: str, packs: bool, tmp_path: Path) -> None:
    path = tmp_path / "forest.mat"
    scipy.io.savemat(path, FORMS[form], do_compression=packs)
    model = aggmaze.load_model(path)
    expected = TabularMDP.from_mdptoolbox(P, R)
    assert np.array_equal(model.costs, expected.costs)
    assert np.array_equal(model.transitions.toarray(), expected.transitions.toarray())
    # mdp_policy_iteration(P, R, 0.96) of MDPtoolbox's manual.
    values = -planners.solve(model, gamma=0.96).values
    np.testing.assert_allclose(values, [74.6496, 78.1056, 82.1056], atol=1e-4)


def test_one_action(tmp_path: Path) -> None:
    path = tmp_path / "one.mat"
    scipy.io.savemat(path, {"P": P[0], "R": R[:, :1]})
    model = read_mat(path)
    assert (model.num_states, model.num_actions) == (3, 1)
    assert model.rewards.tolist() == [[0.0], [0.0], [4.0]]


def edited(data: bytes, place: int, word: int) -> bytes:
    return data[:place] + struct.pack("<I", word) + data[place + 4 :]


def test_every_word_of_a_file_edited(tmp_path: Path) -> None:
    """Any model, or one error: where scipy's reader ends the process by a segmentation fault."""
    path = tmp_path / "forest.mat"
    scipy.io.savemat(path, FORMS["sparse cells"])
    whole = path.read_bytes()
    for place, word in itertools.product(range(124, len(whole), 4), (0, 7, 2**31 - 1, 2**32 - 1)):
        path.write_bytes(edited(whole, place, word))
        try:
            read_mat(path)
        except (ValueError, MemoryError) as error:
            words = ("is not a .mat file of P and R: ", "of memory is available")
            assert any(word in str(error) for word in words)  # noqa: PT017
    for length in range(0, len(whole), 9):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"is not a .mat file of P and R"):
            read_mat(path)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({"P": np.moveaxis(P, 0, 2)}, "R is missing: it holds P"),
        ({"R": R, "P": "text"}, "P is of class 4, not numbers, sparse or a cell array"),
        ({"R": R, "P": {"a": 1}}, "P is of class 2"),
        ({"R": R, "P": np.moveaxis(P, 0, 2) * 1j}, "P holds complex numbers"),
        ({"R": R, "P": cells([cells(P)])}, "is of class 1"),
        ({"R": R, "P": cells([P[0], P[1][:2]])}, "P must hold matrices (S, S), got shape (2, 3)"),
        ({"R": R[:2], "P": cells(P)}, "R must have shape (S, A) or (S, 1), or that of P"),
        ({"R": R, "P": np.moveaxis(P, 0, 2) * 0.5}, "probabilities sum to 0.5"),
    ],
)
def test_other_contents_are_refused(held: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mat"
    scipy.io.savemat(path, held)
    with pytest.raises(ValueError, match=r"is not a .mat file of P and R") as caught:
        read_mat(path)
    assert message in str(caught.value)


def test_other_versions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file, made by hand".ljust(512) + b"\x89HDF")
    with pytest.raises(ValueError, match=r"version 7.3: save it with -v7"):
        read_mat(path)
    scipy.io.savemat(path, {"P": P[0], "R": R}, format="4")
    with pytest.raises(ValueError, match=r"it is no .mat file of version 5 to 7"):
        read_mat(path)


def test_bombs_of_matlab_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.mat"
    scipy.io.savemat(
        path, {"P": np.zeros((200, 200, 10)), "R": np.zeros((200, 10))}, do_compression=True
    )
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    with pytest.raises(MemoryError, match=r"need .*1.0 MB of memory is available"):
        read_mat(path)
    head = path.read_bytes()[:128]
    name = struct.pack("<IIIIIIIIHH4s", 6, 8, 6, 0, 5, 8, 2**30, 2**30, 1, 1, b"P\0\0\0")
    matrix = struct.pack("<II", 14, len(name) + 8) + name + struct.pack("<II", 9, 0)
    packed = zlib.compress(matrix)
    path.write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(ValueError, match=r"P has shape \(1073741824, 1073741824\), and 0 numbers"):
        read_mat(path)


def bridge(folder: Path, **arrays: Any) -> Path:
    path = folder / "consolidated.npz"
    np.savez(path, **arrays)
    return path


def test_deterministic_moves_of_bridge(tmp_path: Path) -> None:
    following = np.array([[1, 0], [2, -1], [0, -1]])
    rewards = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 5.0]], dtype=np.float32)
    path = bridge(tmp_path, transitions=following, rewards=rewards, screens=np.zeros((3, 2, 2)))
    model = aggmaze.load_model(path)
    assert (model.num_states, model.num_added_states) == (4, 1)
    assert model.initial.tolist() == [1.0, 0.0, 0.0, 0.0]
    values = -planners.solve(model, gamma=0.9).values
    np.testing.assert_allclose(values, [0.81 * 5, 0.9 * 5, 5], rtol=1e-5)
    # The same by brute force over a horizon: three steps to the five.
    plan = planners.solve(model, objective=planners.FiniteHorizon(3))
    assert plan.values[0].tolist() == [-5.0, -5.0, -5.0]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"transitions": [[1]], "rewards": [[0.0]]}, "transitions[0, 0] = 1 must be a state in"),
        ({"transitions": [[-2]], "rewards": [[0.0]]}, "or -1 for the end"),
        ({"transitions": [[0]], "rewards": [[np.nan]]}, "rewards[0, 0] = nan must be finite"),
        ({"transitions": [[0]], "rewards": [[0.0, 1.0]]}, "rewards is float64 of shape (1, 2)"),
        ({"transitions": [[0.5]], "rewards": [[0.0]]}, "transitions is float64 of shape (1, 1)"),
        ({"transitions": [0], "rewards": [0.0]}, "not one of 2 axes"),
        ({"transitions": np.zeros((0, 2), int), "rewards": np.zeros((0, 2))}, "it is empty"),
        ({"transitions": [[0]]}, "rewards is missing"),
    ],
)  # fmt: skip
def test_other_tables_are_refused(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"consolidated.npz' is not a saved model: ") as caught:
        aggmaze.load_model(bridge(tmp_path, **arrays))
    assert message in str(caught.value)
