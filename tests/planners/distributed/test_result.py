"""What each process gets, put together again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planners
from planners.distributed.result import PartResult
from planners.engine import WHOLE
from planners.objective import Discounted
from planners.result import KEYBOARD, TERMINATED, NotSolvedError, Status
from tests.planners.reference import random_moves

MODEL = random_moves(3, 20, 3, p=0.8)
WHOLE_RESULT = planners.solve(MODEL, gamma=0.9, method="value_iteration")


def part() -> PartResult:
    result = WHOLE_RESULT
    assert result.proof is not None
    return PartResult(
        lo=0,
        hi=MODEL.num_states,
        num_states=MODEL.num_states,
        values=result.values,
        policy=result.policy.astype(np.int8),
        terminal=MODEL.terminal,
        bound=result.bound,
        policy_bound=result.policy_bound,
        status=result.status,
        message=result.message,
        method=result.method,
        reason="",
        objective=Discounted(0.9),
        num_iterations=result.num_iterations,
        num_sweeps=result.num_sweeps,
        num_updates=result.num_updates,
        num_certificate_sweeps=result.num_certificate_sweeps,
        seconds=result.seconds,
        history=result.history,
        allowance=float(result.proof["allowance"][0]),
        labels=None,
        layout=None,
        _parts=WHOLE,
    )


def test_all_parts_are_an_ordinary_result() -> None:
    found = part().gathered()
    assert np.array_equal(found.values, WHOLE_RESULT.values)
    assert np.array_equal(found.policy, WHOLE_RESULT.policy)
    assert found.policy.dtype == np.int64
    assert found.proof is not None
    assert WHOLE_RESULT.proof is not None
    assert found.proof.keys() == WHOLE_RESULT.proof.keys()
    for name, array in found.proof.items():
        assert np.array_equal(array, WHOLE_RESULT.proof[name])
    for name in ("bound", "policy_bound", "status", "message", "num_updates", "gamma"):
        assert getattr(found, name) == getattr(WHOLE_RESULT, name)


def test_it_is_insisted_on() -> None:
    result = part()
    assert result.success
    assert result.require() is result
    short = replace(result, status=Status.STOPPED_SHORT, message="too little time")
    with pytest.raises(NotSolvedError, match="too little time") as caught:
        short.require()
    assert caught.value.result is short
    for message in (KEYBOARD, TERMINATED):
        with pytest.raises(KeyboardInterrupt):
            replace(short, status=Status.INTERRUPTED, message=message).require()


def test_it_says_what_it_is() -> None:
    assert repr(part()).startswith("PartResult(value_iteration: converged, states 0 to 20 of 20")
