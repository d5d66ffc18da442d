"""Inspect archives: finished, being written, cut off, kept in chunks; what they tell of a run."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_file as read_any
from mast_tui.traces.model import Outcome
from mast_tui.traces.readers import recognising_readers
from mast_tui.traces.readers.inspect import reader as inspect_reader
from tests.traces.checks import read_file, read_one
from tests.traces.inspect_logs import (
    HEADER,
    Json,
    calls,
    members_of,
    model,
    parts_of,
    read_eval,
    sample,
    says,
    spans,
    told,
    tool,
    user,
    write_eval,
)
from tests.traces.zips import DEFLATED, STORED, ZSTANDARD, Part, archive_of

READER = inspect_reader.READER


def numbered(number: int, **fields: object) -> Json:
    """A sample that says its number."""
    return sample(model([user("Count.")], says(f"Number {number}.")), **{"id": number, **fields})


def said(path: Path) -> list[str]:
    """What the model says in each sample of an archive."""
    return [trace.text(1) for trace in read_file(READER, path).traces]


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_each_sample_is_a_trace(tmp_path: Path, method: int) -> None:
    samples = [numbered(2), numbered(10), numbered(2, epoch=2)]
    report = read_file(READER, write_eval(tmp_path / "a.eval", members_of(*samples), method))
    assert report.format == "inspect"
    assert not report.problems
    assert [trace.record for trace in report.traces] == [0, 1, 2]
    assert [trace.text(1) for trace in report.traces] == ["Number 2.", "Number 10.", "Number 2."]
    assert spans(report.traces[2])[0].place == "samples/2_epoch_2.json /events/0/input/0"


def test_a_log_that_is_being_written_is_read_so_far(tmp_path: Path) -> None:
    members = members_of(numbered(1), numbered(2))
    del members["header.json"], members["summaries.json"]
    report = read_file(READER, write_eval(tmp_path / "a.eval", members))
    assert len(report.traces) == 2
    assert not report.problems
    assert report.traces[0].meta.model == "openai/gpt-5"
    assert report.traces[0].meta.benchmark == "find_the_key"


def test_keys_and_ids_stay_while_samples_are_added(tmp_path: Path) -> None:
    samples = [numbered(number) for number in (3, 1, 2)]
    path = tmp_path / "a.eval"
    seen: dict[str, list[str]] = {}
    for count in (1, 2, 3):
        for trace in read_eval(tmp_path, *samples[:count]).traces:
            keys = [span.key for span in spans(trace)]
            assert seen.setdefault(trace.identity.trace_id, keys) == keys
    assert len(seen) == 3
    assert not path.exists()


def test_a_log_without_samples_is_known_all_the_same(tmp_path: Path) -> None:
    report = read_eval(tmp_path)
    assert report.format == "inspect"
    assert [problem.message for problem in report.problems] == ["the log holds no samples"]


@pytest.mark.parametrize("sizes_follow", [False, True])
def test_of_a_log_that_is_cut_off_the_intact_samples_are_read(
    tmp_path: Path, sizes_follow: bool
) -> None:
    samples = [numbered(number, metadata={"filler": list(range(200))}) for number in range(10)]
    parts = parts_of(members_of(*samples))
    data = archive_of(*parts, sizes_follow=sizes_follow)
    first = data.index(b"PK\x03\x04", 4)
    before = 0
    for cut in range(first, len(data), (len(data) - first) // 20):
        path = tmp_path / "cut.eval"
        path.write_bytes(data[:cut])
        report = read_file(READER, path)
        found = [trace.text(1) for trace in report.traces]
        assert found == [f"Number {number}." for number in range(len(found))]
        assert before <= len(found)
        whole = data.count(b"PK\x03\x04", 0, cut) - 2  # without the start and the one cut off
        assert len(found) >= min(whole, 10)
        assert report.problems
        before = len(found)
    assert before == 10


def test_a_broken_member_takes_no_other_with_it(tmp_path: Path) -> None:
    members = members_of(*(numbered(number) for number in range(5)))
    members["samples/1_epoch_1.json"] = b'{"id": 1, "epo'
    members["samples/2_epoch_1.json"] = b"[7]"
    parts = parts_of(members)
    parts[4] = Part(parts[4].name, parts[4].content, flags=1)
    path = tmp_path / "a.eval"
    path.write_bytes(archive_of(*parts, Part("../../samples/9_epoch_1.json", b"{}")))
    report = read_file(READER, path)
    assert [(trace.record, trace.text(1)) for trace in report.traces] == [
        (0, "Number 0."),
        (4, "Number 4."),
    ]
    told_of = {problem.place: problem.message for problem in report.problems}
    assert "not JSON" in told_of["samples/1_epoch_1.json"]
    assert "not a sample" in told_of["samples/2_epoch_1.json"]
    assert "encrypted" in told_of["samples/3_epoch_1.json"]
    assert any("leads out" in message for message in told_of.values())


def test_samples_are_read_without_any_header(tmp_path: Path) -> None:
    members = members_of(numbered(1)) | {"header.json": b"{", "_journal/start.json": b""}
    report = read_file(READER, write_eval(tmp_path / "a.eval", members))
    assert len(report.traces) == 1
    assert report.traces[0].meta.model is None
    assert [problem.place for problem in report.problems] == [
        "header.json",
        "_journal/start.json",
        "header.json",
    ]


def test_data_that_swells_in_memory_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_reader, "_MAX_VALUES", 1000)
    dense = b'{"id": 9, "epoch": 1, "events": [' + b"[]," * 600 + b"[]]}"
    members = members_of(numbered(1)) | {"samples/9_epoch_1.json": dense}
    report = read_file(READER, write_eval(tmp_path / "a.eval", members))
    assert len(report.traces) == 1
    (problem,) = report.problems
    assert problem.place == "samples/9_epoch_1.json"
    assert "values" in problem.message


def test_numbers_and_texts_that_json_does_not_know_are_read(tmp_path: Path) -> None:
    raw = json.dumps(numbered(1)).replace('"Number 1."', '"N\\ud800", "x": NaN, "y": -Infinity')
    members = members_of() | {"samples/1_epoch_1.json": raw.encode()}
    trace = read_one(READER, write_eval(tmp_path / "a.eval", members))
    assert trace.text(1) == "N\ufffd"


def test_samples_kept_in_chunks_are_put_together(tmp_path: Path) -> None:
    """Version 3 of the format: a shell, and sequences by the number of their first item."""
    folder = "samples/a/b_epoch_1"
    one, two = says("One."), says("Two.")
    shell = {"id": "a/b", "epoch": 1, "input": "attachment://1", "message_refs": [[0, 4]]}
    members = {
        "_journal/start.json": HEADER,
        f"{folder}/sample.json": {**shell, "uuid": "u", "scores": {}},
        f"{folder}/skeleton.json": {},
        f"{folder}/messages/0.json": [user("attachment://1"), one],
        f"{folder}/messages/2.json": [user("Go on."), two, user("Stop.")],
        f"{folder}/events/0.json": [model([], one, 0, input_refs=[[0, 1]])],
        f"{folder}/events/1.json": [model([], two, 2, input_refs=[[0, 3]])],
        f"{folder}/events/stats.json": {},
        f"{folder}/calls/0.json": [{}],
        f"{folder}/attachments/0.json": ["x"],
        f"{folder}/attachments/1.json": ["Find the key."],
    }
    trace = read_one(READER, write_eval(tmp_path / "a.eval", dict(members)))
    assert [text for _kind, _agent, text in told(trace)] == [
        *("Find the key.", "One.", "Go on.", "Two."),
    ]
    assert trace.meta.task == "Find the key."
    assert spans(trace)[2].key == "/events_data/messages/2"
    assert not trace.problems
    del members[f"{folder}/messages/0.json"]
    report = read_file(READER, write_eval(tmp_path / "b.eval", dict(members)))
    assert [problem.place for problem in report.problems] == [f"{folder}/messages/2.json"]
    assert [text for _kind, _agent, text in told(report.traces[0])] == ["One.", "Two."]


@pytest.mark.parametrize(
    "members",
    [
        {"word/document.xml": b"<x/>", "[Content_Types].xml": b""},
        {"header.json": {"eval": 7}, "samples/1_epoch_1.json": sample()},
        {"header.json": {"version": 1}, "summaries.json": []},
        {"start.json": b"{", "samples/1_epoch_1.json": sample()},
    ],
)
def test_other_archives_are_not_claimed(tmp_path: Path, members: dict[str, object]) -> None:
    path = write_eval(tmp_path / "a.eval", members)
    assert not list(recognising_readers(Source(path)))


def test_a_log_is_known_whatever_its_name_and_compression(tmp_path: Path) -> None:
    data = write_eval(tmp_path / "a.eval", members_of(numbered(1))).read_bytes()
    path = tmp_path / "notes.gz"
    path.write_bytes(gzip.compress(data))
    (trace,) = read_any(path, named=False).traces
    assert trace.text(1) == "Number 1."


def test_the_oldest_layout_is_known(tmp_path: Path) -> None:
    members = {"start.json": HEADER, "samples/1_epoch_1.json": numbered(1), "results.json": {}}
    assert said(write_eval(tmp_path / "a.eval", dict(members))) == ["Number 1."]


def test_ids_are_native_where_the_log_has_some(tmp_path: Path) -> None:
    header: Json = {**HEADER, "eval": {"task": "t", "model": "m", "eval_id": "e"}}
    own: list[tuple[Json, str]] = [
        ({"uuid": "u"}, "u"),
        ({}, "e/1/1"),
        ({"id": "x", "epoch": 3}, "e/x/3"),
    ]
    for fields, expected in own:
        (trace,) = read_eval(tmp_path, numbered(1) | fields, header=header).traces
        assert (trace.identity.trace_id, trace.identity.native) == (expected, True)
    (trace,) = read_eval(tmp_path, numbered(1)).traces
    assert trace.identity.trace_id.startswith("log:0-")
    assert not trace.identity.native


@pytest.mark.parametrize(
    ("scores", "outcome", "score"),
    [
        ({"a": {"value": "C"}}, Outcome.SUCCEEDED, 1.0),
        ({"a": {"value": "I"}}, Outcome.FAILED, 0.0),
        ({"a": {"value": "N"}}, Outcome.FAILED, 0.0),
        ({"a": {"value": "P"}}, Outcome.UNKNOWN, 0.5),
        ({"a": {"value": 1}}, Outcome.SUCCEEDED, 1.0),
        ({"a": {"value": True}}, Outcome.SUCCEEDED, 1.0),
        ({"a": {"value": 0.0}}, Outcome.FAILED, 0.0),
        ({"a": {"value": 0.25}}, Outcome.UNKNOWN, 0.25),
        ({"a": {"value": 17}}, Outcome.UNKNOWN, None),
        ({"a": {"value": "maybe"}}, Outcome.UNKNOWN, None),
        ({"a": {"value": "C"}, "b": {"value": 1}}, Outcome.SUCCEEDED, 1.0),
        ({"a": {"value": "C"}, "b": {"value": "I"}}, Outcome.UNKNOWN, None),
        ({"a": {"value": {"x": 1, "y": 0}}}, Outcome.UNKNOWN, None),
        ({"a": {"value": {"x": 0, "y": 0}}}, Outcome.FAILED, 0.0),
        ({}, Outcome.UNKNOWN, None),
        ({"a": 7, "b": None}, Outcome.UNKNOWN, None),
        ([7], Outcome.UNKNOWN, None),
    ],
)
def test_scores_tell_the_outcome_where_they_agree(
    tmp_path: Path, scores: object, outcome: Outcome, score: float | None
) -> None:
    (trace,) = read_eval(tmp_path, numbered(1, scores=scores)).traces
    assert (trace.meta.outcome, trace.meta.score) == (outcome, score)


def test_what_the_log_tells_of_a_run(tmp_path: Path) -> None:
    question = [{"role": "system", "content": "Be good."}, user([{"type": "text", "text": "Why?"}])]
    score = {"value": "I", "answer": "because", "explanation": "no"}
    one = numbered(
        1, input=question, scores={"exact": score}, target=["a", "b"], metadata={"level": 3}
    )
    (trace,) = read_eval(tmp_path, one).traces
    meta = trace.meta
    assert (meta.task, meta.system, meta.model) == ("Why?", "agent_loop", "openai/gpt-5")
    hidden = dict(meta.hidden)
    assert (hidden["exact"], hidden["exact answer"], hidden["exact explanation"]) == (
        "I",
        "because",
        "no",
    )
    assert json.loads(hidden["target"]) == ["a", "b"]
    assert meta.answer_key.other == (("level", "3"),)
    named = {**HEADER, "eval": {"task": "t", "model": "none/none", "solver": "react"}}
    (trace,) = read_eval(tmp_path, numbered(1, output={"model": "m"}), header=named).traces
    assert (trace.meta.system, trace.meta.model) == ("react", "m")


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    one = sample(
        model([user("a")], says("b", calls("c1"), calls("c1"))),
        tool("c1", "x"),
        tool("c1", "y", 2),
        model([user("a", id="same")], says("b", id="same"), 3),
    )
    first, second = (read_eval(tmp_path, one).traces[0] for _time in range(2))
    assert spans(first) == spans(second)
    assert [span.key for span in spans(first)][2:6] == [
        "c1:call",
        "c1:call~2",
        "c1:result",
        "c1:result~2",
    ]


def test_a_log_that_never_ends_is_read_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_reader, "MAX_SPANS", 5)
    events: list[object] = [7] * 4
    endless = {**sample(), "events": events, "error": {"message": "never shown"}}
    report = read_eval(tmp_path, numbered(1), {**endless, "id": 2}, numbered(3))
    assert [len(trace) for trace in report.traces] == [2, 3, 0]
    assert "more than 3 steps" in report.traces[1].problems[0].message
    assert report.traces[2].problems


@pytest.mark.parametrize(
    ("text", "width"), [("plain", 1), ("größer", 2), ("\\u00e4", 2), ("😀", 4), ("\\ud83d", 4)]
)
def test_room_is_kept_for_wide_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, width: int
) -> None:
    raw = json.dumps(numbered(1)).replace("Number", f"{text} Number").encode()
    members = members_of() | {"samples/1_epoch_1.json": raw}
    start = sum(len(json.dumps(members[name]).encode()) for name in ("header.json",))
    monkeypatch.setattr(inspect_reader, "_MAX_TEXT_BYTES", start + width * len(raw))
    assert len(read_file(READER, write_eval(tmp_path / "a.eval", members)).traces) == 1
    monkeypatch.setattr(inspect_reader, "_MAX_TEXT_BYTES", start + width * len(raw) - 1)
    report = read_file(READER, write_eval(tmp_path / "a.eval", members))
    assert "of text" in report.problems[0].message
