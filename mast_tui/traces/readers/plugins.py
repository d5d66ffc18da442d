"""Readers of other packages, which are entry points of the group ``mast_tui.readers``.

If such a reader fails, the file gets a remark with the error and the package's name.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Trace
from mast_tui.traces.readers.base import Reader

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "mast_tui.readers"

_UNKNOWN_FILES: Final = {
    "words.txt": b"Nothing happened.\n",
    "record.json": b'{"numbers": [1, 2]}',
    "records.jsonl": b'{"number": 1}\n{"number": 2}\n',
    "chat.json": b'[{"role": "user", "content": "Hello."}]',
    "bytes": bytes(range(256)),
}
"""Files without a mark of any format. A reader that recognises one would recognise any file."""

_ERROR_CHARS: Final = 300


class PluginReader:
    """A reader of another package whose errors are caught.

    ``name`` is that of the entry point. A reader that cannot be imported, or that recognises
    unknown formats, is not used.
    """

    key_scheme: Final = 1

    def __init__(self, entry: EntryPoint) -> None:
        self.name = entry.name
        package = entry.value if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
        self._label = f"reader {entry.name} of {package}"
        self._reader: Reader | None = None
        self._fault = ""
        try:
            loaded = entry.load()
            reader: Reader = loaded() if isinstance(loaded, type) else loaded
            wrong_file = _wrongly_recognised_file(reader)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plug-in may raise anything
            self._fault = f"cannot be used: {_error_text(error)}"
            return
        if wrong_file is not None:
            self._fault = f"is not used: it wrongly recognises {wrong_file!r}"
        else:
            self._reader = reader

    def recognises(self, source: Source) -> bool:
        """Return whether the reader recognises the file; add a remark to the file if it fails."""
        if self._reader is None:
            self._add_remark(source, self._fault)
            return False
        try:
            return bool(self._reader.recognises(source))
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            self._add_remark(source, f"failed to check this file: {_error_text(error)}")
            return False

    def read(self, source: Source) -> FileReport:
        """Return the report of the plug-in; a failed report if it fails or finds no traces."""
        assert self._reader is not None
        try:
            report = self._reader.read(source)
            if not isinstance(report, FileReport):
                raise TypeError(f"expected a FileReport, found {type(report).__name__}")
            if not all(isinstance(trace, Trace) for trace in report.traces):
                raise TypeError("its traces are not Trace objects")
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            return self._failure_report(source, f"failed to read this file: {_error_text(error)}")
        if report.format is None or not report.traces:
            reason = report.failed or report.skipped or "it found no trace"
            return self._failure_report(
                source, f"recognised this file but did not read it: {reason}"
            )
        return report

    def _failure_report(self, source: Source, reason: str) -> FileReport:
        """Return the report of a failure, and add a remark to the file."""
        self._add_remark(source, reason)
        return FileReport(source.path, failed=f"{self._label} {reason}")

    def _add_remark(self, source: Source, reason: str) -> None:
        remark = Problem(self._label, reason)
        if remark not in source.remarks:
            source.remarks.append(remark)


@cache
def plugins() -> tuple[PluginReader, ...]:
    """Return the readers of all installed packages, sorted by package and imported only once."""
    if not any(reader_metadata_folders()):
        return ()
    # This import is slow, and few users have plug-ins.
    from importlib.metadata import entry_points

    def sort_key(entry: EntryPoint) -> tuple[str, str]:
        return "" if entry.dist is None else entry.dist.name, entry.name

    return tuple(map(PluginReader, sorted(entry_points(group=GROUP), key=sort_key)))


def reader_metadata_folders() -> Iterator[os.DirEntry[str]]:
    """Yield the metadata folders of the installed packages with readers; no package is imported."""
    mark = GROUP.encode()
    for folder in dict.fromkeys(sys.path):
        try:
            entries = list(os.scandir(folder or "."))
        except OSError:
            continue  # a missing folder, or an archive
        for entry in entries:
            if entry.name.endswith((".dist-info", ".egg-info")):
                # FileIO opens a file fastest, and each start reads those of some hundred packages.
                try:
                    with FileIO(f"{entry.path}/entry_points.txt") as entry_points_file:
                        has_readers = mark in entry_points_file.readall()
                except OSError:
                    continue  # most packages have no entry points
                if has_readers:
                    yield entry


def _wrongly_recognised_file(reader: Reader) -> str | None:
    """Return the name of a test file that a reader wrongly recognises."""
    with tempfile.TemporaryDirectory(prefix="mast-tui-") as folder:
        for name, data in _UNKNOWN_FILES.items():
            path = Path(folder, name)
            path.write_bytes(data)
            if reader.recognises(Source(path)):
                return name
    return None


def _error_text(error: BaseException) -> str:
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}"[:_ERROR_CHARS] if message else type(error).__name__
