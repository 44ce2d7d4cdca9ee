"""Published answers of problems that last until they end."""

from __future__ import annotations

import itertools
import math
from collections import deque
from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest

import planners
from aggmaze import TabularMDP
from tests.published.printed import assert_printed

Outcomes = list[tuple[float, int, float]]

UP, RIGHT, DOWN, LEFT = range(4)
STEPS = {UP: (0, 1), RIGHT: (1, 0), DOWN: (0, -1), LEFT: (-1, 0)}

WORLD = [(x, y) for y in (1, 2, 3) for x in (1, 2, 3, 4) if (x, y) != (2, 2)]
WORLD_ENDS = {(4, 3): 1.0, (4, 2): -1.0}


@pytest.fixture(params=["auto", "policy_iteration", "value_iteration"])
def method(request: pytest.FixtureRequest) -> str:
    """Return each method in turn."""
    return str(request.param)


def world(*, ends_cost_a_step: bool) -> TabularMDP:
    """Return the 4x3 world with r = -.04.

    Parameters
    ----------
    ends_cost_a_step : bool
        Whether -.04 is of the square that is left (third edition) or of a transition between
        squares that do not end the walk (fourth edition).
    """

    def fn(state: int, action: int) -> Outcomes | None:
        square = WORLD[state]
        if square in WORLD_ENDS:
            return None
        outcomes = []
        for turn, chance in ((0, 0.8), (1, 0.1), (3, 0.1)):
            dx, dy = STEPS[(action + turn) % 4]
            after = (square[0] + dx, square[1] + dy)
            if after not in WORLD:
                after = square
            reward = WORLD_ENDS.get(after, 0.0)
            if ends_cost_a_step or after not in WORLD_ENDS:
                reward -= 0.04
            outcomes.append((chance, WORLD.index(after), -reward))
        return outcomes

    return TabularMDP.from_function(len(WORLD), 4, fn)


@pytest.mark.parametrize("written", ["gamma", "objective"])
def test_4x3_world_of_the_third_edition(written: str, method: str) -> None:
    """The utilities and the policy of the 4x3 world, .705 at the start.

    Russell and Norvig, "Artificial Intelligence: A Modern Approach", third edition (2010), figures
    17.2(a) and 17.3: R(s) = -.04 in squares that do not end the walk, no discount.
    """
    model = world(ends_cost_a_step=True)
    asked = {"gamma": 1} if written == "gamma" else {"objective": planners.TotalCost()}
    result = planners.solve(model, **asked, method=method)
    utilities = {
        3: {1: 0.812, 2: 0.868, 3: 0.918},
        2: {1: 0.762, 3: 0.660},
        1: {1: 0.705, 2: 0.655, 3: 0.611, 4: 0.388},
    }
    for y, row in utilities.items():
        for x, utility in row.items():
            assert_printed(result, -utility, at=WORLD.index((x, y)), digits=3)
    arrows = {3: "→→→ ", 2: "↑ ↑ ", 1: "↑←←←"}
    for y, row in arrows.items():
        for x, arrow in enumerate(row, start=1):
            if arrow != " ":
                assert result.policy[WORLD.index((x, y))] == "↑→↓←".index(arrow), (x, y)


def test_4x3_world_of_the_fourth_edition(method: str) -> None:
    """The same world with r = -.04 for transitions between squares that do not end the walk.

    Russell and Norvig, "Artificial Intelligence: A Modern Approach", fourth edition (2021), figure
    17.3: four digits.
    """
    result = planners.solve(world(ends_cost_a_step=False), gamma=1, method=method)
    utilities = {
        3: {1: 0.8516, 2: 0.9078, 3: 0.9578},
        2: {1: 0.8016, 3: 0.7003},
        1: {1: 0.7453, 2: 0.6953, 3: 0.6514, 4: 0.4279},
    }
    for y, row in utilities.items():
        for x, utility in row.items():
            assert_printed(result, -utility, at=WORLD.index((x, y)), digits=4)


