"""
A trial in which a tree wins
============================

In :doc:`trial` one plan for everybody does as well as the best tree, and that is the usual result. This page shows the
other one. No study that comes with a package has it, so the trial is simulated: 900 patients are randomised to two
drugs and usual care. This has an advantage: the truth is known, and at the end the intervals are compared with it.
"""

# %%
# The trial
# ---------
# The outcome is a score of well-being after three months, more is better. Drug A is cleared by the kidneys: it helps
# those whose kidneys work, and harms the others. Drug B is weaker, and helps the others while they are young. Old
# people with weak kidneys are best left alone. Nobody who analyses the trial knows this.

import numpy as np
import pandas as pd

from policytree import DRPolicyTree, Study, cross_val_policy_value, policy_value

ARMS = ["drug A", "drug B", "usual care"]


def patients(n, seed):
    """Covariates of n patients, and what each would score under every treatment."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(30, 90, n),
            "kidney": rng.normal(70, 20, n).clip(15, 120).round(),  # filtration, ml/min
            "pressure": rng.normal(140, 15, n).round(),
            "smoker": rng.choice(["yes", "no"], n, p=[0.3, 0.7]),
        }
    )
    usual = 60 - 0.2 * (X["age"] - 60) - 4 * (X["smoker"] == "yes") + rng.normal(0, 10, n)
    drug_a = usual + np.where(X["kidney"] > 60, 8.0, -6.0)
    drug_b = usual + np.where(X["age"] < 65, 4.0, -4.0)
    return X, pd.concat([drug_a, drug_b, usual], axis=1, keys=ARMS)


X, would = patients(900, seed=1)
arm = np.random.default_rng(2).integers(3, size=900)
trial = X.assign(arm=np.array(ARMS)[arm], score=would.to_numpy()[np.arange(900), arm])

# %%
# A study says once which columns are the treatment, the outcome and the covariates, and which way the outcome is
# better. Patients were randomised 1:1:1, so the probabilities are known. ``control`` is what every rule must be
# better than.

study = Study(
    trial, treatment="arm", outcome="score", direction="maximize", covariates=[*X],
    propensity=dict.fromkeys(ARMS, 1 / 3), control="usual care",
)  # fmt: skip
print(study)
print(study.check())

# %%
# What is a rule worth?
# ---------------------
# The same call as ever.

from sklearn.linear_model import LinearRegression

model = DRPolicyTree(LinearRegression(), max_depth=2, min_samples_per_treatment=20, random_state=0).fit(study)
table = cross_val_policy_value(model, study, random_state=0)
print(table)

# %%
# Read it in this order.
#
# - **The verdict.** The tree is better than usual care *and* than every single treatment. Both must be shown before a
#   tree is recommended over something simpler.
# - **Tree - best single treatment.** Which drug is best for everybody had to be learnt from the same patients. This
#   interval counts that; the one beside "always drug A" does not.
# - **The plug-in rule** gives everybody the treatment with the best prediction. Its line says whether the tree pays
#   for being small.
# - **Optimism.** On the patients who chose it, the tree seems better than it is. The table's values are held out.


table.plot(title="Score after three months, on patients who did not choose the rule")

# %%
# The tree, and its proof
# -----------------------

model

# %%
# Which question comes first does not matter: the three groups are the same. In truth they part at 60 for kidneys and
# at 65 years. The tree parts kidneys at or near 60, but age some years too late: with 900 patients such cuts cannot
# be told apart.
#
# Do effects differ between patients at all? Here they do, and the test says so.

from policytree import heterogeneity_test

print(heterogeneity_test(study, fitted=model.reward_estimator_, random_state=0))

# %%
# The people in the leaves
# ------------------------
# One half of the patients chooses a tree, the other half says what is in its leaves. The picture is of that tree, and
# so is its title: it may differ a little from the one above.

from policytree import honest_leaf_summary

honest = honest_leaf_summary(model, study, random_state=0)
honest.estimator.plot(
    leaf_summary=honest.leaves, title=honest.against_best.statement(1, "This tree"), value_name="score"
)

# %%
# In each leaf the first interval is of the mean score under the leaf's treatment, the second of what it gains over the
# next best. Those of means hold for all leaves at once, and so do those of gains.
#
# The truth
# ---------
# A luxury of simulations: 200,000 new patients, of whom all three outcomes are known. The values above are of rules
# that were learnt from four fifths of the trial; the tree from all patients, whose truth is shown here, is close to
# them.

people, scores = patients(200_000, seed=3)
truth = {"policy tree": policy_value(model.predict(people), scores).value}
truth |= {f"always {arm}": scores[arm].mean() for arm in ARMS}
shown = table.to_frame().loc[list(truth), ["value", "lower", "upper"]]
shown.assign(truth=pd.Series(truth)).round(1)

# %%
# The tree's true value is well inside its interval; that of drug A is just outside: by the luck of randomisation,
# those who got it would have scored lower than the others anyway. On average, one 95 % interval in twenty misses the
# truth, and the table does not say which.
#
# When does a tree win?
# ---------------------
# Three things came together. Effects change sign, so that no single treatment is right for everybody. They do so along
# few covariates that were measured. And the trial is large enough: with 150 patients of the same kind the verdict
# would probably be that nothing is shown. Real trials often lack the first; :doc:`trial` is one.
#
# Next: :doc:`/how_to/surest` takes the tree whose gain is surest in place of the best one, :doc:`/how_to/stability`
# asks whether it would come again, :doc:`/how_to/export` takes it to where it is used.
