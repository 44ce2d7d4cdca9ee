"""Solve two mazes and draw what came out, in a virtual environment that is made on the first run.

``python3 scripts/quickstart.py [--out DIR]`` writes its pictures into DIR, or into the folder
``quickstart`` of the checkout.

What is at the level of the module runs, before the virtual environment is there, on any Python and
without the project's dependencies: import those inside :func:`demonstrate`.
"""

from pathlib import Path

import _venv

GAMMA = 0.95
FOLDER = _venv.ROOT / "quickstart"
MAZES = ("TerrainMaze-v0", "StandardMaze-v0")


def demonstrate(out: Path) -> None:
    """Solve the mazes and write the pictures into the folder ``out``, which exists."""
    import gymnasium as gym
    from PIL import Image

    import planners
    from aggmaze.files import atomic_file
    from planners.arrival import describe_arrival
    from planners.plotting import plot_megastates, plot_plan, save_figure
    from planners.policies import greedy_path

    for env_id in MAZES:
        env = gym.make(env_id, render_mode="rgb_array")
        layout = env.unwrapped.layout
        print(f"\n{env_id}: {layout.grid.num_states} states, gamma {GAMMA}", flush=True)
        model, scale = planners.normalized(env, GAMMA)
        exact = planners.solve(model, gamma=GAMMA, method="value_iteration").require()
        # The paper's parameters: 2 global and 5 aggregated iterations in turn, bins of width 0.5
        # on costs scaled so that the largest cost-to-go is 100.
        aggregated = planners.solve(
            model, gamma=GAMMA, method="adaptive_aggregation", epsilon=0.5, num_iterations=1000
        )
        error = abs(aggregated.values - exact.values).max()

        _, info = env.reset(seed=0)
        path = greedy_path(model, aggregated.policy, info["state"])
        name = env_id.split("-")[0].lower()
        pictures = {
            out / f"{name}-maze.png": "the maze, with the agent at its start",
            out / f"{name}-plan.png": "costs-to-go, policy and greedy path",
            out / f"{name}-megastates.png": "which states share a mega-state at the end",
        }
        frame, plan, megastates = pictures
        with atomic_file(frame) as file:
            Image.fromarray(env.render()).save(file, format="PNG")
        title = f"{env_id}, gamma {GAMMA}: adaptive aggregation"
        save_figure(
            plot_plan(layout, aggregated.values, aggregated.policy, path, title=title), plan
        )
        labels = aggregated.labels
        title = f"{env_id}: {labels.max() + 1} mega-states of {layout.grid.num_states} states"
        save_figure(plot_megastates(layout, labels, title=title), megastates)

        print(f"  costs times {scale:.4g}, so that the largest cost-to-go is 100")
        for result in (exact, aggregated):
            rolled = planners.rollout(env, result, episodes=10, seed=0)
            print(f"  {result.method}: {result.num_updates:,} updates in {result.seconds:.3f} s")
            print(f"    error at most {result.bound:.2g} (certified)", end="")
            print("" if result is exact else f", in fact {error:.2g}")
            observed, promised = rolled.discounted_returns.mean(), rolled.promised
            print(f"    return {observed:.4f} per episode in the maze's own unit", end="")
            print(f", {promised:.4f} promised")
            print(f"    {describe_arrival(planners.arrival(model, result), GAMMA)}")
        for path, what in pictures.items():
            print(f"  {path}: {what}")


def main() -> int:
    """Set up the virtual environment and run the demonstration in it."""
    parser = _venv.Parser("Solve two mazes and draw what came out.")
    parser.add_argument(
        "--out",
        type=Path,
        action="append",
        metavar="DIR",
        help=f"the folder for the pictures (default: {FOLDER})",
    )
    arguments = parser.parse_args()
    folders = arguments.out or [FOLDER]
    if len(folders) > 1:
        parser.error(f"--out is given {len(folders)} times")
    try:
        folders[0].mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot make the folder for the pictures: {error}")
    if not arguments.in_venv:
        return _venv.start_again("plots")
    demonstrate(folders[0])
    return 0


if __name__ == "__main__":
    _venv.run(main)
