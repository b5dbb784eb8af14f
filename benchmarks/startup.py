"""Cost of starting: imports, help, and the first tree of a kind of problem, without and with kernels on disk.

    python benchmarks/startup.py [--runs 3] [--only "depth 3"] [--results startup.md]
    python benchmarks/startup.py --at-once 8

Every figure is the median over fresh processes, each with an empty cache. Imports and help are wall seconds. A first
tree has three figures, all less the imports of the process that fits: its wall seconds, its CPU seconds, and the CPU
seconds of all processes, with the helpers that compile for it on other cores, and their imports. On a machine that does
other work too, only the last two are of use; the table says how loaded it was. "Later" is the same in a second process,
which finds the kernels on disk. ``--at-once`` starts so many processes on one core, with an empty cache: one is to
compile, the others to wait for its files and to say so (Linux).
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from compileall import compile_dir
from pathlib import Path

import policytree
from policytree.common.progress import WAITING

BASE = "import numpy, numba, sklearn.base"
FIT = """
import atexit, resource, time, warnings
def spent(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime
def say():  # the last to be called at the end, when helpers have been waited for
    print(wall, own, own + spent(resource.RUSAGE_CHILDREN) - others)
atexit.register(say)
import numpy as np
import policytree.estimators
from policytree import OptimalTreeClassifier, PolicyTree
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
few, long = rng.integers(0, 12, (600, 5)).astype(float), rng.normal(size=(600, 5))
two, y = rng.integers(0, 2, (400, 8)).astype(float), rng.integers(0, 2, 600)
rewards, three = rng.normal(size=(600, 2)), rng.normal(size=(600, 3))
T = rng.integers(0, 2, 600)
others, start, began = spent(resource.RUSAGE_CHILDREN), time.process_time(), time.perf_counter()
{fit}
wall, own = time.perf_counter() - began, time.process_time() - start
"""
CASES = {  # name: (what is fitted, goal in seconds, on two cores that do nothing else)
    "depth 2, policy of two arms": ("PolicyTree(max_depth=2).fit(few, rewards)", 8),
    "depth 2, classification": ("OptimalTreeClassifier(max_depth=2).fit(few, y)", 8),
    "depth 3": ("PolicyTree(max_depth=3).fit(few, rewards)", 20),
    "depth 3, three arms": ("PolicyTree(max_depth=3).fit(few, three)", 20),
    "depth 3, constraints": (
        "PolicyTree(max_depth=3, min_samples_per_treatment=5, feature_costs=[.001] * 5, max_leaf_nodes=6)"
        ".fit(few, rewards, T=T)",
        20,
    ),
    "depth 4, two-valued columns": ("OptimalTreeClassifier(max_depth=4).fit(two, y[:400])", 12),
    "no depth limit": ("OptimalTreeClassifier(max_depth=None, regularization=.02, time_limit=2).fit(few, y)", 20),
    # Added to the first noisy table of many columns of depth three and more (engine_table.py says which).
    "kernels of conflict pairs alone": (
        "from policytree.solvers.core.compilation import CONFLICT_PAIRS, load_kernels\n"
        "load_kernels([(CONFLICT_PAIRS, '')])",
        None,
    ),
    "depth 2, continuous columns": ("PolicyTree(max_depth=2).fit(long, rewards)", None),
    "depth 3, continuous columns": ("PolicyTree(max_depth=3, time_limit=2).fit(long, rewards)", None),
    "all kernels (policytree warmup)": ("from policytree.cli import main; main(['warmup'])", 50),
}


def environment_with(**more):
    """The variables of this process and more, without the one by which Python keeps no bytecode of modules."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | more


def wall(arguments, **environment):
    """Seconds of a fresh process."""
    start = time.perf_counter()
    subprocess.run(arguments, check=True, capture_output=True, env=environment_with(**environment))
    return time.perf_counter() - start


def printed(code, **environment):
    """The numbers in the last line that a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment_with(**environment)
    )
    return [float(number) for number in done.stdout.splitlines()[-1].split()]


def at_once(n):
    """CPU seconds of every process that fits the same first tree at the same time, and which of them said they wait."""
    code = FIT.format(fit="with stage_progress(): PolicyTree(max_depth=2).fit(few, rewards)")
    code = "from policytree.common.progress import stage_progress\n" + code
    core = min(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        started = [
            subprocess.Popen(
                ["taskset", "-c", str(core), sys.executable, "-c", code], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment_with(NUMBA_CACHE_DIR=cache),
            )
            for _ in range(n)
        ]  # fmt: skip
        done = [process.communicate() for process in started]
        seconds = time.perf_counter() - start
    for process, (_, err) in zip(started, done, strict=True):
        if process.returncode:
            raise RuntimeError(err)
    return (
        [float(out.splitlines()[-1].split()[1]) for out, _ in done],
        [WAITING.partition("{")[0] in err for _, err in done],
        seconds,
    )


def line(name, seconds, goal):
    """Print one figure."""
    print(
        f"{name:44s} {statistics.median(seconds):7.2f} s" + (f"   goal <= {goal:g} s" if goal else ""),
        flush=True,
    )


def medians(measured):
    """Wall seconds, CPU seconds of the process and of all processes: the median of each over the runs."""
    return [statistics.median(column) for column in zip(*measured, strict=True)]


def load():
    """How many processes want a core, on the average of the last minute; "?" where that is not known."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "?"


def first_trees(chosen, runs):
    """Rows of the table: name, wall, own CPU and CPU of all, the same later, the load at the start, and the goal."""
    for name, (fit, goal) in CASES.items():
        if chosen not in name:
            continue
        cold, later, loaded = [], [], load()
        for _ in runs:
            with tempfile.TemporaryDirectory() as cache:
                cold.append(printed(FIT.format(fit=fit), NUMBA_CACHE_DIR=cache))
                later.append(printed(FIT.format(fit=fit), NUMBA_CACHE_DIR=cache))
        figures = [f"{figure:.1f}" for figure in medians(cold)] + [f"{figure:.2f}" for figure in medians(later)[:2]]
        yield [name, *figures, loaded, f"{goal:g}" if goal else ""]


HEAD = ["first tree", "wall", "CPU, this process", "CPU, all", "later: wall", "later: CPU", "load", "goal, wall"]


def main():
    """Measure, print one line a figure, and keep the table of first trees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="part of the name of the cases to run")
    parser.add_argument(
        "--results",
        metavar="FILE",
        help="write the table of first trees to this file, as Markdown, in place of all it has",
    )
    parser.add_argument("--at-once", type=int, metavar="N", help="only this: N processes on one core, an empty cache")
    arguments = parser.parse_args()
    if arguments.at_once:
        cpu, waited, seconds = at_once(arguments.at_once)
        print(f"{len(cpu)} processes on one core, depth 2: {seconds:.0f} s of wall in all")
        for used, said in sorted(zip(cpu, waited, strict=True), reverse=True):
            print(f"  {used:6.2f} s of CPU, {'said that it waited' if said else 'did not wait'}", flush=True)
        return
    compile_dir(Path(policytree.__file__).parent, quiet=1)  # an installed package has its bytecode
    runs = range(arguments.runs)
    if not arguments.only:
        both = f"{BASE}\nfrom policytree import PolicyTree"
        pairs = [(wall([sys.executable, "-c", BASE]), wall([sys.executable, "-c", both])) for _ in runs]
        line("import numpy, numba, sklearn.base", [a for a, _ in pairs], None)
        line("from policytree import PolicyTree, beyond that", [b - a for a, b in pairs], 0.2)
        line("policytree --help", [wall([sys.executable, "-m", "policytree", "--help"]) for _ in runs], 1.0)
    table = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    print(table[0])
    for row in first_trees(arguments.only, runs):
        table.append("| " + " | ".join(row) + " |")
        print(table[-1], flush=True)
        if arguments.results:
            said = f"{len(runs)} run{'s' * (len(runs) > 1)} each, medians; {os.cpu_count()} cores; seconds."
            text = f"Starting with an empty cache of kernels (`python benchmarks/startup.py`): {said}\n\n"
            Path(arguments.results).write_text(text + "\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
