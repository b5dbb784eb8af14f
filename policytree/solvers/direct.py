"""The direct solver: exact search over trees for real-valued losses, by bounds and pair tables."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from policytree.solvers import search_kernels as kernels
from policytree.solvers.clock import Clock
from policytree.solvers.fixed_point import FixedPoint, to_fixed_point
from policytree.solvers.merge import merge_equal_rows
from policytree.solvers.scoring import finish, leaf_only
from policytree.types import Problem, Progress, SearchLimits, Solution, Status

PROBES = 3  # root cuts tried in every feature before any feature is searched to the end


@dataclass
class _Node:
    """The root node's merged rows and what every kernel needs of it."""

    codes: np.ndarray
    planes: np.ndarray
    counts: np.ndarray
    minima: np.ndarray
    bins: np.ndarray
    offset: np.ndarray
    lam: int

    @property
    def n_rows(self) -> int:
        return self.codes.shape[1]

    def arrays(self) -> tuple:
        return self.codes, self.planes, self.counts, self.minima, 0, self.n_rows, self.bins, self.offset


@dataclass
class _RootFeature:
    """Bounds of one root feature's cuts, kept between rounds."""

    left: np.ndarray
    right: np.ndarray
    hint: int
    solved: bool = False

    def lower_bound(self) -> int:
        return int((self.left + self.right).min())


def solve_direct(problem: Problem, limits: SearchLimits | None = None) -> Solution:
    """Find the best tree, with a proof.

    Parameters
    ----------
    problem : Problem
    limits : SearchLimits, optional

    Returns
    -------
    Solution
        ``status`` is OPTIMAL, or says which limit ended the search; the tree and the lower bound are valid either way.

    Notes
    -----
    Losses become int64 fixed point, so sums are exact and pruning needs no tolerance. Subtrees of depth two are solved
    by tables over pairs of features (after the specialised depth-two solver of Demirovic et al., MurTree, JMLR 2022);
    root cuts are refuted by similar-support bounds (Angelino et al., CORELS, JMLR 2018; Brita et al., ConTree, AAAI
    2025), and a branch ends when the leaf penalty of its next split exceeds what is left to gain.
    """
    limits = limits or SearchLimits()
    clock = Clock(limits.time_limit)
    fixed = to_fixed_point(problem.losses, problem.leaf_penalty)
    node = _prepare(problem, fixed)
    leaf, floor = kernels.node_sums(node.planes, node.counts, node.minima, 0, node.n_rows)
    if leaf >= kernels.FEASIBLE:
        return leaf_only(problem, fixed, Status.INFEASIBLE, clock.seconds())
    depth = problem.max_depth if problem.max_depth is not None else node.n_rows
    search = _Search(node, depth, int(leaf), int(floor), limits, clock, fixed)
    search.run()
    counters = {"merged_rows": node.n_rows, **search.counters()}
    status = clock.status if clock.stopped and search.bound < search.best else Status.OPTIMAL
    gap = fixed.to_float(search.best - search.bound)
    return finish(problem, fixed, search.tree, gap, status, clock.seconds(), counters)


def _prepare(problem: Problem, fixed: FixedPoint) -> _Node:
    """Merge equal rows and lay out codes, planes and counted constraints."""
    data = problem.data
    codes = np.ascontiguousarray(data.codes, dtype=np.uint16)
    rows, minima = [], []
    if problem.min_leaf > 1:
        rows.append(np.ones(data.n_rows, dtype=np.int64))
        minima.append(problem.min_leaf)
    if problem.min_leaf_per_arm > 0:
        for arm in np.unique(problem.arms):
            rows.append((problem.arms == arm).astype(np.int64))
            minima.append(problem.min_leaf_per_arm)
    counts = np.array(rows, dtype=np.int64).reshape(len(rows), data.n_rows)
    codes, planes, counts = merge_equal_rows(codes, fixed.planes, counts)
    offset = np.concatenate([[0], np.cumsum(data.n_bins)]).astype(np.int64)
    return _Node(codes, planes, counts, np.array(minima, dtype=np.int64), data.n_bins, offset, fixed.leaf_penalty)


