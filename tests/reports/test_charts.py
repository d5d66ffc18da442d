"""Charts as SVG files, inline drawings and images."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from itertools import combinations
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.cli.shared.report_files import check_format, draw_image
from mast_tui.errors import MastError
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.record import Figure, FigureIndex, FigureScope
from mast_tui.figures.signatures.model import OVERALL
from mast_tui.figures.signatures.report import SignatureReport, signature_report
from mast_tui.reports.charts import distribution_bars, file_names, group_charts
from mast_tui.reports.model import Chart
from mast_tui.reports.render.svg import (
    MARK,
    WIDTH,
    clipped_text,
    escaped,
    inline_svg,
    standalone_svg,
    text_width,
    wrapped_lines,
)
from tests.figures.signatures.small_report import small_input, small_report
from tests.reports import sample

KINDS = {
    *("occurrence", "distribution", "shapes", "prevalence", "difference"),
    *("categories", "onset", "order", "chains", "together"),
}
DRAWN = {"Bars", "Dots", "Cells", "Rows", "Segments"}
SVG = "{http://www.w3.org/2000/svg}"


def charts_of(report: SignatureReport) -> list[Chart]:
    """Return the charts of all groups."""
    names = (OVERALL, *report.groups)
    return [chart for name in names for chart in group_charts(report, name).values()]


@pytest.fixture(scope="module")
def report() -> SignatureReport:
    return small_report()


def test_every_chart_tells_its_traces_labels_taxonomy_and_marks(report: SignatureReport) -> None:
    figures = charts_of(report)
    names = (OVERALL, *report.groups)
    assert all(group_charts(report, name).keys() == KINDS for name in names)
    assert len(figures) == len(names) * len(KINDS)
    for figure in figures:
        assert "n = " in figure.note
        assert "Labels: " in figure.note
        assert report.inputs.taxonomy_ref in figure.note
        assert figure.note.split(":")[0] in DRAWN


def place_of(text: ElementTree.Element, width: float) -> tuple[float, float]:
    """Return the left and right end of a text of this width."""
    anchor = {"middle": 0.5, "end": 1.0}.get(text.attrib.get("text-anchor", ""), 0.0)
    left = float(text.attrib["x"]) - anchor * width
    return left, left + width


def test_charts_are_well_formed_with_texts_inside_and_apart(report: SignatureReport) -> None:
    for chart in charts_of(report):
        written = standalone_svg(chart)
        assert MARK in written[:400]
        root = ElementTree.fromstring(written)
        width, height = (float(root.attrib[name]) for name in ("width", "height"))
        assert root.attrib["viewBox"] == f"0 0 {root.attrib['width']} {root.attrib['height']}"
        assert root.find(f"{SVG}title") is not None
        assert root.find(f"{SVG}desc") is not None
        assert not list(root.iter(f"{SVG}path"))
        assert not list(root.iter(f"{SVG}script"))
        drawing = root.find(f"{SVG}g")
        assert drawing is not None
        assert list(drawing.iter(f"{SVG}text"))
        boxes = []
        for text in drawing.iter(f"{SVG}text"):
            small = "v-s" in text.attrib["class"].split()
            left, right = place_of(text, text_width(text.text or "", 10 if small else 12))
            y = float(text.attrib["y"])
            assert left >= -16, text.text
            assert right <= width + 16, text.text
            assert 0 < y < height
            # The size of the letters themselves, without the space around them.
            letters = 0.8 * text_width(text.text or "", 10.5 if small else 12)
            boxes.append((*place_of(text, letters), y - (7 if small else 8), y, text.text))
        for a, b in combinations(boxes, 2):
            assert a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2], (chart.id, a, b)


def test_charts_need_outcomes_places_and_traces() -> None:
    report = small_report(outcomes=False, places=False)
    for name in (OVERALL, *report.groups):
        assert group_charts(report, name).keys() == {"occurrence", "together"}
    assert charts_of(small_report(traces=0)) == []


def test_charts_have_stable_file_names(report: SignatureReport) -> None:
    names = [chart.id for chart in charts_of(report)]
    assert {"prevalence-plain", "together-plain"} <= set(names)
    again = signature_report(small_input(), Resampling(50))
    assert names == [chart.id for chart in charts_of(again)]
    assert len(names) == len(set(names))
    assert all(name.isascii() and name == name.lower() for name in names)


@given(st.sets(st.text(max_size=80), max_size=12))
def test_file_names_are_plain_and_differ_without_regard_to_case(names: set[str]) -> None:
    parts = file_names(names)
    assert len({part.lower() for part in parts.values()}) == len(names)
    for part in parts.values():
        assert part
        assert len(part) <= 60
        assert set(part) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
        assert not part.startswith((".", "-"))


@given(st.text(max_size=60), st.floats(30, 300), st.integers(1, 4))
@settings(max_examples=80)
def test_wrapped_text_keeps_to_its_width_and_lines(text: str, width: float, most: int) -> None:
    lines = wrapped_lines(text, width, max_lines=most)
    assert 1 <= len(lines) <= most
    assert all(text_width(line) <= width or len(line) == 1 for line in lines)
    assert text_width(clipped_text(text, width)) <= width


@given(st.text(max_size=40))
def test_escaped_text_is_text_in_elements_and_attributes(text: str) -> None:
    element = ElementTree.fromstring(f'<a b="{escaped(text)}">{escaped(text)}</a>')
    assert element.text in (element.attrib["b"], None)
    assert not list(element)


def test_mean_at_the_end_of_the_scale_has_room() -> None:
    scope = FigureScope("group")
    mean = scope.figure("modes_per_failed_trace", Figure(value=14.0, interval=(14.0, 14.0), n=2))
    index = FigureIndex([mean, scope.number("traces_with_modes", 2, condition="14")])
    drawing = ElementTree.fromstring(
        f"<g>{''.join(distribution_bars(index.table('group')).parts)}</g>"
    )
    (label,) = (text for text in drawing.iter("text") if (text.text or "").startswith("mean"))
    bold = 1.1 * text_width(label.text or "")
    assert float(label.attrib["x"]) + bold / 2 <= WIDTH


def test_images_without_the_library_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    check_format("svg")
    with pytest.raises(MastError, match=r"mast-tui\[figures\]"):
        check_format("pdf")


def test_images_have_the_mark_and_no_style_that_the_library_misreads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[bytes] = []
    head = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(17)

    def svg2pdf(*, bytestring: bytes) -> bytes:
        drawn.append(bytestring)
        return b"%PDF-1.5\n%%EOF\n"

    library = SimpleNamespace(svg2pdf=svg2pdf, svg2png=lambda bytestring, scale: head + b"IEND")
    monkeypatch.setitem(sys.modules, "cairosvg", library)
    for image, beginning in (("pdf", b"%PDF"), ("png", head)):
        pieces = draw_image(sample.chart(), image)
        assert not isinstance(pieces, str)
        content = b"".join(pieces)
        assert content.startswith(beginning)
        assert MARK.encode() in content
    assert b".v-halo" not in drawn[0]
    assert b"text-rendering" not in drawn[0]
    assert b".v-failed {" in drawn[0]
    ElementTree.fromstring(drawn[0])


def texts_of(written: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(written).iter(f"{SVG}text")]


def test_chart_has_a_title_and_caption_unless_it_is_bare_or_inline() -> None:
    written = standalone_svg(sample.chart())
    assert texts_of(written)[0].startswith("Shares of")
    assert texts_of(written)[-2] == "n = 8; labels: gold."
    bare = standalone_svg(sample.chart(), bare=True)
    assert MARK in bare[:200]
    assert texts_of(bare) == [sample.SCRIPT]
    root = ElementTree.fromstring(bare)
    assert (root.attrib["width"], root.attrib["height"]) == ("680", "60")
    assert root.findtext(f"{SVG}desc") == "n = 8; labels: gold."

    root = ElementTree.fromstring(inline_svg(sample.chart()))
    assert root.attrib["aria-labelledby"] == "shares-t shares-d"
    assert "style" not in {child.tag for child in root}
