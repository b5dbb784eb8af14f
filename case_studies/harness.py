"""Harness of every case study: where its data are, progress, and numbers that are printed, kept and quotable."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # pictures are files; no window, no display needed

import matplotlib.pyplot as plt
import pandas as pd
from joblib.externals.loky import get_reusable_executor

from policytree.exceptions import InputError

MINUTES = "minutes.json"  # beside results: how long each part took when they were made


class Study:
    """One run of one study.

    Parameters
    ----------
    data_dir : Path or None
        Directory of data files, for studies whose data no package ships.
    results : Path
        Directory that receives CSV, PNG and ``output.txt``, all that was printed.
    quick : bool
        A small version for tests: fewer repetitions and settings, same code. Its numbers are not those of the README.
    published : bool
        The settings of the publication, for as long as they take; studies that have none ignore it.
    output : str
        Name of the file for what was printed.
    """

    def __init__(
        self,
        data_dir: Path | None,
        results: Path,
        *,
        quick: bool = False,
        published: bool = False,
        output: str = "output.txt",
    ):
        self.data_dir, self.results, self.quick, self._output = data_dir, results, quick, output
        self.published = published
        self._start, self._before = time.perf_counter(), processor_seconds() / 60
        self._lines: list[str] = []
        self._interrupted = False
        try:
            results.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"Results cannot be written to {results}: {error.strerror}.") from error
        if not os.access(results, os.W_OK | os.X_OK):
            raise InputError(f"Results cannot be written to {results}: no permission.")

    def interrupt(self, *_) -> None:
        """Answer Ctrl-C (a signal handler): whatever catches it, the study ends at its next output."""
        self._interrupted = True
        raise KeyboardInterrupt

    def _go_on(self) -> None:
        if self._interrupted:
            raise KeyboardInterrupt

    def step(self, text: str) -> None:
        """Say on standard error what begins now, and how long it has been."""
        self._go_on()
        print(f"[{time.perf_counter() - self._start:4.0f} s] {text}", file=sys.stderr, flush=True)

    def heading(self, text: str) -> None:
        """Begin a section of the output."""
        self.show(f"\n{text}\n{'-' * len(text)}")

    def show(self, text: object = "") -> None:
        """Print, and keep for the output file."""
        self._go_on()
        print(text, flush=True)
        self._lines.append(str(text))

    def table(self, frame: pd.DataFrame, name: str, *, digits: int = 1, index: bool = True, show: bool = True) -> None:
        """Save a table as CSV in full precision, and show it rounded (unless it is too long to be read)."""
        self._go_on()
        frame.to_csv(self.results / f"{name}.csv", index=index, float_format="%.10g", lineterminator="\n")
        if not show:
            return
        self.show(frame.to_string(index=index, float_format=lambda v: f"{v:,.{digits}f}", na_rep=""))
        self.show()

    def figure(self, figure, name: str) -> None:
        """Save a picture and forget it."""
        self._go_on()
        figure.savefig(self.results / f"{name}.png", dpi=150, bbox_inches="tight", metadata={"Software": None})
        plt.close(figure)

    def close(self) -> None:
        """Write the output file and say how long it took."""
        self._go_on()
        text = "\n".join("\n".join(self._lines).splitlines()).strip() + "\n"
        text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
        (self.results / self._output).write_text(text, encoding="utf-8")
        self._keep_minutes()
        self.step(f"done; results are in {self.results}")

    def _keep_minutes(self) -> None:
        """Keep how long this took, for those who are about to run it."""
        get_reusable_executor().shutdown(wait=True)  # joblib's processes count once they have ended
        file = self.results / MINUTES
        minutes = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        minutes[Path(self._output).stem] = {
            "wall": round((time.perf_counter() - self._start) / 60, 2),
            "processor": round(processor_seconds() / 60 - self._before, 2),
        }
        file.write_text(json.dumps(minutes, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def processor_seconds() -> float:
    """Processor time of this process and of those that it started and that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
