"""The formats of model files: what each holds, and what reads and writes it.

Readers and writers are imported when a file of theirs is met.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from aggmaze.checks import check_choice, did_you_mean
from aggmaze.models.model import Model


@dataclass(frozen=True)
class Format:
    """A format of model files.

    Parameters
    ----------
    name : str
    suffixes : tuple of str
        In small letters; the first is the usual one.
    holds : str
        What a file is, in a few words.
    reader, writer : str
        Where the function is, ``module:name`` in this package; "" for none.
    lost : str
        Where the function is that tells what a file does not hold of a model; "" for nothing.
    advice : str
        What to do instead, where there is no reader.
    """

    name: str
    suffixes: tuple[str, ...]
    holds: str
    reader: str = ""
    writer: str = ""
    lost: str = ""
    advice: str = ""

    def read(self, path: str | os.PathLike[str], **options: Any) -> Model:
        """Return the model in a file.

        Parameters
        ----------
        path : path-like
        **options
            Those that the reader takes.

        Raises
        ------
        ValueError
            If the format is not read, its reader takes no such option, or it refuses the file.
        FileNotFoundError, IsADirectoryError, MemoryError
            As the reader has them.
        """
        if not self.reader:
            raise ValueError(
                f"{os.fspath(path)!r} is {self.holds}, which is not read: {self.advice}"
            )
        reader: Callable[..., Model] = _found(self.reader)
        known = self.options
        for name in options:
            if name not in known:
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise ValueError(
                    f"{os.fspath(path)!r} is read as format {self.name}, which takes no option "
                    f"{name!r}{did_you_mean(name, known)}; {takes}"
                )
        return reader(path, **options)

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the keywords that its reader takes."""
        if not self.reader:
            return ()
        parameters = inspect.signature(_found(self.reader)).parameters.values()
        return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)

    def write(self, model: Model, path: str | os.PathLike[str]) -> None:
        """Write a model to a file, whole or not at all.

        Parameters
        ----------
        model : TabularMDP or MoveMDP
        path : path-like

        Raises
        ------
        ValueError
            If the format is not written, or the model is not valid.
        TypeError
            If it is no model.
        FileNotFoundError
            If there is no such folder.
        """
        if not self.writer:
            raise ValueError(
                f"format {self.name} is read, not written; those written are {_listed(_written())}"
            )
        if not isinstance(model, Model):
            raise TypeError(f"model must be a TabularMDP or a MoveMDP, got {type(model).__name__}")
        _found(self.writer)(model, path)

    def losses(self, model: Model) -> list[str]:
        """Return what a file of this format does not hold of a model, in words.

        Parameters
        ----------
        model : TabularMDP or MoveMDP
        """
        lost: list[str] = _found(self.lost)(model) if self.lost else []
        return lost


def gym_losses(model: Model) -> list[str]:
    """Return what of a model a Gymnasium ``P`` does not hold, in words.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    """
    from aggmaze.formats.systems import kind_losses

    lost = kind_losses(model)
    if not model.rows(0, model.num_states).action_mask.all():
        lost.append("which actions are unavailable: they stay in place at a cost that never pays")
    return lost


#: All formats by their names; of two with a suffix, the first writes it.
FORMATS = {
    entry.name: entry
    for entry in (
        Format(
            "aggmaze",
            (".npz",),
            "a saved model, or matrices P and R",
            "storage:load_model",
            "storage:save_model",
        ),
        Format(
            "bridge",
            (".npz",),
            "deterministic moves: transitions and rewards (S, A)",
            "bridge:read_bridge",
        ),
        Format(
            "gym",
            (".json",),
            "Gymnasium's table P",
            "storage:load_gym_P",
            "storage:save_gym_P",
            "registry:gym_losses",
        ),
        Format(
            "umb",
            (".umb", ".umb.gz", ".umb.xz"),
            "the binary format of PRISM, Storm and Modest",
            "umb:read_umb",
            "umb:write_umb",
            "systems:losses",
        ),
        Format(
            "drn",
            (".drn", ".drn.gz"),
            "Storm's explicit text",
            "drn:read_drn",
            "drn:write_drn",
            "drn:drn_losses",
        ),
        Format(
            "prism",
            (".tra", ".tra.gz"),
            "explicit text of PRISM or Storm, with .lab, .srew, .trew and .sta beside it",
            "prism:read_prism",
        ),
        Format(
            "matlab",
            (".mat",),
            "MDPtoolbox's P and R from Matlab or R",
            "matlab:read_mat",
        ),
        Format(
            "r",
            (".rds", ".rdata", ".rda"),
            "data of R",
            advice="in R, R.matlab::writeMat('model.mat', P=P, R=R), and read model.mat",
        ),
        Format(
            "prism-language",
            (".prism", ".nm", ".pm", ".jani"),
            "a model in the language of PRISM or JANI",
            advice="let Storm or PRISM build it and export it to UMB or DRN",
        ),
    )
}
# In the packages of formats.
_HOME = "aggmaze.formats"


