"""Columns of tables as plain tuples, for figures over very many rows.

The database packs the verdicts of a pass into the bits of a number, so that one row is read for
each pass and not one for each verdict.
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

_ROWS_PER_FETCH: Final = 10_000
BITS: Final = 2
"""The bits of a verdict. Present has all bits, so it wins if verdicts on one mode are joined."""

MODES_AT_ONCE: Final = 30
"""The most modes in one number: a whole number of SQLite has 63 bits."""

OPEN: Final = 0
_NONE: Final = literal(0, BigInteger())
"""No bit at all, of a kind of number that has room for all of them on a server too."""
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
        while rows := cursor.fetchmany(_ROWS_PER_FETCH):
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
    codes = {value.value: verdict_code for value, verdict_code in CODES.items()}
    whole_trace_count = func.sum(case((labels.c.first_key.is_(None), 1), else_=0))
    packed = list[PackedVerdicts]()
    for start in range(0, len(slugs), MODES_AT_ONCE):
        batch_slugs = slugs[start : start + MODES_AT_ONCE]
        factors = {slug: 1 << (BITS * index) for index, slug in enumerate(batch_slugs)}
        present = {slug: factor * CODES[VerdictValue.PRESENT] for slug, factor in factors.items()}
        # Several labels of one mode are one bit pattern, and patterns of two modes share no bit.
        present_bits = func.sum(distinct(case(present, value=labels.c.mode, else_=_NONE)))
        verdict_code = case(codes, value=verdicts.c.value, else_=OPEN)
        verdict_bits = func.sum(case(factors, value=verdicts.c.mode, else_=_NONE) * verdict_code)
        filters = taxonomy, annotator
        rows = (
            *_sums_by_pass(
                connection,
                labels,
                filters,
                "trace_id taxonomy annotator",
                present_bits,
                whole_trace_count,
            ),
            *_sums_by_pass(
                connection,
                verdicts,
                filters,
                "annotator trace_id taxonomy",
                verdict_bits,
                literal(0),
            ),
        )
        packed.append(PackedVerdicts(start, rows))
    return tuple(packed)


def _sums_by_pass(
    connection: Connection,
    table: Table,
    filters: tuple[str, str | None],
    order: str,
    *values: ColumnElement[int],
) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield one row for each pass, with these sums.

    ``filters`` are the taxonomy and the annotator, None for all. ``order`` names the columns of a
    key of the table, so that the database need not sort.
    """
    columns = table.c
    statement = select(columns.annotator, columns.trace_id, columns.pass_number, *values)
    # A range instead of an equality, as SQLite would sort for an equality.
    for column, value in zip((columns.taxonomy, columns.annotator), filters, strict=True):
        if value is not None:
            statement = statement.where(column >= value, column <= value)
    return rows_of(
        connection,
        statement.group_by(*(columns[name] for name in order.split()), columns.pass_number),
    )
