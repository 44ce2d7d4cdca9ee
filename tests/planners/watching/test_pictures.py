"""Pictures: what colour a state has, where borders and walls are, what recordings hold."""

import math
import sys

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import planners
import planners.watching.painter as painting
from aggmaze.models.tabular import TabularMDP
from aggmaze.rendering.colors import value_colors
from planners import as_model
from planners.watching.bars import Bars, axis_of, ticks
from planners.watching.film import Film, Frame
from planners.watching.letters import first_fitted, width_of, wrapped
from planners.watching.maps import Map
from planners.watching.movies import write_gif
from planners.watching.nodes import Nodes
from planners.watching.painter import Painter, Words, snug_size
from planners.watching.run import Recorder, words_of
from planners.watching.scenes import scene_of
from planners.watching.themes import DARK, GROUPS, LIGHT, THEMES, table_of_colors

_NOWHERE = np.empty(0, dtype=np.int64)


def _run(env, iterations=9, **options):
    model = as_model(env)
    film = Film(model.num_listed_states)
    arguments = {"gamma": 0.95, "method": "adaptive_aggregation", "epsilon": 1.0} | options
    planners.solve(
        model, num_iterations=iterations, callback=Recorder(film, model.num_states), **arguments
    )
    return scene_of(env, model), film


def _frame(values, labels=None, megastates=0):
    return Frame(1, 10, 0.0, megastates, 1.0, 2.0, np.asarray(values, dtype=float), labels)


def _middles(scene, cell):
    rows, columns = np.indices(scene.index.shape)
    return np.stack([rows, columns], axis=-1) * cell + cell // 2


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_cells_have_the_colour_of_their_value(theme):
    env = gym.make("TerrainMaze-v0", shape=(6, 4))
    scene = scene_of(env, as_model(env))
    picture = Map(scene, (120, 80), theme)
    assert picture.cell == 20
    assert picture.size == (120, 80)
    values = np.linspace(-3.0, 5.0, 24)
    pixels = np.asarray(picture.paint(_frame(values), _NOWHERE))
    middles = _middles(scene, 20)
    marked = [scene.start, *scene.goals.tolist()]
    for cell, state in np.ndenumerate(scene.index):
        if state not in marked:
            row, column = middles[cell]
            expected = value_colors((values[state] + 3.0) / 8.0)
            assert np.abs(pixels[row, column].astype(int) - expected).max() <= 3


def test_borders_lie_between_megastates_and_walls_where_moves_end():
    env = gym.make("StandardMaze-v0", shape=(5, 5), layout_seed=2)
    scene = scene_of(env, as_model(env))
    picture = Map(scene, (200, 200), LIGHT)
    assert picture.cell == 40
    labels = np.arange(25, dtype=np.int32) // 5  # columns
    frame = _frame(np.ones(25), labels, megastates=5)
    pixels = np.asarray(picture.paint(frame, _NOWHERE)).astype(int)
    plain = np.asarray(picture.paint(frame, _NOWHERE, borders=False)).astype(int)
    for row in range(5):
        for column in range(4):
            place = row * 40 + 20, (column + 1) * 40
            if {scene.start, *scene.goals.tolist()} & set(scene.index[row, column : column + 2]):
                continue  # below the mark
            if scene.wall_right[row, column]:
                np.testing.assert_array_equal(pixels[place], LIGHT.wall)
            else:
                # Lighter than without, and white but for a share.
                assert pixels[place].sum() > plain[place].sum()
                assert pixels[place].min() >= 200
    for row in range(4):
        for column in range(5):
            place = (row + 1) * 40, column * 40 + 20
            if {scene.start, *scene.goals.tolist()} & set(scene.index[row : row + 2, column]):
                continue  # below the mark
            if scene.wall_below[row, column]:
                np.testing.assert_array_equal(pixels[place], LIGHT.wall)
            else:  # one mega-state
                np.testing.assert_array_equal(pixels[place], plain[place])


