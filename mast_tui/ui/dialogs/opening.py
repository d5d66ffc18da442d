"""Dialogs while the workspace opens: the first keys, and the name of the annotator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static
from textual.widgets.input import Selection

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.actions.registry import KeyOf
from mast_tui.ui.context import context_of
from mast_tui.ui.dialogs.dialog import Dialog
from mast_tui.ui.dialogs.finder import ChoiceList, FinderChoice
from mast_tui.ui.styles import DIALOGS
from mast_tui.ui.widgets.bars import TextLine
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import plain_lines

_EXAMPLE_INDEX: Final = 2
"""The index of the mode used as an example. In MAST its keys are two different digits."""

_TITLE_CHARS: Final = 34
"""The most code points of the title of this mode."""


def first_keys(
    taxonomy: Taxonomy, key_of: KeyOf, *, blind: bool, lists_traces: bool
) -> tuple[tuple[str, str], ...]:
    """Return the keys that are enough to begin, with their effects.

    The second line of a text has an empty key.

    Args:
        taxonomy: The taxonomy of the labels.
        key_of: Returns how the key of an action is shown.
        blind: Whether no suggestions are shown, so that no key asks for one.
        lists_traces: Whether a trace must be opened first.
    """
    example_mode = taxonomy.modes[min(_EXAMPLE_INDEX, len(taxonomy.modes) - 1)]
    first, second = tuple(taxonomy.keys_of(example_mode))
    mode_title = one_line(f"{example_mode.code} {example_mode.name}", _TITLE_CHARS)
    open_keys = ((key_of("library.open"), "open the trace under the cursor"),)
    moved_over = "its spans (steps)" if lists_traces else "the spans (steps) of the trace"
    accept = key_of("annotate.accept")
    reject = key_of("annotate.reject")
    effect = f"go to the next suggestion: {accept} accepts it, {reject} rejects it"
    suggestion_keys = (
        (key_of("annotate.judge"), "run a judge, which makes suggestions"),
        (key_of("annotate.next_suggestion"), effect),
    )
    return (
        *(open_keys if lists_traces else ()),
        (f"{key_of('annotate.up')} {key_of('annotate.down')}", f"move over {moved_over}"),
        (f"{first} {second}", f"press {first}, then {second}: label {mode_title}"),
        ("", "on the span under the cursor; again: remove it"),
        *(() if blind else suggestion_keys),
        (key_of("annotate.finish"), "finish the trace, so that your labels count"),
        (key_of("everywhere.undo"), "undo the last change, also after a restart"),
        (key_of("everywhere.help"), "all keys of a screen; press it now to read them"),
    )


class WelcomeScreen(ModalScreen[bool | None]):
    """The first keys, shown until any key is pressed.

    The screen returns True if the key was pressed after the screen appeared, else False. The app
    then handles an earlier key, and the key of the help.
    """

    CSS_PATH = DIALOGS
    dialog_keys: ClassVar = (("any key", "begins"),)

    def __init__(self, keys: tuple[tuple[str, str], ...], saved_text: str) -> None:
        """Make the screen.

        Args:
            keys: The keys and their effects.
            saved_text: The text on where labels are saved; empty if the user knows it.
        """
        super().__init__()
        self._mounted_at: float | None = None
        self._keys = keys
        self._saved_text = saved_text

    def compose(self) -> ComposeResult:
        """Yield a dialog with the most important keys."""
        with Vertical(classes="dialog") as box:
            box.border_title = "Welcome to mast_tui"
            box.border_subtitle = "any key begins"
            yield Static(
                Content("Read what an agent did. Label where it failed, and how (the mode)."),
                classes="question",
            )
            for key, effect in self._keys:
                yield Static(Content.assemble((f" {key:<5}", "bold"), f" {effect}"))
            if self._saved_text:
                yield Static(plain_lines(self._saved_text), classes="hint")

    def on_mount(self) -> None:
        """Note the time, because the screen is drawn next."""
        self._mounted_at = monotonic()

    def on_key(self, event: events.Key) -> None:
        """Close the screen, and return if it was drawn before the key was pressed.

        A key for help, or from before the screen was drawn, goes to the screen below.
        """
        event.stop()
        was_seen = self._mounted_at is not None and event.time >= self._mounted_at
        self.dismiss(was_seen)
        below = self.app.screen_stack[-2].active_bindings.get(event.key)
        asks_for_help = below is not None and below.binding.id == "everywhere.help"
        if asks_for_help or not was_seen:
            context_of(self).input_queue.put_back(event)

    def on_click(self) -> None:
        """Close the screen."""
        self.dismiss(True)


MOST_ROWS: Final = 8
"""The most names that the list shows at once."""

_MOVES: Final = {"j": 1, "k": -1}


class NameList(ChoiceList):
    """The names to choose from, without a cursor until a name is chosen."""

    is_chosen = False
    """True if the name under the cursor is chosen."""

    def shows_cursor(self, row: int) -> bool:
        """Check if a row is that of the chosen name."""
        return self.is_chosen and super().shows_cursor(row)

    @property
    def chosen_name(self) -> str | None:
        """The chosen name, or None."""
        return self.choices[self.cursor].value if self.is_chosen else None

    def choose(self, row: int) -> None:
        """Choose the name of a row."""
        # No ``Moved`` is posted, because it stands for a click here and would come after the next
        # key.
        previous_row = self.cursor
        self.cursor = row
        self.is_chosen = True
        self.redraw_rows(previous_row, row)
        self.show_row(row)

    def choose_none(self) -> None:
        """Remove the choice."""
        self.is_chosen = False
        self.redraw_rows(self.cursor)


class NameScreen(Dialog[str]):
    """The dialog that returns the name of the person who labels, or None after Escape.

    In a study, the list has the focus, so that ``j`` and ``k`` move. A name without counted labels
    must be confirmed. Outside a study, the line has a suggested name.
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
        suggested_name: str,
        saved_text: str,
        escape: str,
        in_study: bool,
        check: Callable[[str], str],
        outside_study_reason: Callable[[str], str | None],
    ) -> None:
        """Make the dialog.

        Args:
            people: The names to choose from, each with its role in the study.
            suggested_name: The initial name outside a study.
            saved_text: The text on where labels are saved.
            escape: The effect of Escape.
            in_study: Whether the people take part in a study.
            check: Returns the name in its final form, or raises ``MastError``.
            outside_study_reason: Returns why labels under a name will not count in the study, or
                None.
        """
        super().__init__("Who is labelling?")
        self._choices = [
            FinderChoice(name, code="", name=name, detail=part) for name, part in people
        ]
        self._suggested_name = "" if in_study else suggested_name
        self._saved_text = saved_text
        self._escape = escape
        self._in_study = in_study
        self._check = check
        self._outside_study_reason = outside_study_reason
        self._move_letters = ""
        """The typed letters, such as j and k, that have moved the cursor.

        They may be the beginning of a name.
        """

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys and their effects."""
        enter = ("Enter", "begins")
        escape = ("Esc", self._escape)
        if not self._choices:
            return (enter, escape)
        if not self._in_study:
            return (enter, ("↑ ↓", "choose a name"), escape)
        return (("↑ ↓ j k", "choose"), enter, ("Tab", "another name"), escape)

    @property
    def _name_line(self) -> TextLine:
        return self.query_one(TextLine)

    @property
    def _name_list(self) -> NameList:
        return self.query_one(NameList)

    def compose_rows(self) -> ComposeResult:
        """Yield the question, a line to type on and the list of names."""
        question = (
            f"{self._saved_text} Each label carries your name: use the same name on every machine."
        )
        yield Static(plain_lines(question), classes="question")
        yield TextLine(
            self._suggested_name,
            placeholder="your name",
            id="text",
            select_on_focus=not self._in_study,
        )
        heading = "In this study:" if self._in_study else "In this workspace:"
        title = Static(heading, classes="people", markup=False)
        title.display = bool(self._choices)
        yield title
        name_list = NameList()
        name_list.display = bool(self._choices)
        name_list.can_focus = self._in_study
        yield name_list
        yield Static(Content(self._keys_hint), classes="hint")

    @property
    def _keys_hint(self) -> str:
        return " · ".join(f"{key} {effect}" for key, effect in self.dialog_keys)

    def on_mount(self) -> None:
        """Show the names."""
        self._name_list.styles.height = min(len(self._choices), MOST_ROWS)
        self._name_list.show(self._choices)
        self.set_focus(self._name_list if self._in_study else self._name_line)

    def on_key(self, event: events.Key) -> None:
        """Type on the line, or move in the list of a study with ``j`` and ``k``.

        If letters that have moved the cursor begin a name, they are typed as well.
        """
        line = self._name_line
        if self.focused is line or not event.is_printable or not event.character:
            return
        event.stop()
        step = _MOVES.get(event.character) if self._in_study else None
        if step is not None:
            self._move_letters += event.character
            self._move_choice(step)
            return
        typed_text = self._move_letters + event.character
        begins_a_name = any(choice.value.startswith(typed_text) for choice in self._choices)
        self._name_list.choose_none()
        line.value = typed_text if begins_a_name else event.character
        line.cursor_position = len(line.value)
        self.set_focus(line)

    def action_move(self, step: int) -> None:
        """Choose the next or the previous name."""
        self._move_letters = ""
        self._move_choice(step)

    def _move_choice(self, step: int) -> None:
        """Choose the next or previous name.

        If no name is chosen, choose the first or the last one.
        """
        name_list = self._name_list
        if not self._choices:
            return
        if name_list.is_chosen:
            row = name_list.cursor + step
        else:
            row = 0 if step > 0 else len(self._choices) - 1
        self._choose_row(max(0, min(row, len(self._choices) - 1)))

    def _choose_row(self, row: int) -> None:
        self._name_list.choose(row)
        self.say_below(self._keys_hint)
        self._name_line.value = self._choices[row].value
        # The next typed letter replaces the chosen name.
        self._name_line.selection = Selection(0, len(self._name_line.value))

    @on(Input.Changed)
    def _name_changed(self) -> None:
        if self._name_list.is_chosen and self._name_list.chosen_name != self._name_line.value:
            self._name_list.choose_none()

    @on(VirtualLines.Moved)
    def _row_clicked(self, event: VirtualLines.Moved) -> None:
        self._choose_row(event.row)

    @on(VirtualLines.Chosen)
    def _row_chosen(self, event: VirtualLines.Chosen) -> None:
        """Accept a chosen name that was clicked again, or choose the clicked name."""
        if self._name_list.is_chosen:
            self.action_accept()
        else:
            self._choose_row(event.row)

    @on(Input.Submitted)
    def action_accept(self) -> None:
        """Return the name on the line. If its labels will not count, ask first.

        An invalid or missing name shows an error.
        """
        typed_name = self._name_line.value.strip()
        if not typed_name and self._choices:
            self.say_below("No name is chosen. Choose yours with ↓, or type it.", error=True)
            return
        try:
            name = self._check(typed_name)
        except MastError as error:
            self.say_below(str(error), error=True)
            return
        reason = self._outside_study_reason(name)
        if reason is None:
            self.dismiss(name)
            return
        context_of(self).ask_key(
            "Not in this study",
            f"{one_line(reason)}. Continue?",
            (("n", "no, choose another name"), ("y", f"yes, label as {one_line(name, 40)}")),
            {"y": lambda: self.dismiss(name)},
            default="n",
        )
