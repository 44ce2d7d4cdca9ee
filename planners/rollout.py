"""Policies walked through environments, and whether what they get is what was promised.

The promise is exact for the model, so that an environment that breaks it does something else.  Let
V be the costs-to-go of the policy.  By the model every step costs as much as the one before let
expect: ``c + gamma V(s') - V(s)`` is 0 on average, whatever came before, and so is ``V(s0)`` less
its mean.  Sums of such terms, weighted by ``gamma**t``, are martingales.  With the sum A of the
variances that the model expects of the terms and the sum B of their squares, such a sum exceeds
``z sqrt(A + B)`` with a chance of at most ``2 exp(-z**2 / 2)``, however rare and large the chances
of the model are (Bercu and Touati, 2008), and z = 5 makes that one in 130,000.  Where the model
leaves nothing to chance, a single term that is not 0 is enough.  Neither limits of steps nor few
episodes do harm: an episode that is cut off ends with what is expected there.

Of total costs gamma is 1; of a finite horizon each step has a V of its own, and the last one is
what ending there costs.  Of average costs the terms are ``c - g(s) + h(s') - h(s)``, with the gain
g and the bias h of the policy.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import ArrayLike, NDArray

from aggmaze.checks import check_integer, check_time_limit
from aggmaze.env_model import NoModelError
from aggmaze.envs.tabular import TabularEnv
from aggmaze.models.model import Model
from aggmaze.progress import stage
from planners.adapters import as_model, is_by_rows
from planners.budget import Clock, OutOfTimeError
from planners.evaluation import evaluate, policy_changes, values_by_step
from planners.kernels.compiling import interruptible
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.kernels.vectors import finite_norm
from planners.objective import AverageCost, FiniteHorizon, Objective, as_objective
from planners.policies import StepVariances
from planners.policy_gains import average_cost_of_policy
from planners.result import SolveResult
from planners.row_walks import RowWalk
from planners.stages import Stages

# Longest episode where neither the caller nor the environment sets a limit.
_MAX_STEPS = 1000
# Steps between two looks at a long episode.
_LOOK_EVERY = 1000
# z above; and what rounding may move a term by, relative to the largest cost-to-go.
_MOST_ERRORS = 5.0
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Rollouts:
    """What a policy got in N episodes.

    Parameters
    ----------
    returns : ndarray of float, shape (N,)
        Sums of rewards.
    discounted_returns : ndarray of float, shape (N,), or None
        Where the discount is known; it is 1 of total and average costs.  Of a `FiniteHorizon` with
        its terminal costs, where the episode went on until then.
    lengths : ndarray of int, shape (N,)
        Steps.
    successes : ndarray of bool, shape (N,)
        Whether the episode terminated, rather than ran out of steps.
    promised : float or None
        Expected discounted return from the start distribution, without a limit of steps:
        ``-sum initial V^pi``, exact; minus infinity for total costs of a policy that may never end.
        For an `AverageCost` the expected mean reward of a step, in the long run.  None where the
        policy is no table, the objective is not known or has stages, or the environment exposes no
        model of its steps.
    broken : str
        Why what was got cannot be what was promised: the environment does not do what its model
        says.  Empty where it can, and where nothing is promised.
    """

    returns: NDArray[np.float64]
    discounted_returns: NDArray[np.float64] | None
    lengths: NDArray[np.int64]
    successes: NDArray[np.bool_]
    promised: float | None
    broken: str = ""

    @property
    def mean_rewards(self) -> NDArray[np.float64]:
        """Mean reward of a step in each episode, shape (N,)."""
        return self.returns / np.maximum(self.lengths, 1)

    def __repr__(self) -> str:
        count = len(self.returns)
        text = f"{count:,} episode{'s' * (count != 1)}"
        if count:
            text += (
                f", mean return {self.returns.mean():.6g}, mean length {self.lengths.mean():.1f}, "
                f"{100 * self.successes.mean():.3g} % terminated"
            )
            if self.discounted_returns is not None:
                text += f", mean discounted return {self.discounted_returns.mean():.6g}"
        if self.promised is not None:
            text += f", {self.promised:.6g} promised{' and not kept' if self.broken else ''}"
        return f"Rollouts({text})"


@dataclass(frozen=True)
class RolloutProgress:
    """What a callback sees of `rollout`.

    Parameters
    ----------
    episodes : int
        Whole ones so far.
    num_episodes : int
        Those asked for.
    steps : int
        Of all so far.
    seconds : float
    """

    episodes: int
    num_episodes: int
    steps: int
    seconds: float


@interruptible()
def rollout(
    env: Any,
    policy: Any,
    *,
    episodes: int = 100,
    seed: int = 0,
    max_steps: int | None = None,
    gamma: float | None = None,
    objective: Objective | None = None,
    time_limit: float | None = None,
    callback: Callable[[RolloutProgress], object] | None = None,
) -> Rollouts:
    """Walk a policy through an environment, and warn if it breaks the promise of its model.

    Ctrl-C is raised.

    Parameters
    ----------
    env : gymnasium.Env, or what `as_model` takes
        A single environment; its state is ``info["state"]``, or the observation where ``info``
        has none.  Of anything else the model is walked through, in a `TabularEnv`; a model by rows
        (`aggmaze.model_by_rows`) state by state, without a promise, which takes all of it.
    policy
        A `SolveResult`, a success or not; actions, shape (S,); probabilities of actions, shape
        (S, A); for a `FiniteHorizon` either of them for each step, (T, S) or (T, S, A); a callable
        on observations; or an object with Stable-Baselines3's ``predict``.
    episodes : int
    seed : int
        Seeds the environment, and the choices of a stochastic policy.
    max_steps : int, optional
        Longest episode; by default the limit with which the environment is registered, else 1000.
        A `FiniteHorizon` ends it at the latest.
    gamma : float, optional
        Discount in [0, 1] of ``discounted_returns`` and ``promised``; 1 stands for `TotalCost`.
    objective : Objective, optional
        In place of ``gamma``.  Without both a `SolveResult` brings its own.
    time_limit : float, optional
        Seconds after which the episode is dropped and what was whole before is returned, be it
        nothing.
    callback : callable, optional
        Called with a `RolloutProgress` after each episode, and within long ones every so often; a
        true value returned ends it as the time limit does.

    Raises
    ------
    ValueError
        If the policy does not fit the environment, or the environment's model is not valid.
    TypeError
        If it is none of the above.

    Warns
    -----
    UserWarning
        If what was got cannot be what was promised, as ``broken`` says, and the environment does
        not say itself that its model is approximate.
    """
    episodes = check_integer("episodes", episodes, least=1)
    check_time_limit(time_limit)
    if isinstance(env, VectorEnv):
        raise TypeError(f"rollout takes a single environment, got {type(env).__name__}")
    if not isinstance(env, gym.Env):
        env = RowWalk(env) if is_by_rows(env) else TabularEnv(as_model(env))
    limit = episode_limit(env) if max_steps is None else max_steps
    max_steps = check_integer("max_steps", limit, least=1)
    table: NDArray[Any] | None = None
    asked: Objective | None = None
    if gamma is not None or objective is not None:
        asked = as_objective(gamma, objective)
    if isinstance(policy, SolveResult):
        table = policy.policy
        asked = policy.objective if asked is None else asked
    elif isinstance(policy, np.ndarray | list | tuple):
        table = np.asarray(policy)
    if isinstance(asked, FiniteHorizon):
        # The environment's own limit may be shorter, and what it cuts off is expected then.
        max_steps = min(asked.steps, max_steps)
    promise: _Promise | None = None
    clock = Clock(time_limit)
    if table is not None:
        # A result brings values that those of its policy are near to.
        given = policy if isinstance(policy, SolveResult) else table
        try:
            with stage("what the policy promises"):
                promise = _promise(env, given, asked, clock.check)
        except OutOfTimeError:
            return _none_in_time(asked)
        # A stream of its own: the environment's is made from the seed itself.
        (child,) = np.random.SeedSequence(seed).spawn(1)
        rng = np.random.default_rng(child)
        tables = _tables_by_step(env, table, asked)
        choices = [_table_policy(one, env, rng) for one in tables]
    else:
        choices = [_observation_policy(policy)]
    last_costs, last_step = _terminal_costs(asked), getattr(asked, "steps", 0)
    weight_of_next = 1.0 if asked is None else asked.gamma

    returns, discounted = np.zeros(episodes), np.zeros(episodes)
    lengths = np.zeros(episodes, dtype=np.int64)
    successes = np.zeros(episodes, dtype=bool)
    steps, stopped = 0, False
    for episode in range(episodes):
        observation, info = env.reset(seed=seed if episode == 0 else None)
        if promise is not None:
            promise.start(_state_of(observation, info))
        weight, over = 1.0, False
        for step in range(1, max_steps + 1):
            choose = choices[min(step, len(choices)) - 1]
            observation, reward, terminated, truncated, info = env.step(choose(observation, info))
            lengths[episode] += 1
            returns[episode] += float(reward)
            discounted[episode] += weight * float(reward)
            if promise is not None:
                state = None if terminated else _state_of(observation, info)
                promise.step(weight, float(reward), state)
            weight *= weight_of_next
            if last_costs is not None and step == last_step and not terminated:
                discounted[episode] -= weight * last_costs[_state_of(observation, info)]
            over = terminated or truncated or step == max_steps
            if over:
                successes[episode] = terminated
            stopped = time_limit is not None and clock.seconds() >= time_limit
            if callback is not None and (over or step % _LOOK_EVERY == 0):
                told = RolloutProgress(episode + over, episodes, steps + step, clock.seconds())
                stopped = bool(callback(told)) or stopped
            if over or stopped:
                break
        steps += step
        if stopped:
            whole = episode + over
            returns, discounted = returns[:whole], discounted[:whole]
            lengths, successes = lengths[:whole], successes[:whole]
            break
    broken = "" if promise is None else promise.broken()
    if broken and not env.has_wrapper_attr("model_is_approximate"):
        warnings.warn(f"{_name(env)} breaks the promise of its model: {broken}", stacklevel=2)
    return Rollouts(
        returns,
        None if asked is None else discounted,
        lengths,
        successes,
        None if promise is None else promise.value,
        broken,
    )


def episode_limit(env: gym.Env[Any, Any]) -> int:
    """Return the longest episode of an environment as it is registered; 1000 where none is said."""
    limit = env.spec.max_episode_steps if env.spec is not None else None
    return _MAX_STEPS if limit is None else limit


Choose = Callable[[Any, dict[str, Any]], Any]


def _table_policy(table: NDArray[Any], env: gym.Env[Any, Any], rng: np.random.Generator) -> Choose:
    if table.ndim not in (1, 2) or (table.ndim == 1 and not np.issubdtype(table.dtype, np.integer)):
        raise ValueError(
            "a policy table must hold integer actions, shape (S,), or probabilities, shape "
            f"(S, A), got {table.dtype} of shape {table.shape}"
        )

    def row_of(observation: Any, info: dict[str, Any]) -> int:
        index = _state_of(observation, info)
        if not 0 <= index < len(table):
            raise ValueError(f"state {index} has no row in a policy of {len(table)} states")
        return index

    if table.ndim == 1:
        return lambda observation, info: int(table[row_of(observation, info)])
    cumulative = np.cumsum(table, axis=1)
    last = table.shape[1] - 1

    def draw(observation: Any, info: dict[str, Any]) -> int:
        row = cumulative[row_of(observation, info)]
        return min(int(np.searchsorted(row, rng.random() * row[-1], side="right")), last)

    return draw


def _observation_policy(policy: Any) -> Choose:
    if hasattr(policy, "predict"):
        return lambda observation, info: _plain(policy.predict(observation, deterministic=True)[0])
    if callable(policy):
        return lambda observation, info: _plain(policy(observation))
    raise TypeError(
        "policy must be a SolveResult, an array, a callable on observations or an object with "
        f"predict(), got {type(policy).__name__}"
    )


def _plain(action: Any) -> Any:
    """Turn an array without axes, as predict() gives for discrete actions, into a number."""
    return action.item() if isinstance(action, np.ndarray) and action.ndim == 0 else action


def _state_of(observation: Any, info: dict[str, Any]) -> int:
    try:
        return operator.index(info.get("state", observation))
    except TypeError:
        raise ValueError(
            "a policy table needs the state: info['state'], or an observation that is the "
            f"state, not {type(observation).__name__}"
        ) from None


def _promise(
    env: gym.Env[Any, Any],
    policy: SolveResult | ArrayLike,
    objective: Objective | None,
    checkpoint: Callable[[], None],
) -> _Promise | None:
    if objective is None or (isinstance(objective, FiniteHorizon) and objective.stages is not None):
        return None  # no environment changes its model from step to step
    try:
        model = as_model(env)
    except NoModelError:
        return None  # there is none, or none that holds for what the wrappers make of it
    return _Promise(model, policy, objective, checkpoint)


def _none_in_time(objective: Objective | None) -> Rollouts:
    """Return what there is where the time is up before the first episode."""
    none = np.zeros(0)
    discounted = None if objective is None else none
    return Rollouts(none, discounted, none.astype(np.int64), none.astype(bool), None)


def _tables_by_step(
    env: gym.Env[Any, Any], table: NDArray[Any], objective: Objective | None
) -> list[NDArray[Any]]:
    """Return the policy of each step, or the one of all."""
    if not isinstance(objective, FiniteHorizon):
        return [table]
    if table.ndim == 3 or (table.ndim == 2 and np.issubdtype(table.dtype, np.integer)):
        if len(table) != objective.steps:
            raise ValueError(
                f"a policy for {objective} must have a row for each step, got {len(table)}"
            )
        return list(table)
    return [table] * objective.steps


def _terminal_costs(objective: Objective | None) -> NDArray[np.float64] | None:
    if not isinstance(objective, FiniteHorizon) or objective.terminal_costs is None:
        return None
    return np.asarray(objective.terminal_costs)


class _Sum:
    """A sum of terms that are 0 on average, if the model is right."""

    def __init__(self, size: float) -> None:
        self._size = size  # of what the terms are differences of
        self._total = self._squares = self._expected = self._rounding = 0.0
        self._impossible = False

    def add(self, term: float, variance: float, weight: float = 1.0, size: float = 0.0) -> None:
        """Add a term times its weight; the variance is what the model expects of it."""
        size = max(self._size, size)
        rounding = _ROUNDING * size
        # A variance that is but rounding: what is rare, and far from the mean, has more.
        if variance <= (64 * UNIT_ROUNDOFF * size) ** 2 and not abs(term) <= rounding:
            self._impossible = True
        self._total += weight * term
        self._squares += (weight * term) ** 2
        self._expected += weight**2 * variance
        self._rounding += weight * rounding

    def missed(self) -> tuple[float, str] | None:
        """Return by how much the mean is missed, and why that is no chance, where it is."""
        if self._impossible:
            return self._total, "where nothing is chance"
        chance = _MOST_ERRORS * math.sqrt(self._squares + self._expected)
        if not abs(self._total) <= chance + self._rounding:
            return self._total, "more than chance explains"
        return None


class _Promise:
    """What the model promises, and what the steps say to that."""

    def __init__(
        self,
        model: Model,
        policy: SolveResult | ArrayLike,
        objective: Objective,
        checkpoint: Callable[[], None],
    ) -> None:
        self._gamma = objective.gamma
        self._expected = _expected(model, policy, objective, checkpoint)
        starts = np.flatnonzero(model.initial)
        shares = model.initial[starts]
        self._started = self._expected.promised
        self.value = 0.0 - float(shares @ self._started[starts])
        # Where the policy may never end nothing is expected of it.
        self._says_nothing = not math.isfinite(self.value)
        self._of_starts = self._size = 0.0
        if not self._says_nothing:
            self._of_starts = float(shares @ (self._started[starts] + self.value) ** 2)
            self._size = self._expected.size
        self._sums = {name: _Sum(self._size) for name in ("starts", "steps")}
        self._num_episodes = 0
        self._state = self._step = 0
        self._unknown: int | None = None

    def start(self, state: int) -> None:
        """Begin an episode."""
        self._num_episodes += 1
        self._state, self._step = state, 0
        if self._knows(state) and not self._says_nothing:
            self._sums["starts"].add(-self.value - float(self._started[state]), self._of_starts)

    def step(self, weight: float, reward: float, state: int | None) -> None:
        """Take note of a step to a state, or to the end; ``weight`` is the power of gamma."""
        # Both before the sum, so that a state that is unknown is noticed.
        knows = self._unknown is None and (state is None or self._knows(state))
        if knows and not self._says_nothing:
            expected = self._expected
            left = 0.0 if state is None else float(expected.after(self._step)[state])
            gain = float(expected.before(self._step)[self._state]) + reward - self._gamma * left
            variance = expected.variances(self._step)[self._state]
            self._sums["steps"].add(gain, variance, weight, abs(reward))
        self._step += 1
        if state is not None:
            self._state = state

    def _knows(self, state: int) -> bool:
        """Whether the model has a state; one that it has not is remembered."""
        if 0 <= state < len(self._started):
            return True
        self._unknown = state
        return False

    def broken(self) -> str:
        """Return why the promise is not kept, or ""."""
        if self._unknown is not None:
            return f"state {self._unknown} is none of the {len(self._started)} of the model"
        for name, terms in self._sums.items():
            missed = terms.missed()
            if missed is not None:
                off, why = missed[0] / self._num_episodes, missed[1]
                return (
                    f"{self.value:.6g} is promised, and its {name} pay {abs(off):.3g} "
                    f"{'less' if off < 0 else 'more'} an episode than expected of them, {why}"
                )
        return ""


class _Expected:
    """What is left to pay before and after each step by a policy, the same at all steps.

    Parameters
    ----------
    promised : ndarray of float, shape (S,)
        What an episode is promised to cost from each state.
    before, after : ndarray of float, shape (S,)
        The mean of ``c + gamma after(s')`` is ``before(s)``.
    variances : StepVariances
    """

    def __init__(
        self,
        promised: NDArray[np.float64],
        before: NDArray[np.float64],
        after: NDArray[np.float64],
        variances: StepVariances,
    ) -> None:
        self.promised = promised
        self._before, self._after, self._variances = before, after, variances
        #: Of what the terms are differences of.
        self.size = finite_norm(before)

    def before(self, step: int) -> NDArray[np.float64]:
        """Return what is left before a step, shape (S,)."""
        return self._before

    def after(self, step: int) -> NDArray[np.float64]:
        """Return what is left after a step, shape (S,)."""
        return self._after

    def variances(self, step: int) -> StepVariances:
        """Return the variances of a step."""
        return self._variances


class _ExpectedByStep(_Expected):
    """The same of a finite horizon, where each step has its own."""

    def __init__(
        self,
        model: Model,
        policy: SolveResult | ArrayLike,
        objective: FiniteHorizon,
        checkpoint: Callable[[], None],
    ) -> None:
        self._values = values_by_step(
            model, policy, objective, allow_unavailable=True, checkpoint=checkpoint
        )
        self.promised = self._values[0]
        self.size = finite_norm(self._values)
        self._stages = Stages(model, objective)
        table = policy.policy if isinstance(policy, SolveResult) else np.asarray(policy)
        self._policies = table
        self._changes = policy_changes(model, table, objective)
        self._gamma = objective.gamma
        self._found: dict[int, StepVariances] = {}

    def before(self, step: int) -> NDArray[np.float64]:
        """Return what is left before a step, shape (S,)."""
        return self._values[step]

    def after(self, step: int) -> NDArray[np.float64]:
        """Return what is left after a step, shape (S,)."""
        return self._values[step + 1]

    def variances(self, step: int) -> StepVariances:
        """Return the variances of a step."""
        if step not in self._found:
            self._found[step] = StepVariances(
                self._stages.model(step),
                self._policies[step] if self._changes else self._policies,
                self._values[step],
                self._gamma,
                self._values[step + 1],
            )
        return self._found[step]


def _expected(
    model: Model,
    policy: SolveResult | ArrayLike,
    objective: Objective,
    checkpoint: Callable[[], None],
) -> _Expected:
    """Return what a policy is expected to pay."""
    if isinstance(objective, FiniteHorizon):
        return _ExpectedByStep(model, policy, objective, checkpoint)
    if isinstance(objective, AverageCost):
        found = average_cost_of_policy(model, policy, allow_unavailable=True)
        gain, bias = (_with_added_states(model, v) for v in (found.gains, found.bias))
        before = gain + bias
        return _Expected(gain, before, bias, StepVariances(model, policy, before, 1.0, bias))
    V = _with_added_states(
        model, evaluate(model, policy, objective=objective, allow_unavailable=True)
    )
    # Where the policy may never end, no step is looked at.
    finite = np.where(np.isfinite(V), V, 0.0)
    return _Expected(V, V, V, StepVariances(model, policy, finite, objective.gamma))


def _with_added_states(model: Model, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values of all states: those that the source does not list are terminal."""
    missing = model.num_states - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])


def _name(env: gym.Env[Any, Any]) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
