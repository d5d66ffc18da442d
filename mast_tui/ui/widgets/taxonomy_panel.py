"""The taxonomy beside the trace: its categories and modes, with their state in the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from mast_tui.columns import shortened
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Category, Mode, Taxonomy
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.labels import VerdictValue


@dataclass(frozen=True, slots=True)
class ModeState:
    """The state of a mode in a trace: own labels, own verdict, suggestions that wait."""

    labels: int = 0
    verdict: VerdictValue | None = None
    pending: int = 0

    @property
    def text(self) -> str:
        """The state in a few cells: ``●2 ◌1``, ``absent``, ``unsure``."""
        parts = []
        if self.labels:
            parts.append("●" if self.labels == 1 else f"●{self.labels}")
        elif self.verdict is not None and self.verdict.value != "present":
            parts.append(self.verdict.value)
        if self.pending:
            parts.append(f"◌{self.pending}")
        return " ".join(parts)


NO_STATE = ModeState()


class TaxonomyPanel(VirtualLines):
    """A row for each category with modes and one for each mode, unless its category is folded.

    The cursor goes to modes and folded categories. A category shows the names of those above it; if
    the previous category row has shown them, it is indented instead. So levels take no rows.
    """

    css_prefix = "taxonomy-panel"
    css_parts = ("category", "mode", "code", "cursor", "typed", "state", "own")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.taxonomy: Taxonomy | None = None
        self._rows: list[Category | Mode] = []
        self._folded: set[str] = set()
        self._states: Mapping[str, ModeState] = {}
        self._typed: frozenset[str] = frozenset()

    def _show_open_mode(self) -> None:
        """Show the row of the open mode while it is typed, or if it is used in the trace."""
        if self.taxonomy is None:
            return
        open_mode = self.taxonomy.open_mode
        needed = open_mode.slug in self._typed or bool(
            self._states.get(open_mode.slug, NO_STATE).labels
        )
        visible = self._rows[-1:] == [open_mode]
        if needed and not visible and open_mode not in self._rows:
            self._rows = [*self._rows, open_mode]
        elif visible and not needed:
            self._rows = self._rows[:-1]
            self.cursor = min(self.cursor, len(self._rows) - 1)
        else:
            return
        self.rows_changed()

    @property
    def row_count(self) -> int:
        """The number of rows for categories and modes."""
        return len(self._rows)

    def show_taxonomy(self, taxonomy: Taxonomy) -> None:
        """Show another taxonomy, with the cursor on its first mode."""
        self.taxonomy = taxonomy
        self._folded = set()
        self._lay_out()
        self.cursor = next((i for i, row in enumerate(self._rows) if isinstance(row, Mode)), 0)

    def _lay_out(self) -> None:
        """Compute the rows: categories with their modes, unless they are folded."""
        assert self.taxonomy is not None
        self._rows = []
        for category in self.taxonomy.tree():
            modes = self._modes_in(category)
            if modes:
                self._rows += [category, *(() if category.id in self._folded else modes)]
        self._show_open_mode()
        self.rows_changed()

    def _modes_in(self, category: Category) -> list[Mode]:
        """Return the modes that belong to a category itself."""
        assert self.taxonomy is not None
        return [mode for mode in self.taxonomy.modes if mode.category == category.id]

    def toggle_fold(self, row: int | None = None) -> None:
        """Fold or unfold the category of a row, by default that of the cursor."""
        if not self._rows:
            return
        item = self._rows[self.cursor if row is None else row]
        current_mode = self.mode
        ident = item.category if isinstance(item, Mode) else item.id
        if not ident:  # the open mode has no category
            return
        self._folded ^= {ident}
        self._lay_out()
        category_row = next(
            i
            for i, candidate in enumerate(self._rows)
            if candidate == item or _is_category(candidate, ident)
        )
        if ident not in self._folded:
            self.cursor = category_row + 1
        elif (
            current_mode is None or current_mode.category == ident or current_mode not in self._rows
        ):
            self.cursor = category_row
        else:
            self.cursor = self._rows.index(current_mode)
        self.show_row(self.cursor)
        self.post_message(self.Moved(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """Fold or unfold a category that is clicked."""
        offset = event.get_content_offset(self)
        row = -1 if offset is None else offset.y + round(self.scroll_y)
        if 0 <= row < len(self._rows) and isinstance(self._rows[row], Category):
            event.prevent_default()
            self.toggle_fold(row)

    def show_states(self, states: Mapping[str, ModeState]) -> None:
        """Show the state of each mode, by slug."""
        changed = {
            slug for slug in self._states.keys() | states.keys()
            if self._states.get(slug) != states.get(slug)
        }  # fmt: skip
        self._states = states
        self._show_open_mode()
        self._redraw(changed)

    def show_typed(self, slugs: frozenset[str]) -> None:
        """Highlight the modes that begin with the typed digit."""
        changed = self._typed ^ slugs
        self._typed = slugs
        self._show_open_mode()
        self._redraw(changed)

    @property
    def mode(self) -> Mode | None:
        """The mode under the cursor, or None."""
        if not self._rows:
            return None
        row = self._rows[self.cursor]
        return row if isinstance(row, Mode) else None

    def go_to(self, slug: str) -> None:
        """Put the cursor on a mode, and unfold its category."""
        modes = () if self.taxonomy is None else self.taxonomy.modes
        categories = {mode.category for mode in modes if mode.slug == slug}
        if categories & self._folded:
            self._folded -= categories
            self._lay_out()
        for row, item in enumerate(self._rows):
            if isinstance(item, Mode) and item.slug == slug:
                self.move_to(row)
                return

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Put the cursor on the first row from ``row`` on that can have it, in the direction of the
        move.

        Args:
            row: The row to begin with.
            centre: Whether to scroll it away from the edges, if it is not visible.
        """
        if not self._rows:
            return
        row = max(0, min(row, len(self._rows) - 1))
        step = -1 if row < self.cursor else 1
        while 0 <= row < len(self._rows) and not self._can_have_cursor(self._rows[row]):
            row += step
        if not 0 <= row < len(self._rows):
            self.show_row(0)
            return
        super().move_to(row, centre=centre)

    def _can_have_cursor(self, item: Category | Mode) -> bool:
        return isinstance(item, Mode) or item.id in self._folded

    def _redraw(self, slugs: set[str] | frozenset[str]) -> None:
        for row, item in enumerate(self._rows):
            modes = [item] if isinstance(item, Mode) else self._modes_in(item)
            if any(mode.slug in slugs for mode in modes):
                self.redraw_row(row)

    def _render_category(self, row: int, category: Category, width: int) -> Strip:
        """Draw a category, with the names of those above it that the previous row does not show."""
        assert self.taxonomy is not None
        base = self.rich_style
        folded = category.id in self._folded
        modes = self._modes_in(category)
        if folded and row == self.cursor:
            base += self._part("cursor")
        elif folded and any(mode.slug in self._typed for mode in modes):
            base += self._part("typed")
        style = base + self._part("category")
        path = self.taxonomy.path(category.id)
        previous = next(
            (item for item in self._rows[:row][::-1] if isinstance(item, Category)), None
        )
        previous_path = () if previous is None else self.taxonomy.path(previous.id)
        shared_levels = sum(a == b for a, b in zip(path[:-1], previous_path, strict=False))
        parents = "".join(f"{one_line(parent.name)} › " for parent in path[shared_levels:-1])
        right = ""
        if folded:
            states = [self._states.get(mode.slug, NO_STATE) for mode in modes]
            labels = sum(s.labels for s in states)
            pending = sum(s.pending for s in states)
            right = f" ×{len(modes)} {ModeState(labels, pending=pending).text}".rstrip()
        if folded:
            mark = "▌▸ " if row == self.cursor else " ▸ "
        else:
            mark = " " * (1 + shared_levels)
        name = one_line(category.name)
        room = max(3, width - cell_len(mark) - cell_len(right))
        if parents and cell_len(parents + name) > room:
            # The names above are cut first, because the last name distinguishes the category.
            parents = set_cell_size(parents, max(0, room - cell_len(name) - 4)) + "… › "
        text = set_cell_size(parents + name, room)
        return Strip([Segment(mark + text + right, style)]).adjust_cell_length(width, base)

    def render_row(self, row: int, width: int) -> Strip:
        """Draw a category, or a mode with its state.

        Args:
            row: The row.
            width: Its width in cells.
        """
        base = self.rich_style
        item = self._rows[row]
        if isinstance(item, Category):
            return self._render_category(row, item, width)
        assert self.taxonomy is not None
        if row == self.cursor:
            base += self._part("cursor")
        elif item.slug in self._typed:
            base += self._part("typed")
        state = self._states.get(item.slug, NO_STATE)
        name = one_line(item.name)
        code = self.taxonomy.keys_of(item)
        if self.taxonomy.coded_by_digits:
            code = item.code
        elif item.code not in (item.slug, code):
            name = f"{one_line(item.code)} {name}"
        right = state.text
        room = max(3, width - cell_len(code) - 4 - (cell_len(right) + 1 if right else 0))
        code_style = base + self._part("code")
        name_style = base + self._part("mode")
        kind = "own" if state.labels else "state"
        right_style = base + self._part(kind)
        return Strip(
            [
                Segment("▌" if row == self.cursor else " ", code_style),
                Segment(f" {code} ", code_style),
                Segment(set_cell_size(shortened(name, room), room), name_style),
                Segment(f" {right}" if right else "", right_style),
            ]
        ).adjust_cell_length(width, base)


def _is_category(row: Category | Mode, category: str) -> bool:
    return isinstance(row, Category) and row.id == category


def definition_of(mode: Mode, taxonomy: Taxonomy) -> str:
    """Return the definition, criteria and fixes of a mode as text.

    Args:
        mode: The mode.
        taxonomy: Its taxonomy.
    """
    lines = [mode.definition.strip()]
    if mode.applies:
        lines += ["", "When", *(f"• {item}" for item in mode.applies)]
    if mode.applies_not:
        lines += ["", "Not when", *(f"• {item}" for item in mode.applies_not)]
    for confusable in mode.confusable:
        other = next((m for m in taxonomy.modes if m.slug == confusable.slug), None)
        name = f"{other.code} {other.name}" if other else confusable.slug
        lines += ["", f"Or {name}?", confusable.difference]
    if mode.fixes:
        lines += ["", "What helps", *(f"• {item}" for item in mode.fixes)]
    return "\n".join(lines)
