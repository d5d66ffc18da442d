"""Widgets of one line: the title at the top, the hints at the bottom, and an input line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.strip import Strip
from textual.timer import Timer
from textual.widgets import Input, Static

from mast_tui.columns import shortened
from mast_tui.safe_text import one_line, safe_line
from mast_tui.ui.actions.registry import Keymap, Where, actions_for, key_of
from mast_tui.ui.textual_internals import RenderCache
from mast_tui.ui.wording import plain_title

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy

SEPARATOR = " · "

MIN_FIRST_CELLS: Final = 24
"""The least width of the first part before later parts are dropped."""

FRAME_CELLS: Final = 4
"""The blank cells around and between the two sides."""

_ASSISTED: Final = "suggestions shown"
_SHORTER: Final = (
    (_ASSISTED, "sugg. shown"),  # the heading in the library
    (" finished", " ✓"),  # the mark of a finished trace
)
"""Shorter texts for the right side, tried in this order."""


MAX_ROWS: Final = 3
"""The most rows of a message."""

MENU_DELAY: Final = 0.25
"""Seconds until a menu appears. Users who know the next key have pressed it by then."""

ADJUDICATOR: Final = "adjudicator"


def visibility_text(*, blind: bool) -> str:
    """Return the text for blind annotation or annotation with suggestions."""
    return "blind" if blind else _ASSISTED


class TitleBar(RenderCache):
    """Two groups of parts, joined by dots.

    If they do not fit, these steps are taken in order:

    - The parts on the right are shortened.
    - The first part on the left is cut.
    - The last parts on the left are dropped; the first of them is cut if enough cells are left.
    """

    css_prefix = "title-bar"
    css_parts = ("first", "rest")

    DEFAULT_CSS = """
    TitleBar { dock: top; height: 1; width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._left: tuple[str, ...] = ()
        self._right: tuple[str, ...] = ()

    def show(self, left: tuple[str, ...], right: tuple[str, ...]) -> None:
        """Show these parts.

        Args:
            left: The parts that name what is open; they may be foreign text.
            right: The annotator and the condition; they may be foreign text.
        """
        left = tuple(one_line(part, 120) for part in left)
        right = tuple(one_line(part, 64) for part in right)
        if (left, right) != (self._left, self._right):
            self._left = left
            self._right = right
            self.redraw()

    def render_line(self, y: int) -> Strip:
        """Draw the bar; parts on the left that do not fit are left out."""
        width = self.size.width
        right_text = self._right_text(width)
        left_cells = max(0, width - cell_len(right_text) - FRAME_CELLS)
        left = list(self._left)
        dropped_part = ""
        while len(left) > 1 and _least_cells(left) > left_cells:
            dropped_part = left.pop()
        cut_sign = " …" if dropped_part and len(left) > 1 else ""
        free_cells = left_cells - cell_len(SEPARATOR.join([*left, ""]))
        if dropped_part and free_cells >= MIN_FIRST_CELLS:
            left.append(shortened(dropped_part, free_cells))
            cut_sign = ""
        later_text = "".join(SEPARATOR + part for part in left[1:]) + cut_sign
        first_text = shortened(left[0] if left else "", left_cells - cell_len(later_text))
        gap = width - 2 - cell_len(first_text) - cell_len(later_text) - cell_len(right_text)
        base_style = self.rich_style
        rest_style = base_style + self._part("rest")
        return Strip(
            [
                Segment(" ", base_style),
                Segment(first_text, base_style + self._part("first")),
                Segment(later_text, rest_style),
                Segment(" " * max(1, gap), base_style),
                Segment(right_text, rest_style),
            ]
        ).adjust_cell_length(width, base_style)

    def _right_text(self, width: int) -> str:
        """Return the right side, shortened to fit.

        It may fill half of the bar, or all cells that the left side leaves free.
        """
        right = list(self._right)
        needed_left_cells = cell_len(SEPARATOR.join(self._left))
        max_cells = max(width // 2, width - FRAME_CELLS - needed_left_cells)
        for long_end, short_end in _SHORTER:
            right_cells = cell_len(SEPARATOR.join(right))
            if right_cells <= min(max_cells, width - FRAME_CELLS - needed_left_cells):
                break
            right = [
                part.removesuffix(long_end) + short_end if part.endswith(long_end) else part
                for part in right
            ]
            # Shorten the right side first, and then assume a cut left side.
            needed_left_cells = _least_cells(self._left)
        while len(right) > 1 and cell_len(SEPARATOR.join(right)) > max_cells:
            right.pop()
        return SEPARATOR.join(right)


def _least_cells(left: Sequence[str]) -> int:
    """Return the least cells of a title bar's left side, with its first part cut."""
    if not left:
        return 0
    first_cells, *later_cells = map(cell_len, left)
    return min(first_cells, MIN_FIRST_CELLS) + sum(later_cells) + len(SEPARATOR) * len(later_cells)


@runtime_checkable
class TellsKeys(Protocol):
    """A dialog that lists its keys with short titles."""

    @property
    def dialog_keys(self) -> Sequence[tuple[str, str]]: ...


def shorten_parts(text: str, cells: int) -> str:
    """Shorten a message to a width.

    Parts are dropped from the end if the rest fills more than half of the width. Otherwise the text
    is cut.

    Args:
        text: The message; its parts are separated by ``·``, the most important one first.
        cells: The width.
    """
    if cell_len(text) <= cells:
        return text
    shortened_text = text
    while " · " in shortened_text and cell_len(shortened_text) > cells - 2:
        shortened_text = shortened_text.rpartition(" · ")[0]
    if cells / 2 < cell_len(shortened_text) <= cells - 2:
        return f"{shortened_text} …"
    return shortened(text, cells)


def message_rows(text: str, cells: int) -> list[str]:
    """Break a message into at most ``MAX_ROWS`` rows, between its parts and between words.

    Args:
        text: The message; its parts are separated by ``·``, the most important one first.
        cells: The width.
    """
    rows = [""]
    for part in shorten_parts(text, cells * MAX_ROWS).split(SEPARATOR):
        separator = SEPARATOR if rows[-1] else ""
        if cell_len(rows[-1] + separator + part) <= cells:
            rows[-1] += separator + part
            continue
        rows.append("")
        for word in part.split(" "):
            if cell_len(f"{rows[-1]} {word}") <= cells:
                rows[-1] = f"{rows[-1]} {word}".lstrip()
            else:
                rows.append(shortened(word, cells))
    rows = [row for row in rows if row] or [""]
    last_row = shortened(" ".join(rows[MAX_ROWS - 1 :]), cells)
    return [*rows[: MAX_ROWS - 1], last_row] if last_row else rows


class RowsAbove(Static):
    """The rows above the last line: a menu, or the first rows of a long message."""

    DEFAULT_CSS = """
    RowsAbove { overlay: screen; display: none; width: 100%; height: auto; padding: 0 1; }
    RowsAbove.-menu { width: auto; }
    """

    def show(self, rows: Sequence[str], *, title: str = "", style: str = "") -> None:
        """Show rows, or nothing.

        Args:
            rows: The rows.
            title: The title of a menu; empty for a message.
            style: The style of a message.
        """
        self.display = bool(rows)
        if not rows:
            return
        self.set_class(bool(title), "-menu")
        self.border_title = plain_title(title)
        self.update(Content("\n".join(rows)))
        for name in ("message", "error", "prompt"):
            self.set_class(name == style, f"-{name}")
        self.styles.offset = (0, -len(rows) - (2 if title else 0))


class Menu(NamedTuple):
    """The choices for the next key, shown above the last line.

    Attributes:
        title: The title.
        rows: A row for each choice, with its key.
    """

    title: str
    rows: tuple[str, ...]


class _KeyHint(NamedTuple):
    """The hint of a key. ``click`` is a style that runs its action after a click."""

    key: str
    title: str
    click: Style

    @property
    def cells(self) -> int:
        """The width of the hint."""
        return cell_len(self.key) + 1 + cell_len(self.title)


@lru_cache(maxsize=16)
def _hints_of(
    where: Where,
    left_out: frozenset[str],
    first_titles: tuple[tuple[str, str], ...],
    keymap_items: tuple[tuple[str, tuple[str, ...]], ...],
    mode_keys: str,
) -> tuple[_KeyHint, ...]:
    """Return the hints of a screen in their order, without actions that have no key.

    Args:
        where: The screen.
        left_out: The names of actions without hints.
        first_titles: The actions with hints at the beginning, and the titles of these hints.
        keymap_items: The keys that the user has set.
        mode_keys: The keys of one mode as an example.
    """
    keymap = dict(keymap_items)
    titles = dict(first_titles)
    first_names = list(titles)
    actions = [
        action
        for action in (*actions_for(where), *actions_for(Where.EVERYWHERE))
        if action.name in first_names or (action.hint and action.name not in left_out)
    ]
    actions.sort(
        key=lambda action: (
            action.id == "everywhere.help",
            action.name not in first_names,
            first_names.index(action.name) if action.name in first_names else action.hint,
        )
    )
    hints = []
    for action in actions:
        key = key_of(action.id, keymap)
        title = titles.get(action.name, action.title)
        command = action.command
        if key and action.name == "digit_1":  # stands for the keys of all modes
            key = mode_keys
        if key and action.name == "side_1":
            # This hint stands for nine keys, so a click on it must not choose the first side.
            key = f"{key}…{key_of('adjudicate.side_9', keymap)}"
            command = "sides"
        if key:
            prefix = "" if command.startswith("app.") else "screen."
            hints.append(_KeyHint(key, title, Style(meta={"@click": f"{prefix}{command}"})))
    return tuple(hints)


class HintBar(RenderCache):
    """Hints for the keys, as many as fit, or a message until the next key.

    A message that names a key takes the place of its hint. A message that is longer than the line
    begins on the rows above it. A prompt may have a menu
    above it. Both cover the panes.

    Between messages the bar shows the app's ``report`` on work in progress. The app's
    ``urgent_message`` replaces every other message.

    The hint for help is at the right end, unless a message needs its cells. A click on a hint runs
    its action. While a dialog is open, the bar shows the dialog's keys.
    """

    css_prefix = "hint-bar"
    css_parts = ("key", "title", "message", "error", "prompt")

    DEFAULT_CSS = """
    HintBar { dock: bottom; height: 1; width: 1fr; }
    """

    def __init__(self, where: Where, *, left_out: Collection[str] = ()) -> None:
        """Begin without a message.

        Args:
            where: The screen with the keys to show.
            left_out: The names of actions that are not available now.
        """
        super().__init__()
        self._where = where
        self._left_out = frozenset(left_out)
        self._first_titles: Mapping[str, str] = {}
        """The actions with hints at the beginning, and the titles of these hints."""
        self.message = ""
        """The present message, or an empty text."""
        self._style = "message"
        """The name of the style of the message."""
        self._dialog_keys: tuple[tuple[str, str], ...] | None = None
        """The keys of the open dialog; None without a dialog."""
        self._message_is_old = False
        """True if a dialog was opened after the message and is still open."""
        self._menu: Menu | None = None
        """The menu above a prompt."""
        self._menu_timer: Timer | None = None
        """The timer that shows the menu; None if the menu is shown, or there is none."""
        self._rows_above = RowsAbove()
        """The widget for the menu or the first rows of a long message."""

    def compose(self) -> ComposeResult:
        """Yield the rows above the line."""
        yield self._rows_above

    def on_resize(self) -> None:
        """Break the message anew."""
        self._show_rows_above()

    def on_mount(self) -> None:
        """Follow the dialogs that open and close above the screen."""
        self._dialog_keys = self._keys_of_dialog()
        self.app.screen_change_signal.subscribe(self, self._screen_changed)

    def _screen_changed(self, _screen: object) -> None:
        """Show the keys of an open dialog, or the screen's keys."""
        dialog_keys = self._keys_of_dialog()
        if dialog_keys != self._dialog_keys:
            self._dialog_keys = dialog_keys
            # An open dialog hides the message, which returns when the dialog closes.
            self._message_is_old = dialog_keys is not None
            self._show_rows_above()
            self.redraw()

    def _keys_of_dialog(self) -> tuple[tuple[str, str], ...] | None:
        """Return the keys of the dialog above the bar's screen, or None without a dialog."""
        top_screen = self.app.screen
        if not top_screen.is_modal or top_screen is self.screen:
            return None
        return tuple(top_screen.dialog_keys) if isinstance(top_screen, TellsKeys) else ()

    def leave_out(
        self, names: Collection[str], *, first: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Hide the hints of some actions, until the next call.

        Args:
            names: The names of the actions.
            first: The actions with hints at the beginning, and the titles of these hints.
        """
        if (self._left_out, self._first_titles) != (frozenset(names), first):
            self._left_out = frozenset(names)
            self._first_titles = first
            self.redraw()

    def say(self, message: str, *, error: bool = False) -> None:
        """Show a message.

        Args:
            message: The message.
            error: True if it reports an error.
        """
        self._show_message(message, "error" if error else "message")

    def prompt(self, message: str, menu: Menu | None = None) -> None:
        """Show which keys are expected, in place of the hints.

        Args:
            message: The message.
            menu: The choices for the next key, shown above the line.
        """
        self._show_message(message, "prompt", menu)

    def clear(self) -> None:
        """Show the hints again."""
        self._show_message("", "message")

    def forget_message(self) -> None:
        """Show the hints again, unless a prompt is shown."""
        if self._style != "prompt":
            self.clear()

    def _show_message(self, message: str, style: str, menu: Menu | None = None) -> None:
        """Show a message if it differs from the present one, or if that one is old.

        A message is old if a dialog was opened after it.
        """
        message = one_line(message)
        # Textual may report an open dialog after this message. Recording the dialog now keeps the
        # message from becoming old.
        if self.is_attached:
            self._screen_changed(self.app.screen)
        shown = (self.message, self._style, self._menu)
        if self._message_is_old or (message, style, menu) != shown:
            is_menu_shown = self._menu is not None and self._menu_timer is None
            if self._menu_timer is not None:
                self._menu_timer.stop()
                self._menu_timer = None
            if menu is not None and not is_menu_shown:
                self._menu_timer = self.set_timer(MENU_DELAY, self._show_menu)
            self.message = message
            self._style = style
            self._menu = menu
            self._message_is_old = False
            self._show_rows_above()
            self.redraw()

    def _show_menu(self) -> None:
        self._menu_timer = None
        self._show_rows_above()

    def _show_rows_above(self) -> None:
        if self._message_is_old:
            self._rows_above.show(())
        elif self._menu is not None:
            rows = self._menu.rows if self._menu_timer is None else ()
            self._rows_above.show(rows, title=self._menu.title)
        else:
            first_rows = message_rows(self.message, self._text_cells)[:-1]
            self._rows_above.show(first_rows, style=self._style)

    @property
    def _text_cells(self) -> int:
        return max(1, self.size.width - 2)

    def _key_hints(self) -> Sequence[_KeyHint]:
        """Return the hints in their order on screen.

        While a dialog is open, return those of the dialog.
        """
        if self._dialog_keys is not None:
            return [_KeyHint(key, title, Style()) for key, title in self._dialog_keys]
        keymap: Keymap = getattr(self.app, "keys_set", {})
        return _hints_of(
            self._where,
            self._left_out,
            tuple(self._first_titles.items()),
            tuple(keymap.items()),
            self._mode_keys() if self._where is Where.ANNOTATE else "",
        )

    def _mode_keys(self) -> str:
        """Return the keys of one mode as an example."""
        taxonomy: Taxonomy = self.app.taxonomy  # type: ignore[attr-defined]
        return " ".join(taxonomy.keys_of(taxonomy.modes[:3][-1]))

    def render_line(self, y: int) -> Strip:
        """Draw the message, the hints that fit, and the hint for help at the right end."""
        width = self.size.width
        base_style = self.rich_style
        message = "" if self._message_is_old else self.message
        hints = [] if self._style == "prompt" and message else [*self._key_hints()]
        # Outside dialogs the last hint is that for help.
        help_hint = hints.pop() if hints and self._dialog_keys is None else None
        help_cells = 0 if help_hint is None else help_hint.cells + 2
        segments: list[Segment] = [Segment(" ", base_style)]
        used_cells = 1
        text, part = self._text_and_part(message)
        if text:
            segments += [Segment(text, base_style + self._part(part)), Segment("   ", base_style)]
            used_cells += cell_len(text) + 3
        for hint in hints:
            if f" {hint.key} {hint.title}" in f" {message}":
                continue
            if used_cells + hint.cells + 1 > width - help_cells:
                break
            segments += self._hint_segments(hint)
            segments.append(Segment("  ", base_style))
            used_cells += hint.cells + 2
        help_start = width - help_cells + 1
        if help_hint is not None and help_start >= used_cells:
            segments.append(Segment(" " * (help_start - used_cells), base_style))
            segments += self._hint_segments(help_hint)
        return Strip(segments).adjust_cell_length(width, base_style)

    def _text_and_part(self, message: str) -> tuple[str, str]:
        """Return the text before the hints, and the name of its style.

        An urgent message comes before the last row of ``message``, and that before the progress.
        """
        urgent_message = one_line(getattr(self.app, "urgent_message", ""))
        if urgent_message:
            return shorten_parts(urgent_message, self._text_cells), "error"
        if message:
            return message_rows(message, self._text_cells)[-1], self._style
        progress_text = one_line(getattr(self.app, "report", ""))
        return shorten_parts(progress_text, self._text_cells), self._style

    def _hint_segments(self, hint: _KeyHint) -> list[Segment]:
        """Return the texts of a hint; a click on them runs its action."""
        base_style = self.rich_style + hint.click
        return [
            Segment(hint.key, base_style + self._part("key")),
            Segment(f" {hint.title}", base_style + self._part("title")),
        ]


class TextLine(Input):
    """An ``Input`` that keeps its value unchanged and displays it with ``safe_line``.

    Textual's ``Input`` sends an escape character in its value to the terminal.
    """

    def _on_paste(self, event: events.Paste) -> None:
        """Join the lines of the text. Textual, which handles it next, keeps only the first line."""
        event.text = " ".join(event.text.splitlines())

    def render_line(self, y: int) -> Strip:
        """Draw the line with visible control characters."""
        strip = super().render_line(y)
        safe_strip = Strip([Segment(safe_line(text), style) for text, style, _ in strip])
        if safe_strip.text == strip.text:
            return strip
        return safe_strip.adjust_cell_length(strip.cell_length, self.rich_style)
