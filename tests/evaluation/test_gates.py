"""The gates of a verdict: a broken question is withheld or marked, a clear one is not, in Python and elsewhere."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, RewardEstimator, Study, cross_val_policy_value
from policytree.evaluation.policy_value.confounding import Hidden, strongest
from policytree.evaluation.policy_value.gate import Gate, merged, strength_of
from policytree.evaluation.policy_value.gates import chances_gate, confounder_gate, other_models_gate, rows_gate
from policytree.evaluation.policy_value.verdict import SecondOpinion
from policytree.exceptions import InputError
from policytree.study_check.directions import direction_of
from policytree.weighting.study_data import StudyData, by_columns
from tests.cli.running import run
from tests.support.offers import vouchers

HARM = (
    "died", "Died", "death30", "30day_mortality", "mortality_risk", "pain_score", "PainScore", "relapse.2y", "LOS",
    "readmitted", "ReadmittedWithin30", "total_cost", "adverse-events", "fail", "toxicity", "cens", "overdoses",
)  # fmt: skip
GOOD = ("alive_90d", "Survived", "survival", "recovered", "response", "qol", "quality_of_life", "no_relapse")
OPEN = ("y", "hba1c", "re78", "score_month3", "time_to_death", "days", "pain_relief", "cost_savings", "weight_loss")


@pytest.mark.parametrize("name", HARM)
def test_a_name_of_harm_is_refused_without_a_direction(name):
    with pytest.raises(InputError, match="sounds like harm; say --direction minimize"):
        direction_of(None, name)
    assert direction_of("maximize", name).known


@pytest.mark.parametrize("name", GOOD)
def test_a_good_name_is_evident(name):
    assert direction_of(None, name).known


@pytest.mark.parametrize("name", [*OPEN, None])
def test_any_other_name_is_asked_about(name):
    found = direction_of(None, name)
    assert (found.known, found.way) == (False, "maximize") and found.reason.startswith("Nobody said whether more")


def trial(n=300, seed=0, *, share=0.5, effect=0.0, name="score"):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(20, 80, size=n), "weight": rng.normal(70, 10, size=n)})
    T = np.where(rng.random(n) < share, "drug", "placebo")
    Y = pd.Series(0.02 * (X["age"] - 50) + effect * (T == "drug") + rng.normal(size=n), name=name)
    return X, pd.Series(T, name="arm"), Y


def judged(X, T, Y, *, direction="maximize", **options):
    model = DRPolicyTree(
        LinearRegression(), LogisticRegression(), max_depth=1, cv=2, direction=direction, random_state=0
    )
    return by_columns(
        cross_val_policy_value, model, Y=Y, T=T, X=X, cv=2, n_repeats=1, random_state=0, **options
    ).verdict


def states(verdict):
    return {gate.name: gate.state for gate in verdict.gates}


def test_a_clear_question_passes_all_gates():
    X, T, Y = trial(effect=1.0)
    found = judged(X, T, Y, propensity=0.5, control="placebo")
    assert found.strength == "supported" and str(found).startswith("Give drug to everybody")
    assert list(states(found)) == [
        "better direction", "assignment", "stated probabilities", "data check", "estimated outcomes",
    ]  # fmt: skip
    assert set(states(found).values()) == {"supported"}


def test_an_outcome_named_died_needs_a_direction():
    X, T, Y = trial(name="died")
    with pytest.raises(InputError, match="'died' is better, and the name sounds like harm"):
        judged(X, T, Y, direction=None, propensity=0.5)
    with pytest.raises(InputError, match="sounds like harm"):
        DRPolicyTree(max_depth=1).fit(Y, T, X=X, propensity=0.5)
    assert judged(X, T, Y, direction="minimize", propensity=0.5).strength == "supported"


def test_an_open_direction_is_asked_about_first():
    X, T, Y = trial(effect=1.0)
    found = judged(X, T, Y, direction=None, propensity=0.5, control="placebo")
    assert found.strength == "fragile" and found.rule == "always drug"
    assert str(found).startswith(
        "This is fragile: nobody said whether more 'score' is better, and this holds only if it is. Give drug"
    )


def test_one_number_other_than_a_half_needs_a_label():
    X, T, Y = trial(share=2 / 3)
    with pytest.raises(
        InputError, match=r"drug=0.667,placebo=0.333 or placebo=0.667,drug=0.333.*the shares are drug 0.6"
    ):
        judged(X, T, Y, propensity=0.667)
    assert judged(X, T, Y, propensity={"drug": 2 / 3, "placebo": 1 / 3}).strength == "supported"
    swapped = judged(X, T, Y, propensity={"drug": 1 / 3, "placebo": 2 / 3})
    assert states(swapped)["stated probabilities"] == swapped.strength == "cannot be said"
    assert str(swapped).startswith("These data cannot say what to do") and not swapped.use_tree


def test_a_mediator_ends_in_cannot_be_said():
    rng = np.random.default_rng(0)
    n = 200
    T = rng.permutation(np.repeat(["drug", "placebo"], n // 2))
    M = (T == "drug") + rng.normal(size=n)
    X = pd.DataFrame({"age": rng.integers(20, 80, size=n), "marker": M})
    Y = pd.Series(M - 0.1 * (T == "drug") + 0.7 * rng.normal(size=n), name="score")
    found = judged(X, T, Y, propensity=0.5, control="placebo")
    assert states(found)["estimated outcomes"] == "cannot be said" and states(found)["data check"] == "supported"
    assert "was measured after treatment" not in str(found) and "measured after treatment" in str(found)


def test_a_leak_withholds_the_verdict_in_python():
    X, T, Y = trial(effect=1.0)
    found = judged(X.assign(other=np.exp(Y)), T, Y, propensity=0.5, control="placebo")
    assert states(found)["data check"] == "cannot be said" and "other nearly determines the outcome" in str(found)


def test_repeated_ids_without_clusters_withhold_the_verdict():
    X, T, Y = trial(effect=1.0)
    twice = X.assign(patient_id=np.arange(300) // 2)
    assert states(judged(twice, T, Y, propensity=0.5))["data check"] == "cannot be said"
    assert judged(twice, T, Y, propensity=0.5, groups=twice["patient_id"]).strength == "supported"


def test_few_rows_with_estimated_chances_are_fragile():
    X, T, Y = trial(effect=1.0)
    found = judged(X, T, Y, control="placebo")
    assert states(found)["number of rows"] == found.strength == "fragile" and found.rule == "always drug"
    assert str(found).startswith("This is fragile: with 300 rows and estimated probabilities")
    assert states(judged(*trial(n=600, effect=1.0)))["number of rows"] == "supported"


def test_given_chances_are_tested_exactly():
    T = np.repeat(["a", "b"], [70, 30])
    seen = StudyData.of(np.zeros(100), T)
    p = 2 * binom.cdf(30, 100, 0.5)  # symmetric
    gate = chances_gate(seen, np.full((100, 2), 0.5))
    assert gate.state == "cannot be said" and f"p = {p:.2g}" in gate.reason
    three = StudyData.of(np.zeros(300), np.repeat(["a", "b", "c"], [140, 80, 80]))
    p = chi2.sf(((np.array([140, 80, 80]) - 100) ** 2 / 100).sum(), 2)
    assert f"p = {p:.2g}" in chances_gate(three, np.full((300, 3), 1 / 3)).reason


def test_given_chances_are_tested_by_stratum_and_by_cluster():
    strata = np.repeat(["s", "t"], 200)
    T = np.concatenate([np.repeat(["a", "b"], [140, 60]), np.repeat(["a", "b"], [60, 140])])
    half = np.full((400, 2), 0.5)
    assert chances_gate(StudyData.of(np.zeros(400), T), half).state == "supported"
    assert chances_gate(StudyData.of(np.zeros(400), T, strata=strata), half).state == "cannot be said"
    clusters = np.arange(400) // 40  # ten clusters, of which seven have one arm: no clash
    whole = np.where(clusters < 7, "a", "b")
    assert chances_gate(StudyData.of(np.zeros(400), whole), half).state == "cannot be said"
    assert chances_gate(StudyData.of(np.zeros(400), whole, groups=clusters), half).state == "supported"


def test_another_model_that_says_the_contrary_makes_a_verdict_fragile():
    def opinion(of: str, model: str, rule: str) -> SimpleNamespace:
        return SecondOpinion(of, of, model, SimpleNamespace(rule=rule))

    agrees = opinion("outcomes", "boosted trees", "always a")
    gate = other_models_gate([agrees], "always a")
    assert gate.state == "supported"
    assert gate.reason == "the verdict is the same under boosted trees as the model of outcomes"
    gate = other_models_gate([opinion("treatment", "a penalised logit", "always b"), agrees], "always a")
    assert gate.state == "fragile"
    assert gate.reason == (
        "The conclusion changes under a penalised logit as the model of treatment: give b to everybody"
    )
    assert gate.remedy == "Compare the models of treatment before anybody acts on either."


def test_gates_of_offers_speak_of_offers():
    """Nobody draws treatments where people may refuse what they are offered."""
    people = vouchers()
    seen = StudyData.of(people["score"], people["taken"], instrument=people["offer"]).by_offer()
    assert rows_gate(seen).reason.startswith("With 280 rows and estimated probabilities of the offer")
    assert "if offers were given by chance" in rows_gate(seen).remedy
    assert chances_gate(seen, np.full((280, 2), 0.5)).reason == "the shares of offers fit the stated probabilities"
    wrong = chances_gate(seen, np.tile([0.9, 0.1], (280, 1)))
    assert wrong.reason.startswith("the shares of offers refute") and "probability of each offer" in wrong.remedy
    other = SecondOpinion("treatment", seen.assigned, "a penalised logit", SimpleNamespace(rule="always none"))
    outcomes = SecondOpinion("outcomes", "outcomes", "boosted trees", SimpleNamespace(rule="always none"))
    gate = other_models_gate([other, outcomes], "always voucher")
    assert "under a penalised logit as the model of the offer: " in gate.reason
    assert gate.remedy == "Compare the models of the offer and outcomes before anybody acts on either."
    assert not any("treatment" in text for text in (gate.reason, gate.remedy, wrong.reason, wrong.remedy))
    assert other.compared_with(SimpleNamespace(rule="always none")).endswith("as the model of the offer.")


def test_a_gate_that_failed_once_has_failed():
    good, bad = Gate("rows", "supported", "many"), Gate("rows", "fragile", "few")
    assert merged([bad, good]) == merged([good, bad]) == merged([bad, bad]) == (bad,)
    assert (strength_of([]), strength_of([good, bad])) == ("supported", "fragile")


def test_a_confounder_as_strong_as_a_covariate_makes_a_verdict_fragile():
    assert confounder_gate(Hidden("a - b", 0.3, {"age": -0.1, "sex": 0.2})).state == "supported"
    gate = confounder_gate(Hidden("a - b", 0.3, {"age": -0.4, "sex": 0.2}))
    assert gate.state == "fragile" and gate.reason.startswith(
        "A hidden confounder as strong as age could explain a - b"
    )
    gate = confounder_gate(Hidden("a - b", 0.3, {}, problem="No column 'age'."))
    assert gate.state == "fragile" and "was not computed (No column 'age')" in gate.reason


# --- observational studies: the same gates wherever the question is asked ---


def observed(effect, n=600, seed=0):
    """The sick are treated and do worse; two further columns say nothing of either."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(20, 80, size=n), "sick": rng.normal(size=n), "site": rng.choice([*"xyz"], n)})
    T = np.where(rng.random(n) < 1 / (1 + np.exp(-1.5 * X["sick"])), "drug", "placebo")
    Y = pd.Series(effect * (T == "drug") - X["sick"] + rng.normal(size=n), name="score")
    return X, pd.Series(T, name="arm"), Y


