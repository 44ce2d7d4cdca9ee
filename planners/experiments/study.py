"""What an experiment is: configurations, what a run of one finds, and what is shown of the runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Key = TypeVar("Key", bound=Hashable)

SCALES = ("small", "paper")

#: What JSON can hold, with text for keys.
Configuration = Mapping[str, Any]

#: What a task calls: a function that processes can find by its name.
RunTask = Callable[[Configuration, np.random.SeedSequence], "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What a task found, as what JSON can hold.

    Parameters
    ----------
    values : dict
        The same whenever the task is run.
    seconds : dict of float or of list of float
        How long things took.
    """

    values: dict[str, Any]
    seconds: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """A configuration and what one repetition of it found."""

    configuration: Configuration
    repetition: int
    values: dict[str, Any]
    seconds: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A table of the report, and a CSV file of its own.

    Parameters
    ----------
    name : str
        Of the file.
    title : str
    columns : sequence of str
    rows : sequence of sequences
        Numbers, texts, truth values, and None where there is nothing to say.
    note : str
        Printed below.
    is_detail : bool
        Whether the report shows it folded up.
    is_timing : bool
        Whether it holds seconds, which differ from run to run.
    num_keys : int
        First columns that say what a row is about.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    is_detail: bool = False
    is_timing: bool = False
    num_keys: int = 1


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of the report, and a PNG and a PDF file of its own."""

    name: str
    title: str
    figure: Figure
    note: str = ""


HOLDS, HOLDS_IN_PART, FAILS, NOT_TESTED = ANSWERS = (
    "holds",
    "holds in part",
    "does not hold",
    "not tested at this scale",
)


@dataclass(frozen=True)
class Verdict:
    """What the runs say of a claim of the paper.

    Parameters
    ----------
    claim : str
        In a sentence.
    answer : str
        One of `ANSWERS`.
    evidence : str
        The numbers that it rests on, in a line; why, where the claim is not tested.
    """

    claim: str
    answer: str
    evidence: str


@dataclass(frozen=True)
class Summary:
    """What the report says of an experiment.

    Parameters
    ----------
    texts : sequence of str
        Paragraphs.
    tables : sequence of Table
    pictures : sequence of Picture
    verdicts : sequence of Verdict
        On the claims of the paper that the experiment is about.
    scale : (str, str)
        The size of the runs, and what there is to say of the paper's; told in every caption.
    """

    texts: Sequence[str]
    tables: Sequence[Table]
    pictures: Sequence[Picture]
    verdicts: Sequence[Verdict] = ()
    scale: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Parameters
    ----------
    name : str
    title : str
    scales : dict
        The arguments by scale, each a frozen dataclass with the ``repetitions``.
    configurations : callable
        ``configurations(arguments)``, as many as there are to be repeated.
    run : callable
        ``run(configuration, seed_sequence)``, a function that processes can find by its name.
    work : callable
        ``work(configuration)``: roughly how long it takes, in any unit that all experiments share;
        here elementary operations.
    summarize : callable
        ``summarize(arguments, runs)``; there may be fewer runs than were planned, or none.
    """

    name: str
    title: str
    scales: Mapping[str, Any]
    configurations: Callable[[Any], list[Configuration]]
    run: RunTask
    work: Callable[[Configuration], float]
    summarize: Callable[[Any, list[Run]], Summary]


def grouped(runs: Iterable[Run], key: Callable[[Configuration], Key]) -> dict[Key, list[Run]]:
    """Return runs by what their configurations have in common, in the order in which it comes up.

    Parameters
    ----------
    runs : iterable of Run
    key : callable
        ``key(configuration)``, equal for runs that belong together.
    """
    groups: dict[Key, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run.configuration), []).append(run)
    return groups
