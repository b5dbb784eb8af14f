"""Options of ``policytree design`` about the tree. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from policytree.cli.option_fields import asked
from policytree.cli.study_options import ABOUT_TREE, COLUMNS

_said = partial(asked, panel=ABOUT_TREE)


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """The tree that is asked for, by the names of the estimator's arguments; texts are read later."""

    max_depth: str = _said(
        "N",
        "Most questions on a path; auto (the default): 0 to 3, chosen by the value of trees on rows that they were "
        "not learnt from, anew in every refit.",
        default="auto",
    )
    regularization: float | None = _said(
        "X",
        "Price of a leaf, in the outcome's unit per row. Default: a small one with --max-depth auto, else 0.",
        least=0.0,
    )
    min_samples_leaf: int | None = _said(
        "N",
        "Fewest rows in a leaf. Default: as many as --min-samples-per-treatment asks for, and a hundredth of all; "
        "1: any.",
        least=1,
    )
    min_samples_per_treatment: int | None = _said(
        "N",
        "Fewest rows of every treatment in a leaf. Default: 8, more where most outcomes are the same; 0: none.",
        least=0,
    )
    max_leaf_nodes: str | None = _said(
        "N",
        "Most leaves; auto, with --max-depth auto: only columns that recur in trees of cross-validation, and the "
        "fewest leaves whose value, on rows that trees were not learnt from, is within a quarter of a standard "
        "error of the best. Default: as many as the depth allows.",
    )
    feature_costs: tuple[str, ...] = _said(
        "COLUMN=X",
        "Cost of asking a row about a covariate, in the outcome's unit; once for each such covariate.",
        default=(),
        named="--feature-cost",
    )
    categories: str | None = _said(
        "WAY",
        "How columns of text are split: levels, one against the rest (the default), or groups, several levels "
        "against the others: all groups of up to 8 levels, or of up to 53 at depth one.",
    )
    repeated_features: str | None = _said(
        "WAY",
        "Whether a covariate is paid for again where a path asks for it again: charged or free. Default: charged, "
        "or free with --feature-group.",
    )
    feature_groups: tuple[str, ...] = _said(
        COLUMNS,
        "Covariates that are measured together: only the first on a path is paid for; once for each group.",
        default=(),
        named="--feature-group",
    )
    max_expected_cost: float | None = _said(
        "X",
        "Most that questions may cost a row on average. --feature-cost, in any unit, is then limited and not charged.",
    )
    split_features: str | None = _said(
        COLUMNS,
        "The covariates that the tree may ask about: a,b,c; the outcome models see all. Default: all.",
    )
    root_feature: str | None = _said(COLUMNS, "Covariates that the first question must be about: a,b,c.")
    budget: float | None = _said("X", "Most that may be spent a row, by --budget-cost; the tree keeps to it.")
    budget_costs: tuple[str, ...] = _said(
        "LABEL=X",
        "Cost of a treatment, in the budget's unit: a number or a column; once for each that is not free.",
        default=(),
        named="--budget-cost",
    )
    max_share: tuple[str, ...] = _said(
        "LABEL=P",
        "Largest share of the rows that a treatment may get; once for each.",
        default=(),
    )
    min_share: tuple[str, ...] = _said(
        "LABEL=P",
        "Smallest share of the rows that a treatment must get; once for each.",
        default=(),
    )
    time_limit: float | None = _said("S", "Seconds for each search; the best tree by then is kept.", least=0.0)
    method: str | None = _said(
        "NAME",
        "The rewards that the tree is found for: dr (doubly robust, the default), ipw (inverse propensities), "
        "regression (outcome models), matching (people who are alike), dr_normalized or ipw_normalized. Values are "
        "doubly robust in any case.",
    )
    solver: str | None = _said(
        "NAME",
        "The solver: direct (default; proves the tree), or of rewards as weighted labels: duplication (whole copies"
        " of rows), sampling (rows drawn by weight), auto (by an estimate of the time).",
    )
    guesses: str | None = _said(
        "NAME,...",
        "Parts of the search that a reference model narrows: thresholds, depth, lower_bounds, several with commas, "
        "or all. The tree is then the best given the guesses.",
    )
