"""Reads of the state tables in a stable order, and of their columns as plain tuples.

Figures over many rows use tuples. Verdicts are packed into the bits of a number by the database, so
that there is one row for each pass instead of one for each verdict.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    case,
    distinct,
    func,
    literal,
    select,
    tuple_,
)

from mast_tui.gold.model import Decision, Guideline
from mast_tui.labels import Label, Pass, PassKind, Review, SpanNote, Verdict, VerdictValue
from mast_tui.study.model import Study
from mast_tui.workspace import schema
from mast_tui.workspace.events.codec import decision_from_json, read, study_from_json
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
from mast_tui.workspace.events.types import KIND_OF, LookAgainSet, SpanRange, SpansRead
from mast_tui.workspace.records import JudgementRecord

PassChoice = int | Literal["last", "finished"] | None
"""The number of a pass, the last pass, the last finished pass, or None for all passes."""

_EVENTS_AT_ONCE: Final = 1000
_TRACES_AT_ONCE: Final = 500
_OTHER_PASS_KINDS: Final = tuple(kind.value for kind in PassKind if not kind.is_labelling)


class OfWork(TypedDict, total=False):
    """The filters of a query; a missing filter or None matches everything."""

    trace_id: str | None
    annotator: str | None
    taxonomy: str | None


class OfPass(OfWork, total=False):
    """The filters of a query on passes; by default the last pass is selected."""

    pass_number: PassChoice


def _filter_conditions(table: Table, filters: OfWork) -> list[ColumnElement[bool]]:
    """Return the conditions on a table for all filters except the pass."""
    names = ("trace_id", "annotator", "taxonomy")
    named_values = ((name, filters.get(name)) for name in names)
    return [table.c[name] == value for name, value in named_values if value is not None]


def _query(
    table: Table, filters: OfPass, *, last_column: str | None = None
) -> tuple[Select[Any], dict[str, object]]:
    """Return a query for the rows that match filters, and the values of its parameters.

    With ``last_column``, the rows are sorted by trace, annotator, taxonomy, pass and this column.
    """
    pass_choice = filters.get("pass_number", "last")
    values = {name: value for name, value in filters.items() if value is not None}
    if isinstance(pass_choice, int):
        pass_choice = None  # the number is a filter like any other
    else:
        values.pop("pass_number", None)
    return _statement(table, tuple(sorted(values)), pass_choice, last_column), values


@cache
def _statement(
    table: Table,
    filter_names: tuple[str, ...],
    pass_choice: Literal["last", "finished"] | None,
    last_column: str | None,
) -> Select[Any]:
    """Return a query on a table, with a parameter for each filter.

    The query is cached, because building it takes longer than running it.
    """
    statement = select(table).where(*(table.c[name] == bindparam(name) for name in filter_names))
    if pass_choice is not None:
        statement = _of_last_passes(statement, table, filter_names, pass_choice)
    if last_column is not None:
        order = ("trace_id", "annotator", "taxonomy", "pass_number", last_column)
        statement = statement.order_by(*(table.c[name] for name in order))
    return statement


def _of_last_passes(
    statement: Select[Any],
    table: Table,
    filter_names: Collection[str],
    pass_choice: Literal["last", "finished"],
) -> Select[Any]:
    """Restrict a query to the last (or last finished) pass of each annotator on each trace.

    Adjudications and retests are never the last pass.
    """
    passes = schema.passes
    conditions = [passes.c.withdrawn.is_(False), passes.c.kind.not_in(_OTHER_PASS_KINDS)]
    if pass_choice == "finished":
        conditions.append(passes.c.finished_at.is_not(None))
    work_names = ("annotator", "trace_id", "taxonomy")
    work_columns = [passes.c[name] for name in work_names]
    last_number: ColumnElement[Any] = func.max(passes.c.number)
    if "trace_id" in filter_names:
        is_same_work = [passes.c[name] == table.c[name] for name in work_names]
        last_number = select(last_number).where(*is_same_work, *conditions).scalar_subquery()
    else:  # for many traces, a look-up for each row would be slow
        is_filtered = (passes.c[name] == bindparam(name) for name in filter_names)
        last_passes = (
            select(*work_columns, last_number.label("last"))
            .where(*is_filtered, *conditions)
            .group_by(*work_columns)
            .subquery()
        )
        is_same_work = [last_passes.c[name] == table.c[name] for name in work_names]
        statement = statement.outerjoin_from(table, last_passes, and_(*is_same_work))
        last_number = last_passes.c.last
    if pass_choice == "last":
        # Without a last pass, the rows of all passes stay in the result.
        last_number = func.coalesce(last_number, table.c.pass_number)
    return statement.where(table.c.pass_number == last_number)


def labels(connection: Connection, **filters: Unpack[OfPass]) -> tuple[Label, ...]:
    """Return labels, sorted by trace, annotator, taxonomy, pass and id."""
    statement, values = _query(schema.labels, filters, last_column="id")
    return tuple(map(label_of, connection.execute(statement, values).mappings()))


def verdicts(connection: Connection, **filters: Unpack[OfPass]) -> tuple[Verdict, ...]:
    """Return verdicts, sorted by trace, annotator, taxonomy, pass and mode.

    A mode with a label is present, whatever verdict is stored.
    """
    labels_table = schema.labels
    verdicts_table = schema.verdicts
    key_columns = [labels_table.c[column.name] for column in verdicts_table.primary_key]
    statement, values = _query(labels_table, filters)
    present_keys = connection.execute(statement.with_only_columns(*key_columns).distinct(), values)
    by_key = {tuple(key): verdict_of((*key, VerdictValue.PRESENT)) for key in present_keys}
    statement, values = _query(verdicts_table, filters)
    for row in connection.execute(statement, values):
        *key, _value = row
        by_key.setdefault(tuple(key), verdict_of(row))
    return tuple(
        sorted(
            by_key.values(),
            key=lambda v: (v.trace_id, v.annotator, v.taxonomy, v.pass_number, v.mode),
        )
    )


def reviews(connection: Connection, **filters: Unpack[OfPass]) -> tuple[Review, ...]:
    """Return reviews, sorted by trace, annotator, taxonomy, pass and suggestion."""
    statement, values = _query(schema.reviews, filters, last_column="suggestion")
    return tuple(map(review_of, connection.execute(statement, values)))


def span_notes(connection: Connection, **filters: Unpack[OfPass]) -> tuple[SpanNote, ...]:
    """Return notes on spans, sorted by trace, annotator, taxonomy, pass and span."""
    statement, values = _query(schema.span_notes, filters, last_column="span_key")
    return tuple(map(span_note_of, connection.execute(statement, values)))


def passes(connection: Connection, **filters: Unpack[OfWork]) -> tuple[Pass, ...]:
    """Return the passes that were not withdrawn.

    They are sorted by trace, annotator, taxonomy and number.
    """
    table = schema.passes
    statement = (
        select(*(table.c[name] for name in PASS_COLUMNS))
        .where(*_filter_conditions(table, filters), table.c.withdrawn.is_(False))
        .order_by(table.c.trace_id, table.c.annotator, table.c.taxonomy, table.c.number)
    )
    return tuple(map(pass_of, connection.execute(statement)))


def used_taxonomies(connection: Connection) -> tuple[str, ...]:
    """Return the taxonomies (``id@version``) under which a trace was begun, sorted by name."""
    table = schema.passes
    statement = select(table.c.taxonomy).where(table.c.withdrawn.is_(False)).distinct()
    return tuple(sorted(connection.execute(statement).scalars()))


def finished_traces(connection: Connection, annotator: str, taxonomy: str) -> frozenset[str]:
    """Return the traces on which an annotator's last pass is finished.

    Adjudications and retests are left out.

    Args:
        connection: An open connection.
        annotator: The annotator.
        taxonomy: The taxonomy.
    """
    # Passes are sorted by number, so the dictionary keeps the last pass on each trace.
    last_passes = {
        trace_pass.trace_id: trace_pass
        for trace_pass in passes(connection, annotator=annotator, taxonomy=taxonomy)
        if trace_pass.kind.is_labelling
    }
    return frozenset(
        trace_id for trace_id, trace_pass in last_passes.items() if trace_pass.finished
    )


def reads(
    connection: Connection, annotator: str, trace_id: str, taxonomy: str, pass_number: int
) -> SpansRead:
    """Return the spans that an annotator has read up to a pass, without repeats.

    The spans read in a retest belong to that retest only.

    Args:
        connection: An open connection.
        annotator: The annotator.
        trace_id: The trace.
        taxonomy: The taxonomy.
        pass_number: The number of the pass.
    """
    table = schema.events
    passes = schema.passes
    filters: OfWork = {"annotator": annotator, "trace_id": trace_id, "taxonomy": taxonomy}
    is_retest = passes.c.kind == PassKind.RETEST.value
    retest_numbers = select(passes.c.number).where(*_filter_conditions(passes, filters), is_retest)
    retests = connection.execute(retest_numbers).scalars().all()
    if pass_number in retests:
        in_passes = table.c.pass_number == pass_number
    else:
        in_passes = (table.c.pass_number <= pass_number) & table.c.pass_number.not_in(retests)
    statement = select(table).where(
        *_filter_conditions(table, filters), table.c.kind == KIND_OF[SpansRead], in_passes
    )
    keys: set[str] = set()
    ranges: set[SpanRange] = set()
    for event in readable_events(connection.execute(statement).mappings()):
        if isinstance(event.fact, SpansRead):
            keys.update(event.fact.keys)
            ranges.update(event.fact.ranges)
    return SpansRead(tuple(sorted(keys)), tuple(sorted(ranges)))


def modes_to_look_at_again(
    connection: Connection, annotator: str, taxonomy: str, trace_id: str | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the modes on which an annotator must decide again, by trace.

    A new version of the taxonomy has split a labelled mode into these modes.

    Args:
        connection: An open connection.
        annotator: The annotator.
        taxonomy: The taxonomy.
        trace_id: Only modes of this trace; None for all.
    """
    table = schema.events
    filters: OfWork = {"annotator": annotator, "taxonomy": taxonomy, "trace_id": trace_id}
    statement = (
        select(table)
        .where(*_filter_conditions(table, filters), table.c.kind == KIND_OF[LookAgainSet])
        .order_by(table.c.seq, table.c.id)
    )
    modes_by_trace: dict[str, tuple[str, ...]] = {}
    for event in readable_events(connection.execute(statement).mappings()):
        if isinstance(event.fact, LookAgainSet) and event.trace_id is not None:
            modes_by_trace[event.trace_id] = event.fact.after  # the last event on a trace counts
    return {trace_id: modes for trace_id, modes in modes_by_trace.items() if modes}


