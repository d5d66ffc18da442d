"""Texts that wait while the cursor moves, and spans that count as read."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.ui.annotate import screen as annotate
from tests.ui.settle import settle
from tests.ui.stage import Stage, call, finding, read_trace, result, stage, suggest, write_trace

pytestmark = pytest.mark.usefixtures("every_frame")

WORDS = "and more words than any row of the timeline has room for, whatever its width " * 4
LONG = [
    {"role": "assistant" if i else "user", "content": f"Step number {i + 1}: {WORDS}"}
    for i in range(12)
]


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """Twelve messages of which no row shows the whole text."""
    return write_trace(tmp_path / "long.json", LONG)


@pytest.fixture
def _never_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let texts wait while the cursor moves, on any machine."""
    monkeypatch.setattr(annotate, "SPAN_WAIT", 3600.0)
    # News from another window would show the span at once.
    monkeypatch.setattr(annotate.AnnotateScreen, "show_changes_of_others", lambda _: None)


def shown_number(on: Stage) -> int:
    return int(on.annotate.span_view.text.removeprefix("Step number ").partition(":")[0])


@pytest.mark.usefixtures("_never_at_rest")
async def test_texts_wait_while_the_cursor_moves(long: Path) -> None:
    async with stage(long) as on:
        await on.send("j")
        assert (on.number, shown_number(on)) == (2, 2)
        await on.send(*"jjjj")
        assert (on.number, shown_number(on)) == (6, 2)
        assert on.annotate.text_waits
        await on.send("1", "3")
        assert (shown_number(on), on.labels) == (2, {("1.3", 6, 6)})
        await on.send("d")
        assert shown_number(on) == 6
        await on.send("j", "j", "w")
        assert shown_number(on) == 8


async def test_a_resting_cursor_shows_and_reads_its_span(long: Path) -> None:
    async with stage(long) as on:
        await on.press(*"jjjjj")
        assert (on.number, shown_number(on)) == (6, 6)
        assert not on.annotate.text_waits
        assert "#6 message" in on.text
        await on.press("g")
        for _ in LONG:
            await on.press("j")
        on.annotate.drawn_spans.write()
        await settle(on.pilot)
        assert on.session.unread() == ()


@pytest.mark.usefixtures("_never_at_rest")
async def test_answers_go_to_the_suggestion_at_the_cursor(long: Path, workspace: Path) -> None:
    trace = read_trace(long)
    findings = [finding(trace, "1.3", 2, 2), finding(trace, "2.6", 4, 4, why="stuck")]
    suggest(workspace, trace, findings)
    async with stage(long, workspace=workspace) as on:
        await on.send(*"jjj")
        assert shown_number(on) == 2
        await on.until(lambda: "stuck" in on.text)
        await on.send("a")
        assert on.labels == {("2.6", 4, 4)}


@pytest.mark.usefixtures("_never_at_rest")
async def test_drawn_spans_count_as_read(long: Path) -> None:
    async with stage(long) as on:
        await on.send(*"jjj")
        on.annotate.drawn_spans.write()
        await settle(on.pilot)
        assert [index + 1 for run in on.session.unread() for index in run] == list(range(3, 13))
        await on.send("w")
        await on.send("escape")
        on.annotate.drawn_spans.write()
        await settle(on.pilot)
        assert [index + 1 for run in on.session.unread() for index in run] == [3, *range(5, 13)]


async def test_another_trace_starts_unread(long: Path, tmp_path: Path) -> None:
    steps = [LONG[0], *(s for n in range(4) for s in (call(n, "f", WORDS), result(n, WORDS)))]
    write_trace(tmp_path / "other.json", steps)
    async with stage(long, tmp_path / "other.json") as on:
        await on.press("enter")
        await on.press(*"jjjj")
        await on.press("}")
        on.annotate.drawn_spans.write()
        await settle(on.pilot)
        assert sum(map(len, on.session.unread())) == len(on.annotate.trace or ())
