"""Files from strangers: trees and tables that were damaged or made to harm end in one sentence, exit code 2."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest

from policytree import PolicyTree
from tests.cli.running import design, refused, run

X = pd.DataFrame({"age": np.arange(20.0), "site": np.resize(["x", "y"], 20)})
REWARDS = pd.DataFrame({"no": np.zeros(20), "yes": np.where(np.arange(20) < 7, 1.0, -1.0)})
NUMBER = {"name": "age", "kind": "numeric", "categories": []}


@pytest.fixture
def saved(tmp_path):
    """Write a tree's JSON with some fields replaced; returns the path."""
    tree = PolicyTree(max_depth=1).fit(X, REWARDS).to_dict()

    def write(**fields):
        path = tmp_path / "tree.json"
        path.write_text(json.dumps({**tree, **fields}))
        return path

    return write


def chain(levels: int) -> dict:
    """A tree that asks one question after the other, each with a leaf on its left."""
    inner = np.arange(2 * levels + 1) % 2 == 0
    inner[-1] = False
    node = np.arange(len(inner))
    return {
        "children_left": np.where(inner, node + 1, -1).tolist(),
        "children_right": np.where(inner, node + 2, -1).tolist(),
        "feature": np.where(inner, 0, -2).tolist(),
        "threshold": [float(k) if split else "NaN" for k, split in enumerate(inner.tolist())],
        "missing_go_to_left": [False] * len(inner),
        "action": [0] * len(inner),
        "n_node_samples": [0] * len(inner),
        "value": [[0.0, 0.0]] * len(inner),
    }


def moment(zone: str) -> dict:
    return {"type": "datetime", "value": "2020-01-01T00:00:00+00:00", "timezone": zone}


@pytest.mark.parametrize("command", ["show", "plot"])
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"actions": ["no", moment("Europe")]}, ["malformed"]),
        ({"actions": ["no", moment("../../etc/passwd")]}, ["malformed"]),
        ({"actions": ["no", "\ud800"]}, ["half a letter"]),
        ({"features": [{"name": "\udfff", "kind": "numeric", "categories": []}] * 2}, ["half a letter"]),
        ({"n_node_samples": [10**400] * 3}, ["whole number"]),
        (chain(501), ["more than 500 levels"]),
        (chain(200_000), ["more than 500 levels"]),
        (
            {"threshold": ["Infinity", "NaN", "NaN"], "missing_go_to_left": [True, False, False]},
            ["asks whether feature 'age' is known", "must be false"],
        ),
        (
            {"feature": [1, -2, -2], "threshold": [-1.0, "NaN", "NaN"], "missing_go_to_left": [False] * 3},
            ["asks whether feature 'site' is missing", "must be true"],
        ),
        (
            {"features": [NUMBER, {"name": "site", "kind": "categorical", "categories": ["x", None]}]},
            ["'site'", "a missing value as a category"],
        ),
        (
            {"features": [NUMBER, {"name": "site", "kind": "categorical", "categories": [10**400, "y"]}]},
            ["whole number beyond 1.8e308"],
        ),
        ({"checksum": "0" * 64}, ["changed or damaged after it was saved"]),
        ({"checksum": None}, ["changed or damaged after it was saved"]),
        ({"actions": ["no", "no"]}, ["two treatments of the label 'no'"]),
        ({"features": [NUMBER, NUMBER]}, ["two features of the name 'age'"]),
        (
            {"features": [NUMBER, {"name": "site", "kind": "categorical", "categories": ["x", "y", "x"]}]},
            ["feature 'site' of the saved tree has two categories 'x'"],
        ),
    ],
)
def test_trees(saved, tmp_path, command, fields, words):
    output = ["--output", tmp_path / "tree.png"] if command == "plot" else []
    refused(run(command, saved(**fields), *output), *words)
    assert not (tmp_path / "tree.png").exists()


