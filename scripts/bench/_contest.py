"""The peers, and contests: solvers that take turns on one model, as `peers.py` says."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _environments import Environment
from _models import tables_of, write_model
from _reference import Reference, cached_reference
from _results import OURS
from _workers import FailedError, TooSlowError, Worker
from families import family

#: Methods of a peer that may fail before it is given up on a model.
MOST_FAILURES = 3
#: Share of an accuracy that may be unknown of the optimal values that it is measured by.
MOST_ERROR = 0.01
#: Seconds that a method of a peer may take at least, however fast another was.
LEAST_LIMIT = 0.3
#: Runs that take less than these seconds together are repeated more often, up to so many times.
SHORT, MOST_REPEATS = 0.1, 15


@dataclass(frozen=True)
class Peer:
    """A library to compare with, or what is easily written with one.

    Parameters
    ----------
    name : str
        Name of its adapter and, unless that is named, of its environment.
    variants : dict
        Methods by name, and what the adapter makes of them.
    exact : tuple of str
        Those that take no accuracy.
    shares : str, optional
        Name of the environment that it runs in.
    """

    name: str
    variants: dict[str, dict[str, Any]]
    exact: tuple[str, ...] = ()
    shares: str | None = None

    @property
    def environment(self) -> str:
        """Name of the environment that it runs in."""
        return self.shares or self.name


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "quantecon",
            {
                "modified PI, k=20": {"method": "modified_policy_iteration", "k": 20},
                "VI": {"method": "value_iteration"},
                "PI": {"method": "policy_iteration"},
                **{
                    f"modified PI, k={k}": {"method": "modified_policy_iteration", "k": k}
                    for k in (10, 50, 5, 200)
                },
            },
            exact=("PI",),
        ),
        Peer(
            "mdpsolver",
            {
                "modified PI": {"algorithm": "mpi", "update": "standard"},
                "VI": {"algorithm": "vi", "update": "standard"},
                "VI, Gauss-Seidel": {"algorithm": "vi", "update": "gs"},
                "modified PI, Gauss-Seidel": {"algorithm": "mpi", "update": "gs"},
            },
        ),
        Peer(
            "mdplib",
            {
                "VI": {"method": "VI"},
                "VI, Gauss-Seidel": {"method": "VIGS"},
                "PI": {"method": "PI"},
            },
        ),
        Peer("stormpy", {"VI": {}}),
        Peer("bettermdptools", {"vectorised VI": {}}),
        # Its modified policy iteration takes minutes where this takes a tenth of a second.
        Peer("pymdptoolbox", {"VI": {}}),
        Peer("scipy", {"VI in ten lines": {}}),
        Peer(
            "scipy_lu",
            {
                "PI, LU by minimum degree": {
                    "permc_spec": "MMD_AT_PLUS_A",
                    "diag_pivot_thresh": 0.0,
                    "options": {"SymmetricMode": True},
                },
                "PI, LU by COLAMD": {"permc_spec": "COLAMD"},
            },
            shares="scipy",
        ),
        Peer("pyamg", {"PI, AIR": {}}),
    )
}


@dataclass
class Run:
    """A line of the results: one solver on one model to one accuracy."""

    family: str
    seed: int
    gamma: float
    tol: float
    solver: str
    variant: str
    threads: int = 1
    status: str = ""
    states: int = 0
    actions: int = 0
    entries: int = 0
    max_value: float = math.nan
    reference_error: float = math.nan
    seconds: float = math.nan
    wall_seconds: float = math.nan
    own_seconds: float = math.nan
    repeats: int = 0
    build_seconds: float = math.nan
    error: float = math.nan
    bound: float = math.nan
    epsilon: float = math.nan
    asked_seconds: float = math.nan
    asked_error: float = math.nan
    iterations: float = math.nan
    peak_mb: float = math.nan
    before_mb: float = math.nan
    note: str = ""


@dataclass(frozen=True)
class Setting:
    """How a peer is run.

    Parameters
    ----------
    variant : str
    factor : float
        Stopping parameter, in units of the accuracy asked for.
    seconds : float
        What that took once.
    asked_seconds, asked_error : float
        What it took, and what came of it, with the accuracy asked for as the parameter.
    """

    variant: str
    factor: float
    seconds: float
    asked_seconds: float
    asked_error: float


@dataclass
class History:
    """What earlier models say about a peer, so that not everything is tried each time.

    Parameters
    ----------
    variants : dict
        Fastest method, by peer, family, gamma and accuracy.
    failures : dict
        Why none got there, by the same.
    """

    variants: dict[tuple[str, str, float, float], list[str]] = field(default_factory=dict)
    failures: dict[tuple[str, str, float, float], FailedError] = field(default_factory=dict)

    def add(self, rows: Iterable[Mapping[str, str]]) -> None:
        """Learn from the lines of results of an earlier run."""
        for row in rows:
            key = (row["solver"], row["family"], float(row["gamma"]), float(row["tol"]))
            if row["status"] == "ok":
                self.variants.setdefault(key, [row["variant"]])
            elif "over " in row["status"]:
                self.failures.setdefault(key, TooSlowError(row["status"]))
            else:
                self.failures.setdefault(key, FailedError(row["status"]))

    def failure(self, peer: str, family: str, gamma: float, tol: float) -> str | None:
        """Return why a peer need not be tried: it failed at what was no harder."""
        for (p, f, g, t), error in self.failures.items():
            if (p, f) != (peer, family):
                continue
            same = g == gamma and (t == tol or (t > tol and isinstance(error, TooSlowError)))
            if same or str(error).startswith("building"):
                return str(error)
        return None


@dataclass
class Timing:
    """What the runs of one solver took, and what the last one returned."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    error: float = math.nan
    answer: dict[str, Any] = field(default_factory=dict)


