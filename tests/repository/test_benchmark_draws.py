"""Simulations of the benchmarks keep every draw and go on where they ended."""

import numpy as np
import pandas as pd
import pytest

from tests.support.simulations import benchmark_script


@pytest.fixture
def asked_for(tmp_path):
    """Run with these options; gives what was simulated, and what is known then."""
    with benchmark_script("reporting") as reporting:
        done = []

        def run(cell, draw):
            done.append((cell, draw))
            return {"estimate": cell + draw}

        simulation = reporting.Simulation({"late": 100, "early": 200}, run, ["cell", "draw", "estimate", "lacking"])
        parser = simulation.parser("Sums.", tmp_path / "sums.csv", runs=2)

        def ask(*options):
            done.clear()
            return simulation.asked_for(parser.parse_args(options)), list(done)

        yield ask


def test_what_was_drawn_is_not_drawn_again(asked_for, tmp_path):
    found, drawn = asked_for("--cell", "early")
    assert drawn == [(200, 0), (200, 1)]
    assert found["estimate"].tolist() == [200, 201] and found["lacking"].isna().all()
    found, drawn = asked_for("--runs", "3")
    assert drawn == [(100, 0), (100, 1), (100, 2), (200, 2)]
    assert found["cell"].tolist() == ["late"] * 3 + ["early"] * 3  # in the order of the cells
    assert asked_for("--cell", "late", "--first", "2")[1] == [(100, 3)]
    assert asked_for("--table")[1] == []
    assert pd.read_csv(tmp_path / "sums.csv").shape == (7, 4)


def test_cells_are_listed(asked_for, capsys):
    assert asked_for("--list") == (None, [])
    assert capsys.readouterr().out == "late\nearly\n"


def test_tables_are_written_below_their_texts(tmp_path, capsys):
    with benchmark_script("reporting") as reporting:
        reporting.write_tables(tmp_path / "sums.csv", "Sums", [("Of few.\n\n", pd.DataFrame({"runs": [2]}))])
        assert reporting.with_error(pd.Series([1.0, 3.0]), 1) == "2.0 (1.0)"
    written = (tmp_path / "sums.md").read_text(encoding="utf-8")
    assert written.startswith("# Sums\n") and written.endswith("Of few.\n\n| runs |\n|---|\n| 2 |\n")
    assert "runs" in capsys.readouterr().out


@pytest.mark.parametrize("binary", [True, False])
def test_the_published_design_has_the_effects_that_it_states(binary):
    """The second of three arms adds X2, the third X2 + X3: slopes of rewards, by least squares."""
    with benchmark_script("published_policy_trees") as script:
        X, rewards = script.study(binary, 900, 4, 3, np.random.default_rng(0))
        assert X.shape == (900, 4) and rewards.shape == (900, 3)
        assert set(np.unique(X)) == {0.0, 1.0} if binary else len(np.unique(X)) == X.size
        design = np.column_stack([np.ones(900), X])
        gains = rewards[:, 1:] - rewards[:, :1]
        slopes = np.linalg.lstsq(design, gains, rcond=None)[0][1:]
        errors = gains.std(axis=0) / np.sqrt(900) / X.std()
        assert (np.abs(slopes - np.array([[0, 0], [1, 1], [0, 1], [0, 0]])) < 4 * errors).all()


def test_the_published_figures_are_those_of_the_paper():
    with benchmark_script("published_policy_trees") as script:
        (hardest,) = (cell for cell in script.CELLS if cell.name == "continuous 2,000 x 10, 3 arms, depth 3")
        assert script.seconds_text(hardest.fastpolicytree_seconds) == "37.9 min"
        assert script.seconds_text(hardest.policytree_seconds) == "12.4 h"
        assert script.seconds_text(0.21) == "0.21 s"
