"""Is a rule better than one treatment for all? Twenty-two public trials, by one setting written down beforehand.

Public interface used: Study, Event, MayBeMissing, TimeToEvent, DRPolicyTree, cross_val_policy_value, policy_value.
"""

from __future__ import annotations

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from policytree import DRPolicyTree, Study, cross_val_policy_value, policy_value
from policytree.datasets.files import packaged_file, packaged_frame
from policytree.study import Event, MayBeMissing, TimeToEvent

SEED = 0  # nothing else is chosen: trees and values are by the defaults of the library
BASELINE_PTB = [
    "Clinic", "Age", "Black", "Education", "BMI", "Use.Tob", "Hypertension", "Diabetes", "Prev.preg", "N.prev.preg",
    "BL.GE", "BL..BOP", "BL.PD.avg", "BL.CAL.avg", "BL..PD.4", "BL.Calc.I", "BL.Pl.I",
]  # fmt: skip
NOT_BEFORE = ["rownames", "id", "bleed"]  # of the study of pancreatitis
YEAR = 365.25


def indomethacin() -> Study:
    """Indomethacin against pancreatitis after endoscopy of the bile ducts."""
    frame = packaged_frame("medicaldata", "indo_rct").drop(columns=NOT_BEFORE, errors="ignore")
    frame["rx"] = frame["rx"].astype(str).str.partition("_")[2]
    return Study(
        frame, treatment="rx", outcome=Event("outcome", "1_yes"), direction="minimize", randomized=True,
        control="placebo",
    )  # fmt: skip


def licorice() -> Study:
    """A gargle of licorice against sore throats after a double-lumen tube: pain at rest after half an hour."""
    frame = packaged_frame("medicaldata", "licorice_gargle")
    frame["gargle"] = np.where(frame["treat"] == 1, "licorice", "sugar")
    before = [name for name in frame.columns if name.startswith("preOp_")]
    return Study(
        frame, treatment="gargle", outcome=MayBeMissing("pacu30min_throatPain"), direction="minimize",
        covariates=[*before, "intraOp_surgerySize"], randomized=True, control="sugar", unit="points",
    )  # fmt: skip


def periodontal() -> Study:
    """Treating gums during pregnancy rather than after it, against births before 37 weeks."""
    frame = packaged_frame("medicaldata", "opt")
    ended = frame["Preg.ended...37.wk"].astype(str).str.strip()
    frame["preterm"] = ended.map({"Yes": 1.0, "No": 0.0})
    frame["gums"] = np.where(frame["Group"].astype(str) == "T", "treated", "control")
    return Study(
        frame, treatment="gums", outcome=MayBeMissing("preterm"), direction="minimize", covariates=BASELINE_PTB,
        randomized=True, control="control",
    )  # fmt: skip


def streptomycin() -> Study:
    """Streptomycin against tuberculosis of the lungs: improved after six months."""
    frame = packaged_frame("medicaldata", "strep_tb")
    frame["improved"] = frame["improved"].astype(float)
    before = ["gender", "baseline_condition", "baseline_temp", "baseline_esr", "baseline_cavitation"]
    return Study(
        frame, treatment="arm", outcome="improved", direction="maximize", covariates=before, randomized=True,
        control="Control",
    )  # fmt: skip


def laryngoscope() -> Study:
    """A laryngoscope with a camera or the usual one, in obese people: seconds until the tube was in place."""
    frame = packaged_frame("medicaldata", "laryngoscope")
    frame["scope"] = np.where(frame["Randomization"] == 1, "camera", "usual")
    before = ["age", "gender", "asa", "BMI", "Mallampati"]
    return Study(
        frame, treatment="scope", outcome=MayBeMissing("total_intubation_time"), direction="minimize",
        covariates=before, randomized=True, control="usual", unit="seconds",
    )  # fmt: skip


def nerve_block() -> Study:
    """Anaesthetics mixed or one after the other: opioids needed after surgery of the arm."""
    frame = packaged_frame("medicaldata", "supraclavicular")
    frame["given"] = np.where(frame["group"] == 1, "mixed", "in sequence")
    return Study(
        frame, treatment="given", outcome=MayBeMissing("opioid_total"), direction="minimize",
        covariates=["gender", "bmi", "age"], randomized=True, control="mixed", unit="mg",
    )  # fmt: skip


