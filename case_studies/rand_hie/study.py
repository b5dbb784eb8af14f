"""RAND Health Insurance Experiment: which of five plans for whom, as the worth of a doctor's visit moves.

Public interface used: load_dataset, RewardEstimator, PolicyTree, policy_value, and of
policytree.evaluation repeated_estimate and compare_with_best; in priorities.py rankings and cost curves.
"""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rand_hie.priorities import show_priorities
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from policytree import DRPolicyTree, PolicyTree, RewardEstimator, load_dataset, policy_value
from policytree.evaluation.estimates import Estimate, repeated_estimate
from policytree.evaluation.inference.best_arm import compare_with_best
from policytree.exceptions import OverlapWarning

PRICES = (0, 20, 40, 60, 80, 120)  # what one face-to-face visit is worth, dollars
SHOWN = (0, 60, 120)
OUTCOMES = ("visits", "spending")
MIN_LEAF = 800  # person-years, one in twenty
LEAF_PRICE = 10.0  # dollars a person-year that a leaf must bring; not tuned
REPEATS, FOLDS = 3, 5  # of the held-out values
COLORS = {"free": "#E69F00", "25%": "#F0E442", "50%": "#009E73", "95%": "#0072B2", "deductible": "#56B4E9"}
# Manning et al. (1987), table 2: mean visits a person-year, and total spending in June 1984 dollars. From memory: look
# them up before you cite them.
PUBLISHED = {"free": (4.55, 749), "25%": (3.33, 634), "50%": (3.03, 674), "95%": (2.73, 518), "deductible": (3.02, 608)}


def persons(study):
    """The data set, all rows of it, and those of the five sites where every plan was offered."""
    dataset = load_dataset("rand-hie", sites="all")
    frame = dataset.frame
    if study.quick:
        frame = frame[frame["household"] % 4 == 0].reset_index(drop=True)
    return dataset, frame, frame[frame["site"] != "Seattle"].reset_index(drop=True)


def tables(dataset, frame) -> dict:
    """X (a rule may look at), W (nuisance models only), and the propensity: shares of plans within the site.

    Families were randomised within sites, so the shares are the design's, up to chance.
    """
    shares = pd.crosstab(frame["site"], frame["plan"], normalize="index")
    return {
        "X": frame[list(dataset.covariates)],
        "W": frame[list(dataset.confounders)],
        "propensity": shares.loc[frame["site"]].set_index(frame.index),
    }


def ridge() -> Pipeline:
    """Regression of the outcomes in the parts: boosting brings little here, and there are dozens of fits."""
    return make_pipeline(StandardScaler(), RidgeCV([1.0, 10.0, 100.0, 1_000.0]))


def smallest_leaf(study) -> int:
    """Person-years."""
    return MIN_LEAF // 4 if study.quick else MIN_LEAF


def tree_of_all(study, price: float) -> tuple[dict, DRPolicyTree]:
    """Fit a tree of depth two to all person-years if a visit is worth so many dollars; return its data and the tree."""
    dataset, _, frame = persons(study)
    outcome = price * frame["visits"] - frame["spending"]
    data = {"Y": outcome, "T": frame["plan"], **tables(dataset, frame), "groups": frame["household"]}
    model = DRPolicyTree(
        ridge(), max_depth=2, min_samples_leaf=smallest_leaf(study), min_samples_per_treatment=0, cv=3, random_state=0
    )
    study.step("the tree of all person-years")
    return data, model.fit(**data)


def learn(frame, given, rows, outcome, seed=0) -> RewardEstimator:
    """Nuisance models of one outcome on some rows, households kept together."""
    part = {name: table.iloc[rows] for name, table in given.items()}
    here = frame.iloc[rows]
    return RewardEstimator(cv=3, random_state=seed).fit(here[outcome], here["plan"], **part, groups=here["household"])


def worth(rewards: dict[str, pd.DataFrame], price: float) -> pd.DataFrame:
    """Dollars a person-year: visits at their price, less spending."""
    return price * rewards["visits"] - rewards["spending"]


def best_tree(X, rewards, leaf_price: float = 0.0) -> PolicyTree:
    """The exact tree of depth 2."""
    tree = PolicyTree(max_depth=2, min_samples_leaf=MIN_LEAF, regularization=leaf_price, n_jobs=2)
    return tree.fit(X, rewards)


