"""What every reader returns and every writer starts from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, Self, TypedDict

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from aggmaze.arrays import own
from aggmaze.models.rows import Rows
from aggmaze.names import UNNAMED, Naming

# Rows in single or half precision may miss 1 by so many roundings of a number near 1.
_ROUNDINGS = 8
# What rounding leaves of a probability of 0, as in 1 - win - lose, is no further below it.
_ROUNDED = 1e-12


#: What a source holds: what is paid, or what is got.
Word = Literal["cost", "reward"]


class Tables(TypedDict):
    """The arguments of a `TabularMDP`, as a reader found them."""

    transitions: sp.csr_array
    costs: NDArray[np.float64]
    action_mask: ArrayLike | None
    terminal: ArrayLike | None
    initial: ArrayLike | None
    outcome_costs: NDArray[np.float64] | None
    num_added_states: int
    state_names: Any
    action_names: Any


class SupportsRows(Protocol):
    """What writers ask of a model."""

    @property
    def num_states(self) -> int:
        """Number of states S."""

    @property
    def num_actions(self) -> int:
        """Number of actions A."""

    @property
    def terminal(self) -> NDArray[np.bool_]:
        """Terminal states, shape (S,)."""

    @property
    def idle_cost(self) -> float:
        """Cost of a step in place that never pays."""

    def rows(self, lo: int, hi: int) -> Rows:
        """Return the rows of the states ``lo`` to ``hi - 1``.

        Parameters
        ----------
        lo, hi : int
        """

    def validate(self) -> Self:
        """Return the model, or refuse it."""


class PlainRows(NamedTuple):
    """Rows that need no mask and no list of terminal states.

    Parameters
    ----------
    transitions : sparse array, shape (B*A, S)
    costs : ndarray of float, shape (B, A)
    action_mask : ndarray of bool, shape (B, A)
        Which actions are available, for formats that can leave the others out.
    outcome_costs : ndarray of float, shape (nnz,)
    """

    transitions: sp.csr_array
    costs: NDArray[np.float64]
    action_mask: NDArray[np.bool_]
    outcome_costs: NDArray[np.float64]


def plain_rows(model: SupportsRows, lo: int, hi: int) -> PlainRows:
    """Return the rows of the states ``lo`` to ``hi - 1`` for formats without masks.

    Every action of a terminal state stays in place at no cost, and an unavailable action of
    another stays in place at no less than ``idle_cost``, so that it never pays: as the model has
    it where it has it so, and else as a single outcome, which costs 0 or ``idle_cost``.

    Parameters
    ----------
    model : TabularMDP or MoveMDP
    lo, hi : int
    """
    rows = model.rows(lo, hi)
    matrix, num_actions = rows.transitions, model.num_actions
    counts = np.diff(matrix.indptr)
    num_rows = len(counts)
    row_of_entry = np.repeat(np.arange(num_rows), counts)
    state_of_row = lo + np.arange(num_rows) // num_actions
    ends = np.repeat(model.terminal[lo:hi], num_actions)
    prices = np.where(ends, 0.0, model.idle_cost)
    limits = np.where(ends, 0.0, np.finfo(np.float64).max)
    row_costs = rows.costs.reshape(-1)
    fits = (prices <= row_costs) & (row_costs <= limits)
    entry_fits = (
        (matrix.indices == state_of_row[row_of_entry])
        & (prices[row_of_entry] <= rows.outcome_costs)
        & (rows.outcome_costs <= limits[row_of_entry])
    )
    fits[row_of_entry[~entry_fits]] = False
    replaced = (ends | ~rows.action_mask.reshape(-1)) & ~fits
    if not replaced.any():
        return PlainRows(matrix, rows.costs, rows.action_mask, rows.outcome_costs)
    indptr = np.concatenate([[0], np.cumsum(np.where(replaced, 1, counts))])
    kept = ~replaced[row_of_entry]
    kept_places = np.full(indptr[-1], True)
    kept_places[indptr[:-1][replaced]] = False
    data = np.ones(indptr[-1])
    indices = np.repeat(state_of_row, np.diff(indptr))
    outcome_costs = np.repeat(prices, np.diff(indptr))
    data[kept_places] = matrix.data[kept]
    indices[kept_places] = matrix.indices[kept]
    outcome_costs[kept_places] = rows.outcome_costs[kept]
    costs = np.where(replaced, prices, row_costs).reshape(rows.costs.shape)
    transitions = sp.csr_array((data, indices.astype(np.int32), indptr), shape=matrix.shape)
    return PlainRows(transitions, costs, rows.action_mask, outcome_costs)


def merged(matrix: sp.csr_array) -> sp.csr_array:
    """Return a matrix in which no row lists a column twice; itself if that is so already.

    Rows without repetition keep their order, in which planners add.
    """
    ordered = matrix.copy()
    ordered.sort_indices()
    same = ordered.indices[1:] == ordered.indices[:-1]
    # The first entry of a row may well name the last column of the row before.
    starts = ordered.indptr[(ordered.indptr > 0) & (ordered.indptr < ordered.nnz)]
    same[starts - 1] = False
    if not same.any():
        return matrix
    ordered.sum_duplicates()
    return ordered


def expected_costs(
    indptr: NDArray[np.integer[Any]],
    probabilities: NDArray[np.float64],
    outcome_costs: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the expected cost of each row, and the outcomes' costs where they are needed.

    Parameters
    ----------
    indptr : ndarray of int, shape (R + 1,)
    probabilities, outcome_costs : ndarray of float, shape (nnz,)

    Returns
    -------
    costs : ndarray of float, shape (R,)
        What all outcomes of the row cost, to the last bit, if they cost the same; else the mean,
        summed in stored order.  0 in empty rows.
    outcome_costs : ndarray of float, shape (nnz,), or None
        None if the outcomes of every row cost the same.
    """
    num_rows, counts = len(indptr) - 1, np.diff(indptr)
    row_of_entry = np.repeat(np.arange(num_rows), counts)
    first = np.zeros(num_rows)
    first[counts > 0] = outcome_costs[indptr[:-1][counts > 0]]
    even = np.full(num_rows, True)
    even[row_of_entry[outcome_costs != first[row_of_entry]]] = False
    # A bad number shows as a bad cost here; the model's validation names it as what it is.
    with np.errstate(invalid="ignore", over="ignore"):
        means = np.bincount(row_of_entry, weights=probabilities * outcome_costs, minlength=num_rows)
    return np.where(even, first, means), None if even.all() else outcome_costs


