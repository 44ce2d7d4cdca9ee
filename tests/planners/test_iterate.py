"""The loop's promises, whatever a solver does: certificates, statuses, limits, interrupts."""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import planners
from aggmaze import MoveMDP, TabularMDP
from planners import judge, record
from planners.engine import Engine
from planners.solve import METHODS, Method
from planners.solvers.base import Step
from tests.planners.reference import (
    Exact,
    dense,
    exact_error,
    methods_for,
    random_moves,
    random_tabular,
    truth,
    within,
)

# One state that costs 1 for ever: V* = 1 / (1 - gamma).
FOREVER = TabularMDP.from_matrices([[[1.0]]], costs=[[1.0]])
PLACE_OF_POLICIES = "planners.objectives.discounted.greedy_policy"


class HalfWay:
    """Value iteration that goes half the way: a solver as CONTRIBUTING describes them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        self._engine.sweep(V, out)
        out += V
        out /= 2
        return Step(len(V), num_sweeps=1)


class OneBehind:
    """Makes one iteration, and returns the V before its sweep."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._next: NDArray[np.float64] | None = None

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        out[:] = V if self._next is None else self._next
        self._next = np.empty_like(V)
        return Step(len(V), self._engine.sweep(out, self._next), num_sweeps=1)


class Spoils:
    """Changes V after the sweep that is to vouch for it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        out[:] = V
        sweep = self._engine.sweep(V, out)
        out -= 0.5
        return Step(len(V), sweep, num_sweeps=1)


class ByPolicy:
    """Hands on a sweep by a policy as if it had been a full one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        policy = np.zeros(len(V), dtype=np.int32)
        return Step(len(V), self._engine.policy_sweep(policy, V, out), num_sweeps=1)


@pytest.fixture
def new_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    for solver in (HalfWay, OneBehind, Spoils, ByPolicy):
        monkeypatch.setitem(METHODS, solver.__name__, Method(solver, "of a test"))


@pytest.mark.usefixtures("new_methods")
class TestNewSolvers:
    @pytest.mark.parametrize(
        "model", [random_moves(0, 40, 3, p=0.9), random_tabular(0, 30, 3), FOREVER]
    )
    def test_a_solver_of_a_few_lines_is_certified(self, model: Any) -> None:
        V, off = truth(dense(model), 0.9)
        result = planners.solve(model, gamma=0.9, method="HalfWay")
        assert result.status == "converged"
        assert np.abs(result.values - V).max() <= result.bound + off
        assert result.bound <= 1e-6 * np.abs(result.values).max()
        # At most every second sweep is one of the loop's.
        assert result.num_certificate_sweeps <= result.num_sweeps + 1
        few = planners.solve(model, gamma=0.9, method="HalfWay", num_iterations=3)
        assert few.status == "completed"
        assert np.abs(few.values - V).max() <= few.bound + off

    def test_values_before_the_sweep_are_certified_as_what_they_are(self) -> None:
        for model in (FOREVER, random_tabular(1, 12, 2)):
            V, off = truth(dense(model), 0.9)
            for options in ({"tol": 1e-6}, {"num_iterations": 20}, {"atol": 1e-3}):
                result = planners.solve(model, gamma=0.9, method="OneBehind", **options)
                assert np.abs(result.values - V).max() <= result.bound + off
                assert result.success

    def test_values_changed_after_the_sweep_are_found_out(self) -> None:
        with pytest.raises(RuntimeError, match="V was changed after the solver's sweep"):
            planners.solve(FOREVER, gamma=0.9, method="Spoils")
        result = planners.solve(FOREVER, gamma=0.9, method="Spoils", num_iterations=200)
        assert abs(result.values[0] - 10) <= result.bound

    def test_a_sweep_by_a_policy_certifies_nothing(self) -> None:
        model = random_tabular(2, 12, 3)
        V, off = truth(dense(model), 0.9)
        result = planners.solve(model, gamma=0.9, method="ByPolicy", tol=1e-6, num_iterations=300)
        assert result.status == "stopped_short"
        assert np.abs(result.values - V).max() <= result.bound + off


def aggregated() -> tuple[MoveMDP, dict[str, Any]]:
    """A deterministic model of two states, and what tells them apart."""
    model = MoveMDP([[1], [0]], [[1.0], [2.0]])
    return model, {"method": "fixed_aggregation", "labels": [0, 1], "step_size": 1.0}


