"""Sweeps on several threads: the same numbers on any count, and nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import planners
from planners.bellman import local_engine
from planners.kernels import threads
from planners.kernels.threads import check_num_threads, over_blocks, run_all
from tests.planners.reference import methods_for


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use threads however little there is to do."""
    monkeypatch.setattr(threads, "LEAST_WORK", 1)


def models() -> list[planners.bellman.Model]:
    maze = planners.as_model(gym.make("TerrainMaze-v0", shape=(13, 11), p=0.8))
    return [maze, maze.to_tabular()]


@pytest.mark.parametrize("num_threads", [2, 3, 7, 500])
def test_backups_do_not_depend_on_the_number_of_threads(num_threads: int, always: None) -> None:
    rng = np.random.default_rng(0)
    for model in models():
        one, many = (local_engine(model, 0.9, count) for count in (1, num_threads))
        V = rng.normal(size=model.num_states)
        policy = np.empty(model.num_states, dtype=np.int32)
        one.sweep(V, np.empty_like(V), policy)
        for make in (
            lambda b, out: b.sweep(V, out),  # noqa: B023
            lambda b, out: b.sweep(V, out, np.empty_like(policy)),  # noqa: B023
            lambda b, out: b.policy_sweep(policy, V, out),  # noqa: B023
        ):
            first, second = np.empty_like(V), np.empty_like(V)
            assert make(one, first) == make(many, second)
            np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(one.q_values(V), many.q_values(V))


def test_results_do_not_depend_on_the_number_of_threads(always: None) -> None:
    for method, model in [(m, each) for each in models() for m in methods_for(each)]:
        one, many = (
            planners.solve(model, gamma=0.95, method=method, num_threads=count, num_iterations=60)
            for count in (1, 5)
        )
        np.testing.assert_array_equal(one.values, many.values)
        np.testing.assert_array_equal(one.policy, many.policy)
        assert one.bound == many.bound


def test_blocks_cover_everything_once() -> None:
    seen: list[tuple[int, int]] = []
    work = 10 * threads.LEAST_WORK
    over_blocks(lambda lo, hi: seen.append((lo, hi)), 10, 4, work)
    assert sorted(seen) == [(0, 2), (2, 5), (5, 7), (7, 10)]
    assert over_blocks(lambda lo, hi: (lo, hi), 10, 4, threads.LEAST_WORK - 1) == [(0, 10)]
    assert over_blocks(lambda lo, hi: (lo, hi), 2, 4, work) == [(0, 1), (1, 2)]


def test_an_exception_waits_for_the_other_threads() -> None:
    done = []

    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all([lambda: done.append(sum(range(10**6))), fail])
    assert len(done) == 1


@pytest.mark.parametrize("queued", [True, False])
def test_ctrl_c_while_tasks_are_handed_out_leaves_none_behind(
    queued: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two; those before it are done, and the one at hand may have got through."""
    running, done = threading.Event(), []

    class Interrupted(ThreadPoolExecutor):
        num_submitted = 0

        def submit(self, *task: Any) -> Future[Any]:  # type: ignore[override]
            self.num_submitted += 1
            if self.num_submitted == 3:
                running.wait()
                if queued:
                    super().submit(*task)
                raise KeyboardInterrupt
            return super().submit(*task)

    def task(number: int) -> None:
        running.set()
        time.sleep(0.05)  # still at it when Ctrl-C comes
        done.append(number)

    with Interrupted(1) as pool:
        monkeypatch.setattr(threads, "_pool", pool)
        with pytest.raises(KeyboardInterrupt):
            run_all([lambda number=number: task(number) for number in range(5)])  # type: ignore[misc]
        left = list(done)
    assert left == done
    assert done in ([0, 1], [0, 1, 2][: 3 if queued else 2])


def test_ctrl_c_while_waiting_waits_on(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    waits = iter([KeyboardInterrupt, KeyboardInterrupt])
    wait = threads.wait

    def interrupted(futures: Any) -> Any:
        if (error := next(waits, None)) is not None:
            raise error
        return wait(futures)

    monkeypatch.setattr(threads, "wait", interrupted)
    begun = threading.Event()

    def slow() -> None:
        begun.set()
        time.sleep(0.05)
        done.append(1)

    with pytest.raises(KeyboardInterrupt):
        run_all([slow, begun.wait])
    assert done == [1]


def test_there_is_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make(*arguments: Any, **options: Any) -> object:
        time.sleep(0.02)  # so that others ask meanwhile
        made.append(object())
        return made[-1]

    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setattr(threads, "ThreadPoolExecutor", make)
    with ThreadPoolExecutor(8) as askers:
        pools = [asked.result() for asked in [askers.submit(threads._threads) for _ in range(8)]]
    assert len(made) == 1
    assert set(pools) == set(made)


@pytest.mark.parametrize("bad", [0, -1])
def test_bad_number_of_threads(bad: int) -> None:
    with pytest.raises(ValueError, match="num_threads"):
        check_num_threads(bad)
    with pytest.raises(TypeError, match="num_threads"):
        planners.solve(gym.make("StandardMaze-v0"), gamma=0.9, num_threads="two")


def _solve(seed: int) -> float:
    threads.LEAST_WORK = 1
    model = planners.as_model(gym.make("TerrainMaze-v0", shape=(13, 11), layout_seed=seed))
    return float(planners.solve(model, gamma=0.9, num_threads=2).values.sum())


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_a_process_pool_started_after_a_parallel_solve_works(start: str, always: None) -> None:
    expected = [_solve(seed) for seed in range(3)]
    context = multiprocessing.get_context(start)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(_solve, range(3))) == expected


FORK = """
import multiprocessing, gymnasium as gym, aggmaze, planners
from planners.kernels import threads
threads.LEAST_WORK = 1

def total(seed):
    env = gym.make("TerrainMaze-v0", shape=(13, 11), layout_seed=seed)
    return float(planners.solve(env, gamma=0.9, num_threads=2).values.sum())

expected = [total(seed) for seed in range(3)]
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(total, range(3)) == expected
print("same")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork on Windows")
def test_forking_after_a_parallel_solve_works() -> None:
    # In a process of its own: Python warns of forks where there are threads.
    ran = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.stdout == "same\n", ran.stderr


DIGEST = """
import hashlib, gymnasium as gym, numpy as np, aggmaze, planners
from aggmaze import TabularMDP

terrain = planners.as_model(gym.make("TerrainMaze-v0", shape=(40, 40), p=0.9, terrain="uniform"))
looped = planners.as_model(gym.make("StandardMaze-v0", shape=(40, 40), p=0.9, loops=0.1))
rng = np.random.default_rng(0)
P = rng.dirichlet(np.full(400, 0.02), (400, 3))
graph = TabularMDP.from_matrices(P, costs=rng.random((400, 3)))
digest = hashlib.sha256()
for model in (terrain, looped, graph):
    for kind in ("", "forest_", "modified_"):
        name = kind + "policy_iteration"
        result = planners.solve(model, gamma=0.999, method=name, tol=1e-8)
        digest.update(result.values.tobytes() + np.float64(result.bound).tobytes())
print(digest.hexdigest())
"""


def test_results_do_not_depend_on_the_threads_of_blas() -> None:
    digests = set()
    for count in ("1", "2"):
        variables = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
        ran = subprocess.run(
            [sys.executable, "-c", DIGEST],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, **dict.fromkeys(variables, count)},
        )
        assert len(ran.stdout) == 65, ran.stderr
        digests.add(ran.stdout)
    assert len(digests) == 1