def test_the_columns_to_hide_are_those_that_decide_about_treatment_and_outcome():
    X, T, Y = observed(1.0)
    seen = StudyData.of(Y, T)
    assert strongest(seen, X, None, 1) == ["sick"] and strongest(seen, X[["age"]], X[["sick"]], 1) == ["sick"]
    assert set(strongest(seen, X, None, 9)) == {"age", "sick", "site"}
    assert strongest(seen, X[["sick"]], None, 3) == strongest(seen, X, None, 0) == []
    assert strongest(seen, X.assign(twice=2 * X["sick"])[["age", "site"]].to_numpy(dtype=object), None, 1) in ([0], [1])


def test_a_strong_confounder_that_was_seen_is_the_measure_in_python():
    """Without the column the drug looks 1.1 worse: more than an effect of .6, less than one of 3."""
    weak, strong = (judged(*observed(effect), control="placebo") for effect in (0.6, 3.0))
    assert weak.rule == strong.rule == "always drug"
    assert list(states(strong)) == [
        "better direction", "assignment", "data check", "estimated outcomes", "number of rows", "hidden confounder",
    ]  # fmt: skip
    assert states(strong).pop("assignment") == "assumed", "no data can show it, so that it is no finding"
    assert [name for name, state in states(strong).items() if state != "supported"] == ["assignment"]
    assert strong.strength == "supported" and "assum" not in strong.reasons and "as good as random" in strong.assumption
    assert [name for name, state in states(weak).items() if state == "fragile"] == ["hidden confounder"]
    assert str(weak).startswith(
        "This is fragile: a hidden confounder as strong as sick could explain always drug - always placebo (+0."
    )
    assert str(weak).endswith("(no unmeasured confounding), which no data can show.")
    assert "hidden confounder" not in states(judged(*observed(0.6), control="placebo", benchmarks=0))


