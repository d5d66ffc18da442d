"""Columns of tables as plain tuples, for figures over more rows than one makes objects of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Select, select

from mast_tui.workspace import schema

Row = tuple[Any, ...]
Taken = TypeVar("Taken")

_AT_ONCE: Final = 10_000


def read_columns(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    take: Callable[[Iterator[Row]], Taken],
    *,
    wanted: Mapping[str, str],
    given: str | None = None,
) -> Taken:
    """What ``take`` makes of the rows of a table, which come one by one and in no order.

    ``wanted`` are the values that columns must have, ``given`` a column that may not be null.
    Booleans are 0 and 1.
    """
    found = schema.metadata.tables[table]
    conditions = [found.c[name] == value for name, value in wanted.items()]
    if given is not None:
        conditions.append(found.c[given].is_not(None))
    return take(
        rows_of(connection, select(*(found.c[name] for name in columns)).where(*conditions))
    )


def rows_of(connection: Connection, statement: Select[Any]) -> Iterator[Row]:
    """The rows of a query as plain tuples, some thousands read at a time."""
    result = connection.execute(statement)
    cursor = result.cursor
    assert cursor is not None  # a SELECT has one
    try:
        while rows := cursor.fetchmany(_AT_ONCE):
            yield from rows
    finally:
        result.close()
