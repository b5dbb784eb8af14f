"""Questions of a report besides the value: whether effects differ, whom to treat first, budgets, robustness."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone

from policytree.cli.records import Job
from policytree.cli.study import Origin
from policytree.cli.tree_options import n_people
from policytree.common.progress import StageDisplay, clock_text
from policytree.common.validation import columns_by_label
from policytree.constraints.amounts import Budget, Limit
from policytree.diagnostics.population_overlap import target_overlap
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.estimators.policy import PolicyTree, without_limits
from policytree.evaluation.heterogeneity.global_tests import HeterogeneityTest, heterogeneity_test
from policytree.evaluation.instruments.offer_rule import OfferRule, offer_rule
from policytree.evaluation.leaves.honest import HonestLeaves
from policytree.evaluation.policy_value.sample_split import HeldOutRewards, held_out_rewards
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.policy_value.validation import SPLIT
from policytree.evaluation.policy_value.verdict import Reason
from policytree.evaluation.sensitivity.marginal import MarginalSensitivity, marginal_sensitivity
from policytree.evaluation.sensitivity.omitted_variables import OmittedVariableBounds, omitted_variable_bounds
from policytree.evaluation.sensitivity.transport import transport_sensitivity
from policytree.evaluation.stability.rashomon import near_ties
from policytree.evaluation.stability.rashomon_tables import NearTies
from policytree.evaluation.stability.resampling import policy_stability
from policytree.evaluation.targeting.budget_path import budget_path
from policytree.evaluation.targeting.pareto_path import ParetoPath, pareto_path
from policytree.evaluation.targeting.qini import qini_curve
from policytree.evaluation.targeting.rate import rank_average_treatment_effect
from policytree.exceptions import InputError
from policytree.study.study import Study
from policytree.weighting.costs import treatment_costs

# With more rows, refitting everything takes minutes: it is then done only on request.
STABILITY_ROWS, STABILITY_RESAMPLES, USUAL_RESAMPLES = 2_000, 20, 50
DEEPEST_NEAR_TIES, NEAR_TIES_SECONDS, PATH_SECONDS = 2, 20.0, 60.0
# Parts of warnings that a report words in its own way: where they were heard, and what to look at.
HEARD_INSIDE = re.compile(
    r"^In (cross-validation|a resample): | \(\d+ more such warnings in [a-z ]+\)$| target_overlap says where\."
)
SAME_WORDS = 8  # at the beginning of warnings of one kind, without their numbers
Answer = Callable[[Callable[[int, int], None]], list[Any]]


@dataclass
class Steps:
    """Runs the stages of a job: shows them, keeps their warnings, ends on Ctrl-C.

    Attributes
    ----------
    display : StageDisplay
    check : callable
        Raises KeyboardInterrupt if Ctrl-C was pressed.
    warnings : dict of str to str
        One sentence for each kind of warning that was heard.
    """

    display: StageDisplay
    check: Callable[[], None]
    warnings: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def step(self, title: str, detail: str = "", where: str = "", **parts: Any) -> Iterator[Callable[[int, int], None]]:
        """A stage (``parts`` as it takes them); ``where``: of its warnings. Yields ``progress(done, total)``."""
        with _collected_warnings() as heard, self.display.stage(title, **parts) as advance:
            self.display.detail(detail)

            def progress(done: int, total: int) -> None:
                self.check()
                advance(done, total)

            yield progress
            self.check()
        merge_warnings(heard, self.warnings, where)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The tree that a report shows, and how it was judged.

    Attributes
    ----------
    study : Study
    origin : Origin
    estimator : DRPolicyTree
    honest : HonestLeaves or None
    values : PolicyValueTable or None
    seconds : float
        Duration of one of the refits behind the values.
    """

    study: Study
    origin: Origin
    estimator: DRPolicyTree
    honest: HonestLeaves | None
    values: PolicyValueTable | None
    seconds: float

    @property
    def is_shallow(self) -> bool:
        """Whether all trees that tie with the one shown can be counted."""
        depth = self.estimator.max_depth_
        return depth is not None and depth <= DEEPEST_NEAR_TIES

    @property
    def learning(self) -> np.ndarray:
        """Positions of the rows that chose the tree."""
        every = np.arange(self.study.observed.n)
        return every if self.honest is None else np.setdiff1d(every, self.honest.rows)


