"""Foreign text is shown in full, and none of it reaches the terminal raw."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.safe_text import (
    display_lines,
    iter_lines,
    line_ranges,
    one_line,
    safe_line,
    safe_line_map,
)

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
FILLERS = "\u115f\u1160\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
INVISIBLE = (
    FILLERS
    + "\u00ad\u034f\u180e\u200b\u2028\u2029\u2060\u2063\ufeff\ufff9\ufe00\U000e0041\U000e0100"
)
NASTY = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)])) + BIDI + INVISIBLE + "\ufe0e\ufe0f"

foreign = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(NASTY),
        st.sampled_from(["\ud83d", "\udfff", "\ufffe", "\U0001ffff", "\ufdd0"]),
        st.sampled_from("ab ⏎…⟨⟩\u200d\u200cم一😀🏽🇩\ufe0f"),
    )
)
# Letters, marks, numbers, punctuation, symbols and spaces, without the invisible ones.
harmless = st.text(
    st.one_of(
        st.characters(
            categories=("L", "M", "N", "P", "S", "Zs"),
            exclude_characters=FILLERS
            + "\u034f\u180e"
            + "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
            + "".join(map(chr, [*range(0x2190, 0x2C00), *range(0x1F000, 0x1FB00)])),
        ),
        st.sampled_from("\u200d\u200c"),
    )
)


def assert_safe(shown: str) -> None:
    for char in shown:
        category = unicodedata.category(char)
        assert category not in ("Cc", "Cs", "Zl", "Zp"), f"U+{ord(char):04X}"
        assert char not in BIDI + INVISIBLE + "\ufe0e\ufe0f", f"U+{ord(char):04X}"
        assert ord(char) & 0xFFFE != 0xFFFE, f"U+{ord(char):04X}"
    shown.encode()


@given(foreign)
def test_control_and_invisible_characters_are_replaced(text: str) -> None:
    assert_safe(safe_line(text))
    assert_safe(one_line(text))
    assert_safe(one_line(text, 7))
    for line in iter_lines(text):
        assert_safe(line)


@given(harmless)
def test_harmless_text_is_unchanged(text: str) -> None:
    assert safe_line(text) == text
    assert one_line(text) == text
    assert safe_line_map(text) == (text, None)


@given(foreign)
def test_safe_text_is_unchanged(text: str) -> None:
    assert safe_line(safe_line(text)) == safe_line(text)
    assert one_line(one_line(text)) == one_line(text)


@given(foreign)
def test_the_map_says_where_each_code_point_is_shown(text: str) -> None:
    shown, offsets = safe_line_map(text)
    assert shown == safe_line(text)
    if offsets is None:
        assert shown == text
        return
    assert len(offsets) == len(text) + 1
    assert (offsets[0], offsets[-1]) == (0, len(shown))
    for index, char in enumerate(text):
        assert shown[offsets[index] : offsets[index + 1]] == safe_line(char)


@given(foreign, st.integers(-1, 40))
def test_a_limit_cuts_the_shown_text(text: str, limit: int) -> None:
    whole = one_line(text)
    cut = one_line(text, limit)
    if len(whole) <= limit:
        assert cut == whole
    else:
        assert len(cut) == max(limit, 0)
        if limit > 0:
            assert cut[-1] == "…"
            assert whole.startswith(cut[:-1])


def test_dropped_characters_do_not_count_for_the_limit() -> None:
    assert one_line("\ufe0f" * 500 + "end", 10) == "end"


@given(foreign)
def test_lines_and_breaks_make_up_the_text(text: str) -> None:
    ranges = list(line_ranges(text))
    assert ranges
    position = 0
    for start, end in ranges:
        assert text[position:start] in ("", "\n", "\r\n")
        assert "\n" not in text[start:end]
        position = end
    assert text[position:] in ("", "\n", "\r\n")
    assert display_lines(text) == [safe_line(text[start:end]) for start, end in ranges]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("\n", [""]),
        ("a\n\nb\n", ["a", "", "b"]),
        ("a\r\nb", ["a", "b"]),
        ("10%\r20%\r100%\n", ["10%␍20%␍100%"]),
        ("one\u2028line\x0bstill\x85here", ["one⟨U+2028⟩line␋still⟨U+0085⟩here"]),
    ],
)
def test_lines_end_at_line_feeds_only(text: str, lines: list[str]) -> None:
    assert display_lines(text) == lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("a\tb", "a    b"),
        ("\x7f\x9b2J", "␡⟨U+009B⟩2J"),
        ("user\u202eexe.txt", "user⟨U+202E⟩exe.txt"),
        ("pay\u200bment", "pay⟨U+200B⟩ment"),
        ("\ud83d!", "⟨U+D83D⟩!"),
        ("[/red][@click=app.quit]", "[/red][@click=app.quit]"),
        ("ok ✔\ufe0f", "ok ✔"),
        ("👩\u200d💻 می\u200cخواهم", "👩💻 می\u200cخواهم"),
        ("👍🏽 🇩🇪 क्\u200dष", "👍 DE क्\u200dष"),
    ],
)
def test_replacements_of_characters(text: str, shown: str) -> None:
    assert safe_line(text) == shown


def test_one_line_shows_breaks_and_keeps_columns_short() -> None:
    assert one_line("NAME\tREADY\r\ncart\t1/1\n") == "NAME READY⏎cart 1/1⏎"
    assert one_line("50%\r100%") == "50%␍100%"
