"""All that reaches past the public interface of Textual and Rich, each with what it is for.

Checked against Textual 8.2.8 and Rich 15.0.0; ``tests/ui/test_textual_internals.py`` fails where a
later version does one of these things in another way. What stands here is as small as it can be:
the rest of ``ui`` derives from these classes and calls these functions.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from rich import cells
from rich.console import RenderableType
from rich.style import Style
from textual import events
from textual.app import App
from textual.content import Content
from textual.css.styles import RenderStyles
from textual.css.stylesheet import Stylesheet as TextualStylesheet
from textual.dom import DOMNode
from textual.drivers._writer_thread import WriterThread
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import Worker, WorkerFailed, get_current_worker

from mast_tui.ui.crashes import log_error, log_traceback

if TYPE_CHECKING:
    from rich.cells import CellTable


class CellTables:
    """The widths of characters in cells, with one cell for each spacing mark.

    Vowel signs of Indic scripts, Khmer and Myanmar (category Mc) take a cell of their own in xterm,
    tmux, the terminals of VTE and wherever the C library is asked. Rich gives them none, so that
    each of them would move the rest of its line, and the frame, by one cell.
    """

    def __init__(self, load: Callable[[str], CellTable]) -> None:
        """Begin without a table.

        Args:
            load: Reads Rich's table for a version of Unicode.
        """
        self._load = load
        self._tables: dict[str, CellTable] = {}

    def __call__(self, unicode_version: str = "auto") -> CellTable:
        """Return the table for a version of Unicode; it is made when text first needs it."""
        table = self._tables.get(unicode_version)
        if table is None:
            rich_table = self._load(unicode_version)
            widths = [
                part
                for first, last, width in rich_table.widths
                for part in _with_spacing_marks(first, last, width)
            ]
            table = rich_table._replace(widths=widths)
            self._tables[unicode_version] = table
        return table


def _with_spacing_marks(first: int, last: int, width: int) -> Iterator[tuple[int, int, int]]:
    """Yield the parts of a range of code points of one width, spacing marks apart."""
    if width:
        yield first, last, width
        return
    for cells_taken, codes in groupby(range(first, last + 1), key=_spacing_cells):
        found = list(codes)
        yield found[0], found[-1], cells_taken


def _spacing_cells(code: int) -> int:
    """Return how many cells a code point takes that Rich gives none."""
    if unicodedata.category(chr(code)) != "Mc":
        return 0
    return 2 if unicodedata.east_asian_width(chr(code)) == "W" else 1


def count_spacing_marks() -> None:
    """Have Rich and Textual give each spacing mark a cell; more calls change nothing."""
    load: Callable[[str], CellTable] | None = getattr(cells, "load_cell_table", None)
    if load is not None and not isinstance(load, CellTables):
        vars(cells)["load_cell_table"] = CellTables(load)
        cells.get_character_cell_size.cache_clear()
        cells.cached_cell_len.cache_clear()


class ComponentStyles(dict[str, RenderStyles]):
    """The styles of a widget's component classes, each worked out when it is first asked for."""

    def __init__(self, stylesheet: Stylesheet, node: DOMNode) -> None:
        super().__init__()
        self._stylesheet = stylesheet
        self._node = node

    def __contains__(self, name: object) -> bool:
        return name in self._node._get_component_classes()

    def __missing__(self, name: str) -> RenderStyles:
        # As Textual does it.
        component = DOMNode(classes=name)
        component._attach(self._node)
        self._stylesheet.apply(component, animate=False)
        self[name] = component.styles
        return component.styles


class Stylesheet(TextualStylesheet):
    """Styles for parts of a widget are worked out once something is drawn with them.

    Textual does it for all component classes of a widget whenever its focus or one of its classes
    changes: a widget that shows text in thirty colours would spend milliseconds of a key on it.
    """

    def copy(self) -> Stylesheet:
        copied = Stylesheet(variables=self._variables.copy())
        copied.source = self.source.copy()
        return copied

    def _process_component_classes(self, node: DOMNode) -> None:
        if not node._get_component_classes():
            return
        used, node._component_styles = node._component_styles, ComponentStyles(self, node)
        if any(node._component_styles[name] != styles for name, styles in used.items()):
            node.refresh()


