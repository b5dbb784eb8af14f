"""Files as people have them: read, or refused with the option that reads them; `check`, `design` and Python agree."""

from __future__ import annotations

import re
import shlex
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from policytree import DRPolicyTree, Study, cross_val_policy_value
from policytree.cli.reading import Reading
from policytree.cli.tables import read_table
from policytree.exceptions import InputError
from tests.cli.running import refused, run

N = 240
NAMES = {"age", "bmi", "sex", "city"}


def people(**changed) -> pd.DataFrame:
    """A trial; a column that is given takes the place of its own, or comes before the others."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, N),
            "bmi": rng.normal(26, 4, N).round(1),
            "sex": rng.choice(["f", "m"], N),
            "city": rng.choice(["Zürich", "Genève", "Köln"], N),
            "arm": rng.choice(["usual", "drug"], N),
        }
    )
    table["y"] = (rng.normal(size=N) + (table["arm"] == "drug") * np.where(table["age"] > 50, 1.0, -0.6)).round(3)
    new = [name for name in changed if name not in table]
    return table.assign(**changed)[[*new, *table.columns]]


def csv(table: Callable[[], pd.DataFrame], **how) -> Callable[[Path], None]:
    return lambda path: table().to_csv(path, **{"index": False, **how})


def some(value, rows=10, of="y") -> Callable[[], pd.DataFrame]:
    """The trial with a value in the first rows of a column."""
    column = people()[of].astype(object)
    return lambda: people(**{of: [value] * rows + column.tolist()[rows:]})


def comma(number: float) -> str:
    return str(number).replace(".", ",")


def european(number: float) -> str:
    """A number as 1.234,50."""
    return f"{number * 1000:,.2f}".translate(str.maketrans(",.", ".,"))


def notes_first(path: Path) -> None:
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"see the other sheet": []}).to_excel(book, sheet_name="notes", index=False)
        people().to_excel(book, sheet_name="the data", index=False)


def sas(path: Path) -> None:
    pyreadstat.write_xport(people(), str(path))


def spss(path: Path) -> None:
    codes = people(arm=np.where(people()["arm"] == "drug", 1.0, 0.0))
    pyreadstat.write_sav(codes, str(path), variable_value_labels={"arm": {0: "usual", 1: "drug"}})


def stata(path: Path) -> None:
    people(city=people()["city"].astype("category"), arm=people()["arm"].astype("category")).to_stata(
        path, write_index=False
    )


def two_sheets(path: Path) -> None:
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"about": ["trial of 2024"]}).to_excel(book, sheet_name="read me", index=False)
        people().to_excel(book, sheet_name="the data", index=False)


def units(path: Path) -> None:
    header, rows = people().to_csv(index=False).split("\n", 1)
    path.write_text(f"{header}\nyears,,,,,\n{rows}")


def two_tables(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("a.csv", "b.csv"):
            archive.writestr(name, people().to_csv(index=False))


def _some_blank(cells: pd.Series) -> list[str]:
    return [" " if k % 5 == 0 else cell for k, cell in enumerate(cells)]


def _with_suffix(labels: pd.Series, suffix: str) -> np.ndarray:
    return np.where(np.arange(N) % 3 == 0, labels + suffix, labels)


@dataclass(frozen=True)
class Case:
    """A file.

    ``says``: what `check` says, of a file that it takes; ``refused``: of one that it does not. ``remedy``: the options
    by which that is mended, which must stand in the sentence as they are typed. ``rows``: so many are at fault, which
    Python says as well, where it sees the same.
    """

    name: str
    write: Callable[[Path], object]
    says: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    remedy: tuple[str, ...] = ()
    rows: int | None = None
    in_python: bool = True


OF_LONG_IDS = (  # before pandas 3, whole numbers beyond 64 bits are read as texts
    "has 240 different texts" if int(pd.__version__.partition(".")[0]) < 3 else "holds whole numbers beyond 2**53"
)
CASES = [
    Case("plain.csv", csv(people)),
    Case("semicolons.csv", csv(people, sep=";", decimal=",")),
    Case("semicolons and points.csv", csv(people, sep=";")),
    Case("tabs.tsv", csv(people, sep="\t")),
    Case("mark.csv", csv(people, encoding="utf-8-sig")),
    Case("utf-16.csv", csv(people, encoding="utf-16")),
    Case("packed.csv.gz", csv(people)),
    Case("packed.csv.zip", csv(people)),
    Case(
        "latin-1.csv", csv(people, encoding="latin-1"), refused=("is not in UTF-8: line 2", "'Genève' is right there"),
        remedy=("--encoding", "latin-1"), in_python=False,
    ),
    Case(
        "without a mark.csv", csv(people, encoding="utf-16-le"), refused=("bytes of zero",),
        remedy=("--encoding", "utf-16-le"), in_python=False,
    ),
    Case("indexcol.csv", csv(people, index=True), says=("has no name and numbers the rows; it was left out",)),
    Case(
        "thousands.csv", csv(lambda: people(y=[f"{v * 1000:,.0f}" for v in people()["y"]])),
        refused=("holds texts, not numbers", "(a comma between thousands)"), remedy=("--thousands", ","),
    ),
    Case(
        "percent.csv", csv(lambda: people(y=[f"{v * 10:.1f} %" for v in people()["y"]])),
        says=("Column 'y' holds percentages, which were read as numbers",), in_python=False,
    ),
    Case(
        "quoted comma.csv", csv(lambda: people(y=people()["y"].map(comma), bmi=people()["bmi"].map(comma))),
        refused=("holds texts, not numbers, in 240 of 240 rows", "(a decimal comma)"), remedy=("--decimal", ","),
        rows=240,
    ),
    Case(
        "a word.csv", csv(some("missing")),
        refused=("holds texts, not numbers, in 10 of 240 rows, the first 'missing' in row 1 below the header",),
        remedy=("--na-values", "missing"), rows=10,
    ),
    Case("no outcome.csv", csv(some("NA")), refused=("no value in 10 of 240 rows",),
         remedy=("--missing-outcome", "weight"), rows=10),
    Case("infinite.csv", csv(some(np.inf)), refused=("is infinite in 10 of 240 rows", "row 1 below the header"),
         remedy=("--na-values", "inf"), rows=10),
    Case("no arm.csv", csv(some(None, of="arm")), refused=("no value in 10 of 240 rows", "leave these rows out"),
         rows=10),
    Case("words.csv", csv(lambda: people(y=np.where(people()["y"] > 0, "yes", "no"))),
         refused=("holds texts, not numbers (no, yes); say which one counts",), remedy=("--event", "yes")),
    Case("sentinel.csv", csv(some(-999, 30, "bmi")),
         says=("bmi is -999 in 30 of 240 rows", "read it as one: --na-values bmi=-999")),
    Case("three rows.csv", csv(some("rare", 3, "arm")),
         refused=("Treatment rare of column 'arm' has 3 rows, but --cv 5 needs 7",), rows=3, in_python=False),
    Case("one arm.csv", csv(lambda: people(arm=np.where(people()["arm"] == "drug", "1.0", "1"))),
         refused=("Column 'arm' (--treatment) holds only one treatment",)),
    Case(
        "ids.csv", csv(lambda: people(constant=1, empty=np.nan, pid=9007199254740993 + np.arange(N))),
        says=("Column 'pid' holds whole numbers beyond 2**53", "constant is 1 in all rows", "empty has no values"),
    ),
    Case(
        "blanks.csv", csv(lambda: people(arm=_with_suffix(people()["arm"], " "))),
        says=("labels that only case or blanks tell apart: 'drug' and 'drug '", "--propensity 'drug="),
    ),
    Case(
        "commas.csv", csv(lambda: people(arm=_with_suffix(people()["arm"], ", twice"))),
        says=("""--propensity 'drug=0.""",),
    ),
    Case("dates.csv", csv(lambda: people(seen=pd.date_range("2024-01-01", periods=N).strftime("%d.%m.%Y"))),
         says=("Column 'seen' has 240 different texts", "It holds dates (such as 01.01.2024)")),
    Case("twice.csv", csv(lambda: people().set_axis(["age", "age", "sex", "city", "arm", "y"], axis=1)),
         refused=("more than one column 'age'",), in_python=False),
    Case("nothing.csv", lambda path: path.write_text(""), refused=("is empty; give a CSV file",), in_python=False),
    Case("header.csv", csv(lambda: people().head(0)), refused=("has a header but no rows",), in_python=False),
    Case("ragged.csv", lambda path: path.write_text(people().to_csv(index=False) + "1,2,f,K,drug,1,99,99\n"),
         refused=("Expected 6 fields in line 242, saw 8",), in_python=False),
    Case("base.parquet", lambda path: people().to_parquet(path)),
    Case("base.feather", lambda path: people().to_feather(path)),
    Case("base.json", lambda path: people().to_json(path, orient="records")),
    Case("base.xlsx", lambda path: people().to_excel(path, index=False)),
    Case("sheets.xlsx", two_sheets, refused=("There is no column 'arm' (--treatment)",),
         remedy=("--sheet", "the data"), in_python=False),
    Case("base.dta", lambda path: people().to_stata(path, write_index=False)),
    Case("labels.dta", stata),
    Case("labels.sav", spss),
    Case("base.xpt", sas),
    Case("torn.sas7bdat", lambda path: path.write_bytes(bytes(100)), refused=("cannot be read as a SAS file",),
         in_python=False),
    Case("torn.sav", lambda path: path.write_bytes(b"$FL2" + bytes(100)), refused=("cannot be read as an SPSS file",),
         in_python=False),
    Case("base.pkl", lambda path: people().to_pickle(path), refused=("is a pickle, which runs whatever program",),
         in_python=False),
    Case("blank cells.csv", csv(lambda: people(city=_some_blank(people()["city"]))), says=("covariates age, bmi",)),
    Case("a separator line.csv", lambda path: path.write_text("sep=;\n" + people().to_csv(index=False, sep=";"))),
    Case("a title.csv", lambda path: path.write_text("My trial\n\n" + people().to_csv(index=False)),
         refused=("delete the lines above the header",), in_python=False),
    Case("a torn quote.csv", lambda path: path.write_text(people().to_csv(index=False).replace("drug", '"drug', 1)),
         refused=("a quotation mark is opened there and not closed",), in_python=False),
    Case("printed.txt", lambda path: path.write_text(people().to_string(index=False)),
         refused=("has blanks between its cells; save it with commas or tabs",), in_python=False),
    Case("units.csv", units,
         refused=("It may be a line of units, or a second header ('years'): delete it",), in_python=False),
    Case("two tables.zip", two_tables, refused=("leave one table in the archive",), in_python=False),
    Case("a book.csv", lambda path: path.write_bytes(b"PK\x03\x04" + bytes(99)),
         refused=("or a zip archive: do that, or save its table as 'CSV UTF-8'",), in_python=False),
    Case("nested.json", lambda path: people(seen=[[1, 2]] * N).to_json(path, orient="records"),
         refused=("Column 'seen' holds lists or tables", "leave it out by --exclude")),
    Case("no list.json", lambda path: path.write_text('{"a": 1}'), refused=("is JSON, but no list of rows",),
         in_python=False),
    Case("detection.csv", csv(some("<0.5", 20)), refused=("the first '<0.5' in row 1 below the header (text)",),
         in_python=False),
    Case("one outcome.csv", csv(lambda: people(y=3)),
         refused=("Column 'y' (--outcome) is 3 in all rows, so that no treatment is better by it",), in_python=False),
    Case("no covariates.csv", csv(lambda: people(**dict.fromkeys(NAMES, np.nan))),
         refused=("No covariate has a value in any row (age, bmi, sex, ...)",)),
    Case("huge.csv", csv(lambda: people(y=people()["y"] * 1e200)),
         refused=("--outcome holds values beyond 1e+151, too large to compute with; rescale it",)),
    Case("constants.csv", csv(lambda: people(age=1, bmi=2.5, sex="f", city="K")), says=("city is K in all rows",)),
    Case("tiny.csv", csv(lambda: people(y=people()["y"] * 1e-310)), says=("rows 240",)),
    Case("true and false.csv", csv(lambda: people(arm=people()["arm"] == "drug")), says=("covariates age, bmi",)),
    Case("carets.csv", csv(people, sep="^"), refused=("has the sign '^' between its cells; save it with commas",),
         in_python=False),
    Case("single quotes.csv", csv(people, quoting=1, quotechar="'"),
         refused=("has its cells in single quotation marks; save it with double ones",), in_python=False),
    Case(
        "points and commas.csv",
        csv(lambda: people(y=people()["y"].map(european), bmi=people()["bmi"].map(comma))),
        refused=("in 240 of 240 rows", "(a point between thousands and a decimal comma)"),
        remedy=("--thousands", ".", "--decimal", ","), rows=240,
    ),
    Case("header again.csv", lambda path: path.write_text(people().to_csv(index=False) * 2),
         refused=("the first 'y' in row 241 below the header (a line of units, or a second header); delete that line",),
         in_python=False),
    Case("no outcomes.csv", csv(lambda: people(y=np.nan)), refused=("has no value in any row; name another column",),
         in_python=False),
    Case("notes first.xlsx", notes_first,
         refused=("Sheet 'notes' of", "has a header but no rows", "its other sheets are 'the data' (--sheet)"),
         in_python=False),
    Case("utf-32.csv", csv(people, encoding="utf-32")),
    Case("two marks.csv", lambda path: path.write_text("\ufeff" + people().to_csv(index=False), "utf-8-sig")),
    Case(
        "a word of a covariate.csv", csv(some(".", 20, "bmi")),
        says=("because of values such as '.'", "If it stands for a missing value, say --na-values 'bmi=.'"),
        in_python=False,
    ),
    Case("invisible.csv", csv(lambda: people(arm=_with_suffix(people()["arm"], "\u200b"))),
         says=("labels that only case or blanks tell apart: 'drug' and 'drug\\u200b'",)),
    Case("decimals.parquet", lambda path: people(bmi=people()["bmi"].map(lambda v: Decimal(str(v)))).to_parquet(path)),
    Case("an index.parquet", lambda path: people().set_index("age").to_parquet(path)),
    Case("durations.parquet", lambda path: people(seen=pd.to_timedelta(np.arange(N), "D")).to_parquet(path),
         says=("Column 'seen' holds durations and was left out of the covariates. Turn it into a number",)),
    Case("large.csv", csv(lambda: people(bmi=people()["bmi"] * 1e300)),
         refused=("Column 'bmi' holds values beyond 1e+100, too large to compute with",), in_python=False),
    Case("long ids.csv", csv(lambda: people(pid=[10**25 + k for k in range(N)])),
         says=(f"Column 'pid' {OF_LONG_IDS}",)),
    Case("one under all.csv", csv(some(-1, 30, "bmi")), says=("read it as one: --na-values bmi=-1",)),
    Case("far off.csv", csv(some(1e30, 30, "bmi")), says=("read it as one: --na-values bmi=1e+30",)),
    Case("beside the point.csv", csv(some(999.9, 30, "bmi")), says=("read it as one: --na-values bmi=999.9",)),
]  # fmt: skip
BY_NAME = {case.name: case for case in CASES}
TAKEN = [case.name for case in CASES if not case.refused]
REFUSED = [case.name for case in CASES if case.refused]
ROLES = ("--treatment", "arm", "--outcome", "y", "--direction", "maximize")
QUICK = ("--no-value", "--max-depth", "1", "--cv", "2", "--stability", "0")


