"""`aggmaze.discretize`: problems of one's own, Gymnasium's, what is refused, and what solves."""

from __future__ import annotations

import math
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

import aggmaze
import planners
from aggmaze.cells import Cells, Corners

BOX: dict[str, Any] = {"low": (-1.0, -1.0), "high": (1.0, 1.0), "bins": (5, 5)}


def slide(points: NDArray[np.float64], push: NDArray[np.float64]) -> tuple[Any, Any, Any]:
    """Go by a push of 0.3 at most along the first axis; it costs 1 until 0.9 is reached."""
    after = points.copy()
    after[:, 0] += push
    return after, -1.0, after[:, 0] >= 0.9


def still(points: NDArray[np.float64], actions: NDArray[Any]) -> tuple[Any, Any]:
    return points, 0.0


class Slide(gym.Env[Any, Any]):
    """The same as an environment, which shows its point doubled."""

    observation_space = gym.spaces.Box(-9.0, 9.0, (2,), np.float64)
    action_space = gym.spaces.Box(-0.3, 0.3, (), np.float64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._point = np.array([[self.np_random.uniform(-1, 0), 0.5]])
        return 2 * self._point[0], {}

    def step(self, action: Any) -> Any:
        self._point, reward, over = slide(self._point, np.array([action]))
        return 2 * self._point[0], reward, bool(over[0]), False, {}


def sliding(method: str = "average", **options: Any) -> aggmaze.Discretization:
    return aggmaze.discretize(
        slide,
        **{**BOX, "bins": (40, 1), **options},
        actions=[-0.3, 0.0, 0.3],
        start=((-1.0, 0.5), (0.0, 0.5)),
        point_of=lambda shown: shown / 2,
        method=method,
    )


class TestOwn:
    @pytest.mark.parametrize("method", ["average", "interpolate"])
    def test_from_a_step_to_a_policy_that_runs(self, method: str) -> None:
        found = sliding(method)
        result = planners.solve(found.model, gamma=1)
        assert found.model.num_actions == 3
        assert found.problem.action_names == ("-0.3", "0", "0.3")
        assert found.method == method
        assert planners.as_model(found) is found.model
        assert found.action_of(2) == 0.3
        walked = planners.rollout(Slide(), found.policy(result.policy), episodes=50, seed=0)
        assert walked.successes.all()
        assert set(walked.lengths.tolist()) <= {3, 4, 5, 6, 7}
        wrapped = aggmaze.Discretized(Slide(), found)
        again = planners.rollout(wrapped, result.policy, episodes=50, seed=0)
        assert again.returns.tolist() == walked.returns.tolist()

    def test_it_is_the_shortest_way_that_is_found(self) -> None:
        """From 0, three pushes: 0.3, 0.6, 0.9."""
        found = sliding("interpolate", bins=(201, 1))
        values = planners.solve(found.model, gamma=1).values
        for place, steps in ((0.89, 1), (0.61, 1), (0.55, 2), (0.1, 3), (-0.99, 7)):
            assert values[found.state_of([2 * place, 0.0])] == pytest.approx(steps, abs=0.35)

    def test_indices_where_actions_are_a_number(self) -> None:
        seen: list[Any] = []

        def step(points: Any, actions: Any) -> Any:
            seen.append(set(actions.tolist()))
            return still(points, actions)

        found = aggmaze.discretize(step, **BOX, actions=4)
        assert set().union(*seen) == {0, 1, 2, 3}
        assert found.action_of(3) == 3
        assert type(found.action_of(3)) is int
        assert found.problem.action_names == ("0", "1", "2", "3")
        assert not found.model.terminal.any()
        assert found.model.num_states == 25

    def test_actions_of_several_numbers(self) -> None:
        def step(points: Any, pushes: Any) -> Any:
            assert pushes.shape == points.shape
            return points + pushes, 0.0

        pushes = [[0.3, 0.0], [0.0, 0.5]]
        found = aggmaze.discretize(step, **BOX, actions=pushes, action_names=["right", "up"])
        assert found.action_of(1).tolist() == [0.0, 0.5]
        assert found.problem.action_names == ("right", "up")

    def test_an_end_by_a_function_of_its_own(self) -> None:
        found = aggmaze.discretize(
            lambda points, push: (points + push[:, np.newaxis], -1.0),
            **BOX,
            actions=[-0.5, 0.5],
            terminated=lambda points: points[:, 1] > 0.8,
        )
        assert np.flatnonzero(found.model.terminal).tolist() == [25]
        assert found.problem.name == "the step"
        assert (found.model.transitions[:, [25]].toarray()[:-2] > 0).any()

    def test_starts_all_over_by_default(self) -> None:
        found = aggmaze.discretize(still, **BOX, actions=1, name="nothing")
        np.testing.assert_allclose(found.model.initial, 0.04)

    def test_points_that_are_chosen_move(self) -> None:
        """A typical step is 0.3 of cells 2 wide: the outermost of 5 points is 0.2 from the edge."""
        found = aggmaze.discretize(
            slide, low=(-4, -1), high=(4, 1), bins=(4, 3), actions=[-0.3, 0.3]
        )
        assert found.sub_points[0] >= 4
        assert found.cells.widths[0] / (2 * found.sub_points[0]) < 0.3
        assert isinstance(found.cells, Cells)

    def test_wrapping_angles(self) -> None:
        def turn(points: Any, actions: Any) -> Any:
            return points + 1.0, 0.0

        found = aggmaze.discretize(
            turn, low=[-math.pi], high=[math.pi], bins=[8], actions=1, wrap=[0], sub_points=4
        )
        chain = found.model.transitions.toarray()
        # The same from every cell.
        for state in range(8):
            np.testing.assert_array_equal(chain[state], np.roll(chain[0], state))


class TestLookahead:
    def test_it_weighs_where_steps_end(self) -> None:
        found = sliding("interpolate", bins=(21, 1))
        result = planners.solve(found.model, gamma=1)
        act = found.lookahead(result.values, 1)
        assert act([0.0, 1.0]) == 0.3
        assert act([1.9, 1.0]) != -0.3
        walked = planners.rollout(Slide(), act, episodes=50, seed=0)
        assert walked.successes.all()
        # As few steps as there can be, from each start.
        env = Slide()
        starts = [env.reset(seed=0)[0][0] / 2] + [env.reset()[0][0] / 2 for _ in range(49)]
        walked = planners.rollout(Slide(), act, episodes=1, seed=0)
        assert walked.lengths[0] == math.ceil((0.9 - starts[0]) / 0.3)

    def test_of_values_that_jump_there_is_none(self) -> None:
        found = sliding()
        with pytest.raises(ValueError, match="lookahead needs method='interpolate'"):
            found.lookahead(np.zeros(41), 0.9)

    def test_bad_arguments_are_named(self) -> None:
        found = sliding("interpolate")
        with pytest.raises(ValueError, match=r"values must have shape \(41,\), got \(3,\)"):
            found.lookahead(np.zeros(3), 0.9)
        with pytest.raises(ValueError, match="gamma must be in"):
            found.lookahead(np.zeros(41), 1.5)


class TestStates:
    @pytest.mark.parametrize("method", ["average", "interpolate"])
    def test_of_one_and_of_many(self, method: str) -> None:
        found = aggmaze.discretize("Pendulum-v1", bins=(6, 5), method=method)
        angles = np.linspace(-3, 3, 7)
        shown = np.stack([np.cos(angles), np.sin(angles), np.linspace(-9, 9, 7)], axis=1)
        states = found.state_of(shown)
        assert states.shape == (7,)
        for observation, state in zip(shown, states.tolist(), strict=True):
            assert found.state_of(observation.astype(np.float32)) == state
            assert type(found.state_of(observation)) is int
        assert found.transition_model() is found.model

    @pytest.mark.parametrize(
        ("observation", "message"),
        [
            ([0.5, math.nan], "observation must hold finite numbers"),
            ([0.5, 0.0, 0.0], r"observation must be 2 numbers, x0, x1, got shape \(3,\)"),
            (0.5, r"got shape \(\)"),
        ],
    )
    def test_bad_observations(self, observation: Any, message: str) -> None:
        found = aggmaze.discretize(still, **BOX, actions=2)
        with pytest.raises(ValueError, match=message):
            found.state_of(observation)

    def test_bad_policies(self) -> None:
        found = aggmaze.discretize(still, **BOX, actions=2)
        with pytest.raises(ValueError, match=r"actions must have shape \(25,\), got \(3,\)"):
            found.policy([0, 1, 0])
        for wrong in (2, -1):
            with pytest.raises(ValueError, match=rf"actions\[7\] must be in \[0, 2\), got {wrong}"):
                found.policy(np.where(np.arange(25) == 7, wrong, 0))
        with pytest.raises(TypeError, match="actions must be integers"):
            found.policy(np.full(25, 0.5))
        with pytest.raises(ValueError, match=r"action must be in \[0, 2\), got 2"):
            found.action_of(2)


class TestGymnasiums:
    @pytest.mark.parametrize("env_id", ["MountainCar-v0", "Acrobot-v1", "Pendulum-v1"])
    def test_by_id_or_environment(self, env_id: str) -> None:
        bins = (5, 4, 5, 4) if env_id == "Acrobot-v1" else (9, 8)
        env = gym.make(env_id)
        first, second = (aggmaze.discretize(each, bins=bins) for each in (env_id, env))
        assert first.model is second.model
        assert isinstance(first.cells, Corners)
        assert aggmaze.Discretized(env, bins=bins).transition_model() is first.model
        name = f"Discretized{env_id.split('-')[0]}-v0"
        assert gym.make(name, bins=bins).unwrapped.transition_model() is first.model  # type: ignore[attr-defined]
        copied = pickle.loads(pickle.dumps(first))
        assert (copied.model.transitions != first.model.transitions).nnz == 0
        assert copied.problem == first.problem

    def test_constants_are_those_of_the_environment(self) -> None:
        env: Any = gym.make("MountainCar-v0", goal_velocity=0.02)
        plain = aggmaze.discretize("MountainCar-v0", bins=(20, 20)).model
        other = aggmaze.discretize(env, bins=(20, 20)).model
        assert (plain.transitions != other.transitions).nnz > 0

    def test_options_are_its_own(self) -> None:
        found = aggmaze.discretize("Pendulum-v1", bins=(5, 5), num_torques=3)
        assert found.model.num_actions == 3
        found = aggmaze.discretize("Acrobot-v1", bins=(3, 3, 3, 3), limits=(4, 5))
        assert found.cells.high == (math.pi, math.pi, 4.0, 5.0)

    def test_mountain_car_is_reached_from_every_start(self) -> None:
        """By Gymnasium's own steps, from one end of the starts to the other: solved is -110."""
        found = aggmaze.discretize("MountainCar-v0", bins=(60, 50))
        result = planners.solve(found.model, gamma=1)
        act = found.policy(result.policy)
        env: Any = gym.make("MountainCar-v0").unwrapped
        lengths = []
        for start in np.linspace(-0.6, -0.4, 41):
            env.reset(seed=0)
            env.state = np.array([start, 0.0])
            shown = np.array(env.state, dtype=np.float32)
            length, terminated = 0, False
            while not terminated:
                shown, _, terminated, _, _ = env.step(act(shown))
                length += 1
                assert length < 200
            lengths.append(length)
        assert np.mean(lengths) < 102
        assert max(lengths) < 116


BAD: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (still, {"actions": None}, TypeError, "needs low, high, bins and actions"),
    (still, {"low": 3}, TypeError, "low must be one number for each axis, got 3"),
    (still, {"low": (), "high": (), "bins": ()}, ValueError, "low must be at least one number"),
    (still, {"low": (0.0,)}, ValueError, "high must be 1 numbers, of x0, got"),
    (still, {"high": (1.0, math.inf)}, ValueError, r"high\[1\] must be a finite number, got inf"),
    (still, {"high": (1.0, -1.0)}, ValueError, r"high\[1\] must be above low\[1\] = -1.0"),
    (still, {"bins": (5,)}, ValueError, "bins must be 2 numbers, of x0, x1"),
    (still, {"bins": (5, 0)}, ValueError, r"bins\[1\] must be at least 1"),
    (still, {"bins": 5}, ValueError, "bins must be 2 numbers"),
    (still, {"axes": ("a",)}, ValueError, "low must be 1 numbers, of a"),
    (still, {"actions": 0}, ValueError, "actions must be at least 1, got 0"),
    (still, {"actions": []}, ValueError, "actions must not be empty"),
    (still, {"action_names": ["a"]}, ValueError, "action_names must be 2 names, got 1"),
    (still, {"method": "nearest"}, ValueError, "method must be one of average, interpolate"),
    (still, {"sub_points": (2, 0)}, ValueError, r"sub_points\[1\] must be at least 1"),
    (
        still,
        {"method": "interpolate", "sub_points": 2},
        ValueError,
        "sub_points are of method='average'",
    ),
    (still, {"wrap": [2]}, ValueError, r"wrap must be in \[0, 2\), got 2"),
    (still, {"start": 0.5}, ValueError, r"start must be a pair \(low, high\), got 0.5"),
    (still, {"start": (1, 0)}, ValueError, r"start\[0\]\[0\] must be at most start\[1\]\[0\]"),
    (still, {"limits": (1, 1)}, TypeError, "limits: a problem of one's own has no such options"),
    (lambda p, a: p, {}, TypeError, "must return points, rewards and whether.*got ndarray"),
    (lambda p, a: (p[:, 0], 0.0), {}, ValueError, r"points that the step returns must have shape"),
    (lambda p, a: (p, np.zeros(3)), {}, ValueError, r"rewards that .* must have shape \(64,\)"),
    (lambda p, a: (p * math.nan, 0.0), {}, ValueError, r"action 0 comes to \[nan, nan\], which"),
    (lambda p, a: (p, p[:, 0] / 0.0 * 0.0), {}, ValueError, r"action 0 is paid \[nan\], which"),
    (lambda p, a: (p, 0.0, 1.0), {}, ValueError, "must say of each of 64 points whether"),
    (lambda p, a: (p, 0.0, True), {"ends": False}, ValueError, "terminates, but ends=False"),
    (
        lambda p, a: (p + np.random.default_rng().normal(size=p.shape), 0.0),
        {},
        ValueError,
        "must do the same when it is called twice",
    ),
    ("MountainCar-v0", {}, TypeError, "low, high, actions: Gymnasium's environment says so"),
    (7, {"low": None, "high": None, "actions": None}, TypeError, "step must be a function.*got 7"),
    (
        "CartPole-v1",
        {"low": None, "high": None, "actions": None},
        TypeError,
        "CartPole in cells is aggmaze.DiscretizedCartPole",
    ),
]


@pytest.mark.parametrize(
    ("step", "options", "error", "message"), BAD, ids=[f"{k}" for k in range(len(BAD))]
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_bad_arguments_are_named(
    step: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        aggmaze.discretize(step, **{**BOX, "actions": 2, **options})