class TestStatus:
    def test_a_method_without_sweeps_converges_when_it_has(self) -> None:
        model, options = aggregated()
        result = planners.solve(model, gamma=0.5, tol=1e-3, **options)
        V, off = truth(dense(model), 0.5)
        assert result.status == "converged"
        assert np.abs(result.values - V).max() <= result.bound + off
        assert result.bound <= 1e-3 * np.abs(result.values).max()

    @pytest.mark.parametrize("name", [m for m in METHODS if m != "fixed_aggregation"])
    @pytest.mark.parametrize("num_iterations", [1, 2, 7, 40])
    def test_it_never_contradicts_the_bound(self, name: str, num_iterations: int) -> None:
        for model in (random_moves(0, 40, 3, p=0.9), random_moves(1, 9, 2, p=1.0)):
            for tol in (0.5, 1e-3, 1e-9):
                result = planners.solve(
                    model, gamma=0.9, method=name, tol=tol, num_iterations=num_iterations
                )
                met = result.bound <= tol * np.abs(result.values).max()
                assert (result.status == "converged") == met
                assert result.success == met

    def test_at_a_limit_the_sweep_that_certifies_has_the_last_word(self) -> None:
        model = random_moves(0, 40, 3, p=0.9)
        options = {"gamma": 0.9, "method": "value_iteration"}
        for num_iterations in (3, 10, 30):
            # What the last iteration says itself, and what the sweep after it finds.
            longer = planners.solve(model, tol=1e-9, num_iterations=num_iterations + 1, **options)
            claimed = longer.history.bound[num_iterations - 1]
            found = planners.solve(model, tol=1e-9, num_iterations=num_iterations, **options).bound
            assert found < 0.999 * claimed
            between = (found + claimed) / 2
            result = planners.solve(model, atol=between, num_iterations=num_iterations, **options)
            assert result.status == "converged"
            assert (result.bound, result.num_iterations) == (found, num_iterations)

    def test_sweeps_to_certify_are_no_more_work_than_the_method(self) -> None:
        model = random_moves(0, 400, 3, p=0.9)
        for options in (
            {"method": "adaptive_aggregation", "epsilon": "shrink"},
            {"method": "fixed_aggregation", "labels": np.arange(400) // 10},
        ):
            result = planners.solve(model, gamma=0.9, tol=1e-6, num_updates=40_000, **options)
            assert result.num_certificate_sweeps <= 2 + result.num_updates // 400
            assert result.num_certificate_sweeps < result.num_iterations / 5

    def test_no_numbers_are_no_success(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Broken:
            def __init__(self, engine: Engine) -> None:
                self._engine = engine

            def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
                V = V.copy()
                V[0] = math.nan
                return Step(len(V), self._engine.sweep(V, out), num_sweeps=1)

        monkeypatch.setitem(METHODS, "broken", Method(Broken, "of a test"))
        P = [[[1.0, 0.0]], [[1.0, 0.0]]]
        model = TabularMDP.from_matrices(P, costs=[[1.0], [1.0]], terminal=[])
        for options in ({}, {"num_iterations": 5}, {"atol": 1.0}):
            result = planners.solve(model, gamma=0.5, method="broken", **options)
            assert not result.success
            assert result.bound == result.policy_bound == math.inf
            assert "no numbers" in result.message


class TestHistory:
    def test_beyond_some_length_it_is_thinned_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(record, "_MOST_ROWS", 16)
        model = random_moves(0, 40, 3, p=0.9)
        options: dict[str, Any] = {"gamma": 0.9, "method": "value_iteration"}
        for count in (1, 15, 16, 17, 31, 32, 33, 100, 101, 1000):
            iterations: list[int] = []
            result = planners.solve(
                model,
                num_iterations=count,
                callback=lambda p, seen=iterations: seen.append(p.iteration),  # type: ignore[misc]
                **options,
            )
            history = result.history
            assert iterations == list(range(1, count + 1))
            assert result.num_iterations == history.iteration[-1] == count
            assert len(history) <= 17
            assert history.iteration[0] == 1
            gaps = np.diff(history.iteration[:-1])
            assert len(set(gaps)) <= 1
            if count <= 16:
                assert len(history) == count
            np.testing.assert_array_equal(history.num_updates, 40 * history.iteration)

    def test_an_iteration_leaves_nothing_behind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # A cycle of two states, whose residual shrinks by gamma an iteration, for very long.
        monkeypatch.setattr(record, "_MOST_ROWS", 64)
        monkeypatch.setattr(judge, "_FIRST_CLOSING", 10**9)
        model = MoveMDP([[1], [0]], [[1.0], [2.0]])
        blocks: list[int] = []

        def count(progress: planners.Progress) -> None:
            if progress.iteration % 20_000 == 0:
                blocks.append(sys.getallocatedblocks())

        result = planners.solve(
            model,
            gamma=0.99999,
            method="value_iteration",
            tol=1e-9,
            num_iterations=60_000,
            callback=count,
        )
        assert result.num_iterations == 60_000
        assert result.num_certificate_sweeps == 1
        assert len(result.history) <= 65
        assert blocks[-1] - blocks[0] <= 1000


class TestNextToOne:
    """No method takes longer than exact evaluation does where discounts are next to 1."""

    # What random testing found: minutes by several methods.
    FOUND = (
        TabularMDP.from_matrices(
            [
                [[1 / 3, 1 / 3, 0, 1 / 3, 0]],
                [[1, 0, 0, 0, 0]],
                [[1, 0, 0, 0, 0]],
                [[0.5, 0, 0.5, 0, 0]],
                [[1 / 3, 1 / 3, 0, 1 / 3, 0]],
            ],
            costs=[[1.0000000000000002], [1], [1], [1], [1.0000000000000002]],
        ),
        MoveMDP(
            [[5, 4], [4, 4], [2, 4], [5, 3], [1, 3], [2, 1]],
            [[math.inf, math.inf], [0.5, 2.0], [1.0, 4.0], [4.0, 1.0], [1.0, 0.5], [1.0, 1.0]],
        ),
        # Wants a better policy than the one that is greedy after thousands of sweeps.
        MoveMDP(
            [[0, 1, 3], [1, 0, 2], [0, 2, 1], [3, 2, 3]],
            [[0.0, 1.0, 1.0], [0.5, 0.0, 0.5], [1.0, 1.0, 0.5], [0.5, -1.0, 1.0]],
            p=0.5,
        ),
    )

    @staticmethod
    def check(model: Any, gamma: float, start: float = 0.0) -> None:
        V = Exact(model, gamma).optimum()
        for method in methods_for(model):
            options = {"epsilon": "shrink"} if method == "adaptive_aggregation" else {}
            V0 = np.linspace(0.0, start, model.num_states)
            result = planners.solve(model, gamma=gamma, method=method, V0=V0, **options)
            assert result.status == "converged"
            assert within(exact_error(result.values, V), result.bound)
            assert result.num_sweeps <= 2**18

    @pytest.mark.parametrize("gamma", [0.99999, 0.999999, 1 - 1e-9, 1 - 1e-11])
    @pytest.mark.parametrize("scale", [1.0, 1e160, 1e-160])
    def test_what_was_found(self, gamma: float, scale: float) -> None:
        for model in self.FOUND:
            self.check(model.scaled(scale), gamma)

    @pytest.mark.parametrize("seed", range(12))
    @pytest.mark.parametrize("num_states", [2, 3, 6])
    def test_random_models(self, seed: int, num_states: int) -> None:
        for terminals in (0, 1):
            for p in (1.0, 0.9, 0.2):
                moves = random_moves(seed, num_states, 3, p=p, terminals=terminals)
                self.check(moves, 0.999999)
            self.check(random_tabular(seed, num_states, 3, terminals=terminals), 0.999999)

    @pytest.mark.parametrize("start", [1e9, -1e9])
    def test_from_far_away(self, start: float) -> None:
        for model in (*self.FOUND, random_tabular(0, 6, 3), random_moves(0, 6, 3, p=0.9)):
            self.check(model, 0.999999, start)

    @pytest.mark.parametrize("method", [m for m in METHODS if "aggregation" not in m])
    def test_the_default_tol_is_what_can_be_certified(self, method: str) -> None:
        for model in self.FOUND:
            result = planners.solve(model, gamma=1 - 1e-9, method=method)
            told = re.search(
                r"; tol = (\S+), since float64 cannot certify the default tol of 1e-06 here",
                result.message,
            )
            assert told is not None
            tol = float(told[1])
            assert 1e-6 < tol < 1e-2
            assert result.bound <= 1.05 * tol * np.abs(result.values).max()
            with pytest.raises(ValueError, match="below what float64 can certify"):
                planners.solve(model, gamma=1 - 1e-9, method=method, tol=1e-7)

    def test_a_policy_that_is_out_of_reach_is_given_up(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Where policies cannot be evaluated, sweeps go on as ever.
        monkeypatch.setattr(judge, "eliminate", lambda chain, gamma: None)
        model = self.FOUND[1]
        result = planners.solve(
            model, gamma=0.99999, method="value_iteration", num_iterations=10_000, tol=1e-6
        )
        assert result.status == "stopped_short"
        assert result.num_iterations == 10_000


class TestFixedNumbersOfIterations:
    def test_values_are_the_iterates(self) -> None:
        # The racing car: cool, warm, overheated; slow, fast (Berkeley's CS 188).
        model = TabularMDP.from_function(
            3,
            2,
            lambda s, a: (
                None
                if s == 2
                else ([(1.0, 0, -1.0)] if a == 0 else [(0.5, 0, -2.0), (0.5, 1, -2.0)])
                if s == 0
                else ([(0.5, 0, -1.0), (0.5, 1, -1.0)] if a == 0 else [(1.0, 2, 10.0)])
            ),
        )
        tables = dense(model)
        seen: list[NDArray[np.float64]] = []
        for k in (1, 2, 5):
            seen.clear()
            result = planners.solve(
                model,
                gamma=0.9,
                method="value_iteration",
                num_iterations=k,
                callback=lambda p: seen.append(p.values) and None,
            )
            V = np.zeros(3)
            for values in seen:
                Q = np.where(tables.mask, tables.costs + 0.9 * tables.P @ V, np.inf)
                V = Q.min(axis=1)
                V[2] = 0.0
                np.testing.assert_allclose(values, V, rtol=1e-15)
            np.testing.assert_allclose(result.values, V, rtol=1e-15)
            if k == 1:
                np.testing.assert_array_equal(result.values, [-2.0, -1.0, 0.0])
            exact, off = truth(tables, 0.9)
            assert np.abs(result.values - exact).max() <= result.bound + off


class TestTimeLimit:
    def test_it_ends_an_iteration_that_does_not(self) -> None:
        # A ring that is walked either way.
        states = np.arange(200)
        successors = np.stack([(states - 1) % 200, (states + 1) % 200], axis=1)
        costs = np.random.default_rng(0).random((200, 2))
        model = MoveMDP(successors, costs, p=0.6)
        for method, options in (
            ("modified_policy_iteration", {"inner_sweeps": 10**12}),
            ("forest_policy_iteration", {"num_sweeps": 10**12}),
        ):
            result = planners.solve(
                model, gamma=0.999, method=method, tol=1e-10, time_limit=0.05, **options
            )
            assert result.status == "stopped_short"
            assert "time limit of 0.05 s reached" in result.message
            V, off = truth(dense(model), 0.999)
            assert np.abs(result.values - V).max() <= result.bound + off


class TestClosing:
    """Small models whose policy is right long before their values are."""

    # Two states in turn, at costs of 1 and 2.
    CYCLE = MoveMDP([[1], [0]], [[1.0], [2.0]])
    GAMMA = 0.99999

    def values(self) -> NDArray[np.float64]:
        g = self.GAMMA
        return np.array([1.0 + 2.0 * g, 2.0 + g]) / ((1.0 - g) * (1.0 + g))

    def test_the_value_of_the_policy_ends_the_run(self) -> None:
        result = planners.solve(self.CYCLE, gamma=self.GAMMA, method="value_iteration")
        assert result.status == "converged"
        assert "by the exact value of a policy" in result.message
        assert result.num_sweeps == judge._FIRST_CLOSING
        assert np.abs(result.values - self.values()).max() <= result.bound <= 1e-3

    def test_also_where_float64_can_do_no_better(self) -> None:
        result = planners.solve(self.CYCLE, gamma=self.GAMMA, method="value_iteration", atol=1e-300)
        assert result.status == "stopped_short"
        assert "float64 can certify no better" in result.message
        assert result.num_sweeps == judge._FIRST_CLOSING
        assert np.abs(result.values - self.values()).max() <= result.bound <= 1e-3

    def test_it_is_tried_again_while_the_policy_is_not_the_best(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Staying costs less than a step, and nothing at the end of a way of 40 steps, which value
        # iteration learns of step by step.
        end = 40
        model = TabularMDP.from_function(
            end + 1,
            2,
            lambda s, a: (
                [(1.0, s, 0.0)] if s == end else [(1.0, s, 1.0)] if a == 0 else [(1.0, s + 1, 1.5)]
            ),
        )
        V, off = truth(dense(model), self.GAMMA)
        monkeypatch.setattr(judge, "_FIRST_CLOSING", 4)
        for name in ("value_iteration", "gauss_seidel"):
            result = planners.solve(model, gamma=self.GAMMA, method=name)
            assert result.status == "converged"
            assert np.abs(result.values - V).max() <= result.bound + off
            assert result.policy[:end].all()

    def test_large_models_are_left_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(judge, "MOST_STATES", 1)
        monkeypatch.setattr(judge, "_FIRST_CLOSING", 8)
        result = planners.solve(self.CYCLE, gamma=0.99, method="value_iteration")
        assert result.status == "converged"
        assert "exact value" not in result.message

    def test_a_number_of_iterations_is_what_it_says(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(judge, "_FIRST_CLOSING", 2)
        result = planners.solve(self.CYCLE, gamma=0.9, method="value_iteration", num_iterations=4)
        np.testing.assert_allclose(result.values[0], 1 + 0.9 * 2 + 0.81 + 0.729 * 2, rtol=1e-15)


class TestFloor:
    @pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99])
    def test_rounding_ends_what_no_exact_value_ends(
        self, gamma: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(judge, "MOST_STATES", 0)
        for model in (random_moves(0, 40, 3, p=0.9), random_tabular(0, 30, 3, terminals=0)):
            V, off = truth(dense(model), gamma)
            for method in ("value_iteration", "gauss_seidel", "policy_iteration", "HalfWay"):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setitem(METHODS, "HalfWay", Method(HalfWay, "of a test"))
                    result = planners.solve(model, gamma=gamma, method=method, atol=1e-300)
                assert result.status == "stopped_short"
                assert "float64 can certify no better" in result.message
                assert np.abs(result.values - V).max() <= result.bound + off
                assert result.bound <= 1e-13 / (1 - gamma) * np.abs(V).max()

    def test_an_optimum_of_0_is_reached_though_another_action_costs_much(self) -> None:
        # Costs of 1e30 that nobody pays do not make a bound of 1e-3 small.
        model = TabularMDP.from_matrices(
            [[[0.5, 0.5], [1, 0]], [[0.2, 0.8], [0, 1]]], costs=[[1, 1e30], [2, 3]]
        )
        V, off = truth(dense(model), 0.9)
        result = planners.solve(model, gamma=0.9, method="value_iteration")
        assert result.status == "converged"
        assert np.abs(result.values - V).max() <= result.bound + off


class Interrupted(HalfWay):
    """One whose n-th iteration Ctrl-C strikes, n from 1 on."""

    at = 1

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._count = 0

    def step(self, V: NDArray[np.float64], out: NDArray[np.float64]) -> Step:
        self._count += 1
        if self._count == self.at:
            raise KeyboardInterrupt
        return super().step(V, out)


class TestCtrlC:
    @pytest.fixture(autouse=True)
    def method(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(METHODS, "interrupted", Method(Interrupted, "for a test"))
        self._patch = monkeypatch
        self.model = random_moves(3, 40, 3, p=0.8)

    def solve(self) -> planners.SolveResult:
        return planners.solve(self.model, gamma=0.99, method="interrupted")

    @pytest.mark.parametrize("broken_off", [False, True])
    def test_within_the_first_iteration(self, broken_off: bool) -> None:
        """Where it broke off a compilation, no others are made to certify nothing."""
        self._patch.setattr("planners.kernels.compiling.was_broken_off", lambda: broken_off)
        if broken_off:
            with pytest.raises(KeyboardInterrupt):
                self.solve()
            return
        result = self.solve()
        assert (result.status, result.num_iterations) == ("interrupted", 0)

    def test_later_what_there_is_is_certified(self) -> None:
        self._patch.setattr(Interrupted, "at", 3)
        result = self.solve()
        assert (result.status, result.num_iterations) == ("interrupted", 2)
        V, off = truth(dense(self.model), 0.99)
        assert np.abs(result.values - V).max() <= result.bound + off

    @pytest.mark.parametrize("place", ["planners.judge.Judge.run", PLACE_OF_POLICIES])
    def test_a_second_one_ends_that_too(self, place: str) -> None:
        self._patch.setattr(Interrupted, "at", 3)
        calls = 0

        def strike(*arguments: Any, **options: Any) -> None:
            nonlocal calls
            calls += 1
            raise KeyboardInterrupt

        self._patch.setattr(place, strike)
        with pytest.raises(KeyboardInterrupt):
            self.solve()
        assert calls == 1