def answers(job: Job, fitted: Fitted, steps: Steps) -> tuple[tuple[Any, ...], dict[str, str]]:
    """Results for the report, and by section what to do for more.

    A question that cannot be answered (too few rows, for example) becomes a warning, and the others are answered.
    """
    found: list[Any] = []
    further: dict[str, str] = {}
    for title, detail, where, answer in _questions(job, fitted, further):
        with steps.step(title, detail, where, at_once=effective_n_jobs(job.tree["n_jobs"])) as progress:
            try:
                found += answer(progress)
            except InputError as error:
                steps.warnings[title] = f"{title} Not answered: {error}"
    return tuple(found), further


def _questions(job: Job, fitted: Fitted, further: dict[str, str]) -> list[tuple[str, str, str, Answer]]:
    """The questions: title, the progress text, the place that warnings name, and the function that answers."""
    valued, study = fitted.values is not None, fitted.study
    offered = study.observed.instrument is not None
    asked: list[tuple[str, str, str, Answer]] = []
    if not offered:
        asked.append(
            ("Do effects differ between people?", "sequential outcome models", "in the test of effects",
             lambda _: [_heterogeneity(job, fitted)])
        )  # fmt: skip
    else:
        title = "Whom to offer which treatment? (intention to treat)"
        asked.append((title, "a tree over offers", "for the offers", lambda progress: [_offers(job, fitted, progress)]))
    if valued and not offered:
        title = "Whom first, and what would a budget buy?" if study.budget_costs else "Whom first?"
        asked.append((title, "half of the rows learn", "in the ranking", lambda _: _ranking(job, fitted)))
    if study.population is not None:
        asked.append(("Does the study know people like the target?", "", "of the target", lambda _: _target(fitted)))
    elif fitted.values is not None and study.propensity is None and not offered:
        hidden = partial(sensitivity, fitted.values, fitted.estimator, study, level=job.level, seed=job.seed)
        asked.append(("Could hidden confounding undo it?", "", "in the bounds for it", lambda _: list(hidden())))
    if study.budget_costs and all(isinstance(each, Budget) for each in job.tree["constraints"]):
        asked.append(
            ("Which trees are best for other budgets?", "", "for other budgets", lambda _: [_path(job, fitted)])
        )
    if unseen := [name for name in fitted.origin.limits.unseen if name in study.confounders]:
        title = f"How much does it cost not to ask about {', '.join(unseen)}?"
        asked.append((title, "", "", lambda _: _not_asked(job, fitted, unseen, further)))
    if _has_front(job, fitted):
        asked.append(("Would other limits cost more?", "all trees of the front", "", lambda _: [_front(job, fitted)]))
    if resamples := _resamples(job, fitted):
        again = partial(_stability, job, fitted, resamples)
        title = "Would the tree come again?"
        asked.append((title, "everything on resamples", "in the resamples", lambda progress: [again(progress)]))
    elif valued:
        needed = clock_text(fitted.seconds * USUAL_RESAMPLES)
        further["stability"] = (
            f"Whether other people would have given another tree was not asked: --stability {USUAL_RESAMPLES} learns "
            f"everything again on so many resamples, some {needed} by what the refits behind the values took."
        )
    if valued and study.population is None and fitted.is_shallow and not job.tree["constraints"]:
        asked.append(("Which other trees do as well?", "", "in the count", lambda _: [_near_ties(job, fitted)]))
    return asked


def _resamples(job: Job, fitted: Fitted) -> int:
    if job.stability is not None:
        return job.stability
    small = fitted.study.observed.n <= STABILITY_ROWS
    return STABILITY_RESAMPLES if small and fitted.values is not None else 0


