"""Models kept in files: exact, plain, and whole or not at all.

A model file is an ``.npz`` archive (see `aggmaze.formats.archive`) of the arrays that make the
model, in their own data types, and a header with its kind and its numbers.  What is loaded is equal
to what was saved bit for bit, so that planners find the same values.

Other programs may prefer JSON: a Gymnasium ``P`` as nested lists, with the distribution of the
first state, which is as exact but has no masks (see `aggmaze.formats.to_gym_P`).

What other programs write is read too: transition matrices and rewards in an ``.npz`` archive
without a header, and a Gymnasium ``P`` in a JSON file, with nothing around it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.arrays import lock
from aggmaze.checks import check_choice, check_integer
from aggmaze.files import atomic_file, readable_file
from aggmaze.formats.archive import Archive, Expected, open_archive, write_archive
from aggmaze.formats.json_pieces import load_json
from aggmaze.memory import check_memory
from aggmaze.models.model import Model
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from aggmaze.names import names_from_bytes, names_to_bytes
from aggmaze.progress import report

#: What the header of a model file calls its format.
MODEL_FORMAT = "aggmaze model 1"
_GYM_FORMAT = "aggmaze gym P 1"
_FLOAT, _BOOL, _INDEX, _BYTES = ("float64",), ("bool",), ("int32", "int64"), ("uint8",)
# Arrays that hold names, as texts in JSON.
_NAMES = ("state_names", "action_names")
# The arrays of a model and what validating them takes, over the arrays: measured.
_COPIES = 2.2
# Likewise of matrices in single precision without a zero, the worst: measured.
_MATRIX_COPIES = 12.0
# What stands for P where it is sparse, and the types that its numbers may have.
_SPARSE = ("P_data", "P_indices", "P_indptr")
_TRUTHS = ("bool", "int32", "int64")
_REAL = ("float64", "float32", "int32", "int64")
# Likewise over the length of a JSON text, most of it Python objects.
_JSON_COPIES = 14
# States between two reports of how far the writing is.
_BLOCK = 1024


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to a file, whole or not at all.

    The file is an ``.npz`` archive of plain arrays, which needs no pickle; its name is taken as it
    is.  The same model makes the same bytes.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    path : path-like

    Raises
    ------
    ValueError
        If the model is not valid, or has a name that a file cannot hold: texts, finite numbers,
        booleans, None and tuples of these come back as they are.
    TypeError
        If it is no model.
    FileNotFoundError
        If there is no such folder.
    """
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    if isinstance(model, MoveMDP):
        model.validate()
        header = {"kind": "MoveMDP", "p": model.p, "bump_cost": model.bump_cost}
        arrays = {"successors": model.successors, "move_costs": model.move_costs}
    elif isinstance(model, TabularMDP):
        model.validate()
        header = {"kind": "TabularMDP", "num_added_states": model.num_added_states}
        arrays = {
            "data": model.transitions.data,
            "indices": model.transitions.indices,
            "indptr": model.transitions.indptr,
            "costs": model.costs,
            "action_mask": model.action_mask,
            "terminal": model.terminal,
        }
        if model.outcome_costs is not None:
            arrays["outcome_costs"] = model.outcome_costs
        for name in _NAMES:
            names = getattr(model, name)
            if names is not None:
                arrays[name] = names_to_bytes(name, names)
    else:
        raise TypeError(f"model must be a TabularMDP or a MoveMDP, got {type(model).__name__}")
    write_archive(path, MODEL_FORMAT, header, {**arrays, "initial": model.initial})


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model that `save_model` wrote, or one of matrices.

    ``numpy.savez(path, P=P, R=R)`` makes a file of matrices, which are read as
    `TabularMDP.from_matrices` reads them:

    - ``P``: transitions, shape (A, S, S) as MDPtoolbox has them, or (S, A, S).  Instead of it
      ``P_data``, ``P_indices`` and ``P_indptr``, those of ``scipy.sparse.vstack(matrices).tocsr()``
      with the matrices (S, S) of the actions in their order.
    - ``R``: rewards, shape (S, A) or (S,), or that of ``P``.
    - ``terminal`` (S,), or [] for none, ``initial`` (S,) and ``action_mask`` (S, A), as for
      `TabularMDP`, and ``terminal_rewards`` (S,), each if it is wanted.
    - ``order``: the text "ass" for (A, S, S) or "sas" for (S, A, S), where there are as many
      actions as states, so that the shape does not tell.

    The sizes that the file declares are checked before they are believed, so that a file that
    someone else made costs no more memory than it is long, a thousandfold at most.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    TabularMDP or MoveMDP
        Validated.

    Raises
    ------
    ValueError
        If the file is not such a model, or damaged, or the model is not valid.
    FileNotFoundError, IsADirectoryError
        If that is what is there.
    MemoryError
        If the model needs more memory than is available.
    """
    with open_archive(path, MODEL_FORMAT, bare=("P", "R", *_SPARSE)) as archive:
        if not archive.has_header:
            return _read_matrices(archive)
        kind = archive.scalar("kind", str)
        if kind not in _READERS:
            raise ValueError(f"its kind is {kind!r}, not one of {', '.join(_READERS)}")
        return _READERS[kind](archive).validate()


def save_gym_P(model: Model, path: str | os.PathLike[str]) -> None:  # noqa: N802 (as Gymnasium's)
    """Write a model to a JSON file as a Gymnasium ``P``, whole or not at all.

    The file holds an object: ``format``; ``num_added_states``; ``initial``, a list of S
    probabilities; and ``P``, where ``P[s][a]`` lists ``[probability, next_state, reward,
    terminated]``.

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
    P = model.to_gym_P()
    head = {
        "format": _GYM_FORMAT,
        "num_added_states": model.num_added_states,
        "initial": model.initial.tolist(),
    }
    with atomic_file(path) as file:
        file.write(f'{json.dumps(head)[:-1]}, "P": ['.encode())
        for state, actions in P.items():
            if state % _BLOCK == 0:
                report(state, len(P), "states")
            row = json.dumps(list(actions.values()))
            file.write(f"{',' if state else ''}\n{row}".encode())
        file.write(b"\n]}\n")


