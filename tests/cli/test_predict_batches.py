"""``policytree predict`` reads, predicts and writes in batches: the same as at once."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from policytree import PolicyTree
from policytree.cli import predicting
from tests.cli.running import ROOT, refused, run

ROWS = 97


@pytest.fixture
def saved(tmp_path):
    """A tree that asks about a number, a text and a switch, and rows with gaps and new texts."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 80, 400).astype(float),
            "town": rng.choice(["Oslo", "Bergen", "12", "None"], 400),
            "smokes": rng.choice([True, False], 400),
        }
    )
    gain = np.where(X["age"] < 50, 1.0, -1.0) * np.where(X["town"] == "Oslo", 1, -1) * np.where(X["smokes"], 1, -1)
    tree = PolicyTree(max_depth=3).fit(X, pd.DataFrame({"no": 0.0 * gain, "yes": gain}))
    assert tree.get_used_features() == ["age", "town", "smokes"]
    (tmp_path / "tree.json").write_text(tree.to_json())
    new = X.sample(ROWS, random_state=1).reset_index(drop=True).astype({"town": object, "smokes": object})
    new.loc[::7, "age"] = np.nan
    new.loc[::11, "town"] = "Tromsø"
    new.loc[5::13, "town"] = np.nan
    return tree, new, tmp_path


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("rows", [1, 10, ROWS, 1_000])
def test_batches_of_any_size_give_what_the_library_predicts(saved, monkeypatch, rows, ending):
    tree, new, folder = saved
    path = folder / f"new.{ending}"
    if ending == "parquet":
        new.assign(smokes=new["smokes"].astype(bool)).to_parquet(path)
    else:
        new.to_csv(path, index=False)
    monkeypatch.setattr(predicting, "BATCH_ROWS", rows)
    code, _, err = run("predict", folder / "tree.json", path, "-o", folder / "out.csv")
    assert code == 0, err
    out = pd.read_csv(folder / "out.csv", keep_default_na=False)
    with pytest.warns(UserWarning):
        expected = tree.predict(new.assign(smokes=new["smokes"].astype(bool)))
    assert out["policy"].tolist() == expected.tolist()
    assert list(out.columns) == ["age", "town", "smokes", "policy"]
    new_town = int((new["town"] == "Tromsø").sum())
    assert f"Column 'town': {new_town} rows have a value that no row had at fit ('Tromsø')" in err
    assert err.count("Column 'town': ") == 2 and err.count("Column 'age': ") == 1  # a sentence a kind, not a batch


def test_cells_stand_as_they_stood(saved):
    _, _, folder = saved
    (folder / "new.csv").write_text('id,age,town,smokes,note\n007,30,Oslo,True," a, ""b"""\n008,NA,Bergen,False,1.10\n')
    code, out, _ = run("predict", folder / "tree.json", folder / "new.csv")
    assert code == 0
    lines = out.splitlines()
    assert lines[1].startswith('007,30,Oslo,True," a, ""b""",') and lines[2].startswith("008,NA,Bergen,False,1.10,")


def test_what_is_wrong_further_down_leaves_nothing(saved, monkeypatch):
    _, new, folder = saved
    monkeypatch.setattr(predicting, "BATCH_ROWS", 10)
    lines = new.to_csv(index=False).splitlines()
    lines[60] = "old,Oslo,True"
    (folder / "new.csv").write_text("\n".join(lines) + "\n")
    refused(run("predict", folder / "tree.json", folder / "new.csv", "-o", folder / "out.csv"), "'age'", "numbers")
    lines[60] = "30,Oslo,True,surplus"
    (folder / "new.csv").write_text("\n".join(lines) + "\n")
    refused(run("predict", folder / "tree.json", folder / "new.csv", "-o", folder / "out.csv"), "line 61")
    refused(run("predict", folder / "tree.json", folder / "new.csv", "-o", folder / "out.parquet"), "ends in .csv")
    assert {path.name for path in folder.iterdir()} == {"tree.json", "new.csv"}


def test_numbers_where_texts_are_known_are_refused(tmp_path):
    X = pd.DataFrame({"town": ["Oslo", "Bergen"] * 10})
    tree = PolicyTree(max_depth=1).fit(X, pd.DataFrame({"a": [0.0, 1.0] * 10, "b": [1.0, 0.0] * 10}))
    (tmp_path / "tree.json").write_text(tree.to_json())
    (tmp_path / "new.csv").write_text("town\n1\n2\n")
    refused(run("predict", tmp_path / "tree.json", tmp_path / "new.csv"), "'town' held text at fit")


def test_completion():
    """The script of a shell, and what it is answered."""

    def answered(instruction: str, **more: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "_POLICYTREE_COMPLETE": instruction, **more}
        done = subprocess.run(
            [sys.executable, "-m", "policytree"], capture_output=True, text=True, timeout=60, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "complete -o default -F _policytree_completion policytree" in answered("source_bash")
    assert answered("source_zsh").lstrip().startswith("#compdef policytree")
    assert answered("complete_bash", COMP_WORDS="policytree eval", COMP_CWORD="1").split() == ["evaluate"]
