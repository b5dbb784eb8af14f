"""ACTG 175 by its own endpoint: days until the CD4 count is halved, AIDS or death, of 1,000, some of them censored.

Public interface used: load_dataset, RewardEstimator, TimeToEvent (measure), PolicyTree, cross_val_policy_value.
"""

from __future__ import annotations

from dataclasses import replace

from actg175.study import trial
from times import draw_curves, show_arms, show_contrast, show_follow_up, show_horizons, show_values

from policytree import PolicyTree, RewardEstimator, policy_value

SMALLEST = 50  # patients of every arm in a leaf
HORIZONS = (500.0, 750.0, 1000.0)  # days


def main(study) -> None:
    """Run the part."""
    data = trial(study, "days")
    study.heading("1. Follow-up to day 1,000")
    study.step("nuisance models and rewards")
    fitted = RewardEstimator(random_state=0).fit(data)
    show_follow_up(study, data, fitted, "endpoint_follow_up")
    draw_curves(study, data, "ACTG 175: CD4 count halved, AIDS or death", "days", "endpoint_curves")

    study.heading("2. The arms")
    show_arms(study, data, fitted, "days", 1, "endpoint_arms")
    study.step("survival at day 1,000")
    share = RewardEstimator(random_state=0).fit_predict(data.replace(outcome=replace(data.outcome, measure="survival")))
    for arm in share:
        e = policy_value(arm, share)
        study.show(f"{arm}: {e.value:.3f} [{e.lower:.3f}, {e.upper:.3f}] are without the event at day 1,000")
    study.show()
    show_contrast(study, data, fitted, "ZDV+ddI", "ZDV", 1, "endpoint_contrast")

    study.heading(f"3. The best tree of depth 2, at least {SMALLEST} patients of every arm in a leaf")
    tree = PolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST).fit(data.X, fitted.rewards_, data.table["arm"])
    study.show(tree.export_text())
    study.show(f"{tree.status_.name.lower()}, gap {tree.optimality_gap_:g}; mean on the rows that chose it (flattered) "
               f"{tree.objective_value_:.1f}\n")  # fmt: skip
    show_horizons(study, data, HORIZONS, tree, 1, "endpoint_horizons")

    study.heading("4. On patients it has not seen")
    show_values(
        study, data, SMALLEST, "ACTG 175: days without the event, of 1,000, held out", "days", 1, "endpoint_values"
    )
