"""What a player knows as the state, where that is less than what decides.

A hidden card belongs to the state of a game, and no policy may look at it.  Where what is known
tells the chances of what is hidden, however it came about, the known part is a Markov decision
process of its own, whose outcomes are means over what is hidden.  Whether it does is checked, for
every way to arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from aggmaze.exploration.exploring import AGREEMENT, Rows, TabularizeError


def known_rows(
    rows: Rows,
    keys: Sequence[Hashable],
    initial: Sequence[tuple[int, float]],
    known: Callable[[Any], Hashable],
) -> tuple[Rows, list[Hashable], list[tuple[int, float]]]:
    """Return the outcomes by what is known, these states, and the chances of the first.

    Parameters
    ----------
    rows : Rows
        Outcomes by all that decides.
    keys : sequence
        What tells the states apart, shape (S,).
    initial : sequence of (int, float)
        States and their chances to be the first.
    known : callable
        What is known of a state, of what tells it apart.

    Raises
    ------
    TabularizeError
        If the past tells more of what is hidden than what is known does.
    """
    num_actions = rows.num_actions
    index_of: dict[Hashable, int] = {}
    groups = [index_of.setdefault(known(key), len(index_of)) for key in keys]
    names = list(index_of)
    beliefs: dict[int, dict[int, float]] = {}
    order: list[int] = []

    def arrive(parts: dict[int, dict[int, float]], how: str) -> None:
        for group, weights in parts.items():
            total = sum(weights.values())
            belief = {state: weight / total for state, weight in weights.items()}
            before = beliefs.get(group)
            if before is None:
                beliefs[group] = belief
                order.append(group)
                continue
            for state in before.keys() | belief.keys():
                now, then = belief.get(state, 0.0), before.get(state, 0.0)
                if not abs(now - then) <= AGREEMENT:
                    raise TabularizeError(
                        f"{names[group]!r} does not tell the chances of what is hidden: "
                        f"{keys[state]!r} has the probability {now:.6g} {how}, and {then:.6g} "
                        "another time, so that known= makes no Markov decision process"
                    )

    starts: dict[int, dict[int, float]] = {}
    for state, chance in initial:
        part = starts.setdefault(groups[state], {})
        part[state] = part.get(state, 0.0) + chance
    first = [(group, sum(part.values())) for group, part in starts.items()]
    arrive(starts, "after a reset")
    counts: list[int] = []
    columns: list[list[Any]] = [[], [], [], []]
    number = 0
    while number < len(order):
        group = order[number]
        number += 1
        for action in range(num_actions):
            parts: dict[int, dict[int, float]] = {}
            outcomes: dict[tuple[int, float, bool], float] = {}
            available = set()
            for state, chance in beliefs[group].items():
                row = rows.of(state, action)
                available.add(bool(row))
                for (following, reward, ended), probability in row.items():
                    weight = chance * probability
                    outcome = groups[following], reward, ended
                    outcomes[outcome] = outcomes.get(outcome, 0.0) + weight
                    if not ended:
                        part = parts.setdefault(groups[following], {})
                        part[following] = part.get(following, 0.0) + weight
            if len(available) > 1:
                raise TabularizeError(
                    f"{names[group]!r} does not tell whether action {action} is available"
                )
            arrive(parts, f"after action {action} in {names[group]!r}")
            counts.append(len(outcomes))
            for (following, reward, ended), weight in outcomes.items():
                for column, entry in zip(columns, (weight, following, reward, ended), strict=True):
                    column.append(entry)
    lumped = Rows(
        len(names),
        num_actions,
        np.array(order, dtype=np.int64),
        np.array(counts, dtype=np.int64),
        np.array(columns[0]),
        np.array(columns[1], dtype=np.int64),
        np.array(columns[2]),
        np.array(columns[3], dtype=bool),
    )
    return lumped, names, first
