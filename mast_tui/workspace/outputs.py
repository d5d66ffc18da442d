"""The files that the outputs of a command must not overwrite."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.output_files import Outputs, ReplacementRules
from mast_tui.traces.io.packed import beginning
from mast_tui.traces.io.source import Source
from mast_tui.traces.readers import recognise
from mast_tui.traces.scan.label_files import label_file_kind
from mast_tui.traces.scan.outcomes import FILE_NAME
from mast_tui.traces.scan.sub_agents import sub_agents_of, thread_of
from mast_tui.workspace.paths import SIDE_FILES, find_workspace, workspace_files

if TYPE_CHECKING:
    from mast_tui.workspace.store import Workspace

_DATABASE: Final = b"SQLite format 3\0"
_JOURNALS: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
"""The first bytes of SQLite's journals: two kinds of write-ahead logs, and rollback journals."""

_BYTES_READ: Final = 4 << 20
"""The number of first bytes of a file in which a trace is recognised."""

_PAGE: Final = re.compile(rb"<!doctype html>|# [^\n]*\n\n- Id: ")
"""The beginning of a report or page. The trace on a page may look like a trace to a reader."""

_TEXT_TRACES: Final = (".log", ".txt")
_OWN_TEXTS: Final = (
    b"mast-tui lint: ",
    b"# Datasheet\n",
    b"# Codebook of ",
    b"\\section{Codebook of ",
    b"<View>",
    b"# Agreement\n",
    b"Table: Agreement of ",
    b"% Agreement: ",
    b"scope,mode,name,statistic,",
    b"statistic,scope,group,",
    b'{"statistic": "',
    b"scope,group,mode,name,statistic,",
    b"# Failure signatures",
    b"% Failure signatures",
    b"trace_id,annotator,mode,value,",
    b"trace_id,annotator,system,model,",
    b'{"record": "workspace", ',
    b'{"text": ',
    b'{"dataType": "CATEGORICAL", ',
    b'{"feedback_source": {"type": ',
    b'{"score_name": ',
    b'{\n "format": "mast-tui-gold"',
    b'[\n {\n  "data": {\n   "trace_id"',
    b'[\n {\n  "mas_name"',
)
"""The first bytes of this program's exports, which are not text traces."""


def marked(*marks: str) -> Callable[[bytes], bool]:
    """Return a function that tells whether the head of a file contains all of these texts."""
    return lambda head: all(mark.encode() in head for mark in marks)


def outputs_beside(workspace: Workspace, *, force: bool) -> Outputs:
    """Return the writer of a command's outputs, with the rules for existing files.

    Args:
        workspace: The workspace of the command. It and its traces are never overwritten.
        force: True to overwrite other files that look like a trace, a database or a foreign file.
    """
    return Outputs(ReplacementRules(never_replaced(workspace), reason_to_protect, force))


def never_replaced(workspace: Workspace) -> Callable[[Path], str | None]:
    """Return a function that gives the reason why a file is never replaced, or None.

    The function may be called after the workspace was closed.
    """
    workspace_files = database_files(workspace.path) if workspace.path is not None else ()
    rows = workspace.read_columns("traces", ("path",), list, not_null="path")
    traces = frozenset(_real_path(workspace.resolve_trace_path(path)) for (path,) in rows)

    def reason(target: Path) -> str | None:
        path = _real_path(target)
        if path in workspace_files:
            return "this file contains the labels"
        if path.exists() and (path in traces or _is_part_of_trace(path, traces)):
            return "this is a trace, and traces are never written to"
        return None

    return reason


def _is_part_of_trace(path: Path, traces: frozenset[Path]) -> bool:
    """Return whether a file is in the folder of a trace, or belongs to a sub-agent of a trace."""
    if not traces.isdisjoint(path.parents):
        return True
    thread = thread_of(path)
    if thread is None or thread.parent is None:
        return False
    # The file of a sub-agent is beside its trace or in a folder there.
    nearby_traces = (trace for trace in traces if trace.parent in path.parents)
    return any(path in map(_real_path, sub_agents_of(trace)) for trace in nearby_traces)


def reason_to_protect(target: Path) -> str | None:
    """Return the reason why a file is replaced only with ``--force``; None if there is none.

    Only the beginning of the file is read.

    Raises:
        OSError: The file cannot be read.
    """
    for suffix in SIDE_FILES:  # such as "workspace.db-wal" beside "workspace.db"
        database = target.with_name(target.name.removesuffix(suffix))
        if database != target and _begins_with_any(database, _DATABASE):
            return f"belongs to the database {database.name}"
    if not target.exists() or target.stat().st_size == 0:
        return None
    if _begins_with_any(target, _DATABASE, *_JOURNALS):
        return "looks like a database or its log"
    if target.name.casefold() == FILE_NAME:
        return "contains the outcomes of runs"
    return _reason_from_content(target)


def _reason_from_content(target: Path) -> str | None:
    """Return the reason to protect a file that looks like a trace or labels, or None."""
    source = _FileBeginning(target)
    if _PAGE.match(source.head):
        return None
    if (reader := recognise(source)) is not None:
        return f"looks like a trace ({reader.name})"
    if source.is_binary:
        return None
    if (labels := label_file_kind(source)) is not None:
        return f"looks like {labels.partition(';')[0]}"  # without the advice after the semicolon
    is_text = source.json is None or source.damage
    if target.suffix.lower() in _TEXT_TRACES and is_text:
        is_own_export = source.head.startswith(_OWN_TEXTS)
        return None if is_own_export else "looks like a trace (text)"
    return None


class _FileBeginning(Source):
    """A source with only the beginning of a file."""

    @cached_property
    def size(self) -> int:
        """The length in bytes; for a compressed file, of the unpacked beginning."""
        return self.path.stat().st_size if self.packing is None else len(self.data)

    @cached_property
    def data(self) -> bytes:
        """The beginning of the file, unpacked if it is packed."""
        if self.packing is not None:
            return beginning(self.path, _BYTES_READ)
        with self.path.open("rb") as file:
            return file.read(_BYTES_READ)


def _begins_with_any(path: Path, *marks: bytes) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(max(map(len, marks))).startswith(marks)


def reason_to_keep(paths: Sequence[Path], verb: str, target: Path) -> str | None:
    """Return the reason why a command on traces must not replace a file, or None.

    Args:
        paths: The traces of the command.
        verb: The command's action on the traces, such as ``judge``.
        target: The file.
    """
    if _real_path(target) in database_files(find_workspace(None)):
        return "this file contains the labels"
    if target.is_file() and any(path.is_file() and path.samefile(target) for path in paths):
        return f"this is a trace to {verb}, and traces are never overwritten"
    return None


def database_files(database: Path) -> frozenset[Path]:
    """Return the files of an SQLite database, with those that SQLite makes beside it."""
    real = _real_path(database)
    return frozenset(workspace_files(real))


def _real_path(path: Path | str) -> Path:
    return Path(os.path.realpath(Path(path).expanduser()))