@pytest.mark.parametrize(
    ("reward", "arrows"),
    [
        # Life is so dear that one heads for the nearest end, be it the bad one.
        (-2.0, {3: "→→→ ", 2: "↑ → ", 1: "→→→↑"}),
        # Life is so sweet that no step may risk an end, and yet the walk has to end.
        (-0.01, {3: "→→→ ", 2: "↑ ← ", 1: "↑←←↓"}),
    ],
)
def test_4x3_world_of_other_rewards(reward: float, arrows: dict[int, str], method: str) -> None:
    """The policies for r < -1.6284 and for -.0221 < r < 0.

    Russell and Norvig, third edition (2010), figure 17.2(b).
    """
    table = world(ends_cost_a_step=True)
    costs = table.costs.copy()
    costs[~table.terminal] += -reward - 0.04
    model = TabularMDP(table.transitions, costs, terminal=table.terminal)
    result = planners.solve(model, gamma=1, method=method).require()
    for y, row in arrows.items():
        for x, arrow in enumerate(row, start=1):
            if arrow != " ":
                assert result.policy[WORLD.index((x, y))] == "↑→↓←".index(arrow), (x, y)


def gridworld() -> TabularMDP:
    """Return the 4x4 grid with two shaded corners, one terminal state in all but name."""
    size, corners = 4, (0, 15)

    def fn(state: int, action: int) -> Outcomes | None:
        if state in corners:
            return None
        row, column = divmod(state, size)
        dx, dy = STEPS[action]
        after = (row - dy, column + dx)
        inside = all(0 <= i < size for i in after)
        return [(1.0, after[0] * size + after[1] if inside else state, 1.0)]

    return TabularMDP.from_function(size * size, 4, fn)


def test_gridworld(method: str) -> None:
    """The random policy costs 0, 14, 18, 20 and 22 steps; the best one the distance.

    Sutton and Barto, "Reinforcement Learning", second edition (2018), example 4.1, figure 4.1.
    """
    model = gridworld()
    random = planners.evaluate(model, np.full((16, 4), 0.25), gamma=1)
    published = [[0, 14, 20, 22], [14, 18, 20, 20], [20, 20, 18, 14], [22, 20, 14, 0]]
    np.testing.assert_allclose(random.reshape(4, 4), published, rtol=1e-13, atol=0)
    result = planners.solve(model, gamma=1, method=method)
    distances = [[0, 1, 2, 3], [1, 2, 3, 2], [2, 3, 2, 1], [3, 2, 1, 0]]
    for state, distance in enumerate(np.ravel(distances)):
        assert_printed(result, distance, at=state)


def test_frozen_lake(method: str) -> None:
    """The lake of 4x4 can be crossed with probability 14/17, and no better.

    Gymnasium's FrozenLake-v1, ice that slips to each side with probability 1/3; .8235 is the value
    that many pages quote of it (Lapan, "Deep Reinforcement Learning Hands-On" (2018), chapter 5,
    has the ``P`` of this environment).
    """
    result = planners.solve(
        gym.make("FrozenLake-v1", map_name="4x4", is_slippery=True), gamma=1, method=method
    )
    chances = [[14, 14, 14, 14], [14, 0, 9, 0], [14, 14, 13, 0], [0, 15, 16, 0]]
    for state, chance in enumerate(np.ravel(chances)):
        assert_printed(result, -chance / 17, at=state)


def test_lake_that_does_not_slip(method: str) -> None:
    """On ice that does not slip the lake is crossed for certain, in 6 steps."""
    env = gym.make("FrozenLake-v1", map_name="4x4", is_slippery=False)
    result = planners.solve(env, gamma=1, method=method)
    assert_printed(result, -1.0, at=0)
    by_steps = planners.solve(env, objective=planners.FiniteHorizon(6))
    assert by_steps.values[0, 0] == -1
    assert by_steps.values[1, 0] == 0


