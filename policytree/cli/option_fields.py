"""Options that several commands share: fields of a frozen dataclass, each with what ``--help`` says of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field, field, fields, is_dataclass
from typing import Annotated, Any

import typer

Command = Callable[..., None]


def option(name: str) -> str:
    """The option of an argument, as it is typed."""
    return f"--{name.replace('_', '-')}"


def spelt(options: type) -> dict[str, str]:
    """The options of a dataclass as they are typed, by the names of its fields."""
    return {said.name: said.metadata["named"] or option(said.name) for said in fields(options)}


def asked(
    metavar: str, help_text: str, panel: str, default: Any = None, *, named: str = "", least: float | None = None
) -> Any:
    """A field of what a command is asked: None, () or False where the user says nothing.

    ``named``: the option, where it is not the field's name; ``least``: the smallest number.
    """
    said = {"metavar": metavar, "help": help_text, "panel": panel, "named": named, "least": least}
    return field(default=default, metadata=said)


def takes_options(*leave_out: str, otherwise: str = "") -> Callable[[Command], Command]:
    """Decorator of commands: an argument whose type is a dataclass of such fields becomes an option for each.

    Parameters
    ----------
    *leave_out : str
        Fields that the command does not know.
    otherwise : str
        The default in words, instead of the help's text after "Default:".
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)
        groups: dict[str, tuple[Any, list[Field[Any]]]] = {
            name: (one.annotation, [each for each in fields(one.annotation) if each.name not in leave_out])
            for name, one in own.parameters.items()
            if is_dataclass(one.annotation)
        }

        @functools.wraps(command)
        def called(**given: Any) -> None:
            for name, (kind, known) in groups.items():
                said = {each.name: given.pop(each.name) for each in known}
                said = {each: tuple(value) if isinstance(value, list) else value for each, value in said.items()}
                given[name] = kind(**{each: value for each, value in said.items() if value is not None})
            return command(**given)

        parameters: list[inspect.Parameter] = []
        for name, one in own.parameters.items():
            parameters += [_parameter(each, otherwise) for each in groups[name][1]] if name in groups else [one]
        called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": None}
        return called

    return decorate


def _parameter(said: Field[Any], otherwise: str) -> inspect.Parameter:
    """An option of a command."""
    named = said.metadata["named"] or option(said.name) * (said.default is False)  # no --no-...
    text = said.metadata["help"]
    if otherwise and said.default is not False:
        text = f"{text.partition(' Default: ')[0]} Default: {otherwise}."
    given = typer.Option(
        *filter(None, (named,)), help=text, metavar=said.metadata["metavar"] or None, min=said.metadata["least"],
        rich_help_panel=said.metadata["panel"], show_default=False,
    )  # fmt: skip
    kind: Any = {"bool": bool, "float | None": float | None, "int | None": int | None}.get(str(said.type), str | None)
    if said.default == ():
        kind = list[str] | None
    default = False if said.default is False else None
    return inspect.Parameter(
        said.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Annotated[kind, given]
    )
