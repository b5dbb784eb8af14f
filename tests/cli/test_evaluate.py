"""``policytree evaluate``: a saved tree on new rows."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from policytree import PolicyTree, RewardEstimator, policy_value
from tests.cli.running import refused, run, trial


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """New people, as a table and as a file."""
    path = tmp_path_factory.mktemp("new") / "new.csv"
    trial(300, seed=9).to_csv(path, index=False)
    return path


def evaluated(tree, data, *more) -> dict:
    code, out, err = run("evaluate", tree, data, "--json", *more)
    assert code == 0, err
    return json.loads(out)


def test_the_numbers_are_those_of_the_library(designed, new):
    """By the same rewards, worked out here; the rule is the known one."""
    folder, _, _ = designed
    found = evaluated(folder / "out" / "tree.json", new, "--propensity", "0.5")
    data = pd.read_csv(new, keep_default_na=False)
    rewards = RewardEstimator(random_state=0).fit_predict(
        data["y"], data["arm"], X=data[["age", "income", "region"]], propensity=0.5, groups=data["clinic"]
    )
    threshold = json.loads((folder / "out" / "tree.json").read_text())["threshold"][0]
    policy = np.where(data["age"] <= threshold, "drug", "None")
    values = {row["rule"]: row for row in found["values"]}
    assert set(values) == {"policy tree", "always None", "always drug", "as randomised"}
    expected = policy_value(policy, rewards, groups=data["clinic"])
    for end in ("value", "lower", "upper"):
        assert values["policy tree"][end] == pytest.approx(getattr(expected, end), rel=1e-9)
    against = policy_value(policy, rewards, baseline="drug", groups=data["clinic"])
    assert values["always drug"]["difference_lower"] == pytest.approx(against.lower, rel=1e-9)
    assert values["as randomised"]["value"] == pytest.approx(data["y"].mean())
    assert found["verdict"]["rule"] == "policy tree"
    assert (found["rows"], found["clusters"]) == (300, data["clinic"].nunique())


def test_it_says_on_which_rows_and_keeps_standard_output_clean(designed, new):
    folder, _, _ = designed
    code, out, err = run("evaluate", folder / "out" / "tree.json", new, "--cv", "2")
    assert code == 0, err
    said = " ".join(out.split())
    assert "Use the policy tree" in said and f"By 300 rows in {pd.read_csv(new)['clinic'].nunique()} clusters" in said
    assert "2-fold cross-fitted" in said and "propensities known: 0.5 for drug. The tree was not learnt" in said
    assert "They are those of the design; if these rows had others, give --propensity" in said
    same = evaluated(folder / "out" / "tree.json", new, "--propensity", "0.5")
    assert evaluated(folder / "out" / "tree.json", new)["values"] == same["values"]
    other = evaluated(folder / "out" / "tree.json", new, "--propensity", "estimated")
    assert other["values"] != same["values"] and "In the design they were known (0.5 for drug)" in other["about"]
    assert same["second_opinions"] == []
    assert [each["of"] for each in other["second_opinions"]] == ["treatment", "outcomes"]
    assert all(line == line.rstrip() for line in out.splitlines())


def test_another_tree_is_compared(designed, new, tmp_path):
    folder, _, _ = designed
    rewards = pd.DataFrame({"None": [0.0, 0.0], "drug": [1.0, 1.0]})
    other = PolicyTree(max_depth=0).fit(pd.DataFrame({"age": [1.0, 2.0]}), rewards)
    (tmp_path / "all.json").write_text(other.to_json())
    tree = folder / "out" / "tree.json"
    values = {r["rule"]: r for r in evaluated(tree, new, "--cv", "2", "--against", tmp_path / "all.json")["values"]}
    assert values["all.json"]["value"] == values["always drug"]["value"]
    assert values["all.json"]["difference"] == values["always drug"]["difference"]


def test_rows_that_chose_the_tree_are_refused_in_any_order(designed, tmp_path):
    folder, _, _ = designed
    tree = folder / "out" / "tree.json"
    refused(run("evaluate", tree, folder / "trial.csv"), "the very rows that chose this tree")
    trial().sample(frac=1.0, random_state=0).to_parquet(tmp_path / "again.parquet")
    refused(run("evaluate", tree, tmp_path / "again.parquet"), "the very rows that chose this tree")


def test_what_it_refuses(designed, new, tmp_path):
    folder, _, _ = designed
    tree = folder / "out" / "tree.json"
    trial(300, seed=9).assign(arm=["None", "other"] * 150).to_csv(tmp_path / "arms.csv", index=False)
    refused(run("evaluate", tree, tmp_path / "arms.csv"), "gives 'drug', which nobody in column 'arm'")
    trial(300, seed=9).drop(columns="age").to_csv(tmp_path / "age.csv", index=False)
    refused(run("evaluate", tree, tmp_path / "age.csv"), "no column 'age' (which the tree splits on)")
    trial(300, seed=9).drop(columns="arm").to_csv(tmp_path / "arm.csv", index=False)
    refused(run("evaluate", tree, tmp_path / "arm.csv"), "--treatment is missing")
    refused(run("evaluate", tree, new, "--level", "95"), "level")
    broken = json.loads(tree.read_text()) | {"design": {"covariates": [3], "treatment": ["x"], "arm_costs": []}}
    del broken["checksum"]
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    refused(run("evaluate", tmp_path / "broken.json", new), "--treatment and --outcome are missing")


def test_arm_costs_lower_every_value_by_what_is_given(designed, new):
    folder, _, _ = designed
    tree = folder / "out" / "tree.json"
    free, dear = (evaluated(tree, new, "--cv", "2", *more) for more in ((), ("--arm-cost", "drug=10")))
    free, dear = ({row["rule"]: row["value"] for row in found["values"]} for found in (free, dear))
    share = (trial(300, seed=9)["arm"] == "drug").mean()
    assert free["always None"] == pytest.approx(dear["always None"])
    assert free["always drug"] - dear["always drug"] == pytest.approx(10)
    assert free["as randomised"] - dear["as randomised"] == pytest.approx(10 * share)
