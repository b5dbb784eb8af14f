"""The cuts of a long feature that no bound has refuted yet.

Of a feature with thousands of cuts, a few are solved at a time and the others are refuted by similar support (see
similarity_bounds.py). The list of those left is short after the first round, so that later rounds look at live cuts
only.

Cost: one step for every cut of a gap between chosen cuts that is not refuted whole, later for every live cut.
Symbols: o is where the feature's places begin.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import Bounds, int_1d, long_1d
from policytree.solvers.kernels.compiling import kernel


class LiveCuts(NamedTuple):
    """For every long feature, from its place on: the live cuts, and the bounds of both sides of each."""

    cuts: int_1d
    bounds: Bounds  # left, right: by place in the list; least, most: by code
    count: long_1d  # of every feature; -1: all, and none was solved yet
    dropped: long_1d  # of every feature, the least bound of the cuts that were dropped


class Chosen(NamedTuple):
    """The cuts of a feature that are solved at once."""

    cuts: long_1d
    at: long_1d  # their places in the list of live cuts
    left: long_1d  # what their sides came to
    right: long_1d
    values: long_1d


@kernel(borrows=True)
def choose_first(bounds, o, cuts, limit, chosen):
    """Up to ``limit`` cuts of a feature, spread by mass, ascending; returns how many."""
    least, most = bounds.least, bounds.most
    n = min(cuts, limit)
    total = most[o + cuts] - least[o + cuts]
    t = 0
    for j in range(n):
        end = cuts - n + j  # leaves a cut for each of the later ones
        while t < end:  # mass grows with the cut
            middle = (t + end) // 2
            if (most[o + middle] - least[o + middle]) * (n + 1.0) < total * (j + 1.0):
                t = middle + 1
            else:
                end = middle
        chosen[j] = t
        t += 1
    return n


@kernel(borrows=True)
def bound_between(bounds, o, cuts, chosen, n, j, rules, similar):
    """A bound of all cuts between the chosen ones j - 1 and j: the left side holds that of the first, and so on."""
    least = bounds.least
    if not similar or len(rules.minima) > 0:
        return least[o + cuts] + 2 * rules.penalty
    # A cut t between s and e costs at least left + least[t] - least[s] on the left, and right + least[e] - least[t] on
    # the right: least[t] cancels in the sum, so that one number bounds all of these cuts.
    s = o + chosen.cuts[j - 1] if j > 0 else o
    e = o + chosen.cuts[j] if j < n else o + cuts
    x = chosen.left[j - 1] - least[s] if j > 0 else rules.penalty
    y = chosen.right[j] + least[e] if j < n else least[e] + rules.penalty
    return x + y


@kernel(borrows=True)
def list_live(live, f, o, cuts, chosen, n, rules, cutoff, similar):
    """List the cuts that the values of the n chosen ones do not refute; returns how many they are.

    Cuts between two chosen ones are looked at one by one only if the bound of them all is below the cutoff.
    """
    left, right, least, most = live.bounds
    constrained = len(rules.minima) > 0
    alive = 0
    for j in range(n + 1):
        first = chosen.cuts[j - 1] + 1 if j > 0 else 0
        end = chosen.cuts[j] if j < n else cuts
        if first == end:
            continue
        together = bound_between(live.bounds, o, cuts, chosen, n, j, rules, similar)
        if together >= cutoff:
            live.dropped[f] = min(live.dropped[f], together)
            continue
        for t in range(first, end):
            x = least[o + t] + rules.penalty
            y = least[o + cuts] - least[o + t] + rules.penalty
            if similar:
                if j > 0:
                    s = o + chosen.cuts[j - 1]
                    y = max(y, chosen.right[j - 1] - (most[o + t] - most[s]))
                    if not constrained:
                        x = max(x, chosen.left[j - 1] + least[o + t] - least[s])
                if j < n:
                    s = o + chosen.cuts[j]
                    x = max(x, chosen.left[j] - (most[s] - most[o + t]))
                    if not constrained:
                        y = max(y, chosen.right[j] + least[s] - least[o + t])
            if x + y >= cutoff:
                live.dropped[f] = min(live.dropped[f], x + y)
                continue
            live.cuts[o + alive] = t
            left[o + alive] = x
            right[o + alive] = y
            alive += 1
    return alive


@kernel(borrows=True)
def choose_live(live, f, o, n, cutoff, limit, chosen):
    """Keep of the n listed cuts what no bound refutes, and choose up to ``limit`` of it, spread by mass.

    Returns how many are chosen and how many are live.
    """
    left, right, least, most = live.bounds
    alive = o
    mass = 0
    for j in range(o, o + n):
        t = o + np.int64(live.cuts[j])
        x, y = left[j], right[j]
        live.cuts[alive] = live.cuts[j]
        left[alive] = x
        right[alive] = y
        if x + y < cutoff:
            alive += 1
            w = most[t] - least[t]
            if t > o:
                w -= most[t - 1] - least[t - 1]
            mass += max(w, 1)
        else:
            live.dropped[f] = min(live.dropped[f], x + y)
    n = 0
    seen = 0
    for j in range(o, alive):
        t = o + np.int64(live.cuts[j])
        w = most[t] - least[t]
        if t > o:
            w -= most[t - 1] - least[t - 1]
        seen += max(w, 1)
        if n < limit and (alive - o <= limit or seen * (limit + 1.0) >= mass * (n + 1.0)):
            chosen.cuts[n] = live.cuts[j]
            chosen.at[n] = j
            n += 1
    return n, alive - o


@kernel(borrows=True)
def spread_live(live, o, n, constrained):
    """Similar support from every listed cut to its neighbours in the list, in both directions."""
    left, right, least, most = live.bounds
    for j in range(o + 1, o + n):
        s = o + np.int64(live.cuts[j - 1])
        t = o + np.int64(live.cuts[j])
        right[j] = max(right[j], right[j - 1] - (most[t] - most[s]))
        if not constrained:
            left[j] = max(left[j], left[j - 1] + (least[t] - least[s]))
    for j in range(o + n - 2, o - 1, -1):
        s = o + np.int64(live.cuts[j + 1])
        t = o + np.int64(live.cuts[j])
        left[j] = max(left[j], left[j + 1] - (most[s] - most[t]))
        if not constrained:
            right[j] = max(right[j], right[j + 1] + (least[s] - least[t]))
