"""CartPole in cells: its physics, its cells, and the exact model of the chain of cells.

Gymnasium's CartPole has four real numbers as its state: position, velocity, angle and angular
velocity.  Each is cut into equal bins; a cell is one bin of each, and one more state stands for
having failed.  The chain of cells is the process that puts the cart anywhere in its cell, uniformly
over a lattice of points, before every step:

    P(next cell | cell, action) = share of the points of the cell whose step ends in the next cell

The points decide what the chain knows.  The outermost of k points along an axis is 1/(2k) of a
cell's width from its edge: if no step of 0.02 s goes that far, the chain never changes cell along
that axis, where CartPole does, and its policy is blind to it.  Position is the slow one, the cart
goes .06 m in a step at most, hence the many points along it by default.  `cartpole_model` warns of
axes that stand still.  The chain is a model of CartPole, not CartPole itself, which remembers where
in its cell it is; how well a policy of the chain does there is found by running it.

`aggmaze.DiscretizedCartPole` observes the cell of a CartPole that runs; DiscretizedCartPole-v0 is
the chain.
"""

from typing import TYPE_CHECKING

from aggmaze.cartpole.cells import DEFAULT_BINS, VELOCITY_LIMITS, Cells
from aggmaze.cartpole.chain import DEFAULT_SUB_POINTS, cartpole_model, check_sub_points
from aggmaze.cartpole.physics import ACTION_NAMES, AXES, NUM_ACTIONS, Physics
from aggmaze.cells.problem import Advanced
from aggmaze.later import importing_later

if not TYPE_CHECKING:
    # Where specs that are kept in files look for the wrapper.
    __getattr__, __dir__ = importing_later(
        __name__,
        {"DiscretizedCartPole": "aggmaze.wrappers.discretized_cartpole:DiscretizedCartPole"},
    )

__all__ = [
    "ACTION_NAMES",
    "AXES",
    "DEFAULT_BINS",
    "DEFAULT_SUB_POINTS",
    "NUM_ACTIONS",
    "VELOCITY_LIMITS",
    "Advanced",
    "Cells",
    "Physics",
    "cartpole_model",
    "check_sub_points",
]
