"""The page of a mode: what the taxonomy says, what was agreed about it, and decided cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

from rich.segment import Segment
from textual import on, work
from textual.app import ComposeResult
from textual.strip import Strip
from textual.worker import get_current_worker

from mast_tui.adjudication import (
    Case,
    GuidelineBook,
    ModePage,
    decided_words,
    mode_page,
    targets_taken,
)
from mast_tui.errors import MastError
from mast_tui.gold import Guideline, Order
from mast_tui.gold.overlaps import in_reading_order
from mast_tui.safe_text import display_lines, one_line
from mast_tui.session.visibility import record_reveal
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.dialogs.note import NoteScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.styles import BASE_SCREEN, GUIDELINES
from mast_tui.ui.table_screen import OpensTraces
from mast_tui.ui.text.layout import wrapped
from mast_tui.ui.widgets.taxonomy_panel import definition_of
from mast_tui.ui.widgets.title_bar import TitleBar
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import place_words, plain_title
from mast_tui.writes import piece_of_work

MOST_PLACES = 3
"""Places of a case that are named."""


@dataclass(frozen=True, slots=True)
class PageParagraph:
    """A paragraph of the page: a first line in a style, and lines that stand under it more quietly.

    ``entry`` is the guideline or the case that it is about.
    """

    style: str
    text: str
    below: tuple[str, ...] = ()
    entry: Guideline | Case | None = None


def page_blocks(
    page: ModePage,
    taxonomy: Taxonomy,
    name_of: Callable[[str], str],
    order_of: Callable[[str], Order],
    *,
    how_to_write: str = "",
) -> list[PageParagraph]:
    """The blocks of a page. ``name_of`` and ``order_of`` are of a trace, by its id."""
    blocks = [
        PageParagraph("heading", "Definition"),
        PageParagraph("text", definition_of(page.mode, taxonomy)),
        PageParagraph("heading", "What we agreed"),
    ]
    blocks += [_guideline_block(one, name_of) for one in page.guidelines]
    if not page.guidelines:
        blocks.append(PageParagraph("text", f"Nothing is written down yet.{how_to_write}"))
    cases = [list(same) for _, same in groupby(page.cases, _step_of)]
    count = len(cases)
    blocks.append(PageParagraph("heading", f"Decided cases: {count}" if count else "Decided cases"))
    blocks += [_case_block(same, name_of, order_of(same[0].trace_id)) for same in cases]
    if page.hidden:
        more = "more case is" if page.hidden == 1 else "more cases are"
        words = f"{page.hidden} {more} in traces that you have not finished."
        blocks.append(PageParagraph("text", words))
    elif not page.cases:
        blocks.append(PageParagraph("text", "None yet."))
    return blocks


def _guideline_block(guideline: Guideline, name_of: Callable[[str], str]) -> PageParagraph:
    below = f"{one_line(guideline.written_by)} · {guideline.written_at[:10]}"
    if guideline.trace_id is not None:
        below += f" · at {one_line(name_of(guideline.trace_id))}"
    return PageParagraph("guideline", guideline.text, (below,), guideline)


def _step_of(case: Case) -> tuple[str, str, str, str]:
    """What the places that were decided in one step have in common."""
    decision = case.decision
    single = decision.item if decision.is_verdict else ""
    return case.trace_id, decision.decided_by, decision.decided_at, single


def _case_block(
    cases: Sequence[Case], name_of: Callable[[str], str], order: Order
) -> PageParagraph:
    """What was decided in one step: a verdict, or places."""
    decision = cases[0].decision
    value = decided_words([case.decision for case in cases])
    words = f"{one_line(name_of(cases[0].trace_id))}: {value}"
    taken = targets_taken(case.decision for case in cases)
    targets = in_reading_order(taken, lambda target: target, order)
    places = [place_words(target, order) for target in targets[:MOST_PLACES]]
    if places:
        more = " …" if len(targets) > MOST_PLACES else ""
        words += f" at {', '.join(places)}{more}"
    below = list(dict.fromkeys(case.decision.reason for case in cases if case.decision.reason))
    below.append(f"{one_line(decision.decided_by)} · {decision.decided_at[:10]}")
    return PageParagraph("case", words, tuple(below), cases[0])


INDENT: Final = 2
MOST_LINES: Final = 200
"""Rows that one paragraph may take."""

WIDEST: Final = 100
"""Cells beyond which lines are hard to read."""

_GLYPHS: Final = {"guideline": "• ", "case": "→ "}


class _PageRow(NamedTuple):
    """One row: its block, None between two of them, and what it shows."""

    block: PageParagraph | None
    text: str
    style: str


class PageLines(VirtualLines):
    """Blocks wrapped to the width; the cursor stands on a row, keys work on its entry."""

    css_prefix = "page-lines"
    css_parts = ("cursor", "heading", "text", "guideline", "case", "below")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.blocks: Sequence[PageParagraph] = ()
        self._rows: list[_PageRow] = []

    @property
    def row_count(self) -> int:
        """Rows of all blocks."""
        return len(self._rows)

    @property
    def block(self) -> PageParagraph | None:
        """The block under the cursor."""
        return self._rows[self.cursor].block if self._rows else None

    def show(self, blocks: Sequence[PageParagraph], *, stay: bool) -> None:
        """Show a page; with ``stay`` the cursor keeps its row, else it begins at the top."""
        self.blocks = blocks
        if not stay:
            self.cursor = 0
            self.scroll_to(y=0, animate=False, force=True)
        self.rows_changed()
        self.show_row(self.cursor)

    def rows_changed(self) -> None:
        """Wrap the texts to the width."""
        width = min(WIDEST, self.lines_area.width)
        rows: list[_PageRow] = []
        for block in self.blocks:
            if rows and block.style == "heading":
                rows.append(_PageRow(None, "", "text"))
            rows += _rows_of(block, width)
        self._rows = rows
        super().rows_changed()

    def next_entry(self) -> bool:
        """Put the cursor on the next guideline or case, around the end; False for none."""
        here = self.block
        for distance in range(1, len(self._rows) + 1):
            row = (self.cursor + distance) % len(self._rows)
            block = self._rows[row].block
            if block is not None and block is not here and block.entry is not None:
                self.move_to(row)
                return True
        return False

    def render_row(self, row: int, width: int) -> Strip:
        """One row of the page."""
        line = self._rows[row]
        base = self.row_style(row)
        bar = Segment("▌" if row == self.cursor else " ", base + self._part("case"))
        text = Segment(line.text, base + self._part(line.style))
        return Strip([bar, text]).adjust_cell_length(width, base)


def _rows_of(block: PageParagraph, width: int) -> list[_PageRow]:
    if block.style == "heading":
        return [_PageRow(block, block.text, block.style)]
    cells = max(8, width - 1 - INDENT)
    rows = []
    head = _GLYPHS.get(block.style, "  ")
    for line in block.text.split("\n"):
        for part in wrapped(line, cells, MOST_LINES) or [""]:
            rows.append(_PageRow(block, head + part, block.style))
            head = "  "
    for words in block.below:
        for line in display_lines(words):
            rows += [
                _PageRow(block, f"  {part}", "below") for part in wrapped(line, cells, MOST_LINES)
            ]
    return rows


MOST_READ: Final = 40
"""Traces that are read so that a page can name places by their numbers."""

WRITES: Final = ("write", "edit", "take_back")
"""Actions that change a page."""


class GuidelinesScreen(OpensTraces):
    """One mode after the other; ``mode_slug`` is the first.

    With ``may_write`` guidelines are written here, those that follow from a decision with it as
    their ``occasion`` (trace id and item). ``go`` is asked first when a case is chosen: it goes
    there where it can, and says whether it did; else the trace opens in the annotate screen.
    """

    CSS_PATH = [BASE_SCREEN, GUIDELINES]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    AUTO_FOCUS = "#page"
    where = Where.GUIDELINES

    def __init__(
        self,
        mode_slug: str,
        *,
        may_write: bool = False,
        occasion: tuple[str, str] | None = None,
        go: Callable[[Case], bool] | None = None,
    ) -> None:
        super().__init__()
        self.mode_slug = mode_slug
        self.may_write = may_write
        self.keys_left_out = () if may_write else WRITES
        self._occasion = occasion
        self._occasion_mode = mode_slug
        self._go = go
        self._page: ModePage | None = None
        self._at_hand: TraceLoader | None = None

    def compose_panes(self) -> ComposeResult:
        """The page."""
        yield PageLines(id="page")

    @property
    def main_list(self) -> PageLines:
        """The page."""
        return self.query_one(PageLines)

    def on_mount(self) -> None:
        """Read the page as soon as the workspace is open."""
        self.show_words("Reading what was agreed …")
        self.show_title()
        self.mast.workspace.when_ready(self._read)

    def show_title(self) -> None:
        """Which mode, and who reads."""
        taxonomy = self.mast.taxonomy
        mode = taxonomy.mode(self.mode_slug)
        place = taxonomy.modes.index(mode) + 1
        of = f"{place} of {len(taxonomy.modes)}"
        self.title_bar.show(("What we agreed", f"{mode.code} {mode.name}", of), self.who())
        self.main_list.border_title = plain_title(f"{mode.code} {mode.name}")

    def written_elsewhere(self) -> None:
        """What waited may be sent."""
        if self.query(TitleBar):
            self.show_title()

    # Reading

    @work(thread=True, group="page", exclusive=True)
    def _read(self, opened: OpenWorkspace) -> None:
        worker, mode = get_current_worker(), self.mode_slug
        known = list(self.mast.catalog.traces.values())
        workspace, taxonomy = opened.workspace, opened.taxonomy
        try:
            with workspace.as_known():
                page = mode_page(workspace, taxonomy, mode, reader=opened.annotator)
                shown = [case.trace_id for case in page.cases]
                record_reveal(workspace, opened.annotator, taxonomy.ref, shown)
                at_hand = self._at_hand or TraceLoader(workspace, known)
            self.call_later(self._take_page, page, at_hand)
            without_order = (
                case.trace_id
                for case in page.cases
                if at_hand.lacks_order(case.trace_id, case.decision.targets)
            )
            more = at_hand.read_more(without_order, MOST_READ, lambda: worker.is_cancelled)
        except (MastError, OSError) as error:
            self.call_later(self._not_read, mode, error)
            return
        if more:
            self.call_later(self._name_places, mode)

    def _take_page(self, page: ModePage, at_hand: TraceLoader) -> None:
        if page.mode.slug == self.mode_slug:
            stay = self._page is not None and self._page.mode.slug == page.mode.slug
            self._page, self._at_hand = page, at_hand
            self._show_page(stay=stay)

    def _not_read(self, mode: str, error: Exception) -> None:
        if mode == self.mode_slug:
            self.say_error(error)

    def _name_places(self, mode: str) -> None:
        """Name the places by their numbers, now that their traces were read."""
        if mode == self.mode_slug:
            self._show_page(stay=True)

    def _show_page(self, *, stay: bool) -> None:
        page, at_hand = self._page, self._at_hand
        if page is None or at_hand is None:
            return
        self.remove_class("-empty")
        key = self.mast.key_of("guidelines.write")
        how_to_write = (
            f" {key} writes the first one down, in the words that you will want to read again."
        )
        blocks = page_blocks(
            page,
            self.mast.taxonomy,
            at_hand.name_of,
            at_hand.known_order,
            how_to_write=how_to_write if self.may_write else "",
        )
        self.main_list.show(blocks, stay=stay)
        self.main_list.border_subtitle = plain_title(_counts(page))
        self.main_list.focus()

    @on(VirtualLines.Moved, "#page")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.hints.clear()

    @on(VirtualLines.Chosen, "#page")
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        self.action_open()

    # Keys

    def action_entry(self) -> None:
        """The next guideline or case."""
        if not self.main_list.next_entry():
            self.hints.say("Nothing is written down or decided about this mode yet")

    def action_mode(self, step: int) -> None:
        """The page of another mode, around the end."""
        modes = [mode.slug for mode in self.mast.taxonomy.modes]
        self.mode_slug = modes[(modes.index(self.mode_slug) + step) % len(modes)]
        self.hints.clear()
        self.show_title()
        self.mast.workspace.when_ready(self._read)

    def action_open(self) -> None:
        """Go to the decided case under the cursor."""
        block = self.main_list.block
        case = None if block is None else block.entry
        if not isinstance(case, Case):
            key_of = self.mast.key_of
            self.hints.say(
                f"{key_of('guidelines.open')} goes to a decided case: "
                f"{key_of('guidelines.entry')} finds one"
            )
            return
        if self._go is not None and self._go(case):
            self.app.pop_screen()
            return
        first = next((t.first for t in case.decision.targets if t.first is not None), None)
        self.open_at(TraceLocation(case.trace_id, key=first))

    def _say_read_only(self) -> None:
        """Say where guidelines are written."""
        key_of = self.mast.key_of
        self.hints.say(
            "Guidelines are only read here; write them in adjudication "
            f"({key_of('everywhere.adjudicate')}, then {key_of('adjudicate.guidelines')})"
        )

    def action_write(self) -> None:
        """Write down what was agreed about this mode."""
        if not self.may_write:
            self._say_read_only()
            return
        trace_id, item = None, None
        if self._occasion is not None and self._occasion_mode == self.mode_slug:
            trace_id, item = self._occasion

        def written(book: GuidelineBook, text: str) -> Guideline | None:
            return book.write(self.mode_slug, text, trace_id=trace_id, item=item)

        key = self.mast.key_of("everywhere.undo")
        self._ask("", written, f"Written down · {key} takes it back")

    def action_edit(self) -> None:
        """Put the guideline under the cursor otherwise."""
        chosen = self._chosen_guideline()
        if chosen is not None:
            self._ask(chosen.text, lambda book, text: book.edit(chosen.id, text), "Put otherwise")

    def action_take_back(self) -> None:
        """Take the guideline under the cursor off the page."""
        chosen = self._chosen_guideline()
        if chosen is not None:
            key = self.mast.key_of("everywhere.undo")
            words = f"Taken back · {key} brings it back"
            self._change(lambda book: book.take_back(chosen.id), words)

    def action_undo(self) -> None:
        """Take back one's last change on this page."""
        self._step(back=True)

    def action_redo(self) -> None:
        """Do again what was taken back on this page."""
        self._step(back=False)

    def _chosen_guideline(self) -> Guideline | None:
        if not self.may_write:
            self._say_read_only()
            return None
        block = self.main_list.block
        chosen = None if block is None else block.entry
        if isinstance(chosen, Guideline):
            return chosen
        key_of = self.mast.key_of
        self.hints.say(
            f"There is no guideline under the cursor: {key_of('guidelines.entry')} finds one, "
            f"{key_of('guidelines.write')} writes one"
        )
        return None

    def _ask(
        self, value: str, step: Callable[[GuidelineBook, str], Guideline | None], words: str
    ) -> None:
        mode = self.mast.taxonomy.mode(self.mode_slug)

        def written(text: str | None) -> None:
            if text is not None and text.strip():
                self._change(lambda book: step(book, text), words)

        title = f"What we agreed {mode.code} {mode.name} means here"
        self.app.push_screen(NoteScreen(title, value), written)

    def _step(self, *, back: bool) -> None:
        mode = self.mode_slug
        if not self.may_write:
            self._say_read_only()
        elif back:
            nothing = "Nothing of yours to take back on this page"
            key = self.mast.key_of("everywhere.redo")
            words = f"Taken back: {key} does it again"
            self._change(lambda book: book.undo(mode), words, nothing)
        else:
            self._change(lambda book: book.redo(mode), "Done again", "Nothing to do again")

    @piece_of_work
    async def _change(
        self, step: Callable[[GuidelineBook], object], words: str, nothing: str | None = None
    ) -> None:
        """Do ``step`` and say so; or say ``nothing`` where it gives nothing."""
        opened = self.mast.opened
        if opened is None:
            return
        try:
            book = GuidelineBook(opened.workspace, opened.taxonomy, opened.annotator)
            done = await self.writes.run(partial(step, book))
        except MastError as error:
            self.say_error(error)
            return
        if done is None and nothing is not None:
            self.hints.say(nothing)
            return
        self.hints.say(words)
        self.show_title()  # where it waits for a server
        self.mast.workspace.when_ready(self._read)


def _counts(page: ModePage) -> str:
    """How much stands on a page below the definition."""
    written, decided = len(page.guidelines), len(page.cases)
    parts = [f"{written} guideline{'' if written == 1 else 's'}" if written else ""]
    parts.append(f"{decided} decided case{'' if decided == 1 else 's'}" if decided else "")
    return " · ".join(part for part in parts if part)
