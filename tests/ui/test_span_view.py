"""The text of a span: scrolling, wrapping, JSON, and what is drawn."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from mast_tui.ui.text.highlighting import TextPart
from mast_tui.ui.text.json_view import SLICE_CHARS
from mast_tui.ui.text.layout import CHUNK_CHARS
from mast_tui.ui.trace_view.span_view import COUNTED_CHARS, SpanView
from tests import waiting
from tests.ui.counting_text import CountingText
from tests.ui.stage import Message, Stage, call, result, stage, write_trace

HEIGHT = 20


class AppWithText(App[None]):
    """An app that consists of a text."""

    CSS = "SpanView { height: 1fr; } .span-view--match { text-style: underline; }"

    def compose(self) -> ComposeResult:
        yield SpanView()


@asynccontextmanager
async def view_of(text: str) -> AsyncIterator[tuple[SpanView, Pilot[None]]]:
    async with AppWithText().run_test(size=(60, HEIGHT)) as pilot:
        view = pilot.app.query_one(SpanView)
        view.show_text(text)
        await pilot.pause()
        yield view, pilot


def drawn_lines(view: SpanView) -> list[str]:
    return [view.render_line(y).text.strip() for y in range(HEIGHT)]


def numbers(view: SpanView) -> list[int]:
    return [int(line.split()[1]) for line in drawn_lines(view) if line]


LOG = "".join(f"line {i} \n" for i in range(40_000)).rstrip("\n")


async def test_texts_are_scrolled_by_keys_and_wheel() -> None:
    async with view_of(LOG) as (view, pilot):
        assert numbers(view) == list(range(HEIGHT))
        view.move_by(3)
        assert numbers(view)[0] == 3
        view.move_page(1)
        assert numbers(view)[0] == 3 + HEIGHT - 1
        view.move_to(view.row_count - 1)
        assert numbers(view) == list(range(40_000 - HEIGHT, 40_000))
        view.move_by(1)
        assert numbers(view)[-1] == 39_999
        view.move_page(-1)
        assert numbers(view)[-1] == 39_999 - HEIGHT + 1
        view.move_to(0)
        view.move_by(-1)
        assert numbers(view)[0] == 0
        view.scroll_to(y=5, animate=False, force=True)
        await pilot.pause()
        assert numbers(view)[0] == 5
        view.scroll_to(y=view.max_scroll_y, animate=False, force=True)
        await pilot.pause()
        assert numbers(view)[-1] == 39_999
        view.scroll_relative(y=-2, animate=False, force=True)
        await pilot.pause()
        assert numbers(view)[-1] == 39_997
        offset = LOG.index("line 20000 ")
        view.reveal(offset, offset + 4)
        first = numbers(view)[0]
        await pilot.resize_terminal(40, HEIGHT)
        await pilot.pause()
        assert numbers(view)[0] == first


@pytest.mark.parametrize("way", [1, -1])
async def test_no_line_is_skipped_beside_estimated_rows(way: int) -> None:
    # The first chunk has far more rows than the others, so that every estimate is wrong.
    text = "\n" * CHUNK_CHARS + "".join(f"line {i} {'x ' * 300}\n" for i in range(2500))
    assert len(text) > COUNTED_CHARS
    async with view_of(text) as (view, _):
        view.reveal(text.index("line 1200 "), text.index("line 1200 ") + 4)
        seen = [int(line.split()[1]) for line in drawn_lines(view) if line.startswith("line")]
        for _ in range(80):
            view.move_page(way)
            seen += [int(line.split()[1]) for line in drawn_lines(view) if line.startswith("line")]
        assert sorted(set(seen)) == list(range(min(seen), max(seen) + 1))
        assert max(seen) - min(seen) > 100


async def test_counting_rows_moves_nothing() -> None:
    text = "\n" * CHUNK_CHARS + "".join(f"line {i} {'x ' * 300}\n" for i in range(1200))
    assert len(text) < COUNTED_CHARS
    async with AppWithText().run_test(size=(60, HEIGHT)) as pilot:
        view = pilot.app.query_one(SpanView)
        view.show_text(text)
        offset = text.index("line 900 ")
        view.reveal(offset, offset + 4)
        previous = drawn_lines(view)
        rows = view.row_count
        for _ in waiting.until(lambda: view._layout.complete):
            await pilot.pause()
        assert view.row_count != rows
        assert drawn_lines(view) == previous
        assert "line 900" in "".join(previous)


@pytest.mark.parametrize("line", ["x" * 100, "a line of a log\n"])
async def test_keys_read_few_chunks_of_a_huge_text(line: str) -> None:
    text = CountingText(line * (100_000_000 // len(line)))
    few = 24 * CHUNK_CHARS
    async with view_of(text) as (view, pilot):
        assert text.looked < few
        steps: list[Callable[[], object]] = [
            lambda: view.move_by(1),
            lambda: view.move_page(1),
            lambda: view.move_to(view.row_count - 1),
            lambda: view.move_by(-1),
            lambda: view.reveal(50_000_000, 50_000_010),
            lambda: view.move_page(-1),
            lambda: view.scroll_to(y=view.max_scroll_y / 3, animate=False, force=True),
            lambda: view.show_highlights([TextPart(5, 9, "match")]),
        ]
        for step in steps:
            text.looked = 0
            step()
            await pilot.pause()
            assert text.looked < few
        text.looked = 0
        view.toggle_wrap()
        await pilot.pause()
        assert text.looked < 5 * few  # rows are as long as blocks now


@pytest.mark.parametrize("wrapped", [True, False])
async def test_offsets_are_revealed(wrapped: bool) -> None:
    text = LOG + "\n" + "y" * 3000 + "needle" + "y" * 3000 + "\n" + LOG
    start = text.index("needle")
    async with view_of(text) as (view, _):
        if not wrapped:
            view.toggle_wrap()
        view.reveal(start, start + 6)
        assert "needle" in "".join(drawn_lines(view))
        top = drawn_lines(view)
        view.reveal(start, start + 6)
        assert drawn_lines(view) == top
        # What is shown at a cell leads back to its place in the text.
        y = next(y for y, line in enumerate(drawn_lines(view)) if "needle" in line)
        x = view.render_line(y).text.index("needle")
        assert view.offset_at(x, y) == start


async def test_unwrapped_lines_are_scrolled_sideways() -> None:
    line = "".join(f"{i:>10}" for i in range(200))
    async with view_of(f"short\n{line}\nshort") as (view, _):
        assert not view.move_sideways(1)
        assert len([text for text in drawn_lines(view) if text]) > 10
        view.toggle_wrap()
        assert len([text for text in drawn_lines(view) if text]) == 3
        seen = set(drawn_lines(view)[1].split())
        for _ in range(400):
            assert view.move_sideways(1)
            seen |= set(drawn_lines(view)[1].split())
        assert "199" in drawn_lines(view)[1]
        assert {str(i) for i in range(200)} <= seen
        for _ in range(400):
            view.move_sideways(-1)
        assert drawn_lines(view)[0] == "short"
        view.toggle_wrap()
        assert len([text for text in drawn_lines(view) if text]) > 10


ARGUMENTS = json.dumps({"command": "cd /srv\nmake all\nmake install", "why": "to see if it builds"})
ANSWER = json.dumps([{"step": number, "fine": True} for number in range(9)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A call whose arguments hold a script, and an answer in JSON."""
    steps: list[Message] = [
        {"role": "user", "content": "Build it."},
        call(1, "run", ARGUMENTS),
        result(1, ANSWER),
    ]
    return write_trace(tmp_path / "json.json", steps)


