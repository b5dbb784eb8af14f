"""The gates of a verdict: one function decides, for Python, command line, report and saved trees.

    name                  fails where                                                                  state
    better direction      nobody said which outcomes are better, and the outcome's name does not tell  fragile
    assignment            never: drawn by lot, or taken to be as good as random given the covariates   assumed
    stated probabilities  the shares of treatments refute the probabilities that were given            cannot be said
    data check            a serious finding: a leak, a later measurement, censoring, repeated ids      cannot be said
    estimated outcomes    arms' mean rewards leave their raw means in a randomised study, leave the    cannot be said
                          range of outcomes, or rest on a few rows
    number of rows        fewer than 500 rows (clusters) of a study in which nobody drew treatments    fragile
    other models          the verdict is another one by other models of treatment or of outcomes       fragile
    hidden confounder     one as strong as the strongest covariate seen overturns the verdict          fragile

The last three are of studies in which treatments were not drawn by lot. A reason is a clause that anybody can read:
pages list those of the gates that were passed. Nothing is fitted here: whoever has rewards, chances and second opinions
passes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest, chi2

from policytree.evaluation.policy_value.confounding import Hidden
from policytree.evaluation.policy_value.gate import ASSIGNMENT, ASSUMED, FRAGILE, HIDDEN, SUPPORTED, UNSAID, Gate
from policytree.evaluation.policy_value.refits import Support
from policytree.evaluation.policy_value.verdict import SecondOpinion
from policytree.study_check import KNOWN, LOOKS_RANDOMISED, NEVER_TREATED, StudyCheck, about_offers, check_rewards
from policytree.study_check.directions import Direction
from policytree.study_check.findings import REPEATED_IDS, Finding
from policytree.study_check.rows import thin_support
from policytree.weighting.propensities import is_constant, propensity_matrix
from policytree.weighting.stacked import rows_of_study
from policytree.weighting.study_data import StudyData

LEVEL = 0.001  # of a test that withholds a verdict: one wrong alarm in a thousand honest studies
MUCH = 0.01  # share of the rows with values for which nobody got some treatment
FEW_ROWS = 500  # below which estimated chances and outcomes may both be wrong (confounding that is not linear)
MOST_STRATA = 50
FEWEST_EXPECTED = 5.0  # of an arm, for a chi-squared statistic


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Inputs of the gates.

    Attributes
    ----------
    seen : StudyData
        Observed data of all rows.
    direction : Direction
        Which outcomes are better, and how that is known.
    check : StudyCheck
        Of the data.
    given : ndarray of shape (n, K), or None
        The probabilities of treatment that somebody stated; None if they were estimated.
    rewards : StudyCheck or None
        Of the rewards; None where there are none of these rows.
    drawn : bool
        Whether treatments were drawn by lot, so that nothing but chance decided about them.
    rule : str or None
        The verdict's recommendation before the gates.
    opinions : tuple of SecondOpinion
        The verdicts by other models, before the gates.
    hidden : Hidden or None
        Changes of the estimate where covariates are hidden.
    """

    seen: StudyData
    direction: Direction
    check: StudyCheck
    given: np.ndarray | None
    rewards: StudyCheck | None
    drawn: bool
    rule: str | None = None
    opinions: tuple[SecondOpinion, ...] = ()
    hidden: Hidden | None = None


def gates_of(evidence: Evidence) -> tuple[Gate, ...]:
    """All gates, in the order in which a reader asks; those that are passed too."""
    seen, given = _assigned(evidence.seen, evidence.given)
    gates = [direction_gate(evidence.direction), assignment_gate(seen, evidence.drawn, given is not None)]
    if given is not None:
        gates.append(chances_gate(seen, given))
    gates.append(check_gate(evidence.check, evidence.seen.n))
    if evidence.rewards is not None:
        gates.append(rewards_gate(evidence.rewards))
    if not evidence.drawn:
        gates.append(rows_gate(seen))
    if evidence.opinions:
        gates.append(other_models_gate(evidence.opinions, evidence.rule))
    if evidence.hidden is not None:
        gates.append(confounder_gate(evidence.hidden))
    return tuple(gates)


def _assigned(seen: StudyData, given: np.ndarray | None) -> tuple[StudyData, np.ndarray | None]:
    """The study's rows by what was assigned, and their chances."""
    by = seen if seen.instrument is None else seen.by_offer()
    if by.study is None:
        return by, given
    return by.of_study(), given


def direction_gate(direction: Direction) -> Gate:
    """Whether somebody said, or the outcome's name says, which outcomes are better."""
    if direction.known:
        return Gate("better direction", SUPPORTED, direction.reason)
    return Gate("better direction", FRAGILE, direction.reason, direction.remedy)


def assignment_gate(seen: StudyData, drawn: bool, known: bool) -> Gate:
    """How treatments, or offers, were assigned."""
    if drawn:
        how = "with known probabilities" if known else "at random"
        return Gate(ASSIGNMENT, SUPPORTED, f"{seen.what}s were assigned {how}")
    reason = (
        f"this assumes that, given the covariates, who got which {seen.what} was as good as random (no unmeasured "
        "confounding), which no data can show"
    )
    return Gate(ASSIGNMENT, ASSUMED, reason)


