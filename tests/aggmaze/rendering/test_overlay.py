"""Overlays: what is drawn over a maze can be read back from frames and texts."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import aggmaze
from aggmaze.rendering import legend
from aggmaze.rendering.colors import (
    FLOOR,
    INK,
    PATH,
    RELIEF,
    VALUES,
    WALL,
    WHITE,
    relief_colors,
    value_colors,
)
from aggmaze.rendering.contours import has_contours
from aggmaze.rendering.overlay import Overlay, number
from aggmaze.rendering.raster import Raster

every_id = pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
mazes = pytest.mark.parametrize("env_id", aggmaze.ENV_IDS[:3])


def make(env_id: str = "StandardMaze-v0", mode: str = "rgb_array", **options: Any) -> Any:
    env = gym.make(env_id, render_mode=mode, **options).unwrapped
    env.reset(seed=0)
    return env


def cell(env: Any, x: int, y: int) -> NDArray[np.uint8]:
    """Return the pixels of a cell of a maze of two dimensions."""
    (panel,) = env._raster.panels
    return env.render()[panel.cell(x, y)]


def some(env: Any, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Return an overlay of all kinds."""
    rng = np.random.default_rng(seed)
    num_states, num_actions = env.observation_space.n, env.action_space.n
    return {
        "values": rng.normal(size=num_states),
        "policy": rng.integers(num_actions, size=num_states),
        "labels": rng.integers(5, size=num_states),
    }


def luminance(color: tuple[int, ...]) -> float:
    """Return the relative luminance of WCAG 2."""
    levels = np.array(color) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


class TestEveryMode:
    @every_id
    @pytest.mark.parametrize("kind", ["values", "policy", "labels"])
    @pytest.mark.parametrize("mode", ["human", "rgb_array", "ansi"])
    def test_each_kind_shows_and_goes(self, env_id: str, kind: str, mode: str) -> None:
        env = make(env_id, mode)

        def seen() -> Any:
            shown = env.render()
            return env.window.pixels().tobytes() if mode == "human" else np.array(shown).tobytes()

        plain = seen()
        env.set_overlay(**{kind: some(env)[kind]})
        first = seen()
        assert first != plain
        assert seen() == first
        env.set_overlay()
        assert seen() == plain
        env.close()

    @mazes
    @pytest.mark.parametrize("mode", ["human", "rgb_array", "ansi"])
    def test_a_path_shows(self, env_id: str, mode: str) -> None:
        env = make(env_id, mode)
        before = env.render() if mode != "human" else env.window.pixels()
        last = env.observation_space.n - 1
        env.set_overlay(path=range(last, last - 3, -1))
        after = env.render()
        after = env.window.pixels() if mode == "human" else after
        assert not np.array_equal(before, after)
        env.close()

    @every_id
    def test_copies_keep_it(self, env_id: str) -> None:
        env = make(env_id)
        env.set_overlay(**some(env))
        twin = pickle.loads(pickle.dumps(env))
        np.testing.assert_array_equal(twin.render(), env.render())

    @every_id
    def test_the_callers_arrays_are_copied(self, env_id: str) -> None:
        env = make(env_id)
        given = some(env)
        env.set_overlay(**given)
        before = env.render()
        for array in given.values():
            array[:] = 0
        env.reset(seed=0)
        np.testing.assert_array_equal(env.render(), before)

    @every_id
    def test_frames_keep_to_what_video_formats_ask(self, env_id: str) -> None:
        env = make(env_id)
        env.set_overlay(**some(env))
        frame = env.render()
        assert frame.shape[0] % 2 == frame.shape[1] % 2 == 0
        assert frame.flags.c_contiguous
        assert frame.flags.writeable

    @mazes
    def test_another_maze_begins_without(self, env_id: str) -> None:
        env = make(env_id)
        env.reset(seed=0, options={"layout_seed": 1})
        plain = env.render()
        env.reset(seed=0, options={"layout_seed": 2})
        env.set_overlay(**some(env))
        env.reset(seed=0, options={"layout_seed": 1})
        np.testing.assert_array_equal(env.render(), plain)


