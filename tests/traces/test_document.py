"""Traces of documents: loading, keys, previews and ids."""

from __future__ import annotations

from pathlib import Path

from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.keys import identity_by_content
from mast_tui.traces.model import Role, SpanKind, Trace
from tests.traces.checks import check_sound

PATH = Path("runs/night.json")


def trace_of(steps: StepList) -> Trace:
    identity = identity_by_content(PATH, None, b"content", reader="test", key_scheme=1)
    return Trace(identity, PATH, StepSpans(steps.steps))


def test_a_document_is_loaded_at_once() -> None:
    steps = StepList()
    call = steps.add("c:call", SpanKind.TOOL_CALL, Role.AGENT, "bot", "{}", place="/0", name="ls")
    steps.add("c:result", SpanKind.TOOL_RESULT, Role.TOOL, "bot", "a\nb", place="/1", parent=call)
    trace = trace_of(steps)
    assert isinstance(trace, Trace)
    check_sound(trace)
    assert trace.loaded.complete
    assert not trace.advance()
    assert trace.text(1) == "a\nb"
    assert trace.span(1).preview == "a b"
    assert trace.span(1).parent == "c:call"


def test_steps_with_one_key_have_different_span_keys() -> None:
    steps = StepList()
    keys = [steps.add("x", SpanKind.MESSAGE, Role.USER, "user", text, place="/0") for text in "abc"]
    trace = trace_of(steps)
    assert [trace.text(index) for index in map(trace.index_of, keys) if index is not None] == [
        "a",
        "b",
        "c",
    ]


def test_a_preview_without_its_lead_is_not_complete() -> None:
    steps = StepList()
    steps.add("x", SpanKind.MESSAGE, Role.AGENT, "a", "[prompt]\n\nanswer", place="/0", lead=8)
    span = trace_of(steps).span(0)
    assert span.preview == "answer"
    assert not span.preview_is_complete


def test_an_id_depends_on_stem_record_and_content() -> None:
    def trace_id(path: str, record: int | None, content: bytes) -> str:
        identity = identity_by_content(Path(path), record, content, reader="r", key_scheme=1)
        return identity.trace_id

    id_of_file = trace_id("a/run.json", None, b"1")
    assert id_of_file == trace_id("b/run.json", None, b"1")
    assert id_of_file.startswith("run-")
    assert trace_id("a/run.json", 3, b"1").startswith("run:3-")
    assert id_of_file != trace_id("a/run.json", None, b"2")