class Contest:
    """One model, one discount, and the solvers that take part.

    Parameters
    ----------
    name, seed, gamma
        The model.
    options : argparse.Namespace
        Of the command.
    environments : dict
        Of the peers that take part.
    history : History
        Added to.
    done : collection of (float, str)
        Accuracies and solvers that are left out, `OURS` for all of the project's own.
    """

    def __init__(
        self,
        name: str,
        seed: int,
        gamma: float,
        options: argparse.Namespace,
        environments: dict[str, Environment],
        history: History,
        done: Collection[tuple[float, str]] = (),
    ) -> None:
        self._name, self._seed, self._gamma = name, seed, gamma
        self._options = options
        self._environments = environments
        self._history = history
        self._done = done
        self._stack = ExitStack()
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        model = family(name)(seed)
        tables = tables_of(model)
        self._general, self._own = write_model(folder, model, tables)
        cache = options.envs / "reference" / f"{name} seed {seed} gamma {gamma!r}.npz"
        self.reference: Reference = cached_reference(tables, gamma, cache)
        error = self.reference.error / self.reference.max_value
        if not error <= MOST_ERROR * min(options.tols):
            raise ValueError(f"its optimal values are known to {error:.0e} only")
        self._shared: dict[str, Any] = {
            "family": name,
            "seed": seed,
            "gamma": gamma,
            "states": tables.num_states,
            "actions": tables.num_actions,
            "entries": tables.transitions.nnz,
            "max_value": self.reference.max_value,
            "reference_error": error,
        }
        self._ours: dict[tuple[str, int], Worker] = {}
        # Of the first method, by accuracy.
        self._own_seconds: dict[float, float] = {}
        # What would take even longer is not tried.
        self._too_slow: dict[tuple[str, int], tuple[float, TooSlowError]] = {}
        # Of the peer whose turn it is, and which of its methods are far behind.
        self._theirs: Worker | None = None
        self._behind: set[str] = set()

    def runs(self) -> Iterator[Run]:
        """Let every peer and every method of ours solve the model, to every accuracy."""
        with self._stack:
            for tol in self._options.tols:
                if (tol, OURS) not in self._done:
                    yield from self._own_runs(tol)
            for peer in self._environments:
                for tol in self._options.tols:
                    if (tol, peer) not in self._done:
                        yield self._peer_run(PEERS[peer], tol)
                self._behind.clear()
                if self._theirs is not None:
                    self._theirs.close()
                    self._theirs = None

    def _row(self, tol: float, solver: str, variant: str, status: str, **more: Any) -> Run:
        return Run(**self._shared, tol=tol, solver=solver, variant=variant, status=status, **more)

    # What is ours.

    def _own_runs(self, tol: float) -> Iterator[Run]:
        entries = [(m, 1) for m in self._options.methods]
        if self._options.threads > 1:
            entries.append((self._options.methods[0], self._options.threads))
        if self._own != self._general:
            entries.append((f"{self._options.methods[0]} on the general table", 1))
        timings = {entry: Timing() for entry in entries}
        failures: dict[tuple[str, int], FailedError] = {}
        # A first run each that is not counted loads or compiles what it needs.
        for round_ in range(max(self._options.repeats, MOST_REPEATS) + 1):
            spent = sum(sum(timing.cpu) for timing in timings.values())
            if round_ > self._options.repeats and spent > SHORT * len(entries):
                break
            for entry in [entry for entry in entries if entry not in failures]:
                try:
                    solved = self._solve_ours(entry, tol)
                except FailedError as error:
                    failures[entry] = error
                else:
                    if round_ > 0:
                        self._add(timings[entry], *solved)
        for (method, threads), timing in timings.items():
            if (method, threads) in failures:
                status = str(failures[method, threads])
                yield self._row(tol, OURS, method, status, threads=threads)
                continue
            found = self._measured(timing, self._ours[method, threads])
            found["bound"] = timing.answer["bound"] / self.reference.max_value
            status = "ok" if timing.error <= tol else "not accurate"
            if status == "ok" and (method, threads) == entries[0]:
                self._own_seconds[tol] = found["seconds"]
            if timing.error > found["bound"] + self._shared["reference_error"]:
                status = "BOUND VIOLATED"
            yield self._row(tol, OURS, method, status, threads=threads, **found)

    def _solve_ours(self, entry: tuple[str, int], tol: float) -> tuple[Any, dict[str, Any]]:
        if entry in self._too_slow and tol <= self._too_slow[entry][0]:
            raise self._too_slow[entry][1]
        method, threads = entry
        name, _, on_table = method.partition(" on the ")
        if entry not in self._ours:
            self._ours[entry] = self._stack.enter_context(
                Worker(
                    sys.executable,
                    "aggmaze_adapter",
                    self._general if on_table else self._own,
                    self._gamma,
                    timeout=self._options.timeout,
                    threads=threads,
                )
            )
        variant = {"method": name, "num_threads": threads}
        try:
            return self._ours[entry].solve(variant, tol * self.reference.max_value, tol)
        except FailedError as error:
            # It may have been ended: the next accuracy starts another.
            self._ours.pop(entry).close()
            if isinstance(error, TooSlowError):
                self._too_slow[entry] = tol, error
            raise

    # What is not.

    def _peer_run(self, peer: Peer, tol: float) -> Run:
        known = self._history.failure(peer.name, self._name, self._gamma, tol)
        if known is not None:
            return self._row(tol, peer.name, "", known, note="not tried: failed before")
        key = (peer.name, self._name, self._gamma, tol)
        variants = self._history.variants.get(key, list(peer.variants))
        variants = [name for name in variants if name not in self._behind] or variants
        best: Setting | None = None
        found: dict[str, float] = {}
        failures: list[FailedError] = []
        far = self._options.far * self._own_seconds.get(tol, math.inf)
        longest = min(self._options.timeout, max(LEAST_LIMIT, far))
        for name in variants:
            limit = longest
            if best is not None:
                limit = min(limit, max(LEAST_LIMIT, 2 * best.seconds))
            try:
                worker = self._peer_worker(peer)
                setting = self._calibrated(worker, peer, name, tol, limit)
            except FailedError as error:
                failures.append(error)
                is_hopeless = best is None and len(failures) == MOST_FAILURES
                if str(error).startswith("building") or is_hopeless:
                    break
                continue
            found[name] = setting.seconds
            if best is None or setting.seconds < best.seconds:
                best = setting
        if best is None:
            self._history.failures[key] = failures[0]
            notes = "; ".join(f"{n}: {e}" for n, e in zip(variants, failures, strict=False))
            return self._row(tol, peer.name, variants[0], str(failures[0]), note=notes)
        self._history.variants[key] = [best.variant]
        # What is far behind at one accuracy is not tried at a tighter one, which costs it more.
        self._behind |= {
            name
            for name in variants
            if name not in peer.exact and found.get(name, math.inf) > 2 * best.seconds
        }
        return self._paired(peer, best, tol)

    def _peer_worker(self, peer: Peer) -> Worker:
        """Return the process of the peer whose turn it is, another where that was ended."""
        if self._theirs is None or not self._theirs.is_alive:
            self._theirs = self._stack.enter_context(
                Worker(
                    self._environments[peer.name].python,
                    f"{peer.name}_adapter",
                    self._general,
                    self._gamma,
                    timeout=self._options.timeout,
                    memory=int(self._options.memory * 2**30),
                )
            )
        return self._theirs

    def _calibrated(
        self, worker: Worker, peer: Peer, variant: str, tol: float, limit: float
    ) -> Setting:
        """Return the loosest stopping parameter, by factors of ten, that reaches the accuracy."""

        def attempt(factor: float) -> Setting | None:
            epsilon = factor * tol * self.reference.max_value
            values, answer = worker.solve(peer.variants[variant], epsilon, tol, limit)
            error, seconds = self._error(values), answer["cpu_seconds"]
            asked.append((seconds, error))
            return Setting(variant, factor, seconds, *asked[0]) if error <= tol else None

        asked: list[tuple[float, float]] = []
        powers = [] if variant in peer.exact else range(1, self._options.powers + 1)
        found = attempt(1.0)
        if found is None:
            for power in powers:
                tighter = attempt(10.0**-power)
                if tighter is not None:
                    return tighter
            raise FailedError("not accurate")
        for power in powers:
            looser = attempt(10.0**power)
            if looser is None:
                break
            found = min(found, looser, key=lambda setting: setting.seconds)
        return found

    def _paired(self, peer: Peer, setting: Setting, tol: float) -> Run:
        """Let the peer and the first method of ours run in turn."""
        settings = peer.variants[setting.variant]
        epsilon = setting.factor * tol * self.reference.max_value
        timing, ours = Timing(), Timing()
        entry = (self._options.methods[0], 1)
        try:
            worker = self._peer_worker(peer)
            if worker.num_solved == 0:  # loads what it needs
                worker.solve(settings, epsilon, tol)
            with suppress(FailedError):
                if entry not in self._ours:
                    self._solve_ours(entry, tol)
            while len(timing.cpu) < self._options.repeats or (
                len(timing.cpu) < MOST_REPEATS and sum(timing.cpu) < SHORT
            ):
                with suppress(FailedError):
                    self._add(ours, *self._solve_ours(entry, tol))
                self._add(timing, *worker.solve(settings, epsilon, tol))
                if timing.cpu[-1] > 10.0:
                    break  # a run that long needs no median
        except FailedError as error:
            return self._row(tol, peer.name, setting.variant, str(error))
        return self._row(
            tol,
            peer.name,
            setting.variant,
            "ok" if timing.error <= tol else "not accurate",
            epsilon=setting.factor,
            asked_seconds=setting.asked_seconds,
            asked_error=setting.asked_error,
            own_seconds=statistics.median(ours.cpu) if ours.cpu else math.nan,
            **self._measured(timing, worker),
        )

    # Both.

    def _error(self, values: Any) -> float:
        if values.shape != self.reference.values.shape or not np.isfinite(values).all():
            return math.inf
        return float(np.abs(values - self.reference.values).max()) / self.reference.max_value

    def _add(self, timing: Timing, values: Any, answer: dict[str, Any]) -> None:
        timing.cpu.append(answer["cpu_seconds"])
        timing.wall.append(answer["seconds"])
        timing.error = self._error(values)
        timing.answer = answer

    def _measured(self, timing: Timing, worker: Worker) -> dict[str, Any]:
        """Return what is written down of a solver's runs."""
        answer = timing.answer
        return {
            "seconds": statistics.median(timing.cpu),
            "wall_seconds": statistics.median(timing.wall),
            "repeats": len(timing.cpu),
            "build_seconds": worker.build_seconds,
            "error": timing.error,
            "iterations": math.nan if answer["iterations"] is None else answer["iterations"],
            "peak_mb": answer["peak_mb"],
            "before_mb": worker.before_mb,
            "note": answer["note"],
        }
