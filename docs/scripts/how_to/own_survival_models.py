"""
My own survival model
=====================

The default models of events and of censoring are mixtures of hazards. Your own takes the place of either if it has two
methods: ``fit(X, time, event)`` and ``predict_survival(X, times)``. Copies of it are fitted out of fold, within every
treatment.
"""

import numpy as np
import pandas as pd
from lifelines import CoxPHFitter

from policytree import RewardEstimator, Study, policy_value
from policytree.study import TimeToEvent


class Cox:
    """lifelines' proportional hazards."""

    def __init__(self, penalizer=0.1):
        self.penalizer = penalizer

    def fit(self, X, time, event):
        """Covariates (n, p), times (n,), and whether each ended with the event (n,)."""
        self.varies_ = X.std(axis=0) > 0  # a rare category may be missing from a treatment of a fold
        frame = self._named(X).assign(time=time, event=event)
        self.model_ = CoxPHFitter(penalizer=self.penalizer).fit(frame, "time", "event")
        return self

    def predict_survival(self, X, times):
        """Probability of no event by each of these times, (n, len(times))."""
        return self.model_.predict_survival_function(self._named(X), times=times).T.to_numpy()

    def _named(self, X):
        return pd.DataFrame(X[:, self.varies_]).add_prefix("x")


rng = np.random.default_rng(0)
n = 400
table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["severity", "age"])
table["arm"] = rng.choice(["drug", "placebo"], n)
time = rng.exponential(3.0 * np.exp(-0.5 * table["severity"] + 0.5 * (table["arm"] == "drug")))
censored = rng.exponential(6.0, n)
table["years"], table["died"] = np.minimum(time, censored), (time <= censored).astype(int)

outcome = TimeToEvent("years", event="died", horizon=4.0)
study = Study(table, treatment="arm", outcome=outcome, direction="maximize", propensity=0.5)
model = RewardEstimator(model_event=Cox(), random_state=0).fit(study)
gain = policy_value("drug", model.rewards_, baseline="placebo")
print(f"The drug adds {gain.value:.2f} of {model.horizon_:g} years [{gain.lower:.2f}, {gain.upper:.2f}].")
study.plot_survival(xlabel="years")

# %%
# ``model_censoring=`` takes such an object as well: for it the event is being censored. Of the two models, one has to
# be right. With ``TimeToEvent(..., cause=)``, the model of events is fitted to the cause and to the other causes in
# turn. Models of your own take no ``entry`` (left truncation).
#
# Covariates and confounders come as one float matrix, with an indicator for each category; missing values stay
# missing, and lifelines takes none: fill them in before.
#
# **scikit-survival** fits as well (it is not among the dependencies of this package). In ``fit``, call
# ``RandomSurvivalForest().fit(X, Surv.from_arrays(event, time))``. In ``predict_survival``, evaluate the step
# functions of ``predict_survival_function(X)`` at ``times``, moved into the range of times that it was fitted on,
# since they refuse others.
