"""The first minute: state aggregation on one maze, in numbers and in a picture that moves.

``python3 scripts/quickstart.py [--out DIR]`` makes a virtual environment on its first run, and
writes the picture, a GIF, into DIR, or into the folder ``quickstart`` of the checkout.

What is at the level of the module runs, before the virtual environment is there, on any Python and
without the project's dependencies: import those inside the functions that need them.
"""

import functools
from pathlib import Path
from typing import Any

import _venv

ENV_ID, SHAPE = "TerrainMaze-v0", (50, 50)
# The paper's parameters: bins 0.5 wide on costs scaled so that the largest cost-to-go is 100, and,
# by default, two global and five aggregated iterations in turn.
GAMMA, EPSILON = 0.95, 0.5
SWEEPS = 100
EARLY, LATE = (2, 3, 5, 10, 20), (40, 60, 80, SWEEPS)
FOLDER = _venv.ROOT / "quickstart"
PICTURE = "aggregation.gif"

# Of the picture: its size in inches and pixels an inch; in how many sweeps each iteration is a
# frame, and every which aggregated one is after them; and milliseconds of early frames, of late
# ones, and of the last.
INCHES, PIXELS = (8.8, 3.7), 100
FIRST, EVERY = 10, 5
FRAME_TIMES = (220, 110, 4000)
COLOURS = {"aggregation": "#d55e00", "value iteration": "#0072b2"}


class Course:
    """What a run went through: a callback of ``planners.solve`` that keeps it.

    Parameters
    ----------
    exact : ndarray of float, shape (S,)
        V*.
    """

    def __init__(self, exact: Any) -> None:
        self._exact = exact
        self.size = len(exact)
        self.num_updates = [0]
        self.num_megastates = [0]
        self.labels: list[Any] = [None]
        self.values = [0.0 * exact]
        self.errors = [float(abs(exact).max())]

    def __call__(self, progress: Any) -> None:
        """Take an iteration in."""
        self.num_updates.append(progress.num_updates)
        self.num_megastates.append(progress.num_megastates)
        self.labels.append(progress.labels if progress.num_megastates else None)
        self.values.append(progress.values)
        self.errors.append(float(abs(progress.values - self._exact).max()))

    def sweeps(self, iteration: int) -> float:
        """Return the updates until then, in sweeps over all states."""
        return self.num_updates[iteration] / self.size

    def at(self, sweeps: float) -> int:
        """Return the last iteration that ends within updates worth so many sweeps."""
        allowed = sweeps * self.size + 0.5
        return max(i for i, number in enumerate(self.num_updates) if number <= allowed)

    def error(self, sweeps: float) -> float:
        """Return the error after updates worth so many sweeps."""
        return self.errors[self.at(sweeps)]


def demonstrate(out: Path) -> None:
    """Tell the story, and write its picture into the folder ``out``, which exists."""
    import gymnasium as gym

    import planners

    env = gym.make(ENV_ID, shape=SHAPE)
    size = "x".join(map(str, SHAPE))
    grid = env.unwrapped.layout.grid  # type: ignore[attr-defined]
    print(f"\n{ENV_ID} of {size}: {grid.num_states:,} states, gamma {GAMMA}")
    print("The paper's adaptive aggregation beside value iteration, by the updates that they make:")
    print(f"one Bellman backup each, {grid.num_states:,} to a sweep. Errors are the largest over")
    print("all states, where costs-to-go are up to 100.", flush=True)
    model, _ = planners.normalized(env, GAMMA)
    V = planners.solve(model, gamma=GAMMA, tol=1e-9).require().values
    courses = {"aggregation": Course(V), "value iteration": Course(V)}
    planners.solve(
        model,
        gamma=GAMMA,
        method="adaptive_aggregation",
        epsilon=EPSILON,
        num_updates=SWEEPS * model.num_states,
        callback=courses["aggregation"],
    )
    planners.solve(
        model,
        gamma=GAMMA,
        method="value_iteration",
        num_iterations=SWEEPS,
        callback=courses["value iteration"],
    )
    tell(courses)

    print("\n3. So the exact methods narrow their bins as they go, or use none. Their errors are")
    print("   certified, without knowing the exact values:\n")
    print(f"     {'':42}{'updates':>9}{'seconds':>9}{'error at most':>15}")
    exact: dict[str, dict[str, Any]] = {
        "value iteration": {"method": "value_iteration"},
        'adaptive aggregation, epsilon="shrink"': {
            "method": "adaptive_aggregation",
            "epsilon": "shrink",
            "tol": 1e-6,
        },
        "the default": {},
    }
    for name, options in exact.items():
        result = planners.solve(model, gamma=GAMMA, **options).require()
        name = name if options else f"{name}, here {result.method.replace('_', ' ')}"
        numbers = f"{result.num_updates:>9,}{result.seconds:>9.4f}{result.bound:>15.0e}"
        print(f"     {name:42}{numbers}")

    path = out / PICTURE
    print("\nDrawing ...", flush=True)
    draw(path, grid, courses)
    print(f"{path}: both methods at equal updates, as mega-states form")
    size = "--set shape=" + ",".join(map(str, SHAPE))
    print("\nTo watch them form, live, on your own machine:")
    print(f"  {_venv.command('aggmaze')} watch {ENV_ID} {size} --gamma {GAMMA}")


