"""The figure: regret over steps, a panel for each maze and a line for each agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from _runs import Point
from matplotlib.axes import Axes

from aggmaze.files import atomic_file

#: Okabe and Ito's colours, which stay apart for colour-blind eyes; dashes say the same again.
STYLES = {
    "ppo": ("PPO", "#0072b2", "-"),
    "maskable_ppo": ("MaskablePPO", "#009e73", "--"),
    "dqn": ("DQN", "#d55e00", "-."),
    "q_learning": ("tabular Q-learning", "#cc79a7", (0, (1, 1))),
}
# Below this the axis is linear, down to 0.
_LINEAR = 1e-2


def draw(points: Sequence[Point], path: Path) -> None:
    """Draw the mean regret of each agent over its steps: the median of the seeds, and all of them.

    Parameters
    ----------
    points : sequence of Point
        Every seed of an agent and a maze at the same steps.
    path : Path
        A PNG file.
    """
    panels: dict[tuple[str, int], list[Point]] = defaultdict(list)
    for point in points:
        panels[point.env_id, point.side].append(point)
    env_ids = list(dict.fromkeys(env_id for env_id, _ in panels))
    sides = sorted({side for _, side in panels})
    figure, axes = plt.subplots(
        len(env_ids),
        len(sides),
        figsize=(max(8.0, 4.6 * len(sides) + 0.6), 3.1 * len(env_ids) + 0.8),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for row, env_id in enumerate(env_ids):
        for column, side in enumerate(sides):
            _panel(axes[row, column], panels[env_id, side], f"{env_id}, {side}x{side}")
        axes[row, 0].set_ylabel("regret, mean over states")
    # All share it; not before everything is drawn, since it ends the search for the upper end.
    axes[0, 0].set_ylim(bottom=-0.1 * _LINEAR)
    for axis in axes[-1]:
        axis.set_xlabel("steps")
    num_seeds = len({point.seed for point in points})
    shown = "one seed" if num_seeds == 1 else f"median and range of {num_seeds} seeds"
    figure.suptitle(f"Greedy policies while they are learned, exactly evaluated: {shown}")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles), frameon=False)
    with atomic_file(path) as file:
        figure.savefig(file, format="png", dpi=110)
    plt.close(figure)


def _panel(axis: Axes, points: Sequence[Point], title: str) -> None:
    regrets: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        regrets[point.algorithm][point.step].append(point.mean_regret)
    for algorithm, at_steps in regrets.items():
        name, colour, dashes = STYLES[algorithm]
        steps = list(at_steps)
        table = np.array(list(at_steps.values()))  # (steps, seeds)
        # Rounding may leave a hair below 0.
        low, middle, high = np.maximum(np.quantile(table, (0.0, 0.5, 1.0), axis=1), 0.0)
        axis.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
        axis.plot(steps, middle, color=colour, linestyle=dashes, linewidth=1.8, label=name)
    axis.axhline(0.0, color="black", linewidth=1.2, label="optimum (planners.solve)")
    axis.set_yscale("symlog", linthresh=_LINEAR)
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.set_title(title, fontsize="medium")
    axis.grid(alpha=0.3)
