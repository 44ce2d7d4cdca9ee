"""`aggmaze reproduce`: from the tasks to the report, whoever runs them, and the command."""

from __future__ import annotations

import csv
import html.parser
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from planners import cli
from planners.experiments import EXPERIMENTS
from planners.experiments.reporting import report
from planners.experiments.reproduce import chosen, reproduce
from planners.experiments.running.tasks import Task
from tests.planners.experiments import fakes
from tests.planners.experiments.fakes import Notes, inline

pytestmark = pytest.mark.usefixtures("tiny")

draw_picture = report._write_picture


def make(names: list[str], folder: Path, **options: Any) -> Any:
    return reproduce(
        names,
        scale="small",
        seed=options.pop("seed", 0),
        out=folder,
        make_executor=inline,
        watcher=Notes(),
        workers="this process",
        **options,
    )


def tables(folder: Path) -> dict[str, bytes]:
    """The CSVs that must not depend on who ran the tasks, or when."""
    return {
        path.name: path.read_bytes()
        for path in folder.glob("*.csv")
        if not path.name.endswith("seconds.csv")
    }


class Checker(html.parser.HTMLParser):
    """Keeps tags in balance, and what they refer to."""

    VOID = ("meta", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.sources += [v or "" for name, v in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_same_tables_however_the_tasks_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, other = tmp_path / "first", tmp_path / "second", tmp_path / "other"
    with monkeypatch.context() as patch:
        patch.setattr(report, "_write_picture", draw_picture)
        one = make([], first)
    assert one.completed.failures == {}
    # One alone, with others after it, and then only from what is there.
    make(["scaling_2d"], second)
    some = make(["robustness", "scaling_2d"], second)
    assert sum(outcome is not None for outcome in some.completed.outcomes) == len(some.tasks)
    make(["scaling_2d"], second, run=False)
    expected = tables(first)
    assert tables(second).items() <= expected.items()
    assert len(tables(second)) == 5
    make(["scaling_2d"], other, seed=1)
    assert tables(other)["scaling_2d.csv"] != expected["scaling_2d.csv"]

    page = (first / "report.html").read_text()
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    # Nothing from elsewhere.
    assert all(s.startswith(("data:", "#")) for s in checker.sources)
    assert "http" not in re.sub(r"base64,[^\"]*", "", page)
    markdown = (first / "report.md").read_text()
    for name, experiment in EXPERIMENTS.items():
        assert experiment.title in page
        assert experiment.title in markdown
        with Image.open(first / f"{name}.png") as picture:
            assert picture.width > 500
        assert (first / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    for path in first.glob("*.csv"):
        rows = list(csv.reader(path.read_text().splitlines()))
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}


def test_unknown_experiments() -> None:
    with pytest.raises(ValueError, match="there is no 'scaling2d'; did you mean 'scaling_2d'"):
        chosen(["epsilon", "scaling2d"])
    assert [e.name for e in chosen(["bounds", "epsilon"])] == ["epsilon", "bounds"]


# ---------------------------------------------------------------------------------------------
# The command.


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["aggmaze", "reproduce", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr("planners.experiments.running.runner.process_pool", lambda workers: inline)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "scaling_2d", "--out", tmp_path / "out", "--workers", 1) == 0
    printed = capsys.readouterr().out
    assert str(tmp_path / "out" / "report.html") in printed
    assert printed.startswith("Scale small: smaller than the paper. 14 of 14 runs are done.")
    title = EXPERIMENTS["scaling_2d"].title
    assert printed.index("Not tested at this scale (2)") < printed.index(f"\n{title}\n")
    # The numbers, as in the tables of the report, and nothing of its details.
    lines = [line.split() for line in printed.splitlines()]
    markdown = (tmp_path / "out" / "report.md").read_text()
    rows = [row.strip("| ").split(" | ") for row in re.findall(r"^\| .* \|$", markdown, re.M)]
    of_mazes = [row for row in rows if row[0] in ("terrain", "standard")]
    assert len(of_mazes) == 4
    for row in of_mazes:
        assert " ".join(row).split() in lines
    assert sum(line[:1] in (["terrain"], ["standard"]) for line in lines) == 4
    assert run(monkeypatch, "--list") == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["effciency"], "did you mean 'efficiency'"),
        (["--scale", "huge"], "scale must be one of small, paper"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--seed", "-1"], "seed must be at least 0"),
        (["--scheduler", "tcp://localhost:1", "--dask-local"], "--scheduler has workers of its"),
    ],
)
def test_bad_use(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    assert run(monkeypatch, "--out", tmp_path / "out", *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert run(monkeypatch, "--out", tmp_path / "file") == 2
    assert "is not a folder to write to" in capsys.readouterr().err
    assert run(monkeypatch, "--out", tmp_path / "file" / "below") == 2


def test_a_task_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(EXPERIMENTS, "fake", fakes.experiment(fakes.fail))
    assert run(monkeypatch, "fake", "--out", tmp_path) == 1
    captured = capsys.readouterr()
    assert "4 of 8 tasks failed" in captured.err
    assert "RuntimeError: no luck" in captured.err
    assert "4 of 8 runs are missing" in (tmp_path / "report.md").read_text()


def test_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupt(task: Task) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setitem(EXPERIMENTS, "fake", fakes.experiment())
    monkeypatch.setattr("planners.experiments.running.runner.perform", interrupt)
    assert run(monkeypatch, "fake", "--out", tmp_path) == 130
    assert "interrupted" in capsys.readouterr().err