@pytest.fixture
def written(tmp_path) -> Callable[[str], tuple[Case, Path]]:
    def write(name: str) -> tuple[Case, Path]:
        case = BY_NAME[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of those who write: openpyxl's clock, Stata's names
            case.write(tmp_path / name)
        return case, tmp_path / name

    return write


def str_of(cell: object) -> str:
    """A cell as text, whatever kind of number or text it is."""
    return f"{float(cell):g}" if isinstance(cell, (int, float, Decimal)) else str(cell)


def check(path: Path, *more: str) -> tuple[int, str, str]:
    code, out, err = run("check", path, *ROLES, *more)
    return code, " ".join(out.split()), err


@pytest.mark.parametrize("name", TAKEN)
def test_files_that_are_read(written, tmp_path, name):
    case, path = written(name)
    code, said, err = check(path)
    assert code == 0, err
    for words in case.says:
        assert words in said
    frame = read_table(path).frame
    if not case.says or name == "indexcol.csv":  # cell by cell the trial
        assert frame.columns.tolist() == people().columns.tolist()
        assert frame.astype(object).map(str_of).equals(people().map(str_of))
        return
    code, _, err = run("design", path, *ROLES, *QUICK, "-o", tmp_path / "out")
    assert code == 0, err


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_refused(written, tmp_path, name):
    """`design` says word for word what `check` says; the option in the sentence mends it."""
    case, path = written(name)
    checked = check(path)
    refused(checked, *case.refused, *case.remedy[:1])
    assert run("design", path, *ROLES, "-o", tmp_path / "out")[2] == checked[2]
    if not case.remedy:
        return
    if "--sheet" not in case.remedy:  # which no sentence about columns names
        assert re.search(rf"{' '.join(case.remedy)}\b|{' '.join(case.remedy)} ", checked[2])
    more = ("--missing-outcome", "weight") if "--na-values" in case.remedy else ()
    code, _, err = check(path, *case.remedy, *more)
    assert code == 0, err


@pytest.mark.parametrize("name", [case.name for case in CASES if case.in_python])
def test_python_refuses_what_the_command_line_refuses(written, name):
    """By the same counts of rows; and takes what it takes, with the same covariates."""
    case, path = written(name)
    table = read_table(path).frame
    if not case.refused:
        assert set(Study(table, treatment="arm", outcome="y").covariates) >= NAMES
        return
    with pytest.raises(InputError) as found:
        Study(table, treatment="arm", outcome="y")
    if case.rows is not None:
        assert re.search(rf"\b{case.rows}\b", str(found.value))


def test_python_asks_for_as_many_rows_of_an_arm(written):
    _, path = written("three rows.csv")
    study = Study(read_table(path).frame, treatment="arm", outcome="y", direction="maximize")
    with pytest.raises(InputError, match=r"Treatment rare has 3 rows, but cv=5 .* needs 7"):
        cross_val_policy_value(DRPolicyTree(max_depth=1), study)


@pytest.mark.parametrize("name", ["blanks.csv", "commas.csv"])
def test_suggested_chances_can_be_typed(written, name):
    """The option in the finding, as a shell reads it, says the chances of just these labels."""
    _, path = written(name)
    _, said, _ = check(path)
    words = shlex.split(said[said.index("--propensity ") :].split(" (in Python")[0])
    shares = [float(share) for share in re.findall(r"=([\d.]+)", words[1])]
    assert len(words) == 2 and len(shares) == 4
    exact = re.sub(r"=[\d.]+", "=0.25", words[1])  # shares as shown need not sum to one
    code, said, err = check(path, "--propensity", exact)
    assert code == 0, err
    assert "known: drug 0.25" in said


def test_value_labels_become_categories(written):
    for name in ("labels.dta", "labels.sav"):
        _, path = written(name)
        frame = read_table(path).frame
        assert isinstance(frame["arm"].dtype, pd.CategoricalDtype)
        assert set(frame["arm"]) == {"drug", "usual"}


def test_lazy_frames_are_collected():
    polars = pytest.importorskip("polars")
    lazy = polars.from_pandas(people()).lazy()
    study = Study(lazy, treatment="arm", outcome="y")
    assert study.n == N and study.covariates == ("age", "bmi", "sex", "city")


def test_sheets_that_were_not_read_are_named(written):
    _, path = written("sheets.xlsx")
    code, said, err = check(path, "--sheet", "the data")
    assert code == 0, err
    assert "several sheets" not in said
    refused(check(path, "--sheet", "data"), "has no sheet 'data' (--sheet); its sheets are read me, the data")
    refused(check(path), "'sheets.xlsx' has several sheets; 'read me' was read, and not 'the data' (--sheet)")


def test_cells_of_blanks_are_missing_for_a_design_and_its_rule(written, tmp_path):
    _, path = written("blank cells.csv")
    frame = read_table(path).frame
    assert frame["city"].isna().sum() == N / 5
    code, _, err = run("design", path, *ROLES, *QUICK, "--covariates", "city", "-o", tmp_path / "out")
    assert code == 0, err
    code, _, err = run("predict", tmp_path / "out" / "tree.json", path)
    assert (code, err) == (0, "")  # and no warning of a city that was not seen before


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([-1.0, *[1.0] * (N - 1)], "--weights has 1 negative values"),
        ([0.0] * N, "--weights is zero in all rows"),
        ([np.inf, *[1.0] * (N - 1)], "Column 'w' (--weights) is infinite in 1 of 240 rows"),
        (["x", *[1.0] * (N - 1)], "Column 'w' (--weights) holds texts, not numbers"),
    ],
)
def test_weights_that_are_none(tmp_path, weights, words):
    people(w=weights).to_csv(tmp_path / "w.csv", index=False)
    refused(check(tmp_path / "w.csv", "--weights", "w"), words)


