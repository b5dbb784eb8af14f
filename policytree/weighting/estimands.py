"""Whom rewards are about: everybody, those who got one treatment, or those who might have got any."""

from __future__ import annotations

from typing import Any

import numpy as np

from policytree.common.validation import check_choice
from policytree.exceptions import InputError
from policytree.weighting.overlap import DoublyRobustOverlap
from policytree.weighting.treated import DoublyRobustTreated

ESTIMANDS = ("all", "treated", "overlap", "compliers")


def estimand_scheme(
    estimand: str, treated: Any, method: Any, treatments: np.ndarray
) -> DoublyRobustOverlap | DoublyRobustTreated | None:
    """The scheme of a population other than everybody; None for "all".

    Parameters
    ----------
    estimand : {"all", "treated", "overlap"}
    treated : label or None
    method : str or Scheme
        Must be "doubly_robust" for "treated" and "overlap".
    treatments : ndarray of shape (K,)

    Raises
    ------
    InputError
        If the combination has no meaning.
    """
    check_choice(estimand, "estimand", ESTIMANDS)
    if treated is not None and estimand != "treated":
        raise InputError(f"treated={treated!r} goes with estimand='treated'; got estimand={estimand!r}.")
    if estimand == "all":
        return None
    if estimand == "compliers":
        raise InputError("estimand='compliers' is about people who follow an instrument; set method='instrument'.")
    if not isinstance(method, str) or method != "doubly_robust":
        raise InputError(f"estimand={estimand!r} has doubly robust scores only; leave method at 'doubly_robust'.")
    return DoublyRobustOverlap() if estimand == "overlap" else DoublyRobustTreated(_treated(treated, treatments))


def _treated(treated: Any, treatments: np.ndarray) -> Any:
    """The treated arm's label: given, or the 1 of 0 and 1."""
    labels = treatments.tolist()
    known = ", ".join(map(str, labels))
    if treated is None:
        if len(labels) == 2 and set(labels) <= {0, 1}:
            return labels[1]
        raise InputError(f"estimand='treated' must know who the treated are; set treated= to one of {known}.")
    if str(treated) not in {str(label) for label in labels}:
        raise InputError(f"treated={treated!r} is not among the treatments; they are {known}.")
    return treated
