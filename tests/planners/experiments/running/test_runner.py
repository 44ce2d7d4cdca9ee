"""Tasks: their random numbers, their files, and what becomes of them when things go wrong."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planners.experiments.running.results import Results, reserved
from planners.experiments.running.runner import MOST_ATTEMPTS, dask_cluster, process_pool, run_tasks
from planners.experiments.running.tasks import Task, perform
from planners.experiments.study import Outcome
from tests.planners.experiments import fakes
from tests.planners.experiments.fakes import Notes, inline


def values(outcomes: list[Outcome | None]) -> list[Any]:
    return [None if outcome is None else outcome.values for outcome in outcomes]


def run(tasks: list[Task], folder: Path, executor: Any = inline) -> tuple[Any, Notes]:
    notes = Notes()
    return run_tasks(tasks, Results(folder, notes.report), executor, notes), notes


# ---------------------------------------------------------------------------------------------
# Tasks.


def test_every_task_has_random_numbers_of_its_own() -> None:
    tasks = fakes.tasks(numbers=range(5), repetitions=5)
    drawn = {tuple(perform(task).values["numbers"]) for task in tasks}
    assert len(drawn) == 25
    assert len({task.name for task in tasks}) == 25


def test_random_numbers_depend_on_the_task_alone() -> None:
    few, many = fakes.tasks(numbers=[2]), fakes.tasks(numbers=[7, 1, 2])
    expected = {task.name: perform(task).values for task in many}
    for task in few:
        assert perform(task).values == expected[task.name]
    other = {task.name: perform(task).values for task in fakes.tasks(numbers=[2], seed=1)}
    assert not set(other) & set(expected)
    assert all(
        x["numbers"] not in [y["numbers"] for y in expected.values()] for x in other.values()
    )


def test_seconds_of_a_task_are_noted() -> None:
    seconds = perform(fakes.tasks()[0]).seconds
    assert seconds["draw"] == 0.5
    assert seconds["task"] >= 0


# ---------------------------------------------------------------------------------------------
# Result files.


def test_results_are_kept_and_not_computed_again(tmp_path: Path) -> None:
    tasks = fakes.tasks()
    first, notes = run(tasks, tmp_path)
    assert notes.num_done == 0
    assert sorted(task.name for task in notes.finished) == sorted(task.name for task in tasks)
    # Longest first.
    assert [task.work for task in notes.finished] == sorted((t.work for t in tasks), reverse=True)
    again, notes = run(tasks, tmp_path)
    assert notes.num_done == len(tasks)
    assert notes.finished == []
    assert values(again.outcomes) == values(first.outcomes) == [perform(t).values for t in tasks]
    assert len(list(tmp_path.glob("results/fake/*"))) == len(tasks)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"\x00\xff" * 50,
        lambda content: b"[" * 100_000,
        lambda content: b"[]",
        lambda content: content.replace(b'"seed": 0', b'"seed": 1'),
        lambda content: content.replace(b'"values"', b'"other"'),
        lambda content: content.replace(b"0.", b"NaN, 0.", 1),
    ],
)
def test_a_damaged_result_is_reported_and_computed_again(tmp_path: Path, damage: Any) -> None:
    tasks = fakes.tasks()
    first, _ = run(tasks, tmp_path)
    path = Results(tmp_path, print).path(tasks[3])
    path.write_bytes(damage(path.read_bytes()))
    again, notes = run(tasks, tmp_path)
    assert [task.name for task in notes.finished] == [tasks[3].name]
    assert len(notes.reports) == 1
    assert str(path) in notes.reports[0]
    assert values(again.outcomes) == values(first.outcomes)


def by_no_code(content: dict[str, Any]) -> None:
    """Make it what the first version of the program wrote."""
    del content["code"]
    content["version"] = "0.1.0"


def by_other_code(content: dict[str, Any]) -> None:
    content["code"] = "0123456789abcdef"


@pytest.mark.parametrize("edit", [by_other_code, by_no_code])
def test_results_of_other_code_are_computed_again(tmp_path: Path, edit: Any) -> None:
    tasks = fakes.tasks()
    first, _ = run(tasks, tmp_path)
    paths = [Results(tmp_path, print).path(task) for task in tasks]
    for path in paths[2:5]:
        content = json.loads(path.read_text())
        edit(content)
        content["values"]["numbers"] = [0.0, 0.0, 0.0]
        path.write_text(json.dumps(content))
    again, notes = run(tasks, tmp_path)
    assert notes.num_done == len(tasks) - 3
    assert {task.name for task in notes.finished} == {task.name for task in tasks[2:5]}
    assert len(notes.reports) == 1
    assert "results of fake" in notes.reports[0]
    assert "other code" in notes.reports[0]
    assert values(again.outcomes) == values(first.outcomes)
    assert sorted(paths) == sorted((tmp_path / "results" / "fake").iterdir())
    assert run(tasks, tmp_path)[1].num_done == len(tasks)


def test_a_worker_with_other_code_is_refused(tmp_path: Path) -> None:
    tasks = fakes.tasks()
    tasks[0] = replace(tasks[0], code="0123456789abcdef")
    completed, _ = run(tasks, tmp_path)
    assert list(completed.failures) == [0]
    assert "other code" in completed.failures[0]


def test_the_longest_task_of_each_experiment_comes_first(tmp_path: Path) -> None:
    tasks = fakes.tasks(numbers=[3, 5], repetitions=2)
    tasks += [replace(task, experiment="other") for task in fakes.tasks(numbers=[1, 2])]
    _, notes = run(tasks, tmp_path)
    begun = [(task.experiment, task.work) for task in notes.begun]
    assert begun[:2] == [("fake", 5.0), ("other", 2.0)]
    assert [work for _, work in begun[2:]] == [5.0, 3.0, 3.0, *[2.0] * 3, *[1.0] * 4]


def test_interrupted_runs_go_on(tmp_path: Path) -> None:
    """Ctrl-C after each number of tasks: what is done is done, and nothing is done twice."""
    tasks = fakes.tasks()
    for count in range(len(tasks)):

        class Stopping(Notes):
            def done(self, task: Any, outcome: Any) -> None:
                super().done(task, outcome)
                raise KeyboardInterrupt

        notes = Stopping()
        with pytest.raises(KeyboardInterrupt):
            run_tasks(tasks, Results(tmp_path, notes.report), inline, notes)
        assert notes.num_done == count
        assert f"{count + 1} of {len(tasks)} tasks are done" in notes.reports[-1]
        assert len(notes.finished) == 1
    completed, notes = run(tasks, tmp_path)
    assert notes.finished == []
    assert values(completed.outcomes) == [perform(task).values for task in tasks]


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = fakes.tasks()
    writes = itertools.count()
    fsync = os.fsync

    def full(descriptor: int) -> None:
        if next(writes) >= 3:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            OSError, match=r"cannot be written: No space left.*the same command goes on"
        ):
            run(tasks, tmp_path)
    files = list((tmp_path / "results" / "fake").iterdir())
    assert len(files) == 3
    assert all(json.loads(file.read_text()) for file in files)
    completed, notes = run(tasks, tmp_path)
    assert notes.num_done == 3
    assert values(completed.outcomes) == [perform(task).values for task in tasks]


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    tasks = fakes.tasks()
    run(tasks, tmp_path)
    path = Results(tmp_path, print).path(tasks[0])
    leftover = path.with_name(f".{path.name}.abcdef")
    leftover.write_text("{")
    run(tasks, tmp_path)
    assert not leftover.exists()


def test_a_folder_has_one_run_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    with (
        reserved(folder),
        pytest.raises(OSError, match="another run is writing"),
        reserved(folder),
    ):
        pass
    with reserved(folder):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is not a folder"), reserved(tmp_path / "file"):
        pass


# ---------------------------------------------------------------------------------------------
# What goes wrong in a task, and with its worker.


def test_a_task_that_fails_is_reported_and_the_others_are_done(tmp_path: Path) -> None:
    tasks = fakes.tasks(fakes.fail)
    completed, notes = run(tasks, tmp_path)
    assert len(completed.failures) == len(notes.reports) == 4
    for i, task in enumerate(tasks):
        if task.configuration["number"] == 1:
            assert completed.outcomes[i] is None
            assert completed.failures[i] == "RuntimeError: no luck"
            assert task in notes.failed
        else:
            assert completed.outcomes[i] is not None


def test_a_worker_that_dies_is_reported_and_its_task_run_again(tmp_path: Path) -> None:
    """Twice, here: once a task that is done in the end, and once one that never is."""
    once = fakes.tasks(fakes.die_once, repetitions=1, flag=f"{tmp_path}/flag")
    always = fakes.tasks(fakes.die_always, repetitions=1)
    completed, notes = run([*once, *always], tmp_path, process_pool(2))
    assert list(completed.failures) == [2]
    assert f"attempt {MOST_ATTEMPTS} of {MOST_ATTEMPTS}" in completed.failures[2]
    assert completed.outcomes[2] is None
    for i, task in enumerate([*once, *always]):
        if i != 2:
            outcome = completed.outcomes[i]
            assert outcome is not None
            # Here a second time, where nobody is to be killed.
            assert outcome.values == fakes.draw(task.configuration, task.seed_sequence).values
    assert any(once[0].name in text and "run again" in text for text in notes.reports)
    assert always[0].name in notes.reports[-1]
    assert "given up" in notes.reports[-1]
    assert len(notes.finished) == 3
    assert notes.failed == [always[0]]
    # What runs when a worker dies is begun again.
    assert notes.begun.count(always[0]) == MOST_ATTEMPTS


_SCRIPT = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from planners.experiments.running.results import Results
    from planners.experiments.running.runner import process_pool, run_tasks
    from tests.planners.experiments import fakes

    if __name__ == "__main__":
        notes = fakes.Notes()
        tasks = fakes.tasks(fakes.draw_slowly, numbers=range(10), repetitions=4)
        run_tasks(tasks, Results(Path(sys.argv[1]), print), process_pool(2), notes)
    """
)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # What nobody waits for stays as a zombie.
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform == "win32", reason="kills processes by signal")
def test_killed_at_any_moment_it_goes_on_and_leaves_no_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    tasks = fakes.tasks(fakes.draw_slowly, numbers=range(10), repetitions=4)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    parent = subprocess.Popen([sys.executable, script, tmp_path], env=environment)
    done = tmp_path / "results" / "fake"
    while parent.poll() is None and (not done.exists() or len(list(done.glob("[!.]*"))) < 3):
        time.sleep(0.01)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    before = len(list(done.glob("[!.]*")))
    assert 3 <= before < len(tasks)
    completed, notes = run(tasks, tmp_path)
    assert notes.num_done == before
    assert len(notes.finished) == len(tasks) - before
    assert values(completed.outcomes) == [perform(task).values for task in tasks]
    workers = {json.loads(file.read_text())["seconds"]["pid"] for file in done.glob("[!.]*")}
    deadline = time.monotonic() + 10
    while any(is_alive(pid) for pid in workers - {os.getpid()}):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_dask_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"aggmaze\[sweeps\]"):
        dask_cluster(None, 2)


def test_the_seed_sequence_is_a_child_of_the_seed() -> None:
    task = fakes.tasks(seed=12)[0]
    assert task.seed_sequence.entropy == 12
    assert task.seed_sequence.spawn_key[-1] == task.repetition
    assert task.seed_sequence.spawn_key != fakes.tasks(seed=12)[1].seed_sequence.spawn_key
    np.testing.assert_array_equal(
        task.seed_sequence.generate_state(4),
        fakes.tasks(seed=12)[0].seed_sequence.generate_state(4),
    )
