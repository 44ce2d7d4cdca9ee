"""What is kept of a run is bounded, and what is kept is what was seen."""

import math

import gymnasium as gym
import numpy as np
import pytest

import planners
from planners.record import Progress
from planners.watching.film import Film, Frame, chosen


def _frame(iteration, megastates=0):
    return Frame(iteration, 10 * iteration, 0.0, megastates, 1.0, 1.0, np.zeros(3), None)


def _seen(iteration):
    return Progress(iteration, 10 * iteration, 0.0, 0, 0.5, math.nan, lambda: np.zeros(3))


def test_frames_are_bounded_and_early_ones_stay_dense():
    film = Film(3, most_frames=40)
    taken = 0
    for iteration in range(1, 20_001):
        if film.wants(iteration):
            film.add(_frame(iteration))
            taken += 1
    kept = [frame.iteration for frame in film.frames]
    assert len(kept) <= 40
    assert kept == sorted(kept)
    assert kept[0] == 1
    assert kept[-1] > 18_000
    assert len([iteration for iteration in kept if iteration <= 100]) >= 10
    # And what would not stay is not copied.
    assert taken < 1000


def test_large_models_keep_fewer_frames():
    film = Film(10_000_000, most_frames=400)
    for iteration in range(1, 200):
        film.add(_frame(iteration))
    assert len(film.frames) == 24


def test_the_same_iteration_again_takes_the_place_of_the_last():
    film = Film(3)
    film.add(_frame(1))
    film.add(_frame(2))
    again = _frame(2, megastates=5)
    film.add(again)
    assert [frame.iteration for frame in film.frames] == [1, 2]
    assert film.frames[-1] is again


def test_points_of_the_curves_are_bounded_and_span_the_run():
    film = Film(3)
    for iteration in range(1, 100_001):
        film.note(_seen(iteration))
    points = film.points()
    assert 100 < len(points) <= 801
    updates = [point.num_updates for point in points]
    assert updates == sorted(updates)
    assert updates[0] == 10
    assert updates[-1] > 900_000


def test_ends_of_phases_stay_before_other_frames():
    frames = [_frame(i, megastates=4 if i % 7 in (3, 4, 5, 6, 0) else 0) for i in range(1, 71)]
    few = chosen(frames, 25)
    assert len(few) <= 25
    assert few[0] is frames[0]
    assert few[-1] is frames[-1]
    for frame in few[1:-1]:
        beside = frames[frame.iteration]  # the next one
        assert (frame.num_megastates > 0) != (beside.num_megastates > 0)
    assert chosen(frames, 100) == frames


@pytest.mark.parametrize("method", ["adaptive_aggregation", "value_iteration"])
def test_frames_are_what_the_solver_had(method):
    env = gym.make("TerrainMaze-v0", shape=(6, 6))
    film = Film(36)
    options = {"epsilon": 1.0} if method == "adaptive_aggregation" else {}

    def see(progress):
        film.note(progress)
        film.add(Frame.of(progress, 36))

    kwargs = {"gamma": 0.9, "method": method, "num_iterations": 12, **options}
    result = planners.solve(env, callback=see, **kwargs)
    for frame in film.frames:
        alone = planners.solve(env, **kwargs | {"num_iterations": frame.iteration})
        np.testing.assert_array_equal(frame.values, alone.values)
        assert frame.num_updates == alone.num_updates
        if alone.labels is None:
            assert frame.labels is None
        else:
            np.testing.assert_array_equal(frame.labels, alone.labels)
    film.finish(result)
    last = film.frames[-1]
    assert last.iteration == 12
    assert last.bound == result.bound
    assert film.points()[-1].bound == result.bound


def test_a_callback_sees_phase_and_megastates_as_they_are():
    phases, labels, kept = [], [], []

    def see(progress):
        phases.append(progress.phase)
        labels.append(progress.labels)
        kept.append(None if labels[-1] is None else labels[-1].copy())

    planners.solve(
        gym.make("StandardMaze-v0", shape=(5, 5)),
        gamma=0.9,
        method="adaptive_aggregation",
        epsilon=1.0,
        num_iterations=20,
        callback=see,
    )
    assert phases[:8] == ["global"] * 2 + ["aggregated"] * 5 + ["global"]
    assert labels[0] is None
    assert labels[7] is not None  # of the phase before
    # They are copies: later phases do not write into them.
    for given, copy in zip(labels, kept, strict=True):
        if given is not None:
            np.testing.assert_array_equal(given, copy)
