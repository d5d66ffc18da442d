"""Statements that are written for very many rows at once, handed to SQLite as they are.

SQLAlchemy takes longer over the parameters of a row than SQLite takes to write it. So a statement
is put into SQL once, and its rows go to the driver as plain tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Executable
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import ClauseElement

from mast_tui.workspace.rows import Row


class Statement:
    """An insert, update or delete whose parameters are all in the rows that it is given."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement

    def write(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Run it for each of these rows, in their order.

        Args:
            connection: An open transaction.
            rows: The parameters by name.
        """
        text, values = self._in_sql
        connection.exec_driver_sql(text, list(map(values, rows)))

    @cached_property
    def _in_sql(self) -> tuple[str, itemgetter[Any]]:
        """Its text, and how its parameters are taken from a row; made when it is first needed."""
        assert isinstance(self._statement, ClauseElement)
        compiled: Any = self._statement.compile(dialect=sqlite.dialect())
        names = compiled.positiontup
        assert len(names) > 1  # of a single name an itemgetter makes no tuple
        return str(compiled), itemgetter(*names)
