"""The two model classes: they agree, they refuse what is no model, they read what others write."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import planners
from aggmaze import MoveMDP, TabularEnv, TabularMDP, recipes
from tests.strategies import (
    distributions,
    finite_costs,
    move_mdps,
    tabular_mdps,
    tabular_tables,
)

Outcomes = dict[tuple[int, float], float]
models = st.one_of(move_mdps(), tabular_mdps())


def move_outcomes(model: MoveMDP, state: int, action: int) -> Outcomes:
    """Return the probability of each (next state, cost), read off the class's docstring."""
    available = [k for k in range(model.num_actions) if model.move_costs[state, k] < np.inf]
    if action not in available:
        return {(state, model.bump_cost if available else 0.0): 1.0}
    outcomes: Outcomes = {}
    for move in available:
        if len(available) == 1:
            probability = 1.0
        elif move == action:
            probability = model.p
        else:
            probability = (1.0 - model.p) / (len(available) - 1)
        key = int(model.successors[state, move]), float(model.move_costs[state, move])
        outcomes[key] = outcomes.get(key, 0.0) + probability
    return outcomes


def table_outcomes(model: TabularMDP, state: int, action: int) -> Outcomes:
    """Return the probability of each (next state, cost) that a table lists."""
    row = state * model.num_actions + action
    outcomes: Outcomes = {}
    for entry in range(*model.transitions.indptr[row : row + 2]):
        costs = model.outcome_costs
        cost = model.costs[state, action] if costs is None else costs[entry]
        key = int(model.transitions.indices[entry]), float(cost)
        outcomes[key] = outcomes.get(key, 0.0) + float(model.transitions.data[entry])
    return outcomes


def assert_same_outcomes(first: Outcomes, second: Outcomes, atol: float = 1e-12) -> None:
    for key in first.keys() | second.keys():
        assert first.get(key, 0.0) == pytest.approx(second.get(key, 0.0), abs=atol), key


def pairs(model: MoveMDP | TabularMDP) -> Iterator[tuple[int, int]]:
    return itertools.product(range(model.num_states), range(model.num_actions))


class TestMovesAsTable:
    @given(model=move_mdps())
    def test_outcomes(self, model: MoveMDP) -> None:
        table = model.to_tabular().validate()
        for state, action in pairs(model):
            outcomes = move_outcomes(model, state, action)
            assert_same_outcomes(table_outcomes(table, state, action), outcomes)
            mean = sum(cost * probability for (_, cost), probability in outcomes.items())
            scale = max(1.0, *(abs(cost) for _, cost in outcomes))
            assert table.costs[state, action] == pytest.approx(mean, abs=1e-12 * scale)
        np.testing.assert_array_equal(table.terminal, model.terminal)
        np.testing.assert_array_equal(table.initial, model.initial)
        np.testing.assert_array_equal(table.action_mask, model.action_mask)

    @given(model=move_mdps())
    def test_what_can_be_chosen(self, model: MoveMDP) -> None:
        finite = np.isfinite(model.move_costs)
        np.testing.assert_array_equal(model.available, finite)
        np.testing.assert_array_equal(model.terminal, ~finite.any(axis=1))
        np.testing.assert_array_equal(model.action_mask, finite | model.terminal[:, np.newaxis])
        assert model.num_listed_states == model.num_states

    @given(
        model=move_mdps(), gamma=st.sampled_from([0.0, 0.5, 0.99]), seed=st.integers(0, 2**32 - 1)
    )
    def test_action_values(self, model: MoveMDP, gamma: float, seed: int) -> None:
        V = np.random.default_rng(seed).uniform(-1e3, 1e3, model.num_states)
        V[model.terminal] = 0.0
        expected = np.full(model.move_costs.shape, np.inf)
        for state, action in pairs(model):
            if model.action_mask[state, action]:
                outcomes = move_outcomes(model, state, action)
                expected[state, action] = sum(
                    probability * (cost + gamma * V[following])
                    for (following, cost), probability in outcomes.items()
                )
        atol = 1e-12 * 2e3
        for each in (model, model.to_tabular()):
            np.testing.assert_allclose(planners.q_values(each, V, gamma), expected, 0, atol)

    def test_one_available_move_always_happens(self) -> None:
        model = MoveMDP([[1, 0], [1, 1]], [[3.0, np.inf], [np.inf, np.inf]], p=0.1)
        assert table_outcomes(model.to_tabular(), 0, 0) == {(1, 3.0): 1.0}
        assert model.sample(0, 0, 0.99) == (1, 3.0, 1.0)

    def test_bumps_stay_and_cost_the_largest_move(self) -> None:
        costs = [[3.0, np.inf], [-1.0, 2.0]]
        assert MoveMDP([[1, 0], [0, 0]], costs).bump_cost == 3.0
        assert MoveMDP([[1, 0]] * 2, [[-3.0, np.inf], [np.inf, -1.0]]).bump_cost == 0.0
        model = MoveMDP([[1, 0], [0, 0]], costs, p=0.5, bump_cost=7.0)
        assert table_outcomes(model.to_tabular(), 0, 1) == {(0, 7.0): 1.0}
        assert model.sample(0, 1, 0.7) == (0, 7.0, 1.0)

    @given(model=move_mdps())
    def test_graph_of_successors(self, model: MoveMDP) -> None:
        expected = np.zeros((model.num_states, model.num_states), dtype=bool)
        for state, move in np.argwhere(model.available):
            expected[state, model.successors[state, move]] = True
        np.testing.assert_array_equal(model.successor_graph().toarray() != 0, expected)


@given(model=tabular_mdps())
def test_graph_of_successors_of_a_table(model: TabularMDP) -> None:
    expected = np.zeros((model.num_states, model.num_states), dtype=bool)
    for state, action in pairs(model):
        for (following, _), probability in table_outcomes(model, state, action).items():
            expected[state, following] |= model.action_mask[state, action] and probability > 0
    before = {name: array.copy() for name, array in arrays_of(model).items()}
    np.testing.assert_array_equal(model.successor_graph().toarray() != 0, expected)
    for name, array in arrays_of(model).items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


