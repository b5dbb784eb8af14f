"""Missing outcomes: of whom, and how likely it was that they are seen."""

from __future__ import annotations

import numpy as np

from policytree.report.content import Section, Table, Words
from policytree.report.material import Material
from policytree.weighting.completion import rows_by_arm

ASSUMED = (
    "Outcomes are learnt from the rows that have one, and their residuals are weighted by one over the probability of "
    "being seen: right if, given the covariates and the treatment, who is missing does not depend on the outcome. No "
    "data can show that."
)


def missing_section(material: Material) -> Section | None:
    """Share of outcomes seen by arm, and the estimated probabilities; None where no outcome is missing."""
    study, missing = material.study, material.study.missing
    if missing is None:
        return None
    seen = study.seen
    rows = rows_by_arm(seen).assign(seen=np.bincount(seen.arm[~missing], minlength=seen.n_arms))
    rows["share"] = rows["seen"] / rows["rows"]
    columns = {"arm": "{arm}", "rows": "{rows:,}", "outcome seen": "{seen:,}", "share": "{share:.1%}"}
    table = Table.of(rows, columns, "Outcomes that are seen")
    said = f"{study.about.outcome} is missing in {missing.sum():,} of {seen.n:,} rows ({missing.mean():.1%})."
    return Section(
        "missing", "Missing outcomes", (Words(said), table, *_probabilities(material), Words(ASSUMED, "note"))
    )


def _probabilities(material: Material) -> tuple[Words, ...]:
    """The range of the estimated probabilities of being seen, and how many were raised."""
    rewards = material.rewards
    if rewards is None or rewards.observation_ is None:
        return ()
    chance, floor = rewards.observation_.dropna().to_numpy(), rewards.min_observed  # of the study, with a target
    of = "" if len(chance) == material.study.seen.n else " that the tree was learnt from"
    text = (
        f"The estimated probability that an outcome is seen lies between {chance.min():.3f} and {chance.max():.3f} "
        f"(median {np.median(chance):.3f}) over the {len(chance):,} rows{of}; "
    )
    raised = rewards.n_raised_
    text += (
        f"{raised:,} of those with an outcome were below {floor:g} (min_observed) and held there."
        if raised
        else f"none of those with an outcome was below {floor:g} (min_observed)."
    )
    return Words(text, "warning" if raised > 0.01 * len(chance) else "plain"), *extreme_words(material)


def extreme_words(material: Material) -> tuple[Words, ...]:
    """Rewards far outside of what the target can be, unless the warnings of the computation have said it."""
    text = "" if material.rewards is None else str(material.rewards.extreme_rewards_ or "")
    if not text or any(text in said for said in material.study.about.warnings):
        return ()
    return (Words(text, "warning"),)
