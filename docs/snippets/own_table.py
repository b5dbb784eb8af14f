"""The start page's code; `tests/repository/test_site.py` runs it beside a small trial.csv."""

# ---
import pandas as pd

from policytree import DRPolicyTree, Study, StudyReport, cross_val_policy_value

study = Study(
    pd.read_csv("trial.csv"), treatment="arm", outcome="score", direction="maximize", covariates=["age", "smoker"],
    propensity={"drug": 0.5, "placebo": 0.5}, control="placebo",
)  # fmt: skip
print(study.check())

model = DRPolicyTree(max_depth=2, random_state=0).fit(study)
values = cross_val_policy_value(model, study, random_state=0)
print(values.verdict)
StudyReport(model, study, results=[values]).to_html("report.html")