class TextualApp(App[None]):
    """An app that reads styles once and keeps a log of what nobody expected.

    Textual would print such an error with the values of variables, which hold text of traces;
    ``TEXTUAL=debug`` still has it do so.
    """

    crash: str | None = None
    """What has ended the app though nobody expected it, in words, with the log's place."""

    # The terminal's focus

    async def on_event(self, event: events.Event) -> None:
        """Handle an event; ignore reports that the terminal has gained or lost the focus.

        Textual would take the focus off the widget that has it and give it back with the next key.
        A dialog that opens meanwhile would get none, and its first keys would be lost. The cursor
        stays visible in a window without focus.

        A report of the size that the screen has already draws the whole screen again: a browser
        that connects again shows an old picture.
        """
        if isinstance(event, events.Resize) and event.size == self._size and self._screen_stack:
            self.screen.refresh()
        if not isinstance(event, events.AppFocus | events.AppBlur):
            await super().on_event(event)

    # Styles

    def __init__(self) -> None:
        count_spacing_marks()
        super().__init__()
        self.stylesheet = Stylesheet(variables=self.stylesheet._variables)

    def add_styles(self, path: Path) -> None:
        """Take in another file of styles.

        Textual would parse all others again with it, and style every widget anew.
        """
        if not self.stylesheet.has_source(str(path)):
            self.stylesheet.add_source(path.read_text("utf-8"), (str(path), ""))

    def _load_screen_css(self, screen: Screen[object]) -> None:
        # Called with each screen before it is shown: what is read already is not read again.
        for path in screen.css_path:
            self.add_styles(Path(path))
        super()._load_screen_css(screen)

    # What nobody expected

    def worker_failed(self, worker: Worker[Any], words: str) -> None:
        """Work beside the screen broke; ``words`` say so and where the log is."""

    def _handle_exception(self, error: Exception) -> None:
        # Textual brings all errors here that a handler or a worker did not catch.
        if "debug" in self.features:
            super()._handle_exception(error)
            return
        if self._exception is None:  # what run_test raises at its end
            self._exception = error
            self._exception_event.set()
        if isinstance(error, WorkerFailed):
            self.worker_failed(get_current_worker(), log_error(error.error))
        elif self.crash is None:
            self._end(log_error(error))

    def panic(self, *renderables: RenderableType) -> None:
        """End the app where Textual has only a traceback to show, not the error it is of."""
        if "debug" in self.features:
            super().panic(*renderables)
        elif self.crash is None:
            from rich.traceback import Traceback

            shown = next((one for one in renderables if isinstance(one, Traceback)), None)
            self._end("unexpected end" if shown is None else log_traceback(shown))

    def _end(self, words: str) -> None:
        # As Textual ends an app that has panicked; ``exit`` would wait for messages.
        self.crash = words
        self._return_code = 1
        self._close_messages_no_wait()

    # The terminal and the process

    def action_suspend_process(self) -> None:
        """Stop, with all that runs beside it, until the shell has it go on.

        Textual's own stops this process alone, and does so where nothing could bring it back.
        """
        driver = self._driver
        if driver is None or not driver.can_suspend:
            return
        if os.getpgrp() == os.getsid(0):
            # No shell would notice that it has stopped, and nothing could have it go on.
            self.notify("No shell has started the app, so nothing could bring it back.")
            return
        self.app_suspend_signal.publish(self)
        os.killpg(0, signal.SIGTSTP)  # the driver restores the terminal, and then stops


RESTORED: Final = (
    b"\x1b[?2026l"  # a frame that is held back is let go
    b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # no mouse
    b"\x1b[?1004l\x1b[?2004l\x1b[?2048l"  # no focus, no marked pastes, no sizes
    b"\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h"  # lines wrap, plain keys, the screen of before, a cursor
)
"""What Textual writes to a terminal when it leaves, in one piece."""


def terminal_released(app: App[Any]) -> bool:
    """Whether nothing is written to the terminal any more: the app is suspended, has lost the
    terminal, or has left it."""
    writer = getattr(app._driver, "_writer_thread", None)
    return writer is not None and not writer.is_alive()


def writes_to_terminal(thread: Thread | None) -> bool:
    """Whether a thread is the one by which Textual writes to the terminal."""
    return isinstance(thread, WriterThread)


