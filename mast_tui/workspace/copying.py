"""The copy of all rows of a workspace into another: from a file to a server, and back."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, func, select

from mast_tui.errors import WorkspaceError
from mast_tui.workspace.database import Insertion, Values, is_on_server, traces_folder_of
from mast_tui.workspace.paths import found_trace_path, stored_trace_path
from mast_tui.workspace.schema import asked, metadata, traces

_AT_ONCE: Final = 5000
_PATH: Final = list(traces.c.keys()).index("path")


def copy_rows(source: Connection, target: Connection) -> None:
    """Copy all rows of a workspace into an empty one.

    Args:
        source: A connection that sees one state throughout.
        target: An open transaction in an empty workspace.

    Raises:
        WorkspaceError: The target is not empty.
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
            values = [tuple(row) for row in batch]
            if table is traces:
                values = [_with_target_path(source, target, row) for row in values]
            insertion.write(target, values)
    last = target.execute(select(func.max(asked.c.id))).scalar()
    if is_on_server(target) and last is not None:
        # Later answers must get higher numbers.
        target.execute(select(func.setval(func.pg_get_serial_sequence("asked", "id"), last)))


def _with_target_path(source: Connection, target: Connection, row: Values) -> Values:
    """Return a row of ``traces`` with the same file's path from the folder of the target."""
    path = row[_PATH]
    if path is not None:
        trace_path = found_trace_path(path, traces_folder_of(source))
        path = stored_trace_path(trace_path, traces_folder_of(target))
    return (*row[:_PATH], path, *row[_PATH + 1 :])
