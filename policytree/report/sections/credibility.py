"""Credibility of the data: means by treatment beside those of the rewards, and reasons to doubt the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from policytree.evaluation.formatting import decimals
from policytree.evaluation.instruments.offer_rule import OfferRule
from policytree.evaluation.policy_value.gates import by_chance, check_gate
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.report.content import Section, Table, Words
from policytree.report.described import Described
from policytree.report.material import Material, capitalised
from policytree.report.sections.question import TONES
from policytree.study_check import (
    KNOWN,
    StudyCheck,
    about_offers,
    arm_means,
    check_rewards,
)

ESTIMATED = (
    "The probabilities of {what} were estimated: intervals include their sampling error, but not errors of the models "
    "of outcomes and of {what}."
)
MUCH = 0.01  # share of the rows with values for which nobody got some treatment


def rewards_check(study: Described, rewards: Any, rows: np.ndarray | None = None) -> StudyCheck | None:
    """Check the rewards for suspicious values.

    Parameters
    ----------
    study : Described
    rewards : fitted RewardEstimator, or None
    rows : ndarray, optional
        Positions of the rows that it was fitted to; all by default.

    Returns
    -------
    StudyCheck or None
        None where there are no rewards of these rows, or rewards are about other people.
    """
    seen = study.assigned
    rows = np.arange(seen.n) if rows is None else rows
    if rewards is None or rewards.participation_ is not None or len(rewards.rewards_) != len(rows):
        return None
    by_offer = replace(study.observed.by_offer(), took=None) if study.by_offers else study.observed
    found = check_rewards(
        _assigned_rewards(rewards), by_offer.rows(rows), propensity=rewards.propensity_,
        min_propensity=rewards.min_propensity, by_chance=_by_chance(study, rewards),
    )  # fmt: skip
    return replace(found, findings=about_offers(found.findings)) if study.by_offers else found


def _by_chance(study: Described, rewards: Any) -> str:
    """The reason why treatment counts as randomised; "" if it does not."""
    known = rewards.propensity_ is not None and rewards.models_propensity_ is None
    return by_chance(study.check, study.observed, known, study.what)


def _assigned_rewards(rewards: Any) -> Any:
    """Rewards of what was assigned: outcomes under offers, where there are offers."""
    return rewards.rewards_ if rewards.offers_ is None else rewards.offer_rewards_


def gated(study: Described, results: Sequence[Any]) -> tuple[Any, ...]:
    """Results, their verdicts through what the check found in columns that no model was given, such as ids."""
    found = check_gate(study.check, study.seen.n)

    def one(result: Any) -> Any:
        if isinstance(result, OfferRule) and result.values is not None:
            return replace(result, values=one(result.values))
        if isinstance(result, PolicyValueTable):
            return replace(result, verdict=result.verdict.through([found]))
        return result

    return tuple(one(result) for result in results)


def means_section(material: Material) -> Section | None:
    """Means by treatment, and what is suspicious about them; None where rewards are of other rows."""
    check = rewards_check(material.study, material.rewards, material.learning)
    if check is None:
        return None
    return make_means_section(material.study, check, material.rewards, material.learning)


def make_means_section(study: Described, check: StudyCheck, rewards: Any, rows: np.ndarray | None = None) -> Section:
    """The same from its parts: see :func:`rewards_check`."""
    said = tuple(Words(f"{f.severity.capitalize()}: {f}", TONES[f.severity]) for f in check.findings)
    estimated = (
        (Words(ESTIMATED.format(what="offers" if study.by_offers else "treatment"), "note"),)
        if rewards.models_propensity_ is not None
        else ()
    )
    return Section("means", f"Means by {study.what}", (means_table(study, rewards, rows), *said, *estimated))


def means_table(study: Described, rewards: Any, rows: np.ndarray | None = None) -> Table:
    """Mean outcome of every treatment as observed, and for everybody by the rewards."""
    seen = study.assigned if rows is None else study.assigned.rows(rows)
    known = _by_chance(study, rewards) == KNOWN
    means = arm_means(seen, _assigned_rewards(rewards), rewards.propensity_.to_numpy() if known else None)
    lines = [
        {"arm": m.label, "rows": m.n, "observed": m.observed, "estimated": m.estimated,
         "difference": m.difference.value, "z": m.z}
        for m in means
    ]  # fmt: skip
    columns = {
        study.what: "{arm}", "rows": "{rows:,}", "mean of those who got it": "{observed:,.{digits}f}",
        "mean for everybody": "{estimated:,.{digits}f}", "difference": "{difference:+,.{digits}f}", "z": "{z:+.1f}",
    }  # fmt: skip
    weighed = ", weighted by one over the known probabilities" if known else ""
    caption = f"{capitalised(study.mean_outcome)} as observed{weighed}, and for everybody by the rewards"
    return Table.of(lines, columns, caption, digits=decimals(m.difference.standard_error for m in means))
