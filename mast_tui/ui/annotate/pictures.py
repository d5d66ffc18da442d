"""The pictures of the span under the cursor: their description, drawing and viewer."""

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
from textual.containers import Container
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
"""The formats that may be decoded."""

_NO_VIEWER: Final = "No viewer here ({}); 'mast-tui page' writes the run with its pictures"

_NO_LIBRARY: Final = "To see pictures here: pip install 'mast-tui[pictures]'"


_LARGEST_SIZE: Final = (2000, 2000)
"""The largest size of a drawn picture, in pixels."""


_MAX_PIXELS: Final = 50_000_000
"""The most pixels of a decoded picture. Decoding so many takes some seconds and 200 MB."""


class PictureError(MastError):
    """An error: a picture cannot be drawn or opened. The message is for the user."""


class Pictures:
    """The pictures of the span under the cursor."""

    def __init__(self, screen: AnnotateScreen) -> None:
        """Begin without pictures."""
        self._screen = screen
        self._finder: PictureFinder | None = None
        """The finder of pictures in ``_finder_spans``."""
        self._finder_spans: Spans | None = None
        self._current_span: tuple[Trace | None, int] = (None, -1)
        """The trace and the index of the span under the cursor."""
        self._current_pictures: tuple[Picture, ...] = ()
        """The pictures found in this span."""
        self._is_searching = False
        self._show_without_pictures: Callable[[], None] | None = None
        """The function to call if the search finds no picture; None unless the user waits."""
        self._folder: TemporaryDirectory[str] | None = None
        """The folder with the files for the viewer; None before the first one."""

    def find(self, trace: Trace, index: int, text: str) -> None:
        """Look for the pictures of a span in the background, if its text may mention any.

        Args:
            trace: The trace.
            index: The index of the span.
            text: The text of the span.
        """
        self._screen.work.stop("pictures")
        self._current_span = (trace, index)
        self._current_pictures = ()
        self._show_without_pictures = None  # the user no longer waits for the previous span
        self._is_searching = may_have_pictures(text)
        if self._is_searching:
            find_pictures = partial(self._find_pictures, trace, index)
            self._screen.work.run("pictures", find_pictures, self._store_pictures)

    def _find_pictures(self, trace: Trace, index: int) -> tuple[Picture, ...]:
        # Another trace, or the same trace read again, has other ``spans``.
        if self._finder is None or self._finder_spans is not trace.spans:
            self._finder = PictureFinder(trace)
            self._finder_spans = trace.spans
        try:
            return self._finder.of_span(index)
        except OSError:
            return ()  # the text of the span says why the file cannot be read

    def _store_pictures(self, pictures: tuple[Picture, ...]) -> None:
        """Store the pictures that were found, and name them in the title of the span.

        If the user waits for them, open them, or call ``_show_without_pictures`` if there are none.
        """
        self._current_pictures = pictures
        self._is_searching = False
        self._screen.name_span()
        if self._show_without_pictures is not None:
            self.show(self._show_without_pictures)

    def of_span(self, trace: Trace, index: int) -> tuple[Picture, ...]:
        """Return the pictures found so far in a span; none unless it is under the cursor.

        Args:
            trace: The trace.
            index: The index of the span.
        """
        return self._current_pictures if self._current_span == (trace, index) else ()

    def summary(self, trace: Trace, index: int) -> str:
        """Return the type and size of the picture of a span, or the number of several pictures.

        Without pictures the text is empty.

        Args:
            trace: The trace.
            index: The index of the span.
        """
        pictures = self.of_span(trace, index)
        if len(pictures) > 1:
            return counted(len(pictures), "picture")
        return pictures[0].description if pictures else ""

    def show(self, show_without_pictures: Callable[[], None]) -> None:
        """Show the pictures of the span under the cursor, or wait until they are found.

        Args:
            show_without_pictures: Called if the span has no pictures.
        """
        trace = self._screen.state.trace
        index = self._screen.state.index
        pictures = () if trace is None else self.of_span(trace, index)
        self._show_without_pictures = None
        if pictures:
            self._screen.app.push_screen(PictureScreen(self, pictures, index + 1))
        elif self._is_searching:
            self._show_without_pictures = show_without_pictures
        else:
            show_without_pictures()

    def open(self, picture: Picture) -> None:
        """Write a picture to a temporary file, and open it in the system's viewer.

        Raises:
            PictureError: The data of the picture is missing, or there is no viewer.
        """
        if picture.data is None:
            raise PictureError(f"Not opened: {picture.description}")
        if self._screen.app.is_web:
            raise PictureError(_NO_VIEWER.format("the app runs on a server"))
        command = viewer_command(os.environ, sys.platform)
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="mast-tui-", ignore_cleanup_errors=True)
        folder_path = Path(self._folder.name)
        file_number = len(list(folder_path.iterdir())) + 1
        path = folder_path / f"picture-{file_number}.{picture.type_name.lower()}"
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
        environment: The environment variables of the process.
        platform: The system, as in ``sys.platform``.

    Raises:
        PictureError: The command is not installed, or there is no display.
    """
    is_mac = platform == "darwin"
    command_name = "open" if is_mac else "xdg-open"
    has_display = is_mac or environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    command = which(command_name, path=environment.get("PATH"))
    if command is not None and has_display:
        return command
    missing = f"no {command_name}" if command is None else "no display"
    raise PictureError(_NO_VIEWER.format(missing))


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

    def __init__(self, owner: Pictures, pictures: Sequence[Picture], span_number: int) -> None:
        """Show pictures.

        Args:
            owner: Opens the pictures in the viewer.
            pictures: The pictures, at least one.
            span_number: The number of the span, for the title.
        """
        super().__init__(kind="picture")
        self._owner = owner
        self._pictures = pictures
        self._span_number = span_number
        self._position = 0
        """The position of the picture on screen in ``_pictures``."""
        self._widget_class: type[Widget] | None = None
        """The widget that draws pictures; None without its library."""

    def compose_rows(self) -> ComposeResult:
        """Yield the container of the picture, and the line for messages below it."""
        self._drawing = Container()
        yield self._drawing
        yield Static(classes="hint")

    async def on_mount(self) -> None:
        """Draw the first picture."""
        self._widget_class = picture_widget(self.app)
        await self._show_picture()

    async def _show_picture(self) -> None:
        """Draw the present picture, with its number and description as title."""
        picture = self._pictures[self._position]
        title = f"#{self._span_number}"
        if len(self._pictures) > 1:
            title += f" · picture {self._position + 1} of {len(self._pictures)}"
        self.box.border_title = plain_title(f"{title} · {picture.description}")
        await self._drawing.remove_children()
        widget = await self._picture_or_reason(picture)
        if not self._drawing.is_attached:
            return  # the screen was closed while the picture was decoded
        await self._drawing.mount(widget)
        self.say_below("")  # the message was on the picture before

    async def _picture_or_reason(self, picture: Picture) -> Widget:
        """Return a widget with the picture, or with the reason why it cannot be drawn."""
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
        await self._show_picture()

    def action_open(self) -> None:
        """Open the picture in the system's viewer."""
        try:
            self._owner.open(self._pictures[self._position])
        except PictureError as error:
            self.say_below(str(error), error=True)
        else:
            self.say_below("Opened in the viewer")


