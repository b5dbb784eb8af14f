"""Case studies: they are listed, they run, and their READMEs quote nothing that their scripts did not print."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from joblib import parallel_config

import policytree
from tests.support.nuisances import few_rounds

ROOT = Path(policytree.__file__).parents[1]
STUDIES = ROOT / "case_studies"
FOLDERS = sorted(path.parent for path in STUDIES.glob("*/study.py"))
WITHOUT_REFEREE = {  # papers redone, and simulations
    "sparse_trees", "test_costs", "weighted_trees", "born_again", "simulations", "two_decisions"
}  # fmt: skip
IN_PROCESSES = "simulations"  # the one whose small version is run as a command
PRINTED = [folder for folder in FOLDERS if (folder / "results" / "output.txt").is_file()]
REFEREED = [folder for folder in PRINTED if folder.name not in WITHOUT_REFEREE]


def script(name):
    """A script of the case studies as a module."""
    spec = importlib.util.spec_from_file_location(f"case_studies_{name}", STUDIES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def runner():
    return script("run")


@pytest.fixture(scope="module")
def requote():
    return script("requote")


def run_script(*arguments, **environment):
    """Run the command as a user does; PYTHONPATH stands for an installed package."""
    command = [sys.executable, str(STUDIES / "run.py"), *map(str, arguments)]
    variables = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


def data_directory(runner):
    directory = runner.data_directory(None)
    if directory is None:
        pytest.skip("needs the trials' files: set POLICYTREE_DATA")
    return directory


def test_every_study_is_listed_with_its_title(runner, capsys):
    assert runner.main([]) == 0
    listed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert set(listed) == {folder.name for folder in FOLDERS} >= {"actg175", "lalonde", "rand_hie"}
    assert all(title.endswith(".") for title in listed.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no study 'nowhere'"),
        (["rand_hie", "--quick"], "--quick needs --results"),
        (["rand_hie", "actg175", "--results", "x"], "one study at a time"),
        (["all", "rand_hie"], "'all' stands alone"),
        (["actg175", "--data", "/no/such/place"], "there is no directory /no/such/place"),
        (["--quick", "--results", "x"], "name a study; there are: actg175, born_again, breast_cancer"),
        (["--part", "fragility"], "name a study"),
        (["rand_hie", "--quick", "--results", ""], "no directory is named"),
    ],
)
def test_wrong_use_is_one_sentence(runner, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        runner.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_all_runs_every_study(runner, monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(runner, "run", lambda name, *_: ran.append(name))
    assert runner.main(["all", "--data", str(tmp_path)]) == 0
    assert ran == [folder.name for folder in FOLDERS]
    with pytest.raises(SystemExit):
        runner.main(["all", "--results", "x"])


def test_all_goes_on_after_a_missing_file(runner, monkeypatch, capsys, tmp_path):
    ran = []

    def run(name, *_):
        ran.append(name)
        if name == "credit":
            raise policytree.exceptions.InputError("fico_heloc.csv.gz is not there.")

    monkeypatch.setattr(runner, "run", run)
    assert runner.main(["all", "--data", str(tmp_path)]) == 2
    assert ran == [folder.name for folder in FOLDERS]
    assert "credit: fico_heloc.csv.gz is not there.\n" in capsys.readouterr().err


def test_results_that_cannot_be_written_are_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    for results in (tmp_path / "file", tmp_path / "file" / "below"):
        done = run_script("rand_hie", "--quick", "--results", results)
        assert done.returncode == 2
        assert done.stderr.startswith(f"rand_hie: Results cannot be written to {results}: ")
        assert len(done.stderr.splitlines()) == 1


def test_a_reader_who_stops_reading_sees_no_traceback():
    command = [sys.executable, str(STUDIES / "run.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as listing:
        listing.stdout.close()
        assert listing.stderr.read() == ""


def test_ctrl_c_ends_a_study_though_a_search_answers_it(runner, monkeypatch, capsys, tmp_path):
    """A search that is interrupted keeps its best tree; the study must not go on with that and keep its numbers."""
    reached = []

    def main(study):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:  # as in a search
            reached.append("search")
        study.show("the best tree so far")
        reached.append("too far")

    monkeypatch.syspath_prepend(str(STUDIES))
    monkeypatch.setitem(sys.modules, "credit.study", SimpleNamespace(main=main))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert runner.main(["credit", "--quick", "--results", str(tmp_path)]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert reached == ["search"] and not list(tmp_path.iterdir())
    assert capsys.readouterr().err.startswith("credit: stopped.")


def test_all_says_how_long_each_takes(runner, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(runner, "run", lambda *_: None)
    assert runner.main(["all", "--data", str(tmp_path)]) == 0
    told = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in told] == [folder.name for folder in FOLDERS]
    assert all("minutes" in line for line in told)


def test_how_long_a_run_took_is_kept_beside_its_results(runner, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(STUDIES))
    harness = script("harness")
    for output in ("output.txt", "part.txt"):
        harness.Study(None, tmp_path / "some" / "results", output=output).close()
    kept = json.loads((tmp_path / "some" / "results" / harness.MINUTES).read_text(encoding="utf-8"))
    assert set(kept) == {"output", "part"} and set(kept["part"]) == {"wall", "processor"}
    monkeypatch.setattr(runner, "HERE", tmp_path)
    assert runner.minutes("some").endswith("minutes of processor time")


def test_published_settings_are_for_studies_that_have_them(runner, capsys, monkeypatch):
    with pytest.raises(SystemExit):
        runner.main(["rand_hie", "--published"])
    assert "weighted_trees (" in capsys.readouterr().err
    ran = []
    monkeypatch.setattr(runner, "run", lambda *given: ran.append(given))
    assert runner.main(["weighted_trees", "--part", "guesses", "--published"]) == 0
    assert ran[0][0] == "weighted_trees" and ran[0][-2:] == ("guesses", True)
    assert "1,800 s" in capsys.readouterr().err  # how long that takes


def test_data_directory_is_the_argument_then_the_variable(runner, monkeypatch, tmp_path):
    monkeypatch.setenv("POLICYTREE_DATA", str(tmp_path))
    assert runner.data_directory("given") == Path("given")
    assert runner.data_directory(None) == tmp_path


@pytest.mark.parametrize(("study", "file"), [("actg175", "actg175.csv.gz"), ("lalonde", "psid_controls.csv.gz")])
def test_a_missing_file_is_one_sentence_with_its_source(tmp_path, study, file):
    done = run_script(study, "--data", tmp_path, "--results", tmp_path / "results")
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"{study}: {file} is not in {tmp_path}") and "get it from" in last
    assert "Traceback" not in done.stderr


def test_parts_are_scripts_with_a_main(runner, capsys):
    assert "fragility" in runner.parts("actg175") and "study" not in runner.parts("actg175")
    with pytest.raises(SystemExit):
        runner.main(["actg175", "--part", "nothing"])
    told = capsys.readouterr().err
    assert "actg175 --part fragility" in told and "rand_hie" not in told


PARTS = [
    ("rand_hie", "fragility", {"stability.png"}),
    ("rand_hie", "budgets", {"budget_path.png"}),
    ("actg175", "endpoint", {"endpoint_arms.csv", "endpoint_curves.png"}),
    ("recidivism", "parity", {"parity_race.csv", "parity_sex_others.csv"}),
    ("test_costs", "limits", {"limits.csv", "limits.png"}),
    ("test_costs", "figures", {"weights.png", "nemenyi.png", "fit_seconds.csv", "breast_w_trees.csv"}),
    ("sparse_trees", "encodings", {"encodings.csv"}),
    ("sparse_trees", "scaling", {"scaling.csv", "scaling.png"}),
    ("sparse_trees", "compas_2016", {"compas_2016.csv", "compas_2016.png"}),
    ("test_costs", "streed", {"streed.csv"}),
    ("born_again", "fewer", {"fewer.csv", "fewer_large.csv"}),
    ("weighted_trees", "gaps", {"gaps.csv", "gaps_by_end.csv"}),
    ("weighted_trees", "lalonde_columns", {"lalonde_columns.csv"}),
    ("weighted_trees", "algorithm_1", {"algorithm_1_rows.csv", "algorithm_1_trees.csv"}),
]


@pytest.fixture
def small(runner, monkeypatch, tmp_path):
    """Run the small version of a study or of a part in this process, where a warning is an error; the files it made.

    What studies do in processes is done here, which takes less than to start some.
    """
    few_rounds(monkeypatch)

    def run(study, *part):
        monkeypatch.syspath_prepend(str(STUDIES))
        data = () if study == "rand_hie" else ("--data", str(data_directory(runner)))
        named = ("--part", *part) if part else ()
        with parallel_config(backend="sequential"):
            assert runner.main([study, *named, "--quick", *data, "--results", str(tmp_path)]) == 0
        return {path.name for path in tmp_path.iterdir()}

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("study", "part", "files"), PARTS)
def test_the_small_version_of_a_part_runs(small, study, part, files):
    assert {f"{part}.txt", "minutes.json"} | files <= small(study, part)


def assert_whole(made: set[str]) -> None:
    """A study makes tables and pictures, and keeps what it printed."""
    assert "output.txt" in made and {".csv", ".png"} <= {Path(name).suffix for name in made}


@pytest.mark.slow
@pytest.mark.parametrize("study", [folder.name for folder in FOLDERS if folder.name != IN_PROCESSES])
def test_the_small_version_runs(small, study):
    assert_whole(small(study))


@pytest.mark.slow
def test_a_small_version_runs_as_a_command(tmp_path):
    """As users run it, with processes of its own, to which its functions have to be sent."""
    done = run_script(IN_PROCESSES, "--quick", "--results", tmp_path, MPLBACKEND="Agg")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "Warning" not in done.stderr
    assert_whole({path.name for path in tmp_path.iterdir()})


@pytest.mark.parametrize("folder", PRINTED, ids=lambda folder: folder.name)
def test_readme_blocks_are_printed_lines(requote, folder):
    printed = {line.rstrip() for line in requote.printed(folder).splitlines()}
    blocks = re.findall(r"```text\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks, "quote the output in blocks of ```text"
    lines = {line.rstrip() for block in blocks for line in block.splitlines() if line.strip() not in ("", "...")}
    assert lines - printed == set()


@pytest.mark.parametrize("folder", PRINTED, ids=lambda folder: folder.name)
def test_readme_numbers_are_printed_numbers(requote, folder):
    """Numbers with a decimal point or three digits; years, commands and the section on sources are not checked."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert list(requote.unprinted(text, "")), "a README without numbers says nothing"
    assert list(requote.unprinted(text, requote.printed(folder))) == []


