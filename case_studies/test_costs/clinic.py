"""Choice of blood values to order: liver patients of Andhra Pradesh, tests with prices, errors with prices."""

from __future__ import annotations

import numpy as np
import pandas as pd
from test_costs import data

from policytree import CostSensitiveTreeClassifier
from policytree.trees.text import to_rules

# Dollars per person. Assumptions, written down from memory and not looked up: replace them by your own.
PRICES = {
    "age": 0.0, "gender": 0.0, "total_bilirubin": 5.0, "direct_bilirubin": 5.0, "alkphos": 5.2, "sgpt": 5.3,
    "sgot": 5.2, "total_proteins": 3.7, "albumin": 5.0, "ag_ratio": 5.0,
}  # fmt: skip
# One run of the machine gives all values of a group: the first that is asked for is paid for.
RUNS = {
    "bilirubin": ["total_bilirubin", "direct_bilirubin"],
    "enzymes": ["alkphos", "sgpt", "sgot"],
    "proteins": ["total_proteins", "albumin", "ag_ratio"],
}
# Dollars that a wrong answer costs: a patient who is not referred and comes back later; a work-up for nothing.
ERRORS = pd.DataFrame({"refer": [0.0, 250.0], "send home": [100.0, 0.0]}, index=["liver patient", "healthy"])
FOLDS = 10
SIZE = {"max_depth": 3, "max_bins": 24, "min_samples_leaf": 20, "time_limit": 300}


def show(study) -> None:
    """The tree for all rows, and what people cost that have not chosen it."""
    table = data.read("classification", "ilpd", study.data_dir)
    X, y = table.X, np.where(table.y == 1, "healthy", "liver patient")
    study.heading(f"Which blood values to order: {len(X)} people, {(y == 'liver patient').sum()} liver patients")
    shared = {**SIZE, "feature_costs": PRICES}
    once = CostSensitiveTreeClassifier(ERRORS, **shared, repeated_features="free", feature_groups=RUNS)
    again = CostSensitiveTreeClassifier(ERRORS, **shared)
    blind = CostSensitiveTreeClassifier(ERRORS, **SIZE)
    fitted = once.fit(X, y)
    study.show(fitted.export_text())
    study.show()
    study.table(orders(fitted, X, y), "orders", digits=1, index=False)
    study.show(
        f"Tests and errors cost {fitted.objective_value_:.2f} dollars per person on these rows, of which "
        f"{fitted.expected_cost_:.2f} for tests ({fitted.status_.value}, gap {fitted.optimality_gap_:.2g})."
    )
    picture = fitted.plot(unit="people", value_name="dollars by errors", title="Which blood values to order")
    study.figure(picture.figure_, "clinic")
    models = {"runs paid for once": once, "every question charged": again, "tests for free when choosing": blind}
    held_out(study, models, X, y)


def orders(tree, X: pd.DataFrame, y: np.ndarray) -> pd.DataFrame:
    """List the orders by leaf: the laboratory runs on the way and their bill."""
    leaf, bill = tree.apply(X), laboratory_bill(tree, X)
    rows = []
    for node, rule in to_rules(tree.tree_).iterrows():
        inside = leaf == node
        asked = [c for c in X if f"{c} " in rule["rule"]]
        runs = sorted({run for run, columns in RUNS.items() if set(columns) & set(asked)})
        rows.append(
            {
                "who": rule["rule"], "people": int(inside.sum()), "runs": ", ".join(runs) or "none",
                "dollars": bill[inside].mean(), "then": rule["action"],
                "patients, %": 100 * (y[inside] == "liver patient").mean(),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def folds(y: np.ndarray, quick: bool) -> np.ndarray:
    """The fold of everybody, with equal shares of patients."""
    fold, order = np.empty(len(y), dtype=int), np.random.default_rng(0).permutation(len(y))
    fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % (3 if quick else FOLDS)
    return fold


def held_out(study, models: dict, X: pd.DataFrame, y: np.ndarray) -> None:
    """Cross-validated dollars per person, and differences with 95 % intervals over people."""
    fold = folds(y, study.quick)
    none = np.zeros(len(y))
    spent = {f"no test: {what} everybody": (ERRORS[what][y].to_numpy(), none) for what in ERRORS}
    for name, model in models.items():
        study.step(f"clinic: {name}")
        spent[name] = dollars(model, X, y, fold)
    reference = np.sum(spent["runs paid for once"], axis=0)
    rows = []
    for name, (errors, tests) in spent.items():
        difference = errors + tests - reference
        half = 1.96 * difference.std(ddof=1) / np.sqrt(len(y))
        rows.append(
            {
                "rule": name, "errors": errors.mean(), "tests": tests.mean(), "both": (errors + tests).mean(),
                "more than the first tree": difference.mean(), "low": difference.mean() - half,
                "high": difference.mean() + half,
            }
        )  # fmt: skip
    study.show(f"\nDollars per person on people who did not choose the tree ({fold.max() + 1} folds), 95 % intervals")
    study.table(pd.DataFrame(rows), "clinic", digits=2, index=False)


def dollars(model, X: pd.DataFrame, y: np.ndarray, fold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the costs of errors and tests for each person; tests by the runs paid for, whatever the model's prices."""
    errors, tests = np.zeros(len(y)), np.zeros(len(y))
    for k in range(fold.max() + 1):
        out = fold == k
        tree = model.fit(X[~out], y[~out])
        predicted = tree.predict(X[out])
        errors[out] = [ERRORS.loc[truth, guess] for truth, guess in zip(y[out], predicted, strict=True)]
        tests[out] = laboratory_bill(tree, X[out])
    return errors, tests


def laboratory_bill(tree, X: pd.DataFrame) -> np.ndarray:
    """Return the cost of the tests on everybody's way when a run is paid for once."""
    run_of = {column: run for run, columns in RUNS.items() for column in columns}
    bill, paid = np.zeros(len(X)), [set() for _ in range(len(X))]
    path = tree.decision_path(X).tocoo()
    for row, node in sorted(zip(path.row, path.col, strict=True)):  # nodes of a path stand in their order
        if not tree.tree_.is_leaf[node]:
            column = tree.tree_.features[tree.tree_.feature[node]].name
            run = run_of.get(column, column)
            bill[row] += 0.0 if run in paid[row] else PRICES[column]
            paid[row].add(run)
    return bill
