"""``aggmaze list``."""

from __future__ import annotations

import inspect

import gymnasium as gym
from gymnasium.spaces import Discrete
from rich.table import Table

import aggmaze
from aggmaze.formats import registry
from planners.cli.app import err, out, reported
from planners.waiting import Waiting


@reported
def list_command() -> None:
    """List the environments that expose a model, and the formats of model files."""
    table = Table(box=None, pad_edge=False)
    for column in ("environment", "states", "actions", ""):
        table.add_column(column, justify="right" if column in ("states", "actions") else "left")
    with Waiting(err, "looking for environments") as waiting:
        ids = solvable_ids()
        for i, env_id in enumerate(ids):
            waiting.count(i, len(ids), "environments")
            # Their spaces are numbers of states and actions: models can take seconds to make.
            env = gym.make(env_id)
            states, actions = env.observation_space, env.action_space
            assert isinstance(states, Discrete)
            assert isinstance(actions, Discrete)
            summary = (inspect.getdoc(type(env.unwrapped)) or "").strip().split("\n")[0]
            table.add_row(env_id, f"{states.n:,}", f"{actions.n}", summary)
    out.print(table)
    files = Table(box=None, pad_edge=False)
    for column in ("format", "model files", "", ""):
        files.add_column(column)
    for entry in registry.FORMATS.values():
        done = [word for word, way in (("read", entry.reader), ("written", entry.writer)) if way]
        if done:
            files.add_row(entry.name, " ".join(entry.suffixes), " and ".join(done), entry.holds)
    out.print()
    out.print(files)


def solvable_ids() -> list[str]:
    """Return the ids of this project, then those of Gymnasium's toy-text that have a table P."""
    latest: dict[str, gym.envs.registration.EnvSpec] = {}
    for spec in gym.registry.values():
        known = latest.get(spec.name)
        if str(spec.entry_point).startswith("gymnasium.envs.toy_text") and (
            known is None or (spec.version or 0) > (known.version or 0)
        ):
            latest[spec.name] = spec
    # Blackjack, the one without a P, says so only once it is made.
    toys = [spec.id for spec in latest.values() if hasattr(spec.make().unwrapped, "P")]
    return [*aggmaze.ENV_IDS, *sorted(toys)]
