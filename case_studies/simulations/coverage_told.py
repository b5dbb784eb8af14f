"""The same coverage if the arms' chances are told, as in a trial: then doubly robust rewards are right on average.

Public interface used: DRPolicyTree, cross_val_policy_value.
"""

from __future__ import annotations

from simulations.coverage import DEFAULT, SMALL, WHOLE, run_coverage
from simulations.designs import three_arms, three_arms_no_effect


def main(study) -> None:
    """Run the part."""
    n, runs = SMALL if study.quick else WHOLE if study.published else DEFAULT
    study.heading("Coverage of held-out intervals, chances told (per cent; nominal 95)")
    study.show(f"Linear outcome models and the true chances, trees of depth 2, {n:,} rows; {runs} runs.\n")
    table = run_coverage(study, [three_arms_no_effect(), three_arms()], n, runs, told=True)
    study.table(table, "coverage_told", index=False)
