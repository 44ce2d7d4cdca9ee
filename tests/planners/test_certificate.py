"""The bounds against exact fractions, on inputs made to be of the size of rounding.

Random starts are too far from V* for a rounding to matter: here V0 is V* and a few units in its
last place, costs are of mixed sizes, p and gamma next to their ends.  The truth is `Exact`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import planners
from aggmaze import MoveMDP, TabularMDP
from planners import judge
from planners.bellman import local_engine
from planners.certificate import LARGEST_START, LARGEST_VALUE, Certificate, Certifier, Check
from planners.engine import Engine, Sweep
from planners.solve import METHODS, Method
from planners.solvers.base import Step
from tests.planners.reference import Array, Exact, Model, exact_error, methods_for, within
from tests.planners.test_iterate import HalfWay

inf = math.inf
DENORMAL = 5e-324

GAMMAS = (0.9, 0.99, 0.999, 1 - 1e-6, 1 - 1e-9, 0.5, 0.16, 0.0)
SLIPS = (1.0, 0.9, 0.5, 1 / 3, 0.11006242610094062, 1e-3, 1e-17, 1 - 1e-16)
SCALES = (1.0, 1.0, 1e-3, 1e6, 1e-150, 1e150, 1e-300, 1e-308, 0.0)


def crafted(seed: int) -> tuple[Model, float]:
    """Return a model of up to three states, with many loops, and a discount."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    costs = rng.normal(size=shape)
    if seed % 3 == 1:
        costs *= 10.0 ** rng.integers(-12, 13, size=shape)
    elif seed % 3 == 2:
        costs = rng.choice([0.0, 1.0, -1.0, 1 + 2.0**-52], size=shape)
    costs *= rng.choice(SCALES)
    gamma = float(rng.choice(GAMMAS))
    if seed % 2:
        costs[rng.random(shape) < 0.2] = inf
        successors = rng.integers(0, shape[0], shape)
        return MoveMDP(successors, costs, p=float(rng.choice(SLIPS))).validate(), gamma
    P = rng.random((*shape, shape[0]))
    P = 10.0 ** (-16 * P) if rng.random() < 0.3 else P * (rng.random(P.shape) < 0.7)
    P[P.sum(axis=2) == 0] = 1.0
    P /= P.sum(axis=2, keepdims=True)
    if gamma < 1 - 1e-8 and rng.random() < 0.3:
        P *= 1 + rng.choice([-9e-10, 9e-10])
    ends = rng.random(shape[0]) < 0.2
    P[ends], costs[ends] = np.eye(shape[0])[ends, np.newaxis], 0.0
    # Not by a reader, which would ask what is meant by states that go on for ever.
    P = np.asarray(P)
    return TabularMDP(sp.csr_array(P.reshape(-1, P.shape[-1])), costs), gamma


def starts(V: Array, seed: int) -> Iterator[Array]:
    """Yield what differs from V by little, up, down, or both ways, and by more."""
    rng = np.random.default_rng(seed)
    unit = np.spacing(np.abs(V))
    yield V.copy()
    yield V + unit * rng.integers(1, 6, len(V))
    yield V - unit * rng.integers(1, 6, len(V))
    yield V + unit * rng.integers(-4, 5, len(V))
    yield V + np.abs(V).max() * 2.0**-52 * rng.integers(1, 2000)
    yield V * (1 + rng.choice([-1, 1]) * 10.0 ** rng.integers(-15, -2))
    yield rng.integers(-4, 5, len(V)) * DENORMAL


def floats(V: list[Fraction], model: Model) -> NDArray[np.float64]:
    values = np.array([float(v) for v in V])
    values[model.terminal] = 0.0
    return values


def cases(first: int, count: int) -> Iterator[tuple[Model, float, list[Fraction], Array]]:
    for seed in range(first, first + count):
        model, gamma = crafted(seed)
        V = Exact(model, gamma).optimum()
        for start in starts(floats(V, model), seed):
            start[model.terminal] = 0.0
            yield model, gamma, V, start


