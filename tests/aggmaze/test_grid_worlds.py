"""The rules of grid worlds, beside loops over cells in Python and the tables of Gymnasium."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import generate_random_map
from hypothesis import given
from hypothesis import strategies as st

import aggmaze
import planners
from aggmaze import GridWorld, GridWorldRules, MoveMDP, TabularMDP, grid_world_model

# Probability by next state and cost.
Outcomes = dict[tuple[int, float], float]

FOUR = [(-1, 0), (1, 0), (0, -1), (0, 1)]
KING = [*FOUR, (-1, -1), (-1, 1), (1, -1), (1, 1)]
MOVES = {"four": FOUR, "king": KING, "king_or_stay": [*KING, (0, 0)]}
TABLE = {"1": 10.0, "m": {"reward": -3.0, "ends": False}, "G": 2.0}
REWARDS = {"G": 2.0, "H": 0.0, "L": -1.0, "C": -100.0, "1": 10.0, "m": -3.0}
ENDS = "GHL1"


class Reference:
    """A grid world written down a second time, cell by cell."""

    def __init__(self, text: str, moves: str, **rules: Any) -> None:
        lines = text.split("\n")
        self.height, self.width = len(lines), len(lines[0])
        self.signs = {
            (x, self.height - 1 - row): sign
            for row, line in enumerate(lines)
            for x, sign in enumerate(line)
        }
        self.moves = MOVES[moves]
        self.rules = vars(GridWorldRules(**rules))
        self.start = next((cell for cell, sign in self.signs.items() if sign == "S"), None)

    def state(self, cell: tuple[int, int]) -> int:
        return cell[0] * self.height + cell[1]

    def is_open(self, cell: tuple[int, int]) -> bool:
        return self.signs.get(cell, "#") != "#"

    def step(self, cell: tuple[int, int], move: tuple[int, int], wind: int) -> tuple[int, int]:
        """Return where a move and a wind lead, one cell after the other."""
        x, y = cell
        if self.is_open((x + move[0], y)):
            x += move[0]
        rise = move[1] + wind
        for _ in range(abs(rise)):
            above = (x, y + (1 if rise > 0 else -1))
            if self.is_open(above):
                y = above[1]
        return x, y

    def cost(self, cell: tuple[int, int], reached: tuple[int, int], bumped: bool) -> float:
        rules = self.rules
        if bumped and rules["bump_cost"] is not None:
            return float(rules["bump_cost"])

        def own(at: tuple[int, int]) -> float:
            return -REWARDS[self.signs[at]] if self.signs[at] in REWARDS else rules["step_cost"]

        if rules["pays"] == "entering":
            return own(reached)
        return own(cell) + (own(reached) if self.signs[reached] in ENDS + "C" else 0.0)

    def bumps(self, cell: tuple[int, int], move: tuple[int, int], wind: int) -> bool:
        return self.step(cell, move, wind) == cell and (move[0], move[1] + wind) != (0, 0)

    def wind(self, cell: tuple[int, int]) -> int:
        return 0 if self.rules["wind"] is None else self.rules["wind"][cell[0]]

    def available(self, cell: tuple[int, int]) -> list[tuple[int, int]]:
        if self.rules["bumps"] == "stay":
            return self.moves
        free = [move for move in self.moves if not self.bumps(cell, move, self.wind(cell))]
        return free or self.moves

    def outcomes(self, cell: tuple[int, int], move: tuple[int, int]) -> Outcomes:
        p, mean = self.rules["p"], self.wind(cell)
        made = {move: p}
        if self.rules["slip"] == "perpendicular":
            sides = {(-move[1], move[0]), (move[1], -move[0])} - {move}
        else:
            sides = set(self.available(cell)) - {move}
        for side in sides:
            made[side] = (1 - p) / len(sides)
        if not sides:
            made[move] = 1.0
        gusts = (-1, 0, 1) if self.rules["gusts"] and mean else (0,)
        found: Outcomes = defaultdict(float)
        for each, chance in made.items():
            for gust in gusts:
                reached = self.step(cell, each, mean + gust)
                bumped = self.bumps(cell, each, mean + gust)
                cost = self.cost(cell, reached, bumped)
                if self.signs[reached] == "C":
                    assert self.start is not None
                    reached = self.start
                found[self.state(reached), cost] += chance / len(gusts)
        return {key: chance for key, chance in found.items() if chance > 0}


def outcomes_of(model: TabularMDP, state: int, action: int) -> Outcomes:
    row = state * model.num_actions + action
    found: Outcomes = defaultdict(float)
    for entry in range(*model.transitions.indptr[row : row + 2]):
        cost = model.costs[state, action]
        if model.outcome_costs is not None:
            cost = model.outcome_costs[entry]
        found[int(model.transitions.indices[entry]), float(cost)] += float(
            model.transitions.data[entry]
        )
    return found


def assert_same(found: Outcomes, expected: Outcomes) -> None:
    assert set(found) == set(expected)
    for key, chance in expected.items():
        assert found[key] == pytest.approx(chance, rel=0, abs=1e-15), key


@st.composite
def worlds(draw: st.DrawFn) -> tuple[str, str, dict[str, Any]]:
    """Draw a small map, the kind of moves, and rules."""
    columns, rows = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    size = columns * rows
    cells = draw(st.lists(st.sampled_from("...##GHLC1m"), min_size=size, max_size=size))
    cells[0], cells[-1] = "S", "G"
    text = "\n".join("".join(cells[k * columns : (k + 1) * columns]) for k in range(rows))
    winds = st.lists(st.integers(-2, 2), min_size=columns, max_size=columns)
    return (
        text,
        draw(st.sampled_from(list(MOVES))),
        {
            "p": draw(st.sampled_from([1.0, 0.8, 1 / 3, 0.05])),
            "slip": draw(st.sampled_from(["perpendicular", "uniform"])),
            "step_cost": draw(st.sampled_from([0.0, 1.0, -0.5])),
            "pays": draw(st.sampled_from(["entering", "leaving"])),
            "bumps": draw(st.sampled_from(["stay", "masked"])),
            "bump_cost": draw(st.sampled_from([None, 2.5])),
            "wind": draw(st.none() | winds),
            "gusts": draw(st.booleans()),
        },
    )


@given(worlds())
def test_every_outcome_is_as_by_hand(drawn: tuple[str, str, dict[str, Any]]) -> None:
    text, moves, rules = drawn
    reference = Reference(text, moves, **rules)
    world = GridWorld.read(text, TABLE, moves=moves, unreachable="allow")
    made = grid_world_model(world, GridWorldRules(**rules)).validate()
    gusts = rules["gusts"] and any(rules["wind"] or ())
    is_moves = not gusts and (rules["p"] == 1.0 or rules["slip"] == "uniform")
    assert isinstance(made, MoveMDP if is_moves else TabularMDP)
    model = made.to_tabular()
    assert model.num_actions == len(reference.moves)
    for cell, sign in reference.signs.items():
        state = reference.state(cell)
        assert model.terminal[state] == (sign in ENDS or sign == "#")
        if model.terminal[state]:
            continue
        available = reference.available(cell)
        mask = [move in available for move in reference.moves]
        assert model.action_mask[state].tolist() == mask
        for action, move in enumerate(reference.moves):
            if mask[action]:
                expected = reference.outcomes(cell, move)
                assert_same(outcomes_of(model, state, action), expected)
            else:
                price = max(0.0, float(model.costs.max(where=model.action_mask, initial=0.0)))
                if all(set(reference.outcomes(cell, each)) == {(state, 0.0)} for each in available):
                    price = 0.0  # who can only stay, at no cost, pays nothing
                ((found, cost),) = outcomes_of(model, state, action)
                assert found == state
                # A `MoveMDP` prices it by its moves, of which the mean is no more.
                assert cost >= price - 1e-12 if is_moves else cost == price
    if not is_moves:
        # Rows list each next state once for each cost, and nothing of probability 0.
        assert (model.transitions.data > 0).all()
        rows = np.repeat(np.arange(model.transitions.shape[0]), np.diff(model.transitions.indptr))
        costs = model.outcome_costs
        assert costs is not None
        keys = list(zip(rows.tolist(), model.transitions.indices.tolist(), costs, strict=True))
        assert len(set(keys)) == len(keys)
    start = reference.start
    assert start is not None
    assert model.initial[reference.state(start)] == 1.0


THIN = """
+---+---+---+
| S     | 1 |
+   +---+   +
|   |       |
+   +   +   +
| m   L   G |
+---+---+---+
"""


def test_thin_walls_are_walls() -> None:
    """Every move by hand: walls hold up the wind and those who slip."""
    world = GridWorld.read(THIN, TABLE)
    model = grid_world_model(world, GridWorldRules(p=0.8, wind=(0, 1, 0))).to_tabular()
    state = world.layout.grid.state

    def go(at: tuple[int, int], action: int) -> Outcomes:
        return outcomes_of(model, state(at), action)

    right, down, up = 1, 2, 3
    # In (1, 1) the wind holds who goes down, and a wall who slips to the left; who slips to
    # the right goes round the wall above.
    assert_same(go((1, 1), down), {(state((1, 1)), 0.0): 0.9, (state((2, 2)), -10.0): 0.1})
    # From (0, 2) to the right, up into the edge, down.
    assert_same(
        go((0, 2), right),
        {(state((1, 2)), 0.0): 0.8, (state((0, 2)), 0.0): 0.1, (state((0, 1)), 0.0): 0.1},
    )
    # Out of (2, 1) there is a wall on no side but the edge.
    assert_same(
        go((2, 1), up),
        {(state((2, 2)), -10.0): 0.8, (state((1, 1)), 0.0): 0.1, (state((2, 1)), 0.0): 0.1},
    )
    # From (1, 2), below which is a wall, to the right, where one is too: all stay.
    assert_same(go((1, 2), right), {(state((1, 2)), 0.0): 1.0})


LAKE_ACTIONS = {0: 0, 1: 2, 2: 1, 3: 3}  # Gymnasium's LEFT, DOWN, RIGHT, UP as ours


@pytest.mark.parametrize("success_rate", [1 / 3, 0.8, 1.0])
@pytest.mark.parametrize("size", [4, 7])
def test_frozen_lakes_table(size: int, success_rate: float) -> None:
    """The same map is the same lake as Gymnasium's, outcome by outcome."""
    for seed in range(4):
        desc = generate_random_map(size=size, p=0.75, seed=seed)
        lake: Any = gym.make(
            "FrozenLake-v1", desc=desc, is_slippery=success_rate < 1, success_rate=success_rate
        ).unwrapped
        ours: Any = gym.make("GridWorld-v0", layout=desc, p=success_rate).unwrapped
        assert_same_tables(lake.P, ours, LAKE_ACTIONS, size)


