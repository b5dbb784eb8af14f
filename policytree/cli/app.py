"""The command line itself: which commands there are, help, version."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from policytree import __version__
from policytree.cli.checking import check
from policytree.cli.comparing import compare
from policytree.cli.design import design
from policytree.cli.evaluating import evaluate
from policytree.cli.explaining import explain
from policytree.cli.frame import EXAMPLE, EXIT_CODES, Commands, unprinted
from policytree.cli.frame import explain as explain_error
from policytree.cli.reporting import report
from policytree.cli.streams import standard_streams
from policytree.cli.trees import plot, predict, show
from policytree.cli.warming import warmup

app = typer.Typer(
    name="policytree",
    cls=Commands,
    add_completion=True,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=f"A run to start with (a real trial, some minutes): [bold]{EXAMPLE}[/bold]\n\n{EXIT_CODES}",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"policytree {__version__}")
        raise typer.Exit(0)


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """From trial or observational data to the provably best small policy tree, and an honest value for it."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


for _command in (design, evaluate, predict, check, compare, report, show, plot, explain, warmup):
    app.command(epilog=EXIT_CODES)(_command)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code (see ``policytree --help``)."""
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures go to files; a display may be absent or slow
    with standard_streams():
        try:
            code = app(args=arguments, prog_name="policytree", standalone_mode=False) or 0
        except KeyboardInterrupt as interrupt:  # before a command began
            code = explain_error(interrupt, debug=False)
        except SystemExit as left:  # printing help ends this way when the reader of a pipe has left
            code = unprinted() or left.code
        return code or unprinted()
