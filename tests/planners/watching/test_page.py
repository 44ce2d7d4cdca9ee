"""The page: one file, small, whose arrays are what the solver had; read as its script reads it."""

import base64
import json
import math
import re
import shutil
import subprocess
import zlib

import gymnasium as gym
import numpy as np
import pytest

import planners
from aggmaze.rendering.colors import value_colors
from planners import as_model
from planners.watching.film import Film
from planners.watching.run import Recorder

_BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
_GAMMA = 0.95


def _parts(text):
    head = re.search(r'<script id="head" type="application/json">(.*?)</script>', text, re.S)
    body = re.search(r'<script id="body" type="text/plain">(.*?)</script>', text, re.S)
    return json.loads(head[1]), zlib.decompress(base64.b64decode(body[1]))


def _decoded(text):
    """Return the head, and cells, values, actions, sets and paths of all frames."""
    head, body = _parts(text)
    place = 0

    def take(dtype, *shape):
        nonlocal place
        count = math.prod(shape)
        found = np.frombuffer(body, dtype, count, place).reshape(shape)
        place += found.nbytes
        return found

    rows, columns, states, frames = (
        head["rows"],
        head["columns"],
        head["states"],
        len(head["frames"]),
    )
    index = take("<i4", rows, columns)
    for _ in range(3):
        take("u1", (rows * columns + 7) // 8)
    upper, lower = take("u1", frames, states), take("u1", frames, states)
    steps = np.cumsum(upper.astype(int) * 256 + lower, axis=0) % 65536
    actions = np.cumsum(take("u1", frames, states).astype(int), axis=0) % 256
    sets = np.cumsum(take("<u2", head["sets"], states).astype(int), axis=0) % 65536
    paths = [np.cumsum(take("<i4", frame[9])) for frame in head["frames"]]
    assert place == len(body)
    table = np.array([frame[6:8] for frame in head["frames"]])
    values = table[:, :1] + (table[:, 1:] - table[:, :1]) * steps / 65534
    return head, index, values, actions, sets, paths


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return the page of a run, and the film of the same run."""
    env = gym.make("TerrainMaze-v0", shape=(12, 9), layout_seed=1)
    file = tmp_path_factory.mktemp("page") / "run.html"
    arguments = {"gamma": _GAMMA, "method": "adaptive_aggregation", "epsilon": 0.7}
    result = planners.watch(env, record=file, num_iterations=60, **arguments)
    film = Film(108)
    planners.solve(env, num_iterations=60, callback=Recorder(film, 108), **arguments)
    return file, film, result, env


def test_the_page_holds_values_megastates_and_actions_of_each_frame(recorded):
    file, film, result, env = recorded
    head, index, values, actions, sets, paths = _decoded(file.read_text())
    np.testing.assert_array_equal(np.sort(index.reshape(-1)), np.arange(108))
    assert [frame[0] for frame in head["frames"]] == [frame.iteration for frame in film.frames]
    model = as_model(env)
    for place, frame in enumerate(film.frames):
        width = np.ptp(frame.values)
        np.testing.assert_allclose(values[place], frame.values, atol=width / 65534 + 1e-12)
        told = head["frames"][place]
        assert told[3] == frame.num_megastates
        if frame.labels is None:
            assert told[8] == -1
        else:
            np.testing.assert_array_equal(sets[told[8]], frame.labels)
        Q = planners.q_values(model, frame.values, _GAMMA)
        acting = np.flatnonzero(actions[place] != 255)
        assert len(acting) == 107  # all but the goal
        if place < len(film.frames) - 1:
            chosen = Q[acting, actions[place][acting]]
            np.testing.assert_allclose(chosen, Q[acting].min(axis=1), atol=1e-9)
    np.testing.assert_array_equal(actions[-1][acting], result.policy[acting])
    assert head["frames"][-1][5] == pytest.approx(result.bound, rel=1e-5)
    # Paths begin at the start and go to neighbours.
    for path in paths:
        assert path[0] == head["start"]
        steps = np.abs(np.diff(np.stack(np.unravel_index(path, (12, 9))), axis=1)).sum(axis=0)
        assert (steps <= 1).all()


def test_the_page_stands_alone(recorded):
    text = recorded[0].read_text()
    for word in ("http:", "https:", "//cdn", "@import", "url(", "src=", "<link"):
        assert word not in text
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert "{{" not in text


def test_pages_stay_small(tmp_path):
    file = tmp_path / "run.html"
    env = gym.make("TerrainMaze-v0", shape=(50, 50), terrain="uniform")
    planners.watch(env, gamma=0.98, record=file)
    assert file.stat().st_size < 3_000_000
    # Of a page that would be larger frames are left out.
    env = gym.make("TerrainMaze-v0", shape=(150, 150), terrain="uniform")
    planners.watch(env, gamma=0.98, method="value_iteration", num_iterations=200, record=file)
    assert file.stat().st_size < 3_000_000
    head = _parts(file.read_text())[0]
    assert 10 <= len(head["frames"]) < 160
    assert head["frames"][-1][0] == 200


def test_titles_are_text_and_no_markup(tmp_path):
    file = tmp_path / "run.html"
    title = "<b>&</script><script>alert(1)</script>"
    planners.watch(
        gym.make("TerrainMaze-v0", shape=(4, 4)),
        gamma=0.9,
        num_iterations=3,
        record=file,
        title=title,
    )
    text = file.read_text()
    assert "alert(1)</script>" not in text
    assert _parts(text)[0]["title"] == title


_PROBE = """
<script>
(async () => {
  const seen = { errors: [] };
  window.addEventListener("error", e => seen.errors.push(e.message));
  while (!document.getElementById("iteration").textContent)
    await new Promise(done => setTimeout(done, 20));
  seen.last = document.getElementById("iteration").textContent;
  const slider = document.getElementById("slider");
  slider.value = 5; slider.dispatchEvent(new Event("input"));
  seen.fifth = document.getElementById("iteration").textContent;
  seen.phase = document.getElementById("phase").textContent;
  const map = document.getElementById("map"), box = map.getBoundingClientRect();
  const [x, y] = map.spot(POINTED);
  map.dispatchEvent(new PointerEvent("pointermove", {
    clientX: box.left + x, clientY: box.top + y }));
  seen.tip = [...document.getElementById("tip").children].map(e => e.textContent);
  const pen = map.getContext("2d"), dense = map.width / map.clientWidth;
  seen.pixel = [...pen.getImageData(x * dense, (y) * dense, 1, 1).data];
  seen.wide = document.documentElement.scrollWidth <= window.innerWidth;
  const theme = document.documentElement.dataset.theme;
  document.getElementById("theme").click();
  seen.turned = theme !== document.documentElement.dataset.theme;
  document.title = JSON.stringify(seen);
})();
</script>
"""


def _probed(file, state, width, tmp_path):
    """Return what a browser shows of a page, with the pointer on a state of the sixth frame."""
    page = tmp_path / "probe.html"
    probe = _PROBE.replace("POINTED", str(state))
    page.write_text(file.read_text().replace("</body>", probe + "</body>"))
    done = subprocess.run(
        [
            _BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={width},900",
            "--virtual-time-budget=10000",
            "--dump-dom",
            page.as_uri() + "#theme=dark",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    title = re.search(r"<title>(\{.*?\})</title>", done.stdout, re.S)
    assert title, done.stderr[-2000:]
    seen = json.loads(title[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert seen["errors"] == []
    assert seen["wide"]
    assert seen["turned"]
    return seen


def _shown_color(frame, state):
    """Return the colour of a state's value."""
    share = (frame.values[state] - frame.values.min()) / np.ptp(frame.values)
    return value_colors(share)


_NEEDS_BROWSER = pytest.mark.skipif(
    _BROWSER is None, reason="apt-get install chromium; .ci/run does"
)


@_NEEDS_BROWSER
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_it(recorded, width, tmp_path):
    file, film, _, env = recorded
    state = env.unwrapped.grid.state((3, 6))
    seen = _probed(file, state, width, tmp_path)
    assert seen["last"] == "60"
    frame = film.frames[5]
    assert seen["fifth"] == str(frame.iteration)
    assert seen["phase"].startswith("aggregated" if frame.num_megastates else "global")
    assert seen["tip"][0] == "(3, 6)"
    assert float(seen["tip"][1].removeprefix("value: ")) == pytest.approx(
        frame.values[state], rel=1e-3
    )
    assert f"no. {frame.labels[state]}, with " in seen["tip"][2]
    action = planners.greedy(env, frame.values, _GAMMA)[state]
    assert seen["tip"][3] == f"action: {env.unwrapped.action_name(action)}"
    assert seen["pixel"][3] == 255
    np.testing.assert_allclose(seen["pixel"][:3], _shown_color(frame, state), atol=6)


def _named(count):
    """Return a model without a map: from each state to two others at random, or to the end."""
    rng = np.random.default_rng(3)
    table = {}
    for place in range(count - 1):
        near, far = rng.choice(count, 2, replace=False).tolist()
        table[f"s{place}"] = {
            "go": [(0.7, f"s{near}", -1.0, False), (0.3, f"s{far}", -2.0, False)],
            "wait": [(1.0, f"s{min(place + 1, count - 1)}", -rng.random() - 1.0, False)],
        }
    table[f"s{count - 1}"] = {}
    return as_model(table)


@_NEEDS_BROWSER
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(("count", "form"), [(20, "graph"), (300, "bars")])
def test_a_browser_shows_models_without_a_map(count, form, width, tmp_path):
    model, file, film = _named(count), tmp_path / "run.html", Film(count)
    arguments = {"gamma": 0.9, "method": "adaptive_aggregation", "epsilon": 0.5}
    arguments["num_iterations"] = 30
    planners.watch(model, record=file, **arguments)
    planners.solve(model, callback=Recorder(film, count), **arguments)
    assert _parts(file.read_text())[0]["form"] == form
    state, frame = 7, film.frames[5]
    seen = _probed(file, state, width, tmp_path)
    assert seen["tip"][0] == "s7"
    value = float(seen["tip"][1].removeprefix("value: "))
    assert value == pytest.approx(frame.values[state], rel=1e-3)
    action = planners.greedy(model, frame.values, 0.9)[state]
    assert seen["tip"][-1] == f"action: {model.action_names[action]}"
    assert seen["pixel"][3] == 255
