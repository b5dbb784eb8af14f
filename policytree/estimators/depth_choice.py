"""How deep a policy tree may be, and what a leaf costs: chosen by the cross-validated value of trees."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from policytree.constraints.checks import limits_tests
from policytree.data.views import Shown
from policytree.estimators.inputs import check_number
from policytree.estimators.leaf_sizes import AUTO
from policytree.exceptions import InputError, quoted
from policytree.problem.types import Status
from policytree.weighting.cluster_robust import mean_and_influence, n_units, variance_of_mean

if TYPE_CHECKING:
    import pandas as pd

    from policytree.constraints.people import Limited
    from policytree.model_selection.folds import FoldPlan

DEEPEST = 3
PRICE = 0.25  # of a leaf, in standard errors of the mean difference between two arms' rewards
N_FOLDS, REPEATS = 5, 2
STABLE_REPEATS = 4  # of the folds that say which columns recur: ten trees cannot tell nine of ten from all
COARSE_BINS = 32  # values of a covariate in the trees that are compared: they are many, and are not shown
LEAST_GAIN = 1.0  # of a tree over the best treatment for all, in its standard errors
CLOSE = 0.5  # standard errors of the difference, within which the smaller depth is preferred
RECURS = 0.9  # share of the trees of the folds that ask about a column, from which on it is stable
WITHIN = 0.25  # standard errors of the difference, within which fewer leaves on stable columns are preferred


def check_number_or_auto(name: str, value: Any, *, integer: bool = False, none: bool = False, least: int = 0) -> None:
    """Refuse what is neither "auto" nor a number from ``least`` on, in one sentence."""
    if isinstance(value, str):
        if value != AUTO:
            what = f"{'an integer' if integer else 'a finite number'} >= {least}"
            raise InputError(f"{name} must be {what}, {AUTO!r}{' or None' if none else ''}; got {quoted(value)}.")
        return
    check_number(name, value, least, integer=integer, none=none)


def of_chosen_size(estimator: Any) -> Any:
    """A clone with numbers in place of "auto": those that the estimator chose when it was fitted.

    Raises
    ------
    InputError
        If it was not fitted.
    """
    first = clone(estimator)
    searched = getattr(estimator, "policy_tree_", estimator)
    for name in ("max_depth", "regularization", "max_leaf_nodes", "min_samples_leaf", "min_samples_per_treatment"):
        unsaid = (AUTO, None) if name == "regularization" else (AUTO,)
        if getattr(first, name, 0) not in unsaid:
            continue
        value = getattr(searched, name)  # of the tree inside, whose smallest leaves and default price are settled
        if value == AUTO or value is None:
            if not hasattr(searched, f"{name}_"):
                raise InputError(f"{name}='auto' is chosen by fit: fit the estimator first, or give a number.")
            value = getattr(searched, f"{name}_")
        first.set_params(**{name: value})
    if (choice := getattr(searched, "depth_choice_", None)) is not None and choice.stable_columns is not None:
        first.set_params(split_features=choice.stable_columns)
    return first


Size = tuple[int, int | None]  # of a tree: most questions on a path, most leaves


@dataclass(frozen=True, slots=True)
class RewardRows:
    """Rows that a policy tree is learnt from, those of weight 0 left out.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Encoded.
    losses : ndarray of shape (n, K)
        Losses of every arm, net of treatment costs: rewards, turned so that less is better.
    weight : ndarray of shape (n,)
    arms : ndarray of shape (n,), int, or None
        The arm each row received, where leaves must hold rows of every arm.
    limited : Limited or None
        Quantities that budget and limits bound.
    groups : ndarray of shape (n,), int, or None
        Clusters.
    judging : ndarray of shape (n, K), or None
        Losses of every arm by the rewards that judge trees on rows they were not learnt from; None: ``losses``.
    """

    X: np.ndarray
    losses: np.ndarray
    weight: np.ndarray
    arms: np.ndarray | None = None
    limited: Limited | None = None
    groups: np.ndarray | None = None
    judging: np.ndarray | None = None

    def part(self, rows: np.ndarray) -> RewardRows:
        """Some of the rows."""
        others: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[rows]
            for name in ("arms", "groups", "judging")
        }
        others["limited"] = None if self.limited is None else self.limited.part(rows)
        return replace(self, X=self.X[rows], losses=self.losses[rows], weight=self.weight[rows], **others)

    def price(self) -> float:
        """A price of a leaf that hinders splits which gain no more than by chance.

        A quarter of the standard error of a mean difference between two arms' losses: the root of twice the sum of
        ``w^2`` times the variance within rows, over the sum of ``w``. Losses and weights come in as their products, as
        they must where rows of a study stand for next to nobody and lose accordingly much
        (:mod:`policytree.weighting.target_population`).
        """
        n_arms = self.losses.shape[1]
        if n_arms < 2:
            return 0.0
        off = self.weight[:, None] * (self.losses - self.losses.mean(axis=1, keepdims=True))
        return PRICE * float(np.sqrt(2.0 * (off**2).sum() / (n_arms - 1)) / self.weight.sum())


@dataclass(frozen=True, eq=False, repr=False)
class DepthChoice(Shown):
    """How the depth of a policy tree was chosen.

    Attributes
    ----------
    table : DataFrame
        One row a depth: ``max_depth``, ``n_leaves`` (mean over the folds), ``value`` (mean reward, net of costs, of
        rows that had no part in the trees), ``gain`` (the value less that of the best treatment for all, or its
        negative where less is better) with ``standard_error``, and ``chosen``. Depth 0 is the best treatment for all
        on all rows.
    n_folds, n_repeats : int
        Of the cross-validation.
    regularization : float
        The price of a leaf, of these trees and the one that is searched.
    leaves : DataFrame or None
        Where the fewest leaves were asked for and a tree was chosen, a row for every number of leaves that a tree of
        that depth on stable columns may have at most: ``max_leaf_nodes``, ``value``, ``behind`` (the best of them less
        this one, or its negative where less is better) with ``standard_error``, and ``chosen``.
    columns : DataFrame or None
        Beside ``leaves``, a row for every column that a tree of that depth asked about in some fold: ``column``, the
        ``share`` of folds, and whether it is ``stable``, so that the tree may ask about it.
    """

    table: pd.DataFrame
    n_folds: int
    n_repeats: int
    regularization: float
    leaves: pd.DataFrame | None = None
    columns: pd.DataFrame | None = None

    @property
    def stable_columns(self) -> list[str] | None:
        """The columns that the tree may ask about, where the fewest leaves were asked for; None: all."""
        return None if self.columns is None else self.columns.loc[self.columns["stable"], "column"].tolist()

    @property
    def in_words(self) -> str:
        """Name the columns that the tree may ask about, the share of trees that did beside those below nine of ten."""
        assert self.columns is not None
        stable = self.columns[self.columns["stable"]]
        return ", ".join(
            f"{name}{'' if share >= RECURS else f' (in {100 * share:.0f} of 100)'}"
            for name, share in zip(stable["column"], stable["share"], strict=True)
        )

    @property
    def max_depth(self) -> int | None:
        """The depth that was chosen."""
        return self.table.loc[self.table["chosen"], "max_depth"].item()

    @property
    def max_leaf_nodes(self) -> int | None:
        """The most leaves, where the fewest were asked for; None if that limits nothing."""
        return None if self.leaves is None else self.leaves.loc[self.leaves["chosen"], "max_leaf_nodes"].item()

    def __str__(self) -> str:
        depths = self.table["max_depth"].tolist()
        text = (
            f"depth {self.max_depth} of {depths[0]} to {depths[-1]}, chosen by {self.n_folds}-fold cross-validated "
            f"value, {self.n_repeats} times"
        )
        if self.stable_columns is not None:
            text += (
                f"; at most {self.max_leaf_nodes} leaves that ask about {' or '.join(self.stable_columns)} only, by "
                f"the trees of {STABLE_REPEATS} times {self.n_folds} folds"
            )
        return text


def choose_depth(estimator: Any, rows: RewardRows) -> DepthChoice:
    """Choose the depth by the value that trees have on rows they were not learnt from.

    Trees of depth one to three are learnt on all folds but one and judged on that one, in two repetitions of five
    folds, by ``rows.judging``: predictions of outcomes, from which trees may learn, have none of the outcomes' noise.
    Covariates keep at most 32 values, and the smallest leaves shrink with the rows. The best treatment for all is
    chosen, and judged, on all rows, which flatters it: a tree has to gain more than a standard error over it. Among
    trees, the smallest is taken that is within half a standard error of the best. Where ``max_leaf_nodes`` is "auto",
    trees of that depth on the folds of four repetitions say which columns are stable: those that nine of ten ask about
    or, where there are none, the one that most ask about.
    Trees that ask about no others are then judged in the same folds by their number of leaves, and the fewest leaves
    are taken that are within a quarter of a standard error of the best of them.

    Parameters
    ----------
    estimator : PolicyTree
        Not fitted but for its encoder and treatments; its ``max_depth`` is "auto". Its ``random_state`` draws the
        folds.
    rows : RewardRows

    Returns
    -------
    DepthChoice

    Raises
    ------
    InputError
        If there are fewer than two rows or clusters, or no tree keeps to budget and shares; with the fewest leaves, if
        none does that asks about stable columns only.
    KeyboardInterrupt
        On Ctrl-C: there is no tree yet.
    """
    import pandas as pd

    price = estimator.regularization_ if estimator.regularization == AUTO else estimator.regularization
    rng = check_random_state(estimator.random_state)
    plans = [_folds(rows, rng) for _ in range(REPEATS)]
    depths = [*range(1, DEEPEST + 1)]
    most = None if estimator.max_leaf_nodes == AUTO else estimator.max_leaf_nodes
    scores, n_leaves, asked = held_out_scores(estimator, rows, [(depth, most) for depth in depths], price, plans)
    constant = _best_for_all(estimator, rows)
    if constant is not None:
        depths, n_leaves, scores = [0, *depths], np.array([1.0, *n_leaves]), np.vstack([constant, scores])
    possible = np.flatnonzero(np.isfinite(n_leaves))
    values = [mean_and_influence(scores[i], rows.weight)[0] for i in possible]
    gains = [_mean(scores[i] - scores[possible[0]], rows) for i in possible]
    trees = [k for k, i in enumerate(possible) if depths[i] > 0]
    chosen = 0
    if trees:
        best = max(trees, key=lambda k: values[k])
        if depths[possible[0]] > 0 or gains[best][0] > LEAST_GAIN * gains[best][1]:
            behind = (_mean(scores[possible[best]] - scores[possible[k]], rows) for k in trees)
            chosen = next(k for k, (lead, error) in zip(trees, behind, strict=True) if lead <= CLOSE * error)
    sign = 1.0 if estimator.direction == "maximize" else -1.0
    table = {
        "max_depth": [depths[i] for i in possible], "n_leaves": n_leaves[possible], "value": sign * np.array(values),
        "gain": [gain for gain, _ in gains], "standard_error": [error for _, error in gains],
        "chosen": np.arange(len(possible)) == chosen,
    }  # fmt: skip
    choice = DepthChoice(pd.DataFrame(table), plans[0].n_folds, REPEATS, float(price))
    depth = choice.max_depth
    if estimator.max_leaf_nodes != AUTO or not depth:
        return choice
    further = [_folds(rows, rng) for _ in range(STABLE_REPEATS - REPEATS)]
    again = held_out_scores(estimator, rows, [(depth, None)], price, further)[2][0]
    shares = np.average([asked[depth - 1], again], axis=0, weights=[len(plans), len(further)])
    choice = replace(choice, columns=_stable_columns(estimator, shares))
    stable = _like(estimator, split_features=choice.stable_columns)
    try:
        return replace(choice, leaves=_fewest_leaves(stable, rows, depth, price, [*plans, *further]))
    except InputError as error:
        raise InputError(
            f"max_leaf_nodes='auto' lets trees ask only about {' or '.join(choice.stable_columns or ())}, and then: "
            f"{error} Or give max_leaf_nodes a number."
        ) from error


def _stable_columns(estimator: Any, share: np.ndarray) -> pd.DataFrame:
    """Table of the columns that the folds' trees ask about, by the share (p,) of trees that do."""
    import pandas as pd

    # At least one column, which recurs most; what a search must begin with is asked about however rarely.
    stable = share >= min(RECURS, share.max())
    stable[list(estimator._column_arguments(estimator.encoder_.features)[3] or ())] = True
    shown = np.flatnonzero((share > 0.0) | stable)
    names = [estimator.encoder_.features[j].name for j in shown]
    return pd.DataFrame({"column": names, "share": share[shown], "stable": stable[shown]})


