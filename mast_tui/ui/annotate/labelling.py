"""Labelling: two digits name a mode, and further keys act on the label that is there."""

from __future__ import annotations

from collections.abc import Callable
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
"""Actions of keys that are known while a mode is being typed: what it is for may still be found."""

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
"""The same while another place for a suggestion is marked: what finds the place, and the mode."""


Chooses = Literal["note", "severity", "confidence", "remove", "edit"]

CHOICE_QUESTIONS: Final[dict[Chooses, str]] = {
    "note": "Note for",
    "severity": "Severity of",
    "confidence": "Confidence in",
    "remove": "Remove",
    "edit": "Edit",
}
"""The question which of several labels is meant, by what is to be done with it."""


@dataclass(frozen=True, slots=True)
class DigitEntry:
    """The state of typing a mode: nothing yet, a purpose, or a purpose and a first digit.

    The purpose is what is said of the mode: that it is present means a label.
    """

    purpose: VerdictValue = VerdictValue.PRESENT
    first: str | None = None
    begun: bool = False

    def candidates(self, taxonomy: Taxonomy) -> tuple[tuple[str, Mode], ...]:
        """The digits that may come next, each with the mode it would name."""
        if self.first is None:
            return ()
        found = ((digit, self.named(digit, taxonomy)) for digit in "0123456789")
        return tuple((digit, mode) for digit, mode in found if mode is not None)

    def named(self, second: str, taxonomy: Taxonomy) -> Mode | None:
        """The mode that one more digit names; nobody calls 'none of these' absent or unsure."""
        mode = taxonomy.by_digits(self.first or "", second)
        if mode is None or self.purpose is VerdictValue.PRESENT:
            return mode
        return mode if mode in taxonomy.modes else None

    def prompt(self, taxonomy: Taxonomy, cells: int) -> str:
        """What has been typed and what may follow, for a footer of ``cells``.

        Names give way so that all that may follow is shown.
        """
        verb = "label" if self.purpose is VerdictValue.PRESENT else f"{self.purpose}:"
        if self.first is None:
            return f"{verb} two digits, such as {taxonomy.keys_of(taxonomy.modes[0])}"
        head = f"{verb} {self.first}▁"
        options = self.candidates(taxonomy)
        longest = max(len(mode.name) for _, mode in options)
        room = cells - len(head) - 4 * len(options)
        while longest > 3 and sum(min(longest, len(mode.name)) for _, mode in options) > room:
            longest -= 1
        return "  ".join(
            [head, *(f"{digit} {one_line(mode.name, longest)}" for digit, mode in options)]
        )


@dataclass(frozen=True, slots=True)
class Typed:
    """What came of one more digit: the new state, and the mode where one is complete."""

    entry: DigitEntry
    mode: Mode | None = None
    refused: str | None = None


def type_digit(entry: DigitEntry, digit: str, taxonomy: Taxonomy) -> Typed:
    """Take one more digit; a pair that names no mode is refused and forgotten."""
    if entry.first is None:
        begun = DigitEntry(entry.purpose, digit, True)
        if not begun.candidates(taxonomy):
            return Typed(DigitEntry(), refused=f"no mode begins with {digit}")
        return Typed(begun)
    mode = entry.named(digit, taxonomy)
    if mode is None:
        return Typed(DigitEntry(), refused=f"there is no mode {entry.first}{digit}")
    return Typed(DigitEntry(entry.purpose), mode)


