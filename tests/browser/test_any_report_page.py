"""The page of any report in a real browser."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from mast_tui.reports.render.html import render_html
from tests.browser.chromium import Page, browser
from tests.reports import sample

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
