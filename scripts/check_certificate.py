"""Check a certificate: ``check_certificate.py MODEL.npz CERTIFICATE.npz``, with numpy alone.

Its header says what arrays claim: inequalities between 0 and ``c + gamma sum_s' p(s') (W(s') -
W(s)) + multiples of arrays at s``, rows p divided by their sums, safe from rounding or exactly so.
"""

import json
import sys
from fractions import Fraction as Exact

import numpy as np

UNIT, TINY, MOST_EXACT = 2.0**-53, 1e-300, 100_000


def need(holds, words):
    """Fail with these words, naming where, unless it holds everywhere."""
    if not np.all(holds):
        raise ValueError(f"{words} at {np.argwhere(~np.atleast_1d(holds))[0].tolist()}")


def read(path):
    """Return the header and the arrays of a file."""
    arrays = dict(np.load(path, allow_pickle=False))
    return json.loads(str(arrays.pop("header"))), arrays


class Model:
    """S * A rows of outcomes, which cost something each, besides what the row costs."""

    def __init__(self, head, a):
        if head["kind"] == "MoveMDP":  # the chosen move with probability p, or one of the others
            there, wide = np.isfinite(a["move_costs"]), head["p"] < 1
            (num, moves), count = there.shape, there.sum(axis=1)[:, None, None]
            slip = np.where(count > 1, (1 - head["p"]) / np.maximum(count - 1, 1), 0.0)
            p = np.where(np.eye(moves) == 1, np.where(count > 1, head["p"], 1.0), slip)
            kept = np.ones((moves, moves), dtype=bool) if wide else np.eye(moves, dtype=bool)
            every = [np.where(there, a[n], 0) for n in ("move_costs", "successors")]
            each = [np.broadcast_to(v[:, None, :], p.shape)[:, kept].reshape(-1) for v in every]
            self.p, (self.paid, self.to) = (p * there[:, None, :])[:, kept].reshape(-1), each
            self.starts = np.arange(num * moves + 1) * (moves if wide else 1)
            self.cost, self.mask, self.end = np.zeros(num * moves), there, count[:, 0, 0] == 0
        else:
            self.p, self.to, self.starts = a["data"], a["indices"], a["indptr"].astype(np.int64)
            self.cost, self.mask, self.end = a["costs"].reshape(-1), a["action_mask"], a["terminal"]
            self.paid = np.zeros(len(self.p))
        self.shape, self.mask = self.mask.shape, (self.mask & ~self.end[:, None]).reshape(-1)
        self.row = np.repeat(np.arange(len(self.cost)), np.diff(self.starts))
        self.state = np.repeat(np.arange(self.shape[0]), self.shape[1])
        self.sum = lambda of_outcomes: np.bincount(self.row, of_outcomes, len(self.cost))
        self.leads = lambda flags: self.sum(flags[self.to] & (self.p > 0)) > 0  # somewhere flagged
        sound = (self.sum(self.p) > 0.99) & (self.sum(self.p < 0) == 0)
        need(sound | ~self.mask, "no probabilities, row")

    def verify(self, words, sign, rows, W, rest=(), gamma=1.0, costs=1, some=False):
        """Need sign * x >= 0 in the marked rows, or with ``some`` in one of each state's."""
        with np.errstate(all="ignore"):
            step = np.where(self.p > 0, W[self.to] - W[self.state[self.row]], 0.0)
            total = np.maximum(self.sum(self.p), TINY)
            x = self.sum(self.p * (costs * self.paid + gamma * step)) / total
            size = self.sum(self.p * (costs * abs(self.paid) + abs(step))) / total
            terms = [costs * self.cost, *(float(c) * v[self.state] for c, v in rest)]
            error = (2 * np.diff(self.starts) + 16) * size + 8 * sum(abs(t) for t in (x, *terms))
            x, error = x + sum(terms), 1.01 * UNIT * error + TINY * (error > 0)
            whole = [(v % 1 == 0).all() for v in (self.p, self.paid, self.cost, W)]
            if gamma == 1 and not rest and all(whole):  # nothing is rounded
                error[size + abs(self.cost) + abs(W).max() < 2**50] = 0.0
            good, doubt = sign * x - error >= 0, sign * x + error >= 0
        doubtful = np.flatnonzero(rows & doubt & ~good)
        need(len(doubtful) <= MOST_EXACT, f"{words}: {len(doubtful)} rows are too near to tell")
        for row in doubtful:
            s, entries = self.state[row], range(self.starts[row], self.starts[row + 1])
            shares = {e: Exact(self.p[e]) for e in entries if self.p[e]}
            steps = {e: Exact(gamma) * (Exact(W[self.to[e]]) - Exact(W[s])) for e in shares}
            mean = sum(p * (costs * Exact(self.paid[e]) + steps[e]) for e, p in shares.items())
            more = costs * Exact(self.cost[row]) + sum(Exact(c) * Exact(v[s]) for c, v in rest)
            good[row] = sign * (mean / sum(shares.values()) + more) >= 0
        if some:
            good = np.repeat((good & rows).reshape(self.shape).any(axis=1), self.shape[1])
        need((good | ~rows).reshape(self.shape), words)


