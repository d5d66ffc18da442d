"""The adjudicate screen: what annotators differ on, the evidence, and one key to settle each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Where, bindings_for
from mast_tui.ui.adjudicate.after import After
from mast_tui.ui.adjudicate.cases import Cases, read_cases
from mast_tui.ui.adjudicate.conflict_list import ConflictList
from mast_tui.ui.adjudicate.rows import mode_words
from mast_tui.ui.phrases import joined
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.services.workspace_writer import writes
from mast_tui.ui.styles import ADJUDICATE, ANNOTATE, BASE_SCREEN
from mast_tui.ui.titles import plain_title
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.sides_panel import SidesPanel
from mast_tui.ui.widgets.title_bar import TitleBar

if TYPE_CHECKING:
    from mast_tui.ui.services.open_workspace import OpenWorkspace

QUESTION = (
    "You have not labelled this trace. As its adjudicator you will see what others said and can "
    "no longer label it independently."
)

QUESTION_OF_A_STUDY = (
    "As its adjudicator you will see what others said, and can no longer label this trace, or "
    "label it once more, without sight of it."
)


class AdjudicateScreen(After):
    """The queue on the left; the sides, the timeline and the span's text beside it.

    With ``mode`` (a slug) only what concerns that mode is listed.
    """

    CSS_PATH = [ANNOTATE, BASE_SCREEN, ADJUDICATE]
    HORIZONTAL_BREAKPOINTS = [
        (0, "-narrow"),
        (100, "-wide"),
    ]
    AUTO_FOCUS = "#queue"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.ADJUDICATE, Where.EVERYWHERE)
    where = Where.ADJUDICATE

    @dataclass
    class QueueRead(Message):
        """What everybody said was read."""

        cases: Cases

    @dataclass
    class TraceRead(Message):
        """A trace was looked for on this machine; ``problem`` is why it could not be."""

        trace_id: str
        problem: str | None = None

    def compose(self) -> ComposeResult:
        """The panes."""
        yield TitleBar()
        with Container(id="desk", classes="filled"):
            yield ConflictList(id="queue")
            with Vertical(id="beside"):
                yield SidesPanel(id="sides")
                yield Timeline(id="evidence")
                yield SpanView(id="text")
        with Vertical(classes="words"):
            yield Static(id="words", markup=False)
        yield HintBar(self.where)

    def on_mount(self) -> None:
        """Read the queue as soon as the workspace is open."""
        self.main_list.border_title = plain_title("Where annotators differ")
        self._show_words("Opening the workspace …")
        self.show_title()
        self.mast.when_ready(self._start)

    def _start(self, opened: OpenWorkspace) -> None:
        if self.cases is None:
            self._show_words("Reading what everybody said …")
        self._read_queue(opened)

    @work(thread=True, group="queue", exclusive=True)
    def _read_queue(self, opened: OpenWorkspace) -> None:
        traces = list(self.mast.catalog.traces.values())
        self.post_message(self.QueueRead(read_cases(opened, traces)))

    def on_adjudicate_screen_queue_read(self, message: QueueRead) -> None:
        """List what was read, or say why there is nothing to adjudicate."""
        if message.cases.problem is not None:
            self._show_words(one_line(message.cases.problem))
            return
        self._adjudications.clear()
        self.take_in(message.cases)
        nothing = not self.main_list.rows and not self.agreed
        self.set_class(nothing, "-empty")
        if nothing:
            self._show_words(self._nothing_words(message.cases))
        else:
            self.main_list.focus()

    def action_agreed(self) -> None:
        """Look through what was agreed, also where nothing else is listed."""
        super().action_agreed()
        if self.cases is not None:
            self.set_class(not self.main_list.rows, "-empty")
            if self.main_list.rows and self.focused is None:
                self.main_list.focus()

    def read_trace(self, trace_id: str) -> None:
        """Read a trace in the background."""
        at_hand = self.cases.at_hand if self.cases is not None else None
        if at_hand is not None:
            self._read_trace(at_hand, trace_id)

    @work(thread=True, group="trace", exclusive=True)
    def _read_trace(self, at_hand: TraceLoader, trace_id: str) -> None:
        from mast_tui.workspace import WorkspaceError

        try:
            at_hand.read(trace_id)
        except WorkspaceError as error:
            self.post_message(self.TraceRead(trace_id, str(error)))
            return
        self.post_message(self.TraceRead(trace_id))

    def on_adjudicate_screen_trace_read(self, message: TraceRead) -> None:
        """Show the trace where it is still wanted."""
        if message.problem is not None:
            self.hints.say(one_line(message.problem), error=True)
        else:
            self.trace_read(message.trace_id)

    def take_on(self, trace_id: str) -> None:
        """Ask once; the answer is recorded as the beginning of an adjudication pass."""
        from mast_tui.adjudication import Access
        from mast_tui.ui.dialogs.question import Ask

        entries = self.cases.entries if self.cases is not None else ()
        hidden = [one.trace_id for one in entries if one.access is Access.HIDDEN]
        answers = [("a", "adjudicate it"), ("n", "leave it hidden")]
        if trace_id in hidden and len(hidden) > 1 and not self.may_come_back:
            answers.insert(1, ("e", f"every one of the {len(hidden)} that you have not labelled"))

        question = QUESTION_OF_A_STUDY if self.may_come_back else QUESTION

        def answered(answer: str | None) -> None:
            if answer in ("a", "e"):
                wanted = [trace_id] if answer == "a" else hidden
                self.mast.when_ready(lambda opened: self._take_on(opened, wanted))

        self.app.push_screen(
            Ask(f"Adjudicate {self.name_of(trace_id)}?", question, tuple(answers), default="n"),
            answered,
        )

    @writes
    def _take_on(self, opened: OpenWorkspace, trace_ids: list[str]) -> None:
        from mast_tui.adjudication import take_on

        taken = self.attempt(
            lambda: take_on(opened.workspace, opened.taxonomy, opened.annotator, trace_ids)
        )
        if taken is None:
            return
        if not taken:
            self.hints.say(
                "You have begun to label this trace: finish it (D), then adjudicate", error=True
            )
            return
        self._read_queue(opened)

    def _show_words(self, words: str) -> None:
        self.add_class("-empty")
        self.query_one("#words", Static).update(Content(words))

    def _nothing_words(self, cases: Cases) -> str:
        """Why there is nothing to adjudicate, and what to do."""
        if cases.entries:
            count = len(cases.entries)
            traces = "the trace" if count == 1 else f"all {count} traces"
            what = ""
            if self.mode is not None:
                what = f" on {' '.join(mode_words(self.mast.taxonomy, self.mode))}"
            return (
                f"Nothing to adjudicate: in {traces} that two people have finished they agree"
                f"{what}.\n\nAgreed items are taken over without a key; v looks through them."
            )
        lines = ["Nothing to adjudicate: that needs two people who have finished the same trace."]
        done = [f"{one_line(name)} {count}" for name, count in cases.finished.items() if count]
        lines += ["", f"Finished so far: {joined(done)}." if done else "Nobody has finished one."]
        lines += [
            "",
            "D in an open trace finishes it. Somebody else labels here with\n"
            "mast-tui --annotator NAME, or mast-tui import brings their labels in.",
        ]
        return "\n".join(lines)
