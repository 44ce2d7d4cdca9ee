"""The methods by which a model becomes what other libraries take."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from aggmaze.formats.discrete_dp import to_quantecon
from aggmaze.formats.gym_table import GymP, to_gym_P
from aggmaze.formats.matrices import to_mdptoolbox
from aggmaze.formats.tables import SupportsRows


class Exports:
    """What both classes of models offer to other libraries."""

    def to_gym_P(self: SupportsRows) -> GymP:  # noqa: N802 (P is the attribute's name)
        """Return Gymnasium's table ``P``: see `aggmaze.formats.to_gym_P`."""
        return to_gym_P(self)

    def to_mdptoolbox(self: SupportsRows) -> tuple[list[sp.csr_matrix], NDArray[np.float64]]:
        """Return MDPtoolbox's pair ``(P, R)``: see `aggmaze.formats.to_mdptoolbox`."""
        return to_mdptoolbox(self)

    def to_quantecon(self: SupportsRows, gamma: float) -> Any:
        """Return QuantEcon's ``DiscreteDP``: see `aggmaze.formats.to_quantecon`."""
        return to_quantecon(self, gamma)