def holds(certificate: Certificate, V: list[Fraction], values: Array) -> bool:
    """Whether both ends hold, compared without rounding."""
    gaps = [v - Fraction(float(x)) for v, x in zip(V, values, strict=True)]
    low, high = certificate.low, certificate.high
    return (low == -inf or Fraction(low) <= min(gaps)) and (
        high == inf or max(gaps) <= Fraction(high)
    )


class TestInPlace:
    def test_rounding_is_not_netted_against_a_fall_of_all_values(self) -> None:
        costs = [[0.67841642735255, -0.08390269170680435]]
        model = MoveMDP([[0, 0]], costs, p=0.11006242610094062)
        result = planners.solve(
            model,
            gamma=0.99,
            method="gauss_seidel",
            num_iterations=1,
            V0=[6.7309279625286545e-15],
        )
        V = Exact(model, 0.99).optimum()
        error = exact_error(result.values, V)
        assert float(error) == pytest.approx(4.0694e-13, rel=1e-4)
        assert within(error, result.bound)

    @pytest.mark.parametrize("first", range(0, 400, 40))
    def test_both_ends_hold(self, first: int) -> None:
        for model, gamma, V, start in cases(first, 40):
            operators = local_engine(model, gamma)
            certifier = Certifier(operators)
            for reverse in (False, True):
                values = start.copy()
                for _ in range(2):
                    sweep = operators.gauss_seidel(values, reverse=reverse)
                    for anchored in (True, False):
                        assert holds(certifier.of_image(sweep, anchored), V, values)

    def test_solving_for_loops_is_allowed_for(self) -> None:
        # The backup of k entries takes k + 4 roundings of what is at most z, the sum and product of
        # the loops' probabilities, the difference from 1 and the quotient as many again.
        for k in (1, 5, 40):
            indices = np.arange(2 * k) % 2
            data = np.full(2 * k, 1 / k)
            matrix = sp.csr_array((data, indices, [0, k, 2 * k]), shape=(2, 2))
            model = TabularMDP(matrix, [[1.0], [-1.0]]).validate()
            operators = local_engine(model, 0.9)
            values = np.array([3.0, -3.0])
            for _ in range(500):  # or the residual would add to the size
                sweep = operators.gauss_seidel(values)
            z = 1.0 + 0.9 * np.abs(values).max()
            allowance = Certifier(operators).of_image(sweep).allowance
            assert allowance * (1 - 0.9) >= 2 * (k + 4) * 2.0**-53 * z

    @pytest.mark.parametrize("first", range(400, 800, 100))
    def test_results(self, first: int) -> None:
        for model, gamma, V, start in cases(first, 100):
            result = planners.solve(
                model, gamma=gamma, method="gauss_seidel", num_iterations=1, V0=start
            )
            assert within(exact_error(result.values, V), result.bound)


