"""A form by keys alone: fields, then words about what they come to before it is done."""

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
"""What stands in the fields, by their names."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: a line to write on, or one of some choices; ``path`` completes names of files."""

    name: str
    title: str
    help: str
    choices: tuple[str, ...] = ()
    path: bool = False


class ChoiceLine(Static, can_focus=True):
    """One of some words; space, ← and → take another."""

    def __init__(self, field: Field, value: str) -> None:
        super().__init__(id=field.name, classes="choice")
        self._choices = field.choices
        self.value = value

    def on_mount(self) -> None:
        """Show what is chosen."""
        self._show()

    def on_resize(self) -> None:
        """Show as many of the choices as there is room for."""
        self._show()

    def _show(self) -> None:
        parts = []
        for choice in self._choices:
            chosen = choice == self.value
            words = f"{'●' if chosen else '○'} {one_line(choice)}   "
            parts.append((words, "bold" if chosen else ""))
        if sum(cell_len(words) for words, _ in parts) > self.size.width > 0:
            place = self._choices.index(self.value) + 1
            told = f"  {place} of {len(self._choices)}: space takes the next"
            parts = [(f"● {one_line(self.value)}", "bold"), (told, "")]
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


class PathSuggester(Suggester):
    """Suggests how the name of a file may go on, from the names that are there."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Suggest the first name that begins so; none where nothing is typed of it."""
        return await asyncio.to_thread(completed, value)


def completed(value: str) -> str | None:
    """Complete a path by the first name in its folder that begins so; None where there is none."""
    folder, start = os.path.split(value)
    if not start:
        return None
    try:
        with os.scandir(Path(folder or ".").expanduser()) as found:
            names = sorted(
                one.name + ("/" if one.is_dir() else "")
                for one in found
                if one.name.startswith(start)
            )
    except OSError:
        return None  # there is no such folder, or nobody may look into it
    rest = next((name[len(start) :] for name in names if name.isprintable()), None)
    return value + rest if rest else None


FIELD_KEYS: Final = "Enter goes on · ↑ ↓ move · space another choice · Esc leaves"


class Form(Dialog[None]):
    """Fields to fill in; Escape leaves them.

    A subclass says in ``take`` what becomes of the fields: it refuses them by raising
    ``MastError``, which is said at the field that it is about; it shows words in their place, from
    which Enter goes on and Escape comes back; or it dismisses the form.
    """

    dialog_keys: ClassVar = (
        *(("Enter", "goes on"), ("↑ ↓", "move"), ("space", "another choice")),
        ("Esc", "leaves"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,tab", "field(1)", show=False),
        Binding("up,shift+tab", "field(-1)", show=False),
        Binding("enter", "keep", show=False),
    ]

    def __init__(self, title: str, fields: Sequence[Field], texts: Texts) -> None:
        """Show fields.

        Args:
            title: What is asked for.
            fields: The fields in their order.
            texts: What stands in them at first, by their names.
        """
        super().__init__()
        self._title = title
        self._fields = fields
        self._texts = texts
        self._then: Callable[[], object] | None = None
        self._back: Callable[[], object] | None = None
        self._stands_on = fields[0].name
        """The field that has the cursor, or had it before words took its place."""
        self._refused = ("", "")
        """The field that is refused, and why."""

    @abstractmethod
    async def take(self, texts: Texts) -> None:
        """Do what the fields ask for; ``MastError`` refuses them."""

    @property
    def mast(self) -> MastApp:
        """The app, with what it shares."""
        return context_of(self)

    def compose(self) -> ComposeResult:
        """The fields, one a line, and what the one with the cursor is for."""
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
        value = self._texts[field.name]
        if field.choices:
            return ChoiceLine(field, value)
        # What stands there is gone on with, not typed over.
        return TextLine(
            value,
            id=field.name,
            select_on_focus=False,
            suggester=PathSuggester() if field.path else None,
        )

    def on_mount(self) -> None:
        """Begin with the first field."""
        self.query_one("#words").display = False
        self._lines()[0].focus()

    def _lines(self) -> list[Input | ChoiceLine]:
        found: list[Input | ChoiceLine] = []
        for field in self._fields:
            line = self.query_one(f"#{field.name}")
            assert isinstance(line, Input | ChoiceLine)
            found.append(line)
        return found

    @property
    def texts(self) -> dict[str, str]:
        """What stands in the fields now."""
        return {line.id or "": line.value for line in self._lines()}

    # Fields

    @on(events.DescendantFocus)
    def _field_changed(self, event: events.DescendantFocus) -> None:
        name, words = self._refused
        field = next((one for one in self._fields if one.name == event.widget.id), None)
        # What is told late of a field that was passed must not undo what was said since.
        if field is None or event.widget is not self.focused:
            return
        self._stands_on = field.name
        if field.name == name:
            self.say_below(words, error=True)
        else:
            self._refused = ("", "")
            self.say_below(field.help)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_keep()

    def action_field(self, step: int) -> None:
        """To the next or previous field."""
        if self._showing_words:
            return
        lines = self._lines()
        place = next((i for i, line in enumerate(lines) if line is self.focused), 0)
        line = lines[(place + step) % len(lines)]
        # At once, as the next key may come before the line has heard of it.
        self._stands_on = line.id or ""
        self.set_focus(line)

    def action_keep(self) -> None:
        """Take what stands in the fields, where it can be; or go on from the words."""
        if not self._showing_words:
            self.mast.writes.do(self._take)
        elif self._then is not None:
            self._then()

    async def _take(self) -> None:
        try:
            await self.take(self.texts)
        except MastError as error:
            self.refuse(str(error))

    def refuse(self, words: str) -> None:
        """Say what is wrong, at the field that it is about; what was written stays.

        Args:
            words: They may begin with the title of a field and a colon.
        """
        title = words.partition(":")[0]
        names = [one.name for one in self._fields if one.title == title]
        name = (*names, self._stands_on)[0]
        # The field says it again when it gets the cursor, which may come later.
        self._refused = (name, one_line(words, 600))
        self.say_below(self._refused[1], error=True)
        self.show_fields(name)

    # Words in their place

    @property
    def _showing_words(self) -> bool:
        return self.query_one("#words").display

    def show_words(
        self,
        words: str,
        keys: str,
        *,
        then: Callable[[], object] | None = None,
        back: Callable[[], object] | None = None,
    ) -> None:
        """Show words in place of the fields.

        Args:
            words: What is said, on lines of its own.
            keys: What keys do now.
            then: What Enter does; nothing without it.
            back: What Escape does; without it the fields come back.
        """
        self._then, self._back = then, back
        self.query_one("#said", Static).update(plain_lines(words))
        self._face(words=True, keys=keys)
        self.query_one("#words").focus()

    def show_fields(self, name: str | None = None) -> None:
        """Show the fields again, with the cursor on the one of this name, else where it was."""
        self._face(words=False, keys=FIELD_KEYS)
        self.query_one(f"#{name or self._stands_on}").focus()

    def _face(self, *, words: bool, keys: str) -> None:
        self.query_one("#words").display = words
        self.query_one(".fields").display = not words
        self.query_one("#about").display = not words
        self.query_one(".keys", Static).update(Content(keys))

    def action_leave(self) -> None:
        """Nothing is done; or back from the words."""
        if not self._showing_words:
            self.dismiss(None)
        elif self._back is not None:
            self._back()
        else:
            self.show_fields()
