"""Inspect logs in JSON: the same traces as in an archive, also from a file that is cut off."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from mast_tui.traces.io import json_repair as repair
from mast_tui.traces.io.source import HEAD_BYTES, Source
from mast_tui.traces.readers import recognising_readers
from mast_tui.traces.readers.inspect import reader as inspect_reader
from tests.traces.checks import read_file, write_json
from tests.traces.inspect_logs import (
    HEADER,
    Json,
    calls,
    model,
    read_eval,
    read_json,
    sample,
    says,
    spans,
    told,
    tool,
    user,
)

READER = inspect_reader.READER


def numbered(number: int, **fields: object) -> Json:
    """A sample that says its number."""
    events = [
        model([user("Count.")], says(f"Number {number}.", calls("c1", cmd="ls"))),
        tool("c1", "ok"),
    ]
    return sample(*events, **{"id": number, "uuid": f"u{number}", **fields})


def test_both_forms_of_a_log_give_the_same_traces(tmp_path: Path) -> None:
    samples = [
        numbered(1),
        numbered(2, error={"message": "broken"}),
        numbered(2, epoch=2, uuid="x"),
    ]
    archived, document = read_eval(tmp_path, *samples), read_json(tmp_path, *samples)
    assert document.format == archived.format == "inspect"
    for one, other in zip(archived.traces, document.traces, strict=True):
        assert one.identity == other.identity
        assert one.meta == other.meta
        assert told(one) == told(other)
        assert [span.key for span in spans(one)] == [span.key for span in spans(other)]
    assert spans(document.traces[1])[0].place == "/samples/1/events/0/input/0"
    assert spans(document.traces[1])[-1].place == "/samples/1/error"


def test_of_a_file_that_is_cut_off_what_is_intact_is_read(tmp_path: Path) -> None:
    log = {**HEADER, "samples": [numbered(number) for number in range(6)], "reductions": []}
    text = json.dumps(log, indent=2)
    path = tmp_path / "cut.json"
    begins = text.index('"samples"')
    for cut in range(begins, len(text) - 3, (len(text) - begins) // 12):
        path.write_text(text[:cut])
        traces = read_file(READER, path).traces
        whole = text[:cut].count('"attachments"')  # stands at the end of each sample
        assert len(traces) in (whole, whole + 1)
        assert [trace.text(1) for trace in traces[:whole]] == [
            f"Number {number}." for number in range(whole)
        ]
        assert all(trace.meta.model == "openai/gpt-5" for trace in traces)


def test_a_log_that_cannot_be_read_as_json_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repair, "MOST_CHARS", 100)
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**HEADER, "samples": [numbered(1)]})[:-5])
    report = READER.read(Source(path))
    assert "cannot be read" in (report.failed or "")


def test_what_strict_json_does_not_know_is_read(tmp_path: Path) -> None:
    text = json.dumps({**HEADER, "stats": "S", "samples": [numbered(1)]})
    path = tmp_path / "a.json"
    path.write_text("\ufeff" + text.replace('"S"', "NaN").replace("Number", "\\udc00"))
    (trace,) = read_file(READER, path).traces
    assert trace.text(1) == "\ufffd 1."


def test_a_log_longer_than_its_head_is_known_by_its_head(tmp_path: Path) -> None:
    long = numbered(1, metadata={"filler": "x" * 2 * HEAD_BYTES})
    source = Source(write_json(tmp_path / "a.json", {**HEADER, "samples": [long]}))
    assert READER.recognises(source)
    assert "json" not in vars(source)
    assert "data" not in vars(source)


@pytest.mark.parametrize("without", ["samples", "plan", "version", "status"])
def test_a_log_is_known_by_what_it_has(tmp_path: Path, without: str) -> None:
    log = {**HEADER, "samples": [numbered(1)]}
    del log[without]
    path = write_json(tmp_path / "a.json", log)
    assert [type(reader).__name__ for reader in recognising_readers(Source(path))] == [
        "InspectReader"
    ]


@pytest.mark.parametrize("samples", [None, [], 7, {}, "x"])
def test_a_log_without_samples_says_so(tmp_path: Path, samples: object) -> None:
    report = read_file(READER, write_json(tmp_path / "a.json", {**HEADER, "samples": samples}))
    assert report.traces == ()
    assert [problem.place for problem in report.problems] == ["/samples"]


@pytest.mark.parametrize(
    "other",
    [
        {"eval": {"task": "t", "model": "m"}},
        {"eval": "task", "status": "success"},
        {"status": "success", "samples": [], "messages": [{"role": "user", "content": "eval"}]},
        {"status": "ok", "record": {"eval": {"task": "t", "model": "m"}}},
        {"version": 1, "eval": {"score": 1}, "messages": [user("task")]},
        [{"version": 1, "eval": {"task": "t", "model": "m"}}],
        {"text": '{"version": 1, "eval": {"task": "t", "model": "m"}}', "status": 1},
    ],
)
def test_other_files_are_not_claimed(tmp_path: Path, other: object) -> None:
    assert not READER.recognises(Source(write_json(tmp_path / "a.json", other)))


def test_a_head_full_of_quotes_is_looked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"eval": "' + '\\"' * HEAD_BYTES)
    assert not READER.recognises(Source(path))


def swap_one(holder: Any, value: object, chance: random.Random) -> None:
    """Put ``value`` in the place of some value within ``holder``, however deep."""
    while True:
        places = list(holder) if isinstance(holder, dict) else range(len(holder))
        place = chance.choice(places)
        inner = holder[place]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.2:
            holder[place] = value
            return
        holder = inner


@pytest.mark.slow
def test_fields_of_any_type_raise_nothing(tmp_path: Path) -> None:
    """Values of a whole log are swapped for others, one after the other."""
    chance = random.Random(7)
    odd: list[object] = [None, 7, -1, 1e308, "", "x\0", [], {}, [[]], True, {"id": {}}, "\ud800"]
    log = {**HEADER, "samples": [numbered(1, error={"message": "m"}, limit={"type": "t"})]}
    text = json.dumps(log)
    for _round in range(150):
        changed = json.loads(text)
        for _change in range(3):
            swap_one(changed["samples"][0], chance.choice(odd), chance)
        read_file(READER, write_json(tmp_path / "a.json", changed))
