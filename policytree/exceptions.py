"""The errors and warnings that policytree raises on purpose."""

from __future__ import annotations

LONGEST_QUOTED = 120  # characters of a value in a message


class InputError(ValueError):
    """The caller's data or arguments cannot be used; the message names which one and the remedy.

    A subclass of :class:`ValueError`, so that scikit-learn's conventions hold. The command line prints the
    message and exits with code 2.
    """


class SearchWarning(UserWarning):
    """A search stopped early, or is expected to take very long; the message says how far it got."""


class OverlapWarning(UserWarning):
    """Estimated propensities leave some persons with almost no chance of some treatment."""


class UnseenValueWarning(UserWarning):
    """New rows have categories or gaps in a column that no training row had; the message says where they go."""


class BalanceWarning(UserWarning):
    """After weighting, covariates still differ between treatments; the message says which, and by how much."""


def quoted(value: object) -> str:
    """What a caller gave, as a message quotes it: on one line, not too long, whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # Python refuses to write integers of thousands of digits; strangers' objects may do anything
        return "an integer of thousands of digits" if isinstance(value, int) else f"a {type(value).__name__}"
    return text if len(text) <= LONGEST_QUOTED else f"{text[: LONGEST_QUOTED - 1]}…"
