"""Who learns and who judges: repeated cross-fitting, sequential validation, a single split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policytree.common.validation import check_choice
from policytree.evaluation.estimates import Estimate, blocked_estimate, mean_estimate, repeated_estimate, value_factor
from policytree.exceptions import InputError, quoted
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.study_data import StudyData

REPEATED, SEQUENTIAL, SPLIT = "repeated", "sequential", "split"
ADAPTIVE = "adaptive"
N_REPEATS = 5
FEWEST_REPEATS = 3  # before these, the variance between repetitions is hardly known
SMALL_SHARE = 0.1  # of the variance: no further repetitions where they move it less than this
DEFAULT_CV = {REPEATED: 5, SEQUENTIAL: 5, SPLIT: 2}


@dataclass(frozen=True, slots=True)
class Fit:
    """One refit: the rows to learn from and the rows to judge.

    Attributes
    ----------
    repetition : int
    train, test : ndarray of int
    folds : ndarray of shape (len(train),), int, or None
        The fold of the evaluation in which each row of ``train`` is judged, in cross-fitting.
    """

    repetition: int
    train: np.ndarray
    test: np.ndarray
    folds: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Validation:
    """A way to hold rows out, drawn.

    Attributes
    ----------
    kind : {"repeated", "sequential", "split"}
    plans : tuple of FoldPlan
        One per repetition; one for the other kinds.
    adaptive : bool
        Whether repetitions may end early.
    """

    kind: str
    plans: tuple[FoldPlan, ...]
    adaptive: bool = False

    def fits(self, repetition: int) -> Iterator[Fit]:
        """Train and test rows of every refit of a repetition."""
        plan = self.plans[repetition]
        if self.kind == REPEATED:
            for train, test in plan.splits():
                yield Fit(repetition, train, test, plan.fold[train])
        else:
            for fold in range(self.first_judged, plan.n_folds):
                if self.kind == SPLIT and fold > self.first_judged:
                    return
                learners = plan.fold < fold if self.kind == SEQUENTIAL else plan.fold != fold
                yield Fit(repetition, np.flatnonzero(learners), np.flatnonzero(plan.fold == fold))

    @property
    def first_judged(self) -> int:
        """The first fold that is judged: in sequential validation the earlier half only learns."""
        return self.plans[0].n_folds // 2 if self.kind == SEQUENTIAL else 0

    @property
    def n_fits(self) -> int:
        """Refits of one repetition."""
        return sum(1 for _ in self.fits(0))

    def judged(self) -> np.ndarray:
        """Positions of the rows that are judged, ascending: all of them in cross-fitting."""
        plan = self.plans[0]
        if self.kind == REPEATED:
            return np.arange(len(plan.fold))
        kept = plan.fold >= self.first_judged if self.kind == SEQUENTIAL else plan.fold == 0
        return np.flatnonzero(kept)

    def estimate(self, scores: Sequence[np.ndarray], seen: StudyData, level: float, *, learnt: bool = True) -> Estimate:
        """Mean of the judged rows' scores, one array per repetition that was done, by the variance of this kind.

        Parameters
        ----------
        scores : sequence of ndarray of shape (n_judged,)
        seen : StudyData
            Of all rows.
        level : float
        learnt : bool
            Whether the rule (of a difference: one of both) is learnt anew in every fold. The scores of fixed rules,
            such as one treatment for all, differ between repetitions by their models alone: each row's mean over the
            repetitions is its score, and the variance is that of one estimate from influences.
        """
        if not learnt:
            scores = [np.mean(scores, axis=0)]
        rows = self.judged()
        groups = seen.groups
        if groups is not None and len(rows) < seen.n:
            groups = np.unique(groups[rows], return_inverse=True)[1]
        options: dict[str, Any] = {"groups": groups, "level": level}
        options["sample_weight"] = None if seen.sample_weight is None else seen.sample_weight[rows]
        if self.kind == SEQUENTIAL:
            return blocked_estimate(scores[0], self.plans[0].fold[rows], **options)
        folds = self.plans[0].n_folds
        estimates = [mean_estimate(values, **options) for values in scores]
        return repeated_estimate(estimates, folds, value_factor(folds, len(estimates)))

    @property
    def caution(self) -> str:
        """Shortcoming of intervals of learnt rules, as a clause; "" where they cover as stated.

        One cross-fitting does not show how the rules of its folds depend on each other's rows
        (``benchmarks/results/coverage.md``). One treatment for everybody depends on no row.
        """
        once = self.kind == REPEATED and len(self.plans) == 1
        return "intervals of learnt rules cover about 90 % where 95 % are stated" if once else ""

    def describe(self, n_done: int) -> str:
        """Describe the validation in words."""
        folds = self.plans[0].n_folds
        if self.kind == SEQUENTIAL:
            blocks = folds - self.first_judged
            return f"sequential validation: {blocks} blocks, each judged by a rule learnt from all rows before it"
        if self.kind == SPLIT:
            judging, rows = len(self.judged()), len(self.plans[0].fold)
            return f"a single split: {judging:,} rows judge a rule learnt from the other {rows - judging:,}"
        if self.caution:
            return f"cross-fitting over {folds} folds, once ({self.caution})"
        early = f" (of at most {len(self.plans)}: more would hardly change them)" if n_done < len(self.plans) else ""
        return f"cross-fitting over {folds} folds, repeated {n_done} times{early}"


def fewest_rows(kind: str, outer: int, inner: int) -> int:
    """So many rows (clusters) of every treatment refits need that have ``inner`` folds of their own.

    Each of ``outer`` parts is judged by what the other rows taught, which must fill all inner folds; in sequential
    validation and in a split about half of the rows must.
    """
    needed = max(outer, inner) if kind == REPEATED else 2 * inner + 1
    while needed - -(-needed // outer) < inner:  # the rows that the largest part leaves
        needed += 1
    return needed


def refuse_small_arms(seen: StudyData, needed: int, folds: str, lower: str, where: str = "") -> None:
    """Refuse treatments of too few rows before anything is fitted: refits would fail only after minutes.

    Parameters
    ----------
    seen : StudyData
    needed : int
        :func:`fewest_rows`.
    folds, lower, where : str
        Words of messages: folds that need them, what to lower, and where treatments stand (" of column 'arm'").

    Raises
    ------
    InputError
    """
    known = slice(None) if seen.seen is None else seen.seen
    arm, unit = seen.arm[known], "row"
    if seen.study is not None:
        arm = seen.arm[seen.study]
    elif seen.groups is not None:
        arm, unit = np.unique(np.column_stack([arm, seen.groups[known]]), axis=0)[:, 0], "cluster"
    counts = np.bincount(arm, minlength=seen.n_arms)
    k = int(counts.argmin())
    if counts[k] < needed:
        unit += ("" if counts[k] == 1 else "s") + ("" if seen.seen is None else " with an outcome")
        raise InputError(
            f"{seen.what.capitalize()} {seen.treatments[k]!s}{where} has {counts[k]} {unit}, but {folds} {needed}; "
            f"lower {lower}, merge it with another {seen.what} or leave its rows out."
        )


def refuse_unlearnable(estimator: Any, seen: StudyData, kind: str, cv: Any) -> None:
    """Refuse treatments that would not fill the estimator's own folds in every refit, where folds are drawn."""
    get_params = getattr(estimator, "get_params", None)
    inner = get_params().get("cv") if get_params is not None else None
    outer = DEFAULT_CV.get(kind) if cv is None else cv
    if isinstance(inner, int) and isinstance(outer, int) and not isinstance(inner, bool) and min(inner, outer) >= 2:
        folds = f"cv={outer} of the evaluation with cv={inner} of {type(estimator).__name__} needs"
        refuse_small_arms(seen, fewest_rows(kind, outer, inner), folds, "cv")


