"""What ``aggmaze reproduce`` does: plan the tasks, run those without a result, write the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aggmaze.checks import check_choice, check_integer, did_you_mean
from planners.experiments import EXPERIMENTS
from planners.experiments.reporting.report import Section, write_report
from planners.experiments.running.results import Results, reserved
from planners.experiments.running.runner import Completed, ExecutorFactory, Watcher, run_tasks
from planners.experiments.running.tasks import Task, plan
from planners.experiments.study import SCALES, Experiment, Run
from planners.plotting import check_matplotlib


@dataclass(frozen=True)
class Reproduction:
    """What there is in the end.

    Parameters
    ----------
    pages : list of Path
        The report, in its forms.
    completed : Completed
    tasks : list of Task
    sections : list of Section
        What the report says, by experiment.
    """

    pages: list[Path]
    completed: Completed
    tasks: list[Task]
    sections: list[Section]


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Return the named experiments in the order of the report; all where none is named.

    Raises
    ------
    ValueError
        If there is no such experiment.
    """
    for name in names:
        if name not in EXPERIMENTS:
            raise ValueError(
                f"experiments are {', '.join(EXPERIMENTS)}, there is no {name!r}"
                f"{did_you_mean(name, EXPERIMENTS)}"
            )
    return [e for name, e in EXPERIMENTS.items() if not names or name in names]


def reproduce(
    names: Sequence[str],
    *,
    scale: str,
    seed: int,
    out: Path,
    make_executor: ExecutorFactory,
    watcher: Watcher,
    workers: str,
    run: bool = True,
) -> Reproduction:
    """Run experiments and write their report.

    Parameters
    ----------
    names : sequence of str
        Of experiments; all where there is none.
    scale : {"small", "paper"}
    seed : int
    out : Path
        Folder of the report and of the results of tasks, which a later run goes on from.
    make_executor : callable
    watcher : Watcher
    workers : str
        Who runs the tasks, in words for the report.
    run : bool
        Whether to run what has no result yet; else the report is of what there is.

    Raises
    ------
    ValueError
        For an unknown experiment or scale.
    OSError
        If the folder cannot be written to.
    """
    experiments = chosen(names)
    check_choice("scale", scale, SCALES)
    check_integer("seed", seed)
    check_matplotlib()
    with reserved(out):
        planned = {e.name: plan(e, scale, seed) for e in experiments}
        tasks = [task for group in planned.values() for task in group]
        results = Results(out, watcher.report)
        if run:
            completed = run_tasks(tasks, results, make_executor, watcher)
        else:
            completed = Completed([results.load(task) for task in tasks], {}, 0.0)
        outcomes = dict(
            zip(((t.experiment, t.name) for t in tasks), completed.outcomes, strict=True)
        )
        sections = []
        for experiment in experiments:
            runs = [
                Run(
                    task.identity["configuration"], task.repetition, outcome.values, outcome.seconds
                )
                for task in planned[experiment.name]
                if (outcome := outcomes[task.experiment, task.name]) is not None
            ]
            summary = experiment.summarize(experiment.scales[scale], runs)
            sections.append(
                Section(
                    experiment.name,
                    experiment.title,
                    summary,
                    runs,
                    len(planned[experiment.name]),
                )
            )
        spent = sum(run.seconds.get("task", 0.0) for s in sections for run in s.runs)
        facts = {
            "scale": scale,
            "seed": seed,
            "tasks": f"{sum(len(s.runs) for s in sections):,} of {len(tasks):,}",
            "workers": workers,
            "seconds of all tasks": f"{spent:,.0f}",
            "seconds of this run": f"{completed.seconds:,.0f}",
        }
        pages = write_report(out, sections, facts)
    return Reproduction(pages, completed, tasks, sections)
