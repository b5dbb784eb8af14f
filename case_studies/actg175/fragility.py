"""ACTG 175: what the conclusions survive: a broken randomisation, another sample, an honest look.

Public interface used: DRPolicyTree, cross_val_policy_value (optimism), marginal_sensitivity, omitted_variable_bounds,
policy_stability.
"""

from __future__ import annotations

from actg175.study import tree_of_all
from fragility import draw_confounding, show_confounding, show_optimism, show_stability

from policytree.evaluation import omitted_variable_bounds

BEST, OLD = "ZDV+ddI", "ZDV"
RESAMPLES = 30


def main(study) -> None:
    """Run the part."""
    data, model = tree_of_all(study)
    arrays = {"Y": data.table["cd420"], "T": data.table["arm"]}
    nuisances = model.reward_estimator_

    study.heading("1. Optimism: worth on the patients who chose a rule less worth on others (CD4 net of costs)")
    table = show_optimism(study, model, data, n_repeats=1 if study.quick else 2, cv=2 if study.quick else 5)

    study.heading("2. A hidden confounder (CD4 cells at 20 weeks, side effects not counted)")
    study.show(
        "The arms were randomised, so Gamma is 1 by design. What is asked here: how far would the odds of the arms\n"
        "have to be off, by a flaw of the randomisation or by who was measured at 20 weeks, to undo each conclusion?\n"
    )
    show_confounding(study, BEST, OLD, arrays, nuisances, f"{BEST} for all against {OLD} for all")
    show_confounding(study, BEST, "ddI", arrays, nuisances, f"{BEST} for all against ddI for all")
    show_confounding(study, table, OLD, arrays, nuisances, f"the held-out trees against {OLD} for all")
    draw_confounding(study, BEST, OLD, arrays, nuisances, "confounding", f"{BEST} - {OLD}, CD4 cells")
    given = {"propensity": nuisances.propensity_, "regression": nuisances.regression_, "random_state": 0}
    omitted = omitted_variable_bounds(BEST, **arrays, baseline=OLD, **given)
    study.show(f"{BEST} against {OLD}:\n{omitted}\n")

    study.heading(f"3. Another sample: the whole pipeline on {RESAMPLES} bootstrap samples")
    show_stability(study, model, data, "ACTG 175, depth 2", RESAMPLES, "patients")
