"""The taxonomy beside the trace: categories, modes, and how each stands in this trace."""

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
    """How a mode stands: own labels, own verdict, and suggestions that wait for an answer."""

    labels: int = 0
    verdict: VerdictValue | None = None
    pending: int = 0

    @property
    def shown(self) -> str:
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
    """A row for each category that holds modes, and one for each mode, unless it is folded.

    The cursor stands on modes, and on what is folded. A category within others has their names
    before its own, or is indented where the row before it has said them: levels take no rows.
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

    def _show_open(self) -> None:
        """Show the open mode below all others while it is being typed, or was used here."""
        if self.taxonomy is None:
            return
        found = self.taxonomy.open_mode
        wanted = found.slug in self._typed or bool(self._states.get(found.slug, NO_STATE).labels)
        shown = self._rows[-1:] == [found]
        if wanted and not shown and found not in self._rows:
            self._rows = [*self._rows, found]
        elif shown and not wanted:
            self._rows = self._rows[:-1]
            self.cursor = min(self.cursor, len(self._rows) - 1)
        else:
            return
        self.rows_changed()

    @property
    def row_count(self) -> int:
        """Categories and modes."""
        return len(self._rows)

    def show_taxonomy(self, taxonomy: Taxonomy) -> None:
        """Show another taxonomy, with the cursor on its first mode."""
        self.taxonomy = taxonomy
        self._folded = set()
        self._lay_out()
        self.cursor = next((i for i, row in enumerate(self._rows) if isinstance(row, Mode)), 0)

    def _lay_out(self) -> None:
        assert self.taxonomy is not None
        self._rows = []
        for category in self.taxonomy.tree():
            modes = self._within(category)
            if modes:
                self._rows += [category, *(() if category.id in self._folded else modes)]
        self._show_open()
        self.rows_changed()

    def _within(self, category: Category) -> list[Mode]:
        """The modes that stand in a category itself."""
        assert self.taxonomy is not None
        return [mode for mode in self.taxonomy.modes if mode.category == category.id]

    def toggle_fold(self, row: int | None = None) -> None:
        """Fold or unfold the category of a row, by default that of the cursor."""
        if not self._rows:
            return
        item = self._rows[self.cursor if row is None else row]
        at = self.mode
        ident = item.category if isinstance(item, Mode) else item.id
        if not ident:  # the open mode stands in none
            return
        self._folded ^= {ident}
        self._lay_out()
        here = next(i for i, one in enumerate(self._rows) if one == item or _is(one, ident))
        if ident not in self._folded:
            self.cursor = here + 1
        elif at is None or at.category == ident or at not in self._rows:
            self.cursor = here
        else:
            self.cursor = self._rows.index(at)
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
        """Show how each mode stands, by slug."""
        changed = {
            slug for slug in self._states.keys() | states.keys()
            if self._states.get(slug) != states.get(slug)
        }  # fmt: skip
        self._states = states
        self._show_open()
        self._redraw(changed)

    def show_typed(self, slugs: frozenset[str]) -> None:
        """Point out the modes that a first digit leaves open."""
        changed = self._typed ^ slugs
        self._typed = slugs
        self._show_open()
        self._redraw(changed)

    @property
    def mode(self) -> Mode | None:
        """The mode under the cursor."""
        if not self._rows:
            return None
        row = self._rows[self.cursor]
        return row if isinstance(row, Mode) else None

    def go_to(self, slug: str) -> None:
        """Put the cursor on a mode, and unfold where it stands."""
        modes = () if self.taxonomy is None else self.taxonomy.modes
        stands = {mode.category for mode in modes if mode.slug == slug}
        if stands & self._folded:
            self._folded -= stands
            self._lay_out()
        for row, item in enumerate(self._rows):
            if isinstance(item, Mode) and item.slug == slug:
                self.move_to(row)
                return

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Put the cursor on a mode at or beyond ``row``, in the direction of the move."""
        if not self._rows:
            return
        row = max(0, min(row, len(self._rows) - 1))
        step = -1 if row < self.cursor else 1
        while 0 <= row < len(self._rows) and not self._stops(self._rows[row]):
            row += step
        if not 0 <= row < len(self._rows):
            self.show_row(0)
            return
        super().move_to(row, centre=centre)

    def _stops(self, item: Category | Mode) -> bool:
        return isinstance(item, Mode) or item.id in self._folded

    def _redraw(self, slugs: set[str] | frozenset[str]) -> None:
        for row, item in enumerate(self._rows):
            modes = [item] if isinstance(item, Mode) else self._within(item)
            if any(mode.slug in slugs for mode in modes):
                self.redraw_row(row)

    def _category(self, row: int, category: Category, width: int) -> Strip:
        """A category's name after those above it, as far as the row before has not said them."""
        assert self.taxonomy is not None
        base, folded = self.rich_style, category.id in self._folded
        modes = self._within(category)
        if folded and row == self.cursor:
            base += self._part("cursor")
        elif folded and any(mode.slug in self._typed for mode in modes):
            base += self._part("typed")
        style = base + self._part("category")
        path = self.taxonomy.path(category.id)
        before = next((o for o in self._rows[:row][::-1] if isinstance(o, Category)), None)
        told = () if before is None else self.taxonomy.path(before.id)
        same = sum(a == b for a, b in zip(path[:-1], told, strict=False))
        above = "".join(f"{one_line(one.name)} › " for one in path[same:-1])
        right = ""
        if folded:
            states = [self._states.get(mode.slug, NO_STATE) for mode in modes]
            labels, pending = sum(s.labels for s in states), sum(s.pending for s in states)
            right = f" ×{len(modes)} {ModeState(labels, pending=pending).shown}".rstrip()
        mark = " " * (1 + same) if not folded else "▌" if row == self.cursor else " "
        mark += "▸ " if folded else ""
        name = one_line(category.name)
        room = max(3, width - cell_len(mark) - cell_len(right))
        if above and cell_len(above + name) > room:
            # The names above give way, as their modes are told apart by the last.
            above = set_cell_size(above, max(0, room - cell_len(name) - 4)) + "… › "
        text = set_cell_size(above + name, room)
        return Strip([Segment(mark + text + right, style)]).adjust_cell_length(width, base)

    def render_row(self, row: int, width: int) -> Strip:
        """A category's name, or a mode with its state."""
        base = self.rich_style
        item = self._rows[row]
        if isinstance(item, Category):
            return self._category(row, item, width)
        assert self.taxonomy is not None
        if row == self.cursor:
            base += self._part("cursor")
        elif item.slug in self._typed:
            base += self._part("typed")
        state = self._states.get(item.slug, NO_STATE)
        name, code = one_line(item.name), self.taxonomy.keys_of(item)
        if self.taxonomy.coded_by_digits:
            code = item.code
        elif item.code not in (item.slug, code):
            name = f"{one_line(item.code)} {name}"
        right = state.shown
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


def _is(row: Category | Mode, category: str) -> bool:
    return isinstance(row, Category) and row.id == category


def definition_of(mode: Mode, taxonomy: Taxonomy) -> str:
    """What the taxonomy says of a mode, as text for reading beside a trace."""
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
