"""What holds for every reader of models: errors in the user's own terms, rounding, perpetuities."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import planners
from aggmaze import MoveMDP, TabularMDP
from tests.aggmaze.formats.test_formats import DiscreteDP

Reader = Callable[..., TabularMDP]
INF = np.inf


def matrices(row: list[float], price: float) -> tuple[Any, Any]:
    """Return P (S, A, S) and prices (S, A): state 0 does what is given, state 1 leads back."""
    return np.array([[row], [[1.0, 0.0]]]), np.array([[price], [1.0]])


def in_pairs(row: list[float], price: float) -> DiscreteDP:
    P, R = matrices(row, price)
    return DiscreteDP(R[:, 0], sp.csr_matrix(P[:, 0]), 0.9, np.arange(2), np.zeros(2, int))


def outcomes(row: list[float], price: float) -> dict[int, Any]:
    """Return the same in outcomes; those that lead to state 1, and the way back, terminate.

    Neither state is absorbing, so that the reader adds one that is.
    """
    return {
        0: {0: [(row[0], 0, price, False), (row[1], 1, price, True)]},
        1: {0: [(1.0, 0, 1.0, True)]},
    }


def from_outcomes(row: list[float], price: float, **others: Any) -> TabularMDP:
    table = outcomes(row, price)
    return TabularMDP.from_function(2, 1, lambda state, action: table[state][action], **others)


# By name: what reads two states, where the first has the given row and price, and other arguments.
COSTS: dict[str, Reader] = {
    "costs": lambda row, price, **others: TabularMDP.from_matrices(
        matrices(row, price)[0], costs=matrices(row, price)[1], **others
    ),
    "function": from_outcomes,
}
REWARDS: dict[str, Reader] = {
    "rewards": lambda row, price, **others: TabularMDP.from_matrices(
        matrices(row, price)[0], rewards=matrices(row, price)[1], **others
    ),
    "rewards of outcomes": lambda row, price, **others: TabularMDP.from_matrices(
        [sp.csr_array(matrices(row, price)[0][:, 0])],
        rewards=[np.full((2, 2), price)],
        **others,
    ),
    "MDPtoolbox": lambda row, price, **others: TabularMDP.from_mdptoolbox(
        matrices(row, price)[0].swapaxes(0, 1), matrices(row, price)[1], **others
    ),
    "QuantEcon": lambda row, price, **others: TabularMDP.from_quantecon(
        DiscreteDP(matrices(row, price)[1], matrices(row, price)[0], 0.9), **others
    ),
    "QuantEcon's pairs": lambda row, price, **others: TabularMDP.from_quantecon(
        in_pairs(row, price), **others
    ),
    "Gymnasium": lambda row, price, **others: TabularMDP.from_gym_P(outcomes(row, price), **others),
    "Gymnasium in lists": lambda row, price, **others: TabularMDP.from_gym_P(
        [list(actions.values()) for actions in outcomes(row, price).values()], **others
    ),
}
READERS = COSTS | REWARDS
# Those that name a reward of -inf or a cost of +inf as what it means: unavailable.
MATRICES = [name for name in READERS if "Gym" not in name and name != "function"]
every_reader = pytest.mark.parametrize("name", READERS)


class TestFaults:
    """Messages name states, signs and sizes as the user wrote them."""

    def refused(self, name: str, message: str, *arguments: Any, **others: Any) -> None:
        with pytest.raises(ValueError, match=message) as caught:
            READERS[name](*arguments, **others)
        # There are states 0 and 1, and nothing else.
        assert not re.search(r"state [2-9]", str(caught.value))

    @every_reader
    def test_all_is_well(self, name: str) -> None:
        model = READERS[name]([0.5, 0.5], 3.0)
        sign = 1.0 if name in COSTS else -1.0
        assert model.costs[0, 0] == sign * 3.0
        assert model.num_states - model.num_added_states == 2

    @every_reader
    @pytest.mark.parametrize("price", [np.nan, INF, -INF])
    def test_prices(self, name: str, price: float) -> None:
        word = "cost" if name in COSTS else "reward"
        unavailable = INF if name in COSTS else -INF
        if name in MATRICES and price == unavailable:
            self.refused(name, "state 0 has no available action", [0.5, 0.5], price)
        else:
            self.refused(
                name, f"^state 0, action 0: {word} {price} must be finite", [0.5, 0.5], price
            )

    @every_reader
    @pytest.mark.parametrize("lost", [-0.5, -1e-9, -2e-12])
    def test_negative_probabilities(self, name: str, lost: float) -> None:
        message = f"^state 0, action 0: probability {lost} of state 1 must be"
        self.refused(name, message, [1.0 - lost, lost], 1.0)

    @every_reader
    def test_rows(self, name: str) -> None:
        self.refused(name, r"^state 0, action 0: probabilities sum to 0\.75", [0.5, 0.25], 1.0)

    @every_reader
    def test_initial(self, name: str) -> None:
        for initial, message in (
            ([0.2, 0.3, 0.5], r"^initial must have shape \(2,\), got \(3,\)"),
            ([1.0], r"^initial must have shape \(2,\), got \(1,\)"),
            ([0.5, 0.25], r"^initial sums to 0\.75"),
            ([1.5, -0.5], r"^initial\[1\] = -0\.5 must be"),
        ):
            self.refused(name, message, [0.5, 0.5], 1.0, initial=initial)

    def test_states_that_are_not_the_users(self) -> None:
        for bad in (2, 3, -1):
            table = outcomes([0.5, 0.5], 1.0)
            table[0][0][1] = (0.5, bad, 1.0, True)
            message = rf"leads to state {bad}, which is not in \[0, 2\)"
            with pytest.raises(ValueError, match=message):
                TabularMDP.from_gym_P(table)
            with pytest.raises(ValueError, match=message):
                TabularMDP.from_function(2, 1, lambda state, action, t=table: t[state][action])

    @every_reader
    def test_planners_speak_of_the_users_states_too(self, name: str) -> None:
        model = READERS[name]([0.5, 0.5], 1.0)
        for call in (
            lambda array: planners.solve(model, gamma=0.9, V0=array),
            lambda array: planners.q_values(model, array, 0.9),
            lambda array: planners.evaluate(model, array.astype(int), 0.9),
        ):
            with pytest.raises(ValueError, match=r"shape \(2,\).*got \(5,\)"):
                call(np.zeros(5))


class TestRounding:
    @every_reader
    def test_one_less_what_wins_and_loses(self, name: str) -> None:
        """A gambler who never draws: 1 - win - lose is below 0."""
        win, lose = 0.9, 0.1
        rest = 1 - win - lose
        assert rest < 0.0
        tiny = -1.1e-16
        for below in (rest, tiny, -1e-12):
            model, exact = READERS[name]([below, 1.0], 2.0), READERS[name]([0.0, 1.0], 2.0)
            for each in (model.transitions[:2], model.rows(0, 2).transitions):
                assert each.data.min() >= 0.0
                np.testing.assert_array_equal(each.toarray(), exact.transitions[:2].toarray())
            values = planners.solve(model, gamma=0.5).values
            np.testing.assert_array_equal(values, planners.solve(exact, gamma=0.5).values)

    def test_single_precision_rounds_by_more(self) -> None:
        P = np.array([[[1.0, -1e-7], [0.0, 1.0]]], dtype=np.float32)
        model = TabularMDP.from_mdptoolbox(P, np.zeros(2))
        assert model.transitions.toarray().tolist() == [[1.0, 0.0], [0.0, 1.0]]
        with pytest.raises(ValueError, match=r"state 0, action 0: probability .* of state 1"):
            TabularMDP.from_mdptoolbox(P.astype(np.float64), np.zeros(2))

    def test_first_states(self) -> None:
        initial = [1.0, -1.1e-16]
        for model in (
            MoveMDP([[1], [0]], [[1.0], [INF]], initial=initial),
            TabularMDP(sp.csr_array(np.eye(2)), np.zeros((2, 1)), initial=initial),
            READERS["Gymnasium"]([0.5, 0.5], 1.0, initial=initial),
        ):
            assert model.validate().initial[:2].tolist() == [1.0, 0.0]


class TestUnavailable:
    """A reward of -inf, or a cost of +inf, in matrices: the action is not available."""

    # From 0 action 0 leads to 1 for 1, action 1 is not to be had; 1 is free for ever.
    P = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    R = np.array([[1.0, -INF], [0.0, 0.0]])

    def check(self, model: TabularMDP) -> None:
        assert model.action_mask.tolist() == [[True, False], [True, True]]
        assert model.terminal.tolist() == [False, True]
        # A step in place at no less than any cost, as for every unavailable action.
        assert model.sample(0, 1, 0.5) == (0, max(0.0, model.costs[0, 0]), 1.0)
        result = planners.solve(model, gamma=0.9)
        assert result.values == pytest.approx([model.costs[0, 0], 0.0])
        assert result.policy[0] == 0

    def test_of_actions(self) -> None:
        self.check(TabularMDP.from_matrices(self.P, rewards=self.R, order="sas"))
        self.check(TabularMDP.from_matrices(self.P, costs=-self.R, order="sas"))
        self.check(TabularMDP.from_mdptoolbox(list(self.P.swapaxes(0, 1)), self.R))
        self.check(planners.as_model((list(self.P.swapaxes(0, 1)), self.R)))  # type: ignore[arg-type]
        self.check(TabularMDP.from_quantecon(DiscreteDP(self.R, self.P, 0.9)))

    def test_what_its_row_holds_does_not_count(self) -> None:
        for entries in ([0.0, 0.0], [np.nan, np.nan], [7.0, -2.0]):
            P = self.P.copy()
            P[0, 1] = entries
            self.check(TabularMDP.from_matrices(P, rewards=self.R, order="sas"))
            self.check(TabularMDP.from_quantecon(DiscreteDP(self.R, P, 0.9)))

    def test_of_outcomes(self) -> None:
        R = np.zeros((2, 2, 2))
        R[0, 0, 1], R[0, 1, 0] = 1.0, -INF
        R[0, 0, 0] = -INF  # which cannot happen
        self.check(TabularMDP.from_matrices(self.P, rewards=R, order="sas"))
        matrices = list(self.P.swapaxes(0, 1))
        self.check(TabularMDP.from_mdptoolbox(matrices, list(R.swapaxes(0, 1))))
        sparse = [sp.csr_array(M) for M in matrices]
        rewards = [sp.csr_array(M) for M in R.swapaxes(0, 1)]
        self.check(TabularMDP.from_mdptoolbox(sparse, rewards))

    def test_beside_a_mask(self) -> None:
        mask = [[True, True], [False, True]]
        model = TabularMDP.from_matrices(self.P, rewards=self.R, order="sas", action_mask=mask)
        assert model.action_mask.tolist() == [[True, False], [False, True]]

    def test_no_reward_of_the_other_sign(self) -> None:
        R = np.where(self.R == -INF, INF, self.R)
        with pytest.raises(
            ValueError,
            match=r"state 0, action 1: reward inf must be finite, or -inf where .* unavailable",
        ):
            TabularMDP.from_matrices(self.P, rewards=R, order="sas")
        with pytest.raises(
            ValueError,
            match=r"state 0, action 1: cost -inf must be finite, or inf where .* unavailable",
        ):
            TabularMDP.from_matrices(self.P, costs=-R, order="sas")


class TestPerpetuities:
    """A chain 0 -> 1 -> 2 whose moves succeed with .8; state 2 pays 1 and leads to itself."""

    P = np.array([[[0.2, 0.8, 0.0], [0.0, 0.2, 0.8], [0.0, 0.0, 1.0]]])
    R = np.array([0.0, 0.0, 1.0])
    # One step in the chain is worth g = .9 * .8 / (1 - .9 * .2) of what comes next.
    STEP = 0.72 / 0.82
    NAMED = "^state 2 leads back only to itself, with a reward that counts at every step, for ever"

    def read(self, name: str, P: Any, R: Any, **others: Any) -> TabularMDP:
        if name == "MDPtoolbox":
            return TabularMDP.from_mdptoolbox(P, R, **others)
        if name == "QuantEcon":
            R = np.asarray(R)[:, np.newaxis]
            return TabularMDP.from_quantecon(DiscreteDP(R, P.swapaxes(0, 1), 0.9), **others)
        return TabularMDP.from_matrices(P, rewards=R, order="ass", **others)

    @pytest.mark.parametrize("name", ["matrices", "MDPtoolbox", "QuantEcon"])
    def test_matrices(self, name: str) -> None:
        with pytest.warns(UserWarning, match=self.NAMED) as caught:
            model = self.read(name, self.P, self.R)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        for word in ("terminal=", r"\[\]", "one more, of reward 0"):
            assert re.search(word, str(caught[0].message))
        # Read as it was: 7.71 8.78 10.
        expected = 10 * np.array([self.STEP**2, self.STEP, 1.0])
        for forever in (model, self.read(name, self.P, self.R, terminal=[])):
            assert not forever.terminal.any()
            returns = -planners.solve(forever, gamma=0.9, tol=1e-12).values
            np.testing.assert_allclose(returns, expected, rtol=1e-11)
        # With one more state, as the warning says: .771 .878 1, and no question.
        P = np.zeros((1, 4, 4))
        P[0, :3, :3] = self.P
        P[0, 2] = P[0, 3] = [0.0, 0.0, 0.0, 1.0]
        once = self.read(name, P, [*self.R, 0.0])
        assert once.terminal.tolist() == [False, False, False, True]
        returns = -planners.solve(once, gamma=0.9, tol=1e-12).values
        np.testing.assert_allclose(returns[:3], expected / 10, rtol=1e-11)
        # Declared terminal, it must not pay.
        ends = self.read(name, self.P, np.zeros(3), terminal=[False, False, True])
        assert ends.terminal.tolist() == [False, False, True]
        with pytest.raises(ValueError, match="state 2 is declared terminal"):
            self.read(name, self.P, self.R, terminal=[False, False, True])

    def test_the_door_to_the_planners(self) -> None:
        for call in (planners.as_model, lambda pair: planners.solve(pair, gamma=0.9)):
            with pytest.warns(UserWarning, match=self.NAMED):
                call((self.P, self.R))

    def test_costs(self) -> None:
        with pytest.warns(UserWarning, match="state 2 leads .* with a cost .* of cost 0"):
            TabularMDP.from_matrices(self.P, costs=self.R, order="ass")

    def test_many(self) -> None:
        P = np.eye(9)
        P[0] = 1 / 9
        for size, named in ((3, "1, 2"), (6, "1, 2, 3, 4, 5"), (9, "1, 2, 3, 4, 5 and 3 more")):
            part = P[:size, :size] / P[:size, :size].sum(axis=1, keepdims=True)
            message = f"^states {named} lead back only to themselves, with a reward"
            with pytest.warns(UserWarning, match=message):
                TabularMDP.from_mdptoolbox([part], np.ones(size))

    def test_functions(self) -> None:
        def chain(*said: bool) -> TabularMDP:
            def fn(state: int, action: int) -> Any:
                if state == 2:
                    return [(1.0, 2, 1.0, *said)]
                return [(0.2, state, 0.0), (0.8, state + 1, 0.0)]

            return TabularMDP.from_function(3, 1, fn)

        with pytest.warns(UserWarning, match="^state 2 leads back .* with a cost") as caught:
            model = chain()
        assert caught[0].filename == __file__
        assert "fourth entry" in str(caught[0].message)
        for read, factor in ((model, 10.0), (chain(False), 10.0), (chain(True), 1.0)):
            values = planners.solve(read, gamma=0.9, tol=1e-12).values
            expected = factor * np.array([self.STEP**2, self.STEP, 1.0])
            np.testing.assert_allclose(values, expected, rtol=1e-11)

    def test_where_there_is_no_question(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Gymnasium's P says itself what terminates.
            TabularMDP.from_gym_P({0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 1, 1.0, False)]}})
            # Nothing is ever left: no episode could end.
            TabularMDP.from_mdptoolbox([[[1.0]]], [[1.0]])
            TabularMDP.from_matrices([[[1.0], [1.0]]], costs=[[1.0, 2.0]])
            # It can be left, by the dearer action; or pays only where it is unavailable.
            P = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
            TabularMDP.from_matrices(P, rewards=[[1.0, 0.0], [0.0, 0.0]], order="sas")
            mask = [[True, True], [True, False]]
            TabularMDP.from_matrices(
                P, costs=[[1.0, 0.0], [0.0, 5.0]], order="sas", action_mask=mask
            )
