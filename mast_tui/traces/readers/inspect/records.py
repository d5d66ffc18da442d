"""Events of an Inspect log that tell of the run but are no part of the conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.io.json_values import as_count, as_text
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.chat.values import short_name
from mast_tui.traces.readers.inspect.attachments import Attachments

NOISE: Final = frozenset({"state", "store", "sample_init", "span_end", "anchor", "checkpoint"})
"""Events without anything to read: state is told by the messages that it consists of."""

_FRAME: Final = frozenset(
    {
        "uuid",
        "span_id",
        "timestamp",
        "working_start",
        "working_time",
        "completed",
        "pending",
        "metadata",
    }
)
_FAILED_LEVELS: Final = frozenset({"error", "critical"})


@dataclass(frozen=True, slots=True)
class Record:
    """The text of a log span, who wrote it, and whether it tells of an error."""

    text: str
    status: SpanStatus = SpanStatus.UNKNOWN
    name: str = "log"


def record_of(event: Mapping[str, object], attachments: Attachments) -> Record:
    """What an event tells, whatever its kind."""
    kind = event.get("event")
    teller = _TELLERS.get(kind) if isinstance(kind, str) else None
    if teller is not None and (record := teller(event, attachments)) is not None:
        return record
    rest = {name: value for name, value in event.items() if name not in _FRAME}
    return Record(attachments.dumped(rest))


def error_text(error: object, attachments: Attachments) -> str:
    """The message of an error and the traceback that goes with it."""
    if not isinstance(error, Mapping):
        return attachments.dumped(error)
    message = as_text(error.get("message"))
    traceback = as_text(error.get("traceback"))
    if message is None and traceback is None:
        return attachments.dumped(error)
    return "\n\n".join(attachments.piece(text) for text in (message, traceback) if text)


def _error(event: Mapping[str, object], attachments: Attachments) -> Record | None:
    if event.get("error") is None:
        return None
    return Record(error_text(event["error"], attachments), SpanStatus.ERROR)


def _limit(event: Mapping[str, object], attachments: Attachments) -> Record | None:
    message = as_text(event.get("message"))
    return None if message is None else Record(attachments.text(message))


def _info(event: Mapping[str, object], attachments: Attachments) -> Record:
    name = short_name(event.get("source")) or "log"
    return Record(attachments.dumped(event.get("data")), name=name)


def _logger(event: Mapping[str, object], attachments: Attachments) -> Record | None:
    logged = event.get("message")
    if not isinstance(logged, Mapping):
        return None
    level = short_name(logged.get("level"))
    text = attachments.piece(logged.get("message"))
    status = SpanStatus.ERROR if level.lower() in _FAILED_LEVELS else SpanStatus.UNKNOWN
    name = short_name(logged.get("name")) or "log"
    return Record(f"{level}: {text}" if level else text, status, name)


def _approval(event: Mapping[str, object], attachments: Attachments) -> Record | None:
    decision = as_text(event.get("decision"))
    if decision is None:
        return None
    name = short_name(event.get("approver")) or short_name(event.get("reviewer"))
    call = event.get("call")
    tool = short_name(call.get("function")) if isinstance(call, Mapping) else ""
    lines = [f"{decision} {tool}".rstrip()]
    if explanation := as_text(event.get("explanation")):
        lines.append(attachments.piece(explanation))
    if event.get("modified") is not None:
        lines.append(attachments.piece(event["modified"]))
    return Record("\n".join(lines), name=name or "log")


def _sandbox(event: Mapping[str, object], attachments: Attachments) -> Record | None:
    action = as_text(event.get("action"))
    if action is None:
        return None
    subject = as_text(event.get("cmd")) or as_text(event.get("file")) or ""
    lines = [f"{action}: {attachments.piece(subject)}"]
    lines += [
        attachments.piece(text)
        for field in ("input", "output")
        if (text := as_text(event.get(field)))
    ]
    result = event.get("result")
    if isinstance(result, bool) or not isinstance(result, int) or action != "exec":
        return Record("\n".join(lines), name="sandbox")
    status = SpanStatus.ERROR if result else SpanStatus.OK
    if result:
        lines.append(f"[exit code {result}]")
    return Record("\n".join(lines), status, "sandbox")


def _compaction(event: Mapping[str, object], _attachments: Attachments) -> Record:
    before, after = as_count(event.get("tokens_before")), as_count(event.get("tokens_after"))
    if before is None or after is None:
        return Record("history compacted")
    return Record(f"history compacted from {before} to {after} tokens")


def _interrupt(event: Mapping[str, object], _attachments: Attachments) -> Record:
    source = short_name(event.get("source")) or "somebody"
    doing = short_name(event.get("interrupted")) or "the run"
    return Record(f"interrupted by {source} during {doing}")


def _score(_event: Mapping[str, object], _attachments: Attachments) -> Record:
    # What it came to is the ground truth that a blind annotator must not see.
    return Record("scored")


_TELLERS: Final[Mapping[str, Callable[[Mapping[str, object], Attachments], Record | None]]] = {
    "error": _error,
    "sample_limit": _limit,
    "info": _info,
    "logger": _logger,
    "approval": _approval,
    "review": _approval,
    "sandbox": _sandbox,
    "compaction": _compaction,
    "interrupt": _interrupt,
    "score": _score,
    "score_edit": _score,
}
