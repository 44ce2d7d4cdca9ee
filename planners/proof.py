"""What a stranger needs to check a result, with nothing of this project at hand.

A certificate is an archive of arrays over the states of a model, and a head, in JSON, that says in
words what each of them claims.  ``scripts/check_certificate.py`` reads one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planners.objective import AverageCost, Discounted, FiniteHorizon, Objective, TotalCost

#: The format of certificates.
FORMAT = "aggmaze certificate 1"

_CLAIMS = {
    Discounted: {
        "lower": "lower <= T lower, so that no policy costs less",
        "upper": "T upper <= upper, so that some policy costs no more",
        "policy_upper": "T_policy policy_upper <= policy_upper: the policy costs no more",
    },
    TotalCost: {
        "layers": "0: a policy ends from here with probability 1. k > 0: none does, since each "
        "action may lead to a layer from 1 to k - 1, or leads to layer k only. -1: a dead end, "
        "which no action leaves",
        "lower": "lower <= c + P lower for every action that leads to layers 0 and -1 only, so "
        "that no policy that ends costs less",
        "steps": "P_policy steps <= steps - 1/2, so that the policy ends",
        "upper": "c + P_policy upper <= upper, so that it costs no more",
    },
    FiniteHorizon: {
        "lower": "lower[t] <= T lower[t + 1]: no policy costs less; lower[steps], which is "
        "upper[steps], is what is left to pay in the end",
        "upper": "T_policy[t] upper[t + 1] <= upper[t]: the policy costs no more",
    },
    AverageCost: {
        "gain_lower": "gain_lower <= P gain_lower for every action, and",
        "bias_lower": "gain_lower + bias_lower <= c + P bias_lower for every action: no policy "
        "costs less a step than gain_lower",
        "gain_upper": "P_policy gain_upper <= gain_upper, and",
        "bias_upper": "c + P_policy bias_upper <= gain_upper + bias_upper: the policy costs no "
        "more a step than gain_upper",
    },
}


def certificate_of(
    objective: Objective,
    values: NDArray[np.float64],
    policy: NDArray[np.integer[Any]],
    bounds: tuple[float, float],
    ends: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
    proof: Mapping[str, NDArray[Any]],
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the head and the arrays of a certificate.

    Parameters
    ----------
    objective : Objective
    values, policy : ndarray
        Of a result.
    bounds : tuple of float
        Its ``bound`` and ``policy_bound``.
    ends : tuple of ndarray, optional
        What it has as ``lower`` and ``upper``, if it has them.
    proof : mapping of str to ndarray
        What the solver left for it.

    Raises
    ------
    ValueError
        If the result proves nothing, or has not kept what it takes.
    """
    head: dict[str, Any] = {
        "objective": _NAMES[type(objective)],
        "gamma": objective.gamma,
        "claims": _CLAIMS[type(objective)],
        "rows": "each row of P is divided by its sum; terminal states cost nothing, at value 0",
    }
    arrays: dict[str, NDArray[Any]] = {"policy": policy}
    if not np.isfinite(bounds).all():
        raise ValueError("there is nothing to certify: the bound of the result is infinite")
    if isinstance(objective, Discounted):
        _take("allowance", proof, arrays)
        # Once for who computed the bound, and twice for who checks it.
        width = bounds[0] + 3 * float(arrays.pop("allowance")[0])
        ended = proof["ended"]
        for name, shift in (
            ("lower", -width),
            ("upper", width),
            ("policy_upper", width + bounds[1]),
        ):
            arrays[name] = np.where(ended, 0.0, values + shift)
    elif isinstance(objective, FiniteHorizon):
        if len(values) != len(policy) + 1 or len(policy) < objective.steps:
            raise ValueError(
                "a certificate of a finite horizon takes all values and actions: solve with "
                "keep='all', to the end"
            )
        if objective.stages is not None:
            raise ValueError(
                "a certificate is of one model, and this horizon has a model for each stage"
            )
        _take("errors", proof, arrays)
        # Once for who computed them, and once for who checks.
        errors = 2 * arrays.pop("errors")[:, np.newaxis] * ~proof["ended"]
        arrays["lower"], arrays["upper"] = values - errors, values + errors
        head["steps"] = objective.steps
    elif isinstance(objective, TotalCost):
        _take("steps", proof, arrays)
        _take("layers", proof, arrays)
        assert ends is not None
        arrays["lower"], arrays["upper"] = ends
        head["dead_ends"] = objective.dead_ends
    else:
        for name in _CLAIMS[AverageCost]:
            _take(name, proof, arrays)
    return head, arrays


_NAMES = {
    Discounted: "discounted",
    TotalCost: "total",
    FiniteHorizon: "horizon",
    AverageCost: "average",
}


def _take(name: str, proof: Mapping[str, NDArray[Any]], arrays: dict[str, NDArray[Any]]) -> None:
    if name not in proof:
        raise ValueError(f"there is nothing to certify: the run left no {name}")
    arrays[name] = proof[name]
