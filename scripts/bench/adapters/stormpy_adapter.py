"""Storm through stormpy: rewards of a sparse model, its precision really set.

Storm takes no negative rewards: discounted ones are raised by the lowest, which adds a constant to
values.  Without a discount costs are minimised, and a prize for ending is a probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import stormpy
import stormpy.developer.storage as storage
from outcome import Outcome, Solve
from tables import Tables


def _sparse(tables: Tables, shift: float, sign: float, marked: dict[str, Any]) -> Any:
    """Return Storm's model, of which a step earns ``sign * cost + shift``, with labelled states."""
    states, _, costs, rows = tables.pairs()
    builder = storage._SparseMatrixBuilder_Double(
        rows=len(states),
        columns=tables.num_states,
        entries=rows.nnz,
        force_dimensions=True,
        has_custom_row_grouping=True,
        row_groups=tables.num_states,
    )
    builder.add_next_values(
        np.repeat(np.arange(len(states)), np.diff(rows.indptr)).tolist(),
        rows.indices.tolist(),
        rows.data.tolist(),
        np.searchsorted(states, np.arange(tables.num_states)).tolist(),
    )
    labels = storage.StateLabeling(tables.num_states)
    for label, places in ({"init": [tables.num_states - 1]} | marked).items():
        labels.add_label(label)
        for state in places:
            labels.add_label_to_state(label, int(state))
    reward = storage._SparseRewardModel_Double(
        optional_state_action_reward_vector=(sign * costs + shift).tolist()
    )
    return storage._SparseMdp_Double(
        storage._SparseModelComponents_Double(
            transition_matrix=builder.build(), state_labeling=labels, reward_models={"r": reward}
        )
    )


def problem(tables: Tables, gamma: float) -> Solve:
    """Solve to an absolute precision.

    For discounted rewards Storm 2.0 takes the same way whatever method, or soundness, is set:
    value iteration until the change promises the precision.
    """
    lowest = float((-tables.costs[tables.available]).min())
    model = _sparse(tables, -lowest, -1.0, {})
    discounted = stormpy.parse_properties(f'R{{"r"}}max=? [Cdiscount={gamma!r}]')[0]
    constant = lowest / (1 - gamma)

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        environment = stormpy.Environment()
        min_max = environment.solver().min_max()
        min_max.precision = stormpy.Rational(f"{epsilon:.17e}")
        min_max.relative_termination_criterion = False
        min_max.maximal_number_of_iterations = 10**7
        result = stormpy.model_checking(
            model, discounted, only_initial_states=False, environment=environment
        )
        return Outcome(lambda: [-result.get_value(s) - constant for s in range(model.nr_states)])

    return solve


def total(tables: Tables, objective: dict[str, Any]) -> Solve:
    """Solve for total costs until a terminal state, or where ``prize`` names one for reaching it.

    Costs must not be negative; with a prize nothing else costs anything, and it is worth 1.
    """
    prize = objective.get("prize")
    if prize is None:
        ends = np.flatnonzero(tables.terminal)
        return _undiscounted(tables, 'R{"r"}min=? [F "end"]', 1.0, {"end": ends})
    return _undiscounted(tables, 'Pmax=? [F "end"]', -1.0, {"end": [prize]})


def average(tables: Tables, objective: dict[str, Any]) -> Solve:
    """Solve for the mean cost of a step."""
    return _undiscounted(tables, 'R{"r"}min=? [LRA]', 1.0, {})


def horizon(tables: Tables, objective: dict[str, Any]) -> Solve:
    """Solve a finite horizon; what it returns is of the first step only."""
    steps = objective["steps"]
    return _undiscounted(tables, f'R{{"r"}}min=? [C<={steps}]', 1.0, {}, steps)


def _undiscounted(
    tables: Tables, formula: str, sign: float, marked: dict[str, Any], constants: int = 1
) -> Solve:
    """Solve to a precision relative to each value, which is how Storm's own default is meant."""
    lowest = 0.0 if "F " in formula else min(float(tables.costs[tables.available].min()), 0.0)
    model = _sparse(tables, -lowest if sign > 0 else 1.0, sign, marked)
    asked = stormpy.parse_properties(formula)[0]
    restored = constants * lowest
    prizes = [] if sign > 0 else np.flatnonzero(tables.terminal)

    def solve(variant: dict[str, Any], epsilon: float, tol: float) -> Outcome:
        environment = stormpy.Environment()
        environment.solver().force_soundness = bool(variant.get("sound"))
        min_max = environment.solver().min_max()
        min_max.precision = stormpy.Rational(f"{tol:.17e}")
        min_max.relative_termination_criterion = True
        if "method" in variant:
            min_max.method = getattr(type(min_max.method), variant["method"])
        result = stormpy.model_checking(
            model, asked, only_initial_states=False, environment=environment
        )

        def values() -> Any:
            found = sign * np.array(result.get_value_vector()) + restored
            found[prizes] = 0.0  # there the prize is paid already
            return found

        return Outcome(values, bound=_bound_of(result))

    return solve


def _bound_of(result: Any) -> float | None:
    """Return how far apart the bounds of a result lie, None where it has none."""
    try:
        lower = np.array(result.get_lower_bound_vector())
        upper = np.array(result.get_upper_bound_vector())
    except RuntimeError:  # also where it says to have them, but those of some states are unknown
        return None
    finite = np.isfinite(upper)
    return float((upper[finite] - lower[finite]).max(initial=0.0))


OBJECTIVES = {"total": total, "average": average, "horizon": horizon}
