"""Compiled kernels that are kept on disk: never those of other sources."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import pytest
from numba.core.dispatcher import Dispatcher

import aggmaze
import planners
from aggmaze import kernel_cache
from aggmaze.sources import PACKAGES

HOME = Path(aggmaze.__file__).parents[1]


def modules() -> Iterator[ModuleType]:
    for package in (aggmaze, planners):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def kernels() -> dict[str, Any]:
    return {
        f"{module.__name__}.{name}": value
        for module in modules()
        for name, value in vars(module).items()
        if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__
    }


def home_of(module: ModuleType, name: str) -> Path:
    """Return the file where what a module calls so is defined."""
    assert module.__file__ is not None
    for node in ast.walk(ast.parse(Path(module.__file__).read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGES):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return home_of(importlib.import_module(str(node.module)), alias.name)
    return Path(module.__file__)


def test_every_kernel_is_kept_by_the_sources_of_all() -> None:
    found = kernels()
    assert len(found) > 100
    for name, kernel in found.items():
        assert Path(kernel.stats.cache_path).name == kernel_cache.folder_name(), name


def test_what_kernels_read_is_defined_in_their_sources() -> None:
    """Numbers, arrays and functions of other files are compiled into a kernel."""
    read = set()
    for kernel in kernels().values():
        function = kernel.py_func
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if value is not None and not isinstance(value, ModuleType):
                read.add(home_of(sys.modules[function.__module__], name))
    assert len(read) > 10
    assert read <= set(kernel_cache.kernel_sources())


SWEEP = """
import numpy as np
from aggmaze import TabularMDP
from planners.bellman import local_engine
from planners.kernels import sparse

model = TabularMDP.from_matrices([[[1.0]]], costs=[[1.0]])
engine = local_engine(model, 0.5)
swept = engine.policy_sweep(np.zeros(1, dtype=np.int32), np.array([4.0]), np.empty(1))
print(swept.residual_high, sum(sparse.policy_sweep.stats.cache_hits.values()))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in PACKAGES:
        shutil.copytree(
            HOME / name, tmp_path / "code" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tmp_path / "code"


def run(code: str, copy: Path, **variables: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), **variables},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_an_edit_of_an_inlined_kernel_acts_in_every_file(copy: Path) -> None:
    pieces = copy / "planners" / "kernels" / "pieces.py"
    before = pieces.read_text(encoding="utf-8")
    assert run(SWEEP, copy) == "-1.0 0"  # 1 + 0.5 * 4 - 4
    assert run(SWEEP, copy) == "-1.0 1"  # loaded
    edited = before.replace("residual = new - old", "residual = old - new")
    assert edited != before
    pieces.write_text(edited, encoding="utf-8")
    assert run(SWEEP, copy) == "1.0 0"
    pieces.write_text(before, encoding="utf-8")
    assert run(SWEEP, copy) == "-1.0 1"


PLACE = "from planners.kernels import sparse; print(sparse.sweep.stats.cache_path)"


def test_the_place_is_the_one_that_numba_chooses(copy: Path, tmp_path: Path) -> None:
    code = copy / "planners" / "kernels"
    place = Path(run(PLACE, copy))
    assert place.parent == code / "__pycache__"
    assert place.name.startswith(kernel_cache.PREFIX)
    chosen, users = tmp_path / "chosen", tmp_path / "users"
    elsewhere = Path(run(PLACE, copy, NUMBA_CACHE_DIR=str(chosen)))
    assert (elsewhere.name, elsewhere.parents[1]) == (place.name, chosen)
    # Where nothing can be written beside the sources, whoever runs this, it is the user's folder.
    shutil.rmtree(code / "__pycache__")
    (code / "__pycache__").touch()
    elsewhere = Path(run(PLACE, copy, XDG_CACHE_HOME=str(users), HOME=str(users)))
    assert elsewhere.name == place.name
    assert elsewhere.is_relative_to(users)


def test_folders_of_old_sources_do_not_pile_up(copy: Path) -> None:
    cache = copy / "planners" / "kernels" / "__pycache__"
    olds = [cache / f"{kernel_cache.PREFIX}{i}" for i in range(5)]
    for i, old in enumerate(olds):
        old.mkdir(parents=True)
        (old / "index").touch()
        os.utime(old, (i, i))
    (cache / "other").mkdir()
    new = Path(run(PLACE, copy))
    assert set(cache.iterdir()) >= {new, *olds[2:], cache / "other"}
    assert not any(old.exists() for old in olds[:2])


def test_kernels_of_others_stay_where_numba_puts_them(tmp_path: Path) -> None:
    path = tmp_path / "others.py"
    path.write_text("def double(x):\n    return 2 * x\n")
    spec = importlib.util.spec_from_file_location("others", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = numba.njit(cache=True)(module.double)
    assert Path(kernel.stats.cache_path) == tmp_path / "__pycache__"
