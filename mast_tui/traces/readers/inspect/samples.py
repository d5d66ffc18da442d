"""Traces of the samples of an Inspect AI log, with the metadata of the whole log.

The ``inspect_ai`` package is not used: it depends on cloud clients and a terminal interface, and
refuses logs that are damaged or still being written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mast_tui.traces.io.json_values import as_count, as_number, as_text, canonical_bytes
from mast_tui.traces.model import (
    AnswerKey,
    Outcome,
    Problem,
    SpanKind,
    SpanStatus,
    Trace,
    TraceMeta,
)
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft, Section
from mast_tui.traces.readers.base import Reader
from mast_tui.traces.readers.document_traces import trace_of_steps
from mast_tui.traces.readers.inspect.attachments import Attachments
from mast_tui.traces.readers.inspect.events import EventWalk
from mast_tui.traces.readers.inspect.messages import Acting, MessagePool, MessageSpans, TooManySpans
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of
from mast_tui.traces.readers.run_facts import task_id_of, task_of, trial_of

_SAMPLE_FIELDS: Final = frozenset({"input", "messages", "message_refs", "events"})

MAX_SPANS: Final = 300_000
"""The largest number of spans of one log, so that a huge log does not fill the memory."""


@dataclass(frozen=True, slots=True)
class InspectLog:
    """The reader, path and header that all samples of a log share."""

    reader: Reader
    path: Path
    header: Fields


def read_sample(
    sample: object, log: InspectLog, record: int, prefix: str, max_spans: int
) -> Trace | Problem:
    """Return the trace of a sample.

    Args:
        sample: The sample as JSON.
        log: The facts that all samples of the log share.
        record: The number of the sample in the log.
        prefix: The location of the sample in the log, before JSON pointers within the sample.
        max_spans: The largest number of spans that the trace may have.

    Returns:
        The trace, or a problem if the value is no sample.
    """
    if not isinstance(sample, Mapping) or _SAMPLE_FIELDS.isdisjoint(sample):
        return Problem(prefix.strip(), "not a sample: it has no messages and no events; left out")
    attachments = Attachments(sample.get("attachments"))
    spans = MessageSpans(attachments, prefix, max_spans)
    walk = EventWalk(sample, spans)
    problems: list[Problem] = []
    try:
        _add_spans(sample, walk)
    except TooManySpans as error:
        problems.append(Problem(prefix.strip(), str(error)))
    problems += spans.problems
    if attachments.missing_count:
        message = f"{attachments.missing_count} references to attachments that are not there"
        problems.append(Problem(f"{prefix}/attachments", message))
    if attachments.skipped_count:
        message = f"{attachments.skipped_count} attachments within longer texts were not filled in"
        problems.append(Problem(f"{prefix}/attachments", message))
    meta = _sample_metadata(sample, log.header, walk)
    return trace_of_steps(
        log.reader,
        log.path,
        canonical_bytes(sample),
        spans.steps,
        meta=meta,
        record=record,
        native=as_text(sample.get("uuid")) or _id_in_eval(sample, log.header),
        problems=problems,
    )


def _add_spans(sample: Fields, walk: EventWalk) -> None:
    """Add the spans of a sample: failed attempts, messages, events and the end.

    Events with model calls have most messages, so only the messages after them are added then.
    """
    spans = walk.spans
    for attempt_index, error in enumerate(items_of(sample.get("error_retries"))):
        text = f"an earlier attempt failed: {spans.attachments.error(error)}"
        spans.log(text, f"/error_retries/{attempt_index}", Acting(), status=SpanStatus.ERROR)
    messages = _final_messages(sample, walk.pool)
    events = items_of(sample.get("events"))
    has_model_calls = any(fields_of(event).get("event") == "model" for event in events)
    if not has_model_calls:
        for pointer, message in messages:
            spans.add(message, pointer, Acting(), walk.root.history, key=None)
    walk.walk(events, skip_known_calls=not has_model_calls)
    if has_model_calls:
        _add_last_messages(messages, walk)
    _add_ending(sample, walk)


def _final_messages(sample: Fields, pool: MessagePool) -> list[tuple[str, object]]:
    """Return the messages of the sample's final conversation, each with its JSON pointer.

    A log in chunks has ranges of the pool in place of messages.
    """
    messages = sample.get("messages")
    refs = sample.get("message_refs")
    if not isinstance(messages, list) and isinstance(refs, list):
        messages = pool.messages(refs, "/message_refs")
    return [(f"/messages/{index}", message) for index, message in enumerate(items_of(messages))]


def _add_last_messages(messages: list[tuple[str, object]], walk: EventWalk) -> None:
    """Add the messages of the conversation that follow its last message with spans."""
    spans = walk.spans
    first_index = spans.first_without_span([message for _pointer, message in messages])
    if first_index == 0 and any(step.kind is SpanKind.MESSAGE for step in spans.steps.steps):
        return  # The events have the conversation in other words; it would be added twice.
    for pointer, message in messages[first_index:]:
        spans.add(message, pointer, Acting(), walk.root.history, key=None)


def _add_ending(sample: Fields, walk: EventWalk) -> None:
    """Add the limit or error that ended the run, unless an event has shown it."""
    spans = walk.spans
    limit = sample.get("limit")
    if isinstance(limit, Mapping) and not walk.limit_count:
        kind = as_text(limit.get("type")) or "unknown"
        spans.log(f"stopped by its {kind} limit ({limit.get('limit')})", "/limit", Acting())
    if (error := sample.get("error")) is not None:
        text = spans.attachments.error(error)
        if text not in walk.error_texts:
            spans.log(text, "/error", Acting(), status=SpanStatus.ERROR)


def _id_in_eval(sample: Fields, header: Fields) -> str | None:
    """Return an id made of the evaluation's id, the sample's id and the epoch; None without one."""
    eval_id = as_text(fields_of(header.get("eval")).get("eval_id"))
    sample_id = sample.get("id")
    epoch = as_count(sample.get("epoch"))
    if isinstance(sample_id, int) and not isinstance(sample_id, bool):
        sample_id = str(sample_id)
    if eval_id is None or epoch is None or as_text(sample_id) is None:
        return None
    return f"{eval_id}/{sample_id}/{epoch}"


_GRADE_BY_NAME: Final[Mapping[str, float]] = {
    "C": 1.0,
    "I": 0.0,
    "P": 0.5,
    "N": 0.0,
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}
_UNNAMED_PLAN: Final = "plan"
_NO_MODEL: Final = "none/none"
_MAX_SCORES: Final = 200


def _sample_metadata(sample: Fields, header: Fields, walk: EventWalk) -> TraceMeta:
    """Return the metadata of a sample whose events ``walk`` has read."""
    spec = fields_of(header.get("eval"))
    grades = list(_grades_of_scores(_named_scores(sample)))
    outcome = _agreed_outcome(grades) if sample.get("error") is None else Outcome.UNKNOWN
    have_same_grade = bool(grades) and all(grade == grades[0] for grade in grades)
    score = grades[0] if have_same_grade else None
    return TraceMeta(
        task=task_of(_task_text(sample, walk.spans.attachments), steps=walk.spans.steps.steps),
        system=_system_name(header, spec),
        model=_model_name(sample, spec),
        benchmark=as_text(spec.get("task")),
        outcome=outcome,
        score=score,
        answer_key=_answer_key(sample, walk),
        task_id=task_id_of(sample.get("id")),
        trial=trial_of(sample.get("epoch")),
        version=as_text(fields_of(spec.get("packages")).get("inspect_ai")),
    )


def _task_text(sample: Fields, attachments: Attachments) -> str | None:
    """Return the sample's input, or the texts of its user messages; None if there is neither."""
    sample_input = sample.get("input")
    if isinstance(sample_input, str):
        return attachments.text(sample_input)
    texts = [
        attachments.content(message.get("content"))
        for message in items_of(sample_input)
        if isinstance(message, Mapping) and message.get("role") == "user"
    ]
    return "\n".join(text for text in texts if text) or None


