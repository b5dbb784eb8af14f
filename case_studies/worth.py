"""Shared code of studies of treatments that cost money: the price of a result, and trees as its worth moves.

``gained`` and ``paid`` are doubly robust rewards, a column per treatment: results a person (such as test points), and
dollars a person. A result is worth so many dollars; that is an assumption, so it is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from policytree import DRPolicyTree, PolicyTree, Study, cross_val_policy_value, policy_value
from policytree.evaluation.instruments.summary import anderson_rubin

FOLDS, REPEATS = 5, 3


@dataclass(frozen=True)
class Worths:
    """The worths of a result that a study looks at.

    Attributes
    ----------
    result : str
        The result with its article, such as "a point".
    moved : sequence of float
        Dollars a result, for the best trees on the rows that chose them.
    judged : sequence of float
        Those of them that are judged on people who did not choose; the middle one is drawn.
    smallest : int
        People of every treatment in a leaf.
    """

    result: str
    moved: Sequence[float]
    judged: Sequence[float]
    smallest: int

    def said(self, worth: float) -> str:
        """The assumption as the beginning of a sentence."""
        return f"{self.result[0].upper()}{self.result[1:]} is worth ${worth:g}"


def show_prices(
    study, gained: pd.DataFrame, paid: pd.DataFrame, steps: Iterable[tuple[str, str]], groups: pd.Series, words: str
) -> None:
    """Dollars per additional result, of one treatment over another, with Fieller's interval; ``words`` name results."""
    rows, codes = {}, np.unique(groups, return_inverse=True)[1]
    for arm, other in steps:
        more, dollars = (policy_value(arm, rewards, baseline=other, groups=groups) for rewards in (gained, paid))
        scores = [(rewards[arm] - rewards[other]).to_numpy() for rewards in (paid, gained)]
        low, high = anderson_rubin(*scores, {"groups": codes, "sample_weight": None, "level": 0.95})
        price = dollars.value / more.value if np.isfinite([low, high]).all() else np.nan
        rows[f"{arm} less {other}"] = {
            f"more {words}": more.value, "more, lower": more.lower, "more, upper": more.upper,
            "more paid": dollars.value, "a result": price, "lower": low, "upper": high,
        }  # fmt: skip
    study.table(pd.DataFrame(rows).T, "prices", digits=2)
    study.show("Intervals of prices are Fieller's; there is no price where no additional result is shown.")


def show_trees(study, data: Study, gained: pd.DataFrame, paid: pd.DataFrame, arms: Sequence[str], ask: Worths) -> None:
    """The best tree of depth two as the worth of a result moves, on the rows that chose it; shares of the arms."""
    rows, X = [], data.X
    for worth in ask.moved:
        study.step(f"best tree: {ask.said(worth)}")
        gains = worth * gained - paid
        tree = PolicyTree(max_depth=2, min_samples_per_treatment=ask.smallest).fit(
            X, gains, data.table[data.treatment.column]
        )
        shares = pd.Series(tree.predict(X)).value_counts(normalize=True)
        best = gains.mean().idxmax()
        rows.append({"worth": worth, **{arm: shares.get(arm, 0.0) for arm in arms}, "best for all": best})
        rows[-1]["tree - best (flattered)"] = tree.objective_value_ - gains.mean()[best]
        if worth in ask.judged:
            study.show(f"{ask.said(worth)} ({tree.status_.name.lower()}, gap {tree.optimality_gap_:g}):")
            study.show(tree.export_text() + "\n")
    study.show("Share of people per treatment under the best tree:")
    study.table(pd.DataFrame(rows), "shares", digits=3, index=False)


def show_values(
    study, data: Study, net: Callable[[float], pd.Series], ask: Worths, digits: int, title: str, **options
) -> None:
    """Held-out values of the tree and of one treatment for all, at some worths; ``net`` is the outcome in dollars."""
    rows, judged = [], ask.judged[1:2] if study.quick else ask.judged
    folds = {"cv": 2, "n_repeats": 1} if study.quick else {"cv": FOLDS, "n_repeats": REPEATS}
    for worth in judged:
        study.step(f"held-out values: {ask.said(worth)}")
        tree = DRPolicyTree(max_depth=2, min_samples_per_treatment=ask.smallest, random_state=0)
        dollars = data.replace(table=data.table.assign(**{data.outcome.column: net(worth)}))
        found = cross_val_policy_value(tree, dollars, random_state=0, **folds, **options)
        study.show(f"{ask.said(worth)}. {found.verdict}")
        shown = found.to_frame()[["value", "lower", "upper", "difference", "difference_lower", "difference_upper"]]
        study.table(shown, f"held_out_values_{worth:g}", digits=digits)
        gap = found.against_best
        study.show(gap.statement(digits) + "\n")
        if worth == ask.judged[1]:
            display = found.plot(title=f"{title}, {ask.result} ${worth:g}", xlabel="dollars")
            study.figure(display.figure_, "held_out_values")
        rows.append({"worth": worth, "best for all": gap.best, "tree - best": gap.value, "lower": gap.lower,
                     "upper": gap.upper})  # fmt: skip
    study.table(pd.DataFrame(rows), "against_best", digits=digits, index=False)
