"""List the case studies, or run some of them.

    python case_studies/run.py                      what there is
    python case_studies/run.py rand_hie             run one; progress goes to standard error, results to its folder
    python case_studies/run.py all                  run every one, after saying how long each took when it was last run
    python case_studies/run.py weighted_trees --part guesses --published     a paper's settings, however long they take
    python case_studies/run.py actg175 --part fragility   a further script of the study, with its own output
    python case_studies/run.py actg175 --data DIR   where its data file is (or set POLICYTREE_DATA)
    python case_studies/run.py simulations --published   the published size, hours; results go to results/published

A study is a folder with a ``study.py``: the first line of its docstring is its title, and ``main(study)`` does the work
with a :class:`harness.Study`. Its other scripts with a ``main`` are parts, run one at a time.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA_DIRECTORY_VARIABLE = "POLICYTREE_DATA"
BESIDE_CHECKOUT = HERE.parents[1] / "shared" / "data"


def studies() -> dict[str, str]:
    """Title of every study by the name of its folder."""
    found = {}
    for path in sorted(HERE.glob("*/study.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[path.parent.name] = docstring.partition("\n")[0]
    return found


def published_time(name: str, part: str | None = None) -> str | None:
    """How long the published size of a study takes, by its PUBLISHED_TAKES, or by that of a part that has its own."""
    for script in filter(None, (part, "study")):
        tree = ast.parse((HERE / name / f"{script}.py").read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "PUBLISHED_TAKES":
                return ast.literal_eval(node.value)
    return None


def data_directory(given: str | None) -> Path | None:
    """``--data``, else the environment variable, else the directory beside a development checkout, else none."""
    chosen = given or os.environ.get(DATA_DIRECTORY_VARIABLE)
    if chosen:
        return Path(chosen)
    return BESIDE_CHECKOUT if BESIDE_CHECKOUT.is_dir() else None


def parts(name: str) -> list[str]:
    """Further scripts of a study that can be run by themselves."""
    found = []
    for path in sorted((HERE / name).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if path.stem != "study" and any(isinstance(n, ast.FunctionDef) and n.name == "main" for n in tree.body):
            found.append(path.stem)
    return found


def minutes(name: str) -> str:
    """How long a study took when its results were made, as they say themselves."""
    file = HERE / name / "results" / "minutes.json"
    took = json.loads(file.read_text(encoding="utf-8")).get("output") if file.is_file() else None
    return f"took {took['processor']:.1f} minutes of processor time" if took else "no time was kept: minutes"


def run(
    name: str, data: Path | None, results: Path | None, quick: bool, part: str | None = None, published: bool = False
) -> None:
    """Run one study, or a part of it."""
    from harness import Study

    output = "output.txt" if part is None else f"{part}.txt"
    kept = HERE / name / "results" / "published" if published else HERE / name / "results"
    study = Study(data, results or kept, quick=quick, published=published, output=output)
    script = importlib.import_module(f"{name}.{part or 'study'}")
    with ended_by_interrupt(study):
        script.main(study)
        study.close()


@contextmanager
def ended_by_interrupt(study) -> Iterator[None]:
    """Let Ctrl-C end the study: a search alone would keep its best tree so far, and the study go on with that."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # as in the background of a shell
        yield
        return
    signal.signal(signal.SIGINT, study.interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def directory(text: str) -> Path:
    """A directory that was named: an empty word, such as a variable that is not set, would be the current one."""
    if not text.strip():
        raise argparse.ArgumentTypeError("no directory is named")
    return Path(text)


def checked(arguments: list[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """The options, and the names of the studies to run; anything wrong ends the command with a sentence."""
    parser = argparse.ArgumentParser(description="List the case studies, or run some of them.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="studies to run, or 'all'; none lists them")
    parser.add_argument("--data", help=f"directory of data files (default: ${DATA_DIRECTORY_VARIABLE})")
    parser.add_argument("--results", type=directory, help="where results go (default: the study's own folder results)")
    parser.add_argument("--part", help="a further script of one study, such as fragility")
    parser.add_argument("--quick", action="store_true", help="a small version that only shows that everything runs")
    parser.add_argument("--published", action="store_true", help="the published size, where a study has one: hours")
    options, known = parser.parse_args(arguments), studies()
    if not options.names and (options.results or options.part is not None or options.quick or options.published):
        parser.error(f"name a study; there are: {', '.join(known)}")
    if "all" in options.names and len(options.names) > 1:
        parser.error("'all' stands alone: it runs every study")
    names = list(known) if options.names == ["all"] else list(dict.fromkeys(options.names))
    for name in names:
        if name not in known:
            parser.error(f"there is no study {name!r}; choose from {', '.join(known)} or all")
    if options.data and not Path(options.data).is_dir():
        parser.error(f"--data: there is no directory {options.data}")
    if options.quick and options.results is None:
        parser.error("--quick needs --results, so that it does not overwrite the kept results")
    if options.published and (options.quick or any(published_time(name) is None for name in names)):
        sizes = ", ".join(f"{name} ({published_time(name)})" for name in known if published_time(name)) or "none"
        parser.error(f"--published is for studies with a published size, and not with --quick; there are: {sizes}")
    if options.results is not None and len(names) > 1:
        parser.error("--results takes one study at a time")
    if options.part is not None and (len(names) != 1 or options.part not in parts(names[0])):
        asked = names if len(names) == 1 else known
        known_parts = ", ".join(f"{name} --part {part}" for name in asked for part in parts(name)) or "none"
        parser.error(f"--part names a script of one study; there are: {known_parts}")
    return options, names


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code: 0, 2 if something that a study needs is missing, 130 after Ctrl-C."""
    options, names = checked(arguments)
    if not names:
        for name, title in studies().items():
            print(f"{name:16s}{title}")
        return 0
    for name in names if options.published or len(names) > 1 else ():
        print(
            f"{name:16s}{published_time(name, options.part) if options.published else minutes(name)}", file=sys.stderr
        )
    sys.path.insert(0, str(HERE))
    code, name = 0, names[0]
    try:
        from policytree.exceptions import InputError

        for name in names:
            try:
                run(name, data_directory(options.data), options.results, options.quick, options.part, options.published)
            except InputError as error:
                print(f"{name}: {error}", file=sys.stderr)
                code = 2
    except KeyboardInterrupt:
        print(f"{name}: stopped. Tables and pictures made until then are new, what it printed is not kept.",
              file=sys.stderr)  # fmt: skip
        return 130
    return code


def command() -> int:
    """As :func:`main`, for a shell: whoever reads the output may stop reading, as ``head`` does."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


if __name__ == "__main__":
    sys.exit(command())
