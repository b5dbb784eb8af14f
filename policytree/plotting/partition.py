"""A tree that asks about two numbers, as a map of their plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from policytree.data.features import CATEGORICAL
from policytree.plotting.common import OneAxes, arm_colors, arm_legend, ink, short_name
from policytree.trees.text import format_threshold
from policytree.trees.tree import Tree

SHOWN = (0.01, 0.99)  # of the rows: the farthest ones would squeeze the others
ROOM = 0.05  # beyond the outermost threshold
LEAST_NAMED = 0.12  # of the width: narrower fields do not take a name


def partition(tree: Tree, X: np.ndarray) -> dict[str, Any] | None:
    """Rectangles of a tree that asks about two numbers and nothing else; None for other trees.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, p)
        Encoded rows: how far the plane reaches.

    Returns
    -------
    dict or None
        names (of both axes), x and y (their ends), fields (list of [x0, x1, y0, y1, treatment]), actions.
    """
    used = [int(j) for j in tree.used_features]
    thresholds = tree.threshold[~tree.is_leaf]
    numeric = all(tree.features[j].kind != CATEGORICAL for j in used)
    if len(used) != 2 or not numeric or not np.isfinite(thresholds).all():
        return None
    ends = []
    for j in used:
        at = tree.threshold[tree.feature == j]
        low, high = np.nanquantile(X[:, j], SHOWN)
        room = ROOM * (max(high, at.max()) - min(low, at.min())) or 1.0
        ends.append([float(min(low, at.min() - room)), float(max(high, at.max() + room))])
    fields: list[list[Any]] = []

    def walk(node: int, box: tuple[float, float, float, float]) -> None:
        x0, x1, y0, y1 = box
        if tree.is_leaf[node]:
            fields.append([x0, x1, y0, y1, str(tree.actions[tree.action[node]])])
            return
        cut, across = float(tree.threshold[node]), int(tree.feature[node]) == used[0]
        left = (x0, min(x1, cut), y0, y1) if across else (x0, x1, y0, min(y1, cut))
        right = (max(x0, cut), x1, y0, y1) if across else (x0, x1, max(y0, cut), y1)
        walk(int(tree.children_left[node]), left)
        walk(int(tree.children_right[node]), right)

    walk(0, (ends[0][0], ends[0][1], ends[1][0], ends[1][1]))
    names = [tree.features[j].name for j in used]
    return {"names": names, "x": ends[0], "y": ends[1], "fields": fields, "actions": list(map(str, tree.actions))}


class PartitionDisplay(OneAxes):
    """The plane of a tree's two covariates, coloured by treatment.

    Parameters
    ----------
    data : mapping
        From ``partition``.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> X = [[1.0, 1.0], [1.0, 2.0], [2.0, 1.0], [2.0, 2.0]]
    >>> tree = PolicyTree(max_depth=2).fit(X, [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> tree.plot_partition(X).ax_.get_xlabel()
    'x0'
    """

    def __init__(self, data: Mapping[str, Any]):
        self.data = data

    def plot(
        self, *, ax: Any = None, title: str | None = None, treatment_colors: Mapping[Any, Any] | None = None
    ) -> PartitionDisplay:
        """Draw the fields; they end where 1 % of the rows lie beyond, or a little after the last threshold.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        title : str, optional
        treatment_colors : dict, optional
            Colour of each action label; a colour-blind-safe palette by default.
        """
        from matplotlib.patches import Rectangle

        data = self.data
        ax = self._use(ax, 5.6, 4.2)
        colors = arm_colors(data["actions"], treatment_colors)
        (left, right), (bottom, top) = data["x"], data["y"]
        for x0, x1, y0, y1, arm in data["fields"]:
            ax.add_patch(
                Rectangle((x0, y0), x1 - x0, y1 - y0, facecolor=colors[arm], edgecolor="#333333", linewidth=0.8)
            )
            if x1 - x0 > LEAST_NAMED * (right - left) and y1 - y0 > 0.06 * (top - bottom):
                ax.text((x0 + x1) / 2, (y0 + y1) / 2, short_name(arm, 18), ha="center", va="center", fontsize=9,
                        color=ink(colors[arm]), parse_math=False)  # fmt: skip
        ax.set_xlim(left, right)
        ax.set_ylim(bottom, top)
        ax.set_xlabel(short_name(data["names"][0], 60), parse_math=False)
        ax.set_ylabel(short_name(data["names"][1], 40), parse_math=False)
        for axis, at in ((ax.xaxis, 0), (ax.yaxis, 2)):
            ends = data["x" if at == 0 else "y"]
            cuts = sorted({float(f[k]) for f in data["fields"] for k in (at, at + 1)} - set(ends))
            axis.set_ticks(cuts, [format_threshold(cut) for cut in cuts])
        given = [arm for arm in data["actions"] if any(f[4] == arm for f in data["fields"])]
        arm_legend(ax.figure, {arm: colors[arm] for arm in given}, loc="outside lower center")
        if title:
            ax.set_title(title, fontsize=10, wrap=True, parse_math=False)
        return self