def test_what_is_not_finite_has_a_colour_of_its_own():
    env = gym.make("TerrainMaze-v0", shape=(4, 4))
    scene = scene_of(env, as_model(env))
    values = np.ones(16)
    values[5] = np.inf
    pixels = np.asarray(Map(scene, (80, 80), DARK).paint(_frame(values), _NOWHERE))
    row, column = np.argwhere(scene.index == 5)[0] * 20 + 10
    np.testing.assert_array_equal(pixels[row, column], DARK.unknown)


def test_a_path_is_drawn_through_the_cells_that_it_visits():
    env = gym.make("TerrainMaze-v0", shape=(5, 5))
    scene = scene_of(env, as_model(env))
    path = np.array([12, 13, 8])
    pixels = np.asarray(Map(scene, (200, 200), LIGHT).paint(_frame(np.ones(25)), path))
    for state in path:
        row, column = np.argwhere(scene.index == state)[0] * 40 + 20
        np.testing.assert_array_equal(pixels[row, column], LIGHT.path)


@pytest.mark.parametrize("size", [(300, 200), (720, 480), (1280, 800), (420, 900), (64, 48)])
@pytest.mark.parametrize("env_id", ["TerrainMaze-v0", "NDMaze-v0", "CliffWalking-v1"])
def test_pictures_have_the_size_that_is_asked_for(size, env_id):
    scene, film = _run(gym.make(env_id))
    painter = Painter(scene, Words("title", "subtitle"), size, LIGHT)
    for frame in film.frames[::4]:
        assert painter.paint(frame, film.points(), _NOWHERE).size == size