def check_gate(check: StudyCheck, n: int) -> Gate:
    """Whether the check of the data found what makes results wrong."""
    found = [finding for finding in check.findings if _withholds(finding, n)]
    if not found:
        return Gate("data check", SUPPORTED, "the data check found nothing serious")
    remedies = list(dict.fromkeys(finding.remedy for finding in found))
    return Gate("data check", UNSAID, "; ".join(map(_clause, found)), " ".join(remedies[:2]))


def _withholds(finding: Finding, n: int) -> bool:
    """Whether nothing can be concluded with such a finding. Few rows that could not get a treatment move no mean."""
    if finding.kind == REPEATED_IDS:
        return finding.severity != "note"
    if finding.severity != "serious":
        return False
    return finding.kind != NEVER_TREATED or finding.rows >= MUCH * n


def _clause(finding: Finding) -> str:
    return f"{finding.column + ' ' if finding.column else ''}{finding.found}".strip()


def rewards_gate(check: StudyCheck) -> Gate:
    """Whether rewards are what treatments bring: see :func:`policytree.diagnostics.check_rewards`."""
    found = check.of("serious")
    if not found:
        return Gate("estimated outcomes", SUPPORTED, "estimated outcomes agree with those observed")
    remedies = list(dict.fromkeys(finding.remedy for finding in found))
    return Gate("estimated outcomes", UNSAID, "; ".join(map(_clause, found)), remedies[0])


def by_chance(check: StudyCheck, seen: StudyData, known: bool, what: str = "treatment") -> str:
    """The reason why treatment counts as randomised; "" if it does not.

    Within strata, shares may differ between them, so that raw means differ from those for everybody.
    """
    if known:
        return KNOWN
    if seen.strata is not None:
        return ""
    looks = any(finding.kind == LOOKS_RANDOMISED for finding in check.findings)
    return f"{what} looks randomised" if looks else ""


def rows_gate(seen: StudyData) -> Gate:
    """Whether there are rows enough to estimate chances and outcomes."""
    n, unit = (seen.n, "rows") if seen.groups is None else (len(np.unique(seen.groups)), "clusters")
    if seen.n >= FEW_ROWS:
        return Gate("number of rows", SUPPORTED, f"there are {seen.n:,} rows to estimate who got which {seen.what}")
    reason = (
        f"With {n:,} {unit} and estimated probabilities of {seen.assigned}, strong or nonlinear confounding may remain"
    )
    remedy = f"State the probabilities if {seen.what}s were given by chance (--propensity)."
    return Gate("number of rows", FRAGILE, reason, remedy)


def other_models_gate(opinions: Sequence[SecondOpinion], rule: str | None) -> Gate:
    """Whether other models of treatment and of outcomes lead to the same rule."""
    others = [each for each in opinions if each.verdict.rule != rule]
    if not others:
        named = " and ".join(f"{each.model} as the model of {each.about}" for each in opinions)
        return Gate("other models", SUPPORTED, f"the verdict is the same under {named}")
    changed = (f"under {each.model} as the model of {each.about}: {said(each.verdict.rule)}" for each in others)
    remedy = f"Compare the models of {' and '.join(each.about for each in others)} before anybody acts on either."
    return Gate("other models", FRAGILE, f"The conclusion changes {'; and '.join(changed)}", remedy)


def confounder_gate(hidden: Hidden) -> Gate:
    """Whether a hidden confounder as strong as a covariate that was seen may overturn what the verdict says."""
    what, remedy = f"{hidden.what} ({hidden.estimate:+.3g})", "Ask what else decided about treatment, and measure it."
    if hidden.problem:
        reason = f"Whether a hidden confounder could explain {what} was not computed ({hidden.problem.rstrip('.')})"
        return Gate(HIDDEN, FRAGILE, reason, remedy)
    moved = hidden.moved
    name = max(moved, key=lambda each: abs(moved[each]))
    if abs(moved[name]) >= abs(hidden.estimate):
        reason = f"A hidden confounder as strong as {name} could explain {what}"
        return Gate(HIDDEN, FRAGILE, reason, remedy)
    others = "" if len(moved) == 1 else f" (the strongest of {', '.join(moved)})"
    reason = f"a hidden confounder as strong as {name}{others} would not turn {what} around"
    return Gate(HIDDEN, SUPPORTED, reason)


def said(rule: str | None) -> str:
    """A rule of a table as a recommendation; None: no rule is shown better than all others."""
    if rule is None:
        return "no rule is shown better than all others"
    return f"give {rule.removeprefix('always ')} to everybody" if rule.startswith("always ") else f"use the {rule}"


