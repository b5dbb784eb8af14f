"""Seconds to the proof as rows, features and trees grow."""

from __future__ import annotations

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from born_again import data
from sklearn.ensemble import RandomForestClassifier

from policytree import BornAgainTree
from policytree.exceptions import InputError, SearchWarning

LIMIT = 6.0  # seconds


def main(study) -> None:
    """A table and a picture."""
    study.heading("Processor seconds to least depth, forests of depth three")
    study.show(
        f"Ten trees unless said; the first rows of a shuffled table; the first features. '>' where {LIMIT:g} s were"
    )
    study.show("not enough for a proof.\n")
    rows = []
    for name in data.names(study):
        study.step(f"times: {name}")
        X, y, _ = data.table(study, name)
        order = np.random.default_rng(0).permutation(len(X))
        X, y = X.iloc[order], y.iloc[order]
        for size in (100, 200, 500, 1000, 5000, 15000):
            if size <= len(X):
                rows.append((name, "rows", size, *seconds(X[:size], y[:size], 10)))
        for size in range(2, X.shape[1] + 1, 3):
            rows.append((name, "features", size, *seconds(X.iloc[:, :size], y, 10)))
        for size in (3, 5, 7, 10) if study.quick else (3, 5, 7, 10, 15, 20):
            rows.append((name, "trees", size, *seconds(X, y, size)))
            if not rows[-1][-1]:
                break
    frame = pd.DataFrame(rows, columns=["data", "against", "size", "seconds", "proved"])
    frame.to_csv(study.results / "times.csv", index=False, float_format="%.10g", lineterminator="\n")
    for what, part in frame.groupby("against", sort=False):
        shown = part.assign(text=[f"{'' if p else '>'}{s:.3g}" for s, p in zip(part.seconds, part.proved, strict=True)])
        study.show(f"{what}\n{shown.pivot(index='data', columns='size', values='text').fillna('').to_string()}\n")
    study.figure(picture(frame), "times")


def seconds(X, y, n_trees: int) -> tuple[float, bool]:
    """Processor seconds, and whether the tree was proved smallest."""
    forest = RandomForestClassifier(n_trees, max_depth=3, random_state=0).fit(X, y)
    tree = BornAgainTree(forest, time_limit=LIMIT)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        try:
            proved = tree.fit().status_.proved
        except InputError:  # no faithful tree in twice the time
            proved = False
    return time.process_time() - start, proved


def picture(frame: pd.DataFrame):
    """Three panels; open marks where there was no proof."""
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
    for ax, (what, part) in zip(axes, frame.groupby("against", sort=False), strict=True):
        for k, (name, one) in enumerate(part.groupby("data", sort=False)):
            ax.plot(one["size"], one.seconds, color=f"C{k}", label=name)
            proved = one.proved.to_numpy(dtype=bool)
            ax.scatter(one["size"][proved], one.seconds[proved], color=f"C{k}", s=14)
            ax.scatter(
                one["size"][~proved], one.seconds[~proved], facecolors="white", edgecolors=f"C{k}", s=20, zorder=3
            )
        ax.set_yscale("log")
        ax.set_xscale("log" if what == "rows" else "linear")
        ax.set_xlabel(what)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("processor seconds")
    figure.legend(*axes[2].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8)
    return figure
