"""One solver on one case in this process: called by exact_trees.py, which pins it, silences it and ends it.

    python benchmarks/measure.py CASE PEER REPORT --data DIRECTORY [...]

Writes one JSON line to REPORT for a refusal or for every timed fit, as soon as it is known.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import os
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from cases import CASES, MissingData
from peers import PEERS

WARM_ROWS, WARM_SECONDS = 300, 5.0
REPEAT_BELOW = 10.0  # seconds: shorter fits are repeated, and the first of them only warms up
MEBIBYTE = 2**20


def resident(field: str) -> float:
    """``VmRSS`` (now) or ``VmHWM`` (peak) of this process in MB; NaN where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return float("nan")
    found = [line.split()[1] for line in lines if line.startswith(field + ":")]
    return int(found[0]) / 1024 if found else float("nan")


def forget_peak() -> None:
    """Let the peak start anew from what is resident now; without that (not Linux) the peak is an upper bound."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        warnings.warn("the memory peak includes loading and warming up", stacklevel=2)


def pin(count: int) -> None:
    """Stay on the last cores: the first ones serve the rest of the machine. Where that is not possible, do not."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])


def warm_up(peer, case, arrays) -> None:
    """A fit of the first rows: loads libraries, compiles or loads kernels. Peers get depth two at most."""
    few = arrays.head(WARM_ROWS)
    if peer.package != "policytree" and (case.depth is None or case.depth > 2):
        case = dataclasses.replace(case, depth=2)
    peer.read(case, few, peer.fit(case, peer.prepare(case, few), WARM_SECONDS))


def one_fit(peer, case, arrays, prepared, limit: float) -> dict:
    """Time a fit and score its tree."""
    start = time.perf_counter()
    model = peer.fit(case, prepared, limit)
    seconds = time.perf_counter() - start
    peak = resident("VmHWM")
    answer = peer.read(case, arrays, model)
    loss = float(arrays.losses[np.arange(len(arrays.X)), answer.actions].sum())
    return {
        "seconds": seconds,
        "search_seconds": answer.search_seconds,
        "objective": case.objective(arrays, loss, answer.n_leaves),
        "claimed": answer.claimed,
        "lower_bound": answer.lower_bound,
        "proved": answer.proved,
        "leaves": answer.n_leaves,
        "peak": peak,
    }


def measure(peer, case, options, report) -> None:
    """Load, warm up, fit; what is found goes to ``report`` line by line."""
    arrays = case.load(Path(options.data))
    reason = peer.refuses(case, arrays)
    if reason is not None:
        report({"refused": reason})
        return
    warm_up(peer, case, arrays)
    gc.collect()
    forget_peak()
    baseline = resident("VmRSS")
    prepared = peer.prepare(case, arrays)
    for run in range(1 + options.repeats):
        found = one_fit(peer, case, arrays, prepared, options.time_limit)
        memory = found.pop("peak") - baseline
        report({**found, "run": run, "memory_mb": memory})
        gc.collect()
        if found["seconds"] > min(REPEAT_BELOW, 0.95 * options.time_limit):
            return


def main() -> None:
    """Read the arguments of the parent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("report", type=Path)
    parser.add_argument("--data", required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--time-limit", type=float, default=120.0)
    parser.add_argument("--memory-limit", type=float, default=16.0, help="GiB of address space")
    options = parser.parse_args()
    case, peer = CASES[options.case], PEERS[options.peer]
    pin(case.n_jobs)
    bytes_allowed = int(options.memory_limit * 1024 * MEBIBYTE)
    resource.setrlimit(resource.RLIMIT_AS, (bytes_allowed, bytes_allowed))
    with options.report.open("a", encoding="utf-8") as file:

        def report(entry: dict) -> None:
            file.write(json.dumps(entry) + "\n")
            file.flush()

        try:
            measure(peer, case, options, report)
        except MissingData as error:
            report({"refused": str(error), "missing": True})


if __name__ == "__main__":
    main()