def assert_same_tables(
    theirs: Any, ours: Any, actions: dict[int, int], columns: int, but: tuple[int, ...] = ()
) -> None:
    rows = ours.grid.shape[1]
    model = ours.transition_model().to_tabular()
    states = {
        row * columns + x: ours.grid.state((x, rows - 1 - row))
        for row in range(rows)
        for x in range(columns)
    }
    for their_state, state in states.items():
        if their_state in but:
            continue
        for their_action, action in actions.items():
            expected: dict[tuple[int, float, bool], float] = defaultdict(float)
            for chance, following, reward, over in theirs[their_state][their_action]:
                expected[states[following], float(reward), bool(over)] += chance
            found: dict[tuple[int, float, bool], float] = defaultdict(float)
            for (following, cost), chance in outcomes_of(model, state, action).items():
                found[following, 0.0 - cost, bool(model.terminal[following])] += chance
            assert set(found) == set(expected), (their_state, their_action)
            for key, chance in expected.items():
                assert found[key] == pytest.approx(chance, rel=0, abs=1e-15)


def test_cliff_walkings_table() -> None:
    """`cliff` is Gymnasium's CliffWalking, outcome by outcome, but for the goal that ends it."""
    theirs: Any = gym.make("CliffWalking-v1").unwrapped
    ours: Any = gym.make("GridWorld-v0", layout="cliff").unwrapped
    # Gymnasium's UP, RIGHT, DOWN, LEFT.
    assert_same_tables(theirs.P, ours, {0: 3, 1: 1, 2: 2, 3: 0}, 12, but=(47,))
    assert ours.transition_model().terminal[ours.grid.state((11, 0))]
    slippery: Any = gym.make("CliffWalking-v1", is_slippery=True).unwrapped
    ours = gym.make("GridWorld-v0", layout="cliff", p=1 / 3).unwrapped
    assert_same_tables(slippery.P, ours, {0: 3, 1: 1, 2: 2, 3: 0}, 12, but=(47,))


