"""A real browser without a window: Debian's Chromium, installed if that is possible.

``python -m tests.report.browser report.html folder`` takes pictures of a page as on a desktop, a phone and paper.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape, unescape
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZES = {"desktop": 1280, "phone": 390, "paper": 718}  # pixels; paper: A4 without its margins
# A page's conclusion about a person, whose values are asked for one at a time; values not given were not measured.
ASKED = """
const conclusion = (form, value) => {
  const press = (text) => [...form.querySelectorAll("button")].find((button) => button.textContent === text)?.click();
  press("Start again");
  for (let input; (input = form.querySelector("input, select")); ) {
    const name = form.querySelector("label").firstChild.textContent, given = value(name);
    if (given === null || given === undefined) { press("Not measured"); continue; }
    if (input.tagName === "INPUT") input.value = given;
    else {
      const at = [...input.options].findIndex((option) => [given, "another value"].includes(option.text));
      input.selectedIndex = Math.max(0, at);
    }
    press("Next");
  }
  return form.querySelector("output").textContent;
};
"""
INSTALL_SECONDS, RUN_SECONDS = 180, 120


@functools.cache
def chromium() -> str:
    """Path of a Chromium; skips the test, and says why, where there is none and none can be installed."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    if not (shutil.which("apt-get") and os.geteuid() == 0):
        pytest.skip("no Chromium here, and it cannot be installed (needs apt-get and root)")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": INSTALL_SECONDS}
    try:
        subprocess.run(["apt-get", "update", "-qq"], check=False, **quiet)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"], check=True, **quiet)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"no Chromium here, and Debian's package could not be installed ({error})")
    return shutil.which("chromium") or pytest.skip("Debian's package brought no Chromium")


def run(page: Path, *arguments: str, width: int = 1280, height: int = 900) -> str:
    """Show a page and return what the browser prints."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={profile}", f"--window-size={width},{height}", *arguments, page.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, timeout=RUN_SECONDS, check=True)
    return done.stdout.decode("utf-8")


def as_on_paper(text: str) -> str:
    """The page with its rules for print in force, those for narrow screens not."""
    return text.replace("@media print", "@media all").replace("@media (max-width", "@media (max-width: 1px) and (width")


def measure(text: str, folder: Path, script: str, width: int) -> dict:
    """Show a page in so many pixels, run a script in it (the body of a function), and return what it returns."""
    added = f"<script>parent.document.title = JSON.stringify((function () {{ {script} }})());</script>"
    inner = escape(text.replace("</body>", f"{added}</body>"))
    path = folder / "measured.html"
    frame = f'<iframe srcdoc="{inner}" style="width: {width}px; height: 900px; border: 0"></iframe>'
    path.write_text(f'<!DOCTYPE html><html><head><meta charset="utf-8"></head><body>{frame}</body></html>', "utf-8")
    shown = run(path, "--dump-dom", width=width + 100)
    return json.loads(unescape(re.search(r"<title>(.*?)</title>", shown, re.DOTALL)[1]))


def pictures(page: Path, folder: Path) -> None:
    """Pictures of a page at all sizes, and a PDF."""
    text = page.read_text(encoding="utf-8")
    paper = folder / "paper.html"
    paper.write_text(as_on_paper(text), encoding="utf-8")
    for name, width in SIZES.items():
        shown = paper if name == "paper" else page
        run(shown.resolve(), f"--screenshot={folder / name}.png", width=width, height=6_000)
    run(page.resolve(), f"--print-to-pdf={folder / 'paper.pdf'}")


if __name__ == "__main__":
    pictures(Path(sys.argv[1]), Path(sys.argv[2]))
