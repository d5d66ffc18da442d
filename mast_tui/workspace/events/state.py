"""The state tables (labels, verdicts, passes and so on), which follow from the events.

The state of an annotator follows from the annotator's events in the order of their sequence
numbers, then of their ids. So recording events one by one, rebuilding the state, and merging in any
order all have the same result.

The index of each span in an event is stored as a cache, so that overlaps can be found without the
file of the trace. It is updated whenever the trace is read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, Table, bindparam, delete, select

from mast_tui.labels import PassKind, VerdictValue, annotator_kind, is_judge
from mast_tui.workspace import schema
from mast_tui.workspace.database import (
    Insertion,
    Values,
    call_function,
    calls_stored_functions,
    change_rows,
    lock_annotators,
    upsert,
)
from mast_tui.workspace.events.codec import study_to_values, to_values
from mast_tui.workspace.events.model import Event
from mast_tui.workspace.events.rows import label_values, readable_events
from mast_tui.workspace.events.types import (
    KIND_OF,
    BlindWorkSet,
    Decided,
    GuidelineSet,
    Judged,
    PassStarted,
    PassWithdrawn,
    SpanNoteSet,
    SpansRead,
    StudySet,
    changes_in_pass,
    span_keys,
)
from mast_tui.workspace.queries import rows_of
from mast_tui.workspace.records import SpanIndex

_EVENTS_PER_BATCH: Final = 6000
"""The most events in one batch of state changes."""

_ANNOTATORS: Final = select(schema.events.c.annotator).distinct()
_READ_ALL: Final = select(schema.events).order_by(
    schema.events.c.annotator, schema.events.c.seq, schema.events.c.id
)


def update_state(connection: Connection, events: Iterable[Event]) -> None:
    """Apply events to state tables that contain all earlier events.

    Args:
        connection: An open transaction.
        events: The events, in the order of their sequence numbers.
    """
    if calls_stored_functions(connection):
        return  # the server's function has updated them when it added the events
    remaining = iter(events)
    while batch := list(islice(remaining, _EVENTS_PER_BATCH)):
        state = _StateChanges(connection)
        for event in batch:
            state.add(event)
        state.write()


def rebuild(connection: Connection, annotators: Iterable[str] | None = None) -> None:
    """Rebuild the state tables from the events.

    Args:
        connection: An open transaction.
        annotators: The annotators to rebuild; None for all.
    """
    if annotators is None:
        lock_annotators(connection, connection.execute(_ANNOTATORS).scalars())
        for table in schema.STATE_TABLES:
            connection.execute(delete(table))
        _replay_events(connection, None)
        return
    names = sorted(set(annotators))
    lock_annotators(connection, names)
    if calls_stored_functions(connection):
        rows = [(annotator, annotator_kind(annotator).value) for annotator in names]
        call_function(connection, "rebuild_state", schema.annotators, rows)
        return
    for annotator in names:
        for table in schema.STATE_TABLES:
            connection.execute(delete(table).where(table.c.annotator == annotator))
        _replay_events(connection, annotator)


def _replay_events(connection: Connection, annotator: str | None) -> None:
    """Apply all events of an annotator to the state tables; None applies all events."""
    statement = _READ_ALL
    if annotator is not None:
        statement = statement.where(schema.events.c.annotator == annotator)
    for batch in connection.execute(statement).mappings().partitions(_EVENTS_PER_BATCH):
        update_state(connection, readable_events(batch))


_VARYING_COLUMNS: Final = {
    schema.verdicts: ("trace_id", "mode", "value"),
    schema.labels: ("id", "trace_id", "mode"),
    schema.passes: ("trace_id", "number"),
}
"""The columns in which consecutive rows of an import differ most often."""


def _key_names(table: Table) -> list[str]:
    return [column.name for column in table.primary_key]


def _delete_statement(table: Table, *names: str) -> str:
    return f"DELETE FROM {table.name} WHERE {' AND '.join(f'{name} = ?' for name in names)}"


_UPSERTS: Final = {
    table: upsert(table, _VARYING_COLUMNS.get(table, ()))
    for table in schema.STATE_TABLES
    if table is not schema.passes
}
_DELETES: Final = {table: _delete_statement(table, *_key_names(table)) for table in _UPSERTS}
_DROP_VERDICTS: Final = _delete_statement(schema.verdicts, *_key_names(schema.verdicts)[:-1])
_PASS_COLUMNS: Final = [column.name for column in schema.passes.columns]
_PASS_KEY: Final = _key_names(schema.passes)


@lru_cache
def _insertion_of_passes(changed_columns: tuple[str, ...]) -> Insertion:
    """Return an insertion of passes that updates only ``changed_columns`` of a stored pass.

    A withdrawn pass begins again, with new values of its start.
    """
    new_values = {
        name: f"CASE WHEN passes.withdrawn THEN excluded.{name} ELSE passes.{name} END"
        for name in ("kind", "started_at", "withheld")
    }
    new_values["withdrawn"] = "FALSE"
    new_values |= {name: f"excluded.{name}" for name in changed_columns}
    assignments = ", ".join(f"{name} = {value}" for name, value in new_values.items())
    on_conflict = f"ON CONFLICT ({', '.join(_PASS_KEY)}) DO UPDATE SET {assignments}"
    return Insertion(
        schema.passes, varying=_VARYING_COLUMNS[schema.passes], on_conflict=on_conflict
    )


@lru_cache
def _update_of_passes(changed: tuple[str, ...]) -> str:
    """Return the SQL statement that changes columns of a stored pass."""
    sets = ", ".join(f"{name} = ?" for name in changed)
    where = " AND ".join(f"{name} = ?" for name in _PASS_KEY)
    return f"UPDATE passes SET {sets} WHERE {where}"


class _StateChanges:
    """Collected changes of the state tables; a later change of a key replaces an earlier one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows = defaultdict[Table, dict[Values, Values | None]](dict)
        """The changed rows of tables other than verdicts and passes, by key; None removes a row."""
        self._verdicts = defaultdict[Values, dict[str, VerdictValue | None]](dict)
        """The changed verdicts of each pass; None removes a verdict."""
        self._cleared_passes = set[Values]()
        """The passes whose stored verdicts are deleted before new ones are written."""
        self._new_passes: dict[Values, dict[str, Any]] = {}
        """The columns of new passes."""
        self._changed_passes = defaultdict[Values, dict[str, Any]](dict)
        """The changed columns of passes."""

    def add(self, event: Event) -> None:
        """Collect the changes that the next event makes to the state tables."""
        work = (event.annotator, event.trace_id, event.taxonomy)
        pass_key = (*work, event.pass_number)
        self._add_changes_in_pass(event, pass_key)
        fact = event.fact
        match fact:
            case PassStarted(kind, _, withheld):
                self._begin_pass(pass_key, kind, event.at, withheld=withheld)
            case Judged():
                self._add_judgement(event, fact, pass_key)
            case PassWithdrawn() if is_judge(event.annotator):
                # Without its pass, the judge has not looked at the trace.
                self._clear_verdicts(pass_key)
                self._rows[schema.judgements][work] = None
            case Decided(item, _, decision):
                self._rows[schema.decisions][*work, item] = (
                    None
                    if decision is None
                    else (decision.decided_at, json.dumps(to_values(decision)))
                )
            case BlindWorkSet(_, blind):
                self._rows[schema.sights][event.annotator,] = (blind,)
            case StudySet(_, study):
                self._rows[schema.studies][event.annotator, event.taxonomy] = (
                    None if study is None else (event.at, json.dumps(study_to_values(study)))
                )
            case GuidelineSet(name, _, guideline):
                self._rows[schema.guidelines][event.annotator, name] = (
                    None
                    if guideline is None
                    else (event.taxonomy, guideline.written_at, json.dumps(to_values(guideline)))
                )

    def _add_changes_in_pass(self, event: Event, key: Values) -> None:
        """Collect the changes of labels, verdicts and so on in the event's pass."""
        for part, name, value in changes_in_pass(event.fact, event.at):
            match part:  # the value is None if it is removed
                case "verdicts":
                    self._verdicts[key][name] = value
                case "labels":
                    self._rows[schema.labels][event.annotator, name] = value and label_values(value)
                case "reviews":
                    review_row = value and (value.answer.value, value.label, value.reason)
                    self._rows[schema.reviews][*key, name] = review_row
                case "notes":
                    self._rows[schema.span_notes][*key, name] = value and (value,)
                case "pass":
                    self._changed_passes[key][name] = value

    def _begin_pass(self, key: Values, kind: PassKind, started_at: str, *, withheld: bool) -> None:
        """Add a new pass; a pass that has already begun keeps its values."""
        # ``write`` applies changes after the start of their pass. Changes from before this start
        # are written now. There are some if the pass is not new, or was withdrawn meanwhile.
        has_earlier_changes = key in self._changed_passes and (
            key not in self._new_passes or "withdrawn" in self._changed_passes[key]
        )
        if has_earlier_changes:
            self.write()
        self._new_passes.setdefault(
            key,
            {
                "kind": kind.value,
                "started_at": started_at,
                "judge_seen": False,
                "withdrawn": False,
                "withheld": withheld,
            },
        )

    def _add_judgement(self, event: Event, fact: Judged, key: Values) -> None:
        """Finish the judge's pass on a trace, and replace all its verdicts."""
        self._begin_pass(key, PassKind.BLIND, event.at, withheld=False)
        # Spans read are counted for people only.
        time = event.at if fact.judged_at is None else fact.judged_at
        self._changed_passes[key] |= {"finished_at": time, "spans_read": None, "spans": None}
        self._clear_verdicts(key)
        self._verdicts[key] = dict.fromkeys(fact.absent, VerdictValue.ABSENT)
        self._verdicts[key] |= dict.fromkeys(fact.unsure, VerdictValue.UNSURE)
        work = (event.annotator, event.trace_id, event.taxonomy)
        judgement_row = (json.dumps(list(fact.looks_at)), fact.run, time)
        self._rows[schema.judgements][work] = judgement_row

    def _clear_verdicts(self, key: Values) -> None:
        self._cleared_passes.add(key)
        self._verdicts.pop(key, None)

    def write(self) -> None:
        """Write all collected changes."""
        self._write_verdicts()
        for table, rows in self._rows.items():
            removed_keys = [key for key, values in rows.items() if values is None]
            new_rows = [(*key, *values) for key, values in rows.items() if values is not None]
            change_rows(self._connection, _DELETES[table], removed_keys)
            _UPSERTS[table].write(self._connection, new_rows)
        self._rows.clear()
        self._write_passes()

    def _write_verdicts(self) -> None:
        """Delete the verdicts of cleared passes, then write the changed verdicts."""
        removed_keys = list[Values]()
        new_rows = list[Values]()
        for key, values in self._verdicts.items():
            for mode, value in values.items():
                if value is None:
                    removed_keys.append((*key, mode))
                else:
                    new_rows.append((*key, mode, str(value)))
        change_rows(self._connection, _DROP_VERDICTS, list(self._cleared_passes))
        change_rows(self._connection, _DELETES[schema.verdicts], removed_keys)
        _UPSERTS[schema.verdicts].write(self._connection, new_rows)
        self._verdicts.clear()
        self._cleared_passes.clear()

    def _write_passes(self) -> None:
        """Write new and changed passes, with one statement for all that set the same columns.

        Of a stored pass only the columns changed after its start are updated.
        """
        new_rows = defaultdict[tuple[str, ...], list[Values]](list)
        changed_rows = defaultdict[tuple[str, ...], list[Values]](list)
        for key, values in self._new_passes.items():
            later_changes = self._changed_passes.pop(key, {})
            last_values = values | later_changes
            columns_after_key = _PASS_COLUMNS[len(_PASS_KEY) :]
            row = (last_values.get(name) for name in columns_after_key)
            new_rows[tuple(later_changes)].append((*key, *row))
        for key, values in self._changed_passes.items():
            changed_rows[tuple(values)].append((*values.values(), *key))
        for names, rows in new_rows.items():
            _insertion_of_passes(names).write(self._connection, rows)
        for names, rows in changed_rows.items():
            change_rows(self._connection, _update_of_passes(names), rows)
        self._new_passes.clear()
        self._changed_passes.clear()


