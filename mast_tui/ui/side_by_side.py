"""The screen of two runs side by side: matching steps, the fork, and differences of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.strip import Strip
from textual.widgets import Static

from mast_tui.columns import padded
from mast_tui.errors import MastError
from mast_tui.traces.alignment import Likeness, Pair, RunAlignment, align, sentences
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.context import ShowTrace, TraceLocation
from mast_tui.ui.styles import BASE_SCREEN
from mast_tui.ui.styles import SIDE_BY_SIDE as SIDE_BY_SIDE_STYLES
from mast_tui.ui.table_screen import DetailScreen
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
    """The pairs of steps of two runs.

    A row has the step of A, the sign of their likeness, and the step of B.
    """

    css_prefix = "pair-list"
    tells_size = True
    css_parts = ("cursor", "quiet", "action", "differs", "fork")

    def __init__(self, a: Trace, b: Trace, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._a = a
        self._b = b
        self.alignment = RunAlignment(
            pairs=(), action_flags=(), first_difference=None, fork=None, cause=None
        )

    @property
    def row_count(self) -> int:
        """The number of pairs."""
        return len(self.alignment.pairs)

    @property
    def pair(self) -> Pair | None:
        """The pair under the cursor, or None."""
        return self.alignment.pairs[self.cursor] if self.alignment.pairs else None

    def heading(self, names: tuple[str, str], width: int) -> str:
        """Return a line with the names of the runs above their steps.

        Args:
            names: The names.
            width: The cells of the line.
        """
        name_a, name_b = names
        cells_a, cells_b = self._column_widths(width)
        return f" {padded(f'A  {name_a}', cells_a)}   {padded(f'B  {name_b}', cells_b)}"

    def render_row(self, row: int, width: int) -> Strip:
        """Render two steps with a sign between them.

        Args:
            row: The position of the row.
            width: The cells of the row.
        """
        pair = self.alignment.pairs[row]
        is_action = self.alignment.action_flags[row]
        is_same = pair.likeness is Likeness.SAME
        is_fork = row == self.alignment.fork
        base_style = self.row_style(row)
        text_style = base_style + self._part("action" if is_action and not is_same else "quiet")
        sign_part = "quiet" if is_same else "differs"
        if is_fork:
            sign_part = "fork"
        cells_a, cells_b = self._column_widths(width)
        sign = f"{'▶' if is_fork else ' '}{SIGNS[pair.likeness]} "
        return Strip(
            [
                Segment("▌" if row == self.cursor else " ", base_style),
                Segment(self._step_text(self._a, pair.a, cells_a), text_style),
                Segment(sign, base_style + self._part(sign_part)),
                Segment(self._step_text(self._b, pair.b, cells_b), text_style),
            ]
        ).adjust_cell_length(width, base_style)

    def _column_widths(self, width: int) -> tuple[int, int]:
        """Return the cells for a step of A and for a step of B."""
        cells_a = max(4, (width - 4) // 2)
        return cells_a, max(4, width - 4 - cells_a)

    def _step_text(self, trace: Trace, index: int | None, cells: int) -> str:
        """Return the number, kind and text of a step; blanks for no step."""
        if index is None:
            return " " * cells
        span = trace.span(index)
        number = f"{index + 1}".rjust(max(3, len(str(len(trace)))))
        kind = kind_label(span.kind, span.role, span.status).ljust(_KIND_CELLS)
        return padded(f"{number} {kind} {row_text(span)}", cells)


class SideBySideScreen(DetailScreen):
    """The pairs of steps of two runs, and the difference of the pair under the cursor."""

    CSS_PATH = [BASE_SCREEN, SIDE_BY_SIDE_STYLES]
    where = Where.SIDE_BY_SIDE

    def __init__(self, a: Trace, b: Trace, names: tuple[str, str]) -> None:
        """Prepare two runs for reading.

        Both files are read again, because only one thread may read an open trace.

        Args:
            a: The run on the left.
            b: The run on the right.
            names: The names of the runs, with their visible outcomes.
        """
        super().__init__()
        self._open_traces = (a, b)
        """The traces of other screens. This screen reads ``_a`` and ``_b`` instead."""
        self._a = a.anew()
        self._b = b.anew()
        self._names = names

    def compose_panes(self) -> ComposeResult:
        """Yield the summary, the pairs, and the difference."""
        yield Static(id="about", markup=False)
        yield Static(id="heading", classes="heading", markup=False)
        yield PairList(self._a, self._b, id="pairs")
        yield SpanView(id="detail", classes="detail")

    @property
    def main_list(self) -> PairList:
        """The pairs of steps."""
        return self.query_one(PairList)

    def on_mount(self) -> None:
        """Start to read both runs."""
        self.title_bar.show(("Side by side",), self.right_title_parts())
        self.show_message_only("Reading both runs …")
        self.work.run("alignment", self._align_runs, self._show_alignment, self.show_message_only)

    def _align_runs(self) -> RunAlignment:
        try:
            for trace in (self._a, self._b):
                read_fully(trace)
            return align(self._a, self._b)
        except OSError as error:
            raise MastError(f"The runs cannot be compared: {error.strerror or error}") from error

    def _show_alignment(self, alignment: RunAlignment) -> None:
        """Show the summary and the pairs, and move to the fork."""
        if not alignment.pairs:
            self.show_message_only("These runs have no steps to compare.")
            return
        self.remove_class("-empty")
        pair_list = self.main_list
        pair_list.alignment = alignment
        pair_list.rows_changed()
        self.query_one("#about", Static).update(Content(" ".join(sentences(alignment))))
        self.set_focus(pair_list)
        self.action_fork(reports_none=False)
        self.show_detail()

    @on(VirtualLines.Resized)
    def _show_heading(self) -> None:
        """Fit the heading to the new size of the list, and scroll to the cursor.

        The cursor may have been set before the list had a size.
        """
        pair_list = self.main_list
        heading = pair_list.heading(self._names, pair_list.lines_area.width)
        self.query_one("#heading", Static).update(Content(heading))
        pair_list.show_row(pair_list.cursor, in_upper_third=True)

    def show_detail(self) -> None:
        """Show the difference of the two steps under the cursor, or the text of a single step."""
        pair = self.main_list.pair
        detail = self.detail
        if pair is None:
            return
        titles = []
        texts = []
        try:
            for name, trace, index in (("A", self._a, pair.a), ("B", self._b, pair.b)):
                if index is not None:
                    titles.append(f"{name} #{index + 1}")
                    texts.append(trace.text(index))
        except OSError as error:
            detail.show_text(
                "", empty=f"The file cannot be read any more: {error.strerror or error}"
            )
            return
        if len(texts) == 2:
            self._show_difference(titles, *texts)
        else:
            detail.show_titles(plain_title(titles[0]))
            detail.show_text(texts[0], empty="(empty)")

    def _show_difference(self, titles: Sequence[str], text_a: str, text_b: str) -> None:
        """Show the difference of two texts, or the text if both are equal."""
        detail = self.detail
        comparison = compare(text_a, text_b)
        if comparison.is_equal:
            detail.show_titles(plain_title(f"{' and '.join(titles)}: the same"))
            detail.show_text(text_a, empty="(empty)")
            return
        title_a, title_b = titles
        detail.show_titles(plain_title(f"{title_a} (-) and {title_b} (+)"))
        changed_parts = [
            TextPart(first, end, "evidence") for first, end in comparison.changed_ranges
        ]
        detail.show_text(comparison.text, changed_parts, text_format="diff")

    def action_fork(self, *, reports_none: bool = True) -> None:
        """Move to the fork of the runs, or else to their first difference.

        Args:
            reports_none: True to show a message if there is no difference.
        """
        alignment = self.main_list.alignment
        row = alignment.first_difference if alignment.fork is None else alignment.fork
        if row is not None:
            self.main_list.move_to(row, in_upper_third=True)
        elif reports_none:
            self.hints.say("The agents do the same in both")

    def action_difference(self, step: int) -> None:
        """Move to the next or previous pair in which the agents act differently."""
        pair_list = self.main_list
        alignment = pair_list.alignment
        row = pair_list.cursor + step
        while 0 <= row < pair_list.row_count:
            if alignment.action_flags[row] and alignment.pairs[row].likeness is not Likeness.SAME:
                pair_list.move_to(row)
                return
            row += step
        self.hints.say(f"No {'later' if step > 0 else 'earlier'} difference in what the agents do")

    def action_open(self, side: str = "a") -> None:
        """Open run ``a`` or ``b`` at the step under the cursor."""
        pair = self.main_list.pair
        if pair is None:
            return
        open_a, open_b = self._open_traces
        index = pair.a if side == "a" else pair.b
        own_trace = self._a if side == "a" else self._b
        open_trace = open_a if side == "a" else open_b
        if index is None:
            self.hints.say(f"{side.upper()} has no step here", error=True)
            return
        location = TraceLocation(
            open_trace.identity.trace_id, key=own_trace.span(index).key, position=index
        )
        self.mast.go(ShowTrace(open_trace, location))

    def action_text(self, step: int) -> None:
        """Scroll the difference."""
        self.detail.move_half(step)
