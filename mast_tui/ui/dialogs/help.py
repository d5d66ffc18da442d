"""All keys of a screen, from the registry of actions, and what its signs mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from types import MappingProxyType
from typing import ClassVar, Final

from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.strip import Strip
from textual.widgets import Input

from mast_tui.ui.actions.registry import Keymap, Where, actions_for, key_of, keys_of, shown
from mast_tui.ui.dialogs.dialog import LinesDialog
from mast_tui.ui.trace_view.background_index import CellContent
from mast_tui.ui.trace_view.gutter import BETWEEN, FIRST, GLYPHS, LAST, MarkKind
from mast_tui.ui.trace_view.overview import CURSOR, ON_SCREEN
from mast_tui.ui.trace_view.overview import GLYPHS as STRIP
from mast_tui.ui.widgets.text_line import TextLine
from mast_tui.ui.widgets.virtual_lines import VirtualLines

RUNS_A_JUDGE: Final = (Where.LIBRARY, Where.ANNOTATE, Where.RUNS)
"""Screens on which a key runs a judge."""

KEY_CELLS: Final = 12
"""How wide the keys stand; more of them push the words of their row to the right."""

INDENT: Final = 2


Entry = tuple[str, str]
"""A key, or a sign, with what it does or means."""


@dataclass(frozen=True, slots=True)
class HelpSection:
    """What stands under one heading."""

    title: str
    entries: Sequence[Entry]


_OWN, _WAITS, _OTHER, _NOTE = (
    GLYPHS[kind] for kind in (MarkKind.OWN, MarkKind.SUGGESTION, MarkKind.OTHER, MarkKind.NOTE)
)

LEGEND: Final[Mapping[Where, Sequence[HelpSection]]] = MappingProxyType(
    {
        Where.ANNOTATE: (
            HelpSection(
                "Signs in the timeline",
                (
                    ("bold number", "A span that you have not read yet; dim ones are read"),
                    ("▌  ┃", "The cursor; the range that is being marked"),
                    ("▕ ▌   ▏", "The run from left to right, and when in it the step was"),
                    (f"1.3 {_OWN}", "Your label on this span: its mode"),
                    (f"1.3 {_WAITS}", "A suggestion of a judge that waits for an answer"),
                    (f"1.3 {_OTHER}", "A label of somebody else, or one that the file holds"),
                    (_NOTE, "Your note on the span"),
                    (
                        f"{FIRST}  {BETWEEN}  {LAST}",
                        "A range of spans with such a mark begins, goes on, ends",
                    ),
                    (f"{_OWN}2  +2", "Two such marks on one span; two more than are shown"),
                    ("repeated 3×", "So often these steps are; or 3 calls at once. They fold"),
                    ("⋮", "Steps that are folded or filtered out"),
                ),
            ),
            HelpSection(
                "Signs in the strip beside it, which is the whole run",
                (
                    (f"{CURSOR}  {ON_SCREEN}", "The cursor; what the timeline shows"),
                    (STRIP[CellContent.MATCH], "Something that was searched for stands there"),
                    (f"{_OWN}  {_WAITS}", "A label; a suggestion"),
                    (STRIP[CellContent.ERROR], "A step failed"),
                    (STRIP[CellContent.USER], "Mostly the user acted there"),
                    (STRIP[CellContent.AGENT], "Mostly agents"),
                    (STRIP[CellContent.TOOL], "Mostly tools"),
                    (STRIP[CellContent.OTHER], "Anything else"),
                ),
            ),
            HelpSection(
                "Signs elsewhere",
                (
                    (f"{_OWN}2 {_WAITS}1", "Your labels of a mode, and what waits of it"),
                    ("✓", "You have finished the trace"),
                    ("≈  ≠", "The judge quotes in other words; in words that say otherwise"),
                    ("⋯  ↷", "It quotes in parts; it named another span than the quote's"),
                    ("✗  !", "Its quote is nowhere; it says this decided how the run ended"),
                ),
            ),
        ),
        Where.LIBRARY: (
            HelpSection(
                "Signs",
                (
                    ("○  ◐  ●", "You have not begun the trace; begun it; finished it"),
                    ("●2  ◌3", "Your labels; suggestions of judges that wait for an answer"),
                    ("≡", "The same run is listed in another format, which its lines name"),
                    ("✗", "A file that could not be read; its line says why"),
                ),
            ),
        ),
    }
)
"""What the signs on a screen mean."""


def sections_of(where: Where, keymap: Keymap) -> Iterator[HelpSection]:
    """What there is to know of a screen: its keys, those of everywhere, and its signs.

    Args:
        where: Which screen it is.
        keymap: Keys that the person has set.
    """
    for place in dict.fromkeys((where, Where.EVERYWHERE)):
        grouped: dict[str, list[Entry]] = {}
        for action in actions_for(place):
            keys = "  ".join(shown(key) for key in keys_of(action, keymap))
            if action.name.startswith(("digit_", "side_")):
                if not action.name.endswith("_1"):
                    continue
                keys = "0…9  0…9"
                if action.name.startswith("side_"):
                    last = key_of("adjudicate.side_9", keymap)
                    keys = f"{key_of(action.id, keymap)}…{last}"
            title = action.section or place.value.capitalize().replace("_", " ")
            grouped.setdefault(title, []).append((keys, action.help))
        yield from (HelpSection(title, entries) for title, entries in grouped.items())
    yield from LEGEND.get(where, ())
    if where in RUNS_A_JUDGE:
        paragraphs = model_judge_help(key_of(f"{where}.judge", keymap))
        yield HelpSection("A model as judge", [("", words) for words in paragraphs])


def model_judge_help(key: str) -> tuple[str, ...]:
    """Return how ``config.toml`` has a model asked, as paragraphs; ``key`` runs a judge."""
    return (
        f"{key} runs the rules judge, which needs no network. It asks a language model too, of any "
        "server that speaks the OpenAI chat API, once config.toml in the configuration folder "
        "names one:",
        "",
        "  [judge]",
        '  model = "gpt-oss-120b"',
        '  base_url = "http://localhost:8000/v1"',
        '  key_variable = "OPENAI_API_KEY"',
        "",
        "Without base_url it is OPENAI_BASE_URL, or the vendor's own. The key stands in the "
        f"environment variable, never in the file. Nothing is sent before {key} has said what goes "
        f"where and what it may take; {key} again, while it works, asks whether to cancel.",
    )


def matching(sections: Iterable[HelpSection], wanted: str) -> Iterator[HelpSection]:
    """Only what holds the words that are looked for; a heading that does keeps all under it."""
    wanted = wanted.strip().casefold()
    for section in sections:
        entries = section.entries
        if wanted not in section.title.casefold():
            entries = [one for one in entries if wanted in " ".join(one).casefold()]
        if entries:
            yield HelpSection(section.title, entries)


class HelpLines(VirtualLines):
    """Sections as lines; what does not fit on one goes on under its own beginning."""

    css_prefix = "help-lines"
    css_parts = ("title", "key", "words")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sections: Sequence[HelpSection] = ()
        self._lines: list[tuple[str, str]] = []

    @property
    def row_count(self) -> int:
        """All lines."""
        return len(self._lines)

    def show(self, sections: Iterable[HelpSection]) -> None:
        """Show other sections, from the top."""
        self._sections = tuple(sections)
        self.scroll_to(y=0, animate=False)
        self.rows_changed()

    def rows_changed(self) -> None:
        """Wrap for the width there is."""
        self._lines = list(self._wrapped(self.lines_area.width))
        super().rows_changed()

    def _wrapped(self, width: int) -> Iterator[tuple[str, str]]:
        for number, section in enumerate(self._sections):
            if number:
                yield "", ""
            yield section.title, ""
            for told, words in section.entries:
                key = f"{'':{INDENT}}{told:<{KEY_CELLS}} " if told else " " * INDENT
                lines = wrap(words, max(20, width - len(key)), drop_whitespace=True)
                for line in lines or [""]:
                    yield key, line
                    key = " " * len(key)

    def render_row(self, row: int, width: int) -> Strip:
        """A heading, or a key with what it does."""
        base, (key, words) = self.rich_style, self._lines[row]
        parts = [(key, "key"), (words, "words")] if words else [(key, "title")]
        strip = Strip([Segment(text, base + self._part(name)) for text, name in parts])
        return strip.adjust_cell_length(width, base)

    def move_by(self, delta: int) -> None:
        """Scroll: there is nothing to choose, so no line is the cursor's."""
        self.scroll_to(y=self.scroll_y + delta, animate=False)

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Scroll to a line."""
        self.scroll_to(y=row, animate=False)


class HelpScreen(LinesDialog):
    """Any of the keys that open or leave it closes it; ``/`` narrows it to what is typed."""

    AUTO_FOCUS = "#keys"
    dialog_keys: ClassVar = (
        *(("/", "searches"), ("j k", "scroll"), ("d b", "pages"), ("g G", "ends")),
        ("Esc", "closes"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1,enter", "close", show=False),
        Binding("slash", "search", show=False),
    ]

    def __init__(self, where: Where, keymap: Keymap) -> None:
        super().__init__()
        self._sections = tuple(sections_of(where, keymap))
        self.lines: HelpLines = HelpLines(id="keys")

    def compose(self) -> ComposeResult:
        """The keys and signs, and the line to search them on."""
        with Vertical(classes="dialog tall") as box:
            box.border_title = "Keys and signs"
            box.border_subtitle = "/ searches · Esc closes"
            yield self.lines
            yield TextLine(placeholder="a part of a key, a sign or what it does")

    def on_mount(self) -> None:
        """Show all of it."""
        self.query_one(TextLine).display = False
        self.lines.show(self._sections)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        found = [*matching(self._sections, event.value)]
        nothing = HelpSection(f"Nothing here has “{event.value}”", ())
        self.lines.show(found or [nothing])

    @on(Input.Submitted)
    def _kept(self, event: Input.Submitted) -> None:
        event.stop()
        event.input.display = bool(event.value)
        self.lines.focus()

    def action_search(self) -> None:
        """Type what to look for."""
        line = self.query_one(TextLine)
        line.display = True
        line.focus()

    def action_leave(self) -> None:
        """Show all again where something was looked for; else close it."""
        line = self.query_one(TextLine)
        if not line.display:
            self.dismiss(None)
            return
        line.value = ""
        line.display = False
        self.lines.focus()