def chances_gate(seen: StudyData, given: np.ndarray) -> Gate:
    """Whether the shares of treatments are what the given probabilities lead to: overall, by stratum, by probability.

    Three tests, each of all parts of a partition together; the sentence names the part that is furthest off.

    Parameters
    ----------
    seen : StudyData
    given : ndarray of shape (n, K)
    """
    arm, chances, strata = _units(seen, given)
    distinct = np.unique(chances.round(6), axis=0, return_inverse=True)[1].ravel()
    partitions = [
        [("", np.ones(len(arm), dtype=bool))],
        [(f" in stratum {code + 1}", strata == code) for code in _few(strata)],
        [(" where that was given", distinct == code) for code in _few(distinct)],
    ]
    tested = []
    for parts in filter(None, partitions):
        found = [(_probability(arm[rows], chances[rows]), where, rows) for where, rows in parts]
        tested.append((_joint([p for p, _, _ in found]), *min(found, key=lambda part: part[0])[1:]))
    p, where, rows = min(tested, key=lambda partition: partition[0])
    if p * len(tested) >= LEVEL:
        return Gate("stated probabilities", SUPPORTED, f"the shares of {seen.what}s fit the stated probabilities")
    own = np.bincount(arm[rows], minlength=seen.n_arms) / rows.sum()
    each = ", ".join(
        f"{label} {share:.3g} of {rows.sum():,} where {chance:.3g} was given"
        for label, share, chance in zip(seen.treatments, own, chances[rows].mean(axis=0), strict=True)
    )
    reason = f"the shares of {seen.what}s{where} refute the given probabilities ({each}; p = {p:.2g})"
    remedy = (
        f"State the probability of each {seen.what} by its label (--propensity label=p,...), or let them be estimated."
    )
    return Gate("stated probabilities", UNSAID, reason, remedy)


def _joint(probabilities: Sequence[float]) -> float:
    """The probability of independent parts together (Fisher 1925): two that are off a little are more than one."""
    if len(probabilities) == 1:
        return probabilities[0]
    logs = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
    return float(chi2.sf(-2.0 * logs.sum(), 2 * len(probabilities)))


def _units(seen: StudyData, given: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arm, chances and stratum of what was assigned: rows, or clusters where each has one treatment."""
    strata = np.zeros(seen.n, dtype=np.int64) if seen.strata is None else np.asarray(seen.strata)
    if seen.groups is None:
        return seen.arm, given, strata
    table = pd.DataFrame({"arm": seen.arm, "group": seen.groups})
    if (table.groupby("group")["arm"].nunique() > 1).any():
        return seen.arm, given, strata
    first = table.drop_duplicates("group").index.to_numpy()
    return seen.arm[first], given[first], strata[first]


def _few(codes: np.ndarray) -> list[int]:
    """The codes, if they are of more than one part and not too many."""
    values = np.unique(codes)
    return values.tolist() if 1 < len(values) <= MOST_STRATA else []


def _probability(arm: np.ndarray, chances: np.ndarray) -> float:
    """Probability of shares at least as far from those given: exact for two arms, else by chi-squared."""
    n_arms = chances.shape[1]
    counts = np.bincount(arm, minlength=n_arms)
    if n_arms == 2 and np.ptp(chances[:, 1]) < 1e-9:
        return float(binomtest(int(counts[1]), len(arm), float(chances[0, 1])).pvalue)
    expected = chances.sum(axis=0)
    if expected.min() < FEWEST_EXPECTED:
        return 1.0
    off = (counts - expected)[:-1]
    covariance = np.diag(expected) - chances.T @ chances
    return float(chi2.sf(off @ np.linalg.solve(covariance[:-1, :-1], off), n_arms - 1))


def given_chances(seen: StudyData, propensity: Any) -> np.ndarray | None:
    """The probabilities of what was assigned, (n, K), that somebody stated, of the study's rows."""
    if propensity is None:
        return None
    assigned = seen if seen.instrument is None else seen.by_offer()
    if seen.study is None:
        shares = np.bincount(assigned.arm, minlength=assigned.n_arms) / seen.n
        return propensity_matrix(propensity, seen.n, assigned.treatments, assigned.what, shares)
    if not is_constant(propensity, seen.n, assigned.n_arms):
        propensity = rows_of_study(propensity, seen.study, "propensity")
    return propensity_matrix(propensity, int(seen.study.sum()), assigned.treatments)


def rewards_evidence(
    seen: StudyData, rows: np.ndarray, rewards: pd.DataFrame, why: str, propensity: pd.DataFrame | None = None
) -> StudyCheck:
    """Check rewards (len(rows), K) of these rows, gross of costs; ``propensity``: probabilities that were stated."""
    return check_rewards(rewards, seen.rows(rows), propensity=propensity, by_chance=why)


def offers_evidence(seen: StudyData, support: Support, why: str) -> StudyCheck:
    """Check the rewards of offers, where people may refuse them."""
    by = replace(seen.by_offer(), took=None).rows(support.rows)
    assert support.offers is not None, "there are offers"
    found = check_rewards(
        pd.DataFrame(support.offers, columns=by.treatments), by, min_propensity=support.floor, by_chance=why,
        propensity=pd.DataFrame(support.chances, columns=by.treatments),
    )  # fmt: skip
    return replace(found, findings=about_offers(found.findings))


def support_findings(seen: StudyData, support: Support) -> tuple[Finding, ...]:
    """Findings about estimated chances, of the rows that they were estimated for."""
    return tuple(thin_support(seen.rows(support.rows), support.chances, support.floor))
