"""Choosing one of many by typing a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.fuzzy import Matcher
from textual.strip import Strip
from textual.theme import BUILTIN_THEMES
from textual.widgets import Input

from mast_tui.configuration import configuration_path, with_theme
from mast_tui.errors import MastError
from mast_tui.output_files import write_output
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.actions.registry import Keymap, Where, actions_for, keys_of, shown
from mast_tui.ui.context import context_of
from mast_tui.ui.dialogs.note import TypingDialog
from mast_tui.ui.widgets.text_line import TextLine
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import plain_title


@dataclass(frozen=True, slots=True)
class FinderChoice:
    """Something to choose: what is given back, what is shown, and what else is searched."""

    value: str
    code: str
    name: str
    detail: str = ""


LEAST_WIDTH: Final = 72
"""Cells of the dialog where no row needs more; the styles keep it within the screen."""

MOST_WIDTH: Final = 110
"""Cells of the dialog at most, so that long definitions leave some of the screen in sight."""

FRAME: Final = 7
"""Cells of the dialog beside its rows: border, padding and scroll bar."""

CODE_CELLS: Final = 14
"""Cells of the codes at most."""

MEASURED: Final = 1_000
"""Rows that are measured; a list of all traces may have more."""


def widest_row(choices: Sequence[FinderChoice]) -> int:
    """Return how many cells the longest of the choices takes when nothing of it is cut."""
    measured = choices[:MEASURED]
    code = min(CODE_CELLS, max((cell_len(one.code) for one in measured), default=0))
    texts = (cell_len(one_line(one.name)) + cell_len(one_line(one.detail)) for one in measured)
    return code + 5 + max(texts, default=0)


class ChoiceList(VirtualLines):
    """The choices that match."""

    css_prefix = "choice-list"
    css_parts = ("cursor", "code", "detail")

    def __init__(self) -> None:
        super().__init__()
        self.can_focus = False
        self.choices: Sequence[FinderChoice] = ()

    @property
    def row_count(self) -> int:
        """The choices that match."""
        return len(self.choices)

    def show(self, choices: Sequence[FinderChoice]) -> None:
        """Show other choices, with the cursor on the best."""
        self.choices = choices
        self.cursor = 0
        self.rows_changed()

    def render_row(self, row: int, width: int) -> Strip:
        """Code, name, and a part of the detail."""
        choice = self.choices[row]
        base = self.row_style(row)
        code = base + self._part("code")
        detail = base + self._part("detail")
        wide = max((cell_len(item.code) for item in self.choices), default=0)
        head = f" {set_cell_size(choice.code, min(wide, CODE_CELLS))} " if wide else " "
        name = one_line(choice.name, max(1, width - cell_len(head) - 1))
        room = max(0, width - cell_len(head) - cell_len(name) - 2)
        return Strip(
            [
                Segment(head, code),
                Segment(name, base),
                Segment("  " + one_line(choice.detail, max(1, room)), detail),
            ]
        ).adjust_cell_length(width, base)


def best_first(query: str, choices: Sequence[FinderChoice]) -> list[FinderChoice]:
    """The choices that match ``query``, best first: in the code, then the name, then the detail."""
    if not query.strip():
        return list(choices)
    matcher = Matcher(query)
    scored: list[tuple[float, int, FinderChoice]] = []
    for place, choice in enumerate(choices):
        compact = choice.code.replace(".", "")
        if query in (choice.code, compact):
            score = 100.0
        else:
            score = max(
                20 * (query.casefold() in choice.name.casefold()),
                4 * matcher.match(choice.name),
                2 * matcher.match(choice.code),
                1 + matcher.match(choice.detail)
                if query.casefold() in choice.detail.casefold()
                else 0,
            )
        if score > 0:
            scored.append((-score, place, choice))
    return [choice for _, _, choice in sorted(scored, key=lambda item: item[:2])]


class FinderDialog(TypingDialog):
    """Gives back the value of the choice, or None. ``free`` also gives back what was typed."""

    dialog_keys: ClassVar = (*(("↑ ↓", "move"), ("Enter", "takes it"), ("Esc", "leaves")),)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("down,ctrl+n", "move(1)", show=False, priority=True),
        Binding("up,ctrl+p", "move(-1)", show=False, priority=True),
    ]

    def __init__(
        self, title: str, choices: Sequence[FinderChoice], *, placeholder: str, free: bool = False
    ) -> None:
        super().__init__()
        self._title = title
        self._choices = choices
        self._placeholder = placeholder
        self._free = free

    def compose(self) -> ComposeResult:
        """What is typed, and what matches."""
        with Vertical(classes="dialog finder") as box:
            box.border_title = plain_title(self._title)
            needed = widest_row(self._choices) + FRAME
            box.styles.width = max(LEAST_WIDTH, min(needed, MOST_WIDTH))
            yield TextLine(placeholder=self._placeholder)
            yield ChoiceList()

    def on_mount(self) -> None:
        """Show everything."""
        self.query_one(ChoiceList).show(self._choices)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self.query_one(ChoiceList).show(best_first(event.value, self._choices))
        self._look()

    def _look(self) -> None:
        listed = self.query_one(ChoiceList)
        if listed.choices:
            self.looked_at(listed.choices[listed.cursor].value)

    def looked_at(self, value: str) -> None:
        """Show what the cursor stands on, where that can be seen before it is chosen."""

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        listed = self.query_one(ChoiceList)
        if (
            self._free
            and event.value.strip()
            and (event.value.strip().removeprefix("#").isdecimal() or not listed.choices)
        ):
            self.dismiss(event.value.strip())
        elif listed.choices:
            self.dismiss(listed.choices[listed.cursor].value)

    @on(VirtualLines.Moved)
    def _clicked(self, event: VirtualLines.Moved) -> None:
        event.stop()

    @on(VirtualLines.Chosen)
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        listed = self.query_one(ChoiceList)
        self.dismiss(listed.choices[event.row].value)

    def action_move(self, delta: int) -> None:
        """Another choice."""
        self.query_one(ChoiceList).move_by(delta)
        self._look()


class ModeFinder(FinderDialog):
    """Gives back a mode's slug."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        choices = [
            FinderChoice(
                mode.slug,
                mode.code if taxonomy.coded_by_digits else taxonomy.keys_of(mode),
                mode.name,
                " ".join([mode.definition, *(alias.name for alias in mode.aliases)]),
            )
            for mode in taxonomy.all_modes
        ]
        super().__init__("Label with", choices, placeholder="name, definition or code")


