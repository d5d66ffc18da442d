"""The adjudicate screen: what annotators differ on, the evidence, and one key to settle each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Container, Vertical

from mast_tui.adjudication import (
    Adjudication,
    Case,
    Choices,
    ConflictGroup,
    Dispute,
    take_on,
    targets_taken,
)
from mast_tui.errors import MastError
from mast_tui.gold import ConflictKind, Decision
from mast_tui.gold.choice import NOBODY, UNSURE, Choice
from mast_tui.labels import JUDGE_PREFIX, WHOLE_TRACE, Target, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.actions.tables import moves
from mast_tui.ui.adjudicate.conflict_list import ConflictList, RowState
from mast_tui.ui.adjudicate.evidence import EvidencePanes
from mast_tui.ui.adjudicate.items import (
    ItemView,
    QueueContents,
    TraceItems,
    judge_views,
    mode_words,
    outcome,
    read_cases,
)
from mast_tui.ui.adjudicate.queue import Queue
from mast_tui.ui.base_screen import BaseScreen
from mast_tui.ui.context import ShowGuidelines
from mast_tui.ui.dialogs.dialog import Ask
from mast_tui.ui.dialogs.finder import ModeFinder
from mast_tui.ui.dialogs.note import NoteScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.styles import ADJUDICATE, ANNOTATE, BASE_SCREEN
from mast_tui.ui.trace_view.span_view import SpanText
from mast_tui.ui.widgets.sides_panel import MOST_SIDE_KEYS, SidesPanel
from mast_tui.ui.widgets.title_bar import ADJUDICATOR, TitleBar
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import counted, joined, place_words, plain_title
from mast_tui.workspace import WorkspaceError
from mast_tui.workspace.presence import Presence
from mast_tui.writes import HeldKeys, piece_of_work

Result = TypeVar("Result")

TITLE = "Where annotators differ"

QUESTION = (
    "You have not labelled this trace. As its adjudicator you will see what others said and can "
    "no longer label it independently."
)

QUESTION_OF_A_STUDY = (
    "As its adjudicator you will see what others said, and can no longer label this trace, or "
    "label it again, without sight of it."
)


NOT_IN_QUESTION: Final = "This place is not in question: go to a side's place, or back to the queue"

MOVING: Final = frozenset(
    f"adjudicate.{name}"
    for name in (
        *(move.name for move in moves(Where.ADJUDICATE)),
        *("boundary", "agreed", "enter", "text_down", "text_up", "pane", "names"),
    )
) | {"everywhere.back", "everywhere.palette"}
"""Actions of keys that are known while a boundary is moved."""


class AdjudicateScreen(BaseScreen):
    """The queue on the left; the sides, the timeline and the span's text beside it.

    Every decision is on disk before the screen shows it and goes on to the next conflict.
    """

    CSS_PATH = [ANNOTATE, BASE_SCREEN, ADJUDICATE]
    HORIZONTAL_BREAKPOINTS = [
        (0, "-narrow"),
        (100, "-wide"),
    ]
    AUTO_FOCUS = "#queue"
    where = Where.ADJUDICATE

    def __init__(
        self, mode: str | None = None, *, trace: str | None = None, agreed: bool = False
    ) -> None:
        """Read the queue once the workspace is open.

        Args:
            mode: The slug of the mode that alone is listed; None for all.
            trace: The id of the trace to begin with; None for the first with something open.
            agreed: Whether to list what was agreed as well.
        """
        super().__init__()
        self.queue = Queue(mode, self._is_taken, agreed=agreed)
        self.evidence = EvidencePanes(SpanText(self))
        self._adjudications: dict[str, Adjudication] = {}
        self._last: tuple[str, tuple[str, ...]] | None = None
        """The trace and the items that were decided last."""
        self._count = 0
        """How often something was decided or taken back."""
        self._decided_in: list[str] = []
        self._undone_in: list[str] = []
        self._begin_at = trace
        self._shown_trace: str | None = None
        self._told_at: int | None = None
        self._place: str | None = None
        self._boundary_of: Target | None = None
        """The one place that the boundary is moved for; None for all that the row asks."""
        self._is_reading = self._reads_again = False

    def compose_panes(self) -> ComposeResult:
        """The queue, and the evidence beside it."""
        with Container(id="desk"):
            yield self.queue.lines
            with Vertical(id="beside"):
                yield self.evidence.sides
                yield self.evidence.timeline
                yield self.evidence.span_view

    @property
    def main_list(self) -> ConflictList:
        """The queue."""
        return self.queue.lines

    def on_mount(self) -> None:
        """Read the queue as soon as the workspace is open."""
        self.main_list.border_title = plain_title(TITLE)
        self.show_words("Opening the workspace …")
        self.show_title()
        self.mast.workspace.when_ready(self._start)

    def _start(self, opened: OpenWorkspace) -> None:
        if not self.queue.was_read:
            self.show_words("Reading what everybody said …")
        self._is_reading = True
        traces = list(self.mast.catalog.traces.values())
        self._read_queue(opened, traces, self._count)

    @work(thread=True, group="queue", exclusive=True)
    def _read_queue(self, opened: OpenWorkspace, traces: list[Trace], decided: int) -> None:
        self.call_later(self._take_in, read_cases(opened, traces), decided)

    def written_elsewhere(self) -> None:
        """List what others have finished or decided meanwhile; one look at a time."""
        opened = self.mast.opened
        if opened is None or not self.queue.was_read or not self.query(TitleBar):
            return
        self.show_title()  # what waited may be sent
        if self._is_reading or not self.is_current or self.evidence.range_from is not None:
            self._reads_again = True
        else:
            self._start(opened)

    def on_screen_resume(self) -> None:
        """Be here again, and take in what came while another screen was open."""
        self._be_at(self._place)
        if self._reads_again and not self._is_reading:
            self._reads_again = False
            self.written_elsewhere()

    def _take_in(self, cases: QueueContents, decided: int) -> None:
        """List what was read, or say why there is nothing to adjudicate.

        Args:
            cases: What everybody said.
            decided: How much one had decided by then.
        """
        again, self._is_reading = self._reads_again, False
        was_read, self._reads_again = self.queue.was_read, False
        if decided != self._count or again:
            self.written_elsewhere()
        if decided != self._count:
            return  # it is older than what one has decided since
        if cases.problem is not None:
            if not was_read:
                self.show_words(one_line(cases.problem))
            return
        if was_read and self.queue.shows(cases):
            return
        news = self._news_in(cases)
        self._adjudications.clear()
        self.queue.take_in(cases, self._begin_at)
        title = TITLE
        if cases.unordered:
            title = f"Differences; order of {counted(cases.unordered, 'label')} unknown"
        self.main_list.border_title = plain_title(title)
        self.show_title()
        self._shown_trace = None
        self._show_row()
        nothing = not self.main_list.rows and not self.queue.agreed
        self.set_class(nothing, "-empty")
        if nothing:
            self.show_words(self._nothing_words(cases))
        elif not was_read:
            self.main_list.focus()
        if news:
            self._tell(news)

    # Who else is here

    def presence_changed(self) -> None:
        """Show who decides the same."""
        self.show_title()

    @property
    def _presence(self) -> Presence | None:
        return None if self.mast.opened is None else self.mast.opened.workspace.presence

    def _is_taken(self, place: str) -> bool:
        return self._presence is not None and bool(self._presence.at(place))

    def _be_at(self, place: str | None) -> None:
        opened = self.mast.opened
        if opened is not None and self._presence is not None:
            self._presence.go_to(opened.annotator, place)

    def on_screen_suspend(self) -> None:
        """Nobody decides here for now."""
        self._be_at(None)

    def on_unmount(self) -> None:
        """Nobody decides here any more."""
        self._be_at(None)

    # Words

    def show_title(self) -> None:
        """How much is left, and who decides."""
        parts = ["Adjudicate"]
        if self.queue.mode is not None:
            parts.append(self._mode_words(self.queue.mode))
        self.title_bar.show((*parts, *self.queue.progress()), self.who())

    def who(self) -> tuple[str, ...]:
        """Who decides, and whether the sides' names are hidden."""
        opened = self.mast.opened
        if opened is None:
            return ("opening the workspace …",)
        others = () if self._presence is None else self._presence.company()
        words = [*self.mast.workspace.unsent_words()]
        if others:
            verb = "is" if len(others) == 1 else "are"
            words.append(f"{joined([one_line(name) for name in others])} {verb} deciding this")
        words += [one_line(opened.annotator), ADJUDICATOR]
        return (*words, "names hidden") if self.queue.names_hidden else tuple(words)

    def _tell(self, words: str) -> None:
        """Say what was done; it stays although the cursor goes on."""
        self._told_at = self.main_list.cursor
        self.hints.say(words)

    async def _attempt(self, step: Callable[[], Result]) -> Result | None:
        """Carry out a step in the writer thread; show what is refused, and return None."""
        try:
            return await self.writes.run(step)
        except MastError as error:
            self.say_error(error)
            return None

    def _nothing_words(self, cases: QueueContents) -> str:
        """Why there is nothing to adjudicate, and what to do."""
        if cases.entries:
            count = len(cases.entries)
            traces = "the trace" if count == 1 else f"all {count} traces"
            what = ""
            if self.queue.mode is not None:
                what = f" on {self._mode_words(self.queue.mode)}"
            return (
                f"Nothing to adjudicate: in {traces} that two people have finished they agree"
                f"{what}.\n\nAgreed items are taken over without a key; "
                f"{self.mast.key_of('adjudicate.agreed')} looks through them. {self._gold_words()}."
            )
        lines = ["Nothing to adjudicate: that needs two people who have finished the same trace."]
        done = [f"{one_line(name)} {count}" for name, count in cases.finished.items() if count]
        lines += ["", f"Finished so far: {joined(done)}." if done else "Nobody has finished one."]
        lines += [
            "",
            f"{self.mast.key_of('annotate.finish')} in an open trace finishes it. "
            "Somebody else labels here with\n"
            "mast-tui --annotator NAME, or mast-tui import brings their labels in.",
        ]
        return "\n".join(lines)

    # What is under the cursor

    @on(VirtualLines.Moved, "#queue")
    def _queue_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.evidence.range_from = None
        if event.row != self._told_at:
            self.hints.clear()
        self._told_at = None
        self._show_row()

    @on(VirtualLines.Moved, "#evidence")
    def _span_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.evidence.span_moved()

    @on(VirtualLines.Moved, "#sides")
    def _side_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.evidence.side_moved()

    def _show_row(self) -> None:
        """Show the sides and the evidence of what is under the cursor."""
        row, items = self.queue.row, self.queue.items_here
        item = None if row is None else row.item
        self._place = None if items is None or item is None else items.place(item)
        self._be_at(self._place)
        if row is None:
            self.evidence.show_item(None)
        elif items is None:
            self._shown_trace = None
            self.evidence.show_trace(None)
            words = self.queue.locked_words(row.trace_id, self.mast.key_of)
            self.evidence.show_item(None, empty=words)
        else:
            self._open_trace(row.trace_id)
            self._show_item(items, row.item)

    def _show_item(self, items: TraceItems, item: str | None) -> None:
        if item is None:
            names = joined(items.names.joined(side.annotator for side in items.sides))
            self.evidence.show_item(None, empty=f"{names} have finished this trace.")
        elif self._records_sight(items, item):
            self.writes.do(partial(self._show_with_judge, items, item), HeldKeys.NOTHING)
        else:
            self._show_view(items, item, items.view(item))

    async def _show_with_judge(self, items: TraceItems, item: str) -> None:
        self._show_view(items, item, await self._view_with_judge(items, item))

    def _show_view(self, items: TraceItems, item: str, view: ItemView | None) -> None:
        if self.queue.is_here(items.trace_id, item):
            self.evidence.show_item(view, reading=self.queue.is_reading)

    def _open_trace(self, trace_id: str) -> None:
        if trace_id == self._shown_trace:
            return
        self._shown_trace = trace_id
        at_hand = self.queue.cases.at_hand
        if at_hand is not None and at_hand.is_known(trace_id):
            self.evidence.show_trace(at_hand.loaded(trace_id))
            return
        self.evidence.show_trace(None)
        if at_hand is not None:
            self._read_trace(at_hand, trace_id)

    @work(thread=True, group="trace", exclusive=True)
    def _read_trace(self, at_hand: TraceLoader, trace_id: str) -> None:
        try:
            at_hand.read(trace_id)
        except WorkspaceError as error:
            self.call_later(self.say_error, error)
            return
        self.call_later(self._trace_read, trace_id)

    def _trace_read(self, trace_id: str) -> None:
        """Show the trace where it is still wanted."""
        row = self.queue.row
        if row is not None and row.trace_id == trace_id:
            self._shown_trace = None
            self._show_row()

    # Moving

    def action_conflict(self, step: int) -> None:
        """The next or previous conflict that is left."""
        if not self._go_to_open(step):
            self.hints.say(self._next_words())

    def _go_to_open(self, step: int = 1) -> bool:
        """Put the cursor on the next conflict that is left; False where there is none."""
        place = self.queue.next_open(self.main_list.cursor, step)
        if place is None:
            return False
        if place == self.main_list.cursor:
            self._show_row()
        else:
            self.main_list.move_to(place)
        return True

    def action_trace(self, step: int) -> None:
        """The next or previous trace: its first conflict that is left, else its first row."""
        place = self.main_list.next_trace(self.main_list.cursor, step)
        if place is None:
            self.hints.say("This is the last trace" if step > 0 else "This is the first trace")
            return
        self.main_list.move_to(self.main_list.first_in_trace(place))

    def action_text(self, delta: int) -> None:
        """Scroll the span's text by a screen."""
        self.evidence.span_view.move_page(delta)

    def action_pane(self) -> None:
        """The next pane."""
        beside = self.evidence
        panes = [self.main_list, beside.sides, beside.timeline, beside.span_view]
        shown = [pane for pane in panes if pane.is_on_screen and pane.display]
        place = shown.index(self.pane) if self.pane in shown else 0
        shown[(place + 1) % len(shown)].focus()
        if shown[(place + 1) % len(shown)] is beside.sides:
            self._say_what_sides_do()

    def go_to_place(self, text: str) -> bool:
        """Go to a span by its number (from 1) or its key; False where there is none."""
        return self.evidence.go_to_place(text)

    @on(VirtualLines.Chosen, "#queue")
    def _row_chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        self.action_enter()

    def action_enter(self) -> None:
        """Decide for the boundary; else go to the evidence, or take a trace on."""
        row = self.queue.row
        side = self._side_without_key()
        if self.evidence.boundary() is not None:
            self._take_boundary()
        elif side is not None:
            self.action_side(side)
        elif row is not None and self.queue.items_here is None:
            self._ask_to_take_on(row.trace_id)
        elif self.evidence.has_spans:
            self.evidence.timeline.focus()

    def _side_without_key(self) -> int | None:
        """The number of the side under the cursor of the sides, where no digit takes it."""
        side = self.evidence.sides.side if self.focused is self.evidence.sides else None
        if side is None or side.number is None or side.number <= MOST_SIDE_KEYS:
            return None
        return side.number

    def action_back(self) -> None:
        """Leave the boundary, then the pane, then the screen."""
        if self.asks:
            self.evidence.range_from = None
            self.hints.clear()
            self.main_list.focus()
            self._show_row()
        elif self.focused is not None and self.focused is not self.main_list:
            self.main_list.focus()
        else:
            super().action_back()

    # What is listed

    def action_names(self) -> None:
        """Show the sides by letters, or by name."""
        hidden = not self.queue.names_hidden
        self.queue.hide_names(hidden)
        self.show_title()
        self._show_row()
        key = self.mast.key_of("adjudicate.names")
        self.hints.say(
            "Names are hidden: letters stand for other people on every trace · "
            f"{key} shows the names"
            if hidden
            else f"The sides are shown by name · {key} hides the names"
        )

    def action_agreed(self) -> None:
        """List what was agreed as well, or not; while a boundary is moved, begin it here."""
        if self.asks:
            self.evidence.begin_boundary_here()
            self._prompt_boundary()
        else:
            self._list_agreed(not self.queue.agreed)
        if self.queue.was_read:
            self.set_class(not self.main_list.rows, "-empty")
            if self.main_list.rows and self.focused is None:
                self.main_list.focus()

    def _list_agreed(self, agreed: bool) -> None:
        self.queue.agreed = agreed
        self.queue.show()
        self.show_title()
        self._shown_trace = None
        self._show_row()
        key_of = self.mast.key_of
        self.hints.say(
            "Agreed items (=) are listed, taken over without a key · "
            f"{key_of('adjudicate.overrule')} overrules one · "
            f"{key_of('adjudicate.agreed')} hides them"
            if agreed
            else "Only what the sides differ on is listed"
        )

    def _ask_to_take_on(self, trace_id: str) -> None:
        """Ask once; the answer is recorded as the beginning of an adjudication pass."""
        cases, hidden = self.queue.cases, self.queue.hidden_traces()
        answers = [("a", "adjudicate it"), ("n", "leave it hidden")]
        if trace_id in hidden and len(hidden) > 1 and not cases.may_come_back:
            answers.insert(1, ("e", f"every one of the {len(hidden)} that you have not labelled"))

        question = QUESTION_OF_A_STUDY if cases.may_come_back else QUESTION

        def answered(answer: str | None) -> None:
            if answer in ("a", "e"):
                wanted = [trace_id] if answer == "a" else hidden
                self.mast.workspace.when_ready(lambda opened: self._take_on(opened, wanted))

        title = f"Adjudicate {self.queue.name_of(trace_id)}?"
        self.app.push_screen(Ask(title, question, tuple(answers), default="n"), answered)

    @piece_of_work
    async def _take_on(self, opened: OpenWorkspace, trace_ids: list[str]) -> None:
        taken = await self._attempt(
            lambda: take_on(opened.workspace, opened.taxonomy, opened.annotator, trace_ids)
        )
        if taken is None:
            return
        if not taken:
            key = self.mast.key_of("annotate.finish")
            self.hints.say(
                f"You have begun to label this trace: finish it ({key}), then adjudicate",
                error=True,
            )
            return
        self._start(opened)

    # Deciding

    async def _adjudication(self, trace_id: str) -> Adjudication | None:
        """The adjudicator's work on a trace; None, with the reason on screen, where it is barred
        or the trace is still being read."""
        known = self._adjudications.get(trace_id)
        opened, at_hand = self.mast.opened, self.queue.cases.at_hand
        if known is not None or opened is None or at_hand is None:
            return known
        if not at_hand.is_known(trace_id):
            self.hints.say("The trace is still being read; press the key again in a moment")
            return None
        adjudication = await self._attempt(
            lambda: Adjudication(
                opened.workspace,
                opened.taxonomy,
                trace_id,
                opened.annotator,
                order=at_hand.known_order(trace_id),
            )
        )
        if adjudication is not None:
            self._adjudications[trace_id] = adjudication
        return adjudication

    async def _here(self) -> tuple[Adjudication, ConflictGroup] | None:
        """What a key decides about; None, with the reason on screen, where there is nothing."""
        row, items = self.queue.row, self.queue.items_here
        if row is None:
            return None
        if items is None:
            self._ask_to_take_on(row.trace_id)
            return None
        if row.item is None:
            key_of = self.mast.key_of
            self.hints.say(
                f"Choose a conflict of this trace: {key_of('adjudicate.down')}, "
                f"or {key_of('adjudicate.next_conflict')} for the next one"
            )
            return None
        group = items.question(row.item)
        work = await self._adjudication(row.trace_id)
        return None if work is None or group is None else (work, group)

    def _place_alone(self) -> Target | None:
        """The place that a key is about alone, because the cursor of the sides stands on it."""
        if self.focused is not self.evidence.sides or self.evidence.sides.place is None:
            return None
        return self.evidence.sides.place.target

    def _mode_words(self, slug: str) -> str:
        return " ".join(mode_words(self.mast.taxonomy, slug))

    def _news_in(self, cases: QueueContents) -> str:
        """What others have decided since the last look, in words; most of all where one has decided
        otherwise."""
        news, differing = list[str](), list[str]()
        for trace_id, items in cases.items.items():
            known = self.queue.items.get(trace_id)
            if known is None:
                continue
            before = {one.item: one for one in known.decisions}
            for dispute in items.disputes():
                words, differs = self._news_of(dispute, before)
                if not words:
                    continue
                here = "" if self.queue.is_here(trace_id, dispute.id) else self._name_of(trace_id)
                words = f"{words}{here}: {outcome(dispute.decisions, items.names)}"
                if differs:
                    differing.append(f"{words}, otherwise than you, and that stands")
                else:
                    news.append(words)
        more = len(news) + len(differing) - 1
        first = next(iter((*differing, *news)), "")
        return f"{first} · {more} more" if more > 0 else first

    def _news_of(self, dispute: Dispute, before: Mapping[str, Decision]) -> tuple[str, bool]:
        """Who has decided a row since, and whether one had decided otherwise."""
        opened = self.mast.opened
        me = None if opened is None else opened.annotator
        new = [
            one for one in dispute.decisions if one != before.get(one.item) and one.decided_by != me
        ]
        mine = [(before[x.item], x) for x in new if x.item in before]
        differs = any(
            was.decided_by == me and (was.value, was.targets) != (one.value, one.targets)
            for was, one in mine
        )
        if not new:
            return "", False
        names = list(dict.fromkeys(one_line(one.decided_by) for one in new))
        verb = "has" if len(names) == 1 else "have"
        return f"{joined(names)} {verb} decided {self._mode_words(dispute.mode)}", differs

    def _name_of(self, trace_id: str) -> str:
        return f" on {one_line(self.queue.name_of(trace_id), 40)}"

    def _show_outcome(self, work: Adjudication) -> None:
        """Show what a trace has become."""
        self._count += 1
        self.queue.take_over(work)
        self.show_title()

    def action_side(self, number: int) -> None:
        """Take the side with this number."""

        def choose(group: ConflictGroup) -> Choices | str:
            items = self.queue.items_here
            side = items.side(group, number) if items is not None else None
            if side is None:
                return f"There is no side {number}: there are {len(group.said)}"
            return group.take_side(side)

        self._decide(choose)

    @on(SidesPanel.Chosen, "#sides")
    def _side_chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        side = self.evidence.sides.side
        if side is not None and side.number is not None:
            self.action_side(side.number)

    def action_sides(self) -> None:
        """To the sides, where a click on a number takes one."""
        self.evidence.sides.focus()
        if not self._say_what_sides_do():
            key_of = self.mast.key_of
            self.hints.say(
                f"The key before a side takes it; {key_of('adjudicate.up')} "
                f"{key_of('adjudicate.down')} look at its places"
            )

    def _say_what_sides_do(self) -> bool:
        """Say how one of several disputed places is decided alone; False where there are none."""
        row, items = self.queue.row, self.queue.items_here
        if row is None or row.item is None or items is None or not items.is_open(row.item):
            return False
        group = items.question(row.item)
        if group is None or len(group.conflicts) < 2:
            return False
        names = ("up", "down", "nobody", "boundary", "other_mode", "both")
        up, down, none, boundary, mode, both = (
            self.mast.key_of(f"adjudicate.{name}") for name in names
        )
        self.hints.say(
            f"{up} {down} to one place: {none} drops it alone, {boundary} moves it, "
            f"{mode} other mode · a side or {both} decides all"
        )
        return True

    def action_both(self) -> None:
        """Keep everything that was marked."""
        absent = self.mast.key_of("adjudicate.nobody")
        unsure = self.mast.key_of("adjudicate.unsure")
        self._decide(
            lambda group: (
                group.take_all(self.evidence.index_of)
                or "No side says present, so there is nothing to keep: a side, "
                f"{absent} or {unsure}"
            )
        )

    def action_nobody(self) -> None:
        """The mode is absent, or the places are none; among the sides, the place there is none."""
        self._decide(lambda group: group.take_same(NOBODY), alone=self._place_alone())

    def _place_answers(self) -> str:
        """Return the keys that answer whether a mode shows at a place."""
        key_of = self.mast.key_of
        return (
            f"A place is taken or not: a side, {key_of('adjudicate.both')} both, "
            f"{key_of('adjudicate.nobody')} none, {key_of('adjudicate.boundary')} moves it"
        )

    def action_unsure(self) -> None:
        """It stays unsure."""
        self._decide(
            lambda group: (
                self._place_answers()
                if group.kind is ConflictKind.PLACE
                else group.take_same(UNSURE)
            )
        )

    def _take_boundary(self) -> None:
        """It shows within the boundary that is moved."""
        target, index_of = self.evidence.boundary(), self.evidence.index_of
        if target is not None:
            self._decide(
                lambda group: group.take_place(target, index_of),
                overrules=True,
                alone=self._boundary_of,
            )

    def action_overrule(self) -> None:
        """What was agreed to be present is absent; else it shows in the whole trace."""
        row, items = self.queue.row, self.queue.items_here
        agreed = items.agreed(row.item) if items and row and row.item is not None else None
        if agreed is None:
            key_of = self.mast.key_of
            self.hints.say(
                f"{key_of('adjudicate.overrule')} overrules what was agreed: "
                f"{key_of('adjudicate.agreed')} lists that"
            )
            return
        present = agreed.value is VerdictValue.PRESENT
        choice = NOBODY if present else Choice(VerdictValue.PRESENT, (WHOLE_TRACE,))
        self._decide(lambda group: group.take_same(choice), overrules=True)

    @piece_of_work
    async def _decide(
        self,
        choose: Callable[[ConflictGroup], Choices | str],
        *,
        overrules: bool = False,
        alone: Target | None = None,
    ) -> None:
        """Decide what is under the cursor and go on.

        Args:
            choose: Chooses what is decided; a string says why it cannot be.
            overrules: Whether it is about what was agreed too.
            alone: The one place that it is about; None for all that the row asks.
        """
        here = await self._here()
        if here is None:
            return
        work, group = here
        items = self.queue.items[work.trace_id]
        agreed = items.agreed(group.id)
        asked = group if alone is None else group.at_place(alone)
        choices = NOT_IN_QUESTION if asked is None else choose(asked)
        if isinstance(choices, str):
            self.hints.say(choices, error=True)
            return
        if agreed is not None and not overrules:
            key_of = self.mast.key_of
            self.hints.say(
                f"The sides agree here: {key_of('adjudicate.overrule')} overrules them, "
                f"{key_of('adjudicate.boundary')} names another place"
            )
            return
        decisions = await self._attempt(lambda: work.decide_together(choices))
        if decisions is not None:
            words = self._decided_words(items, decisions)
            self._decided(work, tuple(d.item for d in decisions), words, looking=bool(agreed))

    @piece_of_work
    async def action_other_mode(self) -> None:
        """It is another mode, at the same place."""
        here = await self._here()
        if here is None:
            return
        work, group = here
        place = self._place_alone()
        asked = group if place is None else group.at_place(place)
        if asked is None:
            self.hints.say(NOT_IN_QUESTION, error=True)
            return

        def found(slug: str | None) -> None:
            if slug is not None:
                self._decide_other_mode(work, asked, slug)

        self.app.push_screen(ModeFinder(self.mast.taxonomy), found)

    @piece_of_work
    async def _decide_other_mode(self, work: Adjudication, group: ConflictGroup, slug: str) -> None:
        made = await self._attempt(lambda: work.another_mode(group.conflicts, slug))
        if made is not None:
            self._decided(work, tuple(d.item for d in made), f"It is {self._mode_words(slug)}")

    @piece_of_work
    async def action_confirm(self) -> None:
        """Decide again as it stands where a side has changed since."""
        here = await self._here()
        if here is None:
            return
        work, group = here
        items = self.queue.items[work.trace_id]
        row = self.queue.row
        dispute = None if row is None or row.item is None else items.dispute(row.item)
        if dispute is None or not dispute.decisions:
            self.hints.say("Nothing is decided here yet: there is nothing to confirm")
            return
        changed = [one.item for one in dispute.changed(items.sides, items.order)]
        if not changed:
            self.hints.say("No side has changed since: the decision stands as it is")
        elif await self._attempt(lambda: work.confirm(*changed)) is not None:
            words = f"{self._mode_words(group.mode)}: confirmed"
            self._decided(work, tuple(changed), words)

    def _decided(
        self, work: Adjudication, items: tuple[str, ...], words: str, *, looking: bool = False
    ) -> None:
        """Show what was decided, ask why where a study wants to know, and go on.

        ``looking`` through what was agreed goes on to the next row, else to the next conflict.
        """
        self._decided_in.append(work.trace_id)
        self._undone_in.clear()
        self._last = (work.trace_id, items)
        self.evidence.range_from = None
        self._show_outcome(work)
        partly = self._is_partly_decided()
        (self.evidence.sides if partly else self.queue.lines).focus()
        self.hints.clear()
        study = self.queue.cases.study
        if study is not None and study.reasons:
            self._ask_reason(work, items, lambda: self._go_on(words, looking))
        else:
            self._go_on(words, looking)

    def _go_on(self, words: str, looking: bool) -> None:
        if looking:
            self.queue.lines.move_by(1)
            self._tell(words)
            return
        if self._is_partly_decided():
            self._show_row()
            words = f"{words} · its other places are open · {self.queue.left()} to go"
        elif not self._go_to_open():
            self._show_row()
            words = f"{self._next_words()} · {words}"
        elif self.queue.left():
            words = f"{words} · {self.queue.left()} to go"
        else:
            changed = self.queue.done()[1]
            words = f"{words} · {changed} to look at again: a side has changed since"
        self._tell(words)

    def _next_words(self) -> str:
        """What can be done once nothing is left to decide."""
        if self.queue.mode is not None or self.queue.hidden_traces():
            return "Nothing left to decide here"
        return f"Nothing left to decide: {self._gold_words()}"

    def _gold_words(self) -> str:
        """What can be done with the gold."""
        export, agreement = (
            self.mast.key_of(f"everywhere.{name}") for name in ("export", "agreement")
        )
        return f"{export} exports the gold · {agreement} shows agreement"

    def _is_partly_decided(self) -> bool:
        """Whether places are left to decide in the row under the cursor."""
        row = self.queue.row
        return row is not None and row.state is RowState.OPEN

    def _decided_words(self, items: TraceItems, decisions: Sequence[Decision]) -> str:
        """What was decided, and where: ``1.3 Step repetition: present at #3, as alice``."""
        targets = targets_taken(decisions)
        places = [place_words(t, self.evidence.index_of, quoted=False) for t in targets]
        more = " …" if len(places) > 3 else ""
        at = "in" if any(target.is_whole for target in targets[:1]) else "at"
        where = f" {at} {', '.join(places[:3])}{more}" if places else ""
        what, comma, by = outcome(decisions, items.names).partition(", as ")
        return f"{self._mode_words(decisions[0].mode)}: {what}{where}{comma}{by}"

    # Reasons

    @piece_of_work
    async def action_reason(self) -> None:
        """Write why the item under the cursor was decided so, else why the last one was."""
        row, subject = self.queue.row, self.queue.subject_here
        if row is not None and isinstance(subject, Dispute) and subject.decisions:
            about: tuple[str, tuple[str, ...]] = row.trace_id, self._explained(subject)
        elif self._last is not None:
            about = self._last
        else:
            key = self.mast.key_of("adjudicate.reason")
            self.hints.say(f"A reason belongs to a decision: decide first, then {key} says why")
            return
        trace_id, decided = about
        work = await self._adjudication(trace_id)
        if work is None:
            return
        if not _standing(work, decided):
            self.hints.say("A reason belongs to a decision, and the last one was taken back")
            return

        def shown() -> None:
            self.hints.clear()
            self._show_row()

        self._ask_reason(work, decided, shown)

    def _explained(self, dispute: Dispute) -> tuple[str, ...]:
        """The items of a row's decisions: one's own, else all of them."""
        opened = self.mast.opened
        me = None if opened is None else opened.annotator
        own = tuple(one.item for one in dispute.decisions if one.decided_by == me)
        return own or tuple(one.item for one in dispute.decisions)

    def _ask_reason(
        self, work: Adjudication, items: tuple[str, ...], then: Callable[[], None]
    ) -> None:
        """Ask on a line of its own; Escape leaves the decision as it is. ``then`` goes on."""
        found = _standing(work, items)
        if not found:
            then()
            return

        def written(text: str | None) -> None:
            if text is not None:
                self._explain(work, found, text, then)
            else:
                then()

        by_item = {one.item: one for one in work.decisions}
        decisions = [by_item[item] for item in found]
        same_mode = [one for one in decisions if one.mode == decisions[0].mode]
        decided = outcome(same_mode, self.queue.items[work.trace_id].names)
        self.app.push_screen(
            NoteScreen(
                f"Why? {self._mode_words(decisions[0].mode)}: {decided}",
                decisions[0].reason,
                hint="Enter keeps it · Esc leaves the decision without a word",
            ),
            written,
        )

    @piece_of_work
    async def _explain(
        self, work: Adjudication, items: list[str], text: str, then: Callable[[], None]
    ) -> None:
        await self._attempt(partial(work.explain, items, text))
        self._show_outcome(work)
        then()

    # The judge

    @property
    def _judge_first(self) -> bool:
        study = self.queue.cases.study
        return study is not None and study.judge_first

    def _records_sight(self, items: TraceItems, item: str) -> bool:
        """Whether showing an item can show a judge's word, which is written down first."""
        return not self.queue.is_reading and (self._judge_first or not items.is_open(item))

    async def _view_with_judge(self, items: TraceItems, item: str) -> ItemView | None:
        """Return the sides of an item, and the judge's word where it was asked for, or is first."""
        view = items.view(item)
        subject = items.find(item)
        if view is None or subject is None:
            return view
        work = await self._adjudication(items.trace_id)
        if work is None or not (self._judge_first or work.judge_shown(subject.mode)):
            return view
        words = await self._attempt(lambda: work.judge_words(subject.mode))
        return replace(view, sides=(*view.sides, *judge_views(words or (), items.order)))

    @piece_of_work
    async def action_judge(self) -> None:
        """The judge's word on the mode under the cursor, else on the one decided last."""
        row, items = self.queue.row, self.queue.items_here
        if row is None or items is None:
            return
        open_here = row.item is None or items.is_open(row.item)
        first = self._judge_first
        if open_here and not first and not self._go_to_last():
            self.hints.say("The judge's word comes after the decision")
            return
        if self.queue.row is None or self.queue.row.item is None:
            return
        here = await self._here()
        if here is None:
            return
        work, group = here
        if any(one.mode == group.mode for one in work.gold.conflicts) and not first:
            self.hints.say("Something is open about this mode: the judge's word comes after it")
            return
        words = await self._attempt(lambda: work.judge_words(group.mode))
        if words is None:
            return
        if work.workspace.away:
            self.hints.say("What judges say is on the server, which is away", error=True)
            return
        self._show_row()
        names = ", ".join(one_line(one.judge.removeprefix(JUDGE_PREFIX), 24) for one in words)
        self._tell(
            f"{names}: what is decided about this mode from now on was decided in its sight"
            if words
            else "No judge has looked at this mode here"
        )

    def _go_to_last(self) -> bool:
        """Put the cursor on what was decided last; False where that is not listed."""
        if self._last is None:
            return False
        trace_id, decided = self._last
        items = self.queue.items.get(trace_id)
        if items is None or all(one.item != decided[0] for one in items.decisions):
            return False
        if not self.queue.go_to_item(trace_id, decided[0]):
            return False
        self._show_row()
        return True

    # Taking back

    def action_undo(self) -> None:
        """Take back the last decision of this sitting, else the last one on this trace."""
        self._step(self._decided_in, self._undone_in, back=True)

    def action_redo(self) -> None:
        """Decide again what was taken back."""
        self._step(self._undone_in, self._decided_in, back=False)

    @piece_of_work
    async def _step(self, from_: list[str], to: list[str], *, back: bool) -> None:
        here = self.queue.items_here
        for trace_id in from_[-1:] or ([here.trace_id] if here is not None else []):
            work = await self._adjudication(trace_id)
            step = None if work is None else work.undo if back else work.redo
            changed = await self._attempt(step) if step is not None else None
            if work is None or changed is None:
                return
            if from_:
                from_.pop()
            if changed:
                to.append(trace_id)
                self.evidence.range_from = None
                self._show_outcome(work)
                self.queue.go_to_item(trace_id, changed[0])
                self._show_row()
                key = self.mast.key_of("everywhere.redo")
                again = f"Taken back: decide it anew, or {key} does it again"
                self._tell(again if back else "Done again")
                return
        self.hints.say("Nothing to take back on this trace" if back else "Nothing to decide again")

    # Boundaries

    @property
    def asks(self) -> bool:
        """Whether a boundary is being moved."""
        return self.evidence.range_from is not None

    def take_key(self, key: str, action: str | None) -> bool:
        """Let a key do nothing that is not known while a boundary is moved."""
        if action in MOVING:
            return False
        self._prompt_boundary()
        return True

    def _prompt_boundary(self) -> None:
        """Name the keys that move, begin, decide or leave a boundary."""
        key_of = self.mast.key_of
        self.hints.prompt(
            f"boundary: move its end · {key_of('adjudicate.boundary')} the other end · "
            f"{key_of('adjudicate.agreed')} begin here · {key_of('adjudicate.enter')} decides · "
            f"{key_of('everywhere.back')} leaves"
        )

    @piece_of_work
    async def action_boundary(self) -> None:
        """Begin to move the boundary; again goes to its other end."""
        if not self.asks:
            here = await self._here()
            place = self._place_alone()
            if here is None:
                return
            if place is not None and here[1].at_place(place) is None:
                self.hints.say(NOT_IN_QUESTION, error=True)
                return
            if not self.evidence.has_spans:
                self.hints.say("A boundary needs the trace's file, which is not here", error=True)
                return
            self._boundary_of = place
            self.evidence.timeline.focus()
        self.evidence.move_boundary(self._boundary_of)
        self._prompt_boundary()

    # Guidelines

    def action_guidelines(self) -> None:
        """The page of the mode under the cursor: what was agreed about it, and decided cases."""
        row, subject = self.queue.row, self.queue.subject_here
        mode = self.queue.mode or self.mast.taxonomy.modes[0].slug
        if subject is not None:
            mode = subject.mode
        occasion = None
        if row is not None and isinstance(subject, Dispute) and subject.decisions:
            occasion = row.trace_id, subject.decisions[0].item
        self.mast.go(ShowGuidelines(mode, may_write=True, occasion=occasion, go=self._go_to_case))

    def _go_to_case(self, case: Case) -> bool:
        """Put the cursor on a decided case; False where it is not listed here."""
        if not self.queue.go_to_item(case.trace_id, case.decision.item):
            return False
        self.main_list.focus()
        self._show_row()
        return True


def _standing(work: Adjudication, items: tuple[str, ...]) -> list[str]:
    """Those of the items on which a decision stands."""
    standing = {decision.item for decision in work.decisions}
    return [item for item in items if item in standing]