def decisions(
    connection: Connection,
    taxonomy: str,
    *,
    trace_id: str | None = None,
    annotator: str | None = None,
) -> dict[str, tuple[Decision, ...]]:
    """Return the newest decision on each item by trace, in the order of the decisions.

    An item is the subject of a decision: the verdict on a mode, or one place of it.

    Args:
        connection: An open connection.
        taxonomy: The taxonomy.
        trace_id: Only decisions on this trace; None for all.
        annotator: Only decisions of this adjudicator; None for all.
    """
    filters: OfWork = {"trace_id": trace_id, "annotator": annotator, "taxonomy": taxonomy}
    table = schema.decisions
    statement = (
        select(table.c.trace_id, table.c.item, table.c.document)
        .where(*_filter_conditions(table, filters))
        .order_by(table.c.trace_id, table.c.decided_at, table.c.annotator, table.c.item)
    )
    by_trace = defaultdict[str, dict[str, Decision]](dict)
    for trace, item, document in connection.execute(statement):
        by_item = by_trace[trace]
        by_item.pop(item, None)  # so that the newer decision is added at the end
        by_item[item] = decision_from_json(document)
    return {trace: tuple(by_item.values()) for trace, by_item in by_trace.items()}


def study(connection: Connection, taxonomy: str) -> Study | None:
    """Return the newest study under a taxonomy; None without a study.

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
    return None if document is None else study_from_json(document)


def study_leads(connection: Connection) -> dict[str, str]:
    """Return the lead under each taxonomy: the annotator who set up its newest study."""
    table = schema.studies
    statement = select(table.c.taxonomy, table.c.annotator).order_by(
        table.c.set_at, table.c.annotator
    )
    # The newest study comes last, so the dictionary keeps its author.
    return dict(connection.execute(statement).all())


def guidelines(connection: Connection, taxonomy: str) -> tuple[Guideline, ...]:
    """Return the latest version of each guideline under a taxonomy.

    A guideline with an empty latest text is withdrawn and left out.

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
        by_id[guideline.id] = guideline  # replaces the earlier versions
    return tuple(guideline for guideline in by_id.values() if guideline.text)


