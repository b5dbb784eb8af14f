"""Estimators among the arguments of an estimator."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator

from policytree.exceptions import InputError, quoted


class NestedParameters(BaseEstimator):
    """An estimator whose ``set_params`` names the argument that cannot be reached into, as ``rewards=None`` cannot."""

    def set_params(self, **params: Any) -> Self:
        """Set arguments, and arguments of estimators among them.

        Parameters
        ----------
        **params
            Values by name; ``rewards__cv`` is the argument ``cv`` of the estimator that is the argument ``rewards``.

        Returns
        -------
        NestedParameters
            This estimator.

        Raises
        ------
        InputError
            If an argument of an argument is set, and the latter is no estimator.
        """
        for name, value in params.items():
            outer, nested, inner = name.partition("__")
            holder = params.get(outer, getattr(self, outer, self))  # an unknown name is scikit-learn's to refuse
            if nested and not hasattr(holder, "set_params"):
                raise InputError(
                    f"{name} sets {inner} of {outer}, but {outer} is {quoted(holder)}; set {outer} to an estimator "
                    f"with {inner}, before or in the same call: set_params({outer}=..., {name}={quoted(value)})."
                )
        return super().set_params(**params)
