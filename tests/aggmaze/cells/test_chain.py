"""Models of cells and of corners, row by row against plain loops; and what they fail to show."""

from __future__ import annotations

import math
import re
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.classic_control import AcrobotEnv, MountainCarEnv, PendulumEnv
from hypothesis import given, settings
from hypothesis import strategies as st

import aggmaze
from aggmaze.cells import Cells, CellsProgress, Corners, chain_of
from aggmaze.cells.control import problem_of
from aggmaze.cells.discretize import discretized
from aggmaze.models.tabular import TabularMDP

SMALL: list[tuple[Any, tuple[int, ...], tuple[int, ...]]] = [
    (problem_of(MountainCarEnv()), (7, 6), (3, 4)),
    (problem_of(PendulumEnv(), num_torques=3), (6, 5), (2, 3)),
    (problem_of(AcrobotEnv()), (3, 4, 3, 2), (2, 1, 2, 3)),
]
small = pytest.mark.parametrize(
    ("problem", "bins", "sub_points"), SMALL, ids=[each[0].name for each in SMALL]
)


def table(model: TabularMDP, state: int, action: int) -> dict[int, tuple[float, float]]:
    """Return probability and cost of each next state."""
    rows = model.rows(state, state + 1)
    entries = slice(*rows.transitions.indptr[action : action + 2])
    found = zip(
        rows.transitions.indices[entries].tolist(),
        rows.transitions.data[entries].tolist(),
        rows.outcome_costs[entries].tolist(),
        strict=True,
    )
    return {following: (share, cost) for following, share, cost in found}


def one(problem: Any, point: Any, action: int) -> tuple[Any, float, bool]:
    """Return a single step."""
    after = problem.advance(np.array([point]), np.array([action]))
    return after.points[0], float(after.rewards[0]), bool(after.terminated[0])


@small
def test_averages_are_a_plain_loop(problem: Any, bins: Any, sub_points: Any) -> None:
    cells = Cells(bins, problem.low, problem.high, problem.wrap, problem.ends)
    model = chain_of(cells, problem, sub_points).model
    for state in range(0, cells.num_cells, 5):
        for action in range(problem.num_actions):
            points = cells.points([state], sub_points)[0]
            counts: dict[int, int] = defaultdict(int)
            paid: dict[int, float] = defaultdict(float)
            for point in points:
                after, reward, terminated = one(problem, point, action)
                following = cells.end if terminated else int(cells.states(after))
                counts[following] += 1
                paid[following] += reward
            found = table(model, state, action)
            assert found.keys() == counts.keys()
            for following, (share, cost) in found.items():
                assert share == counts[following] / len(points)
                assert cost == pytest.approx(-paid[following] / counts[following], abs=1e-12)
            mean = -sum(paid.values()) / len(points)
            assert model.costs[state, action] == pytest.approx(mean, abs=1e-12)


@small
def test_interpolation_is_a_plain_loop(problem: Any, bins: Any, sub_points: Any) -> None:
    corners = Corners(bins, problem.low, problem.high, problem.wrap, problem.ends)
    model = chain_of(corners, problem, (1,) * len(bins)).model
    for state in range(0, corners.num_cells, 5):
        for action in range(problem.num_actions):
            after, reward, terminated = one(problem, corners.points([state])[0, 0], action)
            weights: dict[int, float] = defaultdict(float)
            if terminated:
                weights[corners.end] = 1.0
            else:
                # Products of hats, one an axis, over all corners.
                for other in range(corners.num_cells):
                    corner = corners.points([other])[0]
                    inside = np.array(after)
                    for axis in set(range(len(bins))) - set(problem.wrap):
                        inside[axis] = np.clip(after[axis], corners.low[axis], corners.high[axis])
                    gone = np.abs(corners.differences(inside[np.newaxis], corner))[0]
                    weight = math.prod(np.maximum(0, 1 - gone / corners.widths))
                    weights[other] += weight if weight > 1e-11 else 0.0
            found = table(model, state, action)
            assert found.keys() == {key for key, weight in weights.items() if weight > 0}
            for following, (share, cost) in found.items():
                assert share == pytest.approx(weights[following], abs=1e-9)
                assert cost == 0.0 - reward


@small
@pytest.mark.parametrize("kind", [Cells, Corners])
def test_rows_are_distributions_and_the_end_is_terminal(
    problem: Any, bins: Any, sub_points: Any, kind: Any
) -> None:
    cells = kind(bins, problem.low, problem.high, problem.wrap, problem.ends)
    model = chain_of(cells, problem, sub_points if kind is Cells else (1,) * len(bins)).model
    assert model.num_states == math.prod(bins) + problem.ends
    np.testing.assert_allclose(model.transitions.sum(axis=1), 1.0, atol=1e-14)
    assert (model.transitions.data > 0).all()
    ends = [math.prod(bins)] if problem.ends else []
    assert np.flatnonzero(model.terminal).tolist() == ends
    assert model.initial.sum() == pytest.approx(1.0, abs=1e-12)


