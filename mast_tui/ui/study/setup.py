"""The form by which a study is set up, or changed; by keys alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Static

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.ui.context import context_of
from mast_tui.ui.study.form import FIELDS, Field, Texts
from mast_tui.ui.styles import DIALOGS, STUDY
from mast_tui.ui.titles import plain_lines, plain_title
from mast_tui.ui.widgets.text_line import TextLine

KEYS = "Enter sets it up · ↑ ↓ move · space another choice · Esc leaves"


class ChoiceLine(Static, can_focus=True):
    """One of some words; space, ← and → take another."""

    def __init__(self, field: Field, value: str) -> None:
        super().__init__(id=field.name, classes="choice")
        self._choices = field.choices
        self.value = value

    def on_mount(self) -> None:
        """Show what is chosen."""
        self._show()

    def _show(self) -> None:
        parts = []
        for choice in self._choices:
            chosen = choice == self.value
            parts.append((f"{'●' if chosen else '○'} {choice}   ", "bold" if chosen else ""))
        self.update(Content.assemble(*parts))

    def on_key(self, event: events.Key) -> None:
        """Take the next choice, or the one before."""
        step = {"space": 1, "right": 1, "left": -1}.get(event.key)
        if step is not None:
            event.stop()
            self.turn(step)

    def on_click(self) -> None:
        """Take the next choice."""
        self.turn(1)

    def turn(self, step: int) -> None:
        """Take another choice."""
        place = (self._choices.index(self.value) + step) % len(self._choices)
        self.value = self._choices[place]
        self._show()


class StudySetup(ModalScreen[dict[str, str] | None]):
    """Gives back what stands in the fields, or None after Escape.

    ``check`` refuses by raising ``MastError`` with what is wrong, which is said; the form stays.
    """

    CSS_PATH = [DIALOGS, STUDY]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("down,tab", "field(1)", show=False),
        Binding("up,shift+tab", "field(-1)", show=False),
        Binding("enter", "keep", show=False),
    ]

    def __init__(self, title: str, texts: Texts, check: Callable[[Texts], None]) -> None:
        super().__init__()
        self._title = title
        self._texts = texts
        self._check = check

    def compose(self) -> ComposeResult:
        """The fields, one a line, and what the one with the cursor is for."""
        with Vertical(classes="dialog study-form") as box:
            box.border_title = plain_title(self._title)
            with VerticalScroll(can_focus=False, classes="fields"):
                for field in FIELDS:
                    with Horizontal(classes="field"):
                        yield Static(Text(field.title), classes="field-title")
                        yield self._line(field)
            yield Static(classes="hint", id="about")
            yield Static(Content(KEYS), classes="keys")

    def _line(self, field: Field) -> Widget:
        value = self._texts[field.name]
        if field.choices:
            return ChoiceLine(field, value)
        # What stands there is gone on with, not typed over.
        return TextLine(value, id=field.name, select_on_focus=False)

    def on_mount(self) -> None:
        """Begin with the first field."""
        self._lines()[0].focus()

    def _lines(self) -> list[Input | ChoiceLine]:
        found: list[Input | ChoiceLine] = []
        for field in FIELDS:
            line = self.query_one(f"#{field.name}")
            assert isinstance(line, Input | ChoiceLine)
            found.append(line)
        return found

    @on(events.DescendantFocus)
    def _field_changed(self, event: events.DescendantFocus) -> None:
        field = next((one for one in FIELDS if one.name == event.widget.id), None)
        if field is not None:
            self._say(field.help)

    def _say(self, words: str, *, error: bool = False) -> None:
        about = self.query_one("#about", Static)
        about.update(plain_lines(words))
        about.set_class(error, "-error")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_keep()

    def action_field(self, step: int) -> None:
        """To the next or previous field."""
        lines = self._lines()
        place = next((i for i, line in enumerate(lines) if line.has_focus), 0)
        lines[(place + step) % len(lines)].focus()

    def action_keep(self) -> None:
        """Take what stands in the fields, where it can be."""
        context_of(self).writes.do(self._keep)

    def _keep(self) -> None:
        texts = {line.id or "": line.value for line in self._lines()}
        try:
            self._check(texts)
        except MastError as error:
            self._refuse(str(error))
            return
        self.dismiss(texts)

    def _refuse(self, words: str) -> None:
        """Say what is wrong, at the field that it is about."""
        title = words.partition(":")[0]
        field = next((one for one in FIELDS if one.title == title), None)
        if field is not None:
            self.query_one(f"#{field.name}").focus()
        self.call_after_refresh(lambda: self._say(one_line(words, 600), error=True))

    def action_leave(self) -> None:
        """Nothing is set up."""
        self.dismiss(None)
