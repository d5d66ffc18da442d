"""From events to the state tables: what one event changes, and all of it made anew.

The state of an annotator follows from that annotator's events alone, taken in the order of their
counters (and of their ids where two copies of a workspace counted alike). So writing them one by
one, rebuilding, and merging in any order come to the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    case,
    delete,
    false,
    select,
)
from sqlalchemy import update as sql_update
from sqlalchemy.dialects.sqlite import Insert, insert

from mast_tui.gold.model import Decision, Guideline
from mast_tui.labels import AnnotatorKind, PassKind, VerdictValue, annotator_kind
from mast_tui.study.model import Study
from mast_tui.workspace import schema
from mast_tui.workspace.events.model import Event
from mast_tui.workspace.events.protocol_values import guideline_to_dict, study_to_dict
from mast_tui.workspace.events.rows import Row, event_of, label_to_row
from mast_tui.workspace.events.types import (
    Decided,
    GuidelineSet,
    Judged,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassFinished,
    PassKindSet,
    PassStarted,
    PassUnfinished,
    PassWithdrawn,
    Revealed,
    ReviewGiven,
    ReviewSet,
    SightSet,
    SpanNoteSet,
    SpansRead,
    StudySet,
    SuggestionsSeen,
    VerdictSet,
)
from mast_tui.workspace.events.values import decision_to_dict
from mast_tui.workspace.statements import Change, Insertion


def _upsert(table: Table) -> Insert:
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    changed = {c.name: statement.excluded[c.name] for c in table.columns if c.name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)


def _row_is(table: Table, *names: str) -> ColumnElement[bool]:
    return and_(*(table.c[name] == bindparam(f"is_{name}") for name in names))


class _Write:
    """A statement that changes the rows of one key in a state table.

    ``key`` takes that key from its parameters. All verdicts of a pass share one, as they can be
    dropped together.
    """

    def __init__(
        self, table: Table, statement: Change | Insertion, before_names: str = "is_"
    ) -> None:
        self.table = table
        self.statement = statement
        names = [column.name for column in table.primary_key if column.name != "mode"]
        self.key = itemgetter(*(before_names + name for name in names))


def _put_rows(table: Table, statement: Insert) -> _Write:
    names = [column.name for column in table.columns] if table in _OWN else []
    shared = [name for name in names if name not in _OWN[table]]
    return _Write(table, Insertion(statement, shared=shared), before_names="")


def _change_rows(table: Table, *names: str) -> _Write:
    changed: dict[str, Any] = {name: bindparam(f"new_{name}") for name in names}
    return _Write(table, Change(sql_update(table).where(_by_key(table)).values(changed)))


def _by_key(table: Table) -> ColumnElement[bool]:
    return _row_is(table, *(column.name for column in table.primary_key))


_OWN: Final = {
    schema.verdicts: {"trace_id", "mode", "value"},
    schema.labels: {"id", "trace_id", "mode"},
    schema.passes: {"trace_id", "number"},
}
"""In which columns the many rows of an import differ; in the others most are alike."""

_UPSERTS: Final = {
    table: _put_rows(table, _upsert(table))
    for table in schema.STATE_TABLES
    if table is not schema.passes
}
_DELETES: Final = {
    table: _Write(table, Change(delete(table).where(_by_key(table))))
    for table in schema.STATE_TABLES
    if table not in (schema.passes, schema.sights)
}
_DROP_VERDICTS: Final = _Write(
    schema.verdicts,
    Change(
        delete(schema.verdicts).where(
            _row_is(schema.verdicts, "annotator", "trace_id", "taxonomy", "pass_number")
        )
    ),
)


def _start_pass() -> Insert:
    """Insert a pass; one that is there already stays as it began, unless it was withdrawn."""
    table = schema.passes
    statement = insert(table)
    return statement.on_conflict_do_update(
        index_elements=[column.name for column in table.primary_key],
        set_={
            "kind": case((table.c.withdrawn, statement.excluded.kind), else_=table.c.kind),
            "started_at": case(
                (table.c.withdrawn, statement.excluded.started_at), else_=table.c.started_at
            ),
            "withheld": case(
                (table.c.withdrawn, statement.excluded.withheld), else_=table.c.withheld
            ),
            "withdrawn": false(),
        },
    )


_START_PASS: Final = _put_rows(schema.passes, _start_pass())
_CHANGE_PASS: Final[dict[tuple[str, ...], _Write]] = {
    names: _change_rows(schema.passes, *names)
    for names in (
        ("withdrawn",),
        ("kind",),
        ("judge_seen",),
        ("revealed_at",),
        ("finished_at", "spans_read", "spans"),
    )
}


Effect = tuple[_Write, Row]
"""A statement and its parameters."""

_AT_ONCE: Final = 6000
"""Events whose effects are held at once."""


def apply(connection: Connection, events: Iterable[Event]) -> None:
    """Change the state tables by events, which come after all others of their annotators."""
    rest = iter(events)
    while batch := list(islice(rest, _AT_ONCE)):
        tables: dict[Table, _Rounds] = {}
        for event in batch:
            for write, row in _effects(event):
                if write.table not in tables:
                    tables[write.table] = _Rounds()
                tables[write.table].add(write, row)
        for rounds in tables.values():
            rounds.write(connection)


class _Rounds:
    """What is to be done to one table, sorted so that each statement runs but a few times.

    What concerns one key stays in its order; what concerns different ones comes to the same in
    any.
    """

    def __init__(self) -> None:
        self._rounds: list[tuple[_Write, list[Row]]] = []
        self._reached: dict[object, int] = {}

    def add(self, write: _Write, row: Row) -> None:
        """Put an effect into the first round of its statement that is not before its key's last."""
        key = write.key(row)
        place = self._reached.get(key, 0)
        while place < len(self._rounds) and self._rounds[place][0] is not write:
            place += 1
        if place == len(self._rounds):
            self._rounds.append((write, []))
        self._rounds[place][1].append(row)
        self._reached[key] = place

    def write(self, connection: Connection) -> None:
        """Do it all."""
        for write, rows in self._rounds:
            write.statement.write(connection, rows)


