"""Small classes in Tennessee: who gains, what a percentile point costs, and whom to seat first if seats are few.

Public interface used: RewardEstimator (propensity by school), MayBeMissing, policy_value, heterogeneity_test,
held_out_rewards, rank_average_treatment_effect; prices and trees are in ../worth.py.
"""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from whom_first import compared
from worth import Worths, show_prices, show_trees, show_values

from policytree import RewardEstimator, Study, held_out_rewards, heterogeneity_test, policy_value
from policytree.datasets.files import packaged_frame
from policytree.evaluation.estimates import Estimate, influence_estimate
from policytree.study import MayBeMissing

REGULAR, AIDE, SMALL = "regular", "regular+aide", "small"
ARMS = (REGULAR, AIDE, SMALL)
CLASS_SIZE = {REGULAR: 22.4, AIDE: 22.8, SMALL: 15.1}  # kindergarten means of Krueger (1999); the file has no classes
TEACHER, HELPER = 60_000.0, 20_000.0  # dollars a year, with the room: assumptions
PUBLISHED = {SMALL: 5.37}  # Krueger (1999), Table V, kindergarten, with effects of schools
WORTHS = Worths(
    "a point", moved=(50.0, 100.0, 200.0, 300.0, 500.0, 1_000.0), judged=(100.0, 300.0, 1_000.0), smallest=100
)
TESTS = ("readk", "mathk")
SHOWN_GROUPS = {
    "free lunch": ("free_lunch", 1.0), "no free lunch": ("free_lunch", 0.0),
    "girls": ("girl", 1.0), "boys": ("girl", 0.0),
    "inner city": ("inner_city", 1.0), "elsewhere": ("inner_city", 0.0),
    "black": ("black", 1.0), "other": ("black", 0.0),
}  # fmt: skip
CONTRASTS = (("free lunch", "no free lunch"), ("black", "other"), ("inner city", "elsewhere"), ("boys", "girls"))


def seat_cost(arm: str) -> float:
    """Dollars a year for one child's share of the teacher, the room, and the aide."""
    return (TEACHER + HELPER * (arm == AIDE)) / CLASS_SIZE[arm]


def percentile(score: pd.Series, of_regular: pd.Series) -> np.ndarray:
    """Place among the children in regular classes, with or without an aide, 0 to 100; ties share their mean place."""
    known = np.sort(of_regular.dropna().to_numpy())
    value = score.to_numpy(float)
    place = (np.searchsorted(known, value) + np.searchsorted(known, value, side="right")) / 2
    return np.where(np.isnan(value), np.nan, 100 * place / len(known))


def children(raw: pd.DataFrame) -> pd.DataFrame:
    """Those who entered the trial in kindergarten, one row each, in the schools that had all three kinds of class."""
    own = raw[raw["stark"].notna()]
    kinds = own.groupby("schoolidk")["stark"].transform("nunique")
    own = own[kinds == len(ARMS)].reset_index(drop=True)
    regular = own["stark"] != SMALL
    points = np.stack([percentile(own[test], own.loc[regular, test]) for test in TESTS])
    seen = ~np.isnan(points)
    year, quarter = own["birth"].str.extract(r"(\d{4}) Q(\d)").astype(float).to_numpy().T
    return pd.DataFrame({
        "class": own["stark"].astype(str),
        "points": np.where(seen.any(axis=0), np.nansum(points, axis=0) / np.maximum(seen.sum(axis=0), 1), np.nan),
        "free_lunch": (own["lunchk"] == "free").astype(float).where(own["lunchk"].notna()),
        "girl": (own["gender"] == "female").astype(float).where(own["gender"].notna()),
        "age": 1985.75 - (year + (quarter - 0.5) / 4),  # at the start of school, to the quarter of birth
        "inner_city": (own["schoolk"] == "inner-city").astype(float),
        "rural": (own["schoolk"] == "rural").astype(float),
        "black": (own["ethnicity"] == "afam").astype(float).where(own["ethnicity"].notna()),
        "school": own["schoolidk"].astype(int),
    })  # fmt: skip


def shares(frame: pd.DataFrame) -> pd.DataFrame:
    """Each school's shares of the three kinds of class: children were drawn into classes within their school."""
    counts = pd.crosstab(frame["school"], frame["class"], normalize="index")[list(sorted(ARMS))]
    return counts.loc[frame["school"]].reset_index(drop=True)


