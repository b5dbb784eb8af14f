"""What starting costs: imports, the command line's help, the first fit with and without numba's disk cache.

    python benchmarks/startup.py [--runs 3]

Every figure is the median over fresh processes, wall seconds. Goals: import at most 0.3 s beyond numpy, numba and
sklearn.base; help under 1 s; first fit under 20 s in a fresh cache and under 2 s in a later process.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

BASE = "import numpy, numba, sklearn.base"
FIT = """
import time, numpy as np
from policytree import PolicyTree
import policytree.estimators
rng = np.random.default_rng(0)
X, rewards = rng.standard_normal((200, 4)), rng.standard_normal((200, 2))
start = time.perf_counter()
PolicyTree(max_depth=3).fit(X, rewards)
print(time.perf_counter() - start)
"""


def wall(arguments, **environment):
    """Seconds of a fresh process."""
    start = time.perf_counter()
    subprocess.run(arguments, check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - start


def printed(code, **environment):
    """The number that a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return float(done.stdout)


def main():
    """Measure and print one line a figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    pairs = [
        (wall([sys.executable, "-c", BASE]), wall([sys.executable, "-c", f"{BASE}\nimport policytree"]))
        for _ in range(runs)
    ]
    helps = [wall([sys.executable, "-m", "policytree", "--help"]) for _ in range(runs)]
    cold, warm = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(printed(FIT, NUMBA_CACHE_DIR=cache))
            warm.append(printed(FIT, NUMBA_CACHE_DIR=cache))
    rows = [
        ("import numpy, numba, sklearn.base", [a for a, _ in pairs], None),
        ("import policytree, beyond that", [b - a for a, b in pairs], 0.3),
        ("policytree --help", helps, 1.0),
        ("first fit, fresh cache", cold, 20.0),
        ("first fit of a later process", warm, 2.0),
    ]
    for name, seconds, goal in rows:
        middle = statistics.median(seconds)
        print(f"{name:36s} {middle:7.2f} s" + (f"   goal <= {goal:g} s" if goal else ""))


if __name__ == "__main__":
    main()