def show_plans(study, frame, rewards) -> None:
    """Means of the plans with intervals by person and by household, beside the publication."""
    study.heading("1. The plans (a person-year)")
    rows = []
    for outcome in OUTCOMES:
        raw = frame.groupby("plan")[outcome].mean()
        for plan in PUBLISHED:
            by_person, by_household = (
                policy_value(plan, rewards[outcome], groups=frame[unit]) for unit in ("person", "household")
            )
            rows.append({"outcome": outcome, "plan": plan, "raw": raw[plan], "doubly robust": by_person.value})
            rows[-1] |= {"SE by person": by_person.standard_error, "SE by household": by_household.standard_error}
    study.table(pd.DataFrame(rows), "plans", digits=2, index=False)
    study.show("As a share of free care, here (doubly robust) and in Manning et al. (1987), table 2:")
    ours = {o: rewards[o].mean() / rewards[o]["free"].mean() for o in OUTCOMES}
    shares = {
        plan: {
            "visits, here": ours["visits"][plan],
            "visits, published": visits / PUBLISHED["free"][0],
            "spending, here": ours["spending"][plan],
            "spending, published": spending / PUBLISHED["free"][1],
        }
        for plan, (visits, spending) in PUBLISHED.items()
    }
    study.table(pd.DataFrame.from_dict(shares, orient="index"), "published", digits=2)
    visits, dollars = (policy_value("free", rewards[o], baseline="95%", groups=frame["household"]) for o in OUTCOMES)
    price, low, high = ratio(dollars, visits, frame["household"])
    study.show(
        f"Free care instead of 95 %: {visits.value:.2f} more visits [{visits.lower:.2f}, {visits.upper:.2f}] for "
        f"{dollars.value:.0f} dollars more [{dollars.lower:.0f}, {dollars.upper:.0f}]: {price:.0f} dollars a visit "
        f"[{low:.0f}, {high:.0f}] (Fieller)."
    )


def ratio(a: Estimate, b: Estimate, groups) -> tuple[float, float, float]:
    """A ratio of two estimates on the same rows with Fieller's interval: the ratios r for which a - r b may be zero."""
    sums = pd.DataFrame({"a": a.influence, "b": b.influence}).groupby(groups.to_numpy()).sum()
    covariance = len(sums) / (len(sums) - 1) * (sums.T @ sums).to_numpy() / len(a.influence) ** 2
    t = (a.upper - a.value) / a.standard_error
    ends = np.roots([
        b.value**2 - t**2 * covariance[1, 1],
        -2 * (a.value * b.value - t**2 * covariance[0, 1]),
        a.value**2 - t**2 * covariance[0, 0],
    ])  # fmt: skip
    return a.value / b.value, float(ends.min()), float(ends.max())


def show_overlap(study, dataset, everywhere, frame, given) -> None:
    """Where the data cannot answer, and what comes out, seed by seed, if one asks all the same."""
    study.heading("2. Why Seattle is left out: nobody there could get the 50% plan")
    study.table(pd.crosstab(everywhere["site"], everywhere["plan"]), "plans_by_site")
    X, W = (everywhere[list(columns)] for columns in (dataset.covariates, dataset.confounders))
    said, rows = [], []
    for seed in range(2 if study.quick else 4):
        study.step(f"all six sites, propensity estimated, as one would without looking: seed {seed}")
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", OverlapWarning)
            careless = RewardEstimator(cv=3, random_state=seed).fit(
                everywhere["visits"], everywhere["plan"], X=X, W=W, groups=everywhere["household"]
            )
        said += heard
        rows.append({"rows": "all sites", "seed": seed, **_plan_50(careless, everywhere)})
    for seed in range(2 if study.quick else 4):
        study.step(f"without Seattle, known propensity: seed {seed}")
        careful = learn(frame, given, slice(None), "visits", seed)
        rows.append({"rows": "without Seattle", "seed": seed, **_plan_50(careful, frame)})
    study.show(f"OverlapWarning: {said[0].message if said else 'none'}\n")
    table = pd.DataFrame(rows)
    study.table(table, "seattle", digits=2, index=False)
    charleston = everywhere["site"].eq("Charleston") & everywhere["plan"].eq("50%")
    study.show(
        f"Charleston has {charleston.sum()} person-years on the 50% plan. Where most of them are held out together, "
        "the propensity\nmodel knows hardly anybody there who had it; the last column says how large weights (one over "
        "the propensity) become."
    )


