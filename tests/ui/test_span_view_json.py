"""JSON on the annotate screen: set out in lines, and quoted as it was read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.ui.text.json_view import SLICE_CHARS
from tests.ui.stage import Message, Stage, call, result, stage, write_trace

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


def shown(on: Stage) -> list[str]:
    view = on.annotate.span_view
    lines = [view.render_line(y).text.rstrip() for y in range(view.size.height)]
    return [line[1:] for line in lines if line]


async def test_json_is_set_out_and_shown_as_it_is_by_a_key(path: Path) -> None:
    async with stage(path) as on:
        await on.press("j")
        assert shown(on)[:5] == [
            "{",
            '  "command": "cd /srv',
            "  make all",
            '  make install",',
            '  "why": "to see if it builds"',
        ]
        await on.press("p")
        assert shown(on)[0].startswith(ARGUMENTS[:40])
        assert "as they are" in on.message
        await on.press("j")
        assert shown(on)[0].startswith(ANSWER[:40])
        await on.press("p")
        assert shown(on)[:3] == ["[", "  {", '    "step": 0,']
        await on.press("k")
        assert shown(on)[2] == "  make all"


@pytest.mark.parametrize("key", ["x", "p"])
async def test_a_quote_is_that_of_the_text_as_it_was_read(path: Path, key: str) -> None:
    async with stage(path) as on:
        await on.press("j")
        if key == "p":
            await on.press("p")
        await on.press("w")
        for _ in range(40):
            quote = on.annotate.state.selection.quote
            assert quote is not None
            if ARGUMENTS[quote.start : quote.end] == "install":
                break
            await on.press("w")
        await on.press("v")
        await on.press(*"13")
        (label,) = on.session.labels
        assert label.target.quote == "install"
        assert label.target.char_start == ARGUMENTS.index("install")


async def test_the_mouse_quotes_what_it_is_drawn_over(path: Path) -> None:
    async with stage(path) as on:
        await on.press("j")
        view = on.annotate.span_view
        y = next(y for y, line in enumerate(shown(on)) if "make all" in line)
        x = view.render_line(y).text.index("all")
        assert view.offset_at(x, y) == ARGUMENTS.index("all")
        assert view.offset_at(0, y) in range(
            ARGUMENTS.index(r"\nmake all"), ARGUMENTS.index("make all") + 1
        )


async def test_up_and_down_go_by_the_lines_that_are_shown(path: Path) -> None:
    async with stage(path) as on:
        await on.press("j")
        view = on.annotate.span_view
        below = view.vertical_neighbour(ARGUMENTS.index("make all"), 1)
        assert ARGUMENTS[below:].startswith("make install")


async def test_long_json_is_set_out_as_far_as_one_reads(tmp_path: Path) -> None:
    long = json.dumps([{"step": number, "note": "x" * 50} for number in range(20_000)])
    steps: list[Message] = [{"role": "user", "content": "Go."}, call(1, "f", "{}"), result(1, long)]
    async with stage(write_trace(tmp_path / "long.json", steps)) as on:
        await on.press("G")
        view = on.annotate.span_view
        assert shown(on)[1:3] == ["  {", '    "step": 0,']
        pretty = view._displayed.pretty
        assert pretty is not None
        assert pretty.source_end < 10_000
        await on.press("tab")
        lines = [*shown(on)]
        read = pretty.source_end
        for _page in range(40):
            await on.press("pagedown")
            assert pretty.source_end - read <= 2 * SLICE_CHARS
            read = pretty.source_end
            lines += shown(on)
        assert read >= 2 * SLICE_CHARS
        whole = json.dumps(json.loads(long), indent=2).split("\n")
        assert set(lines) <= set(whole)
        # Far behind that the text stands as it is, and going back it is set out.
        await on.press("G")
        assert shown(on)[-1].endswith(f'{"x" * 9}"}}]')
        assert pretty.source_end == read
        await on.press("g")
        assert shown(on)[1:3] == ["  {", '    "step": 0,']


async def test_what_is_found_just_behind_what_is_set_out_is_set_out_too(tmp_path: Path) -> None:
    long = json.dumps([{"step": number} for number in range(200_000)])
    steps: list[Message] = [{"role": "user", "content": "Go."}, call(1, "f", "{}"), result(1, long)]
    async with stage(write_trace(tmp_path / "long.json", steps)) as on:
        await on.press("/", *'step": 2000}', "enter")
        assert '    "step": 2000' in shown(on)
        await on.press("/", *"x", "backspace", *'step": 190000}', "enter")
        assert any('"step": 190000}' in line for line in shown(on))


MEANT = """# Plan
- *first* the **pods**, which are many and have to be looked at one after the other, all of them
\x1b[31mred\x1b[0m \x1b]0;title\x07
"""


async def test_any_text_is_shown_as_it_is_by_the_same_key(tmp_path: Path) -> None:
    steps: list[Message] = [{"role": "user", "content": MEANT}]
    async with stage(write_trace(tmp_path / "meant.json", steps)) as on:
        plain = MEANT.split("\n")[1]
        assert shown(on)[0] == "# Plan"
        assert shown(on)[1] == plain[: len(shown(on)[1])]
        assert shown(on)[2].startswith("  ")
        assert shown(on)[3] == "red ␛]0;title␇"
        await on.press("p")
        assert not shown(on)[2].startswith(" ")
        assert shown(on)[3] == "␛[31mred␛[0m ␛]0;title␇"


@pytest.mark.parametrize(
    ("text", "word"),
    [(ARGUMENTS, "make"), (MEANT, "red"), (MEANT, "first"), (json.dumps([ARGUMENTS]), "cd")],
)
async def test_words_are_those_that_are_seen(tmp_path: Path, text: str, word: str) -> None:
    steps: list[Message] = [{"role": "tool", "content": text}]
    async with stage(write_trace(tmp_path / "words.json", steps)) as on:
        await on.press("w")
        for _ in range(80):
            quote = on.annotate.state.selection.quote
            assert quote is not None
            if text[quote.start : quote.end] == word:
                break
            await on.press("w")
        await on.press("v", *"13")
        (label,) = on.session.labels
        assert label.target.quote == word
        assert label.target.char_start == text.index(word)
