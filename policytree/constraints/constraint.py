"""Constraint: one limit that a tree keeps on the rows that choose it, as a value."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from policytree.common.validation import is_real
from policytree.exceptions import InputError, quoted

if TYPE_CHECKING:
    from policytree.constraints.people import Limited
    from policytree.solvers.core.constraints import Constraint as Sum


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of positive weight that choose a tree.

    Attributes
    ----------
    labels : sequence of K labels
    losses : ndarray of shape (n, K)
        Not weighted.
    weight : ndarray of shape (n,)
    about : Limited
        Their spending, further outcomes and groups.
    test_costs : ndarray of shape (p,) or None
    most_tests : int
        So many questions at most lie on a path.
    """

    labels: Sequence[Any]
    losses: np.ndarray
    weight: np.ndarray
    about: Limited = field(repr=False)
    test_costs: np.ndarray | None = None
    most_tests: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class WorstServed:
    """The part of a search by the worst group: trees that serve one group worst.

    Attributes
    ----------
    losses : ndarray of shape (n, K)
        Those of its people, so that their weighted mean over everybody is the mean over the group.
    constraints : tuple
        No other group is served worse.
    """

    losses: np.ndarray
    constraints: tuple[Sum, ...]


class Constraint(ABC):
    """A limit that a tree keeps on the rows that choose it, exactly; on other people it may not.

    A new kind is a frozen dataclass with these methods; estimators, evaluation and command line ask nothing else of it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from policytree import PolicyTree
    >>> from policytree.constraints.constraint import Constraint
    >>> from policytree.solvers.core.constraints import mean_constraint
    >>> @dataclass(frozen=True)
    ... class MostTreated(Constraint):
    ...     share: float
    ...     kind = "treated"
    ...     def sums(self, rows):
    ...         treated = np.tile(np.arange(len(rows.labels)) > 0, (len(rows.weight), 1)).astype(float)
    ...         return [mean_constraint(self.kind, "treated", treated, rows.weight, self.share)]
    ...     def refusal(self, found, least, labels):
    ...         return f"treats less than {least:g}"
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]]
    >>> tree = PolicyTree(max_depth=1, constraints=[MostTreated(0.25)]).fit(X, rewards)
    >>> tree.predict(X).tolist()
    [0, 0, 0, 1]
    """

    #: Its name in ``multipliers_`` and in saved trees.
    kind: ClassVar[str]
    #: Its option of the command line, where ``cli/limits.py`` reads it: limits on further outcomes and on groups.
    option: ClassVar[str] = ""
    #: The argument of ``fit`` that says what it is about; nothing where the rows do.
    needs: ClassVar[str] = ""
    #: Whether it is about treatments, which classifiers do not give and offers are not.
    of_treatments: ClassVar[bool] = True

    @property
    def about(self) -> Any:
        """Subject of the limit, such as a treatment or an outcome; a list holds one of its kind on each. None: all."""
        return None

    def check(self, about: Limited, labels: Sequence[Any], others: Sequence[Constraint]) -> None:  # noqa: B027
        """Refuse what cannot be meant of this study, or beside the other constraints, before a model is fitted.

        Raises
        ------
        InputError
        """

    @abstractmethod
    def sums(self, rows: Rows) -> list[Sum]:
        """The constraints of the search that say the same of these rows."""

    @abstractmethod
    def refusal(self, found: Sum, least: float, labels: Sequence[Any]) -> str | None:
        """How no tree keeps to it, after "No tree"; None if the sum is not of this constraint.

        ``least`` is the strictest limit that some tree keeps to, in the user's unit.
        """

    def parts(self, rows: Rows) -> list[WorstServed]:
        """The searches whose best tree is the best one, where this is an objective and no constraint."""
        return []

    def objective(self) -> str:
        """The objective in words, if it is another one than the mean over everybody."""
        return ""

    def facts(self, tree: Any) -> dict[str, str]:
        """Measure a fitted tree on the rows that chose it: lines of its certificate."""
        return {}

    def measures(
        self, labels: Sequence[Any], chosen: Sequence[np.ndarray], scores: Sequence[np.ndarray]
    ) -> Mapping[str, list[np.ndarray]]:
        """Return the measures that compare groups of held-out people: arrays (n,) of every repetition, by name."""
        return {}

    def typed(self) -> str:
        """Write its value as after its option on a command line."""
        said = [getattr(self, each.name) for each in fields(self) if getattr(self, each.name) is not None]  # type: ignore[arg-type]
        return "=".join(repr(each) if is_real(each) else str(each) for each in said)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON: kind and fields."""
        return {"kind": self.kind} | {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]


def check_amount(name: str, value: Any, low: float = -sys.float_info.max, high: float = sys.float_info.max) -> None:
    """Refuse what is no finite number of a range, in one sentence."""
    if not is_real(value) or isinstance(value, bool) or not low <= value <= high:
        if high < sys.float_info.max:
            what = f"a share from {low:g} to {high:g}"
        else:
            what = "a finite number" if low < 0 else f"a finite number >= {low:g}"
        raise InputError(f"{name} must be {what}; got {quoted(value)}.")


def rounded_up(number: float) -> float:
    """Rounded up to six digits, so that whoever asks for it gets it."""
    if number == 0 or float(f"{number:.6g}") >= number:
        return float(f"{number:.6g}")
    unit = 10.0 ** (math.floor(math.log10(abs(number))) - 5)
    return float(f"{math.ceil(number / unit) * unit:.6g}")
