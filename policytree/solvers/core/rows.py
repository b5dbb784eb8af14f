"""The merged rows of a search's root, and trees that need no bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from policytree.exceptions import InputError
from policytree.problem.types import GATES, Problem, SearchLimits, SizeGates
from policytree.solvers.core.columns import rows_of_splits, short_codes
from policytree.solvers.core.fixed_point import FixedPoint
from policytree.solvers.core.merge import merge_equal_rows
from policytree.solvers.core.shared_costs import are_uneven, shared_groups
from policytree.solvers.kernels.base.addresses import address_of
from policytree.solvers.kernels.base.child_rows import Packed, pack_rows
from policytree.solvers.kernels.base.layout import (
    CACHE,
    DEEP_BOUND,
    FIT_PAIRS,
    INF,
    INTERVALS,
    LEAF_COUNTS,
    LOOK_AHEAD,
    MOVE,
    OPEN,
    PLACES,
    SIMILAR,
    SWEEPERS,
    Rows,
    Rules,
)
from policytree.solvers.kernels.base.sums import best_one_split, node_sums
from policytree.solvers.kernels.conflicts.fit import fit_numbers
from policytree.solvers.kernels.depth_first.inherited_bounds import inherited_deep_bound, move_inner
from policytree.solvers.kernels.depth_first.node_bounds import take_intervals
from policytree.solvers.kernels.depth_three.sweep_side import SWEEPING_KERNELS
from policytree.solvers.kernels.depth_three.sweep_tables import relaxed_rules
from policytree.solvers.kernels.depth_two.long_pairs import long_pairs, long_parts
from policytree.solvers.kernels.depth_two.solve import FirstSplits, Found, short_pairs

#: Kernels that are called by address, and their places in the control array.
CALLED_BY_ADDRESS = {
    INTERVALS: take_intervals, MOVE: move_inner, DEEP_BOUND: inherited_deep_bound, FIT_PAIRS: fit_numbers,
    **{SWEEPERS + i: kernel for i, kernel in enumerate(SWEEPING_KERNELS)},
}  # fmt: skip

Splits = list[tuple[int, int]]  # (column, cut) in preorder, (-1, 0) for a leaf


@dataclass
class Node:
    """Some rows and the rules of the tree they are for, as every kernel takes them.

    ``special``: 1 if features may be two-valued or long, None if tables are all that is needed; with columns of levels,
    which stand last, one more for each of them (kernels/depth_two/solve.py). ``in_parts``: whether columns are parts of
    one feature.
    """

    rows: Rows
    rules: Rules
    special: int | None
    in_parts: bool = False

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return self.rows.n

    @property
    def penalty(self) -> int:
        """Price of a leaf."""
        return self.rules.penalty

    @property
    def codes(self) -> np.ndarray:
        """Codes of every column, (columns, rows)."""
        return self.rows.codes

    @property
    def bins(self) -> np.ndarray:
        """Number of codes of every column."""
        return self.rows.bins

    @property
    def priced(self) -> bool:
        """Whether splits cost something."""
        return bool(self.rules.prices)

    @property
    def shares_costs(self) -> bool:
        """Whether a path pays for some test group once."""
        return bool((self.rows.owners >= 0).any())

    @property
    def losses(self) -> np.ndarray:
        """Planes of losses, (actions less one, rows)."""
        return self.rows.planes[: self.rules.n_losses]

    @property
    def all_losses(self) -> np.ndarray:
        """Losses of all actions relative to the first one, (actions, rows): a copy."""
        return np.vstack([np.zeros((1, self.n_rows), np.int64), self.losses])

    @property
    def least_losses(self) -> np.ndarray:
        """Cost of the best action of every row, relative to the first one."""
        return self.losses.min(axis=0, initial=0)

    @property
    def counts(self) -> np.ndarray:
        """Planes of counted rows, (minima, rows)."""
        return self.rows.planes[self.rules.n_losses : self.rules.n_losses + len(self.rules.minima)]

    @property
    def charges(self) -> np.ndarray:
        """Planes of what rows pay for a split of each price, (prices, rows)."""
        first = self.rules.n_losses + len(self.rules.minima)
        return self.rows.planes[first : first + self.rules.prices]

    @property
    def keys(self) -> np.ndarray:
        """Planes of random keys, (2, rows)."""
        return self.rows.planes[-2:]

    def leaf(self) -> tuple[int, int]:
        """Value of all rows as one leaf, without its penalty, and what no tree can go below."""
        value, floor = node_sums(self.rows, self.rules)
        return int(value), int(floor)

    def paid(self, column: int) -> int:
        """Return the cost of a split of all rows on a column."""
        return int(self._charged[self.rows.groups[column]]) if self.priced else 0

    @cached_property
    def _charged(self) -> np.ndarray:
        return self.charges.sum(axis=1)

    def below(self, column: int) -> Node:
        """The same rows with the prices that hold below a split on a column: its test group is paid for."""
        rows = self.rows
        if rows.owners[column] < 0:
            return self
        return replace(self, rows=rows._replace(groups=np.where(rows.owners == rows.owners[column], 0, rows.groups)))


def new_control(
    similar_support: bool = True, cache: bool = True, look_ahead: bool = True, leaf_counts: bool = True
) -> np.ndarray:
    """The kernels' control array: not stopped, what saves work switched on or off, and which kernels are loaded."""
    control = np.zeros(PLACES, np.int64)
    control[[SIMILAR, CACHE, LOOK_AHEAD, LEAF_COUNTS]] = similar_support, cache, look_ahead, leaf_counts
    note_addresses(control)
    return control


