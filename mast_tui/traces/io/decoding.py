"""The decoding of a file's bytes, which never fails."""

from __future__ import annotations

import codecs
from typing import Final

from mast_tui.traces.model import Problem

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
WIDE_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
"""The byte order marks of UTF-16 and UTF-32; the mark of little-endian UTF-32 begins like
UTF-16."""


def decode(data: bytes) -> tuple[str, Problem | None]:
    """Return the text of ``data``, and a problem if some of it is invalid, else None.

    A byte order mark determines UTF-8, UTF-16 or UTF-32 and is dropped; without a mark the bytes
    are UTF-8. Invalid bytes become U+FFFD; the problem names the first line with invalid bytes.
    """
    encoding = "utf-8"
    for mark, name in _MARKS:
        if data.startswith(mark):
            data = data[len(mark) :]
            encoding = name
            break
    try:
        return data.decode(encoding), None
    except UnicodeDecodeError as error:
        line = data[: error.start].decode(encoding, "replace").count("\n") + 1
        message = f"not valid {encoding.upper()}; what could not be read is shown as \ufffd"
        return data.decode(encoding, "replace"), Problem(f"line {line}", message)


def as_utf8(data: bytes) -> bytes:
    """Return ``data`` as UTF-8 without a byte order mark; bytes without a mark stay unchanged."""
    if not data.startswith(tuple(mark for mark, _name in _MARKS)):
        return data
    if data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :]
    text, _problem = decode(data)
    return text.encode("utf-8", "replace")


def csv_separator(text: str) -> str:
    """Return the character between the cells of a CSV, guessed from its heading row.

    Spreadsheets write semicolons if the comma is the decimal sign, and tabs on request.
    """
    heading = text.lstrip("\ufeff").partition("\n")[0]
    if "," in heading:
        return ","
    return max(",;\t", key=heading.count)  # the comma if all are missing
