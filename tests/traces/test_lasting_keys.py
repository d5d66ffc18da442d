"""Keys of spans that do not change when records are appended to a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from tests.traces.checks import (
    CORPUS,
    SAMPLES,
    check_sound,
    needs_corpus,
    spans_of,
    write_json,
    write_json_lines,
)
from tests.traces.golden import golden_inputs, golden_text

Write = Callable[[Path, Sequence[object]], Path]


def read_all(path: Path) -> dict[str, Trace]:
    """Return the traces of a file by id, read to their ends."""
    traces = {}
    for trace in read_file(path, named=False).traces:
        read_fully(trace)
        check_sound(trace)
        traces[trace.identity.trace_id] = trace
    return traces


@needs_corpus
@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_keys_of_real_files_stay_when_lines_are_appended(
    data: st.DataObject, tmp_path: Path
) -> None:
    paths = (*CORPUS.rglob("*.jsonl"), *SAMPLES.glob("*.jsonl"))
    path = data.draw(st.sampled_from(sorted(paths)))
    content = path.read_bytes()
    ends = [offset + 1 for offset, byte in enumerate(content) if byte == 0x0A]
    end = data.draw(st.sampled_from(ends))
    grown = tmp_path / path.name
    grown.write_bytes(content[:end])
    texts = texts_by_key(grown)
    grown.write_bytes(content)
    # Codex writes the parts of a thought as events, and later the whole thought in their place.
    grown_texts = texts_at_keys(grown, texts)
    changed = [key for key, text in texts.items() if text not in grown_texts[key]]
    assert changed == [], (path.name, end)


def texts_by_key(path: Path) -> dict[str, str]:
    """Return the texts of the first trace of a file by the keys of its spans."""
    for trace in read_all(path).values():
        return {span.key: trace.text(span.index) for span in spans_of(trace)}
    return {}


def texts_at_keys(path: Path, keys: Iterable[str]) -> dict[str, str]:
    """Return the texts that labels at these keys of the first trace of a file refer to."""
    texts = {}
    for trace in [*read_all(path).values()][:1]:
        for key in keys:
            index = trace.index_of(key)
            assert index is not None, key
            texts[key] = trace.text(index)
    return texts


def writer_of_field(document: dict[str, object], field: str) -> Write:
    """Return a function that writes records as the list in a field of a document."""

    def write(path: Path, records: Sequence[object]) -> Path:
        return write_json(path, {**document, field: list(records)})

    return write


def write_lines(path: Path, records: Sequence[object]) -> Path:
    return write_json_lines(path, *records)


def write_list(path: Path, records: Sequence[object]) -> Path:
    return write_json(path, list(records))


def records_in(name: str, *parts_of_names: str, field: str | None = None) -> list[Any]:
    """Return the different records of golden inputs of a format.

    Args:
        name: The format.
        parts_of_names: Parts of the names of its inputs.
        field: The field of a document with the list of records; None for JSON lines.
    """
    records: dict[str, object] = {}
    for golden_input in golden_inputs(name):
        if not any(part in golden_input.name for part in parts_of_names):
            continue
        for data in golden_input.files.values():
            if field is None:
                values = [json.loads(line) for line in data.splitlines() if line.startswith(b"{")]
            else:
                values = json.loads(data)[field]
            records |= {json.dumps(value): value for value in values}
    return list(records.values())


class GrowingFormat(NamedTuple):
    """A format whose files grow.

    Attributes:
        write: Writes records to a file.
        beginning: The number of records with which every file begins.
        records: These records, and those that may follow in any order.
        once: Each record follows at most once.
        texts_grow: The text of a span may change when a record is appended.
    """

    write: Write
    beginning: int
    records: Sequence[object]
    once: bool = False
    texts_grow: bool = False


CODEX: Final = records_in(
    "codex", "keys-stay", "turn-items-of", "an-mcp-call", "calls-whose-tools", "rolled-back"
)
EXEC: Final = records_in("codex-exec", "keys-stay", "a-run-from", "every-kind-of-call", "the-plan")
OTEL_LOGS: Final = records_in("codex-otel-logs", "keys-stay", "a-run-from", "how-a-call", "failed")
EVENTS: Final = json.loads(golden_text("openhands", "a-stream-of-generation-0"))
SDK_EVENTS: Final = records_in("openhands", "a-stream-of-the-sdk")
MESSAGES: Final = json.loads(golden_text("message-list", "messages-of-all-vendors-in-one-list"))
MINI_RUN: Final = json.loads(golden_text("mini-swe-agent", "keys-stay"))
MINI_MESSAGES: Final = records_in(
    "mini-swe-agent", "keys-stay", "parallel-calls", "a-run-of-release-2", field="messages"
)
TRAJECTORY: Final = json.loads(golden_text("atif", "keys-stay"))
STEPS: Final = records_in(
    "atif", "keys-stay", "a-run-of-the-standard", "a-later-step", "without-an-id", field="steps"
)

GROWING_FORMATS: Final[dict[str, GrowingFormat]] = {
    "codex": GrowingFormat(write_lines, 0, CODEX),
    "codex exec": GrowingFormat(write_lines, 2, EXEC, texts_grow=True),
    "codex otel logs": GrowingFormat(write_lines, 1, OTEL_LOGS),
    "openhands": GrowingFormat(write_list, 3, EVENTS, once=True),
    "openhands sdk": GrowingFormat(write_list, 3, SDK_EVENTS, once=True),
    "messages": GrowingFormat(write_list, 6, MESSAGES["messages"]),
    "messages in lines": GrowingFormat(write_lines, 6, MESSAGES["messages"]),
    "mini-swe-agent": GrowingFormat(writer_of_field(MINI_RUN, "messages"), 2, MINI_MESSAGES),
    "atif": GrowingFormat(writer_of_field(TRAJECTORY, "steps"), 1, STEPS),
}


@pytest.mark.parametrize("name", GROWING_FORMATS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_keys_stay_when_records_are_appended(
    name: str, data: st.DataObject, tmp_path: Path
) -> None:
    growing_format = GROWING_FORMATS[name]
    beginning = list(growing_format.records[: growing_format.beginning])
    later_records = growing_format.records[growing_format.beginning :]
    if growing_format.once:
        appended = data.draw(st.permutations(later_records))[:9]
    else:
        appended = data.draw(st.lists(st.sampled_from(later_records), max_size=12))
    cut = data.draw(st.integers(0, len(appended)))
    path = tmp_path / "grown.json"
    growing_format.write(path, beginning + appended[:cut])
    texts = texts_by_key(path)
    assert list(texts_by_key(path).items()) == list(texts.items())
    later_texts = texts_at_keys(growing_format.write(path, beginning + appended), texts)
    assert growing_format.texts_grow or later_texts == texts


def test_keys_of_messages_that_were_one_span_find_the_first_of_their_parts(tmp_path: Path) -> None:
    """Labels of versions that showed such a message as one span keep their place."""
    bedrock = tmp_path / "bedrock.json"
    bedrock.write_text(golden_text("message-list", "messages-of-parts-bedrock"))
    goose = write_lines(
        tmp_path / "goose.jsonl", json.loads(golden_text("goose", "messages-of-parts-goose"))
    )
    for path, indices in (
        (bedrock, {"/0": 0, "/1": 1, "/2": 4, "/3": 6, "/4": None}),
        (goose, {"line 1": 0, "line 2": 1, "line 3": 4, "line 4": None}),
    ):
        (trace,) = read_all(path).values()
        assert {key: trace.index_of(key) for key in indices} == indices, path.name
