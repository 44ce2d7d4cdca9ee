"""Continuous control in cells: boxes of real numbers made finite, and the models of what is left.

A problem whose states are points of a box becomes a finite Markov decision process in one of two
ways.

- *Averaging* (`Cells`): the box is cut into equal cells, and before every step the point is put
  anywhere in its cell, uniformly over a lattice of points:
  ``P(next cell | cell, action)`` is the share of the points of the cell whose step ends in the next
  cell.  The points decide what the model knows: the outermost of k points along an axis is 1/(2k)
  of a cell's width from its edge, and if no step goes that far, the model never changes cell along
  that axis, and is blind to it.
- *Interpolation* (`Corners`): states are the corners of a grid; a step from a corner leads to the
  corners around where it ends, with the weights of multilinear interpolation.  Whatever moves at a
  corner changes state, and the values that a planner finds are a continuous function.

Neither is the problem itself: how well a policy of the model does is found by running it.
"""

from aggmaze.cells.cells import Cells
from aggmaze.cells.chain import CellsProgress, Chain, chain_of
from aggmaze.cells.interpolation import Corners
from aggmaze.cells.problem import Advanced, Problem

__all__ = ["Advanced", "Cells", "CellsProgress", "Chain", "Corners", "Problem", "chain_of"]
