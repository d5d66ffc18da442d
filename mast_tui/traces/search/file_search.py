"""The search for a ``Query`` in the traces of files and folders.

Several processes search many files. The bytes of a file are searched first, and the file is read
only if it may match. Text that a reader adds, such as "scored by", is found only in files whose
bytes may match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from mast_tui.parallel import LocalProcesses, LostItem, Workers, cores
from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.file_places import missing_file_text, place_in_file
from mast_tui.traces.io.packed import TooBig, packing_of, unpack
from mast_tui.traces.io.regular_files import is_folder, is_regular, open_regular
from mast_tui.traces.model import FileReport, Span, SpanKind, SpanStatus, Trace, TraceMasks
from mast_tui.traces.scan.scanning import Scan, Unit
from mast_tui.traces.search.pattern import Pattern
from mast_tui.traces.search.text_search import Matcher, Needle, TextSearch, pattern_in

_TOOL_KINDS: Final = frozenset((SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT))


@dataclass(frozen=True, slots=True)
class Query:
    """The text to search for, and further conditions on a span.

    Attributes:
        text: The text; empty if only the conditions count.
        regex: True if the text is a regular expression.
        exact: True if case counts; it also counts if the text has a capital letter.
        tool: The name of the tool, in any case.
        agent: The name of the agent, in any case.
        kinds: Values of ``SpanKind``; empty for any kind.
        failed: True if only spans with an error match.
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
        """Return the query for a typed text; a text between two slashes is a regular expression."""
        pattern = pattern_in(text)
        return cls(text) if pattern is None else cls(pattern, regex=True)

    def matcher(self) -> Matcher | None:
        """Return the matcher of the text; None if the text is empty.

        Raises:
            InvalidPattern: The text is no regular expression.
        """
        if not self.text:
            return None
        if self.regex:
            return Pattern(self.text, exact=self.exact)
        return Needle(self.text, exact=self.exact)

    def accepts(self, span: Span) -> bool:
        """Return whether a span fulfils the conditions, without a check of the text."""
        is_of_tool = self.tool is None or (
            span.kind in _TOOL_KINDS and (span.name or "").casefold() == self.tool.casefold()
        )
        return (
            is_of_tool
            and (not self.failed or span.status is SpanStatus.ERROR)
            and (not self.kinds or span.kind in self.kinds)
            and (self.agent is None or span.agent.casefold() == self.agent.casefold())
        )