class TestRows:
    @given(model=models, data=st.data())
    def test_a_block_is_the_slice_of_the_whole(
        self, model: MoveMDP | TabularMDP, data: st.DataObject
    ) -> None:
        lo = data.draw(st.integers(0, model.num_states - 1))
        hi = data.draw(st.integers(lo + 1, model.num_states))
        self.assert_slice(model, lo, hi)

    @staticmethod
    def assert_slice(model: MoveMDP | TabularMDP, lo: int, hi: int) -> None:
        table, block, A = model.to_tabular(), model.rows(lo, hi), model.num_actions
        assert block.num_states == hi - lo
        assert block.transitions.shape == ((hi - lo) * A, model.num_states)
        np.testing.assert_array_equal(block.costs, table.costs[lo:hi])
        np.testing.assert_array_equal(block.action_mask, table.action_mask[lo:hi])
        first, last = table.transitions.indptr[[lo * A, hi * A]]
        np.testing.assert_array_equal(
            block.transitions.indptr, table.transitions.indptr[lo * A : hi * A + 1] - first
        )
        for name in ("indices", "data"):
            part = getattr(table.transitions, name)[first:last]
            np.testing.assert_array_equal(getattr(block.transitions, name), part)
        if table.outcome_costs is None:
            outcome_costs = np.repeat(block.costs.reshape(-1), np.diff(block.transitions.indptr))
        else:
            outcome_costs = table.outcome_costs[first:last]
        np.testing.assert_array_equal(block.outcome_costs, outcome_costs)

    @pytest.mark.parametrize(("lo", "hi"), [(-1, 1), (0, 3), (1, 1), (2, 1)])
    def test_other_blocks_are_refused(self, lo: int, hi: int) -> None:
        model = MoveMDP([[1], [0]], [[1.0], [1.0]])
        for each in (model, model.to_tabular()):
            with pytest.raises(ValueError, match=rf"rows\({lo}, {hi}\) must .* 2"):
                each.rows(lo, hi)


class TestSample:
    @given(model=models, data=st.data())
    def test_a_grid_of_uniforms_reproduces_the_table(
        self, model: MoveMDP | TabularMDP, data: st.DataObject
    ) -> None:
        table = model.to_tabular()
        state = data.draw(st.integers(0, model.num_states - 1))
        action = data.draw(st.integers(0, model.num_actions - 1))
        expected = table_outcomes(table, state, action)
        entries = int(np.diff(table.transitions.indptr)[state * model.num_actions + action])
        n = 400
        shares: Outcomes = {}
        for i in range(n):
            following, cost, probability = model.sample(state, action, (i + 0.5) / n)
            shares[following, cost] = shares.get((following, cost), 0.0) + 1 / n
            assert 0.0 < probability <= expected[following, cost] + 1e-12
        # Each outcome takes an interval of the uniforms, and each end of one is off by less than
        # a step of the grid.
        assert_same_outcomes(shares, expected, atol=(entries + 1) / n)

    @given(model=models)
    def test_the_ends_of_the_interval(self, model: MoveMDP | TabularMDP) -> None:
        table = model.to_tabular()
        for state, action in pairs(model):
            expected = table_outcomes(table, state, action)
            for uniform in (0.0, float(np.nextafter(1.0, 0.0))):
                following, cost, probability = model.sample(state, action, uniform)
                assert expected[following, cost] >= probability - 1e-12
                assert type(following) is int
                assert type(cost) is type(probability) is float

    @pytest.mark.parametrize("p", [1.0, 0.9, 0.2, 0.01])
    def test_the_chosen_move_happens_below_p(self, p: float) -> None:
        model = MoveMDP([[0, 1, 2, 3]] * 4, [[0.0, 1.0, 2.0, 3.0]] * 4, p=p)
        for u in (0.0, 0.5 * p, float(np.nextafter(p, 0.0))):
            assert model.sample(0, 2, u) == (2, 2.0, p)
        if p < 1:
            rest = [model.sample(0, 2, p + (1 - p) * (k + 0.5) / 3) for k in range(3)]
            assert rest == [(k, float(k), (1 - p) / 3) for k in (0, 1, 3)]

    def test_impossible_outcomes_never_happen(self) -> None:
        # State 0 lists all three states, but only state 1 can follow.
        data, indices = np.array([0.0, 1.0, 0.0, 1.0, 1.0]), np.array([0, 1, 2, 1, 2])
        row = sp.csr_array((data, indices, [0, 3, 4, 5]), shape=(3, 3))
        model = TabularMDP(row, [[1.0], [0.0], [0.0]]).validate()
        for u in (0.0, 0.5, float(np.nextafter(1.0, 0.0))):
            assert model.sample(0, 0, u) == (1, 1.0, 1.0)

    @pytest.mark.parametrize("uniform", [-0.1, 1.0, math.nan, None, "0.5"])
    def test_numbers_that_no_generator_draws(self, uniform: Any) -> None:
        model = MoveMDP([[1, 0], [0, 1]], [[1.0, np.inf], [1.0, 2.0]])
        for each in (model, model.to_tabular()):
            with pytest.raises(ValueError, match=rf"uniform must be in \[0, 1\), got {uniform!r}"):
                each.sample(0, 0, uniform)

    def test_a_masked_action_without_a_row_stays_in_place_at_the_largest_cost(self) -> None:
        P = np.zeros((2, 2, 2))
        P[:, 0, 1] = 1.0
        model = TabularMDP.from_matrices(
            P,
            costs=[[3.0, 9.0], [5.0, np.inf]],
            action_mask=[[True, False], [True, False]],
            terminal=[],
        )
        np.testing.assert_array_equal(model.transitions.sum(axis=1), np.ones(4))
        np.testing.assert_array_equal(model.costs, [[3.0, 5.0], [5.0, 5.0]])
        env = TabularEnv(model)
        for state in (0, 1):
            env.reset(seed=0, options={"state": state})
            following, reward, *_ = env.step(1)
            assert (following, reward) == (state, -5.0)

    def test_a_masked_action_without_a_row_costs_nothing_where_nothing_else_can_happen(
        self,
    ) -> None:
        transitions = sp.csr_array(([1.0, 1.0, 1.0], [1, 0, 1], [0, 1, 2, 3, 3]), shape=(4, 2))
        mask = [[True, True], [True, False]]
        model = TabularMDP(transitions, [[3.0, 2.0], [0.0, np.nan]], action_mask=mask).validate()
        assert model.terminal.tolist() == [False, True]
        assert table_outcomes(model, 1, 1) == {(1, 0.0): 1.0}
        declared = TabularMDP(
            transitions, model.costs, action_mask=mask, terminal=model.terminal
        ).validate()
        assert table_outcomes(declared, 1, 1) == {(1, 0.0): 1.0}
        # Where the step in place has a price the state is not terminal.
        costly = TabularMDP(transitions, [[3.0, 2.0], [1.0, np.nan]], action_mask=mask).validate()
        assert not costly.terminal.any()
        assert table_outcomes(costly, 1, 1) == {(1, 3.0): 1.0}

    @given(model=models)
    def test_a_step_in_place_that_never_pays(self, model: MoveMDP | TabularMDP) -> None:
        table = model.to_tabular()
        assert model.idle_cost >= max(0.0, table.costs[model.action_mask].max()) - 1e-9
        if isinstance(model, TabularMDP):
            assert model.idle_cost == max(0.0, model.costs[model.action_mask].max())
        elif not model.terminal.all():
            assert model.idle_cost == max(0.0, model.move_costs[model.available].max())

    def test_filling_rows_keeps_the_others_and_their_outcomes(self) -> None:
        # Two outcomes of one target in state 0; the middle action of each state has no row.
        transitions = sp.csr_array(
            ([0.25, 0.5, 0.25, 1.0, 1.0, 1.0], [1, 1, 0, 0, 1, 1], [0, 3, 3, 4, 5, 5, 6]),
            shape=(6, 2),
        )
        model = TabularMDP(
            transitions,
            [[2.0, 0.0, -7.0], [0.5, 0.0, 0.25]],
            action_mask=[[True, False, True]] * 2,
            outcome_costs=[0.0, 4.0, 0.0, -7.0, 0.5, 0.25],
        ).validate()
        for state, action, outcomes in (
            (0, 0, {(1, 0.0): 0.25, (1, 4.0): 0.5, (0, 0.0): 0.25}),
            (0, 1, {(0, 2.0): 1.0}),
            (0, 2, {(0, -7.0): 1.0}),
            (1, 0, {(1, 0.5): 1.0}),
            (1, 1, {(1, 2.0): 1.0}),
            (1, 2, {(1, 0.25): 1.0}),
        ):
            assert_same_outcomes(table_outcomes(model, state, action), outcomes)


