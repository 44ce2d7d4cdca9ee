"""
A small model as a graph
========================

A machine that wears out, is repaired or replaced: states are discs, the arrows those of the best
policy.
"""

import matplotlib.pyplot as plt

import aggmaze
import planners
from planners.plotting import plot_graph

# (probability, next state, cost)
machine = {
    ("new", "run"): [(0.8, "new", 0.0), (0.2, "worn", 0.0)],
    ("worn", "run"): [(0.6, "worn", 4.0), (0.4, "broken", 4.0)],
    ("worn", "mend"): [(0.9, "new", 6.0), (0.1, "worn", 6.0)],
    ("broken", "replace"): [(1.0, "new", 20.0)],
}
model = aggmaze.TabularMDP.from_function(
    lambda state, action: machine.get((state, action)),
    states=["new", "worn", "broken"],
    actions=["run", "mend", "replace"],
)
result = planners.solve(model, gamma=0.95)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
plot_graph(model, result.values, result.policy, ax=ax)
