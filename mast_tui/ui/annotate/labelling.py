"""Labelling: two digits name a mode, and other keys change the label under the cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from mast_tui.labels import Label, Target, VerdictValue, next_confidence, next_severity
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import OPEN_SLUG, Mode, Taxonomy
from mast_tui.ui.actions.tables import Where, moves
from mast_tui.ui.annotate.marking import LABELS, Marking
from mast_tui.ui.annotate.state import PLAIN, Entry, NotedSpan
from mast_tui.ui.annotate.suggestions import Suggestions
from mast_tui.ui.dialogs.dialog import Ask
from mast_tui.ui.dialogs.note import NoteScreen
from mast_tui.ui.wording import counted
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.session import Change, Session
    from mast_tui.ui.annotate.screen import AnnotateScreen

TYPING: Final = frozenset(
    {f"annotate.digit_{d}" for d in range(10)}
    | {move.id for move in moves(Where.ANNOTATE)}
    | {"everywhere.back"}
)
"""The actions that stay available while a mode is typed: moving and leaving."""

EDITING: Final = TYPING | {
    "everywhere.palette",
    *(
        f"annotate.{name}"
        for name in (
            *("find_mode", "range", "quote", "whole", "word_right", "word_left"),
            *("extend_down", "extend_up", "other_end", "go_back", "go_forward"),
            *("search", "search_next", "search_previous", "search_regex", "filter"),
            *("next_error", "previous_error", "fold", "compare", "copy", "pane", "drawer"),
            *("text_down", "text_up", "raw", "wrap"),
        )
    ),
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
"""The question which of several labels to use, by action."""


@dataclass(frozen=True, slots=True)
class DigitEntry:
    """The mode that is being typed: nothing yet, a purpose, or a purpose and a first digit.

    The purpose is the verdict to give to the mode; ``present`` makes a label.
    """

    purpose: VerdictValue = VerdictValue.PRESENT
    first: str | None = None
    begun: bool = False

    def candidates(self, taxonomy: Taxonomy) -> tuple[tuple[str, Mode], ...]:
        """Return the digits that may come next, each with its mode."""
        if self.first is None:
            return ()
        modes = ((digit, self.mode_with(digit, taxonomy)) for digit in "0123456789")
        return tuple((digit, mode) for digit, mode in modes if mode is not None)

    def mode_with(self, second: str, taxonomy: Taxonomy) -> Mode | None:
        """Return the mode that a second digit completes, or None.

        'None of these' can only be present.

        Args:
            second: The digit.
            taxonomy: The modes.
        """
        mode = taxonomy.by_digits(self.first or "", second)
        if mode is None or self.purpose is VerdictValue.PRESENT:
            return mode
        return mode if mode in taxonomy.modes else None

    def prompt(self, taxonomy: Taxonomy, cells: int) -> str:
        """Return the typed part and the digits that may follow, for the last line.

        Names are shortened until all digits fit; then names that begin with the same word are shown
        without that word.

        Args:
            taxonomy: The modes.
            cells: The width of the line.
        """
        verb = "label" if self.purpose is VerdictValue.PRESENT else f"{self.purpose}:"
        if self.first is None:
            return f"{verb} two digits, such as {taxonomy.keys_of(taxonomy.modes[0])}"
        head = f"{verb} {self.first}▁"
        options = self.candidates(taxonomy)
        names = [mode.name for _, mode in options]
        room = cells - len(head) - 4 * len(options)
        if sum(map(len, names)) > room:
            names = _without_shared_words(names)
        longest = max(map(len, names))
        while longest > 3 and sum(min(longest, len(name)) for name in names) > room:
            longest -= 1
        digits = (digit for digit, _ in options)
        shown_options = (
            f"{digit} {one_line(name, longest)}" for digit, name in zip(digits, names, strict=True)
        )
        return "  ".join([head, *shown_options])


def _without_shared_words(names: Sequence[str]) -> list[str]:
    """Remove the first word of names that begin with the same word, if more words follow.

    Cut to a few characters, such names would be the same: *Disobey task specification* and *Disobey
    role specification*.
    """
    first_words = Counter(name.partition(" ")[0] for name in names)
    shortened_names = []
    for name in names:
        first_word, _, others = name.partition(" ")
        shortened_names.append(others if others and first_words[first_word] > 1 else name)
    return shortened_names


@dataclass(frozen=True, slots=True)
class TypedDigit:
    """The result of one more digit: the new state, and the mode if it is complete."""

    entry: DigitEntry
    mode: Mode | None = None
    refused: str | None = None


def type_digit(entry: DigitEntry, digit: str, taxonomy: Taxonomy) -> TypedDigit:
    """Add one digit; a pair that names no mode is refused and discarded.

    Args:
        entry: The state so far.
        digit: The digit.
        taxonomy: The modes.
    """
    if entry.first is None:
        begun = DigitEntry(entry.purpose, digit, True)
        if not begun.candidates(taxonomy):
            return TypedDigit(DigitEntry(), refused=f"no mode begins with {digit}")
        return TypedDigit(begun)
    mode = entry.mode_with(digit, taxonomy)
    if mode is None:
        return TypedDigit(DigitEntry(), refused=f"there is no mode {entry.first}{digit}")
    return TypedDigit(DigitEntry(entry.purpose), mode)


class Labelling:
    """The keys that make and change labels. A change is on disk before the screen shows it."""

    def __init__(self, screen: AnnotateScreen, marking: Marking, suggestions: Suggestions) -> None:
        """Begin with nothing typed.

        Args:
            screen: The screen that owns this part.
            marking: The target of the next label.
            suggestions: The suggestions, one of which may be edited.
        """
        self.entry = DigitEntry()
        """The mode that is being typed."""
        self._screen = screen
        self._state = screen.state
        self._hints = screen.hints
        self._modes = screen.modes
        self._commands = screen.commands
        self._marking = marking
        self._suggestions = suggestions
        self._edited: str | None = None
        """The id of the label that is being edited."""
        self._choice: tuple[LabelAction, str] | None = None
        self._choosing = False
        """Whether the last line asks which label to use.

        Severity and confidence keep the choice, so that their keys can be pressed again."""

    def begin(self) -> None:
        """Discard whatever is being typed or edited."""
        self.entry = DigitEntry()
        self._edited = None
        self._marking.how_to_end = LABELS
        self._forget_choice()

    def _forget_choice(self) -> None:
        self._choice = None
        self._choosing = False

    # Questions in the last line

    @property
    def is_asking(self) -> bool:
        """True if a label, the rest of a mode, or a new target is asked for."""
        return self._choosing or self.entry.begun or self._editing

    @property
    def _editing(self) -> bool:
        """True if a label or suggestion is being edited."""
        return self._edited is not None or self._suggestions.editing is not None

    def take_key(self, key: str, action: str | None) -> bool:
        """Handle a key while something is asked.

        Args:
            key: The key.
            action: The id of its action, or None.

        Returns:
            False if the key's own action must run. A key without a meaning here returns True.
        """
        if self._choosing:
            return self._take_choice_key(key, action)
        if self.entry.begun:
            if key == "backspace":
                self._remove_digit()
                return True
            if action in TYPING:
                return False
            self._show_typing()
            return True
        if key == "enter":
            mode = self._modes.mode if self._modes.has_focus else self._edited_mode()
            if mode is not None:
                self.label_with(mode)
            return True
        if action in EDITING:
            return False
        if not self._hints.message:
            self.show_editing()
        return True

    def _edited_mode(self) -> Mode | None:
        """Return the mode of the label or suggestion that is being edited, or None."""
        session = self._state.session
        if session is None:
            return None
        label = session.labels_by_id.get(self._edited or "")
        suggestion = session.pending_by_id.get(self._suggestions.editing or "")
        edited = label or suggestion
        slug = edited.mode if edited else None
        return next((mode for mode in self._state.taxonomy.all_modes if mode.slug == slug), None)

    def show_editing(self) -> None:
        """Show which keys continue the editing of a label or suggestion."""
        mode = self._edited_mode()
        if mode is not None:
            key_of = self._screen.context.key_of
            self._marking.how_to_end = f"Enter keeps {mode.code}, two digits change it"
            self._hints.prompt(
                f"edit {mode.code}: move · {self._marking.how_to_end} "
                f"· {key_of('annotate.range')} range "
                f"· {key_of('annotate.quote')} quote · {key_of('annotate.whole')} whole "
                f"· {key_of('everywhere.back')} leaves"
            )

    # Typing a mode

    def digit(self, digit: str) -> None:
        """Add one digit of the code of a mode."""
        if not self._state.has_spans:
            return
        typed = type_digit(self.entry, digit, self._state.taxonomy)
        purpose = self.entry.purpose
        self.entry = typed.entry
        if typed.refused:
            self._stop_typing()
            self._hints.say(f"Nothing labelled: {typed.refused}", error=True)
            return
        if typed.mode is None:
            self._show_typing()
        elif purpose is VerdictValue.PRESENT:
            self.label_with(typed.mode)
        else:
            self._stop_typing()
            mode = typed.mode
            self._commands.when_session_opens(lambda session: self._judge(session, mode, purpose))

    def verdict(self, value: str) -> None:
        """Let the next two digits name a mode that is absent or unsure."""
        if not self._state.has_spans:
            return
        self.entry = DigitEntry(VerdictValue(value), None, True)
        self._show_typing()

    def _show_typing(self) -> None:
        self._hints.prompt(self.entry.prompt(self._state.taxonomy, self._screen.size.width - 2))
        self._modes.show_typed(
            frozenset(mode.slug for _, mode in self.entry.candidates(self._state.taxonomy))
        )

    def _remove_digit(self) -> None:
        """Remove the last digit, or the purpose."""
        purpose = self.entry.purpose
        first = self.entry.first
        if purpose is not VerdictValue.PRESENT and first is not None:
            self.verdict(purpose.value)
            return
        self._stop_typing()
        if self._editing:
            self.show_editing()

    def _stop_typing(self) -> None:
        self.entry = DigitEntry()
        self._modes.show_typed(frozenset())
        self._hints.clear()

    def label_with(self, mode: Mode) -> None:
        """Label the target with a mode, or remove the label if exactly that exists."""
        target = self._state.current_target()
        plain = self._state.selection.is_plain and target.first == target.last
        editing = self._suggestions.take_edit()
        edited = self._edited
        self._edited = None
        self._done_typing(mode)
        commands = self._commands
        if edited is not None:
            commands.queue_change(lambda s: s.edit_label(edited, mode=mode.slug, target=target))
        elif editing is not None:
            commands.when_session_opens(
                lambda session: self._suggestions.finish_edit(session, editing, mode, target)
            )
        elif mode.slug == OPEN_SLUG:
            commands.when_session_opens(lambda session: self._open_code(session, mode, target))
        elif self._state.session is None:
            commands.when_session_opens(lambda _: self._label(mode, target))
        elif plain:
            commands.queue_change(
                lambda session: self._toggle_or_ask(session, mode, target), HeldKeys.MOST
            )
        else:
            commands.queue_change(lambda session: _toggled(session, mode, target), HeldKeys.MOST)

    async def _open_code(self, session: Session, mode: Mode, target: Target) -> None:
        """Add an open code and ask for its note, or remove it if it exists."""
        await self._label(mode, target)
        own_labels = (x for x in session.labels if x.mode == mode.slug and x.target == target)
        label = next(own_labels, None)
        if label is not None and not label.note:
            await self._perform("note", label)

    async def _label(self, mode: Mode, target: Target) -> None:
        await self._commands.change(lambda session: _toggled(session, mode, target))

    def _toggle_or_ask(self, session: Session, mode: Mode, target: Target) -> Change | None:
        """Label a span; ask first if it is inside a range with the same mode."""
        on_span = [] if target.first is None else session.labels_at(target.first)
        own_labels = [label for label in on_span if label.mode == mode.slug]
        around = [label for label in own_labels if label.target.first != label.target.last]
        if not around or any(label.target == target for label in own_labels):
            return _toggled(session, mode, target)
        label = around[-1]
        location = self._state.target_text(target)

        def answered(answer: str | None) -> None:
            if answer == "x":
                self._commands.queue_change(lambda s: s.remove_label(label.id))
            elif answer == "a":
                self._commands.queue_change(lambda s: _toggled(s, mode, target))

        question = Ask(
            f"{mode.code} {mode.name}",
            f"{location} is inside your {mode.code} on {self._state.target_text(label.target)}.",
            (("x", "remove that label"), ("a", f"add one on {location} too"), ("n", "leave it")),
        )
        self._screen.app.push_screen(question, answered)
        return None

    def _done_typing(self, mode: Mode) -> None:
        """Reset typing and marking after a mode is complete."""
        self._stop_typing()
        self._marking.how_to_end = LABELS
        self._marking.mark(PLAIN)
        self._modes.go_to(mode.slug)

    async def _judge(self, session: Session, mode: Mode, value: VerdictValue) -> None:
        """Set a mode absent or unsure; ask first if it has labels."""
        labels = [label for label in session.labels if label.mode == mode.slug]
        if not labels:
            await self._commands.change(lambda s: s.set_verdict(mode.slug, value))
            return

        def answered(answer: str | None) -> None:
            if answer == "y":
                self._commands.queue_change(
                    lambda s: s.set_verdict(mode.slug, value, remove_labels=True)
                )

        question = Ask(
            f"{mode.code} {mode.name}",
            f"You have {counted(len(labels), 'label')} of this mode here. "
            f"Set it {value} and remove them?",
            (("y", "remove and set"), ("n", "keep")),
        )
        self._screen.app.push_screen(question, answered)

    def find_mode(self) -> None:
        """Choose a mode by a part of its name."""
        if not self._state.has_spans:
            return
        from mast_tui.ui.dialogs.finder import ModeFinder  # start-up: not needed for a label

        taxonomy = self._state.taxonomy

        def label_with_slug(slug: str | None) -> None:
            if slug is not None:
                self.label_with(taxonomy.mode(slug))

        self._screen.app.push_screen(ModeFinder(taxonomy), label_with_slug)

    # Leaving and undoing

    @property
    def is_waiting(self) -> bool:
        """True if another key is expected, so that the last line must keep its message."""
        return (
            self.entry.begun
            or self._choice is not None
            or not self._state.selection.is_plain
            or self._editing
        )

    def forget(self) -> bool:
        """Cancel whatever expects another key; return False if nothing does."""
        waiting = self.is_waiting
        self.begin()
        self._suggestions.take_edit()
        self._stop_typing()
        self._marking.mark(PLAIN)
        return waiting

    def undo_or_redo(self, *, back: bool) -> None:
        """Undo the last change on this trace (``back``), or redo the one undone last."""
        self._commands.when_session_opens(lambda _: self._undo_or_redo(back=back))

    async def _undo_or_redo(self, *, back: bool) -> None:
        """Undo or redo a change, and go to its span and mode."""
        self._hints.clear()
        change = await self._commands.change(lambda s: s.undo() if back else s.redo())
        if change is None:
            if not self._hints.message:
                self._hints.say("Nothing to undo" if back else "Nothing to redo")
            return
        if change.key is not None and self._state.trace is not None:
            index = self._state.trace.index_of(change.key)
            if index is not None:
                self._screen.timeline.go_to(index)
        if change.mode is not None:
            self._modes.go_to(change.mode)

    # The label under the cursor; if there are several, the user chooses one first

    @property
    def newest_label(self) -> Label | None:
        """The newest label under the cursor, or None."""
        return next(iter(self._labels_under_cursor()), None)

    def _begin_edit(self, label: Label) -> None:
        self._screen.set_focus(self._screen.timeline)
        self._marking.mark(PLAIN)
        self._marking.mark_target(label.target)
        self._edited = label.id
        self.show_editing()

    def act_on_label(self, action: LabelAction) -> None:
        """Act on the label under the cursor, or on the entry picked in the list of labels.

        Args:
            action: The action. A note goes to the span if it has no label; editing keeps all fields
                but mode and target.
        """
        picked = self._screen.picked
        if picked is not None:
            self._commands.when_session_opens(
                lambda session: self._act_on_entry(session, action, picked)
            )
        elif self._state.has_spans:
            index = self._state.index
            whole = self._state.selection.whole
            self._commands.when_session_opens(
                lambda session: self._act_at_cursor(session, action, index, whole)
            )

    async def _act_on_entry(self, session: Session, action: LabelAction, entry: Entry) -> None:
        """Act on an entry of the list of labels, verdicts and notes."""
        if isinstance(entry, Label):
            label = session.labels_by_id.get(entry.id)
            if label is not None:
                await self._perform(action, label)
        elif isinstance(entry, NotedSpan):
            index = session.trace.index_of(entry.key)
            if action == "remove":
                await self._commands.change(lambda s: s.note_span(entry.key, ""))
            elif action == "note" and index is not None:
                self._note_span(session, index)
            else:
                self._hints.say(f"A note on a span has no {action}", error=True)
        elif action == "remove":
            await self._commands.change(lambda s: s.set_verdict(entry.mode, None))
        else:
            self._hints.say(f"A mode that is {entry.value} has no {action}", error=True)

    async def _act_at_cursor(
        self, session: Session, action: LabelAction, index: int, whole: bool
    ) -> None:
        """Act on the only label at the cursor; if there are several, ask which."""
        labels = self._state.labels_on(session, index, whole=whole)
        if not labels and action == "note" and not whole:
            self._note_span(session, index)
            return
        if not labels:
            location = "the whole trace" if whole else "this span"
            self._hints.say(f"No label of yours on {location}", error=True)
            return
        if len(labels) == 1:
            await self._perform(action, labels[0])
            return
        labels = _newest_first(session, labels)
        chosen = self._choice_among(action, labels)
        if chosen is not None:
            self._choosing = False
            if action not in ("severity", "confidence"):
                self._choice = None
            await self._perform(action, chosen)
            return
        self._show_choice(action, labels, 0)

    def _note_span(self, session: Session, index: int) -> None:
        """Open the dialog for the note on a span."""
        assert self._state.trace is not None
        key = self._state.trace.span(index).key
        self._write_note(
            f"Note on #{index + 1}",
            session.span_notes.get(key, ""),
            lambda text: self._commands.queue_change(lambda s: s.note_span(key, text)),
        )

    def _write_note(self, title: str, note: str, save: Callable[[str], None]) -> None:
        def written(text: str | None) -> None:
            if text is not None:
                save(text)

        self._screen.app.push_screen(NoteScreen(title, note, in_editor=True), written)

    def _labels_under_cursor(self) -> tuple[Label, ...]:
        """Return the annotator's labels under the cursor in the order of the question."""
        session = self._state.session
        return () if session is None else _newest_first(session, self._state.labels_at_cursor())

    def _choice_among(self, action: LabelAction, labels: tuple[Label, ...]) -> Label | None:
        """Return the label that the last line asks about, if it is among these."""
        if self._choice is None or self._choice[0] != action:
            return None
        return next((label for label in labels if label.id == self._choice[1]), None)

    def drop_choice(self) -> None:
        """Withdraw the question when the cursor has left its label."""
        if (
            self._choice is not None
            and self._choice_among(self._choice[0], self._state.labels_at_cursor()) is None
        ):
            self._forget_choice()
            self._hints.clear()

    def _take_choice_key(self, key: str, action: str | None) -> bool:
        """Handle a key while the last line asks which label; Enter takes the one it shows.

        Letters that are meant for a note do nothing until there is a line to type on.
        """
        assert self._choice is not None
        label_action = self._choice[0]
        if action in (f"annotate.{label_action}", "annotate.pane", "everywhere.back"):
            return False
        if key == "enter":
            self.act_on_label(label_action)
        else:
            self._show_choice_again()
        return True

    def _show_choice_again(self) -> None:
        """Repeat the question which label to use, if its label still exists."""
        assert self._choice is not None
        labels = self._labels_under_cursor()
        chosen = self._choice_among(self._choice[0], labels)
        if chosen is None:  # it was removed meanwhile
            self._forget_choice()
            self._hints.clear()
        else:
            self._show_choice(self._choice[0], labels, labels.index(chosen))

    def next_choice(self) -> bool:
        """Ask about the next label under the cursor; return False if there is no question."""
        labels = self._labels_under_cursor()
        if self._choice is None or len(labels) < 2:
            return False
        action = self._choice[0]
        chosen = self._choice_among(action, labels)
        position = 0 if chosen is None else (labels.index(chosen) + 1) % len(labels)
        self._show_choice(action, labels, position)
        return True

    def _show_choice(self, action: LabelAction, labels: tuple[Label, ...], position: int) -> None:
        """Ask in the last line whether to use the label at a position."""
        label = labels[position]
        self._choice = (action, label.id)
        self._choosing = True
        mode = self._state.taxonomy.mode(label.mode)
        key_of = self._screen.context.key_of
        self._hints.prompt(
            f"{CHOICE_QUESTIONS[action]} {mode.code} {one_line(mode.name, 20)} on "
            f"{self._state.target_text(label.target)}? ({position + 1} of {len(labels)}) "
            f"· {key_of(f'annotate.{action}')} = this one · {key_of('annotate.pane')} = next label "
            f"· {key_of('everywhere.back')} leaves"
        )

    async def _perform(self, action: LabelAction, label: Label) -> None:
        """Carry out an action on a label."""
        if action == "remove":
            await self._commands.change(lambda s: s.remove_label(label.id))
        elif action == "edit":
            self._begin_edit(label)
        elif action == "severity":
            severity = next_severity(label.severity)
            await self._commands.change(lambda s: s.edit_label(label.id, severity=severity))
        elif action == "confidence":
            confidence = next_confidence(label.confidence)
            await self._commands.change(lambda s: s.edit_label(label.id, confidence=confidence))
        else:
            mode = self._state.taxonomy.mode(label.mode)
            self._write_note(
                f"Note on {mode.code} {mode.name}, {self._state.target_text(label.target)}",
                label.note,
                lambda text: self._commands.queue_change(
                    lambda s: s.edit_label(label.id, note=text)
                ),
            )


def _newest_first(session: Session, labels: tuple[Label, ...]) -> tuple[Label, ...]:
    """Return labels from the newest to the oldest."""
    position_of = {label_id: position for position, label_id in enumerate(session.labels_by_id)}
    return tuple(sorted(labels, key=lambda label: -position_of.get(label.id, -1)))


def _toggled(session: Session, mode: Mode, target: Target) -> Change:
    return session.toggle_label(mode.slug, target, suggestions_on_screen=bool(session.suggestions))
