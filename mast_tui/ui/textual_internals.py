"""All code that uses internals of Textual and Rich, with the reason for each use.

Checked against Textual 8.2.8 and Rich 15.0.0. ``tests/ui/test_textual_internals.py`` fails if a
later version behaves differently.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from rich import cells
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import App
from textual.binding import ActiveBinding
from textual.content import Content
from textual.css.styles import RenderStyles
from textual.css.stylesheet import Stylesheet as TextualStylesheet
from textual.dom import DOMNode
from textual.drivers._writer_thread import WriterThread
from textual.geometry import Region, Size
from textual.notifications import Notify
from textual.reactive import Reactive
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.widget import Widget, _BorderTitle
from textual.worker import Worker, WorkerFailed, get_current_worker

from mast_tui.ui.crashes import log_error

if TYPE_CHECKING:
    from rich.cells import CellTable
    from textual.content import ContentType


def count_spacing_marks() -> None:
    """Have Rich and Textual give each spacing mark a cell. Further calls change nothing.

    Spacing marks are vowel signs of Indic scripts, Khmer and Myanmar (category Mc). Most terminals
    give them a cell. Rich gives them none, so each mark would move the rest of the line.
    """
    load: Callable[[str], CellTable] | None = getattr(cells, "load_cell_table", None)
    if load is None or load.__module__ == __name__:
        return

    @cache  # the table is made when text first needs it
    def load_with_marks(unicode_version: str = "auto") -> CellTable:
        """Return Rich's table for a version of Unicode, with one cell for each spacing mark."""
        table = load(unicode_version)
        widths = [
            widths_of_range
            for first, last, width in table.widths
            for widths_of_range in _with_spacing_marks(first, last, width)
        ]
        return table._replace(widths=widths)

    vars(cells)["load_cell_table"] = load_with_marks
    cells.get_character_cell_size.cache_clear()
    cells.cached_cell_len.cache_clear()


def _with_spacing_marks(first: int, last: int, width: int) -> list[tuple[int, int, int]]:
    """Return a range of code points with its width, or each code point if some are spacing marks
    without a width.
    """
    codes = range(first, last + 1)
    if width or "Mc" not in map(unicodedata.category, map(chr, codes)):
        return [(first, last, width)]
    return [(code, code, _spacing_cells(code)) for code in codes]


def _spacing_cells(code: int) -> int:
    """Return the cells of a code point that has none in Rich: 1 for a spacing mark, else 0."""
    if unicodedata.category(chr(code)) != "Mc":
        return 0
    return 2 if unicodedata.east_asian_width(chr(code)) == "W" else 1


class ComponentStyles(dict[str, RenderStyles]):
    """The styles of a widget's component classes, computed when first needed."""

    def __init__(self, stylesheet: Stylesheet, node: DOMNode) -> None:
        super().__init__()
        self._stylesheet = stylesheet
        self._node = node

    def __contains__(self, name: object) -> bool:
        return name in self._node._get_component_classes()

    def __missing__(self, name: str) -> RenderStyles:
        """Compute and store the style of a component, as Textual does."""
        component = DOMNode(classes=name)
        component._attach(self._node)
        self._stylesheet.apply(component, animate=False)
        self[name] = component.styles
        return component.styles


class Stylesheet(TextualStylesheet):
    """A stylesheet that computes the styles of a widget's parts when they are first drawn.

    Textual computes all of them whenever the focus or a class of the widget changes. For a widget
    with thirty colours, this takes milliseconds for each key.
    """

    def copy(self) -> Stylesheet:
        copied = Stylesheet(variables=self._variables.copy())
        copied.source = self.source.copy()
        return copied

    def _process_component_classes(self, node: DOMNode) -> None:
        """Forget the styles of a widget's parts, and draw the widget if a used style has
        changed.
        """
        if not node._get_component_classes():
            return
        previous_styles = node._component_styles
        node._component_styles = ComponentStyles(self, node)
        if any(node._component_styles[name] != style for name, style in previous_styles.items()):
            node.refresh()


