"""Options of the tree that name covariates and treatments, read and checked."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np

from policytree.cli.first_checks import MOST_DIGITS, depth_of
from policytree.cli.limits import Limits
from policytree.cli.tables import by_treatment, column_names, number_in, require_column
from policytree.cli.tree_fields import TreeOptions
from policytree.common.option_words import typed
from policytree.constraints.amounts import Budget, ExpectedCost, Share
from policytree.constraints.constraint import Constraint
from policytree.estimators.leaf_sizes import AUTO, leaf_sizes, price_of_leaf
from policytree.exceptions import InputError, quoted
from policytree.problem.split_columns import LEVELS
from policytree.study.study import Study

EXACT_NOT_NEEDED = {"repeated_features": "charged", "categories": LEVELS}
CONSTRAINED = ("max_expected_cost", "budget", "max_share", "min_share")  # they become constraints
DEFAULT: dict[str, Any] = {**asdict(TreeOptions()), "n_jobs": 1}  # where nobody says anything


def tree_options(options: dict, study: Study, limits: Limits, judging: float = 0.0) -> dict:
    """The tree's options as its estimator takes them: what names covariates and treatments is read and checked.

    ``limits``: on outcomes and groups; ``judging``: share of the rows that only judge.

    Raises
    ------
    InputError
        If a name is no covariate, a cost no number >= 0, a share or what a treatment costs no number, or the method
        has no meaning for such a study.
    """
    costs: dict[str, float] = {}
    for text in options["feature_costs"]:
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
    groups = [column_names(text, "--feature-group", study.X) for text in options["feature_groups"]] or None
    repeated = options["repeated_features"] or ("charged" if groups is None else "free")
    splits = column_names(options["split_features"], "--split-features", study.X)
    roots = column_names(options["root_feature"], "--root-feature", study.X)
    spending = by_treatment(options["budget_costs"], "budget_cost", study.table) or None
    if options["budget"] is not None and spending is None:
        spent = typed(f"{study.treatments[-1]}=1")
        raise InputError(f"--budget needs what treatments cost; add --budget-cost, as in --budget-cost {spent}.")
    if options["budget"] is None and spending is not None:
        raise InputError("--budget-cost says what treatments cost, but there is no budget; add --budget.")
    named = {
        "feature_costs": costs or None,
        "root_feature": roots or None,
        "split_features": splits or None,
        "budget_costs": spending,
    }
    named |= tree_size(options) | {"method": _method(options["method"], study)} | _search(options)
    constraints = [*_constraints(options), *limits.constraints]
    options = {name: value for name, value in options.items() if name not in CONSTRAINED}
    sizes = smallest_leaves(options, study, judging)
    ways = {"repeated_features": repeated, "categories": options["categories"] or LEVELS}
    if (named["solver"] != "direct" or named["guesses"] is not None) and (constraints or ways != EXACT_NOT_NEEDED):
        raise InputError(
            "Limits and shares, --categories groups and --repeated-features free need the exact search; leave out "
            "--solver and --guesses, or these."
        )
    return {**options, **named, **sizes, **ways, "feature_groups": groups, "constraints": constraints}


def n_people(study: Study) -> int:
    """How many people there are beside those of the study, whom the rule is for."""
    return 0 if study.population is None else len(study.population.people)


def budget_costs(asked: dict[str, float | str] | None, study: Study) -> dict[Any, float | str]:
    """Return treatments' costs against the budget, as a study takes them.

    Raises
    ------
    InputError
        If nobody got a treatment that has a cost.
    """
    known = {str(label): label for label in study.treatments}
    for name in asked or {}:
        if name not in known:
            raise InputError(f"--budget-cost names the treatment {name!r}; the treatments are {', '.join(known)}.")
    return {known[name]: cost for name, cost in (asked or {}).items()}


def _constraints(options: dict) -> list[Constraint]:
    """List the tree's constraints, except those on further outcomes and groups."""
    found: list[Constraint] = []
    if options["budget"] is not None:
        found.append(Budget(options["budget"]))
    if options["max_expected_cost"] is not None:
        found.append(ExpectedCost(options["max_expected_cost"]))
    most, least = (by_treatment(options[name], name) for name in ("max_share", "min_share"))
    ends = {"most": most, "least": least}
    for label in most | least:
        found.append(Share(label, **{end: float(shares[label]) for end, shares in ends.items() if label in shares}))
    return found


