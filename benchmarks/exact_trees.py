"""Exact trees, ours and each installed peer on the same arrays: seconds, objective, proof, memory, ratio.

    python benchmarks/exact_trees.py [--data DIRECTORY] [--case PATTERN ...] [--peer NAME ...] [--large]

Every fit runs in a process of its own, pinned to one core (two for --large cases), with a limit of --time-limit
seconds. Seconds are the median of --repeats fits after a first one of the same shape; fits longer than ten seconds are
done once, after a warm-up on 300 rows. Objectives are re-scored from the returned tree. README.md says more.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import CASES, Case, data_directory
from peers import PEERS, version
from reporting import RESULTS, machine, markdown_head, markdown_table, write_csv
from rich import box
from rich.console import Console
from rich.table import Table

STARTUP = 180.0  # seconds allowed for loading, compiling and warming up
NUMBERS = ("seconds", "objective", "proof", "MB", "ratio")
HEADER = ["case", "solver", *NUMBERS, "note"]
SKIPPED = ["solver", "not asked, because", "cases"]
TOLERANCE = 1e-6  # objectives closer than this, relatively, are the same


def allowed(options) -> float:
    """Seconds after which a process is ended: its limit half over, and time to load and repeat short fits."""
    return STARTUP + 1.5 * options.time_limit + 12.0 * options.repeats


def failure(code: int, errors: str) -> str:
    """Say why a process gave no answer, from its exit code and the end of its error stream."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    last = lines[-1][:90] if lines else ""
    if "bad_alloc" in errors or "MemoryError" in errors:
        return "failed: out of memory"
    return f"failed: {last or f'exit code {code}'}"


