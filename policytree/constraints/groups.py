"""Comparisons of groups of people: parity of shares or values, and the group that a tree serves worst.

The difference between two groups' means is a mean over everybody of amounts that depend on what people get, so that a
limit on it is a linear constraint. The least mean over groups is no such thing, but the best tree by it is the best of
one tree per group: of all trees that serve this group worst, the one that serves it best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from policytree.constraints.constraint import Constraint, Rows, WorstServed, check_amount, rounded_up
from policytree.exceptions import InputError

if TYPE_CHECKING:
    from policytree.constraints.people import Limited, Subgroups
    from policytree.solvers.core.constraints import Constraint as Sum

FEWEST = 2  # people of a group whose shares or values are compared


@dataclass(frozen=True)
class OfGroups(Constraint):
    """A comparison of the groups of a column."""

    column: str
    needs: ClassVar[str] = "subgroups"

    @property
    def about(self) -> Any:
        """The column."""
        return self.column

    def check(self, about: Limited, labels: Sequence[Any], others: Sequence[Constraint]) -> None:
        """Refuse a column that nobody gave."""
        if self.column not in about.subgroups:
            known = ", ".join(about.subgroups) or "none"
            name = type(self).__name__
            raise InputError(f"{name} names {self.column!r}, which is no column of subgroups; they are {known}.")

    def sums(self, rows: Rows) -> list[Sum]:
        """None of the search as a whole."""
        return []

    def refusal(self, found: Sum, least: float, labels: Sequence[Any]) -> str | None:
        """The least gap."""
        if found.kind != self.kind:
            return None
        return f"has a gap of {found.name} below {rounded_up(least):g}; allow that, or a larger tree."


@dataclass(frozen=True)
class _Equal(OfGroups):
    within: float

    def __post_init__(self) -> None:
        check_amount(f"{type(self).__name__} of {self.column!r}", self.within, 0.0)

    def _gaps(self, rows: Rows, name: str, values: np.ndarray) -> list[Sum]:
        """The mean of every group is at most so much above that of every other."""
        from policytree.solvers.core.constraints import gap_constraint

        groups = rows.about.subgroups[self.column]
        masks = _populated(groups, name)
        return [
            gap_constraint(
                self.kind, f"{name}: {groups.labels[g]} - {groups.labels[h]}", values, rows.weight, masks[g], masks[h],
                self.within,
            )
            for g, h in permutations(range(len(masks)), 2)
        ]  # fmt: skip


@dataclass(frozen=True)
class EqualShares(_Equal):
    """Demographic parity: groups of people get every treatment in about equal shares, on the rows of ``fit``.

    Parameters
    ----------
    column : str
        One of ``subgroups`` of the study or of ``fit``, which the tree need not see.
    within : float
        The most by which shares of any two groups may differ.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.constraints import EqualShares
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, -1.0], [0.0, -2.0], [0.0, 3.0], [0.0, 4.0]]
    >>> tree = PolicyTree(max_depth=1, constraints=[EqualShares("group", within=0.0)])
    >>> tree.fit(X, rewards, subgroups=["f", "f", "m", "m"]).predict(X).tolist()
    [1, 1, 1, 1]
    """

    kind: ClassVar[str] = "share_gap"
    option: ClassVar[str] = "--parity"

    def sums(self, rows: Rows) -> list[Sum]:
        """One for every treatment and two groups in turn; of two treatments, one share says the other."""
        out = []
        for k in range(len(rows.labels) if len(rows.labels) > 2 else 1):
            one = np.zeros_like(rows.losses)
            one[:, k] = 1.0
            out += self._gaps(rows, f"{self.column}, {rows.labels[k]!s}", one)
        return out

    def measures(
        self, labels: Sequence[Any], chosen: Sequence[np.ndarray], scores: Sequence[np.ndarray]
    ) -> Mapping[str, list[np.ndarray]]:
        """Who gets each treatment."""
        arms = list(labels)[: len(labels) if len(labels) > 2 else 1]
        return {f"share of {arm!s}": [np.equal(p, arm).astype(float) for p in chosen] for arm in arms}


@dataclass(frozen=True)
class EqualValues(_Equal):
    """Parity of values: groups of people have about equal mean rewards under the tree, on the rows of ``fit``.

    Parameters
    ----------
    column : str
        One of ``subgroups`` of the study or of ``fit``, which the tree need not see.
    within : float
        The most by which the means of any two groups may differ.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.constraints import EqualValues
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, -1.0], [0.0, -2.0], [0.0, 3.0], [0.0, 4.0]]
    >>> tree = PolicyTree(max_depth=1, constraints=[EqualValues("group", within=1.0)])
    >>> tree.fit(X, rewards, subgroups=["f", "f", "m", "m"]).predict(X).tolist()
    [0, 0, 0, 0]
    """

    kind: ClassVar[str] = "value_gap"
    option: ClassVar[str] = "--value-parity"

    def sums(self, rows: Rows) -> list[Sum]:
        """One for any two groups in turn."""
        return self._gaps(rows, self.column, rows.losses)

    def measures(
        self, labels: Sequence[Any], chosen: Sequence[np.ndarray], scores: Sequence[np.ndarray]
    ) -> Mapping[str, list[np.ndarray]]:
        """Return the rule's rewards."""
        return {"value": list(scores)}


@dataclass(frozen=True)
class WorstGroup(OfGroups):
    """Judge trees by the mean reward of the group that they serve worst (max-min), instead of the mean over everybody.

    This is an objective and no constraint: it stands in the list since it changes which tree is best as they do.

    Parameters
    ----------
    column : str
        One of ``subgroups`` of the study or of ``fit``, which the tree need not see.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.constraints import WorstGroup
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]]
    >>> tree = PolicyTree(max_depth=1, constraints=[WorstGroup("group")])
    >>> tree.fit(X, rewards, subgroups=["f", "f", "m", "m"]).objective_value_
    1.5
    """

    kind: ClassVar[str] = "worst_group"
    option: ClassVar[str] = "--worst-group"

    @property
    def about(self) -> Any:
        """Everybody: there is one objective."""
        return None

    def parts(self, rows: Rows) -> list[WorstServed]:
        """One search per group; the best tree by the worst group is the best of what they find."""
        from policytree.solvers.core.constraints import gap_constraint

        groups = rows.about.subgroups[self.column]
        masks, total = _populated(groups, self.column), rows.weight.sum()
        return [
            WorstServed(
                rows.losses * np.where(mask, total / rows.weight[mask].sum(), 0.0)[:, None],
                tuple(
                    gap_constraint(
                        self.kind, f"{self.column}: {groups.labels[h]} - {groups.labels[g]}", rows.losses, rows.weight,
                        other, mask, 0.0,
                    )
                    for h, other in enumerate(masks)
                    if h != g
                ),
            )
            for g, mask in enumerate(masks)
        ]  # fmt: skip

    def refusal(self, found: Sum, least: float, labels: Sequence[Any]) -> str | None:
        """Never: nobody asked for these gaps."""
        return None

    def objective(self) -> str:
        """In words."""
        return f"mean reward of the worst-served {self.column}"


def _populated(groups: Subgroups, name: str) -> list[np.ndarray]:
    """Who is in every group; refuses groups of hardly anybody."""
    masks = groups.masks()
    for mask, label in zip(masks, groups.labels, strict=True):
        if mask.sum() < FEWEST:
            raise InputError(
                f"Group {label!r} of {name!r} has {int(mask.sum())} people of positive weight, too few to compare; "
                "join it to another."
            )
    return masks
