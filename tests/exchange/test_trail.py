"""TRAIL: published labels on their spans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import Incoming
from mast_tui.exchange.importers import labelled_sets
from mast_tui.exchange.importers.labelled_sets import read_trail
from mast_tui.labels import Label
from mast_tui.traces.index.document import Step, StepList, StepSpans
from mast_tui.traces.library import read_file
from mast_tui.traces.model import Role, SpanKind, Trace, TraceIdentity
from tests.traces.checks import write_json

TRACE_ID = "0f3c11aa52d6440e9a07f2f1a4d0b6c2"
ERROR: dict[str, object] = {
    "category": "Goal Deviation",
    "location": "a1b2c3d4e5f60718",
    "evidence": "I will look at the weather instead.",
    "description": "It leaves the question.",
    "impact": "HIGH",
}


def labels_file(folder: Path, *errors: Mapping[str, object], name: str = TRACE_ID) -> Path:
    """Write labels in the published layout, which does not name the trace."""
    scores = [{"reliability_score": 3, "overall": 3.5}]
    document = {"errors": [ERROR | dict(error) for error in errors], "scores": scores}
    return write_json(folder / f"{name}.json", document)


def only_labels(incoming: Incoming) -> tuple[Label, ...]:
    assert incoming.problems == ()
    [work] = incoming.work
    return tuple(work.labels.values())


@pytest.fixture
def trace_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file with two spans of one source span, and spans of two others."""
    steps = StepList()
    place = "/spans/0"
    agent = (SpanKind.MESSAGE, Role.AGENT, "assistant")
    steps.add("a1b2c3d4e5f60718/asked/0", *agent, "What is the capital\nof Peru?", place=place)
    text = "First\nI will look at  the\nweather instead. Then"
    steps.add("a1b2c3d4e5f60718/answered/0", *agent, text, place=place)
    steps.add("bbbb", *agent, "Lima", place=place)
    steps.add("a1b2c3d4e5f60718x/answered/0", *agent, "not this one", place=place)
    path = write_json(tmp_path / "traces" / f"{TRACE_ID}.json", {"spans": []})

    def traces_of(file: Path) -> tuple[Trace, ...]:
        return (_trace(file, steps.steps),) if file.resolve() == path.resolve() else ()

    monkeypatch.setattr(labelled_sets, "read_traces", traces_of)
    return path


def _trace(path: Path, steps: list[Step]) -> Trace:
    identity = TraceIdentity(TRACE_ID, "0" * 64, 1, "trail", 1, native=True)
    return Trace(identity, path, StepSpans(steps))


def published_layout_of_a_trace() -> dict[str, object]:
    times: dict[str, object] = {"timestamp": "2025-03-19T16:31:00.000000Z", "duration": "PT1S"}
    model = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Which is the capital of Peru?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "I think that it is Cusco.",
    }
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "search",
        "input.value": '{"query": "Peru"}',
        "output.value": "Lima is the capital.",
    }
    spans: list[dict[str, object]] = [
        {"span_id": "BBBBBBBBBBBBBBBB", "span_name": "model", "span_attributes": model},
        {"span_id": "cccccccccccccccc", "span_name": "search", "span_attributes": tool},
    ]
    step: dict[str, object] = {
        "span_id": "aaaaaaaaaaaaaaaa",
        "parent_span_id": None,
        "span_name": "Step 1",
        "span_attributes": {"openinference.span.kind": "CHAIN"},
        "child_spans": [
            times | span | {"parent_span_id": "aaaaaaaaaaaaaaaa", "child_spans": []}
            for span in spans
        ],
    }
    return {"trace_id": TRACE_ID, "spans": [times | step]}


@pytest.mark.parametrize(
    ("location", "evidence", "text"),
    [
        ("bbbbbbbbbbbbbbbb", "it is Cusco", "I think that it is Cusco."),
        ("BBBBBBBBBBBBBBBB", "it is Cusco", "I think that it is Cusco."),
        ("cccccccccccccccc", "Lima", "Lima is the capital."),
        ("bbbbbbbbbbbbbbbb", "of Peru?", "Which is the capital of Peru?"),
    ],
)
def test_labels_are_on_the_spans_of_published_traces(
    tmp_path: Path, location: str, evidence: str, text: str
) -> None:
    error = {"location": location, "evidence": evidence}
    for number, folder in enumerate(("data/GAIA", "GAIA", "labels/traces")):
        home = tmp_path / str(number)
        path = write_json(home / folder / f"{TRACE_ID}.json", published_layout_of_a_trace())
        [label] = only_labels(read_trail([labels_file(home / "labels", error)]))
        [trace] = read_file(path, named=True).traces
        index = trace.index_of(label.target.first or "")
        assert index is not None
        assert trace.text(index) == text
        assert label.target.quote == evidence
        assert label.trace_id == trace.identity.trace_id == TRACE_ID


def test_a_parent_span_can_be_labelled(tmp_path: Path) -> None:
    path = write_json(tmp_path / "data" / "x" / "t.json", published_layout_of_a_trace())
    error = {"location": "aaaaaaaaaaaaaaaa", "evidence": None}
    file = labels_file(tmp_path / "labels", error)
    [label] = only_labels(read_trail([file, path]))
    [trace] = read_file(path, named=True).traces
    assert trace.index_of(label.target.first or "") is not None