def run_process(case: Case, peer_name: str, options) -> tuple[list[dict], str | None]:
    """Entries of measure.py and, if it did not end well, why."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(case.n_jobs), "MPLBACKEND": "Agg"}
    with tempfile.TemporaryDirectory() as directory:
        report, errors = Path(directory) / "report", Path(directory) / "errors"
        report.touch()
        command = [
            sys.executable, str(Path(__file__).with_name("measure.py")), case.name, peer_name, str(report),
            "--data", str(options.data), "--repeats", str(options.repeats),
            "--time-limit", str(options.time_limit), "--memory-limit", str(options.memory_limit),
        ]  # fmt: skip
        trouble = None
        with errors.open("wb") as stream:
            try:
                done = subprocess.run(
                    command, stdout=subprocess.DEVNULL, stderr=stream, env=environment, cwd=directory,
                    timeout=allowed(options), check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                trouble = f"ended from outside after {allowed(options):.0f} s"
            else:
                if done.returncode != 0:
                    trouble = failure(done.returncode, errors.read_text(encoding="utf-8", errors="replace"))
        return [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()], trouble


def summarize(entries: list[dict], trouble: str | None) -> dict:
    """One result from the fits of one process."""
    if entries and "refused" in entries[0]:
        return {"skipped": entries[0]["refused"], "missing": entries[0].get("missing", False)}
    if not entries:
        return {"trouble": trouble or "failed without a word"}
    timed = entries[1:] or entries
    typical = sorted(timed, key=lambda entry: entry["seconds"])[(len(timed) - 1) // 2]
    return {
        **typical,
        "seconds": statistics.median(entry["seconds"] for entry in timed),
        "memory_mb": entries[0]["memory_mb"],
        "runs": len(timed),
        "trouble": trouble,
    }


def proof_text(result: dict) -> str:
    """Proved, the gap in percent of the objective, or neither."""
    if result["proved"]:
        return "proved"
    if result["lower_bound"] is None:
        return "not proved"
    size = max(abs(result["objective"]), 1e-300)
    return f"gap {abs(result['objective'] - result['lower_bound']) / size:.2%}"


def worse(case: Case, a: float, b: float) -> bool:
    """Whether objective ``a`` is worse than ``b`` beyond rounding."""
    return case.sign * (a - b) > TOLERANCE * max(1.0, abs(b))


def notes(case: Case, result: dict, found: dict[str, dict], unit: dict | None) -> list[str]:
    """Collect the notes that a reader should not overlook."""
    said = [result["trouble"]] if result["trouble"] else []
    objective, known = result["objective"], case.best and round(case.best, 6)
    values = [other["objective"] for other in found.values() if "objective" in other] + [known or objective]
    best = case.sign * min(case.sign * value for value in values)
    if worse(case, objective, best):
        said.append(f"{'CLAIMS PROOF, but ' if result['proved'] else ''}best is {best:.10g}")
    elif known is not None and worse(case, known, objective):
        said.append(f"better than the best known, {known:.10g}")
    claimed = result["claimed"]
    if claimed is not None and abs(claimed - objective) > 1e-4 * max(1.0, abs(claimed)):
        said.append(f"claims {claimed:.10g}")
    if unit and unit.get("proved") and result["proved"]:
        said.append(f"{result['seconds'] / unit['seconds']:.2f} x unit weights")
    return said


def objective_text(case: Case, value: float) -> str:
    """Errors as whole numbers, everything else to six digits after the point."""
    return f"{value:,.0f}" if case.unit == "errors" else f"{value:,.6f}"


def ratio_text(result: dict, ours: dict | None) -> str:
    """Time in units of ours; a bound on it if one of the two did not prove, nothing if neither did."""
    if result is ours:
        return "1"
    if ours is None or "seconds" not in ours or not (ours["proved"] or result["proved"]):
        return ""
    bound = ">= " if not result["proved"] else "<= " if not ours["proved"] else ""
    return f"{bound}{result['seconds'] / ours['seconds']:,.3g}"


def table_lines(case: Case, all_found: dict[str, dict]) -> list[list[str]]:
    """Rows of the table for one case."""
    lines, found = [], all_found[case.name]
    for peer_name, result in found.items():
        if "skipped" in result:
            continue
        if "objective" not in result:
            lines.append([case.name, peer_name, *[""] * len(NUMBERS), result["trouble"]])
            continue
        unit = all_found.get(case.unit_weights, {}).get(peer_name)
        greedy = peer_name == "EconML greedy"
        lines.append([
            case.name, peer_name, f"{result['seconds']:.4g}", objective_text(case, result["objective"]),
            "greedy" if greedy else proof_text(result), f"{result['memory_mb']:,.0f}",
            "" if greedy else ratio_text(result, found.get("policytree")),
            "; ".join(notes(case, result, found, unit)),
        ])  # fmt: skip
    return lines


def skipped_lines(all_found: dict[str, dict]) -> list[list[str]]:
    """Who was not asked what, and why: a line a solver and reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for case_name, found in all_found.items():
        for peer_name, result in found.items():
            if "skipped" in result:
                reasons.setdefault((peer_name, result["skipped"]), []).append(case_name)
    everywhere = len(all_found)
    return [
        [peer, reason, "all cases" if len(names) == everywhere else ", ".join(names)]
        for (peer, reason), names in sorted(reasons.items())
    ]


def csv_rows(all_found: dict[str, dict], versions: dict[str, str]) -> list[dict]:
    """Everything measured, one row a case and solver."""
    fields = ["seconds", "search_seconds", "runs", "objective", "claimed", "lower_bound", "proved", "leaves"]
    fields += ["memory_mb", "trouble", "skipped"]
    return [
        {
            "case": name, "solver": peer, "version": versions.get(peer), "best_known": CASES[name].best,
            **{field: result.get(field) for field in fields},
        }
        for name, found in all_found.items() for peer, result in found.items()
    ]  # fmt: skip


