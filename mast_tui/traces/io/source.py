"""The parts of one file on disk, unpacked if it is compressed, and read on demand."""

from __future__ import annotations

import codecs
import hashlib
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from mast_tui.traces.io.decoding import WIDE_MARKS, as_utf8, decode
from mast_tui.traces.io.json_lines import LINES_LOOKED_AT, first_lines, is_no_json, json_records
from mast_tui.traces.io.json_values import (
    INVALID_ESCAPE,
    InvalidJSON,
    load_json,
    python_literal,
    without_surrogates,
)
from mast_tui.traces.io.opened_file import OpenedFile
from mast_tui.traces.io.packed import Unpacked, beginning, packing_of, unpack
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.model import Problem

if TYPE_CHECKING:
    from mast_tui.traces.io.json_repair import Repaired

HEAD_BYTES: Final = 64 * 1024
"""The first bytes of a file, for recognition and for the trace id of a file of lines."""

_MOST_RECORD_LINES: Final = 40
_ENOUGH_HEAD_LINES: Final = 8
"""The number of lines in the head below which recognition reads on."""

_MOST_HEAD_LINE_BYTES: Final = 16 << 20
"""The most bytes that recognition reads for complete lines."""

_LEAST_BYTES_PER_NULL: Final = 8
"""The least bytes of JSON for each NUL byte; with fewer bytes it is binary."""

_JSON_BEGINNING: Final = re.compile(rb'\s*(?:\{\s*"|\[\s*[\[{"])')
_LIST_OF_OBJECTS: Final = rb"\s*\[\s*\{"


