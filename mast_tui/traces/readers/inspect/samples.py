"""One sample of an Inspect AI log to a trace.

The logs are read here without the ``inspect_ai`` package: it brings cloud clients and a terminal
interface of its own, and refuses logs that are damaged or still being written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mast_tui.traces.identity import identity_by_content
from mast_tui.traces.index.document import DocumentTrace, StepList
from mast_tui.traces.io.json_values import as_count, as_text, canonical_bytes
from mast_tui.traces.io.source import content_hash
from mast_tui.traces.model import Problem, SpanKind, SpanStatus, TraceIdentity
from mast_tui.traces.readers.inspect.attachments import Attachments
from mast_tui.traces.readers.inspect.events import EventWalk, Scope
from mast_tui.traces.readers.inspect.facts import facts_of_sample
from mast_tui.traces.readers.inspect.messages import Acting, MessageSpans, TooManySpans
from mast_tui.traces.readers.inspect.pool import MessagePool
from mast_tui.traces.readers.inspect.records import error_text

NAME: Final = "inspect"
"""Both ways in which a log is kept, as an archive and as JSON, give the same ids and keys."""

KEY_SCHEME: Final = 1

_FIELDS: Final = frozenset({"input", "messages", "message_refs", "events"})

MOST_SPANS: Final = 300_000
"""How many spans of one log are kept: far more than anybody reads, far less than fill a memory."""


@dataclass(frozen=True, slots=True)
class Log:
    """What all samples of a log share: its path and its header, as far as there is one."""

    path: Path
    header: Mapping[str, object]


def read_sample(
    sample: object, log: Log, record: int, prefix: str, most: int = MOST_SPANS
) -> DocumentTrace | Problem:
    """The trace of the sample with this number, of at most ``most`` spans.

    ``prefix`` goes before the JSON pointers within the sample to make places.
    """
    if not isinstance(sample, Mapping) or _FIELDS.isdisjoint(sample):
        return Problem(prefix.strip(), "not a sample: it has no messages and no events; left out")
    attachments = Attachments(sample.get("attachments"))
    steps = StepList()
    spans = MessageSpans(steps, attachments, prefix, most)
    pool = MessagePool(sample, spans)
    root = Scope()
    walk = EventWalk(spans, pool, attachments, root)
    problems: list[Problem] = []
    try:
        _add_spans(sample, spans, walk, pool, root, attachments)
    except TooManySpans as error:
        problems.append(Problem(prefix.strip(), str(error)))
    problems += spans.problems
    if attachments.missing:
        message = f"{attachments.missing} references to attachments that are not there"
        problems.append(Problem(f"{prefix}/attachments", message))
    if attachments.left_out:
        message = f"{attachments.left_out} attachments within longer texts were not filled in"
        problems.append(Problem(f"{prefix}/attachments", message))
    meta = facts_of_sample(sample, log.header, steps.steps, attachments, walk.grading)
    return DocumentTrace(
        _identity(sample, log, record),
        log.path,
        steps.steps,
        record=record,
        meta=meta,
        problems=problems,
    )


def _add_spans(
    sample: Mapping[str, object],
    spans: MessageSpans,
    walk: EventWalk,
    pool: MessagePool,
    root: Scope,
    attachments: Attachments,
) -> None:
    _earlier_attempts(sample, spans, attachments)
    messages = _messages(sample, pool)
    events = sample.get("events")
    events = events if isinstance(events, list) else []
    told = any(isinstance(event, Mapping) and event.get("event") == "model" for event in events)
    if not told:
        for pointer, message in messages:
            spans.add(message, pointer, Acting(), root.history, None)
    walk.walk(events, answered=not told)
    if told:
        _last_messages(messages, spans, root)
    _ending(sample, spans, walk, attachments)


def _messages(sample: Mapping[str, object], pool: MessagePool) -> list[tuple[str, object]]:
    """The sample's final conversation; of a log in chunks it is kept as ranges of the pool."""
    messages = sample.get("messages")
    refs = sample.get("message_refs")
    if not isinstance(messages, list) and isinstance(refs, list):
        messages = pool.messages(refs, "/message_refs")
    if not isinstance(messages, list):
        return []
    return [(f"/messages/{number}", message) for number, message in enumerate(messages)]


def _last_messages(messages: list[tuple[str, object]], spans: MessageSpans, root: Scope) -> None:
    """Add the messages at the end of the conversation that no model was called with."""
    first = spans.unshown_end([message for _pointer, message in messages])
    if first == 0 and any(step.kind is SpanKind.MESSAGE for step in spans.steps.steps):
        return  # told in other words than the events tell it: all of it would be there twice
    for pointer, message in messages[first:]:
        spans.add(message, pointer, Acting(), root.history, None)


def _earlier_attempts(
    sample: Mapping[str, object], spans: MessageSpans, attachments: Attachments
) -> None:
    retries = sample.get("error_retries")
    for number, error in enumerate(retries if isinstance(retries, list) else ()):
        text = f"an earlier attempt failed: {error_text(error, attachments)}"
        spans.log(text, f"/error_retries/{number}", Acting(), status=SpanStatus.ERROR)


def _ending(
    sample: Mapping[str, object],
    spans: MessageSpans,
    walk: EventWalk,
    attachments: Attachments,
) -> None:
    """Add why the run ended before its time, where no event has told it."""
    limit = sample.get("limit")
    if isinstance(limit, Mapping) and not walk.limits:
        kind = as_text(limit.get("type")) or "unknown"
        spans.log(f"stopped by its {kind} limit ({limit.get('limit')})", "/limit", Acting())
    if (error := sample.get("error")) is not None:
        text = error_text(error, attachments)
        if text not in walk.errors:
            spans.log(text, "/error", Acting(), status=SpanStatus.ERROR)


def _identity(sample: Mapping[str, object], log: Log, record: int) -> TraceIdentity:
    content = canonical_bytes(sample)
    native = as_text(sample.get("uuid")) or _name_in_eval(sample, log.header)
    if native is None:
        return identity_by_content(log.path, record, content, reader=NAME, key_scheme=KEY_SCHEME)
    return TraceIdentity(
        trace_id=native,
        content_hash=content_hash(content),
        content_bytes=len(content),
        reader=NAME,
        key_scheme=KEY_SCHEME,
        native=True,
    )


def _name_in_eval(sample: Mapping[str, object], header: Mapping[str, object]) -> str | None:
    spec = header.get("eval")
    eval_id = as_text(spec.get("eval_id")) if isinstance(spec, Mapping) else None
    name = sample.get("id")
    epoch = as_count(sample.get("epoch"))
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if eval_id is None or epoch is None or as_text(name) is None:
        return None
    return f"{eval_id}/{name}/{epoch}"
