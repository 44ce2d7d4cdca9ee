"""Models in other libraries' formats: what is read, what is written, and there and back."""

from __future__ import annotations

import copy
import itertools
import pickle
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import aggmaze
import aggmaze.formats.gym_table
import planners
from aggmaze import MoveMDP, TabularEnv, TabularMDP, formats
from tests.strategies import finite_costs, move_mdps, tabular_mdps, tabular_tables

Model = MoveMDP | TabularMDP
Array = NDArray[Any]
models = st.one_of(move_mdps(), tabular_mdps())
GAMMA = 0.9


class DiscreteDP:
    """What QuantEcon's class of this name keeps of its arguments, but for the order of pairs."""

    def __init__(
        self, R: Any, Q: Any, beta: float, s_indices: Any = None, a_indices: Any = None
    ) -> None:
        self.R = np.asarray(R)
        self.Q = Q.tocsr() if sp.issparse(Q) else np.asarray(Q)
        self.beta = beta
        self.s_indices, self.a_indices = s_indices, a_indices
        self.num_states = self.Q.shape[-1]


DiscreteDP.__module__ = "quantecon.markov.ddp"


@pytest.fixture
def quantecon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a QuantEcon that has nothing but the class."""
    package, module = ModuleType("quantecon"), ModuleType("quantecon.markov")
    module.DiscreteDP = DiscreteDP  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "quantecon", package)
    monkeypatch.setitem(sys.modules, "quantecon.markov", module)


# Each format: how a model is written, for `as_model` to read it back.
FORMATS: dict[str, Callable[[Model], Any]] = {
    "gym P": lambda model: model.to_gym_P(),
    "MDPtoolbox": lambda model: model.to_mdptoolbox(),
    "QuantEcon": lambda model: model.to_quantecon(GAMMA),
}
every_format = pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS)
with_quantecon = pytest.mark.usefixtures("quantecon")


def read(written: Any) -> Model:
    """Read what a format holds, and declare the terminal states, where there is an argument for it.

    Those are the states that nothing leaves and that pay nothing; others may pay for ever.
    """
    if isinstance(written, tuple):
        P, R = written
        going = np.any(R != 0, axis=1)
        for M in P:
            states, following = M.nonzero()
            going[states[states != following]] = True
        return TabularMDP.from_mdptoolbox(P, R, terminal=~going)
    if isinstance(written, DiscreteDP):
        going = np.zeros(written.num_states, dtype=bool)
        going[written.s_indices[written.R != 0]] = True
        pairs, following = written.Q.nonzero()
        states = written.s_indices[pairs]
        going[states[states != following]] = True
        return TabularMDP.from_quantecon(written, terminal=~going)
    return planners.as_model(written)


def states_and_actions(model: Model) -> Iterator[tuple[int, int]]:
    return itertools.product(range(model.num_states), range(model.num_actions))


def outcomes_of(model: Model, state: int, action: int) -> dict[tuple[int, float], float]:
    """Return the probability of each (next state, cost) that a model's rows list."""
    rows = model.rows(state, state + 1)
    entries = range(*rows.transitions.indptr[action : action + 2])
    found: dict[tuple[int, float], float] = {}
    for entry in entries:
        key = int(rows.transitions.indices[entry]), float(rows.outcome_costs[entry])
        found[key] = found.get(key, 0.0) + float(rows.transitions.data[entry])
    return found


def solved(source: Any) -> planners.SolveResult:
    return planners.solve(source, gamma=GAMMA, tol=1e-7)


def assert_same_bits(first: TabularMDP, second: TabularMDP) -> None:
    """Two models have the same rows, and the same values."""
    np.testing.assert_array_equal(first.costs, second.costs)
    np.testing.assert_array_equal(first.terminal, second.terminal)
    for name in ("data", "indices", "indptr"):
        parts = getattr(first.transitions, name), getattr(second.transitions, name)
        np.testing.assert_array_equal(*parts)
    results = solved(first), solved(second)
    np.testing.assert_array_equal(results[0].values, results[1].values)
    np.testing.assert_array_equal(results[0].policy, results[1].policy)


@st.composite
def plain_models(draw: st.DrawFn, *, repeats: bool = True) -> TabularMDP:
    """Models without masks whose actions cost what all their outcomes do.

    Among them single states, absorbing states, parts that do not reach each other, ties, rows that
    miss 1 by up to 1e-9 and outcomes that are listed several times and in any order.
    """
    num_states, num_actions = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    costs = draw(hnp.arrays(np.float64, (num_states, num_actions), elements=finite_costs))
    costs[draw(hnp.arrays(np.bool_, num_states))] = 0.0
    parts = draw(hnp.arrays(np.int64, num_states, elements=st.integers(0, 1)))
    data, indices, counts = [], [], []
    for state in range(num_states):
        near = np.flatnonzero(parts == parts[state]).tolist()
        for _ in range(num_actions):
            successors = draw(
                st.lists(st.sampled_from(near), min_size=1, max_size=4, unique=not repeats)
            )
            size = len(successors)
            weights = np.array(draw(st.lists(st.integers(1, 5), min_size=size, max_size=size)))
            probabilities = (
                weights / weights.sum() * draw(st.sampled_from([1, 1 + 9e-10, 1 - 9e-10]))
            )
            data.extend(probabilities)
            indices.extend(successors)
            counts.append(len(successors))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    transitions = sp.csr_array(
        (np.array(data), np.array(indices, dtype=np.int32), indptr),
        shape=(num_states * num_actions, num_states),
    )
    return TabularMDP(transitions, costs).validate()