@pytest.mark.parametrize("name", ["klingon", "base64", "rot13", "nul\0"])
def test_encodings_that_are_none_of_texts(written, name):
    _, path = written("plain.csv")
    refused(check(path, "--encoding", name), "is no encoding of texts; say latin-1, cp1252 or utf-16")


def test_one_outcome_for_all_is_serious_in_python(written):
    _, path = written("one outcome.csv")
    found = Study(read_table(path).frame, treatment="arm", outcome="y").check().of("serious")
    assert [(finding.kind, finding.found) for finding in found] == [("constant outcome", "is 3 in all rows")]


@pytest.mark.parametrize("word", [".", "n.a.", "-", "---", "?", "\\N", "#DIV/0!", "n. a.", "$x"])
def test_suggested_values_can_be_pasted(tmp_path, word):
    """Also where a value ends like the sentence."""
    some(word)().to_csv(tmp_path / "word.csv", index=False)
    said = check(tmp_path / "word.csv")[2]
    assert ".." not in said
    option = said.partition("if so, say ")[2].strip().removesuffix(".")
    code, _, err = check(tmp_path / "word.csv", *shlex.split(option), "--missing-outcome", "weight")
    assert code == 0, (said, err)


@pytest.mark.parametrize("sign", ["'", "\u2019"])
def test_apostrophes_between_thousands_are_read_by_the_option_in_the_sentence(tmp_path, sign):
    people(y=[f"{v * 1000:,.1f}".replace(",", sign) for v in people()["y"]]).to_csv(tmp_path / "swiss.csv", index=False)
    said = check(tmp_path / "swiss.csv")[2]
    refused((2, "", said), "(an apostrophe between thousands)")
    option = shlex.split(said.partition("say ")[2].partition(" to read it")[0])
    assert check(tmp_path / "swiss.csv", *option)[0] == 0
    found = read_table(tmp_path / "swiss.csv", Reading(thousands=option[1])).frame["y"]
    np.testing.assert_allclose(found, (people()["y"] * 1000).round(1))


