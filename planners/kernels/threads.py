"""Compiled kernels on several cores.

Kernels release Python's lock (``nogil=True``) and take a range of items, so threads of Python do:
one compiled version serves any number of them, nothing is left behind that a forked process could
trip over, and Ctrl-C arrives once every thread is done with the arrays it writes to.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from aggmaze.checks import check_integer
from planners.kernels import compiling

T = TypeVar("T")

#: Elementary operations below which a thread costs more than it saves.
LEAST_WORK = 1 << 19

_pool: ThreadPoolExecutor | None = None
_making = threading.Lock()


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def check_num_threads(num_threads: int | None) -> int:
    """Return the number of threads to use: what was asked for, or one for each core."""
    if num_threads is None:
        return num_cores()
    check_integer("num_threads", num_threads, least=1)
    return int(num_threads)


def run_all(tasks: list[Callable[[], T]]) -> list[T]:
    """Run functions side by side, the last one in this thread, and return what they return.

    On any exception, Ctrl-C among them, the others are waited for first: none runs on when this is
    left.
    """
    if len(tasks) == 1:
        return [tasks[0]()]
    futures: list[Future[tuple[T, float]]] = [Future() for _ in tasks[:-1]]
    here: tuple[T, float] | None = None
    failure: BaseException | None = None
    num_handed_out = 0
    while True:  # so that Ctrl-C finds the way to the waiting from wherever it strikes
        try:
            if failure is None:
                for future, task in zip(futures, tasks, strict=False):
                    _threads().submit(_run, future, task)
                    num_handed_out += 1
                here = compiling.timed(tasks[-1])
            for future in futures[num_handed_out:]:  # handed out or not, it is called off
                future.cancel()
            wait([future for future in futures if not future.cancelled()])
            break
        except BaseException as error:
            failure = failure or error
    if failure is not None:
        raise failure
    assert here is not None
    results = [future.result() for future in futures]
    # Kernels were compiled or loaded side by side, and it is the longest wait that this one shared.
    compiling.add(max(0.0, max(waited for _, waited in results) - here[1]))
    return [result for result, _ in (*results, here)]


def _run(future: Future[tuple[T, float]], task: Callable[[], T]) -> None:
    """Do a task for who waits for the future, unless it was called off."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(compiling.timed(task))
    except BaseException as error:
        future.set_exception(error)


def num_blocks(num_items: int, num_threads: int, work: int) -> int:
    """Return how many blocks `over_blocks` makes of the items.

    Parameters
    ----------
    num_items, num_threads, work : int
        As there.
    """
    return max(1, min(num_threads, work // LEAST_WORK, num_items))


def over_blocks(
    function: Callable[[int, int], T], num_items: int, num_threads: int, work: int
) -> list[T]:
    """Call ``function(lo, hi)`` on consecutive blocks that cover ``range(num_items)``.

    Only for what does not depend on where the blocks end.

    Parameters
    ----------
    function : callable
    num_items : int
    num_threads : int
        One block for each, fewer where there is too little work.
    work : int
        Elementary operations on all items.

    Returns
    -------
    list
        What the calls return, in the order of the blocks.
    """
    count = num_blocks(num_items, num_threads, work)
    if count == 1:
        return [function(0, num_items)]
    ends = [num_items * i // count for i in range(count + 1)]
    return run_all(
        [
            lambda lo=lo, hi=hi: function(lo, hi)  # type: ignore[misc]
            for lo, hi in itertools.pairwise(ends)
        ]
    )


def _threads() -> ThreadPoolExecutor:
    global _pool
    with _making:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(1, num_cores() - 1), thread_name_prefix="planners")
        return _pool


def _forget() -> None:
    """Drop the pool in a forked process: its threads are not there, nor who may hold the lock."""
    global _pool, _making
    _pool, _making = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