def load_gym_P(path: str | os.PathLike[str]) -> TabularMDP:  # noqa: N802 (as Gymnasium's)
    """Read a model that `save_gym_P` wrote, or a plain ``P``.

    A plain ``P`` is what ``json.dump(env.unwrapped.P, file)`` writes: an object of states, numbered
    from 0, each an object of actions, each a list of ``[probability, next_state, reward,
    terminated]``; or lists in place of the objects.  Objects may use names instead of numbers, with
    which outcomes then tell their next state.  It does not say where episodes start: the first
    state is uniform over those that are not terminal.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    TabularMDP
        Validated.

    Raises
    ------
    ValueError
        If the file is not such a ``P``, or damaged, or the model is not valid.
    FileNotFoundError, IsADirectoryError
        If that is what is there.
    MemoryError
        If the model needs more memory than is available.
    """
    with readable_file(path, "a saved Gymnasium P") as file:
        needed = _JSON_COPIES * file.seek(0, os.SEEK_END)
        check_memory(needed, f"the lists of {os.fspath(path)!r}")
        file.seek(0)
        found = load_json(file)
        table = _plain_table(found)
        if table is not None:
            return TabularMDP.from_gym_P(table)
        if not isinstance(found, dict) or found.get("format") != _GYM_FORMAT:
            told = found.get("format") if isinstance(found, dict) else None
            raise ValueError(
                f"its format is {told!r}, not {_GYM_FORMAT!r}; nor is it a plain P, such as "
                '{"0": {"0": [[probability, next_state, reward, terminated]]}}'
            )
        for name in ("P", "initial"):
            if not isinstance(found.get(name), list):
                raise ValueError(f"{name} must be a list")
        num_added_states = check_integer("num_added_states", found.get("num_added_states"))
        model = TabularMDP.from_gym_P(found["P"], initial=found["initial"])
        return replace(model, num_added_states=num_added_states).validate()


def _read_moves(archive: Archive) -> MoveMDP:
    shape = archive.shape("move_costs", 2)
    arrays = archive.read(
        {
            "successors": (("int32",), shape),
            "move_costs": (_FLOAT, shape),
            "initial": (_FLOAT, shape[:1]),
        },
        copies=_COPIES,
    )
    p, bump_cost = (archive.scalar(name, float) for name in ("p", "bump_cost"))
    return MoveMDP(
        **{name: lock(array) for name, array in arrays.items()}, p=p, bump_cost=bump_cost
    )


def _read_tables(archive: Archive) -> TabularMDP:
    num_states, num_actions = shape = archive.shape("costs", 2)
    num_entries = archive.shape("data", 1)
    expected: dict[str, Expected] = {
        "data": (_FLOAT, num_entries),
        "indices": (_INDEX, num_entries),
        "indptr": (_INDEX, (num_states * num_actions + 1,)),
        "costs": (_FLOAT, shape),
        "action_mask": (_BOOL, shape),
        "terminal": (_BOOL, (num_states,)),
        "initial": (_FLOAT, (num_states,)),
    }
    if "outcome_costs" in archive:
        expected["outcome_costs"] = (_FLOAT, num_entries)
    for name in _NAMES:
        if name in archive:
            expected[name] = _BYTES, archive.shape(name, 1)
    arrays = archive.read(expected, copies=_COPIES)
    num_added_states = check_integer(
        "num_added_states", archive.scalar("num_added_states", int), below=num_states
    )
    counts = num_states - num_added_states, num_actions
    names: dict[str, Any] = {
        name: names_from_bytes(name, arrays.pop(name), count)
        for name, count in zip(_NAMES, counts, strict=True)
        if name in arrays
    }
    arrays = {name: lock(array) for name, array in arrays.items()}
    transitions = _sparse_rows(arrays, ("data", "indices", "indptr"), num_states)
    return TabularMDP(transitions, **arrays, **names, num_added_states=num_added_states)


