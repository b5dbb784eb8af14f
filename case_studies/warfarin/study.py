"""Warfarin: which starting dose for whom, what a genotype is worth, and what logged prescriptions can teach.

Public interface used: PolicyTree, RewardEstimator, policy_value. The right dose of everybody is known afterwards, so
every rule's value is known too, and what is learnt from logged treatments is held to the truth.
"""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold, GroupShuffleSplit
from warfarin.people import CLINICAL, DOSES, GENES, MEDIUM, formula, groups_of, patients

from policytree import PolicyTree, RewardEstimator, policy_value
from policytree.evaluation.estimates import Estimate, mean_estimate, repeated_estimate
from policytree.exceptions import OverlapWarning

FOLDS, REPEATS, DEPTHS, SMALLEST = 5, 3, (1, 2, 3), 50
INNER = 4  # folds of nuisance models; hospitals are kept together
DRAWS = 20  # of logged treatments
FOLLOWED = 0.7  # share of doctors who give the dose of the clinical formula; the others give any of the three
COLORS = {"clinical": "#E69F00", "with genotypes": "#0072B2", "none": "#999999"}


def right(frame: pd.DataFrame) -> pd.DataFrame:
    """1 for the dose that each person turned out to need, 0 for the others, (n, 3)."""
    return pd.DataFrame({dose: (frame["group"] == dose).astype(float) for dose in DOSES})


def columns(genes: bool) -> list[str]:
    """Return the columns that a rule may ask for."""
    return [*CLINICAL, *(GENES if genes else ())]


