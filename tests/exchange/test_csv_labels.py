"""csv-long and csv-wide: what rows mean, and what is wrong with a bad one."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.exchange.csv_labels import (
    COLUMNS,
    iso_time,
    read_csv_long,
    read_csv_wide,
    write_csv_long,
    write_csv_wide,
)
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import Incoming, label_id, lasting_id, lasting_ids
from mast_tui.labels import (
    WHOLE_TRACE,
    AnnotatorKind,
    Label,
    Origin,
    Severity,
    Target,
    TraceWork,
    VerdictValue,
    label_origin,
)
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.model import Outcome
from mast_tui.workspace.records import TraceRecord

MAST = load_mast()
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
KEY = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=8)


@st.composite
def targets(draw: st.DrawFn) -> Target:
    first, last = draw(KEY), draw(KEY)
    quote = draw(TEXT.filter(str.strip))
    start = draw(st.integers(0, 999))
    return draw(
        st.sampled_from(
            [
                WHOLE_TRACE,
                Target(first, first),
                Target(first, last),
                Target(first, first, quote),
                Target(first, first, quote, start, start + len(quote)),
            ]
        )
    )


@st.composite
def works(draw: st.DrawFn) -> TraceWork:
    annotator, trace_id = draw(st.sampled_from(["alice", "Bö b"])), draw(KEY)
    said = draw(
        st.dictionaries(st.sampled_from([m.slug for m in MAST.modes]), targets() | st.none())
    )
    labels = [
        Label(
            id=label_id(annotator, trace_id, MAST.ref, mode, target),
            annotator=annotator,
            trace_id=trace_id,
            taxonomy=MAST.ref,
            mode=mode,
            target=target,
            note=draw(TEXT),
            confidence=draw(st.none() | st.floats(0, 1)),
            severity=draw(st.none() | st.sampled_from(Severity)),
            origin=label_origin(annotator, draw(st.sampled_from(Origin))),
            saw_suggestions=draw(st.booleans()),
            created_at=draw(st.sampled_from(["", "2026-05-04T10:20:30Z"])),
        )
        for mode, target in said.items()
        if target is not None
    ]
    verdicts = {
        mode: draw(st.sampled_from([VerdictValue.ABSENT, VerdictValue.UNSURE]))
        for mode, target in said.items()
        if target is None
    }
    finished = draw(st.sampled_from([None, "", "2026-05-04T10:20:30.5Z"]))
    return TraceWork(
        annotator,
        trace_id,
        MAST.ref,
        labels={label.id: label for label in labels},
        verdicts=verdicts,
        finished_at=finished,
    )


def read_long(tmp_path: Path, text: str, annotator: str | None = None) -> Incoming:
    file = tmp_path / "labels.csv"
    file.write_text(text, encoding="utf-8", newline="")
    return read_csv_long([file], taxonomy=MAST, find_taxonomy=lambda _: None, annotator=annotator)


def read_wide(tmp_path: Path, text: str, annotator: str | None = None) -> Incoming:
    file = tmp_path / "labels.csv"
    file.write_text(text, encoding="utf-8")
    return read_csv_wide([file], taxonomy=MAST, annotator=annotator)


@settings(max_examples=25)
@given(st.lists(works(), max_size=4, unique_by=lambda w: (w.annotator, w.trace_id)))
def test_long_rows_come_back(
    tmp_path_factory: pytest.TempPathFactory, written: list[TraceWork]
) -> None:
    incoming = read_long(tmp_path_factory.mktemp("long"), write_csv_long(written, MAST))
    assert incoming.problems == ()
    back = {(w.annotator, w.trace_id): w for w in incoming.work}
    for work in written:
        if not work.labels and not work.verdicts and work.finished_at is None:
            assert (work.annotator, work.trace_id) not in back
            continue
        read = back[work.annotator, work.trace_id]
        assert read.labels == work.labels
        assert read.verdicts == work.verdicts
        assert read.finished_at == work.finished_at
        seen = any(label.saw_suggestions for label in work.labels.values())
        assert read.judge_seen is seen


def long_row(**cells: str) -> str:
    row = dict.fromkeys(COLUMNS, "") | {"trace_id": "t", "annotator": "a"} | cells
    return ",".join(COLUMNS) + "\n" + ",".join(row[name] for name in COLUMNS) + "\n"


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"mode": "9.9", "value": "present"}, "'9.9' is none of mast@"),
        ({"mode": "1.3", "value": "yes"}, "present, absent, unsure or finished"),
        ({"mode": "1.3", "value": "finished"}, "has no mode"),
        ({"mode": "", "value": "present"}, "'mode' is empty"),
        ({"mode": "1.3", "value": "absent", "span_first": "k"}, "points at no span"),
        ({"mode": "1.3", "value": "present", "quote": "q"}, "inside one span"),
        ({"mode": "1.3", "value": "present", "span_last": "k"}, "without span_first"),
        (
            {"mode": "1.3", "value": "present", "span_first": "k", "span_last": "l", "quote": "q"},
            "inside one span",
        ),
        (
            {
                "mode": "1.3",
                "value": "present",
                "span_first": "k",
                "quote": "quo",
                "char_start": "4",
                "char_end": "9",
            },
            "the quote has 3 characters",
        ),
        ({"mode": "1.3", "value": "present", "confidence": "1.5"}, "between 0 and 1"),
        ({"mode": "1.3", "value": "present", "confidence": "nan"}, "between 0 and 1"),
        ({"mode": "1.3", "value": "present", "severity": "bad"}, "fatal, benign"),
        ({"mode": "1.3", "value": "present", "saw_suggestion": "maybe"}, "true or false"),
        ({"mode": "1.3", "value": "present", "created_at": "soon"}, "not a time"),
        ({"mode": "1.3", "value": "present", "taxonomy": "own@1"}, "--taxonomy"),
        ({"mode": "1.3", "value": "present", "annotator": ""}, "--annotator"),
        ({"mode": "1.3", "value": "present", "trace_id": " "}, "'trace_id' is empty"),
    ],
)
def test_a_bad_long_row_is_named_with_its_reason(
    tmp_path: Path, cells: dict[str, str], words: str
) -> None:
    incoming = read_long(tmp_path, long_row(**cells))
    assert incoming.work == ()
    [problem] = incoming.problems
    assert problem.place == "line 2"
    assert words in problem.reason


def test_rows_that_contradict_each_other_are_a_problem(tmp_path: Path) -> None:
    head = "trace_id,annotator,mode,value\n"
    for first, second in (("present", "absent"), ("absent", "unsure"), ("unsure", "present")):
        incoming = read_long(tmp_path, head + f"t,a,1.3,{first}\nt,a,step_repetition,{second}\n")
        assert [problem.place for problem in incoming.problems] == ["line 3"]
        assert "both" in incoming.problems[0].reason


def test_one_name_can_be_given_to_one_persons_rows_only(tmp_path: Path) -> None:
    head = "trace_id,annotator,mode,value\n"
    renamed = read_long(tmp_path, head + "t,al,1.3,present\n", annotator="alice")
    assert [work.annotator for work in renamed.work] == ["alice"]
    with pytest.raises(ExchangeError, match="al, bo"):
        read_long(tmp_path, head + "t,al,1.3,present\nt,bo,1.3,present\n", annotator="alice")
    nameless = read_long(tmp_path, "trace_id,mode,value\nt,1.3,present\n", annotator="alice")
    assert [work.annotator for work in nameless.work] == ["alice"]


def test_a_judges_rows_are_a_judges(tmp_path: Path) -> None:
    text = "trace_id,annotator,mode,value\nt,judge:rules@1,1.3,present\n"
    assert [work.author_kind for work in read_long(tmp_path, text).work] == [AnnotatorKind.JUDGE]


def test_unknown_and_missing_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="'span_frist' is unknown"):
        read_long(tmp_path, "trace_id,annotator,mode,value,span_frist\n")
    with pytest.raises(ExchangeError, match="'value' is missing"):
        read_long(tmp_path, "trace_id,annotator,mode\n")
    with pytest.raises(ExchangeError, match=r"'4\.1' is unknown"):
        read_wide(tmp_path, "trace_id,annotator,4.1\n")


def test_times_become_utc() -> None:
    assert iso_time("2026-05-04T12:20:30+02:00") == "2026-05-04T10:20:30Z"
    assert iso_time("2026-05-04T10:20:30") == "2026-05-04T10:20:30Z"


@given(
    st.dictionaries(
        st.sampled_from([m.slug for m in MAST.modes]), st.sampled_from(VerdictValue), max_size=14
    ),
    st.sampled_from(Outcome),
    st.none() | st.floats(0, 1),
)
def test_wide_rows_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    verdicts: dict[str, VerdictValue],
    outcome: Outcome,
    score: float | None,
) -> None:
    trace = TraceRecord("t", system="crew, x", model="m", outcome=outcome, score=score)
    written = TraceWork("alice", "t", MAST.ref, verdicts=verdicts)
    text = write_csv_wide([written], {"t": trace}, MAST)
    assert ("score" in text.split("\n")[0]) is (score is not None)
    incoming = read_wide(tmp_path_factory.mktemp("wide"), text)
    assert incoming.problems == ()
    [work] = incoming.work
    present = dict.fromkeys((label.mode for label in work.labels.values()), VerdictValue.PRESENT)
    assert {**work.verdicts, **present} == verdicts
    assert all(label.target.is_whole for label in work.labels.values())
    assert work.finished_at is not None
    assert incoming.traces == (trace,)


def test_the_spelling_of_pandas_and_of_success_is_read(tmp_path: Path) -> None:
    text = "trace_id,annotator,outcome,1.1,1.2,1.3\nt,a,success,1.0,0.0,\n"
    incoming = read_wide(tmp_path, text)
    assert incoming.traces[0].outcome is Outcome.SUCCEEDED
    assert [label.mode for label in incoming.work[0].labels.values()] == [MAST.modes[0].slug]
    assert incoming.work[0].verdicts == {MAST.modes[1].slug: VerdictValue.ABSENT}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("t,a,,2\n", "1, 0, ? or empty"),
        ("t,a,won,1\n", "failed, succeeded or empty"),
        (",a,,1\n", "'trace_id' is empty"),
        ("t,judge|x,,1\n", "separate names"),
        ("t,a,,1\nt,a,,0\n", "second row"),
        ("t,a,failed,1\nt,b,succeeded,0\n", "outcome is failed"),
    ],
)
def test_a_bad_wide_row_is_named_with_its_reason(tmp_path: Path, rows: str, words: str) -> None:
    incoming = read_wide(tmp_path, "trace_id,annotator,outcome,1.3\n" + rows)
    [problem] = incoming.problems
    assert problem.place == f"line {rows.count(chr(10)) + 1}"
    assert words in problem.reason


def test_the_same_row_twice_is_one(tmp_path: Path) -> None:
    incoming = read_wide(tmp_path, "trace_id,annotator,1.3\nt,a,1\nt,a,1\n")
    assert incoming.problems == ()
    assert len(incoming.work) == 1


PART = st.none() | st.integers() | st.booleans() | st.text() | st.sampled_from(VerdictValue)


@given(st.text(), st.lists(PART, min_size=1), st.lists(PART))
def test_lasting_ids_stay_what_they_were_in_earlier_versions(
    kind: str, about: list[object], rest: list[object]
) -> None:
    namespace = uuid.UUID("5f0d2a3c-6f0b-5c55-9a55-3a1f5d2f6c10")
    name = str(uuid.uuid5(namespace, json.dumps([kind, *about, *rest])))
    assert lasting_id(kind, *about, *rest) == lasting_ids(*about)(kind, *rest) == name
