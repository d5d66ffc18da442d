"""A form that works by keys alone, with a text such as a preview in place of its fields."""

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
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input, Static

from mast_tui.errors import MastError
from mast_tui.labels import checked_person
from mast_tui.safe_text import one_line
from mast_tui.ui.context import context_of
from mast_tui.ui.dialogs.dialog import Dialog, keys_of_hint
from mast_tui.ui.widgets.bars import TextLine
from mast_tui.ui.wording import plain_lines

if TYPE_CHECKING:
    from mast_tui.ui.context import MastApp

Texts = Mapping[str, str]
"""The texts of the fields, by their names."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form.

    Attributes:
        name: The name of the field and the id of its widget.
        title: The title on screen.
        help: The help shown while the field has the cursor.
        choices: The choices; empty for a line to write on.
        path: Whether the line completes file names. Typing then replaces the initial path.
        placeholder: The meaning of an empty line, shown on it.
    """

    name: str
    title: str
    help: str
    choices: tuple[str, ...] = ()
    path: bool = False
    placeholder: str = ""


def names_between_commas(text: str, title: str) -> tuple[str, ...]:
    """Return the names of people in the text of a field.

    Args:
        text: The text.
        title: The title of the field.

    Raises:
        MastError: A name is invalid; the message begins with the title.
    """
    try:
        return tuple(checked_person(name) for name in text.split(",") if name.strip())
    except MastError as error:
        raise MastError(f"{title}: {error}") from error


class ChoiceLine(Static, can_focus=True):
    """A line of choices with one chosen. Space, ← and → choose another one."""

    def __init__(self, field: Field, value: str) -> None:
        super().__init__(id=field.name, classes="choice")
        self._choices = field.choices
        self.value = value

    def on_mount(self) -> None:
        """Show the choices."""
        self._show_choices()

    def on_resize(self) -> None:
        """Show as many choices as fit."""
        self._show_choices()

    def _show_choices(self) -> None:
        """Show all choices, or only the chosen one if they do not fit."""
        parts = []
        for choice in self._choices:
            is_chosen = choice == self.value
            text = f"{'●' if is_chosen else '○'} {one_line(choice)}   "
            parts.append((text, "bold" if is_chosen else ""))
        # The width is 0 before the first layout.
        if sum(cell_len(text) for text, _ in parts) > self.size.width > 0:
            number = self._choices.index(self.value) + 1
            hint = f"  (choice {number} of {len(self._choices)})"
            parts = [(f"● {one_line(self.value)}", "bold"), (hint, "")]
        self.update(Content.assemble(*parts))

    def on_key(self, event: events.Key) -> None:
        """Choose the next or previous choice, for space or an arrow."""
        step = {"space": 1, "right": 1, "left": -1}.get(event.key)
        if step is not None:
            event.stop()
            self.turn(step)

    def on_click(self) -> None:
        """Choose the next choice."""
        self.turn(1)

    def turn(self, step: int) -> None:
        """Choose the choice some steps further; the first follows the last."""
        self.value = self._choices[(self._choices.index(self.value) + step) % len(self._choices)]
        self._show_choices()


class PathSuggester(Suggester):
    """Suggestions that complete a path with existing files."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Return the completed path, or None."""
        return await asyncio.to_thread(completed_path, value)


