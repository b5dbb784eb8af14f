"""``policytree check``: what is suspicious about a study, before anything is fitted."""

from __future__ import annotations

from typing import Annotated

import typer

from policytree.cli.first_checks import check_first, check_source
from policytree.cli.frame import DebugOption
from policytree.cli.option_fields import takes_options
from policytree.cli.reading import Reading
from policytree.cli.study_options import StudyOptions


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
    from policytree.report.sections.question import check_section, question_section

    tree = {**DEFAULT, "categories": categories}
    asked_for = Job(data, dataset, data_dir, options, tree, cv=cv, control=control, reading=reading)
    job, study, _, described = begun(asked_for)
    if as_json:
        findings = described.check.to_frame().to_dict("records")
        print_json({"rows": described.seen.n, "control": job.control, "findings": findings})
    else:
        print_sections(Console(highlight=False), question_section(described), check_section(described))
    refuse_findings(described, study)