def lines_on(on: Stage) -> list[str]:
    view = on.annotate.span_view
    lines = [view.render_line(y).text.rstrip() for y in range(view.size.height)]
    return [line[1:] for line in lines if line]


async def test_json_is_laid_out_and_leads_to_its_source(path: Path) -> None:
    async with stage(path) as on:
        await on.press("j")
        assert lines_on(on)[:5] == [
            "{",
            '  "command": "cd /srv',
            "  make all",
            '  make install",',
            '  "why": "to see if it builds"',
        ]
        await on.press("p")
        assert lines_on(on)[0].startswith(ARGUMENTS[:40])
        assert "as they are" in on.message
        await on.press("j")
        assert lines_on(on)[0].startswith(ANSWER[:40])
        await on.press("p")
        assert lines_on(on)[:3] == ["[", "  {", '    "step": 0,']
        await on.press("k")
        assert lines_on(on)[2] == "  make all"
        view = on.annotate.span_view
        y = next(y for y, line in enumerate(lines_on(on)) if "make all" in line)
        x = view.render_line(y).text.index("all")
        assert view.offset_at(x, y) == ARGUMENTS.index("all")
        assert view.offset_at(0, y) in range(
            ARGUMENTS.index(r"\nmake all"), ARGUMENTS.index("make all") + 1
        )
        below = view.vertical_neighbour(ARGUMENTS.index("make all"), 1)
        assert ARGUMENTS[below:].startswith("make install")