def completed_path(value: str) -> str | None:
    """Return a path completed by the first matching file name in its folder, or None."""
    folder, name_start = os.path.split(value)
    if not name_start:
        return None
    try:
        with os.scandir(Path(folder or ".").expanduser()) as entries:
            names = sorted(
                entry.name + ("/" if entry.is_dir() else "")
                for entry in entries
                if entry.name.startswith(name_start)
            )
    except OSError:
        return None  # there is no such folder, or it may not be read
    ending = next((name[len(name_start) :] for name in names if name.isprintable()), None)
    return value + ending if ending else None


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The error of a field."""

    field_name: str
    message: str


@dataclass(frozen=True, slots=True)
class _ShownText:
    """A text in place of the fields.

    Attributes:
        keys: The hint about its keys.
        on_enter: Called by Enter; None if Enter does nothing.
        on_escape: Called by Escape; None to return to the fields.
    """

    keys: str
    on_enter: Callable[[], object] | None
    on_escape: Callable[[], object] | None


class FieldColumn(VerticalScroll, can_focus=False, inherit_bindings=False):
    """The fields of a form. They have no keys to scroll, and follow the cursor."""


FIELD_KEYS: Final = "Enter {} · ↑ ↓ move · Esc cancels"


class Form(Dialog[None]):
    """A form with fields. Escape closes it.

    A subclass implements ``take``, which receives the texts. It refuses them with ``MastError``,
    shows a text in place of the fields, or closes the form.
    """

    enter_effect: ClassVar[str]
    """The effect of Enter on the fields, such as ``writes``."""

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
            texts: The initial texts of the fields, by their names.
        """
        super().__init__(title, kind="form")
        self._fields = fields
        self._texts = texts
        self._current_field = fields[0].name
        """The name of the field that has the cursor, or had it last."""
        self._refusal: _Refusal | None = None
        """The error of the refused field, until another field has the cursor."""
        self._shown_text: _ShownText | None = None
        """The text in place of the fields; None while the fields are shown."""

    @property
    def _keys_hint(self) -> str:
        if self._shown_text is None:
            return FIELD_KEYS.format(self.enter_effect)
        return self._shown_text.keys

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys of the fields, or of the text in place of them."""
        return keys_of_hint(self._keys_hint)

    @abstractmethod
    async def take(self, texts: Texts) -> None:
        """Use the texts of the fields.

        Raises:
            MastError: A text is refused.
        """

    @property
    def mast(self) -> MastApp:
        """The app."""
        return context_of(self)

    def compose_rows(self) -> ComposeResult:
        """Yield the fields, one on each line, and the help of the field with the cursor."""
        with FieldColumn(classes="fields"):
            for field in self._fields:
                with Horizontal(classes="field"):
                    yield Static(Text(field.title), classes="field-title")
                    yield self._field_widget(field)
        yield Static(classes="hint", id="about")
        with VerticalScroll(id="text-pane"):
            yield Static(id="shown-text")
        yield Static(Content(self._keys_hint), classes="keys")

    def _field_widget(self, field: Field) -> Widget:
        """Return the widget of a field."""
        value = self._texts[field.name]
        if field.choices:
            return ChoiceLine(field, value)
        return TextLine(
            value,
            id=field.name,
            placeholder=field.placeholder,
            select_on_focus=field.path,
            suggester=PathSuggester() if field.path else None,
        )

    def on_mount(self) -> None:
        """Focus the first field."""
        self.query_one("#text-pane").display = False
        self._field_widgets()[0].focus()

    def _field_widgets(self) -> list[Input | ChoiceLine]:
        widgets: list[Input | ChoiceLine] = []
        for field in self._fields:
            widget = self.query_one(f"#{field.name}")
            assert isinstance(widget, Input | ChoiceLine)
            widgets.append(widget)
        return widgets

    @property
    def texts(self) -> dict[str, str]:
        """The current texts of the fields."""
        return {widget.id or "": widget.value for widget in self._field_widgets()}

    @property
    def typed_texts(self) -> Texts | None:
        """The texts of the fields, if the user has changed one."""
        return None if self.texts == self._texts else self.texts

    def say_below(self, text: str, *, error: bool = False) -> None:
        """Show a text in the hint, which a text in place of the fields hides.

        Args:
            text: The text.
            error: True if the text reports an error.
        """
        super().say_below(text, error=error)
        self.query_one("#about").display = True

    @on(events.DescendantFocus)
    def _field_changed(self, event: events.DescendantFocus) -> None:
        """Show the help of the field with the focus, or its error."""
        field = next((field for field in self._fields if field.name == event.widget.id), None)
        # The event may be late: the field may have lost the focus, and a newer message be shown.
        if field is None or event.widget is not self.focused:
            return
        self._current_field = field.name
        if self._refusal is not None and self._refusal.field_name == field.name:
            self.say_below(self._refusal.message, error=True)
        else:
            self._refusal = None
            self._show_help(field)

    @on(Input.Changed)
    def _line_changed(self, event: Input.Changed) -> None:
        """Show the help again, because it may depend on the text."""
        field = next((field for field in self._fields if field.name == event.input.id), None)
        if field is not None and event.input is self.focused and self._refusal is None:
            self._show_help(field)

    def _show_help(self, field: Field) -> None:
        hint = ""
        if field.path:
            hint = "\nRight arrow completes the path."
        elif field.choices:
            hint = "\nSpace takes another choice."
        self.say_below(f"{self.help_of(field)}{hint}")

    def help_of(self, field: Field) -> str:
        """Return the help of a field."""
        return field.help

    def action_field(self, step: int) -> None:
        """Focus the next or previous field, unless a text replaces the fields."""
        if self._shown_text is not None:
            return
        widgets = self._field_widgets()
        index = next((i for i, widget in enumerate(widgets) if widget is self.focused), 0)
        next_widget = widgets[(index + step) % len(widgets)]
        # The next key may come before the focus event, so this is set now.
        self._current_field = next_widget.id or ""
        self.set_focus(next_widget)

    @on(Input.Submitted)
    def action_keep(self) -> None:
        """Submit the fields, or call the Enter function of the shown text."""
        if self._shown_text is None:
            self.mast.writes.do(self._take_texts)
        elif self._shown_text.on_enter is not None:
            self._shown_text.on_enter()

    async def _take_texts(self) -> None:
        try:
            await self.take(self.texts)
        except MastError as error:
            self.refuse(str(error))

    def refuse(self, message: str) -> None:
        """Show an error at its field. The texts stay.

        Args:
            message: The error. The title of a field and a colon at its beginning name the field;
                else it is the current field.
        """
        title, _, _ = message.partition(":")
        names = (field.name for field in self._fields if field.title == title)
        # The focus event of the field shows this message again.
        self._refusal = _Refusal(next(names, self._current_field), one_line(message, 600))
        self.say_below(self._refusal.message, error=True)
        self._show_fields(self._refusal.field_name)

    # A text in place of the fields

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
            text: The text, in one or several lines.
            keys: The hint about the keys.
            on_enter: Called by Enter; None if Enter does nothing.
            on_escape: Called by Escape; None to return to the fields.
        """
        self._shown_text = _ShownText(keys, on_enter, on_escape)
        self.query_one("#shown-text", Static).update(plain_lines(text))
        self._show_text_or_fields()
        self.query_one("#text-pane").focus()

    def _show_fields(self, name: str) -> None:
        self._shown_text = None
        self._show_text_or_fields()
        self.query_one(f"#{name}").focus()

    def _show_text_or_fields(self) -> None:
        """Show the text if there is one, else the fields."""
        shows_text = self._shown_text is not None
        self.query_one("#text-pane").display = shows_text
        self.query_one(".fields").display = not shows_text
        self.query_one("#about").display = not shows_text
        self.query_one(".keys", Static).update(Content(self._keys_hint))
        self.app.screen_change_signal.publish(self)  # so that the hints show these keys

    def action_leave(self) -> None:
        """Return from the text to the fields, or close the form."""
        if self._shown_text is None:
            super().action_leave()
        elif self._shown_text.on_escape is not None:
            self._shown_text.on_escape()
        else:
            self._show_fields(self._current_field)
