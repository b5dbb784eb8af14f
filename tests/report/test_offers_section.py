"""Reports of studies with offers that people may refuse: what they say is what was computed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from policytree import DRPolicyTree, RewardEstimator, StudyReport, cross_val_policy_value, honest_leaf_summary
from policytree.constraints import Share
from policytree.evaluation import instrument_summary, offer_rule
from policytree.exceptions import InputError, WeakInstrumentWarning
from policytree.report.content import Facts, Fold, Outline, Picture, Table
from policytree.report.described import About
from policytree.report.drawing import draw
from policytree.study_check import check_study
from policytree.trees.labels import Label
from policytree.weighting.study_data import StudyData, by_columns
from tests.report.studies import flow_of
from tests.support.offers import vouchers

ABOUT = About(unit="points", instrument="offer")


def rewards(estimand: str = "compliers") -> RewardEstimator:
    """Quick nuisances."""
    learner = make_pipeline(SimpleImputer(), LinearRegression())
    options = {"method": "instrument", "model_uptake": learner, "cv": 2, "random_state": 0}
    return RewardEstimator(learner, DummyClassifier(strategy="prior"), estimand=estimand, **options)


@pytest.fixture(scope="module")
def study():
    data = vouchers()
    X = data[["age", "region"]]
    return X, data["taken"], data["score"], {"instrument": data["offer"]}, data["person"]


@pytest.fixture(scope="module")
def fitted(study):
    X, T, Y, offered, groups = study
    model = DRPolicyTree(
        rewards=rewards(), max_depth=1, min_samples_leaf=40, constraints=[Share("programme", most=0.9)]
    )
    return by_columns(model.fit, Y=Y, T=T, X=X, groups=groups, propensity=0.5, **offered)


@pytest.fixture(scope="module")
def report(study, fitted):
    """With what offers and takers cost, so that the tree over offers stands in it."""
    X, T, Y, offered, groups = study
    costs = {"offer_costs": {"voucher": 0.5}, "treatment_cost": 2.0}
    return by_columns(StudyReport, fitted, Y=Y, T=T, X=X, groups=groups, about=ABOUT, **offered, **costs)


def test_numbers_are_those_of_the_summary(study, fitted, report):
    X, T, Y, offered, groups = study
    found = instrument_summary(fitted, groups=groups)
    blocks = report.content.section("offers").blocks
    table = next(b for b in blocks if isinstance(b, Table))
    for row, numbers in zip(table.rows, table.numbers, strict=True):
        expected = found.offers.loc[row[0]]
        assert numbers["uptake"] == pytest.approx(expected["uptake"])
        assert row[2] == f"{expected['uptake']:.3f} [{expected['uptake_lower']:.3f}, {expected['uptake_upper']:.3f}]"
    facts = dict(next(b for b in blocks if isinstance(b, Facts)).pairs)
    assert facts["first-stage F"] == f"{found.f_statistic:,.1f}"
    assert f"[{found.effect.lower:.1f}, {found.effect.upper:.1f}]" in facts["effect on compliers"]
    assert "[{:.1f}, {:.1f}]".format(*found.robust_interval) in facts["however weak the offers"]
    who = next(b for b in blocks if isinstance(b, Fold)).blocks[0]
    means = found.complier_means(X)
    assert {row[0] for row in who.rows} == set(means.index)
    assert who.numbers[0]["compliers"] == pytest.approx(means.loc[who.rows[0][0], "compliers"])
    as_made = [b for b in report.content.section("question").blocks if isinstance(b, Table)][1]
    voucher = (offered["instrument"] == "voucher").to_numpy()
    assert as_made.numbers[1]["uptake"] == pytest.approx((T[voucher] == "programme").mean())
    assert as_made.numbers[1]["mean"] == pytest.approx(Y[voucher].mean())


def test_labels_stand_in_the_tree_over_offers_and_in_the_data(study, fitted):
    X, T, Y, offered, groups = study
    labels = {"age": Label("Age", "years"), "region": "Home", "offer": "letter", "taken": "uptake"}
    about = About(instrument="offer", labels=labels)
    costs = {"offer_costs": {"voucher": 0.5}, "treatment_cost": 2.0}
    report = by_columns(StudyReport, fitted, Y=Y, T=T, X=X, groups=groups, about=about, **offered, **costs)
    found = [*report.content.section("offers").blocks]
    for block in found:
        found += block.blocks if isinstance(block, Fold) else ()
    (tree,) = (block.root for block in found if isinstance(block, Outline))
    assert tree["feature"] in ("Age (years)", "Home")
    facts = dict(next(b for b in report.content.section("question").blocks if isinstance(b, Facts)).pairs)
    assert facts["covariates"] == "Age (years), Home" and facts["offers"].startswith("letter, 2 offers")
    wrong = About(instrument="offer", labels={"offer": Label(values={"voucher": "yes"})})
    with pytest.raises(InputError, match="labels name values of the offers 'offer'"):
        by_columns(StudyReport, fitted, Y=Y, T=T, X=X, groups=groups, about=wrong, **offered)


def test_the_picture_shows_uptake_and_compliance_and_no_row(fitted, study, report):
    picture = next(b for b in report.content.section("offers").blocks if isinstance(b, Picture))
    assert [offer["name"] for offer in picture.data["offers"]] == ["none", "voucher"]
    assert sum(picture.data["counts"]) == 280 and len(picture.data["counts"]) == 30
    assert "share that takes programme" in draw(picture, "k") or "<svg" in draw(picture, "k")
    display = instrument_summary(fitted, groups=study[4]).plot(bins=10)
    low, high = display.axes_[0].get_xlim()
    assert low <= 0.0 and high >= 1.0 and len(display.axes_) == 2
    with pytest.raises(InputError, match="fitted without an instrument"):
        instrument_summary(RewardEstimator().fit(study[2], study[1], propensity=0.5))


def test_the_tree_over_offers_is_the_best_one_net_of_costs(study, fitted, report):
    X, T, Y, offered, groups = study
    offer = offered["instrument"]
    net = Y - 2.0 * (T == "programme")
    plain = rewards().set_params(method="dr", estimand="all")
    model = DRPolicyTree(rewards=plain, max_depth=1, min_samples_leaf=40)
    given = {"X": X, "groups": groups, "propensity": 0.5, "sample_treatment_costs": {"voucher": 0.5}}
    by_columns(model.fit, Y=net, T=offer, **given)
    rule = by_columns(
        offer_rule,
        fitted,
        Y=Y,
        T=T,
        X=X,
        groups=groups,
        propensity=0.5,
        offer_costs={"voucher": 0.5},
        treatment_cost=2.0,
        cv=2,
        n_repeats=1,
        random_state=0,
        **offered,
    )
    assert rule.estimator.objective_value_ == pytest.approx(model.objective_value_, rel=1e-9)
    values = by_columns(cross_val_policy_value, model, Y=net, T=offer, cv=2, n_repeats=1, random_state=0, **given)
    assert rule.values.to_frame()["value"].tolist() == pytest.approx(values.to_frame()["value"].tolist(), rel=1e-9)
    paid = net - 0.5 * (offer == "voucher")
    assert rule.values.estimates["as randomised"].value == pytest.approx(paid.mean(), rel=1e-9)
    assert "net of what offers cost (voucher 0.5) and of 2 per taker of programme" in str(rule)
    text = " ".join(report.to_text().split())
    assert "The rule over offers (intention to treat) is a tree" in text
    assert "A tree over the offers themselves (intention to treat)" in text
    fewer = by_columns(
        offer_rule,
        DRPolicyTree(rewards=rewards(), max_depth=1, direction="minimize"),
        Y=Y,
        T=T,
        X=X,
        propensity=0.5,
        value=False,
        treatment_cost=2.0,
        **offered,
    )
    assert fewer.values is None
    scores = fewer.estimator.reward_estimator_.outcome_
    assert scores.to_numpy() == pytest.approx((Y + 2.0 * (T == "programme")).to_numpy())


def test_sections_are_about_offers_or_say_why_not(report):
    content, text = report.content, " ".join(report.to_text().split())
    assert content.section("means").title == "Means by offer"
    assert content.section("support").title == "Overlap and balance of offers"
    for words in (
        "for the highest gain in mean score over nothing (points)?", "everybody else as zero",
        "Not tested: the test is about treatments that were given, and people chose theirs",
        "bounds on hidden confounding of treatments have no meaning here", "Exclusion: an offer bears on score only",
        "Monotonicity: nobody takes programme because it was not offered", "Tan Z (2006)",
        "so that every offer was possible for everybody",
    ):  # fmt: skip
        assert words in text
    tree = next(b for b in content.section("tree").blocks if isinstance(b, Picture))
    low, high = tree.data["limits"]
    assert low == -high < 0.0
    assert "Offers and who takes them" in report.to_html()


def test_everybody_as_estimand_is_said(study):
    X, T, Y, offered, groups = study
    model = DRPolicyTree(rewards=rewards("all"), max_depth=1, min_samples_leaf=40)
    with pytest.warns(WeakInstrumentWarning, match="rows, .* min_compliance=0.05"):
        by_columns(model.fit, Y=Y, T=T, X=X, groups=groups, **offered)
    text = " ".join(by_columns(StudyReport, model, Y=Y, T=T, X=X, groups=groups, **offered).to_text().split())
    assert f"In {model.reward_estimator_.n_weak_} of 280 rows compliance was estimated below 0.05" in text
    assert "every person counts with the effect on those who follow the offers among people with the same" in text
    assert "(equation 44)" in text and "No rule of offers was computed: pass the result of offer_rule" in text
    assert "Offers are taken to be as good as random given the covariates" in text


def test_rows_that_only_judge_have_no_part_in_the_section(study):
    X, T, Y, offered, groups = study
    model = DRPolicyTree(rewards=rewards(), max_depth=1, min_samples_leaf=20)
    data = {"X": X, "groups": groups, **offered}
    honest = by_columns(honest_leaf_summary, model, Y=Y, T=T, honest=0.4, random_state=0, **data)
    n = len(honest.estimator.rewards_)
    report = by_columns(StudyReport, honest.estimator, Y=Y, T=T, results=honest, **data)
    table = next(b for b in report.content.section("offers").blocks if isinstance(b, Table))
    assert table.caption.endswith(f"by the {n:,} rows that the tree was learnt from")


def test_several_offers_with_missing_outcomes(study):
    X, T, Y, offered, _ = study
    offer = offered["instrument"].mask(np.arange(280) % 3 == 0, "letter")
    lost = Y.mask(np.arange(280) % 17 == 0)
    data = {"X": X, "instrument": offer, "missing_outcome": "weight"}
    model = by_columns(DRPolicyTree(rewards=rewards(), max_depth=1, min_samples_leaf=40).fit, Y=lost, T=T, **data)
    report = by_columns(StudyReport, model, Y=lost, T=T, treatment_cost=1.0, **data)
    facts = dict(next(b for b in report.content.section("offers").blocks if isinstance(b, Facts)).pairs)
    assert "with 1 degrees of freedom, p" in facts["all offers the same effect"]
    assert "Hidden causes of" not in report.to_text()


def test_slips_are_one_sentence(study, fitted):
    X, T, Y, offered, groups = study
    with pytest.raises(InputError, match="fitted with an instrument; give the report that study"):
        StudyReport(fitted, Y, T, X=X)
    with pytest.raises(InputError, match="offer_costs names the offer free; the offers are none, voucher"):
        by_columns(StudyReport, fitted, Y=Y, T=T, X=X, groups=groups, offer_costs={"free": 1.0}, **offered)
    for bad, words in ((np.nan, "has missing or infinite values"), (["a"] * 280, "holds values that are not numbers")):
        with pytest.raises(InputError, match=f"offer_costs of voucher {words}"):
            by_columns(offer_rule, fitted, Y=Y, T=T, X=X, offer_costs={"voucher": bad}, **offered)
    with pytest.raises(InputError, match="treatment_cost must be a finite number; got"):
        by_columns(offer_rule, fitted, Y=Y, T=T, X=X, treatment_cost=np.nan, **offered)
    with pytest.raises(InputError, match="offer_rule needs offers; pass a Study with treatment=Offered"):
        offer_rule(fitted, Y, T, X=X)
    with pytest.raises(InputError, match="cannot be subtracted from times to an event"):
        by_columns(offer_rule, fitted, Y=Y, T=T, X=X, event=np.ones(280), horizon=30.0, treatment_cost=1.0, **offered)
    plain = DRPolicyTree(max_depth=0, rewards=RewardEstimator(LinearRegression(), cv=2)).fit(
        Y, T, X=X[["age"]].fillna(0), propensity=0.5
    )
    with pytest.raises(InputError, match="fitted without an instrument; fit it to this study"):
        by_columns(StudyReport, plain, Y=Y, T=T, X=X[["age"]].fillna(0), **offered)
    with pytest.raises(InputError, match="treatment=Offered"):
        StudyReport(plain, Y, T, X=X[["age"]].fillna(0), offer_costs={"voucher": 1.0})


def test_the_check_finds_what_is_wrong_with_offers(study):
    X, T, Y, offered, groups = study
    check = by_columns(check_study, Y=Y, T=T, X=X, groups=groups, **offered)
    assert {(f.kind, f.column) for f in check.findings} >= {("varies within clusters", "Offer")}
    assert not any(f.column.startswith("Treatment") for f in check.findings)
    shuffled = pd.Series(np.random.default_rng(1).permutation(offered["instrument"]))
    (weak,) = check_study(StudyData.of(Y, T, X=X, instrument=shuffled)).of("serious")
    assert weak.kind == "weak instrument" and "judge the offers themselves" in weak.remedy
    rare = offered["instrument"].mask(np.arange(280) < 7, "letter")
    kinds = {f.kind: f for f in check_study(StudyData.of(Y, T, X=X, instrument=rare)).of("warning")}
    assert kinds["rare offer"].column == "Offer letter" and kinds["rare offer"].rows == 7
    (same,) = (
        f
        for f in check_study(StudyData.of(Y, offered["instrument"], X=X, **offered)).findings
        if f.kind == "full compliance"
    )
    assert same.severity == "note" and "leave it out" in same.remedy
    recorded = X.assign(site=np.where(offered["instrument"] == "voucher", "in", "out"))
    (found,) = by_columns(check_study, Y=Y, T=T, X=recorded, **offered).of("serious")
    assert found.column == "site" and "nearly determines the offer" in found.found


def test_the_page_keeps_intervals_whole_and_captions_in_sight(study, fitted, report):
    page = report.to_html()
    assert page.count('<span class="interval">[') > 5 and "&lt;span" not in page
    assert "<caption><span>Offers, adjusted for covariates" in page
    X, T, Y, offered, groups = study
    values = by_columns(
        cross_val_policy_value, fitted, Y=Y, T=T, X=X, groups=groups, cv=2, n_repeats=1, random_state=0, **offered
    )
    text = " ".join(
        by_columns(StudyReport, fitted, Y=Y, T=T, X=X, groups=groups, results=values, **offered).to_text().split()
    )
    assert "Held-out values of all rules, of compliers per person of all, by 280 rows in" in text
    picture = next(
        b for b in report.content.section("support").blocks if isinstance(b, Picture) and b.kind == "balance"
    )
    assert picture.data["what"] == "offer"


def test_a_covariate_that_nobody_has_is_left_out_of_the_compliers(study):
    X, T, Y, offered, groups = study
    empty = X.assign(nothing=np.nan)
    model = by_columns(
        DRPolicyTree(rewards=rewards(), max_depth=0).fit, Y=Y, T=T, X=empty, groups=groups, propensity=0.5, **offered
    )
    means = instrument_summary(model).complier_means(empty)
    assert means.loc["nothing"].isna().all() and means.drop(index="nothing").notna().all(axis=None)
    who = next(
        b
        for b in by_columns(StudyReport, model, Y=Y, T=T, X=empty, groups=groups, **offered)
        .content.section("offers")
        .blocks
        if isinstance(b, Fold)
    )
    assert "nothing" not in [row[0] for row in who.blocks[0].rows]


def test_the_verdict_over_offers_speaks_of_offers(study, fitted):
    X, T, Y, offered, groups = study
    options = {"cv": 2, "n_repeats": 1, "random_state": 0}
    rule = by_columns(
        offer_rule, fitted, Y=Y, T=T, X=X, groups=groups, propensity=0.5, treatment_cost=1.0, **offered, **options
    )
    free = by_columns(offer_rule, fitted, Y=Y, T=T, X=X, groups=groups, propensity=0.5, **offered, **options)
    for verdict in (rule.values.verdict, free.values.verdict):
        assert "offer" in str(verdict) and "treatment" not in str(verdict)


def test_who_was_offered_what_and_who_took_it_are_counted(study, report):
    _, T, _, offered, _ = study
    flow = flow_of(report)
    assert flow.index.tolist()[:2] == ["offered", "took programme"]
    took = (T == "programme").groupby(offered["instrument"]).sum()
    assert flow.loc["took programme"].drop("all").to_dict() == took.to_dict()
