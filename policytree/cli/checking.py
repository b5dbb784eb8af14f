"""``policytree check``: what is suspicious about a study, before anything is fitted."""

from __future__ import annotations

from typing import Annotated

import typer

from policytree.cli.first_checks import check_first
from policytree.cli.frame import DebugOption
from policytree.cli.reading import (
    DecimalOption,
    EncodingOption,
    NaValuesOption,
    Reading,
    SheetOption,
    ThousandsOption,
)


def check(
    data: Annotated[str | None, typer.Argument(metavar="DATA", help="Table, as for design.")] = None,
    treatment: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the treatment each row got.")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the outcome: numbers, or texts with --event.")
    ] = None,
    event: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For an outcome in texts: the one that counts as 1.")
    ] = None,
    event_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that says how the times ended, as in design.")
    ] = None,
    horizon: Annotated[
        float | None, typer.Option(metavar="H", help="Time up to which events count, as in design.")
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="TARGET", help="What a time counts for, as in design.")] = None,
    cause: Annotated[
        str | None, typer.Option(metavar="VALUE", help="Of several causes, the one asked about, as in design.")
    ] = None,
    entry_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the times of entry, as in design.")
    ] = None,
    missing_outcome: Annotated[
        str | None, typer.Option(metavar="WAY", help="Rows without an outcome: refuse or weight, as in design.")
    ] = None,
    instrument: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of what each row was offered, as in design.")
    ] = None,
    covariates: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Columns to check: a,b,c. Default: all others.")
    ] = None,
    exclude: Annotated[str | None, typer.Option(metavar="COLUMNS", help="All other columns but these: a,b,c.")] = None,
    confounders: Annotated[str | None, typer.Option(metavar="COLUMNS", help="Further columns to check: a,b,c.")] = None,
    categories: Annotated[
        str | None, typer.Option(metavar="WAY", help="How columns of text are split: levels or groups, as in design.")
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="The treatment that others are compared with. Default: as in design."),
    ] = None,
    propensity: Annotated[
        str | None, typer.Option(metavar="P", help="Known probabilities of treatment, as in design.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of clusters.")] = None,
    weights: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of sampling weights.")] = None,
    strata: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Columns of the blocks of the assignment, as in design.")
    ] = None,
    direction: Annotated[
        str | None, typer.Option(metavar="WAY", help="maximize or minimize the outcome, as in design.")
    ] = None,
    cv: Annotated[
        int, typer.Option(metavar="N", min=2, help="Folds that the rows must suffice for, as in design.")
    ] = 5,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="A built-in study instead of a file.")] = None,
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="Folder of the built-in studies' files.")] = None,
    decimal: DecimalOption = None,
    thousands: ThousandsOption = None,
    na_values: NaValuesOption = None,
    encoding: EncodingOption = None,
    sheet: SheetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    debug: DebugOption = False,
) -> None:
    """Look for leaks, ids, dates, numbers stored as text and more in a study, in seconds; nothing is fitted."""
    asked = {
        "--treatment": treatment, "--outcome": outcome, "--cluster": cluster, "--event-column": event_column,
        "--entry-column": entry_column, "--instrument": instrument, "--weights": weights,
    }  # fmt: skip
    lists = {
        "--covariates": covariates, "--confounders": confounders, "--exclude": exclude, "--strata": strata,
    }  # fmt: skip
    check_first(
        data, dataset, columns=asked, lists=lists, direction=direction, propensity=propensity, categories=categories
    )
    reading = Reading(decimal, thousands, tuple(na_values or ()), encoding, sheet)
    from rich.console import Console

    from policytree.cli.job import begun, refuse_findings
    from policytree.cli.printing import print_json, print_sections
    from policytree.cli.records import Job
    from policytree.cli.study_options import StudyOptions
    from policytree.cli.tree_options import DEFAULT
    from policytree.exceptions import InputError
    from policytree.report.sections.question import check_section, question_section

    if (data is None) is (dataset is None):
        raise InputError("Give a data file or --dataset: policytree check trial.csv --treatment arm --outcome y")
    options = StudyOptions(
        treatment, outcome, covariates, confounders, propensity, cluster, weights, direction, strata, exclude, event,
        event_column=event_column, horizon=horizon, target=target, cause=cause,
        entry_column=entry_column, missing_outcome=missing_outcome, instrument=instrument,
    )  # fmt: skip
    tree = {**DEFAULT, "categories": categories}
    asked_for = Job(data, dataset, data_dir, options, tree, cv=cv, control=control, reading=reading)
    job, study, _, described = begun(asked_for)
    if as_json:
        findings = described.check.to_frame().to_dict("records")
        print_json({"rows": described.seen.n, "control": job.control, "findings": findings})
    else:
        print_sections(Console(highlight=False), question_section(described), check_section(described))
    refuse_findings(described, study)
