"""The models that there are."""

from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP

#: A model of either kind.
Model = TabularMDP | MoveMDP
