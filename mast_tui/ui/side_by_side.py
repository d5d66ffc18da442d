"""Two runs side by side: which steps belong together, where the runs part, and what differs."""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from textual import on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.strip import Strip
from textual.widgets import Static

from mast_tui.columns import padded
from mast_tui.traces.alignment import Alignment, Likeness, Pair, align, sentences
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.base_screen import BaseScreen
from mast_tui.ui.context import ShowTrace, TraceLocation
from mast_tui.ui.styles import BASE_SCREEN
from mast_tui.ui.styles import SIDE_BY_SIDE as SIDE_BY_SIDE_STYLES
from mast_tui.ui.text.differences import compare
from mast_tui.ui.text.highlighting import TextPart
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.trace_view.timeline import kind_label, row_text
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import plain_title

SIGNS: Final = {
    Likeness.SAME: "=",
    Likeness.CHANGED: "~",
    Likeness.OTHER: "≠",
    Likeness.ONLY_A: "<",
    Likeness.ONLY_B: ">",
}

_KIND_CELLS: Final = 7


class PairList(VirtualLines):
    """Each place of two runs as a row: the step of A, how alike they are, the step of B."""

    css_prefix = "pair-list"
    tells_size = True
    css_parts = ("cursor", "quiet", "action", "differs", "fork")

    def __init__(self, a: Trace, b: Trace, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._a, self._b = a, b
        self.found = Alignment(pairs=(), actions=(), first=None, fork=None, cause=None)

    @property
    def row_count(self) -> int:
        """As many as there are places."""
        return len(self.found.pairs)

    @property
    def pair(self) -> Pair | None:
        """The place under the cursor."""
        return self.found.pairs[self.cursor] if self.found.pairs else None

    def heading(self, names: tuple[str, str], width: int) -> str:
        """The names of the two above their steps, in so many cells."""
        left, right = self._widths(width)
        return f" {padded(f'A  {names[0]}', left)}   {padded(f'B  {names[1]}', right)}"

    def render_row(self, row: int, width: int) -> Strip:
        """The two steps and a sign between them."""
        pair, acts = self.found.pairs[row], self.found.actions[row]
        base = self.rich_style
        if row == self.cursor:
            base += self._part("cursor")
        same = pair.likeness is Likeness.SAME
        forks = row == self.found.fork
        words = base + self._part("quiet" if same or not acts else "action")
        sign = base + self._part("fork" if forks else "quiet" if same else "differs")
        left, right = self._widths(width)
        return Strip(
            [
                Segment("▌" if row == self.cursor else " ", base),
                Segment(self._cell(self._a, pair.a, left), words),
                Segment(f"{'▶' if forks else ' '}{SIGNS[pair.likeness]} ", sign),
                Segment(self._cell(self._b, pair.b, right), words),
            ]
        ).adjust_cell_length(width, base)

    def _widths(self, width: int) -> tuple[int, int]:
        left = max(4, (width - 4) // 2)
        return left, max(4, width - 4 - left)

    def _cell(self, trace: Trace, index: int | None, cells: int) -> str:
        if index is None:
            return " " * cells
        span = trace.span(index)
        number = f"{index + 1}".rjust(max(3, len(str(len(trace)))))
        kind = kind_label(span).ljust(_KIND_CELLS)
        return padded(f"{number} {kind} {row_text(span)}", cells)


class SideBySideScreen(BaseScreen):
    """The places of two runs, and under them what differs in the one under the cursor."""

    CSS_PATH = [BASE_SCREEN, SIDE_BY_SIDE_STYLES]
    where = Where.SIDE_BY_SIDE

    def __init__(self, a: Trace, b: Trace, names: tuple[str, str]) -> None:
        """Read both anew: only one thread may read on in a trace that is open.

        Args:
            a: The run on the left.
            b: The run on the right.
            names: What they go by, and how they ended where that may be seen.
        """
        super().__init__()
        self._sources = (a, b)
        self._a, self._b = a.anew(), b.anew()
        self._names = names

    def compose_panes(self) -> ComposeResult:
        """What came of it, the places, and what differs."""
        yield Static(id="about", markup=False)
        yield Static(id="heading", classes="heading", markup=False)
        yield PairList(self._a, self._b, id="pairs")
        yield SpanView(id="detail", classes="detail")

    @property
    def main_list(self) -> PairList:
        """The places."""
        return self.query_one(PairList)

    @property
    def detail(self) -> SpanView:
        """What differs in the place under the cursor."""
        return self.query_one("#detail", SpanView)

    def on_mount(self) -> None:
        """Begin to read."""
        self.detail.can_focus = False
        self.title_bar.show(("Side by side",), self.who())
        self.show_words("Reading both runs …")
        self._align()

    @work(thread=True, exclusive=True)
    def _align(self) -> None:
        try:
            for trace in (self._a, self._b):
                read_fully(trace)
            found = align(self._a, self._b)
        except OSError as error:
            reason = error.strerror or str(error)
            self.call_later(self.show_words, f"They cannot be compared: {reason}")
            return
        self.call_later(self._show_aligned, found)

    def _show_aligned(self, found: Alignment) -> None:
        if not found.pairs:
            self.show_words("There is nothing in them to compare.")
            return
        self.remove_class("-empty")
        listed = self.main_list
        listed.found = found
        listed.rows_changed()
        self.query_one("#about", Static).update(Content(" ".join(sentences(found))))
        self.set_focus(listed)
        self.action_fork(tell=False)
        self._show_detail()

    @on(VirtualLines.Resized)
    def _fitted(self) -> None:
        # They have room only once they are on screen, which is after their cursor has its place.
        listed = self.main_list
        heading = listed.heading(self._names, listed.lines_area.width)
        self.query_one("#heading", Static).update(Content(heading))
        listed.show_row(listed.cursor, centre=True)

    @on(VirtualLines.Moved, "#pairs")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self._show_detail()
        self.hints.clear()

    @on(VirtualLines.Chosen, "#pairs")
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        self.action_open("a")

    def _show_detail(self) -> None:
        """The text of the step under the cursor, or in what the two texts differ."""
        pair, detail = self.main_list.pair, self.detail
        if pair is None:
            return
        sides = [
            (name, trace, index)
            for name, trace, index in (("A", self._a, pair.a), ("B", self._b, pair.b))
            if index is not None
        ]
        places = [f"{name} #{index + 1}" for name, _trace, index in sides]
        try:
            texts = [trace.text(index) for _name, trace, index in sides]
        except OSError as error:
            detail.show_text("", empty=f"It cannot be read any more: {error.strerror or error}")
            return
        if len(texts) == 2:
            found = compare(*texts)
            if not found.equal:
                detail.show_titles(plain_title(f"{places[0]} (-) and {places[1]} (+)"))
                marks = [TextPart(first, end, "evidence") for first, end in found.changed]
                detail.show_text(found.text, marks, text_format="diff")
                return
            places = [f"{' and '.join(places)}: the same"]
        detail.show_titles(plain_title(" ".join(places)))
        detail.show_text(texts[0], empty="(empty)")

    def action_fork(self, *, tell: bool = True) -> None:
        """Go to where the runs part, else to where they first differ."""
        found = self.main_list.found
        place = found.first if found.fork is None else found.fork
        if place is not None:
            self.main_list.move_to(place, centre=True)
        elif tell:
            self.hints.say("The agents do the same in both")

    def action_difference(self, step: int) -> None:
        """Go to the next place, or the one before, where the agents do something else."""
        listed = self.main_list
        row = listed.cursor + step
        while 0 <= row < listed.row_count:
            if listed.found.actions[row] and listed.found.pairs[row].likeness is not Likeness.SAME:
                listed.move_to(row)
                return
            row += step
        self.hints.say("No other difference in what the agents do that way")

    def action_open(self, side: str) -> None:
        """Open one of the runs at the step under the cursor."""
        pair = self.main_list.pair
        if pair is None:
            return
        place, trace, source = (
            (pair.a, self._a, self._sources[0])
            if side == "a"
            else (pair.b, self._b, self._sources[1])
        )
        if place is None:
            self.hints.say(f"{side.upper()} has no step here", error=True)
            return
        at = TraceLocation(source.identity.trace_id, key=trace.span(place).key, position=place)
        self.mast.go(ShowTrace(source, at))

    def action_text(self, step: int) -> None:
        """Scroll what differs."""
        self.detail.move_half(step)