class Hit(NamedTuple):
    """A span that was found.

    Attributes:
        path: The path of the trace's file.
        record: The number of the trace in its file; None if the file is one trace.
        trace_id: The id of the trace.
        place: The location of the span, as ``file:line`` or ``file#/pointer``.
        span: The index of the span.
        key: The key of the span.
        kind: The value of its ``SpanKind``.
        agent: The name of its agent.
        name: The name of its tool.
        status: The value of its ``SpanStatus``.
        matches: The number of matches in the span.
        start: The start of the first match in the text; None if only the name or preview matches.
        end: The end of the first match in the text; None if ``start`` is None.
        preview: A part of the trace's text on one line.
        match_start: The start of the first match in the preview.
        match_end: The end of the first match in the preview.
        role: The value of its ``Role``.
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
    match_start: int
    match_end: int
    role: str


class NotSearched(NamedTuple):
    """A file that could not be searched to its end, and the reason."""

    path: str
    reason: str


class FileToSearch(NamedTuple):
    """A group of files that are searched together, and the size of the first one in bytes."""

    unit: Unit
    size: int


PREVIEW_BEFORE: Final = 40
"""The most code points of a preview before the match."""

PREVIEW_CHARS: Final = 160
"""The most code points of a preview."""

_BLOCK_BYTES: Final = 1 << 19
"""The bytes that are searched in one step, which fit into the cache of a core."""

_OVERLAP_BYTES: Final = 4096
_ADVANCE_BYTES: Final = 8 << 20
_ARCHIVE: Final = b"PK\x03\x04"


def files_to_search(paths: Iterable[Path]) -> Iterator[FileToSearch | NotSearched]:
    """Yield the files under paths that may have traces, each once, in the order of a scan.

    Args:
        paths: Files and folders; a file in this list is searched whatever its name is.
    """
    for step in Scan(paths).steps():
        if isinstance(step, Unit):
            if step.named and not step.path.exists():
                yield NotSearched(str(step.path), missing_file_text(step.path))
            else:
                yield FileToSearch(step, _size_of(step.path))
        elif isinstance(step, FileReport) and step.failed is not None:
            yield NotSearched(str(step.path), step.failed)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # reading the file reports it
        return 0


Findings = list[Hit | NotSearched]
"""Hits in reading order, and files that could not be searched."""


def search_file(
    unit: Unit, query: Query, matcher: Matcher | None, masks: TraceMasks | None = None
) -> Iterator[Findings]:
    """Yield the hits in all traces of one file in groups, while the file is read.

    Args:
        unit: The file with the files of its sub-agents, or the folder of a trial.
        query: The query.
        matcher: The matcher of the query; None if the query has no text.
        masks: Masks over the texts; masked text does not match.
    """
    try:
        prefilter = None if matcher is None else matcher.prefilter
        if prefilter is not None and not _may_match(unit, prefilter):
            return
        for report in Scan(()).read(unit):
            if report.failed is not None:
                yield [NotSearched(str(unit.path), report.failed)]
            for trace in report.traces:
                yield from _search_trace(trace.with_masks(masks), query, matcher)
    except OSError as error:
        yield [NotSearched(str(unit.path), error.strerror or str(error))]


def _may_match(unit: Unit, prefilter: Prefilter) -> bool:
    """Return whether a file of the unit may match."""
    paths = unit.path.rglob("*") if is_folder(unit.path) else (unit.path, *unit.members)
    return any(_file_may_match(part, prefilter) for part in paths if is_regular(part))


def _file_may_match(path: Path, prefilter: Prefilter) -> bool:
    """Return whether a file may match the prefilter; a file that is not plain text always may."""
    with open_regular(path) as file:
        block = file.read(_BLOCK_BYTES) or b""
        if packing_of(block) is not None:
            try:
                return prefilter.may_match(unpack(path).data)
            except TooBig:
                return True  # reading the file reports it
        if block.startswith(_ARCHIVE) or b"\0" in block:  # UTF-16 has zeros, too
            return True
        while not prefilter.may_match(block):
            next_block = file.read(_BLOCK_BYTES)
            if not next_block:
                return False
            # A match may begin in one block and end in the next.
            border = block[-_OVERLAP_BYTES:] + next_block[:_OVERLAP_BYTES]
            if prefilter.may_match(border):
                break
            block = next_block
    return True


def _search_trace(trace: Trace, query: Query, matcher: Matcher | None) -> Iterator[Findings]:
    """Read a trace to its end, and yield its hits in groups."""
    trace.spans.load_cached()
    groups = _all_spans(trace) if matcher is None else _matching_spans(trace, matcher)
    for group in groups:
        accepted = [(span, match_count) for span, match_count in group if query.accepts(span)]
        if accepted:
            yield [_hit_of_span(trace, span, count, matcher) for span, count in accepted]


def _matching_spans(trace: Trace, matcher: Matcher) -> Iterator[Iterable[tuple[Span, int]]]:
    """Yield the matching spans in groups, each span with its number of matches."""
    search = TextSearch(trace, matcher, 0)
    while (result := search.step(max_bytes=_BLOCK_BYTES)) is not None:
        yield ((trace.span(index), match_count) for index, match_count in result.hits)
        if result.waits:
            trace.advance(_ADVANCE_BYTES)


def _all_spans(trace: Trace) -> Iterator[Iterable[tuple[Span, int]]]:
    """Yield all spans in groups, each with 0 matches, because there is no text to find."""
    begin = 0
    has_more = True
    while has_more:
        has_more = trace.advance(_ADVANCE_BYTES)
        end = len(trace)
        yield ((trace.span(index), 0) for index in range(begin, end))
        begin = end


def _hit_of_span(trace: Trace, span: Span, match_count: int, matcher: Matcher | None) -> Hit:
    """Return the hit of a span, with an excerpt around the first match."""
    text = ""
    first_match: tuple[int, int] | None = None
    if matcher is not None:
        with suppress(OSError):  # the text cannot be read any more, but the hit counts
            text = trace.text(span.index)
            first_match = next(iter(matcher.match_ranges(text)), None)
    if first_match is None:
        shown_part = _excerpt_of_row(span, matcher)
    else:
        shown_part = excerpt(text, *first_match)
    start, end = first_match or (None, None)
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
        match_count,
        start,
        end,
        *shown_part,
        role=span.role.value,
    )


class Excerpt(NamedTuple):
    """A part of a text on one line, and the range of a match in it."""

    line: str
    match_start: int
    match_end: int


def _excerpt_of_row(span: Span, matcher: Matcher | None) -> Excerpt:
    """Return the excerpt of a span's preview around the first match in it."""
    match_ranges = () if matcher is None else matcher.match_ranges(span.preview)
    start, end = match_ranges[0] if match_ranges else (0, 0)
    return excerpt(span.preview, start, end)