class TestFullSweeps:
    @pytest.mark.parametrize("first", range(0, 400, 40))
    def test_both_ends_hold_for_what_is_swept_and_for_its_image(self, first: int) -> None:
        for model, gamma, V, start in cases(first, 40):
            operators = local_engine(model, gamma)
            certifier = Certifier(operators)
            image = np.empty_like(start)
            sweep = operators.sweep(start, image)
            check = certifier.check(start, np.empty_like(start))
            for anchored in (True, False):
                assert holds(certifier.of_argument(sweep, anchored), V, start)
                assert holds(certifier.of_image(sweep, anchored), V, image)
            assert holds(check.certificate, V, start)
            shift = check.certificate.midpoint
            moved = start + shift
            moved[model.terminal] = 0.0
            assert within(exact_error(moved, V), check.bound(shift))

    def test_values_in_terminal_states_count(self) -> None:
        # Aggregation gives terminal states the value of their mega-state: nothing is anchored.
        for seed in range(200):
            model, gamma = crafted(2 * seed)
            if not model.terminal.any():
                continue
            V = Exact(model, gamma).optimum()
            start = floats(V, model)
            for value in (1.0, -1.0, 1e-17, DENORMAL):
                start[model.terminal] = value * max(1.0, np.abs(start).max())
                check = Certifier(local_engine(model, gamma)).check(start, np.empty_like(start))
                assert holds(check.certificate, V, start)
                assert within(exact_error(start, V), check.bound())

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    @pytest.mark.parametrize("gamma", [0.5, 0.99])
    def test_values_in_terminal_states_add_to_the_residual(self, gamma: float, sign: float) -> None:
        # What is left behind is off by 1, and so is the backup that it enters: 1 + gamma in all.
        model = MoveMDP([[1], [1]], [[0.0], [inf]]).to_tabular()
        V = np.array([-(1 + gamma), -1.0]) * sign
        check = Certifier(local_engine(model, gamma)).check(V, np.empty(2))
        assert check.bound() >= 1 + gamma
        assert check.policy_bound(0.0) >= 0

    def test_what_underflows_is_not_nothing(self) -> None:
        # 3 smallest numbers, halved and added up, are 4; times .16 that is 1, and 3 are 0.
        model = TabularMDP.from_matrices([[[0.5, 0.5]], [[0.5, 0.5]]], costs=[[0.0], [0.0]])
        operators = local_engine(model, 0.16)
        image = np.empty(2)
        sweep = operators.sweep(np.full(2, 3 * DENORMAL), image)
        np.testing.assert_array_equal(image, DENORMAL)
        assert holds(Certifier(operators).of_image(sweep), [Fraction(0)] * 2, image)

    def test_where_all_is_0_nothing_is_rounded(self) -> None:
        model = TabularMDP.from_matrices([[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2], costs=[[0, 1]] * 2)
        result = planners.solve(model, gamma=0.9)
        assert result.status == "converged"
        assert result.bound == result.policy_bound == 0.0


class TestEveryMethod:
    @pytest.mark.parametrize("first", range(1000, 1200, 25))
    def test_values_policies_and_all_that_callbacks_see(self, first: int) -> None:
        for case, (model, gamma, V, start) in enumerate(cases(first, 25)):
            exact = Exact(model, gamma)
            methods = methods_for(model)
            method = methods[case % len(methods)]
            seen: list[tuple[Array, float]] = []
            options: dict[str, Any] = {"num_iterations": 1 + case % 5}
            operators = local_engine(model, gamma)
            if method == "adaptive_aggregation":
                size = max(operators.max_cost, float(max(map(abs, V))), 1e-300)
                options["epsilon"] = (0.1 * size, 1e-6 * size, "shrink")[case % 3]
            if case % 2:
                options["tol"] = (1e-3, 1e-9, 1e-13)[case % 3]
            if options.get("tol", 1.0) < Certifier(operators).least_tol:
                del options["tol"]
            result = planners.solve(
                model,
                gamma=gamma,
                method=method,
                V0=start,
                certify="every",
                callback=lambda p: seen.append((p.values, p.bound)),  # noqa: B023
                **options,
            )
            for values, bound in [*seen, (result.values, result.bound)]:
                assert within(exact_error(values, V), bound)
            np.testing.assert_array_equal(seen[-1][0], result.values)
            assert seen[-1][1] == result.bound == result.history.bound[-1]
            achieved = exact.value([int(a) for a in result.policy])
            loss = max(x - y for x, y in zip(achieved, V, strict=True))
            assert within(loss, result.policy_bound)
            if "tol" in options:
                met = result.bound <= options["tol"] * np.abs(result.values).max()
                assert (result.status == "converged") == met
            else:
                assert result.status == "completed"


class TestEnds:
    """The smallest models and the ends of what discounts and values may be."""

    MODELS = (
        MoveMDP([[0]], [[inf]]),
        MoveMDP([[0, 1], [1, 0]], [[inf, inf], [inf, inf]], p=0.5),
        MoveMDP([[0]], [[1.0]]),
        MoveMDP([[0, 0]], [[-1.0, 3.0]], p=0.2),
        TabularMDP.from_matrices([[[1.0]]], costs=[[0.0]]),
        TabularMDP.from_matrices([[[1.0]]], costs=[[-0.1]]),
        TabularMDP.from_matrices([[[0.1, 0.9]], [[0.0, 1.0]]], costs=[[0.3], [0.0]]),
    )

    @pytest.mark.parametrize("gamma", [0.0, 1e-300, 0.5, 1 - 1e-9, float(np.nextafter(1, 0))])
    @pytest.mark.parametrize("model", MODELS)
    def test_bounds_hold(self, model: Model, gamma: float) -> None:
        V = Exact(model, gamma).optimum()
        for method, V0 in itertools.product(methods_for(model), (None, 7.0)):
            start = None if V0 is None else np.full(model.num_states, V0)
            result = planners.solve(model, gamma=gamma, method=method, num_iterations=2, V0=start)
            assert within(exact_error(result.values, V), result.bound)
            assert result.status == "completed"
            if model.terminal.all():
                assert result.bound == 0.0

    @pytest.mark.parametrize("size", [1.0, -1.0])
    @pytest.mark.parametrize("gamma", [0.5, 0.9, 0.999])
    def test_the_largest_costs_that_are_taken(self, gamma: float, size: float) -> None:
        rng = np.random.default_rng(0)
        most = size * LARGEST_START * (1 - gamma) * (1 - 1e-12)
        successors = np.array([[1, 2], [2, 3], [0, 3], [0, 0]])
        costs = most * rng.choice([0.9, 1.0], size=(4, 2))
        costs[3] = inf
        for p in (1.0, 0.7):
            model = MoveMDP(successors, costs, p=p)
            for each in (model, model.to_tabular()):
                V = Exact(each, gamma).optimum()
                for method in methods_for(each):
                    shrink = {"epsilon": "shrink"} if method == "adaptive_aggregation" else {}
                    result = planners.solve(each, gamma=gamma, method=method, **shrink)
                    assert within(exact_error(result.values, V), result.bound)
                    assert result.status == "converged", method

    def test_bounds_of_moved_values(self) -> None:
        rng = np.random.default_rng(1)
        for _ in range(2000):
            x = float(rng.normal() * 10.0 ** rng.integers(-3, 3))
            low, high = np.sort(rng.normal(size=2) * 10.0 ** rng.integers(-18, 3, size=2))
            shift = float(rng.choice([(low + high) / 2, low, high, rng.normal()]))
            check = Check(Certificate(float(low), float(high), 0.0), abs(x), 0.0, 0.5)
            for gap in (low, high):  # V* - V
                error = abs(Fraction(float(gap)) + Fraction(x) - Fraction(x + shift))
                assert within(error, check.bound(shift))


class TestNoNumbers:
    """Item by item: what is no number, or too large to compute with, leaves nothing known."""

    def test_costs_that_overflow_are_refused(self) -> None:
        model = MoveMDP(
            [[1, 1], [2, 2], [2, 2]], [[1.5e308] * 2, [1.0, 2.0], [inf, inf]]
        ).validate()
        for method in ("auto", *methods_for(model)):
            with pytest.raises(
                ValueError, match=r"costs .* have sizes up to 1.5e\+308, .* float64"
            ):
                planners.solve(model, gamma=0.5, method=method)
        with pytest.raises(ValueError, match="at most 5e"):
            planners.solve(model.to_tabular(), gamma=0.5)

    def test_so_are_those_of_a_grid(self) -> None:
        states = np.arange(9).reshape(3, 3)
        padded = np.pad(states, 1, constant_values=-1)
        successors = np.stack(
            [padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]], axis=-1
        ).reshape(9, 4)
        model = MoveMDP(successors, np.where(successors < 0, inf, 1e303), p=0.9).validate()
        for method in methods_for(model):
            with pytest.raises(ValueError, match=r"sizes up to 1e\+303"):
                planners.solve(model, gamma=0.999999, method=method)

    @pytest.mark.parametrize("bad", [math.nan, inf, -inf, 1.1 * LARGEST_VALUE, -1.7e308])
    @pytest.mark.parametrize("layout", ["moves", "table"])
    def test_one_bad_value_leaves_nothing_known(self, layout: str, bad: float) -> None:
        model: Model = MoveMDP([[1, 2], [2, 0], [0, 1], [3, 3]], [[1.0, 2.0]] * 3 + [[inf] * 2])
        if layout == "table":
            model = model.to_tabular()
        for gamma, state in itertools.product((0.0, 0.5, 1 - 1e-9), range(4)):
            V = np.ones(4)
            V[state] = bad
            with np.errstate(all="ignore"):
                check = Certifier(local_engine(model, gamma)).check(V, np.empty(4))
            assert check.bound() == check.bound(check.certificate.midpoint) == inf
            assert check.policy_bound(0.0) == inf
            assert check.certificate.midpoint == 0.0

    def test_extremes_that_are_no_numbers(self) -> None:
        certifier = Certifier(local_engine(MoveMDP([[0, 0]], [[1.0, 2.0]], p=0.5), 0.5))
        nothing = (inf, -inf)  # what a sweep over NaN alone has seen
        for low, high in (nothing, (math.nan, math.nan), (-inf, inf), (0.0, math.nan)):
            for in_place, anchored in itertools.product((False, True), repeat=2):
                sweep = Sweep(low, high, low, high, in_place=in_place)
                found = [certifier.of_image(sweep, anchored)]
                if not in_place:
                    found.append(certifier.of_argument(sweep, anchored))
                for certificate in found:
                    assert certificate.half_width == certificate.radius == inf

    @pytest.mark.parametrize("layout", ["moves", "table"])
    def test_they_are_refused_at_once(self, layout: str) -> None:
        slips = MoveMDP([[1, 0], [1, 1]], [[1e308] * 2, [inf, inf]], p=0.9)
        small = MoveMDP([[1, 0], [1, 1]], [[1.0] * 2, [inf, inf]], p=0.9)
        for model, V0, what in (
            (slips, None, r"costs \(or rewards\) have sizes up to 1e\+308"),
            (small, [1.7e308, 0.0], r"V0 has sizes up to 1.7e\+308"),
        ):
            each = model if layout == "moves" else model.to_tabular()
            for method in methods_for(each):
                with pytest.raises(ValueError, match=what + ".*at gamma = 0.95.*at most 5e"):
                    planners.solve(each, gamma=0.95, method=method, V0=V0)
        # Close to 1 less is possible, and 0 is always.
        with pytest.raises(ValueError, match=r"at most 1e\+276"):
            planners.solve(small.scaled(2e276), gamma=1 - 1e-9)
        free = MoveMDP([[1], [0]], [[0.0], [0.0]])
        assert planners.solve(free, gamma=1 - 1e-9).bound == 0.0

    def test_scaling_beyond_the_largest_number_is_refused(self) -> None:
        model = MoveMDP([[1, 0], [1, 1]], [[1e300, 1.0], [inf, inf]])
        costly = TabularMDP.from_matrices([[[0.0, 1.0]], [[0.0, 1.0]]], costs=[[-1e300], [0.0]])
        for each in (model, model.to_tabular(), costly):
            with pytest.raises(
                ValueError,
                match=r"cost -?1e\+300 times factor 10000000000.0 is too large for float64",
            ):
                each.scaled(1e10)
            assert not each.scaled(1e8).terminal[0]
        bumps = MoveMDP([[1, 0], [1, 1]], [[1.0, 1.0], [inf, inf]], bump_cost=1e300)
        with pytest.raises(
            ValueError, match=r"bump_cost 1e.300 times factor .* is too large for float64"
        ):
            bumps.scaled(1e10)


