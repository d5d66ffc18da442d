"""Real Inspect logs, compared with what ``zipfile`` and ``json`` find in them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Outcome, SpanKind, Trace
from mast_tui.traces.readers.inspect import reader as inspect_reader
from tests.traces.checks import CORPUS, needs_corpus, read_file
from tests.traces.inspect_logs import spans

FOLDER = CORPUS / "inspect"
ARCHIVES = ("docent_log.eval", "log_read_sample.eval", "log_streaming.eval")
SAMPLES = {"docent_log.eval": 15, "log_read_sample.eval": 1, "log_streaming.eval": 4}

pytestmark = needs_corpus


def raw_samples(path: Path) -> list[tuple[str, Any]]:
    """The samples of a log by place, as the standard library reads them."""
    if path.suffix == ".json":
        log = json.loads(path.read_bytes())
        return [(f"/samples/{number}", one) for number, one in enumerate(log["samples"])]
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("samples/")]
        return [(f"{name} ", json.loads(archive.read(name))) for name in names]


def expected(sample: Any) -> Iterator[tuple[str, str]]:
    """Kind and text of every span that a sample's final conversation asks for."""
    for message in sample["messages"]:
        if message["role"] == "tool":
            error = message.get("error", {}).get("message", "")
            yield "tool_result", message["content"] or error
            continue
        asked = message.get("tool_calls", [])
        if message["content"] or not asked:
            yield "message", message["content"]
        for call in asked:
            yield "tool_call", json.dumps(call["arguments"])


def found(trace: Trace) -> list[tuple[str, str]]:
    return [
        (
            span.kind.value,
            json.dumps(json.loads(trace.text(span.index)))
            if span.kind is SpanKind.TOOL_CALL
            else trace.text(span.index),
        )
        for span in spans(trace)
        if span.kind is not SpanKind.LOG
    ]


def event_kinds(events: Any) -> Iterator[str]:
    """The kinds of all events, of those within others, too."""
    for event in events:
        yield event["event"]
        yield from event_kinds(event.get("events", []))


def traces_of(name: str) -> list[tuple[str, Any, Trace]]:
    path = FOLDER / name
    reader = inspect_reader.READER
    report = read_file(reader, path)
    assert not report.problems
    raw = raw_samples(path)
    return [(*one, trace) for one, trace in zip(raw, report.traces, strict=True)]


@pytest.mark.parametrize("name", [*ARCHIVES, "log_read_sample.json"])
def test_the_conversations_are_shown_whole_and_once(name: str) -> None:
    found_samples = traces_of(name)
    assert len(found_samples) == SAMPLES.get(name, 1)
    for place, sample, trace in found_samples:
        shown = found(trace)
        wanted = list(expected(sample))
        assert shown[: len(wanted)] == wanted, place
        # One run was stopped before the last tool's result came into its conversation.
        rest = shown[len(wanted) :]
        assert bool(rest) == place.startswith("samples/78_")
        tools = [event for event in sample["events"] if event["event"] == "tool"]
        assert all(one == ("tool_result", tools[-1]["result"]) for one in rest)
        assert not trace.problems


@pytest.mark.parametrize("name", [*ARCHIVES, "log_read_sample.json"])
def test_tokens_logs_and_places_are_those_of_the_events(name: str) -> None:
    for place, sample, trace in traces_of(name):
        counted = [span.tokens for span in spans(trace) if span.tokens is not None]
        calls = [event for event in sample["events"] if event["event"] == "model"]
        usage = [call["output"]["usage"] for call in calls]
        assert [tokens.output for tokens in counted] == [one["output_tokens"] for one in usage]
        assert [tokens.input for tokens in counted] == [one["input_tokens"] for one in usage]
        kinds = list(event_kinds(sample["events"]))
        logs = [span for span in spans(trace) if span.kind is SpanKind.LOG]
        assert len(logs) == sum(map(kinds.count, ("score", "sample_limit", "logger")))
        for span in spans(trace):
            assert span.place.startswith(f"{place}/")
            value = sample
            for part in span.place.removeprefix(f"{place}/").split("/"):
                value = value[int(part)] if isinstance(value, list) else value[part]
            assert value is not None


@pytest.mark.parametrize("name", [*ARCHIVES, "log_read_sample.json"])
def test_outcomes_are_those_of_the_scores_and_stay_hidden(name: str) -> None:
    for _place, sample, trace in traces_of(name):
        ((scorer, score),) = sample["scores"].items()
        right = score["value"] == "C"
        assert trace.meta.outcome is (Outcome.SUCCEEDED if right else Outcome.FAILED)
        assert trace.meta.score == float(right)
        hidden = dict(trace.meta.hidden)
        assert hidden[scorer] == score["value"]
        assert hidden["target"] == sample["target"]
        assert trace.identity.native == ("uuid" in sample)
        assert trace.meta.task == sample["input"][:2000]


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
def test_real_archives_that_are_cut_off_keep_their_intact_samples(
    name: str, tmp_path: Path
) -> None:
    data = (FOLDER / name).read_bytes()
    with zipfile.ZipFile(FOLDER / name) as archive:
        ends = [
            info.header_offset + 30 + len(info.filename) + info.compress_size
            for info in archive.infolist()
            if info.filename.startswith("samples/")
        ]
    path = tmp_path / name
    for tenth in range(1, 10):
        cut = len(data) * tenth // 10
        path.write_bytes(data[:cut])
        if not inspect_reader.READER.recognises(Source(path)):
            assert cut < ends[0]
            continue
        assert len(read_file(inspect_reader.READER, path).traces) == sum(end <= cut for end in ends)