def test_hiding_a_column_moves_what_its_omission_moves():
    """By hand: the same nuisances without the column, and the same rules."""
    X, T, Y = observed(0.6)
    model = DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, cv=2, direction="maximize",
                         random_state=0)  # fmt: skip
    model.fit(Y, T, X=X)
    table = cross_val_policy_value(model, StudyData.of(Y, T, X=X, control="placebo"), cv=2, n_repeats=1, random_state=0)
    means = [
        np.subtract(*RewardEstimator(LinearRegression(), LogisticRegression(), cv=2, random_state=0)
                    .fit(Y, T, X=columns).rewards_[["drug", "placebo"]].mean())
        for columns in (X, X[["age", "site"]])
    ]  # fmt: skip
    assert table.hidden.moved["sick"] == pytest.approx(means[1] - means[0])
    unfitted = cross_val_policy_value(
        clone(model), StudyData.of(Y, T, X=X, control="placebo"), cv=2, n_repeats=1, random_state=0
    )
    assert unfitted.hidden.moved == pytest.approx(table.hidden.moved)
    assert unfitted.verdict.gates == table.verdict.gates


@pytest.mark.parametrize("effect", [0.6, 3.0])
def test_python_and_design_pass_the_same_gates(effect, tmp_path):
    X, T, Y = observed(effect, n=520)
    frame = X.assign(arm=T, score=Y)
    frame.to_csv(tmp_path / "study.csv", index=False)
    code, out, err = run(
        "design", tmp_path / "study.csv", "--treatment", "arm", "--outcome", "score", "--direction", "maximize",
        "--max-depth", "1", "--cv", "2", "--repeats", "1", "--stability", "0", "--json", "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    designed = json.loads(out)["verdict"]
    study = Study(
        pd.read_csv(tmp_path / "study.csv"), outcome="score", treatment="arm", covariates=list(X.columns),
        direction="maximize", control="placebo",
    )  # fmt: skip
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    found = cross_val_policy_value(model, study, cv=2, n_repeats=1, random_state=0).verdict
    assert [(g.name, g.state) for g in found.gates] == [(g["name"], g["state"]) for g in designed["gates"]]
    assert {"other models", "hidden confounder", "number of rows"} <= set(states(found))
    assert states(found)["hidden confounder"] == ("fragile" if effect < 1 else "supported")
    assert (found.strength, found.rule) == (designed["strength"], designed["rule"])
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())["verdict"]
    assert saved["gates"] == designed["gates"]
    X, T, Y = observed(effect, n=520, seed=1)
    X.assign(arm=T, score=Y).to_csv(tmp_path / "new.csv", index=False)
    code, out, err = run("evaluate", tmp_path / "out" / "tree.json", tmp_path / "new.csv", "--cv", "2", "--json")
    assert code == 0, err
    again = json.loads(out)["verdict"]
    assert [g["name"] for g in again["gates"]] == [g["name"] for g in designed["gates"]]
    by_name = {g["name"]: g["state"] for g in again["gates"]}
    assert (
        by_name["hidden confounder"] == states(found)["hidden confounder"] and by_name["number of rows"] == "supported"
    )