def _sparse_rows(
    arrays: dict[str, NDArray[Any]], names: Sequence[str], num_states: int
) -> sp.csr_array:
    """Take data, indices and indptr, by their names, out of the arrays; return their rows."""
    data, indices, indptr = (arrays.pop(name) for name in names)
    # Before compiled code follows them.
    if indptr[0] != 0 or indptr[-1] != len(data) or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"{names[2]} must rise from 0 to the {len(data)} stored outcomes")
    if len(indices) and not 0 <= indices.min() <= indices.max() < num_states:
        raise ValueError(f"{names[1]} name a state outside [0, {num_states})")
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, num_states))


def _read_matrices(archive: Archive) -> TabularMDP:
    """Read the matrices of which `load_model` tells."""
    reward_shape = archive.shape("R", 1, 2, 3)
    expected: dict[str, Expected] = {"R": (_REAL, reward_shape)}
    order: Literal["sas", "ass"] = "ass"
    is_sparse = "P" not in archive and any(name in archive for name in _SPARSE)
    if is_sparse:
        num_states, num_rows = reward_shape[0], archive.shape("P_indptr", 1)[0] - 1
        num_actions = num_rows // max(num_states, 1)
        if len(reward_shape) == 3 or num_rows < 1 or num_rows != num_actions * num_states:
            raise ValueError(
                f"P_indptr tells of {num_rows} rows and R has shape {reward_shape}: beside a "
                "sparse P, which has A * S rows, R must have shape (S, A) or (S,)"
            )
        num_entries = archive.shape("P_data", 1)
        expected["P_data"] = (_REAL, num_entries)
        expected["P_indices"] = (_INDEX, num_entries)
        expected["P_indptr"] = (_INDEX, (num_rows + 1,))
    else:
        shape = archive.shape("P", 3)
        order = _order(archive, shape)
        num_states, num_actions = shape[2], shape[0 if order == "ass" else 1]
        expected["P"] = (_REAL, shape)
    optional: dict[str, Expected] = {
        "terminal": (_TRUTHS, (num_states,)),
        "initial": (_REAL, (num_states,)),
        "action_mask": (_TRUTHS, (num_states, num_actions)),
        "terminal_rewards": (_REAL, (num_states,)),
    }
    if "terminal" in archive and archive.shape("terminal", 1) == (0,):
        optional["terminal"] = (
            _TRUTHS + _REAL,
            (0,),
        )  # no state, of whatever kind an empty list is
    expected |= {name: optional[name] for name in optional if name in archive}
    besides = () if is_sparse else ("order",)
    arrays = archive.read(expected, copies=_MATRIX_COPIES, besides=besides)
    if is_sparse:
        rows = _sparse_rows(arrays, _SPARSE, num_states)
        P: Any = [rows[a * num_states : (a + 1) * num_states] for a in range(num_actions)]
    else:
        P = arrays.pop("P")
    others: dict[str, Any] = dict(arrays)
    return TabularMDP.from_matrices(P, rewards=others.pop("R"), order=order, **others)


def _order(archive: Archive, shape: tuple[int, ...]) -> Literal["sas", "ass"]:
    """Return the order of the axes of P, as the file says or as the shape tells."""
    if "order" in archive:
        order = archive.text("order")
        check_choice("order", order, ("sas", "ass"))
        return "sas" if order == "sas" else "ass"
    if shape[0] == shape[1] == shape[2]:
        raise ValueError(
            f"P of shape {shape} may be (A, S, S) or (S, A, S): add order='ass' or order='sas' to "
            "the file"
        )
    return "ass" if shape[1] == shape[2] else "sas"


def _plain_table(found: Any) -> Any:
    """Return what a JSON file holds as `TabularMDP.from_gym_P` takes it, None if it is no table."""
    is_object = isinstance(found, dict) and all(name.isdecimal() for name in found)
    if isinstance(found, dict) and not is_object:
        # By names, unless it holds something else than states.
        return found if all(isinstance(actions, dict) for actions in found.values()) else None
    if not found or not (is_object or isinstance(found, list)):
        return None
    states = _in_order(found, "the states of P")
    return [_in_order(actions, f"the actions of P[{s}]") for s, actions in enumerate(states)]


def _in_order(found: Any, what: str) -> Any:
    """Return the values of a JSON object whose names are numbers, as a list; else what it is."""
    if not isinstance(found, dict):
        return found
    names = [str(number) for number in range(len(found))]
    if set(names) != set(found):
        odd = min(set(found) - set(names))
        raise ValueError(f"{what} must be numbered from 0 to {len(names) - 1}, got {odd!r}")
    return [found[name] for name in names]


_READERS: dict[str, Callable[[Archive], Model]] = {
    "MoveMDP": _read_moves,
    "TabularMDP": _read_tables,
}
