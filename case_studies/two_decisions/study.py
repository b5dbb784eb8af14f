"""Two decisions in a simulated sequential trial (SMART): what a regime is worth, beside the known truth.

Public interface used: DRPolicyTree, TreatmentRegime, cross_val_regime_value, RegimeReport. The trial is
simulated, since no sequential trial may be passed on; so the best regime, and the true value of every rule, are known.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from two_decisions.designs import CHANCES, SECOND, best_first, best_second, trial, true_value

from policytree import DRPolicyTree
from policytree.plotting.regimes import RegimeDisplay
from policytree.regimes import RegimeReport, TreatmentRegime, cross_val_regime_value

PEOPLE, SMALLEST = 800, 30
SIZES, DRAWS = (300, 800, 2000), 12
POLLE = Path(__file__).parents[2] / "benchmarks" / "results" / "regimes.csv"
BEST_OF_POLLE, ALWAYS_OF_POLLE = 1.4482, 0.999  # by 4,000,000 draws


def linear(depth: int) -> DRPolicyTree:
    """A tree of some depth, with linear models of outcomes."""
    return DRPolicyTree(
        make_pipeline(StandardScaler(), LinearRegression()),
        max_depth=depth,
        min_samples_leaf=SMALLEST,
        min_samples_per_treatment=0,
        cv=5,
    )


def show_trial(study, stages) -> None:
    """Who got what."""
    study.heading("1 The trial (simulated)")
    first, second = pd.Series(stages[0].T), stages[1].T.fillna("(responded)")
    table = pd.crosstab(first.rename("first line"), second.rename("second line"))
    study.table(table, "followed", digits=0)


def show_regime(study, regime, stages) -> None:
    """The two trees, and what was proved of them."""
    study.heading("2 The regime that is learnt from everybody")
    study.show(regime.export_text())
    study.show()
    study.show(regime.certificate())
    display = RegimeDisplay.from_estimator(regime, stages=stages, title="Simulated trial: first line, and then?")
    study.figure(display.figure_, "regime")


def show_values(study, regime, stages, best: float) -> None:
    """Held-out values beside the truth, which only a simulation has."""
    study.heading("3 What rules are worth: held out, and in truth")
    values = cross_val_regime_value(
        regime, stages, cv=2 if study.quick else 5, n_repeats=1 if study.quick else 3, random_state=0
    )
    study.show(f"{values.verdict}\n")
    study.show(f"{values.against_once_text()}\n")
    frame = values.to_frame()[["value", "lower", "upper"]]
    frame["truth"] = [_truth(rule, regime) for rule in frame.index]
    study.table(frame, "values", digits=2)
    study.show(f"The best regime of all is worth {best:.2f} in truth.")
    known = frame["truth"].notna()
    inside = frame["truth"].between(frame["lower"], frame["upper"])[known]
    study.show(f"{inside.sum()} of {known.sum()} intervals hold the truth of their rule.")
    fig, ax = plt.subplots(figsize=(7.5, 4.2))
    y = np.arange(len(frame))[::-1]
    ax.hlines(y, frame["lower"], frame["upper"], color="#0072B2", linewidth=2, label="held out, 95 % interval")
    ax.plot(frame["value"], y, "o", color="#0072B2")
    ax.plot(frame["truth"], y, "x", color="#D55E00", markersize=8, label="truth (100,000 new people)")
    ax.axvline(best, color="#999999", linestyle=":", label="the best regime of all")
    ax.set(yticks=y, yticklabels=frame.index, xlabel="mean relief; higher is better")
    ax.legend(frameon=False, fontsize=9)
    study.figure(fig, "values")
    report = RegimeReport(regime, stages, values)
    report.to_html(study.results / "report.html")


def _truth(rule: str, regime) -> float:
    """The true value of a rule of the table; none of those that are learnt anew in every fold."""
    if rule == "regime":
        return true_value(regime)
    if rule.startswith("always "):
        return true_value(tuple(rule.removeprefix("always ").split(" then ")))
    if rule == "as randomised":
        return true_value((_coin, _as_randomised))
    return np.nan


def _coin(people) -> np.ndarray:
    return people.rng.random(len(people.severity)) < 0.5


def _as_randomised(people, drug) -> np.ndarray:
    return people.rng.choice(len(SECOND), len(drug), p=list(CHANCES.values()))


def show_sizes(study, best: float) -> None:
    """True values of regimes that many trials of several sizes learn."""
    study.heading("4 Many trials: how near the best do regimes come?")
    lines = {}
    draws = 3 if study.quick else DRAWS
    learners = {
        "stumps, backward": lambda: TreatmentRegime(linear(1), random_state=0),
        "stumps, jointly": lambda: TreatmentRegime(linear(1), search="joint", random_state=0),
        "depth two, backward": lambda: TreatmentRegime(linear(2), random_state=0),
    }
    for n in SIZES[:1] if study.quick else SIZES:
        study.step(f"{draws} trials of {n} people")
        found = {name: [] for name in learners}
        for k in range(draws):
            stages = trial(n, 1000 + k)
            for name, make in learners.items():
                found[name].append(true_value(make().fit(stages)))
        for name, each in found.items():
            lines[f"{name}, n = {n}"] = {
                "true value": np.mean(each), "error": np.std(each, ddof=1) / np.sqrt(draws), "worst": min(each),
            }  # fmt: skip
    study.table(pd.DataFrame.from_dict(lines, orient="index"), "sizes", digits=3)
    study.show(f"{draws} draws each. The best regime of all is worth {best:.3f}.")


def show_polle(study) -> None:
    """The two-stage design of polle: what 200 draws of benchmarks/regimes.py found."""
    study.heading("5 The two-stage design of polle")
    kept = pd.read_csv(POLLE)
    learnt = kept[kept["cell"].str.startswith("depth two")].groupby("cell")["true value"]
    study.table(
        pd.DataFrame({"true value": learnt.mean(), "error": learnt.sem(), "draws": learnt.size()}), "polle", digits=3
    )
    judged = kept[kept["cell"].str.startswith("held out")].groupby("cell")["value covered"]
    covered = pd.DataFrame({"intervals that cover": judged.mean(), "error": judged.sem(), "draws": judged.size()})
    study.table(covered, "polle_coverage", digits=3)
    study.show(f"The best regime is worth {BEST_OF_POLLE}, always treating {ALWAYS_OF_POLLE}.")


def main(study) -> None:
    """Run the whole study."""
    study.step("a simulated trial")
    stages = trial(300 if study.quick else PEOPLE, 0)
    show_trial(study, stages)
    regime = TreatmentRegime(linear(2), random_state=0).fit(stages)
    show_regime(study, regime, stages)
    study.step("held-out values")
    best = true_value((best_first, best_second))
    show_values(study, regime, stages, best)
    show_sizes(study, best)
    show_polle(study)
