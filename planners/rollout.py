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

from aggmaze.checks import check_gamma, check_integer, check_time_limit
from aggmaze.env_model import NoModelError
from aggmaze.envs.tabular import TabularEnv
from aggmaze.models.model import Model
from planners.adapters import as_model
from planners.budget import Clock
from planners.evaluation import evaluate
from planners.kernels.compiling import interruptible
from planners.kernels.pieces import UNIT_ROUNDOFF
from planners.policies import StepVariances
from planners.result import SolveResult

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
        Where the discount is known.
    lengths : ndarray of int, shape (N,)
        Steps.
    successes : ndarray of bool, shape (N,)
        Whether the episode terminated, rather than ran out of steps.
    promised : float or None
        Expected discounted return from the start distribution, without a limit of steps:
        ``-sum initial V^pi``, exact.  None where the policy is no table, the discount is not known
        or the environment exposes no model of its steps.
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
    time_limit: float | None = None,
    callback: Callable[[RolloutProgress], object] | None = None,
) -> Rollouts:
    """Walk a policy through an environment, and warn if it breaks the promise of its model.

    Ctrl-C is raised.

    Parameters
    ----------
    env : gymnasium.Env, or what `as_model` takes
        A single environment; its state is ``info["state"]``, or the observation where ``info``
        has none.  Of anything else the model is walked through, in a `TabularEnv`.
    policy
        A `SolveResult`, a success or not; actions, shape (S,); probabilities of actions, shape
        (S, A); a callable on observations; or an object with Stable-Baselines3's ``predict``.
    episodes : int
    seed : int
        Seeds the environment, and the choices of a stochastic policy.
    max_steps : int, optional
        Longest episode; by default the limit with which the environment is registered, else 1000.
    gamma : float, optional
        Discount of ``discounted_returns`` and ``promised``; a `SolveResult` brings its own.
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
        env = TabularEnv(as_model(env))
    max_steps = check_integer(
        "max_steps", episode_limit(env) if max_steps is None else max_steps, least=1
    )
    table: NDArray[Any] | None = None
    if isinstance(policy, SolveResult):
        table = policy.policy
        gamma = policy.gamma if gamma is None else gamma
    elif isinstance(policy, np.ndarray | list | tuple):
        table = np.asarray(policy)
    if gamma is not None:
        gamma = check_gamma(gamma)
    promise: _Promise | None = None
    if table is not None:
        # A result brings values that those of its policy are near to.
        promise = _promise(env, policy if isinstance(policy, SolveResult) else table, gamma)
        # A stream of its own: the environment's is made from the seed itself.
        (child,) = np.random.SeedSequence(seed).spawn(1)
        choose = _table_policy(table, env, np.random.default_rng(child))
    else:
        choose = _observation_policy(policy)

    returns, discounted = np.zeros(episodes), np.zeros(episodes)
    lengths = np.zeros(episodes, dtype=np.int64)
    successes = np.zeros(episodes, dtype=bool)
    clock, steps, stopped = Clock(), 0, False
    for episode in range(episodes):
        observation, info = env.reset(seed=seed if episode == 0 else None)
        if promise is not None:
            promise.start(_state_of(observation, info))
        weight, over = 1.0, False
        for step in range(1, max_steps + 1):
            observation, reward, terminated, truncated, info = env.step(choose(observation, info))
            lengths[episode] += 1
            returns[episode] += float(reward)
            discounted[episode] += weight * float(reward)
            if promise is not None:
                state = None if terminated else _state_of(observation, info)
                promise.step(weight, float(reward), state)
            weight *= 1.0 if gamma is None else gamma
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
        None if gamma is None else discounted,
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
    env: gym.Env[Any, Any], policy: SolveResult | ArrayLike, gamma: float | None
) -> _Promise | None:
    if gamma is None:
        return None
    try:
        model = as_model(env)
    except NoModelError:
        return None  # there is none, or none that holds for what the wrappers make of it
    return _Promise(model, policy, gamma)


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

    def __init__(self, model: Model, policy: SolveResult | ArrayLike, gamma: float) -> None:
        self._gamma = gamma
        V = evaluate(model, policy, gamma, allow_unavailable=True)
        # What is added to the listed states is terminal.
        self._V = V = np.append(V, np.zeros(model.num_states - len(V)))
        starts = np.flatnonzero(model.initial)
        shares = model.initial[starts]
        self.value = 0.0 - float(shares @ V[starts])
        self._variances = StepVariances(model, policy, V, gamma)
        self._of_starts = float(shares @ (V[starts] + self.value) ** 2)
        self._sums = {name: _Sum(float(np.abs(V).max())) for name in ("starts", "steps")}
        self._num_episodes = 0
        self._state = 0
        self._unknown: int | None = None

    def start(self, state: int) -> None:
        """Begin an episode."""
        self._num_episodes += 1
        self._sums["starts"].add(-self.value - self._left(state), self._of_starts)
        self._state = state

    def step(self, weight: float, reward: float, state: int | None) -> None:
        """Take note of a step to a state, or to the end; ``weight`` is the power of gamma."""
        left = 0.0 if state is None else self._left(state)
        if self._unknown is None:
            gain = self._left(self._state) + reward - self._gamma * left
            variance = self._variances[self._state]
            self._sums["steps"].add(gain, variance, weight, abs(reward))
        if state is not None:
            self._state = state

    def _left(self, state: int) -> float:
        """Return V of a state, and remember one that the model has not."""
        if not 0 <= state < len(self._V):
            self._unknown = state
            return 0.0
        return float(self._V[state])

    def broken(self) -> str:
        """Return why the promise is not kept, or ""."""
        if self._unknown is not None:
            return f"state {self._unknown} is none of the {len(self._V)} of the model"
        for name, terms in self._sums.items():
            missed = terms.missed()
            if missed is not None:
                off, why = missed[0] / self._num_episodes, missed[1]
                return (
                    f"{self.value:.6g} is promised, and its {name} pay {abs(off):.3g} "
                    f"{'less' if off < 0 else 'more'} an episode than expected of them, {why}"
                )
        return ""


def _name(env: gym.Env[Any, Any]) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
