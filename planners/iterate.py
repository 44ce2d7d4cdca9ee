"""The one loop: every solver steps, this file counts, certifies, records and stops.

The loop owns the values.  A step writes a new V beside the last one, which stays as it is until the
step is over, so that whatever ends the run within a step, the V of the last whole iteration is
there.  What a step says of its V counts only as far as the sweep that it names did write it; the
bound of the result, and whether it meets the tolerance, come from a sweep that the loop makes.

Where a run is kept (`planners.checkpoint`), there is a `Point` of each iteration, replaced by a
single assignment as V is: first as the step left it, and once more when it has been judged.
Whatever ends the run, the last of them is written; who goes on from the first kind judges it again.
"""

from __future__ import annotations

import functools
import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from aggmaze.progress import stage
from planners.budget import Budget, Clock, OutOfTimeError
from planners.certificate import Certifier
from planners.checkpoint import Found, Keeper, Point
from planners.judge import Judge, Run, Whole
from planners.kernels import compiling
from planners.record import Callback, Record
from planners.result import KEYBOARD, Status
from planners.signals import AGAIN
from planners.solvers.base import Resumable, Solver, Step


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
    keeper: Keeper | None = None,
) -> Run:
    """Step a solver until it has converged, its budget is used up, or it is interrupted.

    Ctrl-C ends the run after the last whole iteration; it is reported in the status, and raised
    at the second time, or where it breaks off the compilation of kernels before there is one.

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
    keeper : Keeper, optional
        Where the run is kept, and may have begun.
    """
    judge = Judge(certifier, budget, defines_values=defines_values)
    record = Record()
    step: Step | None = None  # what the last iteration did, until it is judged
    end: tuple[Status, str] | None = None
    ending = "certifying"
    struck = False  # by Ctrl-C
    point: Point | None = None
    found = None if keeper is None else keeper.found
    before = 0.0
    if found is None:
        whole = Whole(V0.copy(), np.empty_like(V0), None, None, None, 0, 0, 0)
    else:
        whole, step, before = _gone_on(solver, judge, record, budget, found)
        if step is None:
            end = budget.exhausted(whole.num_iterations, whole.num_updates, 0.0)
    try:
        try:
            with compiling.interruptible():
                while end is None:
                    if step is None:
                        with first_told(whole.num_iterations, len(whole.V)):
                            step = solver.step(whole.V, whole.spare)
                        claim = judge.claim(step, whole.spare)
                        record.add(
                            before + clock.seconds(),
                            judge.bound(claim),
                            num_updates=step.num_updates,
                            num_megastates=step.num_megastates,
                            residual=math.nan if step.sweep is None else step.sweep.residual,
                        )
                        whole = whole.after(step, claim)
                        if keeper is not None:
                            point = _point(whole, step, judge, record, solver)
                    if whole.claim is None and (certify_every or judge.is_due(whole)):
                        record.set_bound(judge.checked_bound(whole))
                    end = judge.end(step, whole)
                    if judge.closes(whole, end):
                        closed = judge.closed(whole, end)
                        if closed is not None and (end is None or closed[0][0].success):
                            end, whole = closed
                    seconds = record.seconds - before
                    if end is None:
                        end = budget.exhausted(whole.num_iterations, whole.num_updates, seconds)
                    if end is not None or judge.has_checked(whole):
                        record.settle(judge.checked_bound(whole))
                    step = None
                    if keeper is not None and end is None:
                        point = _point(whole, None, judge, record, solver)
                    if callback is not None:
                        values = functools.partial(judge.values, whole)
                        progress = record.progress(values, whole.labels)
                        if callback(progress) and end is None:
                            end = Status.INTERRUPTED, "stopped by the callback"
                    if keeper is not None and point is not None and end is None:
                        keeper.write_if_due(point, seconds)
        except KeyboardInterrupt as error:
            if whole.num_iterations == 0 and compiling.was_broken_off():
                raise  # there is nothing to certify, for which more would have to be compiled
            struck = True
            end = Status.INTERRUPTED, str(error) or KEYBOARD
            ending = f"certifying what there is{AGAIN}"
        except OutOfTimeError:
            end = budget.out_of_time()
        clock.lift()
        with compiling.interruptible():
            if keeper is not None and point is not None:
                keeper.write(point, record.seconds - before)
            history = record.history(whole.num_iterations)
            with stage(ending):
                return _told(judge.run(whole, end, history), budget, keeper, before)
    except KeyboardInterrupt as error:
        if struck or (whole.num_iterations == 0 and compiling.was_broken_off()):
            raise
        # What was found is not lost for the sweep that certifies it.
        clock.lift()
        end = Status.INTERRUPTED, str(error) or KEYBOARD
        history = record.history(whole.num_iterations)
        return _told(judge.run(whole, end, history), budget, keeper, before)


def first_told(num_iterations: int, num_states: int) -> AbstractContextManager[None]:
    """Tell in a block that the first iteration goes on; later the one before is told.

    Parameters
    ----------
    num_iterations : int
        That are over.
    num_states : int
    """
    if num_iterations:
        return nullcontext()
    return stage(f"first iteration, {num_states:,} states")


def _point(whole: Whole, step: Step | None, judge: Judge, record: Record, solver: Solver) -> Point:
    state = solver.state() if isinstance(solver, Resumable) else None
    return Point(whole, step, judge.state(), record.mark(), state)


def _gone_on(
    solver: Solver, judge: Judge, record: Record, budget: Budget, found: Found
) -> tuple[Whole, Step | None, float]:
    """Go on with a run that was kept; return where it is, what is to be judged, and its seconds."""
    whole = found.whole
    limit = budget.num_iterations
    if limit is not None and limit < whole.num_iterations:
        raise ValueError(
            f"the checkpoint is of iteration {whole.num_iterations:,}, and num_iterations={limit} "
            "is asked for: take another folder, or Checkpoint(path, resume=False) to start over"
        )
    record.restore(found.rows, found.last, found.stride)
    if found.solver is None or not isinstance(solver, Resumable):
        judge.num_sweeps = found.judge["num_sweeps"]
        return whole, None, found.seconds
    judge.restore(found.judge)
    labels = solver.restore(found.solver)
    return whole._replace(labels=labels), found.step, found.seconds


def _told(run: Run, budget: Budget, keeper: Keeper | None, before: float) -> Run:
    """Say in the message of a run where it was gone on with, and can be."""
    if keeper is None:
        return run
    message = run.message
    if keeper.found is not None:
        message += f"; resumed at iteration {keeper.found.whole.num_iterations:,}"
    timed_out = budget.time_limit is not None and run.message == budget.out_of_time()[1]
    if timed_out or not run.status.success:
        message += f"; {keeper.words()}"
    return replace(run, message=message, seconds_before=before)
