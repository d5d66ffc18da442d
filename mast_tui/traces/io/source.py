"""One file on disk, unpacked where it is compressed, read as far as reading needs it."""

from __future__ import annotations

import codecs
import hashlib
import re
from functools import cached_property
from pathlib import Path
from typing import Final

import orjson

from mast_tui.traces.io.decoding import as_utf8, decode
from mast_tui.traces.io.json_lines import LINES_LOOKED_AT, first_lines, json_records
from mast_tui.traces.io.json_values import InvalidJSON, load_json, without_surrogates
from mast_tui.traces.io.opened_file import OpenedFile
from mast_tui.traces.io.packed import Unpacked, beginning, packing_of, unpack
from mast_tui.traces.io.python_literals import python_literal
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.model import Problem

HEAD_BYTES: Final = 64 * 1024
"""The bytes of a file that recognition reads, and that a line-based trace id depends on."""

_JSON_BEGINS: Final = re.compile(rb'\s*(?:\{\s*"|\[\s*[\[{"])')
_LOG_BEGINS: Final = re.compile(rb"\s*\[(?:\d+[-:/]\d[^\]\n]*|[A-Z]+)\]")


class Source:
    """A file with its head, its whole content and its JSON, each read once, when asked for.

    Of a compressed file it is the unpacked content that is seen here. ``OSError`` from the file
    system comes through on first access: ``UnreadableFile`` for what is no regular file, and
    ``TooBig`` from unpacking.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: tuple[Problem, ...] = ()
        """The damage of ``json``, once that was read; empty if it is intact."""
        self.remarks: list[Problem] = []
        """Remarks on readers that tried the file, whatever the result."""

    @cached_property
    def packing(self) -> str | None:
        """The compression that the file is in, or None."""
        return packing_of(self._beginning[1])

    @cached_property
    def broken(self) -> str | None:
        """The reason why the unpacked content ends early; None for an intact file."""
        return None if self._unpacked is None else self._unpacked.broken

    @cached_property
    def opened(self) -> OpenedFile:
        """The file as it is when its first bytes are read."""
        return self._beginning[0]

    @cached_property
    def size(self) -> int:
        """The content's length in bytes."""
        return self.opened.size if self._unpacked is None else len(self._unpacked.data)

    @cached_property
    def head(self) -> bytes:
        """The first ``HEAD_BYTES`` of the content."""
        return self._beginning[1] if self.packing is None else self._unpacked_head[:HEAD_BYTES]

    @cached_property
    def data(self) -> bytes:
        """The whole content."""
        if self._unpacked is not None:
            return self._unpacked.data
        with open_regular(self.path) as file:
            return file.readall() or b""

    @cached_property
    def _head_is_all(self) -> bool:
        """True if nothing follows the head; of a compressed file no more is unpacked for that."""
        if self.packing is None:
            return len(self.head) == self.size
        return len(self._unpacked_head) <= HEAD_BYTES

    @cached_property
    def _unpacked_head(self) -> bytes:
        """The head of a compressed file, and one byte more where there is more."""
        return beginning(self.path, HEAD_BYTES + 1)

    @cached_property
    def _beginning(self) -> tuple[OpenedFile, bytes]:
        with open_regular(self.path) as file:
            return OpenedFile(self.path, file), file.read(HEAD_BYTES) or b""

    @cached_property
    def _unpacked(self) -> Unpacked | None:
        return None if self.packing is None else unpack(self.path)

    @cached_property
    def is_binary(self) -> bool:
        """True if the head holds NUL bytes without being UTF-16 or UTF-32 with its mark.

        A few of them make no binary file of JSON, which cannot hold any: it is damaged.
        """
        if self.head.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
            return False
        nulls = self.head.count(b"\0")
        return nulls > 0 and (_JSON_BEGINS.match(self.head) is None or 8 * nulls > len(self.head))

    @property
    def line_of_nul_bytes(self) -> int | None:
        """The first line with a NUL byte in the head of a file that begins as JSON, or None."""
        position = self.head.find(b"\0")
        if position < 0 or _JSON_BEGINS.match(self.head) is None:
            return None
        return self.head.count(b"\n", 0, position) + 1

    @cached_property
    def json(self) -> object | None:
        """The file as one JSON document in any UTF encoding, or None if it is not one.

        Python's literals are read too, as what they would be in JSON.

        Of a document that is broken it is what is intact; ``damage`` lists what is missing.
        """
        if as_utf8(self.head).lstrip()[:1] not in (b"{", b"[") or is_no_json(self.head):
            return None  # told from the head, so that no big log is read for this
        parsed: object
        try:
            parsed = orjson.loads(self.data.removeprefix(codecs.BOM_UTF8))
        except orjson.JSONDecodeError:
            parsed = self._json_with_damage()
        return parsed

    def _json_with_damage(self) -> object | None:
        text, problem = decode(self.data)
        problems: tuple[Problem, ...] = () if problem is None else (problem,)
        try:
            value = load_json(text)
        except InvalidJSON:
            # Start-up: few files are damaged.
            from mast_tui.traces.io.json_repair import repair

            literal = python_literal(text)
            if literal is not None:
                self.damage = problems
                return without_surrogates(literal)
            salvaged = repair(text)
            if salvaged is None:
                return None
            value = salvaged.value
            problems += salvaged.problems
        self.damage = problems
        return value

    @cached_property
    def json_lines(self) -> list[object]:
        """The first values of a file with one JSON record a line; empty for any other file.

        Only the head is looked at, unless it ends within the first line.
        """
        if as_utf8(self.head).lstrip()[:1] not in (b"{", b"["):
            return []
        data = self.head
        whole = self._head_is_all
        if not whole and b"\n" not in data.lstrip():
            data = self.data
        data = as_utf8(data)
        if not whole:
            data = data[: data.rfind(b"\n") + 1]
        lines = first_lines(data.decode("utf-8", "replace"), LINES_LOOKED_AT + 1)
        if not lines or (len(lines) == 1 and whole):
            return []
        return json_records(lines)

    @cached_property
    def head_lines(self) -> list[bytes]:
        """The complete lines of the head as UTF-8, split at ``\\n`` only."""
        lines = as_utf8(self.head).split(b"\n")
        return lines if self._head_is_all else lines[:-1]

    @cached_property
    def head_records(self) -> list[dict[str, object]]:
        """The JSON objects among the first 40 complete lines of the head."""
        records = []
        for line in self.head_lines[:40]:
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(value, dict):
                records.append(value)
        return records


class RecordsSource(Source):
    """A file as if its records had stood on lines, or as if one of them were all of it."""

    packing = "records"

    def __init__(self, source: Source, records: bytes) -> None:
        """Make a source of some of the content of another.

        Args:
            source: The file.
            records: The records that are read instead of its content.
        """
        super().__init__(source.path)
        self._file = source
        self._records = records

    @cached_property
    def opened(self) -> OpenedFile:
        """The file as it is when its first bytes are read."""
        return self._file.opened

    @cached_property
    def _unpacked_head(self) -> bytes:
        return self._records[: HEAD_BYTES + 1]

    @cached_property
    def _unpacked(self) -> Unpacked | None:
        return Unpacked(self._records, None)


def is_no_json(head: bytes) -> bool:
    """Return whether content begins with a bracket as logs do, around a time or a level."""
    return _LOG_BEGINS.match(head) is not None


def content_hash(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hex."""
    return hashlib.sha256(data).hexdigest()
