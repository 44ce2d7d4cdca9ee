"""What notebooks show of models and environments: read back from the HTML."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import aggmaze
from aggmaze import cards
from aggmaze.envs.cards import show_wrappers, wrapper_html
from aggmaze.rendering.raster import Raster

#: What the issue asks for.
MOST_BYTES = 200_000
NASTY = '"><script>alert("hello")</script>'


class Reader(HTMLParser):
    """Reads a card: balanced tags of a few kinds, pictures, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.pictures: list[dict[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {"div", "table", "tr", "th", "td", "img"}
        assert {name for name, _ in attrs} <= {"style", "src", "alt", "width"}
        if tag == "img":
            self.pictures.append(dict(attrs))
        else:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def fact(self, name: str) -> str:
        """Return what stands beside a name."""
        return self.texts[self.texts.index(name) + 1]


def pixels_of(source: Any) -> Any:
    """Return the pixels of a picture from its address."""
    kind, _, data = source.partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def points_of(source: str) -> list[Any]:
    """Return the points of each curve of a drawing, y upwards."""
    kind, _, data = source.partition(",")
    assert kind == "data:image/svg+xml;base64"
    root = ElementTree.fromstring(base64.b64decode(data))
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    return [
        np.array([pair.split(",") for pair in line.attrib["points"].split()], float) * (1, -1)
        for line in lines
    ]


def test_the_environment_as_it_is_drawn() -> None:
    env = gym.make("StandardMaze-v0", shape=(5, 4), p=0.75)
    env.reset(seed=0)
    env.step(0)
    inside: Any = env.unwrapped
    card = Reader(inside._repr_html_())
    assert card.texts[0] == "StandardMaze-v0"
    assert card.fact("made with") == "shape=(5, 4), p=0.75"
    assert card.fact("states") == "20"
    state = inside._state
    coords = tuple(inside.grid.coords(state).tolist())
    assert card.fact("the agent is in") == f"state {state}, at {coords}"
    (picture,) = card.pictures
    expected = Raster(inside.layout).frame(state)
    assert np.array_equal(pixels_of(picture["src"]), expected)


def test_a_card_changes_nothing() -> None:
    env: Any = gym.make("TerrainMaze-v0", shape=(4, 4), render_mode="rgb_array").unwrapped
    env.reset(seed=3)
    before = env.render()
    raster = env._raster
    env._repr_html_()
    assert env._raster is raster
    assert np.array_equal(env.render(), before)


@pytest.mark.parametrize("env_id", aggmaze.ENV_IDS)
def test_every_environment_has_a_card_with_a_picture(env_id: str) -> None:
    inside: Any = gym.make(env_id).unwrapped
    page = inside._repr_html_()
    assert len(page.encode()) < MOST_BYTES
    assert len(Reader(page).pictures) == 1


def test_a_model_by_its_transitions() -> None:
    # 0 leads to 1, 1 to 2 or back to 0, 2 ends.
    P = np.zeros((3, 1, 3))
    P[0, 0, 1] = P[2, 0, 2] = 1.0
    P[1, 0, [0, 2]] = 0.5
    model = aggmaze.TabularMDP.from_matrices(P, costs=[[2.0], [3.5], [0.0]], initial=0)
    card = Reader(model._repr_html_())
    assert card.texts[0] == "TabularMDP"
    assert card.fact("states") == "3"
    assert card.fact("terminal") == "1"
    assert card.fact("start") == "state 0"
    assert card.fact("costs") == "0 to 3.5"
    (picture,) = card.pictures
    strength = pixels_of(picture["src"])[..., 3]
    size = len(strength) // 3
    cells = strength[size // 2 :: size, size // 2 :: size]
    assert np.array_equal(cells > 100, P[:, 0] > 0)
    env = Reader(aggmaze.TabularEnv(model)._repr_html_())
    assert env.pictures[0]["src"] == picture["src"]


def test_a_model_of_moves_by_its_transitions() -> None:
    costs = [[1.0, np.inf], [2.0, 3.0], [np.inf, np.inf]]
    model = aggmaze.MoveMDP([[1, 0], [2, 0], [0, 0]], costs, p=0.5)
    card = Reader(model._repr_html_())
    assert card.fact("costs of moves") == "1 to 3"
    assert card.fact("moves") == "3 available"
    strength = pixels_of(card.pictures[0]["src"])[..., 3]
    size = len(strength) // 3
    cells = strength[size // 2 :: size, size // 2 :: size]
    assert np.array_equal(cells > 100, [[0, 1, 0], [1, 0, 1], [0, 0, 0]])


def test_a_model_without_a_table_is_not_looked_through() -> None:
    stage = aggmaze.EventStage(2, lambda point, event: event, [[0.5, 0.5], [0.1, 0.9]], row=_same)
    model = aggmaze.EventMDP(2, 1, lambda s, a, e: e, [0.25, 0.75], _free, stages=[stage])
    card = Reader(model._repr_html_())
    assert card.fact("events") == "2"
    assert card.fact("stage 1") == "2 points, 2 events"
    assert len(card.pictures) == 2
    assert "_extent" not in vars(model)  # what `validate` finds by calling the functions
    root = ElementTree.fromstring(base64.b64decode((card.pictures[0]["src"] or "").split(",")[1]))
    bars = root.findall("{http://www.w3.org/2000/svg}rect")
    heights = [float(bar.attrib["height"]) for bar in bars]
    assert heights[0] / heights[1] == pytest.approx(1 / 3, abs=0.01)


def _same(point: int) -> int:
    return point


def _free(state: int, action: int) -> float:
    return 0.0


def test_models_made_of_environments_say_of_which() -> None:
    lake = gym.make("FrozenLake-v1")
    found = aggmaze.tabularize(lake)
    page = found._repr_html_()
    assert "FrozenLake" in Reader(page).texts[0]
    assert wrapper_html(found) == page
    hill = aggmaze.discretize(gym.make("MountainCar-v0"), bins=(40, 40))
    assert Reader(hill._repr_html_()).texts[0].endswith(", 40 x 40: TabularMDP")


def test_names_of_strangers_stay_text() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    P = np.eye(2)[:, np.newaxis]
    model = aggmaze.TabularMDP.from_matrices(
        P, costs=[[0.0], [0.0]], state_names=[NASTY, Silent()], action_names=["<b>"], initial=NASTY
    )
    for page in (model._repr_html_(), aggmaze.TabularEnv(model)._repr_html_()):
        card = Reader(page)
        assert "<script" not in page
        assert NASTY in card.fact("states")
        assert "<b>" in card.fact("actions")
    env: Any = gym.make("StandardMaze-v0", layout="S.\n.G").unwrapped
    assert "S.\\n.G" in Reader(env._repr_html_()).fact("made with")


def test_contents_that_are_not_valid_are_shown_too() -> None:
    model = aggmaze.TabularMDP(np.full((2, 2), np.nan), [[np.nan], [np.inf]])
    assert Reader(model._repr_html_()).fact("costs") == "none is finite"


def test_a_thousand_by_a_thousand() -> None:
    env = gym.make("TerrainMaze-v0", shape=(1000, 1000), terrain="uniform").unwrapped
    model = env.transition_model()  # type: ignore[attr-defined]
    for shown in (env, model):
        page = shown._repr_html_()
        assert len(page.encode()) < MOST_BYTES
        Reader(page)
    assert "one transition in 8" in Reader(model._repr_html_()).texts[-1]


def test_noise_is_reduced_until_it_is_small() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (900, 700, 3), dtype=np.uint8)
    figure = cards.picture(noise, "noise")
    assert len(figure.source) * 3 / 4 <= cards.MOST_BYTES
    small = pixels_of(figure.source)
    assert small.shape[0] == 200 or small.shape[0] in cards.REDUCED
    assert abs(small.shape[1] / small.shape[0] - 7 / 9) < 0.01


def test_small_pictures_are_kept_as_they_are() -> None:
    rng = np.random.default_rng(0)
    flat = rng.integers(0, 256, (6, 5, 3), dtype=np.uint8).repeat(80, axis=0).repeat(80, axis=1)
    assert np.array_equal(pixels_of(cards.picture(flat, "").source), flat)


def test_a_profile_is_the_values_in_order() -> None:
    (line,) = points_of(cards.profile([3.0, np.inf, 0.0, 1.0, -np.inf], "").source)
    x, y = line.T
    assert np.allclose(np.diff(x), x[1] - x[0])
    assert np.allclose((y - y[0]) / (y[-1] - y[0]), [0, 1 / 3, 1], atol=1e-3)
    # The difference of the largest numbers that there are is infinite.
    (line,) = points_of(cards.profile([-1.7e308, 0.0, 1.7e308], "").source)
    assert np.allclose(np.diff(line[:, 1]), line[1, 1] - line[0, 1], atol=0.1)


def test_progress_is_drawn_on_a_logarithmic_scale() -> None:
    figure = cards.progress([([0, 1, 2, 5], [1.0, 0.1, np.nan, 0.01]), ([3], [0.1])], "")
    assert figure is not None
    first, second = points_of(figure.source)
    assert np.allclose(np.diff(first[:, 1]), first[1, 1] - first[0, 1])
    assert second[0, 1] == first[1, 1]
    assert np.diff(first[:, 0]) == pytest.approx(
        (first[-1, 0] - first[0, 0]) * np.array([0.2, 0.8])
    )
    assert cards.progress([([1], [1.0]), ([1, 2], [0.0, np.inf])], "") is None


def test_copies_are_drawn_where_they_are() -> None:
    envs: Any = gym.make_vec("StandardMaze-v0", num_envs=3, shape=(5, 4))
    assert Reader(envs._repr_html_()).texts[-1] == "the maze, before the first reset"
    coords = [(1, 2), (4, 3), (1, 2)]
    envs.reset(seed=0, options={"coords": coords})
    before = envs._states.copy()
    card = Reader(envs._repr_html_())
    assert np.array_equal(envs._states, before)
    assert card.texts[0] == "StandardMaze-v0, vectorized"
    assert card.fact("copies") == "3"
    assert card.fact("made with") == "shape=(5, 4)"
    assert card.fact("an episode") == "at most 1,000 steps"
    assert card.fact("states") == "20"
    raster = Raster(envs.single_env.layout)
    with_all = raster.frame(None)
    for x, y in coords[:2]:
        alone = raster.frame(envs.single_env.grid.state((x, y)))
        changed = (alone != raster.frame(None)).any(axis=-1)
        with_all[changed] = alone[changed]
    assert np.array_equal(pixels_of(card.pictures[0]["src"]), with_all)


def test_copies_with_mazes_of_their_own_and_without_one() -> None:
    envs: Any = gym.make_vec("StandardMaze-v0", num_envs=2, shape=(4, 4))
    envs.reset(seed=0, options={"layout_seed": [3, 4]})
    card = Reader(envs._repr_html_())
    assert card.fact("mazes").startswith("one of its own for each copy")
    first = envs.single_envs[0]
    expected = Raster(first.layout).frame(int(envs._states[0]))
    assert np.array_equal(pixels_of(card.pictures[0]["src"]), expected)
    cells: Any = gym.make_vec("DiscretizedMountainCar-v0", num_envs=2, bins=(6, 5))
    assert len(Reader(cells._repr_html_()).pictures) == 1
    wrapped = gym.wrappers.vector.RecordEpisodeStatistics(cells)
    page = wrapper_html(wrapped)
    assert page is not None
    assert Reader(page).fact("wrappers") == "RecordEpisodeStatistics"


def test_wrappers_are_named() -> None:
    env = gym.make("StandardMaze-v0", shape=(3, 3))
    page = wrapper_html(env)
    assert page is not None
    card = Reader(page)
    assert card.fact("wrappers").split(", ")[0] == "TimeLimit"
    assert card.fact("an episode") == "at most 1,000 steps"
    assert wrapper_html(gym.make("FrozenLake-v1")) is None


def test_a_wrapper_with_a_card_of_its_own_keeps_it() -> None:
    class Own(gym.Wrapper[Any, Any, Any, Any]):
        def _repr_html_(self) -> str:
            return "mine"

    assert wrapper_html(Own(gym.make("StandardMaze-v0", shape=(3, 3)))) == "mine"


class Formatter(dict[type, Any]):
    """Stands for IPython's table of types."""

    def for_type(self, kind: type, function: Any) -> None:
        self[kind] = function


class Shell:
    """Stands for a session of IPython."""

    def __init__(self) -> None:
        self.display_formatter = self
        self.formatters = {"text/html": Formatter()}


def test_a_session_is_told_of_wrappers_once() -> None:
    shell = Shell()
    show_wrappers(shell)
    kinds = (gym.Wrapper, gym.vector.VectorWrapper)
    assert shell.formatters["text/html"] == dict.fromkeys(kinds, wrapper_html)
    shell.formatters["text/html"][gym.Wrapper] = "the user's own"
    show_wrappers(shell)
    assert shell.formatters["text/html"][gym.Wrapper] == "the user's own"


def test_cards_need_no_matplotlib_and_no_window() -> None:
    script = (
        "import sys, gymnasium as gym, aggmaze\n"
        "env = gym.make('StandardMaze-v0', shape=(3, 3)).unwrapped\n"
        "env._repr_html_()\n"
        "env.transition_model()._repr_html_()\n"
        "assert 'matplotlib' not in sys.modules\n"
        "assert 'IPython' not in sys.modules\n"
        "assert 'pygame.display' not in sys.modules or not sys.modules['pygame'].display.get_init()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_numbers_are_short() -> None:
    assert [cards.number(x) for x in (0.0, 1.5, 12345.6, 1e12, -0.000123456)] == [
        "0",
        "1.5",
        "12,346",
        "1e+12",
        "-0.0001235",
    ]
    assert cards.counted(1, "sweep") == "1 sweep"
    assert cards.counted(1200, "sweep") == "1,200 sweeps"
    assert cards.span(np.array([1.0, np.inf, 2.0])) == "1 to 2"
