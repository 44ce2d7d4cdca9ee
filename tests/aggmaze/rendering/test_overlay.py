"""Overlays: what is drawn over a maze can be read back from frames and texts."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from aggmaze.rendering import legend
from aggmaze.rendering.colors import FLOOR, INK, WALL, value_colors
from aggmaze.rendering.overlay import Overlay
from aggmaze.rendering.raster import Raster
from tests.aggmaze.rendering.frames import cell, every_id, make, mazes, some


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

    def test_static_layers_are_drawn_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        env = make(shape=(6, 6))
        env.set_overlay(**some(env))
        drawn = []
        monkeypatch.setattr(legend, "draw", lambda *_: drawn.append(1) or np.zeros((196, 108, 3)))
        for _ in range(3):
            env.render()
            env.step(0)
        assert drawn == [1]


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
