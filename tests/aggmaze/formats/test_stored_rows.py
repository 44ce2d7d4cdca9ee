"""Tables in files, read and written block by block."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aggmaze
from aggmaze import MoveMDP, TabularMDP, as_row_model, load_model, open_rows, save_model, save_rows
from aggmaze.formats import stored_rows
from aggmaze.formats.stored_rows import StoredRows
from aggmaze.progress import listening
from tests.strategies import tabular_mdps


def tabular(p: float = 0.9) -> TabularMDP:
    env = gym.make("TerrainMaze-v0", shape=(7, 9), p=p)
    model = env.get_wrapper_attr("transition_model")()
    assert isinstance(model, MoveMDP)
    return model.to_tabular()


def same_rows(stored: StoredRows, model: TabularMDP, lo: int, hi: int) -> None:
    found, expected = stored.rows(lo, hi), model.rows(lo, hi)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(
            getattr(found.transitions, name), getattr(expected.transitions, name), name
        )
    for name in ("costs", "action_mask", "outcome_costs"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    np.testing.assert_array_equal(stored.terminal(lo, hi), model.terminal[lo:hi])


def change(path: Path, place: int, numbers: np.ndarray[Any, Any]) -> None:
    """Write other numbers into a file, which stays open elsewhere."""
    with path.open("r+b") as file:
        file.seek(place)
        file.write(numbers.tobytes())


@given(model=tabular_mdps(), data=st.data())
def test_blocks_are_those_of_the_model(
    tmp_path_factory: pytest.TempPathFactory, model: TabularMDP, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("rows") / "model.npz"
    save_rows(model, path)
    stored = open_rows(path)
    assert (stored.num_states, stored.num_actions) == (model.num_states, model.num_actions)
    assert as_row_model(stored) is stored
    assert stored.key == as_row_model(model).key
    lo = data.draw(st.integers(0, model.num_states - 1))
    same_rows(stored, model, lo, data.draw(st.integers(lo + 1, model.num_states)))
    again = load_model(path)
    assert isinstance(again, TabularMDP)
    assert as_row_model(again).key == stored.key
    np.testing.assert_array_equal(again.initial, model.initial)


def test_in_whatever_pieces_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tabular()
    save_rows(model, tmp_path / "whole.npz")
    for rows in (1, 40):
        monkeypatch.setattr(stored_rows, "_ROWS", rows)
        save_rows(model, tmp_path / "pieces.npz")
        assert open_rows(tmp_path / "pieces.npz").key == as_row_model(model).key
        same_rows(open_rows(tmp_path / "pieces.npz"), model, 3, 60)


def test_models_of_events_and_of_moves_become_tables(tmp_path: Path) -> None:
    def follows(state: int, action: int, event: int) -> int:
        return max(0, min(9, state + action - event))

    def cost(state: int, action: int) -> float:
        return 1.0 * state + 2.0 * action

    model = aggmaze.EventMDP(10, 3, follows, [0.5, 0.3, 0.2], cost)
    save_rows(model, tmp_path / "events.npz")
    same_rows(open_rows(tmp_path / "events.npz"), model.to_tabular(), 2, 9)
    moves = gym.make("StandardMaze-v0", p=0.8).get_wrapper_attr("transition_model")()
    save_rows(moves, tmp_path / "moves.npz")
    same_rows(open_rows(tmp_path / "moves.npz"), moves.to_tabular(), 0, 400)


def test_mazes_by_rows_become_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_rows, "_ROWS", 60)
    kinds: list[dict[str, Any]] = [
        {"generator": "blocks", "p": 0.9},
        {"generator": "binary_tree", "start": "uniform"},
        {"kind": "terrain", "terrain": "noise", "cost": "difference", "p": 0.7},
    ]
    for kind in kinds:
        maze = aggmaze.model_by_rows("NDMaze-v0", shape=(7, 3, 4), **kind)
        save_rows(maze, tmp_path / "maze.npz")
        stored, table = open_rows(tmp_path / "maze.npz"), maze.to_model().to_tabular()
        assert stored.key == as_row_model(table).key
        same_rows(stored, table, 5, 80)
        np.testing.assert_array_equal(stored.initial(0, 84), table.initial)
        # What is open is a model too, and so is any that tells its moves.
        save_rows(stored, tmp_path / "again.npz")
        assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "maze.npz").read_bytes()


class SomeRows:
    """A model by rows of somebody else's."""

    key = "mine"

    def __init__(self, model: TabularMDP) -> None:
        self._model = model
        self.num_states, self.num_actions = model.num_states, model.num_actions

    def rows(self, lo: int, hi: int) -> Any:
        return self._model.rows(lo, hi)

    def terminal(self, lo: int, hi: int) -> Any:
        return self._model.terminal[lo:hi]


def test_rows_of_others_become_tables_if_they_are_valid(tmp_path: Path) -> None:
    model = tabular()
    save_rows(SomeRows(model), tmp_path / "rows.npz")
    same_rows(open_rows(tmp_path / "rows.npz"), model, 0, 63)
    bad = TabularMDP(0.5 * model.transitions, model.costs, action_mask=model.action_mask)
    with pytest.raises(ValueError, match=r"state 0, action 0: probabilities sum to 0.5"):
        save_rows(SomeRows(bad), tmp_path / "bad.npz")
    assert not (tmp_path / "bad.npz").exists()
    with pytest.raises(TypeError, match="expected a model by rows"):
        save_rows("model", tmp_path / "bad.npz")  # type: ignore[arg-type]


