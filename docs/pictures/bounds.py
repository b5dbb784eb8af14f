"""Picture of the bounds that a few solved cuts of the root give for all the others."""

import example_tables as tables
import matplotlib.pyplot as plt
import numpy as np

f, g, gain = tables.rows()
left, right = tables.by_first_cut(tables.pair_table(f, g, gain))
# As losses: what is given up against treating exactly those who gain, on either side.
table = tables.pair_table(f, g, np.maximum(gain, 0.0)).sum(axis=1)
ideal_left = table.cumsum()[:-1]
lost_left, lost_right = ideal_left - left, table.sum() - ideal_left - right
loss = lost_left + lost_right

solved = [2, 4, 6]
incumbent = loss[solved].min()
cuts = np.arange(len(loss))
bound = np.zeros(len(loss))
for cut in cuts:  # the nearest solved cut on either side; itself, if it is solved
    bound[cut] += max((lost_left[s] for s in solved if s <= cut), default=0.0)
    bound[cut] += max((lost_right[s] for s in solved if s >= cut), default=0.0)

SOLVED, BOUND = "#1f5f7a", "#c9d7de"
figure, ax = plt.subplots(figsize=(7.6, 3.6))
ax.bar(cuts[solved], bound[solved], color=SOLVED, label="solved")
others = np.setdiff1d(cuts, solved)
ax.bar(others, bound[others], color=BOUND, label="bound by the solved cuts on either side")
ax.plot(cuts, loss, "o", color="#8a4b08", markersize=5, label="the loss, unknown unless solved")
ax.axhline(incumbent, color="black", linewidth=1, linestyle="--", label="the best tree so far")
for cut in others:
    words = "no work" if bound[cut] >= incumbent else "open"
    ax.text(cut, 2, words, ha="center", fontsize=8, color="#22424f")
ax.set_xlabel("cut of the root's column")
ax.set_ylabel("loss")
ax.set_xticks(cuts)
ax.set_ylim(0, loss.max() * 1.4)
ax.legend(fontsize=8, ncols=2, loc="upper center", frameon=False)
ax.spines[["top", "right"]].set_visible(False)