def note_addresses(control: np.ndarray) -> None:
    """Note which kernels are loaded by now."""
    for place, kernel in CALLED_BY_ADDRESS.items():
        control[place] = address_of(kernel)


def counted_rows(problem: Problem) -> tuple[list[np.ndarray], list[int]]:
    """Planes of ones for the rows that leaves must have some of, and how many of each."""
    rows, minima = [], []
    if problem.min_leaf > 1:
        rows.append(np.ones(problem.data.n_rows, dtype=np.int64))
        minima.append(problem.min_leaf)
    if problem.min_leaf_per_arm > 0:
        for arm in range(problem.losses.shape[1]):
            rows.append(np.asarray(problem.arms == arm, dtype=np.int64))
            minima.append(problem.min_leaf_per_arm)
    return rows, minima


def prepare(problem: Problem, fixed: FixedPoint, merge: bool, special: bool = True, gates: SizeGates = GATES) -> Node:
    """Merge equal rows and lay out codes, planes and counted constraints of a problem :func:`without_gaps`."""
    data = problem.data
    codes = short_codes(data)
    rows, minima = counted_rows(problem)
    prices, groups = 0, np.zeros(len(codes), np.int64)
    owners = np.full(len(codes), -1)
    if fixed.groups is not None and fixed.charges is not None:
        used, groups = np.unique(fixed.groups[[c.feature for c in data.columns]], return_inverse=True)
        charges = fixed.charges[used]
        if charges.any():  # constant columns have no split to pay for
            owners = shared_groups(problem)
            if (owners >= 0).any() and charges[0].any():  # what was paid for has the price 0
                charges, groups = np.vstack([np.zeros_like(charges[:1]), charges]), groups + 1
            rows.extend(charges)
            prices = len(charges)
        groups = (groups if prices else np.zeros_like(groups)).astype(np.int64)
    values = np.vstack([fixed.planes, *rows]) if rows else fixed.planes
    codes, planes = merge_equal_rows(codes, values) if merge else (codes, values)
    keys = np.random.default_rng(0).integers(-(2**62), 2**62, size=(2, codes.shape[1]))  # name the rows in the cache
    bins = np.array(data.n_bins, dtype=np.int64)
    offset = np.concatenate([[0], np.cumsum(bins)]).astype(np.int64)
    return Node(
        Rows(codes, np.ascontiguousarray(np.vstack([planes, keys])), bins, offset, groups, owners, codes.shape[1]),
        Rules(
            n_losses=problem.losses.shape[1] - 1,
            minima=np.array(minima, dtype=np.int64),
            prices=prices,
            penalty=int(fixed.leaf_penalty),
            beyond=-1,
            uneven=int(are_uneven(owners, groups)),
            loose=gates.loose_minimum,
        ),
        1 + len(data.levels) if special else None,
        data.in_parts,
    )


def rows_of(node: Node, rows: np.ndarray) -> Node:
    """Return some rows of a node."""
    codes, planes = np.take(node.codes, rows, axis=1), np.take(node.rows.planes, rows, axis=1)
    return replace(node, rows=node.rows._replace(codes=codes, planes=planes, n=codes.shape[1]))