def draw_validation(kind: str, cv, n_repeats, seen: StudyData, random_state) -> Validation:
    """Check the arguments and draw the folds; see :func:`policytree.cross_val_policy_value` for what they mean.

    Raises
    ------
    InputError
        If an argument is unknown or does not fit the others, or rows or clusters do not suffice.
    """
    check_choice(kind, "validation", DEFAULT_CV)
    cv = DEFAULT_CV[kind] if cv is None else cv
    drawn = isinstance(cv, (int, np.integer)) and not isinstance(cv, bool)
    times = _times(n_repeats, kind, fixed=not drawn)
    folds = 2 * int(cv) if kind == SEQUENTIAL and drawn and cv >= 2 else cv
    from policytree.evaluation.inputs import generator

    random_state = generator(random_state)
    plans = tuple(seen.folds(folds, random_state, whose=" of the evaluation") for _ in range(times))
    return Validation(kind, plans, n_repeats == ADAPTIVE)


def _times(n_repeats, kind: str, *, fixed: bool) -> int:
    """Repetitions at most."""
    if n_repeats is None:
        return 1 if kind != REPEATED or fixed else N_REPEATS
    if n_repeats == ADAPTIVE:
        times = N_REPEATS
    elif isinstance(n_repeats, (int, np.integer)) and not isinstance(n_repeats, bool) and n_repeats >= 1:
        times = int(n_repeats)
    else:
        raise InputError(
            f"n_repeats must be a whole number of at least 1, 'adaptive' or None; got {quoted(n_repeats)}."
        )
    if times > 1 and kind != REPEATED:
        raise InputError(f"validation='{kind}' judges every row once; leave n_repeats out.")
    if times > 1 and fixed:
        raise InputError("With given folds every repetition would be the same; leave n_repeats out, or give cv=5.")
    return times
