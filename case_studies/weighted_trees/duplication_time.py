"""Fig. 1: what weights cost, when q % of the rows weigh two: directly, or by rows that stand twice."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from weighted_trees import peers
from weighted_trees.data import binary, reference
from weighted_trees.fitting import COLORS, SECONDS, timed

from policytree import OptimalTreeClassifier

SHARES = (0, 10, 25, 50, 75, 100)
REAL = "log-normal"
DEPTH = 3
REPEATS = 5  # the fastest counts
PEER_LIMIT = 8
FACTOR = 100  # a row of the largest log-normal weight stands this often
OURS = ("direct", "duplication", "direct, rows repeated")
PEER = ("DL8.5, weights", "DL8.5, rows repeated")


def show(study, sets) -> None:
    """Time every way of taking weights on columns guessed once per data set."""
    study.heading(f"1. Fig. 1: seconds when q % of the rows weigh two (depth {DEPTH}, no price of a leaf)")
    study.show(
        "The same 0/1 columns for all, guessed by 30 boosted trees of depth 2; DL8.5 takes no price of a leaf.\n"
        f"{SECONDS}"
    )
    tables = []
    for data in sets:
        study.step(f"Fig. 1: {data.name}")
        tables.append(one_data_set(data, (0, 50) if study.quick else SHARES))
    table = pd.concat(tables)
    study.show(f"Errors, weighted; the same from every solver that took the weights as they are: {same_errors(table)}")
    wide = table.pivot(index=["data", "columns", "q"], columns="method", values="seconds")
    wide = wide.reindex(index=pd.MultiIndex.from_frame(table[["data", "columns", "q"]].drop_duplicates()))
    wide = wide[[name for name in OURS + PEER if name in wide]]
    study.table(wide, "fig1", digits=4)
    show_prices(study, wide)
    draw(study, wide)


def one_data_set(data, shares) -> pd.DataFrame:
    """Seconds and weighted errors of every method at every share."""
    guess = OptimalTreeClassifier(max_depth=1, guesses=reference(30, 2)).fit(data.X, data.y).guesses_
    X = binary(data.X, guess.thresholds)
    order = np.random.default_rng(0).permutation(len(X))
    rows, asked = [], []
    for q in (*shares, REAL):
        weight = np.random.default_rng(7).lognormal(size=len(X))
        if q != REAL:
            weight = np.where(np.argsort(order) < len(X) * q / 100, 2.0, 1.0)
        copies = np.repeat(np.arange(len(X)), np.maximum(1, np.rint(weight)).astype(int))
        if q == REAL:
            copies = np.repeat(np.arange(len(X)), np.floor(FACTOR * weight / weight.max() + 0.5).astype(int))
        common = {"data": data.name, "columns": X.shape[1], "q": str(q)}
        for method in OURS:
            rows.append({**common, "method": method, **ours(method, X, data.y, weight, copies)})
        for method in PEER:
            given = {"weight": weight} if method == PEER[0] else {"rows": copies}
            asked.append(({**common, "method": method}, peers.Fit("DL8.5", X, data.y, DEPTH, PEER_LIMIT, **given)))
    if peers.installed("DL8.5"):
        answers = peers.run([fit for _, fit in asked])
        for (names, fit), answer in zip(asked, answers, strict=True):
            errors = np.nan
            if answer.proved and (fit.weight is not None or names["q"] != REAL):
                weight = fit.weight if fit.weight is not None else np.bincount(fit.rows, minlength=len(X))
                errors = float(weight[answer.predicted != data.y].sum())
            rows.append({**names, "seconds": answer.seconds, "errors": errors})
    return pd.DataFrame(rows)


def ours(method, X, y, weight, copies, repeats=REPEATS) -> dict:
    """Fastest of some fits, and the weighted errors (of the tree that was asked for)."""
    X = X.astype(float)
    given = (X[copies], y[copies]) if method == OURS[2] else (X, y)
    weights = None if method == OURS[2] else weight
    options = {"solver": "duplication", "solver_options": {"factor": FACTOR}} if method == OURS[1] else {}
    model = OptimalTreeClassifier(DEPTH, 0.0, **options)
    seconds = min(timed(model, *given, sample_weight=weights) for _ in range(repeats))
    exact = method == OURS[0] or set(np.unique(weight)) <= {1.0, 2.0}
    return {"seconds": seconds, "errors": float(weight[model.predict(X) != y].sum()) if exact else np.nan}


def same_errors(table: pd.DataFrame) -> str:
    """Whether all methods agree, by data and q."""
    spread = table.groupby(["data", "q"])["errors"].agg(lambda e: (e.max() - e.min()) / e.max())
    return "yes" if (spread < 1e-6).all() else f"no, they differ by up to {spread.max():.2%}"


def show_prices(study, wide: pd.DataFrame) -> None:
    """Show the cost of weights, as ratios within this run."""
    study.show("Seconds at q = 50 and with log-normal weights, as multiples of q = 0:")
    base = wide.xs("0", level="q")
    rows = []
    for q in ("50", REAL):
        ratio = (wide.xs(q, level="q") / base).droplevel("columns")
        rows.append(ratio.assign(q=q).set_index("q", append=True))
    study.table(pd.concat(rows), "fig1_prices", digits=2)
    if PEER[0] in wide:
        faster = (wide[PEER[0]] / wide[OURS[0]]).xs(REAL, level="q").droplevel("columns")
        told = ", ".join(f"{name} {value:,.0f}" for name, value in faster.items())
        study.show(f"DL8.5's seconds as multiples of the direct solver's, both with log-normal weights: {told}\n")


def draw(study, wide: pd.DataFrame) -> None:
    """One panel per data set."""
    names = list(dict.fromkeys(wide.index.get_level_values("data")))
    figure, axes = plt.subplots(
        1, len(names), figsize=(3.0 * len(names), 3.4), layout="constrained", squeeze=False, sharey=True
    )
    styles = {OURS[0]: "-", OURS[1]: "-", OURS[2]: "--", PEER[0]: "-", PEER[1]: "--"}
    tones = {OURS[0]: "direct", OURS[1]: "duplication", OURS[2]: "duplication", PEER[0]: "DL8.5", PEER[1]: "DL8.5"}
    for ax, name in zip(axes[0], names, strict=True):
        part = wide.xs(name, level="data").droplevel("columns")
        q = [float(v) for v in part.index if v != REAL]
        for method in part:
            seconds = part[method].to_numpy()
            line = {"color": COLORS[tones[method]], "marker": "o", "markersize": 4}
            ax.plot(q, seconds[:-1], styles[method], label=method, **line)
            ax.plot([125], seconds[-1:], **line)
        ax.axvline(112, color="#DDDDDD", linewidth=1)
        ax.set(yscale="log", xlabel="q, % of rows that weigh two", title=name)
        ax.set_xticks([0, 50, 100, 125], ["0", "50", "100", "real\nweights"])
    axes[0, 0].yaxis.set_major_formatter("{x:g}")
    axes[0, 0].set_ylabel("seconds")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    study.figure(figure, "fig1")
