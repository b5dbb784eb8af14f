"""The tree in hand after so many seconds: policytree and the anytime searches of others, a recorded run."""

import csv
from pathlib import Path

import matplotlib.pyplot as plt

results = Path("../../benchmarks/results")
rows = list(csv.DictReader((results / "anytime_peers.csv").read_text(encoding="utf-8").splitlines()))
cases = list(dict.fromkeys(row["case"] for row in rows))
solvers = list(dict.fromkeys(row["solver"] for row in rows))
cells = [line.split("|") for line in (results / "anytime_peers.md").read_text(encoding="utf-8").splitlines()]
known = {c[1].strip(): c[6].strip().replace(",", "") for c in cells if len(c) == 10}  # from whatever search
fewest = {case: float(known[case]) for case in cases}
colors = dict(zip(solvers, ("#1f5f7a", "#8a4b08", "#5b7f2b", "#7a3b78"), strict=False))

figure, axes = plt.subplots(
    -(-len(cases) // 2), 2, figsize=(7.6, 1.9 * -(-len(cases) // 2)), sharex=True, layout="constrained", squeeze=False
)
for case, ax in zip(cases, axes.flat, strict=False):
    for solver in solvers:
        trace = [row for row in rows if (row["case"], row["solver"]) == (case, solver)]
        if trace:
            seconds = [float(row["seconds"]) for row in trace]
            above = [100 * (1 - fewest[case] / max(float(row["errors"]), 1)) for row in trace]
            width = 2.0 if solver == "policytree" else 1.2
            ax.step([*seconds, 10.0], [*above, above[-1]], where="post", color=colors[solver], lw=width, label=solver)
            ax.plot(seconds[0], above[0], "o", ms=3, color=colors[solver])
    ax.set_title(case, fontsize=9)
    ax.set_xscale("log")
    ax.set_ylim(-0.04 * ax.get_ylim()[1], None)
    place = ax.get_subplotspec()
    ax.tick_params(labelbottom=2 * place.rowspan.stop + place.colspan.start >= len(cases))
    ax.axvline(1.0, color="grey", lw=0.7, ls=":")
    ax.spines[["top", "right"]].set_visible(False)
for ax in axes.flat[len(cases) :]:
    ax.set_axis_off()
named = {}
for ax in axes.flat:
    for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
        named.setdefault(label, handle)
figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=len(named), frameon=False, fontsize=8)
figure.supxlabel("processor seconds", fontsize=9)
figure.supylabel("gap to the fewest errors known, %", fontsize=9)