@small
def test_blocks_fit_together(problem: Any, bins: Any, sub_points: Any) -> None:
    for kind, counts in ((Cells, sub_points), (Corners, (1,) * len(bins))):
        cells = kind(bins, problem.low, problem.high, problem.wrap, problem.ends)
        seen: list[CellsProgress] = []
        whole = chain_of(cells, problem, counts)
        parts = chain_of(cells, problem, counts, block=20, callback=seen.append)
        assert (whole.model.transitions != parts.model.transitions).nnz == 0
        assert np.array_equal(whole.model.costs, parts.model.costs)
        assert whole.faults == parts.faults
        assert [each.cells for each in seen] == sorted({each.cells for each in seen})
        assert seen[-1] == (cells.num_cells, cells.num_cells)
        assert len(seen) > 1


def drift(points: Any, actions: Any) -> tuple[Any, Any]:
    return points + actions[:, np.newaxis] * [0.11, 0.0], points.sum(axis=1)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 9),
    st.integers(2, 9),
    st.floats(-2, 2),
    st.floats(-2, 2),
    st.floats(0.2, 0.95),
)
def test_interpolation_solves_what_is_linear(
    n: int, m: int, slope: float, other: float, gamma: float
) -> None:
    """Values of a linear problem are linear, and interpolation then loses nothing.

    From (x, y) to (x / 2, y / 2), at a cost of a x + b y: the cost-to-go is that / (1 - gamma / 2).
    """

    def halve(points: Any, actions: Any) -> tuple[Any, Any]:
        return points / 2, -(points @ [slope, other])

    found = aggmaze.discretize(
        halve, low=(-1, -1), high=(1, 3), bins=(n, m), actions=1, method="interpolate"
    )
    model = found.model
    values = np.linalg.solve(
        np.eye(model.num_states) - gamma * model.transitions.toarray(), model.costs[:, 0]
    )
    points = found.cells.points(np.arange(n * m))[:, 0]
    np.testing.assert_allclose(values, points @ [slope, other] / (1 - gamma / 2), atol=1e-9)


class TestFaults:
    def test_an_axis_that_stands_still_is_named(self) -> None:
        """With 3 points the outermost is 0.167 from the edge of its cell, a step is 0.11."""
        with pytest.warns(
            UserWarning, match="never changes cell along x0, where drift does"
        ) as all_:
            aggmaze.discretize(
                drift, low=(0, 0), high=(4, 1), bins=(4, 1), actions=[-1.0, 1.0], sub_points=(3, 1)
            )
        assert [each.filename for each in all_] == [__file__]
        (asked,) = re.findall(r"at least (\d+) along x0", str(all_[0].message))
        assert asked == "5"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for sub_points in ((5, 1), None):
                aggmaze.discretize(
                    drift,
                    low=(0, 0),
                    high=(4, 1),
                    bins=(4, 1),
                    actions=[-1.0, 1.0],
                    sub_points=sub_points,
                )

    def test_what_really_stands_still_is_no_fault(self) -> None:
        """The second number is a constant of the problem, and has several bins."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for method in ("average", "interpolate"):
                aggmaze.discretize(
                    drift, low=(0, 0), high=(4, 1), bins=(9, 3), actions=[-1, 1], method=method
                )

    def test_what_moves_nowhere_at_the_corners_is_named(self) -> None:
        """Corners at whole numbers, where a sine is 0."""

        def wave(points: Any, actions: Any) -> tuple[Any, float]:
            return points + 0.1 * np.sin(np.pi * points), 0.0

        with pytest.warns(UserWarning, match="never changes cell along x0, where wave does: no"):
            aggmaze.discretize(
                wave, low=[0], high=[4], bins=[5], actions=1, method="interpolate", start=(1, 2)
            )

    def test_a_goal_out_of_reach_is_named(self) -> None:
        with pytest.warns(UserWarning, match="no policy of the model ever ends from where it st"):
            aggmaze.discretize(
                drift,
                low=(0, 0),
                high=(4, 1),
                bins=(8, 2),
                actions=[-1, 1],
                terminated=lambda points: points[:, 0] > 4.5,
            )

    def test_gymnasiums_are_without_at_their_default_points(self) -> None:
        for problem, bins, _ in SMALL[:2]:
            finer = tuple(6 * n for n in bins)
            for method in ("average", "interpolate"):
                assert discretized(problem, finer, method)[1] == ()

    def test_mountain_car_with_too_few_points(self) -> None:
        with pytest.warns(UserWarning) as caught:  # noqa: PT030  # two, read below
            aggmaze.discretize("MountainCar-v0", bins=(4, 4), method="average", sub_points=1)
        still, never = (str(each.message) for each in caught)
        assert "never changes cell along position, velocity, where MountainCar does" in still
        assert "no policy of the model ever ends from where it starts" in never


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggmaze.memory.available_memory", lambda: 10**9)
    for method in ("average", "interpolate"):
        with pytest.raises(MemoryError, match="transitions of 4,000,000 cells need"):
            aggmaze.discretize("MountainCar-v0", bins=(2000, 2000), method=method)
