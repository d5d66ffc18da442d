"""A form that works by keys alone: fields, and a text in place of them, such as a preview."""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input, Static

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.ui.context import context_of
from mast_tui.ui.dialogs.dialog import Dialog
from mast_tui.ui.widgets.text_line import TextLine
from mast_tui.ui.wording import plain_lines, plain_title

if TYPE_CHECKING:
    from mast_tui.ui.context import MastApp

Texts = Mapping[str, str]
"""The texts of the fields, by their names."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field: a line to write on, or some choices. ``path`` completes file names."""

    name: str
    title: str
    help: str
    choices: tuple[str, ...] = ()
    path: bool = False


class ChoiceLine(Static, can_focus=True):
    """A line of choices, one of which is chosen; space, ← and → choose another."""

    def __init__(self, field: Field, value: str) -> None:
        super().__init__(id=field.name, classes="choice")
        self._choices = field.choices
        self.value = value

    def on_mount(self) -> None:
        """Show the choices."""
        self._show()

    def on_resize(self) -> None:
        """Show as many choices as fit."""
        self._show()

    def _show(self) -> None:
        """Show all choices, or only the chosen one if they do not fit."""
        parts = []
        for choice in self._choices:
            chosen = choice == self.value
            text = f"{'●' if chosen else '○'} {one_line(choice)}   "
            parts.append((text, "bold" if chosen else ""))
        if sum(cell_len(text) for text, _ in parts) > self.size.width > 0:
            number = self._choices.index(self.value) + 1
            hint = f"  {number} of {len(self._choices)}: space takes the next"
            parts = [(f"● {one_line(self.value)}", "bold"), (hint, "")]
        self.update(Content.assemble(*parts))

    def on_key(self, event: events.Key) -> None:
        """Choose the next or previous choice."""
        step = {"space": 1, "right": 1, "left": -1}.get(event.key)
        if step is not None:
            event.stop()
            self.turn(step)

    def on_click(self) -> None:
        """Choose the next choice."""
        self.turn(1)

    def turn(self, step: int) -> None:
        """Choose another choice, as many further as ``step``."""
        index = (self._choices.index(self.value) + step) % len(self._choices)
        self.value = self._choices[index]
        self._show()


class PathSuggester(Suggester):
    """Suggestions for the end of a path, from the files that exist."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Return the completed path, or None."""
        return await asyncio.to_thread(completed, value)


def completed(value: str) -> str | None:
    """Return a path completed by the first name in its folder that begins so, or None."""
    folder, start = os.path.split(value)
    if not start:
        return None
    try:
        with os.scandir(Path(folder or ".").expanduser()) as entries:
            names = sorted(
                entry.name + ("/" if entry.is_dir() else "")
                for entry in entries
                if entry.name.startswith(start)
            )
    except OSError:
        return None  # there is no such folder, or it may not be read
    ending = next((name[len(start) :] for name in names if name.isprintable()), None)
    return value + ending if ending else None


FIELD_KEYS: Final = "Enter continues · ↑ ↓ move · space another choice · Esc leaves"


