"""What each process of a check does; started by check_distributed.py under ``mpiexec``.

    mpiexec -n 2 python tests/distributed/side.py FOLDER WHAT ...

The first process writes what came out of each to a file of its name in FOLDER.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import cases
import numpy as np

import planners
from aggmaze.models.row_models import HeldMoves, MoveBlock, as_row_model
from planners import folders
from planners.distributed import engine as engines
from planners.distributed.processes import Processes, world


def facts(result: Any) -> dict[str, Any]:
    """What is the same in all processes of a result, and with ``gathered`` its arrays."""
    whole = result.gathered()
    return {
        "values": whole.values,
        "policy": whole.policy,
        "labels": np.empty(0, np.int32) if whole.labels is None else whole.labels,
        "ended": whole.proof["ended"],
        "history": np.stack([whole.history.bound, whole.history.residual]),
        "numbers": np.array(
            [
                whole.bound,
                whole.policy_bound,
                whole.num_iterations,
                whole.num_sweeps,
                whole.num_updates,
                whole.num_certificate_sweeps,
            ]
        ),
        "words": f"{whole.status}; {whole.message}",
    }


def bits(processes: Processes) -> dict[str, Any]:
    found = {}
    for name, (_, make) in cases.MODELS.items():
        model = make()
        for i, run in enumerate(cases.runs(name)):
            result = planners.solve(model, gamma=cases.GAMMA, engine="petsc", **run)
            for key, value in facts(result).items():
                found[f"{name}|{i}|{key}"] = value
    return found


def evaluations(processes: Processes) -> dict[str, Any]:
    found = {}
    for name in cases.EVALUATED:
        model = cases.MODELS[name][1]()
        for i, run in enumerate(cases.EVALUATING):
            result = planners.solve(model, gamma=cases.GAMMA, engine="petsc", **run)
            for key, value in facts(result).items():
                found[f"{name}|{i}|{key}"] = value
    return found


class Spoilt(HeldMoves):
    """A model of which the last block of rows is bad."""

    def __init__(self, model: Any, spoil: Callable[[np.ndarray, np.ndarray], None]) -> None:
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "_spoil", spoil)

    def moves(self, lo: int, hi: int) -> MoveBlock:
        block = super().moves(lo, hi)
        successors, costs = block.successors.copy(), block.costs.copy()
        if hi == self.num_states:
            self._spoil(successors, costs)
        return MoveBlock(successors, costs)


def _nan(successors: np.ndarray, costs: np.ndarray) -> None:
    costs[-1, 1] = np.nan


def _outside(successors: np.ndarray, costs: np.ndarray) -> None:
    costs[-1, 0] = 1.0
    successors[-1, 0] = -1


def _huge(successors: np.ndarray, costs: np.ndarray) -> None:
    costs[-1, 0] = 1e290


def _fails(progress: planners.Progress) -> bool:
    if world().rank == world().size - 1 and progress.iteration == 3:
        raise RuntimeError("the callback of the last process")
    return False


def refusals(processes: Processes) -> dict[str, Any]:
    """Messages of what is refused: the same in all processes, though one alone has the reason."""
    model = cases.MODELS["terrain"][0]()
    held = as_row_model(model)
    calls: dict[str, tuple[Any, dict[str, Any]]] = {
        "nan": (Spoilt(model, _nan), {}),
        "outside": (Spoilt(model, _outside), {}),
        "huge": (Spoilt(model, _huge), {}),
        "gamma": (held, {"gamma": 1.5}),
        "tol": (held, {"tol": 1e-18}),
        "near 1": (held, {"gamma": 1 - 1e-16, "tol": 1e-3}),
        "V0": (held, {"V0": np.where(np.arange(held.num_states) == 0, np.nan, 0.0)}),
        "epsilon": (
            held,
            {"method": "adaptive_aggregation", "epsilon": 1e-300, "num_iterations": 9},
        ),
        "callback": (held, {"callback": _fails}),
        "different": (
            held if processes.rank == 0 else as_row_model(cases.MODELS["maze"][0]()),
            {},
        ),
        "total": (held, {"gamma": 1.0}),
        "method": (held, {"method": "gauss_seidel"}),
        "noise": (held, {"method": "adaptive_aggregation", "noise_sigma": 0.1}),
    }
    found = {}
    for name, (source, arguments) in calls.items():
        message = "no error"
        try:
            planners.solve(source, engine="petsc", **{"gamma": cases.GAMMA, **arguments})
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        told = processes.comm.allgather(message)
        if len(set(told)) > 1:
            raise AssertionError(f"{name}: processes were told differently: {told}")
        found[name] = told[0]
    found["store"] = _store_fails(processes, held)
    numbers = np.array([np.nan if processes.rank == processes.size - 1 else 1.0, -np.inf])
    found["largest"] = repr(processes.largest(numbers).tolist())
    return found


def _store_fails(processes: Processes, held: Any) -> str:
    """Store a result where one process alone fails, in another way than by the disk."""
    result = planners.solve(held, engine="petsc", gamma=cases.GAMMA)
    usual = folders.write_slice

    def write(*arguments: Any) -> Any:
        if processes.rank == processes.size - 1:
            raise ArithmeticError("the last process cannot write")
        return usual(*arguments)

    folders.write_slice = write
    message = "no error"
    with tempfile.TemporaryDirectory() as folder:
        try:
            result.store(processes.first(folder))
        except ArithmeticError as error:
            message = str(error)
        finally:
            folders.write_slice = usual
        told = processes.comm.allgather(message)
    assert len(set(told)) == 1, told
    return told[0]


def ends(processes: Processes) -> dict[str, Any]:
    """How runs end that one process ends: by a signal, a clock or a callback."""
    found = {}
    model = cases.MODELS["terrain"][1]()
    last = processes.size - 1

    def ended(**arguments: Any) -> dict[str, Any]:
        result = planners.solve(model, engine="petsc", gamma=0.9999, **arguments)
        told = processes.comm.allgather(
            (result.status, result.message, result.num_iterations, result.bound)
        )
        assert len(set(told)) == 1, told
        return {"status": result.status, "message": result.message, "bound": result.bound}

    for name, number in (("SIGINT", signal.SIGINT), ("SIGTERM", signal.SIGTERM)):

        def kill(progress: planners.Progress, number: int = number) -> None:
            if progress.iteration == 5 and processes.rank == last:
                os.kill(os.getpid(), number)

        found[name] = ended(callback=kill)
    found["callback"] = ended(callback=lambda p: p.iteration == 7 and processes.rank == last)
    found["one callback"] = ended(
        callback=(lambda p: p.iteration == 7) if processes.rank == last else None
    )
    found["limit"] = ended(
        time_limit=0.3, tol=1e-9, method="adaptive_aggregation", num_iterations=10**8
    )
    return found


def crash(processes: Processes) -> dict[str, Any]:
    """Let one process fail where the others do not: this is never left but by the end of all."""
    usual = engines.PartEngine._near

    def near(self: Any, V: np.ndarray) -> np.ndarray:
        if processes.rank == processes.size - 1:
            raise RuntimeError("one process alone")
        return usual(self, V)

    engines.PartEngine._near = near  # type: ignore[method-assign]
    planners.solve(cases.MODELS["terrain"][1](), engine="petsc", gamma=0.9)
    return {}


def outside(processes: Processes) -> dict[str, Any]:
    """Let one process fail in the program's own lines, while others solve."""
    held = as_row_model(cases.MODELS["terrain"][0]())
    planners.solve(held, engine="petsc", gamma=0.9)
    if processes.rank == processes.size - 1:
        raise LookupError("between two solves")
    planners.solve(held, engine="petsc", gamma=0.9)
    return {}


def asked_differently(processes: Processes) -> dict[str, Any]:
    """Let one process alone ask for what there is not, and go on."""
    held = as_row_model(cases.MODELS["terrain"][0]())
    with suppress(ValueError):
        planners.solve(
            held, engine="petsc", gamma=7.0 if processes.rank == processes.size - 1 else 0.9
        )
    return {}


#: What is never left but by the end of all, and what is printed then.
ALONE = {
    crash.__name__: "RuntimeError: one process alone",
    outside.__name__: "LookupError: between two solves",
    asked_differently.__name__: "ValueError: gamma must be in [0, 1], got 7.0",
}
ACTIONS = {
    f.__name__: f for f in (bits, evaluations, refusals, ends, crash, outside, asked_differently)
}


def main() -> None:
    folder, *actions = sys.argv[1:]
    processes = world()
    for what in actions:
        found = ACTIONS[what](processes)
        if processes.rank == 0:
            if all(isinstance(value, str | dict) for value in found.values()):
                Path(folder, f"{what}.json").write_text(json.dumps(found))
            else:
                np.savez(Path(folder, f"{what}.npz"), **found)


if __name__ == "__main__":
    main()
