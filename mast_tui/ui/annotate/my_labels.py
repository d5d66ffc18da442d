"""The list of the annotator's labels, notes and verdicts on the open trace."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from sys import maxsize
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len, set_cell_size
from textual.binding import Binding, BindingType

from mast_tui.columns import shortened
from mast_tui.labels import Label, Origin, VerdictValue, confidence_words
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.ui.annotate.state import Entry, ModeVerdict, NotedSpan
from mast_tui.ui.context import context_of
from mast_tui.ui.suggestion_wording import name_without_version
from mast_tui.ui.text.layout import wrapped
from mast_tui.ui.widgets.virtual_lines import StyledRow, StyledRows
from mast_tui.ui.wording import IndexOf, counted, place_text, plain_title, span_text

if TYPE_CHECKING:
    from mast_tui.session import Session


_BY_HAND = "by hand"

MIN_WIDTH: Final = 12
"""The least cells for the texts of the list."""


def origin_text(label: Label, judge_of: Callable[[str], str | None]) -> str:
    """Return the origin of a label: ``by hand``, ``suggested by rules, accepted``, ``imported``.

    Args:
        label: A label of the annotator.
        judge_of: Returns the judge of a suggestion by its id, or None if the judge is hidden.
    """
    if label.origin is Origin.MANUAL:
        return _BY_HAND
    if label.origin is Origin.IMPORTED or label.suggestion is None:
        return label.origin.value
    judge = judge_of(label.suggestion)
    if judge is None:
        return label.origin.value
    return f"suggested by {name_without_version(judge)}, {label.origin.value}"


def entries_of(session: Session) -> tuple[Entry, ...]:
    """Return the annotator's labels, then the notes on spans, then the verdicts without labels.

    Labels and notes are in reading order, labels on the whole trace first. Verdicts are in the
    order of the taxonomy.
    """
    trace = session.trace
    modes = session.taxonomy.all_modes
    rank_by_mode = {mode.slug: rank for rank, mode in enumerate(modes)}
    notes = [NotedSpan(key, text) for key, text in session.span_notes.items()]
    verdicts = []
    for mode in modes:
        value = session.verdict(mode.slug)
        if value is not None and value is not VerdictValue.PRESENT:
            verdicts.append(ModeVerdict(mode.slug, value))
    return (
        *sorted(session.labels, key=partial(_reading_order, trace, rank_by_mode)),
        *sorted(notes, key=lambda note: trace.index_of(note.key) or 0),
        *verdicts,
    )


def _reading_order(trace: Trace, rank_by_mode: Mapping[str, int], label: Label) -> tuple[int, ...]:
    """Return a sort key for labels: the position of the target, then that of the mode.

    Spans that are not in the trace come last.
    """
    target = label.target
    first_index = trace.index_of(target.first or "")
    last_index = trace.index_of(target.last or "")
    first_position = maxsize if first_index is None else first_index
    return (
        -1 if target.is_whole else first_position,
        target.char_start or 0,
        maxsize if last_index is None else last_index,
        rank_by_mode.get(label.mode, maxsize),
    )


class MyLabels(StyledRows[Entry]):
    """The list, with some rows for each entry.

    Only the first row of an entry has it as its item, and can have the cursor.
    """

    css_prefix = "my-labels"
    tells_focus = True
    css_parts = ("cursor", "mode", "place", "quote", "note", "quiet")
    edge_part = "mode"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", show=False)]

    def __init__(self, taxonomy: Taxonomy, *, id: str | None = None) -> None:
        """Begin without entries.

        Args:
            taxonomy: The taxonomy of the labels.
            id: The widget's id.
        """
        super().__init__(id=id)
        self._modes: Mapping[str, Mode] = {mode.slug: mode for mode in taxonomy.all_modes}
        self._entries: tuple[Entry, ...] = ()
        self._was_read = False
        """True once the labels of a session were read, so that an empty list means none."""
        # Without a session, no span and no judge is found.
        self._index_of: IndexOf = dict[str, int]().get
        self._judge_of: Callable[[str], str | None] = dict[str, str]().get

    def show(self, session: Session | None) -> None:
        """Show the entries of a session. The cursor stays on its entry or at its position."""
        if session is None:
            self._entries = ()
            self._was_read = False
        else:
            self._was_read = True
            self._entries = entries_of(session)
            self._index_of = session.trace.index_of
            judges = {suggestion.id: suggestion.judge for suggestion in session.suggestions}
            self._judge_of = judges.get
        label_count = sum(isinstance(entry, Label) for entry in self._entries)
        note_count = sum(isinstance(entry, NotedSpan) for entry in self._entries)
        notes_text = f" · {counted(note_count, 'note')} on spans" if note_count else ""
        verdict_count = len(self._entries) - label_count - note_count
        verdicts_text = f" · {counted(verdict_count, 'verdict')}" if verdict_count else ""
        self.border_title = plain_title(f"My labels · {label_count}{notes_text}{verdicts_text}")
        key_of = context_of(self).key_of
        self.border_subtitle = plain_title(
            f"Enter goes there  {key_of('annotate.edit')} edit  {key_of('annotate.remove')} remove"
        )
        self.rows_changed()

    def go_to_label(self, label_id: str) -> None:
        """Put the cursor on a label if it is listed."""
        for row in self._first_rows():
            entry = self.rows[row].item
            if isinstance(entry, Label) and entry.id == label_id:
                self.move_to(row)
                return

    def rows_changed(self) -> None:
        """Lay out the rows for the present width.

        The cursor stays on its entry. If that is gone, the cursor stays at the same position.
        """
        current_entry = self.item
        position = bisect_left(self._first_rows(), self.cursor)
        width = max(MIN_WIDTH, self.scrollable_content_region.width - 1)
        self.rows = [row for entry in self._entries for row in self._rows_of(entry, width)]
        first_rows = self._first_rows()
        if not first_rows:
            message = (
                "No labels on this trace yet: two digits label the span under the cursor."
                if self._was_read
                else "Reading your labels …"
            )
            self.rows = [_label_row(f" {row}", "quiet") for row in wrapped(message, width - 1)]
        else:
            row_at_position = first_rows[min(position, len(first_rows) - 1)]
            entry_rows = (
                row for row in first_rows if _is_same_entry(self.rows[row].item, current_entry)
            )
            self.cursor = next(entry_rows, row_at_position)
        super().rows_changed()
        self.show_row(self.cursor)

    def move_to(self, row: int, *, in_upper_third: bool = False) -> None:
        """Put the cursor on the first row of an entry.

        From inside an entry, a move down goes to the next entry.
        """
        first_rows = self._first_rows()
        if not first_rows:
            return
        row = max(0, min(row, len(self.rows) - 1))
        position = bisect_right(first_rows, row) - 1
        is_inside_entry = first_rows[position] < row
        if is_inside_entry and row > self.cursor and position < len(first_rows) - 1:
            position += 1
        entry_row = first_rows[position]
        super().move_to(entry_row, in_upper_third=in_upper_third)
        # Show all rows of the entry, if they fit.
        end_row = [*first_rows, len(self.rows)][position + 1]
        self.show_row(min(end_row - 1, entry_row + self.lines_area.height - 1))

    def action_choose(self) -> None:
        """Choose the entry under the cursor."""
        if self.item is not None:
            self.post_message(self.Chosen(self, self.cursor))

    def _first_rows(self) -> list[int]:
        """Return the number of the first row of each entry."""
        return [number for number, row in enumerate(self.rows) if row.item is not None]

    def _rows_of(self, entry: Entry, width: int) -> Iterator[StyledRow[Entry]]:
        """Yield the rows of an entry. The first one has the entry as its item."""
        if isinstance(entry, NotedSpan):
            location = span_text(entry.key, self._index_of)
            yield _label_row(shortened(f"✎ note on {location}", width), "place", entry)
            yield from _indented_rows(entry.text, "note", width)
            return
        mode = self._modes.get(entry.mode)
        name = one_line(f"{mode.code} {mode.name}" if mode else entry.mode)
        if isinstance(entry, ModeVerdict):
            value = entry.value.value
            name_width = width - cell_len(value) - 1
            fitted_name = set_cell_size(shortened(name, name_width), name_width)
            yield _label_row(f"{fitted_name} {value}", "quiet", entry)
            return
        yield _label_row(shortened(name, width), "mode", entry)
        details = [place_text(entry.target, self._index_of, quoted=False)]
        if entry.severity is not None:
            details.append(entry.severity.value)
        if entry.confidence is not None:
            details.append(confidence_words(entry.confidence))
        details.append(origin_text(entry, self._judge_of))
        yield from _indented_rows(" · ".join(details), "place", width)
        if entry.target.quote:
            yield from _indented_rows(f"“{entry.target.quote}”", "quote", width, max_rows=3)
        if entry.note:
            yield from _indented_rows(f"✎ {entry.note}", "note", width)


def _label_row(text: str, part: str, entry: Entry | None = None) -> StyledRow[Entry]:
    return StyledRow([(text, part)], entry)


def _indented_rows(
    text: str, part: str, width: int, *, max_rows: int = 12
) -> Iterable[StyledRow[Entry]]:
    """Return the rows of a text, wrapped and indented, at most ``max_rows``."""
    return (_label_row(f"   {row}", part) for row in wrapped(text, width - 3, max_rows))


def _is_same_entry(entry: Entry | None, other: Entry | None) -> bool:
    """Check if two entries are about the same label, span or mode. Their content may differ."""
    match entry, other:
        case Label(), Label():
            return entry.id == other.id
        case NotedSpan(), NotedSpan():
            return entry.key == other.key
        case ModeVerdict(), ModeVerdict():
            return entry.mode == other.mode
        case _:
            return False