def _system_name(header: Fields, spec: Fields) -> str | None:
    """Return the name of the solver or agent; None if the log names none.

    The name is the first of these that exists (``spec`` is the ``eval`` object of the header):

    - the solver of the evaluation
    - the name of the plan
    - the solver of the plan's last step, which does the work
    """
    plan = fields_of(header.get("plan"))
    plan_name = as_text(plan.get("name"))
    steps = map(fields_of, items_of(plan.get("steps")))
    solvers = [solver for step in steps if (solver := as_text(step.get("solver")))]
    own_plan_name = plan_name if plan_name != _UNNAMED_PLAN else None
    last_solver = solvers[-1] if solvers else None
    return as_text(spec.get("solver")) or own_plan_name or last_solver


def _model_name(sample: Fields, spec: Fields) -> str | None:
    model = as_text(spec.get("model"))
    if model in (None, _NO_MODEL):
        return as_text(fields_of(sample.get("output")).get("model")) or model
    return model


def _named_scores(sample: Fields) -> list[tuple[str, object]]:
    """Return the scores, each after its scorer's name; the oldest logs have one unnamed score."""
    scores = sample.get("scores")
    if isinstance(scores, Mapping):
        return list(scores.items())[:_MAX_SCORES]
    return [] if sample.get("score") is None else [("score", sample["score"])]


