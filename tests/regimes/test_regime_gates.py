"""The gates of a regime's verdict: every decision's chances, the direction, and how many people there are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree
from policytree.exceptions import InputError
from policytree.regimes import Stage, TreatmentRegime, cross_val_regime_value


def two_stages(n=400, *, chance=0.5, stated=0.5, name=None, seed=0):
    """Two randomised decisions; ``chance`` of the second treatment at the second one, and the one that is stated."""
    rng = np.random.default_rng(seed)
    severity, first = rng.normal(size=n), rng.integers(2, size=n)
    second = (rng.random(n) < chance).astype(int)
    response = first * severity + rng.normal(size=n)
    outcome = pd.Series(second * np.sign(response) + rng.normal(size=n), name=name)
    X = pd.DataFrame({"severity": severity})
    known = None if stated is None else {0: 1 - stated, 1: stated}
    return [
        Stage(first, X=X, Y=response, propensity=None if stated is None else 0.5),
        Stage(second, X=pd.DataFrame({"age": rng.normal(size=n)}), Y=outcome, propensity=known),
    ]


def judged(stages, direction="maximize"):
    tree = DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, cv=2, direction=direction)
    regime = TreatmentRegime(tree, random_state=0)
    return cross_val_regime_value(regime, stages, cv=2, n_repeats=1, baselines=False, random_state=0).verdict


def test_a_clean_trial_passes_every_gate():
    verdict = judged(two_stages())
    assert verdict.strength == "supported"
    assert {gate.name for gate in verdict.gates} == {"better direction", "assignment", "stated probabilities"}


def test_chances_that_the_second_decision_refutes_withhold_the_verdict():
    verdict = judged(two_stages(chance=0.7))
    assert verdict.strength == "cannot be said"
    assert str(verdict).startswith("These data cannot say what to do: at stage 2 the shares of treatments refute")


def test_a_direction_that_nobody_said_is_fragile_and_harm_is_refused():
    assert str(judged(two_stages(), direction=None)).startswith(
        "This is fragile: nobody said whether more 'y' is better"
    )
    assert judged(two_stages(name="survival_days"), direction=None).strength == "supported"
    with pytest.raises(InputError, match="'pain_score' is better, and the name sounds like harm"):
        judged(two_stages(name="pain_score"), direction=None)


def test_few_people_whom_nobody_assigned_by_lot_are_fragile():
    verdict = judged(two_stages(stated=None))
    assert verdict.strength == "fragile"
    assert "with 400 rows and estimated probabilities" in str(verdict)
    assert judged(two_stages(n=600, stated=None)).strength == "supported"


def test_stages_that_are_no_estimators_are_refused_before_anything_is_asked_of_them():
    with pytest.raises(InputError, match="stages must be a DRPolicyTree or a list of them"):
        cross_val_regime_value(TreatmentRegime("tree"), two_stages(), cv=2, n_repeats=1)