@pytest.mark.parametrize("size", [(600, 360), (800, 460), (420, 560)])
def test_no_word_of_slices_is_cut_short(size, monkeypatch):
    """Sizes as windows of 600x420, 800x520 and a high one leave them."""
    env = gym.make("NDMaze-v0", shape=(3, 3, 2, 2))
    scene = scene_of(env, as_model(env))
    written = []
    monkeypatch.setattr(painting, "write", lambda *given: written.append(given[2]))
    words = words_of(
        "DiscretizedMountainCar-v0",
        "adaptive_aggregation",
        planners.Discounted(0.95),
        0.057,
        scene.caption,
    )
    painter = Painter(scene, words, size, LIGHT)
    frame = _frame(np.arange(36.0), np.arange(36) // 9, megastates=193)
    painter.paint(frame, [], _NOWHERE, note="paused")
    assert "DiscretizedMountainCar-v0" in written
    assert any("193 mega-states" in text and "paused" in text for text in written)
    assert words.subtitle in " ".join(written)
    assert not any("…" in text for text in written)


@pytest.mark.parametrize("shape", [(20, 20), (50, 10), (10, 50), (300, 300)])
def test_recorded_pictures_fit_their_map(shape):
    env = gym.make("TerrainMaze-v0", shape=shape)
    scene = scene_of(env, as_model(env))
    width, height = snug_size(scene, (720, 480))
    assert width <= 720
    assert height <= 480
    assert width % 2 == height % 2 == 0
    Painter(scene, Words("a", "b"), (width, height), LIGHT)


def test_a_picture_without_any_bound_or_point_is_drawn():
    env = gym.make("TerrainMaze-v0", shape=(5, 5))
    scene = scene_of(env, as_model(env))
    first = Frame(0, 0, 0.0, 0, math.nan, math.nan, np.zeros(25), None)
    painter = Painter(scene, Words("a", "b"), (400, 300), LIGHT)
    assert painter.paint(first, [], _NOWHERE).size == (400, 300)


def test_a_gif_shows_each_picture_for_its_time(tmp_path):
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    pictures = [lambda c=color: Image.new("RGB", (30, 20), c) for color in colors]
    file = tmp_path / "run.gif"
    write_gif(file, pictures, [120, 120, 2500], colors)
    with Image.open(file) as gif:
        assert gif.n_frames == 3
        assert gif.info.get("loop") == 0
        for place, color in enumerate(colors):
            gif.seek(place)
            assert gif.convert("RGB").getpixel((7, 7)) == color
            assert gif.info["duration"] == (2500 if place == 2 else 120)


@pytest.mark.parametrize("theme", THEMES)
def test_a_gif_has_the_colours_of_the_picture(theme, tmp_path):
    env = gym.make("TerrainMaze-v0", shape=(8, 8))
    file = tmp_path / "run.gif"
    planners.watch(env, gamma=0.9, num_iterations=14, record=file, theme=theme, frames=10)
    assert len(table_of_colors(THEMES[theme])) <= 256
    with Image.open(file) as gif:
        assert gif.n_frames <= 10
        gif.seek(gif.n_frames - 1)
        pixels = np.asarray(gif.convert("RGB")).reshape(-1, 3)
        for color in (THEMES[theme].path, THEMES[theme].ground, THEMES[theme].ink):
            assert (pixels == color).all(axis=1).any()


def test_a_film_holds_as_many_pictures_as_its_time_takes(tmp_path):
    ffmpeg = pytest.importorskip(
        "imageio_ffmpeg", reason="pip install aggmaze[video]; .ci/run does"
    )
    file = tmp_path / "run.mp4"
    env = gym.make("TerrainMaze-v0", shape=(8, 8))
    planners.watch(env, gamma=0.9, num_iterations=14, record=file, frames=10, size=(400, 300))
    pictures, seconds = ffmpeg.count_frames_and_secs(str(file))
    assert abs(pictures - 30 * seconds) <= 2
    assert 2.5 < seconds < 5


def test_a_film_without_an_encoder_names_the_extra_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ModuleNotFoundError, match=r"aggmaze\[video\]"):
        planners.watch(
            gym.make("TerrainMaze-v0"),
            gamma=0.9,
            record=tmp_path / "run.mp4",
            callback=lambda progress: pytest.fail("the solve began"),
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [(700, 480), (480, 700)])
def test_numbers_and_curves_that_are_kept_are_those_of_the_last_picture(size):
    env = gym.make("TerrainMaze-v0", shape=(6, 6))
    scene, film = _run(env, iterations=12)
    painter = Painter(scene, Words("a", "b", "cost-to-go"), size, LIGHT)
    frame, points = film.frames[6], film.points()
    drawn = painter.pixels(frame, points, _NOWHERE).copy()
    kept = painter.pixels(frame, points, _NOWHERE, panel=False).copy()
    np.testing.assert_array_equal(kept, drawn)
    # A later frame has values of its own, and the old numbers and curves.
    kept = painter.pixels(film.frames[-1], points, _NOWHERE, panel=False).copy()
    whole = painter.pixels(film.frames[-1], points, _NOWHERE).copy()
    differs = (kept != whole).any(axis=-1)
    assert differs.any()
    np.testing.assert_array_equal(kept[differs], drawn[differs])
    assert (kept != drawn).any()