@st.composite
def masked_models(draw: st.DrawFn) -> Model:
    """Models some of whose unavailable actions would pay, if one could take them."""
    model = draw(models)
    if isinstance(model, MoveMDP):
        return MoveMDP(model.successors, model.move_costs, p=model.p, bump_cost=-1e4)
    costs = np.where(model.action_mask | model.terminal[:, np.newaxis], model.costs, -1e4)
    return TabularMDP(
        model.transitions, costs, action_mask=model.action_mask, terminal=model.terminal
    ).validate()


# ---------------------------------------------------------------------------------------------
# There and back.


@with_quantecon
class TestThereAndBack:
    @every_format
    @settings(max_examples=60, deadline=None)
    @given(model=plain_models(repeats=False))
    def test_to_the_last_bit(self, write: Callable[[Model], Any], model: TabularMDP) -> None:
        assert_same_bits(read(write(model)), model)  # type: ignore[arg-type]

    @settings(max_examples=60, deadline=None)
    @given(model=plain_models())
    def test_gym_keeps_outcomes_that_are_listed_twice(self, model: TabularMDP) -> None:
        assert_same_bits(TabularMDP.from_gym_P(model.to_gym_P()), model)

    @every_format
    @settings(max_examples=60, deadline=None)
    @given(model=plain_models())
    def test_others_merge_outcomes_that_are_listed_twice(
        self, write: Callable[[Model], Any], model: TabularMDP
    ) -> None:
        back = read(write(model))
        assert isinstance(back, TabularMDP)
        np.testing.assert_array_equal(back.costs, model.costs)
        np.testing.assert_allclose(
            back.transitions.toarray(), model.transitions.toarray(), rtol=1e-15
        )

    @every_format
    @settings(max_examples=60, deadline=None)
    @given(model=models)
    def test_what_was_read_is_written_as_it_was(
        self, write: Callable[[Model], Any], model: Model
    ) -> None:
        once = read(write(model))
        assert isinstance(once, TabularMDP)
        twice = read(write(once))
        assert isinstance(twice, TabularMDP)
        assert_same_bits(once, twice)
        if once.outcome_costs is None:
            assert twice.outcome_costs is None
        else:
            np.testing.assert_array_equal(once.outcome_costs, twice.outcome_costs)

    @every_format
    @settings(max_examples=100, deadline=None)
    @given(model=st.one_of(models, masked_models()))
    def test_values(self, write: Callable[[Model], Any], model: Model) -> None:
        here, there = solved(model), solved(read(write(model)))
        scale = max(1.0, float(np.abs(here.values).max()))
        np.testing.assert_allclose(
            there.values, here.values, rtol=0, atol=here.bound + there.bound + 1e-12 * scale
        )

    @settings(max_examples=60, deadline=None)
    @given(model=models)
    def test_quantecon_keeps_what_is_available(self, model: Model) -> None:
        back = read(model.to_quantecon(GAMMA))
        mask = model.action_mask
        used = back.num_actions
        assert not mask[:, used:].any()
        np.testing.assert_array_equal(back.action_mask, mask[:, :used])

    @every_format
    def test_what_is_written_is_checked(self, write: Callable[[Model], Any]) -> None:
        bad = TabularMDP(sp.csr_array(np.eye(2) * 0.5), np.ones((2, 1)))
        with pytest.raises(ValueError, match=r"state 0, action 0: probabilities sum to 0\.5"):
            write(bad)

    @every_format
    @pytest.mark.parametrize("env_id", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
    def test_toy_text(self, write: Callable[[Model], Any], env_id: str) -> None:
        env = gym.make(env_id)
        here, there = solved(env), solved(write(planners.as_model(env)))
        listed = len(here.values)
        np.testing.assert_allclose(there.values[:listed], here.values, rtol=0, atol=1e-7)
        assert not there.values[listed:].any()


# ---------------------------------------------------------------------------------------------
# Gymnasium's P.


class TestGymP:
    @settings(max_examples=60, deadline=None)
    @given(model=models)
    def test_it_lists_the_models_outcomes(self, model: Model) -> None:
        P = model.to_gym_P()
        assert len(P) == model.num_states
        assert list(P) == list(range(model.num_states))
        for state, action in states_and_actions(model):
            assert list(P[state]) == list(range(model.num_actions))
            row = P[state][action]
            assert isinstance(row, list)
            for outcome in row:
                assert [type(entry) for entry in outcome] == [float, int, float, bool]
            assert sum(outcome[0] for outcome in row) == pytest.approx(1.0, abs=1e-9)
            if model.terminal[state]:
                assert {outcome[1:] for outcome in row} == {(state, 0.0, True)}
                continue
            assert all(ends == model.terminal[following] for _, following, _, ends in row)
            found: dict[tuple[int, float], float] = {}
            for probability, following, reward, _ in row:
                found[following, -reward] = found.get((following, -reward), 0.0) + probability
            if model.action_mask[state, action]:
                assert found == outcomes_of(model, state, action)
            else:
                assert {following for following, _ in found} == {state}
                assert min(cost for _, cost in found) >= model.idle_cost

    @settings(max_examples=30, deadline=None)
    @given(model=models, block=st.integers(1, 4))
    def test_blocks_make_no_difference(self, model: Model, block: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            whole = dict(model.to_gym_P())
            patch.setattr(aggmaze.formats.gym_table, "_BLOCK", block)
            P = model.to_gym_P()
            assert {state: P[state] for state in reversed(range(len(P)))} == whole
            assert whole == P
            assert whole == P
            assert model.to_gym_P() == P

    def test_equality(self) -> None:
        P = MoveMDP([[1, 0], [1, 1]], [[1.0, 2.0], [np.inf, np.inf]]).to_gym_P()
        plain = {
            0: {0: [(1.0, 1, -1.0, True)], 1: [(1.0, 0, -2.0, False)]},
            1: {0: [(1.0, 1, 0.0, True)], 1: [(1.0, 1, 0.0, True)]},
        }
        assert plain == P
        plain[0][1] = [(1.0, 0, -2.5, False)]
        assert plain != P
        assert {0: plain[0]} != P
        assert P != 3

    def test_keys(self) -> None:
        P = MoveMDP([[1, 0], [1, 1]], [[1.0, 2.0], [np.inf, np.inf]]).to_gym_P()
        assert P[np.int64(1)] == P[1]
        for key in (-1, 2, "0", 0.5, None):
            assert key not in P
            with pytest.raises(KeyError):
                P[key]  # type: ignore[index]
        assert P.get(2) is None
        assert repr(P) == "GymP(2 states, 2 actions)"

    def test_what_is_read_is_the_readers_own(self) -> None:
        P = MoveMDP([[1, 0], [1, 1]], [[1.0, 2.0], [np.inf, np.inf]]).to_gym_P()
        P[0][0].clear()
        P[0].clear()
        assert P[0][0] == [(1.0, 1, -1.0, True)]

    def test_copies(self) -> None:
        P = MoveMDP([[1, 0], [1, 1]], [[1.0, 2.0], [np.inf, np.inf]]).to_gym_P()
        for again in (pickle.loads(pickle.dumps(P)), copy.deepcopy(P), copy.copy(P)):
            assert again == P

    def test_models_that_pay_no_less_for_a_bump_keep_it(self) -> None:
        model = MoveMDP([[1, 0], [1, 1]], [[1.0, np.inf], [np.inf, np.inf]], bump_cost=7.0)
        assert model.to_gym_P()[0][1] == [(1.0, 0, -7.0, False)]
        cheap = MoveMDP([[1, 0], [1, 1]], [[1.0, np.inf], [np.inf, np.inf]], bump_cost=0.5)
        assert cheap.to_gym_P()[0][1] == [(1.0, 0, -1.0, False)]

    @pytest.mark.parametrize("low", [1.0, -5.0, np.nan, -np.inf])
    def test_no_outcome_of_an_unavailable_action_may_pay(self, low: float) -> None:
        transitions = sp.csr_array(([1.0, 0.5, 0.5], [0, 0, 0], [0, 1, 3]), shape=(2, 1))
        model = TabularMDP(
            transitions, [[2.0, 4.0]], action_mask=[[True, False]], outcome_costs=[2.0, low, 9.0]
        )
        assert model.to_gym_P()[0][1] == [(1.0, 0, -2.0, False)]

    @pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
    def test_environments_have_it(self, env_id: str) -> None:
        env = gym.make(env_id)
        P = env.unwrapped.P  # type: ignore[attr-defined]
        assert P is env.unwrapped.P  # type: ignore[attr-defined]
        assert env.get_wrapper_attr("P") is P
        assert planners.as_model(env) is env.unwrapped.transition_model()  # type: ignore[attr-defined]
        env.reset(seed=0)
        state = env.get_wrapper_attr("_state")
        for action in range(env.action_space.n):  # type: ignore[attr-defined]
            again = copy.deepcopy(env)
            following, reward, terminated, _, info = again.step(action)
            listed = {(t, r, ends): p for p, t, r, ends in P[state][action]}
            assert listed[following, reward, terminated] == info["prob"]

    def test_a_new_maze_has_a_new_one(self) -> None:
        env = gym.make("StandardMaze-v0", shape=(4, 4)).unwrapped
        before = env.P  # type: ignore[attr-defined]
        env.reset(options={"layout_seed": 3})
        assert env.transition_model().to_gym_P() == env.P  # type: ignore[attr-defined]
        assert before != env.P  # type: ignore[attr-defined]

    def test_a_large_model_is_not_built_at_once(self) -> None:
        num_states = 2_000_000
        successors = np.minimum(np.arange(num_states) + 1, num_states - 1)[:, np.newaxis]
        costs = np.ones((num_states, 1))
        costs[-1] = np.inf
        P = TabularEnv(MoveMDP(successors, costs)).P
        assert P[1_999_998] == {0: [(1.0, 1_999_999, -1.0, True)]}
        assert P[0] == {0: [(1.0, 1, -1.0, False)]}


# ---------------------------------------------------------------------------------------------
# Matrices.

# What else an array may be that holds the same numbers.
KINDS: dict[str, Callable[[Array], Any]] = {
    "Fortran order": np.asfortranarray,
    "a view": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "backwards": lambda array: array[::-1].copy()[::-1],
    "big endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "long double": lambda array: array.astype(np.longdouble),
    "lists": lambda array: array.tolist(),
}


def pairs_of(tables: dict[str, Any]) -> tuple[Array, Array]:
    """Return P in MDPtoolbox's order, and rewards of each next state in it.

    What is never left pays nothing.
    """
    P = tables["P"].swapaxes(0, 1)
    rng = np.random.default_rng(int(abs(tables["costs"]).sum()))
    R = rng.integers(-3, 4, P.shape).astype(np.float64)
    R[:, (P.max(axis=0) * (1 - np.eye(P.shape[1]))).sum(axis=1) == 0] = 0.0
    return P, R


def unambiguous(P: Array) -> bool:
    return P.shape[0] != P.shape[1]


class TestMatrices:
    @settings(max_examples=60)
    @given(tables=tabular_tables())
    def test_forms_of_one_model(self, tables: dict[str, Any]) -> None:
        P, R = pairs_of(tables)
        num_actions = len(P)
        expected = TabularMDP.from_matrices(tables["P"], rewards=R.swapaxes(0, 1), order="sas")
        exact = (P * R).sum(axis=2).T
        np.testing.assert_allclose(expected.rewards, exact, rtol=0, atol=1e-12)
        for state, action in states_and_actions(expected):
            found = {
                (int(t), -float(R[action, state, t])): float(P[action, state, t])
                for t in np.flatnonzero(P[action, state])
            }
            assert outcomes_of(expected, state, action) == found
        as_objects: Array = np.empty(num_actions, dtype=object)
        as_objects[:] = [sp.csr_matrix(M) for M in P]
        sparse = [sp.coo_array(M) for M in P]
        others: list[dict[str, Any]] = [
            {"P": P, "rewards": R, "order": "ass"},
            {"P": list(P), "rewards": R},
            {"P": tuple(P), "rewards": list(R)},
            {"P": sparse, "rewards": [sp.csc_array(M) for M in R]},
            {"P": as_objects, "rewards": tuple(R)},
            {"P": [sparse[0], *P[1:]], "costs": -R},
            {"P": [sp.csr_array(M) for M in tables["P"]], "rewards": R.swapaxes(0, 1)}
            | {"order": "sas"},
            {"P": list(tables["P"]), "rewards": list(R.swapaxes(0, 1)), "order": "sas"},
        ]
        for arguments in others:
            model = TabularMDP.from_matrices(**arguments)
            for state, action in states_and_actions(model):
                assert outcomes_of(model, state, action) == outcomes_of(expected, state, action)
            np.testing.assert_allclose(model.costs, expected.costs, rtol=0, atol=1e-12)

    @settings(max_examples=60)
    @given(tables=tabular_tables())
    def test_the_pair_reads_the_same(self, tables: dict[str, Any]) -> None:
        P, R = pairs_of(tables)
        expected = TabularMDP.from_matrices(list(P), rewards=R)
        sources: list[Any] = [(list(P), R), (tuple(map(sp.csr_array, P)), list(R))]
        if unambiguous(P):
            sources += [(P, R), (P, list(R)), (tables["P"], R.swapaxes(0, 1))]
        for source in sources:
            model = planners.as_model(source)
            assert isinstance(model, TabularMDP)
            assert (model.transitions != expected.transitions).nnz == 0
            np.testing.assert_array_equal(model.costs, expected.costs)

    @given(tables=tabular_tables())
    def test_rewards_of_states_and_of_actions(self, tables: dict[str, Any]) -> None:
        P, rewards = list(tables["P"].swapaxes(0, 1)), tables["costs"]
        terminal = tables["terminal"]
        model = TabularMDP.from_mdptoolbox(P, rewards, terminal=terminal)
        np.testing.assert_array_equal(model.rewards, rewards)
        assert model.outcome_costs is None
        of_states = TabularMDP.from_mdptoolbox(P, rewards[:, 0], terminal=terminal)
        np.testing.assert_array_equal(of_states.rewards, np.repeat(rewards[:, :1], len(P), axis=1))
        sparse = TabularMDP.from_mdptoolbox(P, sp.csr_matrix(rewards), terminal=terminal)
        np.testing.assert_array_equal(sparse.rewards, rewards)

    @pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
    @given(tables=tabular_tables())
    def test_any_memory_layout(self, kind: Callable[[Array], Any], tables: dict[str, Any]) -> None:
        P, costs, terminal = tables["P"], tables["costs"], tables["terminal"]
        expected = TabularMDP.from_matrices(P, costs=costs, terminal=terminal)
        model = TabularMDP.from_matrices(kind(P), costs=kind(costs), terminal=terminal)
        assert (model.transitions != expected.transitions).nnz == 0
        np.testing.assert_array_equal(model.costs, expected.costs)

    @pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int64, np.float32])
    @given(data=st.data())
    def test_any_number_type(self, dtype: Any, data: st.DataObject) -> None:
        num_states, num_actions = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
        shape = num_actions, num_states
        successors = data.draw(hnp.arrays(np.int64, shape, elements=st.integers(0, shape[1] - 1)))
        P = np.eye(num_states)[successors]
        R = data.draw(hnp.arrays(np.bool_, (num_states, num_actions)))
        for make in (np.asarray, sp.csr_array, sp.coo_matrix):
            matrices = [make(M.astype(dtype)) for M in P]
            model = TabularMDP.from_mdptoolbox(matrices, R.astype(dtype), terminal=[])
            np.testing.assert_array_equal(
                model.transitions.toarray().reshape(num_states, num_actions, -1),
                P.swapaxes(0, 1),
            )
            np.testing.assert_array_equal(model.rewards, R)

    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    def test_rows_in_less_than_double_precision(self, dtype: Any) -> None:
        P = np.full((2, 3, 3), dtype(1) / dtype(3))
        P[1] = [dtype(0.1), dtype(0.2), dtype(0.7)]
        assert abs(P.astype(np.float64).sum(axis=2) - 1).max() > 1e-9
        for probabilities in (P, list(P), [sp.csr_array(M.astype(np.float32)) for M in P]):
            if dtype == np.float16 and probabilities is not P and sp.issparse(probabilities[0]):
                continue  # sparse arrays have no half precision
            model = TabularMDP.from_mdptoolbox(probabilities, np.ones(3, dtype=dtype))
            np.testing.assert_allclose(model.transitions.sum(axis=1), 1.0, rtol=0, atol=1e-15)
            np.testing.assert_allclose(model.transitions.toarray()[::2], 1 / 3, rtol=0, atol=1e-15)
        P[1, 2, 2] = dtype(0.65)
        with pytest.raises(ValueError, match=r"state 2, action 1: probabilities sum to 0\.9"):
            TabularMDP.from_mdptoolbox(P, np.ones(3))
        # In double precision nothing is touched.
        off = np.array([[[1.0, 0.0], [5e-10, 1.0]]])
        kept = TabularMDP.from_mdptoolbox(off, np.ones(2), terminal=[])
        assert kept.transitions.toarray()[1, 0] == 5e-10

    @given(tables=tabular_tables())
    def test_what_is_passed_in_is_left_alone(self, tables: dict[str, Any]) -> None:
        P, R = pairs_of(tables)
        matrices = [sp.csr_array(M) for M in P]
        rewards = [sp.csr_array(M) for M in R]
        passed = [P, R, *(M.data for M in matrices), *(M.data for M in rewards)]
        before = copy.deepcopy(passed)
        for array in passed:
            array.flags.writeable = False
        model = TabularMDP.from_matrices(P, rewards=R, order="ass")
        TabularMDP.from_mdptoolbox(matrices, rewards)
        model.to_mdptoolbox()
        model.to_gym_P()[0]
        for array, copied in zip(passed, before, strict=True):
            np.testing.assert_array_equal(array, copied)

    def test_as_many_actions_as_states(self) -> None:
        P = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0]]])
        R = np.array([[1.0, 2.0], [3.0, 4.0]])
        for source in ((P, R), (P.tolist(), R), (P, R.tolist())):
            with pytest.raises(ValueError, match=r"\(A, S, S\).*\(S, A, S\).*order='ass'"):
                planners.as_model(source)
        first = TabularMDP.from_matrices(P, rewards=R, order="ass")
        second = TabularMDP.from_matrices(P, rewards=R, order="sas")
        assert outcomes_of(first, 1, 0) == {(0, -3.0): 0.5, (1, -3.0): 0.5}
        assert outcomes_of(second, 1, 0) == {(1, -3.0): 1.0}
        # A sequence of matrices says what it is.
        assert outcomes_of(planners.as_model((list(P), R)), 1, 0) == outcomes_of(first, 1, 0)  # type: ignore[arg-type]
        # And where both readings are one, nothing is to be said.
        same = np.stack([P[0], P[0]]).copy()
        same[1, 0], same[0, 1] = same[0, 1], same[0, 1]
        assert planners.as_model((same, R)).num_states == 2
        for rewards in (np.arange(8.0).reshape(2, 2, 2), list(np.zeros((2, 2, 2)))):
            with pytest.raises(ValueError, match="order='ass'"):
                planners.as_model((same, rewards))
        assert planners.as_model((same, sp.csr_array(R))).num_states == 2
        assert planners.as_model((np.ones((1, 1, 1)), [5.0])).num_states == 1

    def test_entries_that_p_has_twice_or_r_has_not(self) -> None:
        twice = sp.csr_array(([0.25, 0.25, 0.5, 1.0], [1, 1, 0, 1], [0, 3, 4]), shape=(2, 2))
        R = sp.csr_array(([3.0, 9.0], [1, 0], [0, 1, 2]), shape=(2, 2))
        model = TabularMDP.from_mdptoolbox([twice], [R])
        assert model.outcome_costs is not None
        assert model.outcome_costs.tolist() == [-3.0, -3.0, 0.0, 0.0]
        assert model.rewards.tolist() == [[1.5], [0.0]]
        of_r = sp.csr_array(([3.0, 4.0, 9.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
        assert TabularMDP.from_mdptoolbox([twice], [of_r]).rewards.tolist() == [[3.5], [0.0]]
        nothing = TabularMDP.from_mdptoolbox([twice], [sp.csr_array((2, 2))])
        assert nothing.rewards.tolist() == [[0.0], [0.0]]

    def test_rewards_of_what_cannot_happen_do_not_count(self) -> None:
        R = np.full((1, 2, 2), -np.inf)
        R[0, :, 1] = 1.0
        model = TabularMDP.from_mdptoolbox(np.array([[[0.0, 1.0], [0.0, 1.0]]]), R, terminal=[])
        assert model.rewards.tolist() == [[1.0], [1.0]]

    @pytest.mark.parametrize(
        ("P", "R", "message"),
        [
            (np.ones((2, 3)), np.ones(3), r"\(S, A, S\), or \(A, S, S\).*shape \(2, 3\)"),
            (np.ones((2, 3, 4)), np.ones(3), r"P must be .*shape \(2, 3, 4\)"),
            (np.ones((0, 3, 3)), np.ones(3), r"P must be .*shape \(0, 3, 3\)"),
            (sp.eye_array(3).tocsr()[:, :2], np.ones(3), r"P must be .*one matrix.*shape \(3, 2\)"),
            ([[1, 2], [3]], np.ones(3), "P must be an array: its parts differ"),
            ("P", np.ones(3), "P must hold real numbers"),
            (np.ones((2, 3, 3), dtype=complex), np.ones(3), "P must hold real numbers.*complex"),
            ([np.eye(3) * 1j], np.ones(3), r"P\[0\] must hold real numbers.*complex"),
            ([np.eye(3), np.eye(2)], np.ones(3), r"P\[1\] must have shape \(S, S\) = \(3, 3\)"),
            ([np.eye(3)], np.ones(2), r"rewards must have shape .*\(3, 1\).*got \(2,\)"),
            ([np.eye(3)], np.ones((1, 3)), r"rewards must have .*\(A, S, S\) = \(1, 3, 3\).*got"),
            ([np.eye(3)], [np.eye(3)] * 2, "rewards must .*got 2 matrices of shape"),
            ([np.eye(3)], ["a"], "rewards must hold real numbers"),
            ([np.eye(3) / 2], np.ones(3), r"state 0, action 0: probabilities sum to 0\.5"),
            ([np.eye(3)], [np.nan, 0, 0], "state 0, action 0: reward nan must be finite"),
        ],
    )
    def test_pairs_that_are_none(self, P: Any, R: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            planners.as_model((P, R))

    def test_the_order_of_an_array_is_never_guessed_by_from_matrices(self) -> None:
        P = np.full((2, 3, 3), 1 / 3)
        with pytest.raises(ValueError, match=r"or \(A, S, S\) with order='ass'.*\(2, 3, 3\)"):
            TabularMDP.from_matrices(P, costs=np.ones(3))
        with pytest.raises(ValueError, match=r"\(3, 2, 3\) with order='ass'"):
            TabularMDP.from_matrices(P.swapaxes(0, 1), costs=np.ones(3), order="ass")
        with pytest.raises(ValueError, match="order must be one of sas, ass, got 'asa'"):
            TabularMDP.from_matrices(P, costs=np.ones(3), order="asa")  # type: ignore[arg-type]

    @settings(max_examples=60)
    @given(model=models)
    def test_what_is_written(self, model: Model) -> None:
        P, R = model.to_mdptoolbox()
        assert len(P) == model.num_actions
        assert R.shape == (model.num_states, model.num_actions)
        for M in P:
            assert isinstance(M, sp.csr_matrix)
            assert M.shape == (model.num_states, model.num_states)
        for state, action in states_and_actions(model):
            row = P[action].toarray()[state]
            if model.terminal[state] or not model.action_mask[state, action]:
                assert row[state] == pytest.approx(1.0, abs=1e-9)
                lost = 0.0 if model.terminal[state] else model.idle_cost
                assert -R[state, action] >= lost
                continue
            found = outcomes_of(model, state, action)
            expected = np.zeros(model.num_states)
            for (following, _), probability in found.items():
                expected[following] += probability
            np.testing.assert_allclose(row, expected, rtol=1e-15)
            mean = sum(probability * cost for (_, cost), probability in found.items())
            size = sum(probability * abs(cost) for (_, cost), probability in found.items())
            assert -R[state, action] == pytest.approx(mean, abs=1e-9 * size)


# ---------------------------------------------------------------------------------------------
# QuantEcon.


@with_quantecon
class TestQuantEcon:
    R = (5.0, 10.0, -1.0)
    Q = ((0.5, 0.5), (0.0, 1.0), (0.0, 1.0))

    def check(self, ddp: DiscreteDP) -> None:
        model = TabularMDP.from_quantecon(ddp, terminal=[])
        assert model.action_mask.tolist() == [[True, True], [True, False]]
        assert model.costs[0].tolist() == [-5.0, -10.0]
        assert model.costs[1, 0] == 1.0
        assert outcomes_of(model, 0, 0) == {(0, -5.0): 0.5, (1, -5.0): 0.5}
        assert outcomes_of(model, 1, 0) == {(1, 1.0): 1.0}
        # v of QuantEcon's own documentation, at beta = 0.95.
        with pytest.warns(UserWarning, match="state 1 leads back only to itself, with a reward"):
            result = planners.solve(ddp, gamma=0.95, tol=1e-7)
        np.testing.assert_allclose(result.values, [8.57142857, 20.0], rtol=1e-8)
        assert result.policy.tolist() == [0, 0]

    def test_product_form(self) -> None:
        Q = np.array([self.Q[:2], [self.Q[2], (0.5, 0.5)]])
        self.check(DiscreteDP(np.array([self.R[:2], [self.R[2], -np.inf]]), Q, 0.3))
        # What an unavailable action would do may be anything.
        Q[1, 1] = np.nan
        self.check(DiscreteDP(np.array([self.R[:2], [self.R[2], -np.inf]]), Q, 0.3))

    @pytest.mark.parametrize("make", [np.array, sp.csr_matrix, sp.csr_array, sp.coo_array])
    @pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
    def test_pairs(self, make: Any, order: list[int]) -> None:
        R, Q = np.array(self.R)[order], make(np.array(self.Q)[order])
        s_indices, a_indices = np.array([0, 0, 1])[order], np.array([0, 1, 0])[order]
        self.check(DiscreteDP(R, Q, 0.3, s_indices, a_indices))
        more = DiscreteDP(
            np.append(R, -np.inf),
            make(np.vstack([np.array(self.Q)[order], [1.0, 0.0]])),
            0.3,
            [*s_indices, 1],
            [*a_indices, 1],
        )
        self.check(more)

    def test_number_types(self) -> None:
        third = np.full((3, 1, 3), 1 / 3, dtype=np.float32)
        model = planners.as_model(DiscreteDP(np.arange(3)[:, np.newaxis], third, 0.9))
        assert model.costs.tolist() == [[0.0], [-1.0], [-2.0]]  # type: ignore[union-attr]

    def test_subclasses_and_namesakes(self) -> None:
        class Mine(DiscreteDP):
            pass

        self.check(
            Mine(np.array(self.R), np.array(self.Q), 0.3, np.array([0, 0, 1]), np.array([0, 1, 0]))
        )
        namesake = type("DiscreteDP", (), {"R": 1})()
        with pytest.raises(TypeError, match="quantecon DiscreteDP, got DiscreteDP"):
            planners.as_model(namesake)
        with pytest.raises(TypeError, match=r"expected a quantecon\.markov.DiscreteDP, got int"):
            TabularMDP.from_quantecon(3)

    def test_terminal_states_need_not_list_every_action(self) -> None:
        ddp = DiscreteDP(
            np.array([1.0, 2.0, 0.0]),
            np.array([(0.0, 1.0), (1.0, 0.0), (0.0, 1.0)]),
            0.9,
            np.array([0, 0, 1]),
            np.array([0, 1, 1]),
        )
        model = TabularMDP.from_quantecon(ddp, initial=[1.0, 0.0])
        assert model.terminal.tolist() == [False, True]
        assert model.initial.tolist() == [1.0, 0.0]

    def test_pairs_that_are_faulty(self) -> None:
        def model(**changes: Any) -> TabularMDP:
            arguments = {"R": np.array(self.R), "Q": np.array(self.Q), "beta": 0.9}
            pairs = {"s_indices": np.array([0, 0, 1]), "a_indices": np.array([0, 1, 0])}
            return TabularMDP.from_quantecon(DiscreteDP(**(arguments | pairs | changes)))

        with pytest.raises(ValueError, match="state 0, action 1: listed more than once"):
            model(a_indices=np.array([1, 1, 0]))
        with pytest.raises(ValueError, match="state 1 has no available action"):
            model(R=np.array([5.0, 10.0, -np.inf]))
        with pytest.raises(ValueError, match="state 1, action 0: reward nan must be finite"):
            model(R=np.array([5.0, 10.0, np.nan]))
        with pytest.raises(ValueError, match=r"state 0, action 1: probabilities sum to 0\.5"):
            model(Q=np.array([(0.5, 0.5), (0.0, 0.5), (0.0, 1.0)]))

    @settings(max_examples=60)
    @given(model=models)
    def test_what_is_written(self, model: Model) -> None:
        ddp = formats.to_quantecon(model, 0.7)
        assert isinstance(ddp, DiscreteDP)
        assert ddp.beta == 0.7
        mask = model.action_mask
        np.testing.assert_array_equal(ddp.s_indices, np.nonzero(mask)[0])
        np.testing.assert_array_equal(ddp.a_indices, np.nonzero(mask)[1])
        P, R = model.to_mdptoolbox()
        np.testing.assert_array_equal(ddp.R, R[mask])
        dense = np.stack([M.toarray() for M in P], axis=1)
        np.testing.assert_array_equal(ddp.Q.toarray(), dense[mask])

    @pytest.mark.parametrize(
        ("gamma", "error"),
        [
            (1.1, ValueError),
            (-0.1, ValueError),
            (np.nan, ValueError),
            (None, TypeError),
            (True, TypeError),
        ],
    )
    def test_discounts_that_are_none(self, gamma: Any, error: type[Exception]) -> None:
        with pytest.raises(error, match=r"gamma must be (in|a number in) \[0, 1\], got"):
            MoveMDP([[0]], [[1.0]]).to_quantecon(gamma)


def test_quantecon_is_asked_for_by_name_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "quantecon", None)
    with pytest.raises(ImportError, match="pip install quantecon"):
        MoveMDP([[0]], [[1.0]]).to_quantecon(0.9)


def test_a_quantecon_that_is_broken_says_so_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    package = tmp_path / "quantecon" / "markov"
    package.mkdir(parents=True)
    (tmp_path / "quantecon" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("import not_there_at_all")
    monkeypatch.delitem(sys.modules, "quantecon", raising=False)
    monkeypatch.delitem(sys.modules, "quantecon.markov", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        MoveMDP([[0]], [[1.0]]).to_quantecon(0.9)
    monkeypatch.delitem(sys.modules, "quantecon", raising=False)


# ---------------------------------------------------------------------------------------------
# Functions.


class TestFromFunction:
    @settings(max_examples=60)
    @given(model=models)
    def test_a_function_that_reads_a_model(self, model: Model) -> None:
        assume(not model.terminal.all())

        def outcomes(state: int, action: int) -> Any:
            if not model.action_mask[state, action] or model.terminal[state]:
                return None if action % 2 else []
            rows = model.rows(state, state + 1)
            entries = range(*rows.transitions.indptr[action : action + 2])
            return (
                (
                    rows.transitions.data[i],
                    rows.transitions.indices[i],
                    rows.outcome_costs[i],
                    False,
                )
                for i in entries
            )

        read = TabularMDP.from_function(
            model.num_states, model.num_actions, outcomes, initial=model.initial
        )
        np.testing.assert_array_equal(read.terminal[model.terminal], True)
        np.testing.assert_array_equal(read.initial, model.initial)
        for state, action in states_and_actions(model):
            if model.terminal[state]:
                assert outcomes_of(read, state, action) == {(state, 0.0): 1.0}
                continue
            assert read.action_mask[state, action] == model.action_mask[state, action]
            if read.action_mask[state, action]:
                assert outcomes_of(read, state, action) == outcomes_of(model, state, action)

    def test_a_chain(self) -> None:
        """Walk left or right; only left at the right end; the left end is terminal."""
        calls = []

        def walk(state: int, action: int) -> list[tuple[float, int, float]] | None:
            calls.append((state, action))
            if state == 0 or (state == 3 and action == 1):
                return None
            return [(0.9, state + (-1, 1)[action], 1.0), (0.1, state, 2.0)]

        model = TabularMDP.from_function(4, 2, walk)
        assert calls == list(itertools.product(range(4), range(2)))
        assert model.terminal.tolist() == [True, False, False, False]
        assert model.action_mask.tolist() == [[True, True]] * 3 + [[True, False]]
        assert model.costs[1:].reshape(-1) == pytest.approx(1.1)
        assert model.initial == pytest.approx([0.0, 1 / 3, 1 / 3, 1 / 3])
        result = planners.solve(model, gamma=0.9, tol=1e-12)
        # V = 1.1 + gamma (0.9 V(left) + 0.1 V).
        step = 1.1 / (1 - 0.09)
        ratio = 0.81 / (1 - 0.09)
        expected = np.cumsum([0.0, step, step * ratio, step * ratio**2])
        np.testing.assert_allclose(result.values, expected, rtol=1e-11)

    def test_what_terminates(self) -> None:
        model = TabularMDP.from_function(
            3,
            1,
            lambda state, action: (
                None if state == 2 else [(0.5, 1, 1.0, True), (0.5, state + 1, 2.0, False)]
            ),
        )
        assert model.num_added_states == 1
        assert model.terminal.tolist() == [False, False, True, True]
        assert outcomes_of(model, 0, 0) == {(3, 1.0): 0.5, (1, 2.0): 0.5}
        assert outcomes_of(model, 1, 0) == {(3, 1.0): 0.5, (2, 2.0): 0.5}
        # Into a terminal state it changes nothing.
        ends = TabularMDP.from_function(
            2, 1, lambda state, action: None if state else [(1.0, 1, 1.0, True)]
        )
        assert ends.num_added_states == 0

    def test_nothing_can_be_done_anywhere(self) -> None:
        model = TabularMDP.from_function(2, 3, lambda state, action: None)
        assert model.terminal.all()

    @pytest.mark.parametrize(
        ("outcomes", "message"),
        [
            (3, r"fn\(1, 0\) must give outcomes .*got 3"),
            ((1.0, 0, 0.0), r"fn\(1, 0\) must give outcomes .*got 1\.0"),
            ([(1.0, 0)], r"fn\(1, 0\) must give outcomes .*got \(1\.0, 0\)"),
            ([(1.0, 0, 0.0, False, 1)], r"fn\(1, 0\) must give outcomes"),
            ([(1.0, "a", 0.0)], r"fn\(1, 0\) must give outcomes .*got \(1\.0, 'a', 0\.0"),
            ([(1.0, 0, None)], "state 1, action 0: cost nan must be finite"),
            ([(1.0, 2, 0.0)], r"fn\(1, 0\) leads to state 2, which is not in \[0, 2\)"),
            ([(1.0, 0.5, 0.0)], r"fn\(1, 0\) leads to state 0\.5"),
            ([(0.5, 0, 0.0)], r"state 1, action 0: probabilities sum to 0\.5"),
            ([(-1.0, 0, 0.0), (2.0, 0, 0.0)], r"state 1, action 0: probability -1\.0"),
            ([(1.0, 0, np.inf)], "state 1, action 0: cost inf must be finite"),
        ],
    )
    def test_faults_are_named(self, outcomes: Any, message: str) -> None:
        def fn(state: int, action: int) -> Any:
            return outcomes if (state, action) == (1, 0) else [(1.0, 1, 0.0)]

        with pytest.raises(ValueError, match=message):
            TabularMDP.from_function(2, 2, fn)

    @pytest.mark.parametrize(
        ("sizes", "error", "message"),
        [
            ((0, 1), ValueError, "num_states must be at least 1, got 0"),
            ((1, 0), ValueError, "num_actions must be at least 1, got 0"),
            ((1.5, 1), TypeError, "num_states must be an integer"),
        ],
    )
    def test_sizes(self, sizes: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            TabularMDP.from_function(*sizes, lambda state, action: None)
