"""Reports as HTML pages."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from mast_tui.figures.record import Figure
from mast_tui.reports.model import Column, Kind, ReportSection, Row, Table, Text
from mast_tui.reports.render.html import render_html
from tests.reports import sample

EMPTY = {"meta", "br", "link", "img", "input", "rect", "line", "circle"}


class PageParser(HTMLParser):
    """Elements of a page with their attributes, and its text; fails if elements cross."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.text = ""
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
            self.text += data

    def of(self, tag: str) -> list[dict[str, Any]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page() -> PageParser:
    return PageParser(render_html(sample.report()))


def test_page_has_every_part_and_contents_of_open_ones(page: PageParser) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    targets = [link["href"][1:] for link in page.of("a") if link["href"].startswith("#")]
    assert targets == [
        "modes", "modes-modes", "modes-help", "pictures", "pictures-shares",
    ]  # fmt: skip
    assert {*targets} <= {*ids}
    assert len(page.of("svg")) == 1
    assert len(page.of("table")) == 2
    text = page.text
    for part in ("Write down who decides.", "Only where somebody asks.", "n = 8; labels: gold."):
        assert part in text
    assert [details["id"] for details in page.of("details")] == ["modes-folded", "modes-more"]
    assert all("open" not in details for details in page.of("details"))
    cells = [cell for cell in page.of("td") if cell.get("data-v") == "0.6149"]
    assert {(cell["data-low"], cell["data-high"]) for cell in cells} == {("0.4815", "0.7249")}
    assert "[0.48, 0.72]" in text
    assert "— no variance" in text
    bars = [span["style"] for span in page.of("span") if span.get("class") == "bar"]
    assert bars[:2] == ["--share: 12.5%", "--share: 0%"]
    # Warnings come before figures, notes after them.
    assert text.index("Pairs share few") < text.index("4 of 8 traces") < text.index("Disobey")
    assert text.index("Disobey") < text.index("† κ is low") < text.index("Left out")


def test_foreign_text_is_no_markup(page: PageParser) -> None:
    assert len(page.of("script")) == 1
    assert page.of("img") == []
    names = [name for _, attributes in page.elements for name in attributes]
    assert not [name for name in names if name.startswith("on")]
    assert all(link["href"].startswith(("#", "https://")) for link in page.of("a"))
    assert "window.hacked=1" in page.text
    assert "javascript:window.hacked=3" in page.text
    assert "␛[31m bell ␇ line⏎break ⟨U+202E⟩exe.gpj" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", render_html(sample.report()))


def test_policy_allows_only_the_own_script(page: PageParser) -> None:
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


def page_of(section: ReportSection, **changes: Any) -> str:
    return render_html(replace(sample.report(), sections=(replace(section, **changes),)))


def test_folded_chart_is_closed() -> None:
    chart = replace(sample.chart(), folded=True)
    page = PageParser(page_of(sample.report().sections[1], parts=(chart,)))
    assert [details["id"] for details in page.of("details")] == ["pictures-shares"]
    assert len(page.of("svg")) == 1


def test_paragraphs_keep_lines_and_bars_end_at_100_percent() -> None:
    text = Text("help", "Help", ("one\ntwo\x1b",))
    share = Table(
        "t", "T", (Column("s", "s", Kind.SHARE),), ((Row("1", {"s": Figure(value=1.5)}),),)
    )
    page = page_of(sample.report().sections[0], parts=(text, share))
    assert "<p>one<br>two␛</p>" in page
    assert "--share: 100%" in page
