"""
One page for whoever decides
============================

``StudyReport`` says everything that was found out about a study: as a page, as text, and as data.
"""

from policytree import DRPolicyTree, StudyReport, cross_val_policy_value, heterogeneity_test, load_dataset

study = load_dataset("nsw").study()
model = DRPolicyTree(max_depth=2, random_state=0).fit(study)
table = cross_val_policy_value(model, study, random_state=0)
test = heterogeneity_test(study, fitted=model.reward_estimator_, random_state=0)

report = StudyReport(
    model,
    study,
    results=[table, test],  # whatever was computed; each result finds its section
    about={"source": "NSW, Dehejia-Wahba sample", "unit": "dollars in 1978"},
)
report.to_html("report.html")
print(report.to_text()[:1200])

# %%
# `Open this very page <../sample_report.html>`__. It needs no network, prints, and reads on a phone. ``to_dict`` has
# the same as data. ``policytree report report.json -o again.html`` shows a saved one again.
