"""The landing page's five lines; `tests/test_site.py` runs them."""

# ---
from policytree import DRPolicyTree, cross_val_policy_value, load_dataset

data = load_dataset("nsw").fit_arguments()  # Y, T, X, ...: outcomes, treatments, covariates
model = DRPolicyTree(max_depth=2, random_state=0).fit(**data)
print(model.export_text(), model.certificate(), sep="\n\n")
print(cross_val_policy_value(model, **data, random_state=0))