def _method(text: str | None, study: Study) -> str:
    """The rewards that the tree is found for, by their name."""
    if text is None:
        return "dr"
    from policytree.weighting.registry import SCHEMES
    from policytree.weighting.reward_arguments import MATCHING

    known = [*SCHEMES, MATCHING]
    if text not in known:
        raise InputError(f"--method must be one of {', '.join(known)}; got {quoted(text)}.")
    strange = "instrument" if study.observed.instrument is not None else "other population" if n_people(study) else ""
    if strange and text != "dr":
        raise InputError(f"--method {text} knows no {strange}; leave it out.")
    return text


def _search(options: dict) -> dict[str, Any]:
    """The solver and the guesses, by their names."""
    if options["solver"] is options["guesses"] is None:
        return {"solver": "direct", "guesses": None}
    from policytree.guesses.registry import GUESSES
    from policytree.solvers import ALL_SOLVERS

    solver = options["solver"] or "direct"
    if solver not in ALL_SOLVERS:
        raise InputError(f"--solver must be one of {', '.join(ALL_SOLVERS)}; got {quoted(solver)}.")
    if options["guesses"] is None:
        return {"solver": solver, "guesses": None}
    names = [name.strip() for name in options["guesses"].split(",")]
    if names != ["all"] and not set(names) <= set(GUESSES):
        known = ", ".join(GUESSES)
        raise InputError(
            f"--guesses must be some of {known}, with commas between them, or all; got {quoted(options['guesses'])}."
        )
    return {"solver": solver, "guesses": names[0] if len(names) == 1 else names}


def tree_size(options: dict) -> dict[str, Any]:
    """Depth, price of a leaf, most leaves: as asked; a price that nobody said is chosen by data, or 0 with a depth."""
    depth, price = depth_of(options["max_depth"]), options["regularization"]
    leaves = _leaves_of(options["max_leaf_nodes"])
    if leaves == AUTO and depth != AUTO:
        raise InputError(
            "--max-leaf-nodes auto goes with --max-depth auto; leave that out, or give a number of leaves."
        )
    return {"max_depth": depth, "regularization": price_of_leaf(depth, price), "max_leaf_nodes": leaves}


def _leaves_of(text: str | None) -> int | str | None:
    """The most leaves that --max-leaf-nodes asks for: a number, that the data choose it, or None."""
    if text is None or text == AUTO:
        return text
    if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) < 1:
        raise InputError(f"--max-leaf-nodes must be a whole number >= 1, or {AUTO}; got {quoted(text)}.")
    return int(text)


def smallest_leaves(options: dict, study: Study, judging: float) -> dict[str, int]:
    """The smallest leaves: as asked, by default such as the rows that choose the tree can fill."""
    seen = study.observed
    names = ("min_samples_leaf", "min_samples_per_treatment")
    asked = SimpleNamespace(**{name: AUTO if options[name] is None else options[name] for name in names})
    _refuse_too_many_asked({name: options[name] for name in names}, study)
    rows = np.sort(np.random.default_rng(0).permutation(seen.n)[: round((1.0 - judging) * seen.n)])
    return leaf_sizes(asked, seen.rows(rows), n_people(study))


def _refuse_too_many_asked(asked: dict[str, Any], study: Study) -> None:
    """Refuse leaves that even all rows would not fill."""
    seen = study.observed
    least = int(np.bincount(seen.arm, minlength=seen.n_arms).argmin())
    label = f"rows of treatment {seen.treatments[least]!s}"
    rows = (seen.n + n_people(study), int((seen.arm == least).sum()))
    for (name, number), there, what in zip(asked.items(), rows, ("rows", label), strict=True):
        if number is not None and number > there:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} {number:,} asks for more than the {there:,} {what} that there are; lower it.")


def method_notes(method: str) -> list[str]:
    """Which rewards the tree was found for, and by which it is judged; nothing where they are the same."""
    if method == "dr":
        return []
    return [
        f"The tree was found for rewards by the method {method} (--method), and its proof is about these; values are "
        "by doubly robust ones."
    ]


def leaf_size_notes(options: dict, asked: dict, of_target: bool) -> list[str]:
    """State what was decided about the smallest leaves without being asked; nothing if all was said."""
    if None not in (asked["min_samples_leaf"], asked["min_samples_per_treatment"]):
        return []
    leaf, per_arm = options["min_samples_leaf"], options["min_samples_per_treatment"]
    if of_target:
        return [
            f"Every leaf holds at least {leaf:,} rows of study and target together; fewer show too little "
            "(--min-samples-leaf)."
        ]
    return [
        f"Every leaf holds at least {leaf:,} rows, and {per_arm:,} of every treatment; fewer show too little "
        "(--min-samples-leaf, --min-samples-per-treatment)."
    ]
