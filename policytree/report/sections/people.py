"""Who was studied: how many rows came how far, by treatment, and what they were like (Table 1)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policytree.diagnostics.baseline import ALL, DIFFERENCE, baseline_table
from policytree.diagnostics.overlap_balance import LARGE_DIFFERENCE
from policytree.report.content import Section, Table, Words
from policytree.report.described import Described
from policytree.report.material import Material

FLOW, BASELINE = "Flow of rows", "Covariates by treatment"
MOST_TREATMENTS = 8  # columns of a table that can be read


def people_section(material: Material) -> Section:
    """Flow of rows and Table 1."""
    study = material.study
    return Section("people", "Who was studied", (_flow(material), *_baseline(study)))


def _flow(material: Material) -> Table:
    """How many rows were assigned what, took it, have an outcome, chose the rule and judged it."""
    study = material.study
    assigned, n = study.assigned, study.seen.n
    steps = {"offered" if study.by_offers else "received": np.ones(n, dtype=bool)}
    if assigned.took is not None:
        steps[f"took {study.seen.treatments[1]!s}"] = assigned.took > 0.0
    if study.missing is not None:
        steps["outcome known"] = ~study.missing
    if study.times is not None:
        steps["any event up to the horizon"] = study.times.known & ~study.times.free
        steps["followed up to the horizon without one"] = study.times.free
        steps["censored before"] = ~study.times.known
    steps["analysed"] = np.ones(n, dtype=bool)  # rows without an outcome are learnt from by weights
    if len(material.learning) < n:
        steps["chose the rule"] = np.isin(np.arange(n), material.learning)
        steps["judged the rule"] = ~steps["chose the rule"]
    names = (ALL, *map(str, assigned.treatments))  # one of which may be called like everybody
    own = [np.ones(n, dtype=bool), *(assigned.arm == k for k in range(assigned.n_arms))]
    counts = [[int((rows & each).sum()) for each in own] for rows in steps.values()]
    cells = tuple((step, *(f"{count:,}" for count in row)) for step, row in zip(steps, counts, strict=True))
    return Table(("rows", *names), cells, FLOW, numbers=tuple(dict(zip(names, row, strict=True)) for row in counts))


def _baseline(study: Described) -> tuple[Words | Table, ...]:
    """Covariates of everybody and by treatment; nothing where treatments are more than a table can show."""
    assigned = study.assigned
    if assigned.n_arms > MOST_TREATMENTS:
        return ()
    received = assigned.treatments[assigned.arm]
    table = baseline_table(received, X=study.covariates, sample_weight=assigned.sample_weight)
    cells = tuple((str(name), *row) for name, row in zip(table.index, table.to_numpy(), strict=True))
    strong = tuple(
        k for k, size in enumerate(pd.to_numeric(table[DIFFERENCE])) if np.isfinite(size) and size > LARGE_DIFFERENCE
    )
    weighted = " Means and shares are weighted." if assigned.sample_weight is not None else ""
    said = (
        "Numbers: mean (standard deviation); values of categories: rows (share). The last column is the largest "
        f"difference between two {study.what}s in standard deviations; above {LARGE_DIFFERENCE:g} a row stands out."
    )
    return Words(said + weighted, "note"), Table(("covariate", *table.columns), cells, BASELINE, strong)
