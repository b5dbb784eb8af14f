"""Readmission after detoxification: a clinic that links people to a doctor, who gains, and half of the interviews lost.

Public interface used: MayBeMissing, Offered, RewardEstimator, policy_value, instrument_summary,
heterogeneity_test, PolicyTree, cross_val_policy_value.
"""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from policytree import (
    DRPolicyTree,
    PolicyTree,
    RewardEstimator,
    Study,
    cross_val_policy_value,
    heterogeneity_test,
    policy_value,
)
from policytree.datasets.files import packaged_frame
from policytree.evaluation import instrument_summary
from policytree.exceptions import OverlapWarning
from policytree.study import MayBeMissing, Offered

CLINIC, USUAL = "clinic", "usual care"
MONTHS = (6, 12, 18, 24)
SMALLEST = 20  # people of both arms in a leaf, times the four interviews
NUMBERS = {
    "age": "age", "female": "female", "cesd": "depression", "pcs": "physical_health", "mcs": "mental_health",
    "i1": "drinks_a_day", "d1": "hospital_stays", "pss_fr": "friends_support",
}  # fmt: skip
OUTCOMES = {"linked": "linked to a doctor", "readmitted": "in a detoxification unit again, per half-year"}


def people() -> pd.DataFrame:
    """The 470 people of the trial, one row each."""
    return usable(packaged_frame("mosaicData", "HELPmiss"), packaged_frame("mosaicData", "HELPfull"))


def usable(readable: pd.DataFrame, full: pd.DataFrame) -> pd.DataFrame:
    """Columns with names from one file; outcomes at four interviews from the other, NaN where there was none."""
    first = readable.set_index("id")
    later = full[full["TIME"].isin(MONTHS)].pivot_table(index="ID", columns="TIME", values="E2A")
    later = later.reindex(index=first.index, columns=MONTHS)
    frame = first[list(NUMBERS)].astype(float).rename(columns=NUMBERS)
    frame["homeless"] = (first["homeless"] == "homeless").astype(float)
    frame["detox_before"] = first["e2b"].fillna(0.0).astype(float)  # half a year before; empty where there was none
    frame["substance"] = first["substance"].where(first["substance"] != "missing")
    frame["race"] = first["racegrp"].astype(str)
    frame["arm"] = np.where(first["treat"] == "yes", CLINIC, USUAL)
    frame["linked"] = (first["link"] == "yes").astype(float).where(first["link"].notna())
    for month in MONTHS:
        frame[f"readmitted {month}"] = later[month]
    return frame.rename_axis("person").reset_index()