def format_of(path: str | os.PathLike[str], name: str | None = None) -> Format | None:
    """Return the format of a file, by its name if none is given; None if no suffix tells.

    Of two formats with one suffix the file itself tells, if there is one.

    Parameters
    ----------
    path : path-like
    name : str, optional
        Of a format.

    Raises
    ------
    ValueError
        If there is no such format.
    """
    if name is not None:
        check_choice("format", name, FORMATS)
        return FORMATS[name]
    low = Path(path).name.lower()
    for entry in FORMATS.values():
        if any(low.endswith(suffix) for suffix in entry.suffixes):
            if entry.name == "aggmaze" and _is_bridge(path):
                return FORMATS["bridge"]
            return entry
    return None


def load_model(path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Model:
    """Read a model from a file of any format that is read; docs/models/files.md lists them.

    Parameters
    ----------
    path : path-like
    format : str, optional
        Name of the format.  By default the suffix tells; a name without a known one is read as the
        project's own.
    **options
        What the reader of the format takes, such as ``goal``, ``structure`` and ``values`` of
        files of verification tools (`aggmaze.formats.systems.system_tables`).

    Returns
    -------
    TabularMDP or MoveMDP
        Validated.

    Raises
    ------
    ValueError
        If there is no such format or it is not read, it takes no such option, or the file is not
        of it, damaged, or the model not valid.
    FileNotFoundError, IsADirectoryError
        If that is what is there.
    MemoryError
        If the model needs more memory than is available.
    """
    entry = format_of(path, format) or FORMATS["aggmaze"]
    return entry.read(path, **options)


def save_model(model: Model, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a model to a file of any format that is written, whole or not at all.

    The same model makes the same bytes.  `losses` tells what a format does not hold.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    path : path-like
    format : str, optional
        Name of the format.  By default the suffix tells; a name without a suffix is written in the
        project's own.

    Raises
    ------
    ValueError
        If there is no such format or it is not written, or the model is not valid.
    TypeError
        If it is no model.
    FileNotFoundError
        If there is no such folder.
    """
    target_format(path, format).write(model, path)


def target_format(path: str | os.PathLike[str], name: str | None = None) -> Format:
    """Return the format in which a file is to be written.

    Parameters
    ----------
    path : path-like
    name : str, optional
        Of a format.

    Raises
    ------
    ValueError
        If there is none, or it is only read.
    """
    entry = None
    if name is not None:
        entry = format_of(path, name)
    else:
        low = Path(path).name.lower()
        entry = next((e for e in FORMATS.values() if low.endswith(e.suffixes)), None)
        if entry is None and not Path(path).suffix:
            entry = FORMATS["aggmaze"]
    if entry is None:
        raise ValueError(
            f"{os.fspath(path)!r} must end in {suffixes(written=True)}, or say format="
        )
    if not entry.writer:
        raise ValueError(
            f"format {entry.name} is read, not written; those written are {_listed(_written())}"
        )
    return entry


def suffixes(*, written: bool = False) -> str:
    """Return the suffixes of the formats that are read, or of those written, as text.

    Parameters
    ----------
    written : bool
    """
    found = [e for e in FORMATS.values() if (e.writer if written else e.reader)]
    names = list(dict.fromkeys(e.suffixes[0] for e in found))
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _written() -> list[str]:
    return [entry.name for entry in FORMATS.values() if entry.writer]


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _found(place: str) -> Any:
    return resolve_name(f"{_HOME}.{place}")


def _is_bridge(path: str | os.PathLike[str]) -> bool:
    from aggmaze.formats.bridge import is_bridge

    try:
        return is_bridge(path)
    except (ValueError, OSError):
        return False  # whose reader says what is wrong with it
