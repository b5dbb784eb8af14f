"""LowCostTreeClassifier: accurate trees whose tests cost little on the way to a leaf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import check_choice, check_count, is_real, sorted_labels
from policytree.data.features import CATEGORICAL
from policytree.estimators.classifier import ClassPredictions, label_codes, label_column
from policytree.estimators.inputs import (
    check_number,
    check_seed,
    column_costs,
    column_numbers,
    payment_groups,
    weigh,
)
from policytree.exceptions import InputError, quoted
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.test_costs.grow import (
    CRITERIA,
    SPLIT_RULES,
    CostObjects,
    CostTests,
    GreedyRules,
    GreedyTree,
    grow,
    merged_objects,
    with_multiway,
)
from policytree.solvers.test_costs.guarantee import approximation_factor
from policytree.solvers.test_costs.pruning import prune
from policytree.solvers.test_costs.to_binary_tree import binary_tree

#: The algorithms compared by Zhang and Gionis (2022), as settings; with the prefix p they are pruned.
NAMED_RULES: dict[str, dict[str, Any]] = {
    "EC4.5": {"criterion": "entropy"},
    "ECART": {"criterion": "gini"},
    "ASR": {"complexity_weight": 0.0},
    "IP": {"split_rule": "impure_pairs"},
    "BAL": {"split_rule": "balance"},
    "C4.5": {"split_rule": "impurity", "criterion": "entropy"},
    "CART": {"split_rule": "impurity", "criterion": "gini"},
    "CC4.5": {"split_rule": "impurity_per_cost", "criterion": "entropy"},
    "CCART": {"split_rule": "impurity_per_cost", "criterion": "gini"},
}
STRENGTHS = np.logspace(-5, 0, 11)  # of pruning, among which cross-validation chooses


@dataclass(eq=False, repr=False)
class LowCostTreeClassifier(ClassPredictions):
    """A classification tree that is accurate and whose tests cost little on the way to a leaf.

    Grown greedily by regularized impurity reduction: at every node the test with the largest (balance + efficiency +
    ``complexity_weight`` * impurity reduction) / cost. The first two terms keep the expected cost within a logarithmic
    factor of the least possible one; the third makes the tree accurate. For a proof of optimality at a small depth, see
    ``OptimalTreeClassifier(feature_costs=..., repeated_features="free")``.

    Parameters
    ----------
    feature_costs : mapping of column name or position to cost, or array-like of shape (p,), optional
        Cost of knowing a column, in any unit. Columns that a mapping leaves out are free. None: every column
        costs 1, so that ``expected_cost_`` is a number of tests.
    criterion : {"entropy", "gini"}, default "entropy"
        The impurity; entropy in bits.
    complexity_weight : float, default 10
        The paper's lambda: the weight of the impurity reduction beside the terms that keep the tree cheap. 0 is
        adaptive submodular ranking (ASR); the larger, the nearer to impurity reduction per cost.
        :func:`policytree.choose_complexity_weight` finds it by validation rows.
    min_probability : float, default 0.005
        The paper's theta: a node with this share of the weight or less is a leaf.
    repeated_features : {"free", "charged"}, default "free"
        Whether a column that was measured on the path may be split on again for nothing. In the score a free test
        counts as the cheapest one: else it would win however little it tells.
    feature_groups : mapping of names to lists of columns, or list of such lists, optional
        Columns that are measured together, such as the values of one blood sample: only the first on a path is paid
        for, at its own cost.
    split_rule : {"regularized", "impurity", "impurity_per_cost", "impure_pairs", "balance"}, default "regularized"
        Criterion of a good test. The others are the methods of comparison: C4.5 and CART, the same divided by cost, the
        reduction of pairs of objects of different classes (IP), and the most even split (BAL). See :meth:`named`.
    categorical_tests : {"one_vs_rest", "multiway"}, default "one_vs_rest"
        Whether a test of a text column asks for one category, or sends every category its own way (missing values too).
    ccp_alpha : float or "cv", default 0
        Strength of minimal cost-complexity pruning, as in scikit-learn: the price of a leaf beside the leaves' summed
        impurity. "cv" chooses among 11 strengths from 1e-5 to 1 by cross-validated accuracy, the strongest on ties.
    cv : int, cross-validation generator or list of splits, default 5
        Folds for ``ccp_alpha="cv"``, as in scikit-learn; a number's folds hold equal shares of every class.
    min_distinct_split : int, default 2
        Fewest distinct rows that a node needs in order to be split.
    max_depth : int or None
        Largest number of tests on a path.
    max_bins : int or None, default 256
        Most distinct values a numeric column keeps, 2 to 65,536: longer ones keep the thresholds nearest to quantiles.
        None keeps every threshold, up to 65,535.
    split_features : list of column names or positions, optional
        The columns that the tree may split on.
    random_state : int, RandomState or None
        Seed of the folds; used by ``ccp_alpha="cv"`` only.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted.
    tree_ : Tree
        A multi-way test stands there as a chain of questions on its column, of which the first is paid for.
    expected_cost_ : float
        Mean cost of the tests on the path of a training row, by weight. See :meth:`measurement_cost` for new rows.
    node_costs_ : ndarray of shape (node_count,)
        Cost of every node's question for those who reach it.
    node_values_ : ndarray of shape (node_count, K)
        Weighted share of every class in every node.
    approximation_factor_ : float
        The expected cost is at most so many times that of the cheapest tree with leaves as pure (Theorem 1 of the paper
        with the constants of its proof; large, and about growth). NaN where the theorem does not apply; see
        :func:`policytree.solvers.test_costs.guarantee.approximation_factor`. It holds before pruning, which only lowers
        costs.
    ccp_alpha_ : float
        Strength of the pruning that was done.
    n_distinct_rows_ : int
        Rows that some test tells apart.

    Notes
    -----
    Guangyi Zhang and Aristides Gionis, "Regularized impurity reduction: accurate decision trees with complexity
    guarantees", Data Mining and Knowledge Discovery 2022, Algorithm 1 and Theorem 1. Rows that no test tells apart are
    one object with the class of most of their weight; impurity uses the branches' conditional probabilities (in the
    code published with the paper they are absolute ones). Missing values are allowed: numeric tests send them to the
    better side. Values never seen at fit take the heavier side.

    Examples
    --------
    >>> from policytree import LowCostTreeClassifier
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]] * 5
    >>> y = [0, 0, 1, 1] * 5
    >>> tree = LowCostTreeClassifier({0: 2.0, 1: 1.0}, min_probability=0.0).fit(X, y)
    >>> tree.get_used_features(), tree.expected_cost_
    (['x0'], 2.0)
    """

    feature_costs: Mapping[Any, float] | Sequence[float] | np.ndarray | None = None
    criterion: str = "entropy"
    _: KW_ONLY
    complexity_weight: float = 10.0
    min_probability: float = 0.005
    repeated_features: str = "free"
    feature_groups: Mapping[str, Sequence[str | int]] | Sequence[Sequence[str | int]] | None = None
    split_rule: str = "regularized"
    categorical_tests: str = "one_vs_rest"
    ccp_alpha: float | str = 0.0
    cv: Any = 5
    min_distinct_split: int = 2
    max_depth: int | None = None
    max_bins: int | None = 256
    split_features: Sequence[str | int] | str | int | None = None
    random_state: int | np.random.RandomState | None = None

    @classmethod
    def named(cls, name: str, **arguments: Any) -> Self:
        """An algorithm of the paper by its name.

        Parameters
        ----------
        name : {"EC4.5", "ECART", "ASR", "IP", "BAL", "C4.5", "CART", "CC4.5", "CCART"}, or one of these after "p"
            With the prefix, the tree is pruned by a strength that cross-validation chooses.
        **arguments
            Further arguments of the constructor.
        """
        pruned = name.startswith("p")
        known = NAMED_RULES.get(name.removeprefix("p"))
        if known is None:
            raise InputError(f"There is no algorithm {name!r}; use one of {', '.join(NAMED_RULES)}, perhaps after 'p'.")
        return cls(**{**known, **({"ccp_alpha": "cv"} if pruned else {}), **arguments})

    @aligns_rows
    def fit(self, X: Table, y: Column, sample_weight: Column | None = None) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, p)
            Features; text columns are categories, missing values are allowed.
        y : array-like of shape (n,)
            Class labels of any type.
        sample_weight : array-like of shape (n,), optional
            Weights >= 0; a row of weight 0 counts as absent.

        Returns
        -------
        LowCostTreeClassifier
            This estimator, fitted.

        Raises
        ------
        InputError
            If an argument has the wrong shape, type or range; the message names it.
        """
        self._check_arguments()
        encoded = self._table(X, reset=True)
        numbers = np.arange(len(encoded))
        encoded, labels, rows, weight = weigh(encoded, label_column(y, encoded), numbers, sample_weight)
        self.classes_ = sorted_labels(labels)
        codes = label_codes(labels, self.classes_)
        tests, objects, greedy = self._grown(encoded, codes, weight)
        self.ccp_alpha_ = self._strength(encoded, codes, weight, rows)
        pruned = prune(greedy, self.ccp_alpha_, self.criterion) if self.ccp_alpha_ > 0 else greedy
        self.approximation_factor_ = approximation_factor(greedy, tests, objects, self._rules())
        self.n_distinct_rows_ = len(objects.labels)
        self.expected_cost_ = pruned.expected_cost
        view = binary_tree(pruned, tests, encoded, codes, weight, tuple(self.classes_.tolist()))
        self.tree_, self.node_costs_, self.node_values_ = view.tree, view.node_costs, view.class_shares
        return self

    def _check_arguments(self) -> None:
        check_number("complexity_weight", self.complexity_weight, 0)
        check_number("min_probability", self.min_probability, 0)
        if self.min_probability > 1:
            raise InputError(f"min_probability is a share of the weight, 0 to 1; got {quoted(self.min_probability)}.")
        for name, choices in (
            ("criterion", CRITERIA),
            ("split_rule", tuple(SPLIT_RULES)),
            ("categorical_tests", ("one_vs_rest", "multiway")),
        ):
            check_choice(getattr(self, name), name, choices)
        if not (isinstance(self.ccp_alpha, str) and self.ccp_alpha == "cv"):
            if not is_real(self.ccp_alpha):
                raise InputError(f"ccp_alpha must be a finite number >= 0 or 'cv'; got {quoted(self.ccp_alpha)}.")
            check_number("ccp_alpha", self.ccp_alpha, 0)
        if is_real(self.cv):
            check_count(self.cv, "cv", 2)
        check_number("min_distinct_split", self.min_distinct_split, 2, integer=True)
        check_number("max_depth", self.max_depth, 0, integer=True, none=True)
        check_number("max_bins", self.max_bins, 2, integer=True, none=True)
        check_seed(self.random_state)

    def _rules(self) -> GreedyRules:
        return GreedyRules(
            self.split_rule,
            self.criterion,
            self.complexity_weight,
            self.min_probability,
            self.min_distinct_split,
            self.max_depth,
        )

    def _tests(self, X: np.ndarray) -> CostTests:
        """The tests of encoded rows, and what they cost."""
        features = self.encoder_.features
        costs = np.ones(len(features))
        if self.feature_costs is not None:
            given = column_costs("feature_costs", self.feature_costs, features)
            costs = np.zeros(len(features)) if given is None else given
        groups = payment_groups(self.repeated_features, self.feature_groups, True, features)
        splits = column_numbers("split_features", self.split_features, features)
        allowed = range(len(features)) if splits is None else splits
        multiway = self.categorical_tests == "multiway"
        at = tuple(j for j in allowed if multiway and features[j].kind == CATEGORICAL)
        two_way = tuple(j for j in allowed if j not in at)
        data = bin_matrix(X, features, max_bins=self.max_bins, split_on=two_way)
        data, branches = with_multiway(data, X, features, at)
        return CostTests(data, branches, costs, groups)

    def _grown(self, X, codes, weight) -> tuple[CostTests, CostObjects, GreedyTree]:
        tests = self._tests(X)
        objects = merged_objects(tests.data.codes, codes, weight, len(self.classes_))
        return tests, objects, grow(tests, objects, self._rules())

    def _strength(self, X, codes, weight, rows) -> float:
        """Strength of pruning: as given, or the best by cross-validated accuracy; the strongest on ties.

        ``rows`` are the numbers of the rows in the table as given, which splits name.
        """
        if not isinstance(self.ccp_alpha, str):
            return float(self.ccp_alpha)
        if len(codes) < 2:
            raise InputError("ccp_alpha='cv' needs at least two rows, X has 1 sample; give a number.")
        hits = np.zeros(len(STRENGTHS))
        for train, test in _splits(self.cv, codes, rows, self.random_state):
            if not (train.any() and test.any()):
                raise InputError(
                    "cv leaves no rows to train or to test on; use fewer folds, or a number for ccp_alpha."
                )
            tests, _, greedy = self._grown(X[train], codes[train], weight[train])
            view = binary_tree(greedy, tests, X[train], codes[train], weight[train], tuple(self.classes_.tolist()))
            reached = view.tree.rows_of_nodes(X[test])
            hit = [weight[test][r] @ (codes[test][r] == k) for r, k in zip(reached, view.tree.action, strict=True)]
            of_node = np.array(hit)[view.places]
            for at, strength in enumerate(STRENGTHS):
                pruned = prune(greedy, strength, self.criterion)
                hits[at] += of_node[pruned.is_leaf & pruned.reached()].sum()
        best = hits.max()
        return float(STRENGTHS[np.flatnonzero(hits >= best - 1e-12 * best)[-1]])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.ccp_alpha == "cv" and self.random_state is None
        return tags


def _splits(cv, codes: np.ndarray, rows: np.ndarray, random_state) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Masks of training and test rows: classes dealt out to folds in random order, or splits as given."""
    if is_real(cv):
        order = check_random_state(random_state).permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        fold = np.empty(len(codes), dtype=np.int64)
        fold[order] = np.arange(len(codes)) % min(int(cv), len(codes))
        for k in range(fold.max() + 1):
            yield fold != k, fold == k
        return
    from sklearn.model_selection import check_cv  # takes a third of a second

    for train, test in check_cv(cv).split(codes, codes):
        yield np.isin(rows, train), np.isin(rows, test)
