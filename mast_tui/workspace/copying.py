"""All rows of a workspace into another, as they are: between a file and a server, both ways."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, func, select

from mast_tui.errors import WorkspaceError
from mast_tui.workspace.database import Insertion, is_on_server
from mast_tui.workspace.schema import asked, metadata

_AT_ONCE: Final = 5000


def copy_rows(source: Connection, target: Connection) -> None:
    """Copy every row.

    Args:
        source: A connection that sees one state throughout.
        target: An open transaction in a workspace with nothing in it.

    Raises:
        WorkspaceError: There is something in the target.
    """
    for table in metadata.sorted_tables:
        if target.execute(select(table).limit(1)).first() is not None:
            raise WorkspaceError(
                f"there is something in the workspace to copy to (table {table.name}); nothing was "
                "copied. Name a new one, or bring both together with export and import"
            )
        insertion = Insertion(table)
        rows = source.execution_options(stream_results=True).execute(select(table))
        for batch in rows.partitions(_AT_ONCE):
            insertion.write(target, [tuple(row) for row in batch])
    last = target.execute(select(func.max(asked.c.id))).scalar()
    if is_on_server(target) and last is not None:
        # Answers that come later get later numbers.
        target.execute(select(func.setval(func.pg_get_serial_sequence("asked", "id"), last)))
