"""Deterministic tables: the next state and the reward of each action, as BRIDGE has them.

An ``.npz`` archive with ``transitions`` and ``rewards``, both of shape (S, A) (Laidlaw, Russell and
Dragan, "Bridging RL theory and practice with the effective horizon", 2023: 155 games of Atari,
Procgen and Minigrid).
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.formats.archive import open_archive
from aggmaze.memory import check_memory
from aggmaze.models.tabular import TabularMDP

_INTEGERS = ("int64", "int32", "int16", "int8")
_REAL = ("float64", "float32", "float16", *_INTEGERS)
# Bytes that an entry of the table takes while the model is made: measured.
_ENTRY_BYTES = 110


def is_bridge(path: str | os.PathLike[str]) -> bool:
    """Return whether an ``.npz`` archive names the arrays of a deterministic table."""
    with open_archive(
        path, "aggmaze model 1", bare=("transitions", "rewards", "P", "R")
    ) as archive:
        return not archive.has_header and "transitions" in archive


def read_bridge(path: str | os.PathLike[str]) -> TabularMDP:
    """Read a table of deterministic moves.

    ``transitions[s, a]`` is the next state, -1 where the episode ends, and ``rewards[s, a]`` what
    it pays.  The end becomes one more state, which is not listed.  Episodes begin in state 0.
    Arrays of other names are not read.

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
        If the file is not such a table, or damaged.
    FileNotFoundError, IsADirectoryError
        If that is what is there.
    MemoryError
        If the model needs more memory than is available.
    """
    with open_archive(path, "aggmaze model 1", bare=("transitions",)) as archive:
        if archive.has_header:
            raise ValueError("it has a header: it is of aggmaze's own format")
        shape = archive.shape("transitions", 2)
        if 0 in shape:
            raise ValueError(f"transitions has shape {shape}: it is empty")
        check_memory(_ENTRY_BYTES * math.prod(shape), f"the tables of {os.fspath(path)!r}")
        arrays = archive.read(
            {"transitions": (_INTEGERS, shape), "rewards": (_REAL, shape)},
            besides=archive.names,
        )
        return _table(arrays["transitions"], arrays["rewards"]).validate()


def _table(following: NDArray[Any], rewards: NDArray[Any]) -> TabularMDP:
    num_states, num_actions = following.shape
    bad = np.argwhere((following < -1) | (following >= num_states))
    if len(bad):
        state, action = bad[0].tolist()
        raise ValueError(
            f"transitions[{state}, {action}] = {following[state, action]} must be a state in "
            f"[0, {num_states}), or -1 for the end"
        )
    bad = np.argwhere(~np.isfinite(rewards))
    if len(bad):
        state, action = bad[0].tolist()
        raise ValueError(f"rewards[{state}, {action}] = {rewards[state, action]} must be finite")
    costs = 0.0 - rewards.astype(np.float64)
    targets = following.astype(np.int64).reshape(-1)
    added = int((targets < 0).any())
    if added:
        targets = np.where(targets < 0, num_states, targets)
        targets = np.append(targets, np.full(num_actions, num_states))
        costs = np.vstack([costs, np.zeros((1, num_actions))])
    num_rows = len(targets)
    initial = np.zeros(num_states + added)
    initial[0] = 1.0
    return TabularMDP(
        sp.csr_array(
            (np.ones(num_rows), targets, np.arange(num_rows + 1)),
            shape=(num_rows, num_states + added),
        ),
        costs,
        initial=initial,
        num_added_states=added,
    )