def test_long_chains_are_shown(saved):
    code, out, _ = run("show", saved(**chain(400)))
    assert code == 0
    assert out.count("yes: no") == 400


def test_trees_that_no_picture_can_hold_are_refused(saved, tmp_path):
    refused(run("plot", saved(**chain(400)), "-o", tmp_path / "tree.png"), "too large for one picture")
    assert not (tmp_path / "tree.png").exists()


def test_nothing_in_a_tree_steers_the_terminal(saved):
    steering = "\x1b[31mred\x07\u202eleft" + "n" * 5_000
    features = [NUMBER | {"name": steering}, NUMBER | {"name": steering + "2"}]
    code, out, _ = run("show", saved(actions=["no", steering], features=features, certificate={steering: steering}))
    assert code == 0
    assert r"\x1b[31mred\x07\u202eleftnn" in out
    assert not set(out) & set("\x1b\x07\u202e")
    assert max(map(len, out.splitlines())) < 300


def test_a_message_does_not_steer_it_either(saved, tmp_path):
    refused(run("predict", saved(), tmp_path / "\x1b[31m.csv"), r"\x1b[31m.csv")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("junk.csv.zip", b"PK\x03\x04" + bytes(range(99)), ["cannot be read"]),
        ("junk.csv.gz", b"\x1f\x8b" + bytes(range(99)), ["cannot be read"]),
        ("junk.csv.xz", b"\xfd7zXZ\x00" + bytes(range(99)), ["cannot be read"]),
        ("one.csv", b"age,site\n1,x\n2,x,surplus\n", ["line 3"]),
        ("all.csv", b"age,site\n1,x,surplus\n2,x,surplus\n", ["more cells in its first row than names"]),
        ("first.csv", b"age,site\n1,x,surplus\n2,x\n", ["more cells in its first row than names"]),
        ("table.xlsx", b"PK\x03\x04" + bytes(range(99)), ["cannot be read as a spreadsheet", "or as CSV"]),
    ],
)
def test_tables(saved, tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    refused(run("predict", saved(), tmp_path / name), name, *words)


def test_names_that_no_file_can_have(saved):
    refused(run("predict", saved(), "n" * 5_000 + ".csv"), "cannot be the name of a file")
    refused(run("predict", saved(), "nul\0.csv"), "cannot be the name of a file")


def test_names_that_no_file_to_write_can_have(saved, csv):
    long = "n" * 5_000
    refused(run("plot", saved(), "-o", long + ".png"), "Cannot write", "File name too long")
    refused(run("predict", saved(), csv, "-o", long + ".csv"), "Cannot write", "File name too long")
    refused(design(csv, long), "Cannot write", "File name too long")


def test_what_a_missing_package_would_unpack_is_refused(saved, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)  # as where it is not installed
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    (tmp_path / "table.csv.zst").write_bytes(b"(\xb5/\xfd" + bytes(99))
    refused(run("predict", saved(), tmp_path / "table.csv.zst"), "table.csv.zst", "zst")


def test_blank_lines_are_rows_where_there_is_one_column(saved, tmp_path):
    (tmp_path / "one.csv").write_text("age\n1\n\n12\n")
    code, out, _ = run("predict", saved(), tmp_path / "one.csv")
    assert (code, out.splitlines()) == (0, ["age,policy", "1,yes", ",no", "12,no"])


@pytest.mark.parametrize("command", ["show", "plot", "predict", "evaluate", "report"])
def test_fields_that_stand_twice(saved, tmp_path, command):
    path, data = saved(), tmp_path / "data.csv"
    X.to_csv(data, index=False)
    path.write_text(path.read_text().replace('{"format"', '{"actions": ["yes", "no"], "format"', 1))
    more = {"predict": [data], "evaluate": [data], "plot": ["--output", tmp_path / "tree.png"]}.get(command, [])
    refused(run(command, path, *more), "not valid JSON", "the field 'actions' stands twice")
