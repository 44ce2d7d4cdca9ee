"""Published answers of the ready grid worlds, each made by its name alone."""

from __future__ import annotations

from collections import deque
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
import planners
from planners.result import SolveResult
from tests.published.printed import assert_printed

STEPS = [(-1, 0), (1, 0), (0, -1), (0, 1)]


@pytest.fixture(params=["auto", "policy_iteration", "value_iteration"])
def method(request: pytest.FixtureRequest) -> str:
    """Return each method in turn."""
    return str(request.param)


def world(layout: Any, **settings: Any) -> aggmaze.GridWorldEnv:
    env: Any = gym.make("GridWorld-v0", layout=layout, **settings).unwrapped
    return env


def assert_rows(
    result: SolveResult, env: aggmaze.GridWorldEnv, rows: list[list[float | None]], digits: int
) -> None:
    """Assert what was printed of each cell as a reward, top row first; None where nothing was."""
    for row, printed in enumerate(rows):
        for x, reward in enumerate(printed):
            if reward is not None:
                state = env.grid.state((x, len(rows) - 1 - row))
                assert_printed(result, -reward, at=state, digits=digits)


def arrows(result: SolveResult, env: aggmaze.GridWorldEnv) -> list[str]:
    """Return the policy as rows of arrows, top row first, a space where nothing is chosen."""
    signs = np.where(env.layout.acting(), np.array(list("←→↓↑"))[result.policy], " ")
    return ["".join(row) for row in env.grid.to_image(signs).tolist()]


def distances(env: aggmaze.GridWorldEnv) -> dict[int, int]:
    """Return how far each free cell is from an end, by breadth-first search."""
    layout, (columns, rows) = env.layout, env.grid.shape
    found = {int(state): 0 for state in np.flatnonzero(layout.is_end())}
    queue = deque(found)
    while queue:
        state = queue.popleft()
        x, y = divmod(state, rows)
        for dx, dy in STEPS:
            beside = (x + dx) * rows + y + dy
            inside = 0 <= x + dx < columns and 0 <= y + dy < rows
            if inside and beside not in found and layout.free()[beside]:
                found[beside] = found[state] + 1
                queue.append(beside)
    return found


def test_4x3_world(method: str) -> None:
    """The utilities and the policy of the 4x3 world, R(s) = -.04.

    Russell and Norvig, "Artificial Intelligence: A Modern Approach", third edition (2010), figures
    17.2(a) and 17.3.
    """
    env = world("aima-4x3")
    result = planners.solve(env, gamma=1, method=method)
    utilities = [
        [0.812, 0.868, 0.918, None],
        [0.762, None, 0.660, None],
        [0.705, 0.655, 0.611, 0.388],
    ]
    assert_rows(result, env, utilities, 3)
    assert arrows(result, env) == ["→→→ ", "↑ ↑ ", "↑←←←"]


def test_4x3_world_of_the_fourth_edition(method: str) -> None:
    """The same world, where r = -.04 is of transitions between squares that do not end the walk.

    Russell and Norvig, fourth edition (2021), figure 17.3.
    """
    env = world("aima-4x3", pays="entering")
    result = planners.solve(env, gamma=1, method=method)
    utilities = [
        [0.8516, 0.9078, 0.9578, None],
        [0.8016, None, 0.7003, None],
        [0.7453, 0.6953, 0.6514, 0.4279],
    ]
    assert_rows(result, env, utilities, 4)


@pytest.mark.parametrize(
    ("step_cost", "policy"),
    [(2.0, ["→→→ ", "↑ → ", "→→→↑"]), (0.01, ["→→→ ", "↑ ← ", "↑←←↓"])],
)
def test_4x3_world_of_other_rewards(step_cost: float, policy: list[str], method: str) -> None:
    """The policies for r < -1.6284 and for -.0221 < r < 0.

    Russell and Norvig, third edition (2010), figure 17.2(b).
    """
    env = world("aima-4x3", step_cost=step_cost)
    assert arrows(planners.solve(env, gamma=1, method=method), env) == policy


