"""GridWorld-v0: what it is made of, where it starts, what it refuses, and how it is drawn."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
import aggmaze.wrappers
import planners
from aggmaze import GridWorldEnv, MoveMDP, TabularMDP
from aggmaze.keys import axis_keys
from aggmaze.layouts.ready import READY
from aggmaze.play import play
from planners.plotting import plot_plan

OWN = "S..LL2\n.#..mC\n...#1.\nG....H"
SIGNS = {"H": -1, "1": 3, "2": 10, "m": {"reward": -0.5, "ends": False}}


def make(**arguments: Any) -> GridWorldEnv:
    env: Any = gym.make("GridWorld-v0", **arguments).unwrapped
    return env


class TestSettings:
    def test_of_a_ready_layout_hold_but_for_those_given(self) -> None:
        assert make().rules == aggmaze.GridWorldRules(p=0.8, step_cost=0.04, pays="leaving")
        assert make(p=0.9, pays="entering").rules == aggmaze.GridWorldRules(p=0.9, step_cost=0.04)
        # Signs are added to those of the layout.
        cells = make(signs={"G": 5}).world.cells
        assert (cells["G"].reward, cells["H"].reward) == (5.0, -1.0)
        assert isinstance(make(layout="windy-king").grid, aggmaze.KingGrid)
        assert not isinstance(make(layout="windy-king", moves="four").grid, aggmaze.KingGrid)

    def test_of_other_maps(self) -> None:
        env = make(layout="S.G")
        assert env.rules == aggmaze.GridWorldRules()
        assert env.step(1)[:3] == (1, 0.0, False)
        assert env.step(1)[:3] == (2, 1.0, True)

    def test_tell_the_kind_of_model(self) -> None:
        assert isinstance(make().transition_model(), TabularMDP)
        for arguments in ({"p": 1.0}, {"slip": "uniform"}):
            assert isinstance(make(**arguments).transition_model(), MoveMDP)
        assert isinstance(make(layout="windy-stochastic").transition_model(), TabularMDP)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"moves": "queen"}, "moves must be one of four, king, king_or_stay"),
            ({"unreachable": "drop"}, "unreachable must be one of refuse, allow, block"),
            ({"slip": "left"}, "slip must be one of perpendicular, uniform"),
            ({"p": 0}, r"p must be in \(0, 1\], got 0"),
            ({"wind": (1, 2)}, "wind must have one integer for each of 4 columns, got 2"),
            ({"start": (1, 1)}, r"start=\(1, 1\) is blocked"),
            ({"start": (3, 1)}, r"start=\(3, 1\) is an end"),
            ({"goal": (1, 1)}, r"the goal at \(1, 1\) is blocked"),
            ({"layout": "aima-3x4"}, "no ready layout 'aima-3x4'; did you mean 'aima-4x3'"),
            ({"layout": "S.G\n..x"}, "line 2, column 3: 'x' is not among"),
            ({"layout": "S.G#."}, "line 1, column 5: no end can be reached"),
        ],
    )
    def test_refused(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            GridWorldEnv(**arguments)

    @pytest.mark.parametrize("signs", [3, "H", [("H", 1)]])
    def test_signs_that_are_no_table(self, signs: Any) -> None:
        with pytest.raises(TypeError, match="signs must be a table"):
            GridWorldEnv(signs=signs)


def test_cells_that_lead_back_are_left_at_once() -> None:
    env = make(layout="cliff")
    state, _ = env.reset(seed=0)
    assert state == env.grid.state((0, 0))
    following, reward, terminated, _, info = env.step(1)
    assert (following, reward, terminated) == (state, -100.0, False)
    assert info["coords"].tolist() == [0, 0]


def test_resets_refuse_ends_and_walls() -> None:
    env = make()
    for coords, message in (((3, 2), "is terminal"), ((3, 1), "is terminal"), ((1, 1), "blocked")):
        with pytest.raises(ValueError, match=message):
            env.reset(options={"coords": coords})
    with pytest.raises(ValueError, match="'layout_seed'; allowed: state, coords"):
        env.reset(options={"layout_seed": 1})
    assert env.reset(options={"coords": (2, 0)})[0] == 6


@pytest.mark.parametrize("name", sorted(READY))
def test_rollouts_keep_what_is_promised(name: str) -> None:
    env = gym.make("GridWorld-v0", layout=name)
    result = planners.solve(env, gamma=0.97, tol=1e-9)
    rolled = planners.rollout(env, result, episodes=400, seed=0, max_steps=1000)
    returns = rolled.discounted_returns
    assert returns is not None
    assert rolled.promised is not None
    spread = 5 * returns.std() / np.sqrt(len(returns)) + 1e-9
    assert abs(returns.mean() - rolled.promised) <= spread


class TestPictures:
    @pytest.mark.parametrize("size", [(200, 200), (900, 700)])
    @pytest.mark.parametrize("moves", ["four", "king_or_stay"])
    def test_signs_are_seen(self, moves: str, size: tuple[int, int]) -> None:
        """Cells that differ in their sign look different, with an overlay too."""
        env = make(layout=OWN, signs=SIGNS, moves=moves, render_mode="rgb_array", p=0.9)
        values = np.where(env.layout.acting(), 1.0, 0.0)
        policy = np.zeros(env.grid.num_states, int)
        for overlay in ({}, {"values": values}, {"values": values, "policy": policy}):
            env.set_overlay(**overlay)
            frame = env._picture(size)
            assert env._raster is not None
            (panel,) = env._raster.panels
            looks = {}
            for x, y in ((3, 3), (5, 3), (4, 2), (5, 2), (4, 1), (0, 0), (5, 0), (2, 1)):
                rows, columns = panel.cell(x, y)
                sign = chr(env.layout.signs[env.grid.state((x, y))])
                looks[sign] = frame[rows, columns].tobytes()
            assert len(set(looks.values())) == len(looks) == 8

    def test_every_goal_is_marked(self) -> None:
        env = make(layout="sutton-4x4", render_mode="rgb_array")
        env.reset(options={"coords": (1, 1)})
        frame = env.render()
        assert env._raster is not None
        (panel,) = env._raster.panels
        corners = [frame[panel.cell(x, y)] for x, y in ((0, 3), (3, 0))]
        np.testing.assert_array_equal(*corners)
        assert not np.array_equal(corners[0], frame[panel.cell(3, 3)])

    def test_arrows_point_where_moves_lead(self) -> None:
        """Of each of a king's moves the ink lies on the side to which it leads."""
        env = make(layout="...\n...\n..G", moves="king_or_stay", render_mode="rgb_array")
        middles = []
        for action in range(9):
            env.set_overlay(policy=np.full(env.grid.num_states, action))
            env.reset(options={"coords": (0, 0)})
            frame = env.render()
            assert env._raster is not None
            cell = frame[env._raster.panels[0].cell(1, 1)].astype(int).sum(axis=2)
            rows, columns = np.nonzero(cell < 200)
            middles.append((columns.mean(), -rows.mean()))
        # An arrow's head has more ink than its shaft; what stays is a dot.
        shifts = np.array(middles) - middles[8]
        towards = np.where(np.abs(shifts) < 0.4, 0, np.sign(shifts)).astype(int).tolist()
        assert towards == [list(each) for each in env.grid.directions], shifts

    def test_text_with_an_overlay(self) -> None:
        env = make(layout=OWN, signs=SIGNS, moves="king", render_mode="ansi")
        env.reset(seed=0)
        policy = np.arange(env.grid.num_states) % 8
        env.set_overlay(policy=policy)
        lines = env.render().splitlines()[1::2]
        arrows = "<>v^↙↖↘↗"
        for state in np.flatnonzero(env.layout.acting()):
            x, y = env.grid.coords(state).tolist()
            cell = lines[-1 - y][4 * x + 1 : 4 * x + 4]
            if state != env.reset(seed=0)[0]:
                assert cell[1] == arrows[policy[state]]
            assert cell[0] == ("m" if (x, y) == (4, 2) else " ")
        # Ends and cliffs keep their sign.
        assert [lines[-1][4 * x + 2] for x in (0, 5)] == ["G", "H"]
        assert [lines[0][4 * x + 2] for x in (3, 4, 5)] == ["L", "L", "2"]
        assert lines[1][22] == "C"

    def test_text_is_read_back(self) -> None:
        env = make(layout=OWN, signs=SIGNS, render_mode="ansi")
        env.reset(seed=0)
        again = make(layout=env.render(), signs=SIGNS)
        np.testing.assert_array_equal(again.layout.signs, env.layout.signs)
        np.testing.assert_array_equal(again.layout.passages, env.layout.passages)
        assert again.reset()[0] == env.reset()[0]

    def test_the_agent_at_an_end(self) -> None:
        env = make(layout="S.G\n#.H\n#.C", render_mode="ansi")
        for row, mark in ((2, "*"), (1, "A")):
            env.reset(options={"coords": (1, row)})
            assert env.step(1)[2]
            assert env.render().splitlines()[5 - 2 * row][10] == mark

    def test_the_path_of_a_policy(self) -> None:
        """With slips it goes where the chosen move leads, and ends at the end."""
        env = make(render_mode="ansi")
        env.reset(seed=0)
        result = planners.solve(env, gamma=1)
        env.set_overlay(policy=result.policy, path=True)
        assert env._overlay.path is not None
        walked = env.grid.coords(env._overlay.path).tolist()
        assert walked == [[0, 0], [0, 1], [0, 2], [1, 2], [2, 2], [3, 2]]

    def test_of_plans(self) -> None:
        """Matplotlib's picture has arrows in the cells in which one acts, and no others."""
        from matplotlib.quiver import Quiver

        env = make(layout=OWN, signs=SIGNS, moves="king_or_stay")
        policy = np.arange(env.grid.num_states) % 9
        figure = plot_plan(env.layout, np.zeros(env.grid.num_states), policy).figure
        (arrows,) = [each for each in figure.axes[0].get_children() if isinstance(each, Quiver)]
        moving = env.layout.acting() & (policy != 8)
        found = {
            (int(x), int(y)): (u, v)
            for x, y, u, v in zip(*arrows.XY.T, arrows.U, arrows.V, strict=True)
        }
        assert set(found) == {tuple(env.grid.coords(s).tolist()) for s in np.flatnonzero(moving)}
        for at, along in found.items():
            direction = np.array(env.grid.directions[policy[env.grid.state(at)]])
            np.testing.assert_allclose(along, direction / np.hypot(*direction))
        written = {text.get_text() for text in figure.axes[0].texts}
        assert written == {"1", "2", "m"}


