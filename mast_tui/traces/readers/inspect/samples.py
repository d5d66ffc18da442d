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

_FIELDS: Final = frozenset({"input", "messages", "message_refs", "events"})

MOST_SPANS: Final = 300_000
"""The largest number of spans of one log, so that a huge log does not fill the memory."""


@dataclass(frozen=True, slots=True)
class InspectLog:
    """The reader, path and header that all samples of a log share."""

    reader: Reader
    path: Path
    header: Fields


def read_sample(
    sample: object, log: InspectLog, record: int, prefix: str, most: int
) -> Trace | Problem:
    """Read one sample.

    Args:
        sample: The sample as JSON.
        log: The facts that all samples of the log share.
        record: The number of the sample in the log.
        prefix: The place of the sample, before the JSON pointers within it.
        most: The largest number of spans.

    Returns:
        The trace, or a problem if this is no sample.
    """
    if not isinstance(sample, Mapping) or _FIELDS.isdisjoint(sample):
        return Problem(prefix.strip(), "not a sample: it has no messages and no events; left out")
    attachments = Attachments(sample.get("attachments"))
    spans = MessageSpans(attachments, prefix, most)
    walk = EventWalk(sample, spans)
    problems: list[Problem] = []
    try:
        _add_spans(sample, walk)
    except TooManySpans as error:
        problems.append(Problem(prefix.strip(), str(error)))
    problems += spans.problems
    if attachments.missing:
        message = f"{attachments.missing} references to attachments that are not there"
        problems.append(Problem(f"{prefix}/attachments", message))
    if attachments.left_out:
        message = f"{attachments.left_out} attachments within longer texts were not filled in"
        problems.append(Problem(f"{prefix}/attachments", message))
    meta = _metadata(sample, log.header, walk)
    return trace_of_steps(
        log.reader,
        log.path,
        canonical_bytes(sample),
        spans.steps,
        meta=meta,
        record=record,
        native=as_text(sample.get("uuid")) or _name_in_eval(sample, log.header),
        problems=problems,
    )


def _add_spans(sample: Fields, walk: EventWalk) -> None:
    spans = walk.spans
    for number, error in enumerate(items_of(sample.get("error_retries"))):
        text = f"an earlier attempt failed: {spans.attachments.error(error)}"
        spans.log(text, f"/error_retries/{number}", Acting(), status=SpanStatus.ERROR)
    messages = _messages(sample, walk.pool)
    events = items_of(sample.get("events"))
    has_model_calls = any(fields_of(event).get("event") == "model" for event in events)
    if not has_model_calls:
        for pointer, message in messages:
            spans.add(message, pointer, Acting(), walk.root.history, None)
    walk.walk(events, answered=not has_model_calls)
    if has_model_calls:
        _last_messages(messages, walk)
    _ending(sample, walk)


def _messages(sample: Fields, pool: MessagePool) -> list[tuple[str, object]]:
    """Return the sample's final conversation; a log in chunks has ranges of the pool."""
    messages = sample.get("messages")
    refs = sample.get("message_refs")
    if not isinstance(messages, list) and isinstance(refs, list):
        messages = pool.messages(refs, "/message_refs")
    return [(f"/messages/{number}", message) for number, message in enumerate(items_of(messages))]


def _last_messages(messages: list[tuple[str, object]], walk: EventWalk) -> None:
    """Add the messages at the end of the conversation that are in no model call."""
    spans = walk.spans
    first = spans.first_without_span([message for _pointer, message in messages])
    if first == 0 and any(step.kind is SpanKind.MESSAGE for step in spans.steps.steps):
        return  # The events word the whole conversation differently; it would be added twice.
    for pointer, message in messages[first:]:
        spans.add(message, pointer, Acting(), walk.root.history, None)


def _ending(sample: Fields, walk: EventWalk) -> None:
    """Add the limit or error that ended the run, unless an event has it."""
    spans = walk.spans
    limit = sample.get("limit")
    if isinstance(limit, Mapping) and not walk.limits:
        kind = as_text(limit.get("type")) or "unknown"
        spans.log(f"stopped by its {kind} limit ({limit.get('limit')})", "/limit", Acting())
    if (error := sample.get("error")) is not None:
        text = spans.attachments.error(error)
        if text not in walk.errors:
            spans.log(text, "/error", Acting(), status=SpanStatus.ERROR)


def _name_in_eval(sample: Fields, header: Fields) -> str | None:
    eval_id = as_text(fields_of(header.get("eval")).get("eval_id"))
    name = sample.get("id")
    epoch = as_count(sample.get("epoch"))
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if eval_id is None or epoch is None or as_text(name) is None:
        return None
    return f"{eval_id}/{name}/{epoch}"


_GRADES: Final[Mapping[str, float]] = {
    "C": 1.0,
    "I": 0.0,
    "P": 0.5,
    "N": 0.0,
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}
_PLAIN_PLAN: Final = "plan"
_NO_MODEL: Final = "none/none"
_MOST_SCORES: Final = 200