def test_4x3_world_with_a_discount(method: str) -> None:
    """The values for a noise of .2, a discount of .9 and no living reward.

    Berkeley's CS188, "Markov Decision Processes I", where the reward of an end is paid by one more
    action, its exit: one step later, thus once more discounted.
    """
    env = world("aima-4x3", step_cost=0, signs={"G": 0.9, "H": -0.9})
    result = planners.solve(env, gamma=0.9, method=method)
    values = [[0.64, 0.74, 0.85, None], [0.57, None, 0.57, None], [0.49, 0.43, 0.48, 0.28]]
    assert_rows(result, env, values, 2)


def test_cliff(method: str) -> None:
    """The best way along the cliff is 13 steps.

    Sutton and Barto, "Reinforcement Learning", second edition (2018), example 6.6.
    """
    env = world("cliff")
    result = planners.solve(env, gamma=1, method=method)
    assert_printed(result, 13.0, at=env.grid.state((0, 0)))
    # Every cell is as far as it is from the goal, the cliff left out.
    for x in range(12):
        for y in (1, 2, 3):
            assert_printed(result, 11 - x + y, at=env.grid.state((x, y)))


@pytest.mark.parametrize(
    ("layout", "moves", "steps"),
    [("windy", "four", 15), ("windy-king", "king", 7), ("windy-king", "king_or_stay", 7)],
)
def test_windy(layout: str, moves: str, steps: int, method: str) -> None:
    """15 steps from the start to the goal; with king's moves 7, and no fewer with a ninth.

    Sutton and Barto (2018), example 6.5 and exercise 6.9.
    """
    env = world(layout, moves=moves)
    result = planners.solve(env, gamma=1, method=method)
    assert_printed(result, steps, at=env.grid.state((0, 3)))


def test_windy_with_gusts(method: str) -> None:
    """What a loop of its own over cells, moves and gusts comes to; 7 steps are out of reach.

    Sutton and Barto (2018), exercise 6.10, which has no printed answer.
    """
    wind = [0, 0, 0, 1, 1, 1, 2, 2, 1, 0]
    king = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (dx, dy) != (0, 0)]
    x, y = np.meshgrid(np.arange(10), np.arange(7), indexing="ij")
    steps = np.zeros((10, 7))
    for _ in range(3000):
        best = np.full((10, 7), np.inf)
        for dx, dy in king:
            after = 0.0
            for gust in (-1, 0, 1):
                blown = np.array(wind)[x]
                height = y + dy + np.where(blown > 0, blown + gust, 0)
                after = after + steps[(x + dx).clip(0, 9), height.clip(0, 6)] / 3
            best = np.minimum(best, 1 + after)
        best[7, 3] = 0.0
        if np.abs(best - steps).max() < 1e-13:
            break
        steps = best
    assert steps[0, 3] > 7
    env = world("windy-stochastic")
    result = planners.solve(env, gamma=1, method=method, tol=1e-9).require()
    np.testing.assert_allclose(result.values, steps.reshape(-1), rtol=1e-7, atol=0)


def test_four_rooms_without_slips(method: str) -> None:
    """A cell d steps from the hallway is worth .9**(d - 1).

    Sutton, Precup and Singh, "Between MDPs and semi-MDPs" (1999), section 3: 104 cells, a reward of
    1 at the goal, a discount of .9.
    """
    env = world("four-rooms", p=1.0)
    result = planners.solve(env, gamma=0.9, method=method)
    found = distances(env)
    assert len(found) == 104
    for state, distance in found.items():
        if distance:
            assert_printed(result, -(0.9 ** (distance - 1)), at=state)


