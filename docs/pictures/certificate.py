"""How the best tree and the bound meet: a recorded search of the benchmarks."""

import csv
from pathlib import Path

import matplotlib.pyplot as plt

text = Path("../../benchmarks/results/anytime.csv").read_text(encoding="utf-8")
trace = [row for row in csv.DictReader(text.splitlines()) if row["case"] == "Broward d4"]
seconds = [float(row["seconds"]) for row in trace]

figure, ax = plt.subplots(figsize=(7.6, 3.2))
ax.step(
    seconds, [float(row["objective"]) for row in trace], where="post", color="#1f5f7a", label="errors of the best tree"
)
ax.step(
    seconds,
    [float(row["lower_bound"]) for row in trace],
    where="post",
    color="#8a4b08",
    label="bound: no tree has fewer",
)
ax.scatter(seconds[-1:], [float(trace[-1]["objective"])], color="black", zorder=3, label="they meet: proved")
ax.set_xscale("log")
ax.set_xlabel("seconds")
ax.set_ylabel("errors")
ax.legend(fontsize=8, frameon=False, loc="center left")
ax.spines[["top", "right"]].set_visible(False)
