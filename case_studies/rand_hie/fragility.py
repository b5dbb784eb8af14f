"""RAND: what the conclusions survive: hidden confounding, another sample, an honest look.

Public interface used: DRPolicyTree, cross_val_policy_value (optimism), marginal_sensitivity, policy_stability.
"""

from __future__ import annotations

from fragility import draw_confounding, show_confounding, show_optimism, show_stability
from rand_hie.study import tree_of_all

PRICE = 60.0  # dollars that a visit is worth
RESAMPLES = 40


def main(study) -> None:
    """Run the part."""
    data, model = tree_of_all(study, PRICE)
    nuisances = model.reward_estimator_

    study.heading(f"1. Optimism: worth on the rows that chose a rule less worth on others (a visit: {PRICE:g} dollars)")
    table = show_optimism(study, model, data, n_repeats=1 if study.quick else 2, cv=2 if study.quick else 5)

    study.heading("2. A hidden confounder (dollars a person-year)")
    study.show(
        "Families were randomised within sites, so Gamma is 1 by design. What is asked here: how far would the odds\n"
        "of the plans have to be off, by who refused a plan or left it, to undo each conclusion?\n"
    )
    show_confounding(study, "95%", "free", data, nuisances, "the 95% plan for all against free care for all")
    show_confounding(study, table, "free", data, nuisances, "the held-out trees against free care for all")
    draw_confounding(study, "95%", "free", data, nuisances, "confounding", "95% plan - free care, dollars")

    study.heading(f"3. Another sample: the whole pipeline on {RESAMPLES} bootstrap samples of households")
    show_stability(study, model, data, f"RAND, depth 2, a visit worth {PRICE:g} dollars", RESAMPLES, "person-years")
