"""The honest value of a treatment regime: models and trees of all stages are learnt without the people who judge."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Seed, Table
from policytree.common.validation import check_choice, check_flag, check_level
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.inference.best_arm import BestComparison, compare_with_best, compare_with_best_arm
from policytree.evaluation.policy_value.refits import Refitter, Teller, finished
from policytree.evaluation.policy_value.rule_names import AS_RANDOMIZED, STATUS_QUO
from policytree.evaluation.policy_value.validation import REPEATED, Fit, Validation, draw_validation
from policytree.evaluation.policy_value.verdict import Rules as Names
from policytree.evaluation.policy_value.verdict import Words, decide
from policytree.evaluation.regimes.gates import regime_gates
from policytree.evaluation.regimes.rules import REGIME, fixed_sequences, is_randomized, rules_to_judge, single_decisions
from policytree.evaluation.regimes.sequential import DOUBLY_ROBUST, ESTIMATORS, Rules, SequentialScores
from policytree.evaluation.regimes.tables import RegimeValueTable
from policytree.exceptions import InputError, UnseenValueWarning, quoted
from policytree.regimes.checking import check_stages
from policytree.regimes.course import Course
from policytree.regimes.sequences import sequence_overlap, unknown_sequences
from policytree.regimes.stages import Stage
from policytree.regimes.treatment_regime import TreatmentRegime
from policytree.weighting.study_data import REFUSE, StudyData

REGIME_WORDS = Words(REGIME, REGIME, "fixed sequence", "fixed sequence")


@aligns_rows
@shares_documentation(TreatmentRegime.fit)
def cross_val_regime_value(
    regime: TreatmentRegime,
    stages: Sequence[Stage],
    *,
    sample_weight: Column | None = None,
    groups: Column | None = None,
    strata: Column | Table | None = None,
    missing_outcome: str = REFUSE,
    control: Sequence[Any] | None = None,
    sequences: Sequence[Sequence[Any]] | None = None,
    baselines: bool = True,
    estimator: str = DOUBLY_ROBUST,
    validation: str = REPEATED,
    cv: int | Column | Any = None,
    n_repeats: int | None = None,
    level: float = 0.95,
    random_state: Seed = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RegimeValueTable:
    """Held-out value of a treatment regime, against fixed sequences, what people got, and deciding once.

    Clones of ``regime`` are fitted to some people; their rules decide for other people at every stage, and their models
    score them. How people are held out is as in :func:`policytree.cross_val_policy_value`; whole people are, with all
    their stages.

    Parameters
    ----------
    regime : TreatmentRegime
        Unfitted or fitted; it is cloned and never changed.
    control : sequence of labels, optional
        The fixed sequence that a rule must be shown better than to be recommended, one treatment per stage; what people
        got by default or, where treatments of all stages were drawn by lot (their ``propensity`` is given), none: then
        sequences are compared with each other.
    sequences : list of sequences of labels, optional
        The fixed sequences to judge. By default all that somebody followed to the end if there are at most 16, else
        those of one treatment at all stages.
    baselines : bool
        Whether to judge Q-learning's plug-in rule and trees on inverse probability weights as well.
    estimator : {"dr", "ipw", "plug_in"}
        How the people who judge are scored. "dr" is right if at every stage the outcome model or the
        probabilities of treatment are; "ipw" if all probabilities are; "plug_in" if all outcome models
        are, and its intervals count nothing of their errors.
    validation : {"repeated", "sequential", "split"}
    cv : int, scikit-learn splitter, or array of shape (n,), optional
        Number of folds (default 5), of judged blocks (5) or of parts (2), balanced over the treatments of the first
        stage within sequences of treatments; or a splitter; or each person's fold.
    n_repeats : int, optional
        Repetitions of "repeated": 5 by default, 1 if ``cv`` gives the folds.
    level : float
        Coverage of the intervals.
    random_state : int, RandomState or None
        Draws the folds.
    n_jobs : int or None
        Processes for the refits, as in joblib. The result does not depend on it.
    progress : callable, optional
        Called as ``progress(done, total)`` after every refit.

    Returns
    -------
    RegimeValueTable
        Its ``verdict`` is fragile, or withheld, where the direction was not stated, given probabilities of a decision
        are not those of its shares, or few people are there to estimate them (``verdict.gates``).

    Raises
    ------
    InputError
        For stages that do not fit each other, too few people, or a sequence that nobody followed.

    Warns
    -----
    OverlapWarning
        Once for all refits, if some propensities are small.

    Notes
    -----
    The variance of a repeated cross-fitting is that of one repetition plus the variance between repetitions, as in
    :func:`policytree.cross_val_policy_value`: the latter stands for the covariance between folds, which no formula
    knows. Where no treatment has an effect, the regimes of different folds differ most. The variance between
    repetitions is largest then, while averaging over them lowers the variance of the value below that of one
    repetition: intervals are wider than they need be, and cover the truth more often than they say
    (``benchmarks/results/regimes.md``, "held out: no effect"). They err on the side of not recommending a regime.

    References
    ----------
    Nordland and Holst (2026), Journal of Statistical Software 116(4) (values of learnt regimes by cross-fitting).
    Luedtke and van der Laan (2016), Annals of Statistics 44(2), 713-742.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from policytree import DRPolicyTree
    >>> from policytree.regimes import Stage, TreatmentRegime, cross_val_regime_value
    >>> rng = np.random.default_rng(0)
    >>> n = 400
    >>> severity, first, second = rng.normal(size=n), rng.integers(2, size=n), rng.integers(2, size=n)
    >>> response = 2 * first * severity + rng.normal(size=n)
    >>> outcome = second * np.where(response > 0, 2.0, -2.0) + rng.normal(size=n)
    >>> stages = [
    ...     Stage(first, X=pd.DataFrame({"severity": severity}), Y=response, propensity=0.5),
    ...     Stage(second, X=pd.DataFrame({"age": rng.normal(size=n)}), Y=outcome, propensity=0.5),
    ... ]
    >>> regime = TreatmentRegime(DRPolicyTree(max_depth=1, cv=2), random_state=0)
    >>> values = cross_val_regime_value(regime, stages, cv=2, n_repeats=1, baselines=False, random_state=0)
    >>> values.verdict.rule
    'regime'
    """
    if not isinstance(regime, TreatmentRegime):
        raise InputError(f"regime must be a TreatmentRegime; got {quoted(regime)}. For one stage use DRPolicyTree.")
    check_level(level)
    check_choice(estimator, "estimator", ESTIMATORS)
    check_flag(baselines, "baselines")
    course = check_stages(
        stages, sample_weight=sample_weight, groups=groups, strata=strata, missing_outcome=missing_outcome
    )
    gates = regime_gates(course, stages, regime.stated_direction)
    seen = _observed(course)
    rules = rules_to_judge(course, sequences, baselines)
    asked = None if control is None else _control(course, control, rules)
    drawn = draw_validation(validation, cv, n_repeats, seen, random_state)
    if drawn.adaptive:
        raise InputError("n_repeats='adaptive' is not for regimes; give a number of repetitions.")
    teller = Teller(len(drawn.plans) * drawn.n_fits, progress)
    run = partial(_refit, course=course, rules=rules, estimator=estimator)
    refitter = Refitter(regime, run, n_jobs, teller)
    judged = refitter.run([fit for repetition in range(len(drawn.plans)) for fit in drawn.fits(repetition)])
    teller.warn_overlap("In cross-validation", "the folds")
    parts = [[each for each in judged if each.fit.repetition == r] for r in range(len(drawn.plans))]
    scores = tuple(_whole(each) for each in parts)
    table = _table(regime, course, seen, drawn, rules, scores, parts, level, asked, estimator)
    return replace(table, verdict=table.verdict.through(gates))


def _observed(course: Course) -> StudyData:
    """The people as a study of the first decision, whose folds are balanced over its treatments within sequences."""
    sequence = np.unique(np.column_stack([each.arm for each in course.decisions]), axis=0, return_inverse=True)[
        1
    ].ravel()
    blocks = sequence if course.strata is None else sequence * (course.strata.max() + 1) + course.strata
    first = course.decisions[0]
    arm, labels = first.arm, first.treatments
    if not first.eligible.all():
        arm, labels = np.where(first.eligible, arm, first.n_arms), np.array([*map(str, labels), "none"], dtype=object)
    return StudyData(
        np.nan_to_num(course.total()), arm, labels, course.sample_weight, course.groups, course.index,
        np.unique(blocks, return_inverse=True)[1],
    )  # fmt: skip


def _control(course: Course, control: Sequence[Any], rules: dict[str, Rules]) -> str:
    """Name of the control sequence, which joins the rules if it is not among them."""
    added = rules_to_judge(course, [control], False)
    name = fixed_sequences(added)[0]
    rules.setdefault(name, added[name])
    return name


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """Results of one refit.

    Attributes
    ----------
    fit : Fit
    scores : mapping of str to ndarray of shape (n_test,)
    chances : tuple of ndarray of shape (n_test, K)
        Probabilities of their treatments at every stage.
    choices : tuple of ndarray of shape (n_test,), int
        Treatments of the people who judge by its regime, at every stage; -1 where they were not eligible.
    warnings : tuple of WarningMessage
    """

    fit: Fit
    scores: Mapping[str, np.ndarray]
    chances: tuple[np.ndarray, ...]
    choices: tuple[np.ndarray, ...]
    warnings: tuple[warnings.WarningMessage, ...]


def _refit(regime: TreatmentRegime, fit: Fit, *, course: Course, rules: Mapping[str, Rules], estimator: str) -> _Judged:
    """Learn the regime from the training people, and judge all rules on the others."""
    train, test = course.take(fit.train), course.take(fit.test)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", UnseenValueWarning)  # a fold may lack rare categories
        try:
            fitted = clone(regime).fit_course(train)
        except InputError as error:
            raise InputError(f"Learning again from {train.n:,} of {course.n:,} people: {error}") from error
        for stage in fitted.stages_:
            finished(stage)
        each = SequentialScores(fitted, train, test, estimator)
        scores = {name: each.value(rule) for name, rule in rules.items()}
        return _Judged(fit, scores, each.chances(), decisions_of(fitted, test), tuple(heard))


def decisions_of(regime: TreatmentRegime, course: Course) -> tuple[np.ndarray, ...]:
    """Decide for people at every stage, by position of the treatment; -1 where they were not eligible."""
    out = []
    for s, each in enumerate(course.decisions):
        codes = np.full(course.n, -1, dtype=np.int64)
        rows = np.flatnonzero(each.eligible)
        codes[rows] = regime.decide(course, s, rows)
        out.append(codes)
    return tuple(out)


def _whole(judged: Sequence[_Judged]) -> dict[str, np.ndarray]:
    """The scores of one repetition, in the order of the judged people."""
    order = np.argsort(np.concatenate([each.fit.test for each in judged]))
    return {name: np.concatenate([each.scores[name] for each in judged])[order] for name in judged[0].scores}


def _table(
    regime, course: Course, seen: StudyData, drawn: Validation, rules: Mapping[str, Rules], scores, parts, level,
    control, estimator,
) -> RegimeValueTable:  # fmt: skip
    """Estimates, comparisons and the verdict."""
    direction, fixed = regime.direction, fixed_sequences(rules)
    settled = {STATUS_QUO, AS_RANDOMIZED, *fixed}

    def difference(a: str, b: str) -> Estimate:
        return drawn.estimate([each[a] - each[b] for each in scores], seen, level, learnt=not {a, b} <= settled)

    estimates = {
        name: drawn.estimate([each[name] for each in scores], seen, level, learnt=name not in settled) for name in rules
    }
    if estimates[REGIME].n_clusters < 2:
        raise InputError("A standard error needs at least two held-out people or clusters; pass more data.")
    differences = {name: difference(REGIME, name) for name in rules if name != REGIME}
    if not fixed:
        raise InputError("Nobody followed a fixed sequence to its end; name some by sequences=.")
    best = compare_with_best_arm(fixed, differences, difference, direction)
    once: BestComparison | None = None
    if single := single_decisions(rules):
        once = compare_with_best({name: differences[name] for name in single}, direction)
    names = Names(REGIME, None if is_randomized(course) else STATUS_QUO, fixed, control, words=REGIME_WORDS)
    overlap = sequence_overlap(course.take(drawn.judged()), _chances(parts[0]))
    unknown = unknown_sequences(course)
    return RegimeValueTable(
        decide(best, names, difference, direction), estimates, differences, best, once, direction, scores, overlap,
        unknown, estimator, drawn, seen, _agreement(regime, course, parts),
        any(each.allowed is not None for each in course.decisions),
    )  # fmt: skip


def _chances(judged: Sequence[_Judged]) -> list[np.ndarray]:
    """Probabilities of treatment of all judged people at every stage, by models that have not seen them."""
    order = np.argsort(np.concatenate([each.fit.test for each in judged]))
    return [np.concatenate(parts)[order] for parts in zip(*(each.chances for each in judged), strict=True)]


def _agreement(regime: TreatmentRegime, course: Course, parts) -> float | None:
    """Share of decisions in which the regime that was fitted to these people gives what the judged ones give."""
    scores = getattr(regime, "scores_", None)
    if scores is None or len(scores) != course.n:
        return None
    shown = decisions_of(regime, course)
    same, total = 0.0, 0.0
    for judged in (each for part in parts for each in part):
        weight = course.weight[judged.fit.test]
        for own, codes in zip(shown, judged.choices, strict=True):
            counted = codes >= 0
            same += float(weight[counted & (own[judged.fit.test] == codes)].sum())
            total += float(weight[counted].sum())
    return same / total