def ursodiol() -> Study:
    """Ursodeoxycholic acid against the progress of biliary cirrhosis: days until it, of three years."""
    frame = packaged_frame("survival", "udca1")
    frame["drug"] = np.where(frame["trt"] == 1, "UDCA", "placebo")
    return _times(frame, "drug", "futime", "status", ["stage", "bili", "riskscore"], "placebo", 3 * YEAR)


def penicillamine() -> Study:
    """D-penicillamine against biliary cirrhosis: days alive, of five years."""
    frame = packaged_frame("survival", "pbc").dropna(subset=["trt"])
    frame["drug"] = np.where(frame["trt"] == 1, "D-penicillamine", "placebo")
    frame["died"] = (frame["status"] == 2).astype(int)
    before = [
        "age", "sex", "ascites", "hepato", "spiders", "edema", "bili", "chol", "albumin", "copper", "alk.phos", "ast",
        "trig", "platelet", "protime", "stage",
    ]  # fmt: skip
    return _times(frame, "drug", "time", "died", before, "placebo", 5 * YEAR)


def interferon() -> Study:
    """Gamma interferon against infections in chronic granulomatous disease: days until one, of nine months."""
    frame = packaged_frame("survival", "cgd0")
    frame["drug"] = np.where(frame["treat"] == 1, "interferon", "placebo")
    frame["infected"] = frame["etime1"].notna().astype(int)
    frame["days"] = frame["etime1"].fillna(frame["futime"])
    before = ["sex", "age", "height", "weight", "inherit", "steroids", "propylac", "hos.cat"]
    return _times(frame, "drug", "days", "infected", before, "placebo", 270)


def dornase() -> Study:
    """Inhaled dornase against flares of cystic fibrosis: days until the first one, of 160."""
    frame = packaged_frame("survival", "rhDNase")
    followed = (pd.to_datetime(frame["end.dt"]) - pd.to_datetime(frame["entry.dt"])).dt.days
    frame = frame.assign(followed=followed, ivstart=frame["ivstart"].where(frame["ivstart"] > 0))
    people = frame.groupby("id").agg(trt=("trt", "first"), fev=("fev", "first"), followed=("followed", "first"),
                                     flare=("ivstart", "min")).reset_index()  # fmt: skip
    people["drug"] = np.where(people["trt"] == 1, "dornase", "placebo")
    people["flared"] = people["flare"].notna().astype(int)
    people["days"] = people["flare"].fillna(people["followed"])
    return _times(people, "drug", "days", "flared", ["fev"], "placebo", 160)


def bladder() -> Study:
    """Pyridoxine or thiotepa against recurrences of tumours of the bladder: months until one, of two years."""
    frame = packaged_frame("survival", "bladder1")
    frame = frame[(frame["enum"] == 1) & (frame["stop"] > 0)].copy()
    frame["recurred"] = (frame["status"] == 1).astype(int)
    return _times(frame, "treatment", "stop", "recurred", ["number", "size"], "placebo", 24)


def retinopathy() -> Study:
    """A laser against blindness of diabetics, one eye of each person: months until it, of three years."""
    frame = packaged_frame("survival", "retinopathy")
    frame["eye_got"] = np.where(frame["trt"] == 1, "laser", "nothing")
    before = ["laser", "eye", "age", "type", "risk"]
    return _times(frame, "eye_got", "futime", "status", before, "nothing", 36, cluster="id")


def lung() -> Study:
    """A test chemotherapy of lung cancer beside the standard: days alive, of half a year."""
    frame = packaged_frame("survival", "veteran")
    frame["chemotherapy"] = np.where(frame["trt"] == 2, "test", "standard")
    before = ["celltype", "karno", "diagtime", "age", "prior"]
    return _times(frame, "chemotherapy", "time", "status", before, "standard", 182)


def residential() -> Study:
    """A long or a short stay against drug use: days until it began again, of a year."""
    frame = packaged_frame("quantreg", "uis")
    frame["stay"] = np.where(frame["TREAT"] == 1, "long", "short")
    before = ["AGE", "BECK", "HC", "IV", "NDT", "RACE", "SITE"]
    return _times(frame, "stay", "TIME", "CENSOR", before, "short", YEAR, strata=["SITE"])