def test_a_wind_that_never_blows_is_none() -> None:
    world = GridWorld.read("S..\n..G")
    calm, still = (
        grid_world_model(world, GridWorldRules(p=0.8, wind=wind, gusts=True))
        for wind in (None, (0, 0, 0))
    )
    np.testing.assert_array_equal(calm.transitions.toarray(), still.transitions.toarray())


def test_a_storm_goes_no_farther_than_the_edge() -> None:
    world = GridWorld.read("..\n..\nSG", moves="king")
    model = grid_world_model(world, GridWorldRules(wind=(10**9, -(10**9)))).to_tabular()
    up = world.layout.grid.state((0, 2))
    assert outcomes_of(model, world.layout.grid.state((0, 0)), 2) == {(up, 0.0): 1.0}


class TestStarts:
    WORLD = GridWorld.read("S.C\n..G")

    def test_of_the_map_or_anywhere(self) -> None:
        free = GridWorld.read("..H\n#.G")
        rules = GridWorldRules()
        assert np.flatnonzero(grid_world_model(self.WORLD, rules).initial).tolist() == [1]
        model = grid_world_model(free, rules)
        assert np.flatnonzero(model.initial).tolist() == [1, 2, 3]
        assert model.initial[1] == pytest.approx(1 / 3)
        again = grid_world_model(free, rules, start="uniform")
        np.testing.assert_array_equal(again.initial, model.initial)
        assert grid_world_model(self.WORLD, rules, start=(0, 0)).initial[0] == 1.0

    @pytest.mark.parametrize(
        ("start", "message"),
        [
            ("corner", "start must be uniform, coordinates .*, or None, got 'corner'"),
            (3, "start must be uniform, coordinates .*, or None, got 3"),
            ((2, 0), r"start=\(2, 0\) is an end or a cliff"),
            ((2, 1), r"start=\(2, 1\) is an end or a cliff"),
            ((3, 0), r"start=\(3, 0\).*3 on axis 0"),
            ("uniform", "a cliff leads back to the start, of which there must be one"),
        ],
    )
    def test_refused(self, start: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            grid_world_model(self.WORLD, GridWorldRules(), start=start)

    def test_blocked(self) -> None:
        with pytest.raises(ValueError, match=r"start=\(0, 0\) is blocked"):
            grid_world_model(GridWorld.read("#.G"), GridWorldRules(), start=(0, 0))


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ({"p": 0}, ValueError, r"p must be in \(0, 1\], got 0"),
        ({"p": NAN}, ValueError, r"p must be in \(0, 1\], got nan"),
        ({"slip": "sideways"}, ValueError, "slip must be one of perpendicular, uniform"),
        ({"step_cost": NAN}, ValueError, "step_cost must be .*finite.*nan"),
        ({"step_cost": INF}, ValueError, "step_cost must be .*finite.*inf"),
        ({"pays": "staying"}, ValueError, "pays must be one of entering, leaving, got 'staying'"),
        ({"bumps": "hurt"}, ValueError, "bumps must be one of stay, masked, got 'hurt'"),
        ({"bump_cost": NAN}, ValueError, "bump_cost must be .*finite.*nan"),
        ({"wind": (0, 1)}, ValueError, r"wind must have one integer for each of 3 columns, got 2"),
        ({"wind": (0, 1.5, 0)}, TypeError, r"wind\[1\] must be an integer, got 1\.5"),
        ({"wind": "010"}, TypeError, "wind must be one integer a column, got '010'"),
        ({"wind": 1}, TypeError, "wind must be one integer a column, got 1"),
        ({"gusts": 1}, TypeError, "gusts must be True or False, got 1"),
        ({"step_cost": -1.5e308, "pays": "leaving"}, ValueError, "costs overflow"),
    ],
)
def test_rules_refused(rules: dict[str, Any], error: type[Exception], message: str) -> None:
    world = GridWorld.read("S.G", {"G": 1.5e308} if "pays" in rules else None)
    with pytest.raises(error, match=message):
        grid_world_model(world, GridWorldRules(**rules))


