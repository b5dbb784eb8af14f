"""The tree in hand after so many seconds: policytree beside the anytime searches of others.

    python benchmarks/anytime_peers.py [--data DIRECTORY] [--seconds 10] [--case NAME ...] [--solver NAME ...]

The fewest training errors of a tree of limited depth, no price of leaves. One core; every run is a process of its own
whose clock is its processor time from the start of its fit, so that other work on the machine does not count; it is
ended when that is used up. Binning counts, and so do binary columns. Kernels are loaded and libraries imported before.

    CA-ConTree      limited discrepancy search over continuous features, of its authors (Kiossou, Schaus, Nijssen,
                    ECML PKDD 2026): ``pytrees-rs``, ``ConTreeClassifier.fit_anytime`` with splits in Gini order
    CA-DL8.5        complete anytime beam search with discrepancies (the same authors, 2025): ``pytrees-rs``,
                    ``DL85Classifier.fit_anytime``, a binary column for every threshold
    LicketySPLIT    ``licketysplit``, one tree without a proof, a binary column for every threshold

The primal integral is that of ``anytime.py``: seconds for which the tree in hand was off the best one known, weighted
by how far. A search that has no tree yet is off by everything. Writes results/anytime_peers.csv and
.md; docs/pictures/anytime.py draws them.

The peers: ``pip install pytrees-rs licketysplit``.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from anytime import primal_integral
from cases import MissingData, data_directory, table
from measure import pin
from reporting import RESULTS, machine, markdown_head, markdown_table, write_csv

Note = Callable[[float, bool], None]  # errors of the tree in hand, and whether they are proved to be the fewest

# file, depth, the fewest errors known from any solver (None: known only from this run)
CASES = {
    "COMPAS d4": ("compas", 4, 2137),
    "COMPAS d5": ("compas", 5, None),
    "Broward d4": ("broward", 4, 628),
    "Broward d5": ("broward", 5, 557),
    "FICO d4": ("fico_heloc", 4, 2846),
    "FICO d5": ("fico_heloc", 5, 2721),
    "rice d4": ("contree_rice", 4, 167),
    "rice d5": ("contree_rice", 5, 140),
    "fault d4": ("contree_fault", 4, None),
    "occupancy d4": ("contree_occupancy", 4, 26),
    "occupancy d5": ("contree_occupancy", 5, None),
}
EARLY = 1.0  # seconds after which trees are compared, too
WARM_ROWS = 300
MOST_CELLS = 30_000_000  # binary columns times rows of those who need them


@dataclass(frozen=True)
class Solver:
    """A search that is timed.

    Attributes
    ----------
    package : str
        Its distribution.
    run : callable
        Takes features, labels 0 .. K - 1, a depth, seconds and ``Note``, which it calls whenever it has a better tree.
    binary : bool
        Whether it needs a column for every threshold.
    """

    package: str
    run: Callable[[np.ndarray, np.ndarray, int, float, Note], None]
    binary: bool = False


def run_policytree(X: np.ndarray, y: np.ndarray, depth: int, seconds: float, note: Note) -> None:
    """The exact search; its progress reports carry the errors of the tree in hand."""
    from policytree.problem.types import Problem, SearchLimits, Status
    from policytree.solvers import solve_direct
    from policytree.solvers.core.binning import bin_matrix

    losses = (y[:, None] != np.arange(y.max() + 1)).astype(float)
    problem = Problem(bin_matrix(X), losses, max_depth=depth)
    limits = SearchLimits(time_limit=seconds, progress=lambda state: note(state.objective, False))
    found = solve_direct(problem, limits)
    note(found.objective, found.status == Status.OPTIMAL)


def run_ca_contree(X: np.ndarray, y: np.ndarray, depth: int, seconds: float, note: Note) -> None:
    """Limited discrepancy search over continuous features."""
    from pytrees import ConTreeClassifier

    model = ConTreeClassifier(max_depth=depth, max_time=seconds, sort_by_heuristic=True)
    # The status that a report carries is "optimal" from the first tree on; only that of the end tells of a proof.
    model.fit_anytime(X, y, lambda error, *_: note(error, False))
    note(model.train_error_, model.status_ == "optimal")


def run_ca_dl85(X: np.ndarray, y: np.ndarray, depth: int, seconds: float, note: Note) -> None:
    """Limited discrepancy search over binary columns."""
    from pytrees import DL85Classifier
    from pytrees.rules import DiscrepancyRule

    model = DL85Classifier(
        max_depth=depth, heuristic="information_gain", discrepancy=DiscrepancyRule(), max_time=seconds
    )
    model.fit_anytime(X, y, lambda error, *_: note(error, False))
    note(model.train_error_, model.status_ == "optimal")


def run_licketysplit(X: np.ndarray, y: np.ndarray, depth: int, seconds: float, note: Note) -> None:
    """One tree; it has no limit of time."""
    from licketysplit import LicketySPLITClassifier

    model = LicketySPLITClassifier(lambda_leaf=0.0, depth_budget=depth).fit(X, y)
    note(float((model.predict(X) != y).sum()), False)


SOLVERS = {
    "policytree": Solver("policytree", run_policytree),
    "CA-ConTree": Solver("pytrees-rs", run_ca_contree),
    "CA-DL8.5": Solver("pytrees-rs", run_ca_dl85, binary=True),
    "LicketySPLIT": Solver("licketysplit", run_licketysplit, binary=True),
}
MODULES = {"pytrees-rs": "pytrees", "licketysplit": "licketysplit", "policytree": "policytree"}


def binary_columns(X: np.ndarray) -> np.ndarray:
    """A column of zeros and ones for every threshold of every feature."""
    found = [column[:, None] > np.unique(column)[:-1] for column in X.T]
    return np.ascontiguousarray(np.concatenate(found, axis=1), dtype=np.uint8)


def arrays_of(data: Path, case: str) -> tuple[np.ndarray, np.ndarray]:
    """Features, and labels 0 .. K - 1."""
    arrays = table(data, CASES[case][0])
    return arrays.X, np.unique(arrays.labels, return_inverse=True)[1]


def child(options: argparse.Namespace) -> None:
    """Run one solver on one case in this process; lines of JSON go to the report as soon as they are known."""
    solver, depth = SOLVERS[options.solver[0]], CASES[options.case[0]][1]
    X, y = arrays_of(options.data, options.case[0])
    few = np.flatnonzero(np.arange(len(y)) % max(len(y) // WARM_ROWS, 1) == 0)
    warm = np.ascontiguousarray(X[few])
    solver.run(binary_columns(warm) if solver.binary else warm, y[few], 3, 2.0, lambda errors, proved: None)
    with options.child.open("a", encoding="utf-8") as file:
        start, fewest = time.process_time(), math.inf

        def note(errors: float, proved: bool) -> None:
            nonlocal fewest
            if errors < fewest or proved:
                fewest = errors
                seconds = time.process_time() - start
                file.write(json.dumps({"seconds": seconds, "errors": errors, "proved": proved}) + "\n")
                file.flush()

        used = math.ceil(start + options.seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (used, used))
        limit = 20 * options.seconds  # of wall time: the processor time ends the search
        solver.run(binary_columns(X) if solver.binary else X, y, depth, limit, note)


def trace(options: argparse.Namespace, case: str, solver: str) -> list[dict]:
    """Better trees of one run, in order."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report"
        asked = [sys.executable, __file__, "--case", case, "--solver", solver, "--seconds", str(options.seconds)]
        asked += ["--data", str(options.data), "--child", str(report)]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode > 0:
            raise SystemExit(f"{solver} on {case}: {done.stderr.strip().splitlines()[-1]}")
        lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    points = [json.loads(line) for line in lines]
    return [point for point in points if point["seconds"] <= options.seconds]


