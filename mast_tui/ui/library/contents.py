"""The search for text in all traces of the library, and the list of its hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import cpu_count
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.worker import get_current_worker

from mast_tui.columns import shortened
from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.traces.model import SpanKind, SpanStatus, Trace
from mast_tui.traces.search.file_search import Hit, NotSearched, Query
from mast_tui.traces.search.search_processes import ManyFilesSearch
from mast_tui.ui.actions.registry import key_while_typing
from mast_tui.ui.context import ShowTrace, TraceLocation
from mast_tui.ui.trace_view.timeline import KIND_LABELS
from mast_tui.ui.widgets.text_line import TextLine
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import counted, last_cells, name_within, names_under

if TYPE_CHECKING:
    from mast_tui.ui.library.screen import LibraryScreen

MOST_HITS: Final = 10_000
"""The number of spans after which a search ends."""

REPORT_INTERVAL: Final = 0.1
"""The seconds between updates of the list; the first hit is shown at once."""

NAME_CELLS: Final = 30
"""The most cells of the name of a trace."""

KIND_CELLS: Final = 9


class HitRow(NamedTuple):
    """A hit in a trace of the library."""

    trace_id: str
    name: str
    hit: Hit


class HitList(VirtualLines):
    """The spans with hits, in the order of the files."""

    css_prefix = "hit-list"
    css_parts = ("cursor", "name", "quiet", "failed", "match")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: list[HitRow] = []
        self._widths = (0, 0)

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
        self._widths = (0, 0)
        self.cursor = 0
        self.rows_changed()
        self.scroll_to(y=0, animate=False, force=True)

    def add(self, rows: Sequence[HitRow]) -> None:
        """Append hits."""
        previous_count = len(self.rows)
        self.rows += rows
        name, number = self._widths
        name = max(name, *(cell_len(one_line(row.name.rpartition("/")[2])) for row in rows))
        number = max(number, *(len(f"{row.hit.span + 1}") for row in rows))
        if (name, number) == self._widths:
            self.rows_grown(previous_count)
        else:
            self._widths = (name, number)
            self.rows_changed()

    def render_row(self, row: int, width: int) -> Strip:
        """Render a hit: the trace, the span's number and kind, and the text around the match.

        Args:
            row: The position of the row.
            width: The cells of the row.
        """
        item = self.rows[row]
        hit = item.hit
        base = self.row_style(row)
        name_cells = min(self._widths[0], NAME_CELLS, width // 3)
        same_trace = row > 0 and self.rows[row - 1].trace_id == item.trace_id
        name = name_within(one_line(item.name.rpartition("/")[2]), name_cells)
        part = "quiet" if same_trace else "name"
        number = f"#{hit.span + 1}".rjust(self._widths[1] + 1)
        kind = KIND_LABELS[SpanKind(hit.kind)] if hit.name is None else one_line(hit.name)
        kind = set_cell_size(kind, KIND_CELLS)
        failed = hit.status == SpanStatus.ERROR
        parts = [
            Segment("▌" if row == self.cursor else " ", base),
            Segment(set_cell_size(name, name_cells), base + self._part(part)),
            Segment(f" {number} ", base + self._part("quiet")),
            Segment("✗" if failed else " ", base + self._part("failed")),
            Segment(f"{kind} ", base + self._part("quiet")),
        ]
        room = width - sum(cell_len(part.text) for part in parts)
        return Strip([*parts, *self._preview(hit, room, base)]).adjust_cell_length(width, base)

    def _preview(self, hit: Hit, room: int, base: Style) -> list[Segment]:
        """Return as much of the preview as fits, with the match visible."""
        text_before = one_line(hit.preview[: hit.match_start])
        match = one_line(hit.preview[hit.match_start : hit.match_end])
        text_after = one_line(hit.preview[hit.match_end :])
        spare = max(room // 4, room - cell_len(match) - cell_len(text_after))
        if cell_len(text_before) > spare:
            text_before = "…" + last_cells(text_before, max(0, spare - 1))
        match = shortened(match, room - cell_len(text_before))
        text_after = shortened(text_after, room - cell_len(text_before) - cell_len(match))
        return [
            Segment(text_before, base),
            Segment(match, base + self._part("match")),
            Segment(text_after, base),
        ]


class Contents:
    """The search of contents: its input line, and the hits, which replace the list of traces."""

    def __init__(self, view: LibraryScreen) -> None:
        self.line = TextLine(
            placeholder="text to look for in all traces; /…/ is a regular expression", id="contents"
        )
        """The input line; the screen composes it."""
        self.list = HitList(id="hits")
        """The list of hits; the screen composes it."""
        self.needle = ""
        """The text that is searched; empty while traces are listed."""
        self._view = view
        self._search: ManyFilesSearch | None = None
        self.done = True
        """True if no search is running."""
        self._plain = True
        self._not_searched: list[NotSearched] = []
        self._ids: dict[tuple[str, int | None], str] = {}
        self._names: Callable[[Trace], str] = str

    def open(self) -> None:
        """Show the input line."""
        self.line.display = True
        self._view.set_focus(self.line)
        key = key_while_typing("library.contents", self._view.mast.keys_set)
        switch = f" · {key} in names" if key else ""
        back = key_while_typing("everywhere.back", self._view.mast.keys_set)
        leave = f" · {back} leaves" if back else ""
        self._view.hints.prompt(f"In contents · Enter looks{switch}{leave}")

    def start(self) -> None:
        """Search the text of the input line, which must not be empty."""
        needle = self.line.value
        mast = self._view.mast
        try:
            query = Query.typed(needle)
            search = ManyFilesSearch(mast.options.paths, query, max(1, (cpu_count() or 1) - 1))
        except MastError as error:
            self._view.hints.say(f"No regular expression: {one_line(str(error), 80)}", error=True)
            return
        self.needle = needle
        self._search = search
        self.done = False
        self._plain = not query.regex
        self._not_searched = []
        traces = mast.catalog.traces
        self._ids = {
            (str(trace.path), trace.record): trace_id for trace_id, trace in traces.items()
        }
        self._names = names_under(mast.options.paths)
        self.list.begin()
        self.line.display = False
        self._view.hints.clear()
        self._view.contents_changed()
        self._view.set_focus(self.list)
        self._view.run_worker(
            lambda: self._run_search(search), group="contents", exclusive=True, thread=True
        )

    def leave(self) -> bool:
        """End the search, and list the traces again; return False if there was none."""
        was_open = self.is_listing or self.line.display
        self.needle = ""
        self._search = None
        self.done = True
        self.line.value = ""
        self.line.display = False
        self.list.begin()
        self._view.contents_changed()
        return was_open

    @property
    def is_listing(self) -> bool:
        """True if hits are listed in place of the traces."""
        return bool(self.needle)

    def _run_search(self, search: ManyFilesSearch) -> None:
        """Run a search in a worker, and pass on its results in batches."""
        worker = get_current_worker()
        batch: list[Hit | NotSearched] = []
        last_report = 0.0
        hit_count = 0
        for result in search.results(patience=REPORT_INTERVAL):
            # The loop ends when another search begins; closing this one ends its processes.
            if worker.is_cancelled or self._search is not search or hit_count == MOST_HITS:
                break
            if result is not None:
                batch.append(result)
                hit_count += isinstance(result, Hit)
            if hit_count == 1 or monotonic() - last_report > REPORT_INTERVAL:
                self._view.call_later(self._receive, search, batch)
                batch = []
                last_report = monotonic()
        search.close()
        self._view.call_later(self._receive, search, batch, over=True)

    def _receive(
        self, search: ManyFilesSearch, batch: Sequence[Hit | NotSearched], *, over: bool = False
    ) -> None:
        """Show the results of a search since the last update; ``over`` tells that it has ended."""
        if search is not self._search:
            return
        hits = (result for result in batch if isinstance(result, Hit))
        rows = [row for row in map(self._row, hits) if row is not None]
        if rows:
            self.list.add(rows)
        self._not_searched += [result for result in batch if isinstance(result, NotSearched)]
        self.done |= over
        self._view.contents_changed()
        if over and self._not_searched:
            first = self._not_searched[0]
            count = len(self._not_searched)
            more = f" · and {count - 1} more" if count > 1 else ""
            message = f"Not searched: {Path(first.path).name}: {first.reason}{more}"
            self._view.hints.say(message, error=True)

    def _row(self, hit: Hit) -> HitRow | None:
        """Return the row of a hit, or None if its trace is not listed."""
        traces = self._view.mast.catalog.traces
        trace_id = self._ids.get((hit.path, hit.record), hit.trace_id)
        trace = traces.get(trace_id)
        return None if trace is None else HitRow(trace_id, self._names(trace), hit)

    def open_hit(self) -> None:
        """Open the trace of the hit under the cursor at its span, with the search set."""
        row = self.list.row
        trace = None if row is None else self._view.mast.catalog.traces.get(row.trace_id)
        if row is None or trace is None:
            return
        location = TraceLocation(
            row.trace_id, key=row.hit.key, position=row.hit.span, find=self.needle
        )
        self._view.mast.go(ShowTrace(trace, location))

    def title(self) -> tuple[str, ...]:
        """Return the parts of the title: the hits, the text that is searched, and the progress."""
        search = self._search
        spans = len(self.list.rows)
        traces = len({row.trace_id for row in self.list.rows})
        parts = [f"{counted(spans, 'span')} in {counted(traces, 'trace')}", self.quoted_needle]
        if search is not None and not self.done:
            parts.append(f"{search.searched_count:,} of {search.total:,} files …")
        elif spans >= MOST_HITS:
            parts.append("no more are listed")
        if self._not_searched:
            parts.append(f"{len(self._not_searched):,} not searched")
        return tuple(parts)

    @property
    def quoted_needle(self) -> str:
        """The text that is searched, quoted and cut."""
        needle = one_line(self.needle, 40)
        return f"“{needle}”" if self._plain else needle

    def empty_text(self) -> str:
        """Return the text to show without hits."""
        if not self.done:
            return f"Looking for {self.quoted_needle} …"
        key = self._view.mast.key_of("everywhere.back")
        return f"No span holds {self.quoted_needle}.\n\n{key} shows the traces."
