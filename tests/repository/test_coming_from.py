"""Promises of the pages "Coming from": scores in files give the reward that R's policytree finds; their code runs."""

from __future__ import annotations

import re
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.cases import policy
from policytree import PolicyTree

PAGES = Path(__file__).parents[2] / "docs" / "scripts" / "coming_from"
# Total rewards of the best trees, reached by R's policytree 1.2.5 and a second solver.
BEST_BY_R = [
    (1_000, 5, 2, "continuous", 2, 253.756240),
    (1_000, 10, 2, "continuous", 2, 353.110226),
    (1_000, 30, 2, "continuous", 2, 275.389525),
    (10_000, 5, 2, "continuous", 2, 1930.024252),
    (10_000, 5, 2, "r100", 2, 1879.244827),
    (10_000, 10, 2, "r100", 2, 2383.277911),
    (10_000, 30, 2, "r100", 2, 1911.280648),
    (10_000, 30, 3, "r100", 2, 2700.400806),
]


def through_csv(table, folder):
    table.to_csv(folder / "scores.csv", index=False)
    return pd.read_csv(folder / "scores.csv")


def through_arrow(table, folder):
    feather = pytest.importorskip("pyarrow.feather")
    feather.write_feather(table, folder / "scores.arrow")
    return feather.read_table(folder / "scores.arrow")


def columns(table, names):
    return table.select(names) if hasattr(table, "select") else table[names]


@pytest.mark.parametrize("through", [through_csv, through_arrow])
@pytest.mark.parametrize(("n", "p", "k", "distinct", "depth", "best"), BEST_BY_R)
def test_scores_from_a_file_give_the_reward_that_r_finds(n, p, k, distinct, depth, best, through, tmp_path):
    arrays = policy(tmp_path, n, p, k, distinct)
    X, arms = [f"X{j + 1}" for j in range(p)], [f"arm {a}" for a in range(k)]
    table = pd.DataFrame(np.column_stack([arrays.X, -arrays.losses]), columns=X + arms)
    read = through(table, tmp_path)
    tree = PolicyTree(max_depth=depth).fit(columns(read, X), columns(read, arms))
    given = tree.predict(columns(read, X))
    assert sum(table[arm][given == arm].sum() for arm in arms) == pytest.approx(best, abs=1e-6)
    assert tree.optimality_gap_ == 0.0


@pytest.mark.parametrize(("page", "package"), [("doubleml_scores", "doubleml"), ("causalml_learners", "causalml")])
def test_code_with_another_library_runs_with_it(page, package):
    pytest.importorskip(package)
    text = (PAGES / f"{page}.py").read_text(encoding="utf-8")
    code = textwrap.dedent(re.search(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text)[1])
    names: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other libraries warn about their own use of scikit-learn
        exec(compile(code, f"{page}.py", "exec"), names)
    assert names["tree"].optimality_gap_ == 0.0
    assert names["rewards"].shape[1] == 3