class Source:
    """A file with its head, its whole content and its JSON, each read once, on demand.

    The content of a compressed file is unpacked. The first access of a property raises ``OSError``
    if the file cannot be read: ``UnreadableFile`` if it is no regular file, ``TooBig`` if its
    unpacked content is too big.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: tuple[Problem, ...] = ()
        """The damage of ``json``, set when it is read; empty if it is intact."""
        self.remarks: list[Problem] = []
        """Remarks about plug-ins that failed on the file, even if another reader has read it."""

    @cached_property
    def packing(self) -> str | None:
        """The name of the compression; None if the file is not compressed."""
        _opened, head = self._opened_and_head
        return packing_of(head)

    @cached_property
    def broken(self) -> str | None:
        """The reason why the unpacked content ends early; None if the file is intact."""
        return None if self._unpacked_content is None else self._unpacked_content.broken

    @cached_property
    def opened(self) -> OpenedFile:
        """The state of the file when its first bytes are read."""
        opened, _head = self._opened_and_head
        return opened

    @cached_property
    def size(self) -> int:
        """The length of the content in bytes."""
        if self._unpacked_content is None:
            return self.opened.size
        return len(self._unpacked_content.data)

    @cached_property
    def head(self) -> bytes:
        """The first ``HEAD_BYTES`` of the content."""
        _opened, packed_head = self._opened_and_head
        return packed_head if self.packing is None else self._unpacked_head[:HEAD_BYTES]

    @cached_property
    def data(self) -> bytes:
        """The whole content."""
        if self._unpacked_content is not None:
            return self._unpacked_content.data
        with open_regular(self.path) as file:
            return file.readall() or b""

    @cached_property
    def utf8(self) -> bytes:
        """The whole content as UTF-8 without a byte order mark."""
        return as_utf8(self.data)

    @cached_property
    def _head_is_all(self) -> bool:
        """True if the head is the whole content."""
        if self.packing is None:
            return len(self.head) == self.size
        return len(self._unpacked_head) <= HEAD_BYTES

    @cached_property
    def _unpacked_head(self) -> bytes:
        """The head of a compressed file, and one more byte, if there is one."""
        return beginning(self.path, HEAD_BYTES + 1)

    @cached_property
    def _opened_and_head(self) -> tuple[OpenedFile, bytes]:
        with open_regular(self.path) as file:
            return OpenedFile(self.path, file), file.read(HEAD_BYTES) or b""

    @cached_property
    def _unpacked_content(self) -> Unpacked | None:
        return None if self.packing is None else unpack(self.path)

    @cached_property
    def is_binary(self) -> bool:
        """True if the head has NUL bytes, but is not UTF-16, UTF-32 or JSON with few of them."""
        if self.head.startswith(WIDE_MARKS):
            return False
        null_count = self.head.count(b"\0")
        if _JSON_BEGINNING.match(self.head) is not None:
            return null_count * _LEAST_BYTES_PER_NULL > len(self.head)
        return null_count > 0

    @property
    def line_of_nul_bytes(self) -> int | None:
        """The number of the first line with a NUL byte in the head of a JSON file, if any."""
        position = self.head.find(b"\0")
        if position < 0 or _JSON_BEGINNING.match(self.head) is None:
            return None
        return self.head.count(b"\n", 0, position) + 1

    @cached_property
    def json(self) -> object | None:
        """The value of the file as one JSON document in any UTF encoding; None for other files.

        The literal of a Python dictionary is read like JSON. The value of a broken document is its
        intact parts, and ``damage`` lists its problems.
        """
        if as_utf8(self.head).lstrip()[:1] not in (b"{", b"[") or is_no_json(self.head):
            return None  # the head is enough, so that a big log is not read
        parsed: object
        try:
            parsed = orjson.loads(self.data.removeprefix(codecs.BOM_UTF8))
        except orjson.JSONDecodeError:
            parsed = self._read_damaged_json()
        return parsed

    def _read_damaged_json(self) -> object | None:
        """Return the value of a document that orjson refuses, and set ``damage``.

        Return None if the file is no JSON document.
        """
        text, problem = decode(self.data)
        problems: tuple[Problem, ...] = () if problem is None else (problem,)
        try:
            value = load_json(text)
        except InvalidJSON:
            literal = python_literal(text)
            if literal is not None:
                self.damage = problems
                return without_surrogates(literal)
            salvaged = repaired_json(text)
            if salvaged is None:
                return None
            value = salvaged.value
            problems += salvaged.problems
        self.damage = problems
        return value

    @cached_property
    def json_lines(self) -> list[object]:
        """The first values of a file with one JSON record a line; empty for any other file.

        The whole content is examined only if the first line is longer than the head.
        """
        if as_utf8(self.head).lstrip()[:1] not in (b"{", b"["):
            return []
        data = self.head
        is_whole_file = self._head_is_all
        if not is_whole_file and b"\n" not in data.lstrip():
            data = self.data
        data = as_utf8(data)
        if not is_whole_file:  # the last line may be incomplete
            data = data[: data.rfind(b"\n") + 1]
        lines = first_lines(data.decode("utf-8", "replace"), LINES_LOOKED_AT + 1)
        is_one_document = len(lines) == 1 and is_whole_file
        if not lines or is_one_document:
            return []
        return json_records(lines)

    @cached_property
    def head_lines(self) -> list[bytes]:
        """The complete first lines as UTF-8, split at ``\\n`` only.

        They are the lines of the head, and more if the head has few lines.
        """
        head = self.head
        is_all = self._head_is_all
        # The lines of a list are no records, and more of them would not help recognition.
        length = _MOST_HEAD_LINE_BYTES if self._is_list_of_objects else HEAD_BYTES
        while (
            not is_all and head.count(b"\n") < _ENOUGH_HEAD_LINES and length < _MOST_HEAD_LINE_BYTES
        ):
            length *= 4
            head = self._beginning(length)
            is_all = len(head) < length
        lines = as_utf8(head).split(b"\n")
        return lines if is_all else lines[:-1]

    @cached_property
    def _is_list_of_objects(self) -> bool:
        return re.match(_LIST_OF_OBJECTS, as_utf8(self.head)) is not None

    def _beginning(self, length: int) -> bytes:
        """Return the first ``length`` bytes of the unpacked content."""
        if self.packing is not None:
            return self.data[:length]
        with open_regular(self.path) as file:
            return file.read(length) or b""

    @cached_property
    def head_records(self) -> list[dict[str, object]]:
        """The JSON objects on the first lines; empty for a list of objects or a document."""
        lines = self.head_lines[:_MOST_RECORD_LINES]
        is_long_document = len(lines) == 1 and len(lines[0]) > HEAD_BYTES
        is_indented_document = lines[:1] != [] and lines[0].strip() == b"{"
        if is_long_document or is_indented_document or self._is_list_of_objects:
            return []
        records = []
        for line in lines:
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(value, dict):
                records.append(value)
        return records


class RecordsSource(Source):
    """A file with its content replaced by records on lines, or by one of its records."""

    packing = "records"

    def __init__(self, source: Source, records: bytes) -> None:
        """Create a source of the same file with other content.

        Args:
            source: The source of the file.
            records: The records that replace the content.
        """
        super().__init__(source.path)
        self._file = source
        self._records = records

    @cached_property
    def opened(self) -> OpenedFile:
        """The state of the file when its first bytes are read."""
        return self._file.opened

    @cached_property
    def _unpacked_head(self) -> bytes:
        return self._records[: HEAD_BYTES + 1]

    @cached_property
    def _unpacked_content(self) -> Unpacked | None:
        return Unpacked(self._records, None)


def content_hash(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hex."""
    return hashlib.sha256(data).hexdigest()


def repaired_json(text: str) -> Repaired | None:
    """Return the value of a damaged JSON text with its problems, or None if it is no JSON."""
    # A local import for a fast start of the app, because few files are damaged.
    from mast_tui.traces.io.json_repair import repair

    return repair(text)


def value_with_invalid_escapes(text: str, error: Exception) -> object:
    """Return the value of a JSON text with invalid escapes as its only damage, else None.

    Args:
        text: The text.
        error: The error of reading the text.
    """
    repaired = repaired_json(text) if "escape" in str(error) else None
    if repaired is None or {problem.message for problem in repaired.problems} != {INVALID_ESCAPE}:
        return None
    return repaired.value
