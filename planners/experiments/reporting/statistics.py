"""Means with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean, the half width of its interval (None for a single sample), and how many samples."""

    mean: float
    half_width: float | None
    num_samples: int

    def overlaps(self, other: Estimate) -> bool | None:
        """Return whether two intervals overlap; None where one of them is not known."""
        if self.half_width is None or other.half_width is None:
            return None
        return abs(self.mean - other.mean) <= self.half_width + other.half_width


def estimate(samples: Sequence[float]) -> Estimate:
    """Return the mean and its interval by Student's t, summed so that no order matters."""
    count = len(samples)
    mean = math.fsum(samples) / count
    if count == 1:
        return Estimate(mean, None, 1)
    variance = math.fsum((sample - mean) ** 2 for sample in samples) / (count - 1)
    quantile = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))
    return Estimate(mean, quantile * math.sqrt(variance / count), count)
