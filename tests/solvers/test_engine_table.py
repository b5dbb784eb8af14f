"""The table of engines: what it declares is true of the code, and the site and the command line read it."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policytree.problem.types import Problem, SearchLimits, SizeGates
from policytree.solvers.core import compilation
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact import direct, engines
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.exact.engine_table import ENGINES, SWITCHES, Case, EngineLine, engines_for, kernels_of
from policytree.solvers.kernels.base.layout import INF

EXTENSIONS = Path(__file__).resolve().parents[2] / "docs" / "extensions"


def problem(n=60, p=4, values=7, K=2, depth: int | None = 4, penalty=0.0, **rules) -> Problem:
    rng = np.random.default_rng(n + p)
    X = rng.integers(0, values, (n, p)).astype(float)
    return Problem(bin_matrix(X), rng.integers(0, 2, (n, K)).astype(float), penalty, depth, **rules)


COSTS = {"feature_costs": np.ones(4), "feature_groups": np.zeros(4, np.int64)}
CORE = ["terminal solver", "depth-first search"]
CHOSEN = {
    "a leaf": (problem(depth=1), []),
    "depth two": (problem(depth=2), CORE[:1]),
    "depth three": (problem(depth=3), CORE),
    "a given first split": (problem(depth=1, root_features=(1,)), CORE),
    "shared test costs": (problem(**COSTS), CORE),
    "shared test costs, a penalty and many rows": (
        problem(n=2000, depth=None, penalty=1.0, **COSTS), CORE,
    ),
    "one feature": (problem(p=1, depth=None), ["interval DP"]),
    "two values": (problem(values=2), [CORE[0], "blocks of two-valued columns"]),
    "two values, three actions": (problem(values=2, K=3), CORE),
    "two values and a penalty": (
        problem(values=2, depth=5, penalty=1.0), [CORE[0], "blocks of two-valued columns", "subsets", "conflict pairs"],
    ),
    "few columns and a penalty": (problem(depth=None, penalty=1.0), [*CORE, "subsets", "row duals"]),
    "many columns and a penalty": (
        problem(p=20, depth=None, penalty=1.0), [*CORE, "subsets", "conflict pairs"],
    ),
    "depth five": (problem(depth=5), [*CORE, "incumbent search"]),
    "many rows": (problem(n=2000), [*CORE, "constraint generation"]),
    "many rows and a smallest leaf": (problem(n=2000, min_leaf=5), CORE),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_engines_of_a_problem(name):
    given, engines = CHOSEN[name]
    assert [engine.name for engine in engines_for(Case.of(given))] == engines


def test_the_table_states_what_there_is():
    assert len({engine.name for engine in ENGINES}) == len(ENGINES)
    for engine in ENGINES:
        assert importlib.import_module(f"policytree.solvers.{engine.module}").__doc__
        assert (engine.applies is None) == bool(engine.asked_by), "the search or the user chooses an engine"
        assert all(text.endswith(".") for text in (engine.takes, engine.buys))
    alone = [engine.alone for engine in ENGINES]
    assert alone == sorted(alone, reverse=True), "engines that work alone are asked first"


def test_every_kernel_belongs_to_an_engine():
    """Kernels compiled beforehand are those that engines call, with the codes of every table, and the shared ones."""
    long = Problem(bin_matrix(np.random.default_rng(0).normal(size=(300, 4))), np.zeros((300, 3)), 1.0, None)
    column = np.arange(70_000.0)[:, None]
    parts = replace(long, data=bin_matrix(np.hstack([column, column]), wide=True), losses=np.zeros((70_000, 3)))
    real = replace(problem(min_leaf=2), losses=np.random.default_rng(1).normal(size=(60, 2)))  # of sums of four bytes
    cases = [Case.of(each) for each in (long, parts, real, problem(min_leaf=2), problem(depth=None, penalty=1.0))]
    cases += [Case(problem(values=2), np.dtype(kind)) for kind in compilation.BLOCKS]
    needed = [pair for engine in ENGINES for case in cases for pair in engine.kernels(case)]
    declared = {kernel for kernels, _ in needed for kernel in kernels}
    every = {kernel for kernels, _ in compilation.all_kernels() for kernel in kernels}
    assert every == declared | {*compilation.ALWAYS, *compilation.CODING, *compilation.GAPS}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_search_loads_the_kernels_of_its_engines(name):
    case = Case.of(CHOSEN[name][0])
    assert all(pair in kernels_of(case) for engine in engines_for(case) for pair in engine.kernels(case))


@pytest.mark.parametrize(("losses", "kept"), [("labels", "bits"), ("real", "lists")])
def test_one_version_of_subsets_is_loaded_where_none_is(losses, kept, monkeypatch, rng):
    """Merged rows decide which one: so these come first, and helpers begin with kernels needed in any case."""
    given, loaded, next_ones, load = problem(values=4, depth=None, penalty=3.0), [], [], direct.load_kernels
    if losses == "real":
        given = replace(given, losses=rng.random(given.losses.shape))
    expected = solve_direct(given)

    def load_kernels(needed, then=()):
        loaded.extend(needed)
        next_ones.extend(then)
        return load(needed, then)

    monkeypatch.setattr(direct, "are_loaded", lambda needed: False)
    monkeypatch.setattr(direct, "load_kernels", load_kernels)
    solution = solve_direct(given)
    assert (solution.objective, solution.lower_bound) == (expected.objective, expected.lower_bound)
    versions = [kind for kernels, kind in loaded if kernels is compilation.SUBSETS]
    assert versions == [kept]
    assert all(pair in loaded for pair in kernels_of(Case.of(given)) if pair not in compilation.SUBSET_VERSIONS)
    assert next_ones and all(pair in loaded for pair in next_ones)


def test_a_search_loads_the_other_version_of_subsets(monkeypatch, rng):
    """Where one is there from a search before, a first step for the choice alone would cost every small search."""
    given = replace(problem(values=4, depth=None, penalty=0.3), losses=rng.random((60, 2)))
    expected, loaded, load = solve_direct(given), [], engines.load_kernels
    monkeypatch.setattr(direct, "are_loaded", lambda needed: needed == [(compilation.SUBSETS, "bits")])
    monkeypatch.setattr(engines, "load_kernels", lambda needed: loaded.extend(needed) or load(needed))
    solution = solve_direct(given)
    assert loaded == [(compilation.SUBSETS, "lists")]
    assert (solution.objective, solution.lower_bound) == (expected.objective, expected.lower_bound)


def test_a_bound_is_told_of_no_depth_that_was_not_searched(monkeypatch, rng):
    """Where errors are few and free, depth three is left out: no bound may take it for proved."""
    told, searched = [], [2]

    class Recorder:
        counter = "recorded"

        def __init__(self, run):
            pass

        def pays(self, seconds):
            return True

        def work(self, best, tree, depth, seconds):
            told.append((depth, max(searched)))
            return -INF

    of_case, search = direct.engines_for, engines.DepthEngine._search
    recorder = EngineLine("recorder", "solvers", "", "", bound=Recorder)
    monkeypatch.setattr(direct, "engines_for", lambda case: [*of_case(case), recorder])
    monkeypatch.setattr(engines.DepthEngine, "_search", lambda own, depth: search(own, depth) or searched.append(depth))
    X = rng.integers(0, 12, size=(400, 4)).astype(float)
    y = ((X[:, 0] > 5) ^ (X[:, 1] > 5)).astype(float)
    y[:4] = 1 - y[:4]
    solve_direct(Problem(bin_matrix(X), np.column_stack([y, 1 - y]), 0.0, 4))
    assert 3 not in searched and 4 in searched, "else this test says nothing"
    assert told and all(depth <= proved for depth, proved in told)


GATES = SizeGates(
    least_generation_rows=0, most_generation_columns=np.inf, most_generation_errors=1.0, least_pricing_seconds=0.0,
    pricing_share=10.0, pair_share=np.inf, least_set_slice=1 << 8, most_set_slice=1 << 10, start_saving=0.0,
)  # fmt: skip
#: For each switch: the engine's name and counter, and a problem on which it works if gates are open.
WORKS = {
    "row_duals": ("row duals", "raised_by_row_duals", problem(n=80, p=3, values=5, depth=4, penalty=2.0)),
    "subsets": ("subsets", "raised_by_subsets", problem(n=80, p=3, values=5, depth=None, penalty=3.0)),
    "conflict_pairs": (
        "conflict pairs", "raised_by_conflict_pairs", problem(n=80, p=17, values=2, K=3, depth=4, penalty=3.0),
    ),
    "constraint_generation": ("constraint generation", "generated_rows", problem(n=80, p=3, values=5, depth=4)),
    "incumbent_search": (
        "incumbent search", "better_trees_of_incumbent_search", problem(n=200, p=5, values=9, depth=5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("switch", WORKS)
def test_engines_count_what_they_did_and_can_be_switched_off(switch):
    engine, counter, given = WORKS[switch]
    limits = SearchLimits(gates=GATES)
    used, unused = solve_direct(given, limits), solve_direct(given, limits, **{switch: False})
    assert used.counters[counter] > 0 and unused.counters[counter] == 0
    assert used.status is unused.status and used.status.proved
    assert used.objective == unused.objective and used.lower_bound == unused.lower_bound
    assert engine in [each.name for each in engines_for(Case.of(given, GATES))]
    assert engine not in [each.name for each in engines_for(Case.of(given, GATES, frozenset({switch})))]


def test_every_engine_beside_the_core_has_a_switch():
    assert set(WORKS) == set(SWITCHES) <= set(solve_direct.switches)


def test_the_site_reads_the_table(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    rows = importlib.import_module("engine_table").engine_rows()
    for name in ("engine_table", "benchmark_tables", "result_tables"):
        sys.modules.pop(name, None)
    assert [row[0] for row in rows] == [engine.name for engine in ENGINES]
    assert ".. engine-table::" in (EXTENSIONS.parent / "method.rst").read_text(encoding="utf-8")
