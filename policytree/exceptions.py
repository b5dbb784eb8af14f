"""The errors and warnings that policytree raises on purpose."""

from __future__ import annotations


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
