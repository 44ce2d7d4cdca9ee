"""Equal cells of CartPole's states."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aggmaze.cartpole.physics import AXES, VELOCITY_LIMITS, Physics
from aggmaze.cells import cells as boxes
from aggmaze.cells.cells import one_each
from aggmaze.checks import check_integer, check_positive
from aggmaze.grid import Grid

#: Bins whose policies balance: see `DiscretizedCartPole`.
DEFAULT_BINS = (8, 8, 12, 13)

__all__ = ["DEFAULT_BINS", "VELOCITY_LIMITS", "Cells"]


@dataclass(frozen=True)
class Cells(boxes.Cells):
    """Equal cells of a box around the origin, and one state more: having failed.

    Cell ``(i, j, k, l)`` has the index ``ravel_multi_index((i, j, k, l), bins)``; ``failure`` is
    the last state.  The outermost cells take what lies beyond the limits as well.

    Parameters
    ----------
    bins : tuple of int
        Number of bins of position, velocity, angle and angular velocity.
    limits : tuple of float
        The box: each number between ``-limit`` and ``limit``.
    """

    def __init__(self, bins: tuple[int, ...], limits: tuple[float, ...]) -> None:
        super().__init__(bins, tuple(-limit for limit in limits), limits)

    @classmethod
    def of(cls, physics: Physics, bins: Iterable[int], limits: Iterable[float] | None) -> Cells:
        """Return the cells of a CartPole, with arguments checked.

        Parameters
        ----------
        physics : Physics
            Of the CartPole.
        bins : iterable of int
        limits : iterable of float, optional
            By default those at which the pole counts as fallen, and `VELOCITY_LIMITS`.

        Raises
        ------
        ValueError, TypeError
            If there are not four bins of at least 1, or four positive limits, those of position and
            angle within what counts as failed.
        """
        counts = one_each("bins", bins, AXES)
        counts = tuple(check_integer(f"bins[{axis}]", n, least=1) for axis, n in enumerate(counts))
        given = one_each("limits", physics.high if limits is None else limits, AXES)
        for axis, limit in enumerate(given):
            check_positive(f"limits[{axis}]", limit)
        for axis, threshold in ((0, physics.thresholds[0]), (2, physics.thresholds[1])):
            if given[axis] > threshold:
                raise ValueError(
                    f"limits[{axis}] must be at most {threshold}, the {AXES[axis]} at which the "
                    f"pole counts as fallen, got {given[axis]}"
                )
        return cls(Grid(counts).shape, tuple(float(limit) for limit in given))

    @property
    def limits(self) -> tuple[float, ...]:
        """The box: each number between ``-limit`` and ``limit``."""
        return self.high

    @property
    def failure(self) -> int:
        """The state of having failed."""
        return self.end