class TestPolicyBound:
    def test_sums_of_rows_above_1_count(self) -> None:
        """Five states: stay for nothing, or go where a step costs 1, and 1 + x in its twin.

        V = (0, 0, 1, 1, 0) after a sweep is off by up to 1 / (1 - gamma sigma), sigma the sum of a
        row; so what costs less than x more in a step counts as equal, and the twin is nearer to the
        terminal state.  So from state 1 the policy pays 1 + x for ever where nothing is due.
        """
        gamma, sigma = 1 - 1e-8, 1 + 9e-10
        slack = (1 - gamma) * gamma * sigma / (1 - gamma * sigma)
        x = (1 - 1e-3) * slack
        to = sigma * np.eye(5)
        P = np.array(
            [
                [to[0], to[0], to[0]],
                [to[0], to[2], to[0]],
                [to[2], to[3], to[2]],
                [to[2], to[3], to[4]],
                [to[4], to[4], to[4]],
            ]
        )
        costs = np.array(
            [[0, 0, 0], [0, 0, 0], [1, 1 + x, 1], [1, 1 + x, 1000], [0, 0, 0]], dtype=float
        )
        terminal = [False, False, False, False, True]
        model = TabularMDP.from_matrices(P, costs=costs, terminal=terminal)
        result = planners.solve(model, gamma=gamma, method="value_iteration", num_iterations=1)
        np.testing.assert_array_equal(result.policy[1:4], [1, 1, 1])
        exact = Exact(model, gamma)
        V = exact.optimum()
        achieved = exact.value([int(a) for a in result.policy])
        loss = achieved[1] - V[1]
        assert within(exact_error(result.values, V), result.bound)
        assert within(loss, result.policy_bound)
        # Nearly all of it is lost: dividing by 1 - gamma where 1 - gamma sigma belongs was too few.
        assert loss > Fraction(0.999 * result.policy_bound)
        assert float(loss) > 1.03 * (result.bound + slack / (1 - gamma))