_INDEX_TABLE: Final = schema.span_indices
_UPSERT_INDICES: Final = Insertion(
    _INDEX_TABLE,
    on_conflict="ON CONFLICT (trace_id, span_key) DO UPDATE SET span_index = excluded.span_index, "
    "text_chars = coalesce(excluded.text_chars, span_indices.text_chars)",
)
_ALL_INDICES: Final = select(_INDEX_TABLE)
_INDICES_OF_TRACE: Final = _ALL_INDICES.where(_INDEX_TABLE.c.trace_id == bindparam("trace_id"))
_LABELS: Final = schema.labels.c
_LABELS_OF_TRACE: Final = select(_LABELS.first_key, _LABELS.last_key, _LABELS.quote).where(
    _LABELS.trace_id == bindparam("trace_id"), _LABELS.first_key.is_not(None)
)
_OTHER_KINDS: Final = tuple(KIND_OF[fact] for fact in (SpanNoteSet, SpansRead, Decided))
_EVENTS_OF_TRACE: Final = select(schema.events).where(
    # The annotators' names make the index of events usable, which begins with the annotator.
    schema.events.c.annotator.in_(select(schema.annotators.c.name)),
    schema.events.c.trace_id == bindparam("trace_id"),
    schema.events.c.kind.in_(_OTHER_KINDS),
)


