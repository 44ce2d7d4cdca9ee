"""What is compiled is imported when it is needed, and found where it always was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

import aggmaze
import aggmaze.envs
import aggmaze.wrappers

WITHOUT_NUMBA = """
import sys
import gymnasium as gym
import aggmaze, aggmaze.wrappers, aggmaze.formats.storage
env = gym.make("TerrainMaze-v0", p=0.9)
env.reset(seed=0)
gym.make("StandardMaze-v0", layout="S..G").reset(seed=0)
assert "numba" not in sys.modules
env.step(0)
assert "numba" in sys.modules
"""


def test_environments_are_made_without_numba() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(aggmaze.__file__).parents[1])},
    )
    assert ran.returncode == 0, ran.stderr


WITHOUT_WHAT_OTHERS_NEED = """
import sys
import planners, planners.cli
late = ("aggmaze.exploration", "planners.plotting", "planners.watching")
assert [name for name in late if name in sys.modules] == []
import aggmaze
assert callable(aggmaze.tabularize) and callable(aggmaze.discretize) and callable(planners.watch)
"""


def test_who_solves_a_maze_waits_for_nothing_else() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_WHAT_OTHERS_NEED],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(aggmaze.__file__).parents[1])},
    )
    assert ran.returncode == 0, ran.stderr


def test_names_are_found_and_listed() -> None:
    from aggmaze.envs import vector
    from aggmaze.wrappers import vector as vector_wrappers

    assert aggmaze.TabularVectorEnv is vector.TabularVectorEnv
    assert aggmaze.envs.vector is vector
    assert aggmaze.wrappers.vector is vector_wrappers
    assert set(dir(aggmaze)) >= {*aggmaze.__all__, "__version__"}
    assert set(dir(aggmaze.wrappers)) >= set(aggmaze.wrappers.__all__)
    assert "vector" in dir(aggmaze.envs)


def test_specs_kept_in_files_find_the_wrapper_of_cartpole() -> None:
    env = aggmaze.DiscretizedCartPole(gym.make("CartPole-v1"), bins=(3, 3, 3, 3))
    assert env.spec is not None
    found, where = env.spec.to_json(), "aggmaze.wrappers.discretized_cartpole:"
    assert where in found
    kept = EnvSpec.from_json(found.replace(where, "aggmaze.cartpole:"))
    remade = gym.make(kept)
    assert isinstance(remade, aggmaze.DiscretizedCartPole)
    assert remade.cells == env.cells


@pytest.mark.parametrize("package", [aggmaze, aggmaze.envs, aggmaze.wrappers])
def test_others_are_not(package: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'vectors'"):
        package.vectors  # type: ignore[attr-defined]  # noqa: B018


def test_models_are_imported_from_where_they_were() -> None:
    from aggmaze.mdp import ROW_SUM_TOLERANCE, Rows, TabularMDP
    from aggmaze.move_mdp import MoveMDP

    assert (TabularMDP, MoveMDP) == (aggmaze.TabularMDP, aggmaze.MoveMDP)
    model = MoveMDP([[0]], [[1.0]])
    assert isinstance(model.rows(0, 1), Rows)
    assert 0.0 < ROW_SUM_TOLERANCE < 1e-6
