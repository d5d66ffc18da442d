"""The human labels of the MAST study."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.importers.mast_human import read_mast_human
from mast_tui.exchange.mast_data import mast_binding
from mast_tui.labels import AnnotatorKind, VerdictValue
from mast_tui.taxonomy.loader import load_mast
from tests.exchange.corpus import corpus

MAST = load_mast()
LOG = "\n******************** Task 1/2 (abc_1)  ********************\nPlay the song.\n"


def labels_file(folder: Path, answers: dict[str, dict[str, object]], **fields: object) -> Path:
    record = {
        "trace_id": "hf_0",
        "mas_name": "AppWorld",
        "iaa_round": "Round 1",
        "hf_label_scheme": "early-3",
        "hf_annotations": answers,
    }
    path = folder / "labels.json"
    path.write_text(json.dumps([record | fields]), encoding="utf-8")
    return path


def traces_file(folder: Path, **fields: object) -> Path:
    record = {
        "index": "0", "round": "Round 1", "mas_name": "AppWorld", "benchmark_name": "Test-C",
        "trace_text": LOG, "human_labels": {"3.2": 1, "3.3": 0},
        "human_label_summary": {"failures": ["3.2 Weak Verification"]},
    }  # fmt: skip
    path = folder / "traces.json"
    path.write_text(json.dumps([record | fields]), encoding="utf-8")
    return path


ANSWERS: dict[str, dict[str, object]] = {
    "2.1 Starts over\n\nFor no reason.": {"annotator_1": True, "annotator_2": False},
    "1.2 Step repetition": {"annotator_1": False, "annotator_2": None},
}


def test_annotators_keep_names_and_answers(tmp_path: Path) -> None:
    traces_file(tmp_path)
    incoming = read_mast_human([labels_file(tmp_path, ANSWERS)])
    assert incoming.problems == ()
    early = next(taxonomy for taxonomy in incoming.taxonomies if taxonomy.ref == "early-3@1")
    assert [(mode.code, mode.name, mode.definition) for mode in early.modes] == [
        ("1.2", "Step repetition", ""),
        ("2.1", "Starts over", "For no reason."),
    ]
    people = {work.annotator: work for work in incoming.work if work.taxonomy == early.ref}
    assert set(people) == {"annotator_1", "annotator_2"}
    assert {work.author_kind for work in people.values()} == {AnnotatorKind.HUMAN}
    assert [label.mode for label in people["annotator_1"].labels.values()] == ["starts_over"]
    assert people["annotator_1"].verdicts == {"step_repetition": VerdictValue.ABSENT}
    assert people["annotator_2"].verdicts == {"starts_over": VerdictValue.ABSENT}
    assert people["annotator_2"].labels == {}


def test_numbers_of_mast_are_bound_by_printed_names(tmp_path: Path) -> None:
    incoming = read_mast_human([traces_file(tmp_path)])
    [work] = incoming.work
    assert (work.annotator, work.taxonomy) == ("mast-consensus", MAST.ref)
    # 'Weak verification' is a check that is made and fails, whatever its number.
    assert [label.mode for label in work.labels.values()] == ["incorrect_verification"]
    [note] = incoming.notes
    assert "3.2 of the file is 3.3 Incorrect verification" in note
    assert "3.3 of the file is 3.2 No or incomplete verification" in note
    assert work.verdicts == {"no_or_incomplete_verification": VerdictValue.ABSENT}
    with pytest.raises(ValueError, match="is named both"):
        mast_binding(MAST, [["3.3 Weak Verification"], ["3.3 No or Incorrect Verification"]])
    with pytest.raises(ValueError, match="two codes"):
        mast_binding(MAST, [["3.3 Weak Verification", "3.2 Incorrect verification"]])
    # Without printed names the numbers count.
    binding = mast_binding(MAST, [[]])
    assert binding.slugs == {mode.code: mode.slug for mode in MAST.modes}
    assert binding.in_words.count("by number") == 2


BAD_FIELDS: list[dict[str, object]] = [
    {"trace_id": "hf_1"},
    {"mas_name": "ChatDev"},
    {"iaa_round": "Round 2"},
    {"instance_id": "not-in-the-text"},
    {"trace_id": None},
    {"hf_annotations": {"no code": {"a": True}}},
    {"hf_annotations": {"1.1 A mode": {"a": "perhaps"}}},
    {"hf_annotations": {"1.1 A mode": {"judge:x": True}}},
    {"hf_annotations": {"1.1 A mode": True}},
]


def test_a_record_without_trace_or_answers_is_a_problem(tmp_path: Path) -> None:
    for fields in BAD_FIELDS:
        traces_file(tmp_path)
        incoming = read_mast_human([labels_file(tmp_path, ANSWERS, **fields)])
        assert [problem.place for problem in incoming.problems] == ["record 0"]
        assert {work.annotator for work in incoming.work} == {"mast-consensus"}


def test_labels_without_traces_are_read_and_other_files_refused(tmp_path: Path) -> None:
    incoming = read_mast_human([labels_file(tmp_path, ANSWERS)])
    assert {work.trace_id for work in incoming.work} == {"hf_0"}
    assert any("hf_0: trace not found" in note for note in incoming.notes)
    file = tmp_path / "x.json"
    file.write_text("[1, 2]")
    with pytest.raises(ExchangeError, match="no human labels"):
        read_mast_human([file])


def test_definitions_may_differ_and_cells_may_be_missing(tmp_path: Path) -> None:
    first = {
        "1.5 Step repetition \n\nAgain.": {"a": True, "b": True},
        "2.4 Withholds\n\nOne text.": {"a": True, "b": False},
    }
    second = {
        "1.5 Step repetition\n\nAgain.": {"a": False, "b": math.nan},
        "2.4 Withholds\n\nAnother text.": {"a": "nan", "b": True},
    }
    common = {"mas_name": "AppWorld", "hf_label_scheme": "interim-2"}
    records = [
        {"trace_id": f"hf_{number}", "hf_annotations": answers, **common}
        for number, answers in enumerate((first, second))
    ]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    incoming = read_mast_human([path])
    assert incoming.problems == ()
    assert [t.ref for t in incoming.taxonomies] == ["interim-2@1"]
    verdicts = {
        (w.trace_id, w.annotator): ({x.mode for x in w.labels.values()}, w.verdicts)
        for w in incoming.work
    }
    absent = VerdictValue.ABSENT
    assert verdicts == {
        ("hf_0", "a"): ({"step_repetition", "withholds"}, {}),
        ("hf_0", "b"): ({"step_repetition"}, {"withholds": absent}),
        ("hf_1", "a"): (set(), {"step_repetition": absent}),
        ("hf_1", "b"): ({"withholds"}, {}),
    }


def test_other_modes_under_one_scheme_are_a_problem(tmp_path: Path) -> None:
    headings = ({"1.1 One": {"a": True}}, {"1.1 Other": {"a": True}})
    records = [
        {"trace_id": f"hf_{number}", "hf_label_scheme": "s", "hf_annotations": answers}
        for number, answers in enumerate(headings)
    ]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    [problem] = read_mast_human([path]).problems
    assert problem.place == "record 1"
    assert "mode 'other' is new" in problem.reason


def test_the_published_labels_are_all_imported() -> None:
    labels = corpus("mast-human/annotations_rounds_1_2.json")
    incoming = read_mast_human([labels])
    assert incoming.problems == ()
    raw = json.loads(labels.read_bytes())
    assert {t.ref: len(t.modes) for t in incoming.taxonomies} == {
        "early-mast-18@1": 18,
        "interim-mast-17@1": 17,
        MAST.ref: 14,
    }
    people = [w for w in incoming.work if w.annotator != "mast-consensus"]
    cells = [cell for record in raw for cell in record["hf_annotations"].values()]
    answers = [value for cell in cells for value in cell.values()]
    assert sum(len(w.labels) for w in people) == sum(value is True for value in answers)
    assert sum(len(w.verdicts) for w in people) == sum(value is False for value in answers)
    assert len({w.trace_id for w in people}) == len(raw)
    # The other file of the pair has the same labels.
    other = read_mast_human([labels.with_name("iaa_rounds_1_2.json")])
    assert other.work == incoming.work
