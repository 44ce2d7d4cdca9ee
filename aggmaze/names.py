"""Names of states and actions: what they may be, how they are shown, how they are kept in files.

A name is anything that is hashable and equal to itself: texts, numbers, tuples of them, members of
an enumeration.  In files names are one text in JSON, so that only texts, numbers, booleans, None
and tuples of these can be kept; they come back as they were.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import lock
from aggmaze.checks import check_integer, did_you_mean
from aggmaze.memory import check_memory

# Characters of a name that messages show.
_MOST_SHOWN = 60
# Names that are listed before they are only counted.
_MOST_LISTED = 4
# Characters that a name may take in a file, tuples within tuples, and digits of an integer.
_MOST_CHARACTERS = 10_000
_MOST_NESTED = 16
_MOST_DIGITS = 4_000
# Memory of decoded names over the length of their text: measured, of many short names.
_JSON_COPIES = 40
# Among more names nothing similar is looked for.
_MOST_COMPARED = 10_000


class Names(tuple[Hashable, ...]):
    """Names that are known to differ, in order; a tuple that knows where each of them is."""

    def __reduce__(self) -> tuple[type[Names], tuple[tuple[Hashable, ...]]]:
        return Names, (tuple(self),)

    @cached_property
    def places(self) -> dict[Hashable, int]:
        """The index of each name."""
        return {name: index for index, name in enumerate(self)}


def as_names(what: str, names: Any, count: int | None = None) -> Names | None:
    """Return names as a tuple without repetition; None stays None.

    Numpy's numbers and texts become Python's.

    Parameters
    ----------
    what : str
        What errors call them, such as ``"state_names"``.
    names : iterable of hashable, or None
    count : int, optional
        How many there must be; any number by default.

    Raises
    ------
    TypeError
        If it is no iterable, or one of them is not hashable.
    ValueError
        If there are more or fewer, two are equal, or one is not equal to itself, as NaN.
    """
    if names is None:
        return None
    if not isinstance(names, Names):
        if isinstance(names, Mapping | set | frozenset) or not isinstance(names, Iterable):
            raise TypeError(
                f"{what} must list names in order, got {type(names).__name__} {shown(names)}"
            )
        names = Names(_plain(what, index, name) for index, name in enumerate(names))
        if len(names.places) != len(names):
            first: dict[Hashable, int] = {}
            for index, name in enumerate(names):
                if name in first:
                    raise ValueError(
                        f"{what} must differ: {what}[{first[name]}] = "
                        f"{shown(names[first[name]])} equals {what}[{index}] = {shown(name)}"
                    )
                first[name] = index
    if count is not None and len(names) != count:
        raise ValueError(f"{what} must be {count} names, one each, got {len(names)}")
    return names


def check_name(what: str, name: Any) -> Hashable:
    """Return a name in Python's own types, refusing what is none.

    Parameters
    ----------
    what : str
        What errors call it.
    name : object
    """
    if isinstance(name, str | int | None) and not isinstance(name, np.generic):
        return name
    if isinstance(name, np.generic):
        name = name.item()
    elif type(name) is tuple:
        name = tuple(check_name(what, part) for part in name)
    try:
        hash(name)
    except TypeError:
        hint = "; write a tuple" if isinstance(name, list | np.ndarray) else ""
        raise TypeError(
            f"{what} must be hashable to be a name, got {type(name).__name__} {shown(name)}{hint}"
        ) from None
    # As NaN is not.
    if not bool(name == name):
        raise ValueError(f"{what} must be equal to itself to be a name, got {shown(name)}")
    return name


def _plain(what: str, index: int, name: Any) -> Hashable:
    kind = type(name)
    return name if kind is str or kind is int else check_name(f"{what}[{index}]", name)


def shown(name: Any) -> str:
    """Return a name as messages show it, cut where it is long."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = _MOST_SHOWN
    try:
        text = short.repr(name)
    except ValueError:  # an integer of more digits than Python writes
        text = f"a very long {type(name).__name__}"
    return text if len(text) <= 2 * _MOST_SHOWN else f"{text[: 2 * _MOST_SHOWN]}..."


