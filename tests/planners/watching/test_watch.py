"""The call and the command: results are those of a solve, whoever watches, and errors are told."""

import math
import os
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

import aggmaze
import planners
from aggmaze import keys
from aggmaze.models.tabular import TabularMDP
from aggmaze.progress import listening
from aggmaze.rendering import window as windows
from aggmaze.rendering.window import Key, Window
from planners import cli
from planners.result import Status
from planners.watching import live
from planners.watching.session import Session

_OPTIONS = {"gamma": 0.95, "method": "adaptive_aggregation", "epsilon": 0.7, "num_iterations": 40}


def _maze(**settings):
    return gym.make("TerrainMaze-v0", shape=(8, 8), **settings)


def _same(one, other):
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.policy, other.policy)
    assert one.bound == other.bound
    assert one.status == other.status
    assert one.num_updates == other.num_updates


@pytest.mark.parametrize("suffix", [".gif", ".html"])
def test_a_recorded_solve_has_the_result_of_any_other(suffix, tmp_path):
    file = tmp_path / f"run{suffix}"
    seen = []
    result = planners.watch(_maze(), record=file, callback=lambda p: seen.append(p), **_OPTIONS)
    _same(result, planners.solve(_maze(), **_OPTIONS))
    assert len(seen) == 40
    assert file.stat().st_size > 1000


@pytest.mark.parametrize(("suffix", "last"), [(".gif", "drawing"), (".html", "writing the page")])
def test_a_recording_tells_how_far_it_is(suffix, last, tmp_path):
    stages, counts = [], []
    with listening(
        lambda done, total, unit: counts.append((stages[-1], done, total, unit)),
        of_stages=stages.append,
    ):
        planners.watch(_maze(), record=tmp_path / f"run{suffix}", **_OPTIONS)
    assert [words for words in stages if words][-2:] == ["finding the greedy paths", last]
    told = [count for count in counts if count[0] in ("finding the greedy paths", "drawing")]
    total = told[0][2]
    assert total > 1
    expected = [
        (words, done, total, "frames")
        for words in ("finding the greedy paths", last)
        for done in range(total)
    ]
    assert told == (expected if suffix == ".gif" else expected[:total])


def test_two_recordings_are_the_same_file(tmp_path):
    for suffix in (".gif", ".html"):
        files = [tmp_path / f"{name}{suffix}" for name in "ab"]
        for file in files:
            planners.watch(_maze(), record=file, **_OPTIONS | {"num_iterations": 10})
        if suffix == ".gif":  # a page tells the seconds too
            assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("env_id", [*aggmaze.ENV_IDS, "FrozenLake-v1", "Taxi-v4"])
def test_every_registered_id_is_watched(env_id, tmp_path):
    file = tmp_path / "run.html"
    kwargs = {"gamma": 0.9, "method": "value_iteration", "num_iterations": 3}
    result = planners.watch(gym.make(env_id), record=file, **kwargs)
    assert result.num_iterations == 3
    assert file.stat().st_size > 1000


@pytest.mark.parametrize(
    "objective",
    [planners.TotalCost(), planners.FiniteHorizon(6), planners.AverageCost()],
    ids=["total", "horizon", "average"],
)
@pytest.mark.parametrize("suffix", [".gif", ".html"])
def test_any_model_is_watched_under_any_objective(objective, suffix, tmp_path):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(6), size=(6, 2))
    P[5] = np.eye(6)[5]
    costs = np.where(np.arange(6)[:, np.newaxis] < 5, rng.random((6, 2)), 0.0)
    terminal = np.arange(6) == 5 if isinstance(objective, planners.TotalCost) else None
    model = TabularMDP.from_matrices(P, costs=costs, terminal=terminal)
    file = tmp_path / f"run{suffix}"
    result = planners.watch(model, objective=objective, record=file)
    _same(result, planners.solve(model, objective=objective, callback=lambda p: None))
    assert file.stat().st_size > 500


def test_infinite_costs_are_drawn(tmp_path):
    # From state 0 no way leads to the end.
    P = np.zeros((3, 1, 3))
    P[0, 0, 0] = P[1, 0, 2] = P[2, 0, 2] = 1.0
    costs = np.array([[1.0], [1.0], [0.0]])
    model = TabularMDP.from_matrices(P, costs=costs, terminal=[False, False, True])
    for suffix in (".gif", ".html"):
        file = tmp_path / f"run{suffix}"
        result = planners.watch(model, gamma=1, record=file)
        assert np.isposinf(result.values[0])