def two_states(**changes: Any) -> dict[str, Any]:
    """Return tables of a model of two states and two actions, the second state terminal."""
    P = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    return {"P": P, "costs": np.array([[1.0, 2.0], [0.0, 0.0]])} | changes


def with_entry(table: NDArray[np.float64], place: Any, value: Any) -> NDArray[np.float64]:
    changed = table.copy()
    changed[place] = value
    return changed


P0, COSTS0 = two_states()["P"], two_states()["costs"]
TABULAR_FAULTS = {
    "row below 1": (
        {"P": with_entry(P0, (0, 1), [0.4, 0.5])},
        r"state 0, action 1: probabilities sum to 0\.9",
    ),
    "row above 1": (
        {"P": with_entry(P0, (0, 0), [0.6, 0.5])},
        r"state 0, action 0: probabilities sum to 1\.1",
    ),
    "row of zeros": (
        {"P": with_entry(P0, (1, 0), 0.0)},
        r"state 1, action 0: probabilities sum to 0\.0",
    ),
    "negative probability": (
        {"P": with_entry(P0, (0, 1), [-0.5, 1.5])},
        r"state 0, action 1: probability -0\.5 of state 0 must be",
    ),
    "NaN probability": (
        {"P": with_entry(P0, (1, 1), [np.nan, 1.0])},
        r"state 1, action 1: probability nan of state 0 must be",
    ),
    "infinite probability": (
        {"P": with_entry(P0, (0, 0), [0.0, np.inf])},
        r"state 0, action 0: probability inf of state 1 must be",
    ),
    "NaN cost": ({"costs": with_entry(COSTS0, (0, 1), np.nan)}, "state 0, action 1: cost nan must"),
    "infinite gain": (
        {"costs": with_entry(COSTS0, (0, 0), -np.inf)},
        "state 0, action 0: cost -inf must be finite",
    ),
    "stuck": ({"action_mask": [[True, True], [False, False]]}, "state 1 has no available action"),
    "terminal that leaves": ({"terminal": [True, True]}, "state 0 is declared terminal"),
    "terminal that costs": (
        {"costs": with_entry(COSTS0, (1, 1), 1.0), "terminal": [False, True]},
        "state 1 is declared terminal",
    ),
    "initial below 1": ({"initial": [0.5, 0.4]}, r"initial sums to 0\.9"),
    "negative initial": ({"initial": [1.5, -0.5]}, r"initial\[1\] = -0\.5 must be"),
    "NaN initial": ({"initial": [np.nan, 1.0]}, r"initial\[0\] = nan must be"),
}