class TestPixels:
    def test_values_are_colours_between_the_least_and_the_greatest(self) -> None:
        env = make(shape=(4, 3))
        values = np.arange(12.0)
        env.set_overlay(values=values)
        env.render()
        for state in range(1, 11):  # goal and agent hide theirs
            x, y = divmod(state, 3)
            expected = value_colors(state / 11)
            assert (cell(env, x, y) == expected).all()

    def test_cells_without_a_finite_value_keep_their_colour(self) -> None:
        env = make(shape=(4, 3))
        values = np.arange(12.0)
        values[[4, 5]] = np.nan, np.inf
        env.set_overlay(values=values)
        env.render()
        assert (cell(env, 1, 1) == FLOOR).all()
        assert (cell(env, 1, 2) == FLOOR).all()
        assert not (cell(env, 2, 0) == FLOOR).all()

    def test_blocked_cells_stay_solid(self) -> None:
        env = make(layout="S.#\nG..")
        env.set_overlay(**some(env))
        env.render()
        assert (cell(env, 2, 1) == WALL).all()

    def test_labels_are_colours_with_lines_between(self) -> None:
        env = make("TerrainMaze-v0", shape=(4, 3))
        labels = np.array([0, 0, 0, 0, 7, 7, 1, 1, 1, 8, 8, 8])
        env.set_overlay(labels=labels)
        env.render()
        seen = cell(env, 1, 1)
        assert (seen == value_colors(2 / 3)).all(axis=2).mean() > 0.9
        assert (seen[1:-1, 0] == INK).all(), "another mega-state on the left"
        assert (seen[0, 1:-1] != INK).any(), "the same above"

    def test_labels_beside_values_are_lines_only(self) -> None:
        env = make("TerrainMaze-v0", shape=(4, 3))
        env.set_overlay(values=np.arange(12.0), labels=np.repeat([0, 1], 6))
        env.render()
        assert (cell(env, 1, 1)[1:-1, 1:-1] == value_colors(4 / 11)).all()
        assert (cell(env, 2, 1)[1:-1, 0] == INK).all()
        assert (cell(env, 1, 1)[1:-1, 0] != INK).any()

    @pytest.mark.parametrize("env_id", ["StandardMaze-v0", "TerrainMaze-v0"])
    def test_arrows_point_where_the_action_leads(self, env_id: str) -> None:
        env = make(env_id, shape=(5, 3))
        for action, (dx, dy) in enumerate([(-1, 0), (1, 0), (0, -1), (0, 1)]):
            env.set_overlay(policy=np.full(15, action))
            env.render()
            dark = np.argwhere((cell(env, 2, 1) < 60).all(axis=2))
            middle = (dark.min(axis=0) + dark.max(axis=0)) / 2
            # Next to the middle lie the wide base of the head and the thin end of the shaft.
            along = (dark - middle) @ (-dy, dx)
            near = 0.2 * np.ptp(along)
            head, shaft = ((side > 0) & (side < near) for side in (along, -along))
            assert head.sum() > 1.5 * shaft.sum()

    def test_nothing_points_from_the_goal_or_from_blocked_cells(self) -> None:
        env = make(layout="S.#\n.G.\n...")
        plain = env.render()
        env.set_overlay(policy=np.zeros(9, dtype=int))
        env.render()
        (panel,) = env._raster.panels
        for x, y in ((2, 2), (1, 1)):
            np.testing.assert_array_equal(cell(env, x, y), plain[panel.cell(x, y)])
        assert not np.array_equal(cell(env, 0, 1), plain[panel.cell(0, 1)])

    def test_moves_out_of_the_plane_are_signs(self) -> None:
        env = make("NDMaze-v0", shape=(3, 3, 3), kind="terrain")
        pictures = []
        for action in (4, 5):
            env.set_overlay(policy=np.full(27, action))
            frame = env.render()
            panel = next(p for p in env._raster.panels if p.axes == (0, 1))
            pictures.append((frame[panel.cell(1, 1)] < 60).all(axis=2))
        minus, plus = (np.ptp(np.argwhere(picture), axis=0) for picture in pictures)
        assert minus[1] > 3 * minus[0], "wide and low"
        assert plus[0] == plus[1]

    @pytest.mark.parametrize(
        ("env_id", "size", "some_arrows"),
        [("StandardMaze-v0", 200, False), ("TerrainMaze-v0", 200, True)],
    )
    def test_small_cells(self, env_id: str, size: int, some_arrows: bool) -> None:
        env = make(env_id, shape=(size, size))
        plain = env.render()
        env.set_overlay(policy=np.zeros(size * size, dtype=int))
        assert np.array_equal(env.render(), plain) != some_arrows

    def test_the_path_of_a_policy(self) -> None:
        env = make("TerrainMaze-v0", shape=(4, 3))
        env.set_overlay(policy=np.zeros(12, dtype=int), path=True)  # always left
        assert env._overlay.path.tolist() == [11, 8, 5, 2]
        env.reset(options={"coords": (2, 0)})
        assert env._overlay.path.tolist() == [6, 3, 0], "from where the episode starts"
        frame = env.render()
        assert (frame == PATH).all(axis=2).any()
        env.set_overlay(policy=np.tile([3, 3, 2], 4), path=True)
        env.reset(options={"coords": (1, 0)})
        assert env._overlay.path.tolist() == [3, 4, 5], "it ends where it turns back"

    def test_a_path_that_is_given_runs_through_its_cells(self) -> None:
        env = make("TerrainMaze-v0", shape=(5, 5))
        states = [24, 19, 18, 17, 12, 7, 6]
        env.set_overlay(path=states)
        env.render()
        for state in range(1, 24):
            crossed = (cell(env, *divmod(state, 5)) == PATH).all(axis=2).any()
            assert crossed == (state in states)

    def test_a_trail(self) -> None:
        env = make("TerrainMaze-v0", shape=(5, 5))
        raster = Raster(env.layout)
        plain = raster.frame(6)
        frame = raster.frame(6, [24, 19, 18, 17, 12, 7, 6])
        (panel,) = raster.panels
        for state in set(range(25)) - {6}:
            place = panel.cell(*divmod(state, 5))
            drawn = not np.array_equal(frame[place], plain[place])
            assert drawn == (state in (24, 19, 18, 17, 12, 7))
        np.testing.assert_array_equal(raster.frame(6), plain)

    def test_trails_in_a_slice_are_those_within_it(self) -> None:
        env = make("NDMaze-v0", shape=(3, 3, 3), kind="terrain")
        raster = Raster(env.layout)
        grid = env.grid
        walk = [grid.state(at) for at in ((0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1), (1, 1, 2))]
        plain, frame = raster.frame(walk[-1]), raster.frame(walk[-1], walk)
        differs = {}
        for panel in raster.panels:
            place = np.s_[
                panel.top : panel.top + panel.height, panel.left : panel.left + panel.width
            ]
            differs[panel.axes] = not np.array_equal(frame[place], plain[place])
        assert differs == {(0, 1): False, (0, 2): True, (1, 2): True}

    def test_static_layers_are_drawn_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        env = make(shape=(6, 6))
        env.set_overlay(**some(env))
        drawn = []
        monkeypatch.setattr(legend, "draw", lambda *_: drawn.append(1) or np.zeros((196, 108, 3)))
        for _ in range(3):
            env.render()
            env.step(0)
        assert drawn == [1]


