"""Export to doccano."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.exchange.exporters.doccano import doccano_lines
from mast_tui.exchange.trace_files import TextSpan
from mast_tui.labels import Label, Target, TraceWork, VerdictValue
from tests.exchange.words import MAST, traces, works


def lines_of(work: TraceWork, spans: tuple[TextSpan, ...]) -> list[dict[str, Any]]:
    lines, missing = doccano_lines([work], MAST, {}, lambda _: spans)
    assert missing == []
    return [json.loads(line) for line in lines]


def name_of(slug: str) -> str:
    mode = MAST.mode(slug)
    return f"{mode.code} {mode.name}"


@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_marks_are_the_labelled_text(data: st.DataObject) -> None:
    spans = data.draw(traces())
    work = data.draw(works(spans))
    (line,) = lines_of(work, spans)
    text, marks = line["text"], line["label"]
    assert text.splitlines()[0] == spans[0].author
    # What doccano's own models ask of a mark: numbers that lie in the text, and none twice.
    assert all(0 <= start < end <= len(text) for start, end, _ in marks)
    assert len({tuple(mark) for mark in marks}) == len(marks)
    words = {(text[start:end], name) for start, end, name in marks}
    for label in work.labels.values():
        if label.target.quote is not None:
            assert (label.target.quote, name_of(label.mode)) in words
        elif label.target == Target(spans[0].key, spans[0].key):
            assert (spans[0].text, name_of(label.mode)) in words
    whole = {name_of(label.mode) for label in work.labels.values() if label.target.is_whole}
    assert set(line["cats"]) == whole
    absent = {name_of(m) for m, value in work.verdicts.items() if value is VerdictValue.ABSENT}
    assert set(line["absent"]) == absent


def test_empty_spans_are_marked_and_missing_traces_listed() -> None:
    spans = (TextSpan("k", "#1 tool", ""), TextSpan("l", "#2 agent", "words"))
    label = Label("x", "a", "t", MAST.ref, "step_repetition", Target("k", "k"))
    (line,) = lines_of(TraceWork("a", "t", MAST.ref, labels={label.id: label}), spans)
    ((start, end, _),) = line["label"]
    assert line["text"][start:end] == "#1 tool"
    work = [TraceWork(who, "t", MAST.ref, labels={label.id: label}) for who in ("a", "b")]
    assert doccano_lines(work, MAST, {}, lambda _: None) == ([], ["t"])
