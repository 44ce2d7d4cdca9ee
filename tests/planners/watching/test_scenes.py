"""Where states lie in a picture: each once, with the walls that their moves meet."""

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
from aggmaze.models.tabular import TabularMDP
from planners import as_model
from planners.watching.scenes import GAP, scene_of


def _scene(env_id, **settings):
    env = gym.make(env_id, **settings)
    return env, scene_of(env, as_model(env))


@pytest.mark.parametrize("env_id", [*aggmaze.ENV_IDS, "FrozenLake-v1", "CliffWalking-v1"])
def test_each_state_that_is_drawn_is_drawn_once(env_id):
    env, scene = _scene(env_id)
    shown = np.sort(scene.index[scene.index != GAP])
    np.testing.assert_array_equal(shown, np.arange(scene.num_states))
    listed = as_model(env).num_listed_states
    # Of cells the state of having ended lies nowhere.
    assert scene.num_states in (listed, listed - 1)
    assert 0 <= scene.start < scene.num_states
    assert scene.is_map


@pytest.mark.parametrize("shape", [(7, 5), (4, 3, 3), (3, 2, 2, 3), (9,)])
def test_neighbours_in_the_picture_are_joined_where_moves_lead(shape):
    maze, scene = _scene("NDMaze-v0", shape=shape, layout_seed=3)
    available = maze.unwrapped.layout.available()
    grid = maze.unwrapped.grid
    checked = 0
    for (row, column), state in np.ndenumerate(scene.index):
        for wall, beside, action in (
            (scene.wall_right, (row, column + 1), 1),
            (scene.wall_below, (row + 1, column), 2),
        ):
            inside = beside[0] < scene.index.shape[0] and beside[1] < scene.index.shape[1]
            if state == GAP or not inside or scene.index[beside] == GAP:
                assert not wall[row, column]
                continue
            move = np.array(grid.directions[action])
            there = grid.coords(int(state)) + move
            assert grid.state(there) == scene.index[beside]
            assert wall[row, column] != available[state, action]
            checked += 1
    assert checked > 0


def test_a_maze_of_two_dimensions_lies_as_its_grid_draws_it():
    maze, scene = _scene("StandardMaze-v0", shape=(6, 4))
    expected = maze.unwrapped.grid.to_image(np.arange(24))
    np.testing.assert_array_equal(scene.index, expected)
    assert scene.caption == ""
    assert scene.name(5) == "(1, 1)"


def test_toys_have_their_holes_and_goals():
    lake, scene = _scene("FrozenLake-v1")
    signs = np.asarray(lake.unwrapped.desc).astype("U1").reshape(-1)
    assert set(scene.pits) == set(np.flatnonzero(signs == "H"))
    assert set(scene.goals) == set(np.flatnonzero(signs == "G"))
    assert scene.actions == ("LEFT", "DOWN", "RIGHT", "UP")


def test_actions_of_toys_are_called_after_where_they_lead():
    for env_id in ("FrozenLake-v1", "CliffWalking-v1"):
        env = gym.make(env_id, is_slippery=False)
        bare = env.unwrapped
        scene = scene_of(env, as_model(env))
        steps = {"LEFT": (0, -1), "RIGHT": (0, 1), "UP": (-1, 0), "DOWN": (1, 0)}
        place = {state: where for where, state in np.ndenumerate(scene.index)}
        state = int(scene.index[1, 2])
        for action, name in enumerate(scene.actions):
            following = bare.P[state][action][0][1]
            moved = np.subtract(place[following], place[state])
            assert tuple(moved) == steps[name]


def test_slices_say_along_which_axes_they_are_cut():
    assert _scene("NDMaze-v0", shape=(3, 3, 2))[1].caption.startswith("slices along axis 2,")
    assert "axes 2, 3" in _scene("NDMaze-v0", shape=(3, 3, 2, 2))[1].caption


def test_states_named_by_two_integers_are_a_map():
    P = {(x, y): {"stay": [(1.0, (x, y), 0.0, False)]} for x in (3, 4, 5) for y in (-1, 0)}
    model = as_model(P)
    scene = scene_of(P, model)
    assert scene.is_map
    assert scene.index.shape == (2, 3)
    assert scene.name(int(scene.index[0, 0])) == "(3, 0)"  # y upwards


@pytest.mark.parametrize(("count", "form"), [(7, "graph"), (60, "graph"), (61, "bars")])
def test_states_that_lie_nowhere_are_a_graph_or_bars(count, form):
    P = np.roll(np.eye(count), 1, axis=1)[:, np.newaxis]
    model = TabularMDP.from_matrices(P, costs=np.ones((count, 1)))
    scene = scene_of(model, model)
    assert scene.form == form
    assert not scene.is_map
    assert scene.num_states == count
    assert scene.name(3) == "state 3"
    assert (scene.graph is not None) == (form == "graph")


def test_names_that_lie_far_apart_are_no_map():
    names = [(k, 7 * k % 5, 3 * k % 7, k % 2) for k in range(12)]
    P = {name: {"on": [(1.0, names[(k + 1) % 12], -1.0, False)]} for k, name in enumerate(names)}
    assert scene_of(P, as_model(P)).form == "graph"


def test_taxi_is_drawn_in_slices_whose_states_say_where_they_are():
    env, scene = _scene("Taxi-v4")
    assert scene.is_map
    assert scene.caption == "slices along passenger, to, in reading order"
    row, column, passenger, destination = env.unwrapped.decode(123)
    places = ["at R", "at G", "at Y", "at B", "in the taxi"]
    assert scene.name(123) == (
        f"column {column}, row {row}, passenger {places[passenger]}, to {'RGYB'[destination]}"
    )