def test_blocks_are_quoted_anew(requote):
    readme = (
        "It is 3.25.\n```text\nrule     value\ntree 2   3.25\ntree 3   4.50\n...\n```\nand 7 of 1999 [1](a/4.5) `9.75`"
    )
    output = "rule     value\ntree 1   3.25\ntree 2   1.75\ntree 3   2.00"
    renewed = requote.requoted(readme, output)
    assert renewed == readme.replace("tree 2   3.25", "tree 2   1.75").replace("tree 3   4.50", "tree 3   2.00")
    assert list(requote.unprinted(renewed, output)) == []
    rows = "a, b   1.00   2.00\na, c   3.00   4.00"  # both are most like the first of these two
    renewed = requote.requoted(f"```text\n{rows}\n```", "a, d   5.00   6.00\nz, d   7.00   8.00")
    assert renewed == "```text\na, d   5.00   6.00\nz, d   7.00   8.00\n```"
    assert list(requote.unprinted("It is 4.50, 1,204 and 12.", output)) == [
        (number, "It is 4.50, 1,204 and 12.") for number in ("4.50", "1204")
    ]


@pytest.mark.parametrize("folder", PRINTED, ids=lambda folder: folder.name)
def test_readme_begins_with_what_was_found(folder):
    """Title, then at most three lines with a figure and how sure it is, before any question or command."""
    _, found, after, *_ = (folder / "README.md").read_text(encoding="utf-8").split("\n\n")
    assert found.startswith("**Found.** ") and len(found.splitlines()) <= 3
    assert re.search(r"\[-?[\d.,]+, -?[\d.,]+\]|standard error|proved", found), "a figure needs its interval or error"
    assert not after.startswith("**Found.**")


