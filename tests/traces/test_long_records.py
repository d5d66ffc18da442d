"""Files with a long first record, deep nesting, or unclosed blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.readers import recognising_readers
from mast_tui.traces.readers.chat.reader import READER as CHAT_READER
from mast_tui.traces.readers.mini_swe_agent import READER as MINI_READER
from mast_tui.traces.readers.vendors.reader import READER as VENDORS_READER
from tests.traces.checks import read_one, span_lines, texts_of, write_json
from tests.traces.golden import golden_text

LONGER_THAN_HEAD: Final = "x" * 300_000

FIRST_LINES: Final = {
    "claude-code": "what-the-harness-tells-is-a-log",
    "claude-code-stream": "a-run-from-its-first-message",
    "codex": "turn-items-of-newer-builds",
    "codex-otel-logs": "a-run-from-its-prompt",
    "message-list": "broken-lines-are-named",
}
"""Parts of the names of golden inputs, by format."""


@pytest.mark.parametrize("name", FIRST_LINES)
def test_a_first_record_longer_than_the_head_is_recognised(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    text = golden_text(name, FIRST_LINES[name])
    path.write_text(text)
    expected = lines_of(path)
    first_line, later_lines = text.split("\n", 1)
    path.write_text(f'{{"filler": "{LONGER_THAN_HEAD}", {first_line[1:]}\n{later_lines}')
    assert [reader.name for reader in recognising_readers(Source(path))] == [name]
    assert lines_of(path) == expected


def test_a_session_that_begins_with_a_long_snapshot_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    text = golden_text("claude-code", FIRST_LINES["claude-code"])
    path.write_text(text)
    expected = lines_of(path)
    snapshot = {"type": "file-history-snapshot", "snapshot": LONGER_THAN_HEAD}
    path.write_text(f"{json.dumps(snapshot)}\n{text}")
    assert lines_of(path) == expected


def lines_of(path: Path) -> list[str]:
    """Return the spans of the only trace of a file."""
    (trace,) = read_file(path, named=False).traces
    read_fully(trace)
    return span_lines(trace)


@pytest.mark.parametrize(
    ("field", "opening", "closing"),
    [
        ("content", '{"content":', "}"),
        ("reasoning", "[", "]"),
        ("tool_calls", "[", "]"),
        ("parts", '{"parts":', "}"),
        ("data", '{"messages":', "}"),
    ],
)
def test_a_deeply_nested_field_of_a_message_hides_no_other_message(
    tmp_path: Path, field: str, opening: str, closing: str
) -> None:
    deep_value = opening * 1000 + "1" + closing * 1000
    message = json.dumps({"role": "assistant", "content": "said", field: 0})
    message = message.replace(" 0}", f" {deep_value}}}")
    path = tmp_path / "x.json"
    path.write_text(
        f'{{"input": [{{"role": "user", "content": "go"}}, {message}], '
        f'"response": {{"choices": [{{"message": {message}}}]}}}}',
        encoding="utf-8",
    )
    trace = read_one(CHAT_READER, path)
    assert trace.text(0) == "go"
    assert len(trace) >= 2


def test_deeply_nested_runs_are_read(tmp_path: Path) -> None:
    run: dict[str, object] = {"id": "0", "run_type": "llm", "outputs": {"output": "deepest"}}
    for depth in range(1, 300):
        run = {"id": str(depth), "run_type": "chain", "inputs": {}, "child_runs": [run]}
    trace = read_one(VENDORS_READER, write_json(tmp_path / "a.json", run))
    assert texts_of(trace)[-1] == "deepest"
    assert trace.identity.trace_id == "299"


def test_blocks_that_are_never_closed_stay_text(tmp_path: Path) -> None:
    """A search for the end of each block would take hours."""
    run = json.loads(golden_text("mini-swe-agent", "keys-stay"))
    run["messages"].append({"role": "assistant", "content": "<bash>" * 100_000})
    trace = read_one(MINI_READER, write_json(tmp_path / "run.json", run))
    assert "<bash>" * 100_000 in texts_of(trace)