class TestCartPole:
    def test_the_arrow_is_on_the_side_of_the_push(self) -> None:
        env = make("DiscretizedCartPole-v0")
        plain = env.render()
        sides = []
        for action in (0, 1):
            env.set_overlay(policy=np.full(env.observation_space.n, action))
            changed = np.argwhere((env.render() != plain).any(axis=2))
            sides.append(changed[:, 1].mean() - plain.shape[1] / 2)
        assert sides[0] < 0 < sides[1]

    def test_text_tells_all(self) -> None:
        env = make("DiscretizedCartPole-v0", "ansi")
        size = env.observation_space.n
        env.set_overlay(
            values=np.linspace(-5, 5, size),
            policy=np.ones(size, dtype=int),
            labels=np.arange(size) // 100,
        )
        lines = env.render().split("\n")
        value = np.linspace(-5, 5, size)[env._state]
        assert lines[-3] == f"return {number(-value)} (from -5 to 5)"
        assert lines[-2] == "action RIGHT"
        assert lines[-1] == f"mega-state {env._state // 100} of 100"

    def test_it_has_no_path(self) -> None:
        with pytest.raises(TypeError, match="path"):
            make("DiscretizedCartPole-v0").set_overlay(path=[1, 2])


class TestText:
    def test_cells(self) -> None:
        env = make(shape=(3, 2), mode="ansi")
        env.set_overlay(
            values=[0, 1, 2, 3, 4, 5],
            policy=[0, 1, 2, 3, 0, 0],
            labels=[0, 1, 25, 26, 35, 36],
        )
        text = "".join(env.render().split("\n")[1:4:2])
        cells = [text[place : place + 3] for place in (1, 5, 9, 14, 18, 22)]
        # Top row first; states (0, 1), (1, 1), (2, 1) and then (0, 0), (1, 0), (2, 0).
        assert cells == ["b>2", "0^6", "aA9", "aG0", "zv4", "9<8"]
        assert "6 mega-states" in env.render()
        assert "0 from 0, 9 to 5" in env.render()

    def test_the_path(self) -> None:
        env = make("TerrainMaze-v0", shape=(3, 2), mode="ansi")
        env.set_overlay(path=[5, 4, 2])
        lines = env.render().split("\n")
        assert lines[3][2::4][2] == "o"
        assert lines[1][2::4][1].isdigit(), "not of the path"
        assert lines[-1] == "o: path"


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"values": np.zeros(5)}, ValueError, r"values must have shape \(12,\).*\(5,\)"),
    ({"values": np.zeros((12, 2))}, ValueError, r"values.*shape.*\(12, 2\)"),
    ({"values": ["a"] * 12}, TypeError, "values must be real"),
    ({"values": np.full(12, np.nan)}, ValueError, "values must not all"),
    ({"policy": np.zeros(12)}, TypeError, "policy must be integers, got float64"),
    ({"policy": np.full(12, 4)}, ValueError, r"policy\[0\] must be actions in \[0, 4\), got 4"),
    ({"policy": [0] * 11 + [-1]}, ValueError, r"policy\[11\].*got -1"),
    ({"labels": [0, -2] * 6}, ValueError, r"labels\[1\] must be at least 0, got -2"),
    ({"labels": np.zeros(3, int)}, ValueError, "labels must have shape"),
    ({"path": [0, 12]}, ValueError, r"path\[1\] must be states in \[0, 12\), got 12"),
    ({"path": [0.5]}, TypeError, "path must be integers"),
    ({"path": True}, ValueError, "path=True follows a policy"),
]


