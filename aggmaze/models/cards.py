"""Models as notebooks show them."""

from __future__ import annotations

from typing import Any

import numpy as np

from aggmaze.cards import Figure, bars, card, counted, heat, number, span, spy
from aggmaze.models.events import EventMDP
from aggmaze.models.moves import MoveMDP
from aggmaze.models.tabular import TabularMDP
from aggmaze.names import listed, shown

# Transitions that are looked at for a picture: of more, every so many.
_MOST_DRAWN = 1 << 19
# Distributions of events that have a picture.
_MOST_FIGURES = 3


def model_html(model: Any, source: str = "") -> str:
    """Return the HTML of a model.

    Parameters
    ----------
    model : TabularMDP, MoveMDP or EventMDP
    source : str
        What it is the model of.
    """
    title = f"{source}: {type(model).__name__}" if source else type(model).__name__
    return card(title, model_facts(model), model_figures(model))


def model_facts(model: Any) -> list[tuple[str, str]]:
    """Return what a card tells of a model: names and values.

    Parameters
    ----------
    model : TabularMDP, MoveMDP or EventMDP
    """
    added = f" ({model.num_added_states:,} added)" if model.num_added_states else ""
    facts = [
        ("states", f"{model.num_states:,}{added}{_names(model.state_names)}"),
        ("actions", f"{model.num_actions:,}{_names(model.action_names)}"),
        ("terminal", f"{np.count_nonzero(model.terminal):,}"),
        ("start", _start(model)),
    ]
    if isinstance(model, EventMDP):
        facts += _event_facts(model)
    elif isinstance(model, MoveMDP):
        facts += [
            ("moves", f"{np.count_nonzero(model.available):,} available"),
            ("p", f"{number(model.p)}, that the chosen move happens"),
            ("costs of moves", span(model.move_costs)),
            ("cost of a bump", number(model.bump_cost)),
        ]
    else:
        facts += [
            ("transitions", f"{model.transitions.nnz:,}"),
            ("costs", span(model.costs[model.action_mask])),
        ]
        unavailable = int(np.count_nonzero(~model.action_mask))
        if unavailable:
            facts.append(("unavailable", counted(unavailable, "action") + " of states"))
    return facts


def model_figures(model: Any) -> list[Figure]:
    """Return the pictures of a model.

    Parameters
    ----------
    model : TabularMDP, MoveMDP or EventMDP
    """
    if isinstance(model, EventMDP):
        return _event_figures(model)
    if isinstance(model, MoveMDP):
        entries = model.successors.reshape(-1)
        every = -(-len(entries) // _MOST_DRAWN)
        kept = np.arange(0, len(entries), every)
        kept = kept[model.available.reshape(-1)[kept]]
        places, followers = kept // model.num_actions, entries[kept]
    else:
        places, followers, every = _sampled(model)
    caption = "which states (down) lead to which (across)"
    if every > 1:
        caption += f", one transition in {every:,}"
    return [spy(places.astype(np.int64), followers.astype(np.int64), model.num_states, caption)]


def _sampled(model: TabularMDP) -> tuple[Any, Any, int]:
    """Return states and followers of positive probability, of one transition in so many."""
    matrix = model.transitions
    every = max(1, -(-matrix.nnz // _MOST_DRAWN))
    kept = np.arange(0, matrix.nnz, every)
    rows = np.searchsorted(matrix.indptr, kept, side="right") - 1
    possible = (matrix.data[kept] > 0) & model.action_mask.reshape(-1)[rows]
    return rows[possible] // model.num_actions, matrix.indices[kept[possible]], every


def _names(names: Any) -> str:
    return "" if names is None else f": {listed(names)}"


def _start(model: Any) -> str:
    starts = np.flatnonzero(model.initial)
    if len(starts) == 1:
        state = int(starts[0])
        names = model.state_names
        return f"state {state:,}" if names is None else shown(names[state])
    return f"one of {len(starts):,} states"


def _event_facts(model: EventMDP) -> list[tuple[str, str]]:
    rows, events = model.probabilities.shape
    several = f", {rows:,} distributions" if rows > 1 else ""
    facts = [("events", f"{events:,}{several}")]
    if model.num_posts is not None:
        facts.append(("states after the action", f"{model.num_posts:,}"))
    for place, stage in enumerate(model.stages, start=1):
        facts.append(
            (
                f"stage {place}",
                f"{stage.num_points:,} points, {stage.probabilities.shape[1]:,} events",
            )
        )
    return facts


def _event_figures(model: EventMDP) -> list[Figure]:
    tables = [("events", model.probabilities)]
    tables += [
        (f"events of stage {place}", stage.probabilities)
        for place, stage in enumerate(model.stages, start=1)
    ]
    figures = []
    for name, table in tables[:_MOST_FIGURES]:
        if len(table) == 1:
            figures.append(
                bars(table[0], f"probabilities of the {name}, at most {number(float(table.max()))}")
            )
        else:
            caption = f"probabilities of the {name} (across) in each distribution (down)"
            figures.append(heat(table, caption))
    return figures
