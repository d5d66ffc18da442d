"""The adjudicate screen: conflicts between annotators, their evidence, and keys to decide."""

from __future__ import annotations

from asyncio import sleep
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Final, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.worker import Worker

from mast_tui.adjudication import (
    Adjudication,
    AdjudicationCase,
    Choices,
    ConflictGroup,
    GuidelineCase,
    JudgeAnswer,
    decided_words,
    take_on,
    targets_taken,
)
from mast_tui.adjudication.conflicts import ABSENT_CHOICE, UNSURE, Choice
from mast_tui.gold import ConflictKind, Decision, Order, no_order
from mast_tui.gold.overlaps import in_reading_order
from mast_tui.labels import JUDGE_PREFIX, WHOLE_TRACE, Target, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.study import Study
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.actions.tables import moves
from mast_tui.ui.adjudicate.cases import (
    CaseView,
    QueueContents,
    TraceCases,
    judge_views,
    mode_code_and_name,
    outcome,
    read_queue,
    source_text,
)
from mast_tui.ui.adjudicate.evidence import EvidencePanes
from mast_tui.ui.adjudicate.lists import (
    MOST_SIDE_KEYS,
    ConflictList,
    QueueRow,
    RowState,
    SidesPanel,
)
from mast_tui.ui.adjudicate.queue import Queue
from mast_tui.ui.base_screen import BaseScreen
from mast_tui.ui.context import ShowGuidelines
from mast_tui.ui.dialogs.dialog import NoteScreen
from mast_tui.ui.dialogs.finder import ModeFinder
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.styles import ADJUDICATE, ANNOTATE, BASE_SCREEN
from mast_tui.ui.trace_view.span_view import SpanText
from mast_tui.ui.widgets.bars import ADJUDICATOR, TitleBar
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import counted, joined_names, places_text, plain_title
from mast_tui.workspace.presence import Presence
from mast_tui.writes import HeldKeys, piece_of_work

TITLE = "Traces with most conflicts first"

QUESTION = (
    "You have not labelled this trace. As its adjudicator you will see the labels of others and "
    "can no longer label it independently."
)

STUDY_QUESTION = (
    "As its adjudicator you will see the labels of others. After that you cannot label "
    "this trace independently, nor label it again."
)


NOT_IN_QUESTION: Final = "This place is not disputed: go to a disputed place, or to the queue"

JUDGE_HIDDEN: Final = "Decide the mode first: until then the judge's verdict stays hidden"

READING_WAIT: Final = 2.0
"""Seconds that a decision waits for its trace to be read."""
_READING_CHECK: Final = 0.02

MOST_PLACES: Final = 3
"""The most places of a decision that a message names."""

BOUNDARY_ACTIONS: Final = frozenset(
    f"adjudicate.{name}"
    for name in (
        *(move.name for move in moves(Where.ADJUDICATE)),
        *("boundary", "agreed", "enter", "text_down", "text_up", "pane", "names"),
    )
) | {"everywhere.back", "everywhere.palette"}
"""The actions that work while a boundary is moved."""

_DECIDING_ACTIONS: Final = (
    *("side_1", "both", "nobody", "unsure", "boundary", "other_mode"),
    *("enter", "agreed", "reason", "guidelines"),
)
"""The names of actions that need a conflict. Without one, they have no hints."""

_FIRST_HINTS: Final[Mapping[RowState, Mapping[str, str]]] = {
    RowState.CHANGED: {"confirm": "confirm"},
    RowState.DECIDED: {"reason": "reason"},
    RowState.AGREED: {"overrule": "overrule"},
}
"""The first hints on a row, by its state."""


@dataclass(frozen=True, slots=True)
class CaseAtCursor:
    """The case under the cursor.

    Attributes:
        work: The adjudicator's work on its trace.
        cases: All cases of its trace.
        case: The case.
    """

    work: Adjudication
    cases: TraceCases
    case: AdjudicationCase

    def question(self, target: Target | None) -> ConflictGroup | None:
        """Return the conflicts to decide, or None.

        Args:
            target: A place that a side marked, to decide it alone; None for all conflicts of the
                case.
        """
        question = self.cases.question(self.case)
        return question if target is None else question.at_place(target)


class _News(NamedTuple):
    """A message about decisions of others. It says if they replace decisions of the user."""

    message: str
    replaces_own: bool


