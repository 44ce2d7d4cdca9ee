"""Models in the formats of other libraries, read and written.

| format | read | written |
|---|---|---|
| Gymnasium's table ``P`` | `TabularMDP.from_gym_P` | `to_gym_P` |
| MDPtoolbox's ``(P, R)``, and matrices in general | `TabularMDP.from_mdptoolbox`, `from_matrices` | `to_mdptoolbox` |
| QuantEcon's ``DiscreteDP`` | `TabularMDP.from_quantecon` | `to_quantecon` |
| pairs of state and action, as QuantEcon lists them | `TabularMDP.from_state_action_pairs` | |
| a Python function | `TabularMDP.from_function`, `from_batched_function` | |
| files: ours, UMB, DRN, PRISM's, Matlab's, BRIDGE's, a JSON ``P`` | `load_model` | `save_model` (`registry`) |

Each module reads and writes one format.  Readers return `Tables`, the arguments of a `TabularMDP`.
The formats hold rewards, the models costs: the sign changes here and nowhere else.
"""  # noqa: E501 (a row of a table)

from aggmaze.formats.discrete_dp import to_quantecon
from aggmaze.formats.gym_table import GymP, to_gym_P
from aggmaze.formats.matrices import to_mdptoolbox

__all__ = ["GymP", "to_gym_P", "to_mdptoolbox", "to_quantecon"]
