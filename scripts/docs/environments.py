"""Write the pages of docs/environments/ from the environments' docstrings, with a picture of each.

``--check`` writes nothing, and says which differ from what would be written.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tempfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from PIL import Image

import aggmaze
import planners

assert aggmaze.ENV_IDS  # registers them

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "environments"

# Id, page, arguments of the environment in the picture, discount of the policy that it shows.
PAGES: list[tuple[str, str, dict[str, Any], float]] = [
    ("StandardMaze-v0", "standard_maze", {"shape": (12, 12)}, 0.97),
    ("TerrainMaze-v0", "terrain_maze", {"shape": (14, 14), "terrain": "fractal"}, 0.98),
    ("NDMaze-v0", "nd_maze", {"shape": (5, 5, 5)}, 0.97),
    ("DiscretizedCartPole-v0", "discretized_cartpole", {}, 0.99),
    ("GridWorld-v0", "grid_world", {}, 1.0),
    ("DiscretizedMountainCar-v0", "discretized_mountain_car", {}, 0.99),
    ("DiscretizedAcrobot-v0", "discretized_acrobot", {}, 0.99),
    ("DiscretizedPendulum-v0", "discretized_pendulum", {}, 0.99),
]
# What stands below the list of all.
INDEX = """\
[Using them](using.md): windows and overlays, playing, many at once, wrappers, mazes to train and
to test on. [Mazes of your own](own_mazes.md): as text, from heights, from a picture.

Those named Discretized are chains of cells. `aggmaze.DiscretizedCartPole(gym.make("CartPole-v1"))`
and `aggmaze.Discretized(gym.make("MountainCar-v0"))`, which takes Acrobot and Pendulum too, run
their policies on the real thing; `aggmaze.discretize` makes models of your own
([page](../models/discretize.md)). GridWorld-v0 takes your own map, or AIMA's, Sutton and Barto's
and FrozenLake's by name ([page](../models/maps.md)).

## What the mazes share

The goal is position (0, 0), drawn at the bottom left; the agent starts at the opposite corner, or
anywhere with `start="uniform"`. `p` is the probability that the chosen move happens; else one of
the other available moves does. `layout_seed` makes the maze, and `reset(seed=...)` never changes
it; `reset(options={"layout_seed": 7})` draws another. All arguments are on the page of each, and
in the docstrings (`help(aggmaze.TerrainMazeEnv)`). In a standard maze each move costs 1; on
terrain climbing costs, and descending pays.

Episodes are truncated after 1000 steps; for larger mazes, `gym.make(..., max_episode_steps=...)`.
In worker processes, `gym.make("aggmaze:TerrainMaze-v0")` imports the package by itself.

## Which discount

A planner that discounts by gamma hardly cares for a goal far beyond 1/(1-gamma) steps: on a large
terrain the optimal policy may then settle in a valley. With the defaults gamma 0.95 reaches the
goal from every cell at 20x20, 0.98 at 50x50 and 100x100; `1 - 1/diameter` is safe. `solve` says
from where the goal is reached, and which gamma to try."""
# Builds of Pillow may smooth edges differently: squares of pixels are compared by their means, of
# which an arrow the other way, or a scale of other numbers, moves some by 60 or more.
_SQUARE, _LARGEST_DIFFERENCE = 4, 32


def main() -> int:
    """Run the script and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 on differences")
    if not parser.parse_args().check:
        write(FOLDER)
        print(f"wrote {FOLDER}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        different = differences(Path(folder), FOLDER)
    for name in different:
        print(f"{name} is not what python scripts/docs/environments.py writes", file=sys.stderr)
    return 1 if different else 0


def write(folder: Path) -> None:
    """Write all pages and pictures to a folder."""
    rows = []
    for env_id, name, arguments, gamma in PAGES:
        (folder / f"{name}.md").write_text(page(env_id, name), encoding="utf-8")
        frame = Image.fromarray(picture(env_id, arguments, gamma))
        frame.save(folder / f"{name}.png", optimize=True)
        rows.append(f"| [{env_id}]({name}.md) | {summary(env_id)} |")
    (folder / "README.md").write_text(index(rows), encoding="utf-8")


def differences(made: Path, kept: Path) -> list[str]:
    """Return the names of the files that differ, or are missing."""
    return [
        path.name
        for path in sorted(made.iterdir())
        if not (kept / path.name).is_file() or not _alike(path, kept / path.name)
    ]


def page(env_id: str, name: str) -> str:
    """Return the page of an environment."""
    env = gym.make(env_id)
    text = inspect.getdoc(type(env.unwrapped)) or ""
    first, _, rest = text.partition("\n")
    lines = [
        "<!-- Made by scripts/docs/environments.py from the docstring of "
        f"{type(env.unwrapped).__name__}. -->",
        "",
        f"# {env_id}",
        "",
        f"![{env_id}, with its optimal policy]({name}.png)",
        "",
        first,
        "",
        "| | |",
        "|---|---|",
        f"| Action space | `{env.action_space}` |",
        f"| Observation space | `{env.observation_space}` |",
        f'| Import | `gymnasium.make("{env_id}")` |',
        f'| Many at once | `gymnasium.make_vec("{env_id}", num_envs=64)` |',
        f"| Render modes | {', '.join(env.metadata['render_modes'])} |",
        "",
        # A docstring cannot hold its own quotes.
        rest.strip().replace(".  ", ". ").replace("'''", '"""'),
        "",
        "[All environments](README.md) and [how to use them](using.md)",
        "",
    ]
    return "\n".join(lines)


def index(rows: list[str]) -> str:
    """Return the page that lists the others."""
    return "\n".join(
        [
            "<!-- Made by scripts/docs/environments.py. -->",
            "",
            "# Environments",
            "",
            "Each has its exact model, `env.unwrapped.transition_model()`: the very tables that "
            "`step` draws from.",
            "",
            "| id | what it is |",
            "|---|---|",
            *rows,
            "",
            *INDEX.splitlines(),
            "",
        ]
    )


def pages_of_classes() -> dict[str, str]:
    """Return the page of each class of environments, by its name."""
    return {type(gym.make(env_id).unwrapped).__name__: name for env_id, name, *_ in PAGES}


def summary(env_id: str) -> str:
    """Return the first line of an environment's docstring."""
    return (inspect.getdoc(type(gym.make(env_id).unwrapped)) or "").split("\n")[0]


def picture(env_id: str, arguments: dict[str, Any], gamma: float) -> Any:
    """Return a picture of an environment with its optimal policy, and values where they fit."""
    env = gym.make(env_id, render_mode="rgb_array", **arguments)
    env.reset(seed=0)
    result = planners.solve(env, gamma=gamma).require()
    overlay: dict[str, Any] = {"policy": result.policy}
    if hasattr(env.unwrapped, "layout"):
        overlay["path"] = True
    if getattr(getattr(env.unwrapped, "layout", None), "heights", None) is None:
        overlay["values"] = result.values  # which would hide heights
        overlay["gamma"] = gamma
    env.unwrapped.set_overlay(**overlay)  # type: ignore[attr-defined]
    return env.render()


def _alike(made: Path, kept: Path) -> bool:
    if made.suffix != ".png":
        return made.read_text(encoding="utf-8") == kept.read_text(encoding="utf-8")
    first, second = (Image.open(path).convert("RGB") for path in (made, kept))
    if first.size != second.size:
        return False
    means = [np.asarray(image.reduce(_SQUARE), int) for image in (first, second)]
    return bool(np.abs(means[0] - means[1]).max() <= _LARGEST_DIFFERENCE)


if __name__ == "__main__":
    sys.exit(main())
