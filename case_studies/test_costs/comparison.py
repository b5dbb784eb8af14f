"""All algorithms on all tables: ROC AUC, expected cost and size on held-out rows, and mean ranks."""

from __future__ import annotations

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from test_costs import data

from policytree import LowCostTreeClassifier, choose_complexity_weight

REGULARIZED = ("EC4.5", "ECART", "pEC4.5", "pECART")
OTHERS = ("ASR", "IP", "BAL", "C4.5", "CART", "CC4.5", "CCART", "pC4.5", "pCART")
ALGORITHMS = (*REGULARIZED, *OTHERS)
WEIGHTS = (100.0, 10.0, 1.0, 0.0)  # lambda, from the largest down
SPLITS, FOLDS = 5, 3  # folds of the cross-validation that chooses how much to prune
LEVEL = 0.05
SIDES = ((4, 2), (4, -2), (-4, 2), (-4, -2), (4, 10), (-4, 10), (4, -10), (-4, -10))  # of a point, in points of type


def area(y: np.ndarray, shares: np.ndarray) -> float:
    """ROC AUC; with several classes the mean over pairs of classes that occur (Hand and Till 2001)."""
    present = np.unique(y)
    found = []
    for a in present:
        for b in present:
            rows = (y == a) | (y == b)
            if a != b and a < shares.shape[1]:
                found.append(roc_auc_score(y[rows] == a, shares[rows, a]))
    return float(np.mean(found)) if found else np.nan


def fit_all(arguments: dict, X, y, X_choice, y_choice) -> dict[str, LowCostTreeClassifier]:
    """All algorithms; the weight of the regularized ones is chosen by the paper's rule, before pruning."""
    out = {}
    for name in ALGORITHMS:
        plain = name.removeprefix("p")
        if name in ("EC4.5", "ECART"):
            model = LowCostTreeClassifier.named(name, **arguments)
            out[name] = choose_complexity_weight(model, X, y, X_choice, y_choice, weights=WEIGHTS).estimator
        elif name.startswith("CC") and len(np.unique(arguments["feature_costs"])) == 1:
            out[name] = out[name[1:]]  # divided by one price, nothing changes
        elif name in REGULARIZED:
            weight = out[plain].complexity_weight
            out[name] = LowCostTreeClassifier.named(name, **arguments, complexity_weight=weight).fit(X, y)
        else:
            out[name] = LowCostTreeClassifier.named(name, **arguments).fit(X, y)
    return out


def prices(n_tests: int, costs: str, seed: int) -> np.ndarray:
    """Costs of 1, or drawn from 1 to 10."""
    return np.ones(n_tests) if costs == "unit" else np.random.default_rng(seed).integers(1, 11, n_tests)


def smallest_leaf(n_rows: int) -> float:
    """The paper's theta; small tables may have leaves of two rows."""
    return max(0.005, 2 / n_rows)