class TestValidate:
    @pytest.mark.parametrize(("changes", "message"), TABULAR_FAULTS.values(), ids=TABULAR_FAULTS)
    def test_a_table_names_the_place(self, changes: dict[str, Any], message: str) -> None:
        tables = two_states(**changes)
        with pytest.raises(ValueError, match=message):
            TabularMDP.from_matrices(**tables)
        transitions = sp.csr_array(tables.pop("P").reshape(4, 2))
        model = TabularMDP(transitions, tables.pop("costs"), **tables)
        for _ in range(2):  # a refusal is not remembered as a success
            with pytest.raises(ValueError, match=message):
                model.validate()

    def test_the_first_of_several_is_named(self) -> None:
        P = P0.copy()
        P[0, 1] = P[1, 0] = P[1, 1] = 0.3
        with pytest.raises(ValueError, match=r"state 0, action 1: probabilities sum to 0\.6"):
            TabularMDP.from_matrices(P, costs=COSTS0)

    def test_rounding_is_no_fault(self) -> None:
        P = with_entry(P0, (0, 0), [0.1 + 0.2, 0.7 + 1e-12])
        assert TabularMDP.from_matrices(P, costs=COSTS0).num_states == 2

    def test_masked_actions_may_be_anything_but_a_broken_row(self) -> None:
        mask = [[True, False], [True, True]]
        costs = with_entry(COSTS0, (0, 1), np.inf)
        P = with_entry(P0, (0, 1), 0.0)
        # An empty row is filled, with a cost that never pays.
        assert TabularMDP.from_matrices(P, costs=costs, action_mask=mask).costs[0, 1] == 1.0
        with pytest.raises(ValueError, match=r"state 0, action 1: probabilities sum to 0\.5"):
            TabularMDP.from_matrices(with_entry(P, (0, 1, 0), 0.5), costs=costs, action_mask=mask)

    def test_outcome_costs(self) -> None:
        transitions = sp.csr_array(P0.reshape(4, 2))

        def model(outcome_costs: list[float]) -> TabularMDP:
            return TabularMDP(transitions, COSTS0, outcome_costs=outcome_costs)

        assert model([0.0, 2.0, 2.0, 0.0, 0.0]).validate()
        with pytest.raises(ValueError, match=r"state 0, action 0: cost 1\.0 is not the mean 1\.5"):
            model([1.0, 2.0, 2.0, 0.0, 0.0]).validate()
        with pytest.raises(ValueError, match="state 0, action 1: outcome cost nan must be finite"):
            model([0.0, 2.0, np.nan, 0.0, 0.0]).validate()
        with pytest.raises(ValueError, match=r"outcome_costs must have shape \(5,\), got \(4,\)"):
            model([0.0, 2.0, 2.0, 0.0])

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"move_costs": [[1.0, np.nan], [1.0, np.inf]]}, "state 0, move 1: cost nan must be"),
            ({"move_costs": [[1.0, 1.0], [-np.inf, 1.0]]}, "state 1, move 0: cost -inf must be"),
            ({"bump_cost": np.nan}, "bump_cost must be finite, got nan"),
            ({"bump_cost": np.inf}, "bump_cost must be finite, got inf"),
            ({"initial": [0.5, 0.4]}, r"initial sums to 0\.9"),
            ({"initial": [-0.5, 1.5]}, r"initial\[0\] = -0\.5 must be"),
            ({"initial": [0.0, np.inf]}, r"initial\[1\] = inf must be"),
        ],
    )
    def test_moves_name_the_place(self, changes: dict[str, Any], message: str) -> None:
        tables = {"successors": [[1, 0], [0, 1]], "move_costs": [[1.0, 1.0], [1.0, np.inf]]}
        model = MoveMDP(**(tables | changes))
        for _ in range(2):
            with pytest.raises(ValueError, match=message):
                model.validate()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"successors": [[1, 0], [0, 2]]}, r"state 1, move 1: successor 2 is not in \[0, 2\)"),
            ({"successors": [[1, -1], [0, 1]]}, "state 0, move 1: successor -1 is not"),
            ({"successors": [[1.0, 0.0], [0.0, 1.0]]}, "successors must hold integers"),
            ({"successors": [[1], [0]]}, r"shape \(2, 2\) of move_costs.*\(2, 1\)"),
            ({"move_costs": [1.0, 1.0]}, r"move_costs must have shape \(S, M\).*\(2,\)"),
            ({"initial": [1.0]}, r"initial must have shape \(2,\), got \(1,\)"),
            *(({"p": p}, rf"p must be in \(0, 1\], got {p}") for p in (0.0, -0.1, 1.5, math.nan)),
        ],
    )
    def test_what_is_no_table_of_moves(self, changes: dict[str, Any], message: str) -> None:
        tables = {"successors": [[1, 0], [0, 1]], "move_costs": [[1.0, 1.0], [1.0, 1.0]]}
        with pytest.raises(ValueError, match=message):
            MoveMDP(**(tables | changes))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"P": np.ones((3, 2))}, r"P must be .*\(S, A, S\).*\(3, 2\)"),
            ({"P": np.ones((2, 2, 3))}, r"P must be .*\(2, 2, 3\)"),
            ({"P": [sp.eye_array(2), sp.eye_array(3)]}, r"P\[1\] must have shape .*\(2, 2\)"),
            ({"costs": np.ones((2, 3))}, r"costs must have shape .*\(2, 2\).*got \(2, 3\)"),
            ({"costs": None}, "exactly one of costs and rewards"),
            ({"rewards": np.ones((2, 2))}, "exactly one of costs and rewards"),
            ({"costs": None, "rewards": np.ones(3)}, r"rewards must have shape .*got \(3,\)"),
            ({"action_mask": [True, False]}, r"action_mask must have shape \(2, 2\), got \(2,\)"),
            ({"action_mask": [[2, 1], [1, 1]]}, "action_mask must hold booleans"),
            ({"terminal": [True]}, r"terminal must have shape \(2,\), got \(1,\)"),
            ({"terminal": [0.5, 0.5]}, "terminal must hold booleans"),
            ({"terminal": [0.0, 1.0]}, "terminal must hold booleans"),
            ({"initial": [[1.0, 0.0]]}, r"initial must have shape \(2,\), got \(1, 2\)"),
            ({"initial": ["a", "b"]}, "initial must hold real numbers"),
        ],
    )
    def test_what_are_no_matrices(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            TabularMDP.from_matrices(**two_states(**changes))


class TestFromMatrices:
    @given(tables=tabular_tables())
    def test_dense_and_sparse_agree(self, tables: dict[str, Any]) -> None:
        P = tables.pop("P")
        dense = TabularMDP.from_matrices(P, **tables)
        np.testing.assert_array_equal(dense.transitions.toarray(), P.reshape(-1, P.shape[2]))
        for make in (sp.csr_array, sp.csc_matrix, sp.coo_array):
            matrices = [make(P[:, action]) for action in range(P.shape[1])]
            sparse = TabularMDP.from_matrices(matrices, **tables)
            assert (sparse.transitions != dense.transitions).nnz == 0
            for name in ("costs", "action_mask", "terminal", "initial"):
                np.testing.assert_array_equal(getattr(sparse, name), getattr(dense, name))

    @given(tables=tabular_tables())
    def test_rewards_are_negative_costs(self, tables: dict[str, Any]) -> None:
        costs = tables.pop("costs")
        from_costs = TabularMDP.from_matrices(costs=costs, **tables)
        from_rewards = TabularMDP.from_matrices(rewards=-costs, **tables)
        np.testing.assert_array_equal(from_costs.costs, costs)
        np.testing.assert_array_equal(from_costs.rewards, -costs)
        np.testing.assert_array_equal(from_rewards.costs, costs)
        np.testing.assert_array_equal(from_rewards.terminal, from_costs.terminal)

    def test_terminal_and_initial_by_default(self) -> None:
        P = np.zeros((4, 1, 4))
        P[[0, 1, 2, 3], 0, [1, 2, 2, 3]] = 1.0
        with pytest.warns(UserWarning, match="^state 3 leads back only to itself, with a cost"):
            model = TabularMDP.from_matrices(P, costs=[[1.0], [1.0], [0.0], [0.5]])
        assert model.terminal.tolist() == [False, False, True, False]
        assert model.initial == pytest.approx([1 / 3, 1 / 3, 0.0, 1 / 3])
        everywhere = TabularMDP.from_matrices(np.eye(2)[:, np.newaxis], costs=np.zeros((2, 1)))
        assert everywhere.terminal.all()
        assert everywhere.initial.tolist() == [0.5, 0.5]


def arrays_of(model: MoveMDP | TabularMDP) -> dict[str, NDArray[Any]]:
    """Return every array of a model by name, those that it computes when asked among them."""
    if isinstance(model, TabularMDP):
        names = ["costs", "action_mask", "terminal", "initial", "outcome_costs"]
        matrix = model.transitions
        arrays = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    else:
        names = ["successors", "move_costs", "initial", "available", "terminal"]
        arrays = dict(zip(("chosen", "every"), model.slip_weights, strict=True))
    arrays |= {name: getattr(model, name) for name in names}
    return {name: array for name, array in arrays.items() if array is not None}


class TestImmutable:
    @given(model=models)
    def test_arrays_are_read_only(self, model: MoveMDP | TabularMDP) -> None:
        for name, array in arrays_of(model).items():
            assert not array.flags.writeable, name
        with pytest.raises(AttributeError):
            model.initial = model.initial

    @given(model=models)
    def test_what_is_computed_afresh_is_no_way_in(self, model: MoveMDP | TabularMDP) -> None:
        before = {name: array.copy() for name, array in arrays_of(model).items()}
        fresh = [model.successor_graph().data]
        block = model.rows(0, model.num_states)
        fresh += [block.costs, block.action_mask, block.outcome_costs, block.transitions.data]
        fresh += [block.transitions.indices, model.action_mask]
        for array in fresh:
            if array.flags.writeable:
                array[...] = 0
        for name, array in arrays_of(model).items():
            np.testing.assert_array_equal(array, before[name], err_msg=name)

    @given(model=models)
    def test_copies_share_the_arrays(self, model: MoveMDP | TabularMDP) -> None:
        copied = copy.deepcopy({"model": model})["model"]
        arrays = arrays_of(copied)
        for name, array in arrays_of(model).items():
            assert np.shares_memory(array, arrays[name]) or array.size == 0, name

    @given(model=models)
    def test_pickling(self, model: MoveMDP | TabularMDP) -> None:
        expected = arrays_of(model)
        loaded = pickle.loads(pickle.dumps(model.validate()))
        arrays = arrays_of(loaded)
        assert type(loaded) is type(model)
        assert arrays.keys() == expected.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, expected[name], err_msg=name)
            assert array.dtype == expected[name].dtype
            assert not array.flags.writeable, name
        assert loaded.validate() is loaded
        for state, action in pairs(model):
            assert loaded.sample(state, action, 0.3) == model.sample(state, action, 0.3)

    @given(tables=tabular_tables())
    def test_what_is_passed_in_is_left_alone(self, tables: dict[str, Any]) -> None:
        P = tables["P"]
        sparse = sp.csr_matrix(P.reshape(-1, P.shape[2]))
        others = {name: value for name, value in tables.items() if name != "P"}
        passed = [*tables.values(), sparse.data, sparse.indices, sparse.indptr]
        before = copy.deepcopy(passed)
        for model in (
            TabularMDP.from_matrices(**tables),
            TabularMDP(sparse, others["costs"], action_mask=tables["action_mask"]),
        ):
            model.validate().scaled(2.0)
            model.to_tabular().sample(0, 0, 0.5)
            planners.q_values(model, np.zeros(model.num_states), 0.5)
        for array, old in zip(passed, before, strict=True):
            np.testing.assert_array_equal(array, old)
            assert array.flags.writeable, "the caller's array was locked"

    @given(model=move_mdps())
    def test_moves_passed_in_are_left_alone(self, model: MoveMDP) -> None:
        passed = [model.successors.copy(), model.move_costs.copy(), model.initial.copy()]
        before = copy.deepcopy(passed)
        again = MoveMDP(passed[0], passed[1], p=model.p, initial=passed[2])
        again.validate().to_tabular()
        again.successor_graph()
        again.scaled(3.0)
        planners.q_values(again, np.zeros(again.num_states), 0.5)
        for array, old in zip(passed, before, strict=True):
            np.testing.assert_array_equal(array, old)
            assert array.flags.writeable, "the caller's array was locked"


