"""Charts: words as words inside the canvas, whole files, and foreign names that do no harm."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.cli.shared.report_files import ImageError, check_format, draw_image
from mast_tui.figures.record import FigureIndex, FigureScope
from mast_tui.figures.signatures.model import OVERALL
from mast_tui.figures.signatures.report import SignatureReport
from mast_tui.reports.charts import distribution, file_names, group_charts
from mast_tui.reports.model import Chart
from mast_tui.reports.render.svg import (
    MARK,
    WIDTH,
    clipped_text,
    escaped,
    standalone_svg,
    text_width,
    wrapped_lines,
)
from tests.figures.signatures.small_report import small_report

KINDS = {
    "occurrence",
    "distribution",
    "shapes",
    "prevalence",
    "difference",
    "categories",
    "onset",
    "order",
    "chains",
    "together",
}
SVG = "{http://www.w3.org/2000/svg}"


def charts_of(report: SignatureReport) -> list[Chart]:
    """The charts of all groups."""
    names = (OVERALL, *report.groups)
    return [chart for name in names for chart in group_charts(report, name).values()]


@pytest.fixture(scope="module")
def report() -> SignatureReport:
    return small_report()


def test_every_figure_says_n_whose_labels_which_taxonomy_and_what_is_drawn(
    report: SignatureReport,
) -> None:
    figures = charts_of(report)
    names = (OVERALL, *report.groups)
    assert all(group_charts(report, name).keys() == KINDS for name in names)
    assert len(figures) == len(names) * len(KINDS)
    for figure in figures:
        assert "n = " in figure.note
        assert "Labels: " in figure.note
        assert report.inputs.taxonomy_ref in figure.note
        assert figure.note.split(":")[0] in {
            "Bars",
            "Dots",
            "Cells",
            "Rows",
            "Parts of the bar",
            "Parts of the bars",
        }


def test_figures_are_well_formed_with_words_as_text_inside_the_canvas(
    report: SignatureReport,
) -> None:
    for chart in charts_of(report):
        root = ElementTree.fromstring(standalone_svg(chart))
        width, height = (float(root.attrib[name]) for name in ("width", "height"))
        assert root.attrib["viewBox"] == f"0 0 {root.attrib['width']} {root.attrib['height']}"
        assert root.find(f"{SVG}title") is not None
        assert root.find(f"{SVG}desc") is not None
        assert not list(root.iter(f"{SVG}path"))
        assert not list(root.iter(f"{SVG}script"))
        drawing = root.find(f"{SVG}g")
        assert drawing is not None
        assert list(drawing.iter(f"{SVG}text"))
        for text in drawing.iter(f"{SVG}text"):
            x, y = float(text.attrib["x"]), float(text.attrib["y"])
            room = text_width(text.text or "", 10 if "v-s" in text.attrib["class"] else 12)
            part = {"middle": 0.5, "end": 1.0}.get(text.attrib.get("text-anchor", ""), 0.0)
            assert x - part * room >= -16, text.text
            assert x + (1 - part) * room <= width + 16, text.text
            assert 0 < y < height


def test_words_of_a_figure_never_lie_on_each_other(report: SignatureReport) -> None:
    for chart in charts_of(report):
        root = ElementTree.fromstring(standalone_svg(chart))
        drawing = root.find(f"{SVG}g")
        assert drawing is not None
        boxes = []
        for text in drawing.iter(f"{SVG}text"):
            small = "v-s" in text.attrib["class"].split()
            # The size of the letters themselves, without the room around them.
            wide = 0.8 * text_width(text.text or "", 10.5 if small else 12)
            part = {"middle": 0.5, "end": 1.0}.get(text.attrib.get("text-anchor", ""), 0.0)
            left = float(text.attrib["x"]) - part * wide
            y = float(text.attrib["y"])
            boxes.append((left, left + wide, y - (7 if small else 8), y, text.text))
        for place, a in enumerate(boxes):
            for b in boxes[place + 1 :]:
                apart = a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]
                assert apart, (chart.id, a, b)


def test_groups_and_sides_that_have_nothing_have_no_figure() -> None:
    report = small_report(outcomes=False, places=False)
    for name in (OVERALL, *report.groups):
        assert group_charts(report, name).keys() == {"occurrence", "together"}


def test_files_have_stable_names(report: SignatureReport) -> None:
    names = [chart.id for chart in charts_of(report)]
    assert {"prevalence-plain", "together-plain"} <= set(names)
    assert names == [chart.id for chart in charts_of(small_report())]
    assert len(names) == len(set(names))
    assert all(name.isascii() and name == name.lower() for name in names)
    assert all(MARK in standalone_svg(chart)[:400] for chart in charts_of(report))


@given(st.sets(st.text(max_size=80), max_size=12))
def test_file_names_are_plain_and_unlike_even_where_case_does_not_count(names: set[str]) -> None:
    parts = file_names(names)
    assert len({part.lower() for part in parts.values()}) == len(names)
    for part in parts.values():
        assert part
        assert len(part) <= 60
        assert set(part) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
        assert not part.startswith((".", "-"))


@given(st.text(max_size=60), st.floats(30, 300), st.integers(1, 4))
@settings(max_examples=80)
def test_wrapped_words_keep_to_the_width_and_the_number_of_lines(
    text: str, width: float, most: int
) -> None:
    lines = wrapped_lines(text, width, max_lines=most)
    assert 1 <= len(lines) <= most
    assert all(text_width(line) <= width or len(line) == 1 for line in lines)
    assert text_width(clipped_text(text, width)) <= width


@given(st.text(max_size=40))
def test_whatever_a_name_holds_is_text_in_an_element_and_in_an_attribute(text: str) -> None:
    element = ElementTree.fromstring(f'<a b="{escaped(text)}">{escaped(text)}</a>')
    assert element.text in (element.attrib["b"], None)
    assert not list(element)


def test_a_report_without_any_trace_has_no_figures() -> None:
    assert charts_of(small_report(traces=0)) == []


def test_a_mean_at_the_end_of_the_scale_has_room_for_bold_letters() -> None:
    scope = FigureScope("group")
    mean = scope.figure("modes_per_failed_trace", 14.0, interval=(14.0, 14.0), n=2)
    found = FigureIndex([mean, scope.number("traces_with_modes", 2, condition="14")])
    drawing = ElementTree.fromstring(f"<g>{''.join(distribution(found.table('group')).parts)}</g>")
    (words,) = (text for text in drawing.iter("text") if (text.text or "").startswith("mean"))
    bold = 1.1 * text_width(words.text or "")
    assert float(words.attrib["x"]) + bold / 2 <= WIDTH


def test_without_the_library_other_images_are_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    check_format("svg")
    with pytest.raises(ImageError, match=r"mast-tui\[figures\]"):
        check_format("pdf")


def test_images_bear_the_mark_by_which_they_are_known_again(
    report: SignatureReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = ModuleType("cairosvg")
    drawn.svg2pdf = lambda bytestring: b"%PDF-1.5\n%%EOF\n"  # type: ignore[attr-defined]
    head = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(17)
    drawn.svg2png = lambda bytestring, scale: head + b"IEND"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cairosvg", drawn)
    chart = charts_of(report)[0]
    for image, begins in (("pdf", b"%PDF"), ("png", head)):
        pieces = draw_image(chart, image)
        assert not isinstance(pieces, str)
        content = b"".join(pieces)
        assert content.startswith(begins)
        assert MARK.encode() in content
