"""Check what a certificate claims of a model: numpy only, nothing of this project.

``check_certificate.py model.npz certificate.npz``, of what ``save_model`` wrote, ends with 0 if all
is proved.  Each claim is that x >= 0, or x <= 0, in c(s,a) + gamma sum_s' P(s'|s,a) W(s') - V(s) -
g(s), rows of P divided by their sums, safe from rounding; in fractions where the sign is open.
"""

import json
import sys
from fractions import Fraction

import numpy as np


class Model:
    """A row for each available action; the outcomes of each begin where ``starts`` says."""

    def __init__(self, head, arrays):
        self.chance, self.added = head.get("p", 1.0), head.get("num_added_states", 0)
        if head["kind"] == "MoveMDP":  # chance: that the chosen move happens, and not another
            costs, to = arrays["move_costs"], arrays["successors"].ravel()
            p, counts = np.ones(costs.size), np.ones(costs.size, int)
            is_open, self.ends = np.isfinite(costs), ~np.isfinite(costs).any(axis=1)
        else:
            p, to, counts = arrays["data"], arrays["indices"], np.diff(arrays["indptr"])
            costs, self.ends = arrays["costs"], arrays["terminal"]
            is_open = arrays["action_mask"] & ~self.ends[:, None]
        rows, kept_rows = np.repeat(np.arange(costs.size), counts), np.flatnonzero(is_open)
        kept = (p > 0) & is_open.ravel()[rows]
        (self.size, width), self.p, self.to = costs.shape, p[kept], to[kept]
        self.here, self.costs = rows[kept] // width, costs.ravel()[kept_rows]
        self.states, self.actions = np.divmod(kept_rows, width)
        self.counts = np.bincount(rows[kept], minlength=costs.size)[kept_rows]
        self.starts = np.cumsum(self.counts) - self.counts
        self._sums = lambda outcomes: np.add.reduceat(outcomes, self.starts)  # of each row
        self._of_state = lambda rows: np.bincount(self.states, rows)[self.states]  # their sum
        _need((self.counts > 0) & (p >= 0).all() & (to >= 0).all(), "the model is one")
        self.p[self.starts[self.counts == 1]] = 1.0
        self.may = lambda o: (self._of_state if self.chance < 1 else np.asarray)(self._sums(o)) > 0

    def check(self, claim, rows, sign, V, W=None, gamma=1.0, gain=0.0, pays=1, ends=0.0):
        """Go on if sign x >= 0 in the rows, or one of each state; sign V <= sign ends in ends."""
        s, W, gain = self.states, V if W is None else W, gain + 0 * V
        _need(np.isfinite(V + W + gain) & (~self.ends | (sign * V <= sign * ends)), f"{claim} ends")
        here, after, total = W[self.here], W[self.to], self._sums(self.p)
        step = after - here
        mean = gamma * (self._sums(self.p * step) / total)
        size = gamma * (self._sums(self.p * abs(step)) / total)
        exact = ((here + step == after) & (after - step == here))[self.starts] & (gamma == 1)
        x = self.costs * pays + mean
        error = np.where(exact & (self.counts == 1), 0, 2 * self.counts + 6) * size
        error += abs(x) * (mean != 0)
        if self.chance < 1:  # the other moves share the rest; a sole move always happens
            n = self._of_state(np.ones(len(s)))
            slip = np.where(n > 1, (1 - self.chance) / np.maximum(n - 1, 1), 0.0)
            lead = np.where(n > 1, self.chance - slip, 1.0)
            error = abs(lead) * error + slip * self._of_state(error)
            error += (2 * n + 9) * (abs(lead * x) + slip * self._of_state(abs(x))) * (n > 1)
            x = lead * x + slip * self._of_state(x)
        drift = V[s] - gamma * W[s]
        error += abs(drift) + (gamma != 1) * abs(gamma * W[s]) + abs(x - drift) * (drift != 0)
        x = x - drift - gain[s]
        error += abs(x) * (gain[s] != 0)
        least = min(abs(one[one != 0]).min(initial=1) for one in (W, self.costs, self.p))
        lost = 0 if least * (gamma or 1) * self.chance > 1e-60 else 2.0**-900  # in products near 0
        if rows is None:  # the best of each state
            rows = np.bincount(np.lexsort((-sign * x, s))[np.unique(s, True)[1]], None, len(s)) > 0
        for row in np.flatnonzero(rows & ~(sign * x >= 1.01 * 2**-53 * error + lost)):
            if sign * self._exactly(row, V, W, gamma, gain, pays) < 0:
                raise ArithmeticError(f"{claim}: not in state {s[row]}, action {self.actions[row]}")

    def _exactly(self, row, V, W, gamma, gain, pays):
        state, chance, x = self.states[row], Fraction(self.chance), 0
        rows = np.flatnonzero(self.states == state) if chance < 1 else [row]
        for i in rows:
            places = range(self.starts[i], self.starts[i] + self.counts[i])
            outcomes = [(Fraction(self.p[k]), Fraction(W[self.to[k]])) for k in places]
            mean = sum(p * v for p, v in outcomes) / sum(p for p, _ in outcomes) * Fraction(gamma)
            share = chance if i == row else (1 - chance) / (len(rows) - 1)
            x += (share if len(rows) > 1 else 1) * (Fraction(self.costs[i] * pays) + mean)
        return x - Fraction(V[state]) - Fraction(gain[state])


