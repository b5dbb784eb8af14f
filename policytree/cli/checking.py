"""``policytree check``: what is suspicious about a study, before anything is fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from policytree.cli.first_checks import check_first, check_source
from policytree.cli.frame import DebugOption
from policytree.cli.option_fields import takes_options
from policytree.cli.reading import Reading
from policytree.cli.study_options import StudyOptions
from policytree.exceptions import InputError

if TYPE_CHECKING:
    from policytree.report.content import Table
    from policytree.report.described import Described


@takes_options()
def check(
    options: StudyOptions,
    reading: Reading,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help="Table, as for design.")] = None,
    categories: Annotated[
        str | None, typer.Option(metavar="WAY", help="How columns of text are split: levels or groups, as in design.")
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="The treatment that others are compared with. Default: as in design."),
    ] = None,
    cv: Annotated[
        int, typer.Option(metavar="N", min=2, help="Folds that the rows must suffice for, as in design.")
    ] = 5,
    treatment_model: Annotated[
        bool,
        typer.Option(
            "--treatment-model", help="Show a logistic regression of treatment on covariates, clusters counted."
        ),
    ] = False,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="A built-in study instead of a file.")] = None,
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="Folder of the built-in studies' files.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    debug: DebugOption = False,
) -> None:
    """Look for leaks, ids, dates, numbers stored as text and more in a study, in seconds; nothing is fitted."""
    check_source(data, dataset, "check")
    check_first(data, dataset, options, categories=categories)
    from rich.console import Console

    from policytree.cli.beginning import begun, refuse_findings
    from policytree.cli.printing import print_json, print_sections
    from policytree.cli.records import Job
    from policytree.cli.tree_options import DEFAULT
    from policytree.report.content import Section
    from policytree.report.sections.question import check_section, question_section

    tree = {**DEFAULT, "categories": categories}
    asked_for = Job(data, dataset, data_dir, options, tree, cv=cv, control=control, reading=reading)
    job, study, _, described = begun(asked_for)
    model = _model_of(described) if treatment_model else None
    if as_json:
        findings = described.check.to_frame().to_dict("records")
        told = {"rows": described.seen.n, "control": job.control, "findings": findings}
        print_json(told if model is None else told | {"treatment_model": model.numbers})
    else:
        of_model = () if model is None else (Section("treatment_model", f"Model of the {described.what}", (model,)),)
        print_sections(Console(highlight=False), question_section(described), check_section(described), *of_model)
    refuse_findings(described, study)


def _model_of(described: Described) -> Table:
    """The table that ``--treatment-model`` asks for.

    Raises
    ------
    InputError
        If there are no covariates, or the regression does not exist.
    """
    import numpy as np

    from policytree.report.sections.treatment_model import treatment_model

    try:
        return treatment_model(described, np.arange(described.seen.n))
    except InputError as error:
        raise InputError(f"--treatment-model shows nothing. {error}") from error