def _heterogeneity(job: Job, fitted: Fitted) -> HeterogeneityTest:
    """With the fitted nuisances if they are of all rows, with new ones otherwise."""
    rewards = fitted.estimator.reward_estimator_
    known = {"fitted": rewards} if fitted.honest is None else {"estimator": rewards}
    return heterogeneity_test(fitted.study, **known, baseline=job.control, random_state=job.seed)


def _offers(job: Job, fitted: Fitted, progress: Callable[[int, int], None]) -> OfferRule:
    """The tree over offers, judged on the same rows in the same way as the tree over treatments."""
    origin, study = fitted.origin, fitted.origin.gross or fitted.study
    options = validation_options(job, None if fitted.honest is None else fitted.honest.rows, study.n)
    return offer_rule(
        fitted.estimator, study, offer_costs=study.by_label(origin.offer_costs), treatment_cost=origin.taker_cost,
        value=fitted.values is not None, level=job.level, random_state=job.seed, n_jobs=job.tree["n_jobs"],
        progress=progress, **options,
    )  # fmt: skip


def validation_options(job: Job, judging: np.ndarray | None, n: int) -> dict[str, Any]:
    """How rows are held out, as ``cross_val_policy_value`` takes it; ``judging``: rows that were kept for it."""
    if judging is None:
        cv = None if job.validation == SPLIT else job.cv
        return {"validation": job.validation, "n_repeats": job.repeats, "cv": cv}
    fold = np.ones(n, dtype=int)
    fold[judging] = 0
    return {"validation": SPLIT, "cv": fold}


def _ranking(job: Job, fitted: Fitted) -> list[Any]:
    """Whether predictions know who gains most, and what budgets buy: half of the rows learn, the others judge.

    With more than two treatments people are ranked by what their own best one, by the predictions, gains over the
    control. Gains are net of what treatments cost in the outcome's unit.
    """
    study, judges = fitted.study, 0.5 if fitted.honest is None else fitted.honest.rows
    way = study.ways.way
    held = held_out_rewards(fitted.estimator.reward_estimator_, study, honest=judges, random_state=job.seed)
    held = _net_of_costs(replace(held, direction=way), study)
    labels = study.observed.treatments
    control = next(k for k in labels if str(k) == job.control)
    others = [label for label in labels if label != control]
    sign = 1.0 if way == "maximize" else -1.0
    best = labels[(sign * columns_by_label(held.outcomes, labels).to_numpy()).argmax(axis=1)]
    gain = sign * (held.outcomes.to_numpy()[np.arange(len(best)), held.outcomes.columns.get_indexer(best)]
                   - held.outcomes[control].to_numpy())  # fmt: skip
    treatment = best
    if len(others) == 1:
        treatment, gain = others[0], held.predicted_gain(others[0], control).to_numpy()
    ranking = rank_average_treatment_effect(
        {"predicted gain": gain}, held, treatment=treatment, baseline=control, level=job.level, random_state=job.seed
    )
    if len(others) > 1:
        ranking = replace(ranking, treatment="Each person's best treatment as predicted")
    if not study.budget_costs:
        return [ranking]
    named = study.by_label({label: study.budget_costs.get(label, 0.0) for label in labels.tolist()})
    costs = {k: cost.iloc[held.rows] if hasattr(cost, "iloc") else cost for k, cost in named.items()}
    curve = qini_curve(held.outcomes, held, costs, baseline=control, level=job.level, random_state=job.seed)
    return [ranking, curve]


def _net_of_costs(held: HeldOutRewards, study: Study) -> HeldOutRewards:
    if not study.arm_costs:
        return held
    treatments = list(held.rewards.columns)
    n = study.n + n_people(study)
    costs = treatment_costs(study.by_label(study.arm_costs), n, treatments)[held.rows]
    sign = 1.0 if study.ways.way == "maximize" else -1.0
    return replace(held, rewards=held.rewards - sign * costs, outcomes=held.outcomes - sign * costs)