class TextualApp(App[None]):
    """An app that reads styles once, and logs unexpected errors.

    Textual would print errors with the values of variables, which contain text of traces.
    ``TEXTUAL=debug`` restores that.
    """

    crash: str | None = None
    """The line about the unexpected error that ended the app, with the file of the log."""

    async def on_event(self, event: events.Event) -> None:
        """Handle an event, except a change of the terminal's focus.

        Textual would remove the focus from its widget and restore it with the next key. A dialog
        opened before that key would lose its first keys.

        A report of an unchanged size draws the whole screen, because a reconnected browser shows an
        old picture.
        """
        if isinstance(event, events.Resize) and event.size == self._size and self._screen_stack:
            self.screen.refresh()
        if not isinstance(event, events.AppFocus | events.AppBlur):
            await super().on_event(event)

    def __init__(self) -> None:
        count_spacing_marks()
        super().__init__()
        self.stylesheet = Stylesheet(variables=self.stylesheet._variables)

    def add_styles(self, path: Path) -> None:
        """Add a file of styles, unless it is known.

        Textual would parse all files and style every widget again.
        """
        if not self.stylesheet.has_source(str(path)):
            self.stylesheet.add_source(path.read_text("utf-8"), (str(path), ""))

    def _load_screen_css(self, screen: Screen[object]) -> None:
        # Textual calls this for each screen that it shows.
        for path in screen.css_path:
            self.add_styles(Path(path))
        super()._load_screen_css(screen)

    def worker_failed(self, worker: Worker[Any], message: str) -> None:
        """Report that background work has failed. An app overrides this method.

        Args:
            worker: The worker.
            message: The error in one line, with the file of the log.
        """

    def _handle_exception(self, error: Exception) -> None:
        """Log an error, and end the app unless a background worker raised it."""
        # Textual calls this for every error that a handler or worker did not catch.
        if "debug" in self.features:
            super()._handle_exception(error)
            return
        if self._exception is None:  # run_test raises this error at its end
            self._exception = error
            self._exception_event.set()
        if isinstance(error, WorkerFailed):
            self.worker_failed(get_current_worker(), log_error(error.error))
        elif self.crash is None:
            # ``App.panic`` ends the app in this way too, but also prints the error. ``App.exit``
            # would wait for messages.
            self.crash = log_error(error)
            self._return_code = 1
            self._close_messages_no_wait()

    def on_notify(self, event: Notify) -> None:
        """Remove the shown notices that the new one repeats. Textual then shows the new one."""
        for notification in list(self._notifications):
            if notification.message == event.notification.message:
                self._unnotify(notification, refresh=False)

    def action_suspend_process(self) -> None:
        """Suspend the whole process group until the shell continues it.

        Textual would suspend this process only, and even without a shell.
        """
        driver = self._driver
        if driver is None or not driver.can_suspend:
            return
        if os.getpgrp() == os.getsid(0):
            # Only a shell could continue the process.
            self.notify(
                "The app cannot be suspended: no shell has started it and could continue it"
            )
            return
        self.app_suspend_signal.publish(self)
        os.killpg(0, signal.SIGTSTP)  # the driver restores the terminal, and then stops

    def action_mouse(self) -> None:
        """Leave the mouse to the terminal, which then selects and copies text, or take it back."""
        driver: Any = self._driver
        if not hasattr(driver, "_disable_mouse_support"):
            return
        if driver._mouse:
            driver._disable_mouse_support()  # does nothing once the driver has no mouse
            driver._mouse = False
            self.notify("The mouse selects and copies text, as in any terminal window")
        else:
            driver._mouse = True
            driver._enable_mouse_support()
            self.notify("The app handles the mouse again")


RESTORING_SEQUENCES: Final = (
    b"\x1b[?2026l"  # end of a synchronized frame
    b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # no mouse reports
    b"\x1b[?1004l\x1b[?2004l\x1b[?2048l"  # no reports of focus, pastes and sizes
    b"\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h"  # wrapped lines, plain keys, main screen, cursor
)
"""The sequences that Textual writes to a terminal at its end, in one piece."""