def as_study(frame: pd.DataFrame) -> Study:
    """Make the study: schools are kept together; race is adjusted for, and no tree may ask about it."""
    return Study(
        frame.join(shares(frame).add_prefix("chance of ")), treatment="class", outcome=MayBeMissing("points"),
        direction="maximize", confounders=["black"], cluster="school",
        covariates=["free_lunch", "girl", "age", "inner_city", "rural"],
        propensity={arm: f"chance of {arm}" for arm in ARMS},
    )  # fmt: skip


def net(frame: pd.DataFrame, worth: float) -> pd.Series:
    """Dollars a child: what the points are worth, less the seat."""
    return worth * frame["points"] - frame["class"].map(seat_cost)


def show_children(study, frame: pd.DataFrame) -> None:
    """Counts by kind of class, who has no score, whether the lot was a lot, and what a seat is taken to cost."""
    sizes = ", ".join(f"{size:g} ({arm})" for arm, size in CLASS_SIZE.items())
    study.show(
        f"A teacher with a room is taken to cost ${TEACHER:,.0f} a year, an aide ${HELPER:,.0f}; mean sizes {sizes}."
    )
    rows = {}
    for arm, part in frame.groupby("class"):
        rows[arm] = {
            "children": len(part), "no score, %": 100 * part["points"].isna().mean(),
            "free lunch, %": 100 * part["free_lunch"].mean(), "black, %": 100 * part["black"].mean(),
            "girls, %": 100 * part["girl"].mean(), "age": part["age"].mean(), "a seat, $": seat_cost(arm),
        }  # fmt: skip
    study.table(pd.DataFrame(rows).T.astype({"children": int}), "children", digits=2)


def without_school(frame: pd.DataFrame, arm: str) -> float:
    """Difference of raw means within schools, schools weighted by their children: what the lot alone says."""
    seen = frame.dropna(subset=["points"])
    means = seen.pivot_table(index="school", columns="class", values="points")
    weight = seen["school"].value_counts().loc[means.index]
    return float(np.average((means[arm] - means[REGULAR]).fillna(0.0), weights=weight))


def group_gap(gains: np.ndarray, first: np.ndarray, second: np.ndarray, school: pd.Series, level: float) -> Estimate:
    """Mean gain of one group (mask) less that of another, its error by school."""
    value, influence = 0.0, np.zeros(len(gains))
    for mask, sign in ((first, 1.0), (second, -1.0)):
        mean = gains[mask].mean()
        value += sign * mean
        influence[mask] = sign * (gains[mask] - mean) / mask.mean()
    return influence_estimate(value, influence, groups=np.unique(school, return_inverse=True)[1], level=level)


def show_effects(study, frame: pd.DataFrame, fitted: RewardEstimator) -> pd.DataFrame:
    """Points that a small class, or an aide, adds; on average, and by groups."""
    study.heading("2. What small classes and aides add, percentile points")
    rewards, school, rows = fitted.rewards_, frame["school"], []
    for arm in (SMALL, AIDE):
        gap = policy_value(arm, rewards, baseline=REGULAR, groups=school)
        rows.append({"class": arm, "children": "all", "n": len(frame), "adds": gap.value, "lower": gap.lower,
                     "upper": gap.upper, "means within schools": without_school(frame, arm),
                     "published": PUBLISHED.get(arm, np.nan)})  # fmt: skip
    for name, (column, value) in SHOWN_GROUPS.items():
        mask = (frame[column] == value).to_numpy()
        gap = policy_value(SMALL, rewards[mask], baseline=REGULAR, groups=school[mask])
        rows.append({"class": SMALL, "children": name, "n": int(mask.sum()), "adds": gap.value, "lower": gap.lower,
                     "upper": gap.upper})  # fmt: skip
    table = pd.DataFrame(rows)
    study.table(table, "effects", digits=2, index=False)
    gains = (rewards[SMALL] - rewards[REGULAR]).to_numpy()
    rows = {}
    for first, second in CONTRASTS:
        masks = [(frame[SHOWN_GROUPS[name][0]] == SHOWN_GROUPS[name][1]).to_numpy() for name in (first, second)]
        alone, joint = (group_gap(gains, *masks, school, level) for level in (0.95, 1 - 0.05 / len(CONTRASTS)))
        rows[f"{first} less {second}"] = {
            "gains more": alone.value, "lower": alone.lower, "upper": alone.upper, "lower of all four": joint.lower,
            "upper of all four": joint.upper,
        }  # fmt: skip
    study.show("A group's gain less another's; the last two columns hold for all four at once (Bonferroni):")
    study.table(pd.DataFrame(rows).T, "contrasts", digits=2)
    return table


