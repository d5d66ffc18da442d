"""Label Studio and doccano."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.exchange.exporters.files import doccano_lines
from mast_tui.exchange.import_batch import Incoming, label_id
from mast_tui.exchange.label_studio import (
    MODES,
    code_points,
    label_config,
    label_name,
    label_studio_tasks,
    read_label_studio,
    region_of,
    target_of,
    utf16_length,
)
from mast_tui.exchange.trace_files import TextSpan
from mast_tui.labels import WHOLE_TRACE, AnnotatorKind, Label, Target, TraceWork, VerdictValue
from tests.exchange.strategies import MAST, TEXT, targets, traces, works

pytestmark = pytest.mark.slow

JUDGE = "judge:rules@1"
KINDS = {"alice": AnnotatorKind.HUMAN, JUDGE: AnnotatorKind.JUDGE}
SPANS = (
    TextSpan("k0", "start 🚀 here", "#1 user"),
    TextSpan("k1", "שלום world", "#2 agent"),
    TextSpan("k2", "done", "#3 tool"),
)


OFFSETS = {"start": 0, "end": 0, "startOffset": 6, "endOffset": 8}
REGION: dict[str, Any] = {
    "id": "x",
    "from_name": MODES,
    "to_name": "trace",
    "type": "paragraphlabels",
    "value": {**OFFSETS, "paragraphlabels": ["1.3 Step repetition"]},
}


def tasks_of(*work: TraceWork, spans: tuple[TextSpan, ...] | None = SPANS) -> list[dict[str, Any]]:
    return label_studio_tasks(work, MAST, {}, KINDS, lambda _: spans)


def read(
    folder: Path, tasks: object, *, in_workspace: bool = False, annotator: str | None = None
) -> Incoming:
    file = folder / "tasks.json"
    file.write_text(json.dumps(tasks), encoding="utf-8")
    return read_label_studio(
        [file],
        taxonomy=MAST,
        find_taxonomy=lambda _: None,
        has_work=lambda *_: in_workspace,
        annotator=annotator,
    )


def label(mode: str, target: Target, **fields: Any) -> Label:
    name = label_id("alice", "t", MAST.ref, mode, target)
    return Label(name, "alice", "t", MAST.ref, mode, target, **fields)


def work(*labels: Label, finished_at: str | None = "", **verdicts: VerdictValue) -> TraceWork:
    return TraceWork(
        "alice",
        "t",
        MAST.ref,
        labels={label.id: label for label in labels},
        verdicts=verdicts,
        finished_at=finished_at,
    )


def exported_by_label_studio(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tasks as Label Studio exports them, with its own numbers."""
    tasks = json.loads(json.dumps(tasks))
    for number, task in enumerate(tasks, start=900):
        task["id"] = number
        for annotation in task["annotations"]:
            annotation["import_id"] = annotation["id"]
            annotation["id"] = 12
            annotation["completed_by"] = 1
            annotation["updated_at"] = "2026-06-01T00:00:00.000000Z"
            for result in annotation["result"]:
                result["origin"] = "manual"
    return tasks


