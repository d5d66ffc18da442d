"""A report as a page: one file, every part of it, and foreign words that stay words."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from mast_tui.reports.model import Column, Estimate, Kind, Text
from mast_tui.reports.render.html import render_html
from tests.reports import sample

EMPTY = {"meta", "br", "link", "img", "input", "rect", "line", "circle"}


class Read(HTMLParser):
    """All elements of a page with their attributes, and its words; fails where they cross."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.words = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag, f"line {self.getpos()[0]}"

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.words += data

    def of(self, tag: str) -> list[dict[str, Any]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page() -> Read:
    return Read(render_html(sample.report()))


def test_every_part_is_there_and_the_contents_name_what_stands_open(page: Read) -> None:
    ids = [one["id"] for _, one in page.elements if "id" in one]
    assert len(set(ids)) == len(ids)
    targets = [element["href"][1:] for element in page.of("a") if element["href"].startswith("#")]
    assert targets == [
        "modes", "modes-modes", "modes-help", "pictures", "pictures-shares",
    ]  # fmt: skip
    assert {*targets} <= {*ids}
    assert len(page.of("svg")) == 1
    assert len(page.of("table")) == 2
    for words in ("Write down who decides.", "Only where somebody asks.", "n = 8; labels: gold."):
        assert words in page.words


def test_what_is_folded_is_closed(page: Read) -> None:
    assert [one["id"] for one in page.of("details")] == ["modes-folded", "modes-more"]
    assert all("open" not in one for one in page.of("details"))


def test_cells_have_their_numbers_in_full(page: Read) -> None:
    cells = [element for element in page.of("td") if element.get("data-v") == "0.6149"]
    assert {(cell["data-low"], cell["data-high"]) for cell in cells} == {("0.4815", "0.7249")}
    assert "[0.48, 0.72]" in page.words
    assert "— no variance" in page.words
    bars = [element["style"] for element in page.of("span") if element.get("class") == "bar"]
    assert bars[:2] == ["--share: 12.5%", "--share: 0%"]


def test_warnings_come_before_figures(page: Read) -> None:
    words = page.words
    assert words.index("Pairs share few") < words.index("4 of 8 traces") < words.index("Disobey")
    assert words.index("Disobey") < words.index("† κ is low") < words.index("Left out")


def test_foreign_words_are_words(page: Read) -> None:
    assert len(page.of("script")) == 1
    assert page.of("img") == []
    assert not [one for _, one in page.elements if any(name.startswith("on") for name in one)]
    assert all(element["href"].startswith(("#", "https://")) for element in page.of("a"))
    assert "window.hacked=1" in page.words
    assert "javascript:window.hacked=3" in page.words
    assert "␛[31m bell ␇ line⏎break ⟨U+202E⟩exe.gpj" in page.words
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", render_html(sample.report()))


def test_the_policy_lets_only_its_own_script_run(page: Read) -> None:
    (policy,) = (
        element["content"]
        for element in page.of("meta")
        if element.get("http-equiv") == "Content-Security-Policy"
    )
    assert re.fullmatch(
        r"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        r"script-src 'sha256-[A-Za-z0-9+/=]{44}'; base-uri 'none'; form-action 'none'",
        policy,
    )


def test_a_folded_drawing_is_closed() -> None:
    report = sample.report()
    chart = replace(sample.chart(), folded=True)
    section = replace(report.sections[1], parts=(chart,))
    read = Read(render_html(replace(report, sections=(section,))))
    assert [element["id"] for element in read.of("details")] == ["pictures-shares"]
    assert len(read.of("svg")) == 1


def test_paragraphs_keep_their_lines() -> None:
    report = sample.report()
    section = report.sections[0]
    many = Text("help", "Help", ("one\ntwo\x1b",))
    page = render_html(replace(report, sections=(replace(section, parts=(many,)),)))
    assert "<p>one<br>two␛</p>" in page


def test_a_share_beyond_its_bounds_fills_the_bar_at_most() -> None:
    column = Column("s", "s", Kind.SHARE)
    report = sample.report(columns=(column,))
    section = report.sections[0]
    table = replace(
        section.tables[0],
        groups=((replace(section.tables[0].rows[0], cells={"s": Estimate(1.5)}),),),
    )
    page = render_html(replace(report, sections=(replace(section, parts=(table,)),)))
    assert "--share: 100%" in page
