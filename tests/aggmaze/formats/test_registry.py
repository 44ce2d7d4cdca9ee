"""Formats by their suffix or name, and what the command says of files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aggmaze
import planners
from aggmaze import TabularMDP, load_model, save_model
from aggmaze.formats import registry
from aggmaze.formats.registry import FORMATS, format_of, target_format
from planners import cli

MODEL = TabularMDP(
    [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
    [[1.0, 2.0], [0.0, 0.0]],
    outcome_costs=[0.5, 1.5, 2.0, 0.0, 0.0],
    initial=[1.0, 0.0],
)


def test_every_entry_names_functions_that_are_there() -> None:
    for entry in FORMATS.values():
        for place in (entry.reader, entry.writer, entry.lost):
            if place:
                assert callable(registry._found(place))
        assert bool(entry.reader) != bool(entry.advice)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.npz", "aggmaze"), ("a.json", "gym"), ("a.umb", "umb"), ("a.UMB", "umb"),
        ("a.umb.gz", "umb"), ("a.drn", "drn"), ("a.drn.gz", "drn"), ("a.tra", "prism"),
        ("a.mat", "matlab"), ("a.RData", "r"), ("a.nm", "prism-language"), ("a.txt", None),
    ],
)  # fmt: skip
def test_a_suffix_tells_the_format(path: str, name: str | None) -> None:
    found = format_of(path)
    assert (found.name if found else None) == name


def test_a_name_goes_before_the_suffix(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    save_model(MODEL, path, format="drn")
    assert path.read_bytes().startswith(b"@type: MDP")
    assert load_model(path, format="drn").num_states == 2
    with pytest.raises(ValueError, match="is not a saved model"):
        load_model(path)
    with pytest.raises(ValueError, match=r"format must be one of aggmaze, .*'dnr'; did you mean"):
        load_model(path, format="dnr")


def test_an_archive_of_moves_is_known_from_its_arrays(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, transitions=[[-1]], rewards=[[1.0]])
    assert format_of(path) is FORMATS["bridge"]
    np.savez(path, P=[[[1.0]]], R=[[1.0]])
    assert format_of(path) is FORMATS["aggmaze"]
    path.write_bytes(b"PK")
    assert format_of(path) is FORMATS["aggmaze"]


def test_what_is_not_read_or_written_says_what_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"R\.matlab::writeMat"):
        load_model("model.rds")
    with pytest.raises(ValueError, match=r"let Storm or PRISM build it"):
        load_model("model.prism")
    with pytest.raises(
        ValueError, match=r"format prism is read, not written; .* aggmaze, gym, umb and drn"
    ):
        save_model(MODEL, tmp_path / "model.tra")
    with pytest.raises(ValueError, match=r"must end in \.npz, \.json, \.umb or \.drn, or say for"):
        save_model(MODEL, tmp_path / "model.dnr")
    with pytest.raises(ValueError, match=r"format bridge is read, not written"):
        target_format("x.npz", "bridge")
    with pytest.raises(TypeError, match=r"model must be a TabularMDP or a MoveMDP, got dict"):
        save_model({}, tmp_path / "model.umb")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"format drn, which takes no option 'gaol'; did you mean 'goal'\?; it ta"
    ):
        load_model("model.drn", gaol="x")
    assert list(tmp_path.iterdir()) == []


def test_a_name_without_suffix_is_of_the_own_format(tmp_path: Path) -> None:
    save_model(MODEL, tmp_path / "model")
    assert load_model(tmp_path / "model").num_states == 2


@pytest.mark.parametrize("suffix", [".umb", ".drn", ".json", ".npz"])
def test_no_folder_and_no_model(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        save_model(MODEL, tmp_path / "no" / f"x{suffix}")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_model(tmp_path / f"x{suffix}")
    (tmp_path / f"d{suffix}").mkdir()
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path / f"d{suffix}")
    bad = TabularMDP([[0.5]], [[0.0]])
    with pytest.raises(ValueError, match=r"probabilities sum to 0\.5"):
        save_model(bad, tmp_path / f"x{suffix}")
    assert not (tmp_path / f"x{suffix}").exists()


def run(monkeypatch: pytest.MonkeyPatch, *arguments: Any) -> int:
    monkeypatch.setattr("sys.argv", ["aggmaze", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    code = ended.value.code
    return code if isinstance(code, int) else 0


def test_convert_says_what_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    save_model(MODEL, "model.npz")
    assert run(monkeypatch, "convert", "model.npz", "model.drn") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "model.npz: 2 states with 2 actions in model.drn",
        "not kept by format drn: what each outcome costs: it holds their mean",
    ]
    assert run(monkeypatch, "convert", "model.npz", "model.umb") == 0
    assert capsys.readouterr().out == "model.npz: 2 states with 2 actions in model.umb\n"
    assert run(monkeypatch, "convert", "model.umb", "again.npz") == 0
    assert Path("again.npz").read_bytes() == Path("model.npz").read_bytes()
    capsys.readouterr()
    assert run(monkeypatch, "convert", "CliffWalking-v1", "x.dat", "--to", "drn") == 0
    assert "the last 1 states are added" in capsys.readouterr().out
    assert run(monkeypatch, "convert", "x.dat", "y.npz", "--from", "drn") == 0
    assert load_model("y.npz").num_states == 49
    capsys.readouterr()
    assert run(monkeypatch, "convert", "TerrainMaze-v0", "maze.umb", "--set", "shape=3,3") == 0
    assert "not kept by format umb: that all its moves slip in one way" in capsys.readouterr().out


def test_solve_takes_any_file_and_the_options_of_its_reader(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tra").write_text("dtmc\n0 1 0.25\n0 2 0.75\n1 1 1\n2 2 1\n")
    Path("m.lab").write_text("#DECLARATION\ninit 7\n#END\n0 init\n1 7\n")
    arguments = ["m.tra", "--gamma", 1, "--episodes", 0, "--set", "values=reach"]
    assert run(monkeypatch, "solve", *arguments, "--set", "goal=7") == 0
    assert re.search(r"cost +-0\.25 from the start", capsys.readouterr().out)
    assert run(monkeypatch, "solve", *arguments) == 2
    assert "asks for a goal: goal=LABEL, one of 7, init" in capsys.readouterr().err
    assert run(monkeypatch, "solve", "FrozenLake-v1", "--gamma", 0.9, "--set", "goal=x") == 2
    assert "FrozenLake-v1 takes no 'goal'" in capsys.readouterr().err
    assert run(monkeypatch, "convert", "FrozenLake-v1", "x.npz", "--from", "drn") == 2
    assert "--from is of model files" in capsys.readouterr().err


def test_list_names_the_formats(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli.listing, "solvable_ids", lambda: [])
    assert run(monkeypatch, "list") == 0
    printed = capsys.readouterr().out
    for entry in FORMATS.values():
        assert (entry.name in printed.split()) == bool(entry.reader)
    assert re.search(r"umb +\.umb \.umb\.gz \.umb\.xz +read and written", printed)


def test_values_of_every_form_of_one_model(tmp_path: Path) -> None:
    expected = planners.solve(MODEL, gamma=0.9).values
    for name in ("aggmaze", "gym", "umb", "drn"):
        path = tmp_path / f"model.{name}"
        aggmaze.save_model(MODEL, path, format=name)
        values = planners.solve(aggmaze.load_model(path, format=name), gamma=0.9).values
        np.testing.assert_allclose(values, expected, rtol=1e-12)
