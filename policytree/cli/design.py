"""``policytree design``: its options. The work is done in :mod:`policytree.cli.job`, imported when it is needed."""

from __future__ import annotations

from typing import Annotated

import typer

from policytree.cli.first_checks import check_first, depth_of, repeats_of
from policytree.cli.frame import BAD_INPUT, EXAMPLE, DebugOption
from policytree.cli.option_fields import takes_options
from policytree.cli.reading import Reading
from policytree.cli.study_options import ABOUT_COLUMNS, ABOUT_TREE, StudyOptions
from policytree.common.lazy import ended_by_ctrl_c
from policytree.datasets import DATASET_NAMES
from policytree.exceptions import InputError

_COLUMNS, _TREE, _RUN = ABOUT_COLUMNS, ABOUT_TREE, "The run"
_NOTHING_TO_DO = f"""\
policytree design needs data: a file with one row per person (CSV, Excel, Stata,
SPSS, SAS, Parquet), or a built-in study.

  policytree design trial.csv --treatment arm --outcome recovered
  {EXAMPLE}

The first names the column of the treatment each row got and the column of its
outcome; everything else has a default. The second runs as it is, on the RAND
Health Insurance Experiment (16,154 rows, five arms), in some minutes.

  policytree design --help     all options"""


def _option(help_text: str, panel: str, *names: str, **settings):
    return typer.Option(
        *names, help=help_text, rich_help_panel=panel, show_default=settings.pop("show", False), **settings
    )


