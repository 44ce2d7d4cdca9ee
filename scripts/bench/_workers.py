"""The other end of `adapters/worker.py`: processes that solve, with time limits."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

ADAPTERS = Path(__file__).resolve().parent / "adapters"
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "BLIS", "VECLIB")
#: Set here for old BLAS builds, and slow with current ones; not for us to measure with.
NOT_PASSED_ON = ("PYTHONPATH", "PYTHONHOME", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


#: Seconds between looks at a process that is waited for.
LOOK_EVERY = 0.1
#: Times its limit that a process may take by the clock, when others take the processor.
MOST_WAITING = 10


class FailedError(Exception):
    """A solve that gave nothing; the message is its status in the results."""


class TooSlowError(FailedError):
    """A solve, or the building of a model, that was ended at its time limit."""


class Worker:
    """A process that holds one model and solves it when asked.

    Parameters
    ----------
    python : str
    adapter : str
        Module in ``adapters``.
    model : Path
    gamma : float
    timeout : float
        Seconds of processor for a solve, a thread, unless that says otherwise; building may take
        twice as long.
    memory : int
        Bytes of address space, 0 for no limit.
    threads : int
    objective : dict, optional
        What is asked instead of discounted costs, as ``adapters/worker.py`` says.
    """

    def __init__(
        self,
        python: str,
        adapter: str,
        model: Path,
        gamma: float,
        *,
        timeout: float,
        memory: int = 0,
        threads: int = 1,
        objective: dict[str, Any] | None = None,
    ) -> None:
        self._timeout = timeout
        self._threads = threads
        self.num_solved = 0
        environment = {k: v for k, v in os.environ.items() if k not in NOT_PASSED_ON}
        environment |= {f"{name}_NUM_THREADS": str(threads) for name in THREADS}
        environment |= {"AGGMAZE_BENCH_MEMORY": str(memory), "PYTHONWARNINGS": "ignore"}
        self._folder = tempfile.TemporaryDirectory()
        self._errors = (Path(self._folder.name) / "errors.txt").open("w+")
        self._process = subprocess.Popen(
            [python, str(ADAPTERS / "worker.py"), adapter],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
        )
        try:
            request = {"build": str(model), "gamma": gamma, "objective": objective}
            built = self._ask(request, 2 * timeout, "building: ")
        except BaseException:
            self.close()
            raise
        self.build_seconds: float = built["build_seconds"]
        self.before_mb: float = built["before_mb"]

    def solve(
        self, variant: dict[str, Any], epsilon: float, tol: float, timeout: float | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Solve once; return the values and what the worker says about it."""
        path = Path(self._folder.name) / "values.npy"
        request = {"solve": str(path), "variant": variant, "epsilon": epsilon, "tol": tol}
        answer = self._ask(request, timeout or self._timeout, "")
        self.num_solved += 1
        return np.load(path), answer

    @property
    def is_alive(self) -> bool:
        """Whether the process still answers."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            stream.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, request: dict[str, Any], seconds: float, what: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise FailedError(f"{what}{self._last_words()}") from None
        start, cpu_start = time.perf_counter(), self._cpu_seconds()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not selector.select(min(seconds, LOOK_EVERY)):
                used = self._cpu_seconds() - cpu_start
                if used > seconds or time.perf_counter() - start > MOST_WAITING * seconds:
                    self._process.kill()
                    self._process.wait()
                    raise TooSlowError(f"{what}over {seconds:.3g} s")
        line = self._process.stdout.readline()
        if not line:
            raise FailedError(f"{what}{self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            error = str(answer["error"])
            is_memory = error.startswith(("MemoryError", "bad_alloc", "_ArrayMemoryError"))
            raise FailedError(what + ("out of memory" if is_memory else error[:120]))
        return answer

    def _cpu_seconds(self) -> float:
        """Return the seconds of processor that it has used, a core; or else those of the clock."""
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            return time.perf_counter()
        # Behind the name, which may hold anything, utime and stime are the 12th and 13th field.
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") / self._threads

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return f"ended with {code}: {lines[-1][:120] if lines else 'no message'}"
