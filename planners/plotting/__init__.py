"""Pictures of models, plans and runs, for papers, notebooks and reports.

One call draws one picture, into a figure of its own or into axes that are given::

    import gymnasium as gym, aggmaze, planners
    from planners.plotting import plot_megastates, save_figure

    env = gym.make("TerrainMaze-v0")
    result = planners.solve(env, gamma=0.95, method="adaptive_aggregation", num_iterations=50)
    result.plot(env)                                   # values, policy, greedy path
    axes = plot_megastates(env, result.labels, result.values)
    save_figure(axes, "megastates.png")

All of these take what was solved first, an environment, a model or a layout, and return
`matplotlib.axes.Axes`, or an array of them where there are several panels (mazes of more than two
dimensions, Taxi).  ``ax=`` says where to draw.  Only notebooks go through pyplot: a figure needs no
display, and `save_figure` writes it.

========================= ============================================================
`plot_values`             values as colours, policy as arrows, a path
`plot_q_values`           what each action costs in all
`plot_policy`             arrows, or colours where there are too many
`plot_path`               one path or several
`plot_megastates`         which states share a mega-state, coloured by its value
`plot_action_gaps`        what the second-best action costs more
`plot_occupancy`          how often a policy is where
`plot_slices`             a plane for each pair of axes through a point
`plot_graph`              a small model as a graph
`plot_convergence`        error, bound and residual of several runs; `ErrorTrace`
`plot_result`             what `SolveResult.plot` draws
========================= ============================================================

`region_borders` gives the borders of mega-states as lines, for pictures of one's own.  Figures
follow ``matplotlib.style.use``, "dark_background" for one.

Colours are viridis, light where costs are low, and Paul Tol's for curves and actions; both are told
apart by every kind of colour vision.  The goal is a star, where a path starts is a disc.
"""

from planners.boards import Board, board_of
from planners.plotting.canvas import check_matplotlib, figure_format, figure_of, save_figure
from planners.plotting.convergence import ErrorTrace, plot_convergence
from planners.plotting.edges import region_borders
from planners.plotting.graph import plot_graph
from planners.plotting.megastates import plot_megastates
from planners.plotting.occupancy import plot_occupancy
from planners.plotting.overview import plot_result
from planners.plotting.policies import plot_path, plot_policy
from planners.plotting.q_values import action_gaps, plot_action_gaps, plot_q_values
from planners.plotting.slices import plot_slices
from planners.plotting.values import plot_plan, plot_values

__all__ = [
    "Board",
    "ErrorTrace",
    "action_gaps",
    "board_of",
    "check_matplotlib",
    "figure_format",
    "figure_of",
    "plot_action_gaps",
    "plot_convergence",
    "plot_graph",
    "plot_megastates",
    "plot_occupancy",
    "plot_path",
    "plot_plan",
    "plot_policy",
    "plot_q_values",
    "plot_result",
    "plot_slices",
    "plot_values",
    "region_borders",
    "save_figure",
]
