"""The question: the data, the comparison, and what is suspicious about the data."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policytree.evaluation.estimates import Estimate, mean_estimate
from policytree.evaluation.formatting import Form, decimals
from policytree.report.content import Block, Facts, Section, Table, Words
from policytree.report.described import Described
from policytree.weighting.completion import rows_by_arm
from policytree.weighting.study_data import StudyData

TONES = {"serious": "warning", "warning": "warning", "note": "plain"}


def question_section(study: Described) -> Section:
    """Data, arms as observed, and notes; none of these needs a fit."""
    return Section("question", "Data", (Facts(_facts(study)), _arms(study), *_offers(study), *_notes(study)))


def check_section(study: Described) -> Section:
    """List findings of the data check, most serious first."""
    check = study.check
    if not check.findings:
        return Section("check", "Data check", (Words(str(check)),))
    found = tuple(Words(f"{f.severity.capitalize()}: {f}", TONES[f.severity]) for f in check.findings)
    return Section("check", "Data check", found)


def _facts(study: Described) -> tuple[tuple[str, str], ...]:
    about, seen, times = study.about, study.seen, study.times
    rows = f"{seen.n:,}"
    if seen.groups is not None:
        named = f" ({about.cluster})" if about.cluster else ""
        rows += f" in {len(np.unique(seen.groups)):,} clusters{named}"
    unit = f", {about.unit}" if about.unit else ""
    facts = {
        "data": about.source,
        "rows": rows,
        "outcome": f"{about.outcome}{unit}; {study.better} is better"
        if times is None
        else f"{study.mean_outcome}; {study.better} is better",
        **({} if times is None else times.facts(about.unit)),
        "treatment": f"{about.treatment}, {seen.n_arms} treatments",
        "offers": "" if seen.instrument is None else _offers_fact(study),
        "values": "" if seen.instrument is None else f"{study.value}; people may refuse what they are offered",
        "control": about.control,
        "covariates": ", ".join(map(about.called, study.X.columns)),
    }
    if study.W is not None:
        facts["confounders"] = (
            f"{', '.join(map(about.called, study.W.columns))} (adjusted for; the tree does not see them)"
        )
    if seen.strata is not None:
        names = ", ".join(about.strata) or f"{len(np.unique(seen.strata))} blocks"
        facts["strata"] = f"{names} (folds are balanced over them)"
    if seen.sample_weight is not None:
        facts["weights"] = about.weights or "sampling weights"
    net = "values are net of them"
    if study.by_offers:
        net = "values of treatments are net of what takers cost, those of offers of all"
    facts["costs"] = f"{about.costs} ({net})" if about.costs else ""
    facts["propensity"] = about.propensity
    facts["estimand"] = _intercurrent(study)
    return tuple((name, text) for name, text in facts.items() if text)


def _intercurrent(study: Described) -> str:
    """How what happens after the decision enters the estimand, in the terms of ICH E9(R1)."""
    if study.by_offers:
        return "effects on those who follow the offers (a principal stratum); for whom they count, see Offers"
    said = "treatment policy: outcomes count whatever happened after the decision, such as a treatment that was stopped"
    if study.times is not None:
        said += "; losses to follow-up are censoring, and weighted for"
    return said + ("; missing outcomes are weighted for" if study.missing is not None else "")


def _offers_fact(study: Described) -> str:
    """The column of offers, and its labels."""
    labels = study.assigned.treatments.tolist()
    return f"{study.about.instrument or 'instrument'}, {len(labels)} offers ({', '.join(map(str, labels))})"


def _means(seen: StudyData, y: np.ndarray) -> list[Estimate]:
    """Mean of ``y`` (n,) in every arm."""
    estimates = []
    for k in range(seen.n_arms):
        rows = np.flatnonzero(seen.arm == k)
        groups, weight = (None if values is None else values[rows] for values in (seen.groups, seen.sample_weight))
        estimates.append(mean_estimate(y[rows], groups=groups, sample_weight=weight))
    return estimates


def _rows(seen: StudyData) -> pd.DataFrame:
    """Rows of every arm, and their mean outcome as observed."""
    return rows_by_arm(seen).assign(standard_error=[e.standard_error for e in _means(seen, seen.y)])


def _offers(study: Described) -> tuple[Table, ...]:
    """Rows, uptake and mean outcome of every offer as observed; nothing where there is no instrument."""
    if not study.by_offers:
        return ()
    seen = study.assigned
    assert seen.took is not None, "arms are offers"
    taken = _means(seen, seen.took)
    rows = _rows(seen).assign(uptake=[e.value for e in taken], uptake_error=[e.standard_error for e in taken])
    columns: dict[str, Form] = {
        "offer": "{arm}", "rows": "{rows:,}", "share": "{share:.1%}",
        f"take {study.seen.treatments[1]!s}": ("{uptake:.3f}", " ({uptake_error:.3f})"),
        study.mean_outcome: ("{mean:,.{digits}f}", " ({standard_error:,.{digits}f})"),
    }  # fmt: skip
    caption = "Offers as made, with standard errors"
    return (Table.of(rows, columns, caption, digits=decimals(rows["standard_error"])),)


def _arms(study: Described) -> Table:
    """Rows and mean outcome of every arm as observed."""
    rows = _rows(study.seen)
    columns = {
        "arm": "{arm}", "rows": "{rows:,}", "share": "{share:.1%}", study.mean_outcome: "{mean:,.{digits}f}",
        "std. error": "{standard_error:,.{digits}f}",
    }  # fmt: skip
    return Table.of(rows, columns, "Treatments as observed", digits=decimals(rows["standard_error"]))


def _notes(study: Described) -> list[Block]:
    raw = (
        "Means as observed compare people as they came: unless everybody had the same chances of treatment they are no "
        "effects."
    )
    return [Words(note, "note") for note in (*([] if study.by_lot else [raw]), *study.about.notes)]
