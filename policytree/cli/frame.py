"""Behaviour of all commands: exit codes, errors of one sentence, --debug. Imports nothing heavy."""

from __future__ import annotations

import shlex
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from policytree.cli.streams import output_failure
from policytree.cli.wording import in_options
from policytree.data.features import shown
from policytree.exceptions import InputError

FAILED, BAD_INPUT, INTERRUPTED, READER_GONE = 1, 2, 130, 141
EXAMPLE = "policytree design --dataset rand-hie"
EXIT_CODES = (
    "Exit codes: 0 all done; 1 something failed that should not (add --debug for the traceback); 2 the data, a file or "
    "an option cannot be used, or the result cannot be printed; 130 interrupted, no file was written; 141 whoever read "
    "the output has left, as in `policytree show tree.json | head -1`."
)


def _say(kind: str, message: str) -> None:
    """Print a line on standard error; control characters in names from data are escaped."""
    typer.echo(f"{kind}: {shown(' '.join(message.split()), longest=None)}", err=True)


class Commands(TyperGroup):
    """Turns what commands raise into one sentence on standard error and an exit code."""

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run a command line; usage errors become exit code 2."""
        try:
            code = super().main(*args, **{**settings, "standalone_mode": False})
        except Exception as error:  # typer's usage errors; those of commands are caught in invoke
            if not hasattr(error, "format_message"):
                raise
            _say("Error", error.format_message())
            _say("Help", f"{_command_path(error)} --help")
            code = BAD_INPUT
        if settings.get("standalone_mode", True):
            sys.exit(code if isinstance(code, int) else 0)
        return code

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Read the command line, which may print help; Ctrl-C is said here too."""
        try:
            return super().make_context(*args, **settings)
        except (KeyboardInterrupt, OSError) as error:  # an OSError of help that cannot be printed
            raise typer.Exit(explain(error, debug=False)) from None

    def invoke(self, ctx):
        """Run the command; what it raises becomes an exit code."""
        try:
            return super().invoke(ctx)
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "format_message"):
                raise
            raise typer.Exit(explain(error, debug=_debug_wanted(ctx))) from None


def _command_path(error: Exception) -> str:
    ctx = getattr(error, "ctx", None)
    return ctx.command_path if ctx is not None else "policytree"


def _debug_wanted(ctx) -> bool:
    return bool((ctx.find_root().obj or {}).get("debug"))


def explain(error: BaseException, *, debug: bool) -> int:
    """Say in one sentence what went wrong; return the exit code."""
    if isinstance(error, OSError) and (code := unprinted()):
        return code
    if isinstance(error, BrokenPipeError):  # of a pipe that was named as --output
        return READER_GONE
    if debug:
        traceback.print_exception(error)
    interrupt = interrupt_in(error)
    if interrupt is not None:
        _say("Interrupted", str(interrupt) or "no file was written.")
        return INTERRUPTED
    if isinstance(error, InputError):
        _say("Error", in_options(str(error)))
        return BAD_INPUT
    if isinstance(error, MemoryError):
        _say("Error", "The memory does not suffice; try fewer --covariates or fewer rows.")
        return FAILED
    hint = "" if debug else " Add --debug to see where; please report it."
    _say("Unexpected error", f"{type(error).__name__}: {str(error).rstrip('.')}.{hint}")
    return FAILED


def unprinted() -> int:
    """The exit code for output that could not be printed, 0 if all was; reports it unless the reader has left."""
    failure = output_failure()
    if failure is None:
        return 0
    if isinstance(failure, BrokenPipeError):  # as in `policytree show tree.json | head -1`
        return READER_GONE
    reason = failure.strerror or failure
    _say("Error", f"Standard output cannot be written to ({reason}); print to a place that has room.")
    return BAD_INPUT


def interrupt_in(error: BaseException) -> KeyboardInterrupt | None:
    """The KeyboardInterrupt that an error is, or that an import or handler converted into it."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        if isinstance(each, KeyboardInterrupt):
            return each
        seen.add(id(each))
        each = each.__cause__ or each.__context__
    return None


def command_line(ctx: Any) -> str:
    """The command as it was typed, but for quotes and the order of its options."""
    words = ctx.command_path.split()
    for parameter in sorted(ctx.command.params, key=lambda each: each.param_type_name != "argument"):
        if ctx.get_parameter_source(parameter.name).name != "COMMANDLINE":
            continue
        value = ctx.params.get(parameter.name)
        values = list(value) if isinstance(value, list | tuple) else [value]
        if parameter.param_type_name == "argument":
            words += map(str, values)
        elif getattr(parameter, "is_flag", False):
            words.append(parameter.opts[0])
        else:
            words += [word for each in values for word in (parameter.opts[0], str(each))]
    return shlex.join(words)


def _remember_debug(ctx: typer.Context, wanted: bool) -> None:
    root = ctx.find_root()
    root.obj = {**(root.obj or {}), "debug": wanted}


DebugOption = Annotated[
    bool,
    typer.Option("--debug", help="On an error, print the traceback too.", callback=_remember_debug, is_eager=True),
]