@settings(max_examples=settings().max_examples // 2)
@given(st.data(), st.booleans())
def test_tasks_round_trip(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, has_spans: bool
) -> None:
    spans = data.draw(traces())
    exported = [data.draw(works(spans)), data.draw(works(spans, JUDGE))]
    tasks = tasks_of(*exported, spans=spans if has_spans else None)
    incoming = read(tmp_path_factory.mktemp("ls"), exported_by_label_studio(tasks))
    assert incoming.problems == ()
    assert incoming.taxonomies == (MAST,)
    imported = {work.annotator: work for work in incoming.work}
    for original in exported:
        copy = imported[original.annotator]
        assert copy.author_kind is KINDS[original.annotator]
        assert copy.labels == original.labels
        assert copy.verdicts == original.verdicts
        assert copy.finished_at == original.finished_at


@given(st.data())
def test_targets_are_read_from_regions_alone(data: st.DataObject) -> None:
    spans = data.draw(traces())
    target = data.draw(targets(spans))
    region = region_of(target, spans)
    if target.is_whole:
        assert region is None
        return
    assert region is not None
    restored = target_of(region, spans)
    whole = target.quote is not None and target.quote == spans[int(region["start"])].text
    assert restored == (Target(target.first, target.last) if whole else target)


@given(TEXT, st.data())
def test_offsets_are_counted_in_utf_16(text: str, data: st.DataObject) -> None:
    assert utf16_length(text) == len(text.encode("utf-16-le")) // 2
    position = data.draw(st.integers(0, len(text)))
    assert code_points(text, utf16_length(text[:position])) == position


def test_half_of_a_surrogate_pair_is_the_whole_character() -> None:
    assert code_points("🚀x", 1) == 0
    assert code_points("🚀x", 1, up=True) == 1
    value = {"start": 0, "end": 0, "startOffset": 7, "endOffset": 7 + 1}
    assert target_of(value, SPANS) == Target("k0", "k0", "🚀", 6, 7)


def test_changed_work_belongs_to_an_imported_annotator(tmp_path: Path) -> None:
    noted = label("step_repetition", Target("k0", "k0", "🚀", 6, 7), note="rocket", confidence=0.5)
    moved = label("task_derailment", Target("k0", "k1"))
    removed = label("conversation_reset", Target("k2", "k2"))
    tasks = exported_by_label_studio(
        tasks_of(work(noted, moved, removed, premature_termination=VerdictValue.ABSENT))
    )
    results = tasks[0]["annotations"][0]["result"]
    by_mode = {result["value"][result["type"]][0].partition(" ")[0]: result for result in results}
    results.remove(by_mode["2.1"])
    by_mode["2.3"]["value"] |= {"start": "1", "end": "1", "startOffset": 5, "endOffset": 10}
    by_mode["1.3"]["meta"]["text"] = ["a rocket!"]
    offsets = {"start": "2", "end": "2", "startOffset": 0, "endOffset": 4}
    value = {**offsets, "paragraphlabels": ["1.1 Disobey task specification"]}
    results.append(REGION | {"id": "new", "value": value})
    incoming = read(tmp_path, tasks, in_workspace=True)
    (new,) = incoming.work
    assert (new.annotator, new.author_kind) == ("alice (label-studio)", AnnotatorKind.IMPORTED)
    assert {(x.mode, x.target, x.note, x.confidence) for x in new.labels.values()} == {
        ("step_repetition", noted.target, "a rocket!", 0.5),
        ("task_derailment", Target("k1", "k1", "world", 5, 10), "", None),
        ("disobey_task_specification", Target("k2", "k2"), "", None),
    }
    assert new.verdicts == {"premature_termination": VerdictValue.ABSENT}
    assert any("alice (label-studio)" in note for note in incoming.notes)


def test_unchanged_and_skipped_annotations_are_left_out(tmp_path: Path) -> None:
    tasks = exported_by_label_studio(tasks_of(work(label("step_repetition", WHOLE_TRACE))))
    incoming = read(tmp_path, tasks, in_workspace=True)
    assert (incoming.work, incoming.problems) == ((), ())
    assert incoming.notes == ("1 annotation unchanged, already in the workspace",)
    task = task_by(3, REGION)
    task["annotations"][0]["was_cancelled"] = True
    skipped = read(tmp_path, [task])
    assert skipped.work == ()
    assert "1 annotation left out, as skipped in Label Studio" in skipped.notes[0]


def task_by(user: object, *results: object) -> dict[str, Any]:
    task: dict[str, Any] = tasks_of(work())[0]
    annotation = {"id": 5, "completed_by": user, "result": list(results), "created_at": "2026-06"}
    return task | {"annotations": [annotation]}


def test_annotations_begun_in_label_studio_have_an_imported_annotator(tmp_path: Path) -> None:
    for user, name in [
        ({"id": 3, "email": "bob@example.org"}, "bob@example.org"),
        (3, "label-studio user 3"),
        ("bob", "bob"),
    ]:
        (work,) = read(tmp_path, [task_by(user, REGION)]).work
        assert (work.annotator, work.author_kind, work.finished_at) == (
            name,
            AnnotatorKind.IMPORTED,
            "2026-06",
        )
        assert [label.target for label in work.labels.values()] == [Target("k0", "k0", "🚀", 6, 7)]
        (renamed,) = read(tmp_path, [task_by(user, REGION)], annotator="carol").work
        assert (renamed.annotator, next(iter(renamed.labels.values())).annotator) == (
            "carol",
            "carol",
        )


def region_with(**value: object) -> dict[str, Any]:
    return REGION | {"value": REGION["value"] | value}


def test_problems_name_the_task_and_annotation(tmp_path: Path) -> None:
    for task, message in [
        (7, "task 1: Expected an object"),
        ({"data": {"text": "x"}}, "task 1: has no 'trace_id' in its data"),
        (task_by(None, REGION), "annotation 1: does not name its annotator"),
        (task_by(3, region_with(end=7)), "result 1: covers paragraphs 0 to 7"),
        (task_by(3, region_with(startOffset=-1)), "'startOffset' is -1, not a number from 0"),
        (task_by(3, region_with(endOffset=6)), "result 1: is empty"),
        (task_by(3, region_with(paragraphlabels=["7.7 No"])), "'7.7 No' is not a mode of mast@3"),
        (task_by(3) | {"data": {"trace_id": "t", "spans": 1}}, "data.spans: Expected"),
        (task_by(3) | {"meta": {"mast_tui": {"taxonomy": "x@1"}}}, "taxonomy 'x@1' is"),
        (task_by(3) | {"meta": {"mast_tui": {"by": {"1": 2}}}}, "meta.mast_tui.by[...]: "),
    ]:
        incoming = read(tmp_path, [task])
        assert [message in str(problem) for problem in incoming.problems] == [True]


def test_the_configuration_has_every_mode_once_per_control() -> None:
    escaped = replace(MAST, modes=(replace(MAST.modes[0], name="<&\"'> \u202e"), *MAST.modes[1:]))
    root = ET.fromstring(label_config(escaped))
    names = [label_name(mode) for mode in (*escaped.modes, escaped.open_code_mode)]
    assert [element.get("value") for element in root.iter("Label")] == names
    assert [element.get("value") for element in root.iter("Choice")] == names * 3
    assert root.find("Paragraphs") is not None


# doccano


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
    text = line["text"]
    marks = line["label"]
    assert text.splitlines()[0] == spans[0].author
    # Doccano's own models accept marks with offsets in the text, each mark once.
    assert all(0 <= start < end <= len(text) for start, end, _ in marks)
    assert len({tuple(mark) for mark in marks}) == len(marks)
    marked = {(text[start:end], name) for start, end, name in marks}
    for label in work.labels.values():
        if label.target.quote is not None:
            assert (label.target.quote, name_of(label.mode)) in marked
        elif label.target == Target(spans[0].key, spans[0].key):
            assert (spans[0].text, name_of(label.mode)) in marked
    whole = {name_of(label.mode) for label in work.labels.values() if label.target.is_whole}
    assert set(line["cats"]) == whole
    absent = {name_of(m) for m, value in work.verdicts.items() if value is VerdictValue.ABSENT}
    assert set(line["absent"]) == absent


def test_empty_spans_are_marked_and_missing_traces_listed() -> None:
    spans = (TextSpan("k", "", "#1 tool"), TextSpan("l", "words", "#2 agent"))
    label = Label("x", "a", "t", MAST.ref, "step_repetition", Target("k", "k"))
    (line,) = lines_of(TraceWork("a", "t", MAST.ref, labels={label.id: label}), spans)
    ((start, end, _),) = line["label"]
    assert line["text"][start:end] == "#1 tool"
    work = [TraceWork(name, "t", MAST.ref, labels={label.id: label}) for name in ("a", "b")]
    assert doccano_lines(work, MAST, {}, lambda _: None) == ([], ["t"])