def interviews(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per person and interview, held or not: whether there was a readmission in the half-year before it."""
    parts = [frame.assign(month=float(month), readmitted=frame[f"readmitted {month}"]) for month in MONTHS]
    return pd.concat(parts, ignore_index=True)


def as_study(rows: pd.DataFrame, outcome: str, every: bool = False) -> Study:
    """Make the study: arms were drawn one to one; people are kept together; race and time are adjusted for only.

    Rows without an outcome are weighted for, unless ``every`` row has one.
    """
    return Study(
        rows, treatment="arm", outcome=outcome if every else MayBeMissing(outcome), cluster="person",
        covariates=[*NUMBERS.values(), "homeless", "detox_before", "substance"],
        confounders=["race", *(["month"] if "month" in rows else [])], propensity={CLINIC: 0.5, USUAL: 0.5},
    )  # fmt: skip


def difference(rows: pd.DataFrame, outcome: str, every: bool = False):
    """Clinic less usual care, in per cent: the estimate."""
    fitted = RewardEstimator(random_state=0).fit(as_study(rows, outcome, every))
    return policy_value(CLINIC, 100 * fitted.rewards_, baseline=USUAL, groups=rows["person"]), fitted


def show_people(study, frame: pd.DataFrame) -> None:
    """Who they are, and who was interviewed."""
    study.heading("1. The people")
    rows = {}
    for arm, part in frame.groupby("arm"):
        rows[arm] = {"people": len(part), "age": part["age"].mean(), "women %": 100 * part["female"].mean(),
                     "homeless %": 100 * part["homeless"].mean(), "detox before": part["detox_before"].mean(),
                     "link known %": 100 * part["linked"].notna().mean()}  # fmt: skip
        rows[arm] |= {f"seen at {m} %": 100 * part[f"readmitted {m}"].notna().mean() for m in MONTHS}
    study.table(pd.DataFrame(rows).T.astype({"people": int}), "people")


def show_effects(study, frame: pd.DataFrame, half_years: pd.DataFrame) -> dict[str, RewardEstimator]:
    """Show the clinic's effects, by analysis, and if those who were not seen differ as much as they can."""
    study.heading("2. What the clinic changes, percentage points")
    rows, kept = [], {}
    for outcome, data in (("linked", frame), ("readmitted", half_years)):
        study.step(f"effects: {outcome}")
        gap, kept[outcome] = difference(data, outcome)
        found = {"doubly robust, weighted for who was seen": gap}
        seen = data[data[outcome].notna()].reset_index(drop=True)
        found["only those who were seen"] = difference(seen, outcome, every=True)[0]
        clinic = data["arm"] == CLINIC
        for name, value in (
            ("unseen: yes in the clinic, no outside", clinic),
            ("unseen: no in the clinic, yes outside", ~clinic),
        ):
            filled = data.assign(**{outcome: data[outcome].fillna(value.astype(float))})
            found[name] = difference(filled, outcome, every=True)[0]
        rows += [
            {"outcome": OUTCOMES[outcome], "analysis": name, "difference": e.value, "lower": e.lower, "upper": e.upper}
            for name, e in found.items()
        ]
    study.table(pd.DataFrame(rows), "effects", index=False)
    return kept


def draw_months(study, half_years: pd.DataFrame) -> None:
    """Shares readmitted by interview and arm, of those who were seen."""
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for k, (arm, color) in enumerate(((USUAL, "#999999"), (CLINIC, "#0072B2"))):
        part = half_years[half_years["arm"] == arm].groupby("month")["readmitted"].agg(["mean", "count"])
        error = 1.96 * np.sqrt(part["mean"] * (1 - part["mean"]) / part["count"])
        ax.errorbar(part.index + 0.4 * k, 100 * part["mean"], 100 * error, fmt="o-", capsize=3, color=color, label=arm)
    ax.set(xticks=MONTHS, xlabel="months after the first detoxification", ylim=(0, 80),
           ylabel="readmitted in half a year, per cent\nof those who were seen")  # fmt: skip
    ax.legend(frameon=False)
    study.figure(figure, "months")


def show_linking(study, half_years: pd.DataFrame) -> None:
    """Does a doctor prevent readmission? Those who were linked against the others, and by the lot as an instrument."""
    study.heading("3. Does being linked to a doctor prevent readmission? (percentage points)")
    study.step("the lot as an instrument")
    rows = half_years[half_years["linked"].notna() & half_years["readmitted"].notna()].reset_index(drop=True)
    rows["readmitted"] *= 100
    rows["lot"], rows["doctor"] = (rows["arm"] == CLINIC).astype(int), rows["linked"].astype(int)
    rows["went"] = np.where(rows["linked"] == 1.0, "linked", "not linked")
    given = as_study(rows, "readmitted", every=True).replace(treatment="went", propensity=None)
    seen = RewardEstimator(random_state=0).fit(given)
    naive = policy_value("linked", seen.rewards_, baseline="not linked", groups=rows["person"])
    offered = given.replace(treatment=Offered("doctor", by="lot"), propensity=0.5)
    lot = RewardEstimator(method="instrument", random_state=0).fit(offered)
    summary = instrument_summary(lot)
    table = pd.DataFrame({
        "who was linked, adjusted": [naive.value, naive.lower, naive.upper],
        "the lot as an instrument": [summary.effect.value, *summary.robust_interval],
    }, index=["difference", "lower", "upper"]).T  # fmt: skip
    study.table(table, "linking")
    moved = summary.compliers
    study.show(
        f"{len(rows):,} half-years of {rows['person'].nunique()} people. The lot moves {100 * moved.value:.0f}% "
        f"[{100 * moved.lower:.0f}, {100 * moved.upper:.0f}] to a doctor; its interval is that of Anderson and Rubin."
    )


def show_rules(study, half_years: pd.DataFrame, fitted: RewardEstimator) -> None:
    """The best tree for fewer readmissions, the test of whether effects differ, and held-out values."""
    study.heading("4. Should the clinic be for some? (readmissions per half-year, per cent; lower is better)")
    smallest = len(MONTHS) * (SMALLEST // 2 if study.quick else SMALLEST)
    data = as_study(half_years.assign(readmitted=100 * half_years["readmitted"]), "readmitted")
    study.step("the best tree, and held-out values")
    tree = PolicyTree(max_depth=2, min_samples_per_treatment=smallest, direction="minimize")
    tree.fit(data.X, 100 * fitted.rewards_, data.table["arm"])
    study.show(tree.export_text())
    study.show(f"{tree.status_.name.lower()}, gap {tree.optimality_gap_:g}; on the rows that chose it (flattered) "
               f"{tree.objective_value_:.1f}; rows are half-years, four a person\n")  # fmt: skip
    study.show(f"{heterogeneity_test(as_study(half_years, 'readmitted'), fitted=fitted, random_state=0)}\n")
    model = DRPolicyTree(max_depth=2, min_samples_per_treatment=smallest, direction="minimize", random_state=0)
    folds = {"cv": 2, "n_repeats": 1} if study.quick else {"cv": 5, "n_repeats": 3}
    with warnings.catch_warnings(record=True) as heard:  # kept with the numbers that it is about
        warnings.simplefilter("always", OverlapWarning)
        found = cross_val_policy_value(model, data, random_state=0, **folds)
    study.show(f"{found.verdict}\n")
    study.show("".join(f"{message}\n" for message in sorted({str(warning.message) for warning in heard})))
    shown = found.to_frame()[["value", "lower", "upper", "difference", "difference_lower", "difference_upper"]]
    study.table(shown, "held_out_values")
    title = "Readmitted per half-year, held out"
    study.figure(found.plot(title=title, xlabel="per cent").figure_, "held_out_values")


def main(study) -> None:
    """Run the study."""
    frame = people()
    half_years = interviews(frame)
    study.show(
        f"{len(frame)} people; {half_years['readmitted'].notna().sum():,} of {len(half_years):,} interviews were held."
    )
    show_people(study, frame)
    fitted = show_effects(study, frame, half_years)
    draw_months(study, half_years)
    show_linking(study, half_years)
    show_rules(study, half_years, fitted["readmitted"])
