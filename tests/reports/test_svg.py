"""Drawings as files: with their words and without, and as images."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from mast_tui.cli.shared.report_files import draw_image
from mast_tui.reports.render.svg import MARK, inline_svg, standalone_svg
from tests.reports import sample

SVG = "{http://www.w3.org/2000/svg}"


def texts(written: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(written).iter(f"{SVG}text")]


def test_a_file_has_its_title_and_caption() -> None:
    written = standalone_svg(sample.chart())
    assert MARK in written[:200]
    assert texts(written)[0].startswith("Shares of")
    assert texts(written)[-2] == "n = 8; labels: gold."


def test_a_bare_file_has_neither_and_still_says_what_it_shows() -> None:
    written = standalone_svg(sample.chart(), bare=True)
    assert MARK in written[:200]
    assert texts(written) == [sample.SCRIPT]
    root = ElementTree.fromstring(written)
    assert (root.attrib["width"], root.attrib["height"]) == ("680", "60")
    assert root.findtext(f"{SVG}desc") == "n = 8; labels: gold."


def test_in_a_page_it_has_names_of_its_own() -> None:
    root = ElementTree.fromstring(inline_svg(sample.chart()))
    assert root.attrib["aria-labelledby"] == "shares-t shares-d"
    assert "style" not in {child.tag for child in root}


def test_an_image_has_no_style_that_its_library_takes_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[bytes] = []

    def svg2pdf(*, bytestring: bytes) -> bytes:
        given.append(bytestring)
        return b"%PDF"

    monkeypatch.setitem(sys.modules, "cairosvg", SimpleNamespace(svg2pdf=svg2pdf))
    draw_image(sample.chart(), "pdf")
    assert b".v-halo" not in given[0]
    assert b"text-rendering" not in given[0]
    assert b".v-failed {" in given[0]
    ElementTree.fromstring(given[0])
