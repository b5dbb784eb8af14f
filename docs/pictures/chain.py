"""The chain from data to a policy value, with the package that each step is in."""

import matplotlib.pyplot as plt

STEPS = (
    ("propensities,\neffects", "weighting"),
    ("rewards", "weighting"),
    ("weighted\nlabels", "weighting"),
    ("guesses", "guesses"),
    ("direct,\nduplication,\nsampling", "solvers"),
    ("treatment\nregime", "trees"),
    ("policy\nvalue", "evaluation"),
)

figure, axis = plt.subplots(figsize=(7.6, 1.5), layout="constrained")
for at, (step, room) in enumerate(STEPS):
    axis.text(
        at, 0.0, step, ha="center", va="center", fontsize=7.5,
        bbox={"boxstyle": "round,pad=0.45", "facecolor": "#eef4f7", "edgecolor": "#1f5f7a"},
    )  # fmt: skip
    axis.text(at, -0.7, f"policytree.{room}", ha="center", va="top", fontsize=6.5, color="#555555")
    if at:
        axis.text(at - 0.5, 0.0, "\u2192", ha="center", va="center", fontsize=11, color="#1f5f7a")
axis.annotate(
    "", (4.0, 0.62), (1.0, 0.42),
    arrowprops={"arrowstyle": "->", "color": "#8a4b08", "connectionstyle": "arc3,rad=-0.25", "relpos": (0.5, 0.0)},
)  # fmt: skip
axis.text(2.5, 1.4, "without labels: PolicyTree, DRPolicyTree", fontsize=7, ha="center", color="#8a4b08")
axis.set_xlim(-0.6, len(STEPS) - 0.4)
axis.set_ylim(-1.0, 1.6)
axis.set_axis_off()