class Naming(NamedTuple):
    """How messages call states and actions: by number, and by name where they have one.

    Parameters
    ----------
    states, actions : sequence of hashable, optional
    """

    states: Sequence[Hashable] | None = None
    actions: Sequence[Hashable] | None = None

    def state(self, index: int) -> str:
        """Return ``state 3``, or ``state 3 = 'exit'`` where it has a name."""
        return f"state {_with_name(index, self.states)}"

    def action(self, index: int, kind: str = "action") -> str:
        """Return ``action 1``, or ``action 1 = 'left'`` where it has a name.

        Parameters
        ----------
        index : int
        kind : str
            Another word for action.
        """
        return f"{kind} {_with_name(index, self.actions)}"

    def choice(self, state: int, action: int) -> str:
        """Return ``state 3, action 1``, with their names where they have some.

        Parameters
        ----------
        state, action : int
        """
        return f"{self.state(state)}, {self.action(action)}"

    def row(self, row: int, num_actions: int) -> str:
        """Return `choice` of a state and an action as one number.

        Parameters
        ----------
        row, num_actions : int
        """
        return self.choice(*divmod(int(row), num_actions))

    def list_states(self, states: Iterable[Any]) -> str:
        """Return ``3 = 'exit', 4 = 'hall'``."""
        return ", ".join(_with_name(int(state), self.states) for state in states)

    def list_actions(self, actions: Iterable[Any]) -> str:
        """Return ``1 = 'left', 2 = 'right'``."""
        return ", ".join(_with_name(int(action), self.actions) for action in actions)


#: Of what has no names.
UNNAMED = Naming()


def _with_name(index: int, names: Sequence[Hashable] | None) -> str:
    # An added state has no name.
    return (
        f"{index}" if names is None or index >= len(names) else f"{index} = {shown(names[index])}"
    )


def listed(names: tuple[Hashable, ...]) -> str:
    """Return the first names, and how many more there are."""
    text = ", ".join(shown(name) for name in names[:_MOST_LISTED])
    return f"{text}, ..." if len(names) > _MOST_LISTED else text


def index_of(kind: str, name: Any, names: Names | None, count: int) -> int:
    """Return the index of a state or action that is given by its name, or its index if it has none.

    Parameters
    ----------
    kind : {"state", "action"}
        What errors call it.
    name : hashable
    names : Names, optional
    count : int
        How many there are.

    Raises
    ------
    ValueError, TypeError
        If there is none, with the name that is most like it.
    """
    if names is None:
        return check_integer(kind, name, below=count)
    name = check_name(kind, name)
    found = names.places.get(name)
    if found is None:
        raise ValueError(f"there is no {unknown(kind, name, names)}")
    return found


def unknown(kind: str, name: Any, names: Names) -> str:
    """Return a name that is none of the names, the end of a sentence that says so.

    Parameters
    ----------
    kind : str
    name : object
    names : Names
    """
    hint = ""
    if isinstance(name, str) and len(names) <= _MOST_COMPARED:
        hint = did_you_mean(name, (other for other in names if isinstance(other, str)))
    elif len(names) <= _MOST_COMPARED and str(name) in (texts := {str(n): n for n in names}):
        hint = f"; did you mean {shown(texts[str(name)])}?"
    if isinstance(name, str) and not hint and len(names) <= _MOST_COMPARED:
        alike = [other for other in names if str(other) == name]
        hint = f"; did you mean {shown(alike[0])}?" if alike else ""
    count = f" ({len(names):,} in all)" if len(names) > _MOST_LISTED else ""
    return f"{kind} {shown(name)}, which is none of the {kind}s {listed(names)}{count}{hint}"


def chances(given: Any, names: Names | None, num_listed: int, num_states: int) -> ArrayLike:
    """Return the distribution of the first state where it is given by names; else what is given.

    Parameters
    ----------
    given : hashable, mapping or array_like
        A state; chances by state; or an array, which is returned as it is.
    names : Names, optional
        Without them a state is its index.
    num_listed : int
        Number of states that have an index or a name.
    num_states : int
        Length of the distribution.
    """
    if isinstance(given, Mapping):
        distribution = np.zeros(num_states)
        for name, chance in given.items():
            place = _place_in_initial(name, names, num_listed)
            distribution[place] = _chance(name, chance)
        return lock(distribution)
    if _is_name(given, names):
        distribution = np.zeros(num_states)
        distribution[_place_in_initial(given, names, num_listed)] = 1.0
        return lock(distribution)
    return given


def _place_in_initial(name: Any, names: Names | None, count: int) -> int:
    try:
        return index_of("state", name, names, count)
    except (TypeError, ValueError) as error:
        raise type(error)(f"initial: {error}") from None


def _chance(name: Any, chance: Any) -> float:
    try:
        value = float(chance)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"initial: the chance of {shown(name)} must be in [0, 1], got {chance!r}")
    return value


def _is_name(given: Any, names: Names | None) -> bool:
    """Whether one state is meant, and not an array."""
    if isinstance(given, str) or given is None:
        return True
    if names is not None:
        try:
            if given in names.places:
                return True
        except TypeError:
            return False  # an array or a list
    return not isinstance(given, list | tuple | np.ndarray) and np.ndim(given) == 0


