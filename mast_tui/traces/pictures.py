"""The pictures in a trace, read from its source or from files beside it, never from the network.

Readers put a note such as ``[image]`` in place of a picture. When a span is shown, the pictures are
searched for in its source: as Base64, or as names of files.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from mast_tui.traces.file_places import FilePlace, place_in_file
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Trace

MAX_BYTES: Final = 32 << 20
"""The most bytes of a picture that is read."""

_BRACKETS: Final = re.compile(r"\[([^\[\]\n]{1,240})\]")
_NOTE: Final = re.compile(
    r"[a-z_-]*(?:image|screenshot)[a-z_-]*(?: .*)?|file (?:image/.*|.*\.(?:png|jpe?g|gif|webp))",
    re.IGNORECASE,
)
_NOTE_WORDS: Final = ("mage", "creenshot", "[file ", "IMAGE", "SCREENSHOT")
_LONGEST_NOTE: Final = 300
_ENCODED: Final = ("iVBORw0KGgo", "/9j/", "_9j_", "R0lGOD", "UklGR")
"""The first letters of PNG, JPEG, GIF and WebP in Base64; of JPEG also in the alphabet of URLs."""

_SHORTEST_ENCODED: Final = 40
_DATA_URL: Final = re.compile(r"data:image/[a-z0-9.+-]{1,40};base64,", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"https?://\S{1,4000}", re.IGNORECASE)
_FILE_NAME: Final = re.compile(
    r"(?:file://)?([^\0\n]{1,1000}\.(?:png|jpe?g|gif|webp))", re.IGNORECASE
)
_PICTURE_KEY: Final = re.compile(r"image|screenshot|picture", re.IGNORECASE)
_MAX_CACHED_BYTES: Final = 64 << 20
"""The most bytes of a document that stays in memory for the next span."""

_NEIGHBOURS: Final = 64
"""The number of spans on each side that may come from the same record."""

_FRAME_MARKERS: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The JPEG markers that precede the size."""


class _PictureText(NamedTuple):
    """A text that is a picture or names a picture.

    Attributes:
        pointer: The JSON pointer of the text.
        text: The text.
        in_picture_field: True if the name or type of a field around the text suggests a picture.
    """

    pointer: str
    text: str
    in_picture_field: bool


class Picture(Struct, frozen=True):
    """A picture of a span.

    Attributes:
        name: The address or file that the trace names; empty for a picture within the trace.
        data: The bytes of the picture; None if it could not be read.
        problem: The reason why there is no data; else empty.
    """

    name: str
    data: bytes | None
    problem: str = ""

    @property
    def type_name(self) -> str:
        """The format: ``PNG``, ``JPEG``, ``GIF`` or ``WebP``; empty without data."""
        return "" if self.data is None else _type_of(self.data)

    @property
    def media_type(self) -> str:
        """The media type, such as ``image/png``."""
        return f"image/{self.type_name.lower()}"

    @property
    def size(self) -> tuple[int, int] | None:
        """The width and height in pixels; None if the picture does not state them."""
        return None if self.data is None else _pixel_size(self.data)

    @property
    def description(self) -> str:
        """The type, pixels and number of bytes; without data the name and the problem."""
        if self.data is None:
            return f"{self.name} ({self.problem})"
        size = self.size
        length = len(self.data)
        parts = [
            self.type_name,
            "" if size is None else f"{size[0]:,} × {size[1]:,}",
            f"{length / 1024:,.0f} KB" if length >= 1024 else f"{length} bytes",
        ]
        return ", ".join(filter(None, parts))


def may_have_pictures(text: str) -> bool:
    """Return whether a text may have a note such as ``[image]``, by a fast check."""
    return "[" in text and any(word in text for word in _NOTE_WORDS)


def count_picture_notes(text: str) -> int:
    """Count the notes in a text that stand for pictures, such as ``[image]``."""
    if not may_have_pictures(text):
        return 0
    contents = (match[1] for match in _BRACKETS.finditer(text))
    return sum(1 for content in contents if _NOTE.fullmatch(content))


def is_picture_note(text: str) -> bool:
    """Return whether a text is a note of a picture, and nothing else."""
    match = _BRACKETS.fullmatch(text.strip()) if len(text) < _LONGEST_NOTE else None
    return match is not None and _NOTE.fullmatch(match[1]) is not None