class _Search:
    """Rounds over root features; the kernels do the work, this class owns incumbent, bounds, threads and clock."""

    def __init__(self, node, depth, leaf, floor, limits: SearchLimits, clock: Clock, fixed: FixedPoint):
        self.node = node
        self.limits = limits
        self.clock = clock
        self.fixed = fixed
        self.best = leaf + node.lam
        self.floor = floor
        self.tree = [(-1, 0)]
        self.bound = min(self.best, floor + 2 * node.lam)
        self.depth = self._useful_depth(depth)
        self.work = np.zeros(kernels.N_COUNTERS, dtype=np.int64)
        self.features: dict[int, _RootFeature] = {}
        self.lock = threading.Lock()

    def _useful_depth(self, depth: int) -> int:
        """Trees of h leaves cost at least ``floor + h * penalty`` and have depth at most h - 1."""
        if self.best <= self.floor + 2 * self.node.lam or len(self.node.bins) == 0:
            return 0
        if self.node.lam > 0:
            leaves = -(-(self.best - self.floor) // self.node.lam) - 1
            depth = min(depth, max(leaves - 1, 0))
        return depth

    def counters(self) -> dict[str, int]:
        """Work done so far."""
        names = ("nodes", "root_and_inner_cuts", "depth_two_solves")
        return dict(zip(names, map(int, self.work), strict=True))

    def run(self) -> None:
        """Search until the bound meets the incumbent or a limit strikes."""
        if self.depth == 0:
            self.bound = self.best
        elif self.depth == 1:
            self._one_split()
        else:
            self.clock.watch(self._deep)

    def _one_split(self) -> None:
        value, f, t = kernels.best_one_split(*self.node.arrays())
        value += 2 * self.node.lam
        if f >= 0 and value < self.best:
            self.best, self.tree = int(value), [(int(f), int(t)), (-1, 0), (-1, 0)]
        self.bound = self.best

    def _deep(self) -> None:
        """Depth two outright; beyond, use it as the first incumbent and to order the root features."""
        node = self.node
        roots = np.empty(len(node.bins), np.int64)
        cuts = np.empty(len(node.bins), np.int64)
        value, f, t, _ = kernels.depth_two(*node.arrays(), node.lam, kernels.INF, roots, cuts, self.clock.flag)
        if self.clock.stopped:
            return
        self.work[kernels.C_TWO] += 1
        tree = np.empty((8, 2), np.int64)
        columns = np.arange(len(node.bins))
        global_cuts = np.concatenate([np.arange(b) for b in node.bins])
        length = kernels.emit_depth_two(*node.arrays(), node.lam, f, t, columns, global_cuts, tree)
        self.best, self.tree = int(value), [tuple(map(int, row)) for row in tree[:length]]
        self.depth = self._useful_depth(self.depth)
        if self.depth <= 2:
            self.bound = self.best
            return
        for f in np.argsort(roots, kind="stable"):
            low = np.full(node.bins[f] - 1, -kernels.INF, np.int64)
            self.features[int(f)] = _RootFeature(low, low.copy(), int(cuts[f]))
        self._round(PROBES)
        self._round(np.iinfo(np.int64).max)

    def _round(self, max_cuts: int) -> None:
        """Advance every open root feature with the incumbent of the round's start, so that any number of threads agrees."""
        budget = self.best
        open_features = [f for f, state in self.features.items() if not state.solved]
        with ThreadPoolExecutor(self.limits.n_jobs) as pool:
            results = list(pool.map(lambda f: self._advance(f, budget, max_cuts), open_features))
        for value, tree in results:  # in feature order: ties go to the first
            if tree is not None and value < self.best:
                self.best, self.tree = value, tree
        self._update_bound()

    def _update_bound(self) -> None:
        bounds = [state.lower_bound() for state in self.features.values()]
        self.bound = min(self.best, max(self.bound, min(bounds, default=self.best)))

    def _advance(self, f: int, budget: int, max_cuts: int):
        """Search one root feature; returns its best value below the budget and the tree, or (budget, None)."""
        if self.clock.stopped:
            return budget, None
        state = self.features[f]
        stack = _Stack(self.node, f, self.depth, budget, state)
        stack.advance(max_cuts, self.clock.flag)
        with self.lock:
            self.work += stack.counters
            state.left, state.right, state.hint = stack.bounds()
            state.solved = state.lower_bound() >= min(budget, stack.best)
            self._report()
        return stack.best, stack.best_tree()

    def _report(self) -> None:
        if self.limits.progress is None:
            return
        self._update_bound()
        closed = sum(state.solved for state in self.features.values()) / len(self.features)
        self.limits.progress(
            Progress(
                self.clock.seconds(),
                self.fixed.to_float(self.best),
                self.fixed.to_float(self.bound),
                closed,
                int(self.work[kernels.C_NODES]),
            )
        )


class _Stack:
    """The arrays of one run of the search stack, with one root feature at level 0."""

    def __init__(self, node: _Node, f: int, depth: int, budget: int, state: _RootFeature):
        self.node, self.f = node, f
        p, n = node.codes.shape
        # A level per split above the depth-two kernel, and one for its rows. Without a depth limit the leaf penalty
        # bounds the depth, but a path cannot be longer than there are codes to cut.
        levels = min(depth, int((node.bins - 1).sum()) + 1)
        P, Q, S, B = len(node.planes), len(node.counts), int(node.offset[-1]), int(node.bins.max(initial=1))
        leaves = min(2 ** min(depth, 40), n)
        self.ncodes, self.scodes = np.empty((2, levels, p, n), np.uint16)
        self.nplanes, self.splanes = np.empty((2, levels, P, n), np.int64)
        self.ncounts, self.scounts = np.empty((2, levels, Q, n), np.int64)
        self.nbins, self.ncol, self.order, self.roots, self.root_cuts = np.empty((5, levels, p), np.int64)
        self.noffset = np.zeros((levels, p + 1), np.int64)
        self.ncut = np.empty((levels, S), np.int64)
        self.ends, self.least, self.most, self.left, self.right = np.empty((5, levels, B), np.int64)
        self.reg = np.zeros((levels, kernels.N_REGISTERS), np.int64)
        self.tree, self.ltree = np.empty((2, levels, 2 * leaves + 8, 2), np.int64)
        self.counters = np.zeros(kernels.N_COUNTERS, np.int64)
        self._set_root(depth, budget, state)

    def _set_root(self, depth: int, budget: int, state: _RootFeature) -> None:
        node, f, r = self.node, self.f, self.reg[0]
        p, n = node.codes.shape
        self.ncodes[0], self.nplanes[0], self.ncounts[0] = node.codes, node.planes, node.counts
        self.nbins[0], self.noffset[0], self.ncol[0] = node.bins, node.offset, np.arange(p)
        self.ncut[0] = np.concatenate([np.arange(b) for b in node.bins])
        self.order[0, 0], self.root_cuts[0, f] = f, state.hint
        B = node.bins[f]
        self.left[0, : B - 1], self.right[0, : B - 1] = state.left, state.right
        r[kernels.R_PHASE], r[kernels.R_M], r[kernels.R_P], r[kernels.R_DEPTH] = kernels.FEATURE, n, p, depth
        r[kernels.R_BUDGET] = r[kernels.R_BEST] = budget
        r[kernels.R_LAST], r[kernels.R_SPLITLB] = 1, kernels.INF

    def advance(self, max_cuts: int, flag: np.ndarray) -> None:
        """Run the kernel until the feature is done, ``max_cuts`` are solved, or the flag is set."""
        kernels.advance(
            0, self.ncodes, self.nplanes, self.ncounts, self.scodes, self.splanes, self.scounts, self.nbins,
            self.noffset, self.ncol, self.ncut, self.ends, self.least, self.most, self.left, self.right, self.reg,
            self.tree, self.ltree, self.order, self.roots, self.root_cuts, self.node.minima, self.node.lam, 0,
            max_cuts, self.counters, flag,
        )  # fmt: skip

    @property
    def best(self) -> int:
        """The best value found, or the budget."""
        return int(self.reg[0, kernels.R_BEST])

    def best_tree(self) -> list[tuple[int, int]] | None:
        """The tree of the best value in preorder, None if nothing is below the budget."""
        length = int(self.reg[0, kernels.R_NTREE])
        return [tuple(map(int, row)) for row in self.tree[0, :length]] if length else None

    def bounds(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Bounds of the root cuts, and the cut to try first next time (-1: none)."""
        cuts = int(self.node.bins[self.f]) - 1
        return self.left[0, :cuts].copy(), self.right[0, :cuts].copy(), int(self.root_cuts[0, self.f])
