"""Attributes and methods that an estimator takes over from the fitted tree inside it, visible to type checkers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload

from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from policytree.exceptions import InputError

P = ParamSpec("P")
T = TypeVar("T")
INNER = "policy_tree_"


class OfTree(Generic[T]):
    """A fitted attribute of ``policy_tree_``, by its own name; as long as there is none, the estimator has none."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        if INNER not in vars(instance):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")
        return getattr(vars(instance)[INNER], self.name)


def of_tree(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """A method that passes on to that of ``policy_tree_``, with its signature and its documentation."""

    @functools.wraps(method)
    def passed_on(self: Any, *args: P.args, **kwargs: P.kwargs) -> T:
        check_is_fitted(self, INNER)
        return getattr(vars(self)[INNER], method.__name__)(*args, **kwargs)

    return passed_on


def scored_with_treatments(method: Callable[P, T]) -> Callable[P, T]:
    """A ``score`` that needs treatments, and says so to searches and cross-validation before they fit anything.

    These ask an unfitted estimator for its ``score``, and turn what is raised later into scores of NaN.
    """
    return cast("Callable[P, T]", _Scored(method))


class _Scored:
    def __init__(self, method: Any) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self.method
        if INNER not in vars(instance) and not get_config()["enable_metadata_routing"]:
            raise InputError(
                f"{owner.__name__} is scored by the treatments T as well, which searches and cross-validation pass on "
                "only after sklearn.set_config(enable_metadata_routing=True); call that first, or fit the tree before "
                "you call its score(Y, T, X=X)."
            )
        return self.method.__get__(instance, owner)