def job_search() -> Study:
    """A workshop for the unemployed (JOBS II): depression half a year later."""
    frame = packaged_frame("mediation", "jobs")
    frame["offered"] = np.where(frame["treat"] == 1, "workshop", "booklet")
    before = ["econ_hard", "depress1", "sex", "age", "occp", "marital", "nonwhite", "educ", "income"]
    return Study(
        frame, treatment="offered", outcome="depress2", direction="minimize", covariates=before, randomized=True,
        control="booklet", unit="points",
    )  # fmt: skip


def auranofin() -> Study:
    """Auranofin against rheumatoid arthritis: how people rated it after five months, 1 (poor) to 5."""
    frame = packaged_frame("multgee", "arthritis")
    frame = frame[frame["time"] == 5].copy()
    frame["drug"] = np.where(frame["trt"] == 2, "auranofin", "placebo")
    frame["rating"] = frame["y"].astype(float)
    return Study(
        frame, treatment="drug", outcome=MayBeMissing("rating"), direction="maximize",
        covariates=["sex", "age", "baseline"], randomized=True, control="placebo", unit="points",
    )  # fmt: skip


def beat_the_blues() -> Study:
    """A computer programme against depression beside the usual care: Beck's inventory after two months."""
    frame = packaged_frame("HSAUR", "BtheB")
    return Study(
        frame, treatment="treatment", outcome=MayBeMissing("bdi.2m"), direction="minimize",
        covariates=["drug", "length", "bdi.pre"], randomized=True, control="TAU", unit="points",
    )  # fmt: skip


def respiratory() -> Study:
    """A drug against a disease of the airways: a good state after four months."""
    frame = packaged_frame("HSAUR", "respiratory")
    frame["month"] = frame["month"].astype(int)
    before, after = (frame[frame["month"] == month].set_index("subject") for month in (0, 4))
    people = before.assign(good_later=(after["status"] == "good").astype(float))
    return Study(
        people.reset_index(), treatment="treatment", outcome="good_later", direction="maximize",
        covariates=["centre", "sex", "age", "status"], randomized=True, control="placebo",
    )  # fmt: skip


def smoking() -> Study:
    """Three drugs or a patch against smoking: days until people smoked again, of half a year."""
    frame = packaged_frame("asaur", "pharmacoSmoking")
    frame["ttr"] = frame["ttr"].astype(float).clip(lower=0.5)  # days are whole numbers, and some relapsed on the first
    before = ["age", "gender", "race", "employment", "yearsSmoking", "levelSmoking", "priorAttempts", "longestNoSmoke"]
    return _times(frame, "grp", "ttr", "relapse", before, "patchOnly", 182)


def progabide() -> Study:
    """Progabide against epilepsy: fits in eight weeks."""
    frame = packaged_frame("MASS", "epil")
    people = frame.groupby("subject").agg(drug=("trt", "first"), base=("base", "first"), age=("age", "first"),
                                          fits=("y", "sum")).reset_index()  # fmt: skip
    people["drug"] = people["drug"].astype(str)
    return Study(
        people, treatment="drug", outcome="fits", direction="minimize", covariates=["base", "age"], randomized=True,
        control="placebo", unit="fits",
    )  # fmt: skip


def black_politicians() -> Study:
    """Letters to politicians, from their own voters or from elsewhere: whether they answer."""
    frame = table_of_causaldata("black_politicians/black_politicians")
    frame["letter"] = np.where(frame["treat_out"] == 1, "from elsewhere", "from a voter")
    return Study(
        frame.drop(columns=["treat_out"]), treatment="letter", outcome="responded", direction="maximize",
        randomized=True, control="from a voter",
    )  # fmt: skip


def rice_insurance() -> Study:
    """A long or a short session about insurance of rice: whether farmers take it."""
    frame = table_of_causaldata("social_insure/Cai_2015")
    frame["session"] = np.where(frame["intensive"] == 1, "long", "short")
    before = ["age", "agpop", "ricearea_2010", "disaster_prob", "male", "risk_averse", "literacy", "default"]
    return Study(
        frame, treatment="session", outcome="takeup_survey", direction="maximize", covariates=before, randomized=True,
        control="short", cluster="address",
    )  # fmt: skip


