"""The landing page's five lines; `tests/repository/test_site.py` runs them."""

# ---
from policytree import DRPolicyTree, cross_val_policy_value, load_dataset

study = load_dataset("nsw").study()  # a table, and which columns are the treatment, the outcome, the covariates
model = DRPolicyTree(max_depth=2, random_state=0).fit(study)
print(model.export_text(), model.certificate(), sep="\n\n")
print(cross_val_policy_value(model, study, random_state=0))
