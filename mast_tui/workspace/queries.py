"""Plain reads of the state tables, all in a stable order."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, Literal, TypedDict, Unpack

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    func,
    select,
    tuple_,
)

from mast_tui.gold.model import Decision, Guideline
from mast_tui.labels import (
    Label,
    Pass,
    PassKind,
    Review,
    SpanNote,
    Verdict,
    VerdictValue,
)
from mast_tui.study.model import Study
from mast_tui.workspace import schema
from mast_tui.workspace.events.codec import decision_from_values, read, study_from_values
from mast_tui.workspace.events.model import Event
from mast_tui.workspace.events.rows import (
    PASS_COLUMNS,
    label_of,
    pass_of,
    readable_events,
    review_of,
    span_note_of,
    verdict_of,
)
from mast_tui.workspace.events.types import KIND_OF, LookAgainSet, SpansRead
from mast_tui.workspace.records import JudgementRecord

PassChoice = int | Literal["last", "finished"] | None
"""A pass's number, the last one, the last finished one, or None for all."""

_EVENTS_AT_ONCE: Final = 1000
_TRACES_AT_ONCE: Final = 500
_NO_READINGS: Final = tuple(kind.value for kind in PassKind if not kind.is_reading)


class OfWork(TypedDict, total=False):
    """The filters of a query; a missing filter, or None, matches everything."""

    trace_id: str | None
    annotator: str | None
    taxonomy: str | None


class OfPass(OfWork, total=False):
    """The filters with a pass; if it is missing, only the last pass matches."""

    pass_number: PassChoice


def _conditions(table: Table, work: OfWork) -> list[ColumnElement[bool]]:
    """Return the conditions on a table, except the one on the pass."""
    names = ("trace_id", "annotator", "taxonomy")
    named = ((name, work.get(name)) for name in names)
    return [table.c[name] == value for name, value in named if value is not None]


def _with_pass(statement: Select[Any], table: Table, work: OfPass) -> Select[Any]:
    """Restrict a query to the rows that match the filters, including the pass."""
    statement = statement.where(*_conditions(table, work))
    pass_choice = work.get("pass_number", "last")
    if isinstance(pass_choice, int):
        return statement.where(table.c.pass_number == pass_choice)
    of_one_trace = work.get("trace_id") is not None
    return _in_pass(
        statement,
        table,
        pass_choice,
        lambda source: _conditions(source, work),
        of_one_trace=of_one_trace,
    )


def _in_pass(
    statement: Select[Any],
    table: Table,
    which: Literal["last", "finished"] | None,
    conditions: Callable[[Table], list[ColumnElement[bool]]],
    *,
    of_one_trace: bool,
) -> Select[Any]:
    """Restrict a query to the last pass of each work.

    Adjudications and retests do not count, since their labels are not those of a reading.

    Args:
        statement: The query on the table.
        table: A table with a pass in each row.
        which: ``last`` for the last pass, ``finished`` for the last finished one; None for all.
        conditions: The conditions on the table, which are applied to passes too.
        of_one_trace: True if the query is about one trace. For many traces another query is used,
            since looking up the pass of each row would take most of the time.
    """
    if which is None:
        return statement
    passes = schema.passes
    work = ("annotator", "trace_id", "taxonomy")
    counting = [passes.c.withdrawn.is_(False), passes.c.kind.not_in(_NO_READINGS)]
    if which == "finished":
        counting.append(passes.c.finished_at.is_not(None))
    last: ColumnElement[Any] = func.max(passes.c.number)
    if of_one_trace:
        same = [passes.c[name] == table.c[name] for name in work]
        last = select(last).where(*same, *counting).scalar_subquery()
    else:
        of_work = [passes.c[name] for name in work]
        each = select(*of_work, last.label("last")).where(*conditions(passes), *counting)
        lasts = each.group_by(*of_work).subquery()
        same = [lasts.c[name] == table.c[name] for name in work]
        statement = statement.outerjoin_from(table, lasts, and_(*same))
        last = lasts.c.last
    if which == "last":
        last = func.coalesce(last, table.c.pass_number)
    return statement.where(table.c.pass_number == last)


def labels(connection: Connection, **work: Unpack[OfPass]) -> tuple[Label, ...]:
    """Return labels, sorted by trace, annotator, taxonomy, pass and id."""
    statement, values = _in_order(schema.labels, work, "id")
    return tuple(map(label_of, connection.execute(statement, values).mappings()))


