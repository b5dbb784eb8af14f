"""Costs of leaves by a reference curve, alone and together.

On the step that begins at the slope w and where the reference has passed the rate S of negatives, a leaf with rate n
whose own slope p / n is above w costs S n while n <= S, and beyond that half of n^2 + S^2, or, where n is above the
limit L of the rates that count, L n - L^2 / 2 + S^2 / 2. Its cost is the integral over w up to its slope. A reference
that is not curved has S n throughout.

Cost: two bisections of the steps for a leaf.
Symbols: see ranking_layout.py.
"""

from policytree.solvers.kernels.base.layout import real_1d, real_2d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.subsets.ranking_layout import NEGATIVE, POSITIVE, LeafCosts


@kernel
def step_below(ends, slope):
    """The step that a slope lies on."""
    first, last = 0, len(ends) - 1
    while first < last:
        middle = (first + last + 1) // 2
        if ends[middle] < slope:
            first = middle
        else:
            last = middle - 1
    return first


@kernel
def step_lower_than(heights, n):
    """The first step lower than n > 0; the last one has the height 0."""
    first, last = 0, len(heights) - 1
    while first < last:
        middle = (first + last) // 2
        if heights[middle] < n:
            last = middle
        else:
            first = middle + 1
    return first


@kernel
def cost_up_to(costs, n, slope):
    """The integral up to a slope for the rate n > 0 of negatives."""
    k = step_below(costs.ends, slope)
    further = slope - costs.ends[k]
    if costs.curved != 0:
        e = step_lower_than(costs.heights, n)
        if e <= k:
            limit = costs.limit
            each = n * n / 2 if n <= limit else limit * n - limit * limit / 2
            squares = costs.squares[k] + costs.heights[k] * costs.heights[k] * further - costs.squares[e]
            return n * costs.areas[e] + each * (slope - costs.ends[e]) + squares / 2
    return n * (costs.areas[k] + costs.heights[k] * further)


@kernel
def cost_of(costs, p, n):
    """Return the cost of a leaf with these shares, without its price."""
    if p <= 0.0 or n <= 0.0:
        return 0.0
    return cost_up_to(costs, n, p / n)


@kernel
def sort_by_share(leaves, m, order):
    """Order leaves by their share of positives among their rates, highest first."""
    for i in range(m):
        order[i] = i
        k = i
        p, n = leaves[i, POSITIVE], leaves[i, NEGATIVE]
        while k > 0 and leaves[order[k - 1], POSITIVE] * n < p * leaves[order[k - 1], NEGATIVE]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = i


@kernel
def cost_together(costs, leaves, m, order):
    """Return the joint cost of leaves, at least the sum of their own costs: rates add up where slopes overlap."""
    sort_by_share(leaves, m, order)
    rate, total, before = 0.0, 0.0, 0.0
    for i in range(m):
        rate += leaves[i, NEGATIVE]
    for k in range(m - 1, -1, -1):
        p, n = leaves[order[k], POSITIVE], leaves[order[k], NEGATIVE]
        if n <= 0.0 or rate <= 0.0:
            break
        slope = p / n
        if slope > before:
            total += cost_up_to(costs, rate, slope)
            if before > 0.0:
                total -= cost_up_to(costs, rate, before)
            before = slope
        rate -= n
    return total


@kernel(takes=(LeafCosts, real_2d, real_1d))
def costs_of_rows(costs, shares, out):
    """Compute the costs of rows, each as a leaf."""
    for i in range(len(out)):
        out[i] = cost_of(costs, shares[i, POSITIVE], shares[i, NEGATIVE])
