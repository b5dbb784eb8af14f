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

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@contextmanager
def benchmark_script(name: str) -> Iterator[ModuleType]:
    """A script as a module; the scripts import each other by name."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCHMARKS))


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