def folds(frame: pd.DataFrame, repetition: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows that learn and rows that judge; a hospital judges only rules that it did not teach."""
    drawn = GroupKFold(FOLDS, shuffle=True, random_state=repetition)
    return list(drawn.split(frame, groups=frame["site"]))


def held_out(frame: pd.DataFrame, genes: bool, depth: int, repeats: int) -> np.ndarray:
    """Doses (codes) for everybody by exact trees of other hospitals, (repeats, n)."""
    gains, X, decided = right(frame), frame[columns(genes)], np.empty((repeats, len(frame)), int)
    for repetition in range(repeats):
        for learn, judge in folds(frame, repetition):
            tree = PolicyTree(max_depth=depth, min_samples_leaf=SMALLEST).fit(X.iloc[learn], gains.iloc[learn])
            decided[repetition, judge] = codes(tree.predict(X.iloc[judge]))
    return decided


def codes(doses) -> np.ndarray:
    """0, 1, 2 for the names of doses."""
    return pd.Index(DOSES).get_indexer(doses)


def hit(frame: pd.DataFrame, decided: np.ndarray) -> np.ndarray:
    """Per cent right, row by row."""
    return 100.0 * (decided == codes(frame["group"]))


def estimate(scores: np.ndarray, site: np.ndarray) -> Estimate:
    """Mean of scores (repeats, n) with an interval that counts hospitals."""
    return repeated_estimate([mean_estimate(row, groups=site) for row in np.atleast_2d(scores)], FOLDS)


def show_people(study, frame: pd.DataFrame) -> None:
    """Who they are, by the dose they needed, and how far the published formulas explain it."""
    study.heading("1. The people")
    study.show(
        f"{len(frame):,} people in {frame['site'].nunique()} hospitals whose stable dose and genotypes are known."
    )
    rows = {}
    for dose in DOSES:
        part = frame[frame["group"] == dose]
        rows[dose] = {"people": len(part), "%": 100 * len(part) / len(frame), "age, decades": part["age"].mean(),
                      "kg": part["weight"].mean(), "A alleles of VKORC1": part["vkorc1_a"].mean(),
                      "variants of CYP2C9": (part["cyp2c9_2"] + part["cyp2c9_3"]).mean()}  # fmt: skip
    study.table(pd.DataFrame(rows).T.astype({"people": int}), "people", digits=2)
    for name, genes in (("clinical", False), ("with genotypes", True)):
        guess = formula(frame, genes)
        r2 = np.corrcoef(guess, frame["dose"])[0, 1] ** 2
        error = np.abs(guess - frame["dose"]).mean()
        study.show(f"Published formula, {name}: R2 {100 * r2:.1f}%, mean absolute error {error:.2f} mg a week")


def show_rules(study, frame: pd.DataFrame, repeats: int) -> pd.DataFrame:
    """Per cent who get the right dose, and per cent two groups off, by rules that have not seen the hospital."""
    study.heading("2. Rules, in hospitals that they have not seen: per cent who get the right dose")
    site = np.unique(frame["site"], return_inverse=True)[1]
    everybody = np.full((1, len(frame)), DOSES.index(MEDIUM))
    decided = {("none", "medium for everybody"): everybody}
    for genes, name in ((False, "clinical"), (True, "with genotypes")):
        for depth in DEPTHS[:2] if study.quick else DEPTHS:
            study.step(f"trees of depth {depth}, {name}")
            decided[name, f"tree of depth {depth}"] = held_out(frame, genes, depth, repeats)
        decided[name, "published formula"] = groups_of(formula(frame, genes))[None]
    rows, base = [], hit(frame, everybody)
    for (asks, rule), given in decided.items():
        value = estimate(hit(frame, given), site)
        gap = estimate(hit(frame, given) - base, site)
        far = np.abs(given - codes(frame["group"])) == 2
        rows.append({"asks": asks, "rule": rule, "right": value.value, "lower": value.lower, "upper": value.upper,
                     "more than medium": gap.value, "more, lower": gap.lower, "more, upper": gap.upper,
                     "two groups off": 100 * far.mean()})  # fmt: skip
    table = pd.DataFrame(rows)
    study.table(table, "rules", digits=2, index=False)
    study.show("What genotypes add, per 100 people, rule by rule:")
    gaps = []
    for asks, rule in decided:
        if asks == "clinical":
            gap = estimate(hit(frame, decided["with genotypes", rule]) - hit(frame, decided[asks, rule]), site)
            gaps.append({"rule": rule, "more right": gap.value, "lower": gap.lower, "upper": gap.upper,
                         "one more right per": 100 / gap.value if gap.value > 0 else np.nan})  # fmt: skip
    study.table(pd.DataFrame(gaps), "genotypes", digits=2, index=False)
    return table


def draw_rules(study, table: pd.DataFrame) -> None:
    """Per cent right by rule, with intervals."""
    shown = table.iloc[::-1]
    figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
    for k, row in enumerate(shown.itertuples()):
        error = [[row.right - row.lower], [row.upper - row.right]]
        ax.errorbar(row.right, k, xerr=error, fmt="o", capsize=3, color=COLORS[row.asks])
    labels = [
        rule if asks == "none" else f"{rule}, {asks}" for asks, rule in zip(shown["asks"], shown["rule"], strict=True)
    ]
    ax.set(yticks=range(len(shown)), yticklabels=labels, xlabel="per cent who get the right dose, 95% interval",
           title="Warfarin: rules in hospitals that they have not seen")  # fmt: skip
    study.figure(figure, "rules")


def show_tree(study, frame: pd.DataFrame) -> None:
    """The best tree of depth three of all people, proved."""
    study.heading("3. The best tree of depth 3 with genotypes (on the people who chose it)")
    study.step("the best tree")
    tree = PolicyTree(max_depth=2 if study.quick else 3, min_samples_leaf=SMALLEST)
    tree.fit(frame[columns(True)], right(frame))
    study.show(f"{tree.export_text()}\n")
    share = f"right for {100 * tree.objective_value_:.2f}% of the people who chose it (flattered)"
    study.show(f"{tree.status_.name.lower()}, gap {tree.optimality_gap_:g}; {share}")
    picture = tree.plot(title="Warfarin: the best tree of depth 3", value_name="share right")
    study.figure(picture.figure_, "tree")


def logged(frame: pd.DataFrame, way: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Doses drawn as in a trial, or as by doctors who mostly follow the clinical formula; and their chances, (n, 3)."""
    chances = np.full((len(frame), len(DOSES)), 1 / len(DOSES))
    if way == "doctors":
        chances *= 1 - FOLLOWED
        chances[np.arange(len(frame)), groups_of(formula(frame, genes=False))] += FOLLOWED
    return (rng.random(len(frame))[:, None] > chances.cumsum(axis=1)[:, :-1]).sum(axis=1), chances


def fitted_of(Y, T, **options) -> RewardEstimator:
    """Rewards; doctors leave some doses rare, which the table counts instead of a warning in every draw."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        return RewardEstimator(cv=INNER, random_state=0).fit(Y, T, **options)


def learnt(frame: pd.DataFrame, way: str, draw: int) -> list[dict]:
    """Trees learnt from one draw of logged treatments, judged by the truth on the other hospitals."""
    rng = np.random.default_rng([draw, len(way)])
    halves = GroupShuffleSplit(1, test_size=0.5, random_state=draw)
    learn, judge = next(halves.split(frame, groups=frame["site"]))
    given, chances = logged(frame, way, rng)
    seen = (given == codes(frame["group"])).astype(float)  # all that is logged: did the dose turn out right?
    arms, X, truth = np.array(DOSES)[given], frame[columns(True)], codes(frame["group"])
    rows, W = [], pd.get_dummies(frame["race"], dtype=float)
    options = {"X": X.iloc[learn], "W": W.iloc[learn], "groups": frame["site"].iloc[learn]}
    known = pd.DataFrame(chances, columns=list(DOSES), index=frame.index)[sorted(DOSES)]
    fitted = fitted_of(seen[learn], arms[learn], **options)
    weighted = RewardEstimator(method="ipw", random_state=0).fit(
        seen[learn], arms[learn], propensity=known.iloc[learn], groups=options["groups"]
    )
    full = right(frame)[sorted(DOSES)].iloc[learn]
    plain = pd.DataFrame(
        {dose: np.where(arms[learn] == dose, seen[learn], 0.0) for dose in sorted(DOSES)}, index=X.index[learn]
    )
    others = {"X": X.iloc[judge], "W": W.iloc[judge], "groups": frame["site"].iloc[judge]}
    judged = fitted_of(seen[judge], arms[judge], **others)
    for name, rewards in (
        ("doubly robust", fitted.rewards_), ("outcome models alone", fitted.regression_),
        ("inverse weights, known chances", weighted.rewards_), ("no adjustment", plain), ("right doses known", full),
    ):  # fmt: skip
        tree = PolicyTree(max_depth=2, min_samples_leaf=SMALLEST).fit(X.iloc[learn], rewards)
        chosen = tree.predict(X.iloc[judge])
        value = policy_value(chosen, judged.rewards_)
        actual = float((codes(chosen) == truth[judge]).mean())
        rows.append({"logged": way, "learnt by": name, "draw": draw, "right": 100 * actual, "judged": 100 * value.value,
                     "error": 100 * value.standard_error, "holds": value.lower <= actual <= value.upper,
                     "raised": 100 * judged.n_clipped_ / len(judge)})  # fmt: skip
    medium = float((truth[judge] == DOSES.index(MEDIUM)).mean())
    rows.append({"logged": way, "learnt by": "medium for everybody", "draw": draw, "right": 100 * medium})
    return rows


def show_logged(study, frame: pd.DataFrame) -> None:
    """Compare learning from logged treatments with the truth, over draws; and whether held-out intervals hold it."""
    draws = 2 if study.quick else DRAWS
    study.heading(f"4. Learnt from logged treatments only: per cent right in other hospitals ({draws} draws)")
    study.show(f"A simulation on real people: treatments are drawn, by lot or by doctors of whom {100 * FOLLOWED:.0f}% "
               "follow the clinical formula; all that is seen is whether the dose was right.")  # fmt: skip
    rows = []
    for way in ("lot", "doctors"):
        for draw in range(draws):
            study.step(f"{way}, draw {draw + 1} of {draws}")
            rows += learnt(frame, way, draw)
    table = pd.DataFrame(rows)
    table.to_csv(study.results / "draws.csv", index=False, float_format="%.6g", lineterminator="\n")
    best = table[table["learnt by"] == "right doses known"].set_index(["logged", "draw"])["right"]
    table["less"] = best.loc[pd.MultiIndex.from_frame(table[["logged", "draw"]])].to_numpy() - table["right"]
    groups = table.groupby(["logged", "learnt by"], sort=False)
    shown = pd.DataFrame({
        "right": groups["right"].mean(), "less than knowing": groups["less"].mean(),
        "its s.e.": groups["less"].sem(), "judged by logs": groups["judged"].mean(),
        "s.e. of judging": groups["error"].mean(), "intervals that hold": groups["holds"].sum(min_count=1),
        "% of rows raised": groups["raised"].mean(),
    }).reset_index()  # fmt: skip
    study.table(shown, "logged", digits=2, index=False)


def main(study) -> None:
    """Run the study."""
    frame = patients()
    if study.quick:
        frame = frame[frame["site"] <= 14].reset_index(drop=True)
    show_people(study, frame)
    draw_rules(study, show_rules(study, frame, 1 if study.quick else REPEATS))
    show_tree(study, frame)
    show_logged(study, frame)