def _plan_50(estimator: RewardEstimator, frame) -> dict:
    """Value of the 50% plan, and what drives it: Charleston's rows by fold, and the largest weight of a row."""
    value = policy_value("50%", estimator.rewards_, groups=frame["household"])
    had = frame["plan"].eq("50%").to_numpy()
    here = had & frame["site"].eq("Charleston").to_numpy()
    return {
        "visits on the 50% plan": value.value,
        "SE by household": value.standard_error,
        "Charleston's in one fold, at most": int(np.bincount(estimator.folds_[here]).max()),
        "largest weight": float((1 / estimator.propensity_["50%"].to_numpy()[had]).max()),
    }


def show_trees(study, frame, X, rewards) -> pd.DataFrame:
    """Shares of person-years per plan under the best tree at every price; pictures of some."""
    study.heading(f"3. Who gets which plan as the worth of a visit moves (at least {MIN_LEAF} person-years a leaf)")
    rows = []
    for price in PRICES:
        study.step(f"best tree, a visit worth {price} dollars")
        net = worth(rewards, price)
        tree = best_tree(X, net)
        plans = tree.predict(X)
        shares = pd.Series(plans).value_counts(normalize=True)
        best = net.mean()
        rows.append({"price": price, **{plan: shares.get(plan, 0.0) for plan in COLORS}, "best plan": best.idxmax()})
        rows[-1]["tree - best plan (flattered)"] = tree.objective_value_ - best.max()
        if price in SHOWN:
            study.show(f"A visit is worth {price} dollars ({tree.status_.name.lower()}, gap {tree.optimality_gap_:g}):")
            study.show(tree.export_text() + "\n")
            title = f"RAND: a visit worth {price} dollars"
            display = tree.tree_.plot(title=title, treatment_colors=COLORS, unit="person-years")
            study.figure(display.figure_, f"tree_price_{price}")
    table = pd.DataFrame(rows)
    study.show("Share of person-years per plan:")
    study.table(table, "shares", digits=2, index=False)
    return table


def held_out(study, frame, given) -> list[tuple[dict, dict]]:
    """Per repetition: held-out rewards of every row, and recommendations by trees that have not seen its household."""
    repeats, n_folds = (2, 2) if study.quick else (REPEATS, FOLDS)
    repetitions = []
    for repeat in range(repeats):
        rewards = {o: pd.DataFrame(np.nan, index=frame.index, columns=list(COLORS)) for o in OUTCOMES}
        plans = {(price, leaf): np.empty(len(frame), dtype=object) for price in PRICES for leaf in (0.0, LEAF_PRICE)}
        folds = GroupKFold(n_folds, shuffle=True, random_state=repeat).split(frame, groups=frame["household"])
        for fold, (train, test) in enumerate(folds, start=1):
            study.step(f"held-out values: repetition {repeat + 1} of {repeats}, fold {fold} of {n_folds}")
            part, here, seen = {name: table.iloc[test] for name, table in given.items()}, frame.iloc[test], {}
            for outcome in OUTCOMES:
                estimator = learn(frame, given, train, outcome, seed=fold)
                seen[outcome] = estimator.rewards_
                new = estimator.predict_rewards(here[outcome], here["plan"], **part)
                rewards[outcome].loc[here.index, new.columns] = new.to_numpy()
            for price, leaf in plans:
                tree = best_tree(given["X"].iloc[train], worth(seen, price), leaf)
                plans[price, leaf][test] = tree.predict(part["X"])
        repetitions.append((rewards, plans))
    return repetitions