def verdicts(connection: Connection, **work: Unpack[OfPass]) -> tuple[Verdict, ...]:
    """Return verdicts, sorted by trace, annotator, taxonomy, pass and mode.

    A mode with labels is present.
    """
    labels_table = schema.labels
    table = schema.verdicts
    key = [labels_table.c[column.name] for column in table.primary_key]
    present = connection.execute(_with_pass(select(*key), labels_table, work).distinct())
    by_key = {tuple(row): verdict_of((*row, VerdictValue.PRESENT)) for row in present}
    for row in connection.execute(_with_pass(select(table), table, work)):
        by_key.setdefault(tuple(row[:-1]), verdict_of(row))
    return tuple(
        sorted(
            by_key.values(),
            key=lambda v: (v.trace_id, v.annotator, v.taxonomy, v.pass_number, v.mode),
        )
    )


def reviews(connection: Connection, **work: Unpack[OfPass]) -> tuple[Review, ...]:
    """Return reviews, sorted by trace, annotator, taxonomy, pass and suggestion."""
    statement, values = _in_order(schema.reviews, work, "suggestion")
    return tuple(map(review_of, connection.execute(statement, values)))


def span_notes(connection: Connection, **work: Unpack[OfPass]) -> tuple[SpanNote, ...]:
    """Return notes on spans, sorted by trace, annotator, taxonomy, pass and span."""
    statement, values = _in_order(schema.span_notes, work, "span_key")
    return tuple(map(span_note_of, connection.execute(statement, values)))


def _in_order(table: Table, work: OfPass, last: str) -> tuple[Select[Any], dict[str, object]]:
    """Return a query, sorted by trace, annotator, taxonomy, pass and ``last``, and its values."""
    chosen = work.get("pass_number", "last")
    values = {name: value for name, value in work.items() if value is not None}
    if not isinstance(chosen, int):
        values.pop("pass_number", None)
    passes = None if isinstance(chosen, int) else chosen
    return _statement(table, tuple(sorted(values)), passes, last), values


@cache
def _statement(
    table: Table, names: tuple[str, ...], passes: Literal["last", "finished"] | None, last: str
) -> Select[Any]:
    """Make the query for a set of filters; cached, since making it takes longer than running it."""

    def conditions(source: Table) -> list[ColumnElement[bool]]:
        return [source.c[name] == bindparam(name) for name in names]

    statement = select(table).where(*conditions(table))
    statement = _in_pass(statement, table, passes, conditions, of_one_trace="trace_id" in names)
    order = ("trace_id", "annotator", "taxonomy", "pass_number", last)
    return statement.order_by(*(table.c[name] for name in order))


def passes(connection: Connection, **work: Unpack[OfWork]) -> tuple[Pass, ...]:
    """Return all passes with adjudications, sorted by trace, annotator, taxonomy and number."""
    table = schema.passes
    statement = (
        select(*(table.c[name] for name in PASS_COLUMNS))
        .where(*_conditions(table, work), table.c.withdrawn.is_(False))
        .order_by(table.c.trace_id, table.c.annotator, table.c.taxonomy, table.c.number)
    )
    return tuple(map(pass_of, connection.execute(statement)))


def used_taxonomies(connection: Connection) -> tuple[str, ...]:
    """Return the taxonomies (``id@version``) under which a trace was begun, sorted."""
    table = schema.passes
    statement = select(table.c.taxonomy).where(table.c.withdrawn.is_(False)).distinct()
    return tuple(sorted(connection.execute(statement).scalars()))


def finished_traces(connection: Connection, annotator: str, taxonomy: str) -> frozenset[str]:
    """Return the ids of the traces whose last pass an annotator has finished.

    Args:
        connection: An open connection.
        annotator: The annotator.
        taxonomy: The taxonomy.
    """
    table = schema.passes
    statement = (
        select(table.c.trace_id, table.c.finished_at)
        .where(
            *_conditions(table, {"annotator": annotator, "taxonomy": taxonomy}),
            table.c.withdrawn.is_(False),
            table.c.kind.not_in(_NO_READINGS),
        )
        .order_by(table.c.trace_id, table.c.number)
    )
    last = {row[0]: row[1] for row in connection.execute(statement)}
    return frozenset(trace_id for trace_id, finished_at in last.items() if finished_at is not None)


