"""Results in consoles and notebooks: sentences and tables; no dump of a dataclass, no markup of names."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import policytree
from policytree import DRPolicyTree, PolicyTree, cross_val_policy_value, honest_leaf_summary, tree_path
from policytree.constraints.constraint import Constraint
from policytree.data.views import Shown, as_html, as_text, facts
from policytree.evaluation import near_ties, policy_stability
from policytree.objectives.objective import Objective
from policytree.problem.types import Status
from policytree.report.described import About
from policytree.study.assignments import Assignment
from policytree.study.outcomes import Outcome
from policytree.study_check import check_study
from policytree.trees.tree import Tree
from policytree.weighting.time_to_event.survival_models import SurvivalModel
from tests.support.api_pages import HOMES, listed

SCRIPT, BOLD, TURNED = "<script>alert(1)</script>", "<b>a</b>", "age\u202eega"
FOLDER = str(Path(policytree.__file__).parent)


@pytest.fixture(scope="module")
def hostile() -> dict:
    """Results of a trial whose columns and treatments are markup."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({SCRIPT: rng.uniform(20, 80, 200), TURNED: rng.choice([BOLD, "c"], 200)})
    T = rng.permutation(np.repeat(["drug <i>", "none"], 100))
    Y = (T == "drug <i>") * np.where(X[SCRIPT] > 50, 2.0, -2.0) + rng.normal(size=200)
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0, direction="maximize").fit(Y, T, X=X, propensity=0.5)
    study = {"X": X, "propensity": 0.5, "random_state": 0}
    values = cross_val_policy_value(model, Y, T, cv=2, n_repeats=1, **study)
    return {
        "values": values,
        "verdict": values.verdict,
        "gain": values.verdict.tree,
        "optimism": values.optimism["policy tree"],
        "tree": model.tree_,
        "model": model,
        "leaves": honest_leaf_summary(model, Y, T, **study),
        "check": check_study(Y, T, X=X.assign(leak=Y)),
        "near ties": near_ties(PolicyTree(max_depth=1), X, model.rewards_),
        "stability": policy_stability(model, Y, T, n_resamples=2, **study),
        "path": tree_path(PolicyTree(max_depth=1), X[[SCRIPT]], model.rewards_),
    }


NAMES = [
    "values", "verdict", "gain", "optimism", "tree", "model", "leaves", "check", "near ties", "stability", "path",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_are_no_markup(hostile, name):
    page = hostile[name]._repr_html_()
    assert not re.search(r"<(script|b|i)>", page)
    assert "\u202e" not in page
    ElementTree.fromstring(page.replace("&nbsp;", " "))  # every element ends


@pytest.mark.parametrize("name", ["values", "tree", "leaves", "near ties", "stability"])
def test_treatments_and_columns_are_named(hostile, name):
    page = hostile[name]._repr_html_()
    assert "drug &lt;i&gt;" in page or "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_tables_are_tables_and_sentences_sentences(hostile):
    values = hostile["values"]
    page = ElementTree.fromstring(values._repr_html_())
    assert page[0].tag == "p" and page[0].text.startswith("Use the policy tree")
    rules = [row[0].text for row in page.find(".//tbody")]
    assert rules == list(values.estimates)
    assert [cell.text for cell in page.find(".//thead")[0]][1:4] == ["value", "std. error", "95% interval"]
    assert not page.findall(".//pre")
    assert len(ElementTree.fromstring(hostile["leaves"]._repr_html_()).findall(".//tbody/tr")) == 2


def test_a_tree_is_a_nested_list(hostile):
    root = ElementTree.fromstring(hostile["tree"]._repr_html_())
    [question] = root.findall("./ul/li")
    assert question.text.startswith(SCRIPT)
    answers = ["".join(each.itertext()) for each in question.findall("./ul/li")]
    assert [answer.split()[0] for answer in answers] == ["yes:", "no:"]
    deep = PolicyTree(max_depth=3).fit(np.arange(8.0)[:, None], np.eye(2)[[0, 1] * 4] + 0.0).tree_
    assert len(ElementTree.fromstring(deep._repr_html_()).findall(".//li")) == deep.node_count


@pytest.mark.parametrize("name", [name for name in NAMES if name != "model"])
def test_consoles_read_what_print_writes(hostile, name):
    result = hostile[name]
    if name in ("gain", "optimism"):  # values of a sentence or a table: a line in their containers
        assert repr(result).startswith(f"<{type(result).__name__}: ") and "\n" not in repr(result)
    else:
        assert repr(result) == str(result)
    assert "array(" not in repr(result) and f"{type(result).__name__}(" not in str(result)


def _is_generated(cls: type) -> bool:
    return not inspect.getsourcefile(inspect.unwrap(cls.__repr__)).startswith(FOLDER)


def test_no_result_is_shown_as_a_dump():
    """Everything that functions return, and the tree; not objectives, schemes and kinds, which are handed in."""
    results = [
        getattr(importlib.import_module(module), name) for module, name in sorted(listed()) if module not in HOMES
    ]
    classes = [each for each in (*results, Tree) if inspect.isclass(each)]
    handed_in = (Objective, Assignment, Outcome, Constraint, Status, About)
    classes = [each for each in classes if not issubclass(each, handed_in) and each is not SurvivalModel]
    classes = [each for each in classes if "plotting" not in each.__module__]  # pictures
    classes = [each for each in classes if not hasattr(each, "needs_propensity")]  # a scheme
    assert len(classes) > 35
    assert [cls.__name__ for cls in classes if _is_generated(cls)] == []


def test_facts_are_short():
    tree = PolicyTree(max_depth=1).fit([[1.0], [2.0]], np.eye(2)).tree_
    said = facts(tree)
    assert said["children_left"] == "ndarray of shape (3,)"
    assert said["actions"] == "0, 1"
    assert max(map(len, said.values())) <= 120


class Parts(Shown):
    def _shown(self):
        return ["One\n", pd.DataFrame({"a <b>": ["x", "<y>"]}), pd.DataFrame({"b": [1.0, np.nan]}, index=["r", "s"])]


def test_parts_in_both_forms():
    assert str(Parts()) == as_text(Parts()._shown()) == "One\n\na <b>\n    x\n  <y>\n     b\nr  1.0\ns  NaN"
    page = ElementTree.fromstring(as_html(Parts()._shown()))
    assert [["".join(cell.itertext()) for cell in row] for row in page.findall(".//tr")] == [
        ["a <b>"], ["x"], ["<y>"], ["", "b"], ["r", "1"], ["s", ""],
    ]  # fmt: skip
