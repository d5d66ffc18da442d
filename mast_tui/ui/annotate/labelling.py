"""Labelling: two digits name a mode, and other keys change the label under the cursor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec import Struct, structs

from mast_tui.labels import (
    Label,
    Target,
    VerdictValue,
    confidence_words,
    next_confidence,
    next_severity,
)
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import OPEN_CODE_SLUG, Mode, Taxonomy
from mast_tui.ui.actions.registry import key_text
from mast_tui.ui.actions.tables import ANNOTATE, EVERYWHERE, Where, moves
from mast_tui.ui.annotate.part import ScreenPart
from mast_tui.ui.annotate.state import DIGITS_HINT, PLAIN, Entry, Marking, NotedSpan
from mast_tui.ui.annotate.suggestions import Suggestions
from mast_tui.ui.dialogs.dialog import NoteScreen
from mast_tui.ui.dialogs.finder import ModeFinder
from mast_tui.ui.widgets.bars import Menu
from mast_tui.ui.wording import counted
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import Change, Session
    from mast_tui.ui.annotate.screen import AnnotateScreen

TYPING_ACTIONS: Final = frozenset(
    {f"annotate.digit_{d}" for d in range(10)}
    | {move.id for move in moves(Where.ANNOTATE)}
    | {"everywhere.back"}
)
"""The actions that stay available while a mode is typed: moving and leaving."""

EDITING_ACTIONS: Final = TYPING_ACTIONS | {
    action.id for action in (*EVERYWHERE, *ANNOTATE) if action.while_editing
}
"""The actions that stay available while a label or suggestion is edited."""


LabelAction = Literal["note", "severity", "confidence", "remove", "edit"]

CHOICE_QUESTIONS: Final[dict[LabelAction, str]] = {
    "note": "Note for",
    "severity": "Severity of",
    "confidence": "Confidence in",
    "remove": "Remove",
    "edit": "Edit",
}
"""The question which label to use, by action."""


class DigitEntry(Struct, frozen=True):
    """The mode that is being typed.

    Attributes:
        purpose: The verdict for the mode; ``present`` makes a label.
        first: The first digit; None until it is typed.
        has_begun: True after a key for the purpose or the first digit.
    """

    purpose: VerdictValue = VerdictValue.PRESENT
    first: str | None = None
    has_begun: bool = False

    def candidates(self, taxonomy: Taxonomy) -> tuple[tuple[str, Mode], ...]:
        """Return the possible second digits with their modes; none without a first digit."""
        if self.first is None:
            return ()
        digits_and_modes = ((digit, self.mode_with(digit, taxonomy)) for digit in "0123456789")
        return tuple((digit, mode) for digit, mode in digits_and_modes if mode is not None)

    def mode_with(self, second: str, taxonomy: Taxonomy) -> Mode | None:
        """Return the mode that a second digit completes, or None.

        The mode 'None of these' is not in ``taxonomy.modes``. It can have labels, but no verdict
        absent or unsure.

        Args:
            second: The second digit.
            taxonomy: The modes.
        """
        mode = taxonomy.by_digits(self.first or "", second)
        if mode is None or self.purpose is VerdictValue.PRESENT:
            return mode
        return mode if mode in taxonomy.modes else None

    @property
    def prompt(self) -> str:
        """The typed part for the last line."""
        typed_part = f"{self.first or ''}▁"
        if self.purpose is VerdictValue.PRESENT:
            return f"label {typed_part}"
        return f"{self.purpose}: {typed_part}"

    def menu(self, taxonomy: Taxonomy) -> Menu:
        """Return the possible next digits, with the titles of their categories or modes."""
        if self.first is not None:
            candidates = self.candidates(taxonomy)
            _, first_mode = candidates[0]
            rows = (f"{digit}  {mode.code} {mode.name}" for digit, mode in candidates)
            return Menu(_first_digit_title(first_mode, taxonomy), tuple(map(one_line, rows)))
        choices = []
        for digit in "0123456789":
            candidates = structs.replace(self, first=digit).candidates(taxonomy)
            if candidates:
                _, first_mode = candidates[0]
                choices.append(one_line(f"{digit}  {_first_digit_title(first_mode, taxonomy)}"))
        return Menu(f"{self.purpose}: two digits".capitalize(), tuple(choices))


def _first_digit_title(mode: Mode, taxonomy: Taxonomy) -> str:
    """Return the title of the modes with the same first digit as a mode."""
    if taxonomy.coded_by_digits and mode in taxonomy.modes:
        return taxonomy.title(mode.category)
    return f"{mode.code} {mode.name} …"


class TypedDigit(Struct, frozen=True):
    """The result of typing one more digit.

    Attributes:
        entry: The typed part after the digit.
        mode: The completed mode, or None.
        refusal: The reason why the digit was refused, or None.
    """

    entry: DigitEntry
    mode: Mode | None = None
    refusal: str | None = None


def type_digit(entry: DigitEntry, digit: str, taxonomy: Taxonomy) -> TypedDigit:
    """Add one digit. A digit that begins or completes no mode is refused, and discards the entry.

    Args:
        entry: The typed part so far.
        digit: The digit.
        taxonomy: The modes.
    """
    if entry.first is None:
        with_digit = DigitEntry(entry.purpose, first=digit, has_begun=True)
        if not with_digit.candidates(taxonomy):
            return TypedDigit(DigitEntry(), refusal=f"no mode has the first digit {digit}")
        return TypedDigit(with_digit)
    mode = entry.mode_with(digit, taxonomy)
    if mode is None:
        return TypedDigit(DigitEntry(), refusal=f"no mode has the digits {entry.first} {digit}")
    return TypedDigit(DigitEntry(entry.purpose), mode)


class _LabelChoice(NamedTuple):
    """A label that the user may choose for an action."""

    action: LabelAction
    label_id: str


class Labelling(ScreenPart):
    """The keys that make and change labels.

    A change is on disk before the screen shows it.
    """

    def __init__(self, screen: AnnotateScreen, marking: Marking, suggestions: Suggestions) -> None:
        """Begin with nothing typed.

        Args:
            screen: The screen with this part.
            marking: The target of the next label.
            suggestions: The suggestions of the trace.
        """
        super().__init__(screen)
        self._commands = screen.commands
        self._marking = marking
        self._suggestions = suggestions
        self.edited_from = 0
        """The span where editing began. Escape returns to it."""
        self.begin_trace()

    def begin_trace(self) -> None:
        """Begin with another trace, without anything typed or edited."""
        self.entry = DigitEntry()
        """The mode that is being typed."""
        self._edited_label_id: str | None = None
        """The id of the label that is being edited."""
        self._marking.keys_to_use_target = DIGITS_HINT  # editing has another hint
        self._whole_labelled_at = -1
        """The span under the cursor when the whole trace was labelled, until the cursor leaves it
        or another label is made; -1 for none.
        """
        self._forget_choice()

    def _forget_choice(self) -> None:
        self._choice: _LabelChoice | None = None
        """The label that the last line asks about.

        After the answer it is kept for severity and confidence, because their keys can be repeated.
        """
        self._is_choosing = False
        """True while the last line asks which label to use."""

    @property
    def is_asking(self) -> bool:
        """True if the user must choose a label, complete a mode, or mark a new target."""
        return self._is_choosing or self.entry.has_begun or self._is_editing

    @property
    def _is_editing(self) -> bool:
        return self._edited_label_id is not None or self._suggestions.edited_id is not None

    def take_key(self, key: str, action: str | None) -> bool:
        """Handle a key while the last line asks for something (``is_asking``).

        Args:
            key: The key.
            action: The id of the key's action, or None.

        Returns:
            False if the key's own action must run.
        """
        if self._is_choosing:
            return self._take_choice_key(key, action)
        if self.entry.has_begun:
            return self._take_typing_key(key, action)
        if key == "enter":
            mode = self._modes.mode if self._modes.has_focus else self._edited_mode()
            if mode is not None:
                self.label_with(mode)
            return True
        if action in EDITING_ACTIONS:
            return False
        self._hints.prompt(
            f"{key_text(key)} does nothing while you edit · {self._marking.keys_to_use_target} · "
            f"{self._key_of('everywhere.back')} cancels"
        )
        return True

    def _take_typing_key(self, key: str, action: str | None) -> bool:
        """Handle a key while a mode is typed. Return False if the key's own action must run."""
        if key == "backspace":
            self._remove_digit()
            return True
        if action in TYPING_ACTIONS:
            return False
        self._show_typing(refused_key=key)
        return True

    def _edited_mode(self) -> Mode | None:
        """Return the mode of the label or suggestion that is being edited, or None."""
        session = self._state.session
        if session is None:
            return None
        # An empty id stands for no label and no suggestion.
        label = session.labels_by_id.get(self._edited_label_id or "")
        edited_item = label or session.pending_by_id.get(self._suggestions.edited_id or "")
        slug = edited_item.mode if edited_item else None
        return next((mode for mode in self._state.taxonomy.all_modes if mode.slug == slug), None)

    def show_editing(self) -> None:
        """Show the keys that continue the editing of a label or suggestion."""
        mode = self._edited_mode()
        if mode is not None:
            verb = "save" if self._suggestions.edited_id is None else "accept"
            self._marking.keys_to_use_target = f"Enter {verb}s, two digits {verb} as another mode"
            target_keys = ", ".join(
                f"{self._key_of(f'annotate.{name}')} {title}"
                for name, title in (("range", "range"), ("quote", "quote"), ("whole", "trace"))
            )
            self._hints.prompt(
                f"edit: {self._marking.keys_to_use_target} · {target_keys} "
                f"· {self._key_of('everywhere.back')} cancels"
            )

    def add_digit(self, digit: str) -> None:
        """Add a digit. Once a mode is complete, add its label or set its verdict."""
        if not self._state.has_spans:
            return
        typed_digit = type_digit(self.entry, digit, self._state.taxonomy)
        purpose = self.entry.purpose
        mode = typed_digit.mode
        self.entry = typed_digit.entry
        if typed_digit.refusal:
            self._stop_typing()
            self._hints.say(f"Nothing labelled: {typed_digit.refusal}", error=True)
        elif mode is None:
            self._show_typing()
        elif purpose is VerdictValue.PRESENT:
            self.label_with(mode)
        else:
            self._stop_typing()
            self._commands.when_session_opens(
                lambda session: self._set_verdict(session, mode, purpose)
            )

    def begin_verdict(self, value: str) -> None:
        """Ask for the two digits of the mode that gets a verdict.

        Args:
            value: The verdict, ``absent`` or ``unsure``.
        """
        if not self._state.has_spans:
            return
        self.entry = DigitEntry(VerdictValue(value), has_begun=True)
        self._show_typing()

    def _show_typing(self, refused_key: str = "") -> None:
        """Show the typed digit in the last line, and the possible next digits above it.

        ``refused_key`` is a key that has just been pressed and does nothing here.
        """
        taxonomy = self._state.taxonomy
        digit = "first" if self.entry.first is None else "second"
        parts = [self.entry.prompt, f"{digit} digit"]
        closing = f"{self._key_of('everywhere.back')} cancels"
        if refused_key:
            parts.insert(1, f"{key_text(refused_key)} does nothing here")
        elif self.entry.purpose is VerdictValue.PRESENT and not self._is_editing:
            absent_key, unsure_key = map(self._key_of, ("annotate.absent", "annotate.unsure"))
            closing += f" · {absent_key} before the digits: absent, {unsure_key}: unsure"
        self._hints.prompt(
            " · ".join((*parts, closing)),
            self.entry.menu(taxonomy),
        )
        self._modes.show_typed(frozenset(mode.slug for _, mode in self.entry.candidates(taxonomy)))

    def _remove_digit(self) -> None:
        """Remove the typed digit, or end the typing.

        Without a digit, or for a label, the typing ends. Else the first digit is asked for again.
        """
        purpose = self.entry.purpose
        if self.entry.first is not None and purpose is not VerdictValue.PRESENT:
            self.begin_verdict(purpose.value)
            return
        self._stop_typing()
        if self._is_editing:
            self.show_editing()

    def _stop_typing(self) -> None:
        self.entry = DigitEntry()
        self._modes.show_typed(frozenset())
        self._hints.clear()

    def label_with(self, mode: Mode) -> None:
        """Set the mode and the target of the edited label or suggestion.

        If nothing is edited, add a label, or remove the equal label.
        """
        target = self._state.current_target()
        is_one_span = self._state.selection.is_plain and target.first == target.last
        self._whole_labelled_at = self._state.index if target.is_whole else -1
        suggestion_id = self._suggestions.end_edit()
        label_id = self._edited_label_id
        self._edited_label_id = None
        self._reset_entry(mode)
        commands = self._commands
        if label_id is not None:
            commands.queue_change(lambda s: s.edit_label(label_id, mode=mode.slug, target=target))
        elif suggestion_id is not None:
            commands.when_session_opens(
                lambda session: self._suggestions.finish_edit(session, suggestion_id, mode, target)
            )
        elif mode.slug == OPEN_CODE_SLUG:
            commands.when_session_opens(
                lambda session: self._toggle_open_code(session, mode, target)
            )
        elif self._state.session is None:
            # While the session opens, no label is shown yet.
            commands.when_session_opens(lambda _: self._run_toggle(mode, target))
        else:
            toggle = self._toggle_or_ask if is_one_span else _toggle_label
            commands.queue_change(
                lambda session: toggle(session, mode, target), blocks=HeldKeys.MOST
            )

    async def _toggle_open_code(self, session: Session, mode: Mode, target: Target) -> None:
        """Add a label without a mode (an open code) and ask for its note, or remove an equal
        one.
        """
        await self._run_toggle(mode, target)
        for label in session.labels:
            if label.mode == mode.slug and label.target == target:
                if not label.note:
                    await self._perform_action("note", label)
                return

    async def _run_toggle(self, mode: Mode, target: Target) -> None:
        await self._commands.run_command(lambda session: _toggle_label(session, mode, target))

    def _toggle_or_ask(self, session: Session, mode: Mode, target: Target) -> Change | None:
        """Add or remove the label of a span.

        If the span is inside a labelled range of the same mode, open a question and return None.
        """
        labels = [] if target.first is None else session.labels_at(target.first)
        same_mode = [label for label in labels if label.mode == mode.slug]
        range_labels = [label for label in same_mode if label.target.first != label.target.last]
        if not range_labels or any(label.target == target for label in same_mode):
            return _toggle_label(session, mode, target)
        range_label = range_labels[-1]
        span_text = self._state.target_text(target)
        range_text = self._state.target_text(range_label.target)
        queue_change = self._commands.queue_change
        self._screen.mast.ask_key(
            f"{mode.code} {mode.name}",
            f"{span_text} is inside your label {mode.code} on {range_text}.",
            (("x", "remove that label"), ("a", f"add one on {span_text} too"), ("n", "leave it")),
            {
                "x": lambda: queue_change(lambda s: s.remove_label(range_label.id)),
                "a": lambda: queue_change(lambda s: _toggle_label(s, mode, target)),
            },
            default=None,
        )
        return None

    def _reset_entry(self, mode: Mode) -> None:
        """Reset typing and marking, and put the cursor of the taxonomy on the chosen mode."""
        self._stop_typing()
        self._marking.keys_to_use_target = DIGITS_HINT
        self._marking.mark(PLAIN)
        self._modes.go_to(mode.slug)

    async def _set_verdict(self, session: Session, mode: Mode, value: VerdictValue) -> None:
        """Set a mode absent or unsure, after a question if it has labels."""
        labels = [label for label in session.labels if label.mode == mode.slug]
        if not labels:
            await self._commands.run_command(lambda s: s.set_verdict(mode.slug, value))
            return
        self._screen.mast.ask_key(
            f"{mode.code} {mode.name}",
            f"{mode.code} has {counted(len(labels), 'label')} in this trace. "
            f"Remove {'it' if len(labels) == 1 else 'them'} and set {mode.code} {value}?",
            (("y", "remove and set"), ("n", "keep")),
            {
                "y": lambda: self._commands.queue_change(
                    lambda s: s.set_verdict(mode.slug, value, remove_labels=True)
                )
            },
            default=None,
        )

    def find_mode(self) -> None:
        """Choose a mode by a part of its name."""
        if not self._state.has_spans:
            return
        taxonomy = self._state.taxonomy
        self._screen.mast.ask(
            ModeFinder(taxonomy), lambda slug: self.label_with(taxonomy.mode(slug))
        )

    @property
    def is_waiting(self) -> bool:
        """True if another key is expected, so that the last line keeps its message."""
        return (
            self.entry.has_begun
            or self._choice is not None
            or not self._state.selection.is_plain
            or self._is_editing
        )

    def cancel(self) -> bool:
        """Cancel typing, choosing, marking and editing; return False if there was nothing to
        cancel.

        After editing, the cursor returns to the span where it began.
        """
        was_waiting = self.is_waiting
        was_editing = self._is_editing
        self.begin_trace()  # the same state as with a new trace
        self._suggestions.end_edit()
        self._stop_typing()
        self._marking.mark(PLAIN)
        if was_editing:
            self._screen.go_to(self.edited_from)
        return was_waiting

    def undo_or_redo(self, *, undoes: bool) -> None:
        """Undo the last change on this trace, or redo the last undone change."""
        self._commands.when_session_opens(lambda _: self._undo_or_redo(undoes=undoes))

    async def _undo_or_redo(self, *, undoes: bool) -> None:
        """Undo or redo a change, and go to its place; show a hint if there is no change."""
        self._hints.clear()
        waiting_before = frozenset(self._suggestions.pending_by_id)
        change = await self._commands.run_command(lambda s: s.undo() if undoes else s.redo())
        if change is None:
            if not self._hints.message:
                self._hints.say("Nothing to undo" if undoes else "Nothing to redo")
            return
        if change.key is not None and self._state.trace is not None:
            index = self._state.trace.index_of(change.key)
            if index is not None:
                self._screen.timeline.go_to(index)
        if change.mode is not None:
            self._modes.go_to(change.mode)
        waits_again = (s for s in self._suggestions.pending if s.id not in waiting_before)
        suggestion = next(waits_again, None)
        if suggestion is not None:
            self._suggestions.show(suggestion)

    # The label under the cursor; if there are several, the user chooses one first

    @property
    def newest_label(self) -> Label | None:
        """The newest label under the cursor, or None."""
        return next(iter(self._labels_under_cursor()), None)

    def _begin_edit(self, label: Label) -> None:
        """Mark the target of a label, and show the keys that edit it."""
        self._screen.set_focus(self._screen.timeline)
        self._marking.mark(PLAIN)  # ends the previous selection
        self._marking.mark_target(label.target)
        self._edited_label_id = label.id
        self.show_editing()

    def act_on_label(self, action: LabelAction) -> None:
        """Act on the label under the cursor, or on the picked entry in the list of labels.

        Args:
            action: The action. On a span without a label, ``note`` writes a note on the span.
                ``edit`` changes mode and target only.
        """
        picked_entry = self._screen.picked_entry
        if picked_entry is not None:
            self._commands.when_session_opens(
                lambda session: self._act_on_entry(session, action, picked_entry)
            )
        elif self._state.has_spans:
            index = self._state.index
            on_whole_trace = self._acts_on_whole_trace
            self._commands.when_session_opens(
                lambda session: self._act_at_cursor(session, action, index, on_whole_trace)
            )

    async def _act_on_entry(self, session: Session, action: LabelAction, entry: Entry) -> None:
        """Act on an entry of the list: a label, the note on a span, or a verdict on a mode.

        Show an error if the action does not fit the entry.
        """
        if isinstance(entry, Label):
            label = session.labels_by_id.get(entry.id)
            if label is not None:
                await self._perform_action(action, label)
        elif isinstance(entry, NotedSpan):
            index = session.trace.index_of(entry.key)
            if action == "remove":
                await self._commands.run_command(lambda s: s.note_span(entry.key, text=""))
            elif action == "note" and index is not None:
                self._note_span(session, index)
            else:
                self._hints.say(f"A note on a span has no {action}", error=True)
        elif action == "remove":
            await self._commands.run_command(lambda s: s.set_verdict(entry.mode, value=None))
        else:
            self._hints.say(f"A mode that is {entry.value} has no {action}", error=True)

    async def _act_at_cursor(
        self, session: Session, action: LabelAction, index: int, on_whole_trace: bool
    ) -> None:
        """Act on the annotator's label on a span, or on the whole trace.

        Of several labels, act on the chosen one or ask which to use. Without a label, ``note``
        writes a note on the span, and other actions show an error.
        """
        labels = self._state.labels_on(session, index, on_whole_trace=on_whole_trace)
        if not labels:
            if action == "note" and not on_whole_trace:
                self._note_span(session, index)
            else:
                location = "the whole trace" if on_whole_trace else "this span"
                self._hints.say(f"No label of yours on {location}", error=True)
            return
        if len(labels) == 1:
            await self._perform_action(action, labels[0])
            return
        labels = _newest_first(session, labels)
        chosen_label = self._chosen_label(action, labels)
        if chosen_label is None:
            self._show_choice(action, labels, position=0)
            return
        self._is_choosing = False
        # Further presses of these keys change the same label without a question.
        if action not in ("severity", "confidence"):
            self._choice = None
        await self._perform_action(action, chosen_label)

    def _note_span(self, session: Session, index: int) -> None:
        span_key = self._state.open_trace.span(index).key
        self._ask_note(
            f"Note on #{index + 1}",
            session.span_notes.get(span_key, ""),
            lambda s, text: s.note_span(span_key, text),
        )

    def _ask_note(
        self,
        title: str,
        note: str,
        command: Callable[[Session, str], Change | None],
        question: str = "",
        message_if_left: str = "",
    ) -> None:
        """Ask for a note, and write it.

        ``message_if_left`` is shown after Escape; it is empty unless a label is without a note.
        """
        in_editor = not self._screen.app.is_web
        escape = "leaves the label without a note" if message_if_left else "cancels"
        hint = f"Enter saves · Esc {escape}"
        self._screen.mast.ask_to_write(
            partial(NoteScreen, title, note, question=question, hint=hint, in_editor=in_editor),
            lambda text, ask_again: self._commands.queue_change(
                lambda s: command(s, text), refused=ask_again
            ),
            left=partial(self._hints.say, message_if_left) if message_if_left else None,
        )

    @property
    def _acts_on_whole_trace(self) -> bool:
        """True if keys act on labels on the whole trace: it is marked, or was labelled just now."""
        if self._state.selection.whole_trace:
            return True
        was_labelled = self._whole_labelled_at == self._state.index
        return was_labelled and bool(self._state.codes_on_whole_trace())

    def _labels_under_cursor(self) -> tuple[Label, ...]:
        session = self._state.session
        if session is None or not self._state.has_spans:
            return ()
        labels = self._state.labels_on(
            session, self._state.index, on_whole_trace=self._acts_on_whole_trace
        )
        return _newest_first(session, labels)

    def _chosen_label(self, action: LabelAction, labels: tuple[Label, ...]) -> Label | None:
        """Return the label that the user chose for an action, or None."""
        if self._choice is None or self._choice.action != action:
            return None
        chosen_id = self._choice.label_id
        return next((label for label in labels if label.id == chosen_id), None)

    def drop_choice(self) -> None:
        """Forget the label of the question or the answer, if the cursor has left it."""
        if self._state.index != self._whole_labelled_at:
            self._whole_labelled_at = -1
        if self._choice is None:
            return
        if self._chosen_label(self._choice.action, self._labels_under_cursor()) is None:
            self._forget_choice()
            self._hints.clear()

    def _take_choice_key(self, key: str, action: str | None) -> bool:
        """Handle a key while the last line asks for the label of an action.

        Enter chooses the shown label. Other keys repeat the question, so that letters meant for a
        note do nothing else. Return False if the key's own action must run.
        """
        assert self._choice is not None
        chosen_action = self._choice.action
        # The key for the next pane goes to the next label during a question.
        if action in (f"annotate.{chosen_action}", "annotate.pane", "everywhere.back"):
            return False
        if key == "enter":
            self.act_on_label(chosen_action)
        else:
            self._show_choice_again(key)
        return True

    def _show_choice_again(self, refused_key: str) -> None:
        """Repeat the question which label to use after a key that is no answer to it.

        If the label is gone, withdraw the question.
        """
        assert self._choice is not None
        action = self._choice.action
        labels = self._labels_under_cursor()
        chosen_label = self._chosen_label(action, labels)
        if chosen_label is None:
            self._forget_choice()
            self._hints.clear()
        else:
            self._show_choice(action, labels, labels.index(chosen_label))
            self._hints.prompt(f"{key_text(refused_key)} does nothing here · {self._hints.message}")

    def next_choice(self) -> bool:
        """Ask about the next label under the cursor.

        Return False without a question or a second label.
        """
        labels = self._labels_under_cursor()
        if self._choice is None or len(labels) < 2:
            return False
        action = self._choice.action
        chosen_label = self._chosen_label(action, labels)
        position = 0 if chosen_label is None else (labels.index(chosen_label) + 1) % len(labels)
        self._show_choice(action, labels, position)
        return True

    def _show_choice(self, action: LabelAction, labels: tuple[Label, ...], position: int) -> None:
        """Ask in the last line whether to act on the label at a position."""
        label = labels[position]
        self._choice = _LabelChoice(action, label.id)
        self._is_choosing = True
        mode = self._state.taxonomy.mode(label.mode)
        self._hints.prompt(
            f"{CHOICE_QUESTIONS[action]} {mode.code} {one_line(mode.name, 20)} on "
            f"{self._state.target_text(label.target)}? ({position + 1} of {len(labels)}) "
            f"· {self._key_of(f'annotate.{action}')} = this one "
            f"· {self._key_of('annotate.pane')} = next label "
            f"· {self._key_of('everywhere.back')} cancels"
        )

    async def _perform_action(self, action: LabelAction, label: Label) -> None:
        """Act on a label. ``edit`` and ``note`` only begin."""
        if action == "remove":
            await self._commands.run_command(lambda s: s.remove_label(label.id))
        elif action == "edit":
            self._begin_edit(label)
        elif action == "severity":
            severity = next_severity(label.severity)
            await self._set_next_value(
                action,
                lambda s: s.edit_label(label.id, severity=severity),
                next_severity(severity) or "none",
            )
        elif action == "confidence":
            confidence = next_confidence(label.confidence)
            await self._set_next_value(
                action,
                lambda s: s.edit_label(label.id, confidence=confidence),
                confidence_words(next_confidence(confidence)),
            )
        else:
            mode = self._state.taxonomy.mode(label.mode)
            target_text = self._state.target_text(label.target)
            key_of = self._key_of
            no_note_text = (
                f"{mode.code} on {target_text} has no note · {key_of('annotate.note')} writes one "
                f"· {key_of('annotate.remove')} removes the label"
            )
            self._ask_note(
                f"Note on {mode.code} {mode.name}, {target_text}",
                label.note,
                lambda s, text: s.edit_label(label.id, note=text),
                self._span_note_text(label),
                "" if label.note else no_note_text,
            )

    def _span_note_text(self, label: Label) -> str:
        """Return a text about the note on the span of a label; empty if the span has none."""
        session = self._state.session
        note = None if session is None else session.span_notes.get(label.target.first or "")
        if note is None:
            return ""
        key = self._key_of("annotate.my_labels")
        return f"The span also has a note ({key} lists it): {note}"

    async def _set_next_value(
        self, action: LabelAction, command: Callable[[Session], Change], later_value: str
    ) -> None:
        """Change a label, and show the value that the same key sets next."""
        change = await self._commands.run_command(command)
        if change is not None:
            self._hints.say(
                f"{one_line(change.message)} · {self._key_of(f'annotate.{action}')} again: "
                f"{later_value} · {self._key_of('everywhere.undo')} undoes · "
                f"{self._key_of('annotate.my_labels')} lists it"
            )


def _newest_first(session: Session, labels: tuple[Label, ...]) -> tuple[Label, ...]:
    position_by_id = {label_id: position for position, label_id in enumerate(session.labels_by_id)}
    return tuple(sorted(labels, key=lambda label: -position_by_id.get(label.id, -1)))


def _toggle_label(session: Session, mode: Mode, target: Target) -> Change:
    return session.toggle_label(mode.slug, target, suggestions_on_screen=bool(session.suggestions))