@pytest.mark.parametrize(
    ("shape", "area"), [((20, 16), (61, 47)), ((20, 16), (120, 120)), ((100, 80), (61, 47))]
)
def test_borders_are_where_pixels_of_other_megastates_are(shape, area):
    env = gym.make("TerrainMaze-v0", shape=shape)
    scene = scene_of(env, as_model(env))
    picture = Map(scene, area, LIGHT)
    labels = np.random.default_rng(1).integers(0, 3, shape[0] * shape[1]).astype(np.int32)
    values = np.ones(len(labels))
    values[0] = 2.0
    pixels = np.asarray(picture.paint(_frame(values, labels, 3), _NOWHERE)).astype(int)
    plain = np.asarray(picture.paint(_frame(values), _NOWHERE)).astype(int)
    rows = np.minimum(np.arange(picture.size[1]) / picture.cell, shape[1] - 1).astype(int)
    columns = np.minimum(np.arange(picture.size[0]) / picture.cell, shape[0] - 1).astype(int)
    own = labels[scene.index[np.ix_(rows, columns)]]
    edge = np.zeros(own.shape, dtype=bool)
    edge[1:] |= own[1:] != own[:-1]
    edge[:, 1:] |= own[:, 1:] != own[:, :-1]
    # Marks lie over both.
    clear = (plain == plain[len(plain) // 2, len(plain[0]) // 2]).all(axis=-1)
    assert clear.sum() > 1000
    lighter = (pixels != plain).any(axis=-1)
    np.testing.assert_array_equal(lighter[clear], edge[clear])


def _ring(count):
    P = np.roll(np.eye(count), 1, axis=1)[:, np.newaxis]
    return TabularMDP.from_matrices(P, costs=np.ones((count, 1)))


def test_discs_have_the_colour_of_their_value_and_rings_that_of_their_megastate():
    model = _ring(8)
    scene = scene_of(model, model)
    nodes = Nodes(scene, (420, 320), LIGHT)
    values, labels = np.arange(8.0), np.array([0, 0, 1, 1, 1, 2, 3, 4], dtype=np.int32)
    pixels = np.asarray(nodes.paint(_frame(values, labels, 5), _NOWHERE)).astype(int)
    plain = np.asarray(nodes.paint(_frame(values), _NOWHERE)).astype(int)
    for state, (x, y) in enumerate(nodes._points):
        inside = pixels[round(y - 0.7 * nodes.radius), round(x)]
        assert np.abs(inside - value_colors(values[state] / 7)).max() <= 12
        # Straight below, where a ring would be, and no mark is.
        below = round(y + nodes.radius * (1 + 1.0 * 0.22)), round(x)
        group = {0: 0, 1: 0, 2: 1, 3: 1, 4: 1}.get(state)
        if group is None:
            np.testing.assert_array_equal(pixels[below], plain[below])
        else:
            assert np.abs(pixels[below] - GROUPS[group]).max() <= 12


def test_arrows_lead_where_the_policy_does():
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1, :, 2] = P[2, :, 0] = 1.0
    model = TabularMDP.from_matrices(P, costs=np.ones((3, 2)))
    nodes = Nodes(scene_of(model, model), (400, 300), LIGHT)
    pictures = [
        np.asarray(nodes.paint(_frame(np.ones(3)), _NOWHERE, np.array([action, 0, 0])))
        for action in (0, 1)
    ]
    differs = (pictures[0] != pictures[1]).any(axis=-1)
    for action, there in ((0, 1), (1, 2)):
        start, end = nodes._points[0], nodes._points[there]
        along = end - start
        middle = (start + end) / 2 + 0.06 * np.array([-along[1], along[0]])
        x, y = np.rint(middle).astype(int)
        spot = np.s_[y - 3 : y + 4, x - 3 : x + 4]
        assert differs[spot].any()
        assert (pictures[action][spot] != LIGHT.card).any()
        assert (pictures[1 - action][spot] == LIGHT.card).all()


def test_bars_stand_in_the_order_of_values_with_the_bound_around_them():
    model = _ring(100)
    scene = scene_of(model, model)
    bars = Bars(scene, (700, 400), LIGHT)
    width, height = bars.room
    values = np.random.default_rng(0).permutation(100) / 10.0
    frame = Frame(1, 10, 0.0, 0, 0.1, 0.5, values, None)
    low, high = axis_of(0.0, 9.9, 0.5)
    pixels = np.asarray(bars.paint(frame, _NOWHERE))[bars._small :, bars._left :]
    for rank in (3, 50, 96):
        x = int((rank + 0.4) * width / 100)
        row = (high - rank / 10) / (high - low) * (height - 1)
        below = round(row + 0.6 / (high - low) * height)
        colour = np.array(value_colors(rank / 99)).astype(int)
        assert np.abs(pixels[below, x].astype(int) - colour).max() <= 6
        # Within the bound the band lies over it, above it there is nothing.
        within = round(row - 0.3 / (high - low) * height)
        assert (pixels[within, x] != LIGHT.card).any()
        above = round(row - 0.7 / (high - low) * height)
        assert tuple(pixels[above, x]) in (LIGHT.card, LIGHT.line)


@pytest.mark.parametrize(("bottom", "top"), [(0.0, 1.0), (-3.7, 1250.0), (5.64, 5.6457), (-1, 1e9)])
def test_ticks_are_few_round_numbers_of_the_range(bottom, top):
    found = ticks(bottom, top)
    assert 2 <= len(found) <= 7
    assert bottom <= found[0]
    assert found[-1] <= top * (1 + 1e-12)
    step = found[1] - found[0]
    assert float(f"{step:.2e}") == pytest.approx(step)
    np.testing.assert_allclose(np.diff(found), step, rtol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 30, 500])
