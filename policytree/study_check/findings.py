"""Findings of a check of the data: a sentence each, with numbers and a remedy."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from policytree.data.views import Shown

SEVERITIES = ("serious", "warning", "note")
# Kinds of findings that other code looks for.
AFTER_TREATMENT, ID, RARE_CATEGORIES = "after treatment", "id", "rare categories"
DETERMINES_OUTCOME, DETERMINES_TREATMENT, NEVER_TREATED = "determines outcome", "determines treatment", "never treated"
LOOKS_RANDOMISED = "looks randomised"
CENSORED, KNOWS_EVENT = "censored outcome", "knows the event"
NOT_CENSORED = "not censored"
EMPTY_COMBINATION, THIN_COMBINATION = "empty combination", "thin combination"
RARE_OFFER, WEAK_INSTRUMENT, FULL_COMPLIANCE = "rare offer", "weak instrument", "full compliance"
REPEATED_IDS, BY_CLUSTER, WITHIN_CLUSTERS = "repeated ids", "assigned by cluster", "varies within clusters"


@dataclass(frozen=True, slots=True, repr=False)
class Finding(Shown):
    """One finding.

    Attributes
    ----------
    severity : {"serious", "warning", "note"}
        Serious: results are probably wrong. Warning: they may be. Note: worth knowing.
    kind : str
        The kind of the check, such as "determines outcome" or "dates".
    column : str
        The column, or several separated by commas; "" where it is about rows.
    found : str
        The finding, with numbers; begins like the rest of a sentence.
    remedy : str
        The action to take.
    rows : int
        How many rows it concerns, where it is about some of them; 0 otherwise.
    treatment : str
        The treatment that it is about, as text, where it is about one; "" otherwise.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree.study_check import check_study
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> X = pd.DataFrame({"age": rng.integers(20, 80, size=500), "score": np.exp(y)})
    >>> finding = check_study(y, rng.choice(["drug", "none"], size=500), X=X).findings[0]
    >>> finding.severity, finding.kind, finding.column
    ('serious', 'determines outcome', 'score')
    >>> finding.remedy.split(",")[0]
    'If it is the outcome in another form'
    """

    severity: str
    kind: str
    column: str
    found: str
    remedy: str
    rows: int = 0
    treatment: str = ""

    def __str__(self) -> str:
        return f"{self.column + ' ' if self.column else ''}{self.found}. {self.remedy}"


@dataclass(frozen=True, slots=True, repr=False)
class StudyCheck(Shown):
    """All findings, the most serious first; ``str()`` is a list of sentences.

    Attributes
    ----------
    findings : tuple of Finding
    n_rows, n_columns : int
        Rows and columns that were checked.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree.study_check import check_study
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> X = pd.DataFrame({"age": rng.integers(20, 80, size=500), "score": np.exp(y)})
    >>> found = check_study(y, rng.choice(["drug", "none"], size=500), X=X)
    >>> found.n_rows, found.n_columns, [finding.kind for finding in found.findings]
    (500, 2, ['determines outcome', 'looks randomised'])
    """

    findings: tuple[Finding, ...]
    n_rows: int
    n_columns: int

    def __str__(self) -> str:
        if not self.findings:
            return f"Nothing suspicious in {self.n_rows:,} rows and {self.n_columns} columns."
        return "\n".join(f"{finding.severity.capitalize()}: {finding}" for finding in self.findings)

    def of(self, severity: str) -> tuple[Finding, ...]:
        """The findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def to_frame(self) -> pd.DataFrame:
        """One row a finding: severity, kind, column, found, remedy."""
        names = ("severity", "kind", "column", "found", "remedy")
        return pd.DataFrame([[getattr(f, name) for name in names] for f in self.findings], columns=list(names))


def by_severity(findings: list[Finding]) -> tuple[Finding, ...]:
    """Most serious first, otherwise in the order given."""
    return tuple(sorted(findings, key=lambda f: SEVERITIES.index(f.severity)))
