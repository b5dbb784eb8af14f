"""Pictures of treatment regimes: the trees of all decisions one under another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policytree.exceptions import InputError
from policytree.plotting.common import OneAxes, arm_colors, broken_title
from policytree.plotting.trees import PolicyTreeDisplay, TreeLayout, fitting, in_inches, size_of, tree_axes
from policytree.regimes.checking import check_stages
from policytree.regimes.course import Course
from policytree.regimes.eligibility import eligible_text
from policytree.regimes.stages import Stage
from policytree.trees.tree import Tree
from policytree.weighting.study_data import WEIGHT

HEADING = 1.35  # height of a line of a heading, in its letters' size
BELOW_HEADING, BETWEEN = 0.14, 0.34  # inches
LEAST_WIDTH = 3.2  # inches of a picture, so that headings take few lines


@dataclass(frozen=True, slots=True, eq=False)
class _Page:
    """Headings and trees of all stages, measured; tops in inches below the upper edge."""

    headings: list[str]
    layouts: list[TreeLayout]
    tops: list[float]
    heading_tops: list[float]
    width: float
    height: float


class RegimeDisplay(OneAxes):
    """A picture of a treatment regime: a tree for every decision, in the order of time.

    Parameters
    ----------
    trees : sequence of (str, Tree)
        Name and tree of every stage.
    eligible : sequence of str, optional
        Who is eligible at every stage, as headings say it.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    boxes_ : dict of str to dict of int to matplotlib Text
        By stage, the drawn box of every node.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.plotting.regimes import RegimeDisplay
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards).tree_
    >>> display = RegimeDisplay([("month 1", tree), ("month 2", tree)]).plot(title="Two decisions")
    >>> list(display.boxes_)
    ['month 1', 'month 2']
    """

    def __init__(self, trees: Sequence[tuple[str, Tree]], eligible: Sequence[str] = ()):
        self.trees = list(trees)
        self.eligible = list(eligible) or [""] * len(self.trees)
        if len(self.eligible) != len(self.trees):
            raise InputError(
                f"eligible has {len(self.eligible)} texts, but there are {len(self.trees)} stages; give one for each."
            )

    @classmethod
    def from_estimator(
        cls,
        regime: Any,
        *,
        stages: Sequence[Stage] | None = None,
        given: Mapping[str, str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> RegimeDisplay:
        """Draw a fitted regime.

        Parameters
        ----------
        regime : fitted TreatmentRegime
        stages : list of Stage, optional
            The stages of ``fit``: thresholds are then as short as these people allow.
        given : mapping of str to str, optional
            By the name of a stage, what its people have in common, such as ``{"second line": "no response"}``; by
            default what tells them apart in the history, as far as one column does.
        ax : matplotlib Axes, optional
        **options
            Arguments of :meth:`plot`.
        """
        course = None if stages is None else check_stages(stages, missing_outcome=WEIGHT)
        return cls(*regime_to_show(regime, course, given)).plot(ax=ax, **options)

    def plot(
        self,
        *,
        ax: Any = None,
        title: str | None = None,
        treatment_colors: Mapping[Any, Any] | None = None,
        fontsize: float = 9.0,
        unit: str = "people",
    ) -> RegimeDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; text shrinks until all trees fit. By default a new figure of the right size.
        title : str or Verdict, optional
            Broken into lines that fit.
        treatment_colors : dict, optional
            Colour of each treatment, the same at all stages; a colour-blind-safe palette by default.
        fontsize : float, default 9
            Points.
        unit : str, default "people"
            Name of the rows, in the plural.

        Returns
        -------
        RegimeDisplay
        """
        arms = list(dict.fromkeys(arm for _, tree in self.trees for arm in tree.actions))
        colors = arm_colors(arms, treatment_colors)
        drawn = [PolicyTreeDisplay(tree) for _, tree in self.trees]
        page, fontsize = fitting(lambda size: self._page(drawn, size, unit), ax, fontsize)
        width = page.width
        if ax is None:
            trees = [tree for _, tree in self.trees]
            ax, title, width = tree_axes(trees, colors, (page.width, page.height), title, fontsize)
        elif title:
            title = broken_title(title, size_of(ax)[0], fontsize + 2)[0]
        if title:
            ax.set_title(str(title), fontsize=fontsize + 2, parse_math=False)
        in_inches(ax, width, page.height)
        self.boxes_ = {}
        parts = zip(self.trees, drawn, page.layouts, page.tops, page.headings, page.heading_tops, strict=True)
        for s, ((name, _), display, layout, top, heading, above) in enumerate(parts):
            if s:
                ax.axhline(-above + BETWEEN / 2, color="#BBBBBB", linewidth=0.8, zorder=0)
            ax.text(
                0.0, -above, heading, ha="left", va="top", fontsize=fontsize + 1, fontweight="bold", parse_math=False
            )
            corner = ((width - layout.width) / 2, -top)
            self.boxes_[name] = display.draw(ax, layout, corner, colors, fontsize)
        self._use(ax)
        return self

    def _page(self, drawn: Sequence[PolicyTreeDisplay], fontsize: float, unit: str) -> _Page:
        """Measure headings and trees."""
        layouts = [display.laid_out(fontsize, unit) for display in drawn]
        width = max(LEAST_WIDTH, *(layout.width for layout in layouts))
        said = [f"{name}: {who}" if who else name for (name, _), who in zip(self.trees, self.eligible, strict=True)]
        headings = [broken_title(text, width, (fontsize + 1) * 1.1) for text in said]  # bold letters are wider
        width = max(width, *(wide for _, wide in headings))
        top, tops, heading_tops = 0.0, [], []
        for (text, _), layout in zip(headings, layouts, strict=True):
            heading_tops.append(top)
            top += HEADING * (text.count("\n") + 1) * (fontsize + 1) / 72 + BELOW_HEADING
            tops.append(top)
            top += layout.height + BETWEEN
        return _Page([text for text, _ in headings], layouts, tops, heading_tops, width, top - BETWEEN)


def regime_to_show(
    regime: Any,
    course: Course | None = None,
    given: Mapping[str, str] | None = None,
) -> tuple[list[tuple[str, Tree]], list[str]]:
    """Names and trees of a fitted regime, and who is eligible at every stage.

    Parameters
    ----------
    course : Course, optional
        Of the fit: thresholds are then as short as these people allow.
    given : mapping of str to str, optional
        By the name of a stage, what its people have in common.

    Raises
    ------
    InputError
        If ``given`` names a stage that there is not.
    """
    trees = regime.trees_ if course is None else regime.short_trees(course)
    for name in given or {}:
        if name not in regime.stage_names_:
            raise InputError(f"given names the stage {name!r}; stages are {', '.join(regime.stage_names_)}.")
    common = dict(zip(regime.stage_names_, regime.eligibility_, strict=True)) | dict(given or {})
    counts = [(int(tree.n_node_samples[0]), len(regime.scores_)) for _, tree in trees]
    return trees, [eligible_text(n, of, common[name]) for (name, _), (n, of) in zip(trees, counts, strict=True)]
