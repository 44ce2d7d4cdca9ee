"""A solve in a thread of its own: paused, stepped, ended, and its errors handed on."""

import math
import threading
import time

import gymnasium as gym
import numpy as np
import pytest

import planners
from planners.result import Status
from planners.watching.film import Film
from planners.watching.session import Session

_GAMMA = 0.99


def _env():
    return gym.make("TerrainMaze-v0", shape=(12, 12))


def _session(speed=math.inf, **options):
    env = _env()
    arguments = {"gamma": _GAMMA, "method": "adaptive_aggregation", "epsilon": 0.5} | options
    return Session(
        lambda see: planners.solve(env, callback=see, **arguments), Film(144), 144, speed
    )


def _until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "waited for half a minute"
        time.sleep(0.002)


def _iterations(session):
    with session.lock:
        return session.film.frames[-1].iteration if session.film.frames else 0


def test_a_session_comes_to_the_result_of_a_solve():
    session = _session(num_iterations=30)
    session.start()
    result = session.result()
    alone = planners.solve(
        _env(), gamma=_GAMMA, method="adaptive_aggregation", epsilon=0.5, num_iterations=30
    )
    np.testing.assert_array_equal(result.values, alone.values)
    assert not session.is_running
    assert session.film.frames[-1].iteration == 30
    assert session.film.frames[-1].bound == result.bound


def test_steps_are_single_iterations():
    session = _session(num_iterations=1000)
    session.pause()
    session.start()
    _until(lambda: _iterations(session) == 1)
    for count in range(2, 6):
        session.step()
        _until(lambda count=count: _iterations(session) == count)
        time.sleep(0.02)
        assert _iterations(session) == count
    # Each of them was kept.
    assert [frame.iteration for frame in session.film.frames] == [1, 2, 3, 4, 5]
    session.pause(False)
    assert session.result().num_iterations == 1000


def test_an_ended_session_has_the_result_so_far_with_its_bound():
    session = _session(speed=200.0, num_iterations=100_000)
    session.start()
    _until(lambda: _iterations(session) >= 5)
    result = session.end()
    assert result.status == Status.INTERRUPTED
    assert 5 <= result.num_iterations < 100_000
    exact = planners.solve(_env(), gamma=_GAMMA, tol=1e-9).values
    assert np.abs(result.values - exact).max() <= result.bound < math.inf


def test_a_paused_session_can_be_ended():
    session = _session()
    session.pause()
    session.start()
    _until(lambda: _iterations(session) == 1)
    assert session.end().num_iterations == 1


def test_an_iteration_that_does_not_come_to_its_end_is_given_up():
    entered = threading.Event()

    def run(see):
        entered.set()
        try:
            while True:
                time.sleep(0.001)
        except KeyboardInterrupt:
            return planners.solve(_env(), gamma=_GAMMA, num_iterations=1, callback=see)

    session = Session(run, Film(144), 144, math.inf)
    session.start()
    assert entered.wait(10)
    assert session.end().num_iterations == 1


def test_errors_of_the_solver_are_raised_where_the_result_is_asked_for():
    session = _session(epsilon=-1.0)
    session.start()
    with pytest.raises(ValueError, match="epsilon"):
        session.result()


def test_at_full_speed_frames_are_taken_only_when_asked_for():
    session = _session(num_iterations=500)
    session.start()
    session.result()
    # The first, which is asked for by itself, and the last.
    assert [frame.iteration for frame in session.film.frames] == [1, 500]