def gambler(chance: float, *, nothing: bool) -> TabularMDP:
    """Return the gambler's problem, stakes from 1, or from 0, dollars.

    Parameters
    ----------
    chance : float
        Of heads.
    nothing : bool
        Whether a stake of nothing is allowed, with which the game never ends.
    """

    def fn(capital: int, action: int) -> Outcomes | None:
        stake = action if nothing else action + 1
        if not 0 < capital < 100 or stake > min(capital, 100 - capital):
            return None
        won = -1.0 if capital + stake == 100 else 0.0
        return [(chance, capital + stake, won), (1 - chance, capital - stake, 0.0)]

    return TabularMDP.from_function(101, 51 if nothing else 50, fn)


def bold_play(chance: Fraction) -> list[Fraction]:
    """Return the probability of success of bold play, of capitals from 0 to 100.

    Each capital leads to one more, doubled, or doubled and reduced by 100; on from the first that
    comes again the values are a geometric series.
    """

    def value(capital: int) -> Fraction:
        # value(first) = gained + weight * value(capital), all along
        gained, weight = Fraction(0), Fraction(1)
        seen: dict[int, tuple[Fraction, Fraction]] = {}
        while capital not in (0, 100):
            if capital in seen:
                before, share = seen[capital]
                # before + share * v = gained + weight * v
                return before + share * (gained - before) / (share - weight)
            seen[capital] = gained, weight
            if capital <= 50:
                weight, capital = weight * chance, 2 * capital
            else:
                gained += weight * chance
                weight, capital = weight * (1 - chance), 2 * capital - 100
        return gained + weight * (capital == 100)

    return [value(capital) for capital in range(101)]


@pytest.mark.parametrize("nothing", [False, True])
def test_gambler_with_bad_odds(nothing: bool, method: str) -> None:
    """With p = .4 bold play is best: .4 at a capital of 50.

    Sutton and Barto (2018), example 4.3, figure 4.3; that bold play is optimal is from Dubins and
    Savage, "How to Gamble If You Must" (1965), and so is its value, by the recursion Q(x) = p Q(2x)
    below one half and p + (1 - p) Q(2x - 1) above.
    """
    result = planners.solve(gambler(0.4, nothing=nothing), gamma=1, method=method)
    success = bold_play(Fraction(2, 5))
    assert [success[c] for c in (25, 50, 75)] == [
        Fraction(4, 25),
        Fraction(2, 5),
        Fraction(16, 25),
    ]
    for capital in range(1, 100):
        assert_printed(result, float(-success[capital]), at=capital)
    assert result.policy[50] == (50 if nothing else 49)


@pytest.mark.parametrize("nothing", [False, True])
def test_gambler_with_good_odds(nothing: bool, method: str) -> None:
    """With p = .55 the least stake is best: (1 - r**s) / (1 - r**100), r = q/p.

    Sutton and Barto (2018), exercise 4.9; the chance is that of gambler's ruin, Feller, "An
    Introduction to Probability Theory and Its Applications", volume 1 (1968), chapter XIV.2.
    """
    result = planners.solve(gambler(0.55, nothing=nothing), gamma=1, method=method)
    ratio = 0.45 / 0.55
    for capital in range(1, 100):
        success = (1 - ratio**capital) / (1 - ratio**100)
        assert_printed(result, -success, at=capital)
    assert result.policy[10] == (1 if nothing else 0)


WIND = [0, 0, 0, 1, 1, 1, 2, 2, 1, 0]
MOVES_OF_FOUR = [(0, 1), (1, 0), (0, -1), (-1, 0)]
MOVES_OF_A_KING = [m for m in itertools.product((-1, 0, 1), repeat=2) if m != (0, 0)]


def windy(moves: list[tuple[int, int]], *, gusts: bool = False) -> TabularMDP:
    """Return the windy gridworld, rows counted from below; each step costs 1.

    Parameters
    ----------
    moves : list of (dx, dy)
    gusts : bool
        Whether the wind, where there is any, varies by 1 from its mean, each with probability 1/3.
    """
    width, height, goal = 10, 7, (7, 3)

    def fn(state: int, action: int) -> Outcomes | None:
        x, y = state % width, state // width
        if (x, y) == goal:
            return None
        dx, dy = moves[action]
        changes = (-1, 0, 1) if gusts and WIND[x] else (0,)
        outcomes = []
        for change in changes:
            after_x = min(max(x + dx, 0), width - 1)
            after_y = min(max(y + dy + WIND[x] + change, 0), height - 1)
            outcomes.append((1 / len(changes), after_y * width + after_x, 1.0))
        return outcomes

    return TabularMDP.from_function(width * height, len(moves), fn)


