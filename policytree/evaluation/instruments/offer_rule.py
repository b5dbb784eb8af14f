"""The rule over offers (intention to treat): what to offer whom, when people may refuse and takers cost more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from policytree.common.calls import StudyLike, refuses_said_by_study
from policytree.common.docstrings import shares_documentation
from policytree.common.shared_arguments import STUDY
from policytree.common.typing import Column, PerTreatment, Seed, Table
from policytree.common.validation import as_numbers, is_real
from policytree.constraints.checks import asked
from policytree.data.views import Shown
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.evaluation.policy_value.cross_val import cross_val_policy_value
from policytree.evaluation.policy_value.gate import ASSIGNMENT
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.policy_value.validation import REPEATED
from policytree.evaluation.policy_value.verdict import OFFER_WORDS, Verdict
from policytree.exceptions import InputError, quoted
from policytree.study_check.directions import with_direction
from policytree.weighting.costs import treatment_costs
from policytree.weighting.reward_arguments import is_instrumental
from policytree.weighting.study_data import StudyData


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfferRule(Shown):
    """The best tree over offers, and what it is worth.

    Attributes
    ----------
    estimator : DRPolicyTree
        Fitted with offers in the place of treatments; its rewards are outcomes under the offers, less
        ``treatment_cost`` for those who take the treatment.
    values : PolicyValueTable or None
        Held-out values, net of all costs, and the verdict; None where nobody asked for it.
    treatment : label
        The treatment that costs something per taker: the second in sorted order.
    offer_costs : DataFrame of shape (n, M)
        Costs of the offers, in the outcome's unit, taken or not.
    treatment_cost : float
        Cost of the treatment for everybody who takes it, in the outcome's unit.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree
    >>> from policytree.evaluation import offer_rule
    >>> import numpy as np, pandas as pd
    >>> from policytree import DRPolicyTree, Study
    >>> from policytree.evaluation import offer_rule
    >>> from policytree.study import Offered
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.integers(20, 80, size=200), "offer": rng.integers(2, size=200)})
    >>> table["took"] = table["offer"] * rng.integers(2, size=200)
    >>> table["score"] = table["took"] + rng.normal(size=200)
    >>> study = Study(table, treatment=Offered("took", by="offer"), outcome="score", propensity=0.5)
    >>> model = DRPolicyTree(max_depth=0, cv=2)
    >>> found = offer_rule(model, study, offer_costs={1: 0.1}, treatment_cost=2.0, value=False)
    >>> found.costs_text()
    'net of what offers cost (1 0.1) and of 2 per taker of 1'
    """

    estimator: DRPolicyTree
    values: PolicyValueTable | None = field(repr=False)
    treatment: Any
    offer_costs: pd.DataFrame = field(repr=False)
    treatment_cost: float

    def _shown(self) -> list[Any]:
        parts = [f"Rule for offers, {self.costs_text()}:", self.estimator.tree_]
        return parts if self.values is None else [*parts, self.values]

    def costs_text(self) -> str:
        """Say which costs the values are net of."""
        parts = [
            f"{label} {cost.mean():.4g}" + " on average" * bool(np.ptp(cost))
            for label, cost in self.offer_costs.items()
            if cost.any()
        ]
        said = [f"what offers cost ({', '.join(parts)})"] if parts else []
        if self.treatment_cost:
            said.append(f"{self.treatment_cost:g} per taker of {self.treatment}")
        return f"net of {' and of '.join(said)}" if said else "before any costs"


@refuses_said_by_study
@shares_documentation(STUDY)
def offer_rule(
    estimator: DRPolicyTree,
    Y: Column | StudyLike,
    T: Column | None = None,
    *,
    X: Table | None = None,
    W: Table | None = None,
    propensity: PerTreatment | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    offer_costs: PerTreatment | None = None,
    treatment_cost: float = 0.0,
    value: bool = True,
    validation: str = REPEATED,
    cv: Any = None,
    n_repeats: int | str | None = None,
    level: float = 0.95,
    random_state: Seed = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> OfferRule:
    """The best tree over offers (intention to treat), beside a tree over treatments that people may refuse.

    Whoever decides can decide on offers only. The value of an offer needs no assumption on how it works, not even that
    it works through the treatment: offers are what was assigned. A person under an offer costs what the offer costs,
    and ``treatment_cost`` more if they then take the treatment.

    Parameters
    ----------
    estimator : DRPolicyTree
        Its settings are those of the tree over offers, except for constraints that name treatments (a
        ``Budget``, ``Share``); it is cloned.
    propensity : optional
        Known probabilities of the offers.
    offer_costs : mapping, array of shape (M,) or (n, M), optional
        Costs of the offers, in the outcome's unit, whether they are taken or not; offers left out cost nothing.
    treatment_cost : float
        Cost of the second treatment (in sorted order) for all who take it, in the outcome's unit, under any offer.
        Outcomes have to be numbers then.
    value : bool
        Whether to compute held-out values as well, which takes most of the time.
    validation, cv, n_repeats, level, random_state, n_jobs, progress : optional
        As :func:`policytree.cross_val_policy_value` takes them.

    Returns
    -------
    OfferRule

    Raises
    ------
    InputError
        If there is no instrument, a cost is none, or data cannot be used.

    See Also
    --------
    policytree.evaluation.instrument_summary : offers side by side, and the effect on those who follow them.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree
    >>> from policytree.evaluation import offer_rule
    >>> import numpy as np, pandas as pd
    >>> from policytree import DRPolicyTree, Study
    >>> from policytree.evaluation import offer_rule
    >>> from policytree.study import Offered
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.uniform(20, 80, size=400), "offer": rng.choice(["letter", "none"], size=400)})
    >>> came = (table["offer"] == "letter") & (rng.random(400) < 0.6)
    >>> table["taken"] = np.where(came, "course", "alone")
    >>> table["score"] = came * np.where(table["age"] > 50, 3.0, -1.0) + rng.normal(size=400)
    >>> study = Study(table, treatment=Offered("taken", by="offer"), outcome="score", propensity=0.5)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    >>> found = offer_rule(model, study, offer_costs={"letter": 0.1}, treatment_cost=0.5, value=False)
    >>> found.estimator.predict(pd.DataFrame({"age": [30.0, 70.0]})).tolist()
    ['none', 'letter']
    """
    if not isinstance(estimator, DRPolicyTree):
        raise InputError(f"estimator must be a DRPolicyTree; got {type(estimator).__name__}.")
    observed = StudyData.read(
        "offer_rule", Y, T=T, X=X, W=W, propensity=propensity, groups=groups, sample_weight=sample_weight
    ).with_covariates()
    estimator = with_direction(estimator, observed.direction)
    if observed.instrument is None:
        raise InputError("offer_rule needs offers; pass a Study with treatment=Offered(..., by=...).")
    data = study_of_offers(
        observed, offer_costs=offer_costs, treatment_cost=treatment_cost, direction=estimator.direction or "maximize"
    )
    tree = over_offers(estimator).fit(data)
    values = None
    # A study's control is a treatment; where no offer is named alike, that of offers is recognised by its name.
    of_offers = observed.control if observed.control in tree.reward_estimator_.treatments_.tolist() else None
    if value:
        values = cross_val_policy_value(
            tree, replace(data, control=of_offers), validation=validation, cv=cv, n_repeats=n_repeats, level=level,
            random_state=random_state, n_jobs=n_jobs, progress=progress,
        )  # fmt: skip
        verdict = _net_only(values.verdict) if treatment_cost else values.verdict
        gates = tuple(
            replace(gate, reason=gate.reason.replace("treatment", "offer")) if gate.name == ASSIGNMENT else gate
            for gate in verdict.gates
        )
        values = replace(values, verdict=replace(verdict, words=OFFER_WORDS, gates=gates))
    offers = tree.reward_estimator_.treatments_
    costs = treatment_costs({} if offer_costs is None else offer_costs, observed.n, offers)
    frame = pd.DataFrame(costs, index=observed.index, columns=offers)
    return OfferRule(tree, values, observed.treatments[1], frame, float(treatment_cost))


def _net_only(verdict: Verdict) -> Verdict:
    """Without gains before what offers cost, which would still be net of what takers cost."""
    gains = {name: getattr(verdict, name) for name in ("tree", "treatment")}
    return replace(verdict, **{name: replace(gain, gross=None) for name, gain in gains.items() if gain is not None})


def study_of_offers(
    observed: StudyData, *, offer_costs: PerTreatment | None, treatment_cost: float, direction: str
) -> StudyData:
    """The same study with offers in the place of treatments, and outcomes net of what takers cost.

    Raises
    ------
    InputError
        If a cost is none, or names an offer that was not made.
    """
    assert observed.instrument is not None, "there are offers"
    offers = observed.instrument.offers
    if isinstance(offer_costs, Mapping):
        known = offers.tolist()
        for label, cost in offer_costs.items():
            if label not in known:
                raise InputError(f"offer_costs names the offer {label!s}; the offers are {', '.join(map(str, known))}.")
            if not np.isfinite(as_numbers(cost, f"offer_costs of {label!s}")).all():
                raise InputError(f"offer_costs of {label!s} has missing or infinite values; give finite numbers.")
    every = np.arange(observed.n)
    given = observed.arguments(every)
    del given["instrument"]
    if observed.times is not None:
        given["horizon"] = float(observed.times.horizon)  # to which every offer has to be followed
    beside = ("X", "W", "propensity", "sample_weight", "strata", "direction", "randomized", "unit")
    offered = pd.Series(offers[observed.instrument.code], index=observed.index, name="offer")
    y = pd.Series(given.pop("Y"), index=observed.index, name=observed.name)
    return StudyData.of(
        net_of_uptake(y, observed, treatment_cost, direction), offered, **given, groups=observed.labels,
        sample_treatment_costs=offer_costs, **{role: getattr(observed, role) for role in beside},
    )  # fmt: skip


def net_of_uptake(Y: Column, observed: StudyData, treatment_cost: float, direction: str) -> Column:
    """Outcomes less what takers of the second treatment cost (more, where less of them is better).

    Raises
    ------
    InputError
        If the cost is no number, or outcomes are times, from which no cost can be subtracted.
    """
    if not is_real(treatment_cost) or not np.isfinite(treatment_cost):
        raise InputError(f"treatment_cost must be a finite number; got {quoted(treatment_cost)}.")
    if treatment_cost == 0.0:
        return Y
    if observed.times is not None:
        raise InputError(
            "treatment_cost cannot be subtracted from times to an event, which may be censored; leave it out, or give "
            "a cost of the offers."
        )
    sign = 1.0 if direction == "maximize" else -1.0
    y = observed.y if observed.seen is None else np.where(observed.seen, observed.y, np.nan)
    return pd.Series(
        y - sign * treatment_cost * (observed.arm == 1), index=observed.index, name=getattr(Y, "name", None)
    )


def over_offers(estimator: DRPolicyTree) -> DRPolicyTree:
    """An unfitted copy for offers in the place of treatments."""
    tree: DRPolicyTree = clone(estimator)
    tree.set_params(constraints=[each for each in asked(tree) if each.needs not in ("", "budget_costs")])
    if tree.rewards is not None and is_instrumental(tree.rewards):
        tree.rewards.set_params(method="dr", estimand="all")
    return tree