def _fewest_leaves(
    estimator: Any, rows: RewardRows, depth: int, price: float, plans: Sequence[FoldPlan]
) -> pd.DataFrame:
    """Table of the numbers of leaves of trees of a depth, the fewest within the error of the best marked."""
    import pandas as pd

    numbers = [*range(2, 2**depth + 1)]
    scores, found, _ = held_out_scores(estimator, rows, [(depth, number) for number in numbers], price, plans)
    possible = np.flatnonzero(np.isfinite(found))
    values = [mean_and_influence(scores[i], rows.weight)[0] for i in possible]
    best = possible[int(np.argmax(values))]
    behind = [_mean(scores[best] - scores[i], rows) for i in possible]
    chosen = next(k for k, (lead, error) in enumerate(behind) if lead <= WITHIN * error)
    sign = 1.0 if estimator.direction == "maximize" else -1.0
    return pd.DataFrame({
        "max_leaf_nodes": [numbers[i] for i in possible], "value": sign * np.array(values),
        "behind": [lead for lead, _ in behind], "standard_error": [error for _, error in behind],
        "chosen": np.arange(len(possible)) == chosen,
    })  # fmt: skip


def _mean(scores: np.ndarray, rows: RewardRows) -> tuple[float, float]:
    """Weighted mean of scores and its cluster-robust standard error."""
    mean, influence = mean_and_influence(scores, rows.weight)
    return mean, float(np.sqrt(variance_of_mean(influence, rows.groups, n_units(rows.weight, rows.groups))))


