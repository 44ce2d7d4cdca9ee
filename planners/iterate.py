"""The one loop: every solver steps, this file counts, certifies, records and stops.

The loop owns the values.  A step writes a new V beside the last one, which stays as it is until the
step is over, so that whatever ends the run within a step, the V of the last whole iteration is
there.  What a step says of its V counts only as far as the sweep that it names did write it; the
bound of the result, and whether it meets the tolerance, come from a sweep that the loop makes.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from planners.budget import Budget, Clock, OutOfTimeError
from planners.certificate import Certifier
from planners.judge import Judge, Run, Whole
from planners.kernels import compiling
from planners.record import Callback, Record
from planners.result import KEYBOARD, Status
from planners.solvers.base import Solver


def iterate(
    solver: Solver,
    V0: NDArray[np.float64],
    certifier: Certifier,
    budget: Budget,
    clock: Clock,
    *,
    defines_values: bool = False,
    certify_every: bool = False,
    callback: Callback | None = None,
) -> Run:
    """Step a solver until it has converged, its budget is used up, or it is interrupted.

    Ctrl-C ends the run after the last whole iteration; it is reported in the status, not raised.

    Parameters
    ----------
    solver : Solver
    V0 : ndarray of float, shape (S,)
        Where to start; not changed.
    certifier : Certifier
    budget : Budget
    clock : Clock
        Started when the work on the problem began; its `Clock.check` is the checkpoint of the
        certifier's backups.
    defines_values : bool
        Whether the values are the method's own V even where it runs to a tolerance.
    certify_every : bool
        Whether each iteration gets a bound, if need be by a sweep of its own.
    callback : callable, optional
    """
    judge = Judge(certifier, budget, defines_values=defines_values)
    record = Record()
    whole = Whole(V0.copy(), np.empty_like(V0), None, None, None, 0, 0, 0)
    end: tuple[Status, str] | None = None
    try:
        try:
            with compiling.interruptible():
                while end is None:
                    step = solver.step(whole.V, whole.spare)
                    claim = judge.claim(step, whole.spare)
                    record.add(
                        clock.seconds(),
                        judge.bound(claim),
                        num_updates=step.num_updates,
                        num_megastates=step.num_megastates,
                        residual=math.nan if step.sweep is None else step.sweep.residual,
                    )
                    whole = whole.after(step, claim)
                    if claim is None and (certify_every or judge.is_due(whole)):
                        record.set_bound(judge.checked_bound(whole))
                    end = judge.end(step, whole)
                    if judge.closes(whole, end):
                        closed = judge.closed(whole, end)
                        if closed is not None and (end is None or closed[0][0].success):
                            end, whole = closed
                    if end is None:
                        end = budget.exhausted(
                            whole.num_iterations, whole.num_updates, record.seconds
                        )
                    if end is not None or judge.has_checked(whole):
                        record.settle(judge.checked_bound(whole))
                    if callback is not None:
                        values = functools.partial(judge.values, whole)
                        progress = record.progress(values, whole.labels)
                        if callback(progress) and end is None:
                            end = Status.INTERRUPTED, "stopped by the callback"
        except KeyboardInterrupt:
            end = Status.INTERRUPTED, KEYBOARD
        except OutOfTimeError:
            end = budget.out_of_time()
        clock.lift()
        with compiling.interruptible():
            return judge.run(whole, end, record.history(whole.num_iterations))
    except KeyboardInterrupt:
        # What was found is not lost for the sweep that certifies it.
        clock.lift()
        return judge.run(
            whole, (Status.INTERRUPTED, KEYBOARD), record.history(whole.num_iterations)
        )
