"""What notebooks show of results: read back from the HTML."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
import planners
from aggmaze.rendering.colors import value_colors
from planners.cards import result_html
from tests.aggmaze.test_cards import MOST_BYTES, NASTY, Reader, pixels_of, points_of

MAZE = gym.make("StandardMaze-v0", shape=(6, 5), p=0.9)
ANSWERS = {
    "discounted": lambda source: planners.solve(source, gamma=0.9),
    "total": lambda source: planners.solve(source, gamma=1),
    "horizon": lambda source: planners.solve(source, objective=planners.FiniteHorizon(7)),
    "average": lambda source: planners.solve(source, objective=planners.AverageCost()),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_objective(name: str, tmp_path: Path) -> None:
    result = ANSWERS[name](MAZE)
    page = result._repr_html_()
    assert len(page.encode()) < MOST_BYTES
    card = Reader(page)
    assert card.texts[0] == f"SolveResult: {result.objective}, {result.method}"
    assert card.fact("status").startswith("converged")
    assert float(card.fact("certified within")) == pytest.approx(result.bound, rel=1e-3)
    assert card.fact("states") == "30"
    # The map, the colours beside it, and maybe a curve.
    assert len(card.pictures) >= 2 or np.ptp(result.values) == 0
    # Another picture where there is no map: from a model, and from a file, which keeps none.
    result.save(tmp_path / "result.npz")
    for other in (
        ANSWERS[name](planners.as_model(MAZE)),
        planners.SolveResult.load(tmp_path / "result.npz"),
    ):
        assert other.layout is None
        assert Reader(other._repr_html_()).pictures


def test_the_map_is_that_of_the_maze_solved() -> None:
    env = gym.make("StandardMaze-v0", shape=(3, 3))
    inside: Any = env.unwrapped
    layout = inside.layout
    result = planners.solve(env, gamma=0.9)
    env.reset(options={"layout_seed": 5})
    assert result.layout is layout
    assert inside.layout is not layout
    assert planners.solve(planners.as_model(env), gamma=0.9).layout is None


def test_a_lake_is_drawn_as_it_is_printed() -> None:
    # 4 rows of 4, S at the top left, G at the bottom right.
    env = gym.make("FrozenLake-v1", is_slippery=False)
    result = planners.solve(env, gamma=0.9)
    card = Reader(result._repr_html_())
    assert card.texts[-3:] == ["-1", "0", "costs-to-go"]
    picture = pixels_of(card.pictures[-2]["src"])[..., :3]
    height, width = picture.shape[:2]
    shades = value_colors(result.values + 1.0)
    for state in (1, 2, 4, 6, 8, 9, 10, 13, 14):  # no sign stands there
        row, column = divmod(state, 4)
        top, left = (
            round((place + 0.12) * side / 4) for place, side in ((row, height), (column, width))
        )
        assert np.abs(picture[top, left].astype(int) - shades[state]).max() <= 8


def test_cells_are_drawn_along_their_axes() -> None:
    env = gym.make("DiscretizedMountainCar-v0", bins=(20, 16))
    result = planners.solve(env, gamma=0.9)
    card = Reader(result._repr_html_())
    assert card.texts[-1] == "costs-to-go; position across, velocity up"
    grid = env.get_wrapper_attr("cells").grid
    values = result.values[: grid.num_states]
    low, high = values.min(), values.max()
    expected = value_colors((grid.to_image(values) - low) / (high - low))
    picture = pixels_of(card.pictures[-2]["src"])
    down, across = (n // m for n, m in zip(picture.shape[:2], expected.shape[:2], strict=True))
    found = picture[down // 2 :: down, across // 2 :: across, :3]
    assert np.array_equal(found, expected)


def test_states_named_by_their_cells_are_a_map() -> None:
    P = np.zeros((3, 1, 3))
    P[:, 0, 2] = 1
    names = [(2, 5), (3, 5), (3, 7)]
    costs = np.array([1.0, 2.0, 3.0])
    model = aggmaze.TabularMDP.from_matrices(P, costs=costs, terminal=[], state_names=names)
    card = Reader(planners.solve(model, gamma=0.5)._repr_html_())
    assert card.texts[-1] == "costs-to-go; x across, y up"
    picture = pixels_of(card.pictures[-2]["src"])
    seen = picture[
        picture.shape[0] // 6 :: picture.shape[0] // 3,
        picture.shape[1] // 4 :: picture.shape[1] // 2,
        3,
    ]
    # The last state alone at the top right, nothing in the row between.
    assert (seen > 0).tolist() == [[False, True], [False, False], [True, True]]


def test_values_lie_where_their_states_do() -> None:
    # So large that a state is a pixel, and no arrow covers it.
    env = gym.make("TerrainMaze-v0", shape=(300, 130), terrain="uniform")
    layout = env.unwrapped.layout  # type: ignore[attr-defined]
    small = planners.solve(gym.make("TerrainMaze-v0", shape=(3, 3)), gamma=0.9)
    values = np.sqrt(np.arange(300.0 * 130))
    result = dataclasses.replace(small, values=values, layout=layout, ends=None)
    card = Reader(result_html(result))
    expected = value_colors(layout.grid.to_image(values) / values.max())
    assert np.array_equal(pixels_of(card.pictures[0]["src"]), expected)
    assert card.texts[-3:] == ["0", "197.5", "costs-to-go"]


def test_a_thousand_by_a_thousand() -> None:
    env = gym.make("StandardMaze-v0", shape=(1000, 1000))
    small = planners.solve(MAZE, gamma=0.9)
    values = np.random.default_rng(0).random(1_000_000)
    policy = np.zeros(1_000_000, np.int64)
    layout = env.unwrapped.layout  # type: ignore[attr-defined]
    result = dataclasses.replace(small, values=values, policy=policy, layout=layout)
    for shown in (result, dataclasses.replace(result, layout=None)):
        assert len(result_html(shown).encode()) < MOST_BYTES


def test_named_states_are_listed_and_stay_text() -> None:
    P = np.zeros((8, 2, 8))
    P[np.arange(8), 0, (np.arange(8) + 1) % 8] = 1.0
    P[np.arange(8), 1, np.arange(8)] = 1.0
    names = [NASTY, *(f"state {k}" for k in range(7))]
    model = aggmaze.TabularMDP.from_matrices(
        P, costs=np.ones((8, 2)) * [1, 2], state_names=names, action_names=["on", "<i>stay</i>"]
    )
    for answer in ANSWERS.values():
        if answer is ANSWERS["total"]:
            continue  # there is no end to reach
        page = answer(model)._repr_html_()
        assert "<script" not in page
        assert "<i>" not in page
        card = Reader(page)
        place = card.texts.index("state 0")
        assert card.texts[place + 2] == "on"
        assert "and 2 more" in card.texts
        assert any(NASTY in text for text in card.texts)


def test_infinite_costs_are_counted() -> None:
    # State 1 leads to itself alone, at a cost.
    P = np.array([[[0.0, 0.0, 1.0]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
    model = aggmaze.TabularMDP.from_matrices(
        P, costs=[[4.0], [1.0], [0.0]], terminal=[False, False, True]
    )
    card = Reader(planners.solve(model, gamma=1)._repr_html_())
    assert card.fact("infinite") == "in 1 state"
    assert card.fact("costs-to-go") == "0 to 4"
    (line,) = points_of(str(card.pictures[0]["src"]))
    assert len(line) == 2


def test_a_result_of_nothing_finite() -> None:
    small = planners.solve(planners.as_model(MAZE), gamma=0.9)
    for values in (np.full(30, np.inf), np.full((3, 30), np.inf)):
        result = dataclasses.replace(small, values=values, bound=np.inf, policy_bound=np.inf)
        card = Reader(result_html(result))
        assert card.fact("costs-to-go") == "none is finite"
        assert card.fact("certified within") == "inf"


def test_mega_states_and_the_bound_over_time() -> None:
    result = planners.solve(MAZE, gamma=0.9, method="value_iteration", certify="every")
    card = Reader(result._repr_html_())
    curves = points_of(str(card.pictures[0]["src"]))
    assert len(curves) == 2
    bound, residual = (curve[:, 1] for curve in curves)
    assert (np.diff(bound) <= 0.1).all()
    assert bound[-1] > residual[-1]
    grouped = planners.solve(MAZE, gamma=0.9, method="adaptive_aggregation", num_iterations=20)
    assert grouped.labels is not None
    count = len(np.unique(grouped.labels))
    assert Reader(grouped._repr_html_()).fact("mega-states") == f"{count}"


def test_an_interrupted_result_says_so() -> None:
    result = planners.solve(
        MAZE, gamma=0.9, method="value_iteration", callback=lambda progress: progress.iteration == 2
    )
    assert Reader(result._repr_html_()).fact("status").startswith("interrupted")