def test_evidence_is_quoted_or_noted(trace_file: Path, tmp_path: Path) -> None:
    for evidence in ['"of Peru?"', "What is the capital\\nof Peru?", "  of  Peru?\n"]:
        [label] = only_labels(read_trail([labels_file(tmp_path, {"evidence": evidence})]))
        assert label.target.first == "a1b2c3d4e5f60718/asked/0"
        assert label.target.quote in ("of Peru?", "What is the capital\nof Peru?")
    # Missing evidence is in the note.
    incoming = read_trail([labels_file(tmp_path, {"evidence": "it never said this"})])
    [label] = only_labels(incoming)
    assert label.target.first == "a1b2c3d4e5f60718/asked/0"
    assert label.target.quote is None
    assert "Evidence: it never said this" in label.note
    assert any("1 label has evidence" in note for note in incoming.notes)


def test_labels_without_their_trace_keep_span_and_trace_ids(tmp_path: Path) -> None:
    incoming = read_trail([labels_file(tmp_path, {})])
    [label] = only_labels(incoming)
    assert (label.trace_id, label.target.first) == (TRACE_ID, "a1b2c3d4e5f60718")
    assert label.target.quote is None
    assert "Evidence: I will look" in label.note
    assert any("trace not found" in note for note in incoming.notes)
    document = {"trace_id": "t-9", "errors": [ERROR], "scores": []}
    named = write_json(tmp_path / "named" / "1.json", document)
    assert only_labels(read_trail([named]))[0].trace_id == "t-9"
    rows = [
        {"trace": json.dumps({"trace_id": name}), "labels": json.dumps({"trace_id": name} | labels)}
        for name, labels in (("t-1", {"errors": [ERROR]}), ("t-2", {"errors": []}))
    ]
    file = tmp_path / "rows" / "rows.jsonl"
    file.parent.mkdir()
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    incoming = read_trail([file])
    assert {work.trace_id: len(work.labels) for work in incoming.work} == {"t-1": 1, "t-2": 0}


def test_spellings_of_a_category_are_recognised(tmp_path: Path) -> None:
    for written, slug in [
        ("Language-only", "language_only"),
        ("Language-Only", "language_only"),
        (" Incorrect Problem Identification", "incorrect_problem_identification"),
        ("Context Handling Failure", "context_handling_failures"),
        ("Formatting Error", "formatting_errors"),
        ("Goal deviation", "goal_deviation"),
        ("Instruction non complience", "instruction_non_compliance"),
        ("Instruction Non-Compliance", "instruction_non_compliance"),
        ("Poor Information retrieval", "poor_information_retrieval"),
        ("Task Orchestration Error", "task_orchestration"),
        ("Task Orchestration Errors", "task_orchestration"),
        ("Tool Selection", "tool_selection_errors"),
        ("Resource Abuse", "resource_abuse"),
        ("Resource Not Found", "resource_not_found"),
    ]:
        [label] = only_labels(read_trail([labels_file(tmp_path, {"category": written})]))
        assert label.mode == slug


BAD_ERRORS: list[tuple[dict[str, object], str]] = [
    ({"category": "API Issues"}, "'API Issues'"),
    ({"category": None}, "category"),
    ({"location": None}, "location"),
    ({"location": ["a"]}, "location"),
]


def test_bad_errors_and_unknown_spans_are_named(tmp_path: Path, trace_file: Path) -> None:
    for error, message in BAD_ERRORS:
        incoming = read_trail([labels_file(tmp_path, error, {})])
        [problem] = incoming.problems
        assert problem.place == "error 0"
        assert message in problem.reason
        assert len(incoming.work[0].labels) == 1
    incoming = read_trail([labels_file(tmp_path, {}, {"location": "nowhere"})])
    [problem] = incoming.problems
    assert problem.place == "error 1"
    assert "'nowhere'" in problem.reason
    assert len(incoming.work[0].labels) == 1


def test_equal_labels_are_joined_and_trailing_commas_read(tmp_path: Path) -> None:
    second = {"description": "Nor does it come back.", "evidence": None}
    [label] = only_labels(read_trail([labels_file(tmp_path, {"evidence": ""}, second)]))
    assert "It leaves the question." in label.note
    assert "Nor does it come back." in label.note
    file = labels_file(tmp_path, {"description": "a list [1,2,]", "evidence": ""})
    file.write_text(file.read_text().replace('"}]', '"},]'))
    with pytest.raises(json.JSONDecodeError):
        json.loads(file.read_text())
    [listed] = only_labels(read_trail([file]))
    assert listed.note.startswith("a list [1,2,]")


def test_broken_files_are_problems_and_others_refused(tmp_path: Path) -> None:
    broken = tmp_path / "b.json"
    broken.write_text("{")
    incoming = read_trail([tmp_path])
    assert [problem.file for problem in incoming.problems] == [broken]
    broken.write_text("{}")
    with pytest.raises(ExchangeError, match="no TRAIL labels"):
        read_trail([tmp_path])


def test_a_label_file_is_no_trace(tmp_path: Path) -> None:
    report = read_file(labels_file(tmp_path, {}), named=False)
    assert report.skipped is not None
    assert "mast-tui import" in report.skipped
    other = write_json(tmp_path / "other.json", {"errors": [], "scores": [], "runs": []})
    assert "import" not in (read_file(other, named=False).skipped or "")
