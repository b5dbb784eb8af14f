"""The page under a person's hands, in Chromium driven by Playwright: prices, near-ties, questions, print."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from policytree import StudyReport
from policytree.evaluation import near_ties
from policytree.report.content import Choices
from tests.report.browser import chromium
from tests.report.studies import hostile_frame

driver = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install -e '.[browser]'")
pytestmark = pytest.mark.slow

OPEN = "document.querySelectorAll('details:not(.choice)').forEach((part) => { part.open = true; })"
SERIOUS = "return axe.run(document).then((found) => found.violations.map((v) => [v.id, v.nodes[0].html.slice(0, 200)]))"


@pytest.fixture(scope="module")
def report(hostile) -> StudyReport:
    """The hostile study, with near-ties."""
    _, (honest, values, test) = hostile
    X, T, Y = hostile_frame()
    model = honest.estimator
    ties = near_ties(model, X.drop(index=X.index[honest.rows]))
    return StudyReport(model, Y, T, X=X, results=[honest, values, test, ties])


@pytest.fixture(scope="module")
def browser():
    path = chromium()
    with driver.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def shown(browser, report, tmp_path):
    """The opened page; afterwards nothing may have failed or been asked of a network."""
    path = tmp_path / "report.html"
    report.to_html(path)
    page, faults, asked = browser.new_page(viewport={"width": 1280, "height": 900}), [], []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.evaluate(OPEN)
    yield page
    assert faults == [] and asked == [path.as_uri()]
    assert page.evaluate("window.hit") is None, "no name became a script"
    page.close()


def test_a_slider_moves_by_keys_and_says_that_the_tree_knew_another_price(shown):
    slider = shown.locator(".prices input[type=range]").first
    row = shown.locator(".prices tbody tr", has_text="policy tree")
    before = row.inner_text()
    slider.focus()
    for _ in range(20):
        shown.keyboard.press("ArrowRight")
    assert row.inner_text() != before and float(slider.get_attribute("aria-valuetext")) > 0
    assert "learnt at another price" in shown.locator(".prices [role=status]").inner_text()
    shown.get_by_role("button", name="No prices").click()
    assert row.inner_text() == before


def test_a_near_tie_shows_its_own_tree(shown, report):
    choices = next(b for b in report.content.section("stability").blocks if isinstance(b, Choices))
    radios = shown.locator(".choices input[type=radio]")
    assert radios.count() == len(choices.trees) >= 2
    radios.nth(0).focus()
    shown.keyboard.press("ArrowDown")
    open_trees = shown.locator(".choices .choice:visible")
    assert open_trees.count() == 1
    assert open_trees.locator("summary").first.inner_text() == choices.table.rows[1][0]


def test_questions_come_one_at_a_time_by_the_keyboard_alone(shown):
    form = shown.locator("form.route")
    questions = 0
    while form.locator("input, select").count():
        assert form.locator("input, select").count() == 1 and form.locator("legend").is_visible()
        form.get_by_role("button", name="Not measured").press("Enter")
        questions += 1
    said = form.locator("output").inner_text()
    assert questions >= 1 and said.startswith("Give ") and said.count("Not measured: ") == questions
    form.get_by_role("button", name="Back").press("Enter")
    assert form.locator("input, select").count() == 1


def test_print_shows_the_state(shown, tmp_path):
    form = shown.locator("form.route")
    while form.locator("input, select").count():
        form.get_by_role("button", name="Not measured").click()
    shown.emulate_media(media="print")
    assert form.locator("output").is_visible() and form.locator("li").first.is_visible()
    assert not form.locator("button").first.is_visible()
    shown.pdf(path=tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_moves_sideways_with_everything_open(shown, width):
    shown.set_viewport_size({"width": width, "height": 900})
    assert shown.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_an_accessibility_checker_finds_nothing(shown, width):
    if "AXE_CORE" not in os.environ:
        pytest.skip("needs axe-core: npm install axe-core, and its axe.min.js named by AXE_CORE")
    shown.set_viewport_size({"width": width, "height": 900})
    script = Path(os.environ["AXE_CORE"]).read_text(encoding="utf-8")
    shown.evaluate(f"() => {{ {script}; }}")
    assert shown.evaluate(f"() => {{ {SERIOUS} }}") == []
