"""Recidivism: the same question at other prices of mistakes, and with the records of Broward County.

Public interface used: CostSensitiveTreeClassifier.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from decisions import REPEATS, Decisions, exclusions, triple
from tables import read_table

SOURCE = "the repository ubc-systopia/gosdt-guesses on GitHub (Broward County, BeanHam/interpretable-machine-learning)"
RATIOS = (0.5, 1.0, 2.0, 3.0)  # what a needless supervision costs, if a missed rearrest costs one
AGES = ("age_at_current_charge", "age_at_first_charge")
BROWARD_WITHOUT = {"sex": ("sex",), "age": AGES, "sex and age": ("sex", *AGES)}


def show_prices(study, task: Decisions, without: tuple[str, ...]) -> None:
    """How the tree, its mistakes and the price of the exclusion move with the price of a needless supervision."""
    study.heading("7. Other prices of a needless supervision (a missed rearrest costs 1; depth 2; per 100 people)")
    rows = []
    for ratio in RATIOS[1:2] if study.quick else RATIOS:
        study.step(f"price {ratio:g}")
        priced = replace(task, costs={(1, 0): 1.0, (0, 1): ratio}, depth=2)
        kept, full = (priced.tree(columns).fit(priced.X, priced.y) for columns in (without, ()))
        a, b = (priced.held_out(columns, 2 if study.quick else REPEATS) for columns in (without, ()))
        gap = {key: 100 * value for key, value in triple(priced.gap(a, b), "costs others").items()}
        rows.append({"price": ratio, "supervised %": 100 * float((kept.predict(priced.X) == 1).mean()),
                     "cost": 100 * kept.objective_value_,
                     "costs here": 100 * (kept.objective_value_ - full.objective_value_), **gap,
                     "asks about": ", ".join(sorted(kept.get_used_features()))})  # fmt: skip
    study.table(pd.DataFrame(rows), "prices", digits=2, index=False)


def show_broward(study) -> None:
    """Another table of the same county: 38 columns of records, with sex and age, without race."""
    study.heading("8. Broward County's records: what leaving out sex and age costs (depth 2, mistakes per 100 people)")
    frame = read_table("broward", SOURCE, study.data_dir)
    frame = frame.iloc[:600] if study.quick else frame
    X, y = frame.iloc[:, :-1].astype(float), frame.iloc[:, -1].to_numpy(dtype=int)
    study.show(
        f"{len(y):,} people, {X.shape[1]} columns; {100 * y.mean():.1f} % were charged again within two years.\n"
    )
    task = Decisions(X, y, {(1, 0): 1.0, (0, 1): 1.0}, 2)
    table, _ = exclusions(study, task, BROWARD_WITHOUT, 2 if study.quick else REPEATS)
    study.table(table, "broward", digits=2)
