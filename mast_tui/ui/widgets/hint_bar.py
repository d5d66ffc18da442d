"""The last line of every screen: the keys that can be used here, or a message."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from mast_tui.columns import shortened
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Keymap, Where, actions_for, key_of
from mast_tui.ui.textual_internals import RenderCache

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy


@runtime_checkable
class TellsKeys(Protocol):
    """A dialog that lists its keys, each with one or two words."""

    @property
    def dialog_keys(self) -> Sequence[tuple[str, str]]: ...


def shorten_parts(text: str, cells: int) -> str:
    """Shorten a message to a width.

    Whole parts are dropped from the end if the rest fills more than half of the width; otherwise
    the text is cut.

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


class HintBar(RenderCache):
    """Hints for the keys, as many as fit, or a message until the next key.

    ``left_out`` are the names of actions that are not available now. Between messages the bar shows
    the app's ``report`` on work in progress; the app's ``urgently`` comes before everything else.

    The hint for help is always visible at the right end. A click on a hint runs its action. While a
    dialog is open, the bar shows the dialog's keys.
    """

    css_prefix = "hint-bar"
    css_parts = ("key", "title", "message", "error", "prompt")

    DEFAULT_CSS = """
    HintBar { dock: bottom; height: 1; width: 1fr; }
    """

    def __init__(self, where: Where, *, left_out: Collection[str] = ()) -> None:
        super().__init__()
        self._where = where
        self._left_out = frozenset(left_out)
        self._first: str | None = None
        self._message = ""
        self._style = "message"
        self._spans: list[tuple[int, int, str]] = []
        self._dialog: tuple[tuple[str, str], ...] | None = None
        self._message_is_old = False  # True if a dialog was opened after the message

    def on_mount(self) -> None:
        """Follow the dialogs that open and close above the screen."""
        self._dialog = self._dialog_keys()
        self.app.screen_change_signal.subscribe(self, self._screen_changed)

    def _screen_changed(self, _screen: object) -> None:
        dialog_keys = self._dialog_keys()
        if dialog_keys != self._dialog:
            self._dialog = dialog_keys
            self._message_is_old = dialog_keys is not None
            self.refresh()

    def _dialog_keys(self) -> tuple[tuple[str, str], ...] | None:
        """Return the keys of the open dialog, or None without one."""
        top = self.app.screen
        if not top.is_modal or top is self.screen:
            return None
        return tuple(top.dialog_keys) if isinstance(top, TellsKeys) else ()

    def leave_out(self, names: Collection[str], *, first: str | None = None) -> None:
        """Hide the hints of some actions, until the next call.

        Args:
            names: The names of the actions.
            first: The name of the action whose hint comes first meanwhile.
        """
        if (self._left_out, self._first) != (frozenset(names), first):
            self._left_out = frozenset(names)
            self._first = first
            self.refresh()

    @property
    def message(self) -> str:
        """The present message, or an empty text."""
        return self._message

    @property
    def _report(self) -> str:
        """The progress of work in the background, shown between messages."""
        return one_line(getattr(self.app, "report", ""))

    def say(self, message: str, *, error: bool = False) -> None:
        """Show a message.

        Args:
            message: The message.
            error: Whether it reports an error.
        """
        self._show(message, "error" if error else "message")

    def prompt(self, message: str) -> None:
        """Show which keys are expected; hints are hidden meanwhile."""
        self._show(message, "prompt")

    def clear(self) -> None:
        """Show the hints again."""
        self._show("", "message")

    def _show(self, message: str, style: str) -> None:
        message = one_line(message)
        # A dialog that is open already must not make the message old once its signal arrives.
        if self.is_attached:
            self._screen_changed(self.app.screen)
        if self._message_is_old or (message, style) != (self._message, self._style):
            self._message = message
            self._style = style
            self._message_is_old = False
            self.refresh()

    def _hints(self) -> list[tuple[str, str, str]]:
        """Return key, title and command of each hint, the one for help last."""
        if self._dialog is not None:
            return [(key, title, "") for key, title in self._dialog]
        keymap: Keymap = getattr(self.app, "keys_set", {})
        rows = [*actions_for(self._where), *actions_for(Where.EVERYWHERE)]
        # The last one, for help, is drawn at the right end and is always visible.
        hinted = sorted(
            (row for row in rows if row.hint and row.name not in self._left_out),
            key=lambda row: (row.id == "everywhere.help", row.name != self._first, row.hint),
        )
        hints = []
        for action in hinted:
            key = key_of(action.id, keymap)
            if not key:
                continue
            if action.name == "digit_1":
                key = self._mode_keys()
            if action.name == "side_1":
                # A click on this hint stands for nine keys: it must not choose the first side.
                last = key_of("adjudicate.side_9", keymap)
                hints.append((f"{key}…{last}", action.title, "sides"))
                continue
            hints.append((key, action.title, action.command))
        return hints

    def _mode_keys(self) -> str:
        """Return the keys of a mode, as an example."""
        taxonomy: Taxonomy = self.app.taxonomy  # type: ignore[attr-defined]
        return " ".join(taxonomy.keys_of(taxonomy.modes[:3][-1]))

    def render_line(self, y: int) -> Strip:
        """Draw the bar."""
        width = self.size.width
        base = self.rich_style
        self._spans = []
        message = "" if self._message_is_old else self._message
        hints = [] if self._style == "prompt" and message else self._hints()
        pinned = hints.pop() if hints and self._dialog is None else None
        tail = cell_len(" ".join(pinned[:2])) + 2 if pinned else 0
        segments: list[Segment] = [Segment(" ", base)]
        used = 1
        urgent = one_line(getattr(self.app, "urgently", ""))
        text = urgent or message or self._report
        if text:
            kind = "error" if urgent else self._style
            style = base + self._part(kind)
            room = width - 3 - tail if pinned else width - 2
            text = shorten_parts(text, room)
            segments += [Segment(text, style), Segment("   ", base)]
            used += cell_len(text) + 3
        key_style = base + self._part("key")
        title_style = base + self._part("title")

        def add_hint(key: str, title: str, command: str) -> int:
            segments.extend([Segment(key, key_style), Segment(f" {title}", title_style)])
            length = cell_len(key) + 1 + cell_len(title)
            self._spans.append((used, used + length, command))
            return length

        for key, title, command in hints:
            if used + cell_len(key) + 1 + cell_len(title) + 1 > width - tail:
                break
            used += add_hint(key, title, command) + 2
            segments.append(Segment("  ", base))
        if pinned is not None and width - tail + 1 >= used:
            segments.append(Segment(" " * (width - tail + 1 - used), base))
            used = width - tail + 1
            add_hint(*pinned)
        return Strip(segments).adjust_cell_length(width, base)

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the hint that was clicked."""
        for start, end, command in self._spans:
            if start <= event.x < end:
                await self.screen.run_action(command)
                return
