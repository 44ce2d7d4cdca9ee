"""Public functions say what their arguments are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: Gymnasium says what the arguments of these are.
GYMNASIUM = {"step", "reset", "render"}
#: Leaves it to another function, by name.
REFERS = re.compile(r"[Aa]s for |`TabularMDP\.from_")

#: `planners.experiments.study.Experiment` says what those of an experiment's are.
EXPERIMENT = {"run", "summarize"}


def functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the public functions and methods of a module, with their qualified names."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            # Kernels take what the Python around them documents; commands document each option.
            if not any("njit" in name for name in decorators) and "_command" not in node.name:
                yield prefix + node.name, node


def num_arguments(node: ast.FunctionDef) -> int:
    every = node.args
    names = [argument.arg for argument in (*every.posonlyargs, *every.args, *every.kwonlyargs)]
    names += [argument.arg for argument in (every.vararg, every.kwarg) if argument is not None]
    return len([name for name in names if name not in ("self", "cls")])


def test_two_arguments_or_more_have_a_section() -> None:
    found = [
        (path.relative_to(ROOT).as_posix(), name, node)
        for package in ("aggmaze", "planners")
        for path in sorted((ROOT / package).rglob("*.py"))
        for name, node in functions(ast.parse(path.read_text(encoding="utf-8")).body)
        if num_arguments(node) >= 2
    ]
    assert len(found) > 200
    documented = {
        node.name for _, _, node in found if "\nParameters\n" in (ast.get_docstring(node) or "")
    }
    # What implements an interface is documented there, under the same name.
    missing = [
        f"{place}: {name}"
        for place, name, node in found
        if node.name not in documented | GYMNASIUM | EXPERIMENT
        and not REFERS.search(ast.get_docstring(node) or "")
    ]
    assert missing == []
