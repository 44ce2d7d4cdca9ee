"""Heights that are told by a rule, cell by cell: any block of them alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from aggmaze.grid import Grid
from aggmaze.layouts.rule import drawn_key, sizes_of

# Lattices of noise, each twice as fine and half as high as the one before it.
_MOST_OCTAVES = 4
# Cells between the points of the coarsest lattice, over the smoothness.  With this number heights
# are half correlated at the distance at which a Gaussian of that standard deviation leaves white
# noise half correlated: 2 sqrt(log 2) = 1.67 times the smoothness.
_SPACING = 3.3
# Cells whose extremes are found in passing, a few seconds; and cells that are drawn together.
_MOST_SCANNED, _PIECE = 2**32, 1 << 20


class HeightRule(Protocol):
    """The heights of a grid, any block of cells alone."""

    def heights(self, lo: int, hi: int) -> NDArray[np.float64]:
        """Return the heights of the cells ``lo`` to ``hi - 1``, shape (hi - lo,), in [0, 1].

        Parameters
        ----------
        lo, hi : int
            Numbers of cells in the grid.
        """


@dataclass(frozen=True)
class NoiseHeights:
    """Value noise: numbers drawn uniformly on lattices, and in between what is smooth.

    No height needs any other: they lie in [0, 1] by what they are made of, and are not stretched
    until some cell has 0 and another 1.

    Parameters
    ----------
    grid : Grid
    smoothness : float, optional
        In cells: heights are correlated as far as those of "smooth" terrain are, whose Gaussian
        has this standard deviation.  By default a twentieth of the size along each axis.
    key : np.uint64
    """

    grid: Grid
    smoothness: float | None
    key: np.uint64

    @cached_property
    def spacings(self) -> NDArray[np.int64]:
        """Cells between two points of each lattice along each axis, shape (N, D)."""
        sigmas = [n / 20 if self.smoothness is None else self.smoothness for n in self.grid.shape]
        # Much smoother than the grid is wide is flat: what 64 bits count will do.
        coarsest = [max(1, round(min(_SPACING * sigma, 2.0**62))) for sigma in sigmas]
        finer = [
            [max(1, spacing >> octave) for spacing in coarsest]
            for octave in range(1, _MOST_OCTAVES)
            if max(coarsest) >> octave >= 2
        ]
        return np.array([coarsest, *finer], dtype=np.int64)

    def heights(self, lo: int, hi: int) -> NDArray[np.float64]:
        """Return the heights of the cells ``lo`` to ``hi - 1``, shape (hi - lo,), in [0, 1].

        Parameters
        ----------
        lo, hi : int
        """
        from aggmaze.layouts.counter_kernels import stream  # which takes long to import
        from aggmaze.layouts.noise_kernels import value_noise

        keys = np.empty(len(self.spacings), dtype=np.uint64)
        stream(self.key, np.uint64(0), keys)
        amplitudes = 0.5 ** np.arange(len(keys))
        amplitudes /= amplitudes.sum()
        found = np.empty(hi - lo)
        value_noise(keys, amplitudes, self.spacings, sizes_of(self.grid)[0], lo, found)
        return found


@dataclass(frozen=True)
class UniformHeights:
    """Heights drawn independently and uniformly, then stretched to [0, 1] as a whole.

    The draws are those of `numpy.random.Generator.random` in one go: the generator is advanced to
    the first cell of a block.  To stretch them takes the extremes of all, found by a pass over all
    cells the first time that a height is asked for.

    Parameters
    ----------
    grid : Grid
    bit_generator : numpy.random.PCG64
        Where it stands when the first cell is drawn.

    Raises
    ------
    ValueError
        If there are too many cells for that pass.
    """

    grid: Grid
    bit_generator: np.random.PCG64

    def __post_init__(self) -> None:
        if self.grid.num_states > _MOST_SCANNED:
            raise ValueError(
                f"terrain='uniform' is stretched to [0, 1] by the extremes of all cells, which "
                f"takes a pass over them: at most {_MOST_SCANNED} by rows, got "
                f"{self.grid.num_states}; terrain='noise' takes none"
            )
        object.__setattr__(self, "_state", self.bit_generator.state)

    def heights(self, lo: int, hi: int) -> NDArray[np.float64]:
        """Return the heights of the cells ``lo`` to ``hi - 1``, shape (hi - lo,), in [0, 1].

        Parameters
        ----------
        lo, hi : int
        """
        return stretched(self._draws(lo).random(hi - lo), *self._extremes)

    @cached_property
    def _extremes(self) -> tuple[float, float]:
        draws, left = self._draws(0), self.grid.num_states
        low, high = np.inf, -np.inf
        part = np.empty(min(left, _PIECE))
        while left:
            piece = part[: min(left, _PIECE)]
            draws.random(out=piece)
            low, high = min(low, float(piece.min())), max(high, float(piece.max()))
            left -= len(piece)
        return low, high

    def _draws(self, first: int) -> np.random.Generator:
        """Return a generator that stands before the draw of a cell."""
        generator = np.random.PCG64()
        generator.state = self.__dict__["_state"]
        return np.random.Generator(generator.advance(first))


def stretched(field: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return heights shifted and stretched so that two of them become 0 and 1.

    Parameters
    ----------
    field : ndarray of float
    low, high : float
        All become 0 where these are equal.
    """
    shifted = field - low
    # The range of equal heights is 0: keep them at 0.
    shifted /= high - low or 1.0
    return np.asarray(shifted)


def _noise(grid: Grid, smoothness: float | None, rng: np.random.Generator) -> HeightRule:
    return NoiseHeights(grid, smoothness, drawn_key(rng))


def _uniform(grid: Grid, smoothness: float | None, rng: np.random.Generator) -> HeightRule:
    bits: Any = rng.bit_generator
    return UniformHeights(grid, bits)


#: Terrains of which any block can be made alone.
HEIGHT_RULES: dict[str, Callable[[Grid, float | None, np.random.Generator], HeightRule]] = {
    "noise": _noise,
    "uniform": _uniform,
}
