"""Grid worlds of the literature, by name: the map, the rules, and where they are from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from aggmaze.checks import check_choice

_WINDY = "\n".join([*3 * [10 * "."], "S......G..", *3 * [10 * "."]])
_WIND = (0, 0, 0, 1, 1, 1, 2, 2, 1, 0)


@dataclass(frozen=True)
class ReadyLayout:
    """A grid world of the literature.

    Parameters
    ----------
    name : str
    text : str
        The map, one character a cell.
    settings : mapping
        Arguments of ``GridWorld-v0`` that make it what was published.
    source : str
        Where it is from, and with what discount.
    """

    name: str
    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))


#: Every ready layout by its name.
READY: Mapping[str, ReadyLayout] = MappingProxyType(
    {
        name: ReadyLayout(name, text, settings, source)
        for name, text, settings, source in (
            (
                "aima-4x3",
                "...G\n.#.H\nS...",
                {"p": 0.8, "step_cost": 0.04, "pays": "leaving", "signs": {"H": -1.0}},
                "Russell and Norvig, Artificial Intelligence: A Modern Approach, third edition "
                "(2010), section 17.1; no discount",
            ),
            (
                "cliff",
                "............\n............\n............\nSCCCCCCCCCCG",
                {"step_cost": 1.0, "signs": {"G": -1.0}},
                "Sutton and Barto, Reinforcement Learning, second edition (2018), example 6.6; no "
                "discount",
            ),
            (
                "windy",
                _WINDY,
                {"wind": _WIND, "step_cost": 1.0, "signs": {"G": -1.0}},
                "Sutton and Barto (2018), example 6.5; no discount",
            ),
            (
                "windy-king",
                _WINDY,
                {"wind": _WIND, "step_cost": 1.0, "signs": {"G": -1.0}, "moves": "king"},
                "Sutton and Barto (2018), exercise 6.9; no discount",
            ),
            (
                "windy-stochastic",
                _WINDY,
                {
                    "wind": _WIND,
                    "gusts": True,
                    "step_cost": 1.0,
                    "signs": {"G": -1.0},
                    "moves": "king",
                },
                "Sutton and Barto (2018), exercise 6.10; no discount",
            ),
            (
                "four-rooms",
                "\n".join(
                    (
                        "#############",
                        "#.....#.....#",
                        "#.....#.....#",
                        "#...........#",
                        "#.....#.....#",
                        "#.....#.....#",
                        "##.####.....#",
                        "#.....###G###",
                        "#.....#.....#",
                        "#.....#.....#",
                        "#...........#",
                        "#.....#.....#",
                        "#############",
                    )
                ),
                {"p": 2 / 3, "slip": "uniform"},
                "Sutton, Precup and Singh, Between MDPs and semi-MDPs, Artificial Intelligence "
                "112 (1999), section 3, with the goal in the east hallway; discount .9",
            ),
            (
                "frozen-lake-4x4",
                "SFFF\nFHFH\nFFFH\nHFFG",
                {"p": 1 / 3},
                "Gymnasium, FrozenLake-v1, map_name='4x4'",
            ),
            (
                "frozen-lake-8x8",
                "SFFFFFFF\nFFFFFFFF\nFFFHFFFF\nFFFFFHFF\nFFFHFFFF\nFHHFFFHF\nFHFFHFHF\nFFFHFFFG",
                {"p": 1 / 3},
                "Gymnasium, FrozenLake-v1, map_name='8x8'",
            ),
            (
                "sutton-4x4",
                "G...\n....\n....\n...G",
                {"step_cost": 1.0, "signs": {"G": -1.0}},
                "Sutton and Barto (2018), example 4.1; no discount",
            ),
            (
                "dyna-maze",
                ".......#G\n..#....#.\nS.#....#.\n..#......\n.....#...\n.........",
                {},
                "Sutton and Barto (2018), example 8.1; discount .95",
            ),
        )
    }
)


def ready_layout(name: str) -> ReadyLayout:
    """Return a grid world of the literature.

    Parameters
    ----------
    name : str
        One of `READY`: aima-4x3, cliff, windy, windy-king, windy-stochastic, four-rooms,
        frozen-lake-4x4, frozen-lake-8x8, sutton-4x4 and dyna-maze.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    check_choice("ready layout", name, READY)
    return READY[name]