def draw_effects(study, table: pd.DataFrame) -> None:
    """Points by group with their intervals."""
    rows = table[table["class"] == SMALL].iloc[::-1]
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    at = np.arange(len(rows))
    ax.errorbar(rows["adds"], at, xerr=[rows["adds"] - rows["lower"], rows["upper"] - rows["adds"]], fmt="o",
                color="#0072B2", capsize=3)  # fmt: skip
    ax.axvline(0.0, color="black", linewidth=0.7)
    ax.axvline(rows["adds"].iloc[-1], color="#999999", linewidth=0.7, linestyle="--")
    ax.set(yticks=at, yticklabels=rows["children"], xlabel="percentile points, 95% interval",
           title="What a small class adds, by children")  # fmt: skip
    study.figure(figure, "effects")


def show_lost(study, frame: pd.DataFrame, fitted: RewardEstimator) -> None:
    """If those without a score did badly in small classes and well in the others; and the other way round."""
    low, high = np.nanquantile(frame["points"], [0.1, 0.9])
    small = frame["class"] == SMALL
    for name, filled in (("bad", np.where(small, low, high)), ("good", np.where(small, high, low))):
        known = frame.assign(points=frame["points"].fillna(pd.Series(filled)))
        again = RewardEstimator(random_state=0).fit(as_study(known).replace(outcome="points"))
        gap = policy_value(SMALL, again.rewards_, baseline=REGULAR, groups=frame["school"])
        study.show(
            f"Children without a score, a {name} case for small classes ({low:.1f} points or {high:.1f}, the tenth and "
            f"the ninetieth of a hundred children): {gap.value:.2f} [{gap.lower:.2f}, {gap.upper:.2f}]"
        )


def show_first(study, frame: pd.DataFrame) -> None:
    """Orders that a district could follow if small classes are few, learnt and known, judged by other schools."""
    study.heading("6. If seats are few: whom first?")
    study.step("whom first")
    held = held_out_rewards(RewardEstimator(random_state=0), as_study(frame), random_state=0)
    rows = frame.iloc[held.rows]
    priorities = {
        "predicted gain": held.predicted_gain(SMALL, REGULAR),
        "free lunch first": rows["free_lunch"].fillna(0.0),
        "inner city first": rows["inner_city"],
        "youngest first": -rows["age"].fillna(rows["age"].mean()),
        "boys first": 1.0 - rows["girl"].fillna(0.5),
    }
    autoc, table = compared(priorities, held, SMALL, REGULAR)
    study.show(f"{len(held.rows):,} children in {rows['school'].nunique()} schools judge what the others taught.")
    study.table(table, "priorities", digits=2)
    title = "Points that a small class adds, whom first (held out)"
    study.figure(autoc.plot(title=title, unit="points").figure_, "whom_first")


def main(study) -> None:
    """Run the study."""
    frame = children(packaged_frame("AER", "STAR"))
    if study.quick:
        frame = frame[frame["school"].isin(sorted(frame["school"].unique())[::3])].reset_index(drop=True)
    ask = replace(WORTHS, smallest=30) if study.quick else WORTHS
    data = as_study(frame)
    study.heading("1. The children")
    study.show(
        f"{len(frame):,} children in {frame['school'].nunique()} schools; {frame['points'].isna().sum()} have no score."
    )
    show_children(study, frame)
    study.step("nuisance models")
    fitted = RewardEstimator(random_state=0).fit(data)
    draw_effects(study, show_effects(study, frame, fitted))
    study.step("children without a score")
    show_lost(study, frame, fitted)
    study.step("do effects differ?")
    found = heterogeneity_test(data, fitted=fitted, random_state=0)
    study.show(f"{found}\n")

    study.heading("3. What one more percentile point costs, dollars")
    rewards = fitted.rewards_
    paid = pd.DataFrame({arm: seat_cost(arm) for arm in rewards}, index=rewards.index)
    show_prices(study, rewards, paid, [(SMALL, REGULAR), (AIDE, REGULAR), (SMALL, AIDE)], frame["school"], "points")
    study.heading(
        f"4. Which class for whom as the worth of a point moves (at least {ask.smallest} of every class a leaf)"
    )
    show_trees(study, data, rewards, paid, ARMS, ask)
    study.heading("5. In schools that the tree has not seen (dollars a child)")
    show_values(study, data, lambda worth: net(frame, worth), ask, 0, "Tennessee: held out")
    show_first(study, frame)
