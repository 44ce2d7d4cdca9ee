"""A few hundred damaged files, and that the fuzzer would see what readers must not do."""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from aggmaze import TabularMDP, memory

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
CASES = 600


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return importlib.import_module("fuzz_files")
    finally:
        sys.path.remove(str(SCRIPTS))


@pytest.fixture
def files(fuzz: ModuleType, tmp_path: Path) -> tuple[dict[str, list[Path]], Path]:
    genuine, case = tmp_path / "genuine", tmp_path / "case"
    genuine.mkdir()
    case.mkdir()
    return fuzz.corpus(genuine), case


def test_genuine_files_are_read(
    fuzz: ModuleType, files: tuple[dict[str, list[Path]], Path]
) -> None:
    kinds, _ = files
    assert sorted(kinds) == [
        "aggmaze", "bridge", "drn", "gym", "matlab", "prism", "result", "umb",
    ]  # fmt: skip
    for kind, paths in kinds.items():
        for path in paths:
            assert fuzz.problem(fuzz.reader_of(kind), path) == "", path.name


def test_damaged_files_are_models_or_refused_in_one_line(
    fuzz: ModuleType, files: tuple[dict[str, list[Path]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds, case = files
    monkeypatch.setattr(memory, "available_memory", lambda: fuzz.TOLD)
    refused = 0
    for number, kind, path, way in itertools.islice(fuzz.cases(kinds, case, seed=0), CASES):
        words = fuzz.problem(fuzz.reader_of(kind), path)
        assert words == "", f"case {number} {kind}, {way}: {words}"
        refused += not loads(fuzz, kind, path)
    # Else the changes would be harmless, or nothing would be read at all.
    assert CASES / 3 < refused < CASES


def loads(fuzz: ModuleType, kind: str, path: Path) -> bool:
    try:
        fuzz.reader_of(kind)(path)
    except Exception:
        return False
    return True


def test_the_same_seed_makes_the_same_cases(
    fuzz: ModuleType, files: tuple[dict[str, list[Path]], Path]
) -> None:
    kinds, case = files

    def some(seed: int) -> list[tuple[str, bytes]]:
        found = itertools.islice(fuzz.cases(kinds, case, seed=seed), 40)
        # xz and gzip are as their library packs them.
        return [(way, path.read_bytes()) for _, _, path, way in found]

    assert some(3) == some(3)
    assert some(3) != some(4)


def raising(error: BaseException) -> Any:
    def read(path: Path) -> Any:
        raise error

    return read


def invalid(path: Path) -> TabularMDP:
    return TabularMDP(np.array([[0.5]]), [[0.0]])


def crash(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang(path: Path) -> None:
    while True:
        pass


def greed(path: Path) -> None:
    np.ones(10**10)


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (raising(ValueError("'x' is not a model: no")), ""),
        (raising(FileNotFoundError("there is no file 'x'")), ""),
        (raising(MemoryError("x need 3 GB, 2 GB of memory is available")), ""),
        (raising(MemoryError()), "MemoryError"),
        (raising(KeyError("x")), "KeyError"),
        (raising(RecursionError()), "RecursionError"),
        (raising(ValueError("two\nlines")), "ValueError"),
        (raising(ValueError("x" * 5000)), "ValueError"),
        (lambda path: 3, "returned int"),
        (invalid, "returned a model that is not valid"),
        (crash, "ended by signal SIGKILL"),
        (hang, "ended by signal SIG"),
        (greed, "MemoryError"),
    ],
)
def test_what_counts_as_a_finding(
    fuzz: ModuleType, read: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "SECONDS", 1)
    found = fuzz.isolated(read, tmp_path / "x")
    assert found.startswith(words)
    assert bool(found) == bool(words)
