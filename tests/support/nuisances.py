"""Nuisance models that take little time, for tests of what is done with them."""

from __future__ import annotations

from policytree.weighting import stacking
from policytree.weighting.time_to_event import hazards


def few_rounds(monkeypatch) -> None:
    """Let outcomes and hazards be learnt with few rounds and penalties, in this process: they take most of the time."""
    for module in (stacking, hazards):
        monkeypatch.setattr(module, "ROUNDS", module.ROUNDS[:3])
    monkeypatch.setattr(hazards, "PENALTIES", hazards.PENALTIES[-1:])
