"""Answer keys: the reference, scores and tests of a run in its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.library import read_file
from mast_tui.traces.model import AnswerKey
from mast_tui.traces.readers.converted import line_of
from mast_tui.traces.readers.run_facts import (
    AnswerKeyDraft,
    answer_key_from_json,
    answer_key_of,
    as_json,
    sorted_into_sections,
)
from tests.traces.checks import CORPUS, needs_corpus, write_json


def test_fields_are_sorted_into_sections_by_name_and_empty_ones_are_dropped() -> None:
    record = {
        "reward": 0,
        "success": False,
        "ground_truth": "12",
        "mistake_agent": "Coder",
        "expected_actions": [{"name": "book", "arguments": {}}, "look"],
        "gold_patch": ["--- a", "+++ b"],
        "answer": "",
        "failures": [],
        "content": "no part of it",
    }
    assert answer_key_of(record) == AnswerKey(
        expected_actions=(("book", "{}"), ("action", "look")),
        reference=(("ground_truth", "12"),),
        scores=(("reward", "0"), ("success", "false")),
        patch=(("gold_patch", "--- a\n+++ b"),),
        failures=(("mistake_agent", "Coder"),),
    )


@pytest.mark.parametrize("name", ["note", "feedback", "expected"])
def test_ambiguous_names_count_only_where_a_reader_allows_them(name: str) -> None:
    assert answer_key_of({name: "x"}) == AnswerKey()
    assert answer_key_of({name: "x"}, {name: "failures"}).failures == ((name, "x"),)


@pytest.mark.parametrize(
    ("value", "scores", "explanations"),
    [
        (0.5, {"s": "0.5"}, {}),
        ({"db": 1.0, "nl": {"met": 0}}, {"s db": "1.0", "s nl met": "0"}, {}),
        ({"score": 40, "justification": "half"}, {"s": "40"}, {"s justification": "half"}),
        ([{"name": "a", "value": 1, "comment": "ok"}], {"a": "1"}, {"a comment": "ok"}),
        ([{"overall": 3}], {"s overall": "3"}, {}),
    ],
)
def test_scores_are_split_into_numbers_and_explanations(
    value: object, scores: dict[str, str], explanations: dict[str, str]
) -> None:
    draft = AnswerKeyDraft()
    draft.add_score("s", value)
    assert (dict(draft.key().scores), dict(draft.key().explanations)) == (scores, explanations)


def test_merging_adds_the_missing_entries_once() -> None:
    first = AnswerKey(scores=(("a", "1"),))
    second = AnswerKey(scores=(("a", "1"), ("b", "2")), tests=(("t", "ok"),))
    assert first.with_all_of(second) == second
    assert list(second.sections()) == [("scores", second.scores), ("tests", second.tests)]


def test_answer_keys_are_written_and_read_without_loss() -> None:
    key = AnswerKey(scores=(("a", "1"), ("a", "2")), other=(("", ""),))
    assert answer_key_from_json(json.loads(json.dumps(as_json(key)))) == key
    shapes: tuple[object, ...] = (None, 5, [], {"scores": 5}, {"scores": [5]}, {"unknown": []})
    for broken in shapes:
        assert answer_key_from_json(broken) == AnswerKey()


def test_an_older_converted_file_keeps_its_answer_key(tmp_path: Path) -> None:
    record = {"question": "?", "history": [{"role": "user", "content": "?"}], "mistake_agent": "A"}
    (trace,) = read_file(write_json(tmp_path / "a.json", record), named=True).traces
    line = json.loads(line_of(trace))
    del line["answer_key"]
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps(line, separators=(",", ":")) + "\n")
    (older,) = read_file(path, named=True).traces
    assert older.meta.answer_key == trace.meta.answer_key
    assert sorted_into_sections([("x", "y")]) == AnswerKey(other=(("x", "y"),))


def test_answer_keys_are_not_written_for_blind_annotators(tmp_path: Path) -> None:
    record = {"ground_truth": "SECRET", "history": [{"role": "user", "content": "?"}], "reward": 1}
    (trace,) = read_file(write_json(tmp_path / "a.json", record), named=True).traces
    assert b"SECRET" in line_of(trace)
    blind = json.loads(line_of(trace, hides_outcomes=True))
    assert (blind["answer_key"], blind["hidden"], blind["score"]) == ({}, {}, None)


@needs_corpus
@pytest.mark.parametrize(
    ("path", "sections"),
    [
        ("tau-bench/retail.json", {"expected_actions", "scores", "other"}),
        ("who-and-when/hand-crafted/1.json", {"reference", "scores", "failures"}),
        ("swe-agent/pydicom-1458.traj", {"patch"}),
        ("inspect/docent_log.eval", {"reference", "scores", "explanations", "other"}),
    ],
)
def test_real_files_have_answer_keys(path: str, sections: set[str]) -> None:
    trace = read_file(CORPUS / path, named=True).traces[0]
    assert {name for name, _entries in trace.meta.answer_key.sections()} == sections