@pytest.mark.parametrize("folder", REFEREED, ids=lambda folder: folder.name)
def test_readme_has_the_objections_of_a_referee(folder):
    """Three objections at least, each named first; none of them is about nothing."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    _, heading, after = text.partition("\n## A referee's objections\n")
    objections = re.findall(r"^- \*\*", after.partition("\n## ")[0], flags=re.MULTILINE)
    assert heading and len(objections) >= 3


@pytest.mark.parametrize("folder", PRINTED, ids=lambda folder: folder.name)
def test_readme_links_lead_somewhere_and_pictures_are_shown(folder):
    text = (folder / "README.md").read_text(encoding="utf-8")
    linked = {link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link}
    assert [link for link in linked if not (folder / link).exists()] == []
    named = set(re.findall(r"results/[\w./-]+\.(?:png|csv)", text))
    made = {f"results/{path.name}" for path in (folder / "results").glob("*.*") if path.suffix in (".png", ".csv")}
    assert made == {path for path in named if path.count("/") == 1}  # those of published settings need not be shown


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_folders_have_one_shape(folder):
    """README, the study, its parts, tables of published numbers that one of them reads, and results."""
    inside = {path for path in folder.iterdir() if path.name != "__pycache__"}
    scripts = "".join(path.read_text(encoding="utf-8") for path in inside if path.suffix == ".py")
    assert {"README.md", "study.py", "results"} <= {path.name for path in inside}
    others = {path.name for path in inside if path.suffix != ".py"} - {"README.md", "results"}
    assert [name for name in sorted(others) if name not in scripts] == []