def reads(
    connection: Connection, annotator: str, trace_id: str, taxonomy: str, pass_number: int
) -> SpansRead:
    """Return the spans read up to and in a pass, each key and each run once.

    A retest begins with nothing read, and its readings count for no other pass.

    Args:
        connection: An open connection.
        annotator: The annotator.
        trace_id: The trace.
        taxonomy: The taxonomy.
        pass_number: The number of the pass.
    """
    table = schema.events
    passes = schema.passes
    work: OfWork = {"annotator": annotator, "trace_id": trace_id, "taxonomy": taxonomy}
    is_retest = passes.c.kind == PassKind.RETEST.value
    retest_numbers = select(passes.c.number).where(*_conditions(passes, work), is_retest)
    retests = connection.execute(retest_numbers).scalars().all()
    in_pass = table.c.pass_number == pass_number
    up_to_pass = (table.c.pass_number <= pass_number) & table.c.pass_number.not_in(retests)
    statement = select(table).where(
        *_conditions(table, work),
        table.c.kind == KIND_OF[SpansRead],
        in_pass if pass_number in retests else up_to_pass,
    )
    rows = connection.execute(statement).mappings()
    facts = [event.fact for event in readable_events(rows)]
    readings = [fact for fact in facts if isinstance(fact, SpansRead)]
    return SpansRead(
        tuple(sorted({key for fact in readings for key in fact.keys})),
        tuple(sorted({run for fact in readings for run in fact.runs})),
    )