def excerpt(text: str, start: int, end: int) -> Excerpt:
    """Return the part of a text around a match, with ``…`` in place of omitted text.

    Args:
        text: The whole text.
        start: The start of the match, in code points.
        end: The end of the match.
    """
    part_start = max(0, start - PREVIEW_BEFORE)
    # The part always has the first character of the match.
    part_end = min(len(text), max(part_start + PREVIEW_CHARS, start + 1))
    end = min(end, part_end)
    text_before = " ".join(text[part_start:start].split())
    match_text = " ".join(text[start:end].split())
    text_after = " ".join(text[end:part_end].split())
    if part_start and text[:part_start].strip():
        text_before = f"…{text_before}"
    # The text after the part may be huge, so only its beginning is examined.
    if text[part_end : part_end + PREVIEW_CHARS].strip():
        text_after = f"{text_after}…"
    if text_before and start and text[start - 1].isspace():
        text_before += " "
    if text_after and end < len(text) and text[end].isspace():
        text_after = f" {text_after}"
    match_start = len(text_before)
    line = text_before + match_text + text_after
    return Excerpt(line, match_start, match_start + len(match_text))


_MOST_FILES_AT_ONCE: Final = 8
_BYTES_AT_ONCE: Final = 8 << 20
"""The most bytes of all files in a batch. A bigger file is a batch of its own, and its hits are
reported during the search."""

_LEAST_BATCHES: Final = 8
"""The least number of batches for each process, so that hits are reported soon."""

_MOST_BATCHES_AHEAD: Final = 16
"""The most batches for each process that are searched before their turn, so that no process waits
for a big file."""


@dataclass(frozen=True, slots=True)
class SearchFiles:
    """A function that searches files, in a form that can be sent to other processes."""

    query: Query
    masks: TraceMasks | None = None

    def __call__(self, files: Sequence[FileToSearch]) -> Iterator[Findings]:
        """Yield the findings of each file in groups; an empty group marks the end of a file."""
        matcher = self.query.matcher()
        for file in files:
            yield from search_file(file.unit, self.query, matcher, self.masks)
            yield []


def list_files(paths: Sequence[Sequence[Path]]) -> list[list[FileToSearch | NotSearched]]:
    """Return the files under each of several sets of paths."""
    return [[*files_to_search(path_set)] for path_set in paths]


class HitBatch(NamedTuple):
    """The results of a search since the last batch. ``is_last`` is true at the end."""

    hits: Sequence[Hit]
    not_searched: Sequence[NotSearched]
    is_last: bool = False


