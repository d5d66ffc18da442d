"""Columns of tables as plain tuples, for figures over very many rows.

The database packs verdicts into some bits each, so that one row is read for each pass over a trace
and not one for each verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    Table,
    case,
    distinct,
    func,
    literal,
    select,
)

from mast_tui.labels import VerdictValue
from mast_tui.workspace import schema

Row = tuple[Any, ...]
Result = TypeVar("Result")

_AT_ONCE: Final = 10_000
BITS: Final = 2
"""The bits of a verdict. Two verdicts on one mode are joined with ``|``; present has all bits."""

MODES_AT_ONCE: Final = 30
"""The modes whose verdicts fit into one integer of SQLite, which has 63 bits for them."""

OPEN: Final = 0
_NONE: Final = literal(0, BigInteger())
"""A zero of 64 bits; PostgreSQL's usual integer would have too few bits for the verdicts."""
CODES: Final = {VerdictValue.ABSENT: 1, VerdictValue.UNSURE: 2, VerdictValue.PRESENT: 3}


def read_columns(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    take: Callable[[Iterator[Row]], Result],
    *,
    equal_to: Mapping[str, str] | None = None,
    not_null: str | None = None,
) -> Result:
    """Return the result of ``take`` for the rows of a state table or register, in no order.

    Args:
        connection: A connection that sees one state throughout.
        table: The name of the table.
        columns: The columns to read; booleans are 0 and 1.
        take: A function of the rows; it must not use the workspace.
        equal_to: The required values of columns.
        not_null: A column that must not be null.
    """
    source = schema.metadata.tables[table]
    conditions = [source.c[name] == value for name, value in (equal_to or {}).items()]
    if not_null is not None:
        conditions.append(source.c[not_null].is_not(None))
    return take(
        rows_of(connection, select(*(source.c[name] for name in columns)).where(*conditions))
    )


def rows_of(connection: Connection, statement: Select[Any]) -> Iterator[Row]:
    """Yield the rows of a query as plain tuples, reading some thousands at a time.

    Args:
        connection: An open connection.
        statement: The query.
    """
    result = connection.execute(statement)
    cursor = result.cursor
    assert cursor is not None  # a SELECT has one
    try:
        while rows := cursor.fetchmany(_AT_ONCE):
            yield from rows
    finally:
        result.close()


@dataclass(frozen=True, slots=True)
class PackedVerdicts:
    """The verdicts on at most ``MODES_AT_ONCE`` modes of a taxonomy, the first at ``start``.

    ``rows`` are (annotator, trace id, pass number, verdicts, labels). The two lowest bits of the
    verdicts are those of the first mode, encoded by ``CODES``; ``OPEN`` is no verdict. A pass may
    have two rows, one from labels and one from verdicts, which are joined with ``|``. ``labels`` is
    the number of labels on the whole trace, of any mode.
    """

    start: int
    rows: Sequence[tuple[str, str, int, int, int]]


def packed_verdicts(
    connection: Connection, taxonomy: str, slugs: Sequence[str], annotator: str | None = None
) -> tuple[PackedVerdicts, ...]:
    """Return the verdicts on modes in every pass; a mode with a label is present.

    Args:
        connection: An open connection.
        taxonomy: The taxonomy.
        slugs: The modes; there is one result for each ``MODES_AT_ONCE`` of them.
        annotator: The annotator; None for all.
    """
    labels = schema.labels
    verdicts = schema.verdicts
    codes = {value.value: code for value, code in CODES.items()}
    # A label on the whole trace has no first span.
    whole_trace_labels = func.sum(case((labels.c.first_key.is_(None), 1), else_=0))
    packed = list[PackedVerdicts]()
    for start in range(0, len(slugs), MODES_AT_ONCE):
        chosen = slugs[start : start + MODES_AT_ONCE]
        shifts = {slug: 1 << (BITS * index) for index, slug in enumerate(chosen)}
        present = {slug: index * CODES[VerdictValue.PRESENT] for slug, index in shifts.items()}
        # Several labels of one mode are one bit pattern, and patterns of two modes share no bit.
        present_bits = func.sum(distinct(case(present, value=labels.c.mode, else_=_NONE)))
        code = case(codes, value=verdicts.c.value, else_=OPEN)
        verdict_bits = func.sum(case(shifts, value=verdicts.c.mode, else_=_NONE) * code)
        where = taxonomy, annotator
        rows = (
            *_grouped(
                connection,
                labels,
                where,
                "trace_id taxonomy annotator",
                present_bits,
                whole_trace_labels,
            ),
            *_grouped(
                connection, verdicts, where, "annotator trace_id taxonomy", verdict_bits, literal(0)
            ),
        )
        packed.append(PackedVerdicts(start, rows))
    return tuple(packed)


def _grouped(
    connection: Connection,
    table: Table,
    where: tuple[str, str | None],
    order: str,
    *values: ColumnElement[int],
) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield one row for each pass.

    ``where`` is the taxonomy and the annotator, None for all annotators. ``order`` has the names of
    the columns of a key of the table, so that the database need not sort.
    """
    named = table.c
    statement = select(named.annotator, named.trace_id, named.pass_number, *values)
    # With a plain equality SQLite would sort in spite of the key.
    for column, value in zip((named.taxonomy, named.annotator), where, strict=True):
        if value is not None:
            statement = statement.where(column >= value, column <= value)
    return rows_of(
        connection,
        statement.group_by(*(named[name] for name in order.split()), named.pass_number),
    )
