"""The page: valid, escaped, without a network, small, and described to those who cannot see it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from policytree.report.content import Content, Facts, Section, Words
from policytree.report.html import TEMPLATES, to_html
from policytree.report.text import to_text
from tests.report.studies import ARMS, EVIL, LONG

VOID = {"meta", "input", "br", "hr", "link", "img"}
MOST_BYTES, MOST_SCRIPT = 2_000_000, 20_000


class Page(HTMLParser):
    """Elements with their attributes; refuses what is not closed, and attributes that are there twice."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict]] = []
        self.texts: list[str] = []
        self.inside: list[str] = []
        self.feed(text)
        self.close()
        assert self.inside == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.inside.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.inside and self.inside.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if not self.inside or self.inside[-1] not in ("script", "style"):
            self.texts.append(data)


@pytest.fixture(scope="module")
def parsed(page) -> Page:
    return Page(page)


def test_elements_close_and_ids_are_unique(page, parsed):
    assert page.startswith("<!DOCTYPE html>")
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids)) > 10
    for _, attributes in parsed.elements:
        for name in ("href", "clip-path"):
            for target in re.findall(r"#([^)\"]+)", attributes.get(name) or ""):
                assert target in ids


def test_names_are_text_and_never_markup(page, parsed):
    tags = [tag for tag, _ in parsed.elements]
    assert tags.count("script") == 2 and "img" not in tags and "iframe" not in tags and "b" not in tags
    assert not any(name.startswith("on") for _, attributes in parsed.elements for name in attributes)
    text = "".join(parsed.texts)
    assert EVIL in text and ARMS[0] in text and "</title><script>" in text
    assert not set(page) & {"\x1b", "\x07", "\u202e", "\x00"}
    assert LONG not in text and "L" * 150 + "…" in text
    assert "<bdi>العمر بالسنوات</bdi>" in page


def test_nothing_is_fetched(page, parsed):
    assert "link" not in [tag for tag, _ in parsed.elements]
    for _, attributes in parsed.elements:
        for name in ("src", "href", "srcset", "action", "data", "xlink:href"):
            assert not attributes.get(name) or attributes[name].startswith("#")
    style = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    assert "@import" not in style and not re.search(r"url\((?!#)", style)
    policy = next(a["content"] for tag, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_it_is_small(page):
    assert len(page.encode()) < MOST_BYTES
    assert len((TEMPLATES / "report.js").read_bytes()) <= MOST_SCRIPT


def test_pictures_tables_and_fields_are_described(parsed):
    pictures = [attributes for tag, attributes in parsed.elements if tag == "svg"]
    assert len(pictures) == 3
    assert all(a["role"] == "img" and len(a["aria-label"]) > 40 for a in pictures)
    tables = sum(tag == "table" for tag, _ in parsed.elements)
    assert tables == sum(tag == "caption" for tag, _ in parsed.elements) > 4
    assert all("scope" in attributes for tag, attributes in parsed.elements if tag == "th")
    assert dict(next(a for tag, a in parsed.elements if tag == "html")) == {"lang": "en"}


def test_the_scripts_tree_cannot_leave_its_element(page):
    text = re.search(r'<script type="application/json" id="program">(.*?)</script>', page, re.DOTALL)[1]
    assert not set(text) & set("<>&")
    program = json.loads(text)
    (tree,) = program["trees"]
    assert set(tree) == {"root", "scales", "ranges", "caution"} and "question" in tree["root"]
    (prices,) = program["prices"]
    assert {len(moments["mean"]) for moments in prices["rules"].values()} == {1 + len(ARMS)}, "nobody's own numbers"


def test_no_line_of_the_page_ends_beside_an_equals_sign():
    content = Content("People with died = 1", "", (Section("verdict", "Verdict", (Words("died = 1"),)),))
    html = to_html(content)
    assert "died\u00a0=\u00a01</h1>" in html and "died\u00a0=\u00a01</p>" in html


def test_large_numbers_stand_in_the_text_at_any_width():
    """Before what they count: a name as long as the line had squeezed them out."""
    name = "number needed to treat: people who follow the rule for one more with recovered (95% CI 9 to 39)"
    facts = Facts((("people change treatment", "39 of 100"), (name, "14")), large=True)
    content = Content("A rule", "", (Section("verdict", "Verdict", (facts,)),))
    for width in (40, 80, 200):
        lines = " ".join(to_text(content, width).split())
        assert "39 of 100 people change treatment" in lines and f"14 {name}" in lines
