"""Warfarin: trees that prescribe from logged treatments, beside those of STreeD: same rewards, questions and core.

Public interface used: PolicyTree. The setting is that of STreeD (van der Linden, de Weerdt and Demirovic, 2023):
yes-or-no questions, and rewards by outcome models alone, by inverse weights, or doubly robust.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from warfarin.people import DOSES, patients
from warfarin.study import codes, columns, fitted_of, logged

from policytree import PolicyTree
from policytree.exceptions import InputError

CUTS = 8  # of every number of many values, at its quantiles; alleles and drugs are asked as they are
DEPTHS = (1, 2, 3, 4)
TEACHERS = ("outcome models", "inverse weights", "doubly robust")
STREED = dict(zip(TEACHERS, ("DM", "IPW", "DR"), strict=True))
LIMIT = 120.0  # seconds a fit


def questions(X: pd.DataFrame, cuts: int) -> pd.DataFrame:
    """Yes-or-no columns: every value but the last of those with few, quantiles of the others."""
    found = {}
    for name in X:
        values = np.unique(X[name])
        at = (
            values[:-1] if len(values) <= cuts else np.unique(np.quantile(X[name], np.arange(1, cuts + 1) / (cuts + 1)))
        )
        found |= {f"{name} <= {cut:g}": (X[name] <= cut).astype(int) for cut in at}
    return pd.DataFrame(found)


def reward_tables(regression: np.ndarray, chance: np.ndarray, given: np.ndarray, seen: np.ndarray) -> dict:
    """The three teachers' rewards, (n, 3) each; ``chance`` is that of the treatment that was given, (n,)."""
    own = np.arange(len(given)), given
    weighted, robust = np.zeros_like(regression), regression.copy()
    weighted[own] = seen / chance
    robust[own] += (seen - regression[own]) / chance
    return dict(zip(TEACHERS, (regression, weighted, robust), strict=True))


def streed_doses(
    binary: np.ndarray, columns_of_y: np.ndarray, teacher: str, depth: int
) -> tuple[np.ndarray, float, bool]:
    """Doses (codes) by STreeD's tree, seconds, and whether it says that it is optimal."""
    try:
        from pystreed import STreeDPrescriptivePolicyGenerator
    except ImportError:
        raise InputError("This part compares with STreeD: `pip install pystreed`.") from None
    start = time.perf_counter()
    model = STreeDPrescriptivePolicyGenerator(
        max_depth=depth, max_num_nodes=2**depth - 1, teacher_method=STREED[teacher], time_limit=LIMIT
    )
    model.fit(binary, columns_of_y)
    seconds = time.perf_counter() - start
    return np.asarray(model.predict(binary), int), seconds, bool(model.fit_result.is_optimal())


def main(study) -> None:
    """Run the part."""
    frame = patients()
    X = frame[columns(True)]
    binary = questions(X, 3 if study.quick else CUTS)
    study.heading("Trees from logged treatments, beside STreeD")
    study.show(
        f"{len(frame):,} people, {binary.shape[1]} yes-or-no questions; doctors' doses as in section 4, one draw."
    )
    given, _ = logged(frame, "doctors", np.random.default_rng(0))
    seen, truth = (given == codes(frame["group"])).astype(float), codes(frame["group"])
    study.step("nuisance models")
    fitted = fitted_of(seen, np.array(DOSES)[given], X=X, W=pd.get_dummies(frame["race"], dtype=float))
    regression, propensity = (table[list(DOSES)].to_numpy() for table in (fitted.regression_, fitted.propensity_))
    chance = propensity[np.arange(len(given)), given]
    tables = reward_tables(regression, chance, given, seen)
    asked = np.column_stack([given, seen, chance, regression])
    for depth in DEPTHS:  # kernels are loaded before any clock runs
        PolicyTree(max_depth=depth, n_jobs=1).fit(binary.iloc[::5], pd.DataFrame(regression[::5]))
    rows = []
    for teacher, rewards in tables.items():
        table = pd.DataFrame(rewards, columns=list(DOSES))
        for depth in DEPTHS[:2] if study.quick else DEPTHS:
            study.step(f"{teacher}, depth {depth}")
            start = time.perf_counter()
            tree = PolicyTree(max_depth=depth, n_jobs=1, time_limit=LIMIT).fit(binary, table)
            ours = time.perf_counter() - start
            chosen = codes(tree.predict(binary))
            other, theirs, optimal = streed_doses(binary.to_numpy(), asked, teacher, depth)
            mean, mean_other = (100 * rewards[np.arange(len(c)), c].mean() for c in (chosen, other))
            rows.append({"rewards": teacher, "depth": depth, "ours": mean, "STreeD": mean_other,
                         "ours - STreeD": mean - mean_other, "gap": 100 * tree.optimality_gap_,
                         "it says optimal": optimal, "truly right": 100 * (chosen == truth).mean(),
                         "STreeD's truly": 100 * (other == truth).mean(), "seconds": ours,
                         "STreeD's": theirs})  # fmt: skip
    frame = pd.DataFrame(rows)
    study.show(
        "Mean reward per 100 people on the rows that chose, by each teacher's own rewards; and who is truly right:"
    )
    study.table(frame, "peer", digits=3, index=False)
    equal = (frame["ours - STreeD"].abs() <= 1e-4).sum()
    better = (frame["ours - STreeD"] > 1e-4).sum()
    faster = np.exp(np.log(frame["STreeD's"] / frame["seconds"]).mean())
    study.show(f"Equal to the fourth digit in {equal} of {len(frame)}, better in {better}, worse in "
               f"{len(frame) - equal - better}. Seconds, STreeD's over ours, geometric mean: {faster:.1f}")  # fmt: skip
