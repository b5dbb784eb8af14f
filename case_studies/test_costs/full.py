"""The comparison of all algorithms with all rows of all tables: half an hour."""

from __future__ import annotations

from test_costs import comparison


def main(study) -> None:
    """Run it; what it keeps is named full_..., beside the tables of the study."""
    comparison.show(study, None, "full_")