class TestUntakenActions:
    @pytest.mark.parametrize("V0", [None, 1e9, 1e25])
    @pytest.mark.parametrize("method", ["value_iteration", "gauss_seidel", "policy_iteration"])
    def test_an_action_that_nobody_takes_does_not_end_the_run(
        self, method: str, V0: float | None
    ) -> None:
        P = [[[0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0], [0.3, 0.7]]]
        model = TabularMDP.from_matrices(P, costs=[[1.0, 1e30], [2.0, 1e30]])
        V = Exact(model, 0.9).optimum()
        start = None if V0 is None else np.full(2, V0)
        result = planners.solve(model, gamma=0.9, method=method, tol=1e-12, V0=start)
        assert result.status == "converged", result.message
        assert within(exact_error(result.values, V), result.bound)
        assert result.bound <= 1e-12 * np.abs(result.values).max()

    def test_where_nothing_is_due_an_end_is_found(self) -> None:
        # Nothing is relative to V* = 0, and from 1e9 down to the smallest number is a long way.
        model = TabularMDP.from_matrices(
            [[[0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0], [0.3, 0.7]]], costs=[[0.0, 1.0], [0.0, 1.0]]
        )
        result = planners.solve(model, gamma=0.999, method="value_iteration", V0=[1e9, -1e9])
        assert np.abs(result.values).max() <= result.bound <= 1e-20

    @pytest.mark.parametrize("gamma", [0.99999, 1 - 1e-9])
    def test_the_scale_is_as_good_as_float64_allows(self, gamma: float) -> None:
        P = [[[0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0], [0.3, 0.7]]]
        moves = MoveMDP([[1, 0], [2, 1], [0, 0]], [[1.0, 2.0], [1.0, 3.0], [2.0, 2.5]], p=0.9)
        for model in (TabularMDP.from_matrices(P, costs=[[1.0, 3.0], [2.0, 0.5]]), moves):
            scaled, scale = planners.normalized(model, gamma)
            largest = max(map(abs, Exact(scaled, gamma).optimum()))
            least = Certifier(local_engine(model, gamma)).least_tol
            assert float(largest) == pytest.approx(100, rel=max(1e-10, 9 * least))
            assert scale > 0

    def test_there_is_no_scale_where_nothing_can_be_certified(self) -> None:
        with pytest.raises(ValueError, match="float64 can certify nothing"):
            planners.normalized(MoveMDP([[0, 0]], [[1.0, 2.0]], p=0.5), float(np.nextafter(1, 0)))


