"""Trees on one numeric feature, and on one beside a 0/1 feature, by dynamic programming."""

import numpy as np


def best_intervals(x, losses, max_leaves=None, penalty=0, min_leaf=1) -> int:
    """The optimum of a problem with one numeric feature ``x`` (n,) and integer losses (n, K), by dynamic programming.

    A tree of depth D on one feature can make every partition of the line into at most ``2 ** D`` intervals, and nothing
    else; so ``max_leaves = 2 ** D``. O(n K max_leaves).
    """
    x, losses = np.asarray(x, dtype=np.float64), np.asarray(losses)
    order = np.argsort(x, kind="stable")
    x, prefix = x[order], np.concatenate([np.zeros((1, losses.shape[1]), losses.dtype), losses[order].cumsum(axis=0)])
    n = len(x)
    big = np.iinfo(np.int64).max // 4
    may_cut = np.concatenate([[True], x[1:] > x[:-1], [True]])  # cuts fall between different values only
    cost = np.where(np.arange(n + 1) == 0, 0, big)  # cost[i]: best for the first i rows with the leaves so far
    answer = big
    for _ in range(max_leaves or n):
        # A leaf (j, i] of action k costs prefix[i, k] - prefix[j, k] + penalty: keep the best start so far.
        start = np.where((may_cut & (cost < big))[:, None], cost[:, None] - prefix, big)
        start = np.minimum.accumulate(start, axis=0)
        shifted = np.full_like(start, big)
        shifted[min_leaf:] = start[: n + 1 - min_leaf]
        cost = np.where(shifted < big // 2, prefix + shifted + penalty, big).min(axis=1)
        cost = np.where(may_cut, cost, big)
        answer = min(answer, int(cost[n]))
    return answer


def best_beside_binary(x, b, losses, penalty: int, min_leaf: int = 1) -> int:
    """The optimum without a depth limit on a numeric feature ``x`` and a 0/1 feature ``b``, integer losses (n, K).

    Splits on x can come first: they part the line, and every part is a leaf or split on b, after which each value of b
    has intervals of its own. O(values^3 K).
    """
    values = np.unique(x)
    n, K = len(values), losses.shape[1]
    at, big = np.searchsorted(values, x), 10**15
    sums, counts = np.zeros((2, n + 1, K), np.int64), np.zeros((2, n + 1), np.int64)
    for k in range(2):
        np.add.at(sums[k], at[b == k] + 1, losses[b == k])
        np.add.at(counts[k], at[b == k] + 1, 1)
    sums, counts = sums.cumsum(axis=1), counts.cumsum(axis=1)

    def parted(cost) -> int:
        """Least cost of cutting (i, j] into parts, for every i, as a table [i][j]."""
        table = [[big] * (n + 1) for _ in range(n + 1)]
        for i in range(n + 1):
            table[i][i] = 0
            for j in range(i + 1, n + 1):
                table[i][j] = min(table[i][m] + cost(m, j) for m in range(i, j))
        return table

    def leaf(of, i, j) -> int:
        count = sum(int(counts[k, j] - counts[k, i]) for k in of)
        return penalty + int(sum(sums[k, j] - sums[k, i] for k in of).min()) if count >= max(min_leaf, 1) else big

    alone = [parted(lambda i, j, k=k: leaf([k], i, j)) for k in range(2)]
    return parted(lambda i, j: min(leaf([0, 1], i, j), alone[0][i][j] + alone[1][i][j]))[0][n]
