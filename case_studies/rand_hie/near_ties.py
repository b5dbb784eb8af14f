"""RAND: the other trees that would have done as well on these person-years, and what it costs not to ask for age.

Public interface used: DRPolicyTree, near_ties.
"""

from __future__ import annotations

from as_good import show_near_ties, show_slacks
from rand_hie.study import tree_of_all

PRICE = 60.0  # dollars that a visit is worth
SLACK = 5.0  # dollars a person-year
SLACKS = (1.0, 2.0, 5.0, 10.0)


def main(study) -> None:
    """Run the part."""
    data, model = tree_of_all(study, PRICE)

    study.heading(f"1. Trees of depth 2 within {SLACK:g} dollars a person-year of the best, on the rows that chose it")
    without = ["female", "age", "chronic_disease", "education"]
    show_near_ties(
        study, model, data["X"], SLACK, without, "person-years",
        f"RAND, depth 2, a visit worth {PRICE:g} dollars, within {SLACK:g}",
    )  # fmt: skip
    study.heading("2. As the slack grows (dollars a person-year)")
    show_slacks(study, model, data["X"], SLACKS)
