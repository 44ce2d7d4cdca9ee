"""The page on models of random events: its example runs, and it names the methods that run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planners
from planners import METHODS

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "events.md").read_text(encoding="utf-8")


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(compile(example, "events.md", "exec"), names)
    assert capsys.readouterr().out.startswith("[")
    model, result = names["model"], names["result"].require()
    # What is ordered fills up to one level, where the stock is below a threshold (Scarf, 1960).
    ordering = np.flatnonzero(result.policy)
    assert ordering.tolist() == list(range(len(ordering)))
    assert 0 < len(ordering) < 200
    assert np.ptp(ordering + result.policy[ordering]) <= 1
    # The equation holds, worked out by its functions.
    stock = 17
    chances = names["probabilities"]
    costs = []
    for order in range(501):
        left = stock + order
        following = [max(left - e, 0) for e in range(len(chances))]
        lost = [5.0 * max(e - left, 0) for e in range(len(chances))]
        costs.append(
            names["cost"](stock, order) + chances @ (lost + 0.99 * result.values[following])
        )
    assert min(costs) == pytest.approx(result.values[stock], abs=2.1 * result.bound)
    # The work that the page names.
    engine = planners.policies.make_engine(model, 0.99)
    table_work = model.num_states * model.num_actions * len(chances)
    assert round(engine.work / 1e6) == 3
    assert f"{round(table_work / 1e6)} million" in PAGE


def test_the_page_names_the_methods_that_run() -> None:
    running = [name for name, method in METHODS.items() if method.matrix_free is not None]
    (sentence,) = re.findall(
        r"- These methods run without a table:.*?\. The others", PAGE, re.DOTALL
    )
    assert sorted(re.findall(r"`(\w+_\w+)`", sentence)) == sorted(running)
