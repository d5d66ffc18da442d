"""The taxonomy beside the trace: its categories and modes, with their state in the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from mast_tui.columns import padded
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Category, Mode, Taxonomy
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.labels import VerdictValue


class ModeState(Struct, frozen=True):
    """The state of a mode in a trace.

    Attributes:
        labels: The number of the annotator's labels.
        verdict: The annotator's verdict; None if the mode is open.
        pending: The number of suggestions without an answer.
    """

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
    """Rows for the categories with modes, and for the modes in unfolded categories.

    The cursor goes to modes and folded categories. The row of a category also names the categories
    above it. Names that the category row before has shown become an indent.
    """

    css_prefix = "taxonomy-panel"
    css_parts = ("category", "mode", "code", "cursor", "typed", "state", "own")

    def __init__(self, *, id: str | None = None) -> None:
        """Begin without a taxonomy."""
        super().__init__(id=id)
        self.taxonomy: Taxonomy | None = None
        self._rows: list[Category | Mode] = []
        self._folded_ids: set[str] = set()
        """The ids of the folded categories."""
        self._states: Mapping[str, ModeState] = {}
        """The states of modes by their slugs."""
        self._typed_slugs: frozenset[str] = frozenset()
        """The modes whose digits begin with the typed digit."""

    def _update_open_mode_row(self) -> None:
        """Show the row for failures of no mode (the open codes) while it is typed or has labels."""
        if self.taxonomy is None:
            return
        open_code_mode = self.taxonomy.open_code_mode
        has_labels = self._states.get(open_code_mode.slug, NO_STATE).labels > 0
        is_needed = has_labels or open_code_mode.slug in self._typed_slugs
        is_last_row = self._rows[-1:] == [open_code_mode]
        if is_needed and open_code_mode not in self._rows:
            self._rows = [*self._rows, open_code_mode]
        elif is_last_row and not is_needed:
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
        self._folded_ids = set()
        self._compute_rows()
        self.cursor = next(
            (row for row, item in enumerate(self._rows) if isinstance(item, Mode)), 0
        )

    def _compute_rows(self) -> None:
        assert self.taxonomy is not None
        self._rows = []
        for category in self.taxonomy.tree():
            modes = self._modes_in(category)
            if modes:
                self._rows.append(category)
            if category.id not in self._folded_ids:
                self._rows += modes
        self._update_open_mode_row()
        self.rows_changed()

    def _modes_in(self, category: Category) -> list[Mode]:
        """Return the modes directly in a category, without those of its subcategories."""
        assert self.taxonomy is not None
        return [mode for mode in self.taxonomy.modes if mode.category == category.id]

    def toggle_fold(self, row: int | None = None) -> None:
        """Fold or unfold the category of a row, by default that of the cursor.

        After unfolding, the cursor goes to the first mode of the category. After folding, it stays
        on a visible mode, else it goes to the category.
        """
        if not self._rows:
            return
        item = self._rows[self.cursor if row is None else row]
        current_mode = self.mode
        category_id = item.category if isinstance(item, Mode) else item.id
        if not category_id:  # the mode for open codes has no category
            return
        self._folded_ids ^= {category_id}
        self._compute_rows()
        category_row = next(
            row
            for row, candidate in enumerate(self._rows)
            if isinstance(candidate, Category) and candidate.id == category_id
        )
        if category_id not in self._folded_ids:
            self.cursor = category_row + 1  # the first mode
        elif current_mode is not None and current_mode in self._rows:
            self.cursor = self._rows.index(current_mode)
        else:
            self.cursor = category_row
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
        changed_slugs = {
            slug
            for slug in self._states.keys() | states.keys()
            if self._states.get(slug) != states.get(slug)
        }
        self._states = states
        self._update_open_mode_row()
        self._redraw_modes(changed_slugs)

    def show_typed(self, slugs: frozenset[str]) -> None:
        """Highlight the modes whose digits begin with the typed digit."""
        changed_slugs = self._typed_slugs ^ slugs
        self._typed_slugs = slugs
        self._update_open_mode_row()
        self._redraw_modes(changed_slugs)

    @property
    def mode(self) -> Mode | None:
        """The mode under the cursor, or None."""
        if not self._rows:
            return None
        row = self._rows[self.cursor]
        return row if isinstance(row, Mode) else None

    def go_to(self, slug: str) -> None:
        """Put the cursor on a mode, and unfold its category; ignore an unknown mode."""
        modes = () if self.taxonomy is None else self.taxonomy.modes
        category_ids = {mode.category for mode in modes if mode.slug == slug}
        if category_ids & self._folded_ids:
            self._folded_ids -= category_ids
            self._compute_rows()
        for row, item in enumerate(self._rows):
            if isinstance(item, Mode) and item.slug == slug:
                self.move_to(row)
                return

    def move_to(self, row: int, *, in_upper_third: bool = False) -> None:
        """Put the cursor on a row, or on the next possible row in the same direction.

        If there is none, the cursor stays, and the top of the list is shown.

        Args:
            row: The row to begin with.
            in_upper_third: True to put a row that was not visible a third below the top.
        """
        if not self._rows:
            return
        row = max(0, min(row, len(self._rows) - 1))
        step = -1 if row < self.cursor else 1
        while 0 <= row < len(self._rows) and not self._can_have_cursor(self._rows[row]):
            row += step
        if 0 <= row < len(self._rows):
            super().move_to(row, in_upper_third=in_upper_third)
        else:
            self.show_row(0)  # above the first mode there are only categories

    def _can_have_cursor(self, item: Category | Mode) -> bool:
        return isinstance(item, Mode) or item.id in self._folded_ids

    def _redraw_modes(self, slugs: set[str] | frozenset[str]) -> None:
        def has_changed(row: int) -> bool:
            item = self._rows[row]
            if isinstance(item, Mode):
                return item.slug in slugs
            # The row of an unfolded category shows nothing about its modes.
            is_folded = item.id in self._folded_ids
            return is_folded and any(mode.slug in slugs for mode in self._modes_in(item))

        self.redraw_where(has_changed)

    def _render_category(self, row: int, category: Category, width: int) -> Strip:
        """Draw the row of a category. A folded category shows the sums of its modes."""
        base_style = self.rich_style
        is_folded = category.id in self._folded_ids
        modes = self._modes_in(category)
        if is_folded and row == self.cursor:
            base_style += self._part("cursor")
        elif is_folded and any(mode.slug in self._typed_slugs for mode in modes):
            base_style += self._part("typed")
        shared_levels, parents = self._parent_names(row, category)
        sums = ""
        edge = " " * (1 + shared_levels)
        if is_folded:
            edge = "▌▸ " if row == self.cursor else " ▸ "
            states = [self._states.get(mode.slug, NO_STATE) for mode in modes]
            total_state = ModeState(
                labels=sum(state.labels for state in states),
                pending=sum(state.pending for state in states),
            )
            sums = f" ×{len(modes)} {total_state.text}".rstrip()
        name = one_line(category.name)
        name_cells = max(3, width - cell_len(edge) - cell_len(sums))
        if parents and cell_len(parents + name) > name_cells:
            # The parents are cut first, because the last name distinguishes the category.
            parents = set_cell_size(parents, max(0, name_cells - cell_len(name) - 4)) + "… › "
        text = edge + set_cell_size(parents + name, name_cells) + sums
        segment = Segment(text, base_style + self._part("category"))
        return Strip([segment]).adjust_cell_length(width, base_style)

    def _parent_names(self, row: int, category: Category) -> tuple[int, str]:
        """Return how many parents a category shares with the category row before it.

        Also return the names of its other parents.
        """
        assert self.taxonomy is not None
        path = self.taxonomy.path(category.id)
        categories_before = (item for item in self._rows[:row][::-1] if isinstance(item, Category))
        previous_category = next(categories_before, None)
        previous_path: Sequence[Category] = ()
        if previous_category is not None:
            previous_path = self.taxonomy.path(previous_category.id)
        shared_levels = sum(
            parent == other for parent, other in zip(path[:-1], previous_path, strict=False)
        )
        names = [f"{one_line(parent.name)} › " for parent in path[shared_levels:-1]]
        return shared_levels, "".join(names)

    def render_row(self, row: int, width: int) -> Strip:
        """Draw a category, or a mode with its state.

        Args:
            row: The number of the row.
            width: The width of the row in cells.
        """
        item = self._rows[row]
        if isinstance(item, Category):
            return self._render_category(row, item, width)
        base_style = self.row_style(row)
        if row != self.cursor and item.slug in self._typed_slugs:
            base_style += self._part("typed")
        state = self._states.get(item.slug, NO_STATE)
        digits, name = self._digits_and_name(item)
        state_text = f" {state.text}" if state.text else ""
        name_cells = max(3, width - cell_len(digits) - 4 - cell_len(state_text))
        edge = "▌" if row == self.cursor else " "
        segments = [
            Segment(f"{edge} {digits} ", base_style + self._part("code")),
            Segment(padded(name, name_cells), base_style + self._part("mode")),
            Segment(state_text, base_style + self._part("own" if state.labels else "state")),
        ]
        return Strip(segments).adjust_cell_length(width, base_style)

    def _digits_and_name(self, mode: Mode) -> tuple[str, str]:
        """Return the digits to type for a mode, and its name.

        If the codes of the taxonomy are digits, the digits are written as in the code. Another code
        is put before the name.
        """
        assert self.taxonomy is not None
        name = one_line(mode.name)
        if self.taxonomy.coded_by_digits:
            return mode.code, name
        digits = self.taxonomy.keys_of(mode)
        if mode.code not in (mode.slug, digits):
            name = f"{one_line(mode.code)} {name}"
        return digits, name


def definition_of(mode: Mode, taxonomy: Taxonomy) -> str:
    """Return the definition, criteria and fixes of a mode as text.

    Args:
        mode: The mode.
        taxonomy: The taxonomy of the mode.
    """
    lines = [mode.definition.strip()]
    if mode.applies:
        lines += ["", "When", *(f"• {item}" for item in mode.applies)]
    if mode.applies_not:
        lines += ["", "Not when", *(f"• {item}" for item in mode.applies_not)]
    for confusable in mode.confusable:
        other_mode = next((m for m in taxonomy.modes if m.slug == confusable.slug), None)
        name = f"{other_mode.code} {other_mode.name}" if other_mode else confusable.slug
        lines += ["", f"Or {name}?", confusable.difference]
    if mode.fixes:
        lines += ["", "What helps", *(f"• {item}" for item in mode.fixes)]
    return "\n".join(lines)