def depth_two(node: Node, leaves: int, control: np.ndarray) -> tuple[Found, bool, FirstSplits]:
    """The best tree of depth two with at most 3, or any number of leaves.

    Returns it, whether it is proved (else the search was stopped), and what every first split is worth at least.
    """
    minima = node.rules.minima
    rules = relaxed_rules(node.rows, node.rules) if len(minima) else node.rules  # loaded only where there are minima
    if len(rules.minima) < len(minima):
        relaxed = replace(node, rules=rules)
        best, finished, first = depth_two(relaxed, leaves, control)
        if _keeps_minima(node, expand(relaxed, [_first_split(best, leaves)])):
            return best, finished, first
        if not finished:
            return Found(node.leaf()[0] + node.penalty, -1, 0), False, first
    first = FirstSplits(*np.empty((2, len(node.bins)), np.int64))
    best, finished, any_long, work = short_pairs(node.rows, node.rules, leaves, first, control, node.special)
    if finished and any_long:
        search = long_parts if node.in_parts else long_pairs
        best, _, finished = search(node.rows, node.rules, leaves, first, work, best, INF, control)
    return best, finished, first


def _first_split(found: Found, leaves: int) -> tuple[int, int]:
    """A tree of depth two as kernels state it: its lower splits are left out."""
    if found.feature < 0:
        return -1, 0
    return -2 - int(found.feature), -1 - int(found.cut) if leaves == 3 else int(found.cut)


def _keeps_minima(node: Node, tree: Splits) -> bool:
    """Whether every leaf has as many rows as the rules ask for."""
    leaves = (rows for rows, (column, _) in zip(rows_of_splits(node, tree), tree, strict=True) if column < 0)
    return all((node.counts[:, rows].sum(axis=1) >= node.rules.minima).all() for rows in leaves)


def costs_of_rows(node: Node, tree: Splits, known: np.ndarray) -> tuple[int, np.ndarray]:
    """Return a tree's cost, and each row's where leaves have the action that is best for the ``known`` rows.

    The tree's value is that of its best actions. Costs of rows are without the price of leaves; test costs are those
    of a node where nothing is paid for yet, and every split on a path is charged.
    """
    losses, costs, entries = node.all_losses, np.zeros(node.n_rows, np.int64), iter(tree)
    is_known = np.zeros(node.n_rows, bool)
    is_known[known] = True

    def walk(rows: np.ndarray) -> int:
        column, cut = next(entries)
        if column < 0:
            action = losses[:, rows[is_known[rows]]].sum(axis=1).argmin()
            costs[rows] += losses[action, rows]
            return int(losses[:, rows].sum(axis=1).min()) + node.penalty
        paid = node.charges[node.rows.groups[column], rows] if node.priced else 0
        costs[rows] += paid
        left = node.codes[column, rows] <= cut
        return walk(rows[left]) + walk(rows[~left]) + int(np.sum(paid))

    return walk(np.arange(node.n_rows)), costs


def grow_fully(node: Node) -> tuple[int, Splits]:
    """Split until the rows of a leaf agree on the best action or cannot be told apart: no tree costs less.

    Returns the value and the tree. Only for free leaves without a limit of depth or size.
    """
    total = 0
    out: Splits = []
    stack = [np.arange(node.n_rows)]
    while stack:
        rows = stack.pop()
        part = rows_of(node, rows)
        leaf, floor = part.leaf()
        differ = np.flatnonzero(part.codes.min(axis=1) < part.codes.max(axis=1))
        if leaf == floor or len(differ) == 0:
            total += int(leaf)
            out.append((-1, 0))
            continue
        _, f, t = best_one_split(part.rows, part.rules)
        if not part.codes[f].min() <= t < part.codes[f].max():  # no gain by one split: any split that separates rows
            f, t = differ[0], part.codes[differ[0]].min()
        out.append((int(f), int(t)))
        left = part.codes[f] <= t
        stack += [rows[~left], rows[left]]
    return total, out


