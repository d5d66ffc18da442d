"""Texts in a window beside the trace: answer key, files, results, sums, and differences."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from mast_tui.configuration import ConfigurationError, read_judge_configuration
from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.session import Session
from mast_tui.traces.file_edits import FileEdit, edits_by_file, file_edits
from mast_tui.traces.model import Trace
from mast_tui.ui.annotate.copying import Copying
from mast_tui.ui.dialogs.dialog import LinesDialog
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.text.answer_page import (
    TITLES,
    TextPage,
    answer_page,
    file_page,
    hidden_sentence,
    section_page,
    usage_page,
)
from mast_tui.ui.text.differences import MOST_LINES, TextComparison, compare
from mast_tui.ui.text.highlighting import TextPart
from mast_tui.ui.trace_view.repeats import earlier_repetition
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.widgets.bars import TextLine
from mast_tui.ui.wording import plain_title

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen

AT_ONCE_CHARS: Final = 1 << 16
"""The total length of two texts that are compared without a worker."""


MAX_MATCHES: Final = 10_000
"""The number of matches at which the search stops."""

_KEYS: Final = "/ finds · y copies · Esc closes"


class TextScreen(LinesDialog):
    """A text beside the trace, with scrolling, search and copying."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", show=False),
        Binding("n", "match(1)", show=False),
        Binding("N", "match(-1)", show=False),
        Binding("y", "copy", show=False),
        Binding("enter", "source", show=False),
    ]

    def __init__(
        self,
        title: str,
        page: TextPage,
        key: str,
        copying: Copying,
        go_to_source: Callable[[], object] | None = None,
    ) -> None:
        """Show a text.

        Args:
            title: The title of the text.
            page: The text.
            key: The key that has opened the text. It also closes it.
            copying: The part that copies the text.
            go_to_source: Goes to the span with the text, for Enter.
        """
        super().__init__(title, kind="beside", subtitle=_KEYS)
        self._go_to_source = go_to_source
        self._title = title
        self._page = page
        self._key = key
        self._copying = copying
        self._match_ranges: list[tuple[int, int]] = []
        """The start and end of each match of the search."""
        self._match_position = -1
        """The position of the current match in ``_match_ranges``; -1 before the first one."""
        self.lines: SpanView = SpanView(id="beside")
        self.line = TextLine(placeholder="find in this text", id="beside-search")
        """The search line."""
        self.line.display = False

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys in the last line."""
        keys = (("j k", "scroll"), ("/", "finds"), ("n N", "next, previous match"))
        source = () if self._go_to_source is None else (("Enter", "to its step"),)
        is_searching = self.line.display or bool(self._match_ranges)
        escape = ("Esc", "ends the search" if is_searching else "closes")
        return (*keys, ("y", "copies"), *source, escape)

    def compose_rows(self) -> ComposeResult:
        """Yield the text and the search line."""
        yield self.lines
        yield self.line

    def on_mount(self) -> None:
        """Show the text."""
        self.lines.show_text(self._page.text, self._page.parts, text_format="output")
        self.lines.focus()

    def on_key(self, event: events.Key) -> None:
        """Close the window with the key that opened it."""
        if event.character == self._key and not self.line.has_focus:
            event.stop()
            self.dismiss(None)

    @on(Input.Changed)
    def _search_typed(self, event: Input.Changed) -> None:
        """Highlight the matches of the typed text, and go to the first one."""
        needle = event.value.strip()
        self._match_ranges = []
        self._match_position = -1
        if needle:
            matches = re.finditer(re.escape(needle), self._page.text, re.IGNORECASE)
            self._match_ranges = [match.span() for match in islice(matches, MAX_MATCHES)]
        self._show_matches()
        if self._match_ranges:
            self.action_match(1)
        elif needle:
            self.box.border_subtitle = plain_title(f"no match for “{needle}” · Esc ends the search")
        else:
            self.box.border_subtitle = _KEYS

    @on(Input.Submitted)
    def _search_submitted(self) -> None:
        self._close_line()

    def _show_matches(self) -> None:
        match_parts = [TextPart(start, end, "match") for start, end in self._match_ranges]
        self.lines.show_highlights([*self._page.parts, *match_parts])
        self.app.screen_change_signal.publish(self)  # so that the last line shows these keys

    def action_search(self) -> None:
        """Open the search line."""
        self.line.display = True
        self.line.focus()
        self._show_matches()

    def action_match(self, step: int) -> None:
        """Go to the next or previous match; at first to the first one."""
        match_count = len(self._match_ranges)
        if not match_count:
            self.box.border_subtitle = f"no search yet · {_KEYS}"
            return
        if self._match_position < 0:
            self._match_position = 0
        else:
            self._match_position = (self._match_position + step) % match_count
        self.lines.reveal(*self._match_ranges[self._match_position])
        self.box.border_subtitle = f"{self._match_position + 1} of {match_count} · n N · Esc ends"

    def action_copy(self) -> None:
        """Copy the whole text."""
        self._copying.copy_in_background(f"the {self._title.lower()}", lambda: self._page.text)

    def action_source(self) -> None:
        """Close the text, and go to its span."""
        if self._go_to_source is not None:
            self.dismiss(None)
            self._go_to_source()

    def action_leave(self) -> None:
        """End the search, or close the text."""
        if not self.line.display and not self._match_ranges:
            self.dismiss(None)
            return
        self.line.value = ""  # removes the matches
        self.box.border_subtitle = _KEYS
        self._close_line()

    def _close_line(self) -> None:
        self.line.display = False
        self._show_matches()  # for the keys in the last line
        self.lines.focus()


class CompareScreen(LinesDialog):
    """The lines in which two texts differ.

    ``-`` precedes lines of the earlier text, ``+`` those of the later text.
    """

    dialog_keys: ClassVar = (("j k", "scroll"), ("d b", "pages"), ("Esc", "closes"))
    BINDINGS: ClassVar[list[BindingType]] = [Binding("equals_sign,enter", "close", show=False)]

    def __init__(self, title: str, comparison: TextComparison) -> None:
        cut_text = f"the first {MOST_LINES:,} lines · " if comparison.is_cut else ""
        super().__init__(title, kind="tall wide", subtitle=f"{cut_text}Esc closes")
        self._comparison = comparison
        self.lines: SpanView = SpanView(id="differences")

    def compose_rows(self) -> ComposeResult:
        """Yield the lines."""
        yield self.lines

    def on_mount(self) -> None:
        """Fill in the lines."""
        self.lines.show_text(
            self._comparison.text,
            [TextPart(first, end, "evidence") for first, end in self._comparison.changed_ranges],
            empty="No differences so far.",
            text_format="diff",
        )


Subject = Literal["answer key", "artefacts", "usage", "repeat"]
"""The subject of a text beside the trace."""


def show_beside(screen: AnnotateScreen, subject: Subject) -> None:
    """Open the text on a subject beside the open trace.

    Args:
        screen: The screen of the trace.
        subject: The subject: ``answer key``, ``artefacts`` (the files as of the step under the
            cursor, and the results of the run), ``usage`` (the sums of time, tokens and money) or
            ``repeat`` (the differences from the step that the step under the cursor repeats).
    """
    openers: Mapping[Subject, Callable[[AnnotateScreen], None]] = {
        "answer key": _show_answer_key,
        "artefacts": _choose_artefact,
        "usage": _show_usage,
        "repeat": _compare_step,
    }
    openers[subject](screen)


def _show_answer_key(screen: AnnotateScreen) -> None:
    """Show the answer key of the open trace once the workspace is open.

    If it is hidden from the annotator, show a message instead.
    """

    def show_if_visible(session: Session) -> None:
        """Show the answer key or why it is hidden, unless another trace is open now."""
        trace = screen.state.trace
        if trace is None or session is not screen.state.session:
            return
        if session.outcome_visible:
            show_text(screen, "Answer key", answer_page(trace), "annotate.answer_key")
        else:
            screen.hints.say(hidden_sentence(screen.mast.key_of))

    screen.commands.when_session_opens(show_if_visible)


def _show_usage(screen: AnnotateScreen) -> None:
    """Show the sums of time, tokens and money of the open trace by agent and by tool.

    They are computed in the background, with the configured prices of the model.
    """
    trace = screen.state.trace
    if trace is None:
        return
    try:
        prices = read_judge_configuration().prices.get(trace.meta.model or "")
    except ConfigurationError:
        prices = None

    def show_page(page: TextPage) -> None:
        """Show the sums, unless another trace or screen is open now."""
        if trace is screen.state.trace and screen.is_current:
            show_text(screen, "Time, tokens and money", page, "annotate.usage")

    screen.work.run(
        "usage", lambda: usage_page(trace, None if prices is None else prices.cost), show_page
    )


def show_text(
    screen: AnnotateScreen,
    title: str,
    page: TextPage,
    action: str,
    go_to_source: Callable[[], object] | None = None,
) -> None:
    """Open a text beside the trace.

    Args:
        screen: The screen of the trace.
        title: The title.
        page: The text.
        action: The id of the action that opens the text. Its key also closes it.
        go_to_source: Goes to the span with the text, for Enter.
    """
    key = screen.mast.key_of(action)
    screen.app.push_screen(TextScreen(title, page, key, screen.copying, go_to_source))


_RESULT_SECTIONS: Final = ("patch", "tests", "scores", "explanations")
"""The sections of the answer key with results of the run."""


def _choose_artefact(screen: AnnotateScreen) -> None:
    """Offer the files as of the span under the cursor, and the results of the run.

    The list opens once the workspace is open and the files are found.
    """

    def find_artefacts(session: Session) -> None:
        """Find the files in the background, unless another trace is open now."""
        trace = screen.state.trace
        if trace is None or session is not screen.state.session or not screen.state.has_spans:
            return
        index = screen.state.index
        screen.work.run(
            "artefacts",
            lambda: _changed_files(trace, index),
            partial(_offer_artefacts, screen, trace, index),
        )

    screen.commands.when_session_opens(find_artefacts)


def _changed_files(trace: Trace, index: int) -> Mapping[str, list[FileEdit]]:
    """Return the files changed up to a span, with their changes."""
    try:
        return edits_by_file(file_edits(trace, index + 1))
    except OSError as error:
        raise MastError(f"The changes cannot be read: {error.strerror or error}") from error


def _offer_artefacts(
    screen: AnnotateScreen, trace: Trace, index: int, files: Mapping[str, list[FileEdit]]
) -> None:
    """Open a list of the files and results.

    Results are listed only if the annotator may see the answer key.
    """
    session = screen.state.session
    if trace is not screen.state.trace or session is None or not screen.is_current:
        return
    choices = []
    for number, (path, edits) in enumerate(files.items()):
        detail = f"{counted(len(edits), 'change')}, the last in #{edits[-1].index + 1}"
        choices.append(FinderChoice(str(number), "file", one_line(path), detail))
    if session.outcome_visible:
        choices += [
            FinderChoice(section, "result", TITLES[section])
            for section in _RESULT_SECTIONS
            if getattr(trace.meta.answer_key, section)
        ]
    if not choices:
        screen.hints.say(f"No file is known to have changed up to #{index + 1}")
        return
    title = f"Files and results up to #{index + 1}"
    dialog = FinderDialog(title, choices, placeholder="a file or result")
    screen.mast.ask(dialog, partial(_show_artefact, screen, trace, index, files))


def _show_artefact(
    screen: AnnotateScreen,
    trace: Trace,
    index: int,
    files: Mapping[str, list[FileEdit]],
    choice: str,
) -> None:
    """Show the chosen result or file, unless another trace is open now.

    ``choice`` is the section of a result, or the position of a file in ``files``.
    """
    if trace is not screen.state.trace:
        return
    if choice in _RESULT_SECTIONS:
        page = section_page(trace.meta.answer_key, choice)
        show_text(screen, TITLES[choice], page, "annotate.artefacts")
        return
    path, edits = list(files.items())[int(choice)]
    show_text(
        screen,
        f"As of #{index + 1}",
        file_page(path, edits),
        "annotate.artefacts",
        partial(screen.go_to_place, str(edits[-1].index + 1)),
    )


def _compare_step(screen: AnnotateScreen) -> None:
    """Show the differences between the step under the cursor and the step that it repeats.

    Long texts are compared in the background.
    """
    trace = screen.state.trace
    index = screen.state.index
    if trace is None or not screen.state.has_spans:
        return
    earlier_index = earlier_repetition(trace, index)
    if earlier_index is None:
        screen.hints.say(f"#{index + 1} repeats no earlier step")
        return
    try:
        earlier_text = trace.text(earlier_index)
        later_text = trace.text(index)
    except OSError as error:
        screen.hints.say(f"The texts cannot be compared: {error.strerror or error}", error=True)
        return
    if len(earlier_text) + len(later_text) <= AT_ONCE_CHARS:
        _show_comparison(screen, earlier_index, index, compare(earlier_text, later_text))
        return

    def show_if_unmoved(comparison: TextComparison) -> None:
        if trace is screen.state.trace and index == screen.state.index and screen.is_current:
            screen.hints.clear()
            _show_comparison(screen, earlier_index, index, comparison)

    screen.hints.say(f"Comparing #{earlier_index + 1} with #{index + 1} …")
    screen.work.run("compare", partial(compare, earlier_text, later_text), show_if_unmoved)


def _show_comparison(
    screen: AnnotateScreen, earlier_index: int, index: int, comparison: TextComparison
) -> None:
    if comparison.is_equal:
        screen.hints.say(f"The text of #{index + 1} equals that of #{earlier_index + 1}")
    else:
        title = f"#{earlier_index + 1} and then #{index + 1}"
        screen.app.push_screen(CompareScreen(title, comparison))
