"""Draw MountainCar's cost-to-go: as a surface, and from above with the way of a car.

It solves the model between the corners of a grid, and drives Gymnasium's MountainCar-v0 by its
policy.

    python scripts/docs/mountain_car.py [docs/environments/mountain_car_costs.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib as mpl
import numpy as np

import aggmaze
import planners

mpl.use("Agg")
from matplotlib import pyplot as plt  # after its backend

TARGET = Path(__file__).resolve().parents[2] / "docs/environments/mountain_car_costs.png"
BINS = (180, 150)
START = -0.5
# Lines of the surface along each axis.
NUM_LINES = 60


def main() -> None:
    """Solve, drive and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("target", nargs="?", type=Path, default=TARGET)
    target = parser.parse_args().target
    found = aggmaze.discretize("MountainCar-v0", bins=BINS)
    result = planners.solve(found.model, gamma=1).require()
    way = driven(found, result)
    lines = [
        np.linspace(*ends) for ends in zip(found.cells.low, found.cells.high, BINS, strict=True)
    ]
    position, velocity = np.meshgrid(*lines, indexing="ij")
    costs = result.values[: found.cells.num_cells].reshape(BINS)

    figure = plt.figure(figsize=(10, 4.2), layout="constrained")
    surface: Any = figure.add_subplot(1, 2, 1, projection="3d")
    surface.plot_surface(
        position, velocity, costs, cmap="viridis_r", rcount=NUM_LINES, ccount=NUM_LINES
    )
    surface.set(xlabel="position", ylabel="velocity", zlabel="steps to go")
    surface.view_init(elev=40, azim=-60)
    surface.set_box_aspect(None, zoom=0.85)
    above = figure.add_subplot(1, 2, 2)
    image = above.pcolormesh(*lines, costs.T, cmap="viridis_r", shading="nearest")
    figure.colorbar(image, label="steps to go")
    above.plot(way[:, 0], way[:, 1], color="white", linewidth=1.2)
    above.plot(*way[0], "o", color="white", markersize=5)
    above.axvline(0.5, color="black", linewidth=1, linestyle="--")
    above.set(xlabel="position", ylabel="velocity")
    above.set_title(f"MountainCar-v0 from {START} in {len(way) - 1} steps", fontsize=10)
    figure.savefig(target, dpi=75)
    print(f"wrote {target}, {target.stat().st_size / 1000:.0f} kB")


def driven(found: aggmaze.Discretization, result: planners.SolveResult) -> Any:
    """Return the positions and velocities of a car that is driven by the policy, shape (N, 2)."""
    env: Any = gym.make("MountainCar-v0").unwrapped
    env.reset(seed=0)
    env.state = np.array([START, 0.0])
    act = found.policy(result.policy)
    way, terminated = [np.array(env.state)], False
    while not terminated:
        shown = np.array(env.state, dtype=np.float32)
        _, _, terminated, _, _ = env.step(act(shown))
        way.append(np.array(env.state))
    return np.array(way)


if __name__ == "__main__":
    main()
