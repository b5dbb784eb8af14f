"""``policytree design``: its options. The work is done in :mod:`policytree.cli.job`, imported when it is needed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from policytree.cli.first_checks import check_first, depth_of, repeats_of
from policytree.cli.frame import BAD_INPUT, EXAMPLE, DebugOption
from policytree.cli.option_fields import takes_options
from policytree.cli.reading import Reading
from policytree.cli.study_options import ABOUT_COLUMNS, StudyOptions
from policytree.cli.tree_fields import TreeOptions
from policytree.common.lazy import ended_by_ctrl_c
from policytree.datasets import DATASET_NAMES
from policytree.exceptions import InputError

_COLUMNS, _RUN = ABOUT_COLUMNS, "The run"
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
    tree: TreeOptions,
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
    check_first(data, dataset, first, beside, whole=whole, level=level, categories=tree.categories)
    if target_people is not None:
        check_first(target_people, None)
    if whole:
        repeats_of(validation, repeats, honest, not no_value)
    depth_of(tree.max_depth)
    if jobs == 0:
        raise InputError("--jobs must be a number of processes, or -1 for all; got 0.")
    with ended_by_ctrl_c():
        from policytree.cli.frame import command_line
        from policytree.cli.records import Job

    with ended_by_ctrl_c():
        if (person, stage, lost_column, history) == (None,) * 4:
            from policytree.cli.job import run
        else:
            from policytree.cli.regimes.job import run
    named = {"title": title, "outcome": outcome_label, "unit": unit, "treatment": treatment_label}
    run(
        Job(
            data, dataset, data_dir, options, asdict(tree) | {"n_jobs": jobs}, cv=cv, level=level, seed=seed,
            value=not no_value, output=output,
            validation=validation, repeats=repeats, honest=honest, command=command_line(ctx),
            control=control, stability=stability, json=as_json, black_box=black_box,
            names={name: text for name, text in named.items() if text is not None},
            labels=labels, target_people=target_people, study_column=study_column,
            person=person, stage=stage, lost=lost_column, history=history,
            reading=reading,
        )
    )  # fmt: skip
