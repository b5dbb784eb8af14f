"""Sentences about names that are not there, with known ones that are close."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

NAMES_SHOWN = 20


def no_such_column(name: str, role: str, names: Sequence[str]) -> str:
    """The sentence about a column that is not there; ``role`` is the argument, or the option, that names it."""
    shown = ", ".join(names[:NAMES_SHOWN]) + (", ..." if len(names) > NAMES_SHOWN else "")
    return f"There is no column {name!r} ({role}); {suggestion(name, names, f'the columns are {shown}.')}"


def suggestion(name: str, known: Sequence[str], otherwise: str) -> str:
    """'did you mean ...' if some known name is close."""
    folded: dict[str, str] = {}
    for other in known:
        folded.setdefault(other.casefold(), other)
    asked = name.casefold()
    begun = [other for other in folded if other.startswith(asked) and not other[len(asked) :][:1].isalnum()]
    close = begun[:3] or difflib.get_close_matches(asked, folded, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(folded[c]) for c in close)}?" if close else otherwise
