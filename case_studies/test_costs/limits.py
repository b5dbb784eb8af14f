"""The clinic's question the other way round: the best rule whose tests cost at most so much a person."""

from __future__ import annotations

import numpy as np
import pandas as pd
from test_costs import clinic, data

from policytree import CostSensitiveTreeClassifier
from policytree.constraints import ExpectedCost

LIMITS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.2, 8.0, 11.0)  # dollars of tests per person
ONE_RUN = 5.2  # the enzymes for everybody


def main(study) -> None:
    """The best tree for every limit, proved; and what it costs people who did not choose it."""
    table = data.read("classification", "ilpd", study.data_dir)
    X, y = table.X, np.where(table.y == 1, "healthy", "liver patient")
    study.heading(f"Tests within a limit: {len(X)} people, dollars per person")
    fold, rows, spent = clinic.folds(y, study.quick), [], {}
    for limit in LIMITS[1:2] if study.quick else LIMITS:
        study.step(f"at most {limit:g} dollars")
        tree = CostSensitiveTreeClassifier(
            clinic.ERRORS, **clinic.SIZE, feature_costs=clinic.PRICES, repeated_features="free",
            feature_groups=clinic.RUNS, constraints=[ExpectedCost(limit)],
        )  # fmt: skip
        row, spent[limit] = _row(limit, tree, X, y, fold)
        rows.append(row)
    reference = spent.get(ONE_RUN, spent[limit])
    rows = [row | _above(spent[row["limit"]] - reference) for row in rows]
    frame = pd.DataFrame(rows)
    study.table(frame, "limits", digits=2, index=False)
    study.show(f"Held out: {fold.max() + 1} folds, 95 % intervals over people. above: tests and errors together, less\n"
               f"those of the same people at a limit of {ONE_RUN:g}.")  # fmt: skip
    study.figure(figure(frame), "limits")


def _above(difference: np.ndarray) -> dict:
    """Mean of a paired difference, with its interval."""
    half = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference))
    mean = difference.mean()
    return {"above": mean, "above: low": mean - half, "above: high": mean + half}


def _row(limit: float, tree, X: pd.DataFrame, y: np.ndarray, fold: np.ndarray) -> tuple[dict, np.ndarray]:
    """A line of the table, and everybody's dollars of tests and errors, held out."""
    fitted = tree.fit(X, y)
    row = {
        "limit": limit, "tests": fitted.expected_cost_, "errors": fitted.objective_value_,
        "gap": fitted.optimality_gap_, "a dollar more saves at most": fitted.multipliers_["expected_cost"],
    }  # fmt: skip
    errors, tests = clinic.dollars(tree, X, y, fold)
    half = 1.96 * errors.std(ddof=1) / np.sqrt(len(y))
    held_out = {"tests": tests.mean(), "errors": errors.mean(), "low": errors.mean() - half}
    held_out["high"] = errors.mean() + half
    return row | {f"held out: {name}": value for name, value in held_out.items()}, errors + tests


def figure(frame: pd.DataFrame):
    """Errors against tests, both in dollars: on the rows that chose the trees, and held out."""
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(6.4, 4.2))
    half = frame["held out: errors"] - frame["held out: low"]
    ax.errorbar(
        frame["held out: tests"], frame["held out: errors"], half, fmt="o", capsize=3, color="#D55E00",
        label="people who did not choose the tree, 95 % intervals",
    )  # fmt: skip
    ax.plot(frame["tests"], frame["errors"], "s", color="#0072B2", label="people who chose the tree (flattered)")
    ax.set(xlabel="dollars of tests per person", ylabel="dollars of errors per person", ylim=(0, None))
    ax.legend(frameon=False, loc="lower left")
    ax.set_title("What tests within a limit can do", loc="left")
    fig.tight_layout()
    return fig
