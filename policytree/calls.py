"""Calls that Python would refuse in its own words: which arguments go by name, and which there are."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, ParamSpec, TypeVar

from policytree.exceptions import InputError

P = ParamSpec("P")
R = TypeVar("R")


def rest_by_name(method: Callable[P, R]) -> Callable[P, R]:
    """Decorator of methods with keyword-only arguments: says what to write to those who pass them by position."""
    parameters = [*inspect.signature(method).parameters.values()][1:]  # the first is self
    first = [p.name for p in parameters if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    rest = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]

    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        surplus = len(args) - 1 - len(first)
        if surplus > 0:
            name = method.__name__
            call = ", ".join([*first, *(f"{each}={each}" for each in rest[:surplus])])
            raise InputError(f"{name} takes {', '.join(first)} by position and the rest by name: {name}({call}).")
        return method(*args, **kwargs)

    return checked


def check_fit_arguments(estimator: Any, given: Mapping[str, Any]) -> None:
    """Refuse arguments that are passed on to an estimator's ``fit`` but that it does not take."""
    known = [*inspect.signature(estimator.fit).parameters][2:]  # after the table and what to learn
    for name in given:
        if name not in known:
            raise InputError(
                f"fit of {type(estimator).__name__} takes no argument {name!r}; it takes {', '.join(known)}."
            )