class Form(Dialog[None]):
    """A form with fields; Escape closes it.

    A subclass implements ``take``, which receives the texts. It raises ``MastError`` to refuse
    them, which is shown at the field in question. It shows a text in place of the fields, from
    which Enter continues and Escape returns. Or it closes the form.
    """

    dialog_keys: ClassVar = (
        *(("Enter", "continues"), ("↑ ↓", "move"), ("space", "another choice")),
        ("Esc", "leaves"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,tab", "field(1)", show=False),
        Binding("up,shift+tab", "field(-1)", show=False),
        Binding("enter", "keep", show=False),
    ]

    def __init__(self, title: str, fields: Sequence[Field], texts: Texts) -> None:
        """Make a form.

        Args:
            title: The title.
            fields: The fields in their order.
            texts: The first texts of the fields, by their names.
        """
        super().__init__()
        self._title = title
        self._fields = fields
        self._texts = texts
        self._enter_callback: Callable[[], object] | None = None
        self._escape_callback: Callable[[], object] | None = None
        self._current_field = fields[0].name
        """The field that has the cursor, or had it before a text replaced the fields."""
        self._error = ("", "")
        """The name of the refused field, and the message."""

    @abstractmethod
    async def take(self, texts: Texts) -> None:
        """Use the texts of the fields.

        Raises:
            MastError: A text is refused.
        """

    @property
    def mast(self) -> MastApp:
        """The app, with what it shares."""
        return context_of(self)

    def compose(self) -> ComposeResult:
        """Yield the fields, one a line, and the help of the field with the cursor."""
        with Vertical(classes="dialog form") as box:
            box.border_title = plain_title(self._title)
            with VerticalScroll(can_focus=False, classes="fields"):
                for field in self._fields:
                    with Horizontal(classes="field"):
                        yield Static(Text(field.title), classes="field-title")
                        yield self._line(field)
            yield Static(classes="hint", id="about")
            with VerticalScroll(id="words"):
                yield Static(id="said")
            yield Static(Content(FIELD_KEYS), classes="keys")

    def _line(self, field: Field) -> Widget:
        """Return the widget of a field."""
        value = self._texts[field.name]
        if field.choices:
            return ChoiceLine(field, value)
        # Typing continues the text rather than replacing it.
        return TextLine(
            value,
            id=field.name,
            select_on_focus=False,
            suggester=PathSuggester() if field.path else None,
        )

    def on_mount(self) -> None:
        """Focus the first field."""
        self.query_one("#words").display = False
        self._lines()[0].focus()

    def _lines(self) -> list[Input | ChoiceLine]:
        """Return the widgets of the fields in their order."""
        lines: list[Input | ChoiceLine] = []
        for field in self._fields:
            line = self.query_one(f"#{field.name}")
            assert isinstance(line, Input | ChoiceLine)
            lines.append(line)
        return lines

    @property
    def texts(self) -> dict[str, str]:
        """The current texts of the fields."""
        return {line.id or "": line.value for line in self._lines()}

    # Fields

    @on(events.DescendantFocus)
    def _field_changed(self, event: events.DescendantFocus) -> None:
        """Show the help of the field with the focus, or its error."""
        error_field, message = self._error
        field = next((field for field in self._fields if field.name == event.widget.id), None)
        # A late event of a field that was left must not replace a newer message.
        if field is None or event.widget is not self.focused:
            return
        self._current_field = field.name
        if field.name == error_field:
            self.say_below(message, error=True)
        else:
            self._error = ("", "")
            self.say_below(field.help)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_keep()

    def action_field(self, step: int) -> None:
        """Focus the next or previous field."""
        if self._shows_text:
            return
        lines = self._lines()
        index = next((i for i, line in enumerate(lines) if line is self.focused), 0)
        line = lines[(index + step) % len(lines)]
        # Set at once: the next key may come before the focus event.
        self._current_field = line.id or ""
        self.set_focus(line)

    def action_keep(self) -> None:
        """Use the texts of the fields, or continue from the text in place of them."""
        if not self._shows_text:
            self.mast.writes.do(self._take)
        elif self._enter_callback is not None:
            self._enter_callback()

    async def _take(self) -> None:
        try:
            await self.take(self.texts)
        except MastError as error:
            self.refuse(str(error))

    def refuse(self, message: str) -> None:
        """Show an error at its field; the texts stay.

        Args:
            message: The error; it may begin with the title of a field and a colon.
        """
        title = message.partition(":")[0]
        names = [field.name for field in self._fields if field.title == title]
        name = (*names, self._current_field)[0]
        # Kept, because the focus event of the field replaces the hint.
        self._error = (name, one_line(message, 600))
        self.say_below(self._error[1], error=True)
        self.show_fields(name)

    # A text in place of the fields

    @property
    def _shows_text(self) -> bool:
        return self.query_one("#words").display

    def show_text(
        self,
        text: str,
        keys: str,
        *,
        on_enter: Callable[[], object] | None = None,
        on_escape: Callable[[], object] | None = None,
    ) -> None:
        """Show a text in place of the fields.

        Args:
            text: The text; it may have several lines.
            keys: The hint about the keys.
            on_enter: Called by Enter; without it Enter does nothing.
            on_escape: Called by Escape; without it Escape returns to the fields.
        """
        self._enter_callback = on_enter
        self._escape_callback = on_escape
        self.query_one("#said", Static).update(plain_lines(text))
        self._switch(to_text=True, keys=keys)
        self.query_one("#words").focus()

    def show_fields(self, name: str | None = None) -> None:
        """Show the fields again, with the cursor on one of them, or on the last one."""
        self._switch(to_text=False, keys=FIELD_KEYS)
        self.query_one(f"#{name or self._current_field}").focus()

    def _switch(self, *, to_text: bool, keys: str) -> None:
        self.query_one("#words").display = to_text
        self.query_one(".fields").display = not to_text
        self.query_one("#about").display = not to_text
        self.query_one(".keys", Static).update(Content(keys))

    def action_leave(self) -> None:
        """Return from the text to the fields, or close the form."""
        if not self._shows_text:
            self.dismiss(None)
        elif self._escape_callback is not None:
            self._escape_callback()
        else:
            self.show_fields()
