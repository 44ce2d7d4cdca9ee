"""Tasks on workers: through any `concurrent.futures.Executor`, with the results kept as they come.

The default is a pool of processes that are started afresh ("spawn"), since threads of compiled
kernels do not survive a fork.  Workers compute; only this process writes files, so that workers on
other machines need none of its disks.

A worker that dies takes with it what was running.  That is reported, and those tasks are run again
on a new pool, a task three times at most.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Protocol

from planners.experiments.running.results import Results
from planners.experiments.running.tasks import Task, perform
from planners.experiments.study import Outcome

#: How often a task is begun before it is given up.
MOST_ATTEMPTS = 3

# Seconds between looks at the clock while tasks run.
_TICK = 0.5

#: Makes an executor and the number of tasks to give it at once; closed when the block ends.
ExecutorFactory = Callable[[], AbstractContextManager[tuple[Executor, int]]]


class Watcher(Protocol):
    """Is told how a run goes."""

    def begin(self, tasks: Sequence[Task], outcomes: Sequence[Outcome | None]) -> None:
        """Hear which tasks there are.

        Parameters
        ----------
        tasks : sequence of Task
        outcomes : sequence of Outcome or None, as many
            Of those that were done before; None for the others.
        """

    def started(self, task: Task) -> None:
        """Hear of a task that is begun, or begun again."""

    def done(self, task: Task, outcome: Outcome) -> None:
        """Hear of a task that is done.

        Parameters
        ----------
        task : Task
        outcome : Outcome
            With the seconds that it took.
        """

    def given_up(self, task: Task) -> None:
        """Hear of a task that will not be done."""

    def tick(self) -> None:
        """Hear that time passes."""

    def report(self, text: str) -> None:
        """Hear of something out of the ordinary."""


@dataclass(frozen=True)
class Completed:
    """What became of the tasks.

    Parameters
    ----------
    outcomes : list
        By task; None where it failed.
    failures : dict
        By number of the task, why.
    seconds : float
        Of this run.
    """

    outcomes: list[Outcome | None]
    failures: dict[int, str]
    seconds: float


def run_tasks(
    tasks: Sequence[Task], results: Results, make_executor: ExecutorFactory, watcher: Watcher
) -> Completed:
    """Run what has no result yet, and return all outcomes in the order of tasks.

    The longest task of each experiment comes first, so that it is soon known how long the tasks of
    each take; then the others, longest first.

    Parameters
    ----------
    tasks : sequence of Task
    results : Results
    make_executor : callable
    watcher : Watcher

    Raises
    ------
    OSError
        If a result cannot be written.  What was written before is kept.
    KeyboardInterrupt
        After the workers have been stopped.
    """
    start = time.perf_counter()
    results.clear_leftovers()
    run = _Run(tasks, results, watcher)
    try:
        while run.queue:
            with make_executor() as (executor, width):
                run.drain(executor, width)
    except KeyboardInterrupt:
        done = len(tasks) - run.outcomes.count(None)
        watcher.report(f"{done:,} of {len(tasks):,} tasks are done; the same command goes on")
        raise
    return Completed(run.outcomes, run.failures, time.perf_counter() - start)


class _Run:
    """Tasks that wait, those that are under way, and what has become of the others."""

    def __init__(self, tasks: Sequence[Task], results: Results, watcher: Watcher) -> None:
        self.outcomes = [results.load(task) for task in tasks]
        self.failures: dict[int, str] = {}
        missing = [i for i, outcome in enumerate(self.outcomes) if outcome is None]
        longest_first = sorted(missing, key=lambda i: (-tasks[i].work, i))
        samples = {tasks[i].experiment: i for i in reversed(longest_first)}.values()
        self.queue = sorted(longest_first, key=lambda i: i not in samples)
        self._tasks, self._results, self._watcher = tasks, results, watcher
        self._deaths = dict.fromkeys(missing, 0)
        self._running: dict[Future[Outcome], int] = {}
        watcher.begin(tasks, self.outcomes)

    def drain(self, executor: Executor, width: int) -> None:
        """Work until nothing is left to do, or the executor is of no more use."""
        while True:
            while self.queue and len(self._running) < self._width(width):
                i = self.queue.pop(0)
                try:
                    self._running[executor.submit(perform, self._tasks[i])] = i
                except BrokenExecutor:
                    self.queue.insert(0, i)
                    break
                self._watcher.started(self._tasks[i])
            if not self._running:
                return
            finished, _ = wait(self._running, timeout=_TICK, return_when=FIRST_COMPLETED)
            self._watcher.tick()
            # All that is under way ends with the executor, and what has ended well is kept first.
            for future in sorted(finished, key=lambda future: _is_broken(future)):
                self._finish(future)

    def _width(self, width: int) -> int:
        """Return how many tasks may run at once: what a worker died of runs alone.

        So that it is known which task it was, where several were under way.
        """
        suspects = [i for i in (*self._running.values(), *self.queue[:1]) if self._deaths[i] > 0]
        return 1 if suspects else width

    def _finish(self, future: Future[Outcome]) -> None:
        i = self._running.pop(future)
        name = f"{self._tasks[i].experiment}/{self._tasks[i].name}"
        try:
            outcome = future.result()
        except Exception as error:
            if _is_death(error):
                self._deaths[i] += 1
                reason = f"a worker died, attempt {self._deaths[i]} of {MOST_ATTEMPTS}"
                if self._deaths[i] < MOST_ATTEMPTS:
                    self._watcher.report(f"{name}: {reason}; the task is run again")
                    self.queue.insert(0, i)
                    return
            else:
                reason = f"{type(error).__name__}: {error}".splitlines()[0]
            self.failures[i] = reason
            self._watcher.given_up(self._tasks[i])
            self._watcher.report(f"{name}: given up: {reason}")
        else:
            self._results.save(self._tasks[i], outcome)
            self.outcomes[i] = outcome
            self._watcher.done(self._tasks[i], outcome)


def _is_broken(future: Future[Outcome]) -> bool:
    return future.cancelled() or isinstance(future.exception(), BrokenExecutor)


def _is_death(error: Exception) -> bool:
    # Nothing is cancelled here: that is what is left of tasks when a Dask cluster goes away.
    # KilledWorker is of dask.distributed, which need not be installed.
    gone = isinstance(error, BrokenExecutor | CancelledError)
    return gone or type(error).__name__ == "KilledWorker"


def process_pool(num_workers: int) -> ExecutorFactory:
    """Return what makes pools of ``num_workers`` processes."""

    @contextmanager
    def make() -> Iterator[tuple[Executor, int]]:
        before = set(_children())
        executor = ProcessPoolExecutor(
            num_workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_prepare_worker,
        )
        try:
            yield executor, num_workers
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            # They are in the midst of tasks that nobody waits for any more.
            for process in set(_children()) - before:
                process.terminate()
            raise
        executor.shutdown(wait=True, cancel_futures=True)

    return make


def dask_cluster(address: str | None, num_workers: int) -> ExecutorFactory:
    """Return what makes executors on a Dask cluster.

    Parameters
    ----------
    address : str or None
        Of the scheduler; None to start a cluster on this machine.
    num_workers : int
        Processes of the cluster on this machine; one at an address has workers of its own.

    Raises
    ------
    ModuleNotFoundError
        If dask.distributed is not installed.
    """
    try:
        from distributed import Client, LocalCluster  # type: ignore[import-not-found, unused-ignore]
    except ModuleNotFoundError as error:
        if error.name != "distributed":  # it is there, and something that it needs is not
            raise
        raise ModuleNotFoundError(
            "--scheduler and --dask-local need dask.distributed: pip install 'aggmaze[sweeps]'"
        ) from None

    @contextmanager
    def make() -> Iterator[tuple[Executor, int]]:
        if address is not None:
            with Client(address, timeout="30s") as client:
                yield _dask_executor(client), max(1, sum(client.nthreads().values()))
            return
        with (
            LocalCluster(
                n_workers=num_workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield _dask_executor(client), num_workers

    return make


def _dask_executor(client: object) -> Executor:
    # Every task has its own random numbers, so equal calls are not one and the same to Dask.
    return client.get_executor(pure=False, retries=0)  # type: ignore[attr-defined]


def _children() -> list[BaseProcess]:
    return multiprocessing.active_children()


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent, and end when it does, be it killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
