"""The conversion between rows of the tables and records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any, Final, TypeVar

from sqlalchemy import RowMapping

from mast_tui.errors import WorkspaceError
from mast_tui.labels import (
    Evidence,
    Label,
    Match,
    Origin,
    Pass,
    PassKind,
    Review,
    ReviewAnswer,
    Severity,
    SpanNote,
    Target,
    Verdict,
    VerdictValue,
    label_origin,
)
from mast_tui.workspace.events.codec import read
from mast_tui.workspace.events.model import Event, event_from_dict

Row = dict[str, Any]
_R = TypeVar("_R")
_T = TypeVar("_T")


def _reports_damage_in(table: str) -> Callable[[Callable[[_R], _T]], Callable[[_R], _T]]:
    """Return a decorator that raises ``WorkspaceError`` for rows that cannot be read."""

    def decorate(read: Callable[[_R], _T]) -> Callable[[_R], _T]:
        @wraps(read)
        def read_row(row: _R) -> _T:
            try:
                return read(row)
            except (TypeError, ValueError) as error:
                raise WorkspaceError(
                    f"the workspace is damaged: a row of {table} cannot be read ({error}); "
                    "'mast-tui workspace check --mend' rebuilds it from the events"
                ) from error

        return read_row

    return decorate


def label_values(label: Label) -> tuple[Any, ...]:
    """Return the values of a label in the order of the columns after annotator and id."""
    target = label.target
    evidence = label.evidence
    return (
        label.trace_id,
        label.taxonomy,
        label.pass_number,
        label.mode,
        target.first,
        target.last,
        target.quote,
        target.char_start,
        target.char_end,
        label.note,
        label.confidence,
        label.severity and str(label.severity),
        str(label.origin),
        label.suggestion,
        label.saw_suggestions,
        label.created_at,
        evidence and evidence.key,
        evidence and evidence.quote,
        evidence and evidence.char_start,
        evidence and evidence.char_end,
        evidence and evidence.match and evidence.match.value,
        evidence and evidence.misnamed_spans and json.dumps(evidence.misnamed_spans),
        label.decisive,
        evidence and evidence.wording,
        label.remedy or None,
    )


@_reports_damage_in("labels")
def label_of(row: RowMapping) -> Label:
    """Return the label in a row of ``labels``."""
    return Label(
        id=row["id"],
        annotator=row["annotator"],
        trace_id=row["trace_id"],
        taxonomy=row["taxonomy"],
        mode=row["mode"],
        target=Target(
            row["first_key"], row["last_key"], row["quote"], row["char_start"], row["char_end"]
        ),
        note=row["note"],
        confidence=row["confidence"],
        severity=None if row["severity"] is None else Severity(row["severity"]),
        origin=label_origin(row["annotator"], Origin(row["origin"])),
        suggestion=row["suggestion"],
        saw_suggestions=row["saw_suggestions"],
        pass_number=row["pass_number"],
        created_at=row["created_at"],
        evidence=_evidence_of(row),
        decisive=row["decisive"],
        remedy=row["remedy"] or "",
    )


def _evidence_of(row: RowMapping) -> Evidence | None:
    """Return the evidence in a row of ``labels``; None without evidence."""
    if row["evidence_quote"] is None:
        return None
    match = row["evidence_match"]
    misnamed_json = row["evidence_named"]
    return Evidence(
        key=row["evidence_key"],
        quote=row["evidence_quote"],
        match=None if match is None else Match(match),
        misnamed_spans=None
        if misnamed_json is None
        else read(json.loads(misnamed_json), tuple[str, str], "evidence_named"),
        wording=row["evidence_wording"],
        char_start=row["evidence_start"],
        char_end=row["evidence_end"],
    )


# Rows are tuples, since there may be very many.


@_reports_damage_in("verdicts")
def verdict_of(row: Sequence[Any]) -> Verdict:
    """Make the verdict of a row of ``verdicts``."""
    annotator, trace_id, taxonomy, number, mode, value = row
    return Verdict(annotator, trace_id, taxonomy, mode, VerdictValue(value), number)


@_reports_damage_in("reviews")
def review_of(row: Sequence[Any]) -> Review:
    """Return the review in a row of ``reviews``."""
    annotator, trace_id, taxonomy, pass_number, suggestion, answer, label, reason = row
    return Review(
        annotator, suggestion, ReviewAnswer(answer), label, reason, trace_id, taxonomy, pass_number
    )


@_reports_damage_in("span_notes")
def span_note_of(row: Sequence[Any]) -> SpanNote:
    """Make the note of a row of ``span_notes``."""
    annotator, trace_id, taxonomy, number, key, text = row
    return SpanNote(annotator, trace_id, taxonomy, key, text, number)


PASS_COLUMNS: Final = (
    *("annotator", "trace_id", "taxonomy", "number", "kind", "started_at", "finished_at"),
    *("judge_seen", "spans_read", "spans", "revealed_at", "withheld"),
)
"""The columns of ``passes`` in the order that ``pass_of`` needs."""


@_reports_damage_in("passes")
def pass_of(row: Sequence[Any]) -> Pass:
    """Make the pass of a row with the ``PASS_COLUMNS``."""
    annotator, trace_id, taxonomy, number, kind, *later_columns = row
    return Pass(annotator, trace_id, taxonomy, number, PassKind(kind), *later_columns)


def event_to_row(event: Event, payload: str) -> Row:
    """Return the row of ``events`` for an event.

    Args:
        event: The event.
        payload: The ``payload_text`` of its fact.
    """
    return {
        "id": event.id,
        "annotator": event.annotator,
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind,
        "trace_id": event.trace_id,
        "taxonomy": event.taxonomy,
        "pass_number": event.pass_number,
        "payload": payload,
        "replaces": json.dumps(event.replaces) if event.replaces else "[]",
        "action": event.action,
        "undoes": event.undoes,
        "redoes": event.redoes,
        "chain": event.chain_hash,
    }


def event_of(row: RowMapping) -> Event:
    """Return the event in a row of ``events``.

    Raises:
        ValueError: The row cannot be read.
    """
    # The keys of a row are no plain strings, and msgspec would not find them.
    return event_from_dict(
        {
            "id": row["id"],
            "annotator": row["annotator"],
            "seq": row["seq"],
            "at": row["at"],
            "kind": row["kind"],
            "trace_id": row["trace_id"],
            "taxonomy": row["taxonomy"],
            "pass": row["pass_number"],
            "payload": json.loads(row["payload"]),
            "replaces": json.loads(row["replaces"]),
            "action": row["action"],
            "undoes": row["undoes"],
            "redoes": row["redoes"],
            "chain": row["chain"],
        }
    )


def readable_events(rows: Iterable[RowMapping]) -> Iterator[Event]:
    """Yield the events of rows, without damaged rows."""
    for row in rows:
        try:
            event = event_of(row)
        except ValueError:
            continue
        yield event
