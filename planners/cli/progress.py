"""How a solve goes, told while it runs."""

from __future__ import annotations

import math

from planners.objective import Objective
from planners.record import Progress
from planners.waiting import Waiting


class ProgressLine(Waiting):
    """Tells how a run goes, or one run after another."""

    _of = ""

    def begin(self, method: str, objective: Objective) -> None:
        """Tell that a run of several begins.

        Parameters
        ----------
        method : str
        objective : Objective
        """
        self._of = f"{method}, {objective}: "
        self.tell(f"{self._of}solving")

    def show(self, progress: Progress) -> None:
        """Tell an iteration; as a callback, never ask to stop."""
        text = f"{self._of}iteration {progress.iteration:,}, {progress.num_updates:,} updates"
        if not math.isnan(progress.bound):
            text += f", bound {progress.bound:.3g}"
        self.tell(text)
