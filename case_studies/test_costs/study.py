"""Tests that cost money: trees that are accurate and cheap to apply, greedy and proved.

Public interface used: LowCostTreeClassifier, choose_complexity_weight, OptimalTreeClassifier and
CostSensitiveTreeClassifier with feature_costs, repeated_features and feature_groups. comparison.py (all algorithms on
all tables), exact.py (greedy beside proved), clinic.py (a worked example), full.py (the comparison with all rows).
"""

from __future__ import annotations

from test_costs import clinic, comparison, exact

MOST_ROWS = 1_500  # of a table, so that the study takes minutes


def main(study) -> None:
    """Run the study."""
    clinic.show(study)
    exact.show(study)
    study.heading(f"All algorithms on all tables, at most {MOST_ROWS:,} rows of each")
    comparison.show(study, MOST_ROWS)
