"""Colon cancer: levamisole, with or without fluorouracil, or neither; censored years to death, and to recurrence.

Public interface used: load_dataset, TimeToEvent, RewardEstimator, PolicyTree,
cross_val_policy_value, heterogeneity_test, policy_value.
"""

from __future__ import annotations

from dataclasses import replace

from times import draw_curves, show_arms, show_contrast, show_follow_up, show_horizons, show_values

from policytree import PolicyTree, RewardEstimator, heterogeneity_test, load_dataset, policy_value

SMALLEST = 40  # people of every arm in a leaf
HORIZONS = (3.0, 5.0, 7.0)  # years
BOTH, NONE = "Lev+5FU", "Obs"
ENDPOINTS = {"death": "years_to_death", "recurrence": "years_to_recurrence_or_death"}


def main(study) -> None:
    """Run the study."""
    dataset = load_dataset("colon")
    data = dataset.study(ENDPOINTS["death"]).replace(randomized=None)  # the mixture that was drawn is a rule, too
    study.show(f"Colon: {data.n} people, {len(data.covariates)} covariates to split on, 3 arms")

    study.heading("1. Death within five years: follow-up")
    study.step("nuisance models and rewards")
    fitted = RewardEstimator(random_state=0).fit(data)
    show_follow_up(study, data, fitted)
    draw_curves(study, data, "Colon: death", "years since registration")

    study.heading("2. The arms: years alive")
    show_arms(study, data, fitted, "years", 3)
    show_contrast(study, data, fitted, BOTH, NONE, 3)
    study.step("do effects differ?")
    study.show(f"{heterogeneity_test(data, fitted=fitted, random_state=0)}\n")

    study.heading("3. Recurrence or death within five years, and recurrence alone")
    study.step("recurrence")
    again = dataset.study(ENDPOINTS["recurrence"])
    show_arms(study, again, RewardEstimator(random_state=0).fit(again), "years", 3, "recurrence")
    study.step("years lost to recurrence")
    cause = replace(again.outcome, event="first_event", cause=1, measure="years_lost")
    lost = RewardEstimator(random_state=0).fit(again.replace(outcome=cause, direction="minimize"))
    study.show("Years lost to recurrence, of five, death without recurrence as a competing event:")
    for arm in (BOTH, "Lev"):
        e = policy_value(arm, lost.rewards_, baseline=NONE)
        study.show(f"{arm} less {NONE}: {e.value:.3f} [{e.lower:.3f}, {e.upper:.3f}]")

    study.heading(f"4. The best tree of depth 2 (death), at least {SMALLEST} people of every arm in a leaf")
    tree = PolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST).fit(data.X, fitted.rewards_, data.table["arm"])
    study.show(tree.export_text())
    study.show(f"{tree.status_.name.lower()}, gap {tree.optimality_gap_:g}; mean on the rows that chose it (flattered) "
               f"{tree.objective_value_:.3f}\n")  # fmt: skip
    show_horizons(study, data, HORIZONS, tree, 3)

    study.heading("5. On people it has not seen")
    show_values(study, data, SMALLEST, "Colon: years alive, of five, held out", "years", 3)
