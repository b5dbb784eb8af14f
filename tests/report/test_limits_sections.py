"""Sections of a report on further outcomes, groups, and what limits cost."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, PolicyTree, StudyReport, cross_val_policy_value
from policytree.constraints import EqualShares, Limit
from policytree.estimators.policy import without_limits
from policytree.evaluation import pareto_path
from policytree.evaluation.policy_value.further import WITHOUT_LIMITS
from policytree.report.content import Content, Fold, Picture, Table, Words
from policytree.report.drawing import draw
from policytree.report.html import to_html
from policytree.weighting.study_data import by_columns
from tests.constraints.test_limited import study_of_harm


@pytest.fixture(scope="module")
def limited():
    """A tree within limits on harm and parity, judged; and the front of both outcomes."""
    X, T, Y, toxic, sex = study_of_harm()
    asked = {"constraints": [Limit("toxic", 0.12), EqualShares("sex", 0.2)]}
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0, **asked)
    data = {"X": X, "propensity": 0.5, "outcomes": {"toxic": toxic}, "subgroups": sex}
    by_columns(model.fit, Y=Y, T=T, **data)
    values = by_columns(
        cross_val_policy_value,
        model,
        Y=Y,
        T=T,
        cv=3,
        n_repeats=1,
        random_state=0,
        rivals={WITHOUT_LIMITS: without_limits(model)},
        **data,
    )
    harm = model.outcome_estimators_["toxic"].rewards_
    path = pareto_path(PolicyTree(max_depth=1), X, model.rewards_, outcomes={"toxic": harm})
    return StudyReport(model, Y, T, X=X, results=[values, path]), values, path, model


def tables(content: Content, key: str) -> list[Table]:
    return [block for block in content.section(key).blocks if isinstance(block, Table)]


def test_further_outcomes_are_told_with_limits_and_their_price(limited):
    report, values, _, model = limited
    (table,) = tables(report.content, "further")
    found = values.further["toxic"]
    assert [row["rule"] for row in table.numbers] == list(found)
    assert [row["value"] for row in table.numbers] == pytest.approx([each.value for each in found.values()])
    said = [block.text for block in report.content.section("further").blocks if isinstance(block, Words)]
    assert said[0] == values.limit_statements()[0]
    price = next(text for text in said if text.startswith("On the 240 rows"))
    assert f"the limits cost {model.price_of_limits_:,.4g} of the mean outcome" in price
    lost = values.differences[WITHOUT_LIMITS]
    assert f"Held out they cost {-lost.value:,.3f}" in price
    assert f"[{-lost.upper:,.3f}, {-lost.lower:,.3f}]" in price
    assert "Several outcomes are looked at (2, with the main one)" in said[-1]


def test_groups_are_told_with_intervals_that_hold_at_once(limited):
    report, values, _, _ = limited
    (table,) = tables(report.content, "groups")
    assert [row["group"] for row in table.numbers] == ["f", "m"]
    assert [row["lower"] for row in table.numbers] == pytest.approx(values.group_values["lower"].tolist())
    first = report.content.section("groups").blocks[0]
    assert first.text.startswith("Held out, groups of sex differ most in the share of drug between f and m")
    (gap,) = values.gaps
    assert first.tone == ("plain" if abs(gap.estimate.value) <= 0.2 else "warning")


def test_the_front_shows_the_rule_of_every_point(limited):
    report, _, path, model = limited
    blocks = report.content.section("further").blocks
    picture = next(block for block in blocks if isinstance(block, Picture))
    assert picture.data["chosen"] == path.within(0.12)
    assert path.outcome_means[picture.data["chosen"]] <= 0.12
    corners = np.flatnonzero(np.isfinite(path.low))
    (table,) = next(block for block in blocks if isinstance(block, Fold)).blocks
    assert [row["toxic"] for row in table.numbers] == pytest.approx(path.outcome_means[corners].tolist())
    svg = ElementTree.fromstring(draw(picture, "p1"))
    titles = [title.text for title in svg.iter("title")]
    assert len(titles) == len(picture.data["positions"])
    assert all(path.estimators[k].export_text().split("\n")[0] in " ".join(titles) for k in corners)
    again = Content.from_dict(report.to_dict())
    assert to_html(again) == report.to_html()
    assert model.outcome_means_["toxic"] <= 0.12


def test_a_front_of_a_tree_without_limits_has_no_chosen_point(limited):
    _, _, path, _ = limited
    X, T, Y, _, _ = study_of_harm()
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0).fit(Y, T, X=X, propensity=0.5)
    content = StudyReport(model, Y, T, X=X, results=path).content
    picture = next(block for block in content.section("further").blocks if isinstance(block, Picture))
    assert picture.data["chosen"] is None
    assert content.section("further").title == "Cost of possible limits"
