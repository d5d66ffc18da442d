"""The page of a run in a real browser."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Final

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from tests.browser.chromium import Page, browser
from tests.cli.test_page import LABELS, MARKUP, TEXTS, write_trace

AXE: Final = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
VIOLATIONS: Final = """
axe.run().then((result) => result.violations.map((one) => [one.id, one.nodes[0].html]))
"""
SHOW_ALL: Final = """
(() => {
  const style = document.createElement("style");
  style.textContent = "article { content-visibility: visible !important }";
  document.head.append(style);
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
})()
"""
SHOWN: Final = "[...document.querySelectorAll('article')].filter((one) => !one.hidden).length"
FRAMES: Final = (
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
)


def labelled_page(folder: Path) -> Path:
    """Write the page of a small run with labels of people and of a judge."""
    trace = write_trace(folder / "run.jsonl")
    labels = folder / "labels.csv"
    labels.write_text(LABELS, "utf-8")
    file = folder / "run.html"
    for command in (
        ("judge", trace, "--judge", "rules", "--rules", "all", "--quiet"),
        ("import", labels, "--format", "csv-long", "--allow-new"),
        ("page", trace, "-o", file),
    ):
        words = [str(word) for word in (*command, "--workspace", folder / "workspace.db")]
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            assert run(split_command(words)) == 0
    return file


def test_the_page_of_a_run(tmp_path: Path, program: str) -> None:
    file = labelled_page(tmp_path)
    with browser(program, tmp_path / "profile") as page:
        for width in (1280, 390):
            for scheme in ("light", "dark"):
                page.size(width)
                page.prefer(scheme)
                page.open(file)
                assert page.value("document.documentElement.scrollWidth") == width
                page.value(SHOW_ALL)
                page.value(f"{AXE};0")
                assert page.value(VIOLATIONS) == [], (width, scheme)
        assert page.value("window.hacked") is None
        assert MARKUP in page.value("document.body.innerText")
        search_keeps_what_holds_the_text(page)
        assert page.said() == []
        assert {url.partition("#")[0] for url in page.asked_for()} == {file.as_uri()}


def search_keeps_what_holds_the_text(page: Page) -> None:
    """Find a text, and leave the search by a link to a span that it hides."""
    page.value("find.value = 'LINE 41'; search()")
    assert page.value(SHOWN) == 1
    page.value("next()")
    assert page.value("document.querySelector('#span-4 details').open") is True
    page.value("location.hash = '#span-1'")
    page.value(FRAMES)
    assert page.value(SHOWN) == len(TEXTS)
    page.value("theme.click()")
    assert page.value("getComputedStyle(document.body).colorScheme") == "light"
