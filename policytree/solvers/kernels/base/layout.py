"""Tuples, constants and terms that all kernels share.

A tree is judged by sums over the rows of its leaves. Losses are int64 and relative to action 0: what a row costs more
under action k than under action 0. A leaf of some rows costs the least of 0 and of the sums of its actions, plus the
penalty of a leaf.

    row i                 one column of ``codes`` and of ``planes``
    feature f             one row of ``codes``, with the codes 0 .. bins[f] - 1
    cut t of feature f    rows of code <= t go left, the others right
    place of (f, t)       offset[f] + t, in arrays with one number for every code of every feature

    planes:   losses of action 1, 2, ... | counted rows, a plane for each minimum | charges       | worth | key 1, key 2
              (rules.n_losses planes)    | (len(rules.minima) planes)             | (rules.prices)


The charge of a row is what it pays for a split that it reaches: one for every price that features have, ascending.
Where test costs are shared, a path pays for a test group once, and price 0 is zero: below a split on one feature of a
group, all of them have that price. So the prices of a node's features say all that matters of the path to it.
Row duals, where they are known (rules.beyond >= 0), bound the cost of any tree on a set of rows below: by their sum and
rules.beyond (dual_bound in sums.py). Sums of the two random keys name a set of rows.

Symbols in the bodies of kernels: n rows, p features, B codes of a feature, S = offset[p] places, K sums of a leaf
(losses and counts), J different prices (1 if splits are free).
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import from_dtype, types

from policytree.solvers.kernels.compiling import OneOf

INF = 1 << 60  # value of a leaf that a minimum count forbids; two of them still fit
FEASIBLE = 1 << 59  # values below are real
FORBIDDEN = (1 << 30) - 1  # INF of the int32 tables: two of them fit, and no real leaf makes up for one
LARGEST = (1 << 30) - 2  # bound of sums in int32 tables beside FORBIDDEN; twice that without
UNLIMITED = 1 << 30  # leaves, and the depth of a problem, without a limit
WORD = 63  # test groups whose bits are in a number
NEED_BITS = 5  # of the depth that trees need, in names of results
OPEN = -(1 << 40)  # in trees: OPEN - h is a subtree of at most h leaves and of depth two or less, to be solved
LANES = 8  # numbers in a vector
CUTS_AT_ONCE = 16  # root cuts whose tables stand side by side

# Places in the control array: a flag that stops the search, and switches of what only saves work.
STOP, SIMILAR, CACHE, LOOK_AHEAD, LEAF_COUNTS = 0, 1, 2, 3, 4
# Behind them addresses of kernels that not every search needs, 0 where they are not loaded: the versions of a sweep
# (depth_three/sweep_side.py), what only nodes above depth three call (depth_first/), and the fit of conflict pairs
# (conflicts/). PLACES: how many there are.
SWEEPERS, INTERVALS, MOVE, DEEP_BOUND, FIT_PAIRS, PLACES = 5, 11, 12, 13, 14, 15
# Places in the array of counters, and what they count.
NODES, CUTS, TWO, HITS, SWEEPS = 0, 1, 2, 3, 4
COUNTERS = ("nodes", "cuts", "depth_two_solves", "cache_hits", "sweeps")

i4 = np.int32  # numba computes in int64 without it

# Types of arguments: i8 and f8 are numbers, the others are arrays in C order.
i8, f8 = types.int64, types.float64
if TYPE_CHECKING:  # what Python hands over for them
    codes_2d = np.ndarray
    codes_3d = np.ndarray
    int_1d = np.ndarray
    int_2d = np.ndarray
    int_3d = np.ndarray
    int_4d = np.ndarray
    long_1d = np.ndarray
    long_2d = np.ndarray
    long_3d = np.ndarray
    long_4d = np.ndarray
    real_1d = np.ndarray
    real_2d = np.ndarray
    flags_1d = np.ndarray
else:
    codes_2d = types.uint16[:, ::1]
    codes_3d = types.uint16[:, :, ::1]
    int_1d, int_2d, int_3d = types.int32[::1], types.int32[:, ::1], types.int32[:, :, ::1]
    long_1d, long_2d, long_3d = types.int64[::1], types.int64[:, ::1], types.int64[:, :, ::1]
    int_4d, long_4d = types.int32[:, :, :, ::1], types.int64[:, :, :, ::1]
    real_1d, real_2d = types.float64[::1], types.float64[:, ::1]
    flags_1d = types.boolean[::1]
#: None, or 1 where nodes may have features with a way of their own: two-valued ones, and ones too long for tables; with
#: features of levels, one more for each of them (depth_two/solve.py). The kernels are compiled for None and for numbers
#: apart, without these ways where nothing needs them.
Special = OneOf({"plain": types.none, "special": types.int64})


class Rows(NamedTuple):
    """The rows of a node. Every code of a feature occurs."""

    codes: codes_2d  # (features, rows)
    planes: long_2d  # (planes, rows)
    bins: long_1d  # codes of each feature
    offset: long_1d  # where each feature's places begin, and the end of the last
    groups: long_1d  # which of the prices a split on the feature has; 0 where its test group is paid for
    owners: long_1d  # the test group of the feature, which a path pays for once; -1: every split is charged
    n: i8  # how many rows: arrays may be longer


class Rules(NamedTuple):
    """Limits and prices of a tree."""

    n_losses: i8  # actions less one
    minima: long_1d  # what each counted plane must come to in every leaf
    prices: i8  # how many different prices splits have; 0 if they are free
    penalty: i8  # of a leaf
    beyond: i8  # what any tree costs at least beyond the sum of its rows' duals; -1 if these are not known
    uneven: i8  # whether features of one test group differ in price
    loose: i8  # minima that rows meet so many times are relaxed first (depth_three/sweep_tables.py); 0: none are


class Rounded(NamedTuple):
    """Planes in int32, so that tables of their sums fit the processor's caches.

    A sum s of losses stands for ``s << shift``. Row i makes no leaf look dearer than it is by more than errors[i]: a
    table's value less the errors of its rows is a lower bound.
    """

    planes: int_2d  # losses, counts
    errors: long_1d
    shift: i8
    error: i8  # the sum of all errors: 0 if tables are exact


class Sums(NamedTuple):
    """Cumulated over every feature's codes, at its places."""

    leaves: int_2d  # (K, S): rounded losses, and counts
    charges: long_2d  # (J, S): exact; zero if splits are free