@pytest.mark.parametrize(
    ("moves", "steps"),
    [(MOVES_OF_FOUR, 15), (MOVES_OF_A_KING, 7), ([*MOVES_OF_A_KING, (0, 0)], 7)],
    ids=["four", "king", "king or none"],
)
def test_windy_gridworld(moves: list[tuple[int, int]], steps: int, method: str) -> None:
    """15 steps from the start to the goal; with king's moves 7.

    Sutton and Barto (2018), example 6.5 ("15 steps is the minimum") and exercise 6.9.
    """
    result = planners.solve(windy(moves), gamma=1, method=method)
    assert_printed(result, steps, at=3 * 10)


def test_windy_gridworld_is_no_faster_in_gusts(method: str) -> None:
    """A wind that varies leaves no way of certain length: more than 7 steps are to be expected.

    Sutton and Barto (2018), exercise 6.10, which has no printed answer.
    """
    result = planners.solve(windy(MOVES_OF_A_KING, gusts=True), gamma=1, method=method).require()
    assert result.lower[3 * 10] > 7
    greedy = planners.evaluate(windy(MOVES_OF_A_KING, gusts=True), result, gamma=1)
    assert result.lower[3 * 10] <= greedy[3 * 10] <= result.values[3 * 10] + 1e-5


def test_cliff_walking(method: str) -> None:
    """The best way along the cliff is 13 steps.

    Sutton and Barto (2018), example 6.6; Gymnasium's CliffWalking-v1.
    """
    env = gym.make("CliffWalking-v1")
    result = planners.solve(env, gamma=1, method=method)
    assert_printed(result, 13.0, at=36)