@pytest.mark.parametrize("slip", ["perpendicular", "uniform"])
def test_the_mask_is_the_optimum_where_bumps_cost_dear(slip: str) -> None:
    """Where nothing slips, nobody bumps who pays for it."""
    world = GridWorld.read("S..#G\n.#..C\n..m.H", {"m": {"reward": -3, "ends": False}})
    free = grid_world_model(world, GridWorldRules(p=1.0, slip=slip, step_cost=1, bump_cost=5))
    masked = grid_world_model(world, GridWorldRules(slip=slip, step_cost=1, bumps="masked"))
    values = [planners.solve(model, gamma=0.95).values for model in (free, masked)]
    np.testing.assert_allclose(*values, rtol=0, atol=1e-5)


def test_large_maps_are_arrays_all_along() -> None:
    """A map of 40,000 cells, of which 30 are compared with the loops."""
    rng = np.random.default_rng(0)
    cells = rng.choice(list("....#mH"), size=(200, 200))
    cells[0, 0], cells[-1, -1] = "S", "G"
    text = "\n".join("".join(row) for row in cells.tolist())
    rules: dict[str, Any] = {"p": 0.8, "step_cost": 1.0}
    reference = Reference(text, "four", **rules)
    world = GridWorld.read(cells, TABLE, unreachable="allow")
    model = grid_world_model(world, GridWorldRules(**rules)).validate()
    for index in rng.choice(200 * 200, size=30, replace=False):
        cell = int(index) // 200, int(index) % 200
        if reference.signs[cell] in ENDS + "#":
            continue
        for action, move in enumerate(FOUR):
            found = outcomes_of(model, int(index), action)
            assert_same(found, reference.outcomes(cell, move))
    assert aggmaze.GridWorldEnv(cells, signs=TABLE, unreachable="allow").layout.grid.num_states


def test_rooms_without_an_end_cost_without_limit() -> None:
    """Whoever is shut in pays for ever; the others pay their distance."""
    world = GridWorld.read("S.G#..", {"G": -1}, unreachable="allow")
    for rules in ({"step_cost": 1.0}, {"step_cost": 1.0, "bumps": "masked"}):
        model = grid_world_model(world, GridWorldRules(**rules))
        result = planners.solve(model, gamma=1)
        assert result.values.tolist() == [2.0, 1.0, 0.0, 0.0, INF, INF]
        discounted = planners.solve(model, gamma=0.5, atol=1e-12).values
        np.testing.assert_allclose(discounted, [1.5, 1, 0, 0, 2, 2], atol=1e-11)
