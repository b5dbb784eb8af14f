"""Hormone therapy of breast cancer: a rule learnt from a clinic's records, and what it brings in a trial.

Public interface used: load_dataset, RewardEstimator (estimand), overlap_table,
PolicyTree, policy_value, omitted_variable_bounds, cross_val_policy_value.
"""

from __future__ import annotations

import warnings
from statistics import NormalDist

import numpy as np
import pandas as pd
from times import (
    at_horizon,
    draw_curves,
    parts,
    raw_difference,
    show_arms,
    show_follow_up,
    show_values,
    without_covariates,
)

from policytree import PolicyTree, RewardEstimator, Study, load_dataset, policy_value
from policytree.diagnostics import overlap_table
from policytree.evaluation import omitted_variable_bounds
from policytree.exceptions import OverlapWarning

SMALLEST = 30  # women with and without hormone therapy in a leaf
HORIZONS = (3.0, 5.0)  # years
HORMONE, NONE = "hormone", "none"
NORMAL_975 = NormalDist().inv_cdf(0.975)


def fitted_of(data: Study, **options) -> RewardEstimator:
    """Rewards; that propensities are low in the clinic's records is a section of its own, not a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        return RewardEstimator(random_state=0, **options).fit(data)


def show_effects(study, clinic: Study, trial: Study) -> None:
    """Show the effect of hormone therapy, by analysis, in the records and in the trial; and how far the two differ."""
    rows, kept, horizons = [], {}, HORIZONS[:1] if study.quick else HORIZONS
    for horizon in horizons:
        for source, given in (("rotterdam", clinic), ("gbsg", trial)):
            data = at_horizon(given, horizon)
            study.step(f"{source}, horizon {horizon:g}")
            everybody, overlap = fitted_of(data), fitted_of(data, estimand="overlap")
            time, event, arms, _ = parts(data)
            capped, complete = np.minimum(time, horizon), event | (time >= horizon)
            found = {
                "doubly robust, all": policy_value(HORMONE, everybody.rewards_, baseline=NONE),
                "doubly robust, overlap": policy_value(
                    HORMONE, overlap.rewards_, baseline=NONE, population=overlap.population_
                ),
                "Kaplan-Meier": raw_difference(without_covariates(data), arms, HORMONE, NONE),
                "time as a number": raw_difference(time, arms, HORMONE, NONE),
                "complete cases": raw_difference(capped[complete], arms[complete], HORMONE, NONE),
            }
            kept[source, horizon] = found
            rows += [
                {
                    "horizon": horizon,
                    "data": source,
                    "analysis": name,
                    "effect": e.value,
                    "lower": e.lower,
                    "upper": e.upper,
                }
                for name, e in found.items()
            ]
    study.show("Years without recurrence that hormone therapy adds, up to the horizon, 95 % intervals:")
    study.table(pd.DataFrame(rows), "effects", digits=2, index=False)
    study.show("Records less trial (two samples, so their errors add), 95 % intervals:")
    gaps = []
    for horizon in horizons:
        for name in ("doubly robust, overlap", "doubly robust, all", "Kaplan-Meier"):
            a, b = (kept[source, horizon][name] for source in ("rotterdam", "gbsg"))
            gap, half = a.value - b.value, NORMAL_975 * np.hypot(a.standard_error, b.standard_error)
            gaps.append({"horizon": horizon, "analysis": name, "records less trial": gap, "lower": gap - half,
                         "upper": gap + half})  # fmt: skip
    study.table(pd.DataFrame(gaps), "records_less_trial", digits=2, index=False)


def show_rule(study, clinic: Study, trial: Study, in_trial: RewardEstimator) -> None:
    """Rules learnt from the records, judged by the trial's rewards, which they have not seen."""
    rows = []
    for estimand in ("overlap", "all"):
        study.step(f"rule of the records, {estimand}")
        rewards = fitted_of(clinic, estimand=estimand).rewards_
        for depth in (1, 2):
            tree = PolicyTree(max_depth=depth, min_samples_per_treatment=SMALLEST).fit(
                clinic.X, rewards, clinic.table["therapy"]
            )
            chosen = tree.predict(trial.X)
            row = {"learnt from": estimand, "depth": depth, "% treated in the trial": 100 * np.mean(chosen == HORMONE)}
            for label, other in (("nobody", NONE), ("everybody", HORMONE)):
                gap = policy_value(chosen, in_trial.rewards_, baseline=other)
                row |= {f"less {label}": gap.value, f"{label} lower": gap.lower, f"{label} upper": gap.upper}
            rows.append(row)
            if estimand == "overlap" and depth == 2:
                study.show(f"{tree.export_text()}\n")
                title = "Rotterdam: hormone therapy, years without recurrence, of five"
                study.figure(tree.tree_.plot(title=title, unit="women").figure_, "tree")
    study.show("What these rules bring in the trial, in years, against treating nobody and everybody:")
    study.table(pd.DataFrame(rows), "rules_in_trial", digits=2, index=False)


def main(study) -> None:
    """Run the study."""
    clinic, trial = (load_dataset(name).study() for name in ("rotterdam", "gbsg"))
    study.heading("1. Follow-up to five years")
    study.step("nuisance models and rewards")
    in_clinic, in_trial = fitted_of(clinic), fitted_of(trial)
    for name, data, fitted in (("rotterdam", clinic, in_clinic), ("gbsg", trial, in_trial)):
        study.show(f"{name}, {data.n:,} women:")
        show_follow_up(study, data, fitted, f"follow_up_{name}")
        study.show()
        draw_curves(study, data, f"{name}: recurrence or death", "years", f"curves_{name}")

    study.heading("2. Who was given hormone therapy")
    for name, data, fitted in (("rotterdam", clinic, in_clinic), ("gbsg", trial, in_trial)):
        study.show(f"Estimated propensities in {name}:")
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            table = overlap_table(fitted.propensity_, data.table["therapy"]).rename_axis(None)
        study.table(table, f"overlap_{name}", digits=2)
        study.show("".join(f"{warning.message}\n" for warning in heard))
    show_arms(study, clinic, in_clinic, "years, rotterdam,", 2, "arms_rotterdam")
    show_arms(study, trial, in_trial, "years, gbsg,", 2, "arms_gbsg")

    study.heading("3. The effect")
    show_effects(study, clinic, trial)

    study.heading("4. A rule of the records in the trial")
    show_rule(study, clinic, trial, in_trial)

    study.heading("5. A hidden confounder of the trial's women")
    study.show("Y is the outcome in place of censored ones, so that shares are of its variance, censoring included:")
    given = {"propensity": in_trial.propensity_, "regression": in_trial.regression_, "random_state": 0}
    study.show(omitted_variable_bounds(HORMONE, in_trial.outcome_, trial.table["therapy"], baseline=NONE, **given))

    study.heading("6. A rule of the trial itself, on women it has not seen")
    show_values(study, trial, SMALLEST, "gbsg: years without recurrence, of five, held out", "years", 2)
