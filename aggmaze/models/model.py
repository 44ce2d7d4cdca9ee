"""The models that there are."""

from aggmaze.models.events import EventMDP
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP

#: A model with a table of what may follow.
TableModel = TabularMDP | MoveMDP
#: A model of any kind.
Model = TableModel | EventMDP


def with_table(model: Model) -> TableModel:
    """Return a model with a table: itself, or the table of an `EventMDP`, if memory holds it."""
    return model.to_tabular() if isinstance(model, EventMDP) else model