def judgements(connection: Connection, **filters: Unpack[OfWork]) -> tuple[JudgementRecord, ...]:
    """Return the stored judgements, sorted by trace, judge and taxonomy."""
    table = schema.judgements
    statement = (
        select(table)
        .where(*_filter_conditions(table, filters))
        .order_by(table.c.trace_id, table.c.annotator, table.c.taxonomy)
    )
    return tuple(
        JudgementRecord(annotator, trace_id, taxonomy, tuple(json.loads(looks_at)), judged_at, run)
        for annotator, trace_id, taxonomy, looks_at, run, judged_at in connection.execute(statement)
    )


def judges(connection: Connection) -> tuple[str, ...]:
    """Return the judges that have judged a trace, sorted by name."""
    judge = schema.judgements.c.annotator
    return tuple(connection.execute(select(judge).distinct().order_by(judge)).scalars())


def label_counts(connection: Connection, annotator: str, taxonomy: str) -> dict[str, int]:
    """Count the labels in an annotator's last pass on each trace, by trace id.

    Args:
        connection: An open connection.
        annotator: The annotator.
        taxonomy: The taxonomy.
    """
    table = schema.labels
    statement, values = _query(table, {"annotator": annotator, "taxonomy": taxonomy})
    counts = statement.with_only_columns(table.c.trace_id, func.count()).group_by(table.c.trace_id)
    return dict(connection.execute(counts, values).all())


