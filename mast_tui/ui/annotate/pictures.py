"""The pictures of the span under the cursor: their type and size, drawn, and in a viewer."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widget import Widget
from textual.widgets import Static

from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.traces.model import Spans, Trace
from mast_tui.traces.pictures import Picture, PictureFinder, may_have_pictures
from mast_tui.ui.dialogs.dialog import Dialog
from mast_tui.ui.wording import plain_lines, plain_title

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen

_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
"""The formats that the library may decode."""

_NO_LIBRARY: Final = "Pictures are drawn here with: pip install 'mast-tui[pictures]'"


_LARGEST: Final = (2000, 2000)
"""The most pixels of a picture that is drawn."""


_MAX_PIXELS: Final = 50_000_000
"""The most pixels of a picture that is decoded, which takes some seconds and 200 MB."""


class PictureError(MastError):
    """An error: a picture cannot be drawn or opened here; the message is for the user."""


class Pictures:
    """The pictures of the span under the cursor."""

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._finder: tuple[Spans, PictureFinder] | None = None
        """Finds pictures in the spans of one reading of a file."""
        self._current: tuple[Trace | None, int, tuple[Picture, ...]] = (None, -1, ())
        self._is_searching = False
        self._otherwise: Callable[[], None] | None = None
        """Called if the search that the user waits for finds no picture."""
        self._folder: TemporaryDirectory[str] | None = None

    def find(self, trace: Trace, index: int, text: str) -> None:
        """Look for the pictures of a span in the background, if its text has notes of some.

        Args:
            trace: The trace.
            index: The index of the span.
            text: The text of the span.
        """
        self._current = (trace, index, ())
        self._otherwise = None
        self._is_searching = may_have_pictures(text)
        if self._is_searching:
            self._screen.in_background(partial(self._find, trace, index), "pictures")

    def _find(self, trace: Trace, index: int) -> None:
        """Find the pictures of a span, in a worker thread."""
        finder = self._finder
        if finder is None or finder[0] is not trace.spans:
            self._finder = finder = (trace.spans, PictureFinder(trace))
        try:
            pictures = finder[1].of_span(index)
        except OSError:
            pictures = ()  # the text of the span says why the file cannot be read
        self._screen.call_later(self._keep, trace, index, pictures)

    def _keep(self, trace: Trace, index: int, pictures: tuple[Picture, ...]) -> None:
        if self._current[:2] != (trace, index):
            return
        self._current = (trace, index, pictures)
        self._is_searching = False
        self._screen.name_span()
        if self._otherwise is not None:
            self.show(self._otherwise)

    def of_span(self, trace: Trace, index: int) -> tuple[Picture, ...]:
        """Return the pictures of a span, as far as they are found.

        Args:
            trace: The trace.
            index: The index of the span.
        """
        return self._current[2] if self._current[:2] == (trace, index) else ()

    def summary(self, trace: Trace, index: int) -> str:
        """Return the type and size of the pictures of a span; empty for none.

        Args:
            trace: The trace.
            index: The index of the span.
        """
        pictures = self.of_span(trace, index)
        if len(pictures) > 1:
            return counted(len(pictures), "picture")
        return pictures[0].description if pictures else ""

    def show(self, otherwise: Callable[[], None]) -> None:
        """Draw the pictures of the span under the cursor, once they are found.

        Args:
            otherwise: Called if it has none.
        """
        trace = self._screen.state.trace
        index = self._screen.state.index
        pictures = () if trace is None else self.of_span(trace, index)
        self._otherwise = None
        if pictures:
            self._screen.app.push_screen(PictureScreen(self, pictures, index + 1))
        elif self._is_searching:
            self._otherwise = otherwise
        else:
            otherwise()

    def open(self, picture: Picture) -> None:
        """Open a picture in the system's viewer.

        Raises:
            PictureError: It is not at hand, or there is no viewer.
        """
        if picture.data is None:
            raise PictureError(f"Not opened: {picture.description}")
        if self._screen.app.is_web:
            raise PictureError(
                "A viewer would open on the server; 'mast-tui page' writes all pictures"
            )
        command = viewer_command(os.environ, sys.platform)
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="mast-tui-", ignore_cleanup_errors=True)
        number = len(list(Path(self._folder.name).iterdir())) + 1
        path = Path(self._folder.name) / f"picture-{number}.{picture.type_name.lower()}"
        path.write_bytes(picture.data)
        try:
            subprocess.Popen(
                [command, str(path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise PictureError(f"{command} cannot be run: {error.strerror}") from error

    def remove_files(self) -> None:
        """Remove the files that were written for the viewer."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def viewer_command(environment: Mapping[str, str], platform: str) -> str:
    """Return the command that opens a file in the system's viewer.

    Args:
        environment: The environment, which names the display.
        platform: The system, as in ``sys.platform``.

    Raises:
        PictureError: There is no such command, or no display.
    """
    name = "open" if platform == "darwin" else "xdg-open"
    has_display = platform == "darwin" or any(
        environment.get(variable) for variable in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    command = which(name, path=environment.get("PATH"))
    if command is None or not has_display:
        reason = "no display" if command is not None else f"no {name}"
        raise PictureError(
            f"No viewer here ({reason}); 'mast-tui page' writes the run with its pictures"
        )
    return command


class PictureScreen(Dialog[None]):
    """The pictures of one span, one at a time."""

    dialog_keys: ClassVar = (
        *(("z", "opens in the viewer"), ("] [", "next, previous picture"), ("Esc", "closes")),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("z,enter", "open", show=False),
        Binding("right_square_bracket,full_stop,right,n", "turn(1)", show=False),
        Binding("left_square_bracket,comma,left,N", "turn(-1)", show=False),
        Binding("q,Q", "leave", show=False),
    ]

    def __init__(self, part: Pictures, pictures: Sequence[Picture], number: int) -> None:
        """Show pictures.

        Args:
            part: Opens them in the viewer.
            pictures: At least one picture.
            number: The number of the span.
        """
        super().__init__()
        self._part = part
        self._pictures = pictures
        self._number = number
        self._position = 0
        self._widget_class: type[Widget] | None = None

    def compose(self) -> ComposeResult:
        """Yield the place of the picture and the line below it."""
        with Vertical(classes="dialog picture") as self._box:
            self._drawing = Container()
            yield self._drawing
            yield Static(classes="hint")

    async def on_mount(self) -> None:
        """Draw the first picture."""
        self._widget_class = picture_widget(self.app)
        await self._show()

    async def _show(self) -> None:
        picture = self._pictures[self._position]
        title = f"#{self._number}"
        if len(self._pictures) > 1:
            title += f" · picture {self._position + 1} of {len(self._pictures)}"
        self._box.border_title = plain_title(f"{title} · {picture.description}")
        await self._drawing.remove_children()
        widget = await self._drawn(picture)
        if not self._drawing.is_attached:
            return  # closed meanwhile
        await self._drawing.mount(widget)
        self.say_below("")

    async def _drawn(self, picture: Picture) -> Widget:
        """Return the widget that draws a picture, or says why it cannot be drawn."""
        if picture.data is None:
            return Static(plain_lines(picture.description))
        if self._widget_class is None:
            return Static(plain_lines(_NO_LIBRARY))
        try:
            return self._widget_class(await asyncio.to_thread(decoded, picture.data))
        except PictureError as error:
            return Static(plain_lines(str(error)))

    async def action_turn(self, step: int) -> None:
        """Show the next or previous picture."""
        self._position = (self._position + step) % len(self._pictures)
        await self._show()

    def action_open(self) -> None:
        """Open the picture in the system's viewer."""
        try:
            self._part.open(self._pictures[self._position])
        except PictureError as error:
            self.say_below(str(error), error=True)
        else:
            self.say_below("Opened in the viewer")


def picture_widget(app: App[Any]) -> type[Widget] | None:
    """Return the widget that draws pictures as the terminal can; None without the library.

    The library asks the terminal when it is imported, so the app lends the terminal for that.
    """
    # Of a terminal that does not tell its size the library logs a traceback to the terminal.
    logging.getLogger("textual_image").setLevel(logging.CRITICAL)
    is_imported = "textual_image.widget" in sys.modules
    try:
        lent = nullcontext() if is_imported or not sys.__stdout__ else app.suspend()
        with lent:
            widgets: Any = import_module("textual_image.widget")
    except SuspendNotSupported:
        widgets = import_module("textual_image.widget")
        return widgets.HalfcellImage  # type: ignore[no-any-return]
    except ImportError:
        return None
    is_terminal = sys.__stdout__ is not None and sys.__stdout__.isatty() and not app.is_web
    return widgets.Image if is_terminal else widgets.HalfcellImage  # type: ignore[no-any-return]


def decoded(data: bytes) -> Any:
    """Return the first frame of a picture as the library has it, no larger than a screen.

    Raises:
        PictureError: It is damaged, or too large to decode.
    """
    library: Any = import_module("PIL.Image")
    try:
        image = library.open(BytesIO(data), formats=_FORMATS)
        if image.width * image.height > _MAX_PIXELS:
            raise ValueError(f"it has more than {_MAX_PIXELS:,} pixels")
        image.draft("RGB", _LARGEST)
        image.thumbnail(_LARGEST)
        return image.convert("RGB")
    except (OSError, ValueError, SyntaxError, library.DecompressionBombError) as error:
        raise PictureError(f"This picture cannot be drawn: {error}") from error
