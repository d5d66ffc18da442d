"""Imports of agentdash and AdaMAST."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mast_tui.exchange.crosswalk import find_crosswalk, read_crosswalk, translated
from mast_tui.exchange.importers.adamast import read_adamast
from mast_tui.exchange.importers.agentdash import read_agentdash
from mast_tui.labels import AnnotatorKind, VerdictValue
from mast_tui.taxonomy.loader import load_mast
from tests.traces.checks import write_json

MAST = load_mast()
CODES = [mode.code for mode in MAST.modes]


def answer(*present: str, **fields: object) -> dict[str, Any]:
    modes = {code: int(code in present) for code in CODES}
    counts = {"task_completion": False, "total_failures": len(present)}
    return {"failure_modes": modes, "summary": "it stopped early", **counts, **fields}


@pytest.mark.parametrize(
    ("document", "name", "trace_id"),
    [
        (answer("3.2"), "run 7.json", "run 7"),
        (answer("3.2", trace_id="t"), "x.json", "t"),
        ([answer("3.2", id=4)], "x.json", "4"),
        ({"t": answer("3.2")}, "x.json", "t"),
        ([{"trace_id": "t", "annotation": answer("3.2")}], "x.json", "t"),
    ],
)
def test_agentdash_answers_are_read_in_all_layouts(
    tmp_path: Path, document: object, name: str, trace_id: str
) -> None:
    incoming = read_agentdash([write_json(tmp_path / name, document)])
    assert incoming.problems == ()
    (work,) = incoming.work
    assert (work.annotator, work.author_kind, work.trace_id) == (
        "judge:agentdash",
        AnnotatorKind.JUDGE,
        trace_id,
    )
    assert [(x.mode, x.note, x.target.is_whole) for x in work.labels.values()] == [
        ("no_or_incomplete_verification", "it stopped early", True)
    ]
    assert len(work.verdicts) == 13
    assert "'No or Incorrect Verification'" in incoming.notes[0]


def test_a_zero_that_the_model_did_not_write_is_no_verdict(tmp_path: Path) -> None:
    words = "A. Bad.\nB. no\nC.\n1.1 no\n3.2: yes\n"
    file = write_json(tmp_path / "t.json", answer("3.2", raw_response=words))
    incoming = read_agentdash([file], "bob")
    (work,) = incoming.work
    assert work.author_kind is AnnotatorKind.IMPORTED
    assert work.verdicts == {"disobey_task_specification": VerdictValue.ABSENT}
    assert "12 zeros" in incoming.notes[1]


def test_bad_answers_are_named(tmp_path: Path) -> None:
    for document, words in [
        (["x"], "file: record 1: has no 'failure_modes'"),
        ([answer()], "file: record 1: has no 'trace_id'"),
        ([], ""),
        (3, "file: holds no answer"),
        ([answer(trace_id="t"), answer(trace_id="t")], "record 2: trace 't' comes twice"),
        ({"t": {"failure_modes": {"9.9": 1}}}, "'t': mode '9.9' is none of MAST's"),
        ({"t": {"failure_modes": {"1.1": "yes"}}}, "'t': mode 1.1 is 'yes', not 1 or 0"),
    ]:
        incoming = read_agentdash([write_json(tmp_path / "x.json", document)])
        assert [words in str(x) for x in incoming.problems] == [True] * bool(words)


TAXONOMY = {
    "display_name": "Research agents",
    "codes": [
        {
            "id": "A.1",
            "name": "Lost evidence",
            "description": "Sources are gone.",
            "category": "A",
            "when_to_use": "no passage is kept",
        },
        {"id": "A.2", "name": "Cut tool answer", "category": "A", "severity": "high"},
        {"id": "B.1", "name": "Weak checker", "category": "B"},
    ],
}


def mode_of(code: str, **fields: object) -> dict[str, object]:
    return {"code": code, "name": code, "evidence": "a quote", "confidence": "high"} | fields


def judged(**fields: object) -> dict[str, Any]:
    judge = {"provider": "openai", "model": "m-1"}
    head = {"schema_version": 2, "mode": "default", "taxonomy": "/elsewhere/taxonomy.json"}
    return {**head, "judge": judge} | fields


def test_adamast_brings_its_own_taxonomy(tmp_path: Path) -> None:
    write_json(tmp_path / "taxonomy.json", TAXONOMY)
    diagnoses = [
        {"trace_id": "t1", "failure_modes": [mode_of("A.2", severity="major")]},
        {"trace_id": "t2", "failure_modes": [], "none_apply": True},
        {"trace_id": "t3", "failure_modes": [], "none_apply": False},
    ]
    file = write_json(tmp_path / "out.json", judged(diagnoses=diagnoses))
    incoming = read_adamast([file])
    assert incoming.problems == ()
    (taxonomy,) = incoming.taxonomies
    assert taxonomy.id == "adamast"
    assert [mode.code for mode in taxonomy.modes] == ["A.1", "A.2", "B.1"]
    assert taxonomy.modes[0].applies == ("no passage is kept",)
    first, second, third = incoming.work
    assert (first.annotator, first.author_kind) == ("judge:m-1@adamast", AnnotatorKind.JUDGE)
    (label,) = first.labels.values()
    verdicts = first.verdicts
    assert (label.mode, label.note) == ("code-a-2", "confidence: high\nseverity: major")
    assert label.evidence is not None
    assert label.evidence.quote == "a quote"
    assert set(verdicts.values()) == {VerdictValue.ABSENT}
    assert len(verdicts) == 2
    assert len(second.verdicts) == 3
    assert (third.labels, third.verdicts) == ({}, {})
    assert "from taxonomy.json" in incoming.notes[0]
    assert "1 diagnosis names no code" in incoming.notes[1]


def test_other_codes_stay_open_without_their_taxonomy_or_list(tmp_path: Path) -> None:
    one = {"trace_id": "t", "failure_modes": [mode_of("C.9", name="Odd")], "none_apply": False}
    incoming = read_adamast([write_json(tmp_path / "x.json", [one])], "judge:ada")
    (work,) = incoming.work
    assert (work.annotator, work.verdicts) == ("judge:ada", {})
    assert [mode.name for mode in incoming.taxonomies[0].modes] == ["Odd"]
    # Neither does a single diagnosis.
    taxonomy = write_json(tmp_path / "tax.json", TAXONOMY)
    single = {"trace_id": "t", "code": "B.1", "label": "Weak checker", "evidence": "so it said"}
    single |= {"confidence": 0.75, "recovery_hint": "ask again"}
    file = write_json(tmp_path / "x.json", [single])
    (work,) = read_adamast([file, taxonomy]).work
    (label,) = work.labels.values()
    verdicts = work.verdicts
    assert (label.confidence, label.note, verdicts) == (0.75, "recovery hint: ask again", {})


def test_adamast_s_list_of_mast_is_translated(tmp_path: Path) -> None:
    one = {"trace_id": "t", "failure_modes": [mode_of("MAST-13"), mode_of("MAST-3")]}
    incoming = read_adamast([write_json(tmp_path / "x.json", judged(diagnoses=[one]))])
    assert incoming.taxonomies[0].ref == "adamast-mast@1"
    path = find_crosswalk(Path("adamast-to-mast"))
    result = translated(incoming, read_crosswalk(path), MAST, path)
    (work,) = result.work
    assert {MAST.mode(x.mode).code for x in work.labels.values()} == {"3.3", "1.3"}
    assert {MAST.mode(slug).code for slug in work.verdicts} == set(CODES) - {"1.3", "3.3", "2.6"}


def test_a_bad_diagnosis_is_named(tmp_path: Path) -> None:
    for one, words in [
        ({"trace_id": "t"}, "diagnosis 1: has neither 'failure_modes' nor 'code'"),
        ({"failure_modes": [mode_of("A.1")]}, "diagnosis 1: has no 'trace_id'"),
        ({"trace_id": "t", "failure_modes": 3}, "diagnosis 1: 'failure_modes' is no list"),
        ({"trace_id": "t", "failure_modes": [{}]}, "diagnosis 1: a failure mode has no 'code'"),
        (
            {"trace_id": "t", "failure_modes": [mode_of("Z.1")]},
            "diagnosis 1: code 'Z.1' is none of adamast@",
        ),
        (
            {"trace_id": "t", "failure_modes": [mode_of("A.1", confidence=7)]},
            "diagnosis 1: confidence is 7",
        ),
    ]:
        taxonomy = write_json(tmp_path / "tax.json", TAXONOMY)
        incoming = read_adamast([write_json(tmp_path / "x.json", [one]), taxonomy])
        assert [words in str(problem) for problem in incoming.problems] == [True]