class TestOwnership:
    """A model is what it was when it was made, whatever becomes of the arrays it was made from."""

    def ruin(self, *arrays: Any) -> None:
        for array in arrays:
            array[...] = np.nan if array.dtype.kind == "f" else 1

    def check(self, make: Callable[[], MoveMDP | TabularMDP], *passed: NDArray[Any]) -> None:
        """Nothing of what is made shares memory with what was passed, or changes with it."""
        model = make().validate()
        before = {name: array.copy() for name, array in arrays_of(model).items()}
        values = planners.solve(model, gamma=0.9).values
        self.ruin(*passed)
        assert model.validate() is model
        for name, array in arrays_of(model).items():
            np.testing.assert_array_equal(array, before[name], err_msg=name)
            assert not any(np.shares_memory(array, old) for old in passed), name
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        np.testing.assert_array_equal(planners.solve(model, gamma=0.9).values, values)

    @pytest.mark.parametrize("dtype", [np.int32, np.int64])
    def test_moves(self, dtype: Any) -> None:
        successors = np.array([[1, 0], [0, 1], [2, 2]], dtype=dtype)
        costs = np.array([[1.0, np.inf], [1.0, 2.0], [np.inf, np.inf]])
        initial = np.array([0.5, 0.5, 0.0])
        self.check(
            lambda: MoveMDP(successors, costs, p=0.9, initial=initial), successors, costs, initial
        )
        views = [array.view() for array in (successors, costs, initial)]
        for view in views:
            view.flags.writeable = False  # but what it is a view of can be written to
        successors[...], costs[...], initial[...] = 0, 1.0, 1 / 3
        self.check(
            lambda: MoveMDP(views[0], views[1], p=0.9, initial=views[2]), successors, costs, initial
        )

    @pytest.mark.parametrize("index", [np.int32, np.int64])
    @pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
    def test_tables(self, make: Any, index: Any) -> None:
        transitions = make(sp.csr_array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))
        others = {
            "costs": np.array([[1.5, 2.0], [3.0, 4.0]]),
            "action_mask": np.array([[True, True], [True, True]]),
            "terminal": np.array([False, False]),
            "initial": np.array([0.5, 0.5]),
            "outcome_costs": np.array([1.0, 2.0, 2.0, 3.0, 4.0]),
        }
        places = [name for name in ("row", "col", "indices", "indptr") if name in vars(transitions)]
        for name in places:
            setattr(transitions, name, getattr(transitions, name).astype(index))
        parts = [transitions.data, *(getattr(transitions, name) for name in places)]
        self.check(lambda: TabularMDP(transitions, **others), *parts, *others.values())

    def test_readers(self) -> None:
        P, R = np.array([[[0.5, 0.5], [1.0, 0.0]]]), np.array([[1.0], [2.0]])
        terminal, initial = np.zeros(2, dtype=bool), np.array([0.5, 0.5])
        passed = P, R, terminal, initial
        before = copy.deepcopy(passed)
        kept: dict[str, Any] = {"terminal": terminal, "initial": initial}
        csr = sp.csr_array(P[0])
        parts = csr.data, csr.indices, csr.indptr
        for make in (
            lambda: TabularMDP.from_matrices(P, rewards=R, order="ass", **kept),
            lambda: TabularMDP.from_matrices(P, costs=R, order="ass", **kept),
            lambda: TabularMDP.from_mdptoolbox(P, R, **kept),
            lambda: TabularMDP.from_mdptoolbox([csr], [P[0]], **kept),
            lambda: TabularMDP.from_mdptoolbox([csr], R[:, 0], **kept),
        ):
            self.check(make, *passed, *parts)
            for array, old in zip(passed, before, strict=True):
                array[...] = old
            parts[0][...], parts[1][...], parts[2][...] = [0.5, 0.5, 1.0], [0, 1, 0], [0, 2, 3]

    @given(model=models)
    def test_what_nobody_can_write_to_is_shared(self, model: MoveMDP | TabularMDP) -> None:
        if isinstance(model, MoveMDP):
            same: MoveMDP | TabularMDP = MoveMDP(
                model.successors, model.move_costs, p=model.p, initial=model.initial
            )
        else:
            same = TabularMDP(
                model.transitions,
                model.costs,
                action_mask=model.action_mask,
                terminal=model.terminal,
                initial=model.initial,
                outcome_costs=model.outcome_costs,
            )
        computed = {"available", "chosen", "every"}
        if isinstance(model, MoveMDP):
            computed.add("terminal")
        costs = {"costs", "outcome_costs", "move_costs"}
        for other, new in ((same, computed), (model.scaled(2.0), computed | costs)):
            for name, array in arrays_of(other).items():
                if name not in new and array.size:
                    assert np.shares_memory(array, arrays_of(model)[name]), name

    @pytest.mark.parametrize("env_id", ["StandardMaze-v0", "TerrainMaze-v0", "NDMaze-v0"])
    def test_a_maze_is_not_copied(self, env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
        passed: list[Any] = []

        def keep(successors: Any, costs: Any, **others: Any) -> MoveMDP:
            passed.extend((successors, costs))
            return MoveMDP(successors, costs, **others)

        monkeypatch.setattr(recipes, "MoveMDP", keep)
        model = gym.make(env_id, p=0.9).unwrapped.transition_model()  # type: ignore[attr-defined]
        assert model.successors is passed[0]
        assert model.move_costs is passed[1]


class TestScaled:
    @given(model=models, factor=st.sampled_from([0.5, 4.0, 1e-3, 1e6]))
    def test_every_cost(self, model: MoveMDP | TabularMDP, factor: float) -> None:
        scaled = model.scaled(factor).validate()
        table, reference = scaled.to_tabular(), model.to_tabular()
        for state, action in pairs(model):
            expected = {
                (following, factor * cost): probability
                for (following, cost), probability in table_outcomes(
                    reference, state, action
                ).items()
            }
            assert_same_outcomes(table_outcomes(table, state, action), expected)
        # Relative to the outcomes: a mean of costs of both signs may cancel.
        largest = factor * np.abs(reference.costs).max()
        if reference.outcome_costs is not None:
            largest = max(largest, factor * np.abs(reference.outcome_costs).max())
        np.testing.assert_allclose(
            table.costs, factor * reference.costs, rtol=1e-12, atol=1e-15 * largest
        )
        np.testing.assert_array_equal(table.terminal, reference.terminal)
        np.testing.assert_array_equal(table.initial, reference.initial)
        np.testing.assert_array_equal(table.action_mask, reference.action_mask)

    def test_costs_that_overflow_are_refused(self) -> None:
        moves = MoveMDP([[1, 0], [0, 1]], [[1.0, np.inf], [1.0, -2e300]])
        with pytest.raises(
            ValueError,
            match=r"^state 1, move 1: cost -2e\+300 times factor 10000000000\.0 is too large for",
        ):
            moves.scaled(1e10)
        assert moves.scaled(4.0).validate().move_costs.tolist() == [[4.0, np.inf], [4.0, -8e300]]
        bump = MoveMDP([[1], [0]], [[1.0], [np.inf]], bump_cost=1e300)
        with pytest.raises(ValueError, match=r"^bump_cost 1e\+300 times factor 10000000000\.0 is"):
            bump.scaled(np.float64(1e10))
        # 1e300 on average; one of its outcomes costs more than that.
        matrix = sp.csr_array([[0.5, 0.5], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
        table = TabularMDP(
            matrix,
            [[1e300, 1.0], [0.0, 0.0]],
            outcome_costs=[0.0, 2e300, 1.0, 0.0, 0.0],
        ).validate()
        for factor, cost in ((1e8, r"2e\+300"), (2e8, r"1e\+300")):
            with pytest.raises(ValueError, match=f"^state 0, action 0: cost {cost} times factor"):
                table.scaled(factor)

    @pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf])
    def test_factors_that_are_not_positive_are_refused(self, factor: float) -> None:
        model = MoveMDP([[1, 0], [0, 1]], [[1.0, np.inf], [1.0, 2.0]])
        for each in (model, model.to_tabular()):
            with pytest.raises(ValueError, match=f"factor must be .*{factor}"):
                each.scaled(factor)


Table = Any  # a toy-text environment's P
TOY_TEXT = {
    "FrozenLake slippery": ("FrozenLake-v1", {"is_slippery": True}, 0),
    "FrozenLake": ("FrozenLake-v1", {"is_slippery": False}, 0),
    "FrozenLake 8x8": ("FrozenLake-v1", {"map_name": "8x8"}, 0),
    "CliffWalking": ("CliffWalking-v1", {}, 1),
    "CliffWalking slippery": ("CliffWalkingSlippery-v1", {}, 1),
    "Taxi": ("Taxi-v4", {}, 1),
    "Taxi in the rain": ("Taxi-v4", {"is_rainy": True}, 1),
}


def read_p(P: Table) -> tuple[dict[tuple[int, int], Outcomes], dict[tuple[int, int], float]]:
    """Read a toy-text table in plain Python: outcomes with costs, and expected costs.

    A state is absorbing if all that can happen in it is to stay, for nothing; what terminates
    elsewhere leads to an additional state.
    """
    absorbing = {
        state
        for state in range(len(P))
        if all(
            following == state and reward == 0
            for outcomes in P[state].values()
            for _, following, reward, _ in outcomes
        )
    }
    outcomes: dict[tuple[int, int], Outcomes] = {}
    costs: dict[tuple[int, int], float] = {}
    for state, action in itertools.product(range(len(P)), range(len(P[0]))):
        row: Outcomes = {}
        for probability, following, reward, terminated in P[state][action]:
            end = len(P) if terminated and following not in absorbing else int(following)
            row[end, -float(reward)] = row.get((end, -float(reward)), 0.0) + probability
        outcomes[state, action] = row
        costs[state, action] = -sum(
            probability * reward for probability, _, reward, _ in P[state][action]
        )
    return outcomes, costs


class TestFromGymP:
    @pytest.mark.parametrize(("env_id", "kwargs", "added"), TOY_TEXT.values(), ids=TOY_TEXT)
    def test_toy_text(self, env_id: str, kwargs: dict[str, Any], added: int) -> None:
        env = gym.make(env_id, **kwargs).unwrapped
        before = copy.deepcopy(env.P)
        model = TabularMDP.from_gym_P(env.P, initial=env.initial_state_distrib)
        assert before == env.P, "the table changed"
        num_states = len(env.P)
        assert model.num_added_states == added
        assert model.num_states == num_states + added
        assert model.num_listed_states == num_states
        assert model.num_actions == env.action_space.n
        expected, costs = read_p(env.P)
        for state, action in expected:
            assert_same_outcomes(
                table_outcomes(model, state, action), expected[state, action], 1e-15
            )
            assert model.costs[state, action] == pytest.approx(costs[state, action], abs=1e-12)
        if added:
            assert model.terminal[num_states]
            for action in range(model.num_actions):
                assert table_outcomes(model, num_states, action) == {(num_states, 0.0): 1.0}
        np.testing.assert_array_equal(model.initial[:num_states], env.initial_state_distrib)
        assert model.action_mask.all()

    @pytest.mark.parametrize(("env_id", "kwargs", "added"), TOY_TEXT.values(), ids=TOY_TEXT)
    def test_as_model_reads_the_same(self, env_id: str, kwargs: dict[str, Any], added: int) -> None:
        env = gym.make(env_id, **kwargs)
        model = planners.as_model(env)
        direct = TabularMDP.from_gym_P(env.unwrapped.P)
        assert isinstance(model, TabularMDP)
        assert (model.transitions != direct.transitions).nnz == 0
        np.testing.assert_array_equal(model.costs, direct.costs)
        np.testing.assert_array_equal(
            model.initial[: len(env.unwrapped.P)], env.unwrapped.initial_state_distrib
        )

    def test_where_no_start_is_given_the_added_state_is_none(self) -> None:
        P = {0: {0: [(1.0, 1, 1.0, False)]}, 1: {0: [(1.0, 0, 1.0, True)]}}
        model = TabularMDP.from_gym_P(P)
        assert model.num_added_states == 1
        assert model.initial.tolist() == [0.5, 0.5, 0.0]

    def test_outcomes_of_one_target_are_kept_apart(self) -> None:
        P = [[[(0.25, 1, 8.0, False), (0.25, 1, -4.0, False), (0.5, 0, 0.0, False)]]]
        P += [[[(1.0, 1, 0.0, True)]]]
        model = TabularMDP.from_gym_P(P)
        assert model.num_added_states == 0
        assert table_outcomes(model, 0, 0) == {(1, -8.0): 0.25, (1, 4.0): 0.25, (0, 0.0): 0.5}
        assert model.costs[0, 0] == -1.0
        drawn = [model.sample(0, 0, u) for u in (0.1, 0.3, 0.8)]
        assert drawn == [(1, -8.0, 0.25), (1, 4.0, 0.25), (0, 0.0, 0.5)]

    @given(data=st.data())
    def test_any_table(self, data: st.DataObject) -> None:
        num_states, num_actions = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
        P = {}
        for state in range(num_states):
            P[state] = {}
            for action in range(num_actions):
                probabilities = data.draw(distributions(data.draw(st.integers(1, 4))))
                P[state][action] = [
                    (
                        float(probability),
                        data.draw(st.integers(0, num_states - 1)),
                        data.draw(finite_costs),
                        data.draw(st.booleans()),
                    )
                    for probability in probabilities
                ]
        expected, costs = read_p(P)
        before = copy.deepcopy(P)
        model = TabularMDP.from_gym_P(P)
        assert before == P
        ends = any((num_states, cost) in row for row in expected.values() for _, cost in row)
        assert model.num_added_states == int(ends)
        for state, action in expected:
            assert_same_outcomes(table_outcomes(model, state, action), expected[state, action])
            assert model.costs[state, action] == pytest.approx(costs[state, action], abs=1e-9)

    @staticmethod
    def faulty(change: Callable[[Table], None]) -> Table:
        P = {
            state: {action: [(0.5, 1, -1.0, False), (0.5, 2, 0.0, True)] for action in range(2)}
            for state in range(2)
        }
        P[2] = {action: [(1.0, 2, 0.0, True)] for action in range(2)}
        change(P)
        return P

    @pytest.mark.parametrize(
        ("outcomes", "message"),
        [
            ([(0.4, 1, -1.0, False), (0.5, 2, 0.0, True)], r"sum to 0\.9, must sum to 1"),
            ([], r"sum to 0\.0, must sum to 1"),
            ([(-0.5, 1, 0.0, False), (1.5, 2, 0.0, True)], r"probability -0\.5"),
            ([(math.nan, 1, 0.0, False)], "probability nan"),
            ([(1.0, 1, math.nan, False)], "reward nan must be finite"),
            ([(1.0, 1, math.inf, False)], "reward inf must be finite"),
            ([(1.0, 3, 0.0, False)], r"leads to state 3, which is not in \[0, 3\)"),
            ([(1.0, -1, 0.0, False)], "leads to state -1"),
            ([(1.0, 1.5, 0.0, False)], r"leads to state 1\.5"),
            ([(1.0, math.nan, 0.0, False)], "leads to state nan"),
            ([(1.0, math.inf, 0.0, False)], "leads to state inf"),
            ([(1.0, 1, 0.0)], r"\(probability, next_state, reward, terminated\)"),
            ([(1.0, 1, 0.0, False, {})], r"\(probability, next_state, reward, terminated\)"),
            ([(1.0, "1a", 0.0, False)], r"\(probability, next_state, reward, terminated\)"),
            ([1.0, 1, 0.0, False], r"\(probability, next_state, reward, terminated\)"),
        ],
    )
    def test_faulty_rows_are_named(self, outcomes: Any, message: str) -> None:
        place = r"(P\[1\]\[0\]|state 1, action 0)"

        def change(P: Table) -> None:
            P[1][0] = outcomes

        with pytest.raises(ValueError, match=rf"{place}.*{message}"):
            TabularMDP.from_gym_P(self.faulty(change))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda P: P[1].pop(1), r"P\[1\] .*1 action"),
            (lambda P: P[1].pop(0), r"P\[1\] .*1 action"),
            (lambda P: P[1].update({2: P[1].pop(0)}), r"P\[1\] is missing"),
            (lambda P: P[2].update({2: P[0][0]}), r"P\[2\] .*3 actions"),
            (lambda P: P.pop(1), r"P\[1\] is missing"),
            (lambda P: P.pop(0), r"P\[0\] is missing"),
            (lambda P: P.clear(), "P.*state"),
            (lambda P: [row.clear() for row in P.values()], "P.*action"),
        ],
        ids=[
            "missing last action",
            "missing first action",
            "renamed action",
            "additional action",
            "missing state",
            "missing first state",
            "no states",
            "no actions",
        ],
    )
    def test_missing_parts_are_named(self, change: Callable[[Table], Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            TabularMDP.from_gym_P(self.faulty(change))


@settings(max_examples=30)
@given(model=move_mdps())
def test_planning_sees_one_model_in_both_forms(model: MoveMDP) -> None:
    assume(not model.terminal.all())
    moves, table = (
        planners.solve(each, gamma=0.8, tol=1e-9) for each in (model, model.to_tabular())
    )
    np.testing.assert_allclose(moves.values, table.values, rtol=0, atol=moves.bound + table.bound)