def _metadata(sample: Fields, header: Fields, walk: EventWalk) -> TraceMeta:
    """Return the metadata of a sample whose events ``walk`` has read."""
    spec = fields_of(header.get("eval"))
    values = list(_values(_scores(sample)))
    outcome = _outcome(values) if sample.get("error") is None else Outcome.UNKNOWN
    score = values[0] if values and all(value == values[0] for value in values) else None
    return TraceMeta(
        task=task_of(_task(sample, walk.spans.attachments), steps=walk.spans.steps.steps),
        system=_system(header, spec),
        model=_model(sample, spec),
        benchmark=as_text(spec.get("task")),
        outcome=outcome,
        score=score,
        answer_key=_answer_key(sample, walk),
        task_id=task_id_of(sample.get("id")),
        trial=trial_of(sample.get("epoch")),
        version=as_text(fields_of(spec.get("packages")).get("inspect_ai")),
    )


def _task(sample: Fields, attachments: Attachments) -> str | None:
    """Return the sample's input: a text, or the texts of its user messages."""
    task = sample.get("input")
    if isinstance(task, str):
        return attachments.text(task)
    texts = [
        attachments.content(message.get("content"))
        for message in items_of(task)
        if isinstance(message, Mapping) and message.get("role") == "user"
    ]
    return "\n".join(text for text in texts if text) or None


def _system(header: Fields, spec: Fields) -> str | None:
    """Return the name of the solver or agent; of several steps the last, which does the work."""
    plan = fields_of(header.get("plan"))
    name = as_text(plan.get("name"))
    steps = map(fields_of, items_of(plan.get("steps")))
    solvers = [solver for step in steps if (solver := as_text(step.get("solver")))]
    named = name if name != _PLAIN_PLAN else None
    return as_text(spec.get("solver")) or named or (solvers[-1] if solvers else None)


def _model(sample: Fields, spec: Fields) -> str | None:
    model = as_text(spec.get("model"))
    if model in (None, _NO_MODEL):
        return as_text(fields_of(sample.get("output")).get("model")) or model
    return model


def _scores(sample: Fields) -> list[tuple[str, object]]:
    """Return the scores by the scorer's name; the oldest logs have one score without a name."""
    scores = sample.get("scores")
    if isinstance(scores, Mapping):
        return list(scores.items())[:_MOST_SCORES]
    return [] if sample.get("score") is None else [("score", sample["score"])]


def _values(scores: list[tuple[str, object]]) -> Iterator[float | None]:
    """Yield each score's value in [0, 1], or None; one scorer may have several values."""
    for _name, score in scores:
        value = score.get("value") if isinstance(score, Mapping) else score
        if isinstance(value, Mapping):
            yield from map(_grade, value.values())
        elif isinstance(value, list):
            yield from map(_grade, value)
        else:
            yield _grade(value)


def _grade(value: object) -> float | None:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        text = value.strip()
        grade = _GRADES.get(text, _GRADES.get(text.lower()))
        if grade is not None:
            return grade
        try:
            value = float(text)
        except ValueError:
            return None
    number = as_number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _outcome(values: Sequence[float | None]) -> Outcome:
    """Return the outcome on which all scorers agree; a partial score leaves it unknown."""
    if values and all(value == 1 for value in values):
        return Outcome.SUCCEEDED
    if values and all(value == 0 for value in values):
        return Outcome.FAILED
    return Outcome.UNKNOWN


def _answer_key(sample: Fields, walk: EventWalk) -> AnswerKey:
    """Return the scores with explanations, the target and the sample's metadata."""
    attachments = walk.spans.attachments
    draft = AnswerKeyDraft()
    for name, score in _scores(sample):
        _add_score(draft, name, score, attachments)
    for key, event in walk.scored:
        score = event.get("score")
        if event.get("intermediate") is True and isinstance(score, Mapping):
            parts = [score.get(name) for name in ("value", "answer", "explanation")]
            texts = [attachments.dumped(part) for part in parts if part not in (None, "")]
            draft.add("step_scores", key, "\n".join(texts))
    target = sample.get("target")
    if target not in (None, "", []):
        draft.add("reference", "target", attachments.dumped(target))
    if walk.grading:
        draft.add("explanations", "grading", "\n\n".join(walk.grading))
    for name, value in fields_of(sample.get("metadata")).items():
        draft.add("other", name, attachments.dumped(value))
    return draft.key()


def _add_score(draft: AnswerKeyDraft, name: str, score: object, attachments: Attachments) -> None:
    if not isinstance(score, Mapping):
        draft.add("scores", name, score)
        return
    value = score.get("value")
    draft.add_score(name, value if isinstance(value, Mapping) else attachments.dumped(value))
    for field in ("answer", "explanation", "metadata"):
        if score.get(field) not in (None, "", {}):
            section: Section = "other" if field == "metadata" else "explanations"
            draft.add(section, f"{name} {field}", attachments.dumped(score[field]))
