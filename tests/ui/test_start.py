"""The first frames of the app: prefetched spans, early keys, and the garbage collector."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from textual.css.stylesheet import Stylesheet

from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.index.lines import LineSpans
from mast_tui.traces.library import read_fully, samples_folder
from mast_tui.traces.model import Spans
from mast_tui.traces.scan.big_documents import BigDocuments
from mast_tui.traces.scan.file_reader import read_one
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.app import MastApp
from mast_tui.ui.dialogs.help import HelpScreen
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.ui.options import AppOptions
from mast_tui.ui.services import traces as trace_service
from mast_tui.ui.services.traces import Prefetch
from mast_tui.ui.styles import DIALOGS
from mast_tui.ui.trace_view.first_spans import FirstSpans, FirstStrip
from mast_tui.ui.widgets.bars import TitleBar
from tests.benchmarks.rollouts import write_long
from tests.ui.settle import settle

pytestmark = pytest.mark.usefixtures("every_frame")

SAMPLE = samples_folder() / "cart-valkey-noeviction.jsonl"


def options(*paths: Path) -> AppOptions:
    return AppOptions(paths, False, None, None, None, False, False)


class AppWithoutWorkspace(MastApp):
    """The app as far as its first frames: no workspace opens."""

    def open_workspace(self) -> None:  # type: ignore[override]
        """Leave it closed."""


def test_a_single_file_is_prefetched(monkeypatch: pytest.MonkeyPatch) -> None:
    cached: list[Spans] = []

    def load_cached(spans: LineSpans) -> None:
        cached.append(spans)

    monkeypatch.setattr(LineSpans, "load_cached", load_cached)
    ahead = Prefetch(options(SAMPLE))
    assert ahead.single
    report = ahead.report()
    assert report is not None
    assert [len(trace) > 0 for trace in report.traces] == [True]
    assert cached == [trace.spans for trace in report.traces]
    for other in (options(SAMPLE.parent), options(SAMPLE, SAMPLE)):
        assert not Prefetch(other).single
        assert Prefetch(other).report() is None


async def test_files_open_in_the_annotate_screen_and_folders_in_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_again: list[Stylesheet] = []
    monkeypatch.setattr(Stylesheet, "reparse", read_again.append)
    app = AppWithoutWorkspace(options(SAMPLE), load_mast())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("j", "j", "j", "k")  # before the first screen is open
        await settle(pilot)
        assert isinstance(app.screen, AnnotateScreen)
        assert app.screen.timeline.index == 2
        assert not app.screen_stack[0].query(FirstSpans)
        assert not app.screen_stack[0].query(TitleBar)
        assert not app.stylesheet.has_source(str(DIALOGS))
        await pilot.press("?")
        await settle(pilot)
        assert isinstance(app.screen, HelpScreen)
        assert app.stylesheet.has_source(str(DIALOGS))
        assert read_again == []
    app = AppWithoutWorkspace(options(SAMPLE.parent), load_mast())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("ctrl+j")  # Enter, typed before the terminal was set up
        await settle(pilot)
        assert isinstance(app.screen, LibraryScreen)
        assert "then the first of the queue opens" in app.screen.hints.message
        assert app.screen.table.row_count == len(app.catalog.traces) > 0


class AppBeforeFirstScreen(MastApp):
    """The app before its first screen."""

    def _open_first_screen(self) -> None:
        """Leave it closed."""


@pytest.mark.parametrize("size", [(120, 40), (99, 30), (80, 24)])
async def test_first_spans_are_drawn_at_their_final_position(size: tuple[int, int]) -> None:
    early = AppBeforeFirstScreen(options(SAMPLE), load_mast())
    async with early.run_test(size=size) as pilot:
        await pilot.pause()
        (spans,) = early.query(FirstSpans)
        spans_region = spans.region
        rows = [spans.render_line(y).text for y in range(spans.scrollable_content_region.height)]
        (strip,) = early.query(FirstStrip)
        overview_state = strip.region, strip.cells
        (title,) = early.query(TitleBar)
        title_text = title.render_line(0).text
    app = AppWithoutWorkspace(options(SAMPLE), load_mast())
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        assert isinstance(app.screen, AnnotateScreen)
        timeline = app.screen.timeline
        assert timeline.region == spans_region
        assert (app.screen.overview.region, app.screen.overview.cells) == overview_state
        assert [timeline.render_line(y).text for y in range(len(rows))] == rows
        assert len(set(rows)) > 3
        assert title_text.split()[0] == app.screen.title_bar.render_line(0).text.split()[0]


async def test_the_first_frame_shows_cached_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = tmp_path / "rollout.jsonl"
    big = BigDocuments(folder=tmp_path / "kept", line_file_bytes=0)
    write_long(rollout, 700_000, seed=3, block_bytes=100_000)
    (whole,) = read_one(rollout, True, big).traces
    whole.spans.read_in_background()
    read_fully(whole)
    whole.spans.stop_background_read()
    monkeypatch.setattr(trace_service, "read_file", partial(read_one, big=big))
    early = AppBeforeFirstScreen(options(rollout), load_mast())
    async with early.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        (spans,) = early.query(FirstSpans)
        assert spans.trace is not None
        assert len(spans.trace) < len(whole)  # the frame has not waited for them
        (title,) = early.query(TitleBar)
        title_text = title.render_line(0).text
        assert f"{len(whole)} spans" in title_text
        assert "read" not in title_text
        (strip,) = early.query(FirstStrip)
        cells = strip.cells
    app = AppWithoutWorkspace(options(rollout), load_mast())
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert isinstance(app.screen, AnnotateScreen)
        assert (app.screen.timeline.row_count, app.screen.overview.cells) == (len(whole), cells)


def test_garbage_collection_starts_again() -> None:
    code = """
import gc
from mast_tui.gc_tuning import collect_again
collect_again()
assert gc.isenabled() and not gc.get_freeze_count()  # it was never off
gc.disable()
collect_again()
assert gc.isenabled() and gc.get_freeze_count()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