def mediated(seed):
    """Draw a trial with a mediator of the treatment among the covariates."""
    X, T, _ = trial(n=240, seed=seed)
    marker = (T == "drug") + np.random.default_rng(seed).normal(size=240)
    return X.assign(marker=marker), T, (marker + 0.7 * np.random.default_rng(seed + 9).normal(size=240)).rename("score")


def leaking(seed):
    X, T, Y = trial(n=240, seed=seed)
    return X.assign(other=np.exp(Y)), T, Y


@pytest.mark.parametrize(
    ("gate", "state", "make", "stated"),
    [
        ("better direction", "fragile", lambda seed: trial(n=240, seed=seed, effect=1.0), {"direction": None}),
        ("stated probabilities", "cannot be said", lambda seed: trial(n=240, seed=seed), {"drug": 0.3}),
        ("data check", "cannot be said", leaking, {}),
        ("estimated outcomes", "cannot be said", mediated, {}),
    ],
)  # fmt: skip
def test_python_design_and_evaluate_agree_on_a_gate_that_fails(gate, state, make, stated, tmp_path):
    drug, direction = stated.get("drug", 0.5), stated.get("direction", "maximize")
    for name, seed in (("study", 0), ("new", 1)):
        X, T, Y = make(seed)
        X.assign(arm=T, score=Y).to_csv(tmp_path / f"{name}.csv", index=False)
    chances = f"drug={drug},placebo={1 - drug}"
    said = [] if direction is None else ["--direction", direction]
    code, out, err = run(
        "design", tmp_path / "study.csv", "--treatment", "arm", "--outcome", "score", "--propensity", chances,
        "--max-depth", "1", "--cv", "2", "--repeats", "1", "--stability", "0", "--json", "-o", tmp_path / "out", *said,
    )  # fmt: skip
    assert code == 0, err
    designed = json.loads(out)["verdict"]
    code, out, err = run("evaluate", tmp_path / "out" / "tree.json", tmp_path / "new.csv", "--cv", "2", "--json")
    assert code == 0, err
    again = json.loads(out)["verdict"]
    study = Study(
        pd.read_csv(tmp_path / "study.csv"), outcome="score", treatment="arm", direction=direction, control="placebo",
        covariates=[name for name in X.columns], propensity={"drug": drug, "placebo": 1 - drug},
    )  # fmt: skip
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    found = cross_val_policy_value(model, study, cv=2, n_repeats=1, random_state=0).verdict
    for gates in (states(found), *({g["name"]: g["state"] for g in each["gates"]} for each in (designed, again))):
        assert gates == dict.fromkeys(states(found), "supported") | {gate: state}
    assert {found.strength, designed["strength"], again["strength"]} == {state}