def _best_for_all(estimator: Any, rows: RewardRows) -> np.ndarray | None:
    """Return gains of the best treatment for all, shape (n,); None where none keeps to budget and shares."""
    tree = _candidate(estimator, (0, None), 0.0, 1.0, 1)
    try:
        return -_lost(tree._fit_job(tree._job_of(rows)), rows)
    except InputError:
        return None


def held_out_scores(
    estimator: Any, rows: RewardRows, sizes: Sequence[Size], price: float, plans: Sequence[FoldPlan]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimate the gains of trees for rows that they were not learnt from.

    Parameters
    ----------
    estimator : PolicyTree
    rows : RewardRows
    sizes : sequence of (depth, most leaves or None)
    price : float
        Of a leaf.
    plans : sequence of FoldPlan

    Returns
    -------
    scores : ndarray of shape (m, n)
        For every size, the mean over the plans; larger is better, net of what treatments and questions cost.
    n_leaves : ndarray of shape (m,)
        Mean over the trees; NaN where one cannot keep to budget and shares.
    asked : ndarray of shape (m, p)
        Share of the trees that ask about a column.
    """
    n, p = rows.X.shape
    scores, n_leaves, asked = (np.zeros((len(sizes), *rest)) for rest in ((n,), (), (p,)))
    searches = len(sizes) * sum(plan.n_folds for plan in plans)
    refused = None
    for plan in plans:
        for train, test in plan.splits():
            part, held_out = rows.part(train), rows.part(test)
            for i, size in enumerate(sizes):
                tree = _candidate(estimator, size, price, len(train) / len(rows.X), searches)
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # of gaps, leaves and long searches: none of these is shown
                        tree._fit_job(tree._job_of(part))
                except InputError as error:  # these rows do not allow what all rows may
                    n_leaves[i], refused = np.nan, error
                    continue
                if tree.status_ is Status.INTERRUPTED:
                    raise KeyboardInterrupt
                scores[i, test] -= _lost(tree, held_out) / len(plans)
                n_leaves[i] += tree.tree_.n_leaves / (len(plans) * plan.n_folds)
                asked[i, tree.tree_.used_features] += 1.0
    if refused is not None and not np.isfinite(n_leaves).any():
        raise InputError(f"Choosing the depth by parts of the rows: {refused}") from refused
    return scores, n_leaves, asked / sum(plan.n_folds for plan in plans)


def _lost(tree: Any, rows: RewardRows) -> np.ndarray:
    """Return every row's loss under a tree, as judged, with the price of questions where they are charged."""
    leaves = tree.tree_.apply(rows.X)
    losses = rows.losses if rows.judging is None else rows.judging
    lost = losses[np.arange(len(leaves)), tree.tree_.action[leaves]]
    if limits_tests(tree) or not tree.node_costs_.any():
        return lost
    lost, reached = lost.copy(), tree.tree_.rows_of_nodes(rows.X)
    for node in np.flatnonzero(tree.node_costs_):
        lost[reached[node]] += tree.node_costs_[node]
    return lost


def _candidate(estimator: Any, size: Size, price: float, share: float, searches: int) -> Any:
    """An estimator of one tree on a share of the rows."""
    limit, bins = estimator.time_limit, estimator.max_bins
    return _like(
        estimator,
        max_depth=size[0],
        max_leaf_nodes=size[1],
        regularization=price,
        max_bins=COARSE_BINS if bins is None else min(bins, COARSE_BINS),
        min_samples_leaf=max(1, int(share * estimator.min_samples_leaf)),
        min_samples_per_treatment=int(share * estimator.min_samples_per_treatment),
        time_limit=None if limit is None else limit / searches,
        verbose=0,
    )


def _like(estimator: Any, **parameters: Any) -> Any:
    """A clone with other parameters, and with the encoder and the treatments, which it does not learn again."""
    tree = clone(estimator).set_params(**parameters)
    tree.encoder_, tree.treatments_ = estimator.encoder_, estimator.treatments_
    return tree


def _folds(rows: RewardRows, seed: Any) -> FoldPlan:
    """Folds of rows, or of whole clusters."""
    from policytree.model_selection.folds import make_folds  # the module loads what a search does without

    n, groups = len(rows.X), rows.groups
    units = n if groups is None else len(np.unique(groups))
    if units < 2:
        raise InputError(
            f"max_depth='auto' judges trees by {'rows' if groups is None else 'clusters'} that they were not learnt "
            f"from, and there is {units}; set a number."
        )
    return make_folds(n, min(N_FOLDS, units), groups=groups, random_state=seed)