def table(
    values: ArrayLike, name: str, dtype: Any, shape: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """Return an argument as a read-only table of booleans or real numbers of the given shape.

    Parameters
    ----------
    values : array_like
    name : str
        What errors call it.
    dtype : type
        ``np.bool_`` or ``np.float64``.
    shape : tuple of int, optional
        Any by default.
    """
    array = np.asarray(values)
    if dtype is np.bool_:
        if array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
            raise ValueError(f"{name} must hold booleans, or integers 0 and 1")
    elif array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return own(array, dtype)


def without_rounding(
    probabilities: NDArray[Any], tolerance: float = _ROUNDED
) -> NDArray[np.float64]:
    """Return probabilities in double precision, 0 where rounding has left them below it.

    Parameters
    ----------
    probabilities : array_like
    tolerance : float
        How far below 0 counts as 0.
    """
    values = np.asarray(probabilities, dtype=np.float64)
    below = (values < 0.0) & (values >= -tolerance)
    return np.where(below, 0.0, values) if below.any() else values


def check_probabilities(
    probabilities: NDArray[np.float64],
    following: NDArray[Any],
    row_of_entry: NDArray[np.integer[Any]],
    describe: Callable[[int], str],
    naming: Naming = UNNAMED,
) -> None:
    """Refuse a probability that is none, naming its state and action and the next state.

    Parameters
    ----------
    probabilities : ndarray of float, shape (N,)
    following : ndarray of int, shape (N,)
        Next states.
    row_of_entry : ndarray of int, shape (N,)
        State and action of each as one number.
    describe : callable
        What errors call the state and action of such a number.
    naming : Naming
        What they call the next state.
    """
    bad = np.flatnonzero(~np.isfinite(probabilities) | (probabilities < 0))
    if len(bad):
        raise ValueError(
            f"{describe(int(row_of_entry[bad[0]]))}: probability {probabilities[bad[0]]} of "
            f"{naming.state(int(following[bad[0]]))} must be a finite number, not negative"
        )


def check_prices(
    prices: NDArray[np.float64],
    rows: NDArray[np.integer[Any]],
    describe: Callable[[int], str],
    word: str,
    unless: str = "",
) -> None:
    """Refuse a cost or reward that is not finite, in the sign in which it was given.

    Parameters
    ----------
    prices : ndarray of float, shape (N,)
    rows : ndarray of int, shape (N,)
        State and action of each as one number.
    describe : callable
        What errors call the state and action of such a number.
    word, unless : str
        What it is called, and what else would have been allowed.
    """
    bad = np.flatnonzero(~np.isfinite(prices))
    if len(bad):
        raise ValueError(
            f"{describe(int(rows[bad[0]]))}: {word} {prices[bad[0]]} must be finite{unless}"
        )


def sparse_rows(matrix: Any) -> sp.csr_array:
    """Return a dense or sparse matrix as sparse rows in double precision."""
    is_sparse = bool(sp.issparse(matrix))
    rows = sp.csr_array(matrix if is_sparse else np.asarray(matrix, dtype=np.float64))
    return rows.astype(np.float64, copy=False)


def probability_rows(matrix: Any) -> sp.csr_array:
    """Return transitions as sparse rows in double precision.

    What holds probabilities in single or half precision can miss 1 by more than a model may: rows
    that do so by a few of its roundings are divided by their sum.  Others stay as they are.  What
    rounding has left below 0 becomes 0.
    """
    rows, dtype = sparse_rows(matrix), matrix.dtype
    if dtype.kind != "f" or dtype.itemsize >= 8:
        data = without_rounding(rows.data)
    else:
        rounding = _ROUNDINGS * float(np.finfo(dtype).eps)
        data = without_rounding(rows.data, rounding)
        row_of_entry = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        sums = np.bincount(row_of_entry, weights=data, minlength=rows.shape[0])
        near = np.abs(sums - 1.0) <= rounding
        data = data / np.where(near, sums, 1.0)[row_of_entry]
    return sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def without_rows(matrix: sp.csr_array, dropped: NDArray[np.bool_]) -> sp.csr_array:
    """Return a matrix with the marked rows emptied.

    Parameters
    ----------
    matrix : sparse array, shape (R, S)
    dropped : ndarray of bool, shape (R,)
    """
    counts = np.diff(matrix.indptr)
    kept = ~np.repeat(dropped, counts)
    indptr = np.concatenate([[0], np.cumsum(np.where(dropped, 0, counts))])
    return sp.csr_array((matrix.data[kept], matrix.indices[kept], indptr), shape=matrix.shape)
