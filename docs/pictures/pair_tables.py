"""A pair table, its corner sums, and a tree of depth two read off them."""

import example_tables as tables
import matplotlib.pyplot as plt
import numpy as np

f, g, gain = tables.rows()
table = tables.pair_table(f, g, gain)
corners = tables.corner_sums(table)
left, right = tables.by_first_cut(table)
cut = int(np.argmax(left + right))


def best_cut(block):
    """Where the other column is cut on one side."""
    sums = block.sum(axis=0)
    so_far = sums.cumsum()
    return int(np.argmax(np.maximum(so_far, 0) + np.maximum(sums.sum() - so_far, 0)))


figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.7))
limit = np.abs(table).max()
axes[0].imshow(table, cmap="BrBG", vmin=-limit, vmax=limit)
axes[0].set_title("1. sums of gains by both codes", fontsize=10)
axes[1].imshow(corners, cmap="BrBG", vmin=-np.abs(corners).max(), vmax=np.abs(corners).max())
axes[1].set_title("2. summed up to every corner", fontsize=10)
axes[2].imshow(table, cmap="BrBG", vmin=-limit, vmax=limit, alpha=0.35)
for first, last, block in ((0, cut, table[: cut + 1]), (cut + 1, tables.CUTS - 1, table[cut + 1 :])):
    at = best_cut(block)
    axes[2].plot([at + 0.5, at + 0.5], [first - 0.5, last + 0.5], color="black", linewidth=2)
    for low, high in ((0, at), (at + 1, tables.CUTS - 1)):
        total = block[:, low : high + 1].sum()
        words = f"{'treat' if total > 0 else 'leave'}\n{total:+.0f}"
        axes[2].text((low + high) / 2, (first + last) / 2, words, ha="center", va="center", fontweight="bold")
axes[2].axhline(cut + 0.5, color="black", linewidth=3)
axes[2].set_title("3. four corners give the best tree", fontsize=10)
for ax in axes:
    ax.set_xlabel("code of the second column")
    ax.set_ylabel("code of the first column")
    ax.set_xticks([])
    ax.set_yticks([])
figure.tight_layout()
