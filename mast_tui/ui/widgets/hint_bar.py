"""The last line of every screen: what can be done here, or what was just done."""

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
    """A dialog that says what its keys do: each key as people write it, and a word or two."""

    @property
    def dialog_keys(self) -> Sequence[tuple[str, str]]: ...


def within(text: str, cells: int) -> str:
    """Return what fits of a message: whole parts of it where they fill more than half of the room.

    Args:
        text: Its parts have ``·`` between them, and the first says the most.
        cells: How much room there is.
    """
    if cell_len(text) <= cells:
        return text
    kept = text
    while " · " in kept and cell_len(kept) > cells - 2:
        kept = kept.rpartition(" · ")[0]
    if cells / 2 < cell_len(kept) <= cells - 2:
        return f"{kept} …"
    return shortened(text, cells)


class HintBar(RenderCache):
    """Keys with what they do, as many as fit; a message takes their place until the next one.

    ``left_out`` are names of actions that cannot be taken on this screen now.
    Where the app has a ``report`` of work that goes on, it stands there between messages; what it
    says ``urgently`` stands before all else.

    The key for help always keeps its room at the right end. Every hint can be clicked. While a
    dialog is open, its keys stand there instead, without what was said before.
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
        self._said_before = False  # before the dialog was opened

    def on_mount(self) -> None:
        """Follow the dialogs that open and close above the screen."""
        self._dialog = self._dialog_keys()
        self.app.screen_change_signal.subscribe(self, self._screen_changed)

    def _screen_changed(self, _screen: object) -> None:
        found = self._dialog_keys()
        if found != self._dialog:
            self._dialog = found
            self._said_before = found is not None
            self.refresh()

    def _dialog_keys(self) -> tuple[tuple[str, str], ...] | None:
        """The keys of the dialog that is open, or None where none is."""
        top = self.app.screen
        if not top.is_modal or top is self.screen:
            return None
        return tuple(top.dialog_keys) if isinstance(top, TellsKeys) else ()

    def leave_out(self, names: Collection[str], *, first: str | None = None) -> None:
        """Leave out some actions until others are.

        Args:
            names: Their names.
            first: The name of the action that stands before all others meanwhile.
        """
        if (self._left_out, self._first) != (frozenset(names), first):
            self._left_out, self._first = frozenset(names), first
            self.refresh()

    @property
    def message(self) -> str:
        """What is said now, or nothing."""
        return self._message

    @property
    def _report(self) -> str:
        """How far work has come that goes on whatever is done here; shown between messages."""
        return one_line(getattr(self.app, "report", ""))

    def say(self, message: str, *, error: bool = False) -> None:
        """Say what was done, or what went wrong."""
        self._show(message, "error" if error else "message")

    def prompt(self, message: str) -> None:
        """Say what is waited for; hints are left out meanwhile."""
        self._show(message, "prompt")

    def clear(self) -> None:
        """Show the hints again."""
        self._show("", "message")

    def _show(self, message: str, style: str) -> None:
        message = one_line(message)
        if self._said_before or (message, style) != (self._message, self._style):
            self._message, self._style = message, style
            self._said_before = False
            self.refresh()

    def _hints(self) -> list[tuple[str, str, str]]:
        if self._dialog is not None:
            return [(key, title, "") for key, title in self._dialog]
        keymap: Keymap = getattr(self.app, "keys_set", {})
        rows = [*actions_for(self._where), *actions_for(Where.EVERYWHERE)]
        # The last of these stands at the right end of the bar and is never left out.
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
                key = self._of_a_mode()
            if action.name == "side_1":
                # One click for nine keys: it must not take the first side.
                last = key_of("adjudicate.side_9", keymap)
                hints.append((f"{key}…{last}", action.title, "sides"))
                continue
            hints.append((key, action.title, action.command))
        return hints

    def _of_a_mode(self) -> str:
        """The keys of a mode, as an example."""
        taxonomy: Taxonomy = self.app.taxonomy  # type: ignore[attr-defined]
        return " ".join(taxonomy.keys_of(taxonomy.modes[:3][-1]))

    def render_line(self, y: int) -> Strip:
        """The bar."""
        width = self.size.width
        base = self.rich_style
        self._spans = []
        message = "" if self._said_before else self._message
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
            text = within(text, room)
            segments += [Segment(text, style), Segment("   ", base)]
            used += cell_len(text) + 3
        key_style = base + self._part("key")
        title_style = base + self._part("title")

        def put(key: str, title: str, command: str) -> int:
            segments.extend([Segment(key, key_style), Segment(f" {title}", title_style)])
            length = cell_len(key) + 1 + cell_len(title)
            self._spans.append((used, used + length, command))
            return length

        for key, title, command in hints:
            if used + cell_len(key) + 1 + cell_len(title) + 1 > width - tail:
                break
            used += put(key, title, command) + 2
            segments.append(Segment("  ", base))
        if pinned is not None and width - tail + 1 >= used:
            segments.append(Segment(" " * (width - tail + 1 - used), base))
            used = width - tail + 1
            put(*pinned)
        return Strip(segments).adjust_cell_length(width, base)

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the hint that was clicked."""
        for start, end, command in self._spans:
            if start <= event.x < end:
                await self.screen.run_action(command)
                return
