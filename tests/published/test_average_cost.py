"""Published answers of problems that go on for ever, by what a step costs in the mean."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import planners
from aggmaze import TabularMDP
from tests.published.printed import assert_printed


@pytest.fixture(params=["auto", "policy_iteration", "value_iteration"])
def method(request: pytest.FixtureRequest) -> str:
    """Return each method in turn."""
    return str(request.param)


def toymaker() -> TabularMDP:
    """Return the model: a toy in favour or not; go on as it is, or advertise and do research."""
    probabilities = np.array([[[0.5, 0.5], [0.8, 0.2]], [[0.4, 0.6], [0.7, 0.3]]])
    rewards = np.array([[[9.0, 3.0], [4.0, 4.0]], [[3.0, -7.0], [1.0, -19.0]]])
    return TabularMDP.from_matrices(probabilities, rewards=rewards, order="sas", terminal=[])


def test_toymaker(method: str) -> None:
    """Advertise and do research: 2 a week; a toy in favour is worth 10 more than one that is not.

    Howard, "Dynamic Programming and Markov Processes" (1960), chapter 4; the policy that does
    nothing gains 1 (chapter 2).
    """
    model = toymaker()
    result = planners.solve(model, objective=planners.AverageCost(), method=method)
    for state in (0, 1):
        assert_printed(result, -2.0, at=state)
    np.testing.assert_array_equal(result.policy, [1, 1])
    assert result.bias is not None
    assert result.bias[1] - result.bias[0] == pytest.approx(10.0, abs=1e-5)
    nothing = planners.evaluate(model, [0, 0], objective=planners.AverageCost())
    np.testing.assert_allclose(nothing, [-1.0, -1.0], rtol=1e-12, atol=0)


def taxicab() -> TabularMDP:
    """Return the model: three towns; cruise, wait at a stand, or (not in town 1) for a call."""
    probabilities = [
        [[1 / 2, 1 / 4, 1 / 4], [1 / 16, 3 / 4, 3 / 16], [1 / 4, 1 / 8, 5 / 8]],
        [[1 / 2, 0, 1 / 2], [1 / 16, 7 / 8, 1 / 16], [0, 1, 0]],
        [[1 / 4, 1 / 4, 1 / 2], [1 / 8, 3 / 4, 1 / 8], [3 / 4, 1 / 16, 3 / 16]],
    ]
    rewards = [
        [[10, 4, 8], [8, 2, 4], [4, 6, 4]],
        [[14, 0, 18], [8, 16, 8], [0, 0, 0]],
        [[10, 2, 8], [6, 4, 2], [4, 0, 8]],
    ]
    mask = np.ones((3, 3), dtype=bool)
    mask[1, 2] = False  # there are no calls by radio in town 2
    return TabularMDP.from_matrices(
        np.array(probabilities),
        rewards=np.array(rewards, dtype=float),
        order="sas",
        action_mask=mask,
        terminal=[],
    )


def test_taxicab(method: str) -> None:
    """Wait at the stand in every town: 13.34 a trip, relative values -1.18, 12.66 and 0.

    Howard (1960), chapter 5, table 5.1 and the iterations after it: gains of 9.20, 13.15 and 13.34.
    """
    model = taxicab()
    average = planners.AverageCost()
    result = planners.solve(model, objective=average, method=method)
    for state in range(3):
        assert_printed(result, -13.34, at=state, digits=2)
        assert_printed(result, float(Fraction(-1588, 119)), at=state)
    np.testing.assert_array_equal(result.policy, [1, 1, 1])
    assert result.bias is not None
    relative = result.bias[2] - result.bias
    np.testing.assert_allclose(relative, [-1.18, 12.66, 0.0], rtol=0, atol=0.005)
    for policy, gain in (([0, 0, 0], 9.20), ([0, 1, 1], 13.15)):
        np.testing.assert_allclose(
            planners.evaluate(model, policy, objective=average), -gain, rtol=0, atol=0.005
        )


def maintenance() -> TabularMDP:
    """Return the model: five conditions and a second day of an enforced repair."""
    wear = [
        [0.9, 0.1, 0.0, 0.0, 0.0],
        [0.0, 0.8, 0.1, 0.05, 0.05],
        [0.0, 0.0, 0.7, 0.1, 0.2],
        [0.0, 0.0, 0.0, 0.5, 0.5],
    ]
    preventive = {1: 7.0, 2: 7.0, 3: 5.0}
    failed, second_day = 4, 5

    def fn(condition: int, action: int) -> list[tuple[float, int, float, bool]] | None:
        if condition == failed:
            return [(1.0, second_day, 10.0, False)] if action == 1 else None
        if condition == second_day:
            return [(1.0, 0, 0.0, False)] if action == 1 else None
        if action == 0:
            return [(p, after, 0.0, False) for after, p in enumerate(wear[condition]) if p]
        if condition not in preventive:
            return None
        return [(1.0, 0, preventive[condition], False)]

    return TabularMDP.from_function(6, 2, fn)


def test_maintenance(method: str) -> None:
    """A machine that wears out: .4338 a day, with repairs in condition 4 and of failures only.

    Tijms, "A First Course in Stochastic Models" (2003), examples 6.1.1 and 6.3.1: policy iteration
    goes from .5128, without preventive repairs, over .4462, with repairs in conditions 3 and 4.
    """
    model = maintenance()
    average = planners.AverageCost()
    result = planners.solve(model, objective=average, method=method)
    for state in range(6):
        assert_printed(result, 0.4338, at=state, digits=4)
    np.testing.assert_array_equal(result.policy, [0, 0, 0, 1, 1, 1])
    for policy, gain in (([0, 0, 0, 0, 1, 1], 0.5128), ([0, 0, 1, 1, 1, 1], 0.4462)):
        np.testing.assert_allclose(
            planners.evaluate(model, policy, objective=average), gain, rtol=0, atol=0.5e-4
        )


def test_two_states_and_two_actions(method: str) -> None:
    """A machine that runs or is mended: 94/13 a day.

    By hand, as Howard (1960), chapter 4, has it.  New it pays 10 and is worn the next day with
    probability .3; mending a worn one costs 2: in 1 + .3 days 10 - .3 * 2 is earned.  Worn it would
    pay 6 for ever, and mended every day 4.
    """
    model = TabularMDP.from_matrices(
        np.array([[[0.7, 0.3], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]),
        rewards=np.array([[10.0, 4.0], [6.0, -2.0]]),
        order="sas",
        terminal=[],
    )
    average = planners.AverageCost()
    result = planners.solve(model, objective=average, method=method)
    for state in (0, 1):
        assert_printed(result, float(Fraction(-94, 13)), at=state)
    np.testing.assert_array_equal(result.policy, [0, 1])
    for policy, gains in (([0, 0], [6, 6]), ([1, 1], [4, 4]), ([1, 0], [4, 6])):
        np.testing.assert_allclose(
            -planners.evaluate(model, policy, objective=average), gains, rtol=1e-12, atol=0
        )


def test_two_states_of_putermans_first_example(method: str) -> None:
    """Every policy ends in the state that pays -1: a gain of -1 from both states.

    Puterman, "Markov Decision Processes" (1994), the model of section 3.1.1 (figure 3.1.1): state 1
    pays 5 and stays with probability 1/2, or pays 10 and leaves; state 2 pays -1 for ever.  What
    leads there is worth 12 by the first action (5 + 5/2 + ... is 10, and two days that do not pay
    -1), and 11 by the second: by the bias the first one is better, and both are of the least gain.
    """
    model = TabularMDP.from_matrices(
        np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]),
        rewards=np.array([[5.0, 10.0], [-1.0, -1.0]]),
        order="sas",
        terminal=[],
    )
    average = planners.AverageCost()
    result = planners.solve(model, objective=average, method=method)
    for state in (0, 1):
        assert_printed(result, 1.0, at=state)
    for policy in ([0, 0], [1, 0]):
        np.testing.assert_allclose(
            planners.evaluate(model, policy, objective=average), [1.0, 1.0], rtol=1e-12, atol=0
        )
    assert result.bias is not None
    worth = {0: 12.0, 1: 11.0}[int(result.policy[0])]
    assert result.bias[1] - result.bias[0] == pytest.approx(worth, abs=1e-5)


def test_ring_of_three_states(method: str) -> None:
    """A ring of three, 1 on arrival in A: 1/3 a step; differential values -1/3, 0 and 1/3.

    Sutton and Barto, "Reinforcement Learning", second edition (2018), exercise 10.7: of period 3,
    so that values by steps do not converge.
    """
    rewards = [0.0, 0.0, 1.0]
    model = TabularMDP.from_function(
        3, 1, lambda state, action: [(1.0, (state + 1) % 3, -rewards[state], False)]
    )
    result = planners.solve(model, objective=planners.AverageCost(), method=method)
    for state in range(3):
        assert_printed(result, -1 / 3, at=state)
    assert result.bias is not None
    differential = result.bias.mean() - result.bias
    np.testing.assert_allclose(differential, [-1 / 3, 0.0, 1 / 3], rtol=0, atol=1e-6)


def test_two_ends_of_different_gain(method: str) -> None:
    """Where states do not lead to each other the gain is one of each state.

    By hand, with the equations of Puterman (1994), section 9.1: g = max P g comes first, and only
    then the rewards.  From state 0 one may be paid 1000 and go to state 1, which pays 1 for ever,
    or pay 100 and go to state 2, which pays 3 for ever, with probability 1/4, else to 1: 1/4 * 3 +
    3/4 * 1 = 3/2.  From state 1 one may be paid 50 and end in state 3, where the gain is 0.
    """

    def fn(state: int, action: int) -> list[tuple[float, int, float, bool]] | None:
        if state == 0 and action == 0:
            return [(1.0, 1, -1000.0, False)]
        if state == 0:
            return [(0.25, 2, 100.0, False), (0.75, 1, 100.0, False)]
        if action == 1:
            return [(1.0, 3, -50.0, True)] if state == 1 else None
        return None if state == 3 else [(1.0, state, {1: -1.0, 2: -3.0}[state], False)]

    result = planners.solve(
        TabularMDP.from_function(4, 2, fn), objective=planners.AverageCost(), method=method
    )
    for state, gain in enumerate((-1.5, -1.0, -3.0, 0.0)):
        assert_printed(result, gain, at=state)
    np.testing.assert_array_equal(result.policy[:3], [1, 0, 0])
