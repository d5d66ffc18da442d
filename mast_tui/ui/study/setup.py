"""The form by which a study is set up, or changed; by keys alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

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
from mast_tui.labels import checked_person
from mast_tui.safe_text import one_line
from mast_tui.study import OpenModes, Study
from mast_tui.ui.context import context_of
from mast_tui.ui.styles import DIALOGS, STUDY
from mast_tui.ui.widgets.text_line import TextLine
from mast_tui.ui.wording import plain_lines, plain_title

Texts = Mapping[str, str]
"""What stands in the fields, by their names."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: a line to write on, or one of some choices."""

    name: str
    title: str
    help: str
    choices: tuple[str, ...] = ()


FIELDS: Final = (
    Field("annotators", "annotators", "Who labels: names with commas between them."),
    Field(
        "adjudicators",
        "adjudicators",
        "Who decides where annotators differ. May stay empty: then anybody may.",
    ),
    Field("per_trace", "per trace", "How many annotators label each trace of the overlap."),
    Field(
        "overlap",
        "overlap",
        "The share of traces that several label; each other trace has one annotator. Agreement "
        "is counted on the overlap.",
    ),
    Field(
        "sight",
        "sight",
        "Blind: judges' suggestions and outcomes are hidden until one finishes. Else they are on "
        "screen.",
        ("blind", "suggestions shown"),
    ),
    Field(
        "withheld",
        "without suggestions",
        "Where suggestions are shown: the share of everybody's traces without them until finished, "
        "drawn at random, so that their pull on people can be measured.",
    ),
    Field(
        "retests",
        "repeat",
        "The share of everybody's finished traces that repeat: they are labelled again, for "
        "agreement with oneself.",
    ),
    Field(
        "open_modes",
        "open modes",
        "What finishing with unread spans does with modes without a verdict. Left open they count "
        "in no figure.",
        ("ask", "leave", "absent"),
    ),
    Field(
        "names",
        "names",
        "Whether adjudication shows whose side is whose before a key asks for it.",
        ("hidden", "shown"),
    ),
    Field("seed", "seed", "Any whole number; it decides who labels what, and in which order."),
)


def texts_of(study: Study | None, people: Sequence[str]) -> dict[str, str]:
    """What the fields begin with: the study as it is, or what suits most for these people."""
    if study is None:
        return {
            "annotators": ", ".join(people),
            "adjudicators": "",
            "per_trace": "2",
            "overlap": "100 %",
            "sight": "blind",
            "withheld": "0 %",
            "retests": "0 %",
            "open_modes": "ask",
            "names": "hidden",
            "seed": "0",
        }
    return {
        "annotators": ", ".join(study.annotators),
        "adjudicators": ", ".join(study.adjudicators),
        "per_trace": str(study.per_trace),
        "overlap": share_text(study.overlap),
        "withheld": share_text(study.withheld),
        "retests": share_text(study.retests),
        "sight": "blind" if study.blind else "suggestions shown",
        "open_modes": study.open_modes.value,
        "names": "hidden" if study.names_hidden else "shown",
        "seed": str(study.seed),
    }


def study_of(
    texts: Texts, *, taxonomy: str, before: Study | None, traces: Sequence[str] = ()
) -> Study:
    """The study that the fields describe; what has no field stays as it was ``before``.

    ``traces`` are those of a new study. Raises ``MastError`` in words that name the field.
    """
    annotators = _names(texts["annotators"], "annotators")
    if not annotators:
        raise MastError("annotators: a study needs at least one")
    batches = (tuple(traces),) if traces else ()
    start = before or Study(taxonomy, annotators, batches=batches, per_trace=1)
    return replace(
        start,
        annotators=annotators,
        adjudicators=_names(texts["adjudicators"], "adjudicators"),
        per_trace=_whole(texts["per_trace"], "per trace"),
        overlap=_share(texts["overlap"], "overlap", start.overlap),
        withheld=_share(texts["withheld"], "without suggestions", start.withheld),
        retests=_share(texts["retests"], "repeat", start.retests),
        blind=texts["sight"] == "blind",
        open_modes=OpenModes(texts["open_modes"]),
        names_hidden=texts["names"] == "hidden",
        seed=_whole(texts["seed"], "seed"),
    )


def share_text(share: float) -> str:
    """A share as a percentage: ``25 %``."""
    return f"{share * 100:.10g} %"


def _share(text: str, title: str, before: float) -> float:
    if text.strip() == share_text(before):
        return before
    found = re.fullmatch(r"\s*([0-9]{1,12}(?:[.,][0-9]{1,12})?)\s*(%?)\s*", text)
    if found is None:
        raise MastError(f"{title}: “{one_line(text, 20)}” is no share such as 25 %")
    value = float(found[1].replace(",", "."))
    if not found[2] and 0 < value <= 1:
        raise MastError(f"{title}: write {one_line(text, 12)} as a percentage, such as 25 %")
    if value > 100:
        raise MastError(f"{title}: {one_line(text, 20)} is more than all")
    return value / 100


def _whole(text: str, title: str) -> int:
    if not re.fullmatch(r"\s*-?[0-9]{1,15}\s*", text):
        raise MastError(f"{title}: “{one_line(text, 20)}” is no whole number")
    return int(text)


def _names(text: str, title: str) -> tuple[str, ...]:
    try:
        return tuple(checked_person(name) for name in text.split(",") if name.strip())
    except MastError as error:
        raise MastError(f"{title}: {error}") from error


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
    dialog_keys: ClassVar = (
        *(("Enter", "sets it up"), ("↑ ↓", "move"), ("space", "another choice")),
        ("Esc", "leaves"),
    )
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