def span_indices(
    connection: Connection, trace_id: str | None = None
) -> dict[str, dict[str, SpanIndex]]:
    """Return the stored indices of spans by trace and key.

    Args:
        connection: An open connection.
        trace_id: Only indices of this trace; None for all.
    """
    statement = _ALL_INDICES if trace_id is None else _INDICES_OF_TRACE.params(trace_id=trace_id)
    indices: dict[str, dict[str, SpanIndex]] = defaultdict(dict)
    for trace, key, index, text_chars in rows_of(connection, statement):
        indices[trace][key] = SpanIndex(index, text_chars)
    return dict(indices)


def keep_span_indices(
    connection: Connection, indices: Mapping[str, Mapping[str, SpanIndex]]
) -> None:
    """Store the indices of spans, in place of earlier ones.

    Args:
        connection: An open transaction.
        indices: The indices by trace and key.
    """
    # Sorted, so that two programs do not block each other on a server.
    rows = [
        (trace_id, key, index.index, index.text_chars)
        for trace_id, indices_by_key in sorted(indices.items())
        for key, index in sorted(indices_by_key.items())
    ]
    if calls_stored_functions(connection):
        call_function(connection, "keep_span_index", _INDEX_TABLE, rows)
    elif rows:
        _UPSERT_INDICES.write(connection, rows)


def referred_spans(connection: Connection, trace_id: str) -> dict[str, bool]:
    """Return the keys of a trace's spans in labels, notes, decisions and records of reading.

    Args:
        connection: An open connection.
        trace_id: The trace.

    Returns:
        For each key, True if a label or decision quotes from the span.
    """
    has_quote: dict[str, bool] = {}
    for first, last, quote in rows_of(connection, _LABELS_OF_TRACE.params(trace_id=trace_id)):
        has_quote.setdefault(last, False)
        # A label with a quote is on one span.
        has_quote[first] = has_quote.get(first, False) or quote is not None
    rows = connection.execute(_EVENTS_OF_TRACE, {"trace_id": trace_id}).mappings()
    for event in readable_events(rows):
        for key, quoted in span_keys(event.fact).items():
            has_quote[key] = has_quote.get(key, False) or quoted
    return has_quote