class ManyFilesSearch:
    """A search through all files under paths, by several processes.

    One thread iterates over ``results``; it may call ``close`` at any time.

    Attributes:
        searched_count: The number of files whose results were all yielded.
        total: The number of files; 0 until they are listed.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        query: Query,
        workers: Workers | int | None = None,
        masks: TraceMasks | None = None,
    ) -> None:
        """Prepare the search, which ``results`` starts.

        Args:
            paths: Files and folders.
            query: The query.
            workers: The workers, or their number; by default one for each core.
            masks: Masks over the texts; masked text does not match.

        Raises:
            InvalidPattern: The text of the query is no regular expression.
        """
        query.matcher()  # raises an error of the pattern before the search begins
        self.searched_count = 0
        self.total = 0
        self._query = query
        self._masks = masks
        self._paths = tuple(paths)
        if not isinstance(workers, Workers):
            workers = LocalProcesses(workers or cores())
        self._workers = workers
        self._closed = False

    def close(self) -> None:
        """End the search and its processes."""
        self._closed = True
        self._workers.close()

    def results(self, patience: float | None = None) -> Iterator[Hit | NotSearched | None]:
        """Search the files, and yield their hits file by file, in the order of a scan.

        Args:
            patience: The seconds without a hit after which None is yielded; None for no limit.

        Raises:
            NoWorkers: All workers are gone.
        """
        try:
            yield from self._ordered_results(patience)
        finally:
            self.close()

    def batches(
        self, stopped: Callable[[], bool], most_hits: int, interval: float
    ) -> Iterator[HitBatch]:
        """Search the files, and yield the results in batches.

        The first hit is a batch of its own, so that it can be shown at once.

        Args:
            stopped: Returns whether the search should end.
            most_hits: The number of hits at which the search ends.
            interval: The seconds between two batches.
        """
        hits: list[Hit] = []
        not_searched: list[NotSearched] = []
        last_report = 0.0
        hit_count = 0
        for result in self.results(patience=interval):
            if stopped() or hit_count == most_hits:
                break
            if isinstance(result, Hit):
                hits.append(result)
                hit_count += 1
            elif result is not None:  # None says that the search has found nothing for a while
                not_searched.append(result)
            if hit_count == 1 or monotonic() - last_report > interval:
                yield HitBatch(hits, not_searched)
                hits = []
                not_searched = []
                last_report = monotonic()
        self.close()  # ends its processes
        yield HitBatch(hits, not_searched, is_last=True)

    def _ordered_results(self, patience: float | None) -> Iterator[Hit | NotSearched | None]:
        """Yield the hits of all files in order, and None after ``patience`` seconds without any."""
        files: list[FileToSearch | NotSearched] = []
        # A worker lists the files, so that None can be yielded meanwhile.
        for file_list in self._workers.map(list_files, [[self._paths]], patience):
            if file_list is None:
                yield None
            elif isinstance(file_list, LostItem):
                yield NotSearched(", ".join(map(str, self._paths)), file_list.reason)
            else:
                files = file_list
        self.total = len(files)
        searched_files = [file for file in files if isinstance(file, FileToSearch)]
        work = SearchFiles(self._query, self._masks)
        findings = self._workers.map(
            work, self._file_batches(searched_files), patience, _MOST_BATCHES_AHEAD
        )
        for file in files:
            results = [file] if isinstance(file, NotSearched) else _results_of(file, findings)
            for result in results:
                yield result
                if self._closed:
                    return
            self.searched_count += 1

    def _file_batches(self, files: Sequence[FileToSearch]) -> Iterator[list[FileToSearch]]:
        """Yield the files in batches of limited length and size."""
        # With few files, the batches are small enough to keep all workers busy.
        fair_count = len(files) // (_LEAST_BATCHES * self._workers.count)
        most_files = max(1, min(_MOST_FILES_AT_ONCE, fair_count))
        batch: list[FileToSearch] = []
        for file in files:
            bytes_with_file = sum(batched.size for batched in batch) + file.size
            if batch and (len(batch) == most_files or bytes_with_file > _BYTES_AT_ONCE):
                yield batch
                batch = []
            batch.append(file)
        if batch:
            yield batch


def _results_of(
    file: FileToSearch, findings: Iterator[Findings | LostItem | None]
) -> Iterator[Hit | NotSearched | None]:
    """Yield the results of one file; None for a group that did not come in time.

    An empty group marks the end of the file.
    """
    while True:
        group = next(findings)
        if isinstance(group, LostItem):
            yield NotSearched(str(file.unit.path), group.reason)
            return
        if group == []:
            return
        if group is None:
            yield None
        else:
            yield from group