def show(console: Console, lines: list[list[str]], skipped: list[list[str]]) -> None:
    """The tables at the width of the terminal."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in HEADER:
        table.add_column(name, justify="right" if name in NUMBERS else "left", no_wrap=name in ("solver", *NUMBERS))
    previous = None
    for line in lines:
        if previous not in (None, line[0]):
            table.add_section()
        table.add_row(line[0] if line[0] != previous else "", *line[1:])
        previous = line[0]
    console.print(table)
    if skipped:
        table = Table(*SKIPPED, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for line in skipped:
            table.add_row(*line)
        console.print(table)


def save(stem: Path, all_found: dict[str, dict], lines: list[list[str]], about: dict[str, str], versions) -> None:
    """CSV with everything, Markdown with the tables."""
    write_csv(stem.with_suffix(".csv"), csv_rows(all_found, versions))
    named = ", ".join(f"{name} {number}" for name, number in versions.items() if name != "policytree")
    text = markdown_head("Exact trees", {**about, "peers": named}) + markdown_table(HEADER, lines, set(NUMBERS))
    if skipped := skipped_lines(all_found):
        text += "\n" + markdown_table(SKIPPED, skipped)
    stem.with_suffix(".md").write_text(text, encoding="utf-8")


def select(options) -> tuple[list[Case], list[str]]:
    """Cases and solvers asked for; one sentence if a pattern fits nothing."""
    patterns = options.case or ["*"]
    named = {
        pattern: [name for name in CASES if fnmatch.fnmatch(name.lower(), f"*{pattern.lower()}*")]
        for pattern in patterns
    }
    for pattern, names in named.items():
        if not names:
            raise SystemExit(f"--case {pattern!r} fits no case; --list shows them.")
    chosen = [CASES[name] for name in CASES if any(name in names for names in named.values())]
    peers = options.peer or list(PEERS)
    if "policytree" not in peers:
        peers = ["policytree", *peers]  # ratios are to ours in the same run
    return [case for case in chosen if options.large or not case.large], peers


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=data_directory, default=None, help="holds classification/*.csv.gz")
    parser.add_argument("--case", action="append", help="part of a name, or a pattern with *; may be repeated")
    parser.add_argument("--peer", action="append", choices=[name for name in PEERS], help="may be repeated")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds for every fit, ours too")
    parser.add_argument("--memory-limit", type=float, default=16.0, help="GiB of address space a process")
    parser.add_argument("--large", action="store_true", help="also cases of minutes and gigabytes, on two cores")
    parser.add_argument("--output", type=Path, help=f"stem of the files; {RESULTS / 'exact_trees'} for a whole run")
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    options = parser.parse_args()
    options.data = options.data or data_directory(None)
    if options.repeats < 1:
        parser.error("--repeats must be at least 1.")
    if options.output is None and not options.case and not options.peer:
        options.output = RESULTS / "exact_trees"
    return options


def main() -> None:
    """Measure case by case; results are saved after each, so that an interrupted run leaves what it has."""
    options = parse()
    cases, peers = select(options)
    if options.list:
        print("\n".join(case.name + (" (large)" if case.large else "") for case in CASES.values()))
        return
    console = Console(width=120) if not sys.stdout.isatty() else Console()
    about, versions = machine(), {name: version(PEERS[name]) or "not installed" for name in peers}
    about["limits"] = f"{options.time_limit:g} s and {options.memory_limit:g} GiB a fit, {options.repeats} repeats"
    all_found: dict[str, dict[str, dict]] = {}
    lines: list[list[str]] = []
    for k, case in enumerate(cases, 1):
        found = all_found[case.name] = {}
        for name in peers:
            absent = versions[name] == "not installed"
            what = f"{name}, not installed" if absent else name
            console.print(f"[dim]{k}/{len(cases)} {case.name}: {what}[/dim]", highlight=False)
            if absent:
                found[name] = {"skipped": "not installed"}
                continue
            found[name] = summarize(*run_process(case, name, options))
            if found[name].get("missing"):
                all_found[case.name] = {"all": found[name]}
                break
        lines += table_lines(case, all_found)
        if options.output is not None:
            save(options.output, all_found, lines, about, versions)
    show(console, lines, skipped_lines(all_found))


if __name__ == "__main__":
    main()
