"""NHEFS: what quitting smoking does to weight, for whom, and how sure one can be without an experiment.

Public interface used: load_dataset, RewardEstimator, overlap_table, balance_table, policy_value,
heterogeneity_test, DRPolicyTree, PolicyTree, cross_val_policy_value,
held_out_rewards, honest_leaf_summary. Rankings are in priorities.py, hidden confounders in confounding.py.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from nhefs.confounding import show_hidden_confounders
from nhefs.priorities import QUIT, SMOKE, show_priorities

from policytree import (
    DRPolicyTree,
    PolicyTree,
    RewardEstimator,
    Study,
    cross_val_policy_value,
    held_out_rewards,
    heterogeneity_test,
    honest_leaf_summary,
    load_dataset,
    policy_value,
)
from policytree.diagnostics import balance_table, overlap_table
from policytree.evaluation.estimates import Estimate, influence_estimate
from policytree.exceptions import BalanceWarning, InputError

# Hernan and Robins (2020), "Causal Inference: What If", sections 12.1, 12.2 and 13.3: kilograms, 95% intervals, the
# same 1,566 people. Nothing but the table "effects" uses them.
PUBLISHED = {"no adjustment": (2.5, 1.7, 3.4), "weighting": (3.4, 2.4, 4.5), "standardisation": (3.5, 2.6, 4.5)}
WORTH = 3.5  # kilograms from which a quitter is offered help with weight; an assumption, moved in section 5
WORTHS = (2.0, 3.5, 5.0)
SHOWN = {QUIT: "quit", SMOKE: "quit with help"}  # what the arms mean as advice: help would undo the gain, at its price
SMALLEST = 40  # people of each kind in a leaf
AFTER = ["wt82", "smkintensity82_71", "sbp"]  # measured after the decision: never covariates


def table() -> pd.DataFrame:
    """The file with all its columns, also those that came after the decision; the same rows as the data set."""
    try:
        from causaldata import nhefs_complete
    except ImportError:
        raise InputError("This study's data come with the package causaldata: `pip install causaldata`.") from None
    return nhefs_complete.load_pandas().data


def people() -> Study:
    """The study; race is for adjustment only."""
    return load_dataset("nhefs").study()


def show_check(study, data: Study, raw: pd.DataFrame) -> None:
    """Show the check of the table before any fit, and of a careless choice of covariates."""
    study.heading("1. The people, and a check of the table")
    Y, T = rows_of(data).values()
    groups = Y.groupby(T)
    counts = pd.DataFrame({"people": groups.size(), "mean change of weight, kg": groups.mean()})
    study.table(counts.rename_axis(None), "people", digits=2)
    study.show(data.check())
    study.show(f"\nThe same check if columns measured after the decision slip in ({', '.join(AFTER)}):")
    later = data.table.assign(**{name: raw[name] for name in AFTER})
    study.show(data.replace(table=later, covariates=[*data.covariates, *AFTER]).check())


def show_overlap(study, data: Study, fitted: RewardEstimator) -> None:
    """Whether everybody could have done either, and whether weighted quitters resemble weighted smokers."""
    study.heading("2. Overlap and balance")
    T = rows_of(data)["T"]
    table = overlap_table(fitted.propensity_, T)
    study.table(table.rename_axis(None), "overlap", digits=2)
    covariates = pd.concat([data.X, data.W], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BalanceWarning)  # the table below shows it
        balance = balance_table(T, X=covariates, propensity=fitted.propensity_).droplevel(0)
    study.show("Those who smoke on less those who quit, standard deviations, before and after weighting:")
    study.table(balance, "balance", digits=2)
    study.figure(fitted.plot_overlap(T).figure_, "overlap")
    study.figure(fitted.plot_balance(T, covariates).figure_, "balance")


def show_effects(study, data: Study, fitted: RewardEstimator) -> None:
    """The average effect on all, on those who quit, and where either was likely; beside the textbook's numbers."""
    study.heading("3. What quitting adds to weight by 1982, kilograms")
    rows = {
        "no adjustment": raw_difference(data),
        "everybody, doubly robust": policy_value(QUIT, fitted.rewards_, baseline=SMOKE),
    }
    for name, estimand, treated in (("those who quit", "treated", QUIT), ("where either was likely", "overlap", None)):
        study.step(f"effect on {name}")
        other = RewardEstimator(estimand=estimand, treated=treated, random_state=0).fit(data)
        rows[name] = policy_value(QUIT, other.rewards_, baseline=SMOKE, population=other.population_)
    table = pd.DataFrame({name: [e.value, e.lower, e.upper] for name, e in rows.items()}).T
    published = pd.DataFrame({f"published, {name}": values for name, values in PUBLISHED.items()}).T
    whole = pd.concat([table, published]).set_axis(["effect", "lower", "upper"], axis=1)
    study.table(whole, "effects", digits=2)
    study.step("do effects differ?")
    study.show(heterogeneity_test(data, fitted=fitted, random_state=0))


def raw_difference(data: Study) -> Estimate:
    """Mean of those who quit less that of the others: no adjustment at all."""
    Y, T = rows_of(data).values()
    quit_ = (T == QUIT).to_numpy()
    first, second = (Y[mask].mean() for mask in (quit_, ~quit_))
    residual = Y.to_numpy() - np.where(quit_, first, second)
    share = quit_.mean()
    return influence_estimate(first - second, np.where(quit_, residual / share, -residual / (1 - share)))


def rows_of(data: Study) -> dict[str, pd.Series]:
    """Outcomes and treatments."""
    return {"Y": data.table[data.outcome.column], "T": data.table[data.treatment.column]}


