"""Planning on any tabular model: solve, certify, look at the policy, roll it out.

>>> import gymnasium as gym, aggmaze, planners
>>> env = gym.make("TerrainMaze-v0")
>>> result = planners.solve(env, gamma=0.95)
>>> rollouts = planners.rollout(env, result, episodes=10, seed=0)
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from aggmaze import kernel_cache as _kernel_cache  # noqa: F401  (before any kernel)
from aggmaze.env_model import NoModelError
from aggmaze.later import importing_later as _importing_later
from planners.adapters import as_model
from planners.advice import with_regret, with_shaping
from planners.arrival import Arrival, ArrivalProgress, arrival
from planners.checkpoint import Checkpoint
from planners.comparison import ComparedRun, Comparison, compare
from planners.distributed.result import PartResult
from planners.evaluation import evaluate
from planners.normalize import normalized
from planners.objective import AverageCost, Discounted, FiniteHorizon, TotalCost
from planners.occupancy import occupancy
from planners.policies import greedy, q_values
from planners.record import Progress
from planners.result import History, NotSolvedError, SolveResult, Status
from planners.rollout import RolloutProgress, Rollouts, rollout
from planners.solve import METHODS, solve
from planners.stored import open_result

if _TYPE_CHECKING:
    from planners.watching.run import watch
else:
    # What draws takes long to import, and not all who solve want to see it.
    __getattr__, __dir__ = _importing_later(__name__, {"watch": "planners.watching:watch"})

__all__ = [
    "METHODS",
    "Arrival",
    "ArrivalProgress",
    "AverageCost",
    "Checkpoint",
    "ComparedRun",
    "Comparison",
    "Discounted",
    "FiniteHorizon",
    "History",
    "NoModelError",
    "NotSolvedError",
    "PartResult",
    "Progress",
    "RolloutProgress",
    "Rollouts",
    "SolveResult",
    "Status",
    "TotalCost",
    "arrival",
    "as_model",
    "compare",
    "evaluate",
    "greedy",
    "normalized",
    "occupancy",
    "open_result",
    "q_values",
    "rollout",
    "solve",
    "watch",
    "with_regret",
    "with_shaping",
]