def table_of_causaldata(name: str) -> pd.DataFrame:
    """A table of the package causaldata."""
    return pd.read_csv(packaged_file("causaldata", f"{name}.csv"))


def _times(frame, treatment, time, event, covariates, control, horizon, **more) -> Study:
    """Mean time without the event, up to the horizon."""
    frame = frame.assign(**{treatment: frame[treatment].astype(str), time: frame[time].astype(float)})
    return Study(
        frame, treatment=treatment, outcome=TimeToEvent(time, event=event, horizon=float(horizon)),
        covariates=covariates, control=control, randomized=True, direction="maximize", **more,
    )  # fmt: skip


TRIALS: tuple[Callable[[], Study], ...] = (
    indomethacin, licorice, periodontal, streptomycin, laryngoscope, nerve_block, ursodiol, penicillamine, interferon,
    dornase, bladder, retinopathy, lung, residential, job_search, auranofin, beat_the_blues, respiratory, smoking,
    progabide, black_politicians, rice_insurance,
)  # fmt: skip
QUICK = (licorice, bladder)


def main(study) -> None:
    """Run all trials."""
    study.show("Every trial by the defaults: DRPolicyTree(random_state=0), cross_val_policy_value(..., random_state=0)")
    rows = []
    for make in QUICK if study.quick else TRIALS:
        study.step(make.__name__)
        rows.append(judged(study, make))
    study.heading("All of them")
    table = pd.DataFrame(rows)
    study.table(table, "trials", digits=3, index=False)
    study.figure(picture(table), "trials")


def picture(table: pd.DataFrame):
    """Every trial's effect and what its tree adds, in half widths of their 95 % intervals: beyond one is shown."""
    figure, axes = plt.subplots(figsize=(7.0, 0.5 + 0.27 * len(table)), layout="constrained")
    shown = {
        "treatment less control": (table["effect"], table["to"] - table["from"], "#1f5f7a"),
        "tree less the best treatment": (table["tree less best"], table["upper"] - table["lower"], "#8a4b08"),
    }
    places = np.arange(len(table))[::-1]
    for k, (label, (value, width, color)) in enumerate(shown.items()):
        size = np.divide(value, width / 2.0, out=np.zeros(len(table)), where=width.to_numpy() > 0)
        axes.plot(size, places + 0.12 - 0.24 * k, "o", ms=4.5, color=color, label=label)
    axes.axvspan(-1.0, 1.0, color="#eeeeee", zorder=0)
    axes.set_yticks(places, table["trial"].str.replace("_", " "), fontsize=8)
    axes.set_xlabel("difference in half widths of its interval; within the grey band nothing is shown", fontsize=8)
    axes.legend(loc="center left", fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def judged(study, make: Callable[[], Study]) -> dict:
    """One trial: average effects, the tree beside the best treatment, and the verdict."""
    data = make()
    study.heading(f"{make.__name__}: {(make.__doc__ or '').strip()}")
    options = {"cv": 2, "n_repeats": 1} if study.quick else {}
    model = DRPolicyTree(random_state=SEED).fit(data)
    values = cross_val_policy_value(model, data, random_state=SEED, **options)
    seen, control = data.observed, data.control
    out = {"trial": make.__name__, "people": seen.n}
    for k, label in enumerate(label for label in seen.treatments if label != control):
        effect = policy_value(
            label, model.rewards_, baseline=control, groups=seen.groups, sample_weight=seen.sample_weight
        )
        study.show(f"{label} less {control}: {effect.value:.3f} [{effect.lower:.3f}, {effect.upper:.3f}]")
        if not k:
            out |= {"effect": effect.value, "from": effect.lower, "to": effect.upper}
    best = values.against_best
    study.show(f"tree less {best.best}: {best.value:.3f} [{best.lower:.3f}, {best.upper:.3f}]")
    leaves = model.tree_.n_leaves
    study.show(f"The tree of the whole trial has {leaves} {'leaf' if leaves == 1 else 'leaves'}.")
    study.show(f"{values.verdict}")
    out |= {"tree less best": best.value, "lower": best.lower, "upper": best.upper}
    return out | {"use": values.verdict.rule or "not shown", "strength": values.verdict.strength}
