"""Finding text in all traces of the library: what was found, as rows, and looking for it."""

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
"""A search ends when so many spans were found."""

TOLD_EVERY: Final = 0.1
"""Seconds between reports of what was found; the first hit is told at once."""

NAME_CELLS: Final = 30
"""How wide the names of traces may become."""

KIND_CELLS: Final = 9


class HitRow(NamedTuple):
    """A span that was found, in a trace of the library."""

    trace_id: str
    name: str
    hit: Hit


class HitList(VirtualLines):
    """Spans that were found, in the order of the files."""

    css_prefix = "hit-list"
    css_parts = ("cursor", "name", "quiet", "failed", "match")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: list[HitRow] = []
        self._widths = (0, 0)

    @property
    def row_count(self) -> int:
        """As many as were found."""
        return len(self.rows)

    @property
    def row(self) -> HitRow | None:
        """The hit under the cursor; None where there is none."""
        return self.rows[self.cursor] if self.rows else None

    def begin(self) -> None:
        """Show nothing."""
        self.rows, self._widths, self.cursor = [], (0, 0), 0
        self.rows_changed()
        self.scroll_to(y=0, animate=False, force=True)

    def add(self, rows: Sequence[HitRow]) -> None:
        """Show more rows behind those that are there."""
        before = len(self.rows)
        self.rows += rows
        name, number = self._widths
        name = max(name, *(cell_len(one_line(row.name.rpartition("/")[2])) for row in rows))
        number = max(number, *(len(f"{row.hit.span + 1}") for row in rows))
        if (name, number) == self._widths:
            self.rows_grown(before)
        else:
            self._widths = (name, number)
            self.rows_changed()

    def render_row(self, row: int, width: int) -> Strip:
        """The trace, the span's number and kind, and the text around the match."""
        item, hit = self.rows[row], self.rows[row].hit
        base = self.row_style(row)
        name_cells = min(self._widths[0], NAME_CELLS, width // 3)
        again = row > 0 and self.rows[row - 1].trace_id == item.trace_id
        told = name_within(one_line(item.name.rpartition("/")[2]), name_cells)
        part = "quiet" if again else "name"
        number = f"#{hit.span + 1}".rjust(self._widths[1] + 1)
        kind = KIND_LABELS[SpanKind(hit.kind)] if hit.name is None else one_line(hit.name)
        kind = set_cell_size(kind, KIND_CELLS)
        failed = hit.status == SpanStatus.ERROR
        parts = [
            Segment("▌" if row == self.cursor else " ", base),
            Segment(set_cell_size(told, name_cells), base + self._part(part)),
            Segment(f" {number} ", base + self._part("quiet")),
            Segment("✗" if failed else " ", base + self._part("failed")),
            Segment(f"{kind} ", base + self._part("quiet")),
        ]
        room = width - sum(cell_len(part.text) for part in parts)
        return Strip([*parts, *self._preview(hit, room, base)]).adjust_cell_length(width, base)

    def _preview(self, hit: Hit, room: int, base: Style) -> list[Segment]:
        """As much of the preview as there is room for, with the match in sight."""
        before = one_line(hit.preview[: hit.lit])
        lit = one_line(hit.preview[hit.lit : hit.unlit])
        behind = one_line(hit.preview[hit.unlit :])
        spare = max(room // 4, room - cell_len(lit) - cell_len(behind))
        if cell_len(before) > spare:
            before = "…" + last_cells(before, max(0, spare - 1))
        lit = shortened(lit, room - cell_len(before))
        behind = shortened(behind, room - cell_len(before) - cell_len(lit))
        return [
            Segment(before, base),
            Segment(lit, base + self._part("match")),
            Segment(behind, base),
        ]


class Contents:
    """The search of contents: a line to type on, and the hits in the place of the traces."""

    def __init__(self, view: LibraryScreen) -> None:
        self.line = TextLine(
            placeholder="text to look for in all traces; /…/ is a regular expression", id="contents"
        )
        """What one types on; the screen places it."""
        self.list = HitList(id="hits")
        """What was found; the screen places it."""
        self.needle = ""
        """What is looked for; nothing where the traces are listed."""
        self._view = view
        self._search: ManyFilesSearch | None = None
        self.done = True
        """Whether all was found."""
        self._plain = True
        self._not_searched: list[NotSearched] = []
        self._ids: dict[tuple[str, int | None], str] = {}
        self._names: Callable[[Trace], str] = str

    def open(self) -> None:
        """Open the line."""
        self.line.display = True
        self._view.set_focus(self.line)
        key = key_while_typing("library.contents", self._view.mast.keys_set)
        switch = f" · {key} in names" if key else ""
        back = key_while_typing("everywhere.back", self._view.mast.keys_set)
        leave = f" · {back} leaves" if back else ""
        self._view.hints.prompt(f"In contents · Enter looks{switch}{leave}")

    def start(self) -> None:
        """Look for what stands on the line; there must be something."""
        needle = self.line.value
        mast = self._view.mast
        try:
            query = Query.typed(needle)
            search = ManyFilesSearch(mast.options.paths, query, max(1, (cpu_count() or 1) - 1))
        except MastError as error:
            self._view.hints.say(f"No regular expression: {one_line(str(error), 80)}", error=True)
            return
        self.needle, self._search, self.done = needle, search, False
        self._plain = not query.regex
        self._not_searched = []
        traces = mast.catalog.traces
        self._ids = {(str(trace.path), trace.record): one for one, trace in traces.items()}
        self._names = names_under(mast.options.paths)
        self.list.begin()
        self.line.display = False
        self._view.hints.clear()
        self._view.contents_changed()
        self._view.set_focus(self.list)
        self._view.run_worker(
            lambda: self._look(search), group="contents", exclusive=True, thread=True
        )

    def leave(self) -> bool:
        """Look no further, and list the traces again; False where there was nothing to leave."""
        had = self.shown or self.line.display
        self.needle, self._search, self.done = "", None, True
        self.line.value, self.line.display = "", False
        self.list.begin()
        self._view.contents_changed()
        return had

    @property
    def shown(self) -> bool:
        """Whether hits are listed in the place of the traces."""
        return bool(self.needle)

    def _look(self, search: ManyFilesSearch) -> None:
        worker = get_current_worker()
        news: list[Hit | NotSearched] = []
        told, count = 0.0, 0
        for found in search.results(patience=TOLD_EVERY):
            # Another search, or none, is wanted: its processes end with it.
            if worker.is_cancelled or self._search is not search or count == MOST_HITS:
                break
            if found is not None:
                news.append(found)
                count += isinstance(found, Hit)
            if count == 1 or monotonic() - told > TOLD_EVERY:
                self._view.call_later(self._take, search, news)
                news, told = [], monotonic()
        search.close()
        self._view.call_later(self._take, search, news, over=True)

    def _take(
        self, search: ManyFilesSearch, news: Sequence[Hit | NotSearched], *, over: bool = False
    ) -> None:
        """Show what was found since it was told last."""
        if search is not self._search:
            return
        hits = (one for one in news if isinstance(one, Hit))
        rows = [row for row in map(self._row, hits) if row is not None]
        if rows:
            self.list.add(rows)
        self._not_searched += [one for one in news if isinstance(one, NotSearched)]
        self.done |= over
        self._view.contents_changed()
        if over and self._not_searched:
            first, count = self._not_searched[0], len(self._not_searched)
            more = f" · and {count - 1} more" if count > 1 else ""
            words = f"Not searched: {Path(first.path).name}: {first.reason}{more}"
            self._view.hints.say(words, error=True)

    def _row(self, hit: Hit) -> HitRow | None:
        """The row of a hit; None for a trace that the library does not list."""
        traces = self._view.mast.catalog.traces
        trace_id = self._ids.get((hit.path, hit.record), hit.trace_id)
        trace = traces.get(trace_id)
        return None if trace is None else HitRow(trace_id, self._names(trace), hit)

    def open_hit(self) -> None:
        """Open the trace of the hit under the cursor there, with the search set."""
        row = self.list.row
        trace = None if row is None else self._view.mast.catalog.traces.get(row.trace_id)
        if row is None or trace is None:
            return
        at = TraceLocation(row.trace_id, key=row.hit.key, position=row.hit.span, find=self.needle)
        self._view.mast.go(ShowTrace(trace, at))

    def title(self) -> tuple[str, ...]:
        """What is looked for, how much was found, and how far it is."""
        search, rows = self._search, self.list.rows
        spans, traces = len(rows), len({row.trace_id for row in rows})
        parts = [f"{counted(spans, 'span')} in {counted(traces, 'trace')}", self.words]
        if search is not None and not self.done:
            parts.append(f"{search.looked_at:,} of {search.total:,} files …")
        elif spans >= MOST_HITS:
            parts.append("no more are listed")
        if self._not_searched:
            parts.append(f"{len(self._not_searched):,} not searched")
        return tuple(parts)

    @property
    def words(self) -> str:
        """What is looked for, in words."""
        needle = one_line(self.needle, 40)
        return f"“{needle}”" if self._plain else needle

    def empty_words(self) -> str:
        """What is said where no row is shown."""
        if not self.done:
            return f"Looking for {self.words} …"
        key = self._view.mast.key_of("everywhere.back")
        return f"No span holds {self.words}.\n\n{key} shows the traces."
