"""Ours and the peers behind one interface: what each can state, how it is called, what it says of its answer.

A peer's ``refuses`` gives the reason why it cannot state a case; ``prepare`` turns the arrays into what it takes (not
timed: no peer pays for our copies), ``fit`` is timed, ``read`` gives an :class:`Answer`. Modules load when used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

import numpy as np
from cases import Arrays, Case

MOST_COLUMNS = 4_000  # binary columns a peer is asked to take
MOST_CELLS = 500_000_000  # binary columns times rows: two gigabytes of C integers


@dataclass(frozen=True)
class Answer:
    """Decisions and claims of a fitted model.

    Attributes
    ----------
    actions : ndarray of shape (n,), int
        Action or class of every training row.
    n_leaves : int
    proved : bool
        Whether the solver says that no tree is better.
    claimed : float or None
        The objective by the solver's own account, in the unit of the tables.
    lower_bound : float or None
        Its bound on the objective, in the same unit.
    search_seconds : float or None
        Time of the search alone, by the solver's own account.
    """

    actions: np.ndarray
    n_leaves: int
    proved: bool
    claimed: float | None = None
    lower_bound: float | None = None
    search_seconds: float | None = None


def binary_columns(X: np.ndarray) -> np.ndarray:
    """Every threshold of every feature as a 0/1 column, int32: ``x > t``."""
    columns = [x > t for x in X.T for t in np.unique(x)[:-1]]
    return np.column_stack(columns).astype(np.int32) if columns else np.zeros((len(X), 1), np.int32)


def too_many_columns(arrays: Arrays) -> str | None:
    """Why a peer that takes binary features is not tried."""
    count = sum(len(np.unique(x)) - 1 for x in arrays.X.T)
    if count > MOST_COLUMNS or count * len(arrays.X) > MOST_CELLS:
        return f"binary features only; every threshold makes {count:,} columns of {len(arrays.X):,} rows"
    return None


class Ours:
    """The direct solver, binning included."""

    name, package = "policytree", "policytree"

    def refuses(self, case: Case, arrays: Arrays) -> str | None:
        """Nothing."""
        return None

    def prepare(self, case: Case, arrays: Arrays):
        """The arrays as they are."""
        return arrays

    def fit(self, case: Case, arrays: Arrays, time_limit: float):
        """Bin and search."""
        from policytree.problem.types import Problem, SearchLimits
        from policytree.solvers import solve_direct
        from policytree.solvers.core.binning import bin_matrix

        price = case.penalty * len(arrays.X)
        problem = Problem(bin_matrix(arrays.X), arrays.losses, price, case.depth)
        return solve_direct(problem, SearchLimits(time_limit=time_limit, n_jobs=case.n_jobs))

    def read(self, case: Case, arrays: Arrays, solution) -> Answer:
        """Follow the returned tree on the features as given."""
        tree = solution.tree
        scale = len(arrays.X) if case.unit == "penalized" else case.sign
        return Answer(
            tree.action[tree.apply(arrays.X)],
            tree.n_leaves,
            solution.status.name == "OPTIMAL",
            solution.objective / scale,
            solution.lower_bound / scale,
            solution.seconds,
        )


class STreeD:
    """pystreed: accuracy, accuracy with a price per split, or costs per row (regrets, since it needs costs >= 0)."""

    name, package = "STreeD", "pystreed"

    def refuses(self, case: Case, arrays: Arrays) -> str | None:
        """Say why the solver has no task for a case; None if it has one."""
        if case.depth is None:
            return "needs a depth limit"
        if case.penalty and arrays.weights is not None:
            return "no costs per row with a leaf penalty"
        return too_many_columns(arrays)

    def prepare(self, case: Case, arrays: Arrays):
        """Binary columns with labels, or with a vector of regrets per row."""
        X = binary_columns(arrays.X)
        if arrays.labels is not None and arrays.weights is None:
            return X, arrays.labels
        from pystreed.data import CostVector

        regrets = arrays.losses - arrays.losses.min(axis=1, keepdims=True)
        return X, [CostVector(row) for row in regrets]

    def fit(self, case: Case, prepared, time_limit: float):
        """One of three tasks."""
        from pystreed import STreeDClassifier, STreeDInstanceCostSensitiveClassifier

        X, y = prepared
        given = {"max_depth": case.depth, "time_limit": time_limit}
        if isinstance(y, list):
            return STreeDInstanceCostSensitiveClassifier(**given).fit(X, y)
        if case.penalty:
            return STreeDClassifier("cost-complex-accuracy", cost_complexity=case.penalty, **given).fit(X, y)
        return STreeDClassifier("accuracy", **given).fit(X, y)

    def read(self, case: Case, arrays: Arrays, model) -> Answer:
        """Its own predictions on its own columns; it states a sum of regrets, an accuracy, or neither."""
        actions = model.predict(model.train_X_)
        claimed = None
        if arrays.labels is None or arrays.weights is not None:
            regret = model.fit_result.score()  # a sum, unlike the accuracy below
            claimed = case.sign * (regret + float(arrays.losses.min(axis=1).sum()))
        elif not case.penalty:
            claimed = (1.0 - model.fit_result.score()) * len(arrays.X)
        return Answer(actions, model.get_n_leaves(), bool(model.fit_result.is_optimal()), claimed)


class ConTree:
    """pycontree: unweighted accuracy on continuous features, with a price per split if asked."""

    name, package = "ConTree", "pycontree"

    def refuses(self, case: Case, arrays: Arrays) -> str | None:
        """Say why the solver has no argument for a case; None if it has one."""
        if arrays.labels is None:
            return "labels only"
        if arrays.weights is not None:
            return "no weights"
        return "needs a depth limit" if case.depth is None else None

    def prepare(self, case: Case, arrays: Arrays):
        """Features and labels as they are."""
        return arrays

    def fit(self, case: Case, arrays: Arrays, time_limit: float):
        """Search with no gap allowed."""
        from pycontree import ConTree as Model

        model = Model(max_depth=case.depth, complexity_cost=case.penalty, max_gap=0, time_limit=time_limit)
        return model.fit(arrays.X, arrays.labels)

    def read(self, case: Case, arrays: Arrays, model) -> Answer:
        """Its predictions; whether it kept its limit is all it says."""
        kept = bool(model._config.is_within_time_limit())
        return Answer(model.predict(arrays.X), model.get_num_leaf_nodes(), kept)


class GOSDT:
    """gosdt: unweighted accuracy with a leaf penalty on binary features, with or without a depth limit."""

    name, package = "gosdt", "gosdt"

    def refuses(self, case: Case, arrays: Arrays) -> str | None:
        """Say why the solver has no argument for a case; None if it has one."""
        if arrays.labels is None:
            return "labels only"
        if arrays.weights is not None:
            return "no weights per row"
        if not case.penalty:
            return "needs a leaf penalty of at least 1 / n"
        return too_many_columns(arrays)

    def prepare(self, case: Case, arrays: Arrays):
        """Boolean columns and labels."""
        return binary_columns(arrays.X).astype(bool), arrays.labels

    def fit(self, case: Case, prepared, time_limit: float):
        """One worker, whole seconds."""
        from gosdt import GOSDTClassifier

        limit = max(1, math.ceil(time_limit))
        model = GOSDTClassifier(
            regularization=case.penalty, depth_budget=case.depth, time_limit=limit, worker_limit=case.n_jobs
        )
        return model.fit(*prepared)

    def read(self, case: Case, arrays: Arrays, model) -> Answer:
        """Its tree followed here: ``predict`` of the classifier fails with recent scikit-learn."""
        from gosdt._libgosdt import Status

        X = binary_columns(arrays.X).astype(bool)
        actions = np.zeros(len(X), np.intp)
        leaves = 0
        open_nodes = [(model.trees_[0].tree, np.arange(len(X)))]
        while open_nodes:
            node, rows = open_nodes.pop()
            if hasattr(node, "prediction"):
                actions[rows] = model.classes_[node.prediction]
                leaves += 1
                continue
            true = X[rows, node.feature]
            open_nodes += [(node.left_child, rows[true]), (node.right_child, rows[~true])]
        result = model.result_
        proved = result.status == Status.CONVERGED
        return Answer(actions, leaves, proved, result.upperbound, result.lowerbound, result.time)


class DL85:
    """pydl8.5: accuracy on binary features, weighted or not."""

    name, package = "DL8.5", "pydl8.5"

    def refuses(self, case: Case, arrays: Arrays) -> str | None:
        """Say why the solver has no argument for a case; None if it has one."""
        if arrays.labels is None:
            return "labels only, without a slow Python error function"
        if case.penalty:
            return "no leaf penalty"
        return "needs a depth limit" if case.depth is None else too_many_columns(arrays)

    def prepare(self, case: Case, arrays: Arrays):
        """Binary columns, labels, and weights as a list."""
        return binary_columns(arrays.X), arrays.labels, None if arrays.weights is None else arrays.weights.tolist()

    def fit(self, case: Case, prepared, time_limit: float):
        """Whole seconds; the features are kept for reading."""
        from pydl85 import DL85Classifier

        X, labels, weights = prepared
        model = DL85Classifier(max_depth=case.depth, time_limit=max(1, math.ceil(time_limit)))
        return model.fit(X, labels, sample_weight=weights), X

    def read(self, case: Case, arrays: Arrays, fitted) -> Answer:
        """Its predictions; its error is in single precision."""
        model, X = fitted
        if model.tree_ is None:
            raise RuntimeError("no tree within the time limit")
        actions = np.asarray(model.predict(X), dtype=np.intp)
        return Answer(actions, (model.size_ + 1) // 2, not model.timeout_, model.error_)


class EconML:
    """EconML's PolicyTree: greedy, so its objective is of interest and its time is no rival's."""

    name, package = "EconML greedy", "econml"

    def refuses(self, case: Case, arrays: Arrays) -> str | None:
        """Only rewards are put to it."""
        return None if arrays.labels is None else "rewards only"

    def prepare(self, case: Case, arrays: Arrays):
        """Rewards."""
        return arrays.X, -arrays.losses

    def fit(self, case: Case, prepared, time_limit: float):
        """Without the honest split and the balance that its defaults ask for."""
        from econml.policy import PolicyTree

        model = PolicyTree(
            max_depth=case.depth,
            honest=False,
            min_samples_split=2,
            min_samples_leaf=1,
            min_balancedness_tol=0.5,
            random_state=0,
        )
        return model.fit(*prepared)

    def read(self, case: Case, arrays: Arrays, model) -> Answer:
        """Its predictions; it proves nothing."""
        return Answer(np.asarray(model.predict(arrays.X), dtype=np.intp), int(model.get_n_leaves()), False)


PEERS = {peer.name: peer for peer in (Ours(), STreeD(), ConTree(), GOSDT(), DL85(), EconML())}
MODULES = {"pydl8.5": "pydl85"}  # packages whose module has another name


def version(peer) -> str | None:
    """Installed version, None if there is none."""
    if find_spec(MODULES.get(peer.package, peer.package)) is None:
        return None
    try:
        return metadata.version(peer.package)
    except metadata.PackageNotFoundError:
        return "a checkout"