def measures(tree: LowCostTreeClassifier, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Measure a tree on held-out rows."""
    return {"AUC": area(y, tree.predict_proba(X)), "expected_cost": tree.measurement_cost(X).mean(),
            "nodes": tree.tree_.node_count}  # fmt: skip


def one_split(table: data.Table, costs: str, seed: int) -> list[dict]:
    """All algorithms on one split."""
    train, choose, judge = data.split(table.y, seed)
    tests = data.Tests(table.X.iloc[train])
    X = [tests(table.X.iloc[rows]).to_numpy() for rows in (train, choose, judge)]
    arguments = {
        "feature_costs": prices(len(tests.names), costs, seed),
        "min_probability": smallest_leaf(len(train)),
        "random_state": seed,
        "cv": FOLDS,
    }
    out = []
    for name, tree in fit_all(arguments, X[0], table.y[train], X[1], table.y[choose]).items():
        out.append(
            {
                "table": table.name, "costs": costs, "seed": seed, "algorithm": name,
                **measures(tree, X[2], table.y[judge]),
            }
        )  # fmt: skip
    return out


def ranks(means: pd.DataFrame, measure: str, *, largest_first: bool) -> pd.Series:
    """Mean rank of every algorithm over the tables; 1 is best."""
    wide = means.pivot(index="table", columns="algorithm", values=measure).round(9)
    return wide.rank(axis=1, ascending=not largest_first).mean()


def critical_difference(algorithms: int, tables: int) -> float:
    """Bonferroni-Dunn: mean ranks further apart than this differ at the level, for one control against all others."""
    z = norm.ppf(1 - LEVEL / (2 * (algorithms - 1)))
    return float(z * np.sqrt(algorithms * (algorithms + 1) / (6 * tables)))


def show(study, most_rows: int | None, prefix: str = "") -> None:
    """Run, and print means and ranks; names of tables and of the picture begin with the prefix."""
    sets = data.tables(study, most_rows)
    found = []
    for table in sets:
        study.step(f"{table.name}: {len(table.X):,} rows")
        seeds = range(2 if study.quick else SPLITS)
        work = [delayed(one_split)(table, costs, seed) for costs in ("unit", "random") for seed in seeds]
        found += [row for rows in Parallel(n_jobs=-1)(work) for row in rows]
    each = pd.DataFrame(found)
    means = each.groupby(["table", "costs", "algorithm"], as_index=False)[["AUC", "expected_cost", "nodes"]].mean()
    means.to_csv(study.results / f"{prefix}tables.csv", index=False, float_format="%.6g", lineterminator="\n")
    distance = critical_difference(len(ALGORITHMS), len(sets))
    study.show(f"{len(sets)} tables, {len(ALGORITHMS)} algorithms, {each['seed'].nunique()} splits; held-out rows")
    study.show(f"critical difference of mean ranks (Bonferroni-Dunn, level {LEVEL}): {distance:.2f}\n")
    summary = {}
    for costs, part in means.groupby("costs", sort=False):
        study.heading(f"{costs.capitalize()} costs")
        table = summary[costs] = rank_table(part)
        study.table(table, f"{prefix}ranks_{costs}", digits=3)
    figure(study, summary, distance, f"{prefix}ranks")


def rank_table(means: pd.DataFrame) -> pd.DataFrame:
    """Mean ranks, mean AUC, and cost and size relative to C4.5 (medians over the tables)."""
    measures = ("AUC", "expected_cost", "nodes")
    wide = {measure: means.pivot(index="table", columns="algorithm", values=measure) for measure in measures}
    ratio = {measure: values.div(values["C4.5"], axis=0).median() for measure, values in wide.items()}
    out = pd.DataFrame(
        {
            "rank by AUC": ranks(means, "AUC", largest_first=True),
            "rank by cost": ranks(means, "expected_cost", largest_first=False),
            "mean AUC": wide["AUC"].mean(),
            "cost / C4.5": ratio["expected_cost"],
            "nodes / C4.5": ratio["nodes"],
        }
    )
    return out.loc[list(ALGORITHMS)]


def figure(study, summary: dict, distance: float, name: str) -> None:
    """Mean ranks of AUC against those of cost; what lies in a band is not distinguished from pEC4.5."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, len(summary), figsize=(5.2 * len(summary), 4.6), squeeze=False)
    for ax, (costs, table) in zip(axes[0], summary.items(), strict=True):
        x, y = table["rank by cost"], table["rank by AUC"]
        ax.axvspan(x["pEC4.5"] - distance, x["pEC4.5"] + distance, color="#56B4E9", alpha=0.12, lw=0)
        ax.axhspan(y["pEC4.5"] - distance, y["pEC4.5"] + distance, color="#E69F00", alpha=0.12, lw=0)
        ax.scatter(x, y, s=24, color=["#D55E00" if name in REGULARIZED else "#444444" for name in table.index])
        ax.set(title=f"{costs} costs", xlabel="mean rank by expected cost (1: cheapest)",
               ylabel="mean rank by ROC AUC (1: best)")  # fmt: skip
        ax.set_xlim(len(table) + 0.5, 0.5)
        ax.invert_yaxis()
    fig.tight_layout()
    for ax, table in zip(axes[0], summary.values(), strict=True):  # when the frames stand where they will stay
        label(ax, table["rank by cost"], table["rank by AUC"])
    study.figure(fig, name)


def label(ax, x: pd.Series, y: pd.Series) -> None:
    """A name beside every point, on the first side where it meets no other name, no point and not the frame."""
    same = pd.Series(x.index, x.index).groupby([x.round(6), y.round(6)]).agg([", ".join, "first"])
    points = ax.transData.transform(np.column_stack([x, y]))
    taken: list = []
    for text, name in zip(same["join"], same["first"], strict=True):  # points that coincide share a name
        found = []
        for across, up in SIDES:
            sides = {"ha": "left" if across > 0 else "right", "va": "bottom" if up > 0 else "top"}
            at = {"xytext": (across, up), "textcoords": "offset points", "fontsize": 8}
            written = ax.annotate(text, (x[name], y[name]), **at, **sides)
            box = written.get_window_extent()
            met = sum(box.overlaps(other) for other in taken) + box.count_contains(points)
            met += ax.bbox.count_contains(box.corners()) < len(box.corners())
            found.append((met, written, box))
            if not met:
                break
        best = min(found, key=lambda each: each[0])
        for each in found:
            if each is not best:
                each[1].remove()
        taken.append(best[2])
