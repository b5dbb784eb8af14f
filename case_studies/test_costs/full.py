"""The comparison of all algorithms with all rows of all tables: hours."""

from __future__ import annotations

from test_costs import comparison


def main(study) -> None:
    """Run it; its tables take the place of those of the study."""
    comparison.show(study, None)