class Labelling:
    """What keys do to labels; every command is on disk before the screen shows it."""

    def __init__(self, screen: AnnotateScreen, marking: Marking, suggestions: Suggestions) -> None:
        """Begin with nothing typed.

        Args:
            screen: Whose part it is.
            marking: What the next label points at.
            suggestions: One of which may be labelled in another way.
        """
        self.entry = DigitEntry()
        """What has been typed of a mode."""
        self._screen = screen
        self._state = screen.state
        self._hints = screen.hints
        self._modes = screen.modes
        self._commands = screen.commands
        self._marking = marking
        self._suggestions = suggestions
        self._edited: str | None = None
        """The label of one's own for which another mode or place is marked."""
        self._choice: tuple[Chooses, str] | None = None
        self._choosing = False
        """Whether the last line asks whether the choice is meant; severity and confidence keep
        it."""

    def begin(self) -> None:
        """Begin with another trace, or anew."""
        self.entry = DigitEntry()
        self._edited = None
        self._marking.then = LABELS
        self._forget_choice()

    def _forget_choice(self) -> None:
        self._choice, self._choosing = None, False

    # What the last line asks

    @property
    def asks(self) -> bool:
        """Whether a label, the rest of a mode, or another place for a label is asked for."""
        return self._choosing or self.entry.begun or self._editing

    @property
    def _editing(self) -> bool:
        """Whether another mode or place is marked, for a label of one's own or a suggestion."""
        return self._edited is not None or self._suggestions.editing is not None

    def take_key(self, key: str, action: str | None) -> bool:
        """Take a key while something is asked; what is not known there does nothing."""
        if self._choosing:
            return self._take_choice_key(key, action)
        if self.entry.begun:
            if key == "backspace":
                self._untype()
                return True
            if action in TYPING:
                return False
            self._show_typing()
            return True
        if key == "enter":
            mode = self._modes.mode if self._modes.has_focus else self._mode_kept()
            if mode is not None:
                self.label_with(mode)
            return True
        if action in EDITING:
            return False
        if not self._hints.message:
            self.show_editing()
        return True

    def _mode_kept(self) -> Mode | None:
        """The mode of what is being edited."""
        session = self._state.session
        if session is None:
            return None
        label = session.labels_by_id.get(self._edited or "")
        suggestion = session.pending_by_id.get(self._suggestions.editing or "")
        slug = label.mode if label else suggestion.mode if suggestion else None
        return next((mode for mode in self._state.taxonomy.all_modes if mode.slug == slug), None)

    def show_editing(self) -> None:
        """Say what is waited for while another place is marked."""
        mode = self._mode_kept()
        if mode is not None:
            key_of = self._screen.context.key_of
            self._marking.then = f"Enter keeps {mode.code}, two digits change it"
            self._hints.prompt(
                f"edit {mode.code}: move · {self._marking.then} · {key_of('annotate.range')} range "
                f"· {key_of('annotate.quote')} quote · {key_of('annotate.whole')} whole "
                f"· {key_of('everywhere.back')} leaves"
            )

    # Typing a mode

    def digit(self, digit: str) -> None:
        """Take one digit of a mode's code."""
        if not self._state.has_spans:
            return
        typed = type_digit(self.entry, digit, self._state.taxonomy)
        purpose, self.entry = self.entry.purpose, typed.entry
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
        """Have the next two digits say that a mode is absent, or that one is unsure."""
        if not self._state.has_spans:
            return
        self.entry = DigitEntry(VerdictValue(value), None, True)
        self._show_typing()

    def _show_typing(self) -> None:
        self._hints.prompt(self.entry.prompt(self._state.taxonomy, self._screen.size.width - 2))
        self._modes.show_typed(
            frozenset(mode.slug for _, mode in self.entry.candidates(self._state.taxonomy))
        )

    def _untype(self) -> None:
        """Take back the last of what has been typed of a mode."""
        purpose, first = self.entry.purpose, self.entry.first
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
        """Label what is under the cursor, or take exactly that label off."""
        target = self._state.target_here()
        plain = self._state.selection.is_plain and target.first == target.last
        editing = self._suggestions.take_edit()
        edited, self._edited = self._edited, None
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
        """Label what is none of the modes, and ask at once what it is; again, it is taken off."""
        await self._label(mode, target)
        own = (x for x in session.labels if x.mode == mode.slug and x.target == target)
        label = next(own, None)
        if label is not None and not label.note:
            await self._apply("note", label)

    async def _label(self, mode: Mode, target: Target) -> None:
        await self._commands.change(lambda session: _toggled(session, mode, target))

    def _toggle_or_ask(self, session: Session, mode: Mode, target: Target) -> Change | None:
        """Label a span; inside a range of the same mode ask whether that is meant."""
        here = [] if target.first is None else session.labels_at(target.first)
        own = [label for label in here if label.mode == mode.slug]
        around = [label for label in own if label.target.first != label.target.last]
        if not around or any(label.target == target for label in own):
            return _toggled(session, mode, target)
        label, place = around[-1], self._state.where_words(target)

        def answered(answer: str | None) -> None:
            if answer == "x":
                self._commands.queue_change(lambda s: s.remove_label(label.id))
            elif answer == "a":
                self._commands.queue_change(lambda s: _toggled(s, mode, target))

        question = Ask(
            f"{mode.code} {mode.name}",
            f"{place} lies in your {mode.code} on {self._state.where_words(label.target)}.",
            (("x", "take that off"), ("a", f"add one on {place} too"), ("n", "leave it")),
        )
        self._screen.app.push_screen(question, answered)
        return None

    def _done_typing(self, mode: Mode) -> None:
        """The mode is typed and what was marked is labelled: nothing is waited for any longer."""
        self._stop_typing()
        self._marking.then = LABELS
        self._marking.mark(PLAIN)
        self._modes.go_to(mode.slug)

    async def _judge(self, session: Session, mode: Mode, value: VerdictValue) -> None:
        """Say that a mode is absent or unsure; asks first where labels stand."""
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
        """Choose a mode by typing a part of its name."""
        if not self._state.has_spans:
            return
        from mast_tui.ui.dialogs.finder import ModeFinder  # start-up: nobody needs it for a label

        taxonomy = self._state.taxonomy

        def found(slug: str | None) -> None:
            if slug is not None:
                self.label_with(taxonomy.mode(slug))

        self._screen.app.push_screen(ModeFinder(taxonomy), found)

    # Taking back

    @property
    def waits(self) -> bool:
        """Whether something waits for another key, so that the last line must go on saying so."""
        return (
            self.entry.begun
            or self._choice is not None
            or not self._state.selection.is_plain
            or self._editing
        )

    def forget(self) -> bool:
        """Leave whatever waits for another key; False where nothing did."""
        waiting = self.waits
        self.begin()
        self._suggestions.take_edit()
        self._stop_typing()
        self._marking.mark(PLAIN)
        return waiting

    def step(self, *, back: bool) -> None:
        """Take back the last change on this trace, or do again what was taken back."""
        self._commands.when_session_opens(lambda _: self._step(back=back))

    async def _step(self, *, back: bool) -> None:
        self._hints.clear()
        change = await self._commands.change(lambda s: s.undo() if back else s.redo())
        if change is None:
            if not self._hints.message:
                self._hints.say("Nothing to take back" if back else "Nothing to do again")
            return
        if change.key is not None and self._state.trace is not None:
            index = self._state.trace.index_of(change.key)
            if index is not None:
                self._screen.timeline.go_to(index)
        if change.mode is not None:
            self._modes.go_to(change.mode)

    # The label under the cursor; where there are several, one is chosen first

    @property
    def newest_here(self) -> Label | None:
        """The label under the cursor that was made last."""
        return next(iter(self._offered()), None)

    def _begin_edit(self, label: Label) -> None:
        self._screen.set_focus(self._screen.timeline)
        self._marking.mark(PLAIN)
        self._marking.take_up(label.target)
        self._edited = label.id
        self.show_editing()

    def act(self, what: Chooses) -> None:
        """Do what a key does with the label under the cursor, or in the list of them.

        Args:
            what: Which key: a note goes to the span where there is no label, and all that an
                edited label says beside mode and place stays.
        """
        picked = self._screen.picked
        if picked is not None:
            self._commands.when_session_opens(lambda session: self._act_on(session, what, picked))
        elif self._state.has_spans:
            index = self._state.index
            whole = self._state.selection.whole
            self._commands.when_session_opens(
                lambda session: self._choose(session, what, index, whole)
            )

    async def _act_on(self, session: Session, what: Chooses, entry: Entry) -> None:
        """Do with something in the list of what was said what a key does with a label."""
        if isinstance(entry, Label):
            label = session.labels_by_id.get(entry.id)
            if label is not None:
                await self._apply(what, label)
        elif isinstance(entry, NotedSpan):
            index = session.trace.index_of(entry.key)
            if what == "remove":
                await self._commands.change(lambda s: s.note_span(entry.key, ""))
            elif what == "note" and index is not None:
                self._note_span(session, index)
            else:
                self._hints.say(f"A note on a span has no {what}", error=True)
        elif what == "remove":
            await self._commands.change(lambda s: s.set_verdict(entry.mode, None))
        else:
            self._hints.say(f"A mode that is {entry.value} has no {what}", error=True)

    async def _choose(self, session: Session, what: Chooses, index: int, whole: bool) -> None:
        labels = self._state.labels_on(session, index, whole=whole)
        if not labels and what == "note" and not whole:
            self._note_span(session, index)
            return
        if not labels:
            place = "the whole trace" if whole else "this span"
            self._hints.say(f"No label of yours on {place}", error=True)
            return
        if len(labels) == 1:
            await self._apply(what, labels[0])
            return
        labels = _newest_first(session, labels)
        chosen = self._chosen(what, labels)
        if chosen is not None:
            self._choosing = False
            if what not in ("severity", "confidence"):
                self._choice = None
            await self._apply(what, chosen)
            return
        self._show_choice(what, labels, 0)

    def _note_span(self, session: Session, index: int) -> None:
        assert self._state.trace is not None
        key = self._state.trace.span(index).key
        self._write_note(
            f"Note on #{index + 1}",
            session.span_notes.get(key, ""),
            lambda text: self._commands.queue_change(lambda s: s.note_span(key, text)),
        )

    def _write_note(self, title: str, note: str, kept: Callable[[str], None]) -> None:
        def written(text: str | None) -> None:
            if text is not None:
                kept(text)

        self._screen.app.push_screen(NoteScreen(title, note, in_editor=True), written)

    def _offered(self) -> tuple[Label, ...]:
        """One's own labels under the cursor, in the order in which they are offered."""
        session = self._state.session
        return () if session is None else _newest_first(session, self._state.labels_here())

    def _chosen(self, what: Chooses, labels: tuple[Label, ...]) -> Label | None:
        """The label that the last line has offered, where it stands under the cursor still."""
        if self._choice is None or self._choice[0] != what:
            return None
        return next((label for label in labels if label.id == self._choice[1]), None)

    def drop_choice(self) -> None:
        """Forget the choice where the cursor has left the label that was offered."""
        if (
            self._choice is not None
            and self._chosen(self._choice[0], self._state.labels_here()) is None
        ):
            self._forget_choice()
            self._hints.clear()

    def _take_choice_key(self, key: str, action: str | None) -> bool:
        """Take a key where the last line asks which label: Enter takes the one that is offered.

        What is typed for a note must do nothing before there is a line to type it on.
        """
        assert self._choice is not None
        what = self._choice[0]
        if action in (f"annotate.{what}", "annotate.pane", "everywhere.back"):
            return False
        if key == "enter":
            self.act(what)
        else:
            self._show_choice_again()
        return True

    def _show_choice_again(self) -> None:
        assert self._choice is not None
        labels = self._offered()
        chosen = self._chosen(self._choice[0], labels)
        if chosen is None:  # it was taken off elsewhere meanwhile
            self._forget_choice()
            self._hints.clear()
        else:
            self._show_choice(self._choice[0], labels, labels.index(chosen))

    def next_choice(self) -> bool:
        """Go to the next of several labels under the cursor; False where none is being chosen."""
        labels = self._offered()
        if self._choice is None or len(labels) < 2:
            return False
        what = self._choice[0]
        chosen = self._chosen(what, labels)
        place = 0 if chosen is None else (labels.index(chosen) + 1) % len(labels)
        self._show_choice(what, labels, place)
        return True

    def _show_choice(self, what: Chooses, labels: tuple[Label, ...], place: int) -> None:
        label = labels[place]
        self._choice, self._choosing = (what, label.id), True
        mode = self._state.taxonomy.mode(label.mode)
        key_of = self._screen.context.key_of
        self._hints.prompt(
            f"{CHOICE_QUESTIONS[what]} {mode.code} {one_line(mode.name, 20)} on "
            f"{self._state.where_words(label.target)}? ({place + 1} of {len(labels)}) "
            f"· {key_of(f'annotate.{what}')} = this one · {key_of('annotate.pane')} = next label "
            f"· {key_of('everywhere.back')} leaves"
        )

    async def _apply(self, what: Chooses, label: Label) -> None:
        if what == "remove":
            await self._commands.change(lambda s: s.remove_label(label.id))
        elif what == "edit":
            self._begin_edit(label)
        elif what == "severity":
            severity = next_severity(label.severity)
            await self._commands.change(lambda s: s.edit_label(label.id, severity=severity))
        elif what == "confidence":
            confidence = next_confidence(label.confidence)
            await self._commands.change(lambda s: s.edit_label(label.id, confidence=confidence))
        else:
            mode = self._state.taxonomy.mode(label.mode)
            self._write_note(
                f"Note on {mode.code} {mode.name}, {self._state.where_words(label.target)}",
                label.note,
                lambda text: self._commands.queue_change(
                    lambda s: s.edit_label(label.id, note=text)
                ),
            )


def _newest_first(session: Session, labels: tuple[Label, ...]) -> tuple[Label, ...]:
    """The labels with that first which was made last: it is the one that is meant most often."""
    made = {label_id: place for place, label_id in enumerate(session.labels_by_id)}
    return tuple(sorted(labels, key=lambda label: -made.get(label.id, -1)))


def _toggled(session: Session, mode: Mode, target: Target) -> Change:
    return session.toggle_label(mode.slug, target, suggestions_on_screen=bool(session.suggestions))