@pytest.mark.parametrize(("option", "value"), [("--na-values", "bmi="), ("--na-values", ","), ("--encoding", "")])
def test_options_that_say_nothing_are_refused(written, option, value):
    _, path = written("plain.csv")
    refused(check(path, option, value), f"{option} ")


def test_a_note_on_a_labelled_value_ends_when_it_is_read_as_missing(tmp_path):
    ages = people()["age"].astype(float).where(np.arange(N) % 9 > 0, 99.0)
    people(age=ages).to_stata(tmp_path / "codes.dta", write_index=False, value_labels={"age": {99: "refused"}})
    path = tmp_path / "codes.dta"
    assert "say --na-values age=99" in check(path)[1]
    assert "refused" not in check(path, "--na-values", "age=99")[1]


@pytest.mark.parametrize("name", ['c"d', "a, b", "x\ny", " "])
def test_a_design_is_evaluated_whatever_its_covariates_are_called(tmp_path, name):
    table = people().rename(columns={"age": name.strip() or "column 1"})
    table.to_csv(tmp_path / "one.csv", index=False)
    table.sample(frac=1, random_state=1).iloc[:-9].to_csv(tmp_path / "two.csv", index=False)
    code, _, err = run("design", tmp_path / "one.csv", *ROLES, *QUICK, "-o", tmp_path / "out")
    assert code == 0, err
    code, _, err = run("evaluate", tmp_path / "out" / "tree.json", tmp_path / "two.csv")
    assert code == 0, err
