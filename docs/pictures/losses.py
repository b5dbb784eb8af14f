"""A loss matrix becomes a bag of leaf sums."""

import matplotlib.pyplot as plt
import numpy as np

LEAVES = [("age ≤ 40", [0, 1, 2]), ("age > 40, smoker", [3, 4]), ("age > 40, no smoker", [5, 6, 7])]
ARMS = ["none", "pill", "course"]
losses = np.array([[0, 3, 2], [1, 4, 2], [0, 2, 3], [5, 1, 2], [4, 0, 3], [3, 4, 1], [2, 5, 0], [4, 3, 1]], dtype=float)

figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4), width_ratios=[1, 1.15])
for ax, values, names in (
    (left, losses, [f"person {i + 1}" for i in range(8)]),
    (right, np.array([losses[rows].sum(axis=0) for _, rows in LEAVES]), [name for name, _ in LEAVES]),
):
    ax.imshow(values, cmap="YlOrBr", vmin=0, vmax=14, aspect="auto")
    ax.set_xticks(range(3), ARMS)
    ax.set_yticks(range(len(values)), names)
    for (i, j), value in np.ndenumerate(values):
        best = ax is right and value == values[i].min()
        ax.text(j, i, f"{value:g}", ha="center", va="center", fontweight="bold" if best else "normal")
        if best:
            ax.add_patch(
                plt.Rectangle((j - 0.47, i - 0.46), 0.94, 0.92, fill=False, edgecolor="#1f5f7a", linewidth=2.5)
            )
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
for _, rows in LEAVES[:-1]:
    left.axhline(rows[-1] + 0.5, color="#1f5f7a", linewidth=2)
left.set_title("losses: what each arm costs each person", fontsize=10)
least = sum(losses[rows].sum(axis=0).min() for _, rows in LEAVES)
right.set_title(f"sums over leaves; the tree loses {least:g}", fontsize=10)
figure.tight_layout()
