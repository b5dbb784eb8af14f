"""Studies in the place of columns, both orders of arguments, and clear errors for calls that Python would refuse."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, ParamSpec, TypeVar

from policytree.exceptions import InputError

P = ParamSpec("P")
R = TypeVar("R")
# Arguments of a study only, with how it takes them: calls with columns one by one do not take them.
SAID_BY_STUDY = {
    "strata": "strata=[...]",
    **dict.fromkeys(("event", "horizon", "target", "entry", "cause"), "outcome=TimeToEvent(...)"),
    "missing_outcome": "outcome=MayBeMissing(...)",
    "instrument": "treatment=Offered(...)",
    **dict.fromkeys(("study", "target_X", "target_W", "target_weights"), "population=Population(...)"),
    "sample_treatment_costs": "arm_costs={...}",
    "budget_costs": "budget_costs={...}",
    "outcomes": "further_outcomes={...}",
    "subgroups": "subgroups=[...]",
    "direction": "direction=...",
    "control": "control=...",
    "randomized": "randomized=...",
    "known_propensity": "propensity=...",
    "unit": "unit=...",
}


class StudyLike(ABC):
    """Argument of calls instead of Y, T, X and the rest: a study, or its checked columns."""

    @property
    def says_potential_outcomes(self) -> bool:
        """Whether it says what every treatment would bring, or labels, and not what was observed."""
        return False

    @property
    @abstractmethod
    def data(self) -> Any:
        """The columns by their roles, checked (:class:`policytree.weighting.study_data.StudyData`)."""


def _refuse_said_by_study(name: str, given: Mapping[str, Any]) -> None:
    for each, how in SAID_BY_STUDY.items():
        if each in given:
            raise InputError(
                f"{name} takes no {each}, which a study says: make one of a table with named columns, Study(table, "
                f"{how}, ...), and pass it in place of Y, T and X."
            )


def refuses_said_by_study(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator of functions of Y, T and X, or of a study: what only a study says is refused with how it says it."""

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        _refuse_said_by_study(function.__name__, kwargs)
        return function(*args, **kwargs)

    return checked


def _of_study(study: Any, name: str, parameters: Mapping[str, Parameter], beside: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call that a study stands for, with those beside it."""
    needed, offered = study.data_arguments(), study.arguments()
    open_ended = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    for each in beside:
        if offered.get(each) is not None:
            raise InputError(f"{name} is given a study, which says {each} already; leave {each} out.")
    for each, value in needed.items():
        if value is not None and each not in parameters and not open_ended:
            raise InputError(f"{name} knows no {each}, which the study has; make a study without it.")
    taken = {each: value for each, value in offered.items() if each in parameters}
    more = {each: value for each, value in needed.items() if value is not None} if open_ended else {}
    return {**more, **taken, **beside}


def either_order(method: Callable[..., R], takes_study: bool = False) -> Callable[..., R]:
    """Decorator of methods ``(self, Y, T, *, X, ...)``, EconML's order: they take scikit-learn's as well.

    ``Pipeline`` and cross-validation call ``(X, Y, T=T, ...)``. Two arguments by position are X and Y exactly where
    ``T`` has a name; a method in EconML's order alone would be given ``T`` twice by such a call, so that no call can be
    meant in both ways.

    Raises
    ------
    InputError
        If the arguments by position and by name are neither order; the sentence shows both.
    """
    parameters = [*inspect.signature(method).parameters.values()][1:]  # the first is self
    named = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    needed = [p.name for p in parameters if p.default is Parameter.empty]
    name = method.__name__

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> R:
        _refuse_said_by_study(name, kwargs)
        if len(args) == 1 and isinstance(args[0], StudyLike):
            if not takes_study:
                return method(self, **_of_study(args[0], name, {p.name: p for p in parameters}, kwargs))
            return method(self, args[0], **(dict.fromkeys(needed[1:]) | kwargs))
        if len(args) > 2:
            call = ", ".join(["Y", "T", *(f"{each}={each}" for each in named[: len(args) - 2])])
            raise InputError(
                f"{name} takes Y, T by position and the rest by name: {name}({call}); or X, Y in scikit-learn's order, "
                f"with T by name."
            )
        order = ("X", "Y") if _is_scikit_learns(len(args), kwargs) else ("Y", "T")
        given = dict(zip(order, args, strict=False))
        if given.keys() & kwargs.keys() or {*needed} - given.keys() - kwargs.keys():
            raise InputError(_neither_order(name, len(args), [each for each in "YTX" if each in kwargs], needed))
        return method(self, **given, **kwargs)

    checked.takes_study = takes_study  # type: ignore[attr-defined]
    return checked


study_or_either_order = functools.partial(either_order, takes_study=True)  # of methods that read a study by themselves


def takes_study_as_table(fit: Callable[..., R]) -> Callable[..., R]:
    """Decorator of ``fit(self, X, ...)``: a study of rewards, or of labels, in the place of X stands for all of it.

    Raises
    ------
    InputError
        If the study has outcomes that are neither, says what an argument says as well, something that ``fit`` does not
        take, or another direction than the estimator.
    """
    parameters = inspect.signature(fit).parameters
    named = [*parameters][1:]  # the first is self

    @functools.wraps(fit)
    def called(self: Any, *args: Any, **kwargs: Any) -> R:
        given = dict(zip(named, args, strict=False)) | kwargs
        twice = len(given) < len(args) + len(kwargs)  # or more than it takes: Python's to refuse
        table = given.pop(named[0], None)
        if twice or not isinstance(table, StudyLike):
            return fit(self, *args, **kwargs)
        study: Any = table
        if not study.says_potential_outcomes:
            raise InputError(
                f"{type(self).__name__} takes a study whose outcome is Rewards([...]) or a Label(...), and that of "
                "this one is to be learnt from; DRPolicyTree().fit(study) does so."
            )
        study.told(self)
        beside = {name: value for name, value in given.items() if value is not None}
        return fit(self, **_of_study(study, "fit", parameters, beside))

    return called


def _is_scikit_learns(n_positional: int, named: Mapping[str, Any]) -> bool:
    """Whether arguments by position begin with X: EconML's order would give one argument twice."""
    return (n_positional == 2 and "T" in named) or (n_positional == 1 and "Y" in named)


def _neither_order(method: str, n_positional: int, named: list[str], needed: list[str]) -> str:
    """Say why a call is in neither order, and how the two orders are written."""
    orders = f"write {method}(Y, T, X=X), or {method}(X, Y, T=T) in scikit-learn's order"
    if n_positional == 2 and not named:
        return (
            f"{method} is given two arguments by position, and neither X nor T by name to say which they are; {orders} "
            "(its cross-validation passes T on after sklearn.set_config(enable_metadata_routing=True); to a pipeline's "
            "score from scikit-learn 1.8)."
        )
    by_position = f"{n_positional} by position" if n_positional else "none by position"
    return f"{method} needs {', '.join(needed[:-1])} and {needed[-1]}, and is given {by_position} and " + (
        f"{', '.join(named) or 'none'} by name; {orders}."
    )


def check_fit_arguments(estimator: Any, given: Mapping[str, Any]) -> None:
    """Refuse arguments that are passed on to an estimator's ``fit`` but that it does not take."""
    known = [*inspect.signature(estimator.fit).parameters][2:]  # after the table and what to learn
    for name in given:
        if name not in known:
            raise InputError(
                f"fit of {type(estimator).__name__} takes no argument {name!r}; it takes {', '.join(known)}."
            )