async def test_long_json_is_laid_out_as_far_as_read(tmp_path: Path) -> None:
    long = json.dumps([{"step": number, "note": "x" * 50} for number in range(20_000)])
    steps: list[Message] = [{"role": "user", "content": "Go."}, call(1, "f", "{}"), result(1, long)]
    async with stage(write_trace(tmp_path / "long.json", steps)) as on:
        await on.press("G")
        view = on.annotate.span_view
        assert lines_on(on)[1:3] == ["  {", '    "step": 0,']
        pretty = view._displayed.pretty
        assert pretty is not None
        assert pretty.source_end < 10_000
        await on.press("tab")
        lines = [*lines_on(on)]
        read = pretty.source_end
        for _page in range(40):
            await on.press("pagedown")
            assert pretty.source_end - read <= 2 * SLICE_CHARS
            read = pretty.source_end
            lines += lines_on(on)
        assert read >= 2 * SLICE_CHARS
        whole = json.dumps(json.loads(long), indent=2).split("\n")
        assert set(lines) <= set(whole)
        # Far behind that the text stands as it is, and going back it is set out.
        await on.press("G")
        assert lines_on(on)[-1].endswith(f'{"x" * 9}"}}]')
        assert pretty.source_end == read
        await on.press("g")
        assert lines_on(on)[1:3] == ["  {", '    "step": 0,']


async def test_matches_behind_the_layout_are_laid_out(tmp_path: Path) -> None:
    long = json.dumps([{"step": number} for number in range(200_000)])
    steps: list[Message] = [{"role": "user", "content": "Go."}, call(1, "f", "{}"), result(1, long)]
    async with stage(write_trace(tmp_path / "long.json", steps)) as on:
        await on.press("/", *"2000}", "enter")
        assert '    "step": 2000' in lines_on(on)
        await on.press("/", *"x", "backspace", *"190000}", "enter")
        assert any('"step": 190000}' in line for line in lines_on(on))


MARKED_UP = """# Plan
- *first* the **pods**, which are many and have to be looked at one after the other, all of them
\x1b[31mred\x1b[0m \x1b]0;title\x07
"""


async def test_raw_texts_are_shown_by_a_key(tmp_path: Path) -> None:
    steps: list[Message] = [{"role": "user", "content": MARKED_UP}]
    async with stage(write_trace(tmp_path / "meant.json", steps)) as on:
        plain = MARKED_UP.split("\n")[1]
        assert (lines_on(on)[0], lines_on(on)[1]) == ("# Plan", plain[: len(lines_on(on)[1])])
        assert lines_on(on)[2].startswith("  ")
        assert lines_on(on)[3] == "red ␛]0;title␇"
        await on.press("p")
        assert not lines_on(on)[2].startswith(" ")
        assert lines_on(on)[3] == "␛[31mred␛[0m ␛]0;title␇"


async def test_quotes_are_words_of_the_source(tmp_path: Path) -> None:
    texts = (
        (ARGUMENTS, "install"),
        (MARKED_UP, "red"),
        (MARKED_UP, "first"),
        (json.dumps([ARGUMENTS]), "cd"),
    )
    steps: list[Message] = [{"role": "tool", "content": text} for text, _ in texts]
    async with stage(write_trace(tmp_path / "words.json", steps)) as on:
        for raw in (False, True):
            for text, word in texts[: 1 if raw else None]:
                await on.press("w")
                for _ in range(80):
                    quote = on.annotate.state.selection.quote
                    assert quote is not None
                    if text[quote.start : quote.end] == word:
                        break
                    await on.press("w")
                await on.press("v", *"13")
                label = max(on.session.labels, key=lambda label: label.created_at)
                assert (label.target.quote, label.target.char_start) == (word, text.index(word))
                await on.press("j")
            await on.undo_all()
            await on.press("p")