def _target(fitted: Fitted) -> list[Any]:
    """Overlap of study and target where the tree was learnt from all rows; how wrong transportability may be."""
    study, found = fitted.study, list[Any]()
    rewards = fitted.estimator.reward_estimator_
    if fitted.honest is None and rewards.participation_ is not None:
        both = study.data
        assert both.study is not None, "there are other people"
        found.append(target_overlap(rewards, both.X, W=both.W, study=both.study, sample_weight=both.learning_weight))
    if fitted.values is not None and fitted.values.observed.study is not None:
        found.append(transport_sensitivity(fitted.values))
    return found


def _path(job: Job, fitted: Fitted) -> Any:
    """The best trees of all budgets, on the rows that chose the tree."""
    tree = {name: value for name, value in job.tree.items() if name not in ("constraints", "method", "time_limit")}
    limit = job.tree["time_limit"] if job.tree["time_limit"] is not None else PATH_SECONDS
    tree |= _size(fitted.estimator)
    estimator = PolicyTree(direction=fitted.study.ways.way, time_limit=limit, **tree)
    return budget_path(estimator, fitted.study.X.iloc[fitted.learning], fitted.estimator.tree_rewards_, **_rows(fitted))


def _size(model: DRPolicyTree) -> dict[str, Any]:
    """The size of the trees among which the one that is shown was found."""
    return {name: getattr(model, f"{name}_") for name in ("max_depth", "regularization", "max_leaf_nodes")}


def _not_asked(job: Job, fitted: Fitted, unseen: list[str], further: dict[str, str]) -> list[Any]:
    """Without limits, what the best tree gains that may ask about columns whose groups are compared: a sentence."""
    model, study, seconds = fitted.estimator, fitted.study, job.tree["time_limit"]
    tree = without_limits(model).set_params(**_size(model))
    tree.set_params(time_limit=PATH_SECONDS if seconds is None else seconds, verbose=0)
    rows, given = fitted.learning, _rows(fitted)
    without, full = (
        clone(tree).fit(study.table[names].iloc[rows], model.tree_rewards_, **given)
        for names in ([*study.covariates], [*study.covariates, *unseen])
    )
    price = (full.objective_value_ - without.objective_value_) * (1.0 if study.ways.way == "maximize" else -1.0)
    proved = "proved" if without.status_.proved and full.status_.proved else "not proved"
    further["further"] = (
        f"Beside it: not to ask about {', '.join(unseen)} costs {price:,.4g} of the {study.value} on these "
        f"{len(rows):,} rows, by the best trees without limits ({proved})."
    )
    return []


def _has_front(job: Job, fitted: Fitted) -> bool:
    """Whether one outcome is limited, and nothing else: then the best trees of all its limits can be listed."""
    constraints = job.tree["constraints"]
    return len(constraints) == 1 and isinstance(constraints[0], Limit) and fitted.is_shallow


def _front(job: Job, fitted: Fitted) -> ParetoPath:
    """The best trees of all limits on the one outcome, on the rows that chose the tree."""
    model, seconds = fitted.estimator, job.tree["time_limit"]
    (limit,) = job.tree["constraints"]
    name = limit.outcome
    tree = without_limits(model).set_params(**_size(model))
    tree.set_params(time_limit=PATH_SECONDS if seconds is None else seconds, verbose=0)
    outcome = model.outcome_estimators_[name].rewards_, fitted.study.further_outcomes[name]
    rows, X = _rows(fitted), fitted.study.X.iloc[fitted.learning]
    return pareto_path(tree, X, model.tree_rewards_, outcomes={name: outcome}, **rows)


def _rows(fitted: Fitted) -> dict[str, Any]:
    """Return the arguments of a tree's fit beside X and rewards, of the rows that chose it."""
    rows, data, out = fitted.learning, fitted.study.observed, dict[str, Any]()
    out["T"] = data.received(rows)
    if data.sample_weight is not None:
        out["sample_weight"] = data.sample_weight[rows]
    for name in ("sample_treatment_costs", "budget_costs"):
        if (values := getattr(data, name)) is not None:
            out[name] = {k: cost.iloc[rows] if hasattr(cost, "iloc") else cost for k, cost in values.items()}
    return out