def show_values(study, frame, repetitions) -> pd.DataFrame:
    """Held-out value of the tree and its advantage over the best single plan and over free care, per price."""
    study.heading("4. What the trees are worth on households they have not seen (dollars a person-year)")

    def difference(price, leaf, plan) -> Estimate:
        parts = [
            policy_value(plans[price, leaf], worth(rewards, price), baseline=plan, groups=frame["household"])
            for rewards, plans in repetitions
        ]
        return repeated_estimate(parts, FOLDS)

    rows = []
    for price in PRICES:
        nets = [worth(rewards, price) for rewards, _ in repetitions]
        tree = np.mean([policy_value(p[price, 0.0], net).value for net, (_, p) in zip(nets, repetitions, strict=True)])
        gain, priced = (
            compare_with_best({plan: difference(price, leaf, plan) for plan in COLORS}, "maximize")
            for leaf in (0.0, LEAF_PRICE)
        )
        free = difference(price, 0.0, "free")
        rows.append(
            {"price": price, "tree": tree, "plans they had": (price * frame["visits"] - frame["spending"]).mean()}
        )
        rows[-1] |= {"best plan": gain.best, "its value": np.mean([net[gain.best].mean() for net in nets])}
        rows[-1] |= {"tree - best": gain.value, "lower": gain.lower, "upper": gain.upper}
        rows[-1] |= {"tree - free": free.value, "free lower": free.lower, "free upper": free.upper}
        rows[-1] |= {"priced - best": priced.value, "priced lower": priced.lower, "priced upper": priced.upper}
    table = pd.DataFrame(rows)
    table.to_csv(study.results / "held_out_values.csv", index=False, float_format="%.10g", lineterminator="\n")
    study.show(table.iloc[:, :8].to_string(index=False, float_format=lambda v: f"{v:,.1f}") + "\n")
    study.show(table.iloc[:, [0, *range(8, 14)]].to_string(index=False, float_format=lambda v: f"{v:,.1f}") + "\n")
    study.show(f"Priced: the tree whose every leaf must bring {LEAF_PRICE:g} dollars a person-year.")
    study.show(
        f"By cross-fitting over {FOLDS} folds, repeated {len(repetitions)} times; 95 % intervals, clustered by "
        "household, with the variance\nbetween repetitions in them. Best plan: the one with the best estimate; the "
        "intervals allow for its not being known beforehand."
    )
    return table


def draw(study, shares, values) -> None:
    """Plans given as the price moves, and what the rule gains."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.8, 6.2), sharex=True, layout="constrained")
    position, base = np.arange(len(shares)), np.zeros(len(shares))
    for plan, color in COLORS.items():
        top.bar(position, shares[plan], bottom=base, color=color, label=plan, width=0.7)
        base += shares[plan].to_numpy()
    top.set(ylabel="share of person-years", title="RAND: plans given by the best tree of depth 2")
    top.legend(ncols=5, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.08), fontsize=9)
    for column, ends, shift, color, label in (
        ("tree - best", ("lower", "upper"), -0.2, "#0072B2", "tree, against the best single plan"),
        ("tree - free", ("free lower", "free upper"), 0.0, "#D55E00", "tree, against free care for all"),
        (
            "priced - best",
            ("priced lower", "priced upper"),
            0.2,
            "#009E73",
            "tree with priced leaves, against best plan",
        ),
    ):
        error = np.abs(values[list(ends)].to_numpy().T - values[column].to_numpy())
        bottom.errorbar(position + shift, values[column], error, fmt="o", color=color, capsize=3, label=label)
    bottom.axhline(0.0, color="#AAAAAA", linewidth=0.8, linestyle="--")
    bottom.set(ylabel="held-out gain, dollars a person-year", xlabel="worth of a visit, dollars")
    bottom.set_xticks(position, shares["price"])
    bottom.legend(frameon=False, fontsize=8)
    study.figure(figure, "price")


def main(study) -> None:
    """Run the study."""
    dataset, everywhere, frame = persons(study)
    study.show(
        f"RAND: {len(everywhere):,} person-years of {everywhere['person'].nunique():,} persons; in the five sites with "
        f"all five plans {len(frame):,} person-years of {frame['person'].nunique():,} persons in "
        f"{frame['household'].nunique():,} households; {len(dataset.covariates)} covariates to split on"
    )
    given, rewards = tables(dataset, frame), {}
    for outcome in OUTCOMES:
        study.step(f"nuisance models of {outcome}")
        rewards[outcome] = learn(frame, given, slice(None), outcome).rewards_
    show_plans(study, frame, rewards)
    show_overlap(study, dataset, everywhere, frame, given)
    shares = show_trees(study, frame, given["X"], rewards)
    values = show_values(study, frame, held_out(study, frame, given))
    draw(study, shares, values)
    show_priorities(study, frame, given)