def run(options: argparse.Namespace) -> dict[tuple[str, str], list[dict]]:
    """The traces of all cases and solvers asked for."""
    traces = {}
    for case in options.case or CASES:
        for name in options.solver or SOLVERS:
            solver = SOLVERS[name]
            if find_spec(MODULES[solver.package]) is None:
                continue
            X, _ = arrays_of(options.data, case)
            cuts = sum(len(np.unique(column)) - 1 for column in X.T)
            if solver.binary and cuts * len(X) > MOST_CELLS:
                continue
            traces[case, name] = trace(options, case, name)
            print(case, name, traces[case, name][-3:], flush=True)
    return traces


def errors_at(points: list[dict], seconds: float) -> float:
    """The fewest errors of a tree found by then; infinite if there is none."""
    return min((p["errors"] for p in points if p["seconds"] <= seconds), default=math.inf)


def best_known(traces: dict[tuple[str, str], list[dict]]) -> dict[str, float]:
    """The fewest errors known of every case."""
    best = {}
    for (case, _), points in traces.items():
        known = CASES[case][2]
        found = [errors_at(points, math.inf), math.inf if known is None else known]
        best[case] = min([*found, best.get(case, math.inf)])
    return best


def summary(traces: dict[tuple[str, str], list[dict]], seconds: float) -> list[list[str]]:
    """A line a case and solver."""
    best, lines = best_known(traces), []
    for (case, name), points in traces.items():
        shown = [f"{e:,.0f}" if e < math.inf else "none" for e in (errors_at(points, s) for s in (EARLY, seconds))]
        first = f"{points[0]['seconds']:.2f}" if points else "none"
        gaps = [{"seconds": p["seconds"], "objective": p["errors"]} for p in points]
        proved = next((f"{p['seconds']:.2f}" for p in points if p["proved"]), "")
        integral = f"{primal_integral(gaps, best[case], seconds):.2f}"
        lines.append([case, name, first, *shown, f"{best[case]:,.0f}", proved, integral])
    return lines


HEADER = [
    "case", "solver", "first tree (s)", "errors after 1 s", "errors", "fewest known", "proved (s)",
    "primal integral (s)",
]  # fmt: skip


def versions() -> str:
    """The packages that were run."""
    packages = dict.fromkeys(s.package for s in SOLVERS.values() if s.package != "policytree")
    return ", ".join(f"{name} {metadata.version(name)}" for name in packages if find_spec(MODULES[name]))


def main() -> None:
    """Run, integrate, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=data_directory, default=None, help="holds classification/*.csv.gz")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a processor, a run")
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--solver", action="append", choices=SOLVERS)
    parser.add_argument("--output", type=Path, default=RESULTS / "anytime_peers", help="stem of the files")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.data = options.data or data_directory(None)
    pin(1)
    if options.child is not None:
        child(options)
        return
    about = {**machine(), "peers": versions(), "limit": f"{options.seconds:g} s of a processor"}
    try:
        traces = run(options)
    except MissingData as error:
        raise SystemExit(str(error)) from None
    fields = ("seconds", "errors", "proved")
    rows = [
        {"case": case, "solver": name, **{field: p[field] for field in fields}}
        for (case, name), points in traces.items()
        for p in points
    ]
    write_csv(options.output.with_suffix(".csv"), rows)
    lines = summary(traces, options.seconds)
    text = markdown_head("The tree in hand", about) + markdown_table(HEADER, lines, set(HEADER[2:]))
    options.output.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