def _stability(job: Job, fitted: Fitted, resamples: int, progress: Callable[[int, int], None]) -> Any:
    return policy_stability(
        fitted.estimator, fitted.study, n_resamples=resamples, random_state=job.seed, n_jobs=job.tree["n_jobs"],
        progress=progress,
    )  # fmt: skip


def _near_ties(job: Job, fitted: Fitted) -> NearTies:
    rows = _rows(fitted)
    rows.pop("budget_costs", None)
    return near_ties(fitted.estimator, fitted.study.X.iloc[fitted.learning], time_limit=NEAR_TIES_SECONDS, **rows)


def merge_warnings(heard: list[warnings.WarningMessage], into: dict[str, str], where: str = "") -> None:
    """Add one sentence per kind of warning; repetitions are counted, not repeated.

    Warnings of one class are of one kind if they begin alike, whatever their numbers.
    """
    kinds: dict[str, list[str]] = {}
    for warning in heard:
        words = HEARD_INSIDE.sub("", str(warning.message)).split()
        beginning = " ".join(re.sub(r"[^a-z ]", "", word.casefold()) for word in words[:SAME_WORDS])
        kinds.setdefault(f"{warning.category.__name__}: {beginning}", []).append(" ".join(words))
    for kind, messages in kinds.items():
        times = f", {len(messages)} times" if len(messages) > 1 else ""
        if kind in into:
            into[kind] += f" (Likewise {where}{times}.)" if where else ""
        else:
            into[kind] = messages[0] + (f" (Heard {where}{times}.)" if where else "")


@contextmanager
def _collected_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Keep warnings for the report: printed at once, they would break the live display."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        warnings.filterwarnings("ignore", "With cause=, rewards are")  # --cause needs a --direction
        yield heard


def sensitivity(
    values: PolicyValueTable, estimator: DRPolicyTree, study: Study, *, level: float, seed: int
) -> tuple[MarginalSensitivity | OmittedVariableBounds, ...]:
    """Bounds of the comparison behind the verdict; none if treatment was randomised, or bounds cannot be computed.

    If the tree is to be used: the learnt rules against the best single treatment. If one treatment is to be used for
    all: that treatment against the next best one for all; these rows picked both, so that the bounds have no intervals.
    The strength of an omitted variable is compared with that of the covariates that were hidden for the verdict.

    Raises
    ------
    InputError
        If the two rules differ for too few people who received what one of the rules gives.
    """
    fitted, seen = estimator.reward_estimator_, study.observed
    if study.propensity is not None or fitted.propensity_ is None or len(fitted.rewards_) != seen.n:
        return ()
    verdict, received = values.verdict, seen.treatments[seen.arm]
    arms = {f"always {label}": label for label in seen.treatments.tolist()}
    sign, best = (1.0 if values.direction == "maximize" else -1.0), values.against_best.best
    rest = max((name for name in arms if name != best), key=lambda name: sign * values.estimates[name].value)
    if verdict.reason in (Reason.STATUS_QUO_BETTER, Reason.NONE_BETTER, Reason.NONE_BEST, Reason.UNCLEAR):
        return ()
    picked = np.full(seen.n, arms[best], dtype=seen.treatments.dtype)  # row by row: a rule that these rows chose
    policy, baseline = (values, arms[best]) if verdict.use_tree else (picked, arms[rest])
    rows: dict[str, Any] = {"groups": seen.groups, "sample_weight": seen.sample_weight}
    asked: dict[str, Any] = {
        "propensity": fitted.propensity_, "regression": fitted.regression_, "baseline": baseline, "level": level,
        "random_state": seed, **({} if verdict.use_tree else rows),
    }  # fmt: skip
    brought = fitted.outcome_.to_numpy()  # of rows that are censored or missing, what takes their outcome's place
    marginal = marginal_sensitivity(policy, brought, received, **asked)
    benchmarks = {} if values.hidden is None else values.hidden.nuisances
    omitted = omitted_variable_bounds(policy, brought, received, benchmarks=benchmarks, **asked)
    what = f"{verdict.rule} - {best if verdict.use_tree else rest}"
    return replace(marginal, what=what), replace(omitted, what=what)
