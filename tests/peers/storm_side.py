"""What Storm does for check_storm.py, in an environment of Python 3.12 with stormpy alone.

``storm_side.py FOLDER`` reads ``FOLDER/ours.json``, a list of files with questions, and answers
each; builds the published examples that come with stormpy, and writes each to ``FOLDER`` as DRN and
as UMB.  All answers go to ``FOLDER/storm.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import stormpy
import stormpy.examples.files
import stormpy.io
from stormpy import Rational

EXAMPLES = Path(stormpy.examples.files.__file__).parent / "files"

# Models of the PRISM benchmark suite (Kwiatkowska, Norman and Parker, 2012), most of them in QVBS
# too, with the label and reward structure that is asked for, and the questions of `solve`.
PUBLISHED: list[tuple[str, str, str | None, list[str]]] = [
    ("mdp/two_dice.nm", "done", "coinflips", ["min", "max"]),
    ("mdp/two_dice.nm", "two", None, ["reach", "avoid"]),
    ("mdp/coin2-2.nm", "finished", "steps", ["min"]),
    ("mdp/coin2-2.nm", "all_coins_equal_1", None, ["reach", "avoid"]),
    ("mdp/csma2-2.nm", "all_delivered", "time", ["min", "max"]),
    ("mdp/csma2-2.nm", "collision_max_backoff", None, ["reach", "avoid"]),
    ("mdp/firewire3-0.5.nm", "elected", "time", ["min", "max"]),
    ("mdp/leader4.nm", "elected", "rounds", ["min", "max"]),
    ("mdp/slipgrid.nm", "target", "", ["min"]),
    ("dtmc/die.pm", "done", "coin_flips", ["min"]),
    ("dtmc/crowds-5-5.pm", "observe0Greater1", None, ["reach"]),
    ("dtmc/brp-16-2.pm", "target", None, ["reach"]),
    ("dtmc/nand-5-2.pm", "target", None, ["reach"]),
    ("dtmc/leader-3-5.pm", "elected", "num_rounds", ["min"]),
]
# Explicit files that come with Storm: transitions, labels, rewards of transitions, a question.
EXPLICIT: list[tuple[str, str, str | None, str, str]] = [
    ("two_dice", "two_dice", "two_dice.flip", "done", "min"),
    ("die", "die", "die.coin_flips", "done", "min"),
    ("leader4", "leader4", "leader4", "elected", "min"),
    ("crowds5_5", "crowds5_5", None, "observe0Greater1", "reach"),
]


def formula(goal: str, structure: str | None, question: str, is_chain: bool) -> str:
    """Return a question as Storm asks it."""
    if question in ("reach", "avoid"):
        way = "" if is_chain else ("max" if question == "reach" else "min")
        return f'P{way}=? [F "{goal}"]'
    name = f'{{"{structure}"}}' if structure else ""
    return f'R{name}{"" if is_chain else question}=? [F "{goal}"]'


def answers(model: Any, exact: Any, asked: str) -> float:
    """Return Storm's answer at the initial state: exact where there is an exact model."""
    question = stormpy.parse_properties(asked)[0]
    environment = stormpy.Environment()
    environment.solver().force_soundness = True
    environment.solver().min_max().precision = Rational("1e-12")
    kinds = type(environment.solver().get_linear_equation_solver_type())
    environment.solver().set_linear_equation_solver_type(kinds.EIGEN)
    used = model if exact is None else exact
    result = stormpy.model_checking(used, question, environment=environment)
    state = used.initial_states[0]
    return float(result.get_value(state))


def of_ours(folder: Path) -> list[Any]:
    """Answer the questions about files that were written for Storm."""
    found = []
    for entry in json.loads((folder / "ours.json").read_text()):
        path = str(folder / entry["file"])
        build = (
            stormpy.build_model_from_umb if path.endswith(".umb") else stormpy.build_model_from_drn
        )
        model = build(path)
        value = answers(model, None, formula("terminal", "cost", "min", False))
        found.append({**entry, "value": value, "states": model.nr_states})
    return found


def published(folder: Path) -> list[Any]:
    """Build the published models, write them, and answer what is asked of each."""
    found = []
    for place, (name, goal, structure, questions) in enumerate(PUBLISHED):
        program = stormpy.io.parse_prism_program(str(EXAMPLES / name))
        options = stormpy.BuilderOptions(build_full=True)
        options.set_build_choice_labels(True)
        model = stormpy.build_model(program, options=options)
        exact = stormpy.build_model[Rational](program, options=options)
        if goal not in model.labeling.get_labels():
            found.append({"name": name, "missing": goal})
            continue
        stem = f"published{place}"
        stormpy.io.export_to_drn(model, str(folder / f"{stem}.drn"))
        stormpy.io.export_to_umb(model, str(folder / f"{stem}.umb"))
        stormpy.io.export_to_drn(exact, str(folder / f"{stem}-exact.drn"))
        is_chain = "DTMC" in str(model.model_type)
        for question in questions:
            value = answers(model, exact, formula(goal, structure, question, is_chain))
            found.append(
                {
                    "name": name,
                    "stem": stem,
                    "goal": goal,
                    "structure": structure,
                    "question": question,
                    "value": value,
                    "states": model.nr_states,
                }
            )
    return found


def explicit() -> list[Any]:
    """Answer questions about the explicit texts that come with Storm."""
    found = []
    for transitions, labels, rewards, goal, question in EXPLICIT:
        files = {
            "path": str(EXAMPLES / "tra" / f"{transitions}.tra"),
            "labels": str(EXAMPLES / "lab" / f"{labels}.lab"),
        }
        if rewards:
            files["transition_rewards"] = str(EXAMPLES / "rew" / f"{rewards}.trans.rew")
        model = stormpy.build_model_from_explicit(
            files["path"], files["labels"], transition_rewards=files.get("transition_rewards")
        )
        is_chain = "DTMC" in str(model.model_type)
        value = answers(model, None, formula(goal, None, question, is_chain))
        found.append({**files, "goal": goal, "question": question, "value": value})
    return found


def main() -> None:
    """Write all answers."""
    folder = Path(sys.argv[1])
    told = {"ours": of_ours(folder), "published": published(folder), "explicit": explicit()}
    (folder / "storm.json").write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