def tell(courses: "dict[str, Course]") -> None:
    """Print where aggregation is ahead, and where its bins hold it."""
    ours, theirs = courses["aggregation"], courses["value iteration"]
    ahead = [x for x in range(1, SWEEPS + 1) if ours.error(x) < theirs.error(x)]
    behind = [x for x in range(1, SWEEPS + 1) if ours.error(x) > theirs.error(x)]
    for_good = max(ahead, default=0) + 1
    steps = [number for number in ours.num_megastates[: ours.at(FIRST) + 1] if number]
    first, behind_first = (sum(x <= FIRST for x in where) for where in (ahead, behind))
    print(f"\n1. In the first {FIRST} sweeps aggregation is ahead after {first}, ", end="")
    print(f"behind after {behind_first}:")
    print("   states whose values lie in one bin are a mega-state, and an aggregated iteration")
    print(
        f"   updates the {min(steps)} to {max(steps)} of those in place of {ours.size:,} states.\n"
    )
    _table(courses, EARLY)
    print(f"\n2. Then its bins hold it: states in one bin, {EPSILON} wide, share their value.")
    if for_good <= SWEEPS:
        print(f"   Value iteration is ahead from sweep {for_good} on.")
    print()
    _table(courses, LATE)


def _table(courses: "dict[str, Course]", shown: "tuple[int, ...]") -> None:
    print(f"     {'error after sweeps':20}" + "".join(f"{x:>8}" for x in shown))
    for name, course in courses.items():
        print(f"     {name:20}" + "".join(f"{course.error(x):>8.3g}" for x in shown))