def test_without_a_method_bins_are_a_sixteenth_of_the_range(tmp_path):
    labels = []
    result = planners.watch(
        _maze(),
        gamma=0.95,
        num_iterations=60,
        record=tmp_path / "run.gif",
        callback=lambda p: labels.append(p.num_megastates),
        frames=4,
    )
    assert result.method == "adaptive_aggregation"
    assert 8 <= max(labels) <= 20


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"record": "run.png"}, ValueError, r"\.gif, \.mp4 or \.html, got 'run.png'"),
        ({"record": "nowhere/run.gif"}, FileNotFoundError, "no folder 'nowhere'"),
        ({"record": "folder.gif"}, IsADirectoryError, "folder.gif"),
        ({"record": "run.gif", "frames": 1}, ValueError, "frames must be at least 2, got 1"),
        (
            {"record": "run.gif", "size": (10, 10)},
            ValueError,
            r"size, width must be in \[200, 4001\), got 10",
        ),
        ({"record": "run.gif", "size": (400,)}, ValueError, "size must be width and height"),
        ({"record": "run.html", "size": (400, 300)}, ValueError, "a page takes the room"),
        ({"record": "run.gif", "speed": 5.0}, ValueError, "speed is of the window"),
        ({"record": "run.gif", "theme": "pink"}, ValueError, "theme must be one of light, dark"),
        ({"frames": 5}, ValueError, "frames is of a recording"),
        ({"speed": 0}, ValueError, "speed must be iterations a second, above 0, got 0"),
        ({"speed": math.nan}, ValueError, "above 0, got nan"),
        ({"record": "run.gif", "method": "vi"}, ValueError, "method must be one of"),
        ({"record": "run.gif", "gamma": None}, TypeError, "gamma"),
    ],
)
def test_bad_arguments_are_refused_before_the_solve(arguments, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("folder.gif").mkdir()
    with pytest.raises(error, match=words):
        planners.watch(_maze(), **{"gamma": 0.9} | arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.gif"]


def test_a_recording_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    file = tmp_path / "run.gif"
    file.write_bytes(b"before")
    monkeypatch.setattr(
        "planners.watching.run.Painter.paint", lambda *a, **k: (_ for _ in ()).throw(OSError("x"))
    )
    with pytest.raises(OSError, match="x"):
        planners.watch(_maze(), record=file, **_OPTIONS)
    assert file.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["run.gif"]


class _Pressing:
    """Presses keys in the window of a viewer, one set at each picture."""

    def __init__(self, monkeypatch, *turns):
        self.windows = []
        pressing = self
        turns = list(turns)

        class Pressed(Window):
            def __init__(self, *arguments, **options):
                super().__init__(*arguments, **options)
                pressing.windows.append(self)

            def pressed(self):
                super().pressed()
                if not turns:
                    return []
                turn = turns[0]
                if callable(turn):
                    if turn():
                        turns.pop(0)
                    return []
                return turns.pop(0)

        monkeypatch.setattr(live, "Window", Pressed)


def _key(text="", code=0):
    return [Key(code or ord(text), text)]


def test_a_window_without_a_screen_shows_the_run_to_its_end():
    result = planners.watch(_maze(), **_OPTIONS)
    _same(result, planners.solve(_maze(), **_OPTIONS))


def test_closing_the_window_returns_the_result_so_far(monkeypatch):
    seen = []
    pressing = _Pressing(monkeypatch, lambda: len(seen) >= 4, _key(code=keys.ESCAPE))
    result = planners.watch(
        _maze(), speed=20.0, callback=lambda p: seen.append(p.iteration), **_OPTIONS
    )
    assert result.status == Status.INTERRUPTED
    assert result.message == live.CLOSED
    assert result.num_iterations == len(seen) < 40
    exact = planners.solve(_maze(), gamma=0.95, tol=1e-9).values
    assert np.abs(result.values - exact).max() <= result.bound
    assert not pressing.windows[0].is_open


def test_the_close_button_ends_the_solve(monkeypatch):
    seen = []

    def close():
        if len(seen) >= 3:
            pressing.windows[0].dismissed = True
            return True
        return False

    pressing = _Pressing(monkeypatch, close)
    result = planners.watch(
        _maze(), speed=20.0, callback=lambda p: seen.append(p.iteration), **_OPTIONS
    )
    assert result.message == live.CLOSED


def test_ctrl_c_returns_the_result_so_far(monkeypatch):
    seen = []

    def interrupt():
        if len(seen) >= 3:
            raise KeyboardInterrupt
        return False

    _Pressing(monkeypatch, interrupt)
    result = planners.watch(
        _maze(), speed=20.0, callback=lambda p: seen.append(p.iteration), **_OPTIONS
    )
    assert result.status == Status.INTERRUPTED
    assert result.message == "interrupted from the keyboard"
    with pytest.raises(KeyboardInterrupt):
        result.require()


def test_keys_pause_step_go_back_and_on(monkeypatch):
    seen, notes = [], []
    press = live.Viewer._press

    def spy(viewer, key):
        press(viewer, key)
        notes.append((viewer._note(), viewer._cursor, viewer._theme, viewer._session.speed))

    monkeypatch.setattr(live.Viewer, "_press", spy)
    _Pressing(
        monkeypatch,
        _key(" "),  # pause
        lambda: len(seen) == 1,
        _key(code=keys.RIGHT),
        lambda: len(seen) == 2,
        _key(code=keys.RIGHT),
        lambda: len(seen) == 3,
        _key(code=keys.LEFT),
        _key(code=keys.LEFT),
        _key(code=1073741898),  # Home
        _key(code=keys.RIGHT),
        _key("t"),
        _key("m"),
        _key("p"),
        _key(code=1073741901),  # End
        _key("+"),
        _key("-"),
        _key("-"),
        _key("f"),
    )
    result = planners.watch(
        _maze(), speed=10.0, callback=lambda p: seen.append(p.iteration), **_OPTIONS
    )
    _same(result, planners.solve(_maze(), **_OPTIONS))
    states = [note[:2] for note in notes]
    # Paused and stepped twice; of frames 0 to 3 back to 2 and 1, to the first, one on; then now.
    assert states[:3] == [("paused", None)] * 3
    assert states[3:7] == [("earlier", 2), ("earlier", 1), ("earlier", 0), ("earlier", 1)]
    assert [note[2] for note in notes[7:10]] == ["dark"] * 3
    assert states[10] == ("paused", None)
    assert [note[3] for note in notes[10:]] == [10.0, 20.0, 10.0, 5.0, math.inf]
    assert states[-1][0] in ("", "done")


class _Clock:
    """A clock that stands still but for sleeping, which may take longer than it should."""

    def __init__(self):
        self.now, self.oversleep = 0.0, 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds + self.oversleep
        self.oversleep = 0.0


def _begun(monkeypatch, taken, overslept=None):
    """Return when a viewer begins to draw pictures, of a run that goes on.

    Parameters
    ----------
    taken : list of float
        What each picture takes.
    overslept : dict
        How much too long is slept after a picture.
    """
    clock, begun = _Clock(), []
    monkeypatch.setattr(live, "time", clock)
    window = SimpleNamespace(dismissed=False, pressed=list)

    class Watched(live.Viewer):
        def show(self):
            place = len(begun)
            begun.append(clock.now)
            clock.now += taken[place]
            clock.oversleep = (overslept or {}).get(place, 0.0)
            window.dismissed = place + 1 == len(taken)

    Watched(SimpleNamespace(is_running=True), None, None, None, "light", window).run()
    return np.array(begun) * live.FRAMES_PER_SECOND


def test_pictures_that_begin_late_do_not_put_off_the_ones_after(monkeypatch):
    each = 1 / live.FRAMES_PER_SECOND
    on_time = _begun(monkeypatch, [0.3 * each] * 7)
    np.testing.assert_allclose(on_time, np.arange(7))
    late = _begun(monkeypatch, [0.3 * each] * 7, {1: 0.9 * each, 3: 0.5 * each})
    np.testing.assert_allclose(late, [0, 1, 2.6, 3, 4.2, 5, 6])


def test_pictures_that_took_too_long_are_not_made_up_for(monkeypatch):
    each = 1 / live.FRAMES_PER_SECOND
    # The next one follows at once; those after it keep their distance, as many as were left out.
    slow = _begun(monkeypatch, [0.3 * each, 100 * each] + [0.3 * each] * 4)
    np.testing.assert_allclose(slow, [0, 1, 101, 102, 103, 104])


def test_without_a_screen_the_error_says_what_to_do(monkeypatch):
    def fail(self, draw, status=""):
        raise OSError("cannot open a window: windows not available. Without a screen, ...")

    monkeypatch.setattr(Window, "show", fail)
    with pytest.raises(OSError, match=r"--record run\.html"):
        planners.watch(_maze(), **_OPTIONS)


def test_the_errors_of_a_watched_solve_are_raised():
    with pytest.raises(ValueError, match="epsilon"):
        planners.watch(_maze(), **_OPTIONS | {"epsilon": -1.0})


def _command(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["aggmaze", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def test_the_command_records_and_prints_the_result(monkeypatch, tmp_path, capsys):
    file, saved = tmp_path / "run.html", tmp_path / "run.npz"
    code = _command(
        monkeypatch,
        "watch",
        "TerrainMaze-v0",
        "--set",
        "shape=8,8",
        "--gamma",
        ".95",
        "--epsilon",
        ".7",
        "--method",
        "adaptive_aggregation",
        "--num-iterations",
        "40",
        "--record",
        file,
        "--save",
        saved,
    )
    printed = capsys.readouterr().out
    assert code == 0
    assert "bound        |V - V*| <= " in printed
    assert f"recording in {file}" in printed.replace("\n", "")
    _same(planners.SolveResult.load(saved), planners.solve(_maze(), **_OPTIONS))


def test_the_command_prints_the_result_of_a_closed_window(monkeypatch, capsys):
    _Pressing(
        monkeypatch,
        *[lambda: True] * 10,
        _key(code=keys.ESCAPE),
    )
    code = _command(
        monkeypatch,
        "watch",
        "FrozenLake-v1",
        "--gamma",
        ".95",
        "--speed",
        "2",
    )
    printed = capsys.readouterr().out
    assert code == 0
    assert "interrupted, the window was closed" in printed
    assert "bound        |V - V*| <= " in printed


def _press_the_close_button(after):
    """Send the open window what its close button sends, once a condition holds."""
    import pygame

    end = time.monotonic() + 60
    while time.monotonic() < end:
        shown = [window._window for window in list(windows._open) if window.is_open]
        if shown and after():
            pygame.event.post(pygame.event.Event(pygame.WINDOWCLOSE, window=shown[0]))
            return
        time.sleep(0.01)


def test_the_close_button_ends_the_command_which_prints_the_result(monkeypatch, capsys):
    seen, see = [], Session._see
    monkeypatch.setattr(
        Session,
        "_see",
        lambda session, progress: seen.append(progress.iteration) or see(session, progress),
    )
    closer = threading.Thread(target=_press_the_close_button, args=(lambda: len(seen) >= 3,))
    closer.start()
    # Without the button it would take two minutes.
    code = _command(
        monkeypatch, "watch", "FrozenLake-v1", "--gamma", ".95", "--speed", "8",
        "--epsilon", ".01", "--num-iterations", "1000",
    )  # fmt: skip
    closer.join()
    printed = capsys.readouterr().out
    assert code == 0
    assert "interrupted, the window was closed" in printed
    assert "bound        |V - V*| <= " in printed
    assert 3 <= len(seen) < 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gamma", ".9", "--record", "run.png"], "record must end in"),
        (["--gamma", ".9", "--record", "run.gif", "--size", "3x4"], "--size must be a width and"),
        (["--gamma", ".9", "--speed", "0"], "speed must be iterations a second"),
        (["--gamma", ".9", "--method", "vi"], "method must be one of"),
        (["--record", "run.gif"], "say what is asked"),
    ],
)
def test_the_command_refuses_bad_arguments_in_a_line(arguments, words, monkeypatch, capsys):
    assert _command(monkeypatch, "watch", "TerrainMaze-v0", *arguments) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert words in told
    assert told.count("\n") == 1
    assert not os.path.exists("run.gif")  # noqa: PTH110


def test_pictures_need_pillow_and_say_so(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("planners.watching")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ModuleNotFoundError, match='pip install "pillow'):
        planners.watch(_maze(), gamma=0.9, record="run.gif")
