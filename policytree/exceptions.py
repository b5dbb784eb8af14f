"""The errors and warnings that policytree raises on purpose."""

from __future__ import annotations

__all__ = [
    "BalanceWarning",
    "InputError",
    "OverlapWarning",
    "RowOrderWarning",
    "SearchWarning",
    "UnseenValueWarning",
    "WeakInstrumentWarning",
]

LONGEST_QUOTED = 120  # characters of a value in a message


class InputError(ValueError):
    """The caller's data or arguments cannot be used; the message names which one and the remedy.

    A subclass of :class:`ValueError`, so that scikit-learn's conventions hold. The command line prints the
    message and exits with code 2.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.exceptions import InputError
    >>> try:
    ...     PolicyTree(max_depth=-1).fit([[1.0]], [[0.0, 1.0]])
    ... except InputError as error:
    ...     print(error)
    ...
    max_depth must be an integer >= 0 or None; got -1.
    """


class SearchWarning(UserWarning):
    """A search stopped early, or is expected to take very long; the message says how far it got.

    Examples
    --------
    >>> import warnings
    >>> from policytree.exceptions import SearchWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", SearchWarning)  # accept proved trees only
    ...
    """


class OverlapWarning(UserWarning):
    """Some persons have almost no chance of some treatment, or of an outcome that is observed, or of being in a study.

    Examples
    --------
    >>> import warnings
    >>> from policytree.exceptions import OverlapWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", OverlapWarning)  # stop rather than extrapolate
    ...
    """


class WeakInstrumentWarning(UserWarning):
    """Offers hardly change which treatment people get, everywhere or for some; the message says how little.

    Examples
    --------
    >>> import warnings
    >>> from policytree.exceptions import WeakInstrumentWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", WeakInstrumentWarning)  # stop rather than divide by next to nothing
    ...
    """


class UnseenValueWarning(UserWarning):
    """New rows have categories or gaps in a column that no training row had; the message says to which side they go.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from policytree import OptimalTreeClassifier
    >>> tree = OptimalTreeClassifier(max_depth=1).fit(pd.DataFrame({"site": ["a", "a", "b", "b"]}), [0, 0, 1, 1])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     labels = tree.predict(pd.DataFrame({"site": ["c"]}))
    ...
    >>> caught[0].category.__name__
    'UnseenValueWarning'
    """


class RowOrderWarning(UserWarning):
    """Columns had the same row labels (pandas' index) in different orders; the message says which were put into one.

    Examples
    --------
    >>> import warnings
    >>> from policytree.exceptions import RowOrderWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", RowOrderWarning)  # stop rather than sort
    ...
    """


class BalanceWarning(UserWarning):
    """After weighting, covariates still differ between treatments; the message says which, and by how much.

    Examples
    --------
    >>> import warnings
    >>> from policytree.exceptions import BalanceWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", BalanceWarning)  # stop where weighting leaves differences
    ...
    """


def quoted(value: object) -> str:
    """Quote a caller's argument for a message: on one line, not too long, whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # Python refuses to write integers of thousands of digits; strangers' objects may do anything
        return "an integer of thousands of digits" if isinstance(value, int) else f"a {type(value).__name__}"
    return text if len(text) <= LONGEST_QUOTED else f"{text[: LONGEST_QUOTED - 1]}…"
