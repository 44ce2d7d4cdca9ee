"""Models written by hand: the same model in every form, and what each form refuses."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import planners
from aggmaze import TabularMDP

Outcome = tuple[float, int, float, bool]
GAMMA = Fraction(1, 2)


class Sketch(NamedTuple):
    """A random model in plain Python: outcomes by state and action, [] where there are none.

    Probabilities are eighths and costs are integers, so that float64 holds every sum exactly.
    """

    num_states: int
    num_actions: int
    outcomes: list[list[list[Outcome]]]

    def ends(self, state: int) -> bool:
        return not any(self.outcomes[state])

    def pay(self, sign: int) -> list[list[list[Outcome]]]:
        return [
            [[(p, s, sign * c, end) for p, s, c, end in row] for row in rows]
            for rows in self.outcomes
        ]


@st.composite
def sketches(draw: st.DrawFn, *, may_terminate: bool = True) -> Sketch:
    num_states, num_actions = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    outcomes: list[list[list[Outcome]]] = []
    for _ in range(num_states):
        rows = []
        for _ in range(num_actions):
            cuts = sorted(draw(st.lists(st.integers(1, 7), max_size=2)))
            parts = [b - a for a, b in zip([0, *cuts], [*cuts, 8], strict=True)]
            row = [
                (
                    part / 8,
                    draw(st.integers(0, num_states - 1)),
                    float(draw(st.integers(-4, 4))),
                    may_terminate and draw(st.booleans()),
                )
                for part in parts
                if part
            ]
            rows.append(row if draw(st.integers(0, 3)) else [])
        outcomes.append(rows)
    return Sketch(num_states, num_actions, outcomes)


def values_after(sketch: Sketch, sweeps: int) -> list[Fraction]:
    """Return costs-to-go after so many sweeps from 0, in fractions and plain loops."""
    V = [Fraction(0)] * sketch.num_states
    for _ in range(sweeps):
        V = [
            Fraction(0)
            if sketch.ends(state)
            else min(
                sum(
                    Fraction(p) * (Fraction(c) + (0 if end else GAMMA * V[following]))
                    for p, following, c, end in row
                )
                for row in rows
                if row
            )
            for state, rows in enumerate(sketch.outcomes)
        ]
    return V


def content(model: TabularMDP) -> tuple[Any, ...]:
    """Return a model as plain numbers; what unavailable actions hold is left out."""
    mask = model.action_mask.reshape(-1, 1)
    return (
        np.where(mask, model.transitions.toarray(), 0).tolist(),
        np.where(model.action_mask, model.costs, 0).tolist(),
        model.action_mask.tolist(),
        model.terminal.tolist(),
        model.initial.tolist(),
        model.num_added_states,
    )


def by_function(sketch: Sketch, sign: int = 1, **options: Any) -> TabularMDP:
    rows = sketch.pay(sign)
    return TabularMDP.from_function(
        sketch.num_states, sketch.num_actions, lambda s, a: rows[s][a], **options
    )


def in_batches(sketch: Sketch, sign: int = 1, **options: Any) -> TabularMDP:
    width = 1 + max(len(row) for rows in sketch.outcomes for row in rows)
    shape = sketch.num_states, sketch.num_actions, width
    # What fills up the rows has probability 0; its other entries are absurd.
    tables = np.zeros(shape), np.full(shape, -9), np.full(shape, np.nan), np.ones(shape, bool)
    for s, rows in enumerate(sketch.pay(sign)):
        for a, row in enumerate(rows):
            for k, outcome in enumerate(row):
                for table, entry in zip(tables, outcome, strict=True):
                    table[s, a, k] = entry
    return TabularMDP.from_batched_function(
        sketch.num_states,
        sketch.num_actions,
        lambda s, a: tuple(table[s, a] for table in tables),
        **options,
    )


def as_arrays(sketch: Sketch) -> tuple[np.ndarray, np.ndarray]:
    """Return P (S, A, S) and mean costs (S, A) of a sketch, infinite where it has no outcomes."""
    P = np.zeros((sketch.num_states, sketch.num_actions, sketch.num_states))
    costs = np.full(P.shape[:2], np.inf)
    for s, rows in enumerate(sketch.outcomes):
        for a, row in enumerate(rows):
            for p, following, _, _ in row:
                P[s, a, following] += p
            if row:
                costs[s, a] = sum(p * c for p, _, c, _ in row)
    return P, costs


@pytest.mark.filterwarnings("ignore:state.*for ever")
class TestTheSameModel:
    @given(sketches())
    @settings(max_examples=150, deadline=None)
    def test_functions(self, sketch: Sketch) -> None:
        model = by_function(sketch)
        expected = content(model)
        assert content(by_function(sketch, -1, rewards=True)) == expected
        assert content(in_batches(sketch)) == expected
        assert content(in_batches(sketch, -1, rewards=True)) == expected
        names = [f"s{s}" for s in range(sketch.num_states)]
        moves = [("a", a) for a in range(sketch.num_actions)]

        def fn(state: str, action: tuple[str, int]) -> Any:
            row = sketch.outcomes[int(state[1:])][action[1]]
            return [(p, names[s], c, end) for p, s, c, end in row] or None

        named = TabularMDP.from_function(fn, states=names, actions=moves)
        assert content(named) == expected
        assert named.state_names == tuple(names)
        assert named.action_names == tuple(moves)

    @given(sketches(), st.integers(1, 5))
    @settings(max_examples=60, deadline=None)
    def test_looked_at_in_pieces(self, sketch: Sketch, size: int) -> None:
        expected = content(by_function(sketch))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("aggmaze.models.tabular._ENTRIES_AT_ONCE", size)
            patch.setattr("aggmaze.formats.functions._AT_ONCE", size)
            patch.setattr("aggmaze.formats.functions._FIRST_ROWS", size)
            patch.setattr("aggmaze.formats.functions._NUMBERS_AT_ONCE", size)
            assert content(by_function(sketch)) == expected
            assert content(in_batches(sketch)) == expected

    @given(sketches())
    @settings(max_examples=100, deadline=None)
    def test_actions_of_a_state(self, sketch: Sketch) -> None:
        def available(state: int) -> list[int]:
            # Backwards, so that they are met in another order than they are numbered in.
            return [a for a in reversed(range(sketch.num_actions)) if sketch.outcomes[state][a]]

        found = sorted({a for s in range(sketch.num_states) for a in available(s)})
        if not found:
            with pytest.raises(ValueError, match="actions must give an action in one state"):
                self.of_available(sketch, available)
            return
        model, expected = self.of_available(sketch, available), by_function(sketch)
        names = model.action_names or tuple(range(model.num_actions))
        assert sorted(names) == found
        order = [names.index(a) for a in found]  # type: ignore[arg-type]
        kept = [a for a in range(sketch.num_actions) if a in found]
        size = model.num_states
        P = model.transitions.toarray().reshape(size, -1, size)[:, order]
        Q = expected.transitions.toarray().reshape(size, -1, size)[:, kept]
        mask = expected.action_mask[:, kept]
        np.testing.assert_array_equal(model.action_mask[:, order], mask)
        np.testing.assert_array_equal(P[mask], Q[mask])
        np.testing.assert_array_equal(model.costs[:, order][mask], expected.costs[:, kept][mask])
        np.testing.assert_array_equal(model.terminal, expected.terminal)

    def of_available(self, sketch: Sketch, available: Callable[[int], list[int]]) -> TabularMDP:
        return TabularMDP.from_function(
            lambda s, a: sketch.outcomes[s][a], states=sketch.num_states, actions=available
        )

    @given(sketches(may_terminate=False))
    @settings(max_examples=100, deadline=None)
    def test_matrices(self, sketch: Sketch) -> None:
        expected = content(by_function(sketch))
        P, costs = as_arrays(sketch)
        size, width = sketch.num_states, sketch.num_actions
        one = sp.csr_array(P.reshape(size * width, size))
        forms: list[tuple[Any, dict[str, Any]]] = [
            (P, {}),
            (P.swapaxes(0, 1), {"order": "ass"}),
            (one, {}),
            (P.reshape(size * width, size), {}),
            (sp.csr_array(P.swapaxes(0, 1).reshape(size * width, size)), {"order": "ass"}),
            ([sp.csr_array(P[:, a]) for a in range(width)], {}),
        ]
        ended = by_function(sketch).terminal
        for form, options in forms:
            model = TabularMDP.from_matrices(form, costs=costs, terminal=ended, **options)
            assert content(model) == expected
        paid = TabularMDP.from_matrices(one, rewards=-costs, terminal=ended)
        assert content(paid) == expected

    @given(sketches(may_terminate=False), st.randoms())
    @settings(max_examples=100, deadline=None)
    def test_pairs(self, sketch: Sketch, random: Any) -> None:
        P, costs = as_arrays(sketch)
        pairs = [(s, a) for s, a in np.ndindex(costs.shape) if np.isfinite(costs[s, a])]
        if not pairs:
            return
        random.shuffle(pairs)
        s_indices, a_indices = (list(column) for column in zip(*pairs, strict=True))
        Q = P[s_indices, a_indices]
        model = by_function(sketch)
        options = {"num_actions": sketch.num_actions, "terminal": model.terminal}
        for form in (Q, sp.csr_matrix(Q), Q.tolist()):
            found = TabularMDP.from_state_action_pairs(
                s_indices, a_indices, form, costs=costs[s_indices, a_indices], **options
            )
            assert content(found) == content(model)
        found = TabularMDP.from_state_action_pairs(
            s_indices, a_indices, Q, rewards=-costs[s_indices, a_indices], **options
        )
        assert content(found) == content(model)

    @given(sketches())
    @settings(max_examples=60, deadline=None)
    def test_costs_to_go_in_fractions(self, sketch: Sketch) -> None:
        expected = [float(value) for value in values_after(sketch, 4)]
        for model in (by_function(sketch), in_batches(sketch)):
            result = planners.solve(
                model, gamma=float(GAMMA), method="value_iteration", num_iterations=4
            )
            assert result.values.tolist() == expected

    @given(sketches(), st.data())
    @settings(max_examples=100, deadline=None)
    def test_what_can_be_reached(self, sketch: Sketch, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, sketch.num_states - 1))
        model = TabularMDP.from_function(
            lambda s, a: sketch.outcomes[s][a], start=start, actions=sketch.num_actions
        )
        # By plain search.
        reached, waiting = [start], [start]
        while waiting:
            state = waiting.pop(0)
            for row in sketch.outcomes[state]:
                for _, following, _, _ in row:
                    if following not in reached:
                        reached.append(following)
                        waiting.append(following)
        names = model.state_names or tuple(range(model.num_listed_states))
        assert names == tuple(reached)
        assert model.initial.tolist() == [1.0] + [0.0] * (model.num_states - 1)
        place = {state: i for i, state in enumerate(reached)}
        part = Sketch(
            len(reached),
            sketch.num_actions,
            [
                [[(p, place[s], c, end) for p, s, c, end in row] for row in sketch.outcomes[state]]
                for state in reached
            ],
        )
        assert content(model)[:4] == content(by_function(part))[:4]


#: Russell and Norvig, Artificial Intelligence: A Modern Approach, 4th edition, figure 16.3 (in the
#: 3rd figure 17.3): utilities for a reward of -0.04 and no discount.
AIMA = {
    (1, 3): 0.812,
    (2, 3): 0.868,
    (3, 3): 0.918,
    (1, 2): 0.762,
    (3, 2): 0.660,
    (1, 1): 0.705,
    (2, 1): 0.655,
    (3, 1): 0.611,
    (4, 1): 0.388,
}
EXITS = {(4, 3): 1.0, (4, 2): -1.0}
CELLS = [(x, y) for x in (1, 2, 3, 4) for y in (1, 2, 3) if (x, y) != (2, 2)]
STEPS = {"N": (0, 1), "E": (1, 0), "S": (0, -1), "W": (-1, 0)}


def ahead(cell: tuple[int, int], way: str) -> tuple[int, int]:
    to = cell[0] + STEPS[way][0], cell[1] + STEPS[way][1]
    return to if to in CELLS else cell


def drift(cell: Any, way: Any) -> list[tuple[float, Any, float]]:
    left, right = ("W", "E") if way in "NS" else ("N", "S")
    outcomes = [(0.8, ahead(cell, way)), (0.1, ahead(cell, left)), (0.1, ahead(cell, right))]
    return [(p, to, -0.04 + EXITS.get(to, 0.0)) for p, to in outcomes]


def aima_matrices() -> np.ndarray:
    P = np.zeros((11, 4, 11))
    for s, cell in enumerate(CELLS):
        for a, way in enumerate(STEPS):
            for p, to, _ in drift(cell, way) if cell not in EXITS else []:
                P[s, a, CELLS.index(to)] += p
    return P


def assert_aima(model: TabularMDP) -> None:
    result = planners.solve(model, gamma=1)
    assert {cell: round(-result.value_of(cell), 3) for cell in AIMA} == AIMA
    assert [result.action_of((x, 1)) for x in (1, 2, 3, 4)] == ["N", "W", "W", "W"]
    assert [result.action_of((x, 3)) for x in (1, 2, 3)] == ["E"] * 3


class TestAima:
    def test_listed(self) -> None:
        assert_aima(
            TabularMDP.from_function(
                lambda cell, way: None if cell in EXITS else drift(cell, way),
                states=CELLS,
                actions="NESW",
                rewards=True,
                initial=(1, 1),
            )
        )

    def test_found(self) -> None:
        model = TabularMDP.from_function(
            drift,
            start=(1, 1),
            actions=lambda cell: () if cell in EXITS else "NESW",
            rewards=True,
        )
        assert sorted(model.state_names or ()) == CELLS
        assert_aima(model)

    @pytest.mark.parametrize("rewards", [np.full(11, -0.04), np.full((11, 4), -0.04)])
    def test_matrices_that_pay_once(self, rewards: np.ndarray) -> None:
        model = TabularMDP.from_matrices(
            aima_matrices(),
            rewards=rewards,
            terminal_rewards=EXITS,
            state_names=CELLS,
            action_names="NESW",
        )
        assert_aima(model)
        # As the book has it, the exits have utilities of their own.
        result = planners.solve(model, gamma=1)
        assert [result.value_of(cell) for cell in EXITS] == [-1.0, 1.0]

    def test_matrices_that_pay_on_entering(self) -> None:
        model = TabularMDP.from_matrices(
            aima_matrices(),
            rewards=np.full(11, -0.04),
            terminal_rewards=[EXITS.get(cell, 0.0) for cell in CELLS],
            terminal_paid="entering",
            state_names=CELLS,
            action_names="NESW",
        )
        assert model.num_added_states == 0
        assert_aima(model)
        listed = TabularMDP.from_function(
            lambda cell, way: None if cell in EXITS else drift(cell, way),
            states=CELLS,
            actions="NESW",
            rewards=True,
        )
        np.testing.assert_allclose(model.costs, listed.costs, rtol=1e-14)
        np.testing.assert_allclose(
            model.transitions.toarray(), listed.transitions.toarray(), rtol=1e-14
        )

    def test_batched(self) -> None:
        cells = np.array(CELLS)
        index = np.full((6, 5), -1)
        index[tuple(cells.T)] = np.arange(11)
        steps = np.array(list(STEPS.values()))

        def fn(states: np.ndarray, actions: np.ndarray) -> tuple[Any, ...]:
            ways = np.stack([actions, (actions + 1) % 4, (actions + 3) % 4], axis=1)
            to = index[tuple(np.moveaxis(cells[states][:, np.newaxis] + steps[ways], 2, 0))]
            to = np.where(to < 0, states[:, np.newaxis], to)
            pays = np.array([EXITS.get(cell, 0.0) for cell in CELLS])
            ended = np.isin(states, [CELLS.index(cell) for cell in EXITS])
            chances = np.where(ended[:, np.newaxis], 0.0, [[0.8, 0.1, 0.1]])
            return chances, to, -0.04 + pays[to]

        assert_aima(
            TabularMDP.from_batched_function(
                11, 4, fn, rewards=True, state_names=CELLS, action_names="NESW"
            )
        )

    def test_by_names_in_a_dict(self) -> None:
        P = {
            cell: {way: [(*out, False) for out in drift(cell, way)] for way in STEPS}
            if cell not in EXITS
            else {}
            for cell in CELLS
        }
        assert_aima(TabularMDP.from_gym_P(P, initial={(1, 1): 0.5, (3, 1): 0.5}))
        model = planners.as_model(P)
        assert model.state_names == tuple(CELLS)
        assert model.action_names == tuple("NESW")


def location(rent: float, back: float) -> tuple[np.ndarray, np.ndarray]:
    """Return how many cars of 0 to 20 there are the next morning, and how many are rented."""
    counts = np.arange(60)
    chances = [
        np.exp(counts * math.log(mean) - mean - np.array([math.lgamma(k + 1) for k in counts]))
        for mean in (rent, back)
    ]
    P, rented = np.zeros((21, 21)), np.zeros(21)
    for cars in range(21):
        for asked in counts:
            out = min(cars, asked)
            rented[cars] += chances[0][asked] * out
            for returned in counts:
                P[cars, min(20, cars - out + returned)] += chances[0][asked] * chances[1][returned]
    return P / P.sum(axis=1, keepdims=True), rented


class TestJack:
    """Sutton and Barto, Reinforcement Learning, example 4.2."""

    @pytest.fixture
    def model(self) -> TabularMDP:
        (first, rented), (second, other) = location(3, 3), location(4, 2)

        def fn(states: np.ndarray, actions: np.ndarray) -> tuple[Any, ...]:
            (a, b), moved = np.divmod(states, 21), actions - 5
            possible = (moved <= a) & (-moved <= b)
            a, b = np.clip(a - moved, 0, 20), np.clip(b + moved, 0, 20)
            chances = first[a][:, :, np.newaxis] * second[b][:, np.newaxis]
            rewards = np.where(possible, 10 * (rented[a] + other[b]) - 2 * abs(moved), -np.inf)
            following = np.broadcast_to(np.arange(441), (len(a), 441))
            return chances.reshape(len(a), 441), following, rewards

        return TabularMDP.from_batched_function(441, 11, fn, rewards=True)

    def test_the_books_policy(self, model: TabularMDP) -> None:
        assert model.transitions.nnz > 1_800_000
        result = planners.solve(model, gamma=0.9, tol=1e-9)
        moves = result.policy.reshape(21, 21) - 5
        # Figure 4.2: up to five cars one way, up to four the other.
        assert moves.max() == moves[20, 0] == 5
        assert moves.min() == moves[0, 20] == -4

    def test_values_by_hand(self, model: TabularMDP) -> None:
        """Value iteration over the night and the moves, with nothing of ours."""
        (first, rented), (second, other) = location(3, 3), location(4, 2)
        cars = np.arange(21)
        V = np.zeros((21, 21))
        for _ in range(300):
            after = 10 * (rented[:, np.newaxis] + other) + 0.9 * first @ V @ second.T
            V = np.full((21, 21), -np.inf)
            for moved in range(-5, 6):
                a, b = np.meshgrid(cars - moved, cars + moved, indexing="ij")
                possible = (a >= 0) & (b >= 0)
                worth = after[np.clip(a, 0, 20), np.clip(b, 0, 20)] - 2 * abs(moved)
                V = np.where(possible, np.maximum(V, worth), V)
        result = planners.solve(model, gamma=0.9, tol=1e-11)
        np.testing.assert_allclose(-result.values.reshape(21, 21), V, rtol=1e-9)

    def test_state_by_state(self, model: TabularMDP) -> None:
        """The same numbers in plain loops, for some states and actions."""
        (first, rented), (second, other) = location(3, 3), location(4, 2)
        for state, action in [(0, 5), (440, 10), (100, 3), (21, 6)]:
            (a, b), moved = divmod(state, 21), action - 5
            a, b = min(20, a - moved), min(20, b + moved)
            row = model.transitions[[state * 11 + action]].toarray()[0]
            expected = [first[a, i] * second[b, j] for i in range(21) for j in range(21)]
            np.testing.assert_allclose(row, expected, rtol=1e-12)
            reward = 10 * (rented[a] + other[b]) - 2 * abs(moved)
            assert model.rewards[state, action] == pytest.approx(reward, rel=1e-12)
        assert not model.action_mask[0, 6]


class TestTerminalRewards:
    CHAIN = np.array([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 0.0]]])

    @pytest.mark.parametrize(
        ("paid", "expected"),
        # Worked out by hand: 0.9 a step, and once more where the state itself pays.
        [
            ("once", [-1 - 0.9 + 0.81 * 10, -1 + 0.9 * 10, 10.0]),
            ("entering", [-1 - 0.9 + 0.9 * 10, -1 + 10, 0.0]),
        ],
    )
    @pytest.mark.parametrize("last", [np.zeros(3), [1.0, 0, 0], [0, 0, 1.0]])
    def test_values(self, paid: Any, expected: list[float], last: Any) -> None:
        P = self.CHAIN.copy()
        P[2, 0] = last  # which does not count
        for rewards in ([-1.0, -1.0, 7.0], [-1.0, -1.0, np.nan], [[-1.0], [-1.0], [-np.inf]]):
            model = TabularMDP.from_matrices(
                P, rewards=rewards, terminal_rewards=[0, 0, 10], terminal_paid=paid
            )
            values = planners.solve(model, gamma=0.9, tol=1e-12).values
            np.testing.assert_allclose(-values, expected, rtol=1e-10)
            costs = TabularMDP.from_matrices(
                P,
                costs=-np.asarray(rewards),
                terminal_costs={2: -10},
                terminal_paid=paid,
                terminal=[False, False, True],
            )
            assert content(costs) == content(model)
            assert model.initial[:3].tolist() == [0.5, 0.5, 0.0]

    def test_costs_of_outcomes(self) -> None:
        P = np.array([[[0.5, 0.25, 0.25]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
        prices = np.array([[[1.0, 2.0, 3.0]], [[0.0, 9.0, 0.0]], [[0.0, 0.0, 9.0]]])
        model = TabularMDP.from_matrices(
            P, costs=prices, terminal_costs=[0, 8, 0], terminal_paid="entering"
        )
        assert model.costs.tolist() == [[0.5 * 1 + 0.25 * (2 + 8) + 0.25 * 3], [0.0], [0.0]]
        assert model.outcome_costs is not None
        assert model.outcome_costs.tolist() == [1.0, 10.0, 3.0, 0.0, 0.0]
        once = TabularMDP.from_matrices(P, costs=prices, terminal_costs=[0, 8, 0])
        assert once.costs.tolist() == [[1.75], [8.0], [0.0], [0.0]]
        assert once.terminal.tolist() == [False, False, True, True]
        assert once.outcome_costs is not None
        assert once.outcome_costs.tolist() == [1.0, 2.0, 3.0, 8.0, 0.0, 0.0]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"terminal_rewards": [0, 1]}, r"terminal_rewards must have shape \(3,\), got \(2,\)"),
            ({"terminal_rewards": {"hall": 1}}, "terminal_rewards: there is no state 'hall'"),
            ({"terminal_rewards": {"exit": np.nan}}, "nan of state 2 = 'exit' must be finite"),
            ({"terminal_rewards": {"exit": "a"}}, "terminal_rewards must hold real numbers"),
            ({"terminal_costs": [0, 0, 1]}, "terminal_costs go with costs, .*terminal_rewards"),
            (
                {"terminal_rewards": [0, 0, 1], "terminal_costs": [0, 0, 1]},
                "exactly one of terminal_costs and terminal_rewards",
            ),
            (
                {"terminal_rewards": [0, 5, 0], "terminal": ["exit"]},
                "state 1 = 'b' has 5 and is not among the states of terminal=",
            ),
            ({"terminal_paid": "twice"}, "terminal_paid must be one of once, entering"),
        ],
    )
    def test_refused(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            TabularMDP.from_matrices(
                self.CHAIN,
                rewards=[-1.0, -1.0, 0.0],
                state_names=["a", "b", "exit"],
                **options,
            )

    def test_a_terminal_state_that_pays_hears_of_it(self) -> None:
        with pytest.raises(ValueError, match=r"reward 5; to have it once .*terminal_rewards="):
            TabularMDP.from_matrices(
                np.eye(2)[:, np.newaxis], rewards=[0.0, 5.0], terminal=[True, True]
            )


class TestUnavailable:
    @pytest.mark.parametrize("form", ["S", "SA", "SAS", "sparse"])
    def test_infinite_rewards_of_every_form(self, form: str) -> None:
        P = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
        rewards: Any = {
            "S": np.array([2.0, -np.inf]),
            "SA": np.array([[2.0, -np.inf], [0.0, 0.0]]),
            "SAS": np.array([[[7.0, 2.0], [-np.inf, 7.0]], [[7.0, 0.0], [7.0, 0.0]]]),
            "sparse": sp.csr_array([[0.0, 2.0], [-np.inf, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        }[form]
        model = TabularMDP.from_matrices(P, rewards=rewards, terminal=[False, True])
        expected = [[True, True], [True, True]] if form == "S" else [[True, False], [True, True]]
        assert model.action_mask.tolist() == expected
        assert model.rewards[0, 0] == 2.0
        assert model.terminal.tolist() == [False, True]

    def test_a_state_without_any(self) -> None:
        with pytest.raises(ValueError, match="state 1 = 'wall' has no available action"):
            TabularMDP.from_matrices(
                np.eye(2)[:, np.newaxis],
                rewards=[0.0, -np.inf],
                state_names=["hall", "wall"],
                terminal=[],
            )


class TestFunctions:
    def test_chances_of_the_first_state(self) -> None:
        def fn(state: str, action: str) -> Any:
            return [(1.0, state + "x", 1.0)] if len(state) < 3 else None

        model = TabularMDP.from_function(fn, start={"a": 0.25, "b": 0.75}, actions=["go"])
        assert model.state_names == ("a", "b", "ax", "bx", "axx", "bxx")
        assert model.initial.tolist() == [0.25, 0.75, 0, 0, 0, 0]
        assert model.terminal.tolist() == [False] * 4 + [True] * 2

    def test_outcomes_of_different_lengths(self) -> None:
        def fn(state: int, action: int) -> Any:
            return [(0.5, 1, 1.0), (0.5, 0, 2.0, True)] if state == 0 else None

        model = TabularMDP.from_function(2, 1, fn)
        assert model.costs.tolist() == [[1.5], [0.0], [0.0]]
        assert model.transitions.toarray()[0].tolist() == [0.0, 0.5, 0.5]

    @pytest.mark.filterwarnings("error")
    def test_names_in_warnings(self) -> None:
        with pytest.warns(UserWarning, match="state 1 = 'end' leads back only to itself, with a r"):
            TabularMDP.from_function(
                lambda s, a: [(1.0, "end", 1.0)],
                states=["start", "end"],
                actions=1,
                rewards=True,
            )

    def test_progress(self) -> None:
        seen: list[tuple[int, int]] = []
        TabularMDP.from_function(
            lambda s, a: [(1.0, s + 1, 1.0)] if s < 2999 else None,
            start=0,
            actions=1,
            progress=lambda done, known: seen.append((done, known)),
        )
        assert seen[-1] == (3000, 3000)
        assert len(seen) == 3
        assert all(done <= known for done, known in seen)

    def test_names_that_are_numbers_are_none(self) -> None:
        model = TabularMDP.from_function(
            lambda s, a: None if s == 2 else [(1.0, s + 1, 1.0)], start=0, actions=range(2)
        )
        assert model.state_names is None
        assert model.action_names is None
        odd = TabularMDP.from_function(
            lambda s, a: None if s == 2 else [(1.0, s + 1, 1.0)], start=1, actions=[1, 0]
        )
        assert odd.state_names == (1, 2)
        assert odd.action_names == (1, 0)

    def test_large_enough_for_several_blocks(self) -> None:
        size = 20_000

        def fn(state: tuple[int], action: str) -> Any:
            return [(0.5, ((state[0] + 1) % size,), 1.0), (0.5, state, 3.0)]

        names = [(s,) for s in range(size)]
        model = TabularMDP.from_function(fn, states=names, actions=["on"])
        explored = TabularMDP.from_function(fn, start=(0,), actions=lambda state: ["on"])
        steps = np.arange(size)

        def many(states: np.ndarray, actions: np.ndarray) -> tuple[Any, ...]:
            following = np.stack([(states + 1) % size, states], axis=1)
            return 0.5, following, np.broadcast_to([1.0, 3.0], following.shape)

        batched = TabularMDP.from_batched_function(size, 1, many)
        for found in (model, explored, batched):
            np.testing.assert_array_equal(found.transitions.indices[::2], (steps + 1) % size)
            np.testing.assert_array_equal(found.transitions.indices[1::2], steps)
            assert (found.transitions.data == 0.5).all()
            assert (found.costs == 2.0).all()
            assert found.outcome_costs is not None
            assert found.outcome_costs.tolist() == [1.0, 3.0] * size

    def test_costs_that_differ_only_in_a_later_block(self) -> None:
        size = 40_000

        def fn(state: int, action: int) -> Any:
            other = 3.0 if state == size - 1 else 1.0
            return [(0.5, 0, 1.0, False), (0.5, state, other, False)]

        model = TabularMDP.from_function(size, 1, fn)
        assert model.outcome_costs is not None
        assert model.outcome_costs.tolist() == [1.0] * (2 * size - 1) + [3.0]
        assert model.costs[-1, 0] == 2.0

    @pytest.mark.parametrize(
        ("fn", "options", "error", "message"),
        [
            (
                lambda s, a: [(1.0, "Exit", 0.0)],
                {},
                ValueError,
                "fn('hall', 'go') leads to state 'Exit', which is none of the states 'hall', "
                "'exit'; did you mean 'exit'?",
            ),
            (
                lambda s, a: [(1.0, ["hall"], 0.0)],
                {},
                ValueError,
                "fn('hall', 'go') must give outcomes (probability, next_state, cost)",
            ),
            (
                lambda s, a: [(1.0, "exit")],
                {"rewards": True},
                ValueError,
                "must give outcomes (probability, next_state, reward) or",
            ),
            (
                lambda s, a: [(0.5, "exit", 0.0)],
                {},
                ValueError,
                "state 0 = 'hall', action 0 = 'go': probabilities sum to 0.5, must sum to 1",
            ),
            (
                lambda s, a: [(1.5, "exit", 0.0), (-0.5, "hall", 0.0)],
                {},
                ValueError,
                "state 0 = 'hall', action 0 = 'go': probability -0.5 of state 0 = 'hall' must be",
            ),
            (
                lambda s, a: [(1.0, "exit", math.inf)],
                {"rewards": True},
                ValueError,
                "state 0 = 'hall', action 0 = 'go': reward inf must be finite",
            ),
            (lambda s, a: 3, {}, ValueError, "fn('hall', 'go') must give outcomes"),
            (lambda s, a: [3], {}, ValueError, "fn('hall', 'go') must give outcomes"),
            (lambda s, a: [{1, 2, 3}], {}, ValueError, "fn('hall', 'go') must give outcomes"),
            (lambda s, a: [{"p": 1, "s": 2, "c": 3}], {}, ValueError, "must give outcomes"),
            (lambda s, a: None, {"rewards": "yes"}, TypeError, "rewards must be True or False"),
            (lambda s, a: None, {"start": "hall"}, TypeError, "either states=, all of them, or"),
            (lambda s, a: None, {"states": None}, TypeError, "either states=, all of them, or"),
            (lambda s, a: None, {"actions": None}, TypeError, "from_function takes fn, actions="),
            (lambda s, a: None, {"states": []}, ValueError, "states must have one name at least"),
            (lambda s, a: None, {"states": ["a", "a"]}, ValueError, "states must differ"),
            (lambda s, a: None, {"states": [["a"]]}, TypeError, "write a tuple"),
            (lambda s, a: None, {"states": {"a", "b"}}, TypeError, "states must list names in"),
            (lambda s, a: None, {"states": 0}, ValueError, "num_states must be at least 1"),
            (lambda s, a: None, {"initial": "attic"}, ValueError, "there is no state 'attic'"),
            (lambda s, a: None, {"initial": {"hall": 2}}, ValueError, "chance of 'hall' must be"),
            (lambda s, a: None, {"initial": {"hall": 0.5}}, ValueError, "initial sums to 0.5"),
            (
                lambda s, a: None,
                {"actions": lambda s: ["go", "go"]},
                ValueError,
                "actions('hall') lists 'go' twice",
            ),
            (lambda s, a: None, {"actions": lambda s: 3}, TypeError, "actions('hall') must list"),
            (lambda s, a: None, {"actions": lambda s: [[]]}, TypeError, "must be hashable"),
            (lambda s, a: None, {"actions": lambda s: ()}, ValueError, "actions must give an act"),
            ("fn", {}, TypeError, "fn must be a function of state and action, got 'fn'"),
        ],
    )
    def test_refused(
        self, fn: Any, options: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        arguments: dict[str, Any] = {"states": ["hall", "exit"], "actions": ["go"], **options}
        with pytest.raises(error, match=re.escape(message)):
            TabularMDP.from_function(fn, **arguments)

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"start": 0, "max_states": 10}, ValueError, "more than max_states = 10 states"),
            ({"start": 0, "max_states": 0}, ValueError, "max_states must be at least 1"),
            ({"start": {}}, ValueError, "start must be a state, or chances"),
            ({"start": [0]}, TypeError, "start must be hashable .*write a tuple"),
            ({"start": 0, "initial": 0}, TypeError, "start says where episodes begin"),
            ({"start": {0: 0.5}, "max_states": 99}, ValueError, "initial sums to 0.5"),
        ],
    )
    def test_starts_that_are_refused(
        self, options: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        end = 20
        with pytest.raises(error, match=message):
            TabularMDP.from_function(
                lambda s, a: [(1.0, s + 1, 1.0)] if s < end else None, actions=1, **options
            )

    @pytest.mark.parametrize("outcome", [3, (1.0,), {1: "b"}, {1.0, 2.0, 3.0}, "b"])
    def test_outcomes_that_are_none(self, outcome: Any) -> None:
        with pytest.raises(ValueError, match=r"fn\('a', 'x'\) must give outcomes"):
            TabularMDP.from_function(lambda s, a: [outcome], start="a", actions=lambda s: ["x"])

    def test_more_than_memory_holds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("aggmaze.memory.available_memory", lambda: 10**6)
        monkeypatch.setattr("aggmaze.formats.outcomes._FIRST_CHECKED", 10)
        outcomes = [(0.25, s, 1.0, False) for s in range(4)]
        with pytest.raises(MemoryError, match="outcomes and more need"):
            TabularMDP.from_function(100_000, 1, lambda s, a: outcomes)

    @pytest.mark.parametrize("following", [{}, [], float("nan")])
    def test_states_that_are_none(self, following: Any) -> None:
        with pytest.raises((TypeError, ValueError), match="a next state of 'a'"):
            TabularMDP.from_function(lambda s, a: [(1.0, following, 0.0)], start="a", actions=1)

    def test_given_twice(self) -> None:
        with pytest.raises(TypeError, match="states and num_states are one"):
            TabularMDP.from_function(2, 1, lambda s, a: None, states=2)  # type: ignore[call-overload]


def stay(states: np.ndarray, actions: np.ndarray) -> tuple[Any, ...]:
    return 1.0, states, 0.0


class TestBatched:
    def test_one_outcome_each(self) -> None:
        model = TabularMDP.from_batched_function(
            4, 2, lambda s, a: (1.0, np.clip(s + 2 * a - 1, 0, 3), 1.0, (s + a) % 5 == 4)
        )
        assert model.num_added_states == 1
        assert model.transitions.indices.tolist() == [0, 1, 0, 2, 1, 3, 2, 4, 4, 4]
        assert model.costs[:4].tolist() == [[1.0, 1.0]] * 4

    def test_what_it_may_do_to_its_arguments(self) -> None:
        def fn(states: np.ndarray, actions: np.ndarray) -> tuple[Any, ...]:
            states += 1
            return 1.0, states % 3, 1.0, False

        model = TabularMDP.from_batched_function(3, 1, fn)
        assert model.transitions.indices.tolist() == [1, 2, 0]

    def test_widths_may_differ(self) -> None:
        def fn(states: np.ndarray, actions: np.ndarray) -> tuple[Any, ...]:
            width = 1 + int(states[0] > 0)
            following = np.repeat(states[:, np.newaxis], width, axis=1)
            return 1 / width, following, 1.0, False

        model = TabularMDP.from_batched_function(1000, 1, fn)
        counts = np.diff(model.transitions.indptr)
        assert set(counts.tolist()) == {1, 2}
        assert (counts[:200] == 1).all()

    def test_few_rows_at_a_time(self) -> None:
        sizes: list[int] = []

        def fn(states: np.ndarray, actions: np.ndarray) -> tuple[Any, ...]:
            sizes.append(len(states))
            following = np.zeros((len(states), 1000), dtype=int)
            return 1 / 1000, following, 1.0

        seen: list[tuple[int, int]] = []
        with pytest.warns(UserWarning, match=r"state 0 leads .* return terminated"):
            TabularMDP.from_batched_function(
                1500, 2, fn, progress=lambda *counts: seen.append(counts)
            )
        assert sum(sizes) == 3000
        assert max(sizes) <= 300
        assert seen[-1] == (1500, 1500)

    def test_more_than_memory_holds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("aggmaze.memory.available_memory", lambda: 10**6)
        calls: list[int] = []

        def fn(states: np.ndarray, actions: np.ndarray) -> tuple[Any, ...]:
            calls.append(len(states))
            return 0.25, np.tile(states[:, np.newaxis], 4), 1.0, False

        with pytest.raises(MemoryError, match="outcomes of 100,000 states need"):
            TabularMDP.from_batched_function(100_000, 1, fn)
        assert len(calls) == 1

    @pytest.mark.parametrize(
        ("fn", "message"),
        [
            (lambda s, a: 3, "fn of 4 states and actions must return .*got int"),
            (lambda s, a: (1.0, s), "must return .*got tuple of 2"),
            (lambda s, a: (1.0, s[:1], 0.0), r"next_states must have shape \(4, K\).*got \(1,\)"),
            (lambda s, a: (1.0, 3, 0.0), r"next_states must have shape .*got \(\)"),
            (lambda s, a: (1.0, s + 0.5, 0.0), r"fn at \(0, 0\) leads to state 0.5, which is not"),
            (lambda s, a: (1.0, s - 1, 0.0), r"fn at \(0, 0\) leads to state -1, which is not in"),
            (lambda s, a: (1.0, s > 0, 0.0), "next_states must hold real numbers, got dtype bool"),
            (lambda s, a: (1.0, ["a"] * 4, 0.0), "next_states must hold real numbers"),
            (lambda s, a: ([1.0] * 3, s, 0.0), r"probabilities must have shape \(4, 1\).*\(3,\)"),
            (lambda s, a: (1.0, s, np.zeros((4, 2))), r"costs must have shape .*got \(4, 2\)"),
            (lambda s, a: (1.0, s, 0.0, s), "terminated must hold booleans, got dtype int64"),
            (lambda s, a: (1.0, s, [[1], [2, 3]]), "costs must hold real numbers"),
            (lambda s, a: (0.5, s, 0.0), "state 0, action 0: probabilities sum to 0.5"),
            (lambda s, a: (-1.0, s, 0.0), "probability -1.0 of state 0 must be a finite"),
            (lambda s, a: (np.nan, s, 0.0), "probability nan of state 0 must be a finite"),
            (lambda s, a: (1.0, s, np.nan), "state 0, action 0: cost nan must be finite"),
            (lambda s, a: (1.0, s, -np.inf), "state 0, action 0: cost -inf must be finite"),
        ],
    )
    def test_refused(self, fn: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            TabularMDP.from_batched_function(2, 2, fn)

    def test_other_arguments(self) -> None:
        with pytest.raises(TypeError, match="fn must be a function of arrays"):
            TabularMDP.from_batched_function(2, 2, None)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="state_names must be 2 names, one each, got 1"):
            TabularMDP.from_batched_function(2, 2, stay, state_names=["a"])
        with pytest.raises(ValueError, match="num_states must be at least 1, got 0"):
            TabularMDP.from_batched_function(0, 2, stay)
        with pytest.raises(TypeError, match="rewards must be True or False"):
            TabularMDP.from_batched_function(2, 2, stay, rewards=1)  # type: ignore[arg-type]


class TestOneMatrix:
    P = sp.csr_array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])

    def test_its_order_must_be_told(self) -> None:
        with pytest.raises(ValueError, match=r"state by state \(s\*A \+ a\) or action by action"):
            planners.as_model((self.P, [1.0, 0.0]))
        by_state = TabularMDP.from_matrices(self.P, rewards=[1.0, 0.0], terminal=[])
        assert by_state.transitions.toarray().tolist() == self.P.toarray().tolist()
        by_action = TabularMDP.from_matrices(self.P, rewards=[1.0, 0.0], order="ass", terminal=[])
        # The rows of state 0 are 0 and 2, those of state 1 are 1 and 3.
        rows = self.P.toarray()[[0, 2, 1, 3]]
        assert by_action.transitions.toarray().tolist() == rows.tolist()

    def test_a_single_action(self) -> None:
        chain = planners.as_model((self.P[[0, 2]], [1.0, 0.0]))
        assert chain.transitions.toarray().tolist() == [[0.0, 1.0], [0.0, 1.0]]


class TestPairs:
    def test_quantecons_example(self) -> None:
        """QuantEcon's documentation of DiscreteDP: two states, three pairs."""
        options: dict[str, Any] = {
            "rewards": [5, 10, -1],
            "terminal": [],
            "state_names": ["low", "high"],
        }
        Q = [(0.5, 0.5), (0, 1), (0, 1)]
        model = TabularMDP.from_state_action_pairs([0, 0, 1], [0, 1, 0], Q, **options)
        result = planners.solve(model, gamma=0.95, tol=1e-12)
        # Its documentation: v = [-8.57142857, -20.], sigma = [0, 0].
        np.testing.assert_allclose(-result.values, [-8.57142857, -20.0], rtol=1e-8)
        assert result.policy.tolist() == [0, 0]
        named = TabularMDP.from_state_action_pairs(
            ["low", "low", "high"], ["a", "b", "a"], Q, action_names=["a", "b"], **options
        )
        assert content(named) == content(model)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"s_indices": [0, 0, 2]}, r"s_indices\[2\] = 2 must be in \[0, 2\)"),
            ({"a_indices": [0, -1, 0]}, r"a_indices\[1\] = -1 must not be negative"),
            ({"s_indices": [0, 0]}, r"s_indices must have shape \(3,\), one for each row"),
            ({"s_indices": [0.0, 0.0, 1.0]}, "s_indices must hold integers, got dtype float64"),
            ({"s_indices": ["x", "y", "z"]}, r"s_indices\[0\]: state 'x', which is none of the"),
            ({"a_indices": [0, 0, 0]}, "state 0 = 'p', action 0: listed more than once"),
            ({"Q": [[1.0], [1.0, 0], [1.0, 0]]}, "Q must be an array: its rows differ"),
            ({"Q": [1.0, 0.0]}, r"Q must have shape \(L, S\), a row for each pair, got \(2,\)"),
            ({"Q": [["a", "b"]] * 3}, "Q must hold real numbers"),
            ({"rewards": [1, 2]}, r"rewards must have shape \(3,\), got \(2,\)"),
            ({"rewards": [1, np.nan, 2]}, "state 0 = 'p', action 1: reward nan must be finite"),
            ({"rewards": None}, "exactly one of costs and rewards"),
            ({"num_actions": 1}, r"a_indices\[1\] = 1 must be in \[0, 1\)"),
            ({"num_actions": 0}, "num_actions must be at least 1"),
            ({"num_actions": 3, "action_names": "ab"}, "num_actions = 3 and action_names, 2"),
            ({"s_indices": [0, 0, 0], "a_indices": [0, 1, 2]}, "state 1 = 'q' has no available"),
        ],
    )
    def test_refused(self, changes: dict[str, Any], message: str) -> None:
        arguments: dict[str, Any] = {
            "s_indices": [0, 0, 1],
            "a_indices": [0, 1, 0],
            "Q": [[0.5, 0.5], [0, 1], [0, 1]],
            "rewards": [5, 10, -1],
            "state_names": "pq",
            "terminal": [],
        }
        with pytest.raises(ValueError, match=message):
            TabularMDP.from_state_action_pairs(**arguments | changes)


