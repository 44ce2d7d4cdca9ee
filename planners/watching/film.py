"""What is kept of a run that is watched: frames, and the curves; bounded, however long it lasts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planners.record import Progress
from planners.result import SolveResult

# Bytes of all frames, and how many there are at most and at least.
_BYTES = 256 << 20
_MOST_FRAMES, _FEWEST_FRAMES = 400, 24
# Points of the curves.
_MOST_POINTS = 800


@dataclass(frozen=True, eq=False)
class Frame:
    """The state of a run after an iteration.

    Parameters
    ----------
    iteration, num_updates : int
        So far.
    seconds : float
    num_megastates : int
        K where the iteration was aggregated, 0 where it was global.
    residual, bound : float
        NaN where the iteration says nothing of them.
    values : ndarray of float, shape (S,)
        Costs-to-go as the result would have them.
    labels : ndarray of int32, shape (S,), optional
        The last mega-states.
    policy : ndarray of int, shape (S,), optional
        What to do, where that is known already.
    """

    iteration: int
    num_updates: int
    seconds: float
    num_megastates: int
    residual: float
    bound: float
    values: NDArray[np.float64]
    labels: NDArray[np.int32] | None
    policy: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, progress: Progress, num_states: int) -> Frame:
        """Copy what a callback sees; only of the first states, those that the model lists."""
        labels = progress.labels
        return cls(
            progress.iteration,
            progress.num_updates,
            progress.seconds,
            progress.num_megastates,
            progress.residual,
            progress.bound,
            progress.values[:num_states],
            None if labels is None else labels[:num_states],
        )

    @classmethod
    def last(cls, result: SolveResult, megastates: int) -> Frame:
        """Return the frame of a result, with the bound that is certified and its policy.

        Parameters
        ----------
        result : SolveResult
        megastates : int
            K of the last iteration.
        """
        history = result.history
        residual = float(history.residual[-1]) if len(history.residual) else math.nan
        one_step = result.values.ndim == 1
        return cls(
            result.num_iterations,
            result.num_updates,
            result.seconds,
            megastates,
            residual,
            result.bound,
            result.values if one_step else result.values[0],
            result.labels,
            result.policy if one_step else result.policy[0],
        )

    def groups(self) -> NDArray[np.int64]:
        """Return the place of each mega-state among those of several states, in order of value.

        Returns
        -------
        ndarray of int64, shape (S,)
            Of each state; -1 where one is alone in its mega-state, and where there are none yet.
        """
        if self.labels is None:
            return np.full(len(self.values), -1, dtype=np.int64)
        _, own = np.unique(self.labels, return_inverse=True)
        sizes = np.bincount(own)
        means = np.bincount(own, np.nan_to_num(self.values, posinf=1e300) / sizes[own])
        several = np.flatnonzero(sizes > 1)
        place = np.full(len(sizes), -1, dtype=np.int64)
        place[several[np.argsort(means[several], kind="stable")]] = np.arange(len(several))
        return place[own]


class Point(NamedTuple):
    """What the curves show of an iteration."""

    num_updates: int
    residual: float
    bound: float
    num_megastates: int


def chosen(frames: list[Frame], most: int) -> list[Frame]:
    """Return so many frames at most, the first and the last among them.

    Where there are too many, those at the ends of phases stay before others, and early ones before
    late ones.

    Parameters
    ----------
    frames : list of Frame
        In the order of their iterations.
    most : int
        At least 2.
    """
    if len(frames) > most:
        frames = (
            [
                frame
                for place, frame in enumerate(frames)
                if place in (0, len(frames) - 1)
                or (frame.num_megastates > 0) != (frames[place + 1].num_megastates > 0)
            ]
            if any(frame.num_megastates for frame in frames)
            else frames
        )
    thinned = list(frames)
    while len(thinned) > most:
        _thin(thinned)
    return thinned


def _thin(frames: list[Frame]) -> None:
    """Leave out the frame whose neighbours are closest together, in shares of its iteration."""
    at = np.array([frame.iteration for frame in frames], dtype=np.float64)
    del frames[1 + int(np.argmin((at[2:] - at[:-2]) / at[1:-1]))]


class Film:
    """Frames in the order of their iterations, and the points of the curves.

    Once there is no room for more, the frame goes whose neighbours are closest together, measured
    in shares of the iterations so far: early iterations, where most happens, stay dense.

    Parameters
    ----------
    num_states : int
    most_frames : int
        At most so many, and fewer where they would take more than 256 MB.

    Attributes
    ----------
    frames : list of Frame
    """

    def __init__(self, num_states: int, most_frames: int = _MOST_FRAMES) -> None:
        fitting = _BYTES // (12 * max(1, num_states))
        self._most = min(most_frames, max(_FEWEST_FRAMES, fitting))
        self.frames: list[Frame] = []
        self._points: list[Point] = []
        self._stride = 1
        self._seen = 0

    def wants(self, iteration: int) -> bool:
        """Whether a frame of this iteration would stay, or is to be taken in its turn."""
        if len(self.frames) < self._most:
            return True
        return iteration >= self.frames[-1].iteration * (1 + 2 / self._most)

    def add(self, frame: Frame) -> None:
        """Take a frame in; one of the same iteration as the last takes its place."""
        frames = self.frames
        if frames and frames[-1].iteration == frame.iteration:
            frames[-1] = frame
            return
        frames.append(frame)
        if len(frames) > self._most:
            _thin(frames)

    def note(self, progress: Progress) -> None:
        """Take an iteration into the curves."""
        if self._seen % self._stride == 0:
            self._points.append(
                Point(
                    progress.num_updates,
                    progress.residual,
                    progress.bound,
                    progress.num_megastates,
                )
            )
            if len(self._points) > _MOST_POINTS:
                del self._points[1::2]
                self._stride *= 2
        self._seen += 1

    def finish(self, result: SolveResult) -> None:
        """Let frames and curves end with what is certified."""
        megastates = self.frames[-1].num_megastates if self.frames else 0
        self.add(Frame.last(result, megastates))
        self._points.append(Point(result.num_updates, math.nan, result.bound, megastates))

    def points(self) -> list[Point]:
        """Return the points of the curves so far, as a new list."""
        return list(self._points)
