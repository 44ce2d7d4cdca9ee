"""What the signs of a grid world mean: the one place where that is said.

=========  =====================================================  ======
sign       what happens in its cell                               reward
=========  =====================================================  ======
``.`` F    free, as a space is                                    none of its own
``#``      blocked: nobody enters it
``S`` A    free; an episode starts there, in any of several S     none of its own
``G`` *    the episode ends                                       1
``H``      the episode ends: a hole, or pit                       0
``L`` ~    the episode ends: lava                                 -1
``C``      a cliff: whoever falls is back at the start            -100
=========  =====================================================  ======

Any other sign of one character, digits and letters first of all, gets its meaning from a table,
``signs={"1": 10, "2": -5, "m": {"reward": -3, "ends": False}, "G": 5}``.  A number is the reward: a
known sign does what it did, a new one ends the episode.  A dictionary says all: `Cell`.  ``A`` and
``*`` are what text shows of the agent, at the start and at the goal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from aggmaze.checks import check_finite, did_you_mean, is_real

#: Signs of text whose meaning cannot be changed.
FREE, BLOCKED, STARTS = ".F ", "#", "S"
_FIXED = FREE + BLOCKED + "S+-|"


@dataclass(frozen=True)
class Cell:
    """What a sign means.

    Parameters
    ----------
    reward : float, optional
        What the cell pays, in the place of a step's cost; None for cells that pay as free ones do.
    ends : bool
        Whether the episode ends there.
    back : bool
        Whether whoever enters it is back at the start.

    Raises
    ------
    ValueError
        If the reward is not finite, or if it both ends the episode and leads back.
    TypeError
        If ``ends`` or ``back`` is not a boolean.
    """

    reward: float | None = None
    ends: bool = False
    back: bool = False

    def __post_init__(self) -> None:
        if self.reward is not None:
            check_finite("reward", self.reward)
            object.__setattr__(self, "reward", float(self.reward))
        for name in ("ends", "back"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.ends and self.back:
            raise ValueError("a cell either ends the episode or leads back to the start, not both")
        if self.ends and self.reward is None:
            object.__setattr__(self, "reward", 0.0)


#: What the letters mean that need no table.
KNOWN: dict[str, Cell] = {
    "G": Cell(1.0, ends=True),
    "H": Cell(0.0, ends=True),
    "L": Cell(-1.0, ends=True),
    "~": Cell(-1.0, ends=True),
    "C": Cell(-100.0, back=True),
}
#: Signs that are read as others, unless the table has them.
SAME_AS = {"A": "S", "*": "G"}


def table_of_signs(signs: Mapping[str, Any] | None) -> dict[str, Cell]:
    """Return what each sign means, those known and those given.

    Parameters
    ----------
    signs : mapping of str to float, dict or Cell, optional
        As the module's documentation describes it.

    Raises
    ------
    TypeError
        If it is no mapping, or a value is none of these.
    ValueError
        If a sign is not one character, or one whose meaning is settled, or a value is not finite.
    """
    if signs is None:
        return dict(KNOWN)
    if not isinstance(signs, Mapping):
        raise TypeError(
            f'signs must be a table such as {{"1": 10, "2": -5}}, got {type(signs).__name__}'
        )
    table = dict(KNOWN)
    for sign, given in signs.items():
        # Codes of combining characters and of halves of pairs are no text of their own.
        if not isinstance(sign, str) or len(sign) != 1 or not sign.isprintable():
            raise ValueError(f"signs: {sign!r} must be a single character")
        if sign in _FIXED:
            raise ValueError(f"signs: {sign!r} has a meaning that is settled: take another sign")
        table[sign] = _cell(sign, given, table.get(sign))
    return table


def _cell(sign: str, given: Any, known: Cell | None) -> Cell:
    where = f"signs[{sign!r}]"
    if isinstance(given, Cell):
        return given
    try:
        if is_real(given):
            return Cell(given, ends=True) if known is None else replace(known, reward=given)
        if isinstance(given, Mapping):
            names = [field.name for field in fields(Cell)]
            for name in given:
                if name not in names:
                    hint = did_you_mean(name, names)
                    raise ValueError(f"there is no {name!r} among {', '.join(names)}{hint}")
            return Cell(**given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from None
    raise TypeError(
        f'{where} must be a reward, or a dictionary such as {{"reward": -3, "ends": False}}, got '
        f"{given!r}"
    )