class PictureFinder:
    """A finder of the pictures of one trace, which keeps the latest document in memory."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._folder = trace.path.parent
        self._document: tuple[Path, int | None, object] | None = None

    def of_span(self, index: int) -> tuple[Picture, ...]:
        """Return the pictures of a span, in the order of the notes on pictures in its text.

        They are searched for in the value at the span's location in the source, and then in the
        value around it.

        Raises:
            OSError: The source cannot be read any more.
        """
        trace = self._trace
        notes = count_picture_notes(trace.text(index))
        location = place_in_file(trace.path, trace.span(index).place)
        if not notes or (location.line is None and not location.inside.startswith("/")):
            return ()
        pointers = self._pointers_around(index, location)
        record = self._source_value(index, location)
        pointer = location.inside
        picture_texts = self._picture_texts_at(record, pointer, pointers)
        if picture_texts or not pointer:
            # Other spans may have the same location.
            picture_texts = self._pictures_of_one_span(index, picture_texts, pointers)
        else:
            outer_pointer = pointer.rpartition("/")[0]
            picture_texts = self._picture_texts_at(record, outer_pointer, pointers)
        if len(picture_texts) > notes:  # Claude Code writes the picture of a result twice
            picture_texts = list({found.text: found for found in picture_texts}.values())
        pictures = map(self._picture_of_text, picture_texts)
        return tuple(picture for picture in pictures if picture is not None)

    def _pointers_around(self, index: int, location: FilePlace) -> dict[int, str]:
        """Return the JSON pointers of a span and its neighbours in one record, by span index."""
        first = max(0, index - _NEIGHBOURS)
        pointers = {}
        for other_index in range(first, min(len(self._trace), index + _NEIGHBOURS)):
            other_location = place_in_file(self._trace.path, self._trace.span(other_index).place)
            if other_location[:2] == location[:2]:  # the same file and line
                pointers[other_index] = other_location.inside
        return pointers

    def _source_value(self, index: int, location: FilePlace) -> object:
        """Return the JSON value of the file, or of the line if the location has one.

        A span on several JSON lines has a list of their values. Without JSON, return None or an
        empty list.
        """
        if self._document is not None:
            file, line, value = self._document
            if (file, line) == (location.file, location.line):
                return value
        if location.line is None:
            source = Source(location.file)
            value = source.json
            if source.size > _MAX_CACHED_BYTES:
                return value
        else:
            data = self._trace.spans.source_lines(index)
            if data is None:
                lines = as_utf8(Source(location.file).data).split(b"\n")
                data = lines[location.line - 1] if location.line <= len(lines) else b""
            try:
                values = [load_json(line) for line in data.splitlines() if line.strip()]
            except InvalidJSON:
                values = []
            value = values[0] if len(values) == 1 else values
        self._document = (location.file, location.line, value)
        return value

    @staticmethod
    def _picture_texts_at(
        record: object, pointer: str, pointers: Mapping[int, str]
    ) -> list[_PictureText]:
        """Return the texts of pictures in the value at a pointer, without those of inner spans.

        An inner span has its pointer below ``pointer``. ``pointers`` has the JSON pointers of all
        spans of the record.
        """
        value = record
        for part in pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, Mapping):
                value = value.get(name)
            elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
                value = value[int(name)]
            else:
                return []
        deeper_pointers = tuple(
            f"{other}/" for other in pointers.values() if other.startswith(f"{pointer}/")
        )
        return [
            picture_text
            for picture_text in _picture_texts_in(value, pointer)
            if not f"{picture_text.pointer}/".startswith(deeper_pointers)
        ]

    def _pictures_of_one_span(
        self, index: int, picture_texts: list[_PictureText], pointers: Mapping[int, str]
    ) -> list[_PictureText]:
        """Return the pictures of one of several spans at the same location.

        Each span takes as many pictures, in order, as its text has notes. If the numbers of notes
        and pictures differ, each span gets all pictures.
        """
        own_pointer = pointers[index]
        span_indices = [
            other_index for other_index, pointer in pointers.items() if pointer == own_pointer
        ]
        if len(span_indices) == 1:
            return picture_texts
        note_counts = [
            count_picture_notes(self._trace.text(span_index)) for span_index in span_indices
        ]
        if sum(note_counts) != len(picture_texts):
            return picture_texts
        position = span_indices.index(index)
        first = sum(note_counts[:position])
        return picture_texts[first : first + note_counts[position]]

    def _picture_of_text(self, picture_text: _PictureText) -> Picture | None:
        """Return the picture that a text is or names; None for any other text."""
        text = picture_text.text
        data_url = _DATA_URL.match(text)
        encoded = text if data_url is None else text[data_url.end() :]
        if data_url is not None or encoded.startswith(_ENCODED):
            return _decoded_picture(
                encoded, is_sure=data_url is not None or picture_text.in_picture_field
            )
        if not picture_text.in_picture_field:
            return None
        if _ADDRESS.fullmatch(text):
            return Picture(text, None, "a URL, which is not fetched")
        match = _FILE_NAME.fullmatch(text)
        return None if match is None else self._from_file(match[1])

    def _from_file(self, name: str) -> Picture:
        """Return the picture in a file, or the reason why it cannot be shown."""
        folder = self._folder.resolve()
        path = (folder / name).resolve()
        if not path.is_relative_to(folder):
            return Picture(name, None, "a file outside the trace's folder, which is not read")
        try:
            with open_regular(path) as file:
                data = file.read(MAX_BYTES + 1) or b""  # None if no data is ready
        except OSError as error:
            return Picture(name, None, error.strerror or str(error))
        if len(data) > MAX_BYTES:
            return Picture(name, None, "more than 32 MB")
        return Picture(name, data) if _type_of(data) else Picture(name, None, "no picture")


def _picture_texts_in(value: object, pointer: str) -> Iterator[_PictureText]:
    """Yield the texts in a JSON value that are pictures or may name one, in order."""
    pending: list[tuple[object, str, bool]] = [(value, pointer, False)]
    while pending:
        value, pointer, in_picture_field = pending.pop()
        if isinstance(value, str):
            is_encoded = len(value) >= _SHORTEST_ENCODED and value.startswith(_ENCODED)
            names_picture = _ADDRESS.fullmatch(value) or _FILE_NAME.fullmatch(value)
            if is_encoded or _DATA_URL.match(value) or (in_picture_field and names_picture):
                yield _PictureText(pointer, value, in_picture_field)
        elif isinstance(value, Mapping):
            kind = value.get("type")
            in_picture_field |= isinstance(kind, str) and bool(_PICTURE_KEY.search(kind))
            members = [
                (
                    member,
                    f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}",
                    in_picture_field or bool(_PICTURE_KEY.search(name)),
                )
                for name, member in value.items()
            ]
            pending += reversed(members)  # the first is examined next
        elif isinstance(value, list):
            items = [
                (item, f"{pointer}/{number}", in_picture_field) for number, item in enumerate(value)
            ]
            pending += reversed(items)


def _decoded_picture(encoded: str, *, is_sure: bool) -> Picture | None:
    """Return the picture in a Base64 text.

    For a text without a readable picture, return a picture with a problem if ``is_sure``, else
    None.
    """
    problem = "damaged"
    if len(encoded) > 4 * MAX_BYTES // 3:
        problem = "more than 32 MB"
    else:
        try:
            # Google's libraries write the alphabet of URLs.
            data = b64decode("".join(encoded.split()), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            data = b""
        if _type_of(data):
            return Picture("", data)
    return Picture("a picture", None, problem) if is_sure else None


def _type_of(data: bytes) -> str:
    """Return the format of a picture by its first bytes; empty for an unknown format."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    return "WebP" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def _pixel_size(data: bytes) -> tuple[int, int] | None:
    """Return the width and height in the header of a picture, if it has them."""
    match _type_of(data):
        case "PNG" if len(data) >= 24:
            return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
        case "GIF" if len(data) >= 10:
            return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
        case "JPEG":
            return _jpeg_pixel_size(data)
        case "WebP" if data[12:16] == b"VP8X" and len(data) >= 30:
            width = int.from_bytes(data[24:27], "little") + 1
            return width, int.from_bytes(data[27:30], "little") + 1
        case "WebP" if data[12:16] == b"VP8L" and len(data) >= 25:
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case "WebP" if data[12:16] == b"VP8 " and len(data) >= 30:
            width = int.from_bytes(data[26:28], "little") & 0x3FFF
            return width, int.from_bytes(data[28:30], "little") & 0x3FFF
        case _:
            return None


def _jpeg_pixel_size(data: bytes) -> tuple[int, int] | None:
    """Return the width and height in the first frame of a JPEG, if it has one."""
    offset = 2
    while offset + 9 <= len(data) and data[offset] == 0xFF:
        if data[offset + 1] in _FRAME_MARKERS:
            # The fields: marker (2 bytes), length (2), precision (1), height (2), width (2).
            height = int.from_bytes(data[offset + 5 : offset + 7])
            return int.from_bytes(data[offset + 7 : offset + 9]), height
        offset += 2 + int.from_bytes(data[offset + 2 : offset + 4])
    return None
