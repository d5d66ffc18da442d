"""Texts that an Inspect sample stores once and refers to as ``attachment://<hash>``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

import orjson

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.json_fields import fields_of

_REFERENCE: Final = re.compile(r"(?:attachment|tc)://([0-9A-Za-z_.-]{1,64})")
_QUOTED_REFERENCE: Final = re.compile(r'"(?:attachment|tc)://([0-9A-Za-z_.-]{1,64})"')
_MAX_REFERENCE_CHARS: Final = 80
_MAX_COPIED_CHARS: Final = 64 << 20
_MAX_INDENTED_CHARS: Final = 1 << 20
_MAX_INDENT_FACTOR: Final = 4
_MAX_INDENT_EXTRA: Final = 4 << 10
_MEDIA_TYPES: Final = frozenset({"image", "audio", "video"})


class Attachments:
    """The attachments of one sample by hash (by number in chunked logs).

    A reference to an unknown attachment stays as it is and is counted in ``missing_count``. Within
    a longer text every use of an attachment copies it. So only ``_MAX_COPIED_CHARS`` characters
    are filled in there, and further references are counted in ``skipped_count``.
    """

    def __init__(self, texts: object) -> None:
        if isinstance(texts, list):
            self._texts = {str(number): text for number, text in enumerate(texts)}
        else:
            self._texts = dict(texts) if isinstance(texts, Mapping) else {}
        self._copied_chars_left = _MAX_COPIED_CHARS
        self.missing_count = 0
        """The number of references to attachments that the sample lacks."""
        self.skipped_count = 0
        """The number of references that stay because of the limit."""

    def text(self, text: str) -> str:
        """Return ``text``, or the attachment that it refers to."""
        if len(text) > _MAX_REFERENCE_CHARS:
            return text
        match = _REFERENCE.fullmatch(text)
        return text if match is None else self._attachment_text(match[1]) or text

    def piece(self, value: object) -> str:
        """Return a JSON value as text for use inside a longer text."""
        if not isinstance(value, str):
            return self.dumped(value)
        text = self.text(value)
        return text if text is value or self._reserve_copy(text) else value

    def dumped(self, value: object) -> str:
        """Return a JSON value as text with its attachments filled in."""
        if isinstance(value, str):
            return self.text(value)
        text = json_text(value)
        return text if "://" not in text else _QUOTED_REFERENCE.sub(self._quoted_attachment, text)

    def content(self, content: object) -> str:
        """Return the text of a message's content; parts of a list are joined by newlines."""
        if isinstance(content, str):
            return self.text(content)
        if not isinstance(content, list):
            return "" if content is None else self.part(content)
        if len(content) == 1:
            return self.part(content[0])
        return "\n".join(self.part(part, self.piece) for part in content)

    def part(self, part: object, fill_in: Callable[[str], str] | None = None) -> str:
        """Return the text of one part of a message, or a note in brackets for a picture or file.

        Args:
            part: The part.
            fill_in: Returns a text with the attachment that it refers to; by default ``text``.
        """
        fill_in = fill_in or self.text
        if isinstance(part, str):
            return fill_in(part)
        if not isinstance(part, Mapping):
            return self.dumped(part)
        kind = part.get("type")
        for field in ("text", "reasoning", "content", "refusal"):
            if isinstance(value := part.get(field), str):
                return fill_in(value)
        if isinstance(kind, str) and kind in _MEDIA_TYPES:
            return f"[{kind}]"
        if kind == "document":
            name = part.get("filename")
            return f"[document {name}]" if isinstance(name, str) and name else "[document]"
        return self.dumped(part)

    def error(self, error: object) -> str:
        """Return the message and the traceback of an error."""
        fields = (as_text(fields_of(error).get(name)) for name in ("message", "traceback"))
        return self.joined(*fields, separator="\n\n") or self.dumped(error)

    def joined(self, *values: object, separator: str = "\n") -> str:
        """Return the texts of JSON values one after the other, without empty ones."""
        return separator.join(self.piece(value) for value in values if value not in (None, ""))

    def with_error(self, text: str, error: object) -> tuple[str, SpanStatus]:
        """Return a tool's output with its error appended, and the status of the result.

        An error that is in the output already is not appended.

        Args:
            text: The output.
            error: The error of the tool call, or None.
        """
        if error is None:
            return text, SpanStatus.UNKNOWN
        message = error.get("message") if isinstance(error, Mapping) else error
        error_text = self.piece(error if message is None else message)
        if error_text.strip() and error_text not in text:
            text = f"{text}\n{error_text}" if text else error_text
        return text, SpanStatus.ERROR

    def _quoted_attachment(self, match: re.Match[str]) -> str:
        """Return the attachment that a match refers to as a JSON string, else the reference."""
        text = self._attachment_text(match[1])
        if text is None or not self._reserve_copy(text):
            return match[0]
        return orjson.dumps(text).decode()

    def _reserve_copy(self, text: str) -> bool:
        """Count a copy of this text; return False if the limit does not allow the copy."""
        if len(text) > self._copied_chars_left:
            self.skipped_count += 1
            return False
        self._copied_chars_left -= len(text)
        return True

    def _attachment_text(self, name: str) -> str | None:
        """Return the attachment with this name; if there is none, count it and return None."""
        text = self._texts.get(name)
        if isinstance(text, str):
            return text
        self.missing_count += 1
        return None


def json_text(value: object) -> str:
    """Return a JSON value as text, indented unless it is very large or very deep."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        compact = orjson.dumps(value).decode()
    except TypeError:
        return _deep_text(value)
    if len(compact) > _MAX_INDENTED_CHARS:
        return compact
    text = dump_text(value)
    return text if len(text) <= _MAX_INDENT_FACTOR * len(compact) + _MAX_INDENT_EXTRA else compact


def _deep_text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply to be shown)"
