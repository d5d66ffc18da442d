"""The rows of a Parquet table as files: ``parquet://ID::s3://bucket/runs.parquet``.

A table of traces has a row for each trace, with its ``id`` and its ``content``, as in a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any, ClassVar

import fsspec
import pyarrow.parquet

from mast_tui.traces.io.archive_files import file_system
from mast_tui.traces.keys import UniqueKeys

ID = "id"
CONTENT = "content"
_BATCH_ROWS = 16


class TableRows(fsspec.AbstractFileSystem):  # type: ignore[misc] # it has no types
    """The rows of a table as files, named by their ids; a repeated id gets ``~2`` and so on.

    A row without an id is named by its number. Rows are read forwards, in batches, because a row
    group may be larger than memory.
    """

    protocol: ClassVar[str] = "parquet"
    root_marker: ClassVar[str] = ""
    cachable: ClassVar[bool] = False

    def __init__(
        self,
        fo: str,
    ) -> None:
        """Open a table.

        Args:
            fo: The path or URL of the table; fsspec chose the name of the argument.
        """
        super().__init__()
        files, path = file_system(fo)
        self._table = pyarrow.parquet.ParquetFile(files.open(path, "rb"))
        self._state = files.ukey(path)
        self._position_by_name: dict[str, tuple[int, int]] = {}
        names = UniqueKeys()
        for group in range(self._table.num_row_groups):
            ids = self._table.read_row_group(group, columns=[ID])[ID].to_pylist()
            for row, row_id in enumerate(ids):
                row_number = len(self._position_by_name) + 1
                name = names.take(str(row_id or "").strip("/") or f"row-{row_number}")
                self._position_by_name[name] = (group, row)
        self._group = -1  # the group of rows that is being read
        self._next_row = 0
        self._batches: Iterator[Any] = iter(())
        self._batch: tuple[int, list[Any]] = (0, [])

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return fsspec's facts of a row without reading it, or of the whole table as a folder."""
        name = self._strip_protocol(path)
        if not name:
            return {"name": "", "type": "directory", "size": 0}
        if name not in self._position_by_name:
            raise FileNotFoundError(path)
        state = f"{self._state} {self._position_by_name[name]}"
        return {"name": name, "type": "file", "size": None, "checksum": state}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """Return the facts or names of all rows.

        Args:
            path: Ignored, because a table has no folders.
            detail: True for the facts of the rows; else their names.
        """
        return [self.info(name) if detail else name for name in self._position_by_name]

    def find(self, path: str, *_: Any, **__: Any) -> list[str]:
        """Return the names of all rows."""
        return [*self._position_by_name]

    def _open(self, path: str, *_: Any, **__: Any) -> BytesIO:
        content = self._content_of_row(*self._position_by_name[self._strip_protocol(path)])
        return BytesIO(content.encode() if isinstance(content, str) else bytes(content or b""))

    def _content_of_row(self, group: int, row: int) -> Any:
        """Return the content of a row of a row group, and keep its batch for the next rows.

        If the row is before the kept batch, its group is read again from the beginning.
        """
        batch_begin, batch = self._batch
        if group != self._group or row < batch_begin:
            self._group = group
            self._next_row = 0
            batch = []
            self._batches = self._table.iter_batches(_BATCH_ROWS, [group], [CONTENT])
        while row >= self._next_row:
            batch_begin = self._next_row
            batch = next(self._batches)[CONTENT].to_pylist()
            self._next_row += len(batch)
        self._batch = (batch_begin, batch)
        return batch[row - batch_begin]


def columns_of(path: str) -> frozenset[str]:
    """Return the names of the columns of a Parquet file.

    Raises:
        OSError: The file cannot be read.
        pyarrow.ArrowException: The file is no Parquet file.
    """
    files, inside = file_system(path)
    with files.open(inside, "rb") as file:
        return frozenset(pyarrow.parquet.read_schema(file).names)
