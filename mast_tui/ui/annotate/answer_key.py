"""The answer key of a trace, to read beside it: how the run should have gone, how it was scored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from mast_tui.session import Session
from mast_tui.traces.model import AnswerKey, Named, Trace
from mast_tui.ui.annotate.commands import CommandsView, SessionCommands
from mast_tui.ui.annotate.copying import Copying
from mast_tui.ui.dialogs.dialog import LinesDialog
from mast_tui.ui.trace_view.span_view import Highlight, SpanView
from mast_tui.ui.widgets.text_line import TextLine
from mast_tui.ui.wording import plain_title

TITLES: Final = {
    "expected_actions": "Expected actions",
    "reference": "Reference answer",
    "scores": "Rewards and scores",
    "explanations": "In the scorer's words",
    "step_scores": "Scores on the way",
    "patch": "Patches",
    "tests": "Tests",
    "failures": "What others say went wrong",
    "other": "What else the benchmark keeps",
}
"""The headings of the sections, in the words of people who read them."""

NOTHING: Final = (
    "This trace brings no answer key.\n\n"
    "What would: expected actions (τ-bench), a reference answer or ground truth (Who&When, "
    "Inspect), rewards and scores with their explanations, a patch and its tests (SWE-agent, "
    "OpenHands, Terminal-Bench), labels that the file carries. An outcomes.csv beside the "
    "traces tells how they ended."
)
HIDDEN: Final = "The answer key is hidden: finish the trace (D), then reveal it (r)"
MOST_MATCHES: Final = 10_000
"""So many matches are found and counted."""

_KEYS: Final = "/ finds · y copies · Esc closes"
_SHORT: Final = 70
_MOST_JSON: Final = 1 << 16
_ONE_LINE: Final = 200
"""Longer texts begin on a line of their own."""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer key as one text, with the parts of it that stand out."""

    text: str
    parts: tuple[Highlight, ...]


def page_of(key: AnswerKey, number_of: Callable[[str], int | None]) -> Page:
    """Set an answer key out, section by section.

    Args:
        key: What is known of the run.
        number_of: The index of the span with a key, or None where there is none.

    Returns:
        The text; headings and names stand out in it.
    """
    lines: list[tuple[str, str | None]] = []
    for section, found in key.sections():
        if lines:
            lines.append(("", None))
        count = f" ({len(found)})" if section in ("expected_actions", "tests") else ""
        lines.append((f"{TITLES[section]}{count}", "heading"))
        if section == "expected_actions":
            lines += _actions(found)
        elif section == "step_scores":
            lines += _entries(tuple((_place(k, number_of), text) for k, text in found))
        else:
            lines += _entries(found)
    parts, offset = [], 0
    for line, style in lines:
        if style is not None:
            end = line.find(":") + 1 if style == "key" and ":" in line else len(line)
            parts.append(Highlight(offset, offset + end, style))
        offset += len(line) + 1
    return Page("\n".join(line for line, _style in lines), tuple(parts))


def _actions(found: Named) -> Iterator[tuple[str, str | None]]:
    """Each action by its number and name, its arguments below it, one a line."""
    wide = len(str(len(found)))
    for number, (name, arguments) in enumerate(found, 1):
        yield f"{number:>{wide}}. {name}", "name"
        try:
            values = json.loads(arguments)
        except ValueError:
            values = None
        if isinstance(values, dict):
            for argument, value in values.items():
                said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                yield f"{'':{wide}}    {argument}: {said}", None
        elif arguments:
            yield f"{'':{wide}}    {arguments}", None


def _entries(found: Named) -> Iterator[tuple[str, str | None]]:
    """A short text behind its name, a longer one below it."""
    for name, text in found:
        lines = _compact(text).replace("\r\n", "\n").strip("\n").split("\n")
        if len(lines) == 1 and len(lines[0]) <= _ONE_LINE:
            yield f"{name}: {lines[0]}", "key"
        else:
            yield f"{name}:", "key"
            yield from ((line, None) for line in lines)


def _compact(text: str) -> str:
    """A list or an object on one line where it fits, a list of texts one a line; else as it is."""
    if text[:1] not in ("[", "{") or len(text) > _MOST_JSON:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    short = json.dumps(value, ensure_ascii=False)
    if len(short) <= _SHORT:
        return short
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join(f"- {one}" for one in value)
    return text