def test_trials_are_not_asked_what_observational_studies_are():
    """Few rows, second models and hidden confounders do not matter where treatments were drawn by lot."""
    X, T, Y = trial(n=200, effect=1.0)
    known = {"propensity": {"drug": 0.5, "placebo": 0.5}}
    for how in ({"randomized": True}, known, {**known, "randomized": False}):
        found = judged(X, T, Y, control="placebo", **how)
        assert found.strength == "supported" and found.rule == "always drug"
        assert not {"number of rows", "other models", "hidden confounder"} & set(states(found))
    assert states(judged(X, T, Y, control="placebo"))["number of rows"] == "fragile"


def test_small_trials_are_not_fragile_on_the_command_line(tmp_path):
    """By --randomized, and by probabilities with labels; without either the rows are few."""
    X, T, Y = trial(n=200, effect=1.0)
    X.assign(arm=T, score=Y).to_csv(tmp_path / "trial.csv", index=False)
    for how in (["--randomized"], ["--propensity", "drug=0.5,placebo=0.5"], []):
        code, out, err = run(
            "design", tmp_path / "trial.csv", "--treatment", "arm", "--outcome", "score", "--direction", "maximize",
            "--max-depth", "1", "--cv", "2", "--repeats", "1", "--stability", "0", "--json", "-o", tmp_path / "out",
            *how,
        )  # fmt: skip
        assert code == 0, err
        found = json.loads(out)
        gates = {gate["name"]: gate["state"] for gate in found["verdict"]["gates"]}
        rules = [row["rule"] for row in found["values"]]
        if how:
            assert (
                found["verdict"]["strength"] == "supported"
                and "number of rows" not in gates
                and "as randomised" in rules
            )
        else:
            assert gates["number of rows"] == found["verdict"]["strength"] == "fragile" and "status quo" in rules