class Palette(FinderDialog):
    """Every action by name, with its keys, and the places of a screen by number or key.

    It gives back the id of an action, or what was typed where that is a place, or None.
    """

    def __init__(self, where: Where, keymap: Keymap) -> None:
        """List what can be done on a screen.

        Args:
            where: Which screen it is.
            keymap: Keys that the person has set.
        """
        choices = [
            FinderChoice(action.id, " ".join(map(shown, keys_of(action, keymap))), action.help)
            for place in dict.fromkeys((where, Where.EVERYWHERE))
            for action in actions_for(place)
            if not action.name.startswith(("digit_", "side_"))
        ]
        hint = "what to do, a #number or a span's key"
        super().__init__("Go to", choices, placeholder=hint, free=True)


class ThemeChoice(FinderDialog):
    """Gives back the name of the theme that was taken, or None and the theme of before."""

    def __init__(self, current: str) -> None:
        """List all themes, the one that is set first.

        Args:
            current: The theme that is set.
        """
        self._before = current
        names = sorted(BUILTIN_THEMES, key=lambda name: (name != current, name))
        choices = [FinderChoice(name, "", name, _kind(name)) for name in names]
        super().__init__("Theme", choices, placeholder="a part of its name")

    def looked_at(self, value: str) -> None:
        """Show the theme under the cursor."""
        self.app.theme = value

    def dismiss(self, result: str | None = None) -> AwaitComplete:
        """Take the theme and keep it in the configuration; without one go back to that of before.

        Args:
            result: The theme.
        """
        self.app.theme = result or self._before
        if result is not None:
            self._keep(result)
        return super().dismiss(result)

    def _keep(self, name: str) -> None:
        path = configuration_path()
        try:
            text = path.read_text("utf-8") if path.exists() else ""
            path.parent.mkdir(parents=True, exist_ok=True)
            write_output(path, with_theme(text, name))
        except (MastError, OSError, UnicodeDecodeError) as error:
            context_of(self).show_error(f"The theme is not kept: {one_line(str(error))}")
        else:
            context_of(self).say(f"{name} is kept in {one_line(str(path))}")


def _kind(name: str) -> str:
    theme = BUILTIN_THEMES[name]
    if theme.ansi:
        return "the terminal's own colours"
    return "dark" if theme.dark else "light"
