"""One rule of comparing labels of treatments: a label is what equals it, or else what its text is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from policytree import Study
from policytree.common.validation import place_of, position_of
from policytree.exceptions import InputError
from policytree.weighting.by_label import by_label

CASES = [
    (1, [0, 1], 1),
    (1.0, [0, 1], 1),
    ("1", [0, 1], 1),
    ("1.0", [0, 1], None),
    (1, ["0", "1"], 1),
    (True, [False, True], 1),
    ("True", [False, True], 1),
    ("drug", ["drug", "none"], 0),
    ("Drug", ["drug", "none"], None),
    ("1", [1, "1"], 1),
    (1, ["1", 1], 1),
]


@pytest.mark.parametrize(("label", "labels", "place"), CASES)
def test_positions_and_mappings_compare_alike(label, labels, place):
    treatments = np.empty(2, dtype=object)
    treatments[:] = labels
    assert place_of(label, labels) == place
    if place is None:
        with pytest.raises(InputError, match="is not among the treatments"):
            position_of(label, treatments, "control")
        with pytest.raises(InputError, match="which does not occur"):
            by_label({label: 3.0}, 2, labels, argument="costs", missing=0.0)
        return
    assert position_of(label, treatments, "control") == place
    expected = [3.0 if at == place else 0.0 for at in range(2)]
    assert by_label({label: 3.0}, 2, labels, argument="costs", missing=0.0).tolist() == [expected] * 2


def test_a_control_that_equals_a_label_is_one_as_a_cost_of_it_is():
    table = pd.DataFrame({"x": np.arange(40), "arm": np.arange(40) % 2, "y": np.arange(40) % 7})
    study = Study(table, treatment="arm", outcome="y", covariates=["x"], control=1.0, arm_costs={1.0: 2.0, "0": 1.0})
    assert by_label(study.arm_costs, 2, study.treatments, argument="costs").tolist() == [[1.0, 2.0]] * 2


def test_two_names_of_one_label_are_refused():
    with pytest.raises(InputError, match="costs names treatment 1 twice, as 1 and '1'"):
        by_label({1: 3.0, "1": 4.0}, 2, [0, 1], argument="costs", missing=0.0)