def picture_widget(app: App[Any]) -> type[Widget] | None:
    """Return the widget class that draws pictures; None without its library.

    The import of the library queries the terminal, so the app is suspended meanwhile.
    """
    # In a terminal that does not report its size, the library would log a traceback.
    logging.getLogger("textual_image").setLevel(logging.CRITICAL)
    must_suspend = "textual_image.widget" not in sys.modules and sys.__stdout__ is not None
    can_suspend = True
    try:
        try:
            with app.suspend() if must_suspend else nullcontext():
                widgets: Any = import_module("textual_image.widget")
        except SuspendNotSupported:
            can_suspend = False
            widgets = import_module("textual_image.widget")
    except ImportError:
        return None
    if not can_suspend:
        return widgets.HalfcellImage  # type: ignore[no-any-return]
    is_terminal = sys.__stdout__ is not None and sys.__stdout__.isatty() and not app.is_web
    return widgets.Image if is_terminal else widgets.HalfcellImage  # type: ignore[no-any-return]


def decoded(data: bytes) -> Any:
    """Return the first frame of a picture as an image of the library, no larger than a screen.

    Raises:
        PictureError: The picture is damaged, or too large to decode.
    """
    library: Any = import_module("PIL.Image")
    try:
        image = library.open(BytesIO(data), formats=_FORMATS)
        if image.width * image.height > _MAX_PIXELS:
            raise ValueError(f"it has more than {_MAX_PIXELS:,} pixels")
        # A JPEG is scaled while it is decoded, which saves time and memory.
        image.draft("RGB", _LARGEST_SIZE)
        image.thumbnail(_LARGEST_SIZE)
        return image.convert("RGB")
    except (OSError, ValueError, SyntaxError, library.DecompressionBombError) as error:
        raise PictureError(f"This picture cannot be drawn: {error}") from error
