"""The start page's code; `tests/test_site.py` runs it beside a small trial.csv."""

# ---
import pandas as pd

from policytree import DRPolicyTree, StudyReport, check_study, cross_val_policy_value

table = pd.read_csv("trial.csv")
Y, T, X = table["score"], table["arm"], table[["age", "smoker"]]
print(check_study(X, T, Y))

model = DRPolicyTree(max_depth=2, random_state=0).fit(Y, T, X=X, propensity={"drug": 0.5, "placebo": 0.5})
values = cross_val_policy_value(model, Y, T, X=X, propensity={"drug": 0.5, "placebo": 0.5}, random_state=0)
print(values.verdict)
StudyReport(model, Y, T, X=X, results=[values]).to_html("report.html")