class TestExactRows:
    """Where weights of moves would cancel, and where sums of rows decide."""

    @pytest.mark.parametrize("p", [1e-17, 1e-9, 0.3, 1 / 3, 0.7, 1 - 1e-16, 1.0])
    @pytest.mark.parametrize("num_moves", [1, 2, 3, 4])
    def test_probabilities_are_those_of_the_definition(self, p: float, num_moves: int) -> None:
        successors = np.arange(num_moves)[np.newaxis].repeat(5, axis=0)
        costs = np.random.default_rng(0).normal(size=successors.shape) * 10.0 ** np.arange(
            num_moves
        )
        model = MoveMDP(successors, costs, p=p).validate()
        weights = np.random.default_rng(1).dirichlet(np.ones(num_moves), size=5)
        weights[0] = np.eye(num_moves)[0]
        weights[1, :2] = (1.0, 1e-17)[:num_moves]
        weights[1, 2:] = 0.0
        exact_p = Fraction(p) if num_moves > 1 else Fraction(1)
        slip = (1 - exact_p) / max(1, num_moves - 1)

        def expected(w: Array) -> list[Fraction]:
            shares = [Fraction(float(x)) for x in w]
            return [exact_p * x + slip * (sum(shares) - x) for x in shares]

        rows = model.policy_rows(0, 5, weights)
        found = rows.transitions.toarray()
        table = model.to_tabular().transitions.toarray().reshape(5, num_moves, 5)
        for s in range(5):
            for m, probability in enumerate(expected(weights[s])):
                assert found[s, m] == pytest.approx(float(probability), rel=1e-15, abs=0)
            for a in range(num_moves):
                for m, probability in enumerate(expected(np.eye(num_moves)[a])):
                    assert table[s, a, m] == pytest.approx(float(probability), rel=1e-15, abs=0)

    def test_a_move_that_nearly_never_happens(self) -> None:
        model = MoveMDP([[1, 0, 1], [1, 1, 1]], [[1e12, 1.0, 1.0], [inf] * 3], p=1e-17)
        for gamma in (0.3, 0.99):
            found = planners.evaluate(model, [0, 0], gamma)
            V = Exact(model, gamma).value([0, 0])
            assert found[0] == pytest.approx(float(V[0]), rel=1e-14)
            assert np.abs(found).max() <= 2

    @pytest.mark.parametrize("gap", [1e-2, 1e-9, 1e-12, 1e-15, 2.0**-53])
    def test_values_of_policies_whatever_gamma(self, gap: float) -> None:
        gamma = 1 - gap
        rng = np.random.default_rng(0)
        for terminals in (0, 1):
            costs = rng.random((5, 4))
            costs[5 - terminals :] = inf
            model = MoveMDP(rng.integers(0, 5, (5, 4)), costs, p=0.7)
            policy = rng.integers(0, 4, 5)
            V = Exact(model, gamma).value([int(a) for a in policy])
            found = planners.evaluate(model, policy, gamma)
            np.testing.assert_allclose(found, [float(v) for v in V], rtol=1e-14, atol=0)
            drawn = planners.evaluate(model, np.full((5, 4), 0.25), gamma)
            P = np.eye(5)[model.successors].mean(axis=1)
            P[model.terminal] = np.eye(5)[model.terminal]
            means = np.where(model.terminal, 0.0, costs.mean(axis=1))
            mean = TabularMDP.from_matrices(P[:, np.newaxis], costs=means)
            V = Exact(mean, gamma).value([0] * 5)
            np.testing.assert_allclose(drawn, [float(v) for v in V], rtol=1e-14, atol=0)


