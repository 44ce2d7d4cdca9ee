"""Storm through stormpy: discounted total rewards of a sparse model, its precision really set.

Storm takes no negative rewards: all are raised by the lowest, which adds a constant to values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import stormpy
import stormpy.developer.storage as storage
from outcome import Outcome, Solve
from tables import Tables


def problem(tables: Tables, gamma: float) -> Solve:
    """Solve to an absolute precision.

    For discounted rewards Storm 2.0 takes the same way whatever method, or soundness, is set:
    value iteration until the change promises the precision.
    """
    states, _, costs, rows = tables.pairs()
    rewards = -costs
    lowest = float(rewards.min())
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
    labels.add_label("init")
    labels.add_label_to_state("init", tables.num_states - 1)
    reward = storage._SparseRewardModel_Double(
        optional_state_action_reward_vector=(rewards - lowest).tolist()
    )
    model = storage._SparseMdp_Double(
        storage._SparseModelComponents_Double(
            transition_matrix=builder.build(), state_labeling=labels, reward_models={"r": reward}
        )
    )
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