def waiting_counts(connection: Connection, annotator: str, taxonomy: str) -> dict[str, int]:
    """Count the suggestions that an annotator has never answered, by trace.

    Args:
        connection: An open connection.
        annotator: The annotator.
        taxonomy: The taxonomy.
    """
    table = schema.labels
    reviews_table = schema.reviews
    is_answered = (
        select(reviews_table.c.suggestion)
        .where(
            reviews_table.c.annotator == annotator,
            reviews_table.c.trace_id == table.c.trace_id,
            reviews_table.c.taxonomy == table.c.taxonomy,
            reviews_table.c.suggestion == table.c.id,
        )
        .exists()
    )
    statement = (
        select(table.c.trace_id, func.count())
        .where(
            table.c.taxonomy == taxonomy,
            table.c.annotator.startswith("judge:"),
            ~is_answered,
        )
        .group_by(table.c.trace_id)
    )
    return dict(connection.execute(statement).all())


def event_count(connection: Connection) -> int:
    """Count the events of all annotators."""
    return connection.execute(select(func.count()).select_from(schema.events)).scalar_one()


def events(
    connection: Connection,
    filters: OfWork,
    pass_number: int | None,
    after: tuple[str, int, str] | None,
) -> tuple[Event, ...]:
    """Return the next batch of readable events, sorted by annotator, sequence number and id.

    The batch is empty at the end.

    Args:
        connection: A connection that sees one state throughout.
        filters: The filters for annotator, trace and taxonomy.
        pass_number: Only events of this pass; None for all.
        after: The annotator, sequence number and id of the event before the batch; None for the
            first batch.
    """
    table = schema.events
    order = (table.c.annotator, table.c.seq, table.c.id)
    statement = select(table).where(*_filter_conditions(table, filters)).order_by(*order)
    if pass_number is not None:
        statement = statement.where(table.c.pass_number == pass_number)
    while True:
        later = statement if after is None else statement.where(tuple_(*order) > after)
        rows = connection.execute(later.limit(_EVENTS_AT_ONCE)).mappings().all()
        batch = tuple(readable_events(rows))
        if batch or not rows:
            return batch
        # None of these rows can be read, so continue after them.
        last = rows[-1]
        after = (last["annotator"], last["seq"], last["id"])


