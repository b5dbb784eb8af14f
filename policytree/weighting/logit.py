"""Propensities by unpenalised logistic regression, with the inference table that referees ask for (statsmodels)."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
import pandas as pd
from scipy.linalg import qr
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import check_level, group_codes, treatment_codes, weights
from policytree.exceptions import InputError
from policytree.weighting.covariates import Covariates
from policytree.weighting.learners import imputer

COLLINEAR = 1e-9  # a column whose part outside the others is smaller than this share of it carries nothing new


def independent_columns(X: np.ndarray) -> np.ndarray:
    """Indices of columns that are neither constant nor combinations of columns before them; shape (q,), sorted."""
    design = np.column_stack([np.ones(len(X)), X])
    scale = np.sqrt((design**2).sum(axis=0))
    R = qr(design / np.where(scale > 0.0, scale, 1.0), mode="r", check_finite=False)[0]
    # Without pivoting the diagonal of R is each column's length outside the span of the columns before it.
    kept = np.flatnonzero(np.abs(np.diag(R[: R.shape[1]])) > np.sqrt(COLLINEAR))
    return kept[kept > 0] - 1


def _fit_statsmodels(X, codes, n_classes: int, sample_weight, clusters=None):
    """A statsmodels result for an intercept and ``X``; two classes by GLM (takes weights), more by MNLogit.

    ``clusters`` are codes; standard errors are then the sandwich of sums within clusters, with statsmodels' correction
    for their number.
    """
    import statsmodels.api as sm  # costs two seconds to import

    design = np.column_stack([np.ones(len(X)), X])
    clustered = None if clusters is None else {"cov_type": "cluster", "cov_kwds": {"groups": clusters}}
    if n_classes > 2 and sample_weight is not None:
        raise InputError(
            "statsmodels' multinomial logit takes no sample_weight; use LogisticRegression(C=1e6) as model_propensity."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # separation and failed convergence become the sentence below
            if n_classes == 2:
                model = sm.GLM(codes, design, family=sm.families.Binomial(), var_weights=sample_weight)
                # Weights are taken as survey weights: a sandwich, where frequency weights would shrink standard errors.
                return model.fit(**(clustered or {"cov_type": "nonrobust" if sample_weight is None else "HC1"}))
            return sm.MNLogit(codes, design).fit(disp=False, method="newton", maxiter=100, **(clustered or {}))
    except (Warning, np.linalg.LinAlgError) as error:
        raise InputError(
            "The logistic regression of T did not converge: covariates predict some treatment (almost) perfectly. Drop "
            "these covariates or rows without overlap, or use model_propensity='auto', which is penalised."
        ) from error


class LogitPropensity(ClassifierMixin, BaseEstimator):
    """Unpenalised (multinomial) logistic regression by statsmodels, as a scikit-learn classifier.

    Columns that are constant or combinations of earlier ones are left out (``columns_`` are those used).

    Attributes
    ----------
    results_ : statsmodels results, with ``summary()``, standard errors, likelihood
    columns_ : ndarray of int
        Columns of X that the design holds, after the intercept.
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.weighting import LogitPropensity
    >>> X, T = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array(["a", "b", "a", "b"])
    >>> LogitPropensity().fit(X, T).predict_proba(X).round(2)
    array([[0.8 , 0.2 ],
           [0.61, 0.39],
           [0.39, 0.61],
           [0.2 , 0.8 ]])
    """

    @aligns_rows
    def fit(self, X: Table, y: Column, sample_weight: Column | None = None) -> Self:
        """Fit by maximum likelihood.

        Raises
        ------
        InputError
            If covariates predict a class perfectly, or weights are given with more than two classes.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X, y, sample_weight, clusters=None) -> Self:
        """Fit; ``clusters``, codes, matter for the results' standard errors only."""
        rows, labels = validate_data(self, X, y)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        w = None if sample_weight is None else _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
        self.columns_ = independent_columns(rows)
        self.results_ = _fit_statsmodels(rows[:, self.columns_], codes, len(self.classes_), w, clusters)
        return self

    def predict_proba(self, X: Table) -> np.ndarray:
        """Probabilities of the classes, shape (n, n_classes)."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False)
        values = np.asarray(self.results_.predict(np.column_stack([np.ones(len(rows)), rows[:, self.columns_]])))
        return np.column_stack([1.0 - values, values]) if values.ndim == 1 else values

    def predict(self, X: Table) -> np.ndarray:
        """The most probable class, shape (n,)."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @staticmethod
    @aligns_rows
    def table(
        T: Column,
        *,
        X: Table | None = None,
        W: Table | None = None,
        sample_weight: Column | None = None,
        groups: Column | None = None,
        level: float = 0.95,
    ) -> pd.DataFrame:
        """The logistic regression of treatment on covariates, all rows, as a table of coefficients.

        Parameters
        ----------
        T : column of n labels
        X, W : tables of shape (n, p), optional
            Covariates as for :class:`policytree.RewardEstimator`; at least one.
        sample_weight : column of n numbers, optional
            Survey weights, with two treatments; standard errors are then robust (HC1).
        groups : column of n labels, optional
            Clusters; standard errors then count them, not rows.
        level : float in (0, 1)

        Returns
        -------
        DataFrame
            Index (treatment, term); columns coefficient (log odds against the first treatment), standard_error, z,
            p_value, lower, upper. Terms that are constant or repeat others are left out.

        Raises
        ------
        InputError
            If there are no covariates, they predict a treatment perfectly, or there are fewer than two clusters.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from policytree.weighting import LogitPropensity
        >>> rng = np.random.default_rng(0)
        >>> X = pd.DataFrame({"age": rng.uniform(20, 80, size=200)})
        >>> T = np.where(X["age"] + 20 * rng.normal(size=200) > 50, "drug", "none")
        >>> LogitPropensity.table(T, X=X)[["coefficient", "standard_error"]].round(2)
                             coefficient  standard_error
        treatment term
        none      intercept         4.36            0.64
                  age              -0.08            0.01
        """
        check_level(level)
        if X is None and W is None:
            raise InputError("A propensity table needs covariates; pass X or W.")
        arm, treatments = treatment_codes(T)
        clusters = group_codes(groups, len(arm))
        if clusters is not None and clusters.max() < 1:
            raise InputError("groups has one cluster only; leave it out, or name clusters of at least two values.")
        covariates = Covariates.fit(X, W)
        Z = covariates.matrix(X, W, len(arm))
        filler = imputer()
        Z, terms = filler.fit_transform(Z), filler.get_feature_names_out(covariates.names())
        model = LogitPropensity()._fit(Z, arm, weights(sample_weight, len(arm)), clusters)
        results, q = model.results_, len(model.columns_) + 1
        contrasts = treatments[1:]

        def stacked(values):
            return np.asarray(values).reshape(q, len(contrasts)).T.ravel()

        params, errors = stacked(results.params), stacked(results.bse)
        z = params / errors
        half = norm.ppf(0.5 + level / 2) * errors
        index = pd.MultiIndex.from_product(
            [contrasts, ["intercept", *terms[model.columns_]]], names=["treatment", "term"]
        )
        return pd.DataFrame(
            {
                "coefficient": params,
                "standard_error": errors,
                "z": z,
                "p_value": 2 * norm.sf(np.abs(z)),
                "lower": params - half,
                "upper": params + half,
            },
            index=index,
        )
