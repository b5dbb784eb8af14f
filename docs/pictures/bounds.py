"""What a few solved cuts of the root say about all the others."""

import matplotlib.pyplot as plt
import numpy as np
import tables

f, g, gain = tables.rows()
left, right = tables.by_first_cut(tables.pair_table(f, g, gain))
# As losses: what is given up against treating exactly those who gain, on either side.
table = tables.pair_table(f, g, np.maximum(gain, 0.0)).sum(axis=1)
ideal_left = table.cumsum()[:-1]
lost_left, lost_right = ideal_left - left, table.sum() - ideal_left - right
loss = lost_left + lost_right

solved = [0, 4, 10]
incumbent = loss[solved].min()
cuts = np.arange(len(loss))
bound = np.full(len(loss), -np.inf)
for a in cuts:
    below = max((s for s in solved if s <= a), default=None)
    above = min((s for s in solved if s >= a), default=None)
    bound[a] = (lost_left[below] if below is not None else 0.0) + (lost_right[above] if above is not None else 0.0)

figure, ax = plt.subplots(figsize=(7.6, 3.6))
ax.bar(cuts, bound, color=["#1f5f7a" if c in solved else "#c9d7de" for c in cuts], label="_")
ax.plot(cuts, loss, "o", color="#8a4b08", markersize=5, label="the loss at each cut (unknown unless solved)")
ax.axhline(incumbent, color="black", linewidth=1, linestyle="--", label="the best tree so far")
refuted = [c for c in cuts if bound[c] >= incumbent and c not in solved]
for c in refuted:
    ax.text(c, bound[c] + 1.5, "no work", ha="center", fontsize=8, color="#44606c")
ax.bar([], [], color="#1f5f7a", label="solved")
ax.bar([], [], color="#c9d7de", label="bound from the solved cuts on either side")
ax.set_xlabel("cut of the root's column")
ax.set_ylabel("loss")
ax.set_xticks(cuts)
ax.set_ylim(0, max(loss.max(), bound.max()) * 1.45)
ax.legend(fontsize=8, ncols=2, loc="upper center", frameon=False)
ax.spines[["top", "right"]].set_visible(False)
