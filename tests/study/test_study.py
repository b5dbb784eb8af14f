"""Study: one value for the table and its roles; rewards and values by it are those of the same columns one by one."""

from __future__ import annotations

import dataclasses
import inspect
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import (
    DRPolicyTree,
    OptimalTreeClassifier,
    PolicyTree,
    RewardEstimator,
    Study,
    cross_val_policy_value,
    held_out_rewards,
    heterogeneity_test,
    honest_leaf_summary,
    load_dataset,
)
from policytree.common.calls import SAID_BY_STUDY
from policytree.constraints import Budget
from policytree.evaluation import (
    nuisances_without,
    offer_rule,
    policy_stability,
    surest_rule,
)
from policytree.exceptions import InputError
from policytree.study import Event, Label, MayBeMissing, Offered, Population, Rewards, TimeToEvent
from policytree.study.assignments import Combined
from policytree.study.outcomes import Number
from policytree.study_check import check_study
from policytree.weighting import MatchingRewards
from policytree.weighting.instrument import COMPLIERS
from policytree.weighting.study_data import StudyData

N = 240


def people(arms=("drug", "none")) -> pd.DataFrame:
    """A trial of N people, with a column for every role."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 80, size=N),
            "sex": rng.choice(["f", "m"], size=N),
            "site": rng.integers(3, size=N),
            "family": rng.integers(N // 2, size=N),
            "weight": rng.uniform(0.5, 2.0, size=N),
            "arm": rng.choice(list(arms), size=N),
        }
    )
    table["score"] = np.where(table["age"] > 50, 1.0, -1.0) * (table["arm"] == "drug") + rng.normal(size=N)
    table["status"] = np.where(table["score"] > 0, "well", "relapse")
    table["later"] = table["score"].where(rng.uniform(size=N) > 0.2)
    table["days"] = np.ceil(rng.exponential(100, size=N))
    table["cause"] = rng.choice([0, 1, 2], size=N)
    table["died"] = (table["cause"] > 0).astype(int)
    table["entered"] = np.floor(table["days"] * rng.uniform(0, 0.5, size=N))
    table["offer"] = rng.choice(["letter", "no letter"], size=N)
    table["took"] = np.where((table["offer"] == "letter") & (rng.uniform(size=N) < 0.8), "yes", "no")
    table["chance"] = np.where(table["site"] == 0, 0.4, 0.5)
    table["fee"] = rng.uniform(0, 0.1, size=N)
    return table


BASE = {"covariates": ["age", "sex"], "direction": "maximize"}
TABLE = people()
X = TABLE[["age", "sex"]]
OTHERS = people().iloc[::2].reset_index(drop=True)
#: By the name of a kind: how a study says it, and how the arguments of ``fit`` do.
KINDS = {
    "two arms": ({"treatment": "arm", "outcome": "score"}, {"Y": TABLE["score"]}),
    "confounders": (
        {"treatment": "arm", "outcome": "score", "confounders": ["site"]},
        {"Y": TABLE["score"], "W": TABLE[["site"]]},
    ),
    "three arms": (
        {"treatment": "arm3", "outcome": "score"},
        {"Y": TABLE["score"], "T": people(["drug", "none", "talk"])["arm"]},
    ),
    "known chances": (
        {"treatment": "arm", "outcome": "score", "propensity": {"drug": 0.5, "none": 0.5}},
        {"Y": TABLE["score"], "propensity": {"drug": 0.5, "none": 0.5}},
    ),
    "chances by row": (
        {"treatment": "arm", "outcome": "score", "propensity": "chance"},
        {"Y": TABLE["score"], "propensity": TABLE["chance"]},
    ),
    "clusters, strata, weights": (
        {"treatment": "arm", "outcome": "score", "cluster": "family", "strata": ["site"], "weights": "weight"},
        {
            "Y": TABLE["score"], "groups": TABLE["family"], "strata": TABLE[["site"]],
            "sample_weight": TABLE["weight"],
        },
    ),
    "event in words": (
        {"treatment": "arm", "outcome": Event("status", "well")},
        {"Y": (TABLE["status"] == "well").astype(float)},
    ),
    "missing outcomes": (
        {"treatment": "arm", "outcome": MayBeMissing("later")},
        {"Y": TABLE["later"], "missing_outcome": "weight"},
    ),
    "times": (
        {"treatment": "arm", "outcome": TimeToEvent("days", event="died", horizon=60)},
        {"Y": TABLE["days"], "event": TABLE["died"], "horizon": 60},
    ),
    "a cause, late entries": (
        {
            "treatment": "arm", "direction": "minimize",
            "outcome": TimeToEvent("days", event="cause", cause=1, entry="entered", measure="cumulative_incidence"),
        },
        {
            "Y": TABLE["days"], "event": TABLE["cause"], "cause": 1, "entry": TABLE["entered"],
            "target": "cumulative_incidence",
        },
    ),
    "offers": (
        {"treatment": Offered("took", by="offer"), "outcome": "score"},
        {"Y": TABLE["score"], "T": TABLE["took"], "instrument": TABLE["offer"]},
    ),
    "two treatments at once": (
        {"treatment": ["arm", "offer"], "outcome": "score"},
        {"Y": TABLE["score"], "T": TABLE[["arm", "offer"]]},
    ),
    "people by weights": (
        {"treatment": "arm", "outcome": "score", "population": Population(weights="weight")},
        {"Y": TABLE["score"], "target_weights": TABLE["weight"]},
    ),
    "other people": (
        {"treatment": "arm", "outcome": "score", "population": Population(OTHERS)},
        {"Y": TABLE["score"], "target_X": OTHERS[["age", "sex"]]},
    ),
}  # fmt: skip


def study_of(kind: str, **more) -> Study:
    table = TABLE.assign(arm3=people(["drug", "none", "talk"])["arm"])
    return Study(table, **(BASE | KINDS[kind][0] | more))


def rewards_of(kind: str) -> RewardEstimator:
    how = {"method": "instrument", "estimand": COMPLIERS} if kind == "offers" else {}
    return RewardEstimator(cv=2, random_state=0, **how)


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_of_a_study_are_those_of_its_columns_to_the_last_bit(kind):
    by_study = rewards_of(kind).fit(study_of(kind)).rewards_
    columns = {"T": TABLE["arm"], "X": X} | KINDS[kind][1]
    one_by_one = rewards_of(kind).fit(StudyData.of(**columns)).rewards_
    np.testing.assert_array_equal(by_study.to_numpy(), one_by_one.to_numpy())
    assert by_study.columns.tolist() == one_by_one.columns.tolist()


def test_a_tree_and_its_values_are_those_of_the_columns():
    study = study_of("known chances", control="none", arm_costs={"drug": "fee"})
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    columns = {
        "T": TABLE["arm"], "X": X, "propensity": {"drug": 0.5, "none": 0.5},
        "sample_treatment_costs": {"drug": TABLE["fee"]},
    }  # fmt: skip
    fitted = model.fit(study)
    columns |= {"Y": TABLE["score"]}
    alike = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(StudyData.of(**columns))
    assert fitted.to_json() == alike.to_json()
    how = {"cv": 2, "n_repeats": 1, "random_state": 0}
    by_study = cross_val_policy_value(model, study, **how)
    stated = DRPolicyTree(max_depth=1, cv=2, random_state=0, direction="maximize")
    stated.fit(StudyData.of(**columns))
    values = cross_val_policy_value(stated, StudyData.of(**columns, control="none"), **how)
    assert str(by_study.verdict) == str(values.verdict)
    assert by_study.verdict.reference == "always none"
    pd.testing.assert_frame_equal(by_study.to_frame(), values.to_frame())


def test_other_questions_take_a_study():
    study = study_of("two arms")
    assert study.check() == check_study(TABLE["score"], TABLE["arm"], X=X)
    by_columns = heterogeneity_test(TABLE["score"], TABLE["arm"], X=X, random_state=0)
    assert str(heterogeneity_test(study, random_state=0)) == str(by_columns)
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    assert policy_stability(model, study, n_resamples=2, random_state=0).n_resamples == 2


def test_unnamed_covariates_are_the_columns_without_another_role():
    table = TABLE[["age", "sex", "site", "arm", "score", "family", "chance"]].assign(
        seen=pd.date_range("2024-01-01", periods=N), name=[f"person {i}" for i in range(N)]
    )
    study = Study(
        table, treatment="arm", outcome="score", cluster="family", propensity="chance", confounders="site",
        exclude=["sex"],
    )  # fmt: skip
    assert study.covariates == ("age",)
    assert study.notes[1:] == (
        "Column 'seen' holds dates and was left out of the covariates.",
        "Column 'name' has 240 different texts and was left out of the covariates.",
    )


def test_rows_of_a_study_keep_its_roles_and_its_horizon():
    study = study_of("times")
    half = study[::2]
    assert (len(half), half.covariates, half.outcome.horizon) == (N // 2, ("age", "sex"), 60)
    chosen = study[(TABLE["age"] > 40).to_numpy()]
    assert chosen.X["age"].min() > 40
    with pytest.raises(InputError, match="The mask has 3 values, but the study has 240 rows"):
        study[np.array([True, False, True])]


def test_trees_take_studies_of_rewards_and_of_labels():
    table = TABLE.assign(drug=TABLE["score"], none=0.1)
    study = Study(table, **BASE, outcome=Rewards(["drug", "none"]), weights="weight")
    tree = PolicyTree(max_depth=1).fit(study)
    columns = PolicyTree(max_depth=1).fit(X, table[["drug", "none"]], sample_weight=table["weight"])
    assert tree.to_json() == columns.to_json()
    labels = study.replace(outcome=Label("status"), direction=None)
    by_columns = OptimalTreeClassifier(max_depth=1).fit(X, table["status"], sample_weight=table["weight"])
    assert OptimalTreeClassifier(max_depth=1).fit(labels).to_json() == by_columns.to_json()
    assert PolicyTree(max_depth=1).fit(X=study).to_json() == tree.to_json()
    assert OptimalTreeClassifier(max_depth=1).fit(X=labels).to_json() == by_columns.to_json()
    for fit, words in [
        (lambda: PolicyTree(direction="minimize").fit(study), "has direction='maximize', but the estimator"),
        (lambda: PolicyTree().fit(study_of("two arms")), r"that of this one is to be learnt from; DRPolicyTree\(\)"),
        (lambda: PolicyTree().fit(labels), "fit knows no y, which the study has"),
        (lambda: PolicyTree().fit(X=labels), "fit knows no y, which the study has"),
        (lambda: PolicyTree().fit(study, table[["drug", "none"]]), "a study, which says rewards already"),
        (lambda: PolicyTree().fit(X=study, rewards=table[["drug", "none"]]), "a study, which says rewards already"),
        (lambda: PolicyTree().fit(study.replace(strata=["site"])), "fit knows no strata, which the study has"),
        (lambda: DRPolicyTree().fit(study), "needs outcomes and treatments as they were observed"),
        (lambda: study.check(), "needs outcomes and treatments as they were observed"),
        (lambda: study.Y, "this needs outcomes and treatments as they were observed"),
        (lambda: study.T, "this needs outcomes and treatments as they were observed"),
        (lambda: study.counts(), "this needs outcomes and treatments as they were observed"),
        (lambda: study.replace(confounders=["site"]), "confounders is for outcomes that are learnt from, and Rewards"),
        (lambda: Study(table, outcome="score"), "treatment must be the name of a column"),
        (lambda: Study(table, outcome=Rewards("drug")), "Rewards takes a list of columns"),
        (lambda: study.replace(control="nobody"), "control='nobody' is not among the treatments; they are drug, none"),
    ]:
        with pytest.raises(InputError, match=words):
            fit()


@pytest.mark.parametrize("form", ["file", "files", "dataset", "duckdb", "dask"])
def test_a_study_of_rows_that_stay_where_they_are(tmp_path, form):
    pytest.importorskip("pyarrow")
    TABLE.to_parquet(tmp_path / "people.parquet")
    if form == "dask":
        rows = pytest.importorskip("dask.dataframe").from_pandas(TABLE, npartitions=3, sort=False)
    elif form == "duckdb":
        rows = pytest.importorskip("duckdb").sql(f"SELECT * FROM '{tmp_path}/people.parquet'")
    elif form == "dataset":
        rows = pytest.importorskip("pyarrow.dataset").dataset(tmp_path / "people.parquet")
    else:
        rows = tmp_path / "people.parquet" if form == "file" else [tmp_path / "people.parquet"]
    outcome = TimeToEvent("days", event="died")
    roles = BASE | {"treatment": "arm", "outcome": outcome, "cluster": "family", "strata": ["site"]}
    study = Study(rows, **roles, control="none")
    assert study.is_larger_than_memory and "days" in repr(study) and "age, sex" in str(study)
    assert "<table" in study._repr_html_()
    loaded = study.in_memory()
    pd.testing.assert_frame_equal(loaded.X, X, check_dtype=False)
    expected = Study(TABLE, **roles, control="none")
    np.testing.assert_array_equal(loaded.observed.y, expected.observed.y)
    assert loaded.outcome == expected.outcome and loaded.control == "none"
    values = partial(cross_val_policy_value, DRPolicyTree(), study)
    for use in (study.check, partial(DRPolicyTree().fit, study), lambda: study[:3], values):
        with pytest.raises(InputError, match=r"not in memory, where this needs them .* take study.in_memory\(\)"):
            use()
    with pytest.raises(InputError, match=r"name them: covariates=\[...\]. Columns without another role are age, sex"):
        Study(rows, **roles | {"covariates": None})
    for wrong in ({"covariates": ["agee"]}, {"strata": ["agee"]}):
        with pytest.raises(InputError, match="There is no column 'agee'"):
            Study(rows, **roles | wrong)


@pytest.mark.parametrize(
    "propensity", [[0.5, 0.5], True, TABLE["chance"], {"drug": [0.5], "none": 0.5}, {"drug": True, "none": 0.5}]
)
def test_probabilities_of_another_kind_are_refused_before_rows_are_read(propensity, tmp_path):
    pytest.importorskip("pyarrow")
    TABLE.to_parquet(tmp_path / "people.parquet")
    for rows in (TABLE, tmp_path / "people.parquet"):
        with pytest.raises(InputError, match="propensity must be a number, the name of a column, or a mapping from"):
            Study(rows, treatment="arm", outcome="score", propensity=propensity, **BASE)


def test_a_study_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        study_of("two arms").direction = "minimize"


def test_what_a_study_shows():
    study = study_of("clusters, strata, weights", control="none")
    text = str(study)
    assert text.splitlines()[0] == f"rows        240 in {TABLE['family'].nunique()} clusters (family)"
    assert "arm: drug, none; control none" in text
    assert "mean score, larger is better" in text
    shown = Study(TABLE.assign(age=TABLE["age"]).rename(columns={"age": "<b>age</b>"}), treatment="arm",
                  outcome="score", covariates=["<b>age</b>"])._repr_html_()  # fmt: skip
    assert "&lt;b&gt;age&lt;/b&gt;" in shown
    assert "nobody said which way is better" in shown
    hidden = Study(
        TABLE.rename(columns={"age": "a\u202ege"}), treatment="arm", outcome="score", covariates=["a\u202ege"]
    )
    assert "\u202e" not in hidden._repr_html_()  # a sign that turns the direction of reading, as for other results
    assert study.counts()["rows"].tolist() == TABLE["arm"].value_counts().sort_index().tolist()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"treatment": "arms"}, r"There is no column 'arms' \(treatment\); did you mean 'arm'\?"),
        ({"outcome": "status"}, "status"),
        ({"outcome": 3}, "outcome must be the name of a column or a kind of outcome"),
        ({"outcome": Event("status", "dead")}, "never holds 'dead'; its values are relapse, well"),
        ({"treatment": "score"}, "outcome names 'score', which is the treatment; name another column"),
        ({"covariates": ["age", "score"]}, "covariates names 'score', which is the outcome; leave it out"),
        ({"confounders": ["arm"]}, "confounders names 'arm', which is the treatment; leave it out"),
        ({"cluster": "score"}, "cluster names 'score', which is the outcome; leave it out"),
        ({"strata": ["arm"]}, "strata names 'arm', which is the treatment; leave it out"),
        ({"covariates": []}, "covariates names no column"),
        ({"covariates": ["age"], "exclude": ["sex"]}, "covariates names all covariates; leave exclude out"),
        ({"direction": "up"}, "direction must be 'maximize' or 'minimize'; got 'up'"),
        ({"control": "usual"}, "control"),
        ({"propensity": {"drug": 0.5}}, "none"),
        ({"propensity": {"drug": 0.5, "none": "odds"}}, r"There is no column 'odds' \(propensity\)"),
        ({"arm_costs": {"pill": 1.0}}, "pill"),
        ({"further_outcomes": {"fee": "less"}}, "further_outcomes"),
        ({"population": TABLE}, "population must be a Population"),
        ({"population": Population(TABLE[["age"]])}, "no column 'sex'"),
        ({"outcome": TimeToEvent("days", event="died", happened=1, cause=1)}, "happened and cause both name a value"),
        ({"outcome": "later"}, "missing"),
    ],
)
def test_bad_roles_are_one_sentence(said, sentence):
    with pytest.raises(InputError, match=sentence):
        Study(TABLE, **({"treatment": "arm", "outcome": "score"} | BASE | said))


def test_tables_without_names_or_rows_are_refused():
    with pytest.raises(InputError, match="Study takes a table with named columns"):
        Study(TABLE[["age"]].to_numpy(), treatment="arm", outcome="score")
    with pytest.raises(InputError, match="The table has no rows"):
        Study(TABLE.head(0), treatment="arm", outcome="score")
    with pytest.raises(InputError, match="Population takes a table with named columns"):
        Population([[1.0]])


def test_an_argument_that_the_study_says_is_refused_beside_it():
    with pytest.raises(InputError, match="is given a study, which says propensity already; leave propensity out"):
        DRPolicyTree().fit(study_of("known chances"), propensity=0.5)


def test_what_a_call_does_not_know_is_refused():
    with pytest.raises(InputError, match="fit knows no instrument, which the study has"):
        MatchingRewards().fit(study_of("offers"))
    with pytest.raises(InputError, match="heterogeneity_test knows no instrument"):
        heterogeneity_test(study_of("offers"))
    with pytest.raises(InputError, match="X is missing: give the covariates, or a Study"):
        check_study(TABLE["score"], TABLE["arm"])
    with pytest.raises(InputError, match="T is missing: give the treatment of every row, or a Study"):
        check_study(TABLE["score"], X=X)


@pytest.mark.parametrize("name", SAID_BY_STUDY)
def test_what_only_a_study_says_is_refused_beside_arrays(name):
    """By every method and function, with how a study says it; and no signature shows it."""
    assert name not in inspect.signature(check_study).parameters
    for call in (
        DRPolicyTree().fit, RewardEstimator().fit_predict, RewardEstimator().fit, RewardEstimator().predict_rewards,
        cross_val_policy_value, heterogeneity_test, policy_stability, held_out_rewards, honest_leaf_summary,
        nuisances_without, offer_rule, surest_rule,
    ):  # fmt: skip
        assert name not in inspect.signature(call).parameters
        with pytest.raises(InputError, match=rf"takes no {name}, which a study says: .*Study\(table"):
            call(**{name: 1})


def test_arguments_that_nothing_knows_are_refused_as_python_does():
    with pytest.raises(TypeError, match=r"^cross_val_policy_value\(\) got an unexpected keyword argument 'folds'$"):
        cross_val_policy_value(DRPolicyTree(), TABLE["score"], TABLE["arm"], X=X, folds=3)


def test_a_study_says_what_a_budget_is_spent_on():
    study = study_of("known chances", budget_costs={"drug": "fee"})
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0, constraints=[Budget(0.02)]).fit(study)
    assert 0 < model.spend_ <= 0.02
    with pytest.raises(InputError, match="budget_costs"):
        study_of("known chances", budget_costs={"pill": 1.0})


def test_the_same_study_with_other_roles():
    study = load_dataset("colon").study("years_to_death")
    other = study.replace(control="Obs", outcome=TimeToEvent("years_to_death", "died", horizon=3.0))
    assert (other.control, other.outcome.horizon, other.covariates) == ("Obs", 3.0, study.covariates)
    assert (study.control, study.outcome.horizon) == (None, 5.0) and study[:50].table.equals(study.table.iloc[:50])
    assert study.replace(table=study.table.tail(600)).n == 600
    with pytest.raises(InputError, match="control"):
        study.replace(control="nobody")
    with pytest.raises(TypeError, match="prices"):
        study.replace(prices={"Obs": 1.0})
    chosen = Study(TABLE, treatment="arm", outcome="score")
    assert chosen.notes and chosen.replace(unit="points").notes == chosen.notes
    assert not chosen.replace(covariates=["age"]).notes


def test_kinds_say_their_columns():
    assert Combined(("arm", "offer")).columns() == {"treatment arm": "arm", "treatment offer": "offer"}
    assert Number("score").columns() == {"outcome": "score"}
    assert Offered("took", by="offer").columns() == {"treatment": "took", "instrument": "offer"}
    assert TimeToEvent("days", "died", entry="entered").columns() == {
        "outcome": "days", "event": "died", "entry": "entered",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["nsw", "rand-hie", "colon", "k401k", "nhefs"])
def test_a_built_in_study_is_a_study(name):
    dataset = load_dataset(name)
    for outcome in dataset.outcomes:
        study, frame = dataset.study(outcome), dataset.frame
        assert study.Y.equals(frame[outcome]) and study.T.equals(frame[dataset.treatment])
        assert study.X.equals(frame[list(dataset.covariates)])
        assert study.cluster == dataset.groups and study.propensity == dataset.propensity
        assert study.unit == dataset.outcomes[outcome]
        roles = study.outcome.columns() | study.treatment.columns()
        for role in ("event", "entry", "instrument"):
            columns = {outcome: dataset.instrument} if role == "instrument" else getattr(dataset, role)
            assert roles.get(role) == columns.get(outcome), role
    with pytest.raises(InputError, match="has no outcome 'money'"):
        dataset.study("money")


def test_labels_that_are_whole_numbers_may_be_typed_as_such():
    """Stata, and columns with gaps, make floats of 0 and 1."""
    table = pd.DataFrame({"arm": [0.0, 1.0] * 20, "y": np.arange(40.0), "x": np.arange(40.0)[::-1]})
    chances = {0: 0.5, 1: 0.5}
    made = Study(table, treatment="arm", outcome="y", direction="maximize", propensity=chances, arm_costs={1: 5.0})
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0).fit(made)
    free = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0).fit(made.replace(arm_costs={}))
    assert set(model.reward_estimator_.propensity_[1.0]) == {0.5}
    assert model.objective_value_ == pytest.approx(free.objective_value_ - 5.0 * (model.predict(made.X) == 1.0).mean())
    with pytest.raises(InputError, match="propensity names the treatment '2'"):
        Study(table, treatment="arm", outcome="y", propensity={0: 0.5, 2: 0.5})


def test_new_rows_are_about_the_question_of_the_fit():
    """The user's cause, the horizon that somebody named, and the measure; a horizon that nobody named is the fit's."""
    table = TABLE.assign(end=np.array(["censored", "death", "transplant"])[TABLE["cause"]])

    def study(**asked) -> Study:
        return Study(table, treatment="arm", outcome=TimeToEvent("days", **asked), **BASE | {"direction": None})

    def fitted(of: Study) -> RewardEstimator:
        return RewardEstimator(LinearRegression(), LogisticRegression(), cv=2, random_state=0).fit(of)

    by_cause = fitted(study(event="end", cause="death", horizon=60))
    for other, sentence in (
        (study(event="end", cause="transplant", horizon=60), "cause='death', the new rows ask for 'transplant'; use"),
        (study(event="died"), "cause='death', the new rows ask for None; use the same"),
        (study(event="end", cause="death", horizon=50), "horizon=60.0, the new rows ask for 50.0; use the same"),
        (
            study(event="end", cause="death", measure="cumulative_incidence"),
            "measure='years_lost', the new rows ask for 'cumulative_incidence'; use the same",
        ),
    ):
        for call in (by_cause.predict_rewards, by_cause.predict_own_outcomes):
            with pytest.raises(InputError, match=f"The model was fitted with {sentence}"):
                call(other)
    same = by_cause.predict_rewards(study(event="end", cause="death", horizon=60))
    assert same.equals(by_cause.predict_rewards(study(event="end", cause="death")))
    assert same.equals(by_cause.predict_rewards(study(event="end", cause="death", horizon=60).observed))
    Y = np.array([(True, 30.0)] * N, dtype=[("died", bool), ("days", float)])
    with pytest.raises(InputError, match="cause='death', and a structured array tells no causes apart"):
        by_cause.predict_rewards(Y, TABLE["arm"], X=X)


def test_new_rows_that_enter_after_the_horizon_of_the_fit_are_refused():
    roles = {"treatment": "arm", "outcome": TimeToEvent("days", event="died", entry="entered", horizon=20)}
    early = Study(TABLE[TABLE["entered"] < 20], **BASE | roles)
    model = RewardEstimator(LinearRegression(), LogisticRegression(), cv=2, random_state=0).fit(early)
    later = Study(TABLE, **BASE | roles | {"outcome": TimeToEvent("days", event="died", entry="entered")})
    assert later.outcome.horizon > 20
    late = int((TABLE["entered"] >= 20).sum())
    with pytest.raises(InputError, match=f"{late} rows enter at or after horizon=20; leave them out"):
        model.predict_rewards(later)