def _effects(event: Event) -> list[Effect]:
    match event.fact:
        case VerdictSet(mode, _, value):
            said = _in_pass(event)
            said["mode"] = mode
            if value is None:
                return [_put(schema.verdicts, said, None)]
            said["value"] = str(value)
            return [(_UPSERTS[schema.verdicts], said)]
        case LabelAdded(label) | LabelChanged(_, label):
            return [(_UPSERTS[schema.labels], label_to_row(label))]
        case LabelRemoved(label):
            return [_put(schema.labels, {"annotator": label.annotator, "id": label.id}, None)]
        case ReviewSet(suggestion, _, review):
            key = _in_pass(event) | {"suggestion": suggestion}
            return [_put(schema.reviews, key, None if review is None else _review_to_row(review))]
        case SpanNoteSet(span_key, _, text):
            key = _in_pass(event) | {"span_key": span_key}
            return [_put(schema.span_notes, key, {"text": text} if text else None)]
        case Decided(item, _, decision):
            key = _of_trace(event) | {"item": item}
            row = None if decision is None else _decision_to_row(decision)
            return [_put(schema.decisions, key, row)]
        case SightSet(_, blind):
            return [_put(schema.sights, {"annotator": event.annotator}, {"blind": blind})]
        case Judged():
            return _judged(event, event.fact)
        case PassWithdrawn() if annotator_kind(event.annotator) is AnnotatorKind.JUDGE:
            return _not_judged(event)
        case StudySet(_, study):
            of_taxonomy = {"annotator": event.annotator, "taxonomy": event.taxonomy}
            plan = None if study is None else _study_to_row(event, study)
            return [_put(schema.studies, of_taxonomy, plan)]
        case GuidelineSet(name, _, words):
            named = {"annotator": event.annotator, "id": name}
            page = None if words is None else _guideline_to_row(event, words)
            return [_put(schema.guidelines, named, page)]
        case SpansRead():
            return []  # Which spans were read stands in the events alone.
        case _:
            return [_effect_on_pass(event)]


def _effect_on_pass(event: Event) -> Effect:
    match event.fact:
        case PassStarted(kind, _, withheld):
            return _start(event, kind, withheld)
        case PassWithdrawn():
            return _change(event, withdrawn=True)
        case PassKindSet(_, kind):
            return _change(event, kind=kind.value)
        case PassFinished(_, read, spans, at):
            finished_at = event.at if at is None else at
            return _change(event, finished_at=finished_at, spans_read=read, spans=spans)
        case PassUnfinished():
            return _change(event, finished_at=None, spans_read=None, spans=None)
        case SuggestionsSeen():
            return _change(event, judge_seen=True)
        case Revealed():
            return _change(event, revealed_at=event.at)
        case _:
            raise AssertionError(f"no state follows from {event.kind}")


