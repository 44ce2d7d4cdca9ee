"""Explicit models as text, in the dialects of PRISM and of Storm.

============  =================================  ==================================
file          PRISM                              Storm
============  =================================  ==================================
``.tra``      ``S C T`` or ``S T``, then lines   ``mdp`` or ``dtmc``, then lines
              ``s c t p [action]`` (of a chain   ``s c t p`` (of a chain ``s t p``)
              ``s t p``)
``.lab``      ``0="init" 1="done"``, then        ``#DECLARATION init done #END``,
              ``s: 0 1``                         then ``s init done``
``.srew``     ``S N``, then ``s reward``         ``s reward``
``.trew``     ``S C N``, then                    ``s c t reward`` (of a chain
              ``s c t reward``                   ``s t reward``)
``.sta``      ``(x,y)``, then ``s:(1,2)``        none
============  =================================  ==================================

States and choices are numbered from 0.  Which dialect it is the first line of the ``.tra`` tells.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import shown
from aggmaze.files import readable_file
from aggmaze.formats.streams import read_text
from aggmaze.formats.systems import Structure, System, system_tables
from aggmaze.formats.text import Lines, number, whole
from aggmaze.models.tabular import TabularMDP

# Bytes that reading takes for each of the text, most of it Python objects: measured.
_COPIES = 24.0
_BESIDE = ("lab", "srew", "trew", "sta")


def read_prism(
    path: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
    state_rewards: str | os.PathLike[str] | None = None,
    transition_rewards: str | os.PathLike[str] | None = None,
    states: str | os.PathLike[str] | None = None,
    goal: str | None = None,
    values: str = "costs",
) -> TabularMDP:
    """Read an explicit model of PRISM's or Storm's, of which this is the ``.tra`` file.

    What lies beside it under the same name is read too: ``.lab``, ``.srew``, ``.trew`` and
    ``.sta``.  State and transition rewards are one reward structure; what the keywords ask
    `aggmaze.formats.systems.system_tables` says.  Files may be compressed by gzip.

    Parameters
    ----------
    path : path-like
    labels, state_rewards, transition_rewards, states : path-like, optional
        Other files than those beside it.
    goal : str, optional
    values : {"costs", "rewards", "reach", "avoid"}

    Returns
    -------
    TabularMDP
        Validated.

    Raises
    ------
    ValueError
        If a file is not such a text, with its line; or the model is not valid.
    FileNotFoundError, IsADirectoryError
        If that is what is there.
    MemoryError
        If the model needs more memory than is available.
    """
    given = dict(zip(_BESIDE, (labels, state_rewards, transition_rewards, states), strict=True))
    files: dict[str, str | os.PathLike[str]] = {}
    for suffix, other in given.items():
        beside = Path(path).with_suffix(f".{suffix}")
        if other is not None:
            files[suffix] = other
        elif beside.is_file() and beside != Path(path):
            files[suffix] = beside
    with readable_file(path, "a .tra file of transitions") as file:
        tra = _Transitions(_lines(file, path))
    parts: dict[str, NDArray[np.float64] | None] = {}
    marks: dict[str, NDArray[np.bool_]] = {}
    names: list[str] | None = None
    if "lab" in files:
        with readable_file(files["lab"], "a .lab file of labels") as file:
            marks = _labels(_lines(file, files["lab"]), tra.num_states)
    if "srew" in files:
        with readable_file(files["srew"], "a .srew file of state rewards") as file:
            parts["states"] = _state_rewards(_lines(file, files["srew"]), tra)
    if "trew" in files:
        with readable_file(files["trew"], "a .trew file of transition rewards") as file:
            parts["branches"] = _transition_rewards(_lines(file, files["trew"]), tra)
    if "sta" in files:
        with readable_file(files["sta"], "a .sta file of states") as file:
            names = _state_names(_lines(file, files["sta"]), tra.num_states)
    system = tra.system(marks, {"rewards": Structure(**parts)} if parts else {}, names)
    with readable_file(path, "a .tra file of transitions"):
        return TabularMDP(**system_tables(system, goal=goal, values=values)).validate()


def _lines(file: Any, path: str | os.PathLike[str]) -> Lines:
    return Lines(read_text(file, f"the text of {os.fspath(path)!r}", _COPIES), comment="# ")


class _Transitions:
    """What a ``.tra`` file holds, in the order of states and choices.

    Parameters
    ----------
    lines : Lines
    """

    def __init__(self, lines: Lines) -> None:
        body = iter(lines)
        head = next(body, "")
        counts = head.split()
        self.is_prism = bool(counts) and all(re.fullmatch(r"\d{1,18}", part) for part in counts)
        if self.is_prism and len(counts) in (2, 3):
            self.is_chain = len(counts) == 2
            told: list[int] | None = [int(part) for part in counts]
        elif head.lower() in ("mdp", "dtmc"):
            self.is_chain, told = head.lower() == "dtmc", None
        else:
            lines.refuse(
                "expected 'STATES CHOICES TRANSITIONS' as PRISM writes, or 'mdp' or 'dtmc' as "
                f"Storm does, got {head!r}"
            )
        states: list[int] = []
        choices: list[int] = []
        targets: list[int] = []
        chances: list[float] = []
        actions: dict[tuple[int, int], str] = {}
        width = 3 if self.is_chain else 4
        for text in body:
            parts = text.split(None, width)
            if len(parts) < width or (self.is_chain and len(parts) > width and told is None):
                form = (
                    "STATE NEXT PROBABILITY" if self.is_chain else ("STATE CHOICE NEXT PROBABILITY")
                )
                lines.refuse(f"expected '{form}', got {text!r}")
            states.append(whole(lines, parts[0], "a state"))
            choices.append(0 if self.is_chain else whole(lines, parts[1], "a choice"))
            targets.append(whole(lines, parts[width - 2], "a state"))
            chances.append(number(lines, parts[width - 1]))
            if len(parts) > width and not self.is_chain:
                key = states[-1], choices[-1]
                if actions.setdefault(key, parts[width]) != parts[width]:
                    lines.refuse(f"choice {key[1]} of state {key[0]} has two actions: {text!r}")
        if not states:
            raise ValueError("it has no transitions")
        self._actions = actions
        most = max(max(states), max(targets)) + 1
        self.num_states = most if told is None else told[0]
        # Every state is named in a line, unless nothing leads from it or to it.
        if most > self.num_states or self.num_states > 2 * len(states) + 1:
            raise ValueError(
                f"it tells of {self.num_states:,} states, names state {most - 1:,}, and has "
                f"{len(states):,} transitions"
            )
        if told is not None and told[-1] != len(states):
            raise ValueError(f"it has {len(states):,} transitions, its head tells of {told[-1]:,}")
        self._arrange(np.array(states), np.array(choices), np.array(targets), np.array(chances))
        if told is not None and not self.is_chain and told[1] != len(self._choice_state):
            raise ValueError(
                f"it has {len(self._choice_state):,} choices, its head tells of {told[1]:,}"
            )

    def _arrange(
        self,
        states: NDArray[np.int64],
        choices: NDArray[np.int64],
        targets: NDArray[np.int64],
        chances: NDArray[np.float64],
    ) -> None:
        order = np.lexsort((choices, states))
        states, choices = states[order], choices[order]
        self.targets, self.probabilities = targets[order], chances[order]
        new = np.ones(len(states), dtype=bool)
        new[1:] = (states[1:] != states[:-1]) | (choices[1:] != choices[:-1])
        first = np.flatnonzero(new)
        self._choice_state, numbers = states[first], choices[first]
        self.state_to_choices = np.searchsorted(
            self._choice_state, np.arange(self.num_states + 1)
        ).astype(np.int64)
        place = np.arange(len(first)) - self.state_to_choices[self._choice_state]
        wrong = np.flatnonzero(numbers != place)
        if len(wrong):
            raise ValueError(
                f"state {self._choice_state[wrong[0]]} has choice {numbers[wrong[0]]} and no "
                f"choice {place[wrong[0]]}: they are numbered from 0"
            )
        self.choice_to_branches = np.append(first, len(states)).astype(np.int64)

    def choice(self, lines: Lines, state: int, choice: int) -> int:
        """Return the place of a choice among all."""
        first, last = self.state_to_choices[state : state + 2].tolist()
        if not choice < last - first:
            lines.refuse(f"state {state} has no choice {choice}")
        return int(first + choice)

    def system(
        self,
        labels: dict[str, NDArray[np.bool_]],
        structures: dict[str, Structure],
        names: list[str] | None,
    ) -> System:
        """Return the system of these transitions."""
        nowhere = np.zeros(self.num_states, dtype=bool)
        action_names: list[str] | None = None
        actions: NDArray[np.int64] | None = None
        if len(self._actions) == len(self._choice_state):
            known: dict[str, int] = {}
            columns = np.empty(len(self._choice_state), dtype=np.int64)
            for (state, choice), name in self._actions.items():
                place = self.state_to_choices[state] + choice
                columns[place] = known.setdefault(name, len(known))
            actions, action_names = columns, list(known)
        return System(
            state_to_choices=self.state_to_choices,
            choice_to_branches=self.choice_to_branches,
            targets=self.targets,
            probabilities=self.probabilities,
            initial=labels.get("init", nowhere),
            labels=labels,
            structures=structures,
            choice_actions=actions,
            action_names=action_names,
            state_names=names,
        )


def _labels(lines: Lines, num_states: int) -> dict[str, NDArray[np.bool_]]:
    body = iter(lines)
    head = next(body, "")
    if head.split()[:1] == ["#DECLARATION"]:
        declared: list[str] = head.split()[1:]
        for text in chain(["#END"] if "#END" in declared else [], body):
            if text == "#END":
                break
            declared += text.split()
        else:
            lines.refuse("the #DECLARATION of labels has no #END")
        known = {name: name for name in declared if name != "#END"}
        separator = None
    else:
        pairs = re.findall(r'(\d{1,9})="([^"]*)"', head)
        if not pairs:
            lines.refuse(
                "expected '0=\"init\" 1=\"done\"' as PRISM writes, or '#DECLARATION' as Storm "
                f"does, got {head!r}"
            )
        known, separator = dict(pairs), ":"
    marked: dict[str, list[int]] = {name: [] for name in known.values()}
    for text in body:
        state, _, rest = text.partition(separator) if separator else text.partition(" ")
        place = _state(lines, state, num_states)
        for token in rest.split():
            if token not in known:
                lines.refuse(f"label {token!r} is not declared")
            marked[known[token]].append(place)
    found = {}
    for name, states in marked.items():
        found[name] = np.zeros(num_states, dtype=bool)
        found[name][states] = True
    return found


def _state_rewards(lines: Lines, tra: _Transitions) -> NDArray[np.float64]:
    rewards = np.zeros(tra.num_states)
    for text in _after_head(lines, tra.is_prism, 2, tra.num_states):
        parts = text.split()
        if len(parts) != 2:
            lines.refuse(f"expected 'STATE REWARD', got {text!r}")
        rewards[_state(lines, parts[0], tra.num_states)] = number(lines, parts[1])
    return rewards


def _transition_rewards(lines: Lines, tra: _Transitions) -> NDArray[np.float64]:
    rewards = np.zeros(len(tra.targets))
    width = 3 if tra.is_chain else 4
    for text in _after_head(lines, tra.is_prism, width - 1, tra.num_states):
        parts = text.split()
        if len(parts) != width:
            form = "STATE NEXT REWARD" if tra.is_chain else "STATE CHOICE NEXT REWARD"
            lines.refuse(f"expected '{form}', got {text!r}")
        state = _state(lines, parts[0], tra.num_states)
        choice = tra.choice(lines, state, 0 if tra.is_chain else whole(lines, parts[1], "a choice"))
        target = whole(lines, parts[-2], "a state")
        lo, hi = tra.choice_to_branches[choice : choice + 2].tolist()
        places = lo + np.flatnonzero(tra.targets[lo:hi] == target)
        if len(places) == 0:
            lines.refuse(f"there is no such transition: {text!r}")
        rewards[places] = number(lines, parts[-1])
    return rewards


def _after_head(lines: Lines, is_prism: bool, width: int, num_states: int) -> Iterator[str]:
    """Yield the lines after PRISM's head, which tells the number of states and of lines."""
    body = iter(lines)
    if not is_prism:
        yield from body
        return
    head = next(body, "")
    counts = head.split()
    if len(counts) != width:
        lines.refuse(f"expected {width} numbers, of states first, got {head!r}")
    if whole(lines, counts[0], "the number of states") != num_states:
        lines.refuse(f"it tells of {counts[0]} states, there are {num_states:,}")
    left = whole(lines, counts[-1], "the number of rewards")
    for text in body:
        left -= 1
        yield text
    if left:
        raise ValueError(
            f"its head tells of {counts[-1]} rewards, and {abs(left)} are "
            f"{'missing' if left > 0 else 'too many'}"
        )


def _state_names(lines: Lines, num_states: int) -> list[str]:
    names = [str(state) for state in range(num_states)]
    body = iter(lines)
    next(body, "")
    for text in body:
        state, colon, name = text.partition(":")
        if not colon:
            lines.refuse(f"expected 'STATE:(VALUES)', got {text!r}")
        names[_state(lines, state, num_states)] = name.strip()
    return names


def _state(lines: Lines, text: str, num_states: int) -> int:
    state = whole(lines, text, "a state")
    if state >= num_states:
        lines.refuse(f"state {shown(state)} is none of the {num_states:,} states")
    return state
