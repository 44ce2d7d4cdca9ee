"""DRN, the text in which Storm writes and reads explicit models ("direct encoding").

    @type: MDP
    @value_type: double
    @parameters

    @reward_models
    coinflips
    @nr_states
    2
    @nr_choices
    2
    @model
    state 0 [0] init
        action flip [1]
            0 : 0.5
            1 : 0.5
    state 1 [0] done
        action stay [0]
            1 : 1

The numbers in brackets are those of the reward models, of the state and of the choice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import did_you_mean
from aggmaze.files import atomic_file, readable_file
from aggmaze.formats.streams import read_text
from aggmaze.formats.systems import (
    COST,
    Structure,
    SupportsSystem,
    System,
    kind_losses,
    system_of,
    system_tables,
)
from aggmaze.formats.text import Lines, number, whole
from aggmaze.models.tabular import TabularMDP
from aggmaze.progress import report, stage

_WHAT = "a DRN model"
# Bytes that reading takes for each of the text, most of it Python objects: measured.
_COPIES = 22.0
_TYPES = ("MDP", "DTMC")
_VALUE_TYPES = ("double", "rational")
_SECTIONS = (
    "@type:",
    "@value_type:",
    "@parameters",
    "@placeholders",
    "@reward_models",
    "@nr_states",
    "@nr_choices",
    "@model",
)
_PLAIN = re.compile(r"[^\s\[\]{}!\"]+")
# States whose lines are written at a time.
_BLOCK = 4096


def write_drn(model: SupportsSystem, path: str | os.PathLike[str]) -> None:
    """Write a model as a DRN file, whole or not at all.

    Numbers are written so that they are read back to the last bit.  Costs are the reward model
    ``cost``, of choices, and terminal states have the label ``terminal``.  The format has no place
    for what each outcome costs, only for the mean; nor for a distribution of the first state, of
    which it marks the states that are possible; nor for names of states.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    path : path-like

    Raises
    ------
    ValueError
        If the model is not valid.
    FileNotFoundError
        If there is no such folder.
    """
    with stage("its choices one by one"):
        system = system_of(model)
    costs = system.structures[COST].choices
    assert costs is not None
    assert system.choice_actions is not None
    assert system.action_names is not None
    names = [
        name if _PLAIN.fullmatch(name) else str(place)
        for place, name in enumerate(system.action_names)
    ]
    terminal = model.terminal
    with atomic_file(path) as file:
        head = (
            "@type: MDP\n@value_type: double\n@parameters\n\n"
            f"@reward_models\n{COST}\n@nr_states\n{system.num_states}\n"
            f"@nr_choices\n{len(costs)}\n@model\n"
        )
        file.write(head.encode())
        for lo in range(0, system.num_states, _BLOCK):
            report(lo, system.num_states, "states")
            hi = min(lo + _BLOCK, system.num_states)
            first = system.state_to_choices[lo : hi + 1].tolist()
            starts = system.choice_to_branches[first[0] : first[-1] + 1].tolist()
            prices = costs[first[0] : first[-1]].tolist()
            actions = system.choice_actions[first[0] : first[-1]].tolist()
            targets = system.targets[starts[0] : starts[-1]].tolist()
            chances = system.probabilities[starts[0] : starts[-1]].tolist()
            lines: list[str] = []
            for place, state in enumerate(range(lo, hi)):
                labels = (" init" if system.initial[state] else "") + (
                    " terminal" if terminal[state] else ""
                )
                lines.append(f"state {state} [0]{labels}\n")
                for c in range(first[place] - first[0], first[place + 1] - first[0]):
                    lines.append(f"\taction {names[actions[c]]} [{prices[c]!r}]\n")
                    for b in range(starts[c] - starts[0], starts[c + 1] - starts[0]):
                        lines.append(f"\t\t{targets[b]} : {chances[b]!r}\n")
            file.write("".join(lines).encode())


def drn_losses(model: SupportsSystem) -> list[str]:
    """Return what of a model DRN does not hold, in words.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    """
    lost = kind_losses(model)
    table = model.to_tabular()
    if not table.action_mask.all():
        lost.append("unavailable actions, which are read back at a cost that never pays")
    if table.outcome_costs is not None:
        lost.append("what each outcome costs: it holds their mean")
    started = model.initial > 0
    if not np.array_equal(started / np.count_nonzero(started), model.initial):
        lost.append("how likely each first state is: it marks those that are possible")
    if model.num_added_states:
        lost.append(f"that the last {model.num_added_states} states are added")
    if table.state_names is not None:
        lost.append("the names of the states")
    names = table.action_names or ()
    if any(not (isinstance(name, str) and _PLAIN.fullmatch(name)) for name in names):
        lost.append("names of actions that are no plain words")
    return lost


def read_drn(
    path: str | os.PathLike[str],
    *,
    goal: str | None = None,
    structure: str | None = None,
    values: str = "costs",
) -> TabularMDP:
    """Read a DRN file of a Markov decision process or a discrete-time Markov chain.

    A chain has one action.  What the keywords ask `aggmaze.formats.systems.system_tables` says;
    the reward model without a name is called ``""``.  Values may be doubles or fractions.  The file
    may be compressed by gzip.

    Parameters
    ----------
    path : path-like
    goal, structure : str, optional
    values : {"costs", "rewards", "reach", "avoid"}

    Returns
    -------
    TabularMDP
        Validated.

    Raises
    ------
    ValueError
        If the file is not such a model, with the line where that shows; or is of another kind
        (parameters, continuous time, observations, intervals), or the model is not valid.
    FileNotFoundError, IsADirectoryError
        If that is what is there.
    MemoryError
        If the model needs more memory than is available.
    """
    with readable_file(path, _WHAT) as file:
        text = read_text(file, f"the text of {os.fspath(path)!r}", _COPIES)
        system = _Reader(Lines(text, comment="//")).read()
        del text
        tables = system_tables(system, goal=goal, structure=structure, values=values)
        return TabularMDP(**tables).validate()


class _Reader:
    """The reader of one text."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._placeholders: dict[str, float] = {}
        self._models: list[str] = []
        self._counts: dict[str, int] = {}
        self._kind = ""

    def read(self) -> System:
        """Return the system that the text holds."""
        lines = self._lines
        body = iter(lines)
        self._head(body)
        labels: dict[str, list[int]] = {}
        names: dict[str, int] = {}
        state_rewards: list[list[float]] = []
        choice_rewards: list[list[float]] = []
        first_choice: list[int] = []
        first_branch: list[int] = []
        actions: list[int] = []
        targets: list[int] = []
        chances: list[float] = []
        for text in body:
            if text.startswith("state"):
                state, rewards, marks = self._state(text)
                if state != len(first_choice):
                    lines.refuse(f"state {len(first_choice)} must come next, got {text!r}")
                first_choice.append(len(actions))
                state_rewards.append(rewards)
                for mark in marks:
                    labels.setdefault(mark, []).append(state)
            elif text.startswith("action"):
                if not first_choice:
                    lines.refuse(f"an action before the first state: {text!r}")
                name, rewards = self._action(text)
                first_branch.append(len(targets))
                choice_rewards.append(rewards)
                actions.append(names.setdefault(name, len(names)))
            else:
                target, colon, chance = text.partition(":")
                if not colon or len(first_branch) == 0:
                    lines.refuse(
                        f"expected 'state', 'action' or 'state : probability', got {text!r}"
                    )
                if first_branch and len(actions) == first_choice[-1]:
                    lines.refuse(f"an outcome of state {len(first_choice) - 1} before its action")
                targets.append(whole(lines, target, "a state"))
                chances.append(self._value(chance))
        num_states = len(first_choice)
        self._check_counts(num_states, len(actions))
        following = np.array(targets, dtype=np.int64)
        if len(following) and following.max() >= num_states:
            raise ValueError(
                f"an outcome leads to state {following.max()}, there are {num_states:,} states"
            )
        starts = labels.get("init", [])
        marked = {name: _marked(states, num_states) for name, states in labels.items()}
        order, place = _in_columns(names)
        return System(
            state_to_choices=np.array([*first_choice, len(actions)], dtype=np.int64),
            choice_to_branches=np.array([*first_branch, len(targets)], dtype=np.int64),
            targets=following,
            probabilities=np.array(chances, dtype=np.float64),
            initial=_marked(starts, num_states),
            labels=marked,
            structures=self._structures(state_rewards, choice_rewards),
            choice_actions=place[np.array(actions, dtype=np.int64)],
            action_names=order,
        )

    def _head(self, body: Iterator[str]) -> None:
        lines, section = self._lines, ""
        for text in body:
            if text.startswith("@"):
                section = text.split()[0]
                if section not in _SECTIONS:
                    hint = did_you_mean(section, _SECTIONS)
                    lines.refuse(f"no section of DRN: {text!r}{hint}")
                if section == "@type:":
                    self._kind = text[len(section) :].strip()
                    if self._kind not in _TYPES:
                        lines.refuse(f"@type must be MDP or DTMC, got {self._kind!r}")
                elif section == "@value_type:":
                    found = text[len(section) :].strip()
                    if found not in _VALUE_TYPES:
                        lines.refuse(f"@value_type must be double or rational, got {found!r}")
                elif section == "@reward_models":
                    self._models = lines.raw_next().split(" ")
                    # Each name is followed by a space, and one may be empty.
                    if self._models[-1] == "":
                        self._models.pop()
                elif section == "@model":
                    if not self._kind:
                        lines.refuse("there is no '@type: MDP' before the model")
                    return
            elif section == "@parameters":
                lines.refuse(
                    f"it has the parameters {text!r}: give them values first, in the tool that "
                    "wrote it"
                )
            elif section == "@placeholders":
                name, colon, value = text.partition(":")
                if not colon or not name.strip().startswith("$"):
                    lines.refuse(f"expected '$name : value', got {text!r}")
                self._placeholders[name.strip()[1:]] = number(lines, value)
            elif section in ("@nr_states", "@nr_choices") and section not in self._counts:
                self._counts[section] = whole(lines, text, f"the number after {section}")
            else:
                lines.refuse(f"does not belong before @model: {text!r}")
        raise ValueError("there is no @model in it")

    def _check_counts(self, num_states: int, num_choices: int) -> None:
        if num_states == 0:
            raise ValueError("it has no states")
        for name, found in (("@nr_states", num_states), ("@nr_choices", num_choices)):
            told = self._counts.get(name, found)
            if told != found:
                raise ValueError(f"{name} says {told:,}, and it has {found:,}")

    def _state(self, text: str) -> tuple[int, list[float], list[str]]:
        match = re.fullmatch(r"state\s+(\d{1,18})(?!\d)\s*(?:\[([^\]]*)\])?\s*(.*)", text)
        if match is None:
            self._lines.refuse(f"expected 'state NUMBER [rewards] labels', got {text!r}")
        state, rewards, rest = match.groups()
        if rest.startswith(("!", "{")):
            self._lines.refuse(
                f"exit rates (!) and observations ({{}}) are of other kinds of models: {text!r}"
            )
        marks = [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', rest)]
        return int(state), self._rewards(rewards), marks

    def _action(self, text: str) -> tuple[str, list[float]]:
        match = re.fullmatch(r"action(?:\s+(.*?))?\s*(?:\[([^\]]*)\])?", text)
        if match is None:
            self._lines.refuse(f"expected 'action NAME [rewards]', got {text!r}")
        return match[1] or "", self._rewards(match[2])

    def _rewards(self, text: str | None) -> list[float]:
        if text is None or not text.strip():
            return []
        values = [self._value(part) for part in text.split(",")]
        if not self._models and len(values) == 1:
            self._models = [""]  # that of no name, whose space an editor may have taken away
        if len(values) != len(self._models):
            self._lines.refuse(
                f"{len(values)} rewards for the {len(self._models)} reward models: [{text}]"
            )
        return values

    def _value(self, text: str) -> float:
        token = text.strip()
        if token.startswith("$"):
            if token[1:] not in self._placeholders:
                self._lines.refuse(f"there is no placeholder {token!r}")
            return self._placeholders[token[1:]]
        return number(self._lines, token)

    def _structures(
        self, states: list[list[float]], choices: list[list[float]]
    ) -> dict[str, Structure]:
        found = {}
        for place, name in enumerate(self._models):
            parts = []
            for rewards in (states, choices):
                column = np.array([row[place] if row else 0.0 for row in rewards])
                parts.append(column if column.any() else None)
            found[name] = Structure(*parts)
        return found


def _marked(states: list[int], num_states: int) -> NDArray[np.bool_]:
    marked = np.zeros(num_states, dtype=bool)
    marked[states] = True
    return marked


def _in_columns(names: dict[str, int]) -> tuple[list[str], NDArray[Any]]:
    """Return the names of actions in their columns, and the column of each as it was found.

    In the order in which they are found, but by their numbers where they all are numbers.
    """
    found = list(names)
    if found and all(re.fullmatch(r"0|[1-9]\d{0,8}", name) for name in found):
        width = max(map(int, found)) + 1
        if width <= 2 * len(found):
            order = [str(column) for column in range(width)]
            return order, np.array([int(name) for name in found], dtype=np.int64)
    if any(name in ("", "__NOLABEL__") for name in found):
        place = np.array([-1 if name in ("", "__NOLABEL__") else k for k, name in enumerate(found)])
        return found, place  # without a name; the others may have one
    return found, np.arange(len(found))