def events_on_traces(
    connection: Connection, annotator: str, taxonomy: str, trace_ids: Sequence[str]
) -> dict[str, list[Event]]:
    """Return an annotator's events on some traces, by trace, sorted by sequence number and id.

    Args:
        connection: A connection that sees one state throughout.
        annotator: The annotator.
        taxonomy: The taxonomy.
        trace_ids: The ids of the traces, which are the keys of the result.
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
            # The order of an index. For an order by ``seq`` alone, the database would read all
            # events of the annotator.
            .order_by(table.c.trace_id, table.c.seq, table.c.id)
        )
        for event in readable_events(connection.execute(statement).mappings()):
            by_trace[event.trace_id or ""].append(event)
    return by_trace


Row = tuple[Any, ...]
Result = TypeVar("Result")

_ROWS_PER_FETCH: Final = 10_000
BITS: Final = 2
"""The bits of a verdict. Present has all bits set, so it wins if verdicts are joined with OR."""

MODES_AT_ONCE: Final = 30
"""The most modes in one number, as an integer of SQLite has 63 bits."""

OPEN: Final = 0
_NO_BITS: Final = literal(0, BigInteger())
"""Zero, with a type that is large enough for all bits on a server."""
CODES: Final = {VerdictValue.ABSENT: 1, VerdictValue.UNSURE: 2, VerdictValue.PRESENT: 3}


def read_columns(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    convert: Callable[[Iterator[Row]], Result],
    *,
    equal_to: Mapping[str, str] | None = None,
    not_null: str | None = None,
) -> Result:
    """Read columns of a table other than ``events``, and convert the rows.

    Args:
        connection: A connection that sees one state throughout.
        table: The name of the table.
        columns: The columns to read; Booleans are 0 and 1.
        convert: Converts the unsorted rows. It must not use the workspace, because the rows are
            still being read.
        equal_to: The values that columns must have, by name.
        not_null: A column that must not be null.
    """
    source = schema.metadata.tables[table]
    conditions = [source.c[name] == value for name, value in (equal_to or {}).items()]
    if not_null is not None:
        conditions.append(source.c[not_null].is_not(None))
    statement = select(*(source.c[name] for name in columns)).where(*conditions)
    return convert(rows_of(connection, statement))


def rows_of(connection: Connection, statement: Select[Any]) -> Iterator[Row]:
    """Yield the rows of a query as tuples, with at most ``_ROWS_PER_FETCH`` rows in memory.

    Args:
        connection: An open connection.
        statement: The query.
    """
    result = connection.execute(statement)
    cursor = result.cursor
    assert cursor is not None  # a SELECT has one
    try:
        while rows := cursor.fetchmany(_ROWS_PER_FETCH):
            yield from rows
    finally:
        result.close()


class PackedVerdicts(Struct, frozen=True):
    """The verdicts on up to ``MODES_AT_ONCE`` modes of a taxonomy, from the mode at ``start``.

    ``rows`` are (annotator, trace id, pass number, verdicts, labels). The two lowest bits of the
    verdicts belong to the first mode and are encoded by ``CODES``; ``OPEN`` is no verdict. A pass
    may have two rows, whose verdicts are to be joined with ``|``. ``labels`` is the number of
    labels on the whole trace.
    """

    start: int
    rows: Sequence[tuple[str, str, int, int, int]]


def packed_verdicts(
    connection: Connection, taxonomy: str, slugs: Sequence[str], annotator: str | None = None
) -> tuple[PackedVerdicts, ...]:
    """Return the verdicts on modes in each pass, packed into bits.

    A mode with a label is present.

    Args:
        connection: An open connection.
        taxonomy: The taxonomy.
        slugs: The modes; each ``MODES_AT_ONCE`` of them have a result.
        annotator: The annotator; None for all.
    """
    labels = schema.labels
    verdicts = schema.verdicts
    code_by_value = {value.value: code for value, code in CODES.items()}
    whole_trace_label_count = func.sum(case((labels.c.first_key.is_(None), 1), else_=0))
    packed = list[PackedVerdicts]()
    for start in range(0, len(slugs), MODES_AT_ONCE):
        batch_slugs = slugs[start : start + MODES_AT_ONCE]
        # Multiplying the code of a verdict by its mode's factor moves it to the mode's bits.
        factors = {slug: 1 << (BITS * index) for index, slug in enumerate(batch_slugs)}
        present = {slug: factor * CODES[VerdictValue.PRESENT] for slug, factor in factors.items()}
        # Each mode has its own bits, so a sum joins the verdicts of a pass. DISTINCT counts a mode
        # with several labels once.
        present_bits = func.sum(distinct(case(present, value=labels.c.mode, else_=_NO_BITS)))
        verdict_code = case(code_by_value, value=verdicts.c.value, else_=OPEN)
        verdict_bits = func.sum(case(factors, value=verdicts.c.mode, else_=_NO_BITS) * verdict_code)
        # Each table is read in the order of an index, so that SQLite need not sort.
        label_sums = _sums_by_pass(
            labels,
            taxonomy,
            annotator,
            order="trace_id taxonomy annotator",
            sums=(present_bits, whole_trace_label_count),
        )
        verdict_sums = _sums_by_pass(
            verdicts,
            taxonomy,
            annotator,
            order="annotator trace_id taxonomy",
            sums=(verdict_bits, literal(0)),
        )
        rows = (*rows_of(connection, label_sums), *rows_of(connection, verdict_sums))
        packed.append(PackedVerdicts(start, rows))
    return tuple(packed)


def _sums_by_pass(
    table: Table,
    taxonomy: str,
    annotator: str | None,
    *,
    order: str,
    sums: tuple[ColumnElement[int], ColumnElement[int]],
) -> Select[Any]:
    """Return the query for the ``PackedVerdicts.rows`` of a table.

    ``order`` names the columns of an index of the table.
    """
    columns = table.c
    statement = select(columns.annotator, columns.trace_id, columns.pass_number, *sums)
    # With equality instead of a range, SQLite would sort instead of using the index.
    for column, value in ((columns.taxonomy, taxonomy), (columns.annotator, annotator)):
        if value is not None:
            statement = statement.where(column >= value, column <= value)
    return statement.group_by(*(columns[name] for name in order.split()), columns.pass_number)