def terminal_released(app: App[Any]) -> bool:
    """Check if nothing is written to the terminal any more, because it is lost or left."""
    writer = getattr(app._driver, "_writer_thread", None)
    return writer is not None and not writer.is_alive()


def writes_to_terminal(thread: Thread | None) -> bool:
    """Check if a thread is Textual's thread that writes to the terminal."""
    return isinstance(thread, WriterThread)


def restore_terminal(app: App[Any]) -> None:
    """Restore the terminal without Textual's event loop, which may be stuck."""
    driver: Any = app._driver
    # Without a writer thread, the app has not changed the terminal.
    if getattr(driver, "_writer_thread", None) is None:
        return
    if driver.attrs_before is not None:
        with suppress(termios.error):
            termios.tcsetattr(driver.fileno, termios.TCSANOW, driver.attrs_before)
    with suppress(OSError):
        output = sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
        if select.select([], [output], [], 0)[1]:  # a stopped terminal accepts nothing
            os.write(output, RESTORING_SEQUENCES)


TITLE_FRAME: Final = 5
"""The cells of a border beside its title."""


class EdgeTitle(_BorderTitle):
    """A title in a border. A change draws only the cells of the old and the new title.

    Textual would draw the whole widget, even if the title stays the same.
    """

    def __set__(self, widget: Widget, title: Text | ContentType | None) -> None:
        previous_title = getattr(widget, self._internal_name)
        new_title = None if title is None else Content.from_text(title)
        setattr(widget, self._internal_name, new_title)
        if new_title != previous_title:
            is_lower = self._internal_name == "_border_subtitle"
            y = widget.outer_size.height - 1 if is_lower else 0
            width = widget.outer_size.width
            if not is_lower or widget.styles.border_subtitle_align == "left":
                cells = max(t.cell_length for t in (previous_title, new_title) if t is not None)
                width = min(width, cells + TITLE_FRAME)
            widget.refresh(Region(-widget.gutter.left, y - widget.gutter.top, width, 1))


class RenderCache(Widget):
    """A widget that caches its styles until they change, and its lines until they are drawn again.

    Textual is slower:

    - It forgets the styles of components whenever a line is drawn.
    - It computes a widget's own style through all its parents each time.
    - It goes through every line of every widget for each changed line of the screen.
    """

    css_prefix: ClassVar[str] = ""
    """The part of the names of component classes before ``--``."""
    css_parts: ClassVar[tuple[str, ...]] = ()
    """The names of component classes after ``--``."""

    auto_links: Reactive[bool] = Reactive(False)
    """False, because links look the same under the mouse."""

    border_title = EdgeTitle()
    border_subtitle = EdgeTitle()

    _own_style: Style | None = None
    """The cached style of the widget itself."""
    _part_styles: dict[str, Style] | None = None
    """The cached styles that components add to the widget's own style, by name."""
    _drawn_lines: list[Strip] | None = None
    """The cached lines of the region ``_drawn_region``."""
    _drawn_region: Region | None = None

    def __init_subclass__(cls, **options: bool) -> None:
        super().__init_subclass__(**options)
        if "css_parts" in vars(cls):
            cls.COMPONENT_CLASSES = {f"{cls.css_prefix}--{part}" for part in cls.css_parts}

    def notify_style_update(self) -> None:
        """Forget styles and lines, because other rules apply now."""
        self._forget_styles()
        self._drawn_lines = None
        super().notify_style_update()

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Draw some regions; without regions, forget the cached styles and draw the whole widget.

        Args:
            regions: The regions to draw; none for the whole widget.
            repaint: As in Textual.
            layout: As in Textual.
            recompose: As in Textual.
        """
        if not regions:
            self._forget_styles()
        if layout:
            # Textual clears its cache of box sizes only at the first of several requests. After a
            # layout between two requests, the old size would stay.
            self._box_model_cache.clear()
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def redraw(self) -> None:
        """Draw all lines with the cached styles."""
        self.refresh(self.size.region)

    def _forget_styles(self) -> None:
        self._own_style = None
        self._part_styles = None

    @property
    def rich_style(self) -> Style:
        """The style of the widget itself."""
        if self._own_style is None:
            self._own_style = super().rich_style
        return self._own_style

    def get_component_rich_style(
        self, *names: str, partial: bool = False, default: Style | None = None
    ) -> Style:
        """Return the style of a component. The partial style of a single component is cached.

        Args:
            names: The component classes.
            partial: True to leave out the widget's own style.
            default: The style of a component without rules.
        """
        if not partial or len(names) != 1:
            return super().get_component_rich_style(*names, partial=partial, default=default)
        if self._part_styles is None:
            self._part_styles = {}
        (name,) = names
        style = self._part_styles.get(name)
        if style is None:
            style = super().get_component_rich_style(name, partial=True, default=default)
            self._part_styles[name] = style
        return style

    def _part(self, name: str) -> Style:
        """Return the style that a part adds to the style of the widget."""
        return self.get_component_rich_style(f"{self.css_prefix}--{name}", partial=True)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the lines of the widget with its border. Only changed lines are drawn."""
        changed_lines = [y for y in crop.line_range if self._styles_cache.is_dirty(y)]
        if self._drawn_lines is None or self._drawn_region != crop:
            self._drawn_lines = super().render_lines(crop)
            self._drawn_region = crop
        elif changed_lines:
            first = changed_lines[0]
            end = changed_lines[-1] + 1
            changed_region = Region(crop.x, first, crop.width, end - first)
            self._drawn_lines[first - crop.y : end - crop.y] = super().render_lines(changed_region)
        return self._drawn_lines

    def _set_dirty(self, *regions: Region) -> None:
        """Forget the cached lines if the whole widget must be drawn.

        That is so without regions. Textual does not mark the lines of the border as changed then.
        """
        if not regions:
            self._drawn_lines = None
        super()._set_dirty(*regions)