class TestNamedTables:
    @pytest.mark.parametrize(
        ("P", "message"),
        [
            ({"a": {"x": [(1.0, "b", 0.0, False)]}}, r"P\['a'\]\['x'\] leads to state 'b', which"),
            ({"a": 3}, r"P\['a'\] must map its actions to their outcomes, .*got 3"),
            ({"a": {"x": [(1.0, "a")]}}, r"P\['a'\]\['x'\] must give outcomes"),
            ({"a": {"x": [(0.5, "a", 0.0, False)]}}, "state 0 = 'a', action 0 = 'x': probab"),
        ],
    )
    def test_refused(self, P: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            TabularMDP.from_gym_P(P)

    def test_numbers_may_be_called(self) -> None:
        P: Any = {0: {0: [(1.0, 1, 1.0, False)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
        model = TabularMDP.from_gym_P(P, state_names=["in", "out"], initial="in")
        assert model.state_names == ("in", "out")
        assert model.initial.tolist() == [1.0, 0.0]
        named: Any = {"in": {"go": [(1.0, "out", 1.0, False)]}, "out": {}}
        assert content(TabularMDP.from_gym_P(named, initial="in")) == content(model)
        with pytest.raises(ValueError, match="leave state_names and action_names out"):
            TabularMDP.from_gym_P(named, state_names=["in", "out"])


def test_any_hashable_is_a_name() -> None:
    class Room:
        def __init__(self, doors: int) -> None:
            self.doors = doors

    rooms = [Room(2), Room(1), Room(0)]

    def fn(room: Room, action: Hashable) -> Any:
        return [(1.0, rooms[rooms.index(room) + 1], 1.0)] if room.doors else None

    model = TabularMDP.from_function(fn, states=rooms, actions=[None])
    assert model.state_names == tuple(rooms)
    assert model.action_names == (None,)
    assert planners.solve(model, gamma=1).value_of(rooms[0]) == 2.0
