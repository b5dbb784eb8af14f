"""The best tree for encoded rows: by tables that rows stream into, or in memory where that is what it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from policytree.encoded.store import EncodedData
from policytree.encoded.streams import Report, Streams
from policytree.exceptions import InputError
from policytree.problem.types import BinnedData, Problem, SearchLimits, Solution, Status
from policytree.solvers.core.columns import preorder_splits
from policytree.solvers.core.compilation import load_kernels, streamed_kernels
from policytree.solvers.core.exact_sums import ExactSums
from policytree.solvers.core.feasibility import no_split_fits
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Splits
from policytree.solvers.core.scoring import right_children, sums_of_nodes, tree_of_leaves
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.kernels.base.layout import FEASIBLE
from policytree.solvers.out_of_core.table_search import MOST_DEPTH, Stopped, TableRules, bytes_below, search_tables
from policytree.trees.tree import Tree

FEW_ROWS = 50_000  # so many rows are searched in memory in any case
MOST_BYTES = 2e9  # of tables, or of rows in memory, where no memory_limit says otherwise


@dataclass(frozen=True, slots=True)
class Answer:
    """A solution, and what is known beside it.

    Attributes
    ----------
    solution : Solution
    node_values : ndarray of shape (node_count, K)
        Weighted means of rewards, or shares of classes, in every node of its tree.
    no_split_fits : bool
        Whether no split leaves both sides enough rows, so that the tree had to be a single leaf.
    """

    solution: Solution
    node_values: np.ndarray
    no_split_fits: bool


@dataclass(frozen=True, slots=True)
class Question:
    """Specification of the tree asked for; penalties in summed losses.

    Attributes
    ----------
    leaf_penalty : float
    max_depth : int or None
    min_leaf : int
    max_leaf_nodes : int or None
    minimize : bool
        False if what is encoded are rewards, of which more is better.
    split_features, root_features : tuple of int or None
        Places in the table of X.
    """

    leaf_penalty: float = 0.0
    max_depth: int | None = 2
    min_leaf: int = 1
    max_leaf_nodes: int | None = None
    minimize: bool = True
    split_features: tuple[int, ...] | None = None
    root_features: tuple[int, ...] | None = None

    def places(self, data: EncodedData, features: tuple[int, ...] | None) -> list[int]:
        """Places among the coded features of some features; of all if None."""
        return [k for k, coded in enumerate(data.coded) if features is None or coded.feature in features]


def solve_encoded(
    data: EncodedData, question: Question, limits: SearchLimits | None = None, report: Report | None = None
) -> Answer:
    """Find the best tree.

    Raises
    ------
    InputError
        If that takes all rows in memory, and they, or the tables of pairs of features, need more than there is.
    """
    limits = limits or SearchLimits()
    used = question.places(data, question.split_features)
    most = MOST_BYTES if limits.memory_limit is None else limits.memory_limit
    few = data.n_rows <= FEW_ROWS and _bytes_in_memory(data) <= most
    if few or not tables_answer(question, used):
        return _in_memory(data, question, used, limits, most)
    sign = 1 if question.minimize else -1
    streams = Streams(data, used, question.min_leaf > 1, sign, limits.n_jobs, Clock(limits.time_limit), report)
    return solve_by_tables(streams, question, most)


def tables_answer(question: Question, used: list[int]) -> bool:
    """Whether tables of pairs and triples say all that is asked."""
    depth, leaves = _depth(question), question.max_leaf_nodes
    if depth is None or depth > MOST_DEPTH:
        return not used
    return leaves is None or leaves >= 2**depth


def _depth(question: Question) -> int | None:
    """Largest useful depth."""
    return 0 if question.max_leaf_nodes == 1 else question.max_depth


def _bytes_in_memory(data: EncodedData) -> float:
    K, p = len(data.labels), len(data.columns)
    return float(data.n_rows) * 2 * (2 * p + 8 * (K + 3))


def _in_memory(data: EncodedData, question: Question, used: list[int], limits: SearchLimits, most: float) -> Answer:
    need = _bytes_in_memory(data)
    if need > most:
        depth = "no max_depth" if question.max_depth is None else f"max_depth={question.max_depth}"
        leaves = "" if question.max_leaf_nodes is None else f" with max_leaf_nodes={question.max_leaf_nodes}"
        raise InputError(
            f"{depth}{leaves} needs all {data.n_rows:,} encoded rows in memory, about {need / 1e9:.3g} GB; set "
            f"max_depth to {MOST_DEPTH} at most and leave max_leaf_nodes at None, encode a sample of the rows, or set "
            "memory_limit to what may be used."
        )
    sign = 1 if question.minimize else -1
    losses = np.concatenate([_losses(data, k, sign) for k in range(len(data.stored))])
    binned = data.in_memory()
    problem = Problem(
        _only(binned, {data.coded[f].feature for f in used}, not _thinned(data, used)),
        losses,
        question.leaf_penalty,
        question.max_depth,
        min(question.min_leaf, data.n_rows + 1),
        max_leaf_nodes=question.max_leaf_nodes,
        root_features=question.root_features,
    )
    solution = solve_direct(problem, limits)
    splits = _as_coded(data, preorder_splits(solution.tree, binned))
    streams = Streams(data, used, False, sign, limits.n_jobs, Clock(None))
    tree, objective, means = grown(streams, splits, question.leaf_penalty)
    solution = replace(solution, tree=tree, objective=objective, lower_bound=objective - solution.gap)
    return Answer(solution, means, no_split_fits(problem))


def _losses(data: EncodedData, k: int, sign: int) -> np.ndarray:
    """Losses (rows, K) of the k-th file, as a fit in memory has them."""
    rows, K = data.rows(k), len(data.labels)
    if rows.classes is None:
        return sign * rows.numbers[:K].T
    return (rows.classes[:, None] != np.arange(K)) * data.weights(rows)[:, None]


def _thinned(data: EncodedData, used: list[int]) -> bool:
    """Whether one of the features that trees may split on keeps quantiles only."""
    return any(data.coded[f].feature in data.thinned for f in used)


def _only(binned: BinnedData, features: set[int], exact: bool) -> BinnedData:
    """The columns of some features."""
    kept = [k for k, column in enumerate(binned.columns) if column.feature in features]
    columns = tuple(binned.columns[k] for k in kept)
    return replace(binned, codes=binned.codes[kept], n_bins=binned.n_bins[kept], columns=columns, exact=exact)


def _as_coded(data: EncodedData, splits: list[tuple[int, int]]) -> Splits:
    """Cuts of columns as cuts of coded features."""
    places = [(f, k) for f, each in enumerate(data.coded) for k in range(len(each.columns))]
    out: Splits = []
    for column, cut in splits:
        if column < 0:
            out.append((-1, 0))
        else:
            f, k = places[column]
            out.append((f, data.coded[f].cuts.index((k, cut))))
    return out


def solve_by_tables(streams: Streams, question: Question, most: float = MOST_BYTES) -> Answer:
    """Find the best tree by tables, which take ``most`` bytes at most."""
    data, used, clock = streams.data, streams.used, streams.clock
    compile_seconds = load_kernels(streamed_kernels(data.dtype.name))
    clock.start += compile_seconds  # compiling is no search
    exponent = data.relative.exponent
    penalty = min(question.leaf_penalty, 2.0 * data.relative.total)
    minima = np.array([question.min_leaf] * streams.counted, dtype=np.int64)
    rules = TableRules(len(data.labels) - 1, minima, round(float(np.ldexp(penalty, exponent))))
    depth = _depth(question) or 0
    if len(used) == 0 or len(data.labels) == 1 or depth == 0:
        depth, room = 0, 0.0
    else:
        room = min(most / 2, most - _bytes_of_tables(streams, depth, most))
    allowed = set(question.places(data, question.root_features))
    roots = [k for k, f in enumerate(used) if f in allowed]
    found: dict[str, Any] = {"splits": [(-1, 0)], "status": Status.OPTIMAL, "value": None, "no_split_fits": False}

    def search() -> None:
        try:
            if depth:
                tree = search_tables(streams, rules, depth, roots, room)
                found.update({name: getattr(tree, name) for name in found})
        except Stopped as stop:
            found.update(status=stop.status)

    clock.watch(search)
    if question.min_leaf > data.n_rows or (found["value"] is not None and found["value"] >= FEASIBLE):
        found.update(status=Status.INFEASIBLE, splits=[(-1, 0)])
    splits = [(f if f < 0 else used[f], t) for f, t in found["splits"]]
    tree, objective, means = grown(streams, splits, question.leaf_penalty)
    status, gap = found["status"], 0.0
    if status is Status.OPTIMAL:
        status = Status.OPTIMAL_GIVEN_GUESSES if _thinned(data, used) else Status.OPTIMAL
    elif status is not Status.INFEASIBLE:
        total = float(tree.value[0, 0])
        least = total + data.relative.to_float(streams.least()) + question.leaf_penalty
        gap = max(0.0, objective - least)
    counters: dict[str, int | float] = {"read_rows": streams.read_rows}
    found_tree = Solution(tree, objective, objective - gap, status, clock.seconds(), data.resolution, counters)
    return Answer(replace(found_tree, compile_seconds=compile_seconds), means, found["no_split_fits"])


def _bytes_of_tables(streams: Streams, depth: int, most: float) -> float:
    """Memory for tables and what is made of them; refused if it is more than ``most``, before anything is read."""
    features, cell, jobs = streams.features, 8 * streams.n_values, streams.n_jobs
    codes, cuts = np.array([[f.n_codes, len(f.cuts)] for f in features], dtype=np.float64).T
    pairs, left = (
        cell * (sizes.sum() ** 2 + (sizes**2).sum()) / 2 for sizes in (codes, cuts)
    )  # by codes, left of cuts
    need = (jobs + 1) * pairs + left
    if depth == 3:
        longest = [(int(n), int(m)) for n, m in zip(codes, cuts, strict=True)]  # a path may ask thrice
        below = max(bytes_below(*each, streams.n_values) for each in longest)
        need += 2 * (jobs + 1) * pairs + left + 32 * cuts.sum() ** 2 + below
    if need > most:
        raise InputError(
            f"Trees of depth {depth} on these features need tables of about {need / 1e9:.3g} GB, more than "
            f"{most / 1e9:.3g} GB; encode with a smaller max_bins, name fewer split_features, or raise memory_limit."
        )
    return float(need)


def grown(streams: Streams, splits: Splits, leaf_penalty: float) -> tuple[Tree, float, np.ndarray]:
    """The tree of splits, sibling leaves with the same action made one, with exact sums; its objective; nodes' means.

    ``splits``: (place among all coded features, cut) in preorder. Means (nodes, K) are those of rewards, or shares of
    classes. Of the same splits and rows, all are what a fit in memory makes of them, to the last bit.
    """
    data = streams.data
    load_kernels(streamed_kernels(data.dtype.name))
    feature = np.array([f for f, _ in splits], dtype=np.int64)
    right = right_children(feature.tolist())
    children = np.vstack([np.arange(1, len(splits) + 1), right])
    widest = max((c.n_codes for c in data.coded), default=1)
    goes_left = np.zeros((len(splits), widest), np.uint8)
    masks = {f: data.coded[f].goes_left() for f, _ in splits if f >= 0}
    for node, (f, t) in enumerate(splits):
        if f >= 0:
            goes_left[node, : data.coded[f].n_codes] = masks[f][t]
    found = streams.leaves(feature, goes_left, children)
    kept = _with_rows(feature, right, sums_of_nodes(feature, right, found.counts[feature < 0]))
    first = np.cumsum([0, *(len(each.columns) for each in data.coded)])  # each feature's first column
    shown = [(-1, 0) if f < 0 else _column(data.coded[f].cuts[t], int(first[f])) for f, t in (splits[k] for k in kept)]
    leaves = [node for node in kept if feature[node] < 0]
    values, weights = found.values[leaves], found.weights[leaves]
    if data.of_labels:  # giving a class to a row of another one loses the row's weight
        together = ExactSums(np.zeros_like(values.whole), values.exponent) + weights[:, None]
        losses = together + ExactSums(-values.whole, values.exponent)
    else:
        losses = ExactSums(streams.sign * values.whole, values.exponent)
    tree = tree_of_leaves(data.features, data.columns, shown, losses, found.counts[leaves])
    column = np.array([column for column, _ in shown])
    right = right_children(column.tolist())
    of_nodes = [
        ExactSums(sums_of_nodes(column, right, sums.whole)[tree.kept], sums.exponent).to_float()
        for sums in (values, weights)
    ]
    objective = tree.objective(leaf_penalty)
    return tree.tree, objective, of_nodes[0] / of_nodes[1][:, None]


def _column(cut: tuple[int, int], first: int) -> tuple[int, int]:
    """A cut of a feature as one of its columns, of which the first has this number."""
    return first + cut[0], cut[1]


def _with_rows(feature: np.ndarray, right: np.ndarray, counts: np.ndarray) -> list[int]:
    """Nodes that stay, in preorder, where questions are left out that all rows answer alike."""
    kept: list[int] = []
    stack = [0]
    while stack:
        node = stack.pop()
        if feature[node] < 0:
            kept.append(node)
            continue
        low, high = node + 1, int(right[node])
        if counts[low] and counts[high]:
            kept.append(node)
            stack += [high, low]
        else:
            stack.append(low if counts[low] else high)
    return kept
