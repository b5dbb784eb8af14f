"""Shared code of the parts called near_ties: the other trees that do as well on the same rows."""

from __future__ import annotations

import pandas as pd

from policytree.evaluation import near_ties


def show_near_ties(study, model, X, slack: float, without: list, unit: str, title: str, **options) -> None:
    """Count the trees within a slack, and show what they have in common: tables and a picture."""
    study.step(f"near-ties within {slack:g}")
    ties = near_ties(model, X, slack=slack, without=without, **options)
    study.show(f"{ties.to_text(unit=unit)}\n")
    if study.quick or ties.n_trees == 1:
        return
    study.show("The best tree's decision and the four farthest from it (differs: share whom they treat otherwise):")
    decisions = ties.decisions().assign(columns=lambda frame: frame["columns"].map(", ".join)).drop(columns="tree")
    farthest = decisions.iloc[1:].sort_values("differs", ascending=False, kind="stable").head(4)
    study.table(pd.concat([decisions.head(1), farthest]), "near_tie_decisions", digits=2)
    study.table(ties.without(), "without", digits=2)
    study.figure(ties.plot(title=title, unit=unit).figure_, "near_ties")


def show_slacks(study, model, X, slacks: tuple[float, ...], **options) -> None:
    """How many trees and decisions there are as the slack grows."""
    rows = {}
    for slack in slacks[: 2 if study.quick else None]:
        study.step(f"near-ties within {slack:g}")
        ties = near_ties(model, X, slack=slack, **options)
        rows[slack] = {
            "trees": ties.n_trees,
            "decisions": f"{ties.n_decisions:,}" + (" or more" if ties.truncated else ""),
            "leaves of the simplest": ties.simplest.n_leaves,
            "settled": f"{ties.settled_share:.0%}" + (" at most" if ties.truncated else ""),
        }
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("slack")
    frame.to_csv(study.results / "slacks.csv", lineterminator="\n")
    study.show(frame.to_string(formatters={"trees": "{:,}".format}))
    study.show()
