"""The study screen: what was set up, how far everybody is, and setting it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.binding import BindingType
from textual.message import Message

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.traces.shelved import anew
from mast_tui.ui.actions.registry import Where, bindings_for
from mast_tui.ui.screens.table_screen import TableScreen
from mast_tui.ui.study.form import Texts, study_of, texts_of
from mast_tui.ui.study.rows import (
    COLUMNS,
    StudyView,
    progress_words,
    protocol_words,
    study_view,
    table_rows,
)
from mast_tui.ui.styles import BASE_SCREEN, RUNS, STUDY
from mast_tui.ui.titles import plain_title
from mast_tui.ui.widgets.column_table import ColumnTable
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.study import Study
    from mast_tui.ui.services.open_workspace import OpenWorkspace

NO_STUDY: Final = """No study is set up here, so every trace is everybody's.

A study fixes once who labels which traces, in which order and under which conditions, and keeps that with the labels. Each annotator then has a queue of what is theirs to do, figures say what they rest on, and a reader can tell how the gold came about.

e sets one up over the traces of the library: a form of ten fields, of which only the names need a look."""  # noqa: E501

KEPT_AT_ONCE: Final = 100
"""Traces that are made known in one transaction, so that others can write in between."""


class StudyScreen(TableScreen):
    """Who has come how far. What would tell an annotator what others say is left out."""

    CSS_PATH = [BASE_SCREEN, RUNS, STUDY]
    AUTO_FOCUS = "#people"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.STUDY, Where.EVERYWHERE)
    where = Where.STUDY

    @dataclass
    class Known(Message):
        """The study and how far it is, or why that could not be read."""

        view: StudyView | None
        problem: str = ""

    @dataclass
    class SetUp(Message):
        """What came of setting it up: in words, or why it was refused."""

        words: str
        problem: bool = False

    def __init__(self) -> None:
        super().__init__()
        self.view: StudyView | None = None

    def make_table(self) -> ColumnTable:
        """The annotators."""
        return ColumnTable(COLUMNS, id="people")

    @property
    def main_list(self) -> ColumnTable:
        """The annotators."""
        return self.query_one("#people", ColumnTable)

    def on_mount(self) -> None:
        """Read the study as soon as the workspace is open."""
        super().on_mount()
        self.mast.when_ready(self._start)

    def on_screen_resume(self) -> None:
        """Somebody may have gone on meanwhile."""
        if self.view is not None and self.mast.opened is not None:
            self._start(self.mast.opened)

    def _start(self, opened: OpenWorkspace) -> None:
        if self.view is None:
            self.show_words("Reading the study …")
        self.read_study(opened, first=self.view is None)

    @work(thread=True, group="study", exclusive=True)
    def read_study(self, opened: OpenWorkspace, *, first: bool = False) -> None:
        """Read what was set up, and count how far everybody is; at ``first`` show that before it
        is counted what is left to decide."""

        try:
            if first:
                view = study_view(opened, counted=False)
                if view is not None:
                    self.post_message(self.Known(view))
            view = study_view(opened, list(self.mast.catalog.traces.values()))
        except MastError as error:
            self.post_message(self.Known(None, str(error)))
            return
        self.post_message(self.Known(view))

    def on_study_screen_known(self, message: Known) -> None:
        """Show the study, or what one is good for."""
        self.view = message.view
        if message.view is None:
            self.show_words(one_line(message.problem) or NO_STUDY)
        else:
            opened = self.mast.opened
            self.remove_class("-empty")
            self.main_list.show(
                table_rows(message.view, "" if opened is None else opened.annotator)
            )
            if self.focused is None:
                self.main_list.focus()
            self.detail.border_title = plain_title("What was set up")
            self.detail.border_subtitle = plain_title("e changes it · d b scroll")
            self.detail.show_text(protocol_words(message.view))
        self.show_title()

    def show_title(self) -> None:
        """What is open, and who works."""
        left = ["Study"]
        if self.view is not None:
            left.append(progress_words(self.view))
        self.title_bar.show(tuple(left), self.who())

    @on(VirtualLines.Moved, "#people")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.hints.clear()

    def action_text(self, delta: int) -> None:
        """Scroll what was set up."""
        self.detail.move_page(delta)

    # Setting it up

    def action_set_up(self) -> None:
        """Set the study up, or change it."""
        if self.mast.refused is not None:
            self.hints.say("No workspace is open, so nothing can be set up", error=True)
            return
        self.mast.when_ready(self._ask)

    def _ask(self, opened: OpenWorkspace) -> None:
        from mast_tui.ui.services.open_workspace import people
        from mast_tui.ui.study.setup import StudySetup

        before = opened.study()
        known = self._traces_here()
        if before is None and known is None:
            return
        ids = [trace.identity.trace_id for trace in known or ()]

        def check(texts: Texts) -> None:
            study = study_of(texts, taxonomy=opened.taxonomy.ref, before=before, traces=ids)
            if before is not None:
                self._change(opened, study)

        def answered(texts: Texts | None) -> None:
            if texts is None:
                return
            if before is not None:
                self._is_set_up(opened, "The study is set up as you said")
                return
            self.hints.prompt("Setting the study up …")
            study = study_of(texts, taxonomy=opened.taxonomy.ref, before=None)
            self.take_in(opened, study, known or [])

        count = f"{len(ids):,} trace{'' if len(ids) == 1 else 's'}"
        title = f"A study of {count}" if before is None else "Change the study"
        texts = texts_of(before, people(opened.workspace))
        self.app.push_screen(StudySetup(title, texts, check), answered)

    @staticmethod
    def _change(opened: OpenWorkspace, study: Study) -> None:
        """Change the study; what is refused is raised, for the form to say."""
        from mast_tui.session import set_study

        set_study(opened.workspace, opened.annotator, study)

    def action_add(self) -> None:
        """Take in the library's traces that are not in the study yet, as a further lot."""
        view, opened = self.view, self.mast.opened
        if view is None or opened is None:
            self.hints.say("There is no study yet: e sets one up")
            return
        known = self._traces_here()
        if known is None:
            return
        there = frozenset(view.study.traces)
        new = [trace for trace in known if trace.identity.trace_id not in there]
        if not new:
            self.hints.say("All traces of the library are in the study already")
            return
        from mast_tui.ui.dialogs.question import Ask

        def answered(answer: str | None) -> None:
            if answer == "y":
                self.hints.prompt("Taking traces in …")
                self.take_in(opened, view.study, new)

        count = "1 trace" if len(new) == 1 else f"{len(new):,} traces"
        self.app.push_screen(
            Ask(
                f"Take in {count}?",
                "They come as a further lot, after the others in every queue. Who labels those "
                "stays as it is. Traces cannot be taken out again once somebody has finished one.",
                (("y", "take them in"), ("n", "leave the study as it is")),
                default="y",
            ),
            answered,
        )

    def _traces_here(self) -> list[Trace] | None:
        """The traces of the library; None, which is said, where they are not all known."""
        catalog = self.mast.catalog
        if not catalog.complete:
            self.hints.say("Traces are still being looked for; try again when that is done")
            return None
        if not catalog.traces:
            self.hints.say("There are no traces in the library", error=True)
            return None
        return list(catalog.traces.values())

    @work(thread=True, group="take-in", exclusive=True)
    def take_in(self, opened: OpenWorkspace, study: Study, traces: Sequence[Trace]) -> None:
        """Set the study up with these traces on top of those that it has."""
        from mast_tui.session import known_trace, set_study, with_traces

        ids: list[str] = []
        try:
            for first in range(0, len(traces), KEPT_AT_ONCE):
                some = traces[first : first + KEPT_AT_ONCE]
                with opened.workspace.transaction():
                    ids += [known_trace(opened.workspace, anew(trace)) for trace in some]
            set_study(opened.workspace, opened.annotator, with_traces(study, ids))
        except MastError as error:
            self.post_message(self.SetUp(str(error), problem=True))
            return
        count = "1 trace" if len(ids) == 1 else f"{len(ids):,} traces"
        then = "L shows what is yours to do" if opened.annotates else "L opens the library"
        self.post_message(self.SetUp(f"{count} taken in · {then}"))

    def on_study_screen_set_up(self, message: SetUp) -> None:
        """Say what came of it, and show the study as it is now."""
        opened = self.mast.opened
        if message.problem or opened is None:
            self.hints.clear()
            self.mast.complain(message.words)
            return
        self._is_set_up(opened, message.words)

    def _is_set_up(self, opened: OpenWorkspace, words: str) -> None:
        self.mast.study_changed()
        self.show_title()
        self.read_study(opened)
        self.hints.say(words)
