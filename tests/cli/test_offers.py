"""Offers that people may refuse, on the command line: what is asked, printed, saved, judged and refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from policytree import DRPolicyTree, RewardEstimator
from policytree.evaluation import instrument_summary, offer_rule
from policytree.weighting.study_data import StudyData
from tests.cli.running import FILES, refused, run
from tests.support.offers import vouchers

ASKED = ("--treatment", "taken", "--outcome", "score", "--instrument", "offer")
QUICK = ("--max-depth", "1", "--cv", "2", "--repeats", "1", "--stability", "0")
COSTS = ("--offer-cost", "voucher=0.2", "--taker-cost", "1")
X = ["age", "region"]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("offers")
    vouchers().to_csv(folder / "study.csv", index=False)
    vouchers(seed=9).to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def designed(files):
    """One whole run, with what offers and takers cost."""
    given = ("--cluster", "person", "--propensity", "0.5", "-o", files / "out")
    code, out, err = run("design", files / "study.csv", *ASKED, *COSTS, *QUICK, *given)
    assert code == 0, err
    assert "Warning" not in err and "Not answered" not in err
    return files, out


@pytest.fixture(scope="module")
def net():
    """Scores less what takers cost."""
    data = vouchers()
    return data["score"] - 1.0 * (data["taken"] == "programme")


@pytest.fixture(scope="module")
def tree(net):
    """The tree that the command should find."""
    data = vouchers()
    sizes = {"min_samples_leaf": 16, "min_samples_per_treatment": 8}
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0, **sizes)
    given = {"instrument": data["offer"], "groups": data["person"], "propensity": 0.5}
    return model.fit(StudyData.of(net, data["taken"], X=data[X], **given))


def section(folder, key: str) -> dict:
    content = json.loads((folder / "out" / "report.json").read_text())
    return next(part for part in content["sections"] if part["key"] == key)


def test_a_whole_run_says_what_values_are_and_shows_both_rules(designed):
    folder, out = designed
    data, said = vouchers(), flat(out)
    assert {path.name for path in (folder / "out").iterdir()} == FILES
    assert "offers offer, 2 offers (none, voucher)" in said and "covariates age, region" in said
    assert "costs 1 per taker of programme, offer voucher 0.2" in said and "known: 0.5 for voucher" in said
    assert f"which {(data['taken'] == 'programme').mean():.0%} of all rows took" in said
    assert "Values are gains over nothing per person of all; those who do not follow the offers count as zero" in said
    assert "The rule over offers (intention to treat) is a tree, proved to be the best" in said
    assert "net of what offers cost (voucher 0.2) and of 1 per taker of programme" in said
    values = pd.read_csv(folder / "out" / "values.csv", index_col="rule")
    assert values.loc["always nothing", "value"] == 0.0 and values.loc["policy tree", "standard_error"] > 0
    report = flat((folder / "out" / "report.txt").read_text())
    assert "bounds on hidden confounding of treatments have no meaning here" in report
    assert "heterogeneity_test with the offers as treatments" in report
    assert "Imbens GW, Angrist JD (1994)" in report and "Tan Z (2006)" in report
    assert "Overlap and balance of offers" in report


def test_the_tree_and_the_effect_on_compliers_are_those_of_the_library(designed, tree):
    folder, _ = designed
    found = json.loads((folder / "out" / "tree.json").read_text())
    assert found["certificate"]["objective"] == pytest.approx(tree.objective_value_, rel=1e-9)
    asked = {"instrument": "offer", "taker_cost": 1.0, "offer_costs": {"voucher": 0.2}}
    assert {name: found["design"][name] for name in asked} == asked
    assert found["design"]["propensity_arms"] == ["none", "voucher"]
    summary = instrument_summary(tree, groups=vouchers()["person"])
    offers = section(folder, "offers")
    table = next(block for block in offers["blocks"] if block.get("numbers"))
    assert table["numbers"][1]["effect"] == pytest.approx(summary.effect.value, rel=1e-9)
    low, high = summary.robust_interval
    facts = dict(next(block for block in offers["blocks"] if "pairs" in block)["pairs"])
    assert facts["effect on compliers"].startswith(f"{summary.effect.value:+.1f} [")
    assert facts["however weak the offers"].startswith(f"[{low:.1f}, {high:.1f}]")


def test_the_rule_over_offers_is_that_of_the_library(designed, tree):
    folder, _ = designed
    data = vouchers()
    rule = offer_rule(
        tree,
        StudyData.of(
            data["score"],
            data["taken"],
            X=data[X],
            instrument=data["offer"],
            groups=data["person"],
            propensity=0.5,
            control="none",
        ),
        offer_costs={"voucher": 0.2},
        treatment_cost=1.0,
        cv=2,
        n_repeats=1,
        random_state=0,
    )
    held_out = [block for block in section(folder, "offers")["blocks"] if "over offers" in block.get("caption", "")]
    found = {row["rule"]: row["value"] for row in held_out[0]["numbers"]}
    assert found == pytest.approx({rule: e.value for rule, e in rule.values.estimates.items()}, rel=1e-9)
    paid = data["score"] - (data["taken"] == "programme") - 0.2 * (data["offer"] == "voucher")
    assert found["as randomised"] == pytest.approx(paid.mean(), rel=1e-9)


def test_the_saved_tree_is_judged_by_new_offers(designed):
    folder, _ = designed
    code, out, err = run("evaluate", folder / "out" / "tree.json", folder / "new.csv", "--cv", "2", "--json")
    assert code == 0, err
    found, new = json.loads(out), vouchers(seed=9)
    fitted = RewardEstimator(method="instrument", estimand="compliers", cv=2, random_state=0).fit(
        StudyData.of(
            new["score"] - 1.0 * (new["taken"] == "programme"),
            new["taken"],
            X=new[X],
            instrument=new["offer"],
            groups=new["person"],
            propensity=0.5,
        )
    )
    values = {row["rule"]: row["value"] for row in found["values"]}
    assert values["always programme"] == pytest.approx(fitted.rewards_["programme"].mean(), rel=1e-9)
    assert values["as randomised"] == pytest.approx(fitted.outcome_.mean(), rel=1e-9)
    assert "Gain in mean score over nothing if everybody followed the rule" in found["about"]
    new.drop(columns="offer").to_csv(folder / "without.csv", index=False)
    lacking = run("evaluate", folder / "out" / "tree.json", folder / "without.csv")
    refused(lacking, "people could refuse what they were offered (--instrument offer)", "name it by --instrument")


def test_json_has_the_effect_and_the_rule_over_offers_of_rows_that_learnt(files):
    more = ("--honest", "0.4", "--max-depth", "1", "--cv", "2", "--stability", "0", "--json", "-o", files / "half")
    code, out, err = run("design", files / "study.csv", *ASKED, "--taker-cost", "1", *more)
    assert code == 0, err
    found = json.loads(out)
    offers = found["offers"]
    assert offers["effect_on_compliers"]["standard_error"] > 0 and offers["f_statistic"] > 10
    assert [row["offer"] for row in offers["table"]] == ["none", "voucher"]
    assert offers["rule"]["verdict"]["sentence"] and offers["rule"]["certificate"]["gap"] == 0.0
    assert "before costs" not in offers["rule"]["verdict"]["sentence"]
    assert found["outcome"]["instrument"] == "offer" and found["outcome"]["value"] == "gain in mean score over nothing"
    assert {row["rule"] for row in offers["rule"]["values"]} >= {"always none", "always voucher", "status quo"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--instrument", "taken"), "--instrument names 'taken', which is the treatment; leave it out."),
        (("--instrument", "score"), "--instrument names 'score', which is the outcome"),
        (("--instrument", "nobody"), "nobody"),
        (("--instrument", "same"), "instrument"),
        (("--instrument", "gaps"), "Column 'gaps' (--instrument) has no value in 5 of 280 rows"),
        (("--treatment", "region", "--instrument", "offer"), "An instrument tells apart two treatments, and T holds 3"),
        (("--instrument", "offer", "--covariates", "age,offer"), "names 'offer', which is the instrument; leave it"),
        (("--instrument", "offer", "--confounders", "offer"), "names 'offer', which is the instrument; leave it"),
        (("--instrument", "offer", "--arm-cost", "programme=2"), "give --taker-cost, and --offer-cost"),
        (("--instrument", "offer", "--offer-cost", "free=2"), "--offer-cost names the offer 'free'; the offers are"),
        (("--instrument", "offer", "--offer-cost", "voucher=region"), "(--offer-cost voucher=region) holds no numbers"),
        (
            ("--instrument", "offer", "--offer-cost", "voucher=age"),
            "(--offer-cost voucher=age) has no cost in 22 of 280",
        ),
        (("--instrument", "offer", "--covariates", "age,twin"), "Column 'twin' of X tells the instrument's value"),
        (("--instrument", "offer", "--propensity", "programme=0.5,nothing=0.5"), "names the offer 'programme'"),
        (("--instrument", "offer", "--method", "ipw"), "--method ipw knows no instrument; leave it out."),
        (("--taker-cost", "3"), "--taker-cost is about offers that people may refuse; name the column"),
        (("--offer-cost", "voucher=3"), "--offer-cost is about offers that people may refuse"),
    ],
)
def test_slips_are_one_sentence(tmp_path, more, words):
    data = vouchers().assign(same="yes", gaps=lambda frame: frame["offer"], twin=lambda frame: frame["offer"].str.len())
    data.loc[:4, "gaps"] = np.nan
    data.to_csv(tmp_path / "study.csv", index=False)
    refused(run("design", tmp_path / "study.csv", *ASKED[:4], *more, "-o", tmp_path / "out"), words)


def test_takers_cannot_cost_time(tmp_path):
    data = vouchers().assign(dead=1, days=lambda frame: frame["score"].clip(lower=1))
    data.to_csv(tmp_path / "study.csv", index=False)
    asked = ("--treatment", "taken", "--outcome", "days", "--event-column", "dead", "--instrument", "offer")
    found = run("design", tmp_path / "study.csv", *asked, "--taker-cost", "1", "-o", tmp_path / "out")
    refused(found, "--taker-cost cannot be subtracted from times to an event")


def test_one_sided_with_weights_strata_and_a_column_of_costs(tmp_path):
    data = vouchers()
    rng = np.random.default_rng(3)
    data["offered"] = (data["offer"] == "voucher").astype(int)
    data["took"] = ((data["taken"] == "programme") & (data["offered"] == 1)).astype(int)
    data["weight"], data["price"] = rng.uniform(0.5, 2, 280).round(2), rng.uniform(0, 1, 280).round(2)
    data["site"] = rng.choice(["a", "b"], 280)
    data.to_csv(tmp_path / "study.csv", index=False)
    asked = ("--treatment", "took", "--outcome", "score", "--instrument", "offered", "--covariates", "age,region")
    more = ("--offer-cost", "1=price", "--weights", "weight", "--strata", "site", "--no-value")
    code, out, err = run("design", tmp_path / "study.csv", *asked, *more, *QUICK[:4], "-o", tmp_path / "out")
    assert code == 0, err
    assert "nobody takes 1 under 0: the effect is that on all who take it" in flat(out)
    assert f"net of what offers cost (1 {data['price'].mean():.4g} on average)" in flat(
        out
    ) and "Its held-out value was not computed." in flat(out)


def test_fewer_is_better_with_three_offers_and_missing_outcomes(tmp_path):
    data = vouchers()
    rng = np.random.default_rng(3)
    data["offer"] = data["offer"].mask((data["offer"] == "none") & (rng.random(280) < 0.4), "letter")
    data["score"] = data["score"].mask(rng.random(280) < 0.1)
    data.to_csv(tmp_path / "study.csv", index=False)
    more = ("--missing-outcome", "weight", "--taker-cost", "1", "--direction", "minimize", "--no-value")
    code, _, err = run("design", tmp_path / "study.csv", *ASKED, *more, *QUICK[:4], "-o", tmp_path / "out")
    assert code == 0, err
    report = flat((tmp_path / "out" / "report.txt").read_text())
    assert "for the lowest gain in mean score over nothing?" in report
    assert "all offers the same effect chi-square" in report and "1 degrees of freedom" in report


def test_offers_that_move_nobody_are_refused_with_the_remedy(tmp_path):
    data = vouchers()
    data["offer"] = np.random.default_rng(1).permutation(data["offer"])
    data.to_csv(tmp_path / "study.csv", index=False)
    found = run("design", tmp_path / "study.csv", *ASKED, *QUICK, "-o", tmp_path / "out")
    refused(found, "instrument hardly changes which treatment people get", "Judge the offers themselves")
    code, out, _ = run("check", tmp_path / "study.csv", *ASKED)
    assert code == 0 and "Serious: Offer hardly changes what people take (first-stage F" in flat(out)


def test_check_looks_at_the_offers(tmp_path):
    data = vouchers()
    data.loc[data.index[:9], "offer"] = "a loan"
    data["site"] = np.where(data["offer"] == "voucher", "in", "out")
    data.to_csv(tmp_path / "study.csv", index=False)
    code, out, err = run("check", tmp_path / "study.csv", *ASKED, "--cluster", "person", "--json")
    assert code == 0, err
    found = {(row["kind"], row["column"]) for row in json.loads(out)["findings"]}
    assert ("rare offer", "Offer a loan") in found and ("determines treatment", "site") in found
    assert ("varies within clusters", "Offer") in found
    assert not any(column.startswith("Treatment") for _, column in found)
