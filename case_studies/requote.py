"""After a rerun: put the new lines of the outputs into a README's blocks, and list the numbers in its prose to mend.

    python case_studies/requote.py rand_hie actg175     # or: all

A quoted line that the study no longer prints is replaced by the printed line most like it; words are left to people.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter
from pathlib import Path

HERE = Path(__file__).resolve().parent
BLOCK = re.compile(r"```text\n(.*?)```", re.DOTALL)
VALUE = re.compile(r"[-+]?\d[\d,]*\.\d+[*!]?|\*")  # whole numbers may be what a line is about, decimals are results


def requoted(readme: str, output: str) -> str:
    """The README with lines of ``output`` in its blocks."""
    printed = [line.rstrip() for line in output.splitlines()]

    def block(found: re.Match) -> str:
        lines = [line.rstrip() for line in found.group(1).splitlines()]
        kept = [line in ("", "...") or line in printed for line in lines]
        used = {line for line, stays in zip(lines, kept, strict=True) if stays}  # two lines are never the same one
        renewed = []
        for stays, run in groupby(zip(kept, lines, strict=True), key=itemgetter(0)):
            new = [line for _, line in run]
            if not stays:
                for k, line in enumerate(new):
                    free = [p for p in printed if p not in used]
                    new[k] = max(free, key=lambda p, line=line: likeness(line, p), default=line)
                    used.add(new[k])
                new.sort(key=printed.index)  # as they were printed
            renewed += new
        return "```text\n" + "".join(f"{line}\n" for line in renewed) + "```"

    return BLOCK.sub(block, readme)


def likeness(old: str, new: str) -> float:
    """Same first words count most, then the same shape, then the same numbers."""
    a, b = (VALUE.sub("#", line).split() for line in (old, new))
    same = next((k for k, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b)))
    return same + 5 * SequenceMatcher(None, a, b).ratio() + SequenceMatcher(None, old, new).ratio()


def unprinted(readme: str, output: str) -> Iterator[tuple[str, str]]:
    """Numbers in the prose that are not in ``output``, each with its line.

    Those with a decimal point or three digits; years, commands and the section on sources do not count.
    """
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", " ", readme.partition("## Sources")[0], flags=re.DOTALL)
    known = {float(number) for number in numbers(output)}
    for line in prose.splitlines():
        for number in numbers(line):
            counts = ("." in number or len(number) >= 3) and not re.fullmatch(r"19\d\d|20[0-3]\d", number)
            if counts and float(number) not in known:
                yield number, line.strip()


def numbers(text: str) -> list[str]:
    """All numbers of a text, without signs and thousands separators."""
    return [n.replace(",", "").rstrip(".") for n in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def printed(folder: Path) -> str:
    """Read the output of all scripts of a study, at published settings too."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((folder / "results").rglob("*.txt")))


def main(names: list[str]) -> int:
    """Rewrite the READMEs of these studies; returns the number of numbers left to mend."""
    left = 0
    folders = sorted(path.parent.parent for path in HERE.glob("*/results/output.txt"))
    for folder in folders:
        if names != ["all"] and folder.name not in names:
            continue
        path, output = folder / "README.md", printed(folder)
        text = requoted(path.read_text(encoding="utf-8"), output)
        path.write_text(text, encoding="utf-8")
        for number, line in unprinted(text, output):
            print(f"{folder.name}: {number} was not printed: {line}")
            left += 1
    return left


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
