"""UMB, the binary format that the verification tools PRISM, Storm and Modest share.

A tar archive, which may be compressed: ``index.json`` says what there is and in which types, and
the other members are arrays without a head, of which the index tells the length (Andriushchenko
et al., "UMB: a unified Markov binary format", arXiv 2606.17811; package ``umbi``).

Read and written here with numpy rather than by ``umbi``, which makes a Python object of every
number (a million branches take it 10 s and 500 MB), unpacks whatever an archive holds before it
looks at the index, and finds faults with ``assert``.  The tests compare with it, both ways.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import re
import sys
import tarfile
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggmaze.checks import as_float, is_real, shown
from aggmaze.files import atomic_file, readable_file
from aggmaze.formats.streams import Stream
from aggmaze.formats.systems import (
    OUTCOME_COST,
    Own,
    Structure,
    SupportsSystem,
    System,
    system_of,
    system_tables,
)
from aggmaze.memory import check_memory
from aggmaze.models.tabular import TabularMDP
from aggmaze.names import Names, names_from_bytes, names_to_bytes
from aggmaze.progress import Counted

_WHAT = "a UMB model"
# Versions of the format that are read: that of the paper, which Storm writes, and umbi's.
_VERSIONS = (0, 1)
_TOOL = "aggmaze"
_BLOCK = 512
_MOST_INDEX_BYTES = 2**26
_MOST_NAME_BYTES = 2**16
_MOST_MEMBERS = 100_000
# Memory over that of the members, with what is made of them: measured.
_COPIES = 8.0
_INTEGERS = {8: "1", 16: "2", 32: "4", 64: "8"}
# Level 1 takes a quarter of the time of zlib's default, and files are hardly larger.
_COMPRESSION_LEVEL = 1


def write_umb(model: SupportsSystem, path: str | os.PathLike[str]) -> None:
    """Write a model as a UMB file, compressed by gzip, whole or not at all.

    Costs are the reward structure ``cost``, of choices; where the outcomes of an action cost
    differently ``outcome_cost`` has those of branches, whose means are ``cost``.  Terminal states
    have the label ``terminal``.  What the format has no place for is in ``file-data.parameters``
    (the number of added states, what unavailable actions cost, names of actions) and in the
    annotations ``aggmaze`` (a distribution of the first state that is not uniform over some, names
    of states in JSON), each if there is such.  Actions have their names as texts, or numbers.

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
    system = system_of(model)
    assert system.own is not None
    members: dict[str, bytes] = {}
    num_choices, num_branches = len(system.choice_to_branches) - 1, len(system.targets)
    annotations: dict[str, dict[str, Any]] = {"aps": {}, "rewards": {}}
    for name, states in system.labels.items():
        annotations["aps"][name] = _annotation(name, "states", "bool", 1)
        members[f"annotations/aps/{name}/states/values.bin"] = _bits(states)
    for name, structure in system.structures.items():
        slug = name.replace("_", "-")
        part = "branches" if name == OUTCOME_COST else "choices"
        annotations["rewards"][slug] = _annotation(name, part, "double", 64)
        numbers = structure.branches if name == OUTCOME_COST else structure.choices
        assert numbers is not None
        members[f"annotations/rewards/{slug}/{part}/values.bin"] = _doubles(numbers)
    extra = {}
    if system.own.initial is not None:
        extra["initial"] = _annotation("initial", "states", "double", 64)
        members["annotations/aggmaze/initial/states/values.bin"] = _doubles(system.own.initial)
    if system.state_names is not None:
        texts = [json.dumps(name) for name in _kept("state_names", system.state_names)]
        texts += ["null"] * system.own.num_added_states
        extra["names"] = _annotation("names", "states", "string", 64) | {"#strings": len(texts)}
        members |= _strings("annotations/aggmaze/names/states", texts)
    if extra:
        annotations["aggmaze"] = extra
    assert system.choice_actions is not None
    assert system.action_names is not None
    index = {
        "format-version": 1,
        "format-revision": 0,
        "file-data": {
            "tool": _TOOL,
            "parameters": {
                "num-added-states": system.own.num_added_states,
                "unavailable-cost": system.own.idle_cost,
                "action-names": _kept("action_names", system.own.action_names),
            },
        },
        "transition-system": {
            "time": "discrete",
            "#players": 1,
            "#states": system.num_states,
            "#initial-states": int(np.count_nonzero(system.initial)),
            "#choices": num_choices,
            "#choice-actions": len(system.action_names),
            "#branches": num_branches,
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": {"type": "double", "size": 64},
        },
        "annotations": annotations,
    }
    arrays = {
        "index.json": json.dumps(index, indent=1).encode(),
        "state-is-initial.bin": _bits(system.initial),
        "state-to-choices.bin": system.state_to_choices.astype("<u8").tobytes(),
        "choice-to-branches.bin": system.choice_to_branches.astype("<u8").tobytes(),
        "branch-to-target.bin": system.targets.astype("<u8").tobytes(),
        "branch-to-probability.bin": _doubles(system.probabilities),
        "actions/choices/values.bin": system.choice_actions.astype("<u4").tobytes(),
        **_strings("actions/choices", system.action_names),
        **members,
    }
    total, done = sum(map(len, arrays.values())), 0
    with (
        atomic_file(path) as file,
        gzip.GzipFile("", "wb", _COMPRESSION_LEVEL, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, data in arrays.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            counted = Counted(io.BytesIO(data), total, done)
            archive.addfile(member, counted)
            done += len(data)


def read_umb(
    path: str | os.PathLike[str],
    *,
    goal: str | None = None,
    structure: str | None = None,
    values: str = "costs",
) -> TabularMDP:
    """Read a UMB file of a Markov decision process or a discrete-time Markov chain.

    A chain has one action.  Choices are columns by the names of their actions where that can be:
    see `aggmaze.formats.systems.system_tables`, which says what the keywords ask.  Valuations of
    variables are not read.  Files of `write_umb` come back as the model was.

    The index is checked against itself, the members against the index and the machine, before an
    array is allocated; members may not be links, nor lie outside the archive.

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
        If the file is not such a model, or damaged, or of another kind (continuous time, several
        players, observations, intervals), or the model is not valid.
    FileNotFoundError, IsADirectoryError
        If that is what is there.
    MemoryError
        If the model needs more memory than is available.
    """
    with readable_file(path, _WHAT) as file:
        index = _read_index(file)
        file.seek(0)
        system = _System(index, os.fspath(path)).read(Stream(file))
        tables = system_tables(system, goal=goal, structure=structure, values=values)
        return TabularMDP(**tables).validate()


def _read_index(file: Any) -> dict[str, Any]:
    stream = Stream(file)
    for name, size in _members(stream):
        if name == "index.json":
            if size > _MOST_INDEX_BYTES:
                raise ValueError(f"index.json has {size:,} bytes, at most {_MOST_INDEX_BYTES:,}")
            check_memory(20 * size, "the entries of index.json")
            index = json.loads(stream.read(size).decode("utf-8"))
            if not isinstance(index, dict):
                raise ValueError("index.json must hold an object")
            return index
        stream.skip(size)
    raise ValueError("there is no index.json in it")


class _System:
    """The reader of an archive whose index is known."""

    def __init__(self, index: dict[str, Any], path: str) -> None:
        version = index.get("format-version")
        if version not in _VERSIONS or isinstance(version, bool):
            raise ValueError(f"format-version must be 0 or 1, got {version!r}")
        self._path = path
        self._index = index
        self._ts = ts = _object(index, "transition-system")
        if ts.get("time") != "discrete":
            raise ValueError(f"time must be 'discrete', got {ts.get('time')!r}")
        players, self.S = _count(ts, "#players", 0), _count(ts, "#states", 1)
        self.C, self.B = _count(ts, "#choices", 0), _count(ts, "#branches", 0)
        self.num_actions = _count(ts, "#choice-actions", 0)
        if players > 1:
            raise ValueError(f"#players must be 0 or 1, got {players}: games have no one optimum")
        if _count(ts, "#observations", 0):
            raise ValueError("it has observations: a POMDP is no MDP of its states")
        if players == 0 and self.C > self.S:
            raise ValueError(f"without a player each state has a choice at most, got {self.C:,}")
        # What is wanted of the archive: member -> least and largest number of bytes.
        self._wanted: dict[str, tuple[int, int]] = {}
        self._want("state-to-choices.bin", 8 * (self.S + 1))
        self._want("choice-to-branches.bin", 8 * (self.C + 1))
        self._want("branch-to-target.bin", 8 * self.B)
        self._plan()

    def _want(self, name: str, size: int) -> None:
        self._wanted[name] = size, size

    def _want_bits(self, name: str, number: int) -> None:
        self._wanted[name] = -(-number // 8), _bit_bytes(number)

    def _want_texts(self, folder: str, number: int) -> None:
        self._want(f"{folder}/string-mapping.bin", 8 * (number + 1))
        self._wanted[f"{folder}/strings.bin"] = 0, sys.maxsize

    def _plan(self) -> None:
        ts = self._ts
        self._num_initial = _count(ts, "#initial-states", 0)
        if self._num_initial:
            self._want_bits("state-is-initial.bin", self.S)
        self._chance = _type(ts, "branch-probability-type", "branch-probability-type")
        if self._chance is not None:
            if self._chance[0] not in ("double", "rational"):
                raise ValueError(
                    f"branch-probability-type must be double or rational, got {self._chance[0]!r}"
                )
            self._want("branch-to-probability.bin", self.B * self._chance[1] // 8)
        if self.num_actions:
            folder = "actions/choices"
            self._want(f"{folder}/values.bin", 4 * self.C)
            self._want_texts(folder, self.num_actions)
        groups = self._index.get("annotations") or {}
        if not isinstance(groups, dict):
            raise ValueError("annotations must be an object")
        self._annotations: list[tuple[str, str, str, str, tuple[str, int]]] = []
        for group in ("aps", "rewards", "aggmaze"):
            found = groups.get(group) or {}
            if not isinstance(found, dict):
                raise ValueError(f"annotations.{group} must be an object")
            for slug, told in found.items():
                self._plan_annotation(group, slug, told)

    def _plan_annotation(self, group: str, slug: str, told: Any) -> None:
        where = f"annotations.{group}.{slug}"
        if not isinstance(told, dict):
            raise ValueError(f"{where} must be an object")
        kind = _type(told, "type", where)
        parts = told.get("applies-to")
        if kind is None or not isinstance(parts, list) or not parts:
            raise ValueError(f"{where} must have a type and say to what it applies-to")
        if told.get("probability-type") is not None:
            raise ValueError(f"{where}: annotations that are drawn by chance cannot be read")
        alias = told.get("alias")
        name = alias if isinstance(alias, str) else slug
        for part in parts:
            if part not in ("states", "choices", "branches"):
                raise ValueError(f"{where} applies to {part!r}, not states, choices or branches")
            number = {"states": self.S, "choices": self.C, "branches": self.B}[part]
            folder = f"annotations/{group}/{slug}/{part}"
            if group == "aps" and (part != "states" or kind[0] != "bool"):
                raise ValueError(f"{where} must be of type bool and apply to states")
            if group == "rewards" and kind[0] not in ("double", "rational", "int", "uint"):
                raise ValueError(f"{where} must be numbers, got type {kind[0]!r}")
            if group == "aggmaze" and (slug, part, kind[0]) not in (
                ("initial", "states", "double"),
                ("names", "states", "string"),
            ):
                continue
            if kind[0] == "string":
                self._want_texts(folder, number)
            elif kind[0] == "bool":
                self._want_bits(f"{folder}/values.bin", number)
            else:
                self._want(f"{folder}/values.bin", number * kind[1] // 8)
            self._annotations.append((group, slug, part, name, kind))

    def read(self, stream: Stream) -> System:
        """Return the system, whose members are read here."""
        data: dict[str, bytes] = {}
        seen: set[str] = set()
        total = 0
        for name, size in _members(stream):
            if name in seen:
                raise ValueError(f"it holds {name!r} twice")
            seen.add(name)
            if name not in self._wanted:
                if stream.skip(size) < size:
                    raise EOFError(f"it ends within {name!r}")
                continue
            least, largest = self._wanted[name]
            if not least <= size <= largest:
                raise ValueError(f"{name} has {size:,} bytes, the index tells of {largest:,}")
            if size > stream.most:
                raise EOFError(f"it ends within {name!r}")
            total += size
            check_memory(math.ceil(_COPIES * total), f"the arrays of {self._path!r}")
            data[name] = stream.read(size)
            if len(data[name]) < size:
                raise EOFError(f"it ends within {name!r}")
        return self._assemble(data)

    def _assemble(self, data: Mapping[str, bytes]) -> System:
        # The branches first: offsets that are missing, one each, then cost no more than the file.
        targets = _unsigned(_member(data, "branch-to-target.bin") if self.B else b"", 8)
        choice_to_branches = self._offsets(data, "choice-to-branches.bin", self.C, self.B)
        state_to_choices = self._offsets(data, "state-to-choices.bin", self.S, self.C)
        if len(targets) and targets.max() >= self.S:
            branch = int(np.argmax(targets >= self.S))
            raise ValueError(
                f"branch {branch} leads to state {targets[branch]}, there are {self.S:,} states"
            )
        if self._chance is None:
            if (np.diff(choice_to_branches) != 1).any():
                raise ValueError("without probabilities every choice must have one branch")
            probabilities = np.ones(self.B)
        else:
            probabilities = _numbers(_member(data, "branch-to-probability.bin"), *self._chance)
        initial = np.zeros(self.S, dtype=bool)
        if self._num_initial:
            initial = self._truths(_member(data, "state-is-initial.bin"), self.S)
            if np.count_nonzero(initial) != self._num_initial:
                raise ValueError(
                    f"state-is-initial.bin marks {np.count_nonzero(initial):,} states, the index "
                    f"tells of {self._num_initial:,}"
                )
        actions, names = self._actions(data)
        labels: dict[str, NDArray[np.bool_]] = {"init": initial} if self._num_initial else {}
        parts: dict[str, dict[str, NDArray[np.float64]]] = {}
        own_initial: NDArray[np.float64] | None = None
        state_texts: list[str] | None = None
        for group, slug, part, name, kind in self._annotations:
            folder = f"annotations/{group}/{slug}/{part}"
            if group == "aggmaze" and slug == "names":
                state_texts = self._texts(data, folder, self.S)
                continue
            held = _member(data, f"{folder}/values.bin")
            if group == "aps":
                labels[name] = self._truths(held, self.S)
            elif group == "rewards":
                parts.setdefault(name, {})[part] = _numbers(held, *kind)
            else:
                own_initial = _numbers(held, *kind)
        own = self._own(own_initial)
        state_names: Names | None = None
        if own is not None and state_texts is not None:
            listed = state_texts[: max(self.S - own.num_added_states, 0)]
            state_names = _names("state_names", f"[{', '.join(listed)}]", len(listed))
        return System(
            state_to_choices=state_to_choices,
            choice_to_branches=choice_to_branches,
            targets=targets.astype(np.int64),
            probabilities=probabilities,
            initial=initial,
            labels=labels,
            structures={name: Structure(**found) for name, found in parts.items()},
            choice_actions=actions,
            action_names=names,
            state_names=state_names,
            own=own,
        )

    def _own(self, initial: NDArray[np.float64] | None) -> Own | None:
        told = self._index.get("file-data")
        if not isinstance(told, dict) or told.get("tool") != _TOOL:
            return None
        parameters = _object(told, "parameters")
        added = _count(parameters, "num-added-states", 0)
        idle = parameters.get("unavailable-cost")
        if idle is not None and not (is_real(idle) and math.isfinite(as_float(idle))):
            raise ValueError(f"unavailable-cost must be a finite number, got {shown(idle)}")
        return Own(
            _count(self._ts, "#choice-actions", 1),
            added,
            initial,
            None if idle is None else float(idle),
            self._own_action_names(parameters),
        )

    def _own_action_names(self, parameters: dict[str, Any]) -> Names | None:
        found = parameters.get("action-names")
        if found is None:
            return None
        return _names("action_names", json.dumps(found), self.num_actions)

    def _actions(
        self, data: Mapping[str, bytes]
    ) -> tuple[NDArray[np.int64] | None, list[str] | None]:
        if not self.num_actions:
            return None, None
        folder = "actions/choices"
        held = data.get(f"{folder}/values.bin")
        if held is None:
            actions = np.zeros(self.C, dtype=np.int64)
        else:
            actions = _unsigned(held, 4).astype(np.int64)
        if len(actions) and actions.max() >= self.num_actions:
            raise ValueError(
                f"a choice has action {actions.max()}, there are {self.num_actions:,} actions"
            )
        if f"{folder}/string-mapping.bin" not in data:
            if self.num_actions > max(self.C, 1):
                return None, None
            return actions, [str(action) for action in range(self.num_actions)]
        return actions, self._texts(data, folder, self.num_actions)

    def _texts(self, data: Mapping[str, bytes], folder: str, number: int) -> list[str]:
        text = _member(data, f"{folder}/strings.bin")
        ends = self._offsets(data, f"{folder}/string-mapping.bin", number, len(text)).tolist()
        return [text[lo:hi].decode("utf-8") for lo, hi in pairwise(ends)]

    def _offsets(
        self, data: Mapping[str, bytes], name: str, number: int, last: int
    ) -> NDArray[np.int64]:
        """Return offsets that rise from 0 to the last; if they may be missing, each has one."""
        if name not in data and number == last:
            return np.arange(number + 1, dtype=np.int64)
        offsets = _unsigned(_member(data, name), 8)
        if offsets[0] != 0 or offsets[-1] != last or (offsets[1:] < offsets[:-1]).any():
            raise ValueError(f"{name} must rise from 0 to {last:,}")
        return offsets.astype(np.int64)

    def _truths(self, held: bytes, number: int) -> NDArray[np.bool_]:
        bits = np.unpackbits(np.frombuffer(held, np.uint8), bitorder="little")
        if len(bits) < number or bits[number:].any():
            raise ValueError(f"there are {len(bits):,} bits for {number:,} states")
        return bits[:number].astype(bool)


def _members(stream: Stream) -> Iterator[tuple[str, int]]:
    """Yield name and size of each file; the caller reads or skips so many bytes before it goes on.

    Only plain files and folders are taken: a link or device has no place in a model.
    """
    long_name: str | None = None
    for _ in range(_MOST_MEMBERS):
        head = stream.read(_BLOCK)
        if not head.strip(b"\0"):
            return  # the end of the archive, or of the file
        if len(head) < _BLOCK:
            raise EOFError("it ends within a head of the archive")
        total = sum(head) - sum(head[148:156]) + 8 * 32
        if _octal(head[148:156], "checksum") != total:
            raise ValueError("it is no tar archive: a head has the wrong checksum")
        size, kind = _octal(head[124:136], "size"), head[156:157]
        padding = -size % _BLOCK
        if kind in (b"L", b"x", b"g"):
            if size > _MOST_NAME_BYTES:
                raise ValueError(f"the name of a member has {size:,} bytes: it is refused")
            text = stream.read(size)
            stream.skip(padding)
            if kind == b"L":
                long_name = text.rstrip(b"\0").decode("utf-8")
            elif kind == b"x" and (told := _pax_path(text)) is not None:
                long_name = told
            continue
        name = long_name
        if name is None:
            name = _field(head[:100])
            if head[257:262] == b"ustar" and head[262:263] == b"\0":
                prefix = _field(head[345:500])
                name = f"{prefix}/{name}" if prefix else name
        long_name = None
        if kind == b"5":
            stream.skip(size + padding)
            continue
        if kind not in (b"0", b"\0"):
            raise ValueError(f"it holds {name!r}, which is no plain file: it is refused")
        name = name.removeprefix("./")
        if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name) or ":" in name:
            raise ValueError(f"it holds {name!r}, which would lie elsewhere: it is refused")
        yield name, size
        stream.skip(padding)
    raise ValueError(f"it holds more than {_MOST_MEMBERS:,} members: it is refused")


def _octal(field: bytes, what: str) -> int:
    text = field.strip(b"\0 ")
    if not re.fullmatch(rb"[0-7]*", text):
        raise ValueError(f"it is no tar archive: a {what} reads {text!r}")
    return int(text or b"0", 8)


def _field(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8")


def _pax_path(text: bytes) -> str | None:
    """Return the path that the records of a pax head give, if they do; refuse another size."""
    path = None
    for line in text.split(b"\n"):
        key, _, value = line.partition(b" ")[2].partition(b"=")
        if key == b"path":
            path = value.decode("utf-8")
        elif key == b"size" or key.startswith(b"GNU.sparse"):
            raise ValueError(f"a member has {key.decode()!r} in its head: it is refused")
    return path


def _object(holder: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = holder.get(name)
    if not isinstance(found, dict):
        raise ValueError(f"{name} must be an object")
    return found


def _count(holder: Mapping[str, Any], name: str, least: int) -> int:
    found = holder.get(name)
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found < 2**63:
        raise ValueError(f"{name} must be an integer at least {least}, got {found!r}")
    return found


def _type(holder: Mapping[str, Any], name: str, where: str) -> tuple[str, int] | None:
    """Return a type and its bits, None if it is not given."""
    found = holder.get(name)
    if found is None:
        return None
    kind = found.get("type") if isinstance(found, dict) else None
    default = {"bool": 1, "double": 64, "rational": 128, "int": 64, "uint": 64, "string": 64}
    if not isinstance(kind, str) or kind not in default:
        raise ValueError(f"{where}: type must be one of {', '.join(default)}, got {kind!r}")
    assert isinstance(found, dict)
    size = found.get("size", default[kind])
    allowed = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64)}.get(kind, (default[kind],))
    is_count = isinstance(size, int) and not isinstance(size, bool)
    if kind == "rational" and is_count and 0 < size <= 2**16 and size % 16 == 0:
        return kind, size
    if not is_count or size not in allowed:
        raise ValueError(f"{where}: the size of {kind} must be of {allowed} bits, got {size!r}")
    return kind, size


def _bit_bytes(number: int) -> int:
    return -(-number // 64) * 8


def _member(data: Mapping[str, bytes], name: str) -> bytes:
    if name not in data:
        raise ValueError(f"{name} is missing")
    return data[name]


def _unsigned(held: bytes, width: int) -> NDArray[Any]:
    return np.frombuffer(held, f"<u{width}")


def _numbers(held: bytes, kind: str, size: int) -> NDArray[np.float64]:
    if kind == "double":
        return np.frombuffer(held, "<f8").astype(np.float64)
    if kind in ("int", "uint"):
        return np.frombuffer(held, f"<{kind[0]}{_INTEGERS[size]}").astype(np.float64)
    half = size // 16
    values = []
    for place in range(0, len(held), 2 * half):
        numerator = int.from_bytes(held[place : place + half], "little", signed=True)
        denominator = int.from_bytes(held[place + half : place + 2 * half], "little")
        if denominator == 0:
            raise ValueError(f"rational {place // (2 * half)} has the denominator 0")
        values.append(float(Fraction(numerator, denominator)))
    return np.array(values, dtype=np.float64)


def _kept(what: str, names: Sequence[Hashable] | None) -> Any:
    """Return names as JSON holds them, or refuse those that would not come back."""
    return None if names is None else json.loads(names_to_bytes(what, tuple(names)).tobytes())


def _names(what: str, text: str, count: int) -> Names:
    return names_from_bytes(what, np.frombuffer(text.encode(), np.uint8), count)


def _annotation(name: str, part: str, kind: str, size: int) -> dict[str, Any]:
    return {"alias": name, "applies-to": [part], "type": {"type": kind, "size": size}}


def _bits(truths: NDArray[np.bool_]) -> bytes:
    packed = np.packbits(truths, bitorder="little").tobytes()
    return packed.ljust(_bit_bytes(len(truths)), b"\0")


def _doubles(numbers: NDArray[np.float64]) -> bytes:
    return numbers.astype("<f8").tobytes()


def _strings(folder: str, texts: list[str]) -> dict[str, bytes]:
    encoded = [text.encode() for text in texts]
    ends = np.concatenate([[0], np.cumsum([len(text) for text in encoded])])
    return {
        f"{folder}/string-mapping.bin": ends.astype("<u8").tobytes(),
        f"{folder}/strings.bin": b"".join(encoded),
    }
