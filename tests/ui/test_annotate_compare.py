"""Comparing a step with the earlier one that it repeats."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from mast_tui.ui.annotate import text_screen
from mast_tui.ui.annotate.text_screen import CompareScreen
from mast_tui.ui.text.differences import TextComparison, compare
from mast_tui.ui.trace_view.span_view import SpanView
from tests.ui.settle import settle
from tests.ui.stage import Stage, stage, write_trace
from tests.waiting import PATIENCE


def trace_of(path: Path, *texts: str) -> Path:
    return write_trace(path, [{"role": "assistant", "content": text} for text in texts])


def shown(on: Stage) -> str:
    """What the dialog shows."""
    assert isinstance(on.app.screen, CompareScreen)
    return on.app.screen.query_one(SpanView).text


async def test_a_step_that_repeats_another_to_the_letter_is_only_said_to(tmp_path: Path) -> None:
    async with stage(trace_of(tmp_path / "same.json", "Look.", "Other.", "Look.")) as on:
        await on.press("=")
        assert "#1 repeats no step before it" in on.message
        await on.press("G", "=")
        assert "#3 is identical to #1" in on.message
        assert not isinstance(on.app.screen, CompareScreen)


async def test_what_differs_is_shown_in_a_dialog(tmp_path: Path) -> None:
    path = trace_of(tmp_path / "near.json", "Read page 1 of it.", "Read page 2 of it.")
    async with stage(path) as on:
        await on.press("G", "=")
        assert shown(on) == "- Read page 1 of it.\n+ Read page 2 of it."
        await on.press("escape")
        assert on.number == 2


async def test_long_texts_are_compared_behind_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = Event()

    def compared(earlier: str, later: str) -> TextComparison:
        assert may_go_on.wait(PATIENCE)
        return compare(earlier, later)

    monkeypatch.setattr(text_screen, "AT_ONCE_CHARS", 1000)
    monkeypatch.setattr(text_screen, "compare", compared)
    lead = "The same words again and again. " * 60
    path = trace_of(tmp_path / "long.json", f"{lead}one", f"{lead}two", "Done.")
    async with stage(path) as on:
        await on.send("j", "=")
        assert "Comparing #1 with #2 …" in on.message
        # Whoever has gone on is not shown it.
        await on.send("j")
        may_go_on.set()
        await settle(on.pilot)
        assert not isinstance(on.app.screen, CompareScreen)
        assert on.number == 3
        await on.press("k", "=")
        assert shown(on).endswith("+ " + lead + "two")
