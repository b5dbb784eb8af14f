"""Options of the tree that name covariates and treatments, read and checked."""

from __future__ import annotations

import numpy as np

from policytree.cli.study import Study
from policytree.cli.tables import by_treatment, column_names, number_in, require_column
from policytree.exceptions import InputError


def tree_options(options: dict, study: Study) -> dict:
    """The tree's options as its estimator takes them: what names covariates and treatments is read and checked.

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
    return {**options, **named, **limits, "feature_groups": groups, "repeated_features": repeated}