class TestRunsEnd:
    @pytest.mark.parametrize("gamma", [0.99999, 1 - 1e-9])
    @pytest.mark.parametrize("method", ["value_iteration", "gauss_seidel"])
    def test_a_start_far_off_is_not_waited_for(self, method: str, gamma: float) -> None:
        # The greedy policy of what is far off is not the best one for hundreds of thousands of
        # sweeps: its value is improved on until it is.
        model = MoveMDP(
            [[3, 2, 2], [2, 2, 0], [3, 0, 2], [3, 2, 3]],
            [
                [0.5938584, 0.45245401, 0.43557163],
                [0.77741343, inf, inf],
                [0.54939241, inf, inf],
                [inf, 0.20856778, inf],
            ],
        )
        V = Exact(model, gamma).optimum()
        result = planners.solve(
            model, gamma=gamma, method=method, V0=[15035.0, -29049.0, -42094.0, -28377.0]
        )
        assert result.status == "converged"
        assert within(exact_error(result.values, V), result.bound)
        assert result.num_sweeps <= 4096

    def test_rounding_of_rows_near_1_ends_it(self) -> None:
        # gamma sigma is ten times as near to 1 as gamma: no bound gets down to what gamma allows.
        sigma, gamma = 1 + 9e-10, 1 - 1e-9
        P = sigma * np.array([[[0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0], [0.25, 0.75]]])
        model = TabularMDP.from_matrices(P, costs=[[1.0, 3.0], [2.0, 0.5]])
        result = planners.solve(model, gamma=gamma, method="value_iteration", atol=1.0)
        assert result.status == "stopped_short"
        assert "float64 can certify no better" in result.message
        assert within(exact_error(result.values, Exact(model, gamma).optimum()), result.bound)
        with pytest.raises(ValueError, match="below what float64 can certify"):
            planners.solve(model, gamma=gamma, tol=0.95)