def expand(node: Node, tree: Splits) -> Splits:
    """Write out the lower splits that the kernels leave implicit (see solvers/kernels/depth_first/search.py)."""
    out: Splits = []
    entries = iter(tree)

    def walk(node: Node, rows: np.ndarray) -> None:
        column, cut = next(entries)
        if column < OPEN:
            part, leaves = rows_of(node, rows), OPEN - column
            if leaves <= 2:
                out.extend(one_split(part)[1] if leaves == 2 else [(-1, 0)])
                return
            _, column, cut = two_splits(part, leaves)
        if column == -1:
            out.append((-1, 0))
            return
        c = column if column >= 0 else -2 - column
        left = node.codes[c, rows] <= (cut if cut >= 0 else -1 - cut)
        parts = rows[left], rows[~left]
        out.append((c, cut if cut >= 0 else -1 - cut))
        below = node.below(c)
        if column >= 0:
            for part in parts:
                walk(below, part)
            return
        saved, sides = zip(*(one_split(rows_of(below, part)) for part in parts), strict=True)
        if cut < 0:  # three leaves: the side that saves more may split
            sides = (sides[0], [(-1, 0)]) if saved[0] >= saved[1] else ([(-1, 0)], sides[1])
        out.extend(sides[0] + sides[1])

    walk(node, np.arange(node.n_rows))
    return out


def size_of(tree: Splits) -> tuple[int, int]:
    """The depth of a tree and its number of leaves."""
    depths, deepest = [0], 0
    for f, _ in tree:
        depth = depths.pop()
        deepest = max(deepest, depth)
        if f >= 0:
            depths += [depth + 1, depth + 1]
    return deepest, len(tree) // 2 + 1


def one_split(node: Node) -> tuple[int, Splits]:
    """Find the best tree of at most one split; return what it saves over a leaf, and its splits."""
    value, f, t = best_one_split(node.rows, node.rules)
    saved = node.leaf()[0] - int(value) - node.penalty
    return (saved, [(int(f), int(t)), (-1, 0), (-1, 0)]) if saved > 0 else (0, [(-1, 0)])


def two_splits(node: Node, leaves: int, flag: np.ndarray | None = None) -> tuple[int, int, int]:
    """The best tree of depth two and 3 or 4 leaves: value, and first split as kernels state it, -1, 0 for a leaf."""
    part, columns, codes = occurring(node)  # a cut must leave rows on both sides
    if not len(columns):
        return node.leaf()[0] + node.penalty, -1, 0
    best, _, _ = depth_two(part, leaves, new_control() if flag is None else flag)
    if best.feature < 0:
        return int(best.value), -1, 0
    cut = int(codes[part.rows.offset[best.feature] + best.cut])
    return int(best.value), -2 - int(columns[best.feature]), cut if leaves > 3 else -1 - cut


def occurring(node: Node) -> tuple[Node, np.ndarray, np.ndarray]:
    """The node without columns and codes that its rows lack, its columns, and its codes, as they were before."""
    rows = node.rows
    p, n, S = len(rows.bins), rows.n, int(rows.offset[-1])
    bins, groups, owners, columns = np.empty((4, p), np.int64)
    to = Packed(
        np.empty((p, n), np.uint16), np.empty((len(rows.planes), n), np.int64), bins, np.empty(p + 1, np.int64), groups,
        owners, columns, np.empty(S, np.int64),
    )  # fmt: skip
    q = pack_rows(rows, np.arange(p), names_of_codes(node), np.arange(n, dtype=np.int32), 0, n, to)
    packed = Rows(to.codes[:q], to.planes, bins[:q], to.offset[: q + 1], groups[:q], owners[:q], n)
    return replace(node, rows=packed), columns[:q], to.cuts


def names_of_codes(node: Node) -> np.ndarray:
    """The code that stands at each place of a node's columns."""
    return np.arange(node.rows.offset[-1]) - np.repeat(node.rows.offset[:-1], node.bins)


def refuse_memory(problem: Problem, limits: SearchLimits) -> None:
    """Refuse a search whose merged rows alone exceed the memory limit, before they are made."""
    if limits.memory_limit is None:
        return
    p, n = problem.data.codes.shape
    K = problem.losses.shape[1]
    prices = 0 if problem.feature_costs is None else len(np.unique(problem.feature_costs))
    planes = K + 2 + (problem.min_leaf > 1) + K * (problem.min_leaf_per_arm > 0) + prices
    need = 2 * n * (2 * p + 8 * planes)
    if need > limits.memory_limit:
        raise InputError(
            f"memory_limit is {float(limits.memory_limit):.3g} bytes, but rows and columns alone take about "
            f"{need:.3g}; raise the limit, or use fewer rows."
        )
