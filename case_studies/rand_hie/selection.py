"""RAND: how far those who refused a plan, or left it, could undo that free care brings more visits and costs more.

Public interface used: RewardEstimator, policy_value, marginal_sensitivity, omitted_variable_bounds.
"""

from __future__ import annotations

from fragility import draw_confounding, show_confounding
from rand_hie.study import persons, ridge, tables

from policytree import RewardEstimator
from policytree.evaluation import omitted_variable_bounds

FREE, OLD = "free", "95%"
UNITS = {"visits": "visits a person-year", "spending": "dollars a person-year"}


def main(study) -> None:
    """Run the part."""
    dataset, _, frame = persons(study)
    given = tables(dataset, frame)
    study.show(
        "Families were randomised, so a hidden confounder is what refusals and drop-out made of it. No covariate "
        "changes\n"
        "known propensities, so none can serve as a yardstick for an omitted variable."
    )
    for outcome, unit in UNITS.items():
        study.heading(f"Free care for all against the 95% plan for all: {unit}")
        study.step(f"nuisance models of {outcome}")
        fitted = RewardEstimator(ridge(), cv=3, random_state=0)
        fitted.fit(frame[outcome], frame["plan"], **given, groups=frame["household"])
        data = {"Y": frame[outcome], "T": frame["plan"], "groups": frame["household"]}
        show_confounding(study, FREE, OLD, data, fitted, outcome)
        bounds = omitted_variable_bounds(
            FREE, data["Y"], data["T"], propensity=fitted.propensity_, regression=fitted.regression_, baseline=OLD,
            groups=data["groups"], random_state=0,
        )  # fmt: skip
        study.show(f"{outcome}:\n{bounds}\n")
        if outcome == "visits":
            draw_confounding(study, FREE, OLD, data, fitted, "selection_gamma", f"{FREE} - {OLD}, {unit}")
            study.figure(bounds.plot().figure_, "selection_omitted")
