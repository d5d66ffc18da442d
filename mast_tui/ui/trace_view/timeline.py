"""The trace as a timeline: one row a span, with its time, who acted, and the labels on it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events, work
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import get_current_worker

from mast_tui.columns import padded
from mast_tui.counts import offset
from mast_tui.safe_text import COLOUR_SEQUENCE, one_line
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.ui.context import HasInputQueue
from mast_tui.ui.trace_view.background_index import BackgroundIndex, TraceFacts, index_more
from mast_tui.ui.trace_view.folding import (
    Fold,
    FoldedRun,
    FoldedSteps,
    TimelineRows,
    run_at,
    step_signature,
    steps_of_sub_agent,
    steps_under,
)
from mast_tui.ui.trace_view.gutter import NO_MARKS, GutterMark, GutterMarks, MarkKind
from mast_tui.ui.widgets.virtual_lines import VirtualLines

KEPT: Final = 200
"""Places that are remembered."""


class Trail:
    """Places from which one has gone far; beside them one step is none."""

    def __init__(self) -> None:
        """Begin with no place."""
        self._places: list[int] = []
        self._at = 0
        """Which of the places one is at; behind the last where one has not gone back."""

    def left(self, here: int, there: int) -> None:
        """Take in that one goes from one span to another, further than to the next."""
        if abs(here - there) < 2:
            return
        del self._places[self._at :]
        self._add(here)

    def back(self, here: int) -> int | None:
        """The place that one came from, None for the first; ``here`` is gone forward to."""
        if self._at == len(self._places):
            self._add(here)
            self._at -= 1
        return self._step(here, -1)

    def forward(self, here: int) -> int | None:
        """The place that one has gone back from, None for the last."""
        return self._step(here, 1)

    def _add(self, place: int) -> None:
        if self._places[-1:] != [place]:
            self._places.append(place)
        del self._places[:-KEPT]
        self._at = len(self._places)

    def _step(self, here: int, step: int) -> int | None:
        at = self._at + step
        while 0 <= at < len(self._places):
            if self._places[at] != here:
                self._at = at
                return self._places[at]
            at += step
        return None


BAR_CELLS: Final = 8
BAR_FROM_WIDTH: Final = 64
"""Narrower timelines show no time bar."""

SHELLS: Final = frozenset({"shell", "exec_command", "local_shell", "bash", "terminal"})
"""Tools whose name says nothing beside the command that they run."""

MAX_AGENT_CELLS: Final = 14
AGENTS_FROM_WIDTH: Final = 44
"""Narrower timelines, such as that beside a drawer, leave the room of names to the text."""

KIND_WORDS: Final[Mapping[SpanKind, str]] = {
    SpanKind.MESSAGE: "says",
    SpanKind.REASONING: "thinks",
    SpanKind.TOOL_CALL: "tool",
    SpanKind.TOOL_RESULT: "result",
    SpanKind.LOG: "log",
}


class Columns(NamedTuple):
    """Cells of number, time, bar and who; 0 where a column is left out."""

    number: int
    time: int
    bar: int
    who: int

    @classmethod
    def of(cls, spans: int, facts: TraceFacts, width: int, *, bar: bool = True) -> Columns:
        """Return the columns of a timeline.

        Args:
            spans: How many spans it shows.
            facts: What is known of all of them.
            width: Its cells.
            bar: Whether there is a time bar where there is room for one.
        """
        time = 0
        if facts.start is not None:
            time = max(5, len(offset(facts.total)))
        who = 7
        if len(facts.agents) > 1 and width >= AGENTS_FROM_WIDTH:
            most = MAX_AGENT_CELLS if width >= BAR_FROM_WIDTH else 9
            who += 1 + min(most, facts.name_cells)
        return cls(
            max(3, len(str(spans))),
            time,
            BAR_CELLS + 2 if bar and time and width >= BAR_FROM_WIDTH else 0,
            who,
        )

    @property
    def lead(self) -> int:
        """Cells up to where it is told who acts."""
        time = self.time + 1 if self.time else 0
        bar = self.bar + 1 if self.bar else 0
        return 1 + self.number + 1 + time + bar

    def room(self, width: int, tail: int) -> int:
        """Cells for the text beside a tail of this many cells."""
        return max(4, width - self.lead - self.who - 1 - tail - 1)


def kind_word(span: Span) -> str:
    """Return the word that the timeline shows for a span: ``tool``, ``error``, ``user`` …"""
    failed = span.status is SpanStatus.ERROR
    if failed and span.kind in {SpanKind.TOOL_RESULT, SpanKind.LOG}:
        return "error"
    if span.kind is SpanKind.MESSAGE:
        return {Role.USER: "user", Role.SYSTEM: "system"}.get(span.role, "agent")
    return KIND_WORDS[span.kind]


def names_apart(names: Sequence[str], cells: int) -> dict[str, str]:
    """Return each name in so many cells, cut where it must be so that no two become the same.

    Names that begin alike keep their beginning and what they differ in: ``code_e…success`` and
    ``code_e…error``.

    Args:
        names: Names as they are.
        cells: The most that one may take.
    """
    whole = {name: one_line(name) for name in names}
    cut = {name: padded(text, cells).rstrip() for name, text in whole.items()}
    alike: dict[str, list[str]] = {}
    for name, text in cut.items():
        alike.setdefault(text, []).append(name)
    for group in alike.values():
        if len(group) < 2:
            continue
        texts = [whole[name] for name in group]
        letters = enumerate(zip(*texts, strict=False))
        same = next((at for at, found in letters if len({*found}) > 1), min(map(len, texts)))
        same = max(texts[0].rfind(sign, 0, same) + 1 for sign in "_-. /:") or same
        tail = min(cells - 2, max(cell_len(text[same:]) for text in texts))
        for name, text in zip(group, texts, strict=True):
            head = set_cell_size(text, cells - 1 - tail).rstrip()
            cut[name] = f"{head}…{padded(text[same:], tail).rstrip()}"
    return cut


def who_words(span: Span, name: str | None, cells: int) -> str:
    """Return who acts, and how.

    Args:
        span: What is done.
        name: Who does it, in few cells; None where one agent does everything.
        cells: How many there are for both.
    """
    word = kind_word(span)
    if name is None or name.rstrip() == word:
        return set_cell_size(word, cells)
    return set_cell_size(name, cells - 8) + " " + set_cell_size(word, 7)


def time_words(span: Span, facts: TraceFacts) -> str:
    """When the step began, from the beginning of the run."""
    if span.start is None or facts.start is None:
        return ""
    return offset(span.start - facts.start)


def time_bar(start: float, end: float, total: float, cells: int) -> str:
    """Where in a run of ``total`` seconds a step stands, ``cells`` wide.

    The step fills the cells it touches; a short one leaves one mark.
    """
    if total <= 0:
        return " " * cells
    first = min(cells - 1, max(0, int(start / total * cells)))
    last = min(cells - 1, max(first, int(end / total * cells)))
    if first == last:
        part = (end - start) / total * cells
        glyph = "▏" if part < 0.3 else "▌" if part < 0.75 else "█"
        return " " * first + glyph + " " * (cells - first - 1)
    return " " * first + "█" * (last - first + 1) + " " * (cells - last - 1)


def bar_words(span: Span, facts: TraceFacts) -> str:
    """The step's stretch of the run's time, as a bar."""
    if span.start is None or facts.start is None:
        return f"▕{' ' * BAR_CELLS}▏"
    end = span.start if span.end is None else span.end
    start = span.start - facts.start
    return f"▕{time_bar(start, end - facts.start, facts.total, BAR_CELLS)}▏"


def whole_words(span: Span) -> str:
    """What the row would say of the step if it were wide enough."""
    text = span.preview
    if "\x1b" in text:
        text = COLOUR_SEQUENCE.sub("", text)
    text = one_line(text)
    named = span.kind is SpanKind.TOOL_CALL and span.name and span.name not in SHELLS
    if not named or span.name == text.partition(" ")[0]:
        return text
    return f"{one_line(span.name or '')} {text}"


def fold_words(fold: Fold, trace: Trace) -> str:
    """What a fold's line says of the steps that it hides."""
    places = f"(#{fold.hidden_from + 1} to #{fold.end})"
    if isinstance(fold, FoldedRun):
        first = trace.span(fold.first)
        again = f"×{fold.times - 1} {'nearly ' if fold.near else ''}the same again"
        return f"{again}: {one_line(first.name or kind_word(first))} {places}"
    return f"{steps_words(fold.end - fold.first)} of {one_line(fold.agent)} {places}"