class TestKeys:
    def test_of_a_king(self) -> None:
        env = make(layout="windy-king", moves="king_or_stay")
        keys = env.get_keys_to_action()
        assert {keys[ord(letter),] for letter in "zqcex"} == {4, 5, 6, 7, 8}
        names = {letter: env.action_name(keys[ord(letter),]) for letter in "zqcex"}
        assert names == {
            "z": "LEFT_DOWN",
            "q": "LEFT_UP",
            "c": "RIGHT_DOWN",
            "e": "RIGHT_UP",
            "x": "STAY",
        }
        assert (ord("x"),) not in make(layout="windy-king").get_keys_to_action()
        assert make().get_keys_to_action() == axis_keys(2)
        for each in (env, make(layout="windy-king"), make()):
            for (code,) in each.get_keys_to_action():
                if code < 128 and chr(code) not in "wasd":
                    assert chr(code).upper() in each.keys_in_words


def test_vectors_and_copies_share_the_map() -> None:
    env = make(layout=OWN, signs=SIGNS, p=0.8)
    many: Any = gym.make_vec("GridWorld-v0", num_envs=3, layout=OWN, signs=SIGNS, p=0.8)
    _, infos = many.reset(seed=0)
    assert infos["coords"].tolist() == 3 * [[0, 3]]
    twin = copy.deepcopy(env)
    assert twin.transition_model() is env.transition_model()


def test_play_takes_it() -> None:
    with pytest.raises(ValueError, match="needs render_mode='human'"):
        play(gym.make("GridWorld-v0"))


def test_what_wrappers_see_of_it() -> None:
    env = gym.make("GridWorld-v0", layout="sutton-4x4")
    views = aggmaze.wrappers.LocalViewObservation(env, radius=3)
    view, info = views.reset(options={"coords": (2, 1)})
    goals = np.argwhere(view[..., 5]).tolist()
    assert goals == [[1, 1], [4, 4]]  # up two and left two, down one and right one
    assert info["coords"].tolist() == [2, 1]
    with pytest.raises(ValueError, match="cells of other signs, such as 'H'; ImageObservation"):
        aggmaze.wrappers.LocalViewObservation(gym.make("GridWorld-v0"), radius=1)
    image = aggmaze.wrappers.ImageObservation(gym.make("GridWorld-v0"))
    seen = [image.reset(options={"coords": at})[0] for at in ((0, 0), (2, 0))]
    assert not np.array_equal(*seen)
    with pytest.raises(TypeError, match="is no maze: there is none to be drawn anew"):
        aggmaze.wrappers.NewMazeEachEpisode(gym.make("GridWorld-v0"), num_mazes=2)
