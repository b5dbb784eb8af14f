"""Names of the rules of a table of values."""

from __future__ import annotations

from policytree.weighting.study_data import StudyData

POLICY, STATUS_QUO, PLUG_IN = "policy tree", "status quo", "plug-in rule"
AS_RANDOMIZED = "as randomised"  # instead of the status quo where treatments were drawn by lot


def fixed_rules(seen: StudyData) -> frozenset[str]:
    """The rules of a table that no row has a part in: one treatment for all, and what people got."""
    return frozenset({STATUS_QUO, AS_RANDOMIZED, *(f"always {label}" for label in seen.treatments)})
