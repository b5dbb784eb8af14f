"""Options of the tree that name covariates and treatments, read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from policytree.cli.study import Study
from policytree.cli.tables import by_treatment, column_names, number_in, require_column
from policytree.estimators.depth_choice import AUTO
from policytree.estimators.leaf_sizes import default_leaf_sizes
from policytree.exceptions import InputError, quoted
from policytree.problem.split_columns import LEVELS
from policytree.weighting.observed import Observed

MOST_DIGITS = 9  # of a depth
ASKED = (
    "regularization", "min_samples_leaf", "min_samples_per_treatment", "max_leaf_nodes", "feature_costs",
    "repeated_features", "categories", "feature_groups", "max_expected_cost", "split_features", "root_feature",
    "budget", "budget_costs", "max_share", "min_share", "time_limit",
)  # fmt: skip
DEFAULT: dict[str, Any] = {"max_depth": AUTO, **dict.fromkeys(ASKED), "n_jobs": 1}  # where nobody says anything


def tree_options(options: dict, study: Study, judging: float = 0.0) -> dict:
    """The tree's options as its estimator takes them: what names covariates and treatments is read and checked.

    ``judging``: share of the rows that only judge.

    Raises
    ------
    InputError
        If a name is no covariate, a cost no number >= 0, or a share or what a treatment costs no number.
    """
    costs: dict[str, float] = {}
    for text in options["feature_costs"] or ():
        if "=" not in text:
            raise InputError(f"--feature-cost {text!r} is no COLUMN=X; give a covariate and its cost, as in age=2.")
        name, _, value = (piece.strip() for piece in text.rpartition("="))
        require_column(name, "--feature-cost", study.X)
        cost = number_in(value)
        if cost is None or not 0 <= cost < np.inf or name in costs:
            wrong = "twice" if name in costs else f"as {value!r}"
            raise InputError(
                f"--feature-cost gives the cost of {name!r} {wrong}; give one number >= 0, as in {name}=2."
            )
        costs[name] = cost
    groups = [column_names(text, "--feature-group", study.X) for text in options["feature_groups"] or ()] or None
    repeated = options["repeated_features"] or ("charged" if groups is None else "free")
    splits = column_names(options["split_features"], "--split-features", study.X)
    roots = column_names(options["root_feature"], "--root-feature", study.X)
    limits = {kind: by_treatment(options[kind], kind) or None for kind in ("max_share", "min_share")}
    spending = by_treatment(options["budget_costs"], "budget_cost", study.frame) or None
    if options["budget"] is not None and spending is None:
        label = study.observed.treatments[-1]
        raise InputError(f"--budget needs what treatments cost; add --budget-cost, as in --budget-cost {label}=1.")
    named = {
        "feature_costs": costs or None,
        "root_feature": roots or None,
        "split_features": splits or None,
        "budget_costs": spending,
    }
    named |= tree_size(options) | study.limits.tree_arguments()
    sizes = leaf_sizes(options, study, judging)
    ways = {"repeated_features": repeated, "categories": options["categories"] or LEVELS}
    return {**options, **named, **limits, **sizes, **ways, "feature_groups": groups}


def value_names(texts: Sequence[str], X: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """What ``--value-names COLUMN=ZERO,ONE`` say.

    Raises
    ------
    InputError
        If a column is none of zeros and ones, or one is named twice, or there are not two names.
    """
    out: dict[str, tuple[str, str]] = {}
    for text in texts:
        column, _, rest = (piece.strip() for piece in text.partition("="))
        names = [name.strip() for name in rest.split(",")]
        if len(names) != 2 or not all(names) or names[0] == names[1] or column in out:
            raise InputError(
                f"--value-names {quoted(text)} must be COLUMN=ZERO,ONE, once for a column, as in sex=male,female."
            )
        require_column(column, "--value-names", X)
        values = X[column].dropna().unique().tolist()
        if not set(values) <= {0, 1}:
            raise InputError(f"--value-names names the values of {column!r}, which has other ones than 0 and 1.")
        out[column] = (names[0], names[1])
    return out


def tree_size(options: dict) -> dict[str, Any]:
    """Depth, price of a leaf, most leaves: as asked; a price that nobody said is chosen by data, or 0 with a depth."""
    depth, price = options["max_depth"], options["regularization"]
    depth, leaves = (
        _number_or_auto("max_depth", depth, 0),
        _number_or_auto("max_leaf_nodes", options["max_leaf_nodes"], 1),
    )
    if leaves == AUTO and depth != AUTO:
        raise InputError(
            "--max-leaf-nodes auto goes with --max-depth auto; leave that out, or give a number of leaves."
        )
    price = (AUTO if depth == AUTO else 0.0) if price is None else price
    return {"max_depth": depth, "regularization": price, "max_leaf_nodes": leaves}


def _number_or_auto(name: str, text: str | None, least: int) -> int | str | None:
    """A whole number, "auto", or None where nobody gave one."""
    if text is None or text == AUTO:
        return text
    if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) < least:
        option = f"--{name.replace('_', '-')}"
        raise InputError(f"{option} must be a whole number >= {least}, or {AUTO}; got {quoted(text)}.")
    return int(text)


def leaf_sizes(options: dict, study: Study, judging: float) -> dict[str, int]:
    """The smallest leaves: as asked, by default such as the rows that choose the tree can fill."""
    seen = study.observed
    rows = np.random.default_rng(0).permutation(seen.n)[: round((1.0 - judging) * seen.n)]
    leaf, per_arm = default_leaf_sizes(_known_outcomes(seen)[rows], seen.arm[rows], seen.n_arms)
    if study.people is not None:  # who have no treatment; rows of study and target are counted together
        leaf, per_arm = int(np.ceil(leaf * (1 + len(study.people) / seen.n))), 0
    elif options["min_samples_per_treatment"] == 0:
        leaf = 1  # who wants no treatment in a leaf wants any leaf, unless they say how many rows
    asked = {name: options[name] for name in ("min_samples_leaf", "min_samples_per_treatment")}
    return {
        name: default if asked[name] is None else asked[name]
        for name, default in zip(asked, (leaf, per_arm), strict=True)
    }


def _known_outcomes(seen: Observed) -> np.ndarray:
    """Outcomes, (n,); rows whose outcome is not known have the most frequent one, since they show no other."""
    known, y = seen.seen, seen.y
    if seen.times is not None:
        known, y = seen.times.known, seen.times.observed_value
    if known is None:
        return y
    values, counts = np.unique(y[known], return_counts=True)
    return np.where(known, y, values[counts.argmax()])


def leaf_size_notes(options: dict, asked: dict, of_target: bool) -> list[str]:
    """What was decided about the smallest leaves without being asked; nothing if all was said."""
    if None not in (asked["min_samples_leaf"], asked["min_samples_per_treatment"]):
        return []
    leaf, per_arm = options["min_samples_leaf"], options["min_samples_per_treatment"]
    if of_target:
        return [
            f"Every leaf holds at least {leaf:,} rows of study and target together (--min-samples-leaf): with fewer a "
            "leaf shows nothing."
        ]
    return [
        f"Every leaf holds at least {leaf:,} rows, and {per_arm:,} of every treatment (--min-samples-leaf and "
        "--min-samples-per-treatment; 0 of every treatment: any leaf): with fewer a leaf shows nothing."
    ]