class CachedScrollBar(RenderCache, ScrollBar):
    """A scroll bar that caches its lines. Textual goes through them for every frame."""


class SizedScrollView(ScrollView):
    """A scrolled widget that draws its scroll bar only after a change of size.

    With a border, Textual would draw the scroll bar after every layout, in a frame of its own.
    """

    _laid_out: tuple[Size, ...] = ()
    """The sizes of the last layout."""

    def notify_style_update(self) -> None:
        """Forget the sizes, because other rules apply now."""
        self._laid_out = ()
        super().notify_style_update()

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        """Draw the scroll bar and lay out again if a size has changed."""
        # Textual compares the new virtual size with the widget's own, and scrolls by the latter.
        sizes = (size, virtual_size, container_size, self.virtual_size)
        if sizes == self._laid_out:
            return False
        self._laid_out = sizes
        return super()._size_updated(size, virtual_size, container_size, layout)

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The vertical scroll bar, created when first needed."""
        if self._vertical_scrollbar is None:
            self._vertical_scrollbar = CachedScrollBar(thickness=self.scrollbar_size_vertical)
            self._vertical_scrollbar.display = False
            self.app._start_widget(self, self._vertical_scrollbar)
        return self._vertical_scrollbar


def active_binding(screen: Screen[Any], key: str) -> ActiveBinding | None:
    """Return the binding of a key that acts now, or None.

    Textual's ``Screen.active_bindings`` would check the bindings of all keys, for half a
    millisecond.

    Args:
        screen: The topmost screen.
        key: The name of the key.
    """
    active: ActiveBinding | None = None
    for node, bindings in screen._modal_binding_chain:
        for binding in bindings.key_to_bindings.get(key, ()):
            state = screen.app._check_action_state(binding.action, node)
            wins = active is None or (binding.priority and not active.binding.priority)
            if wins and state is not False:
                active = ActiveBinding(node, binding, bool(state), binding.tooltip)
    return active


def set_virtual_size_undrawn(widget: Widget, size: Size) -> None:
    """Set the size of the scrolled area without a layout of the screen.

    Args:
        widget: The widget.
        size: The size.
    """
    widget.set_reactive(Widget.virtual_size, size)
    if widget.is_mounted:
        widget._scroll_update(size)
