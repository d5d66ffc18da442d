"""In what two texts differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.ui.text.differences import CONTEXT, MOST_LINES, TextComparison, compare

texts = st.text("ab \n", max_size=60)


def parts(found: TextComparison) -> list[str]:
    return [found.text[first:end] for first, end in found.changed]


def test_a_line_that_was_changed_is_shown_twice_with_its_words_that_differ() -> None:
    found = compare('{"page": 1, "of": "logs"}', '{"page": 2, "of": "logs"}')
    assert found.text == '- {"page": 1, "of": "logs"}\n+ {"page": 2, "of": "logs"}'
    assert parts(found) == ["1", "2"]
    assert not found.equal


def test_json_is_compared_as_it_is_set_out_for_reading() -> None:
    one, other = (
        f'{{"file": "a.log", "offset": {n}, "limit": 50, "mode": "text", "follow": false}}'
        for n in (50, 100)
    )
    found = compare(one, other)
    assert '-   "offset": 50,\n+   "offset": 100,' in found.text
    assert parts(found) == ["50", "100"]
    assert "follow" not in found.text


def test_only_lines_near_a_difference_are_shown() -> None:
    lines = [f"line {n}" for n in range(100)]
    found = compare("\n".join(lines), "\n".join([*lines[:50], "new", *lines[50:]]))
    shown = found.text.split("\n")
    assert "+ new" in shown
    assert len(shown) == 1 + 1 + 2 * CONTEXT


@given(texts)
def test_equal_texts_differ_in_nothing(text: str) -> None:
    assert compare(text, text) == TextComparison("", (), True, False)


@given(texts, texts)
def test_what_is_gone_is_of_the_earlier_text_and_what_has_come_of_the_later(
    one: str, other: str
) -> None:
    found = compare(one, other)
    assert found.equal == (one == other)
    for line in found.text.split("\n") if found.text else []:
        if line.startswith("- "):
            assert line[2:] in one.split("\n")
        elif line.startswith(("+ ", "  ")):
            assert line[2:] in other.split("\n")
    for first, end in found.changed:
        assert 0 <= first < end <= len(found.text)
        assert "\n" not in found.text[first:end]


def test_a_difference_is_found_however_far_down_it_is() -> None:
    lines = [f"line {n}" for n in range(30 * MOST_LINES)]
    changed = [*lines[:50_000], "another", *lines[50_001:]]
    found = compare("\n".join(lines), "\n".join(changed))
    assert (found.equal, found.cut) == (False, False)
    assert found.text.split("\n") == [
        "⋯ line 49999",
        "  line 49998",
        "  line 49999",
        "- line 50000",
        "+ another",
        "  line 50001",
        "  line 50002",
    ]


def test_of_a_very_long_line_only_what_is_near_the_difference_is_shown() -> None:
    one = "a" * 3_000_000 + " old " + "b" * 3_000_000
    found = compare(one, one.replace("old", "new"))
    assert parts(found) == ["old", "new"]
    assert len(found.text) < 2_000
    assert "- …aaa" in found.text


def test_of_long_texts_that_differ_all_over_only_the_beginning_is_compared() -> None:
    numbers = range(3 * MOST_LINES)
    found = compare("\n".join(f"a{n}" for n in numbers), "\n".join(f"b{n}" for n in numbers))
    assert found.cut
    assert found.text.count("\n") < 2 * MOST_LINES + 3
    one_line = compare("a" * 5_000_000, "b" * 5_000_000)
    assert one_line.cut
    assert len(one_line.text) < 1_000_000


@given(texts, texts, texts, texts)
def test_what_long_texts_have_in_common_is_passed_over(
    head: str, one: str, other: str, tail: str
) -> None:
    around = "same\n" * 70_000
    before, after = f"{around}{head}{one}{tail}{around}", f"{around}{head}{other}{tail}{around}"
    found = compare(before, after)
    assert found.equal == (one == other)
    assert not found.cut
    assert len(found.text) < 1_000
    if one != other:
        assert any(line[:1] in ("-", "+") for line in found.text.split("\n"))
