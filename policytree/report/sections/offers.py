"""Offers and who takes them: intention to treat, compliance, the effect on compliers, and the rule over offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from policytree.evaluation.formatting import (
    BOUNDS,
    Form,
    bounds_text,
    cell,
    decimals,
    estimated,
    interval_text,
    p_text,
)
from policytree.evaluation.instruments.offer_rule import OfferRule
from policytree.evaluation.instruments.summary import SMALL_COMPLIANCE, InstrumentSummary, instrument_summary
from policytree.plotting.compliance import compliance_data
from policytree.report.content import Block, Facts, Fold, Picture, Section, Table, Words
from policytree.report.material import Material, capitalised
from policytree.report.outline import outline
from policytree.report.sections.values import rules_table
from policytree.trees.labels import labelled
from policytree.trees.short_thresholds import readable
from policytree.weighting.instrument import COMPLIERS, WARN_SHARE, WEAK_F
from policytree.weighting.study_data import StudyData

ESTIMANDS = {
    COMPLIERS: "Values are what {treatment} gains over {baseline} per person of all: those who follow the offers count "
    "with their gain, everybody else as zero.",
    "all": "Values are what {treatment} gains over {baseline}, where every person counts with the effect on those who "
    "follow the offers among people with the same covariates; for the others that is an extrapolation.",
}
ASSUMED = (
    "Effects of {treatment} rest on two assumptions beside offers by chance, which no data can show. Exclusion: an "
    "offer bears on {outcome} only through {treatment}. Monotonicity: nobody takes {treatment} because it was not "
    "offered, or leaves it because it was. Effects of offers (intention to treat) need neither."
)
NO_RULE = (
    "No rule of offers was computed: pass the result of offer_rule, or say what offers and takers cost, by "
    "offer_costs= and treatment_cost=."
)
MOST_COVARIATES = 20  # in the table of compliers: those who differ most


def offers_section(material: Material) -> Section | None:
    """Show effects of offers on uptake and outcomes, and the tree over offers; None where there is no instrument."""
    study, rewards = material.study, material.rewards
    if not study.by_offers:
        return None
    found = summary_of(study.seen, rewards, material.learning)
    names = {"treatment": found.treatment, "baseline": found.baseline, "outcome": study.about.outcome}
    blocks: tuple[Block, ...] = (
        Words(ESTIMANDS[rewards.estimand].format(**names)), _offers_table(material, found), Facts(_facts(found)),
        *_raised(material), *_overidentified(found), _picture(material, found), _who(material, found),
        Words(ASSUMED.format(**names), "note"), *_rule(material),
    )  # fmt: skip
    return Section("offers", "Offers and who takes them", blocks)


def summary_of(seen: StudyData, rewards: Any, rows: np.ndarray) -> InstrumentSummary:
    """The summary of the rows (positions) that rewards were fitted to."""
    groups, weight = (None if part is None else part[rows] for part in (seen.groups, seen.sample_weight))
    return instrument_summary(rewards, groups=groups, sample_weight=weight)


def _offers_table(material: Material, found: InstrumentSummary) -> Table:
    """Uptake and outcome under every offer, what it changes, and the effect on those whom it moves."""
    offers, study = found.offers, material.study
    level = f"{100 * found.effect.level:g}% intervals"
    of_effect = decimals(offers["effect_error"].dropna())
    columns: dict[str, Form] = {
        "offer": "{offer}", "share of rows": "{share:.1%}", f"take {found.treatment}": _uptake,
        study.mean_outcome: estimated("outcome"),
        f"change over {found.base_offer}": estimated("outcome_change", "+"),
        f"effect of {found.treatment} on those moved": estimated("effect", "+", of_effect),
    }  # fmt: skip
    caption = f"Offers, adjusted for covariates, with {level}, by {_rows(material)}"
    return Table.of(offers, columns, caption, digits=decimals(offers["outcome_error"]))


def _uptake(row: Mapping[str, Any]) -> str:
    """The share of those who take the treatment with its interval; 0 where nobody can."""
    return cell(estimated("uptake", digits=3), row) if np.isfinite(row["uptake"]) else "0"


def _rows(material: Material) -> str:
    n = len(material.learning)
    every = n == material.study.seen.n
    return f"all {n:,} rows" if every else f"the {n:,} rows that the tree was learnt from"


def _facts(found: InstrumentSummary) -> tuple[tuple[str, str], ...]:
    """The effect on compliers with both intervals, who they are in number, and how strong the offers are."""
    effect, compliers = found.effect, found.compliers
    digits, level = decimals([effect.standard_error]), f"{100 * effect.level:g}%"
    low, high = found.robust_interval
    robust = bounds_text(low, high, digits) if np.isfinite([low, high]).all() else "unbounded: nothing can be excluded"
    weak = "" if found.f_statistic >= WEAK_F else f": weak (below {WEAK_F:g}), so that the first interval is too short"
    smallest = found.compliance.iloc[0]
    facts = [
        ("effect on compliers", f"{effect.value:+,.{digits}f} {interval_text(effect, digits)}, {level} interval: "
         f"{found.treatment} over {found.baseline}, for those who follow the offers"),
        ("however weak the offers", f"{robust}, {level} interval of Anderson and Rubin"),
        ("compliers", f"{compliers.value:.0%} of people [{compliers.lower:.0%}, {compliers.upper:.0%}]"),
        ("first-stage F", f"{found.f_statistic:,.1f}{weak}"),
        ("little compliance", f"below {SMALL_COMPLIANCE:g} in {found.small_compliance:.1%} of rows; at most "
         f"{smallest:.3f} in the {found.compliance.index[0]:.0%} with the least"),
    ]  # fmt: skip
    if found.one_sided:
        text = f"nobody takes {found.treatment} under {found.base_offer}: the effect is that on all who take it"
        facts.append(("one-sided", text))
    if found.overidentification is not None:
        statistic, degrees, p = found.overidentification
        shown = p_text(p) if p < 0.001 else f"= {p_text(p)}"
        text = f"chi-square {statistic:.2f} with {degrees} degrees of freedom, p {shown}"
        facts.append(("all offers the same effect", text))
    return tuple(facts)


def _raised(material: Material) -> list[Block]:
    """In how many rows the compliance that rewards divide by was raised; nothing where they do not divide by it."""
    rewards = material.rewards
    if rewards.estimand == COMPLIERS:
        return []
    n, floor = len(rewards.rewards_), rewards.min_compliance
    if not rewards.n_weak_:
        return [
            Words(f"Compliance is above {floor:g} (min_compliance) in all {n:,} rows; rewards divide by it.", "note")
        ]
    words = (
        f"In {rewards.n_weak_:,} of {n:,} rows compliance was estimated below {floor:g} (min_compliance) and held "
        "there: rewards divide by it, and what the treatment does for these people is not known."
    )
    return [Words(words, "warning" if rewards.n_weak_ > WARN_SHARE * n else "note")]


def _overidentified(found: InstrumentSummary) -> list[Block]:
    """A warning where offers seem to have different effects."""
    if found.overidentification is None or found.overidentification[2] >= 1 - found.effect.level:
        return []
    words = (
        "Offers seem to have different effects: they move different people, or some bear on the outcome by another "
        "way. The effect on compliers is then an average over offers that no single one has."
    )
    return [Words(words, "warning")]


def _picture(material: Material, found: InstrumentSummary) -> Picture:
    compliance = np.asarray(material.rewards.compliance_)
    shown = "; ".join(f"{label} {_uptake(row)}" for label, row in found.offers.iterrows())
    least, median, most = (found.compliance.iloc[k] for k in (0, len(found.compliance) // 2, -1))
    alt = (
        f"Share that takes {found.treatment} under every offer: {shown}. Histogram of compliance by person: 1% "
        f"quantile {least:.3f}, median {median:.3f}, 99% quantile {most:.3f}."
    )
    caption = (
        f"Above: who takes {found.treatment} under every offer, with intervals. Below: how much offers change that for "
        f"people with their covariates, estimated; the line stands at {SMALL_COMPLIANCE:g}."
    )
    return Picture("compliance", compliance_data(found, compliance), alt, caption)


def _who(material: Material, found: InstrumentSummary) -> Fold:
    """Means of covariates among compliers beside those of everybody."""
    study = material.study
    means = found.complier_means(study.covariates.iloc[material.learning]).dropna(subset="everybody")
    means = means.loc[means["difference"].abs().sort_values(ascending=False, na_position="last").index]
    shown = means.head(MOST_COVARIATES)
    shown = shown.assign(digits=[decimals([error]) for error in shown["standard_error"]])
    columns = {
        "covariate": "{covariate}", "everybody": "{everybody:,.{digits}f}", "compliers": "{compliers:,.{digits}f}",
        f"{100 * found.effect.level:g}% interval": BOUNDS, "difference in std. deviations": "{difference:+.2f}",
    }  # fmt: skip
    left = f"; the {len(shown)} of {len(means)} that differ most" if len(shown) < len(means) else ""
    caption = f"Means of covariates, by {_rows(material)}{left}"
    return Fold("Who the compliers are", (Table.of(shown, columns, caption),))


def _rule(material: Material) -> list[Block]:
    """The tree over offers and its verdict; how to get one where there is none."""
    rule = material.only(OfferRule)
    if rule is None:
        return [Words(NO_RULE, "note")]
    study = material.study
    encoded = rule.estimator.encoder_.encode(study.X)
    tree = labelled(readable(rule.estimator.tree_, encoded), study.about.labels)
    shown = outline(tree, encoded, {}, form=False)
    proved = "proved to be the best" if rule.estimator.status_.proved else "not proved to be the best"
    blocks: list[Block] = [
        Words(
            f"The rule over offers (intention to treat) is a tree, {proved} on these rows, "
            f"{rule.costs_text()}; its values are {study.mean_outcome} under the offers. "
            + ("" if rule.values is None else str(rule.values.verdict)),
        )
    ]
    if rule.values is None:
        return [*blocks, shown, Words("Its held-out value was not computed.", "note")]
    words = (
        f"{capitalised(study.mean_outcome)} if everybody were offered what the rule says, {rule.costs_text()}; "
        f"{study.better} is better. Status quo: what people were offered. Where it says treatment here, an offer is "
        f"meant. {' '.join(rule.values.statements())}"
    )
    used = rule.values.verdict.use_tree
    tree_block: Block = shown if used else Fold("Show the tree over offers anyway (not recommended)", (shown,))
    return [*blocks, tree_block, rules_table(rule.values, what="offers"), Words(words)]
