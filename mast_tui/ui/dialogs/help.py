"""The help of a screen: its keys, from the registry of actions, and the meaning of its signs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from types import MappingProxyType
from typing import ClassVar, Final

from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widgets import Input

from mast_tui.ui.actions.registry import (
    KeyAction,
    Keymap,
    Where,
    actions_for,
    key_of,
    key_text,
    keys_of,
)
from mast_tui.ui.dialogs.dialog import LinesDialog
from mast_tui.ui.trace_view.background_index import CellContent
from mast_tui.ui.trace_view.gutter import BETWEEN, FIRST, GLYPHS, LAST, MarkKind
from mast_tui.ui.trace_view.overview import CURSOR, ON_SCREEN
from mast_tui.ui.trace_view.overview import GLYPHS as STRIP
from mast_tui.ui.widgets.bars import TextLine
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import ABOVE, BELOW, SURE

RUNS_A_JUDGE: Final = (Where.LIBRARY, Where.ANNOTATE, Where.RUNS)
"""The screens with a key that runs a judge."""

KEY_CELLS: Final = 12
"""The cells of the keys. Longer keys push the text of their row to the right."""

INDENT: Final = 2


Entry = tuple[str, str]
"""A key with its effect, or a sign with its meaning."""


@dataclass(frozen=True, slots=True)
class HelpSection:
    """The entries under one heading."""

    title: str
    entries: Sequence[Entry]


_MINE: Final = GLYPHS[MarkKind.OWN]
_WAITS: Final = GLYPHS[MarkKind.SUGGESTION]
_OTHER: Final = GLYPHS[MarkKind.OTHER]
_NOTE: Final = GLYPHS[MarkKind.NOTE]

_BARS: Final = HelpSection(
    "Bars",
    (
        (
            f"{SURE}{BELOW}{ABOVE}",
            f"The share ends after {BELOW}; {BELOW} and {ABOVE}: 95 % interval",
        ),
    ),
)

LEGEND: Final[Mapping[Where, Sequence[HelpSection]]] = MappingProxyType(
    {
        Where.ANNOTATE: (
            HelpSection(
                "Signs in the timeline",
                (
                    ("bold number", "A span that you have not read yet; dim ones are read"),
                    ("▌  ┃", "The cursor; the range that is being marked"),
                    ("▕ ▌   ▏", "When the step was; the run is from left to right"),
                    (f"1.3 {_MINE}", "Your label on this span: its mode"),
                    (f"1.3 {_WAITS}", "A judge's suggestion that waits for an answer"),
                    (f"1.3 {_OTHER}", "A label of another annotator, or one in the file"),
                    (_NOTE, "Your note on the span, or on a label that begins there"),
                    (
                        f"{FIRST}  {BETWEEN}  {LAST}",
                        "The first, a middle and the last span of a marked range",
                    ),
                    (
                        f"{_MINE}2  +2",
                        "Two of your labels on one span; two more marks that do not fit",
                    ),
                    ("3× in a row", "The steps that begin here occur 3 times in a row"),
                    ("… at once", "'3 calls at once': 3 equal calls in one step"),
                    ("⋮", "Steps that are folded or filtered out"),
                ),
            ),
            HelpSection(
                "Signs in the strip beside it, which is the whole run",
                (
                    (
                        f"{CURSOR}  {ON_SCREEN}",
                        "The cursor; the part that the timeline shows now",
                    ),
                    (STRIP[CellContent.MATCH], "A match of the search"),
                    (f"{_MINE}  {_WAITS}", "A label; a suggestion"),
                    (STRIP[CellContent.ERROR], "An error"),
                    (STRIP[CellContent.USER], "Mostly the user acted there"),
                    (STRIP[CellContent.AGENT], "Mostly agents"),
                    (STRIP[CellContent.TOOL], "Mostly tools"),
                    (STRIP[CellContent.OTHER], "Anything else"),
                ),
            ),
            HelpSection(
                "Signs elsewhere",
                (
                    (f"{_MINE}2 {_WAITS}1", "Your labels of a mode, and its waiting suggestions"),
                    ("✓", "You have finished the trace"),
                    ("≈", "The judge's quote says the same as the trace in other words"),
                    ("≠", "Its quote has words that change the meaning"),
                    ("⋯", "Its quote leaves out text in the middle"),
                    ("↷", "Its quote is in another span than the one that it named"),
                    ("✗", "Its quote is not in the trace"),
                    ("!", "The judge says that this decided how the run ended"),
                ),
            ),
        ),
        Where.ADJUDICATE: (
            HelpSection(
                "Signs",
                (
                    ("≠", "Open: the sides give different verdicts"),
                    ("≈", "Open: all say present, but they marked different places"),
                    ("✓", "Decided"),
                    (
                        "!",
                        "Decided, but an answer is new or has changed: confirm, or decide again",
                    ),
                    ("=", "All sides agree, so it is in the gold without a decision"),
                    ("·", "Only one side has a verdict; it is in the gold, as single"),
                    (
                        "○",
                        "Labels hidden: you have not finished the trace; its pane says more",
                    ),
                ),
            ),
        ),
        Where.AGREEMENT: (_BARS,),
        Where.SIGNATURES: (_BARS,),
        Where.LIBRARY: (
            HelpSection(
                "Signs",
                (
                    ("○  ◐  ✓", "You have not begun the trace; begun it; finished it"),
                    ("↻", "A retest: label it again; your first labels are kept, but hidden"),
                    ("●2  ◌3", "Your labels; judges' suggestions that wait for an answer"),
                    ("≡", "The same run is listed in another format"),
                    ("✗", "A file that could not be read; its line says why"),
                    ("skipped", "Files without a trace; mast-tui inspect PATH names them"),
                ),
            ),
        ),
    }
)
"""The meaning of the signs on each screen."""


def adjudication_help(keymap: Keymap) -> tuple[str, ...]:
    """Return paragraphs on the purpose of the adjudicate screen."""
    key = partial(key_of, keymap=keymap)
    return (
        "Each row is a conflict: a mode on which people who finished the same trace differ. One "
        "key decides it and goes to the next; the title says how many are left.",
        "What all agree on goes to the gold without a decision. Overlapping places are joined.",
        f"{key('adjudicate.pane')} goes to the sides, the answers of the annotators. There, "
        f"{key('adjudicate.nobody')} drops the place under the cursor. Sides after the ninth have "
        f"no digit: {key('adjudicate.enter')} takes the one under the cursor.",
        "You may also decide between yourself and others; the datasheet of the gold reports this.",
        "If names are hidden, letters stand for them, in a random order on each trace; "
        f"{key('adjudicate.names')} shows the names.",
        f"When nothing is left, {key('everywhere.export')} exports the final labels (gold) and "
        f"{key('everywhere.agreement')} shows agreement.",
    )


def sections_of(where: Where, keymap: Keymap) -> Iterator[HelpSection]:
    """Yield the help of a screen: its keys, the keys of all screens, and its signs.

    Args:
        where: The screen.
        keymap: The keys that the user has set.
    """
    if where is Where.ADJUDICATE:
        yield HelpSection(
            "What you decide here", [("", paragraph) for paragraph in adjudication_help(keymap)]
        )
    for screen in dict.fromkeys((where, Where.EVERYWHERE)):
        entries_by_title: dict[str, list[Entry]] = {}
        for action in actions_for(screen):
            keys = _keys_text(action, keymap)
            if keys is not None:
                title = action.section or screen.value.capitalize().replace("_", " ")
                entries_by_title.setdefault(title, []).append((keys, action.help))
        yield from (HelpSection(title, entries) for title, entries in entries_by_title.items())
    yield from LEGEND.get(where, ())
    if where in RUNS_A_JUDGE:
        paragraph = model_judge_help(key_of(f"{where}.judge", keymap))
        yield HelpSection("A model as judge", [("", paragraph)])


def _keys_text(action: KeyAction, keymap: Keymap) -> str | None:
    """Return the keys of an action as text.

    All digits, or all sides, are covered by the text of the first one. Return None for the others.
    """
    if not action.name.startswith(("digit_", "side_")):
        return "  ".join(key_text(key) for key in keys_of(action, keymap))
    if not action.name.endswith("_1"):
        return None
    if action.name.startswith("digit_"):
        return "0…9  0…9"
    return f"{key_of(action.id, keymap)}…{key_of('adjudicate.side_9', keymap)}"


def model_judge_help(key: str) -> str:
    """Return a paragraph on how to set up a model as judge."""
    return (
        f"{key} runs the rules judge, which needs no network, or the language model that [judge] "
        "in config.toml names (model, base_url, key_variable; mast-tui config lists them all). "
        f"Before anything is sent, {key} shows what goes where and what it may cost."
    )


def matching(sections: Iterable[HelpSection], needle: str) -> Iterator[HelpSection]:
    """Yield the matching entries of sections.

    A section with a matching title keeps all of its entries.

    Args:
        sections: The sections.
        needle: The text to find, in any case.
    """
    needle = needle.strip().casefold()
    for section in sections:
        entries = section.entries
        if needle not in section.title.casefold():
            entries = [entry for entry in entries if needle in " ".join(entry).casefold()]
        if entries:
            yield HelpSection(section.title, entries)


class HelpLines(VirtualLines):
    """Sections as lines. A long text continues below its beginning."""

    css_prefix = "help-lines"
    css_parts = ("title", "key", "words")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sections: Sequence[HelpSection] = ()
        self._help_lines: list[tuple[str, str]] = []

    @property
    def row_count(self) -> int:
        """The number of lines."""
        return len(self._help_lines)

    def show(self, sections: Iterable[HelpSection]) -> None:
        """Replace the sections, and scroll to the top."""
        self._sections = tuple(sections)
        self.scroll_to(y=0, animate=False)
        self.rows_changed()

    def rows_changed(self) -> None:
        """Wrap the texts to the width. Before the first layout, there is no width and no line."""
        width = self.lines_area.width
        self._help_lines = list(self._wrapped_lines(width)) if width > 0 else []
        super().rows_changed()

    def _wrapped_lines(self, width: int) -> Iterator[tuple[str, str]]:
        for index, section in enumerate(self._sections):
            if index:
                yield "", ""
            yield section.title, ""
            for keys, text in section.entries:
                key = f"{'':{INDENT}}{keys:<{KEY_CELLS}} " if keys else " " * INDENT
                lines = wrap(text, max(20, width - len(key)), drop_whitespace=True)
                for line in lines or [""]:
                    yield key, line
                    key = " " * len(key)

    def render_row(self, row: int, width: int) -> Strip:
        """Render a heading, or a key with its effect.

        Args:
            row: The position of the row.
            width: The cells of the row.
        """
        base = self.rich_style
        key, text = self._help_lines[row]
        parts = [(key, "key"), (text, "words")] if text else [(key, "title")]
        strip = Strip([Segment(part, base + self._part(name)) for part, name in parts])
        return strip.adjust_cell_length(width, base)

    def move_by(self, delta: int) -> None:
        """Scroll. No line has a cursor, because there is nothing to choose."""
        self.scroll_to(y=self.scroll_y + delta, animate=False)

    def move_to(self, row: int, *, in_upper_third: bool = False) -> None:
        """Scroll to a line.

        Args:
            row: The position of the line.
            in_upper_third: Not used.
        """
        self.scroll_to(y=row, animate=False)


_BORDER_KEYS: Final = "/ searches · Esc closes"


class HelpScreen(LinesDialog):
    """The help of a screen.

    The keys that open or leave it close it. ``/`` searches it.
    """

    AUTO_FOCUS = "#keys"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1,enter", "close", show=False),
        Binding("slash", "search", show=False),
    ]

    def __init__(self, where: Where, keymap: Keymap) -> None:
        super().__init__("Keys and signs", kind="tall", subtitle=_BORDER_KEYS)
        self._sections = tuple(sections_of(where, keymap))
        self.lines: HelpLines = HelpLines(id="keys")
        self._line = TextLine(placeholder="a part of a key, a sign or what it does")
        self._line.display = False

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys in the last line."""
        keys = (("/", "searches"), ("j k", "scroll"), ("d b", "pages"), ("g G", "top, bottom"))
        return (*keys, ("Esc", "ends the search" if self._line.display else "closes"))

    def compose_rows(self) -> ComposeResult:
        """Yield the keys and signs, and the line for a search."""
        yield self.lines
        yield self._line

    def on_mount(self) -> None:
        """Show all sections."""
        self.lines.show(self._sections)

    @on(Input.Changed)
    def _needle_changed(self, event: Input.Changed) -> None:
        sections = [*matching(self._sections, event.value)]
        self.lines.show(sections or [HelpSection(f"No match for “{event.value}”", ())])

    @on(Input.Submitted)
    def _needle_submitted(self, event: Input.Submitted) -> None:
        self._show_line(shown=bool(event.value))
        self.lines.focus()

    def action_search(self) -> None:
        """Open the line for a search."""
        self._show_line(shown=True)
        self._line.focus()

    def _show_line(self, *, shown: bool) -> None:
        """Show or hide the line for a search, with the effect of Escape."""
        self._line.display = shown
        self.box.border_subtitle = "Esc ends the search" if shown else _BORDER_KEYS
        self.app.screen_change_signal.publish(self)  # so that the last line shows it too

    def action_leave(self) -> None:
        """Leave the search, or close the help."""
        if not self._line.display:
            self.dismiss(None)
            return
        self._line.value = ""
        self._show_line(shown=False)
        self.lines.focus()
