"""Pictures of near-ties: the features they ask about, and the people they treat alike."""

from __future__ import annotations

import numpy as np

from policytree.common.validation import check_count
from policytree.evaluation.stability.rashomon_tables import NearTies
from policytree.plotting.common import draw_people, open_frame, room_for_names, short_name

MOST_COLUMNS = 12
NEEDED, ASKED = "#08519c", "#9ecae1"


class NearTiesDisplay:
    """Columns that near-ties ask about, and the treatments that they give to people.

    Parameters
    ----------
    ties : NearTies
        From :func:`policytree.evaluation.near_ties`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> from policytree.evaluation import near_ties
    >>> X, y = [[1, 0], [2, 0], [3, 1], [4, 1]], [0, 0, 1, 0]
    >>> ties = near_ties(OptimalTreeClassifier(max_depth=1, regularization=0.0), X, y, slack=0.0)
    >>> display = ties.plot()
    >>> len(display.figure_.axes)
    3
    """

    def __init__(self, ties: NearTies):
        self.ties = ties

    def plot(self, *, title: str | None = None, n_columns: int = MOST_COLUMNS, unit: str = "people") -> NearTiesDisplay:
        """Draw two pictures on a new figure.

        Left: share of the listed near-ties that ask about a column, and of the different decisions that cannot be
        expressed without it. Right: share of these decisions that give each person each treatment, people sorted; who
        has one treatment in all of them is settled.

        Parameters
        ----------
        title : str, optional
        n_columns : int
            Most columns to show, those asked about most.
        unit : str, default "people"
            Name of the rows, in the plural.

        Returns
        -------
        NearTiesDisplay

        Raises
        ------
        InputError
            If ``n_columns`` is no whole number of at least 1.
        """
        check_count(n_columns, "n_columns", 1)
        import matplotlib.pyplot as plt

        frame = self.ties.variables().head(n_columns)
        frame = frame[frame["trees"] > 0]
        height = 1.9 + max(0.42 * len(frame), 0.45 * len(self.ties.trees.actions), 1.2)
        width = 10.4 + room_for_names(frame.index) + room_for_names(self.ties.trees.actions)
        self.figure_, self.axes_ = plt.subplots(1, 2, figsize=(width, height), layout="constrained")
        self._columns(self.axes_[0], frame)
        image = self._people(self.axes_[1], unit)
        self.figure_.colorbar(image, ax=self.axes_[1], label="share of decisions")
        if title:
            self.figure_.suptitle(title, fontsize=11)
        return self

    def _columns(self, ax, frame) -> None:
        """A pair of bars for each column; the best tree's columns are marked."""
        at = np.arange(len(frame))
        for by, name, color, label in (
            (-0.2, "trees", ASKED, "trees that ask about it"),
            (0.2, "decisions", NEEDED, "decisions that need it"),
        ):
            bars = ax.barh(at + by, frame[name], height=0.36, color=color, label=label)
            ax.bar_label(bars, [_percent(share) for share in frame[name]], padding=2, fontsize=7)
        names = [f"{short_name(name)} *" if best else short_name(name) for name, best in frame["best"].items()]
        ax.set_yticks(at, names, parse_math=False)
        ax.set_ylim(max(len(frame), 1) - 0.5, -0.5)
        ax.set_xlim(0.0, 1.12)
        ax.set_xticks(np.linspace(0.0, 1.0, 6))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        least = "" if self.ties.complete else "at least "
        listed = f", the best {len(self.ties.trees):,} shown" if self.ties.truncated else ""
        ax.set_title(f"{least}{self.ties.n_trees:,} near-ties{listed}", fontsize=10)
        ax.set_xlabel("share (* asked about by the best tree)")
        open_frame(ax)
        if not len(frame):
            ax.text(0.5, 0.0, "they ask nothing", ha="center", va="center")
            return
        bars = ax.get_legend_handles_labels()
        self.figure_.legend(*bars, loc="outside lower left", ncols=2, frameon=False, fontsize=9)

    def _people(self, ax, unit: str):
        """People by the shares of decisions that give them each treatment."""
        ties = self.ties
        decisions = "decision" if ties.n_decisions == 1 else "different decisions"
        title = f"{ties.n_decisions:,} {decisions}: {ties.settled_share:.0%} of {unit} settled"
        return draw_people(ax, ties.arm_shares(), unit, title)


def _percent(share: float) -> str:
    """A share in whole percent, small ones not as zero and large ones not as all."""
    rounded = min(max(round(100 * share), 1), 99) if 0 < share < 1 else round(100 * share)
    return f"{rounded}%"
