"""How the direct solver's time grows with rows, features, thresholds, actions and depth, with fitted exponents.

    python benchmarks/scaling.py [--repeats 3] [--time-limit 60] [--quick]

One quantity varies while the others stay at the base; times include binning. The exponent is the slope of log seconds
on log size by least squares; for depth it is the factor a level. Fits that hit the limit, or are too short to time,
are shown but not fitted. Writes results/scaling.csv, .md and .png.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from cases import Arrays, policy
from measure import pin
from reporting import RESULTS, machine, markdown_head, markdown_table, write_csv

from policytree.problem.types import Problem, SearchLimits
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix

SHORTEST = 0.002  # seconds; shorter fits are mostly Python's own time


@dataclass(frozen=True)
class Setting:
    """A synthetic policy problem: sizes and the depth of the tree."""

    rows: int = 10_000
    features: int = 10
    thresholds: int = 31
    actions: int = 2
    depth: int = 2

    def arrays(self) -> Arrays:
        """The problem, the same whenever asked."""
        return policy(Path(), self.rows, self.features, self.actions, f"q{self.thresholds}")


BASES = {2: Setting(), 3: Setting(rows=4_000, depth=3)}
SWEEPS = {
    "rows": (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000),
    "features": (5, 10, 20, 40, 80),
    "thresholds": (7, 15, 31, 63, 127, 255, 511),
    "actions": (2, 3, 5, 10, 20),
    "depth": (1, 2, 3, 4),
}
QUICK = {name: sizes[:3] for name, sizes in SWEEPS.items()}


def sweep(name: str, sizes, base: Setting) -> list[Setting]:
    """Settings that differ in one quantity."""
    return [replace(base, **{name: size}) for size in sizes]


def time_fit(setting: Setting, repeats: int, limit: float) -> tuple[float, bool]:
    """Median seconds after a first fit of the same shape (long fits: of one), and whether all were proved."""
    arrays = setting.arrays()
    seconds, proved = [], True
    for _ in range(1 + repeats):
        start = time.perf_counter()
        problem = Problem(bin_matrix(arrays.X), arrays.losses, max_depth=setting.depth)
        solution = solve_direct(problem, SearchLimits(time_limit=limit))
        seconds.append(time.perf_counter() - start)
        proved &= solution.status.name == "OPTIMAL"
        if seconds[-1] > 10 or not proved:
            return seconds[-1], proved
    return statistics.median(seconds[1:]), proved


def slope(name: str, rows: list[dict]) -> float | None:
    """Exponent of the seconds in the size, or the factor a level of depth; None with fewer than three points."""
    used = [row for row in rows if row["proved"] and row["seconds"] >= SHORTEST]
    if len(used) < 3:
        return None
    sizes = np.array([row[name] for row in used], dtype=float)
    logs = np.log([row["seconds"] for row in used])
    if name == "depth":
        return float(np.exp(np.polyfit(sizes, logs, 1)[0]))
    return float(np.polyfit(np.log(sizes), logs, 1)[0])


def slope_text(name: str, value: float | None) -> str:
    """As read in the legend and the table."""
    if value is None:
        return "too few points"
    return f"x {value:.1f} a level" if name == "depth" else f"exponent {value:.2f}"


def plot(rows: list[dict], path: Path) -> None:
    """A panel a quantity; hollow points hit the limit, small ones were too short to fit."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["sweep"] for row in rows))
    figure, panels = plt.subplots(2, -(-len(names) // 2), figsize=(10, 6.4), sharey=True, layout="constrained")
    for panel in panels.flat[len(names) :]:
        panel.set_axis_off()
    for panel, name in zip(panels.flat, names, strict=False):
        for k, base in enumerate(dict.fromkeys(row["base"] for row in rows if row["sweep"] == name)):
            line = [row for row in rows if row["sweep"] == name and row["base"] == base]
            label = slope_text(name, slope(name, line))
            label = label if name == "depth" else f"depth {base}: {label}"
            panel.plot([r[name] for r in line], [r["seconds"] for r in line], f"C{k}-", lw=1, label=label)
            for row in line:
                small = row["seconds"] < SHORTEST
                face = f"C{k}" if row["proved"] else "white"
                panel.plot(row[name], row["seconds"], f"C{k}o", mfc=face, ms=2.5 if small else 5)
        sizes = sorted({row[name] for row in rows if row["sweep"] == name})
        panel.set(xlabel=name, yscale="log", xscale="linear" if name == "depth" else "log")
        panel.set_xticks(sizes, [f"{size // 1000}k" if size >= 1000 else str(size) for size in sizes])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8, loc="upper left")
        panel.margins(y=0.25)
    figure.supylabel("seconds, one core")
    figure.savefig(path, dpi=150)


def measure(sizes: dict, options) -> list[dict]:
    """Every sweep from every base; depth once."""
    rows = []
    for name, values in sizes.items():
        for depth, base in BASES.items():
            if name == "depth" and depth != 2:
                continue
            start = BASES[3] if name == "depth" else base
            for setting in sweep(name, values, start):
                seconds, proved = time_fit(setting, options.repeats, options.time_limit)
                rows.append({"sweep": name, "base": depth, **asdict(setting), "seconds": seconds, "proved": proved})
                print(f"{name:10s} {setting}  {seconds:.4g} s{'' if proved else ', limit'}", flush=True)
                if not proved:
                    break  # larger ones would take longer still
    return rows


def summary(rows: list[dict]) -> list[list[str]]:
    """A line a sweep: range of sizes, range of seconds, exponent."""
    lines = []
    for name, base in dict.fromkeys((row["sweep"], row["base"]) for row in rows):
        line = [row for row in rows if (row["sweep"], row["base"]) == (name, base)]
        span = f"{line[0][name]:,} to {line[-1][name]:,}"
        depth = "" if name == "depth" else str(base)
        seconds = f"{line[0]['seconds']:.3g} to {line[-1]['seconds']:.3g}"
        lines.append([name, depth, span, seconds, slope_text(name, slope(name, line))])
    return lines


def main() -> None:
    """Measure, fit, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--quick", action="store_true", help="three sizes of each, to see that it works")
    parser.add_argument("--output", type=Path, default=RESULTS / "scaling", help="stem of the files")
    options = parser.parse_args()
    about = machine()
    about["bases"] = "; ".join(map(str, BASES.values()))
    pin(1)
    rows = measure(QUICK if options.quick else SWEEPS, options)
    write_csv(options.output.with_suffix(".csv"), rows)
    header = ["varies", "depth", "sizes", "seconds", "growth"]
    text = markdown_head("Scaling of the direct solver", about) + markdown_table(header, summary(rows))
    options.output.with_suffix(".md").write_text(text, encoding="utf-8")
    plot(rows, options.output.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