def _place(key: str, number_of: Callable[[str], int | None]) -> str:
    index = number_of(key)
    return key if index is None else f"#{index + 1}"


class AnswerKeyScreen(LinesDialog):
    """A trace's answer key at the side of the trace, to scroll, to search and to copy."""

    dialog_keys: ClassVar = (
        *(("j k", "scroll"), ("/", "finds"), ("n N", "next, previous match")),
        *(("y", "copies"), ("Esc", "closes")),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "close", show=False),
        Binding("slash", "search", show=False),
        Binding("n", "match(1)", show=False),
        Binding("N", "match(-1)", show=False),
        Binding("y", "copy", show=False),
    ]

    def __init__(self, page: Page, copying: Copying) -> None:
        """Show an answer key.

        Args:
            page: What is shown.
            copying: What copies it.
        """
        super().__init__()
        self._page = page
        self._copying = copying
        self._matches: list[tuple[int, int]] = []
        self._match = -1
        self._view = SpanView(id="answer-key")
        self.line = TextLine(placeholder="find in the answer key", id="answer-key-search")
        """Where it is typed what to find."""

    @property
    def lines(self) -> SpanView:
        """The text."""
        return self._view

    def compose(self) -> ComposeResult:
        """The text, and the line to search with."""
        with Vertical(classes="dialog answer-key") as self._box:
            self._box.border_title = plain_title("Answer key")
            self._box.border_subtitle = _KEYS
            yield self.lines
            yield self.line

    def on_mount(self) -> None:
        """Fill in the text."""
        self.line.display = False
        self.lines.show_text(self._page.text, self._page.parts, written="output")
        self.lines.focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        words = event.value.strip()
        found = re.finditer(re.escape(words), self._page.text, re.IGNORECASE) if words else ()
        self._matches = [one.span() for one, _ in zip(found, range(MOST_MATCHES), strict=False)]
        self._match = -1
        self._show_matches()
        if self._matches:
            self.action_match(1)
        elif words:
            self._box.border_subtitle = plain_title(
                f"nothing holds “{words}” · Esc ends the search"
            )
        else:
            self._box.border_subtitle = _KEYS

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.line.display = False
        self.lines.focus()

    def _show_matches(self) -> None:
        marked = [Highlight(start, end, "match") for start, end in self._matches]
        self.lines.show_highlights([*self._page.parts, *marked])

    def action_search(self) -> None:
        """Find words in the text."""
        self.line.display = True
        self.line.focus()

    def action_match(self, step: int) -> None:
        """Go to the next match, or to the one before."""
        if not self._matches:
            self._box.border_subtitle = f"nothing is looked for · {_KEYS}"
            return
        if self._match < 0:
            self._match = 0
        else:
            self._match = (self._match + step) % len(self._matches)
        self.lines.reveal(*self._matches[self._match])
        self._box.border_subtitle = f"{self._match + 1} of {len(self._matches)} · n N · Esc ends"

    def action_copy(self) -> None:
        """Copy all of it."""
        self._copying.hand_over("the answer key", lambda: self._page.text)

    def action_leave(self) -> None:
        """End the search, else close."""
        if not self.line.display and not self._matches:
            self.dismiss(None)
            return
        self.line.value = ""
        self.line.display = False
        self._matches, self._match = [], -1
        self._show_matches()
        self._box.border_subtitle = _KEYS
        self.lines.focus()


class AnswerKeyView(CommandsView, Protocol):
    """What showing an answer key needs of the screen."""

    @property
    def commands(self) -> SessionCommands: ...
    @property
    def copying(self) -> Copying: ...


def show_answer_key(view: AnswerKeyView) -> None:
    """Show the answer key of the trace that is open, to whoever may see it.

    Whether they may is known as soon as the workspace is open; until then the key waits.
    """

    def show(session: Session) -> None:
        trace = view.state.trace
        if trace is None or session is not view.state.session:
            return
        if not session.hidden_visible:
            view.hints.say(HIDDEN)
            return
        view.show_dialog(AnswerKeyScreen(answer_page(trace), view.copying))

    view.commands.with_session(show, here=True)


def answer_page(trace: Trace) -> Page:
    """Set out what is known of how a run should have gone, or say what would tell it."""
    key = trace.meta.answer_key
    return page_of(key, trace.index_of) if key.entries() else Page(NOTHING, ())
