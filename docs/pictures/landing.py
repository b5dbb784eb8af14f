"""The landing page's picture: a tree, its certificate and what it is worth held out, of a real trial."""

import textwrap

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, PolicyTreeDisplay, PolicyValueDisplay, cross_val_policy_value, load_dataset
from policytree.trees.short_thresholds import with_short_thresholds

study = load_dataset("rand-hie")
people = study.frame.drop_duplicates("person")
people = people[people["site"] != "Seattle"].reset_index(drop=True)  # nobody there could get the 50% plan
at_site = pd.crosstab(people["site"], people["plan"], normalize="index")
data = {
    "Y": people["visits"],
    "T": people["plan"],
    "X": people[list(study.covariates)],
    "W": people[["site", "black"]],
    "propensity": at_site.loc[people["site"]].set_axis(people.index),
    "groups": people["household"],
}
model = DRPolicyTree(LinearRegression(), max_depth=2, min_samples_leaf=200, direction="minimize", random_state=0)
model.fit(**data)
table = cross_val_policy_value(model, **data, random_state=0)

figure = plt.figure(figsize=(10.5, 6.4))
tree = figure.add_axes((0.0, 0.44, 0.56, 0.5))
short = with_short_thresholds(model.tree_, model.encoder_.encode(data["X"]))
PolicyTreeDisplay.from_tree(short, ax=tree, fontsize=10)
tree.set_title("The best tree of depth 2", loc="left", fontweight="bold", fontsize=11)

proof = figure.add_axes((0.6, 0.44, 0.4, 0.5))
proof.axis("off")
proof.set_title("Its certificate", loc="left", fontweight="bold", fontsize=11)
lines = [textwrap.fill(line, 44, subsequent_indent=" " * 11) for line in model.certificate().splitlines()]
lines += ["", textwrap.fill(str(table.verdict), 44)]
proof.text(0.0, 0.97, "\n".join(lines), va="top", fontfamily="monospace", fontsize=8.6, linespacing=1.35)

values = figure.add_axes((0.13, 0.08, 0.42, 0.27))
PolicyValueDisplay.from_table(table, ax=values, xlabel="visits a year, held out")
values.set_title("What each rule is worth on other people", loc="left", fontweight="bold", fontsize=11)

numbers = figure.add_axes((0.6, 0.06, 0.4, 0.3))
numbers.axis("off")
frame = table.to_frame()
rows = [f"{'rule':17} {'visits, 95% interval':<20}  {'tree - rule':<20}"]
for rule, row in frame.iterrows():
    less = ""
    if pd.notna(row["difference"]):
        less = f"{row['difference']:+.2f} [{row['difference_lower']:.2f}, {row['difference_upper']:.2f}]"
    value = f"{row['value']:.2f} [{row['lower']:.2f}, {row['upper']:.2f}]"
    rows.append(f"{rule:17} {value:<20}  {less:<20}")
numbers.text(0.0, 1.0, "\n".join(rows), va="top", fontfamily="monospace", fontsize=7.8, linespacing=1.6)
