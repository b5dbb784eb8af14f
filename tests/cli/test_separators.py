"""CSV files as spreadsheets of other countries write them: semicolons, decimal commas, names with commas."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from policytree.cli.tables import batches, column_names, read_table
from policytree.exceptions import InputError

FRAME = pd.DataFrame(
    {"age (years)": [41, 52, 63], "BMI, kg/m²": [27.5, -30.25, None], "note": ["a;b", "c", "1.5.20"], "y": [1, 0, 1]}
)


def written(tmp_path, text: str):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("separator", "decimal"), [(",", "."), (";", "."), (";", ","), ("\t", "."), ("|", ".")])
def test_tables_are_read_whatever_stands_between_cells(tmp_path, separator, decimal):
    buffer = io.StringIO()
    FRAME.to_csv(buffer, index=False, sep=separator, decimal=decimal)
    path = written(tmp_path, buffer.getvalue())
    pd.testing.assert_frame_equal(read_table(path).frame, FRAME, check_dtype=False)
    (batch,) = batches(path, 10, ["BMI, kg/m²"])
    assert batch.typed["BMI, kg/m²"].tolist()[:2] == [27.5, -30.25]


@pytest.mark.parametrize(
    ("text", "names", "first"),
    [
        ('a,"b;c;d"\n1,2\n', ["a", "b;c;d"], [1, 2]),
        ('a,"b;c"\n1,"x;y"\n', ["a", "b;c"], [1, "x;y"]),
        ("a;b, in kg;c\n1;2,5;3\n", ["a", "b, in kg", "c"], [1, 2.5, 3]),
        ("a;b\n1.5;2,5\n", ["a", "b"], [1.5, "2,5"]),  # points and commas: thousands, perhaps
        ("a,b;c\n", None, None),
    ],
)
def test_the_header_and_the_first_row_decide(tmp_path, text, names, first):
    path = written(tmp_path, text)
    if names is None:
        with pytest.raises(InputError, match="no rows"):
            read_table(path)
        return
    frame = read_table(path).frame
    assert list(frame.columns) == names and frame.iloc[0].tolist() == first


def test_names_with_commas_and_beginnings_of_names_are_met_half_way():
    with pytest.raises(InputError, match=r"""no column 'BMI' .* in double quotes.*: --covariates '"BMI, kg/m²",...'"""):
        column_names("BMI, kg/m²", "--covariates", FRAME)
    with pytest.raises(InputError, match=r"no column 'age' .*; did you mean 'age \(years\)'\?"):
        column_names("age", "--covariates", FRAME)
    assert column_names('"BMI, kg/m²",y', "--covariates", FRAME) == ["BMI, kg/m²", "y"]


def test_wide_tables_are_read_as_quickly(tmp_path):
    """A long line is no cell, and decimal commas are looked for in a part of it."""
    names = [f"{'long ' * 30}name {k}" for k in range(1_000)]
    path = written(tmp_path, ",".join(["a|b", *names]) + "\n" + ",".join(["1"] * 1_001) + "\n")
    assert list(read_table(path).frame.columns) == ["a|b", *names]
    path = written(tmp_path, ";".join(["a, b", *names]) + "\n" + ";".join(["1,5"] * 1_001) + "\n")
    assert read_table(path).frame[names[-1]].tolist() == [1.5]
