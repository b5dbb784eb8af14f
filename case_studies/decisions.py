"""Shared code of studies of decisions with stated costs: columns left out, held-out costs, errors by group.

A tree decides yes or no for everybody; a cost table says what each kind of mistake costs. Values for people who did not
choose the tree come from cross-fitting over five folds, repeated with other folds, with the variance "N + b" of
:func:`policytree.cross_val_policy_value`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from policytree import CostSensitiveTreeClassifier
from policytree.evaluation.estimates import Estimate, influence_estimate, mean_estimate, repeated_estimate
from policytree.problem.types import Status

FOLDS, REPEATS = 5, 5
RATES = {
    "false alarms": 0,
    "missed": 1,
}  # the true label among whose people a rate is taken; a mistake is the other one


@dataclass(frozen=True)
class Decisions:
    """A question of yes or no.

    Attributes
    ----------
    X : DataFrame of shape (n, p)
        Everything known beforehand.
    y : ndarray of shape (n,), int
        1 if what is feared happened.
    costs : mapping of (truth, decision) to float
        What each mistake costs a person; right decisions cost nothing.
    depth : int
    smallest : int
        Fewest people in a leaf.
    """

    X: pd.DataFrame
    y: np.ndarray
    costs: Mapping[tuple[int, int], float]
    depth: int
    smallest: int = 50

    def tree(self, without: tuple[str, ...] = ()) -> CostSensitiveTreeClassifier:
        """Exact tree that may not ask about some columns; not fitted."""
        allowed = [name for name in self.X if name not in without]
        options = {"max_depth": self.depth, "min_samples_leaf": self.smallest, "split_features": allowed}
        return CostSensitiveTreeClassifier(dict(self.costs), **options)

    def losses(self, decided: np.ndarray) -> np.ndarray:
        """Return the cost of everybody's decision, (n,)."""
        missed, alarm = self.costs[1, 0], self.costs[0, 1]
        return np.where(self.y == decided, 0.0, np.where(self.y == 1, missed, alarm))

    def folds(self, repetition: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows that learn and rows that judge, fold by fold."""
        drawn = StratifiedKFold(FOLDS, shuffle=True, random_state=repetition)
        return list(drawn.split(self.X, self.y))

    def held_out(self, without: tuple[str, ...] = (), repeats: int = REPEATS) -> np.ndarray:
        """Decisions for everybody by trees that have not seen them, (repeats, n)."""
        decided = np.empty((repeats, len(self.y)), dtype=np.int64)
        for repetition in range(repeats):
            for learn, judge in self.folds(repetition):
                tree = self.tree(without).fit(self.X.iloc[learn], self.y[learn])
                decided[repetition, judge] = tree.predict(self.X.iloc[judge])
        return decided

    def mean_cost(self, decided: np.ndarray) -> Estimate:
        """Mean cost per person of decisions (repeats, n)."""
        return repeated_estimate([mean_estimate(self.losses(d)) for d in decided], FOLDS)

    def gap(self, a: np.ndarray, b: np.ndarray) -> Estimate:
        """Mean cost of ``a`` less that of ``b``, paired, in any mixture of learnt (repeats, n) and fixed (1, n)."""
        pairs = zip(*np.broadcast_arrays(a, b), strict=True)
        return repeated_estimate([mean_estimate(self.losses(i) - self.losses(j)) for i, j in pairs], FOLDS)

    def rate(self, decided: np.ndarray, truth: int, group: np.ndarray) -> Estimate:
        """Share of mistakes among people of a group (mask) whose truth is so."""
        among = group & (self.y == truth)
        return repeated_estimate([_ratio(d != self.y, among) for d in decided], FOLDS)

    def rate_gap(self, decided: np.ndarray, truth: int, a: np.ndarray, b: np.ndarray) -> Estimate:
        """Rate of one group less that of another."""
        return repeated_estimate([self._rate_gap(d, truth, a, b) for d in decided], FOLDS)

    def rate_gap_change(self, first: np.ndarray, second: np.ndarray, truth: int, a: np.ndarray, b: np.ndarray):
        """Gap of rates under one rule less that under another, paired: both rules judge the same people."""
        pairs = zip(*np.broadcast_arrays(first, second), strict=True)
        parts = [[self._rate_gap(d, truth, a, b) for d in pair] for pair in pairs]
        return repeated_estimate([_difference(i, j) for i, j in parts], FOLDS)

    def _rate_gap(self, decided: np.ndarray, truth: int, a: np.ndarray, b: np.ndarray) -> Estimate:
        return _difference(*(_ratio(decided != self.y, g & (self.y == truth)) for g in (a, b)))

    def flagged(self, decided: np.ndarray, group: np.ndarray) -> Estimate:
        """Share of a group that gets a yes."""
        return repeated_estimate([_ratio(d == 1, group) for d in decided], FOLDS)


def _ratio(hit: np.ndarray, among: np.ndarray) -> Estimate:
    """Share of hits among some rows; its influence is zero elsewhere."""
    share = among.mean()
    value = float(hit[among].mean())
    return influence_estimate(value, among * (hit - value) / share)


def _difference(a: Estimate, b: Estimate) -> Estimate:
    """Of two estimates from the same rows."""
    return influence_estimate(a.value - b.value, a.influence - b.influence)


def triple(estimate: Estimate, name: str) -> dict[str, float]:
    """An estimate as three cells of a table."""
    return {name: estimate.value, f"{name} lower": estimate.lower, f"{name} upper": estimate.upper}


def show_people(
    study, task: Decisions, told: str, groups: Mapping[str, np.ndarray], happened: str, means: Mapping[str, pd.Series]
) -> None:
    """Who they are: what is told, and per group (mask) the people, the share to whom it happened, and medians or means.

    ``means`` names columns by their statistic, "mean ..." or "median ..."; ``happened`` names the share.
    """
    study.show(told)
    rows = {
        name: {"people": int(mask.sum()), happened: 100 * task.y[mask].mean()}
        | {label: column[mask].agg(label.partition(" ")[0]) for label, column in means.items()}
        for name, mask in groups.items()
    }
    study.table(pd.DataFrame.from_dict(rows, orient="index"), "people")


def show_tree(study, task: Decisions, without: tuple[str, ...], words: tuple[str, str], title: str, file: str) -> None:
    """Exact tree without some columns, its decisions in words (for 0 and 1), with its proof; a picture if named."""
    costs = {(words[truth], words[decision]): cost for (truth, decision), cost in task.costs.items()}
    tree = task.tree(without).set_params(costs=costs).fit(task.X, np.array(words)[task.y])
    study.show(f"{title}: {100 * tree.objective_value_:.2f} per 100 people, {tree.status_.name}")
    study.show(f"{tree.export_text()}\n")
    if file:
        study.figure(tree.plot(title=title, value_name="mean cost").figure_, file)


# --- what each exclusion costs ---


def exclusions(study, task: Decisions, without: Mapping[str, tuple[str, ...]], repeats: int) -> tuple:
    """Exact trees without some columns: what that costs on these rows, proved, and on others, with an interval.

    Returns
    -------
    table : DataFrame
        A row per exclusion; mean costs per 100 people.
    decided : dict of str to ndarray of shape (repeats, n)
        Held-out decisions of every exclusion, ``"nothing"`` too.
    """
    rows, decided = {}, {}
    for name, columns in {"nothing": (), **without}.items():
        study.step(f"left out: {name}")
        tree = task.tree(columns).fit(task.X, task.y)
        decided[name] = task.held_out(columns, repeats)
        full = rows["nothing"]["these people"] if rows else 100 * tree.objective_value_
        rows[name] = {"these people": 100 * tree.objective_value_, "proved": 100 * tree.objective_bound_,
                      "costs here": 100 * tree.objective_value_ - full,
                      "others": 100 * task.mean_cost(decided[name]).value}  # fmt: skip
        gap = task.gap(decided[name], decided["nothing"])
        shown = triple(gap, "costs others") if name != "nothing" else {}
        rows[name] |= {key: 100 * value for key, value in shown.items()}
        rows[name]["asks about"] = ", ".join(sorted(map(str, tree.get_used_features())))
    return pd.DataFrame.from_dict(rows, orient="index"), decided


def show_exclusions(study, task: Decisions, without: Mapping[str, tuple[str, ...]], unit: str) -> dict[str, np.ndarray]:
    """Show each exclusion's cost as a table and a picture; return held-out decisions of each, ``"nothing"`` too."""
    table, decided = exclusions(study, task, without, 2 if study.quick else REPEATS)
    study.table(table, "exclusions", digits=2)
    draw_exclusions(study, table, "exclusions", "What leaving columns out costs", f"{unit} per 100 people")
    return decided


def show_depths(study, task: Decisions, without: Mapping[str, tuple[str, ...]], depths: tuple[int, ...]) -> None:
    """Show each exclusion's cost per 100 people at other depths: exact trees on both sides of the difference."""
    rows = {}
    for depth in depths:
        study.step(f"exclusions at depth {depth}")
        deep = replace(task, depth=depth)
        trees = {name: deep.tree(columns).fit(deep.X, deep.y) for name, columns in {"": (), **without}.items()}
        full = trees[""].objective_value_
        rows[depth] = {
            "all columns": 100 * full,
            "proved": all(tree.status_ is Status.OPTIMAL for tree in trees.values()),
        }
        rows[depth] |= {f"without {name}": 100 * (trees[name].objective_value_ - full) for name in without}
    study.table(pd.DataFrame.from_dict(rows, orient="index").rename_axis("depth"), "depths", digits=2)


def draw_exclusions(study, table: pd.DataFrame, name: str, title: str, unit: str) -> None:
    """Cost of every exclusion: proved on these rows, and on others with its interval."""
    shown = table.iloc[1:][::-1]
    figure, ax = plt.subplots(figsize=(7.2, 1.2 + 0.45 * len(shown)), layout="constrained")
    at = np.arange(len(shown))
    value = shown["costs others"]
    error = [value - shown["costs others lower"], shown["costs others upper"] - value]
    ax.errorbar(value, at, xerr=error, fmt="o", color="#0072B2", capsize=3, label="other people, 95% interval")
    ax.plot(shown["costs here"], at, "D", color="#D55E00", markersize=9, fillstyle="none", label="these people, proved")
    ax.axvline(0.0, color="black", linewidth=0.7)
    ax.set(yticks=at, yticklabels=[f"without {label}" for label in shown.index], xlabel=unit, title=title)
    ax.set_ylim(-0.6, len(shown) - 0.4)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    study.figure(figure, name)


def show_values(study, task: Decisions, rules: Mapping[str, np.ndarray], first: str) -> None:
    """Mean cost per 100 people of every rule, held out, and that of the first one less it."""
    rows = {}
    for name, decided in rules.items():
        rows[name] = triple(task.mean_cost(decided), "cost")
        if name != first:
            rows[name] |= triple(task.gap(rules[first], decided), "tree - rule")
    study.table(100 * pd.DataFrame.from_dict(rows, orient="index"), "values", digits=2)


# --- errors by group ---


def rates_by_group(task: Decisions, rules: Mapping[str, np.ndarray], groups: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """False alarms among those who were safe and misses among the others, by rule and group, in per cent."""
    rows = []
    for rule, decided in rules.items():
        for group, mask in groups.items():
            row = {"rule": rule, "group": group, "people": int(mask.sum()), "base rate": 100 * task.y[mask].mean()}
            row |= {key: 100 * v for key, v in triple(task.flagged(decided, mask), "flagged").items()}
            for name, truth in RATES.items():
                row |= {key: 100 * v for key, v in triple(task.rate(decided, truth, mask), name).items()}
            rows.append(row)
    return pd.DataFrame(rows)


def rate_gaps(task: Decisions, rules: Mapping[str, np.ndarray], pairs: Mapping[str, tuple]) -> pd.DataFrame:
    """Differences of these rates between two groups, in percentage points, with intervals."""
    rows = []
    for rule, decided in rules.items():
        for pair, (a, b) in pairs.items():
            row = {"rule": rule, "groups": pair}
            for name, truth in RATES.items():
                row |= {key: 100 * v for key, v in triple(task.rate_gap(decided, truth, a, b), name).items()}
            rows.append(row)
    return pd.DataFrame(rows)


def rate_gap_changes(task: Decisions, rules: Mapping[str, np.ndarray], pairs: Mapping[str, tuple]) -> pd.DataFrame:
    """These differences under the first rule less those under every other one, with intervals."""
    rows, (first, *others) = [], rules
    for rule in others:
        for pair, (a, b) in pairs.items():
            row = {"first rule less": rule, "groups": pair}
            for name, truth in RATES.items():
                change = task.rate_gap_change(rules[first], rules[rule], truth, a, b)
                row |= {key: 100 * v for key, v in triple(change, name).items()}
            rows.append(row)
    return pd.DataFrame(rows)


def show_rate_gaps(study, task: Decisions, rules: Mapping[str, np.ndarray], pairs: Mapping[str, tuple]) -> None:
    """Both tables."""
    study.show("Differences, percentage points:")
    study.table(rate_gaps(task, rules, pairs), "rate_gaps", index=False)
    study.show(f"These differences under the first rule ({next(iter(rules))}) less those under the others:")
    study.table(rate_gap_changes(task, rules, pairs), "rate_gap_changes", index=False)


def show_rates(
    study,
    task: Decisions,
    rules: Mapping[str, np.ndarray],
    groups: Mapping[str, np.ndarray],
    pairs: Sequence[tuple[str, str]],
    title: str,
    labels: Mapping[str, str],
) -> None:
    """Error rates by group with intervals, their differences between pairs of groups, and a picture."""
    table = rates_by_group(task, rules, groups)
    study.table(table, "rates", index=False)
    show_rate_gaps(study, task, rules, {f"{a} - {b}": (groups[a], groups[b]) for a, b in pairs})
    draw_rates(study, table, "rates", title, labels)


def draw_rates(study, table: pd.DataFrame, name: str, title: str, labels: Mapping[str, str]) -> None:
    """Both rates by group, a colour per rule."""
    groups, rules = (list(dict.fromkeys(table[column])) for column in ("group", "rule"))
    figure, axes = plt.subplots(1, 2, figsize=(9, 1.4 + 0.5 * len(groups)), layout="constrained", sharey=True)
    colors = ("#0072B2", "#E69F00", "#009E73", "#999999")
    for ax, rate in zip(axes, RATES, strict=True):
        for k, rule in enumerate(rules):
            here = table[table["rule"] == rule].set_index("group").loc[groups]
            at = np.arange(len(groups))[::-1] - 0.16 * (k - (len(rules) - 1) / 2)
            error = [here[rate] - here[f"{rate} lower"], here[f"{rate} upper"] - here[rate]]
            ax.errorbar(here[rate], at, xerr=error, fmt="o", markersize=4, capsize=2, color=colors[k], label=rule)
        ax.set(title=labels[rate], xlabel="per cent, held out", yticks=np.arange(len(groups))[::-1], yticklabels=groups)
        ax.set_xlim(left=0)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(rules), frameon=False)
    figure.suptitle(title, fontsize=11)
    study.figure(figure, name)
