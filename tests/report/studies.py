"""Studies for reports: one with names that would break a page if they could."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from policytree import DRPolicyTree, StudyReport, cross_val_policy_value, heterogeneity_test, honest_leaf_summary
from policytree.data.features import shown
from policytree.report.content import Table
from policytree.report.described import About

EVIL = "<script>window.hit = 1</script>"
ARABIC = "العمر بالسنوات"
CONTROL = "a\x1b[31mb\u202ec\x07"
LONG = "L" * 700 + " and so on" * 8
ARMS = ("<img src=x onerror='window.hit=1'>", 'B & "quotes"', "שלום", "$\\frac{}$")


def hostile_frame(n: int = 500) -> tuple[pd.DataFrame, np.ndarray, pd.Series]:
    """Covariates, treatments and outcome; the best rule asks about the Arabic, the control and the long column."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            EVIL: rng.normal(size=n).round(1),
            ARABIC: rng.integers(20, 80, n).astype(float),
            CONTROL: rng.choice(['x"y', "</details><b>", "-->"], n),
            LONG: rng.normal(size=n),
        }
    )
    X.loc[::9, ARABIC] = np.nan
    T = rng.choice(np.array(ARMS, dtype=object), n)
    gain = np.where(X[ARABIC].fillna(0) < 50, 2.0, -2.0) * (ARMS[0] == T)
    gain += np.where(X[CONTROL] == "-->", 3.0, -3.0) * (ARMS[2] == T) + np.sign(X[LONG]) * 4.0 * (ARMS[1] == T)
    return X, T, pd.Series(gain + rng.normal(size=n), name="</title><script>window.hit = 1</script>")


def learner(**options) -> DRPolicyTree:
    """Quick nuisances."""
    regression = make_pipeline(SimpleImputer(), LinearRegression())
    return DRPolicyTree(regression, DummyClassifier(strategy="prior"), cv=2, random_state=0, **options)


def hostile_report() -> tuple[StudyReport, tuple]:
    """A report with most of its sections, and the results that are in it."""
    X, T, Y = hostile_frame()
    model = learner(max_depth=3, min_samples_leaf=10)
    honest = honest_leaf_summary(model, Y, T, X=X, random_state=0)
    values = cross_val_policy_value(model, Y, T, X=X, random_state=0, validation="split")
    test = heterogeneity_test(Y, T, X=X, random_state=0, estimator=honest.estimator.reward_estimator_)
    about = About(source='a"b<c>.csv', warnings=("<b>w</b>\x07",), command="policytree design '</script>'")
    report = StudyReport(honest.estimator, Y, T, X=X, results=[test, honest, values], about=about)
    return report, (honest, values, test)


def follow(steps: Sequence[str], row: pd.Series) -> str:
    """Follow a checklist with a person's values, and nothing else; return the treatment."""
    at = 0
    while True:
        question, rest = steps[at].split("? Yes: ", 1)
        yes, rest = rest.split(". No: ", 1)
        no, unknown = rest.split(". Not known: as ", 1)
        name, relation, value = next(
            (n, sign, question.removeprefix(f"{shown(n)} {sign} "))
            for n in row.index for sign in "≤=" if question.startswith(f"{shown(n)} {sign} ")
        )  # fmt: skip
        if pd.isna(row[name]):
            answer = unknown.removesuffix(".") == "yes"
        else:
            answer = row[name] <= float(value) if relation == "≤" else shown(row[name]) == value
        said = yes if answer else no
        if said.startswith("give "):
            return said.removeprefix("give ")
        at = int(said.removeprefix("go to ")) - 1


def flow_of(report: StudyReport) -> pd.DataFrame:
    """How many rows came how far, by treatment."""
    table = next(block for block in report.content.section("people").blocks if isinstance(block, Table))
    return pd.DataFrame(list(table.numbers), [row[0] for row in table.rows])
