"""Claude Code sessions against the raw records of real files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import SpanKind
from mast_tui.traces.readers import recognising_readers
from mast_tui.traces.readers.claude_code.reader import READER
from tests.traces.checks import CORPUS, needs_corpus, read_file, spans_of

FOLDER = CORPUS / "claude-code"
NAMES = ("edge_cases", "representative_messages", "todowrite_examples")
BLOCKS = {
    "text": SpanKind.MESSAGE,
    "tool_use": SpanKind.TOOL_CALL,
    "tool_result": SpanKind.TOOL_RESULT,
}


def raw_records(path: Path) -> list[tuple[int, Mapping[str, object]]]:
    """Return the records of a file with their line numbers."""
    values = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    return [(number, value) for number, value in enumerate(values, 1) if isinstance(value, dict)]


def blocks_of(record: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the blocks of a record's message."""
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )


@needs_corpus
@pytest.mark.parametrize("name", NAMES)
def test_every_block_of_a_real_session_is_a_span_in_its_place(name: str) -> None:
    path = FOLDER / f"{name}.jsonl"
    (trace,) = read_file(READER, path).traces
    spans = spans_of(trace)
    shown = Counter((one.place, one.kind, trace.text(one.index)) for one in spans)
    calls = 0
    for line, record in raw_records(path):
        for block in blocks_of(record):
            kind = BLOCKS[str(block["type"])]
            text = block.get("text", block.get("content"))
            if kind is SpanKind.TOOL_CALL:
                calls += 1
                index = trace.index_of(f"{block['id']}:call")
                assert index is not None
                assert json.loads(trace.text(index)) == block["input"]
                assert spans[index].name == block["name"]
                continue
            assert shown[f"line {line}", kind, str(text)] == 1, (line, text)
            if kind is SpanKind.TOOL_RESULT:
                index = trace.index_of(f"{block['tool_use_id']}:result")
                assert index is not None
                assert spans[index].parent == f"{block['tool_use_id']}:call"
    assert sum(one.kind is SpanKind.TOOL_CALL for one in spans) == calls
    assert [reader.name for reader in recognising_readers(Source(path))] == ["claude-code"]