def marked(given: Any, names: Names | None, num_states: int) -> Any:
    """Return which states are marked, where they are listed by names; else what is given.

    Parameters
    ----------
    given : iterable of names, or array_like of bool, shape (S,)
    names : Names, optional
    num_states : int
    """
    if names is None or given is None or isinstance(given, np.ndarray):
        return given
    if isinstance(given, str) or not isinstance(given, Iterable) or isinstance(given, Mapping):
        raise ValueError(
            f"terminal must list states by name, or hold a boolean for each, got {shown(given)}"
        )
    entries = list(given)
    truths = all(isinstance(entry, bool | np.bool_) for entry in entries)
    if not entries or (truths and len(entries) == num_states):
        return entries
    try:
        places = [index_of("state", entry, names, num_states) for entry in entries]
    except (TypeError, ValueError) as error:
        raise type(error)(f"terminal: {error}") from None
    mask = np.zeros(num_states, dtype=bool)
    mask[places] = True
    return lock(mask)


def names_to_bytes(what: str, names: tuple[Hashable, ...]) -> NDArray[np.uint8]:
    """Return names as the bytes of a JSON text, for a file.

    Parameters
    ----------
    what : str
        What errors call them.
    names : tuple

    Raises
    ------
    ValueError
        If one is something else than a text, a finite number, a boolean, None, or a tuple of
        these, or too long.
    """
    texts = []
    for index, name in enumerate(names):
        place = f"{what}[{index}] = {shown(name)}"
        _check_kept(place, name, _MOST_NESTED)
        text = json.dumps(name, allow_nan=False)
        if len(text) > _MOST_CHARACTERS:
            raise ValueError(
                f"{place} takes {len(text):,} characters in a file, at most "
                f"{_MOST_CHARACTERS:,} are allowed"
            )
        texts.append(text)
    return np.frombuffer(f"[{', '.join(texts)}]".encode("ascii"), dtype=np.uint8)


def _check_kept(place: str, name: Any, depth: int) -> None:
    """Refuse to write what would not come back as it is."""
    # Subclasses, such as members of an IntEnum, would come back as something else.
    kind = type(name)
    if kind is tuple and depth > 0:
        for part in name:
            _check_kept(place, part, depth - 1)
        return
    if kind in (str, bool, type(None)):
        return
    if kind is int and abs(name) < 10**_MOST_DIGITS:
        return
    if kind is float and math.isfinite(name):
        return
    raise ValueError(
        f"{place} cannot be kept in a file: names there are texts, finite numbers of at most "
        f"{_MOST_DIGITS:,} digits, booleans, None, and tuples of these, nested at most "
        f"{_MOST_NESTED} deep; save the model with such names, or with none: "
        f"dataclasses.replace(model, {place.partition('[')[0]}=None)"
    )


def names_from_bytes(what: str, found: NDArray[np.uint8], count: int | None) -> Names:
    """Return the names that `names_to_bytes` wrote.

    Parameters
    ----------
    what : str
        What errors call them.
    found : ndarray of uint8
    count : int, optional
        How many there must be; any number by default.

    Raises
    ------
    ValueError
        If it is no such text, or one of other names.
    MemoryError
        If decoding it takes more memory than is available.
    """
    check_memory(_JSON_COPIES * len(found), f"{what} of {len(found):,} bytes")
    try:
        names = json.loads(found.tobytes().decode("ascii"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} are no list in JSON: {error}") from None
    if not isinstance(names, list):
        raise ValueError(f"{what} are no list in JSON, but {type(names).__name__}")
    frozen = as_names(what, (_frozen(what, name, _MOST_NESTED) for name in names), count)
    assert frozen is not None
    return frozen


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no name")


def _frozen(what: str, name: Any, depth: int) -> Hashable:
    if isinstance(name, list):
        if depth == 0:
            raise ValueError(f"{what} are nested more than {_MOST_NESTED} deep")
        return tuple(_frozen(what, part, depth - 1) for part in name)
    if isinstance(name, dict) or (isinstance(name, float) and not math.isfinite(name)):
        raise ValueError(f"{what} hold {shown(name)}, which is no name")
    if isinstance(name, str) and len(name) > _MOST_CHARACTERS:
        raise ValueError(f"{what} hold a name of {len(name):,} characters")
    return name


def cells_of_names(names: Sequence[Hashable] | None, most: int) -> NDArray[np.int64] | None:
    """Return the coordinates that states are named by, shape (S, D); None if they are not.

    Parameters
    ----------
    names : sequence of hashable, or None
        Tuples of two to eight integers, all of one length, if they are coordinates.
    most : int
        Positions that the smallest box around them may have, and the size of a coordinate.
    """
    first: Any = names[0] if names else None
    if names is None or type(first) is not tuple or not 2 <= len(first) <= 8:
        return None
    if not all(
        type(name) is tuple and len(name) == len(first) and all(type(part) is int for part in name)
        for name in names
    ):
        return None
    parts: list[Any] = list(names)
    if max(abs(part) for name in parts for part in name) > most:
        return None
    cells = np.array(parts, dtype=np.int64)
    sides = cells.max(axis=0) - cells.min(axis=0) + 1
    return cells if math.prod(sides.tolist()) <= most else None
