"""The search for text in all traces of the library, and the list of hits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import cpu_count
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from mast_tui.columns import padded, shortened
from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Trace
from mast_tui.ui.actions.registry import hint_while_typing
from mast_tui.ui.context import ShowTrace, TraceLocation
from mast_tui.ui.services.trace_catalog import Catalog
from mast_tui.ui.trace_view.timeline import kind_label
from mast_tui.ui.widgets.bars import TextLine
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import counted, last_cells, name_within, names_under

if TYPE_CHECKING:
    from mast_tui.traces.search.file_search import (
        Hit,
        HitBatch,
        ManyFilesSearch,
        NotSearched,
        Query,
    )
    from mast_tui.ui.library.screen import LibraryScreen

MOST_HITS: Final = 10_000
"""The number of hits at which a search ends."""

REPORT_INTERVAL: Final = 0.1
"""Seconds between updates of the list. The first hit is shown at once."""

NAME_CELLS: Final = 30
"""The most cells of the name of a trace."""

KIND_CELLS: Final = 9


class HitRow(NamedTuple):
    """A hit in a trace of the library."""

    trace_id: str
    name: str
    hit: Hit

    @property
    def short_name(self) -> str:
        """The name of the trace's file, safe to display."""
        _, _, file_name = self.name.rpartition("/")
        return one_line(file_name)


