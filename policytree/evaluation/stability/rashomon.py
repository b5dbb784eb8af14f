"""Which other trees are as good? All trees near the best one, what they decide, and what columns are worth."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from policytree.common.calls import check_fit_arguments
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import check_count, is_real
from policytree.estimators.base import TreeEstimator
from policytree.estimators.depth_choice import of_chosen_size
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.estimators.inputs import check_number, column_numbers
from policytree.estimators.policy import PolicyTree
from policytree.estimators.search import Job
from policytree.evaluation.stability.rashomon_decisions import TreeList, decide
from policytree.evaluation.stability.rashomon_tables import Exclusion, NearTies
from policytree.exceptions import InputError, SearchWarning, quoted
from policytree.problem.split_columns import MAX_BINS
from policytree.problem.types import Problem, SearchLimits, Status
from policytree.solvers.core.exact_sums import exact_sum
from policytree.solvers.rashomon.enumerate import DEEPEST, TiedTrees, enumerate_rashomon

EPSILON = 0.02
MOST = 10_000
MOST_LISTED = 10_000_000  # half a gigabyte
LARGEST = 1e100  # of epsilon and slack
TOLERANCE = 1e-9  # between two objectives that ought to be the same, relative to what they are made of


@aligns_rows
def near_ties(
    estimator: Any,
    X: Table,
    y: Column | Table | None = None,
    *,
    epsilon: float | None = None,
    slack: float | None = None,
    max_depth: int | None = None,
    without: Any = None,
    most: int = MOST,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    **fit_params: Any,
) -> NearTies:
    """Find all trees that are nearly as good as the best one, on the rows that it was learnt from.

    The set of these trees is also known as the Rashomon set. They are counted exactly, the best of them are listed, and
    from these follow the different decisions on the rows, the people whom all of them treat alike, the columns that
    they ask about, and the simplest of them. Near-ties are a fact about these rows: which rule would do as well on
    others is what :func:`policytree.cross_val_policy_value` and :func:`policytree.evaluation.policy_stability` ask.

    Parameters
    ----------
    estimator : OptimalTreeClassifier, CostSensitiveTreeClassifier, PolicyTree or DRPolicyTree
        Its price of a leaf, smallest leaves, costs of columns and so on hold; all thresholds are looked at whatever its
        ``guesses`` and ``solver``. Fitted or not, but a DRPolicyTree has to be fitted: its doubly robust rewards are
        taken.
    X : DataFrame or array of shape (n, p)
        The table that ``estimator.fit`` takes.
    y : array of shape (n,), or of shape (n, K)
        Labels; for :class:`policytree.PolicyTree` the rewards; for :class:`policytree.DRPolicyTree` nothing is given.
    epsilon : float, optional
        How much worse than the best tree a near-tie may be. Labels and costs: its objective is at most
        ``(1 + epsilon)`` times the least one (costs must not be negative). Rewards, whose zero means nothing: it keeps
        at least ``1 - epsilon`` of what the best tree gains over the best single leaf, that is over one treatment for
        everybody. 0.02 if neither ``epsilon`` nor ``slack`` is given. Taken as the decimal number that is printed.
    slack : float, optional
        The same in the unit of ``objective_value_`` (mean loss or reward per person), in place of ``epsilon``. The
        natural choice for rewards: what difference would nobody care about?
    max_depth : int, optional
        0 to 3; by default the estimator's.
    without : column name or position, or list of these, optional
        For each of them: what is the best tree without it, what does doing without it cost, and how many near-ties do
        without it? A list within the list asks about several columns at once: ``["sex", ["sex", "age"]]``.
    most : int, default 10,000
        How many trees are listed, the best ones; all are counted.
    time_limit : float, optional
        Seconds, for the count and for each of ``without``. If the count was stopped, ``n_trees`` is a lower bound.
    memory_limit : float, optional
        Bytes; likewise.
    progress : callable, optional
        Called as ``progress(done, total)`` with numbers of first cuts, for trees of depth three.
    **fit_params
        Passed as to ``fit``: ``sample_weight``, ``T``, ``sample_treatment_costs``.

    Returns
    -------
    NearTies

    Raises
    ------
    InputError
        If an argument has the wrong shape, type or range, the estimator was fitted on other rows, or the best tree is
        not proved within the limits.
    KeyboardInterrupt
        On Ctrl-C before the best tree is proved. Later, what was found is returned, without ``without``.

    Warns
    -----
    SearchWarning
        If a limit or Ctrl-C ended the count.

    Notes
    -----
    Two trees differ if they ask different questions or give different actions in their leaves. Questions are the
    thresholds of the whole table; two of one column are the same question at a node if they divide its rows alike. No
    leaf is empty, and the two leaves of one question give different actions. A leaf may give another action than the
    best one there, as long as the tree is a near-tie.

    Losses are fixed-point integers, so that no tolerance decides what is within the limit (their rounding is about
    1e-15 of the summed losses).

    References
    ----------
    Breiman, "Statistical modeling: the two cultures", Statistical Science 2001 (Rashomon sets). Xin, Zhong, Chen,
    Takagi, Seltzer and Rudin, "Exploring the whole Rashomon set of sparse decision trees", NeurIPS 2022.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> from policytree.evaluation import near_ties
    >>> X, y = [[1, 0], [2, 0], [3, 1], [4, 1]], [0, 0, 1, 0]
    >>> ties = near_ties(OptimalTreeClassifier(max_depth=1, regularization=0.0), X, y, slack=0.0)
    >>> ties.n_trees, len(ties.decisions())
    (3, 2)
    """
    limits = SearchLimits(time_limit, memory_limit)
    _check(epsilon, slack, most, limits, max_depth)
    job, first, sign = _prepared(estimator, X, y, max_depth, fit_params)
    groups = _column_groups(without, first.encoder_.features)
    allowed = _slack(job, isinstance(first, PolicyTree), epsilon, slack)
    found = enumerate_rashomon(job.problem, allowed, most, limits, progress)
    if max_depth is None:
        _same_rows(estimator, sign * float(found.best) / job.total_weight, job)
    _warn_if_stopped(found)
    trees = TreeList(job.problem, found, job.actions)
    if found.status is Status.INTERRUPTED:
        groups = []
    exclusions = [_without(job, found, group, limits, sign) for group in groups]
    by_size = found.complete and len(trees) < found.n_trees  # the list is incomplete
    simplest = _simplest(job, found, limits) if by_size else trees[trees.simplest()]
    unit = sign / job.total_weight
    return NearTies(
        trees=trees, n_trees=found.n_trees, status=found.status, objective=float(found.best) * unit,
        limit=float(found.limit) * unit, objectives=found.objectives * unit, epsilon=_named_epsilon(epsilon, slack),
        relative_to="gain" if isinstance(first, PolicyTree) else "objective", max_depth=int(first.max_depth or 0),
        decided=decide(job.problem, found, job.weight), simplest=simplest, exclusions=tuple(exclusions),
        exact=job.problem.data.exact,
    )  # fmt: skip


def _check(epsilon, slack, most, limits: SearchLimits, max_depth) -> None:
    """Refuse arguments that cannot be used."""
    for name, value in (("epsilon", epsilon), ("slack", slack)):
        if value is not None and not (is_real(value) and 0 <= value <= LARGEST):
            raise InputError(f"{name} must be a finite number >= 0 (at most {LARGEST:g}) or None; got {quoted(value)}.")
    if epsilon is not None and slack is not None:
        raise InputError("epsilon and slack both say how near a tie is; give one of them.")
    check_count(most, "most", 1)
    if most > MOST_LISTED:
        raise InputError(f"most must be at most {MOST_LISTED:,}; got {most}. All near-ties are counted in any case.")
    check_number("time_limit", limits.time_limit, 0, none=True)
    check_number("memory_limit", limits.memory_limit, 0, none=True)
    check_number("max_depth", max_depth, 0, integer=True, none=True)


def _prepared(estimator, X, y, max_depth, fit_params) -> tuple[Job, TreeEstimator, float]:
    """The problem, the estimator that has learnt names from the rows, and the sign of its objective."""
    if isinstance(estimator, DRPolicyTree):
        try:
            check_is_fitted(estimator, "policy_tree_")
        except NotFittedError:
            raise InputError("A DRPolicyTree has to be fitted first: near-ties are those of its rewards.") from None
        if y is not None:
            raise InputError("y is the estimator's own rewards for a DRPolicyTree; leave it out.")
        if estimator.policy_tree_.min_samples_per_treatment and len(X) == len(estimator._received):
            fit_params = {"T": estimator._received} | fit_params  # which leaves count
        estimator, y = estimator.policy_tree_, estimator.tree_rewards_
    if not isinstance(estimator, TreeEstimator):
        raise InputError(
            "near_ties takes an OptimalTreeClassifier, CostSensitiveTreeClassifier, PolicyTree or DRPolicyTree; got "
            f"{type(estimator).__name__}."
        )
    if y is None:
        raise InputError("y is lacking: pass what the estimator is fitted with, labels, costs or rewards.")
    first = of_chosen_size(estimator)
    if first.categories != "levels":
        raise InputError("near_ties compares splits by one level against the rest; set categories='levels'.")
    if first.max_bins is None:
        first.set_params(max_bins=MAX_BINS)  # a single column may have more cuts than this search takes
    if max_depth is not None:
        first.set_params(max_depth=max_depth)
    if first.max_depth is None or first.max_depth > DEEPEST:
        raise InputError(
            f"Near-ties are found among trees of depth 0 to {DEEPEST}, and max_depth is {first.max_depth}; pass "
            f"max_depth={DEEPEST} or less."
        )
    check_fit_arguments(first, fit_params)
    job = first._prepare(X, y, **fit_params)
    if job.objective is not None:
        raise InputError(
            f"near_ties counts trees for a sum over rows, which objective={job.objective.name!r} is not; "
            "use 'accuracy', 'balanced_accuracy' or 'weighted_accuracy'."
        )
    if job.constraints:
        raise InputError("near_ties takes no constraints; leave them out.")
    return job, first, first._sign()


def _column_groups(without, features) -> list[tuple[int, ...]]:
    """Columns to do without: a list of lists of positions."""
    if without is None:
        return []
    several = isinstance(without, Iterable) and not isinstance(without, str)
    return [column_numbers("without", each, features) or () for each in (without if several else [without])]


def _decimal(number: float) -> Fraction:
    """The decimal number that a float prints as."""
    return Fraction(repr(float(number)))


def _named_epsilon(epsilon: float | None, slack: float | None) -> float | None:
    return None if slack is not None else EPSILON if epsilon is None else float(epsilon)


def _slack(job: Job, rewards: bool, epsilon: float | None, slack: float | None):
    """How much more than the best tree a near-tie may cost, in summed losses."""
    if slack is not None:
        total = _decimal(slack) * exact_sum(job.weight)
        return lambda best, leaf: total
    share = _decimal(EPSILON if epsilon is None else epsilon)
    if rewards:
        return lambda best, leaf: share * (leaf - best)
    if job.problem.losses.min() < 0:
        raise InputError("epsilon is a share of the least cost, and some costs are negative; pass slack in its place.")
    return lambda best, leaf: share * best


def _same_rows(estimator, objective: float, job: Job) -> None:
    """Refuse rows or arguments other than those that the estimator was fitted with, as far as the objective tells."""
    status = getattr(estimator, "status_", None)
    if status is not Status.OPTIMAL or not job.problem.data.exact:  # of the fit all thresholds, of these some
        return
    known, size = estimator.objective_value_, float(np.abs(job.problem.losses).max(axis=1).sum()) / job.total_weight
    if abs(known - objective) > TOLERANCE * (size + abs(known)):
        raise InputError(
            f"The best objective for these rows is {objective:.9g}, but the estimator was fitted with {known:.9g}; "
            "pass the rows and the arguments of its fit (sample_weight, sample_treatment_costs, T)."
        )


def _warn_if_stopped(found: TiedTrees) -> None:
    if not found.complete:
        warnings.warn(
            f"The count ended by {found.status.value} after {found.seconds:.1f} s: there are at least "
            f"{found.n_trees:,} near-ties, and better ones than those listed may be lacking.",
            SearchWarning,
            stacklevel=3,
        )


def _without(job: Job, found: TiedTrees, columns: tuple[int, ...], limits: SearchLimits, sign: float) -> Exclusion:
    """The best tree that does without some columns, and how many near-ties do."""
    problem = _drop(job.problem, columns)
    names = tuple(problem.data.features[j].name for j in columns)
    rest = enumerate_rashomon(problem, lambda best, leaf: found.limit - best, 1, limits)
    tree = TreeList(problem, rest, job.actions)[0] if rest.n_trees else None
    return Exclusion(
        names, sign * float(rest.best) / job.total_weight, float(rest.best - found.best) / job.total_weight,
        rest.best <= found.limit, rest.n_trees, rest.complete, tree,
    )  # fmt: skip


def _drop(problem: Problem, columns: tuple[int, ...]) -> Problem:
    """The problem without splits on some features."""
    data, roots = problem.data, problem.root_features
    kept = [j for j, column in enumerate(data.columns) if column.feature not in columns]
    data = replace(data, codes=data.codes[kept], n_bins=data.n_bins[kept], columns=tuple(data.columns[j] for j in kept))
    return replace(
        problem, data=data, root_features=None if roots is None else tuple(j for j in roots if j not in columns)
    )


def _simplest(job: Job, found: TiedTrees, limits: SearchLimits):
    """The near-tie of fewest leaves where not all are listed: near-ties with one leaf, with two, ..."""
    for leaves in range(1, 2**DEEPEST + 1):
        problem = replace(job.problem, max_leaf_nodes=leaves)
        small = enumerate_rashomon(problem, lambda best, leaf: found.limit - best, MOST, limits)
        if small.n_trees:
            trees = TreeList(job.problem, small, job.actions)
            return trees[trees.simplest()]
    raise AssertionError("the best tree is a near-tie")
