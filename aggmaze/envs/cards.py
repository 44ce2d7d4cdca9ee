"""Environments as notebooks show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector import VectorEnv, VectorWrapper

from aggmaze.cards import Figure, card, picture
from aggmaze.envs.layout_env import LayoutEnv
from aggmaze.envs.tabular import TabularEnv
from aggmaze.models.cards import model_facts, model_figures
from aggmaze.names import shown
from aggmaze.rendering.raster import Raster

if TYPE_CHECKING:
    from aggmaze.envs.vector import TabularVectorEnv

# Of `gymnasium.make_vec`, which a card tells in words.
_OWN = ("num_envs", "max_episode_steps", "vectorization_mode")


def env_html(env: TabularEnv, wrapped: gym.Env[Any, Any] | None = None) -> str:
    """Return the HTML of an environment, with the agent where it is.

    Parameters
    ----------
    env : TabularEnv
    wrapped : gymnasium.Env, optional
        The same under wrappers.
    """
    spec = env.spec
    facts = []
    if spec is not None and spec.kwargs:
        facts.append(("made with", _settings(spec.kwargs)))
    if wrapped is not None:
        facts.append(("wrappers", ", ".join(_wrappers(wrapped))))
        limit = None if wrapped.spec is None else wrapped.spec.max_episode_steps
        if limit is not None:
            facts.append(("an episode", f"at most {limit:,} steps"))
    facts += [("the agent is in", _place(env)), *model_facts(env.transition_model())]
    title = type(env).__name__ if spec is None else spec.id
    return card(title, facts, _figures(env))


def vector_html(envs: TabularVectorEnv, wrapped: VectorEnv[Any, Any, Any] | None = None) -> str:
    """Return the HTML of copies of an environment, with those that share a maze in its picture.

    Parameters
    ----------
    envs : TabularVectorEnv
    wrapped : gymnasium.vector.VectorEnv, optional
        The same under wrappers.
    """
    first, spec = envs.single_env, envs.spec
    own = any(copy is not first for copy in envs.single_envs)
    mode = envs.metadata["autoreset_mode"]
    facts = [("copies", f"{envs.num_envs:,}")]
    if spec is not None and (given := _settings(spec.kwargs)):
        facts.append(("made with", given))
    if wrapped is not None:
        facts.append(("wrappers", ", ".join(_wrappers(wrapped))))
    if envs.max_episode_steps is not None:
        facts.append(("an episode", f"at most {envs.max_episode_steps:,} steps"))
    facts.append(("after an episode", f"{getattr(mode, 'value', mode)} autoreset"))
    if own:
        facts.append(("mazes", "one of its own for each copy; what follows is of copy 0"))
    copy, states = envs.single_envs[0], envs._states.tolist()
    facts += model_facts(copy.transition_model())
    figures = model_figures(copy.transition_model())
    if isinstance(copy, LayoutEnv):
        there = "" if envs._started else ", before the first reset"
        drawn = [] if there else states[:1] if own else states
        pixels = Raster(copy.layout, overlay=copy._overlay).crowd(drawn)
        who = "copy 0" if own else "all copies" if envs.num_envs > 1 else "the copy"
        words = f"the maze, with {who} in it" if not there else f"the maze{there}"
        if len(copy.grid.shape) > 2 and not there:
            words += ", as far as they are in a slice through the goal"
        figures = [picture(pixels, words)]
    title = type(envs).__name__ if spec is None else f"{spec.id}, vectorized"
    return card(title, facts, figures)


def wrapper_html(env: gym.Env[Any, Any] | VectorEnv[Any, Any, Any]) -> str | None:
    """Return the HTML of an environment under Gymnasium's wrappers; None if it is a stranger's.

    Parameters
    ----------
    env : gymnasium.Wrapper or gymnasium.vector.VectorWrapper
        One with an HTML of its own keeps it.
    """
    own: Any = getattr(type(env), "_repr_html_", None)
    if own is not None:
        found: str | None = own(env)
        return found
    base = env.unwrapped
    if isinstance(base, TabularEnv) and isinstance(env, gym.Env):
        return env_html(base, env)
    if not isinstance(env, VectorEnv):
        return None
    from aggmaze.envs.vector import TabularVectorEnv  # with all kinds of environments

    return vector_html(base, env) if isinstance(base, TabularVectorEnv) else None


def show_wrappers(shell: Any) -> None:
    """Have an IPython session show wrapped environments as it shows their inside.

    Gymnasium's wrappers hand on no name that begins with an underscore, so that IPython finds no
    ``_repr_html_`` on them; its own table of types is where it looks first.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
    """
    formatter = shell.display_formatter.formatters["text/html"]
    for kind in (gym.Wrapper, VectorWrapper):
        if kind not in formatter:
            formatter.for_type(kind, wrapper_html)


def _wrappers(env: Any) -> list[str]:
    names = []
    while isinstance(env, gym.Wrapper | VectorWrapper):
        names.append(type(env).__name__)
        env = env.env
    return names


def _settings(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in given.items() if name not in _OWN)


def _place(env: TabularEnv) -> str:
    state, names = env._state, env.transition_model().state_names
    if isinstance(env, LayoutEnv):
        coords = tuple(env.grid.coords(state).tolist())
        return f"state {state:,}, at {coords}"
    if names is not None and state < len(names):
        return f"state {state:,}, {shown(names[state])}"
    return f"state {state:,}"


def _figures(env: TabularEnv) -> list[Figure]:
    if isinstance(env, LayoutEnv):
        # Not the picture that the environment keeps: a window's has another size.
        pixels = Raster(env.layout, overlay=env._overlay).frame(env._state)
        return [picture(pixels, "the maze, with the agent in it")]
    if env.metadata["render_modes"]:
        return [picture(env._picture(), "where the agent is")]
    return model_figures(env.transition_model())
