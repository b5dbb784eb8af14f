"""The page in a real browser, as on a desktop, a phone and paper."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from policytree.common.safe_text import visible
from policytree.report.content import Content, Outline, Section
from policytree.report.html import to_html
from tests.report.browser import ASKED, SIZES, as_on_paper, measure, run
from tests.report.studies import hostile_frame

pytestmark = pytest.mark.slow

LAYOUT = """
const page = document.documentElement;
const luminance = (color) => {
  const part = color.match(/[\\d.]+/g).map(Number).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
};
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (color !== "rgba(0, 0, 0, 0)" && color !== "transparent") return color;
  }
  return "rgb(255, 255, 255)";
};
let worst = 99, smallest = 99, words = "";
for (const element of document.querySelectorAll("body *:not(svg *):not(script):not(style)")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || !element.getClientRects().length) continue;
  const style = getComputedStyle(element), pair = [luminance(style.color), luminance(ground(element))].sort();
  const contrast = (pair[1] + 0.05) / (pair[0] + 0.05);
  if (contrast < worst) { worst = contrast; words = element.textContent.slice(0, 40); }
  smallest = Math.min(smallest, parseFloat(style.fontSize));
}
const outside = [...document.querySelectorAll("body *:not(svg *)")].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width && box.right > page.clientWidth + 1 && !element.closest(".scroll, pre");
});
return {
  width: page.clientWidth, wide: page.scrollWidth, contrast: worst, words, smallest, hit: window.hit === undefined,
  outside: outside.length, nav: getComputedStyle(document.querySelector("nav")).display,
  svg: Math.min(...[...document.querySelectorAll("figure:not(.of-tree) svg")].map((svg) => svg.clientWidth)),
  texts: document.querySelectorAll("svg text").length,
};
"""

# A person at a time into the questionnaire, and what the page answers.
ROUTE = (
    ASKED
    + """
const people = PEOPLE, form = document.querySelector("form.route");
return people.map((person) => [conclusion(form, (name) => person[name]), document.querySelectorAll(".leaf.on").length]);
"""
)


@pytest.mark.parametrize("size", SIZES)
def test_everything_is_readable_at_every_size(page, tmp_path, size):
    found = measure(as_on_paper(page) if size == "paper" else page, tmp_path, LAYOUT, SIZES[size])
    assert found["width"] == SIZES[size]
    assert found["wide"] <= found["width"] and found["outside"] == 0, "nothing makes the page move sideways"
    assert found["contrast"] >= 4.5, found["words"]
    assert found["smallest"] >= (10 if size == "paper" else 12)
    assert found["hit"], "no name became a script"
    assert (found["nav"] == "none") == (size == "paper")
    assert found["svg"] > 200 and found["texts"] > 30


def test_it_is_printed(page, tmp_path):
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    run(tmp_path / "page.html", f"--print-to-pdf={tmp_path / 'page.pdf'}")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_the_form_answers_as_the_tree_predicts(hostile, page, tmp_path):
    """For rows of the data, with their gaps; and where the page says what would change the answer, that it would."""
    model = hostile[1][0].estimator
    X, _, _ = hostile_frame()
    X = X.iloc[:60]
    asked, todo = [], [next(b for b in hostile[0].content.section("tree").blocks if hasattr(b, "root")).root]
    while todo:
        node = todo.pop(0)
        if "question" in node:
            asked += [node["feature"]] if node["feature"] not in asked else []
            todo = [node["yes"], node["no"], *todo]
    people = [{named(name): None if pd.isna(row[name]) else row[name] for name in asked} for _, row in X.iterrows()]
    known = [k for k, person in enumerate(people) if any(value is not None for value in person.values())]
    answers = measure(page, tmp_path, ROUTE.replace("PEOPLE", json.dumps([people[k] for k in known])), 1280)
    for (text, leaves), arm in zip(answers, model.predict(X)[known], strict=True):
        assert text.startswith(f"Give {arm}.") and leaves == 1
        assert "It would be " in text and " of the study are in this leaf." in text
    assert len({text for text, _ in answers}) > 3


def named(name: str) -> str:
    """A column as a question names it."""
    name = visible(name)
    return name[:77] + "…" if len(name) > 80 else name


def question(feature: str, bound: float, yes: dict, no: dict) -> dict:
    node = {"question": f"{feature} at most {bound}?", "feature": feature, "kind": "numeric", "value": bound}
    node |= {"asked": node["question"], "answers": ["yes", "no"], "missing": "", "unknown": "yes", "rows": "9 rows"}
    return node | {"otherwise": "", "yes": yes, "no": no}


def leaf(treatment: str) -> dict:
    return {"treatment": treatment, "rows": "9 rows", "lines": []}


IN_LEAF = "9 rows of the study are in this leaf."


@pytest.mark.parametrize(
    ("person", "caution", "said"),
    [
        # Age was not asked: "with bmi at most 31.4" would be true of the young alone.
        ({"bmi": 33, "pressure": 140}, "", f"Give drug.{IN_LEAF}It would be usual care with pressure at most 131."),
        ({"bmi": 25, "age": 70}, "", f"Give drug.{IN_LEAF}It would be usual care with age at most 57."),
        (
            {"bmi": 25, "age": 50},
            "Not recommended.",
            f"This tree would give usual care.Not recommended.{IN_LEAF}It would be drug with age above 57.",
        ),
    ],
)
def test_what_would_change_the_answer_would(tmp_path, person, caution, said):
    """Whatever was not asked is; and a tree that is not recommended gives nobody anything."""
    root = question(
        "bmi", 31.4,
        question("age", 57.0, leaf("usual care"), leaf("drug")),
        question("pressure", 131.0, leaf("usual care"), leaf("drug")),
    )  # fmt: skip
    shown = Outline(root, {"bmi": 4.0, "age": 15.0, "pressure": 15.0}, caution=caution)
    page = to_html(Content("A rule", "", (Section("tree", "Policy tree", (shown,)),)))
    script = (
        ASKED
        + f"""const person = {json.dumps(person)};
        return conclusion(document.querySelector("form.route"), (name) => person[name]);"""
    )
    assert measure(page, tmp_path, script, 1280) == said
