"""A document that was read once, as a file of spans that can be read again by offset.

The file holds for each trace its texts, one line a span, and after them its rows, one line a span.
Behind them all stands what is known of the document and of each trace, and at the very end where
that begins: a file that was not written to its end is told by what is missing there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

import orjson

from mast_tui.traces.model import FileReport, Span, Trace

FORMAT: Final = 1
"""Changes with everything that changes in such files."""

BEFORE_TEXT: Final = b',"text":'
"""Parts a line of text: quotes within a JSON string are escaped, so it stands nowhere else."""

_END: Final = b"%020d end of mast-tui spans\n"
END_BYTES: Final = len(_END % 0)

Tell = Callable[[int, int], None]
"""Hears how many of how many spans have been written."""


def write_kept(file: IO[bytes], report: FileReport | None, tell: Tell) -> None:
    """Write what came of reading a document; None says that no reader knows it.

    All of its traces must be complete. ``OSError`` from the file system comes through.
    """
    traces = () if report is None else report.traces
    total, done, begin = sum(map(len, traces)), 0, 0
    heads = []
    for trace in traces:
        places = {trace.span(index).key: index for index in range(len(trace))}
        texts, rows = 0, bytearray()
        for index in range(len(trace)):
            span = trace.span(index)
            line = _text_line(span, trace.text(index))
            file.write(line)
            texts += len(line)
            rows += _row(span, places, len(line))
            done += 1
            tell(done, total)
        file.write(rows)
        heads.append(_head(trace, begin, texts, len(rows)))
        begin += texts + len(rows)
    known = json.dumps({"report": _about(report), "traces": heads}).encode()
    file.write(known)
    file.write(_END % begin)


def known_of(file: IO[bytes]) -> Mapping[str, Any] | None:
    """What a file written by ``write_kept`` tells of its document; None for any other file."""
    size = os.fstat(file.fileno()).st_size
    end = os.pread(file.fileno(), END_BYTES, max(0, size - END_BYTES))
    if len(end) < END_BYTES or not end[:20].isdigit() or _END % int(end[:20]) != end:
        return None
    begin = int(end[:20])
    if begin > size - END_BYTES:
        return None
    try:
        known = json.loads(os.pread(file.fileno(), size - END_BYTES - begin, begin))
    except (ValueError, RecursionError):
        return None
    return known if isinstance(known, dict) else None


def from_json(data: bytes) -> Any:
    """The value of a line; texts that are no Unicode are read too."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def _to_json(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode()


def _text_line(span: Span, text: str) -> bytes:
    return _to_json({"preview": span.preview, "whole": span.whole, "text": text}) + b"\n"


def _row(span: Span, places: Mapping[str, int], text_bytes: int) -> bytes:
    """All of a span but its preview; a parent that comes earlier by its index."""
    parent: object = span.parent
    if span.parent is not None and places.get(span.parent, span.index) < span.index:
        parent = places[span.parent]
    tokens = None
    if span.tokens is not None:
        tokens = [_exact(count) for count in (span.tokens.input, span.tokens.output)]
    row: Sequence[object] = (
        text_bytes,
        span.key,
        span.kind.value,
        span.role.value,
        span.agent,
        span.name,
        parent,
        span.start,
        span.end,
        span.status.value,
        tokens,
        None if span.place == span.key else span.place,
    )
    return _to_json(row) + b"\n"


def _exact(count: int | None) -> int | str | None:
    """A number as it can be read again: beyond 64 bits it would become a float."""
    return count if count is None or count < 1 << 63 else str(count)


def _head(trace: Trace, begin: int, texts: int, rows: int) -> dict[str, object]:
    return {
        "identity": asdict(trace.identity),
        "record": trace.record,
        "meta": asdict(trace.meta),
        "problems": [(problem.place, problem.message) for problem in trace.problems],
        "spawned": dict(trace.spawned),
        "total": trace.loaded.total,
        "spans": len(trace),
        "texts": (begin, texts),
        "rows": (begin + texts, rows),
    }


def _about(report: FileReport | None) -> dict[str, object] | None:
    if report is None:
        return None
    thread = report.thread
    return {
        "format": report.format,
        "problems": [(problem.place, problem.message) for problem in report.problems],
        "skipped": report.skipped,
        "failed": report.failed,
        "thread": None if thread is None else (thread.id, thread.parent),
    }


def path_of_part(kept: Path, process: int) -> Path:
    """Under which name a process writes such a file before it is whole."""
    return kept.with_name(f"{kept.name}.{process}.part")
