"""ACTG 175: the other trees that would have done as well on these patients, and what it costs not to ask for age.

Public interface used: DRPolicyTree, near_ties.
"""

from __future__ import annotations

from actg175.study import tree_of_all
from as_good import show_near_ties, show_slacks

SLACK = 2.0  # CD4 cells
SLACKS = (0.5, 1.0, 2.0, 3.0, 5.0)


def main(study) -> None:
    """Run the part."""
    data, model = tree_of_all(study)
    given = {"T": data.table["arm"], "sample_treatment_costs": data.arm_costs}

    study.heading(f"1. Trees of depth 2 within {SLACK:g} CD4 cells of the best, on the patients who chose it")
    without = ["gender", "age", "cd40", ["age", "cd40"]]
    show_near_ties(
        study, model, data.X, SLACK, without, "patients", f"ACTG 175, depth 2, within {SLACK:g} CD4 cells", **given
    )
    study.heading("2. As the slack grows (CD4 cells)")
    show_slacks(study, model, data.X, SLACKS, **given)