def draw(path: Path, grid: Any, courses: "dict[str, Course]") -> None:
    """Draw both methods at equal updates, frame by frame, into a GIF.

    Parameters
    ----------
    path : Path
    grid : Grid
        Where the states are.
    courses : dict of Course
    """
    import numpy as np
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from PIL import Image

    from planners.plotting import region_borders
    from planners.watching.movies import write_gif

    ours, theirs = courses["aggregation"], courses["value iteration"]
    steps = [i for i, number in enumerate(ours.num_megastates) if number]
    early = list(range(ours.at(FIRST)))
    late = [i for i in steps[::-1][::EVERY][:0:-1] if i > early[-1]]
    chosen = [*early, *late, steps[-1]]
    times = [FRAME_TIMES[0]] * len(early) + [FRAME_TIMES[1]] * len(late) + [FRAME_TIMES[2]]

    with rc_context({"font.size": 10.0, "font.family": "sans-serif"}):
        figure = Figure(figsize=INCHES, dpi=PIXELS)
        canvas: Any = FigureCanvasAgg(figure)
        highest = max(float(ours.values[-1].max()), 1.0)
        maps, titles = {}, {}
        for i, name in enumerate(reversed(courses)):
            axes = figure.add_axes((0.012 + 0.322 * i, 0.02, 0.31, 0.31 * INCHES[0] / INCHES[1]))
            axes.set(xticks=[], yticks=[])
            maps[name] = axes.imshow(
                grid.to_image(0.0 * ours.values[0]), cmap="viridis_r", vmin=0.0, vmax=highest
            )
            axes.set_title(name, loc="left", color=COLOURS[name], fontweight="bold", pad=20)
            titles[name] = axes.text(
                0, 1.025, "", transform=axes.transAxes, va="bottom", color="#333333"
            )
            if name == "aggregation":
                borders = LineCollection([], colors="white", linewidths=0.5, alpha=0.6)
                axes.add_collection(borders)
        axes = figure.add_axes((0.725, 0.15, 0.255, 0.64))
        axes.set_title("error", loc="left", pad=6, fontsize=10)
        clock = figure.text(0.012, 0.985, "", va="top", fontsize=12, fontweight="bold")
        scale = (lambda x: np.sqrt(np.maximum(x, 0.0)), np.square)
        marks = [0, 1, 5, 10, 25, 50, 100]
        axes.set_xscale("function", functions=scale)
        axes.set_yscale("function", functions=scale)
        axes.set(xticks=marks, yticks=marks, xlim=(0, SWEEPS), ylim=(0, 100))
        axes.set_xlabel("updates, in sweeps over all states")
        axes.grid(color="#dddddd", linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        lines = {}
        for name in courses:
            (line,) = axes.plot([], [], color=COLOURS[name], linewidth=1.8)
            (dot,) = axes.plot([], [], "o", color=COLOURS[name], markersize=5, clip_on=False)
            lines[name] = (line, dot)

        frames = []
        for iteration in chosen:
            sweeps = ours.sweeps(iteration)
            for name, course in courses.items():
                now = course.at(sweeps)
                maps[name].set_data(grid.to_image(course.values[now]))
                x = [course.sweeps(i) for i in range(now + 1)]
                line, dot = lines[name]
                line.set_data(x, course.errors[: now + 1])
                dot.set_data(x[-1:], course.errors[now : now + 1])
            number = ours.num_megastates[iteration]
            errors = {name: course.error(sweeps) for name, course in courses.items()}
            for name, what in (
                ("value iteration", f"{theirs.at(sweeps)} sweeps"),
                ("aggregation", f"{number} mega-states" if number else "sweep over all states"),
            ):
                titles[name].set_text(f"{what}, error {errors[name]:.3g}")
            labels = ours.labels[iteration]
            borders.set_segments(
                [] if labels is None else list(region_borders(grid.to_image(labels)))
            )
            lead = min(errors, key=lambda name: errors[name])
            is_even = errors["aggregation"] == errors["value iteration"]
            leader = "" if is_even else f": {lead} is ahead"
            clock.set_text(f"After {sweeps:.1f} sweeps' worth of updates{leader}")
            canvas.draw()
            frames.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]))
    # One palette for all frames, by some of the whole course.
    some = [frames[round(share * (len(frames) - 1))] for share in (0.0, 0.3, 0.6, 0.8, 1.0)]
    table = Image.fromarray(np.concatenate([np.asarray(frame) for frame in some])).quantize(128)
    colors = np.reshape(table.getpalette(), (-1, 3)).tolist()
    write_gif(path, [functools.partial(Image.Image.copy, frame) for frame in frames], times, colors)


def main() -> int:
    """Set up the virtual environment and run the demonstration in it."""
    parser = _venv.Parser("See what state aggregation does, in a minute.")
    parser.add_argument(
        "--out",
        type=Path,
        action="append",
        metavar="DIR",
        help=f"the folder for the picture (default: {FOLDER})",
    )
    arguments = parser.parse_args()
    folders = arguments.out or [FOLDER]
    if len(folders) > 1:
        parser.error(f"--out is given {len(folders)} times")
    try:
        folders[0].mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot make the folder for the picture: {error}")
    if not arguments.in_venv:
        return _venv.start_again("plots")
    demonstrate(folders[0])
    return 0


if __name__ == "__main__":
    _venv.run(main)
