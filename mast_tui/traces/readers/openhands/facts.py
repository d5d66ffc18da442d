"""What the record around OpenHands' events tells about the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.model import Outcome, Role, SpanKind, SpanStatus, TraceMeta
from mast_tui.traces.readers.openhands.events import EventSpans, mapping, name_of
from mast_tui.traces.readers.run_facts import facts_of_record, hidden_fields, task_of


def agent_of(record: Mapping[str, object]) -> str | None:
    """The class of the agent, as a benchmark's record has it."""
    return name_of(mapping(record.get("metadata")).get("agent_class"))


def add_error(spans: EventSpans, record: Mapping[str, object]) -> None:
    """Add the error that ended the run, where the record has one."""
    if text := as_text(record.get("error")):
        spans.steps.add(
            "/error",
            SpanKind.LOG,
            Role.LOG,
            "log",
            text,
            place="/error",
            name="error",
            status=SpanStatus.ERROR,
        )


def facts(record: Mapping[str, object], spans: EventSpans) -> TraceMeta:
    """Task, model, benchmark and the benchmark's verdict; the latter is hidden as well."""
    metadata = mapping(record.get("metadata"))
    told = facts_of_record(record, spans.steps.steps)
    llm = mapping(metadata.get("llm_config")) or mapping(metadata.get("llm"))
    agent = mapping(mapping(record.get("agent")).get("llm"))
    instance = mapping(record.get("instance"))
    return replace(
        told,
        task=task_of(
            instance.get("problem_statement"), record.get("instruction"), steps=spans.steps.steps
        ),
        system="OpenHands",
        model=as_text(llm.get("model")) or as_text(agent.get("model")) or spans.model or told.model,
        benchmark=told.benchmark or as_text(metadata.get("dataset")),
        outcome=_outcome(record, told.outcome),
        hidden=hidden_fields(record, ("report", "test_result")),
    )


def _outcome(record: Mapping[str, object], told: Outcome) -> Outcome:
    """The verdict of the benchmark's own check; that a run was finished is none."""
    result = mapping(record.get("test_result"))
    for holder in (record, mapping(record.get("report")), mapping(result.get("report")), result):
        resolved = holder.get("resolved")
        if isinstance(resolved, bool):
            return Outcome.SUCCEEDED if resolved else Outcome.FAILED
    return told
