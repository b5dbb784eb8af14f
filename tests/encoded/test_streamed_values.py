"""Values and leaves from batches are those of policy_value and leaf_summary."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from policytree import PolicyTree, Study, leaf_summary, policy_value
from policytree.exceptions import InputError
from policytree.study import Label, Rewards

pytest.importorskip("pyarrow")


@pytest.fixture
def rows(rng):
    n = 150
    frame = pd.DataFrame({"x": rng.normal(size=n), "town": rng.choice(["Bonn", "Oslo"], n)})
    frame["a"], frame["b"] = rng.normal(size=n), frame.x + rng.normal(size=n)
    return frame.assign(w=rng.choice([0.0, 0.5, 3.0], n), person=rng.integers(0, 40, n))


@pytest.fixture
def trees(rows):
    fit = rows[["x", "town"]], rows[["a", "b"]]
    return {"one": PolicyTree(max_depth=1).fit(*fit), "two": PolicyTree(max_depth=2).fit(*fit)}


def judged(rows, **roles) -> Study:
    return Study(rows, **{"outcome": Rewards(["a", "b"]), "covariates": ["x", "town"]} | roles)


@pytest.mark.filterwarnings("ignore:These rows chose the rule")
@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("groups", [None, "person"])
@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
def test_values_are_those_in_memory(rows, trees, weights, groups, batch_rows):
    ask = {"groups": None if groups is None else rows[groups]}
    ask["sample_weight"] = None if weights is None else rows[weights]
    table = trees["one"].streamed_values(
        judged(rows, weights=weights, cluster=groups), rivals={"two": trees["two"]}, batch_rows=batch_rows
    )
    named = {"policy": trees["one"], "two": trees["two"]}
    policies = {name: tree.predict(rows[["x", "town"]]) for name, tree in named.items()}
    policies |= {"always a": np.full(len(rows), "a"), "always b": np.full(len(rows), "b")}
    assert len(table) == 4 + 5
    for row in table.itertuples():
        if row.less:
            expected = policy_value(policies[row.rule], rows[["a", "b"]], baseline=policies[row.less], **ask)
        else:
            expected = policy_value(policies[row.rule], rows[["a", "b"]], **ask)
        for name in ("value", "standard_error", "lower", "upper", "n", "n_clusters"):
            assert getattr(row, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-12), name


def test_no_number_depends_on_batches_or_order(rows, trees):
    found = [
        trees["two"].streamed_values(judged(rows.sample(frac=1, random_state=k), weights="w"), batch_rows=size)
        for k, size in enumerate([1, 11, 500])
    ]
    pd.testing.assert_frame_equal(found[0], found[1], check_exact=True)
    pd.testing.assert_frame_equal(found[0], found[2], check_exact=True)


def test_what_cannot_be_judged_is_refused(rows, trees):
    for change, match in [
        ({"source": rows.iloc[:0]}, "no rows"),
        ({"source": rows.iloc[:1]}, "at least two rows"),
        ({"source": rows.assign(w=0.0), "weights": "w"}, "zero in all rows"),
        ({"source": rows.assign(a=np.nan)}, "'a' of rewards contains NaN"),
        ({"source": rows.assign(person=np.nan), "cluster": "person"}, "no value in row 0"),
        ({"source": rows.assign(person=1), "cluster": "person"}, "two clusters"),
        ({"outcome": Rewards(["a"])}, "gives 'b'"),
        ({"outcome": Rewards(["a", "c"])}, "no column 'c'"),
        ({"outcome": Label("town"), "covariates": ["x"]}, "outcome of this study is a Label"),
        ({"outcome": "a", "treatment": "town", "covariates": ["x"]}, r"is Number\('a'\); score it first"),
        ({"policies": PolicyTree(max_depth=1).fit([[1.0]], [[0.0, 1.0]])}, "not fitted on named columns"),
    ]:
        ask = {"policies": trees["two"], "source": rows} | change
        with pytest.raises(InputError, match=match):
            ask.pop("policies").streamed_values(judged(ask.pop("source"), **ask))


def test_a_rival_has_a_name_of_its_own(rows, trees):
    with pytest.raises(InputError, match="rivals names 'policy', as this tree is called"):
        trees["one"].streamed_values(judged(rows), rivals={"policy": trees["two"]})


@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("groups", [None, "person"])
@pytest.mark.parametrize(("batch_rows", "held_out"), [(7, True), (1000, True), (1000, False)])
def test_leaves_are_those_in_memory(rows, trees, weights, groups, batch_rows, held_out):
    rows = rows.assign(got=np.where(rows.index % 3, "a", "b"))
    ask = {"groups": None if groups is None else rows[groups]}
    ask["sample_weight"] = None if weights is None else rows[weights]
    for tree in trees.values():
        study = judged(rows, treatment="got", weights=weights, cluster=groups)
        found = tree.streamed_leaves(study, held_out=held_out, batch_rows=batch_rows)
        expected = leaf_summary(tree, rows[["x", "town"]], rows[["a", "b"]], T=rows.got, held_out=held_out, **ask)
        pd.testing.assert_frame_equal(found, expected, rtol=1e-8, check_index_type=False)


def test_no_leaf_depends_on_batches_or_order(rows, trees):
    found = [
        trees["two"].streamed_leaves(
            judged(rows.sample(frac=1, random_state=k), weights="w"), held_out=True, batch_rows=size
        )
        for k, size in enumerate([3, 500])
    ]  # fmt: skip
    pd.testing.assert_frame_equal(found[0], found[1], check_exact=True)


def test_leaves_that_cannot_be_judged_are_refused(rows, trees):
    in_second = trees["one"].apply(rows[["x", "town"]]) == 2
    for change, match in [
        ({"source": rows.iloc[:0]}, "no rows"),
        ({"source": rows.assign(w=0.0), "weights": "w"}, "zero in all rows"),
        ({"source": rows.assign(w=in_second * 1.0), "weights": "w"}, "leaf 1 have sample_weight zero"),
        ({"source": rows.assign(got="c"), "treatment": "got"}, "'got' of treatment holds 'c'"),
        ({"outcome": Rewards(["a"])}, "gives 'b'"),
        ({"direction": "up"}, "direction"),
        ({"cluster": "nobody"}, "no column 'nobody'"),
    ]:
        ask = {"source": rows} | change
        with pytest.raises(InputError, match=match):
            trees["one"].streamed_leaves(judged(ask.pop("source"), **ask))


@pytest.mark.parametrize("groups", [None, "who"])
def test_the_unit_of_weights_does_not_matter(rows, trees, groups):
    """Squares of weights of 1e-190 are no numbers: the standard error was 0."""
    tree = next(iter(trees.values()))
    rows = rows.assign(u=np.linspace(0.0, 2.0, len(rows)), who=np.arange(len(rows)) // 3)
    more = {"batch_rows": 50}
    study = judged(rows, weights="u", cluster=groups)
    expected = tree.streamed_values(study, **more)
    leaves = tree.streamed_leaves(study, held_out=True, **more)
    for unit in (2.0**-640, 2.0**300):
        scaled = judged(rows.assign(u=rows.u * unit), weights="u", cluster=groups)
        pd.testing.assert_frame_equal(tree.streamed_values(scaled, **more), expected)
        pd.testing.assert_frame_equal(tree.streamed_leaves(scaled, held_out=True, **more), leaves)
    assert (expected.standard_error > 0).all()


def test_squares_beyond_floats_are_one_sentence(rows, trees):
    tree = next(iter(trees.values()))
    huge = rows.assign(**{name: rows[name] * 1e160 for name in ("a", "b")})
    for judge in (tree.streamed_values, tree.streamed_leaves):
        with pytest.raises(InputError, match="too large to be added up"):
            judge(judged(huge))
