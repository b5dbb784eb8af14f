"""The control: the treatment that others are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policytree.data.combined_treatments import CombinedTreatments
from policytree.data.controls import named_like_a_control, named_like_controls
from policytree.exceptions import InputError
from policytree.study.assignments import Combined
from policytree.study.study import Study


def chosen_control(
    asked: str | None, study: Study, combined: CombinedTreatments | None = None
) -> tuple[str, str, bool]:
    """The control's label as text, words on how it was chosen, and whether it was named.

    It is the one asked for; else, where several treatments were combined, the combination of all controls; else the
    only one that is named like a control, as in Python's functions that judge rules; else the first in sorted order, to
    which rules are not held.

    Parameters
    ----------
    asked : str or None
        The value of --control.
    study : Study
    combined : CombinedTreatments, optional
        Of several treatments that one column of the study holds.

    Returns
    -------
    label, words, is_named : str, str, bool
        The last says whether it is more than the first in sorted order: then rules must be shown better than it.

    Raises
    ------
    InputError
        If no treatment has that label.
    """
    if combined is None and isinstance(study.treatment, Combined):
        combined = study.treatment.combined(study.table)
    if asked is None and combined is not None and combined.counts[combined.control]:
        named = all(named_like_a_control(levels[0]) for levels in combined.levels.values())
        words = f"{combined.control}, where every treatment is at its control; --control names another one"
        return combined.control, words, named
    return control_among(asked, study.treatments, "treatment")


def control_among(asked: str | None, labels: Sequence[Any], what: str) -> tuple[str, str, bool]:
    """:func:`chosen_control` among labels, sorted, of treatments or of offers; ``what`` says which."""
    known = [str(label) for label in labels]
    if asked is not None:
        if asked not in known:
            raise InputError(f"--control names the {what} {asked!r}; the {what}s are {', '.join(known)}.")
        return asked, asked, True
    named = [str(label) for label in named_like_controls(labels)]
    if len(named) == 1:
        return named[0], f"{named[0]}, taken by its name; --control names another one", True
    several = f", since {' and '.join(named)} are named like a control" if named else ""
    return known[0], f"{known[0]}, the first in sorted order{several}; --control names another one", False