def steps_of_a_maze(drawing: str) -> dict[tuple[int, int], int]:
    """Return how far each cell of a drawn maze is from the goal, by breadth-first search."""
    lines = drawing.splitlines()
    height = len(lines) // 2
    row = next(i for i, line in enumerate(lines) if "G" in line)
    start = ((lines[row].index("G") - 2) // 4, height - 1 - row // 2)
    distances = {start: 0}
    queue = deque([start])
    while queue:
        x, y = queue.popleft()
        for dx, dy in STEPS.values():
            if lines[2 * (height - 1 - y) + 1 - dy][4 * x + 2 + 2 * dx] != " ":
                continue
            if (after := (x + dx, y + dy)) not in distances:
                distances[after] = distances[x, y] + 1
                queue.append(after)
    return distances


@pytest.mark.parametrize(
    "way", ["auto", "policy_iteration", "forest_policy_iteration", "value_iteration"]
)
@pytest.mark.parametrize(
    "settings",
    [{"shape": (20, 20)}, {"shape": (7, 30), "generator": "depth_first"}, {"loops": 0.2}],
    ids=str,
)
def test_standard_maze(settings: dict[str, object], way: str) -> None:
    """Where moves are certain and each costs 1, costs are distances.

    Chen et al., "An Adaptive State Aggregation Algorithm for Markov Decision Processes" (2021),
    section "MDP problems": the standard maze.
    """
    env = gym.make("StandardMaze-v0", goal_reward=-1.0, render_mode="ansi", **settings)
    env.reset(seed=0)
    drawing = env.render()
    assert isinstance(drawing, str)
    result = planners.solve(env, gamma=1, method=way)
    distances = steps_of_a_maze(drawing)
    height = len(drawing.splitlines()) // 2
    assert len(distances) == len(result.values)
    for (x, y), distance in distances.items():
        assert_printed(result, distance, at=x * height + y)


BLACKJACK_CARDS = {value: (4 if value == 10 else 1) / 13 for value in range(1, 11)}


def blackjack_sum(points: int, ace: bool) -> tuple[int, bool]:
    """Return the sum of a hand whose aces count 1, and whether one may count 11."""
    usable = ace and points + 10 <= 21
    return points + 10 * usable, usable


def dealers_sums(points: int, ace: bool) -> dict[int, float]:
    """Return what the dealer comes to, drawing to 17, soft or hard; 0 where it goes bust."""
    total, _ = blackjack_sum(points, ace)
    if total >= 17:
        return {total if total <= 21 else 0: 1.0}
    chances: dict[int, float] = {}
    for card, share in BLACKJACK_CARDS.items():
        for final, chance in dealers_sums(points + card, ace or card == 1).items():
            chances[final] = chances.get(final, 0.0) + share * chance
    return chances


def blackjack() -> tuple[TabularMDP, list[tuple[int, int, bool]]]:
    """Return the model of Blackjack-v1 and its states: sum, dealer's card, usable ace.

    The state after the last of them is before the deal, where there is one action.
    """
    states = [
        (total, card, ace)
        for total in range(4, 22)
        for card in BLACKJACK_CARDS
        for ace in (False, True)
        if total >= 12 or not ace
    ]
    index = {state: i for i, state in enumerate(states)}
    dealer = {}
    for card in BLACKJACK_CARDS:
        dealer[card] = {
            final: sum(
                share * dealers_sums(card + hole, 1 in (card, hole)).get(final, 0.0)
                for hole, share in BLACKJACK_CARDS.items()
            )
            for final in (0, *range(17, 22))
        }
    deal, over = len(states), len(states) + 1

    def fn(state: int, action: int) -> Outcomes | None:
        if state == over:
            return None
        if state == deal:
            if action == 1:
                return None
            outcomes = []
            for (first, p), (second, q), (card, r) in itertools.product(
                BLACKJACK_CARDS.items(), repeat=3
            ):
                total, usable = blackjack_sum(first + second, 1 in (first, second))
                outcomes.append((p * q * r, index[total, card, usable], 0.0))
            return outcomes
        total, card, usable = states[state]
        if action == 0:  # stick
            return [
                (chance, over, float((final > total) - (final < total)))
                for final, chance in dealer[card].items()
                if chance
            ]
        outcomes = []
        for drawn, chance in BLACKJACK_CARDS.items():
            points = total - 10 * usable + drawn
            if points > 21:
                outcomes.append((chance, over, 1.0))
            else:
                after, still = blackjack_sum(points, usable or drawn == 1)
                outcomes.append((chance, index[after, card, still], 0.0))
        return outcomes

    return TabularMDP.from_function(len(states) + 2, 2, fn), states


def test_blackjack(method: str) -> None:
    """The best return of Blackjack-v1 is -.04656, with the policy of figure 5.2.

    Sutton and Barto (2018), examples 5.1 and 5.3, by the rules of Gymnasium's Blackjack-v1 with
    ``natural=False, sab=False``: an infinite deck, a natural is a sum of 21 like any other, the
    dealer sticks on 17, be it soft.  (By ``sab=True``, where a natural beats a dealer's 21 that is
    none, it would be -.0431.)
    """
    model, states = blackjack()
    result = planners.solve(model, gamma=1, method=method)
    assert_printed(result, 0.04656, at=len(states), digits=5)

    for state, (total, card, usable) in enumerate(states):
        if total < 11 or total == 21:
            continue
        if usable:
            hits = total <= 17 or (total == 18 and card in (1, 9, 10))
        elif total == 12:
            hits = card not in (4, 5, 6)
        else:
            hits = total < 12 or (total < 17 and card not in (2, 3, 4, 5, 6))
        assert result.policy[state] == hits, (total, card, usable)


@pytest.mark.parametrize("stay", [0.0, 1.0])
@pytest.mark.parametrize("end", [-1.0, 0.0, 2.5])
def test_one_state_that_may_stay(end: float, stay: float, method: str) -> None:
    """One state, where a step in place costs a = 0 and the end costs b: we say b.

    Bertsekas, "Abstract Dynamic Programming", second edition (2018), section 3.1.1; Bertsekas and
    Yu, "Stochastic shortest path problems under weak conditions" (2016).  With a = 0 and
    b > 0 the improper policy that stays is best of all, at 0, and value iteration from 0 stays
    there; Bellman's equation has all numbers up to b for solutions.  The least cost of the proper
    policies is b, for every a >= 0.
    """

    def fn(state: int, action: int) -> list[tuple[float, int, float, bool]] | None:
        if state == 1:
            return None
        return [(1.0, 0, stay, False)] if action == 0 else [(1.0, 1, end, True)]

    model = TabularMDP.from_function(2, 2, fn)
    result = planners.solve(model, gamma=1, method=method)
    assert_printed(result, end, at=0)
    assert result.policy[0] == 1
    assert planners.evaluate(model, result, gamma=1)[0] == end
    assert planners.evaluate(model, [0, 0], gamma=1)[0] == math.inf


def test_one_state_where_staying_pays_has_no_answer(method: str) -> None:
    """With a < 0 in the same problem nothing is least: it is refused, and the state named.

    Bertsekas (2018), section 3.1.1: a cycle of negative length.
    """

    def fn(state: int, action: int) -> list[tuple[float, int, float, bool]] | None:
        if state == 1:
            return None
        return [(1.0, 0, -1.0, False)] if action == 0 else [(1.0, 1, 1.0, True)]

    with pytest.raises(ValueError, match=r"state 0\b"):
        planners.solve(TabularMDP.from_function(2, 2, fn), gamma=1, method=method)


@pytest.mark.parametrize("end", [-0.5, 0.5, 1.5])
def test_circle_of_steps_that_cancel(end: float, method: str) -> None:
    """A circle of length 0 made of a step that costs 1 and one that pays it: it is no way out.

    After Bertsekas and Yu (2016): what a policy that stays on such a circle costs goes up and down,
    and may be less than what any proper policy costs.
    """

    def fn(state: int, action: int) -> list[tuple[float, int, float]] | None:
        if state == 2:
            return None
        if action == 0:
            return [(1.0, 1 - state, 1.0 if state == 0 else -1.0)]
        return [(1.0, 2, end)] if state == 0 else None

    result = planners.solve(TabularMDP.from_function(3, 2, fn), gamma=1, method=method)
    assert_printed(result, end, at=0)
    assert_printed(result, end - 1.0, at=1)
    np.testing.assert_array_equal(result.policy[:2], [1, 0])


def test_fork_into_circles_of_length_zero(method: str) -> None:
    """An improper policy whose cost does not satisfy its own equation: we take the way out.

    After Bertsekas, "Abstract Dynamic Programming", second edition (2018), section 3.1.2.  From
    state 0 the improper policy goes to one of two circles, where costs of 1 and -1 come in opposite
    order.  Its expected sum is 0 at every step, so that it costs 0, and not the mean of what it
    costs from the circles, 1 and 0 if the upper limit counts.  The proper policy pays 1/2 and ends.
    From the circles nothing ends.
    """
    end = 0.5
    first, second, over = (1, 2, 3), (4, 5, 6), 7
    # Costs along the circles: 1, then -1, and 0; and the opposite.
    lengths = {1: 1.0, 2: -1.0, 3: 0.0, 4: -1.0, 5: 1.0, 6: 0.0}

    def fn(state: int, action: int) -> list[tuple[float, int, float, bool]] | None:
        if state == over:
            return None
        if state == 0:
            if action == 0:
                return [(0.5, first[0], 0.0, False), (0.5, second[0], 0.0, False)]
            return [(1.0, over, end, True)]
        circle = first if state in first else second
        return [(1.0, circle[(circle.index(state) + 1) % 3], lengths[state], False)]

    model = TabularMDP.from_function(8, 2, fn)
    result = planners.solve(model, gamma=1, method=method)
    assert_printed(result, end, at=0)
    assert result.policy[0] == 1
    for state in (*first, *second):
        assert_printed(result, math.inf, at=state)
    assert result.infinite[1:7].all()
    assert not result.infinite[[0, 7]].any()
