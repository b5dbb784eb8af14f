"""Which treatment is the control, where nobody names it: one rule for Python and the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

CONTROL_NAMES = (
    "placebo", "control", "none", "no", "0", "untreated", "no treatment", "sham", "obs", "observation", "standard",
    "standard of care", "soc", "standard care", "usual", "usual care", "care as usual", "treatment as usual",
    "wait list", "waitlist", "waiting list", "false",
)  # fmt: skip
_BREAKS = re.compile(r"[\s_-]+")


def recognised_control(labels: Sequence[Any]) -> Any:
    """The only one of the labels that is named like a control; None if none is, or several are."""
    named = named_like_controls(labels)
    return named[0] if len(named) == 1 else None


def named_like_controls(labels: Sequence[Any]) -> list[Any]:
    """The labels that are named like a control."""
    return [label for label in labels if named_like_a_control(label)]


def named_like_a_control(label: Any) -> bool:
    """Whether a label is one of those that controls usually have."""
    whole = isinstance(label, float) and label.is_integer()  # a column of 0 and 1 with gaps is of floats
    text = str(int(label) if whole else label).casefold()
    return _BREAKS.sub(" ", text).strip() in CONTROL_NAMES
