"""Environments as notebooks show them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from aggmaze.cards import Figure, card, picture
from aggmaze.envs.layout_env import LayoutEnv
from aggmaze.envs.tabular import TabularEnv
from aggmaze.models.cards import model_facts, model_figures
from aggmaze.names import shown
from aggmaze.rendering.raster import Raster


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
        facts.append(("made with", ", ".join(f"{k}={shown(v)}" for k, v in spec.kwargs.items())))
    if wrapped is not None:
        facts.append(("wrappers", ", ".join(_wrappers(wrapped))))
        limit = None if wrapped.spec is None else wrapped.spec.max_episode_steps
        if limit is not None:
            facts.append(("an episode", f"at most {limit:,} steps"))
    facts += [("the agent is in", _place(env)), *model_facts(env.transition_model())]
    title = type(env).__name__ if spec is None else spec.id
    return card(title, facts, _figures(env))


def wrapper_html(env: gym.Env[Any, Any]) -> str | None:
    """Return the HTML of an environment under Gymnasium's wrappers; None if it is a stranger's.

    Parameters
    ----------
    env : gymnasium.Wrapper
        One with an HTML of its own keeps it.
    """
    own: Any = getattr(type(env), "_repr_html_", None)
    if own is not None:
        found: str | None = own(env)
        return found
    base = env.unwrapped
    return env_html(base, env) if isinstance(base, TabularEnv) else None


def show_wrappers(shell: Any) -> None:
    """Have an IPython session show wrapped environments as it shows their inside.

    Gymnasium's wrappers hand on no name that begins with an underscore, so that IPython finds no
    ``_repr_html_`` on them; its own table of types is where it looks first.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
    """
    formatter = shell.display_formatter.formatters["text/html"]
    if gym.Wrapper not in formatter:
        formatter.for_type(gym.Wrapper, wrapper_html)


def _wrappers(env: gym.Env[Any, Any]) -> list[str]:
    names = []
    while isinstance(env, gym.Wrapper):
        names.append(type(env).__name__)
        env = env.env
    return names


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