def restore_terminal(app: App[Any]) -> None:
    """Restore the terminal past Textual, where its loop does not do it."""
    driver: Any = app._driver
    if getattr(driver, "_writer_thread", None) is None:
        return
    if driver.attrs_before is not None:
        with suppress(termios.error):
            termios.tcsetattr(driver.fileno, termios.TCSANOW, driver.attrs_before)
    with suppress(OSError):
        output = sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
        if select.select([], [output], [], 0)[1]:  # one that is held takes nothing
            os.write(output, RESTORED)


class RenderCache(Widget):
    """A widget that keeps its styles until they change, and its lines until they are to be drawn
    again.

    Textual forgets the styles of components whenever any line is to be drawn again, works out a
    widget's own style, through all that it stands in, each time that it is asked for, and goes
    over every line of every widget for each line of the screen that has changed.
    """

    css_prefix: ClassVar[str] = ""
    """What the names of the widget's ``COMPONENT_CLASSES`` begin with, before ``--``."""
    css_parts: ClassVar[tuple[str, ...]] = ()
    """The parts of the widget that have styles of their own: what stands behind ``--``."""

    _own_style: Style | None = None
    _part_styles: dict[str, Style] | None = None
    _lines_drawn: tuple[Region, list[Strip]] | None = None

    def __init_subclass__(cls, **options: bool) -> None:
        super().__init_subclass__(**options)
        if "css_parts" in vars(cls):
            cls.COMPONENT_CLASSES = {f"{cls.css_prefix}--{part}" for part in cls.css_parts}

    def notify_style_update(self) -> None:
        """Other rules hold from now on."""
        self._forget_styles()
        self._lines_drawn = None
        super().notify_style_update()

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """As ever; where all is drawn anew the styles are asked for anew, too."""
        if not regions:
            self._forget_styles()
        if layout:
            # Textual counts up what it keeps box sizes by only with the first of several requests:
            # where a screen is laid out between two of them, the size of the first would stay.
            self._box_model_cache.clear()
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _forget_styles(self) -> None:
        self._own_style = self._part_styles = None

    @property
    def rich_style(self) -> Style:
        """The style of the widget itself."""
        if self._own_style is None:
            self._own_style = super().rich_style
        return self._own_style

    def get_component_rich_style(
        self, *names: str, partial: bool = False, default: Style | None = None
    ) -> Style:
        """The style of a component; with ``partial`` only what it adds to the widget's own."""
        if not partial or len(names) != 1:
            return super().get_component_rich_style(*names, partial=partial, default=default)
        if self._part_styles is None:
            self._part_styles = {}
        style = self._part_styles.get(names[0])
        if style is None:
            style = super().get_component_rich_style(names[0], partial=True, default=default)
            self._part_styles[names[0]] = style
        return style

    def _part(self, name: str) -> Style:
        """What a part of the widget, named as in its component classes, adds to its own style."""
        return self.get_component_rich_style(f"{self.css_prefix}--{name}", partial=True)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The widget's lines with all that stands around them; only those that have changed are
        made."""
        changed = [y for y in crop.line_range if self._styles_cache.is_dirty(y)]
        if self._lines_drawn is None or self._lines_drawn[0] != crop:
            self._lines_drawn = (crop, super().render_lines(crop))
        elif changed:
            first, end = changed[0], changed[-1] + 1
            part = Region(crop.x, first, crop.width, end - first)
            self._lines_drawn[1][first - crop.y : end - crop.y] = super().render_lines(part)
        return self._lines_drawn[1]

    def _set_dirty(self, *regions: Region) -> None:
        # Textual's one place for what is to be drawn; without regions that is everything, and the
        # lines that it marks are too few by those of the border.
        if not regions:
            self._lines_drawn = None
        super()._set_dirty(*regions)


def show_titles_undrawn(widget: Widget, title: Content | None, subtitle: Content | None) -> None:
    """Set what stands in a widget's border; its setters would draw the whole widget anew."""
    widget._border_title, widget._border_subtitle = title, subtitle


def titles_of(widget: Widget) -> tuple[Content | None, Content | None]:
    """What stands in a widget's border, as it is drawn; its getters give it as markup."""
    return widget._border_title, widget._border_subtitle


def set_virtual_size_undrawn(widget: Widget, size: Size) -> None:
    """Set how much there is to scroll over; set as usual, the screen would be laid out anew."""
    widget.set_reactive(Widget.virtual_size, size)
    if widget.is_mounted:
        widget._scroll_update(size)