def _need(holds, claim):  # in every state; what is no number holds nothing
    if not np.all(holds):
        raise ArithmeticError(f"{claim}: not in state {np.argmin(holds)}")


def prove(model, head, arrays):
    """Go on if all that the certificate claims is true."""
    kind, gamma, steps = head["objective"], head["gamma"], head.get("steps", 0)
    s, size = model.states, model.size
    for name, array in arrays.items():
        right = array.dtype.kind == "i" if name in ("policy", "layers") else array.dtype == "f8"
        shape = [steps + (name != "policy")] * (kind == "horizon") + [size - model.added]
        _need(np.array(right and list(array.shape) == shape), f"{name} has an entry")
        arrays[name] = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, model.added)])

    def sides(policy, where):
        rows = where[s] & (model.actions == policy[s])
        _need(np.bincount(s[rows], minlength=size) == where, "the policy's actions are available")
        return ("lower", where[s], 1), ("upper", rows, -1)

    if kind == "discounted" and 0 <= gamma < 1:
        (_, every, _), (_, mine, _) = sides(arrays["policy"], ~model.ends)
        for name, rows in ("lower", every), ("upper", None), ("policy_upper", mine):
            model.check(name, rows, 1 if name == "lower" else -1, arrays[name], None, gamma)
    elif kind == "horizon" and 0 <= gamma <= 1:
        left = arrays["lower"][-1]
        _need((left == arrays["upper"][-1]) & ~(model.ends & (left != 0)), "the end of the horizon")
        for t, policy in enumerate(arrays["policy"]):
            for name, rows, sign in sides(policy, ~model.ends):
                model.check(f"{name}[{t}]", rows, sign, *arrays[name][t : t + 2], gamma)
    elif kind == "average" and gamma == 1:
        for name, rows, sign in sides(arrays["policy"], ~model.ends):
            gain, bias = arrays[f"gain_{name}"], arrays[f"bias_{name}"]
            model.check(f"gain_{name}", rows, sign, gain, pays=0)
            model.check(f"bias_{name}", rows, sign, bias, gain=gain, ends=bias)
    else:
        _need(np.array(kind == "total" and gamma == 1), f"{kind} is known, with gamma {gamma}")
        layers, ends, here, to = arrays["layers"], model.ends, model.here, model.to
        lost, inside, dead, cost = layers > 0, (layers == 0) & ~ends, layers < 0, head["dead_ends"]
        order, arrives, found = np.argsort(to), ends | dead | lost, np.flatnonzero(ends).tolist()
        before = np.split(here[order], np.searchsorted(to[order], np.arange(1, size)))
        for state in found:  # which grows by those from which one can get to an end
            found += before[state][~arrives[before[state]]].tolist()
            arrives[before[state]] = True
        drops, leaves = model.may(lost[to] & (layers[to] < layers[here])), model.may(lost[to])
        moves = model.may(layers[to] != layers[here])
        _, (_, rows, _) = sides(arrays["policy"], inside)
        bad = np.bincount(s[np.where(inside[s], rows & leaves, moves & ~drops)], minlength=size) > 0
        bad |= (ends & (layers != 0)) | ~arrives | (lost & (arrays["upper"] != np.inf))
        _need(~bad & ~(dead if cost == "infinite" else lost), "layers")
        model.ends = ~inside
        model.check("steps", rows, -1, np.where(inside, arrays["steps"], 0.0), gain=-0.5, pays=0)
        known = np.where(dead, np.nan if cost == "infinite" else cost, 0.0)
        for name, mine, sign in ("lower", inside[s] & ~leaves, 1), ("upper", rows, -1):
            model.check(name, mine, sign, np.where(lost, 0.0, arrays[name]), ends=known)


if __name__ == "__main__":
    try:
        files = [dict(np.load(path)) for path in sys.argv[1:3]]
        heads = [json.loads(str(file.pop("header"))) for file in files]
        with np.errstate(all="ignore"):
            prove(Model(heads[0], files[0]), heads[1], files[1])
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError) as error:
        sys.exit(f"not proved: {type(error).__name__}: {error}")
    print("proved:", ", ".join(f"{n} {heads[1][n]}" for n in sorted(heads[1]) if n != "claims"))