def test_four_rooms(method: str) -> None:
    """With one move in three made at random, as a loop over the cells has it.

    The same, "with probability 1/3, the agent moves instead in one of the other three directions,
    each with probability 1/9", and where a wall is in the way it "remains in the same cell".
    """
    env = world("four-rooms")
    layout, (_, rows) = env.layout, env.grid.shape
    states = [int(s) for s in np.flatnonzero(layout.free()) if s != layout.goal]
    leads = {}
    for state in states:
        x, y = divmod(state, rows)
        beside = [(x + dx) * rows + y + dy for dx, dy in STEPS]
        leads[state] = [there if layout.free()[there] else state for there in beside]
    values = np.zeros(env.grid.num_states)
    for _ in range(300):
        new = values.copy()
        for state, beside in leads.items():
            worth = [1.0 if there == layout.goal else 0.9 * values[there] for there in beside]
            new[state] = max(2 / 3 * w + (sum(worth) - w) / 9 for w in worth)
        values = new
    result = planners.solve(env, gamma=0.9, method=method, tol=1e-9).require()
    np.testing.assert_allclose(-result.values[states], values[states], rtol=1e-7, atol=0)


def test_frozen_lake(method: str) -> None:
    """The lake of 4x4 can be crossed with probability 14/17, and no better.

    Gymnasium's FrozenLake-v1; .8235 is the value that many pages quote of it.
    """
    env = world("frozen-lake-4x4")
    result = planners.solve(env, gamma=1, method=method)
    chances = [[14, 14, 14, 14], [14, 0, 9, 0], [14, 14, 13, 0], [0, 15, 16, 0]]
    for row, numbers in enumerate(chances):
        for x, chance in enumerate(numbers):
            assert_printed(result, -chance / 17, at=env.grid.state((x, 3 - row)))
    assert_printed(result, -0.82352941, at=env.grid.state((0, 3)), digits=8)


def test_large_frozen_lake(method: str) -> None:
    """The lake of 8x8 is crossed for certain: on Gymnasium's own table too."""
    env = world("frozen-lake-8x8")
    result = planners.solve(env, gamma=1, method=method)
    assert_printed(result, -1.0, at=env.grid.state((0, 7)))
    lake: Any = gym.make("FrozenLake-v1", map_name="8x8").unwrapped
    theirs = {0: 0, 1: 2, 2: 1, 3: 3}  # our LEFT, RIGHT, DOWN, UP as theirs
    chain, pays = np.eye(64), np.zeros(64)
    for state in range(64):
        row, x = divmod(state, 8)
        action = theirs[int(result.policy[env.grid.state((x, 7 - row))])]
        for chance, following, reward, over in lake.P[state][action]:
            pays[state] += chance * reward
            chain[state, following] -= 0.0 if over else chance
    ends = [state for state in range(64) if lake.desc.reshape(-1)[state] in b"GH"]
    chain[ends], pays[ends] = np.eye(64)[ends], 0.0
    assert np.linalg.solve(chain, pays)[0] == pytest.approx(1.0, abs=1e-12)


def test_gridworld_of_4x4(method: str) -> None:
    """The random policy costs 0, 14, 18, 20 and 22 steps; the best one the distance.

    Sutton and Barto (2018), example 4.1, figure 4.1.
    """
    env = world("sutton-4x4")
    random = planners.evaluate(env, np.full((16, 4), 0.25), gamma=1)
    published = [[0, 14, 20, 22], [14, 18, 20, 20], [20, 20, 18, 14], [22, 20, 14, 0]]
    np.testing.assert_allclose(env.grid.to_image(random), published, rtol=1e-13, atol=0)
    result = planners.solve(env, gamma=1, method=method)
    for state, distance in distances(env).items():
        assert_printed(result, distance, at=state)


def test_dyna_maze(method: str) -> None:
    """The shortest way from the start to the goal is 14 steps, discounted by .95 each.

    Sutton and Barto (2018), example 8.1: "14 steps per episode" once it is found.
    """
    env = world("dyna-maze")
    start, _ = env.reset()
    assert start == env.grid.state((0, 3))
    assert distances(env)[start] == 14
    result = planners.solve(env, gamma=0.95, method=method)
    assert_printed(result, -(0.95**13), at=start)
