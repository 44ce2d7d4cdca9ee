"""Minigrid made exact by `aggmaze.tabularize`, beside the rules of the grid written down again.

Run by ``.ci/run`` in a virtual environment of its own:

    python3 -m venv minigrid
    minigrid/bin/python -m pip install . -r tests/minigrid/requirements.txt
    minigrid/bin/python tests/minigrid/check_minigrid.py

Of each environment the layout is read once, after a reset with a seed.  A breadth-first search by
rules of its own then says how few steps lead to the goal and which states can be reached; the
planner's policy must take as few in the environment itself, and be promised what they are worth.
Prints a line for each check and how many passed and failed, and exits with 1 if one failed.
"""

from __future__ import annotations

import math
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import minigrid
import numpy as np
from minigrid.core.constants import IDX_TO_OBJECT

import aggmaze
import planners

GAMMA = 0.99
MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))
#: Where the agent is and looks, what it carries, where the key lies and whether the door is
#: locked, closed or open (0, 1, 2; 3 where there is none).
State = tuple[int, int, int, bool, tuple[int, int] | None, int]

CASES: list[tuple[str, dict[str, Any], list[int]]] = [
    ("MiniGrid-Empty-5x5-v0", {}, [0]),
    ("MiniGrid-Empty-8x8-v0", {}, [0]),
    ("MiniGrid-FourRooms-v0", {}, [0]),
    ("MiniGrid-LavaCrossingS9N1-v0", {}, [0, 1]),
    ("MiniGrid-LavaCrossingS9N2-v0", {}, [2]),
    ("MiniGrid-DoorKey-5x5-v0", {}, [0, 1]),
    ("MiniGrid-DoorKey-6x6-v0", {}, [3]),
]


class Rules:
    """The rules of the grid, as far as these environments have them.

    Parameters
    ----------
    env : gymnasium.Env
        After a reset.
    """

    def __init__(self, env: Any) -> None:
        base = env.unwrapped
        encoded = base.grid.encode()
        self.cells = {
            (x, y): IDX_TO_OBJECT[int(encoded[x, y, 0])]
            for x in range(encoded.shape[0])
            for y in range(encoded.shape[1])
        }
        lying = [place for place, kind in self.cells.items() if kind == "key"]
        doors = [place for place, kind in self.cells.items() if kind == "door"]
        assert len(lying) <= 1
        assert len(doors) <= 1
        self.door = doors[0] if doors else None
        x, y = map(int, base.agent_pos)
        # 2 is locked, as Minigrid encodes it.
        locked = bool(doors) and encoded[(*doors[0], 2)] == 2
        self.start: State = (
            x,
            y,
            int(base.agent_dir),
            False,
            lying[0] if lying else None,
            3 if not doors else 0 if locked else 1,
        )

    def kind(self, place: tuple[int, int], state: State) -> str:
        """Return what is in a cell."""
        if place == state[4]:
            return "key"
        kind = self.cells[place]
        return "empty" if kind == "key" else kind

    def after(self, state: State, action: int) -> State:
        """Return where left, right, forward, pick up, drop, toggle or done lead."""
        x, y, direction, carries, key, door = state
        if action == 0:
            return x, y, (direction - 1) % 4, carries, key, door
        if action == 1:
            return x, y, (direction + 1) % 4, carries, key, door
        front = x + MOVES[direction][0], y + MOVES[direction][1]
        kind = self.kind(front, state)
        if action == 2 and (kind in ("empty", "goal", "lava") or (kind == "door" and door == 2)):
            return *front, direction, carries, key, door
        if action == 3 and kind == "key" and not carries:
            return x, y, direction, True, None, door
        if action == 4 and kind == "empty" and carries:
            return x, y, direction, False, front, door
        if action == 5 and kind == "door":
            if door == 0:
                return x, y, direction, carries, key, 2 if carries else 0
            return x, y, direction, carries, key, 3 - door
        return state

    def ends(self, state: State) -> str:
        """Return "goal" or "lava" where an episode ends, "" elsewhere."""
        kind = self.cells[state[:2]]
        return kind if kind in ("goal", "lava") else ""


def search(rules: Rules) -> tuple[int, set[State]]:
    """Return the fewest steps to the goal, and the states in which no episode has ended."""
    steps, queue, fewest = {rules.start: 0}, [rules.start], math.inf
    for state in queue:
        for action in range(7):
            following = rules.after(state, action)
            if rules.ends(following) == "goal":
                fewest = min(fewest, steps[state] + 1)
            elif not rules.ends(following) and following not in steps:
                steps[following] = steps[state] + 1
                queue.append(following)
    return int(fewest), set(steps)


