"""What keys do to a label that is there: note, severity, confidence, removal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeVar

from mast_tui.ui.annotate.base import AnnotateBase

if TYPE_CHECKING:
    from mast_tui.labels import Label
    from mast_tui.session import Session

Chooses = Literal["note", "severity", "confidence", "remove"]

CONFIDENCES: Final[tuple[float | None, ...]] = (None, 1.0, 0.75, 0.5, 0.25)

Value = TypeVar("Value")


class LabelKeys(AnnotateBase):
    """The label under the cursor; where there are several, one is chosen first."""

    _choice: tuple[Chooses, str] | None = None
    _choosing = False
    """Whether the last line asks whether the choice is meant; severity and confidence keep it."""

    def action_note(self) -> None:
        """Write a note on the label under the cursor, or on the span."""
        self._choose_here("note")

    def action_severity(self) -> None:
        """Fatal, benign, none: for the label under the cursor."""
        self._choose_here("severity")

    def action_confidence(self) -> None:
        """How sure one is of the label under the cursor."""
        self._choose_here("confidence")

    def action_remove(self) -> None:
        """Remove the label under the cursor."""
        self._choose_here("remove")

    def _choose_here(self, what: Chooses) -> None:
        if self.has_spans:
            # The cursor may have gone on before there is a workspace to look for labels in.
            index, whole = self.index, self.selection.whole
            self.with_session(
                lambda session: self._choose(session, what, index, whole), here=what == "note"
            )

    def _choose(self, session: Session, what: Chooses, index: int, whole: bool) -> None:
        labels = self.labels_on(session, index, whole=whole)
        if not self.on_stage and len(labels) != 1:
            return
        if not labels and what == "note" and not whole:
            self._note_span(session, index)
            return
        if not labels:
            place = "the whole trace" if whole else "this span"
            self.hints.say(f"No label of yours on {place}", error=True)
            return
        if len(labels) == 1:
            self._apply(what, labels[0])
            return
        chosen = self._chosen(what, labels)
        if chosen is not None:
            self._choosing = False
            if what not in ("severity", "confidence"):
                self._choice = None
            self._apply(what, chosen)
            return
        self._show_choice(what, labels, 0)

    def _note_span(self, session: Session, index: int) -> None:
        from mast_tui.ui.dialogs.note import NoteScreen

        assert self.trace is not None
        key = self.trace.span(index).key

        def written(text: str | None) -> None:
            if text is not None:
                self.change(lambda s: s.note_span(key, text))

        self.app.push_screen(
            NoteScreen(f"Note on #{index + 1}", session.span_notes.get(key, "")), written
        )

    def _chosen(self, what: Chooses, labels: tuple[Label, ...]) -> Label | None:
        """The label that the last line has offered, where it stands under the cursor still."""
        if self._choice is None or self._choice[0] != what:
            return None
        return next((label for label in labels if label.id == self._choice[1]), None)

    def drop_choice(self) -> None:
        """Forget the choice where the cursor has left the label that was offered."""
        if self._choice is not None and self._chosen(self._choice[0], self.labels_here()) is None:
            self._choice, self._choosing = None, False
            self.hints.clear()

    def take_choice_key(self, key: str, action: str | None) -> bool:
        """Take a key where the last line asks which label: Enter takes the one that is offered.

        What is typed for a note must do nothing before there is a line to type it on.
        """
        assert self._choice is not None
        what = self._choice[0]
        if action in (f"annotate.{what}", "annotate.pane", "everywhere.back"):
            return False
        if key == "enter":
            self._choose_here(what)
        else:
            self._show_choice_again()
        return True

    def _show_choice_again(self) -> None:
        assert self._choice is not None
        labels = self.labels_here()
        chosen = self._chosen(self._choice[0], labels)
        if chosen is None:  # it was taken off elsewhere meanwhile
            self._choice, self._choosing = None, False
            self.hints.clear()
        else:
            self._show_choice(self._choice[0], labels, labels.index(chosen))

    def next_choice(self) -> bool:
        """Go to the next of several labels under the cursor; False where none is being chosen."""
        labels = self.labels_here()
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
        mode = self.taxonomy.mode(label.mode)
        key = {"note": "m", "severity": "f", "confidence": "c", "remove": "⌫"}[what]
        self.hints.prompt(
            f"{what}: {mode.code} {mode.name} on {self.where_words(label.target)} "
            f"({place + 1} of {len(labels)}) · {key} takes it · Tab the next · Esc leaves"
        )

    def _apply(self, what: Chooses, label: Label) -> None:
        if what == "remove":
            self.changed(lambda s: s.remove_label(label.id))
        elif what == "severity":
            from mast_tui.labels import Severity

            severity = _following((None, *Severity), label.severity)
            self.changed(lambda s: s.edit_label(label.id, severity=severity))
        elif what == "confidence":
            confidence = _following(CONFIDENCES, label.confidence)
            self.changed(lambda s: s.edit_label(label.id, confidence=confidence))
        else:
            from mast_tui.ui.dialogs.note import NoteScreen

            mode = self.taxonomy.mode(label.mode)

            def written(text: str | None) -> None:
                if text is not None:
                    self.change(lambda s: s.edit_label(label.id, note=text))

            title = f"Note on {mode.code} {mode.name}, {self.where_words(label.target)}"
            self.app.push_screen(NoteScreen(title, label.note), written)


def _following(values: tuple[Value, ...], value: Value) -> Value:
    place = values.index(value) if value in values else 0
    return values[(place + 1) % len(values)]