def look_again(
    connection: Connection, annotator: str, taxonomy: str, trace_id: str | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the modes that an annotator marked to look at again, by trace.

    Args:
        connection: An open connection.
        annotator: The annotator.
        taxonomy: The taxonomy.
        trace_id: Only modes of this trace; None for all.
    """
    table = schema.events
    work: OfWork = {"annotator": annotator, "taxonomy": taxonomy, "trace_id": trace_id}
    statement = (
        select(table)
        .where(*_conditions(table, work), table.c.kind == KIND_OF[LookAgainSet])
        .order_by(table.c.seq, table.c.id)
    )
    modes_by_trace: dict[str, tuple[str, ...]] = {}
    for event in readable_events(connection.execute(statement).mappings()):
        if isinstance(event.fact, LookAgainSet) and event.trace_id is not None:
            modes_by_trace[event.trace_id] = event.fact.after
    return {trace_id: modes for trace_id, modes in modes_by_trace.items() if modes}


def decisions(
    connection: Connection,
    taxonomy: str,
    *,
    trace_id: str | None = None,
    annotator: str | None = None,
) -> dict[str, tuple[Decision, ...]]:
    """Return the decisions in force by trace, in the order in which they were made.

    Args:
        connection: An open connection.
        taxonomy: The taxonomy.
        trace_id: Only decisions on this trace; None for all.
        annotator: Only decisions of this adjudicator; None for the last ones on each item.
    """
    work: OfWork = {"trace_id": trace_id, "annotator": annotator, "taxonomy": taxonomy}
    table = schema.decisions
    statement = (
        select(table.c.trace_id, table.c.item, table.c.document)
        .where(*_conditions(table, work))
        .order_by(table.c.trace_id, table.c.decided_at, table.c.annotator, table.c.item)
    )
    by_trace = defaultdict[str, dict[str, Decision]](dict)
    for trace, item, document in connection.execute(statement):
        by_trace[trace].pop(item, None)  # the order is that of the last decisions
        by_trace[trace][item] = decision_from_values(json.loads(document))
    return {trace: tuple(by_item.values()) for trace, by_item in by_trace.items()}


def study(connection: Connection, taxonomy: str) -> Study | None:
    """Return the study under a taxonomy, the last one if there are several, or None.

    Args:
        connection: An open connection.
        taxonomy: The taxonomy.
    """
    table = schema.studies
    statement = (
        select(table.c.document)
        .where(table.c.taxonomy == taxonomy)
        .order_by(table.c.set_at.desc(), table.c.annotator.desc())
        .limit(1)
    )
    document = connection.execute(statement).scalar()
    return None if document is None else study_from_values(json.loads(document))


def study_leads(connection: Connection) -> dict[str, str]:
    """Return the author of each study in force, by taxonomy; the last study is in force."""
    table = schema.studies
    statement = select(table.c.taxonomy, table.c.annotator).order_by(
        table.c.set_at, table.c.annotator
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def guidelines(connection: Connection, taxonomy: str) -> tuple[Guideline, ...]:
    """Return the last text of each guideline on a taxonomy's modes, the earliest first.

    A guideline whose last text is empty is withdrawn and left out.

    Args:
        connection: An open connection.
        taxonomy: The taxonomy.
    """
    table = schema.guidelines
    statement = (
        select(table.c.document)
        .where(table.c.taxonomy == taxonomy)
        .order_by(table.c.written_at, table.c.annotator, table.c.id)
    )
    by_id: dict[str, Guideline] = {}
    for (document,) in connection.execute(statement):
        guideline = read(json.loads(document), Guideline, "guideline")
        by_id[guideline.id] = guideline
    return tuple(guideline for guideline in by_id.values() if guideline.text)


def judgements(connection: Connection, **work: Unpack[OfWork]) -> tuple[JudgementRecord, ...]:
    """Return the stored judgements, sorted by trace and judge."""
    table = schema.judgements
    statement = (
        select(table)
        .where(*_conditions(table, work))
        .order_by(table.c.trace_id, table.c.annotator, table.c.taxonomy)
    )
    return tuple(
        JudgementRecord(annotator, trace_id, taxonomy, tuple(json.loads(looks_at)), judged_at, run)
        for annotator, trace_id, taxonomy, looks_at, run, judged_at in connection.execute(statement)
    )


def label_counts(connection: Connection, annotator: str, taxonomy: str) -> dict[str, int]:
    """Count the labels of an annotator in the last pass, by trace.

    Args:
        connection: An open connection.
        annotator: The annotator.
        taxonomy: The taxonomy.
    """
    table = schema.labels
    work: OfPass = {"annotator": annotator, "taxonomy": taxonomy}
    statement = _with_pass(select(table.c.trace_id, func.count()), table, work)
    counted = connection.execute(statement.group_by(table.c.trace_id))
    return {row[0]: row[1] for row in counted}


def waiting_counts(connection: Connection, annotator: str, taxonomy: str) -> dict[str, int]:
    """Count the suggestions that an annotator has answered in no pass, by trace.

    Args:
        connection: An open connection.
        annotator: The annotator.
        taxonomy: The taxonomy.
    """
    table = schema.labels
    reviewed = schema.reviews
    answered = (
        select(reviewed.c.suggestion)
        .where(
            reviewed.c.annotator == annotator,
            reviewed.c.trace_id == table.c.trace_id,
            reviewed.c.taxonomy == table.c.taxonomy,
            reviewed.c.suggestion == table.c.id,
        )
        .exists()
    )
    statement = (
        select(table.c.trace_id, func.count())
        .where(
            table.c.taxonomy == taxonomy,
            table.c.annotator.startswith("judge:"),
            ~answered,
        )
        .group_by(table.c.trace_id)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def event_count(connection: Connection) -> int:
    """Count the events of all annotators."""
    return connection.execute(select(func.count()).select_from(schema.events)).scalar_one()


def events(
    connection: Connection,
    work: OfWork,
    pass_number: int | None,
    after: tuple[str, int, str] | None,
) -> tuple[Event, ...]:
    """Return the next events, sorted by annotator, counter and id; skip unreadable ones.

    Args:
        connection: A connection that sees one state throughout.
        work: The annotator, trace and taxonomy.
        pass_number: The pass of the events; None for any.
        after: The annotator, counter and id of the event before them; None for the first events.
    """
    table = schema.events
    order = (table.c.annotator, table.c.seq, table.c.id)
    statement = select(table).where(*_conditions(table, work)).order_by(*order)
    if pass_number is not None:
        statement = statement.where(table.c.pass_number == pass_number)
    while True:
        later = statement if after is None else statement.where(tuple_(*order) > after)
        rows = connection.execute(later.limit(_EVENTS_AT_ONCE)).mappings().all()
        read_events = tuple(readable_events(rows))
        if read_events or not rows:
            return read_events
        last = rows[-1]
        after = (last["annotator"], last["seq"], last["id"])


def events_on_traces(
    connection: Connection, annotator: str, taxonomy: str, trace_ids: Sequence[str]
) -> dict[str, list[Event]]:
    """Return one annotator's events on each of several traces, sorted by counter and id.

    Args:
        connection: A connection that sees one state throughout.
        annotator: The annotator.
        taxonomy: The taxonomy.
        trace_ids: The traces, which are the keys of the result.
    """
    table = schema.events
    by_trace: dict[str, list[Event]] = {trace_id: [] for trace_id in trace_ids}
    for start in range(0, len(trace_ids), _TRACES_AT_ONCE):
        statement = (
            select(table)
            .where(
                table.c.annotator == annotator,
                table.c.taxonomy == taxonomy,
                table.c.trace_id.in_(trace_ids[start : start + _TRACES_AT_ONCE]),
            )
            # The order of an index; with ``seq`` first, all events of the annotator would be read.
            .order_by(table.c.trace_id, table.c.seq, table.c.id)
        )
        for event in readable_events(connection.execute(statement).mappings()):
            by_trace[event.trace_id or ""].append(event)
    return by_trace
