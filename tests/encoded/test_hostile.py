"""Encoded rows that somebody changed, checksums and all: one sentence, or a right answer about what stands there."""

from __future__ import annotations

import json
import os
import shutil
import zlib

import numpy as np
import pandas as pd
import pytest

from policytree import OptimalTreeClassifier, PolicyTree, RewardEstimator, Study
from policytree.encoded import encode, encoding, open_encoded, solve, store, stream_rewards
from policytree.exceptions import InputError
from policytree.serialization.checksums import text_with_checksum
from tests.support import mutations
from tests.support.streamed import to_learn

pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def frame():
    rng = np.random.default_rng(1)
    out = pd.DataFrame(
        {"a": rng.integers(0, 9, 120), "b": rng.normal(size=120).round(1), "town": rng.choice([*"uvw"], 120)}
    )
    out.loc[::7, "b"] = np.nan
    return out.assign(
        none=rng.normal(size=120), drug=rng.normal(size=120) + (out.a > 4), w=rng.integers(1, 4, 120) * 1.0
    )


def folder_of(frame, path, *, labels=False):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "FILE_ROWS", 50)
        if labels:
            frame = frame.assign(y=np.where(frame.a > 4, "yes", "no"))
            encode(to_learn(frame, ["a", "b", "town"], y="y"), directory=path)
        else:
            encode(to_learn(frame, ["a", "b", "town"], rewards=["none", "drug"], weights="w"), directory=path)
    return path


def manifest_of(folder):
    data = json.loads((folder / store.MANIFEST).read_text())
    del data["checksum"]
    return data


def put(folder, manifest):
    (folder / store.MANIFEST).write_text(text_with_checksum(manifest))


def put_block(folder, content, k=0):
    """Write other bytes to a file of rows, with the checksum that they have."""
    manifest = manifest_of(folder)
    (folder / manifest["stored"][k]["file"]).write_bytes(content)
    manifest["stored"][k]["crc"] = zlib.crc32(content)
    put(folder, manifest)


def fitted(folder, few, *, labels=False):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solve, "FEW_ROWS", few)
        tree = (OptimalTreeClassifier if labels else PolicyTree)(max_depth=2)
        return tree.fit(open_encoded(folder))


# --- names of files ---


@pytest.mark.parametrize(
    "name",
    [
        "../outside/rows-000000.bin",
        "{tmp}/outside/rows-000000.bin",
        "/dev/zero",
        "rows-000000.bin\n",
        "",
        "state.json",
        3,
    ],
)
def test_files_of_a_manifest_stay_in_their_folder(frame, tmp_path, name):
    folder = folder_of(frame, tmp_path / "e")
    shutil.copytree(folder, tmp_path / "outside")
    manifest = manifest_of(folder)
    manifest["stored"][0]["file"] = name.format(tmp=tmp_path) if isinstance(name, str) else name
    put(folder, manifest)
    with pytest.raises(
        InputError, match=r"field 'file' of entry 0 of field 'stored' .*must be the name of a file of rows; it is"
    ):
        open_encoded(folder)


def test_links_out_of_the_folder_are_refused(frame, tmp_path):
    folder = folder_of(frame, tmp_path / "e")
    os.mkdir(tmp_path / "outside")
    shutil.move(folder / "rows-000000.bin", tmp_path / "outside" / "rows-000000.bin")
    os.symlink(tmp_path / "outside" / "rows-000000.bin", folder / "rows-000000.bin")
    with pytest.raises(InputError, match="is a link to another place"):
        PolicyTree(max_depth=1).fit(open_encoded(folder))
    os.symlink(folder_of(frame, tmp_path / "whole"), tmp_path / "link")  # a link to the folder is the folder
    assert len(PolicyTree(max_depth=1).fit(open_encoded(tmp_path / "link")).tree_.features) == 3


@pytest.mark.parametrize("name", ["../learning-000000.parquet", "/dev/zero", "models.joblib"])
def test_files_of_rewards_stay_in_their_folder(frame, tmp_path, name):
    """The note of a scoring job names files whose checksums are taken: /dev/zero has no end."""
    frame.assign(arm=np.where(frame.a % 2, "p", "q")).to_parquet(tmp_path / "rows.parquet")

    def score():
        learner = RewardEstimator(method="ipw", cv=2, random_state=0)
        roles = {"outcome": "none", "treatment": "arm", "propensity": 0.5, "covariates": ["a"]}
        return stream_rewards(learner, Study(tmp_path / "rows.parquet", **roles), directory=tmp_path / "s")

    score()
    manifest = manifest_of(tmp_path / "s")
    files = manifest["notes"][0]["files"]
    files[name] = files.pop(next(iter(files)))
    put(tmp_path / "s", manifest)
    with pytest.raises(InputError, match=r"must be the name of a file of rewards; it is .*overwrite=True"):
        score()