def under_words(fold: Fold) -> str:
    """What the row of a step says of those folded under it."""
    words = f"⋮ {steps_words(fold.end - fold.hidden_from)}"
    return (
        f"{words} of {one_line(fold.agent, 20)}"
        if isinstance(fold, FoldedSteps) and fold.agent
        else words
    )


def steps_words(count: int) -> str:
    """So many steps, in words."""
    return "1 step" if count == 1 else f"{count} steps"


def _with_room(marks: Sequence[GutterMark]) -> list[GutterMark]:
    """At most two marks, and how many more there are."""
    if len(marks) > 2:
        return [*marks[:2], GutterMark(f"+{len(marks) - 2}", MarkKind.MORE)]
    return list(marks)


REMEMBERED: Final = 1024
"""Rows of which it is kept that they showed a whole text: more than are kept as drawn."""

WORTH_FOLDING: Final = 2
"""From how many steps out of sight on a run says in its first row that it can be folded."""


class TimelineLines(VirtualLines):
    """Draws the spans of a trace with their marks; what it shows is set from outside."""

    css_prefix = "timeline"
    css_parts = (
        *("cursor", "range", "unread", "quiet", "text", "reasoning", "tool", "user", "agent"),
        *("error", "own", "suggestion", "other", "match"),
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.trace: Trace | None = None
        self.rows = TimelineRows()
        self.marks = NO_MARKS
        self.read: Set[str] = frozenset()
        self.range: tuple[int, int] | None = None
        self.matches: Container[int] = frozenset()
        self.facts = TraceFacts()
        self.background = BackgroundIndex()
        self._shown_unread: set[int] = set()
        self._shown_found: dict[int, tuple[str, str]] = {}
        self._shown_whole: LRUCache[int, str] = LRUCache(REMEMBERED)
        self._columns_for: tuple[int, TraceFacts, int] | None = None
        self._bar = True
        self._names_for: tuple[tuple[str, ...], int] | None = None
        self._names_known: Mapping[str, str] = {}
        self._columns_known = Columns(0, 0, 0, 0)

    @property
    def row_count(self) -> int:
        """One row a span, less what is folded or not shown."""
        return len(self.rows)

    def show_marks(self, marks: GutterMarks) -> None:
        """Show these marks; only rows on screen whose marks changed are rendered again."""
        old, self.marks = self.marks, marks
        self.redraw_where(lambda row: self._marks_of(row, old) != self._marks_of(row, marks))

    def show_read(self, read: Set[str]) -> None:
        """Show which spans were read, by key; the set is held, not copied.

        Only rows on screen that look different by now are rendered again.
        """
        self.read = read
        number = 1 + self._columns().number
        self.redraw_where(lambda row: (row in self._shown_unread) != self._unread(row), number)

    def show_bar(self, shown: bool) -> None:
        """Show when each step was, or leave these columns to its text."""
        if shown != self._bar:
            self._bar, self._columns_for = shown, None
            self.rows_changed()

    def show_found(self) -> None:
        """Show what was found behind the screen: how long the run is, and where steps repeat."""
        self.redraw_where(lambda row: self._shown_found.get(row) != self._found(row))

    def show_range(self, span_range: tuple[int, int] | None) -> None:
        """Show which spans are marked for a label."""
        old, self.range = self.range, span_range
        if old != span_range:
            self.redraw_where(
                lambda row: (
                    _in_range(self.rows.index_at(row), old)
                    != _in_range(self.rows.index_at(row), span_range)
                )
            )

    def rows_changed(self) -> None:
        """Forget rendered rows and measure anew."""
        self._shown_unread.clear()
        self._shown_found.clear()
        self._shown_whole.clear()
        super().rows_changed()

    def fully_shown(self) -> list[str]:
        """Keys of the spans on screen whose whole text stands in their row, as it was drawn."""
        known = (self._shown_whole.get(row) for row in self.rows_on_screen())
        return [key for key in known if key is not None]

    def _columns(self) -> Columns:
        # The trace may have grown meanwhile: rows of one screen have the same columns all the same.
        asked = (self.rows.spans, self.facts, self.lines_area.width)
        if asked != self._columns_for:
            self._columns_for = asked
            self._columns_known = Columns.of(*asked, bar=self._bar)
        return self._columns_known

    def _names(self, cells: int) -> Mapping[str, str]:
        """What those who act are called in the rows; nothing where there is only one."""
        asked = (self.facts.agents, cells)
        if asked != self._names_for:
            self._names_for = asked
            self._names_known = names_apart(asked[0], cells) if len(asked[0]) > 1 < cells else {}
        return self._names_known

    def _name_of(self, span: Span, cells: int) -> str | None:
        names = self._names(cells)
        # Of a trace that is still being read more may act than is known.
        return names.get(span.agent, padded(one_line(span.agent), cells)) if names else None

    def _unread(self, row: int) -> bool:
        index, fold = self.rows.at(row)
        assert self.trace is not None
        return fold is None and self.trace.span(index).key not in self.read

    def _marks_of(self, row: int, marks: GutterMarks) -> tuple[GutterMark, ...]:
        """The marks on what a row stands for."""
        index, fold = self.rows.at(row)
        if fold is not None:
            return marks.within(fold.hidden_from, fold.end)
        under = self.rows.folded_under(index)
        if under is None:
            return marks.at(index)
        if under.hidden_from == index + 1:
            return marks.within(index, under.end)
        both = dict.fromkeys((*marks.at(index), *marks.within(under.hidden_from, under.end)))
        return tuple(sorted(both, key=lambda mark: list(MarkKind).index(mark.kind)))

    def _tag(self, row: int) -> str:
        """What is said at the end of a row of what is folded under it, or could be folded."""
        index, fold = self.rows.at(row)
        if fold is not None or self.rows.filtered:
            return ""
        under = self.rows.folded_under(index)
        if under is not None:
            return under_words(under)
        run = self.background.repeats.run_at(index)
        if run is None or run.first != index or run.end - run.hidden_from < WORTH_FOLDING:
            return ""
        if self.rows.folded_at(index):
            return ""
        assert self.trace is not None
        at_once = run.period == 1 and self.trace.span(index).kind is SpanKind.TOOL_CALL
        return f"{run.times} calls at once" if at_once else f"repeated {run.times}×"

    def _found(self, row: int, span: Span | None = None) -> tuple[str, str]:
        """What of a row rests on what is found behind the screen."""
        index, fold = self.rows.at(row)
        assert self.trace is not None
        bar = fold is None and self._columns().bar
        if not bar:
            return self._tag(row), ""
        return self._tag(row), bar_words(span or self.trace.span(index), self.facts)

    def render_row(self, row: int, width: int) -> Strip:
        """One span, or the line of a fold."""
        trace = self.trace
        assert trace is not None
        index, fold = self.rows.at(row)
        at_cursor, in_range = row == self.cursor, _in_range(index, self.range)
        base = self.rich_style
        if at_cursor:
            base += self._part("cursor")
        elif in_range:
            base += self._part("range")
        edge = "▌" if at_cursor else "┃" if in_range and fold is None else " "
        # A change of style costs more bytes than all the blanks of a row.
        parts = [Segment(edge, base + self._part("quiet" if edge == " " else "agent"))]
        span, tail = trace.span(index), _with_room(self._marks_of(row, self.marks))
        found = self._found(row, span)
        self._shown_found[row], tag = found, found[0]
        cells = _cells_of(tail)
        if fold is None:
            with_tag = cells + (cell_len(tag) + 1 if tag else 0)
            parts += self._span_parts(row, span, width, with_tag, base)
            if tag:
                parts.append(Segment(f" {tag}", base + self._part("quiet")))
        else:
            lead = self._columns().lead
            room = max(4, width - lead - cells - 1)
            quiet = base + self._part("quiet")
            parts.append(Segment(f"{'⋮':>{self._columns().number}} ".ljust(lead - 1), quiet))
            parts.append(Segment(padded(fold_words(fold, trace), room), quiet))
        for mark in tail:
            parts += [Segment(" ", base), Segment(mark.shown, base + self._mark_style(mark))]
        return Strip(parts).adjust_cell_length(width, base).simplify()

    def _span_parts(
        self, row: int, span: Span, width: int, tail: int, base: Style
    ) -> list[Segment]:
        columns, quiet = self._columns(), base + self._part("quiet")
        if span.key in self.read:
            self._shown_unread.discard(row)
            number = quiet
        else:
            self._shown_unread.add(row)
            number = base + self._part("unread")
        parts = [Segment(f"{span.index + 1:>{columns.number}} ", number)]
        if columns.time:
            parts.append(Segment(f"{time_words(span, self.facts):>{columns.time}} ", quiet))
        if columns.bar:
            parts.append(Segment(f"{bar_words(span, self.facts)} ", quiet))
        who = who_words(span, self._name_of(span, columns.who - 8), columns.who)
        whole, room = whole_words(span), columns.room(width, tail)
        if span.whole and cell_len(whole) <= room:
            self._shown_whole[row] = span.key
        else:
            self._shown_whole.discard(row)
        text = padded(whole, room)
        if not tail and span.index not in self.matches:
            text = set_cell_size(text, cell_len(text) + 1)
        return [
            *parts,
            Segment(f"{who} ", base + self._who_style(span)),
            Segment(text, base + self._text_style(span)),
        ]

    def _who_style(self, span: Span) -> Style:
        if span.status is SpanStatus.ERROR:
            return self._part("error")
        if span.kind is SpanKind.TOOL_CALL:
            return self._part("tool")
        if span.kind is SpanKind.MESSAGE:
            return self._part("user" if span.role is Role.USER else "agent")
        return self._part("quiet")

    def _text_style(self, span: Span) -> Style:
        if span.index in self.matches:
            return self._part("match")
        if span.status is SpanStatus.ERROR:
            return self._part("error")
        if span.kind is SpanKind.REASONING:
            return self._part("reasoning")
        if span.kind in (SpanKind.TOOL_RESULT, SpanKind.LOG):
            return self._part("quiet")
        return self._part("text")

    def _mark_style(self, mark: GutterMark) -> Style:
        known = mark.kind in (MarkKind.OWN, MarkKind.SUGGESTION)
        return self._part(mark.kind.value if known else "other")


def _in_range(index: int, span_range: tuple[int, int] | None) -> bool:
    return span_range is not None and min(span_range) <= index <= max(span_range)


def _cells_of(marks: Sequence[GutterMark]) -> int:
    return sum(cell_len(mark.shown) + 1 for mark in marks)


AT_ONCE: Final = 256
"""Spans that are looked at before the first paint: as many as a screen may hold."""

TOLD_EVERY: Final = 0.25
TOLD_TO_KEYS: Final = 1.0
"""Seconds between two reports of what was read and found in the background; while keys come they
are rarer, as a key that comes with one waits until it is drawn."""


class Timeline(TimelineLines):
    """Rows of spans. ``index`` is the span under the cursor, whatever is folded.

    One thread reads the trace on, where that is asked for, and looks at its spans; the timeline
    takes in what came of it a few times a second, and tells of that by ``IndexGrown``.
    """

    tells_size = True

    @dataclass
    class IndexGrown(Message):
        """More of the trace was read or looked at in the background; ``done`` when nothing is left
        to do."""

        trace: Trace
        facts: TraceFacts
        done: bool

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._reads = False
        self._looking = False
        self._at_work = Lock()
        self._here = 0
        self._only: Sequence[int] | None = None
        self._followed_since: int | None = None
        self.trail = Trail()
        """Where one has come from."""

    def on_resize(self, event: events.Resize) -> None:
        """Keep the cursor's row on screen."""
        self.show_row(self.cursor, centre=True)

    @property
    def index(self) -> int:
        """The span under the cursor; for a fold the first span that it hides."""
        return self.rows.index_at(self.cursor) if len(self.rows) else self._here

    @property
    def fold_here(self) -> Fold | None:
        """The fold whose line the cursor stands on."""
        return self.rows.at(self.cursor)[1]

    @property
    def filtered(self) -> bool:
        """Whether only some spans are shown."""
        return self.rows.filtered

    def show_only(self, indices: Sequence[int] | None) -> None:
        """Show only these spans (sorted); None shows all again.

        The cursor stays on its span where that is shown, else it goes to the nearest one; that
        is posted as ``Moved``. The sequence is held, not copied: when more is found, it may be
        added to its end and given again, or another one given. What is folded comes back with
        the other spans. Where nothing is shown, ``index`` is the span that the cursor was on.
        """
        here, line = self.index, self.cursor - round(self.scroll_y)
        self._here = here
        rows = len(self.rows)
        more = self.filtered and indices is self._only and rows > 0
        self._only = indices
        self.rows.show_only(indices)
        if more:
            self.rows_grown(rows)
            return
        self._keep_place(here, line)
        if self.index != here:
            self.post_message(self.Moved(self, self.cursor))

    def _keep_place(self, index: int, line: int) -> None:
        """After rows have come or gone: the cursor on this span, on this line of the screen."""
        self.cursor = max(0, min(self.rows.row_of(index), len(self.rows) - 1))
        self.rows_changed()
        self.scroll_to(y=max(0, self.cursor - line), animate=False, force=True)
        self.show_row(self.cursor)

    def show_trace(self, trace: Trace, *, reads: bool = False) -> None:
        """Show another trace, from its first span; with ``reads`` it is read to its end."""
        self.workers.cancel_group(self, "look")
        self.trace, self._reads = trace, reads
        self.rows.clear()
        self.marks, self.read, self.range = NO_MARKS, frozenset(), None
        self.matches = frozenset()
        self.facts, self.background, self._looking = TraceFacts(), BackgroundIndex(), False
        self._only = self._followed_since = None
        self.trail = Trail()
        self.cursor = self._here = 0
        self.scroll_to(y=0, animate=False, force=True)
        if len(trace):
            self.background.step(trace, AT_ONCE)
            if trace.loaded.complete:
                self.background.peek(trace)
        self.grown()
        self.rows_changed()

    def grown(self) -> None:
        """Take in that the trace has gained spans; they are looked at in the background."""
        self._take_in(self.background.facts)

    def look_for_repeats(self) -> None:
        """From here on runs of repeated steps are looked for, in the background."""
        self.background.wanted = True
        self._look_further()

    def on_timeline_index_grown(self, message: IndexGrown) -> None:
        """Show what was read and found where it changes what is on screen."""
        if message.trace is not self.trace:
            message.stop()
            return
        self._looking = self._looking and not message.done
        if self.app.screen is not self.screen and not message.done:
            # Under a dialog every change has the whole screen drawn anew; this one can wait.
            message.stop()
            return
        self._take_in(message.facts)
        self.show_found()

    def _take_in(self, facts: TraceFacts) -> None:
        trace = self.trace
        if trace is None:
            return
        columns, rows = self._columns(), len(self.rows)
        names = self._names(columns.who - 8)
        self.rows.grow(len(trace))
        self.facts = facts
        if columns != self._columns() or not names.items() <= self._names(columns.who - 8).items():
            self.rows_changed()
        elif rows != len(self.rows):
            self.rows_grown(rows)
        self._follow_end(trace)
        self._look_further()

    def rows_grown(self, old: int) -> None:
        """Rows have come behind the first ``old`` ones, which show what they did."""
        if not self.show_vertical_scrollbar:
            super().rows_grown(old)
            return
        # A size that is set in the usual way has the whole screen laid out anew; here nothing but
        # the scroll bar depends on it.
        self.set_reactive(Widget.virtual_size, Size(self.virtual_size.width, self.row_count))
        self.vertical_scrollbar.window_virtual_size = self.row_count
        for row in self.rows_on_screen():
            if row >= old:
                self.redraw_row(row)

    # Behind the screen

    def hold(self) -> bool:
        """Let nothing be read behind the screen until ``release``; False while something is."""
        trace = self.trace
        if trace is None or self._looking or not self._reads or not trace.loaded.complete:
            return False
        self._looking = True
        return True

    def release(self) -> None:
        """Let what comes be read again."""
        self._looking = False

    def regrown(self) -> None:
        """Take in that the trace was read anew: more may be known of any span."""
        self.background.look_again()
        self.grown()

    def _look_further(self) -> None:
        """Begin to look at what was not looked at, unless that is being done."""
        trace = self.trace
        if trace is None or self._looking:
            return
        unread = self._reads and not trace.loaded.complete
        if unread or not self.background.complete(trace):
            self._looking = True
            # Two threads that compute share one interpreter: the screen is drawn first.
            self.call_after_refresh(self._begin, trace)

    def _begin(self, trace: Trace) -> None:
        if trace is self.trace and self.is_attached:
            self._look_on(trace, self.background)

    @work(thread=True, group="look", exclusive=True)
    def _look_on(self, trace: Trace, background: BackgroundIndex) -> None:
        worker = get_current_worker()
        told = monotonic()
        with self._at_work:  # only one thread may read a trace on, and the last may not be over yet
            for worth_showing in index_more(trace, background, reads=self._reads):
                if worker.is_cancelled:
                    return
                now = monotonic()
                if worth_showing or now - told > (
                    TOLD_TO_KEYS if self._keys_come() else TOLD_EVERY
                ):
                    told = now
                    self.post_message(self.IndexGrown(trace, background.facts, False))
        self.post_message(self.IndexGrown(trace, background.facts, True))

    # The end of a trace that is still being read

    @property
    def follows_end(self) -> bool:
        """Whether the cursor stays on the last span that is known while the trace is read."""
        trace = self.trace
        return self._followed_since is not None and not (trace is None or trace.loaded.complete)

    def move_to_end(self) -> None:
        """Go to the last span, and to each that comes to it, until a key is pressed or something
        else is looked at."""
        self.move_to(self.row_count - 1)
        self.stay_at_end()

    def stay_at_end(self) -> None:
        """Keep the cursor on the last span while more arrive, if it is there now."""
        if self.cursor == self.row_count - 1 and not self.filtered:
            self._followed_since = self._input_delivered()

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Put the cursor on ``row`` (clamped) and bring it on screen."""
        self._followed_since = None
        super().move_to(row, centre=centre)

    def _follow_end(self, trace: Trace) -> None:
        since = self._followed_since
        if since is None:
            return
        stays = self._input_delivered() == since and self.cursor in self.rows_on_screen()
        self._followed_since = None
        if stays and not self.filtered:
            if self.cursor != self.row_count - 1:
                self.move_to(self.row_count - 1)
            self._followed_since = since

    def _keys_come(self) -> bool:
        app = self.app
        return isinstance(app, HasInputQueue) and app.keys_come

    def _input_delivered(self) -> int:
        app = self.app
        return app.input_delivered if isinstance(app, HasInputQueue) else 0

    def go_to(self, index: int) -> None:
        """Put the cursor on a span; a fold that hides it is opened, and what is not shown comes
        back with all others. Where one was is remembered (``trail``)."""
        self.trail.left(self.index, index)
        self.bring(index)

    def go_to_named(self, text: str) -> bool:
        """Go to a span by its number (from 1) or its key; False where there is none."""
        trace, number = self.trace, text.strip().removeprefix("#")
        if trace is None:
            return False
        if number.isdecimal() and 1 <= int(number) <= len(trace):
            index: int | None = int(number) - 1
        else:
            index = trace.index_of(text.strip())
        if index is not None:
            self.go_to(index)
        return index is not None

    def bring(self, index: int) -> None:
        """Put the cursor on a span as ``go_to`` does, on one's way back or forth."""
        hiding = self.rows.hiding(index)
        if self.rows.filtered and not self.rows.shows(index):
            self.rows.show_only(None)
            hiding = self.rows.hiding(index)
            self.rows_changed()
        if hiding is not None and index != self.rows.index_at(self.rows.row_of(index)):
            self.rows.unfold(hiding)
            self.rows_changed()
        self.move_to(self.rows.row_of(index), centre=True)

    def toggle_fold(self) -> Fold | None:
        """Fold what the step under the cursor is a part of, or unfold it; None for nothing.

        A sub-agent's first step folds all of its steps, one in a run of equal steps the run, any
        other what belongs under it.
        """
        trace = self.trace
        if trace is None or not len(trace) or self.filtered:
            return None
        index, line = self.index, self.cursor - round(self.scroll_y)
        fold = self.rows.folded_at(index)
        if fold is not None:
            self.rows.unfold(fold)
        else:
            fold = self._foldable(trace, index)
            if fold is None:
                return None
            self.rows.fold(fold)
        self._keep_place(index, line)
        return fold

    def _foldable(self, trace: Trace, index: int) -> Fold | None:
        steps = self.background.sub_agents.beginning_at(index)
        if steps is not None and steps[1] - steps[0] > 1:
            return steps_of_sub_agent(trace, *steps)
        return (
            self.background.repeats.run_at(index)
            or run_at(index, len(trace), lambda i: step_signature(trace.span(i)))
            or steps_under(trace, index, self.background.sub_agents)
        )
