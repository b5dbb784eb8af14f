"""The matrix that nuisance models learn from."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

from policytree.weighting.covariates import MAX_LEVELS, Covariates


def codes_of(frame: pd.DataFrame) -> np.ndarray:
    """Numbers of levels in alphabetical order, NaN where missing."""
    return np.column_stack([np.where(c.isna(), np.nan, pd.Categorical(c).codes) for _, c in frame.items()])


@pytest.mark.parametrize("n_levels", [2, MAX_LEVELS - 1, MAX_LEVELS, MAX_LEVELS + 1, 60])
@pytest.mark.parametrize("gaps", [False, True])
def test_indicators_are_those_of_a_one_hot_encoder(n_levels, gaps):
    """Rare levels are pooled as scikit-learn pools them, ties too, and come last; missing is a level."""
    rng = np.random.default_rng(n_levels)
    levels = np.array([f"level {k:02d}" for k in range(n_levels)])
    frame = pd.DataFrame(
        {
            "many": np.append(levels, rng.choice(levels[: n_levels // 2 + 1], 300)),
            "age": rng.normal(size=n_levels + 300),
            "two": rng.choice(["no", "yes"], n_levels + 300),
        }
    )
    if gaps:
        frame.loc[rng.random(len(frame)) < 0.1, "two"] = None
        frame.loc[n_levels + np.flatnonzero(rng.random(300) < 0.1), "many"] = None
    categorical = codes_of(frame[["many", "two"]])
    expected = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MAX_LEVELS, sparse_output=False)
    expected.fit(categorical)

    fitted = Covariates.fit(frame)
    found = fitted.matrix(frame, None)

    assert np.array_equal(found, np.column_stack([frame["age"], expected.transform(categorical)]))
    assert len(fitted.names()) == found.shape[1]
    pooled = found[:, [name.startswith("many=other") for name in fitted.names()]]
    assert pooled.shape[1] == (n_levels + gaps >= MAX_LEVELS)


@pytest.mark.parametrize(("n_levels", "columns"), [(3, 3), (40, MAX_LEVELS)])
def test_values_that_fit_has_not_seen(n_levels, columns):
    """They get the pooled column if there is one, and zeros if not."""
    frame = pd.DataFrame({"town": [f"town {k}" for k in range(n_levels)] * 3})
    found = Covariates.fit(frame).matrix(pd.DataFrame({"town": ["elsewhere", None]}), None)
    assert found.shape == (2, columns)
    assert np.array_equal(found[:, -1], [n_levels > MAX_LEVELS] * 2)
    assert not found[:, :-1].any()