@pytest.mark.parametrize("size", [(300, 200), (1280, 800), (420, 900), (64, 48)])
def test_models_without_a_map_are_drawn_in_any_size(count, size):
    model = _ring(count)
    scene = scene_of(model, model)
    values = np.linspace(0, 1, count)
    values[0] = np.inf
    frame = _frame(values, np.zeros(count, dtype=np.int32), 1)
    painter = Painter(scene, Words("a", "b"), size, DARK)
    assert painter.paint(frame, [], _NOWHERE, np.zeros(count, dtype=np.int64)).size == size


def test_bins_of_states_that_are_not_drawn_leave_the_bar_as_it_is():
    # Cells of a cart have one state more, beyond the map, whose values are far from the others'.
    env = gym.make("DiscretizedCartPole-v0")
    scene = scene_of(env, as_model(env))
    count = as_model(env).num_listed_states
    assert scene.num_states < count
    values = np.linspace(-1.0, 0.0, count)
    values[scene.num_states :] = 500.0
    labels = (np.arange(count) // (scene.num_states // 4 + 1)).astype(np.int32)
    labels[scene.num_states :] = 7
    painter = Painter(scene, Words("a", "b"), (700, 480), LIGHT)
    painter.paint(_frame(values, labels, 5), [], _NOWHERE)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_words_are_broken_into_lines_that_fit(most):
    text = "adaptive aggregation, gamma 0.97, bins of 1.4; slices along axis 2, in reading order"
    lines = wrapped(text, 12, 200, most)
    assert len(lines) == most
    assert all(width_of(line, 12) <= 200 for line in lines)
    told = " ".join(lines).removesuffix("…")
    assert text.startswith(told)
    assert wrapped("short", 12, 200, most) == ["short"]


def test_the_first_text_that_fits_is_taken():
    texts = ["a long text of many words", "a shorter text", "short"]
    for text in texts:
        assert first_fitted(texts, 12, width_of(text, 12)) == text
    cut = first_fitted(texts, 12, width_of("short", 12) - 1)
    assert cut.endswith("…")
    assert "short".startswith(cut[:-1])


@pytest.mark.parametrize("size", [(490, 512), (870, 760)])
def test_names_fill_their_discs_and_do_not_leave_them(size, monkeypatch):
    rng = np.random.default_rng(0)
    P = np.zeros((40, 1, 40))
    for state in range(40):
        P[state, 0, rng.choice(40, 2, replace=False)] = 0.5
    model = TabularMDP.from_matrices(P, costs=np.ones((40, 1)))
    written = []
    monkeypatch.setattr("planners.watching.nodes.write", lambda *given: written.append(given[2:4]))
    nodes = Nodes(scene_of(model, model), size, LIGHT)
    nodes.paint(_frame(np.arange(40.0)), _NOWHERE)
    assert [text for text, _ in written] == [str(state) for state in range(40)]
    (letters,) = {letters for _, letters in written}
    assert letters >= 11
    assert max(width_of(str(state), letters) for state in range(40)) <= 2 * nodes.radius
