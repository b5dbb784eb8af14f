"""How treatment depends on covariates: a logistic regression as a table, for ``policytree check`` and reports."""

from __future__ import annotations

import numpy as np

from policytree.report.content import Table
from policytree.report.described import Described
from policytree.weighting.logit import LogitPropensity


def assigned_to(study: Described, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Treatments (offers, where there are some), weights and clusters of some rows."""
    seen = study.assigned
    weight, groups = (None if part is None else part[rows] for part in (seen.sample_weight, seen.groups))
    return seen.treatments[seen.arm[rows]], weight, groups


def treatment_model(study: Described, rows: np.ndarray) -> Table:
    """Coefficients, standard errors and intervals of treatment on covariates and confounders, of some rows.

    Raises
    ------
    InputError
        If the regression does not exist, as where covariates tell treatments apart; or weights meet three treatments.
    """
    received, weight, groups = assigned_to(study, rows)
    table = LogitPropensity.table(received, X=study.covariates.iloc[rows], sample_weight=weight, groups=groups)
    first = next(label for label in np.unique(received) if label not in table.index.get_level_values(0))
    caption = (
        f"Logistic regression of the {study.what} on covariates: log odds against {first}, with "
        f"{'clustered' if groups is not None else 'model-based' if weight is None else 'robust'} standard errors."
    )
    columns = {
        study.what: "{treatment}", "term": "{term}", "coefficient": "{coefficient:.3g}",
        "standard error": "{standard_error:.2g}", "95% interval": "{lower:.3g} to {upper:.3g}", "p": "{p_value:.2g}",
    }  # fmt: skip
    return Table.of(table, columns, caption)
