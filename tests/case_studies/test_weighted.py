"""The study of weighted trees: what its parts compute, apart from running (test_case_studies.py runs it)."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import policytree
from policytree.exceptions import InputError

STUDIES = Path(policytree.__file__).parents[1] / "case_studies"


@pytest.fixture(scope="module")
def part():
    """Import a module of the study as the command does."""
    sys.path.insert(0, str(STUDIES))
    try:
        yield lambda name: importlib.import_module(f"weighted_trees.{name}")
    finally:
        sys.path.remove(str(STUDIES))


def small_problem(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, 3)).astype(float)
    y = ((X[:, 0] > 2) ^ (X[:, 1] > 1) ^ (rng.random(n) < 0.1)).astype(int)
    return X, y, rng.integers(1, 4, n).astype(float)


def test_a_missing_file_is_one_sentence_with_its_source(part, tmp_path):
    with pytest.raises(InputError, match=r"^compas\.csv\.gz is not in .* nor its folder classification; get it from"):
        part("data").table("compas", tmp_path)


def test_tables_are_found_beside_or_in_the_folder(part, tmp_path):
    (tmp_path / "classification").mkdir()
    import pandas as pd

    frame = pd.DataFrame({"a": [1, 2, 3], "target": [0, 1, 1]})
    frame.to_csv(tmp_path / "classification" / "compas.csv.gz", index=False)
    X, y = part("data").table("compas", tmp_path)
    assert X["a"].tolist() == [1.0, 2.0, 3.0] and y.tolist() == [0, 1, 1]


def test_binary_columns_are_the_guessed_cuts(part):
    X = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])
    columns = part("data").binary(X, (np.array([1.5, 2.5]), np.array([])))
    assert columns.tolist() == [[False, False], [True, False], [True, True]]


@pytest.mark.parametrize("method", ["direct", "duplication", "direct, rows repeated"])
def test_every_way_of_taking_whole_weights_has_the_same_errors(part, method):
    X, y, _ = small_problem()
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    fig1 = part("duplication_time")
    found = {name: fig1.ours(name, X, y, weight, copies)["errors"] for name in (method, "direct")}
    assert found[method] == found["direct"]


def test_dl85_agrees_with_ours_on_repeated_rows_and_any_labels(part):
    pytest.importorskip("pydl85")
    from policytree import OptimalTreeClassifier

    X, y, weight = small_problem()
    columns = part("data").binary(X, [np.arange(4) + 0.5] * 3)
    labels = np.where(y == 1, 7, 3)
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    peers = part("peers")
    [answer] = peers.run([peers.Fit("DL8.5", columns, labels, 2, 5, rows=copies, X_test=columns[:4])])
    ours = OptimalTreeClassifier(2, 0.0).fit(X, labels, sample_weight=weight)
    assert answer.proved and answer.held_out.tolist() == answer.predicted[:4].tolist()
    assert weight[answer.predicted != labels].sum() == pytest.approx(weight[ours.predict(X) != labels].sum())


def test_gosdt_is_scored_by_its_tree(part):
    pytest.importorskip("gosdt")
    from policytree import OptimalTreeClassifier

    X, y, _ = small_problem()
    columns = part("data").binary(X, [np.arange(4) + 0.5] * 3)
    peers = part("peers")
    [answer] = peers.run([peers.Fit("gosdt", columns, y, 3, 10, penalty=0.02)])
    ours = OptimalTreeClassifier(3, 0.02).fit(X, y)
    objective = np.mean(answer.predicted != y) + 0.02 * answer.n_leaves
    assert answer.proved and objective == pytest.approx(ours.objective_value_)


def test_a_peer_that_dies_is_reported_and_the_next_fit_is_made(part):
    pytest.importorskip("pydl85")
    X, y, _ = small_problem()
    peers = part("peers")
    broken = peers.Fit("DL8.5", X > 2, y, 2, 5, rows=np.array([len(y)]))  # no such row: its process ends by an error
    good = peers.Fit("DL8.5", X > 2, y, 2, 5)
    first, second = peers.run([broken, good])
    assert first.predicted is None and first.failure
    assert second.proved and second.failure == ""


def test_ratios_of_the_large_table_are_against_direct(part):
    people = part("sizes").people
    X, outcomes, noise = people(500, seed=1)
    assert X.shape == (500, 10) and outcomes.shape == (500, 2) and (outcomes.min(), noise.min()) > (-1.0, 0.0)
    again = people(500, seed=1)
    assert np.array_equal(X, again[0]) and np.array_equal(outcomes, again[1])


def test_printed_trees_predict_as_they_read(part):
    """The tree of GOSDT for COMPAS at depth three: seven leaves, told apart by age and priors."""
    import pandas as pd

    published = part("published")
    trees = published.printed_trees()
    tree = trees[0].tree
    people = pd.DataFrame({"age": [20, 25, 25, 30, 30, 50, 50], "priors_count": [0, 1, 2, 2, 3, 7, 8]})
    assert published.leaves(tree) == 7
    assert published.predict(tree, people).tolist() == [1, 0, 1, 0, 1, 0, 1]
    of_compas, of_fico = [7, 8, 9, 18, 5, 8, 5, 21], [7, 7, 10, 15, 6, 7, 7, 15]  # Figs. 13 to 20, GOSDT's then DL8.5's
    assert [published.leaves(each.tree) for each in trees] == [*of_compas, *of_fico, 3, 13, 4]


def test_rules_are_trees_that_say_the_same(part):
    """The second rule set of Table 8: good by either of two rules."""
    import pandas as pd

    [rules] = [each for each in part("published").printed_trees() if "rules, cp" in each.name]
    columns = ["ExternalRiskEstimate", "NetFractionRevolvingBurden", "AverageMInFile", "NumSatisfactoryTrades",
               "MSinceMostRecentInqexcl7days"]  # fmt: skip
    rng = np.random.default_rng(0)
    X = pd.DataFrame({c: rng.integers(low, high, 3_000) for c, low, high in
                      zip(columns, (55, 30, 10, 0, -9), (90, 90, 60, 15, 3), strict=True)})  # fmt: skip
    risk, burden, months, trades, inquiry = (X[c] for c in columns)
    good = (risk > 74) & (burden <= 47)
    good |= (risk > 65) & (months > 27) & (trades > 5) & (inquiry <= -8) & (burden <= 77)
    assert (part("published").predict(rules.tree, X) == 1 - good).all() and 0.05 < good.mean() < 0.5


def test_published_tables_are_whole(part):
    """Six data sets, four references, four methods; accuracies where a tree came out."""
    tables = part("published").tables()
    assert len(tables) == 96 and set(tables.groupby(["data", "method"]).size()) == {4}
    assert tables.loc[tables["train"].isna(), "seconds"].isin(["mem", "NA"]).all()
    assert (tables.loc[tables["data"] == "Broward", "price"] == 0.005).all()


def test_costs_of_lalonde_reach_from_one_to_a_hundred(part):
    import pandas as pd

    data = part("data")
    X, y = pd.DataFrame({"age": [17, 55, 30, 40]}), np.array([1, 1, 2, 0])
    scaled = {name: data.lalonde_costs(X, y, name) for name in data.LALONDE_SCALINGS}
    # Costs 151, 265, 300, 320; over all labels from 151 to 365.
    np.testing.assert_allclose(scaled["all costs"], 1 + 99 * np.array([0, 114, 149, 169]) / 214)
    np.testing.assert_allclose(scaled["own costs"], 1 + 99 * np.array([0, 114, 149, 169]) / 169)
    np.testing.assert_allclose(scaled["from zero"], 1 + 99 * np.array([151, 265, 300, 320]) / 320)


def test_dl85_keeps_its_least_leaf(part):
    pytest.importorskip("pydl85")
    X, y, _ = small_problem()
    columns = part("data").binary(X, [np.arange(4) + 0.5] * 3)
    peers = part("peers")
    [answer] = peers.run([peers.Fit("DL8.5", columns, y, 3, 10, least_leaf=30)])
    assert answer.proved and answer.n_leaves <= len(y) // 30


# --- the grid ---


def test_a_data_set_with_many_pairs_counts_once_and_spiral_apart(part):
    """Two data sets with one and nine pairs; an interval over pairs would be too short, and Spiral would decide it."""
    rows = [
        {"data": data, "price": price, "fold": 1, "depth": depth, "th seconds": 1.0,
         "th test": 0.5 + (loss if depth == "2" else 0.0)}
        for data, prices, loss in (("Spiral", 4, -0.3), ("a", 1, -0.02), ("b", 9, 0.01))
        for price in range(prices)
        for depth in ("2", "none")
    ]  # fmt: skip
    told = []
    part("grid").show_depths(SimpleNamespace(show=told.append), pd.DataFrame(rows))
    half = 12.7062 * np.std([-0.02, 0.01], ddof=1) / np.sqrt(2)  # t with one degree of freedom
    assert told[-1].startswith(f"depth 2: -0.0050 [{-0.005 - half:.4f}, {-0.005 + half:.4f}] over 2 data sets")
    assert "Spiral -0.3000" in told[-1]


def test_a_published_run_goes_on_with_the_fits_that_it_kept(part, tmp_path, monkeypatch):
    sparsity, data = part("sparsity"), part("data")
    sets = [data.Data(name, *small_problem(30)) for name in ("one", "two")]
    study = SimpleNamespace(results=tmp_path, published=True, quick=False, step=lambda text: None)
    fitted = []

    def timed(model, *args, sample_weight):
        if len(fitted) == 4:
            raise KeyboardInterrupt
        fitted.append((len(args[1]), model))
        model.fit(*args, sample_weight=sample_weight)
        return 0.5

    monkeypatch.setattr(sparsity, "timed", timed)
    monkeypatch.setattr(sparsity, "DEPTHS", (1,))
    monkeypatch.setattr(sparsity, "CART_LEAVES", (2,))
    chosen = sparsity.Settings(folds=2, penalties=(0.02,), dl85_depths=())
    with pytest.raises(KeyboardInterrupt):
        sparsity.all_folds(study, sets[:1], chosen)
    assert len(pd.read_csv(tmp_path / "fig2_fig3_folds.csv")) == 5  # four fits, and the guesses
    fitted[:] = fitted * 2
    found = sparsity.all_folds(study, sets, chosen)
    assert len(fitted) == 2 * 4 + 2 * 2 * 5 - 4
    columns = ["data", "fold", "method", "setting"]
    assert len(found) == len(found[columns].drop_duplicates()) == 2 * 2 * 6
    study.published = False  # runs of minutes are made anew
    sparsity.all_folds(study, sets, chosen)
    assert len(fitted) == 2 * 4 + 2 * 2 * 5 - 4 + 2 * 2 * 5


def test_exact_trees_stand_beside_those_of_cart_that_have_as_many_leaves(part):
    rows = [("CART", "4 leaves", 4, 0.70, 0.60), ("direct", "a", 2, 0.60, 0.50), ("direct", "b", 4, 0.75, 0.55),
            ("direct", "c", 5, 0.90, 0.90)]  # fmt: skip
    fits = pd.DataFrame(rows, columns=["method", "setting", "leaves", "train", "test"]).assign(data="men")
    fits = pd.concat([fits.assign(fold=k) for k in range(2)])
    (line,) = part("beside_cart").compared(fits).to_dict("records")
    assert (line["folds"], line["exact leaves"]) == (2, "4.0")
    assert (line["ahead, train"], line["ahead, test"]) == ("+0.050 (0.000)", "-0.050 (0.000)")
