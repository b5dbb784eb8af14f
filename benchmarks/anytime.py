"""Quality over time where nobody proves: FICO and Broward at depth 4 and 5, all thresholds.

    python benchmarks/anytime.py [--data DIRECTORY] [--time-limit 120] [--case NAME ...]

Records (seconds, objective, lower bound) whenever the search reports progress, and at its end. The primal gap at a
moment is (objective - best) / objective against the best objective known, 1 before the first report; its integral
over the limit, in seconds, is the figure of merit (Berthold, Operations Research Letters 2013): a search that had the
best tree at once scores 0. Writes results/anytime.csv, .md and .png.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from cases import MissingData, data_directory, table
from measure import pin
from reporting import RESULTS, machine, markdown_head, markdown_table, write_csv

from policytree.problem.types import Problem, SearchLimits
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix

# file, depth, the fewest errors known from any solver (None: known only from this run)
CASES = {
    "Broward d4": ("broward", 4, 628),
    "Broward d5": ("broward", 5, None),
    "FICO d4": ("fico_heloc", 4, None),
    "FICO d5": ("fico_heloc", 5, None),
}


def trace(arrays, depth: int, limit: float) -> list[dict]:
    """Record the search's reports, from the start of binning to its end."""
    points: list[dict] = []
    start = time.perf_counter()

    def note(state) -> None:
        seconds = time.perf_counter() - start
        points.append({"seconds": seconds, "objective": state.objective, "lower_bound": state.lower_bound})

    problem = Problem(bin_matrix(arrays.X), arrays.losses, max_depth=depth)
    solution = solve_direct(problem, SearchLimits(time_limit=limit, progress=note))
    note(solution)
    points[-1]["status"] = solution.status.value
    return points


def primal_gap(objective: float, best: float) -> float:
    """Share of the objective that the best known tree would save."""
    return max(0.0, objective - best) / max(abs(objective), abs(best), 1e-300)


def primal_integral(points: list[dict], best: float, limit: float) -> float:
    """Integral of the primal gap over [0, limit], in seconds."""
    total, gap, since = 0.0, 1.0, 0.0
    for point in points:
        now = min(point["seconds"], limit)
        total += gap * (now - since)
        gap, since = primal_gap(point["objective"], best), now
    return total + gap * (limit - since)


def changes(points: list[dict]) -> list[dict]:
    """Points at which the objective or the bound moved, and the last."""
    kept = [
        point
        for before, point in zip([{}, *points], points, strict=False)
        if any(point[key] != before.get(key) for key in ("objective", "lower_bound"))
    ]
    return kept if kept[-1] is points[-1] else [*kept, points[-1]]


def plot(traces: dict[str, list[dict]], best: dict[str, float], limit: float, path: Path) -> None:
    """Primal gap above, gap between objective and bound below, over log seconds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 6.4), sharex=True, layout="constrained")
    for k, (name, points) in enumerate(traces.items()):
        seconds = [p["seconds"] for p in points]
        end = [max(limit, seconds[-1])]
        primal = [100 * primal_gap(p["objective"], best[name]) for p in points]
        proved = [100 * (p["objective"] - p["lower_bound"]) / max(abs(p["objective"]), 1e-300) for p in points]
        style = {"where": "post", "color": f"C{k}", "label": f"{name} (best {best[name]:,.0f})"}
        top.step(seconds + end, primal + primal[-1:], **style)
        bottom.step(seconds + end, proved + proved[-1:], **style)
        for panel, values in ((top, primal), (bottom, proved)):
            panel.plot(seconds[0], values[0], "o", color=f"C{k}", ms=4)
    top.set(ylabel="objective above best known, %", ylim=(-0.3, None))
    bottom.set(ylabel="objective above lower bound, %", xlabel="seconds, one core", xscale="log", ylim=(0, 105))
    top.legend(fontsize=8)
    for panel in (top, bottom):
        panel.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def summary(traces: dict[str, list[dict]], best: dict[str, float], limit: float) -> list[list[str]]:
    """A line a case."""
    lines = []
    for name, points in traces.items():
        last = points[-1]
        reached = next(p["seconds"] for p in points if p["objective"] <= last["objective"])
        known = CASES[name][2]
        lines.append([
            name, f"{points[0]['seconds']:.2f}", f"{points[0]['objective']:,.0f}", f"{last['objective']:,.0f}",
            f"{reached:.1f}", f"{last['lower_bound']:,.0f}", "this run" if known is None else f"{known:,}",
            f"{primal_integral(points, best[name], limit):.2f}", last["status"], f"{last['seconds']:.1f}",
        ])  # fmt: skip
    return lines


HEADER = [
    "case", "first report, s", "its errors", "errors", "found at, s", "lower bound", "best known", "primal integral, s",
    "ended by", "after, s",
]  # fmt: skip


def run(options) -> dict[str, list[dict]]:
    """The trace of every case asked for; one sentence if a file is missing."""
    traces = {}
    for name in options.case or CASES:
        file, depth, _ = CASES[name]
        try:
            arrays = table(options.data, file)
        except MissingData as error:
            raise SystemExit(str(error)) from None
        trace(arrays.head(300), min(depth, 4), 5.0)  # loads the kernels
        traces[name] = trace(arrays, depth, options.time_limit)
        print(f"{name}: {traces[name][-1]}", flush=True)
    return traces


def main() -> None:
    """Search, integrate, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=data_directory, default=None, help="holds classification/*.csv.gz")
    parser.add_argument("--time-limit", type=float, default=120.0)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--output", type=Path, default=RESULTS / "anytime", help="stem of the files")
    options = parser.parse_args()
    options.data = options.data or data_directory(None)
    about = {**machine(), "limit": f"{options.time_limit:g} s"}
    pin(1)
    traces = run(options)
    known = {name: CASES[name][2] for name in traces}
    best = {
        name: min([p["objective"] for p in points] + ([known[name]] if known[name] is not None else []))
        for name, points in traces.items()
    }
    fields = {"case": "", "seconds": 0.0, "objective": 0.0, "lower_bound": 0.0, "status": ""}
    rows = [{**fields, "case": name, **point} for name, points in traces.items() for point in changes(points)]
    write_csv(options.output.with_suffix(".csv"), rows)
    lines = summary(traces, best, options.time_limit)
    text = markdown_head("Quality over time", about) + markdown_table(HEADER, lines, set(HEADER[1:8]) | {HEADER[9]})
    options.output.with_suffix(".md").write_text(text, encoding="utf-8")
    plot(traces, best, options.time_limit, options.output.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
