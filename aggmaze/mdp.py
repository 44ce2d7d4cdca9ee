"""`TabularMDP` and what goes with it, for those who import them from here."""

from aggmaze.arrays import readonly
from aggmaze.models.rows import ROW_SUM_TOLERANCE, Rows
from aggmaze.models.tabular import TabularMDP

__all__ = ["ROW_SUM_TOLERANCE", "Rows", "TabularMDP", "readonly"]
