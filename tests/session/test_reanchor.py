"""A label finds its place again, or says that it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.labels import WHOLE_TRACE, Label, Target
from mast_tui.session import Place, reanchor
from tests.workspace.build import MAST, MODES, TRACE, trace_of

TEXTS = ("get the pods now", "pods  and\npods", "nothing")


def label(target: Target) -> Label:
    return Label("1", "alice", TRACE, MAST.ref, MODES[0], target)


def quote(key: str, text: str, start: int | None) -> Label:
    return label(Target(key, key, text, start, None if start is None else start + len(text)))


@pytest.mark.parametrize(
    ("target", "place"),
    [
        (WHOLE_TRACE, Place(0, 2)),
        (Target("k1", "k1"), Place(1, 1)),
        (Target("k0", "k2"), Place(0, 2)),
        (Target("k2", "k0"), Place(0, 2)),
        (Target("k0", "gone"), None),
        (Target("gone", "gone"), None),
    ],
)
def test_spans_are_found_by_their_keys(target: Target, place: Place | None) -> None:
    assert reanchor(label(target), trace_of(*TEXTS)) == place


@pytest.mark.parametrize(
    ("one", "place"),
    [
        (quote("k0", "pods", 8), Place(0, 0, 8, 12)),
        (quote("k0", "pods", 3), Place(0, 0, 8, 12, moved=True)),
        (quote("k0", "pods", None), Place(0, 0, 8, 12, moved=True)),
        (quote("k1", "pods", 1), Place(1, 1, 0, 4, moved=True)),
        (quote("k1", "pods", 9), Place(1, 1, 10, 14, moved=True)),
        (quote("k1", "pods and pods", 2), Place(1, 1, 0, 14, moved=True)),
        (quote("k2", "pods", 0), None),
        (quote("k2", " ", 3), None),
        (quote("gone", "get the", 0), Place(0, 0, 0, 7, moved=True)),
        (quote("gone", "pods", 0), None),
        (quote("gone", "elsewhere", 0), None),
    ],
)
def test_a_quote_is_found_where_it_has_moved(one: Label, place: Place | None) -> None:
    assert reanchor(one, trace_of(*TEXTS)) == place


@given(st.text(), st.text(min_size=1), st.text(), st.text())
def test_a_quote_is_found_whatever_comes_before_it(
    before: str, words: str, after: str, shift: str
) -> None:
    start = len(before)
    one = quote("k0", words, start)
    text = before + words + after
    assert reanchor(one, trace_of(text)) == Place(0, 0, start, start + len(words))
    moved = reanchor(one, trace_of(shift + text))
    if words.strip():
        assert moved is not None
        assert moved.start is not None
        assert (shift + text)[moved.start : moved.end].split() == words.split()
