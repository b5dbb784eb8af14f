"""Findings about offers that people may refuse: rare ones, and offers that hardly change what people take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from policytree.study_check.findings import FULL_COMPLIANCE, RARE_OFFER, WEAK_INSTRUMENT, Finding
from policytree.weighting.instrument import USELESS_F, WEAK_F, f_statistic
from policytree.weighting.study_data import StudyData

FEW_ROWS, SMALL_SHARE = 20, 0.05  # of an offer: uptake and outcomes under it are hardly known


def offer_findings(offered: StudyData) -> list[Finding]:
    """Rare offers, and offers that hardly change uptake, before covariates.

    Parameters
    ----------
    offered : StudyData
        By offer (:meth:`policytree.weighting.study_data.StudyData.by_offer`).
    """
    return [*_rare(offered), *_weak(offered)]


def about_offers(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings of checks that know treatments only, where the arms are offers."""
    return tuple(
        replace(found, column="Offer" + found.column.removeprefix("Treatment"))
        if found.column.split(" ")[0] == "Treatment"
        else found
        for found in findings
    )


def _rare(offered: StudyData) -> list[Finding]:
    counts = np.bincount(offered.arm, minlength=offered.n_arms)
    findings = []
    for label, count in zip(offered.treatments, counts, strict=True):
        if count < FEW_ROWS or count < SMALL_SHARE * offered.n:
            found = f"was made in {count:,} of {offered.n:,} rows ({count / offered.n:.1%}) only"
            how = "Its effect, and who takes it, are hardly known: join it with a like offer, or leave its rows out."
            severity = "warning" if count < FEW_ROWS else "note"
            column = f"Offer {label!s}"
            findings.append(Finding(severity, RARE_OFFER, column, found, how, rows=int(count), treatment=str(label)))
    return findings


def _weak(offered: StudyData) -> list[Finding]:
    """Whether uptake differs between offers enough to say anything about those who follow them."""
    assert offered.took is not None, "arms are offers"
    w = offered.weight
    own = (offered.arm[:, None] == np.arange(offered.n_arms)) * w[:, None]
    shares = own.mean(axis=0)
    uptake = (own * offered.took[:, None]).mean(axis=0) / shares
    strength = f_statistic(uptake, own * (offered.took[:, None] - uptake) / shares, offered)
    if np.isinf(strength) and np.isin(uptake, (0.0, 1.0)).all():
        how = (
            "An instrument then adds nothing: leave it out, unless the treatment was recorded as offered, not as taken."
        )
        return [Finding("note", FULL_COMPLIANCE, "Offer", "tells in every row what people took", how)]
    if strength >= WEAK_F:
        return []
    shown = ", ".join(f"{share:.0%} under {label!s}" for label, share in zip(offered.treatments, uptake, strict=True))
    found = f"hardly changes what people take (first-stage F {strength:.2g} before covariates; {shown})"
    if strength < USELESS_F:
        how = "Nothing can be said about those who follow the offers; judge the offers themselves, as treatments."
        return [Finding("serious", WEAK_INSTRUMENT, "Offer", found, how)]
    how = f"Effects on those who follow are biased, and intervals too short, below {WEAK_F:g}: look at the robust one."
    return [Finding("warning", WEAK_INSTRUMENT, "Offer", found, how)]
