"""Whether the data support the comparison: overlap and balance."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd

from policytree.diagnostics.overlap_balance import LARGE_DIFFERENCE, balance_table, overlap_table
from policytree.exceptions import BalanceWarning, OverlapWarning
from policytree.plotting.diagnostics import largest_differences, overlap_panels
from policytree.report.content import Block, Fold, Picture, Section, Table, Words
from policytree.report.material import Material
from policytree.report.sections.treatment_model import assigned_to, treatment_model
from policytree.weighting.covariates import Covariates
from policytree.weighting.logit import LogitPropensity

MOST_COVARIATES = 20  # in the picture: those farthest apart


def support_section(material: Material) -> Section | None:
    """Overlap and balance; None where rewards came from elsewhere, or are about other people."""
    rewards = material.rewards
    if (
        rewards is None
        or material.to_target
        or rewards.propensity_ is None
        or len(rewards.propensity_) != len(material.learning)
    ):
        return None
    title = "Overlap and balance of offers" if material.study.by_offers else "Overlap and balance"
    return Section("support", title, (*_overlap(material), *_regression(material), *_balance(material)))


def _overlap(material: Material) -> tuple[Block, ...]:
    rewards, (received, weight, groups) = material.rewards, assigned_to(material.study, material.learning)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", OverlapWarning)
        table = overlap_table(
            rewards.propensity_, received, floor=rewards.min_propensity, sample_weight=weight, groups=groups,
        )  # fmt: skip
    said = [Words(str(w.message), "warning") for w in heard if issubclass(w.category, OverlapWarning)]
    what = material.study.what
    if material.constant_propensity:
        shares = ", ".join(f"{label} {value:.3g}" for label, value in table["median"].items())
        words = f"Everybody had the same chances ({shares}), so that every {what} was possible for everybody."
        return (Words(words), *said)
    columns = {
        what: "{treatment}", "rows": "{rows:,.0f}", "smallest": "{smallest:.3f}", "1%": "{1%:.3f}",
        "median": "{median:.3f}", "largest": "{largest:.3f}", "at the floor": "{share_at_floor:.1%}",
        "effective size": "{effective_rows:,.0f}",
    }  # fmt: skip
    words = (
        f"How likely every {what} was, over all rows. Where that is next to nothing, what the {what} would do is "
        f"extrapolated; propensities are held above {rewards.min_propensity:g} (at the floor). Effective size: the "
        f"effective sample size of those that got the {what}, after weighting."
    )
    return (Words(words), _overlap_picture(material, table), Table.of(table, columns, "Propensities"), *said)


def _overlap_picture(material: Material, table: pd.DataFrame) -> Picture:
    rewards = material.rewards
    panels = overlap_panels(rewards.propensity_, material.study.assigned.arm[material.learning], table)
    shown = "; ".join(
        f"{label} from {row['smallest']:.3f} to {row['largest']:.3f}, median {row['median']:.3f}"
        for label, row in table.iterrows()
    )
    alt = f"Histograms of the propensity of every {material.study.what} among those who got it and the others: {shown}."
    return Picture("overlap", {"panels": panels, "floor": rewards.min_propensity}, alt)


def _regression(material: Material) -> tuple[Block, ...]:
    """The table of a logistic regression of treatment, where that is the model of propensities."""
    if material.constant_propensity or not isinstance(material.rewards.model_propensity, LogitPropensity):
        return ()
    table = treatment_model(material.study, material.learning)
    said = replace(table, caption=f"{table.caption} Propensities are those of the same model, cross-fitted.")
    return (Fold("The model of propensities", (said,)),)


def _balance(material: Material) -> tuple[Block, ...]:
    study, rewards, rows = material.study, material.rewards, material.learning
    covariates, (received, weight, _) = study.covariates.iloc[rows], assigned_to(study, rows)
    chances = None if material.constant_propensity else rewards.propensity_.set_axis(covariates.index)  # the same rows
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", BalanceWarning)
        table = balance_table(
            received, X=covariates, propensity=chances, sample_weight=weight,
        )  # fmt: skip
    said = [Words(str(w.message), "warning") for w in heard if issubclass(w.category, BalanceWarning)]
    size = largest_differences(table)
    size = size.drop(index=Covariates.fit(covariates).second_levels(), errors="ignore")
    last = size.columns[-1]
    size = size.dropna(subset=[last])  # a constant column has no standardised difference
    if size.empty:
        return tuple(said)
    size = size.sort_values(last, ascending=False)
    largest, name = float(size[last].iloc[0]), size.index[0]
    how = (
        "After weighting"
        if chances is not None
        else "As randomised (the same chances for everybody leave nothing to weight)"
    )
    if len(rows) < study.seen.n:
        how += f", by the {len(rows):,} rows that the tree was learnt from"
    words = (
        f"{how}, the largest difference between two {study.what}s is {largest:.2f} standard deviations, in {name}; "
        f"{int((size[last] > LARGE_DIFFERENCE).sum())} of {len(size)} covariates exceed {LARGE_DIFFERENCE:g}."
    )
    shown = size.head(MOST_COVARIATES)
    data = {"covariates": list(map(str, shown.index)), "before": _plain(shown["difference_before"])}
    data["what"] = study.what
    if chances is not None:
        data["after"] = _plain(shown["difference_after"])
    alt = f"Largest standardised difference between two {study.what}s, by covariate. " + words
    caption = "" if len(shown) == len(size) else f"The {len(shown)} of {len(size)} covariates that are farthest apart."
    columns = {"covariate": "{covariate}"} | {
        column.removeprefix("difference_"): f"{{{column}:.3f}}" for column in size.columns
    }
    every = Table.of(size, columns, "Largest standardised differences")
    return (Words(words), Picture("balance", data, alt, caption), Fold("All covariates", (every,)), *said)


def _plain(values: pd.Series) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in values]
