"""Search of all traces of files and folders: the files there are, and the hits in one.

``search_processes`` runs it. A file is looked at as bytes first, and read only where it may match
the ``Query``; each match is a ``Hit``. Text that a reader adds itself,
such as "scored by" before a scorer's name, is found only in files that are read for another reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.file_places import place_in_file
from mast_tui.traces.io.named_paths import only_records
from mast_tui.traces.io.packed import TooBig, packing_of, unpack
from mast_tui.traces.io.regular_files import is_folder, is_regular, open_regular
from mast_tui.traces.io.remote import trace_path
from mast_tui.traces.io.url_secrets import ADDRESSES
from mast_tui.traces.library import read_file
from mast_tui.traces.model import FileReport, Span, SpanKind, SpanStatus, Trace
from mast_tui.traces.scan.file_reader import read_run
from mast_tui.traces.scan.scanning import Scan, Unit
from mast_tui.traces.search.pattern import Pattern
from mast_tui.traces.search.text_search import Matcher, Needle, TextSearch, pattern_in

_TOOL_KINDS: Final = frozenset((SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT))


@dataclass(frozen=True, slots=True)
class Query:
    """The text to search for, and further conditions on a span.

    Without a text every span matches that fulfils the conditions. Small letters match capitals too;
    with a capital in the text, or ``exact``, case counts. ``kinds`` are values of ``SpanKind``,
    none of them means any; ``tool`` and ``agent`` are names, in which case does not count.
    """

    text: str = ""
    regex: bool = False
    exact: bool = False
    tool: str | None = None
    agent: str | None = None
    kinds: tuple[str, ...] = ()
    failed: bool = False

    @classmethod
    def typed(cls, text: str) -> Query:
        """Return the query for typed text: a text, or a regular expression between two slashes."""
        pattern = pattern_in(text)
        return cls(text) if pattern is None else cls(pattern, regex=True)

    def matcher(self) -> Matcher | None:
        """Make what looks for the text; None if there is none.

        Raises:
            InvalidPattern: The text is no regular expression.
        """
        if not self.text:
            return None
        return (Pattern if self.regex else Needle)(self.text, exact=self.exact)

    def accepts(self, span: Span) -> bool:
        """Return whether a span fulfils all conditions but the text."""
        if self.failed and span.status is not SpanStatus.ERROR:
            return False
        if self.kinds and span.kind not in self.kinds:
            return False
        if self.agent is not None and span.agent.casefold() != self.agent.casefold():
            return False
        if self.tool is None:
            return True
        return span.kind in _TOOL_KINDS and (span.name or "").casefold() == self.tool.casefold()


class Hit(NamedTuple):
    """A span that was found.

    ``path`` and ``record`` name the trace, ``span`` counts from 0; ``place`` is its location, as
    ``file:line`` or ``file#/pointer``. ``matches`` is the number of matches in the span;
    ``start`` and ``end`` of the first are code points of the span's text, None if only its name
    or its row has it. ``preview`` is foreign text on one line, of which the match is what lies from
    ``lit`` to ``unlit``.
    """

    path: str
    record: int | None
    trace_id: str
    place: str
    span: int
    key: str
    kind: str
    agent: str
    name: str | None
    status: str
    matches: int
    start: int | None
    end: int | None
    preview: str
    lit: int
    unlit: int


class NotSearched(NamedTuple):
    """A file in which not everything could be looked at, and why."""

    path: str
    reason: str


class FileToSearch(NamedTuple):
    """A file, or a folder that holds one run.

    ``members`` are the files of its sub-agents, ``size`` is how many bytes it has itself, and
    ``records`` are the numbers of the traces that are searched; None for all.
    """

    path: str
    members: tuple[str, ...] = ()
    named: bool = False
    size: int = 0
    records: frozenset[int] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process reads the file, and needs the user and query of its URL.
        addresses = (ADDRESSES.whole(self.path), tuple(map(ADDRESSES.whole, self.members)))
        return _sent_file, (*addresses, self.named, self.size, self.records)


def _sent_file(
    address: str,
    members: tuple[str, ...],
    named: bool,
    size: int,
    records: frozenset[int] | None,
) -> FileToSearch:
    public = ADDRESSES.public
    return FileToSearch(public(address), tuple(map(public, members)), named, size, records)


PREVIEW_BEFORE: Final = 40
"""The code points of a text that are shown before a match."""

PREVIEW_CHARS: Final = 160
"""The code points that are shown in all."""

_BLOCK: Final = 1 << 19
"""Bytes that are searched at once: they fit into the cache of a core."""

_OVERLAP: Final = 4096
_ADVANCED: Final = 8 << 20
_ARCHIVE: Final = b"PK\x03\x04"


def files_to_search(paths: Iterable[Path]) -> Iterator[FileToSearch | NotSearched]:
    """Yield the files under paths in which traces may be, each once, in the order of a scan.

    Args:
        paths: Files, which are searched whatever they are called, and folders.
    """
    for step in Scan(paths).steps():
        if isinstance(step, Unit):
            path = str(step.path)
            members = tuple(map(str, step.members))
            if step.named and not step.path.exists():
                reason = "no such file or folder; name a trace or a folder of them"
                yield NotSearched(path, reason)
            else:
                yield FileToSearch(
                    path,
                    members,
                    named=step.named,
                    size=_size_of(step.path),
                    records=step.records,
                )
        elif isinstance(step, FileReport) and step.failed is not None:
            yield NotSearched(str(step.path), step.failed)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # reading the file reports it
        return 0


Findings = list[Hit | NotSearched]
"""Hits in reading order."""


def search_file(file: FileToSearch, query: Query, matcher: Matcher | None) -> Iterator[Findings]:
    """Look for something in all traces of one file.

    Args:
        file: The file.
        query: The query.
        matcher: The matcher of the query, the same for all files.

    Returns:
        What is found in it, some at a time, as it is found.
    """
    try:
        prefilter = None if matcher is None else matcher.prefilter
        if prefilter is not None and not _may_hold(file, prefilter):
            return
        path = trace_path(file.path)
        if is_folder(path):
            report = read_file(path, named=file.named)
        else:
            report = read_run(path, [*map(trace_path, file.members)], named=file.named)
        if file.records is not None:
            report = only_records(report, file.records)
        if report.failed is not None:
            yield [NotSearched(file.path, report.failed)]
        for trace in report.traces:
            yield from _search_trace(trace, query, matcher)
    except OSError as error:
        yield [NotSearched(file.path, error.strerror or str(error))]


def _may_hold(file: FileToSearch, prefilter: Prefilter) -> bool:
    path = trace_path(file.path)
    parts = path.rglob("*") if is_folder(path) else (path, *map(trace_path, file.members))
    return any(_any_in(part, prefilter) for part in parts if is_regular(part))


def _any_in(path: Path, prefilter: Prefilter) -> bool:
    """Return whether a file may match the prefilter; a file that is not plain text always may."""
    with open_regular(path) as file:
        block = file.read(_BLOCK) or b""
        if packing_of(block) is not None:
            try:
                return prefilter.any_in(unpack(path).data)
            except TooBig:
                return True  # reading the file reports it
        if block.startswith(_ARCHIVE) or b"\0" in block:  # UTF-16 has zeros, too
            return True
        while not prefilter.any_in(block):
            more = file.read(_BLOCK)
            if not more:
                return False
            if prefilter.any_in(block[-_OVERLAP:] + more[:_OVERLAP]):
                break
            block = more
    return True


def _search_trace(trace: Trace, query: Query, matcher: Matcher | None) -> Iterator[Findings]:
    trace.spans.load_cached()
    for spans in _all_spans(trace) if matcher is None else _matches(trace, matcher):
        accepted = [(span, times) for span, times in spans if query.accepts(span)]
        if accepted:
            yield [_hit(trace, span, times, matcher) for span, times in accepted]


def _matches(trace: Trace, matcher: Matcher) -> Iterator[Iterable[tuple[Span, int]]]:
    """Yield the spans that match, and the number of matches in each."""
    search = TextSearch(trace, matcher, 0)
    while (result := search.step(max_bytes=_BLOCK)) is not None:
        yield ((trace.span(index), times) for index, times in result.hits)
        if result.waits:
            trace.advance(_ADVANCED)


def _all_spans(trace: Trace) -> Iterator[Iterable[tuple[Span, int]]]:
    begin = 0
    while begin < len(trace) or trace.advance(_ADVANCED):
        end = len(trace)
        yield ((trace.span(index), 0) for index in range(begin, end))
        begin = end


def _hit(trace: Trace, span: Span, times: int, matcher: Matcher | None) -> Hit:
    """Return the hit of a span, with an excerpt around the first match."""
    places: Sequence[tuple[int, int]] = ()
    text = ""
    try:
        if matcher is not None:
            text = trace.text(span.index)
            places = matcher.places(text)
    except OSError:  # it was found all the same
        places = ()
    start, end = places[0] if places else (None, None)
    if start is not None and end is not None:
        preview = excerpt(text, start, end)
    else:
        preview = _row_excerpt(span, matcher)
    return Hit(
        str(trace.path),
        trace.record,
        trace.identity.trace_id,
        str(place_in_file(trace.path, span.place)),
        span.index,
        span.key,
        span.kind.value,
        span.agent,
        span.name,
        span.status.value,
        times,
        start,
        end,
        *preview,
    )


def _row_excerpt(span: Span, matcher: Matcher | None) -> tuple[str, int, int]:
    """Return the excerpt of a span whose text does not match: from its row."""
    places = () if matcher is None else matcher.places(span.preview)
    if places:
        return excerpt(span.preview, *places[0])
    return excerpt(span.preview, 0, 0)


def excerpt(text: str, start: int, end: int) -> tuple[str, int, int]:
    """Cut a text around a match in it, on one line.

    Args:
        text: The whole text.
        start: The beginning of the match, in code points.
        end: The end of the match.

    Returns:
        The line, with ``…`` where something is left out, and the range of the match in it.
    """
    first = max(0, start - PREVIEW_BEFORE)
    last = min(len(text), max(first + PREVIEW_CHARS, start + 1))
    end = min(end, last)
    text_before = " ".join(text[first:start].split())
    match_text = " ".join(text[start:end].split())
    text_after = " ".join(text[end:last].split())
    if first and text[:first].strip():
        text_before = f"…{text_before}"
    if text[last : last + PREVIEW_CHARS].strip():
        text_after = f"{text_after}…"
    if text_before and start and text[start - 1].isspace():
        text_before += " "
    if text_after and end < len(text) and text[end].isspace():
        text_after = f" {text_after}"
    return (
        text_before + match_text + text_after,
        len(text_before),
        len(text_before) + len(match_text),
    )
