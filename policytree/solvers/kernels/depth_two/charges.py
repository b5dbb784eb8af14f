"""Charges of rows for splits as products, so that those of all prices are summed up at once.

Cost: a row adds one number for each feature, or for each two-valued one that is on.
Symbols: see base/layout.py; blocks in binary_pairs.py.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import long_1d
from policytree.solvers.kernels.base.sums import charge_sums
from policytree.solvers.kernels.compiling import kernel


class Units(NamedTuple):
    """Charges of rows as products: price j charges row i ``factors[j] * units[i]``, in whole numbers.

    So it is where a row pays every price once for each person that it stands for. Without units: charges differ
    otherwise.
    """

    units: long_1d
    factors: long_1d


@kernel(separate=True)
def units_of_charges(rows, rules):
    """The charges as products (:class:`Units`), if they are."""
    J, n, first = rules.prices, rows.n, rules.n_losses + len(rules.minima)
    none = Units(np.empty(0, np.int64), np.empty(0, np.int64))
    if J == 0 or n == 0:
        return none
    largest = rows.planes[first + J - 1]  # prices ascend
    divisor = largest[0]
    for i in range(n):
        a, b = divisor, largest[i]
        while b != 0:
            a, b = b, a % b
        divisor = a
    if divisor <= 0:
        return none
    units = np.empty(n, np.int64)
    factors = np.empty(J, np.int64)
    at = 0
    for i in range(n):
        units[i] = largest[i] // divisor
        at = i if units[i] > 0 else at
    for j in range(J):
        plane = rows.planes[first + j]
        factor = plane[at] // units[at]
        factors[j] = factor
        for i in range(n):
            if plane[i] != factor * units[i]:
                return none
    return Units(units, factors)


@kernel(separate=True, borrows=True)
def sum_units(rows, units, block, index, by_code):
    """Add the units of the rows of ``index`` to those of the codes of all features; two-valued ones by their block."""
    in_block = len(block.features) > 0
    for f in range(len(rows.bins)):
        if in_block and rows.bins[f] == 2:
            continue
        c, o = rows.codes[f], rows.offset[f]
        if rows.bins[f] != 2:
            for i in index:
                by_code[o + np.int64(c[i])] += units[i]
            continue
        low = 0
        high = 0
        for i in index:
            low += units[i]
            high += units[i] * np.int64(c[i])
        by_code[o] += low - high
        by_code[o + 1] += high
    if not in_block:
        return
    features, offset = block.features, rows.offset
    total = 0
    for i in index:
        r = np.int64(i)
        total += units[r]
        for s in range(block.start[r], block.start[r + 1]):
            j = np.int64(block.items[s])
            on = offset[features[j, 0]] + features[j, 1]
            by_code[on] += units[r]
            by_code[on + 1 - 2 * features[j, 1]] -= units[r]
    for j in range(len(features)):
        by_code[offset[features[j, 0]] + 1 - features[j, 1]] += total


@kernel(separate=True)
def sum_charges(rows, rules, units, block):
    """Cumulated charges, as :func:`~policytree.solvers.kernels.base.sums.charge_sums` says, by way of units."""
    if len(units.units) == 0:
        return charge_sums(rows, rules)
    sums = np.zeros((rules.prices, rows.offset[len(rows.bins)]), np.int64)
    by_code = np.zeros(sums.shape[1], np.int64)
    sum_units(rows, units.units, block, np.arange(rows.n).astype(np.int32), by_code)
    for f in range(len(rows.bins)):
        s = 0
        for t in range(rows.offset[f], rows.offset[f + 1]):
            s += by_code[t]
            for j in range(rules.prices):
                sums[j, t] = units.factors[j] * s
    return sums