@takes_options()
def design(
    ctx: typer.Context,
    options: StudyOptions,
    reading: Reading,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="Table with one row per person (with --id: and decision): CSV, Parquet, Excel, Stata, SPSS, SAS, "
            "Feather or JSON.",
            show_default=False,
        ),
    ] = None,
    person: Annotated[
        str | None,
        _option(
            "For several decisions, with --stage: DATA has one row per person and decision, and this column says whose "
            "it is. A rule is then learnt for every decision.",
            _COLUMNS,
            "--id",
            metavar="COLUMN",
        ),
    ] = None,
    stage: Annotated[
        str | None,
        _option(
            "With --id: the column of the decision, numbers or texts that sort in the order of time. Whoever has no "
            "row at a decision has left for good, and brings nothing from then on.",
            _COLUMNS,
            metavar="COLUMN",
        ),
    ] = None,
    lost_column: Annotated[
        str | None,
        _option(
            "With --id: the column that is 1 where a person was lost after this decision, 0 elsewhere: later outcomes "
            "are then unknown (--missing-outcome weight).",
            _COLUMNS,
            metavar="COLUMN",
        ),
    ] = None,
    history: Annotated[
        str | None,
        _option(
            "With --id: what a rule may look at: all that was known by then (all, the default), or what the row of the "
            "decision holds (current).",
            _COLUMNS,
            metavar="WAY",
        ),
    ] = None,
    control: Annotated[
        str | None,
        _option(
            "The treatment that others are compared with, in effects, ranking and budgets. Default: the one named "
            "like a control (placebo, control, none, no, 0, untreated, sham, observation, standard, usual care, wait "
            "list, ...; in capitals too), if there is exactly one, else the first in sorted order. With --id: a fixed "
            "sequence that a regime must be better than, as in A,B. Default: what people got.",
            _COLUMNS,
            metavar="LABEL",
        ),
    ] = None,
    target_people: Annotated[
        str | None,
        _option(
            "File of the people whom the rule is for, if they are not like those of the study: a row for each, with "
            "the covariates (and confounders). Values are then theirs.",
            _COLUMNS,
            metavar="FILE",
        ),
    ] = None,
    study_column: Annotated[
        str | None,
        _option(
            "In place of --target-people, if DATA holds both: the column that is 1 (true) in rows of the study and 0 "
            "(false) for the people whom the rule is for.",
            _COLUMNS,
            metavar="COLUMN",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        _option(
            f"A built-in study instead of a file: {', '.join(DATASET_NAMES[:-1])} or {DATASET_NAMES[-1]}.",
            _COLUMNS,
            metavar="NAME",
        ),
    ] = None,
    data_dir: Annotated[
        str | None, _option("Folder of the study's files, for studies that no package ships.", _COLUMNS, metavar="DIR")
    ] = None,
    max_depth: Annotated[
        str,
        _option(
            "Most questions on a path; auto: 0 to 3, chosen by the value of trees on rows that they were not learnt "
            "from, anew in every refit.",
            _TREE,
            show=True,
            metavar="N",
        ),
    ] = "auto",
    regularization: Annotated[
        float | None,
        _option(
            "Price of a leaf, in the outcome's unit per row. Default: a small one with --max-depth auto, else 0.",
            _TREE,
            min=0.0,
            metavar="X",
        ),
    ] = None,
    min_samples_leaf: Annotated[
        int | None,
        _option(
            "Fewest rows in a leaf. Default: as many as --min-samples-per-treatment asks for, and a hundredth of all; "
            "1: any.",
            _TREE,
            min=1,
            metavar="N",
        ),
    ] = None,
    min_samples_per_treatment: Annotated[
        int | None,
        _option(
            "Fewest rows of every treatment in a leaf. Default: 8, more where most outcomes are the same; 0: none.",
            _TREE,
            min=0,
            metavar="N",
        ),
    ] = None,
    max_leaf_nodes: Annotated[
        str | None,
        _option(
            "Most leaves; auto, with --max-depth auto: only columns that recur in trees of cross-validation, and the "
            "fewest leaves whose value, on rows that trees were not learnt from, is within a quarter of a standard "
            "error of the best. Default: as many as the depth allows.",
            _TREE,
            metavar="N",
        ),
    ] = None,
    feature_cost: Annotated[
        list[str] | None,
        _option(
            "Cost of asking a row about a covariate, in the outcome's unit; once for each such covariate.",
            _TREE,
            metavar="COLUMN=X",
        ),
    ] = None,
    categories: Annotated[
        str | None,
        _option(
            "How columns of text are split: levels, one against the rest (the default), or groups, several levels "
            "against the others: all groups of up to 8 levels, or of up to 53 at depth one.",
            _TREE,
            metavar="WAY",
        ),
    ] = None,
    repeated_features: Annotated[
        str | None,
        _option(
            "Whether a covariate is paid for again where a path asks for it again: charged or free. Default: charged, "
            "or free with --feature-group.",
            _TREE,
            metavar="WAY",
        ),
    ] = None,
    feature_group: Annotated[
        list[str] | None,
        _option(
            "Covariates that are measured together: only the first on a path is paid for; once for each group.",
            _TREE,
            metavar="COLUMNS",
        ),
    ] = None,
    max_expected_cost: Annotated[
        float | None,
        _option(
            "Most that questions may cost a row on average. --feature-cost, in any unit, is then limited and not "
            "charged.",
            _TREE,
            metavar="X",
        ),
    ] = None,
    split_features: Annotated[
        str | None,
        _option(
            "The covariates that the tree may ask about: a,b,c; the outcome models see all. Default: all.",
            _TREE,
            metavar="COLUMNS",
        ),
    ] = None,
    root_feature: Annotated[
        str | None, _option("Covariates that the first question must be about: a,b,c.", _TREE, metavar="COLUMNS")
    ] = None,
    budget: Annotated[
        float | None,
        _option("Most that may be spent a row, by --budget-cost; the tree keeps to it.", _TREE, metavar="X"),
    ] = None,
    budget_cost: Annotated[
        list[str] | None,
        _option(
            "Cost of a treatment, in the budget's unit: a number or a column; once for each that is not free.",
            _TREE,
            metavar="LABEL=X",
        ),
    ] = None,
    max_share: Annotated[
        list[str] | None,
        _option("Largest share of the rows that a treatment may get; once for each.", _TREE, metavar="LABEL=P"),
    ] = None,
    min_share: Annotated[
        list[str] | None,
        _option("Smallest share of the rows that a treatment must get; once for each.", _TREE, metavar="LABEL=P"),
    ] = None,
    time_limit: Annotated[
        float | None,
        _option("Seconds for each search; the best tree by then is kept.", _TREE, min=0.0, metavar="S"),
    ] = None,
    method: Annotated[
        str | None,
        _option(
            "The rewards that the tree is found for: dr (doubly robust, the default), ipw (inverse propensities), "
            "regression (outcome models), matching (people who are alike), dr_normalized or ipw_normalized. Values are "
            "doubly robust in any case.",
            _TREE,
            metavar="NAME",
        ),
    ] = None,
    solver: Annotated[
        str | None,
        _option(
            "The solver: direct (default; proves the tree), or of rewards as weighted labels: duplication (whole "
            "copies of rows), sampling (rows drawn by weight), auto (by an estimate of the time).",
            _TREE,
            metavar="NAME",
        ),
    ] = None,
    guesses: Annotated[
        str | None,
        _option(
            "Parts of the search that a reference model narrows: thresholds, depth, lower_bounds, several with commas, "
            "or all. The tree is then the best given the guesses.",
            _TREE,
            metavar="NAME,...",
        ),
    ] = None,
    cv: Annotated[
        int, _option("Folds, of the nuisance models and of the value.", _RUN, min=2, show=True, metavar="N")
    ] = 5,
    validation: Annotated[
        str,
        _option(
            "How rows are held out for the value: repeated (cross-fitting), sequential (blocks, each judged by what "
            "came before) or split (halves).",
            _RUN,
            show=True,
            metavar="WAY",
        ),
    ] = "repeated",
    repeats: Annotated[
        str | None,
        _option(
            "Repetitions of the cross-fitting, or adaptive: fewer where they do not matter. Default: 5.",
            _RUN,
            metavar="N",
        ),
    ] = None,
    honest: Annotated[
        float | None,
        _option(
            "Share of rows that do not choose the tree but judge it, leaf by leaf; in place of --validation.",
            _RUN,
            metavar="SHARE",
        ),
    ] = None,
    level: Annotated[float, _option("Coverage of the intervals.", _RUN, show=True, metavar="P")] = 0.95,
    no_value: Annotated[bool, _option("Skip the held-out value, most of the time.", _RUN, "--no-value")] = False,
    black_box: Annotated[
        bool,
        _option(
            "Judge a policy forest too: what a black box would reach on held-out rows, beside the tree. Nothing "
            "recommends it.",
            _RUN,
            "--black-box",
        ),
    ] = False,
    stability: Annotated[
        int | None,
        _option(
            "Resamples on which everything is learnt again, to see what recurs; 0: none. Default: 20 up to 2,000 rows, "
            "beyond none, and the report says how long it would take.",
            _RUN,
            min=0,
            metavar="N",
        ),
    ] = None,
    seed: Annotated[int, _option("Seed of folds and models.", _RUN, min=0, max=2**32 - 1, show=True, metavar="N")] = 0,
    jobs: Annotated[
        int, _option("Processes of refits, threads of a search; -1: all.", _RUN, show=True, metavar="N")
    ] = 1,
    output: Annotated[
        str, _option("Folder for the files.", _RUN, "--output", "-o", show=True, metavar="DIR")
    ] = "policytree-output",
    title: Annotated[str | None, _option("Title of the report.", _RUN, metavar="TEXT")] = None,
    outcome_label: Annotated[
        str | None, _option("Name of the outcome in the report. Default: its column.", _RUN, metavar="TEXT")
    ] = None,
    unit: Annotated[str | None, _option("Unit of the outcome.", _RUN, metavar="TEXT")] = None,
    treatment_label: Annotated[
        str | None, _option("Name of the treatment in the report. Default: its column.", _RUN, metavar="TEXT")
    ] = None,
    labels: Annotated[
        str | None,
        _option(
            "Names of columns and values in the report: a CSV file with the columns name, label, unit, values "
            "(0=female; 1=male); or humanize, for names made readable. Treatments are called by the names of their "
            "values everywhere, in other options and in the saved tree, too.",
            _RUN,
            metavar="FILE|humanize",
        ),
    ] = None,
    as_json: Annotated[
        bool, _option("Print the result as JSON on standard output, in place of text.", _RUN, "--json")
    ] = False,
    debug: DebugOption = False,
) -> None:
    """Find the best small policy tree for a trial or observational study, prove it, and say what it is worth.

    Writes the report as a page (report.html), as text and as data; the tree as a picture and as JSON; tables.
    """
    if data is None and dataset is None:
        typer.echo(_NOTHING_TO_DO, err=True)
        raise typer.Exit(BAD_INPUT)
    whole = (person, stage) == (None, None)  # of several decisions each has columns of its own
    first = options if whole else options.of_one_column()
    beside = {"--id": person, "--stage": stage, "--study-column": study_column}
    check_first(data, dataset, first, beside, whole=whole, level=level, categories=categories)
    if target_people is not None:
        check_first(target_people, None)
    if whole:
        repeats_of(validation, repeats, honest, not no_value)
    depth_of(max_depth)
    if jobs == 0:
        raise InputError("--jobs must be a number of processes, or -1 for all; got 0.")
    with ended_by_ctrl_c():
        from policytree.cli.frame import command_line
        from policytree.cli.records import Job

    tree = {
        "max_depth": max_depth,
        "regularization": regularization,
        "min_samples_leaf": min_samples_leaf,
        "min_samples_per_treatment": min_samples_per_treatment,
        "max_leaf_nodes": max_leaf_nodes,
        "feature_costs": feature_cost,
        "repeated_features": repeated_features,
        "categories": categories,
        "feature_groups": feature_group,
        "max_expected_cost": max_expected_cost,
        "split_features": split_features,
        "root_feature": root_feature,
        "budget": budget,
        "budget_costs": budget_cost,
        "max_share": max_share,
        "min_share": min_share,
        "time_limit": time_limit,
        "method": method,
        "solver": solver,
        "guesses": guesses,
        "n_jobs": jobs,
    }
    with ended_by_ctrl_c():
        if (person, stage, lost_column, history) == (None,) * 4:
            from policytree.cli.job import run
        else:
            from policytree.cli.regimes.job import run
    named = {"title": title, "outcome": outcome_label, "unit": unit, "treatment": treatment_label}
    run(
        Job(
            data, dataset, data_dir, options, tree, cv=cv, level=level, seed=seed, value=not no_value, output=output,
            validation=validation, repeats=repeats, honest=honest, command=command_line(ctx),
            control=control, stability=stability, json=as_json, black_box=black_box,
            names={name: text for name, text in named.items() if text is not None},
            labels=labels, target_people=target_people, study_column=study_column,
            person=person, stage=stage, lost=lost_column, history=history,
            reading=reading,
        )
    )  # fmt: skip
