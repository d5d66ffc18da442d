"""The differences of two texts, and their dialog on the annotate screen."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.ui.annotate import text_screen
from mast_tui.ui.annotate.text_screen import CompareScreen
from mast_tui.ui.text.differences import CONTEXT_LINES, MOST_LINES, TextComparison, compare
from mast_tui.ui.trace_view.span_view import SpanView
from tests.ui.settle import settle
from tests.ui.stage import Stage, stage, write_trace
from tests.waiting import PATIENCE

texts = st.text("ab \n", max_size=60)


def parts(comparison: TextComparison) -> list[str]:
    return [comparison.text[first:end] for first, end in comparison.changed_ranges]


def test_a_changed_line_is_shown_twice() -> None:
    comparison = compare('{"page": 1, "of": "logs"}', '{"page": 2, "of": "logs"}')
    assert comparison.text == '- {"page": 1, "of": "logs"}\n+ {"page": 2, "of": "logs"}'
    assert parts(comparison) == ["1", "2"]
    assert not comparison.is_equal


def test_json_is_compared_as_laid_out() -> None:
    old, new = (
        f'{{"file": "a.log", "offset": {n}, "limit": 50, "mode": "text", "follow": false}}'
        for n in (50, 100)
    )
    comparison = compare(old, new)
    assert '-   "offset": 50,\n+   "offset": 100,' in comparison.text
    assert parts(comparison) == ["50", "100"]
    assert "follow" not in comparison.text


def test_lines_near_a_difference_are_shown() -> None:
    lines = [f"line {n}" for n in range(100)]
    comparison = compare("\n".join(lines), "\n".join([*lines[:50], "new", *lines[50:]]))
    shown_lines = comparison.text.split("\n")
    assert "+ new" in shown_lines
    assert len(shown_lines) == 1 + 1 + 2 * CONTEXT_LINES


@given(texts, texts)
def test_lines_are_of_the_earlier_or_the_later_text(old: str, new: str) -> None:
    assert compare(old, old) == TextComparison("", (), True, False)
    comparison = compare(old, new)
    assert comparison.is_equal == (old == new)
    for line in comparison.text.split("\n") if comparison.text else []:
        if line.startswith("- "):
            assert line[2:] in old.split("\n")
        elif line.startswith(("+ ", "  ")):
            assert line[2:] in new.split("\n")
    for first, end in comparison.changed_ranges:
        assert 0 <= first < end <= len(comparison.text)
        assert "\n" not in comparison.text[first:end]


def test_a_difference_far_down_is_found() -> None:
    lines = [f"line {n}" for n in range(30 * MOST_LINES)]
    changed = [*lines[:50_000], "another", *lines[50_001:]]
    comparison = compare("\n".join(lines), "\n".join(changed))
    assert (comparison.is_equal, comparison.is_cut) == (False, False)
    assert comparison.text.split("\n") == [
        "⋯ line 49999",
        "  line 49998",
        "  line 49999",
        "- line 50000",
        "+ another",
        "  line 50001",
        "  line 50002",
    ]


def test_long_and_different_texts_are_cut() -> None:
    old = "a" * 3_000_000 + " old " + "b" * 3_000_000
    comparison = compare(old, old.replace("old", "new"))
    assert parts(comparison) == ["old", "new"]
    assert len(comparison.text) < 2_000
    assert "- …aaa" in comparison.text
    numbers = range(3 * MOST_LINES)
    comparison = compare("\n".join(f"a{n}" for n in numbers), "\n".join(f"b{n}" for n in numbers))
    assert comparison.is_cut
    assert comparison.text.count("\n") < 2 * MOST_LINES + 3
    one_line = compare("a" * 5_000_000, "b" * 5_000_000)
    assert one_line.is_cut
    assert len(one_line.text) < 1_000_000


@given(texts, texts, texts, texts)
def test_common_parts_of_long_texts_are_skipped(head: str, old: str, new: str, tail: str) -> None:
    around = "same\n" * 70_000
    old_text = f"{around}{head}{old}{tail}{around}"
    new_text = f"{around}{head}{new}{tail}{around}"
    comparison = compare(old_text, new_text)
    assert comparison.is_equal == (old == new)
    assert not comparison.is_cut
    assert len(comparison.text) < 1_000
    if old != new:
        assert any(line[:1] in ("-", "+") for line in comparison.text.split("\n"))


def trace_of(path: Path, *texts: str) -> Path:
    return write_trace(path, [{"role": "assistant", "content": text} for text in texts])


def differences_on(on: Stage) -> str:
    """Return the text of the dialog."""
    return on.screen(CompareScreen).query_one(SpanView).text


async def test_a_repeated_step_is_compared_with_the_earlier_one(tmp_path: Path) -> None:
    texts = ("Look.", "Other.", "Look.", "Read page 1 of it.", "Read page 2 of it.")
    async with stage(trace_of(tmp_path / "near.json", *texts)) as on:
        await on.press("=")
        assert "#1 repeats no earlier step" in on.message
        await on.press("j", "j", "=")
        assert "The text of #3 equals that of #1" in on.message
        assert not isinstance(on.app.screen, CompareScreen)
        await on.press("G", "=")
        assert differences_on(on) == "- Read page 1 of it.\n+ Read page 2 of it."
        assert "#4 and then #5" in on.text
        await on.press("escape")
        assert on.number == 5


async def test_long_texts_are_compared_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = Event()

    def compared(old: str, new: str) -> TextComparison:
        assert may_go_on.wait(PATIENCE)
        return compare(old, new)

    monkeypatch.setattr(text_screen, "AT_ONCE_CHARS", 1000)
    monkeypatch.setattr(text_screen, "compare", compared)
    lead = "The same words again and again. " * 60
    path = trace_of(tmp_path / "long.json", f"{lead}one", f"{lead}two", "Done.")
    async with stage(path) as on:
        await on.send("j", "=")
        assert "Comparing #1 with #2 …" in on.message
        # Whoever has gone on is not differences_on it.
        await on.send("j")
        may_go_on.set()
        await settle(on.pilot)
        assert not isinstance(on.app.screen, CompareScreen)
        assert on.number == 3
        await on.press("k", "=")
        assert differences_on(on).endswith("+ " + lead + "two")