class AdjudicateScreen(BaseScreen):
    """The queue on the left; the sides, the timeline and the span text on the right.

    A decision is on disk before the screen shows it and moves on.
    """

    CSS_PATH = [ANNOTATE, BASE_SCREEN, ADJUDICATE]
    HORIZONTAL_BREAKPOINTS = [
        (0, "-narrow"),
        (100, "-wide"),
    ]
    AUTO_FOCUS = "#queue"
    where = Where.ADJUDICATE

    def __init__(
        self, mode: str | None = None, *, trace: str | None = None, lists_agreed: bool = False
    ) -> None:
        """Prepare the screen. The queue is read once the workspace is open.

        Args:
            mode: The slug of the only mode to list, or None.
            trace: The id of the trace to begin with; None for the first open conflict.
            lists_agreed: Whether to list undisputed modes.
        """
        super().__init__()
        self.queue = Queue(mode, self._is_decided_by_others, lists_agreed=lists_agreed)
        self.evidence = EvidencePanes(SpanText(self), lambda: self.mast.catalog.masks)
        self._adjudications: dict[str, Adjudication] = {}
        self._last_decision: tuple[str, tuple[str, ...]] | None = None
        """The trace id and the item ids of the last decision."""
        self._change_count = 0
        """The number of decisions and undone decisions in this session."""
        self._undo_trace_ids: list[str] = []
        """The trace ids of the decisions that can be undone, the latest last."""
        self._redo_trace_ids: list[str] = []
        self._start_trace_id = trace
        self._visible_trace_id: str | None = None
        self._trace_reading: Worker[None] | None = None
        self._message_row: int | None = None
        """The row of the queue with a lasting message, or None."""
        self._presence_key: str | None = None
        self._boundary_target: Target | None = None
        """The place that the boundary replaces; None for all disputed places of the row."""
        self._is_reading_queue = False
        self._must_read_queue = False
        """True if others have written, but reading the queue again must wait."""
        self._is_asked = False
        """Whether a person who is no adjudicator of the study has chosen to decide all the same."""

    def compose_panes(self) -> ComposeResult:
        """Yield the queue, and the evidence to its right."""
        with Container(id="desk"):
            yield self.queue.lines
            with Vertical(id="beside"):
                yield self.evidence.sides_panel
                yield self.evidence.timeline
                yield self.evidence.span_view

    @property
    def main_list(self) -> ConflictList:
        """The queue."""
        return self.queue.lines

    def on_mount(self) -> None:
        """Read the queue as soon as the workspace is open."""
        self.show_message_only("Opening the workspace …")
        self.show_title()
        self.mast.workspace.when_ready(self._start_reading)

    def _start_reading(self, opened: OpenWorkspace) -> None:
        """Read the queue in a worker, then call ``_update_queue``.

        The change count shows if the user has decided something meanwhile.
        """
        if not self.queue.was_read:
            self.show_message_only("Reading the labels …")
        self._is_reading_queue = True
        traces = list(self.mast.catalog.traces.values())
        self.work.run(
            "queue",
            lambda: read_queue(opened, traces),
            partial(self._update_queue, change_count=self._change_count),
        )

    def show_changes_of_others(self) -> None:
        """Read the queue again, because others have written.

        This waits while the queue is read, the screen is covered, or a boundary is moved.
        """
        opened = self.mast.opened
        if opened is None or not self.queue.was_read or not self.query(TitleBar):
            return
        self.show_title()  # the count of unsent changes may be different
        if (
            self._is_reading_queue
            or not self.is_current
            or self.evidence.fixed_end_index is not None
        ):
            self._must_read_queue = True
        else:
            self._start_reading(opened)

    def on_screen_resume(self) -> None:
        """Let others see the present case again, and show their changes if that was delayed."""
        self._move_presence(self._presence_key)
        if self._must_read_queue and not self._is_reading_queue:
            self._must_read_queue = False
            self.show_changes_of_others()

    def _update_queue(self, contents: QueueContents, change_count: int) -> None:
        """List what was read, or show why there is nothing to adjudicate.

        Contents from before the latest decision are ignored and read again.
        """
        is_outdated = change_count != self._change_count
        must_read_again = self._must_read_queue or is_outdated
        self._is_reading_queue = False
        self._must_read_queue = False
        if must_read_again:
            self.show_changes_of_others()
        if is_outdated:
            return
        was_read = self.queue.was_read
        if contents.problem is None and not (was_read and self.queue.is_showing(contents)):
            self._show_contents(contents)
        elif contents.problem is not None and not was_read:
            self.show_message_only(one_line(contents.problem))

    def _show_contents(self, contents: QueueContents) -> None:
        """List the contents of the queue, with a message about new decisions of others."""
        was_read = self.queue.was_read
        news_text = self._news_of_decisions(contents)
        self._adjudications.clear()
        self.queue.update(contents, self._start_trace_id)
        self.show_title()
        self._visible_trace_id = None  # so that a trace on screen is shown again, as read now
        self._show_row()
        is_empty = not self.main_list.rows and not self.queue.lists_agreed
        self.set_class(is_empty, "-empty")
        if is_empty:
            self.show_message_only(self._empty_queue_text(contents))
        elif not was_read:
            self.main_list.focus()
        if news_text:
            self._show_lasting_message(news_text)

    def presence_changed(self) -> None:
        """Show in the title who is at the same case."""
        self.show_title()

    @property
    def _presence_service(self) -> Presence | None:
        return None if self.mast.opened is None else self.mast.opened.workspace.presence

    def _is_decided_by_others(self, presence_key: str) -> bool:
        """Return whether another adjudicator is at the case with a presence key."""
        return self._presence_service is not None and bool(
            self._presence_service.annotators_at(presence_key)
        )

    def _move_presence(self, presence_key: str | None) -> None:
        """Tell others at which case the adjudicator is; None for no case."""
        opened = self.mast.opened
        if opened is not None and self._presence_service is not None:
            self._presence_service.go_to(opened.annotator, presence_key)

    @on(events.ScreenSuspend)
    @on(events.Unmount)
    def _leave_case(self) -> None:
        """Tell others that the adjudicator has left the case."""
        self._move_presence(None)

    def show_title(self) -> None:
        """Show the progress, and the adjudicator."""
        parts = ["Adjudicate"]
        if self.queue.mode is not None:
            parts.append(self._mode_title(self.queue.mode))
        self.title_bar.show((*parts, *self.queue.progress()), self.right_title_parts())
        unordered = counted(self.queue.contents.unordered, "label")
        prefix = f"order of {unordered} unknown · " if self.queue.contents.unordered else ""
        self.main_list.border_title = plain_title(f"{prefix}{TITLE}")

    def right_title_parts(self) -> tuple[str, ...]:
        """Return the adjudicator, others at the same case, and whether names are hidden."""
        opened = self.mast.opened
        if opened is None:
            return (self.mast.workspace.waiting_text(),)
        presence = self._presence_service
        others_present = () if presence is None else presence.annotators_here()
        parts = [*self.mast.workspace.unsent_text()]
        if others_present:
            verb = "is" if len(others_present) == 1 else "are"
            parts.append(
                f"{joined_names([one_line(name) for name in others_present])} {verb} deciding this"
            )
        parts.append(one_line(opened.annotator))
        if opened.decides:
            parts.append(ADJUDICATOR)
        if self.queue.names_hidden and self.queue.contents.entries:
            parts.append(f"names hidden ({self.mast.key_of('adjudicate.names')} shows)")
        return tuple(parts)

    def _show_lasting_message(self, message: str) -> None:
        """Show a message until the cursor moves to another row."""
        self._message_row = self.main_list.cursor
        self.hints.say(message)

    def _empty_queue_text(self, contents: QueueContents) -> str:
        """Return why there is nothing to adjudicate, and what to do."""
        if contents.entries:
            where = f"in {counted(len(contents.entries), 'trace')} that two people have finished"
            if self.queue.mode is not None:
                where = f"on {self._mode_title(self.queue.mode)} {where}"
            agreed_count, single_count = self.queue.undisputed_counts()
            compared = "No mode has verdicts of two people, so there is nothing to decide"
            if agreed_count:
                compared = f"{counted(agreed_count, 'verdict')} of two or more people, who agree"
            return (
                f"No conflicts {where}.\n\n{compared}; {counted(single_count, 'verdict')} of one "
                "person.\n\nThese verdicts go to the gold without a decision; "
                f"{self.mast.key_of('adjudicate.agreed')} lists them. {self._gold_hint()}."
            )
        counts = [f"{one_line(name)} {count}" for name, count in contents.finished.items() if count]
        finished_text = f"Finished so far: {joined_names(counts)}." if counts else ""
        if contents.outside_text:
            finished_text = f"{finished_text}\n{contents.outside_text}".strip()
        return (
            "Nothing to adjudicate: two people must have finished the same trace.\n\n"
            f"{finished_text or 'No one has finished a trace.'}\n\n"
            f"{self.mast.key_of('annotate.finish')} in an open trace finishes it. "
            f"Another person labels here with\n{self.mast.options.command_of_another()}\n"
            f"or presses {self.mast.key_of('everywhere.another_annotator')}.\n\n"
            "mast-tui import adds labels from files."
        )

    def row_moved(self) -> None:
        """Show the row under the cursor, and drop a boundary that was moved."""
        self.evidence.fixed_end_index = None
        if self.main_list.cursor != self._message_row:
            self.hints.clear()
        self._message_row = None
        self._show_row()

    @on(VirtualLines.Moved, "#evidence")
    def _span_moved(self) -> None:
        self.evidence.span_moved()

    @on(VirtualLines.Moved, "#sides")
    def _side_moved(self) -> None:
        self.evidence.side_moved()

    def _show_row(self) -> None:
        """Show the sides and the evidence of the row under the cursor.

        Also let other adjudicators see which case this is.
        """
        row = self.queue.row
        cases = self.queue.current_cases
        case = self.queue.current_case
        self._presence_key = None if cases is None or case is None else cases.presence_key(case.id)
        self._move_presence(self._presence_key)
        self._show_hints_of_row(row, cases, case)
        if row is None:
            self.evidence.show_case(None)
        elif cases is None:  # the labels are hidden from the user, or still being read
            self._visible_trace_id = None
            self.evidence.show_trace(None)
            reason = self.queue.locked_text(row.trace_id, self.mast.key_of)
            self.evidence.show_case(None, empty=reason)
        else:
            self._open_trace(row.trace_id)
            self._show_case(cases, case)

    def _show_hints_of_row(
        self, row: QueueRow | None, cases: TraceCases | None, case: AdjudicationCase | None
    ) -> None:
        """Show the keys that can act on a row, with its case if it has one."""
        first_hints = _FIRST_HINTS.get(RowState.TRACE if row is None else row.state, {})
        if row is not None and row.trace_id in self.queue.hidden_traces():
            first_hints = {"enter": "adjudicate it"}
        elif case is not None and case.is_open and not case.is_verdict:
            first_hints = {"side_1": "take a side", "both": "both", "nobody": "drop places"}
        if self.queue.cases and not self._left_text():
            first_hints = {**first_hints, "export": "export the gold", "agreement": "agreement"}
        hidden_actions: Sequence[str] = _DECIDING_ACTIONS if case is None else ()
        if row is None:
            hidden_actions = (*_DECIDING_ACTIONS, "next_conflict", "names")
            if self.queue.contents.entries:
                first_hints = {"agreed": "agreed items", **first_hints}
        if case is not None and cases is not None and case.is_verdict:
            answers = Counter(answer.value for answer in cases.question(case).answers)
            present_count = answers[VerdictValue.PRESENT]
            if case.is_open and present_count == 1:
                first_hints = {"side_1": "take a side", "both": "present"}
            elif present_count < 2:  # there are no two places to keep, and perhaps none to move
                hidden_actions = ("both",) if present_count else ("both", "boundary")
        self.hints.leave_out(hidden_actions, first=first_hints)

    def _show_case(self, cases: TraceCases, case: AdjudicationCase | None) -> None:
        """Show a case, or for None the names of the sides.

        A judge's answer appears only after it is recorded that it was shown.
        """
        if case is None:
            names = joined_names(cases.names.listed(side.annotator for side in cases.sides))
            text = f"{names} have finished this trace."
            if self.queue.names_hidden:
                key = self.mast.key_of("adjudicate.names")
                text += f" Each letter is an annotator; {key} shows their names."
            self.evidence.show_case(None, empty=text)
        elif not self.queue.is_reading and (self._judge_first or not case.is_open):
            # A judge's answer may be shown.
            self.writes.do(partial(self._show_with_judge, cases, case), HeldKeys.NOTHING)
        else:
            self._show_view(case, cases.view(case))

    async def _show_with_judge(self, cases: TraceCases, case: AdjudicationCase) -> None:
        """Show the panes of a case, with judges' answers if these may be shown.

        Judges' answers are recorded as shown. They may be shown if the study shows judges first, or
        the adjudicator has seen answers on this mode.
        """
        view = cases.view(case)
        work = await self._adjudication_of(cases.trace_id)
        if work is not None and (self._judge_first or work.judge_shown(case.mode)):
            answers = await self.run_or_show_error(lambda: work.judge_answers(case.mode))
            view = replace(view, sides=(*view.sides, *judge_views(answers or (), cases.order)))
        self._show_view(case, view)

    def _show_view(self, case: AdjudicationCase, view: CaseView) -> None:
        """Show the panes of a case, unless the cursor has left it or it has changed."""
        if self.queue.current_case is case:
            self.evidence.show_case(view, is_reading=self.queue.is_reading)

    def _open_trace(self, trace_id: str) -> None:
        """Show the trace of the row, after reading it if needed."""
        if trace_id == self._visible_trace_id:
            return
        self._visible_trace_id = trace_id
        loader = self.queue.contents.loader
        if loader is not None and loader.was_read(trace_id):
            self.evidence.show_trace(loader.loaded(trace_id), self.queue.name_of(trace_id))
            return
        self.evidence.show_trace(None)
        if loader is not None:
            self._trace_reading = self.work.run(
                "trace",
                lambda: loader.read(trace_id),
                lambda _: self._show_read_trace(trace_id),
            )

    def _show_read_trace(self, trace_id: str) -> None:
        """Show the trace if its row is still under the cursor."""
        row = self.queue.row
        if row is not None and row.trace_id == trace_id:
            self._visible_trace_id = None  # so that the trace is shown again, now with its spans
            self._show_row()

    def action_conflict(self, step: int) -> None:
        """Move to the next or previous open conflict."""
        if not self._go_to_open(step):
            self.hints.say(self._finished_text())

    def _go_to_open(self, step: int = 1) -> bool:
        """Move the cursor to the next open conflict; return False if there is none.

        Args:
            step: 1 for the next conflict, -1 for the previous one.
        """
        position = self.queue.next_open(self.main_list.cursor, step)
        if position is None:
            return False
        if position == self.main_list.cursor:
            self._show_row()
        else:
            self.main_list.move_to(position)
        return True

    def action_trace(self, step: int) -> None:
        """Move to the next or previous trace: to its first open conflict, or its first case."""
        position = self.main_list.next_trace(self.main_list.cursor, step)
        if position is None:
            self.hints.say("This is the last trace" if step > 0 else "This is the first trace")
        else:
            self.main_list.move_to(self.main_list.first_in_trace(position))

    def action_text(self, delta: int) -> None:
        """Scroll the span's text by screens."""
        self.evidence.span_view.move_page(delta)

    def action_pane(self) -> None:
        """Focus the next visible pane."""
        sides_panel = self.evidence.sides_panel
        panes = [self.main_list, sides_panel, self.evidence.timeline, self.evidence.span_view]
        next_pane = self.pane_after_current(panes)
        next_pane.focus()
        if next_pane is sides_panel:
            # In this pane each disputed place can be decided alone.
            self._explain_single_places()

    def go_to_place(self, text: str) -> bool:
        """Move to a span by its number (from 1) or key; return False if there is none."""
        return self.evidence.go_to_place(text)

    def action_open(self) -> None:
        """Do what Enter does."""
        self.action_enter()

    def action_enter(self) -> None:
        """Do the first possible of these actions.

        - Decide on the boundary that is moved.
        - Take the answer of a side without a key.
        - Ask whether to adjudicate a hidden trace.
        - Focus the timeline.
        """
        row = self.queue.row
        side = self._side_without_key()
        if self.evidence.boundary() is not None:
            self._take_boundary()
        elif side is not None:
            self.action_side(side)
        elif row is not None and self.queue.current_cases is None:  # the trace is hidden
            self._ask_to_take_on(row.trace_id)
        elif self.evidence.has_spans:
            self.evidence.timeline.focus()
            up, down, back = map(
                self.mast.key_of, ("adjudicate.up", "adjudicate.down", "everywhere.back")
            )
            self.hints.say(f"{up} {down} move over the evidence · {back} returns to the conflicts")

    def _side_without_key(self) -> int | None:
        """Return the number of the side under the cursor, if it has no digit key.

        Return None if the sides panel does not have the focus.
        """
        panel = self.evidence.sides_panel
        side = panel.side if self.focused is panel else None
        if side is None or side.number is None or side.number <= MOST_SIDE_KEYS:
            return None
        return side.number

    def action_back(self) -> None:
        """Leave the boundary, then the pane, then the screen."""
        if self.asks:  # a boundary is being moved
            self.evidence.fixed_end_index = None
            self.hints.clear()
            self.main_list.focus()
            self._show_row()
        elif self.focused is not None and self.focused is not self.main_list:
            self.main_list.focus()
        else:
            super().action_back()

    def action_names(self) -> None:
        """Switch between letters and names for the sides."""
        are_hidden = not self.queue.names_hidden
        self.queue.set_names_hidden(are_hidden)
        self.show_title()
        self._show_row()
        key = self.mast.key_of("adjudicate.names")
        self.hints.say(
            "Letters stand for the annotators, in another order on each trace · "
            f"{key} shows the names"
            if are_hidden
            else f"The sides are shown by name · {key} hides the names"
        )

    def action_agreed(self) -> None:
        """Show or hide undisputed modes. While a boundary is moved, begin it at the cursor."""
        if self.asks:  # a boundary is being moved
            self.evidence.begin_boundary()
            self._prompt_boundary()
        else:
            self._list_agreed(not self.queue.lists_agreed)
        if self.queue.was_read:
            self.set_class(not self.main_list.rows, "-empty")
            if self.main_list.rows and self.focused is None:
                self.main_list.focus()

    def _list_agreed(self, lists_agreed: bool) -> None:
        """Show or hide the agreed cases, with a hint about them."""
        self.queue.lists_agreed = lists_agreed
        self.queue.show()
        self.show_title()
        self._visible_trace_id = None
        self._show_row()
        key_of = self.mast.key_of
        self.hints.say(
            "rows with = (agreed) and · (one person) need no decision for the gold · "
            f"{key_of('adjudicate.overrule')} overrules one · "
            f"{key_of('adjudicate.agreed')} hides them"
            if lists_agreed
            else "Only disputed items are listed"
        )

    def _ask_to_take_on(self, trace_id: str) -> None:
        """Ask whether to adjudicate a hidden trace or all of them, and begin.

        Show a hint if the annotator must finish the trace first.
        """
        if self.queue.must_be_finished(trace_id):
            self._say_to_finish()
            return
        contents = self.queue.contents
        hidden_ids = self.queue.hidden_traces()
        answers = [("a", "adjudicate it"), ("n", "leave it hidden")]
        # The number of hidden traces would reveal which ones are retests.
        if trace_id in hidden_ids and len(hidden_ids) > 1 and not contents.may_retest:
            answers.insert(1, ("e", f"adjudicate all {len(hidden_ids)} hidden traces"))

        def take_on_traces(trace_ids: list[str]) -> None:
            self.mast.workspace.when_ready(lambda opened: self._take_on(opened, trace_ids))

        self.mast.ask_key(
            f"Adjudicate {self.queue.name_of(trace_id)}?",
            STUDY_QUESTION if contents.may_retest else QUESTION,
            tuple(answers),
            {"a": partial(take_on_traces, [trace_id]), "e": partial(take_on_traces, hidden_ids)},
            default="n",
        )

    @piece_of_work
    async def _take_on(self, opened: OpenWorkspace, trace_ids: list[str]) -> None:
        """Begin to adjudicate traces, and read the queue again.

        Show a hint if the annotator has begun to label them.
        """
        started_ids = await self.run_or_show_error(
            lambda: take_on(opened.workspace, opened.taxonomy, opened.annotator, trace_ids)
        )
        if started_ids:
            self._start_reading(opened)
        elif started_ids is not None:
            self._say_to_finish()

    def _say_to_finish(self) -> None:
        key = self.mast.key_of("annotate.finish")
        self.hints.say(
            f"You have begun to label this trace: finish it ({key}), then adjudicate", error=True
        )

    async def _adjudication_of(self, trace_id: str) -> Adjudication | None:
        """Return the adjudicator's work on a trace, from a cache if possible.

        If it cannot be read, show the reason and return None.
        """
        adjudication = self._adjudications.get(trace_id)
        opened = self.mast.opened
        loader = self.queue.contents.loader
        if adjudication is not None or opened is None or loader is None:
            return adjudication
        if not await self._wait_for_reading(loader, trace_id):
            return None
        adjudication = await self.run_or_show_error(
            lambda: Adjudication(
                opened.workspace,
                opened.taxonomy,
                trace_id,
                opened.annotator,
                order=loader.known_order(trace_id),
            )
        )
        if adjudication is not None:
            self._adjudications[trace_id] = adjudication
        return adjudication

    async def _wait_for_reading(self, loader: TraceLoader, trace_id: str) -> bool:
        """Wait until a trace is read. After too long, show a hint and return False."""
        deadline = monotonic() + READING_WAIT
        while not loader.was_read(trace_id):
            if self._trace_reading is not None and self._trace_reading.is_finished:
                return False  # The reading has failed, and its error is shown.
            if monotonic() > deadline:
                self.hints.say("The trace is still being read; press the key again in a moment")
                return False
            await sleep(_READING_CHECK)
        return True

    async def _case_at_cursor(self) -> CaseAtCursor | None:
        """Return the case under the cursor, or None.

        Without a case, a hint says what to choose. For a hidden trace, a dialog asks whether to
        adjudicate it.
        """
        row = self.queue.row
        cases = self.queue.current_cases
        case = self.queue.current_case
        if row is not None and cases is None:
            self._ask_to_take_on(row.trace_id)
            return None
        if row is None or (case is None and not self._left_text()):
            if self.queue.was_read:
                self.hints.say(self._finished_text())
            return None
        if cases is None or case is None:
            key_of = self.mast.key_of
            self.hints.say(
                f"Choose a conflict of this trace: {key_of('adjudicate.down')}, "
                f"or {key_of('adjudicate.next_conflict')} for the next one"
            )
            return None
        work = await self._adjudication_of(row.trace_id)
        return None if work is None else CaseAtCursor(work, cases, case)

    def _place_at_cursor(self) -> Target | None:
        """Return the place under the cursor of the sides panel, to decide it alone.

        Return None without the focus or without a place.
        """
        if self.focused is not self.evidence.sides_panel or self.evidence.sides_panel.place is None:
            return None
        return self.evidence.sides_panel.place.target

    def _mode_title(self, slug: str) -> str:
        return " ".join(mode_code_and_name(self.mast.taxonomy, slug))

    def _news_of_decisions(self, contents: QueueContents) -> str:
        """Return a message about decisions of others that are not on screen yet; empty for none.

        Decisions that replace one of the user come first.
        """
        news: list[_News] = []
        for trace_id, cases in contents.cases.items():
            shown_cases = self.queue.cases.get(trace_id)
            if shown_cases is not None:
                shown_by_item = {decision.item: decision for decision in shown_cases.decisions}
                news += self._news_of_trace(cases, shown_by_item)
        messages = [item.message for item in sorted(news, key=lambda item: not item.replaces_own)]
        if len(messages) > 1:
            return f"{messages[0]} · {counted(len(messages) - 1, 'more decision')}"
        return "".join(messages)

    def _news_of_trace(
        self, cases: TraceCases, shown_by_item: Mapping[str, Decision]
    ) -> Iterator[_News]:
        """Yield a message for each case with decisions of others that are not on screen.

        ``shown_by_item`` are the decisions on screen by item.
        """
        for case in cases.disputed:
            new_decisions = [
                decision
                for decision in case.decisions
                if decision != shown_by_item.get(decision.item)
                and decision.decided_by != self._annotator_name
            ]
            if not new_decisions:
                continue
            message = self._news_text(cases, case, new_decisions)
            replaces_own = any(
                self._replaces_own_decision(decision, shown_by_item) for decision in new_decisions
            )
            if replaces_own:
                message += ", which replaces your decision"
            yield _News(message, replaces_own)

    def _replaces_own_decision(
        self, decision: Decision, shown_by_item: Mapping[str, Decision]
    ) -> bool:
        """Return whether a decision replaces a different decision of the user on the same item.

        ``shown_by_item`` are the decisions on screen by item.
        """
        replaced = shown_by_item.get(decision.item)
        return (
            replaced is not None
            and replaced.decided_by == self._annotator_name
            and (replaced.value, replaced.targets) != (decision.value, decision.targets)
        )

    def _news_text(
        self, cases: TraceCases, case: AdjudicationCase, new_decisions: Sequence[Decision]
    ) -> str:
        """Return who has decided a case, on which trace, and the result."""
        names = list(dict.fromkeys(one_line(decision.decided_by) for decision in new_decisions))
        verb = "has" if len(names) == 1 else "have"
        trace_text = ""
        if not self.queue.is_at_cursor(cases.trace_id, case.id):
            trace_text = f" on {one_line(self.queue.name_of(cases.trace_id), 40)}"
        return (
            f"{joined_names(names)} {verb} decided {self._mode_title(case.mode)}{trace_text}: "
            f"{outcome(case.decisions, cases.names)}"
        )

    @property
    def _order(self) -> Order:
        """The order of the spans of the trace under the cursor.

        The evidence may still show another trace.
        """
        cases = self.queue.current_cases
        return no_order if cases is None else cases.order

    @property
    def _annotator_name(self) -> str | None:
        return None if self.mast.opened is None else self.mast.opened.annotator

    def _show_outcome(self, work: Adjudication) -> None:
        """Show the rows of a trace with its present decisions, and count the change."""
        self._change_count += 1
        self.queue.update_trace(work)
        self.show_title()

    def action_side(self, number: int) -> None:
        """Decide the conflicts under the cursor with the answer of a side.

        Args:
            number: The number of the side on screen.
        """

        def answer_of_side(group: ConflictGroup) -> Choices | str:
            """Return the choices of the side with the number, or a message if there is none."""
            cases = self.queue.current_cases
            side = None if cases is None else cases.side_name(group, number)
            if side is None:
                return f"There is no side {number}, only {counted(len(group.answers), 'side')}"
            return group.take_side(side)

        self._decide_at_cursor(answer_of_side)

    @on(SidesPanel.Chosen, "#sides")
    def _side_chosen(self) -> None:
        side = self.evidence.sides_panel.side
        if side is not None and side.number is not None:
            self.action_side(side.number)

    def action_sides(self) -> None:
        """Focus the sides, and show the keys for them.

        For several disputed places, the hint explains how to decide one of them.
        """
        self.evidence.sides_panel.focus()
        if not self._explain_single_places():
            key_of = self.mast.key_of
            self.hints.say(
                f"The key to the left of a side takes it; {key_of('adjudicate.up')} "
                f"{key_of('adjudicate.down')} look at its places"
            )

    def _explain_single_places(self) -> bool:
        """Show how to decide one of several disputed places, and return True.

        If there are fewer than two, return False.
        """
        cases = self.queue.current_cases
        case = self.queue.current_case
        if (
            cases is None
            or case is None
            or not case.is_open
            or len(cases.question(case).conflicts) < 2
        ):
            return False
        names = ("up", "down", "nobody", "boundary", "other_mode", "both")
        up, down, nobody, boundary, other_mode, both = (
            self.mast.key_of(f"adjudicate.{name}") for name in names
        )
        self.hints.say(
            f"{up} {down} to one place: {nobody} drops it alone, {boundary} moves it, "
            f"{other_mode} other mode · 1…9 or {both} decides all places"
        )
        return True

    def action_both(self) -> None:
        """Decide that the mode is present at all places that sides have marked.

        Without any, show the keys for another decision.
        """
        absent = self.mast.key_of("adjudicate.nobody")
        unsure = self.mast.key_of("adjudicate.unsure")
        self._decide_at_cursor(
            lambda group: (
                group.take_all(self._order)
                or f"No side says present: take a side, or press {absent} (absent) or "
                f"{unsure} (unsure)"
            )
        )

    def action_nobody(self) -> None:
        """Decide that the mode is absent, or that disputed places are dropped.

        With the cursor on a place in the list of the sides, drop that place only.
        """
        target = self._place_at_cursor()
        self._decide_at_cursor(lambda group: group.take_same(ABSENT_CHOICE), only_target=target)

    def action_unsure(self) -> None:
        """Decide that the mode is unsure. For places, show the possible keys instead."""
        key_of = self.mast.key_of
        place_answers_text = (
            f"A place cannot be unsure: take a side, {key_of('adjudicate.both')} both, "
            f"{key_of('adjudicate.nobody')} none, {key_of('adjudicate.boundary')} moves it"
        )
        self._decide_at_cursor(
            lambda group: (
                place_answers_text if group.kind is ConflictKind.PLACE else group.take_same(UNSURE)
            )
        )

    def _take_boundary(self) -> None:
        """Decide that the mode is present within the boundary.

        If the cursor was on a place when the move began, only that place is decided.
        """
        target = self.evidence.boundary()
        if target is not None:
            self._decide_at_cursor(
                lambda group: group.take_own_place(target, self._order),
                overrules=True,
                only_target=self._boundary_target,
            )

    def action_overrule(self) -> None:
        """Overrule an agreed verdict.

        Change ``present`` to ``absent``, and any other verdict to ``present`` for the whole trace.
        """
        case = self.queue.current_case
        if case is None or case.agreed is None:
            key_of = self.mast.key_of
            where = f"{key_of('adjudicate.agreed')} lists them"
            if self.queue.lists_agreed:
                where = "go to a row with = or ·"
            self.hints.say(f"{key_of('adjudicate.overrule')} overrules an agreed item: {where}")
            return
        is_present = case.agreed.value is VerdictValue.PRESENT
        choice = ABSENT_CHOICE if is_present else Choice(VerdictValue.PRESENT, (WHOLE_TRACE,))
        self._decide_at_cursor(lambda group: group.take_same(choice), overrules=True)

    @piece_of_work
    async def _decide_at_cursor(
        self,
        choose: Callable[[ConflictGroup], Choices | str],
        *,
        overrules: bool = False,
        only_target: Target | None = None,
    ) -> None:
        """Decide the conflicts under the cursor and move on, or show why this is impossible.

        ``choose`` returns the choices or a message. ``overrules`` allows a decision on an agreed
        case. ``only_target`` is a place to decide alone.
        """
        at_cursor = await self._case_at_cursor()
        if at_cursor is None:
            return
        question = at_cursor.question(only_target)
        choices = NOT_IN_QUESTION if question is None else choose(question)
        if isinstance(choices, str):
            self.hints.say(choices, error=True)
            return
        is_agreed = at_cursor.case.agreed is not None
        if is_agreed and not overrules:
            key_of = self.mast.key_of
            self.hints.say(
                f"The sides agree here: {key_of('adjudicate.overrule')} overrules them, "
                f"{key_of('adjudicate.boundary')} names another place"
            )
            return
        await self._write_decisions(
            at_cursor.work,
            partial(at_cursor.work.decide_together, choices),
            partial(self._decision_text, at_cursor.cases),
            self._go_to_next_row if is_agreed else self._move_on,
        )

    @piece_of_work
    async def action_other_mode(self) -> None:
        """Decide that another mode is present at the same places."""
        at_cursor = await self._case_at_cursor()
        if at_cursor is None:
            return
        question = at_cursor.question(self._place_at_cursor())
        if question is None:
            self.hints.say(NOT_IN_QUESTION, error=True)
            return
        decide = partial(self._decide_other_mode, at_cursor.work, question)
        self.mast.ask(ModeFinder(self.mast.taxonomy), decide)

    @piece_of_work
    async def _decide_other_mode(self, work: Adjudication, group: ConflictGroup, slug: str) -> None:
        """Decide that the failure belongs to another mode, and move on."""
        await self._write_decisions(
            work,
            partial(work.decide_another_mode, group.conflicts, slug),
            lambda _: f"It is {self._mode_title(slug)}",
            self._move_on,
        )

    @piece_of_work
    async def action_confirm(self) -> None:
        """Confirm a decision after a side has changed its answer."""
        at_cursor = await self._case_at_cursor()
        if at_cursor is None:
            return
        cases = at_cursor.cases
        case = at_cursor.case
        outdated = case.outdated_decisions(cases.sides, cases.order)
        if not outdated:
            is_decided = case.decisions and not case.is_open
            reason = "No side has changed its answer" if is_decided else "Not decided yet"
            self.hints.say(f"{reason}: nothing to confirm")
            return
        await self._write_decisions(
            at_cursor.work,
            partial(at_cursor.work.confirm, *(decision.item for decision in outdated)),
            lambda _: f"{self._mode_title(case.mode)}: confirmed",
            self._move_on,
        )

    async def _write_decisions(
        self,
        work: Adjudication,
        write: Callable[[], Sequence[Decision]],
        text_of: Callable[[Sequence[Decision]], str],
        move_on: Callable[[str], None],
    ) -> None:
        """Write decisions and show them, ask for a reason if the study requires one, and move on.

        If they cannot be written, show the reason. Before the first one, ask a person who is no
        adjudicator of the study.

        Args:
            work: The adjudicator's work on the trace.
            write: Writes the decisions, and returns them.
            text_of: Describes them.
            move_on: Moves the cursor, and shows the description.
        """
        study = self.queue.contents.study
        if study is not None and not (study.is_adjudicator(work.adjudicator) or self._is_asked):
            again = partial(self._write_decisions, work, write, text_of, move_on)
            self._ask_to_decide(study, work.adjudicator, partial(self.writes.do, again))
            return
        decisions = await self.run_or_show_error(write)
        if decisions is None:
            return
        item_ids = tuple(decision.item for decision in decisions)
        self._undo_trace_ids.append(work.trace_id)
        self._redo_trace_ids.clear()
        self._last_decision = (work.trace_id, item_ids)
        self.evidence.fixed_end_index = None
        self._show_outcome(work)
        pane = self.evidence.sides_panel if self._is_partly_decided() else self.queue.lines
        pane.focus()
        self.hints.clear()
        if study is not None and study.reasons:
            self._ask_reason(work, item_ids, partial(move_on, text_of(decisions)))
        else:
            move_on(text_of(decisions))

    def _ask_to_decide(self, study: Study, annotator: str, decide: Callable[[], object]) -> None:
        """Ask a person who is no adjudicator of the study whether to decide."""

        def confirmed() -> None:
            self._is_asked = True
            decide()

        names = joined_names([one_line(name) for name in study.adjudicators])
        effect = (
            "Your decisions count in the gold as well; its datasheet reports who decided."
            if study.counts_decisions_of(annotator)
            else "You are not in the study, so your decisions count in no figure and no gold."
        )
        self.mast.ask_key(
            "Decide in place of the adjudicators?",
            f"The study leaves decisions to {names}. {effect}",
            (("d", "decide"), ("n", "decide nothing")),
            {"d": confirmed},
            default="n",
        )

    def _go_to_next_row(self, message: str) -> None:
        self.queue.lines.move_by(1)
        self._show_lasting_message(message)

    def _move_on(self, message: str) -> None:
        """Move to the next open conflict, and show a message with the number of open conflicts.

        If places of the row are still open, stay.
        """
        if self._is_partly_decided():
            self._show_row()
            message = f"{message} · its other places are open · {self._left_text()}"
        elif not self._go_to_open():
            self._show_row()
            message = f"{self._finished_text()} · {message}"
        else:
            message = f"{message} · {self._left_text()}"
        self._show_lasting_message(message)

    def _left_text(self) -> str:
        """Return the numbers of open conflicts and of decisions to confirm."""
        open_count = self.queue.open_count()
        changed_count = self.queue.changed_count()
        parts = [f"{open_count} left"] if open_count else []
        if changed_count:
            parts.append(f"{changed_count} to confirm")
        return ", ".join(parts)

    def _finished_text(self) -> str:
        """Return the message that nothing is left to decide, here or at all."""
        other_count = self.queue.open_in_other_modes()
        if self.queue.mode is not None and other_count:
            back, adjudicate = map(self.mast.key_of, ("everywhere.back", "everywhere.adjudicate"))
            return (
                f"Nothing left in this mode · {other_count} left in other modes: {back}, then "
                f"{adjudicate}"
            )
        is_everything = self.queue.mode is None and not self.queue.hidden_traces()
        where = "" if is_everything else " here"
        return f"Nothing left{where}: {self._gold_hint()}"

    def _gold_hint(self) -> str:
        """Return a hint with the keys that export the gold and show agreement."""
        export, agreement = (
            self.mast.key_of(f"everywhere.{name}") for name in ("export", "agreement")
        )
        return f"{export} exports the gold · {agreement} shows agreement"

    def _is_partly_decided(self) -> bool:
        """Return whether the row under the cursor has places left to decide."""
        row = self.queue.row
        return row is not None and row.state is RowState.OPEN

    def _decision_text(self, cases: TraceCases, decisions: Sequence[Decision]) -> str:
        """Return a decision with its places: ``1.3 Step repetition: present at #3, as alice``."""
        targets = in_reading_order(targets_taken(decisions), lambda target: target, cases.order)
        location = ""
        if targets:
            preposition = "in" if targets[0].is_whole else "at"
            location = f" {preposition} {places_text(targets, cases.order, MOST_PLACES)}"
        elif not decisions[0].is_verdict:
            dropped = {place for d in decisions for side in d.answers for place in side.targets}
            places = in_reading_order(dropped, lambda target: target, cases.order)
            location = f" ({places_text(places, cases.order, MOST_PLACES)})"
        # Several decisions on places of one mode are described by the taken places.
        verdict = "" if targets and len(decisions) > 1 else decided_words(decisions)
        text = f"{verdict}{location}".strip()
        return f"{self._mode_title(decisions[0].mode)}: {text}{source_text(decisions, cases.names)}"

    @piece_of_work
    async def action_reason(self) -> None:
        """Write the reason for the decision under the cursor, or for the last decision."""
        row = self.queue.row
        case = self.queue.current_case
        question = ""
        if row is not None and case is not None and case.decisions:
            trace_id = row.trace_id
            item_ids = self._items_to_explain(case)
        elif self._last_decision is not None:
            trace_id, item_ids = self._last_decision
            question = (
                "This is the reason for your last decision, not for the row under the cursor."
            )
        else:
            key = self.mast.key_of("adjudicate.reason")
            self.hints.say(f"A reason belongs to a decision: decide first, then press {key}")
            return
        work = await self._adjudication_of(trace_id)
        if work is None:
            return
        if not _decisions_on(work, item_ids):
            self.hints.say("A reason belongs to a decision, and the last one was undone")
            return

        def show_row() -> None:
            self.hints.clear()
            self._show_row()

        self._ask_reason(work, item_ids, show_row, question)

    def _items_to_explain(self, case: AdjudicationCase) -> tuple[str, ...]:
        """Return the items of a case that the user decided, or else all decided items."""
        own_items = tuple(d.item for d in case.decisions if d.decided_by == self._annotator_name)
        return own_items or tuple(decision.item for decision in case.decisions)

    def _ask_reason(
        self,
        work: Adjudication,
        items: tuple[str, ...],
        on_done: Callable[[], None],
        question: str = "",
    ) -> None:
        """Ask for the reason of a decision. Escape leaves it without one.

        Args:
            work: The adjudicator's work on the trace.
            items: The items that were decided.
            on_done: Called at the end: after the reason was written, after Escape, or at once if no
                item has a decision now.
            question: The text above the line; empty for none.
        """
        decisions = _decisions_on(work, items)
        if not decisions:
            on_done()
            return
        # The question names one mode, although the items may be of several.
        mode_decisions = [d for d in decisions if d.mode == decisions[0].mode]
        verdict = outcome(mode_decisions, self.queue.cases[work.trace_id].names)

        async def write(text: str, ask_again: Callable[[], None]) -> None:
            """Write the reason and show it, or ask again.

            Args:
                text: The reason.
                ask_again: Asks again, with the same text.
            """
            decided_items = [decision.item for decision in decisions]
            is_step = await self.run_or_show_error(partial(work.explain, decided_items, text))
            if is_step is None:
                ask_again()
                return
            if is_step:
                self._undo_trace_ids.append(work.trace_id)
                self._redo_trace_ids.clear()
            self._show_outcome(work)
            on_done()
            result = "reason saved" if text.strip() else "no reason"
            self.hints.say(" · ".join(filter(None, (self.hints.message, result))))

        self.mast.ask_to_write(
            partial(
                NoteScreen,
                f"Why? {self._mode_title(decisions[0].mode)}: {verdict}",
                decisions[0].reason,
                question=question,
                hint="Enter saves · Esc leaves the decision without a reason",
            ),
            lambda text, ask_again: self.writes.do(partial(write, text, ask_again)),
            left=on_done,
        )

    @property
    def _judge_first(self) -> bool:
        study = self.queue.contents.study
        return study is not None and study.judge_first

    @piece_of_work
    async def action_judge(self) -> None:
        """Show the judges' answers on the mode under the cursor, or on the last decided mode.

        Unless the study shows judges first, an open mode shows a hint instead.
        """
        if self.queue.current_cases is None:
            return
        case = self.queue.current_case
        is_open = case is None or case.is_open
        # After a decision the cursor is on the next open row, so the user means the last decision.
        if is_open and not self._judge_first and not self._go_to_last():
            self.hints.say(JUDGE_HIDDEN)
            return
        at_cursor = await self._case_at_cursor() if self.queue.current_case is not None else None
        if at_cursor is None:
            return
        work = at_cursor.work
        mode = at_cursor.case.mode
        # Another case of the same mode may be open.
        is_mode_open = any(conflict.mode == mode for conflict in work.gold.conflicts)
        if is_mode_open and not self._judge_first:
            self.hints.say(JUDGE_HIDDEN)
            return
        answers = await self.run_or_show_error(lambda: work.judge_answers(mode))
        if answers is None:
            return
        if work.workspace.away:
            self.hints.say("No connection to the server, which has the judges' answers", error=True)
            return
        self._show_row()
        self._show_lasting_message(f"{self._mode_title(mode)}: {_judges_text(answers)}")

    def _go_to_last(self) -> bool:
        """Move the cursor to the last decision; return False if that is undone or not listed."""
        if self._last_decision is None:
            return False
        trace_id, item_ids = self._last_decision
        item = item_ids[0]
        cases = self.queue.cases.get(trace_id)
        if cases is None or all(decision.item != item for decision in cases.decisions):
            return False
        if not self.queue.go_to_item(trace_id, item):
            return False
        self._show_row()
        return True

    def action_undo(self) -> None:
        """Undo the last decision of this session, or else the last one on this trace."""
        self._undo_or_redo(self._undo_trace_ids, self._redo_trace_ids, undo=True)

    def action_redo(self) -> None:
        """Redo the last undone decision."""
        self._undo_or_redo(self._redo_trace_ids, self._undo_trace_ids, undo=False)

    @piece_of_work
    async def _undo_or_redo(self, source: list[str], target: list[str], *, undo: bool) -> None:
        """Undo or redo a decision, and move its trace id from one stack to the other.

        With an empty ``source``, change the last decision on the trace under the cursor. A boundary
        that is moved is dropped.
        """
        cases = self.queue.current_cases
        nothing_text = "Nothing to undo" if undo else "Nothing to redo"
        trace_id = None if cases is None else cases.trace_id
        if source:
            trace_id = source[-1]
        if trace_id is None:
            self.hints.say(nothing_text)
            return
        work = await self._adjudication_of(trace_id)
        if work is None:
            return
        changed_items = await self.run_or_show_error(work.undo if undo else work.redo)
        if changed_items is None:
            return
        if source:
            source.pop()
        if not changed_items:
            self.hints.say(nothing_text)
            return
        target.append(trace_id)
        self.evidence.fixed_end_index = None
        self._show_outcome(work)
        self.queue.go_to_item(trace_id, changed_items[0])
        self._show_row()
        key = self.mast.key_of("everywhere.redo")
        subject = one_line(self.queue.name_of(trace_id), 30)
        if self.queue.current_case is not None:
            subject = f"{self._mode_title(self.queue.current_case.mode)} on {subject}"
        result = "open again" if self._is_partly_decided() else "as before"
        self._show_lasting_message(
            f"Undone: {subject} is {result} · {key} redoes it" if undo else f"Redone: {subject}"
        )

    @property
    def asks(self) -> bool:
        """True while a boundary is moved."""
        return self.evidence.fixed_end_index is not None

    def take_key(self, key: str, action: str | None) -> bool:
        """Ignore a key that does not work while a boundary is moved; return True if it is ignored.

        Args:
            key: The key.
            action: The id of the key's action, or None.
        """
        if action in BOUNDARY_ACTIONS:
            return False
        self._prompt_boundary()
        return True

    def _prompt_boundary(self) -> None:
        key_of = self.mast.key_of
        self.hints.prompt(
            f"{key_of('adjudicate.up')} {key_of('adjudicate.down')} move this end of the range · "
            f"{key_of('adjudicate.boundary')} the other end · "
            f"{key_of('adjudicate.agreed')} new range here · "
            f"{key_of('adjudicate.enter')} decides: present there · "
            f"{key_of('everywhere.back')} cancels"
        )

    @piece_of_work
    async def action_boundary(self) -> None:
        """Begin to move one end of a failure's spans, or switch to the other end.

        If the place is undisputed or the trace's file is missing, show an error.
        """
        if not self.asks:  # no boundary is being moved
            at_cursor = await self._case_at_cursor()
            target = self._place_at_cursor()
            if at_cursor is None:
                return
            if at_cursor.question(target) is None:
                self.hints.say(NOT_IN_QUESTION, error=True)
                return
            if not self.evidence.has_spans:
                self.hints.say(
                    "The boundary cannot be moved: the file of the trace is missing", error=True
                )
                return
            self._boundary_target = target
            self.evidence.timeline.focus()
        self.evidence.move_boundary(self._boundary_target)
        self._prompt_boundary()

    def action_guidelines(self) -> None:
        """Open the guidelines of the mode under the cursor."""
        row = self.queue.row
        case = self.queue.current_case
        listed_mode = self.queue.mode or self.mast.taxonomy.modes[0].slug
        # The trace and item of a decision that may be the reason for a new guideline.
        occasion = None
        if row is not None and case is not None and case.decisions:
            occasion = (row.trace_id, case.decisions[0].item)
        self.mast.go(
            ShowGuidelines(
                listed_mode if case is None else case.mode,
                may_write=True,
                occasion=occasion,
                go_to_case=self._go_to_case,
            )
        )

    def _go_to_case(self, case: GuidelineCase) -> bool:
        """Move the cursor to a decided case; return False if it is not listed."""
        if not self.queue.go_to_item(case.trace_id, case.decision.item):
            return False
        self.main_list.focus()
        self._show_row()
        return True


def _judges_text(answers: Sequence[JudgeAnswer]) -> str:
    """Return a message about the judges with shown answers."""
    names = [one_line(answer.judge.removeprefix(JUDGE_PREFIX), 24) for answer in answers]
    if not names:
        return "no judge has judged this mode here"
    return (
        f"{', '.join(names)}; decisions on this mode from now on count as made with the judge "
        "on screen"
    )


def _decisions_on(work: Adjudication, items: Sequence[str]) -> list[Decision]:
    decision_by_item = {decision.item: decision for decision in work.decisions}
    return [decision_by_item[item] for item in items if item in decision_by_item]