def priced(data: Study) -> tuple[DRPolicyTree, Study]:
    """The tree, and the study in which smoking on is charged, in kilograms."""
    model = DRPolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST, random_state=0)
    return model, data.replace(arm_costs={SMOKE: WORTH})


def show_tree(study, data: Study, fitted: RewardEstimator) -> None:
    """Whom quitting makes heavier by more than the price: the exact tree, and what its leaves hold for others."""
    study.heading(f"4. Whom does quitting make more than {WORTH:g} kg heavier? The best tree of depth 2")
    tree = PolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST, direction="minimize")
    rewards, arms = fitted.rewards_.rename(columns=SHOWN), rows_of(data)["T"].map(SHOWN)
    tree.fit(data.X, rewards, arms, sample_treatment_costs={SHOWN[SMOKE]: WORTH})
    study.show(f"{tree.export_text()}\n")
    study.show(f"{tree.status_.name}, gap {tree.optimality_gap_:g}: no tree of depth 2 is better on these rows.")
    title = f"Help with weight where quitting adds more than {WORTH:g} kg"
    plot = tree.plot(title=title, value_name="kg and price")
    study.figure(plot.figure_, "tree")
    study.step("leaves, judged by the other half")
    leaves = honest_leaf_summary(*priced(data), random_state=0)
    study.show(
        "\nThe same learnt from one half; what quitting adds in its leaves, by the other half (kg, intervals that hold"
    )
    study.show("for all leaves at once):")
    study.table(leaf_effects(leaves, data), "leaves", digits=2, index=False)


def leaf_effects(honest, data: Study) -> pd.DataFrame:
    """Estimate the effect of quitting in every leaf of a tree that others chose, with Bonferroni's intervals."""
    tree, X = honest.estimator, data.X.iloc[honest.rows]
    leaf_of = tree.apply(X)
    gross = honest.rewards - pd.Series({SMOKE: WORTH}).reindex(honest.rewards.columns, fill_value=0.0)
    rows, leaves = [], sorted(set(leaf_of))
    for leaf in leaves:
        here = leaf_of == leaf
        effect = policy_value(QUIT, gross[here], baseline=SMOKE, level=1 - 0.05 / len(leaves))
        advice = SHOWN[tree.predict(X[here])[0]]
        rows.append({"people": int(here.sum()), "where": path_to(tree.tree_, leaf), "advice": advice,
                     "quitting adds": effect.value, "lower": effect.lower, "upper": effect.upper})  # fmt: skip
    return pd.DataFrame(rows)


def path_to(tree, leaf: int) -> str:
    """The answers that lead to a leaf, in words."""
    words, node = [], 0
    while node != leaf:
        name, cut = tree.features[tree.feature[node]].name, tree.threshold[node]
        right = tree.children_right[node]
        words.append(f"{name} {'>' if leaf >= right else '<='} {cut:g}")  # preorder: the right side's ids are larger
        node = int(right if leaf >= right else tree.children_left[node])
    return ", ".join(words)


def show_values(study, data: Study) -> None:
    """Show the value of the rules for people who did not choose them."""
    study.heading("5. Held-out value of rules (kilograms gained, plus the price where somebody smokes on)")
    done = cross_val_policy_value(
        *priced(data), random_state=0, **({"cv": 2, "n_repeats": 1} if study.quick else {}),
        progress=lambda k, total: study.step(f"refit {k} of {total}"),
    )  # fmt: skip
    study.show(f"{done}\n")
    done.to_frame().to_csv(study.results / "held_out_values.csv", float_format="%.10g", lineterminator="\n")
    labels = {"title": "NHEFS, people who did not choose the rule", "xlabel": "kg gained, and the price of help"}
    study.figure(done.plot(**labels).figure_, "held_out_values")


def show_worths(study, data: Study, held) -> None:
    """Other prices: trees of one half of the people, judged by the other half."""
    rows, learnt = [], held.estimator.rewards_
    X, arms, judges = data.X.loc[learnt.index], rows_of(data)["T"].loc[learnt.index], data.X.iloc[held.rows]
    for price in WORTHS:
        tree = PolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST, direction="minimize")
        tree.fit(X, learnt, arms, sample_treatment_costs={SMOKE: price})
        net = held.rewards + pd.Series({SMOKE: price}).reindex(held.rewards.columns, fill_value=0.0)
        row = {"price": price, "asks about": ", ".join(sorted(tree.get_used_features()))}
        row["helped %"] = 100 * float((tree.predict(judges) == SMOKE).mean())
        for other in (QUIT, SMOKE):
            gap = policy_value(tree.predict(judges), net, baseline=other)
            row |= {f"tree - all {other}": gap.value, f"{other} lower": gap.lower, f"{other} upper": gap.upper}
        rows.append(row)
    study.show(
        "At other prices: half of the people chooses the tree, the other half judges it (negative: the tree is better):"
    )
    study.table(pd.DataFrame(rows), "prices", digits=2, index=False)


def main(study) -> None:
    """Run the study."""
    raw = table()
    data = people()
    show_check(study, data, raw)
    study.step("nuisance models and rewards")
    fitted = RewardEstimator(random_state=0).fit(data)
    show_overlap(study, data, fitted)
    show_effects(study, data, fitted)
    show_tree(study, data, fitted)
    show_values(study, data)
    study.step("nuisance models of one half of the people")
    held = held_out_rewards(RewardEstimator(random_state=0), data, random_state=0)
    show_worths(study, data, held)
    show_priorities(study, data, held)
    show_hidden_confounders(study, data, fitted)
