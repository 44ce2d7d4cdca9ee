"""What watching costs a solve: iterations a second beside those of a solve that nobody watches.

Both sides take turns, at full speed, on a maze of 200x200; the window is a real one, under Xvfb
where there is no DISPLAY. Printed are medians over the rounds, as a table in Markdown: iterations a
second of both, their ratio (that of each round; its least in brackets), pictures a second, and the
processor time of a picture, which says something on a busy machine too.

    python scripts/bench/watching.py [--side 200] [--seconds 5] [--rounds 7]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from _machine import machine_line
from _output import markdown, markdown_row

import aggmaze  # noqa: F401
import planners
from aggmaze.rendering.window import Window
from planners.objective import Discounted
from planners.record import Progress
from planners.watching import live
from planners.watching.film import Film, Frame
from planners.watching.painter import Words
from planners.watching.routes import Routes
from planners.watching.scenes import scene_of
from planners.watching.session import Session

GAMMA = 0.995
METHODS: dict[str, dict[str, Any]] = {
    "value_iteration": {},
    "adaptive_aggregation": {"epsilon": 2.0},
}
# More than a round makes.
NUM_ITERATIONS = 10_000_000
# Seconds at the beginning of a round that do not count.
WARM_UP = 0.5
SCREEN = "1920x1080x24"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--side", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(machine_line() + "\n")
    env = gym.make("TerrainMaze-v0", shape=(options.side, options.side), p=0.9)
    model = planners.as_model(env)
    header = ["method", "alone, it/s", "watched, it/s", "share", "pictures/s", "ms of a picture"]
    print(markdown(header, []), end="")
    with screen():
        for method, settings in METHODS.items():
            arguments = settings | {"gamma": GAMMA, "method": method}
            # Kernels are compiled, or loaded, before the first round.
            planners.solve(model, num_iterations=3, **arguments)
            arguments["num_iterations"] = NUM_ITERATIONS
            alone, watched, pictures, costs = [], [], [], []
            for _ in range(options.rounds):
                alone.append(unwatched(model, arguments, options.seconds))
                speed, rate, cost = seen(env, model, arguments, options.seconds)
                watched.append(speed)
                pictures.append(rate)
                costs.append(cost)
            shares = [one / other for one, other in zip(watched, alone, strict=True)]
            row = [
                method,
                f"{statistics.median(alone):,.0f}",
                f"{statistics.median(watched):,.0f}",
                f"{statistics.median(shares):.0%} ({min(shares):.0%})",
                f"{statistics.median(pictures):.1f}",
                f"{1e3 * statistics.median(costs):.1f}",
            ]
            print(markdown_row(row), flush=True)


class Meter:
    """A callback that counts the iterations after the warm-up, and ends a solve after its time."""

    def __init__(self, seconds: float) -> None:
        self._begin = time.monotonic()
        self._end = self._begin + WARM_UP + seconds
        self._count, self._first, self._last = 0, 0.0, 0.0

    def __call__(self, progress: Progress) -> bool:
        """Take an iteration in."""
        now = time.monotonic()
        if now >= self._begin + WARM_UP:
            if not self._first:
                self._first = now
            else:
                self._count += 1
            self._last = now
        return now >= self._end

    @property
    def speed(self) -> float:
        """Iterations a second."""
        return self._count / (self._last - self._first)


def unwatched(model: Any, arguments: dict[str, Any], seconds: float) -> float:
    """Return iterations a second of a solve that nobody watches."""
    meter = Meter(seconds)
    planners.solve(model, callback=meter, **arguments)
    return meter.speed


def seen(
    env: Any, model: Any, arguments: dict[str, Any], seconds: float
) -> tuple[float, float, float]:
    """Return iterations and pictures a second, and the processor time of a picture."""
    count = model.num_listed_states
    film = Film(count)
    film.add(Frame(0, 0, 0.0, 0, float("nan"), float("nan"), np.zeros(count), None))
    meter = Meter(seconds)
    session = Session(
        lambda see: planners.solve(model, callback=see, **arguments),
        film,
        count,
        float("inf"),
        meter,
    )
    words, routes = Words("A maze", arguments["method"]), Routes(model, Discounted(GAMMA))
    window = Window("watching", 1000.0, first_size=live.FIRST_SIZE)
    window.notes = live.HELP
    viewer = live.Viewer(session, scene_of(env, model), words, routes, "light", window)
    timer = threading.Timer(WARM_UP + seconds, lambda: setattr(window, "dismissed", True))
    try:
        with live.eager_threads():
            viewer.show()
            session.start()
            timer.start()
            begin, busy, shown = time.monotonic(), time.thread_time(), viewer.num_pictures
            viewer.run()
            shown = viewer.num_pictures - shown
            busy, took = time.thread_time() - busy, time.monotonic() - begin
            session.end()
    finally:
        timer.cancel()
        window.close()
    return meter.speed, shown / took, busy / shown


@contextmanager
def screen() -> Iterator[None]:
    """Have a screen: the one that there is, or one of Xvfb's."""
    if os.environ.get("DISPLAY"):
        yield
        return
    if shutil.which("Xvfb") is None:
        raise SystemExit("there is no DISPLAY and no Xvfb to make one (apt-get install xvfb)")
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", SCREEN]
    server = subprocess.Popen(
        command, pass_fds=[writing], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as answer:
            os.environ["DISPLAY"] = f":{int(answer.readline())}"
        yield
    finally:
        del os.environ["DISPLAY"]
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
