"""``policytree design --id --stage``: rules for several decisions from a table with one row per person and decision."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest

from policytree import DRPolicyTree
from policytree.cli.files import PURPOSES
from policytree.regimes import Stage, TreatmentRegime, stages_from_long
from tests.cli.running import design as design_one
from tests.cli.running import refused, run

FILES = {
    "report.html", "report.txt", "report.json", "trees.png", "trees.pdf", "regime.json", "rule.txt", "rule.sql",
    "rule.py", "leaves.csv", "values.csv", "sequences.csv",
}  # fmt: skip
QUICK = ("--max-depth", "1", "--cv", "2", "--repeats", "1")


def visits(n: int = 220, seed: int = 0) -> pd.DataFrame:
    """A small dirty trial: who does not respond to the first drug has a second visit; gaps, a rare site, weights."""
    rng = np.random.default_rng(seed)
    severity = rng.normal(size=n).round(2)
    site = rng.choice(["north", "south", "island"], n, p=[0.6, 0.37, 0.03])
    first, second = rng.choice(["drug", "talk"], n), rng.choice(["more", "switch"], n, p=[0.3, 0.7])
    responds = severity * (first == "drug") + rng.normal(size=n) > 0.4
    later = (severity + rng.normal(size=n)).round(2)
    gain = (2.0 * (second == "switch") * np.where(later > 0, 1.0, -1.0) + rng.normal(size=n)).round(3)
    people = {"patient": np.arange(n) + 100, "site": site, "weight": rng.integers(1, 4, n), "clinic": np.arange(n) // 4}
    one = pd.DataFrame({**people, "visit": 1, "arm": first, "y": responds * 1.0, "severity": severity, "p": 0.5})
    two = pd.DataFrame({**people, "visit": 2, "arm": second, "y": gain, "severity": later, "p": 0.7})[~responds]
    one.loc[::17, "severity"] = np.nan
    return pd.concat([one, two]).sample(frac=1, random_state=seed).reset_index(drop=True)


def design(data, folder, *more):
    columns = ("--id", "patient", "--stage", "visit", "--treatment", "arm", "--outcome", "y")
    return run("design", data, *columns, "-o", folder, *QUICK, *more)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    visits().to_csv(path, index=False)
    return path


KNOWN = ("--exclude", "weight,clinic", "--propensity", "p")


@pytest.fixture(scope="module")
def designed(table):
    code, out, err = design(table, table.parent / "out", *KNOWN, "--weights", "weight", "--cluster", "clinic")
    assert code == 0, err
    return table.parent / "out", out, err


def test_it_writes_a_whole_report(designed):
    folder, out, _ = designed
    assert {path.name for path in folder.iterdir()} == FILES <= set(PURPOSES)
    assert all((folder / name).stat().st_size > 100 for name in FILES)
    for words in ("Verdict", "The rule as a checklist over time", "At visit 2, only given outcome (visit 1) = 0"):
        assert words in out
    page = (folder / "report.html").read_text()
    assert page.count("data-form") == 3  # two trees, and the script that looks for them
    assert "policytree design" in page and "220 in 55 clusters (clinic)" in page
    values = pd.read_csv(folder / "values.csv", index_col=0)
    assert {"regime", "always drug then more", "as randomised", "decide at visit 1 only"} <= set(values.index)
    sequences = pd.read_csv(folder / "sequences.csv", index_col=0)
    wide = visits().pivot(index="patient", columns="visit", values="arm")
    both = ((wide[1] == "talk") & (wide[2].isna() | (wide[2] == "switch"))).sum()
    assert sequences.loc["talk then switch", "people"] == both


def test_it_learns_what_python_learns(designed):
    """The same stages, chances of the second arm, smallest leaves, weights and clusters, by hand."""
    folder, _, _ = designed
    frame = visits().drop(columns=["p"])
    stages = stages_from_long(
        frame, id="patient", stage="visit", treatment="arm", outcome="y", covariates=["site", "severity"]
    )
    people = frame.drop_duplicates("patient").set_index("patient").loc[stages[0].X.index]
    saved = json.loads((folder / "regime.json").read_text())
    regime = TreatmentRegime(
        [
            DRPolicyTree(max_depth=1, cv=2, min_samples_leaf=16, min_samples_per_treatment=8, random_state=0)
            for _ in stages
        ]
    )
    known = [
        Stage(s.T, X=s.X, Y=s.Y, eligible=s.eligible, propensity=p, name=s.name)
        for s, p in zip(stages, (0.5, {"more": 0.3, "switch": 0.7}), strict=True)
    ]
    regime.fit(known, sample_weight=people["weight"], groups=people["clinic"])
    for certificate, model in zip(saved["certificates"], regime.stages_, strict=True):
        assert certificate["objective"] == pytest.approx(model.objective_value_)
    for (_, tree), model in zip(
        TreatmentRegime.trees_from_json((folder / "regime.json").read_text()), regime.stages_, strict=True
    ):
        assert tree.n_node_samples.tolist() == model.tree_.n_node_samples.tolist()


def by_hand(folder) -> pd.Series:
    """Apply rule.py to every row of the table, from histories that are made here."""
    space: dict = {}
    exec((folder / "rule.py").read_text(), space)
    frame, out = visits(), []
    earlier = frame[frame["visit"] == 1].set_index("patient")
    for _, row in frame.iterrows():
        known = {name: row[name] for name in ("site", "severity")}
        if row["visit"] == 2:
            before = earlier.loc[row["patient"]]
            known |= {f"{name} (visit 1)": before[name] for name in ("site", "severity")}
            known |= {"treatment (visit 1)": before["arm"], "outcome (visit 1)": before["y"]}
        known = {name: None if isinstance(v, float) and np.isnan(v) else v for name, v in known.items()}
        out.append(space["policy"](row["visit"], known))
    return pd.Series(out)


def test_predict_gives_what_the_saved_rules_say(designed, table):
    folder, _, _ = designed
    code, out, err = run("predict", folder / "regime.json", table)
    assert code == 0, err
    got = pd.read_csv(io.StringIO(out))
    assert got["policy"].tolist() == by_hand(folder).tolist()
    assert got.drop(columns="policy").equals(pd.read_csv(table))


def test_predict_the_next_decision_of_somebody_new(designed, tmp_path):
    """The last row has neither treatment nor outcome; where nothing was decided before, nothing is recommended."""
    folder, _, _ = designed
    columns = "patient,visit,arm,y,severity,site\n"
    rows = "a,1,drug,0,0.5,north\na,2,,,1.5,north\nb,2,,,-1.5,south\nb,1,,0,1,south\n"
    (tmp_path / "new.csv").write_text(columns + rows)
    code, out, err = run("predict", folder / "regime.json", tmp_path / "new.csv", "--column", "next")
    assert code == 0, err
    got = pd.read_csv(io.StringIO(out), keep_default_na=False)
    assert got["next"].tolist()[1:] == ["switch", "more", ""] and got["next"][0] in ("drug", "talk")


PREDICTED = {
    "a row for each": ("a,2,,,1,north\n", "Person a has a row at 2, but none at 1"),
    "twice": ("a,1,drug,0,1,north\na,1,talk,0,1,north\n", "Person a has two rows at 1"),
    "another decision": ("a,3,drug,0,1,north\n", "'visit' is 3 in row 1 below the header; the regime's decisions"),
    "nobody's": (",1,drug,0,1,north\n", "Column 'patient' is missing in row 1"),
}


@pytest.mark.parametrize("case", PREDICTED)
def test_predict_refuses_tables_that_are_no_visits(designed, tmp_path, case):
    rows, words = PREDICTED[case]
    (tmp_path / "new.csv").write_text("patient,visit,arm,y,severity,site\n" + rows)
    refused(run("predict", designed[0] / "regime.json", tmp_path / "new.csv"), words)


def test_saved_regimes_that_are_damaged_or_know_no_table(designed, table, tmp_path):
    folder, _, _ = designed
    data = json.loads((folder / "regime.json").read_text())
    path = tmp_path / "regime.json"
    path.write_text(json.dumps({k: v for k, v in data.items() if k not in ("checksum", "design")}))
    refused(run("predict", path, table), "does not say which columns its table has")
    path.write_text(json.dumps({**data, "version": 9}))
    refused(run("predict", path, table), "version 9")
    for broken in ({"history": [[]]}, {"times": 3}, {"id": 7}):
        changed = {k: v for k, v in data.items() if k != "checksum"} | {"design": {**data["design"], **broken}}
        path.write_text(json.dumps(changed))
        refused(run("predict", path, table), "'design' is malformed")
    for stages in (3, [], [{"name": "x"}]):
        path.write_text(json.dumps({k: v for k, v in data.items() if k != "checksum"} | {"stages": stages}))
        refused(run("predict", path, table), "regime")
    refused(run("plot", folder / "regime.json"), "regime of several decisions")


def test_show_prints_the_rules_and_what_was_proved(designed):
    folder, _, _ = designed
    code, out, err = run("show", folder / "regime.json")
    assert code == 0, err
    assert (folder / "rule.txt").read_text().split("\n\n")[0] in out and out.count("status") == 2
    verdict = json.loads((folder / "regime.json").read_text())["verdict"]
    assert out.startswith("Verdict: ") and verdict["sentence"] in out
    code, out, _ = run("show", folder / "regime.json", "--json")
    assert json.loads(out)["verdict"] == verdict
    found = json.loads(out)["stages"]
    assert [stage["name"] for stage in found] == ["visit 1", "visit 2"]
    assert all(stage["certificate"]["gap"] == 0 for stage in found)


def test_decisions_named_by_texts_and_treatments_by_numbers(tmp_path):
    """Parquet in and out of the fit; whole numbers that gaps made decimals are the treatments of the fit."""
    frame = visits(200).drop(columns=["p", "weight", "clinic"])
    frame["visit"] = frame["visit"].map({1: "a start", 2: "b later"})
    frame["arm"] = frame["arm"].map({"drug": 0, "talk": 1, "more": 2, "switch": 3}).astype(float)
    frame.to_parquet(tmp_path / "v.parquet")
    code, _, err = design(tmp_path / "v.parquet", tmp_path / "out", "--no-value", "--max-depth", "2")
    assert code == 0, err
    predicted = []
    frame.to_csv(tmp_path / "v.csv", index=False)
    for name in ("v.parquet", "v.csv"):
        code, out, err = run("predict", tmp_path / "out" / "regime.json", tmp_path / name)
        assert code == 0, err
        predicted.append(pd.read_csv(io.StringIO(out))["policy"])
    assert predicted[0].equals(predicted[1])
    assert set(predicted[0][frame["visit"] == "a start"]) <= {0, 1}
    assert set(predicted[0][frame["visit"] == "b later"]) <= {2, 3}


def test_chances_are_those_of_the_second_arm_or_of_every_label(table, tmp_path):
    """A column of the chance of the second arm, and one number for every label, are the same."""
    found = []
    for chances in ("p", "drug=0.5,talk=.5,more=0.3,switch=0.7"):
        folder = tmp_path / f"out{len(found)}"
        code, out, err = design(table, folder, "--exclude", "weight,clinic,p", "--propensity", chances, "--json")
        assert code == 0, err
        found.append(json.loads(out))
    assert [row["value"] for row in found[0]["values"]] == pytest.approx([row["value"] for row in found[1]["values"]])
    assert found[0]["sequences"][1]["largest_weight"] == pytest.approx(1 / (0.5 * 0.7))
    assert found[0]["decide_once"].startswith("Deciding at every stage is")
    assert {stage["name"] for stage in found[0]["stages"]} == {"visit 1", "visit 2"}


def test_costs_control_history_and_lost_people(tmp_path):
    frame = visits(300)
    frame["gone"] = ((frame["visit"] == 2) & (np.arange(len(frame)) % 11 == 0)).astype(int)
    frame.to_csv(tmp_path / "v.csv", index=False)
    code, out, err = design(
        tmp_path / "v.csv", tmp_path / "out", *KNOWN, "--arm-cost", "switch=100", "--control", "drug,more", "--history",
        "current", "--lost-column", "gone", "--missing-outcome", "weight", "--json",
    )  # fmt: skip
    assert code == 0, err
    found = json.loads(out)
    assert found["verdict"]["reference"] == "always drug then more"
    second = found["stages"][1]["tree"]
    assert second["actions"] == ["more", "switch"]
    rules = (tmp_path / "out" / "rule.txt").read_text()
    assert "switch" not in rules and "(visit 1)" not in rules  # it costs a hundred; only own columns are asked about
    text = (tmp_path / "out" / "report.txt").read_text()
    assert "were lost after it" in text and "switch 100.0" in text


def test_a_single_design_and_a_regime_replace_each_other(table, tmp_path):
    code, _, err = design(table, tmp_path / "out", *KNOWN, "--no-value")
    assert code == 0, err
    assert "values.csv" not in {path.name for path in (tmp_path / "out").iterdir()}
    one = visits()
    one[one["visit"] == 1].drop(columns=["visit", "patient", "p"]).to_csv(tmp_path / "one.csv", index=False)
    code, _, err = design_one(tmp_path / "one.csv", tmp_path / "out", "--no-value", *QUICK[:4])
    assert code == 0, err
    assert not {"regime.json", "rule.sql", "trees.png"} & {path.name for path in (tmp_path / "out").iterdir()}


REFUSED = {
    "no stage": (("--id", "patient"), "add --stage"),
    "no id": (("--stage", "visit"), "add --id"),
    "lost alone": (("--lost-column", "p"), "add --id"),
    "built-in": (
        ("--dataset", "rand-hie", "--id", "patient", "--stage", "visit"),
        "--dataset is about a single decision",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_id_and_stage_go_together(table, tmp_path, case):
    options, words = REFUSED[case]
    data = () if "--dataset" in options else (table,)
    refused(run("design", *data, "--treatment", "arm", "--outcome", "y", "-o", tmp_path / "out", *options), words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--event-column", "p"), "--event-column is about a single decision"),
        (("--instrument", "p"), "--instrument is about a single decision"),
        (("--budget", "1"), "--budget is about a single decision"),
        (("--honest", ".5"), "--honest is about a single decision"),
        (("--stability", "3"), "--stability is about a single decision"),
        (("--root-feature", "site"), "--root-feature is about a single decision"),
        (("--repeats", "adaptive"), "--repeats adaptive is about a single decision"),
        (("--propensity", "0.5,0.5"), "There is no column"),
        (("--propensity", "drug=.5,talk=.5"), "visit 2: --propensity has no probability for its treatments"),
        (("--propensity", "drug=.5,talk=.5,stop=1"), "names the treatment 'stop'; the treatments are drug, talk, more"),
        (("--propensity", "severity"), "visit 1: Column 'severity' (--propensity) is"),
        (("--arm-cost", "stop=1"), "--arm-cost names the treatment 'stop'"),
        (("--control", "drug"), "a sequence of 2 treatments"),
        (("--control", "drug,stop"), "'stop' is no treatment of visit 2"),
        (("--weights", "severity"), "(--weights) has no value in"),
        (("--weights", "p"), "(--weights) differs between the rows of person"),
        (("--cluster", "arm"), "--cluster names 'arm', which --treatment names too"),
        (("--history", "some"), "--history must be all or current"),
        (("--direction", "up"), "--direction must be maximize or minimize"),
        (("--lost-column", "weight"), "Column 'weight' (lost) must be True or False (or 1 and 0)"),
        (("--missing-outcome", "drop"), "--missing-outcome must be refuse or weight"),
    ],
)
def test_options_that_make_no_sense_are_one_sentence(table, tmp_path, options, words):
    refused(design(table, tmp_path / "out", *options), words)
    assert not (tmp_path / "out").exists()


def _twice(frame):
    return pd.concat([frame, frame.iloc[[3]]])


def _gap(frame):
    person = frame.loc[frame["visit"] == 2, "patient"].iloc[0]
    return frame[(frame["patient"] != person) | (frame["visit"] == 2)]


TABLES = {
    "two rows": (_twice, "has two rows at stage"),
    "no first visit": (_gap, "stages must follow each other"),
    "text outcome": (lambda f: f.assign(y=np.where(f["y"] > 0, "well", "ill")), "holds texts, not numbers (ill, well)"),
    "lost outcome": (lambda f: f.assign(y=f["y"].mask(f["visit"] == 2)), "--missing-outcome weight"),
    "one arm": (lambda f: f.assign(arm=f["arm"].where(f["visit"] == 1, "more")), "visit 2"),
    "no id": (lambda f: f.assign(patient=f["patient"].astype(float).mask(f.index == 5)), "(--id) has no value in 1 of"),
    "no decision": (lambda f: f.assign(visit=f["visit"].astype(float).mask(f.index == 5)), "(--stage) has no value"),
    "nobody at all": (lambda f: f.assign(arm=f["arm"].where(f["visit"] == 1)), "Nobody is eligible at visit 2"),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_that_are_no_stages_are_one_sentence(tmp_path, case):
    change, words = TABLES[case]
    change(visits()).to_csv(tmp_path / "v.csv", index=False)
    refused(design(tmp_path / "v.csv", tmp_path / "out"), words)