class Boasts:
    """Value iteration that makes the residuals of its sweeps out to be a thousandth."""

    def __init__(self, operators: Engine) -> None:
        self._engine = operators

    def step(self, V: Array, out: Array) -> Step:
        sweep = self._engine.sweep(V, out)
        low, high = sweep.residual_low / 1000, sweep.residual_high / 1000
        return Step(len(V), replace(sweep, residual_low=low, residual_high=high), num_sweeps=1)


class TestBoundsOfIterations:
    """What callbacks see is bounded by what is known of those very values."""

    def test_a_sweep_of_the_values_counts_for_more_than_a_claim(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(METHODS, "boasts", Method(Boasts, "of a test"))
        model = MoveMDP([[0], [1]], [[1.0], [-1.0]])
        V = Exact(model, 0.9).optimum()
        checked = 0

        def watch(progress: planners.Progress) -> None:
            # In the first iterations not even the claim is good enough, and nothing is checked.
            nonlocal checked
            if checked or within(exact_error(progress.values, V), progress.bound):
                assert within(exact_error(progress.values, V), progress.bound)
                checked += 1

        result = planners.solve(model, gamma=0.9, method="boasts", tol=1e-2, callback=watch)
        assert result.status == "converged"
        assert within(exact_error(result.values, V), result.bound)
        assert checked > 20

    def test_an_attempt_to_close_leaves_no_trace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(METHODS, "half_way", Method(HalfWay, "of a test"))
        monkeypatch.setattr(judge, "_FIRST_CLOSING", 1)
        monkeypatch.setattr(judge, "eliminate", lambda *_, **__: np.zeros(2))
        model = MoveMDP([[0], [1]], [[1.0], [2.0]])
        V = Exact(model, 0.9).optimum()
        found: list[bool] = []
        result = planners.solve(
            model,
            gamma=0.9,
            method="half_way",
            tol=1e-6,
            certify="every",
            callback=lambda p: found.append(within(exact_error(p.values, V), p.bound)),
        )
        assert result.status == "converged"
        assert len(found) > 100
        assert all(found)
