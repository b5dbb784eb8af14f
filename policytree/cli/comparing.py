"""``policytree compare``: the solvers of weighted trees side by side, on the problem that a study poses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from policytree.cli.first_checks import check_first, check_source, depth_of
from policytree.cli.frame import DebugOption
from policytree.cli.option_fields import takes_options
from policytree.cli.reading import Reading
from policytree.cli.study_options import StudyOptions
from policytree.exceptions import InputError, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policytree.estimators.policy import PolicyTree
    from policytree.evaluation.formatting import Form
    from policytree.report.content import Section
    from policytree.study.study import Study

SOLVERS = "direct,duplication,sampling"


@takes_options()
def compare(
    options: StudyOptions,
    reading: Reading,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help="Table, as for design.")] = None,
    solvers: Annotated[
        str,
        typer.Option(metavar="NAME,...", help="Which: direct, duplication, sampling, auto; with commas between them."),
    ] = SOLVERS,
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The rewards that trees are found for, as in design. Default: dr."),
    ] = None,
    guesses: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Guesses that narrow the search, as in design.")
    ] = None,
    max_depth: Annotated[int, typer.Option(metavar="N", min=0, help="Most questions on a path.")] = 2,
    regularization: Annotated[
        float, typer.Option(metavar="X", min=0.0, help="Price of a leaf, in the outcome's unit per row.")
    ] = 0.0,
    min_samples_leaf: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Fewest rows of a leaf. Default: as in design.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="S", min=0.0, help="Seconds for each search; the best tree by then is kept.")
    ] = None,
    cv: Annotated[int, typer.Option(metavar="N", min=2, help="Folds of the nuisance models.")] = 5,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of folds, models and draws.")] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Threads of a search; -1: all.")] = 1,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="A built-in study instead of a file.")] = None,
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="Folder of the built-in studies' files.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    debug: DebugOption = False,
) -> None:
    """Compare solvers on one problem: the objective, its gap, the seconds, and what each guarantees.

    Rewards are estimated once; every solver finds a tree of the same depth and leaf sizes for them.
    """
    check_source(data, dataset, "compare")
    check_first(data, dataset, options)
    if jobs == 0:
        raise InputError("--jobs must be a number of threads, or -1 for all; got 0.")
    names = _named(solvers)
    from rich.console import Console

    from policytree.cli.beginning import begun, refuse_findings
    from policytree.cli.printing import print_json, print_sections
    from policytree.cli.records import Job
    from policytree.cli.tree_options import DEFAULT, method_notes

    tree = {
        **DEFAULT, "max_depth": str(depth_of(str(max_depth))), "regularization": regularization, "method": method,
        "guesses": guesses, "min_samples_leaf": min_samples_leaf, "time_limit": time_limit, "n_jobs": jobs,
    }  # fmt: skip
    job, study, origin, described = begun(
        Job(data, dataset, data_dir, options, tree, cv=cv, seed=seed, value=False, reading=reading)
    )
    refuse_findings(described, study)
    if job.tree["constraints"] or study.further_outcomes or study.subgroups:
        raise InputError(
            "Solvers are compared without limits on outcomes and groups, which the direct one alone keeps to; leave "
            "out --limit, --at-least, --also, --parity, --value-parity, --worst-group and --subgroups."
        )
    notes = [note for note in origin.notes if note not in method_notes(job.tree["method"])]  # nothing is judged here
    rows = [_row(name, fitted) for name, fitted in _fitted(job, study, names).items()]
    if as_json:
        print_json({
            "rows": study.observed.n, "value": study.value, "better": described.better, "notes": notes,
            "solvers": rows,
        })  # fmt: skip
        return
    print_sections(Console(highlight=False), _section(rows, study, described.better, job.tree, notes))


def _named(text: str) -> list[str]:
    """The solvers that --solvers names."""
    from policytree.solvers import ALL_SOLVERS

    names = [name.strip() for name in text.split(",")]
    if not set(names) <= set(ALL_SOLVERS) or len(set(names)) < len(names):
        known = ", ".join(ALL_SOLVERS)
        raise InputError(f"--solvers must be some of {known}, each once, with commas between them; got {quoted(text)}.")
    return names


def _fitted(job: Any, study: Study, names: list[str]) -> dict[str, PolicyTree]:
    """The trees by solver, for the same rewards."""
    from sklearn.base import clone

    from policytree.estimators.doubly_robust import DRPolicyTree

    tree = {**job.tree, "solver": names[0]}
    model = DRPolicyTree(direction=study.direction, cv=job.cv, random_state=job.seed, **tree).fit(study)
    found, data = {names[0]: model.policy_tree_}, study.data
    for name in names[1:]:
        other = clone(model.policy_tree_).set_params(solver=name)
        found[name] = other.fit(
            data.X, model.tree_rewards_, data.T, sample_weight=data.learning_weight,
            sample_treatment_costs=data.sample_treatment_costs, groups=data.labels,
        )  # fmt: skip
    return found


def _row(name: str, tree: PolicyTree) -> dict[str, Any]:
    """Describe a solver's tree and its guarantees."""
    from policytree.estimators.certificate import stated_guarantees, theorems
    from policytree.problem.types import Status

    maximize = tree.direction == "maximize"
    words = list(theorems(tree.solution_, maximize=maximize).items())
    said = "; ".join(text if name == "solver" else f"{name}: {text}" for name, text in words)
    proved = ""
    if tree.status_.proved and not tree.optimality_gap_:
        proved = "no tree is better" if tree.status_ is Status.OPTIMAL else "no tree is better within the guesses"
    return {
        "solver": name,
        "objective": tree.objective_value_,
        "bound": tree.objective_bound_,
        "gap": tree.optimality_gap_,
        "seconds": tree.solution_.seconds,
        "status": tree.status_.value,
        "leaves": int(tree.get_n_leaves()),
        "guarantee": "; ".join(filter(None, [proved, said])) or "no tree is better than the bound",
        "guarantees": stated_guarantees(tree.solution_, maximize=maximize),
    }


def _section(
    rows: list[dict[str, Any]], study: Study, better: str, tree: dict[str, Any], notes: Sequence[str]
) -> Section:
    from policytree.report.content import Facts, Section, Table, Words
    from policytree.trees.text import format_number

    columns: dict[str, Form] = {
        "solver": "{solver}", "objective": lambda row: format_number(row["objective"]),
        "gap": lambda row: format_number(row["gap"], 3), "seconds": lambda row: format_number(row["seconds"], 2),
        "leaves": "{leaves}", "status": "{status}",
    }  # fmt: skip
    caption = (
        f"Objective: {study.value}, {better} is better, under the tree on the rows that chose it, net of the price of "
        f"leaves (flattered); rewards by the method {tree['method']}, depth {tree['max_depth']} or less"
    )
    return Section(
        "solvers",
        "Solvers on the same problem",
        (
            Table.of(rows, columns, caption),
            Facts(tuple((row["solver"], row["guarantee"]) for row in rows)),
            *(Words(note, "note") for note in notes),
        ),
    )
