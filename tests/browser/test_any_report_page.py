"""The pages of runs and reports in a real browser."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from mast_tui.reports.render.html import render_html
from mast_tui.reports.signatures import signatures_report
from tests.browser.chromium import Page, browser
from tests.figures.signatures.small_report import HOSTILE, small_report
from tests.reports import sample
from tests.reports.small_extras import small_extras

CONTRAST = """
(() => {
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255);
    const [r, g, b] = parts.map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const found = {};
  for (const kind of ["figcaption", "ul.notes", ".lead", "td", ".ci", ".why", "h3", "nav a",
                      "button.copy", "summary", "dt"]) {
    const ink = light(getComputedStyle(document.querySelector(kind)).color);
    found[kind] = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  }
  return found;
})()
"""
BEYOND = """
[...document.querySelectorAll("body *")].filter((one) => {
  if (one.closest(".box") && !one.matches(".box")) return false;
  const { left, right, width } = one.getBoundingClientRect();
  return width > 0 && (left < 0 || right > innerWidth);
}).map((one) => one.outerHTML.slice(0, 80))
"""
COLUMN = """
[...document.querySelector("table.sorts").tBodies].map((body) =>
  [...body.rows].map((row) => row.cells[4].dataset.v))
"""
HEAD = 'document.querySelector("table.sorts").tHead.rows[0].cells[4]'


def test_the_page_of_any_report(tmp_path: Path, program: str) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_html(sample.report()), "utf-8")
    with browser(program, tmp_path / "profile") as page:
        for width in (1280, 390):
            for scheme in ("light", "dark"):
                page.size(width)
                page.prefer(scheme)
                page.open(file)
                assert page.value("innerWidth") == width
                assert page.value("document.documentElement.scrollWidth") == width
                assert page.value(BEYOND) == []
                contrasts: dict[str, float] = page.value(CONTRAST)
                assert min(contrasts.values()) >= 4.5, contrasts
        assert page.value("window.hacked") is None
        folds_are_closed_until_asked_for(page)
        rows_sort_within_their_groups(page)
        a_copy_is_the_table(page)
        assert page.said() == []
        assert {url.partition("#")[0] for url in page.asked_for()} == {file.as_uri()}


def folds_are_closed_until_asked_for(page: Page) -> None:
    assert page.value('document.querySelectorAll("details").length') == 2
    assert page.value('document.querySelectorAll("details[open]").length') == 0
    seen = 'document.querySelector("#modes-folded table").checkVisibility()'
    assert page.value(seen) is False
    page.value(
        """new Promise((done) => {
          addEventListener("hashchange", () => requestAnimationFrame(() => done()));
          location.hash = "#modes-folded";
        })"""
    )
    assert page.value(seen) is True
    assert page.value('document.querySelectorAll("details[open]").length') == 1


def rows_sort_within_their_groups(page: Page) -> None:
    before = page.value(COLUMN)
    assert [len(group) for group in before] == [2, 4, 1]
    page.value(f"{HEAD}.querySelector('button').focus()")
    for order, up in (("ascending", True), ("descending", False)):
        press(page, "Enter")
        assert page.value(f"{HEAD}.getAttribute('aria-sort')") == order
        groups: list[list[str]] = page.value(COLUMN)
        for group in groups:
            numbers = [float(value) for value in group if value]
            assert numbers == sorted(numbers, reverse=not up)
            assert "" not in group[: len(numbers)], "what has no value stands last"
    page.value(f"{HEAD}.querySelector('button').click()")


def press(page: Page, key: str) -> None:
    """Press a key that also acts on what has the focus."""
    for kind in ("keyDown", "keyUp"):
        page.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, text="\r",
                  windowsVirtualKeyCode=13)  # fmt: skip


def a_copy_is_the_table(page: Page) -> None:
    copied = page.value(
        """new Promise((done) => {
          Object.defineProperty(navigator, "clipboard", { configurable: true, value:
            { writeText: async (text) => done(text) } });
          document.querySelector("button.copy").click();
        })"""
    )
    fallback = page.value(
        """new Promise((done) => {
          Object.defineProperty(navigator, "clipboard", { value: undefined });
          document.addEventListener("copy", () => done(document.activeElement.value));
          document.querySelector("button.copy").click();
        })"""
    )
    assert copied == fallback
    rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(copied)))
    assert len(rows) == 7
    first = next(row for row in rows if row["mode"] == "Disobey task specification")
    assert (first["κ"], first["κ low"], first["κ high"]) == ("0.6149", "0.4815", "0.7249")
    assert (first["n"], first["present"], first["p"]) == ("1234", "0.125", "1e-05")
    assert {row["mode"] for row in rows} >= {sample.HOSTILE[0], sample.HOSTILE[1]}


LONGEST_GROUP = 6_000
"""The highest group in CSS pixels at a width of 1280, with all folds closed."""

FIGURES = """
[...document.querySelectorAll("figure")].filter((one) => one.querySelector("svg")).map((figure) => {
  const box = figure.querySelector(".box"), svg = figure.querySelector("svg");
  const outer = box.getBoundingClientRect(), inner = svg.getBoundingClientRect();
  return {
    id: figure.closest("[id]").id,
    left: outer.left, right: outer.right, width: outer.width, height: outer.height,
    drawn: inner.width, tall: inner.height,
    // How far the box scrolls, beside how much of the drawing lies beyond its edge.
    reach: box.scrollWidth, text: svg.querySelectorAll("text").length,
    seen: box.checkVisibility({ opacityProperty: true, visibilityProperty: true }),
  };
})
"""
OVERLAPS = """
[...document.querySelectorAll("figure svg")].flatMap((svg) => {
  const canvas = svg.viewBox.baseVal, said = [];
  const boxes = [...svg.querySelectorAll("text")].map((text) => {
    const box = text.getBBox();
    // The line is higher than its letters: what counts is about the middle of it.
    return { t: text.textContent, l: box.x, r: box.x + box.width,
             u: box.y + 0.3 * box.height, d: box.y + 0.8 * box.height };
  });
  boxes.forEach((a, i) => {
    if (a.l < -1 || a.r > canvas.width + 1 || a.u < 0 || a.d > canvas.height) {
      said.push(`beyond the canvas: ${a.t}`);
    }
    for (const b of boxes.slice(i + 1)) {
      if (a.l < b.r && b.l < a.r && a.u < b.d && b.u < a.d) said.push(`${a.t} on ${b.t}`);
    }
  });
  return said;
})
"""
OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
HEIGHT = 'document.querySelector("#group-plain").getBoundingClientRect().height'
INK = 'getComputedStyle(document.querySelector("figure text")).fill'


def test_the_page_of_signatures(tmp_path: Path, program: str) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_html(signatures_report(small_report(), extras=small_extras())), "utf-8")
    inks = set()
    with browser(program, tmp_path / "profile") as page:
        for width, scheme in (
            (1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")
        ):  # fmt: skip
            page.size(width)
            page.prefer(scheme)
            page.open(file)
            if width == 1280:
                assert 0 < page.value(HEIGHT) <= LONGEST_GROUP
            page.value(OPEN)
            every_figure_is_seen(page, width)
            assert page.value(OVERLAPS) == []
            inks.add(page.value(INK))
        foreign_words_are_words(page)
        assert page.said() == []
        assert {url.partition("#")[0] for url in page.asked_for()} == {file.as_uri()}
        # What is tried here would be seen above, had the page tried it.
        scripts_of_others_are_refused(page)
    assert len(inks) == 2, "light and dark show the same ink"


def every_figure_is_seen(page: Page, width: int) -> None:
    assert page.value("innerWidth") == width
    assert page.value("document.documentElement.scrollWidth") == width
    figures: list[dict[str, Any]] = page.value(FIGURES)
    assert len(figures) > 15
    for one in figures:
        assert one["seen"], one
        assert one["text"] > 0, one
        assert one["left"] >= 0, one
        assert one["right"] <= width, one
        assert min(one["width"], one["height"], one["drawn"], one["tall"]) > 10, one
        assert one["reach"] >= one["drawn"] - 1, one


def foreign_words_are_words(page: Page) -> None:
    assert page.value("window.hacked") is None
    assert page.value("document.scripts.length") == 1
    assert page.value("document.images.length") == 0
    said: str = page.value("document.body.innerText")
    assert "<script>window.hacked=3</script>" in said
    assert "onerror=window.hacked=4" in said
    assert HOSTILE.split("\u202e")[0] in said


def scripts_of_others_are_refused(page: Page) -> None:
    page.value(
        """(() => {
          const script = document.createElement("script");
          script.textContent = "window.hacked = 6";
          document.body.append(script);
          document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.hacked = 7'>");
        })()"""
    )
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.value("window.hacked") is None
    assert any("Content Security Policy" in said for said in page.said())
