"""``policytree report``: a saved report again, on the terminal, as a page or as text."""

from __future__ import annotations

from typing import Annotated

import typer

from policytree.cli.frame import DebugOption


def report(
    saved: Annotated[str, typer.Argument(metavar="REPORT.json", help="A report that `policytree design` saved.")],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write: .html, .txt, or .tex for its tables; printed if left out.",
        ),
    ] = None,
    section: Annotated[
        list[str] | None, typer.Option(help="Only this section, by its short name such as values; again for more.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    debug: DebugOption = False,
) -> None:
    """Show a saved report again: printed, as a page or text file, or its tables as LaTeX."""
    from dataclasses import replace

    from rich.console import Console

    from policytree.cli.files import read_report
    from policytree.cli.printing import print_json, print_sections
    from policytree.exceptions import InputError
    from policytree.serialization import save_text

    content = read_report(saved)
    if section:
        content = replace(content, sections=tuple(content.section(key) for key in section))
    if as_json:
        if output is not None:
            raise InputError("--json prints the report; leave out --output.")
        print_json(content.to_dict())
    elif output is None:
        print_sections(Console(highlight=False), *content.sections)
    elif output.lower().endswith(".html"):
        from policytree.report.html import to_html

        save_text(output, to_html(content))
    elif output.lower().endswith(".txt"):
        from policytree.report.text import to_text

        save_text(output, to_text(content))
    elif output.lower().endswith(".tex"):
        from policytree.report.latex import to_latex

        save_text(output, to_latex(content))
    else:
        raise InputError(f"The report '{output}' must end in .html, .txt or .tex.")