def _of_trace(event: Event) -> Row:
    return {
        "annotator": event.annotator,
        "trace_id": event.trace_id,
        "taxonomy": event.taxonomy,
    }


def _in_pass(event: Event) -> Row:
    return {
        "annotator": event.annotator,
        "trace_id": event.trace_id,
        "taxonomy": event.taxonomy,
        "pass_number": event.pass_number,
    }


def _put(table: Table, key: Row, values: Row | None) -> Effect:
    """Write the row with this key, or remove it where there are no values."""
    if values is None:
        return _DELETES[table], {f"is_{name}": value for name, value in key.items()}
    return _UPSERTS[table], key | values


def _review_to_row(review: ReviewGiven) -> Row:
    return {"answer": review.answer.value, "label": review.label, "reason": review.reason}


def _decision_to_row(decision: Decision) -> Row:
    document = json.dumps(decision_to_dict(decision))
    return {"decided_at": decision.decided_at, "document": document}


def _study_to_row(event: Event, study: Study) -> Row:
    return {"set_at": event.at, "document": json.dumps(study_to_dict(study))}


def _guideline_to_row(event: Event, guideline: Guideline) -> Row:
    return {
        "taxonomy": event.taxonomy,
        "written_at": guideline.written_at,
        "document": json.dumps(guideline_to_dict(guideline)),
    }


def _start(event: Event, kind: PassKind, withheld: bool = False) -> Effect:
    return _START_PASS, _of_trace(event) | {
        "number": event.pass_number,
        "kind": kind.value,
        "started_at": event.at,
        "finished_at": None,
        "judge_seen": False,
        "spans_read": None,
        "spans": None,
        "revealed_at": None,
        "withdrawn": False,
        "withheld": withheld,
    }


def _change(event: Event, **values: object) -> Effect:
    key = _of_trace(event) | {"number": event.pass_number}
    return _CHANGE_PASS[tuple(values)], {
        **{f"is_{name}": value for name, value in key.items()},
        **{f"new_{name}": value for name, value in values.items()},
    }


def _judged(event: Event, fact: Judged) -> list[Effect]:
    """A judge is through with a trace at once: its pass is finished, its verdicts are these."""
    where = _in_pass(event)
    looked = {"looks_at": json.dumps(list(fact.looks_at)), "run": fact.run, "at": event.at}
    said = dict.fromkeys(fact.absent, VerdictValue.ABSENT)
    said |= dict.fromkeys(fact.unsure, VerdictValue.UNSURE)
    return [
        _start(event, PassKind.BLIND),
        _change(event, finished_at=event.at, spans_read=None, spans=None),
        (_DROP_VERDICTS, {f"is_{name}": value for name, value in where.items()}),
        *(
            (_UPSERTS[schema.verdicts], where | {"mode": mode, "value": value.value})
            for mode, value in said.items()
        ),
        _put(schema.judgements, _of_trace(event), looked),
    ]


def _not_judged(event: Event) -> list[Effect]:
    """That a judge was through with a trace is taken back with its pass."""
    return [
        _change(event, withdrawn=True),
        (_DROP_VERDICTS, {f"is_{name}": value for name, value in _in_pass(event).items()}),
        _put(schema.judgements, _of_trace(event), None),
    ]


_READ_ALL: Final = select(schema.events).order_by(
    schema.events.c.annotator, schema.events.c.seq, schema.events.c.id
)


def rebuild(connection: Connection, annotators: Iterable[str] | None = None) -> None:
    """Make the state tables anew from the events: those of some annotators, or all."""
    if annotators is None:
        for table in schema.STATE_TABLES:
            connection.execute(delete(table))
        _replay(connection, None)
        return
    for annotator in sorted(set(annotators)):
        for table in schema.STATE_TABLES:
            connection.execute(delete(table).where(table.c.annotator == annotator))
        _replay(connection, annotator)


def _replay(connection: Connection, annotator: str | None) -> None:
    statement = _READ_ALL
    if annotator is not None:
        statement = statement.where(schema.events.c.annotator == annotator)
    for batch in connection.execute(statement).mappings().partitions(_AT_ONCE):
        apply(connection, map(event_of, batch))
