"""The honest value of a policy learner: nuisances and tree are refitted without the rows they are judged on."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from policytree.common.calls import StudyLike, refuses_said_by_study
from policytree.common.docstrings import shares_documentation
from policytree.common.shared_arguments import STUDY
from policytree.common.typing import Column, PerTreatment, Seed, Table
from policytree.common.validation import check_choice, check_count, check_level
from policytree.constraints.amounts import Limit
from policytree.constraints.checks import asked
from policytree.constraints.people import MAXIMIZE, subgroup_columns
from policytree.data.controls import recognised_control
from policytree.estimators.leaf_sizes import sized_for
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import short_unit
from policytree.evaluation.inference.best_arm import BestComparison, compare_with_best_arm
from policytree.evaluation.inputs import known_label
from policytree.evaluation.policy_value.black_box import BLACK_BOX, PolicyForestRule
from policytree.evaluation.policy_value.confounding import MOST_BENCHMARKS, codes_of, compared, hidden
from policytree.evaluation.policy_value.further import further_values, held_out_groups
from policytree.evaluation.policy_value.gates import (
    Evidence,
    by_chance,
    gates_of,
    given_chances,
    offers_evidence,
    rewards_evidence,
    support_findings,
)
from policytree.evaluation.policy_value.optimism import Judgement, Optimism, optimism
from policytree.evaluation.policy_value.refits import (
    Data,
    Judged,
    Refitter,
    Teller,
    checked_direction,
    refit,
    refuse_stages,
    shown_policy,
    stated_direction,
)
from policytree.evaluation.policy_value.rule_names import AS_RANDOMIZED, PLUG_IN, POLICY, STATUS_QUO, fixed_rules
from policytree.evaluation.policy_value.tables import PolicyValueTable, Repetition
from policytree.evaluation.policy_value.validation import (
    DEFAULT_CV,
    FEWEST_REPEATS,
    REPEATED,
    SMALL_SHARE,
    Validation,
    draw_validation,
    refuse_unlearnable,
)
from policytree.evaluation.policy_value.verdict import Difference, Rules, SecondOpinion, Verdict, decide
from policytree.exceptions import InputError, OverlapWarning, quoted
from policytree.model_selection.crossfit import forget_shared_models
from policytree.study_check import StudyCheck, check_study
from policytree.study_check.directions import direction_of, name_of, with_direction
from policytree.trees.text import rule_sentence
from policytree.trees.tree import Tree
from policytree.weighting.reward_estimator import RewardEstimator
from policytree.weighting.stacking import LEARNERS_OF
from policytree.weighting.study_data import StudyData

AUTO = "auto"  # as a second opinion


@refuses_said_by_study
@shares_documentation(STUDY)
def cross_val_policy_value(
    estimator: Any,
    Y: Column | StudyLike,
    T: Column | None = None,
    *,
    X: Table | None = None,
    W: Table | None = None,
    propensity: PerTreatment | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    rivals: Mapping[str, Any] | None = None,
    black_box: bool = False,
    second_opinion: str | Mapping[str, str] | None = AUTO,
    benchmarks: int = MOST_BENCHMARKS,
    validation: str = REPEATED,
    cv: int | Column | Any = None,
    n_repeats: int | str | None = None,
    level: float = 0.95,
    random_state: Seed = None,
    n_jobs: int | None = None,
    executor: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> PolicyValueTable:
    """Held-out value of a policy learner, against every constant treatment, the status quo and the plug-in rule.

    A clone of ``estimator`` (nuisance models and tree) is fitted on some rows; it recommends treatments to other rows,
    and its nuisance models, which have not seen them, score them. ``validation`` says who learns and who judges:

    "repeated" (the default)
        Cross-fitting: every fold is judged by a rule learnt from the other folds, and all of it is repeated with other
        draws of the folds. With the pooled estimates ``theta_r`` and their cluster-robust variances ``s_r^2`` of
        repetition ``r``, the value is the mean ``theta``, and its variance ``N + kappa b``: ``N`` = mean of ``s_r^2``,
        ``b = sum_r (theta_r - theta)^2 / (R - 1)``, ``kappa = .3 + 1 / R`` for three to five folds. ``N`` alone is too
        small, since every fold's rule has seen the noise of the other folds; ``b`` stands for that covariance. No
        theorem, but held to simulations (``benchmarks/power.py``, ``held_out_coverage.py``): intervals of 93 to 98 %.
        Rules that nobody learns, such as one treatment for all, are judged by the mean of each row's scores over the
        repetitions, with the variance of one estimate from influences.

        Where ``estimator`` asks for as many folds as the evaluation has, at least five (both have five by default), its
        nuisance models are cross-fitted on the evaluation's other folds: a model without two folds serves both refits
        that leave one of them out, so that five folds need ten models of a kind instead of 25.
    "sequential"
        Half of the rows only learn; the rest comes in ``cv`` blocks, each judged by a rule learnt from all rows before
        it. Given the past, each block's scores are independent, so that a martingale central limit theorem holds,
        whether or not one rule is clearly the best. Here blocks are weighted by their rows (a difference may be zero
        throughout a block), not by inverse standard deviations as in the paper. Some 1.4 times as wide; in no simulated
        trial does it win power (``benchmarks/sequential.py``).
    "split"
        One part in ``cv`` (a half by default) judges a rule learnt from the rest; simplest, and as wide.

    The estimand is the mean true value of the rules as trained, each weighted by the rows it is judged on. The
    rule learnt from all rows, the one to show, is another one: fit ``estimator`` on the same rows beforehand, and the
    table says how far it agrees with the rules that were judged.

    Parameters
    ----------
    estimator : DRPolicyTree or the like
        Unfitted or fitted; it is cloned and never changed. Needs ``fit(Y, T, *, X, W, propensity, sample_weight,
        groups)``, ``predict(X)`` and, once fitted, ``reward_estimator_`` with ``predict_rewards(Y, T, *, X, W,
        propensity)`` and ``predict_outcomes(*, X, W)``, both (n, K) frames. Its ``direction`` ("maximize" if it has
        none) says which outcomes are better.
    rivals : mapping of str to estimator, optional
        Further learners to compare, each with ``fit(X, rewards)`` and ``predict(X)`` (labels), such as a
        :class:`policytree.PolicyTree` of another depth. Clones are fitted in every fold on the same rewards as the
        tree, net of costs; those whose ``fit`` takes ``T`` or ``sample_weight`` are given them.
    black_box : bool
        Whether to judge a policy forest too (EconML's, honest, of 100 trees), learnt from the same rewards on the same
        rows: what a black box would reach, beside what a rule that can be read does. It is in the table only; no
        verdict recommends it.
    second_opinion : "auto", mapping of str to str, or None
        By "treatment" or "outcomes", a learner of the default models, by which alone the same rules are judged as well
        (:meth:`policytree.RewardEstimator.by_learner` names them): the table has the verdict of each. Intervals do not
        count how wrong models are; another model shows some of it. "auto": where treatments were not drawn by lot and
        the default models were fitted, of both the one that has the second least error in most refits
        (``second_best_learners_``). None: none.
    benchmarks : int
        Where treatments were not drawn by lot and a rule is recommended: so many covariates, those that explain most of
        treatment and outcome (by least squares), are hidden from all nuisance models in turn, to see whether a hidden
        confounder as strong could explain what is recommended. Each takes one more cross-fitting on all rows, and all
        of them one, if ``estimator`` was not fitted on these rows; 0: none.
    validation : {"repeated", "sequential", "split"}
        See above.
    cv : int, scikit-learn splitter, or array of shape (n,), optional
        Number of folds (default 5), of judged blocks (5) or of parts (2), balanced over treatments; or a splitter; or
        each row's fold: in sequential validation their sorted order is that of time and the earlier half of the folds
        only learns, in a split the first one judges.
    n_repeats : int or "adaptive", optional
        Repetitions of "repeated": 5 by default, 1 if ``cv`` gives the folds. "adaptive" ends after the third or fourth
        of five where the variance between repetitions is less than a tenth of the whole for every value and difference;
        the table says so. 1 gives the narrower intervals of a single cross-fitting, which cover too rarely (about
        90 %).
    level : float
        Coverage of the intervals.
    random_state : int, RandomState or None
        Draws the folds. The estimator's own randomness is set on the estimator.
    n_jobs : int or None
        Processes for the refits, as in joblib (-1: all cores). The result does not depend on it.
    executor : optional
        Where to do the refits instead: anything with ``submit``, such as an executor of ``concurrent.futures`` or
        ``client.get_executor()`` of a dask client, whose workers are sent the data once.
    progress : callable, optional
        Called as ``progress(done, total)`` after every refit, and after every fit with a hidden covariate.

    Returns
    -------
    PolicyValueTable
        Its ``verdict`` says which rule to use.

    Raises
    ------
    InputError
        For bad data (see :class:`policytree.RewardEstimator`), too few rows or clusters of a treatment, or an estimator
        without the methods above.
    KeyboardInterrupt
        On Ctrl-C at any time, also where a search would have kept its best tree.

    Warns
    -----
    OverlapWarning
        Once for all refits, if some propensities are small.

    References
    ----------
    Athey and Wager (2021), Policy learning with observational data, Econometrica 89(1), 133-161, section 5 (values by
    cross-validation). Chernozhukov et al. (2018), Econometrics Journal 21(1), C1-C68 (cross-fitting). Luedtke and van
    der Laan (2016), Statistical inference for the mean outcome under a possibly non-unique optimal treatment strategy,
    Annals of Statistics 44(2), 713-742 (sequential validation). Bates, Hastie and Tibshirani (2023), Journal of the
    American Statistical Association 119(546), 1434-1445 (why naive errors of cross-validation are too small).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree, cross_val_policy_value
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    >>> values = cross_val_policy_value(model, Y, T, X=X, propensity=0.5, cv=2, n_repeats=1, random_state=0)
    >>> values.verdict.use_tree
    True
    """
    check_level(level)  # before the work, not after
    refuse_stages(estimator)
    seen = StudyData.read(
        "cross_val_policy_value", Y, T=T, X=X, W=W, propensity=propensity, groups=groups, sample_weight=sample_weight
    ).with_covariates()
    estimator = with_direction(estimator, seen.direction)
    direction, propensity = checked_direction(estimator), seen.propensity
    ways = direction_of(stated_direction(estimator), name_of(seen), times=seen.times is not None)
    estimator = sized_for(estimator, seen)
    data = Data(seen, direction)
    groups_of = {} if seen.subgroups is None else subgroup_columns(seen.subgroups, seen.n)
    labels = seen.treatments.tolist()
    control = recognised_control(labels) if seen.control is None else known_label(seen.control, labels, "control")
    in_lottery = propensity is not None if seen.randomized is None else seen.randomized
    by_lot = in_lottery or propensity is not None  # nothing but chance decided, whoever got the mixture before
    names = rule_names(seen, control, in_lottery)
    check = check_study(seen)
    given = given_chances(seen, propensity)
    check_choice(validation, "validation", DEFAULT_CV)
    refuse_unlearnable(estimator, seen if seen.instrument is None else seen.by_offer(), validation, cv)
    drawn = draw_validation(validation, cv, n_repeats, seen, random_state)
    check_count(benchmarks, "benchmarks", 0)
    hides = 0 if by_lot or not benchmarks else benchmarks + 1  # fits on all rows, if a rule is recommended
    teller = Teller(len(drawn.plans) * drawn.n_fits + hides, progress)
    others = _asked_opinions(second_opinion, by_lot)
    asked_rivals = _checked_rivals(rivals, seen.treatments)
    if black_box:
        asked_rivals = {**asked_rivals, BLACK_BOX: PolicyForestRule(direction)}
    run = partial(refit, rivals=asked_rivals, data=data, others=others)
    refitter = Refitter(estimator, run, n_jobs, teller, executor)
    try:
        repetitions, judged_by = _repetitions(refitter, data, drawn, names, level)
    finally:
        forget_shared_models()
    teller.warn_overlap("In cross-validation", "the folds")
    table = _table(estimator, data, drawn, repetitions, level, names)
    if data.further or groups_of:
        judged = held_out_groups(repetitions, groups_of, seen, drawn) if groups_of else None
        table = replace(
            table,
            further=further_values(repetitions, seen, drawn, level),
            limits={
                each.outcome: each.settled(data.further[each.outcome][1] == MAXIMIZE)
                for each in asked(estimator)
                if isinstance(each, Limit)
            },
            group_values=None if judged is None else judged.values(level),
            gaps=() if judged is None else judged.gaps(asked(estimator), level),
        )
    why = by_chance(check, seen, propensity is not None, seen.assigned)
    rewards = _rewards_check(data, drawn, repetitions, given, why)
    opinions = _opinions(judged_by, data, drawn, names, level)
    concealed = None
    if hides and compared(table.verdict) is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverlapWarning)  # the refits said so
            model = _all_rows(estimator, seen, data, drawn, judged_by, random_state)
            teller.count()
            if model is not None:
                rules = [codes_of(seen.treatments, repetition.policy, POLICY) for repetition in repetitions]
                concealed = hidden(table.verdict, rules, drawn.judged(), seen, model, benchmarks, teller.count)
    teller.finish()
    evidence = Evidence(seen, ways, check, given, rewards, by_lot, table.verdict.rule, opinions, concealed)
    verdict = table.verdict.through(gates_of(evidence))
    verdict = replace(verdict, words=replace(verdict.words, unit=short_unit(seen.unit)))
    gates = gates_of(replace(evidence, opinions=(), hidden=None))
    opinions = tuple(replace(each, verdict=each.verdict.through(gates)) for each in opinions)
    return replace(table, verdict=verdict, hidden=concealed, second_opinions=opinions)


def _asked_opinions(asked: str | Mapping[str, str] | None, by_lot: bool) -> Mapping[str, str] | None:
    """The learners that judge as well, by what they are models of; None: all, of which the refits choose."""
    if asked is None:
        return {}
    if not isinstance(asked, Mapping):
        check_choice(asked, "second_opinion", (AUTO,))
        return {} if by_lot else None
    for of, learner in asked.items():
        check_choice(of, "second_opinion", LEARNERS_OF)
        check_choice(learner, f"second_opinion[{of!r}]", LEARNERS_OF[of])
    return asked


def _opinions(
    judged_by: list[list[Judged]], data: Data, drawn: Validation, names: Rules, level: float
) -> tuple[SecondOpinion, ...]:
    """The verdicts by other models; where all learners judged, by that of second least error in most refits."""
    every = [j for parts in judged_by for j in parts]
    found = []
    for of in LEARNERS_OF:
        learners = [  # refits of fewer rows may have afforded more
            learner
            for which, learner in every[0].other_rewards
            if which == of and all((of, learner) in j.other_rewards for j in every)
        ]
        votes = Counter(j.second_best[of] for j in every if j.second_best.get(of) in learners)
        if len(learners) > 1:
            learners = [learner for learner, _ in votes.most_common(1)]
        for learner in learners:
            others = [
                [replace(j, rewards=j.other_rewards[of, learner], training=None) for j in part] for part in judged_by
            ]
            by_other = [_assembled(part, data, drawn, names) for part in others]
            differences = _estimates(by_other, data.seen, drawn, level)[1]
            verdict = _verdict(data, drawn, by_other, differences, level, names)[0]
            about = data.seen.assigned if of == "treatment" else of
            found.append(SecondOpinion(of, about, LEARNERS_OF[of][learner], verdict))
    return tuple(found)


def _all_rows(
    estimator, seen: StudyData, data: Data, drawn: Validation, judged_by: list[list[Judged]], random_state: Seed
) -> RewardEstimator | None:
    """The estimator's nuisance models fitted to all rows, whose folds can be drawn again; None if they have no chances.

    None also where rewards are of other people, or gains.
    """
    nuisances, own = judged_by[0][0].nuisances, getattr(estimator, "reward_estimator_", None)
    if nuisances is None or data.seen.instrument is not None or data.seen.study is not None:
        return None
    again = isinstance(own, RewardEstimator) and isinstance(own.random_state, int | np.integer)
    if again and shown_policy(estimator, data, drawn.judged()) is not None:
        return own
    if not isinstance(nuisances.random_state, int | np.integer):
        nuisances.set_params(random_state=check_random_state(random_state).randint(2**31))
    return nuisances.fit(seen)


def _rewards_check(
    data: Data, validation: Validation, repetitions: Sequence[Repetition], given: np.ndarray | None, why: str
) -> StudyCheck | None:
    """The check of the held-out rewards, gross of costs, and of the chances that the first refit estimated.

    Gains of those who follow offers cannot be checked: the rewards of the offers are, of the rows that the first refit
    learnt from. None where rewards are of other people.
    """
    if data.seen.study is not None:
        return None
    if data.seen.instrument is not None:
        return None if repetitions[0].support is None else offers_evidence(data.seen, repetitions[0].support, why)
    rows, sign = validation.judged(), 1.0 if data.direction == "maximize" else -1.0
    rewards = sum(repetition.rewards.to_numpy() for repetition in repetitions) / len(repetitions)
    costs = data.costs(rows)
    if costs is not None:
        rewards = rewards + sign * costs
    frame = pd.DataFrame(rewards, columns=data.seen.treatments)
    chances = None if given is None else pd.DataFrame(given[rows], columns=data.seen.treatments)
    check = rewards_evidence(data.seen, rows, frame, why, propensity=chances)
    support = repetitions[0].support
    if support is None:
        return check
    return replace(check, findings=(*check.findings, *support_findings(data.seen, support)))


def rule_names(seen: StudyData, control: Any, randomized: bool) -> Rules:
    """Names of the rules that a verdict is about, by the label of the control (None: no control)."""
    arms = tuple(f"always {label}" for label in seen.treatments)
    reference = None if control is None else f"always {control}"
    return Rules(POLICY, None if randomized else STATUS_QUO, arms, reference)


def _repetitions(
    refitter: Refitter, data: Data, validation: Validation, names: Rules, level
) -> tuple[list[Repetition], list[list[Judged]]]:
    """All refits, at once, or repetition by repetition where they may end early; and what they were put together of."""
    count = len(validation.plans)
    batches: list[Sequence[int]] = [range(count)]
    if validation.adaptive:
        batches = [range(FEWEST_REPEATS), *(range(r, r + 1) for r in range(FEWEST_REPEATS, count))]
    repetitions: list[Repetition] = []
    judged_by: list[list[Judged]] = []
    for batch in batches:
        judged = refitter.run([fit for repetition in batch for fit in validation.fits(repetition)])
        parts = [[j for j in judged if j.fit.repetition == r] for r in batch]
        judged_by += parts
        repetitions += [_assembled(part, data, validation, names) for part in parts]
        if validation.adaptive and settled(repetitions, data.seen, validation, level):
            break
    return repetitions, judged_by


def settled(repetitions: Sequence[Repetition], seen: StudyData, validation: Validation, level: float) -> bool:
    """Whether repetitions hardly move any value or difference."""
    estimates, differences = _estimates(repetitions, seen, validation, level)
    everything = [*estimates.values(), *differences.values()]
    return all(e.between_variance <= SMALL_SHARE * e.standard_error**2 for e in everything)


def _assembled(judged: list[Judged], data: Data, validation: Validation, names: Rules) -> Repetition:
    """Put the parts of one repetition together, in the order of the judged rows."""
    rows = validation.judged()
    order = np.argsort(np.concatenate([j.fit.test for j in judged]))

    def whole(parts) -> np.ndarray:
        return np.concatenate(list(parts))[order]

    seen = data.seen
    rewards, every = whole(j.rewards for j in judged), np.arange(len(rows))
    policy, plug_in = whole(j.policy for j in judged), whole(j.plug_in for j in judged)
    rivals = {name: whole(j.rivals[name] for j in judged) for name in judged[0].rivals}
    scores = {POLICY: rewards[every, policy]}
    scores |= {f"always {label}": rewards[:, k] for k, label in enumerate(seen.treatments)}
    own = names.status_quo or AS_RANDOMIZED
    scores |= {own: whole(j.outcome for j in judged), PLUG_IN: rewards[every, plug_in]}
    scores |= {name: rewards[every, codes] for name, codes in rivals.items()}
    return Repetition(
        validation.plans[judged[0].fit.repetition], seen.treatments[policy], seen.treatments[plug_in],
        {name: seen.treatments[codes] for name, codes in rivals.items()},
        pd.DataFrame(rewards, index=seen.index[rows], columns=seen.treatments), scores, tuple(j.tree for j in judged),
        _judgements(judged), _further_scores(judged, whole, own, policy, plug_in, rivals, seen.treatments),
        judged[0].support,
    )  # fmt: skip


def _further_scores(
    judged: list[Judged], whole, own: str, policy, plug_in, rivals: Mapping[str, np.ndarray], treatments
) -> dict[str, dict[str, np.ndarray]]:
    """Score every rule on every judged row by further outcomes."""
    out = {}
    for name in judged[0].further:
        rewards = whole(j.further[name] for j in judged)
        every = np.arange(len(rewards))
        scores = {POLICY: rewards[every, policy]}
        scores |= {f"always {label}": rewards[:, k] for k, label in enumerate(treatments)}
        out[name] = scores | {own: whole(j.further_own[name] for j in judged), PLUG_IN: rewards[every, plug_in]}
        out[name] |= {rival: rewards[every, codes] for rival, codes in rivals.items()}
    return out


def _judgements(judged: list[Judged]) -> dict[str, tuple[Judgement, ...]]:
    """Both sides of every refit of every rule that is learnt; nothing if training rows were not scored."""
    if any(j.training is None for j in judged):
        return {}

    def one(j: Judged, name: str, codes: np.ndarray) -> Judgement:
        assert j.training is not None
        held_out = j.rewards[np.arange(len(codes)), codes]
        return Judgement(j.fit.train, j.fit.test, j.training[name], held_out)

    out = {
        POLICY: tuple(one(j, "policy", j.policy) for j in judged),
        PLUG_IN: tuple(one(j, "plug_in", j.plug_in) for j in judged),
    }
    return out | {name: tuple(one(j, name, j.rivals[name]) for j in judged) for name in judged[0].rivals}


def _estimates(
    repetitions: Sequence[Repetition], seen: StudyData, validation: Validation, level: float
) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """Values of all rules on the held-out rows, and the policy's paired differences."""
    rules = list(repetitions[0].scores)
    fixed = fixed_rules(seen)
    estimates = {
        rule: validation.estimate([r.scores[rule] for r in repetitions], seen, level, learnt=rule not in fixed)
        for rule in rules
    }
    differences = {
        rule: validation.estimate([r.scores[POLICY] - r.scores[rule] for r in repetitions], seen, level)
        for rule in rules
        if rule != POLICY
    }
    return estimates, differences


def _table(
    estimator, data: Data, validation: Validation, repetitions: list[Repetition], level, names: Rules
) -> PolicyValueTable:
    """Estimates, the comparison with the best treatment, and the verdict."""
    estimates, differences = _estimates(repetitions, data.seen, validation, level)
    if estimates[POLICY].n_clusters < 2:
        raise InputError("A standard error needs at least two held-out rows or clusters; pass more data.")
    verdict, best = _verdict(data, validation, repetitions, differences, level, names)
    verdict = _told(verdict, estimator, data, validation, repetitions)
    return PolicyValueTable(
        verdict, estimates, differences, best, data.direction, tuple(repetitions), validation.judged(), validation,
        data.seen, _agreement(estimator, data, validation, repetitions),
        optimism=_optimism(repetitions, data.seen, validation, level),
    )  # fmt: skip


def _verdict(
    data: Data,
    validation: Validation,
    repetitions: list[Repetition],
    differences: dict[str, Estimate],
    level,
    names: Rules,
) -> tuple[Verdict, BestComparison]:
    """Which rule to use, and the comparison with the best treatment that it rests on."""

    def difference(a: str, b: str) -> Estimate:
        scores = [r.scores[a] - r.scores[b] for r in repetitions]
        return validation.estimate(scores, data.seen, level, learnt=not {a, b} <= fixed)

    fixed = fixed_rules(data.seen)
    best = compare_with_best_arm(names.arms, differences, difference, data.direction)
    return decide(best, names, difference, data.direction, _gross(data, validation, repetitions, level)), best


def _told(verdict: Verdict, estimator, data: Data, validation: Validation, repetitions: list[Repetition]) -> Verdict:
    """With the rule in words, if the estimator was fitted on these rows, and the shares of people that it changes."""
    rows, seen, reference = validation.judged(), data.seen, verdict.reference
    shown = shown_policy(estimator, data, rows)
    tree = getattr(estimator, "tree_", None)
    in_words = rule_sentence(tree) if shown is not None and isinstance(tree, Tree) else ""
    if seen.study is not None:
        return replace(verdict, in_words=in_words)
    labels = {f"always {label}": label for label in seen.treatments}
    policies = [r.policy for r in repetitions] if shown is None else [shown]
    if verdict.rule in labels and verdict.rule != reference:
        policies = [np.full(len(rows), labels[verdict.rule])]
    weight = None if seen.sample_weight is None else seen.sample_weight[rows]

    def others(rule: str | None) -> float | None:
        if rule is None:
            return None
        own = labels[rule] if rule != STATUS_QUO else seen.treatments[seen.arm[rows]]
        return float(np.mean([np.average(policy != own, weights=weight) for policy in policies]))

    best = others(verdict.against_best.best) if verdict.use_tree else None
    return replace(verdict, in_words=in_words, changed=others(reference), other_than_best=best)


def _gross(data: Data, validation: Validation, repetitions: list[Repetition], level) -> Difference | None:
    """Differences before costs, of the rules that a verdict speaks of; None if treatments cost nothing.

    None also for a target: what its people would be given as the study does it is an estimate of every fit.
    """
    costs = data.costs(validation.judged())
    if costs is None or data.seen.study is not None:
        return None
    sign, seen = 1.0 if data.direction == "maximize" else -1.0, data.seen
    every, labels = np.arange(len(costs)), pd.Index(seen.treatments)

    def spent(rule: str, repetition: Repetition) -> np.ndarray:
        if rule == STATUS_QUO:  # never as randomised: no verdict is about that
            codes = seen.arm[validation.judged()]
        elif rule == POLICY:
            codes = labels.get_indexer(pd.Index(repetition.policy))
        else:
            codes = np.full(len(costs), [f"always {label}" for label in seen.treatments].index(rule))
        return costs[every, codes]

    def difference(a: str, b: str) -> Estimate:
        scores = [r.scores[a] - r.scores[b] + sign * (spent(a, r) - spent(b, r)) for r in repetitions]
        return validation.estimate(scores, seen, level, learnt=POLICY in (a, b))

    return difference


def _optimism(repetitions: list[Repetition], seen: StudyData, validation: Validation, level) -> dict[str, Optimism]:
    """Of every rule that is learnt."""
    n_folds = validation.plans[0].n_folds
    return {
        rule: optimism([r.judgements[rule] for r in repetitions], seen, n_folds, level)
        for rule in repetitions[0].judgements
    }


def _agreement(estimator, data: Data, validation: Validation, repetitions: list[Repetition]) -> float | None:
    """Share of judged rows to which the rule learnt from all rows gives what the judged rules give; None if unknown."""
    rows = validation.judged()
    shown = shown_policy(estimator, data, rows)
    if shown is None:
        return None
    weight = None if data.seen.sample_weight is None else data.seen.sample_weight[rows]
    return float(np.mean([np.average(shown == r.policy, weights=weight) for r in repetitions]))


def _checked_rivals(rivals: Mapping[str, Any] | None, treatments: np.ndarray) -> Mapping[str, Any]:
    """Refuse names that a row of the table has already."""
    taken = {POLICY, STATUS_QUO, AS_RANDOMIZED, PLUG_IN, BLACK_BOX, *(f"always {label}" for label in treatments)}
    if rivals is not None and not isinstance(rivals, Mapping):
        raise InputError(f"rivals must be a mapping of names to estimators or None; got {quoted(rivals)}.")
    for name in rivals or {}:
        if name in taken:
            raise InputError(f"rivals holds {name!r}, which is the name of another rule of the table; choose another.")
    return rivals or {}