def check(model, head, a):
    """Check a certificate; return by how much its bounds differ."""
    (num, actions), end, kind = model.shape, model.end, head["objective"]
    gamma, every = float(head["gamma"]), model.mask

    def full(v):  # states behind those that a result lists are ends
        need(v.ndim == 1 and len(v) <= num and end[len(v) :].all(), "an array has another length")
        return np.concatenate([v, np.zeros(num - len(v), dtype=v.dtype)])

    def rows_of(policy, where):
        policy, rows = full(policy), np.zeros(num * actions, dtype=bool)
        need((policy >= 0) & (policy < actions) | ~where, "the policy has no such action")
        rows[(np.arange(num) * actions + policy)[where]] = True
        need(every | ~rows, "the policy takes what is unavailable, row")
        return rows

    if kind == "average":
        for side, sign, rows in (("lower", 1, every), ("upper", -1, rows_of(a["policy"], ~end))):
            gain, bias = full(a[f"gain_{side}"]), full(a[f"bias_{side}"])
            need(np.isfinite(gain + bias) & ((sign * gain <= 0) | ~end), "no such gain")
            model.verify(f"gain_{side} and P gain_{side}", sign, rows, gain, costs=0)
            model.verify(f"gain_{side} + bias and c + P bias", sign, rows, bias, [(-1, gain)])
        return np.max(a["gain_upper"] - a["gain_lower"])
    low, high = np.atleast_2d(a["lower"]), np.atleast_2d(a["upper"])
    need(all((full(v)[end] == 0).all() for v in (*low, *high)), "an end has another value than 0")
    if kind == "discounted":
        need(0 <= gamma < 1 and (full(a["policy_upper"])[end] == 0).all(), "gamma, or an end")
        mine = ("policy_upper", -1, rows_of(a["policy"], ~end))
        for name, sign, rows in (("lower", 1, every), ("upper", -1, every), mine):
            W, words, some = full(a[name]), f"{name} and its backup", name == "upper"
            model.verify(words, sign, rows, W, [(Exact(gamma) - 1, W)], gamma, some=some)
    elif kind == "horizon":
        need(0 <= gamma <= 1 and len(a["policy"]) == head["steps"] == len(low) - 1, "no horizon")
        need(low[-1] == high[-1], "two ends")
        for t, policy in enumerate(a["policy"]):
            for V, sign, rows in ((low, 1, every), (high, -1, rows_of(policy, ~end))):
                rest = [(gamma, full(V[t + 1])), (-1, full(V[t]))]
                model.verify(f"a backup of step {t}", sign, rows, full(V[t + 1]), rest, gamma)
    else:
        need(kind == "total", f"no objective {kind!r}")
        low, high, layer, steps = (full(v) for v in (low[0], high[0], a["layers"], a["steps"]))
        lost, dead, cost = layer > 0, layer == -1, head["dead_ends"]
        need((layer == 0) | (~end & (layer >= -1)), "no such layer, or of an end,")
        need(~dead | (cost != "infinite" and (low == cost) & (high == cost)), "a dead end costs")
        need(~(every & dead[model.state] & model.leads(~dead)), "a dead end is left, row")
        there, here = layer[model.to], layer[model.state]
        first = np.full(len(here), num + 1)  # the least layer, above 0, that each row may lead to
        np.minimum.at(first, model.row, np.where((there > 0) & (model.p > 0), there, num + 1))
        stays = model.sum((there != here[model.row]) & (model.p > 0)) == 0
        need(~every | (here <= 0) | (first < here) | stays, "a state may not be lost, row")
        finite = np.isfinite(low) & np.isfinite(high) & np.isfinite(steps) & (steps >= 0)
        need(np.where(lost, np.isposinf(low) & np.isposinf(high), finite), "no such value")
        low, high, steps = (np.where(lost, 0.0, v) for v in (low, high, steps))
        inside, usable, half = ~(lost | dead | end), every & ~model.leads(lost), np.full(num, 0.5)
        need(usable | ~(rows := rows_of(a["policy"], inside)), "the policy may get lost, row")
        model.verify("lower <= c + P lower", 1, usable & inside[model.state], low)
        model.verify("P_policy steps <= steps - 1/2", -1, rows, steps, [(1, half)], costs=0)
        model.verify("c + P_policy upper <= upper", -1, rows, high)
    return np.max(high - low)


if __name__ == "__main__":
    try:
        width = check(Model(*read(sys.argv[1])), *read(sys.argv[2]))
        print(f"proved: the optimum, and what the policy costs, lie within {width:.3g}")
    except (OSError, KeyError, ValueError, TypeError, IndexError, OverflowError) as problem:
        sys.exit(f"not proved: {type(problem).__name__}: {problem}")
