"""StudyReport: all results about a study, computed once and shown as a page, text or data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from policytree.common.calls import StudyLike
from policytree.common.typing import Column, PerTreatment, Table
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.estimators.policy import PolicyTree
from policytree.evaluation.instruments.offer_rule import OfferRule, offer_rule
from policytree.evaluation.leaves.honest import HonestLeaves
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.policy_value.verdict import Verdict
from policytree.exceptions import InputError
from policytree.report.base import Report
from policytree.report.content import Content
from policytree.report.described import About, Described
from policytree.report.material import Material, checked_results, headings
from policytree.report.sections.answer import evidence_section, spoken, verdict_section, warnings_section
from policytree.report.sections.credibility import gated, means_section
from policytree.report.sections.depth import depth_section
from policytree.report.sections.effects import heterogeneity_section, ranking_section
from policytree.report.sections.further import by_group_section, further_outcomes_section
from policytree.report.sections.missing import missing_section
from policytree.report.sections.offers import offers_section
from policytree.report.sections.people import people_section
from policytree.report.sections.prices import prices_section
from policytree.report.sections.proof import certificate_section, methods_section, reproduce_section
from policytree.report.sections.question import check_section, question_section
from policytree.report.sections.robustness import sensitivity_section, stability_section
from policytree.report.sections.support import support_section
from policytree.report.sections.survival import survival_section
from policytree.report.sections.target import target_section
from policytree.report.sections.tree import fragile_leaves, not_recommended, rule_sections
from policytree.report.sections.values import values_sections
from policytree.study.study import Study
from policytree.trees.labels import labelled
from policytree.trees.short_thresholds import readable
from policytree.weighting.study_data import StudyData

SAME = 1e-9  # probabilities that differ by less are the same


class StudyReport(Report):
    """A report of a study: verdict, data check, tree, values, overlap, effects, proof, methods.

    The content is computed once, from the data, the fitted model and the results, and is the same in every form. A
    report fits nothing, but for the tree over offers where it is told what these cost.

    Parameters
    ----------
    model : fitted DRPolicyTree or PolicyTree
        The tree to show. Where some rows only judge, the one of ``honest_leaf_summary(...).estimator``.
    Y, T : columns of shape (n,)
        Outcome in its unit, and treatment received, of the whole study; if the model was fitted for a target, of the
        study's own rows, and so is X. A :class:`policytree.Study` takes the place of Y, T, X and the rest.
    X : table of shape (n, p)
        Columns that the tree may use.
    W : table of shape (n, q), optional
        Further confounders.
    groups : column of shape (n,), optional
        Clusters, such as persons with several rows.
    sample_weight : column of shape (n,), optional
        Weights >= 0.
    offer_costs : mapping, array of shape (M,) or (n, M), optional
        Costs of the offers, in the outcome's unit, taken or not. With them or ``treatment_cost`` the
        report learns the best tree over offers, and computes its held-out value, by
        :func:`policytree.evaluation.offer_rule`; pass the result of that among ``results`` to do so beforehand.
    treatment_cost : float
        Cost of the second treatment (in sorted order) for all who take it. The model's own rewards are net of it
        only if it was fitted to outcomes less it.
    results : result or sequence of results
        Further results: of :func:`policytree.cross_val_policy_value` (without it there is no verdict),
        :func:`policytree.honest_leaf_summary`, :func:`policytree.heterogeneity_test`,
        :func:`policytree.evaluation.rank_average_treatment_effect`, :func:`policytree.evaluation.qini_curve`,
        :func:`policytree.evaluation.budget_path`, :func:`policytree.evaluation.pareto_path`,
        :func:`policytree.evaluation.marginal_sensitivity`, :func:`policytree.evaluation.omitted_variable_bounds`,
        :func:`policytree.evaluation.policy_stability`, :func:`policytree.evaluation.near_ties`,
        :func:`policytree.evaluation.offer_rule`, :func:`policytree.diagnostics.target_overlap`,
        :func:`policytree.evaluation.transport_sensitivity`, in any order.
    about : mapping, optional
        Names, units, warnings and the command, which data and results do not contain, such as ``{"unit": "dollars"}``:
        the attributes of :class:`policytree.report.described.About`, which may be passed as well.

    Attributes
    ----------
    content : Content
        Sections of paragraphs, facts, tables, trees and pictures, as data.
    tree : Tree
        The model's tree with the shortest thresholds that send every row the same way: the one that is shown, by the
        columns' own names.
    verdict : Verdict or None
        The verdict as the report says it; None without held-out values.
    fragile_leaves : dict of int to float
        Leaves that come again in fewer than half of the resamples, if there are any, with that share.

    Raises
    ------
    InputError
        If the model is not fitted, or on other columns, data cannot be used, or a result is of no known kind.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree import DRPolicyTree, StudyReport
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.integers(20, 80, size=400)})
    >>> T = rng.choice(["drug", "none"], size=400)
    >>> Y = pd.Series(np.where(X["age"] < 50, 1.0, -1.0) * (T == "drug") + rng.normal(size=400), name="score")
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(Y, T, X=X, propensity=0.5)
    >>> report = StudyReport(model, Y, T, X=X)
    >>> report.content.section("verdict").blocks[0].text
    'None: without held-out values nobody knows whether this tree is worth using.'
    """

    def __init__(
        self,
        model: Any,
        Y: Column | StudyLike,
        T: Column | None = None,
        *,
        X: Table | None = None,
        W: Table | None = None,
        groups: Column | None = None,
        sample_weight: Column | None = None,
        offer_costs: PerTreatment | None = None,
        treatment_cost: float = 0.0,
        results: Any = (),
        about: Mapping[str, Any] | About | None = None,
    ):
        data = StudyData.read("StudyReport", Y, T=T, X=X, W=W, groups=groups, sample_weight=sample_weight)
        study = _as_fitted(model, Y if isinstance(Y, Study) else data.with_covariates())
        described = Described.of(study, about, getattr(model, "direction", None))
        if offer_costs is not None or treatment_cost:
            results = _with_offer_rule(model, results, study, offer_costs, treatment_cost)
        self._say(described, model, results)

    @classmethod
    def of_study(cls, study: Described, model: Any, results: Any = ()) -> StudyReport:
        """Make a report of data that have been checked."""
        report = cls.__new__(cls)
        report._say(study, model, results)
        return report

    def _say(self, study: Described, model: Any, results: Any) -> None:
        """Make the content."""
        if not isinstance(model, DRPolicyTree | PolicyTree):
            raise InputError(f"model must be a DRPolicyTree or a PolicyTree; got {type(model).__name__}.")
        check_is_fitted(model, "tree_")
        asked = getattr(getattr(model, "reward_estimator_", None), "_asked", None)
        if asked is not None and study.times is not None:
            asked.refuse_other(study.times, "the report asks")
        encoded = model.encoder_.encode(study.X)
        self.tree = readable(model.tree_, encoded)
        shown = labelled(self.tree, study.about.labels)
        material = Material(study, model, shown, encoded, checked_results(results))
        material = replace(material, results=gated(study, material.results))
        values = material.only(PolicyValueTable)
        self.verdict: Verdict | None = None if values is None else spoken(material, values.verdict)
        self.fragile_leaves = fragile_leaves(material)
        self.content = make_content(material)


def _with_offer_rule(model: Any, results: Any, study: StudyLike, offer_costs: Any, treatment_cost: float) -> list[Any]:
    """The results with the tree over offers, and its held-out value.

    Raises
    ------
    InputError
        If there are no offers, or the results have such a tree already.
    """
    found = list(results) if isinstance(results, list | tuple) else [results]
    if study.data.instrument is None:
        raise InputError(
            "offer_costs and treatment_cost are about offers; give a study with treatment=Offered(...), or leave "
            "them out."
        )
    if any(isinstance(result, OfferRule) for result in found):
        raise InputError("results holds an OfferRule, which knows its costs; leave offer_costs and treatment_cost out.")
    if isinstance(study, StudyData):
        study = replace(study, propensity=_known_chances(model, study.n))
    seed = getattr(model, "random_state", None)
    rule = offer_rule(model, study, offer_costs=offer_costs, treatment_cost=treatment_cost, random_state=seed)
    return [*found, rule]


def _known_chances(model: Any, n: int) -> Any:
    """Known probabilities of the offers, (M,) or (n, M), that the model was fitted with; None if they were estimated.

    Raises
    ------
    InputError
        If they differ between rows, and not all rows were in the fit.
    """
    chances = model.reward_estimator_.propensity_.to_numpy()
    if not _known(model):
        return None
    if (np.ptp(chances, axis=0) < SAME).all():
        return chances[0]
    if len(chances) == n:
        return chances
    raise InputError(
        "The chances of offers differ between rows, some of which are not in the model; pass the result of offer_rule "
        "among results instead of offer_costs and treatment_cost."
    )


def _as_fitted(model: Any, study: StudyLike) -> StudyLike:
    """The study; of columns, with what the fit asked of times where nobody asked otherwise."""
    rewards = getattr(model, "reward_estimator_", None)
    data = study.observed if isinstance(study, Study) else study.data
    are_times, offers = data.times is not None, data.instrument
    if isinstance(study, StudyData):
        study = replace(study, known_propensity=_known(model))
    if rewards is None:
        if offers is not None:
            raise InputError("instrument needs a DRPolicyTree that was fitted with it; leave it out for other models.")
        return study
    if rewards.offers_ is not None and offers is None:
        raise InputError(
            "The model was fitted with an instrument; give the report that study, with treatment=Offered(...)."
        )
    if rewards.offers_ is None and offers is not None:
        raise InputError(
            "The model was fitted without an instrument; fit it to this study, or leave the offers out here."
        )
    if rewards._asked is not None and not are_times:
        raise InputError(
            "The model was fitted to times to an event; give the report that study, with outcome=TimeToEvent(...)."
        )
    if rewards._asked is None and are_times:
        raise InputError(
            "The model was fitted to outcomes that are numbers; fit it to this study, or leave the events out here."
        )
    if isinstance(study, StudyData) and study.times is not None and study.times.default_horizon:
        return replace(study, times=rewards._asked.of(study.times))
    return study


def _known(model: Any) -> bool:
    """Whether a model was given the probabilities of treatment, or rewards from elsewhere."""
    rewards = getattr(model, "reward_estimator_", None)
    return rewards is None or rewards.models_propensity_ is None


def make_content(material: Material) -> Content:
    """All sections that have content, in their order."""
    study, rule = material.study, rule_sections(material)
    recommended = not_recommended(material) is None  # or nobody knows
    check, suspicious = check_section(study), bool(study.check.of("serious") or study.check.of("warning"))
    first = [
        verdict_section(material), *(rule if recommended else ()), evidence_section(material),
        further_outcomes_section(material), by_group_section(material), check if suspicious else None,
        warnings_section(material), target_section(material), question_section(study), survival_section(material),
        missing_section(material), offers_section(material),
    ]  # fmt: skip
    behind = [
        prices_section(material), None if suspicious else check, *values_sections(material), means_section(material),
        *(() if recommended else rule), depth_section(material), people_section(material), support_section(material),
        heterogeneity_section(material), ranking_section(material), sensitivity_section(material),
        stability_section(material), certificate_section(material), methods_section(material),
        reproduce_section(material),
    ]  # fmt: skip
    sections = [*first, *(None if section is None else replace(section, folded=True) for section in behind)]
    judged = material.only(PolicyValueTable) is not None or material.only(HonestLeaves) is not None
    title, subtitle = headings(
        study.about, f"Which {study.what} for whom", study.aim, f"A rule{material.of_whom}", judged=judged
    )
    return Content(title, subtitle, tuple(section for section in sections if section is not None))
