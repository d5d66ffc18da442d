"""Statements that are written for very many rows at once, handed to SQLite as they are.

SQLAlchemy takes longer over the parameters of a row than SQLite takes to write it, and Python's
driver as long over each call. So a statement is put into SQL once, its rows go to the driver as
plain tuples, and of those that are inserted many go in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Delete, Insert, Update
from sqlalchemy.dialects import sqlite

from mast_tui.workspace.events.rows import Row

_PARAMETERS: Final = 900
"""In one call at most; not every SQLite takes more than 999."""

Values = tuple[Any, ...]
"""Those of some columns of one row."""

_Taking = Callable[[Row], Values]


class Change:
    """An update or delete whose parameters are all in the rows that it is given."""

    def __init__(self, statement: Update | Delete) -> None:
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
    def _in_sql(self) -> tuple[str, _Taking]:
        """Its text, and how its parameters are taken from a row; made when it is first needed."""
        text, names = _in_sql(self._statement)
        return text, _taking(names)


class _ManyInSql(NamedTuple):
    """An insert's text for one row and for ``at_once`` rows, and how their values are taken."""

    one: str
    many: str
    at_once: int
    shared: _Taking
    own: _Taking


class Insertion:
    """An insert of the rows that it is given."""

    def __init__(self, statement: Insert, *, shared: Sequence[str] = ()) -> None:
        """Prepare it.

        Args:
            statement: What to do with each row.
            shared: Columns in which many rows that follow each other are alike; they are handed
                over once for all of them.
        """
        # The transaction is taken back anyhow where a row is refused, so the rows before it may
        # stay till then: else SQLite copies every page that many rows in one call will change.
        self._statement = statement.prefix_with("OR FAIL")
        self._shared = shared

    def write(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Insert these rows in their order.

        Args:
            connection: An open transaction, which has to be taken back where this raises.
            rows: The values by column.
        """
        _, _, _, shared, own = self._in_sql
        self.write_values(connection, [(shared(row), own(row)) for row in rows])

    def write_values(self, connection: Connection, rows: Iterable[tuple[Values, Values]]) -> None:
        """Insert rows in their order, of which the values have been taken already.

        Args:
            connection: An open transaction, which has to be taken back where this raises.
            rows: The values of the shared columns, in the order in which they were named, and
                those of the others, in the order of the statement.
        """
        one, many, at_once, *_ = self._in_sql
        few = list[Values]()
        for common, alike in groupby(rows, key=itemgetter(0)):
            left = [own for _, own in alike]
            whole = len(left) - len(left) % at_once
            if whole and few:
                connection.exec_driver_sql(one, few)
                few = []
            for start in range(0, whole, at_once):
                together = chain.from_iterable(left[start : start + at_once])
                connection.exec_driver_sql(many, (*common, *together))
            few += [(*common, *own) for own in left[whole:]]
        if few:
            connection.exec_driver_sql(one, few)

    @cached_property
    def _in_sql(self) -> _ManyInSql:
        text, names = _in_sql(self._statement)
        own = [name for name in names if name not in self._shared]
        at_once = (_PARAMETERS - len(self._shared)) // len(own)
        before, marks, after = text.partition(f"({', '.join('?' * len(names))})")
        assert marks

        def of_rows(count: int) -> str:
            numbers = {name: number for number, name in enumerate(self._shared, 1)}
            listed = list[str]()
            for row in range(count):
                first = len(self._shared) + row * len(own) + 1
                numbers |= {name: number for number, name in enumerate(own, first)}
                listed.append(f"({', '.join(f'?{numbers[name]}' for name in names)})")
            return before + ", ".join(listed) + after

        return _ManyInSql(
            of_rows(1), of_rows(at_once), at_once, _taking(self._shared), _taking(own)
        )


def _in_sql(statement: Insert | Update | Delete) -> tuple[str, Sequence[str]]:
    """The text of a statement, and the names of its parameters in their order."""
    compiled: Any = statement.compile(dialect=sqlite.dialect())
    return str(compiled), compiled.positiontup


def _taking(names: Sequence[str]) -> _Taking:
    if not names:
        return lambda row: ()
    assert len(names) > 1  # of a single name an itemgetter makes no tuple
    return itemgetter(*names)
