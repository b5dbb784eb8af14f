"""The simulations of ``benchmarks/`` for tests that run a part of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2, norm

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@contextmanager
def benchmark_script(name: str) -> Iterator[ModuleType]:
    """A script as a module; the scripts import each other by name."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCHMARKS))


def assert_errors_are_as_said(values, errors, truth, *, one_in: int = 1000, bias: float = 0.0) -> None:
    """Estimates of independent draws differ from the truth by errors of the size that they say.

    If each (value - truth) / error is standard normal, their mean and the sum of their squares leave these limits in
    one of ``one_in`` suites each. Squares say more per draw than counts of intervals that hold the truth: 200 find
    standard errors that are a fifth too short with a chance of .90, 200 counts with one of .73.

    Parameters
    ----------
    values, errors : arrays of shape (n_draws,)
        Estimates and their standard errors.
    truth : float, or array of shape (n_draws,)
    one_in : int
    bias : float
        Known size, in standard errors, of a bias of smaller order than the error itself.
    """
    z, tail = (np.asarray(values) - truth) / np.asarray(errors), 0.5 / one_in
    assert abs(z.mean()) <= norm.isf(tail) / np.sqrt(len(z)) + bias, f"the bias is {z.mean():.2f} standard errors"
    least, most = chi2.ppf([tail, 1 - tail], len(z)) / len(z)
    assert least <= (z**2).mean() <= most, f"errors are {np.sqrt((z**2).mean()):.2f} times as large as said"


def three_arms(rng: np.random.Generator, n: int, per_cluster: int) -> dict[str, Any]:
    """A study of three arms: propensities that vary, expected outcomes, weights, clusters, and a policy."""
    x = rng.normal(size=n)
    p = np.exp(np.column_stack([np.zeros(n), 0.5 * x, -0.3 * x]))
    p /= p.sum(axis=1, keepdims=True)
    arm = (rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    mean = np.column_stack([x, x + 1, 0.5 * x + 0.5])
    return {
        "Y": mean[np.arange(n), arm] + rng.normal(size=n),
        "T": np.array(["a", "b", "c"])[arm],
        "propensity": pd.DataFrame(p, columns=list("abc")),
        "regression": pd.DataFrame(mean, columns=list("abc")),
        "sample_weight": rng.uniform(0.5, 2, n),
        "groups": np.arange(n) // per_cluster,
        "policy": np.where(x > 0, "b", "c"),
        "x": x,
    }
