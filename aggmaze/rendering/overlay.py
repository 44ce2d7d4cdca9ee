"""What is known of the states of an environment, to be drawn over its picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_discount
from aggmaze.rendering.colors import megastate_shares
from aggmaze.summary import in_one_line


@dataclass(frozen=True, eq=False)
class Overlay:
    """Values, actions, groups and a path; what is None is not drawn.

    Parameters
    ----------
    values : ndarray of float, shape (S,), optional
        Costs-to-go.
    policy : ndarray of int, shape (S,), optional
        An action in each state.
    labels : ndarray of int, shape (S,), optional
        Mega-state of each state.
    path : ndarray of int, optional
        States in order.
    gamma : float, optional
        The discount of the values, written beside them.
    returns : bool
        Whether values are told as returns, which are minus the costs-to-go.
    """

    values: NDArray[np.float64] | None = None
    policy: NDArray[np.int64] | None = None
    labels: NDArray[np.int64] | None = None
    path: NDArray[np.int64] | None = None
    gamma: float | None = None
    returns: bool = False

    __repr__ = in_one_line

    @classmethod
    def of(
        cls,
        num_states: int,
        num_actions: int,
        *,
        values: ArrayLike | None = None,
        policy: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        path: Iterable[int] | None = None,
        gamma: float | None = None,
        returns: bool = False,
    ) -> Overlay:
        """Return an overlay of arrays of the caller, checked and copied.

        Parameters
        ----------
        num_states, num_actions : int
        values, policy, labels, path, gamma, returns
            As in `Overlay`, of any array_like type.

        Raises
        ------
        ValueError
            If an array has another shape than (S,), the policy holds what is no action, labels are
            negative, the path names what is no state, no value is finite, or gamma is not in
            [0, 1].
        TypeError
            If values or gamma are not real numbers, or the others not integers.
        """
        actions, states = f"actions in [0, {num_actions})", f"states in [0, {num_states})"
        return cls(
            values=None if values is None else _values(values, num_states),
            policy=None
            if policy is None
            else _integers("policy", policy, num_states, actions, num_actions),
            labels=None
            if labels is None
            else _integers("labels", labels, num_states, "at least 0"),
            path=None if path is None else _integers("path", list(path), None, states, num_states),
            gamma=None if gamma is None else check_discount(gamma),
            returns=returns,
        )

    @cached_property
    def span(self) -> tuple[float, float]:
        """Least and greatest finite value; of an overlay with values."""
        assert self.values is not None
        finite = self.values[np.isfinite(self.values)]
        return float(finite.min()), float(finite.max())

    @property
    def kind_of_values(self) -> str:
        """What values are called."""
        return "return" if self.returns else "cost-to-go"

    def told(self, value: float) -> float:
        """Return a value as it is told, a cost-to-go or a return."""
        return (0.0 - value) if self.returns else value

    @cached_property
    def label_shares(self) -> NDArray[np.float64]:
        """Where the mega-state of each state lies in their order, shape (S,), in [0, 1]."""
        assert self.labels is not None
        return megastate_shares(self.labels)

    @cached_property
    def num_labels(self) -> int:
        """Number of different labels; of an overlay with labels."""
        assert self.labels is not None
        return len(np.unique(self.labels))

    def shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where values lie between the least, 0, and the greatest, 1; NaN where infinite."""
        low, high = self.span
        finite = np.where(np.isfinite(values), values, np.nan)
        return (finite - low) / (high - low) if high > low else 0.0 * finite


def number(value: float) -> str:
    """Write a number in few characters."""
    value = 0.0 if abs(value) < 1e-6 else value  # what is left of rounding
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def _values(values: ArrayLike, num_states: int) -> NDArray[np.float64]:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"values must be real numbers, got {values!r}") from None
    _check_shape("values", array, num_states)
    if not np.isfinite(array).any():
        raise ValueError("values must not all be infinite or NaN")
    return array


def _integers(
    name: str, given: Any, num_states: int | None, allowed: str, below: int | None = None
) -> NDArray[np.int64]:
    array = np.array(given)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{name} must be integers, got {array.dtype}")
    _check_shape(name, array, num_states)
    bad = np.flatnonzero((array < 0) | (array >= (np.inf if below is None else below)))
    if len(bad):
        raise ValueError(f"{name}[{bad[0]}] must be {allowed}, got {array[bad[0]]}")
    return array.astype(np.int64)


def _check_shape(name: str, array: NDArray[Any], num_states: int | None) -> None:
    if array.ndim != 1 or (num_states is not None and len(array) != num_states):
        wanted = "one axis" if num_states is None else f"shape ({num_states},), one a state"
        raise ValueError(f"{name} must have {wanted}, got shape {array.shape}")