def _grades_of_scores(scores: list[tuple[str, object]]) -> Iterator[float | None]:
    """Yield the grade of each value of each score; None for a value that is no grade."""
    for _name, score in scores:
        value = score.get("value") if isinstance(score, Mapping) else score
        if isinstance(value, Mapping):
            yield from map(_grade_of, value.values())
        elif isinstance(value, list):
            yield from map(_grade_of, value)
        else:
            yield _grade_of(value)


def _grade_of(value: object) -> float | None:
    """Return a grade such as 0.5, ``C`` or ``yes`` as a number from 0 to 1; None for no grade."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        text = value.strip()
        grade = _GRADE_BY_NAME.get(text, _GRADE_BY_NAME.get(text.lower()))
        if grade is not None:
            return grade
        try:
            value = float(text)
        except ValueError:
            return None
    number = as_number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _agreed_outcome(grades: Sequence[float | None]) -> Outcome:
    """Return the outcome on which all grades agree; UNKNOWN without one or for partial grades."""
    if grades and all(grade == 1 for grade in grades):
        return Outcome.SUCCEEDED
    if grades and all(grade == 0 for grade in grades):
        return Outcome.FAILED
    return Outcome.UNKNOWN


def _answer_key(sample: Fields, walk: EventWalk) -> AnswerKey:
    """Return the scores with explanations, the target and the sample's metadata."""
    attachments = walk.spans.attachments
    draft = AnswerKeyDraft()
    for name, score in _named_scores(sample):
        _add_score(draft, name, score, attachments)
    for key, event in walk.score_events:
        score = event.get("score")
        if event.get("intermediate") is True and isinstance(score, Mapping):
            parts = [score.get(name) for name in ("value", "answer", "explanation")]
            texts = [attachments.dumped(part) for part in parts if part not in (None, "")]
            draft.add("step_scores", key, "\n".join(texts))
    target = sample.get("target")
    if target not in (None, "", []):
        draft.add("reference", "target", attachments.dumped(target))
    if walk.grading_texts:
        draft.add("explanations", "grading", "\n\n".join(walk.grading_texts))
    for name, value in fields_of(sample.get("metadata")).items():
        draft.add("other", name, attachments.dumped(value))
    return draft.key()


def _add_score(draft: AnswerKeyDraft, name: str, score: object, attachments: Attachments) -> None:
    """Add a scorer's score to the answer key, with its explanation and metadata."""
    if not isinstance(score, Mapping):
        draft.add("scores", name, score)
        return
    value = score.get("value")
    draft.add_score(name, value if isinstance(value, Mapping) else attachments.dumped(value))
    for field in ("answer", "explanation", "metadata"):
        if score.get(field) not in (None, "", {}):
            section: Section = "other" if field == "metadata" else "explanations"
            draft.add(section, f"{name} {field}", attachments.dumped(score[field]))