# --- codes, numbers and sizes ---


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("labels", [False, True])
def test_codes_beyond_the_bins_never_reach_kernels(frame, tmp_path, few, labels):
    folder = folder_of(frame, tmp_path / "e", labels=labels)
    content = bytearray((folder / "rows-000000.bin").read_bytes())
    data = open_encoded(folder)
    for j, most in enumerate(data.most_codes.tolist()):
        changed = content.copy()
        changed[50 * j + 7] = most  # the first code that no value has
        put_block(folder, bytes(changed))
        column = data.features[data.coded[j].feature].name if j < len(data.coded) else "classes"
        with pytest.raises(InputError, match=rf"rows-000000.bin' is damaged: it holds codes of .*{column}"):
            fitted(folder, few, labels=labels)


def test_codes_are_tested_whenever_they_are_read(frame, tmp_path):
    """Also where the checksum was tested before: the disk may fail, or somebody write, between two readings."""
    folder = folder_of(frame, tmp_path / "e")
    data = open_encoded(folder)
    data.rows(0)
    content = bytearray((folder / "rows-000000.bin").read_bytes())
    content[3] = 255
    (folder / "rows-000000.bin").write_bytes(content)
    with pytest.raises(InputError, match="codes of column 'a'"):
        data.rows(0)


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e300, -1e9])
@pytest.mark.parametrize("place", [0, 60, 110])  # a reward of either arm, a weight
def test_numbers_that_the_manifest_does_not_add_up_are_refused(frame, tmp_path, few, number, place):
    folder = folder_of(frame, tmp_path / "e")
    content = (folder / "rows-000000.bin").read_bytes()
    numbers = np.frombuffer(content[-8 * 150 :]).copy()
    numbers[place] = number
    put_block(folder, content[: -8 * 150] + numbers.tobytes())
    with pytest.raises(InputError, match="numbers are not those that the manifest adds up"):
        fitted(folder, few)


def test_huge_sizes_are_refused_before_memory_is_asked_for(frame, tmp_path):
    folder = folder_of(frame, tmp_path / "e")
    manifest = manifest_of(folder)
    manifest["stored"][0]["rows"] += 10**15
    manifest["plan"]["n_rows"] += 10**15
    put(folder, manifest)
    for depth in (1, None):
        with pytest.raises(InputError, match=r"has another length than was written|rows in memory, about"):
            PolicyTree(max_depth=depth).fit(open_encoded(folder))
    with pytest.raises(InputError, match="has another length than was written"):
        open_encoded(folder).in_memory()


# --- any change ---


def manifests(n: int, seed: int, frame, tmp_path) -> int:
    """Fit to mutants of manifests, in memory and streamed; how many were refused."""
    refused = 0
    for labels in (False, True):
        folder = folder_of(frame, tmp_path / f"m{labels}", labels=labels)
        whole, rng = manifest_of(folder), np.random.default_rng(seed + labels)
        for _ in range(n // 2):
            (folder / store.MANIFEST).write_text(mutations.mutant(whole, rng))
            found = [mutations.outcome(lambda few=few: fitted(folder, few, labels=labels)) for few in (0, 1000)]  # noqa: B023
            agree(*found)
            refused += found[0] is None
    return refused


def blocks(n: int, seed: int, frame, tmp_path) -> int:
    """Fit to rows of which bytes were changed, in memory and streamed; how many were refused."""
    refused = 0
    for labels in (False, True):
        folder = folder_of(frame, tmp_path / f"b{labels}", labels=labels)
        contents = [(folder / f"rows-{k:06d}.bin").read_bytes() for k in range(3)]
        whole, rng = manifest_of(folder), np.random.default_rng(seed + labels)
        for _ in range(n // 2):
            put(folder, whole)
            k = int(rng.integers(3))
            content = bytearray(contents[k])
            for place in rng.integers(len(content), size=int(rng.choice([1, 1, 2, 20]))):
                content[place] = int(rng.choice([0, 1, 127, 128, 255, content[place] ^ 1]))
            if rng.random() < 0.1:
                content = content[: int(rng.integers(len(content)))]
            put_block(folder, bytes(content), k)
            found = [mutations.outcome(lambda few=few: fitted(folder, few, labels=labels)) for few in (0, 1000)]  # noqa: B023
            agree(*found)
            refused += found[0] is None
            (folder / f"rows-{k:06d}.bin").write_bytes(contents[k])
    return refused


def agree(streamed, memory) -> None:
    """Two searches of the same rows, which share no kernel, give the same answer or refuse both."""
    assert (streamed is None) == (memory is None)
    if streamed is not None:
        assert np.isfinite(streamed.objective_value_) and streamed.status_ is memory.status_
        assert np.isclose(streamed.objective_value_, memory.objective_value_, rtol=1e-9, atol=1e-12)


def test_mutants_of_manifests_end_in_a_sentence_or_agree(frame, tmp_path):
    assert manifests(120, 0, frame, tmp_path) > 80


def test_mutants_of_rows_end_in_a_sentence_or_agree(frame, tmp_path):
    assert blocks(60, 0, frame, tmp_path) > 5
