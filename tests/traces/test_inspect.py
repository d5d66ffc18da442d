"""Inspect logs: cut off, too big, and long."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from mast_tui.traces.io import json_repair
from mast_tui.traces.io.source import HEAD_BYTES, Source
from mast_tui.traces.model import Role, SpanKind
from mast_tui.traces.readers.inspect import messages as inspect_messages
from mast_tui.traces.readers.inspect import reader as inspect_reader
from mast_tui.traces.readers.inspect.messages import History, MessageIdentity, MessageSpans
from tests.traces.checks import CORPUS, needs_corpus, read_file, spans_of, write_json
from tests.traces.inspect_logs import (
    HEADER,
    Json,
    assistant,
    members_of,
    model,
    parts_of,
    read_eval,
    sample,
    tool,
    tool_call,
    user,
    write_eval,
)
from tests.traces.zips import archive_of

READER = inspect_reader.READER


def sample_of(number: int, **fields: object) -> Json:
    """Return a sample in which the model says its number."""
    events = [
        model([user("Count.")], assistant(f"Number {number}.", tool_call("c1", cmd="ls"))),
        tool("c1", "ok"),
    ]
    return sample(*events, **{"id": number, **fields})


@pytest.mark.parametrize("data_descriptors", [False, True])
def test_an_archive_that_is_cut_off_keeps_its_intact_samples(
    tmp_path: Path, data_descriptors: bool
) -> None:
    samples = [sample_of(number, metadata={"filler": list(range(200))}) for number in range(10)]
    parts = parts_of(members_of(*samples))
    data = archive_of(*parts, data_descriptors=data_descriptors)
    second_member = data.index(b"PK\x03\x04", 4)
    previous_count = 0
    for cut in range(second_member, len(data), (len(data) - second_member) // 20):
        path = tmp_path / "cut.eval"
        path.write_bytes(data[:cut])
        report = read_file(READER, path)
        actual = [trace.text(1) for trace in report.traces]
        assert actual == [f"Number {number}." for number in range(len(actual))]
        assert previous_count <= len(actual)
        # The start record and the truncated member are no samples.
        intact_count = data.count(b"PK\x03\x04", 0, cut) - 2
        assert len(actual) >= min(intact_count, 10)
        assert report.problems
        previous_count = len(actual)
    assert previous_count == 10


def test_a_sample_with_too_many_values_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_reader, "_MAX_VALUES", 1000)
    dense = b'{"id": 9, "epoch": 1, "events": [' + b"[]," * 600 + b"[]]}"
    members = members_of(sample_of(1)) | {"samples/9_epoch_1.json": dense}
    report = read_file(READER, write_eval(tmp_path / "a.eval", members))
    assert len(report.traces) == 1
    (problem,) = report.problems
    assert problem.place == "samples/9_epoch_1.json"
    assert "values" in problem.message


def test_a_log_with_too_many_steps_is_read_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_reader, "MAX_SPANS", 5)
    events: list[object] = [7] * 4
    endless = {**sample(), "events": events, "error": {"message": "never shown"}}
    report = read_eval(tmp_path, sample_of(1), {**endless, "id": 2}, sample_of(3))
    assert [len(trace) for trace in report.traces] == [4, 1, 0]
    assert "more than 1 steps" in report.traces[1].problems[0].message
    assert report.traces[2].problems


@pytest.mark.parametrize(
    ("text", "width"), [("plain", 1), ("größer", 2), ("\\u00e4", 2), ("😀", 4), ("\\ud83d", 4)]
)
def test_the_limit_of_text_counts_the_width_of_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, width: int
) -> None:
    raw = json.dumps(sample_of(1)).replace("Number", f"{text} Number").encode()
    members = members_of() | {"samples/1_epoch_1.json": raw}
    start = sum(len(json.dumps(members[name]).encode()) for name in ("header.json",))
    monkeypatch.setattr(inspect_reader, "_MAX_TEXT_BYTES", start + width * len(raw))
    assert len(read_file(READER, write_eval(tmp_path / "a.eval", members)).traces) == 1
    monkeypatch.setattr(inspect_reader, "_MAX_TEXT_BYTES", start + width * len(raw) - 1)
    report = read_file(READER, write_eval(tmp_path / "a.eval", members))
    assert "of text" in report.problems[0].message


@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize("name", ["docent_log.eval", "log_read_sample.eval", "log_streaming.eval"])
def test_real_archives_that_are_cut_off_keep_their_intact_samples(
    name: str, tmp_path: Path
) -> None:
    data = (CORPUS / "inspect" / name).read_bytes()
    with zipfile.ZipFile(CORPUS / "inspect" / name) as archive:
        ends = [
            info.header_offset + 30 + len(info.filename) + info.compress_size
            for info in archive.infolist()
            if info.filename.startswith("samples/")
        ]
    path = tmp_path / name
    for tenth in range(1, 10):
        cut = len(data) * tenth // 10
        path.write_bytes(data[:cut])
        if not READER.recognises(Source(path)):
            assert cut < ends[0]
            continue
        assert len(read_file(READER, path).traces) == sum(end <= cut for end in ends)


def test_a_document_that_is_cut_off_keeps_its_intact_samples(tmp_path: Path) -> None:
    log = {**HEADER, "samples": [sample_of(number) for number in range(6)], "reductions": []}
    text = json.dumps(log, indent=2)
    path = tmp_path / "cut.json"
    start = text.index('"samples"')
    for cut in range(start, len(text) - 3, (len(text) - start) // 12):
        path.write_text(text[:cut])
        traces = read_file(READER, path).traces
        intact_count = text[:cut].count('"attachments"')  # at the end of each sample
        assert len(traces) in (intact_count, intact_count + 1)
        assert [trace.text(1) for trace in traces[:intact_count]] == [
            f"Number {number}." for number in range(intact_count)
        ]
        assert all(trace.meta.model == "openai/gpt-5" for trace in traces)


def test_a_log_too_long_to_repair_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_repair, "MOST_CHARS", 100)
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**HEADER, "samples": [sample_of(1)]})[:-5])
    report = READER.read(Source(path))
    assert "cannot be read" in (report.failed or "")


def test_a_log_longer_than_its_head_is_recognised_by_its_head(tmp_path: Path) -> None:
    long = sample_of(1, metadata={"filler": "x" * 2 * HEAD_BYTES})
    source = Source(write_json(tmp_path / "a.json", {**HEADER, "samples": [long]}))
    assert READER.recognises(source)
    assert "json" not in vars(source)
    assert "data" not in vars(source)


def test_a_head_of_quotes_is_not_recognised(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"eval": "' + '\\"' * HEAD_BYTES)
    assert not READER.recognises(Source(path))


def test_pooled_inputs_of_a_long_run_are_compared_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = 0
    is_new = MessageSpans.is_new

    def count_comparison(
        self: MessageSpans, message: object, identity: MessageIdentity, history: History
    ) -> bool:
        nonlocal compared
        compared += 1
        return is_new(self, message, identity, history)

    monkeypatch.setattr(MessageSpans, "is_new", count_comparison)
    monkeypatch.setattr(inspect_messages, "_MAX_LOOKUPS", 5000)
    count = 300
    pool = [user(f"message {index}", id=f"m{index}") for index in range(count)]
    growing = [
        model([], assistant("x", id=f"o{last}"), 0, input_refs=[[0, last]]) for last in range(count)
    ]
    (trace,) = read_eval(tmp_path, sample(*growing, message_pool=pool)).traces
    assert compared == count - 1
    assert not trace.problems
    changing = [
        model([], assistant("y", id=f"p{last}"), 0, input_refs=[[last, last + 1], [0, count]])
        for last in range(100)
    ]
    (trace,) = read_eval(tmp_path, sample(*growing, *changing, message_pool=pool)).traces
    assert compared < 3 * count + 5000 + 100 * 50
    assert sum(span.role is Role.USER for span in spans_of(trace)) == count
    assert any("repeat too much" in problem.message for problem in trace.problems)


def test_an_attachment_used_everywhere_does_not_fill_the_memory(tmp_path: Path) -> None:
    attachment = "x" * (2 << 20)
    ref = "attachment://aa"
    events = [tool(f"c{number}", ref, number, arguments={"a": ref}) for number in range(100)]
    (trace,) = read_eval(tmp_path, sample(*events, attachments={"aa": attachment})).traces
    results = [
        trace.text(span.index) for span in spans_of(trace) if span.kind is SpanKind.TOOL_RESULT
    ]
    assert all(text == attachment for text in results)
    calls = [trace.text(span.index) for span in spans_of(trace) if span.kind is SpanKind.TOOL_CALL]
    assert sum(map(len, calls)) < 70 << 20
    assert len(calls[0]) > len(attachment)
    assert "not filled in" in trace.problems[0].message
