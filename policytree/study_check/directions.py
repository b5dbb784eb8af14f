"""Which outcomes are better: stated, evident from the outcome's name, refused where it sounds like harm, or open."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from policytree.exceptions import InputError
from policytree.study_check.names import sounds_bad

MAXIMIZE = "maximize"


@dataclass(frozen=True, slots=True)
class Direction:
    """Which outcomes are better.

    Attributes
    ----------
    way : {"maximize", "minimize"}
    known : bool
        Whether somebody said it, or the outcome's name does.
    reason : str
        How it is known, or what nobody said.
    remedy : str
        The action to take where it is not known.
    """

    way: str
    known: bool
    reason: str
    remedy: str = ""


def name_of(Y: Any) -> str | None:
    """The name of a column of outcomes; None if it has none."""
    name = getattr(Y, "name", None)
    return None if name is None else str(name)


def with_direction(estimator: Any, direction: str | None) -> Any:
    """An estimator with the direction of its study, where it has none of its own; any other as it is.

    Raises
    ------
    InputError
        If the estimator has another direction.
    """
    if direction is None:
        return estimator
    from sklearn.base import BaseEstimator

    if not isinstance(estimator, BaseEstimator) or "direction" not in estimator.get_params(False):
        return estimator
    way = agreed_direction(estimator.get_params(False)["direction"], direction)
    return copy.copy(estimator).set_params(direction=way)  # a copy that stays fitted


def agreed_direction(own: str | None, other: str | None) -> str | None:
    """The direction that an estimator, or its study, states; None if neither does.

    Raises
    ------
    InputError
        If they differ.
    """
    if None not in (own, other) and own != other:
        raise InputError(f"The study has direction={other!r}, but the estimator direction={own!r}; give one of them.")
    return own or other


def direction_of(stated: str | None, *names: str | None, times: bool = False) -> Direction:
    """Decide which outcomes are better.

    Parameters
    ----------
    stated : {"maximize", "minimize"} or None
        The user's statement.
    *names : str or None
        The outcome's name, and the label of the event that it counts.
    times : bool
        Whether outcomes are times to an event: their target says what is better.

    Raises
    ------
    InputError
        If nobody said it and a name sounds like harm, of which a rule would then seek more.
    """
    name = next((name for name in names if name is not None), "y")
    if stated is not None:
        better = "higher" if stated == MAXIMIZE else "lower"
        return Direction(stated, True, f"{better} was stated to be better")
    if times:
        return Direction(MAXIMIZE, True, f"{name} is a time until an event, of which later is taken to be better")
    sounds = [sounds_bad(each) for each in names if each is not None]
    if any(sounds):
        raise InputError(
            f"Nobody said whether more {name!r} is better, and the name sounds like harm; say --direction minimize (in "
            "Python direction='minimize') if less is better, --direction maximize if more is."
        )
    if False in sounds:
        return Direction(MAXIMIZE, True, f"the name of {name!r} says that more is better")
    return Direction(
        MAXIMIZE, False, f"Nobody said whether more {name!r} is better, and this holds only if it is",
        "Say --direction maximize or minimize (in Python direction=).",
    )  # fmt: skip
