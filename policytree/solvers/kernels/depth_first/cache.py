"""Cache of results for sets of rows, whatever splits led to them.

A set is named by the sums of its rows' two random 64-bit keys, a result by that, the size of the trees, and the test
groups that were paid for. A place holds the latest result that hashed to it; what was there is forgotten, which costs
time, never truth.

Cost: one look for a set; B looks for all sides of a feature's cuts.
Symbols: see base/layout.py.
"""

from typing import NamedTuple

from policytree.solvers.kernels.base.layout import NEED_BITS, UNLIMITED, long_1d, long_2d, sides_1d, solved_1d
from policytree.solvers.kernels.compiling import kernel


class Memory(NamedTuple):
    """Cache of one worker; the number of places is a power of two."""

    solved: solved_1d  # subsets of rows, with
    context: long_2d  # (places, words) the test groups that were paid for, and with their trees in
    pool: long_2d  # (column, cut), and
    used: long_1d  # (1): how much of the pool
    sides: sides_1d  # bounds of sides that were swept


@kernel(inline="always")
def size_key(node):
    """Name of the trees that a node is solved for, by their depths and numbers of leaves."""
    leaves = 0 if node.leaves == UNLIMITED else node.leaves
    return node.need + (node.depth << NEED_BITS) + (leaves << (NEED_BITS + 31))


@kernel(borrows=True)
def place_of(memory, key1, size, context):
    """Where a result is kept."""
    h = key1 ^ (size * 40503)
    for w in range(len(context)):
        h ^= context[w] * 2654435761
    return h & (len(memory.solved) - 1)


@kernel(borrows=True)
def look_up(memory, key1, key2, size, context):
    """Place of what is known of a set of rows, a size of trees and the groups paid for; -1: nothing."""
    h = place_of(memory, key1, size, context)
    known = memory.solved[h]
    if known.size != size or known.key1 != key1 or known.key2 != key2:
        return -1
    for w in range(len(context)):
        if memory.context[h, w] != context[w]:
            return -1
    return h


@kernel(borrows=True)
def remember(memory, node, size, context, tree):
    """Store a node's lower bound (no tree) or its exact value and tree."""
    solved, pool = memory.solved, memory.pool
    length = node.tree_length
    # The pool only grows: the tree of an entry that is overwritten stays in it, unused.
    start = memory.used[0]
    if start + length > len(pool):
        length = 0  # the pool is full: what is exact is a lower bound as well
    for i in range(length):
        pool[start + i, 0] = tree[i, 0]
        pool[start + i, 1] = tree[i, 1]
    memory.used[0] += length
    h = place_of(memory, node.key1, size, context)
    known = solved[h]
    for w in range(len(context)):
        memory.context[h, w] = context[w]
    known.key1 = node.key1
    known.key2 = node.key2
    known.size = size
    known.value = node.best
    known.start = start
    known.length = length


@kernel(borrows=True)
def side_keys(rows, f, keys):
    """Key sums of the rows up to each code of f, keys[0] and keys[1], and of the others, keys[2] and keys[3]."""
    first = rows.planes.shape[0] - 2
    c = rows.codes[f]
    B = rows.bins[f]
    for j in range(2):
        d = rows.planes[first + j]
        k = keys[j]
        for t in range(B):
            k[t] = 0
        for i in range(rows.n):
            k[c[i]] += d[i]
        for t in range(1, B):
            k[t] += k[t - 1]
        for t in range(B):
            keys[2 + j, t] = k[B - 1] - k[t]


@kernel(borrows=True)
def recall_sides(memory, keys, cuts, bounds):
    """Raise the bounds of cuts whose sides were swept before, in another order of splits.

    Sweeps alone remember sides. So every bound here is one of trees of depth two, and holds for the sides of any node
    of depth three: their names need no size of trees.
    """
    sides = memory.sides
    for t in range(cuts):
        for j in range(2):
            known = sides[keys[2 * j, t] & (len(sides) - 1)]
            if known.key1 == keys[2 * j, t] and known.key2 == keys[2 * j + 1, t]:
                if j == 0:
                    bounds.left[t] = max(bounds.left[t], known.value)
                else:
                    bounds.right[t] = max(bounds.right[t], known.value)


@kernel(borrows=True)
def remember_side(memory, key1, key2, value):
    """Store the bound of a side that was swept."""
    known = memory.sides[key1 & (len(memory.sides) - 1)]
    known.key1 = key1
    known.key2 = key2
    known.value = value
