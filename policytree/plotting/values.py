"""Values of rules with their intervals: a forest plot."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from policytree.evaluation.policy_value.rule_names import POLICY
from policytree.plotting.common import BESIDE, LONGEST_NAME, PALETTE, REFERENCE, OneAxes, open_frame, row_names

TITLE = 70  # characters in a line over or under the picture
LETTERS = 9  # of an axis' label to an inch of a picture that has names beside it


class PolicyValueDisplay(OneAxes):
    """Held-out values of a policy and of everything else one could do, with their intervals.

    Parameters
    ----------
    table : PolicyValueTable or DataFrame
        From :func:`policytree.cross_val_policy_value`, or its ``to_frame()``.
        A frame of your own needs the columns value, lower, upper, and difference, ... for differences.
    direction : {"maximize", "minimize"}, optional
        Which way outcomes are better; the table's own.
    subject : str
        The rule whose differences from the others the table has.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree, cross_val_policy_value
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    >>> values = cross_val_policy_value(model, Y, T, X=X, propensity=0.5, cv=2, n_repeats=1, random_state=0)
    >>> display = values.plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()][-1]
    'policy tree'
    """

    def __init__(self, table: Any, direction: str | None = None, *, subject: str = POLICY):
        self.frame = table.to_frame() if hasattr(table, "to_frame") else table
        self.direction = direction or getattr(table, "direction", None)
        self.subject = subject

    def plot(
        self,
        *,
        ax: Any = None,
        differences: bool = False,
        title: str | None = None,
        xlabel: str | None = None,
        limits: tuple[float, float] | None = None,
        marked: str | None = None,
    ) -> PolicyValueDisplay:
        """Draw one line per rule.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        differences : bool, default False
            Draw the subject's value minus each other rule's (paired, so often more telling) instead of values.
        title, xlabel : str, optional
            Long ones are broken into lines; the label also says which way is better.
        limits : (least, largest), optional
            The outcome's range: intervals of values are cut to it, since no mean lies outside.
        marked : str, optional
            The rule that stands out, such as the one that a verdict recommends; by default the subject.

        Returns
        -------
        PolicyValueDisplay
        """
        marked = self.subject if marked is None else marked
        prefix = "difference" if differences else "value"
        ends = ["difference_lower", "difference_upper"] if differences else ["lower", "upper"]
        rows = self.frame[self.frame[prefix].notna()].iloc[::-1]
        names = [f"{self.subject.split()[-1]} - {rule}" if differences else str(rule) for rule in rows.index]
        names, room, height = row_names(names, LONGEST_NAME if ax is None else BESIDE)
        ax = self._use(ax, 6.4 + room, height)
        low, high = self._ends(rows, ends, None if differences else limits)
        colors = [PALETTE[4] if rule == marked else "#666666" for rule in rows.index]
        position = np.arange(len(rows))
        ax.hlines(position, low, high, colors=colors, linewidth=2)
        ax.scatter(rows[prefix], position, c=colors, s=28, zorder=3)
        ax.set_yticks(position, names, parse_math=False)
        reference = 0.0 if differences else self.frame["value"].get(marked, self.frame["value"].iloc[0])
        ax.axvline(reference, **REFERENCE)
        ax.margins(x=0.06, y=0.6 / max(len(rows), 1))  # no point on the frame
        label = self._label(xlabel or f"{'difference in ' * differences}held-out value", ax.figure.get_figwidth())
        ax.set_xlabel(label, parse_math=False)
        ax.set_title(textwrap.fill(title or "", TITLE), parse_math=False)
        open_frame(ax)
        return self

    def _ends(self, rows, ends: list[str], limits) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the intervals, cut to the outcome's range unless a value itself lies outside."""
        low, high = (rows[end].to_numpy(dtype=np.float64) for end in ends)
        if limits is None or not rows["value"].between(*limits).all():
            return low, high
        return low.clip(*limits), high.clip(*limits)

    def _label(self, text: str, width: float) -> str:
        """The axis' label in lines that fit under a figure of so many inches, and which way is better."""
        lines = textwrap.fill(text, max(20, min(TITLE, int(LETTERS * width))))
        if self.direction is None:
            return lines
        return f"{lines}\n" + ("better →" if self.direction == "maximize" else "← better")
