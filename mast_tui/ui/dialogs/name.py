"""The question who labels, with the people to choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static
from textual.widgets.input import Selection

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.ui.dialogs.dialog import Ask, Dialog
from mast_tui.ui.dialogs.finder import ChoiceList, FinderChoice
from mast_tui.ui.widgets.text_line import TextLine
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import plain_title

MOST_ROWS: Final = 8
"""The number of names that the list shows at once."""

_MOVES: Final = {"j": 1, "k": -1}


class NameList(ChoiceList):
    """The people to choose from. No row is marked until one is chosen."""

    marked = False
    """True if the row under the cursor is chosen."""

    def row_style(self, row: int) -> Style:
        """Return the style of a row, which shows the cursor only on a chosen name."""
        return super().row_style(row) if self.marked else self.rich_style

    @property
    def name_marked(self) -> str | None:
        """The chosen name."""
        return self.choices[self.cursor].value if self.marked else None

    def mark(self, row: int) -> None:
        """Choose a name."""
        # No ``Moved`` is posted: that message means a click, and would come after the next key.
        previous = self.cursor
        self.cursor = row
        self.marked = True
        self.redraw_row(previous)
        self.redraw_row(row)
        self.show_row(row)

    def unmark(self) -> None:
        """Choose no name."""
        self.marked = False
        self.redraw_row(self.cursor)


class NameScreen(Dialog[str]):
    """The dialog that returns the name of the person who labels, or None after Escape.

    In a study nothing is filled in and the list has the focus, so that ``j`` and ``k`` move too;
    a name that ``outside`` objects to must be confirmed. Elsewhere a name is suggested on the line.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,ctrl+n", "move(1)", show=False, priority=True),
        Binding("up,ctrl+p", "move(-1)", show=False, priority=True),
        Binding("enter", "accept", show=False),
    ]

    def __init__(
        self,
        people: Sequence[tuple[str, str]],
        *,
        suggested: str,
        in_study: bool,
        check: Callable[[str], str],
        outside: Callable[[str], str | None],
    ) -> None:
        """Prepare the question.

        Args:
            people: The names to choose from, each with the person's part in the study.
            suggested: The name to fill in outside a study.
            in_study: Whether the people are those of a study.
            check: Returns the name in its final form, or raises ``MastError``.
            outside: Returns why labels under a name will not count; None if they do.
        """
        super().__init__()
        self._choices = [FinderChoice(name, "", name, part) for name, part in people]
        self._suggested = "" if in_study else suggested
        self._in_study = in_study
        self._check = check
        self._outside = outside
        self._moves = ""
        """The letters that have moved in the list and may be the beginning of a typed name."""

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys and what they do."""
        begins = (("Enter", "begins"),)
        leaves = (("Esc", "quits"),)
        if not self._choices:
            return (*begins, *leaves)
        if not self._in_study:
            return (*begins, ("↑ ↓", "choose a name"), *leaves)
        return (("↑ ↓ j k", "choose"), *begins, ("Tab", "types another name"), *leaves)

    @property
    def _line(self) -> TextLine:
        return self.query_one(TextLine)

    @property
    def _list(self) -> NameList:
        return self.query_one(NameList)

    def compose(self) -> ComposeResult:
        """The question, a line to type on and the list of names."""
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title("Who is labelling?")
            question = "Your labels are saved under this name. Use the same name everywhere."
            yield Static(question, classes="question", markup=False)
            yield TextLine(
                self._suggested,
                placeholder="your name",
                id="text",
                select_on_focus=not self._in_study,
            )
            heading = "In this study:" if self._in_study else "Already here:"
            title = Static(heading, classes="people", markup=False)
            title.display = bool(self._choices)
            yield title
            listed = NameList()
            listed.display = bool(self._choices)
            listed.can_focus = self._in_study
            yield listed
            yield Static(Content(self._hint), classes="hint")

    @property
    def _hint(self) -> str:
        return " · ".join(f"{key} {effect}" for key, effect in self.dialog_keys)

    def on_mount(self) -> None:
        """Show the names."""
        self._list.styles.height = min(len(self._choices), MOST_ROWS)
        self._list.show(self._choices)
        self.set_focus(self._list if self._in_study else self._line)

    def on_key(self, event: events.Key) -> None:
        """Move in the list, or type on the line."""
        line = self._line
        if self.focused is line or not event.is_printable or not event.character:
            return
        event.stop()
        step = _MOVES.get(event.character) if self._in_study else None
        if step is not None:
            self._moves += event.character
            self._move(step)
            return
        typed = self._moves + event.character
        begins_a_name = any(choice.value.startswith(typed) for choice in self._choices)
        self._list.unmark()
        line.value = typed if begins_a_name else event.character
        line.cursor_position = len(line.value)
        self.set_focus(line)

    def action_move(self, step: int) -> None:
        """Choose the next or the previous name."""
        self._moves = ""
        self._move(step)

    def _move(self, step: int) -> None:
        """Choose the next or previous name; begin at an end of the list."""
        listed = self._list
        if not self._choices:
            return
        if listed.marked:
            row = listed.cursor + step
        else:
            row = 0 if step > 0 else len(self._choices) - 1
        self._choose(max(0, min(row, len(self._choices) - 1)))

    def _choose(self, row: int) -> None:
        self._list.mark(row)
        self.say_below(self._hint)
        self._line.value = self._choices[row].value
        # Whatever is typed next replaces the chosen name.
        self._line.selection = Selection(0, len(self._line.value))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self._list.marked and self._list.name_marked != self._line.value:
            self._list.unmark()

    @on(VirtualLines.Moved)
    def _clicked(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self._choose(event.row)

    @on(VirtualLines.Chosen)
    def _clicked_again(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        if self._list.marked:
            self.action_accept()
        else:
            self._choose(event.row)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_accept()

    def action_accept(self) -> None:
        """Return the name; ask first if labels under it will not count."""
        typed = self._line.value.strip()
        if not typed and self._in_study:
            self.say_below("No name is chosen. Choose yours with ↓ or j, or type it.", error=True)
            return
        try:
            name = self._check(typed)
        except MastError as error:
            self.say_below(str(error), error=True)
            return
        objection = self._outside(name)
        if objection is None:
            self.dismiss(name)
            return

        def answered(answer: str | None) -> None:
            if answer == "y":
                self.dismiss(name)

        self.app.push_screen(
            Ask(
                "Not in this study",
                f"{one_line(objection)}. Continue?",
                (("n", "no, choose another name"), ("y", f"yes, label as {one_line(name, 40)}")),
                default="n",
            ),
            answered,
        )