class SecondSplits(NamedTuple):
    """Least loss of the rows on either side of a first cut that are split once more.

    At ``j * S + place`` of the first cut: with second splits by features of price j. Penalties, prices and the
    first split are left out.
    """

    low: int_1d  # of {code <= t}
    high: int_1d  # of {code > t}


class Bounds(NamedTuple):
    """Of every cut of one feature, from its place on: what its sides cost at least, and what rows may come to.

    ``least`` and ``most`` are cumulated: the rows of codes a + 1 .. b cost between least[b] - least[a] and
    most[b] - most[a], whatever tree they are in.
    """

    left: long_1d
    right: long_1d
    least: long_1d
    most: long_1d


class Deep(NamedTuple):
    """Of every cut of one feature: the least cost of its sides with a deep tree (depth_two/similarity_bounds.py)."""

    left: long_1d
    right: long_1d


#: The state of one level of the search stack; see depth_first/search.py.
NODE = np.dtype(
    [
        ("phase", np.int64),  # what to do next
        ("rows", np.int64),
        ("features", np.int64),
        ("depth", np.int64),  # largest depth that is allowed
        ("useful_depth", np.int64),  # largest depth that can pay
        ("leaves", np.int64),  # largest number of leaves
        ("cutoff", np.int64),  # what the node is of use below
        ("need", np.int64),  # least depth: shallower trees are known to cost the cutoff at least; 0: any depth
        ("enough", np.int64),  # a bound that refutes it, though its exact value would say more of other cuts
        ("best", np.int64),  # value of the best tree so far; a lower bound if it has no tree
        ("tree_length", np.int64),
        ("to_try", np.int64),  # features to try: 0 if none is needed; see depth_first/stack.NOT_SEARCHED
        ("next", np.int64),  # how many were tried
        ("feature", np.int64),
        ("cut", np.int64),
        ("paid", np.int64),  # price of the split on this feature
        ("share", np.int64),  # leaves of the cut's left side; 0: no cut begun; see depth_first/stack.BOTH
        ("deep", np.int64),  # the side of the cut that has to be deep: NO_SIDE, LEFT_SIDE, RIGHT_SIDE
        ("relaxed", np.int64),  # whether the cut's sides are only bounded, without minima
        ("right_first", np.int64),  # whether the right side is solved first
        ("first_value", np.int64),  # of the side that was solved first
        ("first_length", np.int64),
        ("split_bound", np.int64),  # of all cuts of the features tried
        ("too_deep_bound", np.int64),  # of trees deeper than the useful depth
        ("key1", np.int64),
        ("key2", np.int64),
    ]
)

#: A set of rows that was solved, or bounded.
SOLVED = np.dtype(
    [
        ("key1", np.int64),
        ("key2", np.int64),
        ("size", np.int64),  # of the trees: see depth_first/cache.size_key
        ("value", np.int64),
        ("start", np.int64),  # of its tree in the pool
        ("length", np.int64),  # 0: the value is a lower bound
    ]
)

#: A bound of depth two for one side of a swept cut.
SIDE = np.dtype([("key1", np.int64), ("key2", np.int64), ("value", np.int64)])

if TYPE_CHECKING:  # what Python hands over for them
    nodes_1d = np.ndarray
    solved_1d = np.ndarray
    sides_1d = np.ndarray
else:
    nodes_1d = types.Array(from_dtype(NODE), 1, "C")
    solved_1d = types.Array(from_dtype(SOLVED), 1, "C")
    sides_1d = types.Array(from_dtype(SIDE), 1, "C")
