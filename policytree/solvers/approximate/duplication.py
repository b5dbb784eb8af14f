"""The duplication solver: weights become integer counts; the tree is scored by the weights again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from policytree.common.validation import is_whole
from policytree.exceptions import InputError, quoted
from policytree.problem.types import Problem, SearchLimits, Solution, Status
from policytree.solvers.core.columns import equal_rows, group_sums
from policytree.solvers.core.labelled import LabelledRows
from policytree.solvers.core.rescore import equivalent_points_bound, rescore
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.guided.bounded import solve_bounded

DIVISORS = ("largest", "sum")
ROUNDING = 1e-9  # weights that equal a half or a whole number up to this do so: rescaled weights round alike


@dataclass(frozen=True, slots=True)
class IntegerCounts:
    """How often every row stands in the duplicated data.

    Attributes
    ----------
    counts : ndarray of shape (n,), int64, >= 0
        Without a common divisor.
    of_largest : float
        Copies that stand for the largest weight: before rounding, the others' copies are in proportion.
    """

    counts: np.ndarray
    of_largest: float

    def rows(self) -> np.ndarray:
        """Row numbers of the physically duplicated data, for solvers that know no weights; shape (counts.sum(),)."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


def integer_counts(weight, factor: int = 100, *, divide_by: str = "largest") -> IntegerCounts:
    """Turn weights into integer counts (Algorithm 1).

    Parameters
    ----------
    weight : array-like of shape (n,)
        Finite, >= 0, not all zero.
    factor : int
        How often a row of the largest weight may stand: weights are scaled to (0, 1] by their maximum, multiplied by
        ``factor`` and rounded (halves up). Weights that are multiples of the smallest one up to ``factor`` are exact.
    divide_by : {"largest", "sum"}
        "sum" is Algorithm 1 as printed: ``round(factor w_i / sum w)``, so that there are about ``factor`` rows in all.
        It needs a factor far above the number of rows, where the paper has one below 100.

    Returns
    -------
    IntegerCounts
        ``integer_counts(w).rows()`` are the row numbers of the duplicated data; of rewards, duplicate the rows of
        :func:`policytree.weighting.weighted_labels`.

    Raises
    ------
    InputError
        If a weight is negative or not finite, all are zero or round to zero, ``factor`` is no integer >= 1, or
        ``divide_by`` is unknown.

    Notes
    -----
    Behrouz, Lecuyer, Rudin and Seltzer (2022, arXiv:2210.06825), Algorithm 1. As printed it divides the weights by
    their *sum*; with factors below some hundred nearly every row then rounds to zero. The paper's prose scales weights
    to (0, 1], which the maximum does, so that this is the default. Dividing counts by their common divisor afterwards
    leaves every optimum where it is, with fewer rows.
    """
    if divide_by not in DIVISORS:
        raise InputError(f"divide_by must be one of {', '.join(DIVISORS)}; got {quoted(divide_by)}.")
    if not is_whole(factor) or isinstance(factor, bool) or factor < 1:
        raise InputError(f"factor must be an integer >= 1; got {quoted(factor)}.")
    weight = np.asarray(weight, dtype=np.float64)
    if weight.ndim != 1 or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InputError("weight must be one column of finite numbers >= 0, not all of them zero.")
    share = weight / weight.max()
    of_largest = float(factor) if divide_by == "largest" else factor / float(share.sum())
    smallest = share[share > 0].min()
    if divide_by == "largest" and smallest * factor >= 1 - ROUNDING:
        multiple = share / smallest
        if (np.abs(multiple - np.rint(multiple)) <= ROUNDING * multiple).all():
            of_largest = float(np.rint(multiple.max()))
    counts = np.floor(np.round(of_largest * share, 9) + 0.5).astype(np.int64)
    if not counts.any():
        raise InputError(
            f"Every weight rounds to zero copies with factor={factor} and divide_by='sum'; use a factor above the "
            "number of rows, or divide_by='largest'."
        )
    divisor = int(np.gcd.reduce(counts))
    return IntegerCounts(counts // divisor, of_largest / divisor)


def rounding_guarantee(weight: np.ndarray, counts: IntegerCounts) -> dict[str, float]:
    """How far weighted and duplicated error rates can be apart, for every tree at once (Theorem 2).

    Parameters
    ----------
    weight : ndarray of shape (n,), > 0
    counts : IntegerCounts

    Returns
    -------
    dict
        ``epsilon`` the largest ``|w_i - c_i|``, ``eta`` the largest ``w_i / c_i``, ``zeta`` the largest ``c_i / w_i``
        and ``psi`` the ratio of the largest to the smallest of all ``w_i`` and ``c_i``; ``theorem_2`` the theorem's
        bound ``max(((zeta - 1) psi + epsilon) / zeta, ((eta - 1) psi + epsilon) / eta)`` on the difference of the
        error rates, at most 1; ``rounding_error`` the smallest bound there is, ``sum |w_i / sum w - c_i / sum c| / 2``.

    Notes
    -----
    Behrouz et al. (2022), Theorem 2, which compares the optimal values ``R(t*)`` and ``R~(T~)`` of both weightings;
    the four are defined as there. With what it takes to hold: both sets of weights are put on one scale, on which
    neither has a mean below 1 (``epsilon`` is divided by a mean weight in the proof); ``zeta - 1`` and ``eta - 1``
    count as 0 where negative (all weights rounded to one side); a row that rounds to zero makes ``eta`` and ``psi``
    infinite, and the bound trivial. ``rounding_error`` does not suffer from that: the difference of two error rates is
    a sum of ``w_i / sum w - c_i / sum c`` over the misclassified rows, largest if these are the positive terms.
    """
    weight = weight / weight.max()
    c = counts.counts / counts.of_largest
    scale = min(weight.mean(), c.mean())
    w, c = weight / scale, c / scale
    epsilon = float(np.abs(w - c).max())
    with np.errstate(divide="ignore"):
        eta, zeta = float((w / c).max()), float((c / w).max())
        psi = float(np.divide(max(w.max(), c.max()), min(w.min(), c.min())))
    theorem = 1.0
    if np.isfinite(psi):
        theorem = max((max(r - 1.0, 0.0) * psi + epsilon) / r for r in (zeta, eta))
    share = np.abs(weight / weight.sum() - counts.counts / counts.counts.sum())
    return {
        "epsilon": epsilon,
        "eta": eta,
        "zeta": zeta,
        "psi": psi,
        "theorem_2": min(1.0, theorem),
        "rounding_error": float(share.sum() / 2),
    }


def tree_rounding_error(problem: Problem, labelled: LabelledRows, counts: IntegerCounts) -> tuple[float, float]:
    """How far the error rate in counts can be above, and below, the weighted one, for every tree on the data.

    Rows that no split tells apart take one action, so that their rounding errors make up for one another: neither
    number is larger than ``rounding_error`` of :func:`rounding_guarantee`, and both are far smaller where rows repeat.

    Parameters
    ----------
    problem : Problem
    labelled : LabelledRows
        Of the problem.
    counts : IntegerCounts
        In place of their weights.

    Returns
    -------
    above, below : float
        ``error rate in counts - above <= weighted error rate <= error rate in counts + below``.
    """
    share = labelled.weight / labelled.total - counts.counts / counts.counts.sum()
    right = np.zeros(problem.losses.shape)
    np.add.at(right, (labelled.row, labelled.label), share)
    first, group = equal_rows(problem.data)
    right = group_sums(right, group, len(first))
    wrong = right.sum(axis=1, keepdims=True) - right  # what a group adds to the difference if it takes an action
    return float(-wrong.min(axis=1).sum()), float(wrong.max(axis=1).sum())


def solve_duplication(
    problem: Problem,
    limits: SearchLimits | None = None,
    reference_losses: np.ndarray | None = None,
    *,
    factor: int = 100,
    divide_by: str = "largest",
    solve=solve_direct,
) -> Solution:
    """Solve with integer counts instead of the weights; losses of any kind become weighted labels first.

    Parameters
    ----------
    problem : Problem
    limits : SearchLimits, optional
    reference_losses : ndarray of shape (n,), optional
        A reference's weighted loss in every row: lower bounds of the copies are guessed from it.
    factor : int
        The most copies that a row stands for: weights are divided by the largest one, multiplied by ``factor`` and
        rounded.
    divide_by : {"largest", "sum"}
        Divisor of weights before ``factor`` multiplies them; "sum" is Algorithm 1 as printed, and needs a
        factor far above the number of rows.
    solve : callable
        The solver of the integer problem, ``(Problem, SearchLimits) -> Solution``. Counts enter as integer losses; the
        optimum is that of physically repeated rows.

    Returns
    -------
    Solution
        ``objective`` is that of the problem's own losses, ``lower_bound`` holds for them as well: the integer problem's
        bound less what rounding can have added to it, or the equivalent-points bound. ``status`` is HEURISTIC, or
        OPTIMAL where counts stand for the weights exactly. ``counters``: ``labelled_rows``, and the ``duplicated_rows``
        that are made of them. ``guarantees``, in the objective's unit: of :func:`rounding_guarantee`, ``theorem_2`` and
        ``rounding_error`` (its ratios have no unit); ``tree_rounding_error``, the larger number of
        :func:`tree_rounding_error`: if the integer problem was solved, the tree loses at most twice this
        against the optimum, and ``gap`` says how much less; and ``theorem_1``, where lower bounds were guessed: among
        the copies, no tree is better by more. Without unit: ``dropped_weight``, the share of weight in rows that round
        to zero; and ``leaves_taken_back``, below.

    Notes
    -----
    Behrouz et al. (2022, arXiv:2210.06825), section 3.2. With leaf penalty per total weight ``lambda``, the integer
    problem has the same ``lambda``.

    The returned tree need not be the one that the paper's procedure ends with, the optimal tree of the repeated rows:
    its leaves are labelled by the real weights, and splits that do not pay for their leaves under these are taken back
    (``leaves_taken_back`` of them). Both steps only lower the weighted objective.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.problem.types import Problem
    >>> from policytree.solvers import solve_duplication
    >>> from policytree.solvers.core.binning import bin_matrix
    >>> losses = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> problem = Problem(bin_matrix(np.array([[1.0], [2.0], [3.0]])), losses, max_depth=1)
    >>> solution = solve_duplication(problem)
    >>> solution.objective, solution.status.name
    (0.0, 'OPTIMAL')
    """
    limits = limits or SearchLimits()
    labelled = LabelledRows.of(problem)
    made = integer_counts(labelled.weight if len(labelled.weight) else np.ones(1), factor, divide_by=divide_by)
    if not len(labelled.weight) or problem.leaf_penalty > 2 * labelled.total:  # no split can pay
        return solve(problem, limits)
    above, below = tree_rounding_error(problem, labelled, made)
    slack = above * labelled.total
    copies, reference = labelled.count_problem(problem, made.counts, reference_losses)
    inner = solve_bounded(
        copies, reference, labelled.limits(limits, made.counts, slack, limits.time_limit), solve=solve
    )
    if inner.status is Status.INFEASIBLE:
        return solve(problem, limits)
    stated = {**rounding_guarantee(labelled.weight, made), "tree_rounding_error": max(above, below)}
    for name in ("theorem_2", "rounding_error", "tree_rounding_error"):
        stated[name] *= labelled.total
    stated["dropped_weight"] = float(labelled.weight[made.counts == 0].sum() / labelled.total)
    counted = {"labelled_rows": len(labelled.weight), "duplicated_rows": int(made.counts.sum())}
    inner = replace(inner, counters={**inner.counters, **counted})
    return _judged(problem, labelled, inner, labelled.total / int(made.counts.sum()), slack, stated)


def _judged(
    problem: Problem, labelled: LabelledRows, inner: Solution, unit: float, slack: float, guarantees: dict
) -> Solution:
    """A solution in counts, of which one stands for ``unit`` of weight, as one of the problem itself."""
    tree, objective = rescore(problem, inner.tree)
    bound = labelled.constant + unit * (inner.lower_bound - inner.resolution) - slack
    noise = 1e-14 * (float(np.abs(problem.losses).max(axis=1).sum()) + problem.leaf_penalty * tree.n_leaves)
    bound = min(objective, max(bound - noise, equivalent_points_bound(problem)))
    # A proof of counts leaves a gap of their resolution, which the bound has lost once more; then what is rounded here.
    resolution = 2 * unit * inner.resolution + min(slack, noise) + 2 * noise
    status = inner.status
    if inner.status.proved:  # of counts, which prove as much of weights only where they stand for these exactly
        exact = inner.status if slack <= noise else Status.HEURISTIC
        status = Status.OPTIMAL if objective - bound <= resolution else exact
    if "theorem_1" in inner.guarantees:
        guarantees["theorem_1"] = unit * float(inner.guarantees["theorem_1"])
    guarantees["leaves_taken_back"] = float(inner.tree.n_leaves - tree.n_leaves)
    return replace(
        inner,
        tree=tree,
        objective=objective,
        lower_bound=bound,
        status=status,
        resolution=resolution,
        guarantees=guarantees,
    )
