"""JSON laid out in lines, and the mapping of each character to its source."""

from __future__ import annotations

import json
from itertools import cycle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mast_tui.ui.text.json_view import CHECKED_CHARS, UNFOLDED, PrettyText, pretty_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["command", "path", "a b", 'q"', ""]) | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
documents = st.one_of(st.lists(values, min_size=1), st.dictionaries(st.text(), values, min_size=1))
spacings = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:  ")])

CALL = json.dumps({"command": 'cd /x\nfor i in 1 2; do\n\techo "$i"\ndone', "path": "/tmp/a\nb"})


@given(documents, spacings, st.booleans())
def test_characters_are_shown_once_and_in_order(
    value: object, separators: tuple[str, str], ascii_only: bool
) -> None:
    text = json.dumps(value, separators=separators, ensure_ascii=ascii_only) + " " * 61
    pretty = pretty_json(text)
    assert pretty is not None
    positions = [pretty.to_shown(offset) for offset in range(len(text))]
    assert positions == sorted(positions)
    if not any(f'"{name}"' in text for name in UNFOLDED):
        assert json.loads(pretty.whole()) == value
    for offset, position in enumerate(positions):
        char = text[offset]
        if pretty.to_source(position) == offset and pretty.whole()[position : position + 1] == char:
            continue
        # Else it is white space between tokens, or one of two characters of an escape.
        assert char.isspace() or "\\" in text[offset - 1 : offset + 1]


@given(documents, st.data())
@example({"command": "a\nb"}, None)
def test_ranges_are_mapped(value: object, data: st.DataObject | None) -> None:
    text = json.dumps(value) + " " * 61
    pretty = pretty_json(text)
    assert pretty is not None
    start = data.draw(st.integers(0, len(text))) if data else 0
    end = data.draw(st.integers(start, len(text))) if data else len(text)
    first, stop = pretty.range_to_shown(start, end)
    assert 0 <= first <= stop <= len(pretty.whole())
    if end > start:
        assert pretty.whole()[first:stop].replace("\n", "").replace(" ", "") in (
            pretty.whole().replace("\n", "").replace(" ", "")
        )


def test_commands_and_lists_are_laid_out() -> None:
    call = CALL.removesuffix("}") + ', "to": [["bash", "make\\nmake install"], [1, 2], []]}'
    pretty = pretty_json(call)
    assert pretty is not None
    assert pretty.whole().split("\n") == [
        *("{", '  "command": "cd /x', "  for i in 1 2; do", '  \techo "$i"', '  done",'),
        *(r'  "path": "/tmp/a\nb",', '  "to": [', r'    ["bash", "make\nmake install"],'),
        *("    [1, 2],", "    []", "  ]", "}"),
    ]
    for part in ("cd /x", "for i in 1 2; do", "echo", "$i", "done", "/tmp/a"):
        start = call.index(part)
        first, stop = pretty.range_to_shown(start, start + len(part))
        assert pretty.whole()[first:stop] == part
        offsets = range(start, start + len(part))
        assert [pretty.to_source(i) for i in range(first, stop)] == list(offsets)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "plain text",
        '{"a": 1}',
        "{not json, but in braces, and long enough to be set out in more lines}",
        '{"a": 1} and more text behind it, so that it is no JSON at all {"b": 2}',
        '"only a string, which is JSON, but neither an object nor a list, so it stays"',
        "[" * 40_000 + "]" * 9,
    ],
)
def test_other_texts_are_not_laid_out(text: str) -> None:
    assert pretty_json(text) is None


def test_deep_nesting_stays_narrow() -> None:
    depth = 500
    pretty = pretty_json("[" * depth + "1" + "]" * depth)
    assert pretty is not None
    assert max(map(len, pretty.whole().split("\n"))) < 100


@given(documents, spacings, st.lists(st.integers(1, 30), min_size=1, max_size=5), st.data())
def test_layout_by_slices_is_the_same(
    value: object, separators: tuple[str, str], steps: list[int], data: st.DataObject
) -> None:
    text = json.dumps(value, separators=separators) + " " * 61
    whole = pretty_json(text)
    assert whole is not None
    expected = whole.whole()
    pretty = PrettyText(text)
    every = cycle(steps)
    while not pretty.complete:
        done = pretty.shown_end
        previous = pretty[:done]
        pretty.extend(next(every))
        # What is set out stays; what is not stands as it is in the source.
        assert pretty[:done] == previous
        assert pretty[pretty.shown_end :] == text[pretty.source_end :]
        assert pretty.to_source(pretty.to_shown(len(text))) == len(text)
    assert not pretty.broken
    assert pretty[:] == expected
    first = data.draw(st.integers(0, len(expected)))
    end = data.draw(st.integers(first, len(expected)))
    assert pretty[first:end] == expected[first:end]
    assert pretty.find("\n", first, end) == expected.find("\n", first, end)
    assert pretty.rfind("\n", first, end) == expected.rfind("\n", first, end)
    assert [pretty.to_shown(offset) for offset in range(len(text))] == [
        whole.to_shown(offset) for offset in range(len(text))
    ]


def test_only_the_beginning_of_a_huge_text_is_laid_out() -> None:
    text = json.dumps([{"step": n, "output": "line\n" * 9} for n in range(60_000)])
    assert len(text) > 3_000_000
    pretty = pretty_json(text)
    assert pretty is not None
    assert pretty.source_end < 10_000
    assert pretty[:20].startswith("[\n  {\n    ")
    assert pretty[len(pretty) - 50 :] == text[-50:]
    assert pretty.to_source(pretty.to_shown(2_500_000)) == 2_500_000
    text = json.dumps({"output": "a line\n" * 200_000})
    pretty = pretty_json(text)
    assert pretty is not None
    assert pretty[: pretty.shown_end].count("\n") > 500
    assert pretty.source_end < 10_000


@pytest.mark.parametrize("tail", ['"open', "1 2", "}", "nothing", '{"a" 1}', "{1: 2}", "[1,]", ","])
def test_text_after_invalid_json_is_unchanged(tail: str) -> None:
    text = f'["{"x" * CHECKED_CHARS}", {tail}, 2]'
    pretty = pretty_json(text)
    assert pretty is not None
    while not pretty.complete:
        pretty.extend(1 << 16)
    assert pretty.broken
    assert pretty[len(pretty) - 4 :] == text[-4:]
    assert pretty.whole().startswith('[\n  "xxx')
