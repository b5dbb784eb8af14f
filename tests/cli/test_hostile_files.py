"""Saved trees, regimes and reports that somebody changed, checksums and all: one sentence, or a meaning."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

from policytree import BornAgainTree, DRPolicyTree, OptimalTreeClassifier, PolicyTree
from policytree.regimes import TreatmentRegime
from policytree.regimes.export import regime_python, regime_rules, regime_sql, regime_text
from policytree.serialization import from_json, to_json
from policytree.trees.source_code import DIALECTS, export_python, export_sql
from policytree.trees.text import export_graphviz, export_text, to_rules
from tests.cli.running import run
from tests.support import mutations
from tests.support.regimes import two_stages

ROWS = pd.DataFrame({"age": np.arange(40.0), "site": np.resize(["x", "y", "z"], 40), "new": np.resize([0, 1], 40)})


def saved_by(estimator: str) -> str:
    """The JSON of a small fit."""
    arm, y = np.resize([0, 1, 1], 40), np.where(ROWS.age < 7, "old", "young")
    if estimator == "policy":
        rewards = pd.DataFrame({"no": np.zeros(40), "yes": np.where(ROWS.age < 7, 1.0, -1.0) + (ROWS.site == "x")})
        return PolicyTree(max_depth=2).fit(ROWS, rewards).to_json()
    if estimator == "doubly robust":
        tree = DRPolicyTree(max_depth=1, cv=2, model_regression=LinearRegression(), random_state=0)
        return tree.fit(ROWS.age * arm, arm, X=ROWS, propensity=0.5).to_json()
    if estimator == "classifier":
        return OptimalTreeClassifier(max_depth=2).fit(ROWS, y).to_json()
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(ROWS[["age", "new"]], y)
    return BornAgainTree(forest).fit().to_json()


def use_tree(text: str) -> None:
    """Read a tree; show, translate and apply it, each of which may refuse it in a sentence."""
    tree = from_json(text)
    assert to_json(from_json(to_json(tree))) == to_json(tree)
    for export in (export_text, export_graphviz, export_python, to_rules, *DIALECTS):
        mutations.outcome(lambda e=export: export_sql(tree, dialect=e) if isinstance(e, str) else e(tree))  # type: ignore[misc]
    leaves = tree.apply(np.zeros((3, len(tree.features))))
    assert tree.is_leaf[leaves].all()


def use_regime(text: str) -> None:
    """The same with a regime."""
    trees = TreatmentRegime.trees_from_json(text)
    for export in (
        regime_text,
        regime_rules,
        lambda t: regime_python(t, "policy"),
        lambda t: regime_sql(t, "stage", None),
    ):
        mutations.outcome(lambda e=export: e(trees))  # type: ignore[misc]


def mutants(n: int, seed: int, saved: str, use) -> int:
    """Use mutants of a saved file; how many are refused."""
    data, rng = json.loads(saved), np.random.default_rng(seed)
    refused = 0
    for _ in range(n):
        text = mutations.mutant(data, rng)
        passed = mutations.outcome(lambda: use(text) or True)  # noqa: B023
        refused += passed is None
    return refused


ESTIMATORS = ["policy", "doubly robust", "classifier", "born again"]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_mutants_of_trees_end_in_a_sentence_or_are_trees(estimator):
    assert mutants(100, 0, saved_by(estimator), use_tree) > 50


def regime_json() -> str:
    learner = DRPolicyTree(max_depth=1, cv=2, model_regression=LinearRegression(), random_state=0)
    return TreatmentRegime(learner, random_state=0).fit(two_stages(120, 0)).to_json()


def test_mutants_of_regimes_end_in_a_sentence_or_are_regimes():
    assert mutants(100, 0, regime_json(), use_regime) > 40


def commands(n: int, seed: int, saved: Path, *uses: tuple) -> int:
    """Call commands on mutants of a file that `policytree design` wrote; how many calls end with exit code 2."""
    data, rng, refused = json.loads(saved.read_text()), np.random.default_rng(seed), 0
    changed = saved.with_name(f"changed-{saved.name}")
    for k in range(n):
        changed.write_text(mutations.mutant(data, rng))
        command, *more = uses[k % len(uses)]
        code, _, err = run(command, changed, *more)
        assert code in (0, 2) and "Traceback" not in err, err
        if code == 2:
            errors = [line for line in err.splitlines() if line.startswith("Error: ")]
            assert len(errors) == 1, err
            refused += 1
    return refused


def test_commands_refuse_mutants_of_trees_and_reports(designed):
    folder = designed[0]
    uses = (("show",), ("show", "--json"), ("predict", folder / "trial.csv", "-o", folder / "p.csv"))
    assert commands(90, 0, folder / "out" / "tree.json", *uses) > 30
    page, text = ("report", "-o", folder / "p.html"), ("report", "-o", folder / "p.txt")
    assert commands(60, 0, folder / "out" / "report.json", page, text, ("report",)) > 10
    assert commands(6, 0, folder / "out" / "tree.json", ("evaluate", folder / "trial.csv", "--cv", "2")) > 2
