"""The pages of the reference: every public name, by what it is for."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple


class Page(NamedTuple):
    """A page of the reference: its name, its heading, a line, and what is on it."""

    name: str
    title: str
    line: str
    module: str
    names: tuple[str, ...]


#: What no page names comes last, on a page of its own module.
PAGES = (
    Page(
        "solving",
        "Solving",
        "From a model and a question to values, a policy and a bound.",
        "planners",
        (
            "solve",
            "METHODS",
            "Progress",
            "watch",
            "compare",
            "Comparison",
            "ComparedRun",
            "as_model",
            "normalized",
        ),
    ),
    Page(
        "objectives",
        "Objectives",
        "What is asked.",
        "planners",
        ("Discounted", "TotalCost", "FiniteHorizon", "AverageCost"),
    ),
    Page(
        "results",
        "Results",
        "What a solve returns.",
        "planners",
        ("SolveResult", "PartResult", "History", "Status", "NotSolvedError", "NoModelError"),
    ),
    Page(
        "policies",
        "Policies",
        "What a policy is worth, where it leads, and what an agent loses against it.",
        "planners",
        (
            "evaluate",
            "q_values",
            "greedy",
            "rollout",
            "Rollouts",
            "RolloutProgress",
            "arrival",
            "Arrival",
            "ArrivalProgress",
            "with_regret",
            "with_shaping",
        ),
    ),
    Page("plotting", "Plotting", "One call, one picture.", "planners.plotting", ()),
    Page(
        "environments",
        "Environments",
        "The classes behind the ids of Gymnasium.",
        "aggmaze",
        (
            "ENV_IDS",
            "StandardMazeEnv",
            "TerrainMazeEnv",
            "NDMazeEnv",
            "GridWorldEnv",
            "DiscretizedCartPoleEnv",
            "DiscretizedMountainCarEnv",
            "DiscretizedAcrobotEnv",
            "DiscretizedPendulumEnv",
            "TabularEnv",
            "TabularVectorEnv",
            "DiscretizedCartPole",
            "Discretized",
        ),
    ),
    Page("wrappers", "Wrappers", "Other observations, regret, shaping.", "aggmaze.wrappers", ()),
    Page(
        "vector_wrappers",
        "Wrappers of vector environments",
        "The same for many at once.",
        "aggmaze.wrappers.vector",
        (),
    ),
    Page(
        "models",
        "Models",
        "Transition models, and how to come by them.",
        "aggmaze",
        (
            "TabularMDP",
            "MoveMDP",
            "EventMDP",
            "EventStage",
            "load_model",
            "save_model",
            "model_by_rows",
            "MazeRows",
            "as_row_model",
            "MoveBlock",
            "open_rows",
            "save_rows",
            "tabularize",
            "Tabularized",
            "TabularizeProgress",
            "TabularizeError",
            "discretize",
            "Discretization",
        ),
    ),
    Page(
        "layouts",
        "Layouts and maps",
        "Where walls, goals and heights are.",
        "aggmaze",
        (
            "Layout",
            "layout_from_text",
            "layout_to_text",
            "Grid",
            "KingGrid",
            "Cell",
            "GridWorld",
            "GridWorldRules",
            "grid_world_model",
            "ready_layout",
            "ReadyLayout",
        ),
    ),
)
#: What is said of public names that are neither classes nor functions, and so have no docstring.
CONSTANTS = {
    "METHODS": "The methods of discounted costs: a dictionary from their names to what is known of "
    "them, such as what they do and which options they take.",
    "ENV_IDS": "The ids that importing the package registers with Gymnasium.",
    "TRAIN": "Arguments of `NewMazeEachEpisode`: the mazes to train on.",
    "TEST": "Arguments of `NewMazeEachEpisode`: mazes to test on, none of which is trained on.",
}
MODULES = tuple(dict.fromkeys(page.module for page in PAGES))


def pages() -> Iterator[Page]:
    """Yield the pages, with all public names of the modules on them, each once."""
    named = {
        module: {n for page in PAGES if page.module == module for n in page.names}
        for module in MODULES
    }
    for page in PAGES:
        names = public(importlib.import_module(page.module))
        if page.names:
            yield page._replace(names=tuple(name for name in page.names if name in names))
        else:
            yield page._replace(names=names)
    for module in MODULES:
        if not named[module]:
            continue
        rest = [n for n in public(importlib.import_module(module)) if n not in named[module]]
        if rest:
            name = f"more_of_{module.replace('.', '_')}"
            yield Page(name, f"More of {module}", "What else is public.", module, tuple(rest))


def public(module: ModuleType) -> tuple[str, ...]:
    """Return the public names of a module: those of ``__all__``, or what is defined in it."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, thing in vars(module).items()
            if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__
        ]
    return tuple(n for n in listed if not inspect.ismodule(getattr(module, n)))


def page_text(page: Page) -> str:
    """Return a page in reStructuredText."""
    module = importlib.import_module(page.module)
    lines = [page.title, "=" * len(page.title), "", page.line, "", f"In ``{page.module}``:", ""]
    lines += [f".. currentmodule:: {page.module}", "", ".. autosummary::", "   :nosignatures:", ""]
    lines += [f"   {name}" for name in page.names if name not in CONSTANTS]
    for name in page.names:
        lines += ["", *_directive(name, getattr(module, name))]
    return "\n".join([*lines, ""])


def _directive(name: str, thing: object) -> list[str]:
    if inspect.isclass(thing):
        return [f".. autoclass:: {name}", "   :members:", "   :show-inheritance:"]
    if callable(thing):
        return [f".. autofunction:: {name}"]
    if name not in CONSTANTS:
        raise ValueError(f"{name} has no docstring: say what it is in CONSTANTS of {__file__}")
    return [f".. py:data:: {name}", "", f"   {CONSTANTS[name]}"]


def index_text(found: list[Page]) -> str:
    """Return the page that lists the others."""
    rows = [f"- [{page.title}]({page.name}.rst): {page.line}" for page in found]
    tree = ["```{toctree}", ":hidden:", "", *[page.name for page in found], "```"]
    return "\n".join(
        [
            "# Reference",
            "",
            "Every public name of `aggmaze` and `planners`, out of the docstrings.",
            "",
            *rows,
            "",
            *tree,
            "",
        ]
    )