class TestErrors:
    @pytest.mark.parametrize(("given", "error", "message"), BAD)
    def test_what_is_refused_changes_nothing(
        self, given: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        env = make(shape=(4, 3))
        env.set_overlay(values=np.arange(12.0))
        before = env.render()
        with pytest.raises(error, match=message):
            env.set_overlay(**given)
        np.testing.assert_array_equal(env.render(), before)


class TestLegend:
    def test_one_value_only(self) -> None:
        env = make(shape=(4, 3))
        env.set_overlay(values=np.full(12, 3.0))
        colours = np.unique(env.render().reshape(-1, 3), axis=0)
        assert value_colors(0.0).tolist() in colours.tolist()

    def test_it_differs_with_the_scale(self) -> None:
        pictures = [
            legend.draw(Overlay.of(3, 2, values=values)).tobytes()
            for values in ([0, 1, 2], [0, 1, 3], [0, 1, 2000])
        ]
        assert len(set(pictures)) == 3

    @pytest.mark.parametrize(
        ("value", "text"),
        [(0.0, "0"), (1234.5, "1,234"), (0.012345, "0.0123"), (-99.94, "-99.9"), (2e7, "2e+07")],
    )
    def test_numbers_are_short(self, value: float, text: str) -> None:
        assert number(value) == text

    def test_ticks_are_round(self) -> None:
        assert legend.ticks(-1.0, 64.8) == [0, 20, 40, 60]
        assert legend.ticks(0.155, 13.7) == [5, 10]
        assert legend.ticks(3.0, 3.0) == [3.0]

    @given(low=st.floats(-1e6, 1e6, allow_nan=False), width=st.floats(1e-3, 1e6, allow_nan=False))
    def test_there_are_two_to_five_ticks_within(self, low: float, width: float) -> None:
        found = legend.ticks(low, low + width)
        assert 2 <= len(found) <= 5
        assert min(found) >= low - 1e-6 * width
        assert max(found) <= low + width * (1 + 1e-6)

    def test_every_megastate_has_its_colour_on_the_bar(self) -> None:
        labels = np.repeat(np.arange(6), 2)
        picture = legend.draw(Overlay.of(12, 2, labels=labels))
        seen = {tuple(color) for color in picture.reshape(-1, 3).tolist()}
        assert {tuple(color) for color in value_colors(np.linspace(0, 1, 6)).tolist()} <= seen

    def test_the_discount_stands_beside_values(self) -> None:
        plain, discounted = (
            legend.draw(Overlay.of(3, 2, values=[0, 1, 2], gamma=gamma)) for gamma in (None, 0.9)
        )
        assert not np.array_equal(plain, discounted)
        with pytest.raises(ValueError, match=r"gamma must be in \[0, 1\], got 2"):
            make(shape=(4, 3)).set_overlay(values=np.arange(12.0), gamma=2)

    def test_returns_are_minus_the_costs(self) -> None:
        env = make("DiscretizedCartPole-v0")
        env.set_overlay(values=np.linspace(-5, 5, env.observation_space.n))
        told = legend.draw(env._overlay)
        costs = legend.draw(Overlay.of(2, 2, values=[-5, 5]))
        assert not np.array_equal(told, costs)
        assert env._overlay.told(-99.7) == 99.7

    @pytest.mark.parametrize("env_id", [name for name in aggmaze.ENV_IDS if "Disc" in name])
    def test_no_patch_hides_a_scene(self, env_id: str) -> None:
        env = make(env_id)
        plain = env.render()
        env.set_overlay(values=np.arange(float(env.observation_space.n)))
        changed = (env.render() != plain).any(axis=2)
        height, width = legend.SIZE[1], legend.SIZE[0]
        assert 0 < changed[:height, -width:].mean() < 0.3
        changed[:height, -width:] = False
        assert not changed.any()


class TestTerrain:
    def test_overlays_keep_the_contours(self) -> None:
        env = make("TerrainMaze-v0", shape=(30, 30))
        heights = env.layout.heights.reshape(30, 30)
        env.set_overlay(values=np.zeros(900))
        frame = env.render()
        (panel,) = env._raster.panels
        ground = value_colors(0.0)
        line = (frame[..., 0] < 0.75 * ground[0]) & (frame[..., 1] < 0.75 * ground[1])
        assert line.any()
        # Each line separates heights: none runs where all around lie in one band.
        bands = np.floor(heights / legend.HEIGHT_STEP)
        for x, y in np.argwhere(bands >= 0)[31:-31].tolist():
            around = bands[max(0, x - 1) : x + 2, max(0, y - 1) : y + 2]
            if np.ptp(around) == 0:
                assert not line[panel.cell(x, y)].any()

    def test_noise_has_none(self) -> None:
        env = make("TerrainMaze-v0", shape=(30, 30), terrain="uniform")
        env.set_overlay(values=np.zeros(900))
        env.render()
        assert not has_contours(env._raster.layout)

    def test_a_policy_over_relief_brings_the_key(self) -> None:
        env = make("TerrainMaze-v0", shape=(30, 30))
        assert env.render().shape[1] == env._raster.panels[0].width, "a plain frame has none"
        env.set_overlay(policy=np.zeros(900, dtype=int))
        env.render()
        assert env._raster.shape[1] >= env._raster.panels[0].width + legend.SIZE[0]

    def test_windows_have_a_key_of_heights(self) -> None:
        env = make("TerrainMaze-v0", shape=(30, 30))
        raster = Raster.within((700, 600), env.layout)
        frame = raster.frame(None)
        key = frame[:, raster._legend_left :]
        for height in (0.0, 0.5, 1.0):
            near = np.abs(key.astype(int) - relief_colors(height).astype(int)).sum(axis=2)
            assert near.min() < 12, "the bar, beyond rounding"


class TestWindows:
    def test_a_slice_without_the_goal_shows_its_place(self) -> None:
        env = make("NDMaze-v0", shape=(3, 3, 3))
        raster = Raster.within((700, 600), env.layout)
        frame, panel = raster.frame(26), raster.panels[0]
        place = frame[panel.cell(0, 0)].astype(int)
        other = frame[panel.cell(1, 0)].astype(int)
        assert place.std() > other.std() + 5

    @pytest.mark.parametrize("given", [{"values": np.arange(36.0)}, {"labels": np.arange(36)}])
    def test_the_maze_keeps_its_place_whatever_is_drawn(self, given: dict[str, Any]) -> None:
        env = make(shape=(6, 6))
        plain = Raster.within((700, 600), env.layout)
        drawn = Raster.within((700, 600), env.layout, Overlay.of(36, 4, **given))
        assert plain.panels == drawn.panels
        assert plain.shape == drawn.shape


class TestColours:
    @pytest.mark.parametrize("scale", [VALUES, RELIEF])
    def test_what_is_more_is_darker(self, scale: tuple[tuple[int, int, int], ...]) -> None:
        levels = [luminance(color) for color in scale]
        assert levels == sorted(levels, reverse=True)

    def test_arrows_can_be_seen_on_every_colour(self) -> None:
        for color in (*VALUES, *RELIEF, FLOOR):
            contrasts = [
                (max(a, b) + 0.05) / (min(a, b) + 0.05)
                for a, b in ((luminance(color), luminance(of)) for of in (INK, WHITE))
            ]
            assert max(contrasts) > 4, "the arrow or its seam"
