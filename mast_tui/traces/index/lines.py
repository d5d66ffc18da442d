"""A trace whose spans lie on lines of a file: indexed slice by slice, shown on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lru import Remembered
from mast_tui.traces.index.span_columns import Glances
from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.model import Loaded, Problem, Span, SpanKind, TraceIdentity, TraceMeta
from mast_tui.traces.preview import call_preview, preview
from mast_tui.traces.search.byte_prefilter import Sieve, Sifted

FIRST_SLICE: Final = 256 * 1024
"""How much of a file is read before its trace is handed out, in bytes."""

_CACHED_CHARS: Final = 8 << 20
_CACHED_PREVIEWS: Final = 8192
_PREVIEWED_BYTES: Final = 64 * 1024
"""How much is read for the preview of a text of many lines."""


class LineParser(Protocol):
    """Makes spans of the lines of one file, which it is given once and in order."""

    @property
    def table(self) -> SpanTable: ...
    @property
    def meta(self) -> TraceMeta: ...
    def feed(self, number: int, line: bytes, cut_off: bool, /) -> None:
        """Take line ``number``; ``cut_off`` marks a last line without its line feed."""

    def finish(self) -> None:
        """Every line has been given."""

    def text(self, data: bytes, /) -> str:
        """The text of the span that lies on the lines with this content.

        Of a span of many lines only the beginning may be asked for. ``OSError`` is raised where
        they hold no span: then the file has changed.
        """


class LineTrace:
    """A trace that knows its spans up to some line and reads each text when it is asked for.

    Line feeds end lines; nothing else does. A preview is made from the text when its span is first
    asked for. Where the file has gone or changed, ``text`` raises ``OSError``, and a note in
    brackets stands for the preview.
    """

    def __init__(
        self, identity: TraceIdentity, path: Path, index: LineIndex, parser: LineParser
    ) -> None:
        self._identity = identity
        self._path = path
        self._index = index
        self._parser = parser
        self._table = parser.table
        self._finished = False
        self._texts: Remembered[str] = Remembered(_CACHED_CHARS, len)
        self._at_hand = (-1, "")
        self._previews: Remembered[tuple[str, bool]] = Remembered(_CACHED_PREVIEWS)
        self._settle()

    @property
    def identity(self) -> TraceIdentity:
        """By which the trace is known again."""
        return self._identity

    @property
    def path(self) -> Path:
        """The file the trace is read from."""
        return self._path

    @property
    def record(self) -> int | None:
        """Always None: the file is one trace."""
        return None

    @property
    def meta(self) -> TraceMeta:
        """What is known of the run so far."""
        return self._parser.meta

    @property
    def problems(self) -> Sequence[Problem]:
        """What of the lines so far could not be read."""
        return tuple(self._table.problems)

    @property
    def spawned(self) -> Mapping[str, str]:
        """Where sub-agents were at work, so far."""
        return self._table.spawned

    @property
    def loaded(self) -> Loaded:
        """How far the index has come."""
        return Loaded(self._index.done, self._index.size, self._finished)

    def __len__(self) -> int:
        return len(self._table)

    def span(self, index: int, /) -> Span:
        """The span at ``index``; for its preview its line is read once that is looked at."""
        self._check(index)
        return self._table.span(index, partial(self._preview, index))

    def text(self, index: int, /) -> str:
        """The whole text of the span at ``index``, read from the file or from a small cache."""
        self._check(index)
        cached = self._texts.get(index)
        return self._read(index) if cached is None else cached

    def changed(self) -> str | None:
        """Say why the file is not what was read; None where it is, or just has grown."""
        return self._index.changed()

    def part_of(self, _index: int, text: str) -> str:
        """What of the text of its lines belongs to the span at ``index``: all of it."""
        return text

    def sift(self, sieve: Sieve | None, begin: int, limit: int, max_bytes: int, /) -> Sifted:
        """The texts that may hold what the sieve is for; one that cannot be read holds nothing.

        Rows are sifted with them wherever possible, as previews are not at hand.
        """
        lines = self._table.on_lines(self._index)
        words = None if sieve is None else sieve.by_word()
        try:
            if words is None:
                end, found = lines.sift(sieve, begin, limit, max_bytes)
            else:
                told = partial(self._table.rows_with, words)
                end, found = lines.sift(words, begin, limit, max_bytes, told)
        except OSError:
            return Sifted(limit, ())
        return Sifted(end, self._sifted(found), sieve is None or words is not None)

    def _sifted(self, found: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
        for index, data in found:
            try:
                text = self.part_of(index, self._parser.text(data))
            except OSError:
                continue
            self._at_hand = index, text  # its row is asked for next, if it is
            yield index, text
        self._at_hand = -1, ""

    def one_thread(self, first: int, end: int, /) -> bool:
        """Whether the keys of the spans from ``first`` up to ``end`` name one thread or none."""
        return self._table.one_thread(first, end)

    def glances(self, first: int, end: int, /) -> Glances:
        """What is known of the spans from ``first`` up to ``end`` (exclusive)."""
        return self._table.glances(first, end)

    def index_of(self, key: str, /) -> int | None:
        """The index of the span with this key, or None where no such span is known (yet)."""
        return self._table.index_of(key)

    def advance(self, max_bytes: int = 1 << 20, /) -> bool:
        """Read about ``max_bytes`` more; False when nothing is left.

        An error of the file system ends the trace where it stands and becomes a problem.
        """
        if self._finished:
            return False
        number = len(self._index)
        try:
            feed_lines(self._index, self._parser, max_bytes)
        except OSError as error:
            reason = error.strerror or str(error)
            self._table.complain(number + 1, f"the rest of the file cannot be read: {reason}")
            self._finish()
            return False
        self._settle()
        return not self._finished

    def _settle(self) -> None:
        if self._index.complete:
            self._finish()

    def _finish(self) -> None:
        self._parser.finish()
        self._finished = True

    def _read(self, index: int) -> str:
        data = self._index.read(*self._table.lines_of(index))
        text = self.part_of(index, self._parser.text(data))
        self._texts.add(index, text)
        return text

    def _preview(self, index: int) -> tuple[str, bool]:
        shown = self._previews.get(index)
        if shown is not None:
            return shown
        try:
            shown = self._preview_of_lines(index, *self._table.lines_of(index))
        except OSError as error:
            return preview(f"[cannot be read any more: {error.strerror or error}]")
        self._previews.add(index, shown)
        return shown

    def _preview_of_lines(self, index: int, first: int, last: int) -> tuple[str, bool]:
        """The preview of a span; of one of very many lines only the beginning is read."""
        begin, end = self._index.range_of(first, last)
        if last > first and end - begin > _PREVIEWED_BYTES:
            text = self._parser.text(self._index.read(first, last, _PREVIEWED_BYTES))
            if text.strip():
                return preview(text)[0], False
        number, text = self._at_hand
        if number != index:
            text = self._texts.get(index) or self._read(index)
        return self._preview_of(index, text)

    def _preview_of(self, index: int, text: str) -> tuple[str, bool]:
        call = self._table.kind_of(index) is SpanKind.TOOL_CALL
        return call_preview(text) if call else preview(text)

    def _check(self, index: int) -> None:
        if not 0 <= index < len(self._table):
            raise IndexError(f"no span {index} in a trace of {len(self._table)}")


def feed_lines(index: LineIndex, parser: LineParser, max_bytes: int) -> None:
    """Give the parser the next lines of the index, about ``max_bytes`` of them."""
    number = len(index) + 1
    lines = index.advance(max_bytes)
    feed, last = parser.feed, len(lines) if index.ends_open else -1
    for offset, line in enumerate(lines):
        feed(number + offset, line, offset + 1 == last)
