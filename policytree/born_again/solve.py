"""Born-again trees: the smallest single tree that predicts what an ensemble predicts, everywhere.

Definitions (Vidal and Schiffer, "Born-again tree ensembles", ICML 2020). A tree is *faithful* if it predicts the
ensemble's class at every point of the space, whether or not there is data. The thresholds of the ensemble cut the space
into a grid of cells, each of one class: a tree is faithful if and only if it is so on every cell. Wanted is the
faithful tree of

    "depth"              least depth (D);
    "leaves"             fewest leaves (L);
    "depth_then_leaves"  fewest leaves among the trees of least depth (DL).

Why the tree is optimal. Thresholds between those of the ensemble separate no cells, so trees on the grid's cuts are
enough. The best tree on a box of cells is one leaf if the box has one class, and otherwise some first split with best
trees on both sides: the values of ``born_again/kernels/values.py`` and ``born_again/kernels/layers.py`` are minima over
all first splits, from small boxes to the whole space. Left out are only cuts beside which no class changes anywhere in
the box; a split there can be replaced by either of its sides, which is no deeper and no larger. A search that ends with
the status OPTIMAL has looked at all boxes that matter.

Bounds of a stopped search. A faithful tree of the whole space is one of every box too. So a box needs no more depth,
and no more leaves, than the whole: the largest value found so far is a lower bound. So is one leaf more than there are
cuts that matter, for each of these is split on somewhere; and so are the values of parts of the grid (``bounds.py``).
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from policytree.born_again.bounds import bounds_of_parts
from policytree.born_again.ensembles import TreeEnsemble
from policytree.born_again.grid import Grid, essence, make_grid
from policytree.born_again.heuristic import Growing, grow, on_full_grid
from policytree.born_again.needed_kernels import BORN_AGAIN
from policytree.born_again.regions import count_boxes
from policytree.born_again.search import OBJECTIVES, GridSearch
from policytree.born_again.trees import make_tree
from policytree.common.memory import free_bytes
from policytree.common.validation import check_choice
from policytree.data.views import Shown
from policytree.exceptions import SearchWarning
from policytree.problem.types import Progress, SearchLimits, Status
from policytree.solvers.core.compilation import load_kernels
from policytree.solvers.core.limits import Clock
from policytree.trees.tree import Tree

MOST_CELLS = 1 << 28  # whose classes are written out
MOST_BOXES = 1e13  # beyond, no search is begun
LONG = 3e10  # boxes: a search that may take very long
SHARE = 0.7  # of the time limit that the exact search gets; the rest is for a tree that need not be smallest, and
BOUNDS = 0.1  # of the limit, or of the time spent, for lower bounds; and
SOON = 0.5  # seconds at least; no more after Ctrl-C
FREE = 0.8  # of the memory that is free: the limit, if none is given
EVERY = 0.2  # seconds between reports


@dataclass(frozen=True, slots=True, repr=False)
class BornAgainSolution(Shown):
    """A faithful tree and its certificate.

    Attributes
    ----------
    tree : Tree
        Predicts the ensemble's class everywhere, whatever the status.
    status : Status
        OPTIMAL: no faithful tree is better. TIME_LIMIT, MEMORY_LIMIT or INTERRUPTED: the exact search was stopped.
        HEURISTIC: the ensemble is too large for it.
    depth, leaves : int
        Of the tree.
    depth_bound, leaves_bound : int
        No faithful tree has less depth, or fewer leaves. For "depth_then_leaves", ``leaves_bound`` holds for trees of
        least depth if the status is OPTIMAL.
    seconds : float
        Wall time, without compiling.
    counters : dict
        ``cells``, ``cells_that_matter`` (of the grid without cuts that never matter), ``boxes`` and ``blocks`` solved,
        ``regions`` solved exactly by the heuristic.
    compile_seconds : float
    """

    tree: Tree
    status: Status
    depth: int
    leaves: int
    depth_bound: int
    leaves_bound: int
    seconds: float
    counters: dict[str, int] = field(default_factory=dict)
    compile_seconds: float = 0.0

    def __str__(self) -> str:
        proved = {True: "proved smallest", False: self.status.value}[self.status is Status.OPTIMAL]
        return (
            f"{self.leaves:,} leaves, depth {self.depth} ({proved}; no faithful tree has fewer than "
            f"{self.leaves_bound:,} leaves or less depth than {self.depth_bound}), {self.seconds:.3g} s"
        )


def solve_born_again(
    ensemble: TreeEnsemble, objective: str = "depth", limits: SearchLimits | None = None
) -> BornAgainSolution:
    """Find the smallest tree that predicts what an ensemble predicts, everywhere.

    Parameters
    ----------
    ensemble : TreeEnsemble
        The trees and how they vote; :func:`policytree.born_again.readers.read_ensemble` makes one of a fitted model.
    objective : {"depth", "leaves", "depth_then_leaves"}
    limits : SearchLimits, optional
        ``time_limit`` is shared: an exact search that has not ended after 70 % of it makes way for a greedy one, whose
        tree is faithful but need not be smallest. ``memory_limit`` is four fifths of the free memory by default.

    Returns
    -------
    BornAgainSolution

    Raises
    ------
    InputError
        If the objective is not known, or no faithful tree was complete after twice the time limit.
    """
    check_choice(objective, "objective", OBJECTIVES)
    limits = limits or SearchLimits()
    compiled = load_kernels([(BORN_AGAIN, "")])
    memory = limits.memory_limit
    if memory is None and (free := free_bytes()) is not None:
        memory = FREE * free
    exact = Clock(None if limits.time_limit is None else SHARE * limits.time_limit, memory_limit=memory)
    search = _BornAgainSearch(make_grid(ensemble), objective, exact, limits)
    exact.watch(search.run)
    if search.nodes is None:
        status = exact.status if exact.stopped else Status.HEURISTIC
        search.grow()
    else:
        status = Status.OPTIMAL
    tree = make_tree(np.array(search.nodes, dtype=np.int64), ensemble)
    size = tree.max_depth, tree.n_leaves
    bounds = _bounds(objective, search.bounds, size if status is Status.OPTIMAL else (0, 1))
    return BornAgainSolution(tree, status, *size, *bounds, exact.seconds(), search.counters, compiled)


def _bounds(objective: str, bounds: tuple[int, int], proved: tuple[int, int]) -> tuple[int, int]:
    """Bounds of depth and leaves, also by each other; ``proved``: the size of a tree that is smallest."""
    depth, leaves = bounds
    depth = max(depth, math.ceil(math.log2(leaves)))
    return (
        max(depth, proved[0]) if objective != "leaves" else max(depth, math.ceil(math.log2(proved[1]))),
        max(leaves, proved[1]) if objective != "depth" else leaves,
    )


class _BornAgainSearch:
    """The exact search in a thread of its own, and the greedy one after it."""

    def __init__(self, grid: Grid, objective: str, clock: Clock, limits: SearchLimits):
        self.grid, self.objective, self.clock, self.limits = grid, objective, clock, limits
        self.progress: Callable[[Progress], None] | None = limits.progress
        self.nodes: list | np.ndarray | None = None
        self.bounds = (0, 1)
        self._classes: np.ndarray | None = None  # of the cells that matter
        self._reported = 0.0
        self.counters = {"cells": int(np.prod(grid.shape, dtype=object))}

    def run(self) -> None:
        """Search the whole grid exactly, if it is small enough."""
        cells = self.counters["cells"]
        if cells > MOST_CELLS:
            return
        if not self.clock.fits_memory(2 * cells):
            self.clock.stop(Status.MEMORY_LIMIT)
            return
        small = essence(self.grid.classes(self.grid.whole(), self.clock.flag))
        if self.clock.stopped:
            return
        self.counters["cells_that_matter"] = small.classes.size
        if not small.features:
            self.nodes = [[-1, -1, -1, -1, int(small.classes.flat[0])]]
            return
        self._classes = small.classes
        search = GridSearch(small.classes, self.objective, self.clock, MOST_BOXES)
        if LONG < count_boxes(small.classes.shape) <= MOST_BOXES and self.limits.time_limit is None:
            warnings.warn(
                f"The search for the smallest tree may take very long ({small.classes.size:,} cells matter); set "
                "time_limit to get a faithful tree that need not be smallest.",
                SearchWarning,
                stacklevel=2,
            )
        with _Reporter(self.progress, self.clock, search):
            found = search.run()
        self.bounds = found.depth_bound, found.leaves_bound
        self.counters |= {"blocks": found.blocks, "boxes": found.boxes}
        if found.nodes is not None:
            cuts = dict(zip(small.features, small.cuts, strict=True))
            self.nodes = on_full_grid(found.nodes, small.features, cuts, 0)

    def grow(self) -> None:
        """A faithful tree that need not be smallest; after a stop, in little time."""
        limit = np.inf if self.limits.time_limit is None else self.limits.time_limit
        report = None if self.progress is None else self._report_growing
        exact = not self.clock.stopped
        self._bound(self._bounds_of_parts())
        grown = grow(self.grid, self.objective, self.clock, limit, exact, report)
        self.nodes = grown.nodes
        self._bound((grown.depth_bound, grown.leaves_bound))
        self.counters["regions"] = grown.regions

    def _bounds_of_parts(self) -> tuple[int, int]:
        seconds = max(SOON, BOUNDS * (self.limits.time_limit or self.clock.seconds()))
        seconds = SOON if self.clock.status is Status.INTERRUPTED else seconds
        return bounds_of_parts(self.grid, self._classes, self.objective, seconds, self.clock.memory_limit)

    def _bound(self, bounds: tuple[int, int]) -> None:
        self.bounds = max(self.bounds[0], bounds[0]), max(self.bounds[1], bounds[1])

    def _report_growing(self, share: float, tree: Growing) -> None:
        if self.progress is not None and self.clock.seconds() - self._reported > EVERY:
            self._reported = self.clock.seconds()
            leaves = float((len(tree.nodes) + 1) // 2)
            self.progress(Progress(self._reported, leaves, float(tree.leaves_bound), share, tree.regions))


class _Reporter:
    """Tells a progress display how far a search is, from a thread of its own."""

    def __init__(self, progress: Callable[[Progress], None] | None, clock: Clock, search: GridSearch):
        self.progress, self.clock, self.search = progress, clock, search
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True, name="policytree-progress")

    def __enter__(self) -> None:
        if self.progress is not None:
            self.thread.start()

    def __exit__(self, *_) -> None:
        self.done.set()
        if self.progress is not None:
            self.thread.join()
            self._report()

    def _work(self) -> None:
        while not self.done.wait(EVERY):
            self._report()

    def _report(self) -> None:
        search = self.search
        bound = search.leaves if search.counts_leaves else search.depth
        most = search.classes.size if search.counts_leaves else search.cuts
        if self.progress is not None:
            self.progress(Progress(self.clock.seconds(), float(most), float(bound), search.share(), search.boxes))
