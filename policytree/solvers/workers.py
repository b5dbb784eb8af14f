"""Workers of the search: each tries one root feature at a time and keeps the arrays that its kernel works in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.solvers import search_kernels as kernels
from policytree.solvers.node import Node

PROBES = 2  # root cuts solved, or sweeps made, in every feature before any feature is searched to the end
CACHE_ROWS, SIDE_ROWS = 2**17, 2**20  # at most
NO_LIMIT = np.iinfo(np.int64).max


@dataclass
class RootFeature:
    """Bounds of both sides of one root feature's cuts, kept between rounds.

    ``hint``: the cut to try first (-1: none); ``paid``: what the split itself costs.
    """

    left: np.ndarray
    right: np.ndarray
    hint: int
    paid: int
    solved: bool = False

    def lower_bound(self) -> int:
        """Bound of every tree with this feature at the root."""
        return int((self.left + self.right).min()) + self.paid


class Stack:
    """The search stack; the root feature stands at level 0.

    ``tables``: what sweeps over all rows share, for searches of depth three (see :func:`search_kernels.make_tables`).
    """

    def __init__(self, node: Node, useful: int, leaf_limit: int, tables: tuple):
        self.node, self.leaf_limit, self.tables = node, leaf_limit, tables
        levels = max(useful - 1, 2)  # a level per split above the last two
        p, n = node.codes.shape
        S, B = int(node.offset[-1]), int(node.bins.max(initial=1))
        leaves = min(2 ** min(useful, 40), n)
        self.ncodes = np.empty((levels, p, n), np.uint16)
        self.nplanes = np.empty((levels, len(node.planes), n), np.int64)
        self.index = np.empty((levels, n), np.int32)
        self.nbins, self.ncol, self.ngroups, self.order = np.empty((4, levels, p), np.int64)
        self.roots, self.root_cuts = np.empty((2, levels, p), np.int64)
        self.noffset = np.zeros((levels, p + 1), np.int64)
        self.ncut = np.empty((levels, S), np.int64)
        self.ends, self.least, self.most, self.left, self.right = np.empty((5, levels, B + 1), np.int64)
        self.reg = np.zeros((levels, kernels.N_REGISTERS), np.int64)
        self.tree, self.ltree = np.empty((2, levels, 2 * leaves + 8, 2), np.int64)
        self.counters = np.zeros(kernels.N_COUNTERS, np.int64)
        cached, sides = self._rows_kept(node, useful)
        self.cache = np.zeros((cached, kernels.N_CACHE), np.int64)
        self.pool = np.empty((4 * cached if useful > 3 else 0, 2), np.int64)
        self.sides = np.zeros((sides, 3), np.int64)
        self.ncodes[0], self.nplanes[0] = node.codes, node.planes
        self.nbins[0], self.noffset[0], self.ncol[0] = node.bins, node.offset, np.arange(p)
        self.ngroups[0] = node.groups
        self.ncut[0] = np.concatenate([np.arange(b) for b in node.bins])

    @staticmethod
    def bytes(node: Node, useful: int) -> int:
        """Roughly what a stack takes."""
        p, n = node.codes.shape
        cached, sides = Stack._rows_kept(node, useful)
        deep = 8 * (cached * (kernels.N_CACHE + 8) + 3 * sides)
        return max(useful - 1, 2) * n * (2 * p + 8 * len(node.planes) + 4) + deep

    @staticmethod
    def _rows_kept(node: Node, useful: int) -> tuple[int, int]:
        """Rows of the cache and of the bounds of swept sides: powers of two, as many as a search can make use of.

        Memory that a small search never fills would still cost it time, page by page. With four places for each, few
        drive out one another.
        """
        if useful <= 3:  # only depth two is below the root: nothing is met twice
            return 2, 1
        sides = 2 * int((node.bins - 1).sum())  # of one split; every level multiplies
        made = [4 * sides ** min(useful - level, 8) for level in (3, 2)]
        most = (CACHE_ROWS, SIDE_ROWS)
        return tuple(2 ** (min(max(k, 256), limit) - 1).bit_length() for k, limit in zip(made, most, strict=True))

    def advance(self, f: int, depth: int, budget: int, state: RootFeature, first: bool, flag: np.ndarray):
        """Try root feature f (``first``: a few cuts only); returns its best value and tree, or the budget and None."""
        node, r, cuts = self.node, self.reg[0], self.node.bins[f] - 1
        p, n = node.codes.shape
        self.order[0, 0], self.root_cuts[0, f] = f, state.hint
        self.left[0, :cuts], self.right[0, :cuts] = state.left, state.right
        r[:] = 0
        r[kernels.R_PHASE], r[kernels.R_M], r[kernels.R_P] = kernels.FEATURE, n, p
        r[kernels.R_DEPTH] = r[kernels.R_USE] = depth
        r[kernels.R_LEAVES] = self.leaf_limit if self.leaf_limit < 2 ** min(depth, 40) else kernels.UNLIMITED
        r[kernels.R_BUDGET] = r[kernels.R_BEST] = budget
        r[kernels.R_LAST], r[kernels.R_SPLITLB] = 1, kernels.INF
        kernels.advance(
            0, self.ncodes, self.nplanes, self.index, self.nbins, self.noffset, self.ncol, self.ngroups, self.ncut,
            self.ends, self.least, self.most, self.left, self.right, self.reg, self.tree, self.ltree, self.order,
            self.roots, self.root_cuts, node.n_actions - 1, node.minima, node.price, node.lam,
            PROBES if first else NO_LIMIT, self.tables, self.cache, self.pool, self.sides, self.counters, flag,
        )  # fmt: skip
        state.left, state.right = self.left[0, :cuts].copy(), self.right[0, :cuts].copy()
        state.hint = int(self.root_cuts[0, f])
        length = int(r[kernels.R_NTREE])
        tree = [tuple(map(int, row)) for row in self.tree[0, :length]] if length else None
        return int(r[kernels.R_BEST]), tree

    def take_counters(self) -> np.ndarray:
        """Work since the last call."""
        done = self.counters.copy()
        done[kernels.C_POOL] = 0
        self.counters -= done
        return done