def state_now(env: Any) -> State:
    """Return the state of the environment in the terms of the rules."""
    base = env.unwrapped
    encoded = base.grid.encode()
    keys = np.argwhere(encoded[..., 0] == 5).tolist()
    doors = np.argwhere(encoded[..., 0] == 4).tolist()
    opened = 3
    if doors:
        opened = {2: 0, 1: 1, 0: 2}[int(encoded[(*doors[0], 2)])]
    x, y = map(int, base.agent_pos)
    key = (keys[0][0], keys[0][1]) if keys else None
    return x, y, int(base.agent_dir), base.carrying is not None, key, opened


def check_held(env_id: str, options: dict[str, Any], seed: int) -> str:
    """Solve with the counter of steps held, so that states are places of things."""
    env = gym.make(env_id, **options)
    env.reset(seed=seed)
    rules = Rules(env)
    fewest, reachable = search(rules)
    limit = env.unwrapped.max_steps
    found = aggmaze.tabularize(env, hold=["step_count"], seed=seed)
    result = planners.solve(found, gamma=GAMMA)
    # The counter is 1 in every step of the model.
    best = (1 - 0.9 / limit) * GAMMA ** (fewest - 1)
    start = int(np.argmax(found.model.initial))
    expect(abs(-result.values[start] - best) <= 1e-6, f"{-result.values[start]} is not {best}")
    played = planners.rollout(found, result, episodes=3)
    expect(played.lengths.tolist() == [fewest] * 3, f"{played.lengths} steps, not {fewest}")
    paid = 1 - 0.9 * fewest / limit
    expect(np.allclose(played.returns, paid, atol=1e-12), f"{played.returns} is not {paid}")

    named = aggmaze.tabularize(env, hold=["step_count"], seed=seed, state=state_now)
    going_on = {key for k, key in enumerate(named.states) if not named.model.terminal[k]}
    expect(going_on == reachable, f"{len(going_on)} states, {len(reachable)} by the rules")
    outcomes = named.model.to_gym_P()
    for k, state in enumerate(named.states):
        if state not in reachable:
            continue
        for action in range(7):
            following = rules.after(state, action)
            ((p, index, reward, ended),) = outcomes[k][action]
            pays = (1 - 0.9 / limit) * (rules.ends(following) == "goal")
            right = (1.0, following, pays, bool(rules.ends(following)))
            expect((p, named.states[index], reward, ended) == right, f"{state}, {action}")
    return f"{fewest} steps, {len(found.states):,} states"


def check_folded(env_id: str, seed: int) -> str:
    """Solve with the counter of steps in the state: the return itself, without a discount."""
    env = gym.make(env_id)
    env.reset(seed=seed)
    fewest, _ = search(Rules(env))
    limit = env.unwrapped.max_steps
    found = aggmaze.tabularize(env, fold_time_limit=True, seed=seed)
    result = planners.solve(found, gamma=1)
    best = 1 - 0.9 * fewest / limit
    start = int(np.argmax(found.model.initial))
    expect(abs(-result.values[start] - best) <= 1e-9, f"{-result.values[start]} is not {best}")
    played = planners.rollout(found, result, episodes=2)
    expect(not played.broken, played.broken)
    expect(np.allclose(played.returns, best, atol=1e-12), f"{played.returns} is not {best}")
    return f"return {best:.4f}, {len(found.states):,} states"


def check_refused() -> str:
    """Starts that are drawn until one suits are refused by name, and done from one seed."""
    env = gym.make("MiniGrid-Empty-Random-5x5-v0")
    try:
        aggmaze.tabularize(env, hold=["step_count"])
    except aggmaze.TabularizeError as error:
        expect("until one suits" in str(error) and "minigrid_env.py" in str(error), str(error))
    else:
        raise AssertionError("it was not refused")
    return check_held("MiniGrid-Empty-Random-5x5-v0", {}, 4)


def expect(holds: Any, otherwise: str) -> None:
    """Raise if something does not hold."""
    if not holds:
        raise AssertionError(otherwise)


def checks() -> Iterator[tuple[str, Any]]:
    """Yield the name and the function of each check."""
    for env_id, options, seeds in CASES:
        for seed in seeds:
            yield (
                f"{env_id}, seed {seed}",
                lambda e=env_id, o=options, s=seed: check_held(e, o, s),
            )
    yield (
        "MiniGrid-Empty-5x5-v0, steps in the state",
        lambda: check_folded("MiniGrid-Empty-5x5-v0", 0),
    )
    yield "MiniGrid-Empty-Random-5x5-v0, refused without a seed", check_refused


def main() -> int:
    """Run all checks and return how the process should exit."""
    warnings.simplefilter("error")
    print(f"minigrid {minigrid.__version__}, gymnasium {gym.__version__}")
    failed = passed = 0
    for name, check in checks():
        began = time.perf_counter()
        try:
            said = check()
        except Exception:
            failed += 1
            print(f"FAILED  {name}")
            traceback.print_exc()
        else:
            passed += 1
            print(f"ok  {name}: {said} ({time.perf_counter() - began:.1f} s)")
        sys.stdout.flush()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