class HitList(VirtualLines):
    """The spans with hits, in the order of the files."""

    css_prefix = "hit-list"
    css_parts = ("cursor", "name", "quiet", "failed", "match")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: list[HitRow] = []
        self._name_width = 0
        self._number_width = 0

    @property
    def row_count(self) -> int:
        """The number of hits."""
        return len(self.rows)

    @property
    def row(self) -> HitRow | None:
        """The hit under the cursor, or None."""
        return self.rows[self.cursor] if self.rows else None

    def begin(self) -> None:
        """Remove all hits."""
        self.rows = []
        self._name_width = 0
        self._number_width = 0
        self.cursor = 0
        self.rows_changed()
        self.scroll_to(y=0, animate=False, force=True)

    def add(self, rows: Sequence[HitRow]) -> None:
        """Append hits."""
        previous_count = len(self.rows)
        self.rows += rows
        name_width = max(cell_len(row.short_name) for row in rows)
        number_width = max(len(f"{row.hit.span + 1}") for row in rows)
        if name_width <= self._name_width and number_width <= self._number_width:
            self.rows_grown(previous_count)
        else:
            self._name_width = max(name_width, self._name_width)
            self._number_width = max(number_width, self._number_width)
            self.rows_changed()

    def render_row(self, row: int, width: int) -> Strip:
        """Draw a hit: the trace, the span's number and kind, and the text around the match.

        Args:
            row: The position of the row.
            width: The cells of the row.
        """
        hit_row = self.rows[row]
        hit = hit_row.hit
        base = self.row_style(row)
        name_cells = min(self._name_width, NAME_CELLS, width // 3)
        name = set_cell_size(name_within(hit_row.short_name, name_cells), name_cells)
        repeats_trace = row > 0 and self.rows[row - 1].trace_id == hit_row.trace_id
        name_style = self._part("quiet" if repeats_trace else "name")
        number = f"#{hit.span + 1}".rjust(self._number_width + 1)
        kind = kind_label(SpanKind(hit.kind), Role(hit.role), SpanStatus(hit.status))
        if hit.name is not None and hit.start is None:  # only the name matches
            kind = one_line(hit.name)
        segments = [
            Segment("▌" if row == self.cursor else " ", base),
            Segment(name, base + name_style),
            Segment(f" {number} ", base + self._part("quiet")),
            Segment("✗" if hit.status == SpanStatus.ERROR else " ", base + self._part("failed")),
            Segment(f"{padded(kind, KIND_CELLS)} ", base + self._part("quiet")),
        ]
        preview_width = width - sum(cell_len(segment.text) for segment in segments)
        segments += self._preview_segments(hit, preview_width, base)
        return Strip(segments).adjust_cell_length(width, base)

    def _preview_segments(self, hit: Hit, width: int, base: Style) -> list[Segment]:
        """Return the part of the preview around the match, cut to a width."""
        text_before = one_line(hit.preview[: hit.match_start])
        match = one_line(hit.preview[hit.match_start : hit.match_end])
        text_after = one_line(hit.preview[hit.match_end :])
        width_before = max(width // 4, width - cell_len(match) - cell_len(text_after))
        if cell_len(text_before) > width_before:
            text_before = "…" + last_cells(text_before, max(0, width_before - 1))
        match = shortened(match, width - cell_len(text_before))
        text_after = shortened(text_after, width - cell_len(text_before) - cell_len(match))
        return [
            Segment(text_before, base),
            Segment(match, base + self._part("match")),
            Segment(text_after, base),
        ]


class _RunningSearch(Struct):
    """A search. Its hits replace the list of traces until it is left.

    Attributes:
        needle: The text to search for.
        query: The text as a query.
        files: The search in the files.
        name_of: Returns the name of a trace.
        trace_id_by_place: The ids of the listed traces, by path and number of the record.
        change_count: The number of the catalog's changes in ``trace_id_by_place``.
        unlisted: The hits in traces that are not listed, or not yet.
        not_searched: The files that could not be searched.
        done: True once all files were searched.
    """

    needle: str
    query: Query
    files: ManyFilesSearch
    name_of: Callable[[Trace], str]
    trace_id_by_place: dict[tuple[str, int | None], str] = {}
    change_count: int = 0
    unlisted: list[Hit] = []
    not_searched: list[NotSearched] = []
    done: bool = False

    @property
    def quoted_needle(self) -> str:
        """The searched text, cut, and quoted unless it is a regular expression."""
        needle = one_line(self.needle, 40)
        return needle if self.query.regex else f"“{needle}”"

    def rows_of(self, hits: Sequence[Hit], catalog: Catalog) -> list[HitRow]:
        """Return the rows of hits and of earlier hits whose traces were listed meanwhile.

        Args:
            hits: The new hits.
            catalog: The listed traces.
        """
        for trace_id in catalog.changes[self.change_count :]:
            if (trace := catalog.traces.get(trace_id)) is not None:
                self.trace_id_by_place[str(trace.path), trace.record] = trace_id
        self.change_count = len(catalog.changes)
        candidates = [*self.unlisted, *hits]
        self.unlisted = []
        rows = []
        for hit in candidates:
            trace_id = self.trace_id_by_place.get((hit.path, hit.record), hit.trace_id)
            trace = catalog.traces.get(trace_id)
            if trace is None:
                self.unlisted.append(hit)
            else:
                rows.append(HitRow(trace_id, self.name_of(trace), hit))
        return rows


class Contents:
    """The search of contents: its input line and its hits."""

    def __init__(self, screen: LibraryScreen) -> None:
        self.line = TextLine(
            placeholder="text to look for in all traces; /…/ is a regular expression", id="contents"
        )
        """The input line, which the screen composes."""
        self.list = HitList(id="hits")
        """The list of hits, which the screen composes."""
        self._screen = screen
        self._search: _RunningSearch | None = None
        """The search with listed hits; None while traces are listed."""

    def open(self) -> None:
        """Show the input line."""
        self.line.display = True
        self._screen.set_focus(self.line)
        keymap = self._screen.mast.keys_set
        names_hint = hint_while_typing("library.other_search", "filters names instead", keymap)
        back_hint = hint_while_typing("everywhere.back", "leaves", keymap)
        self._screen.hints.prompt(f"Text in all traces · Enter finds it{names_hint}{back_hint}")

    def start(self) -> None:
        """Search for the text of the input line in a worker. The text must not be empty.

        Show an error for a malformed regular expression.
        """
        # The import would delay the first rows.
        from mast_tui.traces.search.file_search import ManyFilesSearch, Query

        mast = self._screen.mast
        paths = mast.options.paths
        try:
            query = Query.typed(self.line.value)
            files = ManyFilesSearch(
                paths, query, max(1, (cpu_count() or 1) - 1), mast.catalog.masks
            )
        except MastError as error:
            self._screen.hints.say(
                f"Not a regular expression: {one_line(str(error), 80)}", error=True
            )
            return
        search = _RunningSearch(self.line.value, query, files, names_under(paths))
        self._search = search
        self.list.begin()
        self.line.display = False
        self._screen.hints.clear()
        self._screen.show_listed()
        self._screen.set_focus(self.list)
        self._screen.work.run_stages(
            "contents",
            partial(files.batches, most_hits=MOST_HITS, interval=REPORT_INTERVAL),
            partial(self._show_results, search),
        )

    def leave(self) -> bool:
        """End the search, and list the traces again; return False without a search."""
        was_open = self.lists_hits or self.line.display
        self._screen.work.stop("contents")
        self._search = None
        self.line.value = ""
        self.line.display = False
        self.list.begin()
        self._screen.show_listed()
        return was_open

    @property
    def lists_hits(self) -> bool:
        """True if hits are listed instead of traces."""
        return self._search is not None

    @property
    def done(self) -> bool:
        """True if no search is running."""
        return self._search is None or self._search.done

    def _show_results(self, search: _RunningSearch, batch: HitBatch) -> None:
        """Show the results of the search since the last update."""
        self._list_hits(search, batch.hits)
        search.not_searched += batch.not_searched
        search.done = batch.is_last
        self._screen.show_listed()
        if search.done and search.not_searched:
            first_file, *further_files = search.not_searched
            further_text = f" · and {len(further_files)} more" if further_files else ""
            file_name = Path(first_file.path).name
            message = f"Not searched: {file_name}: {first_file.reason}{further_text}"
            self._screen.hints.say(message, error=True)

    def list_further_hits(self) -> None:
        """List the hits whose traces were listed after they were found."""
        search = self._search
        if search is not None and search.unlisted:
            self._list_hits(search, ())
            self._screen.show_listed()

    def _list_hits(self, search: _RunningSearch, hits: Sequence[Hit]) -> None:
        if rows := search.rows_of(hits, self._screen.mast.catalog):
            self.list.add(rows)

    def _awaits_traces(self, search: _RunningSearch) -> bool:
        """Return whether the traces of hits may still be listed."""
        return bool(search.unlisted) and not self._screen.mast.catalog.complete

    def open_hit(self) -> None:
        """Open the trace of the hit under the cursor at its span, and search for the same text
        there.
        """
        row = self.list.row
        search = self._search
        trace = None if row is None else self._screen.mast.catalog.traces.get(row.trace_id)
        if row is None or trace is None or search is None:
            return
        location = TraceLocation(
            row.trace_id, key=row.hit.key, position=row.hit.span, find=search.needle
        )
        self._screen.mast.go(ShowTrace(trace, location))

    def title_parts(self) -> Iterator[str]:
        """Yield the parts of the title: the hits, the searched text, and the progress."""
        search = self._search
        if search is None:
            return
        span_count = len(self.list.rows)
        trace_count = len({row.trace_id for row in self.list.rows})
        yield f"{counted(span_count, 'span')} in {counted(trace_count, 'trace')}"
        yield search.quoted_needle
        if not search.done:
            yield f"{search.files.searched_count:,} of {search.files.total:,} files …"
        elif self._awaits_traces(search):
            yield f"{counted(len(search.unlisted), 'more span')} in traces still being read …"
        elif span_count >= MOST_HITS:
            yield "the rest is not listed"
        if search.not_searched:
            yield f"{counted(len(search.not_searched), 'file')} not searched"

    def empty_text(self) -> str:
        """Return the text for a search without hits; empty without a search."""
        search = self._search
        if search is None:
            return ""
        if not search.done or self._awaits_traces(search):
            return f"Looking for {search.quoted_needle} …"
        key = self._screen.mast.key_of("everywhere.back")
        return f"No span contains {search.quoted_needle}.\n\n{key} shows the traces."