def test_names_go_with_it(tmp_path: Path) -> None:
    model = TabularMDP(
        [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
        [[1.0, 2.0], [0.0, 0.0]],
        state_names=["here", ("there", 2)],
        action_names=["stay", "go"],
    )
    save_rows(model, tmp_path / "names.npz")
    for found in (open_rows(tmp_path / "names.npz"), load_model(tmp_path / "names.npz")):
        assert found.state_names == ("here", ("there", 2))
        assert found.action_names == ("stay", "go")
    save_rows(tabular(), tmp_path / "none.npz")
    assert open_rows(tmp_path / "none.npz").state_names is None


def test_how_far_it_is_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_rows, "_ROWS", 40)
    told: list[tuple[int, int, str]] = []
    with listening(lambda *words: told.append(words)):
        save_rows(tabular(), tmp_path / "model.npz")
    assert told[0] == (10, 63, "states")
    assert (63, 63, "states") in told
    assert told[-1] == (0, 1, "MB")  # some thousands of bytes


def test_no_more_is_read_than_what_is_asked_for(tmp_path: Path) -> None:
    """What is damaged elsewhere does not matter, and is found where it is."""
    path = tmp_path / "model.npz"
    model = tabular()
    save_rows(model, path)
    stored = open_rows(path)
    data = stored.arrays["data"]
    assert isinstance(data, np.memmap)
    begin = data.offset + 8 * int(model.transitions.indptr[40 * 4])
    change(path, begin, np.array([np.nan]))
    same_rows(stored, model, 0, 40)
    same_rows(stored, model, 41, 63)
    with pytest.raises(ValueError, match=r"model\.npz', states 38 to 44: its probabilities"):
        stored.rows(38, 45)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("indices", 63, r"a successor is not in \[0, 63\)"),
        ("indices", -1, r"a successor is not in \[0, 63\)"),
        ("indptr", 10**6, "rows do not follow one another"),
        ("data", -0.5, "probabilities or costs are not valid"),
        ("data", 0.9, "probabilities or costs are not valid"),
        ("costs", np.inf, "probabilities or costs are not valid"),
    ],
)
def test_a_damaged_block_is_refused(tmp_path: Path, name: str, value: Any, words: str) -> None:
    path = tmp_path / "model.npz"
    save_rows(tabular(p=1.0), path)
    stored = open_rows(path)
    part = stored.arrays[name]
    assert isinstance(part, np.memmap)
    place = 5 * 4 + 2  # DOWN, which is available
    change(path, part.offset + part.itemsize * place, np.array([value], dtype=part.dtype))
    with pytest.raises(ValueError, match=words):
        stored.rows(4, 7)


def test_pickles_open_the_file_again(tmp_path: Path) -> None:
    model = tabular()
    save_rows(model, tmp_path / "model.npz")
    copy = pickle.loads(pickle.dumps(open_rows(tmp_path / "model.npz")))
    same_rows(copy, model, 1, 5)


class TestRefusals:
    def test_compressed_files(self, tmp_path: Path) -> None:
        save_model(tabular(), tmp_path / "model.npz")
        with pytest.raises(ValueError, match=r"model\.npz' .* is compressed.*save_rows writes"):
            open_rows(tmp_path / "model.npz")

    def test_models_of_moves(self, tmp_path: Path) -> None:
        model = gym.make("StandardMaze-v0").get_wrapper_attr("transition_model")()
        save_model(model, tmp_path / "moves.npz")
        with pytest.raises(ValueError, match="its kind is 'MoveMDP'"):
            open_rows(tmp_path / "moves.npz")

    def test_what_is_no_model(self, tmp_path: Path) -> None:
        (tmp_path / "text.npz").write_text("text")
        with pytest.raises(ValueError, match=r"text\.npz' is not a saved model"):
            open_rows(tmp_path / "text.npz")
        with pytest.raises(FileNotFoundError, match="there is no file"):
            open_rows(tmp_path / "nothing.npz")

    def test_cut_files(self, tmp_path: Path) -> None:
        path = tmp_path / "model.npz"
        save_rows(tabular(), path)
        path.write_bytes(path.read_bytes()[:-2000])
        with pytest.raises(ValueError, match="is not a saved model"):
            open_rows(path)

    def test_nothing_is_left_of_what_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = tabular()

        def rows(self: TabularMDP, lo: int, hi: int) -> Any:
            raise OSError("gone")

        monkeypatch.setattr(TabularMDP, "rows", rows)
        with pytest.raises(OSError, match="gone"):
            save_rows(model, tmp_path / "model.npz")
        assert not list(tmp_path.iterdir())

    def test_blocks_outside_the_model(self, tmp_path: Path) -> None:
        save_rows(tabular(), tmp_path / "model.npz")
        stored = open_rows(tmp_path / "model.npz")
        with pytest.raises(ValueError, match=r"rows\(3, 64\) must satisfy 0 <= lo < hi <= 63"):
            stored.rows(3, 64)
        with pytest.raises(ValueError, match=r"terminal\(3, 3\) must satisfy"):
            stored.terminal(3, 3)


def test_other_programs_read_it(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    model = tabular()
    save_rows(model, path)
    with np.load(path) as arrays:
        np.testing.assert_array_equal(arrays["costs"], model.costs)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
